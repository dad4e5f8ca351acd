"""Tables of a privacy evaluation: the columns of the results, for terminal, CSV, Markdown, LaTeX and the page.

A new column is a row of `COLUMNS`; its number is a field of `evaluation.reports.results.Condition` or a metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from operator import attrgetter
from typing import Any

from evaluation.metrics import format_value
from evaluation.plots import escape
from evaluation.reports.conditions import GENDERS
from evaluation.reports.formatting import MISSING
from evaluation.reports.outcomes import AttackerRate, Outcome, main_outcomes
from evaluation.reports.results import Results
from evaluation.trials import LEVELS
from evaluation.uncertainty import Interval
from spkbase.files import escape_markdown, format_table

Rows = list[dict[str, str]]

TERMINAL = ("terminal",)
"""The table at the end of a run."""
CSV = ("CSV",)
"""The columns that results.csv adds to those of the challenge."""
FIGURES = ("all figures",)
"""All figures, in Markdown, LaTeX and on the page."""
GLANCE = ("at a glance",)
"""The main figures, in Markdown and LaTeX."""

_LEGEND = (
    f"{'; '.join(map(': '.join, LEVELS.items()))}. Identification: utterances whose speaker is"
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
        """Return the cell as text, a number with its interval in brackets."""
        value = self.read(outcome)
        if isinstance(value, str):
            return value or MISSING
        return written(value, self.form)

    def number(self, outcome: Outcome) -> Any:
        """Return the value of the cell, a text or a number; None if unknown."""
        value = self.read(outcome)
        if isinstance(value, Interval):
            value = value.value
        if isinstance(value, float) and math.isnan(value):
            return None
        return value


def written(value: float | Interval, form: str | Callable[[float], str]) -> str:
    """Write a number with its interval in brackets.

    Examples
    --------
    >>> written(Interval(12.34, 10, 20), ".1f"), written(0.5, ".2f"), written(Interval(), ".2f")
    ('12.3 [10.0, 20.0]', '0.50', 'n/a')
    """
    if not isinstance(value, Interval):
        value = Interval(value)
    return value.text(form, MISSING)


def _several_draws(outcomes: Sequence[Outcome]) -> bool:
    return any(len(outcome.draws) > 1 for outcome in outcomes)


def _single_draw(outcomes: Sequence[Outcome]) -> bool:
    return not _several_draws(outcomes)


def _has_strangers(outcomes: Sequence[Outcome]) -> bool:
    return any("impostors" in outcome.condition.metrics for outcome in outcomes)


def _is_one_of_levels(level: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether there are attackers with this level of knowledge, and others."""
    levels: set[str] = set()
    for outcome in outcomes:
        levels.update(outcome.levels)
    return level in levels and len(levels) > 1


def _dataset(outcome: Outcome) -> str:
    if outcome.gender == "all":
        return outcome.dataset
    return f"{outcome.dataset}, {_speakers(outcome)}"


def _speakers(outcome: Outcome) -> str:
    return GENDERS.get(outcome.gender, outcome.gender)


def _mean_of_draws(outcome: Outcome) -> str:
    mean = written(outcome.rate.in_percent, ".1f")
    if len(outcome.draws) < 2:
        return mean
    return f"{mean} ({len(outcome.draws)} draws)"


def _draws(outcome: Outcome) -> str:
    if len(outcome.draws) < 2:
        return ""
    return outcome.each_draw


def _level_rate(level: str, outcome: Outcome) -> float:
    if level not in outcome.levels:
        return math.nan
    return 100 * outcome.levels[level].eer.value


def _level_text(level: str, outcome: Outcome) -> str:
    return _with_attacker(outcome.levels.get(level), outcome)


def _closed_set_rate(outcome: Outcome) -> Interval:
    if outcome.closed_set is None:
        return Interval()
    return outcome.closed_set.eer.in_percent


def _closed_set_text(outcome: Outcome) -> str:
    return _with_attacker(outcome.closed_set, outcome)


def _with_attacker(rate: AttackerRate | None, outcome: Outcome) -> str:
    """Write a rate in per cent, with its attacker unless that is the strongest one."""
    if rate is None:
        return MISSING
    return f"{100 * rate.eer.value:.1f}{outcome.by_other(rate)}"


