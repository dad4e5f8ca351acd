"""The part of the plane of errors that a DET plot shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spkbase.showing import one_line


@one_line
@dataclass(frozen=True)
class Window:
    """Part of the plane that a DET plot shows; rates as fractions, ticks in percent.

    Parameters
    ----------
    p_fa, p_miss : tuple of float
        Smallest and largest rate.
    ticks_fa, ticks_miss : tuple of float
        Where to label the axes, in percent.
    """

    p_fa: tuple[float, float]
    p_miss: tuple[float, float]
    ticks_fa: tuple[float, ...]
    ticks_miss: tuple[float, ...]


AUTOMATIC = "auto"
_LEVELS_LOW = (5e-4, 1e-4, 1e-5, 1e-6)
_LEVELS_HIGH = (0.5, 0.8, 0.95, 0.99)
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 90, 95, 98)
_LOW_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40)
_WIDE_TICKS = (0.001, 0.01, 0.1, 1, 5, 20, 40, 60, 80, 95, 99)
WINDOWS = {
    "old": Window((5e-4, 0.5), (5e-4, 0.5), _LOW_TICKS, _LOW_TICKS),
    "new": Window(
        (5e-6, 5e-3),
        (0.01, 0.99),
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
        (1, 2, 5, 10, *range(20, 90, 20), 90, 95, 98, 99),
    ),
    "big": Window((5e-6, 0.99), (5e-6, 0.99), _WIDE_TICKS, _WIDE_TICKS),
    "sre10": Window(
        (3e-6, 0.5),
        (3e-4, 0.9),
        (0.001, 0.01, 0.1, 0.5, 2, 5, 10, 20, 40),
        (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 90),
    ),
}


def fitting_window(rates: Sequence[float]) -> Window:
    """Return the part of the plane, the same in both directions, that holds error rates well inside.

    Parameters
    ----------
    rates : sequence of float
        Error rates to be shown; those of 0 or 1, which no probit axis holds, do not count.

    Returns
    -------
    Window
        From 0.05 to 50 % at least; lower and higher where a rate comes near the edge.

    Examples
    --------
    >>> fitting_window([0.02]).p_fa, fitting_window([0.43, 2e-4]).p_fa
    ((0.0005, 0.5), (0.0001, 0.8))
    """
    from scipy.special import ndtri

    inside = [rate for rate in rates if 0 < rate < 1]
    lowest, highest = min(inside, default=0.1), max(inside, default=0.1)
    low = next((level for level in _LEVELS_LOW if level <= lowest / 1.5), _LEVELS_LOW[-1])
    high = next((level for level in _LEVELS_HIGH if ndtri(level) >= ndtri(highest) + 0.5), _LEVELS_HIGH[-1])
    ticks = tuple(tick for tick in _TICKS if low <= tick / 100 <= high)
    if len(ticks) > 11:  # the axis is wide, and the labels of its middle would touch
        ticks = tuple(tick for tick in ticks if tick not in (0.2, 0.5, 2, 10, 98))
    return Window((low, high), (low, high), ticks, ticks)
