"""Checks of recordings, which listen to the original and anonymised directories before anything is trained.

    checks<suffix>.json    their findings, which the report shows

A check is a function that takes the sets and the number of workers, and yields `Finding`s.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from evaluation.reports import Finding
from spkbase.errors import few
from spkbase.files import load_json, write_json
from spkbase.runs import Run
from spkbase.work import Work, one_blas_thread
from spkver.audio import doubtful_recordings, read_audio
from spkver.datadir import DataDir
from spkver.features import PRESETS, FeatureConfig, mfcc
from spkver.voiceprivacy.sets import Sets, stamp_of

logger = logging.getLogger(__name__)

_PART = 4096  # bytes
_COMPARED = 100  # recordings of a directory that are compared with their originals
_PLACES, _BANDS, _CELLS = 200, 32, 150
_LEAST = 1e-20
_PAUSE = 8.0  # natural logarithm of the power by which pauses are below loud frames, 35 dB
_FEWEST = 10
_BITS = {"PCM_24": 24, "PCM_32": 32, "FLOAT": 32, "DOUBLE": 64}  # other files: 16
_MANY = 0.2  # share of recordings that are not nearer to their own originals; each adds half a point to the EER
_MISSED, _SEVERAL = 2, 4  # further than half of the others: one may be by chance, three in 30 may be misheard


def check_audio(run: Run, sets: Sets, suffix: str) -> None:
    """Check the recordings of all directories, keep the findings of each check, and log what forbids a verdict."""

    def make(path: Path) -> None:
        findings = {check.__name__: check(sets, run.jobs) for check in RECORDING_CHECKS}
        write_json(path, {name: [[*vars(one).values()] for one in of_check] for name, of_check in findings.items()})

    run.stage(
        "recordings",
        f"checks{suffix}.json",
        make=make,
        read=load_json,
        inputs=sets.training_sets,
        after=[stamp_of(run, one) for one in (*sets.original.values(), *sets.twins.values())],
        libraries=("numpy", "soundfile"),
    )
    for finding in chain(*read_findings(run, suffix).values()):
        if finding.level == "error":
            logger.warning("no verdict will be given: %s", finding.text)


def read_findings(run: Run, suffix: str) -> dict[str, list[Finding]]:
    """Return the findings of each check by its name."""
    found = load_json(run.path(f"checks{suffix}.json"))
    return {check: [Finding(*row) for row in rows] for check, rows in found.items()}


def equal_audio(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Check that no recording has two names, and that no anonymised recording is the original of another utterance.

    A trial would be trivial, or a training speaker would be tested. `check_twin` compares each recording with its own
    original.
    """
    originals = {f"{one.name}/{utterance}" for one in sets.original.values() for utterance in one.recordings}
    found: dict[str, list[list[str]]] = {"original": [], "anonymised": [], "both": []}
    for group in equal_files([*sets.original.values(), *sets.twins.values()]):
        sides = [[name for name in group if (name in originals) == is_original] for is_original in (True, False)]
        for what, names in zip(("original", "anonymised"), sides, strict=True):
            found[what] += [names] if len(names) > 1 else []
        # an utterance equals its own original if the anonymiser was asked to change nothing
        here, there = ({name.split("/")[1] for name in names} for names in sides)
        if here and there and not here & there:
            found["both"].append([sides[1][0], sides[0][0]])
    listed = {what: few([" = ".join(group) for group in groups]) for what, groups in found.items()}
    for what in ("original", "anonymised"):
        text = f"{sum(map(len, found[what]))} files of {what} speech hold the audio of another one: {listed[what]}"
        text = text if found[what] else f"No two files of {what} speech are equal."
        yield Finding("warning" if found[what] else "ok", "duplicate audio", text)
    if found["both"]:
        text = f"{len(found['both'])} files of anonymised speech hold original audio of another set: {listed['both']}"
        yield Finding("warning", "original audio", text)


