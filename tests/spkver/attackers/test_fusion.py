"""Fusions: which attackers they take, the background trials that weights are trained on, and the fused scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluation.trials import Trials, align
from spkbase.errors import DataError
from spkver.attackers.folds import MOST_SPEAKERS, MOST_TESTED
from spkver.attackers.fusion import Fusion, fold_attacks, fuse, learn_weights
from spkver.attackers.lists import as_scores
from spkver.attackers.protocol import TrainingSet
from spkver.datadir.directory import DataDir

KINDS = {  # kind: enrolment and tested set, and whether attackers learn from anonymised speech
    "original": ("train", False),
    "lazy-informed": ("train_anon", False),
    "semi-informed": ("train_anon", True),
}


def training_set(path, *, speakers=24, takes=6):
    speech = {
        f"s{speaker:03d}-{take}": f"s{speaker:03d}"
        for speaker in range(speakers)
        for take in range(takes)
    }
    sexes = {f"s{speaker:03d}": "fm"[speaker % 2] for speaker in range(speakers)}
    return DataDir(path, {name: path / f"{name}.wav" for name in speech}, speech, sexes)


@pytest.fixture
def background(tmp_path):
    draws = tuple(training_set(tmp_path / f"train_anon{number}") for number in ("", "-draw2"))
    return TrainingSet(training_set(tmp_path / "train"), draws)


def fake_scores(attack, name, strength):
    """Scores that tell speakers apart as well as an attacker is strong."""
    rng = np.random.default_rng([*map(ord, name + attack.training.name)])
    same = [model == attack.tested.speakers[segment] for model, segment in attack.trials.pairs()]
    return as_scores(attack.trials, strength * np.array(same) + rng.standard_normal(len(same)))


@pytest.mark.parametrize("kind", KINDS)
def test_folds_test_other_speakers_and_fused_scores_are_weighted_sums(background, kind):
    name, on_anonymised = KINDS[kind]
    folds, attacks = zip(*fold_attacks(background, kind, seed=1), strict=True)
    for attack in attacks:
        assert [side.name for side in (*attack.enrolment, attack.tested)] == [name, name]
        assert (attack.training.on_anonymised, attack.scenario) == (on_anonymised, kind)
        learnt_from = (attack.training.original, *attack.training.anonymised)
        assert len(learnt_from) == 3
        heard = {speaker for directory in learnt_from for speaker in directory.speakers.values()}
        assert not heard & set(attack.enrolment[0].speakers.values())
    strengths = {"strong": 3.0, "idle": 0.0, "good": 2.0}
    learnt = {
        one: [fake_scores(attack, one, strength) for attack in attacks]
        for one, strength in strengths.items()
    }
    written = learn_weights(folds, learnt, {"kind": kind})
    weights = written["weights"]["weights"]
    assert weights["idle"] == 0 < min(weights["strong"], weights["good"])
    assert written["kind"] == kind
    assert written["cross_validated"]["cllr"] < min(
        one["cllr"] for one in written["alone"].values()
    )
    trials, rng = (
        Trials.from_ids(["a", "a", "b", "b"], ["a-1", "b-1", "a-1", "b-1"]),
        np.random.default_rng(0),
    )
    found = {one: as_scores(trials, rng.normal(size=4)) for one in weights}
    expected = written["weights"]["offset"] + sum(
        w * align(found[one], trials) for one, w in weights.items()
    )
    np.testing.assert_allclose(fuse(written["weights"], found).values, expected)
    # infinite scores have no weight
    endless = [replace(scores, values=np.full(len(scores), np.inf)) for scores in learnt["good"]]
    written = learn_weights(folds, learnt | {"good": endless}, {"left_out": {"bad": "no luck"}})
    assert written["left_out"] == {"bad": "no luck", "good": "it gives infinite scores"}
    assert set(written["weights"]["weights"]) == {"strong", "idle"}
    with pytest.raises(DataError, match="no attacker can be fused: good give infinite scores"):
        learn_weights(folds, {"good": endless}, {})


def test_fusions_take_attackers_up_to_their_level_of_knowledge(background):
    levels = {"strict": "one-model", "whole": "whole-list", "inverted": "inverting"}
    fusion = Fusion("fusion")
    variants = (fusion, fusion.inverting)
    taken = {
        one.name: [name for name, level in levels.items() if one.takes(level)] for one in variants
    }
    assert taken == {
        "fusion": ["strict", "whole"],
        "fusion-inverted": ["strict", "whole", "inverted"],
    }
    anonymised = replace(background, on_anonymised=True)
    kinds = [one.kind(training) for one in variants for training in (background, anonymised)]
    assert kinds == ["original", "semi-informed", "lazy-informed", "semi-informed"]


def test_folds_have_a_limited_number_of_speakers_and_tests(tmp_path):
    many = training_set(tmp_path / "train", speakers=240, takes=20)
    folds = fold_attacks(TrainingSet(many), "original", seed=3)
    assert len(folds) == 3
    for fold, attack in folds:
        assert len(fold.speakers) == MOST_SPEAKERS
        assert set(attack.enrolment[0].speakers.values()) == set(fold.speakers)
        counts = [len(names) for names in attack.tested.by_speaker().values()]
        assert max(counts) == min(counts) == MOST_TESTED
        assert fold.key.is_target.sum() == MOST_SPEAKERS * MOST_TESTED
        assert not set(attack.enrolment[0].recordings) & set(attack.tested.recordings)
        assert list(attack.trials.pairs()) == list(fold.key.pairs())
        assert all(
            many.sexes[model] == many.sexes[segment[:4]] for model, segment in fold.key.pairs()
        )
