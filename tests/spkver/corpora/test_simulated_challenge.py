"""Simulated sets in the size and shape of a challenge: counts times the scale, whole data directories, same bytes."""

import numpy as np
import pytest
import soundfile
from command_lines import passes, refused

from spkbase.errors import ConfigError
from spkver.corpora import SHAPES, simulate_challenge
from spkver.datadir import enrolment, read_datadir

pytestmark = pytest.mark.whole

pytest.importorskip("espeakng_loader")

SCALE = 1 / 1000
DIRECTORIES = dict.fromkeys(part.directory for part in SHAPES["vpc2024"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return simulate_challenge(
        tmp_path_factory.mktemp("challenge") / "sets", "vpc2024", SCALE, jobs=2
    )


def test_the_sizes_equal_those_of_the_challenge():
    """Counts of the evaluation plan: VoicePrivacy 2024, section 3."""
    counts = {}
    for part in SHAPES["vpc2024"]:
        speakers, recordings = counts.get(part.directory, (0, 0))
        counts[part.directory] = speakers + part.speakers, recordings + part.recordings
    assert counts["train-clean-360"] == (921, 104_014)
    assert (counts["libri_dev_enrolls"], counts["libri_test_enrolls"]) == ((29, 343), (29, 438))
    assert counts["libri_test_trials_f"][1] + counts["libri_test_trials_m"][1] == 1496


def test_directories_have_their_share_of_recordings_and_a_full_cross_of_trials(made):
    for name in DIRECTORIES:
        directory = read_datadir(made.folder / name)
        of_set = [part for part in SHAPES["vpc2024"] if part.directory == name]
        fewest = sum(
            2 * (12 if name.startswith("train") else 3 if "enrolls" in name else 4) for _ in of_set
        )
        assert len(directory) == pytest.approx(
            max(fewest, sum(part.recordings for part in of_set) * SCALE), abs=1
        )
        assert set(directory.sexes) == set(directory.speakers.values())
        if "trials" in name:
            enrolled = read_datadir(made.folder / f"{name.partition('_trials')[0]}_enrolls")
            models = {
                model for model in enrolment(enrolled).models if enrolled.sexes[model] == name[-1]
            }
            assert set(directory.trials.pairs()) == {
                (model, one) for model in models for one in directory.recordings
            }
            assert 0 < directory.trials.is_target.sum() < len(directory.trials)


def test_durations_resemble_those_of_librispeech(made):
    for name, mean, longest in (("train-clean-360", 12.6, 21), ("libri_dev_trials_f", 7.2, 40)):
        seconds = [
            soundfile.info(path).duration
            for path in read_datadir(made.folder / name).recordings.values()
        ]
        assert np.mean(seconds) == pytest.approx(
            mean, rel=0.05 if name.startswith("train") else 0.8
        )
        assert 1 < min(seconds) <= max(seconds) < longest


def test_files_differ_and_do_not_depend_on_workers(tmp_path):
    alone = simulate_challenge(tmp_path / "alone", "vpc2024", SCALE / 4, jobs=1).folder
    shared = simulate_challenge(tmp_path / "shared", "vpc2024", SCALE / 4, jobs=2).folder
    files = sorted(path.relative_to(alone) for path in alone.rglob("*.wav"))
    contents = [(alone / file).read_bytes() for file in files]
    assert contents == [(shared / file).read_bytes() for file in files]
    assert len(set(contents)) == len(files)


def test_the_command_makes_sets_of_the_given_scale(tmp_path):
    done = passes(
        "simulate", "voiceprivacy", tmp_path / "sets", "--like", "vpc2024", "--scale", "1/2000"
    )
    assert "24 training speakers" in done.stdout
    assert "1/60" in refused(
        "simulate", "voiceprivacy", tmp_path / "b", "--like", "vpc2024", "--scale", "x"
    )
    options = ("--like", "vpc2024", "--set", "strangers=1")
    assert "--like" in refused("simulate", "voiceprivacy", tmp_path / "b", *options)
    with pytest.raises(ConfigError, match="vpc2024"):
        simulate_challenge(tmp_path / "b", "vpc2030", 0.1)
