"""Plots of privacy against utility, of speakers, of voice similarity, and of the likelihood during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage import PerSpeaker
from evaluation.plots import style
from evaluation.plots.style import GREY, PALE, Canvas, Colours, looks_of, marker, named, plain
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# minimum target EERs of the VoicePrivacy Challenge 2024
TARGETS = (0.1, 0.2, 0.3, 0.4)
# each voice similarity matrix: its title, its rows and its columns
VOICES = {
    "oo": ("original voices", "original", "original"),
    "oa": ("across", "original", "anonymised"),
    "aa": ("anonymised voices", "anonymised", "anonymised"),
}
_TOP = 0.5
_MOST_NAMED = 24  # with more speakers, names are left out
_SIDE = 2.9  # side of a matrix in inches


@one_line
@dataclass(frozen=True)
class TradeOff:
    """A system in the plane of privacy and utility.

    Attributes
    ----------
    name : str
        Its name in the legend.
    utility : Interval
        A rate as a fraction, such as a word error rate, with its interval if known.
    eer : Interval
        Equal error rate of the strongest attacker, as a fraction.
    """

    name: str
    utility: Interval
    eer: Interval


def plot_privacy_utility(
    systems: Sequence[TradeOff],
    *,
    measure: str = "Word error rate",
    lower_is_better: bool = True,
    targets: Sequence[float] = TARGETS,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot equal error rates over a measure of utility, with the bands between the challenge's minimum targets.

    Better utility lies to the right and better privacy above, so a system is inferior to all that lie above and to the
    right of it.

    Parameters
    ----------
    systems : sequence of TradeOff
        At least one.
    measure : str
        Name of the utility measure.
    lower_is_better : bool
        Whether lower values are better; the axis always runs from the worst to the best.
    targets : sequence of float
        Minimum target EERs as fractions, in ascending order; systems compete between two of them.
    color : str, tuple of float, sequence or mapping of these, optional
        A colour of matplotlib for all systems, one for each in the order of the legend, or colours by their names.
    path, ax, title, notes, width
        Where and how to draw; see `evaluation.plots.Canvas`.

    Raises
    ------
    DataError
        If there is nothing to plot, a number is not finite, or the targets do not rise from 0 to 50 %.
    """
    _check_trade_offs(systems, targets)
    intervals = [system.utility for system in systems]
    rates = 100 * np.array([[rate.value, rate.low, rate.high] for rate in intervals])
    lowest = float(np.nanmin(rates))
    highest = float(np.nanmax(rates))
    margin = 0.12 * (highest - lowest) or 1.0
    ends = [lowest - margin, highest + margin]
    if lowest >= 0:
        ends[0] = max(ends[0], 0.0)
    direction = "higher is better"
    if lower_is_better:
        direction = "lower is better"
        ends.reverse()
    looks = looks_of([system.name for system in systems], color)
    entries = []
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        for target in reversed(targets):
            axes.plot(ends, [100 * target] * 2, **plain(PALE, 0.9))
            axes.fill_between(ends, 100 * target, color=PALE, alpha=0.14, linewidth=0)
            style.write_in_margin(axes, f"{100 * target:g} %", target / _TOP, across=True)
        for number, (system, (x, *reach)) in enumerate(zip(systems, rates.tolist(), strict=True)):
            colour = looks[number]["color"]
            y = 100 * system.eer.value
            cross = plain(colour, 1.4) | {"alpha": 0.75}
            if system.eer.has_interval:
                axes.plot(
                    [x, x], 100 * np.clip([system.eer.low, system.eer.high], 0.0, _TOP), **cross
                )
            if system.utility.has_interval:
                axes.plot(reach, [y, y], **cross)
            dot = marker(style.MARKERS[number % len(style.MARKERS)], colour)
            axes.plot([x], [y], **dot)
            entries.append((dot, named(system.name, f"{measure.lower()} {x:.1f} %, EER {y:.1f} %")))
        across = (f"{measure} (%), {direction}: best on the right", *ends)
        upright = ("Equal error rate (%), best above", 0.0, 100 * _TOP)
        notes = "Grey edges: minimum target EERs of the challenge" if targets else ""
        return style.finish(
            axes, canvas, f"Privacy against {measure.lower()}", across, upright, entries, notes
        )


