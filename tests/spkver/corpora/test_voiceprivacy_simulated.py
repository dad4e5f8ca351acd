"""The SIMULATED set in the challenge's layout: whole data directories, a full cross of trials, the same bytes again."""

import json

import pytest
import soundfile
from command_lines import passes, refused

from spkbase.errors import ConfigError
from spkver.corpora.simulated import Sizes, is_simulated, simulate_voiceprivacy, utterance_text
from spkver.datadir import enrolment, read_datadir

pytest.importorskip("espeakng_loader")

SMALL = Sizes(
    enrolled_f=3, enrolled_m=2, strangers=1, training=2, enrolment_utterances=2, trial_utterances=2,
    training_utterances=1, sentences=1, seed=5,
)  # fmt: skip
DIRECTORIES = (
    "simulated_test_enrolls",
    "simulated_test_trials_f",
    "simulated_test_trials_m",
    "simulated_train",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return simulate_voiceprivacy(tmp_path_factory.mktemp("simulated") / "set", SMALL, jobs=1)


@pytest.fixture(scope="module")
def directories(made):
    return {name: read_datadir(made.folder / name) for name in DIRECTORIES}


def test_all_directories_are_complete(made, directories):
    assert {path.name for path in made.folder.iterdir()} == {
        *DIRECTORIES,
        "simulation.json",
        "README.txt",
    }
    assert is_simulated(made.folder)
    assert "SIMULATED" in json.loads((made.folder / "simulation.json").read_text())["about"]
    counts = {
        name: (len(set(one.speakers.values())), len(one)) for name, one in directories.items()
    }
    assert counts == dict(zip(DIRECTORIES, [(5, 10), (4, 8), (3, 6), (4, 4)], strict=True))
    for one in directories.values():
        assert set(one.sexes) == set(one.speakers.values())
        assert all(speaker[0] == sex for speaker, sex in one.sexes.items())
        assert all(soundfile.info(path).samplerate == 16000 for path in one.recordings.values())


def test_trials_are_a_full_cross_within_each_sex(directories):
    enrolled = enrolment(directories["simulated_test_enrolls"])
    for sex, n_models in (("f", 3), ("m", 2)):
        trials = directories[f"simulated_test_trials_{sex}"]
        wanted = {
            (model, one)
            for model in set(enrolled.models)
            if model[0] == sex
            for one in trials.recordings
        }
        assert set(trials.trials.pairs()) == wanted
        assert int(trials.trials.is_target.sum()) == 2 * n_models


def test_counts_equal_those_of_the_lists(made):
    speakers = {"n_enrolled": 5, "n_trial_speakers": 7, "n_training": 4}
    trials = {"n_targets": 10, "n_nontargets": 3 * 8 + 2 * 6 - 10}
    assert made.counts == {"n_files": 28, "seconds": made.counts["seconds"], **speakers, **trials}
    assert made.created
    length = sum(soundfile.info(path).duration for path in made.folder.rglob("*.wav"))
    assert made.counts["seconds"] == pytest.approx(length, abs=0.001)


def test_the_text_equals_the_spoken_words(made):
    lines = (made.folder / "simulated_test_trials_f/text").read_text().splitlines()
    texts = dict(line.split(" ", 1) for line in lines)
    assert texts["f002-03"] == utterance_text(2, 3, 1).upper().rstrip(".").replace(",", "")
    assert len(set(texts.values())) > 1


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("enrolled_f", 1, "2 to 497"), ("strangers", -1, "0 to 499"), ("training", 500, "2 to 499"),
     ("sentences", 31, "1 to 30"), ("seed", -1, "0 to"), ("trial_utterances", 0, "1 to 499")],
)  # fmt: skip
def test_sizes_out_of_range_are_refused(name, value, text):
    with pytest.raises(ConfigError, match=f"^{name} is {value}: expected {text}"):
        Sizes(**{name: value})


def test_the_command_accepts_each_size(made):
    options = [part for name, value in vars(SMALL).items() for part in ("--set", f"{name}={value}")]
    command = "simulate", "voiceprivacy", made.folder
    assert "exists already: SIMULATED speech of 5 enrolled" in passes(*command, *options).stdout
    assert "training is 1: expected 2 to 499" in refused(*command, "--set", "training=1")
