"""Anonymising a data directory: a twin folder with all its lists, made again only where something has changed.

    TARGET/wav/UTTERANCE.wav, TARGET/wav.scp, utt2spk, ... and TARGET/anonymization.json

The record holds the anonymiser with its parameters and, for each utterance, what it was made by and from, with the
checksums of both files: a run that was killed goes on where it stopped, and a recording that is not as it was written
is made again. ``wav.scp`` is written when all recordings are there, so a folder that was left half-way is not taken
for a data directory. One run works on a folder at a time.

Work write the recordings themselves and hand back checksums: on a cluster source and target lie on a file system
that all machines see under the same paths.

**Anonymising recordings: one file in, one file out, and whether a file is still what it was made to be.**

**What a twin folder knows of itself:** ``anonymization.json``, and a journal while it is being made.

The record names the anonymiser with its parameters and, for each utterance, what it was made by and from, with the
checksums of both files. While recordings are made, each batch that is done is appended to ``anonymization.journal``, so
that a process that is killed loses the batches in flight alone; at the end the journal is folded into the record.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.configuration import to_dict
from spkbase.errors import DataError, Problems
from spkbase.files import atomic_path, file_digest, fingerprint, load_json, make_folder, read_text_bytes, write_text
from spkbase.runs import append_line, is_temporary, read_lines, remove_temporaries, sole_use
from spkbase.version import __version__
from spkbase.work import chunks, ordered_map
from spkver.anonymization import baselines
from spkver.anonymization.config import AnonymizerConfig, named_stream, stream_name
from spkver.anonymization.mcadams_coefficient import mcadams, mcadams_batch
from spkver.anonymization.own import Anonymizer, check_command, command_anonymizer, load_function
from spkver.audio import audio_header, read_audio, write_audio
from spkver.datadir import DataDir, check_ids, unfit_id, write_datadir

logger = logging.getLogger(__name__)

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


RECORD, JOURNAL = "anonymization.json", "anonymization.journal"
# Lists that are written from what was read, or that describe the audio of the original.
NOT_COPIED = frozenset(
    ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "segments", "utt2dur", "reco2dur",
     "utt2num_frames", "utt2num_samples", "frame_shift", "reco2file_and_channel", RECORD, JOURNAL)
)  # fmt: skip
_BATCH = 64  # files whose checksums are one task

Entry = dict[str, Any]


class Record:
    """The record of a twin folder, a context manager: however the block ends, what was done is folded into the file.

    Attributes
    ----------
    folder : Path
    header : mapping
        What made the twin: the anonymiser, the seed, the fingerprint `made_by` and the number of utterances.
    files : dict of str to dict
        Utterance to fingerprint, stream of random numbers and the stamps of source and output.
    lists : list of str
        Lists that were copied.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        self.folder, self.header = folder, header
        self.files, self.lists = _read(folder)
        for done in read_lines(folder / JOURNAL):  # where a run was killed
            self.files |= done

    def __enter__(self) -> Record:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.fold()
            return
        with suppress(OSError, DataError):  # the journal still holds everything, and the error is the one that came
            self.fold()

    def current(self, tasks: Sequence[Task], *, jobs: int | None) -> set[str]:
        """Return the utterances whose recording is there as it was made, from the same source by the same anonymiser.

        Outputs are read and their checksums compared: a bit that flipped on the disk leaves size and time as they were.
        """
        stamp = self.header["made_by"]
        known = [
            (task, entry)
            for task in tasks
            if (entry := self.files.get(task.utterance, {})).get("made_by") == stamp
            and entry.get("stream") == task.stream
        ]
        batches = chunks(known, _BATCH)
        described, sizes = "checking anonymised speech", [*map(len, batches)]
        current = ordered_map(_are_current, batches, jobs=jobs, threads=True, description=described, sizes=sizes)
        return {utterance for names in current for utterance in names}

    def start(self) -> None:
        """Write the record before anything else, so that the folder is known as one of ours."""
        self._write()

    def add(self, results: Iterable[tuple[Task, Stamp, Stamp]]) -> None:
        """Keep what was done in a batch: from here on it survives whatever happens to the process."""
        stamp = self.header["made_by"]
        done = {
            task.utterance: {"made_by": stamp, "stream": task.stream, "source": source, "output": output}
            for task, source, output in results
        }
        append_line(self.folder / JOURNAL, done)
        self.files |= done

    def keep(self, tasks: Iterable[Task], lists: Iterable[str]) -> None:
        """Remove what was made here and what the source no longer has: recordings and copied lists.

        Parameters
        ----------
        tasks : iterable of Task
            All utterances of the source.
        lists : iterable of str
            Lists of the source that were copied.
        """
        for utterance in self.files.keys() - {task.utterance for task in tasks}:
            if unfit_id(utterance) is None:
                (self.folder / "wav" / f"{utterance}.wav").unlink(missing_ok=True)
            del self.files[utterance]
        for name in set(self.lists) - {*lists, *NOT_COPIED}:
            (self.folder / name).unlink(missing_ok=True)
        self.lists = sorted(lists)

    def fold(self) -> None:
        """Write all that is known to the record; then the journal is needed no more."""
        self._write()
        (self.folder / JOURNAL).unlink(missing_ok=True)

    def _write(self) -> None:
        record = {**self.header, "files": self.files, "lists": self.lists}
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        path = self.folder / RECORD
        with suppress(OSError, UnicodeDecodeError):
            if path.read_text(encoding="utf-8") == text:
                return
        write_text(path, text)


def progress(folder: str | Path) -> tuple[int, int] | None:
    """Count the utterances of a twin folder that are done, and all of them; None where the folder is no such twin.

    Nothing is written, so a run may be at work in it. The recordings are not read: sizes alone are compared.
    """
    try:
        record = load_json(Path(folder) / RECORD)
        stamp, total = record["made_by"], int(record["utterances"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    files = _read(Path(folder))[0]
    for noted in read_lines(Path(folder) / JOURNAL):
        files |= noted
    done = 0
    for utterance, entry in files.items():
        output = entry.get("output")
        with suppress(OSError):
            if entry.get("made_by") == stamp and isinstance(output, dict) and unfit_id(utterance) is None:
                done += (Path(folder) / "wav" / f"{utterance}.wav").stat().st_size == output.get("size")
    return done, total


def _read(folder: Path) -> tuple[dict[str, Entry], list[str]]:
    """Utterances and lists of a record; nothing where it is missing or damaged."""
    with suppress(ValueError, AttributeError, TypeError, KeyError):
        record = load_json(folder / RECORD)
        files = {name: entry for name, entry in record["files"].items() if isinstance(entry, dict)}
        return files, [name for name in record["lists"] if unfit_id(name) is None]
    return {}, []


def _are_current(known: Sequence[tuple[Task, Entry]]) -> list[str]:
    return [
        task.utterance
        for task, entry in known
        if is_unchanged(task.source, entry.get("source")) and is_as_written(task.target, entry.get("output"))
    ]


_BATCH_OF_DIRECTORIES = 8


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
    problems, batches = Problems(), chunks(due, _BATCH_OF_DIRECTORIES)
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
