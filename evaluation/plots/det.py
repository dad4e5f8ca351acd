"""Detection error trade-off and receiver operating characteristic.

**The part of the plane of errors that a DET plot shows.**
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evaluation.metrics import SRE08, Hull, det_curve, eer, effective_prior, hull_min_dcf, roc
from evaluation.plots.chart import (
    GREY,
    MARKERS,
    PALE,
    RING,
    Axis,
    Chart,
    Core,
    Line,
    Look,
    Note,
    Paths,
    Systems,
    as_cores,
    keep_together,
    look_of,
)
from evaluation.plots.draw import checked_paths, render_chart
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


_MOST_POINTS = 20_000


@dataclass(frozen=True)
class DetStyle:
    """What a DET plot shows beside the points of least cost.

    Parameters
    ----------
    window : {"auto", "sre10", "old", "new", "big"}
        The part of the plane: grown until the EER and minDCF of each system are well inside, with the same axis twice;
        or a fixed one, by SIDEKIT's names.
    rocch : bool
        Draw the convex hull, from which EER and minDCF are read; thin where the curve itself is drawn too.
    steppy : bool
        Draw the curve itself.
    rule_of_30 : bool
        Draw where 30 misses and 30 false alarms lie; beyond, a rate is not known within 30 % (with 90 % confidence).
    eer_line : bool
        Draw the diagonal where misses and false alarms are equally frequent, with a ring at the EER of each system.
    """

    window: str = AUTOMATIC
    rocch: bool = True
    steppy: bool = True
    rule_of_30: bool = True
    eer_line: bool = True


def plot_det(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    style: DetStyle | None = None,
    prior: float | None = None,
    title: str | None = None,
    sort: bool = False,
) -> Figure | None:
    """Plot detection error trade-off curves on probit axes.

    Parameters
    ----------
    systems : sequence of System, of (name, target, nontarget), or of (name, Scores, Key)
        One or several systems.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    style : DetStyle, optional
        Which part of the plane and which lines to show.
    prior : float, optional
        Effective target prior (not its logit) of the minDCF point; that of SRE08, 0.0917, by default.
    title : str, optional
        Stands above the plot.
    sort : bool
        Put the systems in the order of their EER, the highest first.

    Raises
    ------
    DataError
        If there is no system, the window or an extension is unknown, or scores are empty or NaN.

    References
    ----------
    .. [1] G. Doddington et al., "The NIST speaker recognition evaluation", Speech Communication 31, 2000.
    """
    if path is not None:
        checked_paths(path)
    style = style or DetStyle()
    if not (style.rocch or style.steppy):
        raise DataError("expected a system and a curve to plot", remedy="leave rocch or steppy on")
    if style.window not in (AUTOMATIC, *WINDOWS):
        raise DataError(f"expected a window among {', '.join((AUTOMATIC, *WINDOWS))}, got {style.window!r}")
    prior = effective_prior(*SRE08) if prior is None else effective_prior(prior)
    cores = _sorted(as_cores(systems)) if sort else as_cores(systems)
    points = [_Points.of(core, prior) for core in cores]
    part = fitting_window([rate for point in points for rate in (point.eer, point.p_miss, point.p_fa)])
    part = WINDOWS.get(style.window, part)
    lines: list[Line] = _diagonal(part) if style.eer_line else []
    notes: list[Note] = []
    if style.rule_of_30:
        dotted, notes = _rule_of_30(part, [core.scores.hull for core in cores])
        lines += dotted
    entries = []
    for number, (core, point) in enumerate(zip(cores, points, strict=True)):
        drawn, entry = _draw_system(core, number, point, style, part)
        lines += drawn
        entries.append(entry)
    chart = Chart(
        "Detection error trade-off" if title is None else title,
        _probit_axis("False-alarm rate (%)", part.p_fa, part.ticks_fa),
        _probit_axis("Miss rate (%)", part.p_miss, part.ticks_miss),
        tuple(lines),
        tuple(entries),
        _legend_title(style, prior),
        tuple(notes),
        square=True,
        width=6.6,
        height=6.9,
    )
    return render_chart(chart, path, ax)


@dataclass(frozen=True)
class _Points:
    """What is marked of a system: EER of the hull, and the point of least cost."""

    eer: float
    cost: float
    p_miss: float
    p_fa: float

    @classmethod
    def of(cls, core: Core, prior: float) -> _Points:
        return cls(core.scores.hull.eer, *hull_min_dcf(core.scores.hull, prior))


def _legend_title(style: DetStyle, prior: float) -> str:
    words = [f"Points: minDCF (normalised) at effective target prior {prior:.3g}"]
    if style.eer_line:
        words[0] += "; rings: EER, on the diagonal"
    if style.rocch and style.steppy:
        words.append("Thick: the curve itself; thin: its convex hull, from which EER and minDCF are read")
    else:
        words.append("Lines: the curve itself" if style.steppy else "Lines: convex hulls of the curves (ROCCH)")
    if style.rule_of_30:
        words.append("Dotted: 30 errors; what lies beyond is uncertain")
    return "\n".join(words)


def plot_roc(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    lowest_fpr: float | None = None,
    sort: bool = False,
) -> Figure | None:
    """Plot receiver operating characteristics: the share of target trials accepted against that of nontarget trials.

    Parameters
    ----------
    systems : sequence of System, of (name, target, nontarget), or of (name, Scores, Key)
        One or several systems.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    title : str, optional
        Stands above the plot.
    sort : bool
        Put the systems in the order of their EER, the highest first.
    lowest_fpr : float, optional
        Left end of the logarithmic axis of the false-accept rate, by default the power of ten at or above one nontarget
        trial of the largest system; 0 for a linear axis.

    Raises
    ------
    DataError
        If there is no system, an extension is unknown, the rate is out of range, or scores are empty or NaN.
    """
    if lowest_fpr is not None and not 0 <= lowest_fpr < 1:
        raise DataError(f"expected a lowest false-accept rate from 0 (linear) to below 1, got {lowest_fpr}")
    cores = _sorted(as_cores(systems)) if sort else as_cores(systems)
    if lowest_fpr is None:
        most = max(core.scores.n_nontarget for core in cores)
        lowest_fpr = float(10.0 ** np.clip(np.ceil(-np.log10(most) - 1e-9), -6, -1))
    lowest_fpr = lowest_fpr or None
    diagonal = np.linspace(0, 1, 2) if lowest_fpr is None else np.geomspace(lowest_fpr, 1, 200)
    lines = [Line(_fpr(diagonal, lowest_fpr), diagonal, Look(PALE, width=1.0))]
    entries = []
    for number, core in enumerate(cores):
        p_miss, p_fa = roc(core.scores)
        if lowest_fpr is not None:
            # straight pieces bend on this axis
            grid = np.unique(np.concatenate([np.geomspace(lowest_fpr, 1, 800), p_fa[p_fa >= lowest_fpr]]))
            p_miss, p_fa = np.interp(grid, p_fa[::-1], p_miss[::-1]), grid
        lines.append(Line(_fpr(p_fa, lowest_fpr), 1 - p_miss, look_of(number)))
        numbers = f"(EER {100 * eer(core.scores):.2f} %)"
        entries.append((look_of(number), f"{core.name} {keep_together(numbers)}"))
    axis = Axis("False-accept rate", 0.0, 1.0)
    if lowest_fpr is not None:
        decades = range(int(np.ceil(np.log10(lowest_fpr) - 1e-9)), 1)
        ticks = tuple((float(decade), f"{10.0**decade:g}") for decade in decades)
        axis = Axis(axis.label, float(np.log10(lowest_fpr)), 0.0, ticks)
    chart = Chart(
        "Receiver operating characteristic" if title is None else title,
        axis,
        Axis("True-accept rate", 0.0, 1.0),
        tuple(lines),
        tuple(entries),
        square=True,
        width=6.2,
        height=6.2,
    )
    return render_chart(chart, path, ax)


def _sorted(cores: list[Core]) -> list[Core]:
    return sorted(cores, key=lambda core: -eer(core.scores))


def _fpr(p_fa: np.ndarray, lowest: float | None) -> np.ndarray:
    return p_fa if lowest is None else np.log10(np.maximum(p_fa, lowest))


def _probit_axis(label: str, ends: tuple[float, float], ticks: tuple[float, ...]) -> Axis:
    from scipy.special import ndtri

    low, high = ndtri(ends).tolist()
    return Axis(label, low, high, tuple((float(ndtri(tick / 100)), f"{tick:g}") for tick in ticks))


def _diagonal(window: Window) -> list[Line]:
    from scipy.special import ndtri

    low, high = max(window.p_fa[0], window.p_miss[0]), min(window.p_fa[1], window.p_miss[1])
    ends = ndtri(np.array([low, high]))
    return [Line(ends, ends, Look(PALE, width=1.0))] if low < high else []


def _rule_of_30(window: Window, hulls: Sequence[Hull]) -> tuple[list[Line], list[Note]]:
    """Lines of 30 errors, in the systems' colours where their numbers of trials differ, named in the margin."""
    from scipy.special import ndtri

    drawn, notes = [], []
    ends = [np.array(ndtri(side)) for side in (window.p_fa, window.p_miss)]
    for across, (low, high) in ((False, window.p_fa), (True, window.p_miss)):
        numbers = [vertices.n_target if across else vertices.n_nontarget for vertices in hulls]
        shares = {}
        for system, number in enumerate(numbers):
            if low < 30 / number < high and number not in shares:
                shares[number] = float((ndtri(30 / number) - ndtri(low)) / (ndtri(high) - ndtri(low)))
                colour = GREY if len(set(numbers)) == 1 else look_of(system).colour
                there = np.full(2, ndtri(30 / number))
                x, y = (ends[0], there) if across else (there, ends[1])
                drawn.append(Line(x, y, Look(colour, (1, 2), width=1.1)))
        text = "30 misses" if across else "30 false alarms"
        notes += [Note(text, share, across) for share in _apart(list(shares.values()))]
    return drawn, notes


