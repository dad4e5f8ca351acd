"""Attackers whose mixture has full covariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from evaluation.trials import Trials
from spkbase.errors import DataError
from spkver.attackers.attack import TrainedAttacker, load_attacker, raw_scores, save_attacker
from spkver.attackers.config import attacker_config
from spkver.attackers.kinds import Backend, Segments
from spkver.features.frames import Frames
from spkver.mixture.gmm import GaussianMixture
from spkver.mixture.statistics import Statistics, accumulate_statistics
from spkver.mixture.ubm import with_full_covariances

IDS = ["a", "b", "c"]
TRIALS = Trials.from_ids(np.repeat(IDS, 3).tolist(), IDS * 3)


def mixture(full: bool) -> GaussianMixture:
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((2, 3, 3))
    covariances = roots @ roots.swapaxes(1, 2) + 0.5 * np.eye(3)
    variances = covariances if full else np.diagonal(covariances, axis1=1, axis2=2).copy()
    return GaussianMixture(np.array([0.4, 0.6]), rng.standard_normal((2, 3)), variances)


def speech() -> Frames:
    values = np.random.default_rng(1).standard_normal((150, 3)) + np.repeat(np.eye(3), 50, axis=0)
    return Frames(np.array(IDS, object), np.array([0, 50, 100, 150]), values)


def scores_of(ubm: GaussianMixture, scoring: str) -> np.ndarray:
    config = attacker_config("gmm-ubm", settings=[f"scoring={scoring}", "norm.kind=none"])
    frames, statistics = speech(), statistics_of(ubm)
    machines = config.method.enrol(config, ubm, Backend(), statistics)
    test = Segments(frames.ids, frames=frames)
    if scoring != "exact":
        test = Segments(frames.ids, vectors=config.method.vectors(config, ubm, Backend(), statistics))
    return raw_scores(ubm, machines, test, TRIALS).values


def statistics_of(ubm: GaussianMixture) -> Statistics:
    return accumulate_statistics(ubm, speech(), IDS, IDS)


@pytest.mark.parametrize("scoring", ["exact", "bound", "linear"])
def test_diagonal_matrices_score_as_the_diagonal_mixture(scoring):
    ubm = mixture(full=False)
    found = scores_of(with_full_covariances(ubm), scoring)
    np.testing.assert_allclose(found, scores_of(ubm, scoring), rtol=1e-9, atol=1e-12)


def test_the_bound_by_its_definition():
    """sum over frames of P(c | x) (log N(x; adapted) - log N(x; ubm)), P that of the background model."""
    ubm, frames, statistics = mixture(full=True), speech(), statistics_of(mixture(full=True))
    found = scores_of(ubm, "bound").reshape(3, 3)
    config = attacker_config("gmm-ubm")
    for row in range(3):
        counts = statistics.zeroth[row][:, None]
        adapted = statistics.first[row].reshape(2, 3) + config.map.relevance * ubm.means
        adapted /= counts + config.map.relevance
        for column in range(3):
            tested = frames.of(IDS[column])
            logs = [
                np.stack([multivariate_normal(m, c).logpdf(tested) for m, c in zip(means, ubm.variances, strict=True)])
                for means in (adapted, ubm.means)
            ]
            posteriors = ubm.weights[:, None] * np.exp(logs[1])
            posteriors /= posteriors.sum(axis=0)
            expected = (posteriors * (logs[0] - logs[1])).sum() / len(tested)
            assert found[row, column] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_they_are_kept(tmp_path, full):
    config = attacker_config("gmm-ubm", settings=["ubm.covariance=full"] if full else [])
    attacker = TrainedAttacker(config, 0, mixture(full), Backend(), {"set": "x"})
    save_attacker(attacker, tmp_path)
    read = load_attacker(tmp_path)
    np.testing.assert_array_equal(read.ubm.variances, attacker.ubm.variances)
    assert read.config == config
    data = (tmp_path / "attacker.h5").read_bytes()
    (tmp_path / "attacker.h5").write_bytes(data[:-10])
    with pytest.raises(DataError, match="not as it was written"):
        load_attacker(tmp_path)
