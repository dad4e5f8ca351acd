"""The benchmark of training speech: which speakers a cell has, and its tables."""

from itertools import pairwise

import pytest

from benchmarks.training_curves import Cell, choose_speakers, parse_cell
from spkbase.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25x2", Cell(25, 2, False, 40, 0)),
        ("251x2+", Cell(251, 2, True, 40, 0)),
        ("251x8@3", Cell(251, 8, False, 40, 3)),
        ("251x2+:20@1", Cell(251, 2, True, 20, 1)),
    ],
)
def test_cells_are_read_as_they_are_written(text, expected):
    assert parse_cell(text) == expected
    assert expected.name == text


@pytest.mark.parametrize(
    "text", ["", "25", "25x", "x2", "25x2@", "25x2:", "25x2@1:20", "25x2-", "-5x2", "25x2+@a"]
)
def test_damaged_cells_are_named(text):
    with pytest.raises(ConfigError, match="expected SPEAKERSxVERSIONS"):
        parse_cell(text)


def test_a_smaller_set_of_speakers_is_part_of_each_larger_one():
    sexes = {f"w{number}": "f" for number in range(12)} | {f"m{number}": "m" for number in range(7)}
    sizes = (1, 2, 8, 14, 19, 30)
    sets = [choose_speakers(sexes, size, seed=0) for size in sizes]
    assert [len(chosen) for chosen in sets] == [1, 2, 8, 14, 19, 19]
    for smaller, larger in pairwise(sets):
        assert smaller <= larger
    assert sum(sexes[name] == "f" for name in sets[2]) == 4
    assert sum(sexes[name] == "m" for name in sets[3]) == 7


def test_another_seed_chooses_other_speakers():
    sexes = {f"w{number}": "f" for number in range(50)}
    assert choose_speakers(sexes, 10, seed=0) != choose_speakers(sexes, 10, seed=1)
