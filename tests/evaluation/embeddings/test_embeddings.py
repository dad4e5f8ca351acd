"""Files of embeddings: every format gives the same; mapping; and what is broken, foreign or hostile."""

import struct

import h5py
import numpy as np
import pandas
import pytest

from evaluation.embeddings import (
    Embeddings,
    read_binary,
    read_embeddings,
    read_text_matrix,
    write_embeddings,
)
from spkbase.errors import DataError

IDS = ["u1", "u2", "\u00fc3"]
SPEAKERS = ["anna", "bert", "anna"]
VECTORS = np.array([[1.0, 2.0, -3.0], [0.5, 0.25, 8.0], [1e-3, 4.0, 0.0]], np.float32)
FOUND = Embeddings(np.array(IDS, object), np.array(SPEAKERS, object), VECTORS)


def same(found, *, dtype=np.float32):
    assert found.ids.tolist() == IDS
    assert found.speakers.tolist() == SPEAKERS
    assert found.vectors.dtype == dtype
    assert found.vectors.tolist() == VECTORS.astype(dtype).tolist()


def write_folder(path, **columns):
    path.mkdir()
    for name, column in columns.items():
        np.save(path / f"{name}.npy", column)
    return path


def binary_ark(path, *, ids=IDS):
    """An archive as Kaldi writes it: id, blank, zero byte, B, FV, blank, 4, length, floats; where each begins."""
    raw, places = b"", []
    for one, vector in zip(ids, VECTORS, strict=True):
        raw += one.encode() + b" "
        places.append(len(raw))
        raw += b"\0BFV \4" + struct.pack("<i", len(vector)) + vector.astype("<f4").tobytes()
    path.write_bytes(raw)
    return places


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["e.npz", "e.h5", "e.hdf5"])
@pytest.mark.parametrize("map_above", [0, 1 << 26])
def test_written_embeddings_are_read_back(tmp_path, name, dtype, map_above):
    vectors = VECTORS.astype(dtype)
    write_embeddings(tmp_path / name, Embeddings(FOUND.ids, FOUND.speakers, vectors))
    found = read_embeddings(tmp_path / name, map_above=map_above)
    assert found.vectors.tolist() == vectors.tolist()
    assert (found.ids.tolist(), found.speakers.tolist()) == (IDS, SPEAKERS)
    assert isinstance(found.vectors, np.memmap) == (map_above == 0 and name != "e.npz")


@pytest.mark.parametrize("map_above", [0, 1 << 26])
def test_folders_of_npy_are_mapped_and_packed_files_are_copied(tmp_path, map_above):
    columns = {"ids": np.array(IDS), "speakers": np.array(SPEAKERS), "vectors": VECTORS}
    found = read_embeddings(write_folder(tmp_path / "e", **columns), map_above=map_above)
    same(found)
    assert isinstance(found.vectors, np.memmap) == (map_above == 0)
    np.savez_compressed(tmp_path / "e.npz", **columns)
    same(read_embeddings(tmp_path / "e.npz", map_above=map_above))
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file.create_dataset("ids", data=IDS, dtype=h5py.string_dtype())
        file.create_dataset("speakers", data=SPEAKERS, dtype=h5py.string_dtype())
        file.create_dataset("vectors", data=VECTORS, chunks=(1, 3), compression="gzip")
    same(read_embeddings(tmp_path / "e.h5", map_above=map_above))


def test_speakers_come_from_a_given_map_a_map_in_the_folder_or_the_ids(tmp_path):
    binary_ark(tmp_path / "e.ark")
    alone = read_embeddings(tmp_path / "e.ark")
    assert alone.speakers.tolist() == IDS
    assert alone.notes == ("e.ark has no speakers: each id counts as one",)
    assert not alone.has_speakers
    (tmp_path / "utt2spk").write_text(
        "".join(f"{one} {two}\n" for one, two in zip(IDS, SPEAKERS, strict=True))
    )
    same(read_embeddings(tmp_path / "e.ark"))
    (tmp_path / "other").write_text("u1 x\nu2 x\n\u00fc3 y\n")
    assert read_embeddings(tmp_path / "e.ark", speakers=tmp_path / "other").speakers.tolist() == [
        "x",
        "x",
        "y",
    ]
    (tmp_path / "other").write_text("u2 x\n")
    with pytest.raises(
        DataError, match=r"2 of 3 utterances of .*e\.ark without a speaker: u1, \u00fc3"
    ):
        read_embeddings(tmp_path / "e.ark", speakers=tmp_path / "other")


