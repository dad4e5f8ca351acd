"""Plots of other things: privacy against utility, how alike voices are, single speakers, the course of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.plots import style
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# minimum target EERs of the VoicePrivacy Challenge 2024
TARGETS = (0.1, 0.2, 0.3, 0.4)
# each voice similarity matrix: what stands above it, its rows and its columns
VOICES = {
    "oo": ("original voices", "original", "original"),
    "oa": ("across", "original", "anonymised"),
    "aa": ("anonymised voices", "anonymised", "anonymised"),
}
_TOP = 0.5
_MOST_NAMED = 24  # speakers
_SIDE = 2.9  # inches
_PICTURES = (".png", ".pdf", ".svg")


@one_line
@dataclass(frozen=True)
class TradeOff:
    """A system in the plane of privacy and utility.

    Attributes
    ----------
    name : str
        What the legend calls it.
    utility : Interval
        A rate as a fraction, such as a word error rate, with its interval where there is one.
    eer : Interval
        Equal error rate of the strongest attacker, as a fraction.
    """

    name: str
    utility: Interval
    eer: Interval


def plot_privacy_utility(
    systems: Sequence[TradeOff],
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    measure: str = "Word error rate",
    lower_is_better: bool = True,
    targets: Sequence[float] = TARGETS,
    title: str | None = None,
) -> Figure:
    """Plot equal error rates over a measure of utility, with the bands between the challenge's minimum targets.

    Better utility lies to the right and better privacy above, so a system is beaten by all that lie above and right of
    it.

    Parameters
    ----------
    systems : sequence of TradeOff
        At least one.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    measure : str
        Name of the utility measure.
    lower_is_better : bool
        Its direction; the axis runs from the worst to the best.
    targets : sequence of float
        Minimum target EERs as fractions, rising, between which systems compete.
    title : str, optional
        Stands above the plot.

    Raises
    ------
    DataError
        If there is nothing to plot, a number is not finite, or the targets do not rise from 0 to 50 %.
    """
    if not systems:
        raise DataError("expected a system to plot", remedy="give utility and an equal error rate")
    for system in systems:
        if not (np.isfinite(system.utility.value) and 0 <= system.eer.value <= 1):
            expected = f"{system.name}: expected a finite utility and an EER from 0 to 1"
            raise DataError(f"{expected}, got {system.utility.value:g} and {system.eer.value:g}")
    if not all(0 < target < _TOP for target in targets) or sorted(set(targets)) != [*targets]:
        raise DataError(f"expected target EERs that rise between 0 and {_TOP:g}, got {[*targets]}")
    rates = [100 * np.array([system.utility.value, system.utility.low, system.utility.high]) for system in systems]
    values = [float(rate) for of_one in rates for rate in of_one if np.isfinite(rate)]
    margin = 0.12 * (max(values) - min(values)) or 1.0
    low, high = min(values) - margin, max(values) + margin
    low = max(low, 0.0) if min(values) >= 0 else low
    sign = -1.0 if lower_is_better else 1.0  # the axis runs to the better side
    left, right = sorted((sign * low, sign * high))
    entries = []
    with style.axes_for(path, ax, 7.0, 4.8) as axes:
        for target in reversed(targets):
            axes.plot([left, right], [100 * target] * 2, **style.plain(style.PALE, 0.9))
            axes.fill_between([left, right], 100 * target, color=style.PALE, alpha=0.14, linewidth=0)
            style.write_in_margin(axes, f"{100 * target:g} %", target / _TOP, across=True)
        for number, system in enumerate(systems):
            colour, (rate, *reach), y = style.line_of(number)["color"], rates[number], 100 * system.eer.value
            cross, x = style.plain(colour, 1.4) | {"alpha": 0.75}, sign * rate
            if system.eer.has_interval:
                axes.plot([x, x], 100 * np.clip([system.eer.low, system.eer.high], 0.0, _TOP), **cross)
            if system.utility.has_interval:
                axes.plot(sign * np.array(reach), [y, y], **cross)
            dot = style.marker(style.MARKERS[number % len(style.MARKERS)], colour)
            axes.plot([x], [y], **dot)
            numbers = style.keep_together(f"({measure.lower()} {rate:.1f} %, EER {y:.1f} %)")
            entries.append((dot, f"{system.name} {numbers}"))
        direction = "lower is better" if lower_is_better else "higher is better"
        across = (f"{measure} (%), {direction}: best on the right", left, right, _ticks(low, high, sign))
        upright = ("Equal error rate (%), best above", 0.0, 100 * _TOP)
        words = "Grey edges: minimum target EERs of the challenge" if targets else ""
        return style.finish(axes, title or f"Privacy against {measure.lower()}", across, upright, entries, words)


def _ticks(low: float, high: float, sign: float) -> list[tuple[float, str]]:
    """Return five to ten round numbers between the ends, at their places on the axis."""
    power = 10.0 ** np.floor(np.log10((high - low) / 5))
    step = next(power * unit for unit in (10, 5, 2, 1) if power * unit <= (high - low) / 4)
    values = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    return sorted((sign * value, f"{value:.6g}") for value in values.tolist())


def plot_similarity(
    matrices: Mapping[str, ArrayLike],
    speakers: Sequence[str],
    *,
    path: style.Paths | None = None,
    title: str | None = None,
    subtitles: Mapping[str, str] | None = None,
    axes_names: Mapping[str, tuple[str, str]] | None = None,
) -> Figure:
    """Plot voice similarity matrices side by side: dark cells are unlike voices, light ones alike.

    Parameters
    ----------
    matrices : mapping of str to array_like of float of shape (P, P)
        Similarities from 0 to 1 by the words above each; NaN, where there is no trial, stays blank.
    speakers : sequence of str, length P
        Names of rows and columns; with more than 24 they are left out. Those who have trials with the same others, as
        of one sex, are drawn side by side.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF or SVG by their extensions, in the house style.
    title : str, optional
        Stands above all.
    subtitles : mapping of str to str, optional
        A second line above a matrix, such as its distinctiveness.
    axes_names : mapping of str to (str, str), optional
        What the rows and the columns of a matrix are, such as original and anonymised speech.

    Raises
    ------
    DataError
        If there is no matrix, a shape or a number is none, or an extension is unknown.
    """
    if not matrices:
        raise DataError("expected a voice similarity matrix to plot, got none")
    cells = {}
    for name, matrix in matrices.items():
        cells[name] = np.ma.masked_invalid(np.asarray(matrix, np.float64))
        shape, count = cells[name].shape, len(speakers)
        if shape != (count, count) or not count:
            raise DataError(f"matrix {name!r}: expected a cell for each pair of {count} speakers, got shape {shape}")
        if cells[name].mask.all() or not (cells[name].min() >= 0 and cells[name].max() <= 1):
            raise DataError(f"matrix {name!r}: expected similarities from 0 to 1")
    blank = np.ma.getmaskarray(next(iter(cells.values()))).copy()
    np.fill_diagonal(blank, False)
    seen: dict[tuple[bool, ...], int] = {}  # those who have trials with the same others stand together
    groups = [seen.setdefault(tuple(row), len(seen)) for row in blank.tolist()]
    order = sorted(range(len(groups)), key=groups.__getitem__)
    names = [speakers[place] if len(speakers[place]) <= 12 else f"{speakers[place][:11]}…" for place in order]
    middles = np.arange(len(names)) + 0.5
    wide = _SIDE + (0.6 if len(speakers) <= _MOST_NAMED else 0.0)
    with style.figure_for(path, wide * len(cells) + 0.9, wide + 0.8, extensions=_PICTURES) as figure:
        places = figure.subplots(1, len(cells), squeeze=False)[0]
        for axes, (name, matrix) in zip(places, cells.items(), strict=True):
            picture = axes.pcolormesh(matrix[np.ix_(order, order)], cmap="cividis", vmin=0.0, vmax=1.0, linewidth=0)
            heading = style.printable(name) + (
                f"\n{style.printable(subtitles[name])}" if subtitles and name in subtitles else ""
            )
            axes.set_title(heading, fontsize=11)
            axes.set_box_aspect(1)
            axes.invert_yaxis()
            rows, columns = (axes_names or {}).get(name, ("speaker", "speaker"))
            axes.set_ylabel(style.printable(rows), fontsize=9.5)
            axes.set_xlabel(style.printable(columns), fontsize=9.5)
            if len(names) > _MOST_NAMED:
                axes.set(xticks=[], yticks=[])
            else:
                axes.set_xticks(middles, list(map(style.printable, names)), rotation=90, fontsize=7.5)
                axes.set_yticks(middles, list(map(style.printable, names)), fontsize=7.5)
                axes.tick_params(length=0)
        bar = figure.colorbar(picture, ax=list(places), shrink=0.8, pad=0.02)
        bar.set_label("similarity: 0 unlike, 0.5 no evidence, 1 alike", fontsize=9.5, color=style.GREY)
        if title:
            figure.suptitle(style.printable(title), fontsize=12)
    return figure


def plot_likelihood(
    series: Mapping[str, ArrayLike],
    path: style.Paths | None = None,
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

    curves = {name: np.asarray(values, float) for name, values in series.items()}
    if not curves or not all(values.ndim == 1 and len(values) for values in curves.values()):
        raise DataError("expected a log-likelihood for each iteration of each model, got none")
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "color": style.GREY}
    with style.axes_for(path, ax, 7.5, 4.6, _PICTURES) as axes:
        for number, (name, values) in enumerate(curves.items()):
            axes.plot(np.arange(1, len(values) + 1), values, label=name, marker=".", **style.line_of(number))
        for first, n_components in doublings:  # the stages of training, marked above the plot
            axes.axvline(first + 1, color=style.PALE, linewidth=0.9, linestyle=(0, (1, 2)))
            above = ("data", "axes fraction")
            axes.annotate(str(n_components), (first + 1, 1), (0, 3), xycoords=above, ha="center", **words)
        if doublings:
            axes.annotate("Gaussians:", (0, 1), (-6, 3), xycoords="axes fraction", ha="right", **words)
        axes.set_xlabel("Iteration of EM")
        axes.set_ylabel("Mean log-likelihood per frame (nats)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.08)
        axes.grid(axis="y", color=style.GRID, linewidth=0.8)
        if len(curves) > 1:
            axes.legend(loc="lower right")
        axes.set_title(title or "Training of the background model", pad=26 if doublings else 8)
        figure: Any = axes.get_figure()
        return figure.figure
