"""Whole VoicePrivacy challenges: every list of scores is found by name, joined with its key and assessed.

Results lie in ``TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores`` (2020 and 2022) or in
``asv_anon<suffix>/<enrol>-<trial>/scores`` (2024). The names of the enrolment and of the trial set say
the corpus, its part, the sex and who is anonymised: enrolment and trials original (o-o), only trials (o-a), both
(a-a). The key belongs to the original trials.

The results of the VoicePrivacy Challenges 2020 and 2022 come in two forms: ``results.*`` hold some lines for each list
of scores, ``RESULTS_summary_*`` one line for each number. Both are read into the same form, with the weighted averages.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from evaluation import metrics
from evaluation.formats import join, read_scores_and_key
from evaluation.plots import plot_zebra
from evaluation.reports import latex_table
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Resampling, confidence_intervals, sample_from
from spkbase.errors import DataError, Problems, errors_of
from spkbase.files import (
    escape_markdown,
    format_csv,
    format_table,
    is_file,
    read_text_bytes,
    write_text,
)
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

WEIGHTS: Mapping[str, float] = {"libri": 0.25, "vctk": 0.20, "vctk_common": 0.05}

_N = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)"
# lines of results, by a pattern of their header whose groups are the measures
_LINES = (
    ("ASV-", rf"EER: (?P<eer>{_N})%"),
    ("ASV-", rf"Cllr \(min/act\): (?P<min_cllr>{_N})/(?P<cllr>{_N})"),
    ("ASV-", rf"ROCCH-EER: (?P<rocch_eer>{_N})%"),
    ("ASV-", rf"linkability: (?P<linkability>{_N})"),
    ("ASV-", rf"Population: (?P<population>{_N}) bit"),
    ("ASV-", rf"Individual: (?P<individual>{_N}) \(\w\)"),
    ("ASR-", rf"%WER (?P<wer>{_N}) \[ \d+ / \d+, .*\] \S+"),
    ("", rf"(?P<set>(?:Weighted a|A)verage [^:]+): (?P<averages>{_N})"),
    ("", rf"(?P<set>\S+)\s+Pitch_correlation: mean=(?P<pitch>{_N}) std={_N}"),
    ("", rf"(?:(?P<set>\S+)\s+)?Gain of voice distinctiveness : (?P<gain>{_N})"),
    ("", rf"(?:(?P<set>\S+)\s+)?De-Identification : (?P<deid>{_N})"),
)
_SCORES = re.compile(
    r"(?P<team>[^/]+)/(?P<system>[^/]+)/results[^/]*/ASV-(?P<enrol>[^/-]+)-(?P<trial>[^/-]+)/scores(\.gz)?"
)
# paths in folders of the toolkit of 2024 and in our own, where each attacker has a folder
_PAIR = re.compile(
    r"(?:.*/)?(?P<team>asv_(?:orig|anon)(?:_[^/]+)?)/(?:[^/]+_out/)?(?P<enrol>[^/-]+)-(?P<trial>[^/-]+)/"
    r"(?:(?P<system>[^/]+)/)?scores(\.gz)?"
)
_ENROL = re.compile(r".+_enrolls(?P<anon>_.+)?")
_TRIAL = re.compile(
    r"(?P<corpus>[^_]+)_(?P<split>[^_]+)_trials_(?P<sex>f|m|mixed|all)(?P<subset>_common)?(?P<anon>_(?!common).+)?"
)

# columns of the ZEBRA toolkit: value of an assessment, factor, decimals
_COLUMNS = {
    "ROCCH-EER [%]": ("eer.rocch", 100, 2),
    "ZEBRA Population [bit]": ("zebra.population", 1, 3),
    "ZEBRA Individual": ("zebra.individual", 1, 3),
    "ZEBRA Category": ("", 1, 0),
    "Cllr": ("cllr", 1, 2),
    "min Cllr": ("min_cllr", 1, 2),
}
_NAMES = ("System", "Gender", "Dataset", "Task")


def read_results(path: str | Path) -> dict[str, dict[str, float]]:
    """Read ``results.txt``, ``results.*`` or ``RESULTS_summary_*``.

    Returns
    -------
    dict of str to dict of str to float
        By measure. ``eer`` and ``rocch_eer`` (percent), ``min_cllr``, ``cllr``, ``linkability``, ``population`` (bit)
        and ``individual`` of each list, ``<enrolment set>-<trial set>``; ``wer`` (percent) of each set of a recogniser,
        by the last language model of the file; ``pitch`` (mean correlation), ``gain`` (of voice distinctiveness, dB)
        and ``deid`` of each trial set; ``averages``, as stated in the file, by name.

    Raises
    ------
    DataError
        With file and line, if the kind of a line is unknown, a number is repeated, or the file is empty.
    """
    path = Path(path)
    results: dict[str, dict[str, float]] = {}
    header = ""
    for number, line in enumerate(read_text_bytes(path).decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        word, _, rest = text.partition(" ")
        if not rest or word.startswith(("ASV-", "ASR-")):
            header = word or header
            text = rest.strip()
        if not text:
            continue
        values = _values_of_line(text, header)
        is_repeated = any(
            where in results.get(measure, {}) and measure != "wer" for measure, where in values
        )
        if not values or is_repeated:
            remedy = "give a results.txt or a summary of the challenge of 2020 or 2022"
            text = f"expected a line of VoicePrivacy results, got {text[:60]!r}"
            raise DataError(text, file=path, line=number, remedy=remedy)
        for (measure, where), value in values.items():
            results.setdefault(measure, {})[where] = value
    if not results:
        raise DataError("expected results, got an empty file", file=path)
    return results


def _values_of_line(text: str, header: str) -> dict[tuple[str, str], float]:
    """Return the values of a line below a header by measure and set."""
    values = {}
    for start, pattern in _LINES:
        match = re.fullmatch(pattern, text)
        if match and header.startswith(start):
            groups = match.groupdict()
            where = groups.pop("set", None) or header.removeprefix(start)
            for measure, value in groups.items():
                values[measure, where] = float(value)
    return values


def recompute_averages(
    results: Mapping[str, Mapping[str, float]], weights: Mapping[str, float] = WEIGHTS
) -> dict[str, float]:
    """Compute the averages of VoicePrivacy 2022 from the results of its sets, named as in summaries.

    EER, pitch correlation and gain are weighted averages over corpora and sexes; word error rates are averaged over
    corpora without weights. An average is left out if one of its sets is missing.

    Parameters
    ----------
    results : mapping of str to mapping of str to float
        See `read_results`.
    weights : mapping of str to float
        Share of each corpus (with its subset), for each sex.
    """
    rates: dict[str, dict[tuple[str, str], float]] = {}
    for measure, title in (
        ("eer", "EER"),
        ("pitch", "pitch correlation"),
        ("gain", "gain of voice distinctiveness"),
    ):
        for name, value in results.get(measure, {}).items():
            enrol, _, trial = name.rpartition("-")
            match = _TRIAL.fullmatch(trial)
            if match is None:
                continue
            is_anonymised = bool(match["anon"])
            kind = ""
            if measure == "eer":
                kind = " anon" if is_anonymised else " orig"
                is_averaged = enrol.endswith("_anon") == is_anonymised
            else:
                is_averaged = not is_anonymised
            if is_averaged:
                values = rates.setdefault(f"Weighted average {title} {match['split']}{kind}", {})
                values[match["corpus"] + (match["subset"] or ""), match["sex"]] = value
    averages = {}
    for title, values in rates.items():
        average = weighted_average(values, weights)
        if average is not None:
            averages[title] = average
    return averages | _average_word_errors(results.get("wer", {}))


def _average_word_errors(wer: Mapping[str, float]) -> dict[str, float]:
    averages = {}
    for split, (kind, ending) in product(("dev", "test"), (("orig", "asr"), ("anon", "asr_anon"))):
        total = wer.get(f"libri_{split}_{ending}", math.nan) + wer.get(
            f"vctk_{split}_{ending}", math.nan
        )
        if not math.isnan(total):
            averages[f"Average WER {split} {kind}"] = total / 2
    return averages


def weighted_average(
    values: Mapping[tuple[str, str], float], weights: Mapping[str, float] = WEIGHTS
) -> float | None:
    """Average over corpora and sexes, or None if one is missing.

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
    wanted = list(product(weights, ("f", "m")))
    if not all(group in values for group in wanted):
        return None
    total = sum(weights[corpus] for corpus, _ in wanted)
    return sum(weights[group[0]] * values[group] for group in wanted) / total


