"""Preservation of intonation: the correlation of the pitch of a recording before and after anonymisation.

Conventions
-----------
A track holds the fundamental frequency in Hz every 10 ms, 0 where there is no voice. Of two tracks of different length
the longer one is resampled evenly to the length of the shorter. Then they are aligned by the lag at which their
raw cross-correlation is largest, and correlated (Pearson).

===========  ========================================================================================================
convention   rule
===========  ========================================================================================================
default      lags up to 0.2 s; frames without a counterpart are left out; only frames voiced in both count, at least
             10; where there are fewer, or a track is constant, the correlation is undefined: the utterance is left
             out of the mean, and counted
vpc2022      any lag, by a circular shift; unvoiced frames count as
             0 Hz, so that the voicing alone correlates; an undefined correlation counts 0
===========  ========================================================================================================

The challenge of 2022 tracks pitch with Praat between 75 and 500 Hz, we by pYIN as below: numbers under ``vpc2022``
follow the challenge in the comparison of tracks, not in the tracks.

**Pitch by probabilistic YIN: candidates of every frame with their probabilities, and the likeliest path through them.**

1. YIN's difference function of each frame, divided by its own running mean, dips at the period and its multiples.
2. A dip counts with the probability that a threshold drawn from a beta distribution selects it.
3. Viterbi's algorithm finds the best path through a hidden Markov model of voiced and unvoiced pitches.

Formulas are those of the papers. Where these leave a choice, results follow `librosa.pyin`, so that tracks and figures
are the same; `tests/evaluation/utility/test_probabilistic_yin.py`
compares.

References
----------
N. Tomashenko et al., "The VoicePrivacy 2022 Challenge evaluation plan", arXiv 2203.12468.
.. [1] A. de Cheveigné and H. Kawahara, "YIN, a fundamental frequency estimator for speech and music", Journal of the
   Acoustical Society of America 111(4), 2002.
.. [2] M. Mauch and S. Dixon, "pYIN: a fundamental frequency estimator using probabilistic threshold distributions",
   ICASSP 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.uncertainty import Interval, Resampling
from evaluation.utility import lists
from spkbase.errors import DataError, Problems
from spkbase.showing import one_line
from spkbase.work import Work, chunk_bounds, one_blas_thread

Convention = Literal["default", "vpc2022"]
CONVENTIONS: tuple[Convention, ...] = ("default", "vpc2022")
FRAME_SHIFT = 0.01
MAX_LAG = 20
LEAST_VOICED = 10


@dataclass(frozen=True)
class TrackComparison:
    """Two tracks compared.

    Attributes
    ----------
    correlation : float
        NaN where it is undefined.
    lag : int
        Frames by which the second track was moved to fit the first.
    voicing_agreement : float
        Share of frames that are voiced in both or in neither.
    """

    correlation: float
    lag: int
    voicing_agreement: float


@one_line
@dataclass(frozen=True)
class PitchCorrelation:
    """Mean correlation over utterances.

    Attributes
    ----------
    interval : Interval
        The mean and its ends.
    deviation : float
        Standard deviation over utterances (divided by n, as the challenge does).
    n_utterances, n_undefined : int
        Utterances, and those among them that are left out because their correlation is undefined.
    voicing_agreement : float
        Mean over utterances.
    speakers : dict of str to float
        Mean of each speaker; NaN where all of its utterances are undefined.
    convention : str
    """

    interval: Interval
    deviation: float
    n_utterances: int
    n_undefined: int
    voicing_agreement: float
    speakers: dict[str, float]
    convention: str

    def to_dict(self) -> dict[str, Any]:
        """Return all of it by name, for a report."""
        names = ("deviation", "n_utterances", "n_undefined", "voicing_agreement", "speakers")
        how = {"convention": self.convention, "tracker": "pyin"}
        return self.interval.to_dict() | how | {name: getattr(self, name) for name in names}


@one_blas_thread()
def compare_tracks(
    first: NDArray[np.float64], second: NDArray[np.float64], *, convention: Convention = "default"
) -> TrackComparison:
    """Return how two tracks correlate once they are aligned.

    Parameters
    ----------
    first, second : ndarray of float64 of shape (T1,) and (T2,) [Hz]
        0 in unvoiced frames.
    convention : {"default", "vpc2022"}
        See the module.

    Raises
    ------
    DataError
        If a track is empty, or holds negative or undefined values.

    Examples
    --------
    >>> rising = np.linspace(100.0, 200.0, 50)
    >>> round(compare_tracks(rising, 1.5 * rising).correlation, 6)
    1.0
    """
    if convention not in CONVENTIONS:
        raise DataError(f"expected one of {CONVENTIONS}, got {convention!r}")
    tracks = [np.asarray(track, np.float64) for track in (first, second)]
    for track in tracks:
        if track.ndim != 1 or not len(track) or not (track >= 0).all() or not np.isfinite(track).all():
            raise DataError(f"expected a track of frequencies from 0 Hz up, got {track.shape}")
    length = min(map(len, tracks))
    circular = convention == "vpc2022"
    one, other = (_stretched(track, length, by_voice=not circular) for track in tracks)
    lag = _best_lag(one, other, length if circular else min(MAX_LAG, length - 1))
    if circular:
        other = np.roll(other, lag)
    else:
        one, other = (one[lag:], other[: length - lag]) if lag >= 0 else (one[:lag], other[-lag:])
    agreement = float(((one > 0) == (other > 0)).mean())
    if circular:
        found = _pearson(one, other)
        return TrackComparison(0.0 if np.isnan(found) else found, lag, agreement)
    both = (one > 0) & (other > 0)
    found = _pearson(one[both], other[both]) if both.sum() >= LEAST_VOICED else np.nan
    return TrackComparison(found, lag, agreement)


@one_blas_thread()
def mean_correlation(
    compared: Mapping[str, TrackComparison],
    speakers: Mapping[str, str],
    *,
    convention: Convention = "default",
    resampling: Resampling = lists.DEFAULT,
) -> PitchCorrelation:
    """Return the mean correlation over utterances, with an interval by a bootstrap of speakers.

    Parameters
    ----------
    compared : mapping of str to TrackComparison
        Of each utterance.
    speakers : mapping of str to str
        Speaker of each utterance.
    convention : str
        How the comparisons were made, for the report.
    resampling : Resampling

    Raises
    ------
    DataError
        If an utterance has no speaker, or no correlation is defined.
    """
    utterances = sorted(compared)
    values = np.array([compared[utterance].correlation for utterance in utterances])
    defined = ~np.isnan(values)
    if not defined.any():
        raise DataError("no utterance has a defined pitch correlation", remedy="check that there is voiced speech")
    columns = np.stack([np.where(defined, values, 0.0), defined], axis=1)
    names, sums = lists.sum_by_speaker(columns, lists.speakers_of(utterances, speakers))
    n_units = int((sums[:, 1] > 0).sum())
    statistic = partial(lists.pooled_ratio, sums)
    found = lists.interval_by_speaker(statistic, len(names), "correlation", resampling, n_units=n_units)
    return PitchCorrelation(
        found,
        float(values[defined].std()),
        len(utterances),
        int((~defined).sum()),
        float(np.mean([compared[utterance].voicing_agreement for utterance in utterances])),
        dict(zip(names, statistic(np.eye(len(names))).tolist(), strict=True)),
        convention,
    )


def _best_lag(one: NDArray, other: NDArray, most: int) -> int:
    """Lag, up to `most` frames either way, at which the raw cross-correlation is largest; the shortest of several."""
    lags = np.arange(-len(other) + 1, len(one))
    products = np.correlate(one, other, mode="full")
    allowed = np.flatnonzero(np.abs(lags) <= most)
    # rounding must not decide between lags that fit equally well
    best = products[allowed].max()
    fitting = allowed[products[allowed] >= best * (1 - 1e-12)]
    return int(min(lags[fitting].tolist(), key=lambda lag: (abs(lag), lag)))


def _stretched(track: NDArray, length: int, *, by_voice: bool) -> NDArray:
    """Read a track at `length` evenly spaced places, between its frames by a straight line.

    By voice never between a frame with voice and one without: there the nearer one counts.
    """
    if len(track) == length:
        return track
    places = np.linspace(0, len(track) - 1, length)
    straight = np.interp(places, np.arange(len(track)), track)
    if not by_voice:
        return straight
    below = np.floor(places).astype(int)
    above = np.minimum(below + 1, len(track) - 1)
    nearest = track[np.where(places - below < 0.5, below, above)]
    return np.where((track[below] > 0) & (track[above] > 0), straight, nearest)


def _pearson(one: NDArray, other: NDArray) -> float:
    one, other = one - one.mean(), other - other.mean()
    # a constant minus its mean may leave rounding errors
    scale = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / scale) if scale > 1e-9 else np.nan


N_THRESHOLDS = 100
THRESHOLD_SHAPE = (2.0, 18.0)  # of the beta distribution: a mean of 0.1
EARLIER = 2.0  # each dip below the threshold counts exp(-2) of the one before it
NO_DIP = 0.01  # share that the lowest dip has of the thresholds below it
SWITCH = 0.01  # probability that voice begins or ends from one frame to the next
OCTAVES_PER_SECOND = 35.92  # which the pitch may move
_TINY = np.finfo(np.float64).tiny
_BLOCK = 1 << 18  # samples in frames that are held at once


def normalised_differences(frames: NDArray, longest: int) -> NDArray[np.float64]:
    """Return how much each frame differs from itself at each lag, over the mean of the lags up to there.

    With ``x_j = 0`` beyond the frame's L samples, ``d(t) = sum_j (x_j - x_{j+t})^2`` over all j of the frame (equation
    6 of [1]_, by the autocorrelation as in its equation 7), and ``d'(t) = d(t) t / (x_0^2 + d(1) + ... + d(t))``.
    Equation 8 lacks the first sample, which moves a period by a part in a million; the tracks that we compare with
    count it.

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


