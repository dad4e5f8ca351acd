"""The attacker by properties: any property that names a speaker is seen, and honest files tell little."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile as sf

from evaluation.embeddings import Embeddings
from evaluation.metrics import eer, sort_scores
from evaluation.trials import Key
from spkbase.errors import ConfigError, DataError
from spkver.attackers import Attack, TrainingSet, make_attacker, parse_spec
from spkver.attackers.properties import closeness, learn_weights_of_properties
from spkver.datadir import DataDir
from spkver.extractors import PROPERTIES, open_extractor, property_vector

RATE = 16000
RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000]
SUBTYPES = [
    "PCM_16",
    "PCM_24",
    "PCM_32",
    "FLOAT",
    "DOUBLE",
    "ULAW",
    "ALAW",
    "IMA_ADPCM",
    "PCM_U8",
    "MS_ADPCM",
]
SPEAKERS, BACKGROUND = 8, 10


def speech(random, seconds=None):
    """Bursts of noise, at a level of their own, in quiet noise."""
    n = int((seconds or random.uniform(0.9, 2.2)) * RATE)
    bursts = np.repeat(np.arange(n // 3200 + 1) % 2, 3200)[:n]
    samples = 10 ** random.uniform(-1.5, -0.9) * bursts * random.standard_normal(n) / 2
    samples += 10 ** random.uniform(-3.6, -3.4) * random.standard_normal(n)
    return samples - samples.mean()


def tone(samples, code):
    return samples + 0.003 * np.sin(
        2 * np.pi * (7400 + 500 * code) * np.arange(len(samples)) / RATE
    )


def noise(samples, code):
    return samples + 10 ** (-3.2 + 2 * code) * np.random.default_rng(0).standard_normal(
        len(samples)
    )


CHEATS = {
    "level": lambda samples, code: samples * (0.01 + 0.05 * code) / samples.std(),
    "peak": lambda samples, code: samples * (0.2 + 0.7 * code) / np.abs(samples).max(),
    "offset": lambda samples, code: samples + 0.05 * code,
    "tone": tone,
    "silence before": lambda samples, code: np.r_[np.zeros(200 + int(8000 * code)), samples],
    "silence after": lambda samples, code: np.r_[samples, np.zeros(200 + int(8000 * code))],
    "noise": noise,
    "steps": lambda samples, code: (
        np.round(samples * 32768 / (2 + int(20 * code))) * (2 + int(20 * code)) / 32768
    ),
}
OF_FILES = ("duration", "rate", "comment", "bits")


def write(path, samples, cheat, number):
    """Write a recording of speaker `number` in a way that names it."""
    rate = RATES[number % len(RATES)] if cheat == "rate" else RATE
    subtype = SUBTYPES[number % len(SUBTYPES)] if cheat == "bits" else "PCM_16"
    with sf.SoundFile(path, "w", rate, 1, subtype) as file:
        if cheat == "comment":
            file.comment = f"{hash((number, 'x')):x}"
        file.write(samples)


def directory(folder, cheat, speakers, utterances, random, first=0):
    folder.mkdir()
    recordings, owners = {}, {}
    for number in range(first, first + speakers):
        code = (number - first) * 3 % speakers / speakers
        for utterance in range(utterances):
            name = f"{number}-{utterance}"
            samples = speech(random, 1 + code if cheat == "duration" else None)
            samples = CHEATS[cheat](samples, code) if cheat in CHEATS else samples
            recordings[name], owners[name] = (
                folder / f"{random.integers(1 << 60)}.wav",
                f"speaker{number}",
            )
            write(recordings[name], np.clip(samples, -0.99, 0.99), cheat, number - first)
    return DataDir(folder, recordings, owners)


def rate_of(folder, background, cheat, seed=1):
    """Return the EER of the attacker of a run."""
    random = np.random.default_rng(seed)
    training = directory(folder / "train", background, BACKGROUND, 4, random, first=100)
    enrolment = directory(folder / "enrol", cheat, SPEAKERS, 3, random)
    tested = directory(folder / "test", cheat, SPEAKERS, 4, random)
    pairs = [
        (speaker, name)
        for speaker in sorted(set(enrolment.speakers.values()))
        for name in sorted(tested.speakers)
    ]
    is_target = np.array([tested.speakers[name] == speaker for speaker, name in pairs])
    key = Key.from_ids(*zip(*pairs, strict=True), is_target)
    attack = Attack(TrainingSet(training, name="asv_orig"), (enrolment,), tested, key.trials())
    attacker = make_attacker(parse_spec("properties"))

    def vectors(side):
        names = sorted(side.recordings)
        values = np.array([property_vector(side.recordings[name]) for name in names])
        return Embeddings(
            np.array(names, object),
            np.array([side.speakers[name] for name in names], object),
            values,
        )

    learnt = attacker.fit(attack.training, vectors, seed=0, jobs=1)
    scores = attacker.score(learnt.model, attack, vectors)
    assert np.isfinite(scores.values).all()
    return float(eer(sort_scores(scores.values[is_target], scores.values[~is_target])))


@pytest.mark.parametrize("cheat", [*CHEATS, *OF_FILES])
def test_a_property_that_marks_each_speaker_identifies_the_speakers(tmp_path, cheat):
    assert rate_of(tmp_path, cheat, cheat) < 0.01


@pytest.mark.parametrize("cheat", ["level", "tone", "comment", "rate"])
def test_cues_seen_only_in_the_enrolment_are_used(tmp_path, cheat):
    """The training set is anonymised by utterance, or original: its speakers share no property."""
    assert rate_of(tmp_path, "", cheat) < 0.02


def test_honest_files_are_near_chance(tmp_path):
    rates = []
    for seed in range(4):
        (tmp_path / str(seed)).mkdir()
        rates.append(rate_of(tmp_path / str(seed), "", "", seed))
    assert 0.4 < np.mean(rates) < 0.6
    assert min(rates) > 0.3


def test_cues_seen_only_in_the_background_do_not_help(tmp_path):
    assert 0.3 < rate_of(tmp_path, "level", "") < 0.7


def test_files_with_equal_properties_give_no_weights():
    same = np.ones((12, len(PROPERTIES)))
    weights = learn_weights_of_properties(same, list("aabbccddeeff"), list("ghijklmnopqr"))
    assert not weights.any()
    assert not closeness(same, same[0]).any()


def test_one_recording_or_one_speaker_gives_no_weights():
    values = np.random.default_rng(0).random((6, len(PROPERTIES)))
    for speakers, recordings in (("abcdef", "ghijkl"), ("aaaaaa", "ghijkl"), ("aabbcc", "gghhii")):
        assert not learn_weights_of_properties(values, list(speakers), list(recordings)).any()


def test_every_property_has_its_position_and_is_finite(tmp_path):
    for name, samples in (
        ("silent", np.zeros(RATE)),
        ("short", np.full(20, 0.5)),
        ("long", speech(np.random.default_rng(0), 9)),
    ):
        sf.write(tmp_path / f"{name}.wav", samples, RATE)
        vector = property_vector(tmp_path / f"{name}.wav")
        assert vector.shape == (len(PROPERTIES),)
        assert np.isfinite(vector).all()
        assert vector[list(PROPERTIES).index("duration")] == len(samples) / RATE


def test_names_paths_and_times_of_files_are_ignored(tmp_path):
    samples = speech(np.random.default_rng(0))
    for name in ("a.wav", "another-speaker.wav"):
        sf.write(tmp_path / name, samples, RATE)
    first, second = (property_vector(tmp_path / name) for name in ("a.wav", "another-speaker.wav"))
    assert first.tolist() == second.tolist()


def test_settings_are_refused_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="a properties attacker has no such settings"):
        make_attacker(parse_spec("properties"), {"properties": {"chains": ["cosine"]}})
    with pytest.raises(ConfigError, match="has no settings"):
        open_extractor("properties:x")
    (tmp_path / "x.wav").write_bytes(b"no audio")
    (found,) = open_extractor("properties")([("x", tmp_path / "x.wav")])
    assert isinstance(found, DataError)
    assert "x.wav" in str(found)
