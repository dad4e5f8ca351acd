"""Reports as JSON and tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import DataError
from spkbase.files.json_and_tables import format_table, to_json, write_json


@dataclass(frozen=True)
class Result:
    eer: float
    counts: tuple[int, ...]


def test_json_keeps_the_order_and_says_what_it_has_no_number_for(tmp_path: Path) -> None:
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


def test_json_floats_come_back_to_the_last_bit() -> None:
    values = np.random.default_rng(0).normal(size=100)
    assert json.loads(to_json(values)) == values.tolist()


def test_what_json_cannot_hold_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="complex"):
        write_json(tmp_path / "r.json", {"a": 1j})
    assert not list(tmp_path.iterdir())


ROWS = [{"system": "svm|nap", "EER": 3.14159, "n": 10244}, {"system": "ubm", "EER": None, "n": 5, "left out": 1}]


def test_tables_align_numbers_to_the_right() -> None:
    assert format_table(ROWS, {"system": "", "EER": ".2f", "n": ",d"}).split("\n") == [
        "system    EER       n",
        "-------  ----  ------",
        "svm|nap  3.14  10,244",
        "ubm                 5",
    ]


def test_tables_in_markdown() -> None:
    assert format_table(ROWS, ["system", "n"], markdown=True).split("\n") == [
        "| system   |     n |",
        "| -------- | ----: |",
        r"| svm\|nap | 10244 |",
        "| ubm      |     5 |",
    ]


def test_cells_are_no_markup_in_markdown() -> None:
    (row,) = format_table([{"a": "[x](javascript:1) <b>\n`c` 5 [4, 6]"}], markdown=True).split("\n")[2:]
    assert row == r"| [x]\(javascript:1) \<b\> \`c\` 5 [4, 6] |"


def test_the_first_row_gives_the_columns() -> None:
    assert format_table([{"a": "x"}]) == "a\n---\nx"
    assert format_table([]) == ""
