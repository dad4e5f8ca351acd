"""Sets of the challenges from synthetic trees of the shape of LibriSpeech and IEMOCAP."""

import json

import numpy as np
import pytest
import soundfile
from command_lines import passes, refused

from spkbase.errors import DataError
from spkver.corpora import make_iemocap_sets, read_iemocap
from spkver.datadir import read_datadir
from spkver.recognition import read_emotions, read_folds

pytestmark = pytest.mark.whole

RATE = 16000
SUBSETS = ("dev-clean", "test-clean", "train-clean-360")


def audio(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(160), RATE, subtype="PCM_16")


# --- LibriSpeech ----------------------------------------------------------------------------------


def write_librispeech(root):
    """Eight speakers a subset, four of each sex, with two chapters of three utterances."""
    lines = ["; a comment", ";ID  |SEX| SUBSET           |MINUTES| NAME", ""]
    for number, subset in enumerate(SUBSETS):
        for place in range(8):
            speaker = str(1000 * (number + 1) + place)
            # a name with bars, as in the corpus
            name = "|CBW|Simon" if place == 3 else f"Reader {place}"
            lines.append(f"{speaker:4} | {'FM'[place % 2]} | {subset:16} | 8.{place} | {name}")
            for chapter in ("128104", "2200"):
                folder = root / subset / speaker / chapter
                ids = [f"{speaker}-{chapter}-{utterance:04d}" for utterance in range(3)]
                for utterance in ids:
                    audio(folder / f"{utterance}.flac")
                text = "".join(f"{utterance} IT'S SAID {k}\n" for k, utterance in enumerate(ids))
                (folder / f"{speaker}-{chapter}.trans.txt").write_text(text)
    (root / "SPEAKERS.TXT").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Read only."""
    return write_librispeech(tmp_path_factory.mktemp("corpus") / "LibriSpeech")


@pytest.fixture
def own_tree(tmp_path):
    return write_librispeech(tmp_path / "LibriSpeech")


def test_sets_of_librispeech_are_whole_and_read_as_data_directories(tree, tmp_path):
    # the folder above is accepted too
    text = passes("prepare", "librispeech", tree.parent, tmp_path / "data").output
    data = tmp_path / "data"
    names = [
        f"libri_{part}_{what}"
        for part in ("dev", "test")
        for what in ("enrolls", "trials_f", "trials_m")
    ]
    assert sorted(path.name for path in data.iterdir()) == sorted(
        [*names, "train-clean-360", "librispeech.json"]
    )
    training = read_datadir(data / "train-clean-360")
    assert (len(training), len(training.sexes)) == (48, 8)
    assert (
        training.recordings["3000-2200-0001"]
        == tree / "train-clean-360/3000/2200/3000-2200-0001.flac"
    )
    for part in ("dev", "test"):
        enrolls = read_datadir(data / f"libri_{part}_enrolls")
        # three of the four speakers of each sex, a third of six utterances
        assert len(enrolls.enrolls) == len(enrolls) == 6 * 2
        for sex in "fm":
            trials = read_datadir(data / f"libri_{part}_trials_{sex}")
            assert set(trials.sexes.values()) == {sex}
            assert len(trials) == 3 * 4 + 6  # further utterances, and a stranger
            assert len(trials.trials) == 3 * 18
            assert int(trials.trials.is_target.sum()) == 12
            assert not set(trials.recordings) & set(enrolls.recordings)
            assert set(trials.trials.model_ids) <= set(enrolls.speakers.values())
            strangers = set(trials.speakers.values()) - set(enrolls.speakers.values())
            assert len(strangers) == 1
    assert "libri_dev_trials_f: 18 utterances of 4 women, 12 target and 42 nontarget trials" in text
    words = dict(
        line.split(" ", 1) for line in (data / "libri_test_trials_f/text").read_text().splitlines()
    )
    assert words == {utterance: f"IT'S SAID {utterance[-1]}" for utterance in words}
    assert len(words) == 18
    assert json.loads((data / "librispeech.json").read_text())["lists"] == "drawn"


def test_trials_of_2026_cross_the_sexes(tree, tmp_path):
    passes(
        "prepare",
        "librispeech",
        tree,
        tmp_path / "data",
        "--year",
        "2026",
        "--subset",
        "test-clean",
    )
    trials = read_datadir(tmp_path / "data/libri_test_trials_mixed")
    assert len(trials.trials) == 6 * 36
    sexes = {
        (trials.sexes[model], trials.sexes[trials.speakers[segment]])
        for model, segment in trials.trials.pairs()
    }
    assert sexes == {("f", "f"), ("f", "m"), ("m", "f"), ("m", "m")}
    assert int(trials.trials.is_target.sum()) == 24


def write_lists(folder):
    """The challenge's own lists of a part of the utterances."""
    for name, lines in {
        "enrolls/enrolls": ["2000-2200-0000", "2002-2200-0000", "2001-2200-0001"],
        "trials_f/trials": [
            *(
                "2000 2000-128104-0001 target",
                "2002 2000-128104-0001 nontarget",
                "2000 2004-2200-0000 nontarget",
            )
        ],
        "trials_m/trials": ["2001 2001-128104-0002 target", "2001 2003-128104-0000 nontarget"],
    }.items():
        path = folder / f"libri_test_{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return folder


