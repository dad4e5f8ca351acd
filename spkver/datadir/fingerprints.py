"""Search for recordings that occur under two names, by their sound rather than their bytes.

A copy in another format, at another level or sampling rate, with a constant added, with inverted sign, or without some
tenths of a second at its ends has the same fingerprint as the recording. Another recording of the same words by the
same speaker does not: in each frame, the levels of neighbouring narrow bands depend on where the harmonics of the voice
are.

Candidates are the recordings of nearest rhythm, which does not depend on where a recording begins; they are compared
frame by frame. ``docs/own_data.md`` has error rates on real speech.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, caught
from spkbase.work import Work
from spkver.audio import audio_header
from spkver.datadir.twins import read_part

_SECONDS = 3.0  # duration taken from the middle of a recording
_WINDOW = 0.064  # seconds
_SHIFT = 0.016  # seconds
# bands of equal width, in Hz; they end below 2.3 kHz, which all sampling rates cover
_LOWEST = 200.0
_WIDTH = 31.25
_N_BANDS = 65
_LOUD = 10**-2.5  # share of the power of the loudest frame
_DEEPEST = 30.0  # dB below the loudest frame
# number of groups of bands, and of frequencies, up to 6 Hz, of their levels over time
_N_GROUPS = 8
_N_FREQUENCIES = 48
_N_FFT = 512
_FURTHEST = 36  # largest difference of the beginnings in frames (0.58 s)
_NEAREST = 2
_ALIKE = 0.55  # other takes of a word by the same speaker reach 0.5
# least mean number of the 64 signs that change; a recording with fewer changes is a tone
_LEAST_CHANGE = 6.4
_BLOCK = 500  # number of recordings compared at once
_LEAST = 1e-20


class Fingerprint(NamedTuple):
    """The features by which a recording is compared.

    Attributes
    ----------
    signs : ndarray of uint8 of shape (T, 8)
        In each frame, 64 bits: whether a band is louder than the one below. All are 0 in frames that are 25 dB below
        the loudest, and there are no frames in silence.
    rhythm : ndarray of float32 of shape (384,)
        Spectrum of the levels of eight groups of bands over time, of norm 1; 0 in silence.
    """

    signs: NDArray[np.uint8]
    rhythm: NDArray[np.float32]


def fingerprint(samples: NDArray[np.number], rate: int) -> Fingerprint:
    """Return the fingerprint of a signal.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Samples at any level.
    rate : int [Hz]

    References
    ----------
    J. Haitsma, T. Kalker, A highly robust audio fingerprinting system, Proc. ISMIR, 2002: signs of differences between
    bands. Here they are narrow enough to resolve harmonics, and differences over time are left out.
    """
    from scipy import fft

    size = round(_WINDOW * rate)
    centred = np.asarray(samples, np.float32) - np.mean(samples, dtype=np.float32)
    padded = np.pad(centred, (0, max(0, size - len(samples))))
    n_frames = 1 + int((len(padded) - size) / (_SHIFT * rate))
    starts = np.rint(np.arange(n_frames) * _SHIFT * rate).astype(int)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[starts]
    windowed = frames * np.hanning(size).astype(np.float32)
    spectra = fft.rfft(windowed, axis=1)
    limits = _LOWEST + _WIDTH * np.arange(_N_BANDS + 1)
    bins = np.searchsorted(np.arange(spectra.shape[1]) * rate / size, limits)
    power = np.abs(spectra[:, bins[0] : bins[-1]]) ** 2
    if bins[-1] >= spectra.shape[1] or not power.any():
        return Fingerprint(
            np.zeros((0, 8), np.uint8), np.zeros(_N_GROUPS * _N_FREQUENCIES, np.float32)
        )
    bands = np.add.reduceat(power, bins[:-1] - bins[0], axis=1)
    signs = np.packbits(bands[:, 1:] > bands[:, :-1], axis=1)
    sums = bands.sum(axis=1)
    signs[sums < _LOUD * sums.max()] = 0
    groups = bands[:, 1:].reshape(n_frames, _N_GROUPS, -1).sum(axis=2)
    levels = 10 * np.log10(groups + _LEAST)
    levels = np.maximum(levels, levels.max(axis=0) - _DEEPEST)
    spectrum = np.abs(fft.rfft(levels - levels.mean(axis=0), n=_N_FFT, axis=0))
    rhythm = np.sqrt(spectrum[1 : 1 + _N_FREQUENCIES]).ravel()
    return Fingerprint(signs, (rhythm / max(np.linalg.norm(rhythm), _LEAST)).astype(np.float32))


def similarity(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """Return the correlation of signs in loud frames at the shift where it is largest.

    Parameters
    ----------
    first, second : ndarray of uint8 of shape (T, 8), (U, 8)
        `Fingerprint.signs`. At least half of the loud frames of each must overlap.

    Returns
    -------
    float
        1 for equal signs, about 0 for unrelated ones. Signs that are constant in a recording, such as the harmonics of
        a voice with constant pitch, do not count.
    """
    if not (first.any() and second.any()):
        return 0.0
    loud = np.any(first, axis=1, keepdims=True).astype(np.float32)
    other = np.any(second, axis=1, keepdims=True).astype(np.float32)
    sums = _sums_along_diagonals(_changing(first, loud) @ _changing(second, other).T)
    counts = _sums_along_diagonals(loud @ other.T)
    overlaps = counts >= max(loud.sum(), other.sum()) / 2
    return float(max(sums[overlaps] / counts[overlaps], default=0.0))


def copies(
    fingerprints: Sequence[Fingerprint], others: Sequence[Fingerprint] | None = None
) -> list[tuple[int, int]]:
    """Return the pairs of equal recordings.

    Parameters
    ----------
    fingerprints : sequence of Fingerprint
    others : sequence of Fingerprint, optional
        Fingerprints to compare with; by default the former are compared with each other.

    Returns
    -------
    list of (int, int)
        Sorted pairs of positions in the two sequences; for a single sequence, the lower position first.
    """
    compared = fingerprints if others is None else others
    if not fingerprints or not compared:
        return []
    mean = np.mean([part.rhythm for part in (*fingerprints, *compared)], axis=0)
    pairs = _nearest(_directions(fingerprints, mean), _directions(compared, mean))
    if others is None:
        pairs = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    return [
        (first, second)
        for first, second in sorted(pairs)
        if similarity(fingerprints[first].signs, compared[second].signs) >= _ALIKE
    ]


def fingerprints_of(
    recordings: Mapping[str, Path], *, jobs: int | None = None
) -> dict[str, Fingerprint]:
    """Return the fingerprints of recordings; those that cannot be read have none.

    Parameters
    ----------
    recordings : mapping of str to Path
        Id to audio file. Three seconds from the middle are read.
    jobs : int, optional
        Worker threads; all cores by default.
    """
    results = Work(jobs).map(
        partial(caught, function=_fingerprint_of), recordings.values(), description="fingerprints"
    )
    named = zip(recordings, results, strict=True)
    return {name: result for name, result in named if not isinstance(result, DataError)}


def _fingerprint_of(path: Path) -> Fingerprint:
    header = audio_header(path)
    count = round(_SECONDS * header.rate)
    return fingerprint(read_part(path, max(0, (header.n_samples - count) // 2), count), header.rate)


def _directions(
    fingerprints: Sequence[Fingerprint], mean: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return rhythms minus their mean, scaled to norm 1."""
    rhythms = np.array([part.rhythm for part in fingerprints]) - mean
    directions: NDArray[np.float32] = rhythms / np.maximum(
        np.linalg.norm(rhythms, axis=1, keepdims=True), np.float32(_LEAST)
    )
    return directions


