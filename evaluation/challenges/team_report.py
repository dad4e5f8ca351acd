"""Tables, averages and plots of a challenge, as files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.challenges.results_2022 import weighted_average
from evaluation.challenges.team_scores import VOICEPRIVACY, Assessment, NamingRule
from evaluation.metrics import format_value
from evaluation.plots import Core, escape, save_profiles
from spkbase.errors import DataError
from spkbase.files import format_csv, format_table, write_text

# the columns of the ZEBRA toolkit: name, value of an assessment, factor, decimals
_COLUMNS = (
    ("ROCCH-EER [%]", "eer.rocch", 100, 2),
    ("ZEBRA Population [bit]", "zebra.population", 1, 3),
    ("ZEBRA Individual", "zebra.individual", 1, 3),
    ("ZEBRA Category", "", 1, 0),
    ("Cllr", "cllr", 1, 2),
    ("min Cllr", "min_cllr", 1, 2),
)
_NAMES = ("System", "Gender", "Dataset", "Task")


def write_challenge(
    assessed: Sequence[Assessment],
    output: str | Path,
    *,
    rule: NamingRule = VOICEPRIVACY,
    extensions: Sequence[str] = ("png",),
) -> None:
    """Write everything about a challenge into a folder.

    Parameters
    ----------
    assessed : sequence of Assessment
        See `evaluation.challenges.assess`.
    output : path
        The folder: ``results.csv`` (all digits), ``results.md`` and ``results.tex`` (rounded), ``averages.csv`` and
        ``.md``, ``<team>-<system>.md``, and plots ``ZEBRA-multiple_conditions_<team>-<system>`` and
        ``ZEBRA-task_wise_<dataset>-<task>-<gender>``, each also ``ZEBRA-sorted-...``.
    rule : NamingRule
        Holds the weights of the averages.
    extensions : sequence of str
        Formats of the plots, such as ``"png"``; none for no plots.
    """
    output = Path(output)
    if not assessed:
        raise DataError("expected assessed scores to write, got none")
    systems = {assessment.source.name for assessment in assessed}
    if len({_file_name(name) for name in systems}) < len(systems):
        raise DataError("two systems would get files of one name", remedy="rename a team or a system")
    columns = [*_NAMES, *_headers(assessed)]
    write_text(output / "results.csv", format_csv(columns, [_row(assessment, exact=True) for assessment in assessed]))
    rows = [_row(assessment) for assessment in assessed]
    averages = average_rows(assessed, rule)
    table = format_table(rows, columns, markdown=True)
    write_text(output / "results.md", f"# Results\n\n{table}\n\n{_averages_text(averages)}")
    write_text(output / "results.tex", _as_tex(columns, rows))
    if averages:
        write_text(output / "averages.csv", format_csv(list(averages[0]), averages))
    for name, part in _by(assessed, lambda assessment: assessment.source.name).items():
        ranking = format_table([_row(assessment) for assessment in part], columns, markdown=True)
        theirs = _averages_text([row for row in averages if row["System"] == name])
        write_text(output / f"{_file_name(name)}.md", f"# {name}\n\n{ranking}\n\n{theirs}")
    if extensions:
        _plot(assessed, output, extensions)


def average_rows(assessed: Sequence[Assessment], rule: NamingRule = VOICEPRIVACY) -> list[dict[str, Any]]:
    """Return weighted averages over corpora and sexes, for each system, part and condition that is complete.

    Of VoicePrivacy 2022: 0.25 for each sex of libri, 0.20 of vctk and 0.05 of vctk_common.
    """
    rows = []
    for (name, split, condition), part in _by(assessed, _part_name).items():
        row: dict[str, Any] = {"System": name, "Split": split, "Task": condition}
        for title, metric, factor in (
            ("EER (Kaldi) [%]", "eer.kaldi", 100),
            ("ROCCH-EER [%]", "eer.rocch", 100),
            ("ZEBRA Population [bit]", "zebra.population", 1),
        ):
            values = {}
            for assessment in part:
                source = assessment.source
                values[source.corpus + source.subset, source.sex] = factor * assessment.values[metric]
            row[title] = weighted_average(values, rule.weights)
        if row["ROCCH-EER [%]"] is not None:
            rows.append(row)
    return rows


def _part_name(assessment: Assessment) -> tuple[str, str, str]:
    return assessment.source.name, assessment.source.split, assessment.source.condition


def _headers(assessed: Sequence[Assessment]) -> list[str]:
    headers = [title for title, *_ in _COLUMNS]
    if any(assessment.intervals for assessment in assessed):
        headers += [f"{title} {end}" for title, metric, *_ in _COLUMNS if metric for end in ("low", "high")]
    return headers


def _row(assessment: Assessment, *, exact: bool = False) -> dict[str, Any]:
    names = (assessment.source.name, assessment.source.sex, assessment.source.dataset, assessment.source.condition)
    row: dict[str, Any] = dict(zip(_NAMES, names, strict=True))
    for title, metric, factor, decimals in _COLUMNS:
        if not metric:
            row[title] = assessment.tag
            continue
        row[title] = _shown(factor * assessment.values[metric], metric, decimals, exact)
        if metric in assessment.intervals:
            interval = assessment.intervals[metric]
            for end, bound in (("low", interval.low), ("high", interval.high)):
                row[f"{title} {end}"] = _shown(factor * bound, metric, decimals, exact)
    return row


def _shown(value: float, metric: str, decimals: int, exact: bool) -> str:
    if exact:
        return "" if math.isnan(value) else repr(float(value))
    if math.isnan(value):
        return "-"
    return format_value(value) if metric.startswith("zebra") else f"{value:.{decimals}f}"


def _as_tex(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out a table that ``\\input`` takes, without packages."""
    kinds = "".join("l" if name in _NAMES or name == "ZEBRA Category" else "r" for name in columns)
    cells = [
        [escape(name) for name in columns],
        *([escape(str(row.get(name, ""))) for name in columns] for row in rows),
    ]
    lines = [" & ".join(line) + r" \\" for line in cells]
    body = [rf"\begin{{tabular}}{{{kinds}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}"]
    return "\n".join(body) + "\n"


