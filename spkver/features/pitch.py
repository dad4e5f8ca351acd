"""Pitch: one tracker by probabilistic YIN, and one by cross-correlation that is six times as fast.

`pyin_track` gives the tracks of `librosa.pyin`, for figures that are comparable with published ones. It finds pitch
candidates in every frame with their probabilities, and the likeliest path through them [1]_ [2]_.

1. YIN's difference function of each frame, divided by its own running mean, dips at the period and its multiples.
2. A dip counts with the probability that a threshold drawn from a beta distribution selects it.
3. Viterbi's algorithm finds the best path through a hidden Markov model of voiced and unvoiced pitches.

Formulas are those of the papers. Where these leave a choice, results follow `librosa.pyin`, so that tracks and figures
are the same; `tests/spkver/features/test_probabilistic_yin.py` compares them.

`rapt_track` serves the prosody vector: normalised cross-correlation and a best path [3]_ [4]_ also say how periodic
each frame is.

References
----------
.. [1] A. de Cheveigné and H. Kawahara, "YIN, a fundamental frequency estimator for speech and music", Journal of the
   Acoustical Society of America 111(4), 2002.
.. [2] M. Mauch and S. Dixon, "pYIN: a fundamental frequency estimator using probabilistic threshold distributions",
   ICASSP 2014.
.. [3] D. Talkin, "A robust algorithm for pitch tracking (RAPT)", in Speech Coding and Synthesis, Elsevier, 1995.
.. [4] P. Boersma, "Accurate short-term analysis of the fundamental frequency and the harmonics-to-noise ratio of a
   sampled sound", Proc. Institute of Phonetic Sciences, Amsterdam, 17, 1993 (the costs of octaves and of jumps, and
   their values).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import chunk_bounds

FRAME_SHIFT = 0.01  # seconds
LOWEST = 75.0  # Hz, of `pitch_track`, as in the challenge of 2022
HIGHEST = 500.0  # Hz
N_THRESHOLDS = 100
THRESHOLD_SHAPE = (2.0, 18.0)  # parameters of the beta distribution, whose mean is 0.1
EARLIER = 2.0  # each dip below the threshold counts exp(-2) times as much as the one before
NO_DIP = 0.01  # share of the probability of thresholds below all dips that the lowest dip gets
SWITCH = 0.01  # probability that voice begins or ends from one frame to the next
OCTAVES_PER_SECOND = 35.92  # the fastest change of pitch
_TINY = np.finfo(np.float64).tiny
_BLOCK = 1 << 18  # number of samples in frames held at once
# settings of `rapt_track`
_LOWEST = 60.0  # Hz
_HIGHEST = 500.0  # Hz
_RATE = 8000
_CUTOFF = 1500.0  # Hz, cutoff of the low-pass filter: the first harmonics show the period best
_WINDOW = 0.025  # s, length of the correlated segments
_TREND = 0.025  # s, length of the moving mean that is removed
# share of the energy of loud frames (-40 dB); quieter frames do not count as periodic
_QUIET = 1e-4
_LOUD = 0.95  # quantile of the frames' energies
_CANDIDATES = 6
_UNVOICED = 0.5  # strength of the candidate without voice
_OCTAVE = 0.03  # cost of a lower octave
_JUMP = 0.35  # cost of an octave between frames
_SWITCH = 0.14  # cost of a beginning or an end of voice
# number of frames processed at a time, so that memory does not grow with the recording
_FRAMES = 4096
_FFT = 512


class PitchTrack(NamedTuple):
    """Pitch every 10 ms.

    Attributes
    ----------
    hertz : ndarray of float64 of shape (T,)
        Pitch in Hz, 0 where there is no voice.
    strength : ndarray of float64 of shape (T,)
        Height of the highest peak of the correlation, 0 to 1.
    """

    hertz: NDArray[np.float64]
    strength: NDArray[np.float64]


def normalised_differences(frames: NDArray[Any], longest: int) -> NDArray[np.float64]:
    """Return the difference of each frame from itself at each lag, divided by its mean over the lags so far.

    With ``x_j = 0`` beyond the frame's L samples, ``d(t) = sum_j (x_j - x_{j+t})^2`` over all j of the frame (equation
    6 of [1]_, by the autocorrelation as in its equation 7), and ``d'(t) = d(t) t / (x_0^2 + d(1) + ... + d(t))``.
    Equation 8 lacks the first term, which changes a period by a part in a million; `librosa.pyin` includes it.

    Parameters
    ----------
    frames : ndarray of float of shape (T, L)
    longest : int
        Largest lag, below L.

    Returns
    -------
    ndarray of float64 of shape (T, longest)
        For the lags 1, 2, ..., `longest`; 0 where a frame is silent.
    """
    from scipy.fft import next_fast_len

    length = frames.shape[1]
    size = next_fast_len(length + longest, real=True)
    spectra = np.fft.rfft(frames, size, axis=1)
    correlations = np.fft.irfft(spectra.real**2 + spectra.imag**2, size, axis=1)[:, 1 : longest + 1]
    energies = (frames**2).sum(axis=1, keepdims=True)
    remaining = energies - np.cumsum(frames[:, :longest] ** 2, axis=1)
    differences = energies + remaining - 2 * correlations
    lags = np.arange(1, longest + 1)
    sums = np.cumsum(differences, axis=1) + frames[:, :1] ** 2
    return np.asarray(differences / (sums / lags + _TINY))


def dips(curves: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns of local minima: the first point of a flat one, and ends below their neighbour."""
    lower = np.zeros(curves.shape, bool)
    lower[:, 1:-1] = (curves[:, 1:-1] < curves[:, :-2]) & (curves[:, 1:-1] <= curves[:, 2:])
    lower[:, 0] = curves[:, 0] < curves[:, 1]
    lower[:, -1] = curves[:, -1] < curves[:, -2]
    rows, columns = np.nonzero(lower)
    return rows, columns