def _identified_share(outcome: Outcome) -> Interval:
    if outcome.identification is None:
        return Interval()
    return outcome.identification.share.in_percent


def _identified(outcome: Outcome) -> str:
    identified = outcome.identification
    if identified is None:
        return MISSING
    text = f"{100 * identified.share.value:.0f}{outcome.by_other(identified)}"
    if identified.candidates[1]:
        text += f" of {identified.among}"
    return text


def _metric(name: str, outcome: Outcome) -> float:
    return outcome.condition.metric(name).value


def _impostors(kind: str, outcome: Outcome) -> float:
    return 100 * float(outcome.condition.metrics.get("impostors", {}).get(kind, "nan"))


def _eer(end: str, outcome: Outcome) -> float:
    """Return the rate or an end of its interval in per cent, as the challenge rounds."""
    return round(100 * float(getattr(outcome.rate, end)), 3)


_RATE = attrgetter("rate.in_percent")

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
    TableColumn("strongest_of", lambda outcome: len(outcome.attackers), CSV),
    TableColumn("EER [%]", _RATE, TERMINAL, ".2f"),
    TableColumn("EER [%]", _RATE, FIGURES, ".1f"),
    TableColumn("EER [%]", _RATE, GLANCE, ".1f", _single_draw),
    TableColumn("EER [%], mean of draws", _mean_of_draws, GLANCE, ".1f", _several_draws),
    TableColumn("draws", lambda outcome: len(outcome.draws), CSV),
    TableColumn("EER_rocch", partial(_eer, "value"), CSV),
    TableColumn("low", partial(_eer, "low"), CSV),
    TableColumn("high", partial(_eer, "high"), CSV),
    TableColumn("low", attrgetter("rate.in_percent.low"), TERMINAL, ".2f"),
    TableColumn("high", attrgetter("rate.in_percent.high"), TERMINAL, ".2f"),
    TableColumn("draws", _draws, TERMINAL, shown=_several_draws),
    *(
        TableColumn(
            f"{level} [%]",
            partial(_level_rate, level),
            TERMINAL,
            ".2f",
            partial(_is_one_of_levels, level),
        )
        for level in LEVELS
    ),
    *(
        TableColumn(f"{level.capitalize()} [%]", partial(_level_text, level), GLANCE, ".1f")
        for level in LEVELS
    ),
    TableColumn("min Cllr", partial(_metric, "min_cllr"), FIGURES, ".3f"),
    TableColumn(
        "Population [bit]",
        lambda outcome: outcome.condition.metric("zebra.population"),
        FIGURES,
        format_value,
    ),
    TableColumn("Individual", partial(_metric, "zebra.individual"), FIGURES, format_value),
    TableColumn("Category", attrgetter("condition.tag"), FIGURES),
    TableColumn(
        "Linkability, all [%]", attrgetter("condition.found_among_all.in_percent"), FIGURES, ".0f"
    ),
    TableColumn("closed set [%]", _closed_set_rate, TERMINAL, ".2f"),
    TableColumn("identification [%]", _identified_share, TERMINAL, ".0f"),
    TableColumn("Identification [%]", _identified, GLANCE, ".0f"),
    TableColumn("Closed set, EER [%]", _closed_set_text, GLANCE, ".1f"),
    TableColumn(
        "Enrolled impostors, EER [%]",
        partial(_impostors, "enrolled"),
        FIGURES,
        ".1f",
        _has_strangers,
    ),
    TableColumn(
        "Strangers, EER [%]", partial(_impostors, "strangers"), FIGURES, ".1f", _has_strangers
    ),
    TableColumn("ZEBRA population [bit]", attrgetter("population"), TERMINAL, ".3f"),
    TableColumn("linkability", attrgetter("linkability_all"), TERMINAL, ".2f"),
    TableColumn("n_target", attrgetter("n_target"), CSV),
    TableColumn("n_nontarget", attrgetter("n_nontarget"), CSV),
)
"""The columns of the results, in their order."""


def columns_of(table: tuple[str, ...], outcomes: Sequence[Outcome] = ()) -> list[TableColumn]:
    """Return the columns that a table shows for these outcomes."""
    (name,) = table
    return [column for column in COLUMNS if name in column.tables and column.shown(outcomes)]


