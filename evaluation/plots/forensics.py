"""The Tippett plot of log-likelihood ratios."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from evaluation import metrics
from evaluation.plots import style
from evaluation.plots.scores import Systems, sorted_systems, warn_of_ratios
from evaluation.plots.style import PALE, Canvas, line_of, named, plain
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_tippett(
    systems: Systems,
    key: Any = None,
    *,
    labels: Any = None,
    sort: bool = False,
    above: bool = False,
    llr_base: float = 10.0,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot the shares of target trials with at most, and of nontarget trials with at least, a log-likelihood ratio.

    Where the curves cross the line at 0 they show how much evidence is misleading, and how far they reach beyond it how
    strongly. Infinite ratios are counted in the curves and lie outside the plot.

    Parameters
    ----------
    systems, key, labels, path, ax, title, notes, width
        See `plot_det`; the scores are natural LLRs, or a warning is logged.
    sort : bool
        Put the systems in the order of their Cllr.
    above : bool
        Draw the share with at least the ratio for target trials too, as the first Tippett plots did.
    llr_base : float
        Base of the logarithm on the axis, which names it; 10 as in forensic reports.

    Raises
    ------
    DataError
        If there is no system, all ratios are infinite, or as for other plots.

    References
    ----------
    .. [1] D. Meuwly, "Reconnaissance de locuteurs en sciences forensiques", 2001.
    .. [2] G. Morrison et al., "Consensus on validation of forensic voice comparison", Science and Justice 61, 2021.
    """
    if not llr_base > 1:
        raise DataError(f"expected a base of log-likelihood ratios above 1, got {llr_base}")
    known = sorted_systems(systems, key, metrics.cllr, sort=sort, labels=labels)
    ratios = np.concatenate([scores.thresholds for _, scores in known]) / np.log(llr_base)
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios):
        raise DataError("expected finite log-likelihood ratios to plot, got infinite ones alone")
    low = min(float(ratios.min()), 0.0)
    high = max(float(ratios.max()), 0.0)
    margin = 0.04 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    entries = []
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        axes.plot([0.0, 0.0], [0.0, 100.0], **plain(PALE, 1.0))
        for number, (name, scores) in enumerate(known):
            curve = metrics.det_curve(scores)
            x = np.clip(np.append(-np.inf, curve.thresholds / np.log(llr_base)), *ends)
            same = np.append(0.0, curve.fnr)
            if above:
                same = 1 - same
            axes.plot(*_steps(x, 100 * same), **line_of(number))
            others = 100 * np.append(1.0, curve.fpr)
            axes.plot(*_steps(x, others), **line_of(number, linewidth=0.9))
            entries.append((line_of(number), named(name, _misleading(scores))))
            warn_of_ratios(name, scores, metrics.cllr(scores))
        base = "Natural logarithm" if llr_base == math.e else f"log{llr_base:g}"
        x_axis = (f"{base} of the likelihood ratio", *ends)
        y_axis = ("Trials (%)", 0.0, 100.0)
        direction = "at least" if above else "at most"
        notes = f"Thick: target trials with {direction} this ratio; thin: nontarget trials with at least this ratio"
        return style.finish(axes, canvas, "Tippett plot", x_axis, y_axis, entries, notes)


def _steps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a step function whose value up to each place is given."""
    return np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]


def _misleading(scores: metrics.SortedScores) -> str:
    """Return the Cllr, and the shares of target trials below 0 and of nontarget trials above it."""
    below = scores.misses[np.searchsorted(scores.thresholds, 0.0)] / scores.n_target
    at_most = scores.rejected[np.searchsorted(scores.thresholds, 0.0, side="right")]
    over = 1 - at_most / scores.n_nontarget
    return f"Cllr {metrics.cllr(scores):.3f} bit, misleading {100 * below:.1f} % and {100 * over:.1f} %"
