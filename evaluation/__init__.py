"""Scores in, evidence out: what is said of a speaker by verification scores, and how sure that is.

Each name is loaded when it is used; the rooms behind them are `metrics`, `linkage`, `uncertainty`, `formats` and so on.

Examples
--------
>>> import evaluation as ev
>>> found = ev.evaluate(target=[0.5, 2.0, 3.0, 4.0], nontarget=[-1.0, 0.0, 1.0, -2.0])
>>> round(found.eer["rocch"], 4), round(found.min_cllr, 4)
(0.125, 0.25)
>>> ev.evaluate([0.5, -1.0, 2.0, 1.0], labels=[True, False, True, False]).eer["rocch"]
0.25
>>> ev.eer([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0]) == found.eer["rocch"]
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
