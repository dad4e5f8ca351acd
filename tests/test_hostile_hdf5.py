"""HDF5 files that ask for more than to be read: other files, circles, sizes that nothing fills. One error each."""

from __future__ import annotations

import io
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from evaluation.embeddings.files import read_embeddings
from evaluation.formats.reading import read_scores, write_scores
from evaluation.trials.lists import Scores
from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.files.hdf5 import read_arrays, stored_array, stored_dataset, write_arrays
from spkbase.files.hdf5_guard import check_hdf5
from spkbase.files.hdf5_strings import read_text
from spkver.sidekit.stat_server import StatServer, read_stat_server, write_stat_server

Trick = Callable[[h5py.File], object]


def put(file: h5py.File, link: object) -> None:
    file["x"] = link


def external_storage(file: h5py.File) -> None:
    file.create_dataset("x", (8,), "u1", external=[("secret.txt", 0, 8)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    file.create_virtual_dataset("x", layout)


def circle(file: h5py.File) -> None:
    inner = file.create_group("a/b")
    inner["c"] = file["a"]


def many_pieces(file: h5py.File) -> None:
    file.create_dataset("x", (1 << 30,), "u1", chunks=(1,))


def plugin(file: h5py.File) -> None:
    kind = h5py.h5t.py_create(np.dtype("u1"), logical=True)
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((4,))
    plan.set_filter(32099, h5py.h5z.FLAG_OPTIONAL)
    h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((4,)), plan)


TRICKS: dict[str, tuple[Trick, str]] = {
    "external link": (lambda file: put(file, h5py.ExternalLink("other.h5", "/x")), "x is a link to elsewhere"),
    "soft link": (lambda file: put(file, h5py.SoftLink("/other/x")), "x is a link to elsewhere"),
    "external storage": (external_storage, "x lies in other files"),
    "virtual": (virtual, "x lies in other files"),
    "circle": (circle, "group a/b/c is linked twice, or to a group above it"),
    "deep": (lambda file: file.create_group("/".join("d" * 40)), "groups lie deeper than 32"),
    "unfilled": (lambda file: file.create_dataset("x", (1 << 40,), "f4", chunks=(1 << 20,)), "x claims more than"),
    "large piece": (lambda file: file.create_dataset("x", (4,), "f4", chunks=(1 << 29,), maxshape=(None,)), "x claims"),
    "contiguous": (lambda file: file.create_dataset("x", (1 << 40,), "f4"), "x claims more than the file can hold"),
    "many pieces": (many_pieces, "x claims more than the file can hold"),
    "plugin": (plugin, "x is packed in a way that is not read: filters .32099."),
}  # fmt: skip


def sound_files(folder: Path) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """A file of each kind that is read from elsewhere, and its reader."""
    write_scores(folder / "scores.h5", Scores.from_ids(["a", "b"], ["s", "t"], [1.0, 2.0]))
    parts = {"models": ["a"], "segments": ["s"], "stat0": np.ones((1, 2)), "stat1": np.ones((1, 4))}
    write_stat_server(folder / "stat.h5", StatServer(**parts))
    write_arrays(folder / "store.h5", {"ids": np.array(["a"], object), "values": np.ones((1, 2))})
    with h5py.File(folder / "vectors.h5", "w") as file:
        file["ids"], file["vectors"] = [b"a", b"b"], np.ones((2, 3))
    readers = {"scores": read_scores, "stat": read_stat_server, "store": read_arrays, "vectors": read_embeddings}
    return {name: (folder / f"{name}.h5", read) for name, read in readers.items()}


@pytest.mark.parametrize("trick", TRICKS)
def test_every_reader_refuses(tmp_path: Path, trick: str) -> None:
    play, message = TRICKS[trick]
    (tmp_path / "secret.txt").write_bytes(b"password")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.ones(4, "f4")
    for path, read in sound_files(tmp_path).values():
        read(path)
        with h5py.File(path, "a") as file:
            play(file)
        with pytest.raises(DataError, match=message) as caught:
            read(path)
        assert caught.value.file == path


def test_files_of_sidekit_pass(data: Path) -> None:
    files = sorted((data / "sidekit_files").glob("*.h5"))
    assert len(files) > 4
    for path in files:
        with h5py.File(path) as file:
            check_hdf5(file)


def test_a_large_packed_matrix_passes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (4000, 4000), "i1", compression="gzip", fletcher32=True, chunks=(40, 4000))[:, 7] = 1
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.id.get_filesize() < 100_000
        check_hdf5(file)


