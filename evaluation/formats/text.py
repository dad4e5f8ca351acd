"""Lists as text in UTF-8, one trial a line, columns separated by white space.

=========  =====================================
Trials     ``model segment``
Key        ``model segment target|nontarget``
Scores     ``model segment score``
=========  =====================================

Kaldi, the VoicePrivacy toolkits and SIDEKIT write these columns. Blank lines, Windows line ends and a byte order mark
are accepted. Scores are written with the fewest digits that read back to the same float64.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evaluation.errors import DataError
from evaluation.files import atomic_path
from evaluation.pairs import find_repeat, sorted_table
from evaluation.trials import Key, Scores, Trials

_BLOCK_BYTES = 1 << 22
_LINES_PER_WRITE = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# the six bytes at which bytes.split() cuts
_IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\x0b\x0c"))
_UNWRITABLE = re.compile("[ \t\n\r\x0b\x0c\0]|^\ufeff|[\ud800-\udfff]")

_COLUMNS = {
    2: "2 columns (model segment)",
    3: "3 columns (model segment score, or model segment target|nontarget)",
}


def read_text_trials(path: str | Path) -> Trials:
    """Read a list of trials; the text of a key is read too, without its third column.

    Raises
    ------
    DataError
        With file and line: wrong number of columns, a repeated pair, an empty file, not UTF-8, binary.
    """
    path = Path(path)
    n_columns = _count_columns(path)
    if n_columns == 3:
        return read_text_key(path).trials()
    return Trials(*_read(path, 2, None).ids())


def read_text_key(path: str | Path) -> Key:
    """Read a key.

    Raises
    ------
    DataError
        With file and line: as for trials, or the third column is neither ``target`` nor ``nontarget``.
    """
    table = _read(Path(path), 3, _parse_labels)
    return Key(*table.ids(), is_target=table.third())


def read_text_scores(path: str | Path) -> Scores:
    """Read scores.

    Raises
    ------
    DataError
        With file and line: as for trials, or the third column is not a number or NaN.
    """
    table = _read(Path(path), 3, _parse_numbers)
    return Scores(*table.ids(), values=table.third())


def write_text_trials(path: str | Path, trials: Trials) -> None:
    """Write a list of trials, in its order.

    Raises
    ------
    DataError
        If an id holds white space, which would tear the line, or the file cannot be written.
    """
    _write(path, trials, None)


def write_text_key(path: str | Path, key: Key) -> None:
    """Write a key, in its order; trial types have no place in it. Errors as for trials."""
    names = np.array(["nontarget", "target"], dtype=object)
    _write(path, key, lambda rows: names[key.is_target[rows].astype(int)])


def write_text_scores(path: str | Path, scores: Scores) -> None:
    """Write scores, in their order. Errors as for trials."""
    _write(path, scores, lambda rows: map(repr, scores.values[rows].tolist()))


def _numbering() -> defaultdict[bytes, int]:
    codes: defaultdict[bytes, int] = defaultdict()
    codes.default_factory = codes.__len__  # a new id gets the next number
    return codes


@dataclass
class _Table:
    """What was read so far: ids as bytes with the order of their appearance, and the columns block by block."""

    path: Path
    model_codes: defaultdict[bytes, int] = field(default_factory=_numbering)
    segment_codes: defaultdict[bytes, int] = field(default_factory=_numbering)
    models: list[np.ndarray] = field(default_factory=list)
    segments: list[np.ndarray] = field(default_factory=list)
    thirds: list[np.ndarray] = field(default_factory=list)
    lines: list[np.ndarray] = field(default_factory=list)

    def ids(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Give the fields of `Trials`, after a check for repeated pairs."""
        models, segments = np.concatenate(self.models), np.concatenate(self.segments)
        names = [self._decode(self.model_codes, models), self._decode(self.segment_codes, segments)]
        repeat = find_repeat(models, segments, len(names[1]), len(names[0]))
        if repeat is not None:
            earlier, later = (self.line(row) for row in repeat)
            pair = f"'{names[0][models[repeat[1]]]} {names[1][segments[repeat[1]]]}'"
            remedy = "each pair of model and segment may occur once"
            raise DataError(f"trial {pair} repeats line {earlier}", file=self.path, line=later, remedy=remedy)
        model_ids, models = sorted_table(names[0], models)
        segment_ids, segments = sorted_table(names[1], segments)
        return model_ids, segment_ids, models, segments

    def third(self) -> np.ndarray:
        return np.concatenate(self.thirds)

    def line(self, row: int) -> int:
        return int(np.concatenate(self.lines)[row])

    def _decode(self, codes: dict[bytes, int], column: np.ndarray) -> list[str]:
        names = []
        for code, raw in enumerate(codes):
            try:
                names.append(raw.decode("utf-8"))
            except UnicodeDecodeError:
                line = self.line(int(np.flatnonzero(column == code)[0]))
                raise _not_text(self.path, line, f"id {_shown(raw)} is not UTF-8") from None
        return names


