"""Systems to order, from result files: 2024's ``result_for_rank*``, our ``results.json``, 2022's summaries.

Files of the challenges hold rates without intervals. An approximate interval is then made of the numbers of trials,
words, utterances and speakers that the challenge's sets have: that of independent trials, its variance taken
1 + (m - 1) rho times, where m is the number of trials of a speaker and rho how alike they are (the design effect [1]_).
It is a guess, and is called so in the notes; docs/utility.md says on what data rho was measured.

References
----------
.. [1] L. Kish, "Survey Sampling", section 5.4, 1965.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evaluation.challenges.rank_files import ASR, ASV, ASV_ANON, SER, RankFile, read_rank_file
from evaluation.challenges.ranking import ComparedSystem
from evaluation.challenges.results_2022 import read_results, recompute_averages
from evaluation.reports import SCENARIO_ORDER, strongest
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.files import load_json
from spkbase.showing import one_line

Average = Literal["mean", "least"]


@one_line
@dataclass(frozen=True)
class Sizes:
    """How much data stand behind the rates of a split.

    Attributes
    ----------
    targets : dict of str to (int, int)
        Target trials and their speakers, by sex, and of the list across the sexes (``mixed``).
    words : (int, int)
        Words of the reference, and speakers.
    utterances : (int, int)
        Utterances whose emotion is recognised, taken as spread evenly over the emotions, and speakers.
    """

    targets: Mapping[str, tuple[int, int]]
    words: tuple[int, int]
    utterances: tuple[int, int]


# LibriSpeech's trials and words are those of the lists of 2020 to 2024, whose targets the lists across the sexes of
# 2026 have too; of IEMOCAP, whose 5531 utterances of four emotions are halved between the splits, there is a speaker in
# each of five folds
SIZES: Mapping[str, Sizes] = {
    "dev": Sizes({"f": (704, 15), "m": (644, 14), "mixed": (1348, 29)}, (39783, 40), (2765, 5)),
    "test": Sizes({"f": (548, 16), "m": (449, 13), "mixed": (997, 29)}, (35042, 40), (2765, 5)),
}
ALIKE: Mapping[str, float] = {"eer": 0.02, "wer": 0.01, "uar": 0.07}
"""Intraclass correlation rho of the errors of a speaker."""
_GUESSED = {"eer": "libri", "wer": "libri", "uar": "IEMOCAP"}  # the sets whose sizes these are
_SET = re.compile(r"(?P<corpus>.+)_(?P<split>dev|test)(?P<subset>_common)?")


@one_line
@dataclass(frozen=True)
class Reading:
    """What to take from a file.

    Attributes
    ----------
    split : str
        ``dev`` or ``test``.
    average : {"mean", "least"}
        EER of a system: the mean over sets and sexes, or the least of them.
    sizes : Sizes or None
        Of the split, for approximate intervals of files without; None for none.
    alike : dict of str to float
        Intraclass correlation of ``eer``, ``wer`` and ``uar``.
    datasets : tuple of str
        Sets whose EER and WER count, by the names of rank files (``libri``, ``en``); empty for all. Emotions have sets
        of their own, and count in each case.
    """

    split: str = "test"
    average: Average = "mean"
    sizes: Sizes | None = SIZES["test"]
    alike: Mapping[str, float] = field(default_factory=lambda: ALIKE)
    datasets: tuple[str, ...] = ()

    def counts(self, dataset: str) -> bool:
        """Whether a set counts, by its name with or without the split."""
        return not self.datasets or dataset in self.datasets or split_of(dataset)[0] in self.datasets


def read_system(path: str | Path, name: str = "", reading: Reading | None = None) -> ComparedSystem:
    """Return a system read from any of the known kinds of file.

    Parameters
    ----------
    path : path
        ``results.json`` (or a folder that holds it), a ``result_for_rank*``, or a summary of VoicePrivacy 2022.
    name : str
        Of the system; the suffix of the file by default.
    reading : Reading, optional

    Raises
    ------
    DataError
        If the file is of no such kind, or holds no EER of a semi-informed attacker in the split.
    """
    path, reading = Path(path), reading or Reading()
    path = path / "results.json" if path.is_dir() else path
    if path.suffix.lower() == ".json":
        return _from_results(path, name, reading)
    if path.name.startswith(("RESULTS_summary", "results.")):
        return _from_2022(path, name, reading)
    return _from_rank_file(path, name, reading)


def design_effect(count: float, speakers: float, alike: float) -> float:
    """Return how many times the variance is that of independent trials, for `count` trials spread over speakers.

    Examples
    --------
    >>> design_effect(1000, 10, 0.02)
    2.98
    """
    return 1 + (count / speakers - 1) * alike


def binomial(rate: float, count: float, *, design: float, level: float = 0.95) -> Interval:
    """Return a rate of `count` trials with its Wilson interval, as of `count / design` independent ones.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.

    Examples
    --------
    >>> found = binomial(0.5, 100, design=1)
    >>> round(found.low, 4), round(found.high, 4)
    (0.4038, 0.5962)
    """
    from scipy.special import ndtri

    size, z = count / design, float(ndtri((1 + level) / 2))
    # insertions may push a word error rate beyond 1
    inside = min(max(rate, 0.0), 1.0)
    centre = (inside + z * z / (2 * size)) / (1 + z * z / size)
    reach = z * math.sqrt(inside * (1 - inside) / size + z * z / (4 * size * size)) / (1 + z * z / size)
    return Interval(rate, min(centre - reach, rate), max(centre + reach, rate))


def _from_rank_file(path: Path, name: str, reading: Reading) -> ComparedSystem:
    file = read_rank_file(path)
    section = file.section(ASV_ANON)
    rows = [] if section is None else section.records()
    wanted = (reading.split, "anon", "anon")
    anon = [row for row in rows if (row["split"], row["enrollment"], row["trial"]) == wanted]
    anon = [row for row in anon if reading.counts(str(row["dataset"]))]
    if not anon:
        remedy = "the semi-informed attacker's results are needed" + (", of other sets" if reading.datasets else "")
        raise DataError(f"no EER anon-anon of the split {reading.split!r} in {ASV_ANON!r}", file=path, remedy=remedy)
    sizes = reading.sizes if {str(row["dataset"]) for row in anon} == {_GUESSED["eer"]} else None
    eers = []
    for row in anon:
        size = None if sizes is None else sizes.targets.get(str(row["gender"]))
        eers.append(_guess(float(row["EER"]) / 100, size, reading.alike["eer"]))
    utilities = {}
    wer = _mean_row(file, path, (ASR, "WER", "asr"), reading)
    if wer is not None:
        words = reading.sizes.words if reading.sizes and _is_known(file, ASR, "wer", reading.split) else None
        utilities["wer"] = _guess(wer, words, reading.alike["wer"])
    uar = _mean_row(file, path, (SER, "UAR", "ser"), replace(reading, datasets=()))
    if uar is not None:
        utilities["uar"] = _recall(file, uar, reading)
    sets = tuple(sorted(f"{row['dataset']}_{row['split']} {row['gender']}" for row in anon))
    notes = [_origin(path, eers, sizes), *_stronger_lazy(file, anon)]
    return ComparedSystem(name or _name(path), _together(eers, reading.average), utilities, tuple(notes), sets)


def _stronger_lazy(file: RankFile, anon: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Tell where the lazy-informed EER is below the semi-informed one, who knows more: privacy is overestimated."""
    for row in anon:
        where = {name: str(row[name]) for name in ("dataset", "split", "gender", "enrollment", "trial")}
        lazy = file.value(ASV, "EER", **where)
        if lazy is not None and lazy < row["EER"]:
            text = f"the lazy-informed EER of {row['dataset']} {row['gender']}, {lazy:g} %, is below the semi-informed"
            yield f"{text} {row['EER']:g} %: privacy is overestimated, the semi-informed attacker is too weak"


