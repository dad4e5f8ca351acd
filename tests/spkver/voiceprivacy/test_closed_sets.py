"""Closed sets of a condition: the error rate of centred scores, and how often the speaker is first among all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evaluation.linkage import Ranks, linkability_over_draws
from evaluation.metrics import eer, worst_case
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling
from spkver.voiceprivacy.condition_metrics import (
    centred_by_model,
    closed_set_of,
    figures_of_speakers,
    impostors_apart,
    match_by_rank,
    rank_owners,
    worst_of,
)

WOMEN, MEN = ["f1", "f2", "f3", "f4"], ["m1", "m2", "m3"]
RESAMPLING = Resampling(50, 0)


def trials(seed: int, *, left_out: int = 0) -> tuple[Scores, Key, dict[str, str]]:
    """Every woman against every segment of women, the same of men; each segment has a channel of its own."""
    rng = np.random.default_rng(seed)
    pairs = [
        (model, f"{owner}-{take}", model == owner)
        for group in (WOMEN, MEN)
        for owner in group
        for take in range(6)
        for model in group
    ]
    pairs = pairs[: len(pairs) - left_out]
    models, segments, same = ([pair[place] for pair in pairs] for place in range(3))
    channel = dict.fromkeys(segments, 0.0)
    channel = {
        segment: 4 * np.random.default_rng(number).standard_normal()
        for number, segment in enumerate(channel)
    }
    values = [
        2.5 * is_target + channel[segment] + rng.standard_normal()
        for _, segment, is_target in pairs
    ]
    speakers = {segment: segment.partition("-")[0] for segment in segments}
    return Scores.from_ids(models, segments, values), Key.from_ids(models, segments, same), speakers


def tables_of(draws: list[Scores], key: Key) -> list[Ranks]:
    genders = {name: name[0] for name in WOMEN + MEN}
    found = [rank_owners(scores, key, genders)[0] for scores in draws]
    assert all(found)
    return found  # type: ignore[return-value]


def test_the_mean_over_draws_of_centred_scores_equals_hand_computed_values() -> None:
    (first, key, speakers), (second, _, _) = trials(0), trials(1)
    draws = [first, second]
    found, of_draws, notes = closed_set_of(draws, key, speakers, tables_of(draws, key), RESAMPLING)
    assert found is not None
    assert notes == {}
    rates, shares = [], []
    for scores in draws:
        centred, firsts = np.empty(len(scores)), []
        for segment in range(len(scores.segment_ids)):
            rows = scores.segments == segment
            centred[rows] = scores.values[rows] - scores.values[rows].mean()
            firsts.append(key.is_target[rows][scores.values[rows].argmax()])
        rates.append(eer(centred[key.is_target], centred[~key.is_target]))
        shares.append(np.mean(firsts))
    assert_allclose([one["eer"] for one in of_draws if one], rates)
    assert_allclose([one["identification"] for one in of_draws if one], shares)
    assert_allclose(found.eer.value, np.mean(rates))
    assert_allclose(found.identification.value, np.mean(shares))
    # there is no channel
    assert found.eer.value < eer(first.values[key.is_target], first.values[~key.is_target])
    assert found.candidates == (3, 4)
    assert_allclose(found.chance, (24 / 4 + 18 / 3) / 42)
    for interval in (found.eer, found.identification):
        assert 0 <= interval.low <= interval.high <= 1
    whole = [replace(ranks, impostors=np.full(len(ranks), 3)) for ranks in tables_of(draws, key)]
    alone = linkability_over_draws(whole, np.array([4]), resampling=RESAMPLING)
    assert found.identification.low < alone.low[0]  # allows for the choice


def test_first_ranks_are_counted_for_own_and_other_recordings() -> None:
    scores, key, _ = trials(0)
    genders = {name: name[0] for name in WOMEN + MEN}
    first = {name: [0.0, 0.0] for name in genders}
    for segment in range(len(scores.segment_ids)):
        rows = np.flatnonzero(scores.segments == segment)
        winner = rows[scores.values[rows].argmax()]
        first[scores.model_ids[scores.models[winner]]][0 if key.is_target[winner] else 1] += 1
    speakers = figures_of_speakers(scores, key, genders, rank_owners(scores, key, genders)[0])
    for speaker in speakers:
        n_others = 6 * (len(WOMEN if speaker.gender == "f" else MEN) - 1)
        own, others = first[speaker.speaker]
        assert (speaker.n_target, speaker.n_nontarget) == (6, n_others)
        assert_allclose([speaker.first, speaker.others_first], [own / 6, others / n_others])


def test_centring_removes_offsets_of_models() -> None:
    """As raw log-likelihoods have them: they look like privacy."""
    scores, key, speakers = trials(0)
    offsets = 50 * np.random.default_rng(9).standard_normal(len(scores.model_ids))
    shifted = replace(scores, values=scores.values + offsets[scores.models])
    raw, shown = (
        eer(one.values[key.is_target], one.values[~key.is_target]) for one in (scores, shifted)
    )
    assert centred_by_model([scores], key, speakers, RESAMPLING, raw) is None
    found = centred_by_model([shifted, shifted], key, speakers, RESAMPLING, shown)
    assert found is not None
    by_hand = scores.values.copy()
    for model in range(len(scores.model_ids)):
        by_hand[scores.models == model] -= scores.values[scores.models == model].mean()
    assert_allclose(found.value, eer(by_hand[key.is_target], by_hand[~key.is_target]))
    assert found.low <= found.value < shown - 0.1
    assert found.has_interval


def test_incomplete_lists_have_no_closed_set_but_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scores, key, speakers = trials(0, left_out=1)
    ranks, _ = rank_owners(scores, key, {name: name[0] for name in WOMEN + MEN})
    assert ranks is None
    found, _, notes = closed_set_of([scores], key, speakers, None, RESAMPLING)
    assert found is None
    assert notes == {
        "closed_set": "not given: the trial list is not a full cross of models and segments"
    }


def test_infinite_scores_give_no_closed_set_and_zero_resamples_give_no_intervals() -> None:
    scores, key, speakers = trials(0)
    found, *_ = closed_set_of([scores], key, speakers, tables_of([scores], key), Resampling(0, 0))
    assert found is not None
    assert found.eer.known
    assert not found.eer.has_interval
    assert np.isnan(found.identification.low)
    values = np.append(np.inf, scores.values[1:])
    draws = [Scores.from_ids(*zip(*scores.pairs(), strict=True), values)]  # type: ignore[misc]
    found, _, notes = closed_set_of(draws, key, speakers, tables_of(draws, key), RESAMPLING)
    assert found is None
    assert "infinite" in notes["closed_set"]


def test_ranks_in_two_galleries_equal_brute_force() -> None:
    women, men = Ranks([0, 1, 1], 0, 2), Ranks([0, 3], 0, 4)
    both = Ranks([0, 1, 1, 0, 3], 0, [2, 2, 2, 4, 4])
    first = [np.mean([place <= r for place in (1, 2, 2, 1, 4)]) for r in range(1, 6)]
    assert match_by_rank([both]) == pytest.approx(first)
    assert match_by_rank([women, men]) == pytest.approx(first)


def test_the_worst_case_over_draws_takes_the_largest_of_each_estimate() -> None:
    rng = np.random.default_rng(0)
    key = [True] * 20 + [False] * 60
    draws = [worst_case(rng.normal(d, 1, 20), rng.normal(0, 1, key.count(False))) for d in (1, 4)]
    found = worst_of(draws)
    assert found.gaussian.llr == max(draw.gaussian.llr for draw in draws)
    assert found.pav.llr == max(draw.pav.llr for draw in draws)
    assert np.isnan(found.ranks.llr)


def test_unenrolled_tested_speakers_have_a_separate_rate():
    """By hand: enrolled impostors score below all targets, a stranger above one of two (1 / 3 by the hull)."""
    rows = [
        ("a", "a1", True, 3.0), ("b", "b1", True, 5.0), ("a", "b1", False, 1.0), ("b", "a1", False, 1.0),
        ("a", "x1", False, 4.0), ("b", "x1", False, 4.0),
    ]  # fmt: skip
    speakers = {"a1": "a", "b1": "b", "x1": "x"}

    def rates(chosen):
        models, segments, is_target, values = map(list, zip(*chosen, strict=True))
        scores = Scores.from_ids(models, segments, np.array(values))
        return impostors_apart(
            [scores, scores], Key.from_ids(models, segments, is_target), speakers
        )

    assert rates(rows) == pytest.approx({"enrolled": 0.0, "strangers": 1 / 3})
    assert rates(rows[:4]) == {}
