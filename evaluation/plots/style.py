"""The common style of all plots: colours and lines, figures and axes, legends, labels in the margin, files.

Figures are built as objects, without the global state of pyplot, which would affect the caller's figures; matplotlib is
imported when a plot is drawn.

Settings (rcParams): files have the house style, whatever the caller's settings are, and the same input gives
the same bytes (no date is written, and ids in SVG come from a fixed salt). A figure that is only returned, and axes
that are given, follow the caller's fonts and colours; ``with house_style():`` applies ours there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from evaluation.plots.tex import to_tex
from spkbase.errors import DataError
from spkbase.files import atomic_path, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Paths = str | Path | Sequence[str | Path]

Style = dict[str, Any]
"""How a line looks: keywords of ``Axes.plot``."""

Colour = str | tuple[float, ...]
Colours = Colour | Sequence[Colour] | Mapping[str, Colour] | None
"""A colour of matplotlib for all systems, one for each in the order of the legend, or colours by the names of some."""

EXTENSIONS = (".png", ".pdf", ".svg", ".tex", ".pgf")
PICTURES = EXTENSIONS[:3]
CORNERS = ("upper left", "upper right", "lower left", "lower right")

# Okabe and Ito's colours, distinguishable by colour-blind readers too; with the line styles also in grey
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

GREY = "#606060"
PALE = "#b0b0b0"
GRID = "#e0e0e0"
MARKERS = ("o", "s", "^", "D", "v")

SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.labelsize": 11.0,
    "axes.titlesize": 12.0,
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

_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (10, 3)))
_LEGEND_WIDTH = 72  # characters
_NARROW_LEGEND = 46
_LEGEND_LINE = 0.205  # inches
_LEGEND_MARGIN = 0.18
_SMALLEST = 2 / 3  # smallest scale of the fonts
_NO_DATE: dict[str, dict[str, None]] = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}


class Canvas(TypedDict, total=False):
    """Where and how a plot is drawn: keywords of every plot function of one pair of axes.

    Attributes
    ----------
    path : path or sequence of paths
        The files to write, by their extensions as PNG, PDF, SVG, a stand-alone TeX document (``.tex``) or a PGF picture
        for ``\\input`` (``.pgf``), in the house style.
    ax : Axes of matplotlib
        Where to draw, with the caller's rcParams; a new figure by default.
    title : str
        Title above the plot; empty for none, as for a figure with a caption.
    notes : bool
        Whether to print the explanation of the lines above the legend; true by default.
    width : float
        Width of a new figure in inches, such as 3.4 for one column of a paper. The height follows, and fonts shrink by
        no more than a third.
    legend : str or bool
        Corner of the axes that holds the legend, such as ``"upper left"``; false for none. Below the plot by default.
    """

    path: Paths | None
    ax: Axes | None
    title: str | None
    notes: bool
    width: float | None
    legend: str | bool | None


def line_of(number: int, **changes: Any) -> Style:
    """Return the colour and line style of a system, by its number; marks along the line once the colours repeat."""
    colour = COLOURS[number % len(COLOURS)]
    dash = _DASHES[number % len(_DASHES)]
    look = {"color": colour, "linestyle": dash, "linewidth": 1.8}
    if number >= len(COLOURS):
        shape = MARKERS[number % len(MARKERS)]
        # positions as fractions of the diagonal: the markers of lines that overlap lie side by side
        first = 0.02 * (number % len(MARKERS))
        look |= {"marker": shape, "markersize": 5.5, "markevery": (first, 0.1)}
    return look | changes


def looks_of(
    names: Sequence[str], color: Colours = None, numbers: Sequence[int] | None = None
) -> list[Style]:
    """Return the line of each system, in colours of the caller or in ours.

    Parameters
    ----------
    names : sequence of str
        Names of the systems.
    color : Colours
        See `evaluation.plots.plot_det`.
    numbers : sequence of int, optional
        Number of each system's line; in their order by default.

    Raises
    ------
    DataError
        If a colour is unknown, or colours do not fit the systems in number or name.
    """
    colours: list[Any] = [None] * len(names)
    if isinstance(color, Mapping):
        unknown = color.keys() - set(names)
        if unknown:
            text = f"expected colours of {', '.join(names)}, got one of {min(unknown)!r}"
            raise DataError(text)
        colours = [color.get(name) for name in names]
    elif _is_colour(color):
        colours = [color] * len(names)
    elif isinstance(color, str):
        colours = [color]
    elif color is not None:
        colours = list(color)
        if len(colours) < len(names):
            text = f"expected a colour for each of {len(names)} systems, got {len(colours)}"
            raise DataError(text)
    looks = []
    for number, colour in zip(numbers or range(len(names)), colours, strict=False):
        look = line_of(number)
        if colour is not None:
            if not _is_colour(colour):
                text = f"expected a colour of matplotlib, got {colour!r}"
                raise DataError(text, remedy="give a name such as 'red', or '#d55e00'")
            look["color"] = colour
        looks.append(look)
    return looks


def _is_colour(value: Any) -> bool:
    from matplotlib.colors import is_color_like

    try:
        return is_color_like(value)
    except TypeError:  # matplotlib 3.8 raises it for two strings
        return False


class Curves:
    """The curves that a plot shows, to name those that hide each other."""

    def __init__(self) -> None:
        self._shown: list[tuple[str, list[np.ndarray]]] = []

    def add(self, name: str, *points: ArrayLike) -> str:
        """Add a curve; return a line of the legend that names an earlier curve with the same points, or nothing."""
        arrays = [np.asarray(values, np.float64) for values in points]
        earlier = ""
        for other, shown in self._shown:
            if all(map(_are_equal, arrays, shown)):
                earlier = f"\nsame curve as {other}"
                break
        self._shown.append((name, arrays))
        return earlier


def _are_equal(first: np.ndarray, second: np.ndarray) -> bool:
    same_shape = first.shape == second.shape
    return same_shape and np.allclose(first, second, rtol=0, atol=1e-9, equal_nan=True)


def plain(colour: str, linewidth: float = 1.8, dash: tuple[float, ...] = ()) -> Style:
    """Return a coloured line with lengths of dashes and gaps in units of its width; solid by default."""
    linestyle = (0, dash) if dash else "-"
    return {"color": colour, "linestyle": linestyle, "linewidth": linewidth}


def marker(shape: str, colour: str) -> Style:
    """Return a marker without a line."""
    look = {"marker": shape, "markersize": 8, "markeredgecolor": "white", "zorder": 5}
    return {"color": colour, "linestyle": "none"} | look


def named(name: str, numbers: str) -> str:
    """Return a legend label: a name, and numbers in brackets, which are kept on one line."""
    return f"{name} " + f"({numbers})".replace(" ", "\N{NO-BREAK SPACE}")


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the settings for files written by this package within the block.

    Examples
    --------
    >>> with house_style():
    ...     figure = plot_det(systems)  # doctest: +SKIP
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


@contextmanager
def figure_for(
    canvas: Canvas, width: float, height: float, forms: Sequence[str] = EXTENSIONS
) -> Iterator[Figure]:
    """Yield the figure of given axes, or a new one, which is written to the files when the block ends.

    Parameters
    ----------
    canvas : Canvas
        The canvas that the caller asks for.
    width, height : float
        Default size in inches, without the legend.
    forms : sequence of str
        Extensions of the formats that the plot can be written in.

    Raises
    ------
    DataError
        If an extension is unknown or a file cannot be written.
    """
    unknown = set(canvas) - set(Canvas.__annotations__)
    if unknown:
        raise TypeError(f"unexpected keyword arguments of a plot: {', '.join(sorted(unknown))}")
    paths = _checked_paths(canvas.get("path"), forms)
    ax = canvas.get("ax")
    asked = canvas.get("width")
    corner = canvas.get("legend") or ""
    if corner not in ("", True, *CORNERS):
        raise DataError(
            f"expected one of the corners for the legend: {', '.join(CORNERS)}, got {corner!r}"
        )
    import matplotlib

    settings: Any = matplotlib.rc_context({"text.parse_math": False})
    if paths and ax is None:
        settings = house_style()
    with settings:
        figure: Any
        if ax is not None:
            figure = ax.get_figure()
        else:
            figure = _picture()(figsize=(width, height), layout="constrained")
            if asked:
                _scale_fonts(figure, asked / width)
                height = asked / width * height
                width = asked
                figure.set_size_inches(width, height)
        figure = figure.figure  # the whole figure, if the axes belong to a part of one
        yield figure
        for file in paths:
            form = file.suffix.lower()
            if form in (".tex", ".pgf"):
                write_text(file, to_tex(figure, alone=form == ".tex"))
            else:
                _save(figure, file, form, has_margins=not asked)


def _save(figure: Figure, file: Path, form: str, *, has_margins: bool) -> None:
    """Write a figure without the date; margins add to its width."""
    options: dict[str, Any] = {"dpi": 150, "metadata": _NO_DATE[form]}
    if has_margins:
        options |= {"bbox_inches": "tight", "pad_inches": 0.1}
    with atomic_path(file) as temporary:
        figure.savefig(temporary, format=form[1:], **options)


def _checked_paths(path: Any, forms: Sequence[str]) -> list[Path]:
    """Return the files of a plot; a DataError if it cannot be written in a format."""
    if isinstance(path, (str, Path)):
        path = [path]
    paths = list(map(Path, path or ()))
    for file in paths:
        if file.suffix.lower() not in forms:
            text = f"no format of plots is known for the extension {file.suffix!r}"
            raise DataError(text, file=file, remedy=f"use one of {', '.join(forms)}")
    return paths


def _scale_fonts(figure: Any, scale: float) -> None:
    """Scale the fonts of a figure that is narrower or wider than usual, within limits."""
    import matplotlib

    figure.fonts = min(max(scale, _SMALLEST), 1.0)
    figure.letters = round(_LEGEND_WIDTH * scale / figure.fonts)
    for name in (
        "font.size",
        "axes.labelsize",
        "axes.titlesize",
        "legend.fontsize",
        "legend.title_fontsize",
    ):
        size = matplotlib.rcParams[name]
        if isinstance(size, float):  # sizes given as words follow font.size
            matplotlib.rcParams[name] = figure.fonts * size


@contextmanager
def axes_for(
    canvas: Canvas, width: float, height: float, forms: Sequence[str] = EXTENSIONS
) -> Iterator[Axes]:
    """Yield the given axes, or those of a new figure; see `figure_for`."""
    with figure_for(canvas, width, height, forms) as figure:
        yield canvas.get("ax") or figure.add_subplot()


def finish(
    axes: Axes,
    canvas: Canvas,
    title: str,
    x: tuple[Any, ...],
    y: tuple[Any, ...],
    entries: Sequence[tuple[Style, str]] = (),
    notes: str = "",
    *,
    square: bool = False,
) -> Figure:
    """Name and limit the axes, put the title above and the legend below, and return the whole figure.

    Parameters
    ----------
    axes : Axes
        Axes to draw into.
    canvas : Canvas
        The canvas that the caller asks for.
    title : str
        Title if the canvas has none.
    x, y : (str, float, float) or (str, float, float, sequence of (float, str))
        Label and limits, and positions and texts of the ticks unless matplotlib's own will do.
    entries : sequence of (Style, str)
        The legend, in its order.
    notes : str
        Lines above the legend that explain it.
    square : bool
        Whether the axes are square.
    """
    for axis, ticks in ((axes.xaxis, x[3:]), (axes.yaxis, y[3:])):
        if ticks and ticks[0]:
            axis.set_ticks(*zip(*ticks[0], strict=True))
    axes.set(xlabel=x[0], xlim=x[1:3], ylabel=y[0], ylim=y[1:3])
    if square:
        axes.set_box_aspect(1)
    axes.minorticks_off()  # logarithmic axes would otherwise have minor ticks
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    if entries and canvas.get("legend") is not False:
        legend_below(axes, canvas, entries, notes)
    asked = canvas.get("title")
    if asked is not None:
        title = asked
    # written above the axes by `write_in_margin`
    labelled = any(not text.get_rotation() for text in axes.texts)
    pad = 18 if labelled else 8
    axes.set_title(title, pad=pad)
    parent: Any = axes.get_figure()
    figure: Figure = parent.figure
    return figure


def legend_below(
    axes: Axes, canvas: Canvas, entries: Sequence[tuple[Style, str]], notes: str = ""
) -> None:
    """Put a legend into a corner, or below the figure, which grows accordingly; below the axes if these were given."""
    from matplotlib.lines import Line2D

    where: Any
    options: dict[str, Any]
    figure: Any = axes.get_figure()
    corner = canvas.get("legend")
    if canvas.get("ax") or corner in CORNERS:
        letters = _NARROW_LEGEND
        widest = _NARROW_LEGEND
        where = axes
        options = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
        if corner in CORNERS:
            options = {"loc": corner}
    else:
        letters = figure.letters
        widest = 4 * figure.letters // 3
        where = figure
        options = {"loc": "outside lower center"}
    title = ""
    if canvas.get("notes", True):
        title = _wrapped(notes, widest)
    if where is figure:
        n_lines = sum(label.count("\n") + 1 + len(label) // letters for _, label in entries)
        n_lines += max(2, title.count("\n") + 1)
        inches = _LEGEND_LINE * n_lines + _LEGEND_MARGIN
        height = figure.get_figheight() + figure.fonts * inches
        figure.set_size_inches(figure.get_figwidth(), height)
    handles = []
    labels = []
    for style, label in entries:
        handles.append(Line2D([], [], **style | {"markevery": None}))
        labels.append(_wrapped(label, letters))
    where.legend(
        handles,
        labels,
        **options,
        title=title or None,
        handlelength=4.5,
        frameon=False,
        alignment="left",
    )


def write_in_margin(axes: Axes, text: str, share: float, *, across: bool = False) -> None:
    """Write in the margin above or to the right of the axes, at a fraction of that side."""
    import matplotlib

    share = min(max(share, 0.1), 0.9)
    look = {
        "color": GREY,
        "fontsize": matplotlib.rcParams["legend.fontsize"],
        "textcoords": "offset points",
    }
    if across:
        look |= {"rotation": 90, "ha": "left", "va": "center"}
        axes.annotate(text, (1.0, share), (3, 0), xycoords="axes fraction", **look)
    else:
        look |= {"ha": "center", "va": "bottom"}
        axes.annotate(text, (share, 1.0), (0, 3), xycoords="axes fraction", **look)


def _wrapped(text: str, width: int) -> str:
    return "\n".join("\n".join(wrap(line, width)) for line in text.split("\n"))


@cache
def _picture() -> Any:
    """Return the class of our figures, which are unknown to pyplot but shown in notebooks."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        letters = _LEGEND_WIDTH
        fonts = 1.0  # scale of the fonts relative to the default size

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", dpi=100, bbox_inches="tight")
            return buffer.getvalue()

    return Picture
