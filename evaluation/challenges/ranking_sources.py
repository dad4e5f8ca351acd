"""Systems to order, from result files: 2024's ``result_for_rank*``, our ``results.json``, 2022's summaries.

Files of the challenges hold rates without intervals, and do not tell whose EER they hold; ours do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evaluation.challenges.rank_files import ASR, ASV, ASV_ANON, PROTOCOL, SER, RankFile, read_rank_file
from evaluation.challenges.ranking import ComparedSystem
from evaluation.challenges.team_scores import read_results, recompute_averages
from evaluation.metrics import reversal_at
from evaluation.reports import SCENARIO_ORDER, strongest
from evaluation.uncertainty import Interval
from spkbase.errors import DataError, few
from spkbase.files import load_json
from spkbase.showing import one_line

Average = Literal["mean", "least"]

LIST_OF_A_CHALLENGE = 400
"""Target trials that a list of the challenges has at least, whose files do not tell them."""

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
    datasets : tuple of str
        Sets whose EER and WER count, by the names of rank files (``libri``, ``en``); empty for all. Emotions have sets
        of their own, and count in each case.
    """

    split: str = "test"
    average: Average = "mean"
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
    eers = [Interval(float(row["EER"]) / 100) for row in anon]
    utilities = {
        "wer": _mean_row(file, path, (ASR, "WER", "asr"), reading),
        "uar": _mean_row(file, path, (SER, "UAR", "ser"), replace(reading, datasets=())),
    }
    known = {key: Interval(value) for key, value in utilities.items() if value is not None}
    sets = tuple(sorted(f"{row['dataset']}_{row['split']} {row['gender']}" for row in anon))
    count = f"{len(eers)} EER{'s' if len(eers) > 1 else ''} anon-anon"
    notes = (f"{path.name}: {count}, without intervals", *_stronger_lazy(file, anon))
    told = file.section(PROTOCOL)
    attacker = {} if told is None else {"attacker": _named(told.records()[0])}
    eer = _together(eers, reading.average)
    broken = _broken({f"{row['dataset']} {row['gender']}": (float(row["EER"]) / 100, math.nan) for row in anon})
    return ComparedSystem(name or _name(path), eer, known, notes, sets, broken=broken, **attacker)


def _broken(rates: Mapping[str, tuple[float, float]]) -> str:
    """Say of which lists, by their EER and number of target trials, scores are the wrong way round, or constant."""
    turned, constant = [], []
    for where, (rate, n_target) in rates.items():
        found = reversal_at(rate, LIST_OF_A_CHALLENGE if math.isnan(n_target) else n_target)
        turned += [f"{where} ({100 * rate:.4g} %)"] if found is not None and found.clear else []
        constant += [where] if rate == 0.5 else []
    texts = [f"the wrong way round: {few(turned)}"] if turned else []
    texts += [f"constant (EER of exactly 50 %): {few(constant)}"] if constant else []
    return f"scores are {'; or '.join(texts)}" if texts else ""


def _stronger_lazy(file: RankFile, anon: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Tell where the lazy-informed EER is below the semi-informed one, who knows more: privacy is overestimated."""
    for row in anon:
        where = {name: str(row[name]) for name in ("dataset", "split", "gender", "enrollment", "trial")}
        lazy = file.value(ASV, "EER", **where)
        if lazy is not None and lazy < row["EER"]:
            text = f"the lazy-informed EER of {row['dataset']} {row['gender']}, {lazy:g} %, is below the semi-informed"
            yield f"{text} {row['EER']:g} %: privacy is overestimated, the semi-informed attacker is too weak"


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
    broken = _broken({"weighted average": (eer / 100, math.nan)})
    return ComparedSystem(name or _name(path), Interval(eer / 100), utilities, (note,), broken=broken)


def _from_results(path: Path, name: str, reading: Reading) -> ComparedSystem:
    """Read our own results: the EER of each set and sex, see `chosen_eer`."""
    results = load_results(path)
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in filter(_is_mapping, results["conditions"]):
        dataset = str(row.get("dataset", ""))
        is_counted = _is_of(dataset, reading.split) and reading.counts(dataset)
        if row.get("scenario") == SCENARIO_ORDER[-1] and is_counted:
            rows.setdefault((str(row.get("dataset", "")), str(row.get("gender", "all"))), []).append(row)
    best = {group: measure for group, part in rows.items() if (measure := chosen_eer(results, part)) is not None}
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
    protocol, most = _mapping(results, "protocol"), max(len(rows[group]) for group in chosen)
    attacker = _named(protocol) if protocol else f"strongest of {most} (rocch)"
    notes = (f"{path}: EER of {', '.join(listed)}{weighted}",)
    measured = [_chosen(results, rows[group]) or {} for group in sorted(chosen)]
    rates = [(_reading(row, "interpolated"), row.get("n_target", math.nan)) for row in measured]
    broken = _broken({where: rate for where, rate in zip(listed, rates, strict=True) if isinstance(rate[0], float)})
    return ComparedSystem(label, eer, utilities, notes, sets, attacker, broken)


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


def chosen_eer(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Interval | None:
    """EER of a condition, with its interval: that of the attacker and reading which the results name for a challenge.

    Where they name none, that of the strongest attacker by the ROC convex hull.
    """
    if (row := _chosen(results, rows)) is None:
        return None
    reading, intervals = _mapping(results, "protocol").get("reading", "rocch"), _mapping(row, "intervals")
    return _number(_reading(row, reading), intervals.get(f"eer.{reading}", intervals.get("eer")))


def _chosen(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if protocol := _mapping(results, "protocol"):
        rows = [row for row in rows if row.get("attacker") == protocol.get("attacker")]
    return strongest(rows) if rows else None


def _reading(row: Mapping[str, Any], reading: str) -> Any:
    eer = row.get("eer")
    return eer.get(reading) if isinstance(eer, Mapping) else eer


def _named(protocol: Mapping[str, Any]) -> str:
    """Whose EER it is and how it is read, of a section or block of that name."""
    return f"{protocol.get('attacker')} ({protocol.get('reading')})"


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
