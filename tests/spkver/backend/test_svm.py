"""One-against-background machines against scikit-learn's on the raw kernel."""

import h5py
import numpy as np
import pytest
from sklearn.svm import SVC
from stored_vectors import named, stored

from spkbase.arrays import StoredArray
from spkbase.configuration import load_config
from spkbase.errors import ConfigError
from spkbase.work import Work
from spkver import pipeline
from spkver.backend import SvmConfig, fit_nap, open_svms, svm, train_svms, write_svms
from spkver.rsr2015 import RecipeConfig
from spkver.sidekit import read_svm

EXACT = SvmConfig(tolerance=1e-9)
SESSIONS = {"anna": 1, "bert": 3, "ü/ç": 2, "d" * 150: 7}


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    models = [name for name, count in SESSIONS.items() for _ in range(count)]
    centres = {name: rng.standard_normal(30) for name in SESSIONS}
    vectors = np.stack([centres[name] + 0.3 * rng.standard_normal(30) for name in models])
    return models, vectors.astype(dtype), rng.standard_normal((40, 30)).astype(dtype)


def reference(own, background, cost, tests):
    stacked = np.concatenate([background, own]).astype(np.float64)
    cost = cost or len(stacked) / (stacked**2).sum()
    labels = [0] * len(background) + [1] * len(own)
    machine = SVC(kernel="linear", C=cost, tol=1e-9).fit(stacked, labels)
    return machine.decision_function(tests)


@pytest.mark.parametrize("cost", [None, 0.01, 10.0])
def test_scores_equal_scikit_learn(cost):
    models, vectors, background = data()
    tests = np.random.default_rng(1).standard_normal((25, 30))
    machines = train_svms(named(models, vectors), background, SvmConfig(tolerance=1e-9, cost=cost))
    assert machines.models.tolist() == sorted(SESSIONS)
    for row, name in enumerate(machines.models):
        own = vectors[[model == name for model in models]]
        scores = tests @ machines.weights[row] + machines.biases[row]
        np.testing.assert_allclose(scores, reference(own, background, cost, tests), atol=1e-7)


def test_the_order_of_rows_changes_nothing():
    models, vectors, background = data()
    expected = train_svms(named(models, vectors), background, EXACT)
    order = np.random.default_rng(2).permutation(len(models))
    found = train_svms(named([models[place] for place in order], vectors[order]), background, EXACT)
    assert found.models.tolist() == expected.models.tolist()
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-7)
    np.testing.assert_allclose(found.biases, expected.biases, atol=1e-7)


@pytest.mark.parametrize("name", ["cost", "tolerance"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_options_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigError, match=rf"svm\.{name} is {value}: expected a number above 0"):
        SvmConfig(**{name: value})


# --- in files --------------------------------------------------------------------------------------------------------


def many(folder=None):
    """Machines in three chunks; models with 1 to 3 sessions in mixed rows."""
    rng = np.random.default_rng(5)
    models = [f"m{number:02d}" for number in [*rng.permutation(40), *rng.integers(0, 40, 30)]]
    vectors, background = (rng.standard_normal((n, 60)).astype(np.float32) for n in (70, 300))
    if folder is not None:
        return models, stored(vectors, folder, "vectors"), stored(background, folder, "background")
    return models, vectors, background


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize(("jobs", "sent"), [(1, False), (2, False), (1, True)])
def test_svms_written_in_blocks_are_equal(tmp_path, projected, jobs, sent, monkeypatch):
    # other machines read the background from its file
    monkeypatch.setattr(svm, "ships_items", lambda: sent)
    here, there = many(), many(tmp_path)
    projection = fit_nap(here[2], rank=5) if projected else None
    expected = train_svms(named(*here[:2]), here[2], projection=projection)
    train_svms(
        named(*there[:2]),
        there[2],
        projection=projection,
        work=Work(jobs=jobs),
        destination=tmp_path / "a.h5",
    )
    found = open_svms(tmp_path / "a.h5")
    assert isinstance(found.weights, StoredArray)
    for name in ("models", "weights", "biases"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    write_svms(tmp_path / "b.h5", expected)
    with h5py.File(tmp_path / "a.h5") as new, h5py.File(tmp_path / "b.h5") as old:
        assert set(new) == set(old)
        assert {name: new[name].dtype for name in new} == {name: old[name].dtype for name in old}
        assert dict(new.attrs) == dict(old.attrs)


def test_machines_are_written_as_files_of_sidekit(tmp_path):
    rng = np.random.default_rng(0)
    machines = svm.SvmModels(
        np.array(["m1", "m2"], object), rng.normal(size=(2, 5)), rng.normal(size=2)
    )
    pipeline.write_machine_files(tmp_path / "svm-gmm", machines)
    assert {path.name for path in (tmp_path / "svm-gmm").iterdir()} == {"m1.svm", "m2.svm"}
    for row, model in enumerate(machines.models):
        weights, bias = read_svm(tmp_path / f"svm-gmm/{model}.svm", allow_pickle=True)
        np.testing.assert_array_equal(weights, machines.weights[row])
        assert bias == machines.biases[row]
    config = load_config(RecipeConfig, settings=["svm.files=true", "svm.cost=2"])
    assert config.svm.files
    assert config.svm.training == SvmConfig(cost=2)  # what the stage of the machines depends on
