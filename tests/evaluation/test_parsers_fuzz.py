"""Parsers under damaged and random input: a list, or a DataError; never another error, never a shifted join.

The daily run takes some hundreds of inputs of each kind, the slow one at least 10,000 and 60 seconds.
"""

from __future__ import annotations

import gzip
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluation import formats
from evaluation.errors import DataError
from evaluation.formats import Choice
from evaluation.inputs import read_split
from evaluation.trials import Key, Scores, Trials
from evaluation.vpc2022 import read_results

READERS: tuple[Callable[[Path], Trials], ...] = (
    formats.read_scores,
    formats.read_key,
    formats.read_trials,
    lambda path: formats.read_scores(path, Choice("score,model,segment")),
    lambda path: formats.read_scores(path, Choice(model=("model",), segment=("segment", "score"))),
)
WORDS = [
    *(b"model segment score target nontarget enrol test label 1 0 -1.5 2e3 nan inf -inf 1_0 True a b s1 s2".split()),
    *("é 語 \ufeff \x85 \u2028".encode().split(b" ")),
    *(b"\xff", b"\0", b'"', b"'", b"#", b"x" * 200),
]
GLUE = [b" ", b" ", b"\n", b"\n", b"\t", b",", b",", b";", b"\r\n", b"\r", b"", b"\x0b", b"  "]


def samples() -> list[bytes]:
    """A small good file of each format."""
    ids = ["a", "a", "b", "b"], ["s1", "s2", "s1", "é/2"]
    lists = {
        formats.write_scores: Scores.from_ids(*ids, [1.5, -2, 0, np.inf]),
        formats.write_key: Key.from_ids(*ids, [True, False, False, True]),
    }
    good = [
        b"1 a s\n0 b s\n",
        b"a s 1 0.5\nb s 0 1.5\n",
        b"a a s 2\nb a s 1\n",
        b'"model"\t"test"\t"llr"\n"a"\t"s"\t1\n',
    ]
    for write, listed in lists.items():
        for extension in ("txt", "csv", "npz", "h5"):
            path = Path(f"{FOLDER}/x.{extension}")
            write(path, listed)
            good += [path.read_bytes(), gzip.compress(path.read_bytes())]
    return good


FOLDER = Path()


def inputs(seed: int) -> Iterator[bytes]:
    rng = np.random.default_rng(seed)
    good = samples()
    while True:
        kind = rng.integers(4)
        if kind == 0:
            yield rng.bytes(int(rng.integers(0, 80)))
        elif kind == 1:
            parts = [
                rng.choice(np.array([WORDS, GLUE][place % 2], object)) for place in range(int(rng.integers(0, 40)))
            ]
            yield b"".join(parts)
        else:
            yield damaged(rng, good[int(rng.integers(len(good)))])


