"""Embeddings in every form that users have: each gives the same ids, speakers and vectors, or one clear error."""

import json
import pickle
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from evaluation.embeddings.files import read_embeddings, window_ids
from evaluation.embeddings.sets import cosine_scores
from evaluation.trials import Trials
from spkbase.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data" / "torch_files"
IDS = ["u1", "u2", "u3"]
SPEAKERS = ["anna", "bert", "anna"]
VECTORS = np.array([[1.0, 2.0, -3.0], [0.5, 0.25, 8.0], [0.125, 4.0, 0.0]], np.float32)
UTT2SPK = "".join(f"{name} {speaker}\n" for name, speaker in zip(IDS, SPEAKERS, strict=True))


def pickled(path, content):
    path.write_bytes(pickle.dumps(content))
    return path


def read(path, **options):
    return read_embeddings(path, allow_pickle=True, **options)


def ark(path, ids=IDS, rows=VECTORS):
    heads = (
        name.encode() + b" \0BFV \4" + struct.pack("<i", len(row))
        for name, row in zip(ids, rows, strict=True)
    )
    path.write_bytes(b"".join(head + row.tobytes() for head, row in zip(heads, rows, strict=True)))
    return path


# --- dictionaries and lists ------------------------------------------------------------------------------------------

ROWS = list(VECTORS)
FLAT = {
    "vectors": dict(zip(IDS, ROWS, strict=True)),
    "rows": {name: row[None] for name, row in zip(IDS, ROWS, strict=True)},
    "as SpeechBrain's": {name: row[None, None] for name, row in zip(IDS, ROWS, strict=True)},
    "lists of numbers": {name: row.tolist() for name, row in zip(IDS, ROWS, strict=True)},
    "pairs": list(zip(IDS, ROWS, strict=True)),
    "columns": {"utt_ids": IDS, "embeddings": VECTORS},
    "columns of lists": {"ids": np.array(IDS), "vectors": ROWS, "created": "today"},
    "columns and a dictionary": {"ids": IDS, "vectors": VECTORS, "data": dict.fromkeys(IDS, 1)},
}


@pytest.mark.parametrize("form", FLAT)
def test_dictionaries_of_utterances_are_read(form, tmp_path):
    path = pickled(tmp_path / "e.pkl", FLAT[form])
    alone = read(path)
    assert alone.ids.tolist() == alone.speakers.tolist() == IDS
    assert alone.vectors.tolist() == VECTORS.tolist()
    assert alone.notes == ("e.pkl has no speakers: each id counts as one",)
    (tmp_path / "map").write_text(UTT2SPK)
    mapped = read(path, speakers=tmp_path / "map")
    assert (mapped.ids.tolist(), mapped.speakers.tolist(), mapped.notes) == (IDS, SPEAKERS, ())


