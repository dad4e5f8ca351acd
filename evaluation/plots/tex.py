"""Figures in TeX, by the PGF backend of matplotlib: a picture for ``\\input``, or a document that stands alone.

Texts are measured with matplotlib's own fonts, so no TeX is needed to write a file, and the bytes are the same with and
without it. TeX sets them in the fonts of its document.
"""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

from spkbase.showing import escape_tex as escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PACKAGES = r"""\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage{pgf}
"""
_HEAD = r"""% Compile with pdflatex; needs the packages standalone and pgf.
\documentclass[border=4pt]{standalone}
"""


def to_tex(figure: Figure, *, alone: bool) -> str:
    r"""Return a figure as a PGF picture, or as a document that holds it.

    Parameters
    ----------
    figure : Figure of matplotlib
    alone : bool
        Write a document for ``pdflatex``; else a picture for ``\input`` in one that loads the package pgf.
    """
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"pgf.rcfonts": False}):
        figure.draw(_renderer_kind()(figure, file))
    size = rf"\pgfqpoint{{{figure.get_figwidth():f}in}}{{{figure.get_figheight():f}in}}"
    lines = [
        r"\begingroup\makeatletter\begin{pgfpicture}%",
        rf"\pgfpathrectangle{{\pgfpointorigin}}{{{size}}}\pgfusepath{{use as bounding box}}%",
        file.getvalue() + r"\end{pgfpicture}\makeatother\endgroup%",
        "",
    ]
    picture = "\n".join(lines)
    if alone:
        return f"{_HEAD}{_PACKAGES}\\begin{{document}}\n{picture}\\end{{document}}\n"
    preamble = "".join(f"% {line}\n" for line in _PACKAGES.splitlines())
    return f"% A picture for \\input; the document needs\n{preamble}{picture}"


@cache
def _renderer_kind() -> Any:
    r"""Return the renderer of PGF that measures texts without TeX, and prints every letter as it is."""
    from matplotlib.backends import backend_agg, backend_pgf

    measuring: Any = backend_agg.RendererAgg
    writing: Any = backend_pgf.RendererPgf

    class Renderer(writing):  # type: ignore[misc]
        def __init__(self, figure: Figure, file: io.StringIO) -> None:
            super().__init__(figure, file)
            self.measure = measuring(1, 1, figure.dpi).get_text_width_height_descent

        def draw_text(
            self,
            gc: Any,
            x: float,
            y: float,
            s: str,
            prop: Any,
            angle: float,
            *more: Any,
            **named: Any,
        ) -> None:
            super().draw_text(gc, x, y, escape(s), prop, angle, *more, **named)

        def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
            return self.measure(s, prop, ismath)

    return Renderer
