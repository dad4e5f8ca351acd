"""Normalisation of scores: z-, t-, s- and adaptive s-norm with a cohort of impostors, and centring of closed sets.

Each model, and each segment, is scored against a cohort of others; mean and standard deviation (of the population,
divided by N) of these scores describe an impostor's scores on that side:

    z = (score - mean of the model) / deviation of the model
    t = (score - mean of the segment) / deviation of the segment
    s = (z + t) / 2

The adaptive form uses only the highest cohort scores of each side. `z_norm`, `t_norm` and `s_norm` take the cohort's
scores as lists; `cohort_moments` and `normalise` are the same for a cohort in memory, as a full matrix.

Closed sets, in which an attacker knows that the speaker is one of the enrolled speakers, are centred: the mean of each
segment's scores is subtracted.

    c(m, s) = score(m, s) - mean over the enrolled m' of score(m', s)

The part of a segment's scores that is common to all models (a bad channel, a common voice) carries no information
about the enrolled speaker and is removed; their order stays. This is t-norm with the enrolled as the cohort, without
the division, because deviations of few models are uncertain.

Every segment must have been scored against the same models: the list is a full cross of models and segments, or
consists of *blocks* that are full crosses, such as one for each sex, which are centred separately.

References
----------
.. [1] R. Auckenthaler et al., "Score normalization for text-independent speaker verification systems", Digital Signal
   Processing 10, 2000.
.. [2] S. Cumani et al., "Comparison of speaker recognition approaches for real applications", Interspeech 2011.
.. [3] P. Matějka et al., "Analysis of score normalization in multilingual speaker recognition", Interspeech 2017.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores, Trials, recode, vectors_of
from spkbase.errors import DataError, few
from spkbase.rounding import is_negligible, share_of_sum

logger = logging.getLogger(__name__)

Side = Literal["model", "segment"]
Moments = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Mean and standard deviation (divided by N) of the cohort scores of each model, or of each segment."""


def closed_set_scores(scores: Scores) -> Scores:
    """Centre the scores of each segment over the models that it was scored against.

    Parameters
    ----------
    scores : Scores
        Finite scores of a full cross of models and segments, or of blocks that are full crosses, see `enrolled_blocks`.

    Returns
    -------
    Scores
        The same trials in the same order.

    Raises
    ------
    DataError
        If the list is not a full cross, a segment has only one model, or a score is infinite.

    Examples
    --------
    >>> closed_set_scores(Scores.from_ids(["a", "b", "a", "b"], ["s", "s", "t", "t"], [4.0, 2.0, 0.0, 5.0])).values
    array([ 1. , -1. , -2.5,  2.5])
    """
    enrolled_blocks(scores)
    counts = np.bincount(scores.segments, minlength=len(scores.segment_ids))
    alone = int((counts[scores.segments] == 1).sum())
    if alone > 0:
        text = f"{alone} segments have scores of only one model: there is no other to compare with"
        raise DataError(text, remedy="a closed set has two speakers or more")
    if not np.isfinite(scores.values).all():
        raise DataError("infinite scores have no mean", remedy="give finite scores")
    sums = np.bincount(scores.segments, scores.values, len(scores.segment_ids))
    return replace(scores, values=scores.values - (sums / np.maximum(counts, 1))[scores.segments])


def enrolled_blocks(trials: Trials) -> NDArray[np.int64]:
    """Return the block of each trial: the segments of a block were scored against the same models.

    Parameters
    ----------
    trials : Trials
        Pairs without repeats; a full cross is one block.

    Returns
    -------
    ndarray of int64 of shape (N,)
        Blocks are numbered from 0 in the order of their first model's code.

    Raises
    ------
    DataError
        If some segments share only some of their models: neither the list nor its blocks are full crosses.

    Examples
    --------
    >>> enrolled_blocks(Trials.from_ids(["a", "b", "c", "c"], ["s", "s", "t", "u"])).tolist()
    [0, 0, 1, 1]
    """
    lowest = np.full(len(trials.segment_ids), len(trials.model_ids))
    np.minimum.at(lowest, trials.segments, trials.models)
    _, blocks = np.unique(lowest[trials.segments], return_inverse=True)
    n_models = np.bincount(np.unique([blocks, trials.models], axis=1)[0])
    n_segments = np.bincount(np.unique([blocks, trials.segments], axis=1)[0])
    whole = np.array_equal(n_models * n_segments, np.bincount(blocks))
    if not whole or n_models.sum() != len(
        np.unique(trials.models)
    ):  # some model belongs to two blocks
        text = "the trial list is not a full cross of models and segments and does not fall into parts that are"
        raise DataError(text, remedy="score every segment against every model (of its sex)")
    return blocks.astype(np.int64)


