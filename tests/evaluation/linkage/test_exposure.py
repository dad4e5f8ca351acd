"""Which speakers are found beyond what everybody gets, beside permutations of the recordings."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.linkage import first_places, found_speakers, lowest_tenth, lowest_tenth_by_chance


def shares(scores: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, ...]:
    """What `found_speakers` takes, from scores of recordings (rows) with models (columns)."""
    n_recordings, n_models = scores.shape
    segments, models = np.indices(scores.shape).reshape(2, -1)
    first = first_places(scores.ravel(), models, segments).reshape(scores.shape)
    is_own = owners[:, np.newaxis] == np.arange(n_models)
    n_own = is_own.sum(axis=0)
    n_others = n_recordings - n_own
    return (
        (first * is_own).sum(axis=0) / n_own,
        n_own,
        (first * ~is_own).sum(axis=0) / n_others,
        n_others,
    )


def test_an_attacker_that_always_guesses_one_name_exposes_nobody() -> None:
    owners = np.repeat(np.arange(23), 4)
    # one file under all names
    same = np.tile(np.random.default_rng(0).normal(size=23), (len(owners), 1))
    own_first, _, others_first, _ = shares(same, owners)
    assert own_first.max() == others_first.max() == 1  # "always found" by linkability
    assert not found_speakers(*shares(same, owners)).is_found.any()
    known = same + 9 * (owners[:, np.newaxis] == np.arange(23))
    assert found_speakers(*shares(known, owners)).is_found.all()


def test_chance_equals_the_mean_over_permuted_recordings() -> None:
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(12), 6)
    # some names score high against every recording
    scores = rng.normal(size=(len(owners), 12)) + rng.normal(size=12)
    expected = found_speakers(*shares(scores, owners)).by_chance.sum()
    counts = [
        found_speakers(*shares(scores, rng.permutation(owners))).is_found.sum() for _ in range(400)
    ]
    assert 0 < expected < 12 * 0.01
    assert np.mean(counts) == pytest.approx(expected, abs=0.02)


def test_the_chance_of_the_lowest_tenth_equals_that_of_random_scores() -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(100, 20, 46))
    from evaluation.metrics import eer

    means = [
        lowest_tenth([eer(values[:4], values[4:]) for values in of_speakers])
        for of_speakers in scores
    ]
    by_chance = lowest_tenth_by_chance(np.full(20, 4), np.full(20, 42))
    assert by_chance == pytest.approx(np.mean(means), abs=0.01)
    assert by_chance < 0.25  # far below 50 %
