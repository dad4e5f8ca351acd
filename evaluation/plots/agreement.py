"""Who is easy and who is hard to link: Jaccard similarities over conditions, with what chance gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evaluation.plots.chart import COLOURS, GREY, Axis, Chart, Line, Look, Paths
from evaluation.plots.draw import render_chart
from spkbase.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evaluation.linkage import Comparison, Comparisons

_WIDTH = 0.34
_COLOURS = {"easy": COLOURS[1], "hard": COLOURS[0]}
_TITLES = {"easy": "easy to link", "hard": "hard to link"}
_UNION = Look(GREY, width=1.2, fill=0.25, opaque=0.3)
_CHANCE = Look("#000000", width=1.2)
_PUBLISHED = Look("#000000", marker="D", line=False)
_WORDS = {"anonymiser": "Anonymiser", "attacker": "Attacker", "utterances": "Number of utterances", "run": "Run"}


def plot_jaccard(
    comparisons: Comparisons,
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    with_published: bool = False,
    title: str | None = None,
) -> Figure | None:
    """Plot the mean Jaccard similarity of each factor as bars, with its spread over pairs, chance, and published means.

    Parameters
    ----------
    comparisons : Comparisons
        See `evaluation.linkage.compare_conditions`.
    path : path or sequence of paths, optional
        The files to write, as PNG, PDF, SVG or TeX by their extensions, in the house style.
    ax : Axes of matplotlib, optional
        Where to draw, with the caller's rcParams; a new figure by default.
    with_published : bool
        Mark the published means of the same factors, which are of other speech: CommonVoice.
    title : str, optional
        Stands above the plot.

    Raises
    ------
    DataError
        If no two conditions differ in one factor alone, or an extension is unknown.
    """
    from evaluation.linkage import KINDS, published

    if not comparisons.factors:
        raise DataError("expected conditions that differ in one factor alone, got none to draw a bar of")
    marks = published() if with_published else {}
    lines: list[Line] = []
    points: list[Line] = []
    top = 0.2
    for place, (factor, agreements) in enumerate(comparisons.factors.items()):
        for kind, middle in zip(KINDS, (place - _WIDTH / 2 - 0.02, place + _WIDTH / 2 + 0.02), strict=True):
            agreement = agreements[kind]
            if np.isnan(agreement.jaccard):
                continue
            lines += _bar(middle, agreement.jaccard, _COLOURS[kind])
            if np.isfinite(agreement.spread):
                ends = np.array([agreement.jaccard - agreement.spread, agreement.jaccard + agreement.spread])
                points.append(Line(np.full(2, middle), ends.clip(0), Look("#404040", width=1.2)))
            points += _chance(middle, agreement.low, agreement.chance, agreement.high)
            top = max(top, agreement.jaccard + (0 if np.isnan(agreement.spread) else agreement.spread), agreement.high)
            if factor in marks:
                value = marks[factor][kind]["jaccard"]
                points.append(Line(np.array([middle + 0.09]), np.array([value]), replace(_PUBLISHED)))
                top = max(top, value)
    entries = [(Look(_COLOURS[kind], width=8), _TITLES[kind]) for kind in KINDS]
    entries.append(
        (_CHANCE, f"chance: mean and {100 * float(comparisons.settings['level']):g} % interval of permutations")
    )
    if set(marks) & set(comparisons.factors):
        entries.append((_PUBLISHED, "published mean (CommonVoice, B3 and B5, three attackers)"))
    names = tuple(
        (float(place), _label(factor, agreements))
        for place, (factor, agreements) in enumerate(comparisons.factors.items())
    )
    chart = Chart(
        title or "Do conditions agree on who is easy or hard to link?",
        Axis("Conditions that differ in", -0.6, len(names) - 0.4, names),
        Axis("Mean Jaccard similarity", 0.0, min(1.0, 1.12 * top)),
        (*lines, *points),
        tuple(entries),
        "Upright lines: standard deviation over pairs",
    )
    return render_chart(chart, path, ax)


def plot_intersections(
    comparisons: Sequence[Comparison],
    *,
    path: Paths | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure | None:
    """Plot how many speakers are easy (or hard) in all conditions that are compared, within those in any of them.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Of pairs, or of all levels of a factor at once; see `evaluation.linkage.compare_conditions`.
    path, ax, title
        See `plot_jaccard`.

    Raises
    ------
    DataError
        If there is nothing to draw, or an extension is unknown.
    """
    from evaluation.linkage import KINDS

    if not comparisons:
        raise DataError("expected comparisons of conditions to draw bars of, got none")
    lines: list[Line] = []
    ticks = []
    for row, comparison in enumerate(reversed(comparisons)):
        found = {kind: getattr(comparison, kind) for kind in KINDS}
        for kind, middle in zip(KINDS, (row + 0.2, row - 0.2), strict=True):
            lines += _lying_bar(middle, found[kind].union, replace(_UNION, colour=_COLOURS[kind]))
            lines += _lying_bar(middle, found[kind].intersection, Look(_COLOURS[kind], width=1.2, fill=0.85))
        numbers = ", ".join(f"{kind} {agreement.jaccard:.2f}" for kind, agreement in found.items())
        ticks.append((float(row), f"{_compared(comparison)}\nJaccard: {numbers}"))
    most = max(getattr(comparison, kind).union for comparison in comparisons for kind in KINDS)
    entries = [(Look(_COLOURS[kind], width=8), f"{_TITLES[kind]}, in all that are compared") for kind in KINDS]
    entries += [(replace(_UNION, colour=_COLOURS[kind], width=8), f"{_TITLES[kind]}, in any") for kind in KINDS]
    chart = Chart(
        title or "Who is easy or hard to link in all conditions, and in any",
        Axis("Number of speakers", 0.0, 1.05 * max(float(most), 1.0)),
        Axis("", -0.6, len(comparisons) - 0.4, tuple(ticks)),
        tuple(lines),
        tuple(entries),
        "Jaccard: in all / in any",
        height=max(3.0, 0.62 * len(comparisons) + 1.2),
    )
    return render_chart(chart, path, ax)


def _lying_bar(middle: float, length: float, look: Look) -> list[Line]:
    """A bar from the left, as the area between its upper and its lower edge."""
    x = np.array([0.0, length])
    return [Line(x, np.full(2, middle + 0.17), replace(look, line=False), np.full(2, middle - 0.17))]


def _compared(comparison: Comparison) -> str:
    levels = [f"L = {level}" if comparison.factor == "utterances" else level for level in comparison.compared]
    words = " / ".join(levels) if len(levels) < 5 else f"{len(levels)} levels"
    fixed = ", ".join(f"L = {level}" if factor == "utterances" else level for factor, level in comparison.fixed)
    return f"{words}\n{fixed}" if fixed else words


def _bar(middle: float, height: float, colour: str) -> list[Line]:
    left, right = middle - _WIDTH / 2, middle + _WIDTH / 2
    outline = np.array([[left, 0], [left, height], [right, height], [right, 0]], float)
    return [Line(outline[:, 0], outline[:, 1], Look(colour, width=1.2, fill=0.45))]


def _chance(middle: float, low: float, mean: float, high: float) -> list[Line]:
    left, right = middle - 0.45 * _WIDTH, middle + 0.45 * _WIDTH
    ends = np.array([left, right])
    return [
        Line(ends, np.full(2, mean), _CHANCE),
        Line(ends, np.full(2, high), replace(_CHANCE, line=False, fill=0.25), np.full(2, low)),
    ]


def _label(factor: str, agreements: dict) -> str:
    pairs = max(agreement.n_pairs for agreement in agreements.values())
    corrected = ", ".join(f"{kind} {agreement.corrected:.2f}" for kind, agreement in agreements.items())
    words = _WORDS.get(factor, factor)
    return f"{words}\n{pairs} pair{'s' if pairs != 1 else ''}, corrected:\n{corrected}"
