"""Splits a data directory into training set, enrolment and trials, by fixed rules and a seed.

    NAME_train                                  training speakers, all of their utterances
    NAME_test_enrolls                           test speakers, some utterances of each
    NAME_test_trials_f, NAME_test_trials_m      their other utterances, by the speakers' sex
    NAME_test_trials_mixed                      those of all speakers, if no sex is known

Rules
-----
1. A speaker with too few utterances for enrolment and trials is a training speaker. 2. A share of the other speakers of
each sex is drawn for training: no speaker is both in training and in test. 3. Some utterances of each test speaker are
drawn for enrolment; all others are trial utterances. 4. Every enrolled speaker is compared with every trial utterance
of the same sex; or with all trial utterances if no sex is known.

A draw depends only on the seed and on the id of a speaker or an utterance, so further speakers do not change the order
of the others, and an anonymised twin is split like its original.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from evaluation.trials import Key, folded
from spkbase.errors import ConfigError, DataError, Problems, counted, few
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkver.datadir.directory import DataDir, unfit_id

_SEXES = {"f": "women", "m": "men"}
MIXED = "mixed"  # ending of the name of a list of trials across the sexes
SEXES_POOLED = (
    "sexes are not known, so women and men are pooled: trials across the sexes are easier for an attacker, and EERs "
    "mostly lower than within one sex (give them by spkver datadir --sexes)"
)
_SUFFIX = re.compile(r"_[A-Za-z0-9][A-Za-z0-9._+-]*")
_TAKEN = re.compile(r"_(common|enrolls|train|f|m|mixed)|.*_trials_.*")


@dataclass(frozen=True)
class SplitRules:
    """Rules of the split of a data directory.

    Attributes
    ----------
    training_share : float
        Share of the speakers of each sex that is used for training; the number is rounded and at least one.
    enrolment_utterances : int
        Number of enrolment utterances of each test speaker.
    seed : int
        Seed of all draws.
    """

    training_share: float = 1 / 3
    enrolment_utterances: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.training_share < 1:
            raise ConfigError(
                f"the training share is {self.training_share}: expected a number between 0 and 1"
            )
        if self.enrolment_utterances < 1:
            raise ConfigError(
                f"{self.enrolment_utterances} enrolment utterances: expected at least 1"
            )
        if self.seed < 0:
            raise ConfigError(f"the seed is {self.seed}: expected 0 or more")


@one_line
@dataclass(frozen=True, eq=False)
class Split:
    """The parts of a data directory.

    Attributes
    ----------
    training, enrolls : DataDir
    trials : dict of str to DataDir
        By sex, or "mixed" if no sex is known.
    notes : tuple of str
        Remarks for the reader of the results.
    """

    training: DataDir
    enrolls: DataDir
    trials: dict[str, DataDir]
    notes: tuple[str, ...] = field(default=())

    def parts(self) -> Iterable[DataDir]:
        """Return all data directories."""
        return (self.training, self.enrolls, *self.trials.values())


def split_datadir(
    datadir: DataDir, output: str | Path, name: str, rules: SplitRules | None = None
) -> Split:
    """Split a data directory into training set, enrolment and trials.

    Parameters
    ----------
    datadir : DataDir
        The data directory. It has the sexes of all speakers or none; without sexes there is one list of trials,
        "mixed", and a note. Its own lists of enrolment and trials are not used.
    output : path
        Folder of the new data directories; nothing is written here.
    name : str
        Beginning of their names.
    rules : SplitRules, optional

    Returns
    -------
    Split

    Raises
    ------
    DataError
        If some sexes are unknown, or there are too few speakers for training or test.
    """
    rules = rules or SplitRules()
    output = Path(output)
    unfit = unfit_id(name)
    if unfit:
        raise ConfigError(f"the name {name!r} {unfit}", remedy="give another name")
    by_speaker = datadir.by_speaker()
    unknown = by_speaker.keys() - datadir.sexes.keys()
    if datadir.sexes and unknown:
        text = f"{counted(len(unknown), 'speaker')} of unknown sex: {few(unknown, repr)}"
        raise DataError(
            text, file=datadir.path / "spk2gender", remedy="add lines 'speaker f' or 'speaker m'"
        )
    training, tested, notes = _draw_speakers(datadir, by_speaker, rules)
    learnt = []
    for speaker in training:
        learnt += by_speaker[speaker]
    enrolled = []
    tried: dict[str, list[str]] = {}
    for speaker in sorted(tested):
        order = draw_order(by_speaker[speaker], rules.seed, "utterance")
        enrolled += order[: rules.enrolment_utterances]
        tests = tried.setdefault(datadir.sexes.get(speaker, MIXED), [])
        tests += order[rules.enrolment_utterances :]
    trials = {}
    for sex in _groups(datadir):
        if sex in tried:
            part = part_of(datadir, output / f"{name}_test_trials_{sex}", tried[sex])
            models = sorted(set(part.speakers.values()))
            trials[sex] = replace(part, trials=full_cross(models, part))
    enrolment = part_of(datadir, output / f"{name}_test_enrolls", enrolled)
    return Split(
        training=part_of(datadir, output / f"{name}_train", learnt),
        enrolls=replace(enrolment, enrolls=tuple(sorted(enrolled))),
        trials=trials,
        notes=tuple(notes),
    )


def drop_missing(datadir: DataDir, twin: DataDir) -> tuple[DataDir, list[str]]:
    """Return the part of a data directory that is also in its anonymised twin, without lists, and the ids of the rest.

    If the twin has fewer than half of the utterances, nothing is left out: its names must then follow another scheme.
    """
    ending = common_ending(datadir.speakers, twin)
    kept = [utterance for utterance in datadir.recordings if utterance + ending in twin.recordings]
    if 2 * len(kept) <= len(datadir):
        kept = list(datadir.recordings)
    part = part_of(datadir, datadir.path, kept)
    return part, sorted(datadir.recordings.keys() - part.recordings.keys())


def check_suffix(suffix: str) -> None:
    """Check that a suffix can end the names of anonymised sets, and that no set of the layout has it already.

    Raises
    ------
    ConfigError
        If the suffix is malformed or taken.
    """
    remedy = "choose another, such as _mcadams: the names of anonymised sets end with it"
    if not _SUFFIX.fullmatch(suffix):
        raise ConfigError(f"suffix={suffix!r}: expected an underscore and a name", remedy=remedy)
    if _TAKEN.fullmatch(suffix):
        raise ConfigError(
            f"suffix={suffix!r}, is also an ending of names of original sets", remedy=remedy
        )


def full_cross(models: Iterable[str], datadir: DataDir) -> Key:
    """Return the trials of every model against every utterance; models are speakers.

    Examples
    --------
    >>> key = full_cross(["a", "b"], DataDir(Path("d"), {}, {"a-1": "a"}))
    >>> list(key.pairs()), key.is_target.tolist()
    ([('a', 'a-1'), ('b', 'a-1')], [True, False])
    """
    enrolled = []
    tested = []
    is_target = []
    for model, utterance in product(models, sorted(datadir.speakers)):
        enrolled.append(model)
        tested.append(utterance)
        is_target.append(datadir.speakers[utterance] == model)
    return Key.from_ids(enrolled, tested, is_target=is_target)


def twin_of_split(split: Split, twin: DataDir, suffix: str) -> Split:
    """Split an anonymised data directory in the same way as its original.

    Parameters
    ----------
    split : Split
        Split of the original.
    twin : DataDir
        The twin, with the same utterances of the same speakers; their names may have one additional ending, such as
        ``_anon``.
    suffix : str
        Suffix of the names of its parts.

    Raises
    ------
    DataError
        With all problems: missing utterances, utterances of other speakers.
    """
    problems = Problems(twin.path)
    speakers: dict[str, str] = {}
    for part in split.parts():
        speakers |= part.speakers
    ending = common_ending(speakers, twin)
    lacking = [utterance for utterance in speakers if utterance + ending not in twin.recordings]
    if lacking:
        text = f"{counted(len(lacking), 'utterance')} of the original missing: {few(lacking, repr)}"
        others = {folded(name): name for name in twin.recordings.keys() - speakers.keys()}
        other = others.get(folded(lacking[0]))
        if other is not None:
            text += f"; {lacking[0]!a} and {other!a} differ only in case or Unicode form"
        remedy = "add them, or name them as in the original; one ending of all, as _anon, is allowed; or leave them out"
        remedy += " on both sides (spkver split --missing drop)"
        if 2 * len(lacking) > len(speakers):
            remedy = "is it the anonymised copy of this directory? Most are missing"
        problems.add(text, remedy=remedy)
    moved = [
        name
        for name, speaker in speakers.items()
        if twin.speakers.get(name + ending, speaker) != speaker
    ]
    if moved:
        problems.add(
            f"{counted(len(moved), 'utterance')} with another speaker than in the original: {few(moved, repr)}"
        )
    problems.raise_if_any()
    notes = []
    extra = len(twin.recordings) - len(speakers)
    if extra:
        notes.append(
            f"{extra} of {len(twin.recordings)} utterances of the twin are left out: the original has none"
        )
    if ending:
        notes.append(
            f"the names of the anonymised recordings end with {ending!r}, those of the original do not"
        )

    def anonymised(part: DataDir) -> DataDir:
        path = part.path.with_name(part.path.name + suffix)
        recordings = {name: twin.recordings[name + ending] for name in part.recordings}
        return replace(part, path=path, recordings=recordings)

    return Split(
        training=anonymised(split.training),
        enrolls=anonymised(split.enrolls),
        trials={sex: anonymised(part) for sex, part in split.trials.items()},
        notes=tuple(notes),
    )


def draw_order(ids: Iterable[str], seed: int, kind: str) -> list[str]:
    """Return ids in an order that depends only on the seed, their kind and each id; the first ones count as drawn."""
    return sorted(ids, key=lambda name: (stream(seed, "split", kind, name).random(), name))


def part_of(datadir: DataDir, path: Path, utterances: Iterable[str]) -> DataDir:
    """Return a data directory of some utterances, once each, without lists."""
    ids = sorted(set(utterances))
    speakers = {utterance: datadir.speakers[utterance] for utterance in ids}
    known = sorted(set(speakers.values()) & datadir.sexes.keys())
    sexes = {speaker: datadir.sexes[speaker] for speaker in known}
    recordings = {utterance: datadir.recordings[utterance] for utterance in ids}
    return DataDir(path, recordings, speakers, sexes)


def _groups(datadir: DataDir) -> Mapping[str, str]:
    """Return the speakers of each sex, or all speakers if no sex is known, by a word for them."""
    if datadir.sexes:
        return _SEXES
    return {MIXED: "speakers"}


def _draw_speakers(
    datadir: DataDir, by_speaker: Mapping[str, list[str]], rules: SplitRules
) -> tuple[set[str], set[str], list[str]]:
    """Draw the speakers for training and for the test, with remarks."""
    needed = rules.enrolment_utterances + 1
    able = {speaker for speaker, utterances in by_speaker.items() if len(utterances) >= needed}
    training = by_speaker.keys() - able
    tested: set[str] = set()
    notes = []
    if training:
        text = f"used for training: {counted(len(training), 'speaker')} with fewer than {needed} utterances"
        notes.append(f"{text} ({few(training, repr)})")
    if not datadir.sexes:
        notes.append(SEXES_POOLED)
    for sex, people in _groups(datadir).items():
        speakers = [speaker for speaker in able if datadir.sexes.get(speaker, MIXED) == sex]
        order = draw_order(speakers, rules.seed, "speaker")
        n_training = max(1, round(rules.training_share * len(order)))
        chosen = order[n_training:]
        training.update(order[:n_training])
        if len(chosen) < 2:
            notes.append(
                f"no trials of {people}: {len(order)} can be split, at least two are needed for the test"
            )
            training.update(chosen)
        else:
            tested.update(chosen)
    if not tested or len(training) < 2:
        text = f"{counted(len(tested), 'speaker')} for the test and {len(training)} for training: too few"
        remedy = f"{len(able)} of {len(by_speaker)} speakers have the {needed} utterances that a test needs; "
        remedy += "at least three of one sex are needed"
        raise DataError(text, file=datadir.path, remedy=remedy)
    return training, tested, notes


def common_ending(speakers: Mapping[str, str], twin: DataDir) -> str:
    """Return the ending that only the names of the anonymised copy have; empty if the names are equal."""
    tried = {""}
    for first in (min(speakers), max(speakers)):
        tried |= {name.removeprefix(first) for name in twin.recordings if name.startswith(first)}

    def order(ending: str) -> tuple[int, int, str]:
        """Sort by the number of names, the largest first, then by the length of the ending."""
        count = sum(name + ending in twin.recordings for name in speakers)
        return -count, len(ending), ending

    return min(tried, key=order)
