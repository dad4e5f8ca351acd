"""CAM++ tuned on anonymised speech: the same network as onnxruntime's, steps, checkpoints, the choice of steps."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import soundfile
from network_oracle import random_campplus
from torch_writer import Tensors, write_torch
from training_voices import training_speech

from spkbase.errors import ConfigError
from spkver.attackers import parse_spec
from spkver.attackers.vector_attacker import tuned_attacker
from spkver.extractors import ExtractorSettings, kaldi_filterbanks, open_extractor
from spkver.training.crops import middle_crop, random_crop
from spkver.training.tuning import TuningConfig, train

SETTINGS = {
    "steps": 4,
    "judged": 2,
    "batch": 8,
    "warmup": 1,
    "seconds": 1.0,
    "draws": 2,
    "rate": 1e-3,
}


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    return training_speech(tmp_path_factory.mktemp("speech"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "campplus_cn_en_common.pt"
    return write_torch(path, Tensors(random_campplus(1, size=12)))


def tuned(speech, weights, folder, progress=lambda *_: None, **settings):
    pytest.importorskip("torch")
    folder.mkdir(exist_ok=True)
    return train(
        speech, folder, 1, {**SETTINGS, "weights": str(weights), **settings}, "cpu", 1, progress
    )


def test_the_network_gives_the_vectors_of_onnxruntime(weights):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from spkver.extractors.networks import campplus_graph, read_network
    from spkver.training.campplus import campplus_vectors

    state = random_campplus(2, size=12)
    tensors = {name: torch.from_numpy(value) for name, value in state.items()}
    frames = np.random.default_rng(0).standard_normal((2, 333, 80)).astype(np.float32)
    expected = read_network(campplus_graph(state)).run(frames)
    vectors = campplus_vectors(tensors, torch.from_numpy(frames)).numpy()
    np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-4)
    cosines = (
        (vectors * expected).sum(axis=1)
        / np.linalg.norm(vectors, axis=1)
        / np.linalg.norm(expected, axis=1)
    )
    assert cosines.min() > 1 - 1e-6


def test_a_tuned_network_is_an_extractor_and_keeps_the_earliest_best_step(
    speech, weights, tmp_path
):
    pytest.importorskip("onnxruntime")
    told = []
    spec = tuned(speech, weights, tmp_path / "a", lambda *text: told.append(text))
    record = json.loads((tmp_path / "a/training.json").read_text())
    rates = {int(step): rate for step, rate in record["held_out_eer"].items()}
    assert sorted(rates) == [0, 2, 4]
    assert record["steps"] == min(
        step for step, rate in rates.items() if rate == min(rates.values())
    )
    assert [row[0] for row in told] == [0, 2, 4]
    assert (record["speakers"], record["versions"]) == (5, 2)
    prefix, _, name = spec.partition(":")
    extractor = open_extractor(f"{prefix}:{tmp_path / 'a' / name}", ExtractorSettings())
    (vector,) = extractor([("x", speech.utterances[0].original)])
    assert vector.shape == (12,)
    assert not (tmp_path / "a/unfinished.pt").exists()


def test_training_resumes_after_a_kill_with_the_same_result(speech, weights, tmp_path):
    class Killed(BaseException):
        pass

    def kill(step, total, text):
        if step == 2:
            raise Killed

    tuned(speech, weights, tmp_path / "whole")
    with pytest.raises(Killed):
        tuned(speech, weights, tmp_path / "killed", kill)
    assert (tmp_path / "killed/unfinished.pt").exists()
    tuned(speech, weights, tmp_path / "killed")
    rates = [
        json.loads((tmp_path / name / "training.json").read_text())["held_out_eer"]
        for name in ("whole", "killed")
    ]
    assert rates[0] == rates[1]


def test_a_step_lowers_the_loss_and_changes_all_parameters_but_batch_statistics(speech, weights):
    torch = pytest.importorskip("torch")
    from spkver.training.tuning import Tuner

    tuner = Tuner(TuningConfig(**{**SETTINGS, "rate": 1e-6}, weights=str(weights)), "cpu")
    tuner.bfloat16 = False
    tuner.classify(speech)
    draw = np.random.default_rng(0)
    crops = np.stack([random_crop(row.original, 0.5, draw) for row in speech.utterances])
    rows = np.array([int(row.speaker) for row in speech.utterances])
    before = {name: tensor.detach().clone() for name, tensor in tuner.tensors.items()}
    expected = margin_loss(
        tuner.vectors(crops).detach().numpy(), tuner.classifier.detach().numpy(), rows
    )
    losses = [tuner.learn(crops, rows) for _ in range(4)]
    assert losses[0] == pytest.approx(expected, rel=1e-4)
    assert losses[-1] < losses[0] - 1e-3
    for name, tensor in tuner.tensors.items():
        assert torch.equal(tensor, before[name]) == ("running" in name), name


def margin_loss(vectors, classifier, rows):
    """The loss by the paper's equation: the angle to the own row grows by the margin."""
    losses = []
    for vector, own in zip(vectors.astype(float), rows, strict=True):
        angles = [
            math.acos(vector @ row / np.linalg.norm(vector) / np.linalg.norm(row))
            for row in classifier
        ]
        logits = [
            30 * math.cos(angle + 0.2 * (number == own)) for number, angle in enumerate(angles)
        ]
        losses.append(math.log(sum(map(math.exp, logits))) - logits[own])
    return np.mean(losses)


def test_crops_have_their_length_and_masks(speech):
    path = speech.utterances[0].original
    crop = random_crop(path, 2.0, np.random.default_rng(0))  # longer than the recording
    assert crop.shape == (198, 80)
    whole = kaldi_filterbanks(soundfile.read(path, dtype="float32")[0])
    np.testing.assert_array_equal(middle_crop(path, 60), whole)
    assert middle_crop(path, 0.5).shape == (48, 80)
    masked = [random_crop(path, 1.0, np.random.default_rng(seed)) for seed in range(20)]
    assert max((frames == 0).all(axis=1).sum() for frames in masked) > 10
    assert max((frames == 0).all(axis=0).sum() for frames in masked) > 4


def test_the_learning_rate_rises_and_falls_to_zero():
    config = TuningConfig(steps=30, warmup=10, rate=1.0)
    rates = [config.rate_at(step) for step in range(1, 31)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 10)
    assert np.all(np.diff(rates[9:]) < 0)
    assert rates[19] == pytest.approx(0.5)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert math.isfinite(TuningConfig(steps=5, warmup=10).rate_at(5))


@pytest.mark.parametrize("settings", [{"steps": 0}, {"seconds": 0.1}, {"step": 3}])
def test_wrong_settings_are_refused_before_the_start(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        tuned_attacker("campplus-tuned", {"settings": settings})


def test_tuned_attackers_are_semi_informed_networks():
    spec = parse_spec("campplus-tuned-enrolled-plda")
    assert spec.scenarios == ("semi-informed",)
    assert spec.is_network
    assert spec.is_trained
    assert Path(spec.entry).name == spec.name
