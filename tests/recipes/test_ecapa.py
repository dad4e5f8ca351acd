"""The example of a network that is trained from scratch: steps, checkpoints, limits, the file for onnxruntime."""

import json
from dataclasses import replace

import numpy as np
import pytest
import voiceprivacy_runs as vp
from recipe_runs import results_of
from training_voices import training_speech

from spkbase.errors import ConfigError
from spkver.extractors import ExtractorSettings, open_extractor
from spkver.recipes.voiceprivacy import ecapa

pytestmark = [
    pytest.mark.whole,
    pytest.mark.filterwarnings("ignore:You are using the legacy TorchScript"),
]
TINY = {
    "channels": 16,
    "steps": 4,
    "judged": 2,
    "batch": 6,
    "warmup": 2,
    "seconds": 0.5,
    "draws": 1,
}
RESNET = {"network": "resnet", "channels": 2}


@pytest.fixture
def speech(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("speakerlab")
    return training_speech(tmp_path)


def trained(speech, folder, progress=lambda *_: None, **settings):
    folder.mkdir(exist_ok=True)
    return ecapa.train(speech, folder, 1, {**TINY, **settings}, "cpu", 1, progress)


@pytest.mark.parametrize("settings", [{}, RESNET])
def test_onnxruntime_gives_the_vectors_of_the_best_network(speech, tmp_path, settings):
    pytest.importorskip("onnxruntime")
    import torch

    folder = tmp_path / "network"
    spec = trained(speech, folder, **settings)
    assert spec == "onnx:network.onnx"
    record = json.loads((folder / "training.json").read_text())
    rates = {int(step): rate for step, rate in record["held_out_eer"].items()}
    assert sorted(rates) == [0, 2, 4]
    assert rates[record["steps"]] == min(rates.values())
    assert (record["speakers"], record["versions"]) == (5, 1)

    network = ecapa.new_network(ecapa.EcapaConfig(**{**TINY, **settings}))
    network.load_state_dict(torch.load(folder / "network.pt", weights_only=True))
    network.eval()
    path = speech.utterances[0].original
    (vector,) = open_extractor(f"onnx:{folder}/network.onnx", ExtractorSettings())([("x", path)])
    frames = torch.from_numpy(ecapa.middle_crop(path, 60)[None])  # the whole recording
    with torch.no_grad():
        expected = network(frames).flatten().numpy()
    np.testing.assert_allclose(vector, expected, rtol=1e-3, atol=1e-4)
    assert not (folder / "unfinished.pt").exists()


def test_training_continues_after_a_kill_with_the_same_result(speech, tmp_path):
    class Killed(BaseException):
        pass

    def kill(step, total, text):
        if step == 2:
            raise Killed

    trained(speech, tmp_path / "whole")
    with pytest.raises(Killed):
        trained(speech, tmp_path / "killed", kill)
    trained(speech, tmp_path / "killed")
    whole, killed = (
        json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "killed")
    )
    assert whole["held_out_eer"] == killed["held_out_eer"]


def test_training_ends_when_its_time_is_over(speech, tmp_path):
    trained(speech, tmp_path / "network", steps=100000, minutes=0.02, judged=100000)
    record = json.loads((tmp_path / "network/training.json").read_text())
    assert 0 < max(map(int, record["held_out_eer"])) < 1000


def test_a_network_starts_from_given_weights(speech, tmp_path):
    trained(speech, tmp_path / "first")
    told = []
    weights = str(tmp_path / "first/network.pt")
    trained(speech, tmp_path / "second", lambda *row: told.append(row), weights=weights, steps=1)
    first, second = (
        json.loads((tmp_path / name / "training.json").read_text()) for name in ("first", "second")
    )
    assert second["held_out_eer"]["0"] == first["held_out_eer"][str(first["steps"])]
    assert told[0][:2] == (0, 1)


def test_a_step_lowers_the_loss(speech):
    learner = ecapa.Learner(ecapa.EcapaConfig(**{**TINY, "steps": 1000}), 5, "cpu")
    versions = speech.further_versions(1, seed=0)
    crops, rows = ecapa.random_batch(speech, versions, 10, 0.5, np.random.default_rng(0))
    losses = [learner.learn(crops, rows) for _ in range(6)]
    assert losses[-1] < losses[0] - 0.1


def test_wrong_settings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="network is 'rnn': expected ecapa or resnet"):
        replace(ecapa.EcapaConfig(), network="rnn")
    with pytest.raises(ConfigError, match="steps is 0"):
        ecapa.EcapaConfig(steps=0)


def test_the_evaluation_trains_the_network_on_original_and_anonymised_speech(
    speech, layout, tmp_path
):
    entry = f"trained:{ecapa.__file__}"
    chosen = {
        "attackers": json.dumps([entry]),
        "attacker_settings": json.dumps({entry: {"settings": TINY}}),
        "lists": "[f]",
    }
    output = tmp_path / "out"
    assert vp.run_recipe(layout, output, evaluation__resamples=0, **chosen).status == 0
    results = results_of(output)
    stated = [(row["training"], row["speakers"]) for row in results["trained_networks"]]
    assert stated == [("tiny_train", 3), ("tiny_train_anon", 3)]
    assert [row["scenario"] for row in results["summary"]] == list(vp.SCENARIOS)
