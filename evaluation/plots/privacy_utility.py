"""Privacy against utility: equal error rate of the strongest attacker over what anonymisation costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evaluation.plots.chart import MARKERS, PALE, Axis, Chart, Line, Look, Note, Paths, keep_together, look_of
from evaluation.plots.draw import render_chart
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# minimum target EERs of the VoicePrivacy Challenge 2024
TARGETS = (0.1, 0.2, 0.3, 0.4)
_TOP = 0.5


@one_line
@dataclass(frozen=True)
class TradeOff:
    """A system in the plane of privacy and utility.

    Parameters
    ----------
    name : str
        What the legend calls it.
    utility : float
        In percent, such as a word error rate.
    eer : float
        Equal error rate of the strongest attacker, as a fraction.
    eer_interval, utility_interval : (float, float), optional
        Their confidence intervals.
    """

    name: str
    utility: float
    eer: float
    eer_interval: tuple[float, float] | None = None
    utility_interval: tuple[float, float] | None = None


def plot_privacy_utility(
    systems: Sequence[TradeOff],
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    measure: str = "Word error rate",
    lower_is_better: bool = True,
    targets: Sequence[float] = TARGETS,
    title: str | None = None,
) -> Figure | None:
    """Plot equal error rates over a measure of utility, with the bands between the challenge's minimum targets.

    Better utility lies to the right and better privacy above, so a system is beaten by all that lie above and right of
    it.

    Parameters
    ----------
    systems : sequence of TradeOff
        At least one.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    measure : str
        Name of the utility measure, which is in percent.
    lower_is_better : bool
        Its direction; the axis runs from the worst to the best.
    targets : sequence of float
        Minimum target EERs as fractions, rising, between which systems compete.
    title : str, optional
        Stands above the plot.

    Raises
    ------
    DataError
        If there is nothing to plot, a number is not finite, or the targets do not rise from 0 to 50 %.
    """
    systems, targets = list(systems), [float(target) for target in targets]
    _check(systems, targets)
    low, high = _span(systems)
    sign = -1.0 if lower_is_better else 1.0  # the axis runs to the better side
    across = np.sort(sign * np.array([low, high]))
    lines = [Line(across, np.full(2, 100 * target), Look(PALE, width=0.9, fill=0.14)) for target in reversed(targets)]
    entries, ticks = [], _ticks(low, high, sign)
    for number, system in enumerate(systems):
        look = replace(look_of(number), dash=(), marker=MARKERS[number % len(MARKERS)])
        lines += _crosshair(system, sign, replace(look, marker="", width=1.4, opaque=0.75))
        lines.append(Line(np.array([sign * system.utility]), np.array([100 * system.eer]), replace(look, line=False)))
        numbers = keep_together(f"({measure.lower()} {system.utility:.1f} %, EER {100 * system.eer:.1f} %)")
        entries.append((replace(look, line=False), f"{system.name} {numbers}"))
    direction = "lower is better" if lower_is_better else "higher is better"
    chart = Chart(
        title or f"Privacy against {measure.lower()}",
        Axis(f"{measure} (%), {direction}: best on the right", float(across[0]), float(across[1]), ticks),
        Axis("Equal error rate (%), best above", 0.0, 100 * _TOP),
        tuple(lines),
        tuple(entries),
        "Grey edges: minimum target EERs of the challenge" if targets else "",
        tuple(Note(f"{100 * target:g} %", target / _TOP, across=True) for target in targets),
    )
    return render_chart(chart, path, ax)


def _check(systems: list[TradeOff], targets: list[float]) -> None:
    if not systems:
        raise DataError("expected a system to plot", remedy="give utility and an equal error rate")
    for system in systems:
        utility, eer = system.utility, system.eer
        if not (np.isfinite(utility) and 0 <= eer <= 1):
            text = f"{system.name}: expected a finite utility and an EER from 0 to 1, got {utility} and {eer}"
            raise DataError(text)
    if not all(0 < target < _TOP for target in targets) or sorted(set(targets)) != targets:
        raise DataError(f"expected target EERs that rise between 0 and {_TOP:g}, got {targets}")


def _span(systems: Sequence[TradeOff]) -> tuple[float, float]:
    """Ends of the axis of utility: all points and intervals, with a margin; not below 0."""
    values = [system.utility for system in systems]
    values += [end for system in systems for end in system.utility_interval or () if np.isfinite(end)]
    margin = 0.12 * (max(values) - min(values)) or 1.0
    low = min(values) - margin
    return max(low, 0.0) if min(values) >= 0 else low, max(values) + margin


def _ticks(low: float, high: float, sign: float) -> tuple[tuple[float, str], ...]:
    """Return five to ten round numbers between the ends, at their places on the axis."""
    power = 10.0 ** np.floor(np.log10((high - low) / 5))
    step = next(power * unit for unit in (10, 5, 2, 1) if power * unit <= (high - low) / 4)
    values = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    return tuple(sorted((sign * value, f"{value:.6g}") for value in values.tolist()))


def _crosshair(system: TradeOff, sign: float, look: Look) -> list[Line]:
    """Intervals as lines through the point."""
    lines = []
    if system.eer_interval is not None and np.all(np.isfinite(system.eer_interval)):
        ends = 100 * np.clip(np.array(system.eer_interval, float), 0.0, _TOP)
        lines.append(Line(np.full(2, sign * system.utility), ends, look))
    if system.utility_interval is not None and np.all(np.isfinite(system.utility_interval)):
        lines.append(Line(sign * np.array(system.utility_interval, float), np.full(2, 100 * system.eer), look))
    return lines