def equal_files(directories: Iterable[DataDir]) -> list[list[str]]:
    """Return groups of utterances, as ``directory/utterance``, whose files hold the same bytes.

    A file that several directories list under one name counts once; under two names it is a duplicate. Files of the
    same size are compared by some bytes in the middle first, so that few files are read whole.
    """

    def middle(path: Path) -> bytes:
        with path.open("rb", buffering=0) as file:
            file.seek(path.stat().st_size // 2)
            return file.read(_PART)

    files: dict[tuple[Path, str], str] = {}  # lists may share recordings, under the same names
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            files.setdefault((Path(os.path.realpath(path)), utterance), f"{directory.name}/{utterance}")
    alike = [list(files)]
    for feature in (lambda path: path.stat().st_size, middle, lambda path: sha256(path.read_bytes()).digest()):
        groups: dict[object, list[tuple[Path, str]]] = {}
        for group, file in ((group, file) for group, of in enumerate(alike) for file in of):
            groups.setdefault((group, feature(file[0])), []).append(file)
        alike = [group for group in groups.values() if len(group) > 1]
    return sorted([files[file] for file in group] for group in alike)


def broken_recordings(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Warn of anonymised recordings that are clipped, far too quiet, too short or silent; training sets are sampled."""
    training = sets.training_sets
    for name, twin in sets.twins.items():
        chosen = spaced(sorted(twin.recordings)) if name in training else sorted(twin.recordings)
        texts = doubtful_recordings({one: twin.recordings[one] for one in chosen}, jobs=jobs)
        recordings = sets.original[name].recordings
        before = doubtful_recordings({one: recordings[one] for one in chosen if texts and one in recordings}, jobs=jobs)
        for text in texts:
            more = f" Their originals: {'; '.join(before)}." if before else ""
            yield Finding("warning", "broken recordings", f"{twin.name}: {text}.{more}")


def file_tags(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Warn if a tag of an anonymised file (artist, title, comment) contains the name of its speaker."""
    found = []
    for twin in sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(twin.recordings[utterance]) as file:
                tags = [tag for tag, words in file.copy_metadata().items() if twin.speakers[utterance] in words]
                found += [f"{twin.name}/{utterance}, {tag}" for tag in tags]
    if found:
        text = f"Tags of anonymised files name the speaker: {few(found)}. No attacker reads them: remove them."
        yield Finding("warning", "tags of files", text)


def hidden_speech(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note anonymised files with more bits or a higher sampling rate than the originals, where speech may be hidden."""
    found = []
    for name, twin in sets.twins.items():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(soundfile.LibsndfileError, OSError):
                before, after = (soundfile.info(side.recordings[utterance]) for side in (sets.original[name], twin))
                if after.samplerate > before.samplerate or _BITS.get(after.subtype, 16) > _BITS.get(before.subtype, 16):
                    found.append(f"{twin.name}/{utterance}, {after.subtype} at {after.samplerate} Hz")
    if found:
        text = f"{len(found)} anonymised files have more bits or a higher sampling rate than their originals"
        text += f" ({few(found)}). Attackers do not look for original speech there: convert the files."
        yield Finding("note", "hidden speech", text)


def resemblance(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Check that anonymised recordings are nearer to their own originals than to other originals.

    This holds for transformations that preserve words or rhythm, also for words that another voice speaks at its own
    pace, and for time reversal, spectral inversion, permuted frames and noise at -10 dB SNR. It fails if files are
    exchanged, or if noise or silence replaces speech: if this holds for a fifth of the recordings or more, there is no
    verdict.
    """
    found: dict[str, list[str]] = {}
    for name, twin in sets.twins.items():
        utterances = spaced(sorted(twin.recordings))
        if len(utterances) < _FEWEST:
            continue
        original, anonymised = (
            described([side.recordings[utterance] for utterance in utterances], jobs)
            for side in (sets.original[name], twin)
        )
        nearer = nearer_than_others(original, anonymised)
        missed = int((nearer < 0.5).sum())
        wrong = 2 * missed / len(nearer)
        # a share is uniform, of variance 1 / 12, if files are exchanged; 3.7 deviations allow for the best of four
        is_none = nearer.mean() < 0.5 + 3.7 / np.sqrt(12 * len(nearer))
        is_error = is_none or (missed >= _SEVERAL and wrong >= _MANY)
        level = "error" if is_error else "warning" if missed >= _MISSED else "ok"
        name = twin.name if level == "ok" else f"{100 * min(wrong, 1):.0f} % of {twin.name}"
        found.setdefault(level, []).append(name)
    for level, names in found.items():
        if level == "ok":
            text = f"Recordings are nearer to their own originals than to other originals in {few(names)}."
        else:
            text = f"{few(names)} are no nearer to their own originals than to other originals: files are exchanged, or"
            text += " hold no speech, or other words. Listen to some, and check wav.scp."
        yield Finding(level, "resemblance", text)


class Description(NamedTuple):
    """What is compared of n recordings.

    Attributes
    ----------
    levels : ndarray of float64 of shape (n, 200)
        Levels in dB of frames of 20 ms, at 200 points from start to end; at least the loudest level minus 60 dB.
    spectra : ndarray of float64 of shape (n, 32)
        Mean power in dB in 32 bands of equal width.
    cepstra : ndarray of float32 of shape (n, 150, 12)
        Cepstra of the telephone band in 150 parts of equal length, without pauses; each coefficient is normalised over
        time, then each part to norm 1.
    """

    levels: NDArray[np.float64]
    spectra: NDArray[np.float64]
    cepstra: NDArray[np.float32]


def nearer_than_others(originals: Description, twins: Description) -> NDArray[np.float64]:
    """Return the share of other originals that are less similar to each recording than its own original.

    Parameters
    ----------
    originals, twins : Description
        Recording i of one belongs to recording i of the other.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Similarity is that of warped cepstra, in units of its spread over the anonymised recordings, or the correlation
        of levels, of reversed levels, or of spectra: the first of these whose mean share is within a standard deviation
        of the largest by chance, since the luckiest of several would hide exchanged files. Ties count half.
    """
    found = []
    for alike in (
        standardised(warped_similarity(originals.cepstra, twins.cepstra)).T,
        standardised(twins.levels) @ standardised(originals.levels).T,
        standardised(twins.levels[:, ::-1]) @ standardised(originals.levels).T,
        standardised(twins.spectra) @ standardised(originals.spectra).T,
    ):
        right = np.diag(alike)[:, np.newaxis]
        found.append(((alike < right).sum(axis=1) + ((alike == right).sum(axis=1) - 1) / 2) / (len(alike) - 1))
    least = max(map(np.mean, found)) - 1 / np.sqrt(12 * len(found[0]))
    return next(shares for shares in found if shares.mean() >= least)


@one_blas_thread()
def warped_similarity(sequences: NDArray[np.floating], others: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean inner product of the vectors of two sequences along the best path through both.

    Each vector of a sequence is paired with one of the other sequence: the one that its predecessor is paired with, the
    next, or the one after that. The first vectors form a pair, and so do the last.

    Parameters
    ----------
    sequences : ndarray of float of shape (n, T, D)
    others : ndarray of float of shape (m, T, D)

    Returns
    -------
    ndarray of float64 of shape (n, m)

    References
    ----------
    H. Sakoe, S. Chiba, Dynamic programming algorithm optimization for spoken word recognition, IEEE Transactions on
    Acoustics, Speech, and Signal Processing 26(1), 1978.
    """
    found = np.empty((len(sequences), len(others)))
    for row, sequence in enumerate(sequences):
        products = np.einsum("td,mud->tmu", sequence, others, optimize=True)
        best = np.full((len(others), 2 + others.shape[1]), -np.inf, others.dtype)  # two columns precede each
        best[:, 2] = products[0, :, 0]
        for product in products[1:]:
            best[:, 2:] = product + np.maximum(np.maximum(best[:, 2:], best[:, 1:-1]), best[:, :-2])
        found[row] = best[:, -1] / len(products)
    return found


def described(paths: Sequence[Path], jobs: int | None = None) -> Description:
    """Return the level contours, long-term spectra and sequences of cepstra of recordings."""
    return Description(*map(np.array, zip(*Work(jobs).map(_described, paths), strict=True)))


def standardised(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre rows and scale them to norm 1, so that inner products are correlations."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), _LEAST)


def spaced(names: Sequence[str]) -> Sequence[str]:
    """Return at most `_COMPARED` names, evenly spaced."""
    return names[:: max(1, -(-len(names) // _COMPARED))]


RECORDING_CHECKS: tuple[Callable[[Sets, int | None], Iterator[Finding]], ...] = (
    resemblance,
    equal_audio,
    broken_recordings,
    file_tags,
    hidden_speech,
)
"""All checks of recordings."""


def _described(path: Path) -> tuple[NDArray[np.floating], ...]:
    audio = read_audio(path, channel=0, dtype="float64")
    size = audio.rate // 50
    padded = np.pad(audio.samples, (0, max(0, size - len(audio.samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[:: size // 2]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    levels = 10 * np.log10(power.sum(axis=1) + _LEAST)
    levels = np.maximum(levels, levels.max() - 60)
    bands = np.array([band.mean() for band in np.array_split(power.mean(axis=0), _BANDS)])
    return (
        np.interp(np.linspace(0, 1, _PLACES), np.linspace(0, 1, len(levels)), levels),
        10 * np.log10(bands + _LEAST),
        _sequence(path),
    )


def _sequence(path: Path) -> NDArray[np.float32]:
    """Return the normalised cepstra of a recording in parts of equal length, see `Description`."""
    config = FeatureConfig(**PRESETS["telephone"])  # type: ignore[arg-type]
    samples = read_audio(path, rate=config.rate, resample=True, channel=0, dtype="float64").samples
    cepstra, energy = mfcc(np.pad(samples, (0, max(0, config.min_samples - len(samples)))), config)
    cepstra = cepstra[energy > np.quantile(energy, 0.95) - _PAUSE]
    sums = np.cumsum(np.pad(cepstra, ((1, 0), (0, 0))), axis=0)
    bounds = np.linspace(0, len(cepstra), 1 + _CELLS)
    parts = standardised(np.diff([np.interp(bounds, np.arange(len(sums)), column) for column in sums.T]))
    return np.asarray((parts / np.maximum(np.linalg.norm(parts, axis=0), _LEAST)).T, dtype=np.float32)
