"""The data directories of an evaluation: sets, their training sets, and all problems with them.

    DATA/<set>_enrolls, DATA/<set>_trials_{f,m,mixed}, DATA/<training set>     original speech
    DATA/<name>SUFFIX, or else OUTPUT/data/<name>SUFFIX                        anonymised twins
    OUTPUT/linked/<name>SUFFIX                 lists of twins whose recordings are in a separate folder

User-supplied anonymised sets are next to the originals. Sets that this recipe makes are below OUTPUT, so DATA may be
read-only.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.trials import REVERSAL, Key, Scenario
from spkbase.errors import DataError, Problems, few
from spkbase.runs import Run, Stamp
from spkbase.showing import one_line
from spkver.anonymization import AnonymizerConfig
from spkver.datadir import (
    MIXED,
    SEXES_POOLED,
    DataDir,
    check_twin,
    enrolment,
    link_twins,
    read_datadir,
)
from spkver.voiceprivacy.settings import Config

logger = logging.getLogger(__name__)

DEFAULT_TRAINING_SET = "train-clean-360"
OF_LANGUAGES = {
    "en": ("train_english",),
    "de": ("train_german",),
    "es": ("train_spanish",),
    "fr": ("train_french",),
}
"""Training sets of languages, as VoicePrivacy 2026 names those of its track 2."""
LINKED = "linked"
POOLED = "all"  # all speakers; also used for cross-sex trial lists

_TRIALS = re.compile(r"(?P<stem>.+)_trials_(?P<list>f|m|mixed)(?P<subset>_common)?")
_PART = re.compile(r"_(test|dev)$")


@dataclass(frozen=True)
class Dataset:
    """One set of the challenge, by the names of its data directories.

    Attributes
    ----------
    name : str
        A name such as libri_test or vctk_test_common.
    enrolls : str
    trials : dict of str to str
        "f", "m" (or "all", for the cross-sex list) to data directory.
    training : str
    """

    name: str
    enrolls: str
    trials: dict[str, str]
    training: str

    @property
    def directories(self) -> tuple[str, ...]:
        """All data directories of the set."""
        return (self.enrolls, *self.trials.values(), self.training)

    @property
    def tested(self) -> tuple[str, ...]:
        """Data directories of enrolment and trials."""
        return (self.enrolls, *self.trials.values())


class OneVersion(NamedTuple):
    """The reason why a data directory has only one anonymised version although several are configured.

    Attributes
    ----------
    reason : str
    is_fixed : bool
        Whether every version would be the same.
    """

    reason: str
    is_fixed: bool = False


@one_line
@dataclass(frozen=True)
class RateGroup:
    """Training sets with the same sampling rates, and the attackers that fit them.

    Attributes
    ----------
    training : tuple of str
        Training sets with the same rates.
    datasets : tuple of str
        Sets that use them for training.
    rates : dict of (str, int) to int
        Number of recordings by data directory and sampling rate.
    attackers : sequence of (Spec, Attacker)
        Attackers with features that fit the rates.
    """

    training: tuple[str, ...]
    datasets: tuple[str, ...]
    rates: Mapping[tuple[str, int], int]
    attackers: Sequence[Any] = field(repr=False)


@one_line
@dataclass(frozen=True)
class Sets:
    """The sets of an evaluation, read and checked.

    Attributes
    ----------
    datasets : tuple of Dataset
    original : dict of str to DataDir
        By name of the directory.
    versions : dict of str to tuple of DataDir
        Anonymised versions, by the name of the original; the first is the directory that was found, or else made first.
        Versions that do not exist yet are left out.
    missing : tuple of str
        Originals without an anonymised directory, before any is made.
    emotions : tuple of str
        Originals for the recognition of emotions, which belong to no dataset.
    once : dict of str to OneVersion
        Data directories with only one version although several are configured, by the name of the original.
    left_out : dict of str to set of str
        Speakers excluded from a training set because they are enrolled or tested.
    dropped : tuple of str
        Utterances that ``spkver split --missing drop`` left out on both sides.
    anonymizers : dict of str to AnonymizerConfig
        The anonymisers with which further versions of each training set can be made.
    rates : str
        Description of the sets that are processed at an unusual sampling rate, see `describe_rates`.
    rate_groups : tuple of RateGroup
        Sampling rates and the attackers that fit them; each training set is in one group.
    """

    datasets: tuple[Dataset, ...]
    original: dict[str, DataDir]
    versions: dict[str, tuple[DataDir, ...]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    emotions: tuple[str, ...] = ()
    once: dict[str, OneVersion] = field(default_factory=dict)
    left_out: dict[str, set[str]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    anonymizers: dict[str, AnonymizerConfig] = field(default_factory=dict)
    rates: str = ""
    rate_groups: tuple[RateGroup, ...] = ()

    @property
    def training_sets(self) -> list[str]:
        """Names of the distinct training sets."""
        return list(dict.fromkeys(dataset.training for dataset in self.datasets))

    @property
    def twins(self) -> dict[str, DataDir]:
        """The first anonymised version of each data directory, by the name of the original."""
        return {name: versions[0] for name, versions in self.versions.items()}

    def pair(self, name: str) -> list[DataDir]:
        """Return a data directory and its twin, those that exist."""
        return [side[name] for side in (self.original, self.twins) if name in side]

    @property
    def sides(self) -> dict[str, str]:
        """The use of each data directory: training, enrolment or trials."""
        sides: dict[str, str] = {}
        for dataset in self.datasets:
            sides |= dict.fromkeys(dataset.trials.values(), "trials")
        for dataset in self.datasets:
            sides[dataset.enrolls] = "enrolment"
        return sides | dict.fromkeys(self.training_sets, "training")

    def tested_draws(self, dataset: Dataset, scenario: Scenario | None = None) -> int:
        """Return how many anonymised versions all trial lists of a set have or, given a scenario, how many it scores.

        A reversal scores one version: it inverts each recording several times, which costs as much as several versions.
        """
        if scenario is not None and (not scenario.trials or scenario.name == REVERSAL):
            return 1
        return min(len(self.versions[name]) for name in dataset.trials.values())

    def is_fixed(self, name: str) -> bool:
        """Return whether all anonymised versions of a data directory would be the same."""
        return name in self.once and self.once[name].is_fixed


def find_datasets(data: Path, config: Config, named: Collection[str] = ()) -> list[Dataset]:
    """Find the sets of a folder by the names of its data directories.

    The sets in `named` may have a training set in the configuration even if they neither exist nor are evaluated.

    Raises
    ------
    DataError
        With all problems: no folder, no set, or a requested set that is missing or incomplete.
    """
    if not data.is_dir():
        raise DataError(
            "no such folder",
            file=data,
            remedy="give the folder of the data directories, or 'simulated'",
        )
    here = {path.name for path in data.iterdir() if path.is_dir()}
    lists_of_sets = _lists_of_sets(here, config)
    wanted = config.datasets or tuple(lists_of_sets)
    if not wanted:
        expected = ", ".join(f"<set>_trials_{list_name}" for list_name in config.lists)
        raise DataError(f"no set found: expected folders <set>_enrolls and {expected}", file=data)
    problems = Problems(data)
    datasets = []
    for name in wanted:
        if name not in lists_of_sets:
            stem = name.removesuffix("_common")
            remedy = _without_missing(wanted, lists_of_sets)
            problems.add(
                f"no set {name}: missing {stem}_trials_{'|'.join(config.lists)}", remedy=remedy
            )
            continue
        dataset = _dataset(name, lists_of_sets[name], here, config, problems)
        if dataset is not None:
            datasets.append(dataset)
    for key in config.training_sets:
        if key not in {*wanted, *lists_of_sets, *named}:
            remedy = f"there are {', '.join(lists_of_sets) or 'none'}"
            problems.add(f"training_sets.{key}: no such set", remedy=remedy)
    emotions = [key for key in config.utility.emotion if key in here]
    for key in config.utility.emotion:
        if key not in here:
            remedy = f"add it, or leave it out: --set 'utility.emotion=[{','.join(emotions)}]'"
            problems.add(f"utility.emotion: no such data directory {key}", remedy=remedy)
    problems.raise_if_any()
    return datasets


def _without_missing(wanted: Iterable[str], lists_of_sets: Mapping[str, Any]) -> str:
    """Return how to limit an evaluation to the wanted sets that exist, or else to all existing sets."""
    if not lists_of_sets:
        return "there is none at all"
    there = [name for name in wanted if name in lists_of_sets]
    chosen = ",".join(there or lists_of_sets)
    return f"there are {', '.join(lists_of_sets)}: --set 'datasets=[{chosen}]'"


def with_lists_there(config: Config, data: Path) -> Config:
    """Return the configuration, whose default is the cross-sex list if the data have no other lists."""
    lists = set()
    for path in data.glob("*_trials_*"):
        match = _TRIALS.fullmatch(path.name)
        if match:
            lists.add(match["list"])
    if lists == {MIXED} and config.lists == Config.lists:
        return replace(config, lists=(MIXED,))
    return config


def stamp_of(run: Run, directory: DataDir) -> Stamp:
    """Return the fingerprint of the lists and recordings of a data directory; no recording is opened."""
    lists = [
        sorted(directory.speakers.items()),
        sorted(directory.enrolls or ()),
        directory.enrolls is None,
    ]
    sources = dict(sorted(directory.recordings.items()))
    return run.stamp(f"speech of {directory.path.name}", inputs=lists, sources=sources)


def read_sets(
    data: Path,
    run: Run,
    suffix: str,
    config: Config,
    *,
    can_make: bool = False,
    allow_pipes: bool = False,
    named: Collection[str] = (),
    anonymised: Path | None = None,
) -> Sets:
    """Read all data directories and existing twins, and check them.

    Parameters
    ----------
    data : Path
        Folder of the original sets.
    run : Run
        The run whose folder gets the results.
    suffix : str
        Suffix of the names of twins.
    config : Config
    can_make : bool
        Whether missing twins can be made.
    allow_pipes : bool
        Run shell commands of ``wav.scp``.
    named : collection of str
        See `find_datasets`.
    anonymised : Path, optional
        Folder of anonymised recordings, in place of twins in `data`; see `link_twins`.

    Raises
    ------
    DataError
        With all problems of all directories at once.
    """
    datasets = find_datasets(data, config, named)
    problems = Problems()
    names = dict.fromkeys(chain.from_iterable(dataset.directories for dataset in datasets))
    names |= dict.fromkeys(config.utility.emotion)
    original: dict[str, DataDir] = {}
    for name in names:
        with noted_each(problems):
            original[name] = read_datadir(
                data / name,
                jobs=run.jobs,
                allow_pipes=allow_pipes,
                pipes_to=run.output / "pipes" / name,
            )
    twins_in = data
    if anonymised is not None:
        twins_in = run.output / LINKED
        with noted_each(problems):
            linked = link_twins(original.values(), anonymised, twins_in, suffix)
            _remove_others(names.keys() - linked, twins_in, suffix)
    missing = tuple(name for name in names if not (twins_in / f"{name}{suffix}").is_dir())
    twins: dict[str, DataDir] = {}
    for name in names:
        path = twins_in / f"{name}{suffix}"
        if name in missing:
            continue
        with noted_each(problems):
            twins[name] = read_datadir(
                path,
                original=original.get(name),
                jobs=run.jobs,
                allow_pipes=allow_pipes,
                pipes_to=run.output / "pipes" / path.name,
            )
    if missing and not can_make:
        text = (
            f"no anonymised twin of {', '.join(missing)}: looked for {missing[0]}{suffix} and so on"
        )
        remedy = "give their folder as --anonymised, or name an anonymiser: --set anonymizer.name=mcadams"
        problems.add(text, file=anonymised or data, remedy=remedy)
    for dataset in datasets:
        if original.keys() >= set(dataset.directories):
            _check_dataset(dataset, original, problems)
    for name in names:
        if name in original and name in twins:
            with noted_each(problems):
                _compare(run, original[name], twins[name])
    problems.raise_if_any()
    unknown = [dataset.name for dataset in datasets if not original[dataset.enrolls].sexes]
    if unknown:
        logger.warning("%s: %s", few(unknown), SEXES_POOLED)
    for name, twin in twins.items():  # enrolment and trial lists do not depend on the anonymiser
        lists = original[name]
        twins[name] = replace(twin, sexes=lists.sexes, enrolls=lists.enrolls, trials=lists.trials)
    left_out = _shared_speakers(datasets, original)
    for name, speakers in left_out.items():
        _leave_out(name, speakers, original, twins)
    versions: dict[str, tuple[DataDir, ...]] = {name: (twin,) for name, twin in twins.items()}
    return Sets(
        tuple(datasets), original, versions, missing, config.utility.emotion, left_out=left_out
    )


def _remove_others(names: Iterable[str], folder: Path, suffix: str) -> None:
    """Remove links of an earlier run to recordings that are no longer there."""
    for name in names:
        path = folder / f"{name}{suffix}"
        if path.is_dir():
            shutil.rmtree(path)


@contextmanager
def noted_each(problems: Problems) -> Iterator[None]:
    """Note an error of the block, or each of the errors that it reports."""
    with problems.noted():
        yield


def pooled_key(keys: Iterable[Key]) -> Key:
    """Concatenate several trial lists.

    Raises
    ------
    DataError
        If two lists have a trial in common.
    """
    models: list[str] = []
    segments: list[str] = []
    is_target: list[bool] = []
    for key in keys:
        models += key.model_ids[key.models].tolist()
        segments += key.segment_ids[key.segments].tolist()
        is_target += key.is_target.tolist()
    return Key.from_ids(models, segments, is_target)


def _lists_of_sets(folders: Iterable[str], config: Config) -> dict[str, dict[str, str]]:
    """Return the folders of the trial lists of each set, by the name of the list."""
    lists: dict[str, dict[str, str]] = {}
    for folder in sorted(folders):
        match = _TRIALS.fullmatch(folder)
        if match and match["list"] in config.lists:
            name = match["stem"] + (match["subset"] or "")
            lists.setdefault(name, {})[match["list"]] = folder
    return lists


def _dataset(
    name: str, lists: Mapping[str, str], here: Collection[str], config: Config, problems: Problems
) -> Dataset | None:
    """Return a set with its training set; note a problem and return None if there is no training set."""
    stem = name.removesuffix("_common")
    if f"{stem}_enrolls" not in here:
        problems.add(
            f"no {stem}_enrolls for the set {name}",
            remedy="add it, or leave the set out of datasets",
        )
    whole = _PART.sub("", stem)
    candidates = [f"{whole}_train", *OF_LANGUAGES.get(whole, ()), DEFAULT_TRAINING_SET]
    if name in config.training_sets:
        candidates = [config.training_sets[name]]
    training = [candidate for candidate in candidates if candidate in here]
    if not training:
        text = f"no training set for {name}: looked for {' and '.join(candidates)}"
        problems.add(text, remedy=f"name another: --set training_sets.{name}=DIRECTORY")
        return None
    trials = {}
    for list_name in config.lists:
        if list_name in lists:
            gender = POOLED if list_name == MIXED else list_name
            trials[gender] = lists[list_name]
    return Dataset(name, f"{stem}_enrolls", trials, training[0])


def _compare(run: Run, original: DataDir, twin: DataDir) -> None:
    """Check that a twin has anonymised versions of its original's recordings, unless an earlier run did."""
    compare = partial(check_twin, original, twin, jobs=run.jobs)
    after = [stamp_of(run, original), stamp_of(run, twin)]
    run.once(f"comparison of {twin.name}", compare, after=after)


