"""Writing scores and keys in the orders of other tools: what is written reads back as it was."""

import h5py
import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.formats import Choice, read_key, read_scores, write_key, write_scores
from evaluation.trials import Key, Scores, align

KEY = Key.from_ids(
    ["anna", "anna", "bert", "bert"], ["s1", "s2", "s1", "s2"], [True, False, False, True]
)
SCORES = Scores.from_ids(
    ["bert", "anna", "anna", "bert"], ["s2", "s2", "s1", "s1"], [1.5, -0.25, 2.0, 1 / 3]
)
SPEAKERS = "s1 anna\ns2 bert\n"


@pytest.fixture
def folder(tmp_path):
    write_scores(tmp_path / "scores.txt", SCORES)
    write_key(tmp_path / "key.txt", KEY)
    (tmp_path / "utt2spk").write_text(SPEAKERS)
    return tmp_path


def converted(folder, *arguments):
    ends = (".txt", ".h5", ".gz", "utt2spk")
    return ["convert", *(str(folder / one) if one.endswith(ends) else one for one in arguments)]


@pytest.mark.parametrize(
    ("order", "line"),
    [
        ("kaldi", "bert s2 1.5"),
        ("voxsrc", "1.5 bert s2"),
        ("wespeaker", "bert s2 1.5 target"),
        ("speechbrain", "bert s2 1 1.5"),
        ("bob", "bert bert s2 1.5"),
        ("bob5", "bert bert bert s2 1.5"),
        ("segment,score,model", "s2 1.5 bert"),
    ],
)
@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_scores_are_read_back_in_each_order(folder, order, line, name):
    arguments = (
        "scores",
        "scores.txt",
        name,
        "--to",
        order,
        "-k",
        "key.txt",
        "--segment-speakers",
        "utt2spk",
    )
    passes(*converted(folder, *arguments))
    if name == "out.txt":
        assert (folder / name).read_text().splitlines()[0] == line
    back = read_scores(folder / name, Choice(layout=order))
    np.testing.assert_array_equal(align(back, SCORES), SCORES.values)
    if order in ("wespeaker", "speechbrain", "bob", "bob5"):
        truth = read_key(folder / name, Choice(layout=order))
        assert {
            pair: bool(one) for pair, one in zip(truth.pairs(), truth.is_target, strict=True)
        } == {pair: bool(one) for pair, one in zip(KEY.pairs(), KEY.is_target, strict=True)}


def test_a_key_is_written_in_the_order_of_voxceleb(folder):
    passes(*converted(folder, "key", "key.txt", "out.txt", "--to", "voxceleb"))
    assert (folder / "out.txt").read_text().splitlines() == [
        "1 anna s1",
        "0 anna s2",
        "0 bert s1",
        "1 bert s2",
    ]


def test_scores_are_written_in_the_matlab_layout(folder):
    passes(*converted(folder, "scores", "scores.txt", "out.h5", "--to", "matlab"))
    with h5py.File(folder / "out.h5") as file:
        assert set(file) == {"ID", "score_mask", "scores"}
        assert file["ID/row_ids"][:].tolist() == [b"anna", b"bert"]
        assert file["ID/column_ids"][:].tolist() == [b"s1", b"s2"]
    np.testing.assert_array_equal(align(read_scores(folder / "out.h5"), SCORES), SCORES.values)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scores", "scores.txt", "out.txt", "--to", "wespeaker"], "give the key"),
        (["scores", "scores.txt", "out.txt", "--to", "bob", "-k", "key.txt"], "give the speakers"),
        (["scores", "scores.txt", "out.txt", "--to", "score,model,-,segment"], "when reading only"),
        (["scores", "scores.txt", "out.txt", "--to", "nonsense"], "nonsense"),
        (["key", "key.txt", "out.txt", "--to", "speechbrain"], "which a key lacks"),
        (["key", "key.txt", "out.h5", "--to", "matlab"], "scores only"),
        (["trials", "key.txt", "out.txt", "--to", "kaldi"], "only one column order"),
    ],
)
def test_incomplete_conversions_are_refused_with_a_reason(folder, arguments, words):
    assert words in refused(*converted(folder, *arguments))
    assert not (folder / "out.txt").exists()


def test_speakers_that_contradict_the_labels_are_refused(folder):
    (folder / "utt2spk").write_text("s1 bert\ns2 bert\n")
    of_scores = (
        "scores",
        "scores.txt",
        "out.txt",
        "--to",
        "bob",
        "-k",
        "key.txt",
        "--segment-speakers",
        "utt2spk",
    )
    arguments = converted(folder, *of_scores)
    assert "'bert s1' is a nontarget trial" in refused(*arguments)
    (folder / "utt2spk").write_text("s2 bert\n")
    assert "are unknown for 1 segment: 's1'" in refused(*arguments)
