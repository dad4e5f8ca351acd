"""Tables of a privacy evaluation: the columns of the results, for terminal, CSV, Markdown, LaTeX and the page.

A new column is a row of `COLUMNS`; its number is a field of `evaluation.reports.results.Condition` or a metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from evaluation.metrics import format_value
from evaluation.plots import escape
from evaluation.reports.results import GENDERS, AttackerRate, Outcome, Results, main_outcomes
from evaluation.trials import LEVELS
from evaluation.uncertainty import Interval
from spkbase.files import escape_markdown, format_table

MISSING = "n/a"
Rows = list[dict[str, str]]

TERMINAL, CSV, FIGURES, GLANCE = ("terminal",), ("CSV",), ("all figures",), ("at a glance",)
"""The tables: at the end of a run; results.csv; all figures (Markdown, LaTeX, page); main figures (Markdown, LaTeX)."""

_LEGEND = (
    f"{'; '.join(f'{level}: {words}' for level, words in LEVELS.items())}. Identification: utterances whose speaker is"
    " first among so many enrolled. Closed set: scores centred over the enrolled. Attackers are named where they are"
    " not the strongest one."
)


@dataclass(frozen=True)
class TableColumn:
    """A column of the results.

    Parameters
    ----------
    name : str
        Heading.
    read : callable
        Takes an `Outcome` and returns a text, a number or an `Interval`; NaN if it is unknown.
    tables : tuple of str
        The tables that show it, a sum of `TERMINAL`, `CSV`, `FIGURES` and `GLANCE`; all of them by default.
    form : str or callable
        How a number is written; empty for a column of texts. The CSV file has unformatted numbers.
    shown : callable, optional
        Takes all outcomes and returns whether the column is shown; always by default.
    """

    name: str
    read: Callable[[Outcome], Any]
    tables: tuple[str, ...] = TERMINAL + CSV + FIGURES + GLANCE
    form: str | Callable[[float], str] = ""
    shown: Callable[[Sequence[Outcome]], bool] = lambda outcomes: True

    def text(self, outcome: Outcome) -> str:
        """Return the cell, a number with its interval in brackets."""
        value = self.read(outcome)
        return value or MISSING if isinstance(value, str) else written(value, self.form)

    def number(self, outcome: Outcome) -> Any:
        """Return the cell, a text or a number; None if it is unknown."""
        value = self.read(outcome)
        value = value.value if isinstance(value, Interval) else value
        return None if isinstance(value, float) and math.isnan(value) else value


def written(value: float | Interval, form: str | Callable[[float], str]) -> str:
    """Write a number with its interval in brackets.

    Examples
    --------
    >>> written(Interval(12.34, 10, 20), ".1f"), written(0.5, ".2f"), written(Interval(), ".2f")
    ('12.3 [10.0, 20.0]', '0.50', 'n/a')
    """
    return (value if isinstance(value, Interval) else Interval(value)).text(form, MISSING)


def percent(share: float, decimals: int = 1) -> str:
    """Write a share in per cent.

    Examples
    --------
    >>> percent(0.1234), percent(0.5, 2), percent(math.nan)
    ('12.3 %', '50.00 %', 'n/a')
    """
    return f"{100 * share:z.{decimals}f} %" if math.isfinite(share) else MISSING


def _several_draws(outcomes: Sequence[Outcome]) -> bool:
    return any(len(outcome.draws) > 1 for outcome in outcomes)


def _several_levels(level: str, outcomes: Sequence[Outcome]) -> bool:
    return len(levels := {one for outcome in outcomes for one in outcome.levels}) > 1 and level in levels


def _level_rate(level: str, outcome: Outcome) -> float:
    return 100 * outcome.levels[level].eer.value if level in outcome.levels else math.nan


def _speakers(outcome: Outcome) -> str:
    return GENDERS.get(outcome.gender, outcome.gender)


def _dataset(outcome: Outcome) -> str:
    return outcome.dataset if outcome.gender == "all" else f"{outcome.dataset}, {_speakers(outcome)}"


def _mean(outcome: Outcome) -> str:
    draws = f" ({len(outcome.draws)} draws)" if len(outcome.draws) > 1 else ""
    return written(outcome.rate.in_percent, ".1f") + draws


def _draws(outcome: Outcome) -> str:
    return ", ".join(f"{100 * rate:.1f}" for rate in outcome.draws) if len(outcome.draws) > 1 else ""


def _by(outcome: Outcome, found: AttackerRate | None) -> str:
    """Write a rate in per cent, with its attacker unless that is the strongest one."""
    by = f" ({found.attacker})" if found and found.attacker != outcome.strongest else ""
    return f"{100 * found.eer.value:.1f}{by}" if found else MISSING


def _level_text(level: str, outcome: Outcome) -> str:
    return _by(outcome, outcome.levels.get(level))


def _identified(outcome: Outcome) -> str:
    if (found := outcome.identification) is None:
        return MISSING
    by = f" ({found.attacker})" if found.attacker != outcome.strongest else ""
    among = " to ".join(map(str, dict.fromkeys(found.candidates)))
    return f"{100 * found.share.value:.0f}{by}" + (f" of {among}" if found.candidates[1] else "")


def _share(name: str, outcome: Outcome) -> Interval:
    """Return a rate that an outcome may lack, in per cent."""
    part, _, rate = name.partition(".")
    share: Interval = getattr(getattr(outcome, part), rate, Interval())
    return share.in_percent


def _impostors(kind: str, outcome: Outcome) -> float:
    return 100 * float(outcome.condition.metrics.get("impostors", {}).get(kind, "nan"))


def _has_strangers(outcomes: Sequence[Outcome]) -> bool:
    return any("impostors" in one.condition.metrics for one in outcomes)


def _rounded(share: float) -> float:
    return round(100 * share, 3)


COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("set", attrgetter("dataset"), TERMINAL),
    TableColumn("sex", attrgetter("gender"), TERMINAL),
    TableColumn("Dataset", attrgetter("dataset"), FIGURES),
    TableColumn("Dataset", _dataset, GLANCE),
    TableColumn("Speakers", _speakers, FIGURES),
    TableColumn("scenario", attrgetter("scenario"), TERMINAL + CSV),
    TableColumn("Scenario", attrgetter("scenario"), FIGURES + GLANCE),
    TableColumn("strongest attacker", attrgetter("strongest"), TERMINAL),
    TableColumn("attacker", attrgetter("strongest"), CSV),
    TableColumn("Attacker", attrgetter("strongest"), FIGURES),
    TableColumn("Strongest", attrgetter("strongest"), GLANCE),
    TableColumn("strongest_of", lambda one: len(one.attackers), CSV),
    TableColumn("EER [%]", attrgetter("rate.in_percent"), TERMINAL, ".2f"),
    TableColumn("EER [%]", attrgetter("rate.in_percent"), FIGURES, ".1f"),
    TableColumn("EER [%]", attrgetter("rate.in_percent"), GLANCE, ".1f", lambda outcomes: not _several_draws(outcomes)),
    TableColumn("EER [%], mean of draws", _mean, GLANCE, ".1f", _several_draws),
    TableColumn("draws", lambda one: len(one.draws), CSV),
    TableColumn("EER_rocch", lambda one: _rounded(one.eer.value), CSV),
    TableColumn("low", lambda one: _rounded(one.rate.low), CSV),
    TableColumn("high", lambda one: _rounded(one.rate.high), CSV),
    TableColumn("low", lambda one: 100 * one.rate.low, TERMINAL, ".2f"),
    TableColumn("high", lambda one: 100 * one.rate.high, TERMINAL, ".2f"),
    TableColumn("draws", _draws, TERMINAL, shown=_several_draws),
    *(
        TableColumn(f"{level} [%]", partial(_level_rate, level), TERMINAL, ".2f", partial(_several_levels, level))
        for level in LEVELS
    ),
    *(TableColumn(f"{level.capitalize()} [%]", partial(_level_text, level), GLANCE, ".1f") for level in LEVELS),
    TableColumn("min Cllr", lambda one: one.condition.metric("min_cllr").value, FIGURES, ".3f"),
    TableColumn("Population [bit]", lambda one: one.condition.metric("zebra.population"), FIGURES, format_value),
    TableColumn("Individual", lambda one: one.condition.metric("zebra.individual").value, FIGURES, format_value),
    TableColumn("Category", attrgetter("condition.tag"), FIGURES),
    TableColumn("Linkability, all [%]", attrgetter("condition.found_among_all.in_percent"), FIGURES, ".0f"),
    TableColumn("closed set [%]", lambda one: getattr(one.closed_set, "eer", Interval()).in_percent, TERMINAL, ".2f"),
    TableColumn(
        "identification [%]", lambda one: getattr(one.identification, "share", Interval()).in_percent, TERMINAL, ".0f"
    ),
    TableColumn("Identification [%]", _identified, GLANCE, ".0f"),
    TableColumn("Closed set, EER [%]", lambda one: _by(one, one.closed_set), GLANCE, ".1f"),
    TableColumn("Enrolled impostors, EER [%]", partial(_impostors, "enrolled"), FIGURES, ".1f", _has_strangers),
    TableColumn("Strangers, EER [%]", partial(_impostors, "strangers"), FIGURES, ".1f", _has_strangers),
    TableColumn("ZEBRA population [bit]", attrgetter("population"), TERMINAL, ".3f"),
    TableColumn("linkability", attrgetter("linkability_all"), TERMINAL, ".2f"),
    TableColumn("n_target", attrgetter("n_target"), CSV),
    TableColumn("n_nontarget", attrgetter("n_nontarget"), CSV),
)
"""The columns of the results, in their order."""


def columns_of(table: tuple[str, ...], outcomes: Sequence[Outcome] = ()) -> list[TableColumn]:
    """Return the columns that a table shows for these outcomes."""
    return [column for column in COLUMNS if {*table} & {*column.tables} and column.shown(outcomes)]


def table_rows(table: tuple[str, ...], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return a row for each outcome, by column name: texts, or for `TERMINAL` and `CSV` values, None if unknown."""
    columns, texts = columns_of(table, outcomes), table in (FIGURES, GLANCE)
    return [{column.name: column.text(one) if texts else column.number(one) for column in columns} for one in outcomes]


