"""From cepstra to the frames of a model: RASTA, deltas, normalisation over speech, selection.

The order and the edge conventions are those of SIDEKIT 1.3.2's features server.

References
----------
H. Hermansky and N. Morgan, "RASTA processing of speech", IEEE Trans. Speech and Audio Processing 2(4), 1994.
S. Furui, "Comparison of speaker recognition methods using statistical features and dynamic features",
IEEE Trans. ASSP 29(3), 1981.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_RASTA_NUMERATOR = np.array([0.2, 0.1, 0.0, -0.1, -0.2])
_RASTA_POLE = 0.94
_RASTA_START = 4  # frames that only prime the filter
_DELTA_FILTER = np.array([0.25, 0.5, 0.25, 0.0, -0.25, -0.5, -0.25])


def rasta(features: NDArray, *, pole: float = _RASTA_POLE) -> NDArray:
    """Band-pass filter each coefficient's trajectory.

    Parameters
    ----------
    features : ndarray [shape=(T, d)]
    pole : float

    Returns
    -------
    ndarray [shape=(T, d), dtype=float64]
        The first four frames are 0: they prime the filter.
    """
    from scipy.signal import lfilter

    filtered = np.zeros(features.shape)
    if len(features) > _RASTA_START:
        x = features.astype(np.float64)
        zero_state = np.zeros((len(_RASTA_NUMERATOR) - 1, x.shape[1]))
        _, state = lfilter(_RASTA_NUMERATOR, [1.0], x[:_RASTA_START], axis=0, zi=zero_state)
        filtered[_RASTA_START:], _ = lfilter(_RASTA_NUMERATOR, [1.0, -pole], x[_RASTA_START:], axis=0, zi=state)
    return filtered


def rasta_labels(speech: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Speech labels after RASTA: the first two frames, which the filter blanks, take the label of the third."""
    labels = speech.copy()
    labels[:2] = labels[2] if len(labels) > 2 else False
    return labels


def delta(features: NDArray, *, weights: NDArray = _DELTA_FILTER) -> NDArray:
    """Slope of each coefficient over seven frames, with zeros beyond the ends.

    Parameters
    ----------
    features : ndarray [shape=(T, d)]
    weights : ndarray [shape=(odd,)]
        Convolved with each column.

    Returns
    -------
    ndarray [shape=(T, d), dtype=float32]
        Single precision, as in the features server that this reproduces.
    """
    reach = len(weights) // 2
    padded = np.zeros((len(features) + 2 * reach, features.shape[1]))
    padded[reach : reach + len(features)] = features
    slope = np.zeros(features.shape)
    for place, weight in enumerate(weights[::-1]):
        if weight:
            slope += weight * padded[place : place + len(features)]
    return slope.astype(np.float32)


def normalise(frames: NDArray, speech: NDArray[np.bool_], *, variance: bool = True) -> NDArray:
    """Subtract the mean over speech frames from all frames and divide by the standard deviation (ddof 0).

    Parameters
    ----------
    frames : ndarray [shape=(T, D)]
    speech : ndarray [shape=(T,), dtype=bool]
    variance : bool
        Also divide; else only the mean is removed (CMS).

    Returns
    -------
    ndarray [shape=(T, D)]
        Unchanged without speech; a coefficient that is constant over speech is only centred.
    """
    if not speech.any():
        return frames
    selected = frames[speech]
    centred = frames - selected.mean(axis=0)
    if variance:
        spread = selected.std(axis=0)
        centred /= np.where(spread > 0, spread, 1.0)
    return centred


def post_process(
    cepstra: NDArray,
    log_energy: NDArray,
    speech: NDArray[np.bool_],
    *,
    keep_energy: bool = True,
    apply_rasta: bool = True,
    deltas: int = 2,
    normalisation: str = "cmvn",
    keep_all: bool = False,
) -> tuple[NDArray, NDArray[np.bool_]]:
    """The whole chain for one recording: energy first, RASTA, deltas, normalisation, selection.

    Parameters
    ----------
    cepstra : ndarray [shape=(T, n_cepstra)]
    log_energy : ndarray [shape=(T,)]
    speech : ndarray [shape=(T,), dtype=bool]
    keep_energy : bool
        Put the log-energy before the cepstra; else it is left out.
    apply_rasta : bool
    deltas : int
        0, 1 (delta) or 2 (delta and double delta).
    normalisation : str
        "cmvn", "cms" or "none".
    keep_all : bool
        Keep the frames without speech.

    Returns
    -------
    frames : ndarray [shape=(T', (1 + deltas) * (keep_energy + n_cepstra)), dtype=float64]
    speech : ndarray [shape=(T',), dtype=bool]
    """
    static = (np.column_stack([log_energy, cepstra]) if keep_energy else cepstra).astype(np.float64)
    if apply_rasta:
        static = rasta(static)
        speech = rasta_labels(speech)
    parts = [static]
    for _ in range(deltas):
        parts.append(delta(parts[-1]))
    frames = np.hstack(parts)
    if normalisation != "none":
        frames = normalise(frames, speech, variance=normalisation == "cmvn")
    return (frames, speech) if keep_all else (frames[speech], speech[speech])
