"""SIDEKIT's files: its own samples, our own written back, and files that are broken."""

import gzip
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from spkbase.errors import DataError
from spkver.sidekit.features import SidekitFeatures, read_feature_file, write_feature_file
from spkver.sidekit.models import read_mixture, read_svm, write_mixture
from spkver.sidekit.tables import StatServer, read_idmap, read_stat_server, write_stat_server

SHOWS = ("libri", "syn_a", "syn_b")


def replace(file, name, values):
    del file[name]
    file[name] = values


@pytest.fixture(scope="module")
def golden(shared):
    return shared / "golden" / "sidekit"


# --- samples that are part of the project ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples(data):
    return data / "sidekit_files"


# --- StatServer ------------------------------------------------------------------------------------------------------


def stat_server(n=5, n_components=3, dimension=4):
    rng = np.random.default_rng(n)
    return {
        "models": [f"m{row % 2}" for row in range(n)],
        "segments": [f"m{row % 2}/s{row}" for row in range(n)],
        "stat0": rng.uniform(0, 9, (n, n_components)).astype(np.float32),
        "stat1": rng.normal(0, 9, (n, n_components * dimension)).astype(np.float32),
    }


@pytest.mark.parametrize(
    ("name", "part"), [("enroll", "enroll"), ("back", "back"), ("test", "test")]
)
def test_stat_servers_of_sidekit_are_read(golden, name, part):
    server = read_stat_server(golden / f"h5/stat_{name}.h5")
    with np.load(golden / "map_nap_svm.npz") as expected:
        assert server.models.tolist() == expected[f"{part}/modelset"].astype(str).tolist()
        assert server.segments.tolist() == expected[f"{part}/segset"].astype(str).tolist()
        assert np.array_equal(server.stat0, expected[f"{part}/stat0"].astype(np.float32))
        assert np.array_equal(server.stat1, expected[f"{part}/stat1"].astype(np.float32))
    assert server.stat0.dtype == server.stat1.dtype == np.float32


def test_stat_servers_are_read_back_and_have_the_layout_of_sidekit(tmp_path):
    values, path = stat_server(), tmp_path / "stat.h5"
    write_stat_server(path, StatServer(**values))
    server = read_stat_server(path)
    assert server.models.tolist() == values["models"]
    assert server.segments.tolist() == values["segments"]
    for name in ("stat0", "stat1"):
        assert np.array_equal(getattr(server, name), values[name])
    with h5py.File(path) as file:
        kinds = {name: file[name].dtype for name in ("stat0", "stat1", "start", "stop")}
        assert kinds == {"stat0": "f4", "stat1": "f4", "start": "i4", "stop": "i4"}
        assert file["modelset"].dtype == "S2"


@pytest.mark.parametrize("charset", ["ascii", "utf-8", "variable"])
def test_non_ascii_ids_of_any_writer_are_read(tmp_path, charset):
    """SIDEKIT's own layout, made by h5py alone: bytes without a mark, marked as UTF-8, and of variable length."""
    names = ["José/1", "漢字", "m3"]
    raw = np.array([name.encode("utf-8") for name in names])
    kinds = {
        "ascii": raw.dtype,
        "utf-8": h5py.string_dtype("utf-8", raw.itemsize),
        "variable": h5py.string_dtype(),
    }
    ids = names if charset == "variable" else raw
    with (
        h5py.File(tmp_path / "stat.h5", "w") as stat,
        h5py.File(tmp_path / "idmap.h5", "w") as idmap,
    ):
        for file, name in (
            (stat, "modelset"),
            (stat, "segset"),
            (idmap, "leftids"),
            (idmap, "rightids"),
        ):
            file.create_dataset(name, data=np.array(ids, kinds[charset]))
        stat["stat0"], stat["stat1"] = np.ones((3, 1), "f4"), np.ones((3, 2), "f4")
        for file in (stat, idmap):
            file["start"] = file["stop"] = np.full(3, -1, np.int32)
    server, pairs = read_stat_server(tmp_path / "stat.h5"), read_idmap(tmp_path / "idmap.h5")
    for column in (server.models, server.segments, pairs.models, pairs.segments):
        assert list(column) == names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segments": ["s"]}, "5 models, but 1 segments"),
        (
            {"stat0": np.ones((4, 3))},
            r"expected stat0 \(5, C\) and stat1 \(5, C \* D\), not \(4, 3\) and \(5, 12\)",
        ),
        (
            {"stat1": np.where(np.eye(5, 12), np.nan, 0)},
            r"stat1 of segment 'm0/s0' \(row 0\) is not finite",
        ),
    ],
)
def test_malformed_stat_servers_are_not_written(tmp_path, change, message):
    path = tmp_path / "stat.h5"
    with pytest.raises(DataError, match=message) as caught:
        write_stat_server(path, StatServer(**{**stat_server(), **change}))
    assert caught.value.file == path
    assert not list(tmp_path.iterdir())


