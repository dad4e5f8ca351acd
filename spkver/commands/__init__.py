"""The commands of ``spkver``, a module for each subject; `spkver.cli` registers them."""
