"""What can be wrong with what the VoicePrivacy recipe is given: one error, status 2, nothing long started."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile
from recipe_runs import leftovers, refused
from voiceprivacy_runs import SUFFIX, lines_of, run_recipe, write

pytestmark = pytest.mark.whole

TWIN = f"tiny_test_trials_f{SUFFIX}"
FIRST = "f001-3"


def check(outcome, output, *words):
    """One clear error with these words, status 2, and nothing long started."""
    refused(outcome, *words)
    for name in ("attackers", "work", "exp", "results.json", "data"):
        assert not (output / name).exists()
    assert not output.exists() or not leftovers(output)


Damage = Callable[[Path], None]


def edited(name, change):
    """Change the lines of a list."""
    return lambda data: write(data / name, change(lines_of(data / name)))


def without(name, start):
    """Take away the lines of a list that start so."""
    return edited(name, lambda lines: [line for line in lines if not line.startswith(start)])


def cut(name, word):
    """Take away the lines of a list that hold a word."""
    return edited(name, lambda lines: [line for line in lines if word not in line.split()])


def changed(name, old, new):
    """Change every line of a list."""
    return edited(name, lambda lines: [line.replace(old, new) for line in lines])


def all_of(*damages):
    """Do several damages."""
    return lambda data: [damage(data) for damage in damages] and None


def original_left(data):
    """Put an original recording under the name of another anonymised utterance."""
    shutil.copy(data / "tiny_test_trials_f/wav/f002-3.wav", data / TWIN / "wav" / f"{FIRST}.wav")


def silent_and_short(data):
    """Silence an anonymised utterance, and cut a training utterance on both sides."""
    path = data / TWIN / "wav" / f"{FIRST}.wav"
    samples, rate = soundfile.read(path, dtype="int16")
    soundfile.write(path, 0 * samples, rate)
    for folder in ("tiny_train", f"tiny_train{SUFFIX}"):
        path = min((data / folder / "wav").glob("*.wav"))
        samples, rate = soundfile.read(path, dtype="int16")
        soundfile.write(path, samples[: rate // 20], rate)


BAD = {
    "silent and too short recordings": (
        silent_and_short,
        [
            rf"3 problems:\n(  .*shorter than 0.1 s: 0.050 s.*\n)*  .*{FIRST}.wav: silent.*--missing drop"
        ],
    ),
    "twin lacks an utterance": (
        all_of(
            without(f"{TWIN}/wav.scp", FIRST),
            without(f"{TWIN}/utt2spk", FIRST),
            cut(f"{TWIN}/trials", FIRST),
        ),
        [rf"{TWIN}.*1 missing utterance.*{FIRST}", "anonymise"],
    ),
    "original audio left": (original_left, [rf"original audio in 1 of 10.*{FIRST}.*f002-3"]),
    "trials name unknown utterances": (
        edited("tiny_test_trials_m/trials", lambda lines: [*lines, "m001 ghost-1 nontarget"]),
        [r"tiny_test_trials_m/trials.*ghost-1"],
    ),
    "trials name speakers who are not enrolled": (
        changed("tiny_test_trials_m/trials", "m003 ", "m009 "),
        ["1 speaker .'m009'. of the trials not enrolled in"],
    ),
    "no target trial": (cut("tiny_test_trials_m/trials", "target"), ["0 target and 18 nontarget"]),
    "a trial speaker of unknown sex": (
        without("tiny_test_trials_f/spk2gender", "f005"),
        [r"tiny_test_trials_f/spk2gender.*1 speaker of unknown sex.*f005"],
    ),
    "an enrolled speaker of unknown sex": (
        without("tiny_test_enrolls/spk2gender", "m002"),
        [r"tiny_test_enrolls/spk2gender.*1 speaker of unknown sex.*m002"],
    ),
    "a man among the women": (
        changed("tiny_test_trials_f/spk2gender", "f005 f", "f005 m"),
        [r"f005.*with another sex than 'f'"],
    ),
    "shell pipes": (
        changed(
            "tiny_train/wav.scp", "tiny_train/wav/f101-1.wav", "cat tiny_train/wav/f101-1.wav |"
        ),
        [r"tiny_train/wav.scp.*shell commands", "--allow-pipes"],
    ),
    "no enrolment": (
        lambda data: shutil.rmtree(data / "tiny_test_enrolls"),
        ["no tiny_test_enrolls for the set"],
    ),
    "no training set": (
        lambda data: shutil.rmtree(data / "tiny_train"),
        [
            "no training set for tiny_test: looked for tiny_train and train-clean-360",
            "training_sets.tiny_test",
        ],
    ),
    "no twin": (
        lambda data: shutil.rmtree(data / TWIN),
        ["no anonymised twin of tiny_test_trials_f", "anonymizer.name"],
    ),
    "one training speaker": (
        all_of(
            *(
                without(f"tiny_train{end}/{name}", start)
                for end in ("", SUFFIX)
                for name in ("wav.scp", "utt2spk", "spk2gender")
                for start in ("m", "f102", "f103")
            )
        ),
        ["fewer than two training speakers"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_any_long_step(own, tmp_path, name):
    damage, words = BAD[name]
    damage(own)
    check(run_recipe(own, tmp_path / "out"), tmp_path / "out", *words)


def test_all_problems_are_reported_together(own, tmp_path):
    names = (
        "twin lacks an utterance",
        "trials name unknown utterances",
        "an enrolled speaker of unknown sex",
        "shell pipes",
    )
    damages, words = zip(*(BAD[name] for name in names), strict=True)
    all_of(*damages)(own)
    outcome = run_recipe(own, tmp_path / "out")
    check(outcome, tmp_path / "out", r"^Error: \d+ problems:\n", *itertools.chain(*words))
    assert outcome.error.count("problems:") == 1  # one list of problems, without nested ones


def test_pipes_run_only_if_allowed(own, tmp_path):
    source = own / "tiny_train/wav/f101-1.wav"
    changed("tiny_train/wav.scp", "tiny_train/wav/f101-1.wav", f"cat {source} |")(own)
    outcome = run_recipe(
        own,
        tmp_path / "out",
        "--allow-pipes",
        "--until",
        "scores",
        attackers="[supervector-cosine]",
    )
    assert outcome.status == 0, outcome.err
    assert (tmp_path / "out/pipes/tiny_train/f101-1.wav").read_bytes() == source.read_bytes()


OPTIONS = {
    "a time limit that is none": ({"attackers_time_limit": 0}, [], ["attackers_time_limit is 0"]),
    "no such data": ({}, ["--data"], ["no such folder"]),
    "unknown set": ({"datasets": "[libri_test]"}, [], ["no set libri_test", "there are tiny_test"]),
    "unknown training set": ({"training_sets.tiny_test": "train-x"}, [], ["looked for train-x"]),
    "training set of no set": (
        {"training_sets.other": "tiny_train"},
        [],
        ["training_sets.other: no such set"],
    ),
    "unknown attacker": ({"attackers": "[gmm-ubn]"}, [], ["'gmm-ubn' is not a preset"]),
    "settings of no attacker": (
        {"attacker_settings.gmm.norm.kind": "z"},
        [],
        ["attacker_settings.gmm: there is no such"],
    ),
    "attacker of the challenge": (
        {"challenge.attacker": "campplus"},
        [],
        ["challenge.attacker is 'campplus'", "one of"],
    ),
    "several draws under its name": (
        {
            "challenge.attacker": "supervector-cosine",
            "anonymizer.training_draws": 4,
            "anonymizer.enrolment_draws": 2,
        },
        [],
        [
            "anonymises each recording once",
            "set anonymizer.training_draws=1, anonymizer.enrolment_draws=1, or",
        ],
    ),
    "resamples": ({"evaluation.resamples": 1}, [], ["evaluation.resamples is 1"]),
    "lists that are not there": (
        {"lists": "[mixed]"},
        [],
        ["no set found", "<set>_trials_mixed"],
    ),
    "emotions of no directory": (
        {"utility.emotion": "[nothing]"},
        [],
        ["no such data directory nothing"],
    ),
    "predictions of nothing": ({"utility.predictions": "guesses"}, [], ["without utility.emotion"]),
    "suffix": ({}, ["--suffix", "anon"], ["--suffix anon: expected"]),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options_are_refused(layout, tmp_path, name):
    settings, arguments, words = OPTIONS[name]
    data = layout
    if arguments == ["--data"]:
        data, arguments = tmp_path / "nowhere", []
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    check(run_recipe(data, tmp_path / "out", *arguments, *sets), tmp_path / "out", *words)


def test_training_sets_of_omitted_sets_are_not_required(layout, tmp_path):
    """A challenge's file names all of its sets; those of which ``--set datasets`` has none may be missing."""
    file = tmp_path / "challenge.yaml"
    file.write_text(
        "datasets: [far_dev, tiny_test]\ntraining_sets: {far_dev: far_train, tiny_test: tiny_train}\n"
    )
    given = ["--config", str(file), "--until", "checks"]
    outcome = run_recipe(layout, tmp_path / "out", *given)
    check(outcome, tmp_path / "out", "no set far_dev")
    outcome = run_recipe(layout, tmp_path / "out", *given, datasets="[tiny_test]")
    assert outcome.status == 0, outcome.err
    outcome = run_recipe(
        layout, tmp_path / "out2", *given, datasets="[tiny_test]", training_sets__far_dve="x"
    )
    check(outcome, tmp_path / "out2", "training_sets.far_dve: no such set")


def test_a_failure_of_the_anonymiser_ends_the_run_before_training(originals, tmp_path):
    """Utterances that a split left out are counted; silence of the anonymiser is found as soon as it is made."""
    data, own = Path(shutil.copytree(originals, tmp_path / "data")), tmp_path / "own.py"
    (data / "split.json").write_text('{"left_out": ["f009-1", "f009-2"]}')
    own.write_text(
        f"def near(samples, rate, utterance, rng):\n    return 0.9 * samples * (utterance != {FIRST!r})\n"
    )
    outcome = run_recipe(data, tmp_path / "out", anonymizer__name=f"{own}:near")
    refused(outcome, rf"{FIRST}.wav: silent: all samples are 0 \(replace it")
    assert "2 utterances were left out on both sides: f009-1, f009-2" in outcome.err
    assert not (tmp_path / "out/attackers").exists()
