"""Statistics, MAP, NAP, SVM and scores against SIDEKIT's own numbers."""

import golden_numbers
import numpy as np
import pytest
from golden_numbers import objects, signed_sums
from stored_vectors import named

from evaluation.trials import Trials
from spkver.backend import fit_nap, score_gmm_ubm, score_trials, train_svms
from spkver.features.frames import Frames
from spkver.mixture import GaussianMixture, Statistics, accumulate_statistics
from spkver.vectors.supervectors import MapConfig, adapt_multisession, adapt_supervectors

LISTS = ("enroll", "back", "test")
# float64: MAP, NAP 1e-9 and SVM 1e-6 as largest differences; float32: 1e-4 of the largest value
PRECISIONS = [(np.float64, 1e-9, 1e-6), (np.float32, 1e-4, 1e-4)]


@pytest.fixture(scope="module")
def golden():
    return golden_numbers.load("map_nap_svm")


@pytest.fixture(scope="module")
def mixture():
    em = golden_numbers.load("em_split")
    return GaussianMixture(em["w64"], em["mu64"], 1 / em["invcov64"])


def statistics(golden, name, dtype):
    return Statistics(
        objects(golden[f"{name}_modelset"]),
        objects(golden[f"{name}_segset"]),
        golden[f"{name}_stat0"].astype(dtype),
        golden[f"{name}_stat1"].astype(dtype),
    )


def close(ours, expected, tolerance, dtype):
    scale = 1.0 if dtype == np.float64 else np.abs(expected).max()
    assert np.abs(ours - expected).max() <= tolerance * scale


@pytest.mark.parametrize(("dtype", "tolerance", "_"), PRECISIONS)
def test_map_supervectors_equal_sidekit(golden, mixture, dtype, tolerance, _):
    for name in LISTS:
        adapted = adapt_supervectors(mixture, statistics(golden, name, dtype))
        assert adapted.vectors.dtype == dtype
        close(signed_sums(adapted.vectors), golden[f"{name}_sv_norm_sums"], tolerance, dtype)
    plain = adapt_supervectors(
        mixture, statistics(golden, "enroll", dtype), MapConfig(normalise=False)
    )
    close(signed_sums(plain.vectors), golden["enroll_sv_nonorm_r3_sums"], tolerance, dtype)
    models = adapt_multisession(
        mixture, statistics(golden, "enroll", dtype), MapConfig(normalise=False)
    )
    close(signed_sums(models.vectors), golden["enroll_sv_multisession_r3_sums"], tolerance, dtype)
    assert models.models.tolist() == golden["enroll_multisession_models"].tolist()


@pytest.mark.parametrize(("dtype", "tolerance", "svm_tolerance"), PRECISIONS)
def test_nap_svms_and_scores_equal_sidekit(golden, mixture, dtype, tolerance, svm_tolerance):
    # from the other toolkit's statistics: in float32, rounding starts with our supervectors
    vectors = {
        name: adapt_supervectors(mixture, statistics(golden, name, np.float64)).vectors.astype(
            dtype
        )
        for name in LISTS
    }
    projection = fit_nap(vectors["back"], rank=10)
    expected = golden["nap10"].T
    signs = np.sign((projection.directions * expected).sum(axis=1, keepdims=True))
    close(projection.directions * signs, expected, tolerance, dtype)
    projected = {name: projection(vectors[name]) for name in LISTS}
    for name in ("enroll", "test"):
        close(signed_sums(projected[name]), golden[f"{name}_sv_nap_sums"], tolerance, dtype)

    machines = train_svms(
        named(golden["enroll_modelset"].tolist(), projected["enroll"]), projected["back"]
    )
    assert machines.models.tolist() == golden["svm_models"].tolist()
    close(machines.weights, golden["svm_w"], svm_tolerance, dtype)
    close(machines.biases, golden["svm_b"], svm_tolerance, dtype)

    trials = all_trials(golden)
    scores = score_trials(
        machines, named(golden["test_segset"].tolist(), projected["test"]), trials
    )
    close(
        scores.values.reshape(golden["svm_scores"].shape),
        golden["svm_scores"],
        svm_tolerance,
        dtype,
    )


def all_trials(golden):
    pairs = [
        (m, s)
        for m in golden["svm_scores_models"].tolist()
        for s in golden["svm_scores_segs"].tolist()
    ]
    return Trials.from_ids(*zip(*pairs, strict=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_statistics_and_gmm_scores_equal_sidekit(shared, golden, mixture, dtype):
    """Their frames were stored in float32, so 1e-5 is what the numbers allow (1e-4 of the largest in float32)."""
    full = np.load(shared / "golden" / "sidekit" / "map_nap_svm.npz")
    frames = {
        name: Frames(
            objects(full[f"{name}/segset"]),
            full[f"{name}/frames_offsets"],
            full[f"{name}/frames"].astype(dtype),
        )
        for name in ("enroll", "test")
    }
    tolerance = 1e-5 if dtype == np.float64 else 1e-4
    for name, stored in frames.items():
        found = accumulate_statistics(
            mixture, stored, golden[f"{name}_modelset"].tolist(), golden[f"{name}_segset"].tolist()
        )
        assert found.first.dtype == dtype
        close(found.zeroth, golden[f"{name}_stat0"], tolerance, dtype)
        close(found.first, golden[f"{name}_stat1"], tolerance, dtype)
    models = adapt_multisession(
        mixture, statistics(golden, "enroll", np.float64), MapConfig(normalise=False)
    )
    scores = score_gmm_ubm(mixture, models, frames["test"], all_trials(golden))
    close(scores.values.reshape(full["gmm_scores"].shape), full["gmm_scores"], tolerance, dtype)
