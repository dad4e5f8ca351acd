"""Plots of scores: detection error trade-off, receiver operating characteristic, histograms, reliability, and curves
over the prior: empirical cross-entropy, Bayes error rates, the ZEBRA profile.

The horizontal axis of a curve over the prior is the prior log-odds log(P / (1 - P)) of a target trial. The default
system knows the prior alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation import metrics
from evaluation.plots import style
from evaluation.trials import Key, Scores, split_scores
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@one_line
@dataclass(frozen=True)
class System:
    """A system to plot.

    Attributes
    ----------
    name : str
        What the legend calls it.
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Its scores.
    """

    name: str
    target: ArrayLike
    nontarget: ArrayLike


Systems = Sequence[
    System | tuple[str, ArrayLike, ArrayLike] | tuple[str, Scores, Key] | tuple[str, metrics.SortedScores]
]
"""Systems as `System`, as names with target and nontarget scores, scores and key, or sorted scores."""


def sorted_systems(systems: Systems) -> list[tuple[str, metrics.SortedScores]]:
    """Return each system's name with its scores sorted; those whose scores look reversed are called so."""
    if not systems:
        raise DataError("expected a system and a curve to plot", remedy="give scores")
    found = []
    for system in systems:
        given: list[Any]
        name, *given = (system.name, system.target, system.nontarget) if isinstance(system, System) else system
        scores = metrics.sort_scores(*(split_scores(*given) if isinstance(given[0], Scores) else given))
        turned = metrics.reversal(scores)
        found.append((f"{name} (REVERSED scores?)" if turned is not None and turned.clear else name, scores))
    return found


# ---- detection error trade-off and receiver operating characteristic


