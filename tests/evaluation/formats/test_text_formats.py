"""Lists as text."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evaluation import formats
from evaluation.formats import text
from evaluation.trials.lists import Key, Scores, Trials
from spkbase.errors import DataError

one_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
# what a column of text can hold: no ASCII white space, no zero byte, no half of a surrogate pair
ids = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters=" \t\n\r\x0b\x0c\0"), min_size=1, max_size=5
).filter(lambda name: not name.startswith("\ufeff"))
pair_lists = st.lists(st.tuples(ids, ids), min_size=1, max_size=20, unique=True)


@one_file
@given(pair_lists, st.data())
def test_scores_come_back_to_the_last_bit(tmp_path: Path, listed, draw) -> None:
    number = st.floats(allow_nan=False)
    values = draw.draw(st.lists(number, min_size=len(listed), max_size=len(listed)))
    formats.write_scores(tmp_path / "s.txt", Scores.from_ids(*zip(*listed, strict=True), values))
    again = formats.read_scores(tmp_path / "s.txt")
    assert list(again.pairs()) == listed
    assert again.values.tobytes() == np.array(values).tobytes()


@one_file
@given(pair_lists, st.data())
def test_keys_and_trials_come_back(tmp_path: Path, listed, draw) -> None:
    truth = draw.draw(st.lists(st.booleans(), min_size=len(listed), max_size=len(listed)))
    key = Key.from_ids(*zip(*listed, strict=True), truth)
    formats.write_key(tmp_path / "k.txt", key)
    formats.write_trials(tmp_path / "t.ndx", key)
    again = formats.read_key(tmp_path / "k.txt")
    assert list(again.pairs()) == listed
    assert again.is_target.tolist() == truth
    assert list(formats.read_trials(tmp_path / "t.ndx").pairs()) == listed
    assert list(formats.read_trials(tmp_path / "k.txt").pairs()) == listed


def test_the_form_is_kaldis(tmp_path: Path) -> None:
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
def test_line_ends_marks_and_blanks_do_not_matter(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "s.txt").write_bytes(raw)
    scores = formats.read_scores(tmp_path / "s.txt")
    assert list(zip(scores.pairs(), scores.values, strict=True)) == [(("a", "s"), 1.0), (("b", "s"), 2.0)]


MALFORMED = {
    "empty": (b"", None, "empty"),
    "blank": (b"\n\n", None, "empty"),
    "too few columns": (b"a s 1\nb 2\n", 2, "expected 3 columns .*, got 2: 'b 2'"),
    "too many columns": (b"a s 1\nb s 2 3\n", 2, "got 4"),
    "word": (b"a s 1\n\nb s high\n", 3, "expected a number as score, got 'high'"),
    "underscore": (b"a s 1_000\n", 1, "1_000"),
    "nan": (b"a s 1\nb s nan\n", 2, "NaN"),
    "repeated": (b"a s 1\nb s 2\na s 1\n", 3, "'a s' repeats line 1"),
    "latin-1": (b"a s 1\n\xe9 s 2\n", 2, "UTF-8"),
    "zero bytes": (b"a s 1\nb s 2\0\n", 2, "zero bytes"),
    "gzip": (b"\x1f\x8b\x08\x00", None, "decompressed"),
    "utf-16": ("a s 1\n".encode("utf-16"), 1, "zero bytes"),
    "long line": (b"a s 1\n" + b"x" * 1_000_000 + b"\n", 2, "got 1: 'xxx"),
}


@pytest.mark.parametrize(("raw", "line", "words"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_scores_are_refused_with_the_line(tmp_path: Path, raw: bytes, line: int | None, words: str) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=words) as caught:
        formats.read_scores(path)
    assert (caught.value.file, caught.value.line) == (path, line)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        (b"a s target\nb s impostor\n", 2, "expected target or nontarget, got 'impostor'"),
        (b"a s target\nb s\n", 2, "expected 3 columns"),
        (b"a s target\na s nontarget\n", 2, "repeats line 1"),
        (b"a s 0.5\n", 1, "expected target or nontarget, got '0.5'"),
        (b"", None, "empty"),
    ],
)
def test_malformed_keys_are_refused_with_the_line(tmp_path: Path, raw: bytes, line: int | None, words: str) -> None:
    (tmp_path / "k.txt").write_bytes(raw)
    with pytest.raises(DataError, match=words) as caught:
        formats.read_key(tmp_path / "k.txt")
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("raw", "words"), [(b"a\n", "got 1"), (b"a s\nb s t\n", "got 3"), (b"a s 2\n", "'2'"), (b"a b c d\n", "got 4")]
)
def test_malformed_trials_are_refused(tmp_path: Path, raw: bytes, words: str) -> None:
    (tmp_path / "t.txt").write_bytes(raw)
    with pytest.raises(DataError, match=words):
        formats.read_trials(tmp_path / "t.txt")


def cut(raw: bytes) -> object:
    """What three columns of a text are, or why there are none."""
    try:
        return [list(column) for column in text.cut_columns(Path("s"), raw, 3, "three").fields]
    except DataError as error:
        return str(error)


@settings(max_examples=300)
@given(st.text("ab1 \t\n\r\x0b\"'#\\,é\x85\u2028\ufeff", max_size=60).map(str.encode) | st.binary(max_size=30))
@example("\ufeff1 1 1".encode())
def test_large_texts_are_cut_as_small_ones(raw: bytes) -> None:
    raw = raw.replace(b"\0", b"")
    expected = cut(raw)
    with mock.patch.object(text, "_LARGE", 0):
        assert cut(raw) == expected


def test_errors_of_large_texts_name_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_LARGE", 0)
    path = tmp_path / "s.txt"
    path.write_text("\n".join(f"m{number} segment 0.5\n" for number in range(100)))
    assert len(formats.read_scores(path)) == 100
    for wrong, words in (("m70 segment x", "got 'x'"), ("m1 segment 1", "repeats line 3"), ("m70 1", "got 2")):
        lines = [f"m{number} segment 0.5\n" for number in range(100)]
        path.write_text("\n".join([*lines[:70], f"{wrong}\n", *lines[71:]]))
        with pytest.raises(DataError, match=words) as caught:
            formats.read_scores(path)
        assert caught.value.line == 141


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\nb", "a\0b", "\ufeffa", "\udcff"])
def test_an_id_that_would_tear_its_line_is_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot hold"):
        formats.write_trials(tmp_path / "t.txt", Trials.from_ids([name], ["s"]))
    assert not list(tmp_path.iterdir())


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text("as1.\n \t_nain-\ufeffé\x85\u2028", max_size=40).map(str.encode))
def test_no_input_ends_in_anything_but_a_data_error(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x").write_bytes(raw)
    for read in (formats.read_scores, formats.read_key, formats.read_trials):
        with contextlib.suppress(DataError):
            assert len(read(tmp_path / "x"))


@pytest.mark.parametrize("name", ["s.txt", "s.h5"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    """A limit on the size of files stands in for the full disk."""
    code = """
import resource, signal, sys
import h5py
from evaluation import formats
from spkbase.errors import DataError
from evaluation.trials import Scores
import numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
names = [f"m{number}" for number in range(20000)]
scores = Scores.from_ids(names, ["s"] * len(names), np.random.default_rng(0).normal(size=len(names)))
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    formats.write_scores(sys.argv[1], scores)
except DataError as error:
    print("refused", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("refused"), done.stderr
    assert not list(tmp_path.iterdir())
