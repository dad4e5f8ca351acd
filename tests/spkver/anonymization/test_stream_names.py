"""Random numbers of the anonymisers."""

from hashlib import sha256

import numpy as np
import pytest

from spkver.anonymization.anonymizers import named_stream, stream_name


def draw(utterance="u", speaker="s", position=0, *, level="utterance", seeding="utterance", seed=0):
    return named_stream(
        stream_name(utterance, speaker, position, level=level, seeding=seeding), seed
    ).uniform(0.5, 0.9)


@pytest.mark.golden
def test_the_first_hundred_coefficients_equal_the_challenge(shared):
    with np.load(shared / "golden" / "mcadams" / "mcadams.npz") as golden:
        expected = golden["vpc2024_first_100_coefficients"]
    found = [
        draw(f"u{place}", f"s{place}", place, seeding="vpc2024", seed=place) for place in range(100)
    ]
    assert found == expected.tolist()


def test_speaker_level_draws_of_the_challenge_use_the_hash_of_the_id():
    expected = np.random.default_rng(int(sha256(b"1998").hexdigest()[:8], 16)).uniform(0.5, 0.9)
    assert draw("u1", "1998", 3, level="speaker", seeding="vpc2024") == expected
    assert draw("u2", "1998", 9, level="speaker", seeding="vpc2024", seed=7) == expected


def test_draws_depend_only_on_the_id_and_seed():
    assert draw("u", "a", 0) == draw("u", "b", 9)
    assert len({draw("u"), draw("v"), draw("u", seed=1), draw("u", "s", level="speaker")}) == 4
    assert draw("u", "s", 0, level="speaker") == draw("v", "s", 5, level="speaker")
    assert draw("u", "s", level="speaker") != draw("u", "t", level="speaker")
    assert draw("s") != draw("x", "s", level="speaker")


def test_only_speaker_level_draws_differ_between_sides():
    def drawn(side, level, seeding="utterance"):
        return named_stream(
            stream_name("u", "s", 3, level=level, seeding=seeding, side=side), 5
        ).uniform()

    sides = ("", "training", "enrolment", "trials")
    assert len({drawn(side, "speaker") for side in sides}) == 4
    # the sides of the challenge share their draws
    assert len({drawn(side, "speaker", "vpc2024") for side in sides}) == 1
    # files that exist stay unchanged
    assert len({drawn(side, "utterance") for side in sides}) == 1
