"""Anonymising recordings: one file in, one file out, and whether a file is still what it was made to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import file_digest, fingerprint, make_folder
from spkbase.version import __version__
from spkver.anonymization import baselines
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.mcadams_coefficient import mcadams, mcadams_batch
from spkver.anonymization.own import Anonymizer, check_command, command_anonymizer, load_function
from spkver.anonymization.seeding import named_stream
from spkver.audio import audio_header, read_audio, write_audio

_FULL_SCALE = 32767 / 32768
_FUNCTIONS: dict[str, Callable[..., NDArray[Any]]] = {
    "mcadams": mcadams,
    "resampling": baselines.resampling,
    "vtln": baselines.vtln,
    "world": baselines.world,
    "none": baselines.none,
}

Stamp = dict[str, Any]
Made = tuple["Task", Stamp, Stamp]
"""A task that is done, with the stamps of its source and of what was written."""


@dataclass(frozen=True)
class Task:
    """One utterance to anonymise: from `source` to `target`, with the random numbers of `stream`."""

    utterance: str
    source: Path
    target: Path
    stream: str


def make_anonymizer(config: AnonymizerConfig, folder: Path | None = None) -> Anonymizer:
    """Build the function that a configuration names.

    Parameters
    ----------
    config : AnonymizerConfig
    folder : path, optional
        Where a command's files are while it runs; the system's folder of temporary files by default.

    Raises
    ------
    ConfigError
        If a user-supplied function cannot be imported, or a command's places are wrong.
    DataError
        If a package is missing.
    """
    if config.name == "command":
        check_command(config.command)
        return command_anonymizer(config.command, folder)
    if config.name not in _FUNCTIONS:
        return load_function(config.name)[0]
    if config.name == "world":
        baselines.check_world()
    return partial(_FUNCTIONS[config.name], **config.parameters())


def made_by(config: AnonymizerConfig, seed: int) -> str:
    """Return what outputs depend on beside their source and stream: a fingerprint; of user-supplied code, its file."""
    module = None
    if config.name not in _FUNCTIONS and config.name != "command":
        file = load_function(config.name)[1]
        module = None if file is None else file_digest(file)
    return fingerprint(__version__, config.record(), seed, module)


def anonymize_recordings(tasks: Sequence[Task], *, config: AnonymizerConfig, seed: int) -> list[Made | DataError]:
    """Anonymise some recordings and write them as WAV of 16 bits.

    The files are written here, by the worker, under the names that the tasks give; what goes back to the one who
    collects are stamps alone. On a cluster sources and targets must therefore lie on a file system that all machines
    see under the same paths.

    Returns
    -------
    list
        For each task the stamps of its source and of what was written, or what went wrong.
    """
    return write_outputs(tasks, partial(_anonymize, config=config, seed=seed))


def write_outputs(
    tasks: Sequence[Task],
    change: Callable[[Sequence[tuple[Task, NDArray[Any], int]]], list[NDArray[Any] | DataError]],
) -> list[Made | DataError]:
    """Read the sources of some tasks, change their samples, and write what comes out; see `anonymize_recordings`.

    Parameters
    ----------
    tasks : sequence of Task
    change : callable
        Makes samples of samples, or says why there are none: of each task with its samples and their rate.
    """
    results: dict[int, Made | DataError] = {}
    signals: list[tuple[int, NDArray[Any], int, Stamp]] = []
    for number, task in enumerate(tasks):
        try:
            stamp = file_stamp(task.source)
            samples, rate = read_audio(task.source)
            signals.append((number, samples, rate, stamp))
        except DataError as error:
            results[number] = error
    outputs = change([(tasks[number], samples, rate) for number, samples, rate, _ in signals])
    for (number, _, rate, stamp), output in zip(signals, outputs, strict=True):
        task = tasks[number]
        if isinstance(output, DataError):
            results[number] = DataError(f"utterance {task.utterance!r}: {output}", file=task.source)
            continue
        try:
            write_audio(task.target, output, rate)
            results[number] = task, stamp, output_stamp(task.target)
        except DataError as error:
            results[number] = error
    return [results[number] for number in range(len(tasks))]


@lru_cache(maxsize=4)
def _anonymizer(config: AnonymizerConfig, folder: Path) -> Anonymizer:
    return make_anonymizer(config, make_folder(folder))


def _anonymize(
    signals: Sequence[tuple[Task, NDArray[Any], int]], config: AnonymizerConfig, seed: int
) -> list[NDArray[Any] | DataError]:
    generators = [named_stream(task.stream, seed) for task, _, _ in signals]
    if config.name == "mcadams":  # short recordings go faster together
        return mcadams_batch(
            [samples for _, samples, _ in signals], [rate for _, _, rate in signals], generators, alpha=config.alpha
        )
    results: list[NDArray[Any] | DataError] = []
    for (task, samples, rate), rng in zip(signals, generators, strict=True):
        try:
            results.append(_checked(_anonymizer(config, task.target.parent)(samples, rate, task.utterance, rng)))
        except DataError as error:
            results.append(error)
        except Exception as error:  # whatever a user-supplied function raises, the others are done first
            results.append(DataError(f"{type(error).__name__}: {error}"))
    return results


def _checked(output: Any) -> NDArray[Any]:
    """Output of an anonymiser as samples with full scale 1; scaled down where it is louder."""
    samples = np.asarray(output)
    if samples.ndim != 1 or not len(samples) or not np.issubdtype(samples.dtype, np.floating):
        text = f"the anonymiser gave {samples.dtype} of shape {samples.shape}, expected floats of shape (n,)"
        raise DataError(text, remedy="samples have full scale 1")
    if not np.isfinite(samples).all():
        raise DataError("the anonymiser gave NaN or infinite samples")
    peak = float(np.abs(samples).max())
    return samples if peak <= 1 else samples * (_FULL_SCALE / peak)


def file_stamp(path: Path) -> Stamp:
    """Return the size, time and checksum of a file, by which a later change shows."""
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error
    return {"size": status.st_size, "time": status.st_mtime_ns, "sha256": file_digest(path)}


def output_stamp(path: Path) -> Stamp:
    """Return the size and checksum of a file that was written here: the same for the same samples at any time."""
    stamp = file_stamp(path)
    return {"size": stamp["size"], "sha256": stamp["sha256"]}


def is_as_written(path: Path, stamp: Mapping[str, Any] | None) -> bool:
    """Return whether a file that was written here still holds the same bytes; it is read."""
    if not isinstance(stamp, dict):
        return False
    try:
        return path.stat().st_size == stamp.get("size") and file_digest(path) == stamp.get("sha256")
    except OSError:
        return False


def is_unchanged(path: Path, stamp: Mapping[str, Any] | None) -> bool:
    """Return whether a file is as it was when it was stamped; it is read only where its time differs."""
    if not isinstance(stamp, dict):
        return False
    try:
        status = path.stat()
    except OSError:
        return False
    if status.st_size != stamp.get("size"):
        return False
    return status.st_mtime_ns == stamp.get("time") or file_digest(path) == stamp.get("sha256")


def check_source(utterance: str, path: Path) -> DataError | None:
    """Return the error that keeps a recording from being anonymised, by its header; None where nothing does."""
    try:
        header = audio_header(path)
    except DataError as error:
        return error
    if header.channels > 1:
        text = f"utterance {utterance!r}: {header.channels} channels, expected one"
        return DataError(text, file=path, remedy="write one channel to a file of its own")
    return None
