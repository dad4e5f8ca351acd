"""The core: sorted scores and isotonic blocks against counting, search and sklearn-free pooling by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from evaluation.metrics.sorted_scores import SortedScores, pav, sort_scores
from spkbase.errors import DataError

tied = st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1.0, 2.0, np.inf]), min_size=1, max_size=12)
free = st.lists(st.floats(allow_nan=False), min_size=1, max_size=12)
classes = st.tuples(tied, tied) | st.tuples(free, free)


def pooled_by_hand(sequence: list[tuple[float, float]]) -> list[tuple[float, float]]:
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
def test_scores_by_counting(both: tuple[list[float], list[float]]) -> None:
    scores = sort_scores(*both)
    values = sorted({value + 0.0 for value in (*both[0], *both[1])})
    assert scores.thresholds.tolist() == values
    assert scores.target.tolist() == [both[0].count(value) for value in values]
    assert scores.nontarget.tolist() == [both[1].count(value) for value in values]
    assert scores.misses.tolist() == [sum(score < value for score in both[0]) for value in values] + [len(both[0])]
    assert (scores.n_target, scores.n_nontarget, len(scores)) == (len(both[0]), len(both[1]), len(values))


@given(classes)
def test_blocks_by_hand(both: tuple[list[float], list[float]]) -> None:
    scores = sort_scores(*both)
    blocks = pav(scores)
    expected = pooled_by_hand(list(zip(scores.target.tolist(), scores.nontarget.tolist(), strict=True)))
    assert list(zip(blocks.target.tolist(), blocks.nontarget.tolist(), strict=True)) == expected
    assert blocks.first[0] == 0
    assert blocks.last[-1] == len(scores) - 1
    assert (blocks.first[1:] == blocks.last[:-1] + 1).all()
    for place in range(len(blocks)):
        within = slice(blocks.first[place], blocks.last[place] + 1)
        assert scores.target[within].sum() == blocks.target[place]
    assert (np.diff(blocks.llr) > 0).all()
    posterior = expit(blocks.llr + np.log(len(both[0]) / len(both[1])))
    np.testing.assert_allclose(posterior, blocks.target / (blocks.target + blocks.nontarget), rtol=1e-12)


@given(classes)
def test_laplace_adds_a_trial_of_each_class_at_both_ends(both: tuple[list[float], list[float]]) -> None:
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


@given(classes, st.lists(st.integers(0, 3), min_size=24, max_size=24))
def test_weights_are_repetition(both: tuple[list[float], list[float]], numbers: list[int]) -> None:
    weights = [np.array([1, *numbers[1:]][: len(side)]) for side in both]
    weighted = sort_scores(*both, target_weights=weights[0], nontarget_weights=weights[1])
    repeated = sort_scores(*(np.repeat(side, count) for side, count in zip(both, weights, strict=True)))
    for name in ("thresholds", "target", "nontarget"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))


def test_scores_without_weight_belong_to_a_block_and_change_nothing() -> None:
    thresholds = np.arange(6.0)
    target, nontarget = np.array([0.0, 0, 1, 0, 2, 0]), np.array([0.0, 2, 0, 0, 1, 0])
    kept = target + nontarget > 0
    full = pav(SortedScores(thresholds, target, nontarget))
    bare = pav(SortedScores(thresholds[kept], target[kept], nontarget[kept]))
    assert full.llr.tolist() == bare.llr.tolist()
    assert (full.first[0], full.last[-1], len(full.per_score())) == (0, 5, 6)


def test_a_small_change_of_weights_changes_little() -> None:
    rng = np.random.default_rng(0)
    scores = sort_scores(rng.normal(1, 1, 500), rng.normal(0, 1, 2000))
    shaken = SortedScores(scores.thresholds, scores.target * (1 + 1e-13), scores.nontarget)
    np.testing.assert_allclose(pav(shaken).llr, pav(scores).llr, atol=1e-10)


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
def test_malformed_weights_are_refused(options: dict[str, list[float]], words: str) -> None:
    with pytest.raises(DataError, match=words):
        sort_scores([1.0, 2.0], [0.0], **options)


def test_one_class_alone_has_no_blocks() -> None:
    with pytest.raises(DataError, match="trials of both classes, got 0 target and 2 nontarget"):
        pav(SortedScores(np.zeros(1), np.zeros(1), np.full(1, 2.0)))


def test_blocks_and_hull_are_found_once_and_agree() -> None:
    scores = sort_scores([1.0, 3.0, 4.0, 4.0], [0.0, 2.0, 3.0])  # n t n (t n) tt
    assert scores.blocks is scores.blocks
    assert scores.hull is scores.hull
    assert scores.blocks.target.tolist() == [0, 2, 2]
    assert scores.blocks.nontarget.tolist() == [1, 2, 0]
    assert scores.hull.misses.tolist() == [0, 0, 2, 4]
    assert scores.hull.false_alarms.tolist() == [3, 2, 0, 0]
    assert scores.hull.p_miss.tolist() == [0, 0, 0.5, 1]


def test_untied_scores_have_targets_above_nontargets() -> None:
    untied = sort_scores([1.0, 1.0, 2.0], [0.0, 1.0]).untied
    assert untied.thresholds.tolist() == [0, 1, 1, 2]
    assert untied.target.tolist() == [0, 0, 2, 1]
    assert untied.nontarget.tolist() == [1, 1, 0, 0]
    assert untied.untied.thresholds.tolist() == untied.thresholds.tolist()


def test_single_precision_makes_ties() -> None:
    rounded = sort_scores([1.0, 1e300], [1.0 + 2.0**-30, 0.5]).in_single_precision
    assert rounded.thresholds.tolist() == [0.5, 1.0, np.inf]
    assert rounded.target.tolist() == [0, 1, 1]
    assert rounded.nontarget.tolist() == [1, 1, 0]
