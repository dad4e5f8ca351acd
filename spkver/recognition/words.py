"""Words of recordings, by PocketSphinx, an optional package, which needs neither a GPU nor a network connection.

Its English model (part of the package) is much worse than neural recognisers, on clean speech too: its word error rates
show the loss of intelligibility against the original under the same recogniser, and are not comparable with those of
the challenges.

References
----------
D. Huggins-Daines et al., "PocketSphinx: a free, real-time continuous speech recognition system for hand-held devices",
ICASSP 2006.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.files import write_text
from spkbase.packages import imported
from spkbase.runs import Run
from spkver.audio import check_headers, read_audio
from spkver.datadir import DataDir
from spkver.recognition.recordings import map_recordings

_RATE = 16000
_CMN = "batch"  # cepstral means are those of the recording, so that no recording depends on the one before
_VARIANT = re.compile(r"\(\d+\)$")


def check_recogniser() -> None:
    """Check that the recogniser is installed.

    Raises
    ------
    ConfigError
        If it is not.
    """
    imported("pocketsphinx", "pocketsphinx", "recognition")


def transcribe(run: Run, datadir: DataDir) -> dict[str, str]:
    """Recognise the words of each utterance.

    Parameters
    ----------
    run : Run
        Keeps what is recognised, so that a second call resumes.
    datadir : DataDir
        Recordings at any rate; they are resampled to 16 kHz.

    Returns
    -------
    dict of str to str
        Upper-case words of each utterance, as LibriSpeech writes them, possibly none; sorted by utterance. Also written
        to ``text`` in the output folder, in Kaldi's form.

    Raises
    ------
    DataError
        If PocketSphinx is not installed, or files cannot be read; all are named, after the others are done.
    """
    check_recogniser()
    check_headers(datadir.recordings, jobs=run.jobs)
    libraries = ("numpy", "pocketsphinx", "soundfile", "soxr")
    words = map_recordings(run, "transcripts", recognise_file, datadir.recordings, settings=_CMN, libraries=libraries)
    write_text(run.path("text"), "".join(f"{utterance} {said}".rstrip() + "\n" for utterance, said in words.items()))
    return words


def recognise_file(path: Path) -> str:
    """Recognise the words of an audio file."""
    return recognise(read_audio(path, rate=_RATE, resample=True).samples)


def recognise(samples: NDArray) -> str:
    """Recognise the words of a signal at 16 kHz."""
    decoder = _decoder()
    decoder.reinit_feat()  # else noise and means of the previous recording would change the words
    decoder.start_utt()
    decoder.process_raw(np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    # pronunciations are numbered, noises stand in brackets
    words = [_VARIANT.sub("", word) for word in (hypothesis.hypstr if hypothesis else "").split()]
    return " ".join(word for word in words if word[0] not in "<[+").upper()


@lru_cache(maxsize=1)
def _decoder() -> Any:
    """Load the model once in each process."""
    from pocketsphinx import Decoder

    return Decoder(samprate=_RATE, cmn=_CMN, loglevel="FATAL")
