"""The core: sorted scores and isotonic blocks against counting, search and sklearn-free pooling by hand."""

import numpy as np
import pytest
from hypothesis import given
from scipy.special import expit

from evaluation.metrics.sorted_scores import SortedScores, sort_scores
from spkbase.errors import DataError
from tests.score_strategies import classes


def pooled_by_hand(sequence):
    """Pool neighbours of falling share of targets until there is none, one pair at a time."""
    blocks = list(sequence)
    place = 0
    while place < len(blocks) - 1:
        (tar, non), (next_tar, next_non) = blocks[place], blocks[place + 1]
        if tar * next_non >= next_tar * non:
            blocks[place : place + 2] = [(tar + next_tar, non + next_non)]
            place = max(place - 1, 0)
        else:
            place += 1
    return blocks


@given(classes)
def test_runs_of_scores_equal_a_count(both):
    scores = sort_scores(*both)
    values = sorted({value + 0.0 for value in (*both[0], *both[1])})
    assert scores.thresholds.tolist() == values
    assert scores.target.tolist() == [both[0].count(value) for value in values]
    assert scores.nontarget.tolist() == [both[1].count(value) for value in values]
    assert scores.misses.tolist() == [
        sum(score < value for score in both[0]) for value in values
    ] + [len(both[0])]
    assert (scores.n_target, scores.n_nontarget, len(scores)) == (
        len(both[0]),
        len(both[1]),
        len(values),
    )


@given(classes)
def test_blocks_equal_a_plain_pooling(both):
    scores = sort_scores(*both)
    blocks = scores.blocks
    expected = pooled_by_hand(
        list(zip(scores.target.tolist(), scores.nontarget.tolist(), strict=True))
    )
    assert list(zip(blocks.target.tolist(), blocks.nontarget.tolist(), strict=True)) == expected
    assert blocks.first[0] == 0
    assert blocks.last[-1] == len(scores) - 1
    assert (blocks.first[1:] == blocks.last[:-1] + 1).all()
    for place in range(len(blocks)):
        within = slice(blocks.first[place], blocks.last[place] + 1)
        assert scores.target[within].sum() == blocks.target[place]
    assert (np.diff(blocks.llr) > 0).all()
    posterior = expit(blocks.llr + np.log(len(both[0]) / len(both[1])))
    np.testing.assert_allclose(
        posterior, blocks.target / (blocks.target + blocks.nontarget), rtol=1e-12
    )


@given(classes)
def test_laplace_smoothing_adds_a_trial_of_each_class_at_both_ends(both):
    """Its definition: single trials target, nontarget below and above all scores, pooled, then taken out again."""
    scores = sort_scores(*both)
    pairs = list(zip(scores.target.tolist(), scores.nontarget.tolist(), strict=True))
    expected = pooled_by_hand([(1.0, 0.0), (0.0, 1.0), *pairs, (1.0, 0.0), (0.0, 1.0)])
    prior = np.log(len(both[0]) / len(both[1]))
    llr = np.log([tar / non for tar, non in expected]) - prior
    for end in (0, -1):
        expected[end] = (expected[end][0] - 1, expected[end][1] - 1)
    real = [pair != (0, 0) for pair in expected]
    blocks = scores.laplace_blocks
    assert np.isfinite(blocks.llr).all()
    np.testing.assert_allclose(blocks.llr, llr[real], rtol=1e-12, atol=1e-12)
    kept = [pair for pair, one in zip(expected, real, strict=True) if one]
    assert list(zip(blocks.target.tolist(), blocks.nontarget.tolist(), strict=True)) == kept
    assert len(blocks.per_score()) == len(scores)


def test_scores_with_zero_weight_join_a_block_and_change_nothing():
    thresholds = np.arange(6.0)
    target, nontarget = np.array([0.0, 0, 1, 0, 2, 0]), np.array([0.0, 2, 0, 0, 1, 0])
    kept = target + nontarget > 0
    full = SortedScores(thresholds, target, nontarget).blocks
    bare = SortedScores(thresholds[kept], target[kept], nontarget[kept]).blocks
    assert full.llr.tolist() == bare.llr.tolist()
    assert (full.first[0], full.last[-1], len(full.per_score())) == (0, 5, 6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_weights": [1.0]}, r"target weights of shape \(2,\)"),
        ({"target_weights": [1.0, -1.0]}, "finite and not negative"),
        ({"target_weights": [1.0, np.nan]}, "finite and not negative"),
        ({"nontarget_weights": [np.inf]}, "finite and not negative"),
        ({"nontarget_weights": [0.0]}, "weight above 0, got none"),
    ],
)
def test_malformed_weights_are_refused(options, words):
    with pytest.raises(DataError, match=words):
        sort_scores([1.0, 2.0], [0.0], **options)
