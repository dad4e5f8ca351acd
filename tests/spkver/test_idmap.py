"""Maps of models to segments, and their files."""

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spkbase.errors import DataError
from spkver.idmap import IdMap
from spkver.sidekit.tables import read_idmap, write_idmap

IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=130)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=130
)
FRAMES = st.one_of(
    st.just((-1, -1)), st.tuples(st.integers(0, 300), st.integers(301, (1 << 31) - 1))
)


def idmaps(ids):
    rows = st.lists(
        st.tuples(ids, ids, FRAMES), min_size=1, max_size=8, unique_by=lambda row: row[:2]
    )
    return rows.map(_as_idmap)


def _as_idmap(rows):
    return IdMap(
        [m for m, _, _ in rows],
        [s for _, s, _ in rows],
        [f[0] for *_, f in rows],
        [f[1] for *_, f in rows],
    )


def test_columns_are_checked_and_segments_grouped():
    idmap = IdMap.from_pairs([("b", "s1"), ("a", "s2"), ("b", "s3"), ("c", "s1")])
    assert len(idmap) == 4
    assert idmap.models.dtype == idmap.segments.dtype == object
    assert idmap.unique_models().tolist() == ["b", "a", "c"]
    assert {model: rows.tolist() for model, rows in idmap.rows_of_models().items()} == {
        "b": [0, 2],
        "a": [1],
        "c": [3],
    }
    assert (idmap.start == -1).all()
    assert (idmap.stop == -1).all()
    assert idmap == IdMap(idmap.models, idmap.segments)
    assert idmap != IdMap(idmap.models, idmap.segments, stop=np.array([5, -1, -1, -1]))
    assert idmap != "another thing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (["a"], ["s", "t"]),
            "lists of different lengths: 1 models, 2 segments, 1 starts, 1 stops",
        ),
        ((["a", ""], ["s", "t"]), "models: row 1 should be an id, not ''"),
        ((["a"], ["s"], [5], [5]), r"row 0 \(a s\): empty part, frames 5 to 5"),
    ],
)
def test_wrong_columns_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        IdMap(*arguments)


# --- files -----------------------------------------------------------------------------------------------------------


@given(idmap=idmaps(IDS))
@settings(max_examples=40, deadline=None)
def test_hdf5_keeps_every_id(tmp_path_factory, idmap):
    path = tmp_path_factory.getbasetemp() / "idmap.h5"
    write_idmap(path, idmap)
    assert read_idmap(path) == idmap


@given(idmap=idmaps(WORDS))
@settings(max_examples=40, deadline=None)
def test_text_keeps_every_id_without_white_space(tmp_path_factory, idmap):
    path = tmp_path_factory.getbasetemp() / "idmap.txt"
    write_idmap(path, idmap)
    assert read_idmap(path) == idmap


def test_hdf5_files_have_the_layout_of_sidekit(tmp_path):
    write_idmap(tmp_path / "a.h5", IdMap(["m", "mm"], ["x/y", "z"], [-1, 5], [-1, 300]))
    with h5py.File(tmp_path / "a.h5") as file:
        assert sorted(file) == ["leftids", "rightids", "start", "stop"]
        assert all(
            data.compression == "gzip" and data.fletcher32 and data.maxshape == (None,)
            for data in file.values()
        )
        assert file["leftids"].dtype == "S2"
        assert file["rightids"][()].tolist() == [b"x/y", b"z"]
        assert file["start"].dtype == file["stop"].dtype == np.int32
        assert file["start"][()].tolist() == [-1, 5]
        assert file["stop"][()].tolist() == [-1, 300]


@pytest.mark.parametrize("name", ["enroll", "back", "test"])
def test_sidekit_files_are_read(shared, name):
    folder = shared / "golden/sidekit"
    expected = [
        line.split()[:2] for line in (folder / f"txt/idmap_{name}.txt").read_text().splitlines()
    ]
    for path in (folder / f"h5/idmap_{name}.h5", folder / f"txt/idmap_{name}.txt"):
        idmap = read_idmap(path)
        assert [list(row) for row in zip(idmap.models, idmap.segments, strict=True)] == expected
        assert (idmap.start == -1).all()
        assert (idmap.stop == -1).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no rows"),
        (
            b"m a\nm\n",
            r"a\.txt:2: expected 'model segment' or 'model segment start stop', found 'm'",
        ),
        (b"m a 1 x\n", r"a\.txt:1: expected"),
        (b"m a\nn b\n\nm a\n", r"a\.txt: m a for the second time, rows 0 and 2"),
        (b"m a\nm \xff\n", r"a\.txt:2: expected text in UTF-8"),
        (b"m\nn\n", r"2 problems:\n.*txt:1: expected.*\n.*txt:2: expected"),
    ],
)
def test_broken_text_is_refused(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_idmap(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.pop("rightids"), "expected 'rightids', found leftids, start, stop"),
        (
            lambda file: replace(file, "start", np.zeros(3, np.int32)),
            r"start should have the shape \(2,\), not \(3,\)",
        ),
        (
            lambda file: replace(file, "leftids", np.array([b"m", b"\xff"])),
            "leftids holds an id that is not UTF-8",
        ),
    ],
)
def test_broken_hdf5_is_refused(tmp_path, change, message):
    path = tmp_path / "a.h5"
    write_idmap(path, IdMap.from_pairs([("m", "a"), ("m", "b")]))
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(DataError, match=message) as caught:
        read_idmap(path)
    assert caught.value.file == path


def replace(file, name, values):
    del file[name]
    file[name] = values


def test_ids_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(DataError, match="id 'a b' holds white space"):
        write_idmap(tmp_path / "a.txt", IdMap.from_pairs([("a b", "s")]))
    with pytest.raises(DataError, match="holds a zero byte"):
        write_idmap(tmp_path / "a.h5", IdMap.from_pairs([("a\0", "s")]))
    with pytest.raises(DataError, match="cannot be written as UTF-8"):
        write_idmap(tmp_path / "a.h5", IdMap.from_pairs([("\ud800", "s")]))
    with pytest.raises(DataError, match="do not fit into 32 bits"):
        write_idmap(tmp_path / "a.h5", IdMap(["a"], ["s"], [0], [1 << 31]))
    assert not list(tmp_path.iterdir())
