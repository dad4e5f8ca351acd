"""HDF5 files: arrays come back, files are whole or absent, and nothing outside of a file is read."""

import errno
import io
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from evaluation.embeddings import read_embeddings
from evaluation.formats import read_scores
from spkbase import hdf5
from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.files import file_digest
from spkbase.hdf5 import new_file, open_file, read_arrays, stored_array, write_arrays
from spkver.backend import read_vbx_transform
from spkver.sidekit import read_feature_file, read_mixture, read_stat_server


def test_written_arrays_are_read_back(tmp_path):
    path = tmp_path / "deep" / "a.h5"
    ids = ["m001/ü", "a" * 300, "", "日本語"]
    arrays = {
        "float32": np.float32([[1, np.nan], [np.inf, -0.0]]),
        "float64": np.array(np.pi),
        "ints": np.array([], np.int64),
        "bools": np.array([True, False]),
        "ids": np.array(ids, object),
        "list": ids,
        "none": [],
    }
    write_arrays(path, arrays, attributes={"fingerprint": "abc", "n": 3})
    found = read_arrays(path)
    assert set(found) == set(arrays)
    for name in ("float32", "float64", "ints", "bools"):
        np.testing.assert_array_equal(found[name], arrays[name])
        assert found[name].dtype == arrays[name].dtype
    assert found["ids"].tolist() == found["list"].tolist() == ids
    assert found["none"].tolist() == []
    assert list(read_arrays(path, "ids")) == ["ids"]
    with open_file(path) as file:
        assert (file.attrs["fingerprint"], file.attrs["n"]) == ("abc", 3)


def test_equal_contents_give_equal_bytes(tmp_path):
    for name in ("a.h5", "b.h5"):
        write_arrays(
            tmp_path / name,
            {"x": np.arange(5), "ids": ["a", "b"]},
            attributes={"fingerprint": "abc"},
        )
    assert file_digest(tmp_path / "a.h5") == file_digest(tmp_path / "b.h5")


class _FullDisk(io.FileIO):
    """A file that can be written as far as there is room."""

    room = 0

    def write(self, data):
        if len(data) > _FullDisk.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _FullDisk.room -= len(data)
        return super().write(data)


@pytest.mark.parametrize("room", [100, 50_000])
def test_a_full_disk_is_one_error(tmp_path, monkeypatch, room):
    """The library itself would raise one thing or another, keep the file open, and crash at the end."""
    import spkbase.hdf5

    late = spkbase.hdf5._LateErrors
    monkeypatch.setattr(_FullDisk, "room", room)
    # between the class and io.FileIO, whose writes it notes
    monkeypatch.setattr(spkbase.hdf5, "_LateErrors", type("Late", (late, _FullDisk), {}))
    path = tmp_path / "a.h5"
    path.write_text("old")
    with (  # noqa: PT012
        pytest.raises(DataError, match=r"a\.h5: cannot be written: No space left"),
        new_file(path) as file,
    ):
        file.create_dataset("big", data=np.arange(20_000.0))
        file.create_dataset("packed", data=np.arange(20_000.0), compression="gzip", chunks=(500,))
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.h5"]


def test_a_stored_array_reads_its_rows_from_the_file(tmp_path):
    path = tmp_path / "a.h5"
    values = np.random.default_rng(0).standard_normal((1000, 7)).astype(np.float32)
    write_arrays(
        path,
        {"first": np.arange(3), "values": values, "empty": np.empty((0, 7)), "flags": values > 0},
    )
    found = stored_array(path, "values")
    assert isinstance(found, StoredArray)
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(found[[5, 3], 2:4], values[[5, 3], 2:4])
    np.testing.assert_array_equal(stored_array(path, "flags"), values > 0)
    assert stored_array(path, "empty").shape == (0, 7)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"no HDF5 at all"),
        lambda path: path.write_bytes(path.read_bytes()[:700]),
        lambda path: path.write_bytes(bytes(600) + path.read_bytes()[600:]),
    ],
)
@pytest.mark.parametrize("read", [read_arrays, lambda path: stored_array(path, "x")])
def test_damaged_files_raise_an_error_with_their_name(tmp_path, damage, read):
    path = tmp_path / "a.h5"
    write_arrays(path, {"x": np.arange(1000.0)})
    damage(path)
    with pytest.raises(DataError, match=r"a\.h5: "):
        read(path)


# --- files that refer to other files ---------------------------------------------------------------------------------

SECRET = 4242.0


def external_link(file, name, other):
    file[name] = h5py.ExternalLink(other.name, f"/{name}")


def absolute_link(file, name, other):
    file[name] = h5py.ExternalLink(str(other.absolute()), f"/{name}")


def soft_link_to_it(file, name, other):
    file["hidden/deep"] = h5py.ExternalLink(other.name, f"/{name}")
    file[name] = h5py.SoftLink("/hidden/deep")


def group_of_the_other(file, name, other):
    file["group"] = h5py.ExternalLink(other.name, "/")
    file[name] = h5py.SoftLink(f"/group/{name}")


