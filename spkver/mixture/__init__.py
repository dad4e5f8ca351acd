"""Gaussian mixtures: frames in; the universal background model and the statistics of each segment under it out.

`GaussianMixture` holds weights, means and variances; `train_ubm` trains it by splitting; `Statistics` are zeroth
and first order, of one segment a row, and they add.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
