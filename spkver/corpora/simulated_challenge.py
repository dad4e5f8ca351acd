"""Simulated speech with the size and form of a challenge's sets, times a scale, to measure time and memory.

    OUTPUT/libri_{dev,test}_enrolls/, OUTPUT/libri_{dev,test}_trials_{f,m}/, OUTPUT/train-clean-360/
        wav.scp utt2spk spk2utt spk2gender text; enrolls for enrolment, trials for trials; wav/*.wav

A speaker says a few sentences once in each session; recordings are these sentences in many orders, so that hours of
speech are made nearly as fast as they are written. Error rates on them say nothing, not even about simulated speech.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spkbase.errors import ConfigError
from spkver.corpora import voices
from spkver.corpora.simulated import (
    Recording,
    Simulated,
    simulate,
    write_challenge_lists,
    write_recording,
)

_SENTENCES = 12  # sentences of a speaker in a session
_IN_SESSION = 40  # recordings in a session
_SECONDS = 2.53  # mean seconds of a sentence with the silences around it


class Part(NamedTuple):
    """The recordings of one sex in a data directory: numbers of speakers and recordings, and the first speaker's."""

    directory: str
    sex: str
    speakers: int
    recordings: int
    first: int


SHAPES = {
    "vpc2024": (
        Part("libri_dev_enrolls", "f", 15, 167, 1),
        Part("libri_dev_enrolls", "m", 14, 176, 1),
        Part("libri_dev_trials_f", "f", 20, 1018, 1),
        Part("libri_dev_trials_m", "m", 20, 960, 1),
        Part("libri_test_enrolls", "f", 16, 254, 101),
        Part("libri_test_enrolls", "m", 13, 184, 101),
        Part("libri_test_trials_f", "f", 20, 734, 101),
        Part("libri_test_trials_m", "m", 20, 762, 101),
        Part(
            "train-clean-360", "f", 439, 49_579, 501
        ),  # recordings of each sex in proportion to its speakers
        Part("train-clean-360", "m", 482, 54_435, 501),
    )
}
"""Sets of challenges by name; N. Tomashenko et al., "The VoicePrivacy 2024 Challenge evaluation plan", table 3."""

_FEWEST = {"enrolls": 3, "trials": 4, "train": 12}  # fewest speakers of a sex, at any scale


def simulate_challenge(
    output: str | Path, like: str, scale: float, *, seed: int = 0, jobs: int | None = None
) -> Simulated:
    """Write SIMULATED sets with the speakers and recordings of a challenge's sets, times a scale.

    Training recordings last 2 to 17 s, 12.6 s on average, as in LibriSpeech's train-clean-360; the others 2 to 35 s,
    7.2 s on average. A part keeps at least a few speakers of each sex, and two recordings of each.

    Parameters
    ----------
    output : path
        Folder to make, see `simulate_voiceprivacy`.
    like : str
        A name of `SHAPES`.
    scale : float
        Factor on the numbers of speakers and recordings, above 0 and at most 1.
    seed : int
    jobs : int, optional
        Worker processes; all cores by default.

    Raises
    ------
    ConfigError
        If there is no such shape, or the scale is out of its range.
    DataError
        As for `simulate_voiceprivacy`.
    """
    if like not in SHAPES or not 0 < scale <= 1:
        text = f"like {like!r}, scale {scale:g}: expected {', '.join(SHAPES)} and a scale above 0, at most 1"
        raise ConfigError(text)
    table = []
    for part in SHAPES[like]:
        table += _rows(part, scale, seed)
    parameters = {"like": like, "scale": scale, "seed": seed}
    readme = f"""\
SIMULATED speech in the size and shape of a challenge's sets, to measure time and memory on. No real person speaks
here, each speaker repeats {_SENTENCES} sentences, and error rates on it say nothing.

Made by
    spkver simulate voiceprivacy OUTPUT --like {like} --scale {scale!r} --set seed={seed}
with ENGINE (eSpeak NG) and the signal processing of spkver; simulation.json holds every setting.
"""
    about = (
        "SIMULATED: synthetic speech in the size and shape of a challenge's sets, made by spkver"
    )
    lists = partial(write_challenge_lists, table=table)
    output = Path(output).resolve()
    counts, created = simulate(
        output, table, parameters, about, lists, readme, record=_record_speaker, jobs=jobs
    )
    text = (
        "SIMULATED speech of {n_enrolled} enrolled, {n_trial_speakers} trial and {n_training} training speakers,"
        " {n_files} recordings ({hours:.1f} h), {n_targets} target and {n_nontargets} nontarget trials"
    )
    return Simulated(output, counts, created, text.format(hours=counts["seconds"] / 3600, **counts))


def _rows(part: Part, scale: float, seed: int) -> list[Recording]:
    """Return the recordings of a part, sorted by speaker."""
    is_training = "_" not in part.directory
    kind = "train" if is_training else part.directory.split("_")[2]
    n_speakers = min(part.speakers, max(_FEWEST[kind], round(part.speakers * scale)))
    n_recordings = max(2 * n_speakers, round(part.recordings * scale))
    first_session = 100 * (kind == "trials")  # enrolment and trials have different sessions
    # durations are 2 s and more; shape of the beta distribution, and its width in seconds
    alpha, beta, width = (2.4, 1.0, 15) if is_training else (0.9, 4.8, 33)
    rows = []
    for position in range(n_speakers):
        number = part.first + position
        n_takes = len(range(position, n_recordings, n_speakers))
        random = voices.generator(seed, "session", part.sex, number, 1000 + first_session)
        seconds = 2 + width * random.beta(alpha, beta, n_takes)
        counts = np.maximum(1, np.rint(seconds / _SECONDS)).astype(int)
        for take, count in enumerate(counts.tolist()):
            sentences = random.permutation(np.arange(count) % _SENTENCES)
            text = " ".join(voices.SENTENCES[sentence] for sentence in sentences)
            session = first_session + take // _IN_SESSION
            file = f"{part.directory}/wav/{part.sex}{number:03d}-{session:03d}-{take:04d}.wav"
            rows.append(Recording(file, part.sex, number, session, text, take))
    return rows


def _record_speaker(table: Sequence[Recording], *, tree: Path, seed: int, audio_format: str) -> int:
    """Write a speaker's recordings from sentences that are synthesised once per session.

    Return the number of samples.
    """
    voice = voices.make_voice(table[0].sex, table[0].number, seed)
    spoken: dict[tuple[int, str], np.ndarray] = {}
    n_samples = 0
    for row in table:
        parts = []
        for sentence in re.findall(r"\S[^.]*\.", row.text):
            key = (row.session, sentence)
            if key not in spoken:
                session = voices.make_session(row.sex, row.number, row.session, seed)
                take = voices.SENTENCES.index(sentence)
                speech = voices.synthesise_utterance(voice, sentence, session, take=take)
                spoken[key] = np.round(speech * 32767)
            parts.append(spoken[key])
        # no two files are equal, although short ones may hold the same sentence
        samples = (np.concatenate(parts) * (1 - 0.002 * (row.take % 100))).astype(np.int16)
        n_samples += write_recording(tree / row.file, samples, audio_format)
    return n_samples
