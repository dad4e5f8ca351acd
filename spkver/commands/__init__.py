"""The commands of ``spkver``, a module for each subject; `spkver.cli` registers them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
