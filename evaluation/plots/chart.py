"""What a plot shows, apart from how it is drawn: one description for matplotlib and for TeX.

A chart is a list of lines on two axes, a legend below and some words in the margin. `evaluation.plots.draw` turns it
into PNG, PDF and SVG, `evaluation.plots.draw` into a stand-alone pgfplots document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics import SortedScores, reversal, sort_scores
from evaluation.trials import Key, Scores, split_scores
from spkbase.errors import DataError
from spkbase.showing import one_line

# Okabe and Ito's colours, told apart by colour-blind readers too; with the line styles also in grey
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2), (6, 2, 1.5, 2), (1.5, 1.5), (10, 3))
MARKERS = ("o", "s", "^", "D", "v")
RING = "ring"  # a hollow circle
GREY, PALE = "#606060", "#b0b0b0"


@one_line
@dataclass(frozen=True)
class Look:
    """How a line looks.

    Parameters
    ----------
    colour : str
        As ``#rrggbb``.
    dash : tuple of float
        Lengths of dashes and gaps in turn, in units of the line's width; solid if empty.
    width : float
        In points.
    marker : str
        One of o, s, ^, D, v and ring (a hollow circle) at each point, or none.
    line : bool
        Draw the line itself, not its markers alone.
    fill : float
        How opaque the area between the line and its base is, zero unless the line says otherwise.
    opaque : float
        How opaque the line is.
    """

    colour: str = GREY
    dash: tuple[float, ...] = ()
    width: float = 1.8
    marker: str = ""
    line: bool = True
    fill: float = 0.0
    opaque: float = 1.0


@one_line
@dataclass(frozen=True)
class Line:
    """Points joined in their order, in the coordinates of the axes; what is filled ends at `base`, zero by default."""

    x: np.ndarray
    y: np.ndarray
    look: Look = field(default_factory=Look)
    base: np.ndarray | None = None


@one_line
@dataclass(frozen=True)
class Axis:
    """One axis: its label, its ends, and places and texts of its ticks (or as the renderer finds fit)."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Note:
    """Words in the margin, at a share of the side: right of the axes (`across`), or above them; a warning is bold."""

    text: str
    share: float
    across: bool
    warning: bool = False


@one_line
@dataclass(frozen=True)
class Chart:
    """A plot.

    Parameters
    ----------
    title : str
        Stands above.
    x, y : Axis
        The axes.
    lines : tuple of Line
        From the back to the front.
    entries : tuple of (Look, str)
        The legend, in its order.
    legend_title : str
        Stands above the legend.
    notes : tuple of Note
        Words in the margin.
    square : bool
        As high as it is wide.
    width, height : float
        Of the whole figure in inches, without what the legend takes.
    """

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    entries: tuple[tuple[Look, str], ...] = ()
    legend_title: str = ""
    notes: tuple[Note, ...] = ()
    square: bool = False
    width: float = 7.0
    height: float = 4.8


@one_line
@dataclass(frozen=True)
class System:
    """A system to plot.

    Parameters
    ----------
    name : str
        What the legend calls it.
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Its scores.
    """

    name: str
    target: ArrayLike
    nontarget: ArrayLike


Systems = Sequence[System | tuple[str, ArrayLike, ArrayLike] | tuple[str, Scores, Key]]
Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Core:
    """A system with its scores sorted once, and how it looks in each of several plots; else by its number."""

    name: str
    scores: SortedScores
    look: Look | None = None


def look_of(number: int) -> Look:
    """Colour and line style of a system, by its number."""
    return Look(COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)])


def thin(look: Look) -> Look:
    """Return the same line drawn dotted and thinner."""
    return replace(look, dash=(1.5, 1.5), width=1.3)


def as_systems(systems: Systems) -> list[System]:
    """Check that there are systems to plot; those whose scores look reversed are called so."""
    known = [system if isinstance(system, System) else _system_of(*system) for system in systems]
    if not known:
        raise DataError("expected a system and a curve to plot", remedy="give scores")
    return [replace(system, name=f"{system.name} (REVERSED scores?)") if _is_reversed(system) else system
            for system in known]  # fmt: skip


def _system_of(name: str, target: Any, nontarget: Any) -> System:
    return System(name, *(split_scores(target, nontarget) if isinstance(target, Scores) else (target, nontarget)))


def _is_reversed(system: System) -> bool:
    turned = reversal(np.asarray(system.target, np.float64), np.asarray(system.nontarget, np.float64))
    return turned is not None and turned.clear


def as_cores(systems: Systems) -> list[Core]:
    """Sort the scores of each system."""
    return [Core(system.name, sort_scores(system.target, system.nontarget)) for system in as_systems(systems)]


def names_of(systems: Sequence[str], most: int = 30) -> str:
    """Name systems in few words, for a place that holds no more."""
    words = ", ".join(systems)
    return words if len(words) <= most else f"{len(systems)} systems" if len(systems) > 1 else f"{words[: most - 1]}…"


def keep_together(numbers: str) -> str:
    """Keep the numbers of a legend on one line of it."""
    return numbers.replace(" ", "\N{NO-BREAK SPACE}")
