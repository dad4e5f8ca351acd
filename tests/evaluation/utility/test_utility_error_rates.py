"""Word and character error rates, against edit distances by brute force and resamples by copying."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.uncertainty.resampling import Resampling
from evaluation.utility.error_rates import (
    NORMALISERS,
    ErrorCounts,
    count_errors,
    error_rate,
    error_rate_differences,
)
from evaluation.utility.lists import read_labels, read_recordings, read_transcripts
from spkbase.errors import DataError


def fewest_edits(one, other):
    """Levenshtein's distance straight from its definition."""

    @cache
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (one[i - 1] != other[j - 1]),
        )

    return distance(len(one), len(other))


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "c"]), max_size=6)


@settings(max_examples=60)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_edits_are_minimal_and_their_kinds_add_up(pairs):
    reference = {f"u{n}": " ".join(one) for n, (one, _) in enumerate(pairs)} | {"x": "a"}
    hypothesis = {f"u{n}": " ".join(other) for n, (_, other) in enumerate(pairs)} | {"x": "a"}
    for unit, split in (
        ("words", str.split),
        ("characters", tuple),
        ("characters without blanks", lambda text: tuple(text.replace(" ", ""))),
    ):
        found = count_errors(reference, hypothesis, unit=unit)
        for row, utterance in enumerate(found.utterances):
            one, other = tuple(split(reference[utterance])), tuple(split(hypothesis[utterance]))
            hits, substitutions, deletions, insertions = found.counts[row].tolist()
            assert substitutions + deletions + insertions == fewest_edits(one, other)
            assert hits + substitutions + deletions == len(one)
            assert hits + substitutions + insertions == len(other)


def test_counts_and_rate_equal_hand_computed_values():
    reference = {"s1-a": "the cat sat on the mat", "s2-a": "yes", "s2-b": "no no"}
    hypothesis = {"s1-a": "the bat sat the mat too", "s2-a": "yes", "s2-b": ""}
    found = count_errors(reference, hypothesis)
    assert found.utterances == ["s1-a", "s2-a", "s2-b"]
    assert found.counts.tolist() == [[4, 1, 1, 1], [1, 0, 0, 0], [0, 0, 2, 0]]
    assert found.rate == 5 / 9
    report = error_rate(found, {"s1-a": "s1", "s2-a": "s2", "s2-b": "s2"}).to_dict()
    assert report["value"] == 5 / 9
    assert report["speakers"] == {"s1": 3 / 6, "s2": 2 / 3}
    assert (
        report["n_reference"],
        report["hits"],
        report["insertions"],
        report["n_utterances"],
    ) == (9, 5, 1, 3)
    assert (report["unit"], report["normaliser"]) == ("words", "none")


def test_empty_references_count_insertions_and_a_rate_may_exceed_one():
    found = count_errors({"a": "", "b": "one"}, {"a": "two three", "b": "one"})
    assert found.rate == 2.0
    assert error_rate(found, {"a": "s", "b": "t"}).speakers["t"] == 0.0
    assert np.isnan(error_rate(found, {"a": "s", "b": "t"}).speakers["s"])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none", "  The  CAT\tsat. ", "The CAT sat."),
        (
            "basic",
            "Don\u2019t \u201cstop\u201d - the well-known (cat)!",
            "don't stop the well known cat",
        ),
        (
            "basic",
            "'tis the dogs' bone \u00bfqu\u00e9? \uff21\uff22",
            "tis the dogs bone qu\u00e9 ab",
        ),
        (
            "basic",
            "\u3053\u3093\u306b\u3061\u306f\u3001\u4e16\u754c\u3002",
            "\u3053\u3093\u306b\u3061\u306f \u4e16\u754c",
        ),
        ("basic", "50 % & more\u2026", "50 more"),
    ],
)
def test_each_normaliser_gives_its_words(name, text, words):
    assert NORMALISERS[name](text) == words
    assert NORMALISERS[name](words) == words
    found = count_errors({"a": text}, {"a": words}, normaliser=name)
    assert (found.rate, found.normaliser) == (0.0, name)


def test_missing_hypotheses_are_refused_dropped_or_empty():
    reference, hypothesis = {"a": "x y", "b": "x"}, {"a": "x y"}
    with pytest.raises(DataError, match=r"hyp: 1 utterance missing: 'b'"):
        count_errors(reference, hypothesis, file="hyp")
    assert count_errors(reference, hypothesis, missing="empty").rate == 1 / 3
    assert count_errors(reference, hypothesis, missing="drop").rate == 0
    with pytest.raises(DataError, match=r"1 utterance missing: 'b'; 1 utterance unknown: 'c'"):
        count_errors(reference, {"a": "", "c": ""})
    with pytest.raises(DataError, match="no utterance has both"):
        count_errors(reference, {"z": "x"}, missing="drop")
    with pytest.raises(DataError, match="hold no word"):
        count_errors({"a": " "}, {"a": "x"})
    with pytest.raises(DataError, match="without a speaker: 'b'"):
        error_rate(count_errors(reference, reference), {"a": "s"})


