"""Speech from the eSpeak NG library of the package espeakng-loader, through ctypes.

A voice is given as the text of an eSpeak voice file, loaded from a short-lived file of its own. So nothing is added to
the engine's data, which is read where it is installed, and the library's limit of 350 listed voices does not hold.

The library keeps one state per process. Speech depends on nothing but the arguments as long as the voice uses no
`flutter`, `roughness` or `breath` and the accent is one of `ACCENTS`; with the others the same call gives other samples
after other calls.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from spkbase.errors import DataError

# Language files of eSpeak NG. Scottish English (en-GB-scotland) is left out: its trills carry state between calls.
ACCENTS = ("en-US", "en", "en-US-nyc", "en-GB-x-rp", "en-GB-x-gbclan", "en-GB-x-gbcwmd", "en-029")

_EXTRA = "pip install 'spkver[demo]' installs it"
_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: samples go to the callback before espeak_Synth returns
_DONT_EXIT = 0x8000  # return an error instead of ending the process when the data are missing
_UTF8 = 1
_RATE, _VOLUME, _PITCH, _RANGE = 1, 2, 3, 4  # espeak_PARAMETER
_LONGEST_DATA_PATH = 140  # bytes; the library cuts longer ones off

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class _Engine:
    """The library, initialised, with the buffer that its callback fills. One per process, see `_engine`."""

    def __init__(self, library: Path, data: Path) -> None:
        self.lock = threading.Lock()
        self.chunks: list[bytes] = []
        try:
            self.library = ctypes.CDLL(str(library))
        except OSError as error:
            raise DataError(f"the speech engine cannot be loaded: {error}", file=library, remedy=_EXTRA) from error
        self.rate = self.library.espeak_Initialize(_SYNCHRONOUS, 0, os.fsencode(self._short(data)), _DONT_EXIT)
        if self.rate <= 0:
            raise DataError("the speech engine does not accept its data folder", file=data, remedy=_EXTRA)
        self._callback = _Callback(self._collect)  # kept, because the library does not hold a reference
        self.library.espeak_SetSynthCallback(self._callback)

    def _short(self, data: Path) -> Path:
        if len(os.fsencode(data)) <= _LONGEST_DATA_PATH:
            return data
        self._folder = tempfile.TemporaryDirectory(prefix="spkver-espeak-")
        link = Path(self._folder.name) / "data"
        link.symlink_to(data, target_is_directory=True)
        return link

    def _collect(self, samples: ctypes._Pointer[ctypes.c_short], count: int, events: int | None) -> int:
        if samples and count > 0:
            self.chunks.append(ctypes.string_at(samples, 2 * count))
        return 0


def loader() -> ModuleType:
    """Return the package espeakng-loader.

    Raises
    ------
    DataError
        If it is not installed.
    """
    try:
        import espeakng_loader
    except ImportError as error:
        raise DataError("simulated speech needs the package espeakng-loader", remedy=_EXTRA) from error
    return espeakng_loader


def check_synthesiser() -> None:
    """Raise DataError if the voices are not installed, before anything is made with them."""
    loader()


def accent_text(accent: str) -> str:
    """Return the text of the language file of an accent, the first part of a voice file."""
    if accent not in ACCENTS:
        raise DataError(f"accent {accent!r} is not one of {', '.join(ACCENTS)}")
    return _accent_text(accent)


def synthesise(text: str, voice_file: str, *, words_per_minute: int) -> tuple[np.ndarray, int]:
    """Speak a sentence.

    Parameters
    ----------
    text : str
        What to say.
    voice_file : str
        Text of an eSpeak voice file: `accent_text` followed by the voice's own lines.
    words_per_minute : int
        Speaking rate, 80 to 450.

    Returns
    -------
    samples : ndarray of int16 of shape (n_samples,)
    rate : int
        Samples per second, 22 050.

    Raises
    ------
    DataError
        If the engine is not installed, refuses the voice, or stays silent.
    """
    engine = _engine()
    with engine.lock:
        _load_voice(engine, voice_file)
        for parameter, value in ((_RATE, words_per_minute), (_VOLUME, 100), (_PITCH, 50), (_RANGE, 50)):
            _check(engine.library.espeak_SetParameter(parameter, value, 0), f"parameter {parameter} = {value}")
        engine.chunks.clear()
        data = text.encode() + b"\0"
        _check(engine.library.espeak_Synth(data, len(data), 0, 0, 0, _UTF8, None, None), f"the text {text!r}")
        _check(engine.library.espeak_Synchronize(), f"the text {text!r}")
        samples = np.frombuffer(b"".join(engine.chunks), dtype=np.int16)
    if not samples.any():
        raise DataError(f"the speech engine has nothing to say for the text {text!r}")
    return samples, engine.rate


@cache
def _engine() -> _Engine:
    package = loader()
    return _Engine(Path(package.get_library_path()), Path(package.get_data_path()))


@cache
def _accent_text(accent: str) -> str:
    file = Path(loader().get_data_path()) / "lang" / "gmw" / accent
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"the speech engine's data lack {accent}", file=file, remedy=_EXTRA) from error


def _load_voice(engine: _Engine, voice_file: str) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="spkver-voice-", encoding="utf-8") as handle:
        handle.write(voice_file)
        handle.flush()
        # a refused voice would silently leave the one before in place
        _check(engine.library.espeak_SetVoiceByFile(os.fsencode(handle.name)), "the voice")


def _check(status: int, what: str) -> None:
    if status != 0:
        raise DataError(f"the speech engine refused {what} (status {status})", remedy=_EXTRA)
