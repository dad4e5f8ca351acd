"""A whole VoicePrivacy challenge: every list of scores found, understood by its name, joined with its key, assessed.

Results lie in ``TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores``. The names of the enrolment and of the trial set say
the corpus, its part, the sex and who is anonymised: enrolment and trials original (o-o), trials alone (o-a), both
(a-a). What the names say is a rule of regular expressions (`NamingRule`), which a YAML file replaces (`read_rule`). The
key is always that of the original trials.

**Files of results of the VoicePrivacy Challenges 2020 and 2022**: ``results.*`` hold some lines for each list of
scores, ``RESULTS_summary_*`` one line for each number; both are read into the same form, with the weighted averages.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from evaluation.formats import join, read_scores_and_key
from evaluation.metrics import (
    SortedScores,
    cllr,
    eer,
    format_value,
    individual,
    min_cllr,
    population,
    sort_scores,
    tag,
)
from evaluation.plots import plot_zebra
from evaluation.reports import latex_table
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Resampling
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import (
    escape_markdown,
    format_csv,
    format_table,
    is_file,
    load_yaml,
    read_text_bytes,
    read_yaml_text,
    write_text,
)
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

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
_OF_SETS = {
    "averages": re.compile(rf"((?:Weighted a|A)verage [^:]+): {_NUMBER}$"),
    "pitch": re.compile(rf"(\S+)\s+Pitch_correlation: mean={_NUMBER} std={_NUMBER}$"),
    "gain": re.compile(rf"(?:(\S+)\s+)?Gain of voice distinctiveness : {_NUMBER}$"),
    "deid": re.compile(rf"(?:(\S+)\s+)?De-Identification : {_NUMBER}$"),
}
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
    averages: dict[str, float | None] = {}
    for split in ("dev", "test"):
        for kind, ending in (("orig", "asr"), ("anon", "asr_anon")):
            eers = {
                key: values["eer"]
                for (enrol, trial), values in results.asv.items()
                if (key := _key(trial, split, kind)) and enrol.endswith("_anon") == (kind == "anon") and "eer" in values
            }
            averages[f"Weighted average EER {split} {kind}"] = weighted_average(eers, weights)
            corpora = [f"{corpus}_{split}_{ending}" for corpus in ("libri", "vctk")]
            if all(corpus in results.wer for corpus in corpora):
                averages[f"Average WER {split} {kind}"] = sum(results.wer[corpus][0] for corpus in corpora) / 2
        for name, column in (("pitch correlation", results.pitch), ("gain of voice distinctiveness", results.gain)):
            values = {key: value for trial, value in column.items() if (key := _key(trial, split, "orig"))}
            averages[f"Weighted average {name} {split}"] = weighted_average(values, weights)
    return {name: value for name, value in averages.items() if value is not None}


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
    """Take in what a line says, if it says something that is new."""
    if (match := _WER.match(text)) and (recognised := _ASR.match(header)):
        results.wer[recognised["set"]] = (float(match[1]), int(match[2]), int(match[3]))
        return True
    found: list[tuple[dict[str, float], str, str]] = []  # column, name and value
    for column, pattern in _OF_SETS.items():
        if match := pattern.match(text):
            found.append((getattr(results, column), match[1] or header, match[2]))
    if sets := _ASV.match(header):
        key = (sets["enrol"], sets["trial"])
        for name, pattern in _LINES.items():
            if match := pattern.match(text):
                values = results.asv.setdefault(key, {})
                names = ("min_cllr", "cllr") if name == "cllr" else (name,)
                found += [(values, *pair) for pair in zip(names, match.groups(), strict=False)]
                if name == "individual":
                    results.tags[key] = match[2]
    if not found or any(name in values for values, name, _ in found):
        return False
    for values, name, value in found:
        values[name] = float(value)
    return True


def _key(trial: str, split: str, kind: str) -> tuple[str, str] | None:
    match = _SET.match(trial)
    if match is None or match["split"] != split or bool(match["anon"]) != (kind == "anon"):
        return None
    return match["corpus"] + (match["subset"] or ""), match["sex"]


@one_line
@dataclass(frozen=True)
class NamingRule:
    """How names are read.

    Attributes
    ----------
    scores : str
        Regular expression of a file of scores, as a path below the results with ``/``. Groups: team, system, enrol,
        trial.
    enrol : str
        Regular expression of the name of an enrolment set. Group: anon, empty for original speech.
    trial : str
        Regular expression of the name of a trial set. Groups: corpus, split, sex, and if there are, subset and anon.
    keys : tuple of str
        Where the key lies below the folder of keys, the first that exists; groups of `trial`, and trial, in braces.
    weights : mapping of str to float
        Share of each corpus (with its subset) in the averages, for each sex.
    """

    scores: str
    enrol: str
    trial: str
    keys: tuple[str, ...]
    weights: Mapping[str, float]


VOICEPRIVACY = NamingRule(
    scores=r"(?P<team>[^/]+)/(?P<system>[^/]+)/results[^/]*/ASV-(?P<enrol>[^/-]+)-(?P<trial>[^/-]+)/scores(\.gz)?",
    enrol=r".+_enrolls(?P<anon>_.+)?",
    trial=r"(?P<corpus>[^_]+)_(?P<split>[^_]+)_trials_(?P<sex>[fm])(?P<subset>_common)?(?P<anon>_(?!common).+)?",
    keys=(
        "{corpus}_{split}_trials_{sex}{subset}/trials",
        "{corpus}_{split}_trials_{sex}{subset}",
        "{trial}/trials",
        "{trial}",
    ),
    weights=WEIGHTS,
)


@one_line
@dataclass(frozen=True)
class ScoreList:
    """One list of scores: whose it is, what it is of, and where it lies with its key.

    Attributes
    ----------
    team, system : str
        Whose it is.
    corpus, split, subset, sex : str
        What the trials are of; the subset may be empty.
    condition : str
        Who is anonymised, enrolment and trials: ``o-o``, ``o-a`` or ``a-a``.
    scores, key : Path
        Where they lie.
    """

    team: str
    system: str
    corpus: str
    split: str
    subset: str
    sex: str
    condition: str
    scores: Path
    key: Path

    @property
    def name(self) -> str:
        """Team and system."""
        return f"{self.team}/{self.system}"

    @property
    def dataset(self) -> str:
        """Corpus, part and subset, as in ``vctk_dev_common``."""
        return f"{self.corpus}_{self.split}{self.subset}"


@one_line
@dataclass(frozen=True)
class Assessment:
    """What a list of scores tells.

    Attributes
    ----------
    source : ScoreList
        Which scores.
    scores : SortedScores
        The scores, sorted.
    values : dict of str to float
        ``eer.rocch``, ``eer.kaldi``, ``zebra.population``, ``zebra.individual``, ``cllr``, ``min_cllr``.
    tag : str
        ZEBRA's category.
    intervals : dict of str to Interval
        Of the values, where resamples were asked for.
    """

    source: ScoreList
    scores: SortedScores
    values: dict[str, float]
    tag: str
    intervals: dict[str, Interval]


def find_score_lists(results: str | Path, keys: str | Path, *, rule: NamingRule = VOICEPRIVACY) -> list[ScoreList]:
    """Return the lists of scores of all teams that a folder holds.

    Parameters
    ----------
    results : path
        Folder of ``TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores``.
    keys : path
        Folder of the keys.
    rule : NamingRule
        How the names are read.

    Returns
    -------
    list of ScoreList
        In the order of their paths.

    Raises
    ------
    DataError
        If nothing is found, a name says nothing, a key is missing, or two lists are of the same; all of them together.
    """
    results, keys = Path(results), Path(keys)
    for folder in (results, keys):
        if not folder.is_dir():
            raise DataError("expected a folder", file=folder, remedy="check the path")
    problems, lists = Problems(), []
    seen: dict[tuple[str, ...], Path] = {}
    for path in sorted(entry for entry in results.rglob("*") if entry.is_file()):
        match = re.fullmatch(rule.scores, path.relative_to(results).as_posix())
        if match is None:
            continue
        try:
            listed = _understand(path, match.groupdict(), keys, rule)
        except DataError as error:
            problems.note(error)
            continue
        what = (listed.name, listed.dataset, listed.sex, listed.condition)
        if what in seen:
            problems.add(f"of the same as {seen[what]}: {' '.join(what)}", file=path, remedy="leave one of them")
        seen[what] = path
        lists.append(listed)
    problems.raise_if_any()
    if not lists:
        remedy = "expected TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores below it, or another --rule"
        raise DataError("no list of scores was found", file=results, remedy=remedy)
    return lists


def assess(
    lists: Sequence[ScoreList], *, resampling: Resampling | None = None, jobs: int | None = 1
) -> list[Assessment]:
    """Return what each list of scores tells.

    Parameters
    ----------
    lists : sequence of ScoreList
        See `find_score_lists`.
    resampling : Resampling, optional
        Of speakers, for intervals; none by default. Who speaks, an ``utt2spk`` beside the key tells.
    jobs : int, optional
        Number of workers for resamples; all cores if None.

    Returns
    -------
    list of Assessment
        In the order of the lists.

    Raises
    ------
    DataError
        With file and line, if a file is malformed or scores and key do not fit; all of them together.
    """
    problems, assessed = Problems(), []
    strangers: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:  # which each list would tell again
        strangers.append(record)
        return False

    of_speakers = logging.getLogger("evaluation.trials.speakers")
    of_speakers.addFilter(keep)
    try:
        for listed in lists:
            try:
                assessed.append(_assess(listed, resampling or Resampling(0), jobs))
            except DataError as error:
                problems.note(error)
    finally:
        of_speakers.removeFilter(keep)
    problems.raise_if_any()
    if strangers:
        told = (
            "%d of %d lists have no utt2spk beside their key: intervals take each segment that is in no target trial "
        )
        logger.warning(told + "for a speaker, and may be too narrow", len(strangers), len(lists))
    return assessed


def assessed_values(scores: SortedScores) -> dict[str, float]:
    """Return the numbers of an assessment by name; the statistic that resamples compute anew."""
    return {
        "eer.rocch": eer(scores),
        "eer.kaldi": eer(scores, method="kaldi"),
        "zebra.population": population(scores),
        "zebra.individual": individual(scores),
        "cllr": cllr(scores),
        "min_cllr": min_cllr(scores),
    }


def read_rule(path: str | Path) -> NamingRule:
    """Return a rule read from YAML; what it leaves out is as in VoicePrivacy's.

    Raises
    ------
    ConfigError
        With the file, if it is no YAML, a name is unknown, or a regular expression is broken or lacks a group.
    """
    path = Path(path)
    given: Any = load_yaml(read_yaml_text(path), file=path)[0] or {}
    known = [field.name for field in fields(NamingRule)]
    if not isinstance(given, dict) or not set(given) <= set(known):
        got = ", ".join(map(str, given)) if isinstance(given, dict) else type(given).__name__
        raise ConfigError(f"expected a mapping with names among {', '.join(known)}, got {got}", file=path)
    settings = {name: getattr(VOICEPRIVACY, name) for name in known} | given
    needed = {"scores": {"team", "system", "enrol", "trial"}, "enrol": set(), "trial": {"corpus", "split", "sex"}}
    for name, groups in needed.items():
        try:
            lacking = groups - set(re.compile(settings[name]).groupindex)
        except (re.error, TypeError) as error:
            raise ConfigError(f"{name}: expected a regular expression: {error}", file=path) from error
        if lacking:
            raise ConfigError(f"{name}: the regular expression lacks the group {', '.join(sorted(lacking))}", file=path)
    keys, weights = settings["keys"], settings["weights"]
    keys = (keys,) if isinstance(keys, str) else keys
    if not isinstance(weights, Mapping) or not all(isinstance(weight, (int, float)) for weight in weights.values()):
        raise ConfigError("weights: expected a mapping of corpora to numbers", file=path)
    if not isinstance(keys, (list, tuple)) or not all(isinstance(template, str) for template in keys):
        raise ConfigError("keys: expected a list of paths", file=path)
    return NamingRule(settings["scores"], settings["enrol"], settings["trial"], tuple(keys), dict(weights))


def _understand(path: Path, names: dict[str, str], keys: Path, rule: NamingRule) -> ScoreList:
    remedy = "rename it, or give another --rule"
    enrol = re.fullmatch(rule.enrol, names["enrol"])
    trial = re.fullmatch(rule.trial, names["trial"])
    for match, what in ((enrol, "enrol"), (trial, "trial")):
        if match is None:
            text = f"expected the name of {what} set as {getattr(rule, what)}, got {names[what]!r}"
            raise DataError(text, file=path, remedy=remedy)
    assert enrol is not None
    assert trial is not None
    said = {"subset": "", "anon": ""} | {name: text or "" for name, text in trial.groupdict().items()}
    anonymised = "a" if said["anon"] else "o"
    enrolled = "a" if enrol.groupdict().get("anon") else "o"
    try:
        candidates = [keys / template.format(**(names | said)) for template in rule.keys]
    except (KeyError, IndexError, ValueError) as error:
        raise ConfigError(f"keys: no such group as {error} in the names", remedy=remedy) from error
    key = next((path for path in candidates if is_file(path)), None)
    if key is None:
        looked = ", ".join(path.relative_to(keys).as_posix() for path in candidates)
        raise DataError(f"no key for it below {keys}: looked for {looked}", file=path, remedy="check --key")
    place: dict[str, Any] = {name: said[name] for name in ("corpus", "split", "subset", "sex")}
    place |= {"condition": f"{enrolled}-{anonymised}", "scores": path, "key": key}
    return ScoreList(names["team"], names["system"], **place)


def _assess(listed: ScoreList, resampling: Resampling, jobs: int | None) -> Assessment:
    scores, key = read_scores_and_key(listed.scores, listed.key)
    target, nontarget = join(scores, key, files=(listed.scores, listed.key))
    try:
        sorted_scores = sort_scores(target, nontarget)
    except DataError as error:
        raise DataError(error.text, file=listed.key, remedy=error.remedy) from error
    values = assessed_values(sorted_scores)
    intervals: dict[str, Interval] = {}
    if resampling.replicates:
        from evaluation.uncertainty import confidence_intervals, sample_from

        beside = listed.key.parent / "utt2spk"
        speakers = read_speakers(beside) if is_file(beside) else None
        sample, _ = sample_from(scores, key, segment_speakers=speakers, ids_are_speakers=True)
        intervals = confidence_intervals(sample, assessed_values, resampling, jobs=jobs)
    return Assessment(listed, sorted_scores, values, tag(values["zebra.individual"]), intervals)


# the columns of the ZEBRA toolkit: name, value of an assessment, factor, decimals
_COLUMNS = (
    ("ROCCH-EER [%]", "eer.rocch", 100, 2),
    ("ZEBRA Population [bit]", "zebra.population", 1, 3),
    ("ZEBRA Individual", "zebra.individual", 1, 3),
    ("ZEBRA Category", "", 1, 0),
    ("Cllr", "cllr", 1, 2),
    ("min Cllr", "min_cllr", 1, 2),
)
_NAMES = ("System", "Gender", "Dataset", "Task")


def write_challenge(
    assessed: Sequence[Assessment],
    output: str | Path,
    *,
    rule: NamingRule = VOICEPRIVACY,
    extensions: Sequence[str] = ("png",),
) -> None:
    """Write everything about a challenge into a folder.

    Parameters
    ----------
    assessed : sequence of Assessment
        See `evaluation.challenges.assess`.
    output : path
        The folder: ``results.csv`` (all digits), ``results.md`` and ``results.tex`` (rounded; with intervals as two
        tables, so that they fit a page), ``averages.csv``, ``<team>-<system>.md``, and plots
        ``ZEBRA-multiple_conditions_<team>-<system>`` and ``ZEBRA-task_wise_<dataset>-<task>-<gender>``, each also
        ``ZEBRA-sorted-...``.
    rule : NamingRule
        Holds the weights of the averages.
    extensions : sequence of str
        Formats of the plots, such as ``"png"``; none for no plots.
    """
    output = Path(output)
    if not assessed:
        raise DataError("expected assessed scores to write, got none")
    systems = {assessment.source.name for assessment in assessed}
    if len({_file_name(name) for name in systems}) < len(systems):
        raise DataError("two systems would get files of one name", remedy="rename a team or a system")
    assessed = sorted(assessed, key=_place)
    columns = [*_NAMES, *_headers(assessed)]
    write_text(output / "results.csv", format_csv(columns, [_exact(assessment) for assessment in assessed]))
    rows = [_row(assessment) for assessment in assessed]
    averages = average_rows(assessed, rule)
    table = format_table(rows, markdown=True)
    write_text(output / "results.md", f"# Results\n\n{table}\n\n{_averages_text(averages)}")
    titles = [title for title, *_ in _COLUMNS]
    parts = [titles[:4], titles[4:]] if any(assessment.intervals for assessment in assessed) else [titles]
    write_text(output / "results.tex", "\n".join(_as_tex([*_NAMES, *part], rows) for part in parts))
    if averages:
        write_text(output / "averages.csv", format_csv(list(averages[0]), averages))
    for name, part in _by(assessed, lambda assessment: assessment.source.name).items():
        ranking = format_table([_row(assessment) for assessment in part], markdown=True)
        theirs = _averages_text([row for row in averages if row["System"] == name])
        write_text(output / f"{_file_name(name)}.md", f"# {escape_markdown(name)}\n\n{ranking}\n\n{theirs}")
    if extensions:
        _plot(assessed, output, extensions)


def average_rows(assessed: Sequence[Assessment], rule: NamingRule = VOICEPRIVACY) -> list[dict[str, Any]]:
    """Return weighted averages over corpora and sexes, for each system, part and condition that is complete.

    Of VoicePrivacy 2022: 0.25 for each sex of libri, 0.20 of vctk and 0.05 of vctk_common.
    """
    rows = []
    for (name, split, condition), part in _by(assessed, _part_name).items():
        row: dict[str, Any] = {"System": name, "Split": split, "Task": condition}
        for title, metric, factor in (
            ("EER (Kaldi) [%]", "eer.kaldi", 100),
            ("ROCCH-EER [%]", "eer.rocch", 100),
            ("ZEBRA Population [bit]", "zebra.population", 1),
        ):
            values = {}
            for assessment in part:
                source = assessment.source
                values[source.corpus + source.subset, source.sex] = factor * assessment.values[metric]
            row[title] = weighted_average(values, rule.weights)
        if row["ROCCH-EER [%]"] is not None:
            rows.append(row)
    return rows


def _part_name(assessment: Assessment) -> tuple[str, str, str]:
    return assessment.source.name, assessment.source.split, assessment.source.condition


def _headers(assessed: Sequence[Assessment]) -> list[str]:
    headers = [title for title, *_ in _COLUMNS]
    if any(assessment.intervals for assessment in assessed):
        headers += [f"{title} {end}" for title, metric, *_ in _COLUMNS if metric for end in ("low", "high")]
    return headers


def _place(assessment: Assessment) -> tuple[Any, ...]:
    """Order by system, sex, set and condition; original speech before anonymised."""
    source = assessment.source
    return source.name, source.sex, source.dataset, [side != "o" for side in source.condition.split("-")]


def _names(assessment: Assessment) -> dict[str, str]:
    source = assessment.source
    return dict(zip(_NAMES, (source.name, source.sex, source.dataset, source.condition), strict=True))


def _exact(assessment: Assessment) -> dict[str, Any]:
    """A row with all digits, and columns for the ends of intervals."""
    row: dict[str, Any] = _names(assessment)
    for title, metric, factor, _ in _COLUMNS:
        row[title] = float(factor * assessment.values[metric]) if metric else assessment.tag
        if metric in assessment.intervals:
            interval = assessment.intervals[metric]
            row |= {f"{title} low": float(factor * interval.low), f"{title} high": float(factor * interval.high)}
    return {name: "" if value != value else value for name, value in row.items()}


def _row(assessment: Assessment) -> dict[str, str]:
    """A row to be read, with intervals in brackets."""
    row = _names(assessment)
    for title, metric, factor, decimals in _COLUMNS:
        value, found = assessment.values.get(metric, math.nan), assessment.intervals.get(metric)
        numbers = [value, *([found.low, found.high] if found is not None and found.has_interval else [])]
        texts = [_shown(factor * number, metric, decimals) for number in numbers]
        row[title] = assessment.tag if not metric else texts[0] + (f" [{', '.join(texts[1:])}]" if texts[1:] else "")
    return row


def _shown(value: float, metric: str, decimals: int) -> str:
    if math.isnan(value):
        return "-"
    return format_value(value) if metric.startswith("zebra") else f"{value:.{decimals}f}"


def _as_tex(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out a table that ``\\input`` takes, without packages, in small letters."""
    table = latex_table(columns, rows, {*_NAMES, "ZEBRA Category"})
    return "{\\footnotesize\n" + table.rstrip("\n") + "\\par}\n"


