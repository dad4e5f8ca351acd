"""Scores against brute force, for trials in blocks and scattered, in any order and with any workers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from stored_vectors import named, stored

from evaluation.trials import Trials
from spkbase.errors import DataError
from spkbase.work import Work
from spkver.backend import SvmModels, fit_nap, score_gmm_ubm, score_trials, scoring
from spkver.features.frames import Frames
from spkver.mixture.gmm import GaussianMixture

MODELS = [f"m{number:02d}_{sentence}" for number in range(6) for sentence in "ab"]
SEGMENTS = [f"s{number:02d}" for number in range(20)]


def machines(dtype=np.float64):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((len(MODELS), 50)).astype(dtype)
    ids = np.array(MODELS, object)
    return SvmModels(ids, weights, rng.standard_normal(len(MODELS))), rng.standard_normal(
        (20, 50)
    ).astype(dtype)


def blocks():
    return [
        (m, s)
        for m in MODELS
        for place, s in enumerate(SEGMENTS)
        if (place % 2 == 0) == m.endswith("a")
    ]


def scattered(seed=0, n=60):
    everything = [(m, s) for m in MODELS for s in SEGMENTS]
    return [
        everything[place] for place in np.random.default_rng(seed).permutation(len(everything))[:n]
    ]


SHAPES = {
    "one": [("m00_a", "s00")],
    "blocks": blocks(),
    "square": [(m, s) for m in MODELS for s in SEGMENTS],
    "scattered": scattered(),
    "half": scattered(2, len(MODELS) * len(SEGMENTS) // 2),
    "mixed": [*blocks(), *(pair for pair in scattered(1, 80) if pair not in set(blocks()))],
}


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("side", [256, 4])
def test_svm_scores_equal_brute_force(shape, jobs, side, monkeypatch):
    monkeypatch.setattr(scoring, "_SIDE", side)
    if side < 256:  # more than one piece, and more than one tile
        monkeypatch.setattr(scoring, "_PAIRED", 500)
        monkeypatch.setattr(scoring, "_FEWER", 0)
    pairs = SHAPES[shape]
    trained, vectors = machines()
    found = score_trials(
        trained,
        named(SEGMENTS, vectors),
        Trials.from_ids(*zip(*pairs, strict=True)),
        work=Work(jobs=jobs),
    )
    assert list(found.pairs()) == pairs, "scores come in the order of the trials"
    expected = [
        trained.weights[MODELS.index(m)] @ vectors[SEGMENTS.index(s)]
        + trained.biases[MODELS.index(m)]
        for m, s in pairs
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("nobody", "s00")], "1 model of the trials not there: 'nobody'"),
        ([("m00_a", f"x{number}") for number in range(9)], r"9 segments .*'x0', .* \.\.\."),
    ],
)
def test_missing_ids_are_refused(pairs, words):
    trained, vectors = machines()
    with pytest.raises(DataError, match=words):
        score_trials(trained, named(SEGMENTS, vectors), Trials.from_ids(*zip(*pairs, strict=True)))


# --- GMM-UBM ---------------------------------------------------------------------------------------------------------


def gmm_case(dtype=np.float64):
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.5, 5)
    ubm = GaussianMixture(
        weights / weights.sum(), rng.standard_normal((5, 3)), rng.uniform(0.3, 2, (5, 3))
    )
    means = ubm.means.ravel() + 0.3 * rng.standard_normal((len(MODELS), 15))
    lengths = rng.integers(1, 40, len(SEGMENTS))
    lengths[4] = 5000  # more than one block
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.standard_normal((offsets[-1], 3)).astype(dtype)
    return ubm, means, Frames(np.array(SEGMENTS, object), offsets, values)


def mean_log_density(ubm, means, frames):
    densities = sum(
        w * multivariate_normal(m, np.diag(v)).pdf(frames)
        for w, m, v in zip(ubm.weights, means.reshape(5, 3), ubm.variances, strict=True)
    )
    return float(np.mean(np.log(densities)))


@pytest.mark.parametrize("shape", list(SHAPES))
def test_gmm_ubm_scores_equal_log_likelihood_ratios(shape):
    pairs = SHAPES[shape]
    ubm, means, frames = gmm_case()
    found = score_gmm_ubm(
        ubm, named(MODELS, means), frames, Trials.from_ids(*zip(*pairs, strict=True))
    )
    assert list(found.pairs()) == pairs
    expected = [
        mean_log_density(ubm, means[MODELS.index(m)], frames.of(s))
        - mean_log_density(ubm, ubm.means, frames.of(s))
        for m, s in pairs
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("model", "segment", "words"),
    [
        ("nobody", "s00", "1 model"),
        ("m00_a", "nowhere", "1 segment"),
        ("m00_a", "empty", "'empty' has no frames"),
    ],
)
def test_missing_frames_and_models_of_gmm_ubm_are_refused(model, segment, words):
    ubm, means, frames = gmm_case()
    more = Frames(
        np.array([*SEGMENTS, "empty"], object),
        np.append(frames.offsets, frames.offsets[-1]),
        frames.values,
    )
    with pytest.raises(DataError, match=words):
        score_gmm_ubm(ubm, named(MODELS, means), more, Trials.from_ids([model], [segment]))


# --- vectors in files, pieces ----------------------------------------------------------------------


@pytest.mark.parametrize("projected", [False, True])
def test_rows_in_files_give_equal_scores(tmp_path, projected):
    rng = np.random.default_rng(2)
    weights, vectors = (
        rng.standard_normal((n, 3000)).astype(np.float32) for n in (len(MODELS), 20)
    )
    here = SvmModels(np.array(MODELS, object), weights, rng.standard_normal(len(MODELS)))
    there = replace(here, weights=stored(weights, tmp_path, "weights"))
    projection = fit_nap(vectors, rank=3) if projected else None
    trials = Trials.from_ids(*zip(*SHAPES["mixed"], strict=True))
    expected = score_trials(here, named(SEGMENTS, vectors), trials, projection=projection).values
    rows = named(SEGMENTS, stored(vectors, tmp_path, "vectors"))
    for jobs in (1, 2):
        found = score_trials(
            there, rows, trials, projection=projection, work=Work(jobs=jobs)
        ).values
        np.testing.assert_array_equal(found, expected)
    if projection is not None:
        before = score_trials(here, named(SEGMENTS, projection(vectors)), trials).values
        np.testing.assert_allclose(expected, before, atol=1e-4)
