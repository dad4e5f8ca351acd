"""Lists under damage: what is still read joins each trial with its own score, and long lines need no long time.

That no input ends in another error is held by `tests.fuzz`.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaluation import formats
from evaluation.formats.reading import read_split
from evaluation.formats.text import Choice
from evaluation.trials.lists import Key, Scores, Trials
from spkbase.errors import DataError

READERS: tuple[Callable[[Path], Trials], ...] = (
    formats.read_scores,
    formats.read_key,
    formats.read_trials,
    lambda path: formats.read_scores(path, Choice("score,model,segment")),
    lambda path: formats.read_scores(path, Choice(model=("model",), segment=("segment", "score"))),
)


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
