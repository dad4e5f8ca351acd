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
                           or ``not trusted`` for methods that fail the back-test
``linkability.png``        and ``.svg``: measured curves, and extrapolated curves on grey ground
``extrapolation_L*.png``   and ``.svg``: the estimates of each method
``cmc.png``                and ``.svg``
``speakers.png``           and ``.svg``: distribution of linkability over speakers, with quartiles
``easy_speakers_L*.txt``   and ``hard_speakers_L*.txt``
=========================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation import linkage
from evaluation.linkage import RANKS, utterances_name
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.files import format_csv, write_json, write_text
from spkbase.showing import Tabular, one_line

REPORT = "linkability.json"

SHOWN = "normal"
"""Method whose estimate `curve.csv` and the plot of all curves show, with the span of all methods' intervals."""

Sizes = Literal["all", "log", "published"] | tuple[int, ...]
Cells = tuple[Any, ...]
"""A row of a table."""

_CURVE = ("utterances", "size", "linkability", "low", "high", "chance", "kind")
_METHODS = ("utterances", "size", "method", "linkability", "low", "high", "measured_to", "kind")

_LEAST_SPEAKERS = 4  # least number of speakers for quarters
_WRITTEN = re.compile(
    r"(linkability\.json|(ranks|impostors)\.npz|(per_speaker|curve|cmc|extrapolation)\.csv"
    r"|(linkability|cmc|speakers|extrapolation_L(\d+|all))\.(png|svg)|(easy|hard)_speakers_L(\d+|all)\.txt)"
)


@one_line
@dataclass(frozen=True)
class Settings:
    """What to compute from ranks.

    Attributes
    ----------
    sizes : {"all", "log", "published"} or tuple of int
        Sizes of the gallery: all, a thousand evenly spaced on a log scale (also for `all` if there are more than
        100,000), the sizes of the Speaker-Linkability tool, or the given ones.
    top : tuple of int
        Numbers r for the probability to be among the first r, in addition to 1.
    ties : {"shared", "strict", "lenient"}
        Rule for ties.
    resamples, seed, level
        Number of resamples for the intervals (0 for no intervals), seed of all random numbers, and confidence level.
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
        if self.sizes == "log":
            return linkage.log_spaced_sizes(largest)
        return linkage.all_sizes(largest)


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
        tables = {
            utterances_name(number): curve.to_columns() for number, curve in self.curves.items()
        }
        columns: dict[str, Any] = {"utterances": []}
        for name, table in tables.items():
            columns["utterances"] += [name] * len(table["size"])
        for column in table:
            columns[column] = np.concatenate([table[column] for table in tables.values()])
        return columns


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


def measure_linkage(
    ranks: Mapping[int, linkage.Ranks],
    settings: Settings | None = None,
    *,
    matching: Mapping[int, linkage.Ranks] | None = None,
) -> Linkage:
    """Compute all figures from ranks.

    Parameters
    ----------
    ranks : mapping of int to Ranks
        Ranks by number of utterances; `ALL` for all utterances.
    settings : Settings, optional
        What to compute; there are no intervals if models may not be speakers.
    matching : mapping of int to Ranks, optional
        Ranks with side information by number of utterances; see `evaluation.linkage.RankTables`.

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
        raise DataError("expected ranks for at least one number of utterances, got none")
    if not all(table.are_speakers for table in ranks.values()):
        settings = replace(settings, resamples=0)
    curves: dict[int, linkage.Curve] = {}
    blocks: dict[str, Any] = {}
    for number, table in ranks.items():
        curves[number], blocks[utterances_name(number)] = _numbers(table, settings)
    for number, table in (matching or {}).items():
        matched = linkage.matching_report(table, settings.resampling)
        blocks[utterances_name(number)]["side"] = matched
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
        Settings whose ties, seed and level are used.
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
    small = [f"{size:,}" for size in populations if size <= largest]
    if small or not populations:
        got = f"got {small[0] if small else 'none'}"
        remedy = "smaller galleries are measured: give them as sizes"
        raise DataError(
            f"expected populations larger than the gallery of {largest:,}, {got}", remedy=remedy
        )
    wanted = np.array(sorted(set(populations)), np.float64)
    resampling = Resampling(resamples, settings.seed, settings.level)
    beyond = {}
    for number, ranks in measured.items():
        scores = (impostor_scores or {}).get(number)
        sizes = np.union1d(linkage.sizes_beyond(ranks.largest_size, float(wanted[-1])), wanted)
        curve = linkage.extrapolate(
            ranks, sizes, impostor_scores=scores, ties=settings.ties, resampling=resampling
        )
        beyond[number] = Beyond(curve.at(wanted), curve)
    return beyond


def report_extrapolation(beyond: Mapping[int, Beyond]) -> dict[str, Any]:
    """Return the entry ``extrapolation`` of `linkability.json`, by number of utterances."""
    report = {}
    for number, part in beyond.items():
        backtest = list(map(asdict, part.curve.tests))
        report[utterances_name(number)] = part.populations.to_dict() | {"backtest": backtest}
    return report


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
        quarters[number] = None
        if len(means) >= _LEAST_SPEAKERS:
            quarters[number] = linkage.disclosure_sets(
                means, rule=rule, seed=measured.settings.seed
            )
    return quarters


