"""Results as tables in text, for standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluation.metrics import METRICS, Metric
from evaluation.uncertainty import Groups
from spkbase.files import format_table

# the built-in metrics that the narrow table of groups has room for; user-supplied metrics are always there
_OF_GROUPS = ("eer.rocch", "min_cllr", "cllr", "zebra.population", "d_sys_pav")


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


def _narrow(metrics: Sequence[Metric]) -> Iterator[tuple[str, str]]:
    """Return name and heading of the columns of groups."""
    ours = {name: metric for metric in metrics for name, _ in metric.numbers()}
    yield from ((name, ours[name].short) for name in _OF_GROUPS if name in ours)
    built_in = {metric.name for metric in METRICS}
    for name, metric in ours.items():
        if metric.name not in built_in:
            yield name, metric.short or metric.title or name