@one_line
@dataclass(frozen=True)
class ScoreList:
    """One list of scores: its system, its trials, and its files.

    Attributes
    ----------
    name : str
        Names of team and system.
    corpus, split, sex : str
        Data of the trials; the corpus with its subset, as in ``vctk_common``.
    dataset : str
        Corpus, part and subset, as in ``vctk_dev_common``.
    condition : str
        Whether enrolment and trials are anonymised: ``o-o``, ``o-a`` or ``a-a``.
    scores, key : Path
        Paths of the files.
    """

    name: str
    corpus: str
    split: str
    sex: str
    dataset: str
    condition: str
    scores: Path
    key: Path


@one_line
@dataclass(frozen=True)
class Assessment:
    """Metrics of a list of scores.

    Attributes
    ----------
    source : ScoreList
        Origin of the scores.
    scores : SortedScores
        The scores, sorted.
    values : dict of str to float
        ``eer.rocch``, ``eer.kaldi``, ``zebra.population``, ``zebra.individual``, ``cllr``, ``min_cllr``.
    intervals : dict of str to Interval
        Intervals of the values if resamples were requested.
    """

    source: ScoreList
    scores: metrics.SortedScores
    values: dict[str, float]
    intervals: dict[str, Interval]


def find_score_lists(results: str | Path, keys: str | Path) -> list[ScoreList]:
    """Return the lists of scores of all teams in a folder.

    Parameters
    ----------
    results : path
        Folder of ``TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores``; or of ``asv_orig`` and ``asv_anon*``, in which
        the toolkit of 2024 has ``<enrol>-<trial>/scores``, and our evaluations ``<enrol>-<trial>/<attacker>/scores``.
    keys : path
        Folder of the keys.

    Returns
    -------
    list of ScoreList
        In the order of their paths.

    Raises
    ------
    DataError
        With all problems: no list is found, a name has another form, a key is missing, or two lists belong to the same
        set.
    """
    results = Path(results)
    keys = Path(keys)
    for folder in (results, keys):
        if not folder.is_dir():
            raise DataError("expected a folder", file=folder, remedy="check the path")
    problems = Problems()
    lists: dict[tuple[str, ...], ScoreList] = {}
    for path in sorted(entry for entry in results.rglob("*") if entry.is_file()):
        inside = path.relative_to(results).as_posix()
        names = _SCORES.fullmatch(inside) or _PAIR.fullmatch(inside)
        if names is None:
            continue
        try:
            listed = _score_list(path, names, keys)
        except DataError as error:
            problems.note(error)
            continue
        identity = (listed.name, listed.dataset, listed.sex, listed.condition)
        if lists.setdefault(identity, listed) is not listed:
            text = f"of the same as {lists[identity].scores}: {' '.join(identity)}"
            problems.add(text, file=path, remedy="leave one of them")
    problems.raise_if_any()
    if not lists:
        remedy = "expected TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores below it"
        remedy += ", or asv_anon*/<enrol>-<trial>/scores"
        raise DataError("no list of scores found", file=results, remedy=remedy)
    return list(lists.values())


