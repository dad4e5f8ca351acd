"""Entries of ``wav.scp`` that are shell commands: run into files, which are whole or absent."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from spkbase.errors import DataError, Problems
from spkbase.files import atomic_path, load_json, write_text
from spkbase.own_code import run_command
from spkbase.work import ordered_map
from spkver.audio import audio_header
from spkver.datadir.directory import check_ids

logger = logging.getLogger(__name__)

_RECORD = "commands.json"


def run_pipes(commands: Mapping[str, str], folder: Path, *, jobs: int | None = None) -> dict[str, Path]:
    """Run the commands and give the file of each utterance.

    Parameters
    ----------
    commands : mapping
        Utterance to shell command, which ends in "|" and writes audio to its standard output.
    folder : path
        Where ``UTTERANCE.wav`` and the record of the commands go. Whether a command would give something else today
        cannot be known: a file is made again only if its command has changed or it was removed.
    jobs : int, optional
        How many run at once.

    Raises
    ------
    DataError
        With all commands that failed or wrote no audio; the files of the others are kept.
    """
    check_ids(commands)
    paths = {utterance: folder / f"{utterance}.wav" for utterance in commands}
    record = _read_record(folder / _RECORD)
    due = {
        utterance: text
        for utterance, text in commands.items()
        if record.get(utterance) != text or not paths[utterance].is_file()
    }
    if due:
        logger.info("running %d of the %d shell commands of wav.scp", len(due), len(commands))
    problems, made = Problems(), {}
    try:
        results = ordered_map(
            partial(_run, folder=folder, place=Path.cwd()),
            due.items(),
            jobs=jobs,
            threads=True,
            description="commands",
            total=len(due),
        )
        for utterance, error in results:
            if error is None:
                made[utterance] = due[utterance]
            else:
                problems.note(error)
    finally:
        if made:
            kept = {**record, **made}
            write_text(folder / _RECORD, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    problems.raise_if_any()
    return paths


def _run(item: tuple[str, str], folder: Path, place: Path) -> tuple[str, DataError | None]:
    utterance, command = item
    path = folder / f"{utterance}.wav"
    try:
        with atomic_path(path) as temporary:
            with temporary.open("wb") as output:
                # the caller allowed the commands of the list; the folder of a worker is another
                run_command(command.rstrip().removesuffix("|"), output=output, place=place)
            try:
                audio_header(temporary)
            except DataError as error:
                raise DataError(f"the command wrote no audio: {error.text}") from error
    except DataError as error:
        text = f"utterance {utterance!r}: {error.text}: {command}"
        return utterance, DataError(text, file=error.file, remedy=error.remedy or "run it by hand to see why")
    return utterance, None


def _read_record(path: Path) -> dict[str, str]:
    try:
        record = load_json(path)
    except DataError:
        return {}
    return record if isinstance(record, dict) else {}