def _nearest(rows: NDArray[np.float32], columns: NDArray[np.float32]) -> set[tuple[int, int]]:
    """Return each row with its nearest columns, which may include the row itself."""
    n_nearest = min(1 + _NEAREST, len(columns))
    pairs = set[tuple[int, int]]()
    for start in range(0, len(rows), _BLOCK):
        products = rows[start : start + _BLOCK] @ columns.T
        nearest = np.argpartition(-products, n_nearest - 1, axis=1)[:, :n_nearest]
        for row, chosen in enumerate(nearest.tolist(), start):
            pairs.update((row, column) for column in chosen)
    return pairs


def _changing(signs: NDArray[np.uint8], loud: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return signs, 1 or -1, minus their mean over time, of norm 1 on average in loud frames; 0 in quiet frames."""
    values = 2 * np.unpackbits(signs, axis=1).astype(np.float32) - 1
    means = (values * loud).sum(axis=0) / loud.sum()
    centred = (values - means) * loud
    power = np.square(centred).sum() / loud.sum()
    return np.asarray(centred / np.sqrt(max(power, _LEAST_CHANGE)), np.float32)


def _sums_along_diagonals(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the sum of the elements (t, t + shift) for each shift up to `_FURTHEST` in both directions."""
    n_rows, n_columns = matrix.shape
    behind = max(0, n_rows - n_columns) + _FURTHEST
    padded = np.pad(matrix, ((0, 0), (_FURTHEST, behind)))
    down, right = padded.strides
    shape = (2 * _FURTHEST + 1, n_rows)
    strides = (right, down + right)
    diagonals = np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
    sums: NDArray[np.float32] = diagonals.sum(axis=1)
    return sums
