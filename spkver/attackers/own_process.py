"""A user-supplied function in a process of its own, so that it can be ended, and so that its death is its own.

The process is started by `FunctionProcess` and asked by files in a folder of its own: ``request-N.json`` comes, a
``reply-N.json`` goes, with the scores in ``values-N.npy``. Nothing of what it gives is unpickled.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.own_code import GuardedCommand, Limits, load_named

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_SECONDS_BETWEEN_LOOKS = 0.02
_SHOWN = 500  # characters of what a function prints


class FunctionProcess:
    """A process that serves one user-supplied function; it ends with this process, and when nobody holds it.

    Parameters
    ----------
    name : str
        Of the attacker, for the log.
    spec : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.
    """

    def __init__(self, name: str, spec: str) -> None:
        self.name, self._count = name, 0
        self._holder = tempfile.TemporaryDirectory()
        self._folder = Path(self._holder.name)
        code = f"import sys; sys.path[:] = {sys.path!r}; from spkver.attackers.own_process import serve; serve()"
        self._process = GuardedCommand("exec " + shlex.join([sys.executable, "-c", code, str(self._folder), spec]))
        self._finalizer = weakref.finalize(self, _close, self._process, self._holder)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._finalizer.alive and self._process.is_alive

    def close(self) -> None:
        """End it with all that it has started."""
        self._finalizer()

    def ask(self, request: Mapping[str, Any], seconds: float | None) -> NDArray | None:
        """Have the function do something, and return what it gave.

        Raises
        ------
        DataError
            With what it raised, how its process ended, or if it went beyond its limits; then the process is over.
        """
        self._count += 1
        reply = self._folder / f"reply-{self._count}.json"
        _write(self._folder / f"request-{self._count}.json", request)
        status = self._process.wait(Limits(seconds), until=reply.exists)
        said = self._process.said
        if said:
            logger.info("attacker %s prints: %s", self.name, said, extra={"file_only": True})
        if status is not None and not reply.exists():
            raise DataError(f"{_ending(status)}{': ' if said else ''}{said[-_SHOWN:]}")
        answer = json.loads(reply.read_text(encoding="utf-8"))
        reply.unlink()
        if "error" in answer:
            logger.info("attacker %s\n%s", self.name, answer["traceback"], extra={"file_only": True})
            raise DataError(answer["error"])
        values = self._folder / f"values-{self._count}.npy"
        if not values.exists():
            return None
        scores: NDArray = np.load(values, allow_pickle=False)
        values.unlink()
        return scores


def _close(process: GuardedCommand, holder: tempfile.TemporaryDirectory) -> None:
    process.end()
    holder.cleanup()


def _ending(status: int) -> str:
    if status > 128:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(status - 128).name}"
    return f"its process ended with status {status}"


def _write(path: Path, content: Mapping[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(path)


def serve() -> None:
    """Serve the function named by the command line, in the folder that it names, until the process is ended."""
    folder, spec = Path(sys.argv[1]), sys.argv[2]
    os.dup2(2, 1)  # what the function prints goes where it is listened to
    held: Json = {}
    number = 0
    while True:
        number += 1
        request = folder / f"request-{number}.json"
        while not request.exists():
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        asked = json.loads(request.read_text(encoding="utf-8"))
        request.unlink()
        try:
            if "training" in asked:
                _learn(held, spec, asked)
            else:
                np.save(folder / f"values-{number}.npy", _score(held, asked), allow_pickle=False)
            answer: Json = {}
        except DataError as error:
            answer = {"error": error.text, "traceback": ""}
        except BaseException as error:  # whatever it raises, it is the attacker's
            answer = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        _write(folder / f"reply-{number}.json", answer)


def _learn(held: Json, spec: str, asked: Json) -> None:
    from spkbase.work import one_blas_thread

    function, _ = load_named(spec, "attacker", kind="function")
    training = {speaker: [Path(path) for path in paths] for speaker, paths in asked["training"].items()}
    with one_blas_thread():
        held["score"] = function(training, asked["seed"])
    if not callable(held["score"]):
        got = f"gave {type(held['score']).__name__}, expected a function score(enrolment, tested, trials)"
        raise DataError(f"{spec}(training, seed) {got}")


def _score(held: Json, asked: Json) -> NDArray[np.float64]:
    from spkbase.work import one_blas_thread

    enrolment = {model: [Path(path) for path in paths] for model, paths in asked["enrolment"].items()}
    tested = {segment: Path(path) for segment, path in asked["tested"].items()}
    trials = [(model, segment) for model, segment in asked["trials"]]
    with one_blas_thread():
        values = held["score"](enrolment, tested, trials)
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected {len(trials)} numbers, got {type(values).__name__}: {error}") from error
    if numbers.shape != (len(trials),):
        raise DataError(f"expected {len(trials)} scores, one a trial, got shape {numbers.shape}")
    return numbers
