"""RSR2015's key files: which recordings enrol a model (trn), and which trials there are (ndx).

Fields are separated by commas, blanks or both. A trial list has millions of lines of which a few per cent are used, so
it is read by pandas, block by block. Both readers note every problem, with its line, instead of stopping at the first.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import Problems

TRIAL_TYPES = ("TC", "TW", "IC", "IW")
_BLOCK_BYTES = 1 << 24
_MAX_BAD_LINES = 100  # of one block; enough to see what is wrong with it
_BOM = b"\xef\xbb\xbf"
_FIELDS = 2 + len(TRIAL_TYPES)
_TO_BLANK = bytes.maketrans(b",\t\r", b"   ")
_AUDIO_NAME = re.compile(r"^(?:male/|female/)?(.+?)(?:\.(?:sph|wav|flac))?$", re.IGNORECASE)


class Enrolment(NamedTuple):
    """A model, its recordings and the line of the list that says so."""

    model: str
    segments: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class TrialList:
    """The chosen lines of a trial list.

    Attributes
    ----------
    model_ids, segment_ids : tuple of str
        The ids that occur, sorted.
    models, segments : ndarray of int32 of shape (N,)
        Trials as indices into the tables, in the order of the file.
    types : ndarray of int8 of shape (N,)
        Index into `TRIAL_TYPES`.
    lines : ndarray of int64 of shape (N,)
        Line of each trial, from 1.
    """

    model_ids: tuple[str, ...]
    segment_ids: tuple[str, ...]
    models: NDArray[np.int32]
    segments: NDArray[np.int32]
    types: NDArray[np.int8]
    lines: NDArray[np.int64]


def segment_id(name: str) -> str:
    """Name of a recording in a key file without the sex's folder in front and the extension behind.

    Examples
    --------
    >>> segment_id("male/m101/m101_01_001.sph")
    'm101/m101_01_001'
    """
    match = _AUDIO_NAME.match(name)
    return match.group(1) if match else name


def read_enrolment(path: Path, problems: Problems) -> list[Enrolment]:
    """Read lines of "model file1,file2,...", one or more files each."""
    rows: list[Enrolment] = []
    seen: dict[str, int] = {}
    for first_line, block in _blocks(path, problems):
        for line, content in enumerate(block.decode().split("\n"), first_line):
            model, *names = content.split() or [""]
            if not model:
                continue
            segments = tuple(map(segment_id, names))
            twice = sorted({segment for segment in segments if segments.count(segment) > 1})
            text, remedy = "", None
            if not segments:
                text = f"model {model!r} without files, expected 'model file1,file2,...'"
            elif model in seen:
                text = f"model {model!r} for the second time, first in line {seen[model]}"
                remedy = "put all files of a model into one line"
            elif twice:
                text, remedy = f"model {model!r} has the same file twice: {', '.join(twice)}", "remove one of the two"
            if text:
                problems.add(text, file=path, line=line, remedy=remedy)
            else:
                rows.append(Enrolment(model, segments, line))
            seen.setdefault(model, line)
    if not seen:
        problems.add("holds no models", file=path, remedy="copy the key files again")
    return rows


def read_trials(path: Path, types: Sequence[str], problems: Problems) -> TrialList:
    """Read the trials of the chosen types from lines of "model,segment,TC,TW,IC,IW", four times Y or N.

    Parameters
    ----------
    path : path
        The list; several million lines are fine.
    types : sequence of str
        Which of `TRIAL_TYPES` to keep. Lines of other types are checked and dropped.
    problems : Problems
        Takes malformed lines, lines with no or several types, and trials that occur twice.
    """
    import pandas as pd

    chosen = np.isin(TRIAL_TYPES, types)
    names: tuple[dict[str, int], dict[str, int]] = {}, {}
    parts = [np.empty((4, 0), np.int64)]  # codes of model and segment, type, line
    options: dict[str, Any] = {"sep": r"\s+", "header": None, "names": range(_FIELDS + 1), "dtype": "category"}
    options |= {"quoting": csv.QUOTE_NONE, "skip_blank_lines": False, "keep_default_na": False, "na_values": [""]}
    for first_line, block in _blocks(path, problems):
        try:
            table = pd.read_csv(io.BytesIO(block), **options)
        except pd.errors.ParserError:  # a line has still more fields
            _note_bad_lines(path, block, first_line, problems)
            continue
        is_yes, is_no = (np.stack([table[column] == flag for column in range(2, _FIELDS)], axis=1) for flag in "YN")
        good = (is_yes.sum(axis=1) == 1) & (is_no.sum(axis=1) == _FIELDS - 3) & table[_FIELDS].isna().to_numpy()
        if not (good | table[0].isna().to_numpy()).all():
            _note_bad_lines(path, block, first_line, problems)
        kinds = is_yes.argmax(axis=1)
        rows = np.flatnonzero(good & chosen[kinds])
        codes = []
        for column, known in enumerate(names):
            kept = table[column].iloc[rows].cat.remove_unused_categories().cat
            numbers = np.array([known.setdefault(name, len(known)) for name in kept.categories], np.int64)
            codes.append(numbers[kept.codes])
        parts.append(np.stack([*codes, kinds[rows], first_line + rows]))
    models, segments, kinds, lines = np.concatenate(parts, axis=1)
    model_ids, model_codes = _sorted_ids(list(names[0]))
    segment_ids, segment_codes = _sorted_ids([segment_id(name) for name in names[1]])
    trials = TrialList(
        model_ids,
        segment_ids,
        model_codes[models].astype(np.int32),
        segment_codes[segments].astype(np.int32),
        kinds.astype(np.int8),
        lines,
    )
    _note_duplicates(path, trials, problems)
    return trials


def _blocks(path: Path, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, whole lines of UTF-8 with blanks between fields) up to what is wrong."""
    line = 1
    try:
        with path.open("rb") as handle:
            while lines := handle.readlines(_BLOCK_BYTES):
                block = b"".join(lines)
                block = block.removeprefix(_BOM) if line == 1 else block
                block.decode("utf-8")
                yield line, block.translate(_TO_BLANK)
                line += len(lines)
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, error.start)
        problems.add("is not UTF-8 text", file=path, line=line, remedy="save it as UTF-8")
    except OSError as error:
        problems.add(f"cannot be read: {error.strerror or error}", file=path, remedy="check the corpus folder")


