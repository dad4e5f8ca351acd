"""Conversations: recordings of one speaker, dealt, scored and averaged at once, against loops over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evaluation as ev
from evaluation.calibration import Affine, apply_affine
from evaluation.embeddings import (
    Averaging,
    Embeddings,
    conversation_vectors,
    cosine_scores,
    deal_embeddings,
)
from evaluation.formats import read_conversations, read_key, write_conversations
from evaluation.trials import (
    Key,
    Scores,
    conversation_key,
    conversation_scores,
    count_conversations,
    draw_conversations,
    split_scores,
)
from spkbase.errors import ConfigError, DataError


def people(counts: dict[str, int]) -> dict[str, str]:
    """Recordings of speakers, so many of each."""
    owners = {}
    for speaker, count in counts.items():
        for take in range(count):
            owners[f"{speaker}{take}"] = speaker
    return owners


def random_case(seed: int) -> tuple[dict[str, str], Key, Scores]:
    """Speakers with one to six recordings, all pairs with three models in random order, and scores with ties."""
    draw = np.random.default_rng(seed)
    owners = people({name: int(draw.integers(1, 7)) for name in "abcd"})
    pairs = [(model, recording) for model in "abx" for recording in owners]
    pairs = [pairs[row] for row in draw.permutation(len(pairs))]
    models, recordings = zip(*pairs, strict=True)
    is_target = [owners[recording] == model for model, recording in pairs]
    values = draw.integers(0, 4, len(pairs)).astype(float)
    return (
        owners,
        Key.from_ids(models, recordings, is_target),
        Scores.from_ids(models, recordings, values),
    )


def test_recordings_are_dealt_into_full_groups_of_one_speaker_each_at_most_once() -> None:
    owners = people({"anna": 11, "bert": 5, "carl": 3})
    rounds = draw_conversations(owners, 5, seed=1, rounds=3)
    for conversations in rounds:
        used = [recording for recordings in conversations.values() for recording in recordings]
        assert len(set(used)) == len(used)
        sizes = {}
        for name, recordings in conversations.items():
            (speaker,) = {owners[recording] for recording in recordings}
            sizes.setdefault(speaker, []).append(len(recordings))
            assert {owners[recording] for recording in rounds[0][name]} == {speaker}
        assert sizes == {"anna": [5, 5], "bert": [5], "carl": [3]}
    assert len({tuple(sorted(part.values())) for part in rounds}) == 3


def test_the_deal_depends_on_the_seed_but_not_on_order_or_on_other_speakers() -> None:
    owners = people({"anna": 11, "bert": 9})
    (first,) = draw_conversations(owners, 3, seed=1)
    backwards = dict(reversed(owners.items()))
    assert draw_conversations(backwards, 3, seed=1) == [first]
    assert draw_conversations(owners, 3, seed=2) != [first]
    (alone,) = draw_conversations(people({"anna": 11}), 3, seed=1)
    assert alone.items() <= first.items()


def test_neither_names_nor_their_order_reveal_the_speaker() -> None:
    counts = {f"speaker{number:03}": 4 for number in range(200)}
    owners = people(counts)
    (conversations,) = draw_conversations(owners, 2)
    names = list(conversations)
    assert names == sorted(names)
    assert {len(name) for name in names} == {len("conversation-") + 16}
    place = np.array([int(owners[recordings[0]][7:]) for recordings in conversations.values()])
    # neighbours share a speaker no more often than by chance, which is 1 in 399
    assert np.mean(place[1:] == place[:-1]) < 0.02
    assert abs(np.corrcoef(place, np.arange(len(place)))[0, 1]) < 0.15


@pytest.mark.parametrize("utterances", [1, 2, 3])
@pytest.mark.parametrize("summed", [False, True])
def test_scores_and_keys_of_conversations_equal_loops_over_their_recordings(
    utterances: int, summed: bool
) -> None:
    for seed in range(100):
        owners, key, scores = random_case(seed)
        (conversations,) = draw_conversations(owners, utterances, seed=seed)
        value_of = dict(zip(scores.pairs(), scores.values.tolist(), strict=True))
        expected = {}
        for model in "abx":
            for name, recordings in conversations.items():
                values = [value_of[model, recording] for recording in recordings]
                expected[model, name] = sum(values) if summed else sum(values) / len(values)
        joined = conversation_scores(scores, conversations, summed=summed)
        assert dict(zip(joined.pairs(), joined.values.tolist(), strict=True)) == expected
        truth = conversation_key(key, conversations)
        for (model, name), same in zip(truth.pairs(), truth.is_target.tolist(), strict=True):
            assert same == (owners[conversations[name][0]] == model)
        assert len(truth) == len(expected)


def test_means_and_sums_of_calibrated_ratios_rank_conversations_alike() -> None:
    owners, _, scores = random_case(3)
    owners = {recording: owner for recording, owner in owners.items() if owner in "bcd"}
    (conversations,) = draw_conversations(owners, 2)
    conversations = {name: part for name, part in conversations.items() if len(part) == 2}
    affine = Affine((0.7,), -3.0, 0.5)
    ratios = Scores.from_ids(
        *zip(*scores.pairs(), strict=True), apply_affine(affine, scores.values)
    )
    means = conversation_scores(scores, conversations).values
    sums = conversation_scores(ratios, conversations, summed=True).values
    np.testing.assert_allclose(sums, 2 * (0.7 * means - 3.0), atol=1e-12)


def test_a_conversation_is_tested_only_against_models_common_to_its_recordings() -> None:
    key = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], is_target=[True, True, False])
    conversations = {"one": ("s", "t")}
    assert list(conversation_key(key, conversations).pairs()) == [("a", "one")]
    scores = Scores.from_ids(["b", "a", "a"], ["s", "s", "t"], [9.0, 1.0, 4.0])
    joined = conversation_scores(scores, conversations)
    assert list(joined.pairs()) == [("a", "one")]
    assert joined.values.tolist() == [2.5]


@pytest.mark.parametrize(
    ("labels", "conversations", "text"),
    [
        ([True, False, False], {"one": ("s", "t")}, "are target and nontarget trials of one model"),
        (
            [True, True, False],
            {"one": ("s", "t"), "two": ("u", "v")},
            "no model has trials with all recordings of 1 of 2 conversations",
        ),
    ],
)
def test_keys_that_do_not_fit_the_conversations_are_refused(
    labels: list[bool], conversations: Any, text: str
) -> None:
    key = Key.from_ids(["a", "a", "b"], ["s", "t", "u"], is_target=labels)
    with pytest.raises(DataError, match=text):
        conversation_key(key, conversations)


def test_a_conversation_without_recordings_is_refused() -> None:
    with pytest.raises(ConfigError, match="utterances is 0: expected a whole number of at least 1"):
        draw_conversations({"s": "a"}, 0)


def test_short_conversations_are_counted_in_words() -> None:
    (conversations,) = draw_conversations(people({"a": 4, "b": 1, "c": 1}), 2)
    text = "4 conversations of 2 recordings; 2 have fewer, all recordings of their speakers"
    assert count_conversations(conversations, 2) == text


def vectors(counts: dict[str, int], side: str, noise: float = 1.0, width: int = 20) -> Embeddings:
    """Places of speakers with noise, of people who are the same on both sides."""
    owners = people(counts)
    rows = []
    for recording, speaker in owners.items():
        place = np.random.default_rng([*speaker.encode()]).normal(size=width)
        moved = np.random.default_rng([*f"{side} {recording}".encode()]).normal(size=width)
        rows.append(place + noise * moved)
    return Embeddings.from_arrays(np.array(rows), speakers=list(owners.values()), ids=list(owners))


@pytest.mark.parametrize("mean", ["plain", "normalised"])
def test_vectors_of_conversations_are_means_over_their_versions(mean: Any) -> None:
    draws = [vectors({"a": 3, "b": 2}, side) for side in ("first", "second")]
    parts = {"two": [(1, "b0")], "one": [(0, "a2"), (1, "a0")]}
    means = conversation_vectors(draws, parts, averaging=Averaging(mean))
    both = np.stack([draws[0].vectors[2], draws[1].vectors[0]])
    if mean == "normalised":
        both = both / np.linalg.norm(both, axis=1, keepdims=True)
    assert means.ids.tolist() == ["one", "two"]
    assert means.speakers.tolist() == ["a", "b"]
    np.testing.assert_allclose(means.vectors[0], both.mean(axis=0), atol=1e-14)


def test_a_conversation_of_one_recording_has_the_vector_of_the_recording() -> None:
    tested = vectors({"a": 3}, "first")
    means = conversation_vectors([tested], {f"{row}": [(0, f"a{row}")] for row in range(3)})
    np.testing.assert_array_equal(means.vectors, tested.vectors)


def test_recordings_without_an_embedding_are_all_named() -> None:
    with pytest.raises(DataError) as error:
        conversation_vectors([vectors({"a": 1}, "x")], {"one": [(0, "u"), (0, "v"), (0, "a0")]})
    assert "'u'" in str(error.value)
    assert "'v'" in str(error.value)


def test_unknown_speakers_are_refused() -> None:
    tested = vectors({"a": 2}, "x")
    bare = Embeddings(tested.ids, tested.ids, tested.vectors, has_speakers=False)
    key = Key.from_ids(["a"], ["a0"], is_target=[True])
    with pytest.raises(DataError, match="the speakers of these recordings are not known"):
        deal_embeddings(bare, key, 2)


def test_errors_fall_with_the_number_of_recordings() -> None:
    counts = {f"p{number}x": 10 for number in range(30)}
    enrolled = vectors(counts, "enrolled", 1.0)
    tested = vectors(counts, "tested", 3.0)
    pairs = [(model, recording) for model in counts for recording in tested.ids.tolist()]
    models, recordings = zip(*pairs, strict=True)
    owners = dict(zip(tested.ids.tolist(), tested.speakers.tolist(), strict=True))
    key = Key.from_ids(models, recordings, [owners[name] == model for model, name in pairs])
    single = cosine_scores(enrolled, tested, key)
    rates = [ev.eer(*split_scores(single, key))]
    of_means = [rates[0]]
    for utterances in (2, 5):
        conversations, means = deal_embeddings(tested, key, utterances)
        truth = conversation_key(key, conversations)
        rates.append(ev.eer(*split_scores(cosine_scores(enrolled, means, truth), truth)))
        averaged = conversation_scores(single, conversations)
        of_means.append(ev.eer(*split_scores(averaged, truth)))
    for falling in (rates, of_means):
        assert falling[0] > falling[1] > falling[2]
        assert falling[0] > 2 * falling[2]


def test_files_of_conversations_are_read_back(tmp_path: Any) -> None:
    owners, key, _ = random_case(0)
    rounds = draw_conversations(owners, 2, rounds=2)
    truth = conversation_key(key, rounds[0])
    speakers = {name: owners[recordings[0]] for name, recordings in rounds[0].items()}
    write_conversations(tmp_path, truth, speakers, *rounds)
    assert read_conversations(tmp_path) == rounds[0]
    assert sorted(read_key(tmp_path / "trials").pairs()) == sorted(truth.pairs())
    assert (tmp_path / "conversations-round2").is_file()
