"""Scores of a closed set: each segment's are centred over the models that it was scored against."""

import numpy as np
import pytest
from command_lines import passes, refused
from numpy.testing import assert_allclose

from evaluation.calibration import closed_set_scores, enrolled_blocks
from evaluation.formats import read_scores
from evaluation.linkage import ranks_from_scores
from evaluation.trials import Key, Scores
from spkbase.errors import DataError


def cross(models, segments):
    """Every model against every segment."""
    pairs = [(model, segment) for model in models for segment in segments]
    return [model for model, _ in pairs], [segment for _, segment in pairs]


def test_centring_does_not_depend_on_the_order_of_trials():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((4, 7))
    models, segments = cross(list("abcd"), list("stuvwxy"))
    order = rng.permutation(28)
    values = matrix.reshape(-1)[order]
    scores = Scores.from_ids(
        [models[row] for row in order], [segments[row] for row in order], values
    )
    expected = (matrix - matrix.mean(axis=0)).reshape(-1)[order]
    found = closed_set_scores(scores)
    assert_allclose(found.values, expected, atol=1e-15)
    assert list(found.pairs()) == list(scores.pairs())


def test_each_sex_forms_its_own_closed_set():
    women, men = cross(["a", "b", "c"], ["s", "t"]), cross(["x", "y"], ["u", "v", "w"])
    scores = Scores.from_ids(women[0] + men[0], women[1] + men[1], np.arange(12.0) ** 2)
    assert enrolled_blocks(scores).tolist() == [0] * 6 + [1] * 6
    found = closed_set_scores(scores).values
    for segment in "stuvw":
        rows = [row for row, pair in enumerate(scores.pairs()) if pair[1] == segment]
        assert_allclose(found[rows].sum(), 0, atol=1e-12)


def test_centring_keeps_ranks_and_removes_channel_offsets():
    rng = np.random.default_rng(1)
    models, segments = cross([f"m{n}" for n in range(5)], [f"s{n}" for n in range(15)])
    owners = {
        segment: models[15 * (number % 5)] for number, segment in enumerate(dict.fromkeys(segments))
    }
    is_target = [owners[segment] == model for model, segment in zip(models, segments, strict=True)]
    key = Key.from_ids(models, segments, is_target)
    channel = {segment: 10 * rng.standard_normal() for segment in owners}
    values = rng.standard_normal(75) + 3 * np.array(is_target)
    shifted = Scores.from_ids(models, segments, values + [channel[segment] for segment in segments])
    found = closed_set_scores(shifted)
    assert_allclose(
        found.values,
        closed_set_scores(Scores.from_ids(models, segments, values)).values,
        atol=1e-12,
    )
    for name in ("beaters", "ties"):
        assert getattr(ranks_from_scores(found, key), name).tolist() == (
            getattr(ranks_from_scores(shifted, key), name).tolist()
        )


@pytest.mark.parametrize(
    ("models", "segments", "values", "message"),
    [
        (["a", "b", "a"], ["s", "s", "t"], [1, 2, 3], "not a full cross"),
        (["a", "b", "b", "c"], ["s", "s", "t", "t"], [1, 2, 3, 4], "not a full cross"),
        (["a", "b", "c"], ["s", "s", "t"], [1, 2, 3], "only one model"),
        (["a", "b"], ["s", "s"], [1, np.inf], "infinite"),
        (["a", "c", "b", "c"], ["s", "s", "t", "t"], [1, 2, 3, 4], "not a full cross"),
    ],
)
def test_open_sets_are_refused_with_a_reason(models, segments, values, message):
    with pytest.raises(DataError, match=message):
        closed_set_scores(Scores.from_ids(models, segments, np.array(values, float)))


def test_the_command_centres_scores_or_explains_why_it_cannot(tmp_path):
    path, output = tmp_path / "scores", tmp_path / "centred"
    path.write_text("a s 1\nb s 3\na t -1\nb t 0\n")
    arguments = ["normalise", "-s", path, "-o", output, "--method", "closed-set"]
    passes(*arguments)
    assert read_scores(output).values.tolist() == [-1, 1, -0.5, 0.5]
    path.write_text("a s 1\nb s 3\na t -1\n")
    assert "not a full cross" in refused(*arguments)