def table_rows(table: tuple[str, ...], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return a row for each outcome, by column name: texts, but values for `TERMINAL` and `CSV`, None if unknown."""
    cell = TableColumn.number
    if table in (FIGURES, GLANCE):
        cell = TableColumn.text
    rows = []
    columns = columns_of(table, outcomes)
    for outcome in outcomes:
        rows.append({column.name: cell(column, outcome) for column in columns})
    return rows


def format_outcomes(outcomes: Sequence[Outcome]) -> str:
    """Return the table that a run shows at its end."""
    forms = {column.name: str(column.form) for column in columns_of(TERMINAL, outcomes)}
    return format_table(table_rows(TERMINAL, outcomes), forms)


def attacker_rows(results: Results) -> Rows:
    """Return a row for each attacker of each data set and sex, with its EER in percent in each scenario."""
    rows = []
    datasets = results.datasets()
    scenarios = dict.fromkeys(chain.from_iterable(map(results.scenarios, datasets)))
    for dataset in datasets:
        for gender, attacker in product(results.genders(dataset), results.attackers(dataset)):
            row = {
                "Dataset": dataset,
                "Speakers": GENDERS.get(gender, gender),
                "Attacker": attacker,
            }
            for scenario in scenarios:
                row[scenario] = written(
                    results.eer(dataset, gender, scenario, attacker).in_percent, ".1f"
                )
            rows.append(row)
    return rows


def conversation_rows(results: Results) -> Rows:
    """Return a row for each scenario, list and number of recordings in a conversation; none without conversations."""
    by_utterances = results.by_utterances()
    rows = []
    for outcome in main_outcomes(results.outcomes):
        for number, outcomes in by_utterances.items():
            same = outcomes.get(outcome.identity)
            if same is None:
                continue
            row = {
                "Dataset": _dataset(same),
                "Scenario": same.scenario,
                "Recordings": str(number),
                "Strongest": same.strongest,
                "EER [%]": written(same.eer.in_percent, ".1f"),
                "Rank 1 [%]": written(_identified_share(same), ".0f"),
            }
            rows.append(row)
    return rows


def format_markdown(results: Results) -> str:
    """Return all tables as Markdown."""
    heading = "# Results"
    if results.name:
        heading += f" of {escape_markdown(results.name)}"
    parts = [heading]
    if results.verdict:
        parts.append(escape_markdown(results.verdict))
    for title, rows in _tables(results).items():
        parts += [f"## {title}", format_table(rows, markdown=True)]
    parts.append(
        "EER from the ROC convex hull, in percent, with its interval in brackets; 50 is chance."
    )
    if _has_draws(results):
        parts.append(_LEGEND)
    return "\n\n".join(parts) + "\n"


def format_latex(results: Results) -> str:
    r"""Return all tables as LaTeX for ``\input``, which needs no packages; see `format_markdown`."""
    texts = {column.name for column in COLUMNS if not column.form}
    tables = _tables(results)
    parts = []
    for title, rows in tables.items():
        parts.append(f"% {title}\n{latex_table(list(rows[0]), rows, texts)}")
    return "\n".join(parts)


def latex_table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], texts: Collection[str]
) -> str:
    """Lay out rows as a ``tabular``, with the columns in `texts` aligned to the left and numbers to the right."""
    lines = [_latex_line(columns)]
    for row in rows:
        lines.append(_latex_line([str(row.get(name, "")) for name in columns]))
    kinds = "".join("l" if name in texts else "r" for name in columns)
    body = [rf"\begin{{tabular}}{{{kinds}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"]
    return "\n".join([*body, r"\end{tabular}"]) + "\n"


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def _tables(results: Results) -> dict[str, Rows]:
    """Return the tables that have rows by their titles."""
    tables = {}
    if _has_draws(results):
        tables["At a glance"] = table_rows(GLANCE, main_outcomes(results.outcomes))
    if results.outcomes:
        tables["Strongest attacker of each scenario"] = table_rows(FIGURES, results.outcomes)
        tables["EER of each attacker"] = attacker_rows(results)
    spoken = conversation_rows(results)
    if spoken:
        tables["Several recordings of one speaker at once"] = spoken
    return tables


def _has_draws(results: Results) -> bool:
    return any(map(attrgetter("draws"), results.outcomes))
