"""The form of numbers and names in tables and pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.reports.conditions import GENDERS, Condition
from evaluation.reports.outcomes import Outcome
from evaluation.reports.rows import number
from evaluation.trials import REVERSAL
from evaluation.uncertainty import Interval

MISSING = "n/a"
SPACE = "\N{NO-BREAK SPACE}"
DASH = "\N{EN DASH}"

SCENARIO_NAMES = {
    "original": "Original\N{NO-BREAK SPACE}speech",
    "ignorant": "Ignorant",
    REVERSAL: "Reversal",
    "lazy-informed": "Lazy\N{NON-BREAKING HYPHEN}informed",
    "semi-informed": "Semi\N{NON-BREAKING HYPHEN}informed",
}

_BREAK = re.compile(r"(?<=\d) (?=(%|points?\b|bit\b))")
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# --- names ------------------------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Replace characters that neither HTML nor SVG can hold: control characters and lone surrogates."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def short(name: str, most: int = 60) -> str:
    """Shorten a name that is too long for a plot or a heading."""
    name = printable(name)
    if len(name) <= most:
        return name
    return name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def name_list(dataset: str, gender: str) -> str:
    """Name a data set, with the sex unless all speakers are pooled."""
    if gender == "all":
        return short(dataset)
    return f"{short(dataset)}, {short(GENDERS.get(gender, gender))}"


def scenario_name(scenario: str) -> str:
    """Return the heading of a scenario."""
    return SCENARIO_NAMES.get(scenario, short(scenario))


def unbroken(text: str) -> str:
    """Keep numbers on one line with their units.

    Examples
    --------
    >>> unbroken("1.9 % of 70 trials")
    '1.9\\xa0% of 70 trials'
    """
    return _BREAK.sub(SPACE, text)


# --- numbers ----------------------------------------------------------------------------------------------------------


def percent(share: float, decimals: int = 1) -> str:
    """Write a share in per cent.

    Examples
    --------
    >>> percent(0.1234), percent(0.5, 2), percent(math.nan)
    ('12.3 %', '50.00 %', 'n/a')
    """
    return f"{100 * share:z.{decimals}f} %" if math.isfinite(share) else MISSING


def decimal(value: Any, decimals: int = 2) -> str:
    """Write a number with decimals, infinity as a sign, and NaN as n/a."""
    value = number(value)
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    return f"{value:z.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def count_of(value: Any) -> str:
    """Write a whole number with separators of thousands.

    Examples
    --------
    >>> count_of(12345.0), count_of(2.5), count_of(None)
    ('12,345', '2.5', 'n/a')
    """
    value = number(value)
    if math.isfinite(value) and value == round(value):
        return f"{value:,.0f}"
    return decimal(value, 1)


def counts_of(row: Condition | Outcome, words: Mapping[str, str]) -> list[str]:
    """Write the known counts of a row with their nouns."""
    counts = []
    for name, noun in words.items():
        count = getattr(row, name)
        if not math.isnan(count):
            counts.append(f"{count_of(count)} {noun}")
    return counts


def decimal_ends(figure: Interval, decimals: int, between: str = DASH) -> str:
    """Write the ends of an interval; return "" without an interval."""
    if not figure.has_interval:
        return ""
    return decimal(figure.low, decimals) + between + decimal(figure.high, decimals)


def ends(share: Interval) -> str:
    """Write the interval of a share in per cent; return "" without an interval.

    Examples
    --------
    >>> ends(Interval(0.2, 0.125, 0.3))
    '12.5–30.0\\xa0%'
    """
    if not share.has_interval:
        return ""
    return f"{decimal_ends(share.in_percent, 1)}{SPACE}%"


def seconds(value: Any) -> str:
    """Write a duration.

    Examples
    --------
    >>> [seconds(value) for value in (0.034, 12.34, 75, 7384)]
    ['0.03 s', '12.3 s', '1 min 15 s', '2 h 3 min']
    """
    value = number(value)
    if value < 1:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def leaves(block: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested names, joined by dots, with their values as text."""
    for name, value in block.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{start}{name}.")
        elif isinstance(value, str):
            yield f"{start}{name}", value
        elif isinstance(value, list) and not any(
            isinstance(entry, (list, Mapping)) for entry in value
        ):
            yield f"{start}{name}", ", ".join(map(str, value)) or "none"
        else:
            yield f"{start}{name}", json.dumps(value, ensure_ascii=False)