def format_outcomes(outcomes: Sequence[Outcome]) -> str:
    """Return the table that a run shows at its end."""
    forms = {column.name: str(column.form) for column in columns_of(TERMINAL, outcomes)}
    return format_table(table_rows(TERMINAL, outcomes), forms)


def attacker_rows(results: Results) -> Rows:
    """Return a row for each attacker of each data set and sex, with its EER in percent in each scenario."""
    scenarios = dict.fromkeys(name for dataset in results.datasets() for name in results.scenarios(dataset))
    return [
        {"Dataset": dataset, "Speakers": GENDERS.get(gender, gender), "Attacker": attacker}
        | {name: written(results.eer(dataset, gender, name, attacker).in_percent, ".1f") for name in scenarios}
        for dataset in results.datasets()
        for gender in results.genders(dataset)
        for attacker in results.attackers(dataset)
    ]


def format_markdown(results: Results) -> str:
    """Return all tables as Markdown."""
    parts = ["# Results" + (f" of {escape_markdown(results.name)}" if results.name else "")]
    if results.verdict:
        parts.append(escape_markdown(results.verdict))
    for title, rows in _tables(results):
        parts += [f"## {title}", format_table(rows, markdown=True)]
    parts.append("EER from the ROC convex hull, in percent, with its interval in brackets; 50 is chance.")
    if any(outcome.draws for outcome in results.outcomes):
        parts.append(_LEGEND)
    return "\n\n".join(parts) + "\n"


