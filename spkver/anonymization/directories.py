"""Anonymising a data directory: a twin folder with all its lists, made again only where something has changed.

    TARGET/wav/UTTERANCE.wav, TARGET/wav.scp, utt2spk, ... and TARGET/anonymization.json

The record holds the anonymiser with its parameters and, for each utterance, what it was made by and from. ``wav.scp``
is written when all recordings are there, so a folder that was left half-way is not taken for a data directory. One run
works on a folder at a time.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.files import atomic_path, make_folder, write_text
from evaluation.formats.source import read_text_bytes
from evaluation.parallel import chunks, ordered_map
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.recordings import (
    Stamp,
    Task,
    anonymize_recordings,
    check_source,
    is_unchanged,
    made_by,
    make_anonymizer,
)
from spkver.anonymization.seeding import stream_name
from spkver.config import to_dict
from spkver.datadir import DataDir, write_datadir
from spkver.datadir.directory import unfit_id
from spkver.errors import DataError, Problems
from spkver.version import __version__

logger = logging.getLogger(__name__)

RECORD = "anonymization.json"
_BATCH = 8
_SECONDS_BETWEEN_RECORDS = 5.0
# Lists that are written from what was read, or that describe the audio of the original.
_NOT_COPIED = frozenset(
    ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "segments", "utt2dur", "reco2dur",
     "utt2num_frames", "utt2num_samples", "frame_shift", "reco2file_and_channel", RECORD)
)  # fmt: skip


def anonymize_datadir(
    source: DataDir, target: str | Path, config: AnonymizerConfig, *, seed: int = 0, jobs: int | None = None
) -> DataDir:
    """Anonymise all utterances of a data directory into a twin folder, a complete data directory.

    Recordings are written as WAV with 16 bits at the rate of their source, whatever its format and bits; a source with
    several channels is an error. What is louder than full scale is scaled down to it. The output depends on the seed
    and the ids (or, by `config.seeding`, on the order of ``wav.scp``), not on the number of workers.

    Parameters
    ----------
    source : DataDir
    target : path
        The twin folder. Recordings in it that were made by the same anonymiser, parameters and seed from the same
        audio are kept.
    config : AnonymizerConfig
    seed : int
        Not used by the seeding "vpc2024".
    jobs : int, optional
        Worker processes; all cores by default.

    Returns
    -------
    DataDir
        The twin, with the trials, sexes and enrolment list of the source.

    Raises
    ------
    DataError
        Before the start, with all problems: a source that is unreadable or has several channels, a target that is the
        source, a file, or a folder made by something else or at work, an anonymiser that cannot be had. After all the
        others are done: utterances that failed, by name.
    """
    target = Path(target)
    _check_target(source, target)
    make_anonymizer(config)
    tasks = [
        Task(one, path, target / "wav" / f"{one}.wav", stream_name(
            one, source.speakers[one], number, level=config.level, seeding=config.seeding))
        for number, (one, path) in enumerate(source.recordings.items())
    ]  # fmt: skip
    if not target.is_dir():
        _check_sources(tasks, jobs)  # before there is a folder
    twin = DataDir(
        target, {task.utterance: task.target for task in tasks}, source.speakers, source.genders, source.enrolls,
        source.trials,
    )  # fmt: skip
    with _alone(target):
        _remove_temporaries(target)
        ledger = _Ledger(target, {"anonymizer": to_dict(config), "seed": seed, "version": __version__})
        _make_recordings(source, tasks, config, seed, jobs, ledger)
        ledger.keep_lists(_copy_lists(source, target))
        write_datadir(twin)
    return twin


def _check_target(source: DataDir, target: Path) -> None:
    if unfit := unfit_id(target.resolve().name):
        raise DataError(f"the name of the anonymised folder {unfit}", file=target, remedy="choose another suffix")
    if target.resolve() == source.path.resolve():
        raise DataError("is the source itself", file=target, remedy="give a suffix or another folder")
    if target.exists() and not target.is_dir():
        raise DataError("is a file", file=target, remedy="choose another suffix")
    if target.is_dir() and any(target.iterdir()) and not (target / RECORD).is_file():
        text = f"there is something that was not made here (no {RECORD}), and it is left alone"
        raise DataError(text, file=target, remedy="remove the folder, or choose another suffix")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder and keep other runs out of it; a process that dies lets go of it."""
    make_folder(folder)
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError("another run is at work in it", file=folder, remedy="wait for its end") from None
        except OSError as error:  # file systems without locks
            logger.info("%s: not locked: %s", folder, error.strerror)
        yield
    finally:
        os.close(handle)


def _remove_temporaries(target: Path) -> None:
    """Remove what a run that was killed was writing."""
    for folder in (target, target / "wav"):
        for path in folder.glob(".*.tmp*"):
            with suppress(OSError):
                path.unlink()


