"""Words by PocketSphinx, an optional package with its English model, without a neural network.

It makes several times the errors of neural recognisers, on clean speech too: its word error rates show the loss of
intelligibility against the original under the same recogniser, and are not comparable with those of the challenges.

References
----------
D. Huggins-Daines et al., "PocketSphinx: a free, real-time continuous speech recognition system for hand-held devices",
ICASSP 2006.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.packages import imported

RATE = 16000
# cepstral means are taken over the recording, so that no recording depends on the one before
CMN = "batch"
LIBRARIES = ("numpy", "pocketsphinx", "soundfile", "soxr")

_VARIANT = re.compile(r"\(\d+\)$")


def check_pocketsphinx() -> None:
    """Check that PocketSphinx is installed.

    Raises
    ------
    ConfigError
        If it is not installed.
    """
    imported("pocketsphinx", "pocketsphinx", "recognition")


def recognise_by_pocketsphinx(samples: NDArray[np.floating]) -> str:
    """Return the words of a signal at 16 kHz, in upper case, with single blanks between them."""
    decoder = load_decoder()
    decoder.reinit_feat()  # otherwise noise and means of the previous recording would affect the words
    decoder.start_utt()
    integers = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2")
    decoder.process_raw(integers.tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    if not hypothesis:
        return ""
    # pronunciations are numbered, and noises are in brackets
    words = [_VARIANT.sub("", word) for word in hypothesis.hypstr.split()]
    return " ".join(word for word in words if word[0] not in "<[+").upper()


@lru_cache(maxsize=1)
def load_decoder() -> Any:
    """Load the model, once in each process."""
    from pocketsphinx import Decoder

    return Decoder(samprate=RATE, cmn=CMN, loglevel="FATAL")
