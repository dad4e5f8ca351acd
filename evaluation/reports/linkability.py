"""Reports of linkability: all figures for each number of utterances and for larger populations, and their files.

The linkability of a speaker is the mean over sizes, in closed form without a grid; over several numbers of utterances,
it is the mean of their linkabilities. Ranks are counted from 1 in the whole gallery; the rule `shared` takes the middle
of tied ranks.

=========================  =========================================================================================
``linkability.json``       all figures
``per_speaker.csv``        ``speaker,linkability_mean,rank_L...,linkability_L...``, and ``linkability_L..._N...`` for
                           sizes that were given as numbers
``curve.csv``              ``utterances,size,linkability,low,high,chance,kind``; kind is ``measured`` or
                           ``extrapolated``
``cmc.csv``                ``utterances,place,share``: the target speaker is among the first places of the gallery
``ranks.npz``              beaters and ties of each trial (`evaluation.linkage.ranks`)
``extrapolation.csv``      ``utterances,size,method,linkability,low,high,measured_to,kind``; kind is ``extrapolated``,
                           or ``not trusted`` for methods that the back-test speaks against
``linkability.png``        and ``.svg``: measured curves, and extrapolated curves on grey ground
``extrapolation_L*.png``   and ``.svg``: the estimates of each method
``cmc.png``                and ``.svg``
``speakers.png``           and ``.svg``: distribution of linkability over speakers, with quartiles
``easy_speakers_L*.txt``   and ``hard_speakers_L*.txt``
=========================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation import linkage
from evaluation.linkage import ALL, RANKS, utterances_name
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.files import format_csv, write_json, write_text
from spkbase.showing import Tabular, one_line

REPORT = "linkability.json"

SHOWN = "normal"
"""Method whose estimate `curve.csv` and the plot of all curves show, with the span of all methods' intervals."""

Sizes = Literal["all", "log", "published"] | tuple[int, ...]

_LEAST_SPEAKERS = 4  # for quarters
_WRITTEN = re.compile(
    r"(linkability\.json|(ranks|impostors)\.npz|(per_speaker|curve|cmc|extrapolation)\.csv"
    r"|(linkability|cmc|speakers|extrapolation_L(\d+|all))\.(png|svg)|(easy|hard)_speakers_L(\d+|all)\.txt)"
)


@one_line
@dataclass(frozen=True)
class Settings:
    """What is computed from ranks.

    Attributes
    ----------
    sizes : {"all", "log", "published"} or tuple of int
        Sizes of the gallery: all, a thousand that are evenly spaced on a log scale (also for `all` above 100,000), the
        sizes of the Speaker-Linkability tool, or the given ones.
    top : tuple of int
        Numbers r for the probability to be among the first r, in addition to 1.
    ties : {"shared", "strict", "lenient"}
        How a tie counts.
    resamples, seed, level
        Number of resamples for the intervals (0 for no intervals), seed of all random numbers, and coverage.
    runs : int
        Number of random galleries, as in the published method; 0 for the closed form.
    """

    sizes: Sizes = "all"
    top: tuple[int, ...] = ()
    ties: linkage.TieRule = "shared"
    resamples: int = 1000
    seed: int = 0
    level: float = 0.95
    runs: int = 0

    @property
    def resampling(self) -> Resampling:
        """Resampling of speakers for the intervals."""
        return Resampling(self.resamples, self.seed, self.level)

    def gallery_sizes(self, ranks: linkage.Ranks) -> NDArray[np.int64]:
        """Return the sizes of the gallery for these ranks.

        Raises
        ------
        DataError
            If the published sizes are requested and the gallery is smaller than all of them.
        """
        largest = ranks.largest_size
        if isinstance(self.sizes, tuple):
            return np.array(sorted(set(self.sizes)), np.int64)
        if self.sizes == "published":
            sizes = linkage.published_sizes(largest)
            if not len(sizes):
                text = f"expected a gallery of 20 or more for the published sizes, got {largest}"
                raise DataError(text, remedy="choose sizes='all', or numbers")
            return sizes
        return linkage.log_spaced_sizes(largest) if self.sizes == "log" else linkage.all_sizes(largest)


