"""Checks of recordings, which listen to the original and anonymised directories before anything is trained.

    checks<suffix>.json    their findings, which the report shows

A check is a function that takes the sets and the number of workers, and yields `Finding`s.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.reports import Finding
from spkbase.errors import DataError, few
from spkbase.files import load_json, write_json
from spkbase.runs import Run
from spkbase.work import Work, one_blas_thread
from spkver.audio import doubtful_recordings, open_audio, read_audio
from spkver.datadir import DataDir, copies, duration_changes, enrolment, fingerprints_of
from spkver.extractors import energy_contour
from spkver.features import FRAME_SHIFT, FeatureConfig, mfcc
from spkver.voiceprivacy.sets import Sets, stamp_of

logger = logging.getLogger(__name__)

_COMPARED = 100  # recordings of a directory that are compared with their originals
_PLACES = 200
_BANDS = 32
_CELLS = 150
_LEAST = 1e-20
_PAUSE = 8.0  # natural logarithm of the power by which pauses are below loud frames, 35 dB
_LOUD = 20  # the number of loudest frames
_SPEECH = 30.0  # dB below the softest of these
_FEWEST = 10
_ANOTHER_DURATION = 0.1  # vocoders work in whole frames
_BITS = {"PCM_24": 24, "PCM_32": 32, "FLOAT": 32, "DOUBLE": 64}  # other files: 16
_MANY = 0.2  # share of recordings that are not nearer to their own originals; each adds half a point to the EER
# numbers of recordings for which half of the other originals are nearer than their own
_MISSED = 2  # one may be so by chance
_SEVERAL = 4  # three in 30 may be misheard

VERY_SHORT = 0.5
"""Seconds of speech: a test recording or the enrolment of a speaker with less is too short; see
docs/studies/attackers.md."""
SHORT = 1.0
"""Seconds of speech that are too few if the other side has less than `NOT_LONG`."""
NOT_LONG = 6.0
"""Seconds of speech from which on one side makes up for the other."""


def check_audio(run: Run, sets: Sets, suffix: str) -> None:
    """Check the recordings of all directories, keep the findings of each check, and log what forbids a verdict."""

    def make(path: Path) -> None:
        contents = {}
        for check in RECORDING_CHECKS:
            contents[check.__name__] = [astuple(finding) for finding in check(sets, run.jobs)]
        write_json(path, contents)

    run.stage(
        "recordings",
        f"checks{suffix}.json",
        make=make,
        read=load_json,
        inputs=[sets.training_sets, list(map(attrgetter("__name__"), RECORDING_CHECKS))],
        after=[stamp_of(run, side) for side in (*sets.original.values(), *sets.twins.values())],
        libraries=("numpy", "soundfile"),
    )
    for finding in chain(*read_findings(run, suffix).values()):
        if finding.level == "error":
            logger.warning("no verdict will be given: %s", finding.text)


def read_findings(run: Run, suffix: str) -> dict[str, list[Finding]]:
    """Return the findings of each check by its name."""
    findings = {}
    for check, rows in load_json(run.path(f"checks{suffix}.json")).items():
        findings[check] = [Finding(*row) for row in rows]
    return findings


def equal_audio(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Check that no recording has two names, and that no anonymised recording is the original of another utterance.

    A trial would be trivial, or a training speaker would be tested. Recordings are compared by what they sound like,
    see `spkver.datadir.fingerprints`. `check_twin` compares each recording with its own original.
    """
    originals = fingerprints_of(distinct_recordings(sets.original.values()), jobs=jobs)
    twins = fingerprints_of(distinct_recordings(sets.twins.values()), jobs=jobs)
    for side, prints in (("original", originals), ("anonymised", twins)):
        names = list(prints)
        pairs = copies(list(prints.values()))
        if pairs:
            equal = []
            copied = set()
            for first, second in pairs:
                equal.append(f"{names[first]} = {names[second]}")
                copied.add(second)
            listed = few(equal)
            n_files = len(copied)
            text = f"{n_files} files of {side} speech hold the audio of another one, whatever its format, level or"
            yield Finding("warning", "duplicate audio", f"{text} ends: {listed}")
        else:
            yield Finding("ok", "duplicate audio", f"No two files of {side} speech are equal.")
    matches: dict[str, list[str]] = {}
    names = list(originals)
    twin_names = list(twins)
    for twin, original in copies(list(twins.values()), list(originals.values())):
        matches.setdefault(twin_names[twin], []).append(names[original])
    # an utterance equals its own original if the anonymiser was asked to change nothing, or little
    foreign = [f"{twin} = {same[0]}" for twin, same in matches.items() if not _is_own(twin, same)]
    if foreign:
        text = f"{len(foreign)} files of anonymised speech hold original audio of another set: {few(foreign)}"
        yield Finding("warning", "original audio", text)