def dip_probabilities(
    heights: NDArray[Any], rows: NDArray[Any], n_rows: int
) -> NDArray[np.float64]:
    """Return the probability of each dip: the sum of its shares in the priors of the thresholds above it.

    The prior P(s) of a threshold s, 0.01, 0.02, ..., 1, is the probability that the beta distribution gives to the
    interval between it and the threshold below. Among the N dips of a frame below s, the dip of number r = 0, 1, ...
    takes the share ``exp(-2 r) / sum_{q < N} exp(-2 q)`` of P(s). The lowest dip takes the share `NO_DIP` of P(s) for
    every s below all dips.

    Parameters
    ----------
    heights : ndarray of float of shape (K,)
    rows : ndarray of int of shape (K,)
        Frame of each dip, ascending.
    n_rows : int
        Number of frames.

    Returns
    -------
    ndarray of float64 of shape (K,)
    """
    from scipy.special import betainc

    edges = np.linspace(0, 1, N_THRESHOLDS + 1)
    prior = np.diff(betainc(*THRESHOLD_SHAPE, edges))
    is_below = heights[:, None] < edges[1:]

    # numbers of dips below each threshold: up to and with each dip; before each frame; in each frame
    up_to_dip = np.cumsum(is_below, axis=0, dtype=np.int32)
    first_dips = np.searchsorted(rows, np.arange(n_rows + 1))
    before_frame = np.concatenate([np.zeros((1, len(prior)), np.int32), up_to_dip])[first_dips]
    in_frame = np.diff(before_frame, axis=0)

    # exp(-2 r) for each dip, and P(s) / sum exp(-2 q) for each frame
    numbers = np.where(is_below, up_to_dip - before_frame[rows] - 1, 0)
    weights = np.exp(-EARLIER * np.arange(int(in_frame.max(initial=1))))
    sums_of_weights = np.concatenate([[0.0], np.cumsum(weights)])
    scales = prior / np.maximum(sums_of_weights[in_frame], 1.0)
    probabilities = (np.where(is_below, weights[numbers], 0.0) * scales[rows]).sum(axis=1)

    # the first of the lowest dips in each frame
    order = np.lexsort((heights, rows))
    lowest = order[np.searchsorted(rows, np.unique(rows))]
    probabilities[lowest] += NO_DIP * (~is_below[lowest] @ prior)
    return np.asarray(probabilities)


