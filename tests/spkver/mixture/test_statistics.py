"""Statistics of segments against brute force; they add, and a segment's own depend on nothing else."""

import h5py
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from stored_vectors import stored

from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.work import Work
from spkver.features.frames import Frames
from spkver.mixture import accumulate_statistics, open_statistics, with_full_covariances
from spkver.mixture.gmm import GaussianMixture, PosteriorKernel, natural_parameters


def random_mixture(rng, n_components=4, dimension=3):
    weights = rng.uniform(0.5, 1.5, n_components)
    shape = (n_components, dimension)
    return GaussianMixture(
        weights / weights.sum(), rng.standard_normal(shape), rng.uniform(0.3, 2, shape)
    )


def frames_of(recordings):
    offsets = np.cumsum([0, *map(len, recordings.values())])
    return Frames(
        np.array(list(recordings), object), offsets, np.concatenate(list(recordings.values()))
    )


def random_frames(rng, lengths, dtype=np.float64):
    return frames_of(
        {
            f"r{n:03d}": rng.standard_normal((length, 3)).astype(dtype)
            for n, length in enumerate(lengths)
        }
    )


def brute_force(mixture, frames):
    joint = np.column_stack(
        [
            w * multivariate_normal(m, np.diag(v)).pdf(frames)
            for w, m, v in zip(mixture.weights, mixture.means, mixture.variances, strict=True)
        ]
    )
    posteriors = joint / joint.sum(axis=1, keepdims=True)
    return posteriors.sum(axis=0), (posteriors.T @ frames).ravel()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 30])
def test_no_operand_of_the_products_is_denormal(dtype, full, offset):
    """Frames as those of speech, whose log-densities differ by hundreds of nats, or far from every component."""
    rng = np.random.default_rng(0)
    means, variances = rng.standard_normal((64, 20)), rng.uniform(0.1, 0.4, (64, 20))
    mixture = GaussianMixture(np.full(64, 1 / 64), means, variances)
    frames = (
        means[rng.integers(64, size=200)] + 0.5 * rng.standard_normal((200, 20)) + offset
    ).astype(dtype)
    kernel = PosteriorKernel(
        natural_parameters(with_full_covariances(mixture) if full else mixture), frames.dtype, 20
    )
    joint, augmented, _ = kernel(frames)
    for operand in (joint, augmented):
        assert (np.abs(operand[operand != 0]) > 1e-31).all()
    assert (joint < 2e-30).mean() > 0.2
    logs = np.log(mixture.weights) + component_log_densities(mixture, frames)
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    atol = 2e-2 if dtype is np.float32 else 1e-9
    np.testing.assert_allclose((joint * augmented[:, -1]).T, expected, rtol=0, atol=atol)


def component_log_densities(mixture, frames):
    return np.column_stack(
        [
            multivariate_normal(m, np.diag(v)).logpdf(frames)
            for m, v in zip(mixture.means, mixture.variances, strict=True)
        ]
    )


