"""Sets and their twins: where speakers overlap, what is anonymised, mixed lists, and utility from given lists."""

from __future__ import annotations

import json
import shutil

import pytest
from recipe_runs import refused, results_of
from voiceprivacy_runs import ENROLLED, SUFFIX, evaluated, lines_of, run_recipe, write

from evaluation.challenges.rank_files import ASV, ASV_ANON, read_rank_file, records
from evaluation.reports import Results
from spkbase.errors import DataError
from spkbase.runs import Run
from spkver.anonymization import RECORD
from spkver.recognition import Recogniser
from spkver.voiceprivacy import checks
from spkver.voiceprivacy.checks import Evaluated
from spkver.voiceprivacy.recording_checks import equal_audio
from spkver.voiceprivacy.sets import read_sets
from spkver.voiceprivacy.settings import Config, TwinConfig
from spkver.voiceprivacy.speech import speech_of

pytestmark = pytest.mark.whole


def only(attacker):
    """Settings of one attacker, whose results go under the challenge's name."""
    return {"attackers": f"[{attacker}]", "challenge__attacker": attacker}


def sets_of(data, output):
    return read_sets(data, Run(output, jobs=1), SUFFIX, Config())


def test_speakers_and_utterances_in_two_sets_raise_warnings(own, tmp_path):
    for end in ("", SUFFIX):
        directory = own / f"tiny_train{end}"
        write(
            directory / "utt2spk",
            [line.replace(" f101", " f001") for line in lines_of(directory / "utt2spk")],
        )
        write(
            directory / "spk2gender",
            [line.replace("f101", "f001") for line in lines_of(directory / "spk2gender")],
        )
        tried, enrolled = own / f"tiny_test_trials_f{end}", own / f"tiny_test_enrolls{end}"
        for name, line in (
            ("wav.scp", f"f001-3 {tried.name}/wav/f001-3.wav"),
            ("utt2spk", "f001-3 f001"),
            ("enrolls", "f001-3"),
        ):
            write(enrolled / name, [*lines_of(enrolled / name), line])
    sets = sets_of(own, tmp_path / "out")
    background = speech_of(sets, SUFFIX).backgrounds["tiny_train"]
    for directory in (background.original, *background.anonymised):
        assert set(directory.speakers.values()) == {"f102", "f103", "m101", "m102", "m103"}
        assert len(directory.recordings) == len(directory.speakers) == 15
    found = list(checks.shared_speakers(Evaluated(Results(conditions=()), sets, Config())))
    assert [(one.level, one.check) for one in found] == [
        ("warning", "speaker overlap"),
        ("warning", "utterance overlap"),
    ]
    assert "1 of 9 speakers are in tiny_train too: f001." in found[0].text


def test_the_level_of_draws_is_required_if_no_record_gives_it(own, tmp_path):
    def notes(config):
        run = Evaluated(Results(conditions=()), sets_of(own, tmp_path / "out"), config)
        return [found.text for found in checks.draw_level(run)]

    (text,) = notes(Config())
    assert f"how tiny_test_enrolls{SUFFIX}, tiny_test_trials_f{SUFFIX}" in text
    assert "--set anonymizer.level=speaker" in text
    (text,) = notes(Config(anonymizer=TwinConfig(level="speaker")))
    assert "need different draws" in text
    for twin in own.glob(f"*{SUFFIX}"):
        record = {"anonymizer": {"name": "vtln", "level": "utterance"}, "seed": 0}
        (twin / RECORD).write_text(json.dumps(record))
    assert not notes(Config())


def test_one_file_under_two_ids_is_reported_as_a_duplicate(own, tmp_path):
    """Enrolment and trials that share files have an EER of 0."""
    enrolls, trials = own / "tiny_test_enrolls", own / "tiny_test_trials_f"
    first = lines_of(enrolls / "wav.scp")[0].split()[1]
    name = lines_of(trials / "wav.scp")[0].split()[0]
    write(trials / "wav.scp", [f"{name} {first}", *lines_of(trials / "wav.scp")[1:]])
    found = next(equal_audio(sets_of(own, tmp_path / "out"), 1))
    assert (found.level, name in found.text) == ("warning", True)