@one_line
@dataclass(frozen=True)
class Window:
    """Part of the plane that a DET plot shows; rates as fractions, ticks in percent.

    Attributes
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


_LEVELS_LOW = (5e-4, 1e-4, 1e-5, 1e-6)
_LEVELS_HIGH = (0.5, 0.8, 0.95, 0.99)
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 90, 95, 98)
_LOW_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40)
_WIDE_TICKS = (0.001, 0.01, 0.1, 1, 5, 20, 40, 60, 80, 95, 99)
_SMALL_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_HIGH_TICKS = (1, 2, 5, 10, *range(20, 90, 20), 90, 95, 98, 99)
WINDOWS = {
    "old": Window((5e-4, 0.5), (5e-4, 0.5), _LOW_TICKS, _LOW_TICKS),
    "new": Window((5e-6, 5e-3), (0.01, 0.99), _SMALL_TICKS, _HIGH_TICKS),
    "big": Window((5e-6, 0.99), (5e-6, 0.99), _WIDE_TICKS, _WIDE_TICKS),
    "sre10": Window(
        (3e-6, 0.5),
        (3e-4, 0.9),
        (0.001, 0.01, 0.1, 0.5, 2, 5, 10, 20, 40),
        (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 90),
    ),
}
_MOST_POINTS = 20_000


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


def plot_det(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    window: str = "auto",
    prior: float | None = None,
    hull_only: bool = False,
) -> Figure:
    """Plot detection error trade-off curves on probit axes.

    Parameters
    ----------
    systems : sequence of System, of (name, target, nontarget), of (name, Scores, Key) or of (name, SortedScores)
        One or several systems.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    title : str, optional
        Stands above the plot.
    sort : bool
        Put the systems in the order of their EER, the highest first.
    window : {"auto", "sre10", "old", "new", "big"}
        The part of the plane: grown until the EER and minDCF of each system are well inside, with the same axis twice;
        or a fixed one, by SIDEKIT's names.
    prior : float, optional
        Effective target prior (not its logit) of the minDCF point; that of SRE08, 0.0917, by default.
    hull_only : bool
        Draw the convex hulls, from which EER and minDCF are read, without the curves themselves.

    Raises
    ------
    DataError
        If there is no system, the window or an extension is unknown, or scores are empty or NaN.

    References
    ----------
    .. [1] G. Doddington et al., "The NIST speaker recognition evaluation", Speech Communication 31, 2000.
    """
    from scipy.special import ndtri

    if window not in ("auto", *WINDOWS):
        raise DataError(f"expected a window among {', '.join(('auto', *WINDOWS))}, got {window!r}")
    prior = metrics.effective_prior(*metrics.SRE08) if prior is None else metrics.effective_prior(prior)
    known = _by_eer(sorted_systems(systems)) if sort else sorted_systems(systems)
    hulls = [scores.hull for _, scores in known]
    # EER, minDCF, and where that is
    points = [(metrics.eer(scores), *metrics.hull_min_dcf(scores.hull, prior)) for _, scores in known]
    fitting = fitting_window([rate for rate, _, p_miss, p_fa in points for rate in (rate, p_miss, p_fa)])
    shown = WINDOWS.get(window, fitting)
    low, high = max(shown.p_fa[0], shown.p_miss[0]), min(shown.p_fa[1], shown.p_miss[1])
    entries = []
    with style.axes_for(path, ax, 6.6, 6.9) as axes:
        if low < high:
            axes.plot(*[ndtri(np.array([low, high]))] * 2, **style.plain(style.PALE, 1.0))
        _rule_of_30(axes, shown, [(hull.misses[-1], hull.false_alarms[0]) for hull in hulls])
        for number, ((name, scores), (rate, cost, p_miss, p_fa)) in enumerate(zip(known, points, strict=True)):
            look, box = style.line_of(number), (*shown.p_fa, *shown.p_miss)
            slight, pieces = look, 0
            if not hull_only:
                corners = metrics.roc(scores)
                n_points = int(np.clip(_MOST_POINTS // len(corners[0]), 2, 25))  # the short pieces of many bend little
                pieces += _draw_pieces(axes, *metrics.det_curve(*corners, box=box, points=n_points), n_points, look)
                slight = look | {"linestyle": "-", "linewidth": 0.8, "alpha": 0.75}
            pieces += _draw_pieces(
                axes, *metrics.det_curve(hulls[number].p_miss, hulls[number].p_fa, box=box), 101, slight
            )
            label = f"{name} {style.keep_together(f'(EER {100 * rate:.2f} %, minDCF {cost:.3f})')}"
            visible = shown.p_fa[0] <= p_fa <= shown.p_fa[1] and shown.p_miss[0] <= p_miss <= shown.p_miss[1]
            if not pieces:
                label += "\ncurve outside this window"
            elif not visible:
                label += "\nminDCF point outside this window"
            if low <= rate <= high:
                axes.plot([ndtri(rate)], [ndtri(rate)], **style.marker("ring", look["color"]))
            dot = style.marker(style.MARKERS[number % len(style.MARKERS)], look["color"])
            if visible:
                axes.plot([ndtri(p_fa)], [ndtri(p_miss)], **dot)
            entries.append((dot | look if visible else look, label))
        lines = "Thick: the curve itself; thin: its convex hull, from which EER and minDCF are read"
        words = [
            f"Points: minDCF (normalised) at effective target prior {prior:.3g}; rings: EER, on the diagonal",
            "Lines: convex hulls of the curves (ROCCH)" if hull_only else lines,
            "Dotted: 30 errors; what lies beyond is uncertain",
        ]
        across, upright = [
            (label, *ndtri(ends).tolist(), [(float(ndtri(tick / 100)), f"{tick:g}") for tick in ticks])
            for label, ends, ticks in (
                ("False-alarm rate (%)", shown.p_fa, shown.ticks_fa),
                ("Miss rate (%)", shown.p_miss, shown.ticks_miss),
            )
        ]
        title = "Detection error trade-off" if title is None else title
        above = 18 if any(not text.get_rotation() for text in axes.texts) else 8
        return style.finish(axes, title, across, upright, entries, "\n".join(words), square=True, pad=above)


def _rule_of_30(axes: Axes, window: Window, counts: Sequence[tuple[float, float]]) -> None:
    """Draw lines of 30 errors, in the systems' colours where their numbers of trials differ, named in the margin."""
    from scipy.special import ndtri

    ends = [ndtri(side) for side in (window.p_fa, window.p_miss)]
    for across, (low, high) in ((False, window.p_fa), (True, window.p_miss)):
        numbers = [n_target if across else n_nontarget for n_target, n_nontarget in counts]
        shares: list[float] = []
        for number in dict.fromkeys(number for number in numbers if low < 30 / number < high):
            shares.append(float((ndtri(30 / number) - ndtri(low)) / (ndtri(high) - ndtri(low))))
            colour = style.GREY if len(set(numbers)) == 1 else style.line_of(numbers.index(number))["color"]
            there = np.full(2, ndtri(30 / number))
            axes.plot(*((ends[0], there) if across else (there, ends[1])), **style.plain(colour, 1.1, (1, 2)))
        groups: list[list[float]] = []  # of neighbours, whose names would overlap
        for share in sorted(shares):
            if groups and share - groups[-1][0] < 0.22:
                groups[-1].append(share)
            else:
                groups.append([share])
        for group in groups:
            text = "30 misses" if across else "30 false alarms"
            style.write_in_margin(axes, text, sum(group) / len(group), across=across)


