"""The commands of ``spkver-eval``, one module each; `evaluation.cli` registers them."""
