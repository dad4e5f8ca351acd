"""One result for each recording of a list, kept in chunks, so that an interrupted run resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from spkbase.errors import Problems, caught
from spkbase.files import load_json, size_and_time, write_text
from spkbase.runs import Run
from spkbase.work import Work, chunks

Value = TypeVar("Value")
Source = TypeVar("Source", Path, tuple[Path, ...])


def map_recordings(
    run: Run,
    name: str,
    function: Callable[[Source], Value],
    recordings: Mapping[str, Source],
    *,
    settings: Any,
    libraries: Sequence[str] = ("numpy", "soundfile", "soxr"),
    chunk: int = 64,
) -> dict[str, Value]:
    """Apply a function to each audio file; results are kept as ``NAME/00000.json``, ... in the output folder.

    A killed run resumes after the last of these files.

    Parameters
    ----------
    run : Run
        The run, whose `jobs` workers share the work; results do not depend on their number.
    name : str
        Name of the stages and of their folder.
    function : callable
        An importable function of the path, whose result JSON can hold. A `DataError` for one file does not stop the
        others.
    recordings : mapping of str to Path, or to tuple of Path
        Audio file of each recording, or several that belong together; known by path, size and time of change.
    settings : object
        All that the results depend on besides the audio; see `spkbase.files.fingerprint`.
    libraries : sequence of str
        Distributions whose versions the results depend on.
    chunk : int
        Number of recordings in a stage, whose results are in one file.

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
    for number, items in enumerate(chunks(sorted(recordings.items()), chunk)):
        stamps = []
        for recording, source in items:
            files: tuple[Path, ...] = source if isinstance(source, tuple) else (source,)
            stamps.append([recording, *map(_stamp, files)])
        with problems.noted():
            results |= run.stage(
                f"{name} {number}",
                f"{name}/{number:05d}.json",
                make=partial(_make, function, items, run.jobs, name),
                read=lambda path: load_json(path)["results"],
                inputs=[settings, stamps],
                libraries=libraries,
            ).value
    problems.raise_if_any()
    return results


def _stamp(file: Path) -> tuple[str, int | None, int | None]:
    return (str(file.absolute()), *size_and_time(file))


def _make(
    function: Callable[[Source], Value],
    items: Sequence[tuple[str, Source]],
    jobs: int | None,
    name: str,
    path: Path,
) -> None:
    problems = Problems()
    task = partial(caught, function=function)
    recordings, sources = zip(*items, strict=True)
    results = Work(jobs).map(task, sources, processes=True, description=name)
    values = problems.sift(zip(recordings, results, strict=True))
    problems.raise_if_any()
    write_text(path, json.dumps({"results": values}, ensure_ascii=False, indent=0) + "\n")
