"""Data of one's own: data directories of folders of recordings, and their split into the sets of an evaluation."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_lines import passes, refused
from hypothesis import given
from hypothesis import strategies as st

from spkbase.errors import ConfigError, DataError
from spkver.datadir import split_for_evaluation
from spkver.datadir.directory import DataDir
from spkver.datadir.reading import datadir_of_folder, read_datadir
from spkver.datadir.splitting import SplitRules, full_cross, split_datadir, twin_of_split


def touch(folder, *names, channels=1):
    noise = 0.1 * np.random.default_rng(0).standard_normal((8000, channels))
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, noise, 16000, format="WAV")
    return folder


def people(n_women, n_men, n_utterances=6):
    speakers = [f"f{number:02d}" for number in range(n_women)] + [
        f"m{number:02d}" for number in range(n_men)
    ]
    utterances = {
        f"{speaker}-{number}": speaker for speaker in speakers for number in range(n_utterances)
    }
    recordings = {utterance: Path(f"/audio/{utterance}.wav") for utterance in utterances}
    return DataDir(
        Path("data/mine"), recordings, utterances, {speaker: speaker[0] for speaker in speakers}
    )


def test_the_first_folder_is_the_speaker(tmp_path):
    folder = touch(
        tmp_path,
        "anna/monday/01.wav",
        "anna/02.FLAC",
        "bert/bert-03.sph",
        "bert/notes.txt",
        "anna/.x.wav",
    )
    made = datadir_of_folder(folder, "d")
    assert made.speakers == {"anna-monday-01": "anna", "anna-02": "anna", "bert-03": "bert"}
    assert made.recordings["bert-03"] == folder / "bert/bert-03.sph"
    assert made.sexes == {}


def test_without_folders_speakers_are_prefixes_of_file_names(tmp_path):
    folder = touch(tmp_path, "anna_1.wav", "anna_2_b.wav", "bert_1.wav")
    made = datadir_of_folder(folder, "d", separator="_")
    assert made.speakers == {"anna_1": "anna", "anna_2_b": "anna", "bert_1": "bert"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "found no .wav, .flac, .sph, .ogg, .oga, .opus, .mp3 file"),
        (("anna.wav", "bert-1.wav"), "anna.wav: expected a name like SPEAKER-1.wav"),
        (("a/1.wav", "2.wav"), "1 recording outside of the folders of speakers: '2.wav'"),
        (("a/1.flac", "a/1.wav"), "a/1.wav and a/1.flac are both utterance 'a-1'"),
        (("a 1/1.wav", "a_1/2.wav"), "'a 1' and 'a_1' are both speaker 'a_1' (rename one)"),
        (
            ("Zo\u00eb-1.wav", "Zoe\u0308-2.wav"),
            r"'Zoe\u0308' and 'Zo\xeb' are both speaker 'Zoë' (rename one)",
        ),
    ],
)
def test_unreadable_folders_are_explained(tmp_path, names, message):
    with pytest.raises(DataError, match=re.escape(message)):
        datadir_of_folder(touch(tmp_path, *names), "d")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("Anna/1.wav", "anna/2.wav"),
            "differ in case, blanks or Unicode form alone, such as 'Anna' and 'anna'",
        ),
        (
            ("a/1.wav", "a/2.m4a", "notes.txt", "a/.5.mp3"),
            "2 other files are left out: 'a/2.m4a', 'notes.txt'",
        ),
    ],
)
def test_other_files_in_a_folder_are_reported(tmp_path, names, message):
    done = passes("datadir", touch(tmp_path / "in", *names), "-o", tmp_path / "out")
    assert done.stderr.startswith("Warning: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_with_blanks_and_unicode_become_ids(tmp_path):
    folder = touch(tmp_path / "my recordings", "Zoe\u0308/take 1.wav", "b c/ 2.wav")
    passes("datadir", folder, "-o", tmp_path / "d")
    made = read_datadir(tmp_path / "d")
    assert made.speakers == {"Zo\u00eb-take_1": "Zo\u00eb", "b_c-_2": "b_c"}
    assert made.recordings["b_c-_2"] == folder / "b c/ 2.wav"


def test_unusable_recordings_are_named_together(tmp_path):
    folder = touch(tmp_path / "in", "a/1.wav", "a/2.wav", channels=2)
    said = refused("datadir", folder, "-o", tmp_path / "d")
    assert "2 channels, expected one" in said
    assert "ffmpeg" in said


def test_unusable_recordings_are_refused_or_omitted(tmp_path):
    """Silent, shorter than 0.1 s, unreadable: each once, before anything is written."""
    folder = touch(tmp_path / "in", "a/1.wav", "a/2.wav", "b/1.wav")
    click = np.zeros(8000)
    click[1] = 0.1  # only the middle is silent
    soundfile.write(folder / "b/2.wav", click, 16000)
    for name, samples in (("silent", click * 0), ("short", np.ones(1599) / 9)):
        soundfile.write(folder / f"a/{name}.wav", samples, 16000)
    (folder / "b/text.wav").write_text("text")
    unusable = (
        "a/silent.wav: silent: all samples are 0",
        "a/short.wav: shorter than 0.1 s: 0.100 s",
        "b/text.wav: ",
    )
    said = refused("datadir", folder, "-o", tmp_path / "d")
    assert "3 of 7 recordings cannot be used: 3 problems:" in said
    assert said.rstrip().endswith("(correct them, or leave them out: --drop-unusable)")
    assert not (tmp_path / "d").exists()
    done = passes("datadir", folder, "-o", tmp_path / "d", "--drop-unusable")
    assert "3 of 7 recordings are left out: 3 problems:" in done.stderr
    for text in (said, done.stderr):
        assert [text.count(one) for one in unusable] == [1, 1, 1]
    made = read_datadir(tmp_path / "d")
    assert sorted(made.recordings) == sorted(made.speakers) == ["a-1", "a-2", "b-1", "b-2"]


CLIPS = [
    ("x/01.mp3", "s 1", "female_feminine"),
    ("x/02.mp3", "s 1", "female"),
    ("03.mp3", "s2", "male_masculine"),
]


@pytest.mark.parametrize("sign", ["\t", ",", ";"])
def test_recordings_speakers_and_sexes_are_read_from_a_table(tmp_path, sign):
    """As Common Voice's, whose sentences hold unpaired quotes between tabs; other tables quote what holds commas."""
    touch(tmp_path / "clips", *(path for path, *_ in CLIPS))
    words = '"Well; he said, quoting' if sign == "\t" else '"Well; he said, quoting"'
    rows = [sign.join(("client_id", "path", "sentence", "gender"))]
    rows += [sign.join((speaker, path, words, sex)) for path, speaker, sex in CLIPS]
    (tmp_path / "t").write_text("\ufeff" + "\r\n".join(rows) + "\r\n")
    given = (
        tmp_path / "clips",
        "--table",
        tmp_path / "t",
        "--speaker",
        "client_id",
        "--path",
        "path",
    )
    done = passes("datadir", *given, "--sex", "gender", "-o", tmp_path / "d")
    assert done.stdout == f"{tmp_path / 'd'}: 3 utterances of 1 woman and 1 man\n"
    made = read_datadir(tmp_path / "d")
    assert made.speakers == {"03": "s2", "x-01": "s_1", "x-02": "s_1"}
    assert made.sexes == {"s_1": "f", "s2": "m"}
    assert made.recordings["x-01"] == tmp_path / "clips/x/01.mp3"
    passes("datadir", *given, "-o", tmp_path / "pooled")
    assert read_datadir(tmp_path / "pooled").sexes == {}