def _averages_text(averages: Sequence[Mapping[str, Any]]) -> str:
    if not averages:
        return "No weighted average: not all sets of a part and condition are there.\n"
    columns = {name: ".3f" if "[" in name else "" for name in averages[0]}
    return f"## Weighted averages\n\n{format_table(averages, columns, markdown=True)}\n"


def _plot(assessed: Sequence[Assessment], output: Path, extensions: Sequence[str]) -> None:
    conditions = {
        f"multiple_conditions_{_file_name(name)}": [(_condition(assessment), assessment) for assessment in part]
        for name, part in _by(assessed, lambda assessment: assessment.source.name).items()
    }
    tasks = {
        f"task_wise_{dataset}-{task}-{sex}": [(assessment.source.name, assessment) for assessment in part]
        for (dataset, task, sex), part in _by(
            assessed, lambda assessment: (assessment.source.dataset, assessment.source.condition, assessment.source.sex)
        ).items()
    }
    for name, systems in (conditions | tasks).items():
        cores = [Core(label, assessment.scores) for label, assessment in systems]
        for prefix, sort in (("ZEBRA-", False), ("ZEBRA-sorted-", True)):
            paths = [output / f"{prefix}{name}.{extension}" for extension in extensions]
            save_profiles(cores, path=paths, title=name.replace("_", " "), sort=sort)


def _condition(assessment: Assessment) -> str:
    return f"{assessment.source.dataset} {assessment.source.condition} {assessment.source.sex}"


def _by(assessed: Sequence[Assessment], what: Any) -> dict[Any, list[Assessment]]:
    groups: dict[Any, list[Assessment]] = {}
    for assessment in assessed:
        groups.setdefault(what(assessment), []).append(assessment)
    return groups


def _file_name(name: str) -> str:
    return name.replace("/", "-")
