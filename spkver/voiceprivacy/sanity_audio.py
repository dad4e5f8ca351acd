"""Whether recordings of an evaluation are what their names say, no second names, no originals; what they give away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from spkbase.errors import few
from spkbase.work import ordered_map
from spkver.audio import read_audio
from spkver.datadir import DataDir
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config

Json = dict[str, Any]

_NAMED = 3
_PART = 4096  # bytes
_COMPARED = 100  # recordings of a directory with their originals
_FEWEST = 10
_MANY = 0.2  # of recordings that are not nearer to their own originals
_PLACES, _BANDS = 200, 32
_LEAST = 1e-20


@dataclass(frozen=True)
class Found:
    """Outcome of a check: its level is ok, note, warning, or error, which forbids a verdict."""

    level: str
    check: str
    text: str


@dataclass(frozen=True)
class Evaluated:
    """What a check may look at.

    Attributes
    ----------
    conditions : sequence of dict
        Entries of ``results.json``.
    sets : Sets
    config : Config
    output : Path
        Where the scores are.
    outcome : spkver.voiceprivacy.making.Outcome
        What came of the scores besides the scores.
    utility : dict
        What `measure_utility` found.
    earlier : mapping
        Results of other anonymisers in the same folder, by file name.
    simulated : bool
        Whether the speech is SIMULATED.
    jobs : int, optional
        Work.
    """

    conditions: Sequence[Json]
    sets: Sets
    config: Config
    output: Path
    outcome: Any
    utility: Json
    earlier: Mapping[str, Json]
    simulated: bool = False
    jobs: int | None = None


def duplicate_audio(given: Evaluated) -> Iterator[Found]:
    """Check that no recording has two names: a trial would be trivial, or a training speaker a tested one."""
    for what, directories in (("original", given.sets.original), ("anonymised", given.sets.twins)):
        equal = equal_files(directories.values())
        if equal:
            examples = "; ".join(" = ".join(group) for group in equal[:_NAMED])
            n_files = sum(map(len, equal))
            text = f"{n_files} files of {what} speech hold the audio of another one: {examples}"
            yield Found("warning", "duplicate audio", text + (" ..." if len(equal) > _NAMED else "."))
        else:
            yield Found("ok", "duplicate audio", f"No two files of {what} speech are equal.")


def original_audio(given: Evaluated) -> Iterator[Found]:
    """Check twins for audio of another original directory; that of their own `check_twin` has excluded."""
    originals = {
        f"{directory.name}/{utterance}"
        for directory in given.sets.original.values()
        for utterance in directory.recordings
    }
    left = []
    for group in equal_files([*given.sets.original.values(), *given.sets.twins.values()]):
        here, there = [name for name in group if name in originals], [name for name in group if name not in originals]
        # under its own name it was let through before: by an anonymiser that changes nothing, as was asked
        if here and there and not {name.split("/")[1] for name in here} & {name.split("/")[1] for name in there}:
            left.append(f"{there[0]} = {here[0]}")
    if left:
        text = f"{len(left)} files of anonymised speech hold original audio of another set: {'; '.join(left[:_NAMED])}"
        yield Found("warning", "original audio", text + (" ..." if len(left) > _NAMED else "."))


def equal_files(directories: Iterable[DataDir]) -> list[list[str]]:
    """Return groups of utterances, as ``directory/utterance``, whose files hold the same bytes.

    A file that stands under one name in several directories is one; under two names it is a duplicate.

    Of most files some bytes are read alone: those of the same size are compared by their middle before their whole.
    """
    files: dict[tuple[Path, str], str] = {}  # lists may share recordings, under the same names
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            files.setdefault((Path(os.path.realpath(path)), utterance), f"{directory.name}/{utterance}")
    alike = _groups(files, lambda file: file[0].stat().st_size)
    alike = [group for one in alike for group in _groups(one, lambda file: _middle(file[0]))]
    alike = [group for one in alike for group in _groups(one, lambda file: sha256(file[0].read_bytes()).digest())]
    return sorted([files[file] for file in group] for group in alike)


def _groups(
    files: Iterable[tuple[Path, str]], feature: Callable[[tuple[Path, str]], object]
) -> list[list[tuple[Path, str]]]:
    """Groups of files in which a feature is the same, without those of one file."""
    groups: dict[object, list[tuple[Path, str]]] = {}
    for file in files:
        groups.setdefault(feature(file), []).append(file)
    return [group for group in groups.values() if len(group) > 1]


def _middle(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(path.stat().st_size // 2)
        return file.read(_PART)


def resemblance(given: Evaluated) -> Iterator[Found]:
    """Check that anonymised recordings are nearer to their own originals than to those of others.

    Transformations that leave words or rhythm leave that, so do time reversal, spectral inversion, permuted frames and
    noise at -20 dB SNR. Files under each other's names do not, nor noise or silence in place of speech: there is no
    verdict then.
    """
    found: dict[str, list[str]] = {}
    for name, twin in given.sets.twins.items():
        original = given.sets.original[name]
        utterances = spaced(sorted(original.recordings))
        if len(utterances) < _FEWEST or given.config.anonymizer.name == "none":
            continue
        paths = [[one.recordings[utterance] for utterance in utterances] for one in (original, twin)]
        nearer = nearer_than_others(*(described(side, given.jobs) for side in paths))
        wrong = 2 * float((nearer < 0.5).mean())
        # a share has the variance 1 / 12 if names tell nothing; the best of three measures, at 3.5 deviations
        level = (
            "error" if nearer.mean() < 0.5 + 3.5 / np.sqrt(12 * len(nearer)) else "warning" if wrong > _MANY else "ok"
        )
        found.setdefault(level, []).append(twin.name if level == "ok" else f"{twin.name} ({100 * min(wrong, 1):.0f} %)")
    for level, names in found.items():
        nearest = "Recordings are nearer to their own originals than to those of others"
        text = f"{nearest} in {few(names)}."
        if level != "ok":
            text = f"{nearest}, but not about so many of {few(names)}: they stand under each other's names, or hold no"
            text += " speech. Listen to some, and check wav.scp."
        yield Found(level, "resemblance", text)


def spaced(names: Sequence[str]) -> Sequence[str]:
    """Return at most `_COMPARED` names, evenly spaced."""
    return names[:: max(1, -(-len(names) // _COMPARED))]


def described(paths: Sequence[Path], jobs: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how recordings rise and fall, and their long-term spectra.

    Returns
    -------
    levels : ndarray of float64 of shape (n, 200)
        Level in dB of frames of 20 ms, at 200 places from start to end; down to 60 dB below the loudest.
    spectra : ndarray of float64 of shape (n, 32)
        Mean power in dB in 32 bands of equal width.
    """
    found = list(ordered_map(_described, paths, jobs=jobs, threads=True))
    return np.array([levels for levels, _ in found]), np.array([spectrum for _, spectrum in found])