def test_an_anonymised_copy_enrols_the_utterances_listed_by_the_original(own, tmp_path):
    """A twin without `enrolls` would enrol with all of its utterances."""
    (own / f"tiny_test_enrolls{SUFFIX}/enrolls").unlink()
    write(
        own / "tiny_test_enrolls/enrolls",
        ["f001-1", *lines_of(own / "tiny_test_enrolls/enrolls")[2:]],
    )
    twin = sets_of(own, tmp_path / "out").twins["tiny_test_enrolls"]
    assert twin.enrolls is not None
    assert [one for one in sorted(twin.enrolls) if one.startswith("f001")] == ["f001-1"]
    assert len(twin.enrolls) == 13


def test_anonymised_recordings_in_another_folder_are_the_same_twins(own, tmp_path):
    """No link needs to be made by hand: the folder alone is given, and results are equal."""
    settings = {"evaluation__resamples": 0, **only("supervector-cosine")}
    expected = evaluated(own, tmp_path / "beside", **settings)
    for twin in own.glob(f"*{SUFFIX}"):
        (tmp_path / "elsewhere" / twin.name.removesuffix(SUFFIX)).parent.mkdir(exist_ok=True)
        shutil.move(twin / "wav", tmp_path / "elsewhere" / twin.name.removesuffix(SUFFIX))
        shutil.rmtree(twin)
    folder = ["--anonymised", str(tmp_path / "elsewhere")]
    found = evaluated(own, tmp_path / "out", *folder, **settings)
    assert found["conditions"] == expected["conditions"]
    shutil.rmtree(tmp_path / "elsewhere/tiny_train")
    outcome = run_recipe(own, tmp_path / "out", *folder, **settings)
    refused(outcome, "no anonymised twin of tiny_train", "give their folder as --anonymised")


def test_sets_that_are_missing_are_named_with_the_option_that_leaves_them_out(own, tmp_path):
    outcome = run_recipe(own, tmp_path / "out", datasets="[libri_dev,tiny_test]")
    refused(outcome, "no set libri_dev", r"--set 'datasets=\[tiny_test\]'")
    outcome = run_recipe(own, tmp_path / "out", datasets="[libri_dev]")
    refused(outcome, r"there are tiny_test: --set 'datasets=\[tiny_test\]'")
    outcome = run_recipe(own, tmp_path / "out", utility__emotion="[IEMOCAP_dev,tiny_train]")
    refused(outcome, r"leave it out: --set 'utility.emotion=\[tiny_train\]'")


def test_a_twin_may_consist_of_recordings_only(own, tmp_path):
    """So does the challenge take it: wav/*.wav, and the lists of the original."""
    expected = sets_of(own, tmp_path / "out").twins
    for path in own.glob(f"*{SUFFIX}/*"):
        if path.is_file():
            path.unlink()
    found = sets_of(own, tmp_path / "out").twins
    for name, twin in expected.items():
        assert {
            key: path.resolve() for key, path in found[name].recordings.items()
        } == twin.recordings
        assert (found[name].speakers, found[name].enrolls) == (twin.speakers, twin.enrolls)
    (own / f"tiny_train{SUFFIX}/wav/f101-1.wav").unlink()
    with pytest.raises(DataError, match="1 missing utterance: 'f101-1'"):
        sets_of(own, tmp_path / "out")


