"""Words as text: repetitions of a decoder, and agreement with a reference."""

import math

import pytest

from spkver.recognition import agreement, without_loops


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("yes " + "no " * 12 + "maybe", "yes no maybe"),
        ("and on and on and on and on and on and on", "and on"),
        (
            "it was " + "the storage is going to " * 7 + "the storage is",
            "it was the storage is going to",
        ),
        ("a b c " * 4 + "d " * 12, "a b c d"),
    ],
)
def test_repeated_phrases_are_kept_once(text, kept):
    assert without_loops(text.split(), 60.0) == (kept.split(), True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no no no no no",
        "one two three one two three one two three",
        "the cat sat on the mat and the dog sat on the rug and the cow sat on the cat",
        "nine " * 11,
    ],
)
def test_natural_repetitions_are_kept(text):
    assert without_loops(text.split(), 60.0) == (text.split(), False)


def test_implausibly_many_words_are_cut():
    words = [f"word{number}" for number in range(50)]
    assert without_loops(words, 2.0) == (words[:18], True)
    assert without_loops(words, 6.0) == (words, False)


def test_agreement_is_the_recognised_share_of_the_reference():
    references = {
        "a": "Kids are talking by the door.",
        "b": "IT\N{RIGHT SINGLE QUOTATION MARK}S WELL-KNOWN",
        "c": "gone",
    }
    recognised = {"a": "KIDS ARE WALKING TO BY THE DOOR", "b": "it's well known"}
    assert agreement(references, recognised) == pytest.approx(8 / 9)
    assert agreement({"a": "\u6211\u4eec\u5728\u8fd9\u91cc"}, {"a": "WE ARE HERE"}) == 0
    assert math.isnan(agreement({}, recognised))