def _score_list(path: Path, names: re.Match[str], keys: Path) -> ScoreList:
    """Return the list in a file of scores, by the names in its path, with its key."""
    trial = _TRIAL.fullmatch(names["trial"])
    enrol = _ENROL.fullmatch(names["enrol"])
    if trial is None or enrol is None:
        text = f"expected sets CORPUS_SPLIT_enrolls and CORPUS_SPLIT_trials_f or _m, got {names['enrol']!r}"
        raise DataError(f"{text} and {names['trial']!r}", file=path, remedy="rename its folder")
    subset = trial["subset"] or ""
    part = f"{trial['corpus']}_{trial['split']}"
    condition = f"{'a' if enrol['anon'] else 'o'}-{'a' if trial['anon'] else 'o'}"
    original = f"{part}_trials_{trial['sex']}{subset}"
    names_of_key = [f"{original}/trials", original, f"{names['trial']}/trials", names["trial"]]
    for name in names_of_key:
        if is_file(keys / name):
            team = f"{names['team']}/{names['system'] or 'scores'}"
            corpus = trial["corpus"] + subset
            return ScoreList(
                team,
                corpus,
                trial["split"],
                trial["sex"],
                part + subset,
                condition,
                path,
                keys / name,
            )
    text = f"no key for it below {keys}: looked for {', '.join(names_of_key)}"
    raise DataError(text, file=path, remedy="check the keys")


