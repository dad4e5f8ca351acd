"""Normalisation of scores by a cohort, on matrices: z-, t-, s- and adaptive s-norm.

`evaluation.score_maps.cohort_norm` does the same with score files; here the cohort belongs to the attacker.

References
----------
R. Auckenthaler, M. Carey and H. Lloyd-Thomas, "Score normalization for text-independent speaker verification systems",
Digital Signal Processing 10, 2000 (z and t).
S. Cumani, P. Batzu, D. Colibro, C. Vair, P. Laface and V. Vasilakakis, "Comparison of speaker recognition approaches
for real applications", Interspeech 2011 (adaptive s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores
from spkbase.errors import DataError

_FLAT = 1e-12  # deviations below this share of the mean are rounding


def cohort_moments(
    scores: NDArray, ids: Sequence[str] | NDArray, *, top: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (ddof 0) of the cohort scores of each row.

    Parameters
    ----------
    scores : ndarray [shape=(N, K)]
        Of N models or segments against K members of the cohort.
    ids : sequence of str, length N
        For messages.
    top : int, optional
        Take the highest `top` of each row alone; all where there are fewer.

    Returns
    -------
    mean, deviation : ndarray [shape=(N,)]

    Raises
    ------
    DataError
        If there are fewer than 2 cohort scores, or those of a row are all equal.

    Examples
    --------
    >>> cohort_moments(np.array([[0.0, 2.0, 4.0]]), ["m"], top=2)
    (array([3.]), array([1.]))
    """
    if scores.shape[1] < 2:
        raise DataError(
            f"the cohort has {scores.shape[1]} members: a deviation needs 2",
            remedy="give more training speakers or set norm.kind=none",
        )
    scores = np.asarray(scores, np.float64)
    if top is not None and top < scores.shape[1]:
        scores = np.partition(scores, scores.shape[1] - top, axis=1)[:, -top:]
        scores.sort(axis=1)  # the order of a partition is the library's own affair; sums are not
    mean, deviation = scores.mean(axis=1), scores.std(axis=1)
    flat = np.flatnonzero(~(deviation > _FLAT * np.abs(mean)))
    if len(flat):
        raise DataError(
            f"{len(flat)} with equal cohort scores alone, {str(ids[flat[0]])!r} among them: nothing to normalise by",
            remedy="set norm.kind=none, or give a training set of other speakers",
        )
    return mean, deviation


def normalise(
    scores: Scores,
    *,
    models: tuple[NDArray, NDArray] | None = None,
    segments: tuple[NDArray, NDArray] | None = None,
) -> Scores:
    """Normalise scores by the moments of their models (z), of their segments (t), or both (s, the mean of the two).

    Parameters
    ----------
    scores : evaluation.trials.Scores
    models : tuple of ndarray [shape=(M,)], optional
        Mean and deviation for each id of the table `scores.model_ids`; only those that a trial uses are read.
    segments : tuple of ndarray [shape=(S,)], optional
        The same for `scores.segment_ids`.

    Returns
    -------
    evaluation.trials.Scores
        The same trials in the same order; the same scores where there are no moments.
    """
    sides = [
        (scores.values - mean[codes]) / deviation[codes]
        for codes, (mean, deviation) in (
            (codes, moments) for codes, moments in ((scores.models, models), (scores.segments, segments)) if moments
        )
    ]
    return replace(scores, values=sum(sides) / len(sides)) if sides else scores