# --- Mixture ---------------------------------------------------------------------------------------------------------


def mixture(n_components=3, dimension=4):
    rng = np.random.default_rng(dimension)
    return {
        "weights": rng.dirichlet(np.ones(n_components)),
        "means": rng.normal(size=(n_components, dimension)),
        "variances": rng.uniform(0.1, 3, (n_components, dimension)),
        "variance_control": rng.uniform(0.1, 3, (n_components, dimension)),
    }


@pytest.mark.parametrize("n_components", [16, 64])
def test_mixtures_of_sidekit_are_read(golden, tmp_path, n_components):
    path = golden / f"h5/ubm{n_components}.h5"
    ubm = read_mixture(path)
    with np.load(golden / "em_split.npz") as expected:
        for name, values in (("w", ubm.weights), ("mu", ubm.means), ("invcov", ubm.precisions)):
            assert np.array_equal(values, expected[f"{name}{n_components}"])
    ours = tmp_path / "ubm.h5"
    write_mixture(
        ours,
        weights=ubm.weights,
        means=ubm.means,
        variances=1 / ubm.precisions,
        variance_control=ubm.variance_control,
    )
    with h5py.File(path) as theirs, h5py.File(ours) as file:
        assert sorted(theirs) == sorted(file)
        for name in theirs:
            assert (theirs[name].shape, theirs[name].dtype) == (file[name].shape, file[name].dtype)
            np.testing.assert_allclose(file[name][()], theirs[name][()], rtol=1e-12)


def test_mixture_constants_equal_their_definition(tmp_path):
    values = mixture()
    write_mixture(tmp_path / "ubm.h5", **values)
    with h5py.File(tmp_path / "ubm.h5") as file:
        data = {name: file[name][()] for name in file}
    det = values["variances"].prod(axis=1)
    constant = 1 / np.sqrt(det * (2 * np.pi) ** 4)
    np.testing.assert_allclose(data["det"], det, rtol=1e-13)
    np.testing.assert_allclose(data["cst"], constant, rtol=1e-13)
    expected = (values["means"] ** 2 / values["variances"]).sum(axis=1) - 2 * np.log(
        values["weights"] * constant
    )
    np.testing.assert_allclose(data["a"], expected, rtol=1e-13)
    assert data["invchol"].shape == (0,)
    ubm = read_mixture(tmp_path / "ubm.h5")
    assert np.array_equal(ubm.weights, values["weights"])
    assert np.array_equal(ubm.means, values["means"])
    assert np.array_equal(ubm.variance_control, values["variance_control"])
    np.testing.assert_allclose(ubm.precisions, 1 / values["variances"], rtol=1e-15)


def test_constants_of_full_covariances_equal_their_definition(tmp_path):
    values = mixture()
    roots = np.random.default_rng(1).normal(size=(3, 4, 4))
    values["variances"] = roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(4)
    write_mixture(tmp_path / "ubm.h5", **values)
    precisions = np.linalg.inv(values["variances"])
    with h5py.File(tmp_path / "ubm.h5") as file:
        data = {name: file[name][()] for name in file}
    np.testing.assert_allclose(data["invcov"], precisions, rtol=1e-10)
    np.testing.assert_allclose(
        data["invchol"] @ data["invchol"].swapaxes(1, 2), precisions, rtol=1e-10
    )
    assert not np.triu(data["invchol"], 1).any()
    np.testing.assert_allclose(data["det"], np.linalg.det(values["variances"]), rtol=1e-10)
    # log(w) + log-density = -(x' P x - 2 m' P x + a) / 2
    frame = np.arange(4.0)
    exponent = [
        frame @ p @ frame - 2 * m @ p @ frame
        for m, p in zip(values["means"], precisions, strict=True)
    ]
    expected = [
        np.log(w) + multivariate_normal(m, c).logpdf(frame)
        for w, m, c in zip(values["weights"], values["means"], values["variances"], strict=True)
    ]
    np.testing.assert_allclose(-(np.array(exponent) + data["a"]) / 2, expected, rtol=1e-10)
    ubm = read_mixture(tmp_path / "ubm.h5")
    np.testing.assert_allclose(ubm.variances(), values["variances"], rtol=1e-10)
    assert np.array_equal(ubm.precisions, ubm.precisions.swapaxes(1, 2))