@pytest.mark.parametrize("sexes", ["known", "unknown"])
def test_mixed_trials_are_evaluated(own, tmp_path, sexes):
    """One list across the sexes, as in VoicePrivacy 2026: its conditions are of all speakers.

    Where the sexes are not known, such lists are taken by themselves, and a warning says so.
    """
    for end in ("", SUFFIX):
        parts = [own / f"tiny_test_trials_{sex}{end}" for sex in "fm"]
        (own / f"tiny_test_trials_mixed{end}").mkdir()
        for name in ("wav.scp", "utt2spk", "spk2gender"):
            lines = [line for part in parts for line in lines_of(part / name)]
            write(own / f"tiny_test_trials_mixed{end}" / name, lines)
    spoken = dict(line.split() for line in lines_of(own / "tiny_test_trials_mixed/utt2spk"))
    pairs = {(model, one) for model in (*ENROLLED["f"], *ENROLLED["m"]) for one in spoken}
    lines = [
        f"{model} {one} {'' if spoken[one] == model else 'non'}target"
        for model, one in sorted(pairs)
    ]
    write(own / "tiny_test_trials_mixed/trials", lines)
    settings = {"lists": "[mixed]", "evaluation__resamples": 0}
    if sexes == "unknown":
        del settings["lists"]
        for path in own.glob("*/spk2gender"):
            path.unlink()
        for path in [*own.glob("*_trials_[fm]"), *own.glob("*_trials_[fm]_*")]:
            path.rename(own / path.name.replace("trials", "audio"))
        for path in own.glob("*_mixed*/wav.scp"):
            path.write_text(path.read_text().replace("_trials_", "_audio_"))
    outcome = run_recipe(own, tmp_path / "out", **settings, **only("supervector-cosine"))
    assert outcome.err.count("sexes are not known") == (sexes == "unknown")
    assert outcome.status == 0, outcome.err
    conditions = results_of(tmp_path / "out")["conditions"]
    assert {one["gender"] for one in conditions} == {"all"}
    assert conditions[0]["n_nontarget"] == 7 * 18 - 14
    assert conditions[0]["linkability"]["sizes"] == list(range(2, 8))
    assert {
        tuple(line.split()[:2]) for line in lines_of(tmp_path / "out" / conditions[0]["scores"])
    } == pairs
    # files in the challenge's form: lists are called mixed, and ASV_eval has the lazy-informed EER
    written = read_rank_file(tmp_path / f"out/exp/results_summary/result_for_rank{SUFFIX}")
    eers = {one["scenario"]: round(100 * one["eer"]["speechbrain"], 3) for one in conditions}
    where = {
        "dataset": "tiny",
        "split": "test",
        "gender": "mixed",
        "enrollment": "anon",
        "trial": "anon",
    }
    assert records(written, ASV) == [where | {"EER": eers["lazy-informed"]}]
    assert records(written, ASV_ANON) == [where | {"EER": eers["semi-informed"]}]
    table = lines_of(tmp_path / f"out/results{SUFFIX}.csv")
    assert [line.split(",")[2] for line in table[1:]] == ["mixed"] * 4


# --- anonymising ----------------------------------------------------------------------------------


MCADAMS = {
    "anonymizer__name": "mcadams",
    "attackers": "[supervector-cosine]",
    "evaluation__resamples": 0,
}


def test_missing_anonymised_copies_are_made_in_the_output_and_the_data_are_unchanged(own, tmp_path):
    """Training sets are anonymised several times, and all of that trains the attacker."""
    output = tmp_path / "out"
    for name in ("tiny_test_enrolls", "tiny_train"):
        shutil.rmtree(own / f"{name}{SUFFIX}")
    before = {path: path.read_bytes() for path in own.rglob("*") if path.is_file()}
    told = evaluated(own, output, **{**MCADAMS, "anonymizer__training_draws": 3})["anonymiser"]
    assert {path: path.read_bytes() for path in own.rglob("*") if path.is_file()} == before
    versions = [f"tiny_train{SUFFIX}", *(f"tiny_train{SUFFIX}-draw{number}" for number in (2, 3))]
    made = sorted(path.name for path in (output / "data").iterdir() if path.is_dir())
    assert made == [f"tiny_test_enrolls{SUFFIX}", *versions]
    assert len({(output / f"data/{name}/wav/f101-1.wav").read_bytes() for name in versions}) == 3
    assert (told["name"], told["alpha"], told["training_draws"]) == ("mcadams", [0.5, 0.9], 3)
    assert set(told["made"]) == {"tiny_test_enrolls", "tiny_train"}
    for end, versions in ((SUFFIX, 3), ("", 1)):
        choice = json.loads(
            (output / f"attackers/tiny_train{end}/supervector-cosine/choice.json").read_text()
        )
        assert (choice["versions"], choice["vectors"]) == (versions, versions * 18)


@pytest.mark.parametrize("has_record", [True, False])
def test_the_anonymiser_is_taken_from_the_record_or_else_the_configuration(
    own, tmp_path, has_record
):
    """No draws are made by another anonymiser than the recorded one; without a record the name is believed."""
    for twin in own.glob(f"*{SUFFIX}") if has_record else ():
        (twin / RECORD).write_text(
            json.dumps({"anonymizer": {"name": "vtln", "level": "utterance"}, "seed": 0})
        )
    settings = {**MCADAMS, "anonymizer__training_draws": 3}
    outcome = run_recipe(own, tmp_path / "out", "--until", "anonymisation", **settings)
    assert outcome.status == 0, outcome.err
    assert (
        "only one anonymised version, since its record has another name" in outcome.err
    ) == has_record
    assert len(list((tmp_path / "out").glob("data/tiny_train*-draw*"))) == (0 if has_record else 2)