def _shared_speakers(
    datasets: Sequence[Dataset], original: Mapping[str, DataDir]
) -> dict[str, set[str]]:
    """Return the speakers of each training set who are also enrolled or tested."""
    shared: dict[str, set[str]] = {}
    for dataset in datasets:
        trained = set(original[dataset.training].speakers.values())
        for name in dataset.tested:
            people = trained & set(original[name].speakers.values())
            if people:
                shared.setdefault(dataset.training, set()).update(people)
    return shared


def _leave_out(
    name: str, speakers: set[str], original: dict[str, DataDir], twins: dict[str, DataDir]
) -> None:
    """Remove speakers from both sides of a training set.

    Raises
    ------
    DataError
        If fewer than two speakers remain.
    """
    text = "%s: attackers are trained without %s, who are enrolled or tested"
    logger.warning(text, name, _count(sorted(speakers)))
    for side in (original, twins):
        if name in side:
            whole = side[name]
            kept = {
                utterance: speaker
                for utterance, speaker in whole.speakers.items()
                if speaker not in speakers
            }
            recordings = {utterance: whole.recordings[utterance] for utterance in kept}
            side[name] = replace(whole, recordings=recordings, speakers=kept)
    if len(set(original[name].speakers.values())) < 2:
        text = "fewer than two training speakers who are neither enrolled nor tested"
        raise DataError(
            text, file=original[name].path, remedy="give a training set with other speakers"
        )


