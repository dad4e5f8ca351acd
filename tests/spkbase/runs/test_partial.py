"""Journals and drafts: what is found again is what was written, whatever happened to the files meanwhile."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spkbase.runs.journal
from spkbase.errors import DataError
from spkbase.files.hdf5 import read_arrays
from spkbase.runs import ArrayDraft
from spkbase.runs import Journal, progress_of, resumed_map

ARRAYS = [
    {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "empty": np.empty((0, 4))},
    {"flags": np.array([True, False]), "scalar": np.array(2.5), "z": np.array([1j])},
    {"x": np.arange(40, dtype=">i4")[::2]},
    {},
]
NOTES = [None, {"ü": [1, "zwei", None]}, "three", 4.5]


def written(path: Path) -> list[int]:
    """A journal of all ARRAYS; returns the size of the file after each record, the head's first."""
    sizes = []
    with Journal(path, "abc", total=9) as journal:
        sizes.append(path.stat().st_size)
        for arrays, note in zip(ARRAYS, NOTES, strict=True):
            journal.append(arrays, note)
            sizes.append(path.stat().st_size)
    return sizes


def check_records(journal: Journal, n: int) -> None:
    assert len(journal) == n
    for number in range(n):
        arrays, note = journal.read(number)
        assert note == NOTES[number]
        assert set(arrays) == set(ARRAYS[number])
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, ARRAYS[number][name])
            assert (array.dtype, array.shape) == (ARRAYS[number][name].dtype, ARRAYS[number][name].shape)


def test_records_come_back(tmp_path):
    path = tmp_path / "deep" / "a.journal"
    written(path)
    with Journal(path, "abc", total=9) as journal:
        check_records(journal, 4)
        np.testing.assert_array_equal(journal.read(-2)[0]["x"], ARRAYS[2]["x"])
        with pytest.raises(IndexError):
            journal.read(4)


def test_another_fingerprint_empties_it(tmp_path):
    written(tmp_path / "a.journal")
    with Journal(tmp_path / "a.journal", "other", total=9) as journal:
        assert len(journal) == 0
        journal.append({"x": np.ones(1)})
    with Journal(tmp_path / "a.journal", "abc", total=9) as journal:
        assert len(journal) == 0


def test_onlookers_change_nothing(tmp_path):
    path = tmp_path / "a.journal"
    with pytest.raises(FileNotFoundError):
        Journal(path, "abc", read_only=True)
    assert not path.exists()
    written(path)
    with Journal(path, "other", total=9, read_only=True) as journal:
        assert len(journal) == 0
        with pytest.raises(IndexError):
            journal.read(0)
    with Journal(path, "abc", total=9) as journal, Journal(path, "abc", total=9, read_only=True) as onlooker:
        journal.append({"x": np.ones(1)})
        check_records(onlooker, 4)
        assert len(journal) == 5


def test_truncate(tmp_path):
    sizes = written(tmp_path / "a.journal")
    with Journal(tmp_path / "a.journal", "abc", total=9) as journal:
        journal.truncate(7)
        check_records(journal, 4)
        journal.truncate(2)
        check_records(journal, 2)
        assert (tmp_path / "a.journal").stat().st_size == sizes[2]
        journal.append(ARRAYS[2], NOTES[2])
        check_records(journal, 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, bytes, list[int]]:
    path = tmp_path_factory.mktemp("journal") / "a.journal"
    sizes = written(path)
    return path, path.read_bytes(), sizes


FILES = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def go_on(path: Path, n: int) -> None:
    """The first n records are there, for onlookers too, and the rest can be written again."""
    content = path.read_bytes()
    with Journal(path, "abc", total=9, read_only=True) as journal:
        check_records(journal, n)
    assert path.read_bytes() == content
    with Journal(path, "abc", total=9) as journal:
        check_records(journal, n)
        for arrays, note in list(zip(ARRAYS, NOTES, strict=True))[n:]:
            journal.append(arrays, note)
    with Journal(path, "abc", total=9) as journal:
        check_records(journal, 4)


