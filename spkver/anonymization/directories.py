"""Anonymisation of a data directory into a folder with all its lists; only changed recordings are remade.

    TARGET/wav/UTTERANCE.wav, TARGET/wav.scp, utt2spk, ... and TARGET/anonymization.json

The record ``anonymization.json`` names the anonymiser with its parameters and, for each utterance, its source, with
size, time of change and SHA-256 of source and output: a recording is remade if either file has changed. Finished
recordings are appended to ``anonymization.journal``, so that a killed run resumes with the others. ``wav.scp`` is
written last, so an unfinished folder is not taken for a data directory. One run works on a folder at a time.

In a run, a stage of `twin_stage` decides whether a folder is up to date. The journal is internal to that stage: a stage
is made as a whole, and an anonymiser may take minutes for one recording.

If the numbers of recordings are known or estimated, the anonymisation is inverted in the same way.

Workers write the recordings themselves: on a cluster source and target lie on a file system that all machines see
under the same paths.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase import files
from spkbase.configuration import to_dict
from spkbase.errors import DataError, Problems, counted, few
from spkbase.files import append_line, read_lines
from spkbase.locks import is_temporary, remove_temporaries, sole_use
from spkbase.plugins import files_behind, load_plugin
from spkbase.progress import verbosely
from spkbase.runs import Run
from spkbase.version import __version__
from spkbase.work import Work, chunks
from spkver.anonymization.anonymizers import (
    BUILT_IN,
    INVERSES,
    USUAL,
    AnonymizerConfig,
    Outputs,
    make_anonymizer,
    named_stream,
    stream_name,
)
from spkver.anonymization.mcadams_coefficient import turn_poles
from spkver.audio import check_headers, read_audio, write_audio
from spkver.datadir import DataDir, check_ids, unfit_id, wav_file, write_datadir

logger = logging.getLogger(__name__)

RECORD = "anonymization.json"
JOURNAL = "anonymization.journal"
# Lists that are written afresh, or that describe the original audio.
_NOT_COPIED = frozenset(
    ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "segments", "utt2dur", "reco2dur",
     "utt2num_frames", "utt2num_samples", "frame_shift", "reco2file_and_channel", RECORD, JOURNAL)
)  # fmt: skip
_FULL_SCALE = 32767 / 32768

Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One utterance to change: from `source` to `target`; `stream` names its random numbers, or its number."""

    utterance: str
    source: Path
    target: Path
    stream: str


Signals = Sequence[tuple[Task, NDArray[Any], int]]
"""Tasks, each with samples and their rate."""


@verbosely
def anonymize_datadir(
    source: DataDir,
    target: str | Path,
    config: AnonymizerConfig,
    *,
    seed: int = 0,
    side: str = "",
    jobs: int | None = None,
    force: bool = False,
    batch: int = 8,
    verbose: bool = True,
) -> DataDir:
    """Anonymise all utterances of a data directory into another folder, a complete data directory.

    Recordings are written as WAV with 16 bits at the rate of their source, whatever its format and bits; a source with
    several channels is an error. Output louder than full scale is scaled down to it. The output depends on the seed and
    the ids (or, by `config.seeding`, on the order of ``wav.scp``), not on the number of workers.

    Parameters
    ----------
    source : DataDir
    target : path
        The folder. Recordings in it that were made by the same anonymiser, parameters and seed from the same audio are
        kept.
    config : AnonymizerConfig
    seed : int
        Not used by the seeding "vpc2024".
    side : str
        What the speech is for, such as "enrolment" or "trials": at speaker level each side has separate draws.
        If empty, a speaker has the same draw in all directories that are anonymised with the same seed.
    jobs : int, optional
        Worker processes; all cores by default.
    force : bool
        Make all recordings again.
    batch : int
        Number of utterances in a task; a run that was killed does not repeat finished tasks.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    DataDir
        The anonymised directory, with the trials, sexes and enrolment list of the source.

    Raises
    ------
    DataError
        Before the start, with all problems: a source that is unreadable or has several channels, a target that is the
        source, a file, or a folder made by something else or in use, an anonymiser that is not available. After all
        other utterances are done: those that failed, by name.
    """
    make_anonymizer(config)
    for name, (low, high) in config.parameters().items():
        if low < USUAL[name][0] or high > USUAL[name][1]:
            text = "anonymizer.%s is %g to %g: outside of %g to %g hardly any speech is left"
            logger.warning(text, name, low, high, *USUAL[name])
    name_stream = partial(stream_name, level=config.level, seeding=config.seeding, side=side)
    streams = {}
    for position, utterance in enumerate(source.recordings):
        streams[utterance] = name_stream(utterance, source.speakers[utterance], position)
    header = {
        "anonymizer": to_dict(config),
        "seed": seed,
        "version": __version__,
        "made_by": _made_by(config, seed),
    }
    change = partial(_anonymize, config=config, seed=seed)
    return make_twin(
        source, Path(target), streams, header, change, jobs=jobs, force=force, batch=batch
    )


