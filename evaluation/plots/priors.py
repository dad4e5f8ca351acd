"""Curves over the prior: empirical cross-entropy, Bayes error rates, and the ZEBRA profile.

The horizontal axis is the prior log-odds log(P / (1 - P)) of a target trial. The default system knows the prior alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evaluation.metrics import SCALE, SortedScores, cllr, ece, eer, min_cllr, min_ece, zebra
from evaluation.plots.chart import (
    GREY,
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
    names_of,
    thin,
)
from evaluation.plots.draw import render_chart
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL = "Prior log-odds log(P / (1 - P)) of a target trial"
_DEFAULT = Look("#000000", (10, 3), 1.4)
_RULE = "No LLRs: Cllr above 1.05 bit, or more than twice its minimum and 0.1 bit above it"


@one_line
@dataclass(frozen=True)
class PriorStyle:
    """What a plot over the prior shows.

    Parameters
    ----------
    log_odds : (float, float)
        Ends of the axis, prior log-odds log(P / (1 - P)) within -30 and 30.
    eer : bool
        Of Bayes error rates that are not normalised: draw the EER of each system, the highest that its dotted curve
        reaches.
    """

    log_odds: tuple[float, float] = (-10.0, 10.0)
    eer: bool = False

    def grid(self) -> np.ndarray:
        """Return the prior log-odds at which curves are computed, shape (201,)."""
        low, high = self.log_odds
        if not -30 <= low < high <= 30:
            raise DataError(f"expected prior log-odds that rise within -30 and 30, got {low:g} to {high:g}")
        return np.linspace(low, high, 201)


@dataclass(frozen=True)
class _Curves:
    """What is drawn of each system: title, label of the axis, and the curves over the prior log-odds."""

    title: str
    unit: str
    grid: np.ndarray
    default: np.ndarray
    actual: Callable[[SortedScores], np.ndarray]
    least: Callable[[SortedScores], np.ndarray]
    eer: bool = False


def plot_zebra(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    scale: Sequence[tuple[str, float]] = SCALE,
    style: PriorStyle | None = None,
) -> Figure | None:
    """Plot ZEBRA profiles: what remains unknown of a trial, for each prior, after the best calibration of the scores.

    The legend names population (bit), individual and tag, as the reference does: ``label (0.584, 3.979, C)``, after
    ``perfect privacy (0, 0, 0)``.

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
        Put the systems in the order of their population figure, the most private first.
    scale : sequence of (str, float)
        Tags of the individual figure; see `evaluation.metrics.read_scale`.
    style : PriorStyle, optional
        Which priors to show.

    Raises
    ------
    DataError
        If there is no system, an extension is unknown, or scores are empty or NaN.
    """
    return save_profiles(as_cores(systems), path=path, ax=ax, title=title, sort=sort, scale=scale, style=style)


def save_profiles(
    cores: Sequence[Core],
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    scale: Sequence[tuple[str, float]] = SCALE,
    style: PriorStyle | None = None,
) -> Figure | None:
    """Plot ZEBRA profiles of scores that are sorted already.

    Parameters
    ----------
    cores : sequence of Core
        Systems; see `evaluation.plots.as_cores`.
    path, ax, title, sort, scale, style
        See `plot_zebra`.
    """
    profiles = [zebra(core.scores, scale=scale) for core in cores]
    by_population = np.argsort([profile.population for profile in profiles], kind="stable")
    order = by_population if sort else range(len(cores))
    grid = (style or PriorStyle()).grid()
    lines = [Line(grid, default_ece(grid), _DEFAULT)]
    entries = [(_DEFAULT, keep_together("perfect privacy (0, 0, 0)"))]
    for number, system in enumerate(order):
        look = cores[system].look or look_of(number)
        lines.append(Line(grid, _min_ece(cores[system].scores, grid), look))
        entries.append((look, f"{cores[system].name} {keep_together(f'({profiles[system]})')}"))
    chart = Chart(
        "ZEBRA profile" if title is None else title,
        Axis(_LABEL, grid[0], grid[-1]),
        Axis("Empirical cross-entropy (bit)", 0.0, 1.05),
        tuple(lines),
        tuple(entries),
        "(population in bit, individual as log10 LLR, category)",
    )
    return render_chart(chart, path, ax)


def plot_ece(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    normalised: bool = False,
    style: PriorStyle | None = None,
) -> Figure | None:
    """Plot the empirical cross-entropy of scores that are log-likelihood ratios, and its minimum.

    Parameters
    ----------
    systems : sequence of System, of (name, target, nontarget), or of (name, Scores, Key)
        One or several systems, with natural LLRs as scores.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    title : str, optional
        Stands above the plot.
    sort : bool
        Put the systems in the order of their Cllr.
    normalised : bool
        Divide by the entropy of the prior (NECE).
    style : PriorStyle, optional
        Which priors to show.
    """
    grid = (style or PriorStyle()).grid()
    scale = default_ece(grid) if normalised else np.ones(len(grid))
    unit = "Normalised empirical cross-entropy" if normalised else "Empirical cross-entropy (bit)"
    curves = _Curves(
        unit.removesuffix(" (bit)") if title is None else title,
        unit,
        grid,
        default_ece(grid) / scale,
        actual=lambda scores: np.asarray(ece(scores, prior=_prior(grid))) / scale,
        least=lambda scores: _min_ece(scores, grid) / scale,
    )
    return render_chart(_pair(systems, curves, sort=sort), path, ax)


def plot_ape(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    normalised: bool = False,
    style: PriorStyle | None = None,
) -> Figure | None:
    """Plot Bayes error rates (applied probability of error) of scores that are log-likelihood ratios.

    Parameters
    ----------
    systems : sequence of System, of (name, target, nontarget), or of (name, Scores, Key)
        One or several systems, with natural LLRs as scores.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    title : str, optional
        Stands above the plot.
    sort : bool
        Put the systems in the order of their Cllr.
    normalised : bool
        Divide by the error rate of deciding by the prior alone (NBER).
    style : PriorStyle, optional
        Which priors to show, and whether to draw the EER.
    """
    style = style or PriorStyle()
    if style.eer and normalised:
        raise DataError("the EER is an error rate that is not normalised", remedy="leave out eer or normalised")
    grid = style.grid()
    default = default_error(grid)
    scale = default if normalised else np.ones(len(grid))
    unit = "Normalised Bayes error rate" if normalised else "Bayes error rate"
    curves = _Curves(
        unit if title is None else title,
        unit,
        grid,
        default / scale,
        actual=lambda scores: actual_error(scores, grid) / scale,
        least=lambda scores: least_error(scores, grid) / scale,
        eer=style.eer,
    )
    return render_chart(_pair(systems, curves, sort=sort), path, ax)


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


def default_ece(log_odds: np.ndarray) -> np.ndarray:
    """Return the entropy of the prior in bits.

    Parameters
    ----------
    log_odds : ndarray of float64 of shape (P,)
        Prior log-odds log(P / (1 - P)).

    Returns
    -------
    ndarray of float64 of shape (P,)
    """
    prior = _prior(log_odds)
    return -(prior * np.log2(prior) + (1 - prior) * np.log2(1 - prior))


def default_error(log_odds: np.ndarray) -> np.ndarray:
    """Return the error rate of deciding by the prior alone.

    Parameters
    ----------
    log_odds : ndarray of float64 of shape (P,)
        Prior log-odds log(P / (1 - P)).

    Returns
    -------
    ndarray of float64 of shape (P,)
    """
    return _prior(-np.abs(log_odds))


def actual_error(scores: SortedScores, log_odds: np.ndarray) -> np.ndarray:
    """Return the error rate of Bayes decisions by natural LLRs, which accept at -log_odds and above.

    Parameters
    ----------
    scores : SortedScores
        See `evaluation.metrics.sort_scores`.
    log_odds : ndarray of float64 of shape (P,)
        Prior log-odds log(P / (1 - P)).

    Returns
    -------
    ndarray of float64 of shape (P,)
    """
    cut = np.searchsorted(scores.thresholds, -log_odds, side="left")
    p_miss = scores.misses[cut] / scores.n_target
    p_fa = 1 - scores.rejected[cut] / scores.n_nontarget
    prior = _prior(log_odds)
    return prior * p_miss + (1 - prior) * p_fa


def least_error(scores: SortedScores, log_odds: np.ndarray) -> np.ndarray:
    """Return the least error rate over all thresholds.

    Parameters
    ----------
    scores : SortedScores
        See `evaluation.metrics.sort_scores`.
    log_odds : ndarray of float64 of shape (P,)
        Prior log-odds log(P / (1 - P)).

    Returns
    -------
    ndarray of float64 of shape (P,)
    """
    prior = _prior(log_odds)[:, None]
    return (prior * scores.hull.p_miss + (1 - prior) * scores.hull.p_fa).min(axis=1)


def _pair(systems: Systems, curves: _Curves, *, sort: bool) -> Chart:
    """Return the actual curve of each system as its line, and the least one dotted below it."""
    cores = as_cores(systems)
    losses = [(cllr(core.scores), min_cllr(core.scores)) for core in cores]
    order = np.argsort([loss for loss, _ in losses], kind="stable") if sort else range(len(cores))
    lines = [Line(curves.grid, curves.default, _DEFAULT)]
    entries = [(_DEFAULT, "default: the prior alone")]
    highest = float(curves.default.max())
    for number, system in enumerate(order):
        look, core = look_of(number), cores[system]
        curve = curves.actual(core.scores)
        lines += [Line(curves.grid, curve, look), Line(curves.grid, curves.least(core.scores), thin(look))]
        numbers = f"(Cllr {losses[system][0]:.3f}, minimum {losses[system][1]:.3f} bit)"
        if curves.eer:
            rate = eer(core.scores)
            lines.append(Line(curves.grid[[0, -1]], np.full(2, rate), replace(look, dash=(4, 2), width=1.0)))
            numbers = f"{numbers[:-1]}, EER {100 * rate:.2f} %)"
        entries.append((look, f"{core.name} {keep_together(numbers)}"))
        highest = max(highest, float(curve[np.isfinite(curve)].max(initial=0.0)))
    if not np.isfinite(highest):
        raise DataError("expected scores that are log-likelihood ratios", remedy="calibrate them first")
    entries.append((thin(Look(GREY)), "dotted: the least that any calibration reaches"))
    entries += [(Look(GREY, (4, 2), 1.0), "horizontal: EER, the highest point of the dotted curve")] * curves.eer
    top = min(1.08 * highest, 2 * float(curves.default.max()))  # badly calibrated scores leave the picture
    notes = _warning([(cores[system].name, *losses[system]) for system in order])
    axes = Axis(_LABEL, curves.grid[0], curves.grid[-1]), Axis(curves.unit, 0.0, top)
    return Chart(curves.title, *axes, tuple(lines), tuple(entries), _RULE if notes else "", notes)


def _warning(losses: Sequence[tuple[str, float, float]]) -> tuple[Note, ...]:
    """Say above the plot which scores are not what it is about."""
    misread = [name for name, actual, least in losses if are_no_llrs(actual, least)]
    if not misread:
        return ()
    which = "the scores" if len(misread) == len(losses) else names_of(misread)
    return (Note(f"WARNING: {which}: no calibrated LLRs; calibrate first", 0.5, False, True),)


def _min_ece(scores: SortedScores, grid: np.ndarray) -> np.ndarray:
    return np.asarray(min_ece(scores, prior=_prior(grid)))


def _prior(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))
