"""Anonymising a data directory: a twin folder with all its lists, made again only where something has changed.

    TARGET/wav/UTTERANCE.wav, TARGET/wav.scp, utt2spk, ... and TARGET/anonymization.json

The record holds the anonymiser with its parameters and, for each utterance, what it was made by and from, with the
checksums of both files: a run that was killed goes on where it stopped, and a recording that is not as it was written
is made again. ``wav.scp`` is written when all recordings are there, so a folder that was left half-way is not taken
for a data directory. One run works on a folder at a time.

Work write the recordings themselves and hand back checksums: on a cluster source and target lie on a file system
that all machines see under the same paths.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spkbase.configuration import to_dict
from spkbase.errors import DataError, Problems
from spkbase.files import atomic_path, read_text_bytes
from spkbase.runs import is_temporary, remove_temporaries, sole_use
from spkbase.version import __version__
from spkbase.work import chunks, ordered_map
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.record import NOT_COPIED, RECORD, Record
from spkver.anonymization.recordings import Made, Task, anonymize_recordings, check_source, made_by, make_anonymizer
from spkver.anonymization.seeding import stream_name
from spkver.datadir import DataDir, check_ids, unfit_id, write_datadir

logger = logging.getLogger(__name__)

_BATCH = 8


def anonymize_datadir(
    source: DataDir,
    target: str | Path,
    config: AnonymizerConfig,
    *,
    seed: int = 0,
    side: str = "",
    jobs: int | None = None,
    force: bool = False,
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
    side : str
        What the speech is for, such as "enrolment" or "trials": on speaker level each side has draws of its own.
        Without it a speaker has the same draw in all directories that are anonymised with one seed.
    jobs : int, optional
        Worker processes; all cores by default.
    force : bool
        Make all recordings again.

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
    check_target(source, target)
    make_anonymizer(config)
    tasks = _tasks(source, target, config, side)
    make = partial(anonymize_recordings, config=config, seed=seed)
    return make_twin(source, target, tasks, _header(tasks, config, seed), make, jobs=jobs, force=force)


def make_twin(
    source: DataDir,
    target: Path,
    tasks: list[Task],
    header: dict[str, Any],
    make: Callable[[Sequence[Task]], list[Made | DataError]],
    *,
    jobs: int | None = None,
    force: bool = False,
) -> DataDir:
    """Make those recordings of a twin folder that are not as they should be, copy the lists, and hand out the twin.

    Parameters
    ----------
    source : DataDir
    target : path
        The twin folder.
    tasks : list of Task
        One for each utterance.
    header : dict
        What makes the recordings, as `Record` keeps it.
    make : callable
        Makes the recordings of some tasks, see `anonymize_recordings`; it may be called in another process.
    jobs, force
        As for `anonymize_datadir`.
    """
    if not target.is_dir():
        _check_sources(tasks, jobs)  # before there is a folder
    with sole_use(target):
        remove_temporaries(target)  # what a run that was killed was writing
        with Record(target, header) as record:
            done = set() if force else record.current(tasks, jobs=jobs)
            _make_recordings(source, [task for task in tasks if task.utterance not in done], make, jobs, record)
            record.keep(tasks, _copy_lists(source, target))
        write_datadir(_twin(source, target))
    return _twin(source, target)


def finished_twin(
    source: DataDir,
    target: str | Path,
    config: AnonymizerConfig,
    *,
    seed: int = 0,
    side: str = "",
    jobs: int | None = None,
) -> DataDir:
    """Take a twin folder that `anonymize_datadir` has made as it is.

    Parameters
    ----------
    source, target, config, seed, side, jobs
        As for `anonymize_datadir`.

    Raises
    ------
    DataError
        If it is not there, not finished, damaged, or was made from or by something else.
    """
    target = Path(target)
    tasks = _tasks(source, target, config, side)
    remedy = "anonymise it first"
    if not (target / RECORD).is_file():
        raise DataError("the anonymised folder is missing", file=target, remedy=remedy)
    done = len(Record(target, _header(tasks, config, seed)).current(tasks, jobs=jobs))
    if done < len(tasks) or not (target / "wav.scp").is_file():
        text = f"{done} of {len(tasks)} utterances are anonymised by this anonymiser and as they were written"
        raise DataError(text, file=target, remedy=remedy)
    return _twin(source, target)


def _tasks(source: DataDir, target: Path, config: AnonymizerConfig, side: str) -> list[Task]:
    check_ids(source.recordings, source.path)
    return [
        Task(utterance, path, output_file(target, utterance), stream_name(
            utterance, source.speakers[utterance], number, level=config.level, seeding=config.seeding, side=side))
        for number, (utterance, path) in enumerate(source.recordings.items())
    ]  # fmt: skip


def output_file(target: Path, utterance: str) -> Path:
    """Return where the recording of an utterance goes in a twin folder."""
    return target / "wav" / f"{utterance}.wav"


def _twin(source: DataDir, target: Path) -> DataDir:
    recordings = {utterance: output_file(target, utterance) for utterance in source.recordings}
    return DataDir(target, recordings, source.speakers, source.genders, source.enrolls, source.trials)


def _header(tasks: list[Task], config: AnonymizerConfig, seed: int) -> dict[str, Any]:
    made = {"anonymizer": to_dict(config), "seed": seed, "version": __version__}
    return {**made, "made_by": made_by(config, seed), "utterances": len(tasks)}


def check_target(source: DataDir, target: Path) -> None:
    """Raise a DataError unless a folder may become a twin: new, or made here; never the source."""
    if unfit := unfit_id(target.resolve().name):
        raise DataError(f"the name of the anonymised folder {unfit}", file=target, remedy="choose another suffix")
    if target.resolve() == source.path.resolve():
        raise DataError("is the source itself", file=target, remedy="give a suffix or another folder")
    if target.exists() and not target.is_dir():
        raise DataError("is a file", file=target, remedy="choose another suffix")
    theirs = target.is_dir() and not all(map(is_temporary, target.iterdir()))
    if theirs and not (target / RECORD).is_file():
        text = f"there is something that was not made here (no {RECORD}), and it is left alone"
        raise DataError(text, file=target, remedy="remove the folder, or choose another suffix")


def _make_recordings(
    source: DataDir,
    due: list[Task],
    make: Callable[[Sequence[Task]], list[Made | DataError]],
    jobs: int | None,
    record: Record,
) -> None:
    total = len(source.recordings)
    if not due:
        logger.info("%s: all %d utterances are up to date in %s", source.name, total, record.folder)
        return
    _check_sources(due, jobs)
    (record.folder / "wav.scp").unlink(missing_ok=True)
    name = record.header["anonymizer"]["name"]
    logger.info("%s: anonymising %d of %d utterances by %s", source.name, len(due), total, name)
    record.start()
    problems, batches = Problems(), chunks(due, _BATCH)
    sizes = [*map(len, batches)]
    for results in ordered_map(make, batches, jobs=jobs, description="anonymising", sizes=sizes):
        record.add([result for result in results if not isinstance(result, DataError)])
        for result in results:
            if isinstance(result, DataError):
                problems.note(result)
    problems.raise_if_any()


def _check_sources(tasks: list[Task], jobs: int | None) -> None:
    problems, batches = Problems(), chunks(tasks, 256)
    sizes = [*map(len, batches)]
    checks = ordered_map(_check_batch, batches, jobs=jobs, threads=True, description="checking audio", sizes=sizes)
    for errors in checks:
        for error in errors:
            problems.note(error)
    problems.raise_if_any()


def _check_batch(tasks: Sequence[Task]) -> list[DataError]:
    return [error for task in tasks if (error := check_source(task.utterance, task.source))]


def _copy_lists(source: DataDir, target: Path) -> list[str]:
    """Copy the other lists and give their names: texts only, so that no audio of the original gets into the twin."""
    copied: list[str] = []
    if not source.path.is_dir():  # a selection, which has no folder of its own
        return copied
    for path in sorted(source.path.iterdir()):
        derived = path.name in NOT_COPIED or path.name.startswith((".", "wav.scp")) or path.suffix in (".scp", ".ark")
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
