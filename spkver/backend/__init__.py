"""From vectors to scores: nuisance removed (NAP), a machine for each model (SVM), the trials scored.

`Supervectors` and `Trials` enter, `Scores` leave; GMM-UBM scores are made here from frames too.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