def _averages_text(averages: Sequence[Mapping[str, Any]]) -> str:
    if not averages:
        return "No weighted average: not all sets of a part and condition are there.\n"
    columns = {name: ".3f" if "[" in name else "" for name in averages[0]}
    return f"## Weighted averages\n\n{format_table(averages, columns, markdown=True)}\n"


def _plot(assessed: Sequence[Assessment], output: Path, extensions: Sequence[str]) -> None:
    """Draw each system over its conditions and each condition over its systems; both keep their looks throughout."""
    series = (
        ("multiple_conditions_", lambda source: source.name, lambda source: _condition(source, " ")),
        ("task_wise_", lambda source: _condition(source, "-"), lambda source: source.name),
    )
    for start, of_picture, of_line in series:
        names = sorted({of_line(assessment.source) for assessment in assessed})
        numbers = {name: number for number, name in enumerate(names)}
        for name, part in _by(assessed, lambda assessment: of_picture(assessment.source)).items():  # noqa: B023
            lines = [(of_line(assessment.source), assessment.scores) for assessment in part]
            for prefix, sort in (("ZEBRA-", False), ("ZEBRA-sorted-", True)):
                paths = [output / f"{prefix}{start}{_file_name(name)}.{extension}" for extension in extensions]
                plot_zebra(lines, path=paths, title=name.replace("/", ": "), sort=sort, numbers=numbers)


def _condition(source: ScoreList, between: str) -> str:
    return between.join([source.dataset, source.condition, source.sex])


def _by(assessed: Sequence[Assessment], what: Any) -> dict[Any, list[Assessment]]:
    groups: dict[Any, list[Assessment]] = {}
    for assessment in assessed:
        groups.setdefault(what(assessment), []).append(assessment)
    return groups


def _file_name(name: str) -> str:
    return name.replace("/", "-")
