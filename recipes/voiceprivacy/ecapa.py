"""The challenge's kind of attacker, as an example: ECAPA-TDNN or a ResNet, trained on the training set from scratch.

    pip install '.[training,networks]'
    pip install --no-deps speakerlab-slim
    spkver voiceprivacy --data DIR --suffix _mcadams --output exp/ecapa \
        --set 'attackers=[trained:recipes/voiceprivacy/ecapa.py]'

The evaluation trains it once on original and once on anonymised speech, see docs/own_extractors.md. It learns to
distinguish the training speakers in crops with masks, by an additive angular margin. Other speakers, who are held out,
decide how many steps are used. The networks are 3D-Speaker's, whose ECAPA-TDNN is SpeechBrain's. Settings are those of
`EcapaConfig`::

    --set 'attacker_settings.trained:recipes/voiceprivacy/ecapa.py={device: cuda, settings: {steps: 30000, seconds: 3}}'

==================== ===================================================================================================
file in its folder   content
==================== ===================================================================================================
``network.onnx``     the network, for the extractor ``onnx:network.onnx``: torch is no longer needed
``network.pt``       the same as a state dict, for the setting `weights` of another training
``training.json``    equal error rates of the held-out speakers
``unfinished.pt``    the state from which a killed training continues
==================== ===================================================================================================

References
----------
B. Desplanques, J. Thienpondt and K. Demuynck, "ECAPA-TDNN: Emphasized channel attention, propagation and aggregation in
TDNN based speaker verification", Interspeech 2020.
J. Deng, J. Guo, N. Xue and S. Zafeiriou, "ArcFace: Additive angular margin loss for deep face recognition", CVPR 2019.
K. He, X. Zhang, S. Ren and J. Sun, "Deep residual learning for image recognition", CVPR 2016.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.configuration import load_config
from spkbase.errors import ConfigError
from spkbase.files import atomic_path
from spkbase.packages import imported
from spkbase.seeding import stream
from spkver.training import TrainingSpeech, write_record
from spkver.training.crops import middle_crop, random_batch
from spkver.training.tuning import TuningConfig, angular_margin_loss, has_bfloat16

ONNX = "network.onnx"
STATE = "network.pt"
UNFINISHED = "unfinished.pt"

BANDS = 80
DIMENSION = 192
JUDGED_SECONDS = 4.0  # duration used of a held-out recording
CHANNELS = {"ecapa": 512, "resnet": 32}  # numbers of channels as published


@dataclass(frozen=True)
class EcapaConfig(TuningConfig):
    """Settings for training the network, in addition to those of `TuningConfig`.

    Attributes
    ----------
    network : {"ecapa", "resnet"}
    channels : int
        Number of channels of the first layer; 0: 512 for ECAPA-TDNN, 32 for the ResNet.
    minutes : float
        Time in which the training is planned to end, with a smaller learning rate and fewer steps; 0: no limit.
    weights : str
        State dict to start with, such as ``network.pt`` of another training; without one the network is random.
    """

    network: str = "ecapa"
    channels: int = 0
    minutes: float = 0.0
    steps: int = 2000
    judged: int = 100
    rate: float = 1e-3
    warmup: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.network not in CHANNELS:
            raise ConfigError(f"network is {self.network!r}: expected {' or '.join(CHANNELS)}")


def train(
    training: TrainingSpeech,
    folder: Path,
    seed: int,
    settings: Mapping[str, Any],
    device: str,
    threads: int,
    progress: Callable[[float, float, str], None],
) -> str:
    """Train the network, and return the extractor ``onnx:network.onnx``; see `spkver.training.process`."""
    torch = imported("torch", "torch", "ecapa.py")
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    config = load_config(EcapaConfig, defaults=settings)
    most = config.versions_for(len(training.utterances))
    versions = training.further_versions(most, seed=seed, jobs=threads)
    learner = Learner(config, len(training.speakers), device)
    unfinished = folder / UNFINISHED

    def judge() -> None:
        rate = training.held_out.eer(learner.vector)
        learner.note(rate)
        with atomic_path(unfinished) as temporary:
            torch.save(learner.state(), temporary)
        progress(learner.step, config.steps, f"steps, EER of held-out speakers {100 * rate:.1f} %")

    if unfinished.is_file():
        learner.resume(torch.load(unfinished, weights_only=True, map_location=device))
    else:
        judge()
    start = time.monotonic() - learner.seconds
    while not learner.is_done:
        draw = stream(seed, f"crops of step {learner.step}")
        learner.learn(*random_batch(training, versions, config.batch, config.seconds, draw))
        learner.seconds = time.monotonic() - start
        if learner.step % config.judged == 0 or learner.is_done:
            judge()
    learner.export(folder)
    facts = {"bfloat16": learner.bfloat16, "seconds": learner.seconds}
    write_record(folder, training, versions, rates=learner.judged, steps=learner.best, **facts)
    unfinished.unlink()
    return f"onnx:{ONNX}"


class Learner:
    """A network that learns to distinguish speakers, and its classifier.

    Attributes
    ----------
    network : torch.nn.Module
    classifier : torch.nn.Parameter of shape (speakers, D)
    step : int
        Number of steps done.
    seconds : float
        Time taken by these steps.
    judged : dict of int to float
        Equal error rate of the held-out speakers after some steps.
    best_state : dict of str to torch.Tensor
        The network that had the lowest rate.
    """

    def __init__(self, config: EcapaConfig, speakers: int, device: str) -> None:
        import torch

        self.config = config
        self.device = device
        self.step = 0
        self.seconds = 0.0
        self.judged: dict[int, float] = {}
        self.best_state: dict[str, Any] = {}
        self.bfloat16 = has_bfloat16(device)
        self.network = new_network(config).to(device)
        if config.weights:
            state = torch.load(config.weights, weights_only=True, map_location="cpu")
            self.network.load_state_dict(state)
        self.classifier = torch.nn.Parameter(torch.randn(speakers, DIMENSION, device=device))
        self.optimizer = torch.optim.AdamW([*self.network.parameters(), self.classifier])

    @property
    def best(self) -> int:
        """The fewest steps after which the held-out speakers have their lowest error rate."""
        return min(sorted(self.judged), key=self.judged.__getitem__)

    @property
    def progress(self) -> float:
        """The share of the steps that were done, or of the time that has passed if that is larger."""
        share = self.step / self.config.steps
        if self.config.minutes:
            share = max(share, self.seconds / (60 * self.config.minutes))
        return share

    @property
    def is_done(self) -> bool:
        """Whether all steps were done, or the time has passed."""
        return self.progress >= 1

    def learn(self, frames: NDArray[np.float32], speakers: NDArray[np.int64]) -> float:
        """Do a step, and return the loss before it."""
        import torch
        from torch.nn.functional import normalize

        planned = self.config.rate_at(1 + self.config.steps * self.progress)
        for group in self.optimizer.param_groups:
            group["lr"] = planned
        self.network.train()
        cosines = normalize(self._vectors(frames)) @ normalize(self.classifier).T
        targets = torch.from_numpy(speakers).to(self.device)
        loss = angular_margin_loss(cosines, targets, self.config.margin, self.config.scale)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return float(loss.detach())

    def vector(self, path: Path) -> NDArray[np.float32]:
        """Return the vector of the middle of a recording."""
        import torch

        self.network.eval()
        with torch.no_grad():
            vectors = self._vectors(middle_crop(path, JUDGED_SECONDS)[None])
        vector: NDArray[np.float32] = vectors[0].cpu().numpy()
        return vector

    def note(self, rate: float) -> None:
        """Note the error rate of the held-out speakers, and keep the network if it is the best."""
        self.judged[self.step] = rate
        if self.best == self.step:
            state = self.network.state_dict()
            self.best_state = {name: tensor.clone() for name, tensor in state.items()}

    def state(self) -> dict[str, Any]:
        """Return all that `resume` needs."""
        return {
            "network": self.network.state_dict(),
            "classifier": self.classifier.data,
            "optimizer": self.optimizer.state_dict(),
            "best": self.best_state,
            "judged": self.judged,
            "step": self.step,
            "seconds": self.seconds,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.network.load_state_dict(state["network"])
        self.classifier.data = state["classifier"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.best_state = dict(state["best"])
        self.judged = dict(state["judged"])
        self.step = state["step"]
        self.seconds = state["seconds"]

    def export(self, folder: Path) -> None:
        """Write the best network for onnxruntime and for another training."""
        import torch

        self.network.load_state_dict(self.best_state)
        network = self.network.cpu().eval()
        with atomic_path(folder / STATE) as temporary:
            torch.save(network.state_dict(), temporary)
        with atomic_path(folder / ONNX) as temporary:
            torch.onnx.export(
                torch.nn.Sequential(network, torch.nn.Flatten()),
                (torch.zeros(1, 200, BANDS),),
                str(temporary),
                input_names=["frames"],
                output_names=["embedding"],
                dynamic_axes={"frames": {0: "batch", 1: "frames"}, "embedding": {0: "batch"}},
                dynamo=False,  # the other exporter needs another package
            )

    def _vectors(self, frames: NDArray[np.float32]) -> Any:
        import torch

        inputs = torch.from_numpy(frames).to(self.device)
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=self.bfloat16):
            vectors = self.network(inputs)
        return vectors.flatten(1).float()


def new_network(config: EcapaConfig) -> Any:
    """Return a network with random weights, which takes filterbanks of shape (B, T, 80)."""
    channels = config.channels or CHANNELS[config.network]
    install = "--no-deps speakerlab-slim"
    if config.network == "resnet":
        models = imported("speakerlab.models.resnet.ResNet", install, "ecapa.py")
        return models.ResNet(
            m_channels=channels, feat_dim=BANDS, embedding_size=DIMENSION, two_emb_layer=False
        )
    models = imported("speakerlab.models.ecapa_tdnn.ECAPA_TDNN", install, "ecapa.py")
    layers = [channels] * 4 + [3 * channels]
    return models.ECAPA_TDNN(BANDS, channels=layers, lin_neurons=DIMENSION)
