"""The middle of the page: plots, speakers, and what anonymisation costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.reports.page.figures import curve_plots, speakers_plot, utility_plots
from evaluation.reports.page.markup import Html, element, join
from evaluation.reports.page.numbers import SPACE, cell, count, decimal, interval, percent
from evaluation.reports.page.tables import Row, table
from evaluation.reports.page.utility import Value, values_of
from evaluation.reports.page.verdict import place_of
from evaluation.reports.privacy_results import GENDERS, Condition, Results, as_number

WORST_SHOWN = 10
FOUND_ALWAYS = 0.9
_SPEAKER_COLUMNS = (
    "Speaker",
    "Mean linkability",
    "0 (never found) to 1 (always)",
    "Mean rank",
    "Equal error rate",
    "Sex",
    "Own trials",
)


def curves(results: Results, folder: Path) -> Html:
    """Build the section of plots."""
    parts = []
    for number, dataset in enumerate(results.datasets(), 1):
        for other, gender in enumerate(results.main_genders(dataset), 1):
            drawn = curve_plots(results, dataset, gender, folder, f"curves-{number}-{other}")
            parts += [element("h3", place_of(dataset, gender)), drawn]
    lead = (
        "The strongest attacker of each scenario at every threshold, prior suspicion and number of enrolled speakers."
    )
    if any(len(outcome.beside.draws) > 1 for outcome in results.outcomes):
        lead += " Curves of scores are those of the first draw."
    body = [element("h2", "Curves"), element("p", lead, class_="lead"), parts]
    return element("section", body, id="curves", class_="newpage")


def speakers(results: Results) -> Html | None:
    """Build the section of the speakers, the worst-off of each data set first."""
    parts = []
    for number, dataset in enumerate(results.datasets(), 1):
        for other, gender in enumerate(results.main_genders(dataset), 1):
            worst = results.worst(dataset, gender)
            if worst is not None and worst.condition.speakers:
                panel = _speakers(worst.condition, f"speakers-{number}-{other}")
                parts += [element("h3", place_of(dataset, gender)), panel]
    if not parts:
        return None
    lead = (
        "Averages hide people: most speakers may be protected and a few fully exposed. Shown for the scenario and the "
        "attacker that leave the least privacy."
    )
    body = [element("h2", "Worst-off speakers"), element("p", lead, class_="lead"), parts]
    return element("section", body, id="speakers", class_="newpage")


def utility(results: Results) -> Html | None:
    """Build the section on what anonymisation costs."""
    values = values_of(results)
    if not values:
        return None
    rows = [(", ".join([value.measure.name, *value.place]), [_amount(value)]) for value in values]
    lead = "What anonymisation leaves of the use of the speech. Silence would be perfectly private."
    return element(
        "section",
        element("h2", "Privacy against utility"),
        element("p", lead, class_="lead"),
        element("div", utility_plots(results), class_="plots"),
        table(["Measure", "Value"], [(None, rows)], caption="Measures of utility", kind="plain", numbers=(1,)),
        id="utility",
    )


def _speakers(condition: Condition, name: str) -> Html:
    """One data set: how many are found nearly always, a plot of all, and the worst-off by name."""
    rows = sorted(condition.speakers, key=_exposure)
    known = [value for row in rows if not math.isnan(value := as_number(row.get("linkability_mean")))]
    text = f"{condition.scenario.capitalize()}, {condition.attacker}."
    if known:
        n_found = sum(value > FOUND_ALWAYS for value in known)
        share = f"(mean linkability above {FOUND_ALWAYS:g})"
        text += f" {count(n_found)} of {count(len(known))} speakers are found nearly always {share}."
    worst = rows[:WORST_SHOWN]
    title = "All speakers" if len(worst) == len(rows) else f"The {len(worst)} worst-off of {count(len(rows))} speakers"
    made = table(
        _SPEAKER_COLUMNS,
        [(None, [_speaker_row(speaker) for speaker in worst])],
        caption=f"{title}, the most exposed first",
        label=f"{place_of(condition.dataset, condition.gender)}: worst-off speakers",
        numbers=(1, 3, 4, 6),
        classes={2: "wide optional", 6: "optional"},
    )
    plot = speakers_plot(condition, name)
    return join([element("p", text), made, element("div", plot, class_="plots") if plot is not None else None])


def _speaker_row(speaker: Mapping[str, Any]) -> Row:
    value, rank, eer, n_target = (
        as_number(speaker.get(name)) for name in ("linkability_mean", "rank", "eer", "n_target")
    )
    sex = str(speaker.get("gender") or "")
    width = 100 * min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
    meter = element("span", element("span", style=f"width:{width:.4g}%"), class_="meter", aria_hidden="true")
    exposed = [cell(decimal(value)), meter, cell(count(rank)), cell(percent(eer))]
    return str(speaker.get("speaker", "")), [*exposed, GENDERS.get(sex, sex), cell(count(n_target))]


def _exposure(speaker: Mapping[str, Any]) -> tuple[float, float, str]:
    """Order of speakers: the highest linkability first, then the lowest EER; unknown ones last."""
    value, eer = as_number(speaker.get("linkability_mean")), as_number(speaker.get("eer"))
    return (1.0 if math.isnan(value) else -value, 1.0 if math.isnan(eer) else eer, str(speaker.get("speaker", "")))


def _amount(value: Value) -> Html:
    figure = value.figure
    if value.measure.percent:
        return cell(percent(figure.value), interval(figure))
    ends = f"{decimal(figure.low, 3)} to{SPACE}{decimal(figure.high, 3)}" if figure.has_interval else ""
    return cell(decimal(figure.value, 3), ends)
