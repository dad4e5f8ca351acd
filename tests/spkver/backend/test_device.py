"""The E-step, statistics, products and scores on a device are those of NumPy, to the rounding of their dtype."""

from __future__ import annotations

import numpy as np
import pytest
from array_devices import strict
from stored_vectors import named

from evaluation.trials.lists import Trials
from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.work import Work
from spkver.backend.nap import Projection, fit_nap, gram_matrix
from spkver.backend.scoring import score_gmm_ubm, score_trials
from spkver.backend.svm import SvmModels
from spkver.features.frames import Frames
from spkver.mixture.gmm import GaussianMixture, PosteriorKernel, Table, e_step, log_likelihood, natural_parameters
from spkver.mixture.statistics import (
    Statistics,
    accumulate_statistics,
    open_statistics,
    segment_statistics,
    segment_sums,
)
from spkver.mixture.ubm import UbmConfig, train_ubm
from spkver.vectors.supervectors import MapConfig, adapt_multisession, adapt_supervectors

# Of sums that are as long as these, relative to the largest entry.
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", list(TOLERANCE))


def random_mixture(seed: int = 0, n_components: int = 6, dimension: int = 5) -> GaussianMixture:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, n_components)
    shape = (n_components, dimension)
    return GaussianMixture(weights / weights.sum(), rng.standard_normal(shape), rng.uniform(0.3, 1.5, shape))


def random_frames(count: int, dtype: type, seed: int = 1, dimension: int = 5) -> np.ndarray:
    return (1.3 * np.random.default_rng(seed).standard_normal((count, dimension))).astype(dtype)


def assert_near(found: np.ndarray, expected: np.ndarray, dtype: type) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


@DTYPES
@pytest.mark.parametrize("n_frames", [1, 255, 2047, 2048, 2049, 9000])
def test_e_step(device, dtype, n_frames):
    """Fewer frames than a tile, whole tiles, and tiles with a rest."""
    mixture, frames = random_mixture(), random_frames(n_frames, dtype)
    expected, found = e_step(frames, mixture, work=Work(jobs=1)), e_step(frames, mixture, work=Work(device=device))
    assert found.n_frames == n_frames
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=TOLERANCE[dtype])
    for name in ("zeroth", "first", "second"):
        assert getattr(found, name).dtype == np.float64
        assert_near(getattr(found, name), getattr(expected, name), dtype)


def test_e_step_over_a_table_that_is_sent_once(device, tmp_path):
    mixture, frames = random_mixture(), random_frames(5000, np.float32)
    frames.tofile(tmp_path / "frames")
    table = Table(StoredArray(tmp_path / "frames", 0, frames.shape, frames.dtype), device)
    first, again, expected = e_step(table, mixture), e_step(table, mixture), e_step(frames, mixture)
    np.testing.assert_array_equal(first.first, again.first)
    assert_near(first.first, expected.first, np.float32)


def test_sums_over_blocks_are_float64():
    """In float32 a count ends at 2^24 frames."""
    mixture = GaussianMixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
    found = e_step(np.ones(((1 << 24) + 101, 1), np.float32), mixture, work=Work(device=strict()))
    assert found.zeroth == found.first == found.second == (1 << 24) + 101


@DTYPES
def test_log_likelihood(device, dtype):
    mixture, frames = random_mixture(n_components=17), random_frames(3000, dtype)
    np.testing.assert_allclose(
        log_likelihood(frames, mixture, work=Work(device=device)),
        log_likelihood(frames, mixture),
        atol=10 * TOLERANCE[dtype],
    )


def test_no_dimension_is_too_high_and_no_weight_too_low(device):
    """Densities that underflow far away, and a component of weight 0."""
    mixture = GaussianMixture(np.array([0.0, 1.0]), np.zeros((2, 300)), np.ones((2, 300)))
    frames = np.full((3, 300), 30.0, np.float32)
    expected = -0.5 * 300 * (np.log(2 * np.pi) + 900)
    np.testing.assert_allclose(log_likelihood(frames, mixture, work=Work(device=device)), expected, rtol=1e-6)
    assert e_step(frames, mixture, work=Work(device=device)).zeroth.tolist() == [0.0, 3.0]


@DTYPES
def test_statistics_of_segments(device, dtype):
    """Short and long segments in any order; one is longer than what is summed in float32."""
    mixture = random_mixture()
    segments = [random_frames(count, dtype, seed=count) for count in (300, 1, 7, 5000, 2048, 2049, 7, 120)]
    zeroth, first = segment_sums(segments, natural_parameters(mixture), device)
    assert zeroth.dtype == first.dtype == dtype
    for row, frames in enumerate(segments):
        kernel = PosteriorKernel(natural_parameters(mixture), frames.dtype)
        expected = segment_statistics(frames, kernel)
        assert_near(first[row], expected[:, :-1], dtype)
        assert_near(zeroth[row], expected[:, -1], dtype)


