"""Histograms of scores, and reliability diagrams."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from evaluation.metrics import cllr_of, min_cllr_of
from evaluation.plots.chart import (
    DASHES,
    PALE,
    Axis,
    Chart,
    Core,
    Line,
    Look,
    Paths,
    Systems,
    as_cores,
    as_systems,
    keep_together,
    look_of,
)
from evaluation.plots.draw import save_chart
from spkbase.errors import DataError


def plot_histogram(systems: Systems, *, path: Paths, title: str | None = None, bins: int = 60) -> None:
    """Plot the densities of target and nontarget scores; infinite scores are named in the legend, not drawn.

    Parameters
    ----------
    systems, path, title
        See `evaluation.plots.plot_zebra`.
    bins : int
        Number of bins from the lowest to the highest finite score of all systems.
    """
    if not 1 <= bins <= 10_000:
        raise DataError(f"expected 1 to 10,000 bins, got {bins}")
    known = as_systems(systems)
    as_cores(known)  # refuses what no plot can show
    columns = [(np.asarray(system.target, np.float64), np.asarray(system.nontarget, np.float64)) for system in known]
    finite = np.concatenate([side[np.isfinite(side)] for pair in columns for side in pair])
    if not len(finite):
        raise DataError("expected finite scores to plot, got infinite ones alone")
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(1.1 * high - 1.1 * low):
        text = f"scores from {low:.3g} to {high:.3g} are too far apart for bins"
        raise DataError(text, remedy="calibrate them, or leave the extreme ones out")
    margin = 0.5 if high == low else 0.0
    edges = np.linspace(low - margin, high + margin, bins + 1)
    lines, entries, highest = [], [], 0.0
    for number, (system, pair) in enumerate(zip(known, columns, strict=True)):
        for side, kind, look in zip(pair, ("target", "nontarget"), _looks(number, len(known)), strict=True):
            inside = side[np.isfinite(side)]
            density = np.histogram(inside, edges)[0] / (len(side) * np.diff(edges))
            lines.append(_steps(edges, density, look))
            highest = max(highest, float(density.max()))
            n_infinite = len(side) - len(inside)
            numbers = f"({len(side):,} trials" + (f", {n_infinite:,} infinite)" if n_infinite else ")")
            entries.append((look, f"{system.name}, {kind} {keep_together(numbers)}"))
    step = edges[1] - edges[0]
    chart = Chart(
        title or "Distribution of scores",
        Axis("Score", float(edges[0] - step), float(edges[-1] + step)),
        Axis("Density", 0.0, 1.05 * (highest or 1.0)),
        tuple(lines),
        tuple(entries),
    )
    save_chart(chart, path)


def plot_reliability(
    systems: Systems, *, path: Paths, title: str | None = None, sort: bool = False, prior: float = 0.5
) -> None:
    """Plot how often a trial is a target trial against the probability that its score claims.

    The share of target trials is estimated by isotonic regression, which needs no bins; each class is weighted to the
    prior. Scores are taken as natural log-likelihood ratios; a calibrated system lies on the diagonal.

    Parameters
    ----------
    systems, path, title
        See `evaluation.plots.plot_zebra`.
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
    cores = as_cores(systems)
    losses = [cllr_of(core.scores) - min_cllr_of(core.scores) for core in cores]
    order = np.argsort(losses, kind="stable") if sort else range(len(cores))
    ends = np.array([0.0, 1.0])
    lines, entries = [Line(ends, ends, Look(PALE, width=1.0))], []
    for number, place in enumerate(order):
        look = look_of(number)
        lines.append(Line(*reliability(cores[place], prior), look))
        numbers = f"(calibration loss {losses[place]:.3f} bit)"
        entries.append((look, f"{cores[place].name} {keep_together(numbers)}"))
    chart = Chart(
        title or "Reliability diagram",
        Axis(f"Claimed probability of a target trial (prior {prior:g})", 0.0, 1.0),
        Axis("Share of target trials", 0.0, 1.0),
        tuple(lines),
        tuple(entries),
        square=True,
        width=6.2,
        height=6.2,
    )
    save_chart(chart, path)


def reliability(core: Core, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Claimed probability and share of target trials at the first and last score of each isotonic block, (2 B,)."""
    log_odds = np.log(prior) - np.log1p(-prior)
    ends = np.stack([core.scores.blocks.first, core.scores.blocks.last], axis=1).ravel()
    claimed, share = core.scores.thresholds[ends], np.repeat(core.scores.blocks.llr, 2)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-claimed - log_odds)), 1 / (1 + np.exp(-share - log_odds))


def _looks(number: int, count: int) -> tuple[Look, Look]:
    """One system has a colour for each class; several have one each, nontarget trials dashed."""
    if count == 1:
        return replace(look_of(0), dash=(), fill=0.25), replace(look_of(1), dash=(), fill=0.25)
    look = replace(look_of(number), dash=())
    return look, replace(look, dash=DASHES[1], width=1.4)


def _steps(edges: np.ndarray, density: np.ndarray, look: Look) -> Line:
    x = np.repeat(edges, 2)
    y = np.concatenate([[0.0], np.repeat(density, 2), [0.0]])
    return Line(x, y, look)