def random_counts(seed, n_speakers=8, n_each=5):
    rng = np.random.default_rng(seed)
    utterances = [
        f"s{speaker}-{number}" for speaker in range(n_speakers) for number in range(n_each)
    ]
    counts = rng.integers(0, 9, (len(utterances), 4))
    counts[:, 0] += 5
    return ErrorCounts(utterances, counts, "words", "none"), {
        one: one.split("-")[0] for one in utterances
    }


def test_resamples_equal_copied_speakers():
    counts, speakers = random_counts(0)
    resampling = Resampling(resamples=40, seed=3)
    names = sorted(set(speakers.values()))
    rates = []
    for weights in resampling.weights(len(names)):
        assert weights.sum() == len(names)
        copied = [
            row
            for name, times in zip(names, weights, strict=True)
            for _ in range(int(times))
            for row in rows_of(counts, name)
        ]
        edits = counts.counts[copied].sum(axis=0)
        rates.append(edits[1:].sum() / edits[:3].sum())
    log = np.log(rates)
    found = error_rate(counts, speakers, resampling).interval
    from scipy.stats import t

    reach = t.ppf(0.975, len(names) - 1) * np.sqrt(8 / 7) * log.std(ddof=1)
    assert found.low == pytest.approx(counts.rate * np.exp(-reach))
    assert found.high == pytest.approx(counts.rate * np.exp(reach))


def rows_of(counts, speaker):
    return [row for row, one in enumerate(counts.utterances) if one.startswith(f"{speaker}-")]


def test_differences_share_their_draws():
    counts, speakers = random_counts(1)
    same, worse = error_rate_differences(
        [
            counts,
            counts,
            ErrorCounts(counts.utterances, counts.counts + np.array([0, 5, 0, 0]), "words", "none"),
        ],
        speakers,
    )
    assert same.value == 0
    assert np.isnan(same.low)
    assert 0 < worse.low < worse.value < worse.high
    other, _ = random_counts(2)
    with pytest.raises(DataError, match="must share utterances"):
        error_rate_differences(
            [counts, ErrorCounts(other.utterances[1:], other.counts[1:], "words", "none")], speakers
        )


def test_there_is_no_interval_without_draws_or_with_one_speaker():
    counts, speakers = random_counts(3)
    assert error_rate(counts, speakers, Resampling(0)).interval.note == "no resamples were drawn"
    alone = error_rate(counts, dict.fromkeys(speakers, "s"), Resampling(20)).interval
    assert np.isnan(alone.low)
    assert "one speaker" in alone.note


def test_transcripts_are_read_in_every_usual_form(tmp_path):
    (tmp_path / "text").write_bytes(
        "\ufeffb  two  words \r\n\r\na\r\nc\tvieil \u0153uvre\u2028x\n".encode()
    )
    assert read_transcripts(tmp_path / "text") == {
        "b": "two  words",
        "a": "",
        "c": "vieil \u0153uvre\u2028x",
    }
    (tmp_path / "utt2emo").write_text("a sad\nb\na angry\n")
    with pytest.raises(
        DataError,
        match=r"(?s)2 problems.*2: expected 'id emotion', got 1 column.*3: 'a' is repeated",
    ):
        read_labels(tmp_path / "utt2emo")


def test_recordings_are_found_beside_the_list_and_never_run(tmp_path):
    folder = tmp_path / "set"
    (folder / "wav").mkdir(parents=True)
    (folder / "wav" / "a b.wav").write_bytes(b"")
    (folder / "wav.scp").write_text("a wav/a b.wav\nb set/wav/a b.wav\n")
    assert {path.resolve() for path in read_recordings(folder).values()} == {
        (folder / "wav" / "a b.wav").resolve()
    }
    (folder / "wav.scp").write_text("a data/moved/wav/a b.wav\nb /gone/set/wav/a b.wav\n")
    assert set(read_recordings(folder).values()) == {folder / "wav" / "a b.wav"}
    (folder / "wav.scp").write_text("a touch owned |\nb nowhere.wav\n")
    with pytest.raises(DataError) as caught:
        read_recordings(folder)
    assert "'a' is a shell command" in str(caught.value)
    assert "the audio of 'b' is missing" in str(caught.value)
    with pytest.raises(DataError, match="cannot be read"):
        read_recordings(tmp_path)