def assess(
    lists: Sequence[ScoreList], *, resampling: Resampling | None = None, jobs: int | None = 1
) -> list[Assessment]:
    """Assess each list of scores.

    Parameters
    ----------
    lists : sequence of ScoreList
        See `find_score_lists`.
    resampling : Resampling, optional
        Resampling of speakers for intervals; none by default. Speakers are in the ``utt2spk`` of the key's folder.
    jobs : int, optional
        Number of workers for resamples; all cores if None.

    Returns
    -------
    list of Assessment
        In the order of the lists.

    Raises
    ------
    DataError
        With file and line, if files are malformed or scores and key do not match; all problems together.
    """
    problems = Problems()
    assessed = []
    warnings: list[logging.LogRecord] = []
    of_speakers = logging.getLogger("evaluation.trials.speakers")
    keep: Any = warnings.append  # every list would repeat the warnings: they are kept but not shown
    of_speakers.addFilter(keep)
    try:
        for listed in lists:
            with problems.noted():
                assessed.append(_assess(listed, resampling or Resampling(0), jobs))
    finally:
        of_speakers.removeFilter(keep)
    problems.raise_if_any()
    if warnings:
        lacking = f"{len(warnings)} of {len(lists)} lists have no utt2spk beside their key"
        text = "intervals take each segment that is in no target trial for a speaker, and may be too narrow"
        logger.warning("%s: %s", lacking, text)
    return assessed


def assessed_values(scores: metrics.SortedScores) -> dict[str, float]:
    """Return the numbers of an assessment by name: the statistic of the bootstrap."""
    return {
        "eer.rocch": metrics.eer(scores),
        "eer.kaldi": metrics.eer(scores, method="kaldi"),
        "zebra.population": metrics.population(scores),
        "zebra.individual": metrics.individual(scores),
        "cllr": metrics.cllr(scores),
        "min_cllr": metrics.min_cllr(scores),
    }


