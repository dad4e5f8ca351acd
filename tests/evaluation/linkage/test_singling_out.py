"""Singling out: chance for scores that say nothing, certainty for perfect ones, thresholds and crowds by hand."""

import math

import numpy as np
import pytest

from evaluation.embeddings.sets import Embeddings
from evaluation.linkage.singling import CHANCE, isolations, singling_out
from evaluation.uncertainty.resampling import Resampling
from spkbase.errors import DataError


def people(vectors, prefix="s"):
    """Vectors (speakers, utterances, D)."""
    speakers = [
        f"{prefix}{one:03d}" for one in range(vectors.shape[0]) for _ in range(vectors.shape[1])
    ]
    ids = [f"{one}-{row}" for row, one in enumerate(speakers)]
    return Embeddings(
        np.array(ids, object), np.array(speakers, object), vectors.reshape(-1, vectors.shape[2])
    )


def brute(calibration, tested):
    found = []
    for scores, own in zip(calibration, tested, strict=True):
        ranked = sorted(scores.ravel().tolist(), reverse=True)
        n_calibration = scores.shape[1]
        threshold = (ranked[n_calibration - 1] + ranked[n_calibration]) / 2
        found.append(sum(one > threshold for one in own.tolist()) == 1)
    return found


@pytest.mark.parametrize("n_calibration", [1, 2, 9])
def test_isolations_equal_a_plain_loop(n_calibration):
    rng = np.random.default_rng(0)
    calibration, tested = (
        rng.standard_normal((50, 12, n_calibration)),
        rng.standard_normal((50, 12)),
    )
    assert isolations(calibration, tested).tolist() == brute(calibration, tested)


def test_chance_equals_that_of_independent_scores():
    """A random predicate of weight 1 / N isolates with a probability near exp(-1)."""
    assert pytest.approx(math.exp(-1)) == CHANCE
    rng = np.random.default_rng(0)
    successes = isolations(rng.standard_normal((4000, 100, 9)), rng.standard_normal((4000, 100)))
    assert successes.mean() == pytest.approx(CHANCE, abs=0.03)


def test_random_embeddings_single_out_nobody_and_perfect_ones_everybody():
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((40, 1, 64))
    enrol = people(voices)
    perfect = singling_out(enrol, people(voices + 0.01 * rng.standard_normal((40, 4, 64))))
    assert perfect.probability.value == 1
    assert (perfect.n_predicates, perfect.n_crowd, perfect.n_calibration, perfect.n_crowds) == (
        40,
        40,
        3,
        1,
    )
    assert perfect.probability.low > 0.9
    nothing = singling_out(enrol, people(rng.standard_normal((40, 10, 64))))
    assert nothing.n_calibration == 9
    assert nothing.probability.low < CHANCE < nothing.probability.high + 0.02
    assert nothing.probability.value == pytest.approx(CHANCE, abs=0.05)
    assert perfect.per_predicate.shape == (40,)


def test_conversations_are_means_in_file_order():
    """Two utterances that lie on either side of a voice make one conversation that is it."""
    rng = np.random.default_rng(0)
    voices, aside = rng.standard_normal((20, 1, 32)), 5 * rng.standard_normal((20, 3, 32))
    pairs = np.stack([voices + aside, voices - aside], axis=2).reshape(20, 6, 32)
    assert singling_out(people(voices), people(pairs), utterances=2).probability.value == 1
    assert singling_out(people(voices), people(pairs), utterances=1).probability.value < 0.8


def test_at_most_500_speakers_are_attacked_and_drawn_by_the_seed():
    rng = np.random.default_rng(0)
    enrol, trial = people(rng.standard_normal((520, 1, 4))), people(rng.standard_normal((30, 2, 4)))
    found, again, other = (
        singling_out(enrol, trial, resampling=Resampling(50, seed=seed)) for seed in (1, 1, 2)
    )
    assert (found.n_predicates, found.n_crowd, found.n_crowds, len(found.speakers)) == (
        500,
        30,
        1,
        500,
    )
    assert found.probability == again.probability
    assert other.speakers.tolist() != found.speakers.tolist()


