"""Pitch tracks of audio files, every 10 ms between 75 and 500 Hz.

==========  ==========================================================================================================
tracker     what it is
==========  ==========================================================================================================
pyin        probabilistic YIN, with its own voicing decision; the default, always there (`probabilistic_yin`)
dio         DIO with StoneMask of the WORLD vocoder (pyworld, extra ``[world]``); faster
==========  ==========================================================================================================

References
----------
M. Mauch and S. Dixon, "pYIN: a fundamental frequency estimator using probabilistic threshold distributions", ICASSP
2014.
M. Morise, H. Kawahara and H. Katayose, "Fast and reliable F0 estimation method based on the period extraction of vocal
fold vibration of singing voice and speech", AES 35th International Conference, 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.utility.lists import check_same
from evaluation.utility.pitch import FRAME_SHIFT, Convention, TrackComparison, compare_tracks
from evaluation.utility.probabilistic_yin import pyin_track
from spkbase.errors import DataError, Problems
from spkbase.work import ordered_map

Tracker = Literal["pyin", "dio"]
TRACKERS: tuple[Tracker, ...] = ("pyin", "dio")
LOWEST, HIGHEST = 75.0, 500.0


def pitch_track(samples: NDArray, rate: int, *, tracker: Tracker = "pyin") -> NDArray[np.float64]:
    """Return the pitch of a recording.

    Parameters
    ----------
    samples : ndarray of float of shape (n,)
    rate : int [Hz]
    tracker : {"pyin", "dio"}

    Returns
    -------
    ndarray of float64 of shape (T,) [Hz]
        One value each 10 ms, 0 where there is no voice.

    Raises
    ------
    DataError
        If the tracker is unknown or not installed, or there are no samples.
    """
    if tracker not in TRACKERS:
        raise DataError(f"expected a tracker among {', '.join(TRACKERS)}, got {tracker!r}")
    samples = np.ascontiguousarray(samples, np.float64)
    if not len(samples):
        raise DataError("no samples to track the pitch of")
    return _pyin(samples, rate) if tracker == "pyin" else _dio(samples, rate)


def compare_recordings(
    original: Mapping[str, Path],
    anonymised: Mapping[str, Path],
    *,
    tracker: Tracker = "pyin",
    convention: Convention = "default",
    jobs: int | None = None,
    file: str | Path | None = None,
) -> dict[str, TrackComparison]:
    """Return how the pitch of recordings compares with that of their anonymised twins.

    Parameters
    ----------
    original, anonymised : mapping of str to Path
        Audio file of each utterance.
    tracker : {"pyin", "dio"}
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
    check_same(original, anonymised, file=file, what="utterances")
    if tracker == "dio":
        _import_pyworld()
    utterances = sorted(original)
    pairs = [(original[utterance], anonymised[utterance]) for utterance in utterances]
    compare = partial(_compare, tracker=tracker, convention=convention)
    problems = Problems()
    compared = {}
    comparisons = ordered_map(compare, pairs, jobs=jobs, description="pitch")
    for utterance, comparison in zip(utterances, comparisons, strict=True):
        if isinstance(comparison, DataError):
            problems.note(comparison)
        else:
            compared[utterance] = comparison
    problems.raise_if_any()
    return compared


def _compare(pair: tuple[Path, Path], tracker: Tracker, convention: Convention) -> TrackComparison | DataError:
    try:
        tracks = [_track_of(path, tracker) for path in pair]
        return compare_tracks(tracks[0], tracks[1], convention=convention)
    except DataError as error:
        return error


def _track_of(path: Path, tracker: Tracker) -> NDArray[np.float64]:
    samples, rate = _read(path)
    try:
        return pitch_track(samples, rate, tracker=tracker)
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error


def _read(path: Path) -> tuple[NDArray[np.float64], int]:
    import soundfile

    try:
        samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", None) or str(error)
        raise DataError(f"not readable as audio: {reason}", file=path, remedy="give WAV, FLAC or SPHERE") from error
    if not len(samples) or samples.shape[1] != 1 or not np.isfinite(samples).all():
        text = f"expected one channel of finite samples, got {samples.shape[1]} channels of {len(samples)} samples"
        raise DataError(text, file=path, remedy="write the file again")
    return samples[:, 0], rate


def _pyin(samples: NDArray, rate: int) -> NDArray[np.float64]:
    shift = round(FRAME_SHIFT * rate)
    if len(samples) < 2 * rate / LOWEST or not samples.any():  # too short for a period to come back, or silence
        return np.zeros(1 + len(samples) // shift)
    # four periods of the lowest pitch at least
    frame = 1 << int(np.ceil(np.log2(4 * rate / LOWEST)))
    return pyin_track(samples, rate, (LOWEST, HIGHEST), frame=frame, shift=shift)


def _dio(samples: NDArray, rate: int) -> NDArray[np.float64]:
    pyworld = _import_pyworld()
    settings = {"f0_floor": LOWEST, "f0_ceil": HIGHEST, "frame_period": 1000 * FRAME_SHIFT}
    track, times = pyworld.dio(samples, rate, **settings)
    return np.asarray(pyworld.stonemask(samples, track, times, rate), np.float64)


def _import_pyworld():  # type: ignore[no-untyped-def]  # a module without types
    try:
        import pyworld
    except ImportError as error:
        raise DataError("the tracker dio needs pyworld", remedy="pip install 'spkver[world]', or use pyin") from error
    return pyworld
