"""Lists as text in UTF-8, one trial a line, columns separated by white space; gzip is read and, by ``.gz``, written.

=========  =====================================
Trials     ``model segment``
Key        ``model segment target|nontarget``
Scores     ``model segment score``
=========  =====================================

These columns are written; other orders are read too (`evaluation.formats.layouts`). Blank lines, Windows line ends and
a byte order mark are accepted. Scores are written with the fewest digits that read back to the same float64.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from evaluation.formats.format import DETECT, Choice
from evaluation.formats.layouts import (
    LABELS,
    Content,
    Layout,
    detect_layout,
    expected_columns,
    forced_layout,
    is_label,
    is_number,
    label_remedy,
)
from evaluation.formats.tokens import Columns, cut_columns, first_line
from evaluation.trials import Key, Scores, Trials, find_repeat
from spkbase.errors import DataError
from spkbase.files import atomic_path, read_text_bytes, shown, write_bytes

_LINES_PER_WRITE = 1 << 16
_LINES_TO_DETECT = 1000
_UNWRITABLE = re.compile("[ \t\n\r\x0b\x0c\0]|^\ufeff|[\ud800-\udfff]")
_TRIALS_COLUMNS = "2 columns (model segment)"


def read_text_trials(path: str | Path, raw: bytes | None = None) -> Trials:
    """Read a list of trials; the text of a key is read too, without its labels.

    Raises
    ------
    DataError
        With file and line: wrong number of columns, a repeated pair, an empty file, not UTF-8, binary.
    """
    path = Path(path)
    raw = read_text_bytes(path) if raw is None else raw
    if len(first_line(raw).split()) == 3:
        return read_text_key(path, raw=raw).trials()
    columns = cut_columns(path, raw, 2, _TRIALS_COLUMNS)
    return Trials.trusted(**_ids(columns, ("model", "segment")))


def read_text_key(path: str | Path, choice: Choice = DETECT, raw: bytes | None = None) -> Key:
    """Read a key.

    Parameters
    ----------
    path : path
    choice : Choice
        The order of the columns, if it is to be forced.
    raw : bytes, optional
        The text of the file, where it is read already.

    Raises
    ------
    DataError
        With file and line: as for trials, or a label is neither ``target`` nor ``nontarget`` (nor 1, 0, true, false).
    """
    columns, layout = _columns(Path(path), choice, "key", raw)
    ids = _ids(columns, layout)
    if "label" in layout:
        is_target = _labels(columns, layout.index("label"))
    else:
        # identities can only be compared as ids of one table
        claimed, real = (columns.tokens(layout.index(role)) for role in ("claimed", "real"))
        is_target = np.fromiter(map(bytes.__eq__, claimed, real), bool, len(columns))
    return Key.trusted(**ids, is_target=is_target)


def read_text_scores(path: str | Path, choice: Choice = DETECT, raw: bytes | None = None) -> Scores:
    """Read scores; parameters as for a key.

    Raises
    ------
    DataError
        With file and line: as for trials, or a score is not a number or NaN.
    """
    columns, layout = _columns(Path(path), choice, "scores", raw)
    values = _numbers(columns, layout.index("score"))
    ids = _ids(columns, layout)
    if layout[0] == "score" and choice.layout is None:
        _check_not_kaldi(columns, ids["segment_ids"])
    return Scores.trusted(**ids, values=values)


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


def _columns(path: Path, choice: Choice, content: Content, raw: bytes | None) -> tuple[Columns, Layout]:
    raw = read_text_bytes(path) if raw is None else raw
    if choice.layout is not None:
        layout = forced_layout(choice.layout, content)
        return cut_columns(path, raw, len(layout), f"{len(layout)} columns ({' '.join(layout)})"), layout
    n_columns = len(first_line(raw).split())
    if n_columns not in (3, 4, 5):
        n_columns = 3
    columns = cut_columns(path, raw, n_columns, expected_columns(content, n_columns))
    some = np.arange(min(len(columns), _LINES_TO_DETECT))
    rows = list(zip(*(columns.tokens(column, some) for column in range(n_columns)), strict=True))
    return columns, detect_layout(rows, content, path)


def _ids(columns: Columns, layout: Layout) -> dict[str, np.ndarray]:
    """Return the fields of `Trials`, after a check for repeated pairs."""
    model_ids, models = columns.ids(layout.index("model" if "model" in layout else "claimed"))
    segment_ids, segments = columns.ids(layout.index("segment"))
    repeat = find_repeat(models, segments, len(segment_ids), len(model_ids))
    if repeat is not None:
        earlier, later = (columns.line(row) for row in repeat)
        pair = f"'{model_ids[models[repeat[1]]]} {segment_ids[segments[repeat[1]]]}'"
        remedy = "each pair of model and segment may occur once"
        raise DataError(f"trial {pair} repeats line {earlier}", file=columns.path, line=later, remedy=remedy)
    return {"model_ids": model_ids, "segment_ids": segment_ids, "models": models, "segments": segments}


def _numbers(columns: Columns, column: int) -> np.ndarray:
    values = np.empty(len(columns))
    underscores = b"_" in columns.raw  # float() takes 1_000 for a thousand
    for rows in columns.pieces():
        tokens = columns.tokens_of(column, rows)
        try:
            values[rows] = np.fromiter(map(float, tokens), np.float64, len(tokens))
            readable = not (underscores and b"_" in b"".join(tokens))
        except ValueError:
            readable = False
        if not readable:
            place = next(place for place, token in enumerate(tokens) if not is_number(token))
            text = f"expected a number as score, got {shown(tokens[place])}"
            raise DataError(text, file=columns.path, line=columns.line(rows.start + place))
    bad = np.flatnonzero(np.isnan(values))
    if len(bad):
        line = columns.line(int(bad[0]))
        remedy = "score this trial anew"
        raise DataError("the score is not a number (NaN)", file=columns.path, line=line, remedy=remedy)
    return values


def _labels(columns: Columns, column: int) -> np.ndarray:
    is_target = columns.equals(column, b"target")
    if (is_target | columns.equals(column, b"nontarget")).all():  # the usual words need no tokens
        return is_target
    tokens = columns.tokens(column)
    truth = {}
    for token in set(tokens):
        if not is_label(token):
            row = min(tokens.index(token) for token in set(tokens) if not is_label(token))
            text = f"expected target or nontarget, got {shown(tokens[row])}"
            raise DataError(text, file=columns.path, line=columns.line(row), remedy=label_remedy(tokens[row]))
        truth[token] = LABELS[token.lower()]
    return np.fromiter(map(truth.__getitem__, tokens), bool, len(tokens))


def _check_not_kaldi(columns: Columns, segment_ids: np.ndarray) -> None:
    """Refuse a file that begins with lines of scores first, and goes on with lines of scores last."""
    strange = next((name for name in segment_ids if is_number(name.encode())), None)
    if strange is not None:
        row = next(row for row, token in enumerate(columns.tokens(2)) if token == strange.encode())
        text = f"the score is first in the lines before, but here it could be the last: {strange!r}"
        remedy = "say which: --scores-columns score,model,segment or model,segment,score"
        raise DataError(text, file=columns.path, line=columns.line(row), remedy=remedy)


def write_columns(path: str | Path, trials: Trials, columns: Sequence[Sequence[str]]) -> None:
    """Write lines of columns that belong to trials, whole or not at all. Errors as for trials."""
    _check_writable(*trials.model_ids, *trials.segment_ids, *{field for column in columns for field in column})
    _write_pieces(Path(path), ("".join(f"{line}\n" for line in map(" ".join, zip(*columns, strict=True))),))


def _check_writable(*ids: str) -> None:
    torn = next((name for name in ids if _UNWRITABLE.search(name)), None)
    if torn is not None:
        remedy = "write HDF5 instead, or rename it"
        raise DataError(f"id {torn!r} holds white space or other bytes that a text list cannot hold", remedy=remedy)


def _write(path: str | Path, trials: Trials, third: Callable[[slice], Iterable[str]] | None) -> None:
    _check_writable(*trials.model_ids, *trials.segment_ids)
    pieces = (_lines(trials, slice(start, start + _LINES_PER_WRITE), third) for start in _starts(trials))
    _write_pieces(Path(path), pieces)


def _write_pieces(path: Path, pieces: Iterable[str]) -> None:
    if path.suffix.lower() == ".gz":
        write_bytes(path, "".join(pieces).encode())
        return
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as handle:
        for piece in pieces:
            handle.write(piece)


def _starts(trials: Trials) -> range:
    return range(0, len(trials), _LINES_PER_WRITE)


def _lines(trials: Trials, rows: slice, third: Callable[[slice], Iterable[str]] | None) -> str:
    models = trials.model_ids[trials.models[rows]].tolist()
    segments = trials.segment_ids[trials.segments[rows]].tolist()
    if third is None:
        return "".join(f"{model} {segment}\n" for model, segment in zip(models, segments, strict=True))
    triples = zip(models, segments, third(rows), strict=True)
    return "".join(f"{model} {segment} {value}\n" for model, segment, value in triples)
