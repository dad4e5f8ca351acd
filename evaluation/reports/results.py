"""Results of a privacy evaluation: the rows of ``results.json``, and the outcome of each scenario.

`spkver.voiceprivacy` makes these rows, and `parse_results` reads them. ``conditions`` has a `Condition` for each set,
sex, scenario and attacker, ``summary`` an `Outcome` for each set, sex and scenario: the strongest attacker, who leaves
the least privacy. The fields of a row are its keys in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from evaluation.linkage import Curve
from evaluation.metrics import WorstCase
from evaluation.reports.about import (
    CHECK_LEVELS,
    Anonymiser,
    AttackersRun,
    Average,
    ChosenBackend,
    Estimation,
    Failure,
    Finding,
    FusionWeights,
    LastRun,
    Protocol,
    RunSettings,
    Seeds,
    UtilityFigure,
    Voices,
    utility_from,
    utility_to_dict,
)
from evaluation.reports.rows import FLAT, NOT_IN_JSON, Row, number
from evaluation.trials import LEVELS, ONE_MODEL, SCENARIO_ORDER
from evaluation.uncertainty import Interval, Minimum, maximum_of, minimum_of
from spkbase.errors import DataError, Problems
from spkbase.files import load_json
from spkbase.showing import Tabular, html_table, one_line

FORMAT = 1
"""Version of the format; files with other versions are refused."""
GENDERS = {"all": "all speakers", "f": "female", "m": "male"}
OVER_SCENARIOS = "over scenarios"
"""Stands for all scenarios with anonymised speech in the key of a minimum."""

Identity = tuple[str, str, str]
"""Data set, sex and scenario."""
Minima = Mapping[Identity, Mapping[str, Minimum | None]]
"""The smallest error rates of a scenario (or `OVER_SCENARIOS`): over all attackers (``minimum``), over the attackers of
a level of knowledge (its name), and over attackers that do not use the words spoken (``without_content``)."""

Listed = TypeVar("Listed", "Condition", "Outcome")
Joined = TypeVar("Joined", "AttackerRate", "Identification")

_ORDER = (*GENDERS, *SCENARIO_ORDER)
_SEXES = {"f": " (women)", "m": " (men)"}
_NAMES = ("dataset", "gender", "scenario", "attacker")


@dataclass(frozen=True)
class Linkability(Row):
    """How often a speaker is found among so many enrolled speakers.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of enrolled speakers.
    linkability, low, high, chance : tuple of float
        Probabilities and their intervals at these sizes.
    top : dict of str to tuple of float
        Probability that the speaker is among the first so many.
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
        columns = [column.tolist() for column in (curve.sizes, curve.values, curve.low, curve.high, curve.chance)]
        sizes, values, low, high, chance = map(tuple, columns)
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
    """

    speaker: str
    gender: str = ""
    linkability_mean: float = math.nan
    rank: float = math.nan
    n_target: float = math.nan
    eer: float = math.nan


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
        return number((self.metrics.get("eer") or {}).get("rocch"))


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
        How often speakers are found among so many enrolled ones.
    speakers : tuple of EnrolledSpeaker
        The enrolled speakers.
    level : str
        Level of knowledge of the attacker, see `evaluation.trials.LEVELS`.
    content : str
        Whose transcripts the attacker uses; empty if it does not use the words spoken.
    tested : tuple of int
        Numbers of test recordings in each trial list, to which whole-list attackers adapt; empty if unknown.
    closed_set : ClosedSet, optional
        Results of an attacker who knows that the speaker is enrolled.
    centred : Interval, optional
        Equal error rate after the mean of each model is subtracted from its scores, where it is clearly lower.
    draws : tuple of Draw
        Results of each anonymised version of the trials.
    worst_case : WorstCase, optional
        The strongest evidence in any trial.
    cmc : tuple of float, optional
        Share of utterances whose speaker is among the first 1, 2, ... of the enrolled.
    """

    required = _NAMES

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

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Data set, sex, scenario and attacker."""
        return self.dataset, self.gender, self.scenario, self.attacker

    def metric(self, name: str) -> Interval:
        """Return a metric with its interval, by a name such as ``min_cllr`` or ``eer.rocch``; NaN if unknown."""
        group, _, part = name.partition(".")
        value = self.metrics.get(group)
        value = (value or {}).get(part) if part else value
        return replace(self.intervals.get(name, Interval()), value=number(value))

    @property
    def eer(self) -> Interval:
        """Equal error rate by the ROC convex hull, as a fraction."""
        return self.metric("eer.rocch")

    @property
    def tag(self) -> str:
        """Category of the strongest evidence; empty if unknown."""
        return (self.metrics.get("zebra") or {}).get("tag") or ""

    @property
    def found_among_all(self) -> Interval:
        """Probability that a speaker is found among all enrolled speakers."""
        curve = self.linkability
        if curve is None:
            return Interval()
        last = curve.sizes.index(max(curve.sizes))
        low, high = (values[last] if values else math.nan for values in (curve.low, curve.high))
        return Interval(curve.linkability[last], low, high)

    def files(self, folder: Path) -> tuple[list[Path], Path, Path | None]:
        """Return the scores of each draw, the key, and the speakers if there are any.

        Raises
        ------
        DataError
            If the results name no scores or no key, or a file outside their folder: results from elsewhere must not
            bring files of this machine into a report.
        """
        names = [self.key, *([draw.scores for draw in self.draws] or [self.scores])]
        if not all(names):
            raise DataError("the results name no scores with their key")
        paths = [folder / name for name in (*names, *filter(None, [self.segment_speakers]))]
        for path in paths:
            if not path.resolve().is_relative_to(folder.resolve()):
                raise DataError("the results name a file outside their folder, which is not read", file=path)
        return paths[1 : len(names)], paths[0], paths[-1] if self.segment_speakers else None


class WithMinimum(Row):
    """Base class of rows with an equal error rate, and with the minimum over attackers if it was estimated."""

    eer: Interval
    minimum: Minimum | None

    @property
    def rate(self) -> Interval:
        """The error rate, with the interval of the minimum over attackers if there is one."""
        ends = self.eer if self.minimum is None else self.minimum.interval
        return Interval(self.eer.value, ends.low, ends.high)


@dataclass(frozen=True)
class AttackerRate(Row):
    """Equal error rate of an attacker.

    Attributes
    ----------
    attacker : str
        The attacker.
    eer : Interval
        Equal error rate by the ROC convex hull: 0 is no privacy, 0.5 is chance.
    """

    attacker: str
    eer: Interval = field(metadata=FLAT)


@dataclass(frozen=True)
class SmallestRate(WithMinimum, AttackerRate):
    """Equal error rate of the strongest of several attackers.

    Attributes
    ----------
    attacker : str
        The attacker.
    eer : Interval
        Equal error rate by the ROC convex hull: 0 is no privacy, 0.5 is chance.
    minimum : Minimum, optional
        Interval of the smallest rate over attackers.
    """

    minimum: Minimum | None = None


@dataclass(frozen=True)
class Identification(Row):
    """Share of utterances whose speaker an attacker identifies.

    Attributes
    ----------
    attacker : str
        The attacker.
    share : Interval
        The share.
    candidates : (int, int)
        Smallest and largest number of candidates.
    """

    attacker: str
    share: Interval = field(metadata=FLAT)
    candidates: tuple[int, ...] = (0, 0)


@one_line
@dataclass(frozen=True)
class Outcome(WithMinimum):
    """The result of a scenario: the strongest attacker, who leaves the least privacy.

    Attributes
    ----------
    dataset, gender, scenario : str
        The list of trials and the scenario.
    strongest : str
        The strongest attacker.
    eer : Interval
        Its equal error rate, with its own interval; see `rate`.
    population, individual, linkability_all : float
        The most that any attacker discloses (ZEBRA), and finds among all enrolled speakers.
    tag : str
        Category of the strongest evidence.
    worst_by : dict of str to str
        The attackers of these three.
    n_enrolled, n_target, n_nontarget : int
        Numbers of enrolled speakers and trials.
    attackers : dict of str to float
        Equal error rate of every attacker.
    draws : tuple of float
        Equal error rate of the strongest attacker in each draw; empty if unknown.
    tested : tuple of int
        Numbers of test recordings in each trial list; empty if unknown.
    levels : dict of str to SmallestRate
        The strongest attacker at each level of knowledge that has attackers, in the order of `LEVELS`.
    without_content : SmallestRate, optional
        The strongest attacker that does not use the words spoken; None if all or none of the attackers do.
    closed_set : AttackerRate, optional
        Smallest error rate in a closed set, with the interval of the minimum over attackers.
    centred : AttackerRate, optional
        Smallest error rate after the mean of each model is subtracted, which takes the whole list.
    identification : Identification, optional
        Largest share of identified speakers, with the interval of the maximum.
    minimum, minimum_over_scenarios : Minimum, optional
        The smallest error rate over attackers, and over scenarios with anonymised speech too.
    verdict : str
        The result in a sentence.
    conditions : tuple of Condition
        All attackers in this scenario.
    condition : Condition
        The strongest of these.
    """

    required = ("dataset", "gender", "scenario", "strongest", "eer")

    dataset: str
    gender: str
    scenario: str
    strongest: str
    eer: Interval = field(metadata=FLAT)
    population: float
    individual: float
    linkability_all: float
    tag: str
    worst_by: dict[str, str]
    n_enrolled: float
    n_target: float
    n_nontarget: float
    attackers: dict[str, float]
    draws: tuple[float, ...]
    tested: tuple[int, ...]
    levels: dict[str, SmallestRate]
    without_content: SmallestRate | None
    closed_set: AttackerRate | None
    centred: AttackerRate | None
    identification: Identification | None
    minimum: Minimum | None
    minimum_over_scenarios: Minimum | None
    verdict: str
    conditions: tuple[Condition, ...] = field(repr=False, metadata=NOT_IN_JSON)
    condition: Condition = field(repr=False, metadata=NOT_IN_JSON)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as it stands in ``results.json``."""
        entry = super().to_dict()
        if not self.anonymised:
            del entry["minimum_over_scenarios"]
        return entry

    @property
    def identity(self) -> Identity:
        """Data set, sex and scenario."""
        return self.dataset, self.gender, self.scenario

    @property
    def anonymised(self) -> bool:
        """Whether the trials are anonymised."""
        return self.scenario != "original"


