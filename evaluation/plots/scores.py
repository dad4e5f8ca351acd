"""Plots of scores: detection error trade-off, receiver operating characteristic, histograms, reliability, and curves
over the prior: empirical cross-entropy, Bayes error rates, the ZEBRA profile.

The horizontal axis of a curve over the prior is the prior log-odds log(P / (1 - P)) of a target trial. The default
system knows only the prior. Each function also takes the keywords of `evaluation.plots.Canvas`: path, ax, title, notes
and width. Warnings are logged for scores that look reversed, and for scores that cannot be LLRs if LLRs are needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from evaluation import metrics
from evaluation.plots import style
from evaluation.plots.style import (
    GREY,
    PALE,
    Canvas,
    Colours,
    Curves,
    Style,
    marker,
    named,
    plain,
)
from evaluation.trials import Scores
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Systems = Sequence[tuple[Any, ...]] | Mapping[str, Any] | Scores | ArrayLike
"""Names of systems for the legend, each with target and nontarget scores, scores and key, or sorted scores, in a list
or by name; or scores by name, or scores alone, with their key, labels (or nontarget scores) as the second argument of a
plot; or a data frame with columns of scores and labels."""

Shown = Literal["both", "actual", "minimum"]

_log = logging.getLogger(__name__)
_LEVELS_LOW = (5e-4, 1e-4, 1e-5, 1e-6)
_LEVELS_HIGH = (0.5, 0.8, 0.95, 0.99)
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 90, 95, 98)
_LOW_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40)
_WIDE_TICKS = (0.001, 0.01, 0.1, 1, 5, 20, 40, 60, 80, 95, 99)
_SMALL_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_HIGH_TICKS = (1, 2, 5, 10, *range(20, 90, 20), 90, 95, 98, 99)
_MOST_POINTS = 20_000
_ODDS = "Prior log-odds log(P / (1 - P)) of a target trial"
_DEFAULT = plain("#000000", 1.4, (10, 3))


def sorted_systems(
    systems: Systems,
    key: Any = None,
    order: Callable[[metrics.SortedScores], float] | None = None,
    *,
    sort: bool = True,
    labels: Any = None,
) -> list[tuple[str, metrics.SortedScores]]:
    """Return the name and the scores of each system, ordered by `sort`; warn of scores that look reversed."""
    named_scores = []
    for name, *given in _rows_of_systems(systems, key, has_labels=labels is not None):
        arguments: list[Any] = [*given, None, None]
        scores = metrics.sort_scores(arguments[0], arguments[1], labels)
        turned = metrics.reversal(scores)
        if turned is not None and turned.clear:
            _log.warning("plot of %s: %s", name, turned.text)
        named_scores.append((name, scores))
    if order is not None and sort:
        named_scores.sort(key=lambda system: order(system[1]))
    return named_scores


def _rows_of_systems(systems: Systems, key: Any, *, has_labels: bool = False) -> Any:
    """Return the name of each system and the argument given for it."""
    rows: Any = systems
    alone = key is not None or has_labels or hasattr(systems, "columns")
    by_name: Any = systems
    if alone and not isinstance(systems, Mapping):
        by_name = {"scores": systems}
    if isinstance(by_name, Mapping):
        rows = []
        for name, scores in by_name.items():
            row: tuple[Any, ...] = (name, scores, key)
            if key is None:
                row = (name, *_classes_of(scores))
            rows.append(row)
    listed = isinstance(rows, list | tuple)
    if not (
        listed
        and all(isinstance(row, tuple | list) and row and isinstance(row[0], str) for row in rows)
    ):
        text = f"expected Scores and a Key, or systems in a list, got {type(systems).__name__} and {type(key).__name__}"
        raise DataError(
            text, remedy="give each as (name, scores, key) or (name, target, nontarget)"
        )
    if not rows:
        raise DataError("expected a system and a curve to plot", remedy="give scores")
    return rows


def _classes_of(scores: Any) -> tuple[Any, ...]:
    """Return the arguments that a value in a dictionary of systems stands for: two classes, or one object with both."""
    if isinstance(scores, Mapping) and set(scores) == {"target", "nontarget"}:
        return scores["target"], scores["nontarget"]
    if isinstance(scores, tuple):
        return scores
    if isinstance(scores, list) and len(scores) == 2 and all(map(np.ndim, scores)):
        return tuple(scores)
    return (scores,)


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

    def contains(self, p_fa: float, p_miss: float) -> bool:
        """Return whether a point is inside."""
        inside = self.p_fa[0] <= p_fa <= self.p_fa[1]
        return inside and self.p_miss[0] <= p_miss <= self.p_miss[1]


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


def fitting_window(rates: Sequence[float]) -> Window:
    """Return a window, equal in both directions, with the error rates well inside.

    Parameters
    ----------
    rates : sequence of float
        Error rates to be shown; 0 and 1, which lie at infinity on a probit axis, are ignored.

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
    lowest = min(inside, default=0.1)
    highest = max(inside, default=0.1)
    low = next((level for level in _LEVELS_LOW if level <= lowest / 1.5), _LEVELS_LOW[-1])
    high = next(
        (level for level in _LEVELS_HIGH if ndtri(level) >= ndtri(highest) + 0.5), _LEVELS_HIGH[-1]
    )
    ticks = tuple(tick for tick in _TICKS if low <= tick / 100 <= high)
    if len(ticks) > 11:  # on a wide axis the labels in the middle would touch
        ticks = tuple(tick for tick in ticks if tick not in (0.2, 0.5, 2, 10, 98))
    return Window((low, high), (low, high), ticks, ticks)


