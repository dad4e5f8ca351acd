"""Data directories anonymised: complete, resumable, the same for any number of workers; and the command."""

import json
import os

import numpy as np
import pytest
import soundfile
from command_lines import passes, refused

from spkbase.errors import ConfigError, DataError
from spkbase.runs import Run
from spkver.anonymization import directories
from spkver.anonymization.anonymizers import (
    AnonymizerConfig,
    make_anonymizer,
    named_stream,
    stream_name,
)
from spkver.anonymization.directories import JOURNAL, anonymised_twin, anonymize_datadir
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, check_twin, read_datadir, write_datadir

RATE = 16000
NAMES = ("a-1", "a-2", "b-1")


@pytest.fixture
def source(tmp_path):
    """Three utterances of two speakers, FLAC, with lists of all kinds."""
    folder = tmp_path / "set"
    for number, name in enumerate(NAMES):
        rng = np.random.default_rng(number)
        samples = np.cumsum(rng.standard_normal(2400 + 160 * number))
        write_audio(folder / "wav" / f"{name}.flac", 0.5 * samples / np.abs(samples).max(), RATE)
    paths = {name: folder / "wav" / f"{name}.flac" for name in NAMES}
    write_datadir(
        DataDir(folder, paths, {name: name[0] for name in NAMES}, {"a": "f", "b": "m"}, ("a-1",))
    )
    (folder / "trials").write_text("a a-2 target\nb a-2 nontarget\n")
    (folder / "text").write_text("a-1 HELLO\n")
    (folder / "utt2dur").write_text("a-1 0.1\n")
    (folder / "original.flac").write_bytes((folder / "wav" / "a-1.flac").read_bytes())
    (folder / "feats.scp").write_text("a-1 x.ark:1\n")
    return read_datadir(folder)


def outputs(data):
    return {name: path.read_bytes() for name, path in data.recordings.items()}


def times(data):
    return {name: path.stat().st_mtime_ns for name, path in data.recordings.items()}


def test_the_anonymised_copy_is_a_complete_data_directory(source, tmp_path):
    twin = anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(), jobs=1)
    again = read_datadir(tmp_path / "set_x")
    for one in (twin, again):
        assert one.recordings == {
            name: tmp_path / "set_x" / "wav" / f"{name}.wav" for name in NAMES
        }
        assert one.speakers == source.speakers
        assert one.sexes == source.sexes
        assert one.enrolls == source.enrolls
        assert list(one.trials.pairs()) == [("a", "a-2"), ("b", "a-2")]
    check_twin(source, again)
    copied = {path.name for path in (tmp_path / "set_x").iterdir()}
    assert copied == {"wav", "wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "text",
                      "anonymization.json"}  # fmt: skip
    for name, path in again.recordings.items():
        info = soundfile.info(path)
        assert (info.format, info.subtype, info.channels, info.samplerate) == (
            "WAV",
            "PCM_16",
            1,
            RATE,
        )
        samples, rate = read_audio(source.recordings[name])
        rng = named_stream(stream_name(name, "", 0, level="utterance", seeding="utterance"), 0)
        expected = make_anonymizer(AnonymizerConfig())(samples, rate, name, rng)
        assert np.array_equal(read_audio(path).samples, expected.astype(np.float32))


@pytest.mark.parametrize("name", ["mcadams", "own_anonymizer:reverse"])
def test_on_speaker_level_each_side_has_its_own_draw(source, tmp_path, name):
    """One draw for two sides would tell who it is."""
    sounds, config = [], AnonymizerConfig(name, level="speaker")
    for number, side in enumerate(("enrolment", "trials", "trials", "")):
        made = anonymize_datadir(source, tmp_path / f"set_{number}", config, side=side, jobs=1)
        sounds.append(tuple(outputs(made).values()))
    assert sounds[1] == sounds[2]
    assert all(one != other for one, other in zip(sounds[0], sounds[1], strict=True))
    assert all(one != other for one, other in zip(sounds[3], sounds[1], strict=True))


