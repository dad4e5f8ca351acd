"""Trials, keys and scores: long lists of pairs of ids, joined by id and never by row.

`Trials` has a model and a segment a row, as codes into tables of ids; a `Key` says which are target trials;
`Scores` has a number for each. `align` and `split_scores` join them; maps of speakers and columns of metadata come
beside them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
