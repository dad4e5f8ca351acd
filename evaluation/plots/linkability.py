"""Linkability against the size of the gallery, beyond it, over ranks and over speakers; who is easy or hard to link.

What is extrapolated is dotted, and lies on grey ground with a note above: nothing of it is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.plots import style
from evaluation.plots.scores import draw_steps
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evaluation.linkage import Comparison, Comparisons, Curve, Extrapolation

Array = NDArray[np.float64]

_BAND, _PALE_BAND = 0.16, 0.10
_BINS = 20  # of a speaker's linkability
_MOST_MARKED = 200  # speakers
_CHANCE = style.plain(style.GREY, 1.2, (10, 3))
_DOTS = (0, (1.2, 1.6))
_SIZE = "Number of enrolled speakers N"
_LINKED = "Linkability: probability that the owner is first"
_MEANING_OF_L = "L: utterances averaged into a trial"
_EXTRAPOLATED = "extrapolated, not measured"
_PICTURES = (".png", ".pdf", ".svg")


def plot_linkability(
    curves: Mapping[str, Curve],
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    extrapolations: Mapping[str, Extrapolation] | None = None,
    method: str = "normal",
    logarithmic: bool = False,
    title: str | None = None,
) -> Figure:
    """Plot linkability against the size of the gallery on a logarithmic axis, with intervals and chance.

    Parameters
    ----------
    curves : mapping of str to Curve
        Measured curves by what the legend calls them: systems, numbers of utterances or both.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    extrapolations : mapping of str to Extrapolation, optional
        By the same names: what to draw beyond the gallery, as the estimate of one method within the span of all.
    method : str
        Which method's estimate to draw.
    logarithmic : bool
        A logarithmic axis of linkability too, which shows chance at large sizes.
    title : str, optional
        Stands above the plot.

    Raises
    ------
    DataError
        If there is no curve, an extrapolation has no curve or lacks the method, or an extension is unknown.
    """
    beyond = dict(extrapolations or {})
    if not curves or not set(beyond) <= set(curves):
        raise DataError("expected at least one curve, and one for each extrapolation")
    for fit in beyond.values():
        if method not in fit.predictions:
            raise DataError(f"expected an extrapolation by the method {method!r}, got {', '.join(fit.predictions)}")
    predicted = [fit.predictions[method].linkability for fit in beyond.values()]
    upright = _Upright(logarithmic, _lowest([*(curve.values for curve in curves.values()), *predicted]))
    largest = max(float(curve.sizes.max()) for curve in curves.values())
    farthest = max([largest, *(float(fit.sizes.max()) for fit in beyond.values())])
    grid = np.geomspace(2, farthest, 200)
    entries = []
    with style.axes_for(path, ax, 7.0, 4.8) as axes:
        if beyond:
            _draw_ground(axes, largest, farthest, upright)
        axes.plot(np.log10(grid), upright(_chance_of(curves.values(), grid)), **_CHANCE)
        for number, (name, curve) in enumerate(curves.items()):
            look = style.line_of(number)
            _draw_measured(axes, curve, look, upright)
            entries.append((look, f"{name} {style.keep_together(_at(curve.values[-1], curve.sizes[-1]))}"))
            if name in beyond:  # not joined to what was measured, which it need not meet
                fit = beyond[name]
                past = fit.sizes >= curve.sizes.max()
                x, (low, high) = np.log10(fit.sizes[past]), fit.span()
                _draw_band(axes, x, upright(low[past]), upright(high[past]), look["color"], _PALE_BAND)
                axes.plot(x, upright(fit.predictions[method].linkability[past]), **look | {"linestyle": _DOTS})
        entries.append((_CHANCE, "chance"))
        if beyond:
            text = f"dotted: {_EXTRAPOLATED} ({method}; band: span of methods)"
            entries.append((style.plain(style.GREY) | {"linestyle": _DOTS}, text))
        levels = {curve.level for curve in curves.values() if np.isfinite(curve.low).any()}
        words = []
        if levels:
            level = next(iter(levels))
            share = f"{100 * level:g} % " if len(levels) == 1 and not np.isnan(level) else ""
            words.append(f"Bands: {share}intervals of the measured curves over speakers")
        if any("L = " in name for name in curves):
            words.append(_MEANING_OF_L)
        first = {curve.top for curve in curves.values()} == {1}
        label = _LINKED if first else "Probability that the owner is among the first r"
        across = _log_scale(_SIZE, 2, farthest)
        pad = 18 if beyond else 8
        return style.finish(
            axes, title or "Linkability", across, upright.scale(label), entries, "\n".join(words), pad=pad
        )


def plot_linkability_panels(
    panels: Mapping[str, Mapping[tuple[str, str], Curve]], *, path: style.Paths, title: str | None = None
) -> Figure:
    """Plot linkability of attackers against anonymisers, a panel for each number of utterances, on the same axes.

    Parameters
    ----------
    panels : mapping of str to mapping of (str, str) to Curve
        By what stands above a panel, such as ``L = 3``, then by attacker, which the marker tells, and anonymiser, which
        the colour tells; where curves are told apart by one name, the attacker is blank.
    path : path or sequence of paths
        The files to write, as PNG, PDF or SVG by their extensions, in the house style.
    title : str, optional
        Stands above the plot.
    """
    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    attackers, anonymisers = (list(dict.fromkeys(side)) for side in zip(*names, strict=True))
    markers = dict(zip(attackers, cycle(style.MARKERS if attackers != [""] else ("",))))
    colours = {name: style.line_of(number)["color"] for number, name in enumerate(anonymisers)}
    farthest = max(float(curve.sizes.max()) for curves in panels.values() for curve in curves.values())
    grid = np.geomspace(2, farthest, 200)
    entries = [(style.plain(colour, 4.0), name) for name, colour in colours.items()]
    entries += [(style.marker(shape, style.GREY), name) for name, shape in markers.items() if name]
    with style.figure_for(path, 1.2 + 3.4 * len(panels), 4.2, extensions=_PICTURES) as figure:
        places = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (panel, curves) in zip(places, panels.items(), strict=True):
            axes.plot(np.log10(grid), _chance_of(curves.values(), grid), **_CHANCE)
            for (attacker, anonymiser), curve in curves.items():
                _draw_measured(axes, curve, style.plain(colours[anonymiser]), _Upright(False, 1.0))
                x = np.log10(curve.sizes)
                marked = np.unique(np.searchsorted(x, np.linspace(x[0], x[-1], 8)[1:-1]))
                if markers[attacker]:
                    axes.plot(x[marked], curve.values[marked], **style.marker(markers[attacker], colours[anonymiser]))
            style.finish(axes, panel, _log_scale("", 2, farthest), ("", 0.0, 1.03))
        _frame(figure, [places], title or "Linkability", _SIZE, _LINKED)
        style.legend_below(places[0], [*entries, (_CHANCE, "chance")], _MEANING_OF_L)
    return figure


def _frame(figure: Figure, places: Any, title: str, across: str, upright: str) -> None:
    """Name a grid of axes as a whole: the title above, and each axis once in the middle."""
    figure.suptitle(style.printable(title), fontsize=12)
    shown = [axes for axes in places[-1] if axes.axison]
    shown[len(shown) // 2].set_xlabel(style.printable(across))
    places[len(places) // 2][0].set_ylabel(style.printable(upright))


def plot_extrapolation(
    curve: Curve,
    extrapolation: Extrapolation,
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    name: str = "",
    title: str | None = None,
) -> Figure:
    """Plot what each method says beyond the gallery, on logarithmic axes; what was measured is black and solid.

    Parameters
    ----------
    curve : Curve
        What was measured.
    extrapolation : Extrapolation
        What was not.
    path, ax, title
        See `plot_linkability`.
    name : str
        What the system is called.
    """
    sizes, largest = extrapolation.sizes, float(curve.sizes.max())
    farthest = max(largest, float(sizes.max()))
    parts = {
        method: prediction
        for method, prediction in extrapolation.predictions.items()
        if not np.isnan(prediction.linkability).all()
    }
    # a tail may end, and then its estimate falls without end
    drawn = [prediction.linkability for method, prediction in parts.items() if method != "tail"]
    upright = _Upright(True, max(_lowest([curve.values, *drawn]) / 3, 1e-9))
    black = style.plain("#000000", 2.2)
    entries = [(black, f"{name} measured".strip())]
    past, grid = sizes >= largest, np.geomspace(2, farthest, 100)
    x = np.log10(sizes[past])
    with style.axes_for(path, ax, 7.0, 5.4) as axes:
        _draw_ground(axes, largest, farthest, upright)
        axes.plot(np.log10(grid), upright(1 / grid), **_CHANCE)
        bounds = extrapolation.predictions.get("bounds")
        if bounds is not None and np.isfinite(bounds.low[past]).all():
            look = style.plain(style.GREY, 0.9, (1, 1))
            for end in (bounds.low, bounds.high):
                axes.plot(x, upright(end[past]), **look)
            entries.append((look, "bounds: what the ranks alone do not rule out"))
        for number, (method, prediction) in enumerate(parts.items()):
            look = style.line_of(number, linestyle=_DOTS)
            low, high = upright(prediction.low[past]), upright(prediction.high[past])
            _draw_band(axes, x, low, high, look["color"], _PALE_BAND)
            axes.plot(x, upright(prediction.linkability[past]), **look)
            entries.append((look, f"{method} {style.keep_together(_at(prediction.linkability[-1], sizes[-1]))}"))
        _draw_measured(axes, curve, black, upright)
        level = 100 * extrapolation.resampling.level
        words = f"Dotted, on grey: {_EXTRAPOLATED}; bands: intervals of {level:g} % of each method"
        title, across = title or "Linkability beyond the gallery", _log_scale(_SIZE, 2, farthest)
        return style.finish(axes, title, across, upright.scale(_LINKED), [*entries, (_CHANCE, "chance")], words, pad=18)


def plot_cmc(
    systems: Mapping[str, ArrayLike],
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Plot cumulative match characteristics: how often the owner is among the first r of the whole gallery.

    Parameters
    ----------
    systems : mapping of str to array_like of float of shape (N,)
        For r = 1, 2, ..., N, by what the legend calls them; see `evaluation.linkage.cumulative_match`.
    path, ax, title
        See `plot_linkability`.
    """
    shares = {name: np.asarray(share, np.float64) for name, share in systems.items()}
    if not shares or any(share.ndim != 1 or len(share) < 2 for share in shares.values()):
        raise DataError("expected a cumulative match characteristic of 2 or more ranks to plot")
    most = max(len(share) for share in shares.values())
    entries = []
    with style.axes_for(path, ax, 7.0, 4.8) as axes:
        for number, (name, share) in enumerate(shares.items()):
            ranks = np.arange(1, len(share) + 1)
            axes.plot(np.log10(ranks), ranks / len(share), **_CHANCE | {"linewidth": 1.0})
            axes.plot(np.log10(ranks), share, **style.line_of(number))
            tenth = share[min(9, len(share) - 1)]
            numbers = f"(rank 1 {100 * share[0]:.1f} %, rank 10 {100 * tenth:.1f} %, N {len(share):,})"
            entries.append((style.line_of(number), f"{name} {style.keep_together(numbers)}"))
        title, across = title or "Cumulative match characteristic", _log_scale("Rank r", 1, most)
        upright = ("Probability that the owner is among the first r", 0.0, 1.0)
        return style.finish(axes, title, across, upright, [*entries, (_CHANCE, "chance")])