def test_lists_of_the_challenge_are_used_if_given(tree, tmp_path):
    lists = write_lists(tmp_path / "challenge")
    options = ("--subset", "test-clean", "--lists", lists)
    passes("prepare", "librispeech", tree, tmp_path / "data", *options)
    data = tmp_path / "data"
    assert (data / "libri_test_enrolls/enrolls").read_text().split() == [
        "2000-2200-0000",
        "2001-2200-0001",
        "2002-2200-0000",
    ]
    assert read_datadir(data / "libri_test_trials_f").trials is not None
    written = (data / "libri_test_trials_f/trials").read_text().splitlines()
    assert sorted(written) == sorted(
        (lists / "libri_test_trials_f/trials").read_text().splitlines()
    )
    # lists across the sexes are made from those of both
    passes("prepare", "librispeech", tree, tmp_path / "mixed", *options, "--year", "2026")
    mixed = read_datadir(tmp_path / "mixed/libri_test_trials_mixed").trials
    assert len(mixed) == 3 * 4
    # and used unchanged if they exist
    (lists / "libri_test_trials_mixed").mkdir()
    (lists / "libri_test_trials_mixed/trials").write_text(
        "2000 2001-2200-0000 nontarget\n2000 2000-2200-0001 target\n"
    )
    passes("prepare", "librispeech", tree, tmp_path / "taken", *options, "--year", "2026")
    assert len((tmp_path / "taken/libri_test_trials_mixed/trials").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("file", "line", "messages"),
    [
        ("enrolls/enrolls", "2009-1-0001", ["1 utterance missing: '2009-1-0001'"]),
        (
            "trials_f/trials",
            "2006 2000-128104-0001 nontarget",
            ["1 enrolled speaker missing: '2006'"],
        ),
        (
            "trials_m/trials",
            "2001 2001-2200-0001 target",
            ["1 utterance in both enrolment and trials"],
        ),
        (
            "trials_f/trials",
            "2000 2000-128104-0002 nontarget",
            ["is marked nontarget, against the speaker's id"],
        ),
        ("trials_f/trials", "2000 x", ["libri_test_trials_f/trials:4"]),
    ],
)
def test_lists_that_do_not_match_are_refused(tree, tmp_path, file, line, messages):
    lists = write_lists(tmp_path / "challenge")
    with (lists / f"libri_test_{file}").open("a") as handle:
        handle.write(line + "\n")
    text = refused(
        "prepare",
        "librispeech",
        tree,
        tmp_path / "data",
        "--subset",
        "test-clean",
        "--lists",
        lists,
    )
    for message in messages:
        assert message in text
    assert not (tmp_path / "data").exists()


