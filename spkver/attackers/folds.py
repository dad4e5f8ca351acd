"""Trials made of a training set: speakers are dealt into folds, and those of a fold try an attacker that has learnt
from all others.

So an attacker's choices, and the weights of a fusion, are judged on people that it has not heard, and nobody who is
enrolled or tested in the evaluation has a part in them.

**Training sets whose speakers have one recording each, cut into pieces:** without two of a speaker nothing is learnt of
how speech of one voice varies.

    OUTPUT/data/<training set>-pieces/{wav/<utterance>-piece1.wav,...,wav.scp,utt2spk,...,pieces.json}

Each version of an anonymised training set is cut by itself, so that pieces of one draw share what was drawn for it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from evaluation.trials import Key
from spkbase.errors import DataError, Problems
from spkbase.files import file_digest, make_folder, write_text
from spkbase.runs import Run
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import chunk_bounds, chunks, ordered_map
from spkver.attackers.protocol import Attack, Background, Place
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, write_datadir

logger = logging.getLogger(__name__)

PIECES = 2
SHORTEST = 1.0
"""Seconds that a piece must have; what cannot be cut into such pieces stays whole."""

_RECORDINGS = 16  # that are one task


def needs_pieces(training: DataDir) -> bool:
    """Return whether most speakers of a training set have one recording alone.

    Examples
    --------
    >>> needs_pieces(DataDir(Path("d"), {}, {"a1": "a", "a2": "a", "b1": "b"}))
    False
    >>> needs_pieces(DataDir(Path("d"), {}, {"a1": "a", "b1": "b"}))
    True
    """
    counts = Counter(training.speakers.values())
    return 2 * sum(count > 1 for count in counts.values()) < len(counts)


def piece_bounds(n_samples: int, rate: int) -> list[tuple[int, int]]:
    """Return where the pieces of a recording begin and end: `PIECES` of equal length, or the whole if it is short.

    Examples
    --------
    >>> piece_bounds(5, 1), piece_bounds(3, 2)
    ([(0, 3), (3, 5)], [(0, 3)])
    """
    if n_samples < PIECES * SHORTEST * rate:
        return [(0, n_samples)]
    edges = [-(-n_samples * number // PIECES) for number in range(PIECES + 1)]
    return list(pairwise(edges))


def with_pieces(training: Sequence[DataDir], place: Place) -> tuple[DataDir, ...]:
    """Return the versions of a training set cut into pieces where `needs_pieces` says so, else as they are."""
    if not needs_pieces(training[0]):
        return tuple(training)
    return tuple(cut_directory(version, place) for version in training)


def cut_directory(source: DataDir, place: Place) -> DataDir:
    """Cut the recordings of a data directory into pieces, which are written once and checked whenever they are used.

    Parameters
    ----------
    source : DataDir
    place : Place
        Pieces go below ``data/`` of its output folder, or of its folder of speech.

    Returns
    -------
    DataDir
        Utterances are ``<utterance>-piece<number>``, of 16 bits.

    Raises
    ------
    DataError
        With all recordings that cannot be read or written.
    """
    folder = make_folder((place.speech or place.output) / "data" / f"{source.name}-pieces")
    run = Run(folder, jobs=place.jobs, quiet=True)  # not made anew by force: they are copies, and are asked for often

    def make(path: Path) -> None:
        tasks = chunks(sorted(source.recordings.items()), _RECORDINGS)
        cut, sizes = partial(_cut_some, folder=folder), [*map(len, tasks)]
        results = ordered_map(cut, tasks, jobs=place.jobs, description="pieces", sizes=sizes)
        problems, digests = Problems(), dict[str, dict[str, str]]()
        for pieces, errors in results:
            digests.update(pieces)
            for error in errors:
                problems.note(error)
        problems.raise_if_any()
        write_datadir(_cut(source, folder, digests))
        write_text(path, json.dumps(digests, indent=1) + "\n")

    digests_file = folder / "pieces.json"
    if digests_file.is_file() and not _are_whole(folder, digests_file, place.jobs):
        digests_file.unlink()
    digests = run.stage(
        f"pieces of {source.name}",
        digests_file.name,
        make=make,
        read=lambda path: json.loads(path.read_text(encoding="utf-8")),
        inputs=[PIECES, SHORTEST, sorted(source.speakers.items())],
        sources=source.recordings,
    ).value
    return _cut(source, folder, digests)


def _cut(source: DataDir, folder: Path, digests: dict[str, dict[str, str]]) -> DataDir:
    recordings, speakers = {}, {}
    for utterance in sorted(digests):
        for piece in digests[utterance]:
            recordings[piece], speakers[piece] = folder / "wav" / f"{piece}.wav", source.speakers[utterance]
    return replace(source, path=folder, recordings=recordings, speakers=speakers, enrolls=None, trials=None)


def _cut_some(
    recordings: Sequence[tuple[str, Path]], *, folder: Path
) -> tuple[dict[str, dict[str, str]], list[DataError]]:
    """Cut some recordings; returns the checksums of the pieces of each, and errors."""
    made: dict[str, dict[str, str]] = {}
    errors = []
    (folder / "wav").mkdir(exist_ok=True)
    for utterance, path in recordings:
        try:
            samples, rate = read_audio(path)
            made[utterance] = {}
            for number, (start, stop) in enumerate(piece_bounds(len(samples), rate), 1):
                target = folder / "wav" / f"{utterance}-piece{number}.wav"
                write_audio(target, np.asarray(samples[start:stop]), rate)
                made[utterance][target.stem] = file_digest(target) or ""
        except DataError as error:
            errors.append(DataError(f"{utterance}: {error.text}", file=error.file or path, remedy=error.remedy))
    return made, errors


def _are_whole(folder: Path, file: Path, jobs: int | None) -> bool:
    """Whether the pieces are as they were written."""
    try:
        made = json.loads(file.read_text(encoding="utf-8"))
        expected = [(folder / "wav" / f"{piece}.wav", digest) for of in made.values() for piece, digest in of.items()]
    except (OSError, ValueError, AttributeError):
        return False
    some = [expected[start:stop] for start, stop in chunk_bounds(len(expected), 64)]
    return all(ordered_map(_agree, some, jobs=jobs, threads=True))


def _agree(files: Sequence[tuple[Path, str]]) -> bool:
    return all(path.is_file() and file_digest(path) == digest for path, digest in files)


FOLDS = 5
ENROLLED = 3
TESTED = 12
"""Recordings of a speaker that are enrolled and tested at most."""

_LEAST = 4  # speakers of a fold, where there are as many


@one_line
@dataclass(frozen=True, eq=False)
class Fold:
    """Some speakers of a training set as a test of what is learnt from the others.

    Attributes
    ----------
    number : int
        From 1.
    speakers : tuple of str
        Those that are tested, sorted.
    attack : Attack
        Their trials; its `training` are the versions of the others' speech, whole.
    key : Key
        Which of its trials are targets, in their order.
    """

    number: int
    speakers: tuple[str, ...]
    attack: Attack
    key: Key


def deal_speakers(genders: Mapping[str, str], n_folds: int, *, seed: int) -> list[list[str]]:
    """Deal speakers into folds of equal size, each with as much of both sexes as can be.

    Parameters
    ----------
    genders : mapping of str to str
        Of each speaker; anything where it is not known.
    n_folds : int
    seed : int

    Returns
    -------
    list of list of str
        Speakers of each fold, sorted; the order of the mapping does not matter.
    """
    order = stream(seed, "folds of background speakers").permutation(len(genders))
    names = [sorted(genders)[place] for place in order]
    names.sort(key=lambda name: genders[name])
    return [sorted(names[number::n_folds]) for number in range(n_folds)]


def background_folds(
    training: tuple[DataDir, ...], place: Place, *, folds: int = FOLDS, enrolled: int = ENROLLED, cut: bool = True
) -> list[Fold]:
    """Return speaker-disjoint folds of a training set with trials.

    A model is a speaker with `enrolled` recordings, which is tested with others of its recordings and with those of
    the same sex in its fold (of all, where a sex has one speaker there or the set has no list of sexes). Of several
    versions, such as draws of an anonymiser, the first half enrols and the others are tested: what was drawn for one
    side is not known from the other. Where most speakers have one recording, sides are pieces of it, see
    `spkver.attackers.with_pieces`: no trial compares the same words.

    Parameters
    ----------
    training : tuple of DataDir
        Versions of the same speech.
    place : Place
        Its seed deals the speakers; pieces go below its output folder.
    folds : int
        Fewer are made where they would have fewer than four speakers.
    enrolled : int
        Fewer where a speaker has not so many.
    cut : bool
        Cut recordings into pieces where `needs_pieces` says so; else speakers with one recording are not tested.

    Returns
    -------
    list of Fold
        None where there are fewer than four speakers with two recordings or pieces.
    """
    versions = with_pieces(training, place) if cut else training
    common = set(versions[0].recordings).intersection(*(version.recordings for version in versions[1:]))
    units = {speaker: [name for name in names if name in common] for speaker, names in versions[0].by_speaker().items()}
    fit = {speaker: training[0].genders.get(speaker, "") for speaker, names in units.items() if len(names) > 1}
    if len(fit) < _LEAST:
        return []
    n_folds = max(2, min(folds, len(fit) // _LEAST))
    made = []
    for number, speakers in enumerate(deal_speakers(fit, n_folds, seed=place.seed), 1):
        enrolment, tested = _sides(versions, {speaker: units[speaker] for speaker in speakers}, enrolled)
        key = _key(enrolment, tested, fit)
        others = tuple(_without(version, set(speakers), number) for version in training)
        name = f"folds/{training[0].name}-{number}"
        background = Background(others[0], others[1:])
        attack = Attack(name, others, enrolment, tested, key.trials(), "folds", background)
        made.append(Fold(number, tuple(speakers), attack, key))
    return made


def _sides(versions: Sequence[DataDir], units: Mapping[str, Sequence[str]], enrolled: int) -> tuple[DataDir, DataDir]:
    """What enrols and what is tested, of the speakers of a fold."""
    half = -(-len(versions) // 2)
    numbers = list(range(len(versions)))
    enrol_in, test_in = (numbers[:half], numbers[half:]) if len(versions) > 1 else (numbers, numbers)
    sides: list[list[tuple[int, str]]] = [[], []]
    for names in units.values():
        n_enrolled = max(1, min(enrolled, len(names) // 2))
        places = np.linspace(0, len(names) - 1, n_enrolled + 1).round().astype(int)[:-1]
        first = [names[place] for place in places]
        rest = [name for name in names if name not in first]
        sides[0] += _pairs(first, enrol_in, max(n_enrolled, min(enrolled, len(enrol_in))))
        sides[1] += _pairs(rest, test_in, TESTED)
    enrolment, tested = (
        _directory(versions, pairs, end) for pairs, end in zip(sides, ("enrolls", "trials"), strict=True)
    )
    return replace(enrolment, enrolls=tuple(enrolment.recordings)), tested


def _pairs(names: Sequence[str], numbers: Sequence[int], most: int) -> list[tuple[int, str]]:
    """At most so many recordings in versions: all recordings first, each in the next version."""
    turns = [
        (numbers[(row + turn) % len(numbers)], name) for turn in range(len(numbers)) for row, name in enumerate(names)
    ]
    if len(turns) <= most:
        return turns
    if len(names) <= most:
        return turns[:most]
    return [turns[place] for place in np.linspace(0, len(names) - 1, most).round().astype(int)]


def _directory(versions: Sequence[DataDir], pairs: Sequence[tuple[int, str]], end: str) -> DataDir:
    recordings, speakers = {}, {}
    for number, name in pairs:
        utterance = f"{name}-version{number + 1}" if len(versions) > 1 else name
        recordings[utterance] = versions[number].recordings[name]
        speakers[utterance] = versions[0].speakers[name]
    path = versions[0].path.with_name(f"{versions[0].name}-{end}")
    return DataDir(path, recordings, speakers, versions[0].genders)


def _key(enrolment: DataDir, tested: DataDir, genders: Mapping[str, str]) -> Key:
    """All tests against all models of the sex; of all where a sex is alone."""
    models = sorted(set(enrolment.speakers.values()))
    counts = {gender: sum(genders[model] == gender for model in models) for gender in set(genders.values())}
    together = min((count for count in counts.values() if count), default=0) < 2
    rows = [
        (model, segment, speaker == model)
        for model in models
        for segment, speaker in sorted(tested.speakers.items())
        if together or genders[model] == genders[speaker]
    ]
    return Key.from_ids(*map(list, zip(*rows, strict=True)))


def _without(version: DataDir, speakers: set[str], number: int) -> DataDir:
    """A version of a training set without some speakers."""
    kept = {name: speaker for name, speaker in version.speakers.items() if speaker not in speakers}
    recordings = {name: path for name, path in version.recordings.items() if name in kept}
    genders = {name: sex for name, sex in version.genders.items() if name not in speakers}
    return DataDir(version.path.with_name(f"{version.name}-without{number}"), recordings, kept, genders)
