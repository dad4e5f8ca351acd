"""Features over windows of neighbouring frames: shifted deltas, and normalisation over a sliding window.

References
----------
P. A. Torres-Carrasquillo et al., "Approaches to language identification using Gaussian mixture models and shifted
delta cepstral features", ICSLP 2002.
O. Viikki and K. Laurila, "Cepstral domain segmental feature vector normalization for noise robust speech recognition",
Speech Communication 25, 1998.
J. Pelecanos and S. Sridharan, "Feature warping for robust speaker verification", Odyssey 2001.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Floats
from spkbase.errors import ConfigError
from spkbase.work import chunk_bounds

_BLOCK = 128  # number of frames whose windows are in memory together
_LEAST_VARIANCE = 1e-10  # as in Kaldi


def sdc_numbers(text: str) -> tuple[int, int, int, int]:
    """Return N, d, P and k of ``N-d-P-k``.

    Raises
    ------
    ConfigError
        If they are not four whole numbers of at least 1.

    Examples
    --------
    >>> sdc_numbers("7-1-3-7")
    (7, 1, 3, 7)
    """
    match = re.fullmatch(r"([1-9]\d*)-([1-9]\d*)-([1-9]\d*)-([1-9]\d*)", text)
    if match is None:
        form = "expected N-d-P-k, four whole numbers of at least 1, such as 7-1-3-7"
        raise ConfigError(f"features.sdc is {text!r}: {form}")
    size, spread, shift, blocks = map(int, match.groups())
    return size, spread, shift, blocks


def shifted_deltas(static: Floats, *, spread: int, shift: int, blocks: int) -> Floats:
    """Return shifted delta cepstra: k blocks of differences, c(t + i P + d) - c(t + i P - d) for i = 0 ... k - 1.

    Parameters
    ----------
    static : ndarray of shape (T, N)
    spread, shift, blocks : int
        d, P and k.

    Returns
    -------
    ndarray of shape (T, k N)
        The deltas; beyond the ends, the first and the last frame are repeated.
    """
    times = np.arange(len(static))
    last = len(static) - 1
    parts = []
    for block in range(blocks):
        centre = times + block * shift
        after = static[np.clip(centre + spread, 0, last)]
        before = static[np.clip(centre - spread, 0, last)]
        parts.append(after - before)
    return np.hstack(parts)


def sliding_normalise(frames: Floats, *, window: int, variance: bool = True) -> Floats:
    """Subtract the mean of the frames around each frame, and divide by their standard deviation.

    The window of frame t begins at t - window // 2, and is moved inwards at the ends: Kaldi's
    ``apply-cmvn-sliding --center=true --norm-vars``.

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    window : int
        Number of frames in a window; all frames if there are fewer.
    variance : bool
        Whether to divide too; variances below 1e-10 are raised to that.

    Returns
    -------
    ndarray of float64 of shape (T, D)
    """
    result = np.empty(frames.shape)
    for rows, around in _windows(frames, window):
        result[rows] = frames[rows] - around.mean(axis=2)
        if variance:
            result[rows] /= np.sqrt(np.maximum(around.var(axis=2), _LEAST_VARIANCE))
    return result


def gaussianise(frames: Floats, *, window: int) -> Floats:
    """Return feature warping: each number becomes the normal quantile of its rank in its window.

        y = Phi^-1((R - 1/2) / n),   R from 1, the mean rank of equal numbers

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    window : int
        As in `sliding_normalise`.

    Returns
    -------
    ndarray of float64 of shape (T, D)
    """
    from scipy.special import ndtri

    result = np.empty(frames.shape)
    for rows, around in _windows(frames, window):
        own = frames[rows][:, :, None]
        rank = (around < own).sum(axis=2) + 0.5 * (around == own).sum(axis=2)
        result[rows] = ndtri(rank / around.shape[2])
    return result


def _windows(frames: Floats, window: int) -> Iterator[tuple[slice, Floats]]:
    """Yield rows, and their windows (n, D, W)."""
    size = min(window, len(frames))
    if not size:
        return
    views = np.lib.stride_tricks.sliding_window_view(frames, size, axis=0)
    starts = np.clip(np.arange(len(frames)) - window // 2, 0, len(frames) - size)
    for first, last in chunk_bounds(len(frames), _BLOCK):
        yield slice(first, last), views[starts[first:last]]


def mask_columns(mask: str, dimension: int) -> NDArray[np.int64]:
    """Return the columns that a mask such as ``0-12,19`` keeps, for frames of a given dimension.

    Raises
    ------
    ConfigError
        If it does not consist of ascending numbers and ranges below the dimension.

    Examples
    --------
    >>> mask_columns("0-2,5", 6).tolist()
    [0, 1, 2, 5]
    """
    columns: list[int] = []
    if re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", mask):
        for part in mask.split(","):
            first, _, last = part.partition("-")
            columns += range(int(first), int(last or first) + 1)
    kept = np.array(columns, np.int64)
    if not len(kept) or (np.diff(kept) <= 0).any() or kept[-1] >= dimension:
        expected = f"expected columns and ranges that rise, such as 0-12,19, up to {dimension - 1}"
        raise ConfigError(f"features.mask is {mask!r}: {expected}")
    return kept
