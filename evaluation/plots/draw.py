"""Charts as figures of matplotlib, or as PNG, PDF or SVG.

Figures are built as objects, without the global state of pyplot, so that nothing of the caller's is changed.

Whose settings (rcParams) hold: files have the house style, whatever the caller's settings are, and the same input gives
the same bytes (no date is written, and ids in SVG come from a fixed salt). A figure that is only returned, and axes
that are given, follow the caller's settings; ``with house_style():`` asks for ours there too.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from evaluation.plots.chart import COLOURS, GREY, RING, Axis, Chart, Line, Look, Note, Paths
from evaluation.plots.tex import to_tex
from spkbase.errors import DataError
from spkbase.files import atomic_path, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXTENSIONS = (".png", ".pdf", ".svg", ".tex")
LEGEND_WIDTH, _NARROW_LEGEND = 72, 46  # characters
_NO_DATE: dict[str, dict[str, None]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 11,
    "axes.titlesize": 12,
    "legend.fontsize": 9.5,
    "legend.title_fontsize": 9.5,
    "text.parse_math": False,  # names of systems may hold dollar signs
    "text.usetex": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "spkver",
    "pdf.fonttype": 42,
    "axes.grid": False,
    "path.simplify": True,
}


def render_chart(chart: Chart, path: Paths | None = None, ax: Axes | None = None) -> Figure | None:
    """Draw a chart, into files or axes where they are given.

    Parameters
    ----------
    chart : Chart
        What to show.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's settings; its figure is what `path` then holds. A new figure by default.

    Returns
    -------
    Figure or None
        None where TeX alone was asked for, which needs no matplotlib.

    Raises
    ------
    DataError
        If an extension is unknown or a file cannot be written.
    """
    paths = [] if path is None else checked_paths(path)
    for file in paths:
        if file.suffix.lower() == ".tex":
            write_text(file, to_tex(chart))
    drawn = [file for file in paths if file.suffix.lower() != ".tex"]
    if paths and not drawn and ax is None:
        return None
    n_lines = sum(label.count("\n") + 1 + len(label) // LEGEND_WIDTH for _, label in chart.entries)
    with figure_of(chart.width, chart.height + 0.2 * (n_lines + 2), files=bool(paths), ax=ax) as figure:
        draw_chart(figure, chart, ax)
        if drawn:
            save_figure(figure, drawn)
    return figure


def render_grid(frame: Chart, charts: Sequence[Sequence[Chart | None]], path: Paths) -> Figure:
    """Draw charts in rows and columns on the same two axes, into files.

    Parameters
    ----------
    frame : Chart
        What stands around all: title, labels of the axes, legend; width and height of the whole.
    charts : sequence of sequence of Chart or None
        By row and column; None leaves a place empty.
    path : path or sequence of paths
        The files to write, as PNG, PDF or SVG by their extensions, in the house style.

    Raises
    ------
    DataError
        If an extension is unknown or a file cannot be written.
    """
    paths = checked_paths(path, EXTENSIONS[:3])
    with figure_of(frame.width, frame.height + 0.2 * (len(frame.entries) + 2)) as figure:
        places = figure.subplots(len(charts), len(charts[0]), sharex=True, sharey=True, squeeze=False)
        for axes, chart in zip(places.flat, (chart for row in charts for chart in row), strict=True):
            if chart is None:
                axes.set_axis_off()
            else:
                draw_chart(figure, chart, axes)
        figure.suptitle(printable(frame.title), fontsize=12)
        below = [axes for axes, chart in zip(places[-1], charts[-1], strict=True) if chart is not None]
        below[len(below) // 2].set_xlabel(printable(frame.x.label))
        places[len(charts) // 2, 0].set_ylabel(printable(frame.y.label))
        _draw_legend(figure, frame)
        save_figure(figure, paths)
    return figure


def draw_chart(figure: Figure, chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw a chart into axes, or into an empty figure."""
    axes = figure.add_subplot() if ax is None else ax
    for axis, ends, ticks in ((axes.xaxis, axes.set_xlim, chart.x), (axes.yaxis, axes.set_ylim, chart.y)):
        _set_axis(axis, ends, ticks)
    if chart.square:
        axes.set_box_aspect(1)
    axes.grid(color="#e0e0e0", linewidth=0.8)
    axes.set_axisbelow(True)
    for line in chart.lines:
        _draw_line(axes, line)
    for note in chart.notes:
        _write_in_margin(axes, note)
    _draw_legend(figure if ax is None else axes, chart)
    above = any(not note.across for note in chart.notes)
    axes.set_title(printable(chart.title), pad=18 if above else 8)
    return axes


def checked_paths(path: Paths, extensions: Sequence[str] = EXTENSIONS) -> list[Path]:
    """Check the extensions of files of plots.

    Raises
    ------
    DataError
        If one is unknown.
    """
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(file) for file in path]
    for file in paths:
        if file.suffix.lower() not in extensions:
            remedy = f"use one of {', '.join(extensions)}"
            raise DataError(f"no format of plots is known for the extension {file.suffix!r}", file=file, remedy=remedy)
    return paths