@one_line
@dataclass(frozen=True, eq=False)
class Linkage(Tabular):
    """Ranks by number of utterances, with the figures computed from them.

    Attributes
    ----------
    ranks : dict of int to Ranks
        Ranks by number of utterances; `ALL` for all utterances.
    curves : dict of int to Curve
        Linkability by number of utterances.
    report : dict
        All figures, as in `linkability.json`.
    settings : Settings
        Settings of the figures.
    """

    ranks: Mapping[int, linkage.Ranks]
    curves: Mapping[int, linkage.Curve]
    report: dict[str, Any]
    settings: Settings

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, as ``spkver-eval linkability --json`` and ``linkability.json`` have them."""
        return self.report

    def to_columns(self) -> dict[str, Any]:
        """Return a row for each number of utterances (or ``all``) and size of the gallery."""
        numbers = ["all" if number == ALL else str(number) for number in self.curves]
        columns = [curve.to_columns() for curve in self.curves.values()]
        utterances = [name for name, table in zip(numbers, columns, strict=True) for _ in table["size"]]
        joined = {name: np.concatenate([table[name] for table in columns]) for name in columns[0]}
        return {"utterances": utterances} | joined


@one_line
@dataclass(frozen=True, eq=False)
class Beyond:
    """Linkability beyond the gallery, for one number of utterances.

    Attributes
    ----------
    populations : Extrapolation
        Estimates at the requested sizes.
    curve : Extrapolation
        Estimates from the size of the gallery to the largest requested size, for a plot.
    """

    populations: linkage.Extrapolation
    curve: linkage.Extrapolation


def measure_linkage(ranks: Mapping[int, linkage.Ranks], settings: Settings | None = None) -> Linkage:
    """Compute all figures from ranks.

    Parameters
    ----------
    ranks : mapping of int to Ranks
        Ranks by number of utterances; `ALL` for all utterances.
    settings : Settings, optional
        What to compute; without intervals where models may not be speakers.

    Returns
    -------
    Linkage
        `Linkage.to_dict` gives the report of ``spkver-eval linkability --json``.

    Raises
    ------
    DataError
        If there are no ranks, a size is beyond the gallery, or a setting is out of range.
    """
    settings = settings or Settings()
    if not ranks:
        raise DataError("expected ranks of at least one number of utterances, got none")
    if not all(table.are_speakers for table in ranks.values()):
        settings = replace(settings, resamples=0)
    curves: dict[int, linkage.Curve] = {}
    blocks: dict[str, Any] = {}
    for number, table in ranks.items():
        curves[number], blocks[utterances_name(number)] = _numbers(table, settings)
    first = next(iter(ranks.values()))
    report: dict[str, Any] = {
        "n_enroll": int(first.impostors.max()) + 1,
        "n_trial": len(first),
        "n_speakers": len(np.unique(first.speakers)),
        "tie_rule": settings.ties,
        "estimator": "monte-carlo" if settings.runs else "exact",
        "measure": "log",
        "seed": settings.seed,
    }
    if settings.resamples:
        report["intervals"] = {
            "level": settings.level,
            "resamples": settings.resamples,
            "resampled": "trial speakers; the gallery stays",
            "method": linkage.METHOD,
        }
    return Linkage(ranks, curves, report | {"utterances": blocks, "per_speaker": None}, settings)


def extrapolate_linkage(
    measured: Mapping[int, linkage.Ranks],
    settings: Settings,
    populations: Sequence[int],
    *,
    impostor_scores: Mapping[int, ArrayLike] | None = None,
    resamples: int = 200,
) -> dict[int, Beyond]:
    """Extrapolate each number of utterances to larger populations, and test the methods on the gallery itself.

    Parameters
    ----------
    measured : mapping of int to Ranks
        Ranks by number of utterances.
    settings : Settings
        Their ties, seed and level are used.
    populations : sequence of int
        Sizes, larger than the gallery.
    impostor_scores : mapping of int to array_like, optional
        Largest impostor scores by number of utterances; see `evaluation.linkage.largest_impostor_scores`.
    resamples : int
        Number of resamples of the speakers.

    Returns
    -------
    dict of int to Beyond
        Estimates by number of utterances.

    Raises
    ------
    DataError
        If a population is not larger than the gallery, or there are fewer than 20 trials.
    """
    largest = max(ranks.largest_size for ranks in measured.values())
    small = [size for size in populations if size <= largest]
    if small or not populations:
        got = f"got {small[0]:,}" if small else "got none"
        remedy = "smaller galleries are measured: give them as sizes"
        raise DataError(f"expected populations larger than the gallery of {largest:,}, {got}", remedy=remedy)
    wanted = np.array(sorted(set(populations)), np.float64)
    beyond = {}
    for number, ranks in measured.items():
        common: dict[str, Any] = {
            "impostor_scores": None if impostor_scores is None else impostor_scores.get(number),
            "ties": settings.ties,
            "resampling": Resampling(resamples, settings.seed, settings.level),
        }
        sizes = np.union1d(linkage.sizes_beyond(ranks.largest_size, float(wanted[-1])), wanted)
        curve = linkage.extrapolate(ranks, sizes, **common)
        beyond[number] = Beyond(curve.at(wanted), curve)
    return beyond


def report_extrapolation(beyond: Mapping[int, Beyond]) -> dict[str, Any]:
    """Return the entry ``extrapolation`` of `linkability.json`, by number of utterances."""
    return {
        utterances_name(number): part.populations.to_dict() | {"backtest": [asdict(test) for test in part.curve.tests]}
        for number, part in beyond.items()
    }


def mean_by_speaker(ranks: linkage.Ranks, settings: Settings) -> dict[str, float]:
    """Return each speaker's linkability, the mean over sizes and the speaker's rows."""
    over_sizes = linkage.linkability_over_sizes(ranks, ties=settings.ties)
    return linkage.by_speaker(ranks.speakers, over_sizes)


def speaker_quarters(
    measured: Linkage, *, rule: linkage.TieSets = "nearest"
) -> dict[int, linkage.DisclosureSets | None]:
    """Return the easy and the hard speakers for each number of utterances; None with fewer than four speakers."""
    quarters: dict[int, linkage.DisclosureSets | None] = {}
    for number, ranks in measured.ranks.items():
        means = mean_by_speaker(ranks, measured.settings)
        enough = len(means) >= _LEAST_SPEAKERS
        quarters[number] = linkage.disclosure_sets(means, rule=rule, seed=measured.settings.seed) if enough else None
    return quarters


def match_curves(measured: Linkage) -> dict[int, NDArray[np.float64]]:
    """Return the cumulative match characteristic for each number of utterances whose galleries have equal sizes."""
    ties = measured.settings.ties
    return {
        number: linkage.cumulative_match(ranks, ties=ties)
        for number, ranks in measured.ranks.items()
        if ranks.impostors.min() == ranks.impostors.max()
    }


def speaker_table(measured: Linkage) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return header and rows of ``per_speaker.csv``, with single sizes if these were given as numbers."""
    settings = measured.settings
    places, means, points = {}, {}, {}
    for number, ranks in measured.ranks.items():
        label = utterances_name(number)
        places[f"rank_L{label}"] = linkage.by_speaker(ranks.speakers, ranks.places(settings.ties))
        means[f"linkability_L{label}"] = mean_by_speaker(ranks, settings)
        if isinstance(settings.sizes, tuple):
            sizes = settings.gallery_sizes(ranks)
            columns = linkage.linkability_by_row(ranks, sizes, ties=settings.ties).T
            for size, column in zip(sizes.tolist(), columns, strict=True):
                points[f"linkability_L{label}_N{size}"] = linkage.by_speaker(ranks.speakers, column)
    table = places | means | points
    rows = []
    for name in sorted(set().union(*means.values())):
        known = [mean[name] for mean in means.values() if name in mean]
        rows.append((name, sum(known) / len(known), *(column.get(name) for column in table.values())))
    return ("speaker", "linkability_mean", *table), rows


