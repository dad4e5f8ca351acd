"""The Tippett plot of log-likelihood ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from evaluation import metrics
from evaluation.forensics import LN10, misleading
from evaluation.plots import style
from evaluation.plots.scores import Systems, edges_of, sorted_systems, warn_of_ratios
from evaluation.plots.style import PALE, Canvas, Colours, Curves, named, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_tippett(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot the shares of target trials with at most, and of nontarget trials with at least, a log-likelihood ratio.

    The curves' values at 0 show how much evidence is misleading, and their extent beyond 0 how strongly. Infinite
    ratios are counted in the curves and lie outside the plot.

    Parameters
    ----------
    systems, key, labels, color, path, ax, title, notes, width
        See `plot_det`; the scores are natural LLRs, or a warning is logged.
    sort : bool
        Put the systems in the order of their Cllr.

    Raises
    ------
    DataError
        If there is no system, all ratios are infinite, or as for other plots.

    References
    ----------
    .. [1] D. Meuwly, "Reconnaissance de locuteurs en sciences forensiques", 2001.
    .. [2] G. Morrison et al., "Consensus on validation of forensic voice comparison", Science and Justice 61, 2021.
    """
    known = sorted_systems(systems, key, metrics.cllr, sort=sort, labels=labels)
    low, high = edges_of(known, 1) / LN10
    margin = 0.04 * (high - low)
    ends = (low - margin, high + margin)
    looks = style.looks_of([name for name, _ in known], color)
    drawn = Curves()
    entries = []
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        axes.plot([0.0, 0.0], [0.0, 100.0], **plain(PALE, 1.0))
        for look, (name, scores) in zip(looks, known, strict=True):
            curve = metrics.det_curve(scores)
            x = np.clip(np.append(-np.inf, curve.thresholds / LN10), *ends)
            same = 100 * np.append(0.0, curve.fnr)
            others = 100 * np.append(1.0, curve.fpr)
            axes.plot(*_steps(x, same), **look)
            axes.plot(*_steps(x, others), **look | {"linewidth": 0.9})
            cost = metrics.cllr(scores)
            shares = [f"{100 * misleading(scores, side):.1f} %" for side in ("target", "nontarget")]
            numbers = f"Cllr {cost:.3f} bit, misleading {' and '.join(shares)}"
            entries.append((look, named(name, numbers) + drawn.add(name, x, same, others)))
            warn_of_ratios(name, scores, cost)
        across = ("log10 of the likelihood ratio", *ends)
        upright = ("Trials (%)", 0.0, 100.0)
        notes = (
            "Thick: target trials with at most this ratio; thin: nontarget trials with at least it"
        )
        return style.finish(axes, canvas, "Tippett plot", across, upright, entries, notes)


def _steps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a step function, given its value up to each position."""
    return np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
