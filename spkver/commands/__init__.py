"""The commands of ``spkver``, a module for each subject."""
