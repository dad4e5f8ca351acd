"""Which original a recording points at: formulas against loops, and what a decision does not depend on."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from numpy.typing import NDArray

from spkver.datadir import (
    Similarities,
    decide,
    distinct_pairs,
    exchanged_share,
    pointed_at,
    pointed_groups,
    robust_scores,
    shared_information,
    shared_words,
)

N, SPEAKERS = 40, 10
OWNERS = [f"s{number % SPEAKERS}" for number in range(N)]
UNIQUE = [f"text {number}" for number in range(N)]


def noise(seed: int, diagonal: float = 0.0, n: int = N) -> NDArray[np.float64]:
    """Similarities that differ by chance, with some more of each recording to its own original."""
    return np.random.default_rng(seed).normal(size=(n, n)) + diagonal * np.eye(n)


def test_scores_of_rows_and_columns_equal_hand_computed_values() -> None:
    similarity = noise(0, n=7)
    scores = robust_scores(similarity)
    for (row, column), value in np.ndenumerate(similarity):
        by_hand = []
        for line in (similarity[row], similarity[:, column]):
            middle = statistics.median(line)
            deviation = statistics.median(abs(entry - middle) for entry in line)
            by_hand.append((value - middle) / (1.4826 * deviation))
        assert scores[row, column] == pytest.approx(min(by_hand))
    assert not robust_scores(np.ones((3, 4))).any()


def test_a_clear_and_mutual_match_equals_a_hand_computed_one() -> None:
    groups = np.array([0, 0, 1, 1, 2])
    scores = np.random.default_rng(1).normal(size=(6, 5)) * 2
    scores[5] = scores[4]  # equal recordings: neither is the most similar one
    pointed = pointed_at(scores, groups, least=1.0, gap=0.5)
    for row, values in enumerate(scores):
        expected = -1
        for column, value in enumerate(values):
            others = [
                other
                for group, other in zip(groups, values, strict=True)
                if group != groups[column]
            ]
            is_only = sum(entry >= value for entry in scores[:, column]) == 1
            if value == max(values) and value >= 1 and value - max(others) >= 0.5 and is_only:
                expected = column
        assert pointed[row] == expected
    # there are no other speakers
    assert set(pointed_at(scores, np.zeros(5, int), least=-9.0, gap=0.0)) == {-1}


def test_a_sentence_shared_by_all_recordings_identifies_none() -> None:
    """One voice that says one sentence to all would otherwise point at whoever said it."""
    texts = np.arange(20) % 10
    words = np.zeros((20, 20))
    words[:, texts == 3] = 5.0
    assert set(pointed_groups(words, texts, least=2.0, gap=2.0)) == {-1}
    words = 5.0 * (texts[:, np.newaxis] == texts)
    assert (texts[pointed_groups(words, texts, least=2.0, gap=2.0)] == texts).all()


def test_shared_words_are_weighted_by_their_rarity() -> None:
    originals = [["THE", "CAT"], ["THE", "DOG", "THE"], ["A", "DOG"], []]
    recordings = [["THE", "CAT", "CAT"], ["DOG", "FISH"], []]
    expected = [
        [np.log(4 / 2) + np.log(4), np.log(2), 0, 0],
        [0, np.log(2), np.log(2), 0],
        [0, 0, 0, 0],
    ]
    np.testing.assert_allclose(shared_information(recordings, originals), expected)
    np.testing.assert_array_equal(
        shared_words(recordings, originals), [[2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    )


def test_a_share_has_the_wilson_interval() -> None:
    share, low, high = exchanged_share(57, 3)
    z, n, ratio = statistics.NormalDist().inv_cdf(0.975), 60, 3 / 60
    centre = (ratio + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(ratio * (1 - ratio) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    np.testing.assert_allclose((share, low, high), (ratio, centre - half, centre + half))
    assert exchanged_share(16, 0)[2] == pytest.approx(0.1936, abs=1e-4)  # includes 20 %


@pytest.mark.parametrize(
    ("exchanged", "seen", "distinct"), [(0.3, 1, 1), (0.3, 0.25, 1), (0.3, 1, 0.5)]
)
def test_a_share_is_corrected_for_exchanges_that_cannot_be_seen(
    exchanged: float, seen: float, distinct: float
) -> None:
    """Originals that were not compared leave recordings undecided; equal texts make exchanged ones their own."""
    n = 100_000
    elsewhere = n * exchanged * distinct * seen
    own = n * (1 - exchanged * distinct)
    assert exchanged_share(round(own), round(elsewhere), seen=seen, distinct=distinct)[
        0
    ] == pytest.approx(exchanged)


def test_two_texts_of_equal_frequency_differ_in_half_of_the_pairs() -> None:
    assert distinct_pairs(UNIQUE) == pytest.approx(1 - 1 / N)
    assert distinct_pairs(["a"] * 3) == 0


def test_matches_follow_exchanged_recordings() -> None:
    """Names play no part: exchanged rows of similarities exchange what they point at, and nothing else."""
    similarities = Similarities(noise(0, 8), noise(1, 4), noise(2))
    decided = decide(similarities, OWNERS, UNIQUE).speakers
    assert np.count_nonzero(decided == np.arange(N)) > 0.8 * N
    assert set(decided) <= {-1, *np.arange(N)}
    order = np.random.default_rng(3).permutation(N)
    moved = Similarities(similarities.cepstra[order], similarities.levels[order], noise(2)[order])
    np.testing.assert_array_equal(decide(moved, OWNERS, UNIQUE).speakers, decided[order])


def test_recordings_that_resemble_nothing_are_undecided() -> None:
    for seed in range(20):
        similarities = Similarities(noise(seed), noise(100 + seed), noise(200 + seed))
        assert np.count_nonzero(decide(similarities, OWNERS, UNIQUE).speakers >= 0) <= 1


@pytest.mark.parametrize("texts", [None, ["the same"] * N])
def test_cepstra_suffice_only_for_unique_sentences(texts: list[str] | None) -> None:
    alone = Similarities(noise(0, 12), noise(1))
    assert np.count_nonzero(decide(alone, OWNERS, UNIQUE).speakers >= 0) > N / 2
    assert set(decide(alone, OWNERS, texts).speakers) == {-1}
    backed = alone._replace(levels=noise(1, 12))
    assert np.count_nonzero(decide(backed, OWNERS, texts).speakers == np.arange(N)) > N / 2


def test_contradicting_sources_leave_a_recording_undecided() -> None:
    """Speech that is converted to the voice of another speaker keeps its own rhythm."""
    similarities = Similarities(noise(0, 12), noise(1, 12), np.roll(noise(2, 12), 1, axis=1))
    assert set(decide(similarities, OWNERS, UNIQUE).speakers) == {-1}


def test_words_suffice_if_two_rare_ones_are_shared() -> None:
    words = [[f"W{number}", f"V{number}", f"X{number}"] for number in range(N)]
    information = shared_information(words, words)
    similarities = Similarities(noise(0), noise(1), None, information, shared_words(words, words))
    decision = decide(similarities, OWNERS, UNIQUE)
    np.testing.assert_array_equal(decision.speakers, np.arange(N))
    np.testing.assert_array_equal(decision.texts, np.arange(N))
    recognised = [*UNIQUE[:20], *[""] * 20]  # nothing is known of the others
    unsure = decide(
        similarities._replace(cepstra=noise(0, 12)), OWNERS, recognised, are_recognised=True
    )
    np.testing.assert_array_equal(unsure.texts, [*range(20), *[-1] * 20])
    single = shared_information([[f"W{number}"] for number in range(N)], words)
    assert set(decide(similarities._replace(information=single), OWNERS).speakers) == {-1}
