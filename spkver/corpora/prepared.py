"""Data directories of a corpus written together: all of them, or none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spkbase.errors import Problems
from spkbase.files import disk_errors, make_folder, write_json, write_text
from spkver.datadir import DataDir, write_datadir


def write_prepared(
    parts: Sequence[DataDir], more: Mapping[str, Mapping[str, str]], record: tuple[str, Mapping[str, Any]]
) -> None:
    """Write data directories with further lists, and a record of how they were made.

    They are written beside their places and moved there when all are whole.

    Parameters
    ----------
    parts : sequence of DataDir
        In one folder.
    more : mapping of str to mapping of str to str
        Name of a list, such as ``text``, to id and value; each directory gets the lines of its utterances and speakers.
    record : (str, mapping)
        File and content of the record, in that folder.

    Raises
    ------
    DataError
        With all problems: a directory is there already; an id or a path that a list cannot hold; the folder cannot be
        written.
    """
    output = parts[0].path.parent
    problems = Problems(output)
    for part in parts:
        if part.path.exists() or part.path.is_symlink():
            problems.add("is there already", file=part.path, remedy="remove it, or choose another folder")
    problems.raise_if_any()
    make_folder(output)
    with disk_errors(output):
        stage = Path(tempfile.mkdtemp(prefix=".prepare.", dir=output))
    try:
        for part in parts:
            staged = replace(part, path=stage / part.path.name)
            write_datadir(staged)
            known = {*part.speakers, *part.speakers.values()}
            for name, values in more.items():
                lines = [f"{key} {values[key]}".rstrip() + "\n" for key in sorted(known & values.keys())]
                if lines:
                    write_text(staged.path / name, "".join(lines))
        with disk_errors(output):
            for part in parts:
                (stage / part.path.name).rename(part.path)
        write_json(output / record[0], record[1])
    finally:
        shutil.rmtree(stage, ignore_errors=True)
