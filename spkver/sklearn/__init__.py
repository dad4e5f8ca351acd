"""Estimators of scikit-learn (1.6 or later): mixtures, i-vectors, maps of vectors, PLDA, whole chains.

They have `fit`, `transform`, `score`, `get_params`, and work in pipelines, grid searches and cross-validation. The
arithmetic is that of the functions of `spkver.mixture`, `spkver.vectors` and `spkver.backend`, to the bit.

>>> import numpy as np
>>> from sklearn.model_selection import GridSearchCV, GroupKFold
>>> from sklearn.pipeline import make_pipeline
>>> draw = np.random.default_rng(0)
>>> speakers = np.repeat(np.arange(12), 5)
>>> vectors = draw.normal(size=(12, 4))[speakers] + 0.3 * draw.normal(size=(60, 4))
>>> steps = make_pipeline(Whiten(), LengthNorm(), Lda(), Plda())
>>> search = GridSearchCV(steps, {"lda__rank": [1, 3]}, cv=GroupKFold(3))
>>> search.fit(vectors, speakers, groups=speakers).best_params_
{'lda__rank': 3}

`score` of an estimator that compares two samples is minus the equal error rate of all pairs; `neg_eer` is the same as a
`scoring` for any estimator that transforms. Recordings of different lengths are a list of arrays of frames, (T, D).
"""

from spkver.sklearn.pairs import PairScorer, neg_eer
from spkver.sklearn.recordings import GaussianMixture, GmmUbm, IVectorExtractor
from spkver.sklearn.vectors import (
    Centre,
    Chain,
    Efr,
    Lda,
    LengthNorm,
    Nap,
    Pca,
    Plda,
    Sphnorm,
    TwoCovariance,
    Wccn,
    Whiten,
)

__all__ = [
    "Centre",
    "Chain",
    "Efr",
    "GaussianMixture",
    "GmmUbm",
    "IVectorExtractor",
    "Lda",
    "LengthNorm",
    "Nap",
    "PairScorer",
    "Pca",
    "Plda",
    "Sphnorm",
    "TwoCovariance",
    "Wccn",
    "Whiten",
    "neg_eer",
]
