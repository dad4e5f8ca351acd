"""How far the intonation survives: the correlation of the pitch of a recording before and after anonymisation.

Conventions
-----------
A track holds the fundamental frequency in Hz every 10 ms, 0 where there is no voice. Of two tracks of different length
the longer one is read at the length of the shorter, evenly stretched. Then they are aligned by the lag at which their
raw cross-correlation is largest, and correlated (Pearson).

===========  ========================================================================================================
convention   rule
===========  ========================================================================================================
default      lags up to 0.2 s; frames that have no partner are left out; only frames with voice in both count, at least
             10; where there are fewer, or a track does not move, the correlation is undefined and the utterance is
             left out of the mean and counted
vpc2022      any lag, by a circular shift (what leaves at one end comes in at the other); frames without voice count as
             0 Hz, so that the voicing alone correlates; an undefined correlation counts 0
===========  ========================================================================================================

The challenge of 2022 tracks pitch with Praat between 75 and 500 Hz; see `evaluation.utility.pitch_tracks` for ours.
Numbers under ``vpc2022`` are comparable in what is done with the tracks, not in the tracks.

References
----------
N. Tomashenko et al., "The VoicePrivacy 2022 Challenge evaluation plan", arXiv 2203.12468.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.uncertainty import Interval, Resampling
from evaluation.utility.lists import speakers_of
from evaluation.utility.resampling import DEFAULT, interval_by_speaker, speaker_codes, sum_by_speaker
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

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
        Share of frames in which both have voice or neither has.
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
    convention, tracker : str
    """

    interval: Interval
    deviation: float
    n_utterances: int
    n_undefined: int
    voicing_agreement: float
    speakers: dict[str, float]
    convention: str
    tracker: str

    def to_dict(self) -> dict[str, Any]:
        """Return all of it by name, for a report."""
        names = ("convention", "tracker", "deviation", "n_utterances", "n_undefined", "voicing_agreement", "speakers")
        return self.interval.to_dict() | {name: getattr(self, name) for name in names}


@one_blas_thread()
def compare_tracks(
    first: NDArray[np.float64], second: NDArray[np.float64], *, convention: Convention = "default"
) -> TrackComparison:
    """Return how two tracks correlate once they are aligned.

    Parameters
    ----------
    first, second : ndarray of float64 of shape (T1,) and (T2,) [Hz]
        0 where there is no voice.
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
    if convention == "vpc2022":
        one, other = (_stretched(track, length) for track in tracks)
        lag = _best_lag(one, other, length)
        other = np.roll(other, lag)
        agreement = float(((one > 0) == (other > 0)).mean())
        found = _pearson(one, other)
        return TrackComparison(0.0 if np.isnan(found) else found, lag, agreement)
    one, other = (_stretched_voice(track, length) for track in tracks)
    lag = _best_lag(one, other, min(MAX_LAG, length - 1))
    one, other = (one[lag:], other[: length - lag]) if lag >= 0 else (one[:lag], other[-lag:])
    both = (one > 0) & (other > 0)
    found = _pearson(one[both], other[both]) if both.sum() >= LEAST_VOICED else np.nan
    return TrackComparison(found, lag, float(((one > 0) == (other > 0)).mean()))


@one_blas_thread()
def mean_correlation(
    compared: Mapping[str, TrackComparison],
    speakers: Mapping[str, str],
    *,
    convention: Convention = "default",
    tracker: str = "",
    resampling: Resampling = DEFAULT,
) -> PitchCorrelation:
    """Return the mean correlation over utterances, with an interval by a bootstrap of speakers.

    Parameters
    ----------
    compared : mapping of str to TrackComparison
        Of each utterance.
    speakers : mapping of str to str
        Speaker of each utterance.
    convention, tracker : str
        How the comparisons were made, for the report.
    resampling : Resampling

    Raises
    ------
    DataError
        If an utterance has no speaker, or no correlation is defined.
    """
    utterances = sorted(compared)
    names, codes = speaker_codes(speakers_of(utterances, speakers))
    values = np.array([compared[utterance].correlation for utterance in utterances])
    defined = ~np.isnan(values)
    if not defined.any():
        raise DataError("no utterance has a defined pitch correlation", remedy="check that there is voiced speech")
    columns = np.stack([np.where(defined, values, 0.0), defined], axis=1)
    sums = sum_by_speaker(columns, codes, len(names))
    weights = resampling.weights(len(names))
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = (weights @ sums[:, 0]) / (weights @ sums[:, 1])
        by_speaker = sums[:, 0] / sums[:, 1]
    kept = values[defined]
    n_speakers = int((sums[:, 1] > 0).sum())
    return PitchCorrelation(
        interval_by_speaker(float(kept.mean()), resampled, "correlation", resampling, n_speakers),
        float(kept.std()),
        len(utterances),
        int((~defined).sum()),
        float(np.mean([compared[utterance].voicing_agreement for utterance in utterances])),
        dict(zip(names, by_speaker.tolist(), strict=True)),
        convention,
        tracker,
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


def _stretched(track: NDArray, length: int) -> NDArray:
    """Read a track at `length` evenly spaced places, between its frames by a straight line."""
    if len(track) == length:
        return track
    return np.interp(np.linspace(0, len(track) - 1, length), np.arange(len(track)), track)


def _stretched_voice(track: NDArray, length: int) -> NDArray:
    """Read a track likewise, but never between a frame with voice and one without: there the nearer one counts."""
    if len(track) == length:
        return track
    places = np.linspace(0, len(track) - 1, length)
    below = np.floor(places).astype(int)
    above = np.minimum(below + 1, len(track) - 1)
    nearest = track[np.where(places - below < 0.5, below, above)]
    return np.where((track[below] > 0) & (track[above] > 0), _stretched(track, length), nearest)


def _pearson(one: NDArray, other: NDArray) -> float:
    one, other = one - one.mean(), other - other.mean()
    # a constant less its mean may leave crumbs
    scale = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / scale) if scale > 1e-9 else np.nan
