"""Plots of linkability by size of gallery, extrapolated, over ranks and over speakers, and of who is easy to link.

Extrapolated curves are dotted, on a grey ground with a label above, because they are not measured. Functions that take
`canvas` take the keywords of `evaluation.plots.Canvas`: path, ax, title, notes and width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product, zip_longest
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.plots import style
from evaluation.plots.scores import draw_steps
from evaluation.plots.style import (
    COLOURS,
    GREY,
    Canvas,
    Colours,
    Curves,
    Style,
    line_of,
    looks_of,
    marker,
    named,
    plain,
)
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evaluation.linkage import Comparison, Comparisons, Curve, Extrapolation

Array = NDArray[np.float64]

_BAND = 0.16
_PALE_BAND = 0.10
_BINS = 20  # number of bins of the histogram of speakers' linkabilities
_MOST_MARKED = 200  # with more speakers, markers are left out
_CHANCE = plain(GREY, 1.2, (10, 3))
_DOTS = (0, (1.2, 1.6))
_SIZE = "Number of enrolled speakers N"
_LINKED = "Linkability (target speaker is first)"
_MEANING_OF_L = "L: utterances averaged into a trial"
_EXTRAPOLATED = "extrapolated, not measured"
_WIDTH = 0.34
_EASE = {"easy": (COLOURS[1], "easy to link"), "hard": (COLOURS[0], "hard to link")}
_FACTORS = {
    "anonymiser": "Anonymiser",
    "attacker": "Attacker",
    "utterances": "Number of utterances",
    "run": "Run",
}


def plot_linkability(
    curves: Mapping[str, Curve] | Curve,
    *,
    extrapolations: Mapping[str, Extrapolation] | None = None,
    method: str = "normal",
    logarithmic: bool = False,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot linkability against the size of the gallery on a logarithmic axis, with intervals and chance.

    Parameters
    ----------
    curves : mapping of str to Curve, or Curve
        Measured curves by their names in the legend: systems, numbers of utterances or both.
    extrapolations : mapping of str to Extrapolation, optional
        Extrapolations by the same names, drawn as the estimate of one method within the span of all.
    method : str
        Which method's estimate to draw.
    logarithmic : bool
        Whether the axis of linkability is logarithmic too, which shows chance at large sizes.
    color : str, tuple of float, sequence or mapping of these, optional
        A colour of matplotlib for all curves, one for each in the order of the legend, or colours by their names.
    path, ax, title, notes, width
        Where and how to draw; see `evaluation.plots.Canvas`.

    Raises
    ------
    DataError
        If there is no curve, an extrapolation has no curve or lacks the method, or an extension is unknown.
    """
    beyond = dict(extrapolations or {})
    if not isinstance(curves, Mapping):
        curves = {"measured": curves}
    if not curves or not set(beyond) <= set(curves):
        raise DataError("expected at least one curve, and one for each extrapolation")
    for fit in beyond.values():
        if method not in fit.predictions:
            raise DataError(
                f"expected an extrapolation by the method {method!r}, got {', '.join(fit.predictions)}"
            )
    predicted = [fit.predictions[method].linkability for fit in beyond.values() if fit.is_trusted]
    largest = max(float(curve.sizes.max()) for curve in curves.values())
    farthest = max([largest, *(float(fit.sizes.max()) for fit in beyond.values())])
    looks = looks_of(list(curves), color)
    drawn = Curves()
    entries = []
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        shown = [*(curve.values for curve in curves.values()), *predicted]
        y = _upright(axes, shown if logarithmic else [])
        if beyond:
            _draw_ground(axes, largest, farthest, y)
        _draw_chance(axes, farthest, curves.values())
        for look, (name, curve) in zip(looks, curves.items(), strict=True):
            _draw_measured(axes, curve, look)
            label = named(name, _at(curve.values[-1], curve.sizes[-1]))
            entries.append((look, label + drawn.add(name, curve.sizes, curve.values)))
            if name in beyond:  # not joined to the measured curve, which it need not meet
                _draw_extrapolated(axes, beyond[name], curve.sizes.max(), method, look)
        entries.append((_CHANCE, "chance"))
        if beyond:
            entries.append(_entry_of_extrapolations(beyond.values(), method))
        if {curve.top for curve in curves.values()} != {1}:
            y = ("Target speaker is among the first r", *y[1:])
        notes = _notes_of_curves(curves)
        return style.finish(
            axes, canvas, "Linkability", _sizes(_SIZE, 2, farthest), y, entries, notes
        )