@FILES
@given(st.data())
def test_cut_off_anywhere(whole, data):
    path, content, sizes = whole
    end = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:end])
    progress = progress_of(path.parent)
    assert progress is None if end < sizes[0] else progress == (sum(size <= end for size in sizes) - 1, 9)
    go_on(path, max(0, sum(size <= end for size in sizes) - 1))
    assert path.read_bytes() == content


@FILES
@given(st.data())
def test_bits_flipped_anywhere(whole, data):
    path, content, sizes = whole
    place = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(damaged))
    progress_of(path.parent)
    go_on(path, max(0, sum(size <= place for size in sizes) - 1))
    assert path.read_bytes() == content


@FILES
@given(st.data(), st.binary(min_size=1, max_size=60))
def test_overwritten_or_longer(whole, data, garbage):
    path, content, sizes = whole
    place = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:place] + garbage + content[place + len(garbage) :])
    good = max(0, sum(size <= place for size in sizes) - 1)
    progress_of(path.parent)
    with Journal(path, "abc", total=9) as journal:
        assert len(journal) >= good
        check_records(journal, len(journal))


def record(contents: object, data: bytes = b"", *, n_data: int | None = None) -> bytes:
    text = json.dumps(contents).encode()
    lengths = struct.pack("<IQ", len(text), len(data) if n_data is None else n_data)
    return b"SPKj" + lengths + struct.pack("<I", zlib.crc32(text + data, zlib.crc32(lengths))) + text + data


@pytest.mark.parametrize(
    "bad",
    [
        record({"arrays": [["x", "<f8", [2**60]]], "note": None}),
        record({"arrays": [["x", "<f8", [2**32, 2**32]]], "note": None}),
        record({"arrays": [["x", "<f8", [-1]], ["y", "<f8", [1]]], "note": None}),
        record({"arrays": [["x", "<f8", [1.0]]], "note": None}, bytes(8)),
        record({"arrays": [["x", "|O", [1]]], "note": None}, bytes(8)),
        record({"arrays": [["x", "|V8", [1]]], "note": None}, bytes(8)),
        record({"arrays": [["x", "<f3", [1]]], "note": None}, bytes(3)),
        record({"arrays": [[["x"], "<f8", [1]]], "note": None}, bytes(8)),
        record({"arrays": [["x", "<f8"]], "note": None}, bytes(8)),
        record({"arrays": []}),
        record({"arrays": [], "note": None}, bytes(1)),
        record([]),
        record({"arrays": [], "note": None}, n_data=2**63),
        b"SPKj" + struct.pack("<IQI", 2**32 - 1, 0, 0),
    ],
)
def test_hostile_records_are_cut_off(whole, bad):
    """Their checksums are right."""
    path, content, sizes = whole
    path.write_bytes(content[: sizes[2]] + bad + content[sizes[2] :])
    go_on(path, 2)


def test_deep_json(whole):
    path, content, sizes = whole
    text = b"[" * 200_000
    lengths = struct.pack("<IQ", len(text), 0)
    path.write_bytes(
        content[: sizes[1]] + b"SPKj" + lengths + struct.pack("<I", zlib.crc32(text, zlib.crc32(lengths))) + text
    )
    go_on(path, 1)


@pytest.mark.parametrize("head", [[], {}, {"fingerprint": 3}, {"fingerprint": "abc", "version": 99}])
def test_another_head(tmp_path, head):
    path = tmp_path / "a.journal"
    path.write_bytes(record(head) + record({"arrays": [], "note": None}))
    with Journal(path, "abc") as journal:
        assert len(journal) == 0
    path.write_bytes(record(head))
    assert progress_of(tmp_path) is None


def test_damage_while_it_is_open(tmp_path):
    path = tmp_path / "a.journal"
    sizes = written(path)
    with Journal(path, "abc", total=9) as journal:
        with path.open("r+b") as file:
            file.seek(sizes[1] - 1)
            file.write(b"\xff")
        with pytest.raises(DataError, match=r"a\.journal: record 0 was damaged"):
            journal.read(0)
        os.truncate(path, sizes[1] - 3)
        with pytest.raises(DataError, match=r"a\.journal: record 0"):
            journal.read(0)


