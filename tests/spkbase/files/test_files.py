"""Files that are whole or absent, whatever goes wrong on the way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from spkbase.errors import DataError
from spkbase.files.atomic import atomic_file, atomic_path, write_text
from spkbase.files.temporary_rows import TemporaryRows


class FullDisk:
    """A raw file's `write` after which the disk is full."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, file: object, data: object) -> int:
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        if size > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= size
        return size


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_new_file_in_a_new_folder(tmp_path):
    write_text(tmp_path / "a" / "b" / "ü.txt", "Grüße\n")
    assert (tmp_path / "a" / "b" / "ü.txt").read_text(encoding="utf-8") == "Grüße\n"
    assert only(tmp_path / "a" / "b") == ["ü.txt"]


def test_temporary_name_keeps_the_suffix_and_hides(tmp_path):
    with atomic_path(tmp_path / "plot.svg") as temporary:
        assert temporary.suffix == ".svg"
        assert temporary.name.startswith(".")
        assert temporary.parent == tmp_path
        assert not (tmp_path / "plot.svg").exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, DataError("bad"), OSError(errno.ENOSPC, "full")])
def test_failure_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises((RuntimeError, KeyboardInterrupt, DataError)), atomic_path(path) as temporary:  # noqa: PT012
        temporary.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert only(tmp_path) == ["a.txt"]


def test_rights_follow_the_mask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_full_disk_names_the_file_and_the_remedy(tmp_path, number):
    expected = pytest.raises(DataError, match=r"a\.txt: cannot be written: .*free space")
    with expected as caught, atomic_path(tmp_path / "a.txt"):
        raise OSError(number, "a page of details")
    assert "page of details" not in str(caught.value)
    assert only(tmp_path) == []


def test_error_of_another_file_is_not_blamed_on_this_one(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_path(tmp_path / "a.txt"):
        (tmp_path / "other.txt").read_text()
    assert caught.value.filename.endswith("other.txt")


@pytest.mark.parametrize("name", ["file/a.txt", "a" * 300])
def test_impossible_path(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_text(tmp_path / name, "")


def test_long_name(tmp_path):
    name = "ü" * 120 + ".txt"  # 244 bytes of the 255 that there may be
    write_text(tmp_path / name, "")
    assert only(tmp_path) == [name]


def test_folder_in_the_way(tmp_path):
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(DataError, match=r"a\.txt: cannot be written"):
        write_text(tmp_path / "a.txt", "")
    assert only(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("moment", ["close", "chmod"])
def test_an_interrupt_at_any_moment_leaves_no_temporary_file(tmp_path, monkeypatch, moment):
    """Also right after the file came into being."""
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, interrupted)
        with pytest.raises(KeyboardInterrupt), atomic_path(tmp_path / "a.txt") as temporary:
            temporary.write_text("a")
    assert only(tmp_path) == []


@pytest.mark.parametrize("named", [True, False])
def test_an_interrupt_leaves_no_temporary_rows(tmp_path, monkeypatch, named):
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            TemporaryRows(tmp_path, (2, 2), np.float32, what="rows", named=named)
    assert only(tmp_path) == []


def interrupted(*_arguments: object, **_options: object) -> None:
    raise KeyboardInterrupt


def test_atomic_file_reads_what_it_wrote(tmp_path):
    with atomic_file(tmp_path / "a.bin") as file:
        assert file.write(b"0123456789") == 10
        file.seek(2)
        buffer = bytearray(4)
        assert file.readinto(buffer) == 4  # type: ignore[attr-defined]
        assert buffer == b"2345"
        assert file.tell() == 6
        file.truncate(8)
    assert (tmp_path / "a.bin").read_bytes() == b"01234567"


@pytest.mark.parametrize("room", [0, 100, 3000, 50_000])
def test_hdf5_on_a_full_disk_is_one_error(tmp_path, monkeypatch, room):
    """The library itself would raise one thing or another, keep the file open, and crash at the end."""
    import spkbase.files.atomic

    full = FullDisk(room)

    class Raw(spkbase.files.atomic._LateErrors):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            inner = self._file

            class Limited:
                def write(self, data: object) -> int:
                    full(inner, data)
                    return inner.write(data)  # type: ignore[arg-type]

                def __getattr__(self, name: str) -> object:
                    return getattr(inner, name)

            self._file = Limited()  # type: ignore[assignment]

    monkeypatch.setattr(spkbase.files.atomic, "_LateErrors", Raw)
    path = tmp_path / "a.h5"
    path.write_text("old")
    full_disk = pytest.raises(DataError, match=r"a\.h5: cannot be written: No space left")
    with full_disk, atomic_file(path) as handle, h5py.File(handle, "w") as file:
        file.create_dataset("big", data=np.arange(20_000.0))
        file.create_dataset("packed", data=np.arange(20_000.0), compression="gzip", chunks=(500,))
        file.attrs["name"] = "value"
    assert path.read_text() == "old"
    assert only(tmp_path) == ["a.h5"]


def test_hdf5_with_room(tmp_path):
    with atomic_file(tmp_path / "a.h5") as handle, h5py.File(handle, "w") as file:
        file.create_dataset("packed", data=np.arange(20_000.0), compression="gzip", fletcher32=True)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["packed"][()], np.arange(20_000.0))


def test_devices_and_pipes_are_left_alone(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a device or a pipe"):
        write_text(pipe, "x")
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