def test_statistics_equal_brute_force():
    rng = np.random.default_rng(0)
    mixture, frames = random_mixture(rng), random_frames(rng, [1, 7, 300])
    found = accumulate_statistics(mixture, frames, ["a", "b", "b"], list(frames.ids))
    for row, segment in enumerate(frames.ids):
        zeroth, first = brute_force(mixture, np.atleast_2d(frames.of(segment)))
        np.testing.assert_allclose(found.zeroth[row], zeroth, atol=1e-10)
        np.testing.assert_allclose(found.first[row], first, atol=1e-10)
    assert found.models.tolist() == ["a", "b", "b"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_depend_only_on_the_frames(dtype):
    rng = np.random.default_rng(2)
    mixture, frames = (
        random_mixture(rng, 16),
        random_frames(rng, rng.integers(1, 400, 90).tolist(), dtype),
    )
    ids = frames.ids.tolist()
    expected = accumulate_statistics(mixture, frames, ids, ids, work=Work(jobs=1))
    order = rng.permutation(len(ids))
    mixed = [ids[place] for place in order]
    for jobs in (1, 2, 5):
        found = accumulate_statistics(mixture, frames, mixed, mixed, work=Work(jobs=jobs))
        np.testing.assert_array_equal(found.zeroth, expected.zeroth[order])
        np.testing.assert_array_equal(found.first, expected.first[order])
    for place in (0, 41, 89):
        alone = accumulate_statistics(mixture, frames, ["m"], [ids[place]])
        np.testing.assert_array_equal(alone.first[0], expected.first[place])
        elsewhere = frames_of(
            {"other": frames.values[:77], ids[place]: frames.of(ids[place]).copy()}
        )
        found = accumulate_statistics(mixture, elsewhere, ["m"], [ids[place]])
        np.testing.assert_array_equal(found.first[0], expected.first[place])
    assert expected.first.dtype == dtype


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        (["r000", "nobody"], "no features of recording 'nobody'"),
        (["empty"], "recording 'empty' has no frames"),
    ],
)
def test_segments_without_frames_are_refused(segments, words):
    rng = np.random.default_rng(4)
    frames = frames_of({"r000": rng.standard_normal((5, 3)), "empty": np.empty((0, 3))})
    with pytest.raises(DataError, match=words):
        accumulate_statistics(random_mixture(rng), frames, segments, segments)


# --- in files --------------------------------------------------------------------------------------------------------


def case(n=75, dtype=np.float32):
    """Three blocks of rows, in another order than the frames; some segments stand twice."""
    rng = np.random.default_rng(7)
    frames = random_frames(rng, rng.integers(1, 90, 60).tolist(), dtype)
    segments = [frames.ids[place] for place in rng.integers(0, 60, n)]
    return random_mixture(rng, 8), frames, [f"m{row % 7}" for row in range(n)], segments


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("in_file", [False, True])
def test_statistics_written_in_blocks_are_equal(tmp_path, jobs, in_file):
    mixture, frames, models, segments = case()
    expected = accumulate_statistics(mixture, frames, models, segments)
    if in_file:
        frames = Frames(frames.ids, frames.offsets, stored(frames.values, tmp_path))
        found = accumulate_statistics(mixture, frames, models, segments, work=Work(jobs=jobs))
        np.testing.assert_array_equal(found.first, expected.first)
    accumulate_statistics(
        mixture, frames, models, segments, work=Work(jobs=jobs), destination=tmp_path / "a.h5"
    )
    found = open_statistics(tmp_path / "a.h5")
    assert isinstance(found.first, StoredArray)
    for name in ("models", "segments", "zeroth", "first"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_statistics_written_in_blocks_must_be_finite(tmp_path):
    mixture, frames, _, _ = case()
    values = frames.values.copy()
    values[frames.offsets[3]] = np.nan
    frames = Frames(frames.ids, frames.offsets, values)
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(DataError, match=r"a\.h5: stat. of segment 'r003' .* not finite"),
    ):
        accumulate_statistics(
            mixture, frames, ["a", "b"], ["r001", "r003"], destination=tmp_path / "a.h5"
        )
    with pytest.raises(DataError, match="nobody"):
        accumulate_statistics(
            mixture, frames, ["a", "b"], ["r001", "nobody"], destination=tmp_path / "a.h5"
        )
    assert list(tmp_path.iterdir()) == []


def test_compressed_statistics_with_plain_ids_are_read(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["modelset"] = file["segset"] = np.array([b"a", b"b"])
        file.create_dataset("stat0", data=np.ones((2, 1)), compression="gzip")
        file["stat1"] = np.arange(6.0).reshape(2, 3)
    found = open_statistics(tmp_path / "a.h5")
    assert found.first.dtype == np.float32
    assert found.first[1].tolist() == [3, 4, 5]
