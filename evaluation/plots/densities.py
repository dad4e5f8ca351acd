"""Histograms of scores, and reliability diagrams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from evaluation.metrics import cllr, min_cllr
from evaluation.plots.chart import (
    COLOURS,
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
from evaluation.plots.draw import render_chart
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIDES = {"target": Look(COLOURS[0], fill=0.25), "nontarget": Look(COLOURS[1], fill=0.25)}


def plot_histogram(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    bins: int = 60,
    own_scale: bool = False,
) -> Figure | None:
    """Plot the densities of target and nontarget scores; infinite scores are counted in words, not drawn.

    Several systems stand one below the other, in strips of the same scores and the same densities, or each of its own.

    Parameters
    ----------
    systems, path, ax, title
        See `evaluation.plots.plot_zebra`.
    bins : int
        Number of bins from the lowest to the highest finite score of all systems.
    own_scale : bool
        Give each system its own bins, axis of scores and scale of densities: for scores that cannot be compared, such
        as cosines and log-likelihood ratios.
    """
    if not 1 <= bins <= 10_000:
        raise DataError(f"expected 1 to 10,000 bins, got {bins}")
    known = as_systems(systems)
    as_cores(known)  # refuses what no plot can show
    columns = [(np.asarray(system.target, np.float64), np.asarray(system.nontarget, np.float64)) for system in known]
    own_scale = own_scale and len(known) > 1
    edges = [_edges([pair] if own_scale else columns, bins) for pair in columns]
    densities = [[_density(side, of) for side in pair] for pair, of in zip(columns, edges, strict=True)]
    tops = [1.05 * (max(float(density.max()) for density in pair) or 1.0) for pair in densities]
    height, step = (1.0, 1 / bins) if own_scale else (max(tops), edges[0][1] - edges[0][0])
    lines: list[Line] = []
    for strip, (pair, places, top) in enumerate(zip(densities[::-1], edges[::-1], tops[::-1], strict=True)):
        if own_scale:  # as shares of the way from the lowest to the highest
            places, pair = (places - places[0]) / (places[-1] - places[0]), [density / top for density in pair]
        lines += [
            _steps(places, density, look, strip * height) for density, look in zip(pair, _SIDES.values(), strict=True)
        ]
    ends = (0.0, 1.0) if own_scale else (float(edges[0][0]), float(edges[0][-1]))
    across = Axis("Score", ends[0] - step, ends[1] + step, ((0.0, "lowest"), (1.0, "highest")) if own_scale else ())
    if len(known) == 1:
        numbers = [keep_together(f"({_count(side, ' trials')})") for side in columns[0]]
        entries = [
            (look, f"{known[0].name}, {kind} {number}")
            for number, (kind, look) in zip(numbers, _SIDES.items(), strict=True)
        ]
        upright = Axis("Density", 0.0, height)
    else:
        entries = [(look, f"{kind} trials") for kind, look in _SIDES.items()]
        words = [
            "\n".join(
                [
                    *wrap(system.name, 24)[:3],
                    *(_count(side, f" {kind}") for side, kind in zip(pair, _SIDES, strict=True)),
                    *([f"{of[0]:.3g} to {of[-1]:.3g}"] if own_scale else []),
                ]
            )
            for system, pair, of in zip(known, columns, edges, strict=True)
        ]
        ticks = tuple(((strip + 0.5) * height, text) for strip, text in enumerate(reversed(words)))
        scale = "each on its own scale" if own_scale else f"0 to {height:.3g} in each strip"
        upright = Axis(f"Density, {scale}", 0.0, len(known) * height, ticks)
    chart = Chart(
        "Distribution of scores" if title is None else title,
        across,
        upright,
        tuple(lines),
        tuple(entries),
        height=max(4.8, 1.4 * len(known)),
    )
    return render_chart(chart, path, ax)


def plot_reliability(
    systems: Systems,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    sort: bool = False,
    prior: float = 0.5,
) -> Figure | None:
    """Plot how often a trial is a target trial against the probability that its score claims.

    The share of target trials is estimated by isotonic regression, which needs no bins; each class is weighted to the
    prior. Scores are taken as natural log-likelihood ratios; a calibrated system lies on the diagonal.

    Parameters
    ----------
    systems, path, ax, title
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
    losses = [cllr(core.scores) - min_cllr(core.scores) for core in cores]
    order = np.argsort(losses, kind="stable") if sort else range(len(cores))
    ends = np.array([0.0, 1.0])
    lines, entries = [Line(ends, ends, Look(PALE, width=1.0))], []
    for number, place in enumerate(order):
        look = look_of(number)
        lines.append(Line(*reliability(cores[place], prior), look))
        numbers = f"(calibration loss {losses[place]:.3f} bit)"
        entries.append((look, f"{cores[place].name} {keep_together(numbers)}"))
    chart = Chart(
        "Reliability diagram" if title is None else title,
        Axis(f"Claimed probability of a target trial (prior {prior:g})", 0.0, 1.0),
        Axis("Share of target trials", 0.0, 1.0),
        tuple(lines),
        tuple(entries),
        square=True,
        width=6.2,
        height=6.2,
    )
    return render_chart(chart, path, ax)


def reliability(core: Core, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Claimed probability and share of target trials at the first and last score of each isotonic block, (2 B,)."""
    log_odds = np.log(prior) - np.log1p(-prior)
    ends = np.stack([core.scores.blocks.first, core.scores.blocks.last], axis=1).ravel()
    claimed, share = core.scores.thresholds[ends], np.repeat(core.scores.blocks.llr, 2)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-claimed - log_odds)), 1 / (1 + np.exp(-share - log_odds))


def _edges(columns: Sequence[tuple[np.ndarray, np.ndarray]], bins: int) -> np.ndarray:
    finite = np.concatenate([side[np.isfinite(side)] for pair in columns for side in pair])
    if not len(finite):
        raise DataError("expected finite scores to plot, got infinite ones alone")
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(1.1 * high - 1.1 * low):
        text = f"scores from {low:.3g} to {high:.3g} are too far apart for bins"
        raise DataError(text, remedy="calibrate them, or leave the extreme ones out")
    margin = 0.5 if high == low else 0.0
    return np.linspace(low - margin, high + margin, bins + 1)


def _density(side: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.histogram(side[np.isfinite(side)], edges)[0] / (len(side) * np.diff(edges))


def _count(side: np.ndarray, of: str) -> str:
    n_infinite = int(np.sum(~np.isfinite(side)))
    return f"{len(side):,}{of}" + (f", {n_infinite:,} infinite" if n_infinite else "")


def _steps(edges: np.ndarray, density: np.ndarray, look: Look, base: float) -> Line:
    x = np.repeat(edges, 2)
    y = base + np.concatenate([[0.0], np.repeat(density, 2), [0.0]])
    return Line(x, y, look, np.full(len(x), base) if base else None)
