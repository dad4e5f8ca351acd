"""A corpus in RSR2015's layout, small enough for a run in a second: buzzes through two resonances, not speech."""

from __future__ import annotations

import numpy as np
import soundfile
from scipy.signal import lfilter

from spkver.corpora.rsr2015 import PART_SENTENCES, key_files, prompts_file
from spkver.corpora.simulated import draw_prompts, enrolment_lines, trial_lines

RATE = 16000
N_SENTENCES, N_SESSIONS = {1: 2, 2: 2, 3: 5}, 4
FOLDERS = {"m": "male", "f": "female"}
# a run on it: 32 background recordings, 8 models
SETTINGS = {"ubm.components": 8, "nap.rank": 4, "background.size": 24, "report.resamples": 0}


def vowel(rng, *, pitch, formants, seconds, rate=RATE):
    """A pulse train through resonances between two pauses, with a little noise, in [-1, 1]."""
    n = round(seconds * rate)
    pulses = np.zeros(n)
    pulses[:: max(1, round(rate / pitch))] = 1.0
    sound = pulses + 0.02 * rng.standard_normal(n)
    for place, formant in enumerate(formants):
        angle, radius = 2 * np.pi * formant / rate, 0.97 - 0.01 * place
        sound = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], sound)
    ramp = np.interp(np.arange(n) / n, [0, 0.12, 0.2, 0.8, 0.88, 1], [0, 0, 1, 1, 0, 0])
    sound *= ramp * 0.3 / np.abs(sound).max()
    return sound + 1e-3 * rng.standard_normal(n)


def speaker_sound(speaker, session, sentence, *, seconds=0.6):
    """What a speaker says: formants of the speaker, pitch and a third formant of the sentence, both a little off."""
    voice = np.random.default_rng([ord(speaker[0]), int(speaker[1:])])
    formants = voice.uniform([300, 1200], [800, 2200])
    pitch = voice.uniform(90, 200)
    rng = np.random.default_rng([ord(speaker[0]), int(speaker[1:]), session, sentence])
    wobble = rng.normal(1.0, 0.04, 3)
    third = 2500 + 500 * sentence
    return vowel(
        rng, pitch=pitch * wobble[2], formants=[*(formants * wobble[:2]), third], seconds=seconds
    )


def write_tiny_corpus(
    root,
    *,
    gender="m",
    partition="eval",
    background=(1, 2, 3, 4),
    evaluation=(101, 102, 103, 104),
    extensions=("wav",),
    part=1,
):
    """Write recordings and key files; the containers of `extensions` take turns. Returns `root`."""
    folder, first = FOLDERS[gender], PART_SENTENCES[part][0]
    speakers = [f"{gender}{number:03d}" for number in (*background, *evaluation)]
    count = 0
    for speaker in speakers:
        (root / "sph" / folder / speaker).mkdir(parents=True, exist_ok=True)
        for sentence in range(first, first + N_SENTENCES[part]):
            for session in range(1, N_SESSIONS + 1):
                extension = extensions[count % len(extensions)]
                count += 1
                path = (
                    root
                    / "sph"
                    / folder
                    / speaker
                    / f"{speaker}_{session:02d}_{sentence:03d}.{extension}"
                )
                form = {"sph": "NIST", "wav": "WAV", "flac": "FLAC"}[extension]
                samples = np.rint(speaker_sound(speaker, session, sentence) * 32767).astype(
                    np.int16
                )
                soundfile.write(path, samples, RATE, format=form)
    models = speakers[len(background) :]
    shape = {"n_sentences": N_SENTENCES[part], "n_sessions": N_SESSIONS, "part": part}
    for kind in ("trn", "ndx"):
        (root / "key" / f"part{part}" / kind).mkdir(parents=True, exist_ok=True)
    trn, ndx = key_files(root, gender, partition, part)
    trn.write_text("".join(enrolment_lines(models, folder=folder, **shape)))
    prompts = draw_prompts(0)
    ndx.write_text(
        "".join(line for lines in trial_lines(models, prompts=prompts, **shape) for line in lines)
    )
    if part == 3:
        prompts_file(root).write_text(
            "".join(f"{s},{n},{' '.join(words)}\n" for (s, n), words in prompts.items())
        )
    return root