def _is_known(file: RankFile, title: str, key: str, split: str) -> bool:
    """Return whether a table is of the challenge's own set, as far as its name tells."""
    section = file.section(title)
    rows = [] if section is None else section.records()
    return {str(row["dataset"]) for row in rows if row["split"] == split} == {_GUESSED[key]}


def _guess(rate: float, size: tuple[int, int] | None, alike: float) -> Interval:
    return Interval(rate) if size is None else binomial(rate, size[0], design=design_effect(*size, alike))


def _mean_row(file: RankFile, path: Path, where: tuple[str, str, str], reading: Reading) -> float | None:
    """Mean of a section's column over the sets of a split, for anonymised speech, as a fraction of 1."""
    title, column, kind = where
    section = file.section(title)
    if section is None:
        return None
    rows = [row for row in section.records() if (row["split"], row[kind]) == (reading.split, "anon")]
    recalls = [float(row[column]) for row in rows if reading.counts(str(row["dataset"]))]
    if any(math.isnan(value) for value in recalls):
        raise DataError(f"{column} of anonymised speech is undefined in {title!r}", file=path)
    return sum(recalls) / len(recalls) / 100 if recalls else None


def _recall(file: RankFile, value: float, reading: Reading) -> Interval:
    """Give a UAR the interval of a mean of independent recalls, which the file holds too."""
    section = file.section(SER)
    if reading.sizes is None or section is None or not _is_known(file, SER, "uar", reading.split):
        return Interval(value)
    rows = [row for row in section.records() if (row["split"], row["ser"]) == (reading.split, "anon")]
    recalls = [float(cell) / 100 for name, cell in rows[0].items() if name.startswith("ACC_")]
    if len(rows) != 1 or len(recalls) < 2:
        return Interval(value)
    each = reading.sizes.utterances[0] / len(recalls) / design_effect(*reading.sizes.utterances, reading.alike["uar"])
    variance = sum(recall * (1 - recall) / each for recall in recalls) / len(recalls) ** 2
    reach = 1.96 * math.sqrt(variance)
    return Interval(value, max(value - reach, 0.0), min(value + reach, 1.0))


