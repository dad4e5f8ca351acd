"""Trials with prompts: words are scored one by one, whatever the recording says."""

import numpy as np
import pytest

from evaluation.trials import Trials
from spkbase.errors import DataError
from spkver.backend import PromptedTrials, score_words, train_chain
from spkver.idmap import IdMap
from spkver.mixture import AlignedWords


def words_of(models, segments, texts):
    owners = np.repeat(np.arange(len(texts)), [*map(len, texts)])
    rows = IdMap.from_pairs((models[row], segments[row]) for row in owners)
    return AlignedWords(rows, np.array([word for text in texts for word in text], object), owners)


def test_scores_are_means_over_the_words_of_the_prompt():
    rng = np.random.default_rng(0)
    trials = Trials.from_ids(["m1:a-b", "m1:b-b", "m2:a-b", "m2:a-b"], ["s", "s", "s", "t"])
    prompts = [("a", "b"), ("b", "b"), ("a", "b"), ("a", "b")]
    prompted = PromptedTrials.from_prompts(trials, prompts)
    assert prompted.tested.tolist() == [0, 1, 0, 2]
    pairs = [*zip(prompted.rows.models, prompted.rows.segments, strict=True)]
    assert pairs == [("a b", "s"), ("b b", "s"), ("a b", "t")]
    enrolled = words_of(["m1", "m2"], ["e1", "e2"], [("a", "b", "a"), ("b", "a")])
    tested = words_of(prompted.rows.models, prompted.rows.segments, prompted.texts)
    known, vectors = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in rng.standard_normal((2, 6, 3))
    )
    backend = train_chain(rng.standard_normal((4, 3)), "cosine", speakers=["x", "x", "y", "y"])
    found = score_words(backend, (enrolled, known[:5]), (tested, vectors), prompted)
    models = {
        "m1 a": known[[0, 2]].mean(axis=0),
        "m1 b": known[1],
        "m2 b": known[3],
        "m2 a": known[4],
    }
    words = [["m1 a", "m1 b"], ["m1 b", "m1 b"], ["m2 a", "m2 b"], ["m2 a", "m2 b"]]
    for of_trial, row, value in zip(words, prompted.tested, found.values, strict=True):
        cosines = [models[name] @ vectors[2 * row + place] for place, name in enumerate(of_trial)]
        lengths = [np.linalg.norm(models[name]) for name in of_trial]
        assert value == pytest.approx(np.mean(np.divide(cosines, lengths)), abs=1e-9)


def test_words_without_enrolment_are_reported():
    prompted = PromptedTrials.from_prompts(Trials.from_ids(["m"], ["s"]), [("b",)])
    backend = train_chain(np.eye(2)[[0, 0, 1, 1]], "cosine", speakers=["x", "x", "y", "y"])
    with pytest.raises(DataError, match="1 model without a vector: m b"):
        score_words(
            backend,
            (words_of(["m"], ["e"], [("a",)]), np.ones((1, 2))),
            (words_of(["b"], ["s"], [("b",)]), np.ones((1, 2))),
            prompted,
        )
