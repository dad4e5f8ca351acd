"""What goes with a run of linkability: populations beyond its gallery, plots, and lists of easy and hard speakers.

=========================  =========================================================================================
``extrapolation.csv``      ``utterances,size,method,linkability,low,high,measured_to,kind``, all ``extrapolated``
``linkability.png``        and ``.svg``: measured curves, and on grey ground what was extrapolated
``extrapolation_L*.png``   and ``.svg``: what each method says
``cmc.png``                and ``.svg``
``speakers.png``           and ``.svg``: how linkability is spread over speakers, with quartiles
``easy_speakers_L*.txt``   and ``hard_speakers_L*.txt``
=========================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.linkage import (
    HIDDEN,
    Backtest,
    Extrapolation,
    Ranks,
    TieSets,
    by_speaker,
    chance,
    disclosure_sets,
    extrapolate,
    linkability_over_sizes,
    sizes_beyond,
    write_lists,
)
from evaluation.linkage.extrapolation import backtest
from evaluation.reports.linkability import RANKS, REPORT, Run, Settings, name_of
from spkbase.errors import DataError
from spkbase.files import format_csv, write_text

_WRITTEN = re.compile(
    r"(linkability\.json|ranks\.npz|(per_speaker|curve|cmc|extrapolation)\.csv"
    r"|(linkability|cmc|speakers|extrapolation_L(\d+|all))\.(png|svg)|(easy|hard)_speakers_L(\d+|all)\.txt)"
)
_LEFT = 50  # impostors of each trial that a back-test leaves at least
METHOD = "normal"
"""Its estimate stands in `curve.csv` and in the plot of all curves, within the span of the methods' intervals."""


@dataclass(frozen=True, eq=False)
class Beyond:
    """One number of utterances beyond the gallery.

    Parameters
    ----------
    populations : Extrapolation
        At the sizes that were asked for.
    curve : Extrapolation
        The same from the whole gallery to the largest of them, for a plot.
    backtest : list of Backtest
        What the methods would have said of the gallery itself; empty where it is too small.
    """

    populations: Extrapolation
    curve: Extrapolation
    backtest: list[Backtest]


