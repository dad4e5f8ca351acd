"""The process in which a network is trained: a trainer can be ended, and its crash does not end the run.

A trainer is a module, a file or one that can be imported::

    def train(training, folder, seed, settings, device, threads, progress):
        return None

    def load(folder):
        def embed(samples, rate):
            return vector
        return embed

========  ======================================================================================================
training  `TrainingSpeech`
folder    Path; files that `train` writes there are kept; if it is killed, it is called again with the same folder
seed      int; all random numbers should depend on it
settings  dict; ``attacker_settings.NAME.settings``
device    str; such as "cpu" or "cuda"
threads   int; libraries that read ``OMP_NUM_THREADS`` obey it
progress  function of two numbers, done and total, and of a text for the log
returned  None, or an extractor as `spkver embed` takes it, with a file in the folder, such as ``onnx:network.onnx``;
          without one, `load` returns the function that computes vectors, see `spkver.extractors`
========  ======================================================================================================

A trainer may describe its network in ``training.json``, an object that is copied to the results; all keys are optional:
``held_out_eer``, error rates by the number of steps; ``steps``, one of these numbers, after which the network is used;
``speakers`` and ``versions``, their numbers in training; ``torch``; and others.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError, DataError
from spkbase.files import load_json, write_json, write_text
from spkbase.plugins import TimeLimitError, end_process, load_plugin, start_process
from spkbase.version import library_version
from spkver.training.speech import TrainingSpeech

logger = logging.getLogger(__name__)

RECORD = "training.json"
"""What a trainer says of its network, in its folder."""

LOG = "train.log"
"""The file with a trainer's output, in its folder."""

_SHOWN = 500  # number of last characters of a trainer's output shown in an error
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def check_trainer(module: str) -> Path:
    """Return the file of a trainer; it is read, but not run.

    Parameters
    ----------
    module : str
        A Python file, or the name of a module.

    Raises
    ------
    ConfigError
        If there is no such module, or it does not define a function ``train``.
    """
    remedy = "give FILE.py with a function train, see docs/own_extractors.md"
    path = Path(module)
    if not module.endswith(".py"):
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None:
            raise ConfigError(f"there is no module {module!r}", remedy=remedy)
        path = Path(spec.origin)
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", file=path, remedy=remedy) from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == "train" for node in body):
        raise ConfigError("it defines no function train", file=path, remedy=remedy)
    return path


def train_network(
    module: str,
    training: TrainingSpeech,
    folder: Path,
    *,
    seed: int,
    settings: Mapping[str, Any],
    device: str,
    threads: int,
    seconds: float,
    name: str,
) -> str:
    """Train a network in a separate process.

    Parameters
    ----------
    module : str
        See `check_trainer`.
    training : TrainingSpeech
    folder : Path
        An existing folder.
    seed, settings, device, threads
        Arguments of the trainer, see the module.
    seconds : float
        Time limit.
    name : str
        Name of the attacker, for the log.

    Returns
    -------
    str
        The extractor that the trainer returned; empty for None.

    Raises
    ------
    DataError
        If the trainer raises an error, its process ends, or the time limit passes (`TimeLimitError`); or as
        `read_record`.
    """
    request = {
        "module": module,
        "folder": str(folder),
        "seed": seed,
        "settings": dict(settings),
        "device": device,
        "threads": threads,
        "training": training.to_json(),
    }
    asked = folder / "request.json"
    write_text(asked, json.dumps(request))
    # set before NumPy is imported
    environment = "".join(f"os.environ[{variable!r}] = '{threads}'; " for variable in _THREADS)
    code = f"import os, sys; {environment}sys.path[:] = {sys.path!r}; "
    code += "from spkver.training.process import serve; serve()"
    with (folder / LOG).open("ab") as log:
        command: Sequence[str] = [sys.executable, "-c", code, str(asked)]
        process = start_process(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
        )
        try:
            answer = _listen(process, name, seconds)
        finally:
            end_process(process)
    asked.unlink()
    if answer is None:
        last = (folder / LOG).read_text(encoding="utf-8", errors="replace").strip()[-_SHOWN:]
        raise DataError(f"its process ended with status {process.returncode}. {last}".strip())
    if "error" in answer:
        raise DataError(answer["error"])
    read_record(folder)
    return str(answer["network"])


