"""The upper part of the page: the verdict, what each scenario gives, and all attackers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from evaluation.metrics import ceiling_note
from evaluation.reports.page.averages import SCENARIO_NAMES
from evaluation.reports.page.beside import also, in_short, lines_beside, named, of_closed_set
from evaluation.reports.page.markup import Html, element, join
from evaluation.reports.page.numbers import DASH, MISSING, SPACE, cell, count, decimal, interval, percent, unbroken
from evaluation.reports.page.tables import Cell, Row, table
from evaluation.reports.page.verdict import (
    CHANCE,
    TARGETS,
    Headline,
    badge,
    headlines,
    judged_by,
    perfect,
    place_of,
    plainly,
    reach,
    sentence,
    word_of,
)
from evaluation.reports.privacy_results import GENDERS, Outcome, Results, as_number, find
from evaluation.uncertainty import Interval

_SIMULATED = "SIMULATED speech: synthetic voices, from which nothing follows about the voices of people."
_ATTACKERS = {
    "gmm-ubm": "the log-likelihood ratio of a mixture adapted to the speaker and one of all voices",
    "gmm-svm": "a support vector machine for each speaker, on the adapted means of a mixture (supervectors)",
    "supervector-cosine": "the angle between projected supervectors of the two recordings",
}
_BROUGHT_ALONG = "an attacker or a setting of the user, which the configuration describes"
_WARNING = "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}"


def verdict(results: Results) -> Html:
    """Build the head of the page."""
    found = headlines(results)
    words, level = badge(results, found)
    cards = [
        element(
            "li",
            _card(headline, results.level, perfect(results, headline)),
            class_=f"card {_level_class(headline.word[1] if headline.anonymised else None)}",
        )
        for headline in found
    ]
    return element(
        "header",
        element("p", "Voice privacy report", class_="eyebrow"),
        element("h1", f"Anonymiser: {results.name}" if results.name else "Speaker recognition by an attacker"),
        element("p", words, class_="stamp"),
        element("p", _SIMULATED, class_="alerts") if _hides_simulation(results) else None,
        element("p", unbroken(sentence(results, found)), class_="sentence"),
        element("ul", cards, _against(results, found[0]), class_="cards", role="list") if cards else None,
        _alerts(results),
        element("p", _who_attacked(results), class_="soft") if _who_attacked(results) else None,
        element("p", _explanation(results, anonymised=any(headline.anonymised for headline in found)), class_="soft")
        if found
        else None,
        class_=f"verdict {_level_class(level)}",
    )


def scenarios(results: Results) -> Html:
    """Build the section that shows the strongest attacker of each scenario."""
    columns = [
        "Scenario",
        "Strongest attacker",
        "Equal error rate",
        f"0{SPACE}% (no privacy) to 50{SPACE}% (guessing)",
        "Disclosure on average",
        "Worst case",
        "Found among all enrolled",
        "Closed set",
    ]
    parts = []
    for dataset in results.datasets():
        for gender in results.main_genders(dataset):
            place = place_of(dataset, gender)
            rows = [_row(outcome) for outcome in results.outcomes_of(dataset, gender)]
            made = table(
                columns,
                [(None, rows)],
                caption="Result of each scenario: that of its strongest attacker",
                label=f"{place}: result of each scenario",
                kind="stack",
                numbers=(2, 4, 5, 6, 7),
                classes={3: "wide"},
            )
            parts += [element("h3", place), made]
    lead = (
        "In each scenario the attacker that leaves the least privacy counts. From top to bottom attackers know more, "
        "so the equal error rate should fall; on original speech it should be near 0, or the attackers are too weak to "
        "prove anything. In a closed set the attacker knows that the speaker is one of the enrolled, and centres the "
        "scores of each utterance over them: its error rate, and how often it names the right speaker, are those of "
        "the attacker that does best there."
    )
    heading = element("h2", "What each scenario gives")
    return element("section", heading, element("p", lead, class_="lead"), parts, id="scenarios")


def attackers(results: Results) -> Html:
    """Build the section with all attackers in all scenarios."""
    parts = []
    for dataset in results.datasets():
        names = results.scenarios(dataset)
        columns = ["Attacker", *(SCENARIO_NAMES.get(name, name) for name in names)]
        groups = [
            (_group_name(results, dataset, gender), list(_attacker_rows(results, dataset, gender, names)))
            for gender in results.genders(dataset)
        ]
        made = table(
            columns,
            groups,
            caption="Equal error rate, with its interval below, by attacker and scenario",
            label=f"{dataset}: equal error rate by attacker and scenario",
            kind="stack",
            numbers=tuple(range(1, len(columns))),
        )
        parts += [element("h3", dataset), made]
    lead = "Equal error rates of every attacker. The strongest of each scenario is marked; its figure is the result."
    run = dict.fromkeys(name for dataset in results.datasets() for name in results.attackers(dataset))
    given = results.block("attackers_run").get("explained")
    words = {**_ATTACKERS, **(given if isinstance(given, Mapping) else {})}
    explained = [element("li", element("strong", name), f": {words.get(name, _BROUGHT_ALONG)}.") for name in run]
    heading = element("h2", "Attackers and scenarios")
    lines = element("ul", explained, class_="explained")
    return element("section", heading, element("p", lead, class_="lead"), lines, parts, id="attackers")


def ruler(eer: Interval, *, original: Interval | None = None, judged: bool = True) -> Html:
    """Show an EER on the way from 0 to chance, with its interval, and that of the original speech as a ring.

    The colour is that of its level of protection, unless it is not to be judged.
    """
    parts = [element("span", class_="track")]
    parts += [element("span", class_="tick", style=f"left:{_share(target)}") for target in TARGETS]
    if eer.has_interval:
        width = min(eer.high, CHANCE) - max(eer.low, 0.0)
        parts.append(element("span", class_="span", style=f"left:{_share(eer.low)};width:{_share(width)}"))
    if original is not None and original.known:
        parts.append(element("span", class_="ring", style=f"left:{_share(original.value)}"))
    if eer.known:
        parts.append(element("span", class_="dot", style=f"left:{_share(eer.value)}"))
    level = word_of(eer)[1] if eer.known and judged else None
    return element("span", parts, class_=f"ruler {_level_class(level)}", aria_hidden="true")


def _hides_simulation(results: Results) -> bool:
    return results.raw.get("simulated") is True and "SIMULATED" not in results.verdict


def _card(headline: Headline, level: float, at_best: str) -> Html:
    """One data set: its number, where it lies between no privacy and guessing, and what that means."""
    eer, ends = headline.worst.eer, interval(headline.worst.eer)
    title = f"{100 * level:g}{SPACE}% interval" if math.isfinite(level) else "interval"
    details = f"Strongest attacker: {headline.worst.attacker}, {headline.worst.scenario}."
    if headline.anonymised and headline.original.known:
        details += f" Without anonymisation: {percent(headline.original.value)}."
    start, end = ([f"{share}{SPACE}%", element("br"), word] for share, word in ((0, "no privacy"), (50, "guessing")))
    return join(
        [
            element("p", headline.who, class_="who"),
            element(
                "p",
                percent(eer.value),
                element("span", " equal error rate", class_="hidden"),
                " ",
                element("small", f"{title} {ends}" if ends else "no interval"),
                class_="rate",
            ),
            ruler(eer, original=headline.original if headline.anonymised else None, judged=headline.anonymised),
            element("span", element("span", start), element("span", end), class_="scale", aria_hidden="true"),
            element("p", element("strong", plainly(headline))),
            element("p", details),
            *(element("p", line) for line in lines_beside(headline.worst)),
            element("p", tested) if (tested := _tested(headline.worst)) else None,
            element("p", at_best, class_="soft") if at_best else None,
            *(element("p", line, class_="soft") for line in (judged_by(headline), reach(headline)) if line),
        ]
    )


def _against(results: Results, headline: Headline) -> Html | None:
    """Original against anonymised: all scenarios of the data set that leaves the least privacy, one ruler each."""
    worst = headline.worst
    outcomes = [outcome for outcome in results.outcomes_of(worst.dataset, worst.gender) if outcome.eer.known]
    if len(outcomes) < 2:
        return None
    rows = [
        element(
            "li",
            element("span", SCENARIO_NAMES.get(outcome.scenario, outcome.scenario)),
            element("strong", percent(outcome.eer.value)),
            ruler(outcome.eer, judged=outcome.scenario != "original"),
            element("small", short) if (short := in_short(outcome)) else None,
        )
        for outcome in outcomes
    ]
    return element(
        "li",
        element("p", f"Original against anonymised: {headline.who}", class_="who"),
        element("p", "Equal error rate of the strongest attacker, the less informed ones first.", class_="soft"),
        element("ul", rows, class_="against", role="list"),
        class_=f"card {_level_class(None)}",
    )


def _tested(worst: Outcome) -> str:
    """On how much the result hangs."""
    words = {"n_enrolled": "enrolled speakers", "n_target": "target trials"}
    counts = {noun: as_number(worst.condition.values.get(name)) for name, noun in words.items()}
    known = [f"{count(number)} {noun}" for noun, number in counts.items() if math.isfinite(number)]
    return f"Measured on {' and '.join(known)}." if known else ""


def _explanation(results: Results, *, anonymised: bool) -> str:
    targets = ", ".join(f"{100 * target:g}" for target in TARGETS[:-1]) + f" and {100 * TARGETS[-1]:g}{SPACE}%"
    ring = ", the ring the speech without anonymisation" if anonymised else ""
    choice = (
        "The strongest attacker was chosen on these very trials, which makes privacy look worse rather than better."
    )
    summary = results.raw.get("summary")
    if isinstance(summary, list) and any(isinstance(row, Mapping) and row.get("minimum") for row in summary):
        choice = "The interval counts in that the strongest attacker and scenario were chosen on these very trials."
    return (
        "The number is the equal error rate: asked whether two recordings come from one speaker, the attacker is wrong "
        f"that often. The dot is the result, the bar its interval{ring}. The words very weak, weak, moderate, good and "
        f"strong part at {targets}, the minimum targets of the VoicePrivacy Challenge 2024, which were set "
        "for a neural attacker (ECAPA-TDNN trained on anonymised speech); which of them hold is what the interval of "
        "the smallest rate says, over all attackers, scenarios, lists (women, men, pooled), open and closed sets, and "
        "data sets; more than two are none. A reversible change whose key is public is not seen by these attackers. "
        f"{choice}"
    )


def _who_attacked(results: Results) -> str:
    """Which attackers were run, in the words of the results."""
    text = results.block("attackers_run").get("text")
    return text if isinstance(text, str) else ""


def _alerts(results: Results) -> Html | None:
    warnings = [name or text for level, name, text in results.sanity if level in ("error", "warning")]
    if not warnings:
        return None
    words = "1 warning bears" if len(warnings) == 1 else f"{len(warnings)} warnings bear"
    summary = ", ".join(dict.fromkeys(warnings[:4])) + (", \N{HORIZONTAL ELLIPSIS}" if len(warnings) > 4 else "")
    link = element("a", f"{words} on this verdict", href="#checks")
    return element("p", f"{_WARNING} ", link, f": {summary}", class_="alerts")


def _row(outcome: Outcome) -> Row:
    among = f"of {count(outcome.n_enrolled)}" if outcome.linkability.known and math.isfinite(outcome.n_enrolled) else ""
    if among and outcome.n_enrolled < as_number(outcome.condition.values.get("n_enrolled")):
        among += ", of their sex"  # where there are no trials across the sexes
    bits = decimal(outcome.population.value, 3)
    category = f"category {outcome.tag}" if outcome.tag else ""
    ceiling = as_number(find(outcome.condition.values, "zebra.individual_ceiling"))
    if category and (note := ceiling_note(outcome.individual.value, ceiling)):
        category += f", {note}"
    ends = (decimal(end, 3) for end in (outcome.population.low, outcome.population.high))
    return (
        SCENARIO_NAMES.get(outcome.scenario, outcome.scenario),
        [
            outcome.attacker,
            join(
                [
                    cell(
                        percent(outcome.eer.value),
                        interval(outcome.eer) or ("no interval" if outcome.eer.known else ""),
                    ),
                    *also(outcome),
                ]
            ),
            ruler(outcome.eer, judged=outcome.scenario != "original"),
            cell(
                bits if bits == MISSING else f"{bits}{SPACE}bit",
                DASH.join(ends) if outcome.population.has_interval else "",
            ),
            cell(decimal(outcome.individual.value), category),
            named(outcome) or cell(percent(outcome.linkability.value, 0), among),
            of_closed_set(outcome),
        ],
    )


def _attacker_rows(results: Results, dataset: str, gender: str, names: Sequence[str]) -> Iterator[Row]:
    strongest = {outcome.scenario: outcome.attacker for outcome in results.outcomes_of(dataset, gender)}
    for attacker in results.attackers(dataset):
        cells: list[Cell] = []
        for scenario in names:
            eer = results.eer(dataset, gender, scenario, attacker)
            content = cell(percent(eer.value), interval(eer))
            if strongest.get(scenario) == attacker and eer.known:
                cells.append(Cell(join([content, element("span", "strongest", class_="mark")], " "), "strongest"))
            else:
                cells.append(Cell(content))
        yield attacker, cells


def _group_name(results: Results, dataset: str, gender: str) -> str:
    """Name the speakers, with the numbers of trials where all conditions agree on them."""
    rows = [
        condition.values
        for condition in results.conditions
        if (condition.dataset, condition.gender) == (dataset, gender)
    ]
    words = {"n_enrolled": "enrolled", "n_target": "target trials", "n_nontarget": "nontarget trials"}
    parts = []
    for name, noun in words.items():
        numbers = {as_number(row.get(name)) for row in rows}
        if len(numbers) == 1 and math.isfinite(number := numbers.pop()):
            parts.append(f"{count(number)} {noun}")
    heading = GENDERS.get(gender, gender).capitalize()
    return f"{heading} ({', '.join(parts)})" if parts else heading


def _level_class(level: int | None) -> str:
    return "level-none" if level is None else f"level-{level}"


def _share(eer: float) -> str:
    """Place of an EER on the ruler."""
    return f"{100 * min(max(eer, 0.0), CHANCE) / CHANCE:.4g}%"