def _make_recordings(
    source: DataDir, tasks: list[Task], config: AnonymizerConfig, seed: int, jobs: int | None, ledger: _Ledger
) -> None:
    stamp = made_by(config, seed)
    due = [task for task in tasks if not ledger.is_current(task, stamp)]
    if due:
        _check_sources(due, jobs)
        (ledger.folder / "wav.scp").unlink(missing_ok=True)
        logger.info("%s: anonymising %d of %d utterances by %s", source.name, len(due), len(tasks), config.name)
        _anonymize(due, config, seed, jobs, ledger, stamp)
    else:
        logger.info("%s: all %d utterances are up to date in %s", source.name, len(tasks), ledger.folder)
    ledger.forget_others(tasks)


def _check_sources(tasks: list[Task], jobs: int | None) -> None:
    problems = Problems()
    checks = ordered_map(_check_batch, chunks(tasks, 256), jobs=jobs, threads=True, description="checking audio")
    for errors in checks:
        for error in errors:
            problems.note(error)
    problems.raise_if_any()


def _check_batch(tasks: Sequence[Task]) -> list[DataError]:
    return [error for task in tasks if (error := check_source(task.utterance, task.source))]


def _anonymize(
    tasks: list[Task], config: AnonymizerConfig, seed: int, jobs: int | None, ledger: _Ledger, stamp: str
) -> None:
    ledger.start()
    problems = Problems()
    work = partial(anonymize_recordings, config=config, seed=seed)
    try:
        for results in ordered_map(work, chunks(tasks, _BATCH), jobs=jobs, description="anonymising"):
            for result in results:
                if isinstance(result, DataError):
                    problems.note(result)
                else:
                    ledger.add(result[0], stamp, result[1], result[2])
            ledger.write_now_and_then()
    finally:
        ledger.write()
    problems.raise_if_any()


class _Ledger:
    """The record of a twin folder."""

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        self.folder, self.header = folder, header
        self.files: dict[str, dict[str, Any]] = {}
        self.lists: list[str] = []
        with suppress(OSError, ValueError, AttributeError, TypeError, KeyError):
            record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            self.files = {name: entry for name, entry in record["files"].items() if isinstance(entry, dict)}
            self.lists = [name for name in record["lists"] if unfit_id(name) is None]
        self._written = time.monotonic()

    def is_current(self, task: Task, stamp: str) -> bool:
        entry = self.files.get(task.utterance, {})
        if entry.get("made_by") != stamp or entry.get("stream") != task.stream:
            return False
        return is_unchanged(task.source, entry.get("source")) and is_unchanged(task.target, entry.get("output"))

    def start(self) -> None:
        """Write the record before anything else, so that the folder is known as one of ours."""
        self.write()

    def add(self, task: Task, stamp: str, source: Stamp, output: Stamp) -> None:
        self.files[task.utterance] = {"made_by": stamp, "stream": task.stream, "source": source, "output": output}

    def write_now_and_then(self) -> None:
        if time.monotonic() - self._written > _SECONDS_BETWEEN_RECORDS:
            self.write()

    def write(self) -> None:
        record = {**self.header, "files": self.files, "lists": self.lists}
        write_text(self.folder / RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")
        self._written = time.monotonic()

    def forget_others(self, tasks: Iterable[Task]) -> None:
        """Remove recordings that were made here for utterances that the source no longer has."""
        gone = self.files.keys() - {task.utterance for task in tasks}
        for utterance in gone:
            if unfit_id(utterance) is None:
                (self.folder / "wav" / f"{utterance}.wav").unlink(missing_ok=True)
            del self.files[utterance]
        if gone:
            self.write()

    def keep_lists(self, names: list[str]) -> None:
        """Note which lists were copied, and remove those of an earlier run that the source no longer has."""
        for name in set(self.lists) - {*names, *_NOT_COPIED}:
            (self.folder / name).unlink(missing_ok=True)
        self.lists = names
        self.write()


def _copy_lists(source: DataDir, target: Path) -> list[str]:
    """Copy the other lists and give their names: texts only, so that no audio of the original gets into the twin."""
    copied = []
    for path in sorted(source.path.iterdir()):
        derived = path.name in _NOT_COPIED or path.name.startswith((".", "wav.scp")) or path.suffix in (".scp", ".ark")
        if derived or not path.is_file():
            continue
        try:
            raw = read_text_bytes(path)
            raw.decode("utf-8")
        except (DataError, UnicodeDecodeError):
            logger.info("%s: not copied, it is no text", path)
            continue
        with atomic_path(target / path.name) as temporary:
            temporary.write_bytes(raw)
        copied.append(path.name)
    return copied