@pytest.mark.parametrize(
    "config", [AnonymizerConfig(), AnonymizerConfig("own_anonymizer:reverse", level="speaker")]
)
def test_any_number_of_workers_and_any_order_give_the_same_files(source, tmp_path, config):
    expected = outputs(anonymize_datadir(source, tmp_path / "set_1", config, jobs=1))
    backwards = DataDir(source.path, dict(reversed(source.recordings.items())), source.speakers)
    assert outputs(anonymize_datadir(backwards, tmp_path / "set_2", config, jobs=2)) == expected


def test_the_draws_of_the_challenge_follow_the_order_of_the_list(source, tmp_path):
    config = AnonymizerConfig(seeding="vpc2024")
    found = outputs(anonymize_datadir(source, tmp_path / "set_1", config, jobs=1))
    alphas = np.random.default_rng(4284258105).uniform(0.5, 0.9, 3)
    for number, name in enumerate(NAMES):
        one = AnonymizerConfig(alpha=(alphas[number], alphas[number]))
        alone = DataDir(source.path, {name: source.recordings[name]}, source.speakers)
        alone = DataDir(source.path, alone.recordings, {name: source.speakers[name]})
        assert (
            outputs(anonymize_datadir(alone, tmp_path / f"one_{name}", one, jobs=1))[name]
            == found[name]
        )
    backwards = DataDir(source.path, dict(reversed(source.recordings.items())), source.speakers)
    other = outputs(anonymize_datadir(backwards, tmp_path / "set_2", config, jobs=1))
    assert other["a-2"] == found["a-2"]
    assert other["a-1"] != found["a-1"]


@pytest.mark.parametrize(
    ("what", "redone"),
    [("alpha", 3), ("seed", 3), ("level", 3), ("a source", 1), ("an output", 1), ("a lost output", 1), ("a date", 0),
     ("the record", 3)],
)  # fmt: skip
def test_only_changed_recordings_are_anonymised_again(source, tmp_path, what, redone):
    target = tmp_path / "set_x"
    twin = anonymize_datadir(source, target, AnonymizerConfig(), jobs=1)
    before = times(twin)
    config, seed = AnonymizerConfig(), 0
    if what == "alpha":
        config = AnonymizerConfig(alpha=(0.5, 0.8))
    elif what == "level":
        config = AnonymizerConfig(level="speaker")
    elif what == "seed":
        seed = 1
    elif what == "a source":
        samples, rate = read_audio(source.recordings["a-1"])
        write_audio(source.recordings["a-1"], -samples[::-1], rate)
    elif what == "an output":
        raw = bytearray(twin.recordings["a-1"].read_bytes())
        raw[1000] ^= 1
        twin.recordings["a-1"].write_bytes(raw)
    elif what == "a lost output":
        twin.recordings["a-1"].unlink()
    elif what == "a date":
        os.utime(source.recordings["a-1"], ns=(1, 1))
    else:
        (target / "anonymization.json").write_text("{]")
    expected = outputs(anonymize_datadir(source, tmp_path / "fresh", config, seed=seed, jobs=1))
    after = anonymize_datadir(source, target, config, seed=seed, jobs=1)
    assert outputs(after) == expected
    assert sum(times(after)[name] != before[name] for name in NAMES) == redone


def test_removed_utterances_and_lists_are_removed_from_the_copy(source, tmp_path):
    target = tmp_path / "set_x"
    anonymize_datadir(source, target, AnonymizerConfig("none"), jobs=1)
    (target / "mine").write_text("a list of the user's\n")
    for name in ("spk2gender", "enrolls", "trials", "text"):
        (source.path / name).unlink()
    fewer = DataDir(source.path, {"a-1": source.recordings["a-1"]}, {"a-1": "a"})
    anonymize_datadir(fewer, target, AnonymizerConfig("none"), jobs=1)
    lists = {"wav.scp", "utt2spk", "spk2utt", "anonymization.json", "mine"}
    assert {path.name for path in target.iterdir()} == {"wav", *lists}
    again = read_datadir(target)
    assert (again.sexes, again.enrolls, again.trials, list(again.recordings)) == (
        {},
        None,
        None,
        ["a-1"],
    )
    assert [path.name for path in (target / "wav").iterdir()] == ["a-1.wav"]


