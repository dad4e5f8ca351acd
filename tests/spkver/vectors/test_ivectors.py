"""i-vectors: the posterior of each segment, its approximations, files, engines, devices, bad input."""

import doctest
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from stored_vectors import stored

from evaluation.embeddings.files import read_embeddings
from spkbase.work import Work, stop_workers
from spkver.mixture.statistics import Statistics
from spkver.vectors import TotalVariability, extract_ivectors, open_ivectors, posteriors

SHAPE = 5, 4  # components, dimensions
METHODS = ["exact", "weights", "eigen"]


@pytest.fixture(scope="module", autouse=True)
def no_worker_outlives():
    yield
    stop_workers()


def random_model(seed=0, *, rank=3, full=False):
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.5, 2, SHAPE)
    if full:
        factors = np.tril(rng.standard_normal((*SHAPE, SHAPE[1])))
        factors[:, range(SHAPE[1]), range(SHAPE[1])] = rng.uniform(0.5, 2, SHAPE)
    weights = rng.uniform(0.5, 1.5, SHAPE[0])
    loadings = rng.standard_normal((*SHAPE, rank))
    return TotalVariability(loadings, rng.standard_normal(SHAPE), factors, weights / weights.sum())


def random_statistics(n_segments=30, seed=1):
    rng = np.random.default_rng(seed)
    zeroth = rng.exponential(5, (n_segments, SHAPE[0]))
    first = zeroth[..., None] * rng.standard_normal((n_segments, *SHAPE))
    segments = np.array([f"s{row}" for row in range(n_segments)], object)
    models = np.array([f"m{row % 4}" for row in range(n_segments)], object)
    return Statistics(models, segments, zeroth, first.reshape(n_segments, -1))


@pytest.mark.parametrize("method", METHODS)
def test_a_segment_without_frames_gets_the_prior(method):
    model, statistics = random_model(), random_statistics(3)
    statistics.zeroth[1], statistics.first[1] = 0, 0
    found = extract_ivectors(model, statistics, method=method, variances=True)
    np.testing.assert_array_equal(found.vectors[1], np.zeros(3))
    np.testing.assert_allclose(found.variances[1], np.ones(3), rtol=1e-14)


def test_approximations_are_exact_under_their_assumptions():
    """Counts in the proportion of the weights; matrices T_c' T_c that are diagonal in one basis."""
    model, rng = random_model(), np.random.default_rng(3)
    statistics = random_statistics(6)
    in_proportion = rng.uniform(10, 100, (6, 1)) * model.weights
    even = Statistics(statistics.models, statistics.segments, in_proportion, statistics.first)
    exact = extract_ivectors(model, even, variances=True)
    found = extract_ivectors(model, even, method="weights", variances=True)
    np.testing.assert_allclose(found.vectors, exact.vectors, rtol=1e-9)
    np.testing.assert_allclose(found.variances, exact.variances, rtol=1e-9)
    basis = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    shared = (
        np.linalg.qr(rng.standard_normal((5, 4, 4)))[0][:, :, :3]
        * rng.uniform(0.5, 2, (5, 1, 3))
        @ basis.T
    )
    model = TotalVariability(shared, model.means, model.factors, model.weights)
    exact = extract_ivectors(model, statistics, variances=True)
    found = extract_ivectors(model, statistics, method="eigen", variances=True)
    np.testing.assert_allclose(found.vectors, exact.vectors, rtol=1e-9)
    np.testing.assert_allclose(found.variances, exact.variances, rtol=1e-9)
    assert not np.allclose(
        extract_ivectors(model, statistics, method="weights").vectors, exact.vectors, rtol=1e-3
    )


def contents(vectors):
    return np.asarray(vectors.vectors).tobytes() + np.asarray(vectors.variances).tobytes()


@pytest.mark.parametrize("method", METHODS)
def test_workers_files_and_destinations_do_not_change_a_bit(monkeypatch, tmp_path, method):
    monkeypatch.setattr(posteriors, "_MOST_SEGMENTS", 70)
    model, statistics = random_model(rank=8), random_statistics(200)
    extract = partial(extract_ivectors, model, method=method, variances=True)
    expected = contents(extract(statistics, work=Work(1)))
    files = (
        stored(rows, tmp_path, name)
        for rows, name in ((statistics.zeroth, "z"), (statistics.first, "f"))
    )
    in_files = Statistics(statistics.models, statistics.segments, *files)
    for jobs in (1, 2, 5):
        for rows in (statistics, in_files):
            assert contents(extract(rows, work=Work(jobs))) == expected
            found = extract(rows, work=Work(jobs), destination=tmp_path / f"{jobs}.h5")
            assert contents(found) == expected
            assert contents(open_ivectors(tmp_path / f"{jobs}.h5")) == expected


def test_ivector_files_are_read_as_embeddings(tmp_path):
    model, statistics = random_model(), random_statistics()
    path = tmp_path / "vectors.h5"
    found = extract_ivectors(model, statistics, destination=path)
    assert found.variances is None
    read, direct = read_embeddings(path), found.embeddings()
    for embeddings in (read, direct):
        assert embeddings.ids.tolist() == statistics.segments.tolist()
        assert embeddings.speakers.tolist() == statistics.models.tolist()
        np.testing.assert_array_equal(embeddings.vectors, np.asarray(found.vectors))
        assert embeddings.vectors.dtype == np.float64


# --- bad input -------------------------------------------------------------------------------------------------------


def test_the_examples_of_the_page_run():
    page = Path(__file__).resolve().parents[3] / "docs" / "ivectors.md"
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.attempted >= 10
    assert not outcome.failed
