"""One result for each recording of a list, kept in chunks, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from spkbase.errors import DataError, Problems
from spkbase.files import file_digest, load_json, write_text
from spkbase.runs import Run
from spkbase.work import chunks, ordered_map
from spkver.audio import audio_header

Value = TypeVar("Value")
Source = TypeVar("Source", Path, tuple[Path, ...])

_CHUNK = 64  # recordings of a stage


def check_recordings(*lists: Mapping[str, Path], jobs: int | None = None) -> None:
    """Check the header of every file before any long step: readable, and one channel.

    Raises
    ------
    DataError
        With all problems at once.
    """
    paths = sorted({path for recordings in lists for path in recordings.values()})
    problems = Problems()
    for errors in ordered_map(_check, chunks(paths, 256), jobs=jobs, threads=True):
        for error in errors:
            problems.note(error)
    problems.raise_if_any()


def _check(paths: Sequence[Path]) -> list[DataError]:
    errors = []
    for path in paths:
        try:
            channels = audio_header(path).channels
            if channels > 1:
                raise DataError(f"{channels} channels, expected one", file=path, remedy="write one channel of it")
        except DataError as error:
            errors.append(error)
    return errors


def map_recordings(
    run: Run,
    name: str,
    function: Callable[[Source], Value],
    recordings: Mapping[str, Source],
    *,
    settings: Any,
    libraries: Sequence[str] = ("numpy", "soundfile", "soxr"),
) -> dict[str, Value]:
    """Apply a function to each audio file; results are kept as ``NAME/00000.json``, ... in the output folder.

    A run that is killed goes on after the last of these files.

    Parameters
    ----------
    run : Run
        Its `jobs` workers share the work; results do not depend on their number.
    name : str
        Name of the stages and of their folder.
    function : callable
        Importable; takes the path, and gives what JSON can hold. A `DataError` of one file does not stop the others.
    recordings : mapping of str to Path, or to tuple of Path
        Audio file of each recording, or several that belong together.
    settings : object
        What the results depend on besides the audio; see `spkbase.files.fingerprint`.
    libraries : sequence of str
        Distributions whose versions the results depend on.

    Returns
    -------
    dict
        Result of each recording, sorted by name.

    Raises
    ------
    DataError
        With all files that failed, after the others are done.
    """
    digests = _digests(recordings, run.jobs)
    problems = Problems()
    results: dict[str, Value] = {}
    for number, items in enumerate(chunks(sorted(recordings.items()), _CHUNK)):
        try:
            stage = run.stage(
                f"{name} {number}",
                f"{name}/{number:05d}.json",
                make=partial(_make, function, items, run.jobs, name),
                read=_read,
                inputs=[settings, [(name, digests[name]) for name, _ in items]],
                libraries=libraries,
            )
            results |= stage.value
        except DataError as error:
            problems.note(error)
    problems.raise_if_any()
    return results


def _digests(recordings: Mapping[str, Source], jobs: int | None) -> dict[str, list[str | None]]:
    """Checksums of the files of each recording."""
    parts = chunks(sorted(recordings), _CHUNK)
    files = [[_paths(recordings[recording]) for recording in names] for names in parts]
    digested = ordered_map(_digest_some, files, jobs=jobs, threads=True)
    return {
        recording: digests
        for names, some in zip(parts, digested, strict=True)
        for recording, digests in zip(names, some, strict=True)
    }


def _digest_some(files: Sequence[tuple[Path, ...]]) -> list[list[str | None]]:
    return [[file_digest(path) for path in paths] for paths in files]


def _paths(source: Path | tuple[Path, ...]) -> tuple[Path, ...]:
    return source if isinstance(source, tuple) else (source,)


def _make(
    function: Callable[[Source], Value],
    items: Sequence[tuple[str, Source]],
    jobs: int | None,
    name: str,
    path: Path,
) -> None:
    problems, values = Problems(), {}
    results = ordered_map(partial(_caught, function), [source for _, source in items], jobs=jobs, description=name)
    for (recording, _), value in zip(items, results, strict=True):
        if isinstance(value, DataError):
            problems.note(value)
        values[recording] = value
    problems.raise_if_any()
    write_text(path, json.dumps({"results": values}, ensure_ascii=False, indent=0) + "\n")


def _caught(function: Callable[[Source], Value], source: Source) -> Value | DataError:
    try:
        return function(source)
    except DataError as error:
        return error


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(load_json(path)["results"].items())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"cannot be read: {error}", file=path, remedy="remove it and run again") from error
