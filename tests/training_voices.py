"""Speech for tests of trainers: eight voices with pitch and formants of their own, three of them held out."""

from pathlib import Path

import numpy as np
import soundfile

from spkver.anonymization import AnonymizerConfig
from spkver.training import HeldOut, TrainingSpeech, Utterance

SAMPLES, RATE = 19200, 16000


def training_speech(folder: Path) -> TrainingSpeech:
    """Write two takes of each voice into a folder, which McAdams' anonymiser can anonymise."""

    def write(speaker: int, take: int) -> Path:
        path = folder / f"{speaker}-{take}.wav"
        soundfile.write(path, _sound(speaker, take), RATE)
        return path

    utterances = []
    for speaker in range(5):
        for take in range(2):
            path = write(speaker, take)
            utterances.append(Utterance(path.stem, str(speaker), "f", path, (path,)))
    enrolment = {str(speaker): [write(speaker, 0)] for speaker in (5, 6, 7)}
    tested = {f"{speaker}-1": write(speaker, 1) for speaker in (5, 6, 7)}
    trials = [(model, name, name.startswith(model)) for model in enrolment for name in tested]
    held_out = HeldOut(enrolment, tested, trials)
    return TrainingSpeech(tuple(utterances), held_out, AnonymizerConfig(), folder / "again")


def _sound(speaker: int, take: int) -> np.ndarray:
    draw = np.random.default_rng([speaker, take])
    pulses = np.zeros(SAMPLES)
    pulses[:: 100 + 17 * speaker] = 1
    colour = np.random.default_rng(speaker).standard_normal(40)
    voice = np.convolve(pulses, colour, "same") * 0.05
    return (voice + 0.002 * draw.standard_normal(SAMPLES)).astype(np.float32)