def write_challenge(
    assessed: Sequence[Assessment], output: str | Path, *, extensions: Sequence[str] = ("png",)
) -> None:
    """Write tables and plots of a challenge into a folder.

    Parameters
    ----------
    assessed : sequence of Assessment
        See `evaluation.challenges.assess`.
    output : path
        The folder: ``results.csv`` (all digits), ``results.md`` and ``results.tex`` (rounded; with intervals as two
        tables, so that they fit a page), ``averages.csv``, ``<team>-<system>.md``, and plots
        ``ZEBRA-multiple_conditions_<team>-<system>`` and ``ZEBRA-task_wise_<dataset>-<task>-<gender>``, each also
        ``ZEBRA-sorted-...``.
    extensions : sequence of str
        Formats of the plots, such as ``"png"``; none for no plots.
    """
    output = Path(output)
    if not assessed:
        raise DataError("expected assessed scores to write, got none")
    systems = sorted({assessment.source.name for assessment in assessed})
    if len({name.replace("/", "-") for name in systems}) < len(systems):
        raise DataError(
            "two systems would get files of the same name", remedy="rename a team or a system"
        )
    # by system, sex, set and condition; original speech before anonymised
    assessed = sorted(assessed, key=lambda listed: listed.source.condition, reverse=True)
    assessed.sort(key=lambda listed: (listed.source.name, listed.source.sex, listed.source.dataset))
    exact = [_exact_row(assessment) for assessment in assessed]
    rows = [_rounded_row(assessment) for assessment in assessed]
    averages = average_rows(assessed)
    write_text(output / "results.csv", format_csv(list(exact[0]), exact))
    write_text(output / "results.md", _page("Results", rows, averages))
    write_text(
        output / "results.tex", _latex_tables(rows, has_intervals=len(exact[0]) > len(rows[0]))
    )
    if averages:
        write_text(output / "averages.csv", format_csv(list(averages[0]), averages))
    for name in systems:
        own_rows = [row for row in rows if row["System"] == name]
        own_averages = [row for row in averages if row["System"] == name]
        write_text(
            output / f"{name.replace('/', '-')}.md",
            _page(escape_markdown(name), own_rows, own_averages),
        )
    for extension in extensions:
        _plot(assessed, output, extension)


def _latex_tables(rows: Sequence[Mapping[str, Any]], *, has_intervals: bool) -> str:
    """Return the rows as a table in LaTeX, or as two that fit a page if there are intervals."""
    titles = list(_COLUMNS)
    parts = [titles[:4], titles[4:]] if has_intervals else [titles]
    tables = []
    for part in parts:
        table = latex_table([*_NAMES, *part], rows, {*_NAMES, "ZEBRA Category"}).rstrip("\n")
        tables.append(f"{{\\footnotesize\n{table}\\par}}\n")
    return "\n".join(tables)


def average_rows(assessed: Sequence[Assessment]) -> list[dict[str, Any]]:
    """Return weighted averages over corpora and sexes, for each system, part and condition that is complete.

    Of VoicePrivacy 2022: 0.25 for each sex of libri, 0.20 of vctk and 0.05 of vctk_common.
    """
    parts = _grouped(assessed, lambda source: (source.name, source.split, source.condition))
    columns = (
        ("EER (Kaldi) [%]", "eer.kaldi", 100),
        ("ROCCH-EER [%]", "eer.rocch", 100),
        ("ZEBRA Population [bit]", "zebra.population", 1),
    )
    rows = []
    for (name, split, condition), part in parts.items():
        row: dict[str, Any] = {"System": name, "Split": split, "Task": condition}
        for title, metric, factor in columns:
            values = {}
            for assessment in part:
                values[assessment.source.corpus, assessment.source.sex] = (
                    factor * assessment.values[metric]
                )
            row[title] = weighted_average(values)
        if row["ROCCH-EER [%]"] is not None:
            rows.append(row)
    return rows


def _assess(listed: ScoreList, resampling: Resampling, jobs: int | None) -> Assessment:
    scores, key = read_scores_and_key(listed.scores, listed.key)
    values, truth = join(scores, key, files=(listed.scores, listed.key))
    target = values[truth.is_target]
    nontarget = values[~truth.is_target]
    with errors_of(listed.key):
        sorted_scores = metrics.sort_scores(target, nontarget)
    intervals: dict[str, Interval] = {}
    if resampling.resamples:
        beside = listed.key.parent / "utt2spk"
        speakers = read_speakers(beside) if is_file(beside) else None
        sample, _ = sample_from(scores, key, segment_speakers=speakers, bootstrap_by="id")
        intervals = confidence_intervals(sample, assessed_values, resampling, jobs=jobs)
    return Assessment(listed, sorted_scores, assessed_values(sorted_scores), intervals)