@pytest.mark.parametrize("kind", ["references", "nested arrays", "regions"])
def test_what_only_looks_like_text_is_none(tmp_path: Path, kind: str) -> None:
    path = sound_files(tmp_path)["scores"][0]
    dtypes = {"references": h5py.ref_dtype, "regions": h5py.regionref_dtype, "nested arrays": h5py.vlen_dtype("i4")}
    with h5py.File(path, "a") as file:
        del file["modelset"]
        file.create_dataset("modelset", (2,), dtypes[kind])
    with pytest.raises(DataError, match="expected modelset to be a column of strings"):
        read_scores(path)


def test_one_long_string_for_many_rows_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        ids = file.create_dataset("ids", (1000,), h5py.string_dtype())
        ids[0] = "y" * 50_000
        place = ids.id.get_offset()
    raw = bytearray((tmp_path / "x.h5").read_bytes())
    raw[place : place + 16000] = raw[place : place + 16] * 1000  # all rows refer to the first
    (tmp_path / "x.h5").write_bytes(raw)
    with h5py.File(tmp_path / "x.h5") as file:
        assert len(file["ids"][999]) == 50_000
        with pytest.raises(DataError, match="ids holds strings that are longer together than the file"):
            read_text(file["ids"])


CRASHES = """
import faulthandler, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from spkbase.errors import DataError
from spkver.sidekit import read_idmap
try:
    read_idmap(sys.argv[1])
except DataError as error:
    print(error)
"""


def test_a_size_that_the_library_dies_of_is_an_error(tmp_path: Path, data: Path) -> None:
    """A piece with a checksum and a length of 0: HDF5 2.0 reads four bytes before the memory that it took for it."""
    source, path = data / "sidekit_files" / "idmap_enroll.h5", tmp_path / "x.h5"
    with h5py.File(source) as file:
        length = file["start"].id.get_chunk_info(0).size
        key = length.to_bytes(4, "little") + bytes(4) + bytes(16)  # its length, mask and place in the dataset
    raw = source.read_bytes()
    assert raw.count(key) >= 1
    path.write_bytes(raw.replace(key, bytes(4) + key[4:]))
    done = subprocess.run([sys.executable, "-c", CRASHES, str(path)], capture_output=True, text=True)
    assert done.returncode == 0
    assert "has a piece of 0 bytes" in done.stdout


def test_nothing_is_taken_for_what_is_refused(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path, read in sound_files(tmp_path).values():
        with h5py.File(path, "a") as file:
            file.create_dataset("more", (1 << 34,), "f8", chunks=(1 << 16,), compression="gzip")
        shutil.copy(path, tmp_path / "copy.h5")
        with pytest.raises(DataError, match="more claims more"):
            read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_more_than_the_memory_is_refused_before_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = np.zeros((1000, 2500), np.float32)
    with h5py.File(tmp_path / "stat.h5", "w") as file:
        file["modelset"] = file["segset"] = np.full(1000, b"a", "S1")
        file.create_dataset("stat0", data=zeros, compression="gzip")
    with h5py.File(tmp_path / "vectors.h5", "w") as file:
        file["ids"] = np.full(1000, b"a", "S1")
        file.create_dataset("vectors", data=zeros, compression="gzip")
    np.savez_compressed(tmp_path / "vectors.npz", ids=np.full(1000, "a"), vectors=zeros)
    monkeypatch.setattr("spkbase.files.hdf5_guard.memory_size", lambda: 5_000_000)
    for name, read in {
        "stat.h5": read_stat_server,
        "vectors.h5": read_embeddings,
        "vectors.npz": read_embeddings,
    }.items():
        with pytest.raises(DataError, match=r"takes 0\.0 GB, this machine has 0\.0 GB") as caught:
            read(tmp_path / name)
        assert caught.value.file == tmp_path / name
    with pytest.raises(DataError, match="stat0 takes"):
        read_arrays(tmp_path / "stat.h5")


PACKINGS: dict[str, dict[str, object]] = {
    "contiguous": {},
    "in pieces": {"chunks": (3,)},
    "packed": {"chunks": (3,), "compression": "gzip", "shuffle": True},
    "hardly packed": {"chunks": (4,), "compression": 1},
}


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("packing", PACKINGS)
def test_strings_of_any_packing_are_read(tmp_path: Path, packing: str, in_memory: bool) -> None:
    ids = ["a", "é" * 40, "", "segment-4", "x" * 3000, "b", "c"]
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("ids", data=ids, dtype=h5py.string_dtype(), **PACKINGS[packing])
        file.create_dataset("none", (4,), h5py.string_dtype(), **PACKINGS[packing])
    with h5py.File(io.BytesIO(path.read_bytes()) if in_memory else path) as file:
        check_hdf5(file)
        assert file["ids"].asstr()[()].tolist() == ids  # as the library reads it
        assert read_text(file["ids"]).tolist() == ids
        assert read_text(file["none"]).tolist() == [""] * 4


@pytest.mark.parametrize("packing", ["contiguous", "in pieces"])
def test_a_length_that_nothing_fills_takes_no_memory(tmp_path: Path, packing: str) -> None:
    """HDF5 2.0 takes and fills as much memory as the length of a string says before it looks for it."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        ids = file.create_dataset("ids", data=["a", "b", "c"], dtype=h5py.string_dtype(), **PACKINGS[packing])
        place = ids.id.get_offset() if ids.chunks is None else ids.id.get_chunk_info(0).byte_offset
    raw = bytearray(path.read_bytes())
    raw[place : place + 4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(raw)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="ids holds strings that are longer together than the file"):
        read_arrays(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


@pytest.mark.parametrize("change", ["length 0", "endless length", "no heap", "other number", "other place"])
def test_a_damaged_heap_of_strings_is_an_error_at_once(tmp_path: Path, change: str) -> None:
    """In a heap with an object of length 0 HDF5 2.0 looks for the next one for ever."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        ids = file.create_dataset("ids", data=["first", "second"], dtype=h5py.string_dtype())
        rows = ids.id.get_offset()
    raw = bytearray(path.read_bytes())
    heap = raw.index(b"GCOL")
    place, value = {
        "length 0": (heap + 16 + 8, 0),
        "endless length": (heap + 16 + 8, (1 << 64) - 1),
        "no heap": (heap, 0),
        "other number": (rows + 12, 77),
        "other place": (rows + 4, 1 << 40),
    }[change]
    width = 4 if change == "other number" else 8
    raw[place : place + width] = value.to_bytes(width, "little")
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"ids names a (string that is not there|heap that is none)"):
        read_arrays(path)


