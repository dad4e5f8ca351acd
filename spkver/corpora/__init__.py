"""Corpora that recipes read: lists, keys and audio files, checked before anything long starts; and simulated ones in
the same form. `read_rsr2015` gives an `Rsr2015`, `simulate_rsr2015` and `simulate_voiceprivacy` make synthetic
speech."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