def _apart(shares: Sequence[float], distance: float = 0.22) -> list[float]:
    """Merge neighbours, so that their names do not overlap."""
    groups: list[list[float]] = []
    for share in sorted(shares):
        if groups and share - groups[-1][0] < distance:
            groups[-1].append(share)
        else:
            groups.append([share])
    return [sum(group) / len(group) for group in groups]


def _draw_system(
    core: Core, number: int, marked: _Points, style: DetStyle, window: Window
) -> tuple[list[Line], tuple[Look, str]]:
    """Return the curves, the points of EER and minDCF, and the entry for the legend."""
    from scipy.special import ndtri

    vertices = core.scores.hull
    box, look = (*window.p_fa, *window.p_miss), look_of(number)
    drawn: list[Line] = []
    if style.steppy:
        corners = roc(core.scores)
        points = int(np.clip(_MOST_POINTS // len(corners[0]), 2, 25))  # the short pieces of many bend little
        drawn += _pieces(*det_curve(*corners, box=box, points=points), look, points)
    if style.rocch:
        slight = replace(look, dash=(), width=0.8, opaque=0.75) if style.steppy else look
        drawn += _pieces(*det_curve(vertices.p_miss, vertices.p_fa, box=box), slight, 101)
    p_miss, p_fa = marked.p_miss, marked.p_fa
    dot = replace(look, marker=MARKERS[number % len(MARKERS)])
    visible = window.p_fa[0] <= p_fa <= window.p_fa[1] and window.p_miss[0] <= p_miss <= window.p_miss[1]
    numbers = f"(EER {100 * marked.eer:.2f} %, minDCF {marked.cost:.3f})"
    label = f"{core.name} {keep_together(numbers)}"
    if not drawn:
        label += "\ncurve outside this window"
    elif not visible:
        label += "\nminDCF point outside this window"
    low, high = max(window.p_fa[0], window.p_miss[0]), min(window.p_fa[1], window.p_miss[1])
    if style.eer_line and low <= marked.eer <= high:
        middle = np.array([ndtri(marked.eer)])
        drawn.append(Line(middle, middle, Look(look.colour, marker=RING, line=False)))
    if visible:
        point = np.array([[ndtri(p_fa)], [ndtri(p_miss)]])
        drawn.append(Line(point[0], point[1], replace(dot, line=False)))
    return drawn, (dot if visible else look, label)


def _pieces(x: np.ndarray, y: np.ndarray, look: Look, points: int) -> list[Line]:
    """Cut a curve where it leaves the window and comes back."""
    if not len(x):
        return []
    x, y = x.reshape(-1, points), y.reshape(-1, points)
    breaks = np.flatnonzero((x[1:, 0] != x[:-1, -1]) | (y[1:, 0] != y[:-1, -1])) + 1
    pieces = zip(np.split(x, breaks), np.split(y, breaks), strict=True)
    return [Line(xs.ravel(), ys.ravel(), look) for xs, ys in pieces]