def _draw_pieces(axes: Axes, x: np.ndarray, y: np.ndarray, points: int, look: style.Style) -> int:
    """Draw a curve that leaves the window and comes back; the number of its pieces comes back."""
    if not len(x):
        return 0
    x, y = x.reshape(-1, points), y.reshape(-1, points)
    breaks = np.flatnonzero((x[1:, 0] != x[:-1, -1]) | (y[1:, 0] != y[:-1, -1])) + 1
    pieces = list(zip(np.split(x, breaks), np.split(y, breaks), strict=True))
    for xs, ys in pieces:
        axes.plot(xs.ravel(), ys.ravel(), **look)
    return len(pieces)


def plot_roc(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    lowest_fpr: float | None = None,
    sort: bool = False,
) -> Figure:
    """Plot receiver operating characteristics: the share of target trials accepted against that of nontarget trials.

    Parameters
    ----------
    systems, path, ax, title, sort
        See `plot_det`.
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
    known = _by_eer(sorted_systems(systems)) if sort else sorted_systems(systems)
    if lowest_fpr is None:
        most = max(scores.n_nontarget for _, scores in known)
        lowest_fpr = float(10.0 ** np.clip(np.ceil(-np.log10(most) - 1e-9), -6, -1))

    def place(p_fa: np.ndarray) -> np.ndarray:
        return np.asarray(np.log10(np.maximum(p_fa, lowest_fpr))) if lowest_fpr else p_fa

    diagonal = np.geomspace(lowest_fpr, 1, 200) if lowest_fpr else np.linspace(0, 1, 2)
    entries = []
    with style.axes_for(path, ax, 6.2, 6.2) as axes:
        axes.plot(place(diagonal), diagonal, **style.plain(style.PALE, 1.0))
        for number, (name, scores) in enumerate(known):
            p_miss, p_fa = metrics.roc(scores)
            if lowest_fpr:  # straight pieces bend on this axis
                grid = np.unique(np.concatenate([np.geomspace(lowest_fpr, 1, 800), p_fa[p_fa >= lowest_fpr]]))
                p_miss, p_fa = np.interp(grid, p_fa[::-1], p_miss[::-1]), grid
            axes.plot(place(p_fa), 1 - p_miss, **style.line_of(number))
            entries.append(
                (style.line_of(number), f"{name} {style.keep_together(f'(EER {100 * metrics.eer(scores):.2f} %)')}")
            )
        ticks: list[tuple[float, str]] = []
        if lowest_fpr:
            decades = range(int(np.ceil(np.log10(lowest_fpr) - 1e-9)), 1)
            ticks = [(float(decade), f"{10.0**decade:g}") for decade in decades]
        ends = (float(np.log10(lowest_fpr)), 0.0) if lowest_fpr else (0.0, 1.0)
        title = "Receiver operating characteristic" if title is None else title
        upright = ("True-accept rate", 0.0, 1.0)
        return style.finish(axes, title, ("False-accept rate", *ends, ticks), upright, entries, square=True)


def _by_eer(known: list[tuple[str, metrics.SortedScores]]) -> list[tuple[str, metrics.SortedScores]]:
    return sorted(known, key=lambda system: -metrics.eer(system[1]))


# ---- densities


def plot_histogram(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    bins: int = 60,
    own_scale: bool = False,
) -> Figure:
    """Plot the densities of target and nontarget scores; infinite scores are counted in words, not drawn.

    Several systems stand one below the other, in strips of the same scores and the same densities, or each of its own.

    Parameters
    ----------
    systems, path, ax, title
        See `plot_det`.
    bins : int
        Number of bins from the lowest to the highest finite score of all systems.
    own_scale : bool
        Give each system its own bins, axis of scores and scale of densities: for scores that cannot be compared, such
        as cosines and log-likelihood ratios.
    """
    if not 1 <= bins <= 10_000:
        raise DataError(f"expected 1 to 10,000 bins, got {bins}")
    known = sorted_systems(systems)
    own_scale = own_scale and len(known) > 1
    edges = [_edges([scores] if own_scale else [one for _, one in known], bins) for _, scores in known]
    densities = [
        [np.histogram(scores.thresholds, of, weights=side)[0] / (side.sum() * np.diff(of)) for side in _sides(scores)]
        for (_, scores), of in zip(known, edges, strict=True)
    ]
    tops = [1.05 * (max(float(density.max()) for density in pair) or 1.0) for pair in densities]
    height, step = (1.0, 1 / bins) if own_scale else (max(tops), edges[0][1] - edges[0][0])
    kinds = {"target": style.plain(style.COLOURS[0]), "nontarget": style.plain(style.COLOURS[1])}
    with style.axes_for(path, ax, 7.0, max(4.8, 1.4 * len(known))) as axes:
        for strip, (pair, places, top) in enumerate(zip(densities[::-1], edges[::-1], tops[::-1], strict=True)):
            if own_scale:  # as shares of the way from the lowest to the highest
                places, pair = (places - places[0]) / (places[-1] - places[0]), [density / top for density in pair]
            for density, look in zip(pair, kinds.values(), strict=True):
                draw_steps(axes, places, density, look, strip * height)
        ends = (0.0, 1.0) if own_scale else (float(edges[0][0]), float(edges[0][-1]))
        across = ("Score", ends[0] - step, ends[1] + step, [(0.0, "lowest"), (1.0, "highest")] if own_scale else [])
        upright: tuple[Any, ...] = ("Density", 0.0, height)
        entries = [(look, f"{kind} trials") for kind, look in kinds.items()]
        if len(known) == 1:
            entries = [
                (look, f"{known[0][0]}, {kind} {style.keep_together('(' + _count(known[0][1], side, ' trials') + ')')}")
                for (kind, look), side in zip(kinds.items(), _sides(known[0][1]), strict=True)
            ]
        else:
            ticks = []
            for strip, ((name, scores), of) in enumerate(zip(known[::-1], edges[::-1], strict=True)):
                counts = [_count(scores, side, f" {kind}") for side, kind in zip(_sides(scores), kinds, strict=True)]
                span = [f"{of[0]:.3g} to {of[-1]:.3g}"] if own_scale else []
                ticks.append(((strip + 0.5) * height, "\n".join([*wrap(name, 24)[:3], *counts, *span])))
            scale = "each on its own scale" if own_scale else f"0 to {height:.3g} in each strip"
            upright = (f"Density, {scale}", 0.0, len(known) * height, ticks)
        return style.finish(axes, "Distribution of scores" if title is None else title, across, upright, entries)


def draw_steps(axes: Axes, edges: np.ndarray, heights: np.ndarray, look: style.Style, base: float = 0.0) -> None:
    """Draw a histogram as steps on a base, with the area below."""
    x = np.repeat(edges, 2)
    y = base + np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
    axes.plot(x, y, **look)
    axes.fill_between(x, y, base, color=look["color"], alpha=0.25, linewidth=0)


def _sides(scores: metrics.SortedScores) -> tuple[np.ndarray, np.ndarray]:
    return scores.target, scores.nontarget


def _edges(systems: Sequence[metrics.SortedScores], bins: int) -> np.ndarray:
    finite = np.concatenate([scores.thresholds[np.isfinite(scores.thresholds)] for scores in systems])
    if not len(finite):
        raise DataError("expected finite scores to plot, got infinite ones alone")
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(1.1 * high - 1.1 * low):
        text = f"scores from {low:.3g} to {high:.3g} are too far apart for bins"
        raise DataError(text, remedy="calibrate them, or leave the extreme ones out")
    margin = 0.5 if high == low else 0.0
    return np.linspace(low - margin, high + margin, bins + 1)


def _count(scores: metrics.SortedScores, side: np.ndarray, of: str) -> str:
    n_infinite = side[~np.isfinite(scores.thresholds)].sum()
    return f"{side.sum():,.0f}{of}" + (f", {n_infinite:,.0f} infinite" if n_infinite else "")


def plot_reliability(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    prior: float = 0.5,
) -> Figure:
    """Plot how often a trial is a target trial against the probability that its score claims.

    The share of target trials is estimated by isotonic regression, which needs no bins; each class is weighted to the
    prior. Scores are taken as natural log-likelihood ratios; a calibrated system lies on the diagonal.

    Parameters
    ----------
    systems, path, ax, title
        See `plot_det`.
    sort : bool
        Put the systems in the order of their calibration loss.
    prior : float
        Target prior, strictly between 0 and 1.

    References
    ----------
    .. [1] T. Dimitriadis et al., "Stable reliability diagrams for probabilistic classifiers", PNAS 118, 2021.
    """
    if not 0 < prior < 1:
        raise DataError(f"expected a target prior between 0 and 1, got {prior}")
    known = [
        (name, scores, metrics.cllr(scores) - metrics.min_cllr(scores)) for name, scores in sorted_systems(systems)
    ]
    entries = []
    with style.axes_for(path, ax, 6.2, 6.2) as axes:
        axes.plot([0.0, 1.0], [0.0, 1.0], **style.plain(style.PALE, 1.0))
        for number, (name, scores, loss) in enumerate(sorted(known, key=lambda one: one[2]) if sort else known):
            axes.plot(*reliability(scores, prior), **style.line_of(number))
            numbers = f"(calibration loss {loss:.3f} bit)"
            entries.append((style.line_of(number), f"{name} {style.keep_together(numbers)}"))
        title = "Reliability diagram" if title is None else title
        across = (f"Claimed probability of a target trial (prior {prior:g})", 0.0, 1.0)
        return style.finish(axes, title, across, ("Share of target trials", 0.0, 1.0), entries, square=True)


def reliability(scores: metrics.SortedScores, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Return claimed probability and share of target trials at both ends of each isotonic block, each (2 B,)."""
    log_odds = np.log(prior) - np.log1p(-prior)
    ends = np.stack([scores.blocks.first, scores.blocks.last], axis=1).ravel()
    claimed, share = scores.thresholds[ends], np.repeat(scores.blocks.llr, 2)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-claimed - log_odds)), 1 / (1 + np.exp(-share - log_odds))


