"""Decoding of shorten, apart from this process: FFmpeg, which PyAV wraps, ends the process on some damaged files.

A decoder is a process that is started for the first file and kept for the next; threads that decode at the same time
have one each. Decoders end with this process, however that ends, and with a fork of it nothing is shared.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST_SECONDS, _MOST_SECONDS = 30.0, 3600.0
_SAMPLES_PER_SECOND = 100_000  # a hundredth of what a decoder does


def is_installed() -> bool:
    """Return whether there is PyAV; it is not loaded into this process."""
    try:
        return importlib.util.find_spec("av") is not None
    except ValueError:  # put out of reach, by a test
        return False


def decode_shorten(path: Path, most: int) -> NDArray[Any]:
    """Decode a file to (samples, channels) in the type that it was made of, int16.

    Parameters
    ----------
    path : path
    most : int
        How many samples of each channel are wanted; some more may come.

    Raises
    ------
    ValueError
        If the decoder refuses the file, dies of it or does not come to an end; the text says so.
    """
    try:
        decoder = _IDLE.pop()
    except IndexError:
        return _ask(_Decoder(), path, most)
    try:
        return _ask(decoder, path, most)
    except EndedError:  # of an earlier file, or for lack of memory: what is said of a file depends on it alone
        return _ask(_Decoder(), path, most)


def _ask(decoder: _Decoder, path: Path, most: int) -> NDArray[Any]:
    try:
        answer = decoder.ask(path, most)
    except BaseException:  # its next answer would be to this question
        decoder.close()
        raise
    _IDLE.append(decoder)
    if isinstance(answer, str):
        raise ValueError(answer)
    return answer


class EndedError(ValueError):
    """A decoder ended before it had answered."""


class _Decoder:
    """A process that decodes one file after the other."""

    def __init__(self) -> None:
        home = Path(__file__).resolve().parents[2]
        # it finds what this process finds; in its current folder, too, there must be nothing else of our names
        places = [str(home), *map(os.path.abspath, sys.path)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "spkver.audio.shorten_process"],
            cwd=home,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, path: Path, most: int) -> NDArray[Any] | str:
        """Return the samples, or what the decoder says is wrong."""
        seconds = min(_LEAST_SECONDS + most / _SAMPLES_PER_SECOND, _MOST_SECONDS)
        late = threading.Timer(seconds, self._process.kill)
        late.daemon = True
        late.start()
        try:
            return self._answer({"path": str(path.absolute()), "most": most})
        except (EOFError, OSError):
            status = self._process.wait()
            how = f"died of it (status {status})" if late.is_alive() else f"came to no end in {seconds:.0f} s"
            raise EndedError(f"the decoder {how}") from None
        finally:
            late.cancel()

    def _answer(self, request: dict[str, Any]) -> NDArray[Any] | str:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(json.dumps(request).encode() + b"\n")
        requests.flush()
        line = answers.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        head: dict[str, Any] = json.loads(line)
        if "error" in head:
            return str(head["error"])
        dtype = np.dtype(head["type"])
        raw = answers.read(dtype.itemsize * int(np.prod(head["shape"])))
        frames = np.frombuffer(raw, dtype)
        if frames.size != np.prod(head["shape"]):
            raise EOFError
        return frames.reshape(head["shape"])

    def close(self) -> None:
        """End the process; it holds nothing that could be lost."""
        self._process.kill()
        self.let_go()
        self._process.wait()

    def let_go(self) -> None:
        """Close this side of its pipes."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


# Decoders without work. To put in and to take out is one step each, which no other thread divides.
_IDLE: list[_Decoder] = []


def close_decoders() -> None:
    """End the decoders that have no work; a later file starts one again."""
    while _IDLE:
        _IDLE.pop().close()


def _forget_decoders() -> None:
    """In a fork: the decoders belong to the process that it was forked from."""
    for decoder in _IDLE:
        decoder.let_go()
        decoder._process.returncode = 0  # so that nobody waits for them here
    _IDLE.clear()


atexit.register(close_decoders)
os.register_at_fork(after_in_child=_forget_decoders)
