"""The extractor of phone durations: how long a speaker holds each sound, relative to the speaking rate.

Anonymisers that change only the timbre keep durations. A phone recogniser (PocketSphinx, whose English model is used
for all languages) cuts a recording into phones; no words are recognised. The log duration of each occurrence, minus the
typical one of its phone and the mean of the recording, is averaged over the n occurrences of a phone, and shrunk by n /
(n + 1), so that a phone that does not occur counts as typical: 0. The last number is the mean over the recording, which
reflects the speaking rate. The cosine of such vectors is the measure rho1 of [1], with relative log durations in place
of durations.

References
----------
.. [1] N. Tomashenko, E. Vincent and M. Tommasi, "Analysis of speech temporal dynamics in the context of speaker
   verification and voice anonymization", arXiv 2412.17164, 2024.
.. [2] D. Huggins-Daines et al., "PocketSphinx: a free, real-time continuous speech recognition system for hand-held
   devices", ICASSP 2006.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.packages import imported
from spkbase.version import library_version
from spkver.extractors.protocol import (
    RATE,
    SHORTEST,
    Extraction,
    ExtractorSettings,
    extract_each,
)

PHONES: dict[str, float] = {
    **{"AA": 2.39, "AE": 2.36, "AH": 1.51, "AO": 2.45, "AW": 2.56, "AY": 2.52, "B": 1.92},
    **{"CH": 2.41, "D": 1.79, "DH": 1.95, "EH": 1.98, "ER": 2.37, "EY": 2.41, "F": 2.31},
    **{"G": 2.05, "HH": 2.17, "IH": 1.68, "IY": 2.30, "JH": 2.22, "K": 2.20, "L": 2.19},
    **{"M": 2.10, "N": 1.98, "NG": 2.38, "OW": 2.43, "OY": 2.49, "P": 2.13, "R": 2.07},
    **{"S": 2.48, "SH": 2.52, "T": 2.02, "TH": 2.13, "UH": 1.75, "UW": 2.15, "V": 1.86},
    **{"W": 2.31, "Y": 2.23, "Z": 2.34, "ZH": 2.52},
}
"""Phones of the model, and the typical natural logarithm of their durations in frames of 10 ms: the mean over 126
speakers of read English (LibriSpeech)."""

_SPREAD = 0.4  # typical standard deviation of log durations
_SPREAD_OF_RATES = 0.1  # typical standard deviation of the means of recordings
_PRIOR = 1.0  # number of occurrences that the prior counts as
_SEARCH = {"lw": 2.0, "pip": 0.3, "beam": 1e-20, "pbeam": 1e-20}
_VERSION = 1  # must change whenever the numbers do


def duration_vector(phones: Iterable[tuple[str, int]]) -> NDArray[np.float64]:
    """Return the relative log durations of phones, and the rate.

    Parameters
    ----------
    phones : iterable of (str, int)
        Phones of a recording, and their lengths in frames; those that `PHONES` lacks are left out.

    Returns
    -------
    ndarray of float64 of shape (P + 1,)
        Values in the order of `PHONES`, then the rate, each divided by a typical deviation.

    Raises
    ------
    DataError
        If there is no phone.
    """
    numbers = {name: number for number, name in enumerate(PHONES)}
    rows = []
    relative = []
    for name, frames in phones:
        if name in PHONES:
            rows.append(numbers[name])
            relative.append(np.log(frames) - PHONES[name])
    if not rows:
        raise DataError("no phone is recognised")
    lengths = np.array(relative)
    rate = lengths.mean()
    counts = np.bincount(rows, minlength=len(PHONES))
    sums = np.bincount(rows, lengths - rate, minlength=len(PHONES))
    means = sums / (counts + _PRIOR) / _SPREAD
    return np.append(means, rate / _SPREAD_OF_RATES)


def recognise_phones(samples: NDArray[np.floating]) -> list[tuple[str, int]]:
    """Return the phones of a signal at 16 kHz with their lengths in frames of 10 ms, pauses and noises among them."""
    decoder = _phone_decoder()
    decoder.reinit_feat()  # otherwise means of the previous recording would affect the phones
    decoder.start_utt()
    integers = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2")
    decoder.process_raw(integers.tobytes(), full_utt=True)
    decoder.end_utt()
    phones = []
    for segment in decoder.seg() or ():
        phones.append((segment.word, segment.end_frame - segment.start_frame + 1))
    return phones


def open_durations(rest: str, settings: ExtractorSettings) -> Extraction:
    """Open the extractor; it has no settings."""
    if rest:
        raise ConfigError(f"expected durations, got durations:{rest}")
    settings.check_rate()
    if settings.windows():
        raise ConfigError("it takes no window: it uses the phones of whole recordings")
    imported("pocketsphinx", "pocketsphinx")
    record = {"durations": _VERSION, "pocketsphinx": library_version("pocketsphinx")}
    embed = partial(extract_each, function=_embed, rate=RATE, shortest=SHORTEST)
    return Extraction(embed, record, RATE, SHORTEST)


def _embed(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
    return duration_vector(recognise_phones(samples))


@lru_cache(maxsize=1)
def _phone_decoder() -> Any:
    """Load the model of phones, once in each process."""
    from pocketsphinx import Decoder, get_model_path

    model = Path(get_model_path()) / "en-us" / "en-us-phone.lm.bin"
    options = {"samprate": RATE, "cmn": "batch", "loglevel": "FATAL", **_SEARCH}
    return Decoder(allphone=str(model), lm=None, dict=None, **options)
