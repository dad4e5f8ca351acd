"""One result for each recording: what is done when a run ends early is not done again."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_vectors import counted

from spkbase.errors import DataError
from spkbase.runs import start_run
from spkver.recognition import recordings as module
from spkver.recognition.recordings import map_recordings


def size_of(path: Path) -> int:
    size = path.stat().st_size
    if size == 4:
        raise DataError("too long", file=path)
    return size


def test_files_of_results_that_are_done_are_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 2)
    files = {f"u{number}": tmp_path / f"{number}.raw" for number in range(5)}
    for number, path in enumerate(files.values()):
        path.write_bytes(b"x" * number)

    def sizes() -> dict[str, int]:
        with start_run(tmp_path / "out", {}, jobs=1) as run:
            return map_recordings(run, "sizes", lambda path: size_of(path), files, settings="")

    with pytest.raises(DataError, match=r"4\.raw: too long"):
        sizes()
    files["u4"].write_bytes(b"x" * 5)
    asked = counted(monkeypatch, __import__(__name__), "size_of")
    assert sizes() == {"u0": 0, "u1": 1, "u2": 2, "u3": 3, "u4": 5}
    assert asked == [(files["u4"],)]
    assert sizes()["u4"] == 5
    assert len(asked) == 1
