"""``spkver embed``: one file of vectors, the same whatever happens on the way to it."""

import json
import re
import sys
from pathlib import Path

import h5py
import network_oracle as oracle
import numpy as np
import pytest
import soundfile
from command_lines import passes, refused
from torch_writer import Tensors, write_torch

from evaluation.embeddings import read_embeddings
from evaluation.trials import Trials
from spkbase.errors import ConfigError
from spkbase.work import Work
from spkver.backend import train_chain, write_backend
from spkver.datadir import DataDir, read_datadir, write_datadir
from spkver.extractors import (
    EXTRACTORS,
    FUNCTION,
    ExtractorSettings,
    embed,
    embed_directory,
    open_extractor,
)

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[3]
RATE = 16000
OWN = """
import pathlib
import numpy as np

def spectrum(samples, rate):
    log = pathlib.Path(__file__).with_name("log")
    if log.exists():
        with log.open("a") as file:
            file.write("x")
    return np.abs(np.fft.rfft(samples, 64))[:20] + rate
"""


def make_set(folder, count=20, *, rate=RATE):
    """A data directory of recordings of different lengths, two to a speaker."""
    names = [f"u{number:02d}" for number in range(count)]
    (folder / "wav").mkdir(parents=True)
    for number, name in enumerate(names):
        rng = np.random.default_rng(number)
        soundfile.write(
            folder / "wav" / f"{name}.wav", 0.1 * rng.standard_normal(3000 + 100 * number), rate
        )
    recordings = {name: folder / "wav" / f"{name}.wav" for name in names}
    write_datadir(
        DataDir(folder, recordings, {name: f"s{int(name[1:]) // 2:02d}" for name in names})
    )
    return read_datadir(folder)


@pytest.fixture
def source(tmp_path):
    return make_set(tmp_path / "set")


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    return f"{tmp_path / 'own.py'}:spectrum"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    content = {"model_state": Tensors(oracle.random_ge2e(1))}
    return write_torch(tmp_path_factory.mktemp("weights") / "pretrained.pt", content)


@pytest.mark.parametrize("name", ["v.h5", "v.npz"])
def test_a_file_of_vectors_records_speakers_and_extractor(source, weights, tmp_path, name):
    said = passes(
        "embed", source.path, "-e", f"ge2e:{weights}", "-o", tmp_path / name, "--jobs", 1
    ).output
    assert said.splitlines()[-1] == f"{tmp_path / name}: 20 vectors of 5 dimensions"
    embeddings = read_embeddings(tmp_path / name)
    assert embeddings.ids.tolist() == sorted(source.recordings)
    assert embeddings.speakers.tolist() == [
        source.speakers[utterance] for utterance in embeddings.ids
    ]
    assert embeddings.vectors.dtype == np.float32
    if name.endswith("h5"):
        with h5py.File(tmp_path / name) as file:
            attributes = dict(file.attrs)
    else:
        with np.load(tmp_path / name) as file:
            attributes = json.loads(str(file["attributes"]))
    assert attributes["extractor"] == f"ge2e:{weights}"
    assert (attributes["window"], attributes["hop"], len(attributes["weights"])) == (1.6, 0.8, 64)
    assert not (tmp_path / f"{name}.partial").exists()


def test_vectors_do_not_depend_on_workers_order_or_other_recordings(source, weights, tmp_path):
    extractor = open_extractor(f"ge2e:{weights}")
    whole = embed_directory(source, extractor, tmp_path / "a.h5", work=Work(1))
    embed_directory(source, extractor, tmp_path / "b.h5", work=Work(2))
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    backwards = DataDir(source.path, dict(reversed(source.recordings.items())), source.speakers)
    embed_directory(backwards, extractor, tmp_path / "c.h5", work=Work(1))
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "c.h5").read_bytes()
    some = {name: source.recordings[name] for name in ("u03", "u11")}
    fewer = embed_directory(
        DataDir(source.path, some, {name: source.speakers[name] for name in some}),
        extractor,
        tmp_path / "d.h5",
    )
    np.testing.assert_array_equal(fewer.vectors, whole.vectors[[3, 11]])