def anonymised_twin(
    run: Run, name: str, source: DataDir, config: AnonymizerConfig, *, seed: int, side: str
) -> DataDir:
    """Anonymise a data directory into a folder of a run, by `anonymize_datadir`, unless it is up to date."""
    make = partial(
        anonymize_datadir,
        source,
        config=config,
        seed=seed,
        side=side,
        jobs=run.jobs,
        force=run.force,
    )
    inputs = [_made_by(config, seed), to_dict(config), side]
    return twin_stage(run, name, source, make, inputs=inputs)


def twin_stage(
    run: Run, name: str, source: DataDir, make: Callable[[Path], object], *, inputs: Any
) -> DataDir:
    """Make an anonymised data directory in a folder of a run, unless it is up to date.

    Parameters
    ----------
    run : Run
    name : str
        The folder, below that of the run.
    source : DataDir
    make : callable
        Writes the data directory to the folder.
    inputs
        What makes its recordings; see `spkbase.runs.Run.origin`.
    """
    twin = _twin(source, run.path(name))
    lists = {path.name: path for path in (source.path / "trials", *_other_lists(source))}
    recordings = [str(path.relative_to(run.output)) for path in twin.recordings.values()]
    return run.stage(
        f"recordings of {name}",
        f"{name}/wav.scp",
        step="recordings",
        make=lambda path: make(path.parent),
        read=lambda _: twin,
        also=[f"{name}/{RECORD}", *recordings],
        inputs=[
            inputs,
            sorted(source.speakers.items()),
            sorted(source.sexes.items()),
            source.enrolls,
        ],
        after=[
            run.stamp("recordings", sources=source.recordings),
            run.stamp("lists", sources=lists),
        ],
    ).value