def _together(measures: Sequence[Interval], average: Average, weights: Sequence[float] = ()) -> Interval:
    """Join the EERs of sets and sexes: their mean, plain or weighted, as of independent ones, or the least."""
    if average == "least":
        return min(measures, key=lambda measure: measure.value)
    shares = [weight / sum(weights) for weight in weights] or [1 / len(measures)] * len(measures)
    value = sum(share * measure.value for share, measure in zip(shares, measures, strict=True))
    if not all(measure.has_interval for measure in measures):
        return Interval(value)
    down, up = (
        math.hypot(*(share * (value.value - end) for share, value, end in zip(shares, measures, ends, strict=True)))
        for ends in ([measure.low for measure in measures], [measure.high for measure in measures])
    )
    return Interval(value, value - down, value + up)


def _from_2022(path: Path, name: str, reading: Reading) -> ComparedSystem:
    results = read_results(path)
    averages = recompute_averages(results)
    eer = averages.get(f"Weighted average EER {reading.split} anon")
    if eer is None:
        text = f"the EERs of anonymised speech of the split {reading.split!r} are not all there"
        raise DataError(text, file=path, remedy="give a summary of VoicePrivacy 2022 with all of its sets")
    found = {
        "wer": (averages.get(f"Average WER {reading.split} anon"), 100),
        "f0": (averages.get(f"Weighted average pitch correlation {reading.split}"), 1),
    }
    utilities = {key: Interval(value / unit) for key, (value, unit) in found.items() if value is not None}
    note = f"{path.name}: weighted averages of VoicePrivacy 2022, without intervals"
    return ComparedSystem(name or _name(path), Interval(eer / 100), utilities, (note,))


def _from_results(path: Path, name: str, reading: Reading) -> ComparedSystem:
    """Read our own results: the least EER over attackers, of each set and sex."""
    results = load_results(path)
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in filter(_is_mapping, results["conditions"]):
        dataset = str(row.get("dataset", ""))
        is_counted = _is_of(dataset, reading.split) and reading.counts(dataset)
        if row.get("scenario") == SCENARIO_ORDER[-1] and is_counted:
            rows.setdefault((str(row.get("dataset", "")), str(row.get("gender", "all"))), []).append(row)
    best = {group: measure for group, part in rows.items() if (measure := condition_eer(strongest(part))) is not None}
    sexes = {group: measure for group, measure in best.items() if group[1] != "all"}
    chosen = sexes or best
    if not chosen:
        remedy = "run the recipe with a semi-informed attacker"
        raise DataError(f"no EER of a semi-informed attacker on sets {reading.split!r}", file=path, remedy=remedy)
    utilities = {}
    utility = _mapping(results, "utility")
    for key in ("wer", "cer", "uar", "f0"):
        rates = utility.get(key)
        if key != "uar" and isinstance(rates, Mapping) and not {"value", "anonymised"} & rates.keys():
            rates = {dataset: inner for dataset, inner in rates.items() if reading.counts(str(dataset))}
        blocks = _blocks(rates, reading.split)
        measures = [measure for block in blocks if (measure := utility_rate(block)) is not None]
        if measures:
            utilities[key] = _together(measures, "mean")
    listed = [f"{dataset} {sex}" for dataset, sex in sorted(chosen)]
    # without lists by sex there was one across them, which rank files call so
    sets = tuple(f"{dataset} {'mixed' if sex == 'all' else sex}" for dataset, sex in sorted(chosen))
    label = name or str(_mapping(results, "anonymiser").get("name") or _name(path))
    weights = _weights(results, [dataset for dataset, _ in chosen])
    eer = _together(list(chosen.values()), reading.average, weights)
    weighted = ", weighted as the challenge does" if weights and reading.average == "mean" else ""
    return ComparedSystem(label, eer, utilities, (f"{path}: EER of {', '.join(listed)}{weighted}",), sets)


