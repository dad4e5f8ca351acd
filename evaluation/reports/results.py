"""Results of a privacy evaluation: the contents of ``results.json``.

`spkver.voiceprivacy` makes them, and `read_results` reads them back. ``conditions`` has a `Condition` for each set,
sex, scenario and attacker; ``summary`` has an `Outcome` for each set, sex and scenario. The fields of a row are its
keys in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

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
    Pairing,
    Protocol,
    RunSettings,
    Seeds,
    TrainedNetwork,
    UtilityFigure,
    Voices,
    utility_from,
    utility_to_dict,
)
from evaluation.reports.conditions import NAMES, Condition, EnrolledSpeaker
from evaluation.reports.outcomes import (
    OVER_SCENARIOS,
    Identity,
    Minima,
    Outcome,
    in_order,
    main_outcomes,
    rank_of,
    summarise,
)
from evaluation.reports.rows import Row
from evaluation.uncertainty import Interval, Minimum
from spkbase.errors import DataError, Problems
from spkbase.files import load_json
from spkbase.showing import Tabular, html_table, one_line

FORMAT = 1
"""Version of the format; files with other versions are refused."""

# keys whose texts may contain names of speakers
_NAMING = ("speaker", "speakers", "text", "reason", "examples", "notes")
_COLUMNS: dict[str, Callable[[Condition], Any]] = {
    **{name: attrgetter(name) for name in NAMES},
    "eer": attrgetter("eer.value"),
    "eer_low": attrgetter("eer.low"),
    "eer_high": attrgetter("eer.high"),
    "min_cllr": lambda row: row.metric("min_cllr").value,
    "population": lambda row: row.metric("zebra.population").value,
    "individual": lambda row: row.metric("zebra.individual").value,
}


@dataclass(frozen=True)
class OnList:
    """Results on a list of trials.

    Attributes
    ----------
    dataset, gender : str
        The list.
    outcomes : list of Outcome
        The strongest attacker of each scenario.
    worst : Outcome or None
        The outcome with the least privacy; None without an error rate.
    voices : list of Voices
        The known similarities of voices.
    """

    dataset: str
    gender: str
    outcomes: list[Outcome]
    worst: Outcome | None
    voices: list[Voices]

    @property
    def speakers(self) -> list[EnrolledSpeaker]:
        """The enrolled speakers of the worst outcome, the most exposed first."""
        if self.worst is None:
            return []
        return sorted(self.worst.condition.speakers, key=attrgetter("exposure"))


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
        Suffix of the names of the anonymised sets.
    simulated : bool
        Whether the speech is synthetic: the numbers then say nothing about people.
    anonymiser : Anonymiser, optional
        The anonymiser with its settings, and how many versions of each set it made.
    choices : tuple of ChosenBackend
        How attackers that compare vectors chose their backends.
    trained_networks : tuple of TrainedNetwork
        Networks that were trained for attackers.
    undoing : tuple of Estimation
        How well the anonymiser's parameter is estimated, which lets attackers invert it.
    verdict : str
        The result in words, as the command prints it.
    caveats : tuple of str
        Sentences that belong to the verdict.
    details : str
        The strongest attacker, and figures of others.
    overestimated : str
        Why privacy is probably overestimated; empty if there is no reason.
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
        Averages over lists, by which challenges rank systems.
    conditions : tuple of Condition
        Every attacker in every scenario on every list of trials.
    conversations : tuple of Condition
        Conditions with several recordings of one unknown speaker at once, if configured.
    utility : tuple of UtilityFigure
        In JSON mappings by measure (wer, wer_to_original, cer, uar or f0), data set, and original or anonymised: a
        number, or value with low and high.
    checks : tuple of Finding
        What could make the numbers misleading; in JSON ``sanity``.
    pairings : tuple of Pairing
        Whether anonymised recordings belong to the originals of their names, for each anonymised directory.
    config : mapping
        The configuration of the run.
    versions : dict of str to str
        Versions of the software.
    lists : dict of str to str
        SHA-256 of each list of the data directories.
    training_speakers : tuple of str
        Speakers that attackers are trained on.
    tested_speakers : tuple of str
        Speakers of the trials, enrolled or not.
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
    trained_networks: tuple[TrainedNetwork, ...] = ()
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
    conversations: tuple[Condition, ...] = ()
    utility: tuple[UtilityFigure, ...] = field(default=(), metadata={"type": dict[str, Any]})
    checks: tuple[Finding, ...] = field(default=(), metadata={"key": "sanity"})
    pairings: tuple[Pairing, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    versions: dict[str, str] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict, repr=False)
    training_speakers: tuple[str, ...] = ()
    tested_speakers: tuple[str, ...] = ()
    run: LastRun | None = None
    timings: dict[str, float] = field(default_factory=dict)
    seeds: Seeds | None = None
    similarity: tuple[Voices, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of ``results.json``."""
        summary = list(map(Outcome.to_dict, self.summary()))
        return super().to_dict() | {"summary": summary, "utility": utility_to_dict(self.utility)}

    def summary(self) -> list[Outcome]:
        """Return the outcomes by data set and scenario, as in ``results.json``."""
        return sorted(
            self.by_conditions(), key=lambda outcome: (outcome.dataset, rank_of(outcome.scenario))
        )

    def by_conditions(self) -> list[Outcome]:
        """Return the outcomes in the order of the conditions."""
        order = [row.identity[:3] for row in self.conditions]
        return sorted(self.outcomes, key=lambda outcome: order.index(outcome.identity))

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each condition, with its main numbers; NaN where the results do not have one."""
        return {name: list(map(read, self.conditions)) for name, read in _COLUMNS.items()}

    def _repr_html_(self) -> str:
        notes = [self.verdict] if self.verdict else []
        return html_table(self.to_columns(), caption=self.name, notes=notes)

    @property
    def name(self) -> str:
        """Name of the anonymiser."""
        if self.anonymiser and self.anonymiser.name:
            return self.anonymiser.name
        return self.suffix.lstrip("_")

    @property
    def settings(self) -> RunSettings:
        """The part of the configuration that reports read."""
        return RunSettings.from_dict(self.config)

    @property
    def explained(self) -> dict[str, str]:
        """A line for each attacker that the results explain."""
        if self.attackers_run is None:
            return {}
        return self.attackers_run.explained

    @property
    def sorted_checks(self) -> list[Finding]:
        """The checks, errors and warnings first."""
        return sorted(self.checks, key=lambda check: CHECK_LEVELS.index(check.level))

    def by_utterances(self) -> dict[int, dict[Identity, Outcome]]:
        """Return the outcomes by the number of recordings that are scored at once; empty without conversations."""
        if not self.conversations:
            return {}
        groups: dict[int, list[Condition]] = {}
        for condition in self.conversations:
            groups.setdefault(condition.utterances, []).append(condition)
        outcomes = {1: {outcome.identity: outcome for outcome in self.outcomes}}
        for number in sorted(groups):
            summary = summarise(groups[number])
            outcomes[number] = {outcome.identity: outcome for outcome in summary}
        return outcomes

    def longest_conversation(self, dataset: str, gender: str) -> Outcome | None:
        """Return the outcome with the most recordings at once and, of these, the least privacy of anonymised speech."""
        by_utterances = self.by_utterances()
        known = []
        for outcome in by_utterances.get(max(by_utterances, default=1), {}).values():
            is_here = outcome.identity[:2] == (dataset, gender)
            if is_here and outcome.anonymised and outcome.eer.known:
                known.append(outcome)
        return min(known, key=attrgetter("eer.value"), default=None)

    def datasets(self) -> list[str]:
        """Return the names of the data sets, in the order of the file."""
        return list(dict.fromkeys(map(attrgetter("dataset"), self.conditions)))

    def genders(self, dataset: str) -> list[str]:
        """Return the sexes of a data set, "all" (pooled) first."""
        return sorted(self._names("gender", dataset), key=rank_of)

    def main_lists(self) -> list[tuple[str, str]]:
        """Return pairs of data set and sex: "all" if the data set has pooled speakers, else each sex."""
        return list(dict.fromkeys(outcome.identity[:2] for outcome in main_outcomes(self.outcomes)))

    def scenarios(self, dataset: str) -> list[str]:
        """Return the scenarios of a data set, "original" (without anonymisation) first."""
        return sorted(self._names("scenario", dataset), key=rank_of)

    def attackers(self, dataset: str) -> list[str]:
        """Return the attackers of a data set, in the order of the file."""
        return self._names("attacker", dataset)

    def eer(self, *identity: str) -> Interval:
        """Return the EER of an attacker; the strongest attacker's has the interval of the minimum."""
        for outcome in self.outcomes:
            if outcome.condition.identity == identity:
                return outcome.rate
        return self._condition(identity).eer

    def scores(self, *identity: str) -> str:
        """Return the file with the scores of an attacker, relative to the results; empty without one."""
        return self._condition(identity).scores

    def outcomes_of(self, dataset: str, gender: str) -> list[Outcome]:
        """Return the strongest attacker of each scenario."""
        return [outcome for outcome in self.outcomes if outcome.identity[:2] == (dataset, gender)]

    def worst(self, dataset: str, gender: str) -> Outcome | None:
        """Return the outcome with the least privacy of anonymised speech, or else of original speech."""
        known = [outcome for outcome in self.outcomes_of(dataset, gender) if outcome.eer.known]
        return min(
            known, key=lambda outcome: (not outcome.anonymised, outcome.eer.value), default=None
        )

    def on_main_lists(self) -> list[OnList]:
        """Return the results on each of the `main_lists`."""
        parts = []
        known = self.voices()
        for dataset, gender in self.main_lists():
            voices = [
                entry for entry in known if (entry.dataset, entry.gender) == (dataset, gender)
            ]
            outcomes = self.outcomes_of(dataset, gender)
            parts.append(OnList(dataset, gender, outcomes, self.worst(dataset, gender), voices))
        return parts

    def voices(self) -> list[Voices]:
        """Return the entries on voice similarity with a known de-identification, by data set."""
        datasets = self.datasets()
        known = [entry for entry in self.similarity if entry.dataset in datasets and entry.is_known]
        return sorted(known, key=lambda entry: datasets.index(entry.dataset))

    def with_pseudonyms(self) -> Results:
        """Replace speakers by S01, S02, ..., the enrolled first, in the order of their names, within texts too."""
        enrolled: set[str] = set()
        for condition in self.conditions:
            enrolled.update(map(attrgetter("speaker"), condition.speakers))
        names = list(
            dict.fromkeys([*sorted(enrolled), *self.training_speakers, *self.tested_speakers])
        )
        codes = {name: f"S{number:02}" for number, name in enumerate(names, 1)}
        rename = partial(_any_of(names).sub, lambda match: codes[match[0]])
        renamed: Results = _renamed(self, "", rename)
        return renamed

    def _names(self, kind: str, dataset: str) -> list[str]:
        """Return the sexes, scenarios or attackers of a data set, in the order of the file."""
        return list(
            dict.fromkeys(getattr(row, kind) for row in self.conditions if row.dataset == dataset)
        )

    def _condition(self, identity: tuple[str, ...]) -> Condition:
        """Return the condition of an attacker; an empty one if there is none."""
        for condition in self.conditions:
            if condition.identity == identity:
                return condition
        return Condition()


