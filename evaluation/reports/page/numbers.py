"""Numbers as the page shows them; what is not known is shown as n/a."""

from __future__ import annotations

import math
import re

from evaluation.reports.page.markup import Html, element, join
from evaluation.uncertainty import Interval

MISSING = "n/a"
SPACE = "\N{NO-BREAK SPACE}"
DASH = "\N{EN DASH}"
_BREAK = re.compile(r"(?<=\d) (?=(%|points?\b|bit\b))")


def percent(share: float, decimals: int = 1) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.1234), percent(float("nan"))
    ('12.3\\xa0%', 'n/a')
    """
    return f"{100 * share:.{decimals}f}{SPACE}%" if math.isfinite(share) else decimal(share)


def decimal(value: float, decimals: int = 2) -> str:
    """Return a number with decimals; infinite ones as a sign, NaN as n/a."""
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    return f"{value:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def unbroken(text: str) -> str:
    """Keep a number on one line with its unit.

    Examples
    --------
    >>> unbroken("1.9 % of 70 trials")
    '1.9\\xa0% of 70 trials'
    """
    return _BREAK.sub(SPACE, text)


def count(value: float) -> str:
    """Return a whole number, thousands apart.

    Examples
    --------
    >>> count(12345.0), count(2.5), count(float("nan"))
    ('12,345', '2.5', 'n/a')
    """
    return f"{value:,.0f}" if math.isfinite(value) and value == round(value) else decimal(value, 1)


def interval(figure: Interval) -> str:
    """Return the interval of a share in percent, or nothing.

    Examples
    --------
    >>> interval(Interval(0.2, 0.125, 0.3))
    '12.5–30.0\\xa0%'
    """
    if not figure.has_interval:
        return ""
    return f"{decimal(100 * figure.low, 1)}{DASH}{decimal(100 * figure.high, 1)}{SPACE}%"


def spelled_interval(figure: Interval) -> str:
    """Return the interval of a share with words."""
    return f"{decimal(100 * figure.low, 1)} to {percent(figure.high)}" if figure.has_interval else ""


def cell(main: str, below: str = "") -> Html:
    """Put a number and, smaller below it, its interval."""
    content = element("span", MISSING, class_="missing") if main == MISSING else main
    return join([content, element("small", below) if below else None], " " if below else "")


def one_in(share: float) -> str:
    """Return a share as one in so many.

    Examples
    --------
    >>> [one_in(share) for share in (0.01, 0.13, 0.3, 0.45, 0.0)]
    ['1 in 100', '1 in 8', '3 in 10', 'almost 1 in 2', 'none']
    """
    if share <= 0:
        return "none"
    if share > 0.42:
        return "almost 1 in 2" if share < 0.495 else "1 in 2"
    if share > 0.22:
        return f"{round(10 * share)} in 10" if round(10 * share) != 4 else "2 in 5"
    return f"1 in {round(1 / share):,}"


def seconds(value: float) -> str:
    """Return a duration.

    Examples
    --------
    >>> [seconds(value) for value in (0.034, 12.34, 75, 7384)]
    ['0.03 s', '12.3 s', '1 min 15 s', '2 h 3 min']
    """
    if not math.isfinite(value):
        return MISSING
    if value < 60:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