def damaged(rng: np.random.Generator, raw: bytes) -> bytes:
    """Cut, flip, insert, repeat or shuffle a little of a good file."""
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(0, len(data) + 1))
        kind = int(rng.integers(5))
        if kind == 0:
            del data[place:]
        elif kind == 1 and data:
            data[min(place, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            data[place:place] = WORDS[int(rng.integers(len(WORDS)))]
        elif kind == 3:
            data[place : place + int(rng.integers(1, 9))] = b""
        else:
            data += data[place : place + 40]
    return bytes(data)


def check(path: Path) -> int:
    """Read with every reader; count those that found a list."""
    found = 0
    for read in READERS:
        try:
            listed = read(path)
        except DataError:
            continue
        found += 1
        assert len(listed)
        # what was built without checks would pass them
        Trials(listed.model_ids, listed.segment_ids, listed.models, listed.segments)
        if isinstance(listed, Scores):
            assert not np.isnan(listed.values).any()
    return found


def fuzz(folder: Path, seed: int, at_least: int, seconds: float) -> int:
    global FOLDER
    FOLDER = folder
    path, number, found, start = folder / "fuzzed", 0, 0, time.monotonic()
    for number, raw in enumerate(inputs(seed), 1):
        path.write_bytes(raw)
        try:
            found += check(path)
        except Exception as error:
            raise AssertionError(f"input {number} of seed {seed}: {raw!r}") from error
        if number >= at_least and time.monotonic() - start >= seconds:
            break
    assert found > number / 20  # not only refusals
    return number


def test_no_input_ends_in_another_error(tmp_path: Path) -> None:
    assert fuzz(tmp_path, seed=1, at_least=400, seconds=0) >= 400


@pytest.mark.slow
def test_no_input_ends_in_another_error_at_length(tmp_path: Path) -> None:
    assert fuzz(tmp_path, seed=2, at_least=10_000, seconds=60) >= 10_000


def joins(seed: int, count: int, folder: Path) -> int:
    """Damage lines of scores; whatever is still read joins each trial with its own score."""
    rng = np.random.default_rng(seed)
    pairs = [(f"m{number % 5}", f"s{number}") for number in range(40)]
    own = {pair: float(place) for place, pair in enumerate(pairs)}
    key = Key.from_ids(*zip(*pairs, strict=True), [number % 3 == 0 for number in range(40)])
    formats.write_key(folder / "key.txt", key)
    expected = [
        sorted(own[pair] for pair, one in zip(pairs, key.is_target, strict=True) if one == kind)
        for kind in (True, False)
    ]
    read = 0
    for _ in range(count):
        rows = [f"{a} {b} {value!r}" for (a, b), value in own.items()]
        rng.shuffle(rows)
        place = int(rng.integers(len(rows)))
        damage = int(rng.integers(7))
        if damage == 1:
            del rows[place]
        elif damage == 2:
            rows.insert(place, rows[0])
        elif damage == 3:
            rows[place] = rows[place].replace("m", "n", 1)
        elif damage == 4:
            rows[place] = rows[place].rsplit(" ", 1)[0] + " nan"
        elif damage == 5:
            rows[place] = rows[place].split(" ", 1)[1]
        elif damage == 6:
            rows[place] += " 7"
        (folder / "scores.txt").write_text("\n".join(rows))
        try:
            found = read_split(folder / "scores.txt", folder / "key.txt")
        except DataError as error:
            refused = damage != 0 and error.line is not None
        else:
            refused = False
            assert damage == 0
        if damage:
            assert refused
            continue
        assert [sorted(side.tolist()) for side in found] == expected
        read += 1
    return read


def test_a_join_is_never_shifted(tmp_path: Path) -> None:
    assert joins(3, 150, tmp_path) > 5


@pytest.mark.slow
def test_a_join_is_never_shifted_at_length(tmp_path: Path) -> None:
    assert joins(4, 10_000, tmp_path) > 500


def results_fuzz(folder: Path, seed: int, at_least: int, seconds: float) -> int:
    rng = np.random.default_rng(seed)
    good = (
        b"ASV-libri_dev_enrolls-libri_dev_trials_f\n  EER: 14.91%\n  Cllr (min/act): 0.466/12.520\n"
        b"  ROCCH-EER: 14.793%\n"
        b"ASR-libri_dev_asr  %WER 3.82 [ 1518 / 39783, 185 ins, 140 del, 1193 sub ] exp/a\n"
        b"libri_dev_trials_f  Pitch_correlation: mean=0.6374 std=0.1711\nWeighted average EER dev orig: 3.539\n"
    )
    start, number = time.monotonic(), 0
    while number < at_least or time.monotonic() - start < seconds:
        number += 1
        (folder / "results").write_bytes(damaged(rng, good))
        try:
            read_results(folder / "results")
        except DataError:
            continue
    return number


def test_results_of_challenges_end_in_no_other_error(tmp_path: Path) -> None:
    assert results_fuzz(tmp_path, 5, 300, 0) >= 300


@pytest.mark.slow
def test_results_of_challenges_end_in_no_other_error_at_length(tmp_path: Path) -> None:
    assert results_fuzz(tmp_path, 6, 10_000, 60) >= 10_000


def test_a_million_characters_in_a_line(tmp_path: Path) -> None:
    for raw in (b"x" * 1_000_000, b"a s 1\n" + b"x" * 1_000_000, b"model,segment,score\n" + b"," * 1_000_000):
        (tmp_path / "x").write_bytes(raw)
        assert check(tmp_path / "x") == 0


def test_an_archive_of_zeros_needs_little_memory(tmp_path: Path) -> None:
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb") as file:
        file.write(bytes(10_000_000))
    (tmp_path / "x").write_bytes(content.getvalue())
    assert check(tmp_path / "x") == 0