def strongest(conditions: Sequence[Condition]) -> Condition:
    """Return the condition of the attacker that leaves the least privacy.

    Parameters
    ----------
    conditions : sequence of Condition
        Attackers in one scenario on one list; at least one.

    Returns
    -------
    Condition
        The condition with the smallest EER; ties are broken by the most disclosed evidence, then by name. A condition
        without an EER is returned only if all lack one.

    Examples
    --------
    >>> rates = {"a": 0.3, "b": 0.2}
    >>> rows = [Condition(attacker=name, metrics={"eer": {"rocch": eer}}) for name, eer in rates.items()]
    >>> strongest(rows).attacker
    'b'
    """

    def order(condition: Condition) -> tuple[float, float, str]:
        keys = condition.eer.value, -condition.metric("zebra.population").value
        eer, bits = (math.inf if math.isnan(key) else key for key in keys)
        return eer, bits, condition.attacker

    return min(conditions, key=order)


def summarise(conditions: Sequence[Condition], minima: Minima | None = None) -> list[Outcome]:
    """Return the outcome of each data set, sex and scenario, in the order of the conditions.

    Parameters
    ----------
    conditions : sequence of Condition
    minima : mapping, optional
        The smallest error rates with their intervals, see `Minima`.
    """
    groups: dict[Identity, list[Condition]] = {}
    for condition in conditions:
        groups.setdefault(condition.identity[:3], []).append(condition)
    return [_outcome(part, minima or {}) for part in groups.values()]


