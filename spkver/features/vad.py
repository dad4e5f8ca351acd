"""Voice activity detection: one boolean per frame.

`snr` compares the level of the enhanced speech with its maximum, `energy` models the log-energies by three Gaussians,
`percentile` drops the quietest frames, `labels` reads segments of speech from text files, `none` keeps every frame.

The detector `snr` enhances speech by minimum statistics and a decision-directed Wiener filter. The noise floor of each
of 33 bins is followed by smoothed magnitudes and their minimum over the last 4 blocks of 40 frames; the minima are
running minima inside blocks. The smoothing and the Wiener filter proceed through time for all recordings of a batch
together: arrays are (time, recording, bin).

References
----------
R. Martin, "Spectral subtraction based on minimum statistics", EUSIPCO 1994.
Y. Ephraim and D. Malah, "Speech enhancement using a minimum mean-square error short-time spectral amplitude
estimator", IEEE Trans. ASSP 32(6), 1984 (the decision-directed estimate).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, few
from spkbase.rounding import is_constant
from spkbase.work import one_blas_thread
from spkver.features.cepstra import frame_signal

_FRAME = 64
_HOP = 32
_BINS = 33
_SMOOTHING = 0.9024  # smoothing factor of the magnitudes per frame
_BLOCK = 40  # frames in a block of minima
_N_BLOCKS = 4  # blocks that are remembered
_FIRST_MINIMUM = 32.0  # an absolute level, in quarters of a 16-bit step, the detector's unit
_OVERESTIMATION = 2.4  # a gain of 1.2 times the factor 2 that compensates the bias of the minimum
_MEMORY = 0.75  # weight of the last frame's clean estimate
_RUN_IN = 200  # number of first frames on which the noise tracker runs once beforehand
_SYNTHESIS = 1.15  # sum of the overlapping windows
_SHORTEST = 512  # samples; a shorter signal is returned unchanged

_LOWEST_LEVEL = -75.0  # dB; below this a frame is never speech
# standard deviation of the noise that masks the enhancer's residue in silence, 16-bit steps / 4
_NOISE = 0.1


def enhance(signals: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Attenuate stationary noise in each of several signals.

    Parameters
    ----------
    signals : sequence of ndarray of shape (n,) [16-bit steps / 4]
        Signals of any lengths, all float32 or all float64.

    Returns
    -------
    list of ndarray of shape (n,)
        Each delayed by 32 samples, in the same unit and dtype. The result of one signal does not depend on the others.
    """
    result = list(signals)
    groups: dict[int, list[int]] = {}
    for index, signal in enumerate(signals):
        if len(signal) >= _SHORTEST:
            groups.setdefault(min(_RUN_IN, len(signal) // _HOP), []).append(index)
    for run_in, group in groups.items():
        # longest first, so that the signals still running are always the first ones
        group.sort(key=lambda index: -len(signals[index]))
        spectra = [_analyse(signals[index]) for index in group]
        lengths = np.array([len(spectrum) for spectrum in spectra])
        magnitude = np.zeros((lengths[0], len(group), _BINS), signals[group[0]].dtype)
        for column, spectrum in enumerate(spectra):
            np.abs(spectrum, out=magnitude[: lengths[column], column])
        gain = _wiener_gain(magnitude, _noise_floor(magnitude, run_in), lengths)
        for column, index in enumerate(group):
            enhanced = spectra[column] * gain[: lengths[column], column]
            result[index] = _synthesise(enhanced, len(signals[index]))
    return result


def snr_vad(
    signals: Sequence[NDArray[Any]],
    noises: Sequence[NDArray[Any]],
    *,
    window: int,
    shift: int,
    snr: float = 40.0,
) -> list[NDArray[np.bool_]]:
    """Label as speech the frames whose level after enhancement is within `snr` dB of the loudest frame's.

    Parameters
    ----------
    signals : sequence of ndarray of shape (n,) [16-bit steps / 4]
        Signals, whose level matters: the enhancer's noise tracker starts at an absolute level.
    noises : sequence of ndarray of shape (n,)
        Gaussian noise of unit variance for each signal; a tenth of it masks the enhancer's residue in silence.
    window, shift : int [samples]
    snr : float [dB]

    Returns
    -------
    list of ndarray of bool of shape (T,)
    """
    labels = []
    for signal, noise in zip(enhance(signals), noises, strict=True):
        masked = signal + noise * signal.dtype.type(_NOISE)
        frames = frame_signal(masked, window=window, shift=shift)
        if not len(frames):
            labels.append(np.zeros(0, bool))
            continue
        with np.errstate(divide="ignore"):
            level = 20 * np.log10(frames.std(axis=1))
        labels.append((level > level.max() - snr) & (level > _LOWEST_LEVEL))
    return labels


@one_blas_thread()
def energy_vad(
    log_energy: NDArray[Any], *, alpha: float = 0.2, n_iterations: int = 10
) -> NDArray[np.bool_]:
    """Label as speech the frames above the mean of the loudest of three Gaussians minus `alpha` standard deviations.

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
    if not len(log_energy) or is_constant(log_energy):
        return np.ones(len(log_energy), bool)
    x = ((log_energy - log_energy.mean()) / log_energy.std()).astype(np.float64)
    weights = np.full(3, 1 / 3)
    means = np.array([-2.0, 0.0, 2.0])
    variances = np.ones(3)
    for _ in range(n_iterations):
        exponent = (
            -0.5 * (x[:, None] - means) ** 2 / variances + np.log(weights) - 0.5 * np.log(variances)
        )
        posterior = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        count = np.maximum(posterior.sum(axis=0), 1e-10)
        weights = count / count.sum()
        means = posterior.T @ x / count
        variances = np.maximum((posterior * (x[:, None] - means) ** 2).sum(axis=0) / count, 1e-3)
    loudest = int(np.argmax(means))
    speech: NDArray[np.bool_] = x > means[loudest] - alpha * math.sqrt(variances[loudest])
    return speech


def percentile_vad(log_energy: NDArray[Any], *, percentile: float = 10.0) -> NDArray[np.bool_]:
    """Label as speech the frames louder than the given percentile of the log-energies."""
    if not len(log_energy):
        return np.zeros(0, bool)
    speech: NDArray[np.bool_] = log_energy > np.percentile(log_energy, percentile)
    return speech


def read_labels(
    path: str | Path, n_frames: int, *, shift_seconds: float, speech: str = "speech"
) -> NDArray[np.bool_]:
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
    form = "'start stop label' in seconds"
    segments = _segments(Path(path), _of_label, form).get(speech, [])
    return _marked(segments, n_frames, shift_seconds)


def read_rttm(
    path: str | Path, recording: str, n_frames: int, *, shift_seconds: float
) -> NDArray[np.bool_]:
    """Read the speech frames of a recording from an RTTM file: its segments of all speakers.

    Parameters
    ----------
    path : path
        Lines ``SPEAKER recording channel start duration ...``, times in seconds; lines of other types are skipped.
    recording : str
        Id in the file, or an id whose last part, after "/", is the id in the file.
    n_frames : int
        Frames in the recording.
    shift_seconds : float [s]
        Time from one frame to the next.

    Raises
    ------
    DataError
        If the file is missing, a line is malformed, or there is no segment of the recording.
    """
    path = Path(path)
    changed = 0
    if path.is_file():
        changed = path.stat().st_mtime_ns
    segments = _rttm_segments(path, changed)
    own = segments.get(recording, segments.get(recording.rpartition("/")[2]))
    if own is None:
        text = f"no segment of recording {recording!r}, but of {few(sorted({*segments} - {''}))}"
        raise DataError(text, file=path, remedy="name recordings in it by their ids")
    return _marked(own, n_frames, shift_seconds)


@lru_cache(maxsize=2)
def _rttm_segments(path: Path, changed: int) -> dict[str, list[tuple[float, float]]]:
    """Return the segments of each recording in a file, which is read again only if it has changed."""
    return _segments(path, _of_rttm, "'SPEAKER recording channel start duration' in seconds")


def _of_label(fields: list[str]) -> tuple[str, float, float]:
    start, stop, label = fields
    return label, float(start), float(stop)


def _of_rttm(fields: list[str]) -> tuple[str, float, float]:
    if fields[0] != "SPEAKER":
        return "", 0.0, 0.0
    start = float(fields[3])
    return fields[1], start, start + float(fields[4])


def _segments(
    path: Path, segment_of: Callable[[list[str]], tuple[str, float, float]], form: str
) -> dict[str, list[tuple[float, float]]]:
    """Return the starts and stops in a file, by label or by recording; `segment_of` parses the fields of a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        text = f"label file cannot be read: {getattr(error, 'strerror', None) or error}"
        remedy = "check features.labels_dir or choose another features.vad"
        raise DataError(text, file=path, remedy=remedy) from error
    segments: dict[str, list[tuple[float, float]]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            name, start, stop = segment_of(line.split())
            if not 0 <= start <= stop < math.inf:
                raise ValueError
        except (ValueError, IndexError):
            text = f"expected {form}, got {line!r}"
            raise DataError(text, file=path, line=number) from None
        segments.setdefault(name, []).append((start, stop))
    return segments


def _marked(
    segments: Sequence[tuple[float, float]], n_frames: int, shift_seconds: float
) -> NDArray[np.bool_]:
    """Return which frames are in segments given in seconds."""
    labels = np.zeros(n_frames, bool)
    for start, stop in segments:
        labels[round(start / shift_seconds) : round(stop / shift_seconds)] = True
    return labels


def _analyse(signal: NDArray[Any]) -> NDArray[Any]:
    """Short-time spectrum (K, 33): the first frame starts 32 samples early, the last is padded."""
    from scipy import fft

    n_whole, rest = divmod(len(signal), _HOP)
    padded = np.zeros((n_whole + 2) * _HOP, signal.dtype)
    padded[_HOP : _HOP + len(signal)] = signal
    if rest:
        # SIDEKIT reads into one buffer, so the incomplete last piece keeps the end of the piece before it
        padded[_HOP + len(signal) :] = signal[(n_whole - 1) * _HOP + rest : n_whole * _HOP]
    else:
        padded[_HOP + len(signal) :] = signal[-_HOP:]
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]
    window = 1.08 * (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(_FRAME) / (_FRAME - 1)))
    return fft.rfft(frames * window.astype(signal.dtype), axis=1)


def _noise_floor(magnitude: NDArray[Any], run_in: int) -> NDArray[Any]:
    """Noise magnitude (K, B, 33) from the minimum of smoothed magnitudes over the last blocks."""
    dtype = magnitude.dtype
    # time i (from 1) belongs to block i // 40: block 0 is one frame shorter and starts at the absolute level
    n_tracked = run_in + len(magnitude)
    n_blocks = (n_tracked + 1 + _BLOCK - 1) // _BLOCK
    smooth = np.full((n_blocks * _BLOCK, *magnitude.shape[1:]), np.inf, dtype)
    np.multiply(magnitude[:run_in], dtype.type(1 - _SMOOTHING), out=smooth[1 : 1 + run_in])
    np.multiply(magnitude, dtype.type(1 - _SMOOTHING), out=smooth[1 + run_in : 1 + n_tracked])
    previous = np.zeros(magnitude.shape[1:], dtype)
    decay = dtype.type(_SMOOTHING)
    for now in smooth[1 : 1 + n_tracked]:
        previous = previous * decay
        now += previous
        previous = now
    smooth[0] = _FIRST_MINIMUM
    running = smooth.reshape(n_blocks, _BLOCK, *magnitude.shape[1:])
    np.minimum.accumulate(running, axis=1, out=running)
    # block b looks back at the final minima of blocks b - 3 to b - 1, before the first at the absolute level
    finished = np.full((n_blocks + _N_BLOCKS - 2, *magnitude.shape[1:]), _FIRST_MINIMUM, dtype)
    finished[_N_BLOCKS - 1 :] = running[:-1, -1]
    before = finished[:n_blocks]
    for back in range(1, _N_BLOCKS - 1):
        before = np.minimum(before, finished[back : back + n_blocks])
    np.minimum(running, before[:, None], out=running)
    noise = smooth[1 + run_in : 1 + n_tracked]
    noise *= dtype.type(_OVERESTIMATION)
    return noise


def _wiener_gain(
    magnitude: NDArray[Any], noise: NDArray[Any], lengths: NDArray[Any]
) -> NDArray[Any]:
    """Gain (K, B, 33): p[t] / A[t] = e / (e + n) with e = .75 p[t-1] + .25 max(A - n, 0)."""
    dtype = magnitude.dtype
    estimate: NDArray[Any] = magnitude - noise
    np.maximum(estimate, 0, out=estimate)
    estimate *= dtype.type(1 - _MEMORY)
    # add the smallest number to avoid 0 / 0 for digital silence
    noise += np.finfo(dtype).tiny
    memory = dtype.type(_MEMORY)
    running = np.searchsorted(-lengths, -np.arange(len(magnitude)), side="left")
    previous = np.zeros(magnitude.shape[1:], dtype)
    total = np.empty(magnitude.shape[1:], dtype)
    for time, n_running in enumerate(running):
        here = slice(0, n_running)
        e = estimate[time, here]
        p = previous[here]
        s = total[here]
        p *= memory
        e += p
        np.add(e, noise[time, here], out=s)
        e /= s
        np.multiply(magnitude[time, here], e, out=p)
    return estimate


def _synthesise(spectrum: NDArray[Any], n_samples: int) -> NDArray[Any]:
    """Overlap-add, scaled and clipped to 16 bit."""
    from scipy import fft

    frames = fft.irfft(spectrum, n=_FRAME, axis=1)
    signal = np.zeros((len(frames) + 1, _HOP), frames.dtype)
    signal[:-1] = frames[:, :_HOP]
    signal[1:] += frames[:, _HOP:]
    signal /= frames.dtype.type(_SYNTHESIS)
    return np.clip(signal.reshape(-1)[:n_samples], -32767, 32767)
