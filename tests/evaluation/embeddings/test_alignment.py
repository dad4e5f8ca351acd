"""Maps between spaces: closed forms, SciPy's Procrustes, rotations that are known, ranks counted by hand."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from evaluation.embeddings import (
    fit_alignment,
    fit_alignment_without_pairs,
    owner_ranks,
    procrustes,
    ridge_map,
    speaker_folds,
    wasserstein_procrustes,
)
from spkbase.errors import DataError


def rotation(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def clusters(n_speakers=30, each=8, n=12, noise=0.2, seed=0):
    """Speakers of unequal spread over the directions, and two noisy sets of vectors of them."""
    rng = np.random.default_rng(seed)
    voices = rng.gamma(1.0, 1.0, (n_speakers, n)) * np.linspace(3, 1, n)
    speakers = np.repeat([f"s{number:02d}" for number in range(n_speakers)], each).astype(object)
    sides = [
        np.repeat(voices, each, axis=0) + noise * rng.standard_normal((len(speakers), n))
        for _ in "ab"
    ]
    return speakers, *sides


@pytest.mark.parametrize("seed", range(3))
def test_procrustes_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    source, target = rng.standard_normal((40, 7)), rng.standard_normal((40, 7))
    assert (
        np.abs(procrustes(source, target) - orthogonal_procrustes(source, target)[0]).max() < 1e-12
    )


def test_procrustes_recovers_a_rotation_also_into_more_dimensions():
    source, turn = np.random.default_rng(1).standard_normal((20, 6)), rotation(9)[:6]
    assert np.abs(procrustes(source, source @ rotation(6)) - rotation(6)).max() < 1e-12
    found = procrustes(source, source @ turn)
    assert found.shape == (6, 9)
    assert np.abs(found - turn).max() < 1e-12


def test_a_prior_pulls_the_map_towards_the_identity():
    source = np.random.default_rng(1).standard_normal((20, 6))
    target, distances = source @ rotation(6), []
    for prior in (0.0, 0.3, 1.0, 1e6):
        found = procrustes(source, target, prior=prior)
        assert np.abs(found.T @ found - np.eye(6)).max() < 1e-12
        distances.append(np.abs(found - np.eye(6)).max())
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-5


def test_ridge_equals_penalised_least_squares():
    rng = np.random.default_rng(2)
    source, target = rng.standard_normal((30, 5)), rng.standard_normal((30, 4))
    penalty = np.sqrt(0.7 * np.sum(source**2) / 5) * np.eye(5)
    stacked = np.concatenate([source, penalty]), np.concatenate([target, np.zeros((5, 4))])
    assert (
        np.abs(ridge_map(source, target, 0.7) - np.linalg.lstsq(*stacked, rcond=None)[0]).max()
        < 1e-12
    )


def test_an_alignment_maps_mean_to_mean():
    _, original, other = clusters()
    turn, shift = rotation(12, 3), np.arange(12.0)
    alignment = fit_alignment(other @ turn + shift, original)
    assert np.abs(alignment.matrix - turn.T).max() < 0.05
    moved = alignment.apply(other @ turn + shift)
    assert np.abs(moved.mean(axis=0) - original.mean(axis=0)).max() < 1e-12
    centred = fit_alignment(other + shift, original, "centred")
    assert (
        np.abs(
            centred.apply(other + shift) - other - (original.mean(axis=0) - other.mean(axis=0))
        ).max()
        < 1e-12
    )


def test_without_centring_nothing_is_subtracted():
    _, original, other = clusters()
    turned = other @ rotation(12, 3) + 5
    for alignment, wanted in (
        (
            fit_alignment(turned, original, uncentred=True),
            orthogonal_procrustes(turned, original)[0],
        ),
        (fit_alignment_without_pairs(other, other, uncentred=True), np.eye(12)),
    ):
        assert not alignment.source_mean.any()
        assert not alignment.target_mean.any()
        assert np.abs(alignment.matrix - wanted).max() < 1e-12


@pytest.mark.parametrize("one_extractor", [True, False])
def test_wasserstein_needs_no_pairs(one_extractor):
    """A large rotation from nothing; from the identity one that is not large."""
    speakers, original, other = clusters()
    turn = rotation(12, 4)
    if one_extractor:
        turn = procrustes(
            np.eye(12), np.eye(12) + 0.25 * np.random.default_rng(0).standard_normal((12, 12))
        )
    order = np.random.default_rng(1).permutation(len(speakers))
    tested = (other @ turn)[order]
    alignment = fit_alignment_without_pairs(tested, original, one_extractor=one_extractor, seed=2)
    assert np.abs(alignment.matrix - turn.T).max() < 0.1
    centred = alignment.apply(tested) - alignment.target_mean, original - alignment.target_mean
    ranks = owner_ranks(centred[0], speakers[order], centred[1], speakers)
    assert np.mean(ranks == 1) == 1
    again = fit_alignment_without_pairs(tested, original, one_extractor=one_extractor, seed=2)
    assert np.array_equal(alignment.matrix, again.matrix)


def test_wasserstein_accepts_sides_of_different_size_and_few_vectors():
    _, original, other = clusters(n_speakers=12, each=4, n=30)
    found = wasserstein_procrustes(
        other[:20] - other[:20].mean(0), original - original.mean(0), seed=1
    )
    assert np.abs(found.T @ found - np.eye(30)).max() < 1e-10


def test_ranks_of_owners_equal_hand_computed_values():
    gallery = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-1.0, 0.0]])
    owners = np.array(["a", "b", "b", "c"], object)
    tested = np.array([[3.0, 0.1], [1.0, 2.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    speakers = np.array(["a", "a", "b", "c", "stranger"], object)
    # b's nearest vector to (1, 0) is (1, 1); nobody is near a zero vector, so all tie; a stranger ranks last
    assert owner_ranks(tested, speakers, gallery, owners).tolist() == [1, 2, 2, 3, 4]


def test_folds_contain_whole_speakers_in_any_order():
    speakers = [f"s{number % 11}" for number in range(50)]
    folds = speaker_folds(speakers, 4, seed=3)
    assert {fold: len({name for name, of in zip(speakers, folds, strict=True) if of == fold}) for fold in range(4)} == {
        0: 3, 1: 3, 2: 3, 3: 2,
    }  # fmt: skip
    assert np.array_equal(speaker_folds(speakers[::-1], 4, seed=3), folds[::-1])
    assert speaker_folds(["a", "b"], 9).tolist() in ([0, 1], [1, 0])
    with pytest.raises(DataError, match="at least two speakers"):
        speaker_folds(["a", "a"], 2)


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        (np.ones((1, 3)), np.ones((1, 3)), "at least two vectors"),
        (np.ones((3, 3)), np.ones((4, 3)), "expected pairs"),
        (np.full((3, 3), np.nan), np.ones((3, 3)), "not finite"),
    ],
)
def test_unusable_training_data_is_refused(source, target, text):
    with pytest.raises(DataError, match=text):
        fit_alignment(source, target)


def test_sides_of_different_dimension_need_pairs():
    source, target = (
        np.random.default_rng(0).standard_normal((9, 4)),
        np.ones((9, 3)) * np.arange(9)[:, None],
    )
    assert fit_alignment(source, target).matrix.shape == (4, 3)
    with pytest.raises(DataError, match="same number of dimensions"):
        fit_alignment_without_pairs(source, target)
    with pytest.raises(DataError, match="same number of dimensions"):
        fit_alignment(source, target, "centred")