def format_latex(results: Results) -> str:
    r"""Return all tables as LaTeX for ``\input``, which needs no packages; see `format_markdown`."""
    texts = {column.name for column in COLUMNS if not column.form}
    found = _tables(results)
    return "\n".join(f"% {title}\n{latex_table(list(rows[0]), rows, texts)}" for title, rows in found)


def latex_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], texts: Collection[str]) -> str:
    """Lay out rows as a ``tabular``, with the columns in `texts` aligned to the left and numbers to the right."""
    cells = [columns, *([str(row.get(name, "")) for name in columns] for row in rows)]
    lines = [" & ".join(map(escape, line)) + r" \\" for line in cells]
    kinds = "".join("l" if name in texts else "r" for name in columns)
    body = [rf"\begin{{tabular}}{{{kinds}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"]
    return "\n".join([*body, r"\end{tabular}"]) + "\n"


def _tables(results: Results) -> list[tuple[str, Rows]]:
    several = any(outcome.draws for outcome in results.outcomes)
    tables = [
        ("At a glance", table_rows(GLANCE, main_outcomes(results.outcomes)) if several else []),
        ("Strongest attacker of each scenario", table_rows(FIGURES, results.outcomes)),
        ("EER of each attacker", attacker_rows(results)),
    ]
    return [(title, rows) for title, rows in tables if rows]
