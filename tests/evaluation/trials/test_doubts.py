"""Ids that are no speakers: several models of one, several recordings of one, and names that only look so."""

from __future__ import annotations

import pytest

from evaluation.trials import Key, doubt_speakers
from evaluation.trials.speakers import shared_prefixes


@pytest.mark.parametrize(
    ("ids", "groups"),
    [
        (["m101_001", "m101_002", "m102_001"], {"m101": 2}),
        (["corpus-m101-1", "corpus-m101-2", "corpus-m102-1"], {"corpus-m101": 2}),
        (["id10270/a/1.wav", "id10270/b/1.wav", "id10300/c/1.wav"], {"id10270": 2}),
        (["spk_1", "spk_2"], {}),
        (["1272", "84", "174"], {}),
        (["anna", "bert_x"], {}),
        ([], {}),
    ],
)
def test_prefixes(ids: list[str], groups: dict[str, int]) -> None:
    assert {prefix: len(names) for prefix, names in shared_prefixes(ids).items()} == groups


def test_segments_without_a_target_trial_may_share_a_speaker() -> None:
    rows = [("anna", "a-1", True), ("bert", "b-1", True), ("anna", "x-1", False), ("bert", "x-2", False)]
    models, segments, target = zip(*rows, strict=True)
    key = Key.from_ids([*models, "anna"], [*segments, "y-1"], is_target=[*target, False])
    doubt = doubt_speakers(key)
    assert doubt is not None
    assert doubt.side == "segment"
    assert "2 of 3 segments that are in no target trial have ids that begin alike" in doubt.text
    names = dict.fromkeys(["x-1", "x-2"], "x") | {"a-1": "anna", "b-1": "bert", "y-1": "y"}
    assert doubt_speakers(key, segment_speakers=names) is None


def test_models_have_the_speakers_of_their_target_segments() -> None:
    key = Key.from_ids(["m_1", "m_2", "n_1"], ["s", "t", "u"], is_target=[True, True, True])
    assert doubt_speakers(key) is not None
    assert doubt_speakers(key, segment_speakers={"s": "m", "t": "m", "u": "n"}) is None
    assert doubt_speakers(key, model_speakers={"m_1": "m", "m_2": "m", "n_1": "n"}) is None
