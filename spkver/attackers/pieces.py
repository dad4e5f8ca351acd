"""Training sets whose speakers have one recording each, cut into pieces: without two of a speaker nothing is learnt of
how speech of one voice varies.

    OUTPUT/data/<training set>-pieces/{wav/<utterance>-piece1.wav,...,wav.scp,utt2spk,...,pieces.json}

Each version of an anonymised training set is cut by itself, so that pieces of one draw share what was drawn for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from spkbase.errors import DataError, Problems
from spkbase.files import file_digest, make_folder, write_text
from spkbase.runs import Depends, Draft, Run, resumed_map
from spkbase.work import chunk_bounds, chunks, ordered_map
from spkver.attackers.protocol import Place
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, write_datadir

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

    def make(draft: Draft) -> None:
        tasks = chunks(sorted(source.recordings.items()), _RECORDINGS)
        results = resumed_map(
            partial(_cut_some, folder=folder), tasks, journal=draft.folder / "pieces.journal",
            fingerprint=draft.fingerprint, jobs=place.jobs, description="pieces", sizes=[*map(len, tasks)],
            pack=lambda result: None if result[1] else ({}, result[0]), unpack=lambda _, note: (note, []),
        )  # fmt: skip
        problems, digests = Problems(), dict[str, dict[str, str]]()
        for pieces, errors in results:
            digests.update(pieces)
            for error in errors:
                problems.note(error)
        problems.raise_if_any()
        write_datadir(_cut(source, folder, digests))
        write_text(draft.path, json.dumps(digests, indent=1) + "\n")

    digests_file = folder / "pieces.json"
    if digests_file.is_file() and not _are_whole(folder, digests_file, place.jobs):
        digests_file.unlink()
    digests = run.stage(
        f"pieces of {source.name}",
        digests_file.name,
        make=make,
        read=lambda path: json.loads(path.read_text(encoding="utf-8")),
        depends=Depends(inputs=[PIECES, SHORTEST, sorted(source.speakers.items())], sources=source.recordings),
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
