"""The results of a privacy evaluation as reports read them: checked, in a fixed order, numbers with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.reports.beside import Beside, figures_beside
from evaluation.reports.privacy_schema import FORMAT, SCENARIO_ORDER, strongest
from evaluation.uncertainty import Interval
from spkbase.errors import DataError, Problems
from spkbase.files import load_json
from spkbase.showing import Tabular, html_table, one_line

GENDERS = {"all": "all speakers", "f": "female", "m": "male"}
_NAMES = ("dataset", "gender", "scenario", "attacker")
NAN = float("nan")
_ROUNDED = 1e-9  # what the last bits of a mean of shares may add


@one_line
@dataclass(frozen=True)
class Condition:
    """One attacker in one scenario on one set of trials.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        Which one it is.
    values : mapping
        Everything that the results say of it.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    values: Mapping[str, Any]

    def interval(self, name: str) -> Interval:
        """Return a number by its flat name, such as ``"eer.rocch"``, with its interval."""
        low, high = interval_ends(_mapping(self.values.get("intervals")).get(name))
        return Interval(as_number(find(self.values, name)), low, high)

    @property
    def notes(self) -> list[str]:
        """What is to be read with the numbers."""
        notes = self.values.get("notes")
        if isinstance(notes, Mapping):
            return [f"{name}: {note}" for name, note in notes.items()]
        return [str(note) for note in notes] if isinstance(notes, (list, tuple)) else []

    @property
    def speakers(self) -> list[Mapping[str, Any]]:
        """What is known of each speaker."""
        return [speaker for speaker in _sequence(self.values.get("speakers")) if isinstance(speaker, Mapping)]


@one_line
@dataclass(frozen=True)
class Outcome:
    """The result of a scenario: that of the strongest attacker, who leaves the least privacy.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        Which one it is, and who is the strongest.
    eer : Interval
        Equal error rate as a fraction.
    population, individual : Interval
        ZEBRA's, in bits and as |log10 LLR|.
    tag : str
        Category of `individual`.
    linkability : Interval
        Probability that a speaker is found among all enrolled ones.
    n_enrolled : float
        Their number.
    condition : Condition
        Where the details are.
    beside : Beside
        Levels of knowledge, draws, the closed set.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    eer: Interval
    population: Interval
    individual: Interval
    tag: str
    linkability: Interval
    n_enrolled: float
    condition: Condition
    beside: Beside = field(default_factory=Beside)


@one_line
@dataclass(frozen=True)
class Results(Tabular):
    """All of it; see `parse_results`.

    Attributes
    ----------
    conditions : tuple of Condition
        In the order of the file.
    outcomes : tuple of Outcome
        The strongest attacker of each scenario, by data set, then sex, then scenario from the weakest knowledge on.
    raw : mapping
        The results as they were read.
    """

    conditions: tuple[Condition, ...]
    outcomes: tuple[Outcome, ...]
    raw: Mapping[str, Any] = field(repr=False)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each condition, with its main numbers; NaN where the results do not have one."""
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.conditions] for name in _NAMES}
        eers = [row.interval("eer.rocch") for row in self.conditions]
        columns |= {"eer": [eer.value for eer in eers], "eer_low": [eer.low for eer in eers]}
        columns |= {"eer_high": [eer.high for eer in eers]}
        for name in ("min_cllr", "zebra.population", "zebra.individual"):
            columns[name.rpartition(".")[2]] = [row.interval(name).value for row in self.conditions]
        return columns

    def _repr_html_(self) -> str:
        return html_table(self.to_columns(), caption=self.name, notes=[self.verdict] if self.verdict else [])

    def block(self, name: str) -> Mapping[str, Any]:
        """Return a part of the results that is a mapping, empty if it is missing."""
        return _mapping(self.raw.get(name))

    @property
    def verdict(self) -> str:
        """What the results say of themselves, or nothing."""
        verdict = self.raw.get("verdict")
        return verdict.strip() if isinstance(verdict, str) else ""

    @property
    def name(self) -> str:
        """Name of the anonymiser."""
        anonymiser = self.raw.get("anonymiser")
        if isinstance(anonymiser, Mapping) and isinstance(anonymiser.get("name"), str):
            return str(anonymiser["name"])
        if isinstance(anonymiser, str):
            return anonymiser
        suffix = self.raw.get("suffix")
        return suffix.lstrip("_") if isinstance(suffix, str) else ""

    @property
    def level(self) -> float:
        """Share of true values that the intervals should cover; NaN where the results do not say it."""
        return as_number(find(self.block("config"), "evaluation.level"))

    @property
    def sanity(self) -> list[tuple[str, str, str]]:
        """Checks as (level, name, text), warnings first."""
        order = {"error": 0, "warning": 1, "note": 2, "ok": 3}
        found = [
            tuple(str(stated.get(name) or "") for name in ("level", "check", "text"))
            for stated in _sequence(self.raw.get("sanity"))
            if isinstance(stated, Mapping)
        ]
        known = [(level if level in order else "warning", check, text) for level, check, text in found]
        return sorted(known, key=lambda stated: order[stated[0]])

    def datasets(self) -> list[str]:
        """Return the names of the data sets, in the order of the file."""
        return _distinct(condition.dataset for condition in self.conditions)

    def genders(self, dataset: str) -> list[str]:
        """Return the sexes of a data set, pooled ones first."""
        return _ordered({row.gender for row in self.conditions if row.dataset == dataset}, tuple(GENDERS))

    def main_genders(self, dataset: str) -> list[str]:
        """Return all speakers pooled where the results have that, else the sexes."""
        genders = self.genders(dataset)
        return ["all"] if "all" in genders else genders

    def scenarios(self, dataset: str) -> list[str]:
        """Return the scenarios of a data set, that without anonymisation first."""
        return _ordered({row.scenario for row in self.conditions if row.dataset == dataset}, SCENARIO_ORDER)

    def attackers(self, dataset: str) -> list[str]:
        """Return the attackers of a data set, in the order of the file."""
        return _distinct(row.attacker for row in self.conditions if row.dataset == dataset)

    def condition(self, dataset: str, gender: str, scenario: str, attacker: str) -> Condition | None:
        """Return one condition, or None."""
        wanted = (dataset, gender, scenario, attacker)
        return next((row for row in self.conditions if tuple(getattr(row, name) for name in _NAMES) == wanted), None)

    def eer(self, dataset: str, gender: str, scenario: str, attacker: str) -> Interval:
        """Return the EER of an attacker; of the strongest one with the interval of the minimum, as its outcome has."""
        place = (dataset, gender, scenario, attacker)
        for outcome in self.outcomes:
            if tuple(getattr(outcome, name) for name in _NAMES) == place:
                return outcome.eer
        condition = self.condition(*place)
        return Interval() if condition is None else condition.interval("eer.rocch")

    def outcomes_of(self, dataset: str, gender: str) -> list[Outcome]:
        """Return the strongest attacker of each scenario."""
        return [outcome for outcome in self.outcomes if (outcome.dataset, outcome.gender) == (dataset, gender)]

    def worst(self, dataset: str, gender: str) -> Outcome | None:
        """Return the outcome with the least privacy where speech is anonymised, or that without where it is alone."""
        known = [outcome for outcome in self.outcomes_of(dataset, gender) if outcome.eer.known]
        anonymised = [outcome for outcome in known if outcome.scenario != "original"]
        return min(anonymised or known, key=lambda outcome: outcome.eer.value, default=None)