def test_an_anonymiser_that_changes_nothing_is_reported(own, tmp_path):
    shutil.rmtree(own / f"tiny_train{SUFFIX}")
    outcome = run_recipe(
        own, tmp_path / "out", anonymizer__name="command", anonymizer__command="cp {input} {output}"
    )
    refused(outcome, "original audio in 18 of 18")
    assert not (tmp_path / "out/exp").exists()


# --- utility --------------------------------------------------------------------------------------


def test_word_error_rates_are_computed_from_external_transcripts(own, tmp_path):
    for sex in "fm":
        names = [line.split()[0] for line in lines_of(own / f"tiny_test_trials_{sex}/utt2spk")]
        write(
            own / f"tiny_test_trials_{sex}/text", [f"{name} ONE TWO THREE FOUR" for name in names]
        )
        write(
            own / f"tiny_test_trials_{sex}/heard", [f"{name} one two three four" for name in names]
        )
        write(
            own / f"tiny_test_trials_{sex}{SUFFIX}/heard",
            [f"{name} one too three four" for name in names],
        )
    settings = {
        "utility__hypotheses": "heard",
        "evaluation__resamples": 0,
        **only("supervector-cosine"),
    }
    utility = evaluated(own, tmp_path / "out", **settings)["utility"]
    assert [utility["wer"]["tiny_test"][kind]["value"] for kind in ("original", "anonymised")] == [
        0,
        0.25,
    ]
    assert utility["cer"]["tiny_test"]["anonymised"]["value"] == pytest.approx(1 / 18)
    ranked = (tmp_path / f"out/exp/results_summary/result_for_rank{SUFFIX}").read_text()
    assert "ASR results" in ranked
    assert "25.0" in ranked
    # as the challenge's toolkit writes them: both sexes in one file, with the words of the enrolment
    for end in ("", SUFFIX):
        lines = ["f001-1 not of the trials"]
        for sex in "fm":
            heard = own / f"tiny_test_trials_{sex}{end}/heard"
            lines += lines_of(heard)
            heard.unlink()
        (tmp_path / f"exp/asr/tiny_test_asr{end}").mkdir(parents=True)
        write(tmp_path / f"exp/asr/tiny_test_asr{end}/text", lines)
    settings["utility__hypotheses"] = str(tmp_path / "exp/asr")
    again = evaluated(own, tmp_path / "out", **settings)["utility"]
    for kind in ("original", "anonymised"):
        rates = [found["wer"]["tiny_test"][kind]["value"] for found in (utility, again)]
        assert rates[0] == rates[1]
    write(tmp_path / f"exp/asr/tiny_test_asr{SUFFIX}/text", lines[:-1])
    outcome = run_recipe(own, tmp_path / "out", **settings)
    refused(outcome, f"no words of 1 utterance of tiny_test_trials_m{SUFFIX}")


def test_missing_transcripts_are_reported_before_any_long_step(layout, tmp_path):
    outcome = run_recipe(layout, tmp_path / "out", utility__hypotheses="heard")
    # two files "text", and "heard" in two sets and their twins
    refused(outcome, "no such transcripts, in 6 files")
    assert not (tmp_path / "out/work").exists()


def words_by_length(samples):
    """Recognise recordings by their length."""
    return " ".join(["ONE TWO THREE FOUR FIVE SIX"[: 3 + len(samples) % 23]])


def test_the_content_attacker_uses_recognised_words_of_all_speech(own, tmp_path, monkeypatch):
    recogniser = Recogniser("stand-in", words_by_length)
    monkeypatch.setattr(
        "spkver.recognition.open_recogniser", lambda name: {"mine": recogniser}[name]
    )
    settings = {"attacker_settings__content__recognised": "true", "utility__recogniser": "mine"}
    results = evaluated(
        own, tmp_path / "out", attackers="[content]", evaluation__resamples=0, **settings
    )
    assert {row["content"] for row in results["conditions"]} == {"recognised"}
    heard = {path.parent.name for path in (tmp_path / "out" / "asr").glob("*/text")}
    names = ("tiny_train", "tiny_test_enrolls", "tiny_test_trials_f", "tiny_test_trials_m")
    assert heard >= {f"{name}{end}" for name in names for end in ("", SUFFIX)}
    for name in names:
        utterances = [line.split()[0] for line in lines_of(own / name / "utt2spk")]
        write(own / name / "text", [f"{utterance} zhe shi" for utterance in utterances])
    outcome = run_recipe(
        own, tmp_path / "out", attackers="[content]", evaluation__resamples=0, **settings
    )
    refused(outcome, "the words were not understood: 0 % of them agree with text")
