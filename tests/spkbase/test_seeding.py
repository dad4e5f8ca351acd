"""Streams of random numbers by name: the bytes that finished runs were made with."""

import hashlib

import numpy as np
import pytest

from spkbase.seeding import stream
from spkver.anonymization.anonymizers import named_stream
from spkver.features.extraction import recording_generator

NAMES = ["anna", "é x", "a/b\udc80"]


def words_of(name, count):
    """Little-endian words of the hash, spelled out byte by byte."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return [
        sum(byte << (8 * place) for place, byte in enumerate(digest[4 * k : 4 * k + 4]))
        for k in range(count)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 3, 2**40])
def test_each_purpose_keeps_its_numbers(name, seed):
    recording = np.random.Generator(
        np.random.SFC64(np.random.SeedSequence([seed, *words_of(name, 4)]))
    )
    assert recording_generator(name, seed).random(3).tolist() == recording.random(3).tolist()
    speaker = np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=tuple(words_of(name, 4)))
    )
    assert (
        stream(seed, name, words=4, spawned=True).random(3).tolist() == speaker.random(3).tolist()
    )
    anonymised = np.random.default_rng([seed, *words_of(f"speaker {name}", 8)])
    assert (
        named_stream(f"utterance speaker {name}", seed).random(3).tolist()
        == anonymised.random(3).tolist()
    )


def test_names_are_joined_by_spaces():
    assert stream(0, "speaker", "anna").random() == stream(0, "speaker anna").random()
    assert stream(0, "anna").random() != stream(1, "anna").random()