@pytest.mark.parametrize(
    ("rows", "places"),
    [
        (["s1,a.wav,f", "s1,b.wav"], [":3: expected 3 columns as in the header, got 2"]),
        (
            ["s1,a.wav,f", ",b.wav,f", "s1,a.wav,f"],
            [":3: expected a speaker", ":4: expected a speaker and"],
        ),
        (
            ["s1,a.wav,f", "s1,b.wav,m", "s2,c.wav,"],
            [":3: speaker 's1'", ":4: speaker 's2': expected female or male"],
        ),
        (["s1,absent.wav,f"], ["1 of 1 recordings cannot be used", "absent.wav: "]),
    ],
)
def test_bad_tables_are_refused_with_their_line(tmp_path, rows, places):
    touch(tmp_path, "a.wav", "b.wav", "c.wav")
    (tmp_path / "t.csv").write_text("\n".join(["who,where,sex", *rows]) + "\n")
    given = (
        "datadir",
        tmp_path,
        "-o",
        tmp_path / "d",
        "--table",
        tmp_path / "t.csv",
        "--speaker",
        "who",
    )
    said = refused(*given, "--path", "where", "--sex", "sex")
    assert all(place in said for place in places)
    assert "no column 'file'; the columns are: who, where, sex" in refused(*given, "--path", "file")
    assert "--table, --speaker and --path go together" in refused(*given)


