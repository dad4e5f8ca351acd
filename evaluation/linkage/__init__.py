"""Linkability: how often a voice is linked to its owner among N enrolled speakers, for every N.

Embeddings or scores enter; the ranks of the owners (`Ranks`) are counted once, exactly; everything else is a closed
form of them: the curve, its intervals, rank disclosure, singling out, extrapolation beyond the gallery, and who is
easy or hard to link over attackers and anonymisers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
