"""Vectors: statistics of a segment in, one vector a segment out.

`Supervectors` are the MAP-adapted means. `train_total_variability` learns the subspace in which they vary, a
`TotalVariability`, and `extract_ivectors` gives the `IVectors` in it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
