"""Results as tables in text, for standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.metrics import METRICS, Evaluation, Metric, format_value
from evaluation.uncertainty import Groups
from spkbase.files import format_table

# the built-in metrics that the narrow table of groups has room for; user-supplied metrics are always there
_OF_GROUPS = ("eer.rocch", "min_cllr", "cllr", "zebra.population", "d_sys_pav")
_WRITTEN = {"rocch": "ROCCH", "kaldi": "Kaldi", "speechbrain": "SpeechBrain"}


def format_evaluation(result: Evaluation) -> str:
    """Return a result as a table, with a column of intervals where there are any, and its notes below.

    Parameters
    ----------
    result : Evaluation
        See `evaluation.metrics.evaluate`.
    """
    counts = {"target trials": f"{result.n_target:,}", "nontarget trials": f"{result.n_nontarget:,}"}
    rows: list[dict[str, Any]] = [
        {"metric": title, "value": text} for title, text in (counts | {"convention": result.convention}).items()
    ]
    values = result.values()
    for name, title, form in metric_lines(result):
        rows.append({"metric": title, "value": _number(values[name], form), "interval": None})
        if name in result.intervals:
            low, high = (_number(end, form) for end in result.intervals[name])
            rows[-1]["interval"] = low if low == high == "undefined" else f"{low} to {high}"
    notes = [f"{name}: {text}" for name, text in result.notes.items()]
    columns = ["metric", "value", "interval"] if result.intervals else ["metric", "value"]
    return "\n".join([format_table(rows, columns), *([""] if notes else []), *notes])


def format_groups(groups: Groups) -> str:
    """Return the main metrics of each group as a table, and a second one of where each is highest and lowest.

    Parameters
    ----------
    groups : Groups
        See `evaluation.uncertainty.evaluate_groups`.
    """
    titles = dict(_narrow(groups.metrics))
    rows = [
        {groups.column: name, "target": group.n_target, "nontarget": group.n_nontarget}
        | {title: group.metrics.get(metric) for metric, title in titles.items()}
        for name, group in groups.groups.items()
    ]
    forms = {groups.column: "", "target": ",", "nontarget": ","} | dict.fromkeys(titles.values(), ".4f")
    lines = [format_table(rows, forms)]
    extremes = [
        {
            "metric": title,
            "worst": extreme.worst,
            "highest": extreme.highest,
            "lowest": extreme.lowest,
            "gap": extreme.gap.value,
        }
        | ({"gap from": extreme.gap.low, "to": extreme.gap.high} if extreme.gap.low == extreme.gap.low else {})
        for metric, title in titles.items()
        if (extreme := groups.extremes.get(metric)) is not None
    ]
    if extremes:
        columns = {"metric": "", "worst": "", "highest": "", "lowest": "", "gap": ".4f"}
        if any("to" in row for row in extremes):
            columns |= {"gap from": ".4f", "to": ".4f"}
        lines += ["", format_table(extremes, columns)]
    if groups.n_across or groups.n_unknown:
        lines += ["", f"{groups.n_across:,} trials across groups, {groups.n_unknown:,} of unknown group: in none"]
    return "\n".join(lines)


def metric_lines(result: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, title and format of each number of a result."""
    for metric in result.metrics:
        beside = {}
        if metric.beside is not None:
            group = result.results[metric.name.partition(".")[0]]
            beside = {name: format_value(part) if isinstance(part, float) else part for name, part in group.items()}
        for name, point in metric.numbers():
            title = metric.title or name
            if point or beside:
                title = title.format(_WRITTEN.get(point, point), **beside)
            yield name, title, metric.unit.form


def _narrow(metrics: Sequence[Metric]) -> Iterator[tuple[str, str]]:
    """Return name and heading of the columns of groups."""
    ours = {name: metric for metric in metrics for name, _ in metric.numbers()}
    yield from ((name, ours[name].short) for name in _OF_GROUPS if name in ours)
    built_in = {metric.name for metric in METRICS}
    for name, metric in ours.items():
        if metric.name not in built_in:
            yield name, metric.short or metric.title or name


def _number(value: float, form: str) -> str:
    if value != value:
        return "undefined"
    if form == "zebra":
        return format_value(value)
    return f"{100 * value:.3f} %" if form == "%" else format(value, form)