def extrapolate_run(
    measured: Mapping[int, Ranks],
    settings: Settings,
    populations: Sequence[int],
    *,
    impostor_scores: Mapping[int, ArrayLike] | None = None,
    methods: Sequence[str] | None = None,
    replicates: int = 200,
) -> dict[int, Beyond]:
    """Extrapolate each number of utterances to larger populations, and test the methods on the gallery itself.

    Parameters
    ----------
    measured : mapping of int to Ranks
        By number of utterances.
    settings : Settings
        Of which ties, seed and level are used.
    populations : sequence of int
        Sizes, larger than the gallery.
    impostor_scores : mapping of int to array_like, optional
        By number of utterances; see `evaluation.linkage.largest_impostor_scores`.
    methods : sequence of str, optional
        See `evaluation.linkage.extrapolate`.
    replicates : int
        Resamples of the speakers.

    Raises
    ------
    DataError
        If a population is not larger than the gallery, or there are fewer than 20 trials.
    """
    largest = max(ranks.largest_size for ranks in measured.values())
    small = [one for one in populations if one <= largest]
    if small or not populations:
        got = f"got {small[0]:,}" if small else "got none"
        remedy = "smaller galleries are measured: --sizes"
        raise DataError(f"expected populations larger than the gallery of {largest:,}, {got}", remedy=remedy)
    wanted = np.array(sorted(set(populations)), np.float64)
    found = {}
    for number, ranks in measured.items():
        scores = None if impostor_scores is None else impostor_scores.get(number)
        common: dict[str, Any] = {
            "impostor_scores": scores,
            "methods": methods,
            "ties": settings.ties,
            "replicates": replicates,
            "seed": settings.seed,
            "level": settings.level,
        }
        sizes = np.union1d(sizes_beyond(ranks.largest_size, float(wanted[-1])), wanted)
        curve = extrapolate(ranks, sizes, **common)
        hidden = min(HIDDEN, (ranks.largest_size - 1) // _LEFT)
        tested = backtest(ranks, hidden=hidden, **common) if hidden >= 2 else []
        found[number] = Beyond(curve.at(wanted), curve, tested)
    return found


def report_of(beyond: Mapping[int, Beyond]) -> dict[str, Any]:
    """What stands under ``extrapolation`` in `linkability.json`, by number of utterances."""
    return {
        name_of(number): one.populations.to_dict() | {"backtest": [test.to_dict() for test in one.backtest]}
        for number, one in beyond.items()
    }


def extrapolated_rows(beyond: Mapping[int, Beyond]) -> list[tuple[Any, ...]]:
    """Rows of ``curve.csv`` that are extrapolated: the estimate by `METHOD`, and the span of the methods' intervals."""
    rows: list[tuple[Any, ...]] = []
    for number, one in beyond.items():
        found = one.populations
        low, high = found.span()
        estimate = found.predictions[METHOD].linkability if METHOD in found.predictions else np.full(len(low), np.nan)
        columns = (found.sizes.astype(np.int64), estimate, low, high, chance(found.sizes))
        points = zip(*(column.tolist() for column in columns), strict=True)
        rows += [(name_of(number), *point, "extrapolated") for point in points]
    return rows


def write_extrapolation(folder: str | Path, beyond: Mapping[int, Beyond]) -> None:
    """Write ``extrapolation.csv``: every method at every population, and the span."""
    rows: list[tuple[Any, ...]] = []
    for number, one in beyond.items():
        found = one.populations
        ends = found.span()
        parts = {name: (part.linkability, part.low, part.high) for name, part in found.predictions.items()}
        parts["span"] = (np.full(len(found.sizes), np.nan), *ends)
        for name, part in parts.items():
            sizes = found.sizes.astype(np.int64).tolist()
            for size, *values in zip(sizes, *(column.tolist() for column in part), strict=True):
                cells = [None if value != value else value for value in values]
                rows.append((name_of(number), size, name, *cells, found.measured_to, "extrapolated"))
    columns = ("utterances", "size", "method", "linkability", "low", "high", "measured_to", "kind")
    write_text(Path(folder) / "extrapolation.csv", format_csv(columns, rows))


def write_plots(
    folder: str | Path,
    run: Run,
    beyond: Mapping[int, Beyond] | None = None,
    *,
    formats: Sequence[str] = (".png", ".svg"),
) -> None:
    """Write the plots of a run; see the module."""
    from evaluation.linkage import cumulative_match
    from evaluation.plots import plot_cmc, plot_extrapolation, plot_linkability, plot_speakers

    def paths(name: str) -> list[Path]:
        return [Path(folder) / f"{name}{form}" for form in formats]

    beyond = beyond or {}
    titles = {number: f"L = {name_of(number)}" for number in run.ranks}
    curves = {titles[number]: curve for number, curve in run.curves.items()}
    drawn = {titles[number]: one.curve for number, one in beyond.items() if METHOD in one.curve.predictions}
    plot_linkability(curves, path=paths("linkability"), extrapolations=drawn, method=METHOD, logarithmic=bool(drawn))
    for number, one in beyond.items():
        name = titles[number]
        plot_extrapolation(run.curves[number], one.curve, path=paths(f"extrapolation_L{name_of(number)}"), name=name)
    ties, measure = run.settings.ties, run.settings.measure
    matches = {
        titles[number]: cumulative_match(ranks, ties=ties)
        for number, ranks in run.ranks.items()
        if ranks.impostors.min() == ranks.impostors.max()
    }
    if matches:
        plot_cmc(matches, path=paths("cmc"))
    spread = {
        titles[number]: list(
            by_speaker(ranks.speakers, linkability_over_sizes(ranks, measure=measure, ties=ties)).values()
        )
        for number, ranks in run.ranks.items()
    }
    plot_speakers(spread, path=paths("speakers"))


def clear_run(folder: str | Path) -> None:
    """Remove what an earlier run wrote into a folder, so that no file of it stands beside those of the next one.

    Only where there is such a run, and only files by the names of this module and `evaluation.reports.linkability`.
    """
    folder = Path(folder)
    if not any((folder / name).is_file() for name in (REPORT, RANKS)):
        return
    # the report, which tells of a whole run, goes first; the ranks go last, so that half a run is still seen as one
    found = [one for one in folder.iterdir() if _WRITTEN.fullmatch(one.name) and one.is_file()]
    try:
        for one in sorted(found, key=lambda one: (one.name != REPORT, one.name == RANKS)):
            one.unlink()
    except OSError as error:
        remedy = "choose another folder"
        raise DataError(f"of an earlier run cannot be removed: {error.strerror}", file=one, remedy=remedy) from error


def write_speaker_lists(folder: str | Path, run: Run, *, rule: TieSets = "nearest") -> dict[str, Any]:
    """Write the lists of easy and hard speakers of each number of utterances; give sizes and notes for a report."""
    found: dict[str, Any] = {}
    for number, ranks in run.ranks.items():
        values = linkability_over_sizes(ranks, measure=run.settings.measure, ties=run.settings.ties)
        speakers = by_speaker(ranks.speakers, values)
        name = name_of(number)
        if len(speakers) < 4:
            found[name] = {"notes": ["fewer than 4 speakers: no quarters"]}
            continue
        sets = disclosure_sets(speakers, rule=rule, seed=run.settings.seed)
        paths = write_lists(folder, sets, suffix=f"_L{name}")
        found[name] = {
            "q1": sets.q1,
            "q3": sets.q3,
            "n_easy": len(sets.easy),
            "n_hard": len(sets.hard),
            "tie_rule": sets.rule,
            **{kind: str(path) for kind, path in paths.items()},
            "notes": list(sets.notes),
        }
    return found
