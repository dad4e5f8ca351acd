"""A run of linkability: numbers of each number of utterances, as JSON and as the files of a folder.

======================  ============================================================================================
``linkability.json``    all numbers
``per_speaker.csv``     ``speaker,linkability_mean,rank_L...,linkability_L...``, and ``linkability_L..._N...`` for
                        sizes that were asked for by number
``curve.csv``           ``utterances,size,linkability,low,high,chance,kind``; kind is ``measured`` or ``extrapolated``
``cmc.csv``             ``utterances,place,share``: the owner among the first places of the whole gallery
``ranks.npz``           beaters and ties of each trial (`evaluation.linkage.table`)
======================  ============================================================================================

The mean of a speaker over sizes is closed-form and knows no grid; over several numbers of utterances it is the plain
mean of theirs. Ranks are places from 1 in the whole gallery, in the middle of ties under the rule `shared`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage import (
    METHOD,
    Curve,
    Measure,
    Ranks,
    TieRule,
    by_speaker,
    cumulative_match,
    linkability,
    linkability_by_row,
    linkability_curve,
    linkability_over_sizes,
    log_spaced_sizes,
    monte_carlo,
    published_sizes,
    similarity_rank_disclosure,
    write_ranks,
)
from spkbase.errors import DataError
from spkbase.files import format_csv, write_json, write_text

REPORT, RANKS = "linkability.json", "ranks.npz"
ALL = 0
"""Stands for "all utterances" where numbers of utterances are keys."""

_ALL_SIZES_UP_TO = 100_000

Sizes = Literal["all", "log", "published"] | tuple[int, ...]


@dataclass(frozen=True)
class Settings:
    """What is computed of ranks.

    Parameters
    ----------
    sizes : {"all", "log", "published"} or tuple of int
        All sizes, a thousand alike on a log scale (also for `all` above 100,000), those of the Speaker-Linkability
        tool, or these.
    top : tuple of int
        Numbers r of "among the first r", beside 1.
    ties : {"shared", "strict", "lenient"}
        What a tie counts.
    estimator : {"exact", "monte-carlo"}
        The closed form, or the published draws.
    measure : {"log", "uniform"}
        How sizes count in the mean of a speaker.
    replicates, seed, level
        Of the intervals; 0 replicates for none. The seed is that of the draws too.
    runs : int
        Repetitions of the draws.
    """

    sizes: Sizes = "all"
    top: tuple[int, ...] = ()
    ties: TieRule = "shared"
    estimator: Literal["exact", "monte-carlo"] = "exact"
    measure: Measure = "log"
    replicates: int = 1000
    seed: int = 0
    level: float = 0.95
    runs: int = 5

    def sizes_of(self, ranks: Ranks) -> NDArray[np.int64]:
        """Sizes of the gallery for these ranks."""
        largest = ranks.largest_size
        if isinstance(self.sizes, tuple):
            return np.array(sorted(set(self.sizes)), np.int64)
        if self.sizes == "published":
            sizes = published_sizes(largest)
            if not len(sizes):
                text = f"expected a gallery of 20 or more for the published sizes, got {largest}"
                raise DataError(text, remedy="--sizes all, or numbers")
            return sizes
        if self.sizes == "log" or largest > _ALL_SIZES_UP_TO:
            return log_spaced_sizes(largest)
        return np.arange(2, largest + 1)


@dataclass(frozen=True, eq=False)
class Run:
    """Ranks by number of utterances with what was computed of them.

    Parameters
    ----------
    ranks : dict of int to Ranks
        By number of utterances; `ALL` for all of them.
    curves : dict of int to Curve
        Linkability, by number of utterances.
    report : dict
        All numbers, as `linkability.json` has them.
    settings : Settings
        How they were computed.
    """

    ranks: Mapping[int, Ranks]
    curves: Mapping[int, Curve]
    report: dict[str, Any]
    settings: Settings


def linkability_run(ranks: Mapping[int, Ranks], settings: Settings | None = None) -> Run:
    """Compute all numbers of ranks.

    Parameters
    ----------
    ranks : mapping of int to Ranks
        By number of utterances; `ALL` for all of them.
    settings : Settings, optional
        What to compute.

    Raises
    ------
    DataError
        If a size is beyond the gallery, or a setting is out of range.
    """
    settings = settings or Settings()
    if not ranks:
        raise DataError("expected ranks of at least one number of utterances, got none")
    curves: dict[int, Curve] = {}
    blocks: dict[str, Any] = {}
    for number, one in ranks.items():
        curves[number], blocks[name_of(number)] = _block(one, settings)
    first = next(iter(ranks.values()))
    report: dict[str, Any] = {
        "n_enroll": int(first.impostors.max()) + 1,
        "n_trial": len(first),
        "n_speakers": len(np.unique(first.speakers)),
        "tie_rule": settings.ties,
        "estimator": settings.estimator,
        "measure": settings.measure,
        "seed": settings.seed,
    }
    if settings.replicates:
        report["intervals"] = {
            "level": settings.level,
            "replicates": settings.replicates,
            "resampled": "trial speakers; the gallery stays",
            "method": METHOD,
        }
    return Run(ranks, curves, report | {"utterances": blocks, "per_speaker": None}, settings)


def write_run(folder: str | Path, run: Run, *, extrapolated: Sequence[tuple[Any, ...]] = ()) -> dict[str, Any]:
    """Write a run into a folder, and give its report with the path of the table of speakers.

    Parameters
    ----------
    folder : path
        Made if it is missing.
    run : Run
        What to write.
    extrapolated : sequence of tuple
        Rows for ``curve.csv`` behind the measured ones, of the kind ``extrapolated``.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    folder = Path(folder)
    report = run.report | {"per_speaker": str(folder / "per_speaker.csv")}
    write_ranks(folder / RANKS, run.ranks)
    write_text(folder / "per_speaker.csv", _table(*speaker_table(run)))
    write_text(folder / "curve.csv", _table(_CURVE, [*curve_rows(run), *extrapolated]))
    shares = [
        (name_of(number), cmc) for number, one in run.ranks.items() if (cmc := _cmc(one, run.settings)) is not None
    ]
    rows = [(name, place, share) for name, cmc in shares for place, share in enumerate(cmc.tolist(), 1)]
    write_text(folder / "cmc.csv", _table(("utterances", "place", "share"), rows))
    write_json(folder / REPORT, report)
    return report


