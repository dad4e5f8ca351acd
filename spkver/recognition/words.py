"""Words of recordings, by the best recogniser that is installed.

===============  =======================================================================================================
recogniser       what it is
===============  =======================================================================================================
whisper[:PATH]   a neural network, see `spkver.recognition.whisper`; extra ``[whisper]``, and weights
pocketsphinx     no neural network, and several times the errors, see `spkver.recognition.sphinx`; extra ``[asr]``
auto             the first of these that is installed, with its weights
===============  =======================================================================================================
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, few
from spkbase.files import read_id_list, write_text
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.audio import check_headers, read_audio
from spkver.datadir import DataDir
from spkver.recognition import sphinx, whisper
from spkver.recognition.recordings import map_recordings
from spkver.recognition.texts import Recognised, agreement, spoken_words, without_loops

logger = logging.getLogger(__name__)

AUTO = "auto"
UNDERSTOOD = 0.2
"""Words were not understood if a smaller share of them agrees with the reference, such as words of another language."""

_RATE = 16000
_METHOD = 1  # version of the processing of a recogniser's words


@one_line
@dataclass(frozen=True)
class Recogniser:
    """A recogniser of words.

    Attributes
    ----------
    name : str
        Name for tables, such as "whisper tiny.en".
    function : callable
        Function from a signal at 16 kHz to its upper-case words; importable, or a `functools.partial` of an importable
        one.
    record : object
        All that the words depend on besides the audio; see `spkbase.files.fingerprint`.
    libraries : tuple of str
        Distributions whose versions the words depend on.
    writer : callable or None
        Function from a signal at 16 kHz to its text with punctuation and capitals, if the recogniser supports these.
    """

    name: str
    function: Callable[[NDArray[Any]], str]
    record: Any = None
    libraries: tuple[str, ...] = ("numpy", "soundfile", "soxr")
    writer: Callable[[NDArray[Any]], str] | None = None

    def recognise(self, samples: NDArray[np.floating]) -> Recognised:
        """Recognise the words of a signal at 16 kHz."""
        words, is_cut = without_loops(self.function(samples).split(), len(samples) / _RATE)
        return Recognised(" ".join(words), is_cut)

    def write(self, samples: NDArray[np.floating]) -> str:
        """Transcribe a signal at 16 kHz as a text to be read aloud.

        The text has punctuation and capitals if the recogniser supports these, unless it repeated itself.
        """
        if self.writer is None:
            return self.recognise(samples).words.lower()
        text = self.writer(samples)
        words, is_cut = without_loops(spoken_words(text), len(samples) / _RATE)
        if is_cut:
            return " ".join(words).lower()
        return text

    def recognise_file(self, path: Path) -> Recognised:
        """Recognise the words of an audio file of any sampling rate."""
        return self.recognise(read_audio(path, rate=_RATE, resample=True).samples)


@one_line
@dataclass(frozen=True)
class Transcripts:
    """The words of a data directory.

    Attributes
    ----------
    words : dict of str to str
        Upper-case words of each utterance, as LibriSpeech writes them, possibly none; sorted by utterance.
    recogniser : str
        Name of the recogniser.
    cut : tuple of str
        Utterances in which the recogniser repeated itself, see `without_loops`.
    agreement : float
        Share of the words of the data directory's ``text`` that were recognised; NaN without that file.
    """

    words: Mapping[str, str] = field(repr=False)
    recogniser: str
    cut: tuple[str, ...] = ()
    agreement: float = math.nan


def open_recogniser(name: str = AUTO) -> Recogniser:
    """Return a recogniser that is installed.

    Parameters
    ----------
    name : str
        "auto", "whisper", "whisper:PATH" with a model's folder or wheel, or "pocketsphinx"; see the module.

    Raises
    ------
    ConfigError
        If there is no such recogniser, or it is not installed; the error says how to install it.
    DataError
        If weights are damaged.
    """
    base, _, path = name.partition(":")
    if base == "whisper":
        weights = whisper.whisper_weights(path)
        model, digest = whisper.describe_weights(weights)
        function = partial(whisper.recognise_by_whisper, weights=weights)
        writer = partial(whisper.write_by_whisper, weights=weights)
        record = {"weights": digest, "method": _METHOD}
        return Recogniser(f"whisper {model}", function, record, whisper.LIBRARIES, writer)
    if name == "pocketsphinx":
        sphinx.check_pocketsphinx()
        record = {"cmn": sphinx.CMN, "method": _METHOD}
        return Recogniser(name, sphinx.recognise_by_pocketsphinx, record, sphinx.LIBRARIES)
    if name != AUTO:
        raise ConfigError(
            f"there is no recogniser {name!r}: expected auto, whisper, whisper:PATH or pocketsphinx"
        )
    for best in ("whisper", "pocketsphinx"):
        try:
            return open_recogniser(best)
        except ConfigError as error:
            logger.debug("no recognition by %s: %s", best, error)
    remedy = (
        "pip install faster-whisper, then once: spkver weights whisper; or pip install pocketsphinx"
    )
    raise ConfigError(
        "no recogniser of words is installed", remedy=f"{remedy}, which makes more errors"
    )


def transcribe(run: Run, datadir: DataDir, recogniser: Recogniser) -> Transcripts:
    """Recognise the words of each utterance.

    Parameters
    ----------
    run : Run
        The run that keeps results, so that a second call resumes, and whose workers share the recordings. The words are
        written to its folder as ``text``, in Kaldi's form.
    datadir : DataDir
        Recordings at any rate; they are resampled to 16 kHz.
    recogniser : Recogniser
        See `open_recogniser`.

    Raises
    ------
    DataError
        If files cannot be read; all such files are named, after the others are done.
    """
    check_headers(datadir.recordings, jobs=run.jobs)
    references = _references(datadir)
    settings = [recogniser.name, recogniser.record]
    libraries = recogniser.libraries
    kept = map_recordings(
        run,
        "transcripts",
        recogniser.recognise_file,
        datadir.recordings,
        settings=settings,
        libraries=libraries,
    )
    words = {}
    cut = []
    for utterance, values in kept.items():
        result = Recognised(*values)
        words[utterance] = result.words
        if result.is_cut:
            cut.append(utterance)
    if cut:
        text = "%s: %s repeated itself in %d of %d recordings, and was cut: %s"
        logger.warning(text, datadir.path, recogniser.name, len(cut), len(words), few(cut))
    lines = [f"{name} {text}".rstrip() + "\n" for name, text in words.items()]
    write_text(run.path("text"), "".join(lines))
    return Transcripts(words, recogniser.name, tuple(cut), agreement(references, words))


def _references(datadir: DataDir) -> dict[str, str]:
    """Return the texts of a data directory, which may have none."""
    path = datadir.path / "text"
    if not path.is_file():
        return {}
    return read_id_list(path, "utterance words", n_columns=1, rest=True)
