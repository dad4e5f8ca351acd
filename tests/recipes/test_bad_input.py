"""Everything that can be wrong with what a recipe is given: one error, status 2, nothing half-written."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from recipe_runs import RECIPES, Outcome, leftovers, options, refused

pytestmark = pytest.mark.whole

BAD, WORSE = "sph/male/m101/m101_01_001", "sph/male/m004/m004_04_002"
NDX = "key/part1/ndx/3sess-pwd_eval_m.ndx"
RNG = np.random.default_rng(0)
NOISE = 0.1 * RNG.standard_normal(9600)
FLAC_HALF = 0.5  # share of the file that is left


def audio(samples, rate=16000, **options):
    """Replace one recording by another."""
    return lambda corpus: soundfile.write(corpus / f"{BAD}.wav", samples, rate, **options)


def replaced(extension, content=None, *, keep=1.0):
    """Replace one recording by a file in another container, cut off or with other content."""

    def damage(corpus):
        old, new = corpus / f"{BAD}.wav", corpus / f"{BAD}.{extension}"
        samples, rate = soundfile.read(old)
        old.unlink()
        if content is None:
            soundfile.write(
                new, samples, rate, format={"sph": "NIST", "flac": "FLAC", "wav": "WAV"}[extension]
            )
            new.write_bytes(new.read_bytes()[: int(keep * new.stat().st_size)])
        else:
            new.write_bytes(content)

    return damage


def line(name, text):
    """Add a line to a key file."""

    def damage(corpus):
        with (corpus / name).open("a") as file:
            file.write(text + "\n")

    return damage


def check(outcome, output, *words):
    """One clear error with these words, status 2, and nothing half-written."""
    refused(outcome, *words)
    assert not leftovers(output)
    assert not (output / "results.json").exists()


HEADER_SHOWS = {
    "empty": (replaced("wav", b""), ["m101_01_001.wav: is empty", "copy"]),
    "one frame": (audio(NOISE[:400]), ["400 samples are too short", "remove"]),
    "wrong rate": (audio(NOISE, 8000), ["8000 Hz, expected 16000", "features.resample=true"]),
    "stereo": (audio(np.stack([NOISE, NOISE], axis=1)), ["2 channels", "features.channel"]),
    "missing": (
        lambda corpus: (corpus / f"{BAD}.wav").unlink(),
        [r"\.trn:1: no recording 'm101/m101_01_001'", "copy"],
    ),
    "wav cut": (replaced("wav", keep=0.6), ["cut off", "copy"]),
}
SAMPLES_SHOW = {
    "NaN": (
        audio(np.full(9600, np.nan), subtype="FLOAT"),
        ["9600 of 9600 samples are NaN", "write the file again"],
    ),
    "out of all range": (
        audio(NOISE * 1e30, subtype="FLOAT"),
        ["times full scale", "divide them by 32768"],
    ),
    "digital silence": (audio(np.zeros(9600)), ["digital silence", "remove"]),
    "no speech": (
        audio(np.where(np.arange(9600) == 4000, 0.9, 0)),
        ["no speech: . of 58 frames", "features.vad"],
    ),
    "flac cut": (replaced("flac", keep=FLAC_HALF), [r"\.flac: cut off or damaged", "copy"]),
}


BAD_SETTINGS = (
    ({"ubm__component": 8}, ["unknown configuration key 'ubm.component'", r"ubm\.components\?"]),
    ({"ubm__components": 100}, ["power of two", "64 and 128"]),
    ({"ubm__components": 4096}, ["ubm.components is 4096", "at most 1920 frames", "lower it"]),
    ({"nap__rank": 25}, ["nap.rank is 25", "24 sessions", "lower it"]),
    (
        {"nap__rank": 21, "nap__scatter": "within"},
        ["nap.rank is 21", "only 20 directions within speakers"],
    ),
    ({"background__size": 33}, ["background.size is 33", "only 32", "32 or less"]),
    ({"background__sentences": "[5, 6]"}, ["no recordings of background speakers"]),
    ({"trials__target": "[XX]"}, ["TC, TW, IC, IW"]),
    ({"features__preset": "mine"}, ["sidekit, telephone, wideband, librosa, kaldi"]),
    ({"features__vad": "labels", "features__labels_dir": "/none"}, ["in 64 files", "label file"]),
    ({"features__channel": 1}, ["in 64 files", "no channel 1"]),
)
CASES = {
    name: (damage, {}, words) for name, (damage, words) in {**HEADER_SHOWS, **SAMPLES_SHOW}.items()
}
CASES |= {str(settings): (None, settings, words) for settings, words in BAD_SETTINGS}
CASES["unknown model"] = (
    line(NDX, "m999_001,m101/m101_02_001.sph,Y,N,N,N"), {}, [r"\.ndx:129: model 'm999_001'", "enrolment"],
)  # fmt: skip
CASES["no corpus"] = shutil.rmtree, {}, ["no such folder", "holds sph and key"]
CASES["several"] = (
    lambda corpus: [audio(NOISE, 8000)(corpus), (corpus / f"{WORSE}.wav").write_bytes(b"")], {"nap__rank": 25},
    ["3 problems", "8000 Hz", "is empty", "nap.rank is 25"],
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_reported_before_the_first_step_that_needs_it(
    recipe, own_corpus, tmp_path, case
):
    damage, settings, words = CASES[case]
    if damage is not None:
        damage(own_corpus)
    output = tmp_path / "out"
    outcome = recipe(own_corpus, output, **settings)
    check(outcome, output, *words)
    assert not (output / "features.h5").exists()
    if case not in SAMPLES_SHOW:
        assert not (output / "task").exists(), "lists are checked before they are written"
        assert "\nfeatures:" not in outcome.err


def test_more_gaussians_than_speech_frames_are_refused(recipe, tiny, tmp_path):
    """Only the detector knows how many frames are speech, so this one comes after the features."""
    settings = {
        "ubm__components": 1024,
        "features__vad": "percentile",
        "features__vad_percentile": 60,
    }
    outcome = recipe(tiny, tmp_path, **settings)
    check(outcome, tmp_path, "frames cannot train 1024 Gaussians", "lower ubm.components")
    assert (tmp_path / "features.h5").is_file()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["cannot be read: No such file"]),
        (
            b"ubm:\n  component: 4\nsed: 1\n",
            [r":2: unknown .*ubm\.component'", r":3: unknown .*'sed': did you mean seed"],
        ),
        (b"seed: 1\nmap:\n  relevance: -1\n", [r":3: map\.relevance is -1"]),
    ],
)
def test_bad_configuration_files_are_refused(recipe, tiny, tmp_path, content, words):
    config = tmp_path / "my.yaml"
    if content is not None:
        config.write_bytes(content)
    output = tmp_path / "out"
    check(recipe(tiny, output, "--config", str(config)), output, r"my\.yaml:", *words)
    assert not output.exists()


def test_a_full_disk_is_one_error_and_the_run_can_be_resumed(recipe, tiny, tmp_path):
    """A file may have so many bytes, as on a disk that is full; with space, the same command gets there."""
    import resource

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    output = tmp_path / "out"
    command = [sys.executable, str(RECIPES / "svm_gmm.py"), *options(tiny, output)]
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=full, timeout=120, check=False
    )
    outcome = Outcome(done.returncode, done.stdout, done.stderr)
    check(outcome, output, r"features\.h5\S*: cannot be written: File too large", "free space")
    assert not (output / "features.h5").exists()
    assert outcome.err.count("File too large") == 1
    assert recipe(tiny, output).status == 0