def test_an_interrupted_run_resumes_and_gives_the_same_folder(source, tmp_path):
    """To the last byte as a run that nobody has disturbed; what was finished is not made again."""
    file, log, target = tmp_path / "mine.py", tmp_path / "log", tmp_path / "set_x"
    file.write_text(f"""
def mine(samples, rate, utterance, rng):
    open({str(log)!r}, "a").write(utterance + " ")
    if utterance == "b-1" and open({str(log)!r}).read().count("b") == 1:
        raise KeyboardInterrupt
    return samples / 2
""")
    config = AnonymizerConfig(f"{file}:mine")
    with pytest.raises(KeyboardInterrupt):
        anonymize_datadir(source, target, config, jobs=1, batch=1)
    assert len((target / JOURNAL).read_text().splitlines()) == 2
    with pytest.raises(DataError, match=r"wav\.scp"):
        read_datadir(target)
    (target / "wav" / ".a-1.x7abcd_e.spkver-tmp.wav").write_bytes(b"half")
    with (target / JOURNAL).open("a") as journal:
        journal.write('{"b-1": {"made_by"')  # a truncated line
    made = anonymize_datadir(source, target, config, jobs=1)
    assert log.read_text().split() == ["a-1", "a-2", "b-1", "b-1"]
    fresh = anonymize_datadir(source, tmp_path / "fresh" / "set_x", config, jobs=1)
    assert outputs(made) == outputs(fresh)
    assert {path.name for path in target.rglob("*")} == {
        path.name for path in fresh.path.rglob("*")
    }


def test_a_stage_of_a_run_redoes_only_changed_recordings(source, tmp_path, monkeypatch):
    run = Run(tmp_path / "out")

    def made(seed=0):
        twin = anonymised_twin(run, "set_x", source, AnonymizerConfig(), seed=seed, side="")
        return outputs(twin), times(twin)

    first = made()
    assert first[0] == outputs(
        anonymize_datadir(source, tmp_path / "set_y", AnonymizerConfig(), jobs=1)
    )
    with monkeypatch.context() as context:
        context.setattr(directories, "make_twin", None)  # any call would fail
        assert made() == first
    os.utime(source.recordings["a-1"], ns=(1, 1))
    assert made() == first
    (tmp_path / "out/set_x/wav/a-2.wav").unlink()
    (source.path / "text").write_text("a-1 GOODBYE\n")
    sounds, changed = made()
    assert sounds == first[0]
    assert [name for name in NAMES if changed[name] != first[1][name]] == ["a-2"]
    assert (tmp_path / "out/set_x/text").read_text() == "a-1 GOODBYE\n"
    assert made(seed=1)[0] != sounds


def test_failed_recordings_leave_an_unfinished_folder_that_is_resumed(source, tmp_path):
    target = tmp_path / "set_x"
    anonymize_datadir(source, target, AnonymizerConfig(), jobs=1)
    with pytest.raises(DataError, match=r"a-2\.flac: utterance 'a-2': ZeroDivisionError: no luck"):
        anonymize_datadir(source, target, AnonymizerConfig("own_anonymizer:breaks_on_a2"), jobs=1)
    assert not (target / "wav.scp").exists()  # the folder is not taken for a data directory
    # the others are complete
    kept = {name: (target / "wav" / f"{name}.wav").stat().st_mtime_ns for name in ("a-1", "b-1")}
    with pytest.raises(DataError, match="'a-2'"):
        anonymize_datadir(source, target, AnonymizerConfig("own_anonymizer:breaks_on_a2"), jobs=1)
    assert {name: (target / "wav" / f"{name}.wav").stat().st_mtime_ns for name in kept} == kept


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("integers", "gave int16 of shape"),
        ("nothing", "gave float32 of shape"),
        ("not_a_number", "NaN or infinite"),
    ],
)
def test_output_that_is_not_audio_is_refused(source, tmp_path, name, message):
    with pytest.raises(DataError, match=message):
        anonymize_datadir(
            source, tmp_path / "set_x", AnonymizerConfig(f"own_anonymizer:{name}"), jobs=1
        )


