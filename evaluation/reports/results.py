"""Results of a privacy evaluation: the format of ``results.json``, and its parts for reports and pages.

`spkver.voiceprivacy` writes results in this format. ``conditions`` has an entry for each set, sex, scenario and
attacker: ``dataset``, ``gender``, ``scenario``, ``attacker``, ``eer`` (readings by name), ``intervals``, ``zebra``,
``linkability`` and more. An entry also has ``level``, the attacker's level of knowledge
(`evaluation.trials.LEVELS`); ``content``, whether the attacker uses the words spoken, which an anonymiser must keep;
``draws``, the results for each anonymised version of the trials, whose means are the other numbers; ``closed_set``,
error rate and identification by an attacker who knows the enrolled speakers. ``summary`` has the strongest attacker of
each set, sex and scenario, who leaves the least privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from evaluation.trials import LEVELS, SCENARIO_ORDER, TRIAL_BY_TRIAL
from evaluation.uncertainty import Interval, maximum_of, minimum_of
from spkbase.errors import DataError, Problems
from spkbase.files import load_json
from spkbase.showing import Tabular, html_table, one_line

Entry = TypeVar("Entry", bound=Mapping[str, Any])

FORMAT = 1
"""Version of the format; files with other versions are refused."""
GENDERS = {"all": "all speakers", "f": "female", "m": "male"}
_NAMES = ("dataset", "gender", "scenario", "attacker")


def number(value: Any) -> float:
    """Return a number from JSON, where NaN is null and infinite numbers are texts.

    Examples
    --------
    >>> number(1), number("-inf"), number(None)
    (1.0, -inf, nan)
    """
    return math.nan if value is None else float(value)


def find(values: Mapping[str, Any], *names: str) -> Any:
    """Return a nested value; None if a name or a block is missing.

    Examples
    --------
    >>> find({"zebra": {"tag": "A"}}, "zebra", "tag"), find({"zebra": None}, "zebra", "tag")
    ('A', None)
    """
    found: Any = values
    for name in names:
        found = (found or {}).get(name)
    return found


def interval_from(stated: Mapping[str, Any] | None) -> Interval:
    """Return ``value`` with ``low`` and ``high``, or with the pair ``interval``."""
    stated = stated or {}
    low, high = stated.get("interval") or (stated.get("low"), stated.get("high"))
    return Interval(number(stated.get("value")), number(low), number(high))


def strongest(conditions: Sequence[Entry]) -> Entry:
    """Return the condition of the attacker that leaves the least privacy.

    Parameters
    ----------
    conditions : sequence of mappings
        Entries of ``results.json`` for one set, sex and scenario; at least one.

    Returns
    -------
    mapping
        The condition with the smallest EER; ties are broken by the most disclosed evidence, then by name. A condition
        without an EER is returned only if all lack one.

    Examples
    --------
    >>> weak, strong = {"attacker": "a", "eer": {"rocch": 0.3}}, {"attacker": "b", "eer": {"rocch": 0.2}}
    >>> strongest([weak, strong])["attacker"]
    'b'
    """

    def order(condition: Entry) -> tuple[float, float, str]:
        keys = (number(find(condition, "eer", "rocch")), -number(find(condition, "zebra", "population")))
        eer, bits = (math.inf if math.isnan(key) else key for key in keys)
        return eer, bits, condition["attacker"]

    return min(conditions, key=order)


@one_line
@dataclass(frozen=True)
class AttackerRate:
    """A rate and its attacker; the name is empty if there is no such attacker."""

    attacker: str = ""
    rate: Interval = field(default_factory=Interval)

    def to_dict(self, name: str) -> dict[str, Any] | None:
        """Return attacker, rate (under the given name) and interval for the summary; None without an attacker."""
        if not self.attacker:
            return None
        ends = {"low": self.rate.low, "high": self.rate.high}
        return {"attacker": self.attacker, name: self.rate.value} | {
            end: None if math.isnan(value) else value for end, value in ends.items()
        }


@one_line
@dataclass(frozen=True)
class SecondaryResults:
    """Secondary results of a scenario, shown beside its main result, the EER of the strongest attacker.

    Attributes
    ----------
    levels : dict of str to AttackerRate
        EER of the strongest attacker at each level of knowledge that has attackers, in the order of `LEVELS`.
    without_content : AttackerRate
        EER of the strongest attacker that does not use the words spoken; empty if all or none of the attackers do.
    tested : tuple of int
        Numbers of test recordings in each trial list, to which whole-list attackers adapt; empty if unknown.
    closed_set : AttackerRate
        Smallest EER of scores that are centred over the enrolled speakers, with the interval of the minimum over
        attackers.
    identification : AttackerRate
        Largest share of utterances whose speaker is first among all enrolled.
    candidates : (int, int)
        Smallest and largest number of enrolled speakers that an utterance was compared with; 0 if unknown.
    draws : tuple of float
        EER of the strongest attacker in each draw; empty if unknown.
    """

    levels: dict[str, AttackerRate] = field(default_factory=dict)
    without_content: AttackerRate = field(default_factory=AttackerRate)
    tested: tuple[int, ...] = ()
    closed_set: AttackerRate = field(default_factory=AttackerRate)
    identification: AttackerRate = field(default_factory=AttackerRate)
    candidates: tuple[int, int] = (0, 0)
    draws: tuple[float, ...] = ()


def secondary_results(
    conditions: Sequence[Mapping[str, Any]], minima: Mapping[str, Any] | None = None
) -> SecondaryResults:
    """Return the secondary results of a scenario.

    Parameters
    ----------
    conditions : sequence of mappings
        Entries of ``results.json`` for one set, sex and scenario; at least one.
    minima : mapping, optional
        Intervals of the minimum over attackers, by level of knowledge and ``without_content``; they replace the
        attacker's own interval.

    Examples
    --------
    >>> inverted = {"attacker": "inverted", "eer": {"rocch": 0.1}, "level": "inverting"}
    >>> plain = {"attacker": "plain", "eer": {"rocch": 0.2}, "level": "trial-by-trial"}
    >>> {level: figure.attacker for level, figure in secondary_results([inverted, plain]).levels.items()}
    {'trial-by-trial': 'plain', 'inverting': 'inverted'}
    """

    def least(part: Sequence[Mapping[str, Any]], name: str) -> AttackerRate:
        best = strongest(part)
        ends = (minima or {}).get(name) or find(best, "intervals", "eer.rocch") or {}
        rate = Interval(number(find(best, "eer", "rocch")), number(ends.get("low")), number(ends.get("high")))
        return AttackerRate(best["attacker"], rate)

    by_level: dict[str, list[Mapping[str, Any]]] = {level: [] for level in LEVELS}
    for condition in conditions:
        by_level[condition.get("level") or TRIAL_BY_TRIAL].append(condition)
    voices = [condition for condition in conditions if not condition.get("content")]
    sets = {condition["attacker"]: condition["closed_set"] for condition in conditions if condition.get("closed_set")}
    closed, named = (
        [AttackerRate(who, interval_from(found.get(name))) for who, found in sets.items()]
        for name in ("eer", "identification")
    )
    closed, named = ([figure for figure in figures if figure.rate.known] for figures in (closed, named))
    lowest = min(closed, key=lambda figure: figure.rate.value, default=AttackerRate())
    highest = max(named, key=lambda figure: figure.rate.value, default=AttackerRate())
    least_named, most_named = sets[highest.attacker].get("candidates") or (0, 0) if highest.attacker else (0, 0)
    draws = strongest(conditions).get("draws") or ()
    return SecondaryResults(
        levels={level: least(part, level) for level, part in by_level.items() if part},
        without_content=(least(voices, "without_content") if 0 < len(voices) < len(conditions) else AttackerRate()),
        tested=tuple(conditions[0].get("tested") or ()),
        closed_set=AttackerRate(lowest.attacker, minimum_of(figure.rate for figure in closed)) if closed else lowest,
        identification=AttackerRate(highest.attacker, maximum_of(figure.rate for figure in named))
        if named
        else highest,
        candidates=(least_named, most_named),
        draws=tuple(number(find(draw, "eer", "rocch")) for draw in draws),
    )


@one_line
@dataclass(frozen=True)
class Condition:
    """One attacker in one scenario on one set of trials.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        Its place in the evaluation.
    values : mapping
        Its entry in the results.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    values: Mapping[str, Any]

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Data set, sex, scenario and attacker."""
        return self.dataset, self.gender, self.scenario, self.attacker

    def interval(self, *names: str) -> Interval:
        """Return a number with its interval; nested names lead to it, such as ``"eer", "rocch"``."""
        ends = find(self.values, "intervals", ".".join(names)) or {}
        return Interval(number(find(self.values, *names)), number(ends.get("low")), number(ends.get("high")))

    @property
    def linkability(self) -> Interval:
        """Probability that a speaker is found among all enrolled speakers."""
        curve = self.values.get("linkability")
        if not curve:
            return Interval()
        last = curve["sizes"].index(max(curve["sizes"]))
        value, low, high = ((curve.get(name) or {last: None})[last] for name in ("linkability", "low", "high"))
        return Interval(number(value), number(low), number(high))

    @property
    def n_enrolled(self) -> float:
        """Number of enrolled speakers to which `linkability` refers."""
        sizes = find(self.values, "linkability", "sizes")
        return number(max(sizes) if sizes else self.values.get("n_enrolled"))


@one_line
@dataclass(frozen=True)
class Outcome(Condition):
    """The result of a scenario: the condition of the strongest attacker, who leaves the least privacy.

    Attributes
    ----------
    eer : Interval
        Equal error rate as a fraction, with the interval of the minimum over attackers.
    beside : SecondaryResults
        Levels of knowledge, draws, the closed set.
    """

    eer: Interval
    beside: SecondaryResults


@one_line
@dataclass(frozen=True)
class Results(Tabular):
    """All results of an evaluation; see `parse_results`.

    Attributes
    ----------
    conditions : tuple of Condition
        In the order of the file.
    outcomes : tuple of Outcome
        Strongest attacker of each scenario, sorted by data set, sex, and knowledge in the scenario, the weakest first.
    raw : mapping
        Contents of ``results.json``.
    """

    conditions: tuple[Condition, ...]
    outcomes: tuple[Outcome, ...]
    raw: Mapping[str, Any] = field(repr=False)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each condition, with its main numbers; NaN where the results do not have one."""
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.conditions] for name in _NAMES}
        eers = [row.interval("eer", "rocch") for row in self.conditions]
        columns |= {"eer": [eer.value for eer in eers], "eer_low": [eer.low for eer in eers]}
        columns |= {"eer_high": [eer.high for eer in eers]}
        for names in (("min_cllr",), ("zebra", "population"), ("zebra", "individual")):
            columns[names[-1]] = [row.interval(*names).value for row in self.conditions]
        return columns

    def _repr_html_(self) -> str:
        return html_table(self.to_columns(), caption=self.name, notes=[self.verdict] if self.verdict else [])

    @property
    def verdict(self) -> str:
        """Verdict that the results state, or ""."""
        return (self.raw.get("verdict") or "").strip()

    @property
    def name(self) -> str:
        """Name of the anonymiser."""
        return find(self.raw, "anonymiser", "name") or (self.raw.get("suffix") or "").lstrip("_")

    @property
    def sanity(self) -> list[Mapping[str, str]]:
        """Checks with ``level``, ``check`` and ``text``, errors and warnings first."""
        order = ("error", "warning", "note", "ok")
        return sorted(self.raw.get("sanity") or (), key=lambda check: order.index(check["level"]))

    def datasets(self) -> list[str]:
        """Return the names of the data sets, in the order of the file."""
        return list(dict.fromkeys(condition.dataset for condition in self.conditions))

    def genders(self, dataset: str) -> list[str]:
        """Return the sexes of a data set, "all" (pooled) first."""
        return _ordered({row.gender for row in self.conditions if row.dataset == dataset}, tuple(GENDERS))

    def main_genders(self, dataset: str) -> list[str]:
        """Return "all" if the results have pooled speakers, else the sexes."""
        genders = self.genders(dataset)
        return ["all"] if "all" in genders else genders

    def main_places(self) -> list[tuple[str, str]]:
        """Return pairs of each data set and its `main_genders`."""
        return [(dataset, gender) for dataset in self.datasets() for gender in self.main_genders(dataset)]

    def scenarios(self, dataset: str) -> list[str]:
        """Return the scenarios of a data set, "original" (without anonymisation) first."""
        return _ordered({row.scenario for row in self.conditions if row.dataset == dataset}, SCENARIO_ORDER)

    def attackers(self, dataset: str) -> list[str]:
        """Return the attackers of a data set, in the order of the file."""
        return list(dict.fromkeys(row.attacker for row in self.conditions if row.dataset == dataset))

    def eer(self, *place: str) -> Interval:
        """Return the EER of an attacker; the strongest attacker's has the interval of the minimum."""
        for outcome in self.outcomes:
            if outcome.place == place:
                return outcome.eer
        return next((row.interval("eer", "rocch") for row in self.conditions if row.place == place), Interval())

    def outcomes_of(self, dataset: str, gender: str) -> list[Outcome]:
        """Return the strongest attacker of each scenario."""
        return [outcome for outcome in self.outcomes if (outcome.dataset, outcome.gender) == (dataset, gender)]

    def worst(self, dataset: str, gender: str) -> Outcome | None:
        """Return the outcome with the least privacy of anonymised speech, or else of original speech."""
        known = [outcome for outcome in self.outcomes_of(dataset, gender) if outcome.eer.known]
        anonymised = [outcome for outcome in known if outcome.scenario != "original"]
        return min(anonymised or known, key=lambda outcome: outcome.eer.value, default=None)