def read_results(path: str | Path) -> dict[str, Any]:
    """Return what the JSON file of the results holds; see `parse_results` for what it must hold.

    Raises
    ------
    DataError
        If it cannot be read or is not a JSON object.
    """
    path = Path(path)
    content = load_json(path)
    if not isinstance(content, dict):
        raise DataError(f"expected a JSON object, got {type(content).__name__}", file=path)
    return content


def parse_results(raw: Mapping[str, Any], *, file: str | Path | None = None) -> Results:
    """Return results checked and in order. What may be missing may also be null.

    Parameters
    ----------
    raw : mapping
        With ``format`` 1 and ``conditions``; each condition has ``dataset``, ``gender``, ``scenario`` and ``attacker``
        and what ``spkver-eval metrics --json`` writes.
    file : path, optional
        For messages.

    Raises
    ------
    DataError
        If the format is another one, there is no condition, conditions lack names or repeat, or a rate is out of range.
    """
    if raw.get("format") != FORMAT:
        remedy = "make the results anew with this version"
        raise DataError(f"expected results of format {FORMAT}, got {raw.get('format')!r}", file=file, remedy=remedy)
    rows = raw.get("conditions")
    if not isinstance(rows, list) or not rows:
        raise DataError("expected a list 'conditions' with at least one condition", file=file)
    problems, conditions, seen = Problems(file), [], set()
    for number, row in enumerate(rows, 1):
        names = [row.get(name) if isinstance(row, Mapping) else None for name in _NAMES]
        if not all(isinstance(name, str) and name for name in names):
            problems.add(f"condition {number}: expected texts {', '.join(_NAMES)}, got {names}")
        elif tuple(names) in seen:
            problems.add(f"condition {number}: {' '.join(map(str, names))} stands there twice")
        else:
            seen.add(tuple(names))
            for name, value in _rates(row):
                if not -_ROUNDED <= value <= 1 + _ROUNDED:
                    problems.add(f"condition {number}: {name} is {value:g}, expected a share from 0 to 1")
            dataset, gender, scenario, attacker = map(str, names)
            conditions.append(Condition(dataset, gender, scenario, attacker, row))
    for row in _sequence(raw.get("summary")):
        rates = {name: as_number(_mapping(row).get(name)) for name in ("eer", "low", "high")}
        for name, value in rates.items():
            if value == value and not 0 <= value <= 1:
                problems.add(f"the summary: {name} is {value:g}, expected a share from 0 to 1")
    problems.raise_if_any()
    return Results(tuple(conditions), tuple(_outcomes(conditions, _sequence(raw.get("summary")))), raw)


