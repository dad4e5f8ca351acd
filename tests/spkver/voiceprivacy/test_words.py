"""Utility by words: against the text, against what is recognised in the original speech, and words not understood."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from evaluation.reports import (
    Condition,
    Linkability,
    Results,
    UtilityFigure,
    UtilityRate,
    summarise,
)
from spkbase.configuration import load_config
from spkbase.runs import start_run
from spkver.audio import write_audio
from spkver.datadir import read_datadir
from spkver.recognition import Recogniser
from spkver.voiceprivacy.checks import Evaluated, other_notes
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.utility import utility

WORDS = {
    8001: "ONE TWO THREE FOUR",
    8002: "ONE TWO THREE THREE",
    8003: "BIN TWO THREE FOUR",
    8004: "",
    8005: "AND ON " * 9,
}


def words_by_length(samples):
    """Recognise recordings by their length."""
    return WORDS[len(samples)]


@pytest.fixture(autouse=True)
def recogniser(monkeypatch):
    """The only recogniser that is installed."""
    stand_in = Recogniser("stand-in", words_by_length)
    monkeypatch.setattr("spkver.recognition.open_recogniser", lambda name: {"mine": stand_in}[name])


@pytest.fixture
def rates(tmp_path):
    """Compute the figures of words for recordings of given lengths: a function."""

    def write(name, lengths, texts):
        folder = tmp_path / name
        folder.mkdir()
        utterances = [f"u{number}" for number in range(len(lengths))]
        for utterance, length in zip(utterances, lengths, strict=True):
            write_audio(folder / f"{utterance}.wav", np.full(length, 0.1), 16000)
        (folder / "wav.scp").write_text(
            "".join(f"{name} {folder}/{name}.wav\n" for name in utterances)
        )
        (folder / "utt2spk").write_text("".join(f"{name} s{name}\n" for name in utterances))
        if texts:
            lines = [f"{name} {text}\n" for name, text in zip(utterances, texts, strict=True)]
            (folder / "text").write_text("".join(lines))
        return read_datadir(folder)

    def compute(original, anonymised, texts=()):
        tried = {"f": "x_test_trials_f"}
        sets = SimpleNamespace(
            datasets=[SimpleNamespace(name="x_test", trials=tried)],
            original={tried["f"]: write("original", original, texts)},
            twins={tried["f"]: write("anonymised", anonymised, texts)},
            emotions=(),
        )
        settings = ["utility.wer=true", "utility.recogniser=mine", "evaluation.resamples=0"]
        config = load_config(Config, settings=settings)
        with start_run(tmp_path / "out", {}, jobs=1) as run:
            steps = {"begin": lambda step: None, "end": lambda step, text: None}
            return utility(SimpleNamespace(run=run, config=config, **steps), sets)

    return compute


def values(figures):
    return {(figure.measure, *figure.names[1:]): figure.rate.value.value for figure in figures}


def test_words_are_compared_with_the_text_and_the_original(rates):
    figures = rates([8002, 8001], [8003, 8001], texts=["One, two, three, four."] * 2)
    expected = {
        ("wer", "original"): 1 / 8,
        ("wer", "anonymised"): 1 / 8,
        ("wer_to_original", "anonymised"): 2 / 8,
    }
    computed = values(figures)
    assert {key: computed.pop(key) for key in expected} == expected
    assert set(computed) == {("cer", "original"), ("cer", "anonymised")}
    assert {figure.rate.recogniser for figure in figures} == {"stand-in"}


def test_without_text_words_are_compared_only_with_the_original(rates):
    assert values(rates([8001], [8002])) == {("wer_to_original", "anonymised"): 1 / 4}


def test_unintelligible_originals_do_not_count_against_anonymised_speech(rates):
    (figure,) = rates(
        [8001, 8001], [8001, 8002], texts=["zhe shi pu tong hua", "wo men zai zhe li two"]
    )
    assert (figure.measure, figure.kind) == ("wer", "original")
    assert (
        "x_test: the words were not understood: 9 % of them agree with text. So"
        in figure.rate.warning
    )


def test_silent_originals_and_repetitions_are_reported(rates, tmp_path):
    (figure,) = rates([8004], [8001])
    assert math.isnan(figure.rate.value.value)
    assert figure.rate.warning.startswith("x_test: no word was recognised in the original speech")


def test_recordings_with_repetitions_of_the_recogniser_are_named(rates):
    (figure,) = rates([8001, 8001], [8001, 8005])
    assert figure.rate.warning == "stand-in repeated itself in 1 of 2 recordings, and was cut: u1."


def test_the_report_explains_doubtful_words_and_missing_measurements():
    row = Condition("x", "all", "ignorant", "gmm-svm", linkability=Linkability((2,), (1.0,)))
    doubtful = UtilityFigure(
        "wer", ("x", "original"), UtilityRate(warning="the words were not understood")
    )
    results = Results(conditions=(row,), outcomes=tuple(summarise([row])), utility=(doubtful,))
    run = Evaluated(results, SimpleNamespace(rates=""), Config())
    findings = [(finding.level, finding.check) for finding in other_notes(run)]
    assert findings == [("note", "words"), ("warning", "utility")]
