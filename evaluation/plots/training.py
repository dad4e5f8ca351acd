"""The course of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.plots.chart import GREY, PALE, Paths, look_of
from evaluation.plots.draw import checked_paths, figure_of, save_figure, style_of
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_likelihood(
    series: Mapping[str, ArrayLike],
    path: Paths | None = None,
    *,
    ax: Axes | None = None,
    doublings: Sequence[tuple[int, int]] = (),
    title: str | None = None,
) -> Figure:
    """Plot the mean log-likelihood of the training frames over the iterations of EM.

    Parameters
    ----------
    series : mapping of str to array_like of float of shape (T,)
        Log-likelihood per frame (nats) after each iteration, by the name of the model.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF or SVG by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
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

    paths = [] if path is None else checked_paths(path, (".png", ".pdf", ".svg"))
    curves = {name: np.asarray(values, float) for name, values in series.items()}
    if not curves or not all(values.ndim == 1 and len(values) for values in curves.values()):
        raise DataError("expected a log-likelihood for each iteration of each model, got none")
    with figure_of(7.5, 4.6, files=bool(paths), ax=ax) as figure:
        axes = figure.add_subplot() if ax is None else ax
        for number, (name, values) in enumerate(curves.items()):
            axes.plot(np.arange(1, len(values) + 1), values, label=name, marker=".", **style_of(look_of(number)))
        _draw_doublings(axes, doublings)
        axes.set_xlabel("Iteration of EM")
        axes.set_ylabel("Mean log-likelihood per frame (nats)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.08)
        axes.grid(axis="y", color="#e0e0e0", linewidth=0.8)
        if len(curves) > 1:
            axes.legend(loc="lower right")
        axes.set_title(title or "Training of the background model", pad=26 if doublings else 8)
        if paths:
            save_figure(figure, paths)
    return figure


def _draw_doublings(axes: Axes, doublings: Sequence[tuple[int, int]]) -> None:
    """Mark the stages of training above the plot."""
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "color": GREY}
    for first, n_components in doublings:
        axes.axvline(first + 1, color=PALE, linewidth=0.9, linestyle=(0, (1, 2)))
        axes.annotate(
            str(n_components), (first + 1, 1), (0, 3), xycoords=("data", "axes fraction"), ha="center", **style
        )
    if doublings:
        axes.annotate("Gaussians:", (0, 1), (-6, 3), xycoords="axes fraction", ha="right", **style)
