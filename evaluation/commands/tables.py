"""Results as tables in text, for standard output."""

from __future__ import annotations

from typing import Any

from evaluation.metrics import Evaluation, format_value
from evaluation.uncertainty import Groups
from spkbase.files import format_table

_OF_GROUPS = {
    "eer.rocch": "EER",
    "min_cllr": "minCllr",
    "cllr": "Cllr",
    "zebra.population": "population",
    "d_sys_pav": "D_sys (PAV)",
}
_EER_TITLES = {"rocch": "ROCCH", "kaldi": "Kaldi", "speechbrain": "SpeechBrain"}
_COSTS = {
    "min_dcf": "minDCF at prior {}",
    "act_dcf": "actual DCF at prior {}",
    "min_dcf_normalised": "minDCF at prior {} (normalised)",
}


def format_evaluation(result: Evaluation) -> str:
    """Lay out a result, with a column of intervals where there are any, and its notes below."""
    counts = {"target trials": f"{result.n_target:,}", "nontarget trials": f"{result.n_nontarget:,}"}
    rows: list[dict[str, Any]] = [
        {"metric": title, "value": text} for title, text in (counts | {"convention": result.convention}).items()
    ]
    values = result.values()
    for name, title, form in _lines(result):
        rows.append({"metric": title, "value": _number(values[name], form), "interval": None})
        if name in result.intervals:
            low, high = (_number(end, form) for end in result.intervals[name])
            rows[-1]["interval"] = low if low == high == "undefined" else f"{low} to {high}"
    notes = [f"{name}: {text}" for name, text in result.notes.items()]
    columns = ["metric", "value", "interval"] if result.intervals else ["metric", "value"]
    return "\n".join([format_table(rows, columns), *([""] if notes else []), *notes])


def _lines(result: Evaluation) -> list[tuple[str, str, str]]:
    """Name, title and format of each line."""
    lines = [(f"eer.{name}", f"EER ({_EER_TITLES.get(name, name)})", "%") for name in result.eer]
    lines += [
        ("threshold_at_eer", "threshold at the EER", ".4g"),
        ("cllr", "Cllr (bit)", ".4f"),
        ("min_cllr", "minCllr (bit)", ".4f"),
        ("calibration_loss", "calibration loss (bit)", ".4f"),
    ]
    for name, title in _COSTS.items():
        lines += [(f"{name}.{prior}", title.format(prior), ".4f") for prior in getattr(result, name)]
    ceiling = format_value(result.zebra.individual_ceiling)
    lines += [
        ("zebra.population", "ZEBRA population (bit)", "zebra"),
        ("zebra.individual", f"ZEBRA individual ({result.zebra.tag}; at most {ceiling})", "zebra"),
        ("d_sys", "D_sys linkability", ".4f"),
        ("d_sys_pav", "D_sys by isotonic regression", ".4f"),
    ]
    lines += [(f"tpr_at_fpr.{rate}", f"true accepts at {rate} false accepts", "%") for rate in result.tpr_at_fpr]
    return [*lines, ("prbep", "PRBEP (errors of each kind)", ".1f")]


def format_groups(groups: Groups) -> str:
    """Show the main metrics of each group, and where each is highest and lowest."""
    rows = [
        {groups.column: name, "target": one.n_target, "nontarget": one.n_nontarget}
        | {title: one.metrics.get(metric) for metric, title in _OF_GROUPS.items()}
        for name, one in groups.groups.items()
    ]
    lines = [
        format_table(
            rows, {groups.column: "", "target": ",", "nontarget": ","} | dict.fromkeys(_OF_GROUPS.values(), ".4f")
        )
    ]
    extremes = [
        {"metric": title, "worst": one.worst, "highest": one.highest, "lowest": one.lowest, "gap": one.gap.value}
        | ({"gap from": one.gap.low, "to": one.gap.high} if one.gap.low == one.gap.low else {})
        for metric, title in _OF_GROUPS.items()
        if (one := groups.extremes.get(metric)) is not None
    ]
    if extremes:
        columns = {"metric": "", "worst": "", "highest": "", "lowest": "", "gap": ".4f"}
        if any("to" in row for row in extremes):
            columns |= {"gap from": ".4f", "to": ".4f"}
        lines += ["", format_table(extremes, columns)]
    if groups.n_across or groups.n_unknown:
        lines += ["", f"{groups.n_across:,} trials across groups, {groups.n_unknown:,} of unknown group: in none"]
    return "\n".join(lines)


def _number(value: float, form: str) -> str:
    if value != value:
        return "undefined"
    if form == "zebra":
        return format_value(value)
    return f"{100 * value:.3f} %" if form == "%" else format(value, form)