MIXTURE_CHANGES = [
    (
        lambda file: replace(file, "invcov", np.tile(np.eye(4) + np.eye(4, k=1), (3, 1, 1))),
        "invcov of component 0 should be finite, symmetric and positive definite",
    ),
    (
        lambda file: replace(file, "invcov", np.ones((3, 4, 5))),
        r"invcov should have the shape of mu, \(3, 4\), not \(3, 4, 5\), or be \(3, 4, 4\)",
    ),
    (
        lambda file: replace(file, "cov_var_ctl", np.ones((3, 1))),
        r"cov_var_ctl should have the shape \(3, 4\)",
    ),
    (
        lambda file: replace(file, "w", np.full(3, 0.5)),
        "weights should be 0 or more and sum to 1, they sum to 1.5",
    ),
    (
        lambda file: file["mu"].__setitem__((1, 2), np.inf),
        "mu of component 1, dimension 2 should be finite, not inf",
    ),
    (
        lambda file: file["invcov"].__setitem__((1, 2), 0),
        "invcov of component 1, dimension 2 should be above 0",
    ),
    (lambda file: file.__delitem__("invcov"), "expected 'invcov', found a, cov_var_ctl, cst, det"),
]


@pytest.mark.parametrize(("change", "message"), MIXTURE_CHANGES)
def test_broken_mixtures_are_refused(tmp_path, change, message):
    path = tmp_path / "ubm.h5"
    write_mixture(path, **mixture())
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(DataError, match=message) as caught:
        read_mixture(path)
    assert caught.value.file == path


# --- feature files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("show", SHOWS)
def test_feature_files_of_sidekit_are_read_in_all_forms(golden, show):
    with np.load(golden / "features.npz") as expected:
        for form, tolerance in (("none", 0), ("percentile", 0), ("htk", 7.5e-4)):
            features = read_feature_file(golden / f"h5/feat_{form}_{show}.h5")
            assert list(features) == [show]
            found = features[show]
            raw = expected[f"{show}/raw_{form if form == 'percentile' else 'none'}"]
            assert np.abs(np.column_stack([found.energy, found.cep]) - raw).max() <= tolerance
            assert found.vad.dtype == bool
            assert np.array_equal(found.vad, expected[f"{show}/vad"])
            fb = expected[f"{show}/fb"]
            if form == "percentile":  # the known rounding error of the form, for each dimension
                assert (np.sqrt(((found.fb - fb) ** 2).mean(axis=0)) < 0.015 * fb.std(axis=0)).all()
            else:
                assert np.abs(found.fb - fb).max() <= tolerance
            assert {name: len(mean) for name, mean in found.means.items()} == {
                "cep": 19,
                "energy": 1,
                "fb": 40,
            }
            assert {name: len(std) for name, std in found.stds.items()} == {
                "cep": 19,
                "energy": 1,
                "fb": 40,
            }


@pytest.mark.parametrize("show", SHOWS)
def test_written_features_have_the_layout_of_sidekit(golden, tmp_path, show):
    theirs = golden / f"h5/feat_none_{show}.h5"
    ours = tmp_path / "features.h5"
    write_feature_file(ours, read_feature_file(theirs))
    with h5py.File(theirs) as expected, h5py.File(ours) as found:
        assert found["compression"].dtype == expected["compression"].dtype
        assert found["compression"][()] == 0
        assert sorted(found[show]) == sorted(expected[show])
        for name in expected[show]:
            assert (found[show][name].shape, found[show][name].dtype) == (
                expected[show][name].shape,
                expected[show][name].dtype,
            )
            np.testing.assert_allclose(found[show][name][()], expected[show][name][()], rtol=1e-6)


