"""The choice of a backend: against loops of one's own, for any number of workers, taken up after a crash."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluation.embeddings import Embeddings
from evaluation.metrics import eer
from evaluation.trials import Key
from spkbase.errors import DataError
from spkver.attackers.chain_choice import (
    FoldVectors,
    choose_chain,
    simplest_of_best,
    standard_chains,
)
from spkver.backend import check_chain, parse_chain, train_chain

DIMENSION = 12
CHAINS = ["cosine", "centre", "[centre, length, wccn: 0.1]", "centre,length,lda:6,length"]


def vectors(n_speakers, takes, *, first, spread, draw):
    """Speakers in all dimensions; sessions differ in the first three, by `spread`."""
    speakers = np.repeat(np.arange(first, first + n_speakers), takes)
    means = draw.normal(size=(n_speakers, DIMENSION))[speakers - first]
    noise = (
        draw.normal(size=(len(speakers), DIMENSION)) * np.r_[[spread] * 3, [0.4] * (DIMENSION - 3)]
    )
    names = [
        f"u{speaker}-{take}"
        for speaker, take in zip(speakers, np.tile(range(takes), n_speakers), strict=True)
    ]
    return Embeddings(
        np.array(names, object), np.array([f"s{code}" for code in speakers], object), means + noise
    )


def fold_of(seed, spread):
    draw = np.random.default_rng(seed)
    training = vectors(30, 6, first=100, spread=spread, draw=draw)
    tested = vectors(8, 6, first=200 + 8 * seed, spread=spread, draw=draw)
    is_enrolled = np.arange(len(tested)) % 6 < 2
    sides = [Embeddings(tested.ids[part], tested.speakers[part], tested.vectors[part]) for part in
             (is_enrolled, ~is_enrolled)]  # fmt: skip
    pairs = [(model, name, owner == model) for model in np.unique(sides[0].speakers.astype(str)).tolist()
             for name, owner in zip(sides[1].ids, sides[1].speakers, strict=True)]  # fmt: skip
    return FoldVectors(training, *sides, Key.from_ids(*map(list, zip(*pairs, strict=True))))


@pytest.fixture(scope="module")
def folds():
    return [fold_of(seed, 4.0) for seed in range(3)]


def choose(folds, chains=CHAINS):
    return choose_chain(chains, folds, seed=0, jobs=1)


def test_the_simplest_of_the_best_chains_equals_a_plain_loop():
    draw = np.random.default_rng(1)
    for _ in range(200):
        errors = np.round(draw.uniform(0, 0.2, (5, 4)), 2)
        resolution = float(draw.choice([0.0, 0.02]))
        best = min(range(5), key=lambda system: (sum(errors[system]) / 4, system))
        for system in range(5):
            gaps = [errors[system, fold] - errors[best, fold] for fold in range(4)]
            mean = sum(gaps) / 4
            error = (sum((gap - mean) ** 2 for gap in gaps) / 3) ** 0.5 / 4**0.5
            if mean <= max(error, resolution) + 1e-9:
                break
        assert simplest_of_best(errors, resolution=resolution) == system


def test_the_chosen_chain_equals_a_plain_choice(folds):
    found = choose(folds)
    errors = []
    for chain in CHAINS:
        row = []
        for fold in folds:
            scores = train_chain(fold.training, chain).score(
                fold.enrolled, fold.tested, fold.key.trials()
            )
            values = dict(zip(scores.pairs(), scores.values, strict=True))
            sides = {True: [], False: []}
            for pair, is_target in zip(fold.key.pairs(), fold.key.is_target, strict=True):
                sides[bool(is_target)].append(values[pair])
            row.append(eer(sides[True], sides[False]))
        errors.append(row)
    np.testing.assert_allclose([row["eer"] for row in found["chains"]], errors, rtol=0, atol=1e-12)
    assert [row["mean_eer"] for row in found["chains"]] == pytest.approx(np.mean(errors, axis=1))
    # variability of sessions lies in three directions: only steps that learn them remove it
    assert found["chosen"] == "[centre, length, wccn: 0.1, cosine]"
    assert errors[2] < errors[0]
    assert all(0 < value < 2 for row in found["chains"] for value in row["cllr"])


def test_folds_with_shared_speakers_count_distinct_speakers(folds):
    # mean difference 0.0167, deviation 0.0153
    errors = np.array([[0.12, 0.11, 0.14], [0.10, 0.11, 0.11]])
    assert simplest_of_best(errors) == 1
    assert simplest_of_best(errors, n_independent=0.5) == 0
    apart = choose(folds)["chains"][0]
    assert apart["standard_error"] == pytest.approx(np.std(differences(folds), ddof=1) / 3**0.5)
    # dealt anew: the same speakers once more, in the same folds and therefore with the same errors
    again = choose([*folds, *folds])["chains"][0]
    assert again["standard_error"] == pytest.approx(np.std(2 * differences(folds), ddof=1) / 3**0.5)


def differences(folds):
    """How much worse the cosine is than the best chain, by fold."""
    first, *_ = rows = choose(folds)["chains"]
    best = min(rows, key=lambda row: row["mean_eer"])
    return [one - other for one, other in zip(first["eer"], best["eer"], strict=True)]


def test_calibrations_with_negative_slopes_are_dropped_and_their_fold_named(folds, caplog):
    turned = replace(folds[1], key=replace(folds[1].key, is_target=~folds[1].key.is_target))
    (row,) = choose([folds[0], turned], ["cosine"])["chains"]
    assert row["no_slope"] == [1]  # the comparison of the second with the first
    assert row["cllr"][0] == pytest.approx(1)  # Cllr of ratios that are all equal
    assert row["cllr"][1] > 1
    assert choose(folds[:2], ["cosine"])["chains"][0]["no_slope"] == []
    assert caplog.text == ""  # the warning comes from the attacker, which is named in it


def test_untrainable_chains_are_omitted_and_reported(folds):
    found = choose(folds, ["centre,length,lda:11,length", "centre,length,lda:40", "cosine"])
    assert "lda.rank is 40" in found["chains"][1]["why"]
    assert "eer" not in found["chains"][1]
    with pytest.raises(DataError, match=r"no chain can be trained: lda\.rank is 40"):
        choose(folds, ["centre,lda:40"])


@pytest.mark.parametrize("dimension", [3, 192])
@pytest.mark.parametrize("n_speakers", [1, 2, 5, 20, 51, 200])
@pytest.mark.parametrize("most", [1, 2])
def test_standard_chains_can_be_trained(dimension, n_speakers, most):
    chains = standard_chains(dimension, n_speakers, most)
    assert chains[:2] == ["cosine", "centre"]
    assert len(set(chains)) == len(chains)
    for chain in chains:
        check_chain(parse_chain(chain), dimension, [most] * n_speakers)
