"""Normalisation of scores by a cohort of impostors: z-, t-, s- and adaptive s-norm.

Each model, and each segment, is scored against a cohort of others; mean and standard deviation (of the population,
divided by N) of these scores say what an impostor's score looks like on that side:

    z = (score - mean of the model) / deviation of the model
    t = (score - mean of the segment) / deviation of the segment
    s = (z + t) / 2

The adaptive form takes of each side the highest cohort scores alone.

References
----------
.. [1] R. Auckenthaler et al., "Score normalization for text-independent speaker verification systems", Digital Signal
   Processing 10, 2000.
.. [2] S. Cumani et al., "Comparison of speaker recognition approaches for real applications", Interspeech 2011.
.. [3] P. Matějka et al., "Analysis of score normalization in multilingual speaker recognition", Interspeech 2017.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from evaluation.trials import Scores, recode
from spkbase.errors import DataError, few

Side = Literal["model", "segment"]


def z_norm(scores: Scores, model_cohort: Scores, *, top: int | None = None) -> Scores:
    """Normalise by what cohort segments score against each model.

    Parameters
    ----------
    scores : Scores
        What to normalise.
    model_cohort : Scores
        Each model of `scores` against the segments of the cohort.
    top : int, optional
        Take the highest `top` cohort scores of each model alone; all by default.

    Returns
    -------
    Scores
        The same trials in the same order.

    Raises
    ------
    DataError
        If a model has fewer than 2 (or `top`) cohort scores, an infinite one, or all are equal.

    Examples
    --------
    >>> cohort = Scores.from_ids(["m", "m"], ["c1", "c2"], [1.0, 3.0])
    >>> z_norm(Scores.from_ids(["m"], ["s"], [4.0]), cohort).values
    array([2.])
    """
    return replace(scores, values=_normalised(scores, model_cohort, "model", top))


def t_norm(scores: Scores, segment_cohort: Scores, *, top: int | None = None) -> Scores:
    """Normalise by what cohort models score against each segment.

    Parameters
    ----------
    scores : Scores
        What to normalise.
    segment_cohort : Scores
        The models of the cohort against each segment of `scores`.
    top : int, optional
        Take the highest `top` cohort scores of each segment alone; all by default.

    Returns and errors as for `z_norm`, of segments.
    """
    return replace(scores, values=_normalised(scores, segment_cohort, "segment", top))


def s_norm(scores: Scores, model_cohort: Scores, segment_cohort: Scores, *, top: int | None = None) -> Scores:
    """Normalise by both sides: the mean of z- and t-norm; with `top`, the adaptive s-norm.

    Parameters
    ----------
    scores, model_cohort, segment_cohort : Scores
        See `z_norm` and `t_norm`.
    top : int, optional
        Take the highest `top` cohort scores of each model and of each segment alone (300 is usual); all by default.

    Returns and errors as for `z_norm` and `t_norm`.
    """
    z = _normalised(scores, model_cohort, "model", top)
    t = _normalised(scores, segment_cohort, "segment", top)
    return replace(scores, values=(z + t) / 2)


def _normalised(scores: Scores, cohort: Scores, side: Side, top: int | None) -> np.ndarray:
    if top is not None and top < 2:
        raise DataError(f"expected at least 2 cohort scores to take, got {top}")
    ids, codes = (scores.model_ids, scores.models) if side == "model" else (scores.segment_ids, scores.segments)
    theirs, their_codes = (
        (cohort.model_ids, cohort.models) if side == "model" else (cohort.segment_ids, cohort.segments)
    )
    owners = recode(theirs, ids)[their_codes]
    known = owners >= 0
    owners, values = owners[known], cohort.values[known]
    used = np.unique(codes)
    counts = np.bincount(owners, minlength=len(ids))
    _check(ids, used[counts[used] < (top or 2)], f"fewer than {top or 2} cohort scores", side)
    infinite = np.unique(owners[~np.isfinite(values)])
    _check(ids, np.intersect1d(infinite, used), "an infinite cohort score", side)
    if top is not None:
        owners, values = _highest(owners, values, top)
        counts = np.bincount(owners, minlength=len(ids))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(owners, values, len(ids)) / counts
        deviation = np.sqrt(np.bincount(owners, (values - mean[owners]) ** 2, len(ids)) / counts)
    # rounding leaves a trace where all are equal
    flat = deviation[used] <= 1e-12 * np.maximum(1e-300, np.abs(mean[used]))
    _check(ids, used[flat], "equal cohort scores alone", side)
    return (scores.values - mean[codes]) / deviation[codes]


def _highest(owners: np.ndarray, values: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep the highest scores of each owner."""
    order = np.lexsort([-values, owners])
    owners, values = owners[order], values[order]
    starts = np.searchsorted(owners, owners, side="left")
    kept = np.arange(len(owners)) - starts < top
    return owners[kept], values[kept]


def _check(ids: np.ndarray, wrong: np.ndarray, what: str, side: Side) -> None:
    if not len(wrong):
        return
    named = few(ids[wrong].tolist(), repr)
    order = "model cohort score" if side == "model" else "cohort segment score"
    remedy = f"the cohort's file should hold lines '{order}' for each {side}"
    raise DataError(f"{len(wrong)} {side}{'s' * (len(wrong) > 1)} with {what}: {named}", remedy=remedy)
