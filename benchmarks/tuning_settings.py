"""How CAM++ is best tuned on anonymised speech: learning rates, layers and distillation, at equal steps.

    python -m benchmarks.public_speech DIR --librispeech Resemblyzer
    python -m benchmarks.tuning_settings DIR OUTPUT

Each setting changes one thing of `spkver.training.tuning`: the rate; whether the convolutions of the front end learn;
or the loss, to which distillation adds how far the vector of a crop is from that which the published network gives an
original recording of the speaker (one minus their cosine, times a weight). All learn from the same crops of the same
speakers, those of `libri251` that are not held out. The table has the equal error rates of the held-out speakers after
every ten steps; nothing is chosen on tested speakers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.training_curves import Study, parse_cell
from spkbase.console import Command
from spkbase.files import format_table, load_json, make_folder, write_json
from spkbase.seeding import stream
from spkver.anonymization import AnonymizerConfig
from spkver.attackers.trained import training_speech
from spkver.training.crops import random_batch
from spkver.training.speech import TrainingSpeech
from spkver.training.tuning import Tuner, TuningConfig

JUDGED = 10
PATH = click.Path(path_type=Path)


@dataclass(frozen=True)
class Setting:
    """A way to tune the network.

    Attributes
    ----------
    name : str
    rate : float
        Largest learning rate.
    has_fixed_front_end : bool
        Whether the convolutions over bands and frames stay as they are published.
    distilled : float
        Weight of the distance from the published network's vectors of original recordings.
    """

    name: str
    rate: float = TuningConfig().rate
    has_fixed_front_end: bool = False
    distilled: float = 0.0


SETTINGS = (
    Setting("as used"),
    Setting("rate 1e-4", rate=1e-4),
    Setting("rate 1e-3", rate=1e-3),
    Setting("front end fixed", has_fixed_front_end=True),
    Setting("distilled, weight 5", distilled=5.0),
    Setting("distilled, weight 20", distilled=20.0),
)


class StudiedTuner(Tuner):
    """A tuner with another loss, or of fewer layers.

    Parameters
    ----------
    setting : Setting
    training : TrainingSpeech
    steps : int
    """

    def __init__(self, setting: Setting, training: TrainingSpeech, steps: int) -> None:
        super().__init__(TuningConfig(rate=setting.rate, steps=steps), "cpu")
        self.setting = setting
        if setting.has_fixed_front_end:
            for name, tensor in self.tensors.items():
                if name.startswith("head.") and tensor.requires_grad:
                    tensor.requires_grad_(False)
        self.classify(training)
        self.published = self.classifier.detach().clone()

    def loss(self, vectors: Any, speakers: NDArray[np.int64]) -> Any:
        """Return the loss of the vectors of crops."""
        import torch
        from torch.nn.functional import cosine_similarity

        loss = super().loss(vectors, speakers)
        if self.setting.distilled:
            published = self.published[torch.from_numpy(speakers)]
            loss = (
                loss + self.setting.distilled * (1 - cosine_similarity(vectors, published)).mean()
            )
        return loss


def rates_of(
    setting: Setting, training: TrainingSpeech, versions: Any, *, steps: int, seed: int
) -> dict[int, float]:
    """Return the equal error rates of the held-out speakers by the number of steps."""
    tuner = StudiedTuner(setting, training, steps)
    rates = {0: training.held_out.eer(tuner.vector)}
    while tuner.step < steps:
        draw = stream(seed, f"crops of step {tuner.step}")
        tuner.learn(
            *random_batch(training, versions, tuner.config.batch, tuner.config.seconds, draw)
        )
        if tuner.step % JUDGED == 0:
            rates[tuner.step] = training.held_out.eer(tuner.vector)
            print(
                f"{setting.name}, {tuner.step} steps: {100 * rates[tuner.step]:.1f} %", flush=True
            )
    return rates


@click.command(cls=Command)
@click.argument("data", type=PATH)
@click.argument("output", type=PATH)
@click.option("--anonymizer", default="mcadams")
@click.option("--steps", default=40)
@click.option("--seed", "seeds", multiple=True, type=int, default=(0, 1))
def main(data: Path, output: Path, anonymizer: str, steps: int, seeds: Sequence[int]) -> None:
    """Tune CAM++ in each setting on the sets of DATA, and print the rates; OUTPUT keeps what is finished."""
    study = Study(data, output, "libri251", (), AnonymizerConfig(name=anonymizer), 2, 1)
    rows = []
    for seed in seeds:
        set_of_speakers = study.training_set(parse_cell(f"251x2+@{seed}"))
        speech = training_speech(
            set_of_speakers, set_of_speakers.versions, output / "further", seed=seed
        )
        versions = speech.further_versions(4, seed=seed, jobs=1)
        for setting in SETTINGS:
            file = output / f"{setting.name}@{seed}.json".replace(" ", "-")
            if not file.is_file():
                rates = rates_of(setting, speech, versions, steps=steps, seed=seed)
                write_json(make_folder(file.parent) / file.name, rates)
            row = {"setting": setting.name, "seed": str(seed)}
            for step, rate in load_json(file).items():
                row[f"{step} steps"] = f"{100 * rate:.1f}"
            rows.append(row)
    print(format_table(rows, markdown=True))


if __name__ == "__main__":
    main()