@given(st.integers(3, 9), st.integers(3, 9), st.integers(2, 5), st.integers(0, 9))
def test_every_utterance_has_one_use_and_every_speaker_one_part(n_women, n_men, n_utterances, seed):
    source = people(n_women, n_men, n_utterances)
    split = split_datadir(source, "out", "mine", SplitRules(enrolment_utterances=1, seed=seed))
    uses = [set(part.recordings) for part in split.parts()]
    assert sum(map(len, uses)) == len(source) == len(set().union(*uses))
    trained, enrolled = set(split.training.speakers.values()), set(split.enrolls.speakers.values())
    assert not trained & enrolled
    assert trained | enrolled == set(source.sexes)
    assert len(trained) == max(1, round(n_women / 3)) + max(1, round(n_men / 3))
    for sex, part in split.trials.items():
        assert {source.sexes[speaker] for speaker in part.speakers.values()} == {sex}
        models = {speaker for speaker in enrolled if source.sexes[speaker] == sex}
        assert len(part.trials) == len(models) * len(part)  # the full cross
        assert part.trials.is_target.sum() == len(part)


def test_draws_depend_only_on_ids_and_seed():
    first = split_datadir(people(9, 9), "out", "mine")
    assert split_datadir(people(9, 9), "out", "mine").enrolls.enrolls == first.enrolls.enrolls
    other = split_datadir(people(9, 9), "out", "mine", SplitRules(seed=1))
    assert other.enrolls.enrolls != first.enrolls.enrolls
    more = split_datadir(people(9, 12), "out", "mine")  # the women's lists do not change
    women = [
        {name for name in part.training.sexes if name.startswith("f")} for part in (first, more)
    ]
    assert women[0] == women[1]


@pytest.mark.parametrize(("n_women", "n_men", "n_utterances"), [(2, 2, 6), (9, 9, 3)])
def test_too_few_speakers_are_refused(n_women, n_men, n_utterances):
    with pytest.raises(DataError, match="too few"):
        split_datadir(people(n_women, n_men, n_utterances), "out", "mine")


def test_without_sexes_all_speakers_are_pooled():
    source = people(6, 6)
    split = split_datadir(replace(source, sexes={}), "out", "mine")
    assert [part.path.name for part in split.trials.values()] == ["mine_test_trials_mixed"]
    assert len(split.notes) == 1
    assert "women and men are pooled" in split.notes[0]
    tested = set(split.enrolls.speakers.values())
    assert len(tested) == 8
    assert len(split.training.sexes) == 0
    key = split.trials["mixed"].trials
    assert len(key) == 8 * len(split.trials["mixed"]) == 8 * 8 * 3
    assert any(model[0] != segment[0] for model, segment in key.pairs())  # across the sexes


@pytest.fixture
def recordings(tmp_path):
    for kind in ("original", "anonymised"):
        for speaker in people(4, 5).sexes:
            touch(tmp_path / kind, *(f"{speaker}/{number}.wav" for number in range(5)))
    (tmp_path / "speakers.tsv").write_text(
        "speaker\tage\tGender\n"
        + "".join(
            f"{speaker}\t30\t{'F' if speaker[0] == 'f' else 'M'}\n"
            for speaker in people(4, 5).sexes
        )
    )
    return tmp_path