def test_output_that_clips_is_scaled(source, tmp_path):
    twin = anonymize_datadir(
        source, tmp_path / "set_x", AnonymizerConfig("own_anonymizer:loud"), jobs=1
    )
    before, after = (read_audio(data.recordings["b-1"]).samples for data in (source, twin))
    np.testing.assert_allclose(after, before / np.abs(before).max(), atol=2 / 32768)


def test_foreign_target_folders_are_not_touched(source, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "wav.scp").write_text("a-1 x\n")
    (tmp_path / "file").write_text("")
    for target, message in (
        (tmp_path / "theirs", "holds other files"),
        (tmp_path / "file", "is a file"),
        (source.path, "is the source itself"),
        (tmp_path / ".x", "starts with a point"),
    ):
        with pytest.raises(DataError, match=message):
            anonymize_datadir(source, target, AnonymizerConfig(), jobs=1)
    assert (tmp_path / "theirs" / "wav.scp").read_text() == "a-1 x\n"


def test_bad_sources_are_refused_before_anything_is_written(source, tmp_path):
    soundfile.write(source.recordings["a-1"], np.zeros((800, 2)), RATE)
    source.recordings["b-1"].write_bytes(b"no audio")
    with pytest.raises(
        DataError, match=r"(?s)2 problems:.*a-1\.flac: 2 channels.*b-1\.flac: not readable"
    ):
        anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(), jobs=1)
    assert not (tmp_path / "set_x").exists()


# --- users' own anonymisers -------------------------------------------------------------------------------------------


def test_a_function_from_a_file_anonymises(source, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def quiet(samples, rate, utterance, rng):\n    return samples / 2\n")
    config = AnonymizerConfig(f"{file}:quiet")
    first = anonymize_datadir(source, tmp_path / "set_x", config, jobs=1)
    half = read_audio(source.recordings["a-1"]).samples / 2
    assert np.abs(read_audio(first.recordings["a-1"]).samples - half).max() <= 1 / 65536
    assert times(anonymize_datadir(source, tmp_path / "set_x", config, jobs=1)) == times(first)
    before = times(first)
    file.write_text("def quiet(samples, rate, utterance, rng):\n    return samples / 4\n")
    assert times(anonymize_datadir(source, tmp_path / "set_x", config, jobs=1)) != before


def test_hostile_ids_are_quoted_in_commands(tmp_path):
    name = "x;touch$IFS'hacked'`id`$(id)&"
    write_audio(tmp_path / "set" / "x.wav", np.linspace(-0.5, 0.5, 900), RATE)
    write_datadir(DataDir(tmp_path / "set", {name: tmp_path / "set" / "x.wav"}, {name: "s"}))
    config = AnonymizerConfig(
        "command", command="cp {input} {output} && echo {utterance} {rate} > " + f"{tmp_path}/log"
    )
    twin = anonymize_datadir(read_datadir(tmp_path / "set"), tmp_path / "set_x", config, jobs=1)
    assert (tmp_path / "log").read_text() == f"{name} 16000\n"
    assert np.array_equal(
        read_audio(twin.recordings[name]).samples, read_audio(tmp_path / "set" / "x.wav").samples
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "set", "set_x"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cat {input} > /dev/null; true {output}", "the command wrote no {output}"),
        ("true {input} {output}; echo sorry >&2; exit 4", "ended with status 4: sorry"),
        ("echo {input} > {output}", "the command's output not readable"),
    ],
)
def test_failing_commands_raise_an_error(source, tmp_path, command, message):
    with pytest.raises(DataError, match=message):
        anonymize_datadir(
            source, tmp_path / "set_x", AnonymizerConfig("command", command=command), jobs=1
        )


