"""Plots, as PNG, PDF or SVG by the extension; the only module that imports matplotlib.

Figures are built as objects, without the global state of pyplot, so that nothing of the caller's is changed. The same
input gives the same bytes: no date is written, and ids in SVG come from a fixed salt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.detection import SRE08, Hull, det_curve, effective_prior, hull, hull_eer, hull_min_dcf, roc
from evaluation.errors import DataError
from evaluation.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXTENSIONS = (".png", ".pdf", ".svg")
_NO_DATE: dict[str, dict[str, None]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}

# Okabe and Ito's colours, told apart by colour-blind readers too; with the line styles also in grey
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_STYLES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (10, 3)))
_MARKERS = ("o", "s", "^", "D", "v")
_GREY = "#606060"
_LEGEND_WIDTH = 72  # characters

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 11,
    "axes.titlesize": 12,
    "legend.fontsize": 9.5,
    "text.parse_math": False,  # names of systems may hold dollar signs
    "text.usetex": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "spkver",
    "pdf.fonttype": 42,
    "axes.grid": False,
    "path.simplify": True,
}


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


@dataclass(frozen=True)
class System:
    """A system to plot.

    Parameters
    ----------
    name : str
        What the legend calls it.
    target, nontarget : array_like of float, shapes (n_target,) and (n_nontarget,)
        Its scores.
    """

    name: str
    target: ArrayLike
    nontarget: ArrayLike


def plot_det(
    systems: Sequence[System | tuple[str, ArrayLike, ArrayLike]],
    *,
    path: str | Path | Sequence[str | Path],
    window: str = "sre10",
    prior: float | None = None,
    title: str | None = None,
    rocch: bool = True,
    steppy: bool = False,
    rule_of_30: bool = True,
    eer_line: bool = True,
) -> None:
    """Plot detection error trade-off curves on probit axes.

    Parameters
    ----------
    systems : sequence of System, or of (name, target, nontarget)
        One or several systems.
    path : path or sequence of paths
        The files to write, as PNG, PDF or SVG by their extensions.
    window : {"sre10", "old", "new", "big"}
        The part of the plane to show; the names are SIDEKIT's.
    prior : float, optional
        Effective target prior (not its logit) of the minDCF point; that of SRE08, 0.0917, by default.
    title : str, optional
        Stands above the plot.
    rocch : bool
        Draw the convex hull, from which EER and minDCF are read.
    steppy : bool
        Draw the curve itself, thinner where the hull is drawn too.
    rule_of_30 : bool
        Draw where 30 misses and 30 false alarms lie; beyond, a rate is not known within 30 % (with 90 % confidence).
    eer_line : bool
        Draw the diagonal where misses and false alarms are equally frequent.

    Raises
    ------
    DataError
        If there is no system, the window or an extension is unknown, or scores are empty or NaN.

    References
    ----------
    .. [1] G. Doddington et al., "The NIST speaker recognition evaluation", Speech Communication 31, 2000.
    """
    paths = _checked_paths(path)
    known = [one if isinstance(one, System) else System(*one) for one in systems]
    if not known or not (rocch or steppy):
        raise DataError("expected a system and a curve to plot", remedy="give scores, and leave rocch or steppy on")
    if window not in WINDOWS:
        raise DataError(f"expected a window among {', '.join(WINDOWS)}, got {window!r}")
    prior = effective_prior(*SRE08) if prior is None else effective_prior(prior)
    hulls = [hull(one.target, one.nontarget) for one in known]
    with _figure(6.6, 6.9 + 0.42 * len(known)) as figure:
        axes = figure.add_subplot()
        _probit_axes(axes, WINDOWS[window])
        if eer_line:
            _draw_diagonal(axes, WINDOWS[window])
        if rule_of_30:
            _draw_rule_of_30(axes, WINDOWS[window], hulls)
        handles = [
            _draw_system(axes, WINDOWS[window], number, system, vertices, prior, rocch, steppy)
            for number, (system, vertices) in enumerate(zip(known, hulls, strict=True))
        ]
        _draw_legend(figure, handles, prior, rule_of_30)
        axes.set_title(title or "Detection error trade-off", pad=18)
        _save(figure, paths)


def plot_likelihood(
    series: Mapping[str, ArrayLike],
    path: str | Path | Sequence[str | Path],
    *,
    doublings: Sequence[tuple[int, int]] = (),
    title: str | None = None,
) -> None:
    """Plot the mean log-likelihood of the training frames over the iterations of EM.

    Parameters
    ----------
    series : mapping of str to array_like of float, shape (T,)
        Log-likelihood per frame (nats) after each iteration, by the name of the model.
    path : path or sequence of paths
        The files to write, as PNG, PDF or SVG by their extensions.
    doublings : sequence of (int, int)
        For each stage of training by splitting the index of its first iteration and its number of components.
    title : str, optional
        Stands above the plot.

    Raises
    ------
    DataError
        If there is nothing to plot, or an extension is unknown.
    """
    from matplotlib.ticker import MaxNLocator

    paths = _checked_paths(path)
    curves = {name: np.asarray(values, float) for name, values in series.items()}
    if not curves or not all(values.ndim == 1 and len(values) for values in curves.values()):
        raise DataError("expected a log-likelihood for each iteration of each model, got none")
    with _figure(7.5, 4.6) as figure:
        axes = figure.add_subplot()
        for number, (name, values) in enumerate(curves.items()):
            axes.plot(np.arange(1, len(values) + 1), values, label=name, marker=".", **_look(number))
        _draw_doublings(axes, doublings)
        axes.set_xlabel("Iteration of EM")
        axes.set_ylabel("Mean log-likelihood per frame (nats)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.08)
        axes.grid(axis="y", color="#e0e0e0", linewidth=0.8)
        if len(curves) > 1:
            axes.legend(loc="lower right")
        axes.set_title(title or "Training of the background model", pad=26 if doublings else 8)
        _save(figure, paths)


def _checked_paths(path: str | Path | Sequence[str | Path]) -> list[Path]:
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(one) for one in path]
    for one in paths:
        if one.suffix.lower() not in EXTENSIONS:
            remedy = f"use one of {', '.join(EXTENSIONS)}"
            raise DataError(f"no format of plots is known for the extension {one.suffix!r}", file=one, remedy=remedy)
    return paths


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure of our settings, whatever the caller's are; sizes in inches."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    defaults: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")
    }
    defaults.update(_SETTINGS)
    with matplotlib.rc_context(defaults):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def _save(figure: Figure, paths: Sequence[Path]) -> None:
    for path in paths:
        form = path.suffix.lower()
        with atomic_path(path) as temporary:
            figure.savefig(
                temporary, format=form[1:], dpi=150, bbox_inches="tight", pad_inches=0.1, metadata=_NO_DATE[form]
            )


def _look(number: int) -> dict[str, Any]:
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": _STYLES[number % len(_STYLES)], "linewidth": 1.8}


def _probit_axes(axes: Axes, window: Window) -> None:
    from scipy.special import ndtri

    for axis, ticks in ((axes.xaxis, window.ticks_fa), (axes.yaxis, window.ticks_miss)):
        axis.set_ticks(ndtri(np.array(ticks) / 100), [f"{tick:g}" for tick in ticks])
    axes.set_xlim(*ndtri(window.p_fa))
    axes.set_ylim(*ndtri(window.p_miss))
    axes.set_box_aspect(1)
    axes.grid(color="#e0e0e0", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("False-alarm rate (%)")
    axes.set_ylabel("Miss rate (%)")


def _draw_diagonal(axes: Axes, window: Window) -> None:
    from scipy.special import ndtri

    low, high = max(window.p_fa[0], window.p_miss[0]), min(window.p_fa[1], window.p_miss[1])
    if low < high:
        axes.plot(ndtri([low, high]), ndtri([low, high]), color="#b0b0b0", linewidth=1.0)


def _draw_rule_of_30(axes: Axes, window: Window, hulls: Sequence[Hull]) -> None:
    """Draw lines of 30 errors, in the systems' colours where their numbers of trials differ, named in the margin."""
    from scipy.special import ndtri

    for across, (low, high) in ((False, window.p_fa), (True, window.p_miss)):
        numbers = [vertices.n_target if across else vertices.n_nontarget for vertices in hulls]
        lines = {}
        for place, number in enumerate(numbers):
            if low < 30 / number < high and number not in lines:
                lines[number] = (ndtri(30 / number) - ndtri(low)) / (ndtri(high) - ndtri(low))
                colour = _GREY if len(set(numbers)) == 1 else _look(place)["color"]
                draw = axes.axhline if across else axes.axvline
                draw(ndtri(30 / number), color=colour, linewidth=1.1, linestyle=(0, (1, 2)))
        for share in _apart(list(lines.values())):
            _write_in_margin(axes, "30 misses" if across else "30 false alarms", share, across)