def test_dictionaries_of_speakers_are_read(tmp_path):
    """The map that is given tells which of the two a dictionary is: its ids, or its speakers."""
    (tmp_path / "map").write_text(UTT2SPK)
    path = pickled(tmp_path / "e.pkl", {"anna": VECTORS[0], "bert": VECTORS[1]})
    found = read(path, speakers=tmp_path / "map")
    assert found.ids.tolist() == found.speakers.tolist() == ["anna", "bert"]
    assert found.notes == (f"{path} holds a vector for each speaker: its ids are speakers of map",)
    (tmp_path / "map").write_text(UTT2SPK + "anna x\nbert x\n")  # ids of the map are preferred
    assert read(path, speakers=tmp_path / "map").speakers.tolist() == ["x", "x"]
    (tmp_path / "map").write_text(UTT2SPK + "anna x\n")
    with pytest.raises(
        DataError, match=r"map: 1 of 2 utterances of .*e\.pkl without a speaker: bert"
    ):
        read(path, speakers=tmp_path / "map")


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ({"anna": [VECTORS[0], VECTORS[2]], "bert": [VECTORS[1]]}, ["anna#1", "anna#2", "bert#1"]),
        ({"anna": VECTORS[[0, 2]], "bert": VECTORS[[1]]}, ["anna#1", "anna#2", "bert#1"]),
        ({"anna": VECTORS[[0, 2]], "bert": VECTORS[1]}, ["anna#1", "anna#2", "bert#1"]),
        (
            {"anna": {"u1": VECTORS[0], "u3": VECTORS[2]}, "bert": {"u2": VECTORS[1]}},
            ["u1", "u3", "u2"],
        ),
        (
            {"anna": [("u1", VECTORS[0]), ["u3", VECTORS[2]]], "bert": (("u2", VECTORS[1]),)},
            ["u1", "u3", "u2"],
        ),
        (
            [("anna", VECTORS[0]), ("anna", VECTORS[2]), ("bert", VECTORS[1])],
            ["anna#1", "anna#2", "bert#1"],
        ),
    ],
)
def test_several_vectors_for_each_speaker_are_read(content, ids, tmp_path):
    found = read(pickled(tmp_path / "e.pkl", content))
    assert (found.ids.tolist(), found.speakers.tolist()) == (ids, ["anna", "anna", "bert"])
    assert found.vectors.tolist() == VECTORS[[0, 2, 1]].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": VECTORS[0], "b": VECTORS[1, :2]}, r"got \(3,\) for a and \(2,\) for b"),
        ({"a": VECTORS[0], "b": "x"}, "got str for 'b#1'"),
        ({"a": VECTORS[0], 2.5: VECTORS[1]}, "for 2.5"),
        ({"a": {"u": VECTORS[0]}, "b": {"u": VECTORS[1]}}, "'u' is repeated"),
        ([("a", VECTORS[0]), ("b", "x")], "got str for 'b'"),
        ([("a", VECTORS[0], 1)], "expected {speaker"),
        ({"a": [0.5, "x"]}, "got list for 'a'"),
        ({"a": VECTORS[0], "b": np.array(1.0)}, "got ndarray for 'b#1'"),
        ({"a": np.zeros(0, "f4")}, "got dict"),
        ({"ids": IDS[:2], "vectors": VECTORS}, "expected ids for 3 vectors, got shape"),
        (VECTORS, "there are no ids"),
        (
            {"a": VECTORS[0], "": VECTORS[1]},
            "expected ids of utterances to be strings that are not empty",
        ),
    ],
)
def test_dictionaries_of_other_types_are_refused(content, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        read(pickled(tmp_path / "e.pkl", content))
    assert str(tmp_path / "e.pkl") in str(caught.value)


# --- PyTorch, safetensors --------------------------------------------------------------------------------------------

BASE = (np.arange(24, dtype=np.float32) / 8).reshape(4, 6)


def text_maps(folder):
    (folder / "id2idx").write_text("b 3\na 1\nc 0\n")
    (folder / "idx2spk").write_text("0 s3\n1 s1\n2 s0\n3 s2\n")


def pickled_maps(folder):
    pickled(folder / "id2idx", {"b": 3, "a": 1, "c": 0})
    pickled(folder / "idx2spk", {0: "s3", 1: "s1", 2: "s0", 3: "s2"})


@pytest.mark.parametrize("write", [text_maps, pickled_maps])
@pytest.mark.parametrize("given", [".", "utt-level", "utt-level/speaker_vectors.pt"])
def test_the_voiceprivacy_cache_is_read(tmp_path, given, write):
    """Rows go by their numbers, not by the order of lines."""
    folder = tmp_path / "utt-level"
    folder.mkdir()
    (folder / "speaker_vectors.pt").write_bytes((DATA / "matrix.pt").read_bytes())
    write(folder)
    found = read_embeddings(tmp_path / given)
    assert (found.ids.tolist(), found.speakers.tolist()) == (["c", "a", "b"], ["s3", "s1", "s2"])
    assert found.vectors.tolist() == BASE[[0, 1, 3]].tolist()


@pytest.mark.parametrize(
    ("index", "speakers", "message"),
    [
        ("a 0\nb 4\n", "0 s\n", "id2idx: expected lines 'id row', the rows from 0 to 3, each once"),
        ("a 0\nb 0\n", "0 s\n", "each once"),
        ("a x\n", "0 s\n", "expected lines 'id row'"),
        ("a -1\n", "0 s\n", "expected lines 'id row'"),
        ("a 0\nb 1\n", "0 s\n", "idx2spk: 1 of 2 utterances without a speaker: b"),
        ("a 0 1\n", "0 s\n", r"id2idx:1: "),
    ],
)
def test_damaged_caches_are_refused(tmp_path, index, speakers, message):
    (tmp_path / "speaker_vectors.pt").write_bytes((DATA / "matrix.pt").read_bytes())
    (tmp_path / "id2idx").write_text(index)
    (tmp_path / "idx2spk").write_text(speakers)
    with pytest.raises(DataError, match=message):
        read_embeddings(tmp_path)


def safe(path, head, body):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def entry(kind, shape, start, stop):
    return {"dtype": kind, "shape": shape, "data_offsets": [start, stop]}


def test_safetensors_are_read(tmp_path):
    head = {name: entry("F32", [1, 3], 12 * row, 12 * row + 12) for row, name in enumerate(IDS)}
    path = safe(
        tmp_path / "e.safetensors", {"__metadata__": {"format": "pt"}} | head, VECTORS.tobytes()
    )
    found = read_embeddings(path)
    assert (found.ids.tolist(), found.vectors.tolist()) == (IDS, VECTORS.tolist())
    half = (VECTORS.view("<u4") >> 16).astype("<u2")  # these values are exact in bfloat16
    (tmp_path / "m.ids").write_text("u1\nu2\nu3\n")
    path = safe(tmp_path / "m.safetensors", {"x": entry("BF16", [3, 3], 0, 18)}, half.tobytes())
    assert read_embeddings(path).vectors.tolist() == VECTORS.tolist()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"a": entry("F32", [4], 0, 12)}, "cannot reshape"),
        ({"a": entry("F32", [1 << 60], 0, 12)}, "cannot reshape"),
        ({"a": entry("I64", [1], 0, 8)}, "safetensors of floats: 'I64'"),
        ({"a": {}}, "cannot be read as safetensors"),
        (b'{"a": 1}', "cannot be read as safetensors"),
        (b'{"' + b"[" * 50, "cannot be read as safetensors"),
    ],
)
def test_damaged_safetensors_are_refused(tmp_path, head, message):
    with pytest.raises(DataError, match=message):
        read_embeddings(safe(tmp_path / "e.safetensors", head, bytes(12)))


