"""What a twin folder knows of itself: ``anonymization.json``, and a journal while it is being made.

The record names the anonymiser with its parameters and, for each utterance, what it was made by and from, with the
checksums of both files. While recordings are made, each batch that is done is appended to ``anonymization.journal``, so
that a process that is killed loses the batches in flight alone; at the end the journal is folded into the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spkbase.errors import DataError
from spkbase.files import fingerprint, load_json, write_text
from spkbase.runs import Journal
from spkbase.work import chunks, ordered_map
from spkver.anonymization.recordings import Stamp, Task, is_as_written, is_unchanged
from spkver.datadir import unfit_id

RECORD, JOURNAL = "anonymization.json", "anonymization.journal"
# Lists that are written from what was read, or that describe the audio of the original.
NOT_COPIED = frozenset(
    ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "segments", "utt2dur", "reco2dur",
     "utt2num_frames", "utt2num_samples", "frame_shift", "reco2file_and_channel", RECORD, JOURNAL)
)  # fmt: skip
_FORM = fingerprint("anonymised utterances", 1)  # entries say themselves what they were made by
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
        with suppress(FileNotFoundError):  # there is one where a run was killed
            self.files |= _noted(folder / JOURNAL)
        self._journal: Journal | None = None

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
        if self._journal is None:
            self._journal = Journal(self.folder / JOURNAL, _FORM)

    def add(self, results: Iterable[tuple[Task, Stamp, Stamp]]) -> None:
        """Keep what was done in a batch: from here on it survives whatever happens to the process."""
        assert self._journal is not None
        stamp = self.header["made_by"]
        done = {
            task.utterance: {"made_by": stamp, "stream": task.stream, "source": source, "output": output}
            for task, source, output in results
        }
        self._journal.append({}, done)
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
        if self._journal is not None:
            self._journal.close()
            self._journal = None
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
    with suppress(FileNotFoundError):
        files |= _noted(Path(folder) / JOURNAL)
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


def _noted(path: Path) -> dict[str, Entry]:
    """Utterances of a journal, which somebody may be writing; the later entry of one that is there twice."""
    files: dict[str, Entry] = {}
    with Journal(path, _FORM, read_only=True) as journal:
        for number in range(len(journal)):
            files |= journal.read(number)[1]
    return files


def _are_current(known: Sequence[tuple[Task, Entry]]) -> list[str]:
    return [
        task.utterance
        for task, entry in known
        if is_unchanged(task.source, entry.get("source")) and is_as_written(task.target, entry.get("output"))
    ]