def test_all_problems_of_a_tree_are_reported_together_and_nothing_is_written(own_tree, tmp_path):
    speakers = own_tree / "SPEAKERS.TXT"
    kept = [line for line in speakers.read_text().splitlines() if not line.startswith("1000")]
    speakers.write_text("\n".join([*kept, "77 | x | dev-clean", "1001 | F | again"]) + "\n")
    (own_tree / "dev-clean/1001/2200/1001-2200-0000.flac").write_bytes(b"fLaC no audio")
    (own_tree / "dev-clean/1001/2200/1001-2200-0001.flac").write_bytes(b"")
    (own_tree / "dev-clean/1002/2200/1002-2200-0002.flac").unlink()
    audio(own_tree / "test-clean/2001/2200/1003-2200-0000.flac")  # named after another speaker
    audio(own_tree / "test-clean/2001/2200/with blank; rm -rf.flac")
    audio(own_tree / "test-clean/2001/2200/2001-2200-0009.flac")  # without words
    audio(own_tree / "test-clean/1003/2200/1003-2200-0000.flac")  # in two subsets
    (own_tree / "test-clean/2001/2200/._2001-2200-0000.flac").write_bytes(b"left by an archiver")
    (own_tree / "test-clean/2002/2200/2002-2200.trans.txt").write_bytes(b"\xff\xfe")
    with (own_tree / "dev-clean/1004/2200/1004-2200.trans.txt").open("a") as handle:
        handle.write("no id at all\n1004-2200-0000 TWICE\n\n  \n")
    text = refused("prepare", "librispeech", own_tree, tmp_path / "data")
    for message in (
        "SPEAKERS.TXT: 1 speaker of dev-clean not in it: '1000'",
        "expected 'id | F or M | ...', got '77 | x | dev-clean'",
        "speaker '1001' is repeated, with another sex",
        "1001-2200-0000.flac",
        "1001-2200-0001.flac",
        "1 transcript without a recording: '1002-2200-0002'",
        "1003-2200-0000.flac: its name does not match the folders of the speaker and chapter",
        "with blank; rm -rf.flac: its name does not match the folders",
        "recording '1003-2200-0000' exists twice",
        "2002-2200.trans.txt:1: expected text in UTF-8",
        "1004-2200.trans.txt:4: expected 'id WORDS', got 'no id at all'",
        "1004-2200.trans.txt:5: utterance '1004-2200-0000' is repeated",
    ):
        assert message in text
    assert "._2001" not in text
    assert not (tmp_path / "data").exists()


def test_missing_folders_are_refused(tree, tmp_path):
    for arguments, message in (
        ([tmp_path / "nowhere"], "SPEAKERS.TXT"),
        ([tree, "--subset", "dev-other"], "no subset dev-other"),
        ([tree, "--subset", "../dev-clean"], "subset '../dev-clean' "),
        ([tree, "--subset", "test-clean", "--lists", "nowhere"], "nowhere"),
    ):
        text = refused("prepare", "librispeech", arguments[0], tmp_path / "data", *arguments[1:])
        assert message in text
    assert not (tmp_path / "data").exists()


def test_existing_files_are_not_overwritten(tree, tmp_path):
    (tmp_path / "data/libri_dev_enrolls").mkdir(parents=True)
    assert "libri_dev_enrolls: already exists" in refused(
        "prepare", "librispeech", tree, tmp_path / "data"
    )
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["libri_dev_enrolls"]


# --- IEMOCAP --------------------------------------------------------------------------------------

LABELS = ("neu", "hap", "exc", "sad", "ang", "fru", "xxx")
HEAD = "% [START_TIME - END_TIME] TURN_NAME EMOTION [V, A, D]\n\n"


def write_iemocap(root):
    for session in "12345":
        for dialog in (f"Ses0{session}F_impro01", f"Ses0{session}M_script01_1"):
            text = HEAD
            for number, label in enumerate(LABELS):
                utterance = f"{dialog}_{'FM'[number % 2]}{number:03d}"
                text += f"[{number}.2901 - {number + 1}.2357]\t{utterance}\t{label}\t[2.5000, 2.5000, 2.5000]\n"
                text += "C-E2:\tNeutral;\t()\nA-F3:\tval 3; act 2; dom  2;\t()\n\n"
                audio(root / f"Session{session}/sentences/wav/{dialog}/{utterance}.wav")
            # without a label
            audio(root / f"Session{session}/sentences/wav/{dialog}/{dialog}_MXX0.wav")
            path = root / f"Session{session}/dialog/EmoEvaluation/{dialog}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            words = root / f"Session{session}/dialog/transcriptions/{dialog}.txt"
            words.parent.mkdir(parents=True, exist_ok=True)
            spoken = [
                f"{dialog}_{'FM'[n % 2]}{n:03d} [00{n}.2901-00{n + 1}.2357]: Don't - {n}! [LAUGHTER]  Why?\n"
                for n in range(7)
            ]
            words.write_text(
                "".join([*spoken, "M: overlapped\n", f"{dialog}_MXX0 [001.2-002.3]: Yeah.\n"])
            )
            (path.parent / f"._{dialog}.txt").write_bytes(b"\x00\x05left by an archiver")
    return root


@pytest.fixture
def emotional(tmp_path):
    return write_iemocap(tmp_path / "IEMOCAP_full_release")


