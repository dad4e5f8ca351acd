"""RSR2015's key files: which recordings enrol a model (trn), and which trials there are (ndx).

Fields are separated by commas, blanks or both. A trial list has millions of lines of which a few per cent are used,
so lines are checked and chosen with array operations on the bytes, block by block; only ids of chosen lines become
strings. Both readers note every problem, with its line, instead of stopping at the first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import Problems

TRIAL_TYPES = ("TC", "TW", "IC", "IW")
_BLOCK_BYTES = 1 << 24
_MAX_BAD_LINES = 100  # of one file; enough to see what is wrong with it
_BOM = b"\xef\xbb\xbf"
_FIELDS = 2 + len(TRIAL_TYPES)
_AUDIO_NAME = re.compile(r"^(?:male/|female/)?(.+?)(?:\.(?:sph|wav|flac))?$", re.IGNORECASE)


@dataclass(frozen=True)
class Enrolment:
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
    text = _read_text(path, problems)
    rows: list[Enrolment] = []
    seen: dict[str, int] = {}
    for line, content in enumerate(text.split("\n"), 1):
        model, *files = re.split(r"[,\s]+", content.strip().strip(","))
        if not model:
            continue
        segments = tuple(segment_id(name) for name in files)
        if not segments:
            problems.add(f"model {model!r} without files, expected 'model file1,file2,...'", file=path, line=line)
        elif model in seen:
            problems.add(
                f"model {model!r} for the second time, first in line {seen[model]}",
                file=path,
                line=line,
                remedy="put all files of a model into one line",
            )
        else:
            twice = sorted({segment for segment in segments if segments.count(segment) > 1})
            if twice:
                problems.add(
                    f"model {model!r} has the same file twice: {', '.join(twice)}",
                    file=path,
                    line=line,
                    remedy="remove one of the two",
                )
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
    chosen = np.isin(TRIAL_TYPES, types)
    tables = _Table(), _Table()
    rows: list[_Rows] = []
    try:
        with path.open("rb") as handle:
            for first_line, raw in _blocks(handle):
                if not _is_utf8(path, raw, first_line, problems):
                    return _trial_list(tables, [])
                block = _one_blank_between(raw)
                separators = _regular_separators(block)
                if separators is None:
                    rows.append(_cut_lines(path, block, first_line, chosen, tables, problems))
                else:
                    rows.append(_cut_block(block, separators, first_line, chosen, tables))
    except OSError as error:
        problems.add(f"cannot be read: {error.strerror or error}", file=path, remedy="check the corpus folder")
    trials = _trial_list(tables, rows)
    _note_duplicates(path, trials, problems)
    return trials


_Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # codes of model and segment, type, line


class _Table(defaultdict[bytes, int]):
    """Gives each new id the next number."""

    def __init__(self) -> None:
        super().__init__(self.__len__)


def _read_text(path: Path, problems: Problems) -> str:
    try:
        raw = path.read_bytes().removeprefix(_BOM)
    except OSError as error:
        problems.add(f"cannot be read: {error.strerror or error}", file=path, remedy="check the corpus folder")
        return ""
    return raw.decode("utf-8") if _is_utf8(path, raw, 1, problems) else ""


def _is_utf8(path: Path, raw: bytes, first_line: int, problems: Problems) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + raw.count(b"\n", 0, error.start)
        problems.add("is not UTF-8 text", file=path, line=line, remedy="save it as UTF-8")
        return False
    return True


def _blocks(handle: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, whole lines of text), each with a line break at its end."""
    line, rest, first = 1, b"", True
    while raw := handle.read(_BLOCK_BYTES):
        raw = raw.removeprefix(_BOM) if first else raw
        first = False
        end = raw.rfind(b"\n") + 1
        if end:
            block = rest + raw[:end]
            yield line, block
            line += block.count(b"\n")
            rest = raw[end:]
        else:
            rest += raw
    if rest:
        yield line, rest + b"\n"


_TO_BLANK = bytes.maketrans(b",\t\r", b"   ")


def _one_blank_between(block: bytes) -> bytes:
    """Make every separator one blank and drop blanks at the ends of lines; line breaks stay."""
    block = block.translate(_TO_BLANK)
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    block = block.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    return block[1:] if block.startswith(b" ") else block


