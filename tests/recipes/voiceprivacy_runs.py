"""A tiny set in the challenge's layout, with anonymised twins, and a way to run the recipe on it in this process."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from unittest.mock import patch
from zlib import crc32

import numpy as np
import soundfile
from click.testing import CliRunner
from recipe_runs import Outcome, results_of
from scipy.signal import lfilter
from tiny_corpus import RATE, speaker_sound

from spkbase.files import write_text
from spkver.recipes.voiceprivacy import run as voiceprivacy

SUFFIX = "_anon"
SCENARIOS = ("original", "ignorant", "lazy-informed", "semi-informed")
ENROLLED = {"f": ("f001", "f002", "f003", "f004"), "m": ("m001", "m002", "m003")}
STRANGERS = {"f": ("f005",), "m": ("m004",)}
TRAINING = ("f101", "f102", "f103", "m101", "m102", "m103")
SETTINGS = {
    # the default attackers depend on the machine
    "attackers": "[supervector-cosine]",
    "attacker_settings.all.ubm.components": 4,
    # intervals take half of the time of the evaluation: tests of intervals ask for them
    "evaluation.resamples": 0,
    "anonymizer.training_draws": 1,
    "anonymizer.trial_draws": 1,
    "anonymizer.enrolment_draws": 1,
    # words of twins are not recognised, even if a recogniser is installed
    "utility.recogniser": "whisper:none",
}

EMBED = """
import numpy as np
from pathlib import Path

def embed(samples, rate):
    with Path({calls!r}).open("a") as file:
        file.write("x")
    power = np.abs(np.fft.rfft(samples)) ** 2
    return np.log([part.mean() + 1e-9 for part in np.array_split(power[1:], 8)])
"""


def write_layout(root):
    """Write ``tiny_test`` and ``tiny_train`` with their twins; returns `root`."""
    everybody = [speaker for sex in "fm" for speaker in ENROLLED[sex]]
    write_directory(root / "tiny_train", [(one, take) for one in TRAINING for take in (1, 2, 3)])
    write_directory(
        root / "tiny_test_enrolls",
        [(one, take) for one in everybody for take in (1, 2)],
        enrols=True,
    )
    for sex in "fm":
        spoken = [(one, take) for one in (*ENROLLED[sex], *STRANGERS[sex]) for take in (3, 4)]
        write_directory(root / f"tiny_test_trials_{sex}", spoken, models=ENROLLED[sex])
    for directory in sorted(root.iterdir()):
        write_twin(directory)
    return root


def write_originals(root):
    """The tiny set without twins."""
    return without_twins(write_layout(root))


def without_twins(root):
    """Remove the anonymised twins."""
    for twin in root.glob(f"*{SUFFIX}"):
        shutil.rmtree(twin)
    return root


def write_directory(path, utterances, *, models=(), enrols=False):
    """Write a data directory of (speaker, take)."""
    (path / "wav").mkdir(parents=True)
    names = {f"{speaker}-{take}": speaker for speaker, take in utterances}
    for speaker, take in utterances:
        sound = np.rint(speaker_sound(speaker, take, take) * 32767).astype(np.int16)
        soundfile.write(path / "wav" / f"{speaker}-{take}.wav", sound, RATE)
    write(path / "wav.scp", [f"{name} {path.name}/wav/{name}.wav" for name in names])
    write(path / "utt2spk", [f"{name} {speaker}" for name, speaker in names.items()])
    write(path / "spk2gender", sorted({f"{speaker} {speaker[0]}" for speaker in names.values()}))
    if enrols:
        write(path / "enrolls", list(names))
    if models:
        pairs = [
            (model, name, "target" if speaker == model else "nontarget")
            for model in models
            for name, speaker in names.items()
        ]
        write(path / "trials", [" ".join(pair) for pair in pairs])


def write_twin(directory):
    """An anonymised copy: each utterance through a filter of its own."""
    twin = directory.parent / f"{directory.name}{SUFFIX}"
    (twin / "wav").mkdir(parents=True)
    for path in sorted((directory / "wav").iterdir()):
        samples, rate = soundfile.read(path)
        taps = np.random.default_rng(crc32(path.stem.encode())).standard_normal(12)
        sound = lfilter(taps, [1.0], samples)
        soundfile.write(
            twin / "wav" / path.name,
            np.rint(0.5 * sound / np.abs(sound).max() * 32767).astype(np.int16),
            rate,
        )
    for name in ("utt2spk", "spk2gender", "enrolls", "trials"):
        if (directory / name).exists():
            shutil.copy(directory / name, twin / name)
    write(
        twin / "wav.scp",
        [f"{path.stem} {twin.name}/wav/{path.name}" for path in sorted((twin / "wav").iterdir())],
    )


def write(path, lines, *, end="\n"):
    """Write lines."""
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())


def lines_of(path):
    """Lines of a list."""
    return path.read_text().splitlines()


def recipe_options(data, output, *arguments, **settings):
    """Arguments of the recipe; settings have two underscores for the dot."""
    chosen = {**SETTINGS, **{key.replace("__", "."): value for key, value in settings.items()}}
    sets = [part for key, value in chosen.items() for part in ("--set", f"{key}={value}")]
    jobs = [] if "--jobs" in arguments else ["--jobs", "1"]
    suffix = [] if "--suffix" in arguments else ["--suffix", SUFFIX]
    return ["--data", str(data), "--output", str(output), *suffix, *jobs, *sets, *arguments]


def run_recipe(data, output, *arguments, page=False, **settings):
    """Run the recipe in this process. The page takes its time: only when asked."""

    def leave_out(results, path, **options):
        write_text(path, f"left out: {options}\n")

    options = recipe_options(data, output, *arguments, **settings)
    with nullcontext() if page else patch("evaluation.reports.write_page", leave_out):
        result = CliRunner().invoke(voiceprivacy.main, options)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def evaluated(data, output, *arguments, **settings):
    """Run the recipe, which ends well; what stands in results.json."""
    outcome = run_recipe(data, output, *arguments, **settings)
    assert outcome.status == 0, outcome.err
    return results_of(output)


def rows(table, **where):
    """Rows of a table of results with these values."""
    return [row for row in table if where.items() <= row.items()]


def condition(results, gender, scenario, attacker):
    """The one row of the tiny set, sex, scenario and attacker."""
    (found,) = rows(
        results["conditions"],
        dataset="tiny_test",
        gender=gender,
        scenario=scenario,
        attacker=attacker,
    )
    return found


def findings(results, check):
    """What a check has to say."""
    return rows(results["sanity"], check=check)


def stamps(paths):
    """Times of change."""
    return {path: path.stat().st_mtime_ns for path in paths}


def noting_extractor(folder):
    """Write an extractor of one's own, which notes each recording that it hears in the file ``calls``; its spec."""
    (folder / "own.py").write_text(EMBED.format(calls=str(folder / "calls")))
    return f"extractor:{folder}/own.py:embed"
