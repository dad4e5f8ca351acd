"""Open-set identification: who of the enrolled speaks in a segment, or "unknown" below a threshold.

A *search* compares a segment with all enrolled models. It is *mated* if the speaker is enrolled, which a target trial
says. Its answer is the model with the highest score, or "unknown" if that is below the threshold. Two rates describe
the answers, as in the evaluations of NIST [1]_:

=====  ================================================================================================
FPIR   false-positive identification rate: unmated searches that are answered with somebody
FNIR   false-negative identification rate: mated searches where the speaker is not among the first R
       (one by default), or scores below the threshold
=====  ================================================================================================

An equal score of somebody else counts against the system. Both rates grow with the number of enrolled speakers, which a
verification list of the same scores hides.

Searches are trials of detection: the score of a mated search is that of the speaker if among the first R, else minus
infinity; that of an unmated search is the highest of all. So FNIR at FPIR is a miss rate at a false-alarm rate, and
intervals resample the speakers who are tested, with a new threshold in each resample; the enrolled stay.

References
----------
.. [1] P. Grother, M. Ngan and K. Hanaoka, "Face Recognition Vendor Test, part 2: identification", NISTIR 8271, 2019.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.ranks import against_speakers
from evaluation.metrics import (
    FRACTION,
    Method,
    Metric,
    Metrics,
    OperatingPoint,
    SortedScores,
    reversal,
    sort_scores,
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
from evaluation.uncertainty import Interval, Intervals, Resampling, confidence_intervals, sample_of
from spkbase.errors import DataError, few
from spkbase.showing import Tabular, one_line

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"
"""The answer of a search below the threshold."""

_RATE = Method("logit", lower=0, upper=1, of_errors=True)


@one_line
@dataclass(frozen=True, eq=False)
class Searches:
    """The outcome of S searches of a gallery.

    Attributes
    ----------
    best : ndarray of float64 of shape (S,)
        The highest score.
    own : ndarray of float64 of shape (S,)
        Score of the speaker; minus infinity where as many others as the rank score as high, or nobody is enrolled.
    mated : ndarray of bool of shape (S,)
        Whether the speaker is enrolled.
    sizes : ndarray of int64 of shape (S,)
        Number of models that were compared.
    speakers : ndarray of int64 of shape (S,)
        Codes of the speakers who are tested.
    """

    best: NDArray[np.float64]
    own: NDArray[np.float64]
    mated: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    speakers: NDArray[np.int64]

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores of the searches as trials of detection, of which mated ones are target trials; shape (S,)."""
        return np.where(self.mated, self.own, self.best)

    def sorted(self) -> SortedScores:
        """Return the searches as sorted trials of detection."""
        return sort_scores(self.scores[self.mated], self.scores[~self.mated])


@dataclass(frozen=True)
class IdentificationPoint:
    """Error rates of open-set identification at a threshold.

    Attributes
    ----------
    asked : float
        The largest FPIR that was asked for; NaN where the threshold was given.
    threshold : float
        The score from which on a search is answered with a model; infinite where none is.
    fnir, fpir : Interval
        Rates at the threshold; the FPIR has an interval where the threshold was given.
    misidentified : float
        Share of mated searches that are answered with somebody else.
    """

    asked: float
    threshold: float
    fnir: Interval
    fpir: Interval
    misidentified: float