def test_an_interrupted_command_resumes_and_gives_the_same_file(source, own, tmp_path):
    log, stop = tmp_path / "log", tmp_path / "stop"
    log.write_text("")
    stop.touch()
    interrupt = f"    if len(log.read_text()) == 12 and pathlib.Path({str(stop)!r}).exists():\n"
    interrupt += "        raise KeyboardInterrupt\n"
    (tmp_path / "own.py").write_text(OWN.replace("    return", interrupt + "    return"))
    with pytest.raises(KeyboardInterrupt):
        embed_directory(source, open_extractor(own), tmp_path / "v.h5", work=Work(1))
    stop.unlink()
    assert not (tmp_path / "v.h5").exists()
    log.write_text("")
    embed_directory(source, open_extractor(own), tmp_path / "v.h5", work=Work(1))
    assert len(log.read_text()) == 12, "the first task of eight was kept"
    embed_directory(source, open_extractor(own), tmp_path / "whole.h5", work=Work(1))
    assert (tmp_path / "v.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_unusable_recordings_are_named_together_before_the_start(source, weights, tmp_path):
    soundfile.write(source.recordings["u03"], np.zeros((4000, 2)), RATE)
    soundfile.write(source.recordings["u04"], np.ones(100), RATE)
    source.recordings["u05"].write_bytes(source.recordings["u05"].read_bytes()[:500])
    said = refused("embed", source.path, "-e", f"ge2e:{weights}", "-o", tmp_path / "v.h5")
    assert "3 problems" in said
    for words in ("u03.wav: 2 channels", "u04.wav: 0.006 s are too short: at least 0.1 s", "u05"):
        assert words in said
    assert not (tmp_path / "v.h5").exists()


@pytest.mark.parametrize("name", ["v.txt", "v", "v.pt"])
def test_unwritable_files_are_refused_first(source, tmp_path, name):
    said = refused("embed", source.path, "-e", "no-such:thing", "-o", tmp_path / name)
    assert "no format of embeddings is known" in said
    (tmp_path / "d.h5").mkdir()
    with pytest.raises(ConfigError, match="got a folder"):
        embed_directory(source, open_extractor("math:sqrt"), tmp_path / "d.h5")


# --- the page ---------------------------------------------------------------------------------------


def test_the_examples_of_the_page_run(source, tmp_path):
    page = (ROOT / "docs/own_extractors.md").read_text(encoding="utf-8")
    function, _, script = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "ltas.py").write_text(function)
    (tmp_path / "levels.py").write_text(script)
    said = passes(
        "embed",
        source.path,
        "-e",
        f"{tmp_path}/ltas.py:embed",
        "-o",
        tmp_path / "v.h5",
        "--jobs",
        2,
    ).output
    assert said.splitlines()[-1] == f"{tmp_path / 'v.h5'}: 20 vectors of 257 dimensions"
    command = f"command:{sys.executable} {tmp_path}/levels.py {{recordings}} {{vectors}}"
    said = passes("embed", source.path, "-e", command, "-o", tmp_path / "w.h5", "--jobs", 1).output
    assert said.splitlines()[-1] == f"{tmp_path / 'w.h5'}: 20 vectors of 2 dimensions"


def test_help_and_page_name_every_extractor():
    page = (ROOT / "docs/own_extractors.md").read_text(encoding="utf-8")
    said = passes("embed", "--help").output
    for kind in (*EXTRACTORS.values(), FUNCTION):
        assert f"| `{kind.form}` |" in page
        assert kind.form in said


def test_two_recordings_get_a_score_or_with_a_calibration_a_ratio(source, own, tmp_path):
    first, second, third = (source.recordings[name] for name in ("u00", "u01", "u02"))
    vectors = embed_directory(source, open_extractor(own), tmp_path / "v.h5", work=Work(1))
    unit = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    said = passes("verify", first, second, "--extractor", own).output
    assert said.startswith(
        f"score: {unit[0] @ unit[1]:.4f} ({own}, cosine)\nWithout calibration this has no absolute"
    )
    backend = train_chain(vectors, "[centre, length, cosine, calibrate: {ridge: 0.1}]")
    write_backend(tmp_path / "b.h5", backend)
    for other in (second, third):
        (ratio,) = backend.score(vectors, vectors, Trials.from_ids(["u00"], [other.stem])).values
        said = passes(
            "verify", first, other, "--extractor", own, "--backend", tmp_path / "b.h5"
        ).output
        assert said.startswith(f"log-likelihood ratio: {ratio:.4f} ({own}, {tmp_path / 'b.h5'})\n")
        more = (
            "one person speaks in both as if two do"
            if ratio > 0
            else "two persons speak as if one does"
        )
        assert f"are {np.exp(abs(ratio)):,.3g} times as probable if {more}" in said


def test_incomparable_recordings_are_refused(source, own, tmp_path, monkeypatch):
    monkeypatch.setenv("SPKVER_WEIGHTS", str(tmp_path))
    monkeypatch.setattr("spkver.extractors.weights.DEFAULT_FOLDER", tmp_path)
    first = source.recordings["u00"]
    way = "give --attacker or --extractor, or get the weights: spkver weights campplus"
    assert way in refused("verify", first, first)
    assert "nothing.wav: no such file" in refused(
        "verify", first, "nothing.wav", "--extractor", own
    )
    both = refused("verify", first, first, "--extractor", own, "--attacker", tmp_path)
    assert "--attacker has its own features and backend" in both
    vectors = embed_directory(source, open_extractor(own), tmp_path / "v.h5", work=Work(1))
    write_backend(tmp_path / "b.h5", train_chain(vectors, "adapted_cosine"))
    said = refused("verify", first, first, "--extractor", own, "--backend", tmp_path / "b.h5")
    assert "adapted to a list of trials, and this is one trial" in said


def test_the_function_embed_gives_the_vectors_of_the_command(source, own, tmp_path):
    found = embed(
        source.path,
        own,
        tmp_path / "python.h5",
        settings=ExtractorSettings(rate=8000),
        work=Work(1),
    )
    passes(
        "embed", source.path, "-e", own, "-o", tmp_path / "command.h5", "--rate", 8000, "--jobs", 1
    )
    assert (tmp_path / "python.h5").read_bytes() == (tmp_path / "command.h5").read_bytes()
    np.testing.assert_array_equal(found.vectors, read_embeddings(tmp_path / "command.h5").vectors)


def test_embed_refuses_misuse_before_anything_is_read(own, tmp_path):
    with pytest.raises(ConfigError, match=r"no format of embeddings is known for '\.txt'"):
        embed(tmp_path / "missing", own, tmp_path / "v.txt")
    with pytest.raises(ConfigError, match="expected a window above 0, got -1"):
        embed(tmp_path / "missing", own, tmp_path / "v.h5", settings=ExtractorSettings(window=-1))