class _Upright:
    """Where linkability stands on the upright axis: as it is, or its logarithm, cut below."""

    def __init__(self, logarithmic: bool, lowest: float) -> None:
        self.logarithmic = logarithmic
        self.low = float(np.floor(np.log10(lowest))) if logarithmic else 0.0

    def __call__(self, values: ArrayLike) -> Array:
        values = np.asarray(values, np.float64)
        # a decade below the axis, where it cannot be seen
        return np.asarray(np.log10(np.maximum(values, 10.0 ** (self.low - 1)))) if self.logarithmic else values

    def scale(self, label: str) -> tuple[Any, ...]:
        """Label, ends and ticks."""
        if not self.logarithmic:
            return label, 0.0, 1.0
        return label, self.low, 0.0, [(float(decade), _decade(decade)) for decade in range(round(self.low), 1)]


def _draw_measured(axes: Axes, curve: Curve, look: dict[str, Any], upright: _Upright) -> None:
    x, known = np.log10(curve.sizes), np.isfinite(curve.low) & np.isfinite(curve.high)
    if known.any():
        _draw_band(axes, x[known], upright(curve.low[known]), upright(curve.high[known]), look["color"], _BAND)
    axes.plot(x, upright(curve.values), **look)


def _draw_band(axes: Axes, x: Array, low: Array, high: Array, colour: str, opaque: float) -> None:
    axes.fill_between(x, high, low, color=colour, alpha=opaque, linewidth=0)


