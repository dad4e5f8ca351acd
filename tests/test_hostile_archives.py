"""Packed files, pickles, YAML and JSON that are small on the disk and large, deep or endless when they are read."""

from __future__ import annotations

import gzip
import io
import pickle
import resource
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from evaluation.challenges.team_scores import read_rule
from evaluation.embeddings.files import read_embeddings
from evaluation.embeddings.kaldi import read_ark
from evaluation.formats.reading import read_scores
from evaluation.metrics.disclosure import read_scale
from spkbase.configuration import read_yaml
from spkbase.errors import ConfigError, DataError
from spkbase.files.archives import read_npz, unpack_gzip
from spkbase.files.documents import load_json, load_yaml
from spkbase.files.pickle_guard import check_pickle
from spkbase.files.plain_pickle import read_pickle
from spkver.sidekit.svms import read_svm


def peak() -> int:
    """Most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


# --- gzip ------------------------------------------------------------------------------------------------------------


def bomb(mebibytes: int) -> bytes:
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb") as file:
        for _ in range(mebibytes):
            file.write(bytes(1 << 20))
    return content.getvalue()


def test_a_bomb_of_gzip_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(bomb(600))
    before = peak()
    for read in (read_scores, lambda path: read_svm(path, allow_pickle=True)):
        with pytest.raises(DataError, match="unpacks to more than"):
            read(tmp_path / "x.txt")
    assert peak() - before < 300  # of 600: what it takes to see that it is too much


@pytest.mark.parametrize("raw", [b"", b"a b 1\n", b"x" * 3_000_000, bytes(range(256)) * 9000])
@pytest.mark.parametrize("n_streams", [1, 3])
def test_gzip_is_unpacked_as_python_does(raw: bytes, n_streams: int) -> None:
    one = gzip.compress(raw)
    packed = one * n_streams
    assert unpack_gzip(packed) == unpack_gzip(packed + b"\0\0") == gzip.decompress(packed) == raw * n_streams
    for missing in (1, len(one) // 2, len(one) - 12):
        with pytest.raises(EOFError, match="cut off"):
            unpack_gzip(packed[:-missing])


# --- npz -------------------------------------------------------------------------------------------------------------


def npz(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(f"{name}.npy", raw)
    return content.getvalue()


def npy(shape: str, kind: str = "<f8", body: bytes = b"") -> bytes:
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body


HOSTILE = {
    "absurd shape": (npz(x=npy("(1099511627776,)")), "does not fit its 0 bytes"),
    "negative shape": (npz(x=npy("(-1,)")), "there is no array of shape"),
    "objects": (npz(x=npy("(1,)", "|O", b"cos\nsystem\n.")), "holds Python objects"),
    "long head": (npz(x=b"\x93NUMPY\2\0\xff\xff\xff\x7f"), "head claims 2147483647 bytes"),
    "no type": (npz(x=npy("(3,)", "|V0")), "there is no array|Python objects"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_claims_of_an_npz_are_refused(tmp_path: Path, kind: str) -> None:
    content, message = HOSTILE[kind]
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_npz(tmp_path / "x.npz")
    for read in (read_scores, read_embeddings):
        with pytest.raises(DataError):
            read(tmp_path / "x.npz")


def test_a_member_that_claims_more_than_its_bytes_hold(tmp_path: Path) -> None:
    raw = npz(x=npy("(2,)", body=bytes(16)))
    place = raw.rindex(b"PK\1\2") + 24  # the size in the directory
    (tmp_path / "x.npz").write_bytes(raw[:place] + struct.pack("<I", 1 << 31) + raw[place + 4 :])
    with pytest.raises(ValueError, match="claims 2147483648 bytes, more than the file can hold"):
        read_npz(tmp_path / "x.npz")


def test_a_folder_of_npy_is_checked_too(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.array(["a"]))
    (tmp_path / "vectors.npy").write_bytes(npy("(1, 1099511627776)"))
    with pytest.raises(DataError, match=r"vectors\.npy: cannot be read as npy: an array of shape"):
        read_embeddings(tmp_path)


# --- pickles ---------------------------------------------------------------------------------------------------------

READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from spkbase.errors import DataError
from spkbase.files import read_pickle
try:
    read_pickle(sys.argv[1])
except DataError as error:
    print(str(error)[:200])
"""
PICKLES = {
    "a size beyond its own": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 33) + b"abc.",
    "a table up to a number": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "depth that a dictionary looks up": b"\x80\x04}(" + b")" + b"\x85" * 1_000_000 + b"Nu.",
}