def _note_bad_lines(path: Path, block: bytes, first_line: int, problems: Problems) -> None:
    n_bad = 0
    for line, content in enumerate(block.decode().split("\n"), first_line):
        fields = content.split()
        flags = fields[2:]
        if len(fields) == _FIELDS and set(flags) <= {"Y", "N"}:
            kinds = [kind for kind, flag in zip(TRIAL_TYPES, flags, strict=True) if flag == "Y"]
            what = f"a trial of {'no type' if not kinds else 'types ' + ' and '.join(kinds)}, expected exactly one Y"
        else:
            kinds, what = [], "expected 'model,segment,TC,TW,IC,IW' with Y or N for each of the four types"
        if fields and len(kinds) != 1 and n_bad < _MAX_BAD_LINES:
            n_bad += 1
            text = f"{what}, found {' '.join(fields)[:100]!r}"
            problems.add(text, file=path, line=line, remedy="copy the key files again")


def _sorted_ids(names: list[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Sorted ids, and where each of the names stands among them (two names may be one id)."""
    ids = tuple(sorted(set(names)))
    places = {name: row for row, name in enumerate(ids)}
    return ids, np.array([places[name] for name in names], dtype=np.int64)


def _note_duplicates(path: Path, trials: TrialList, problems: Problems) -> None:
    pairs = trials.models.astype(np.int64) * max(len(trials.segment_ids), 1) + trials.segments
    order = np.argsort(pairs, kind="stable")
    repeats = np.flatnonzero(np.diff(pairs[order]) == 0)
    for repeat in repeats[:_MAX_BAD_LINES]:
        first, second = order[repeat], order[repeat + 1]
        model, segment = trials.model_ids[trials.models[second]], trials.segment_ids[trials.segments[second]]
        problems.add(
            f"trial {model} {segment} for the second time, first in line {trials.lines[first]}",
            file=path,
            line=int(trials.lines[second]),
            remedy="remove one of the two lines",
        )
