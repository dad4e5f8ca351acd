"""Utterances that are parts of recordings: ``segments`` of a Kaldi data directory are cut into files."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spkbase.errors import DataError, Problems, caught
from spkbase.files import is_file
from spkbase.work import Work
from spkver.audio import read_audio, write_audio
from spkver.datadir.directory import file_stem

_OVERSHOOT = 0.5  # seconds by which a part may exceed its recording, as in Kaldi


class Segment(NamedTuple):
    """A part of a recording, its start and its end in seconds."""

    recording: str
    start: float
    end: float


def parse_segments(
    lines: Mapping[str, str], recordings: Collection[str], path: Path
) -> dict[str, Segment]:
    """Return the segment of each utterance, from the rest of its line, ``recording start end``; an end of -1 is that of
    the recording.

    Raises
    ------
    DataError
        With all lines that are malformed or name an unknown recording.
    """
    problems = Problems(path)
    segments = {}
    for utterance, line in lines.items():
        try:
            recording, first, last = line.split()
            segment = Segment(recording, float(first), float(last))
            if segment.end == -1:
                segment = segment._replace(end=math.inf)
            if not 0 <= segment.start < segment.end:
                raise ValueError
        except ValueError:
            text = (
                f"utterance {utterance!r}: expected 'recording start end' in seconds, got {line!r}"
            )
            problems.add(text)
            continue
        if recording not in recordings:
            problems.add(f"utterance {utterance!r}: no recording {recording!r} in wav.scp")
        segments[utterance] = segment
    problems.raise_if_any()
    return segments


def cut_segments(
    recordings: Mapping[str, Path],
    segments: Mapping[str, Segment],
    folder: Path,
    *,
    jobs: int | None = None,
) -> dict[str, Path]:
    """Write each utterance into a separate WAV file; equal files are not touched.

    Raises
    ------
    DataError
        With all segments that exceed their recordings, and recordings that cannot be read.
    """
    parts: dict[str, dict[str, Segment]] = {}
    for utterance, segment in segments.items():
        parts.setdefault(segment.recording, {})[utterance] = segment
    items = [(recordings[recording], some) for recording, some in parts.items()]
    cut = partial(caught, function=partial(_cut, folder=folder))
    results = Work(jobs).map(cut, items, description="segments", total=len(items))
    problems = Problems()
    files: dict[str, Path] = {}
    for made in problems.sift(zip(parts, results, strict=True)).values():
        files |= made
    problems.raise_if_any()
    return {utterance: files[utterance] for utterance in segments}


def _cut(item: tuple[Path, dict[str, Segment]], folder: Path) -> dict[str, Path]:
    """Write the parts of one recording."""
    recording, segments = item
    samples, rate = read_audio(recording)
    seconds = len(samples) / rate
    files = {}
    for utterance, segment in segments.items():
        end = segment.end
        if end == math.inf:
            end = seconds
        if segment.start >= seconds or end > seconds + _OVERSHOOT:
            text = f"utterance {utterance!r}: {segment.start:g} to {end:g} s of a recording of {seconds:g} s"
            raise DataError(text, file=recording, remedy="correct segments, or wav.scp")
        part = samples[round(segment.start * rate) : round(end * rate)]
        path = folder / f"{file_stem(utterance)}.wav"
        if not is_file(path) or not np.array_equal(read_audio(path).samples, part):
            write_audio(path, part, rate)
        files[utterance] = path
    return files