def test_speakers_with_too_few_conversations_are_left_out():
    rng = np.random.default_rng(0)
    trial = people(rng.standard_normal((6, 4, 8)))
    kept = np.array([row for row in range(24) if row not in (1, 2, 3)])
    cut = Embeddings(trial.ids[kept], trial.speakers[kept], trial.vectors[kept])
    found = singling_out(people(rng.standard_normal((6, 1, 8))), cut)
    assert (found.n_crowd, found.n_calibration) == (5, 3)
    assert found.notes == ("left out: 1 speaker with fewer than 4 conversations",)


@pytest.mark.parametrize(
    ("utterances", "message"),
    [
        (3, "expected at least 2 speakers with 2 conversations of 3 utterances, got 0"),
        (0, "expected at least 1 utterance, got 0"),
    ],
)
def test_bad_numbers_are_refused(utterances, message):
    rng = np.random.default_rng(0)
    sides = people(rng.standard_normal((6, 1, 8))), people(rng.standard_normal((6, 4, 8)))
    with pytest.raises(DataError, match=message):
        singling_out(*sides, utterances=utterances)
    vectors = sides[1].vectors.copy()
    vectors[5] = -vectors[4]  # utterances of the first conversation of the second speaker
    with pytest.raises(DataError, match="conversation mean"):
        singling_out(sides[0], Embeddings(sides[1].ids, sides[1].speakers, vectors), utterances=2)
    with pytest.raises(
        DataError, match="expected the same number of dimensions on both sides, got 3 and 8"
    ):
        singling_out(people(np.ones((2, 1, 3))), sides[1])


@pytest.mark.parametrize("seed", range(25))
def test_side_information_restricts_the_crowd_to_those_who_match(seed):
    rng = np.random.default_rng(seed)
    enrolled = people(rng.integers(-2, 3, (9, 1, 3)) + 0.5)
    tested = people(rng.integers(-2, 3, (9, 3, 3)) + 0.5)
    names = sorted(set(enrolled.speakers))
    side = dict(zip(names, rng.choice(["f", "m", "x", ""], 9), strict=True))
    result = singling_out(enrolled, tested, side=side, resampling=Resampling(0))
    voices = enrolled.vectors / np.linalg.norm(enrolled.vectors, axis=1)[:, None]
    spoken = (tested.vectors / np.linalg.norm(tested.vectors, axis=1)[:, None]).reshape(9, 3, 3)
    shares = []
    for name, voice in zip(names, voices, strict=True):
        crowd = [
            number
            for number, other in enumerate(names)
            if side[name] == side[other] or "" in (side[name], side[other])
        ]
        scores = spoken[crowd] @ voice
        successes = 0
        for fold in range(3):
            ranked = np.sort(np.delete(scores, fold, axis=1).ravel())[::-1]
            if len(crowd) == 1:
                successes += 1
                continue
            threshold = (ranked[1] + ranked[2]) / 2
            successes += (scores[:, fold] > threshold).sum() == 1
        shares.append(successes / 3)
    # products are summed in another order, so that ties at a threshold may be decided differently
    assert np.mean(np.abs(result.per_predicate - shares) > 1e-9) <= 0.12


def test_only_matching_speakers_are_singled_out():
    rng = np.random.default_rng(0)
    enrolled = people(rng.standard_normal((6, 1, 4)))
    tested = people(rng.standard_normal((6, 2, 4)))
    names = sorted(set(enrolled.speakers))
    alone = singling_out(enrolled, tested, side={name: name for name in names})
    assert (alone.probability.value, alone.chance) == (1, 1)
    pairs = {name: "ab"[number % 2] for number, name in enumerate(names)}
    expected = (1 - 1 / 3) ** 2
    assert singling_out(enrolled, tested, side=pairs).chance == pytest.approx(expected)
    others = people(rng.standard_normal((6, 2, 4)), prefix="t")
    side = dict.fromkeys(names, "f") | dict.fromkeys(set(others.speakers), "m")
    nobody = singling_out(enrolled, others, side=side)
    assert (nobody.probability.value, nobody.chance) == (0, 0)
    with pytest.raises(DataError, match="not in the side information"):
        singling_out(enrolled, tested, side={})
