"""The data directories of the two public corpora."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from benchmarks import public_speech
from spkbase.configuration import load_config
from spkver.datadir.reading import read_datadir
from spkver.voiceprivacy.sets import find_datasets
from spkver.voiceprivacy.settings import Config

pytestmark = pytest.mark.whole

RATE = 16000
CONFIG = (
    Path(__file__).resolve().parents[2]
    / "recipes"
    / "voiceprivacy"
    / "config"
    / "public_speech.yaml"
)
TRAIN = "Resemblyzer/audio_data/librispeech_train-clean-100"
TEST = "Resemblyzer/audio_data/librispeech_test-other"
DSP = "DSPSpeech-20/speech_data"
LONG, SHORT = 8 * RATE + 3000, 2000  # samples
TRAIN_SPEAKERS, TEST_SPEAKERS = (
    [speaker for speakers in table.values() for speaker in speakers.split()]
    for table in (public_speech.TRAIN_CLEAN_100, public_speech.TEST_OTHER)
)


@pytest.fixture(scope="module")
def fewer():
    """Fewer training speakers and one word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_speech, "TRAIN_CLEAN_100", {"f": "103 1069", "m": "1034"})
        patch.setattr(public_speech, "WORDS", ("19",))
        yield


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Clones of both corpora with fewer files; each recording starts with a sample of its own. Read only."""
    root = tmp_path_factory.mktemp("corpora")
    starts = count(1)

    def write(name, length=SHORT):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        start = next(starts)
        soundfile.write(
            root / name, (np.arange(start, start + length) % 30000).astype(np.int16), RATE
        )

    write(f"{TRAIN}/103-1240-0000.flac", LONG)
    write(f"{TRAIN}/1069-133699-0000.flac", 8 * RATE)
    write(f"{TRAIN}/1034-121119-0000.flac")
    write(f"{TRAIN}/14-208-0000.flac")  # a reader who is not part of the subset
    for speaker in TEST_SPEAKERS:
        for number in range(10):
            write(
                f"{TEST}/{speaker}/{speaker}-77-{number:04d}.flac",
                LONG if number in (0, 3) else SHORT,
            )
    for number in range(1, 35):
        for take in ("01", "02", "03", "04", "07", "10", "13", "16", "19"):
            write(f"{DSP}/1630{number:03d}/1630{number:03d}-19-{take}.wav")
    return root


@pytest.fixture(scope="module")
def layout(fewer, corpora, tmp_path_factory):
    """The layout of both, and what was said about it; read only."""
    output = tmp_path_factory.mktemp("layout") / "new" / "with space"
    result = run(corpora, output)
    assert result.exit_code == 0, result.output
    return output, result.output


@pytest.fixture
def own(corpora, tmp_path):
    """A copy for a test to damage."""
    return Path(shutil.copytree(corpora, tmp_path / "corpora"))


def run(corpora, output):
    arguments = [
        "--librispeech",
        str(corpora / "Resemblyzer"),
        "--dspspeech",
        str(corpora / "DSPSpeech-20"),
    ]
    return CliRunner().invoke(public_speech.main, [str(output), *arguments])


def samples_of(path):
    return soundfile.read(path, dtype="int16")[0]


def test_the_recipe_accepts_both_sets(layout):
    output, said = layout
    assert (len(TRAIN_SPEAKERS), len(TEST_SPEAKERS), len({*TRAIN_SPEAKERS, *TEST_SPEAKERS})) == (
        251,
        10,
        261,
    )
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    config = load_config(Config, file=CONFIG)
    found = {one.name: one for one in find_datasets(output, config)}
    assert found.keys() == {"libri10_test", "dsp_test"}
    assert found["libri10_test"].training == "libri251"
    assert found["dsp_test"].training == "dsp_train"
    sizes = {
        "libri251": (3, 3),
        "libri10_test_enrolls": (30, 10),
        "libri10_test_trials_f": (35, 5),
        "libri10_test_trials_m": (35, 5),
        "dsp_train": (10 * 7 + 3, 11),
        "dsp_test_enrolls": (3 * 23, 23),
        "dsp_test_trials_f": (4 * 10, 10),
        "dsp_test_trials_m": (4 * 13, 13),
    }
    assert {path.name for path in output.iterdir()} == sizes.keys()
    for name, (n_utterances, n_speakers) in sizes.items():
        datadir = read_datadir(output / name)
        assert (len(datadir), len(set(datadir.speakers.values()))) == (n_utterances, n_speakers)
        assert datadir.sexes.keys() == set(datadir.speakers.values())
        assert f"{name}: {n_utterances} utterances of {n_speakers} speakers" in said
        assert len(list((output / name / "wav").iterdir())) == n_utterances


def test_enrolment_and_trial_speakers_are_chosen_as_documented(layout):
    output, _ = layout
    for dataset, train in (("libri10_test", "libri251"), ("dsp_test", "dsp_train")):
        enrolls, training = (read_datadir(output / name) for name in (f"{dataset}_enrolls", train))
        assert set(enrolls.enrolls) == set(enrolls.speakers)
        assert not set(training.speakers.values()) & set(enrolls.speakers.values())
        tried = set()
        for sex in "fm":
            trials = read_datadir(output / f"{dataset}_trials_{sex}")
            assert set(trials.sexes.values()) == {sex}
            assert not set(trials.speakers) & set(enrolls.speakers)
            key = trials.trials
            assert set(key.model_ids) == set(trials.sexes)
            assert set(key.segment_ids) == set(trials.speakers)
            assert len(key.is_target) == len(key.model_ids) * len(key.segment_ids)
            for model, segment, target in zip(key.models, key.segments, key.is_target, strict=True):
                assert target == (trials.speakers[key.segment_ids[segment]] == key.model_ids[model])
            assert all(enrolls.sexes[speaker] == sex for speaker in trials.sexes)
            tried |= set(trials.sexes)
        assert tried == set(enrolls.sexes)
        per_speaker = Counter(enrolls.speakers.values())
        assert set(per_speaker.values()) == {3}


def test_audio_equals_the_recordings_of_the_corpora(corpora, layout):
    """The samples of the right file, only training utterances of LibriSpeech are cut; no student's id goes further."""
    output, _ = layout
    for place, source, length in (
        ("libri251/wav/103-1240-0000.flac", f"{TRAIN}/103-1240-0000.flac", 8 * RATE),
        ("libri251/wav/1069-133699-0000.flac", f"{TRAIN}/1069-133699-0000.flac", 8 * RATE),
        ("libri251/wav/1034-121119-0000.flac", f"{TRAIN}/1034-121119-0000.flac", SHORT),
        ("libri10_test_enrolls/wav/1998-77-0000.flac", f"{TEST}/1998/1998-77-0000.flac", LONG),
        ("libri10_test_enrolls/wav/1998-77-0002.flac", f"{TEST}/1998/1998-77-0002.flac", SHORT),
        ("libri10_test_trials_f/wav/1998-77-0003.flac", f"{TEST}/1998/1998-77-0003.flac", LONG),
        ("libri10_test_trials_m/wav/1688-77-0009.flac", f"{TEST}/1688/1688-77-0009.flac", SHORT),
        ("dsp_train/wav/dsp06-rep03-w19.flac", f"{DSP}/1630006/1630006-19-03.wav", SHORT),
        ("dsp_train/wav/dsp01-rep19-w19.flac", f"{DSP}/1630001/1630001-19-19.wav", SHORT),
        ("dsp_test_enrolls/wav/dsp34-rep07-w19.flac", f"{DSP}/1630034/1630034-19-07.wav", SHORT),
        ("dsp_test_trials_m/wav/dsp03-rep10-w19.flac", f"{DSP}/1630003/1630003-19-10.wav", SHORT),
        ("dsp_test_trials_f/wav/dsp05-rep10-w19.flac", f"{DSP}/1630005/1630005-19-10.wav", SHORT),
    ):
        expected = samples_of(corpora / source)[:length]
        assert len(expected) == length
        np.testing.assert_array_equal(samples_of(output / place), expected, err_msg=place)
    assert not [
        path
        for path in output.rglob("*")
        if path.suffix != ".flac" and path.is_file() and b"1630" in path.read_bytes()
    ]


