"""The files of a folder of linkability: numbers as JSON and CSV, lists of speakers, plots.

=========================  =========================================================================================
``linkability.json``       all numbers
``per_speaker.csv``        ``speaker,linkability_mean,rank_L...,linkability_L...``, and ``linkability_L..._N...`` for
                           sizes that were asked for by number
``curve.csv``              ``utterances,size,linkability,low,high,chance,kind``; kind is ``measured`` or
                           ``extrapolated``
``cmc.csv``                ``utterances,place,share``: the owner among the first places of the whole gallery
``ranks.npz``              beaters and ties of each trial (`evaluation.linkage.ranks`)
``extrapolation.csv``      ``utterances,size,method,linkability,low,high,measured_to,kind``, all ``extrapolated``
``linkability.png``        and ``.svg``: measured curves, and on grey ground what was extrapolated
``extrapolation_L*.png``   and ``.svg``: what each method says
``cmc.png``                and ``.svg``
``speakers.png``           and ``.svg``: how linkability is spread over speakers, with quartiles
``easy_speakers_L*.txt``   and ``hard_speakers_L*.txt``
=========================  =========================================================================================

Everything is computed in `evaluation.reports.linkability`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.linkage import DisclosureSets, chance, write_lists, write_ranks
from evaluation.reports.linkability import (
    Beyond,
    Linkage,
    match_curves,
    mean_by_speaker,
    speaker_table,
    utterances_name,
)
from spkbase.errors import DataError
from spkbase.files import format_csv, write_json, write_text

REPORT, RANKS = "linkability.json", "ranks.npz"
SHOWN = "normal"
"""Method whose estimate stands in `curve.csv` and in the plot of all curves, within the span of all intervals."""

_WRITTEN = re.compile(
    r"(linkability\.json|(ranks|impostors)\.npz|(per_speaker|curve|cmc|extrapolation)\.csv"
    r"|(linkability|cmc|speakers|extrapolation_L(\d+|all))\.(png|svg)|(easy|hard)_speakers_L(\d+|all)\.txt)"
)
_CURVE = ("utterances", "size", "linkability", "low", "high", "chance", "kind")
_EXTRAPOLATION = ("utterances", "size", "method", "linkability", "low", "high", "measured_to", "kind")


def write_linkage(
    folder: str | Path,
    linkage: Linkage,
    *,
    beyond: Mapping[int, Beyond] | None = None,
    additions: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the numbers of linkability into a folder, `linkability.json` at last, and return what that file holds.

    Parameters
    ----------
    folder : path
        Made if it is missing.
    linkage : Linkage
        What to write.
    beyond : mapping of int to Beyond, optional
        Larger populations, for ``curve.csv`` behind the measured sizes.
    additions : mapping, optional
        Further entries of the report.

    Returns
    -------
    dict
        The report, with the path of the table of speakers.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    folder = Path(folder)
    report = linkage.report | {"per_speaker": str(folder / "per_speaker.csv")} | dict(additions or {})
    write_ranks(folder / RANKS, linkage.ranks)
    write_text(folder / "per_speaker.csv", _csv(*speaker_table(linkage)))
    write_text(folder / "curve.csv", _csv(_CURVE, [*measured_rows(linkage), *extrapolated_rows(beyond or {})]))
    matches = {utterances_name(number): match for number, match in match_curves(linkage).items()}
    rows = [(name, rank, share) for name, match in matches.items() for rank, share in enumerate(match.tolist(), 1)]
    write_text(folder / "cmc.csv", _csv(("utterances", "place", "share"), rows))
    write_json(folder / REPORT, report)
    return report


def measured_rows(linkage: Linkage) -> list[tuple[Any, ...]]:
    """Return the rows of ``curve.csv`` that are measured."""
    rows: list[tuple[Any, ...]] = []
    for number, curve in linkage.curves.items():
        columns = (curve.sizes, curve.values, curve.low, curve.high, curve.chance)
        points = zip(*(column.tolist() for column in columns), strict=True)
        rows += [(utterances_name(number), *point, "measured") for point in points]
    return rows


def extrapolated_rows(beyond: Mapping[int, Beyond]) -> list[tuple[Any, ...]]:
    """Return the extrapolated rows of ``curve.csv``: the estimate by `SHOWN`, and the span of all intervals."""
    rows: list[tuple[Any, ...]] = []
    for number, part in beyond.items():
        found = part.populations
        low, high = found.span()
        estimate = found.predictions[SHOWN].linkability if SHOWN in found.predictions else np.full(len(low), np.nan)
        columns = (found.sizes.astype(np.int64), estimate, low, high, chance(found.sizes))
        points = zip(*(column.tolist() for column in columns), strict=True)
        rows += [(utterances_name(number), *point, "extrapolated") for point in points]
    return rows


def write_extrapolation(folder: str | Path, beyond: Mapping[int, Beyond]) -> None:
    """Write ``extrapolation.csv``: every method at every population, and the span."""
    rows: list[tuple[Any, ...]] = []
    for number, part in beyond.items():
        found = part.populations
        methods = {name: (said.linkability, said.low, said.high) for name, said in found.predictions.items()}
        methods["span"] = (np.full(len(found.sizes), np.nan), *found.span())
        for name, columns in methods.items():
            points = zip(found.sizes.astype(np.int64).tolist(), *(c.tolist() for c in columns), strict=True)
            rows += [
                (utterances_name(number), size, name, *values, found.measured_to, "extrapolated")
                for size, *values in points
            ]
    write_text(Path(folder) / "extrapolation.csv", _csv(_EXTRAPOLATION, rows))


def write_plots(
    folder: str | Path,
    linkage: Linkage,
    beyond: Mapping[int, Beyond] | None = None,
    *,
    formats: Sequence[str] = (".png", ".svg"),
) -> None:
    """Write the plots of linkability into a folder; see the module."""
    from evaluation.plots import plot_cmc, plot_extrapolation, plot_linkability, plot_speakers

    def paths(name: str) -> list[Path]:
        return [Path(folder) / f"{name}{form}" for form in formats]

    beyond = beyond or {}
    titles = {number: f"L = {utterances_name(number)}" for number in linkage.ranks}
    curves = {titles[number]: curve for number, curve in linkage.curves.items()}
    drawn = {titles[number]: part.curve for number, part in beyond.items() if SHOWN in part.curve.predictions}
    plot_linkability(curves, path=paths("linkability"), extrapolations=drawn, method=SHOWN, logarithmic=bool(drawn))
    for number, part in beyond.items():
        name = f"extrapolation_L{utterances_name(number)}"
        plot_extrapolation(linkage.curves[number], part.curve, path=paths(name), name=titles[number])
    matches = {titles[number]: match for number, match in match_curves(linkage).items()}
    if matches:
        plot_cmc(matches, path=paths("cmc"))
    spread = {
        titles[number]: list(mean_by_speaker(ranks, linkage.settings).values())
        for number, ranks in linkage.ranks.items()
    }
    plot_speakers(spread, path=paths("speakers"))


def clear_linkage(folder: str | Path) -> None:
    """Remove what was written into a folder before, so that no old file stands beside those of the next results.

    Only where there are such results, and only files by the names of this module.

    Raises
    ------
    DataError
        If a file cannot be removed.
    """
    folder = Path(folder)
    if not any((folder / name).is_file() for name in (REPORT, RANKS)):
        return
    # the report, which tells of whole results, goes first; the ranks go last, so that half of them are still seen
    written = [path for path in folder.iterdir() if _WRITTEN.fullmatch(path.name) and path.is_file()]
    try:
        for path in sorted(written, key=lambda path: (path.name != REPORT, path.name == RANKS)):
            path.unlink()
    except OSError as error:
        remedy = "choose another folder"
        raise DataError(f"of an earlier run cannot be removed: {error.strerror}", file=path, remedy=remedy) from error


def write_speaker_lists(folder: str | Path, quarters: Mapping[int, DisclosureSets | None]) -> dict[str, Any]:
    """Write the lists of easy and hard speakers of each number of utterances.

    Parameters
    ----------
    folder : path
        Where to.
    quarters : mapping of int to DisclosureSets or None
        By number of utterances; see `evaluation.reports.speaker_quarters`.

    Returns
    -------
    dict of str to dict
        Sizes, files and notes of each number of utterances, for a report.
    """
    report: dict[str, Any] = {}
    for number, sets in quarters.items():
        name = utterances_name(number)
        if sets is None:
            report[name] = {"notes": ["fewer than 4 speakers: no quarters"]}
            continue
        paths = write_lists(folder, sets, suffix=f"_L{name}")
        report[name] = {
            "q1": sets.q1,
            "q3": sets.q3,
            "n_easy": len(sets.easy),
            "n_hard": len(sets.hard),
            "tie_rule": sets.rule,
            **{kind: str(path) for kind, path in paths.items()},
            "notes": list(sets.notes),
        }
    return report


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay rows out with commas; what is undefined stays blank."""
    return format_csv(header, ([None if cell != cell else cell for cell in row] for row in rows))