# --- arrays and their ids --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "ids", "speakers"),
    [("embeddings", "utts", "spk"), ("xvectors", "segments", "speaker")],
)
def test_other_column_names_are_recognised(tmp_path, vectors, ids, speakers):
    columns = {vectors: VECTORS, ids: np.array(IDS), speakers: np.array(SPEAKERS)}
    np.savez(tmp_path / "e.npz", **columns)
    with h5py.File(tmp_path / "e.h5", "w") as file:
        for name, column in columns.items():
            file[name] = np.char.encode(column) if column.dtype.kind == "U" else column
    (tmp_path / "e").mkdir()
    for name, column in columns.items():
        np.save(tmp_path / "e" / f"{name}.npy", column)
    for path in ("e.npz", "e.h5", "e"):
        for map_above in (0, 1 << 26):
            found = read_embeddings(tmp_path / path, map_above=map_above)
            assert (found.ids.tolist(), found.speakers.tolist()) == (IDS, SPEAKERS)
            assert found.vectors.tolist() == VECTORS.tolist()


@pytest.mark.parametrize(
    "companion", ["e.ids", "e.txt", "e.seg", "ids.txt", "ids.npy", "e_ids.npy"]
)
@pytest.mark.parametrize("name", ["e.npy", "e.npz", "e.pt"])
def test_ids_are_read_from_a_list_in_the_folder_of_the_array(tmp_path, companion, name):
    vectors = BASE if name == "e.pt" else VECTORS
    if name == "e.npy":
        np.save(tmp_path / name, vectors)
    elif name == "e.npz":
        np.savez(tmp_path / name, x=vectors)
    else:
        (tmp_path / name).write_bytes((DATA / "matrix.pt").read_bytes())
    ids = [f"u{number}" for number in range(len(vectors))]
    if companion.endswith(".npy"):
        np.save(tmp_path / companion, np.array(ids))
    else:  # further columns, as a list of segments has, are left alone
        (tmp_path / companion).write_text(
            "".join(f"{utterance} ES2005a 0.5 2.0\n" for utterance in ids)
        )
    found = read_embeddings(tmp_path / name)
    assert (found.ids.tolist(), found.vectors.tolist()) == (ids, vectors.tolist())
    if not companion.endswith(".npy"):
        (tmp_path / companion).write_text("u1\n")
        with pytest.raises(
            DataError, match=rf"expected the ids of {len(vectors)} vectors of {name}, got 1"
        ):
            read_embeddings(tmp_path / name)


