"""Charts as stand-alone pgfplots documents: ``pdflatex`` alone makes a page of them, nothing of this project is needed.

Long curves are thinned to what can be seen on the page, since TeX has little memory.
"""

from __future__ import annotations

import numpy as np

from evaluation.plots.chart import RING, Axis, Chart, Line, Look, Note

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
