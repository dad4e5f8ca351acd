"""Cepstra as librosa defines them: the features of the preset `librosa`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkver.features.cepstra import MfccSettings, frame_signal


def librosa_mfcc(samples: NDArray, settings: MfccSettings) -> tuple[NDArray, NDArray]:
    """Compute cepstra 1 to `n_cepstra` by `librosa.feature.mfcc`, and the log-energy of the same frames.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    settings : MfccSettings

    Returns
    -------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,)
        T follows the frames of `spkver.features.cepstra`: frames are not centred, the signal is not padded.
    """
    import librosa

    window, shift = settings.window, settings.shift
    if len(samples) < window:
        return np.empty((0, settings.n_cepstra), samples.dtype), np.empty(0, samples.dtype)
    if settings.pre_emphasis:
        samples = librosa.effects.preemphasis(samples, coef=settings.pre_emphasis)
    # librosa centres a window that is shorter than the transform: half of the difference precedes each frame
    before = (settings.n_fft - window) // 2
    padded = np.pad(samples, (before, settings.n_fft - window - before))
    coefficients = librosa.feature.mfcc(
        y=padded,
        sr=settings.rate,
        n_mfcc=settings.n_cepstra + 1,
        n_fft=settings.n_fft,
        win_length=window,
        hop_length=shift,
        n_mels=settings.n_filters,
        fmin=settings.low_frequency,
        fmax=settings.high_frequency,
        center=False,
    )
    frames = frame_signal(samples, window=window, shift=shift)
    energy = np.log(np.maximum(np.einsum("ij,ij->i", frames, frames), np.finfo(samples.dtype).tiny))
    return coefficients[1:, : len(frames)].T.astype(samples.dtype), energy.astype(samples.dtype)
