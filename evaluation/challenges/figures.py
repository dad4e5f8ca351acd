"""Every figure of a system's results, by what it is of: rows of a rank file, conditions of ``results.json``.

Where `ranking_sources` makes one EER and one of each utility of a system, nothing is averaged here: a table of several
systems with a row for each set, list and measure comes of these.

**Several systems in one table and in one chart: EER of the semi-informed attacker against each utility.**
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.challenges.rank_files import ASR, ASV, ASV_ANON, SER, RankFile, read_rank_file
from evaluation.challenges.ranking import LOWER_IS_BETTER, ComparedSystem
from evaluation.challenges.ranking_sources import chosen_eer, load_results, split_of, utility_rate
from evaluation.plots import TradeOff, plot_privacy_utility
from evaluation.reports import SCENARIO_ORDER
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.showing import one_line

_ORIGINAL, _IGNORANT, _LAZY, _SEMI = SCENARIO_ORDER
_OF_ASV = {("original", "original"): _ORIGINAL, ("original", "anon"): _IGNORANT, ("anon", "anon"): _LAZY}
_OF_ASV_ANON = {("anon", "anon"): _SEMI}
_KINDS = {"original": "original", "anon": "anonymised"}


@one_line
@dataclass(frozen=True)
class Figure:
    """One figure of a system.

    Attributes
    ----------
    measure : str
        ``EER``, ``WER``, ``UAR``, or a recall such as ``ACC_sad``.
    dataset, split : str
        What it was measured on; the split is blank where the name of the set tells all.
    speakers : str
        List of trials, such as ``f`` or ``mixed``; blank for utility.
    condition : str
        Scenario of the attacker, or whether the speech was ``original`` or ``anonymised``.
    value : Interval
        A fraction of 1, with an interval where there is one.
    """

    measure: str
    dataset: str
    split: str
    speakers: str
    condition: str
    value: Interval

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """What the figure is of, without its value."""
        return self.measure, self.dataset, self.split, self.speakers, self.condition

    def to_dict(self) -> dict[str, Any]:
        """Return the figure by names, for a report."""
        names = {"measure": self.measure, "dataset": self.dataset, "split": self.split, "speakers": self.speakers}
        return {**names, "condition": self.condition, **self.value.to_dict()}


def read_figures(path: str | Path) -> tuple[Figure, ...]:
    """Return every figure of a rank file or of ``results.json`` (or the folder that holds it).

    Summaries of VoicePrivacy 2022 have other files, so there are none of them here.

    Raises
    ------
    DataError
        If the file is malformed.
    """
    path = Path(path)
    path = path / "results.json" if path.is_dir() else path
    if path.suffix.lower() == ".json":
        return figures_of_results(load_results(path))
    if path.name.startswith(("RESULTS_summary", "results.")):
        return ()
    return figures_of_rank_file(read_rank_file(path))


def figures_of_rank_file(file: RankFile) -> tuple[Figure, ...]:
    """Return the figures of the known sections of a file, each row of them as a fraction of 1."""
    figures = []
    for title, scenarios in ((ASV, _OF_ASV), (ASV_ANON, _OF_ASV_ANON)):
        for row in _records(file, title):
            pair = (str(row["enrollment"]), str(row["trial"]))
            condition = scenarios.get(pair, f"{title} {'-'.join(pair)}")
            place = (str(row["dataset"]), str(row["split"]), str(row["gender"]), condition)
            figures.append(Figure("EER", *place, Interval(float(row["EER"]) / 100)))
    for title, kind in ((ASR, "asr"), (SER, "ser")):
        for row in _records(file, title):
            condition = _KINDS.get(str(row[kind]), str(row[kind]))
            place = (str(row["dataset"]), str(row["split"]), "", condition)
            numbers = {name: cell for name, cell in row.items() if isinstance(cell, float)}
            figures += [Figure(name, *place, Interval(cell / 100)) for name, cell in numbers.items()]
    return tuple(figures)


def figures_of_results(results: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Return the EER of each condition, of the attacker that is named or else the strongest, and the utilities."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in results["conditions"]:
        if isinstance(row, Mapping):
            place = (str(row.get("dataset", "")), str(row.get("gender", "all")), str(row.get("scenario", "")))
            groups.setdefault(place, []).append(row)
    by_sex = {dataset for dataset, speakers, _ in groups if speakers != "all"}
    figures = [
        # without lists by sex there was one across them
        Figure("EER", *split_of(dataset), speakers if dataset in by_sex else "mixed", scenario, eer)
        for (dataset, speakers, scenario), rows in groups.items()
        if (eer := chosen_eer(results, rows)) is not None
    ]
    utility = results.get("utility")
    for measure in ("wer", "uar"):
        figures += _rates(measure.upper(), utility.get(measure) if isinstance(utility, Mapping) else None, "", "")
    return tuple(figures)


def figure_rows(systems: Mapping[str, Sequence[Figure]]) -> list[dict[str, str]]:
    """Return a row for each place that a system has a figure of, with a column for each system; in per cent.

    Examples
    --------
    >>> figure = Figure("EER", "libri", "test", "mixed", "semi-informed", Interval(0.04713))
    >>> figure_rows({"B2": [figure], "B3": []})[0]["B2"], figure_rows({"B2": [figure], "B3": []})[0]["B3"]
    ('4.713', '-')
    """
    places = dict.fromkeys(figure.place for figures in systems.values() for figure in figures)
    by_place = {name: {figure.place: figure.value for figure in figures} for name, figures in systems.items()}
    names = ("measure", "set", "split", "speakers", "condition")
    return [
        dict(zip(names, place, strict=True)) | {name: percent(of.get(place)) for name, of in by_place.items()}
        for place in places
    ]


def percent(value: Interval | None, decimals: int = 3) -> str:
    """Return a rate in per cent with its interval in brackets, a hyphen where there is none.

    Examples
    --------
    >>> percent(Interval(0.25, 0.2, 0.3), 1), percent(None)
    ('25.0 [20.0, 30.0]', '-')
    """
    if value is None or not value.known:
        return "-"
    ends = f" [{100 * value.low:.{decimals}f}, {100 * value.high:.{decimals}f}]" if value.has_interval else ""
    return f"{100 * value.value:.{decimals}f}{ends}"


def _rates(measure: str, block: Any, dataset: str, condition: str) -> Iterator[Figure]:
    """Rates of utility below a measure: by set and kind of speech, or one alone."""
    if not isinstance(block, Mapping):
        return
    if "value" in block:
        rate = utility_rate(block)
        if rate is not None:
            yield Figure(measure, *split_of(dataset), "", condition or "anonymised", rate)
        return
    for name, inner in block.items():
        is_kind = str(name) in _KINDS.values()
        yield from _rates(measure, inner, dataset if is_kind else str(name), str(name) if is_kind else condition)


def _records(file: RankFile, title: str) -> list[dict[str, Any]]:
    section = file.section(title)
    return [] if section is None else section.records()


_MEASURES = {"wer": "Word error rate", "cer": "Character error rate", "uar": "Unweighted average recall"}


def system_rows(systems: Sequence[ComparedSystem], decimals: int = 2) -> list[dict[str, str]]:
    """Return a row for each system: EER and utilities in per cent, with their intervals in brackets, and whose EER.

    Utilities that no system has are left out. The EER is that of the semi-informed attacker.

    Examples
    --------
    >>> system_rows([ComparedSystem("B2", Interval(0.047, 0.035, 0.062), {"wer": Interval(0.0996)})])
    [{'system': 'B2', 'EER [%]': '4.70 [3.50, 6.20]', 'EER of': 'not told', 'WER [%]': '9.96'}]
    """
    known = [name for name in _MEASURES if any(name in system.utilities for system in systems)]
    return [
        {"system": system.name, "EER [%]": percent(system.eer, decimals), "EER of": system.attacker}
        | {f"{name.upper()} [%]": percent(system.utilities.get(name), decimals) for name in known}
        for system in systems
    ]


def plot_systems(
    systems: Sequence[ComparedSystem],
    path: str | Path,
    *,
    utilities: Sequence[str] = ("wer", "uar"),
    targets: Sequence[float] = (),
) -> list[Path]:
    """Plot the EER of each system over each utility, with intervals where there are any.

    Parameters
    ----------
    systems : sequence of ComparedSystem
        Those that have a utility are in its chart.
    path : path
        The file to write, ``.png``, ``.pdf``, ``.svg`` or ``.tex``; for several utilities each has its name before the
        extension, as in ``systems_wer.png``.
    utilities : sequence of str
        Rates among ``wer``, ``cer`` and ``uar``; others are no rates and are left out.
    targets : sequence of float
        Least EERs, as fractions; drawn as the edges of bands.

    Returns
    -------
    list of Path
        What was written. Where systems differ in whose EER they have, points are named with it.

    Raises
    ------
    DataError
        If no system has any of the utilities.
    """
    path = Path(path)
    drawn = [
        (name, [system for system in systems if name in system.utilities]) for name in utilities if name in _MEASURES
    ]
    drawn = [(name, members) for name, members in drawn if members]
    if not drawn:
        raise DataError(
            f"no system has a utility to plot over: {', '.join(utilities)}",
            remedy="measure WER or UAR, or leave --plot out",
        )
    written = []
    mixed = len({system.attacker for system in systems}) > 1
    for name, members in drawn:
        file = path if len(drawn) == 1 else path.with_name(f"{path.stem}_{name}{path.suffix}")
        points = [
            TradeOff(
                f"{system.name}, {system.attacker}" if mixed else system.name,
                100 * system.utilities[name].value, system.eer.value,
                _ends(system.eer), _ends(system.utilities[name], 100),
            )
            for system in members
        ]  # fmt: skip
        plot_privacy_utility(
            points,
            path=file,
            measure=_MEASURES[name],
            lower_is_better=LOWER_IS_BETTER[name],
            targets=[target for target in targets if 0 < target < 0.5],
        )
        written.append(file)
    return written


def _ends(interval: Interval, factor: float = 1) -> tuple[float, float] | None:
    return (factor * interval.low, factor * interval.high) if interval.has_interval else None
