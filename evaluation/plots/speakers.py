"""How linkability is spread over speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evaluation.plots.chart import COLOURS, Axis, Chart, Line, Look, Paths, keep_together, look_of
from evaluation.plots.draw import render_chart, render_grid
from evaluation.plots.linkability import MEANING_OF_L
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
