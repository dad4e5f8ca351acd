"""Attackers: trained on data directories, kept as one folder each; they score any list of trials.

`train_attackers` makes an `Attacker` of an `AttackerConfig` (presets by name), `score` gives `Scores`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
