"""Several anonymisers in one page: side by side first, then each by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.reports.page import summary
from evaluation.reports.page.document import page_of
from evaluation.reports.page.figures import compared_curves
from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import MISSING, SPACE, cell, decimal, interval, percent
from evaluation.reports.page.tables import Row, table
from evaluation.reports.page.verdict import Headline, headlines, place_of, short
from evaluation.reports.privacy_results import GENDERS, Results, as_number, parse_results
from spkbase.errors import DataError
from spkbase.files import write_text


def write_comparison(sources: Sequence[tuple[Mapping[str, Any], str | Path]], path: str | Path) -> None:
    """Write one page of several privacy evaluations; see `render_comparison`.

    Raises
    ------
    DataError
        If results are malformed, there are fewer than two, or the file cannot be written.
    """
    write_text(path, render_comparison(sources))


def render_comparison(sources: Sequence[tuple[Mapping[str, Any], str | Path]]) -> str:
    """Return a page that shows anonymisers side by side, as text; the same input gives the same bytes.

    Parameters
    ----------
    sources : sequence of (mapping, path)
        Results as ``results.json`` holds them, with the folder where their paths start. Those of one name are told
        apart by numbers.
    """
    if len(sources) < 2:
        raise DataError(f"expected results of at least 2 anonymisers to compare, got {len(sources)}")
    systems = list(zip(_names([parse_results(raw) for raw, _ in sources]), sources, strict=True))
    parsed = {name: parse_results(raw) for name, (raw, _) in systems}
    places = list(
        dict.fromkeys(
            (dataset, gender)
            for results in parsed.values()
            for dataset in results.datasets()
            for gender in results.main_genders(dataset)
        )
    )
    folders = {name: Path(folder) for name, (_, folder) in systems}
    sections = [_side_by_side(parsed, list(dict.fromkeys(dataset for dataset, _ in places)))]
    for number, place in enumerate(places, 1):
        worst = {name: outcome for name, results in parsed.items() if (outcome := results.worst(*place)) is not None}
        drawn = compared_curves(worst, folders, place_of(*place), f"together-{number}")
        heading = element("h2", f"Curves of all: {place_of(*place)}")
        sections.append(element("section", heading, drawn, id=f"together-{number}"))
    for number, (name, results) in enumerate(parsed.items(), 1):
        parts = [summary.verdict(results), summary.scenarios(results), summary.attackers(results)]
        own = [Html(re.sub(r' (id|href)="(#?)(?=[a-z])', rf' \1="\2system-{number}-', str(part))) for part in parts]
        own[0] = Html(str(own[0]).replace(f'href="#system-{number}-checks"', f'href="#system-{number}"'))
        sections.append(element("div", own, id=f"system-{number}", aria_label=name))
    links = [
        element("li", element("a", name, href=f"#system-{number}")) for number, name in enumerate(parsed, 1)
    ]  # fmt: skip
    origin = "Made by spkver from the results of each anonymiser, whose own pages say more. This page loads nothing."
    return page_of("Voice privacy: anonymisers compared", sections[:1], links, sections[1:], origin)


def _names(results: Sequence[Results]) -> list[str]:
    names = [found.name or "no anonymiser" for found in results]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    ]


def _side_by_side(parsed: Mapping[str, Results], datasets: Sequence[str]) -> Html:
    """Build the head: a table of all, the most private first, for each data set."""
    parts = []
    for dataset in datasets:
        rows: list[tuple[float, Row]] = []
        for name, results in parsed.items():
            headline = next((found for found in headlines(results) if found.worst.dataset == dataset), None)
            eer = -1.0 if headline is None else headline.judged.value
            rows.append((-eer, (name, _cells(headline))))
        made = table(
            ["Anonymiser", "Protection", "Equal error rate", f"0{SPACE}% (no privacy) to 50{SPACE}% (guessing)",
             "Strongest attacker", "Without anonymisation", "Disclosure on average"],
            [(None, [row for _, row in sorted(rows, key=lambda row: row[0])])],
            caption="The strongest attacker in the scenario that leaves the least privacy; the most private first",
            label=f"{short(dataset)}: anonymisers side by side",
            kind="stack",
            numbers=(2, 5, 6),
            classes={3: "wide"},
        )  # fmt: skip
        parts += [element("h3", short(dataset)), made]
    lead = (
        "The same attackers and trials make figures comparable; intervals that overlap widely need not differ. The "
        "ring on each ruler is the speech without anonymisation."
    )
    unlike = unlike_in(parsed)
    return element(
        "header",
        element("p", "Voice privacy report", class_="eyebrow"),
        element("h1", f"{len(parsed)} anonymisers side by side"),
        element("p", lead, class_="lead"),
        element("p", element("b", "Not measured alike. "), " ".join(unlike), class_="alerts") if unlike else "",
        parts,
        class_="verdict level-none",
    )


def unlike_in(parsed: Mapping[str, Results]) -> list[str]:
    """Return a sentence for each way in which evaluations were not made alike, so that their figures may not compare.

    Looked at are, for each data set that several of them have, attackers, scenarios, and numbers of enrolled speakers
    and trials; how many versions of the training speech the semi-informed attacker learnt from; whether speech is
    simulated. What results do not say is not compared.
    """
    found = []
    for dataset in dict.fromkeys(name for results in parsed.values() for name in results.datasets()):
        sharing = {name: results for name, results in parsed.items() if dataset in results.datasets()}
        found += [
            _said(f"Attackers of {dataset}", {name: ", ".join(of.attackers(dataset)) for name, of in sharing.items()}),
            _said(f"Scenarios of {dataset}", {name: ", ".join(of.scenarios(dataset)) for name, of in sharing.items()}),
            _said(f"Trials of {dataset}", {name: _sizes(of, dataset) for name, of in sharing.items()}),
        ]
    draws = {name: as_number(results.block("anonymiser").get("training_draws")) for name, results in parsed.items()}
    versions = {name: f"{number:.0f}" for name, number in draws.items() if number == number}
    simulated = {name: "yes" if results.raw.get("simulated") else "no" for name, results in parsed.items()}
    found += [_said("Versions of the training speech", versions), _said("Simulated speech", simulated)]
    return [sentence for sentence in found if sentence]


def _said(what: str, values: Mapping[str, str]) -> str:
    """Say who has which value, where they differ; nothing where they do not."""
    known = {name: value for name, value in values.items() if value}
    return (
        f"{what}: {'; '.join(f'{name} {value}' for name, value in known.items())}."
        if len(set(known.values())) > 1
        else ""
    )


def _sizes(results: Results, dataset: str) -> str:
    """Say how large the lists of a data set are; all conditions of one sex have the same."""
    parts = []
    for gender in results.main_genders(dataset):
        row = next(row.values for row in results.conditions if (row.dataset, row.gender) == (dataset, gender))
        numbers = [as_number(row.get(name)) for name in ("n_enrolled", "n_target", "n_nontarget")]
        if all(number == number for number in numbers):
            parts.append("{:.0f} speakers, {:.0f} and {:.0f} trials".format(*numbers))
    return ", ".join(parts)


def _cells(headline: Headline | None) -> list[Any]:
    if headline is None:
        return [MISSING] * 6
    worst = headline.worst
    return [
        headline.word[0].removesuffix(" protection") if headline.anonymised else "Not anonymised",
        cell(percent(worst.eer.value), interval(worst.eer)),
        summary.ruler(
            worst.eer, original=headline.original if headline.anonymised else None, judged=headline.anonymised
        ),
        cell(
            worst.attacker,
            ", ".join([worst.scenario, *([GENDERS.get(worst.gender, "")] if worst.gender != "all" else [])]),
        ),
        cell(percent(headline.original.value)),
        cell(decimal(worst.population.value, 3)),
    ]