# Kaldi


def test_scp_finds_archives_and_keeps_its_order(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    places = binary_ark(folder / "e.ark")
    order = [2, 0, 1]
    for name in (str(folder / "e.ark"), "e.ark", "data/e.ark", "far/away/e.ark"):
        (folder / "e.scp").write_text(
            "".join(f"{IDS[row]} {name}:{places[row]}\n" for row in order)
        )
        monkeypatch.chdir(tmp_path)
        found = read_embeddings(folder / "e.scp")
        assert found.ids.tolist() == [IDS[row] for row in order]
        assert found.vectors.tolist() == VECTORS[order].tolist()


def test_all_bad_lines_of_an_scp_are_named_and_no_command_runs(tmp_path):
    places, flag = binary_ark(tmp_path / "e.ark"), tmp_path / "ran"
    lines = {
        f"u1 e.ark:{places[0]}": None,
        f"u2 touch {flag} |": "is a command, standard input or a range, which are never read: 'touch",
        f"u3 | touch {flag}": "is a command",
        "u4 -": "is a command, standard input",
        "u5 e.ark:3[0:2]": "is a command, standard input or a range",
        "u6": "expected 'id archive:offset', got 'u6 '",
        "u7 none.ark:3": "there is no archive 'none.ark' (tried it as given, in",
        "u8 none.ark:9": None,
    }
    (tmp_path / "e.scp").write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        read_embeddings(tmp_path / "e.scp")
    wrong = [
        f"e.scp:{number}: {text}"
        for number, text in enumerate(lines.values(), 1)
        if text is not None
    ]
    assert str(caught.value).startswith(f"{len(wrong)} problems:")
    for line, part in zip(str(caught.value).splitlines()[1:], wrong, strict=True):
        assert part in line
    assert not flag.exists()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"NPY\x04", "expected numbers between brackets"),
        (b"", "it begins with b''"),
        (b"\0B\4xxxx", "it has the kind"),
        (b"[ 1 2", "expected numbers between brackets"),
        (b"[ 1 2 ] u2 [ 3 4 ]\n", "the line does not end after"),
        (b"[\n 1 2\n 3 ]\n", "its rows differ in length"),
        (b"[\n 1 2\n 3 4 ]\n", r"got float32 of shape \(2, 2\)"),
        (b"[ 1 x ]\n", "could not convert string to float"),
        (b"\0BFX \4\1\0\0\0", "it has the kind b'FX'"),
        (b"\0BFV \10\1\0\0\0\0\0\0\0", "a size of 8 bytes, expected 4"),
        (b"\0BFV \4\2\0\0\0\0\0\0\0", "it is cut short"),
        (b"\0BCM3 \0\0\0\0", "requires a buffer"),
    ],
)
def test_malformed_kaldi_vectors_are_refused(tmp_path, raw, message):
    (tmp_path / "e.ark").write_bytes(b"u1 " + raw)
    (tmp_path / "e.scp").write_text("u1 e.ark:3\n")
    for name, line in (("e.ark", ""), ("e.scp", ":1")):
        with pytest.raises(
            DataError, match=rf"{name}{line}: expected a vector of (Kaldi|floats) for .*{message}"
        ):
            read_embeddings(tmp_path / name)


def test_a_pickle_inside_an_archive_is_never_loaded(tmp_path):
    """kaldiio would unpickle what stands behind the letters PKL."""
    (tmp_path / "e.ark").write_bytes(f"u1 PKLcos\nsystem\n(S'touch {tmp_path}/ran'\ntR.".encode())
    for name, text in (("e.ark", None), ("e.scp", f"u1 {tmp_path / 'e.ark'}:3\n")):
        if text:
            (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match="expected a vector of Kaldi for"):
            read_embeddings(tmp_path / name)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("method", [None, 1, 2, 3, 5, 7])
