"""One result for each recording of a list, kept in chunks, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from evaluation.files import write_text
from evaluation.parallel import chunks, ordered_map
from spkver.audio import audio_header
from spkver.errors import DataError, Problems
from spkver.run import Run
from spkver.store import file_digest

Value = TypeVar("Value")

_CHUNK = 32


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
    run: Run, name: str, function: Callable[[Path], Value], recordings: Mapping[str, Path], *, settings: Any
) -> dict[str, Value]:
    """Apply a function to each audio file; results are kept as ``NAME/00000.json``, ... in the output folder.

    Parameters
    ----------
    run : Run
        Its `jobs` processes share the work; results do not depend on their number.
    name : str
        Name of the stages and of their folder.
    function : callable
        Importable; takes the path, and gives what JSON can hold. A `DataError` of one file does not stop the others.
    recordings : mapping of str to Path
        Audio file of each recording.
    settings : object
        What the results depend on besides the audio; see `spkver.store.fingerprint`.

    Returns
    -------
    dict
        Result of each recording, sorted by name.

    Raises
    ------
    DataError
        With all files that failed, after the others are done.
    """
    problems = Problems()
    results: dict[str, Value] = {}
    for number, items in enumerate(chunks(sorted(recordings.items()), _CHUNK)):
        digests = [(one, file_digest(path)) for one, path in items]
        try:
            results |= run.stage(
                f"{name} {number}",
                f"{name}/{number:05d}.json",
                make=partial(_make, function, items, run.jobs, name),
                read=_read,
                inputs=[settings, digests],
            )
        except DataError as error:
            problems.note(error)
    problems.raise_if_any()
    return results


def _make(
    function: Callable[[Path], Value],
    items: Sequence[tuple[str, Path]],
    jobs: int | None,
    name: str,
    path: Path,
    attributes: Mapping[str, Any],
) -> None:
    work = partial(_caught, function)
    found = list(ordered_map(work, [file for _, file in items], jobs=jobs, description=name))
    problems = Problems()
    for value in found:
        if isinstance(value, DataError):
            problems.note(value)
    problems.raise_if_any()
    values = {one: value for (one, _), value in zip(items, found, strict=True)}
    write_text(path, json.dumps({**attributes, "results": values}, ensure_ascii=False, indent=0) + "\n")


def _caught(function: Callable[[Path], Value], path: Path) -> Value | DataError:
    try:
        return function(path)
    except DataError as error:
        return error


def _read(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"cannot be read: {error}", file=path, remedy="remove it and run again") from error
    return dict(results)