def write_linkage(
    folder: str | Path,
    measured: Linkage,
    *,
    beyond: Mapping[int, Beyond] | None = None,
    plots: bool = False,
) -> dict[str, Any]:
    """Write linkability into a folder, `linkability.json` last, and return the contents of that file.

    Files of an earlier run, which the names of this module identify, are removed first.

    Parameters
    ----------
    folder : path
        Created if it is missing.
    measured : Linkage
        Figures to write.
    beyond : mapping of int to Beyond, optional
        Larger populations, for ``extrapolation.csv`` and the end of ``curve.csv``.
    plots : bool
        Write the plots too.

    Returns
    -------
    dict
        The report, with the paths of the table and the lists of speakers.

    Raises
    ------
    DataError
        If the folder cannot be written, or a file of an earlier run cannot be removed.
    """
    folder, beyond = Path(folder), beyond or {}
    if any((folder / name).is_file() for name in (REPORT, RANKS)):
        try:
            for path in folder.iterdir():
                if _WRITTEN.fullmatch(path.name) and path.is_file():
                    path.unlink()
        except OSError as error:
            text = f"of an earlier run cannot be removed: {error.strerror}"
            raise DataError(text, file=path, remedy="choose another folder") from error
    report = measured.report | {"per_speaker": str(folder / "per_speaker.csv")}
    if beyond:
        report |= {"extrapolation": report_extrapolation(beyond)}
    report["quartiles"] = {}
    for number, sets in speaker_quarters(measured).items():
        name = utterances_name(number)
        if sets is None:
            report["quartiles"][name] = {"notes": ["fewer than 4 speakers: no quarters"]}
            continue
        found = {"q1": sets.q1, "q3": sets.q3, "n_easy": len(sets.easy), "n_hard": len(sets.hard)}
        paths = {kind: str(path) for kind, path in linkage.write_lists(folder, sets, suffix=f"_L{name}").items()}
        report["quartiles"][name] = found | {"tie_rule": sets.rule} | paths | {"notes": list(sets.notes)}
    if plots:
        _write_plots(folder, measured, beyond)
    linkage.write_ranks(folder / RANKS, measured.ranks)
    write_text(folder / "per_speaker.csv", _csv(*speaker_table(measured)))
    rows: list[tuple[Any, ...]] = []
    for number, curve in measured.curves.items():
        points = _points(curve.sizes, curve.values, curve.low, curve.high, curve.chance)
        rows += [(utterances_name(number), *point, "measured") for point in points]
    every: list[tuple[Any, ...]] = []  # each method at each population
    for number, part in beyond.items():
        name, found_of = utterances_name(number), part.populations
        sizes, unknown = found_of.sizes.astype(np.int64), np.full(len(found_of.sizes), np.nan)
        methods = {method: (said.linkability, said.low, said.high) for method, said in found_of.predictions.items()}
        methods["span"] = (unknown, *found_of.span())
        for method, columns in methods.items():
            kind = "extrapolated" if found_of.is_trusted or method == "bounds" else "not trusted"
            for size, *values in _points(sizes, *columns):
                every.append((name, size, method, *values, found_of.measured_to, kind))
        shown = unknown
        if SHOWN in methods and found_of.is_trusted:
            shown = methods[SHOWN][0]
        points = _points(sizes, shown, *found_of.ends(), linkage.chance(found_of.sizes))
        rows += [(name, *point, "extrapolated") for point in points]
    write_text(folder / "curve.csv", _csv(("utterances", "size", "linkability", "low", "high", "chance", "kind"), rows))
    if beyond:
        header = ("utterances", "size", "method", "linkability", "low", "high", "measured_to", "kind")
        write_text(folder / "extrapolation.csv", _csv(header, every))
    matches = {utterances_name(number): match for number, match in match_curves(measured).items()}
    rows = [(name, rank, share) for name, match in matches.items() for rank, share in enumerate(match.tolist(), 1)]
    write_text(folder / "cmc.csv", _csv(("utterances", "place", "share"), rows))
    write_json(folder / REPORT, report)
    return report