def test_two_folders_become_evaluation_sets(recordings):
    data, sets = recordings / "data", recordings / "sets"
    table = recordings / "speakers.tsv"
    made = passes("datadir", recordings / "original", "-o", data / "mine", "--sexes", table).output
    assert "45 utterances of 4 women and 5 men" in made
    assert (
        "speakers of unknown sex"
        in passes("datadir", recordings / "anonymised", "-o", data / "mine_x").output
    )
    assert "a data directory is there already" in refused(
        "datadir", recordings / "original", "-o", data / "mine"
    )
    command = ("split", data / "mine", "--twin", data / "mine_x", "--suffix", "_x", "-o", sets)
    out = passes(*command).output
    assert f"spkver voiceprivacy --data {sets} --suffix _x" in out
    for name in ("train", "test_enrolls", "test_trials_f", "test_trials_m"):
        original, twin = read_datadir(sets / f"mine_{name}"), read_datadir(sets / f"mine_{name}_x")
        assert original.speakers == twin.speakers
        assert {path.parts[-3] for path in twin.recordings.values()} == {"anonymised"}
    enrolls = read_datadir(sets / "mine_test_enrolls")
    trials = read_datadir(sets / "mine_test_trials_m")
    men = sorted({speaker for speaker in enrolls.speakers.values() if speaker[0] == "m"})
    expected = full_cross(men, trials)
    assert list(trials.trials.pairs()) == list(expected.pairs())
    record = json.loads((sets / "split.json").read_text())
    assert record["rules"] == {"training_share": 1 / 3, "enrolment_utterances": 3, "seed": 0}
    assert passes(*command).output == out  # the second time gives the same
    assert "another split, or other data, already exists there" in refused(*command, "--seed", 1)
    said = refused(*command[:3], data / "mine", *command[4:])
    assert "lists other recordings, such as those of another twin" in said


def test_utterances_missing_from_the_copy_are_omitted_on_both_sides(recordings):
    data, sets = recordings / "data", recordings / "sets"
    soundfile.write(recordings / "anonymised/m00/3.wav", np.zeros(8000), 16000)
    passes(
        "datadir",
        recordings / "original",
        "-o",
        data / "mine",
        "--sexes",
        recordings / "speakers.tsv",
    )
    passes("datadir", recordings / "anonymised", "-o", data / "mine_x", "--drop-unusable")
    command = ("split", data / "mine", "--twin", data / "mine_x", "--suffix", "_x", "-o", sets)
    said = refused(*command)
    assert "1 utterance of the original missing: 'm00-3'" in said
    assert "spkver split --missing drop" in said
    assert (
        "left out: 1 utterance that the twin lacks ('m00-3')"
        in passes(*command, "--missing", "drop").output
    )
    assert json.loads((sets / "split.json").read_text())["left_out"] == ["m00-3"]
    parts = ("train", "test_enrolls", "test_trials_f", "test_trials_m")
    for ending in ("", "_x"):
        of_parts = [read_datadir(sets / f"mine_{name}{ending}") for name in parts]
        assert sum(map(len, of_parts)) == 44
        assert not [one for part in of_parts for one in part.recordings if one == "m00-3"]
    # names from another folder do not count as missing utterances
    for utterance in (recordings / "anonymised").glob("*/*.wav"):
        utterance.rename(utterance.with_name(f"{utterance.stem}{utterance.stem}x.wav"))
    passes("datadir", recordings / "anonymised", "-o", data / "mine_y", "--drop-unusable")
    command = (
        *command[:3],
        data / "mine_y",
        "--suffix",
        "_y",
        "-o",
        recordings / "y",
        "--missing",
        "drop",
    )
    assert "of the original missing" in refused(*command)


def test_names_of_anonymised_recordings_may_have_an_ending():
    original = people(4, 4)
    split = split_datadir(original, "out", "mine")
    speakers = {f"{name}_anon": speaker for name, speaker in original.speakers.items()}
    twin = DataDir(Path("twin"), {name: Path(name) for name in speakers}, speakers)
    parts = twin_of_split(split, twin, "_x")
    assert parts.notes == (
        "the names of the anonymised recordings end with '_anon', those of the original do not",
    )
    for part, other in zip(split.parts(), parts.parts(), strict=True):
        assert other.recordings == {name: Path(f"{name}_anon") for name in part.recordings}
    del twin.recordings["f00-1_anon"], twin.speakers["f00-1_anon"]
    with pytest.raises(
        DataError, match=r"1 utterance of the original missing: 'f00-1' .*one ending of all"
    ):
        twin_of_split(split, twin, "_x")
    upper = {name.upper(): path for name, path in original.recordings.items()}
    with pytest.raises(DataError, match=r"'f.*' and 'F.*' differ only in case or Unicode form"):
        twin_of_split(split, DataDir(Path("twin"), upper, dict.fromkeys(upper, "x")), "_x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--missing", "drop"), "--missing drop needs --twin"),
        (("--twin", "x"), "--twin and --suffix go together"),
        (("--twin", "x", "--suffix", "x"), "expected an underscore and a name"),
        (("--twin", "x", "--suffix", "_../../x"), "expected an underscore and a name"),
        (("--twin", "x", "--suffix", "_enrolls"), "is also an ending of names of original sets"),
        (("--twin", "x", "--suffix", "_trials_f"), "is also an ending of names of original sets"),
        (("--name", "a/b"), "holds a path separator"),
        (("--training-share", "2"), "the training share is 2.0"),
    ],
)
def test_wrong_options_of_split_give_one_message(recordings, arguments, message):
    passes(
        "datadir",
        recordings / "original",
        "-o",
        recordings / "d",
        "--sexes",
        recordings / "speakers.tsv",
    )
    assert message in refused("split", recordings / "d", "-o", recordings / "s", *arguments)
    assert not (recordings / "s").exists()


