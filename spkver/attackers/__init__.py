"""Attackers: train them on a data directory, keep each as one folder, score any list of trials."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