def _numbers(ranks: linkage.Ranks, settings: Settings) -> tuple[linkage.Curve, dict[str, Any]]:
    """Compute the curve and the figures for one number of utterances."""
    sizes = settings.gallery_sizes(ranks)
    common: dict[str, Any] = {"ties": settings.ties}
    curve = linkage.linkability_curve(ranks, sizes, resampling=settings.resampling, **common)
    extra: dict[str, Any] = {}
    if settings.runs:
        drawn = linkage.monte_carlo(ranks, sizes, runs=settings.runs, seed=settings.seed, **common)
        error = drawn.std(axis=0, ddof=1) / np.sqrt(settings.runs) if settings.runs > 1 else None
        extra = {"exact": curve.values, "runs": settings.runs, "standard_error": error, "single_runs": drawn}
        curve = replace(curve, values=drawn.mean(axis=0))
    over_sizes = linkage.linkability_over_sizes(ranks, ties=settings.ties)
    low, high = ranks.span(settings.ties)
    least, most = int(ranks.impostors.min()) + 1, int(ranks.impostors.max()) + 1
    notes = [*ranks.notes]
    if least < most:
        notes.append(f"galleries differ between trials, {least} to {most} speakers: sizes end at the smallest")
        reason = "galleries differ in size between trials"
        disclosed: dict[str, Any] = {"srd_mean_bits": None, "srd_worst_bits": None, "srd_note": reason}
    else:
        disclosure = linkage.similarity_rank_disclosure(ranks, ties=settings.ties)
        disclosed = {f"srd_{name}": value for name, value in disclosure.items()}
    block: dict[str, Any] = {
        "n_trial": len(ranks),
        "sizes": curve.sizes,
        "linkability": curve.values,
        "low": curve.low,
        "high": curve.high,
        "chance": curve.chance,
        **extra,
        # how often the target speaker is first in the whole gallery
        "rank1": float(np.where(low == 0, 1 / (high - low + 1), 0.0).mean()),
        "linkability_mean": float(over_sizes.mean()),
        "top": {str(top): linkage.linkability_at_sizes(ranks, sizes, top=top, **common) for top in settings.top},
    }
    return curve, block | disclosed | {"notes": notes}