def test_iemocap_sets_are_read_by_the_emotion_recogniser(emotional, tmp_path):
    text = passes("prepare", "iemocap", emotional.parent, tmp_path / "data").output
    speakers = {}
    for name in ("IEMOCAP_dev", "IEMOCAP_test"):
        directory = read_datadir(tmp_path / "data" / name)
        emotions, folds = read_emotions(directory), read_folds(directory)
        assert set(emotions.values()) == ({"neu", "hap", "sad", "ang"})
        assert sorted(folds.values()) == list("12345")
        assert all(fold == speaker[4] for speaker, fold in folds.items())
        assert all(directory.sexes[speaker] == speaker[5].lower() for speaker in folds)
        speakers[name] = set(folds)
    assert speakers["IEMOCAP_dev"] == {"Ses01F", "Ses02M", "Ses03F", "Ses04M", "Ses05F"}
    assert not speakers["IEMOCAP_dev"] & speakers["IEMOCAP_test"]
    lists = [(tmp_path / "data" / name / "utt2emo").read_text() for name in speakers]
    labels = dict(line.split() for line in "".join(lists).splitlines())
    assert len(labels) == 5 * 2 * 5
    assert labels["Ses01F_impro01_F002"] == "hap"  # the original label is "excited"
    assert not [name for name in labels if name.endswith(("5", "6"))]
    assert "Other labels, left out: 10 fru, 10 xxx" in text
    said = "".join(
        (tmp_path / "data" / name / "text").read_text() for name in speakers
    ).splitlines()
    assert sorted(line.split()[0] for line in said) == sorted(labels)
    assert "Ses01F_impro01_F002 DON'T 2 WHY" in said
    assert json.loads((tmp_path / "data/iemocap.json").read_text())["left_out"] == {
        "fru": 10,
        "xxx": 10,
    }


def test_parts_of_the_challenge_are_used_if_given(emotional, tmp_path):
    chosen = {
        "IEMOCAP_dev": ["Ses01F_impro01_F000", "Ses01F_impro01_M001"],
        "IEMOCAP_test": ["Ses02F_impro01_F000"],
    }
    for name, utterances in chosen.items():
        (tmp_path / "challenge" / name).mkdir(parents=True)
        lines = "".join(f"{utterance} any\n" for utterance in utterances)
        (tmp_path / "challenge" / name / "utt2spk").write_text(lines)
    parts = make_iemocap_sets(read_iemocap(emotional), tmp_path, lists=tmp_path / "challenge")
    assert {part.name: sorted(part.recordings) for part in parts} == chosen
    # the label means "frustrated"
    (tmp_path / "challenge/IEMOCAP_test/utt2spk").write_text("Ses02F_impro01_M005 x\n")
    with pytest.raises(
        DataError, match="1 utterance without one of the four emotions in the corpus"
    ):
        make_iemocap_sets(read_iemocap(emotional), tmp_path, lists=tmp_path / "challenge")
    (tmp_path / "challenge/IEMOCAP_test/utt2spk").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        make_iemocap_sets(read_iemocap(emotional), tmp_path, lists=tmp_path / "challenge")


def test_all_problems_of_the_labels_are_reported_together(emotional, tmp_path):
    folder = emotional / "Session1/dialog/EmoEvaluation"
    with (folder / "Ses01F_impro01.txt").open("a") as handle:
        handle.write("[1.0 - 2.0]\tSes01F_impro01_F000\tneu\t[2, 2, 2]\n")
        handle.write("[1.0 - 2.0]\tSes01F_impro01_F099\tbored\t[2, 2, 2]\n")
        handle.write("[1.0 - 2.0]\t../../etc/passwd_F001\tneu\t[2, 2, 2]\n")
        handle.write("[1.0 - 2.0]\tSes02F_impro01_F050\tneu\t[2, 2, 2]\n")
        handle.write("[1.0 - 2.0]\n")
        handle.write("[1.0 - 2.0]\tSes01F_impro01_F077\tsad\t[2, 2, 2]\n")
    (emotional / "Session2/sentences/wav/Ses02F_impro01/Ses02F_impro01_F000.wav").write_bytes(
        b"RIFF"
    )
    for path in (emotional / "Session3/dialog/EmoEvaluation").iterdir():
        path.unlink()
    (emotional / "Session4/dialog/EmoEvaluation/Ses04F_impro01.txt").write_text(HEAD)
    text = refused("prepare", "iemocap", emotional, tmp_path / "data")
    for message in (
        "'Ses01F_impro01_F000' is labelled twice",
        "label 'bored': expected one of neu, sad",
        "passwd_F001",
        "'Ses02F_impro01_F050' belongs to another session",
        "expected '[begin - end] id label [...]', got '[1.0 - 2.0]'",
        "Ses01F_impro01_F077.wav",
        "Ses02F_impro01_F000.wav",
        "no labels: looked for Ses*.txt",
        "Ses04F_impro01.txt: no line '[begin - end] id label [...]'",
    ):
        assert message in text
    assert not (tmp_path / "data").exists()
