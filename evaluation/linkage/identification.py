"""Open-set identification: who of the enrolled speaks in a segment, or "unknown" below a threshold.

A *search* compares a segment with all enrolled models. It is *mated* if the speaker is enrolled, which a target trial
says. Its answer is the model with the highest score, or "unknown" if that is below the threshold. Two rates describe
the answers, as in the evaluations of NIST [1]_:

=====  ================================================================================================
FPIR   false-positive identification rate: unmated searches that are answered with somebody
FNIR   false-negative identification rate: mated searches that are answered with somebody else, or with
       "unknown"
=====  ================================================================================================

An equal score of somebody else counts against the system. Both rates grow with the number of enrolled speakers, which a
verification list of the same scores hides.

Searches are trials of detection: the score of a mated search is that of the speaker, or minus infinity if somebody else
scores as high; that of an unmated search is the highest of all. So FNIR at FPIR is a miss rate at a false-alarm rate.
Intervals resample the speakers who are tested, with a new threshold in each resample; the enrolled stay.

References
----------
.. [1] P. Grother, M. Ngan and K. Hanaoka, "Face Recognition Vendor Test, part 2: identification", NISTIR 8271, 2019.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.ranks import against_speakers
from evaluation.metrics import (
    FRACTION,
    Evaluation,
    Method,
    Metric,
    Metrics,
    RateAt,
    SortedScores,
    reversal,
    tpr_at_fpr,
)
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Speakers,
    Trials,
    TrialSpeakers,
    doubt_speakers,
    find_speakers,
    join_scores,
)
from evaluation.uncertainty import (
    Resampling,
    Sample,
    confidence_intervals,
    sample_of,
    with_intervals,
)
from spkbase.errors import DataError, few

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"
"""The answer of a search below the threshold."""

_RATE = Method("logit", lower=0, upper=1, of_errors=True)


def answers(scores: Scores, threshold: float) -> dict[str, NDArray[Any]]:
    """Return who speaks in each segment: the model with the highest score, or "unknown" below a threshold.

    Parameters
    ----------
    scores : Scores
        Scores of S segments against all enrolled models.
    threshold : float
        The lowest score for which a model is the answer; see `identification` for how to choose it.

    Returns
    -------
    dict of str to ndarray of shape (S,)
        Columns ``segment``, ``answer`` (the model with the highest score; the first by name if several have it) and
        ``score``, that score.

    Examples
    --------
    >>> scores = Scores.from_ids(["a", "b", "a", "b"], ["s", "s", "t", "t"], [1.0, 3.0, 0.5, 0.0])
    >>> answers(scores, 2.0)["answer"].tolist()
    ['b', 'unknown']
    """
    _check_threshold(threshold)
    if UNKNOWN in scores.model_ids.tolist():
        raise DataError(f"a model is called {UNKNOWN!r}, the answer for nobody", remedy="rename it")
    segments, rows, _ = _best_rows(scores, scores.values)
    best = scores.values[rows]
    names = np.where(best >= threshold, scores.model_ids[scores.models[rows]], UNKNOWN)
    return {"segment": scores.segment_ids[segments], "answer": names, "score": best}


def identification(
    scores: Scores,
    key: Key,
    *,
    fpir: float | Sequence[float] = (0.1, 0.01, 0.001),
    threshold: float | None = None,
    speakers: Speakers | None = None,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    bootstrap_by: Literal["speaker", "id"] = "speaker",
    resampling: Resampling | None = None,
    missing: Missing = "error",
) -> Evaluation:
    """Return the error rates of open-set identification, with intervals over the speakers who are tested.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair. A segment without a target trial is an unmated search.
    fpir : float, or sequence of float
        Largest false-positive identification rates, between 0 and 1, at which thresholds are chosen on these scores.
    threshold : float, optional
        A threshold chosen on other scores, used instead of `fpir`.
    speakers, model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `per_speaker`. Several models of a speaker count as one, by the highest
        score.
    bootstrap_by : {"speaker", "id"}
        With "id", each model counts as a speaker and each segment without a target trial as another, whatever their
        ids.
    resampling : Resampling, optional
        Resampling of the speakers; `Resampling()` by default, and ``Resampling(0)`` for no intervals.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score.

    Returns
    -------
    Evaluation
        ``fnir`` and ``fpir`` by requested FPIR, with their threshold: ``result.fnir[0.01].value``; or under ``given``
        for a given threshold. The target trials of the result are the mated searches.

    Raises
    ------
    DataError
        If scores and key do not fit together, there are no mated or no unmated searches, a speaker is enrolled with
        several models and speakers are not given, the speaker of an unmated search is enrolled, or a number is out of
        range.

    Examples
    --------
    >>> ids = ["a", "b"] * 4, ["a1", "a1", "b1", "b1", "x1", "x1", "y1", "y1"]
    >>> key = Key.from_ids(*ids, [True, False, False, True] + [False] * 4)
    >>> scores = Scores.from_ids(*ids, [3.0, 0.0, 1.0, 2.0, 0.5, 0.0, 2.5, 1.0])
    >>> result = identification(scores, key, fpir=[0.5, 0.1], resampling=Resampling(0))
    >>> result.fnir[0.5], result.fnir[0.1]
    (RateAt(value=0.0, threshold=2.0), RateAt(value=0.5, threshold=3.0))
    """
    maps = {}
    for side, own in (("model_speakers", model_speakers), ("segment_speakers", segment_speakers)):
        maps[side] = speakers if own is None else own
    resampling = resampling or Resampling()
    by_speaker = resampling.resamples > 0
    values, joined = join_scores(scores, key, missing=missing)
    if by_speaker and bootstrap_by == "speaker":
        doubt = doubt_speakers(joined, **maps)
        if doubt is not None:
            remedy = (
                f"give {doubt.side}_speakers=SPEAKERS; if each id is a speaker: bootstrap_by='id'"
            )
            raise doubt.error(remedy)
    sample, notes = search_gallery(values, joined, by_speaker=by_speaker, **maps)
    turned = reversal(values[joined.is_target], values[~joined.is_target])
    if turned is not None:
        notes["scores"] = turned.text
        if turned.clear:
            logger.warning("%s", turned.text)
    points = tuple(map(str, np.atleast_1d(fpir).tolist()))
    asked = " (FPIR {} asked)"
    if threshold is not None:
        _check_threshold(threshold)
        points = ("given",)
        asked = ""
    rate = partial(Metric, unit=FRACTION, method=_RATE, points=points)
    rows: tuple[Metric, ...] = (
        rate("fnir", partial(_rate_at, 0, threshold), f"FNIR{asked}", caveat=_caveat),
        rate("fpir", partial(_rate_at, 1, threshold), f"FPIR{asked}"),
    )
    result = Metrics(metrics=rows).evaluate(sample.runs())
    result.notes.pop("scores", None)  # failed searches look like reversed scores
    result.notes.update(notes)
    if not by_speaker:
        return result
    if threshold is None:
        rows = rows[:1]  # the rate that was asked for has no interval
    intervals = confidence_intervals(sample, Metrics(metrics=rows), resampling)
    return with_intervals(result, intervals, resampling.text("the speakers who are tested"))


def search_gallery(
    values: NDArray[np.float64],
    key: Key,
    *,
    by_speaker: bool = True,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
) -> tuple[Sample, dict[str, str]]:
    """Return the searches as trials of detection, mated ones as target trials; and notes.

    Parameters
    ----------
    values : ndarray of float64 of shape (N,)
        Scores in the order of the key.
    key : Key
    by_speaker : bool
        The sample is for resampling of speakers, of whom it needs two enrolled and two unknown ones.
    model_speakers, segment_speakers
        See `identification`, also for errors.
    """
    owners = find_speakers(key, model_speakers=model_speakers, segment_speakers=segment_speakers)
    n_segments = len(key.segment_ids)
    tested = np.zeros(n_segments, np.int64)
    tested[key.segments] = owners.segments
    if model_speakers is not None or segment_speakers is not None:
        key, values = against_speakers(key, values, owners)
    segments, best, sizes = _best_rows(key, values)
    n_targets = np.bincount(key.segments[key.is_target], minlength=n_segments)
    mated = n_targets[segments] > 0
    enrolled = np.isin(tested[segments], owners.models) & ~mated
    _check_searches(key.segment_ids, n_targets > 1, segments[enrolled], mated)
    own = np.full(n_segments, -np.inf)
    own[key.segments[key.is_target]] = values[key.is_target]
    ahead = ~key.is_target & (values >= own[key.segments])
    own[key.segments[ahead]] = -np.inf
    people = tested[segments]
    speakers = TrialSpeakers(owners.names, people, people) if by_speaker else None
    sample = sample_of(np.where(mated, own[segments], values[best]), mated, speakers)
    text = f"{mated.sum():,} searches of enrolled and {(~mated).sum():,} of unknown speakers"
    notes = {"searches": f"{text}, among {sizes.max():,} models"}
    if sizes.min() < sizes.max():
        notes["searches"] += f" or fewer, from {sizes.min():,}, on which both rates depend"
    return sample, notes


def _check_searches(
    names: NDArray[np.object_],
    several: NDArray[np.bool_],
    enrolled: NDArray[np.int64],
    mated: NDArray[np.bool_],
) -> None:
    """Refuse speakers enrolled twice, enrolled speakers without target trials, and searches all of one kind."""
    if several.any():
        text = (
            f"expected one target trial of a segment, got several of {few(names[several].tolist())}"
        )
        remedy = "give the speakers of models that share one, or keep one model of each"
        raise DataError(text, remedy=remedy)
    if len(enrolled):
        text = (
            f"segments of enrolled speakers have no target trial: {few(names[enrolled].tolist())}"
        )
        remedy = "correct the key, or leave these segments out: their speakers are not unknown"
        raise DataError(text, remedy=remedy)
    if mated.all() or not mated.any():
        text = f"expected searches of enrolled and of unknown speakers, got {mated.sum()} and {(~mated).sum()}"
        remedy = "a segment of an unknown speaker has only nontarget trials; without such segments, compute linkability"
        raise DataError(text, remedy=remedy)


def _check_threshold(threshold: float) -> None:
    if not np.isfinite(threshold):
        raise DataError(f"expected a finite threshold, got {threshold}")


def _best_rows(
    trials: Trials, values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the segments with trials, the row of the highest score of each, and its number of trials."""
    order = np.lexsort((-trials.models, values, trials.segments))
    segments, counts = np.unique(trials.segments, return_counts=True)
    return segments, order[np.cumsum(counts) - 1], counts


def _rate_at(place: int, threshold: float | None, trials: SortedScores, point: str) -> RateAt:
    """Return the miss rate (0) or the false-alarm rate (1) of searches at a given threshold, or at an FPIR."""
    if threshold is None:
        threshold = tpr_at_fpr(trials, fpr=float(point)).threshold
    cut = int(np.searchsorted(trials.thresholds, threshold))
    return RateAt(trials.error_rates(cut)[place], threshold)


def _caveat(rate: RateAt, trials: SortedScores, convention: str, point: str) -> str:
    """Return the threshold, and whether there are enough searches for a rate that was asked for."""
    text = f"answered with a model at {rate.threshold:.6g} and above"
    if point != "given" and float(point) * trials.n_nontarget < 1:
        needed = round(1 / float(point))
        text += f"; not resolved: at least {needed:,} searches of unknown speakers are needed"
    return text
