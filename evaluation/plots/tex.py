"""Axes as stand-alone pgfplots documents: ``pdflatex`` typesets them without any file of this project.

Long curves are thinned to what can be seen on the page, since TeX has little memory.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from spkbase.showing import escape_tex as escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 3000  # distinguishable positions along an axis
_MARKS = {"o": "*", "s": "square*", "^": "triangle*", "D": "diamond*", "v": "triangle*"}
_HEAD = r"""% Compile with pdflatex; needs the packages standalone and pgfplots.
\documentclass[border=4pt]{standalone}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage{pgfplots}
\pgfplotsset{compat=1.16}
\begin{document}
\begin{tikzpicture}
\begin{axis}[
  scale only axis, grid=major, grid style={draw=black!12}, axis background/.style={fill=white}, scaled ticks=false,
  tick label style={font=\footnotesize, /pgf/number format/fixed, /pgf/number format/precision=3},
  legend style={at={(0.5,0)}, yshift=-44pt, anchor=north, draw=none, font=\footnotesize, cells={anchor=west}},
  legend image code/.code={\draw[mark repeat=2, mark phase=2, #1] plot coordinates {(0cm,0cm) (0.5cm,0cm) (1cm,0cm)};},
  clip mode=individual,"""


def to_tex(axes: Axes, width: float, height: float, corner: str = "") -> str:
    """Return the document of axes: their lines, areas, words, ticks and legend, and the legend of their figure.

    Parameters
    ----------
    axes : Axes of matplotlib
    width, height : float
        Size of the plot in inches; the axes take three quarters.
    corner : str
        Corner of the axes for the legend, as pgfplots names it; below the axes by default.
    """
    legend = _legend_of(axes)
    texts: list[Any] = [text for text in axes.texts if text.get_text()]
    if axes.get_box_aspect() == 1:
        height = width
    lines = [_HEAD, f"  width={0.75 * width:.3g}in, height={0.75 * height:.3g}in,"]
    lines.append(f"  title={{{escape(axes.get_title())}}},")
    if corner:
        lines.append(f"  legend pos={corner}, legend style={{yshift=0pt}},")
    if any(not text.get_rotation() for text in texts):
        lines.append("  title style={yshift=10pt},")
    lines += [*_axis("x", axes.xaxis), *_axis("y", axes.yaxis), "]"]
    for area in axes.collections:
        style = f"draw=none, {_colour('fill', area.get_facecolor()[0])}, fill opacity={area.get_alpha() or 1:.3g}"
        for path in area.get_paths():
            points = _points(axes, path.vertices)
            lines += [rf"\addplot[{style}, forget plot] coordinates {{", *points, "} -- cycle;"]
    for line in axes.lines:
        points = _points(axes, np.column_stack(line.get_data()))
        lines += [rf"\addplot[{_style(line)}, forget plot] coordinates {{", *points, "};"]
    if legend is not None:
        lines += _entries(legend)
    lines += map(_node, texts)
    return "\n".join([*lines, r"\end{axis}", r"\end{tikzpicture}", r"\end{document}", ""])


def _legend_of(axes: Axes) -> Any:
    """Return the legend of the figure, else of the axes, or None."""
    figure: Any = axes.get_figure()
    if figure is not None and figure.legends:
        return figure.legends[0]
    return axes.get_legend()


def thinned(points: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Drop points indistinguishable from their neighbours, and those on the line between them.

    Parameters
    ----------
    points : ndarray of float64 of shape (N, 2)
    ends : ndarray of float64 of shape (2, 2)
        Ends of both axes.
    """
    low = ends[:, 0]
    span = ends[:, 1] - ends[:, 0]
    shares = np.clip(np.nan_to_num((points - low) / span, posinf=2.0, neginf=-1.0), -1.0, 2.0)
    steps = np.round(shares * _GRID).astype(np.int64)
    steps = steps[np.concatenate([[True], (np.diff(steps, axis=0) != 0).any(axis=1)])]
    moves = np.diff(steps, axis=0)
    if len(steps) > 2:
        turns = moves[1:, 0] * moves[:-1, 1] != moves[:-1, 0] * moves[1:, 1]
        steps = steps[np.concatenate([[True], turns, [True]])]
    return np.asarray(low + span * steps / _GRID)


def _entries(legend: Any) -> list[str]:
    entries = []
    for part in filter(None, legend.get_title().get_text().split("\n")):
        entries.append(("empty legend", part))
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
        style = _style(handle)
        for part in text.get_text().split("\n"):
            entries.append((style, part))
            style = "empty legend"
    return [
        rf"\addlegendimage{{{style}}}\addlegendentry{{{escape(text)}}}" for style, text in entries
    ]


def _node(text: Any) -> str:
    x, y = text.xy
    anchor = "anchor=north, rotate=90" if text.get_rotation() else "anchor=south"
    bold = r"\bfseries" if text.get_fontweight() == "bold" else ""
    options = rf"{anchor}, font=\scriptsize{bold}, {_colour('text', text.get_color())}"
    node = rf"\node[{options}] at (rel axis cs:{x:.4g},{y:.4g})"
    return rf"{node} {{{escape(text.get_text())}}};"


def _axis(letter: str, axis: Any) -> list[str]:
    from matplotlib.ticker import FixedLocator

    scaled = axis.get_transform().transform  # logarithms on a logarithmic axis
    low, high = scaled(np.array(axis.get_view_interval()))
    options = f"{letter}min={min(low, high):.7g}, {letter}max={max(low, high):.7g},"
    if low > high:
        options += f" {letter} dir=reverse,"
    options += f" {letter}label={{{escape(axis.get_label_text())}}},"
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return [f"  {options}"]
    ticks = ",".join(map("{:.7g}".format, scaled(axis.get_ticklocs())))
    texts = []
    for label in axis.get_ticklabels():
        text = r" \\ ".join(map(escape, label.get_text().split("\n")))
        texts.append(f"{{{text}}}")
    labels = ",".join(texts)
    line = f"  {letter}tick={{{ticks}}}, {letter}ticklabels={{{labels}}},"
    if r"\\ " in labels:
        line += f"  {letter}ticklabel style={{align=center}},"
    return [f"  {options}", line]


def _points(axes: Axes, vertices: Any) -> list[str]:
    """Return the coordinates of a curve, eight on a line, without points indistinguishable from their neighbours.

    Ends and corners of the curve are kept; infinite values are put beyond the edge of the axes.
    """
    scaled = axes.transScale.transform  # takes logarithms on logarithmic axes
    ends = np.column_stack([axes.get_xlim(), axes.get_ylim()])
    points = thinned(scaled(np.asarray(vertices, np.float64)), scaled(ends).T)
    texts = [f"({x:.6g},{y:.6g})" for x, y in points.tolist()]
    return [" ".join(texts[start : start + 8]) for start in range(0, len(texts), 8)]


def _style(line: Any) -> str:
    parts = [_colour("draw", line.get_color()), f"line width={line.get_linewidth():.3g}pt"]
    offset_and_dashes = line._unscaled_dash_pattern
    if line.get_linestyle() in ("None", "none"):
        parts.append("only marks")
    elif offset_and_dashes[1]:
        pattern = []
        for state, length in zip(cycle(("on", "off")), offset_and_dashes[1], strict=False):
            pattern.append(f"{state} {length * line.get_linewidth():.3g}pt")
        parts.append(f"dash pattern={' '.join(pattern)}")
    if line.get_marker() in _MARKS:
        edge = _colour("draw", line.get_markeredgecolor())
        inside = _colour("fill", line.get_markerfacecolor())
        turned = ", rotate=180" if line.get_marker() == "v" else ""
        options = f"solid, line width=0.6pt, {edge}, {inside}{turned}"
        parts.append(
            f"mark={_MARKS[line.get_marker()]}, mark size=3.5pt, mark options={{{options}}}"
        )
    else:
        parts.append("mark=none")
    if line.get_alpha():
        parts.append(f"opacity={line.get_alpha():.3g}")
    return ", ".join(parts)


def _colour(key: str, colour: Any) -> str:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    parts = f"red,{round(255 * red)};green,{round(255 * green)};blue,{round(255 * blue)}"
    return f"{key}={{rgb,255:{parts}}}"
