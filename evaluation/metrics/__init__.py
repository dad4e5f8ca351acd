"""Metrics of scores: error rates, detection costs, calibration, disclosure.

Two arrays enter, the scores of target and of nontarget trials; each metric is a function of them (`eer`, `min_dcf`,
`cllr`, `zebra`, `d_sys` ...) and, for many at once, of the scores sorted with ties merged. `evaluate` gives all.
Without a name of a convention ties are pooled and nothing is added; a reference's own reading has its name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
