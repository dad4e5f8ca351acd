"""Speakers of trials: maps, ids, the joins that target trials make, contradictions, and ids that are no speakers."""

import logging

import pytest

from evaluation.trials import Key
from evaluation.trials.speakers import (
    doubt_speakers,
    find_speakers,
    group_trials,
    read_speakers,
    shared_prefixes,
)
from spkbase.errors import DataError

# two models, of which 'anna' is the speaker of s1 and s2; s3 is of nobody
KEY = Key.from_ids(
    ["anna", "anna", "anna", "bert", "bert"],
    ["s1", "s2", "s3", "s1", "s4"],
    [True, True, False, False, True],
)


def named(key, **maps):
    found = find_speakers(key, **maps)
    return list(zip(found.names[found.models], found.names[found.segments], strict=True))


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        (
            None,
            [
                ("anna", "anna"),
                ("anna", "anna"),
                ("anna", "s3"),
                ("bert", "anna"),
                ("bert", "bert"),
            ],
        ),
        (
            {"s1": "anna", "s2": "anna", "s3": "bert", "s4": "bert", "unused": "x"},
            [
                ("anna", "anna"),
                ("anna", "anna"),
                ("anna", "bert"),
                ("bert", "anna"),
                ("bert", "bert"),
            ],
        ),
        (  # models have the speakers of their target segments
            {"s1": "spk1", "s2": "spk1", "s3": "spk9", "s4": "spk2"},
            [
                ("spk1", "spk1"),
                ("spk1", "spk1"),
                ("spk1", "spk9"),
                ("spk2", "spk1"),
                ("spk2", "spk2"),
            ],
        ),
    ],
)
def test_speakers_are_found_on_both_sides(segments, expected):
    assert named(KEY, segment_speakers=segments) == expected
    assert find_speakers(KEY, segment_speakers=segments).names.tolist() == sorted(
        {*sum(expected, ())}
    )


def test_several_models_of_a_speaker_are_joined():
    key = Key.from_ids(["m1", "m2", "m3"], ["s", "s", "t"], [True, True, True])
    found = find_speakers(key)
    assert found.models.tolist() == found.segments.tolist()
    assert len(found.names) == 2
    # the same by maps
    both = named(
        key, model_speakers={"m1": "a", "m2": "a", "m3": "b"}, segment_speakers={"s": "a", "t": "b"}
    )
    assert both == [("a", "a"), ("a", "a"), ("b", "b")]


def test_nontarget_trials_within_a_speaker_are_allowed():
    key = Key.from_ids(["a", "a", "b"], ["s1", "s2", "s3"], [True, False, True])
    assert named(key, segment_speakers={"s1": "a", "s2": "a", "s3": "b"})[1] == ("a", "a")


def test_unenrolled_speakers_are_counted(caplog):
    with caplog.at_level(logging.WARNING, "evaluation"):
        find_speakers(KEY)
    assert "1 of 4 segments" in caplog.text


def test_missing_ids_are_named():
    with pytest.raises(DataError, match="2 of 4 segments without a speaker: 's3', 's4'"):
        find_speakers(KEY, segment_speakers={"s1": "anna", "s2": "anna"})
    with pytest.raises(DataError, match="1 of 2 models without a speaker: 'bert'"):
        find_speakers(KEY, model_speakers={"anna": "x"})


def test_contradictions_are_named():
    with pytest.raises(DataError, match="'x' and 'y' are one"):
        find_speakers(KEY, segment_speakers={"s1": "x", "s2": "y", "s3": "z", "s4": "z"})
    maps = {
        "model_speakers": {"anna": "p", "bert": "q"},
        "segment_speakers": dict.fromkeys(["s1", "s2"], "p"),
    }
    maps["segment_speakers"] |= {"s3": "q", "s4": "p"}
    with pytest.raises(DataError, match="'p' and 'q' are one"):
        find_speakers(KEY, **maps)