def plot_det(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    window: str = "auto",
    prior: float | None = None,
    hull_only: bool = False,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot detection error trade-off curves on probit axes.

    Parameters
    ----------
    systems : sequence of (str, target, nontarget), of (str, Scores, Key) or of (str, SortedScores); or Scores
        One or several systems, by their names in the legend. If a key is given: `Scores`, or a mapping of names to
        `Scores`.
    key : Key, or array_like of float, optional
        Key of all systems; for an array of target scores, the nontarget scores; for scores of all trials, their labels
        as truth values or text.
    labels : array_like of bool, of 0 and 1, or of str, optional
        Labels of all systems in the place of the key.
    sort : bool
        Put the systems in the order of their EER, the highest first.
    window : {"auto", "sre10", "old", "new", "big"}
        The part of the plane: large enough to show the EER and minDCF of each system, with two equal axes;
        or a fixed one, by SIDEKIT's names.
    prior : float, optional
        Effective target prior (not its logit) of the minDCF point; by default 0.0917, as in SRE08.
    hull_only : bool
        Draw the convex hulls, from which EER and minDCF are read, without the curves themselves.
    color : str, tuple of float, sequence or mapping of these, optional
        A colour of matplotlib for all systems, one for each in the order of the legend, or colours by their names.
    path, ax, title, notes, width
        Where and how to draw; see `evaluation.plots.Canvas`.

    Raises
    ------
    DataError
        If there is no system, the window, a colour or an extension is unknown, or scores are empty or NaN.

    References
    ----------
    .. [1] G. Doddington et al., "The NIST speaker recognition evaluation", Speech Communication 31, 2000.
    """
    from scipy.special import ndtri

    if window not in ("auto", *WINDOWS):
        raise DataError(
            f"expected one of the windows {', '.join(('auto', *WINDOWS))}, got {window!r}"
        )
    application = metrics.SRE08 if prior is None else (prior,)
    prior = metrics.effective_prior(*application)
    known = sorted_systems(systems, key, _from_the_highest_eer, sort=sort, labels=labels)
    points = []
    rates = []
    counts = []
    for _, scores in known:
        rate = float(metrics.eer(scores))
        cost, p_miss, p_fa = metrics.hull_min_dcf(scores, prior=prior)
        points.append((rate, cost, p_miss, p_fa))
        rates += [rate, p_miss, p_fa]
        counts.append((scores.hull.misses[-1], scores.hull.false_alarms[0]))
    looks = style.looks_of([name for name, _ in known], color)
    curves = Curves()
    shown = WINDOWS.get(window, fitting_window(rates))
    box = (*shown.p_fa, *shown.p_miss)
    low = max(shown.p_fa[0], shown.p_miss[0])
    high = min(shown.p_fa[1], shown.p_miss[1])
    entries = []
    with style.axes_for(canvas, 6.6, 6.9) as axes:
        if low < high:
            axes.plot(*[ndtri(np.array([low, high]))] * 2, **plain(PALE, 1.0))
        _rule_of_30(axes, shown, counts, looks)
        for number, ((name, scores), (rate, cost, p_miss, p_fa)) in enumerate(
            zip(known, points, strict=True)
        ):
            look = looks[number]
            # marks along the line are smaller than those of EER and minDCF
            small = look | {"markersize": 4}
            pieces = _draw_curves(axes, scores, box, small, hull_only=hull_only)
            label = named(name, f"EER {100 * rate:.2f} %, minDCF({prior:.2g}) {cost:.3f}")
            label += curves.add(name, *_rates_of(scores, hull_only=hull_only))
            visible = shown.contains(p_fa, p_miss)
            if not pieces:
                label += "\ncurve outside this window"
            elif not visible:
                label += "\nminDCF point outside this window"
            if low <= rate <= high:
                ring = {
                    "markersize": 6.5,
                    "markerfacecolor": "white",
                    "markeredgecolor": look["color"],
                }
                axes.plot(
                    [ndtri(rate)],
                    [ndtri(rate)],
                    **marker("o", look["color"]) | ring,
                    markeredgewidth=1.6,
                )
            if visible:
                dot = marker(style.MARKERS[number % len(style.MARKERS)], look["color"])
                axes.plot([ndtri(p_fa)], [ndtri(p_miss)], **dot)
                look = look | dot | {"linestyle": look["linestyle"]}
            entries.append((look, label))
        if hull_only:
            lines = "Lines: convex hulls of the curves (ROCCH)"
        else:
            lines = (
                "Thick: the curve itself; thin: its convex hull, from which EER and minDCF are read"
            )
        notes = [
            f"Points: minDCF (normalised) at effective target prior {prior:.3g}; rings: EER, on the diagonal",
            lines,
            "Dotted: 30 errors; what lies beyond is uncertain",
        ]
        x = _probit_axis("False-alarm rate (%)", shown.p_fa, shown.ticks_fa)
        y = _probit_axis("Miss rate (%)", shown.p_miss, shown.ticks_miss)
        title = "Detection error trade-off"
        return style.finish(axes, canvas, title, x, y, entries, "\n".join(notes), square=True)


def plot_roc(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    lowest_fpr: float = 0.0,
    sort: bool = False,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot receiver operating characteristics: the share of accepted target trials against that of nontarget trials.

    Parameters
    ----------
    systems, key, labels, sort, color, path, ax, title, notes, width
        See `plot_det`.
    lowest_fpr : float
        Left end of a logarithmic axis of the false-accept rate, such as 0.001; 0 for a linear axis.

    Raises
    ------
    DataError
        If there is no system, an extension is unknown, the rate is out of range, or scores are empty or NaN.
    """
    if not 0 <= lowest_fpr < 1:
        raise DataError(
            f"expected a lowest false-accept rate from 0 (linear) to below 1, got {lowest_fpr}"
        )
    known = sorted_systems(systems, key, _from_the_highest_eer, sort=sort, labels=labels)
    looks = style.looks_of([name for name, _ in known], color)
    curves = Curves()
    chance = plain(PALE, 1.0)
    if lowest_fpr:
        diagonal = np.geomspace(lowest_fpr, 1, 200)
    else:
        diagonal = np.linspace(0, 1, 2)
    entries = []
    ticks = []
    with style.axes_for(canvas, 6.2, 6.2) as axes:
        if lowest_fpr:
            axes.set_xscale("log")
            decades = 10.0 ** np.arange(np.ceil(np.log10(lowest_fpr) - 1e-9), 1)
            ticks = [(decade, f"{decade:g}") for decade in decades.tolist()]
        axes.plot(diagonal, diagonal, **chance)
        for look, (name, scores) in zip(looks, known, strict=True):
            p_miss, p_fa = metrics.roc(scores)
            same = curves.add(name, p_miss, p_fa)
            if lowest_fpr:  # straight pieces are curved on this axis
                grid = np.unique(
                    np.concatenate([np.geomspace(lowest_fpr, 1, 800), p_fa[p_fa >= lowest_fpr]])
                )
                p_miss = np.interp(grid, p_fa[::-1], p_miss[::-1])
                p_fa = grid
            axes.plot(p_fa, 1 - p_miss, **look)
            numbers = f"EER {100 * metrics.eer(scores):.2f} %, AUC {metrics.auc(scores):.3f}"
            entries.append((look, named(name, numbers) + same))
        entries.append((chance, "chance"))
        x = ("False-accept rate", lowest_fpr, 1.0, ticks)
        y = ("True-accept rate", 0.0, 1.0)
        return style.finish(
            axes, canvas, "Receiver operating characteristic", x, y, entries, square=True
        )


def plot_histogram(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    bins: int = 60,
    own_scale: bool = False,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot the densities of target and nontarget scores; infinite scores are counted in the labels, not drawn.

    Several systems are drawn one below the other, with shared axes of scores and densities, or each with its own.

    Parameters
    ----------
    systems, key, labels, path, ax, title, notes, width
        See `plot_det`.
    color : sequence or mapping of str or tuple of float, optional
        Colours of target and nontarget scores, in this order or by these names.
    bins : int
        Number of bins from the lowest to the highest finite score of all systems.
    own_scale : bool
        Give each system its own bins, axis of scores and scale of densities: for scores that cannot be compared, such
        as cosines and log-likelihood ratios.
    """
    if not 1 <= bins <= 10_000:
        raise DataError(f"expected 1 to 10,000 bins, got {bins}")
    known = sorted_systems(systems, key, labels=labels)
    own_scale = own_scale and len(known) > 1
    target, nontarget = style.looks_of(("target", "nontarget"), color)
    looks = {"target": plain(target["color"]), "nontarget": plain(nontarget["color"])}
    strips = []
    for name, scores in reversed(known):  # from the lowest strip up
        together = [(name, scores)] if own_scale else known
        edges = edges_of(together, bins)
        densities, counts = _densities(scores, edges)
        strips.append((name, edges, densities, counts, 1.05 * (float(np.max(densities)) or 1.0)))
    height = 1.0 if own_scale else max(top for *_, top in strips)
    ticks = []
    entries = [(look, f"{kind} trials") for kind, look in looks.items()]
    with style.axes_for(canvas, 7.0, max(4.8, 1.4 * len(known))) as axes:
        for number, (name, edges, densities, counts, top) in enumerate(strips):
            lines = wrap(name, 24)[:3]
            bounds = edges
            scale = 1.0
            for kind, (count, more) in zip(looks, counts, strict=True):
                lines.append(f"{count} {kind}{more}")
            if own_scale:
                bounds = np.linspace(0, 1, bins + 1)
                scale = top
                lines.append(f"{edges[0]:.3g} to {edges[-1]:.3g}")
            for density, look in zip(densities, looks.values(), strict=True):
                draw_steps(axes, bounds, density / scale, look, number * height)
            ticks.append(((number + 0.5) * height, "\n".join(lines)))
        step = bounds[1] - bounds[0]
        ends = [(0.0, "lowest"), (1.0, "highest")] if own_scale else []
        x = ("Score", bounds[0] - step, bounds[-1] + step, ends)
        y: tuple[Any, ...] = ("Density", 0.0, height)
        if len(known) > 1:
            if own_scale:
                label = "each on its own scale"
            else:
                label = f"0 to {height:.3g} in each strip"
            y = (f"Density, {label}", 0.0, len(known) * height, ticks)
        else:
            entries = []
            for (kind, look), (count, more) in zip(looks.items(), counts, strict=True):
                entries.append((look, named(f"{name}, {kind}", f"{count} trials{more}")))
        return style.finish(axes, canvas, "Distribution of scores", x, y, entries)


def _densities(
    scores: metrics.SortedScores, edges: np.ndarray
) -> tuple[list[np.ndarray], list[tuple[str, str]]]:
    """Return the densities of target and nontarget scores, and texts with their numbers, infinite scores apart."""
    densities = []
    counts = []
    for side in (scores.target, scores.nontarget):
        in_bins = np.histogram(scores.thresholds, edges, weights=side)[0]
        densities.append(in_bins / (side.sum() * np.diff(edges)))
        n_infinite = side[~np.isfinite(scores.thresholds)].sum()
        more = f", {n_infinite:,.0f} infinite" if n_infinite else ""
        counts.append((f"{side.sum():,.0f}", more))
    return densities, counts


def draw_steps(
    axes: Axes, edges: np.ndarray, heights: np.ndarray, look: Style, base: float = 0.0
) -> None:
    """Draw a histogram as steps on a base, with the area below."""
    x = np.repeat(edges, 2)
    y = base + np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
    axes.plot(x, y, **look)
    axes.fill_between(x, y, base, color=look["color"], alpha=0.25, linewidth=0)


def plot_reliability(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    prior: float = 0.5,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot how often a trial is a target trial against the probability that its score claims.

    The share of target trials is estimated by isotonic regression, which needs no bins; each class is weighted to the
    prior. Scores are taken as natural log-likelihood ratios; a calibrated system lies on the diagonal.

    Parameters
    ----------
    systems, key, labels, color, path, ax, title, notes, width
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

    def loss(scores: metrics.SortedScores) -> float:
        return float(metrics.cllr(scores) - metrics.min_cllr(scores))

    known = sorted_systems(systems, key, loss, sort=sort, labels=labels)
    looks = style.looks_of([name for name, _ in known], color)
    curves = Curves()
    entries = []
    with style.axes_for(canvas, 6.2, 6.2) as axes:
        axes.plot([0.0, 1.0], [0.0, 1.0], **plain(PALE, 1.0))
        for look, (name, scores) in zip(looks, known, strict=True):
            points = reliability(scores, prior)
            axes.plot(*points, **look)
            label = named(name, f"calibration loss {loss(scores):.3f} bit")
            entries.append((look, label + curves.add(name, *points)))
            warn_of_ratios(name, scores, metrics.cllr(scores))
        x = (f"Claimed probability of a target trial (prior {prior:g})", 0.0, 1.0)
        y = ("Share of target trials", 0.0, 1.0)
        return style.finish(axes, canvas, "Reliability diagram", x, y, entries, square=True)


def reliability(scores: metrics.SortedScores, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Return claimed probability and share of target trials at both ends of B isotonic blocks, each of shape (2 B,)."""
    from scipy.special import expit, logit

    ends = np.stack([scores.blocks.first, scores.blocks.last], axis=1).ravel()
    claimed = scores.thresholds[ends]
    share = np.repeat(scores.blocks.llr, 2)
    return expit(claimed + logit(prior)), expit(share + logit(prior))


def plot_zebra(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    scale: Sequence[tuple[str, float]] = metrics.SCALE,
    log_odds: tuple[float, float] = (-10.0, 10.0),
    numbers: Mapping[str, int] | None = None,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot ZEBRA profiles: what remains unknown of a trial, for each prior, after the best calibration of the scores.

    The legend names population (bit), individual and tag, as the reference does: ``label (0.584, 3.979, C)``, after
    ``perfect privacy (0, 0, 0)``.

    Parameters
    ----------
    systems, key, labels, color, path, ax, title, notes, width
        See `plot_det`.
    sort : bool
        Put the systems in the order of their population figure, the most private first.
    scale : sequence of (str, float)
        Tags of the individual figure; see `evaluation.metrics.read_scale`.
    log_odds : (float, float)
        Ends of the axis, prior log-odds log(P / (1 - P)) within -30 and 30.
    numbers : mapping of str to int, optional
        Number of the colour and line style of each system, by name, so that it looks the same in several plots.

    Raises
    ------
    DataError
        If there is no system, an extension is unknown, or scores are empty or NaN.
    """

    def population(scores: metrics.SortedScores) -> float:
        return float(metrics.zebra(scores, scale=scale).population)

    grid, priors, entropies = _priors(log_odds)
    known = sorted_systems(systems, key, population, sort=sort, labels=labels)
    places = [(numbers or {}).get(name, place) for place, (name, _) in enumerate(known)]
    looks = style.looks_of([name for name, _ in known], color, places)
    curves = Curves()
    entries = [(_DEFAULT, named("perfect privacy", "0, 0, 0"))]
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        axes.plot(grid, entropies, **_DEFAULT)
        for look, (name, scores) in zip(looks, known, strict=True):
            profile = metrics.min_ece(scores, prior=priors)
            axes.plot(grid, profile, **look)
            label = named(name, f"{metrics.zebra(scores, scale=scale)}")
            entries.append((look, label + curves.add(name, profile)))
        x = (_ODDS, grid[0], grid[-1])
        y = ("Empirical cross-entropy (bit)", 0.0, 1.05)
        notes = "(population in bit, individual as log10 LLR, category)"
        return style.finish(axes, canvas, "ZEBRA profile", x, y, entries, notes)


def plot_ece(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    normalised: bool = False,
    log_odds: tuple[float, float] = (-10.0, 10.0),
    curves: Shown = "both",
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot the empirical cross-entropy of scores that are log-likelihood ratios, and its minimum.

    Parameters
    ----------
    systems, key, labels, color, path, ax, title, notes, width
        See `plot_det`; the scores are natural LLRs, or a warning is logged.
    sort : bool
        Put the systems in the order of their Cllr.
    normalised : bool
        Divide by the entropy of the prior (NECE).
    log_odds : (float, float)
        See `plot_zebra`.
    curves : {"both", "actual", "minimum"}
        What to draw of each system: the curve of its scores, the minimum over all calibrations, or both.
    """
    grid, priors, entropies = _priors(log_odds)
    if normalised:
        label = "Normalised empirical cross-entropy"
        scale = entropies
    else:
        label = "Empirical cross-entropy (bit)"
        scale = np.ones(len(grid))
    known = []
    for name, scores in sorted_systems(systems, key, metrics.cllr, sort=sort, labels=labels):
        actual = metrics.ece(scores, prior=priors) / scale
        known.append((name, scores, actual, metrics.min_ece(scores, prior=priors) / scale))
    return _plot_pairs(known, grid, entropies / scale, label, canvas, curves, color)


def plot_ape(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    normalised: bool = False,
    log_odds: tuple[float, float] = (-10.0, 10.0),
    with_eer: bool = False,
    curves: Shown = "both",
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot Bayes error rates (applied probability of error) of scores that are log-likelihood ratios.

    Parameters
    ----------
    systems, key, labels, color, path, ax, title, notes, width
        See `plot_det`; the scores are natural LLRs, or a warning is logged.
    sort : bool
        Put the systems in the order of their Cllr.
    normalised : bool
        Divide by the error rate of deciding by the prior (NBER).
    log_odds : (float, float)
        See `plot_zebra`.
    curves
        See `plot_ece`.
    with_eer : bool
        Also draw the EER of each system, the maximum of its dotted curve; only without `normalised`.
    """
    if with_eer and normalised:
        raise DataError(
            "the EER is an error rate that is not normalised", remedy="leave out one of them"
        )
    grid, priors, _ = _priors(log_odds)
    common: dict[str, Any] = {"p_target": priors, "normalised": normalised}
    known = []
    for name, scores in sorted_systems(systems, key, metrics.cllr, sort=sort, labels=labels):
        known.append(
            (name, scores, metrics.act_dcf(scores, **common), metrics.min_dcf(scores, **common))
        )
    if normalised:
        default = np.ones(len(grid))
        label = "Normalised Bayes error rate"
    else:
        default = np.minimum(priors, 1 - priors)
        label = "Bayes error rate"
    return _plot_pairs(known, grid, default, label, canvas, curves, color, with_eer=with_eer)


def warn_of_ratios(name: str, scores: metrics.SortedScores, cllr: float) -> None:
    doubt = metrics.doubt_ratios(scores, cllr)
    if doubt:
        _log.warning("plot of %s: %s", name, doubt)


def _draw_curves(
    axes: Axes,
    scores: metrics.SortedScores,
    box: tuple[float, float, float, float],
    look: Style,
    *,
    hull_only: bool,
) -> int:
    """Draw a DET curve and its convex hull, or the hull alone; return the number of pieces within the window."""
    pieces = 0
    if not hull_only:
        corners = metrics.roc(scores)
        # with many pieces, each is short and bends little
        n_points = int(np.clip(_MOST_POINTS // len(corners[0]), 2, 25))
        curve = metrics.probit_curve(*corners, box=box, points=n_points)
        pieces += _draw_pieces(axes, *curve, n_points, look)
        look = look | {"linestyle": "-", "linewidth": 0.8, "alpha": 0.75, "marker": "None"}
    hull = metrics.probit_curve(scores.hull.p_miss, scores.hull.p_fa, box=box)
    return pieces + _draw_pieces(axes, *hull, 101, look)


def _rates_of(scores: metrics.SortedScores, *, hull_only: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return miss and false-alarm rates of a curve, or of its convex hull."""
    if hull_only:
        return scores.hull.p_miss, scores.hull.p_fa
    return metrics.roc(scores)


def _rule_of_30(
    axes: Axes, window: Window, counts: Sequence[tuple[float, float]], looks: Sequence[Style]
) -> None:
    """Draw lines of 30 errors, in the colours of the systems if their numbers of trials differ; label the first."""
    from scipy.special import ndtri

    n_target, n_nontarget = zip(*counts, strict=True)
    for across, (low, high), numbers in (
        (False, window.p_fa, n_nontarget),
        (True, window.p_miss, n_target),
    ):
        shares = []
        for number in dict.fromkeys(numbers):
            if not low < 30 / number < high:
                continue
            shares.append(float((ndtri(30 / number) - ndtri(low)) / (ndtri(high) - ndtri(low))))
            if len(set(numbers)) == 1:
                colour = GREY
            else:
                colour = looks[numbers.index(number)]["color"]
            level = np.full(2, ndtri(30 / number))
            if across:
                axes.plot(ndtri(window.p_fa), level, **plain(colour, 1.1, (1, 2)))
            else:
                axes.plot(level, ndtri(window.p_miss), **plain(colour, 1.1, (1, 2)))
        if shares:
            errors = "misses" if across else "false alarms"
            style.write_in_margin(axes, f"30 {errors}", min(shares), across=across)


def _probit_axis(label: str, ends: tuple[float, float], ticks: Sequence[float]) -> tuple[Any, ...]:
    """Return label, limits and ticks of a probit axis; the ticks are given in percent."""
    from scipy.special import ndtri

    labels = [(float(ndtri(tick / 100)), f"{tick:g}") for tick in ticks]
    return (label, *ndtri(ends).tolist(), labels)


def _draw_pieces(axes: Axes, x: np.ndarray, y: np.ndarray, points: int, look: Style) -> int:
    """Draw a curve that may leave the window and re-enter it; return the number of its pieces."""
    if not len(x):
        return 0
    x = x.reshape(-1, points)
    y = y.reshape(-1, points)
    breaks = np.flatnonzero((x[1:, 0] != x[:-1, -1]) | (y[1:, 0] != y[:-1, -1])) + 1
    pieces = list(zip(np.split(x, breaks), np.split(y, breaks), strict=True))
    for xs, ys in pieces:
        axes.plot(xs.ravel(), ys.ravel(), **look)
    return len(pieces)


def _from_the_highest_eer(scores: metrics.SortedScores) -> float:
    return -float(metrics.eer(scores))


def edges_of(systems: Sequence[tuple[str, metrics.SortedScores]], bins: int) -> np.ndarray:
    thresholds = np.concatenate([scores.thresholds for _, scores in systems])
    finite = thresholds[np.isfinite(thresholds)]
    if not len(finite):
        raise DataError("expected finite scores to plot, got only infinite ones")
    low = float(finite.min())
    high = float(finite.max())
    if not np.isfinite(1.1 * high - 1.1 * low):
        text = f"scores from {low:.3g} to {high:.3g} are too far apart for bins"
        raise DataError(text, remedy="calibrate them, or leave the extreme ones out")
    margin = 0.5 if high == low else 0.0
    return np.linspace(low - margin, high + margin, bins + 1)


def _priors(log_odds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the prior log-odds at which curves are computed, the priors, and their entropies in bits, each (201,)."""
    from scipy.special import entr, expit

    low, high = log_odds
    if not -30 <= low < high <= 30:
        raise DataError(
            f"expected prior log-odds that rise within -30 and 30, got {low:g} to {high:g}"
        )
    grid = np.linspace(low, high, 201)
    return grid, expit(grid), (entr(expit(grid)) + entr(expit(-grid))) / np.log(2)


def _plot_pairs(
    known: list[tuple[str, metrics.SortedScores, Any, Any]],
    grid: np.ndarray,
    default: np.ndarray,
    label: str,
    canvas: Canvas,
    curves: Shown,
    color: Colours,
    *,
    with_eer: bool = False,
) -> Figure:
    """Plot the actual curve of each system as a line and the minimum as a dotted line below; or only one of them."""
    if curves not in ("both", "actual", "minimum"):
        raise DataError(f"expected curves to be 'both', 'actual' or 'minimum', got {curves!r}")
    dotted = {"linestyle": (0, (1.5, 1.5)), "linewidth": 1.3}
    level = {"linestyle": (0, (4, 2)), "linewidth": 1.0, "marker": "None"}
    entries = [(_DEFAULT, "default: the prior alone")]
    top = _top_of(known, default, curves)
    looks = style.looks_of([name for name, *_ in known], color)
    drawn = Curves()
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        axes.plot(grid, default, **_DEFAULT)
        for look, (name, scores, actual, least) in zip(looks, known, strict=True):
            main = least if curves == "minimum" else actual
            axes.plot(grid, main, **look)
            if curves == "both":
                axes.plot(grid, least, **look | dotted)
            cllr = metrics.cllr(scores)
            min_cllr = metrics.min_cllr(scores)
            eer = metrics.eer(scores)
            numbers = f"Cllr {cllr:.3f}, minimum {min_cllr:.3f} bit"
            if with_eer:
                axes.plot(grid[[0, -1]], [eer, eer], **look | level)
                numbers += f", EER {100 * eer:.2f} %"
            entry = named(name, numbers) + drawn.add(name, main)
            if np.max(main) > top:
                entry += "\ncurve goes on above this plot"
            entries.append((look, entry))
            if curves != "minimum":
                warn_of_ratios(name, scores, cllr)
        if curves == "both":
            entries.append((plain(GREY) | dotted, "dotted: minimum over all calibrations"))
        if curves == "minimum":
            label = f"Minimum of {label[0].lower()}{label[1:]}"
        if with_eer:
            entries.append(
                (plain(GREY) | level, "horizontal: EER, the highest point of the dotted curve")
            )
        x = (_ODDS, grid[0], grid[-1])
        title = label.removesuffix(" (bit)")
        return style.finish(axes, canvas, title, x, (label, 0.0, top), entries)


def _top_of(
    known: list[tuple[str, metrics.SortedScores, Any, Any]], default: np.ndarray, curves: Shown
) -> float:
    """Return the upper end of the axis; the curves of badly calibrated scores leave the plot."""
    highest = float(default.max())
    for _, _, actual, least in known:
        main = least if curves == "minimum" else actual
        highest = max(highest, float(main[np.isfinite(main)].max(initial=0.0)))
    return min(1.08 * highest, 2 * float(default.max()))
