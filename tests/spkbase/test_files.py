"""Files that are whole or absent; fingerprints; JSON, tables and what is read of others' texts."""

import errno
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import ConfigError, DataError
from spkbase.files import (
    atomic_path,
    fingerprint,
    format_table,
    load_json,
    load_yaml,
    read_bytes,
    read_id_list,
    write_bytes,
    write_json,
    write_text,
)


def only(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "full")])
def test_a_failed_write_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with (  # noqa: PT012
        pytest.raises((RuntimeError, KeyboardInterrupt, DataError)),
        atomic_path(path) as temporary,
    ):
        temporary.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert only(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_full_disk_names_the_file_and_the_remedy(tmp_path, number):
    expected = pytest.raises(DataError, match=r"a\.txt: cannot be written: .*free space")
    with expected as caught, atomic_path(tmp_path / "a.txt"):
        raise OSError(number, "a page of details")
    assert "page of details" not in str(caught.value)
    assert only(tmp_path) == []


def test_devices_and_pipes_are_refused_and_unchanged(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a device or a pipe"):
        write_text(pipe, "x")
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@dataclass(frozen=True)
class Options:
    rank: int = 3
    name: str = "a"


def test_fingerprints_are_equal_in_every_process():
    """A run goes on from what an earlier process wrote: this value may change only with the format's version."""
    expected = "a4b6e3ff"
    found = fingerprint({"b": (1, 2.5), "a": None}, "ü", Path("x/y"), Options())
    assert len(found) == 64
    assert found == fingerprint({"a": None, "b": [1, 2.5]}, "ü", "x/y", {"rank": 3, "name": "a"})
    assert found[:8] == expected


ARRAY = np.arange(6.0)


@pytest.mark.parametrize(
    "other",
    [ARRAY.astype(np.float32), ARRAY.reshape(2, 3), np.array([str(x) for x in ARRAY], object)],
)
def test_fingerprints_of_arrays_depend_on_values_not_layout(other):
    assert fingerprint(ARRAY) == fingerprint(np.arange(12.0)[:6])
    assert fingerprint(ARRAY) == fingerprint(np.column_stack([ARRAY, ARRAY])[:, 0]), (
        "the layout in memory is no matter"
    )
    assert fingerprint(ARRAY) != fingerprint(other)


@dataclass(frozen=True)
class Result:
    eer: float
    counts: tuple[int, ...]


def test_json_keeps_the_order_and_writes_infinity_and_nan_as_text(tmp_path):
    result = {
        "z": np.float32(0.5),
        "a": [np.inf, -np.inf, np.nan, None, True, "é"],
        "array": np.array([[1, 2]]),
        "result": Result(0.25, (1, 2)),
        "path": Path("x/y"),
        3: np.int64(4),
        "flag": np.bool_(False),
    }
    write_json(tmp_path / "r.json", result)
    raw = (tmp_path / "r.json").read_text("utf-8")
    assert raw.startswith('{\n  "z": 0.5,')
    assert raw.endswith("}\n")
    assert "é" in raw
    expected = {
        "z": 0.5,
        "a": ["inf", "-inf", None, None, True, "é"],
        "array": [[1, 2]],
        "result": {"eer": 0.25, "counts": [1, 2]},
        "path": "x/y",
        "3": 4,
        "flag": False,
    }
    assert json.loads(raw) == expected
    assert list(json.loads(raw)) == list(expected)


ROWS = [
    {"system": "svm|nap", "EER": 3.14159, "n": 10244},
    {"system": "ubm", "EER": None, "n": 5, "left out": 1},
]


def test_tables_are_written_in_markdown():
    assert format_table(ROWS, ["system", "n"], markdown=True).split("\n") == [
        "| system   |     n |",
        "| -------- | ----: |",
        r"| svm\|nap | 10244 |",
        "| ubm      |     5 |",
    ]


def test_cells_are_escaped_in_markdown():
    (row,) = format_table([{"a": "[x](javascript:1) <b>\n`c` 5 [4, 6]"}], markdown=True).split(
        "\n"
    )[2:]
    assert row == r"| [x]\(javascript:1) \<b\> \`c\` 5 [4, 6] |"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected lines 'id speaker', got an empty file"),
        (b"u1 a\nu2\n", ":2: expected 'id speaker', got 1 column: 'u2'"),
        (b"u1 a\nu1 a\n", ":2: 'u1' is repeated, first in line 1"),
        (b"u1 a\nu2 \xff\n", ":2: expected text in UTF-8, but it holds other bytes"),
        (b"u1 a\nu2 \0\n", ":2: expected text in UTF-8, but it holds zero bytes"),
        (gzip.compress(b"u1 a", mtime=0)[:-9], "cannot be decompressed"),
    ],
)
def test_malformed_lists_of_ids_are_refused(tmp_path, raw, message):
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        read_id_list(tmp_path / "x", "id speaker")


def test_lists_of_ids_are_read(tmp_path):
    write_bytes(tmp_path / "x.gz", b"\xef\xbb\xbfu1 the  words \r\n\nu2\n")
    assert read_id_list(tmp_path / "x.gz", "id words", n_columns=1, rest=True) == {
        "u1": "the  words",
        "u2": "",
    }
    assert read_bytes(tmp_path / "x.gz").endswith(b"u2\n")


@pytest.mark.parametrize("text", ["", "{", "\xff"])
def test_malformed_json_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"x\.json.*: expected (JSON|text in UTF-8)"):
        load_json(tmp_path / "x.json")


@pytest.mark.parametrize("text", ["a: [", "2001-99-99", "!!bool x", "!!python/name:os.system"])
def test_malformed_yaml_is_refused(text):
    with pytest.raises(ConfigError, match=r"x\.yaml.*: not YAML"):
        load_yaml(text, file="x.yaml")
