"""Systems read from ``result_for_rank*`` of 2024, our ``results.json``, or summaries of 2022.

Every file is read as rows: a figure for each measure, set, list of speakers and condition. From these, one EER and one
value of each utility are computed for an order (`evaluation.challenges.ranking`), a table and a chart. Files of the
challenges hold rates without intervals and do not name the attacker; ours do.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evaluation.challenges.rank_files import (
    ASR,
    ASV,
    ASV_ANON,
    PROTOCOL,
    SER,
    Section,
    read_rank_file,
    records,
)
from evaluation.challenges.ranking import LOWER_IS_BETTER, NOT_STATED, ComparedSystem
from evaluation.challenges.team_scores import read_results, recompute_averages
from evaluation.metrics import reversal_at
from evaluation.plots import TradeOff, plot_privacy_utility
from evaluation.reports import Results, summarise, typed_results
from evaluation.trials import SCENARIO_ORDER
from evaluation.uncertainty import Interval
from spkbase.errors import DataError, few
from spkbase.files import load_json
from spkbase.showing import one_line

LIST_OF_A_CHALLENGE = 400
"""Target trials that a list of the challenges has at least, whose files do not state them."""

_SET = re.compile(r"(?P<corpus>.+)_(?P<split>dev|test)(?P<subset>_common)?")
_ORIGINAL, _IGNORANT, _, _LAZY, _SEMI = SCENARIO_ORDER
_SCENARIOS = {
    (ASV, "original", "original"): _ORIGINAL,
    (ASV, "original", "anon"): _IGNORANT,
    (ASV, "anon", "anon"): _LAZY,
    (ASV_ANON, "anon", "anon"): _SEMI,
}
_KINDS = {"original": "original", "anon": "anonymised"}
_TITLES = {
    "wer": "Word error rate",
    "cer": "Character error rate",
    "uar": "Unweighted average recall",
}


@one_line
@dataclass(frozen=True)
class ChallengeFigure:
    """One figure of a system.

    Attributes
    ----------
    measure : str
        ``EER``, ``WER``, ``UAR``, or a recall such as ``ACC_sad``.
    dataset, split : str
        Set and split of the measurement; the split is "" if the name of the set has none.
    speakers : str
        List of trials, such as ``f`` or ``mixed``; blank for utility.
    condition : str
        Scenario of the attacker, or whether the speech was ``original`` or ``anonymised``.
    value : Interval
        A fraction of 1, with its interval if known.
    crossing, n_target : float
        For an EER: the error rate where both are equal, which is above 0.5 for reversed scores, and the number of
        target trials; NaN where they are not stated.
    n_attackers : int
        For an EER: the number of attackers; 0 if not stated.
    """

    measure: str
    dataset: str
    split: str
    speakers: str
    condition: str
    value: Interval
    crossing: float = math.nan
    n_target: float = math.nan
    n_attackers: int = 0

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """The figure without its value: measure, set, speakers and condition."""
        return self.measure, self.dataset, self.split, self.speakers, self.condition

    @property
    def list_name(self) -> str:
        """The set with its split, and the list of speakers."""
        return f"{'_'.join(filter(None, (self.dataset, self.split)))} {self.speakers}"

    def to_dict(self) -> dict[str, Any]:
        """Return the figure by names, for a report."""
        names = ("measure", "dataset", "split", "speakers", "condition")
        return dict(zip(names, self.place, strict=True)) | self.value.to_dict()


def split_of(dataset: str) -> tuple[str, str]:
    """Return the name of a set in rank files, and its split; "" if the name has none.

    Examples
    --------
    >>> split_of("libri_test"), split_of("vctk_dev_common"), split_of("mine")
    (('libri', 'test'), ('vctk_common', 'dev'), ('mine', ''))
    """
    match = _SET.fullmatch(dataset)
    if match is None:
        return (dataset, "")
    return (match["corpus"] + (match["subset"] or ""), match["split"])


# ---- figures of files


def read_figures(path: str | Path) -> tuple[ChallengeFigure, ...]:
    """Return every EER, WER and recall of a rank file or of ``results.json`` (or the folder that holds it).

    Summaries of VoicePrivacy 2022 are not read here.

    Raises
    ------
    DataError
        If the file is malformed.
    """
    path = _file(path)
    if path.suffix.lower() == ".json":
        return figures_of_results(_load_results(path))
    if _is_of_2022(path):
        return ()
    return figures_of_rank_file(read_rank_file(path))


def figures_of_rank_file(sections: Sequence[Section]) -> tuple[ChallengeFigure, ...]:
    """Return the figures of the known sections of a rank file, as fractions of 1."""
    figures = []
    for title in (ASV, ASV_ANON, ASR, SER):
        for row in records(sections, title):
            where = (str(row["dataset"]), str(row["split"]))
            if title in (ASV, ASV_ANON):
                pair = (str(row["enrollment"]), str(row["trial"]))
                rate = float(row["EER"]) / 100
                condition = _SCENARIOS.get((title, *pair), f"{title} {'-'.join(pair)}")
                eer = ChallengeFigure(
                    "EER", *where, str(row["gender"]), condition, Interval(rate), crossing=rate
                )
                figures.append(eer)
                continue
            speech = str(row["asr" if title == ASR else "ser"])
            kind = _KINDS.get(speech, speech)
            for name, cell in row.items():
                if isinstance(cell, float):
                    figures.append(ChallengeFigure(name, *where, "", kind, Interval(cell / 100)))
    return tuple(figures)


def figures_of_results(
    results: Results, utilities: Sequence[str] = ("wer", "uar")
) -> tuple[ChallengeFigure, ...]:
    """Return the EER of each condition, by the named attacker or else the strongest, and the utilities.

    The attacker and the definition of the EER are those that the results name for a challenge. If they name none, the
    strongest attacker by the ROC convex hull is taken, with the interval of the minimum over attackers.
    """
    named = results.protocol.attacker
    counts = Counter(row.identity[:3] for row in results.conditions)
    by_sex = {row.dataset for row in results.conditions if row.gender != "all"}
    if named:
        outcomes = summarise([row for row in results.conditions if row.attacker == named])
    else:
        outcomes = results.by_conditions()
    figures = []
    for outcome in outcomes:
        value = outcome.rate
        if named:
            value = outcome.condition.metric(f"eer.{results.protocol.reading or 'rocch'}")
        if not value.known:
            continue
        # a data set without lists by sex has one list for all, which rank files call 'mixed'
        if outcome.dataset in by_sex:
            speakers = outcome.gender
        else:
            speakers = "mixed"
        where = *split_of(outcome.dataset), speakers, outcome.scenario
        crossing = outcome.condition.metric("eer.interpolated").value
        figures.append(
            ChallengeFigure(
                "EER", *where, value, crossing, outcome.n_target, counts[outcome.identity]
            )
        )
    for measure in utilities:
        figures += _figures_of_utility(results, measure)
    return tuple(figures)


def _figures_of_utility(results: Results, measure: str) -> list[ChallengeFigure]:
    """Return the known rates of a measure of utility."""
    figures = []
    for utility in results.utility:
        rate = utility.rate.value
        if utility.measure == measure and rate.known:
            dataset, split = split_of(utility.dataset)
            figures.append(ChallengeFigure(measure.upper(), dataset, split, "", utility.kind, rate))
    return figures


def _file(path: str | Path) -> Path:
    path = Path(path)
    if path.is_dir():
        return path / "results.json"
    return path


def _is_of_2022(path: Path) -> bool:
    return path.name.startswith(("RESULTS_summary", "results.")) and path.suffix.lower() != ".json"


def _load_results(path: Path) -> Results:
    content = load_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("conditions"), list):
        raise DataError(
            "expected results with 'conditions'",
            file=path,
            remedy="give a results.json of the recipe",
        )
    return typed_results(content, file=path)


# ---- one EER and one of each utility


def read_system(
    path: str | Path,
    name: str = "",
    *,
    split: str = "test",
    average: Literal["mean", "least"] = "mean",
    datasets: Sequence[str] = (),
) -> ComparedSystem:
    """Return a system read from any of the known kinds of file.

    Parameters
    ----------
    path : path
        ``results.json`` (or a folder that holds it), a ``result_for_rank*``, or a summary of VoicePrivacy 2022.
    name : str
        Name of the system; the suffix of the file by default.
    split : str
        ``dev`` or ``test``; sets whose names have no split count too.
    average : {"mean", "least"}
        EER of a system: the mean over sets and sexes, or the least of them.
    datasets : sequence of str
        Sets whose EER and WER count, by the names of rank files (``libri``, ``en``); all by default. Emotions have
        their own sets and always count.

    Raises
    ------
    DataError
        If the kind of file is unknown, or it holds no EER of a semi-informed attacker in the split.
    """
    if average not in ("mean", "least"):
        raise DataError(f"expected the average 'mean' or 'least', got {average!r}")
    path = _file(path)
    if _is_of_2022(path):
        return _from_2022(path, name or _name(path), split)
    content = _content_of(path)
    name = name or content.name or _name(path)
    return _compared(content, name, path, split=split, average=average, datasets=datasets)


class _Content(NamedTuple):
    """The contents of a file of one system; weights and a name are there if the results are ours."""

    figures: Sequence[ChallengeFigure]
    protocols: Sequence[Mapping[str, Any]]
    weights: Mapping[str, float] = {}
    name: str = ""
    is_ours: bool = False


def system_of_figures(
    figures: Sequence[ChallengeFigure],
    name: str,
    *,
    source: str,
    attacker: str,
    weights: Mapping[str, float] | None = None,
    split: str = "test",
    average: Literal["mean", "least"] = "mean",
    datasets: Sequence[str] = (),
) -> ComparedSystem:
    """Return the system that has these figures.

    Parameters
    ----------
    figures : sequence of ChallengeFigure
    name, attacker : str
        Names of the system and of the attacker whose EERs are given.
    source : str
        Source of the figures, for notes and errors.
    weights : dict of str to float, optional
        Weights of sets in the EER.
    split, average, datasets
        As for `read_system`.

    Raises
    ------
    DataError
        If there is no EER of a semi-informed attacker in the split.
    """
    content = _Content(figures, (), weights or {})
    system = _compared(content, name, source, split=split, average=average, datasets=datasets)
    return replace(system, attacker=attacker)


def _compared(
    content: _Content,
    name: str,
    source: str | Path,
    *,
    split: str,
    average: Literal["mean", "least"],
    datasets: Sequence[str],
) -> ComparedSystem:
    figures = _select(content.figures, split, datasets)
    lists = _semi_informed(figures)
    if not lists:
        text = f"no EER of a semi-informed attacker ({ASV_ANON!r}) on sets {split!r}"
        remedy = "run the recipe with such an attacker, or choose other sets"
        raise DataError(text, file=source, remedy=remedy)
    eer, note = _eer_of(lists, average, content.weights)
    notes = [f"{source}: {note}"]
    if not content.is_ours:  # our results name the attacker themselves
        notes += _too_weak(lists, figures)
    utilities = _utilities(figures)
    undefined = [measure.upper() for measure, rate in utilities.items() if not rate.known]
    if undefined:
        raise DataError(f"{undefined[0]} of anonymised speech is undefined", file=source)
    sets = tuple(figure.list_name for figure in lists.values())
    attacker = _attacker_of(content.protocols, lists)
    return ComparedSystem(name, eer, utilities, tuple(notes), sets, attacker, _broken(lists))


def _content_of(path: Path) -> _Content:
    """Read our results, or else a rank file."""
    if path.suffix.lower() != ".json":
        sections = read_rank_file(path)
        return _Content(figures_of_rank_file(sections), records(sections, PROTOCOL))
    results = _load_results(path)
    figures = figures_of_results(results, tuple(LOWER_IS_BETTER))
    weights = results.settings.challenge.weights
    name = ""
    if results.anonymiser:
        name = results.anonymiser.name
    return _Content(figures, [results.protocol.to_dict()], weights, name, is_ours=True)


def _eer_of(
    lists: Mapping[str, ChallengeFigure],
    average: Literal["mean", "least"],
    weights: Mapping[str, float],
) -> tuple[Interval, str]:
    """Return the EER of a system over its lists, and how it was made."""
    shares = [float(weights.get(figure.dataset, 0)) for figure in lists.values()]
    note = f"EER of {', '.join(lists)}"
    if average == "mean" and all(share > 0 for share in shares):
        note += ", weighted as the challenge does"
    else:
        shares = []
    eer = _together([figure.value for figure in lists.values()], average, shares)
    if not eer.has_interval:
        note += ", without intervals"
    return eer, note


def _attacker_of(
    protocols: Sequence[Mapping[str, Any]], lists: Mapping[str, ChallengeFigure]
) -> str:
    """Return the attacker that a file names, with the definition of the EER, or else how many attackers were tried."""
    for protocol in reversed(protocols):
        if protocol:
            return f"{protocol['attacker']} ({protocol['reading']})"
    n_attackers = max(figure.n_attackers for figure in lists.values())
    if n_attackers:
        return f"strongest of {n_attackers} (rocch)"
    return NOT_STATED


def _select(
    figures: Sequence[ChallengeFigure], split: str, datasets: Sequence[str]
) -> list[ChallengeFigure]:
    corpora = {split_of(dataset)[0] for dataset in datasets}
    selected = []
    for figure in figures:
        is_asked_for = not datasets or figure.measure == "UAR" or figure.dataset in {"", *corpora}
        if is_asked_for and figure.split in ("", split):
            selected.append(figure)
    return selected


def _semi_informed(figures: Sequence[ChallengeFigure]) -> dict[str, ChallengeFigure]:
    """Return the EERs of the semi-informed attacker by their lists: by sex, else across the sexes."""
    semi = [figure for figure in figures if (figure.measure, figure.condition) == ("EER", _SEMI)]
    semi = [figure for figure in semi if figure.speakers not in ("all", "mixed")] or semi
    semi.sort(key=lambda figure: figure.list_name)
    return {figure.list_name.replace(" mixed", " all"): figure for figure in semi}


def _too_weak(
    lists: Mapping[str, ChallengeFigure], figures: Sequence[ChallengeFigure]
) -> list[str]:
    """Name the lists on which the lazy-informed attacker is stronger than the semi-informed one."""
    lazy = {figure.place[:4]: figure.value.value for figure in figures if figure.condition == _LAZY}
    notes = []
    for where, figure in lists.items():
        below = 100 * lazy.get(figure.place[:4], math.inf)
        rate = 100 * figure.value.value
        if below < rate:
            text = f"the lazy-informed EER of {where}, {below:g} %, is below the semi-informed {rate:g} %"
            notes.append(
                f"{text}: privacy is overestimated, the semi-informed attacker is too weak"
            )
    return notes


def _utilities(figures: Sequence[ChallengeFigure]) -> dict[str, Interval]:
    rates: dict[str, list[Interval]] = {measure: [] for measure in LOWER_IS_BETTER}
    for figure in figures:
        if figure.condition == "anonymised" and figure.measure.lower() in rates:
            rates[figure.measure.lower()].append(figure.value)
    return {measure: _together(values) for measure, values in rates.items() if values}


def measured_utility(
    path: str | Path, *, split: str = "test", datasets: Sequence[str] = ()
) -> dict[str, Interval]:
    """Return the utilities of anonymised speech in a rank file or ``results.json``; the file may lack an EER.

    Raises
    ------
    DataError
        If the file is malformed, or has no utility in the split.
    """
    path = _file(path)
    figures = _content_of(path).figures
    utilities = _utilities(_select(figures, split, datasets))
    if not any(rate.known for rate in utilities.values()):
        text = f"no WER, UAR or other utility of anonymised speech on sets {split!r}"
        raise DataError(text, file=path, remedy="give a file that has them")
    return {measure: rate for measure, rate in utilities.items() if rate.known}


def _from_2022(path: Path, name: str, split: str) -> ComparedSystem:
    averages = recompute_averages(read_results(path))
    rate = averages.get(f"Weighted average EER {split} anon")
    if rate is None:
        text = f"the EERs of anonymised speech of the split {split!r} are not all there"
        raise DataError(
            text, file=path, remedy="give a summary of VoicePrivacy 2022 with all of its sets"
        )
    utilities = {}
    wer = averages.get(f"Average WER {split} anon")
    if wer is not None:
        utilities["wer"] = Interval(wer / 100)
    correlation = averages.get(f"Weighted average pitch correlation {split}")
    if correlation is not None:
        utilities["f0"] = Interval(correlation)
    note = f"{path.name}: weighted averages of VoicePrivacy 2022, without intervals"
    eer = ChallengeFigure("EER", "", split, "", _SEMI, Interval(rate / 100), rate / 100)
    return ComparedSystem(
        name, eer.value, utilities, (note,), broken=_broken({"weighted average": eer})
    )


def _broken(lists: Mapping[str, ChallengeFigure]) -> str:
    """Name the lists with reversed scores (by EER and number of target trials) or constant ones."""
    backwards = []
    constant = []
    for where, figure in lists.items():
        rate = figure.crossing
        n_target = figure.n_target
        if math.isnan(rate):
            continue
        if math.isnan(n_target):
            n_target = LIST_OF_A_CHALLENGE
        turned = reversal_at(rate, n_target)
        if turned is not None and turned.clear:
            backwards.append(f"{where} ({100 * rate:.4g} %)")
        if rate == 0.5:
            constant.append(where)
    texts = []
    if backwards:
        texts.append(f"reversed: {few(backwards)}")
    if constant:
        texts.append(f"constant (EER of exactly 50 %): {few(constant)}")
    if texts:
        return f"scores are {'; or '.join(texts)}"
    return ""


def _together(
    measures: Sequence[Interval], average: str = "mean", weights: Sequence[float] = ()
) -> Interval:
    """Combine the figures of sets and sexes, taken as independent: the mean, plain or weighted, or the minimum."""
    if average == "least":
        return min(measures, key=lambda measure: measure.value)
    shares = [weight / sum(weights) for weight in weights] or [1 / len(measures)] * len(measures)
    value = sum(share * measure.value for share, measure in zip(shares, measures, strict=True))
    if not all(measure.has_interval for measure in measures):
        return Interval(value)
    down = []
    up = []
    for share, measure in zip(shares, measures, strict=True):
        down.append(share * (measure.value - measure.low))
        up.append(share * (measure.value - measure.high))
    return Interval(value, value - math.hypot(*down), value + math.hypot(*up))


def _name(path: Path) -> str:
    for start in ("result_for_rank", "RESULTS_summary", "results"):
        if path.name.startswith(start) and path.suffix != ".json":
            return path.name.removeprefix(start).lstrip("_.") or path.name
    if path.name == "results.json":
        return path.parent.resolve().name
    return path.stem


# ---- tables and charts


def figure_rows(systems: Mapping[str, Sequence[ChallengeFigure]]) -> list[dict[str, str]]:
    """Return a row for each measure and list with figures, with a column in per cent for each system.

    Examples
    --------
    >>> figure = ChallengeFigure("EER", "libri", "test", "mixed", "semi-informed", Interval(0.04713))
    >>> figure_rows({"B2": [figure], "B3": []})[0]["B2"], figure_rows({"B2": [figure], "B3": []})[0]["B3"]
    ('4.713', '-')
    """
    names = ("measure", "set", "split", "speakers", "condition")
    rows: dict[tuple[str, str, str, str, str], dict[str, str]] = {}
    for figures in systems.values():
        for figure in figures:
            rows[figure.place] = dict(zip(names, figure.place, strict=True))
    for name, figures in systems.items():
        values = {figure.place: figure.value for figure in figures}
        for where, row in rows.items():
            row[name] = values.get(where, Interval()).in_percent.text(".3f")
    return list(rows.values())


def system_rows(systems: Sequence[ComparedSystem], decimals: int = 2) -> list[dict[str, str]]:
    """Return a row for each system: EER and utilities in per cent with intervals in brackets, and the attacker.

    Utilities that no system has are left out. The EER is that of the semi-informed attacker.

    Examples
    --------
    >>> system_rows([ComparedSystem("B2", Interval(0.047, 0.035, 0.062), {"wer": Interval(0.0996)})])
    [{'system': 'B2', 'EER [%]': '4.70 [3.50, 6.20]', 'EER of': 'not stated', 'WER [%]': '9.96'}]
    """
    measured = measured_utilities(systems)
    form = f".{decimals}f"
    rows = []
    for system in systems:
        row = {
            "system": system.name,
            "EER [%]": system.eer.in_percent.text(form),
            "EER of": system.attacker,
        }
        for name in _TITLES:
            if name in measured:
                row[f"{name.upper()} [%]"] = system.utilities.get(name, Interval()).in_percent.text(
                    form
                )
        rows.append(row)
    return rows


def measured_utilities(systems: Sequence[ComparedSystem]) -> set[str]:
    """Return the utilities that at least one system has."""
    return set[str]().union(*(system.utilities for system in systems))


def plot_systems(
    systems: Sequence[ComparedSystem],
    path: str | Path,
    *,
    utilities: Sequence[str] = ("wer", "uar"),
    targets: Sequence[float] = (),
) -> list[Path]:
    """Plot the EER of each system over each utility, with intervals if known.

    Parameters
    ----------
    systems : sequence of ComparedSystem
        Each chart shows the systems with its utility.
    path : path
        The file to write, ``.png``, ``.pdf``, ``.svg``, ``.tex`` or ``.pgf``; with several utilities, the name of each
        is inserted before the extension, as in ``systems_wer.png``.
    utilities : sequence of str
        Rates to plot: ``wer``, ``cer`` and ``uar``; utilities that are not rates are left out.
    targets : sequence of float
        Minimum EERs, as fractions; drawn as the edges of bands.

    Returns
    -------
    list of Path
        Files that were written. If the attackers differ, they are named at the points.

    Raises
    ------
    DataError
        If no system has any of the utilities.
    """
    path = Path(path)
    mixed = len({system.attacker for system in systems}) > 1
    measured = measured_utilities(systems)
    shown = [name for name in utilities if name in _TITLES and name in measured]
    if not shown:
        remedy = "measure WER or UAR, or leave the plot out"
        raise DataError(
            f"no system has a utility to plot over: {', '.join(utilities)}", remedy=remedy
        )
    bands = [target for target in targets if 0 < target < 0.5]
    files = []
    for name in shown:
        file = path
        if len(shown) > 1:
            file = path.with_name(f"{path.stem}_{name}{path.suffix}")
        points = []
        for system in systems:
            label = f"{system.name}, {system.attacker}" if mixed else system.name
            if name in system.utilities:
                points.append(TradeOff(label, system.utilities[name], system.eer))
        better = LOWER_IS_BETTER[name]
        plot_privacy_utility(
            points, path=file, measure=_TITLES[name], lower_is_better=better, targets=bands
        )
        files.append(file)
    return files
