"""Side information: what an attacker knows about speakers, read from tables and compared over trials."""

import itertools

import numpy as np
import pytest

from evaluation.trials import Key, find_speakers, match_sides, read_side, side_of
from spkbase.errors import DataError


@pytest.mark.parametrize("seed", range(25))
def test_matches_equal_a_loop_over_trials(seed):
    rng = np.random.default_rng(seed)
    people = [f"s{number}" for number in range(6)]
    pairs = list(itertools.product(people, [f"{name}/t" for name in people]))
    key = Key.from_ids(
        *zip(*pairs, strict=True), [segment[:2] == model for model, segment in pairs]
    )
    known = dict(zip(people, rng.choice(["f", "m", ""], 6), strict=True))
    expected = [
        "" in (known[model], known[segment[:2]]) or known[model] == known[segment[:2]]
        for model, segment in pairs
    ]
    by_speaker = match_sides(key, known, speakers=find_speakers(key, segment_speakers="/"))
    assert by_speaker.tolist() == expected
    by_id = known | {f"{name}/t": known[name] for name in people}
    assert match_sides(key, by_id).tolist() == expected


def test_columns_of_a_table_become_one_value(tmp_path):
    path = tmp_path / "side.csv"
    path.write_text("id,sex,region\na,f,north\nb,m,\n")
    assert read_side(path) == {"a": "f / north", "b": ""}
    path.write_text("id\na\n")
    with pytest.raises(DataError, match="at least one more column"):
        read_side(path)


def test_a_speaker_without_side_information_raises():
    assert side_of(["b", "a"], {"a": "f", "b": "m"}).tolist() == ["m", "f"]
    with pytest.raises(DataError, match="1 of 2 speakers are not in the side information: 'c'"):
        side_of(["a", "c"], {"a": "f"})