def _apart(shares: Sequence[float], distance: float = 0.22) -> list[float]:
    """Merge neighbours, so that their names do not overlap."""
    groups: list[list[float]] = []
    for share in sorted(shares):
        if groups and share - groups[-1][0] < distance:
            groups[-1].append(share)
        else:
            groups.append([share])
    return [sum(group) / len(group) for group in groups]


def _write_in_margin(axes: Axes, text: str, share: float, across: bool) -> None:
    """Write beside the axes: right of them, or above, but not round a corner."""
    share = min(max(share, 0.1), 0.9)
    axes.annotate(
        text,
        (1.0, share) if across else (share, 1.0),
        (3, 0) if across else (0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        rotation=90 if across else 0,
        ha="left" if across else "center",
        va="center" if across else "bottom",
        color=_GREY,
        fontsize=8.5,
    )


def _draw_system(
    axes: Axes, window: Window, number: int, system: System, vertices: Hull, prior: float, rocch: bool, steppy: bool
) -> tuple[Any, str]:
    """Draw the curves and the minDCF point; give the handle and the text for the legend."""
    from matplotlib.lines import Line2D
    from scipy.special import ndtri

    box, look = (*window.p_fa, *window.p_miss), _look(number)
    drawn = False
    if steppy:
        thin = {**look, "linewidth": 0.9, "alpha": 0.7} if rocch else look
        drawn |= _draw_pieces(axes, *det_curve(*roc(system.target, system.nontarget), box=box, points=25), thin, 25)
    if rocch:
        drawn |= _draw_pieces(axes, *det_curve(vertices.p_miss, vertices.p_fa, box=box), look, 101)
    cost, p_miss, p_fa = hull_min_dcf(vertices, prior)
    marker = _MARKERS[number % len(_MARKERS)]
    dot: dict[str, Any] = {"marker": marker, "markersize": 8, "markeredgecolor": "white", "color": look["color"]}
    shown = window.p_fa[0] <= p_fa <= window.p_fa[1] and window.p_miss[0] <= p_miss <= window.p_miss[1]
    if shown:
        axes.plot(ndtri(p_fa), ndtri(p_miss), zorder=5, **dot)
    # no-break spaces keep the numbers together on one line of the legend
    numbers = f"(EER {100 * hull_eer(vertices):.2f} %, minDCF {cost:.3f})".replace(" ", "\N{NO-BREAK SPACE}")
    label = f"{system.name} {numbers}"
    if not drawn:
        label += "\ncurve outside this window"
    elif not shown:
        label += "\nminDCF point outside this window"
    return Line2D([], [], **{**look, **(dot if shown else {})}), label


def _draw_pieces(axes: Axes, x: np.ndarray, y: np.ndarray, look: dict[str, Any], points: int) -> bool:
    """Draw a curve, lifting the pen where it leaves the window and comes back."""
    if not len(x):
        return False
    x, y = x.reshape(-1, points), y.reshape(-1, points)
    breaks = np.flatnonzero((x[1:, 0] != x[:-1, -1]) | (y[1:, 0] != y[:-1, -1])) + 1
    for xs, ys in zip(np.split(x, breaks), np.split(y, breaks), strict=True):
        axes.plot(xs.ravel(), ys.ravel(), **look)
    return True


def _draw_legend(figure: Figure, handles: Sequence[tuple[Any, str]], prior: float, rule_of_30: bool) -> None:
    lines, labels = zip(*handles, strict=True)
    title = f"Points: minDCF (normalised) at effective target prior {prior:.3g}"
    figure.legend(
        lines,
        ["\n".join(wrapped for line in label.split("\n") for wrapped in wrap(line, _LEGEND_WIDTH)) for label in labels],
        loc="outside lower center",
        title=title + ("\nDotted lines: 30 errors; what lies beyond is uncertain" if rule_of_30 else ""),
        title_fontsize=9,
        handlelength=4.5,
        frameon=False,
        alignment="left",
    )


def _draw_doublings(axes: Axes, doublings: Sequence[tuple[int, int]]) -> None:
    """Mark the stages of training above the plot."""
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "color": _GREY}
    for first, n_components in doublings:
        axes.axvline(first + 1, color="#b0b0b0", linewidth=0.9, linestyle=(0, (1, 2)))
        axes.annotate(
            str(n_components), (first + 1, 1), (0, 3), xycoords=("data", "axes fraction"), ha="center", **style
        )
    if doublings:
        axes.annotate("Gaussians:", (0, 1), (-6, 3), xycoords="axes fraction", ha="right", **style)