def test_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "a.journal"
    real, left = os.pwrite, [150]

    def scarce(file: int, data: bytes, place: int) -> int:
        count = min(len(data), left[0])
        left[0] -= count
        if not count:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data[:count], place)

    with Journal(path, "abc", total=9) as journal:
        journal.append(ARRAYS[0], NOTES[0])
        before = path.read_bytes()
        monkeypatch.setattr(os, "pwrite", scarce)
        with pytest.raises(DataError, match=r"a\.journal: cannot be written: No space left.*free space"):
            journal.append({"x": np.ones(1000)})
        assert path.read_bytes() == before
        check_records(journal, 1)
        left[0] = 10_000
        journal.append(ARRAYS[1], NOTES[1])
        check_records(journal, 2)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """The system refuses to let files grow, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_space_in_earnest(tmp_path, undisturbed):
    path = tmp_path / "a.journal"
    with Journal(path, "abc", total=9) as journal:
        journal.append(ARRAYS[0], NOTES[0])
        with no_file_above(5000), pytest.raises(DataError, match=r"a\.journal: cannot be written: .*free space"):
            journal.append({"x": np.ones(1000)})
        check_records(journal, 1)
        journal.append(ARRAYS[1], NOTES[1])
    with Journal(path, "abc", total=9) as journal:
        check_records(journal, 2)
    with no_file_above(len(undisturbed) - 1), pytest.raises(DataError, match=r"a\.h5.*cannot be written: .*free space"):
        draft(tmp_path / "a.h5", tmp_path)
    assert not (tmp_path / "a.h5.draft").exists()
    with draft(tmp_path / "a.h5", tmp_path) as one, no_file_above(len(undisturbed) + 3000):
        fill(one)
        one.finish()
    assert (tmp_path / "a.h5").read_bytes() == undisturbed


def test_only_numbers(tmp_path):
    with Journal(tmp_path / "a.journal", "abc") as journal:
        for array in (np.array(["a"]), np.array([None]), np.zeros(2, "datetime64[s]")):
            with pytest.raises(TypeError, match="keeps numbers"):
                journal.append({"x": array})
        assert len(journal) == 0


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError):
        Journal(tmp_path / "file" / "a.journal", "abc")
    (tmp_path / "folder.journal").mkdir()
    with pytest.raises(DataError, match=r"folder\.journal: cannot be written"):
        Journal(tmp_path / "folder.journal", "abc")


# --- the map ---------------------------------------------------------------------------------------------------------


def pack(result):
    return {"x": result}, len(result)


def unpack(arrays, note):
    assert len(arrays["x"]) == note
    return arrays["x"]


def noted_square(number: int, *, seen: list[int]) -> np.ndarray:
    seen.append(number)
    return np.arange(number) ** 2.0


def squares(path: Path | None, seen: list[int], fingerprint: str = "abc", n: int = 7, **options):
    from functools import partial

    return resumed_map(
        partial(noted_square, seen=seen), range(n), journal=path, fingerprint=fingerprint,
        pack=options.pop("pack", pack), unpack=unpack, jobs=1, **options,
    )  # fmt: skip


@pytest.mark.parametrize("stop", range(8))
def test_map_goes_on_where_it_was_stopped(tmp_path, caplog, stop):
    path, seen = tmp_path / "a.journal", []
    running = squares(path, seen)
    for _ in range(stop):
        next(running)
    running.close()
    assert progress_of(tmp_path) == ((stop, 7) if stop else None)
    again: list[int] = []
    with caplog.at_level("INFO"):
        found = list(squares(path, again, description="squaring"))
    assert again == list(range(stop, 7))
    assert (f"squaring: {stop} of 7 chunks taken up" in caplog.text) == (stop > 0)
    for number, result in enumerate(found):
        np.testing.assert_array_equal(result, np.arange(number) ** 2.0)
    assert progress_of(tmp_path) == (7, 7)
    list(squares(path, again := [], fingerprint="other"))
    assert again == list(range(7))


def test_map_without_journal(tmp_path):
    assert [len(one) for one in squares(None, [])] == list(range(7))
    assert list(tmp_path.iterdir()) == []


def test_json_is_kept_as_it_is(tmp_path):
    seen: list[int] = []

    def described(number: int) -> dict[str, object]:
        seen.append(number)
        return {"name": f"ü{number}", "third": number / 3}

    options = {"journal": tmp_path / "a.journal", "fingerprint": "abc", "jobs": 1, "threads": True}
    first = list(resumed_map(described, range(5), **options))
    assert list(resumed_map(described, range(5), **options)) == first == list(map(described, range(5)))
    assert seen == [*range(5), *range(5)]


def test_results_that_are_not_kept(tmp_path):
    """Neither what cannot be kept nor what follows it: chunks stay in order."""
    path, seen = tmp_path / "a.journal", []
    assert len(list(squares(path, seen, pack=lambda one: None if len(one) == 3 else pack(one)))) == 7
    list(squares(path, again := []))
    assert again == [3, 4, 5, 6]


def test_failure_keeps_what_was_done(tmp_path):
    def fail(number: int) -> np.ndarray:
        if number == 4:
            raise DataError("bad item")
        return np.arange(number) ** 2.0

    path = tmp_path / "a.journal"
    with pytest.raises(DataError, match="bad item"):
        list(resumed_map(fail, range(7), journal=path, fingerprint="abc", pack=pack, unpack=unpack, jobs=1))
    list(squares(path, again := []))
    assert again == [4, 5, 6]


def test_progress_of_several(tmp_path):
    list(squares(tmp_path / "a.journal", []))
    next(squares(tmp_path / "b.journal", []))
    (tmp_path / "c.journal").write_bytes(b"damaged")
    assert progress_of(tmp_path) == (8, 14)
    assert progress_of(tmp_path / "nothing") is None


# --- drafts ----------------------------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
COUNTS = np.arange(50)
IDS = [f"m{number:03d}/ü" for number in range(50)]
BLOCKS = [(0, 7), (7, 7), (7, 20), (20, 49), (49, 50)]


def draft(path: Path, folder: Path | None, fingerprint: str = "abc", ids: list[str] = IDS) -> ArrayDraft:
    datasets = {"rows": (ROWS.shape, np.float32), "counts": (COUNTS.shape, np.int64)}
    return ArrayDraft(
        path, folder, fingerprint, datasets, {"ids": ids, "one": np.ones(3)}, {"fingerprint": fingerprint}, n_blocks=5
    )


def fill(one: ArrayDraft, stop: int = 5) -> list[int]:
    done = list(range(one.n_done, stop))
    for block in done:
        start, end = BLOCKS[block]
        assert one.n_rows == start
        one.write(block, start, {"rows": ROWS[start:end], "counts": COUNTS[start:end]})
    return done


def check_file(path: Path) -> None:
    found = read_arrays(path)
    assert set(found) == {"rows", "counts", "ids", "one"}
    np.testing.assert_array_equal(found["rows"], ROWS)
    np.testing.assert_array_equal(found["counts"], COUNTS)
    assert found["ids"].tolist() == IDS
    with h5py.File(path) as file:
        assert file.attrs["fingerprint"] == "abc"
        assert file["rows"].chunks is None
        assert (file["rows"].dtype, file["counts"].dtype) == (np.float32, np.int64)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("undisturbed") / "a.h5"
    with draft(path, path.parent / "partial") as one:
        fill(one)
        one.finish()
    check_file(path)
    return path.read_bytes()


@pytest.mark.parametrize("keep", [True, False])
def test_draft(tmp_path, undisturbed, keep):
    path = tmp_path / "deep" / "a.h5"
    folder = tmp_path / "partial" if keep else None
    with draft(path, folder) as one:
        fill(one, 3)
        assert not path.exists()
        np.testing.assert_array_equal(one.stored("rows"), ROWS[:20])
        fill(one)
        one.finish()
    assert path.read_bytes() == undisturbed
    assert [entry.name for entry in path.parent.iterdir()] == ["a.h5"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("stop", range(6))
def test_draft_goes_on_after_each_block(tmp_path, undisturbed, stop):
    path, folder = tmp_path / "a.h5", tmp_path / "partial"
    with draft(path, folder) as one:
        fill(one, stop)
    assert progress_of(folder) == (stop, 5)
    with draft(path, folder) as one:
        assert fill(one) == list(range(stop, 5))
        one.finish()
    assert path.read_bytes() == undisturbed


def test_draft_without_folder_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), draft(tmp_path / "a.h5", None) as one:  # noqa: PT012
        fill(one, 3)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"fingerprint": "other"}, {"ids": IDS[::-1]}])
def test_draft_of_something_else_is_begun_anew(tmp_path, change):
    with draft(tmp_path / "a.h5", tmp_path) as one:
        fill(one, 3)
    with draft(tmp_path / "a.h5", tmp_path, **change) as one:
        assert one.n_done == one.n_rows == 0


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bit_flipped_in_a_draft(tmp_path_factory, undisturbed, data):
    """Wherever it is, the file ends up as if nothing had happened."""
    folder = tmp_path_factory.mktemp("draft")
    with draft(folder / "a.h5", folder) as one:
        fill(one, 4)
    half = folder / "a.h5.draft"
    damaged = bytearray(half.read_bytes())
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    half.write_bytes(bytes(damaged))
    with draft(folder / "a.h5", folder) as one:
        fill(one)
        one.finish()
    assert (folder / "a.h5").read_bytes() == undisturbed


def test_the_block_with_the_flipped_bit_is_made_again(tmp_path, undisturbed):
    with draft(tmp_path / "a.h5", tmp_path) as one:
        fill(one)
    half = tmp_path / "a.h5.draft"
    content = half.read_bytes()
    place = content.index(ROWS[15].tobytes())
    half.write_bytes(content[:place] + b"\0\0\0\0" + content[place + 4 :])
    with draft(tmp_path / "a.h5", tmp_path) as one:
        assert (one.n_done, one.n_rows) == (2, 7)
        assert fill(one) == [2, 3, 4]
        one.finish()
    assert (tmp_path / "a.h5").read_bytes() == undisturbed


@pytest.mark.parametrize(
    "damage",
    [
        lambda draft, journal: draft.unlink(),
        lambda draft, journal: journal.unlink(),
        lambda draft, journal: os.truncate(draft, 3000),
        lambda draft, journal: os.truncate(draft, 0),
        lambda draft, journal: os.truncate(draft, draft.stat().st_size + 1),
        lambda draft, journal: os.truncate(journal, 100),
        lambda draft, journal: draft.write_bytes(bytes(draft.stat().st_size)),
    ],
)
def test_draft_or_journal_gone(tmp_path, undisturbed, damage):
    with draft(tmp_path / "a.h5", tmp_path) as one:
        fill(one, 4)
    damage(tmp_path / "a.h5.draft", tmp_path / "a.h5.journal")
    with draft(tmp_path / "a.h5", tmp_path) as one:
        assert one.n_done == one.n_rows == 0
        fill(one)
        one.finish()
    assert (tmp_path / "a.h5").read_bytes() == undisturbed


def test_killed_between_the_end_and_the_ledger(tmp_path, undisturbed):
    """The file was put in its place, but nobody wrote down that it is done."""
    path, folder = tmp_path / "a.h5", tmp_path / "partial"
    with draft(path, folder) as one:
        fill(one)
        one.finish()
    with draft(path, folder) as one:
        assert fill(one) == []
        one.finish()
    assert path.read_bytes() == undisturbed
    damaged = bytearray(undisturbed)
    damaged[undisturbed.index(ROWS[30].tobytes())] ^= 1
    path.write_bytes(bytes(damaged))
    with draft(path, folder) as one:
        assert fill(one) == [3, 4]
        one.finish()
    assert path.read_bytes() == undisturbed


def test_no_space_for_a_draft(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    for folder in (None, tmp_path / "partial"):
        with pytest.raises(DataError, match=r"a\.h5: cannot be written: No space left.*free space"):
            draft(tmp_path / "a.h5", folder)
    assert [path.name for path in tmp_path.rglob("*") if path.suffix != ".journal"] == ["partial"]


def test_another_disk(tmp_path, undisturbed, monkeypatch):
    real = Path.replace

    def far(self: Path, target: Path) -> Path:
        if self.suffix == ".draft" and target.suffix == ".h5":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", far)
    with draft(tmp_path / "a.h5", tmp_path / "partial") as one:
        fill(one)
        one.finish()
    assert (tmp_path / "a.h5").read_bytes() == undisturbed
    assert [path.name for path in (tmp_path / "partial").iterdir()] == ["a.h5.journal"]


def test_blocks_come_in_order(tmp_path):
    rows = {"rows": ROWS[:7], "counts": COUNTS[:7]}
    with draft(tmp_path / "a.h5", None) as one:
        for block, start, values in (
            (1, 0, rows),
            (0, 1, rows),
            (0, 0, {"rows": ROWS[:7]}),
            (0, 0, {**rows, "counts": COUNTS[:6]}),
            (0, 0, {**rows, "rows": ROWS[:7, :5]}),
        ):
            with pytest.raises(ValueError, match=r"follow|fit"):
                one.write(block, start, values)
        with pytest.raises(ValueError, match="0 of 50"):
            one.finish()
        one.write(0, 0, rows)
        with pytest.raises(ValueError, match="fit"):
            one.write(1, 7, {"rows": ROWS, "counts": COUNTS})


def test_draft_without_rows(tmp_path):
    with ArrayDraft(tmp_path / "a.h5", None, "abc", {"x": ((0, 4), np.float32)}) as one:
        one.finish()
    assert read_arrays(tmp_path / "a.h5")["x"].shape == (0, 4)


def test_other_content_by_a_function(tmp_path):
    def small(file: h5py.File) -> None:
        file["packed"] = np.arange(3)

    with ArrayDraft(tmp_path / "a.h5", None, "abc", {"x": ((2,), np.int8)}, small) as one:
        one.write(0, 0, {"x": np.array([1, 2])})
        one.finish()
    assert {name: values.tolist() for name, values in read_arrays(tmp_path / "a.h5").items()} == {
        "packed": [0, 1, 2],
        "x": [1, 2],
    }


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_partial import draft, fill, squares
folder = Path({folder!r})
for _ in squares(folder / "map.journal", [], n=40):
    print(flush=True); time.sleep(0.002)
with draft(folder / "a.h5", folder) as one:
    for stop in range(6):
        fill(one, stop); print(flush=True); time.sleep(0.002)
    one.finish()
"""