def main_outcomes(outcomes: Sequence[Listed]) -> list[Listed]:
    """Return the outcomes (or conditions) on pooled speakers, or else on each sex, of each data set."""
    pooled = {outcome.dataset for outcome in outcomes if outcome.gender == "all"}
    return [outcome for outcome in outcomes if outcome.gender == "all" or outcome.dataset not in pooled]


@one_line
@dataclass(frozen=True, kw_only=True)
class Results(Row, Tabular):
    """All results of an evaluation: the contents of ``results.json``.

    Attributes
    ----------
    format : int
        Version of the format.
    recipe : str
        The recipe: voiceprivacy.
    suffix : str
        Ending of the names of the anonymised sets.
    simulated : bool
        Whether the speech is synthetic: the numbers then say nothing about people.
    anonymiser : Anonymiser, optional
        The anonymiser with its settings, and how many versions of each set it made.
    choices : tuple of ChosenBackend
        How attackers that compare vectors chose their backends.
    undoing : tuple of Estimation
        How well the anonymiser's parameter is estimated, which lets attackers invert it.
    verdict : str
        The result in words, as the command prints it.
    caveats : tuple of str
        Sentences that belong to the verdict.
    details : str
        Who the strongest attacker is, and figures of others.
    overestimated : str
        Why the privacy is probably overestimated; empty without a reason.
    attackers_run : AttackersRun, optional
        The attackers.
    failures : tuple of Failure
        Attackers that failed, and where.
    fusions : tuple of FusionWeights
        Weights of fusions of attackers.
    outcomes : tuple of Outcome
        Strongest attacker of each scenario, sorted by data set, sex, and knowledge in the scenario, the weakest first;
        in JSON ``summary``, by data set and scenario.
    protocol : Protocol
        Attacker and protocol of the challenge's figures.
    averages : tuple of Average
        Averages over lists, as challenges rank by.
    conditions : tuple of Condition
        Every attacker in every scenario on every list of trials.
    utility : tuple of UtilityFigure
        In JSON mappings by measure (wer, wer_to_original, cer, uar or f0), data set, and original or anonymised: a
        number, or value with low and high.
    checks : tuple of Finding
        What could make the numbers misleading; in JSON ``sanity``.
    config : mapping
        The configuration of the run.
    versions : dict of str to str
        Versions of the software.
    lists : dict of str to str
        SHA-256 of each list of the data directories.
    training_speakers : tuple of str
        Whom attackers learn from.
    run : LastRun, optional
        The last run.
    timings : dict of str to float
        Seconds of each step.
    seeds : Seeds, optional
        Seeds of the random numbers.
    similarity : tuple of Voices
        Similarity of voices before and after anonymisation.
    """

    required = ("format", "conditions")

    format: int = field(default=FORMAT, metadata={"schema": {"const": FORMAT}})
    recipe: str = ""
    suffix: str = ""
    simulated: bool = False
    anonymiser: Anonymiser | None = None
    choices: tuple[ChosenBackend, ...] = ()
    undoing: tuple[Estimation, ...] = ()
    verdict: str = ""
    caveats: tuple[str, ...] = ()
    details: str = ""
    overestimated: str = ""
    attackers_run: AttackersRun | None = None
    failures: tuple[Failure, ...] = ()
    fusions: tuple[FusionWeights, ...] = ()
    outcomes: tuple[Outcome, ...] = field(default=(), metadata={"key": "summary"})
    protocol: Protocol = field(default_factory=Protocol)
    averages: tuple[Average, ...] = ()
    conditions: tuple[Condition, ...] = field(metadata={"schema": {"minItems": 1}})
    utility: tuple[UtilityFigure, ...] = field(default=(), metadata={"type": dict[str, Any]})
    checks: tuple[Finding, ...] = field(default=(), metadata={"key": "sanity"})
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    versions: dict[str, str] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict, repr=False)
    training_speakers: tuple[str, ...] = ()
    run: LastRun | None = None
    timings: dict[str, float] = field(default_factory=dict)
    seeds: Seeds | None = None
    similarity: tuple[Voices, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of ``results.json``."""
        outcomes = sorted(self.by_conditions(), key=lambda outcome: (outcome.dataset, _rank(outcome.scenario)))
        summary = [outcome.to_dict() for outcome in outcomes]
        return super().to_dict() | {"summary": summary, "utility": utility_to_dict(self.utility)}

    def by_conditions(self) -> list[Outcome]:
        """Return the outcomes in the order of the conditions."""
        known = {outcome.identity: outcome for outcome in self.outcomes}
        return [known[identity] for identity in dict.fromkeys(row.identity[:3] for row in self.conditions)]

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each condition, with its main numbers; NaN where the results do not have one."""
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.conditions] for name in _NAMES}
        for name, end in (("eer", "value"), ("eer_low", "low"), ("eer_high", "high")):
            columns[name] = [getattr(row.eer, end) for row in self.conditions]
        for name in ("min_cllr", "zebra.population", "zebra.individual"):
            columns[name.removeprefix("zebra.")] = [row.metric(name).value for row in self.conditions]
        return columns

    def _repr_html_(self) -> str:
        return html_table(self.to_columns(), caption=self.name, notes=[self.verdict] if self.verdict else [])

    @property
    def name(self) -> str:
        """Name of the anonymiser."""
        named = self.anonymiser.name if self.anonymiser else ""
        return named or self.suffix.lstrip("_")

    @property
    def settings(self) -> RunSettings:
        """The part of the configuration that reports read."""
        return RunSettings.from_dict(self.config)

    @property
    def explained(self) -> dict[str, str]:
        """A line for each attacker that the results explain."""
        return self.attackers_run.explained if self.attackers_run else {}

    @property
    def sorted_checks(self) -> list[Finding]:
        """The checks, errors and warnings first."""
        return sorted(self.checks, key=lambda check: CHECK_LEVELS.index(check.level))

    def datasets(self) -> list[str]:
        """Return the names of the data sets, in the order of the file."""
        return list(dict.fromkeys(condition.dataset for condition in self.conditions))

    def genders(self, dataset: str) -> list[str]:
        """Return the sexes of a data set, "all" (pooled) first."""
        return sorted({row.gender for row in self.conditions if row.dataset == dataset}, key=_rank)

    def main_lists(self) -> list[tuple[str, str]]:
        """Return pairs of data set and sex: "all" if the data set has pooled speakers, else each sex."""
        return list(dict.fromkeys((outcome.dataset, outcome.gender) for outcome in main_outcomes(self.outcomes)))

    def main_genders(self, dataset: str) -> list[str]:
        """Return the sexes of a data set among the `main_lists`."""
        return [gender for name, gender in self.main_lists() if name == dataset]

    def scenarios(self, dataset: str) -> list[str]:
        """Return the scenarios of a data set, "original" (without anonymisation) first."""
        return sorted({row.scenario for row in self.conditions if row.dataset == dataset}, key=_rank)

    def attackers(self, dataset: str) -> list[str]:
        """Return the attackers of a data set, in the order of the file."""
        return list(dict.fromkeys(row.attacker for row in self.conditions if row.dataset == dataset))

    def eer(self, *identity: str) -> Interval:
        """Return the EER of an attacker; the strongest attacker's has the interval of the minimum."""
        for outcome in self.outcomes:
            if outcome.condition.identity == identity:
                return outcome.rate
        return next((row.eer for row in self.conditions if row.identity == identity), Interval())

    def scores(self, *identity: str) -> str:
        """Return the file with the scores of an attacker, relative to the results; empty without one."""
        return next((row.scores for row in self.conditions if row.identity == identity), "")

    def outcomes_of(self, dataset: str, gender: str) -> list[Outcome]:
        """Return the strongest attacker of each scenario."""
        return [outcome for outcome in self.outcomes if (outcome.dataset, outcome.gender) == (dataset, gender)]

    def worst(self, dataset: str, gender: str) -> Outcome | None:
        """Return the outcome with the least privacy of anonymised speech, or else of original speech."""
        known = [outcome for outcome in self.outcomes_of(dataset, gender) if outcome.eer.known]
        anonymised = [outcome for outcome in known if outcome.anonymised]
        return min(anonymised or known, key=lambda outcome: outcome.eer.value, default=None)


