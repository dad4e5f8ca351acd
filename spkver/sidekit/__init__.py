"""Files that SIDEKIT writes and reads, so that its users keep what they have.

Layouts are those of SIDEKIT 1.3 and 1.4. Trials, keys and scores in SIDEKIT's form are in `evaluation.formats`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