# ---- curves over the prior


_ODDS = "Prior log-odds log(P / (1 - P)) of a target trial"
_DEFAULT = style.plain("#000000", 1.4, (10, 3))


def _grid(log_odds: tuple[float, float]) -> np.ndarray:
    """The prior log-odds at which curves are computed, shape (201,)."""
    low, high = log_odds
    if not -30 <= low < high <= 30:
        raise DataError(f"expected prior log-odds that rise within -30 and 30, got {low:g} to {high:g}")
    return np.linspace(low, high, 201)


def plot_zebra(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    scale: Sequence[tuple[str, float]] = metrics.SCALE,
    log_odds: tuple[float, float] = (-10.0, 10.0),
    numbers: Mapping[str, int] | None = None,
) -> Figure:
    """Plot ZEBRA profiles: what remains unknown of a trial, for each prior, after the best calibration of the scores.

    The legend names population (bit), individual and tag, as the reference does: ``label (0.584, 3.979, C)``, after
    ``perfect privacy (0, 0, 0)``.

    Parameters
    ----------
    systems, path, ax, title
        See `plot_det`.
    sort : bool
        Put the systems in the order of their population figure, the most private first.
    scale : sequence of (str, float)
        Tags of the individual figure; see `evaluation.metrics.read_scale`.
    log_odds : (float, float)
        Ends of the axis, prior log-odds log(P / (1 - P)) within -30 and 30.
    numbers : mapping of str to int, optional
        Which of the colours and line styles a system has, by its name, so that it has the same in several plots.

    Raises
    ------
    DataError
        If there is no system, an extension is unknown, or scores are empty or NaN.
    """
    known = [(name, scores, metrics.zebra(scores, scale=scale)) for name, scores in sorted_systems(systems)]
    grid = _grid(log_odds)
    entries = [(_DEFAULT, style.keep_together("perfect privacy (0, 0, 0)"))]
    with style.axes_for(path, ax, 7.0, 4.8) as axes:
        axes.plot(grid, _entropy(grid), **_DEFAULT)
        for number, (name, scores, profile) in enumerate(
            sorted(known, key=lambda one: one[2].population) if sort else known
        ):
            look = style.line_of((numbers or {}).get(name, number))
            axes.plot(grid, metrics.min_ece(scores, prior=_prior(grid)), **look)
            entries.append((look, f"{name} {style.keep_together(f'({profile})')}"))
        title = "ZEBRA profile" if title is None else title
        upright = ("Empirical cross-entropy (bit)", 0.0, 1.05)
        words = "(population in bit, individual as log10 LLR, category)"
        return style.finish(axes, title, (_ODDS, grid[0], grid[-1]), upright, entries, words)