def read_results(path: str | Path) -> Results:
    """Read the JSON file of the results; see `parse_results`.

    Raises
    ------
    DataError
        If it cannot be read or is not a JSON object; or as `parse_results`.
    """
    content = load_json(Path(path))
    if not isinstance(content, dict):
        raise DataError(f"expected a JSON object, got {type(content).__name__}", file=path)
    return parse_results(content, file=path)


@contextmanager
def one_error(file: str | Path | None = None) -> Iterator[None]:
    """Turn any error that damaged or foreign results raise in the block into one DataError."""
    try:
        yield
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        text = f"expected results of format {FORMAT} as spkver voiceprivacy writes them, got damaged or foreign ones"
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{text}: {reason}", file=file, remedy="make the results anew with this version") from error


def parse_results(raw: Mapping[str, Any], *, file: str | Path | None = None) -> Results:
    """Check and sort results. Optional blocks may be missing or null.

    Parameters
    ----------
    raw : mapping
        Has ``format`` 1 and ``conditions``; each condition has ``dataset``, ``gender``, ``scenario`` and ``attacker``,
        and the entries that ``spkver-eval metrics --json`` writes.
    file : path, optional
        For messages.

    Raises
    ------
    DataError
        If the format has another version, there are no conditions, conditions lack names or are repeated, or a block
        has another form than the recipe writes.
    """
    if raw.get("format") != FORMAT:
        remedy = "make the results anew with this version"
        raise DataError(f"expected results of format {FORMAT}, got {raw.get('format')!r}", file=file, remedy=remedy)
    if not raw.get("conditions"):
        raise DataError("expected a list 'conditions' with at least one condition", file=file)
    return typed_results(raw, file=file)