@pytest.mark.parametrize("shape", [(12, 5), (1, 7), (3, 1), (7,)])
def test_archives_are_read_as_by_kaldiio(tmp_path, shape, method):
    """Every kind of array, to the bit; the bytes are written and read by another's code."""
    kaldiio = pytest.importorskip("kaldiio")
    path, rng = tmp_path / "e.ark", np.random.default_rng(len(shape))
    for dtype in (np.float32, np.float64):
        array = rng.uniform(0, 1, shape).astype(dtype)
        packed = {"compression_method": method} if method and array.ndim == 2 else {}
        kaldiio.save_ark(str(path), {"u1": array}, **packed)
        found, end = read_binary(path.read_bytes(), len("u1 "))
        assert end == path.stat().st_size
        expected = dict(kaldiio.load_ark(str(path)))["u1"]
        assert found.dtype == expected.dtype == (np.float32 if packed else dtype)
        assert found.tolist() == expected.tolist()
        assert found.shape == shape
        kaldiio.save_ark(str(path), {"u1": array}, text=True)
        found, _ = read_text_matrix(path.read_bytes(), len("u1 "))
        assert found.tolist() == dict(kaldiio.load_ark(str(path)))["u1"].tolist()


def test_compressed_matrices_equal_hand_computed_values(tmp_path):
    """Least -1, range 2; quantiles at 0, 1/5, 3/5 and 1 of it, so codes 0, 64, 192 and 255 are -1, -0.6, 0.2 and 1."""
    head = struct.pack("<ffii", -1.0, 2.0, 1, 4)
    quantiles = struct.pack("<4H", 0, 13107, 39321, 65535) * 4
    packed = b"a \0BCM " + head + quantiles + bytes([0, 64, 192, 255])
    packed += b"b \0BCM " + head + quantiles + bytes([32, 128, 208, 224])
    packed += (
        b"c \0BCM2 "
        + head
        + struct.pack("<4H", 0, 13107, 39321, 65535)
        + b"d \0BCM3 "
        + head
        + b"\0\x33\x99\xff"
    )
    (tmp_path / "e.ark").write_bytes(packed)
    expected = [
        [-1, -0.6, 0.2, 1],
        [-0.8, -0.2, 0.2 + 0.8 * 16 / 63, 0.2 + 0.8 * 32 / 63],
        *[[-1, -0.6, 0.2, 1]] * 2,
    ]
    np.testing.assert_allclose(read_embeddings(tmp_path / "e.ark").vectors, expected, atol=1e-6)


@pytest.mark.golden
def test_real_kaldi_vectors_are_read(shared):
    """1,025 x-vectors that Kaldi wrote, of which the first was read by hand."""
    kaldiio = pytest.importorskip("kaldiio")
    path = shared / "formats" / "kaldi_plda" / "ES2005a.ark"
    found = read_embeddings(path)
    assert found.vectors.shape == (1025, 256)
    for (name, expected), own, vector in zip(
        kaldiio.load_ark(str(path)), found.ids, found.vectors, strict=True
    ):
        assert (name, expected.tolist()) == (own, vector.tolist())


@pytest.mark.golden
def test_speaker_means_of_real_x_vectors_equal_the_published_ones(shared, tmp_path):
    """The archives of a challenge's enrolment: the mean of 18 utterances is their speaker's x-vector."""
    folder = shared / "formats" / "vpc2020_kaldi_dir"
    speakers = read_embeddings(folder / "enrolls_spk_xvector.ark")
    utterances = read_embeddings(
        folder / "enrolls_xvector.1.ark", speakers=folder / "enrolls_utt2spk"
    )
    assert (len(speakers), len(utterances), utterances.vectors.shape[1]) == (29, 18, 512)
    assert set(utterances.speakers.tolist()) == {"1089"}
    own = speakers.vectors[speakers.ids.tolist().index("1089")]
    assert utterances.vectors.mean(axis=0) == pytest.approx(own, abs=1e-4)
    # the scp names the position of each in the archive, with the archive's original path
    scp = (folder / "enrolls_xvector.1.scp").read_text()
    (tmp_path / "e.scp").write_text(scp.replace("xvector.1.ark", "enrolls_xvector.1.ark"))
    (tmp_path / "enrolls_xvector.1.ark").symlink_to(folder / "enrolls_xvector.1.ark")
    listed = read_embeddings(tmp_path / "e.scp", speakers=folder / "enrolls_utt2spk")
    assert listed.ids.tolist() == utterances.ids.tolist()
    assert (listed.vectors == utterances.vectors).all()


