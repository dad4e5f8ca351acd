"""Whole chains against the golden scores of SIDEKIT 1.3.2 and of the textbook (golden/backend/README.md)."""

import numpy as np
import pytest

from evaluation.calibration import t_norm, z_norm
from evaluation.embeddings import Embeddings
from evaluation.trials import Scores, Trials
from spkver.backend import train_chain

pytestmark = pytest.mark.golden


@pytest.fixture(scope="module")
def golden(shared):
    arrays = {}
    for name in ("inputs", "tv", "scores", "normalisation", "plda"):
        with np.load(shared / "golden" / "backend" / f"{name}.npz") as file:
            arrays.update(file)
    return arrays


def texts(array):
    return [name.decode() for name in array.tolist()]


def embeddings(golden, part):
    segments = golden.get(f"{part}_segments")
    vectors = golden[f"iv_{part}"]
    ids = texts(segments)
    assert len(ids) == len(vectors)
    return Embeddings(ids, texts(golden[f"{part}_models"]) if part != "test" else ids, vectors)


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


LDA = {"lda": {"rank": 10, "convention": "sidekit"}}


@pytest.mark.parametrize(
    ("chain", "name"),
    [
        (["cosine"], "cosine_mean"),
        (["wccn"], "cosine_wccn_mean"),
        ([LDA], "cosine_lda10_mean"),
        ([LDA, "wccn"], "cosine_lda10_wccn_mean"),
        (["lda:10"], "right_cosine_lda10_mean"),
        (["efr"], "cosine_efr_mean"),
        (["mahalanobis"], "mahalanobis"),
        (
            [{"two_covariance": {"sessions": "mean", "convention": "sidekit"}}],
            "right_two_covariance_llr",
        ),
        ([{"plda": {"rank": 10, "convention": "sidekit", "sessions": "mean"}}], "plda_r10_fast"),
        ([{"plda": {"rank": 30, "convention": "sidekit", "sessions": "mean"}}], "plda_r30_fast"),
        ([{"plda": {"rank": 10, "convention": "sidekit"}}], "right_plda_r10_multisession"),
        ([{"plda": {"rank": 30, "convention": "sidekit"}}], "right_plda_r30_multisession"),
        (
            ["efr", {"plda": {"rank": 10, "convention": "sidekit", "sessions": "mean"}}],
            "plda_efr_fast",
        ),
        (["cosine", "snorm"], "s_norm"),
        (["snorm: 30"], "adaptive_s_norm_top30"),
    ],
)
def test_scores_equal_sidekit(golden, chain, name):
    """All 60 x 120 scores, in the order of the golden arrays."""
    backend = train_chain(embeddings(golden, "train"), chain)
    models, segments = texts(golden["trial_models"]), texts(golden["trial_segments"])
    trials = Trials.from_ids(np.repeat(models, len(segments)).tolist(), segments * len(models))
    scores = backend.score(embeddings(golden, "enroll"), embeddings(golden, "test"), trials).values
    same(scores.reshape(len(models), -1), golden[name])


def square(models, segments, values, mask=None):
    rows, columns = np.nonzero(np.ones(values.shape, bool) if mask is None else mask)
    return Scores.from_ids(
        [models[row] for row in rows],
        [segments[column] for column in columns],
        values[rows, columns],
    )


def test_z_t_and_zt_norm_equal_sidekit(golden):
    models, segments, cohort = (
        texts(golden["trial_models"]),
        texts(golden["trial_segments"]),
        [f"c{n:03d}" for n in range(110)],
    )
    raw = square(models, segments, golden["raw"])
    of_models = square(models, cohort, golden["enroll_cohort"])
    of_tests = square(cohort, segments, golden["cohort_test"])
    among = square(cohort, cohort, golden["cohort_cohort"], ~np.eye(110, dtype=bool))
    order = lambda scores: scores.values.reshape(golden["raw"].shape)  # noqa: E731
    same(order(z_norm(raw, of_models)), golden["z_norm"])
    same(order(t_norm(raw, of_tests)), golden["t_norm"])
    same(order(t_norm(z_norm(raw, of_models), z_norm(of_tests, among))), golden["zt_norm"])
