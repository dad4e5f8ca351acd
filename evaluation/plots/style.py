"""One style of all plots: colours and lines, figures and axes, legends below, words in the margin, files.

Figures are built as objects, without the global state of pyplot, so that nothing of the caller's is changed; matplotlib
is imported when a picture is drawn.

Whose settings (rcParams) hold: files have the house style, whatever the caller's settings are, and the same input gives
the same bytes (no date is written, and ids in SVG come from a fixed salt). A figure that is only returned, and axes
that are given, follow the caller's settings; ``with house_style():`` asks for ours there too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from evaluation.plots.tex import to_tex
from spkbase.errors import DataError
from spkbase.files import atomic_path, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Paths = str | Path | Sequence[str | Path]
Style = dict[str, Any]
"""How a line looks: keywords of ``Axes.plot``."""

EXTENSIONS = (".png", ".pdf", ".svg", ".tex")
# Okabe and Ito's colours, told apart by colour-blind readers too; with the line styles also in grey
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
GREY, PALE, GRID = "#606060", "#b0b0b0", "#e0e0e0"
MARKERS = ("o", "s", "^", "D", "v")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (10, 3)))
_LEGEND_WIDTH, _NARROW_LEGEND = 72, 46  # characters
_NO_DATE: dict[str, dict[str, None]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
SETTINGS: dict[str, Any] = {
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


def line_of(number: int, **changes: Any) -> Style:
    """Return the colour and line style of a system, by its number."""
    colour, dash = COLOURS[number % len(COLOURS)], _DASHES[number % len(_DASHES)]
    return {"color": colour, "linestyle": dash, "linewidth": 1.8} | changes


def plain(colour: str, linewidth: float = 1.8, dash: tuple[float, ...] = ()) -> Style:
    """Return a line of a colour, with lengths of dashes and gaps in units of its width; solid by default."""
    return {"color": colour, "linestyle": (0, dash) if dash else "-", "linewidth": linewidth}


def marker(shape: str, colour: str) -> Style:
    """Return a marker alone, without a line; ``ring`` is a hollow circle."""
    if shape == "ring":
        look = {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgecolor": colour}
        return {"color": colour, "linestyle": "none", "markeredgewidth": 1.6, "zorder": 5} | look
    look = {"marker": shape, "markersize": 8, "markeredgecolor": "white", "zorder": 5}
    return {"color": colour, "linestyle": "none"} | look


def keep_together(numbers: str) -> str:
    """Keep the numbers of a legend on one line of it."""
    return numbers.replace(" ", "\N{NO-BREAK SPACE}")


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


@contextmanager
def house_style() -> Iterator[None]:
    """Set matplotlib to the settings of the files that this package writes, as long as the block lasts.

    Examples
    --------
    >>> with house_style():
    ...     figure = plot_det(systems)  # doctest: +SKIP
    """
    import matplotlib

    defaults: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")
    }
    with matplotlib.rc_context(defaults | SETTINGS):
        yield


@contextmanager
def figure_for(
    path: Paths | None, width: float, height: float, *, ax: Axes | None = None, extensions: Sequence[str] = EXTENSIONS
) -> Iterator[Figure]:
    """The figure of given axes, or a new one; written into the files when the block ends.

    A new one for files has the house style. Another one has the caller's settings, and the caller's size where that
    is not matplotlib's default, which has no room for a legend below.

    Parameters
    ----------
    path : path or sequence of paths, optional
        The files, in a format by their extensions.
    width, height : float
        In inches, without what the legend takes.

    Raises
    ------
    DataError
        If an extension is unknown, a file cannot be written, or the axes have no figure.
    """
    paths = [] if path is None else [Path(path)] if isinstance(path, (str, Path)) else [Path(file) for file in path]
    for file in paths:
        if file.suffix.lower() not in extensions:
            remedy = f"use one of {', '.join(extensions)}"
            raise DataError(f"no format of plots is known for the extension {file.suffix!r}", file=file, remedy=remedy)
    import matplotlib

    with house_style() if paths and ax is None else matplotlib.rc_context({"text.parse_math": False}):
        figure: Any
        if ax is None:
            own, default = (
                tuple(params["figure.figsize"]) for params in (matplotlib.rcParams, matplotlib.rcParamsDefault)
            )
            size = (width, height) if own == default else own
            figure = _picture()(figsize=size, layout="constrained")
            figure.grows = own == default
        else:
            figure = ax.get_figure()
            if figure is None:
                raise DataError("expected axes of a figure, got axes that were removed from theirs")
            figure = figure.figure  # of a part of a figure, the whole
        yield figure
        for file in paths:
            form = file.suffix.lower()
            if form == ".tex":
                write_text(file, to_tex(ax or figure.axes[0], width, height))
                continue
            options = {"dpi": 150, "bbox_inches": "tight", "pad_inches": 0.1, "metadata": _NO_DATE[form]}
            with atomic_path(file) as temporary:
                figure.savefig(temporary, format=form[1:], **options)


@contextmanager
def axes_for(
    path: Paths | None, ax: Axes | None, width: float, height: float, extensions: Sequence[str] = EXTENSIONS
) -> Iterator[Axes]:
    """The given axes, or those of a new figure; see `figure_for`."""
    with figure_for(path, width, height, ax=ax, extensions=extensions) as figure:
        yield figure.add_subplot() if ax is None else ax


def finish(
    axes: Axes,
    title: str,
    x: tuple[Any, ...],
    y: tuple[Any, ...],
    entries: Sequence[tuple[Style, str]] = (),
    legend_title: str = "",
    *,
    square: bool = False,
    pad: float = 8,
) -> Any:
    """Name and limit the axes, put the title above and the legend below, and return the whole figure.

    Parameters
    ----------
    axes : Axes
        Drawn into.
    title : str
        Stands above, so many points from the axes as `pad` says.
    x, y : (str, float, float) or (str, float, float, sequence of (float, str))
        Label, ends, and places and texts of the ticks where matplotlib's own do not serve.
    entries : sequence of (Style, str)
        The legend, in its order.
    legend_title : str
        Stands above the legend.
    square : bool
        As high as it is wide.
    """
    for axis, set_ends, (label, low, high, *ticks) in ((axes.xaxis, axes.set_xlim, x), (axes.yaxis, axes.set_ylim, y)):
        if ticks and ticks[0]:
            axis.set_ticks([place for place, _ in ticks[0]], [printable(text) for _, text in ticks[0]])
        set_ends(low, high)
        axis.set_label_text(printable(label))
    if square:
        axes.set_box_aspect(1)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    if entries:
        legend_below(axes, entries, legend_title)
    axes.set_title(printable(title), pad=pad)
    figure: Any = axes.get_figure()
    return figure.figure


def legend_below(axes: Axes, entries: Sequence[tuple[Style, str]], title: str = "") -> None:
    """Put a legend below the figure, which grows by it; below the axes where these are the caller's."""
    from matplotlib.lines import Line2D

    figure: Any = axes.get_figure()
    where: Any = figure if isinstance(figure, _picture()) else axes
    width = _LEGEND_WIDTH if where is figure else _NARROW_LEGEND
    options: dict[str, Any] = {"loc": "outside lower center", "title": printable(title) or None}
    if where is axes:
        options = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "title": _wrapped(title, width) or None}
    elif figure.grows:
        n_lines = sum(label.count("\n") + 1 + len(label) // width for _, label in entries)
        figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + 0.2 * (n_lines + 2))
    handles = [Line2D([], [], **style) for style, _ in entries]
    labels = [_wrapped(label, width) for _, label in entries]
    where.legend(handles, labels, **options, handlelength=4.5, frameon=False, alignment="left")


def _wrapped(text: str, width: int) -> str:
    return "\n".join(part for line in printable(text).split("\n") for part in wrap(line, width) or [""])


def write_in_margin(axes: Axes, text: str, share: float, *, across: bool = False, warning: bool = False) -> None:
    """Write at a share of the side above the axes, or right of them, but not round a corner; a warning is bold."""
    share = min(max(share, 0.1), 0.9)
    axes.annotate(
        printable(text),
        (1.0, share) if across else (share, 1.0),
        (3, 0) if across else (0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        rotation=90 if across else 0,
        ha="left" if across else "center",
        va="center" if across else "bottom",
        color=COLOURS[1] if warning else GREY,
        fontsize=9.5,
        fontweight="bold" if warning else "normal",
        wrap=warning,
    )


@cache
def _picture() -> Any:
    """The class of our figures: apart from pyplot, with a canvas of their own, which a notebook shows as a result."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Picture(Figure):
        grows = False

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", dpi=100, bbox_inches="tight")
            return buffer.getvalue()

    return Picture