# other bad files


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ids": IDS, "speakers": SPEAKERS}, "instead of vectors there is"),
        ({"vectors": VECTORS}, "there are no ids"),
        (
            {"ids": IDS, "vectors": VECTORS.astype(int)},
            "expected vectors (n, D) of floats, got int64 of shape (3, 3)",
        ),
        (
            {"ids": IDS, "vectors": VECTORS[0]},
            "expected vectors (n, D) of floats, got float32 of shape (3,)",
        ),
        (
            {"ids": [1.0, 2.0, 3.0], "vectors": VECTORS},
            "ids of text or whole numbers, got float64 of shape (3,)",
        ),
        (
            {"ids": [True, False, True], "vectors": VECTORS},
            "expected ids of text or whole numbers, got bool",
        ),
        ({"ids": IDS[:2], "vectors": VECTORS}, "expected ids for 3 vectors, got shape (2,)"),
        ({"ids": ["a", "b", "a"], "vectors": VECTORS}, "ids of utterances: 'a' is repeated"),
        (
            {"ids": ["a", "", "c"], "vectors": VECTORS},
            "expected ids of utterances to be strings that are not empty",
        ),
        (
            {"ids": IDS, "speakers": ["a", "", "c"], "vectors": VECTORS},
            "expected speakers to be strings",
        ),
        (
            {"ids": IDS, "vectors": VECTORS[:, :0]},
            "expected vectors of floats, one row per utterance",
        ),
        (
            {"ids": np.array([b"a", b"\xff", b"c"]), "vectors": VECTORS},
            "ids holds an id that is not UTF-8",
        ),
    ],
)
def test_bad_columns_are_refused(tmp_path, columns, message):
    columns = {name: np.array(column) for name, column in columns.items()}
    np.savez(tmp_path / "e.npz", **columns)
    places = [tmp_path / "e.npz", write_folder(tmp_path / "folder", **columns)]
    with h5py.File(tmp_path / "e.h5", "w") as file:
        for name, column in columns.items():
            file[name] = np.char.encode(column, "utf-8") if column.dtype.kind == "U" else column
    for path in [*places, tmp_path / "e.h5"]:
        with pytest.raises(DataError) as caught:
            read_embeddings(path)
        assert message in str(caught.value)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", ["e.npz", "e.h5", "e.ark", "e.scp", "e.pkl", "e.txt"])
@pytest.mark.parametrize(
    "contents", [b"", b"\xff\xfe\x00", b"PK\x03\x04nothing", b"\x89HDF\r\n\x1a\nnothing"]
)
def test_broken_and_foreign_files_are_refused(tmp_path, name, contents):
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(DataError) as caught:
        read_embeddings(tmp_path / name, allow_pickle=True)
    assert str(tmp_path / name) in str(caught.value)


def test_missing_files_and_unknown_extensions_are_refused(tmp_path):
    for name in ("none.npz", "none.scp", "none.pkl"):
        with pytest.raises(DataError, match=f"{name}: cannot be read: No such file or directory"):
            read_embeddings(tmp_path / name)
    with pytest.raises(
        DataError, match=r"no format of embeddings is known for '\.txt' \(use \.npz or \.h5\)"
    ):
        write_embeddings(tmp_path / "e.txt", FOUND)


def test_an_empty_archive_is_refused(tmp_path):
    (tmp_path / "x.ark").write_bytes(b"")
    (tmp_path / "x.scp").write_text("a x.ark:0\n")
    with pytest.raises(DataError, match=r"expected vectors, got an empty file"):
        read_embeddings(tmp_path / "x.scp")


def test_embeddings_are_made_from_arrays():
    frame = pandas.DataFrame({"x": [1, 2, 3], "y": [0, 0, 5]})
    found = Embeddings.from_arrays(
        frame, speakers=pandas.Series([1, 1, 2]), ids=np.array(["a", "b", "c"])
    )
    assert found.vectors.tolist() == [[1, 0], [2, 0], [3, 5]]
    assert (found.ids.tolist(), found.speakers.tolist()) == (["a", "b", "c"], ["1", "1", "2"])
    alone = Embeddings.from_arrays(np.eye(2, dtype=np.float32))
    assert alone.vectors.dtype == np.float32
    assert alone.speakers.tolist() == alone.ids.tolist() == ["u0", "u1"]