def distinct_recordings(directories: Iterable[DataDir]) -> dict[str, Path]:
    """Return recordings by ``directory/utterance``; one that several directories list under one name counts once."""
    names: dict[tuple[str, str], str] = {}
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            names.setdefault((os.path.realpath(path), utterance), f"{directory.name}/{utterance}")
    return {name: Path(path) for (path, _), name in names.items()}


def _is_own(twin: str, originals: Iterable[str]) -> bool:
    """Whether one of the originals, as ``directory/utterance``, is the twin's utterance."""
    return any(name.partition("/")[2] == twin.partition("/")[2] for name in originals)


def broken_recordings(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Warn of anonymised recordings that are clipped, far too quiet, too short or silent; training sets are sampled."""
    training = sets.training_sets
    for name, twin in sets.twins.items():
        chosen: Sequence[str] = sorted(twin.recordings)
        if name in training:
            chosen = spaced(chosen)
        texts = doubtful_recordings(_chosen(twin, chosen), jobs=jobs)
        if not texts:
            continue
        before = doubtful_recordings(_chosen(sets.original[name], chosen), jobs=jobs)
        more = f" Their originals: {'; '.join(before)}." if before else ""
        for text in texts:
            yield Finding("warning", "broken recordings", f"{twin.name}: {text}.{more}")


def file_tags(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Warn if a tag of an anonymised file (artist, title, comment) contains the name of its speaker."""
    naming = []
    for twin in sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(DataError), open_audio(twin.recordings[utterance]) as file:
                for tag, words in file.copy_metadata().items():
                    if twin.speakers[utterance] in words:
                        naming.append(f"{twin.name}/{utterance}, {tag}")
    if naming:
        text = f"Tags of anonymised files name the speaker: {few(naming)}. Remove them."
        yield Finding("warning", "tags of files", text)


def hidden_speech(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note anonymised files with more bits or a higher sampling rate than the originals, where speech may be hidden."""
    roomy = []
    for name, twin in sets.twins.items():
        for utterance in spaced(sorted(twin.recordings)):
            before = sets.original[name].recordings[utterance]
            after = twin.recordings[utterance]
            with suppress(DataError), open_audio(before) as original, open_audio(after) as anonymised:
                more_bits = _BITS.get(anonymised.subtype, 16) > _BITS.get(original.subtype, 16)
                if more_bits or anonymised.samplerate > original.samplerate:
                    rate = anonymised.samplerate
                    roomy.append(f"{twin.name}/{utterance}, {anonymised.subtype} at {rate} Hz")
    if roomy:
        text = f"{len(roomy)} anonymised files have more bits or a higher sampling rate than their originals"
        text += f" ({few(roomy)}). Attackers do not look for original speech there: convert the files."
        yield Finding("note", "hidden speech", text)


def resemblance(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Check that anonymised recordings are nearer to their own originals than to other originals.

    This holds for transformations that preserve words or rhythm, also for words that another voice speaks at its own
    pace, and for time reversal, spectral inversion, permuted frames and noise at -10 dB SNR. It fails if files are
    exchanged, or if noise or silence replaces speech: if this holds for a fifth of the recordings or more, there is no
    verdict.
    """
    by_level: dict[str, list[str]] = {}
    for name, twin in sets.twins.items():
        utterances = spaced(sorted(twin.recordings))
        if len(utterances) < _FEWEST:
            continue
        original = described(_paths(sets.original[name].recordings, utterances), jobs)
        anonymised = described(_paths(twin.recordings, utterances), jobs)
        nearer = nearer_than_others(original, anonymised)
        missed = int((nearer < 0.5).sum())
        wrong = 2 * missed / len(nearer)
        # a share is uniform, of variance 1 / 12, if files are exchanged; 3.7 deviations allow for the best of four
        is_chance = nearer.mean() < 0.5 + 3.7 / np.sqrt(12 * len(nearer))
        level = "ok"
        name = f"{100 * min(wrong, 1):.0f} % of {twin.name}"
        if is_chance or (missed >= _SEVERAL and wrong >= _MANY):
            level = "error"
        elif missed >= _MISSED:
            level = "warning"
        else:
            name = twin.name
        by_level.setdefault(level, []).append(name)
    for level, names in by_level.items():
        if level == "ok":
            text = f"Recordings are nearer to their own originals than to other originals in {few(names)}."
        else:
            text = f"{few(names)} are no nearer to their own originals than to other originals: files are exchanged, or"
            text += " hold no speech, or other words. Listen to some, and check wav.scp."
        yield Finding(level, "resemblance", text)


def short_recordings(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note sets with so little original speech that every attacker recognises much less than in longer recordings."""
    for dataset in sets.datasets:
        enrolled = enrolment(sets.original[dataset.enrolls])
        recordings = sets.original[dataset.enrolls].recordings
        model = median_speech(_paths(recordings, spaced(sorted(enrolled.segments))), jobs)
        model *= len(enrolled.segments) / len(set(enrolled.models))
        tested: dict[str, Path] = {}
        for trials in dataset.trials.values():
            tested |= sets.original[trials].recordings
        test = median_speech(_paths(tested, spaced(sorted(tested))), jobs)
        shorter, longer = sorted((test, model))
        if shorter < VERY_SHORT or (shorter < SHORT and longer < NOT_LONG):
            text = f"{dataset.name}: half of the test recordings hold less than {test:.1f} s of speech, and half of the"
            yield Finding("note", "short recordings", f"{text} speakers are enrolled with less than {model:.1f} s")


def changed_durations(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note that anonymised recordings are longer or shorter than their originals; training sets are sampled."""
    changed = []
    for name, twin in sets.twins.items():
        chosen: Sequence[str] = sorted(twin.recordings)
        if name in sets.training_sets:
            chosen = spaced(chosen)
        before = _paths(sets.original[name].recordings, chosen)
        changes = duration_changes(before, _paths(twin.recordings, chosen), jobs=jobs)
        if (np.abs(changes) > _ANOTHER_DURATION).any():
            middle, least, most = 100 * np.quantile(changes, (0.5, 0, 1))
            changed.append(f"{middle:+.0f} % in {twin.name} ({least:+.0f} to {most:+.0f} %)")
    if changed:
        text = f"Anonymised recordings are longer or shorter than their originals, in the median by {few(changed)}."
        yield Finding("note", "durations", text)


def median_speech(paths: Sequence[Path], jobs: int | None) -> float:
    """Return the median of the speech in recordings, in seconds, without pauses and silence."""
    return float(np.median(list(Work(jobs).map(_speech, paths))))


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
    nearer = []
    for alike in (
        standardised(warped_similarity(originals.cepstra, twins.cepstra)).T,
        standardised(twins.levels) @ standardised(originals.levels).T,
        standardised(twins.levels[:, ::-1]) @ standardised(originals.levels).T,
        standardised(twins.spectra) @ standardised(originals.spectra).T,
    ):
        own = np.diag(alike)[:, np.newaxis]
        less = (alike < own).sum(axis=1)
        ties = (alike == own).sum(axis=1) - 1
        nearer.append((less + ties / 2) / (len(alike) - 1))
    least = max(map(np.mean, nearer)) - 1 / np.sqrt(12 * len(originals.levels))
    return next(shares for shares in nearer if shares.mean() >= least)


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
    similarity = np.empty((len(sequences), len(others)))
    for row, sequence in enumerate(sequences):
        products = np.einsum("td,mud->tmu", sequence, others, optimize=True)
        best = np.full((len(others), 2 + others.shape[1]), -np.inf, others.dtype)  # two columns precede each
        best[:, 2] = products[0, :, 0]
        for product in products[1:]:
            best[:, 2:] = product + np.maximum(np.maximum(best[:, 2:], best[:, 1:-1]), best[:, :-2])
        similarity[row] = best[:, -1] / len(products)
    return similarity


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
    short_recordings,
    changed_durations,
)
"""All checks of recordings."""


def _chosen(directory: DataDir, utterances: Iterable[str]) -> dict[str, Path]:
    """Return the recordings of those utterances that a directory has."""
    recordings = directory.recordings
    return {utterance: recordings[utterance] for utterance in utterances if utterance in recordings}


def _paths(recordings: Mapping[str, Path], utterances: Iterable[str]) -> list[Path]:
    return [recordings[utterance] for utterance in utterances]


def _speech(path: Path) -> float:
    audio = read_audio(path, channel=0)
    energy = np.sort(energy_contour(audio.samples, audio.rate))
    return FRAME_SHIFT * np.count_nonzero(energy > energy[-_LOUD:][0] - _SPEECH)


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
    config = FeatureConfig(preset="telephone")
    samples = read_audio(path, rate=config.rate, resample=True, channel=0, dtype="float64").samples
    cepstra, energy = mfcc(np.pad(samples, (0, max(0, config.min_samples - len(samples)))), config)
    cepstra = cepstra[energy > np.quantile(energy, 0.95) - _PAUSE]
    sums = np.cumsum(np.pad(cepstra, ((1, 0), (0, 0))), axis=0)
    bounds = np.linspace(0, len(cepstra), 1 + _CELLS)
    at_bounds = [np.interp(bounds, np.arange(len(sums)), column) for column in sums.T]
    parts = standardised(np.diff(at_bounds))
    norms = np.maximum(np.linalg.norm(parts, axis=0), _LEAST)
    return np.asarray((parts / norms).T, dtype=np.float32)