def read_results(path: str | Path) -> Results:
    """Read the JSON file of the results; see `parse_results`.

    Raises
    ------
    DataError
        If it cannot be read or is not a JSON object; or as in `parse_results`.
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
        raise DataError(
            f"{text}: {reason}", file=file, remedy="compute the results again with this version"
        ) from error


def parse_results(raw: Mapping[str, Any], *, file: str | Path | None = None) -> Results:
    """Check and sort results. Optional blocks may be missing or null.

    Parameters
    ----------
    raw : mapping
        Has ``format`` 1 and ``conditions``; each condition has ``dataset``, ``gender``, ``scenario`` and ``attacker``,
        and the entries that ``spkver-eval metrics --json`` writes.
    file : path, optional
        The file, for messages.

    Raises
    ------
    DataError
        If the format has another version, there are no conditions, conditions lack names or are repeated, or a block
        has another form than the recipe writes.
    """
    if raw.get("format") != FORMAT:
        remedy = "compute the results again with this version"
        raise DataError(
            f"expected results of format {FORMAT}, got {raw.get('format')!r}",
            file=file,
            remedy=remedy,
        )
    if not raw.get("conditions"):
        raise DataError("expected a list 'conditions' with at least one condition", file=file)
    return typed_results(raw, file=file)


def typed_results(raw: Mapping[str, Any], *, file: str | Path | None = None) -> Results:
    """Return results without the checks of `parse_results`: they may have any version and lack conditions."""
    with one_error(file):
        read = Results.from_dict({**raw, "summary": None, "utility": None})
        _check_identities(read.conditions, file)
        # fail here rather than where the settings are used
        RunSettings.from_dict(read.config)
        outcomes = summarise(read.conditions, _stated_minima(raw.get("summary") or ()))
        utility: list[UtilityFigure] = []
        for measure, block in (raw.get("utility") or {}).items():
            utility += utility_from(block, measure)
        return replace(read, outcomes=in_order(outcomes), utility=tuple(utility))


def _check_identities(conditions: Sequence[Condition], file: str | Path | None) -> None:
    """Check that conditions have names, and none is repeated."""
    problems = Problems(file)
    seen = set()
    for position, condition in enumerate(conditions, 1):
        if not all(isinstance(name, str) and name for name in condition.identity):
            names = ", ".join(NAMES)
            problems.add(
                f"condition {position}: expected strings {names}, got {list(condition.identity)}"
            )
        elif condition.identity in seen:
            problems.add(f"condition {position}: {' '.join(condition.identity)} is repeated")
        seen.add(condition.identity)
    problems.raise_if_any()


def _stated_minima(summary: Iterable[Mapping[str, Any]]) -> Minima:
    """Return the smallest error rates that the summary of ``results.json`` states."""
    minima: dict[Identity, dict[str, Minimum | None]] = {}
    for row in summary:
        identity = row["dataset"], row["gender"], row["scenario"]
        stated = {
            "minimum": row,
            "without_content": row.get("without_content"),
            **(row.get("levels") or {}),
        }
        minima[identity] = {
            kind: Minimum.from_dict((part or {}).get("minimum")) for kind, part in stated.items()
        }
        over_scenarios = row.get("minimum_over_scenarios")
        if over_scenarios:
            minima[row["dataset"], row["gender"], OVER_SCENARIOS] = {
                "minimum": Minimum.from_dict(over_scenarios)
            }
    return minima


def _renamed(value: Any, key: str, rename: Callable[[str], str]) -> Any:
    """Replace the names of speakers in a value of the results that is found under a key."""
    if isinstance(value, str) and key in _NAMING:
        return rename(value)
    if isinstance(value, list | tuple):
        return type(value)(_renamed(part, key, rename) for part in value)
    if isinstance(value, Row):
        return replace(value, **_renamed(vars(value), "", rename))  # type: ignore[type-var]
    if isinstance(value, Mapping) and key == "notes":
        return {name: _renamed(part, key, rename) for name, part in value.items()}
    if isinstance(value, Mapping):
        return {name: _renamed(part, name, rename) for name, part in value.items()}
    return value


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return a regular expression that finds any of the names as a word; the longest name wins."""
    longest_first = sorted(names, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first)) or r"\b\B"
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])")
