"""The command `cosine`: what it takes, and what it says of what is wrong."""

import pickle
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.formats.reading import read_key, read_scores

VECTORS = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [1.0, -1.0]], np.float32)
TRIALS = "anna t1\nbert t2\nanna t3\n"
# anna is the mean of e1 and e2, (0.5, 1); bert is e3
COSINES = [0.5 / 1.25**0.5, 0.5**0.5, 1.5 / (1.25**0.5 * 2**0.5)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("enrolled.npz", ids=np.array(["e1", "e2", "e3"]), vectors=VECTORS[:3])
    Path("utt2spk").write_text("e1 anna\ne2 anna\ne3 bert\n")
    Path("trials").write_text(TRIALS)
    Path("kaldi").mkdir()
    for number, row in enumerate(VECTORS[:3], 1):
        head = f"t{number} ".encode() + b"\0BFV \4" + struct.pack("<i", 2)
        Path(f"kaldi/{number}.ark").write_bytes(head + row.tobytes())
    return tmp_path


COMMAND = ("cosine", "--enroll", "enrolled.npz", "--trials", "trials", "--output", "scores.txt")


@pytest.mark.parametrize(
    "trial",
    [
        ("--test", "kaldi"),
        ("--test", "kaldi/*.ark"),
        ("--test", "kaldi/1.ark", "--test", "kaldi/2.ark", "--test", "kaldi/3.ark"),
    ],
)
def test_embeddings_are_read_from_folders_patterns_and_several_files(folder, trial):
    assert (
        passes(*COMMAND, *trial, "--model-speakers", "utt2spk").stdout == "3 scores -> scores.txt\n"
    )
    assert read_scores("scores.txt").values == pytest.approx(COSINES)


def test_missing_speakers_are_noted(folder):
    """A model is then an utterance."""
    Path("trials").write_text("e1 t1\ne2 t3\n")
    result = passes(*COMMAND, "--test", "kaldi")
    assert result.stdout == "2 scores -> scores.txt\n"
    assert read_scores("scores.txt").values == pytest.approx([1, 0.5**0.5])
    assert result.stderr.endswith("note: enrolled.npz has no speakers: each id counts as one\n")


def test_models_without_an_embedding_are_named(folder):
    Path("trials").write_text(TRIALS + "anna t1.wav\n")
    said = refused(*COMMAND, "--test", "kaldi")
    assert "'t1' is another spelling of 't1.wav': spell ids of the trials alike" in said
    Path("trials").write_text(TRIALS + "anna t9\n")
    said = refused(*COMMAND, "--test", "kaldi")
    assert "2 of 2 models without an embedding: anna, bert (a model is an enrolled speaker" in said
    assert "give the speakers of the enrolled (utt2spk)" in said
    assert "1 of 4 segments without an embedding: t9" in said
    assert not Path("scores.txt").exists()


def test_pickles_by_speaker_and_by_utterance_are_read(folder):
    """The two forms that the Speaker-Linkability tool asks for."""
    Path("by_speaker.pkl").write_bytes(
        pickle.dumps({"anna": [VECTORS[0], VECTORS[1]], "bert": [VECTORS[2]]})
    )
    Path("by_utterance.pkl").write_bytes(
        pickle.dumps({f"t{row + 1}": VECTORS[row] for row in range(3)})
    )
    arguments = [
        "cosine",
        "--enroll",
        "by_speaker.pkl",
        "--test",
        "by_utterance.pkl",
        "--trials",
        "trials",
    ]
    assert "--allow-pickle reads it without running" in refused(
        *arguments, "--output", "scores.txt"
    )
    passes(*arguments, "--allow-pickle", "--output", "scores.txt")
    assert read_scores("scores.txt").values == pytest.approx(COSINES)


def test_recordings_of_a_speaker_are_scored_at_once(folder):
    """Of three recordings t1 and t3 are one speaker's; their mean is scored, and the files say who and what it is."""
    Path("tested").write_text("t1 anna\nt2 bert\nt3 anna\n")
    pairs = [(model, test) for model in ("anna", "bert") for test in ("t1", "t2", "t3")]
    kinds = {("anna", "t1"), ("anna", "t3"), ("bert", "t2")}
    Path("trials").write_text(
        "".join(f"{m} {t} {'target' if (m, t) in kinds else 'nontarget'}\n" for m, t in pairs)
    )
    several = ("--segment-speakers", "tested", "--utterances", "2", "--conversations", "two")
    command = (*COMMAND, "--test", "kaldi", "--model-speakers", "utt2spk", *several)
    result = passes(*command)
    text = "2 conversations of 2 recordings; 1 has fewer, all recordings of its speaker -> two"
    assert result.stdout == f"{text}\n4 scores -> scores.txt\n"
    whose = dict(line.split() for line in Path("two/utt2spk").read_text().splitlines())
    owner = {speaker: name for name, speaker in whose.items()}
    found = dict(
        zip(read_scores("scores.txt").pairs(), read_scores("scores.txt").values, strict=True)
    )
    # the mean of t1 (1, 0) and t3 (3, 3) is (2, 1.5)
    assert found["anna", owner["anna"]] == pytest.approx((0.5 * 2 + 1.5) / (1.25**0.5 * 2.5))
    assert found["bert", owner["bert"]] == pytest.approx(0.5**0.5)
    key = read_key("two/trials")
    assert set(key.subset(key.is_target).pairs()) == {(name, owner[name]) for name in owner}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--utterances", "2"), "expected --utterances above 1 with --conversations, or neither"),
        (("--conversations", "x"), "expected --utterances above 1 with --conversations"),
        (("--utterances", "2", "--conversations", "x"), "no label|labels|target"),
    ],
)
def test_incomplete_requests_for_conversations_are_refused(folder, options, says):
    result = refused(*COMMAND, "--test", "kaldi", "--model-speakers", "utt2spk", *options)
    assert re.search(says, str(result))
    assert not Path("scores.txt").exists()