@pytest.mark.usefixtures("fewer")
@pytest.mark.parametrize(
    ("option", "folder", "start"),
    [
        ("--librispeech", "Resemblyzer", ("libri", "train")),
        ("--dspspeech", "DSPSpeech-20", ("dsp",)),
    ],
)
def test_a_single_corpus_makes_one_set(corpora, tmp_path, option, folder, start):
    result = CliRunner().invoke(
        public_speech.main, [str(tmp_path / "out"), option, str(corpora / folder)]
    )
    assert result.exit_code == 0, result.output
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert len(names) == 4
    assert all(name.startswith(start) for name in names)


LAST_WAV = f"{DSP}/1630034/1630034-19-19.wav"
FIRST_FLAC = f"{TRAIN}/103-1240-0000.flac"
MISSING = (f"{DSP}/1630004/1630004-19-13.wav", f"{DSP}/1630006/1630006-19-03.wav")
MISSING = (*MISSING, FIRST_FLAC, f"{TEST}/367/367-77-0004.flac")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
BAD = {
    "missing files are all named": (
        lambda root: [(root / name).unlink() for name in MISSING],
        [
            *("4 problems", "1630004-19-13.wav", "1630006-19-03.wav", "1 of the recordings 103-"),
            "10 of the recordings 367-*.flac, found 9",
        ],
    ),
    "no Resemblyzer": (
        lambda root: shutil.rmtree(root / "Resemblyzer"),
        ["2 problems", "test-other", "train-clean-100"],
    ),
    "a student lacks": (
        lambda root: shutil.rmtree(root / DSP / "1630001"),
        ["expected 34 folders", "found 33"],
    ),
    "pointers in place of audio": (
        lambda root: [(root / name).write_bytes(POINTER) for name in (FIRST_FLAC, LAST_WAV)],
        ["2 problems", "103-1240-0000.flac", "1630034-19-19.wav"],
    ),
    "another rate": (
        lambda root: soundfile.write(root / LAST_WAV, np.ones(900, np.int16), 8000),
        ["1630034-19-19.wav", "8000"],
    ),
}


