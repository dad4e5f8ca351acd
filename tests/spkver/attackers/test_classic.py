"""Classic attackers: likelihood ratios against brute force, which chain fits a training set, sessions of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from evaluation.embeddings import Embeddings
from spkver.attackers import attacker_config
from spkver.attackers.classic import fitting_chain, ratio_vectors, ratio_weights
from spkver.attackers.mixtures import cut_sessions, session_frames
from spkver.attackers.protocol import choose_utterances
from spkver.backend import format_chain
from spkver.features import Frames
from spkver.mixture import GaussianMixture, accumulate_statistics, with_full_covariances

IDS = ["a", "b", "c"]
RELEVANCE = 3.0


def mixture(full: bool) -> GaussianMixture:
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((2, 3, 3))
    covariances = roots @ roots.swapaxes(1, 2) + 0.5 * np.eye(3)
    variances = covariances if full else np.diagonal(covariances, axis1=1, axis2=2).copy()
    return GaussianMixture(np.array([0.4, 0.6]), rng.standard_normal((2, 3)), variances)


def speech() -> Frames:
    values = np.random.default_rng(1).standard_normal((150, 3)) + np.repeat(np.eye(3), 50, axis=0)
    return Frames(np.array(IDS, object), np.array([0, 50, 100, 150]), values)


def log_densities(frames: np.ndarray, means: np.ndarray, ubm: GaussianMixture) -> np.ndarray:
    covariances = ubm.variances if ubm.has_full_covariances else [np.diag(row) for row in ubm.variances]
    rows = [multivariate_normal(m, c).logpdf(frames) for m, c in zip(means, covariances, strict=True)]
    return np.stack(rows) + np.log(ubm.weights)[:, None]


def map_means(frames: np.ndarray, ubm: GaussianMixture) -> np.ndarray:
    background = log_densities(frames, ubm.means, ubm)
    posteriors = np.exp(background - logsumexp(background, axis=0))
    return (posteriors @ frames + RELEVANCE * ubm.means) / (posteriors.sum(axis=1)[:, None] + RELEVANCE)


@pytest.mark.parametrize("full", [False, True])
def test_ratios_from_statistics_by_their_definition(full):
    """Bound: sum over frames of P(c | x) (log N(x; adapted) - log N(x; ubm)); linear: its derivative at the UBM."""
    ubm, frames = mixture(full), speech()
    statistics = accumulate_statistics(ubm, frames, IDS, IDS)
    means = np.stack([map_means(frames.of(name), ubm).ravel() for name in IDS])
    found = {
        bound: ratio_weights(ubm, means, bound=bound) @ ratio_vectors(ubm, statistics, bound=bound).T
        for bound in (False, True)
    }
    for row, adapted in enumerate(means.reshape(3, 2, 3)):
        for column, name in enumerate(IDS):
            tested = frames.of(name)
            background = log_densities(tested, ubm.means, ubm)
            posteriors = np.exp(background - logsumexp(background, axis=0))

            def bound_at(means, tested=tested, background=background, posteriors=posteriors) -> float:
                return (posteriors * (log_densities(tested, means, ubm) - background)).sum() / len(tested)

            exact = (logsumexp(log_densities(tested, adapted, ubm), axis=0) - logsumexp(background, axis=0)).mean()
            assert found[True][row, column] == pytest.approx(bound_at(adapted), rel=1e-9, abs=1e-12)
            assert bound_at(adapted) < exact
            step = 1e-5 * (adapted - ubm.means)
            slope = (bound_at(ubm.means + step) - bound_at(ubm.means - step)) / 2e-5
            assert found[False][row, column] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_full_covariances_that_are_diagonal_give_the_same():
    ubm, frames = mixture(full=False), speech()
    statistics = accumulate_statistics(ubm, frames, IDS, IDS)
    means = np.stack([map_means(frames.of(name), ubm).ravel() for name in IDS])
    weights = ratio_weights(with_full_covariances(ubm), means, bound=True)
    np.testing.assert_allclose(weights, ratio_weights(ubm, means, bound=True), rtol=1e-9, atol=1e-12)
    assert ratio_vectors(ubm, statistics, bound=True).shape == (3, 8)


LDA = "[centre, length, pca: {}, lda: {{rank: {}, shrink: 0.2}}, length, cosine, snorm]"


@pytest.mark.parametrize(
    ("preset", "speakers", "sessions", "utterances", "expected"),
    [
        ("supervector-cosine", 60, 5, 120, LDA.format(250, 59)),
        ("supervector-cosine", 60, 2, 120, LDA.format(119, 59)),
        ("supervector-cosine", 60, 5, 119, "[centre, nap: 20, length, cosine, snorm]"),
        ("supervector-cosine", 49, 5, 1000, "[centre, nap: 20, length, cosine, snorm]"),
        ("supervector-cosine", 29, 5, 1000, "[centre, nap: 20, length, cosine]"),
        ("supervector-cosine", 6, 2, 12, "[centre, nap: 6, length, cosine]"),
        ("supervector-cosine", 6, 1, 6, "[centre, length, cosine]"),
        ("gmm-svm", 6, 1, 6, "[centre, length, svm: {balanced: true, most: 1000}]"),
    ],
)
def test_the_first_chain_that_the_training_set_carries(preset, speakers, sessions, utterances, expected):
    names = np.repeat([f"s{number}" for number in range(speakers)], sessions).astype(object)
    ids = np.array([f"u{number}" for number in range(len(names))], object)
    vectors = Embeddings(ids, names, np.random.default_rng(0).normal(size=(len(names), 400)))
    assert format_chain(fitting_chain(attacker_config(preset), vectors, utterances)) == expected


def speakers(counts: dict[str, int]) -> dict[str, str]:
    return {f"{speaker}-{number:03d}": speaker for speaker, count in counts.items() for number in range(count)}


@pytest.mark.parametrize("limit", [3, 6, 7, 11, 19, 20, 500, None])
def test_utterances_are_spread_evenly(limit):
    counts = {"a": 12, "b": 2, "c": 6}
    chosen = choose_utterances(speakers(counts), limit=limit, seed=1)
    assert len(chosen) == len(set(chosen)) == min(limit or 20, 20)
    assert chosen == sorted(chosen)
    taken = Counter(utterance[0] for utterance in chosen)
    most = max(taken.values())
    # who has fewer than the most by two or more has no more to give
    assert all(taken[speaker] >= min(count, most - 1) for speaker, count in counts.items())


def test_the_choice_depends_on_the_seed_and_not_on_the_order():
    every = speakers({"a": 30, "b": 30})
    backwards = dict(reversed(every.items()))
    first = choose_utterances(every, limit=10, seed=1)
    assert choose_utterances(backwards, limit=10, seed=1) == first
    assert choose_utterances(every, limit=10, seed=2) != first
    # a larger limit adds to the choice, it does not replace it
    assert set(first) < set(choose_utterances(every, limit=20, seed=1))


def places(sessions: list) -> list:
    return [(one.speaker, one.recording, one.start, one.stop) for one in sessions]


def test_each_utterance_is_a_session_by_default():
    sessions = cut_sessions({"b-1": 5, "a-2": 7, "a-1": 3}, {"b-1": "b", "a-2": "a", "a-1": "a"}, frames=None)
    assert places(sessions) == [("a", "a-1", 0, 3), ("a", "a-2", 0, 7), ("b", "b-1", 0, 5)]


def test_long_utterances_are_divided_and_short_ones_left():
    sessions = cut_sessions({"a-1": 250, "b-1": 40, "b-2": 149}, {"a-1": "a", "b-1": "b", "b-2": "b"}, frames=100)
    assert places(sessions) == [("a", "a-1", 0, 125), ("a", "a-1", 125, 250), ("b", "b-1", 0, 40), ("b", "b-2", 0, 149)]
    assert [one.name for one in sessions[:2]] == ["a-1 0", "a-1 125"]


@given(st.lists(st.integers(1, 90), min_size=1, max_size=12), st.one_of(st.none(), st.floats(0.5, 200)))
def test_every_frame_stands_in_one_session(lengths, size):
    names = [f"s{number % 3}-{number:02d}" for number in range(len(lengths))]
    owners = {name: name[:2] for name in names}
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    frames = Frames(np.array(names, object), offsets, np.arange(offsets[-1], dtype=np.float32)[:, None])
    sessions = cut_sessions(dict(zip(names, lengths, strict=True)), owners, frames=size)
    joined = session_frames(frames, sessions)
    assert sorted(joined.values[:, 0]) == list(range(offsets[-1]))
    for one in sessions:
        assert one.speaker == owners[one.recording]
        np.testing.assert_array_equal(joined.of(one.name), frames.of(one.recording)[one.start : one.stop])
        assert 0 < one.stop - one.start <= (90 if size is None else 1.5 * size + 1)
