"""The trainer of CAM++: the published network is tuned on the anonymised training set.

The network learns to distinguish the training speakers in crops of two seconds, by an additive angular margin; the
classifier starts with the vectors of the speakers' original recordings. Speakers that are held out decide how many
steps are used, and whether the tuned network is used at all.

    FOLDER/tuned.pt        its tensors, for the extractor campplus:tuned.pt
    FOLDER/training.json   equal error rates of the held-out speakers
    FOLDER/unfinished.pt   the state from which a killed training continues

References
----------
J. Deng, J. Guo, N. Xue and S. Zafeiriou, "ArcFace: Additive angular margin loss for deep face recognition", CVPR 2019.
"""

from __future__ import annotations

import math
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
from spkver.extractors import SOURCES, find_weights, read_weights
from spkver.training.campplus import campplus_vectors
from spkver.training.crops import middle_crop, random_batch
from spkver.training.process import write_record
from spkver.training.speech import TrainingSpeech

NETWORK = "tuned.pt"
UNFINISHED = "unfinished.pt"

_JUDGED_SECONDS = 4.0
_CLASSIFIER = 10.0  # learning rate of the classifier, as a multiple of the network's
_NEARLY_ONE = 1 - 1e-6

Tensor = Any


@dataclass(frozen=True)
class TuningConfig:
    """Settings for tuning CAM++.

    Attributes
    ----------
    steps : int
    judged : int
        Number of steps from one test on the held-out speakers to the next.
    batch : int
        Number of crops in a step.
    seconds : float [s]
        Length of a crop.
    rate : float
        Largest learning rate: it rises for `warmup` steps and falls by a cosine.
    warmup : int
    margin : float [rad]
    scale : float
    draws : int
        Largest number of anonymised versions of a recording; never more than the crops taken from it.
    weights : str
        Folder or file of the weights to start with, see `spkver.extractors.find_weights`.
    """

    steps: int = 40
    judged: int = 20
    batch: int = 32
    seconds: float = 2.0
    rate: float = 3e-4
    warmup: int = 10
    margin: float = 0.2
    scale: float = 30.0
    draws: int = 8
    weights: str = ""

    def __post_init__(self) -> None:
        for key in ("steps", "judged", "batch", "warmup", "draws", "rate", "scale"):
            value = getattr(self, key)
            if value <= 0:
                raise ConfigError(f"{key} is {value}: expected a number above 0")
        if self.seconds < 0.5:
            raise ConfigError(f"seconds is {self.seconds}: expected at least 0.5")

    def versions_for(self, recordings: int) -> int:
        """Return how many versions each recording has: no more than the crops taken from it."""
        return min(self.draws, math.ceil(self.steps * self.batch / recordings))

    def rate_at(self, step: float) -> float:
        """Return the learning rate of a step, from 1 to `steps`."""
        if step <= self.warmup:
            return self.rate * step / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.rate * 0.5 * (1 + math.cos(math.pi * done))


def train(
    training: TrainingSpeech,
    folder: Path,
    seed: int,
    settings: Mapping[str, Any],
    device: str,
    threads: int,
    progress: Callable[[float, float, str], None],
) -> str:
    """Tune CAM++; see `spkver.training.process`.

    Returns
    -------
    str
        The extractor ``campplus:tuned.pt``.
    """
    torch = imported("torch", "torch", "tuning")
    torch.set_num_threads(threads)
    config = load_config(TuningConfig, defaults=settings)
    most = config.versions_for(len(training.utterances))
    versions = training.further_versions(most, seed=seed, jobs=threads)
    tuner = Tuner(config, device)
    unfinished = folder / UNFINISHED

    def judge() -> None:
        tuner.judged[tuner.step] = training.held_out.eer(tuner.vector)
        if tuner.best == tuner.step:
            tensors = {name: tensor.detach() for name, tensor in tuner.tensors.items()}
            tuner.save(folder / NETWORK, tensors)
        tuner.save(unfinished, tuner.state())
        rate = tuner.judged[tuner.step]
        progress(tuner.step, config.steps, f"steps, EER of held-out speakers {100 * rate:.1f} %")

    if unfinished.is_file():
        tuner.resume(torch.load(unfinished, weights_only=True))
    else:
        tuner.classify(training)
        judge()
    while tuner.step < config.steps:
        draw = stream(seed, f"crops of step {tuner.step}")
        tuner.learn(*random_batch(training, versions, config.batch, config.seconds, draw))
        if tuner.step % config.judged == 0 or tuner.step == config.steps:
            judge()
    facts = {"bfloat16": tuner.bfloat16}
    write_record(folder, training, versions, rates=tuner.judged, steps=tuner.best, **facts)
    unfinished.unlink()
    return f"campplus:{NETWORK}"


