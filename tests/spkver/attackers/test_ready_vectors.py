"""Attackers of users: the vectors of `vectors:FOLDER`, in the forms that others write, and processes of functions."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.trials import Trials
from spkver.attackers import make_attacker, parse_spec, supplied
from spkver.attackers.protocol import Attack, LostModelError, TrainingSet
from spkver.attackers.ready import ReadyVectors
from spkver.attackers.supplied import FunctionProcess
from spkver.audio import write_audio
from spkver.backend import Sessions, adapted_cosine_scores, self_trained_scores
from spkver.datadir import DataDir

TENSOR = Path(__file__).resolve().parents[2] / "data" / "torch_files" / "matrix.pt"
ROWS = (np.arange(24, dtype=np.float32) / 8).reshape(4, 6)
DIRECTORY = SimpleNamespace(path=Path("data/test_enrolls"))
TRAINING = SimpleNamespace(name="asv_anon_x")


def cache(folder):
    (folder / "utt-level").mkdir(parents=True)
    (folder / "utt-level" / "speaker_vectors.pt").write_bytes(TENSOR.read_bytes())
    (folder / "utt-level" / "id2idx").write_text("a 0\nb 1\nc 2\nd 3\n")
    (folder / "utt-level" / "idx2spk").write_text("0 s\n1 s\n2 t\n3 t\n")


def kaldi(folder):
    folder.mkdir(parents=True)
    for name, row in zip("abcd", ROWS, strict=True):
        (folder / f"{name}.ark").write_bytes(
            name.encode() + b" \0BFV \4" + struct.pack("<i", 6) + row.tobytes()
        )


def table(folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"{name},{','.join(map(str, row.tolist()))}\n"
        for name, row in zip("abcd", ROWS, strict=True)
    ]
    folder.with_suffix(".csv").write_text("".join(lines))


@pytest.mark.parametrize("write", [cache, kaldi, table])
def test_folders_and_tables_of_other_tools_are_read(tmp_path, write):
    write(tmp_path / "test_enrolls")
    vectors = ReadyVectors("mine", tmp_path)
    assert vectors.file(TRAINING, DIRECTORY) is not None
    found = vectors._embeddings(TRAINING, DIRECTORY)
    assert (found.ids.tolist(), found.vectors.tolist()) == (list("abcd"), ROWS.tolist())


@pytest.mark.parametrize("below", ["asv_anon_x/emb_xvect", "emb_xvect", "asv_orig/emb_xvect"])
def test_vectors_are_read_as_stored_by_the_voiceprivacy_toolkits(tmp_path, below):
    """Below ``exp``; an attacker that learnt from anonymised speech has its own vectors, else those of ASV_eval."""
    cache(tmp_path / below / "test_enrolls")
    vectors = ReadyVectors("mine", tmp_path)
    found = vectors._embeddings(TRAINING, DIRECTORY)
    assert (found.ids.tolist(), found.speakers.tolist()) == (list("abcd"), ["s", "s", "t", "t"])
    if below.startswith("asv_orig"):
        cache(tmp_path / "asv_anon_x/emb_xvect/test_enrolls")
        assert vectors.file(TRAINING, DIRECTORY) == tmp_path / "asv_anon_x/emb_xvect/test_enrolls"


@pytest.mark.parametrize(
    ("kind", "formula"), [("adapted", adapted_cosine_scores), ("self-trained", self_trained_scores)]
)
def test_precomputed_vectors_are_adapted_to_the_trials(tmp_path, kind, formula):
    """Scores are those of the formula, with no training set; a list with one model is left out."""
    draw, names = (
        np.random.default_rng(0),
        np.array([f"{speaker}-{take}" for speaker in "abc" for take in range(4)]),
    )
    vectors, sides = draw.normal(size=(12, 5)) + 3, []
    for number in range(2):
        half = names[number::2].astype(object)
        owners = np.array([name[0] for name in half], object)
        write_embeddings(
            tmp_path / f"side{number}.npz", Embeddings(half, owners, vectors[number::2])
        )
        speakers = dict(zip(half.tolist(), owners.tolist(), strict=True))
        sides.append(
            DataDir(tmp_path / f"side{number}", dict.fromkeys(speakers, tmp_path), speakers)
        )
    tests = list(sides[1].speakers)
    trials = Trials.from_ids([model for model in "abc" for _ in tests], tests * 3)
    attack = Attack(TrainingSet(sides[0]), (sides[0],), sides[1], trials)
    adapted = make_attacker(parse_spec(f"{kind}:{tmp_path}"))
    assert adapted.level == "whole-list"
    found = adapted.score(None, attack, None).values
    enrolled = Sessions(vectors[::2], np.repeat(np.arange(3), 2))
    expected = formula(enrolled, vectors[1::2], *np.divmod(np.arange(18), 6))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert adapted.record(attack) != ReadyVectors("other", tmp_path).record(attack)
    assert adapted.obstacle(attack) == ""
    parts = {f"c{speaker}": ((0, f"{speaker}-1"), (1, f"{speaker}-3")) for speaker in "cab"}
    spoken = dict.fromkeys(parts, tmp_path)
    pairs = [(model, name) for model in "abc" for name in parts]
    several = replace(
        attack,
        tested=DataDir(sides[1].path, spoken, {name: name for name in parts}),
        trials=Trials.from_ids(*map(list, zip(*pairs, strict=True))),
        variants=(sides[1], sides[1]),
        conversations=parts,
    )
    means = (vectors[1::4] + vectors[3::4]) / 2
    expected = formula(enrolled, means, *np.divmod(np.arange(9), 3)).reshape(3, 3)[:, [2, 0, 1]]
    found = adapted.score(None, several, None).values
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-12)
    alone = Trials.from_ids(["a"] * 6, tests)
    assert "one speaker is enrolled" in adapted.obstacle(replace(attack, trials=alone))


def test_printed_output_of_a_function_is_not_read_as_scores(tmp_path, caplog):
    """Nor what its programs print; both go to the log."""
    (tmp_path / "talks.py").write_text(
        "import os\n"
        "def attack(training, seed):\n"
        "    print('{\"values\": [7]}', flush=True)\n"
        "    def score(enrolment, tested, trials):\n"
        "        os.system('echo a line of a program')\n"
        "        return [len(enrolment[model]) + seed for model, _ in trials]\n"
        "    return score\n"
    )
    process = FunctionProcess("mine", f"{tmp_path}/talks.py:attack")
    with caplog.at_level("DEBUG"):
        assert process.ask({"training": {"s": ["s.wav"]}, "seed": 1}, 60) == []
        sides = {"enrolment": {"a": ["a.wav", "b.wav"]}, "tested": {"t": "t.wav"}}
        assert process.ask({**sides, "trials": [["a", "t"]]}, 60) == [3.0]
    process.close()
    assert '{"values": [7]}' in caplog.text
    assert "a line of a program" in caplog.text


def test_scoring_after_the_process_of_a_function_has_ended_raises_and_starts_no_other(
    tmp_path, monkeypatch
):
    (tmp_path / "mine.py").write_text(
        "def attack(training, seed):\n    return lambda *given: [1.0]\n"
    )
    write_audio(tmp_path / "a.wav", np.zeros(800), 8000)
    side = DataDir(tmp_path, {"a": tmp_path / "a.wav"}, {"a": "s"})
    attack = Attack(TrainingSet(side), (side,), side, Trials.from_ids(["s"], ["a"]))
    attacker = make_attacker(parse_spec(f"{tmp_path}/mine.py:attack"))
    process = attacker.fit(attack.training, None, seed=0, jobs=1).model
    assert attacker.score(process, attack, None).values.tolist() == [1.0]
    process.close()
    monkeypatch.setattr(supplied, "FunctionProcess", None)
    with pytest.raises(LostModelError, match="mine-attack"):
        attacker.score(process, attack, None)