def test_strings_behind_a_user_block(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file.create_dataset("ids", data=["first", "second"], dtype=h5py.string_dtype())
        file.create_dataset("more", data=["1", "2", "3"], dtype=h5py.string_dtype(), chunks=(2,))
    assert read_arrays(tmp_path / "x.h5")["ids"].tolist() == ["first", "second"]
    assert read_arrays(tmp_path / "x.h5")["more"].tolist() == ["1", "2", "3"]


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_strings_of_every_version_of_the_format(tmp_path: Path, version: str) -> None:
    ids = [f"id{number}" for number in range(5000)]  # in several heaps
    with h5py.File(tmp_path / "x.h5", "w", libver=version) as file:
        file.create_dataset("ids", data=ids, dtype=h5py.string_dtype(), chunks=(700,), maxshape=(None,))
    assert read_arrays(tmp_path / "x.h5")["ids"].tolist() == ids


def test_numbers_of_another_form_are_not_mapped(tmp_path: Path) -> None:
    """The library converts them; as they lie in the file they are other numbers."""
    values = np.random.default_rng(0).normal(size=(3, 4))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["ids"] = [b"a", b"b", b"c"]
        kind = h5py.h5t.IEEE_F64LE.copy()
        kind.set_fields(63, 52, 11, 0, 49)  # a mantissa of 49 bits
        h5py.h5d.create(file.id, b"vectors", kind, h5py.h5s.create_simple((3, 4))).write(
            h5py.h5s.ALL, h5py.h5s.ALL, values
        )
    with h5py.File(tmp_path / "x.h5") as file:
        expected = file["vectors"][()]
        assert file["vectors"].dtype == np.float64
        assert stored_dataset(file["vectors"], tmp_path / "x.h5") is None
        assert stored_dataset(file.get("ids"), tmp_path / "x.h5") is None
    for above in (0, 1 << 20):
        assert np.array_equal(read_embeddings(tmp_path / "x.h5", map_above=above).vectors, expected)
    assert np.array_equal(np.asarray(stored_array(tmp_path / "x.h5", "vectors")), expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "i8", "?", "u1"])
def test_usual_numbers_stay_in_their_file(tmp_path: Path, dtype: str) -> None:
    write_arrays(tmp_path / "x.h5", {"x": np.ones((3, 2), dtype)})
    assert isinstance(stored_array(tmp_path / "x.h5", "x"), StoredArray)
