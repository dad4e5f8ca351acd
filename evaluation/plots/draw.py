"""Charts as figures of matplotlib, or as PNG, PDF or SVG.

Figures are built as objects, without the global state of pyplot, so that nothing of the caller's is changed.

Whose settings (rcParams) hold: files have the house style, whatever the caller's settings are, and the same input gives
the same bytes (no date is written, and ids in SVG come from a fixed salt). A figure that is only returned, and axes
that are given, follow the caller's settings; ``with house_style():`` asks for ours there too.

**Charts as stand-alone pgfplots documents:** ``pdflatex`` alone makes a page of them, nothing of this project
is needed.

Long curves are thinned to what can be seen on the page, since TeX has little memory.
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

import numpy as np

from evaluation.plots.chart import COLOURS, GREY, RING, Axis, Chart, Line, Look, Note, Paths
from spkbase.errors import DataError
from spkbase.files import atomic_path, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_GRID = 3000  # steps of an axis that can be told apart
_MARKS = {"o": "*", "ring": "*", "s": "square*", "^": "triangle*", "D": "diamond*", "v": "triangle*"}
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "#": r"\#",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{MINUS SIGN}": r"\textminus{}",
    **{raised: rf"\textsuperscript{{{plain}}}" for raised, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True)},
}

_HEAD = r"""% Compile with pdflatex; needs the packages standalone and pgfplots.
\documentclass[border=4pt]{standalone}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage{pgfplots}
\pgfplotsset{compat=1.16}
"""


def to_tex(chart: Chart) -> str:
    """Return the document of a chart."""
    colours = sorted({look.colour for look in _looks(chart)})
    names = {colour: f"colour{chr(ord('A') + number)}" for number, colour in enumerate(colours)}
    lines = [_HEAD.rstrip()]
    lines += [rf"\definecolor{{{name}}}{{HTML}}{{{colour[1:].upper()}}}" for colour, name in names.items()]
    lines += [r"\begin{document}", r"\begin{tikzpicture}", r"\begin{axis}["]
    lines += [f"  {option}," for option in _options(chart)]
    lines.append("]")
    for line in chart.lines:
        lines += _plot(line, chart, names)
    if chart.legend_title:
        for part in chart.legend_title.split("\n"):
            lines += [r"\addlegendimage{empty legend}", rf"\addlegendentry{{{escape(part)}}}"]
    for look, label in chart.entries:
        first, *others = label.split("\n")
        lines += [rf"\addlegendimage{{{_style(look, names)}}}", rf"\addlegendentry{{{escape(first)}}}"]
        for other in others:
            lines += [r"\addlegendimage{empty legend}", rf"\addlegendentry{{{escape(other)}}}"]
    lines += [_note(note) for note in chart.notes]
    lines += [r"\end{axis}", r"\end{tikzpicture}", r"\end{document}", ""]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Write a text so that TeX prints it as it is; letters that its fonts lack are printed as their code points.

    Examples
    --------
    >>> escape("50% of $x_1$ in Łódź")
    '50\\\\% of \\\\$x\\\\_1\\\\$ in Łódź'
    """
    return "".join(
        _ESCAPES.get(letter, letter if ord(letter) < 0x180 and letter.isprintable() else _code(letter))
        for letter in text
    )


def thinned(x: np.ndarray, y: np.ndarray, across: Axis, upright: Axis) -> tuple[np.ndarray, np.ndarray]:
    """Drop points that cannot be told from their neighbours, and those on the line between them.

    Ends and corners of the curve are kept; infinite values are put at the edge of the axes.
    """
    spans = [(axis.high - axis.low, axis.low) for axis in (across, upright)]
    steps = []
    for values, (span, low) in zip((x, y), spans, strict=True):
        share = np.clip(np.nan_to_num((values - low) / span, posinf=2.0, neginf=-1.0), -1.0, 2.0)
        steps.append(np.round(share * _GRID).astype(np.int64))
    moved = np.ones(len(x), bool)
    moved[1:] = (np.diff(steps[0]) != 0) | (np.diff(steps[1]) != 0)
    places = np.flatnonzero(moved)
    across_steps, upright_steps = steps[0][places], steps[1][places]
    if len(places) > 2:
        dx, dy = np.diff(across_steps), np.diff(upright_steps)
        turns = dx[1:] * dy[:-1] != dx[:-1] * dy[1:]
        keep = np.concatenate([[True], turns, [True]])
        across_steps, upright_steps = across_steps[keep], upright_steps[keep]
    return tuple(  # type: ignore[return-value]
        low + span * step / _GRID for step, (span, low) in zip((across_steps, upright_steps), spans, strict=True)
    )


