"""What stands beside an equal error rate on the page: draws, levels of knowledge, the closed set, who is named."""

from __future__ import annotations

from collections.abc import Iterator

from evaluation.reports.beside import Figure
from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import MISSING, SPACE, cell, decimal, interval, percent
from evaluation.reports.privacy_results import Outcome
from evaluation.reports.privacy_schema import WHOLE_LIST


def lines_beside(outcome: Outcome) -> list[str]:
    """Return sentences for a card: draws, levels of knowledge, identification and the closed set; none unknown."""
    beside, lines = outcome.beside, []
    if each := _each_draw(outcome):
        lines.append(f"{each[0].upper()}{each[1:]}.")
    for level, figure in _other_levels(outcome).items():
        lists = " and ".join(map(str, beside.tested)) if level == WHOLE_LIST else ""
        of = f" (lists of {lists} recordings)" if lists else ""
        lines.append(f"{level.capitalize()} attackers{of}: {_spanned(figure)}, {figure.attacker}.")
    if beside.without_content.attacker not in ("", outcome.attacker):
        figure = beside.without_content
        lines.append(f"Without attackers that read what is said: {_spanned(figure)}, {figure.attacker}.")
    if beside.identification.attacker:
        share = percent(beside.identification.rate.value, 0)
        among = _candidates(outcome)
        who = _by(beside.identification, outcome)
        lines.append(f"Names the speaker of {share} of the utterances, first {among}{who}.")
    if beside.closed_set.attacker:
        rate = _spanned(beside.closed_set)
        lines.append(f"Closed set, equal error rate: {rate}{_by(beside.closed_set, outcome)}.")
    return lines


def in_short(outcome: Outcome) -> str:
    """Return identification and closed set in a few words, or nothing."""
    beside, parts = outcome.beside, []
    parts += [f"{level} {percent(figure.rate.value)}" for level, figure in _other_levels(outcome).items()]
    if beside.identification.attacker:
        parts.append(f"named {percent(beside.identification.rate.value, 0)}")
    if beside.closed_set.attacker:
        parts.append(f"closed set {percent(beside.closed_set.rate.value)}")
    return ", ".join(parts)


def also(outcome: Outcome) -> Iterator[Html]:
    """Yield what stands below an equal error rate in a table: the draws, and the levels of knowledge that differ."""
    if each := _each_draw(outcome):
        yield element("small", f" {each}")
    for level, figure in _other_levels(outcome).items():
        yield element("small", f" {level} {percent(figure.rate.value)} ({figure.attacker})")


def named(outcome: Outcome) -> Html | None:
    """Return the share of utterances whose speaker is named, with among how many and by whom; None if not known."""
    figure = outcome.beside.identification
    if not figure.attacker:
        return None
    return cell(percent(figure.rate.value, 0), f"first {_candidates(outcome)}{_by(figure, outcome)}")


def of_closed_set(outcome: Outcome) -> Html:
    """Return the equal error rate of the closed set with its interval."""
    figure = outcome.beside.closed_set
    if not figure.attacker:
        return cell(MISSING)
    return cell(percent(figure.rate.value), f"{interval(figure.rate)}{_by(figure, outcome)}")


def _other_levels(outcome: Outcome) -> dict[str, Figure]:
    """The strongest attackers of the levels of knowledge that the strongest of all does not have."""
    levels = outcome.beside.levels
    return {level: figure for level, figure in levels.items() if figure.attacker != outcome.attacker}


def _by(figure: Figure, outcome: Outcome) -> str:
    return "" if figure.attacker == outcome.attacker else f", {figure.attacker}"


def _each_draw(outcome: Outcome) -> str:
    rates = outcome.beside.draws
    if len(rates) < 2:
        return ""
    return f"mean of {len(rates)} draws: {', '.join(decimal(100 * rate, 1) for rate in rates)}{SPACE}%"


def _candidates(outcome: Outcome) -> str:
    least, most = outcome.beside.candidates
    if not most:
        return "among all enrolled"
    return f"of {most}" if least == most else f"of {least} to {most}"


def _spanned(figure: Figure) -> str:
    ends = interval(figure.rate)
    return f"{percent(figure.rate.value)} ({ends})" if ends else percent(figure.rate.value)
