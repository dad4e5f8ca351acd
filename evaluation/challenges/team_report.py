"""Tables, averages and plots of a challenge, as files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.challenges.results_2022 import weighted_average
from evaluation.challenges.team_scores import VOICEPRIVACY, Assessment, NamingRule, ScoreList
from evaluation.metrics import format_value
from evaluation.plots import Core, escape, look_of, save_profiles
from spkbase.errors import DataError
from spkbase.files import escape_markdown, format_csv, format_table, write_text

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
        The folder: ``results.csv`` (all digits), ``results.md`` and ``results.tex`` (rounded; with intervals as two
        tables, so that they fit a page), ``averages.csv``, ``<team>-<system>.md``, and plots
        ``ZEBRA-multiple_conditions_<team>-<system>`` and ``ZEBRA-task_wise_<dataset>-<task>-<gender>``, each also
        ``ZEBRA-sorted-...``.
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
    assessed = sorted(assessed, key=_place)
    columns = [*_NAMES, *_headers(assessed)]
    write_text(output / "results.csv", format_csv(columns, [_exact(assessment) for assessment in assessed]))
    rows = [_row(assessment) for assessment in assessed]
    averages = average_rows(assessed, rule)
    table = format_table(rows, markdown=True)
    write_text(output / "results.md", f"# Results\n\n{table}\n\n{_averages_text(averages)}")
    titles = [title for title, *_ in _COLUMNS]
    parts = [titles[:4], titles[4:]] if any(assessment.intervals for assessment in assessed) else [titles]
    write_text(output / "results.tex", "\n".join(_as_tex([*_NAMES, *part], rows) for part in parts))
    if averages:
        write_text(output / "averages.csv", format_csv(list(averages[0]), averages))
    for name, part in _by(assessed, lambda assessment: assessment.source.name).items():
        ranking = format_table([_row(assessment) for assessment in part], markdown=True)
        theirs = _averages_text([row for row in averages if row["System"] == name])
        write_text(output / f"{_file_name(name)}.md", f"# {escape_markdown(name)}\n\n{ranking}\n\n{theirs}")
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


def _place(assessment: Assessment) -> tuple[Any, ...]:
    """Order by system, sex, set and condition; original speech before anonymised."""
    source = assessment.source
    return source.name, source.sex, source.dataset, [side != "o" for side in source.condition.split("-")]


def _names(assessment: Assessment) -> dict[str, str]:
    source = assessment.source
    return dict(zip(_NAMES, (source.name, source.sex, source.dataset, source.condition), strict=True))


def _exact(assessment: Assessment) -> dict[str, Any]:
    """A row with all digits, and columns for the ends of intervals."""
    row: dict[str, Any] = _names(assessment)
    for title, metric, factor, _ in _COLUMNS:
        row[title] = float(factor * assessment.values[metric]) if metric else assessment.tag
        if metric in assessment.intervals:
            interval = assessment.intervals[metric]
            row |= {f"{title} low": float(factor * interval.low), f"{title} high": float(factor * interval.high)}
    return {name: "" if value != value else value for name, value in row.items()}


def _row(assessment: Assessment) -> dict[str, str]:
    """A row to be read, with intervals in brackets."""
    row = _names(assessment)
    for title, metric, factor, decimals in _COLUMNS:
        value, found = assessment.values.get(metric, math.nan), assessment.intervals.get(metric)
        numbers = [value, *([found.low, found.high] if found is not None and found.has_interval else [])]
        texts = [_shown(factor * number, metric, decimals) for number in numbers]
        row[title] = assessment.tag if not metric else texts[0] + (f" [{', '.join(texts[1:])}]" if texts[1:] else "")
    return row


def _shown(value: float, metric: str, decimals: int) -> str:
    if math.isnan(value):
        return "-"
    return format_value(value) if metric.startswith("zebra") else f"{value:.{decimals}f}"


def _as_tex(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out a table that ``\\input`` takes, without packages, in small letters."""
    kinds = "".join("l" if name in _NAMES or name == "ZEBRA Category" else "r" for name in columns)
    cells = [
        [escape(name) for name in columns],
        *([escape(str(row.get(name, ""))) for name in columns] for row in rows),
    ]
    lines = [" & ".join(line) + r" \\" for line in cells]
    head = [r"{\footnotesize", rf"\begin{{tabular}}{{{kinds}}}", r"\hline", lines[0], r"\hline"]
    return "\n".join([*head, *lines[1:], r"\hline", r"\end{tabular}\par}"]) + "\n"


def _averages_text(averages: Sequence[Mapping[str, Any]]) -> str:
    if not averages:
        return "No weighted average: not all sets of a part and condition are there.\n"
    columns = {name: ".3f" if "[" in name else "" for name in averages[0]}
    return f"## Weighted averages\n\n{format_table(averages, columns, markdown=True)}\n"


def _plot(assessed: Sequence[Assessment], output: Path, extensions: Sequence[str]) -> None:
    """Draw each system over its conditions and each condition over its systems; both keep their looks throughout."""
    series = (
        ("multiple_conditions_", lambda source: source.name, lambda source: _condition(source, " ")),
        ("task_wise_", lambda source: _condition(source, "-"), lambda source: source.name),
    )
    for start, of_picture, of_line in series:
        names = sorted({of_line(assessment.source) for assessment in assessed})
        looks = {name: look_of(number) for number, name in enumerate(names)}
        for name, part in _by(assessed, lambda assessment: of_picture(assessment.source)).items():  # noqa: B023
            lines = [(of_line(assessment.source), assessment.scores) for assessment in part]
            cores = [Core(label, scores, looks[label]) for label, scores in lines]
            for prefix, sort in (("ZEBRA-", False), ("ZEBRA-sorted-", True)):
                paths = [output / f"{prefix}{start}{_file_name(name)}.{extension}" for extension in extensions]
                save_profiles(cores, path=paths, title=name.replace("/", ": "), sort=sort)


def _condition(source: ScoreList, between: str) -> str:
    return between.join([source.dataset, source.condition, source.sex])


def _by(assessed: Sequence[Assessment], what: Any) -> dict[Any, list[Assessment]]:
    groups: dict[Any, list[Assessment]] = {}
    for assessment in assessed:
        groups.setdefault(what(assessment), []).append(assessment)
    return groups


def _file_name(name: str) -> str:
    return name.replace("/", "-")
