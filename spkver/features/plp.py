"""Perceptual linear prediction (PLP), as Kaldi's `compute-plp-feats` defines it.

The power spectrum of Kaldi's frames in triangles on the mel scale (`spkver.features.kaldi`) is weighted by the equal
loudness of its frequencies, and its cube root, which represents loudness, is taken. An all-pole model of this spectrum,
whose order is that of the highest cepstrum, is found by linear prediction, and its cepstra are liftered.

References
----------
H. Hermansky, "Perceptual linear predictive (PLP) analysis of speech", JASA 87(4), 1990.
S. Young et al., "The HTK book", version 3.4, sections 5.6 and 5.7.
J. Makhoul, "Linear prediction: a tutorial review", Proc. IEEE 63(4), 1975.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.work import one_blas_thread
from spkver.features.config import FeatureConfig
from spkver.features.kaldi import kaldi_frames, log_mel_of_frames, mel_centres


@one_blas_thread()
def plp(samples: NDArray[Any], config: FeatureConfig) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute the PLP cepstra and the log-energy of a signal.

    Parameters
    ----------
    samples : ndarray of shape (n,) [16-bit steps]
        The signal; its dtype (float32 or float64) is the dtype of the result.
    config : FeatureConfig
        Settings. Cepstra 1 to n_cepstra belong to a model of that order; with `c0` the first one is replaced by the
        log-energy of the prediction error, and the order is one less.

    Returns
    -------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,)
        Log-energy of the frame minus its mean, before pre-emphasis and window.
    """
    frames, energy = kaldi_frames(samples, config)
    weights = np.log(equal_loudness(mel_centres(config)))
    loudness = (log_mel_of_frames(frames, config) + weights) / 3  # the cube root, as a logarithm
    order = config.n_cepstra - config.c0
    coefficients, error = linear_prediction(autocorrelation(np.exp(loudness), order))
    cepstra = cepstra_of_model(coefficients)
    if config.lifter:
        numbers = np.arange(1, order + 1)
        cepstra *= 1 + config.lifter / 2 * np.sin(np.pi * numbers / config.lifter)
    if config.c0:
        smallest = np.finfo(np.float32).eps
        cepstra = np.column_stack([np.log(np.maximum(error, smallest)), cepstra])
    return cepstra.astype(samples.dtype), energy


def equal_loudness(frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weight of power at frequencies in Hz: the ear's sensitivity at about 40 dB (Hermansky, 1990)."""
    square = frequency**2
    weight: NDArray[np.float64] = (square / (square + 1.6e5)) ** 2
    return weight * (square + 1.44e6) / (square + 9.61e6)


def autocorrelation(spectrum: NDArray[Any], order: int) -> NDArray[np.float64]:
    """Return the autocorrelation (T, order + 1) of a power spectrum (T, n) at equal steps.

    The first and the last band also represent the ends of the spectrum.
    """
    widened = np.concatenate([spectrum[:, :1], spectrum, spectrum[:, -1:]], axis=1)
    steps = widened.shape[1] - 1
    weights = np.full(steps + 1, 1 / steps)
    weights[[0, -1]] /= 2
    angles = np.pi / steps * np.outer(np.arange(steps + 1), np.arange(order + 1))
    result: NDArray[np.float64] = widened.astype(np.float64) @ (weights[:, None] * np.cos(angles))
    return result


def linear_prediction(
    correlation: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the prediction x[n] ~ sum_k a_k x[n - k] of least squared error, by Durbin's recursion.

    Parameters
    ----------
    correlation : ndarray of shape (T, order + 1)
        Autocorrelations; the first is above 0.

    Returns
    -------
    coefficients : ndarray of shape (T, order)
        a_1 to a_order.
    error : ndarray of shape (T,)
        The mean squared error.

    Examples
    --------
    >>> coefficients, error = linear_prediction(np.array([[1.0, 0.5, 0.25]]))
    >>> coefficients.tolist(), error.tolist()
    ([[0.5, 0.0]], [0.75])
    """
    order = correlation.shape[1] - 1
    coefficients = np.zeros((len(correlation), order))
    error = correlation[:, 0].copy()
    for step in range(order):
        known = coefficients[:, :step]
        predicted = np.einsum("ij,ij->i", known, correlation[:, step:0:-1])
        reflection = (correlation[:, step + 1] - predicted) / error
        coefficients[:, :step] = known - reflection[:, None] * known[:, ::-1]
        coefficients[:, step] = reflection
        error *= 1 - reflection**2
    return coefficients, error


def cepstra_of_model(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cepstra 1 to p of the all-pole models 1 / (1 - sum_k a_k z^-k) with coefficients (T, p).

    c_n = a_n + sum_{k < n} (k / n) c_k a_{n - k}
    """
    order = coefficients.shape[1]
    cepstra = coefficients.copy()
    for number in range(1, order):
        shares = np.arange(1, number + 1) / (number + 1)
        earlier = shares * cepstra[:, :number] * coefficients[:, number - 1 :: -1]
        cepstra[:, number] += earlier.sum(axis=1)
    return cepstra
