"""SIDEKIT's FactorAnalyser and .svm written and read, vectors of a StatServer as embeddings and back."""

import gzip
import pickle
import pickletools

import h5py
import numpy as np
import pytest

from evaluation.embeddings import Embeddings, read_embeddings
from spkbase.errors import DataError
from spkver.backend import Plda, Sessions, plda_from_sidekit, plda_scores, plda_to_sidekit
from spkver.sidekit.models import (
    FactorAnalyser,
    read_factor_analyser,
    read_svm,
    write_factor_analyser,
    write_svm,
)
from spkver.sidekit.tables import StatServer, write_stat_server

PARTS = ("mean", "loadings", "channel", "diagonal", "residual")


def matrices(*names):
    rng = np.random.default_rng(0)
    shapes = {"mean": 4, "loadings": (4, 2), "channel": (4, 1), "diagonal": 4, "residual": (4, 4)}
    return FactorAnalyser(**{name: rng.normal(size=shapes[name]) for name in names})


def test_the_layout_equals_sidekit(tmp_path):
    """What its reader asks for: a flag for each of mean, F, G, H and Sigma, and those that are there."""
    write_factor_analyser(tmp_path / "fa.h5", matrices("mean", "loadings", "residual"))
    with h5py.File(tmp_path / "fa.h5") as file:
        assert sorted(file["fa"]) == ["f", "kind", "mean", "sigma"]
        assert file["fa/kind"].dtype == np.int16
        assert file["fa/kind"][()].tolist() == [1, 1, 0, 0, 1]
        assert {file[f"fa/{name}"].dtype for name in ("mean", "f", "sigma")} == {np.dtype("<f8")}
        assert {file[f"fa/{name}"].fletcher32 for name in file["fa"]} == {True}


def test_a_plda_of_sidekit_can_score(tmp_path):
    rng = np.random.default_rng(0)
    plda = Plda(rng.normal(size=3), rng.normal(size=(3, 2)), np.eye(3), rng.normal(size=(3, 1)))
    write_factor_analyser(tmp_path / "plda.h5", plda_to_sidekit(plda))
    found = plda_from_sidekit(read_factor_analyser(tmp_path / "plda.h5"))
    sessions, zero = Sessions(rng.normal(size=(2, 3)), np.array([0, 0])), np.array([0])
    tests = rng.normal(size=(1, 3))
    assert plda_scores(found, sessions, tests, zero, zero) == plda_scores(
        plda, sessions, tests, zero, zero
    )


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (("mean", "loadings"), "mean, loadings"),
        (PARTS, "mean, loadings, channel, diagonal, residual"),
    ],
)
def test_other_models_are_refused_as_plda(names, there):
    with pytest.raises(DataError, match=f"the full covariance Sigma of a PLDA, got {there} "):
        plda_from_sidekit(matrices(*names))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": np.zeros(5, np.int16)}, "without a matrix"),
        ({"f": None}, "expected 'fa/f'"),
        ({"f": np.ones((5, 2))}, r"the same number of rows, not mean \(4,\), loadings \(5, 2\)"),
        ({"f": np.full((4, 1), np.nan)}, "loadings of a FactorAnalyser holds NaN"),
        ({"mean": np.array([b"a"] * 4)}, "should hold numbers"),
    ],
)
def test_broken_matrices_raise_one_error(tmp_path, change, message):
    path = tmp_path / "fa.h5"
    write_factor_analyser(path, matrices("mean", "loadings", "residual"))
    with h5py.File(path, "a") as file:
        for name, array in change.items():
            del file[f"fa/{name}"]
            if array is not None:
                file[f"fa/{name}"] = array
    with pytest.raises(DataError, match=message) as error:
        read_factor_analyser(path)
    assert str(error.value).startswith(f"{path}: ")


# --- .svm ------------------------------------------------------------------------------------------------------------


def test_written_svms_are_read_back_and_contain_only_arrays(tmp_path):
    """SIDEKIT unpickles (w of shape (D, 1), b) under NumPy 1, whose core has no underscore."""
    weights = np.random.default_rng(0).normal(size=1000)
    write_svm(tmp_path / "m.svm", weights, -0.25)
    w, b = read_svm(tmp_path / "m.svm", allow_pickle=True)
    assert w.tolist() == weights.tolist()
    assert b == -0.25
    raw = gzip.decompress((tmp_path / "m.svm").read_bytes())
    named = {
        str(argument) for code, argument, _ in pickletools.genops(raw) if code.name == "GLOBAL"
    }
    assert named == {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"}
    theirs, offset = pickle.loads(raw)
    assert theirs.shape == (1000, 1)
    assert isinstance(offset, float)


# --- vectors ---------------------------------------------------------------------------------------------------------


def test_vectors_of_a_stat_server_are_read_as_embeddings(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    embeddings = Embeddings(["u1", "u2", "ü"], ["a", "a", "b"], vectors)
    write_stat_server(
        tmp_path / "iv.h5",
        StatServer(embeddings.speakers, embeddings.ids, np.ones((3, 1)), vectors),
    )
    with h5py.File(tmp_path / "iv.h5") as file:
        assert file["stat0"][()].tolist() == [[1], [1], [1]]
        assert file["stat1"].dtype == np.float32
    found = read_embeddings(tmp_path / "iv.h5")
    assert found.ids.tolist() == ["u1", "u2", "ü"]
    assert found.speakers.tolist() == ["a", "a", "b"]
    assert found.vectors.tolist() == vectors.tolist()