@pytest.mark.parametrize("lines", [1, 17, 40, 43])
def test_sigkill(tmp_path, undisturbed, lines):
    code = KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    for _ in range(lines):
        process.stdout.readline()
    time.sleep(0.001 * (lines % 3))
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = list(squares(tmp_path / "map.journal", again := [], n=40))
    assert again == list(range(40 - len(again), 40))
    assert len(again) <= 40 - min(lines, 40) + 1
    for number, result in enumerate(found):
        np.testing.assert_array_equal(result, np.arange(number) ** 2.0)
    with draft(tmp_path / "a.h5", tmp_path) as one:
        fill(one)
        one.finish()
    assert (tmp_path / "a.h5").read_bytes() == undisturbed


def test_big_records_are_checked_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(spkbase.runs.journal, "_READ", 100)
    values = np.random.default_rng(0).standard_normal(1000)
    for number in range(2):
        with Journal(tmp_path / "a.journal", "abc") as journal:
            assert len(journal) == number
            journal.append({"x": values})
            np.testing.assert_array_equal(journal.read(number)[0]["x"], values)


def test_progress_of_what_is_left_counts_what_its_items_hold(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("spkbase.work.maps._SECONDS_BETWEEN_LOG_LINES", 0.0)
    options = {"journal": tmp_path / "sums.journal", "fingerprint": "abc", "jobs": 1}
    first = resumed_map(sum, [[1, 2], [3, 4], [5]], description="", **options)
    assert next(first) == 3
    first.close()
    with caplog.at_level("INFO"):
        found = list(resumed_map(sum, [[1, 2], [3, 4], [5]], description="sums", sizes=[2, 2, 1], **options))
    assert found == [3, 7, 5]
    assert [record.getMessage().split(" after")[0] for record in caplog.records][-2:] == [
        "sums: 2 of 3",
        "sums: 3 of 3",
    ]