def test_unusable_plug_ins_are_refused_immediately():
    with pytest.raises(ConfigError, match="has no function 'f'"):
        make_anonymizer(AnonymizerConfig("own_anonymizer:f"))
    with pytest.raises(ConfigError, match=r"has no \{output\}"):
        make_anonymizer(AnonymizerConfig("command", command="sox {input}"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "nobody"}, "anonymizer.name is 'nobody': expected one of mcadams"),
        ({"level": "sentence"}, "anonymizer.level is 'sentence': expected utterance or speaker"),
        ({"seeding": "clock"}, "anonymizer.seeding is 'clock'"),
        ({"alpha": (0.9, 0.5)}, "anonymizer.alpha is 0.9 to 0.5: expected 0 < low <= high"),
        ({"speed": (1.0, float("inf"))}, "anonymizer.speed"),
        ({"warp": (0.1, 1.0)}, "anonymizer.warp is 0.1 to 1.0: expected 0 to 0.99"),
        (
            {"command": "x {input} {output}"},
            "anonymizer.command is required by the anonymizer 'command'",
        ),
        ({"name": "command"}, "anonymizer.command is required"),
    ],
)
def test_invalid_configurations_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        AnonymizerConfig(**values)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_copy_with_its_record(source):
    options = "--suffix", "_x", "--set", "alpha=[0.6, 0.7]", "--level", "speaker", "--jobs", 1
    result = passes("anonymize", "mcadams", source.path, *options)
    assert f"{source.path}_x: 3 utterances" in result.output
    record = json.loads((source.path.with_name("set_x") / "anonymization.json").read_text())
    assert record["anonymizer"]["alpha"] == [0.6, 0.7]
    assert record["anonymizer"]["level"] == "speaker"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "anonymizer.name is 'nobody'"),
        (["mcadams", "--suffix", ""], "--suffix: expected an underscore and a name"),
        (["mcadams", "--suffix", "_/../x"], "--suffix _/../x: expected an underscore and a name"),
        (
            ["mcadams", "--suffix", "_enrolls"],
            "--suffix _enrolls, is also an ending of names of original sets",
        ),
        (["own_anonymizer:breaks_on_a2"], "utterance 'a-2': ZeroDivisionError"),
        (["command"], "anonymizer.command is required"),
    ],
)
def test_the_command_refuses_misuse(source, arguments, message):
    assert message in refused("anonymize", arguments[0], source.path, *arguments[1:], "--jobs", 1)


# --- settings that work but are hardly intended -----------------------------------------------------------------------


def test_identical_output_for_all_recordings_is_reported(source, tmp_path, caplog):
    anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig("none"), jobs=1)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    fixed = source.recordings["a-1"]
    config = AnonymizerConfig("command", command=f"cp {{input}} {{output}}; cp {fixed} {{output}}")
    anonymize_datadir(source, tmp_path / "set_y", config, jobs=1)
    assert (
        "set_y: 3 different recordings became 1: does the anonymiser write the same speech"
        in caplog.text
    )


def test_ranges_that_destroy_speech_are_reported(source, tmp_path, caplog):
    anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(alpha=(0.5, 1.2)), jobs=1)
    assert "hardly any speech" not in caplog.text
    anonymize_datadir(source, tmp_path / "set_y", AnonymizerConfig(alpha=(5, 9)), jobs=1)
    assert (
        "anonymizer.alpha is 5 to 9: outside of 0.2 to 2 hardly any speech is left" in caplog.text
    )


def test_a_copy_never_replaces_its_source_recordings(source, tmp_path):
    twin = anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig("none"), jobs=1)
    before = outputs(twin)
    listing = DataDir(tmp_path / "set", twin.recordings, twin.speakers)
    with pytest.raises(
        DataError, match=r"set_x: 3 recordings of .*set would be replaced: a-1, a-2, b-1"
    ):
        anonymize_datadir(listing, tmp_path / "set_x", AnonymizerConfig(), jobs=1)
    assert outputs(twin) == before
