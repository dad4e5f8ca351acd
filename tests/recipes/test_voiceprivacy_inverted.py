"""Attackers that undo the anonymisation, or align its vectors: what they know, what they leave, what they refuse."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from voiceprivacy_runs import evaluated, rows, stamps

from evaluation.embeddings import Alignment, Embeddings
from evaluation.trials import Trials
from spkbase.hdf5 import read_arrays
from spkver.anonymization import RECORD, AnonymizerConfig, anonymize_datadir
from spkver.anonymization.anonymizers import named_stream
from spkver.attackers import Attack, Place, TrainingSet, Undoing, known_anonymizer
from spkver.attackers.alignment import AlignedAttacker, choose_map
from spkver.attackers.registry import on_top
from spkver.attackers.undoing import why_not
from spkver.attackers.vector_attacker import BackendChoice, Context, VectorAttacker
from spkver.datadir import DataDir, read_datadir

ARRAYS = ("source_mean", "target_mean", "matrix")
ONE = "[gmm-ubm,gmm-ubm-inverted]"


@pytest.fixture(scope="module")
def background(layout: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingSet:
    original, folder = read_datadir(layout / "tiny_train"), tmp_path_factory.mktemp("inverted")
    draws = [
        anonymize_datadir(original, folder / f"train{seed}", AnonymizerConfig(), seed=seed, jobs=1) for seed in (1, 2)
    ]
    return TrainingSet(original, tuple(draws))


def attack(background: TrainingSet, data: Path, **changes: object) -> Attack:
    enrolled, tested = (read_datadir(data / f"tiny_test_{name}_anon") for name in ("enrolls", "trials_f"))
    trials = Trials.from_ids(["f001"], ["f001-3"])
    found = Attack(background, (enrolled,), tested, trials, "lazy-informed")
    return replace(found, **changes)


def drawn(directory: DataDir, seed: int) -> dict[str, float]:
    """The numbers that the record of a directory tells."""
    files = json.loads((directory.path / RECORD).read_text())["files"]
    return {name: float(named_stream(entry["stream"], seed).uniform(0.5, 0.9)) for name, entry in files.items()}


def wavs(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.wav"))}


def test_the_anonymiser_is_known_by_its_record_or_by_what_it_did(background, tmp_path):
    known = known_anonymizer(background)
    assert (known.inverse.anonymizer, known.bounds, known.by) == ("mcadams", (0.5, 0.9), "record")
    for name in ("mcadams", "vtln", "resampling"):
        config = AnonymizerConfig(name)
        made = anonymize_datadir(background.original, tmp_path / name, config, seed=4, jobs=1)
        (made.path / RECORD).unlink()
        known = known_anonymizer(TrainingSet(background.original, (made,)))
        assert (known.inverse.anonymizer, known.by) == (name, "pairs")
    none = anonymize_datadir(background.original, tmp_path / "none", AnonymizerConfig("none"), jobs=1)
    assert known_anonymizer(TrainingSet(background.original, (none,))) is None


def test_a_shift_of_the_pitch_that_keeps_durations_is_no_resampling(background, tmp_path):
    """Mean spectra alone say resampling by 2 to 5 semitones: pitch and formants move as they do there."""
    folder = Path(shutil.copytree(background.anonymised[0].path, tmp_path / "shifted"))
    (folder / RECORD).unlink()
    for name, path in background.original.recordings.items():
        samples, rate = soundfile.read(path)
        soundfile.write(folder / "wav" / f"{name}.wav", shifted(samples, 2 ** (3 / 12)), rate)
    made = replace(background.anonymised[0], path=folder, recordings={
        name: folder / "wav" / f"{name}.wav" for name in background.original.recordings
    })  # fmt: skip
    assert known_anonymizer(TrainingSet(background.original, (made,))) is None


def shifted(samples, factor, length=512, hop=128):
    """A phase vocoder: so many times as long, then so many times as fast; as long as before."""
    window = np.hanning(length + 1)[:-1]
    centred = 2 * np.pi * hop * np.arange(length // 2 + 1) / length
    starts = np.arange(0, len(samples) - length - hop, hop / factor).astype(int)
    made = np.zeros(len(starts) * hop + length)
    phase = np.zeros(len(centred))
    for number, start in enumerate(starts):
        now, later = (np.fft.rfft(window * samples[place : place + length]) for place in (start, start + hop))
        made[number * hop : number * hop + length] += window * np.fft.irfft(np.abs(now) * np.exp(1j * phase))
        turned = np.angle(later) - np.angle(now) - centred
        phase = phase + centred + (turned + np.pi) % (2 * np.pi) - np.pi
    made = np.interp(np.arange(0, len(made) - 1, factor), np.arange(len(made)), made)
    made = np.pad(made, (0, max(0, len(samples) - len(made))))[: len(samples)]
    return 0.5 * made / np.abs(made).max()


def test_numbers_are_guessed_and_shared_by_a_speaker_where_it_has_one(background, tmp_path):
    undoing = Undoing(background, Place(tmp_path, tmp_path / "work", jobs=1))
    truth, found = drawn(background.anonymised[0], 1), undoing.numbers(background.anonymised[0])
    errors = [found[name] - truth[name] for name in truth]
    facts = json.loads((tmp_path / "attackers" / "train1" / "undoing" / "undoing.json").read_text())
    assert np.sqrt(np.mean(np.square(errors))) < 0.5 * facts["spread"]
    assert facts["rmse"] < 0.5 * facts["spread"]
    assert (facts["anonymizer"], facts["known_by"], facts["recordings"], facts["speakers"]) == (
        "mcadams", "record", 18, 6,
    )  # fmt: skip
    by_speaker = anonymize_datadir(
        background.original, tmp_path / "speaker", AnonymizerConfig(level="speaker"), seed=5, jobs=1
    )
    found = undoing.numbers(by_speaker)
    for utterances in by_speaker.by_speaker().values():
        assert len({found[name] for name in utterances}) == 1
    truth = drawn(by_speaker, 5)
    assert np.sqrt(np.mean([(found[name] - truth[name]) ** 2 for name in truth])) < 0.5 * facts["spread"]


def test_inverted_speech_does_not_depend_on_workers_and_is_taken_up(background, tmp_path):
    for jobs in (1, 2):
        output = tmp_path / str(jobs)
        Undoing(background, Place(output, output / "work", jobs=jobs)).inverted(background.anonymised[0])
    one, two = wavs(tmp_path / "1"), wavs(tmp_path / "2")
    assert len(one) == 18
    assert one == two
    kept = sorted((tmp_path / "1").rglob("*.wav"))
    kept[3].unlink()
    stamps = {path: path.stat().st_mtime_ns for path in kept if path.exists()}
    Undoing(background, Place(tmp_path / "1", tmp_path / "work", jobs=1)).inverted(background.anonymised[0])
    assert wavs(tmp_path / "1") == one
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_what_is_tested_is_estimated_alone_where_speakers_have_one_number(background, tmp_path):
    """In trials of the background the speakers are known, and an attacker must not use them."""
    made = [
        anonymize_datadir(
            background.original, tmp_path / f"by{seed}", AnonymizerConfig(level="speaker"), seed=seed, jobs=1
        )
        for seed in (5, 6)
    ]
    undoing = Undoing(TrainingSet(background.original, tuple(made)), Place(tmp_path, tmp_path / "work", jobs=1))
    whole = undoing.numbers(made[0])
    some = sorted(made[0].recordings)[:4]
    tested = replace(
        made[0],
        recordings={name: made[0].recordings[name] for name in some},
        speakers={name: made[0].speakers[name] for name in some},
    )
    alone = undoing.numbers(tested, is_tested=True)
    assert len({whole[name] for name in some}) < len({alone[name] for name in some}) == 4
    assert undoing.inverted(tested, is_tested=True).recordings[some[0]] != undoing.inverted(made[0]).recordings[some[0]]


def test_sides_of_folds_keep_apart_from_the_background(background, tmp_path):
    """Folds bear the name of the background: what is of it is taken from its twins, and pieces have folders of their
    own."""
    version = background.anonymised[0]
    undoing = Undoing(background, Place(tmp_path, tmp_path / "work", jobs=1))
    whole = undoing.inverted(version)
    before = wavs(tmp_path)
    names = sorted(version.recordings)
    pieces = [
        replace(
            version,
            recordings={f"{name}-piece{number}": background.original.recordings[name] for name in some},
            speakers={f"{name}-piece{number}": version.speakers[name] for name in some},
        )
        for number, some in enumerate((names[:3], names[3:6]))
    ]
    sides = [undoing.inverted(piece) for piece in pieces]
    assert len({whole.path, *(side.path for side in sides)}) == 3
    assert {name: content for name, content in wavs(tmp_path).items() if name in before} == before
    assert all(path.is_file() for side in (whole, *sides) for path in side.recordings.values())
    part = replace(
        version,
        recordings={name: version.recordings[name] for name in names[:4]},
        speakers={name: version.speakers[name] for name in names[:4]},
    )
    assert undoing.inverted(part).recordings == {name: whole.recordings[name] for name in names[:4]}


def test_what_cannot_be_inverted_is_said(background, layout):
    assert why_not(attack(background, layout)) == ""
    assert why_not(attack(TrainingSet(background.original), layout)) == "there is no anonymised background"
    few = replace(background.original, recordings=dict(list(background.original.recordings.items())[:5]))
    assert "is too small to learn from" in why_not(attack(TrainingSet(few, background.anonymised), layout))
    one = replace(background.original, speakers=dict.fromkeys(background.original.speakers, "anna"))
    assert "18 recordings of 1 speakers is too small" in why_not(
        attack(TrainingSet(one, background.anonymised), layout)
    )
    same = attack(background, layout, enrolment=(background.original,))
    assert why_not(same) == "6 speakers of the background are among those that are enrolled"
    unknown = TrainingSet(background.original, (read_datadir(layout / "tiny_train_anon"),))
    assert "what made tiny_train_anon cannot be inverted (mcadams, vtln, resampling can)" in why_not(
        attack(unknown, layout)
    )


def test_the_evaluation_tells_inverting_attackers_from_others(originals, tmp_path):
    output = tmp_path / "out"
    options = {"attackers": ONE, "anonymizer__training_draws": 2, "evaluation__resamples": 0}
    results = evaluated(originals, output, "--suffix", "_mcadams", **options)
    before = stamps(output.glob("exp/*/*/gmm-ubm-inverted/scores"))
    assert len(before) == 6  # lazy- and semi-informed; women, men, both
    assert all(path.parts[-3].startswith("tiny_test_enrolls_mcadams-") for path in before)
    conditions, (told,) = results["conditions"], results["undoing"]
    assert (told["background"], told["anonymizer"]) == ("tiny_train_mcadams", "mcadams")
    assert 0 < told["rmse"] < told["spread"]
    assert {row["attacker"]: row["level"] for row in conditions} == {
        "gmm-ubm": "trial-by-trial",
        "gmm-ubm-inverted": "inverting",
    }
    assert {row["scenario"] for row in rows(conditions, attacker="gmm-ubm-inverted")} == {
        "lazy-informed", "semi-informed"
    }  # fmt: skip
    # what learns from original speech is the same attacker, trained once
    attackers = output / "attackers"
    trained = [path.parent.relative_to(attackers) for path in attackers.glob("*/*/attacker.yaml")]
    assert {str(path) for path in trained} == {
        "tiny_train/gmm-ubm", "tiny_train_mcadams-inverted/gmm-ubm", "tiny_train_mcadams/gmm-ubm",
    }  # fmt: skip
    evaluated(originals, output, "--suffix", "_mcadams", **options)
    assert stamps(before) == before


def test_a_map_is_chosen_by_how_it_links_other_speakers():
    rng = np.random.default_rng(0)
    speakers = np.repeat([f"s{number:02d}" for number in range(40)], 5).astype(object)
    voices = np.repeat(rng.standard_normal((40, 6)), 5, axis=0)
    original, version = (voices + 0.1 * rng.standard_normal(voices.shape) for _ in "ab")
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert choose_map(version + 3, original, speakers)[0] == "centred"
    chosen, scores = choose_map(version @ turn, original, speakers)
    assert chosen == "orthogonal"
    assert scores["centred"] < 0.6 < 0.95 < scores["orthogonal"]
    assert choose_map(version @ rng.standard_normal((6, 6)), original, speakers)[0].startswith("ridge")


class Turned:
    """Vectors of speakers in six dimensions, turned where a directory is anonymised.

    Background speakers are in the first three dimensions alone.
    """

    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((6, 6)))[0]

    def vectors(self, directory, utterances=None):
        names = sorted(utterances or directory.speakers)
        owners = [name.split("-")[0] for name in names]  # whose voice it is, whatever is said of it
        rows = []
        for name, owner in zip(names, owners, strict=True):
            voice = np.random.default_rng(list(map(ord, owner))).standard_normal(6)
            voice += 0.1 * np.random.default_rng(list(map(ord, name + directory.name))).standard_normal(6)
            rows.append(voice * (np.arange(6) < 3) if owner.startswith("b") else voice)
        vectors = np.array(rows) @ self.turn if directory.name.endswith("anon") else np.array(rows)
        said = dict(directory.speakers if utterances is None else utterances)
        return Embeddings(np.array(names, object), np.array([said[name] for name in names], object), vectors)


def test_an_aligned_attacker_learns_from_the_background_alone(tmp_path):
    """It does not see the dimensions that background speakers lack, and nothing tells it who speaks in the tests."""

    def directory(name: str, prefix: str, takes: range) -> DataDir:
        speakers = {f"{prefix}{number:02d}-{take}": f"{prefix}{number:02d}" for number in range(12) for take in takes}
        (tmp_path / name).mkdir(exist_ok=True)
        recordings = {utterance: tmp_path / name / utterance for utterance in speakers}
        for path in recordings.values():
            path.touch()
        return DataDir(tmp_path / name, recordings, speakers)

    names = {"background": ("b", range(3)), "enrols": ("e", range(3)), "tested": ("e", range(3, 6))}
    known = {f"{name}{end}": directory(f"{name}{end}", *what) for name, what in names.items() for end in ("", "_anon")}
    enrols, tested = known["enrols_anon"], known["tested_anon"]
    pairs = [(model, utterance) for model in sorted(set(enrols.speakers.values())) for utterance in tested.speakers]
    trials = Trials.from_ids(*zip(*pairs, strict=True))
    enrolment = enrols, directory("enrols_2_anon", "e", range(3))
    background = TrainingSet(known["background"], (known["background_anon"],))
    listed = Attack(background, enrolment, tested, trials, "lazy-informed")
    own = dict.fromkeys(tested.speakers, "nobody") | {next(iter(tested.speakers)): "b00"}
    unlabelled = replace(listed, tested=replace(tested, speakers=own))
    place = Place(tmp_path, tmp_path / "work", jobs=1)
    base = VectorAttacker(BackendChoice("v", ("centre",)), 0, lambda place, training: Turned(), place=place)
    attacker = AlignedAttacker("v-aligned", base, place)
    assert attacker.lacks(unlabelled) == ""
    heard = {side.name for side in attacker.speech(listed)}
    assert heard == {"enrols_anon", "enrols_2_anon", "tested_anon", "background", "background_anon"}
    scores = listed.scored_by(attacker.fit(background))
    assert np.isfinite(scores.values).all()
    folder = tmp_path / "attackers" / "background_anon" / "v-aligned"
    arrays = read_arrays(folder / "alignment.h5", *ARRAYS)
    assert json.loads((folder / "alignment.json").read_text())["pairs"] == 36
    mapped = Alignment(*map(arrays.get, ARRAYS)).apply(Turned().vectors(enrols).vectors)
    error = np.abs(mapped - Turned().vectors(known["enrols"]).vectors).mean(axis=0)
    assert error[:3].max() < 0.3 < error[3:].min()


def test_settings_of_an_aligned_attacker():
    """They are those of the base attacker, and what differs."""
    handed = {}
    make = on_top(lambda name, settings, context: handed.update({name: settings}), "aligned")
    context = Context("ivector-aligned", settings={"ivector": {"folds": 3}})
    assert make("ivector-aligned", {}, context).name == "ivector-aligned"
    make("mine", {"folds": 4}, context)
    assert handed == {"ivector": {"folds": 3}, "mine": {"folds": 4}}
