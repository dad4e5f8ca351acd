"""Sections of the page on the strongest evidence and the ranks of owners, and on how alike voices are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.plots import plot_cmc, plot_similarity
from evaluation.reports.page.averages import SCENARIO_NAMES
from evaluation.reports.page.figures import drawn_figure
from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import DASH, SPACE, cell, decimal, percent
from evaluation.reports.page.tables import Row, table
from evaluation.reports.page.verdict import place_of, short
from evaluation.reports.privacy_results import Outcome, Results, as_number, interval_ends
from evaluation.uncertainty import Interval

_READINGS = ("pav", "gaussian", "student", "ranks")
_TOPS = (1, 2, 5)
_PICTURES = {
    "oo": ("original voices", "original", "original"),
    "oa": ("across", "original", "anonymised"),
    "aa": ("anonymised voices", "anonymised", "anonymised"),
}


def worst_cases(results: Results) -> Html | None:
    """Build the section on the strongest evidence in any trial, and on how often the owner is among the first."""
    parts = []
    for number, dataset in enumerate(results.datasets(), 1):
        for other, gender in enumerate(results.main_genders(dataset), 1):
            outcomes = results.outcomes_of(dataset, gender)
            rows = [_worst_row(outcome) for outcome in outcomes if _worst(outcome) or _shares(outcome)]
            if not rows:
                continue
            place = place_of(dataset, gender)
            made = table(
                ["Scenario", "Attacker", "Isotonic regression", "Gaussians", "Student's t", "Ranks",
                 *(f"Among the first {top}" for top in _TOPS)],
                [(None, rows)],
                caption="Largest |log10 LLR| of any trial, and how often the owner is among the first of the enrolled",
                label=f"{place}: worst case and ranks",
                kind="stack",
                numbers=tuple(range(2, 6 + len(_TOPS))),
            )  # fmt: skip
            parts += [element("h3", place), made, _cmc(outcomes, place, f"cmc-{number}-{other}")]
    if not parts:
        return None
    lead = (
        "The strongest evidence about one person that the strongest attacker of each scenario has. By isotonic "
        "regression it hangs on the number of trials at the end, by Gaussians on what is believed beyond them; "
        "Student's t believes less, and ranks only count."
    )
    return element(
        "section",
        element("h2", "Worst case and ranks"),
        element("p", lead, class_="lead"),
        parts,
        id="worst",
        class_="newpage",
    )


def voices(results: Results) -> Html | None:
    """Build the section on how alike voices are before and after, with the matrices as a picture."""
    entries = [entry for entry in _entries(results.raw.get("similarity")) if _number(entry, "deid").known]
    if not entries:
        return None
    parts: list[Html | None] = []
    for number, dataset in enumerate(results.datasets(), 1):
        rows = [_voice_row(entry) for entry in entries if entry.get("dataset") == dataset]
        if not rows:
            continue
        made = table(
            ["Speakers", "Scenario", "Attacker", "De-identification", "Gain of distinctiveness"],
            [(None, rows)],
            caption="De-identification (DeID) and gain of voice distinctiveness (G_VD)",
            label=f"{dataset}: voice similarity",
            kind="stack",
            numbers=(3, 4),
        )
        parts += [element("h3", short(dataset)), made]
        for other, gender in enumerate(results.main_genders(dataset), 1):
            shown = [entry for entry in entries if (entry.get("dataset"), entry.get("gender")) == (dataset, gender)]
            if shown:
                parts.append(_picture(shown[0], place_of(dataset, gender), f"voices-{number}-{other}"))
    lead = (
        "How alike the voices of speakers are to the strongest attacker that does not invert the anonymisation, on "
        "calibrated scores. "
        "De-identification is 1 where nobody is known again and 0 where nothing was hidden; the gain of voice "
        "distinctiveness is 0 dB where anonymised voices can be told apart as well as the original ones, and below 0 "
        "where they grow alike."
    )
    return element(
        "section", element("h2", "Voices"), element("p", lead, class_="lead"), parts, id="voices", class_="newpage"
    )


def _worst(outcome: Outcome) -> Mapping[str, Any]:
    worst = outcome.condition.values.get("worst_case")
    return worst if isinstance(worst, Mapping) else {}


def _shares(outcome: Outcome) -> list[float]:
    cmc = outcome.condition.values.get("cmc")
    shares = [as_number(share) for share in cmc] if isinstance(cmc, (list, tuple)) else []
    return shares if all(0 <= share <= 1 for share in shares) else []


def _worst_row(outcome: Outcome) -> Row:
    worst, shares = _worst(outcome), _shares(outcome)
    values = []
    for reading in _READINGS:
        found = worst.get(reading)
        values.append(cell(decimal(as_number(found.get("log10") if isinstance(found, Mapping) else None))))
    tops = [percent(shares[top - 1], 0) if top <= len(shares) else percent(math.nan) for top in _TOPS]
    name = SCENARIO_NAMES.get(outcome.scenario, outcome.scenario)
    return name, [short(outcome.attacker), *values, *map(cell, tops)]


def _cmc(outcomes: Sequence[Outcome], place: str, name: str) -> Html | None:
    curves = {
        f"{short(outcome.scenario)}, {short(outcome.attacker)}": shares
        for outcome in outcomes
        if len(shares := _shares(outcome)) > 1
    }
    if not curves:
        return None
    drawn = drawn_figure(
        lambda path: plot_cmc(curves, path=path, title=f"Owner among the first: {place}"),
        name,
        f"Cumulative match characteristic of {place}: one curve for each scenario.",
        "How often the speaker of an utterance is among the first r of all who are enrolled.",
    )
    return element("div", drawn, class_="plots")


def _entries(block: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(block, (list, tuple)):
        yield from (entry for entry in block if isinstance(entry, Mapping))


def _number(entry: Mapping[str, Any], name: str) -> Interval:
    found = entry.get(name)
    if not isinstance(found, Mapping):
        return Interval()
    return Interval(as_number(found.get("value")), *interval_ends(found))


def _voice_row(entry: Mapping[str, Any]) -> Row:
    deid, gain = _number(entry, "deid"), _number(entry, "gain_of_voice_distinctiveness")
    scenario = str(entry.get("scenario", ""))
    who = place_of(str(entry.get("dataset", "")), str(entry.get("gender", "")))
    cells = [SCENARIO_NAMES.get(scenario, scenario), short(str(entry.get("attacker", "")))]
    ends = f"{decimal(gain.low, 1)} to{SPACE}{decimal(gain.high, 1)}" if gain.has_interval else ""
    between = f"{decimal(deid.low)}{DASH}{decimal(deid.high)}" if deid.has_interval else ""
    return who, [*cells, cell(decimal(deid.value), between), cell(f"{decimal(gain.value)}{SPACE}dB", ends)]


def _picture(entry: Mapping[str, Any], place: str, name: str) -> Html | None:
    given = entry.get("matrices")
    matrices, speakers = _matrices(given if isinstance(given, Mapping) else {})
    if not matrices:
        return None
    names = {kind: _PICTURES[kind][0] for kind in matrices}
    drawn = drawn_figure(
        lambda path: plot_similarity(
            {names[kind]: cells for kind, cells in matrices.items()},
            speakers,
            path=path,
            title=f"Voice similarity: {place}",
            axes_names={names[kind]: _PICTURES[kind][1:] for kind in matrices},
        ),
        name,
        f"Voice similarity matrices of {place}.",
        "Each cell is how alike the voices of two speakers are. A light diagonal on dark ground: every voice is like "
        "itself alone. No diagonal across: nobody is known again.",
        "wide",
    )
    return element("div", drawn, class_="plots")


def _matrices(given: Mapping[str, Any]) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """The matrices that are whole, of the same speakers; others are left out."""
    found: dict[str, NDArray[np.float64]] = {}
    speakers: list[str] = []
    for kind in _PICTURES:
        matrix = given.get(kind)
        names = matrix.get("speakers") if isinstance(matrix, Mapping) else None
        rows = matrix.get("values") if isinstance(matrix, Mapping) else None
        if not isinstance(names, list) or not isinstance(rows, list) or (speakers and names != speakers):
            continue
        if len(rows) == len(names) and all(isinstance(row, list) and len(row) == len(names) for row in rows):
            found[kind] = np.array([[as_number(value) for value in row] for row in rows], np.float64)
            speakers = [str(speaker) for speaker in names]
    return found, speakers