def test_an_npz_with_one_array_for_each_utterance_is_read(tmp_path):
    np.savez(tmp_path / "e.npz", **dict(zip(IDS, VECTORS, strict=True)))
    found = read_embeddings(tmp_path / "e.npz")
    assert (found.ids.tolist(), found.vectors.tolist()) == (IDS, VECTORS.tolist())


def test_sliding_windows_of_a_recording_get_ids(tmp_path):
    assert window_ids("call", 2, 0.1, 1.5, 0.75) == ["call-0000100-0001600", "call-0000850-0002350"]
    np.savez(tmp_path / "call.npz", data=VECTORS, start=0.0, duration=1.5, step=0.25)
    found = read_embeddings(tmp_path / "call.npz")
    assert found.ids.tolist() == [
        "call-0000000-0001500",
        "call-0000250-0001750",
        "call-0000500-0002000",
    ]
    np.savez(tmp_path / "call.npz", data=VECTORS, start=0.0, duration=np.nan, step=0.25)
    with pytest.raises(
        DataError, match="expected start, duration, step of the sliding window in seconds"
    ):
        read_embeddings(tmp_path / "call.npz")


# --- several files ---------------------------------------------------------------------------------------------------


def test_a_folder_with_one_archive_for_each_utterance_is_read(tmp_path):
    folder = tmp_path / "xvectors"
    folder.mkdir()
    for name, row in zip(IDS, VECTORS, strict=True):
        ark(folder / f"{name}.ark", [name], row[None])
    (folder / "utt2spk").write_text(UTT2SPK)
    for given in (folder, str(folder / "*.ark"), [folder / f"{name}.ark" for name in IDS]):
        found = read_embeddings(given)
        assert (found.ids.tolist(), found.speakers.tolist()) == (IDS, SPEAKERS)
        assert found.vectors.tolist() == VECTORS.tolist()


def test_the_parts_of_an_scp_are_joined(tmp_path):
    """As Kaldi writes them: xvector.1.scp, xvector.2.scp and all of them in xvector.scp; means of speakers aside."""
    lines = []
    for part, rows in ((1, [0, 1]), (2, [2])):
        ark(tmp_path / f"xvector.{part}.ark", [IDS[row] for row in rows], VECTORS[rows])
        places = [3 + row * (3 + 10 + 12) for row in range(len(rows))]
        lines.append(
            "".join(
                f"{IDS[row]} exp/xvector.{part}.ark:{at}\n"
                for row, at in zip(rows, places, strict=True)
            )
        )
        (tmp_path / f"xvector.{part}.scp").write_text(lines[-1])
    ark(tmp_path / "spk_xvector.ark", ["anna"], VECTORS[:1])
    (tmp_path / "spk_xvector.scp").write_text("anna spk_xvector.ark:5\n")
    (tmp_path / "wav.scp").write_text("u1 u1.wav\n")
    for given in (tmp_path, str(tmp_path / "xvector.*.scp")):
        assert read_embeddings(given).vectors.tolist() == VECTORS.tolist()
    (tmp_path / "xvector.scp").write_text("".join(lines))
    assert read_embeddings(tmp_path).ids.tolist() == IDS
    (tmp_path / "ivector.scp").write_text("".join(lines))
    with pytest.raises(DataError, match="holds scp files of several names: ivector, xvector"):
        read_embeddings(tmp_path)


def test_a_folder_with_one_file_for_each_utterance_is_read(tmp_path):
    for name, row in zip(IDS, VECTORS, strict=True):
        np.save(tmp_path / f"{name}.npy", row)
    found = read_embeddings(tmp_path)
    assert (found.ids.tolist(), found.vectors.tolist()) == (IDS, VECTORS.tolist())


