"""Pieces of recordings, for training sets with one recording per speaker, which do not show how a voice varies.

    OUTPUT/data/<training set>-pieces/{wav/<utterance>-piece1.wav,...,wav.scp,utt2spk,...,pieces.json}

Each version of an anonymised training set is cut separately, so that the pieces of a recording share its draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from spkbase.errors import DataError, Problems
from spkbase.files import load_json, make_folder, write_json
from spkbase.runs import Run
from spkbase.work import Work
from spkver.attackers.protocol import Place
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, write_datadir

PIECES = 2
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


def piece_bounds(n_samples: int, rate: int) -> list[tuple[int, int]]:
    """Return where the pieces of a recording begin and end: `PIECES` of equal length, or the whole if it is short.

    Examples
    --------
    >>> piece_bounds(5, 1), piece_bounds(3, 2)
    ([(0, 3), (3, 5)], [(0, 3)])
    """
    if n_samples < PIECES * SHORTEST * rate:
        return [(0, n_samples)]
    return list(pairwise(-(-n_samples * number // PIECES) for number in range(PIECES + 1)))


def with_pieces(training: Sequence[DataDir], place: Place) -> tuple[DataDir, ...]:
    """Return the versions of a training set, cut into pieces if `needs_pieces` says so."""
    if not needs_pieces(training[0]):
        return tuple(training)
    return tuple(cut_directory(version, place) for version in training)


def cut_directory(source: DataDir, place: Place) -> DataDir:
    """Cut the recordings of a data directory into pieces, which are written once.

    Parameters
    ----------
    source : DataDir
    place : Place
        Pieces are written to ``data/`` in its folder of speech, or else in its output folder.

    Returns
    -------
    DataDir
        Utterances are ``<utterance>-piece<number>``, with 16 bits.

    Raises
    ------
    DataError
        If recordings cannot be read or written; all are named.
    """
    folder = make_folder((place.speech or place.output) / "data" / f"{source.name}-pieces")
    run = Run(folder, jobs=place.jobs, quiet=True)  # force does not remake them: they are copies, and often requested

    def directory(pieces: Mapping[str, Sequence[str]]) -> DataDir:
        owners = {piece: source.speakers[utterance] for utterance in sorted(pieces) for piece in pieces[utterance]}
        recordings = {piece: folder / "wav" / f"{piece}.wav" for piece in owners}
        return replace(source, path=folder, recordings=recordings, speakers=owners, enrolls=None, trials=None)

    def make(path: Path) -> None:
        (folder / "wav").mkdir(exist_ok=True)
        recordings, cut = sorted(source.recordings.items()), partial(_cut, folder=folder)
        problems, found = Problems(), dict[str, list[str]]()
        made = Work(place.jobs).map(cut, recordings, processes=True, description="pieces")
        for (utterance, recording), pieces in zip(recordings, made, strict=True):
            if isinstance(pieces, DataError):
                text = f"{utterance}: {pieces.text}"
                problems.note(DataError(text, file=pieces.file or recording, remedy=pieces.remedy))
            else:
                found[utterance] = pieces
        problems.raise_if_any()
        write_datadir(directory(found))
        write_json(path, found)

    pieces = run.stage(
        f"pieces of {source.name}",
        "pieces.json",
        make=make,
        read=load_json,
        inputs=[PIECES, SHORTEST, sorted(source.speakers.items())],
        sources=source.recordings,
    ).value
    return directory(pieces)


def _cut(recording: tuple[str, Path], *, folder: Path) -> list[str] | DataError:
    """Cut a recording; return its pieces, or the error."""
    utterance, path = recording
    try:
        samples, rate = read_audio(path)
        bounds = piece_bounds(len(samples), rate)
        pieces = [f"{utterance}-piece{number}" for number in range(1, 1 + len(bounds))]
        for piece, (start, stop) in zip(pieces, bounds, strict=True):
            write_audio(folder / "wav" / f"{piece}.wav", np.asarray(samples[start:stop]), rate)
        return pieces
    except DataError as error:
        return error
