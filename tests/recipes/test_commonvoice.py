"""The command ``spkver commonvoice``: from clips and two lists to linkability of each condition."""

from __future__ import annotations

import csv
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from evaluation.commands import linkability_compare
from spkver.audio import read_audio, write_audio
from spkver.recipes.voiceprivacy.commonvoice import main

pytestmark = pytest.mark.whole

RATE = 16000
PITCHES = (300, 500, 800, 1200, 1700)  # one for each speaker

EXTRACTOR = '''
import numpy as np

def embed(samples, rate):
    """Return the spectrum in 40 bands."""
    power = np.abs(np.fft.rfft(samples)) ** 2
    return np.log(np.add.reduceat(power, np.arange(0, len(power) - 100, len(power) // 40)) + 1e-3)
'''
SILENCER = """
import numpy as np

def same_noise(samples, rate, utterance, rng):
    return rng.normal(size=len(samples)) * 0.1
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Clips of five speakers, each with a pitch, and two lists; read only."""
    folder = tmp_path_factory.mktemp("commonvoice")
    generator = np.random.default_rng(0)
    for speaker, pitch in enumerate(PITCHES):
        for take in range(4):
            seconds = np.arange(RATE // 2) / RATE
            samples = 0.3 * np.sin(2 * np.pi * pitch * seconds)
            samples += 0.01 * generator.normal(size=len(samples))
            write_audio(folder / "clips" / f"s{speaker}_{take}.wav", samples, RATE)
    for name, takes in {"A": (0, 1), "B": (2, 3)}.items():
        lines = ["client_id\tpath"]
        for speaker in range(len(PITCHES)):
            lines += [f"person{speaker}\ts{speaker}_{take}.wav" for take in takes]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    (folder / "ltas.py").write_text(EXTRACTOR)
    (folder / "silencer.py").write_text(SILENCER)
    return folder


def run(corpus, output, *options, enroll="A.tsv", utterances="1,2"):
    arguments = [str(corpus / "clips"), "--enroll", str(corpus / enroll), "--test"]
    arguments += [str(corpus / "B.tsv"), "--output", str(output), "--jobs", "1"]
    arguments += ["--extractor", f"{corpus}/ltas.py:embed", "--utterances", utterances, *options]
    return CliRunner().invoke(main, arguments)


def test_original_speech_is_linked_and_noise_is_not(corpus, tmp_path):
    noise = f"{corpus}/silencer.py:same_noise"
    outcome = run(corpus, tmp_path / "out", "--anonymizer", noise)
    assert outcome.exit_code == 0, outcome.output
    text = (tmp_path / "out/linkability.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    rates = {(row["anonymiser"], row["utterances"]): float(row["rank 1"]) for row in rows}
    assert rates["original", "1"] == rates["original", "2"] == 1
    assert rates[noise, "1"] < 0.7
    assert {row["enrolled"] for row in rows} == {"5"}
    assert len(list((tmp_path / "out/linkability").glob("*/*/linkability.json"))) == 2


def test_speech_anonymised_elsewhere_is_compared_by_the_printed_command(corpus, tmp_path):
    folder = tmp_path / "b3"
    for path in (corpus / "clips").iterdir():
        write_audio(folder / f"{path.stem}_anon.wav", -read_audio(path)[0], RATE)
    noise = f"{corpus}/silencer.py:same_noise"
    outcome = run(corpus, tmp_path / "out", "--anonymised", f"B3={folder}", "--anonymizer", noise)
    assert outcome.exit_code == 0, outcome.output
    words = shlex.split(outcome.stdout.splitlines()[-1].partition("linkability-compare ")[2])
    assert words[-2:] == ["--output", str(tmp_path / "out/compared")]
    compared = CliRunner().invoke(
        linkability_compare.linkability_compare, [*words[:-2], "--permutations", "10"]
    )
    assert compared.exit_code == 0, compared.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--anonymised", "B3"), "--anonymised B3: expected NAME=DIR"),
        (("--anonymizer", "mcadams", "--anonymised", "mcadams=x"), "of different names"),
        (("--anonymizer", "original"), "of different names"),
        (("--anonymised", "B3=nowhere"), "nowhere"),
    ],
)
def test_options_that_make_no_sense_are_refused(corpus, tmp_path, options, message):
    outcome = run(corpus, tmp_path / "out", *options)
    assert outcome.exit_code != 0
    assert message in outcome.output


def test_speech_that_was_not_anonymised_is_refused(corpus, tmp_path):
    (corpus / "nothing.py").write_text(
        "def identity(samples, rate, utterance, rng):\n    return samples\n"
    )
    outcome = run(corpus, tmp_path / "out", "--anonymizer", f"{corpus}/nothing.py:identity")
    assert outcome.exit_code != 0
    assert "original audio in 10 of 10 utterances" in outcome.output


def test_a_tested_speaker_who_is_not_enrolled_is_named(corpus, tmp_path):
    lines = (corpus / "A.tsv").read_text().splitlines(keepends=True)
    (corpus / "few.tsv").write_text("".join(lines[:-2]))
    outcome = run(corpus, tmp_path / "out", enroll="few.tsv")
    assert outcome.exit_code != 0
    assert "1 speaker not in the enrolment list: person4" in outcome.output


def test_speakers_in_another_order_raise_a_warning(corpus, tmp_path):
    lines = []
    for line in (corpus / "A.tsv").read_text().splitlines():
        speaker, path = line.split("\t")
        digit = speaker[-1]
        if digit.isdigit():
            speaker = f"person{(int(digit) + 1) % len(PITCHES)}"
        lines.append(f"{speaker}\t{path}\n")
    (corpus / "shifted.tsv").write_text("".join(lines))
    outcome = run(corpus, tmp_path / "out", enroll="shifted.tsv")
    assert outcome.exit_code == 0, outcome.output
    assert "are the speakers of both lists right?" in outcome.output


@pytest.mark.parametrize("utterances", ["0", "1,-3", "1;3", "all,some", ""])
def test_invalid_numbers_of_utterances_are_refused(corpus, tmp_path, utterances):
    outcome = run(corpus, tmp_path / "out", utterances=utterances)
    assert outcome.exit_code != 0
    assert "expected numbers or all, such as 1,3,5" in outcome.output


@pytest.mark.parametrize("enroll", ["B.tsv", "A_and_B.tsv"])
def test_a_recording_on_both_sides_is_refused(corpus, tmp_path, enroll):
    both = (corpus / "A.tsv").read_text() + (corpus / "B.tsv").read_text().partition("\n")[2]
    (corpus / "A_and_B.tsv").write_text(both)
    outcome = run(corpus, tmp_path / "out", enroll=enroll)
    assert outcome.exit_code != 0
    assert "10 recordings also in the enrolment list" in outcome.output


def test_a_clip_that_the_anonymiser_left_out_is_named(corpus, tmp_path):
    folder = tmp_path / "b3"
    folder.mkdir()
    for path in (corpus / "clips").iterdir():
        if path.stem != "s3_2":
            write_audio(folder / path.name, -read_audio(path)[0], RATE)
    outcome = run(corpus, tmp_path / "out", "--anonymised", f"B3={folder}")
    assert outcome.exit_code != 0
    assert "s3_2" in outcome.output
