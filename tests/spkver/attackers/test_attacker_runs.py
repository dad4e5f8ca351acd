"""From data directories to scores: training, saving, loading, resuming, refusing."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import yaml
from command_lines import passes, refused
from scipy.signal import lfilter

from evaluation.formats.reading import read_scores, write_trials
from evaluation.metrics.detection import eer
from evaluation.trials import Trials, split_scores
from spkbase.errors import DataError
from spkver.attackers import (
    attacker_config,
    check_training,
    classic,
    load_attacker,
    score,
    train_attacker,
)
from spkver.attackers.classic import check_trials, save_attacker
from spkver.attackers.lists import match_trials, merge_versions
from spkver.datadir import with_versions
from spkver.datadir.reading import read_datadir
from spkver.mixture.ubm import UbmConfig

pytestmark = pytest.mark.whole

RATE = 8000
FEATURES = {"preset": "telephone", "vad": "none", "rasta": False, "deltas": 0}
SMALL = {
    "features": FEATURES,
    "ubm": {"components": 8, "iterations": [1, 1, 2]},
    "training": {"session_seconds": 0.4},
}
CHAINS = {
    "gmm-ubm": [],
    "gmm-svm": ["[centre, nap: 4, length, svm: {balanced: true, most: 30}, snorm: 5]"],
    "supervector-cosine": [
        "[centre, length, pca: 30, lda: {rank: 7, shrink: 0.2}, length, snorm: 5]"
    ],
}
SETTINGS = (
    *("--set", "features={preset: telephone, vad: none, rasta: false, deltas: 0}"),
    *("--set", "ubm={components: 8, iterations: [1, 1, 2]}"),
)


def voice(speaker, seed, seconds):
    """Noise through three resonances that belong to the speaker."""
    rng = np.random.default_rng([speaker, seed])
    places = np.random.default_rng(speaker).uniform([300, 1200, 2300], [900, 2000, 3300])
    samples = rng.normal(size=int(seconds * RATE))
    for place in places * rng.normal(1, 0.01, 3):
        samples = lfilter([1.0], [1, -1.9 * np.cos(2 * np.pi * place / RATE), 0.9025], samples)
    return 0.3 * samples / np.abs(samples).max()


def write_set(folder, speakers, utterances, *, trials=False, enrolls=False):
    folder.mkdir(parents=True)
    names = {f"s{one:02d}-{number}": f"s{one:02d}" for one in speakers for number in utterances}
    for name in names:
        samples = voice(int(name[1:3]), int(name[4:]), 0.8)
        soundfile.write(folder / f"{name}.wav", samples, RATE, subtype="PCM_16")
    (folder / "wav.scp").write_text("".join(f"{name} {folder / name}.wav\n" for name in names))
    (folder / "utt2spk").write_text(
        "".join(f"{name} {speaker}\n" for name, speaker in names.items())
    )
    (folder / "spk2gender").write_text(
        "".join(f"{one} {'fm'[int(one[1:]) % 2]}\n" for one in sorted(set(names.values())))
    )
    if trials:
        models = sorted(set(names.values()))
        lines = [
            f"{m} {s} {'target' if names[s] == m else 'nontarget'}\n" for m in models for s in names
        ]
        (folder / "trials").write_text("".join(lines))
    if enrolls:
        (folder / "enrolls").write_text(
            "".join(f"{name}\n" for name in names if not name.endswith("-0"))
        )
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    write_set(folder / "train", range(8), range(3))
    write_set(folder / "enrol", range(10, 14), range(3), enrolls=True)
    write_set(folder / "test", range(10, 14), range(3, 5), trials=True)
    return folder


def three():
    return [
        attacker_config(name, values={**SMALL, "chains": chains}) for name, chains in CHAINS.items()
    ]


def train_attackers(data, configs, folder, **how):
    """Attackers by name, which share what they make of recordings."""
    return {
        one.name: train_attacker(data, one, folder / one.name, work=folder / "work", **how)
        for one in configs
    }


@pytest.fixture(scope="module")
def trained(sets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return folder, train_attackers(read_datadir(sets / "train"), three(), folder, seed=1, jobs=2)


def files_of(name):
    return ["attacker.h5", "backend.h5"] if CHAINS[name] else ["attacker.h5"]


def features_of(attackers):
    return [attacker.config.features for attacker in attackers.values()]


def scores_of(attackers, sets, work, trials=None, jobs=None, enrol="enrol"):
    test = read_datadir(sets / "test")
    chosen = test.trials.trials() if trials is None else trials
    return score(attackers, read_datadir(sets / enrol), test, chosen, work=work, jobs=jobs)


def test_attackers_separate_speakers_and_count_all_versions_of_a_recording_once(
    sets, trained, tmp_path
):
    """Oracle: without the versions, which are the same audio; the counts of a mixture would be three times as large."""
    enrol, test = read_datadir(sets / "enrol"), read_datadir(sets / "test")
    found = scores_of(trained[1], sets, tmp_path / "once")
    assert list(found) == ["gmm-ubm", "gmm-svm", "supervector-cosine"]
    often = score(
        trained[1],
        with_versions(enrol, [enrol, enrol]),
        test,
        test.trials.trials(),
        work=tmp_path / "often",
    )
    for name, scores in found.items():
        assert list(scores.pairs()) == list(test.trials.pairs())
        assert eer(*split_scores(scores, test.trials)) < 0.2
        np.testing.assert_allclose(often[name].values, scores.values, rtol=1e-4, atol=1e-5)


def test_a_loaded_attacker_gives_the_same_bits_without_its_training_data(sets, trained, tmp_path):
    folder, attackers = trained
    before = scores_of(attackers, sets, tmp_path / "work")
    for name in attackers:
        moved = tmp_path / "elsewhere" / name
        shutil.copytree(folder / name, moved)
        loaded = load_attacker(moved)
        assert (loaded.config, loaded.seed, loaded.name) == (attackers[name].config, 1, name)
        after = scores_of({name: loaded}, sets, tmp_path / f"work-{name}")[name]
        np.testing.assert_array_equal(after.values, before[name].values)
        save_attacker(loaded, tmp_path / "again" / name)
        for file in files_of(name):  # saved again, they are equal
            assert (tmp_path / "again" / name / file).read_bytes() == (moved / file).read_bytes()


def test_the_number_of_workers_changes_nothing(sets, trained, tmp_path):
    folder, attackers = trained
    again = train_attackers(
        read_datadir(sets / "train"), three(), tmp_path / "trained", seed=1, jobs=3
    )
    expected = scores_of(attackers, sets, tmp_path / "a", jobs=2)
    found = scores_of(again, sets, tmp_path / "b", jobs=1)
    for name in attackers:
        for file in files_of(name):
            assert (tmp_path / "trained" / name / file).read_bytes() == (
                folder / name / file
            ).read_bytes()
        np.testing.assert_array_equal(found[name].values, expected[name].values)


def test_versions_of_a_training_set_form_one_set(sets):
    first = read_datadir(sets / "train")
    second = replace(first, recordings=dict.fromkeys(first.speakers, first.recordings["s00-0"]))
    merged = merge_versions([first, second])
    assert merged.by_speaker().keys() == first.by_speaker().keys()
    expected = {
        f"{number} {name}": of.recordings[name]
        for number, of in ((1, first), (2, second))
        for name in of.speakers
    }
    assert merged.recordings == expected
    assert merge_versions([first]) is merge_versions(first) is first


def test_a_finished_attacker_is_reused(sets, trained, monkeypatch):
    folder, made = trained[0], []
    original = classic.save_attacker
    monkeypatch.setattr(classic, "save_attacker", lambda *a: made.append(a[0].name) or original(*a))
    data = read_datadir(sets / "train")
    train_attackers(data, three(), folder, seed=1)
    assert made == []
    changed = [replace(three()[0], map=replace(three()[0].map, relevance=7.0)), *three()[1:]]
    train_attackers(data, changed, folder, seed=1)
    assert made == ["gmm-ubm"]
    train_attackers(data, three(), folder, seed=1)
    assert made == ["gmm-ubm"] * 2
    train_attackers(data, three()[1:2], folder, seed=1, force=True)
    assert made[2:] == ["gmm-svm"]


def test_trials_of_enrolled_recordings_are_reported(sets, trained, tmp_path, caplog):
    attackers = {"gmm-ubm": trained[1]["gmm-ubm"]}
    test = read_datadir(sets / "test")
    trials = Trials.from_ids(["s10", "s10", "s11", "s12-3"], ["s10-3", "s11-3", "s11-4", "s12-3"])
    check_trials(features_of(attackers), test, test, trials)
    assert "3 of 4 trials test a recording that their model was enrolled with" in caplog.text
    caplog.clear()
    check_trials(
        features_of(attackers), read_datadir(sets / "enrol"), test, trials.subset(np.arange(3))
    )
    assert not caplog.text


def test_models_are_enrolled_by_list_by_speaker_or_by_utterance(sets, tmp_path):
    shutil.copytree(sets / "enrol", tmp_path / "all")
    (tmp_path / "all" / "enrolls").unlink()
    trials = Trials.from_ids(["s10", "s11", "s12-0", "s12-1"], ["s10-3", "s10-3", "s12-3", "s12-3"])
    test = read_datadir(sets / "test")
    listed, _ = match_trials(read_datadir(sets / "enrol"), test, trials)
    every, _ = match_trials(read_datadir(tmp_path / "all"), test, trials)
    assert list(zip(listed.models, listed.segments, strict=True)) == [
        ("s10", "s10-1"), ("s10", "s10-2"), ("s11", "s11-1"), ("s11", "s11-2"), ("s12-0", "s12-0"), ("s12-1", "s12-1"),
    ]  # fmt: skip
    assert every.segments[every.models == "s10"].tolist() == ["s10-0", "s10-1", "s10-2"]


def test_problems_of_a_training_are_reported_together_before_it_starts(sets, tmp_path):
    data = read_datadir(sets / "train")
    soundfile.write(tmp_path / "fast.wav", voice(1, 1, 0.5), 16000)
    soundfile.write(tmp_path / "short.wav", voice(1, 1, 0.01), RATE)
    wrong = replace(
        data,
        recordings={
            **data.recordings,
            "s00-0": tmp_path / "fast.wav",
            "s01-0": tmp_path / "short.wav",
        },
    )
    configs = [three()[0], replace(three()[1], ubm=UbmConfig(components=8192))]
    with pytest.raises(DataError) as caught:
        check_training(wrong, [*map(classic.classic_attacker, configs)], seed=0)
    text = str(caught.value)
    assert "fast.wav: sampling rate is 16000 Hz, expected 8000 Hz" in text
    assert "short.wav: 80 samples are too short" in text
    assert text.startswith("3 problems:")
    with pytest.raises(DataError):
        train_attackers(wrong, configs[:1], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_models_and_segments_are_reported_together(sets, trained, tmp_path):
    trials = Trials.from_ids(["s10", "s99", "s10"], ["s10-3", "s10-4", "s77-1"])
    with pytest.raises(DataError) as caught:
        scores_of(trained[1], sets, tmp_path / "work", trials=trials)
    assert "1 of 2 models of the trials are neither enrolled speakers nor utterances: 's99'" in str(
        caught.value
    )
    assert "1 of 3 segments of the trials are not there: 's77-1'" in str(caught.value)
    empty = Trials.from_ids(["s10"], ["s10-3"]).subset(np.array([], int))
    with pytest.raises(DataError, match="the list holds no trials"):
        scores_of(trained[1], sets, tmp_path / "work", trials=empty)
    assert not (tmp_path / "work").exists()


def _edit(folder, change):
    description = yaml.safe_load((folder / "attacker.yaml").read_text())
    change(description)
    (folder / "attacker.yaml").write_text(yaml.safe_dump(description))


def _flip(file, where):
    raw = bytearray(file.read_bytes())
    raw[int(where * len(raw))] ^= 1
    file.write_bytes(raw)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "attacker.yaml").unlink(),
            "no attacker there: attacker.yaml is missing",
        ),
        (lambda folder: (folder / "backend.h5").unlink(), "is missing or was changed"),
        (
            lambda folder: (folder / "attacker.yaml").write_text("a: 1\n"),
            "not the description of an attacker in",
        ),
        (
            lambda folder: _edit(folder, lambda known: known.update(format=1)),
            "not the description of an attacker in",
        ),
        (
            lambda folder: _edit(
                folder, lambda known: known["config"]["map"].update(relevance=1.0)
            ),
            "attacker.yaml: was changed",
        ),
        (lambda folder: _flip(folder / "attacker.h5", 0.5), "is missing or was changed"),
    ],
)
def test_folders_without_an_attacker_are_refused(trained, tmp_path, damage, message):
    shutil.copytree(trained[0] / "gmm-svm", tmp_path / "a")
    damage(tmp_path / "a")
    with pytest.raises(DataError) as caught:
        load_attacker(tmp_path / "a")
    assert message in str(caught.value)
    assert str(tmp_path / "a") in str(caught.value)


def test_the_commands_train_and_score(sets, tmp_path):
    attacker, scores = tmp_path / "attacker", tmp_path / "scores" / "scores"
    result = passes(
        "train", sets / "train", "--attacker", "supervector-cosine", "--output", attacker, *SETTINGS
    )
    assert result.output.endswith("supervector-cosine, trained on 24 utterances of 8 speakers\n")
    shutil.rmtree(attacker / "work")
    passes(
        "score", attacker, "--enroll", sets / "enrol", "--test", sets / "test", "--output", scores
    )
    found = read_scores(scores)
    direct = scores_of({"x": load_attacker(attacker)}, sets, tmp_path / "work")["x"]
    assert scores.read_text().split("\n")[0].split()[:2] == ["s10", "s10-3"]
    assert list(found.pairs()) == list(direct.pairs())
    np.testing.assert_array_equal(found.values, direct.values)
    write_trials(tmp_path / "few.txt", Trials.from_ids(["s11", "s10"], ["s10-4", "s10-3"]))
    places = ("--output", tmp_path / "few.csv", "--trials", tmp_path / "few.txt")
    passes("score", attacker, "--enroll", sets / "enrol", "--test", sets / "test", *places)
    assert list(read_scores(tmp_path / "few.csv").pairs()) == [("s11", "s10-4"), ("s10", "s10-3")]


def test_training_on_scored_recordings_is_reported(sets, tmp_path):
    attacker, scores = tmp_path / "attacker", tmp_path / "scores"
    command = (
        "score",
        attacker,
        "--enroll",
        sets / "enrol",
        "--test",
        sets / "test",
        "--output",
        scores,
    )
    passes("train", sets / "enrol", "--attacker", "gmm-ubm", "--output", attacker, *SETTINGS)
    told = "Warning: 4 of 4 speakers of the trials were trained on (s10, s11, s12, ...)"
    assert told in passes(*command).output
    passes(
        "train", sets / "train", "--attacker", "gmm-ubm", "--output", attacker, "--force", *SETTINGS
    )
    assert "Warning" not in passes(*command).output


def test_a_finished_attacker_is_replaced_only_on_request(sets, trained, tmp_path):
    train, attacker, other = (
        ("train", sets / "train", "--attacker", "gmm-ubm", *SETTINGS),
        tmp_path / "a",
        tmp_path / "b",
    )
    for _ in range(2):  # the second time is the same
        passes(*train, "--output", attacker)
    other.mkdir()
    # without the run's records, its inputs are unknown
    for name in ("attacker.yaml", "attacker.h5"):
        shutil.copy(attacker / name, other / name)
    for folder, more in ((attacker, ("--seed", 3)), (other, ())):
        before = (folder / "attacker.yaml").read_bytes()
        told = refused(*train, "--output", folder, *more)
        assert "an attacker of other data, settings or library versions is there already" in told
        assert (folder / "attacker.yaml").read_bytes() == before
        passes(*train, "--output", folder, "--force", *more)


TRAIN = "train SETS/train --output OUT --attacker"
SCORE = "score UBM --enroll SETS/enrol --output OUT/s --test"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{TRAIN} plda", "unknown attacker 'plda'"),
        ("train SETS/none --attacker gmm-ubm --output OUT", "SETS/none"),
        (f"{TRAIN} gmm-ubm", "sampling rate is 8000 Hz, expected 16000"),
        ("score OUT --enroll SETS/enrol --test SETS/test --output OUT/s", "no attacker there"),
        (f"{SCORE} SETS/enrol", "there is no list of trials"),
        (
            "score UBM --enroll SETS/train --test SETS/test --output OUT/s",
            "4 of 4 models of the trials",
        ),
        (
            "score UBM --enroll SETS/enrol --test SETS/test --output OUT/s.xyz",
            "no format of lists is known",
        ),
    ],
)
def test_commands_refuse_misuse(sets, trained, tmp_path, command, message):
    places = {"SETS": sets, "OUT": tmp_path / "out", "UBM": trained[0] / "gmm-ubm"}

    def place(text):
        head, separator, tail = text.partition("/")
        return f"{places.get(head, head)}{separator}{tail}"

    told = refused(*map(place, command.split()))
    assert told.startswith("Error: ")
    assert place(message) in told
    assert not (tmp_path / "out").exists()
