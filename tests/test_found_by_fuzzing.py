"""Inputs that ended in another error, a hang or a crash until `tests.fuzz` found them; those of packed files and HDF5
have tests of their own (`test_hostile_archives`, `test_hostile_hdf5`)."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import SpkverError
from spkbase.files.hdf5 import write_arrays
from tests.fuzz.documents import _anonymised, _ledgers
from tests.fuzz.lists import _RESULTS_2022, _rank_files
from tests.fuzz.parsers import all_parsers

PARSERS = all_parsers()
LONG = b"x" * 70_000
NO_FOLDER = Path()
RANKS = _rank_files(NO_FOLDER)[0]
LEDGER = b'==> stages.json\n{"artefacts": {"' + LONG[:5000] + b'": {}}, "plan": []}'


def changed(raw: bytes, **values: object) -> bytes:
    """A results file whose first condition has other values."""
    results = json.loads(raw)
    results["conditions"][0] |= values
    return json.dumps(results).encode()


REFUSED = {
    "a path longer than any: wav.scp": ("kaldi-datadir", b"==> wav.scp\nu1 " + LONG + b"\n==> utt2spk\nu1 u\n"),
    "a path longer than any: scp": ("kaldi-scp", b"u1 " + LONG + b":5\n"),
    "a path longer than any: utterances": ("kaldi-lists", b"u1 the words\nu1 " + LONG + b"\n"),
    "a cell longer than any": ("metadata", b"id\tsex\na\t" + 2 * LONG + b"\n"),
    "a row number that is none": ("rank-file", RANKS.replace(b"\n0 ", "\n² ".encode(), 1)),
    "a row number of 5000 digits": ("rank-file", RANKS.replace(b"\n0 ", b"\n" + b"9" * 5000 + b" ", 1)),
    "a count of 5000 digits": ("results-2022", _RESULTS_2022.replace(b"39783", b"9" * 5000)),
    "a number beyond floats": ("zebra-scale", b'"0": ' + b"9" * 400 + b"\nA: .inf\n"),
    "open brackets": ("settings", b"seed=" + b"[" * 3000),
    "results that are a list": ("chunks-json", b'{"results": [[1, 2, 3]]}'),
    "results that are a number": ("chunks-json", b'{"results": 1.5}'),
    "a record as deep as the stack": ("simulated-record", b"==> simulation.json\n" + b"[" * 100_000),
}  # fmt: skip
READ = {
    "an infinite number of utterances": (
        "anonymisation-record", _anonymised(NO_FOLDER)[0].replace(b'"utterances": 2', b'"utterances": 1e999')),
    "a name of 5000 letters in a ledger": ("run-ledgers", LEDGER),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_with_one_error(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = PARSERS[REFUSED[what][0]]
    with pytest.raises(SpkverError):
        parser.read(parser.place(tmp_path, REFUSED[what][1]))


@pytest.mark.parametrize("what", READ)
def test_it_is_read(what: str, tmp_path: Path) -> None:
    parser = PARSERS[READ[what][0]]
    parser.read(parser.place(tmp_path, READ[what][1]))


@pytest.mark.parametrize(
    ("parser", "name", "value"),
    [
        ("feature-store", "offsets", np.array(3)),
        ("feature-store", "offsets", np.array([2, 2, 5])),
        ("feature-store", "offsets", np.array([0, 5, 2, 5], np.uint8)[:3]),
        ("feature-store", "cep", np.ones(5, np.float32)),
        ("feature-store", "speech", np.array(True)),
        ("feature-store", "ids", np.array([1, 2])),
        ("machines", "biases", np.array(1.0)),
        ("machines", "weights", np.ones(3)),
        ("machines", "models", np.ones(3)),
    ],
)
def test_arrays_of_another_form(parser: str, name: str, value: np.ndarray, tmp_path: Path) -> None:
    from spkbase.files.hdf5 import read_arrays
    from spkver.backend.svm import read_svms
    from spkver.features.frames import read_feature_table

    path = PARSERS[parser].place(tmp_path, PARSERS[parser].seeds(tmp_path)[0])
    read = read_svms if parser == "machines" else read_feature_table
    read(path)
    write_arrays(path, {**read_arrays(path), name: value})
    with pytest.raises(SpkverError, match=name if value.ndim == 0 or name != "offsets" else "offsets|fit together"):
        read(path)


def test_an_attacker_without_its_arrays(tmp_path: Path) -> None:
    from spkbase.files.hdf5 import read_arrays

    parser = PARSERS["attacker"]
    folder = parser.place(tmp_path, parser.seeds(tmp_path)[0])
    parser.read(folder)
    arrays = read_arrays(folder / "attacker.h5")
    for missing in ("ubm_weights", "directions"):
        write_arrays(folder / "attacker.h5", {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(SpkverError, match=missing):
            parser.read(folder)


def test_a_ledger_is_read_as_it_is_written(tmp_path: Path) -> None:
    found = PARSERS["run-ledgers"].read(PARSERS["run-ledgers"].place(tmp_path, _ledgers(tmp_path)[0]))
    assert "ubm" in str(found)


def test_a_file_of_one_byte(tmp_path: Path) -> None:
    from evaluation.embeddings.files import read_embeddings

    (tmp_path / "x").write_bytes(b"\x80")
    with pytest.raises(SpkverError, match="is no known file of embeddings"):
        read_embeddings(tmp_path / "x")


def test_a_record_of_an_array_that_cannot_be(tmp_path: Path) -> None:
    """Its checksum holds and it has no bytes: NumPy refuses the shape all the same."""
    from spkbase.runs import Journal
    from tests.fuzz.matrices import _FINGERPRINT, _HEAD, _journals

    good = _journals(tmp_path)[0]
    text = json.dumps({"arrays": [["x", "<f8", [0, 1 << 62]]], "note": 1}).encode()
    check = zlib.crc32(text, zlib.crc32(struct.pack("<IQ", len(text), 0)))
    path = tmp_path / "x.journal"
    path.write_bytes(good + _HEAD.pack(b"SPKj", len(text), 0, check) + text)
    with Journal(path, _FINGERPRINT) as journal:
        assert len(journal) == 2  # what comes after the first bad record is cut off
    assert path.read_bytes() == good


def test_ranks_of_a_structured_type(tmp_path: Path) -> None:
    from evaluation.linkage.ranks import read_ranks

    parser = PARSERS["ranks"]
    path = parser.place(tmp_path, parser.seeds(tmp_path)[0])
    with np.load(path) as file:
        columns = dict(file)
    np.savez(path, **{**columns, "1/beaters": np.zeros(4, "f4,i2")})
    with pytest.raises(SpkverError, match="is no file of ranks"):
        read_ranks(path)