@one_line
@dataclass(frozen=True)
class Identification(Tabular):
    """Error rates of open-set identification.

    Attributes
    ----------
    points : tuple of IdentificationPoint
        By threshold.
    n_mated, n_unmated, n_speakers : int
        Numbers of searches, and of the speakers who are tested.
    sizes : (int, int)
        Least and largest number of models of a search.
    notes : tuple of str
        What is to be read with care.
    """

    points: tuple[IdentificationPoint, ...]
    n_mated: int
    n_unmated: int
    n_speakers: int
    sizes: tuple[int, int]
    notes: tuple[str, ...] = ()

    def headline(self) -> str:
        """Return who was searched among whom."""
        among = " to ".join(map(str, dict.fromkeys(self.sizes)))
        return (
            f"{self.n_mated:,} searches of enrolled and {self.n_unmated:,} of unknown speakers"
            f" ({self.n_speakers:,} in all) among {among} models"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each threshold."""
        columns: dict[str, list[Any]] = {}
        for name in ("asked", "threshold", "misidentified"):
            columns[name] = [getattr(point, name) for point in self.points]
        for name in ("fnir", "fpir"):
            for end in ("value", "low", "high"):
                title = f"{name}_{end}".removesuffix("_value")
                columns[title] = [getattr(getattr(point, name), end) for point in self.points]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return counts, notes and a dictionary for each threshold, for a report."""
        columns = self.to_columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return vars(self) | {"points": rows}


@one_line
@dataclass(frozen=True, eq=False)
class Answers(Tabular):
    """The answer of each search.

    Attributes
    ----------
    segment, answer : ndarray of str of shape (S,)
        The segment, and the model with the highest score, the first by name of equal ones; or "unknown".
    score : ndarray of float64 of shape (S,)
        The highest score.
    """

    segment: NDArray[np.object_]
    answer: NDArray[np.object_]
    score: NDArray[np.float64]

    def headline(self) -> str:
        """Return how many are unknown."""
        return f"{(self.answer == UNKNOWN).sum():,} of {len(self.answer):,} segments are {UNKNOWN}"

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each segment."""
        return dict(vars(self))


def answers(scores: Scores, threshold: float) -> Answers:
    """Return who speaks in each segment: the model with the highest score, or "unknown" below a threshold.

    Parameters
    ----------
    scores : Scores
        Scores of the segments against all enrolled models.
    threshold : float
        The lowest score that is answered with a model; see `identification` for how to choose it.

    Examples
    --------
    >>> scores = Scores.from_ids(["a", "b", "a", "b"], ["s", "s", "t", "t"], [1.0, 3.0, 0.5, 0.0])
    >>> answers(scores, 2.0).answer.tolist()
    ['b', 'unknown']
    """
    _check_threshold(threshold)
    segments, rows, _ = _best_rows(scores, scores.values)
    if UNKNOWN in scores.model_ids.tolist():
        raise DataError(f"a model is called {UNKNOWN!r}, the answer for nobody", remedy="rename it")
    best = scores.values[rows]
    names = np.where(best >= threshold, scores.model_ids[scores.models[rows]], UNKNOWN)
    return Answers(scores.segment_ids[segments], names, best)


def fnir_at_fpir(
    scores: Scores,
    key: Key,
    *,
    fpir: float,
    rank: int = 1,
    speakers: Speakers | None = None,
    missing: Missing = "error",
) -> OperatingPoint:
    """Return the false-negative identification rate at a false-positive identification rate of at most `fpir`.

    Parameters
    ----------
    scores, key, rank, speakers, missing
        See `identification`.
    fpir : float
        Between 0 and 1.

    Returns
    -------
    OperatingPoint
        The FNIR, a float, with its ``threshold``; ``p_fa`` is the FPIR there.

    Raises
    ------
    DataError
        As `identification`.
    """
    settings: dict[str, Any] = {"speakers": speakers, "resampling": Resampling(0)}
    found = identification(scores, key, fpir=[fpir], rank=rank, missing=missing, **settings)
    point = found.points[0]
    rate = point.fnir.value
    return OperatingPoint(rate, point.threshold, rate, point.fpir.value)


def identification(
    scores: Scores,
    key: Key,
    *,
    fpir: Sequence[float] = (0.1, 0.01, 0.001),
    threshold: float | None = None,
    rank: int = 1,
    speakers: Speakers | None = None,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    by_id: bool = False,
    resampling: Resampling | None = None,
    missing: Missing = "error",
) -> Identification:
    """Return the error rates of open-set identification, with intervals over the speakers who are tested.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair. A segment without a target trial is an unmated search.
    fpir : sequence of float
        Largest false-positive identification rates, between 0 and 1, at which thresholds are chosen on these scores.
    threshold : float, optional
        A threshold that was chosen on other scores, in the place of `fpir`: both rates have intervals.
    rank : int
        The speaker must be among this many models with the highest scores.
    speakers, model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `per_speaker`. Several models of a speaker count as one, by the highest
        score.
    by_id : bool
        Each model is a speaker, and each segment without a target trial another one, whatever the ids look like.
    resampling : Resampling, optional
        Resampling of the speakers; `Resampling()` by default, and ``Resampling(0)`` for no intervals.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score.

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
    >>> point = identification(scores, key, fpir=[0.1], resampling=Resampling(0)).points[0]
    >>> point.threshold, point.fnir.value, point.fpir.value
    (3.0, 0.5, 0.0)
    """
    if threshold is not None:
        _check_threshold(threshold)
    maps = {}
    for side, own in (("model_speakers", model_speakers), ("segment_speakers", segment_speakers)):
        maps[side] = speakers if own is None else own
    resampling = resampling or Resampling()
    values, joined = join_scores(scores, key, missing=missing)
    if resampling.resamples and not by_id:
        doubt = doubt_speakers(joined, **maps)
        if doubt is not None:
            side = f"{doubt.side}_speakers"
            remedy = f"give the speakers of the {doubt.side}s: {side}=SPEAKERS; if each id is a speaker: by_id=True"
            raise doubt.error(remedy)
    turned = reversal(values[joined.is_target], values[~joined.is_target])
    if turned is not None and turned.clear:
        logger.warning("%s", turned.text)
    searches = search_gallery(values, joined, rank=rank, **maps)
    asked = {str(threshold): np.nan}
    if threshold is None:
        asked = {str(rate): float(rate) for rate in fpir}
    rows = []
    for place, name in enumerate(("fnir", "fpir")):
        compute = partial(_rate_at, place, threshold)
        rows.append(Metric(name, compute, unit=FRACTION, method=_RATE, points=tuple(asked)))
    rates = _with_intervals(searches, Metrics(metrics=tuple(rows)), resampling)
    points = []
    trials = searches.sorted()
    for name, rate in asked.items():
        limit = _threshold_at(rate, threshold, trials)
        observed = rates[f"fpir.{name}"]
        if threshold is None:  # the interval of a rate that was chosen means nothing
            observed = Interval(observed.value)
        wrong = (searches.best >= limit) & (searches.own < searches.best)
        share = float(wrong[searches.mated].mean())
        points.append(IdentificationPoint(rate, limit, rates[f"fnir.{name}"], observed, share))
    return Identification(
        tuple(points),
        int(searches.mated.sum()),
        int((~searches.mated).sum()),
        len(np.unique(searches.speakers)),
        (int(searches.sizes.min()), int(searches.sizes.max())),
        tuple(_notes(searches, asked.values())),
    )


def search_gallery(
    values: NDArray[np.float64],
    key: Key,
    *,
    rank: int = 1,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
) -> Searches:
    """Return the outcome of the search of each segment; see `identification` for parameters and errors.

    Parameters
    ----------
    values : ndarray of float64 of shape (N,)
        Scores in the order of the key.
    key : Key
    """
    if rank < 1:
        raise DataError(f"expected a rank of at least 1, got {rank}")
    owners = find_speakers(key, model_speakers=model_speakers, segment_speakers=segment_speakers)
    tested = np.zeros(len(key.segment_ids), np.int64)
    tested[key.segments] = owners.segments
    if model_speakers is not None or segment_speakers is not None:
        key, values = against_speakers(key, values, owners)
    segments, best, counts = _best_rows(key, values)
    n_targets = np.bincount(key.segments[key.is_target], minlength=len(key.segment_ids))
    several = key.segment_ids[n_targets > 1].tolist()
    if several:
        text = f"{len(several)} segments have several target trials, such as {few(several)}"
        raise DataError(
            f"{text}: a speaker is enrolled with several models",
            remedy="give the speakers of the models, each of whom counts once, or keep one model of each",
        )
    mated = n_targets[segments] > 0
    enrolled = np.isin(tested[segments], owners.models) & ~mated
    if enrolled.any():
        some = few(key.segment_ids[segments[enrolled]].tolist())
        text = f"{enrolled.sum()} segments of enrolled speakers have no target trial: {some}"
        raise DataError(text, remedy="correct the key, or leave them out: they are not unknown")
    if not 0 < mated.sum() < len(mated):
        kind = "enrolled" if not mated.any() else "unknown"
        text = f"expected searches of enrolled and of unknown speakers, got none of {kind} ones"
        raise DataError(
            text,
            remedy="segments whose speaker is enrolled have a target trial, unknown ones nontarget trials alone",
        )
    own = np.full(len(key.segment_ids), -np.inf)
    own[key.segments[key.is_target]] = values[key.is_target]
    ahead = ~key.is_target & (values >= own[key.segments])
    n_ahead = np.bincount(key.segments[ahead], minlength=len(own))
    own[n_ahead >= rank] = -np.inf
    return Searches(values[best], own[segments], mated, counts, tested[segments])


def _best_rows(
    trials: Trials, values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the segments with trials, the row of the highest score of each, and its number of trials."""
    order = np.lexsort((-trials.models, values, trials.segments))
    segments, counts = np.unique(trials.segments, return_counts=True)
    return segments, order[np.cumsum(counts) - 1], counts


def _check_threshold(threshold: float) -> None:
    if not np.isfinite(threshold):
        raise DataError(f"expected a finite threshold, got {threshold}")


def _threshold_at(rate: float, threshold: float | None, trials: SortedScores) -> float:
    if threshold is not None:
        return threshold
    return tpr_at_fpr(trials, fpr=rate).threshold


def _rate_at(place: int, threshold: float | None, trials: SortedScores, point: str) -> float:
    """Return the miss rate (0) or the false-alarm rate (1) of searches at a given threshold, or at an FPIR."""
    limit = _threshold_at(float(point), threshold, trials)
    return trials.error_rates(int(np.searchsorted(trials.thresholds, limit)))[place]


def _with_intervals(searches: Searches, statistic: Metrics, resampling: Resampling) -> Intervals:
    if not resampling.resamples:
        values = statistic(searches.sorted())
        return Intervals({name: Interval(value) for name, value in values.items()})
    names, codes = np.unique(searches.speakers, return_inverse=True)
    people = TrialSpeakers(names, codes, codes)
    sample = sample_of(searches.scores, searches.mated, people)
    return confidence_intervals(sample, statistic, resampling)


def _notes(searches: Searches, asked: Iterable[float]) -> list[str]:
    """Return why rates are to be read with care."""
    notes = []
    n_unmated = int((~searches.mated).sum())
    for rate in asked:
        if rate * n_unmated < 1:
            text = f"FPIR {rate:g} is not resolved: at least {round(1 / rate):,} searches of unknown speakers needed"
            notes.append(f"{text}, got {n_unmated:,}; the threshold lies above all of them")
    if len(np.unique(searches.sizes)) > 1:
        text = "searches are among different numbers of models, on which both rates depend"
        notes.append(f"{text}: score each segment against all models")
    return notes
