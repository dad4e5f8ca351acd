"""Scores of pairs of samples, and their equal error rate as a figure of merit for cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length

from evaluation.metrics import eer
from evaluation.trials import check_index
from spkbase.arrays import Floats
from spkbase.errors import DataError
from spkver.backend import Sessions, cosine_of_sessions


def minus_eer(speakers: Any, compare: Callable[[Any, Any], Floats]) -> float:
    """Return minus the equal error rate (`evaluation.eer`) of all pairs of samples, each once.

    Parameters
    ----------
    speakers : array_like of shape (n,)
        Speaker of each sample.
    compare : callable
        Function of the rows of both samples of each pair that returns their scores.

    Raises
    ------
    DataError
        If no pair belongs to one speaker, or none to two speakers.
    """
    codes = np.unique(np.asarray(speakers), return_inverse=True)[1].ravel()
    first, second = np.triu_indices(len(codes), 1)
    is_target = codes[first] == codes[second]
    if is_target.all() or not is_target.any():
        n_speakers = len(set(codes.tolist()))
        text = f"{len(codes)} samples of {n_speakers} speakers have no equal error rate: expected pairs of one "
        remedy = "in cross-validation: fewer folds, or GroupKFold with groups=speakers"
        raise DataError(f"{text}speaker and pairs of two", remedy=remedy)
    scores = compare(first, second)
    return -float(eer(scores[is_target], scores[~is_target]))


def check_speakers(samples: Any, speakers: Any) -> None:
    """Refuse speakers whose index or number differs from that of the samples."""
    check_index(X=samples, y=speakers)
    check_consistent_length(samples, speakers)


class PairScorer:
    """Base class of estimators that compare two samples, with `score_pairs` and `score`.

    `_samples` checks samples, `_enrolled` makes a model of each, and `_compared` scores pairs of their rows.
    """

    _samples: Callable[[Any], Any]
    _compared: Callable[[Any, Any, Any, Any], Floats]

    def _enrolled(self, samples: Any) -> Any:
        return self._samples(samples)

    def score_pairs(self, enrolled: Any, tested: Any) -> Floats:
        """Return the score of each pair: the model of enrolled sample i against tested sample i.

        Parameters
        ----------
        enrolled : array_like of shape (n, R) or (n, k, R), or list of n recordings
            One vector per model, or k vectors per speaker, or one recording per model.
        tested : array_like of shape (n, R), or list of n recordings

        Returns
        -------
        ndarray of shape (n,)
            Log-likelihood ratios in nat (for recordings, per frame), or the scores of the chain's last step.

        Raises
        ------
        DataError
            If there are not equally many of both.
        """
        rows = np.arange(len(tested))
        if len(enrolled) != len(rows):
            text = (
                f"expected as many enrolled as tested samples, got {len(enrolled)} and {len(rows)}"
            )
            raise DataError(text)
        return self._compared(self._enrolled(enrolled), self._samples(tested), rows, rows)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803 - scikit-learn's name
        """Return minus the equal error rate of all pairs of samples, so that larger is better.

        Parameters
        ----------
        X : array_like of shape (n, R), or list of n recordings
            Samples of speakers that were not in `fit`, otherwise the rate is too low; see
            `sklearn.model_selection.GroupKFold`.
        y : array_like of shape (n,)
            Speaker of each sample.


        Raises
        ------
        DataError
            If no pair belongs to one speaker, or none to two speakers, or X and y have different indices.
        """
        check_speakers(X, y)
        return minus_eer(y, partial(self._compared, self._enrolled(X), self._samples(X)))


def neg_eer(estimator: Any, X: Any, y: Any) -> float:  # noqa: N803
    """Return minus the equal error rate of all pairs of samples: a `scoring` of scikit-learn's searches.

    Parameters
    ----------
    estimator : estimator
        A trained estimator. If it ends with a `PairScorer` (`Plda`, `GmmUbm`, `Chain`), it scores the pairs itself;
        otherwise the score is the cosine of the vectors that `transform` returns.
    X : array_like of shape (n, R), or list of n recordings
    y : array_like of shape (n,)
        Speaker of each sample.


    Raises
    ------
    DataError
        If the estimator does neither, no pair belongs to one speaker, none to two speakers, or X and y have different
        indices.

    Examples
    --------
    >>> from spkver.sklearn import Centre
    >>> vectors, speakers = np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 3.0]]), ["a", "a", "b", "b"]
    >>> abs(neg_eer(Centre().fit(vectors), vectors, speakers))
    0.0
    """
    check_speakers(X, y)
    last = estimator
    if isinstance(estimator, Pipeline):
        last = estimator.steps[-1][1]
    if isinstance(last, PairScorer):
        return float(estimator.score(X, y))
    if not hasattr(estimator, "transform"):
        text = f"expected an estimator that scores pairs or transforms, got {type(last).__name__}"
        raise DataError(text, remedy="end it with Plda(), or with a map such as LengthNorm()")
    vectors = np.asarray(estimator.transform(X), np.float64)
    enrolled = Sessions(vectors, np.arange(len(vectors)))
    return minus_eer(y, partial(cosine_of_sessions, enrolled, vectors))
