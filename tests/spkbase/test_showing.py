"""Texts in one line, tables in HTML, data frames."""

from dataclasses import dataclass

import numpy as np
import pytest

from spkbase.showing import Tabular, brief, html_table, one_line


@one_line
@dataclass(frozen=True)
class Record:
    name: str
    values: np.ndarray
    parts: tuple[str, ...] = ()


class Table(Tabular):
    def __init__(self, columns):
        self.columns = columns

    def __repr__(self):
        return "Table(<b>)"

    def to_columns(self):
        return self.columns


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((2, 3), np.float32), "<2 x 3 float32>"),
        (("a",), "('a',)"),
        ([1, 2, 3, 4, 5], "[1, 2, 3, 4, ... 1 more]"),
        ("a\nb", r"'a\nb'"),
        ("x" * 100, "'" + "x" * 56 + "..."),
        (len, "builtins.len"),
    ],
)
def test_values_are_abbreviated(value, text):
    assert brief(value) == text


def test_short_records_are_shown_in_full():
    assert (
        repr(Record("a", np.arange(2), ("b",))) == "Record(name='a', values=[0, 1], parts=('b',))"
    )
    plain = dataclass(frozen=True)(type("Plain", (), {"__annotations__": {"x": float, "y": str}}))
    assert repr(one_line(plain)(0.5, "z")) == "Plain(x=0.5, y='z')"


def test_tables_are_escaped():
    """No name in a result can inject markup."""
    table = html_table(
        {"<script>": ["</td>&", "a"], "n": [1, 2.5]},
        caption="<i>",
        notes=["<img src=x onerror=alert(1)>"],
    )
    for text in ("<script>", "</td>&", "<i>", "<img"):
        assert text not in table
    for text in ("&lt;script&gt;", "&lt;/td&gt;&amp;", "&lt;i&gt;", "&lt;img"):
        assert text in table
    assert table.index("&lt;i&gt;") < table.index("<table") < table.index("&lt;img")
    assert table.count("<td") == 4
    assert "<p>Table</p>" in Table({"x": [1]})._repr_html_()


def test_long_records_are_printed_in_full():
    @one_line
    @dataclass
    class Found:
        first: str
        second: str
        last: float

    found = Found("a" * 90, "b" * 150, 0.25)
    assert len(repr(found)) < len(str(found))
    assert str(found).splitlines() == [
        "Found",
        f"  first={'a' * 90!r}",
        f"  second={'b' * 150!r}",
        "  last=0.25",
    ]
    assert str(Found("a", "b", 0.25)) == repr(Found("a", "b", 0.25))
