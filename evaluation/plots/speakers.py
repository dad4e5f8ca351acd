"""How linkability is spread over speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evaluation.plots.chart import Axis, Chart, Line, Look, Paths, keep_together, look_of
from evaluation.plots.draw import render_chart
from evaluation.plots.linkability import MEANING_OF_L
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_QUARTILES = ((6.0, 2.0), (), (6.0, 2.0))


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