def make_twin(
    source: DataDir,
    target: Path,
    streams: Mapping[str, str],
    header: Mapping[str, Any],
    change: Callable[[Signals], Outputs],
    *,
    jobs: int | None = None,
    force: bool = False,
    batch: int = 8,
) -> DataDir:
    """Make the recordings of an anonymised folder that are missing or out of date, and copy the lists.

    Parameters
    ----------
    source : DataDir
    target : path
        The folder.
    streams : mapping of str to str
        What the output of each utterance depends on besides `header`.
    header : mapping
        What makes the recordings, for the record: `anonymizer`, with its `name`, and the fingerprint `made_by`.
    change : callable
        Takes tasks with their samples and rates, and returns new samples or a DataError for each; it may be called in
        another process.
    jobs, force, batch
        As for `anonymize_datadir`; so are the errors.
    """
    _check_target(source, target)
    check_ids(source.recordings, source.path)
    tasks = _tasks(source, target, streams)
    before = _read_record(target)
    entries = before["files"]
    made_by = header["made_by"]
    record = {**header, "utterances": len(tasks), "files": entries, "lists": before["lists"]}
    due = []
    for task in tasks:
        if force or not _is_current(task, made_by, entries.get(task.utterance, {})):
            due.append(task)
    # check before the folder is made
    check_headers({task.utterance: task.source for task in due}, jobs=jobs)
    with sole_use(target):
        remove_temporaries(target)  # remove the unfinished files of a killed run
        if due:
            (target / "wav.scp").unlink(missing_ok=True)
            doing = header["anonymizer"]["name"].replace("the inverse of", "inverting")
            logger.debug("%s: %s, %d of %d utterances", source.name, doing, len(due), len(tasks))
            _write_record(target, record)  # marks the folder as ours
            files.make_folder(target / "wav")
            for outputs in _write_due(due, change, doing, jobs, batch):
                done = {name: {"made_by": made_by, **entry} for name, entry in outputs.items()}
                append_line(target / JOURNAL, done)  # an entry that survives if the process dies
                entries |= done
        else:
            text = "%s: all %d utterances are up to date in %s"
            logger.debug(text, source.name, len(tasks), target)
        for utterance in entries.keys() - source.recordings.keys():
            wav_file(target, utterance).unlink(missing_ok=True)
            del entries[utterance]
        _warn_of_equal_outputs(entries, target)
        copied = _copy_lists(source, target)
        for name in set(record["lists"]) - set(copied):
            (target / name).unlink(missing_ok=True)
        _write_record(target, {**record, "lists": copied})
        twin = _twin(source, target)
        write_datadir(twin)
    return twin


def recorded_anonymizer(folder: str | Path) -> AnonymizerConfig | None:
    """Return the anonymiser that the record of a folder names; None without a valid record."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        settings: dict[str, Any] = files.load_json(Path(folder) / RECORD)["anonymizer"]
        for key, value in settings.items():
            settings[key] = tuple(value) if isinstance(value, list) else value
        return AnonymizerConfig(**settings)
    return None


def undo_datadir(
    source: DataDir,
    target: str | Path,
    anonymizer: str,
    values: Mapping[str, float],
    *,
    jobs: int | None = None,
    force: bool = False,
) -> DataDir:
    """Invert the anonymisation of all utterances of a data directory, into another folder.

    As in `anonymize_datadir`, recordings made from the same audio with the same number are kept, and the output does
    not depend on the number of workers.

    Parameters
    ----------
    source : DataDir
        Anonymised speech.
    target : path
        The folder, see `anonymize_datadir`.
    anonymizer : str
        A name of `INVERSES`.
    values : mapping of str to float
        The anonymiser's number for each utterance.
    jobs, force
        As for `anonymize_datadir`.

    Raises
    ------
    DataError
        As for `anonymize_datadir`, or if an utterance has no number.
    """
    absent = sorted(source.recordings.keys() - values.keys())
    if absent:
        text = f"{len(absent)} of {len(source)} utterances have no {INVERSES[anonymizer].parameter}: {few(absent)}"
        raise DataError(text, file=source.path)
    streams = {utterance: f"undone {float(values[utterance])!r}" for utterance in source.recordings}
    made_by = files.fingerprint(__version__, "undone", anonymizer)
    header = {
        "anonymizer": {"name": f"the inverse of {anonymizer}"},
        "version": __version__,
        "made_by": made_by,
    }
    undo = partial(_undo, anonymizer=anonymizer)
    return make_twin(source, Path(target), streams, header, undo, jobs=jobs, force=force)


def _made_by(config: AnonymizerConfig, seed: int) -> str:
    """Return the fingerprint of an anonymiser, with the code of a user's."""
    module = None
    behind = files_behind(config.command)
    if config.name not in BUILT_IN and config.name != "command":
        file = load_plugin(config.name, "anonymiser", kind="function")[1]
        if file is not None:
            module = files.file_digest(file)
            behind = files_behind(config.name, file)
    facts = [config.record(), seed, module]
    if behind:
        facts.append(behind)
    return files.fingerprint(__version__, *facts)


def _twin(source: DataDir, target: Path) -> DataDir:
    """Return the anonymised version of a data directory in a folder."""
    recordings = {name: wav_file(target, name) for name in source.recordings}
    return DataDir(target, recordings, source.speakers, source.sexes, source.enrolls, source.trials)