def _entry_of_extrapolations(fits: Iterable[Extrapolation], method: str) -> tuple[Style, str]:
    text = f"dotted: {_EXTRAPOLATED} ({method}; band: span of methods)"
    if not all(fit.is_trusted for fit in fits):
        text += ", bounds alone where none is trusted"
    return plain(GREY) | {"linestyle": _DOTS}, text


def _draw_extrapolated(
    axes: Axes, fit: Extrapolation, largest: float, method: str, look: dict[str, Any]
) -> None:
    """Draw the span of all methods beyond the largest measured gallery, and the estimate of a method."""
    past = fit.sizes >= largest
    sizes = fit.sizes[past]
    low, high = fit.ends()
    _draw_band(axes, sizes, low[past], high[past], look["color"], _PALE_BAND)
    if fit.is_trusted:
        estimate = fit.predictions[method].linkability[past]
        axes.plot(sizes, estimate, **look | {"linestyle": _DOTS})


def _notes_of_curves(curves: Mapping[str, Curve]) -> str:
    notes = []
    levels = {curve.level for curve in curves.values() if np.isfinite(curve.low).any()}
    if levels:
        level = next(iter(levels))
        share = ""
        if len(levels) == 1 and not np.isnan(level):
            share = f"{100 * level:g} % "
        notes.append(f"Bands: {share}intervals of the measured curves over speakers")
    if any("L = " in name for name in curves):
        notes.append(_MEANING_OF_L)
    return "\n".join(notes)


def plot_linkability_panels(
    panels: Mapping[str, Mapping[tuple[str, str], Curve]], **canvas: Unpack[Canvas]
) -> Figure:
    """Plot linkability of attackers against anonymisers, a panel for each number of utterances, on the same axes.

    Parameters
    ----------
    panels : mapping of str to mapping of (str, str) to Curve
        By the title of a panel, such as ``L = 3``, then by attacker, shown by the marker, and anonymiser, shown by the
        colour; the attacker is blank if curves differ in only one name.
    path, title
        See `plot_linkability`; `ax` and TeX files are not supported.
    """
    markers: dict[str, str] = {}
    looks: dict[str, Style] = {}
    farthest = 0.0
    for curves in panels.values():
        for (attacker, anonymiser), curve in curves.items():
            farthest = max(farthest, float(curve.sizes.max()))
            if anonymiser not in looks:
                looks[anonymiser] = line_of(len(looks), marker="None")
            if attacker not in markers:
                markers[attacker] = style.MARKERS[len(markers) % len(style.MARKERS)]
    if list(markers) == [""]:
        markers = {"": ""}
    entries = [(look, name) for name, look in looks.items()]
    entries += [(marker(shape, GREY), name) for name, shape in markers.items() if name]
    with style.figure_for(canvas, 1.2 + 3.4 * len(panels), 4.2, style.PICTURES) as figure:
        grid = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)
        for axes, (panel, curves) in zip(grid[0], panels.items(), strict=True):
            axes.set_xscale("log")
            _draw_chance(axes, farthest, curves.values())
            for (attacker, anonymiser), curve in curves.items():
                look = looks[anonymiser]
                _draw_measured(axes, curve, look)
                spaced = np.geomspace(curve.sizes[0], curve.sizes[-1], 8)[1:-1]
                marked = np.unique(np.searchsorted(curve.sizes, spaced))
                if markers[attacker]:
                    dots = marker(markers[attacker], look["color"])
                    axes.plot(curve.sizes[marked], curve.values[marked], **dots)
            style.finish(axes, {}, panel, _sizes("", 2, farthest), ("", 0.0, 1.03))
        _frame(figure, canvas, grid, "Linkability", _SIZE, _LINKED)
        style.legend_below(grid[0, 0], {}, [*entries, (_CHANCE, "chance")], _MEANING_OF_L)
    return figure