def _regular_separators(block: bytes) -> NDArray[np.int64] | None:
    """Return the places of blanks and line break of each line, (n, 6), if every line of a block is a good trial."""
    data = np.frombuffer(block, dtype=np.uint8)
    places = np.flatnonzero(data <= ord(" "))
    if len(places) % _FIELDS:
        return None
    separators = places.reshape(-1, _FIELDS)
    letters = data[separators[:, 1:-1] + 1]
    one_letter_each = (np.diff(separators[:, 1:]) == 2).all()
    starts = np.concatenate([[0], separators[:-1, -1] + 1])
    good = (
        one_letter_each
        and (data[separators] == np.frombuffer(b"     \n", dtype=np.uint8)).all()
        and (separators[:, 0] > starts).all()
        and (separators[:, 1] > separators[:, 0] + 1).all()
        and ((letters == ord("Y")) | (letters == ord("N"))).all()
        and ((letters == ord("Y")).sum(axis=1) == 1).all()
    )
    return separators if good else None


def _cut_block(
    block: bytes,
    separators: NDArray[np.int64],
    first_line: int,
    chosen: NDArray[np.bool_],
    tables: tuple[_Table, _Table],
) -> _Rows:
    """Cut a block of good lines: drop the bytes that are not wanted, then split the rest in one go."""
    data = np.frombuffer(block, dtype=np.uint8)
    kinds = np.argmax(data[separators[:, 1:-1] + 1] == ord("Y"), axis=1)
    keep = chosen[kinds]
    id_ends, ends = separators[:, 1] + 1, separators[:, -1] + 1
    starts = np.concatenate([[0], ends[:-1]])
    wanted = np.stack([keep, np.zeros_like(keep)], axis=1).ravel()
    lengths = np.stack([id_ends - starts, ends - id_ends], axis=1).ravel()
    ids = data[np.repeat(wanted, lengths)].tobytes().split(b" ")[:-1]
    n_rows = int(keep.sum())
    models = np.fromiter(map(tables[0].__getitem__, ids[0::2]), np.int64, n_rows)
    segments = np.fromiter(map(tables[1].__getitem__, ids[1::2]), np.int64, n_rows)
    return models, segments, kinds[keep], first_line + np.flatnonzero(keep)


def _cut_lines(
    path: Path,
    block: bytes,
    first_line: int,
    chosen: NDArray[np.bool_],
    tables: tuple[_Table, _Table],
    problems: Problems,
) -> _Rows:
    """Cut a block line by line, for blocks with empty or malformed lines."""
    rows = []
    n_bad = 0
    for line, content in enumerate(block.split(b"\n"), first_line):
        fields = content.split(b" ")
        flags = fields[2:]
        if len(fields) == _FIELDS and all(fields) and flags.count(b"Y") == 1 and flags.count(b"N") == 3:
            kind = flags.index(b"Y")
            if chosen[kind]:
                rows.append((tables[0][fields[0]], tables[1][fields[1]], kind, line))
        elif content and n_bad < _MAX_BAD_LINES:
            n_bad += 1
            _note_bad_line(path, content, line, problems)
    models, segments, kinds, lines = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return models, segments, kinds, lines


def _note_bad_line(path: Path, content: bytes, line: int, problems: Problems) -> None:
    text = content.decode("utf-8", "replace")
    fields = text.split(" ")
    flags = fields[2:]
    if len(fields) == _FIELDS and set(flags) <= {"Y", "N"}:
        kinds = [kind for kind, flag in zip(TRIAL_TYPES, flags, strict=True) if flag == "Y"]
        what = f"a trial of {'no type' if not kinds else 'types ' + ' and '.join(kinds)}, expected exactly one Y"
    else:
        what = "expected 'model,segment,TC,TW,IC,IW' with Y or N for each of the four types"
    problems.add(f"{what}, found {text[:100]!r}", file=path, line=line, remedy="copy the key files again")


def _trial_list(tables: tuple[_Table, _Table], parts: list[_Rows]) -> TrialList:
    empty = np.zeros(0, dtype=np.int64)
    models, segments, kinds, lines = (np.concatenate([empty, *(part[column] for part in parts)]) for column in range(4))
    model_ids, model_codes = _sorted_ids([name.decode() for name in tables[0]])
    segment_ids, segment_codes = _sorted_ids([segment_id(name.decode()) for name in tables[1]])
    return TrialList(
        model_ids,
        segment_ids,
        model_codes[models].astype(np.int32),
        segment_codes[segments].astype(np.int32),
        kinds.astype(np.int8),
        lines,
    )


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