def _rates(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Rates of a condition, with the ends of their intervals, that are numbers at all."""
    eer, curve = row.get("eer"), _mapping(row.get("linkability"))
    rates = {"eer": [eer], **{f"eer.{name}": [value] for name, value in _mapping(eer).items()}}
    for name, interval in _mapping(row.get("intervals")).items():
        if name.startswith("eer"):
            rates[f"the interval of {name}"] = list(interval_ends(interval))
    for name in ("linkability", "low", "high"):
        rates[f"linkability.{name}"] = list(_sequence(curve.get(name)))
    for name, values in rates.items():
        yield from ((name, value) for value in map(as_number, values) if value == value)


def find(values: Mapping[str, Any], name: str) -> Any:
    """Return a value by its flat name in nested mappings, whose own names may hold dots; None if it is not there.

    Examples
    --------
    >>> find({"min_dcf": {"0.01": 0.5}}, "min_dcf.0.01")
    0.5
    """
    if name in values:
        return values[name]
    for dot in (index for index, letter in enumerate(name) if letter == "."):
        inner = values.get(name[:dot])
        if isinstance(inner, Mapping) and (found := find(inner, name[dot + 1 :])) is not None:
            return found
    return None


def as_number(value: Any) -> float:
    """Return a number as the JSON reports write it: infinite ones as text; NaN for everything else.

    Examples
    --------
    >>> [as_number(value) for value in (1, "-inf", None, "<b>", True)]
    [1.0, -inf, nan, nan, nan]
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return NAN
    return float(value) if value in ("inf", "-inf") else NAN


def interval_ends(interval: Any) -> tuple[float, float]:
    """Return the ends of an interval, written as a mapping or as a pair."""
    if isinstance(interval, Mapping):
        return as_number(interval.get("low")), as_number(interval.get("high"))
    if isinstance(interval, (list, tuple)) and len(interval) == 2:
        return as_number(interval[0]), as_number(interval[1])
    return NAN, NAN


def _outcomes(conditions: Sequence[Condition], summary: Sequence[Any]) -> Iterator[Outcome]:
    stated = {tuple(row.get(name) for name in _NAMES[:3]): row for row in summary if isinstance(row, Mapping)}
    for dataset in _distinct(condition.dataset for condition in conditions):
        rows = [condition for condition in conditions if condition.dataset == dataset]
        for gender in _ordered({condition.gender for condition in rows}, tuple(GENDERS)):
            for scenario in _ordered({condition.scenario for condition in rows}, SCENARIO_ORDER):
                part = [row for row in rows if (row.gender, row.scenario) == (gender, scenario)]
                if part:
                    yield _outcome(part, stated.get((dataset, gender, scenario), {}))


def _outcome(part: Sequence[Condition], stated: Mapping[str, Any]) -> Outcome:
    """Take what the summary states, and the rest from the condition of the strongest attacker."""
    best = strongest([condition.values for condition in part]).get("attacker")
    named = [condition for condition in part if condition.attacker == stated.get("strongest", best)]
    condition = named[0] if named else next(condition for condition in part if condition.attacker == str(best))
    own = condition.interval("eer.rocch")
    ends = stated if not _mapping(stated.get("minimum")) else _mapping(stated["minimum"])
    eer = Interval(as_number(stated.get("eer")), as_number(ends.get("low")), as_number(ends.get("high")))
    minima = {name: _mapping(row).get("minimum") for name, row in _mapping(stated.get("levels")).items()}
    minima["without_content"] = _mapping(stated.get("without_content")).get("minimum")
    zebra = _mapping(condition.values.get("zebra"))
    linkability, n_enrolled = _all_enrolled(condition)
    return Outcome(
        condition.dataset,
        condition.gender,
        condition.scenario,
        condition.attacker,
        eer if eer.known else own,
        condition.interval("zebra.population"),
        condition.interval("zebra.individual"),
        str(zebra.get("tag") or ""),
        linkability,
        n_enrolled,
        condition,
        figures_beside([condition.values for condition in part], minima),
    )


def _all_enrolled(condition: Condition) -> tuple[Interval, float]:
    """Linkability where everybody is enrolled, and their number."""
    curve = _mapping(condition.values.get("linkability"))
    sizes = [as_number(size) for size in _sequence(curve.get("sizes"))]
    if not sizes:
        return Interval(), as_number(condition.values.get("n_enrolled"))
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    value, low, high = (as_number(_at(curve.get(name), largest)) for name in ("linkability", "low", "high"))
    return Interval(value, low, high), sizes[largest]


def _at(values: Any, place: int) -> Any:
    return values[place] if isinstance(values, list) and place < len(values) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _distinct(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _ordered(names: set[str], order: tuple[str, ...]) -> list[str]:
    """Put names in a known order, unknown ones behind by the alphabet."""
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))