@pytest.mark.parametrize("kind", PICKLES)
def test_a_pickle_takes_neither_memory_nor_stack(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.pkl").write_bytes(PICKLES[kind])
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path / "x.pkl")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "it is cut off or damaged" in done.stdout


@pytest.mark.parametrize("protocol", range(6))
def test_plain_pickles_pass(tmp_path: Path, protocol: int) -> None:
    known = {f"s{number}": [("u", np.arange(3.0)), {"a": (1, 2.5, None, b"x", [1, 2])}] for number in range(3000)}
    raw = pickle.dumps(known, protocol)
    assert check_pickle(raw + b"more") == len(raw)
    (tmp_path / "x.pkl").write_bytes(raw)
    assert len(read_pickle(tmp_path / "x.pkl")) == 3000


# --- Kaldi -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (b"DV ", b"\4\xff\xff\xff\x7f"),
        (b"FM ", b"\4\xff\xff\xff\x7f" * 2),
        (b"CM ", bytes(8) + b"\xff\xff\xff\x7f" * 2),
        (b"CM ", bytes(12) + b"\xff\xff\xff\x7f"),
    ],
)
def test_an_archive_that_claims_much_takes_nothing(tmp_path: Path, kind: bytes, sizes: bytes) -> None:
    (tmp_path / "x.ark").write_bytes(b"u1 \0B" + kind + sizes + bytes(40))
    before = peak()
    with pytest.raises(DataError, match="broken vector for u1: it is cut short"):
        read_ark(tmp_path / "x.ark")
    assert peak() - before < 100


# --- YAML and JSON ---------------------------------------------------------------------------------------------------

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "at most 50000 values"),
        (MERGES, "at most 50000 values"),
        ("a: &a [*a]\n", "not YAML"),
        ("a: " + "[" * 5000, "at most 64 deep"),
        ("- " * 5000 + "a\n", "expected keys and values|not YAML|at most 64"),
        ("a: 2001-99-99\n", "not YAML: ValueError"),
        ("a: !!bool x\n", "not YAML: KeyError"),
        ("a: !!timestamp x\n", "not YAML: AttributeError"),
        ("a: " + "9" * 6000 + "\n", "not YAML: ValueError"),
        ("a: !!python/object/apply:os.system [true]\n", "not YAML"),
        ("# " + "x" * 300_000 + "\n", "at most 262144 characters"),
    ],
)
def test_hostile_yaml_is_one_error_at_once(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    for read in (read_yaml, read_rule, read_scale):
        started, before = time.monotonic(), peak()
        with pytest.raises(ConfigError, match=message) as caught:
            read(tmp_path / "x.yaml")
        assert caught.value.file == tmp_path / "x.yaml"
        assert time.monotonic() - started < 3
        assert peak() - before < 300


def test_aliases_of_a_bounded_number_are_read() -> None:
    assert load_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n")[0]["c"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[" * 80 + "]" * 80, '{"a": ' * 70 + "1" + "}" * 70, "9" * 6000, "9" * 400, "{", ""]
)
def test_hostile_json_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match=r"x\.json.*: expected JSON"):
        load_json(tmp_path / "x.json")


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize("order", "<>")
def test_text_of_numbers_that_are_no_characters(tmp_path: Path, code: int, order: str) -> None:
    body = struct.pack(f"{order}II", ord("a"), code)
    (tmp_path / "x.npz").write_bytes(npz(ids=npy("(2,)", f"{order}U1", body), vectors=npy("(2, 1)", body=bytes(16))))
    (tmp_path / "ids.npy").write_bytes(npy("(2,)", f"{order}U1", body))
    np.save(tmp_path / "vectors.npy", np.ones((2, 1)))
    for path in (tmp_path, tmp_path / "x.npz"):
        with pytest.raises(DataError, match="its text is none"):
            read_embeddings(path)
