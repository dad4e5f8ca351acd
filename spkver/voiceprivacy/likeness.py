"""What an anonymised recording has in common with its original: levels over time, and cepstra along the best path.

Transformations that preserve rhythm keep the levels. Those that preserve words keep the order of cepstra, even if
another voice says them at its own pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work, one_blas_thread
from spkver.audio import read_audio
from spkver.features import FeatureConfig, mfcc

_TELEPHONE = FeatureConfig(preset="telephone")
_PLACES = 200
_CELLS = 150
_LEAST = 1e-20
_PAUSE = 8.0  # pauses are this far below loud frames, in natural logarithms of the power (35 dB)


class Description(NamedTuple):
    """The features by which n recordings are compared.

    Attributes
    ----------
    levels : ndarray of float64 of shape (n, 200)
        Levels in dB of frames of 20 ms, at 200 points from start to end; at least the loudest level minus 60 dB.
    cepstra : ndarray of float32 of shape (n, 150, 12)
        Cepstra of the telephone band in 150 parts of equal length, without pauses; each coefficient is normalised over
        time, then each part to norm 1.
    digests : tuple of str
        Digests of the samples; equal for recordings with equal samples.
    """

    levels: NDArray[np.float64]
    cepstra: NDArray[np.float32]
    digests: tuple[str, ...]


@one_blas_thread()
def warped_similarity(
    sequences: NDArray[np.floating], others: NDArray[np.floating]
) -> NDArray[np.float64]:
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
        # two columns of padding, so that each column has two predecessors
        best = np.full((len(others), 2 + others.shape[1]), -np.inf, others.dtype)
        best[:, 2] = products[0, :, 0]
        for product in products[1:]:
            best[:, 2:] = product + np.maximum(np.maximum(best[:, 2:], best[:, 1:-1]), best[:, :-2])
        similarity[row] = best[:, -1] / len(products)
    return similarity


def level_similarity(
    levels: NDArray[np.float64], others: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the correlations, of shape (n, m), between n and m level contours."""
    return standardised(levels) @ standardised(others).T


def described(paths: Sequence[Path], jobs: int | None = None) -> Description:
    """Return the level contours, sequences of cepstra and digests of recordings."""
    levels, cepstra, digests = zip(*Work(jobs).map(_described, paths), strict=True)
    return Description(np.array(levels), np.array(cepstra), digests)


def standardised(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre rows and scale them to norm 1, so that inner products are correlations."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    directions: NDArray[np.float64] = centred / np.maximum(
        np.linalg.norm(centred, axis=1, keepdims=True), _LEAST
    )
    return directions


def _described(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float32], str]:
    audio = read_audio(path, channel=0, dtype="float64")
    size = audio.rate // 50
    padded = np.pad(audio.samples, (0, max(0, size - len(audio.samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[:: size // 2]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    levels = 10 * np.log10(power.sum(axis=1) + _LEAST)
    levels = np.maximum(levels, levels.max() - 60)
    contour = np.interp(np.linspace(0, 1, _PLACES), np.linspace(0, 1, len(levels)), levels)
    return contour, _sequence(path), sha256(audio.samples.tobytes()).hexdigest()


def _sequence(path: Path) -> NDArray[np.float32]:
    """Return the normalised cepstra of a recording in parts of equal length, see `Description`."""
    audio = read_audio(path, rate=_TELEPHONE.rate, resample=True, channel=0, dtype="float64")
    lacking = max(0, _TELEPHONE.min_samples - len(audio.samples))
    cepstra, energy = mfcc(np.pad(audio.samples, (0, lacking)), _TELEPHONE)
    cepstra = cepstra[energy > np.quantile(energy, 0.95) - _PAUSE]
    sums = np.cumsum(np.pad(cepstra, ((1, 0), (0, 0))), axis=0)
    bounds = np.linspace(0, len(cepstra), 1 + _CELLS)
    at_bounds = [np.interp(bounds, np.arange(len(sums)), column) for column in sums.T]
    parts = standardised(np.diff(at_bounds))
    norms = np.maximum(np.linalg.norm(parts, axis=0), _LEAST)
    return np.asarray((parts / norms).T, dtype=np.float32)