def _write_plots(folder: Path, measured: Linkage, beyond: Mapping[int, Beyond]) -> None:
    from evaluation.plots import plot_cmc, plot_extrapolation, plot_linkability, plot_speaker_grid

    def paths(name: str) -> list[Path]:
        return [folder / f"{name}.png", folder / f"{name}.svg"]

    titles = {number: f"L = {utterances_name(number)}" for number in measured.ranks}
    curves = {titles[number]: curve for number, curve in measured.curves.items()}
    drawn = {titles[number]: part.curve for number, part in beyond.items() if SHOWN in part.curve.predictions}
    plot_linkability(curves, path=paths("linkability"), extrapolations=drawn, method=SHOWN, logarithmic=bool(drawn))
    for number, part in beyond.items():
        name = f"extrapolation_L{utterances_name(number)}"
        plot_extrapolation(measured.curves[number], part.curve, path=paths(name), name=titles[number])
    matches = {titles[number]: match for number, match in match_curves(measured).items()}
    if matches:
        plot_cmc(matches, path=paths("cmc"))
    spread = {
        ("", titles[number]): list(mean_by_speaker(ranks, measured.settings).values())
        for number, ranks in measured.ranks.items()
    }
    plot_speaker_grid(spread, path=paths("speakers"))


def _points(*columns: NDArray[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out rows with commas; undefined values stay blank."""
    return format_csv(header, ([None if cell != cell else cell for cell in row] for row in rows))
