"""Filterbanks of parts of recordings, as input of CAM++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkver.audio import read_audio
from spkver.extractors import kaldi_filterbanks
from spkver.training.speech import TrainingSpeech

RATE = 16000
_MOST_FRAMES = 20  # largest number of frames in a mask
_MOST_BANDS = 8


def random_batch(
    training: TrainingSpeech,
    versions: Mapping[str, Sequence[Path]],
    count: int,
    seconds: float,
    draw: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw utterances, a version of each, and a part of that version.

    Parameters
    ----------
    training : TrainingSpeech
    versions : mapping of str to sequence of Path
        Recordings of each utterance.
    count : int
        Number of crops B; utterances are drawn twice only if there are fewer than B.
    seconds : float
        Length of a crop.
    draw : Generator

    Returns
    -------
    crops : ndarray of float32 of shape (B, T, 80)
        See `random_crop`.
    speakers : ndarray of int64 of shape (B,)
        Positions among the sorted speakers.
    """
    row_of = {speaker: row for row, speaker in enumerate(training.speakers)}
    utterances = len(training.utterances)
    chosen = draw.choice(utterances, count, replace=utterances < count)
    crops = []
    rows = []
    for number in chosen:
        utterance = training.utterances[number]
        paths = versions[utterance.id]
        path = paths[int(draw.integers(len(paths)))]
        crops.append(random_crop(path, seconds, draw))
        rows.append(row_of[utterance.speaker])
    return np.stack(crops), np.array(rows, np.int64)


def random_crop(path: Path, seconds: float, draw: np.random.Generator) -> NDArray[np.float32]:
    """Return the filterbanks of a part of a recording that starts at random, without some frames and bands.

    Parameters
    ----------
    path : Path
        The recording, which is repeated if it is shorter.
    seconds : float
    draw : Generator

    Returns
    -------
    ndarray of float32 of shape (T, 80)
        Filterbanks with mean 0 over time; up to 20 adjacent frames and up to 8 adjacent bands are 0.
    """
    samples = _samples(path)
    length = round(seconds * RATE)
    if len(samples) < length:
        samples = np.resize(samples, length)
    start = draw.integers(len(samples) - length + 1)
    frames = kaldi_filterbanks(samples[start : start + length])
    for axis, most in enumerate((_MOST_FRAMES, _MOST_BANDS)):
        width = draw.integers(most + 1)
        first = draw.integers(frames.shape[axis] - width + 1)
        np.moveaxis(frames, axis, 0)[first : first + width] = 0
    return frames


def middle_crop(path: Path, seconds: float) -> NDArray[np.float32]:
    """Return the filterbanks of the middle of a recording, or of the whole if it is shorter."""
    samples = _samples(path)
    length = min(len(samples), round(seconds * RATE))
    start = (len(samples) - length) // 2
    return kaldi_filterbanks(samples[start : start + length])


def _samples(path: Path) -> NDArray[np.float32]:
    return np.asarray(read_audio(path, rate=RATE, resample=True).samples, np.float32)
