"""Files of results of the VoicePrivacy Challenges 2020 and 2022, and the weighted averages of 2022.

``results.*`` hold some lines for each list of scores, ``RESULTS_summary_*`` one line for each number; both are read
into the same form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spkbase.errors import DataError
from spkbase.files import read_text_bytes
from spkbase.showing import one_line

WEIGHTS: Mapping[str, float] = {"libri": 0.25, "vctk": 0.20, "vctk_common": 0.05}

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan))"
_ASV = re.compile(r"ASV-(?P<enrol>[^-\s]+)-(?P<trial>[^-\s]+)$")
_ASR = re.compile(r"ASR-(?P<set>\S+)$")
_LINES = {
    "eer": re.compile(rf"EER: {_NUMBER}%$"),
    "cllr": re.compile(rf"Cllr \(min/act\): {_NUMBER}/{_NUMBER}$"),
    "rocch_eer": re.compile(rf"ROCCH-EER: {_NUMBER}%$"),
    "linkability": re.compile(rf"linkability: {_NUMBER}$"),
    "population": re.compile(rf"Population: {_NUMBER} bit$"),
    "individual": re.compile(rf"Individual: {_NUMBER} \((\w)\)$"),
}
_WER = re.compile(rf"%WER {_NUMBER} \[ (\d{{1,15}}) / (\d{{1,15}}), .*\] (\S+)$")
_PITCH = re.compile(rf"(\S+)\s+Pitch_correlation: mean={_NUMBER} std={_NUMBER}$")
_GAIN = re.compile(rf"(?:(\S+)\s+)?Gain of voice distinctiveness : {_NUMBER}$")
_DEID = re.compile(rf"(?:(\S+)\s+)?De-Identification : {_NUMBER}$")
_AVERAGE = re.compile(rf"((?:Weighted a|A)verage [^:]+): {_NUMBER}$")
_SET = re.compile(r"(?P<corpus>[^_]+)_(?P<split>[^_]+)_trials_(?P<sex>[fm])(?P<subset>_common)?(?P<anon>_anon)?$")


@one_line
@dataclass(frozen=True)
class Results2022:
    """What such a file says.

    Parameters
    ----------
    asv : dict of (str, str) to dict of str to float
        For each (enrolment set, trial set) the numbers ``eer`` and ``rocch_eer`` (percent), ``min_cllr``, ``cllr``,
        ``linkability``, ``population`` (bit), ``individual``, as far as they are there.
    tags : dict of (str, str) to str
        ZEBRA's category of each.
    wer : dict of str to (float, int, int)
        For each set of a recogniser its word error rate (percent), number of errors and of words; the last language
        model of the file.
    pitch : dict of str to float
        Mean pitch correlation of each trial set.
    gain : dict of str to float
        Gain of voice distinctiveness of each trial set, in dB.
    deid : dict of str to float
        De-identification of each trial set.
    averages : dict of str to float
        The averages that the file states, by their names.
    """

    asv: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    tags: dict[tuple[str, str], str] = field(default_factory=dict)
    wer: dict[str, tuple[float, int, int]] = field(default_factory=dict)
    pitch: dict[str, float] = field(default_factory=dict)
    gain: dict[str, float] = field(default_factory=dict)
    deid: dict[str, float] = field(default_factory=dict)
    averages: dict[str, float] = field(default_factory=dict)


def read_results(path: str | Path) -> Results2022:
    """Read ``results.txt``, ``results.*`` or ``RESULTS_summary_*``.

    Raises
    ------
    DataError
        With file and line, if a line is of none of the known kinds, or a number is there twice; or the file is empty.
    """
    path = Path(path)
    results, header = Results2022(), ""
    for number, line in enumerate(read_text_bytes(path).decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        if not text:
            continue
        word, _, rest = text.partition(" ")
        if not rest or word.startswith(("ASV-", "ASR-")):
            header, text = word, rest.strip()
            if not text:
                continue
        if not _take(results, header, text):
            raise DataError(
                f"expected a line of VoicePrivacy results, got {text[:60]!r}",
                file=path,
                line=number,
                remedy="give a results.txt or a summary of the challenge of 2020 or 2022",
            )
    if not (results.asv or results.wer):
        raise DataError("expected results, got an empty file", file=path)
    return results


def recompute_averages(results: Results2022, weights: Mapping[str, float] = WEIGHTS) -> dict[str, float]:
    """Compute the averages of VoicePrivacy 2022 from the single results, by the names that summaries give them.

    EER, pitch correlation and gain are averaged by corpus and sex with the weights, word error rates plainly over the
    corpora. An average whose sets are not all there is left out.

    Parameters
    ----------
    results : Results2022
        See `read_results`.
    weights : mapping of str to float
        Share of each corpus (with its subset), for each sex.
    """
    averages: dict[str, float] = {}
    for kind in ("orig", "anon"):
        for split in ("dev", "test"):
            eers = {
                key: values["eer"]
                for (enrol, trial), values in results.asv.items()
                if (key := _key(trial, split, kind)) and enrol.endswith("_anon") == (kind == "anon") and "eer" in values
            }
            _put(averages, f"Weighted average EER {split} {kind}", weighted_average(eers, weights))
    for kind, ending in (("orig", "asr"), ("anon", "asr_anon")):
        for split in ("dev", "test"):
            rates = [results.wer.get(f"{corpus}_{split}_{ending}") for corpus in ("libri", "vctk")]
            known = [rate[0] for rate in rates if rate is not None]
            _put(averages, f"Average WER {split} {kind}", sum(known) / 2 if len(known) == 2 else None)
    for name, column in (("pitch correlation", results.pitch), ("gain of voice distinctiveness", results.gain)):
        for split in ("dev", "test"):
            values = {key: value for trial, value in column.items() if (key := _key(trial, split, "orig"))}
            _put(averages, f"Weighted average {name} {split}", weighted_average(values, weights))
    return averages


def weighted_average(values: Mapping[tuple[str, str], float], weights: Mapping[str, float] = WEIGHTS) -> float | None:
    """Average over corpora and sexes, or None if not all of them are there.

    Parameters
    ----------
    values : mapping of (str, str) to float
        By corpus (with its subset, such as ``vctk_common``) and sex (``f``, ``m``).
    weights : mapping of str to float
        By corpus, for each sex.

    Examples
    --------
    >>> weighted_average({("a", "f"): 10.0, ("a", "m"): 20.0}, {"a": 0.5})
    15.0
    """
    wanted = [(corpus, sex) for corpus in weights for sex in ("f", "m")]
    if not all(group in values for group in wanted):
        return None
    total = sum(weights[corpus] for corpus, _ in wanted)
    return sum(weights[group[0]] * values[group] for group in wanted) / total


def _take(results: Results2022, header: str, text: str) -> bool:
    """Take in what a line says, if it says something."""
    if match := _AVERAGE.match(text):
        return _new(results.averages, match[1], float(match[2]))
    if match := _PITCH.match(text):
        return _new(results.pitch, match[1], float(match[2]))
    if match := _GAIN.match(text):
        return _new(results.gain, match[1] or header, float(match[2]))
    if match := _DEID.match(text):
        return _new(results.deid, match[1] or header, float(match[2]))
    if (match := _WER.match(text)) and (recognised := _ASR.match(header)):
        results.wer[recognised["set"]] = (float(match[1]), int(match[2]), int(match[3]))
        return True
    sets = _ASV.match(header)
    if sets is None:
        return False
    key = (sets["enrol"], sets["trial"])
    for name, pattern in _LINES.items():
        if not (match := pattern.match(text)):
            continue
        values = results.asv.setdefault(key, {})
        if name == "cllr":
            return _new(values, "min_cllr", float(match[1])) and _new(values, "cllr", float(match[2]))
        if name == "individual":
            results.tags[key] = match[2]
        return _new(values, name, float(match[1]))
    return False


def _new(column: dict[str, float], name: str, value: float) -> bool:
    if name in column:
        return False
    column[name] = value
    return True


def _put(averages: dict[str, float], name: str, value: float | None) -> None:
    if value is not None:
        averages[name] = value


def _key(trial: str, split: str, kind: str) -> tuple[str, str] | None:
    match = _SET.match(trial)
    if match is None or match["split"] != split or bool(match["anon"]) != (kind == "anon"):
        return None
    return match["corpus"] + (match["subset"] or ""), match["sex"]