def dips(curves: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns of local minima: the first of a flat one, and ends below their neighbour."""
    lower = np.zeros(curves.shape, bool)
    lower[:, 1:-1] = (curves[:, 1:-1] < curves[:, :-2]) & (curves[:, 1:-1] <= curves[:, 2:])
    lower[:, 0] = curves[:, 0] < curves[:, 1]
    lower[:, -1] = curves[:, -1] < curves[:, -2]
    rows, columns = np.nonzero(lower)
    return rows, columns


def dip_probabilities(heights: NDArray, rows: NDArray, n_rows: int) -> NDArray[np.float64]:
    """Return the probability of each dip: of the thresholds that it lies below, by its place among those that do.

    A threshold s, 0.01, 0.02, ..., 1, has the prior P(s) that the beta distribution gives what lies between it and the
    one below. Of the N dips of a frame below s the one at place r = 0, 1,
    ... takes ``exp(-2 r) / sum_{q < N} exp(-2 q)`` of P(s). The lowest dip takes `NO_DIP` of all s that no dip lies
    below.

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
    thresholds, prior = edges[1:], np.diff(betainc(*THRESHOLD_SHAPE, edges))
    below = heights[:, None] < thresholds
    counts = np.cumsum(below, axis=0, dtype=np.int32)
    firsts = np.searchsorted(rows, np.arange(n_rows + 1))
    before = np.concatenate([np.zeros((1, len(prior)), np.int32), counts])[firsts]
    places = np.where(below, counts - before[rows] - 1, 0)
    totals = np.diff(before, axis=0)
    longest = int(totals.max(initial=1))
    shares = np.exp(-EARLIER * np.arange(longest))
    wholes = prior / np.maximum(np.concatenate([[0.0], np.cumsum(shares)])[totals], 1.0)
    probabilities = (np.where(below, shares[places], 0.0) * wholes[rows]).sum(axis=1)
    # the first of the lowest dips of each frame
    order = np.lexsort((heights, rows))
    lowest = order[np.searchsorted(rows, np.unique(rows))]
    probabilities[lowest] += NO_DIP * (~below[lowest] @ prior)
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

    Each bin is a state with and one without voice. A bin is seen with voice by its probability; what a frame leaves to
    1 is shared by all bins without voice. From bin i the path moves to j by ``(reach + 1 - |i - j|)`` over the sum of
    these weights of the bins within reach, and changes between voice and none by `SWITCH`. It starts anywhere.

    Parameters
    ----------
    rows, bins : ndarray of int64 of shape (K,)
        Frame (ascending) and bin (each once in a frame) of what was seen.
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
    kernel, leaving = np.log(weights), np.log(np.convolve(np.ones(n_bins), weights)[reach : reach + n_bins])
    # what led to each state: the step between bins, and whether voice began or ended
    steps = np.empty((n_frames, 2, n_bins), np.min_scalar_type(2 * reach))
    switched = np.empty((n_frames, 2, n_bins), bool)
    padded = np.full((2, n_bins + 2 * reach), -np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=1)
    scores = np.empty(windows.shape)
    starts = np.arange(2 * n_bins).reshape(2, n_bins) * len(kernel)
    states = np.full((2, n_bins), -math.log(2 * n_bins))  # with voice, without
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
    kind, place = divmod(int(states.argmax()), n_bins)
    for frame in range(n_frames - 1, -1, -1):
        path[frame] = -1 if kind else place
        if frame:
            place += int(steps[frame, kind, place]) - reach
            kind ^= int(switched[frame, kind, place])
    return path


def pitch_candidates(
    samples: NDArray, rate: int, pitch_range: tuple[float, float], *, frame: int, shift: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the periods that each frame of a signal may have: where parabolas through the dips are lowest.

    Parameters
    ----------
    samples : ndarray of float64 of shape (n,)
        One frame at least.
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
    found = []
    for start, stop in chunk_bounds(len(framed), max(1, _BLOCK // frame)):
        curves = normalised_differences(framed[start:stop], longest)[:, shortest - 1 :]
        rows, columns = dips(curves)
        probabilities = dip_probabilities(curves[rows, columns], rows, stop - start)
        # the lowest place of the parabola through a dip and its neighbours; the dip itself at the ends and if outside
        middle = np.clip(columns, 1, curves.shape[1] - 2)
        before, here, after = (curves[rows, middle + step] for step in (-1, 0, 1))
        slope, bend = (after - before) / 2, after + before - 2 * here
        moved = (columns == middle) & (np.abs(slope) < np.abs(bend))
        vertices = np.where(moved, -slope / np.where(moved, bend, 1.0), 0.0)
        found.append((rows + start, shortest + columns + vertices, probabilities))
    frames, periods, probabilities = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return frames, periods, probabilities


def pyin_track(
    samples: NDArray,
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
        Finite.
    rate : int [Hz]
    pitch_range : tuple of two floats [Hz]
        Lowest and highest pitch.
    frame, shift : int [samples]
        Length of a frame, and the way to the next one.
    resolution : float [semitones]
        Distance of the pitches that a track can take, between 0 and 1.
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
        raise DataError("expected one channel of finite samples to track the pitch of")
    if centred:
        samples = np.pad(samples, frame // 2)
    if len(samples) < frame:
        return np.zeros(0)
    frames, periods, probabilities = pitch_candidates(samples, rate, pitch_range, frame=frame, shift=shift)
    per_octave = 12 * math.ceil(1 / resolution)
    n_bins = math.floor(per_octave * math.log2(highest / lowest)) + 1
    bins = np.clip(np.rint(per_octave * np.log2(rate / periods / lowest)).astype(np.int64), 0, n_bins)
    # one candidate of a frame in a bin, the longest period of several; pitches above the last bin are left out
    likely = probabilities > 0
    frames, bins, probabilities = frames[likely], bins[likely], probabilities[likely]
    last = np.append((bins[1:] != bins[:-1]) | (frames[1:] != frames[:-1]), True)[: len(bins)]
    kept = last & (bins < n_bins)
    n_frames = 1 + (len(samples) - frame) // shift
    reach = round(OCTAVES_PER_SECOND * 12 * shift / rate) * (per_octave // 12) // 2
    observed = frames[kept], bins[kept], probabilities[kept]
    path = likeliest_path(*observed, n_frames=n_frames, n_bins=n_bins, reach=reach)
    return np.where(path < 0, 0.0, lowest * 2.0 ** (path / per_octave))


LOWEST, HIGHEST = 75.0, 500.0


def pitch_track(samples: NDArray, rate: int) -> NDArray[np.float64]:
    """Return the pitch of a recording between 75 and 500 Hz by `pyin_track`.

    Parameters
    ----------
    samples : ndarray of float of shape (n,)
    rate : int [Hz]

    Returns
    -------
    ndarray of float64 of shape (T,) [Hz]
        One value each 10 ms, 0 where there is no voice.

    Raises
    ------
    DataError
        If there are no samples, or several channels.
    """
    if not len(samples) or samples.ndim != 1:
        got = f"{len(samples)} samples" if samples.ndim == 1 else f"{samples.shape[1]} channels"
        raise DataError(f"expected one channel of finite samples, got {got}")
    shift = round(FRAME_SHIFT * rate)
    if len(samples) < 2 * rate / LOWEST or not samples.any():  # too short for a period to come back, or silence
        return np.zeros(1 + len(samples) // shift)
    # four periods of the lowest pitch at least
    frame = 1 << int(np.ceil(np.log2(4 * rate / LOWEST)))
    return pyin_track(samples, rate, (LOWEST, HIGHEST), frame=frame, shift=shift)


def compare_recordings(
    original: Mapping[str, Path],
    anonymised: Mapping[str, Path],
    *,
    convention: Convention = "default",
    jobs: int | None = None,
    file: str | Path | None = None,
) -> dict[str, TrackComparison]:
    """Return how the pitch of recordings compares with that of their anonymised versions.

    Parameters
    ----------
    original, anonymised : mapping of str to Path
        Audio file of each utterance.
    convention : {"default", "vpc2022"}
        See `evaluation.utility.pitch`.
    jobs : int, optional
        Workers; the result does not depend on it.
    file : path, optional
        The list of the anonymised ones, for errors.

    Raises
    ------
    DataError
        If utterances differ, or audio files cannot be read; all of them are named.
    """
    lists.check_same(original, anonymised, file=file, what="utterances")
    utterances = sorted(original)
    pairs = [(original[utterance], anonymised[utterance]) for utterance in utterances]
    compared, problems = dict[str, TrackComparison](), Problems()
    comparisons = Work(jobs).map(partial(_compare, convention=convention), pairs, processes=True, description="pitch")
    for utterance, found in zip(utterances, comparisons, strict=True):
        if isinstance(found, DataError):
            problems.note(found)
        else:
            compared[utterance] = found
    problems.raise_if_any()
    return compared


def _compare(pair: tuple[Path, Path], convention: Convention) -> TrackComparison | DataError:
    import soundfile

    tracks = []
    for path in pair:
        try:
            tracks.append(pitch_track(*soundfile.read(str(path), dtype="float64")))
        except (soundfile.LibsndfileError, OSError) as error:
            return DataError(f"not readable as audio: {error}", file=path, remedy="give WAV, FLAC or SPHERE")
        except DataError as error:
            return DataError(error.text, file=path, remedy=error.remedy)
    return compare_tracks(*tracks, convention=convention)