def test_surplus_utterances_and_swapped_sides_are_reported(recordings):
    data, sets = recordings / "data", recordings / "sets"
    passes(
        "datadir",
        recordings / "original",
        "-o",
        data / "mine",
        "--sexes",
        recordings / "speakers.tsv",
    )
    passes("anonymize", "none", data / "mine", "--suffix", "_x", "--jobs", 1)
    rules = ("--suffix", "_x")
    out = passes("split", data / "mine", "--twin", data / "mine_x", *rules, "-o", sets).output
    assert "exchanged" not in out
    assert "left out" not in out
    out = passes(
        "split", data / "mine_x", "--twin", data / "mine", *rules, "-o", recordings / "exchanged"
    ).output
    assert (
        f"{data / 'mine_x'}: holds anonymised speech, by its anonymization.json, and --twin does not"
        in out
    )
    touch(recordings / "anonymised", "f00/6.wav", "m00/6.wav")
    passes("datadir", recordings / "anonymised", "-o", data / "mine_y")
    out = passes(
        "split",
        data / "mine",
        "--twin",
        data / "mine_y",
        "--suffix",
        "_y",
        "-o",
        recordings / "more",
    ).output
    assert "2 of 47 utterances of the twin are left out: the original has none" in out


@pytest.mark.parametrize("output", ["original", "original/f00", "link"])
def test_lists_are_not_written_among_the_recordings(recordings, output):
    (recordings / "link").symlink_to(recordings / "original" / "f01")
    said = refused("datadir", recordings / "original", "-o", recordings / output)
    assert "holds recordings of FOLDER (choose another --output)" in said
    assert not list((recordings / output).glob("*spk*"))
    passes("datadir", recordings / "original", "-o", recordings / "original" / "lists")


def test_split_for_evaluation_gives_the_record_of_the_command(recordings):
    data, table = recordings / "data", recordings / "speakers.tsv"
    soundfile.write(recordings / "anonymised/m00/3.wav", np.zeros(8000), 16000)
    passes("datadir", recordings / "original", "-o", data / "mine", "--sexes", table)
    passes("datadir", recordings / "anonymised", "-o", data / "mine_x", "--drop-unusable")
    source, twin = read_datadir(data / "mine"), read_datadir(data / "mine_x")
    rules = SplitRules(training_share=0.5, seed=2)
    sets = split_for_evaluation(
        source, recordings / "s", twin=twin, suffix="_x", rules=rules, missing="drop"
    )
    assert not (recordings / "s").exists()
    options = ("--suffix", "_x", "--training-share", "0.5", "--seed", "2", "--missing", "drop")
    passes("split", data / "mine", "--twin", data / "mine_x", *options, "-o", recordings / "s")
    record = (recordings / "s" / "split.json").read_text()
    assert json.loads(record) == sets.to_dict()
    sets.write()  # the same sets are written again
    assert (recordings / "s" / "split.json").read_text() == record
    other = split_for_evaluation(source, recordings / "s", twin=twin, suffix="_x", missing="drop")
    with pytest.raises(DataError, match="another split, or other data, already exists there"):
        other.write()
    assert (recordings / "s" / "split.json").read_text() == record


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suffix": "_x"}, "expected an anonymised data directory together with a suffix"),
        ({"twin": people(4, 4)}, "expected an anonymised data directory together with a suffix"),
        ({"missing": "drop"}, "missing='drop' needs a twin"),
        ({"missing": "leave"}, "expected missing to be 'error' or 'drop', got 'leave'"),
        (
            {"twin": people(4, 4), "suffix": "_enrolls"},
            "is also an ending of names of original sets",
        ),
        ({"name": "a/b"}, "holds a path separator"),
    ],
)
def test_split_for_evaluation_refuses_misuse(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        split_for_evaluation(people(4, 4), "sets", **options)