def external_dataset(file, name, other):
    with h5py.File(other) as secret:
        dataset = secret[name]
        offset, shape, dtype = dataset.id.get_offset(), dataset.shape, dataset.dtype
    size = int(np.prod(shape)) * dtype.itemsize
    file.create_dataset(name, shape, dtype, external=[(str(other.absolute()), offset, size)])


def virtual_dataset(file, name, other):
    with h5py.File(other) as secret:
        shape, dtype = secret[name].shape, secret[name].dtype
    layout = h5py.VirtualLayout(shape, dtype)
    layout[:] = h5py.VirtualSource(other.name, name, shape)
    file.create_virtual_dataset(name, layout)


WAYS = [
    external_link,
    absolute_link,
    soft_link_to_it,
    group_of_the_other,
    external_dataset,
    virtual_dataset,
]


def vectors_of(path):
    return read_embeddings(path).vectors


def statistics_of(path):
    return read_stat_server(path).stat1


def arrays_of(path):
    return read_arrays(path)["vectors"]


def stored_of(path):
    return np.asarray(stored_array(path, "vectors"))


def scores_of(path):
    return read_scores(path).values


def transform_of(path):
    return read_vbx_transform(path).lda


def features_of(path):
    return read_feature_file(path)["show"].cep


def mixture_of(path):
    return read_mixture(path).means


IDS = np.array([b"u1", b"u2"])
PLAIN = {"vectors": np.full((2, 3), SECRET), "ids": IDS, "speakers": IDS}
READERS = [
    (vectors_of, PLAIN, ["vectors", "ids"]),
    (vectors_of, {"u1": np.full(3, SECRET), "u2": np.full(3, 1.0)}, ["u1"]),
    (arrays_of, PLAIN, ["vectors"]),
    (stored_of, PLAIN, ["vectors"]),
    (
        statistics_of,
        {
            "modelset": IDS,
            "segset": IDS,
            "stat0": np.ones((2, 1), "f4"),
            "stat1": np.full((2, 3), SECRET, "f4"),
        },
        ["stat1", "modelset"],
    ),
    (
        scores_of,
        {
            "modelset": IDS,
            "segset": IDS,
            "score_mask": np.ones((2, 2), "i1"),
            "scores": np.full((2, 2), SECRET),
        },
        ["scores", "segset"],
    ),
    (
        transform_of,
        {"mean1": np.ones(3), "mean2": np.ones(2), "lda": np.full((3, 2), SECRET)},
        ["lda"],
    ),
    (
        features_of,
        {"show/cep": np.full((4, 3), SECRET, "f4"), "show/vad": np.ones(4, "i1")},
        ["show/cep", "show/vad"],
    ),
    (
        mixture_of,
        {
            "w": np.ones(1),
            "mu": np.full((1, 2), SECRET),
            "invcov": np.ones((1, 2)),
            "cov_var_ctl": np.ones((1, 2)),
        },
        ["mu", "w"],
    ),
]
CASES = [(read, arrays, name) for read, arrays, names in READERS for name in names]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("read", "arrays", "name"), CASES, ids=[f"{case[0].__name__} {case[2]}" for case in CASES]
)
def test_links_to_other_files_are_never_followed(tmp_path, monkeypatch, way, read, arrays, name):
    monkeypatch.chdir(tmp_path)
    with h5py.File("secret.h5", "w") as file:
        for other, values in arrays.items():
            file[other] = values
    assert SECRET in read(Path("secret.h5"))
    with h5py.File("given.h5", "w") as file:
        for other, values in arrays.items():
            if other != name:
                file[other] = values
        way(file, name, Path("secret.h5"))
    with pytest.raises(
        DataError, match=r"(is a link to another file|refers to other files).*write all arrays"
    ):
        read(Path("given.h5"))


def test_links_within_a_file_are_followed_and_cycles_end(tmp_path):
    path = tmp_path / "e.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["data"] = np.full((2, 3), 1.0)
        file["vectors"] = h5py.SoftLink("/data")
        file["group/self"] = file["/"]
    assert read_arrays(path, "vectors")["vectors"].tolist() == [[1.0] * 3] * 2
    for name, target in (
        ("round", "/round"),
        ("one", "/two"),
        ("two", "/one"),
        ("up", "/group/../data"),
    ):
        with h5py.File(path, "a") as file:
            file[name] = h5py.SoftLink(target)
        with pytest.raises(DataError, match="cannot be read as HDF5"):
            read_arrays(path, name)


def test_a_file_is_checked_once_until_it_changes(tmp_path, monkeypatch):
    walked = []
    monkeypatch.setattr(
        hdf5, "_check_links", lambda file, check=hdf5._check_links: (walked.append(1), check(file))
    )
    path = tmp_path / "e.h5"
    write_arrays(path, {"x": np.zeros(3)})
    for _ in range(3):
        read_arrays(path)
    assert len(walked) == 1
    with h5py.File(path, "a") as file:
        file["other"] = h5py.ExternalLink("secret.h5", "/x")
    for _ in range(2):
        with pytest.raises(DataError, match="is a link to another file"):
            read_arrays(path)
    assert len(walked) == 3