def likeliest_path(
    rows: NDArray[np.int64],
    bins: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    *,
    n_frames: int,
    n_bins: int,
    reach: int,
) -> NDArray[np.int64]:
    """Return the likeliest bin of each frame, -1 without voice, by Viterbi's algorithm in the log domain.

    Each bin has a state with voice and a state without. A bin with voice is observed with its probability; the
    remaining probability of a frame is shared by all bins without voice. The path moves from bin i to j with the
    probability ``(reach + 1 - |i - j|)``, divided by the sum of these weights over the bins within reach, and changes
    between voice and no voice with the probability `SWITCH`. All states are equally probable at the start.

    Parameters
    ----------
    rows, bins : ndarray of int64 of shape (K,)
        Frame (ascending) and bin (each once in a frame) of each observation.
    probabilities : ndarray of float64 of shape (K,)
        Above 0.
    n_frames, n_bins : int
    reach : int [bins]
        Furthest step from one frame to the next.

    Returns
    -------
    ndarray of int64 of shape (n_frames,)
    """
    firsts = np.searchsorted(rows, np.arange(n_frames + 1))
    seen = np.log(probabilities)
    sums = np.bincount(rows, probabilities, minlength=n_frames)
    unseen = np.log(np.clip(1 - sums, 0, 1) / n_bins + _TINY)
    weights = reach + 1.0 - np.abs(np.arange(-reach, reach + 1))
    kernel = np.log(weights)
    leaving = np.log(np.convolve(np.ones(n_bins), weights)[reach : reach + n_bins])
    # the way in which each state was reached: the step between bins, and whether voice began or ended
    steps = np.empty((n_frames, 2, n_bins), np.min_scalar_type(2 * reach))
    switched = np.empty((n_frames, 2, n_bins), bool)
    padded = np.full((2, n_bins + 2 * reach), -np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=1)
    scores = np.empty(windows.shape)
    starts = np.arange(2 * n_bins).reshape(2, n_bins) * len(kernel)
    states = np.full((2, n_bins), -math.log(2 * n_bins))  # rows: with voice, without voice
    for frame in range(n_frames):
        if frame:
            staying = states + (math.log(1 - SWITCH) - leaving)
            switching = states[::-1] + (math.log(SWITCH) - leaving)
            np.greater(switching, staying, out=switched[frame])
            np.maximum(staying, switching, out=padded[:, reach : reach + n_bins])
            np.add(windows, kernel, out=scores)
            best = scores.argmax(axis=2)
            steps[frame] = best
            states = scores.ravel()[best + starts]
        here = slice(firsts[frame], firsts[frame + 1])
        voiced = states[0, bins[here]] + seen[here]
        states[0] += math.log(_TINY)
        states[0, bins[here]] = voiced
        states[1] += unseen[frame]
    path = np.empty(n_frames, np.int64)
    unvoiced, column = divmod(int(states.argmax()), n_bins)
    for frame in range(n_frames - 1, -1, -1):
        path[frame] = -1 if unvoiced else column
        if frame:
            column += int(steps[frame, unvoiced, column]) - reach
            unvoiced ^= int(switched[frame, unvoiced, column])
    return path