@pytest.mark.parametrize("n_rows", [1, 700])
def test_tables_give_rows_in_any_order(device, n_rows):
    rows = np.random.default_rng(0).standard_normal((n_rows, 40)).astype(np.float32)
    table = Table(rows, device)
    wanted = np.random.default_rng(1).integers(0, n_rows, 50)
    np.testing.assert_array_equal(device.to_numpy(table.take(wanted)), rows[wanted])
    np.testing.assert_array_equal(np.concatenate([device.to_numpy(one) for one in table.blocks(300)]), rows)


def test_a_kept_table_lies_in_pieces_and_reads_as_one():
    device = strict(block_bytes=1 << 12, free_bytes=lambda: 1 << 20)
    rows = np.arange(40_000, dtype=np.float32).reshape(1000, 40)
    table = Table(rows, device)
    wanted = np.array([999, 3, 500, 3, 0])
    np.testing.assert_array_equal(device.to_numpy(table.take(wanted)), rows[wanted])
    for size in (1, 7, 100, 1001):
        found = np.concatenate([device.to_numpy(one) for one in table.blocks(size)])
        np.testing.assert_array_equal(found, rows)


@DTYPES
@pytest.mark.parametrize(("shape", "others"), [((5, 40), None), ((5, 40), (7, 40)), ((3, 9000), None)])
def test_inner_products(device, monkeypatch, dtype, shape, others):
    monkeypatch.setattr("spkver.backend.nap._DEVICE_TILE", 2)
    rng = np.random.default_rng(0)
    left = rng.standard_normal(shape).astype(dtype)
    right = None if others is None else rng.standard_normal(others).astype(dtype)
    found = gram_matrix(left, right, work=Work(device=device))
    expected = left.astype(np.float64) @ (left if right is None else right).astype(np.float64).T
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)
    if right is None:
        np.testing.assert_array_equal(found, found.T)


@DTYPES
def test_training_of_a_mixture(device, dtype):
    rng = np.random.default_rng(0)
    centres = np.array([[-6.0, 0.0], [-2.0, 1.0], [2.0, 1.0], [6.0, 0.0]])
    frames = (centres[rng.integers(0, 4, 3000)] + 0.5 * rng.standard_normal((3000, 2))).astype(dtype)
    config = UbmConfig(components=4)
    expected, found = train_ubm(frames, config, work=Work(jobs=1)), train_ubm(frames, config, work=Work(device=device))
    np.testing.assert_allclose(found.log_likelihoods, expected.log_likelihoods, rtol=10 * TOLERANCE[dtype])
    assert_near(found.mixture.means, expected.mixture.means, dtype)
    assert_near(found.mixture.variances, expected.mixture.variances, dtype)


@pytest.fixture
def frames_of_many() -> Frames:
    """300 segments, more than a block on a device; lengths from 1 to 39."""
    offsets = np.append(0, np.cumsum(1 + np.arange(300) % 39))
    return Frames(
        np.array([f"r{row:03d}" for row in range(300)], object), offsets, random_frames(offsets[-1], np.float32)
    )


def test_statistics_of_a_list(device, frames_of_many):
    segments = [*frames_of_many.ids[::-1], "r007"]
    expected, found = (
        accumulate_statistics(random_mixture(), frames_of_many, segments, segments, work=Work(jobs=1, device=one))
        for one in (None, device)
    )
    assert found.segments.tolist() == expected.segments.tolist()
    assert_near(found.first, expected.first, np.float32)
    assert_near(found.zeroth, expected.zeroth, np.float32)


def test_statistics_of_a_list_in_a_file(device, frames_of_many, tmp_path):
    segments = [*frames_of_many.ids[::-1], "r007"]
    expected = accumulate_statistics(random_mixture(), frames_of_many, segments, segments, work=Work(jobs=1))
    accumulate_statistics(
        random_mixture(),
        frames_of_many,
        segments,
        segments,
        work=Work(device=device),
        destination=tmp_path / "stat.h5",
    )
    found = open_statistics(tmp_path / "stat.h5")
    assert found.segments.tolist() == segments
    assert_near(np.asarray(found.first), expected.first, np.float32)
    assert_near(np.asarray(found.zeroth), expected.zeroth, np.float32)


@pytest.mark.parametrize("config", [MapConfig(), MapConfig(relevance=0.0, normalise=False)])
@pytest.mark.parametrize("adapt", [adapt_supervectors, adapt_multisession])
@DTYPES
def test_adapted_means(device, config, adapt, dtype):
    """Components without frames included, which stay at the prior."""
    rng, mixture = np.random.default_rng(0), random_mixture()
    zeroth = rng.uniform(0, 9, (50, 6)) * (rng.random((50, 6)) > 0.3)
    first = np.repeat(zeroth, 5, axis=1) * rng.standard_normal((50, 30))
    names = np.array([f"m{row % 7}" for row in range(50)], object)
    statistics = Statistics(names, names, zeroth.astype(dtype), first.astype(dtype))
    expected, found = adapt(mixture, statistics, config), adapt(mixture, statistics, config, work=Work(device=device))
    assert (zeroth == 0).any()
    assert found.models.tolist() == expected.models.tolist()
    assert found.vectors.dtype == dtype
    assert_near(found.vectors, expected.vectors, dtype)


