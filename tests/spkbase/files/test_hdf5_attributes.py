"""Attributes: what h5py reads of good files, and one error where a damaged file would lead the library astray."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.errors import DataError
from spkbase.files import open_file, read_attribute
from spkbase.files.hdf5_attributes import _messages

TEXTS = {"kind": "a file", "empty": "", "long": "x" * 9000, "other": "Größe {}\n"}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        for number in range(12):  # more than one block of the header holds
            file.attrs[f"number{number}"] = number
        for name, text in TEXTS.items():
            file.attrs[name] = text
        file.attrs["values"] = np.arange(4.0)
        file.attrs["fixed"] = np.bytes_(b"of one length")
    return path


def test_attributes_are_those_that_the_library_reads(good: Path) -> None:
    with open_file(good) as file:
        assert {name: read_attribute(file, name) for name in TEXTS} == TEXTS
        assert [read_attribute(file, f"number{number}") for number in range(12)] == list(range(12))
        np.testing.assert_array_equal(read_attribute(file, "values"), np.arange(4.0))
        assert read_attribute(file, "fixed") == "of one length"
        assert read_attribute(file, "absent") is None


def test_attributes_of_a_file_in_memory_and_behind_a_user_block(tmp_path: Path) -> None:
    with h5py.File(io.BytesIO(), "w") as file:
        file.attrs["name"] = "in memory"
        file.flush()
        assert read_attribute(file, "name") == "in memory"
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=512) as file:
        file.attrs["name"] = "behind a block"
    with open_file(tmp_path / "block.h5") as file:
        assert read_attribute(file, "name") == "behind a block"


@given(
    st.dictionaries(st.text("abcdefg/é", min_size=1, max_size=9), st.text(max_size=70).filter(lambda t: "\0" not in t))
)
def test_any_texts(texts: dict[str, str]) -> None:
    with h5py.File(io.BytesIO(), "w") as file:
        for name, text in texts.items():
            file.attrs[name] = text
        file.flush()
        assert {name: read_attribute(file, name) for name in texts} == texts


@pytest.mark.parametrize(
    "value", [["several", "strings"], h5py.Empty("f"), np.array([(1, 2.0)], "i4,f8"), np.array([True])]
)
def test_other_kinds_are_refused(tmp_path: Path, value: object) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["x"] = value
    with pytest.raises(DataError, match=r"a\.h5: "), open_file(tmp_path / "a.h5") as file:
        read_attribute(file, "x")


def test_headers_of_another_version_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.attrs["x"] = "text"
    with pytest.raises(DataError, match="header is of a kind"), open_file(tmp_path / "a.h5") as file:
        read_attribute(file, "x")


@pytest.mark.parametrize(
    ("length", "address", "number"),
    [(0xFFFFFFFF, None, None), (None, 0, None), (None, 1 << 60, None), (None, None, 999), (None, 96, None)],
)
def test_strings_that_are_not_there(
    tmp_path: Path, length: int | None, address: int | None, number: int | None
) -> None:
    path, text = tmp_path / "a.h5", "a text of some length"
    with h5py.File(path, "w") as file:
        file.attrs["x"] = text
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    at = content.index(struct.pack("<IQ", len(text), heap))
    found = list(struct.unpack_from("<IQI", content, at))
    for place, value in enumerate((length, address, number)):
        found[place] = found[place] if value is None else value
    struct.pack_into("<IQI", content, at, *found)
    path.write_bytes(content)
    with (
        pytest.raises(DataError, match=r"a\.h5: (x names a (string|heap) that is|.*Invalid argument)"),
        open_file(path) as file,
    ):
        read_attribute(file, "x")


def test_a_heap_whose_objects_have_no_length_ends(tmp_path: Path) -> None:
    """The library goes round in it for ever."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["x"] = "a text of some length"
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    struct.pack_into("<HHIQ", content, heap + 16, 7, 0, 0, 0)  # number 7, length 0
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.h5: x names a string"), open_file(path) as file:
        read_attribute(file, "x")


def test_a_header_in_a_circle_ends(good: Path) -> None:
    content = bytearray(good.read_bytes())
    with h5py.File(good, "r") as file:
        header = h5py.h5o.get_info(file.id).addr
    size = struct.unpack_from("<I", content, header + 8)[0]
    at, found = header + 16, 0
    while at < header + 16 + size:
        kind, length = struct.unpack_from("<HH", content, at)
        if kind == 0x10:
            struct.pack_into("<QQ", content, at + 8, header + 16, size)  # goes on where it began
            found += 1
        at += 8 + length
    assert found
    image = io.BytesIO(bytes(content))

    class Opened:  # the library itself refuses such a file: only the walk is tried
        userblock_size = 0
        filename = str(good)
        id = h5py.File(good, "r").id

    good.write_bytes(image.getvalue())
    with pytest.raises(DataError, match=r"more pieces|more than the file"):
        list(_messages(Opened()))  # type: ignore[arg-type]
