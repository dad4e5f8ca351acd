"""Measures of utility as the results hold them: a table of all values, and those that privacy is plotted against.

``utility`` holds, for each measure, a value or nested mappings that lead to values, named by data set, by ``original``
or what the anonymised speech is called, and by sex, in any order. A value is a number or a mapping with ``value``,
``low`` and ``high`` (or ``interval``, a pair); rates are fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.plots import TradeOff
from evaluation.reports.page.verdict import headlines, short
from evaluation.reports.privacy_results import GENDERS, Outcome, Results, as_number, interval_ends
from evaluation.uncertainty import Interval
from spkbase.showing import one_line


@dataclass(frozen=True)
class Measure:
    """A measure of utility: its name, whether less is better, and whether it is shown in percent."""

    name: str
    lower_is_better: bool
    percent: bool


@one_line
@dataclass(frozen=True)
class Value:
    """A value of a measure, and the names that lead to it."""

    measure: Measure
    place: tuple[str, ...]
    figure: Interval


@one_line
@dataclass(frozen=True)
class TradeOffs:
    """Points of one measure; see `evaluation.plots.privacy_utility`."""

    measure: Measure
    systems: list[TradeOff]


MEASURES = {
    "wer": Measure("Word error rate", lower_is_better=True, percent=True),
    "cer": Measure("Character error rate", lower_is_better=True, percent=True),
    "uar": Measure("Unweighted average recall", lower_is_better=False, percent=True),
    "f0": Measure("F0 correlation", lower_is_better=False, percent=False),
}
_PLOTTED = ("wer", "uar")
_ORIGINAL = ("original", "orig")


def values_of(results: Results) -> list[Value]:
    """Return every value of every measure, in the order of the results."""
    values = []
    for key, block in results.block("utility").items():
        measure = MEASURES.get(str(key), Measure(str(key), lower_is_better=False, percent=False))
        values += [Value(measure, place, figure) for place, figure in _values(block, ())]
    return values


def trade_offs(results: Results) -> list[TradeOffs]:
    """Pair each value over all speakers with the equal error rate of its data set, or of the worst one."""
    charts = []
    for measure in map(MEASURES.__getitem__, _PLOTTED):
        values = [value for value in values_of(results) if value.measure is measure and value.figure.known]
        systems = [point for value in values if (point := _trade_off(results, value)) is not None]
        if systems:
            charts.append(TradeOffs(measure, systems))
    return charts


def _trade_off(results: Results, value: Value) -> TradeOff | None:
    names = [name for name in value.place if name != "all"]
    if any(name in GENDERS for name in names):
        return None
    original = any(name in _ORIGINAL for name in names)
    outcome = _outcome(results, names, original)
    if outcome is None or not outcome.eer.known:
        return None
    eer = outcome.eer
    label = short(", ".join(names) or results.name or "anonymised")
    return TradeOff(
        label,
        100 * value.figure.value,
        eer.value,
        (eer.low, eer.high) if eer.has_interval else None,
        (100 * value.figure.low, 100 * value.figure.high) if value.figure.has_interval else None,
    )


def _outcome(results: Results, names: list[str], original: bool) -> Outcome | None:
    """Return the outcome that belongs to a value: of its data set, of the worst one where it is of none."""
    dataset = next((name for name in names if name in results.datasets()), None)
    worst = [headline.worst for headline in headlines(results) if dataset is None or headline.worst.dataset == dataset]
    if not worst or not original:
        return worst[0] if worst else None
    same = results.outcomes_of(worst[0].dataset, worst[0].gender)
    return next((outcome for outcome in same if outcome.scenario == "original"), None)


def _values(block: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Interval]]:
    if not isinstance(block, Mapping):
        if not isinstance(block, (list, tuple)):
            yield place, Interval(as_number(block))
    elif "value" in block:
        ends = block if "low" in block else block.get("interval")
        yield place, Interval(as_number(block["value"]), *interval_ends(ends))
    else:
        for name, inner in block.items():
            yield from _values(inner, (*place, str(name)))