def features(n=6, *, seed=0):
    rng = np.random.default_rng(seed)
    return SidekitFeatures(
        cep=rng.normal(size=(n, 3)).astype(np.float32),
        energy=rng.normal(size=n).astype(np.float32),
        vad=np.arange(n) % 3 > 0,
        fb=rng.normal(size=(n, 4)).astype(np.float32),
    )


FEATURE_CHANGES = [
    (lambda file: replace(file, "compression", 7), "compression should be 0, 1 or 2, not 7"),
    (
        lambda file: replace(file, "a/s/vad", np.ones(5, np.int8)),
        "'a/s' has different numbers of frames: .*'vad': 5",
    ),
    (
        lambda file: replace(file, "a/s/cep", np.ones((6, 3), np.uint8)),
        "cep should hold numbers, not uint8",
    ),
    (
        lambda file: replace(file, "a/s/cep", np.full((6, 3), np.nan)),
        "cep of 'a/s' holds values that are not finite",
    ),
    (lambda file: file.__delitem__("a/s"), "holds no features"),
    (
        lambda file: [file["a/s"].pop(one) for one in ("cep", "energy", "fb")],
        "'a/s' has neither cepstra nor energy",
    ),
]


@pytest.mark.parametrize(("change", "message"), FEATURE_CHANGES)
def test_broken_feature_files_are_refused(tmp_path, change, message):
    path = tmp_path / "f.h5"
    write_feature_file(path, {"a/s": features()})
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(DataError, match=message) as caught:
        read_feature_file(path)
    assert caught.value.file == path


@pytest.mark.parametrize("show", ["", "a//b", "a/../b", "compression"])
def test_ids_that_are_not_hdf5_names_are_refused(tmp_path, show):
    with pytest.raises(DataError, match="cannot be a name in an HDF5 file"):
        write_feature_file(tmp_path / "f.h5", {show: features()})
    assert not list(tmp_path.iterdir())


# --- any broken HDF5 file --------------------------------------------------------------------------------------------

READERS = [read_idmap, read_stat_server, read_mixture, read_feature_file]


@pytest.mark.parametrize("read", READERS[1:])
def test_files_of_another_type_are_refused(tmp_path, read):
    with pytest.raises(DataError, match=r"gone\.h5: no such file"):
        read(tmp_path / "gone.h5")
    for content in (b"", b"\x89HDF\r\n\x1a\n" + bytes(500)):
        (tmp_path / "a.h5").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.h5: (is not an HDF5 file|cannot be read)"):
            read(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["other"] = [1, 2]
    with pytest.raises(DataError, match=r"expected '(modelset|w)', found other|holds no features"):
        read(tmp_path / "a.h5")


# --- SVM -------------------------------------------------------------------------------------------------------------


def put_svm(path, content, protocol=4):
    with gzip.open(path, "wb") as handle:
        pickle.dump(content, handle, protocol=protocol)
    return path


def test_svms_of_sidekit_are_read(golden):
    with np.load(golden / "map_nap_svm.npz") as expected:
        for row, model in enumerate(expected["svm_models"].astype(str)):
            w, b = read_svm(golden / f"svm/{model}.svm", allow_pickle=True)
            assert np.array_equal(w, expected["svm_w"][row])
            assert b == expected["svm_b"][row]


def test_svms_are_read_only_with_allow_pickle(tmp_path):
    path = put_svm(tmp_path / "m.svm", (np.ones((3, 1)), 1.0))
    with pytest.raises(
        DataError, match=r"is a pickle, a format that can carry programs .*allow_pickle=True"
    ):
        read_svm(path)


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("evil"),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ((Evil(), 1.0), "which is not part of plain data: nothing of it was run"),
        (
            (np.array([Path("a")], dtype=object), 1.0),
            "which is not part of plain data: nothing of it was run",
        ),
        ((np.ones(3, dtype=int), 1.0), "an array of 'i8', expected floats"),
        ((np.ones((3, 2)), 1.0), r"expected a finite vector and a finite float, found \(3, 2\)"),
        ((np.array([1.0, np.nan]), 1.0), "expected a finite vector"),
        (5, "is not an SVM of SIDEKIT"),
    ],
)
def test_svm_files_with_other_objects_are_refused(tmp_path, content, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        read_svm(put_svm(tmp_path / "m.svm", content), allow_pickle=True)
    assert not (tmp_path / "evil").exists()