def plot_ece(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    normalised: bool = False,
    log_odds: tuple[float, float] = (-10.0, 10.0),
) -> Figure:
    """Plot the empirical cross-entropy of scores that are log-likelihood ratios, and its minimum.

    Parameters
    ----------
    systems, path, ax, title
        See `plot_det`; the scores are natural LLRs.
    sort : bool
        Put the systems in the order of their Cllr.
    normalised : bool
        Divide by the entropy of the prior (NECE).
    log_odds : (float, float)
        See `plot_zebra`.
    """
    grid = _grid(log_odds)
    scale = _entropy(grid) if normalised else np.ones(len(grid))
    known = [
        (
            name,
            scores,
            metrics.ece(scores, prior=_prior(grid)) / scale,
            metrics.min_ece(scores, prior=_prior(grid)) / scale,
        )
        for name, scores in sorted_systems(systems)
    ]
    label = "Normalised empirical cross-entropy" if normalised else "Empirical cross-entropy (bit)"
    title = label.removesuffix(" (bit)") if title is None else title
    return _plot_pairs(known, grid, _entropy(grid) / scale, path, ax, title, label, sort=sort)


def plot_ape(
    systems: Systems,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    normalised: bool = False,
    log_odds: tuple[float, float] = (-10.0, 10.0),
    with_eer: bool = False,
) -> Figure:
    """Plot Bayes error rates (applied probability of error) of scores that are log-likelihood ratios.

    Parameters
    ----------
    systems, path, ax, title
        See `plot_det`; the scores are natural LLRs.
    sort : bool
        Put the systems in the order of their Cllr.
    normalised : bool
        Divide by the error rate of deciding by the prior alone (NBER).
    log_odds : (float, float)
        See `plot_zebra`.
    with_eer : bool
        Of error rates that are not normalised: draw the EER of each system, the highest that its dotted curve reaches.
    """
    if with_eer and normalised:
        raise DataError("the EER is an error rate that is not normalised", remedy="leave out one of them")
    grid = _grid(log_odds)
    common: dict[str, Any] = {"p_target": _prior(grid), "normalised": normalised}
    known = [
        (name, scores, metrics.act_dcf(scores, **common), metrics.min_dcf(scores, **common))
        for name, scores in sorted_systems(systems)
    ]
    default = np.ones(len(grid)) if normalised else _prior(-np.abs(grid))
    label = "Normalised Bayes error rate" if normalised else "Bayes error rate"
    return _plot_pairs(
        known, grid, default, path, ax, label if title is None else title, label, sort=sort, rates=with_eer
    )


