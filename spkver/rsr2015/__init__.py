"""The RSR2015 recipes: configuration, lists, command line, report. The systems themselves are the pages of
recipes/rsr2015, which are installed with the package."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
