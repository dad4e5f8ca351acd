"""Voice similarity matrices as pictures, side by side on one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evaluation.plots.chart import GREY, Paths
from evaluation.plots.draw import checked_paths, figure_of, printable, save_figure
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EXTENSIONS = (".png", ".pdf", ".svg")
_MOST_NAMED = 24  # speakers
_SIDE = 2.9  # inches


def plot_similarity(
    matrices: Mapping[str, ArrayLike],
    speakers: Sequence[str],
    *,
    path: Paths | None = None,
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

    Returns
    -------
    Figure

    Raises
    ------
    DataError
        If there is no matrix, a shape or a number is none, or an extension is unknown.
    """
    paths = [] if path is None else checked_paths(path, _EXTENSIONS)
    cells = {name: _checked(name, matrix, len(speakers)) for name, matrix in matrices.items()}
    if not cells:
        raise DataError("expected a voice similarity matrix to plot, got none")
    order = _grouped(next(iter(cells.values())))
    names = [speakers[place] for place in order]
    wide = _SIDE + (0.6 if len(speakers) <= _MOST_NAMED else 0.0)
    with figure_of(wide * len(cells) + 0.9, wide + 0.8, files=bool(paths)) as figure:
        places = figure.subplots(1, len(cells), squeeze=False)[0]
        for axes, (name, matrix) in zip(places, cells.items(), strict=True):
            picture = axes.pcolormesh(matrix[np.ix_(order, order)], cmap="cividis", vmin=0.0, vmax=1.0, linewidth=0)
            heading = printable(name) + (f"\n{printable(subtitles[name])}" if subtitles and name in subtitles else "")
            axes.set_title(heading, fontsize=11)
            _name_axes(axes, names, *(axes_names or {}).get(name, ("speaker", "speaker")))
        bar = figure.colorbar(picture, ax=list(places), shrink=0.8, pad=0.02)
        bar.set_label("similarity: 0 unlike, 0.5 no evidence, 1 alike", fontsize=9.5, color=GREY)
        if title:
            figure.suptitle(printable(title), fontsize=12)
        if paths:
            save_figure(figure, paths)
    return figure


def _checked(name: str, matrix: ArrayLike, count: int) -> np.ma.MaskedArray:
    cells = np.asarray(matrix, np.float64)
    if cells.shape != (count, count) or not count:
        raise DataError(f"matrix {name!r}: expected a cell for each pair of {count} speakers, got shape {cells.shape}")
    known = cells[~np.isnan(cells)]
    if not len(known) or not (known.min() >= 0 and known.max() <= 1):
        raise DataError(f"matrix {name!r}: expected similarities from 0 to 1")
    return np.ma.masked_invalid(cells)


def _grouped(matrix: np.ma.MaskedArray) -> list[int]:
    """Order of speakers that puts together those who have trials with the same others, as of one sex."""
    blank = np.ma.getmaskarray(matrix)
    np.fill_diagonal(blank, False)
    seen: dict[tuple[bool, ...], int] = {}
    groups = [seen.setdefault(tuple(row), len(seen)) for row in blank.tolist()]
    return sorted(range(len(groups)), key=groups.__getitem__)


def _name_axes(axes: Axes, speakers: Sequence[str], rows: str, columns: str) -> None:
    axes.set_box_aspect(1)
    axes.invert_yaxis()
    axes.set_ylabel(printable(rows), fontsize=9.5)
    axes.set_xlabel(printable(columns), fontsize=9.5)
    if len(speakers) > _MOST_NAMED:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    middles = np.arange(len(speakers)) + 0.5
    names = [printable(name if len(name) <= 12 else f"{name[:11]}…") for name in speakers]
    axes.set_xticks(middles, names, rotation=90, fontsize=7.5)
    axes.set_yticks(middles, names, fontsize=7.5)
    axes.tick_params(length=0)