def match_curves(measured: Linkage) -> dict[int, NDArray[np.float64]]:
    """Return the cumulative match characteristic for each number of utterances whose galleries have equal sizes."""
    curves = {}
    for number, ranks in measured.ranks.items():
        if ranks.impostors.min() == ranks.impostors.max():
            curves[number] = linkage.cumulative_match(ranks, ties=measured.settings.ties)
    return curves


def speaker_table(measured: Linkage) -> tuple[tuple[str, ...], list[Cells]]:
    """Return header and rows of ``per_speaker.csv``, with single sizes if these were given as numbers."""
    settings = measured.settings
    mean_ranks = {}
    means = {}
    points = {}
    for number, ranks in measured.ranks.items():
        label = utterances_name(number)
        mean_ranks[f"rank_L{label}"] = linkage.by_speaker(
            ranks.speakers, ranks.places(settings.ties)
        )
        means[f"linkability_L{label}"] = mean_by_speaker(ranks, settings)
        if isinstance(settings.sizes, tuple):
            sizes = settings.gallery_sizes(ranks)
            columns = linkage.linkability_by_row(ranks, sizes, ties=settings.ties).T
            for size, column in zip(sizes.tolist(), columns, strict=True):
                points[f"linkability_L{label}_N{size}"] = linkage.by_speaker(ranks.speakers, column)
    table = mean_ranks | means | points
    rows = []
    for name in sorted(set().union(*means.values())):
        known = [mean[name] for mean in means.values() if name in mean]
        cells = [column.get(name) for column in table.values()]
        rows.append((name, sum(known) / len(known), *cells))
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
        Folder of the files, created if it is missing.
    measured : Linkage
        Figures to write.
    beyond : mapping of int to Beyond, optional
        Estimates for larger populations, for ``extrapolation.csv`` and the end of ``curve.csv``.
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
    folder = Path(folder)
    beyond = beyond or {}
    _remove_earlier(folder)
    report = measured.report | {"per_speaker": str(folder / "per_speaker.csv")}
    if beyond:
        report["extrapolation"] = report_extrapolation(beyond)
    report["quartiles"] = _write_quarters(folder, measured)
    if plots:
        _write_plots(folder, measured, beyond)
    linkage.write_ranks(folder / RANKS, measured.ranks)
    _write_table(folder / "per_speaker.csv", *speaker_table(measured))
    _write_table(
        folder / "curve.csv", _CURVE, [*_measured_rows(measured), *_extrapolated_rows(beyond)]
    )
    if beyond:
        _write_table(folder / "extrapolation.csv", _METHODS, _method_rows(beyond))
    _write_table(folder / "cmc.csv", ("utterances", "place", "share"), _match_rows(measured))
    write_json(folder / REPORT, report)
    return report


def _remove_earlier(folder: Path) -> None:
    """Remove the files of an earlier run."""
    if not (folder / REPORT).is_file() and not (folder / RANKS).is_file():
        return
    try:
        for path in folder.iterdir():
            if _WRITTEN.fullmatch(path.name) and path.is_file():
                path.unlink()
    except OSError as error:
        text = f"of an earlier run cannot be removed: {error.strerror}"
        raise DataError(text, file=path, remedy="choose another folder") from error


def _write_quarters(folder: Path, measured: Linkage) -> dict[str, Any]:
    """Write the lists of easy and hard speakers, and return the entry ``quartiles`` of `linkability.json`."""
    entries: dict[str, Any] = {}
    for number, sets in speaker_quarters(measured).items():
        name = utterances_name(number)
        if sets is None:
            entries[name] = {"notes": ["fewer than 4 speakers: no quarters"]}
            continue
        entry: dict[str, Any] = {
            "q1": sets.q1,
            "q3": sets.q3,
            "n_easy": len(sets.easy),
            "n_hard": len(sets.hard),
        }
        entry["tie_rule"] = sets.rule
        for kind, path in linkage.write_lists(folder, sets, suffix=f"_L{name}").items():
            entry[kind] = str(path)
        entries[name] = entry | {"notes": list(sets.notes)}
    return entries


def _measured_rows(measured: Linkage) -> list[Cells]:
    rows: list[Cells] = []
    for number, curve in measured.curves.items():
        for point in _points(curve.sizes, curve.values, curve.low, curve.high, curve.chance):
            rows.append((utterances_name(number), *point, "measured"))
    return rows


def _extrapolated_rows(beyond: Mapping[int, Beyond]) -> list[Cells]:
    """Return the estimates of the method that plots show, with the ends of all methods."""
    rows: list[Cells] = []
    for number, part in beyond.items():
        estimates = part.populations
        values = np.full(len(estimates.sizes), np.nan)
        if SHOWN in estimates.predictions and estimates.is_trusted:
            values = estimates.predictions[SHOWN].linkability
        chance = linkage.chance(estimates.sizes)
        for point in _points(estimates.sizes.astype(np.int64), values, *estimates.ends(), chance):
            rows.append((utterances_name(number), *point, "extrapolated"))
    return rows


