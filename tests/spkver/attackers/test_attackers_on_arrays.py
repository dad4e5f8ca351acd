"""Attackers, sources and scorers without a run: vectors are arrays by data directory, and no recording exists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.work import Work
from spkver.attackers import (
    Attack,
    GmmUbmAttacker,
    MixtureSource,
    SupervectorAttacker,
    TrainingSet,
    VectorAttacker,
)
from spkver.attackers.chain_choice import BackendChoice
from spkver.attackers.sources import mean_statistics
from spkver.attackers.trained import training_speech
from spkver.attackers.vector_attacker import trained_attacker
from spkver.backend import train_chain
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, Frames
from spkver.mixture import GaussianMixture, Statistics, UbmConfig, accumulate_statistics
from spkver.vectors import MapConfig, TotalVariabilityConfig, adapt_multisession, adapt_supervectors

TARGETS, BACKGROUND = ("a", "b", "c"), tuple(f"s{number}" for number in range(8))
WIDTH = 6


def directory(name, speakers, takes):
    owners = {f"{speaker}-{take}": speaker for speaker in speakers for take in range(takes)}
    return DataDir(
        Path(name), {utterance: Path(name, f"{utterance}.wav") for utterance in owners}, owners
    )


def vector_of(path):
    """The place of the speaker, moved by what differs from one recording to the next."""
    speaker = path.stem.split("-")[0]
    place = np.random.default_rng([*speaker.encode()]).normal(size=WIDTH)
    return place + 0.3 * np.random.default_rng([*str(path).encode()]).normal(size=WIDTH)


def vectors(side):
    names = sorted(side.recordings)
    speakers = np.array([side.speakers[name] for name in names], object)
    return Embeddings(
        np.array(names, object),
        speakers,
        np.stack([vector_of(side.recordings[name]) for name in names]),
    )


@pytest.fixture
def attack():
    tested = directory("tested", TARGETS, 2)
    pairs = [(model, segment) for model in TARGETS for segment in tested.recordings]
    trials = Trials.from_ids(*map(list, zip(*pairs, strict=True)))
    return Attack(
        TrainingSet(directory("train", BACKGROUND, 3)),
        (directory("enrol", TARGETS, 2),),
        tested,
        trials,
    )


def scores_of(attacker, attack, chosen=vectors):
    learnt = attacker.fit(attack.training, chosen, seed=1, jobs=1)
    attacker.prepare(attack, chosen)
    return attacker.score(learnt.model, attack, chosen).values


def test_the_chosen_chain_scores_targets_higher_and_records_the_choice(attack):
    attacker = VectorAttacker("mine", BackendChoice("mine", ("cosine", "centre")), source=None)
    learnt = attacker.fit(attack.training, vectors, seed=1, jobs=1)
    assert learnt.choice["chosen"] in [row["chain"] for row in learnt.choice["chains"]]
    assert (learnt.choice["vectors"], learnt.choice["speakers"]) == (24, 8)
    values = attacker.score(learnt.model, attack, vectors).values
    is_target = np.array([segment.startswith(model) for model, segment in attack.trials.pairs()])
    assert values[is_target].min() > values[~is_target].max()


@pytest.mark.parametrize(
    ("chain", "counts_once"), [("centre", True), ("[centre, cosine: maximum]", False)]
)
def test_versions_of_a_recording_are_averaged_unless_the_scorer_compares_sessions(
    attack, chain, counts_once
):
    attacker = VectorAttacker("mine", BackendChoice("mine", (chain,)), source=None)
    other = directory("other-draw", TARGETS, 2)
    found = scores_of(attacker, replace(attack, enrolment=(*attack.enrolment, other)))
    backend = train_chain(vectors(attack.training.original), chain, seed=1)
    first, second = vectors(attack.enrolment[0]), vectors(other)
    enrolled = replace(first, vectors=(first.vectors + second.vectors) / 2)
    if not counts_once:
        ids = np.concatenate([first.ids, [f"{name}-2" for name in second.ids]]).astype(object)
        speakers = np.concatenate([first.speakers, second.speakers])
        enrolled = Embeddings(ids, speakers, np.concatenate([first.vectors, second.vectors]))
    expected = backend.score(enrolled, vectors(attack.tested), attack.trials)
    np.testing.assert_allclose(found, expected.values, atol=1e-12)


def test_a_test_gets_the_largest_score_over_its_variants(attack):
    attacker = VectorAttacker("mine", BackendChoice("mine", ("centre",)), source=None)
    variants = tuple(directory(f"inverted{number}", TARGETS, 2) for number in range(3))
    alone = [scores_of(attacker, replace(attack, tested=variant)) for variant in variants]
    together = scores_of(attacker, replace(attack, variants=variants))
    np.testing.assert_array_equal(together, np.max(alone, axis=0))
    assert not np.array_equal(together, alone[0])


def spoken(attack, names=("one", "two", "three")):
    """Two recordings of each speaker as a conversation, from two versions of the tests."""
    versions = (attack.tested, directory("tested-draw2", TARGETS, 2))
    parts = {}
    for name, speaker in zip(names, TARGETS, strict=True):
        parts[name] = ((0, f"{speaker}-1"), (1, f"{speaker}-0"))
    paths = {name: versions[0].recordings[part[0][1]] for name, part in parts.items()}
    tested = DataDir(attack.tested.path, paths, {name: name for name in paths})
    pairs = [(model, name) for model in TARGETS for name in parts]
    trials = Trials.from_ids(*map(list, zip(*pairs, strict=True)))
    return replace(attack, tested=tested, trials=trials, variants=versions, conversations=parts)


CHAINS = ("centre", "adapted_cosine", "single_test_cosine", "enrolled_plda", "self_trained_plda")


@pytest.mark.parametrize("scorer", CHAINS)
def test_vectors_of_a_conversation_are_averaged_before_the_chain(attack, scorer):
    adapted = "" if scorer == "centre" else scorer
    choice = BackendChoice("mine", (scorer,), adapted=adapted)
    attacker = VectorAttacker("mine", choice, source=None)
    found = scores_of(attacker, spoken(attack))
    versions = spoken(attack).variants
    means = []
    for speaker in sorted(TARGETS, key=lambda name: ("a", "c", "b").index(name)):
        first = vector_of(versions[0].recordings[f"{speaker}-1"])
        second = vector_of(versions[1].recordings[f"{speaker}-0"])
        means.append((first + second) / 2)
    names = np.array(["one", "three", "two"], object)
    backend = train_chain(vectors(attack.training.original), scorer, seed=1)
    expected = backend.score(
        vectors(attack.enrolment[0]),
        Embeddings(names, names, np.array(means)),
        spoken(attack).trials,
    )
    np.testing.assert_allclose(found, expected.values, atol=1e-9)


def test_names_of_conversations_change_no_score(attack):
    attacker = VectorAttacker("mine", BackendChoice("mine", ("centre",)), source=None)
    first = spoken(attack)
    renamed = spoken(attack, ("x9", "x1", "x5"))
    np.testing.assert_array_equal(scores_of(attacker, first), scores_of(attacker, renamed))
    assert set(first.tested.speakers.values()) == {"one", "two", "three"}


class Mixture:
    """Statistics of random frames in place of a trained mixture."""

    work = Work(1)

    def __init__(self):
        draw = np.random.default_rng(0)
        self.ubm = GaussianMixture(np.full(2, 0.5), draw.normal(size=(2, 3)), np.ones((2, 3)))
        self.map = MapConfig()

    def frames(self, side):
        names = sorted(side.recordings)
        draws = [
            np.random.default_rng([*str(side.recordings[name]).encode()]).normal(size=(20, 3))
            for name in names
        ]
        places = [vector_of(side.recordings[name])[:3] for name in names]
        values = np.concatenate(
            [draw + place for draw, place in zip(draws, places, strict=True)]
        ).astype(np.float32)
        return Frames(np.array(names, object), np.arange(len(names) + 1) * 20, values)

    def ids(self, side):
        return {name: name for name in side.recordings}

    def statistics(self, side):
        names = sorted(side.recordings)
        return accumulate_statistics(self.ubm, self.frames(side), names, names)

    def __call__(self, side):
        found = adapt_supervectors(self.ubm, self.statistics(side), self.map)
        speakers = np.array([side.speakers.get(name, name) for name in found.segments], object)
        return Embeddings(found.segments, speakers, np.asarray(found.vectors))

    sessions = __call__

    def averaged(self, side, sessions):
        return adapt_supervectors(
            self.ubm, mean_statistics(self.statistics(side), sessions), self.map
        ).embeddings()

    def adapted(self, side, sessions):
        return adapt_multisession(
            self.ubm, mean_statistics(self.statistics(side), sessions), self.map
        )


def test_supervector_attacker_takes_the_first_fitting_chain_and_averages_statistics(attack):
    chains = ("[centre, snorm]", "[centre, length]")  # snorm needs 30 speakers
    attacker, mixture = SupervectorAttacker("mine", MixtureSource(), chains), Mixture()
    learnt = attacker.fit(attack.training, mixture, seed=1, jobs=1)
    assert (learnt.choice["chosen"], learnt.choice["folds"]) == ("[centre, length, cosine]", [])
    once = attacker.score(learnt.model, attack, mixture).values
    often = attacker.score(
        learnt.model, replace(attack, enrolment=attack.enrolment * 3), mixture
    ).values
    np.testing.assert_allclose(often, once, rtol=1e-5)


def test_gmm_ubm_counts_all_versions_of_a_recording_once(attack):
    attacker, mixture = GmmUbmAttacker("gmm-ubm", MixtureSource()), Mixture()
    learnt = attacker.fit(attack.training, mixture, seed=1, jobs=1)
    assert (learnt.model, learnt.choice) == (mixture.ubm, None)
    once = attacker.score(learnt.model, attack, mixture).values
    often = attacker.score(
        learnt.model, replace(attack, enrolment=attack.enrolment * 3), mixture
    ).values
    np.testing.assert_allclose(often, once, rtol=1e-5)
    is_target = np.array([segment.startswith(model) for model, segment in attack.trials.pairs()])
    assert once[is_target].mean() > once[~is_target].mean()


def test_mean_statistics_are_means_over_the_segments_of_each_group():
    names = np.array(list("abc"), object)
    statistics = Statistics(
        names, names, np.array([[1.0], [3.0], [5.0]]), np.array([[2.0], [4.0], [9.0]])
    )
    found = mean_statistics(statistics, {("m", "r"): ["a", "c"], ("n", "r"): ["b"]})
    assert list(zip(found.models, found.segments, strict=True)) == [("m", "r"), ("n", "r")]
    assert (found.zeroth.tolist(), found.first.tolist()) == ([[3.0], [3.0]], [[5.5], [4.0]])


@pytest.mark.parametrize(
    ("segments", "width", "rank"), [(50, 400, 20), (11, 400, 10), (50, 8, 8), (1, 8, 1)]
)
def test_rank_is_lowered_to_the_largest_that_segments_and_width_allow(segments, width, rank):
    source = MixtureSource(total_variability=TotalVariabilityConfig(rank=20))
    assert source.fitting_rank(segments, width).rank == rank


def test_key_of_a_source_changes_with_each_of_its_settings(tmp_path):
    (tmp_path / "ubm.h5").write_bytes(b"one")
    sources = [
        MixtureSource(),
        MixtureSource(features=FeatureConfig(preset="telephone")),
        MixtureSource(ubm=UbmConfig(components=8)),
        MixtureSource(ubm=UbmConfig(file=tmp_path / "ubm.h5")),
        MixtureSource(map=MapConfig(relevance=7.0)),
        MixtureSource(total_variability=TotalVariabilityConfig(rank=3)),
        MixtureSource(session_seconds=2.0),
    ]
    keys = [source.key for source in sources]
    assert len(set(keys)) == len(keys)
    (tmp_path / "ubm.h5").write_bytes(b"other")
    assert sources[3].key not in keys


def test_a_network_is_not_trained_on_few_speakers(attack, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def train(*arguments):\n    return None\n")
    few = trained_attacker("mine", str(file), {})
    assert few.obstacle(attack) == ""
    many = replace(few, source=replace(few.source, least_speakers=9))
    assert many.obstacle(attack) == "it needs 9 training speakers, there are 8"


def test_the_backend_of_a_trained_network_uses_only_held_out_speakers(attack, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def train(*arguments):\n    return None\n")
    asked = []

    def watched(side):
        asked.append(set(side.speakers.values()))
        return vectors(side)

    trained_attacker("mine", str(file), {"chains": ["centre"]}).fit(
        attack.training, watched, seed=1, jobs=1
    )
    (speakers,) = asked
    given = training_speech(attack.training, attack.training.versions, tmp_path, seed=1)
    assert speakers == set(given.held_out.enrolment)
    assert speakers | set(given.speakers) == set(BACKGROUND)
    assert not speakers & set(given.speakers)