def typed_results(raw: Mapping[str, Any], *, file: str | Path | None = None) -> Results:
    """Return results as `parse_results` does, of any version and also without conditions."""
    with one_error(file):
        read = Results.from_dict({**raw, "summary": None, "utility": None})
        _check_identities(read.conditions, file)
        RunSettings.from_dict(read.config)  # wrong ones are told here, not where they are used
        outcomes = summarise(read.conditions, _stated_minima(raw.get("summary") or ()))
        blocks = raw.get("utility") or {}
        utility = [figure for measure, block in blocks.items() for figure in utility_from(block, measure)]
        return replace(read, outcomes=in_order(outcomes), utility=tuple(utility))


def _check_identities(conditions: Sequence[Condition], file: str | Path | None) -> None:
    """Check that conditions have names, and none is repeated."""
    problems, seen = Problems(file), set()
    for position, condition in enumerate(conditions, 1):
        if not all(isinstance(name, str) and name for name in condition.identity):
            names = ", ".join(_NAMES)
            problems.add(f"condition {position}: expected texts {names}, got {list(condition.identity)}")
        elif condition.identity in seen:
            problems.add(f"condition {position}: {' '.join(condition.identity)} is repeated")
        seen.add(condition.identity)
    problems.raise_if_any()


def in_order(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Sort outcomes by data set, in the order of their first one, by sex, and by knowledge, the weakest first."""
    outcomes = list(outcomes)
    datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))

    def order(outcome: Outcome) -> tuple[Any, ...]:
        return datasets.index(outcome.dataset), _rank(outcome.gender), _rank(outcome.scenario)

    return tuple(sorted(outcomes, key=order))


def _stated_minima(summary: Iterable[Mapping[str, Any]]) -> Minima:
    """Return the smallest error rates that the summary of ``results.json`` states."""
    minima: dict[Identity, dict[str, Minimum | None]] = {}
    for row in summary:
        identity = row["dataset"], row["gender"], row["scenario"]
        stated = {"minimum": row, "without_content": row.get("without_content"), **(row.get("levels") or {})}
        minima[identity] = {kind: Minimum.from_dict((part or {}).get("minimum")) for kind, part in stated.items()}
        if over := row.get("minimum_over_scenarios"):
            minima[(*identity[:2], OVER_SCENARIOS)] = {"minimum": Minimum.from_dict(over)}
    return minima


def _outcome(part: Sequence[Condition], minima: Minima) -> Outcome:
    """Return the outcome of a scenario from the conditions of its attackers."""
    best = strongest(part)
    smallest = minima.get(best.identity[:3], {})

    def smallest_of(members: Sequence[Condition], kind: str) -> SmallestRate:
        own = strongest(members)
        return SmallestRate(own.attacker, own.eer, smallest.get(kind))

    levels = sorted({condition.level for condition in part}, key=list(LEVELS).index)
    voices = [condition for condition in part if not condition.content]
    sets = {condition.attacker: condition.closed_set for condition in part if condition.closed_set}
    closed = [AttackerRate(attacker, rates.eer) for attacker, rates in sets.items()]
    shares = [Identification(attacker, rates.identification, rates.candidates) for attacker, rates in sets.items()]
    centred = [AttackerRate(condition.attacker, condition.centred) for condition in part if condition.centred]
    worst = {name: _highest(part, read) for name, read in _DISCLOSED.items()}
    disclosed = {name: _DISCLOSED[name](condition) for name, condition in worst.items()}
    linked = disclosed["linkability_all"]
    by = worst["linkability_all"].attacker
    text = f"{best.dataset}{_SEXES.get(best.gender, '')}, {best.scenario}: the strongest"
    text += f" attacker ({best.attacker}) has an equal error rate of {100 * best.eer.value:.1f} %"
    if not math.isnan(linked):
        text += f", and {'' if by == best.attacker else f'{by} '}finds the speaker of an utterance among all enrolled"
        text += f" ones in {100 * linked:.0f} % of the cases"
    over = minima.get((best.dataset, best.gender, OVER_SCENARIOS), {}) if best.scenario != "original" else {}
    return Outcome(
        *best.identity[:3],
        best.attacker,
        best.eer,
        **disclosed,
        tag=worst["individual"].tag,
        worst_by={name: condition.attacker for name, condition in worst.items()},
        n_enrolled=best.n_enrolled,
        n_target=best.n_target,
        n_nontarget=best.n_nontarget,
        attackers={condition.attacker: condition.eer.value for condition in part},
        draws=tuple(draw.eer for draw in best.draws),
        tested=part[0].tested,
        levels={
            level: smallest_of([condition for condition in part if condition.level == level], level) for level in levels
        },
        without_content=smallest_of(voices, "without_content") if 0 < len(voices) < len(part) else None,
        closed_set=_joined(closed, "eer", minimum_of),
        centred=_joined(centred, "eer", minimum_of),
        identification=_joined(shares, "share", maximum_of),
        minimum=smallest.get("minimum"),
        minimum_over_scenarios=over.get("minimum"),
        verdict=f"{text}.",
        conditions=tuple(part),
        condition=best,
    )


# what attackers disclose besides their error rate
_DISCLOSED: dict[str, Callable[[Condition], float]] = {
    "population": lambda condition: condition.metric("zebra.population").value,
    "individual": lambda condition: condition.metric("zebra.individual").value,
    "linkability_all": lambda condition: condition.found_among_all.value,
}


def _highest(conditions: Sequence[Condition], read: Callable[[Condition], float]) -> Condition:
    """Return the condition with the largest number; unknown numbers count as the smallest."""
    numbers = [read(condition) for condition in conditions]
    order = [-math.inf if math.isnan(number) else number for number in numbers]
    return conditions[order.index(max(order))]


def _joined(rows: Sequence[Joined], field: str, join: Callable[[Iterable[Interval]], Interval]) -> Joined | None:
    """Return the row with the smallest or largest known value, which gets the interval of the minimum or maximum."""
    known = [row for row in rows if getattr(row, field).known]
    if not known:
        return None
    joined = join(getattr(row, field) for row in known)
    first = next(row for row in known if getattr(row, field).value == joined.value)
    return replace(first, **{field: joined})


def _rank(name: str) -> tuple[int, str]:
    """Sort key of sexes and scenarios: known names in their order, unknown names last in alphabetical order."""
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER)), name
