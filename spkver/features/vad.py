"""Voice activity detection: one boolean per frame.

`snr` compares the level of the enhanced speech with its maximum, `energy` models the log-energies by three Gaussians,
`percentile` drops the quietest frames, `labels` reads speech intervals from text files, `none` keeps every frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import one_blas_thread
from spkver.features.cepstra import frame_signal
from spkver.features.enhancement import enhance

_LOWEST_LEVEL = -75.0  # dB; below this a frame is never speech
_NOISE = 0.1  # standard deviation of the noise that hides what the enhancer leaves of silence, 16-bit steps / 4


def snr_vad(
    signals: Sequence[NDArray],
    noises: Sequence[NDArray],
    *,
    window: int,
    shift: int,
    snr: float = 40.0,
) -> list[NDArray[np.bool_]]:
    """Label as speech the frames whose level after enhancement is within `snr` dB of the loudest frame's.

    Parameters
    ----------
    signals : sequence of ndarray of shape (n,) [16-bit steps / 4]
        The level matters: the enhancer's noise tracker starts at an absolute one.
    noises : sequence of ndarray of shape (n,)
        Gaussian noise of unit variance for each signal; a tenth of it masks what the enhancer leaves of silence.
    window, shift : int [samples]
    snr : float [dB]

    Returns
    -------
    list of ndarray of bool of shape (T,)
    """
    labels = []
    for signal, noise in zip(enhance(signals), noises, strict=True):
        frames = frame_signal(signal + noise * signal.dtype.type(_NOISE), window=window, shift=shift)
        if not len(frames):
            labels.append(np.zeros(0, bool))
            continue
        with np.errstate(divide="ignore"):
            level = 20 * np.log10(frames.std(axis=1))
        labels.append((level > level.max() - snr) & (level > _LOWEST_LEVEL))
    return labels


@one_blas_thread()
def energy_vad(log_energy: NDArray, *, alpha: float = 0.2, n_iterations: int = 10) -> NDArray[np.bool_]:
    """Label the frames above the mean of the loudest of three Gaussians less `alpha` of its standard deviations.

    Parameters
    ----------
    log_energy : ndarray of shape (T,)
    alpha : float
        The threshold lies this many standard deviations below the mean of the loudest component.
    n_iterations : int
        Rounds of EM.

    References
    ----------
    J.-F. Bonastre et al., "ALIZE/SpkDet: a state-of-the-art open source software for speaker recognition",
    Odyssey 2008 (energy modelling by a few Gaussians).
    """
    spread = log_energy.std() if len(log_energy) else 0.0
    if not spread > 0:
        return np.ones(len(log_energy), bool)
    x = ((log_energy - log_energy.mean()) / spread).astype(np.float64)
    weights = np.full(3, 1 / 3)
    means = np.array([-2.0, 0.0, 2.0])
    variances = np.ones(3)
    for _ in range(n_iterations):
        exponent = -0.5 * (x[:, None] - means) ** 2 / variances + np.log(weights) - 0.5 * np.log(variances)
        posterior = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        count = np.maximum(posterior.sum(axis=0), 1e-10)
        weights = count / count.sum()
        means = posterior.T @ x / count
        variances = np.maximum((posterior * (x[:, None] - means) ** 2).sum(axis=0) / count, 1e-3)
    loudest = int(np.argmax(means))
    return x > means[loudest] - alpha * math.sqrt(variances[loudest])


def percentile_vad(log_energy: NDArray, *, percentile: float = 10.0) -> NDArray[np.bool_]:
    """Label as speech the frames louder than the given percentile of the log-energies."""
    if not len(log_energy):
        return np.zeros(0, bool)
    return log_energy > np.percentile(log_energy, percentile)


def read_labels(path: str | Path, n_frames: int, *, shift_seconds: float, speech: str = "speech") -> NDArray[np.bool_]:
    """Read the speech frames from a label file: lines ``start stop label``, times in seconds.

    Parameters
    ----------
    path : path
    n_frames : int
        Frames in the recording.
    shift_seconds : float [s]
        Time from one frame to the next.
    speech : str
        The label that marks speech.

    Raises
    ------
    DataError
        If the file is missing or a line is not ``start stop label`` with 0 <= start <= stop.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"label file cannot be read: {getattr(error, 'strerror', None) or error}",
            file=path,
            remedy="check features.labels_dir or choose another features.vad",
        ) from error
    labels = np.zeros(n_frames, bool)
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        try:
            start, stop, name = float(fields[0]), float(fields[1]), fields[2]
            if len(fields) != 3 or not 0 <= start <= stop < math.inf:
                raise ValueError
        except (ValueError, IndexError):
            raise DataError(f"expected 'start stop label' in seconds, got {line!r}", file=path, line=number) from None
        if name == speech:
            labels[round(start / shift_seconds) : round(stop / shift_seconds)] = True
    return labels
