"""Features: audio files in, frames for the models out.

audio -> cepstra, log-energy, speech labels (stored) -> RASTA, deltas, normalisation, selection -> frames (in memory)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
