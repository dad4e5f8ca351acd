"""Kaldi data directories: reading with all problems at once, writing, shell commands, comparison with the twin."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.trials import Key
from spkbase.errors import DataError
from spkver.audio import read_audio, write_audio
from spkver.datadir.directory import (
    DataDir,
    enrolment,
    unfit_id,
    with_versions,
    without_labels,
    write_datadir,
)
from spkver.datadir.reading import read_datadir
from spkver.datadir.twins import check_twin, duration_changes

RATE = 16000


def speech(seed, n_samples=4000):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, n_samples)


@pytest.fixture
def folder(tmp_path):
    """Three utterances of two speakers, with every list."""
    folder = tmp_path / "data" / "set"
    (folder / "wav").mkdir(parents=True)
    for number, name in enumerate(("a-1", "a-2", "b-1")):
        write_audio(folder / "wav" / f"{name}.wav", speech(number), RATE)
    lists = {
        "wav.scp": "".join(f"{name} {folder}/wav/{name}.wav\n" for name in ("a-1", "a-2", "b-1")),
        "utt2spk": "a-1 a\na-2 a\nb-1 b\n",
        "spk2utt": "a a-1 a-2\nb b-1\n",
        "spk2gender": "a f\nb m\n",
        "enrolls": "a-1\n",
        "trials": "a a-1 target\nb a-1 nontarget\nelsewhere b-1 nontarget\n",
    }
    for name, text in lists.items():
        (folder / name).write_text(text)
    return folder


def test_all_versions_are_enrolled_and_labels_can_be_removed(folder):
    data = read_datadir(folder)
    both = with_versions(data, [data])
    assert list(zip(enrolment(both).models, enrolment(both).segments, strict=True)) == [
        ("a", "a-1"),
        ("a", "a-1-version2"),
    ]
    assert both.version_of == {name + "-version2": name for name in data.recordings}
    assert with_versions(data, []) is data
    bare = without_labels(data)
    assert set(bare.speakers.values()) == set(data.recordings)
    assert (bare.sexes, bare.enrolls, bare.trials, bare.recordings) == (
        {},
        None,
        None,
        data.recordings,
    )


@pytest.mark.parametrize("base", ["current", "parent", "grandparent", "itself"])
def test_relative_paths_are_resolved(folder, base, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    prefix = {"current": "data/set/", "parent": "set/", "grandparent": "data/set/", "itself": ""}[
        base
    ]
    if base == "grandparent":
        (tmp_path / "away").mkdir()
        monkeypatch.chdir(tmp_path / "away")
    (folder / "wav.scp").write_text(
        "".join(f"{one} {prefix}wav/{one}.wav\n" for one in ("a-1", "a-2", "b-1"))
    )
    data = read_datadir(folder)
    assert all(
        path.samefile(folder / "wav" / f"{one}.wav") for one, path in data.recordings.items()
    )


WRONG = {
    "a missing wav.scp": ("wav.scp", None, "wav.scp: cannot be read: No such file"),
    "a repeated utterance": (
        "utt2spk",
        b"a-1 a\na-2 a\na-1 b\n",
        "utt2spk:3: 'a-1' is repeated, first in line 1",
    ),
    "zero bytes": (
        "utt2spk",
        b"a-1 a\na-2\0 a\n",
        "utt2spk:2: expected text in UTF-8, but it holds zero bytes",
    ),
    "a sex that is none": (
        "spk2gender",
        b"a x\nb m\n",
        "spk2gender: speaker 'a': expected f or m, got 'x'",
    ),
    "an unknown sex": ("spk2gender", b"a f\n", "spk2gender: 1 speaker of unknown sex: 'b'"),
    "unknown trials": ("trials", b"a z-9 target\n", "trials: 1 unknown utterances: 'z-9'"),
    "a label that is none": (
        "trials",
        b"a a-1 maybe\n",
        "trials:1: expected target or nontarget, got 'maybe'",
    ),
    "a repeated trial": (
        "trials",
        b"a a-1 target\na a-1 target\n",
        "trials:2: trial 'a a-1' is repeated; also in",
    ),
    "a false label": (
        "trials",
        b"b a-1 target\n",
        "trial 'b a-1' is marked target, but 'a-1' is spoken by 'a'",
    ),
    "lists that disagree": (
        "spk2utt",
        b"a a-1\nb a-2 b-1\n",
        "speaker of 'a-2': a in utt2spk, b in spk2utt",
    ),
    "two speakers": (
        "spk2utt",
        b"a a-1 a-2 b-1\nb b-1\n",
        "utterance 'b-1' has two speakers, 'a' and 'b'",
    ),
    "an id with a separator": ("utt2spk", b"../x a\n", "utt2spk: id '../x' holds a path separator"),
    "a file that is not there": (
        "wav.scp",
        b"a-1 /no/x.wav\n",
        "wav.scp: utterance 'a-1': no such file, tried /no/x",
    ),
    "audio without a speaker": (
        "utt2spk",
        b"a-1 a\nb-1 b\n",
        "1 utterance of wav.scp not in the other list: 'a-2'",
    ),
    "segments": (
        "segments",
        b"s-1 a-1 0 1\n",
        "segments: utterances that are parts of recordings are not read here",
    ),
    "shell commands": (
        "wav.scp",
        b"a-1 cat x |\n",
        "wav.scp: 1 entries are shell commands, such as 'cat x |'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_reported_with_file_and_line(folder, case):
    name, content, message = WRONG[case]
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_datadir(folder)
    assert message in str(caught.value)
    assert str(folder) in str(caught.value)


def test_all_problems_are_reported_together(folder):
    (folder / "spk2gender").write_text("a f\n")
    (folder / "trials").write_text("a z-9 target\n")
    (folder / "wav" / "b-1.wav").unlink()
    with pytest.raises(DataError, match=r"^3 problems:") as caught:
        read_datadir(folder)
    assert all(text in str(caught.value) for text in ("unknown sex", "'z-9'", "no such file"))


def test_directories_are_written_sorted_and_read_back(folder, tmp_path):
    data = read_datadir(folder)
    shuffled = DataDir(
        tmp_path / "copy", dict(reversed(data.recordings.items())), dict(reversed(data.speakers.items())),
        dict(reversed(data.sexes.items())), data.enrolls, data.trials,
    )  # fmt: skip
    write_datadir(shuffled)
    for name in ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials"):
        assert (tmp_path / "copy" / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.parametrize("how", ["moved", "copied", "absolute"])
def test_a_directory_with_its_own_audio_can_be_moved(folder, tmp_path, how):
    data = read_datadir(folder)
    write_datadir(data)
    # the challenge's form
    assert (folder / "wav.scp").read_text().splitlines()[0] == "a-1 data/set/wav/a-1.wav"
    if how == "absolute":  # the form in which lists were written earlier
        (folder / "wav.scp").write_text(
            "".join(f"{name} {path}\n" for name, path in data.recordings.items())
        )
    target = tmp_path / ("x/data/set" if how == "moved" else "elsewhere/y")
    shutil.copytree(folder, target)
    if how != "copied":
        shutil.rmtree(folder)
    moved = read_datadir(target)
    assert moved.speakers == data.speakers
    assert all(
        path.resolve() == target / "wav" / f"{name}.wav" for name, path in moved.recordings.items()
    )


@pytest.mark.parametrize("ending", [".flac"])
def test_a_folder_of_recordings_gets_the_lists_of_the_original(folder, tmp_path, ending):
    original, twin = read_datadir(folder), tmp_path / "data/set_anon"
    (twin / "wav").mkdir(parents=True)
    for name in original.recordings:
        shutil.copy(folder / "wav" / f"{name}.wav", twin / "wav" / f"{name}{ending}")
    (twin / "wav/._a-1.wav").write_bytes(b"left by an archiver")
    with pytest.raises(DataError, match=r"wav\.scp: cannot be read"):
        read_datadir(twin)
    read = read_datadir(twin, original=original)
    assert read.recordings == {
        name: twin / "wav" / f"{name}{ending}" for name in sorted(original.recordings)
    }
    assert (read.path, read.speakers, read.enrolls) == (twin, original.speakers, original.enrolls)
    (twin / "wav/a-1.flac").touch()
    (twin / "wav/a-1.wav").touch()
    with pytest.raises(DataError, match="1 utterance in several formats: 'a-1'"):
        read_datadir(twin, original=original)


ids = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=8)
    .filter(lambda one: unfit_id(one) is None)
    .filter(lambda one: not one.startswith("\ufeff")),
    min_size=1,
    max_size=6,
    unique=True,
)  # fmt: skip


@given(ids=ids, n_speakers=st.integers(1, 3))
@settings(max_examples=30)
def test_lists_with_any_ids_are_read_back_and_sorted_by_bytes(tmp_path_factory, ids, n_speakers):
    folder = tmp_path_factory.mktemp("any")
    (folder / "x.wav").write_bytes(b"x")
    data = DataDir(
        folder / "set",
        dict.fromkeys(ids, folder / "x.wav"),
        {one: f"s{number % n_speakers}" for number, one in enumerate(ids)},
        enrolls=tuple(ids),
        trials=Key.from_ids(
            ["s0"] * len(ids), ids, [number % n_speakers == 0 for number in range(len(ids))]
        ),
    )
    write_datadir(data)
    again = read_datadir(data.path)
    assert again.recordings == data.recordings
    assert again.speakers == data.speakers
    assert set(again.enrolls or ()) == set(ids)
    assert list(again.trials.pairs()) == [("s0", one) for one in ids]
    lines = (folder / "set" / "utt2spk").read_bytes().splitlines()
    assert [line.split()[0] for line in lines] == sorted(one.encode() for one in ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recordings": {}, "speakers": {}}, "no utterances"),
        (
            {"recordings": {"../u": "x"}, "speakers": {"../u": "a"}},
            "id '../u' holds a path separator",
        ),
        ({"speakers": {"u": "a", "v": "a"}}, "utterance 'v' has no audio"),
        ({"recordings": {"u": "x |"}}, "cannot be written to wav.scp"),
    ],
)
def test_ids_that_break_lists_are_not_written(tmp_path, change, message):
    values = {"recordings": {"u": "x"}, "speakers": {"u": "a"}, **change}
    values["recordings"] = {one: Path(path) for one, path in values["recordings"].items()}
    with pytest.raises(DataError, match=message.replace("|", r"\|")):
        write_datadir(DataDir(tmp_path / "set", **values))
    assert not (tmp_path / "set").exists()


# --- shell commands ---------------------------------------------------------------------------------------------------


@pytest.fixture
def piped(folder):
    lines = [f"{one} cat {folder}/wav/{one}.wav |" for one in ("a-1", "a-2")]
    (folder / "wav.scp").write_text("\n".join([*lines, f"b-1 {folder}/wav/b-1.wav"]) + "\n")
    return folder


def test_a_command_is_run_again_only_if_it_changed(piped, tmp_path):
    log = tmp_path / "log"
    text = (piped / "wav.scp").read_text().replace("cat ", f"echo run >> {log}; cat ")
    (piped / "wav.scp").write_text(text)
    for _ in range(2):
        read_datadir(piped, allow_pipes=True, pipes_to=tmp_path / "pipes")
    assert len(log.read_text().split()) == 2
    (piped / "wav.scp").write_text(text.replace("a-1.wav |", "a-2.wav |"))
    data = read_datadir(piped, allow_pipes=True, pipes_to=tmp_path / "pipes")
    assert len(log.read_text().split()) == 3
    assert data.recordings["a-1"].read_bytes() == (piped / "wav" / "a-2.wav").read_bytes()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("head -c 5000 {}/wav/a-1.wav; echo broken >&2; exit 3", "ended with status 3: broken"),
        ("true", r"wrote no audio: is empty \(0 bytes\)"),
    ],
)
def test_a_command_that_fails_leaves_no_file(piped, tmp_path, command, message):
    text = (piped / "wav.scp").read_text().splitlines()
    text[0] = f"a-1 {command.format(piped)} |"
    (piped / "wav.scp").write_text("\n".join(text))
    with pytest.raises(DataError, match=f"utterance 'a-1': the command {message}"):
        read_datadir(piped, allow_pipes=True, pipes_to=tmp_path / "pipes")
    assert sorted(path.name for path in (tmp_path / "pipes").iterdir()) == [
        "a-2.wav",
        "commands.json",
    ]


# --- twins ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def twins(folder, tmp_path):
    """The set, and a twin with other audio of the same lengths."""
    original = read_datadir(folder)
    twin = DataDir(
        tmp_path / "data" / "set_x",
        {one: tmp_path / "data" / "set_x" / "wav" / f"{one}.wav" for one in original.recordings},
        original.speakers,
    )
    for number, path in enumerate(twin.recordings.values()):
        write_audio(path, speech(100 + number), RATE)
    return original, twin


def test_missing_and_extra_utterances_and_other_speakers_are_reported(twins):
    original, twin = twins
    recordings = {**twin.recordings, "c-1": twin.recordings["b-1"]}
    del recordings["a-1"]
    speakers = {"a-2": "b", "b-1": "b", "c-1": "c"}
    with pytest.raises(DataError) as caught:
        check_twin(original, DataDir(twin.path, recordings, speakers))
    text = str(caught.value)
    assert "1 missing utterance: 'a-1'" in text
    assert "1 extra utterance: 'c-1'" in text
    assert "1 utterance with another speaker" in text


def test_other_durations_are_allowed_and_empty_recordings_are_not(twins):
    original, twin = twins
    write_audio(twin.recordings["a-2"], speech(7, 2 * 4000), RATE)
    check_twin(original, twin)
    paths = [[side.recordings[name] for name in ("a-1", "a-2")] for side in (original, twin)]
    assert duration_changes(*paths).tolist() == [0.0, 1.0]
    soundfile.write(twin.recordings["a-2"], np.zeros(0), RATE)
    with pytest.raises(DataError, match="holds no samples"):
        check_twin(original, twin)


@pytest.mark.parametrize("how", ["the same file", "another container", "under another id"])
def test_original_audio_among_anonymised_files_is_found(twins, how):
    original, twin = twins
    source, target = original.recordings["b-1"], twin.recordings["b-1"]
    recordings = dict(twin.recordings)
    if how == "the same file":
        recordings["b-1"] = source
    elif how == "another container":
        recordings["b-1"] = target.with_suffix(".flac")
        write_audio(recordings["b-1"], *read_audio(source))
    else:
        shutil.copyfile(original.recordings["a-1"], target)
    with pytest.raises(
        DataError, match="original audio in 1 of 3 utterances of the anonymised set: 'b-1'"
    ) as caught:
        check_twin(original, DataDir(twin.path, recordings, twin.speakers))
    assert ("holds that of 'a-1'" in str(caught.value)) == (how == "under another id")