def _check_target(source: DataDir, target: Path) -> None:
    """Raise a DataError unless the folder is new or was made here; it must not be the source."""
    unfit = unfit_id(target.resolve().name)
    if unfit:
        text = f"the name of the anonymised folder {unfit}"
        raise DataError(text, file=target, remedy="choose another suffix")
    if target.resolve() == source.path.resolve():
        raise DataError(
            "is the source itself", file=target, remedy="give a suffix or another folder"
        )
    if target.exists() and not target.is_dir():
        raise DataError("is a file", file=target, remedy="choose another suffix")
    # a killed run may leave temporary files without a record
    has_files = target.is_dir() and not all(map(is_temporary, target.iterdir()))
    was_made_here = (target / RECORD).is_file()
    if has_files and not was_made_here:
        text = f"the folder holds other files (no {RECORD}) and is left unchanged"
        raise DataError(text, file=target, remedy="remove the folder, or choose another suffix")


def _read_record(folder: Path) -> Record:
    """Return the record of a folder, with the journal of a killed run; without entries if it is damaged."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        record = files.load_json(folder / RECORD)
        entries = dict(record["files"])
        for done in read_lines(folder / JOURNAL):
            entries |= done
        return {**record, "files": entries, "lists": list(record["lists"])}
    return {"files": {}, "lists": []}


def _write_record(folder: Path, record: Record) -> None:
    """Write the record, which includes the journal; a file with the same content is not touched."""
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    path = folder / RECORD
    if not path.is_file() or path.read_bytes() != text.encode():
        files.write_text(path, text)
    (folder / JOURNAL).unlink(missing_ok=True)


def _is_current(task: Task, made_by: str, entry: Record) -> bool:
    """Return whether a recording exists, and neither it nor its source or anonymiser has changed."""
    return (
        entry.get("made_by") == made_by
        and entry.get("stream") == task.stream
        and _is_as_stamped(task.source, entry.get("source", {}))
        and _is_as_stamped(task.target, entry.get("output", {}))
    )


def _tasks(source: DataDir, target: Path, streams: Mapping[str, str]) -> list[Task]:
    """Return the task of each utterance; a DataError if the target of one is its source."""
    tasks = []
    own = []
    for name, path in source.recordings.items():
        task = Task(name, path, wav_file(target, name), streams[name])
        tasks.append(task)
        if task.target.exists() and task.target.resolve() == path.resolve():
            own.append(name)
    if own:
        text = f"{counted(len(own), 'recording')} of {source.path} would be replaced: {few(own)}"
        raise DataError(text, file=target, remedy="choose another suffix or folder")
    return tasks


def _stamp(path: Path) -> Record:
    size, changed = files.size_and_time(path)
    return {"size": size, "time": changed, "sha256": files.file_digest(path)}


def _is_as_stamped(path: Path, stamp: Record) -> bool:
    """Return whether a file is unchanged, by size and time of change, or by its SHA-256 if the time differs."""
    size, changed = files.size_and_time(path)
    if size is None or size != stamp.get("size"):
        return False
    return bool(changed == stamp["time"] or files.file_digest(path) == stamp["sha256"])


def _warn_of_equal_outputs(entries: Mapping[str, Record], target: Path) -> None:
    n_sources = len({entry["source"]["sha256"] for entry in entries.values()})
    n_outputs = len({entry["output"]["sha256"] for entry in entries.values()})
    if n_outputs < n_sources:
        text = "%s: %d different recordings became %d: does the anonymiser write the same speech for several?"
        logger.warning(text, target, n_sources, n_outputs)


def _write_due(
    due: Sequence[Task],
    change: Callable[[Signals], Outputs],
    doing: str,
    jobs: int | None,
    batch: int,
) -> Iterator[dict[str, Record]]:
    """Write the outputs of tasks, and yield their entries in the record; at the end raise all errors."""
    problems = Problems()
    batches = chunks(due, batch)
    write = partial(_write_outputs, change=change)
    sizes = list(map(len, batches))
    results = Work(jobs).map(write, batches, processes=True, description=doing, sizes=sizes)
    for result in results:
        yield problems.sift(result.items())
    problems.raise_if_any()


def _write_outputs(
    tasks: Sequence[Task], change: Callable[[Signals], Outputs]
) -> dict[str, Record | DataError]:
    """Read the sources of some tasks, change their samples, and write the output as WAV of 16 bits.

    Return, for each utterance, its stream and the stamps of its source and output, or an error.
    """
    results: dict[str, Record | DataError] = {}
    signals = []
    stamps = {}
    for task in tasks:
        try:
            stamps[task.utterance] = _stamp(task.source)
            signals.append((task, *read_audio(task.source)))
        except DataError as error:
            results[task.utterance] = error
    for (task, _, rate), output in zip(signals, change(signals), strict=True):
        try:
            if isinstance(output, DataError):
                text = f"utterance {task.utterance!r}: {output.text}"
                raise DataError(text, file=task.source, remedy=output.remedy)
            write_audio(task.target, output, rate)
            results[task.utterance] = {
                "stream": task.stream,
                "source": stamps[task.utterance],
                "output": _stamp(task.target),
            }
        except DataError as error:
            results[task.utterance] = error
    return results


def _anonymize(signals: Signals, config: AnonymizerConfig, seed: int) -> Outputs:
    generators = [named_stream(task.stream, seed) for task, _, _ in signals]
    if config.name == "mcadams":  # short recordings are processed faster together
        _, speech, rates = zip(*signals, strict=True)
        return turn_poles(speech, rates, [float(rng.uniform(*config.alpha)) for rng in generators])
    results: Outputs = []
    for (task, samples, rate), rng in zip(signals, generators, strict=True):
        try:
            function = make_anonymizer(config, task.target.parent)
            results.append(_checked(function(samples, rate, task.utterance, rng)))
        except DataError as error:
            results.append(error)
        # whatever a user's function raises, the other recordings are finished first
        except Exception as error:
            results.append(DataError(f"{type(error).__name__}: {error}"))
    return results


def _checked(output: Any) -> NDArray[Any]:
    """Return the output of an anonymiser as samples with full scale 1, scaled down if it is louder."""
    samples = np.asarray(output)
    if samples.ndim != 1 or not len(samples) or not np.issubdtype(samples.dtype, np.floating):
        text = f"the anonymiser gave {samples.dtype} of shape {samples.shape}, expected floats of shape (n,)"
        raise DataError(text, remedy="return samples with full scale 1")
    if not np.isfinite(samples).all():
        raise DataError("the anonymiser returned NaN or infinite samples")
    peak = float(np.abs(samples).max())
    if peak <= 1:
        return samples
    return samples * (_FULL_SCALE / peak)


def _copy_lists(source: DataDir, target: Path) -> list[str]:
    """Copy the other lists and return their names: text only, so that no audio of the original gets into the folder."""
    copied: list[str] = []
    for path in _other_lists(source):
        try:
            text = files.read_text(path)
        except DataError:
            logger.info("%s: not copied, it is not text", path)
            continue
        files.write_text(target / path.name, text)
        copied.append(path.name)
    return copied


def _other_lists(source: DataDir) -> list[Path]:
    """Return the files beside the recordings that a twin may have too."""
    others: list[Path] = []
    if not source.path.is_dir():  # a selection of utterances has no folder of its own
        return others
    for path in sorted(source.path.iterdir()):
        is_derived = path.name in _NOT_COPIED or path.name.startswith((".", "wav.scp"))
        if not is_derived and path.suffix not in (".scp", ".ark") and path.is_file():
            others.append(path)
    return others


def _undo(signals: Signals, anonymizer: str) -> Outputs:
    speech = [samples for _, samples, _ in signals]
    rates = [rate for *_, rate in signals]
    values = [float(task.stream.removeprefix("undone ")) for task, _, _ in signals]
    return INVERSES[anonymizer].undo(speech, rates, values)
