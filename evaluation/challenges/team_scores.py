"""A whole VoicePrivacy challenge: every list of scores found, understood by its name, joined with its key, assessed.

Results lie in ``TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores``. The names of the enrolment and of the trial set say
the corpus, its part, the sex and who is anonymised: enrolment and trials original (o-o), trials alone (o-a), both
(a-a). What the names say is a rule of regular expressions (`NamingRule`), which a YAML file replaces (`read_rule`). The
key is always that of the original trials.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from evaluation.challenges.results_2022 import WEIGHTS
from evaluation.formats import join, read_scores_and_key
from evaluation.metrics import (
    SortedScores,
    cllr_of,
    eer_of,
    individual_of,
    min_cllr_of,
    population_of,
    sort_scores,
    tag,
)
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Resampling
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import is_file, load_yaml, read_yaml_text
from spkbase.showing import one_line

logger = logging.getLogger(__name__)


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
        "eer.rocch": eer_of(scores),
        "eer.kaldi": eer_of(scores, "kaldi"),
        "zebra.population": population_of(scores),
        "zebra.individual": individual_of(scores),
        "cllr": cllr_of(scores),
        "min_cllr": min_cllr_of(scores),
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
    return ScoreList(
        names["team"],
        names["system"],
        said["corpus"],
        said["split"],
        said["subset"],
        said["sex"],
        f"{enrolled}-{anonymised}",
        path,
        key,
    )


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
        intervals = confidence_intervals(sample, assessed_values, jobs=jobs, **asdict(resampling))
    return Assessment(listed, sorted_scores, values, tag(values["zebra.individual"]), intervals)
