"""Maps from scores to scores: affine calibration and fusion by logistic regression, and normalisation by a cohort (z,
t, s, adaptive s). Arrays or `Scores` enter, the same trials with other numbers leave."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
