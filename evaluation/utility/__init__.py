"""How useful speech still is: words (WER, CER), emotions (UAR), intonation (F0 correlation), and ranks of systems.

Each measure is a sum or a mean over speakers, and has an interval by a bootstrap of speakers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