@contextmanager
def house_style() -> Iterator[None]:
    """Set matplotlib to the settings of the files that this package writes, as long as the block lasts.

    Examples
    --------
    >>> with house_style():
    ...     figure = plot_det(systems)  # doctest: +SKIP
    """
    matplotlib = _matplotlib()
    defaults: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")
    }
    with matplotlib.rc_context(defaults | _SETTINGS):
        yield


@contextmanager
def figure_of(width: float, height: float, *, files: bool = True, ax: Axes | None = None) -> Iterator[Figure]:
    """The figure of given axes, or a new one; sizes in inches.

    A new one for `files` has the house style. Another one has the caller's settings, and the caller's size where that
    is not matplotlib's default, which has no room for a legend below.
    """
    matplotlib = _matplotlib()
    if ax is not None:
        with matplotlib.rc_context({"text.parse_math": False}):
            figure = ax.get_figure()
            if figure is None:
                raise DataError("expected axes of a figure, got axes that were removed from theirs")
            yield figure.figure  # of a part of a figure, the whole
        return
    with house_style() if files else matplotlib.rc_context({"text.parse_math": False}):
        from evaluation.plots.figure import Picture

        own, default = (tuple(params["figure.figsize"]) for params in (matplotlib.rcParams, matplotlib.rcParamsDefault))
        yield Picture(figsize=(width, height) if own == default else own, layout="constrained")


def _matplotlib() -> Any:
    """matplotlib, also where MPLBACKEND names a backend that is not here, as notebooks hand it to their children."""
    if "matplotlib" in sys.modules:
        return sys.modules["matplotlib"]
    backend = os.environ.pop("MPLBACKEND", None)  # importing fails on one that cannot be had, and we need none
    try:
        import matplotlib
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend is not None:
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = backend  # for the caller's own plots
    return matplotlib


def save_figure(figure: Figure, paths: Sequence[Path]) -> None:
    """Write a figure in each of the formats, whole or not at all."""
    for path in paths:
        form = path.suffix.lower()
        with atomic_path(path) as temporary:
            figure.savefig(
                temporary, format=form[1:], dpi=150, bbox_inches="tight", pad_inches=0.1, metadata=_NO_DATE[form]
            )


def printable(text: str) -> str:
    r"""Return a text that can be drawn and stand in SVG: letters that can do neither become a question mark in a box.

    Names of systems come from file names, which hold control characters and bytes that are no text.

    Examples
    --------
    >>> printable("a\x01b\udcff\nc")
    'a\ufffdb\ufffd\nc'
    """
    return "".join(
        letter
        if letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cs", "Cn")
        else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


def style_of(look: Look) -> dict[str, Any]:
    """Return matplotlib's names of a look."""
    style: dict[str, Any] = {
        "color": look.colour,
        "linestyle": ("none" if not look.line else (0, look.dash) if look.dash else "-"),
        "linewidth": look.width,
        "alpha": look.opaque,
    }
    if look.marker == RING:
        ring = {"markerfacecolor": "white", "markeredgecolor": look.colour, "markeredgewidth": 1.6}
        style |= {"marker": "o", "markersize": 6.5, **ring}
    elif look.marker:
        style |= {"marker": look.marker, "markersize": 8, "markeredgecolor": "white"}
    return style


def _set_axis(axis: Any, set_ends: Any, wanted: Axis) -> None:
    if wanted.ticks:
        axis.set_ticks([place for place, _ in wanted.ticks], [printable(text) for _, text in wanted.ticks])
    set_ends(wanted.low, wanted.high)
    axis.set_label_text(printable(wanted.label))


def _draw_line(axes: Axes, line: Line) -> None:
    look = line.look
    axes.plot(line.x, line.y, **style_of(look), zorder=5 if look.marker else 2)
    if look.fill:
        base = 0.0 if line.base is None else line.base
        axes.fill_between(line.x, line.y, base, color=look.colour, alpha=look.fill, linewidth=0)


def _write_in_margin(axes: Axes, note: Note) -> None:
    """Write beside the axes: right of them, or above, but not round a corner."""
    share = min(max(note.share, 0.1), 0.9)
    axes.annotate(
        printable(note.text),
        (1.0, share) if note.across else (share, 1.0),
        (3, 0) if note.across else (0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        rotation=90 if note.across else 0,
        ha="left" if note.across else "center",
        va="center" if note.across else "bottom",
        color=COLOURS[1] if note.warning else GREY,
        fontsize=9.5,
        fontweight="bold" if note.warning else "normal",
        wrap=note.warning,
    )


def _draw_legend(where: Figure | Axes, chart: Chart) -> None:
    """Below the plot: of the whole figure, or of axes that are one of several in a figure."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if not chart.entries:
        return
    options: dict[str, Any] = {"loc": "outside lower center", "title": printable(chart.legend_title) or None}
    width = LEGEND_WIDTH
    if not isinstance(where, Figure):
        width = _NARROW_LEGEND
        title = _wrapped(chart.legend_title, width) or None
        options = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "title": title}
    labels = [_wrapped(label, width) for _, label in chart.entries]
    where.legend(
        [Line2D([], [], **style_of(look)) for look, _ in chart.entries],
        labels,
        **options,
        handlelength=4.5,
        frameon=False,
        alignment="left",
    )


def _wrapped(text: str, width: int) -> str:
    return "\n".join(part for line in printable(text).split("\n") for part in wrap(line, width) or [""])