def cohort_moments(
    scores: NDArray[Any], ids: Sequence[str] | NDArray[Any], *, top: int | None = None
) -> Moments:
    """Return mean and standard deviation (divided by N) of the cohort scores of each row of a matrix.

    Parameters
    ----------
    scores : ndarray of shape (N, K)
        Scores of N models or segments against K members of the cohort.
    ids : sequence of str, length N
        For messages.
    top : int, optional
        Use only the highest `top` of each row, or all if there are fewer.

    Returns
    -------
    mean, deviation : ndarray of float64 of shape (N,)

    Raises
    ------
    DataError
        If there are fewer than 2 cohort scores, or the scores of a row are all equal.

    Examples
    --------
    >>> cohort_moments(np.array([[0.0, 2.0, 4.0]]), ["m"], top=2)
    (array([3.]), array([1.]))
    """
    scores = vectors_of(scores, "cohort scores").astype(np.float64, copy=False)
    if scores.shape[1] < 2:
        raise DataError(f"the cohort has {scores.shape[1]} members: a deviation needs 2")
    if top is not None and top < scores.shape[1]:
        scores = np.partition(scores, scores.shape[1] - top, axis=1)[:, -top:]
        scores.sort(axis=1)  # sort fully: sums would depend on the undefined order of a partition
    mean = scores.mean(axis=1)
    deviation = scores.std(axis=1)
    flat = np.flatnonzero(is_negligible(deviation, mean))
    if len(flat):
        name = str(ids[flat[0]])
        raise DataError(
            f"{len(flat)} have only equal cohort scores, {name!r} among them: their deviation is 0"
        )
    return mean, deviation


def normalise(
    scores: Scores, *, models: Moments | None = None, segments: Moments | None = None
) -> Scores:
    """Normalise scores by the moments of their models (z), of their segments (t), or both (s, the mean of the two).

    Parameters
    ----------
    scores : Scores
    models : tuple of two ndarrays of shape (M,), optional
        Mean and deviation for each id of the table `scores.model_ids`; ids without a trial are ignored.
    segments : tuple of two ndarrays of shape (S,), optional
        The same for `scores.segment_ids`.

    Returns
    -------
    Scores
        The same trials in the same order; scores without moments are unchanged.
    """
    sides = []
    for codes, moments in ((scores.models, models), (scores.segments, segments)):
        if moments is not None:
            mean, deviation = moments
            sides.append((scores.values - mean[codes]) / deviation[codes])
    if sides:
        return replace(scores, values=sum(sides) / len(sides))
    return scores


def z_norm(scores: Scores, model_cohort: Scores, *, top: int | None = None) -> Scores:
    """Normalise by the scores of cohort segments against each model.

    Parameters
    ----------
    scores : Scores
        Scores to normalise.
    model_cohort : Scores
        Each model of `scores` against the segments of the cohort. There is a warning if some of these are tested.
    top : int, optional
        Use the highest `top` cohort scores of each model only; all by default.

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
    return normalise(scores, models=_list_moments(scores, model_cohort, "model", top))


def t_norm(scores: Scores, segment_cohort: Scores, *, top: int | None = None) -> Scores:
    """Normalise by the scores of cohort models against each segment.

    Parameters
    ----------
    scores : Scores
        Scores to normalise.
    segment_cohort : Scores
        The models of the cohort against each segment of `scores`. There is a warning if some of these are tested.
    top : int, optional
        Use the highest `top` cohort scores of each segment only; all by default.

    Return value and errors are as for `z_norm`, with segments in place of models.
    """
    return normalise(scores, segments=_list_moments(scores, segment_cohort, "segment", top))


def s_norm(
    scores: Scores, model_cohort: Scores, segment_cohort: Scores, *, top: int | None = None
) -> Scores:
    """Normalise by both sides: the mean of z- and t-norm; with `top`, the adaptive s-norm.

    Parameters
    ----------
    scores, model_cohort, segment_cohort : Scores
        See `z_norm` and `t_norm`.
    top : int, optional
        Use the highest `top` cohort scores of each model and of each segment only (300 is usual); all by default.

    Return value and errors are as for `z_norm` and `t_norm`.
    """
    models = _list_moments(scores, model_cohort, "model", top)
    return normalise(
        scores, models=models, segments=_list_moments(scores, segment_cohort, "segment", top)
    )


def cohort_means(
    trials: Trials, model_cohort: Scores, segment_cohort: Scores, *, top: int | None = 300
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean cohort score of each model and of each segment, a quality measure for `evaluation.fuse`.

    Parameters
    ----------
    trials : Trials
        Trials, such as a key or scores.
    model_cohort, segment_cohort : Scores
        See `s_norm`.
    top : int, optional
        Use the highest `top` cohort scores of each model and of each segment only; all if None.

    Returns
    -------
    models, segments : dict of str to float

    Errors as for `s_norm`.

    Examples
    --------
    >>> models = Scores.from_ids(["m", "m", "m"], ["c1", "c2", "c3"], [1.0, 3.0, -5.0])
    >>> segments = Scores.from_ids(["c1", "c2"], ["s", "s"], [0.0, 1.0])
    >>> cohort_means(Trials.from_ids(["m"], ["s"]), models, segments, top=2)
    ({'m': 2.0}, {'s': 0.5})
    """
    models = _list_moments(trials, model_cohort, "model", top)[0].tolist()
    segments = _list_moments(trials, segment_cohort, "segment", top)[0].tolist()
    means_of_models = dict(zip(trials.model_ids.tolist(), models, strict=True))
    return means_of_models, dict(zip(trials.segment_ids.tolist(), segments, strict=True))