def _read(path: Path, n_columns: int, parse: Callable[[list[bytes]], np.ndarray] | None) -> _Table:
    table = _Table(path)
    first_line = 1
    for block in _blocks(path):
        tokens, lines = _cut(block, first_line, n_columns, path)
        first_line += block.count(b"\n")
        columns = [tokens[column::n_columns] for column in range(n_columns)]
        table.models.append(np.fromiter(map(table.model_codes.__getitem__, columns[0]), np.int32, len(lines)))
        table.segments.append(np.fromiter(map(table.segment_codes.__getitem__, columns[1]), np.int32, len(lines)))
        table.lines.append(lines)
        if parse is not None:
            try:
                table.thirds.append(parse(columns[2]))
            except _BadValueError as bad:
                raise DataError(bad.text, file=path, line=int(lines[bad.row]), remedy=bad.remedy) from None
    if not sum(map(len, table.lines)):
        raise DataError("expected trials, got an empty file", file=path, remedy="write the list again")
    return table


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the file in pieces that end with a line."""
    try:
        with path.open("rb") as handle:
            rest = handle.read(len(_BYTE_ORDER_MARK))
            rest = b"" if rest == _BYTE_ORDER_MARK else rest
            while piece := handle.read(_BLOCK_BYTES):
                end = piece.rfind(b"\n") + 1
                if end:
                    yield rest + piece[:end]
                    rest = piece[end:]
                else:
                    rest += piece
            if rest:
                yield rest
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error


def _cut(block: bytes, first_line: int, n_columns: int, path: Path) -> tuple[list[bytes], np.ndarray]:
    """Cut a block into tokens, after a check that each line has its columns; also give the line of each row."""
    if b"\0" in block:
        raise _not_text(path, first_line + block[: block.index(b"\0")].count(b"\n"), "it holds zero bytes")
    codes = np.frombuffer(block, np.uint8)
    space = _IS_SPACE[codes]
    begins = ~space
    begins[1:] &= space[:-1]
    line_starts = np.concatenate([[0], np.flatnonzero(codes[:-1] == ord("\n")) + 1])
    counts = np.add.reduceat(begins, line_starts, dtype=np.int64)
    wrong = np.flatnonzero((counts != n_columns) & (counts != 0))
    if len(wrong):
        start = line_starts[wrong[0]]
        shown = _shown(block[start : start + 200].split(b"\n")[0].strip())
        raise DataError(
            f"expected {_COLUMNS[n_columns]}, got {counts[wrong[0]]}: {shown}",
            file=path,
            line=first_line + int(wrong[0]),
            remedy="columns are separated by white space; an id must not hold any",
        )
    return block.split(), first_line + np.flatnonzero(counts)


def _count_columns(path: Path) -> int:
    """Count the columns of the first line that is not blank; 2 if there is none."""
    for block in _blocks(path):
        for line in block.splitlines():
            if line.strip():
                return len(line.split())
    return 2


class _BadValueError(Exception):
    def __init__(self, row: int, text: str, remedy: str | None = None) -> None:
        super().__init__(text)
        self.row, self.text, self.remedy = row, text, remedy


def _parse_numbers(tokens: list[bytes]) -> np.ndarray:
    try:
        values = np.fromiter(map(float, tokens), np.float64, len(tokens))
        readable = b"_" not in b"".join(tokens)  # float() takes 1_000 for a thousand
    except ValueError:
        readable = False
    if not readable:
        row = next(row for row, token in enumerate(tokens) if not _is_number(token))
        raise _BadValueError(row, f"expected a number as score, got {_shown(tokens[row])}")
    bad = np.flatnonzero(np.isnan(values))
    if len(bad):
        raise _BadValueError(int(bad[0]), "the score is not a number (NaN)", "score this trial anew")
    return values


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


def _parse_labels(tokens: list[bytes]) -> np.ndarray:
    strange = set(tokens) - {b"target", b"nontarget"}
    if strange:
        row = next(row for row, token in enumerate(tokens) if token in strange)
        raise _BadValueError(row, f"expected target or nontarget, got {_shown(tokens[row])}")
    return np.fromiter(map(b"target".__eq__, tokens), bool, len(tokens))


def _write(path: str | Path, trials: Trials, third: Callable[[slice], Iterable[str]] | None) -> None:
    path = Path(path)
    for ids in (trials.model_ids, trials.segment_ids):
        torn = next((one for one in ids if _UNWRITABLE.search(one)), None)
        if torn is not None:
            remedy = "write HDF5 instead, or rename it"
            raise DataError(f"id {torn!r} holds white space or other bytes that a text list cannot hold", remedy=remedy)
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as handle:
        for start in range(0, len(trials), _LINES_PER_WRITE):
            rows = slice(start, start + _LINES_PER_WRITE)
            models = trials.model_ids[trials.models[rows]].tolist()
            segments = trials.segment_ids[trials.segments[rows]].tolist()
            if third is None:
                lines = [f"{model} {segment}\n" for model, segment in zip(models, segments, strict=True)]
            else:
                triples = zip(models, segments, third(rows), strict=True)
                lines = [f"{model} {segment} {value}\n" for model, segment, value in triples]
            handle.write("".join(lines))


def _not_text(path: Path, line: int, why: str) -> DataError:
    return DataError(f"expected text in UTF-8, but {why}", file=path, line=line, remedy="give a text list or HDF5")


def _shown(raw: bytes, width: int = 60) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= width else text[:width] + "...")
