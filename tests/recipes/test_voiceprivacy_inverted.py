"""Attackers that undo the anonymisation: what they know, what they leave, what they refuse."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import voiceprivacy_runs as vp
from voiceprivacy_runs import evaluated, rows, stamps

from evaluation.formats import read_scores
from evaluation.trials import align
from spkbase.runs import Run
from spkbase.work import Work
from spkver.anonymization import RECORD, AnonymizerConfig, anonymize_datadir
from spkver.anonymization.anonymizers import named_stream
from spkver.attackers import (
    Attack,
    Inversion,
    Known,
    SpeechFiles,
    TrainingSet,
    extract_speech,
    known_from_record,
    learn_models,
    make_attacker,
    parse_spec,
    recognised_anonymizer,
    record_of,
    score_trials,
    select,
    why_not,
)
from spkver.attackers.inversion import NUMBERS
from spkver.datadir import read_datadir

pytestmark = pytest.mark.whole

ONE = "[gmm-ubm,gmm-ubm-inverted]"


@pytest.fixture(scope="module")
def background(layout, tmp_path_factory):
    original, folder = read_datadir(layout / "tiny_train"), tmp_path_factory.mktemp("inverted")
    draws = [
        anonymize_datadir(original, folder / f"train{seed}", AnonymizerConfig(), seed=seed, jobs=1)
        for seed in (1, 2)
    ]
    return TrainingSet(original, tuple(draws))


def inversion_of(background, output, *, jobs=1):
    known = known_from_record(record_of(background.anonymised[0]))
    return Inversion(background, known, Run(output, jobs, quiet=True), 0)


def drawn(directory, seed):
    """The numbers that the record of a directory tells."""
    files = json.loads((directory.path / RECORD).read_text())["files"]
    return {
        name: float(named_stream(entry["stream"], seed).uniform(0.5, 0.9))
        for name, entry in files.items()
    }


def wavs(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.wav"))
    }


def test_a_record_names_the_anonymiser_its_range_and_its_level(background):
    known = known_from_record(record_of(background.anonymised[0]))
    assert known == Known("mcadams", (0.5, 0.9), "record")
    by_speaker = AnonymizerConfig("vtln", level="speaker", warp=(0.1, 0.2))
    assert known_from_record(by_speaker) == Known("vtln", (0.1, 0.2), "record", by_speaker=True)
    assert known_from_record(AnonymizerConfig("none")) is None


def test_an_anonymiser_without_a_record_is_recognised_from_its_output(background, tmp_path):
    """On two workers as on one; a selection has the record of the folder that holds its recordings."""
    for name in ("mcadams", "vtln", "resampling"):
        made = anonymize_datadir(
            background.original, tmp_path / name, AnonymizerConfig(name), seed=4, jobs=1
        )
        selection = replace(made, path=tmp_path / "gone")
        assert record_of(selection).name == name
        (made.path / RECORD).unlink()
        assert record_of(made) is record_of(selection) is None
        known = recognised_anonymizer(background.original, made)
        assert (known.anonymizer, known.source) == (name, "pairs")
        if name == "mcadams":
            assert recognised_anonymizer(background.original, made, Work(2)) == known
    none = anonymize_datadir(
        background.original, tmp_path / "none", AnonymizerConfig("none"), jobs=1
    )
    assert recognised_anonymizer(background.original, none) is None


def test_a_pitch_shift_that_keeps_durations_is_not_recognised_as_resampling(background, tmp_path):
    """Mean spectra alone say resampling by 2 to 5 semitones: pitch and formants move as they do there."""
    version = background.anonymised[0]
    recordings = {name: tmp_path / f"{name}.wav" for name in version.recordings}
    for name, path in background.original.recordings.items():
        samples, rate = soundfile.read(path)
        soundfile.write(recordings[name], shifted(samples, 2 ** (3 / 12)), rate)
    assert (
        recognised_anonymizer(background.original, replace(version, recordings=recordings)) is None
    )


def shifted(samples, factor, length=512, hop=128):
    """A phase vocoder: so many times as long, then so many times as fast; as long as before."""
    window = np.hanning(length + 1)[:-1]
    centred = 2 * np.pi * hop * np.arange(length // 2 + 1) / length
    starts = np.arange(0, len(samples) - length - hop, hop / factor).astype(int)
    made = np.zeros(len(starts) * hop + length)
    phase = np.zeros(len(centred))
    for number, start in enumerate(starts):
        now, later = (
            np.fft.rfft(window * samples[place : place + length]) for place in (start, start + hop)
        )
        made[number * hop : number * hop + length] += window * np.fft.irfft(
            np.abs(now) * np.exp(1j * phase)
        )
        turned = np.angle(later) - np.angle(now) - centred
        phase = phase + centred + (turned + np.pi) % (2 * np.pi) - np.pi
    made = np.interp(np.arange(0, len(made) - 1, factor), np.arange(len(made)), made)
    made = np.pad(made, (0, max(0, len(samples) - len(made))))[: len(samples)]
    return 0.5 * made / np.abs(made).max()


def error_of(found, truth):
    return float(np.sqrt(np.mean([(found[name] - truth[name]) ** 2 for name in truth])))


def by_speaker(background, folder, seed):
    return anonymize_datadir(
        background.original, folder, AnonymizerConfig(level="speaker"), seed=seed, jobs=1
    )


def test_parameters_are_estimated_and_shared_within_speakers(background, tmp_path):
    inversion, version = inversion_of(background, tmp_path), background.anonymised[0]
    found = inversion.numbers(version)
    facts = json.loads((tmp_path / "attackers/train1/undoing/undoing.json").read_text())
    assert error_of(found, drawn(version, 1)) < 0.5 * facts["spread"]
    assert facts["rmse"] < 0.5 * facts["spread"]
    assert (facts["anonymizer"], facts["known_by"], facts["recordings"], facts["speakers"]) == (
        "mcadams", "record", 18, 6,
    )  # fmt: skip
    spoken = by_speaker(background, tmp_path / "speaker", 5)
    found = inversion.numbers(spoken)
    assert all(
        len({found[name] for name in utterances}) == 1
        for utterances in spoken.by_speaker().values()
    )
    assert error_of(found, drawn(spoken, 5)) < 0.5 * facts["spread"]


def test_inverted_speech_does_not_depend_on_workers_and_is_reused(background, tmp_path):
    def made(jobs):
        inversion = inversion_of(background, tmp_path / str(jobs), jobs=jobs)
        inversion.make(inversion.planned(background.anonymised[0]).path)
        return wavs(tmp_path / str(jobs))

    one = made(1)
    assert len(one) == 18
    assert made(2) == one
    kept = sorted((tmp_path / "1").rglob("*.wav"))
    kept.pop(3).unlink()
    before = stamps(kept)
    assert made(1) == one
    assert stamps(kept) == before


def test_tested_recordings_are_estimated_separately_if_speakers_share_one_parameter(
    background, tmp_path
):
    """In trials of the background the speakers are known, and an attacker must not use them."""
    versions = tuple(by_speaker(background, tmp_path / f"by{seed}", seed) for seed in (5, 6))
    inversion = inversion_of(TrainingSet(background.original, versions), tmp_path)
    some = sorted(versions[0].recordings)[:4]
    tested = select(versions[0], some)
    whole, alone = inversion.numbers(versions[0]), inversion.numbers(tested, is_tested=True)
    assert len({whole[name] for name in some}) < len({alone[name] for name in some}) == 4
    sides = inversion.planned(tested, is_tested=True), inversion.planned(versions[0])
    assert len({side.recordings[some[0]] for side in sides}) == 2


def test_the_sides_of_folds_exclude_background_speakers(background, tmp_path):
    """They bear its name: its recordings are taken from its inverted versions, pieces have folders of their own."""
    version, inversion = background.anonymised[0], inversion_of(background, tmp_path)
    whole, names = inversion.planned(version), sorted(version.recordings)
    inversion.make(whole.path)
    before = wavs(tmp_path)
    sides = []
    for number, some in enumerate((names[:3], names[3:6], names[6:9])):
        number = min(number, 1)
        recordings = {
            f"{name}-piece{number}": background.original.recordings[name] for name in some
        }
        speakers = {f"{name}-piece{number}": version.speakers[name] for name in some}
        path = version.path.with_name(f"{version.name}{'-pieces' * number}")
        sides.append(
            inversion.planned(replace(version, path=path, recordings=recordings, speakers=speakers))
        )
        inversion.make(sides[-1].path)
    assert len({whole.path, *(side.path for side in sides)}) == 4
    assert before.items() < wavs(tmp_path).items()
    assert all(path.is_file() for side in (whole, *sides) for path in side.recordings.values())
    part = inversion.planned(select(version, names[:4]))
    assert part.recordings == {name: whole.recordings[name] for name in names[:4]}
    assert inversion.source(part.path) is None


def test_speech_that_cannot_be_inverted_is_reported(background, layout):
    original, anonymised = background.original, background.anonymised
    known = known_from_record(record_of(anonymised[0]))
    few = select(original, sorted(original.recordings)[:5])
    one = replace(original, speakers=dict.fromkeys(original.speakers, "anna"))
    unknown = (read_datadir(layout / "tiny_train_anon"),)
    for training, enrolled, anonymiser, why in (
        (background, {"f001"}, known, ""),
        (TrainingSet(original), {"f001"}, known, "there is no anonymised background"),
        (TrainingSet(few, anonymised), {"f001"}, known, "is too small to learn from"),
        (TrainingSet(one, anonymised), {"f001"}, known, "18 recordings of 1 speaker is too small"),
        (
            background,
            vp.TRAINING,
            known,
            "6 speakers of the background among those that are enrolled",
        ),
        (
            TrainingSet(original, unknown),
            {"f001"},
            None,
            "what made tiny_train_anon cannot be inverted (mcadams, vtln, resampling, world can)",
        ),
    ):
        reason = why_not(training, enrolled, anonymiser)
        assert why in reason
        assert bool(why) == bool(reason)


def test_the_evaluation_distinguishes_inverting_attackers(originals, tmp_path, monkeypatch):
    scored = []

    def score_once(attacker, trained, attack):
        scored.append(attack.name)
        return score_trials(attacker, trained, attack)

    monkeypatch.setattr("spkver.voiceprivacy.scores.score_trials", score_once)
    output = tmp_path / "out"
    options = {"attackers": ONE, "lists": "[f]", "evaluation__resamples": 0}
    options["anonymizer__training_draws"] = 2
    results = evaluated(originals, output, "--suffix", "_mcadams", **options)
    before = stamps(output.glob("exp/*/*/gmm-ubm-inverted/scores"))
    assert len(before) == 2  # lazy- and semi-informed
    assert all(path.parts[-3].startswith("tiny_test_enrolls_mcadams-") for path in before)
    # an inversion of both sides leaves nothing that training on anonymised speech could change: it is computed once
    assert len(scored) == 5  # four times gmm-ubm
    lazy, semi = before
    assert lazy.read_bytes() == semi.read_bytes()
    conditions, (told,) = results["conditions"], results["undoing"]
    assert (told["background"], told["anonymizer"]) == ("tiny_train_mcadams", "mcadams")
    assert 0 < told["rmse"] < told["spread"]
    assert {row["attacker"]: row["level"] for row in conditions} == {
        "gmm-ubm": "one-model",
        "gmm-ubm-inverted": "inverting",
    }
    assert {row["scenario"] for row in rows(conditions, attacker="gmm-ubm-inverted")} == {
        "lazy-informed", "semi-informed"
    }  # fmt: skip
    # inverting attackers learn from original speech, like the attacker that does not invert, and are trained once
    trained = {path.parts[-4] for path in output.glob("attackers/*/mixture-*/gmm/ubm.h5")}
    assert trained == {"tiny_train", "tiny_train_mcadams"}
    evaluated(originals, output, "--suffix", "_mcadams", **options)
    assert stamps(before) == before


@pytest.mark.parametrize(("is_network", "versions"), [(False, 3), (True, 2)])
def test_networks_enrol_two_inverted_versions_and_other_attackers_all(
    originals, tmp_path, monkeypatch, is_network, versions
):
    monkeypatch.setattr(
        "spkver.attackers.registry.Spec.is_network", property(lambda spec: is_network)
    )
    options = {"attackers": "[gmm-ubm-inverted]", "lists": "[f]", "anonymizer__enrolment_draws": 3}
    arguments = ("--suffix", "_mcadams", "--until", "extraction")
    outcome = vp.run_recipe(originals, tmp_path / "out", *arguments, **options)
    assert outcome.status == 0, outcome.err
    assert len(list(tmp_path.glob("out/data/tiny_test_enrolls_mcadams*-inverted/wav"))) == versions


def test_reversing_attackers_take_the_largest_score_over_inversions(originals, tmp_path):
    """Brute force: the attacker itself on each inverted version of the trials, against original enrolment."""
    names, out = ("supervector-adapted", "supervector-adapted-reversed"), tmp_path / "out"
    options = {"attackers": f"[{','.join(names)}]", "lists": "[f]", "evaluation__resamples": 0}
    results = evaluated(
        originals, out, "--suffix", "_mcadams", anonymizer__trial_draws=2, **options
    )
    folders = "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f_mcadams{}"
    draws = {
        name: [(out / folders.format(end) / name).is_dir() for end in ("", "-draw2")]
        for name in names
    }
    # one draw needs to be inverted
    assert draws == {names[0]: [True, True], names[1]: [True, False]}
    for scenario in (*vp.SCENARIOS, "reversal"):
        ran = {
            (row["attacker"], row["level"])
            for row in rows(results["conditions"], scenario=scenario)
        }
        assert (
            ran == {(names[1], "inverting")}
            if scenario == "reversal"
            else {(names[0], "whole-list")}
        )
    enrolment, trials = (
        read_datadir(originals / f"tiny_test_{name}") for name in ("enrolls", "trials_f")
    )
    training, attacker = (
        TrainingSet(read_datadir(originals / "tiny_train")),
        make_attacker(parse_spec(names[0]), shared={"ubm": {"components": 4}}),
    )
    speech, found = (
        SpeechFiles(Run(tmp_path, 1, quiet=True), Run(tmp_path / "work", 1, quiet=True)),
        [],
    )
    for number in range(1, NUMBERS + 1):
        tested = read_datadir(out / f"data/tiny_test_trials_f_mcadams-reversed{number}")
        attack = Attack(training, (enrolment,), tested, trials.trials.trials())
        extract_speech(speech, attacker, attack)
        found.append(
            score_trials(attacker, learn_models(speech, attacker, training), attack).values
        )
    assert len({tuple(scores) for scores in found}) == NUMBERS
    scores = read_scores(out / folders.format("") / names[1] / "scores")
    np.testing.assert_allclose(align(scores, attack.trials), np.max(found, axis=0), atol=1e-6)


def test_folds_of_speakers_with_one_recording_are_inverted_too(originals, tmp_path, monkeypatch):
    """Pieces of the background, of its inverted versions and of the sides of folds lie in folders of their own."""
    monkeypatch.setattr("spkver.attackers.inversion.LEAST", 2)
    monkeypatch.setattr("spkver.attackers.pieces.SHORTEST", 0.1)
    data = Path(shutil.copytree(originals, tmp_path / "data"))
    for name in ("wav.scp", "utt2spk"):
        lines = (data / "tiny_train" / name).read_text().splitlines()
        (data / "tiny_train" / name).write_text(
            "".join(f"{line}\n" for line in lines if "-1" in line.split()[0])
        )
    names = "gmm-ubm,gmm-ubm-inverted,supervector-adapted,supervector-adapted-inverted,fusion"
    options = {"attackers": f"[{names}]", "lists": "[f]"}
    options |= {"anonymizer__training_draws": 2, "evaluation__resamples": 0}
    results = evaluated(data, tmp_path / "out", "--suffix", "_mcadams", **options)
    assert {fusion["attacker"] for fusion in results["fusions"]} >= {"fusion", "fusion-inverted"}
    assert [fusion["left_out"] for fusion in results["fusions"]] == [{}] * len(results["fusions"])
    chosen = [(choice["training"], choice["attacker"]) for choice in results["choices"]]
    # chosen on pieces, as each training speaker has one recording
    assert chosen == [(f"tiny_train{end}", "supervector-adapted") for end in ("", "_mcadams")]