def split_of(dataset: str) -> tuple[str, str]:
    """Return a set as rank files name it, and its split; blank where the name tells none.

    Examples
    --------
    >>> split_of("libri_test"), split_of("vctk_dev_common"), split_of("mine")
    (('libri', 'test'), ('vctk_common', 'dev'), ('mine', ''))
    """
    match = _SET.fullmatch(dataset)
    return (dataset, "") if match is None else (match["corpus"] + (match["subset"] or ""), match["split"])


def _is_of(dataset: str, split: str) -> bool:
    """Return whether a set belongs to a split; one that names none belongs to each.

    Examples
    --------
    >>> [_is_of(name, "test") for name in ("libri_test", "vctk_test_common", "libri_dev", "mine")]
    [True, True, False, True]
    """
    match = _SET.fullmatch(dataset)
    return match is None or match["split"] == split


def _weights(results: Mapping[str, Any], datasets: Sequence[str]) -> list[float]:
    """Return the challenge's weight of each set, where the results are configured with one for all of them."""
    weights = _mapping(_mapping(_mapping(results, "config"), "challenge"), "weights")
    matches = [_SET.fullmatch(dataset) for dataset in datasets]
    found = [weights.get(match["corpus"] + (match["subset"] or "")) for match in matches if match]
    known = [float(weight) for weight in found if isinstance(weight, (int, float)) and weight > 0]
    return known if len(known) == len(datasets) else []


def load_results(path: Path) -> dict[str, Any]:
    """Read ``results.json`` as far as systems are compared by it."""
    results = load_json(path)
    if not isinstance(results, dict) or not isinstance(results.get("conditions"), list):
        raise DataError("expected results with 'conditions'", file=path, remedy="give a results.json of the recipe")
    return results


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _mapping(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What stands under a name, where that is a mapping; else an empty one."""
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def condition_eer(row: Mapping[str, Any]) -> Interval | None:
    """EER of a condition, with its interval: a number, or the reading ``rocch`` of several."""
    eer, intervals = row.get("eer"), _mapping(row, "intervals")
    value = eer.get("rocch") if isinstance(eer, Mapping) else eer
    ends = intervals.get("eer.rocch", intervals.get("eer"))
    return _number(value, ends)


def _blocks(value: Any, split: str) -> list[Mapping[str, Any]]:
    """Results on anonymised speech: one flat block, or one for each set of a split, with ``anonymised`` or without."""
    if not isinstance(value, Mapping):
        return []
    if isinstance(value.get("anonymised"), Mapping):
        return [value["anonymised"]]
    if "value" in value:
        return [value]
    return [block for name, inner in value.items() if _is_of(str(name), split) for block in _blocks(inner, split)]


def utility_rate(block: Mapping[str, Any]) -> Interval | None:
    """Rate of a block of utility, with its interval; None where it holds none."""
    return _number(block.get("value"), block.get("interval", [block.get("low"), block.get("high")]))


def _number(value: Any, ends: Any) -> Interval | None:
    if isinstance(ends, Mapping):
        ends = [ends.get("low"), ends.get("high")]
    if not isinstance(value, (int, float)):
        return None
    known = isinstance(ends, Sequence) and len(ends) == 2 and all(isinstance(end, (int, float)) for end in ends)
    return Interval(float(value), float(ends[0]), float(ends[1])) if known else Interval(float(value))


def _name(path: Path) -> str:
    for start in ("result_for_rank", "RESULTS_summary", "results"):
        if path.name.startswith(start) and path.suffix != ".json":
            return path.name.removeprefix(start).lstrip("_.") or path.name
    return path.parent.resolve().name if path.name == "results.json" else path.stem


def _origin(path: Path, eers: Sequence[Interval], sizes: Sizes | None) -> str:
    count = f"{len(eers)} EER{'s' if len(eers) > 1 else ''} anon-anon"
    guess = "without intervals" if sizes is None else "intervals guessed from the sizes of the sets"
    return f"{path.name}: {count}, {guess}"