def _described(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    audio = read_audio(path, channel=0, dtype="float64")
    size = audio.rate // 50
    padded = np.pad(audio.samples, (0, max(0, size - len(audio.samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[:: size // 2]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    levels = 10 * np.log10(power.sum(axis=1) + _LEAST)
    levels = np.maximum(levels, levels.max() - 60)
    bands = [band.mean() for band in np.array_split(power.mean(axis=0), _BANDS)]
    return np.interp(np.linspace(0, 1, _PLACES), np.linspace(0, 1, len(levels)), levels), 10 * np.log10(
        np.array(bands) + _LEAST
    )


def nearer_than_others(
    originals: tuple[NDArray[np.float64], NDArray[np.float64]],
    twins: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return of each recording the share of other originals that it is further from than from its own.

    Parameters
    ----------
    originals, twins : levels and spectra
        See `described`; recording i of one belongs to recording i of the other.

    Returns
    -------
    ndarray of float64 of shape (n,)
        By the correlation of levels, of levels backwards, or of spectra, whichever tells most on average; ties count
        half.
    """
    (levels, spectra), (other_levels, other_spectra) = originals, twins
    pairs = (levels, other_levels), (levels, other_levels[:, ::-1]), (spectra, other_spectra)
    found = []
    for own, other in pairs:
        alike = standardised(other) @ standardised(own).T
        right = np.diag(alike)[:, np.newaxis]
        found.append(((alike < right).sum(axis=1) + ((alike == right).sum(axis=1) - 1) / 2) / (len(alike) - 1))
    return max(found, key=np.mean)


def standardised(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows less their means, of norm 1, so that products of two are correlations."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), _LEAST)


def file_tags(given: Evaluated) -> Iterator[Found]:
    """Warn where a tag of an anonymised file (artist, title, comment) holds the name of its speaker."""
    found = []
    for twin in given.sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(twin.recordings[utterance]) as file:
                tags = file.copy_metadata()
                found += [
                    f"{twin.name}/{utterance}, {tag}"
                    for tag, words in tags.items()
                    if twin.speakers[utterance] in words
                ]
    if found:
        text = f"Tags of anonymised files name the speaker: {few(found)}. No attacker reads them: remove them."
        yield Found("warning", "tags of files", text)
