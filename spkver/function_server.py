"""The process of a user-supplied attacker's function, see `spkver.attackers.supplied`, which starts it.

Both exchange lines of JSON through pipes. Nothing that the function returns is unpickled. This module imports little,
since an evaluation starts many such processes.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.plugins import load_plugin
from spkbase.work import one_blas_thread

Json = dict[str, Any]


def serve() -> None:
    """Serve the function named on the command line: one reply per request, until there are no more."""
    spec = sys.argv[1]
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the function prints goes to the log
    held: Json = {}
    for line in requests:
        asked = json.loads(line)
        try:
            if "training" in asked:
                _learn(held, spec, asked)
                answer: Json = {"values": []}
            else:
                answer = {"values": _score(held, asked).tolist()}
        except DataError as error:
            answer = {"error": error.text, "traceback": ""}
        except BaseException as error:  # any exception is an error of the attacker
            answer = {
                "error": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
            }
        sys.stdout.flush()
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


def _learn(held: Json, spec: str, asked: Json) -> None:
    function, _ = load_plugin(spec, "attacker", kind="function")
    with one_blas_thread():
        held["score"] = function(_paths(asked["training"]), asked["seed"])
    if not callable(held["score"]):
        got = f"gave {type(held['score']).__name__}, expected a function score(enrolment, tested, trials)"
        raise DataError(f"{spec}(training, seed) {got}")


def _score(held: Json, asked: Json) -> NDArray[np.float64]:
    enrolment = _paths(asked["enrolment"])
    tested = {segment: Path(path) for segment, path in asked["tested"].items()}
    trials = list(map(tuple, asked["trials"]))
    with one_blas_thread():
        values = held["score"](enrolment, tested, trials)
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"expected {len(trials)} numbers, got {type(values).__name__}: {error}"
        ) from error
    if numbers.shape != (len(trials),):
        raise DataError(f"expected {len(trials)} scores, one per trial, got shape {numbers.shape}")
    return numbers


def _paths(recordings: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
    """Return the paths of the recordings of each speaker or model."""
    paths = {}
    for name, texts in recordings.items():
        paths[name] = list(map(Path, texts))
    return paths