def test_files_that_do_not_match_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", ids=np.array(IDS), vectors=VECTORS)
    np.savez(tmp_path / "b.npz", ids=np.array(["u4"]), vectors=np.ones((1, 4)))
    np.savez(
        tmp_path / "c.npz", ids=np.array(["u4"]), speakers=np.array(["x"]), vectors=VECTORS[:1]
    )
    with pytest.raises(
        DataError, match=r"b\.npz: expected vectors of 3 dimensions as in .*a\.npz, got 4"
    ):
        read_embeddings([tmp_path / "a.npz", tmp_path / "b.npz"])
    with pytest.raises(DataError, match=r"a\.npz: has no speakers, while others of the files have"):
        read_embeddings([tmp_path / "a.npz", tmp_path / "c.npz"])
    with pytest.raises(DataError, match=r"a\.npz, .*a\.npz: ids of utterances: 'u1' is repeated"):
        read_embeddings([tmp_path / "a.npz", tmp_path / "a.npz"])
    with pytest.raises(DataError, match=r"x\*\.npz: no file has this name"):
        read_embeddings(tmp_path / "x*.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="expected a folder of embeddings, got none of them"):
        read_embeddings(tmp_path / "empty")


# --- text ------------------------------------------------------------------------------------------------------------

NUMBERS = [[str(float(value)) for value in row] for row in VECTORS]
TABLES = {
    "a header": ("id,a,b,c", [[name, *row] for name, row in zip(IDS, NUMBERS, strict=True)], ","),
    "tabs": (
        "utt\te0\te1\te2",
        [[name, *row] for name, row in zip(IDS, NUMBERS, strict=True)],
        "\t",
    ),
    "numbers as names": (
        "segment;0;1;2",
        [[name, *row] for name, row in zip(IDS, NUMBERS, strict=True)],
        ";",
    ),
    "other columns": (
        "path,d2,id,d0,d1",
        [["x.wav", r[2], n, *r[:2]] for n, r in zip(IDS, NUMBERS, strict=True)],
        ",",
    ),
    "an index": (",0,1,2", [[name, *row] for name, row in zip(IDS, NUMBERS, strict=True)], ","),
    "an index and ids": (
        ",id,0,1,2",
        [["7", n, *r] for n, r in zip(IDS, NUMBERS, strict=True)],
        ",",
    ),
    "text of a list": (
        "id,vector",
        [[n, f'"[{", ".join(r)}]"'] for n, r in zip(IDS, NUMBERS, strict=True)],
        ",",
    ),
    "as NumPy prints": (
        "id,embedding",
        [[n, f"[{'  '.join(r)}]"] for n, r in zip(IDS, NUMBERS, strict=True)],
        ",",
    ),
    "words": ("", [[name, *row] for name, row in zip(IDS, NUMBERS, strict=True)], " "),
    "no header": ("", [[name, *row] for name, row in zip(IDS, NUMBERS, strict=True)], ","),
    "Kaldi's text": (
        "",
        [[name, "", "[", *row, "]"] for name, row in zip(IDS, NUMBERS, strict=True)],
        " ",
    ),
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("name", ["e.csv", "e.txt"])
def test_tables_are_read(form, name, tmp_path):
    header, rows, mark = TABLES[form]
    lines = ([header] if header else []) + [mark.join(row) for row in rows]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    found = read_embeddings(tmp_path / name)
    assert (found.ids.tolist(), found.vectors.tolist()) == (IDS, VECTORS.tolist())


def test_speakers_are_read_from_a_table(tmp_path):
    rows = [
        ",".join([name, who, *row]) for name, who, row in zip(IDS, SPEAKERS, NUMBERS, strict=True)
    ]
    (tmp_path / "e.csv").write_bytes(("\ufeffutt_id,spk_id,0,1,2\r\n" + "\r\n".join(rows)).encode())
    found = read_embeddings(tmp_path / "e.csv")
    assert (found.ids.tolist(), found.speakers.tolist()) == (IDS, SPEAKERS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a,b\nu1,1,2\nu2,1\n", "e.csv:3: expected 3 columns as in the header, got 2"),
        ("id,a,b\nu1,1,x\n", "e.csv:2: 'x' is not a number"),
        ("id,path\nu1,x.wav\n", "e.csv:2: 'x.wav' is not a number"),
        ("id,id\nu1,1\n", "e.csv:1: expected distinct names of columns"),
        ("id,speaker\nu1,x\n", "e.csv:1: expected columns of values after the ids, got none"),
        ("id,a,b\n", "e.csv: expected embeddings, got none"),
        ("u1 1 2\nu2 1\n", r"got \(2,\) for u1 and \(1,\) for u2"),
        ("u1 1 2\nu1 3 4\n", "'u1' is repeated"),
        ("the quick brown fox\n", "e.csv:1: 'quick' is not a number"),
        ("id,vector\nu1,[]\n", "e.csv"),
        ('id,a\n"u1,1\n', "e.csv"),
        (" \n \n", "e.csv"),
    ],
)
def test_bad_tables_are_refused(text, message, tmp_path):
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_embeddings(tmp_path / "e.csv")


# --- errors where vectors are used -----------------------------------------------------------------------------------


def test_bad_values_are_reported_with_their_file(tmp_path):
    good, nan, zero = VECTORS, VECTORS.copy(), VECTORS.copy()
    nan[1, 2], zero[2] = np.nan, 0
    for name, vectors in (("good", good), ("nan", nan), ("zero", zero), ("wide", np.ones((3, 4)))):
        np.savez(tmp_path / f"{name}.npz", ids=np.array(IDS), vectors=vectors)
    files = {
        name: read_embeddings(tmp_path / f"{name}.npz") for name in ("good", "nan", "zero", "wide")
    }
    trials = Trials.from_ids(["u1"], ["u1"])
    for enrol, trial, message in (
        ("good", "nan", r"nan\.npz: 1 vector is not finite .*: u2"),
        ("nan", "good", r"nan\.npz: 1 vector is not finite .*: u2"),
        ("good", "zero", r"zero\.npz: 1 vector is zero .*: u3"),
        (
            "good",
            "wide",
            r"the same number of dimensions on both sides, got 3 of the enrolled and 4 of the tested \(.*wide\.npz",
        ),
    ):
        with pytest.raises(DataError, match=message):
            cosine_scores(files[enrol], files[trial], trials)


# --- an array for each utterance in HDF5 -----------------------------------------------------------------------------


def tree(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


@pytest.mark.parametrize("shape", [(3,), (1, 3), (1, 1, 3)])
def test_hdf5_datasets_of_utterances_are_read(tmp_path, shape):
    arrays = {name: row.reshape(shape) for name, row in zip(IDS, VECTORS, strict=True)}
    found = read_embeddings(tree(tmp_path / "e.h5", arrays))
    assert found.ids.tolist() == found.speakers.tolist() == IDS
    assert found.vectors.tolist() == VECTORS.tolist()


@pytest.mark.parametrize(
    ("paths", "ids"),
    [
        (["anna/u1", "anna/u3", "bert/u2"], ["u1", "u3", "u2"]),
        (["anna/0", "anna/1", "bert/0"], ["anna/0", "anna/1", "bert/0"]),
        (
            ["anna/x/1.wav", "anna/y/1.wav", "bert/z/1.wav"],
            ["anna/x/1.wav", "anna/y/1.wav", "bert/z/1.wav"],
        ),
    ],
)
def test_hdf5_groups_are_speakers(tmp_path, paths, ids):
    found = read_embeddings(tree(tmp_path / "e.h5", dict(zip(paths, VECTORS, strict=True))))
    assert found.ids.tolist() == ids
    assert found.speakers.tolist() == ["anna", "anna", "bert"]
    assert found.vectors.tolist() == VECTORS.tolist()


def test_hdf5_groups_of_utterances_are_read(tmp_path):
    arrays = {f"{name}/embedding": row for name, row in zip(IDS, VECTORS, strict=True)}
    found = read_embeddings(tree(tmp_path / "e.h5", arrays))
    assert found.ids.tolist() == found.speakers.tolist() == IDS
    arrays = {
        f"{speaker}/{name}/x": row
        for speaker, name, row in zip(SPEAKERS, IDS, VECTORS, strict=True)
    }
    found = read_embeddings(tree(tmp_path / "f.h5", arrays))
    assert dict(zip(found.ids, found.speakers, strict=True)) == dict(
        zip(IDS, SPEAKERS, strict=True)
    )


@pytest.mark.parametrize(
    "link", [lambda file: file["u1"], lambda file: h5py.SoftLink("/u1")], ids=["hard", "soft"]
)
def test_a_link_to_a_dataset_is_a_second_utterance(tmp_path, link):
    path = tree(tmp_path / "e.h5", {"u1": VECTORS[0], "u2": VECTORS[1]})
    with h5py.File(path, "a") as file:
        file["u3"] = link(file)
    found = read_embeddings(path)
    assert found.ids.tolist() == ["u1", "u2", "u3"]
    assert found.vectors.tolist() == VECTORS[[0, 1, 0]].tolist()


def test_a_group_that_holds_all_vectors_is_not_a_speaker(tmp_path):
    arrays = {f"embeddings/{name}": row for name, row in zip(IDS, VECTORS, strict=True)}
    assert read_embeddings(tree(tmp_path / "e.h5", arrays)).speakers.tolist() == IDS


@pytest.mark.parametrize("name", ["embeddings", "arr_0"])
def test_an_npz_that_holds_one_dictionary_is_read(tmp_path, name):
    np.savez(tmp_path / "e.npz", **{name: np.array(dict(zip(IDS, VECTORS, strict=True)), object)})
    found = read(tmp_path / "e.npz")
    assert found.ids.tolist() == found.speakers.tolist() == IDS
    assert found.vectors.tolist() == VECTORS.tolist()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "instead of vectors there is nothing"),
        ({"bar": np.array([b"u1"]), "foo": VECTORS}, "instead of vectors there is bar, foo"),
        ({"u1": VECTORS[0], "u2": VECTORS[1, :2]}, r"got \(3,\) for u1 and \(2,\) for u2"),
        ({"u1": np.array([1, 2])}, "instead of vectors there is u1"),
    ],
)
def test_hdf5_files_of_other_types_are_refused(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        read_embeddings(tree(tmp_path / "e.h5", arrays))


# --- arrays of objects, whole numbers, and several columns of a kind -------------------------------------------------


@pytest.mark.parametrize("name", ["e.npy", "e.npz"])
def test_object_arrays_are_read_only_on_request(tmp_path, name):
    objects = {"e.npy": dict(zip(IDS, VECTORS, strict=True)), "e.npz": np.array(IDS, object)}[name]
    if name == "e.npy":
        np.save(tmp_path / name, objects)
    else:
        np.savez(tmp_path / name, vectors=VECTORS, ids=objects, speakers=np.array(SPEAKERS, object))
    found = read(tmp_path / name)
    assert found.ids.tolist() == IDS
    assert found.vectors.tolist() == VECTORS.tolist()
    with pytest.raises(DataError, match="allow_pickle=True reads plain ones without running them"):
        read_embeddings(tmp_path / name)


@pytest.mark.parametrize("save", ["npy", "npz"])
def test_object_arrays_never_run_code(tmp_path, save):
    class Attack:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    path = tmp_path / f"e.{save}"
    hostile = np.array([Attack()], object)
    np.save(path, hostile) if save == "npy" else np.savez(path, vectors=VECTORS, ids=hostile)
    for allow_pickle in (True, False):
        with pytest.raises(DataError, match=r"nothing of it was run|can carry programs"):
            read_embeddings(path, allow_pickle=allow_pickle)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
@pytest.mark.parametrize("extension", ["npz", "h5", "pkl"])
def test_integer_ids_and_speakers_become_text(tmp_path, kind, extension):
    columns = {
        "vectors": VECTORS,
        "ids": np.array([7, 8, 9], kind),
        "speakers": np.array([0, 1, 0], kind),
    }
    path = tmp_path / f"e.{extension}"
    if extension == "npz":
        np.savez(path, **columns)
    elif extension == "h5":
        tree(path, columns)
    else:
        pickled(path, columns)
    found = read(path)
    assert found.ids.tolist() == ["7", "8", "9"]
    assert found.speakers.tolist() == ["0", "1", "0"]


@pytest.mark.parametrize(
    "column", [[0.0, 1.0, 0.0], [True, False, True], [None, "a", "b"], [["a"], ["b"], ["a"]]]
)
def test_speakers_of_other_types_are_refused(tmp_path, column):
    with pytest.raises(DataError, match="expected speakers of text or whole numbers, got"):
        read(pickled(tmp_path / "e.pkl", {"ids": IDS, "speakers": column, "vectors": VECTORS}))


TWO = {
    "vectors and embeddings": {"embeddings": VECTORS + 1},
    "vectors and x": {"x": VECTORS[:, :2]},
    "ids and utt_ids": {"utt_ids": np.array(IDS[::-1])},
    "speakers and spk": {"spk": np.array(IDS)},
}


@pytest.mark.parametrize("extension", ["npz", "h5", "pkl", "folder"])
@pytest.mark.parametrize("names", TWO)
def test_ambiguous_columns_are_refused(tmp_path, names, extension):
    columns = {"vectors": VECTORS, "ids": np.array(IDS), "speakers": np.array(SPEAKERS)}
    same = {"embedding": VECTORS, "utt": np.array(IDS), "spk_ids": np.array([4, 5, 4])}
    same |= {
        "filename": np.array([f"/data/{name}.wav" for name in IDS]),
        "modelset": np.array(["x", "y", "x"]),
    }

    def written(name, content):
        path = tmp_path / f"{name}.{extension}"
        if extension == "npz":
            np.savez(path, **content)
        elif extension == "h5":
            tree(
                path,
                {
                    name: array if array.dtype.kind in "fi" else array.astype("S")
                    for name, array in content.items()
                },
            )
        elif extension == "pkl":
            pickled(path, content)
        else:
            path.mkdir()
            for column, array in content.items():
                np.save(path / f"{column}.npy", array)
        return path

    assert read(written("same", columns | same)).speakers.tolist() == SPEAKERS
    with pytest.raises(DataError, match=f"holds {names}, which differ"):
        read(written("two", columns | TWO[names]))


@pytest.mark.parametrize("version", ["5.0", "7.3"])
def test_matlab_files_are_refused_with_a_remedy(tmp_path, version):
    """In version 7.3, which is HDF5, arrays are transposed."""
    path = tmp_path / "e.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["vectors"] = VECTORS
    raw = bytearray(path.read_bytes())
    raw[:128] = f"MATLAB {version} MAT-file".encode().ljust(128)
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"is a file of MATLAB.*scipy\.io\.loadmat"):
        read_embeddings(path)


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (["vectors", "embeddings"], "vectors and embeddings"),
        (["emb", "data"], "emb and data"),
        (["a0", "a1", "b0", "b1"], "a0 and b0"),
    ],
)
def test_two_columns_of_vectors_in_a_table_are_refused(tmp_path, header, names):
    cells = [["[1 2]" if "0" not in "".join(header) else "1"] * len(header) for _ in IDS]
    lines = [["id", *header], *([name, *row] for name, row in zip(IDS, cells, strict=True))]
    (tmp_path / "e.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    with pytest.raises(DataError, match=f"holds {names}, which differ"):
        read_embeddings(tmp_path / "e.csv")
    (tmp_path / "f.csv").write_text("id,a0,a1,a2,b0,b1\nu1,1,2,3,4,5\nu2,2,3,4,5,6\n")
    assert read_embeddings(tmp_path / "f.csv").vectors.tolist() == [[1, 2, 3], [2, 3, 4]]


@pytest.mark.parametrize("separator", [" ", ",", "\t"])
def test_lines_without_ids_are_refused(tmp_path, separator):
    path = tmp_path / "e.txt"
    path.write_text(
        "".join(separator.join(map(str, row.tolist())) + "\n" for row in VECTORS + 0.25)
    )
    with pytest.raises(DataError, match="expected an id first in each line, got numbers"):
        read_embeddings(path)