def write_record(
    folder: Path,
    training: TrainingSpeech,
    versions: Mapping[str, Sequence[Path]],
    *,
    rates: Mapping[int, float],
    steps: int,
    **further: Any,
) -> None:
    """Write the description of a network trained with PyTorch, see the module.

    Parameters
    ----------
    folder : Path
    training : TrainingSpeech
    versions : mapping of str to sequence of Path
        The anonymised versions of each utterance.
    rates : mapping of int to float
        Equal error rates of the held-out speakers, by the number of steps.
    steps : int
        Number of steps of the network that is used.
    **further
        Other facts.
    """
    record = {
        "held_out_eer": rates,
        "steps": steps,
        "speakers": len(training.speakers),
        "versions": max(map(len, versions.values())),
        "torch": library_version("torch"),
    }
    write_json(folder / RECORD, record | further)


def read_record(folder: Path) -> dict[str, Any]:
    """Return the trainer's description of its network, see the module; empty if there is none.

    Returns
    -------
    dict
        The description with ``eer_before``, the rate after the fewest steps, and ``eer_after``, the rate of the network
        that is used.

    Raises
    ------
    DataError
        If the description is malformed.
    """
    path = folder / RECORD
    if not path.is_file():
        return {}
    record = load_json(path)
    try:
        rates = {int(step): float(rate) for step, rate in record.get("held_out_eer", {}).items()}
        counts = [record.get(key, 0) for key in ("steps", "speakers", "versions")]
        if not all(isinstance(count, int) for count in counts):
            raise TypeError("steps, speakers and versions are whole numbers")
        if rates:
            record["eer_before"] = rates[min(rates)]
            record["eer_after"] = rates[record["steps"]]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        text = (
            f"expected an object with held_out_eer and steps, see docs/own_extractors.md: {error!r}"
        )
        raise DataError(text, file=path) from error
    return dict(record)


def serve() -> None:
    """Run the trainer of the request that the command line names; one line of JSON for each call of `progress`."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the trainer's output goes to its log

    def reply(answer: Mapping[str, Any]) -> None:
        sys.stdout.flush()
        replies.write(json.dumps(answer) + "\n")
        replies.flush()

    def progress(done: float, total: float, text: str = "") -> None:
        reply({"done": float(done), "total": float(total), "text": str(text)})

    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    module = request["module"]
    try:
        train, _ = load_plugin(f"{module}:train", "trainer", kind="function")
        training = TrainingSpeech.from_json(request["training"])
        given = (request["seed"], request["settings"], request["device"], request["threads"])
        network = train(training, Path(request["folder"]), *given, progress)
        reply({"network": str("" if network is None else network)})
    except DataError as error:
        reply({"error": error.text})
    except BaseException as error:  # any other error is the trainer's fault
        traceback.print_exc()
        reply({"error": f"{type(error).__name__}: {error}"})


def _listen(process: subprocess.Popen[bytes], name: str, seconds: float) -> dict[str, Any] | None:
    """Return the last answer of a trainer; None if its process ends without one."""
    assert process.stdout is not None
    end = time.monotonic() + seconds
    while True:
        due = max(0.0, end - time.monotonic())
        if not select.select([process.stdout], [], [], due)[0]:
            raise TimeLimitError(f"it was ended after {seconds:g} s, the time limit")
        line = process.stdout.readline()
        if not line:
            process.wait()
            return None
        answer: dict[str, Any] = json.loads(line)
        if "done" not in answer:
            return answer
        logger.debug("%s: %g of %g %s", name, answer["done"], answer["total"], answer["text"])