def _list_moments(trials: Trials, cohort: Scores, side: Side, top: int | None) -> Moments:
    """Return the moments of each id of `trials` from a list of cohort scores, whose number may differ between ids.

    A cohort that shares models or segments with the trials gets a warning.
    """
    least = 2 if top is None else top
    if least < 2:
        raise DataError(f"expected at least 2 cohort scores, got {top}")
    ids = getattr(trials, f"{side}_ids")
    used = np.unique(getattr(trials, f"{side}s"))

    def refuse(wrong: np.ndarray, reason: str, remedy: str) -> None:
        names = ids[used[wrong]].tolist()
        if names:
            text = f"{len(names)} {side}{'s' * (len(names) > 1)} with {reason}: {few(names, repr)}"
            raise DataError(text, remedy=remedy)

    owners = recode(getattr(cohort, f"{side}_ids"), ids)[getattr(cohort, f"{side}s")]
    values = cohort.values[owners >= 0]
    owners = owners[owners >= 0]
    counts = np.bincount(owners, minlength=len(ids))
    fewest = counts[used].min(initial=least)
    columns = "model cohort score" if side == "model" else "cohort segment score"
    refuse(
        counts[used] < 2,
        "fewer than 2 cohort scores",
        f"the cohort's file should hold lines '{columns}' for each {side}",
    )
    refuse(
        counts[used] < least,
        f"fewer than {least} cohort scores",
        f"use a larger cohort, or only the highest {fewest} of its scores (top, --cohort-size)",
    )
    refuse(
        np.isin(used, owners[~np.isfinite(values)]),
        "an infinite cohort score",
        "leave infinite scores out of the cohort",
    )
    if top is not None:
        owners, values = _highest(owners, values, top)
        counts = np.bincount(owners, minlength=len(ids))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(owners, values, len(ids)) / counts
        deviation = np.sqrt(np.bincount(owners, (values - mean[owners]) ** 2, len(ids)) / counts)
    refuse(
        is_negligible(deviation, mean, share=share_of_sum(counts))[used],
        "only equal cohort scores",
        "use a cohort whose scores differ",
    )
    _warn_of_tested_cohort(trials, cohort, "segment" if side == "model" else "model")
    return mean, deviation


def _highest(owners: np.ndarray, values: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the highest `top` values of each owner, with their owners."""
    order = np.lexsort([-values, owners])
    owners = owners[order]
    values = values[order]
    kept = np.arange(len(owners)) - np.searchsorted(owners, owners) < top
    return owners[kept], values[kept]


def _warn_of_tested_cohort(trials: Trials, cohort: Scores, side: Side) -> None:
    """Warn of a cohort whose models or segments have trials: their speakers' own scores count as impostors'."""
    members = _used_ids(cohort, side)
    tested = members & (_used_ids(trials, "model") | _used_ids(trials, "segment"))
    if tested:
        text = "%d of %d %ss of the cohort are in the trials too (%s): expected speakers who are not tested"
        logger.warning(text, len(tested), len(members), side, few(tested, repr))


def _used_ids(trials: Trials, side: Side) -> set[str]:
    """Return the ids of the models or segments that have trials."""
    used = np.unique(getattr(trials, f"{side}s"))
    ids = getattr(trials, f"{side}_ids")
    return set(ids[used].tolist())