def _frame(
    figure: Figure, canvas: Canvas, grid: Any, title: str, across: str, upright: str
) -> None:
    """Label a grid of axes as a whole: the title above, and each axis once in the middle."""
    figure.suptitle(canvas.get("title") or title, fontsize=12)
    shown = [axes for axes in grid[-1] if axes.axison]
    shown[len(shown) // 2].set_xlabel(across)
    grid[len(grid) // 2][0].set_ylabel(upright)


def plot_extrapolation(
    curve: Curve, extrapolation: Extrapolation, *, name: str = "", **canvas: Unpack[Canvas]
) -> Figure:
    """Plot what each method predicts beyond the gallery, on logarithmic axes; the measured curve is black and solid.

    Parameters
    ----------
    curve : Curve
        The measured curve.
    extrapolation : Extrapolation
        The extrapolated values.
    name : str
        Name of the system.
    path, ax, title, notes, width
        See `plot_linkability`.
    """
    sizes = extrapolation.sizes
    largest = float(curve.sizes.max())
    farthest = max(largest, float(sizes.max()))
    past = sizes >= largest
    estimates = {}
    if extrapolation.is_trusted:
        for method, prediction in extrapolation.predictions.items():
            if not np.isnan(prediction.linkability).all():
                estimates[method] = prediction
    # the estimate of a bounded tail falls towards 0
    drawn = [prediction.linkability for method, prediction in estimates.items() if method != "tail"]
    black = plain("#000000", 2.2)
    entries = [(black, f"{name} measured".strip())]
    with style.axes_for(canvas, 7.0, 5.4) as axes:
        y = _upright(axes, [values / 3 for values in (curve.values, *drawn)])
        _draw_ground(axes, largest, farthest, y)
        _draw_chance(axes, farthest, [curve])
        bounds = extrapolation.predictions.get("bounds")
        if bounds is not None and np.isfinite(bounds.low[past]).all():
            look = plain(GREY, 0.9, (1, 1))
            for end in (bounds.low, bounds.high):
                axes.plot(sizes[past], end[past], **look)
            entries.append((look, "bounds: what the ranks alone do not rule out"))
        for number, (method, prediction) in enumerate(estimates.items()):
            look = line_of(number, linestyle=_DOTS)
            _draw_band(
                axes,
                sizes[past],
                prediction.low[past],
                prediction.high[past],
                look["color"],
                _PALE_BAND,
            )
            axes.plot(sizes[past], prediction.linkability[past], **look)
            entries.append((look, named(method, _at(prediction.linkability[-1], sizes[-1]))))
        _draw_measured(axes, curve, black)
        entries.append((_CHANCE, "chance"))
        level = 100 * extrapolation.resampling.level
        notes = f"Dotted, on grey: {_EXTRAPOLATED}; bands: {level:g} % intervals of each method"
        if not extrapolation.is_trusted:
            notes = f"On grey: {_EXTRAPOLATED}; no method is trusted, since none held the gallery in the back-test"
        x = _sizes(_SIZE, 2, farthest)
        title = "Linkability beyond the gallery"
        return style.finish(axes, canvas, title, x, y, entries, notes)


def plot_cmc(
    systems: Mapping[str, ArrayLike], *, color: Colours = None, **canvas: Unpack[Canvas]
) -> Figure:
    """Plot cumulative match characteristics: how often the target speaker is among the first r of the whole gallery.

    Parameters
    ----------
    systems : mapping of str to array_like of float of shape (N,)
        Shares for r = 1, 2, ..., N, by their names in the legend; see `evaluation.linkage.cumulative_match`.
    color, path, ax, title, notes, width
        See `plot_linkability`.
    """
    shares = {name: np.asarray(share, np.float64) for name, share in systems.items()}
    if not shares or any(share.ndim != 1 or len(share) < 2 for share in shares.values()):
        raise DataError("expected a cumulative match characteristic of 2 or more ranks to plot")
    looks = looks_of(list(shares), color)
    drawn = Curves()
    entries = []
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        axes.set_xscale("log")
        for look, (name, share) in zip(looks, shares.items(), strict=True):
            ranks = np.arange(1, len(share) + 1)
            axes.plot(ranks, ranks / len(share), **_CHANCE | {"linewidth": 1.0})
            axes.plot(ranks, share, **look)
            shown = [f"rank 1 {100 * share[0]:.1f} %", f"N {len(share):,}"]
            if len(share) >= 10:
                shown.insert(1, f"rank 10 {100 * share[9]:.1f} %")
            entries.append((look, named(name, ", ".join(shown)) + drawn.add(name, share)))
        x = _sizes("Rank r", 1, max(map(len, shares.values())))
        y = ("Identification rate (among the first r)", 0.0, 1.0)
        return style.finish(
            axes, canvas, "Cumulative match characteristic", x, y, [*entries, (_CHANCE, "chance")]
        )


def _upright(axes: Axes, values: Sequence[Array]) -> tuple[Any, ...]:
    """Return label, limits and ticks of the axis of linkability, logarithmic on request."""
    axes.set_xscale("log")
    if not values:
        return _LINKED, 0.0, 1.0
    axes.set_yscale("log")
    positive = [float(column[column > 0].min()) for column in values if (column > 0).any()]
    lowest = int(np.floor(np.log10(max(min(positive, default=1e-3), 1e-9))))
    return _LINKED, 10.0**lowest, 1.0, [(10.0**power, _decade(power)) for power in range(lowest, 1)]


def _draw_chance(axes: Axes, farthest: float, curves: Iterable[Curve]) -> None:
    sizes = np.geomspace(2, farthest, 200)
    axes.plot(sizes, np.minimum(1.0, next(iter(curves)).top / sizes), **_CHANCE)


def _draw_measured(axes: Axes, curve: Curve, look: dict[str, Any]) -> None:
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    if known.any():
        _draw_band(
            axes, curve.sizes[known], curve.low[known], curve.high[known], look["color"], _BAND
        )
    axes.plot(curve.sizes, curve.values, **look)


def _draw_band(
    axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: str, opaque: float
) -> None:
    axes.fill_between(x, high, low, color=colour, alpha=opaque, linewidth=0)


def _draw_ground(axes: Axes, largest: float, farthest: float, upright: tuple[Any, ...]) -> None:
    """Shade the part beyond the largest gallery in grey, with a label above."""
    _draw_band(axes, [largest, farthest], [upright[1]] * 2, [upright[2]] * 2, "#808080", 0.10)
    middle = np.sqrt(largest * farthest)
    style.write_in_margin(axes, _EXTRAPOLATED, float(np.log(middle / 2) / np.log(farthest / 2)))


def _sizes(label: str, low: int, high: float) -> tuple[Any, ...]:
    """Return label, limits and ticks of a logarithmic axis of sizes or ranks."""
    if high < 1000:
        ticks = [(size, f"{size:g}") for size in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    else:
        ticks = [(2, "2")] * (low == 2) + [(10**power, _decade(power)) for power in range(10)]
    return label, low, high, [(size, text) for size, text in ticks if low <= size <= high]


def _decade(power: int) -> str:
    if -3 <= power <= 4:
        if power < 4:
            return f"{10.0**power:,g}"
        return "10,000"
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"


def _at(value: float, size: float) -> str:
    number = f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
    return f"{number} at N = {int(size):,}"


# ---- distribution of linkability over speakers


def plot_speaker_grid(
    cells: Mapping[tuple[str, str], ArrayLike], **canvas: Unpack[Canvas]
) -> Figure:
    """Plot the distribution of linkability over speakers, a row for each attacker and a column for each anonymiser.

    A single attacker takes as many rows as needed.

    Parameters
    ----------
    cells : mapping of (str, str) to array_like of float of shape (n_speakers,)
        Linkability of each speaker, 0 to 1, averaged over sizes, by attacker and anonymiser; the attacker is blank if
        systems differ in only one name, such as the number of utterances.
    path, title
        See `plot_linkability`; `ax` and TeX files are not supported.
    """
    values = {name: np.asarray(column, np.float64) for name, column in cells.items()}
    if not values or any(
        not len(column) or not np.isfinite(column).all() for column in values.values()
    ):
        raise DataError("expected a finite linkability for each speaker to plot")
    attackers, anonymisers = zip(*cells, strict=True)
    rows = list(dict.fromkeys(attackers))
    columns = list(dict.fromkeys(anonymisers))
    edges = np.linspace(0, 1, _BINS + 1)
    shares = {}
    for name, column in values.items():
        shares[name] = 100 * np.histogram(column.clip(0, 1), edges)[0] / len(column)
    top = 1.08 * float(np.max(list(shares.values())))
    median = plain("#000000", 1.3)
    quartile = plain("#000000", 1.3, (5, 2))
    wide = len(columns)
    if len(rows) == 1:
        wide = min(wide, 4)
    names = list(product(rows, columns))
    high = -(-len(names) // wide)
    with style.figure_for(canvas, 1.0 + 3.0 * wide, 0.8 + 2.4 * high, style.PICTURES) as figure:
        grid = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False)
        for axes, name in zip_longest(grid.flat, names):
            if name not in shares:
                axes.set_axis_off()
                continue
            quartiles = np.quantile(values[name], [0.25, 0.5, 0.75])
            draw_steps(
                axes,
                edges,
                shares[name],
                plain(COLOURS[columns.index(name[1]) % len(COLOURS)], 1.6),
            )
            for value, look in zip(quartiles, (quartile, median, quartile), strict=True):
                axes.plot([value, value], [0.0, top], **look)
            numbers = "Q1 {:.2f}, median {:.2f}, Q3 {:.2f}".format(*quartiles)
            heading = f"{', '.join(filter(None, name))}\n{numbers}"
            style.finish(axes, {}, heading, ("", -0.02, 1.02), ("", 0.0, top))
        across = "Linkability of a speaker, averaged over gallery sizes"
        _frame(figure, canvas, grid, "Linkability of single speakers", across, "Speakers (%)")
        text = "quartiles: left of Q1 the hard to link, right of Q3 the easy"
        style.legend_below(grid[0, 0], {}, [(median, "median"), (quartile, text)])
    return figure


def plot_exposure(speakers: Sequence[tuple[float, str]], **canvas: Unpack[Canvas]) -> Figure:
    """Plot the linkability of single speakers in order, with markers for the sexes unless there are many speakers.

    Parameters
    ----------
    speakers : sequence of (float, str)
        Mean linkability and sex (``f``, ``m``, blank or another word) of each, the most exposed first.
    path, ax, title, notes, width
        See `plot_linkability`.
    """
    positions = np.arange(1, len(speakers) + 1)
    values = np.array([value for value, _ in speakers])
    sexes = np.array([sex for _, sex in speakers])
    mean = float(values.mean())
    dashed = plain(GREY, 1.2, (6, 3))
    entries = []
    with style.axes_for(canvas, 7.0, 3.6) as axes:
        axes.plot([0.0, len(speakers) + 1.0], [mean, mean], **dashed)
        if len(speakers) > _MOST_MARKED:
            axes.plot(positions, values, **line_of(0))
        else:
            for number, sex in enumerate(np.unique(sexes).tolist()):
                chosen = sexes == sex
                look = marker("os^"[number % 3], line_of(number)["color"])
                axes.plot(positions[chosen], values[chosen], **look)
                entries.append((look, {"f": "female", "m": "male", "": "speaker"}.get(sex, sex)))
        entries.append((dashed, f"mean over speakers ({mean:.2f})"))
        x = ("Speakers, sorted", 0.0, len(speakers) + 1.0)
        y = ("Mean linkability", 0.0, 1.05)
        return style.finish(axes, canvas, "Linkability of speakers", x, y, entries)


# ---- who is easy and who is hard to link: Jaccard similarities over conditions, and by chance


def plot_jaccard(comparisons: Comparisons, **canvas: Unpack[Canvas]) -> Figure:
    """Plot the mean Jaccard similarity of each factor as bars, with its spread over pairs, and chance.

    Parameters
    ----------
    comparisons : Comparisons
        See `evaluation.linkage.compare_conditions`.
    path, ax, title, notes, width
        See `plot_linkability`.

    Raises
    ------
    DataError
        If no two conditions differ in exactly one factor, or an extension is unknown.
    """
    if not comparisons.factors:
        raise DataError("expected conditions that differ in only one factor, got none to draw")
    black = plain("#000000", 1.2)
    ticks = []
    top = 0.2
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        for number, (factor, agreements) in enumerate(comparisons.factors.items()):
            for side, (kind, (colour, _)) in zip((-1, 1), _EASE.items(), strict=True):
                agreement = agreements[kind]
                middle = number + side * (_WIDTH / 2 + 0.02)
                value = agreement.jaccard
                spread = agreement.spread
                if np.isnan(value):
                    continue
                bar_start = middle - _WIDTH / 2
                bar_end = middle + _WIDTH / 2
                axes.plot(
                    [bar_start, bar_start, bar_end, bar_end],
                    [0, value, value, 0],
                    **plain(colour, 1.2),
                )
                axes.fill_between(
                    [bar_start, bar_end], value, color=colour, alpha=0.45, linewidth=0
                )
                if np.isfinite(spread):
                    ends = np.array([value - spread, value + spread]).clip(0)
                    axes.plot([middle, middle], ends, **plain("#404040", 1.2), zorder=3)
                near = [middle - 0.45 * _WIDTH, middle + 0.45 * _WIDTH]
                axes.plot(near, [agreement.chance] * 2, **black, zorder=3)
                axes.fill_between(
                    near, agreement.high, agreement.low, color="#000000", alpha=0.25, linewidth=0
                )
                top = max(top, value + np.nan_to_num(spread), agreement.high)
            pairs = max(agreement.n_pairs for agreement in agreements.values())
            corrected = ", ".join(
                f"{kind} {agreement.corrected:.2f}" for kind, agreement in agreements.items()
            )
            text = f"{pairs} pairs, corrected:\n{corrected}"
            if pairs == 1:
                text = f"1 pair, corrected:\n{corrected}"
            ticks.append((float(number), f"{_FACTORS.get(factor, factor)}\n{text}"))
        entries = [(plain(colour, 8.0), words) for colour, words in _EASE.values()]
        level = 100 * float(comparisons.settings["level"])
        entries.append((black, f"chance: mean and {level:g} % interval of permutations"))
        x = ("Conditions that differ in", -0.6, len(ticks) - 0.4, ticks)
        y = ("Mean Jaccard similarity", 0.0, min(1.0, 1.12 * top))
        title = "Do conditions agree on who is easy or hard to link?"
        notes = "Vertical lines: standard deviation over pairs"
        return style.finish(axes, canvas, title, x, y, entries, notes)


def plot_intersections(comparisons: Sequence[Comparison], **canvas: Unpack[Canvas]) -> Figure:
    """Plot the number of speakers who are easy (or hard) in all compared conditions, within the number in any of them.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Comparisons of pairs, or of all levels of a factor at once; see `evaluation.linkage.compare_conditions`.
    path, ax, title, notes, width
        See `plot_linkability`.

    Raises
    ------
    DataError
        If there is nothing to draw, or an extension is unknown.
    """
    if not comparisons:
        raise DataError("expected comparisons of conditions to draw, got none")
    most = 1.0
    ticks = []
    with style.axes_for(canvas, 7.0, max(3.0, 0.62 * len(comparisons) + 1.2)) as axes:
        for row, comparison in enumerate(reversed(comparisons)):
            numbers = []
            for side, (kind, (colour, _)) in zip((0.2, -0.2), _EASE.items(), strict=True):
                agreement = getattr(comparison, kind)
                for length, opaque in ((agreement.union, 0.25), (agreement.intersection, 0.85)):
                    ends = row + side + 0.17, row + side - 0.17
                    axes.fill_between([0.0, length], *ends, color=colour, alpha=opaque, linewidth=0)
                numbers.append(f"{kind} {agreement.jaccard:.2f}")
                most = max(most, float(agreement.union))
            levels = [_level(comparison.factor, level) for level in comparison.compared]
            if len(levels) < 5:
                compared = " / ".join(levels)
            else:
                compared = f"{len(levels)} levels"
            fixed = ", ".join(_level(*level) for level in comparison.fixed)
            texts = [compared, fixed, f"Jaccard: {', '.join(numbers)}"]
            ticks.append((float(row), "\n".join(filter(None, texts))))
        entries = []
        for opaque, among in ((1.0, "in all that are compared"), (0.3, "in any")):
            for colour, words in _EASE.values():
                entries.append((plain(colour, 8.0) | {"alpha": opaque}, f"{words}, {among}"))
        x = ("Number of speakers", 0.0, 1.05 * most)
        y = ("", -0.6, len(comparisons) - 0.4, ticks)
        title = "Who is easy or hard to link in all conditions, and in any"
        return style.finish(axes, canvas, title, x, y, entries, "Jaccard: in all / in any")


def _level(factor: str, level: str) -> str:
    if factor == "utterances":
        return f"L = {level}"
    return level
