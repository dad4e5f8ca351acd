"""Lists as text."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evaluation import formats
from evaluation.formats import text
from evaluation.trials import Key, Scores, Trials
from spkbase.errors import DataError


def test_text_lists_have_the_form_of_kaldi(tmp_path):
    scores = Scores.from_ids(["b", "é/1"], ["x" * 150, "s"], [0.1, -np.inf])
    formats.write_scores(tmp_path / "scores", scores)
    assert (tmp_path / "scores").read_text("utf-8") == f"b {'x' * 150} 0.1\né/1 s -inf\n"
    formats.write_key(tmp_path / "trials", Key.from_ids(["b", "a"], ["s", "s"], [True, False]))
    assert (tmp_path / "trials").read_text() == "b s target\na s nontarget\n"
    formats.write_trials(tmp_path / "ndx", Trials.from_ids(["b", "a"], ["s", "s"]))
    assert (tmp_path / "ndx").read_text() == "b s\na s\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"a s 1\nb s 2e0\n",
        b"a s 1\nb s 2",
        b"a s 1\r\nb s 2\r\n",
        b"\xef\xbb\xbfa s 1\nb s 2\n",
        b"\n  a\ts   1 \n\n\nb s 2\n\n",
    ],
)
def test_line_ends_byte_order_marks_and_blanks_are_ignored(tmp_path, raw):
    (tmp_path / "s.txt").write_bytes(raw)
    scores = formats.read_scores(tmp_path / "s.txt")
    assert list(zip(scores.pairs(), scores.values, strict=True)) == [
        (("a", "s"), 1.0),
        (("b", "s"), 2.0),
    ]


MALFORMED = {
    "empty": ("scores", b"", None, "empty"),
    "blank": ("scores", b"\n\n", None, "empty"),
    "too few columns": ("scores", b"a s 1\nb 2\n", 2, "expected 3 columns .*, got 2: 'b 2'"),
    "too many columns": ("scores", b"a s 1\nb s 2 3\n", 2, "got 4"),
    "word": ("scores", b"a s 1\n\nb s high\n", 3, "expected a number as score, got 'high'"),
    "underscore": ("scores", b"a s 1_000\n", 1, "1_000"),
    "nan": ("scores", b"a s 1\nb s nan\n", 2, "NaN"),
    "repeated": ("scores", b"a s 1\nb s 2\na s 1\n", 3, "'a s' is repeated; also in line 1"),
    "latin-1": ("scores", b"a s 1\n\xe9 s 2\n", 2, "UTF-8"),
    "zero bytes": ("scores", b"a s 1\nb s 2\0\n", 2, "zero bytes"),
    "gzip": ("scores", b"\x1f\x8b\x08\x00", None, "decompressed"),
    "utf-16": ("scores", "a s 1\n".encode("utf-16"), 1, "zero bytes"),
    "no label": (
        "key",
        b"a s target\nb s perhaps\n",
        2,
        "expected target or nontarget, got 'perhaps'",
    ),
    "labels missing": ("key", b"a s target\nb s\n", 2, "expected 3 columns"),
    "scores for a key": (
        "key",
        b"a s 0.5\nb s 1.5\n",
        1,
        "got '0.5', '1.5'; also in line 2 .*exchanged",
    ),
    "trials of one column": ("trials", b"a\n", 1, "got 1"),
    "trials of two and three": ("trials", b"a s\nb s t\n", 2, "got 3"),
    "trials with numbers": ("trials", b"a s 2\n", 1, "'2'"),
    "trials of four": ("trials", b"a b c d\n", 1, "got 4"),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(("kind", "raw", "line", "words"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_lists_are_refused_with_the_line(
    tmp_path, monkeypatch, kind, raw, line, words, large
):
    monkeypatch.setattr(text, "_LARGE", 0 if large else 1 << 40)
    path = tmp_path / "s.txt"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=words) as caught:
        getattr(formats, f"read_{kind}")(path)
    assert (caught.value.file, caught.value.line) == (path, line)


def read(path, kind):
    """What a file holds, or why it is refused."""
    try:
        listed = getattr(formats, f"read_{kind}")(path)
    except DataError as error:
        return str(error)
    return [column.tolist() for column in listed.to_columns().values()]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text("ab1 \t\n\r\x0b\"'#\\,é\x85\u2028", max_size=60).map(str.encode)
    | st.binary(max_size=30)
)
@example(b"#\t\n1\r1")
@pytest.mark.parametrize("kind", ["scores", "key", "trials"])
def test_large_files_are_read_as_small_ones_or_raise_a_data_error(tmp_path, kind, raw):
    (tmp_path / "x").write_bytes(raw)
    expected = read(tmp_path / "x", kind)
    with mock.patch.object(text, "_LARGE", 0):
        assert read(tmp_path / "x", kind) == expected


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\nb", "a\0b", "\ufeffa", "\udcff"])
def test_ids_with_line_breaks_are_refused_when_written(tmp_path, name):
    with pytest.raises(DataError, match="cannot hold"):
        formats.write_trials(tmp_path / "t.txt", Trials.from_ids([name], ["s"]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["Unix", "Windows"])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("# made by X\n", "a s 1.5\nb s -2\n"),
        ("\n# made by X\r\n#\tof scores: test, set\n", "a s 1.5\nb s -2\n"),
        ("# scores of the test set\n", "model,segment,score\na,s,1.5\nb,s,-2\n"),
        ("# made by X\n# model segment score\n", "a s 1.5\nb s -2\n"),
        ("# score model segment\n", "1.5 a s\n-2 b s\n"),
    ],
)
def test_comments_above_a_list_are_skipped(tmp_path, monkeypatch, above, below, large, end):
    monkeypatch.setattr(text, "_LARGE", 0 if large else 1 << 20)
    path = tmp_path / "scores.txt"
    path.write_bytes((above + below).replace("\r\n", "\n").replace("\n", end).encode())
    scores = formats.read_scores(path)
    assert [*scores.pairs()] == [("a", "s"), ("b", "s")]
    assert scores.values.tolist() == [1.5, -2.0]
    path.write_text(above + below + "b s\n")
    with pytest.raises(DataError, match=f":{(above + below).count(chr(10)) + 1}: "):
        formats.read_scores(path)
