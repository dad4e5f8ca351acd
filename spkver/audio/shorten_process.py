"""The decoder of shorten in a process of its own, which may die of a file: ``python -m spkver.audio.shorten_process``.

It reads lines of JSON, ``{"path": ..., "most": samples of each channel}``, from its standard input. For each it writes
a line of JSON, ``{"shape": [samples, channels], "type": "int16"}`` with the samples behind it, or ``{"error": ...}``.
It ends when its input does, or when the process that started it is gone. Of the package it loads nothing, so that it
starts quickly.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SECONDS_BETWEEN_LOOKS = 2.0
_MOST_MEMORY = 4 << 30


def main() -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the one who asks
    _limit(resource.RLIMIT_CORE, 0)  # it may crash: no image of its memory on the disk
    _limit(resource.RLIMIT_AS, _MOST_MEMORY)
    parent = os.getppid()
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while _is_asked(parent) and (line := requests.readline()):
        request = json.loads(line)
        frames: NDArray[Any] = np.empty(0, np.int16)
        try:
            frames = decode(request["path"], request["most"])
            answer: dict[str, Any] = {"shape": frames.shape, "type": str(frames.dtype)}
        except Exception as error:  # whatever the library makes of a damaged file
            answer = {"error": str(getattr(error, "strerror", None) or error)}
        answers.write(json.dumps(answer).encode() + b"\n" + frames.tobytes())
        answers.flush()


def decode(path: str, most: int) -> NDArray[Any]:
    """Decode a file to (samples, channels), at most `most` samples of each channel and a frame more."""
    import av

    blocks: list[NDArray[Any]] = []
    n_samples = 0
    with av.open(path, metadata_errors="replace") as container:
        for frame in container.decode(audio=0):
            blocks.append(frame.to_ndarray())
            n_samples += blocks[-1].shape[1]
            if n_samples >= most:
                break
    return np.concatenate(blocks, axis=1).T if blocks else np.empty((0, 1), np.int16)


def _limit(what: int, most: int) -> None:
    with suppress(OSError, ValueError):  # it is limited further already
        resource.setrlimit(what, (most, most))


def _is_asked(parent: int) -> bool:
    """Wait for a request; the input can stay open without the one who asked, held by a fork of that process."""
    while not select.select([sys.stdin.fileno()], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
        if os.getppid() != parent:
            return False
    return True


if __name__ == "__main__":
    main()
