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

from spkver.features.config import FeatureConfig

_RASTA_NUMERATOR = np.array([0.2, 0.1, 0.0, -0.1, -0.2])
_RASTA_POLE = 0.94
_RASTA_START = 4  # frames that only prime the filter
_DELTA_FILTER = np.array([0.25, 0.5, 0.25, 0.0, -0.25, -0.5, -0.25])


def rasta(features: NDArray, *, pole: float = _RASTA_POLE) -> NDArray:
    """Return the band-pass filtered trajectory of each coefficient.

    Parameters
    ----------
    features : ndarray of shape (T, d)
    pole : float

    Returns
    -------
    ndarray of float64 of shape (T, d)
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
    """Return the speech labels after RASTA: the first two frames, which it blanks, take the label of the third."""
    labels = speech.copy()
    labels[:2] = labels[2] if len(labels) > 2 else False
    return labels


def delta(features: NDArray, *, weights: NDArray = _DELTA_FILTER) -> NDArray:
    """Return the slope of each coefficient over seven frames, with zeros beyond the ends.

    Parameters
    ----------
    features : ndarray of shape (T, d)
    weights : ndarray of odd length
        Convolved with each column.

    Returns
    -------
    ndarray of float32 of shape (T, d)
        Single precision, as in the features server that this reproduces.
    """
    reach = len(weights) // 2
    padded = np.zeros((len(features) + 2 * reach, features.shape[1]))
    padded[reach : reach + len(features)] = features
    slope = np.zeros(features.shape)
    for start, weight in enumerate(weights[::-1]):
        if weight:
            slope += weight * padded[start : start + len(features)]
    return slope.astype(np.float32)


def normalise(frames: NDArray, speech: NDArray[np.bool_], *, variance: bool = True) -> NDArray:
    """Subtract the mean over speech frames from all frames and divide by the standard deviation (ddof 0).

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    speech : ndarray of bool of shape (T,)
    variance : bool
        Also divide; else only the mean is removed (CMS).

    Returns
    -------
    ndarray of shape (T, D)
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
    config: FeatureConfig,
) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the frames of one recording: energy first, RASTA, deltas, normalisation, selection.

    Parameters
    ----------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,)
    speech : ndarray of bool of shape (T,)
    config : FeatureConfig
        Its `log_energy`, `rasta`, `deltas`, `normalisation` and `keep_all`.

    Returns
    -------
    frames : ndarray of float64 of shape (T', config.dimension)
    speech : ndarray of bool of shape (T',)
    """
    static = (np.column_stack([log_energy, cepstra]) if config.log_energy else cepstra).astype(np.float64)
    if config.rasta:
        static = rasta(static)
        speech = rasta_labels(speech)
    parts = [static]
    for _ in range(config.deltas):
        parts.append(delta(parts[-1]))
    frames = np.hstack(parts)
    if config.normalisation != "none":
        frames = normalise(frames, speech, variance=config.normalisation == "cmvn")
    return (frames, speech) if config.keep_all else (frames[speech], speech[speech])
