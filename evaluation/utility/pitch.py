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
             0 Hz, so that agreement in voicing alone gives a correlation; an undefined correlation counts 0
===========  ========================================================================================================

The challenge of 2022 tracks pitch with Praat between 75 and 500 Hz, `spkver-eval f0` by pYIN: under ``vpc2022`` only
the comparison of tracks follows the challenge, not the tracks themselves.

References
----------
N. Tomashenko et al., "The VoicePrivacy 2022 Challenge evaluation plan", arXiv 2203.12468.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.uncertainty import Interval, Resampling
from evaluation.utility import lists
from spkbase.errors import DataError, Problems, caught, errors_of
from spkbase.rounding import is_constant
from spkbase.showing import one_line
from spkbase.work import Work, one_blas_thread

Convention = Literal["default", "vpc2022"]
CONVENTIONS: tuple[Convention, ...] = ("default", "vpc2022")
Tracker = Callable[[NDArray[np.float64], int], NDArray[np.float64]]
"""Samples and their rate in, the pitch in Hz of each frame out."""
MAX_LAG = 20
LEAST_VOICED = 10


@dataclass(frozen=True)
class TrackComparison:
    """Result of a comparison of two tracks.

    Attributes
    ----------
    correlation : float
        Correlation; NaN if undefined.
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
        Number of utterances, and of those that are left out because their correlation is undefined.
    voicing_agreement : float
        Mean agreement in voicing over utterances.
    speakers : dict of str to float
        Mean correlation of each speaker; NaN if undefined for all utterances.
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
        """Return all values by name, for a report."""
        names = ("deviation", "n_utterances", "n_undefined", "voicing_agreement", "speakers")
        method = {"convention": self.convention, "tracker": "pyin"}
        return self.interval.to_dict() | method | {name: getattr(self, name) for name in names}


@one_blas_thread()
def compare_tracks(
    first: NDArray[np.float64], second: NDArray[np.float64], *, convention: Convention = "default"
) -> TrackComparison:
    """Return the correlation of two tracks after alignment.

    Parameters
    ----------
    first, second : ndarray of float64 of shape (T1,) and (T2,) [Hz]
        Pitch of each frame; 0 in unvoiced frames.
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
    first = np.asarray(first, np.float64)
    second = np.asarray(second, np.float64)
    for track in (first, second):
        if (
            track.ndim != 1
            or not len(track)
            or not (track >= 0).all()
            or not np.isfinite(track).all()
        ):
            raise DataError(f"expected a track of frequencies from 0 Hz up, got {track.shape}")
    length = min(len(first), len(second))
    circular = convention == "vpc2022"
    first = _stretched(first, length, by_voice=not circular)
    second = _stretched(second, length, by_voice=not circular)
    if circular:
        lag = _best_lag(first, second, length)
        second = np.roll(second, lag)
    else:
        lag = _best_lag(first, second, min(MAX_LAG, length - 1))
        first = first[max(lag, 0) : length + min(lag, 0)]
        second = second[max(-lag, 0) : length - max(lag, 0)]
    agreement = float(((first > 0) == (second > 0)).mean())
    if circular:
        correlation = _pearson(first, second)
        return TrackComparison(0.0 if np.isnan(correlation) else correlation, lag, agreement)
    both = (first > 0) & (second > 0)
    correlation = np.nan
    if both.sum() >= LEAST_VOICED:
        correlation = _pearson(first[both], second[both])
    return TrackComparison(correlation, lag, agreement)


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
        Comparison of each utterance.
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
        raise DataError(
            "no utterance has a defined pitch correlation",
            remedy="check that there is voiced speech",
        )
    columns = np.stack([np.where(defined, values, 0.0), defined], axis=1)
    names, sums = lists.sum_by_speaker(columns, lists.speakers_of(utterances, speakers))
    n_units = int((sums[:, 1] > 0).sum())
    statistic = partial(lists.pooled_ratio, sums)
    interval = lists.interval_by_speaker(
        statistic, len(names), "correlation", resampling, n_units=n_units
    )
    return PitchCorrelation(
        interval,
        float(values[defined].std()),
        len(utterances),
        int((~defined).sum()),
        float(np.mean([compared[utterance].voicing_agreement for utterance in utterances])),
        dict(zip(names, statistic(np.eye(len(names))).tolist(), strict=True)),
        convention,
    )