@pytest.mark.usefixtures("fewer")
@pytest.mark.parametrize("case", BAD)
def test_bad_corpora_raise_one_error_and_leave_no_files(own, tmp_path, case):
    damage, words = BAD[case]
    damage(own)
    result = run(own, tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert result.output.count("Error:") == 1
    for word in words:
        assert word in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["corpora"]


@pytest.mark.slow
def test_the_layout_equals_the_one_behind_the_published_figures(shared, tmp_path):
    """The same lists and samples as the reference layout of the same recordings."""
    noise = np.random.default_rng(0).integers(-9999, 9999, 4000, dtype=np.int16)
    n_longer = 0
    for corpus, root in (("libri261", "Resemblyzer"), ("dsp34", "DSPSpeech-20")):
        with (shared / "corpora" / corpus / "metadata.tsv").open(
            encoding="utf-8", newline=""
        ) as handle:
            rows = list(csv.DictReader(handle, delimiter="\t"))
        for row in rows:
            target = tmp_path / root / row["source_path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            samples = samples_of(shared / "corpora" / corpus / row["path"])
            # cut at this length: the corpus has a longer recording
            if row["text"] == "train-clean-100" and len(samples) == 8 * RATE:
                samples, n_longer = np.concatenate([samples, noise]), n_longer + 1
            soundfile.write(target, samples, RATE)
    assert n_longer == 213
    result = run(tmp_path, tmp_path / "ours")
    assert result.exit_code == 0, result.output
    tool = [
        sys.executable,
        str(shared / "tools/make_layouts.py"),
        "voiceprivacy",
        str(tmp_path / "theirs"),
    ]
    subprocess.run(tool, check=True, capture_output=True)
    # their seeds and names are those of the challenge
    names = {"libri_test": "libri10_test", "train-clean-360": "libri251"}
    for folder in list((tmp_path / "theirs").iterdir()):
        for name, instead in names.items():
            if folder.name.startswith(name):
                folder.rename(folder.with_name(folder.name.replace(name, instead)))
    ours, theirs = (
        {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "ours", tmp_path / "theirs")
    )
    assert ours.keys() == theirs.keys()
    assert len(ours) == 2729
    for name, path in ours.items():
        if path.suffix == ".flac":
            np.testing.assert_array_equal(samples_of(path), samples_of(theirs[name]), err_msg=name)
            assert soundfile.info(path).samplerate == RATE
        else:
            expected = (
                theirs[name].read_text().replace(str(tmp_path / "theirs"), str(tmp_path / "ours"))
            )
            for theirs_name, ours_name in names.items():
                expected = expected.replace(theirs_name, ours_name)
            assert path.read_text() == expected, name