def read_results(path: str | Path) -> dict[str, Any]:
    """Read the JSON file of the results, which `parse_results` checks.

    Raises
    ------
    DataError
        If it cannot be read or is not a JSON object.
    """
    content = load_json(Path(path))
    if not isinstance(content, dict):
        raise DataError(f"expected a JSON object, got {type(content).__name__}", file=path)
    return content


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
    problems, seen = Problems(file), set()
    with one_error(file):
        if not raw.get("conditions"):
            raise DataError("expected a list 'conditions' with at least one condition", file=file)
        conditions = [
            Condition(row.get("dataset"), row.get("gender"), row.get("scenario"), row.get("attacker"), row)
            for row in raw["conditions"]
        ]
        for place, condition in enumerate(conditions, 1):
            if not all(isinstance(name, str) and name for name in condition.place):
                names = ", ".join(_NAMES)
                problems.add(f"condition {place}: expected texts {names}, got {list(condition.place)}")
            elif condition.place in seen:
                problems.add(f"condition {place}: {' '.join(condition.place)} is repeated")
            seen.add(condition.place)
        problems.raise_if_any()
        stated = {tuple(row[name] for name in _NAMES[:3]): row for row in raw.get("summary") or ()}
        found = Results(tuple(conditions), (), raw)
        outcomes = [
            _outcome(part, stated.get((dataset, gender, scenario), {}))
            for dataset in found.datasets()
            for gender in found.genders(dataset)
            for scenario in found.scenarios(dataset)
            if (part := [row for row in conditions if row.place[:3] == (dataset, gender, scenario)])
        ]
        return Results(tuple(conditions), tuple(outcomes), raw)


def _outcome(part: Sequence[Condition], stated: Mapping[str, Any]) -> Outcome:
    """Join the summary's entry with the condition of the strongest attacker, which has the rest."""
    entries = [condition.values for condition in part]
    best = stated.get("strongest") or strongest(entries)["attacker"]
    condition = {condition.attacker: condition for condition in part}[best]
    ends = stated.get("minimum") or stated
    eer = Interval(number(stated.get("eer")), number(ends.get("low")), number(ends.get("high")))
    minima = {name: find(row or {}, "minimum") for name, row in (stated.get("levels") or {}).items()}
    minima["without_content"] = find(stated, "without_content", "minimum")
    beside = secondary_results(entries, minima)
    return Outcome(*condition.place, condition.values, eer if eer.known else condition.interval("eer", "rocch"), beside)


def _ordered(names: set[str], order: tuple[str, ...]) -> list[str]:
    """Sort names in a known order, with unknown names last in alphabetical order."""
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))