def _exact_row(assessment: Assessment) -> dict[str, Any]:
    """Return a row with all digits: the values, followed by the ends of all intervals."""
    row = _names(assessment.source)
    ends: dict[str, float] = {}
    for title, (metric, factor, _) in _COLUMNS.items():
        if not metric:
            row[title] = metrics.tag(assessment.values["zebra.individual"])
            continue
        row[title] = float(factor * assessment.values[metric])
        if metric in assessment.intervals:
            interval = assessment.intervals[metric]
            ends[f"{title} low"] = float(factor * interval.low)
            ends[f"{title} high"] = float(factor * interval.high)
    return {name: "" if cell != cell else cell for name, cell in (row | ends).items()}


def _rounded_row(assessment: Assessment) -> dict[str, Any]:
    """Return a rounded row with intervals in brackets."""
    row = _names(assessment.source)
    for title, (metric, factor, decimals) in _COLUMNS.items():
        if not metric:
            row[title] = metrics.tag(assessment.values["zebra.individual"])
            continue
        interval = assessment.intervals.get(metric, Interval())
        numbers = [assessment.values[metric]]
        if interval.has_interval:
            numbers += [interval.low, interval.high]
        form = metrics.format_value if metric.startswith("zebra") else f"{{:.{decimals}f}}".format
        texts = []
        for number in numbers:
            texts.append("-" if math.isnan(number) else form(float(factor * number)))
        row[title] = texts[0]
        if len(texts) > 1:
            row[title] += f" [{texts[1]}, {texts[2]}]"
    return row


def _names(source: ScoreList) -> dict[str, Any]:
    return dict(
        zip(_NAMES, (source.name, source.sex, source.dataset, source.condition), strict=True)
    )


def _page(
    title: str, rows: Sequence[Mapping[str, Any]], averages: Sequence[Mapping[str, Any]]
) -> str:
    """A table and its weighted averages, in Markdown."""
    below = "No weighted average: not all sets of a part and condition are there."
    if averages:
        columns = {name: ".3f" if "[" in name else "" for name in averages[0]}
        below = f"## Weighted averages\n\n{format_table(averages, columns, markdown=True)}"
    return f"# {title}\n\n{format_table(rows, markdown=True)}\n\n{below}\n"


def _plot(assessed: Sequence[Assessment], output: Path, extension: str) -> None:
    """Draw each system over its conditions and each condition over its systems, in consistent styles."""

    def condition(source: ScoreList, between: str) -> str:
        return between.join([source.dataset, source.condition, source.sex])

    series: tuple[tuple[str, Callable[[ScoreList], str], Callable[[ScoreList], str]], ...] = (
        ("multiple_conditions_", lambda source: source.name, lambda source: condition(source, " ")),
        ("task_wise_", lambda source: condition(source, "-"), lambda source: source.name),
    )
    for start, name_picture, name_line in series:
        names = sorted({name_line(assessment.source) for assessment in assessed})
        numbers = {name: number for number, name in enumerate(names)}
        for name, part in _grouped(assessed, name_picture).items():
            lines = [(name_line(assessment.source), assessment.scores) for assessment in part]
            for prefix, sort in (("ZEBRA-", False), ("ZEBRA-sorted-", True)):
                path = output / f"{prefix}{start}{name.replace('/', '-')}.{extension}"
                plot_zebra(
                    lines, path=path, title=name.replace("/", ": "), sort=sort, numbers=numbers
                )


def _grouped(
    assessed: Sequence[Assessment], name: Callable[[ScoreList], Any]
) -> dict[Any, list[Assessment]]:
    groups: dict[Any, list[Assessment]] = {}
    for assessment in assessed:
        groups.setdefault(name(assessment.source), []).append(assessment)
    return groups