class Tuner:
    """A network during tuning, and its classifier.

    Parameters
    ----------
    config : TuningConfig
    device : str

    Attributes
    ----------
    tensors : dict of str to torch.Tensor
        Tensors of the network; its batch statistics do not change.
    classifier : torch.Tensor of shape (speakers, D)
    step : int
        Number of steps so far.
    judged : dict of int to float
        Equal error rate of the held-out speakers after some steps.
    bfloat16 : bool
        Whether products use this type, which is faster on processors that support it.
    """

    def __init__(self, config: TuningConfig, device: str) -> None:
        import torch

        self.config = config
        self.device = device
        self.step = 0
        self.judged: dict[int, float] = {}
        self.bfloat16 = has_bfloat16(device)
        weights, _ = read_weights(SOURCES["campplus"], find_weights("campplus", config.weights))
        self.tensors: dict[str, Tensor] = {}
        for name, value in weights.items():
            tensor = torch.from_numpy(np.array(value)).to(device)
            if tensor.is_floating_point() and "running" not in name:
                tensor = tensor.float().requires_grad_()
            self.tensors[name] = tensor
        self.classifier: Tensor = None

    @property
    def best(self) -> int:
        """The fewest steps after which the held-out speakers have their lowest error rate."""
        return min(sorted(self.judged), key=self.judged.__getitem__)

    def classify(self, training: TrainingSpeech) -> None:
        """Start a classifier with the vector of an original recording of each speaker."""
        originals: dict[str, Path] = {}
        for utterance in training.utterances:
            originals.setdefault(utterance.speaker, utterance.original)
        self._start(np.stack([self.vector(originals[speaker]) for speaker in training.speakers]))

    def learn(self, frames: NDArray[np.float32], speakers: NDArray[np.int64]) -> float:
        """Do a step, and return the loss before it.

        Parameters
        ----------
        frames : ndarray of float32 of shape (B, T, 80)
        speakers : ndarray of int64 of shape (B,)
            Rows of the classifier.
        """
        self.step += 1
        network, classifier = self.optimizer.param_groups
        network["lr"] = self.config.rate_at(self.step)
        classifier["lr"] = _CLASSIFIER * network["lr"]
        loss = self.loss(self.vectors(frames), speakers)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def loss(self, vectors: Tensor, speakers: NDArray[np.int64]) -> Tensor:
        """Return the loss of the vectors (B, D) of crops; `speakers` are rows of the classifier."""
        import torch
        from torch.nn.functional import normalize

        targets = torch.from_numpy(speakers).to(self.device)
        cosines = normalize(vectors) @ normalize(self.classifier).T
        return angular_margin_loss(cosines, targets, self.config.margin, self.config.scale)

    def vector(self, path: Path) -> NDArray[np.float32]:
        """Return the vector of the middle of a recording."""
        import torch

        frames = middle_crop(path, _JUDGED_SECONDS)[None]
        with torch.no_grad():
            vector: NDArray[np.float32] = self.vectors(frames)[0].cpu().numpy()
        return vector

    def vectors(self, frames: NDArray[np.float32]) -> Tensor:
        """Return the vectors (B, D) of filterbanks (B, T, 80)."""
        import torch

        inputs = torch.from_numpy(frames).to(self.device)
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=self.bfloat16):
            vectors = campplus_vectors(self.tensors, inputs)
        return vectors.float()

    def state(self) -> dict[str, Any]:
        """Return the state for `resume`."""
        parts = {
            "tensors": self.tensors,
            "classifier": self.classifier,
            "optimizer": self.optimizer.state_dict(),
        }
        return {**parts, "step": self.step, "judged": self.judged}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        import torch

        with torch.no_grad():
            for name, tensor in self.tensors.items():
                tensor.copy_(state["tensors"][name])
        self._start(state["classifier"].detach().cpu().numpy())
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        self.judged = dict(state["judged"])

    def save(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write tensors to a file, whole or not at all."""
        import torch

        with atomic_path(path) as temporary:
            torch.save(dict(content), temporary)

    def _start(self, rows: NDArray[np.float32]) -> None:
        import torch

        self.classifier = torch.from_numpy(rows).to(self.device).requires_grad_()
        network = [tensor for tensor in self.tensors.values() if tensor.requires_grad]
        self.optimizer = torch.optim.AdamW([{"params": network}, {"params": [self.classifier]}])


def angular_margin_loss(cosines: Tensor, targets: Tensor, margin: float, scale: float) -> Tensor:
    """Return the cross-entropy of speakers, with a margin added to the angle of the correct speaker.

    Parameters
    ----------
    cosines : torch.Tensor of shape (B, speakers)
        Cosines of vectors with the rows of a classifier.
    targets : torch.Tensor of int64 of shape (B,)
        The correct speakers.
    margin : float [rad]
    scale : float
        Factor of the cosines.

    References
    ----------
    J. Deng, J. Guo, N. Xue and S. Zafeiriou, "ArcFace: Additive angular margin loss for deep face recognition", CVPR
    2019, eq. 3.
    """
    from torch.nn.functional import cross_entropy, one_hot

    angles = cosines.clamp(-_NEARLY_ONE, _NEARLY_ONE).acos()
    is_target = one_hot(targets, cosines.shape[1])
    return cross_entropy(scale * (angles + margin * is_target).cos(), targets)


def has_bfloat16(device: str) -> bool:
    """Return whether products of this type are fast: on graphics cards, and on processors with special instructions."""
    import torch

    # there is no public function
    return device != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