def test_speaker_maps_are_read(tmp_path):
    path = tmp_path / "utt2spk"
    path.write_bytes("\ufeffu1 spk1\r\n\r\nu/2\tspkß\r\n".encode())
    assert read_speakers(path) == {"u1": "spk1", "u/2": "spkß"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n", "got an empty file"),
        (b"u1 s1\nu2\n", ":2: expected 'id speaker', got 1 column: 'u2'"),
        (b"u1 s1 x\n", ":1: expected 'id speaker', got 3 columns"),
        (b"u1 s1\nu2 s1\nu1 s2\n", ":3: 'u1' has the speaker 's2', but 's1' in line 1"),
        (b"u1 s1\nu2 \xff\xfe\n", ":2: expected text in UTF-8"),
        (b"u1\nu2\n", "2 problems"),
    ],
)
def test_bad_maps_are_refused(tmp_path, content, message):
    path = tmp_path / "map"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_speakers(path)


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
def test_shared_prefixes_group_ids(ids, groups):
    assert {prefix: len(names) for prefix, names in shared_prefixes(ids).items()} == groups


def test_segments_without_a_target_trial_may_share_a_speaker():
    rows = [
        ("anna", "a-1", True),
        ("bert", "b-1", True),
        ("anna", "x-1", False),
        ("bert", "x-2", False),
    ]
    models, segments, target = zip(*rows, strict=True)
    key = Key.from_ids([*models, "anna"], [*segments, "y-1"], is_target=[*target, False])
    doubt = doubt_speakers(key)
    assert doubt.side == "segment"
    assert "2 of 3 segments that are in no target trial have ids that begin alike" in doubt.text
    names = dict.fromkeys(["x-1", "x-2"], "x") | {"a-1": "anna", "b-1": "bert", "y-1": "y"}
    assert doubt_speakers(key, segment_speakers=names) is None


def test_models_get_the_speakers_of_their_target_segments():
    key = Key.from_ids(["m_1", "m_2", "n_1"], ["s", "t", "u"], is_target=[True, True, True])
    assert doubt_speakers(key) is not None
    assert doubt_speakers(key, segment_speakers={"s": "m", "t": "m", "u": "n"}) is None
    assert doubt_speakers(key, model_speakers={"m_1": "m", "m_2": "m", "n_1": "n"}) is None


@pytest.mark.parametrize(("one", "other"), [("anna", "Anna"), ("Zo\xeb", "Zoe\u0308")])
def test_speaker_names_that_differ_only_in_case_or_unicode_form_raise_a_warning(
    tmp_path, caplog, one, other
):
    (tmp_path / "utt2spk").write_text(f"u1 {one}\nu2 {other}\nu3 bert\n", encoding="utf-8")
    assert len(set(read_speakers(tmp_path / "utt2spk").values())) == 3
    find_speakers(Key.from_ids([one, other, "bert"], ["s", "t", "u"], [True, True, False]))
    assert [
        "some names of speakers differ in case" in message for message in caplog.messages
    ].count(True) == 2


@pytest.mark.parametrize(
    "speakers", [{"a/1": "a", "b/1": "b", "a/x": "a", "b/x": "b"}, lambda name: name[0], "/"]
)
def test_a_map_a_function_and_a_separator_give_the_same_speakers(speakers):
    key = Key.from_ids(["a/1", "a/1", "b/1", "b/1"], ["a/x", "b/x"] * 2, [True, False, False, True])
    found = find_speakers(key, model_speakers=speakers, segment_speakers=speakers)
    assert (found.names.tolist(), found.models.tolist(), found.segments.tolist()) == (
        ["a", "b"],
        [0, 0, 1, 1],
        [0, 1] * 2,
    )


def test_spellings_that_differ_between_two_maps_raise_a_warning(caplog):
    """Each map alone is consistent."""
    key = Key.from_ids(
        ["m1", "m1", "m2", "m2"], ["s1", "s2", "s1", "s3"], [True, False, False, True]
    )
    models = {"m1": "anna", "m2": "bert"}
    find_speakers(
        key, model_speakers=models, segment_speakers={"s1": "anna", "s2": "carl", "s3": "bert"}
    )
    assert not caplog.text
    find_speakers(
        key, model_speakers=models, segment_speakers={"s1": "anna", "s2": "Bert", "s3": "bert"}
    )
    assert "such as 'Bert' and 'bert' (1 in all): each is a speaker" in caplog.text


def test_ids_in_another_spelling_raise_a_warning(caplog):
    key = Key.from_ids(["Anna", "Anna"], ["anna", "bert"], [True, False])
    group_trials(key, {"anna": "f", "bert": "m"})  # groups are known only for the segments
    assert (
        "such as 'Anna' and 'anna' (1 in all): each is an id of its own, which the table lacks"
        in caplog.text
    )
