"""Undoing an anonymiser on a data directory whose recordings' numbers are known or guessed: a twin of the twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spkbase.errors import DataError, few
from spkbase.files import fingerprint
from spkbase.version import __version__
from spkver.anonymization.directories import check_target, make_twin, output_file
from spkver.anonymization.inverses import INVERSES
from spkver.anonymization.recordings import Made, Task, write_outputs
from spkver.datadir import DataDir, check_ids


def undo_datadir(
    source: DataDir,
    target: str | Path,
    anonymizer: str,
    values: Mapping[str, float],
    *,
    jobs: int | None = None,
    force: bool = False,
) -> DataDir:
    """Undo an anonymiser on all utterances of a data directory, into a twin folder.

    As `anonymize_datadir` makes a twin: recordings that are there as they were made, from the same audio by the same
    number, are kept; the output does not depend on the number of workers.

    Parameters
    ----------
    source : DataDir
        Anonymised speech.
    target : path
        The twin folder, see `anonymize_datadir`.
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
    target = Path(target)
    if absent := sorted(source.recordings.keys() - values.keys()):
        text = f"{len(absent)} of {len(source)} utterances have no {INVERSES[anonymizer].parameter}: {few(absent)}"
        raise DataError(text, file=source.path)
    check_target(source, target)
    check_ids(source.recordings, source.path)
    tasks = [
        Task(utterance, Path(path), output_file(target, utterance), f"undone {float(values[utterance])!r}")
        for utterance, path in source.recordings.items()
    ]
    made = {"anonymizer": {"name": f"undoing {anonymizer}"}, "version": __version__}
    header = {**made, "made_by": fingerprint(__version__, "undone", anonymizer), "utterances": len(tasks)}
    return make_twin(
        source, target, tasks, header, partial(_undo_recordings, anonymizer=anonymizer), jobs=jobs, force=force
    )


def _undo_recordings(tasks: Sequence[Task], *, anonymizer: str) -> list[Made | DataError]:
    return write_outputs(tasks, partial(_undo, anonymizer=anonymizer))


def _undo(signals: Sequence[tuple[Task, NDArray[Any], int]], anonymizer: str) -> list[NDArray[Any] | DataError]:
    values = [float(task.stream.removeprefix("undone ")) for task, _, _ in signals]
    return INVERSES[anonymizer].undo([samples for _, samples, _ in signals], [rate for *_, rate in signals], values)