def _method_rows(beyond: Mapping[int, Beyond]) -> list[Cells]:
    """Return the estimates of each method."""
    rows: list[Cells] = []
    for number, part in beyond.items():
        estimates = part.populations
        sizes = estimates.sizes.astype(np.int64)
        methods = {}
        for name, prediction in estimates.predictions.items():
            methods[name] = (prediction.linkability, prediction.low, prediction.high)
        methods["span"] = (np.full(len(sizes), np.nan), *estimates.span())
        for method, columns in methods.items():
            kind = "not trusted"
            if estimates.is_trusted or method == "bounds":
                kind = "extrapolated"
            for size, *values in _points(sizes, *columns):
                rows.append(
                    (utterances_name(number), size, method, *values, estimates.measured_to, kind)
                )
    return rows


def _match_rows(measured: Linkage) -> list[Cells]:
    rows: list[Cells] = []
    for number, shares in match_curves(measured).items():
        for rank, share in enumerate(shares.tolist(), 1):
            rows.append((utterances_name(number), rank, share))
    return rows


def _numbers(ranks: linkage.Ranks, settings: Settings) -> tuple[linkage.Curve, dict[str, Any]]:
    """Compute the curve and the figures for one number of utterances."""
    ties = settings.ties
    sizes = settings.gallery_sizes(ranks)
    curve = linkage.linkability_curve(ranks, sizes, resampling=settings.resampling, ties=ties)
    extra: dict[str, Any] = {}
    if settings.runs:
        drawn = linkage.monte_carlo(ranks, sizes, runs=settings.runs, seed=settings.seed, ties=ties)
        error = None
        if settings.runs > 1:
            error = drawn.std(axis=0, ddof=1) / np.sqrt(settings.runs)
        extra = {
            "exact": curve.values,
            "runs": settings.runs,
            "standard_error": error,
            "single_runs": drawn,
        }
        curve = replace(curve, values=drawn.mean(axis=0))
    over_sizes = linkage.linkability_over_sizes(ranks, ties=ties)
    least = int(ranks.impostors.min()) + 1
    most = int(ranks.impostors.max()) + 1
    notes = [*ranks.notes]
    if least < most:
        notes.append(
            f"galleries differ between trials, {least} to {most} speakers: sizes stop at the smallest gallery"
        )
        reason = "galleries differ in size between trials"
        disclosed: dict[str, Any] = {
            "srd_mean_bits": None,
            "srd_worst_bits": None,
            "srd_note": reason,
        }
    else:
        disclosed = {}
        for name, value in linkage.similarity_rank_disclosure(ranks, ties=ties).items():
            disclosed[f"srd_{name}"] = value
    block: dict[str, Any] = {
        "n_trial": len(ranks),
        "sizes": curve.sizes,
        "linkability": curve.values,
        "low": curve.low,
        "high": curve.high,
        "chance": curve.chance,
        **extra,
        # add how often the target speaker is first in the whole gallery
        "rank1": float(ranks.first(ties).mean()),
        "linkability_mean": float(over_sizes.mean()),
        "top": {
            str(top): linkage.linkability_at_sizes(ranks, sizes, top=top, ties=ties)
            for top in settings.top
        },
    }
    return curve, block | disclosed | {"notes": notes}


def _write_plots(folder: Path, measured: Linkage, beyond: Mapping[int, Beyond]) -> None:
    from evaluation.plots import plot_cmc, plot_extrapolation, plot_linkability, plot_speaker_grid

    def paths(name: str) -> list[Path]:
        return [folder / f"{name}.png", folder / f"{name}.svg"]

    curves = {}
    for number, curve in measured.curves.items():
        curves[_title(number)] = curve
    drawn = {}
    for number, part in beyond.items():
        if SHOWN in part.curve.predictions:
            drawn[_title(number)] = part.curve
    plot_linkability(
        curves,
        path=paths("linkability"),
        extrapolations=drawn,
        method=SHOWN,
        logarithmic=bool(drawn),
    )
    for number, part in beyond.items():
        name = f"extrapolation_L{utterances_name(number)}"
        plot_extrapolation(
            measured.curves[number], part.curve, path=paths(name), name=_title(number)
        )
    matches = {}
    for number, match in match_curves(measured).items():
        matches[_title(number)] = match
    if matches:
        plot_cmc(matches, path=paths("cmc"))
    spread = {}
    for number, ranks in measured.ranks.items():
        spread["", _title(number)] = list(mean_by_speaker(ranks, measured.settings).values())
    plot_speaker_grid(spread, path=paths("speakers"))


def _title(number: int) -> str:
    return f"L = {utterances_name(number)}"


def _points(*columns: NDArray[Any]) -> Iterator[Cells]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _write_table(path: Path, header: Sequence[str], rows: Sequence[Cells]) -> None:
    """Write rows with commas; undefined values stay blank."""
    blank = []
    for row in rows:
        blank.append([None if cell != cell else cell for cell in row])
    write_text(path, format_csv(header, blank))