_CURVE = ("utterances", "size", "linkability", "low", "high", "chance", "kind")


def curve_rows(run: Run) -> list[tuple[Any, ...]]:
    """Rows of ``curve.csv``, all measured."""
    return [
        (name_of(number), *point, "measured")
        for number, curve in run.curves.items()
        for point in zip(
            *(one.tolist() for one in (curve.sizes, curve.values, curve.low, curve.high, curve.chance)), strict=True
        )
    ]


def speaker_table(run: Run) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and rows of ``per_speaker.csv``; at single sizes where those were asked for by number."""
    settings = run.settings
    places, means, points = {}, {}, {}
    for number, one in run.ranks.items():
        label = name_of(number)
        places[f"rank_L{label}"] = by_speaker(one.speakers, one.places(settings.ties))
        over_sizes = linkability_over_sizes(one, measure=settings.measure, ties=settings.ties)
        means[f"linkability_L{label}"] = by_speaker(one.speakers, over_sizes)
        if isinstance(settings.sizes, tuple):
            sizes = settings.sizes_of(one)
            columns = linkability_by_row(one, sizes, ties=settings.ties).T
            for size, column in zip(sizes.tolist(), columns, strict=True):
                points[f"linkability_L{label}_N{size}"] = by_speaker(one.speakers, column)
    table = places | means | points
    rows = []
    for name in sorted(set().union(*means.values())):
        own = [one[name] for one in means.values() if name in one]
        rows.append((name, sum(own) / len(own), *(column.get(name) for column in table.values())))
    return ("speaker", "linkability_mean", *table), rows


def name_of(number: int) -> str:
    """Write a number of utterances.

    >>> name_of(3), name_of(ALL)
    ('3', 'all')
    """
    return "all" if number == ALL else str(number)


def _block(ranks: Ranks, settings: Settings) -> tuple[Curve, dict[str, Any]]:
    """Compute the numbers of one number of utterances."""
    sizes = settings.sizes_of(ranks)
    common: dict[str, Any] = {"ties": settings.ties}
    bootstrap: dict[str, Any] = {"replicates": settings.replicates, "seed": settings.seed, "level": settings.level}
    curve = linkability_curve(ranks, sizes, **common, **bootstrap)
    extra: dict[str, Any] = {}
    if settings.estimator == "monte-carlo":
        drawn = monte_carlo(ranks, sizes, runs=settings.runs, seed=settings.seed, **common)
        extra["exact"] = curve.values
        extra["runs"] = settings.runs
        extra["standard_error"] = drawn.std(axis=0, ddof=1) / np.sqrt(settings.runs) if settings.runs > 1 else None
        curve = Curve(curve.sizes, drawn.mean(axis=0), curve.low, curve.high, curve.chance)
    over_sizes = linkability_over_sizes(ranks, measure=settings.measure, ties=settings.ties)
    block: dict[str, Any] = {
        "n_trial": len(ranks),
        "sizes": curve.sizes,
        "linkability": curve.values,
        "low": curve.low,
        "high": curve.high,
        "chance": curve.chance,
        **extra,
        "rank1": _rank1(ranks, settings),
        "linkability_mean": float(over_sizes.mean()),
        "top": {str(top): linkability(ranks, sizes, top=top, **common) for top in settings.top},
    }
    return curve, block | _disclosure(ranks, settings) | {"notes": [*ranks.notes, *_uneven(ranks)]}


def _rank1(ranks: Ranks, settings: Settings) -> float:
    """How often the owner is first in the whole gallery of its trial."""
    low, high = ranks.span(settings.ties)
    return float(np.where(low == 0, 1 / (high - low + 1), 0.0).mean())


def _uneven(ranks: Ranks) -> list[str]:
    least, most = int(ranks.impostors.min()) + 1, int(ranks.impostors.max()) + 1
    if least == most:
        return []
    return [f"galleries differ between trials, {least} to {most} speakers: sizes end at the smallest"]


def _disclosure(ranks: Ranks, settings: Settings) -> dict[str, Any]:
    if ranks.impostors.min() < ranks.impostors.max():
        return {"srd_mean_bits": None, "srd_worst_bits": None, "srd_note": "galleries differ in size between trials"}
    found = similarity_rank_disclosure(ranks, ties=settings.ties)
    return {
        "srd_mean_bits": found.mean_bits,
        "srd_worst_bits": found.worst_bits,
        "srd_histogram_mean_bits": found.histogram_mean_bits,
        "srd_histogram_worst_bits": found.histogram_worst_bits,
        "srd_alpha": found.alpha,
        "srd_beta": found.beta,
    }


def _cmc(ranks: Ranks, settings: Settings) -> NDArray[np.float64] | None:
    if ranks.impostors.min() < ranks.impostors.max():
        return None
    return cumulative_match(ranks, ties=settings.ties)


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay rows out with commas; what is undefined stays blank."""
    return format_csv(header, ([None if value != value else value for value in row] for row in rows))