def pitch_candidates(
    samples: NDArray[Any], rate: int, pitch_range: tuple[float, float], *, frame: int, shift: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the candidate periods of each frame of a signal: the minima of parabolas through the dips.

    Parameters
    ----------
    samples : ndarray of float64 of shape (n,)
        At least one frame.
    rate : int [Hz]
    pitch_range : tuple of two floats [Hz]
    frame, shift : int [samples]

    Returns
    -------
    frames : ndarray of int64 of shape (K,)
        Frame of each candidate, ascending.
    periods : ndarray of float64 of shape (K,) [samples]
        Ascending within a frame.
    probabilities : ndarray of float64 of shape (K,)
    """
    shortest = max(1, math.floor(rate / pitch_range[1]))
    longest = min(math.ceil(rate / pitch_range[0]), frame - 1)
    framed = np.lib.stride_tricks.sliding_window_view(samples, frame)[::shift]
    blocks = []
    for start, stop in chunk_bounds(len(framed), max(1, _BLOCK // frame)):
        curves = normalised_differences(framed[start:stop], longest)[:, shortest - 1 :]
        rows, columns = dips(curves)
        probabilities = dip_probabilities(curves[rows, columns], rows, stop - start)
        # the vertex of the parabola through a dip and its neighbours; the dip itself at the ends, or if the vertex is
        # outside
        middle = np.clip(columns, 1, curves.shape[1] - 2)
        before = curves[rows, middle - 1]
        after = curves[rows, middle + 1]
        slope = (after - before) / 2
        bend = after + before - 2 * curves[rows, middle]
        moved = (columns == middle) & (np.abs(slope) < np.abs(bend))
        vertices = np.where(moved, -slope / np.where(moved, bend, 1.0), 0.0)
        blocks.append((rows + start, shortest + columns + vertices, probabilities))
    frames, periods, probabilities = map(np.concatenate, zip(*blocks, strict=True))
    return frames, periods, probabilities


def pyin_track(
    samples: NDArray[Any],
    rate: int,
    pitch_range: tuple[float, float],
    *,
    frame: int,
    shift: int,
    resolution: float = 0.1,
    centred: bool = True,
) -> NDArray[np.float64]:
    """Return the pitch of a recording by probabilistic YIN.

    Parameters
    ----------
    samples : ndarray of float of shape (n,)
        Finite samples.
    rate : int [Hz]
    pitch_range : tuple of two floats [Hz]
        Lowest and highest pitch.
    frame, shift : int [samples]
        Length of a frame, and distance to the next one.
    resolution : float [semitones]
        Distance between adjacent pitches of a track, between 0 and 1.
    centred : bool
        Frame t is centred on sample ``t * shift``, with zeros beyond the ends; otherwise it begins there.

    Returns
    -------
    ndarray of float64 of shape (T,) [Hz]
        0 where there is no voice; empty where there is no whole frame.

    Raises
    ------
    DataError
        If a sample is not finite, or the range of the pitch does not fit the rate.
    """
    lowest, highest = pitch_range
    if not 0 < lowest < highest <= rate / 2:
        text = f"expected a pitch between 0 and half of the rate of {rate} Hz, got {lowest:g} to {highest:g} Hz"
        raise DataError(text, remedy="resample to a higher rate, or lower the highest pitch")
    samples = np.ascontiguousarray(samples, np.float64)
    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise DataError("expected one channel of finite samples")
    if centred:
        samples = np.pad(samples, frame // 2)
    if len(samples) < frame:
        return np.zeros(0)
    frames, periods, probabilities = pitch_candidates(
        samples, rate, pitch_range, frame=frame, shift=shift
    )
    per_octave = 12 * math.ceil(1 / resolution)
    n_bins = math.floor(per_octave * math.log2(highest / lowest)) + 1
    bins = np.rint(per_octave * np.log2(rate / periods / lowest)).astype(np.int64)
    bins = np.clip(bins, 0, n_bins)
    # keep at most one candidate of a frame in each bin, that with the longest period; drop pitches above the last bin
    likely = probabilities > 0
    frames = frames[likely]
    bins = bins[likely]
    probabilities = probabilities[likely]
    last = np.append((bins[1:] != bins[:-1]) | (frames[1:] != frames[:-1]), True)[: len(bins)]
    kept = last & (bins < n_bins)
    n_frames = 1 + (len(samples) - frame) // shift
    reach = round(OCTAVES_PER_SECOND * 12 * shift / rate) * (per_octave // 12) // 2
    observed = frames[kept], bins[kept], probabilities[kept]
    path = likeliest_path(*observed, n_frames=n_frames, n_bins=n_bins, reach=reach)
    return np.where(path < 0, 0.0, lowest * 2.0 ** (path / per_octave))


def pitch_track(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
    """Return the pitch of a recording between 75 and 500 Hz by `pyin_track`.

    Parameters
    ----------
    samples : ndarray of float of shape (n,)
    rate : int [Hz]

    Returns
    -------
    ndarray of float64 of shape (T,) [Hz]
        A value every 10 ms, 0 where there is no voice.

    Raises
    ------
    DataError
        If there are no samples, or several channels.
    """
    if not len(samples) or samples.ndim != 1:
        got = f"samples of shape {samples.shape}"
        raise DataError(f"expected one channel of finite samples, got {got}")
    shift = round(FRAME_SHIFT * rate)
    # too short for two periods, or silence
    if len(samples) < 2 * rate / LOWEST or not samples.any():
        return np.zeros(1 + len(samples) // shift)
    # frames of at least four periods of the lowest pitch
    frame = 1 << int(np.ceil(np.log2(4 * rate / LOWEST)))
    return pyin_track(samples, rate, (LOWEST, HIGHEST), frame=frame, shift=shift)


def rapt_track(samples: NDArray[Any], rate: int) -> PitchTrack:
    """Return the fundamental frequency of every frame.

    The correlation of w samples with the w samples k later, r(k) = sum x(n) x(n + k) / sqrt((e(0) + q) (e(k) + q)) with
    e(k) the energy of the w samples from k on, has peaks at periods. In each frame the best path takes one of the
    highest peaks, or *no voice*: it gains r(k) - 0.03 log2(highest F0 k) for a peak, or 0.5, and pays 0.35 for an
    octave between frames and 0.14 where voice begins or ends. Frame t is centred on t times 10 ms.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Samples at any level.
    rate : int [Hz]

    Returns
    -------
    PitchTrack
        1 + n // (0.01 rate) frames; none for an empty signal. Never NaN.
    """
    if not len(samples):
        return PitchTrack(np.zeros(0), np.zeros(0))
    n_frames = 1 + int(len(samples) / rate / FRAME_SHIFT + 1e-6)
    signal = _prepared(samples, rate)
    longest = round(_RATE / _LOWEST) + 1
    window = round(_WINDOW * _RATE)
    shift = round(FRAME_SHIFT * _RATE)
    before = (window + longest) // 2
    padded = np.pad(signal, (before, n_frames * shift + window + longest))
    views = np.lib.stride_tricks.sliding_window_view(padded, window + longest)[::shift][:n_frames]
    energies = np.einsum("tw,tw->t", views[:, :window], views[:, :window], dtype=np.float64)
    loud = np.quantile(energies, _LOUD)
    peaks = []
    for start, stop in chunk_bounds(n_frames, _FRAMES):
        peaks.append(_candidates(correlations(views[start:stop], window, _QUIET * loud)))
    lags, heights = map(np.concatenate, zip(*peaks, strict=True))
    octaves = np.log2(np.maximum(lags, 1) * _HIGHEST / _RATE)
    gains = np.where(lags > 0, heights - _OCTAVE * octaves, -np.inf)
    path = best_path(gains, octaves)
    rows = np.arange(n_frames)
    chosen = np.where(path > 0, lags[rows, path - 1], 0)
    hertz = np.divide(_RATE, chosen, out=np.zeros(n_frames), where=chosen > 0)
    return PitchTrack(hertz, np.clip(heights.max(axis=1), 0, 1))


def correlations(frames: NDArray[Any], window: int, quiet: float) -> NDArray[np.float64]:
    """Return the normalised cross-correlation of the start of each frame with all later parts of it.

    Parameters
    ----------
    frames : ndarray of shape (T, window + K)
    window : int [samples]
        Length of the correlated segments.
    quiet : float
        Energy that is added to both segments.

    Returns
    -------
    ndarray of shape (T, K + 1)
        At lags of 0 to K samples; 0 where there is no sound.
    """
    from scipy import fft

    length = _FFT
    if frames.shape[1] > _FFT:
        length = fft.next_fast_len(frames.shape[1], real=True)
    spectrum = fft.rfft(frames[:, :window], n=length, axis=1).conj()
    spectrum *= fft.rfft(frames, n=length, axis=1)
    n_lags = frames.shape[1] - window + 1
    products = fft.irfft(spectrum, n=length, axis=1)[:, :n_lags]
    sums = np.zeros((len(frames), frames.shape[1] + 1))
    np.cumsum(np.square(frames, dtype=np.float64), axis=1, out=sums[:, 1:])
    energies = np.maximum(sums[:, window:] - sums[:, :-window], 0) + quiet
    scale = np.sqrt(energies[:, :1] * energies)
    correlations: NDArray[np.float64] = np.divide(
        products, scale, out=np.zeros_like(scale), where=scale > 0
    )
    return correlations


def best_path(gains: NDArray[Any], octaves: NDArray[Any]) -> NDArray[np.intp]:
    """Return the candidate of each frame on the best path: 0 for no voice, else its column plus 1.

    Parameters
    ----------
    gains : ndarray of shape (T, C)
        Strength of each candidate, -inf where there is none.
    octaves : ndarray of shape (T, C)
        Their logarithms to the base of 2.

    Returns
    -------
    ndarray of shape (T,)
    """
    n_frames, n_candidates = gains.shape
    gains = np.concatenate([np.full((n_frames, 1), _UNVOICED), gains], axis=1)
    costs = np.full((n_candidates + 1, n_candidates + 1), _SWITCH)
    costs[0, 0] = 0.0
    best = gains[0]
    origins = np.zeros((n_frames, n_candidates + 1), np.intp)
    columns = np.arange(n_candidates + 1)
    for first in range(1, n_frames, _FRAMES):
        frames = slice(first, min(first + _FRAMES, n_frames))
        before = octaves[first - 1 : frames.stop - 1]
        jumps = _JUMP * np.abs(before[:, :, None] - octaves[frames][:, None, :])
        for frame, jump in enumerate(jumps, first):
            costs[1:, 1:] = jump
            totals = best[:, None] - costs
            origin = totals.argmax(axis=0)
            origins[frame] = origin
            best = totals[origin, columns] + gains[frame]
    path = np.empty(n_frames, np.intp)
    path[-1] = best.argmax()
    for frame in range(n_frames - 1, 0, -1):
        path[frame - 1] = origins[frame, path[frame]]
    return path


def _prepared(samples: NDArray[Any], rate: int) -> NDArray[np.float32]:
    """Return the signal at the tracker's rate, band-pass filtered."""
    from scipy import signal

    up, down = Fraction(_RATE, int(rate)).as_integer_ratio()
    taps = signal.firwin(20 * max(up, down) + 1, min(_CUTOFF, rate / 2) / (_RATE * down / 2))
    # the level does not matter, and float32 ends at 1e38
    peak = float(np.abs(samples).max()) or 1.0
    scaled = np.asarray(samples / peak, np.float32)
    resampled: NDArray[Any] = signal.resample_poly(scaled, up, down, window=taps)  # type: ignore[call-overload]
    length = round(_TREND * _RATE) | 1
    padded = np.pad(resampled, length // 2, mode="edge")
    sums = np.pad(np.cumsum(padded, dtype=np.float64), (1, 0))
    trend = (sums[length:] - sums[:-length]) / length
    return (resampled - trend).astype(np.float32)


def _candidates(correlated: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lags of the highest peaks, interpolated between samples, and their heights; 0 for missing ones."""
    shortest = int(_RATE / _HIGHEST)
    earlier = correlated[:, shortest - 1 : -2]
    centre = correlated[:, shortest:-1]
    later = correlated[:, shortest + 1 :]
    is_peak = (centre > earlier) & (centre >= later) & (centre > 0)
    lags = np.arange(shortest, shortest + centre.shape[1])
    ranked = np.where(is_peak, centre - _OCTAVE * np.log2(lags * _HIGHEST / _RATE), -np.inf)
    most = np.argpartition(-ranked, _CANDIDATES, axis=1)[:, :_CANDIDATES]
    below = np.take_along_axis(earlier, most, axis=1)
    at = np.take_along_axis(centre, most, axis=1)
    above = np.take_along_axis(later, most, axis=1)
    bend = below - 2 * at + above
    moved = np.divide((below - above) / 2, bend, out=np.zeros_like(bend), where=bend < 0)
    is_peak = np.take_along_axis(is_peak, most, axis=1)
    heights = np.where(is_peak, at - (below - above) * moved / 4, 0)
    return np.where(is_peak, lags[most] + moved, 0), heights