def _check_dataset(dataset: Dataset, original: Mapping[str, DataDir], problems: Problems) -> None:
    """Note contradictions between the directories of a set."""
    enrolls = original[dataset.enrolls]
    training = original[dataset.training]
    enrolled = set(enrolment(enrolls).models)
    if len(set(training.speakers.values())) < 2:
        text = "fewer than two training speakers"
        problems.add(text, file=training.path, remedy="name another training set")
    for gender, name in dataset.trials.items():
        trials = original[name]
        file = trials.path / "trials"
        key = trials.trials
        if key is None:
            problems.add("no list of trials", file=file, remedy="copy it from the challenge")
            continue
        models = set(key.model_ids[key.models])
        strange = sorted(models - enrolled)
        if strange:
            problems.add(
                f"{_count(strange)} of the trials not enrolled in {enrolls.path}", file=file
            )
        n_target = int(key.is_target.sum())
        if not 0 < n_target < len(key):
            text = (
                f"{n_target} target and {len(key) - n_target} nontarget trials: expected both kinds"
            )
            problems.add(text, file=file, remedy="copy the list from the challenge")
        _check_sexes(trials, set(trials.speakers.values()), gender, name, problems)
        _check_sexes(enrolls, models & set(enrolls.speakers.values()), gender, name, problems)


def _check_sexes(
    directory: DataDir, speakers: set[str], gender: str, trials: str, problems: Problems
) -> None:
    """Note speakers whose sex is unknown or contradicts the list of trials."""
    sexes = directory.sexes
    file = directory.path / "spk2gender"
    unknown = sorted(speakers - set(sexes))
    if unknown and (sexes or gender != POOLED):
        text = f"{_count(unknown)} of unknown sex"
        problems.add(text, file=file, remedy="add lines 'speaker f' or 'speaker m'")
    other = sorted(speaker for speaker in speakers & set(sexes) if sexes[speaker] != gender)
    if other and gender != POOLED:
        text = f"{_count(other)} in trials of {trials} with another sex than {gender!r}"
        problems.add(text, file=file, remedy="correct it, or the list of trials")


def _count(speakers: list[str]) -> str:
    plural = "s" if len(speakers) > 1 else ""
    return f"{len(speakers)} speaker{plural} ({few(speakers, repr)})"
