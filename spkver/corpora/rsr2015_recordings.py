"""RSR2015's recordings: which there are, which are background, and which of them the key files name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from spkbase.errors import Problems
from spkver.corpora.rsr2015_keys import Enrolment, TrialList

_EXTENSIONS = (".sph", ".wav", ".flac")
_RECORDING = re.compile(r"^([mf])(\d{3})/\1\2_(\d{2})_(\d{3})$")


def scan_recordings(folder: Path, problems: Problems) -> dict[str, list[str]]:
    """Return the paths of each recording id; more than one where it is there in several containers."""
    paths: dict[str, list[str]] = {}
    try:
        speakers = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        for speaker in speakers:
            name = os.path.basename(speaker)  # noqa: PTH119  # 100,000 files: strings, not Path objects
            for entry in os.scandir(speaker):
                stem, dot, extension = entry.name.rpartition(".")
                if dot and f".{extension.lower()}" in _EXTENSIONS and not stem.startswith("."):
                    paths.setdefault(f"{name}/{stem}", []).append(entry.path)
    except OSError as error:
        problems.add(f"cannot be read: {error.strerror or error}", file=folder, remedy="check the corpus folder")
        return {}
    if not paths:
        problems.add("no recordings (.sph, .wav or .flac)", file=folder, remedy="check the corpus folder")
    return paths


def speaker_number(segment: str) -> int:
    """Return the number of the speaker of a recording, -1 where the id does not tell."""
    recording = _RECORDING.match(segment)
    return int(recording.group(2)) if recording else -1


def ubm_list(found: Iterable[str], background: range, sentences: tuple[int, int]) -> list[str]:
    """Return the recordings of the background speakers with these sentences, sorted."""
    chosen = []
    for segment in found:
        recording = _RECORDING.match(segment)
        if (
            recording
            and int(recording.group(2)) in background
            and sentences[0] <= int(recording.group(4)) <= sentences[1]
        ):
            chosen.append(segment)
    return sorted(chosen)


def used_recordings(
    enrolment_file: Path, enrolled: list[Enrolment], trials_file: Path, trials: TrialList | None
) -> dict[str, tuple[Path, int | None]]:
    """Return the recordings that the key files name, with the place of the first mention; no line where it has none."""
    used: dict[str, tuple[Path, int | None]] = {}
    for row in enrolled:
        for segment in row.segments:
            used.setdefault(segment, (enrolment_file, row.line or None))
    if trials is not None:
        codes, first = np.unique(trials.segments, return_index=True)
        for code, line in zip(codes.tolist(), trials.lines[first].tolist(), strict=True):
            used.setdefault(trials.segment_ids[code], (trials_file, line or None))
    return used


def find_recordings(
    found: dict[str, list[str]], ubm: list[str], used: dict[str, tuple[Path, int | None]], problems: Problems
) -> dict[str, Path]:
    """Return the one file of each recording that is needed."""
    recordings: dict[str, Path] = {}
    for segment in sorted({*ubm, *used}):
        paths = found.get(segment, [])
        if len(paths) > 1:
            names = " and ".join(sorted(paths))
            problems.add(f"recording {segment!r} is there twice: {names}", remedy="keep one of them")
        elif paths:
            recordings[segment] = Path(paths[0])
        elif found:  # without any recording there was one problem already
            file, line = used[segment]
            problems.add(
                f"no recording {segment!r}", file=file, line=line, remedy="copy its .sph, .wav or .flac into the corpus"
            )
    return recordings
