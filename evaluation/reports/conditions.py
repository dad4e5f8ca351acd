"""A condition: one attacker in one scenario on one list of trials, with its metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.linkage import Curve
from evaluation.metrics import WorstCase
from evaluation.reports.rows import FLAT, Row, number
from evaluation.trials import ONE_MODEL
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.showing import one_line

NAMES = ("dataset", "gender", "scenario", "attacker")
"""The names of a condition, which are its keys in JSON."""

GENDERS = {"all": "all speakers", "f": "female", "m": "male"}
_GROUPS = {"f": " (women)", "m": " (men)"}


@dataclass(frozen=True)
class Linkability(Row):
    """How often a speaker is found among a number of enrolled speakers.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of enrolled speakers.
    linkability, low, high, chance : tuple of float
        Probabilities and their intervals at these sizes.
    top : dict of str to tuple of float
        Probability that the speaker is among this number of first ranks.
    """

    sizes: tuple[int, ...] = ()
    linkability: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    chance: tuple[float, ...] = ()
    top: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def from_curve(cls, curve: Curve) -> Linkability:
        """Return the points of a curve."""
        columns = (curve.sizes, curve.values, curve.low, curve.high, curve.chance)
        sizes, values, low, high, chance = (tuple(column.tolist()) for column in columns)
        return cls(sizes, values, low, high, chance)


@dataclass(frozen=True)
class ClosedSet(Row):
    """Results of an attacker who knows that the speaker is enrolled.

    Attributes
    ----------
    eer : Interval
        Equal error rate of scores that are centred over the enrolled speakers.
    identification : Interval
        Share of utterances whose speaker is first among all enrolled.
    candidates : (int, int)
        Smallest and largest number of enrolled speakers that an utterance is compared with; 0 if unknown.
    chance : float
        Identification by chance.
    """

    eer: Interval = field(default_factory=Interval)
    identification: Interval = field(default_factory=Interval)
    candidates: tuple[int, ...] = (0, 0)
    chance: float = math.nan


@dataclass(frozen=True)
class EnrolledSpeaker(Row):
    """An enrolled speaker.

    Attributes
    ----------
    speaker : str
        Id of the speaker.
    gender : str
        f, m or empty.
    linkability_mean : float
        Probability of being found, averaged over numbers of enrolled speakers: 0 never, 1 always.
    rank : float
        Mean rank among the enrolled; 1 is the first.
    n_target : float
        Number of target trials.
    eer : float
        Equal error rate of the trials against this speaker.
    n_nontarget : float
        Number of nontarget trials.
    first, others_first : float
        Share of the speaker's own recordings, and of other people's recordings, that rank the speaker first; see
        `evaluation.linkage.found_speakers`.
    """

    speaker: str
    gender: str = ""
    linkability_mean: float = math.nan
    rank: float = math.nan
    n_target: float = math.nan
    eer: float = math.nan
    n_nontarget: float = math.nan
    first: float = math.nan
    others_first: float = math.nan

    @property
    def exposure(self) -> tuple[float, float, str]:
        """Sort key: highest linkability, then lowest EER first; unknown values last."""
        linked = 1.0 if math.isnan(self.linkability_mean) else -self.linkability_mean
        rate = 1.0 if math.isnan(self.eer) else self.eer
        return linked, rate, self.speaker


@dataclass(frozen=True)
class Draw(Row):
    """Results on one anonymised version of the trials.

    Attributes
    ----------
    draw : int
        Number of the version.
    scores : str
        File of the scores, relative to the output folder.
    metrics : mapping
        Some of the metrics.
    closed_set : dict of str to float, optional
        Equal error and identification rates in the closed set.
    """

    draw: int = 1
    scores: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)
    closed_set: dict[str, float] | None = None

    @property
    def eer(self) -> float:
        """Equal error rate by the ROC convex hull."""
        rates = self.metrics.get("eer") or {}
        return number(rates.get("rocch"))


@one_line
@dataclass(frozen=True)
class Condition(Row):
    """One attacker in one scenario on one set of trials.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        The condition.
    n_enrolled, n_trial_speakers : int
        Numbers of speakers; NaN if unknown.
    scores, key, segment_speakers : str
        Files of the scores (of the first draw), the trials and the speakers, relative to the results.
    n_target, n_nontarget : int
        Numbers of trials; NaN if unknown.
    metrics : mapping
        Metrics, as ``spkver-eval metrics --json`` writes them; means over the draws.
    notes : dict of str to str
        Notes on metrics.
    intervals : dict of str to Interval
        Ends of the intervals of metrics, by names such as ``eer.rocch``.
    linkability : Linkability, optional
        How often speakers are found, by number of enrolled speakers.
    speakers : tuple of EnrolledSpeaker
        The enrolled speakers.
    level : str
        Level of knowledge of the attacker, see `evaluation.trials.LEVELS`.
    content : str
        Source of the transcripts that the attacker uses; empty if it does not use words.
    tested : tuple of int
        Numbers of test recordings in each trial list, to which whole-list attackers adapt; empty if unknown.
    closed_set : ClosedSet, optional
        Results of an attacker who knows that the speaker is enrolled.
    centred : Interval, optional
        Equal error rate after subtraction of each model's mean score, if it is clearly lower.
    draws : tuple of Draw
        Results of each anonymised version of the trials.
    worst_case : WorstCase, optional
        The strongest evidence in any trial.
    cmc : tuple of float, optional
        Share of utterances whose speaker is among the first 1, 2, ... of the enrolled.
    utterances : int
        Number of recordings of one unknown speaker that are scored at once.
    """

    required = NAMES

    dataset: str = ""
    gender: str = ""
    scenario: str = ""
    attacker: str = ""
    n_enrolled: float = math.nan
    n_trial_speakers: float = math.nan
    scores: str = ""
    key: str = ""
    segment_speakers: str = ""
    n_target: float = math.nan
    n_nontarget: float = math.nan
    metrics: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)
    notes: dict[str, str] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    linkability: Linkability | None = None
    speakers: tuple[EnrolledSpeaker, ...] = ()
    level: str = ONE_MODEL
    content: str = ""
    tested: tuple[int, ...] = ()
    closed_set: ClosedSet | None = None
    centred: Interval | None = None
    draws: tuple[Draw, ...] = ()
    worst_case: WorstCase | None = None
    cmc: tuple[float, ...] | None = None
    utterances: int = 1

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Data set, sex, scenario and attacker."""
        return self.dataset, self.gender, self.scenario, self.attacker

    def metric(self, name: str) -> Interval:
        """Return a metric with its interval, by a name such as ``min_cllr`` or ``eer.rocch``; NaN if unknown."""
        group, _, part = name.partition(".")
        value = self.metrics.get(group)
        if part:
            value = (value or {}).get(part)
        return replace(self.intervals.get(name, Interval()), value=number(value))

    @property
    def eer(self) -> Interval:
        """Equal error rate by the ROC convex hull, as a fraction."""
        return self.metric("eer.rocch")

    @property
    def tag(self) -> str:
        """Category of the strongest evidence; empty if unknown."""
        zebra = self.metrics.get("zebra") or {}
        return zebra.get("tag") or ""

    @property
    def is_ranked(self) -> bool:
        """Whether the strongest evidence in any trial or the ranks of target speakers are known."""
        return bool(self.worst_case or self.cmc)

    @property
    def found_among_all(self) -> Interval:
        """Probability that a speaker is found among all enrolled speakers."""
        curve = self.linkability
        if curve is None:
            return Interval()
        last = curve.sizes.index(max(curve.sizes))
        value = Interval(curve.linkability[last])
        if curve.low and curve.high:
            value = replace(value, low=curve.low[last], high=curve.high[last])
        return value

    def files(self, folder: Path) -> tuple[list[Path], Path, Path | None]:
        """Return the scores of each draw, the key, and the speakers if there are any.

        Raises
        ------
        DataError
            If the results name no scores or no key, or name a file outside their folder: results from elsewhere must
            not bring files of this machine into a report.
        """
        names = [draw.scores for draw in self.draws] or [self.scores]
        if not self.key or not all(names):
            raise DataError("the results name no scores with their key")
        key = _inside(folder, self.key)
        scores = [_inside(folder, name) for name in names]
        speakers = None
        if self.segment_speakers:
            speakers = _inside(folder, self.segment_speakers)
        return scores, key, speakers


def ends_and_notes(intervals: Mapping[str, Interval]) -> tuple[dict[str, Interval], dict[str, str]]:
    """Return the ends of intervals and the notes on them, by metric, in the form of a `Condition`."""
    ends = {}
    notes = {}
    for name, interval in intervals.items():
        ends[name] = Interval(low=interval.low, high=interval.high)
        if interval.note:
            notes[f"intervals.{name}"] = interval.note
    return ends, notes


def list_in_words(dataset: str, gender: str) -> str:
    """Name a list of trials within a sentence.

    Examples
    --------
    >>> list_in_words("libri_test", "f"), list_in_words("libri_test", "all")
    ('libri_test (women)', 'libri_test')
    """
    return dataset + _GROUPS.get(gender, "")


def _inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; refuse one that lies elsewhere."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(
            "the results name a file outside their folder, which is not read", file=path
        )
    return path