def _plot_pairs(
    known: list[tuple[str, metrics.SortedScores, Any, Any]],
    grid: np.ndarray,
    default: np.ndarray,
    path: style.Paths | None,
    ax: Axes | None,
    title: str,
    label: str,
    *,
    sort: bool,
    rates: bool = False,
) -> Figure:
    """Plot the actual curve of each system as its line, and the least one dotted below it."""
    told = [(*one, metrics.cllr(one[1]), metrics.min_cllr(one[1])) for one in known]
    highest = max(float(curve[np.isfinite(curve)].max(initial=0.0)) for curve in (default, *(one[2] for one in known)))
    misread = [name for name, *_, loss, least in told if are_no_llrs(loss, least)]
    dotted, level = {"linestyle": (0, (1.5, 1.5)), "linewidth": 1.3}, {"linestyle": (0, (4, 2)), "linewidth": 1.0}
    entries = [(_DEFAULT, "default: the prior alone")]
    with style.axes_for(path, ax, 7.0, 4.8) as axes:
        axes.plot(grid, default, **_DEFAULT)
        ordered = sorted(told, key=lambda one: float(one[4])) if sort else told
        for number, (name, scores, actual, least, *losses) in enumerate(ordered):
            axes.plot(grid, actual, **style.line_of(number))
            axes.plot(grid, least, **style.line_of(number, **dotted))
            numbers = "(Cllr {:.3f}, minimum {:.3f} bit".format(*losses)
            if rates:
                axes.plot(grid[[0, -1]], [metrics.eer(scores)] * 2, **style.line_of(number, **level))
                numbers += f", EER {100 * metrics.eer(scores):.2f} %"
            entries.append((style.line_of(number), f"{name} {style.keep_together(numbers + ')')}"))
        entries.append((style.plain(style.GREY) | dotted, "dotted: the least that any calibration reaches"))
        if rates:
            entries.append((style.plain(style.GREY) | level, "horizontal: EER, the highest point of the dotted curve"))
        if misread:
            which = ", ".join(misread)
            if len(which) > 30:
                which = f"{len(misread)} systems" if len(misread) > 1 else f"{which[:29]}…"
            which = "the scores" if len(misread) == len(known) else which
            style.write_in_margin(axes, f"WARNING: {which}: no calibrated LLRs; calibrate first", 0.5, warning=True)
        top = min(1.08 * highest, 2 * float(default.max()))  # badly calibrated scores leave the picture
        rule = "No LLRs: Cllr above 1.05 bit, or more than twice its minimum and 0.1 bit above it" if misread else ""
        ends = (_ODDS, grid[0], grid[-1])
        return style.finish(axes, title, ends, (label, 0.0, top), entries, rule, pad=18 if misread else 8)


def are_no_llrs(actual: float, least: float) -> bool:
    """Return whether scores can hardly be meant as log-likelihood ratios.

    Parameters
    ----------
    actual, least : float
        Cllr of the scores and its least value over all calibrations (bit). They are no LLRs above 1.05 bit, where no
        scores at all would serve better, and where calibration would save more than half of Cllr and over 0.1 bit.

    Examples
    --------
    >>> are_no_llrs(0.85, 0.1), are_no_llrs(0.15, 0.1), are_no_llrs(1.01, 0.97)
    (True, False, False)
    """
    return actual > 1.05 or actual - least > max(0.1, least)


def _entropy(log_odds: np.ndarray) -> np.ndarray:
    """The entropy of the prior in bits."""
    prior = _prior(log_odds)
    return np.asarray(-(prior * np.log2(prior) + (1 - prior) * np.log2(1 - prior)))


def _prior(log_odds: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-log_odds)))
