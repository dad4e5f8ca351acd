"""Linkability against the size of the gallery, beyond it, over ranks, and over speakers.

What is extrapolated is dotted, and lies on grey ground with a note above: nothing of it is measured.

**How linkability is spread over speakers.**
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.plots.chart import (
    GREY,
    MARKERS,
    Axis,
    Chart,
    Line,
    Look,
    Note,
    Paths,
    keep_together,
    look_of,
)
from evaluation.plots.draw import render_chart, render_grid
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evaluation.linkage import Curve, Extrapolation
from textwrap import wrap
from typing import TYPE_CHECKING

from evaluation.plots.chart import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = NDArray[np.float64]

_BAND, _PALE_BAND = 0.16, 0.10
_GROUND = Look("#808080", line=False, fill=0.10)
_CHANCE = Look(GREY, (10, 3), 1.2)
_DOTS = (1.2, 1.6)
_SIZE = "Number of enrolled speakers N"
_LINKED = "Linkability: probability that the owner is first"
MEANING_OF_L = "L: utterances averaged into a trial"
_EXTRAPOLATED = "extrapolated, not measured"


def plot_linkability(
    curves: Mapping[str, Curve],
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    extrapolations: Mapping[str, Extrapolation] | None = None,
    method: str = "normal",
    logarithmic: bool = False,
    title: str | None = None,
) -> Figure | None:
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
    lines: list[Line] = []
    entries: list[tuple[Look, str]] = []
    lowest = _lowest([curve.values for curve in curves.values()])
    largest = max(float(curve.sizes.max()) for curve in curves.values())
    farthest = max([largest, *(float(extrapolation.sizes.max()) for extrapolation in beyond.values())])
    upright = _Upright(logarithmic, _floor(lowest, beyond.values(), method) if beyond else lowest)
    for number, (name, curve) in enumerate(curves.items()):
        look = look_of(number)
        lines += _measured(curve, look, upright)
        entries.append((look, f"{name} {keep_together(_at_end(curve))}"))
        if name in beyond:
            lines += _beyond(curve, beyond[name], method, look, upright)
    grid = np.geomspace(2, farthest, 200)
    lines.insert(0, Line(np.log10(grid), upright(_chance_of(curves, grid)), _CHANCE))
    entries.append((_CHANCE, "chance"))
    notes: tuple[Note, ...] = ()
    if beyond:
        ground, notes = _ground(largest, farthest, upright)
        lines.insert(0, ground)
        entries.append((Look(GREY, _DOTS), f"dotted: {_EXTRAPOLATED} ({method}; band: span of methods)"))
    banded = any(np.isfinite(curve.low).any() for curve in curves.values())
    legend_title = f"Bands: {_level_of(curves)}intervals of the measured curves over speakers" if banded else ""
    if any("L = " in name for name in curves):
        legend_title += f"{chr(10) if banded else ''}{MEANING_OF_L}"
    top = {curve.top for curve in curves.values()}
    label = _LINKED if top == {1} else "Probability that the owner is among the first r"
    axis = _log_axis(_SIZE, 2, farthest)
    chart = Chart(title or "Linkability", axis, upright.axis(label), tuple(lines), tuple(entries), legend_title, notes)
    return render_chart(chart, path, ax)


def plot_linkability_panels(
    panels: Mapping[str, Mapping[tuple[str, str], Curve]], *, path: Paths, title: str | None = None
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
    markers = dict(zip(attackers, cycle(MARKERS if attackers != [""] else ("",))))
    looks = {name: replace(look_of(number), dash=()) for number, name in enumerate(anonymisers)}
    farthest = max(float(curve.sizes.max()) for curves in panels.values() for curve in curves.values())
    axis, upright, grid = _log_axis("", 2, farthest), _Upright(False, 1.0), np.geomspace(2, farthest, 200)
    charts = []
    for panel, curves in panels.items():
        lines = [Line(np.log10(grid), _chance_of(curves, grid), _CHANCE)]
        for (attacker, anonymiser), curve in curves.items():
            look = looks[anonymiser]
            lines += _measured(curve, look, upright)
            x = np.log10(curve.sizes)
            places = np.unique(np.searchsorted(x, np.linspace(x[0], x[-1], 8)[1:-1]))
            lines.append(Line(x[places], curve.values[places], replace(look, marker=markers[attacker], line=False)))
        charts.append(Chart(panel, axis, Axis("", 0.0, 1.03), tuple(lines)))
    entries = [(replace(look, width=4), name) for name, look in looks.items()]
    entries += [(Look(GREY, marker=marker, line=False), name) for name, marker in markers.items() if name]
    around = Axis(_SIZE, 2, farthest), Axis(_LINKED, 0.0, 1.0)
    frame = Chart(title or "Linkability", *around, (), (*entries, (_CHANCE, "chance")), MEANING_OF_L)
    return render_grid(replace(frame, width=1.2 + 3.4 * len(charts), height=4.2), [charts], path)


def plot_extrapolation(
    curve: Curve,
    extrapolation: Extrapolation,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    name: str = "",
    title: str | None = None,
) -> Figure | None:
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
    drawn = [prediction.linkability for method, prediction in parts.items() if method != "tail"] or [curve.values]
    floor = min(_lowest([curve.values]), _lowest(drawn))
    upright = _Upright(True, max(floor / 3, 1e-9))
    lines: list[Line] = []
    entries: list[tuple[Look, str]] = [(Look("#000000", width=2.2), f"{name} measured".strip())]
    bounds = extrapolation.predictions.get("bounds")
    past = sizes >= largest
    x = np.log10(sizes[past])
    if bounds is not None and np.isfinite(bounds.low[past]).all():
        look = Look(GREY, (1, 1), 0.9)
        lines += [Line(x, upright(end[past]), look) for end in (bounds.low, bounds.high)]
        entries.append((look, "bounds: what the ranks alone do not rule out"))
    for number, (method, prediction) in enumerate(parts.items()):
        look = replace(look_of(number), dash=_DOTS, width=1.8)
        lines.append(_band(x, prediction.low[past], prediction.high[past], look, upright, _PALE_BAND))
        lines.append(Line(x, upright(prediction.linkability[past]), look))
        entries.append((look, f"{method} {keep_together(_at(prediction.linkability[-1], sizes[-1]))}"))
    ground, notes = _ground(largest, farthest, upright)
    grid = np.geomspace(2, farthest, 100)
    chance = Line(np.log10(grid), upright(1 / grid), _CHANCE)
    measured = _measured(curve, Look("#000000", width=2.2), upright)
    chart = Chart(
        title or "Linkability beyond the gallery",
        _log_axis(_SIZE, 2, farthest),
        upright.axis(_LINKED),
        (ground, chance, *lines, *measured),
        (*entries, (_CHANCE, "chance")),
        f"Dotted, on grey: {_EXTRAPOLATED}; bands: intervals of {100 * extrapolation.level:g} % of each method",
        notes,
        height=5.4,
    )
    return render_chart(chart, path, ax)


def plot_cmc(
    systems: Mapping[str, ArrayLike],
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    largest: int | None = None,
    title: str | None = None,
) -> Figure | None:
    """Plot cumulative match characteristics: how often the owner is among the first r of the whole gallery.

    Parameters
    ----------
    systems : mapping of str to array_like of float of shape (N,)
        For r = 1, 2, ..., N, by what the legend calls them; see `evaluation.linkage.cumulative_match`.
    path, ax, title
        See `plot_linkability`.
    largest : int, optional
        Largest r to show; the whole gallery by default.
    """
    shares = {name: np.asarray(share, np.float64) for name, share in systems.items()}
    if not shares or any(share.ndim != 1 or len(share) < 2 for share in shares.values()):
        raise DataError("expected a cumulative match characteristic of 2 or more ranks to plot")
    most = min(max(len(share) for share in shares.values()), largest or 2**62)
    lines, entries = [], []
    for number, (name, share) in enumerate(shares.items()):
        n_ranks = min(most, len(share))
        ranks = np.arange(1, n_ranks + 1)
        lines.append(Line(np.log10(ranks), np.arange(1, n_ranks + 1) / len(share), replace(_CHANCE, width=1.0)))
        lines.append(Line(np.log10(ranks), share[:n_ranks], look_of(number)))
        numbers = (
            f"(rank 1 {100 * share[0]:.1f} %, rank 10 {100 * share[min(9, len(share) - 1)]:.1f} %, N {len(share):,})"
        )
        entries.append((look_of(number), f"{name} {keep_together(numbers)}"))
    entries.append((_CHANCE, "chance"))
    chart = Chart(
        title or "Cumulative match characteristic",
        _log_axis("Rank r", 1, max(most, 2)),
        Axis("Probability that the owner is among the first r", 0.0, 1.0),
        tuple(lines),
        tuple(entries),
    )
    return render_chart(chart, path, ax)


class _Upright:
    """Where linkability stands on the upright axis: as it is, or its logarithm, cut below."""

    def __init__(self, logarithmic: bool, lowest: float) -> None:
        self.logarithmic = logarithmic
        self.low = float(np.floor(np.log10(lowest))) if logarithmic else 0.0
        self.high = 0.0 if logarithmic else 1.0

    def __call__(self, values: ArrayLike) -> Array:
        values = np.asarray(values, np.float64)
        if not self.logarithmic:
            return values
        # a decade below the axis, where it cannot be seen
        return np.log10(np.maximum(values, 10.0 ** (self.low - 1)))

    def axis(self, label: str) -> Axis:
        """Describe the axis."""
        if not self.logarithmic:
            return Axis(label, 0.0, 1.0)
        return Axis(
            label, self.low, 0.0, tuple((float(decade), _decade(decade)) for decade in range(round(self.low), 1))
        )


def _measured(curve: Curve, look: Look, upright: _Upright) -> list[Line]:
    x = np.log10(curve.sizes)
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    bands = [_band(x[known], curve.low[known], curve.high[known], look, upright, _BAND)] if known.any() else []
    return [*bands, Line(x, upright(curve.values), look)]


def _beyond(curve: Curve, extrapolation: Extrapolation, method: str, look: Look, upright: _Upright) -> list[Line]:
    """Estimate of one method and the span of all; not joined to what was measured, which it need not meet."""
    if method not in extrapolation.predictions:
        raise DataError(
            f"expected an extrapolation by the method {method!r}, got {', '.join(extrapolation.predictions)}"
        )
    past = extrapolation.sizes >= curve.sizes.max()
    x = np.log10(extrapolation.sizes[past])
    low, high = (end[past] for end in extrapolation.span())
    values = extrapolation.predictions[method].linkability[past]
    dotted = replace(look, dash=_DOTS)
    return [_band(x, low, high, look, upright, _PALE_BAND), Line(x, upright(values), dotted)]


def _band(x: Array, low: Array, high: Array, look: Look, upright: _Upright, fill: float) -> Line:
    return Line(x, upright(high), replace(look, line=False, fill=fill, dash=()), upright(low))


def _ground(largest: float, farthest: float, upright: _Upright) -> tuple[Line, tuple[Note, ...]]:
    """Grey ground beyond the largest gallery, and what it means."""
    start, end = np.log10(largest), np.log10(farthest)
    ends = np.array([start, end])
    share = float(((start + end) / 2 - np.log10(2)) / (end - np.log10(2)))
    ground = Line(ends, np.full(2, upright.high), _GROUND, np.full(2, upright.low))
    return ground, (Note(_EXTRAPOLATED, share, False),)


def _log_axis(label: str, low: float, high: float) -> Axis:
    decades = range(int(np.ceil(np.log10(low) - 1e-9)), int(np.floor(np.log10(high) + 1e-9)) + 1)
    ticks = [(float(decade), _decade(decade)) for decade in decades]
    if low == 2:
        ticks.insert(0, (float(np.log10(2)), "2"))
    if high < 1000:
        ticks = [
            (float(np.log10(size)), f"{size:g}") for size in (1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= size <= high
        ]
    return Axis(label, float(np.log10(low)), float(np.log10(high)), tuple(ticks))


def _decade(power: int) -> str:
    if -3 <= power <= 4:
        return f"{10.0**power:,g}" if power < 4 else "10,000"
    digits = str(abs(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{'⁻' if power < 0 else ''}{digits}"


def _lowest(values: Sequence[Array]) -> float:
    positive = [column[column > 0] for column in values]
    smallest = [float(column.min()) for column in positive if len(column)]
    return max(min(smallest, default=1e-3), 1e-9)


def _floor(lowest: float, beyond: object, method: str) -> float:
    predicted = [fit.predictions[method].linkability for fit in beyond if method in fit.predictions]  # type: ignore[attr-defined]
    return min(lowest, _lowest(predicted)) if predicted else lowest


def _chance_of(curves: Mapping[Any, Curve], sizes: Array) -> Array:
    top = next(iter(curves.values())).top
    return np.minimum(1.0, top / sizes)


def _level_of(curves: Mapping[str, Curve]) -> str:
    levels = {curve.level for curve in curves.values() if np.isfinite(curve.low).any()}
    return f"{100 * levels.pop():g} % " if len(levels) == 1 and not np.isnan(next(iter(levels))) else ""


def _at_end(curve: Curve) -> str:
    return _at(float(curve.values[-1]), float(curve.sizes[-1]))


def _at(value: float, size: float) -> str:
    number = f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
    return f"({number} at N = {int(size):,})"


_QUARTILES = ((6.0, 2.0), (), (6.0, 2.0))
_MOST_COLUMNS = 4
_MEDIAN, _QUARTILE = Look("#000000", width=1.3), Look("#000000", (5, 2), 1.3)


def plot_speakers(
    systems: Mapping[str, ArrayLike],
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    bins: int = 20,
    title: str | None = None,
) -> Figure | None:
    """Plot how linkability is spread over speakers, with its quartiles; several systems in strips of the same scale.

    Parameters
    ----------
    systems : mapping of str to array_like of float of shape (n_speakers,)
        Linkability of each speaker, 0 to 1, averaged over sizes; by what the legend calls them.
    path, ax, title
        See `plot_linkability`.
    bins : int
        Number of bins from 0 to 1.
    """
    values = {name: np.asarray(column, np.float64) for name, column in systems.items()}
    if not values or any(not len(column) or not np.isfinite(column).all() for column in values.values()):
        raise DataError("expected a finite linkability for each speaker to plot")
    if not 1 <= bins <= 1000:
        raise DataError(f"expected 1 to 1,000 bins, got {bins}")
    edges = np.linspace(0, 1, bins + 1)
    shares = {name: np.histogram(column.clip(0, 1), edges)[0] / len(column) for name, column in values.items()}
    height = 1.08 * max(float(share.max()) for share in shares.values())
    lines: list[Line] = []
    entries, ticks = [], []
    for number, (name, share) in enumerate(shares.items()):
        base = (len(shares) - 1 - number) * height
        look = replace(look_of(number), dash=(), fill=0.25, width=1.6)
        steps = base + np.concatenate([[0.0], np.repeat(share, 2), [0.0]])
        lines.append(Line(np.repeat(edges, 2), steps, look, np.full(len(steps), base) if base else None))
        quartiles = np.quantile(values[name], [0.25, 0.5, 0.75])
        for place, dash in zip(quartiles, _QUARTILES, strict=True):
            lines.append(Line(np.full(2, place), np.array([base, base + height]), Look(look.colour, dash, 1.1)))
        numbers = "(Q1 {:.2f}, median {:.2f}, Q3 {:.2f})".format(*quartiles)
        entries.append((look, f"{name} {keep_together(numbers)}"))
        ticks.append((base + height / 2, "\n".join([*wrap(name, 24)[:3], f"{len(values[name]):,} speakers"])))
    upright = Axis("Share of speakers", 0.0, height)
    if len(shares) > 1:
        upright = Axis(
            f"Share of speakers, 0 to {height:.2g} in each strip", 0.0, len(shares) * height, tuple(reversed(ticks))
        )
    chart = Chart(
        title or "Linkability of single speakers",
        Axis("Linkability of a speaker, averaged over sizes of the gallery", 0.0, 1.0),
        upright,
        tuple(lines),
        tuple(entries),
        "Upright lines: median solid, quartiles dashed; beyond them the hard (left) and the easy (right)"
        + (f"\n{MEANING_OF_L}" if any("L = " in text for text in (*values, title or "")) else ""),
        height=max(4.8, 1.1 * len(shares)),
    )
    return render_chart(chart, path, ax)


def plot_speaker_grid(
    cells: Mapping[tuple[str, str], ArrayLike], *, path: Paths, bins: int = 20, title: str | None = None
) -> Figure:
    """Plot how linkability is spread over speakers, a row for each attacker and a column for each anonymiser.

    Of one attacker there are as many rows as needed.

    Parameters
    ----------
    cells : mapping of (str, str) to array_like of float of shape (n_speakers,)
        Linkability of each speaker, 0 to 1, by attacker and anonymiser; as for `plot_speakers`.
    path : path or sequence of paths
        The files to write, as PNG, PDF or SVG by their extensions, in the house style.
    bins : int
        Number of bins from 0 to 1.
    title : str, optional
        Stands above the plot.
    """
    edges = np.linspace(0, 1, bins + 1)
    rows, columns = (list(dict.fromkeys(side)) for side in zip(*cells, strict=True))
    values = {name: np.asarray(column, np.float64).clip(0, 1) for name, column in cells.items()}
    shares = {name: 100 * np.histogram(column, edges)[0] / len(column) for name, column in values.items()}
    top = 1.08 * max(float(share.max()) for share in shares.values())
    charts: dict[tuple[str, str], Chart] = {}
    for name, share in shares.items():
        low, middle, high = np.quantile(values[name], [0.25, 0.5, 0.75])
        look = Look(COLOURS[columns.index(name[1]) % len(COLOURS)], fill=0.25, width=1.6)
        lines = [Line(np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(share, 2), [0.0]]), look)]
        for place, mark in ((low, _QUARTILE), (middle, _MEDIAN), (high, _QUARTILE)):
            lines.append(Line(np.full(2, place), np.array([0.0, top]), mark))
        heading = f"{', '.join(filter(None, name))}\nQ1 {low:.2f}, median {middle:.2f}, Q3 {high:.2f}"
        charts[name] = Chart(heading, Axis("", -0.02, 1.02), Axis("", 0.0, top), tuple(lines))
    beyond = "quartiles: left of Q1 the hard to link, right of Q3 the easy"
    wide = len(columns) if len(rows) > 1 else min(len(columns), _MOST_COLUMNS)
    grid = [charts.get((row, column)) for row in rows for column in columns]
    grid += [None] * (-len(grid) % wide)
    frame = Chart(
        title or "Linkability of single speakers",
        Axis("Linkability of a speaker, averaged over sizes of the gallery", 0.0, 1.0),
        Axis("Speakers (%)", 0.0, top),
        (),
        ((_MEDIAN, "median"), (_QUARTILE, beyond)),
        width=1.0 + 3.0 * wide,
        height=0.8 + 2.4 * len(grid) / wide,
    )
    return render_grid(frame, [grid[start : start + wide] for start in range(0, len(grid), wide)], path)