def _draw_ground(axes: Axes, largest: float, farthest: float, upright: _Upright) -> None:
    """Draw grey ground beyond the largest gallery, and say what it means."""
    start, end = np.log10([largest, farthest])
    low, high = np.full(2, upright.low), np.full(2, 0.0 if upright.logarithmic else 1.0)
    _draw_band(axes, np.array([start, end]), low, high, "#808080", 0.10)
    share = ((start + end) / 2 - np.log10(2)) / (end - np.log10(2))
    style.write_in_margin(axes, _EXTRAPOLATED, float(share))


def _log_scale(label: str, low: float, high: float) -> tuple[Any, ...]:
    """Label, ends and ticks of a logarithmic axis."""
    sizes: list[float] = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    if high >= 1000:
        decades = range(int(np.ceil(np.log10(low) - 1e-9)), int(np.floor(np.log10(high) + 1e-9)) + 1)
        ticks = [(float(np.log10(2)), "2")] * (low == 2) + [(float(decade), _decade(decade)) for decade in decades]
    else:
        ticks = [(float(np.log10(size)), f"{size:g}") for size in sizes if low <= size <= high]
    return label, float(np.log10(low)), float(np.log10(high)), ticks


def _decade(power: int) -> str:
    if -3 <= power <= 4:
        return f"{10.0**power:,g}" if power < 4 else "10,000"
    digits = str(abs(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{'⁻' if power < 0 else ''}{digits}"


def _lowest(values: Sequence[Array]) -> float:
    positive = [float(column[column > 0].min()) for column in values if (column > 0).any()]
    return max(min(positive, default=1e-3), 1e-9)


def _chance_of(curves: Iterable[Curve], sizes: Array) -> Array:
    return np.asarray(np.minimum(1.0, next(iter(curves)).top / sizes))


def _at(value: float, size: float) -> str:
    number = f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
    return f"({number} at N = {int(size):,})"


# ---- how linkability is spread over speakers


def plot_speakers(
    systems: Mapping[str, ArrayLike],
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Plot how linkability is spread over speakers, with its quartiles; several systems in strips of the same scale.

    Parameters
    ----------
    systems : mapping of str to array_like of float of shape (n_speakers,)
        Linkability of each speaker, 0 to 1, averaged over sizes; by what the legend calls them.
    path, ax, title
        See `plot_linkability`.
    """
    values = {name: np.asarray(column, np.float64) for name, column in systems.items()}
    if not values or any(not len(column) or not np.isfinite(column).all() for column in values.values()):
        raise DataError("expected a finite linkability for each speaker to plot")
    edges = np.linspace(0, 1, _BINS + 1)
    shares = {name: np.histogram(column.clip(0, 1), edges)[0] / len(column) for name, column in values.items()}
    height = 1.08 * max(float(share.max()) for share in shares.values())
    entries, ticks = [], []
    with style.axes_for(path, ax, 7.0, max(4.8, 1.1 * len(shares))) as axes:
        for number, (name, share) in enumerate(shares.items()):
            base, colour = (len(shares) - 1 - number) * height, style.line_of(number)["color"]
            draw_steps(axes, edges, share, style.plain(colour, 1.6), base)
            quartiles = np.quantile(values[name], [0.25, 0.5, 0.75])
            for place, dash in zip(quartiles, ((6, 2), (), (6, 2)), strict=True):
                axes.plot([place, place], [base, base + height], **style.plain(colour, 1.1, dash))
            numbers = "(Q1 {:.2f}, median {:.2f}, Q3 {:.2f})".format(*quartiles)
            entries.append((style.plain(colour, 1.6), f"{name} {style.keep_together(numbers)}"))
            ticks.append((base + height / 2, "\n".join([*wrap(name, 24)[:3], f"{len(values[name]):,} speakers"])))
        upright: tuple[Any, ...] = ("Share of speakers", 0.0, height)
        if len(shares) > 1:
            label = f"Share of speakers, 0 to {height:.2g} in each strip"
            upright = (label, 0.0, len(shares) * height, ticks[::-1])
        words = "Upright lines: median solid, quartiles dashed; beyond them the hard (left) and the easy (right)"
        if any("L = " in text for text in (*values, title or "")):
            words += f"\n{_MEANING_OF_L}"
        across = ("Linkability of a speaker, averaged over sizes of the gallery", 0.0, 1.0)
        return style.finish(axes, title or "Linkability of single speakers", across, upright, entries, words)


def plot_speaker_grid(
    cells: Mapping[tuple[str, str], ArrayLike], *, path: style.Paths, title: str | None = None
) -> Figure:
    """Plot how linkability is spread over speakers, a row for each attacker and a column for each anonymiser.

    Of one attacker there are as many rows as needed.

    Parameters
    ----------
    cells : mapping of (str, str) to array_like of float of shape (n_speakers,)
        Linkability of each speaker, 0 to 1, by attacker and anonymiser; as for `plot_speakers`.
    path : path or sequence of paths
        The files to write, as PNG, PDF or SVG by their extensions, in the house style.
    title : str, optional
        Stands above the plot.
    """
    edges = np.linspace(0, 1, _BINS + 1)
    rows, columns = (list(dict.fromkeys(side)) for side in zip(*cells, strict=True))
    values = {name: np.asarray(column, np.float64).clip(0, 1) for name, column in cells.items()}
    shares = {name: 100 * np.histogram(column, edges)[0] / len(column) for name, column in values.items()}
    top = 1.08 * max(float(share.max()) for share in shares.values())
    median, quartile = style.plain("#000000", 1.3), style.plain("#000000", 1.3, (5, 2))
    wide = len(columns) if len(rows) > 1 else min(len(columns), 4)
    grid = [(row, column) for row in rows for column in columns]
    high = -(-len(grid) // wide)
    with style.figure_for(path, 1.0 + 3.0 * wide, 0.8 + 2.4 * high, extensions=_PICTURES) as figure:
        places = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False)
        for axes in places.flat[len(grid) :]:
            axes.set_axis_off()
        for axes, name in zip(places.flat, grid, strict=False):
            if name not in shares:
                axes.set_axis_off()
                continue
            quartiles = np.quantile(values[name], [0.25, 0.5, 0.75])
            draw_steps(
                axes, edges, shares[name], style.plain(style.COLOURS[columns.index(name[1]) % len(style.COLOURS)], 1.6)
            )
            for place, look in zip(quartiles, (quartile, median, quartile), strict=True):
                axes.plot([place, place], [0.0, top], **look)
            heading = ", ".join(filter(None, name)) + "\nQ1 {:.2f}, median {:.2f}, Q3 {:.2f}".format(*quartiles)
            style.finish(axes, heading, ("", -0.02, 1.02), ("", 0.0, top))
        across = "Linkability of a speaker, averaged over sizes of the gallery"
        _frame(figure, places, title or "Linkability of single speakers", across, "Speakers (%)")
        text = "quartiles: left of Q1 the hard to link, right of Q3 the easy"
        style.legend_below(places[0, 0], [(median, "median"), (quartile, text)])
    return figure


def plot_exposure(
    speakers: Sequence[tuple[float, str]],
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Plot the linkability of single speakers, in their order, with the sexes as markers unless there are many.

    Parameters
    ----------
    speakers : sequence of (float, str)
        Mean linkability and sex (``f``, ``m``, blank or another word) of each, the most exposed first.
    path, ax, title
        See `plot_linkability`.
    """
    places, values = np.arange(1, len(speakers) + 1), np.array([value for value, _ in speakers])
    mean, dashed = float(values.mean()), style.plain(style.GREY, 1.2, (6, 3))
    entries = []
    with style.axes_for(path, ax, 7.0, 3.6) as axes:
        axes.plot([0.0, len(speakers) + 1.0], [mean, mean], **dashed)
        if len(speakers) > _MOST_MARKED:
            axes.plot(places, values, **style.line_of(0))
        else:
            for number, sex in enumerate(sorted({sex for _, sex in speakers})):
                chosen = np.array([other == sex for _, other in speakers])
                look = style.marker("os^"[number % 3], style.line_of(number)["color"])
                axes.plot(places[chosen], values[chosen], **look)
                entries.append((look, {"f": "female", "m": "male", "": "speaker"}.get(sex, sex)))
        entries.append((dashed, f"mean over speakers ({mean:.2f})"))
        across = ("Speakers, sorted", 0.0, len(speakers) + 1.0)
        return style.finish(axes, title or "Linkability of speakers", across, ("Mean linkability", 0.0, 1.05), entries)


# ---- who is easy and who is hard to link: Jaccard similarities over conditions, with what chance gives


_WIDTH = 0.34
_EASE = {"easy": (style.COLOURS[1], "easy to link"), "hard": (style.COLOURS[0], "hard to link")}
_WORDS = {"anonymiser": "Anonymiser", "attacker": "Attacker", "utterances": "Number of utterances", "run": "Run"}


def plot_jaccard(
    comparisons: Comparisons, *, path: style.Paths | None = None, ax: Axes | None = None, title: str | None = None
) -> Figure:
    """Plot the mean Jaccard similarity of each factor as bars, with its spread over pairs, and chance.

    Parameters
    ----------
    comparisons : Comparisons
        See `evaluation.linkage.compare_conditions`.
    path, ax, title
        See `plot_linkability`.

    Raises
    ------
    DataError
        If no two conditions differ in one factor alone, or an extension is unknown.
    """
    if not comparisons.factors:
        raise DataError("expected conditions that differ in one factor alone, got none to draw a bar of")
    black = style.plain("#000000", 1.2)
    ticks, top = [], 0.2
    with style.axes_for(path, ax, 7.0, 4.8) as axes:
        for place, (factor, agreements) in enumerate(comparisons.factors.items()):
            for side, (kind, (colour, _)) in zip((-1, 1), _EASE.items(), strict=True):
                agreement, middle = agreements[kind], place + side * (_WIDTH / 2 + 0.02)
                value, spread = agreement.jaccard, agreement.spread
                if np.isnan(value):
                    continue
                left, right = middle - _WIDTH / 2, middle + _WIDTH / 2
                axes.plot([left, left, right, right], [0, value, value, 0], **style.plain(colour, 1.2))
                axes.fill_between([left, right], value, color=colour, alpha=0.45, linewidth=0)
                if np.isfinite(spread):
                    ends = np.array([value - spread, value + spread]).clip(0)
                    axes.plot([middle, middle], ends, **style.plain("#404040", 1.2), zorder=3)
                near = [middle - 0.45 * _WIDTH, middle + 0.45 * _WIDTH]
                axes.plot(near, [agreement.chance] * 2, **black, zorder=3)
                axes.fill_between(near, agreement.high, agreement.low, color="#000000", alpha=0.25, linewidth=0)
                top = max(top, value + np.nan_to_num(spread), agreement.high)
            pairs = max(agreement.n_pairs for agreement in agreements.values())
            corrected = ", ".join(f"{kind} {agreement.corrected:.2f}" for kind, agreement in agreements.items())
            text = f"{_WORDS.get(factor, factor)}\n{pairs} pair{'s' if pairs != 1 else ''}, corrected:\n{corrected}"
            ticks.append((float(place), text))
        entries = [(style.plain(colour, 8.0), words) for colour, words in _EASE.values()]
        level = 100 * float(comparisons.settings["level"])
        entries.append((black, f"chance: mean and {level:g} % interval of permutations"))
        across = ("Conditions that differ in", -0.6, len(ticks) - 0.4, ticks)
        upright = ("Mean Jaccard similarity", 0.0, min(1.0, 1.12 * top))
        words = "Upright lines: standard deviation over pairs"
        return style.finish(
            axes, title or "Do conditions agree on who is easy or hard to link?", across, upright, entries, words
        )


def plot_intersections(
    comparisons: Sequence[Comparison],
    *,
    path: style.Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Plot how many speakers are easy (or hard) in all conditions that are compared, within those in any of them.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Of pairs, or of all levels of a factor at once; see `evaluation.linkage.compare_conditions`.
    path, ax, title
        See `plot_linkability`.

    Raises
    ------
    DataError
        If there is nothing to draw, or an extension is unknown.
    """
    if not comparisons:
        raise DataError("expected comparisons of conditions to draw bars of, got none")
    most, ticks = 1.0, []
    with style.axes_for(path, ax, 7.0, max(3.0, 0.62 * len(comparisons) + 1.2)) as axes:
        for row, comparison in enumerate(reversed(comparisons)):
            numbers = []
            for side, (kind, (colour, _)) in zip((0.2, -0.2), _EASE.items(), strict=True):
                found = getattr(comparison, kind)
                for length, opaque in ((found.union, 0.25), (found.intersection, 0.85)):
                    ends = row + side + 0.17, row + side - 0.17
                    axes.fill_between([0.0, length], *ends, color=colour, alpha=opaque, linewidth=0)
                numbers.append(f"{kind} {found.jaccard:.2f}")
                most = max(most, float(found.union))
            levels = [f"L = {level}" if comparison.factor == "utterances" else level for level in comparison.compared]
            fixed = [f"L = {level}" if factor == "utterances" else level for factor, level in comparison.fixed]
            compared = " / ".join(levels) if len(levels) < 5 else f"{len(levels)} levels"
            texts = [compared, *([", ".join(fixed)] if fixed else []), f"Jaccard: {', '.join(numbers)}"]
            ticks.append((float(row), "\n".join(texts)))
        entries = [(style.plain(colour, 8.0), f"{words}, in all that are compared") for colour, words in _EASE.values()]
        entries += [(style.plain(colour, 8.0) | {"alpha": 0.3}, f"{words}, in any") for colour, words in _EASE.values()]
        across, upright = ("Number of speakers", 0.0, 1.05 * most), ("", -0.6, len(comparisons) - 0.4, ticks)
        title = title or "Who is easy or hard to link in all conditions, and in any"
        return style.finish(axes, title, across, upright, entries, "Jaccard: in all / in any")