def compare_recordings(
    original: Mapping[str, Path],
    anonymised: Mapping[str, Path],
    track: Tracker,
    *,
    convention: Convention = "default",
    jobs: int | None = None,
    file: str | Path | None = None,
) -> dict[str, TrackComparison]:
    """Compare the pitch of recordings with that of their anonymised versions.

    Parameters
    ----------
    original, anonymised : mapping of str to Path
        Audio file of each utterance.
    track : function of samples and rate
        An importable function that returns the pitch of every frame in Hz, such as `spkver.features.pitch_track`.
    convention : {"default", "vpc2022"}
        See `evaluation.utility.pitch`.
    jobs : int, optional
        Workers; the result does not depend on it.
    file : path, optional
        The list of the anonymised recordings, for errors.

    Raises
    ------
    DataError
        If utterances differ, or audio files cannot be read; all such files are named.
    """
    lists.check_same(original, anonymised, file=file)
    utterances = sorted(original)
    pairs = [(original[utterance], anonymised[utterance]) for utterance in utterances]
    problems = Problems()
    compare = partial(caught, function=partial(_compare, track=track, convention=convention))
    comparisons = Work(jobs).map(compare, pairs, processes=True, description="pitch")
    compared = problems.sift(zip(utterances, comparisons, strict=True))
    problems.raise_if_any()
    return compared


def _best_lag(first: NDArray[Any], second: NDArray[Any], most: int) -> int:
    """Return the lag, at most `most` frames, with the largest raw cross-correlation; of several, the shortest."""
    lags = np.arange(-len(second) + 1, len(first))
    products = np.correlate(first, second, mode="full")
    allowed = np.flatnonzero(np.abs(lags) <= most)
    # rounding must not decide between lags that fit equally well
    best = products[allowed].max()
    fitting = allowed[products[allowed] >= best * (1 - 1e-12)]
    return int(min(lags[fitting].tolist(), key=lambda lag: (abs(lag), lag)))


def _stretched(track: NDArray[Any], length: int, *, by_voice: bool) -> NDArray[Any]:
    """Interpolate a track linearly at `length` evenly spaced positions.

    Between a voiced and an unvoiced frame the nearer one is used instead.
    """
    if len(track) == length:
        return track
    places = np.linspace(0, len(track) - 1, length)
    straight: NDArray[Any] = np.interp(places, np.arange(len(track)), track)
    if not by_voice:
        return straight
    below = np.floor(places).astype(int)
    above = np.minimum(below + 1, len(track) - 1)
    nearest = track[np.where(places - below < 0.5, below, above)]
    return np.where((track[below] > 0) & (track[above] > 0), straight, nearest)


def _pearson(first: NDArray[Any], second: NDArray[Any]) -> float:
    if is_constant(first) or is_constant(second):
        return np.nan
    first = first - first.mean()
    second = second - second.mean()
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def _compare(pair: tuple[Path, Path], track: Tracker, convention: Convention) -> TrackComparison:
    import soundfile

    tracks = []
    for path in pair:
        try:
            with errors_of(path), soundfile.SoundFile(str(path)) as file:
                # the number of frames, which is required where a codec cannot seek
                samples = file.read(file.frames, dtype="float64")
                tracks.append(track(samples, file.samplerate))
        except (soundfile.LibsndfileError, OSError) as error:
            text = f"not readable as audio: {error}"
            remedy = "give WAV, FLAC or SPHERE"
            raise DataError(text, file=path, remedy=remedy) from error
    return compare_tracks(*tracks, convention=convention)
