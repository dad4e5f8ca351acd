"""Trials made from a training set: speakers are dealt into folds, and each fold tests attackers trained on the others.

So the choices of an attacker and the weights of a fusion are judged on speakers that it was not trained on, and they do
not depend on anybody who is enrolled or tested in the evaluation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluation.trials import Key
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkver.attackers import lists
from spkver.datadir import DataDir

FOLDS = 5
ENROLLED = 3
TESTED = 12
"""Recordings of a speaker to enrol and to test at most."""

MOST_SPEAKERS = 60
"""Background speakers of a fold in trials, at most."""

MOST_TESTED = 6
"""Tested recordings of each speaker, at most."""

_LEAST = 4  # fewest speakers of a fold


@one_line
@dataclass(frozen=True, eq=False)
class Fold:
    """Some speakers of a training set, as a test of attackers trained on the others.

    Attributes
    ----------
    number : int
        Number of the fold, from 1.
    speakers : tuple of str
        The tested speakers, sorted.
    training : tuple of DataDir
        All versions of the other speakers' recordings.
    enrolment, tested : DataDir
    key : Key
        Their trials.
    """

    number: int
    speakers: tuple[str, ...]
    training: tuple[DataDir, ...]
    enrolment: DataDir
    tested: DataDir
    key: Key


def deal_speakers(genders: Mapping[str, str], n_folds: int, *, seed: int) -> list[list[str]]:
    """Deal speakers into folds of equal size, with both sexes spread evenly.

    Parameters
    ----------
    genders : mapping of str to str
        Sex of each speaker; any other text if unknown.
    n_folds : int
    seed : int

    Returns
    -------
    list of list of str
        Speakers of each fold, sorted; the order of the mapping does not matter.
    """
    order = stream(seed, "folds of background speakers").permutation(len(genders))
    known = sorted(genders)
    names = [known[row] for row in order]
    names.sort(key=lambda name: genders[name])
    return [sorted(names[number::n_folds]) for number in range(n_folds)]


def background_folds(
    training: Sequence[DataDir], *, seed: int, folds: int = FOLDS, enrolled: int = ENROLLED
) -> list[Fold]:
    """Return speaker-disjoint folds of a training set, each with trials.

    A model is a speaker enrolled with `enrolled` recordings. It is tested against other recordings of the speaker, and
    of the speakers of the same sex in the fold (of all speakers if a sex has only one speaker there, or if the set has
    no list of sexes). Of several versions, such as draws of an anonymiser, the first half is enrolled and the rest is
    tested, so that the sides share no draw. If speakers have one recording, give pieces, see
    `spkver.attackers.pieces.cut`: no trial compares the same words.

    Parameters
    ----------
    training : sequence of DataDir
        Versions of the same speech.
    seed : int
        Seed of the assignment of speakers to folds.
    folds : int
        Number of folds; fewer if a fold would have fewer than four speakers.
    enrolled : int
        Recordings to enrol; fewer if a speaker has fewer.

    Returns
    -------
    list of Fold
        Empty if fewer than four speakers have two recordings or pieces.
    """
    units = training[0].by_speaker()
    fit = {
        speaker: training[0].sexes.get(speaker, "")
        for speaker, names in units.items()
        if len(names) > 1
    }
    if len(fit) < _LEAST:
        return []
    n_folds = max(2, min(folds, len(fit) // _LEAST))
    made = []
    for number, speakers in enumerate(deal_speakers(fit, n_folds, seed=seed), 1):
        sides = _sides(training, {speaker: units[speaker] for speaker in speakers}, enrolled)
        others = tuple(_without(version, set(speakers), number) for version in training)
        made.append(Fold(number, tuple(speakers), others, *sides, _key(*sides, fit)))
    return made


def fewer_trials(fold: Fold, *, seed: int) -> Fold:
    """Reduce the speakers and tests of a large fold to `MOST_SPEAKERS` and `MOST_TESTED`, to save time for training."""
    order = np.random.default_rng([seed, fold.number]).permutation(len(fold.speakers))[
        :MOST_SPEAKERS
    ]
    speakers = tuple(sorted(fold.speakers[row] for row in order))
    chosen = set(speakers)
    tested: set[str] = set()
    for speaker, names in fold.tested.by_speaker().items():
        if speaker in chosen:
            spaced = (
                np.linspace(0, len(names) - 1, min(MOST_TESTED, len(names))).round().astype(int)
            )
            tested |= {names[row] for row in spaced}
    key = fold.key
    rows = [
        row
        for row, (model, segment) in enumerate(key.pairs())
        if model in chosen and segment in tested
    ]
    key = key.subset(np.array(rows, np.int64))
    enrolled = {name for name, speaker in fold.enrolment.speakers.items() if speaker in chosen}
    sides = lists.select(fold.enrolment, enrolled), lists.select(fold.tested, tested)
    return Fold(fold.number, speakers, fold.training, *sides, key)


def _sides(
    versions: Sequence[DataDir], units: Mapping[str, Sequence[str]], enrolled: int
) -> tuple[DataDir, DataDir]:
    """Return the enrolment and the test side of the speakers of a fold."""
    numbers = range(len(versions))
    half = -(-len(versions) // 2)
    enrol_in = numbers
    test_in = numbers
    if len(versions) > 1:
        enrol_in = numbers[:half]
        test_in = numbers[half:]
    enrol: list[tuple[int, str]] = []
    test: list[tuple[int, str]] = []
    for names in units.values():
        n_enrolled = max(1, min(enrolled, len(names) // 2))
        spaced = np.linspace(0, len(names) - 1, n_enrolled + 1).round().astype(int)[:-1]
        first = [names[row] for row in spaced]
        enrol += _pairs(first, enrol_in, max(n_enrolled, min(enrolled, len(enrol_in))))
        test += _pairs([name for name in names if name not in first], test_in, TESTED)
    enrolment = _directory(versions, enrol, "enrolls")
    return replace(enrolment, enrolls=tuple(enrolment.recordings)), _directory(
        versions, test, "trials"
    )


def _pairs(names: Sequence[str], numbers: Sequence[int], most: int) -> list[tuple[int, str]]:
    """Return at most `most` pairs of version and recording: first each recording once, in alternating versions."""
    count = len(numbers)
    turns = []
    for turn in range(count):
        for row, name in enumerate(names):
            turns.append((numbers[(row + turn) % count], name))
    if len(turns) <= most or len(names) <= most:
        return turns[:most]
    return [turns[row] for row in np.linspace(0, len(names) - 1, most).round().astype(int)]


def _directory(versions: Sequence[DataDir], pairs: Sequence[tuple[int, str]], end: str) -> DataDir:
    recordings = {}
    speakers = {}
    for number, name in pairs:
        utterance = name
        if len(versions) > 1:
            utterance += f"-version{number + 1}"
        recordings[utterance] = versions[number].recordings[name]
        speakers[utterance] = versions[0].speakers[name]
    path = versions[0].path.with_name(f"{versions[0].name}-{end}")
    return DataDir(path, recordings, speakers, versions[0].sexes)


def _key(enrolment: DataDir, tested: DataDir, genders: Mapping[str, str]) -> Key:
    """Pair all tests with all models of the same sex, or with all models if a sex has a single one."""
    models = sorted(set(enrolment.speakers.values()))
    counts = Counter(genders[model] for model in models)
    together = min(counts.values(), default=0) < 2
    names = []
    segments = []
    is_target = []
    for model in models:
        for segment, speaker in sorted(tested.speakers.items()):
            if together or genders[model] == genders[speaker]:
                names.append(model)
                segments.append(segment)
                is_target.append(speaker == model)
    return Key.from_ids(names, segments, is_target)


def _without(version: DataDir, speakers: set[str], number: int) -> DataDir:
    """Return a version of a training set without some speakers."""
    kept = lists.select(
        version, {name for name, speaker in version.speakers.items() if speaker not in speakers}
    )
    sexes = {name: sex for name, sex in version.sexes.items() if name not in speakers}
    return replace(
        kept,
        path=version.path.with_name(f"{version.name}-without{number}"),
        sexes=sexes,
        enrolls=None,
    )