def plot_conversations(
    systems: Mapping[str, Mapping[int, Interval]],
    *,
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot equal error rates over the number of recordings of one unknown speaker that are scored at once.

    Parameters
    ----------
    systems : mapping of str to mapping of int to Interval
        Rates as fractions, by the number of recordings, for each name in the legend.
    color, path, ax, title, notes, width
        See `plot_privacy_utility`.

    Raises
    ------
    DataError
        If no system has rates for two numbers of recordings.
    """
    numbers = sorted(set().union(*systems.values()))
    if len(numbers) < 2:
        raise DataError("expected equal error rates for two numbers of recordings to plot")
    looks = looks_of(list(systems), color)
    entries = []
    highest = 0.0
    with style.axes_for(canvas, 7.0, 4.8) as axes:
        axes.set_xscale("log")
        for position, (name, rates) in enumerate(systems.items()):
            shape = style.MARKERS[position % len(style.MARKERS)]
            look = looks[position] | {"marker": shape, "markevery": None}
            x = sorted(rates)
            y = np.array([[rates[n].value, rates[n].low, rates[n].high] for n in x]).T * 100
            axes.fill_between(x, y[2], y[1], color=look["color"], alpha=0.14, linewidth=0)
            axes.plot(x, y[0], **look)
            ends = f"{y[0][0]:.1f} % with {x[0]}, {y[0][-1]:.1f} % with {x[-1]}"
            entries.append((look, named(name, ends)))
            highest = max(highest, float(np.nanmax(y)))
        ticks = [(number, str(number)) for number in numbers]
        across = ("Recordings of one speaker at once", numbers[0], numbers[-1], ticks)
        upright = ("Equal error rate (%)", 0.0, min(max(1.1 * highest, 1.0), 100.0))
        notes = "Bands: intervals over speakers"
        return style.finish(axes, canvas, "Conversations", across, upright, entries, notes)


def _check_trade_offs(systems: Sequence[TradeOff], targets: Sequence[float]) -> None:
    if not systems:
        raise DataError("expected a system to plot", remedy="give utility and an equal error rate")
    for system in systems:
        if not (np.isfinite(system.utility.value) and 0 <= system.eer.value <= 1):
            expected = f"{system.name}: expected a finite utility and an EER from 0 to 1"
            raise DataError(f"{expected}, got {system.utility.value:g} and {system.eer.value:g}")
    if not all(0 < target < _TOP for target in targets) or sorted(set(targets)) != [*targets]:
        raise DataError(f"expected target EERs that rise between 0 and {_TOP:g}, got {[*targets]}")


def plot_zoo(speakers: PerSpeaker, *, named_most: int = 8, **canvas: Unpack[Canvas]) -> Figure:
    """Plot Doddington's zoo: the mean score of each speaker's own trials, and that of other people's trials.

    The mean over own trials is on the vertical axis, that of others against the speaker on the horizontal one. Goats
    lie below the lower grey line, lambs right of the vertical one; the speakers with the highest EER are named.

    Parameters
    ----------
    speakers : PerSpeaker
        See `evaluation.linkage.per_speaker`.
    named_most : int
        Number of speakers who are named.
    path, ax, title, notes, width
        Where and how to draw; see `evaluation.plots.Canvas`.

    Raises
    ------
    DataError
        If no speaker has both kinds of trials, or an extension is unknown.
    """
    shown = np.flatnonzero(np.isfinite(speakers.target_mean + speakers.nontarget_mean))
    if not len(shown):
        remedy = "give trials between speakers: each model needs nontarget trials"
        raise DataError("expected speakers with target and nontarget trials", remedy=remedy)
    x = speakers.nontarget_mean[shown]
    y = speakers.target_mean[shown]
    kinds = speakers.kind[shown]
    looks = {}
    for number, kind in enumerate(("sheep", "goat", "lamb", "wolf")):
        looks[kind] = marker(style.MARKERS[number], style.COLOURS[number]) | {"alpha": 0.8}
    looks["several"] = marker("v", style.COLOURS[6])
    groups = np.array(["several" if "," in kind else kind for kind in kinds.tolist()])
    entries = []
    ends = []
    for values in (x, y):
        margin = 0.08 * float(np.ptp(values)) or 1.0
        ends.append((float(values.min()) - margin, float(values.max()) + margin))
    with style.axes_for(canvas, 6.6, 6.0) as axes:
        axes.plot(ends[0], [np.quantile(y, 0.25)] * 2, **plain(PALE, 1.0))
        axes.plot([np.quantile(x, 0.75)] * 2, ends[1], **plain(PALE, 1.0))
        for group, look in looks.items():
            rows = groups == group
            if rows.any():
                axes.plot(x[rows], y[rows], **look)
                entries.append((look, named(group, f"{rows.sum()}")))
        hardest = np.argsort(-speakers.eer[shown], kind="stable")[:named_most]
        for row in hardest.tolist():
            place = (float(x[row]), float(y[row]))
            axes.annotate(
                str(speakers.speaker[shown[row]]),
                place,
                (5, 4),
                textcoords="offset points",
                fontsize=8.5,
                color=GREY,
            )
        across = ("Mean score of others against the speaker", *ends[0])
        upright = ("Mean score of the speaker's own trials", *ends[1])
        notes = "Grey: quartiles, so a quarter are goats, lambs and wolves even where all speakers are alike"
        return style.finish(axes, canvas, "Speakers", across, upright, entries, notes)


def plot_similarity(
    matrices: Mapping[str, ArrayLike],
    speakers: Sequence[str],
    *,
    subtitles: Mapping[str, str] | None = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot voice similarity matrices side by side: dark cells are unlike voices, light ones alike.

    Parameters
    ----------
    matrices : mapping of str to array_like of float of shape (P, P)
        Similarities from 0 to 1, by ``oo``, ``oa`` and ``aa`` (see `VOICES`) or other names; NaN, where there is no
        trial, stays blank.
    speakers : sequence of str, length P
        Names of rows and columns; with more than 24 they are left out. Speakers who have trials with the same others,
        such as those of one sex, are drawn side by side.
    subtitles : mapping of str to str, optional
        A second line above a matrix, such as its distinctiveness, by the same names.
    path, title
        See `plot_privacy_utility`; `ax` and TeX files are not supported.

    Raises
    ------
    DataError
        If there is no matrix, a shape or a value is invalid, or an extension is unknown.
    """
    cells = _checked_matrices(matrices, len(speakers))
    blank = np.isnan(next(iter(cells.values())))
    np.fill_diagonal(blank, False)
    # speakers with trials against the same others are grouped
    seen: dict[tuple[bool, ...], int] = {}
    groups = [seen.setdefault(tuple(row), len(seen)) for row in blank.tolist()]
    order = sorted(range(len(groups)), key=groups.__getitem__)
    names = []
    for row in order:
        name = speakers[row]
        if len(name) > 12:
            name = f"{name[:11]}…"
        names.append(name)
    middles = np.arange(len(names)) + 0.5
    wide = _SIDE
    if len(speakers) <= _MOST_NAMED:
        wide += 0.6
    with style.figure_for(canvas, wide * len(cells) + 0.9, wide + 0.8, style.PICTURES) as figure:
        panels = figure.subplots(1, len(cells), squeeze=False)[0]
        for axes, (name, matrix) in zip(panels, cells.items(), strict=True):
            picture = axes.pcolormesh(
                matrix[np.ix_(order, order)], cmap="cividis", vmin=0.0, vmax=1.0, linewidth=0
            )
            heading, rows, columns = VOICES.get(name, (name, "speaker", "speaker"))
            axes.set_title(
                "\n".join([heading, *filter(None, [(subtitles or {}).get(name)])]), fontsize=11
            )
            axes.set_box_aspect(1)
            axes.invert_yaxis()
            axes.set_ylabel(rows, fontsize=9.5)
            axes.set_xlabel(columns, fontsize=9.5)
            axes.set(xticks=[], yticks=[])
            if len(names) <= _MOST_NAMED:
                axes.set_xticks(middles, names, rotation=90, fontsize=7.5)
                axes.set_yticks(middles, names, fontsize=7.5)
                axes.tick_params(length=0)
        bar = figure.colorbar(picture, ax=list(panels), shrink=0.8, pad=0.02)
        bar.set_label("similarity: 0 unlike, 0.5 no evidence, 1 alike", fontsize=9.5, color=GREY)
        figure.suptitle(canvas.get("title") or "", fontsize=12)
    return figure


def _checked_matrices(
    matrices: Mapping[str, ArrayLike], n_speakers: int
) -> dict[str, NDArray[np.float64]]:
    """Return similarity matrices as arrays; raise an error for a wrong shape or wrong values."""
    if not matrices:
        raise DataError("expected a voice similarity matrix to plot, got none")
    cells = {name: np.asarray(matrix, np.float64) for name, matrix in matrices.items()}
    for name, matrix in cells.items():
        if matrix.shape != (n_speakers, n_speakers):
            expected = f"expected a cell for each pair of {n_speakers} speakers"
            raise DataError(f"matrix {name!r}: {expected}, got shape {matrix.shape}")
        known = matrix[~np.isnan(matrix)]
        if not len(known) or known.min() < 0 or known.max() > 1:
            raise DataError(f"matrix {name!r}: expected similarities from 0 to 1")
    return cells


def plot_likelihood(
    series: Mapping[str, ArrayLike],
    *,
    doublings: Sequence[tuple[int, int]] = (),
    color: Colours = None,
    **canvas: Unpack[Canvas],
) -> Figure:
    """Plot the mean log-likelihood of the training frames over the iterations of EM.

    Parameters
    ----------
    series : mapping of str to array_like of float of shape (T,)
        Log-likelihood per frame (nats) after each iteration, by the name of the model.
    doublings : sequence of (int, int)
        For each stage of training by splitting: the index of its first iteration, and its number of components.
    color, path, ax, title, notes, width
        See `plot_privacy_utility`; TeX files are not supported.

    Raises
    ------
    DataError
        If there is nothing to plot, or an extension is unknown.
    """
    from matplotlib.ticker import MaxNLocator

    curves = {name: np.asarray(values, float) for name, values in series.items()}
    if not curves or not all(values.ndim == 1 and len(values) for values in curves.values()):
        raise DataError("expected a log-likelihood for each iteration of each model, got none")
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "color": GREY}
    looks = looks_of(list(curves), color)
    entries = []
    with style.axes_for(canvas, 7.5, 4.6, style.PICTURES) as axes:
        for line, (name, values) in zip(looks, curves.items(), strict=True):
            look: style.Style = {"marker": "."} | line | {"markevery": None}
            axes.plot(np.arange(1, len(values) + 1), values, **look)
            entries.append((look, name))
        for first, n_components in doublings:  # the stages of training, marked above the plot
            axes.axvline(first + 1, color=PALE, linewidth=0.9, linestyle=(0, (1, 2)))
            above = ("data", "axes fraction")
            axes.annotate(
                str(n_components), (first + 1, 1), (0, 3), xycoords=above, ha="center", **words
            )
        if doublings:
            axes.annotate(
                "Gaussians:", (0, 1), (-6, 3), xycoords="axes fraction", ha="right", **words
            )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.08)
        x = ("Iteration of EM", *axes.get_xlim())
        y = ("Mean log-likelihood per frame (nats)", *axes.get_ylim())
        title = "Training of the background model"
        if len(curves) == 1:
            entries = []
        return style.finish(axes, canvas, title, x, y, entries)
