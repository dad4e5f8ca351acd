"""Pieces of recordings, for training sets with one recording per speaker, which do not show how a voice varies.

    OUTPUT/data/<training set>-pieces/{wav/<utterance>-piece1.wav,...,wav.scp,utt2spk,...,pieces.json}

Each version of an anonymised training set is cut separately, so that the pieces of a recording share its draw.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from spkbase.errors import DataError, Problems
from spkbase.files import load_json, make_folder, write_json
from spkbase.runs import Run
from spkbase.work import Work
from spkver.audio import audio_header, read_audio, write_audio
from spkver.datadir import DataDir, wav_file, write_datadir

PIECES = 2
ENDING = "-pieces"
"""Ending of the names of data directories with pieces."""

SHORTEST = 1.0
"""Shortest piece in seconds; a recording that gives only shorter ones stays whole."""


def needs_pieces(training: DataDir) -> bool:
    """Return whether most speakers of a training set have only one recording.

    Examples
    --------
    >>> needs_pieces(DataDir(Path("d"), {}, {"a1": "a", "a2": "a", "b1": "b"}))
    False
    >>> needs_pieces(DataDir(Path("d"), {}, {"a1": "a", "b1": "b"}))
    True
    """
    counts = Counter(training.speakers.values())
    return 2 * sum(count > 1 for count in counts.values()) < len(counts)


def whole_name(directory: DataDir) -> str:
    """Return the name of a data directory, or of the one whose recordings it holds in pieces."""
    return directory.path.resolve().name.removesuffix(ENDING)


def whole_utterance(name: str) -> tuple[str, int]:
    """Return the utterance from which a piece or a version in a fold was made, and the number of the piece, else 0.

    Examples
    --------
    >>> whole_utterance("u1-piece2-version3"), whole_utterance("u1")
    (('u1', 2), ('u1', 0))
    """
    utterance, piece = re.fullmatch(r"(.*?)(?:-piece(\d+))?(?:-version\d+)?", name).groups()  # type: ignore[union-attr]
    return utterance, int(piece or 0)


def count_pieces(training: DataDir) -> dict[str, int]:
    """Return the number of pieces into which each recording is cut: `PIECES`, or 1 if they would be too short."""
    counts = {}
    for name, path in training.recordings.items():
        is_long = audio_header(path).seconds >= PIECES * SHORTEST
        counts[name] = PIECES if is_long else 1
    return counts


def pieces_of(source: DataDir, counts: Mapping[str, int], folder: Path) -> DataDir:
    """Return the data directory of the pieces, which `cut` writes; utterances are ``<utterance>-piece<number>``."""
    owners = {}
    for utterance, speaker in sorted(source.speakers.items()):
        for number in range(1, 1 + counts[utterance]):
            owners[f"{utterance}-piece{number}"] = speaker
    recordings = {piece: wav_file(folder, piece) for piece in owners}
    return replace(
        source, path=folder, recordings=recordings, speakers=owners, enrolls=None, trials=None
    )


def cut(source: DataDir, counts: Mapping[str, int], folder: Path, *, jobs: int | None) -> None:
    """Cut the recordings of a data directory into pieces of equal length with 16 bits, unless they are up to date.

    Parameters
    ----------
    source : DataDir
    counts : mapping of str to int
        Number of pieces of each utterance, see `count_pieces`.
    folder : Path
        Folder in which `pieces_of` expects them.
    jobs : int or None

    Raises
    ------
    DataError
        If recordings cannot be read or written; all are named.
    """

    def make(path: Path) -> None:
        make_folder(folder / "wav")
        tasks = [
            (name, recording, counts[name]) for name, recording in sorted(source.recordings.items())
        ]
        problems = Problems()
        for error in Work(jobs).map(
            partial(_cut, folder=folder), tasks, processes=True, description="pieces"
        ):
            if error is not None:
                problems.note(error)
        problems.raise_if_any()
        write_datadir(pieces_of(source, counts, folder))
        write_json(path, dict(counts))

    Run(make_folder(folder), jobs=jobs, quiet=True).stage(
        f"pieces of {source.name}",
        "pieces.json",
        step="pieces",
        make=make,
        read=load_json,
        inputs=[PIECES, SHORTEST, sorted(source.speakers.items()), sorted(counts.items())],
        sources=source.recordings,
    )


def _cut(task: tuple[str, Path, int], *, folder: Path) -> DataError | None:
    """Cut a recording; return the error if there is one."""
    utterance, path, count = task
    try:
        samples, rate = read_audio(path)
        edges = [-(-len(samples) * number // count) for number in range(count + 1)]
        for number, (start, stop) in enumerate(pairwise(edges), 1):
            write_audio(
                wav_file(folder, f"{utterance}-piece{number}"),
                np.asarray(samples[start:stop]),
                rate,
            )
    except DataError as error:
        return DataError(f"{utterance}: {error.text}", file=error.file or path, remedy=error.remedy)
    return None
