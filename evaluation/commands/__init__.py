"""The commands of ``spkver-eval``, one module each; `spkver.evaluation_cli` registers them."""