def _options(chart: Chart) -> list[str]:
    height = chart.width if chart.square else chart.height
    options = [
        "scale only axis",
        f"width={0.75 * chart.width:.3g}in",
        f"height={0.75 * height:.3g}in",
        f"title={{{escape(chart.title)}}}",
        "grid=major",
        "grid style={draw=black!12}",
        "axis background/.style={fill=white}",
        "scaled ticks=false",
        "tick label style={font=\\footnotesize, /pgf/number format/fixed, /pgf/number format/precision=3}",
        "legend style={at={(0.5,0)}, yshift=-44pt, anchor=north, draw=none, font=\\footnotesize, cells={anchor=west}}",
        "legend image code/.code={\\draw[mark repeat=2, mark phase=2, #1] plot coordinates "
        "{(0cm,0cm) (0.5cm,0cm) (1cm,0cm)};}",
        "clip mode=individual",  # words in the margin are not cut
    ]
    if any(not note.across for note in chart.notes):
        options.append("title style={yshift=10pt}")
    for letter, axis in (("x", chart.x), ("y", chart.y)):
        options += [
            f"{letter}min={axis.low:.7g}",
            f"{letter}max={axis.high:.7g}",
            f"{letter}label={{{escape(axis.label)}}}",
        ]
        if axis.ticks:
            options.append(f"{letter}tick={{{','.join(f'{place:.7g}' for place, _ in axis.ticks)}}}")
            texts = [r" \\ ".join(map(escape, text.split("\n"))) for _, text in axis.ticks]
            options.append(f"{letter}ticklabels={{{','.join(f'{{{text}}}' for text in texts)}}}")
            if any("\n" in text for _, text in axis.ticks):
                options.append(f"{letter}ticklabel style={{align=center}}")
    return options


def _plot(line: Line, chart: Chart, names: dict[str, str]) -> list[str]:
    rows = _rows(line.x, line.y, chart)
    drawn = []
    if line.look.fill:
        area = f"draw=none, fill={names[line.look.colour]}, fill opacity={line.look.fill:.3g}, forget plot"
        back = [] if line.base is None else _rows(line.x[::-1], line.base[::-1], chart)
        close = r"} \closedcycle;" if line.base is None else r"} -- cycle;"
        drawn += [rf"\addplot[{area}] coordinates {{", *rows, *back, close]
    return [*drawn, rf"\addplot[{_style(line.look, names)}, forget plot] coordinates {{", *rows, "};"]


def _rows(across: np.ndarray, upright: np.ndarray, chart: Chart) -> list[str]:
    """Coordinates of a curve, some on each line."""
    x, y = thinned(np.asarray(across, float), np.asarray(upright, float), chart.x, chart.y)
    points = [f"({across:.6g},{other:.6g})" for across, other in zip(x.tolist(), y.tolist(), strict=True)]
    return [" ".join(points[start : start + 8]) for start in range(0, len(points), 8)]


def _style(look: Look, names: dict[str, str]) -> str:
    parts = [names[look.colour], f"line width={look.width:.3g}pt"]
    if not look.line:
        parts.append("only marks")
    elif look.dash:
        lengths = [f"{length * look.width:.3g}pt" for length in look.dash]
        pairs = zip(lengths[0::2], lengths[1::2], strict=True)
        parts.append("dash pattern=" + " ".join(f"on {on} off {off}" for on, off in pairs))
    if look.marker:
        turned = ", rotate=180" if look.marker == "v" else ""
        edge, inside = (names[look.colour], "white") if look.marker == RING else ("white", names[look.colour])
        options = f"solid, line width=0.6pt, draw={edge}, fill={inside}{turned}"
        parts.append(f"mark={_MARKS[look.marker]}, mark size=3.5pt, mark options={{{options}}}")
    else:
        parts.append("mark=none")
    if look.opaque < 1:
        parts.append(f"opacity={look.opaque:.3g}")
    return ", ".join(parts)


def _note(note: Note) -> str:
    share = min(max(note.share, 0.1), 0.9)
    place = f"rel axis cs:1,{share:.4g}" if note.across else f"rel axis cs:{share:.4g},1"
    how = "anchor=north, rotate=90" if note.across else "anchor=south"
    bold, colour = (r"\bfseries", "red!70!black") if note.warning else ("", "black!60")
    return rf"\node[{how}, font=\scriptsize{bold}, text={colour}] at ({place}) {{{escape(note.text)}}};"


def _looks(chart: Chart) -> list[Look]:
    return [line.look for line in chart.lines] + [look for look, _ in chart.entries]


def _code(letter: str) -> str:
    return f"[U+{ord(letter):04X}]"


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