@pytest.mark.parametrize("scatter", ["total", "within"])
@pytest.mark.parametrize("in_file", [False, True])
def test_nuisance_projection(device, tmp_path, scatter, in_file):
    """Kernels are float64 there too: directions and what they leave are the same far below float32."""
    rng = np.random.default_rng(0)
    speakers = np.repeat(["a", "b", "c", "d", "e", "f"], 5)
    vectors = (rng.standard_normal((30, 200)) * rng.uniform(0.1, 3, (30, 1)) + 5).astype(np.float32)
    given = vectors
    if in_file:
        vectors.tofile(tmp_path / "vectors")
        given = StoredArray(tmp_path / "vectors", 0, vectors.shape, vectors.dtype)
    options = {"rank": 4, "scatter": scatter, "speakers": speakers}
    expected, found = (
        fit_nap(vectors, **options, work=Work(jobs=1)),
        fit_nap(given, **options, work=Work(device=device)),
    )
    signs = np.sign((expected.directions * found.directions).sum(axis=1))
    np.testing.assert_allclose(found.directions * signs[:, None], expected.directions, atol=1e-9)
    projected = expected(given, work=Work(device=device))
    assert projected.dtype == np.float32
    np.testing.assert_allclose(projected, expected(vectors), rtol=1e-6, atol=1e-6)
    kernel = gram_matrix(given, vectors[:7], work=Work(device=device))
    np.testing.assert_allclose(kernel, gram_matrix(vectors, vectors[:7]), rtol=1e-12)


def scattered_and_blocks(seed: int = 0) -> Trials:
    """20 models against 30 segments they share, and each of 40 models against a few of its own."""
    rng = np.random.default_rng(seed)
    pairs = [(f"m{model:02d}", f"s{segment:02d}") for model in range(20) for segment in range(30)]
    pairs += [(f"m{model:02d}", f"s{segment:02d}") for model in range(20, 60) for segment in rng.permutation(80)[:3]]
    order = rng.permutation(len(pairs))
    return Trials.from_ids(*zip(*(pairs[place] for place in order), strict=True))


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("in_file", [False, True])
def test_scores_of_linear_machines(device, tmp_path, projected, in_file):
    rng = np.random.default_rng(0)
    weights, vectors = (rng.standard_normal((n_rows, 300)).astype(np.float32) for n_rows in (60, 80))
    names = np.array([f"m{row:02d}" for row in range(60)][::-1], object)
    segments, trials = [f"s{row:02d}" for row in range(80)], scattered_and_blocks()
    projection = Projection(np.linalg.qr(rng.standard_normal((300, 5)))[0].T) if projected else None
    machines = SvmModels(names, weights, rng.standard_normal(60))
    expected = score_trials(machines, named(segments, vectors), trials, projection=projection, work=Work(jobs=1))
    given = vectors
    if in_file:
        vectors.tofile(tmp_path / "vectors")
        given = StoredArray(tmp_path / "vectors", 0, vectors.shape, vectors.dtype)
    found = score_trials(machines, named(segments, given), trials, projection=projection, work=Work(device=device))
    assert_near(found.values, expected.values, np.float32)


@DTYPES
def test_log_likelihood_ratios(device, dtype):
    rng, mixture = np.random.default_rng(0), random_mixture()
    lengths = rng.integers(1, 60, 80)
    lengths[3] = 4000
    offsets = np.append(0, np.cumsum(lengths))
    frames = Frames(np.array([f"s{row:02d}" for row in range(80)], object), offsets, random_frames(offsets[-1], dtype))
    means = (mixture.means.reshape(1, -1) + 0.3 * rng.standard_normal((60, 30))).astype(dtype)
    models = named([f"m{row:02d}" for row in range(60)], means)
    arguments = mixture, models, frames, scattered_and_blocks()
    expected, found = score_gmm_ubm(*arguments, work=Work(jobs=1)), score_gmm_ubm(*arguments, work=Work(device=device))
    np.testing.assert_allclose(found.values, expected.values, atol=20 * TOLERANCE[dtype])
    assert np.abs(expected.values).max() > 0.1


def test_a_recording_without_frames_is_an_error_there_too(device):
    frames = Frames(np.array(["s"], object), np.array([0, 0]), random_frames(3, np.float32))
    with pytest.raises(DataError, match="recording 's' has no frames"):
        score_gmm_ubm(
            random_mixture(),
            named(["m"], np.zeros((1, 30), np.float32)),
            frames,
            Trials.from_ids(["m"], ["s"]),
            work=Work(device=device),
        )
    with pytest.raises(DataError, match="recording 's' has no frames"):
        accumulate_statistics(random_mixture(), frames, ["s"], ["s"], work=Work(device=device))
