"""Fusions of attackers that score from ids alone: who has a part in which, what is kept, and what is left out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from evaluation.trials.lists import Scores, Trials, align
from spkbase.errors import DataError
from spkver.attackers.fusion import (
    MOST_SPEAKERS,
    MOST_TESTED,
    Fusion,
    fold_attacks,
    fusion_attacker,
    put_to_work,
)
from spkver.attackers.protocol import Attack, Attacker, Place, Scorer, TrainingSet, level_of, serves
from spkver.attackers.vector_attacker import Context
from spkver.datadir.directory import DataDir


@dataclass
class Fake:
    """An attacker that tells speakers apart as well as it is strong, and notes what it was asked."""

    name: str
    strength: float = 0.0
    error: Exception | None = None
    asked: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def record(self, attack: Attack) -> Any:
        return {"fake": self.strength}

    def lacks(self, attack: Attack) -> str:
        return ""

    def fit(self, training: TrainingSet) -> Scorer:
        names = tuple(directory.name for directory in training.versions)

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            if self.error is not None:
                raise self.error
            self.asked.append((training.name.split("-", 2)[2], enrolment[0].name, names))
            heard = {speaker for directory in training.versions for speaker in directory.speakers.values()}
            assert not heard & set(enrolment[0].speakers.values())
            rng = np.random.default_rng([*map(ord, self.name + training.name)])
            same = [model == tested.speakers[segment] for model, segment in trials.pairs()]
            values = self.strength * np.array(same) + rng.standard_normal(len(same))
            return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)

        return score


@dataclass
class FakeInverted(Fake):
    """One that knows both sides of the background."""

    scenarios: tuple[str, ...] = ("lazy-informed", "semi-informed")
    level: str = "inverting"

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        assert attack.training.anonymised
        return (*attack.sides, attack.training.original, *attack.training.anonymised)


def training_set(path: Path, *, speakers: int = 24, takes: int = 6) -> DataDir:
    speech = {f"s{speaker:03d}-{take}": f"s{speaker:03d}" for speaker in range(speakers) for take in range(takes)}
    sexes = {f"s{speaker:03d}": "fm"[speaker % 2] for speaker in range(speakers)}
    return DataDir(path, {name: path / f"{name}.wav" for name in speech}, speech, sexes)


@pytest.fixture
def background(tmp_path: Path) -> TrainingSet:
    draws = tuple(training_set(tmp_path / f"train_anon{number}") for number in ("", "-draw2"))
    return TrainingSet(training_set(tmp_path / "train"), draws)


def attack_on(background: TrainingSet, scenario: str) -> Attack:
    """Trials of two people who are not in the background."""
    tested = DataDir(background.original.path.with_name("tested"), {}, {"a-1": "a", "b-1": "b"})
    training = replace(background, on_anonymised=scenario == "semi-informed")
    trials = Trials.from_ids(["a", "a", "b", "b"], ["a-1", "b-1", "a-1", "b-1"])
    return Attack(training, (tested,), tested, trials, scenario)


def fusion_of(tmp_path: Path, *attackers: Attacker, presets: dict[str, str] | None = None) -> Fusion:
    place = Place(tmp_path / "out", tmp_path / "out/work", seed=1)
    context = Context("fusion", settings={name: {"preset": preset} for name, preset in (presets or {}).items()})
    made = put_to_work([fusion_attacker("fusion", {}, context), *attackers], place)
    fusion = next(one for one in made if one.name == "fusion")
    assert isinstance(fusion, Fusion)
    return fusion


def fused(fusion: Fusion, attack: Attack, names: list[str]) -> tuple[Scores, dict[str, Any], dict[str, Scores]]:
    rng, trials = np.random.default_rng(0), attack.trials
    found = {
        name: Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=rng.normal(size=4))
        for name in names
    }
    scores = fusion.fuse(attack.training, found)
    return scores, json.loads(fusion.file(attack.training, names).read_text()), found


@pytest.mark.parametrize("scenario", ["original", "ignorant", "lazy-informed", "semi-informed"])
def test_a_fused_score_is_the_sum_that_the_file_says(tmp_path, background, scenario):
    fusion = fusion_of(tmp_path, Fake("strong", 3.0), Fake("idle"), Fake("good", 2.0))
    scores, written, found = fused(fusion, attack_on(background, scenario), ["strong", "idle", "good"])
    weights = written["weights"]["weights"]
    assert weights["idle"] == 0 < min(weights["strong"], weights["good"])
    expected = sum(weight * align(found[name], scores) for name, weight in weights.items())
    np.testing.assert_allclose(scores.values, written["weights"]["offset"] + expected)
    alone = [written["alone"][name]["cllr"] for name in weights]
    assert written["cross_validated"]["cllr"] < min(alone)


def test_scenarios_of_one_training_share_the_weights_and_the_folds(tmp_path, background):
    strong = Fake("strong", 3.0)
    fusion = fusion_of(tmp_path, strong)
    files = set()
    for scenario in ("original", "ignorant", "lazy-informed", "semi-informed"):
        fused(fusion, attack_on(background, scenario), ["strong"])
        files.add(fusion.file(attack_on(background, scenario).training, ["strong"]))
    assert len(files) == 2
    assert sorted({(scenario, enrolment) for scenario, enrolment, _ in strong.asked}) == [
        ("original", "train"), ("semi-informed", "train_anon"),
    ]  # fmt: skip
    assert len(strong.asked) == 2 * 3


def test_fusions_take_those_of_their_level_of_knowledge_and_below(tmp_path, background):
    whole, reader, inverted = Fake("whole", 2.0), Fake("reader", 9.0), FakeInverted("inverted", 3.0)
    whole.level, reader.content = "whole-list", "oracle"  # type: ignore[attr-defined]
    fusion = fusion_of(tmp_path, Fake("strict", 3.0), whole, inverted, reader)
    single, second = fusion.further()
    taken = {one.name: (level_of(one), [name for name in fusion.members if one.takes(name)]) for one in
             (fusion, single, second)}  # fmt: skip
    assert taken == {
        "fusion": ("whole-list", ["strict", "whole"]),
        "fusion-trial-by-trial": ("trial-by-trial", ["strict"]),
        "fusion-inverted": ("inverting", ["strict", "whole", "inverted"]),
    }
    attacks = {name: attack_on(background, name) for name in ("original", "lazy-informed")}
    assert [serves(second, attack) for attack in attacks.values()] == [False, True]
    assert all(serves(fusion, attack) for attack in attacks.values())
    attack = attack_on(background, "lazy-informed")
    _, written, _ = fused(second, attack, ["strict", "inverted"])
    assert written["kind"] == "lazy-informed"
    assert min(written["weights"]["weights"].values()) > 0
    # trials are anonymised, and what is learnt from is original
    assert {(enrolment, names[0].partition("-")[0]) for _, enrolment, names in inverted.asked} == {
        ("train_anon", "train")
    }
    assert set(background.anonymised) < set(second.speech(attack))
    assert fusion_of(tmp_path, Fake("strict")).further() == []


@pytest.mark.parametrize("error", [DataError("no luck"), ZeroDivisionError("no luck"), OSError("no luck")])
def test_who_fails_on_the_background_is_left_out_and_told(tmp_path, background, error):
    fusion = fusion_of(tmp_path, Fake("strong", 3.0), Fake("bad", 3.0, error))
    _, written, _ = fused(fusion, attack_on(background, "original"), ["strong", "bad"])
    assert "bad" not in written["weights"]["weights"]
    assert "no luck" in written["left_out"]["bad"]
    with pytest.raises(DataError, match=r"has no attacker to fuse \(bad: "):
        fusion.weights(background, ["bad"])


def test_who_recognises_recordings_is_left_out_where_speakers_have_one_each(tmp_path):
    sets = []
    for name in ("train", "train_anon"):
        directory = training_set(tmp_path / name, speakers=12, takes=1)
        (tmp_path / name).mkdir()
        for path in directory.recordings.values():
            soundfile.write(path, np.random.default_rng(0).uniform(-0.1, 0.1, 2200), 1000, subtype="PCM_16")
        sets.append(directory)
    fusion = fusion_of(tmp_path, Fake("strong", 3.0), Fake("hum", 9.0), presets={"hum": "session"})
    _, written, _ = fused(fusion, attack_on(TrainingSet(sets[0], (sets[1],)), "original"), ["strong", "hum"])
    assert set(written["weights"]["weights"]) == {"strong"}
    assert "it recognises recordings" in written["left_out"]["hum"]


def test_folds_are_of_some_speakers_with_some_tests(tmp_path):
    many = training_set(tmp_path / "train", speakers=240, takes=20)
    folds = fold_attacks(TrainingSet(many), "original", Place(tmp_path / "out", tmp_path / "work", seed=3))
    assert len(folds) == 3
    for fold in folds:
        assert len(fold.speakers) == MOST_SPEAKERS
        assert set(fold.attack.enrolment[0].speakers.values()) == set(fold.speakers)
        counts = [len(names) for names in fold.attack.tested.by_speaker().values()]
        assert max(counts) == min(counts) == MOST_TESTED
        assert fold.key.is_target.sum() == MOST_SPEAKERS * MOST_TESTED
        assert not set(fold.attack.enrolment[0].recordings) & set(fold.attack.tested.recordings)
        sexes = fold.attack.tested.sexes
        assert all(sexes[model] == sexes[segment[:4]] for model, segment in fold.key.pairs())
