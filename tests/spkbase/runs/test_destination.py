"""Where a computation goes: a path alone stands for a file without a folder of chunks."""

from __future__ import annotations

from pathlib import Path

import pytest

from spkbase.runs import Destination, file_destination
from spkbase.runs import Draft


@pytest.mark.parametrize("given", ["a/b.h5", Path("a/b.h5"), Destination("a/b.h5"), Destination(Path("a/b.h5"))])
def test_a_file(given):
    path, destination = file_destination(given)
    assert path == Path("a/b.h5")
    assert (destination.folder, destination.fingerprint, dict(destination.attributes)) == (None, "", {})


def test_no_file():
    with pytest.raises(ValueError, match="names no file"):
        file_destination(Destination(folder="chunks"))


def test_a_draft_of_a_stage_is_one(tmp_path):
    with Draft(tmp_path / "a.h5", "f", tmp_path / "partial") as draft:
        assert not (tmp_path / "partial").exists()
        found = draft.destination
        assert (tmp_path / "partial").is_dir()
    assert found == Destination(tmp_path / "a.h5", tmp_path / "partial", "f", {"fingerprint": "f"})
