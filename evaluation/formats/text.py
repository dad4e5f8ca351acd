"""Lists as text in UTF-8: a trial a line, columns between white space, or a table with a header.

=========  =====================================
Trials     ``model segment``
Key        ``model segment target|nontarget``
Scores     ``model segment score``
=========  =====================================

These columns are written; other orders are read too. Blank lines, Windows line ends and a byte order mark are
accepted. Scores are written with the fewest digits that read back to the same float64.

**The order of columns: which tools write which, how it is told from the content, and how it is forced.**

===============  =======================================  =====================================================
Name             Columns                                  Who writes it
===============  =======================================  =====================================================
``kaldi``        model segment score                      Kaldi, the VoicePrivacy toolkits, SIDEKIT, ZEBRA
``voxsrc``       score model segment                      VoxSRC, VoxCeleb_trainer
``wespeaker``    model segment score label                wespeaker
``speechbrain``  model segment label score                SpeechBrain
``bob``          claimed real segment score               bob: a target where claimed and real identity are the same
``bob5``         claimed model real segment score         bob
``kaldi``        model segment label                      keys of Kaldi, of the VoicePrivacy toolkits, SIDEKIT
``voxceleb``     label model segment                      keys of VoxCeleb and SpeechBrain
===============  =======================================  =====================================================

A layout is a tuple of such roles; ``-`` passes over a column. Labels are ``target`` and ``nontarget``, ``1`` and ``0``,
``true`` and ``false``.

**Tables with a header: CSV, or columns separated by tabs, semicolons or blanks; quotes as in CSV.**

The header says which column is what; names of NIST, bob and the usual ones are known, others can be given. Several
columns together can form an id, joined by ``:`` as NIST writes the channel of a segment.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from evaluation.trials import COLUMN_NAMES, TRUTHS, Key, Scores, Trials, factorise, find_repeat, find_rows
from spkbase.errors import DataError
from spkbase.files import atomic_path, line_at, not_text, read_text_bytes, shown, write_bytes
from spkbase.showing import one_line

Layout = tuple[str, ...]
Content = Literal["scores", "key", "trials"]
Places = dict[str, tuple[int, ...]]

ROLES = ("model", "segment", "score", "label", "claimed", "real", "-")
SCORES: dict[str, Layout] = {
    "kaldi": ("model", "segment", "score"),
    "voxsrc": ("score", "model", "segment"),
    "wespeaker": ("model", "segment", "score", "label"),
    "speechbrain": ("model", "segment", "label", "score"),
    "bob": ("claimed", "real", "segment", "score"),
    "bob5": ("claimed", "model", "real", "segment", "score"),
}
KEYS: dict[str, Layout] = {"kaldi": ("model", "segment", "label"), "voxceleb": ("label", "model", "segment")} | {
    name: SCORES[name] for name in ("wespeaker", "speechbrain", "bob", "bob5")
}
_DOTTED = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?$|[-+]?inf(inity)?$", re.IGNORECASE)
_LINES_TO_DETECT = 1000
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")  # with the line end what bytes.split() cuts at
_LARGE = 1 << 20  # bytes: from here on pandas pays, which takes 0.2 s to import and is six times as quick


@one_line
@dataclass(frozen=True)
class Choice:
    """What a user says about a file; what is not said is detected.

    Parameters
    ----------
    layout : str or sequence of str, optional
        Order of the columns of a text without header: a name of `evaluation.formats.text`, or roles.
    model, segment : sequence of str
        Columns of a table with header that form the id together, joined by ``:``.
    score, label : str, optional
        Columns of a table with header.
    formats : tuple of Format
        User-supplied formats; they are asked before those of `evaluation.formats.FORMATS`.
    distances : bool
        The scores are distances, the lower the more alike: they are turned round.
    labelled : bool
        The scores' own file holds the truth too, so that a header lacks a column where there is none for it.
    """

    layout: str | Sequence[str] | None = None
    model: Sequence[str] = ()
    segment: Sequence[str] = ()
    score: str | None = None
    label: str | None = None
    formats: tuple[Any, ...] = ()
    distances: bool = False
    labelled: bool = False


DETECT: Choice = Choice()


def is_number(token: str) -> bool:
    """Return whether a token is a number, NaN and infinite ones too; ``1_000`` is none."""
    try:
        float(token)
    except ValueError:
        return False
    return "_" not in token and token.isascii()


def forced_layout(layout: str | Sequence[str], content: Content) -> Layout:
    """Check a layout that a user gave, by name or as roles (one text with commas or blanks, or a sequence).

    Raises
    ------
    DataError
        If it is neither a name nor roles, or a role that the content needs is missing or repeated.

    Examples
    --------
    >>> forced_layout("score,model,segment,-", "scores")
    ('score', 'model', 'segment', '-')
    >>> forced_layout("voxceleb", "key")
    ('label', 'model', 'segment')
    """
    known = SCORES if content == "scores" else KEYS
    if isinstance(layout, str):
        if layout in known:
            return known[layout]
        layout = layout.replace(",", " ").split()
    roles = tuple("label" if role == "target" else role for role in layout)
    needed = {"segment", "score"} if content == "scores" else {"segment"}
    truth = content == "scores" or "label" in roles or {"claimed", "real"} <= set(roles)
    named = [role for role in roles if role != "-"]
    fits = set(roles) <= set(ROLES) and len(set(named)) == len(named) and needed <= set(roles)
    if not (fits and truth and {"model", "claimed"} & set(roles)):
        remedy = f"use one of {', '.join(known)}, or an order of {', '.join(ROLES)} such as {','.join(known['kaldi'])}"
        what = "scores" if content == "scores" else "a key"
        raise DataError(f"no order of the columns of {what}: {' '.join(roles) or '(none)'}", remedy=remedy)
    return roles


def detect_layout(rows: Sequence[Sequence[str]], content: Content, path: Path) -> Layout:
    """Detect the order of columns from the first lines.

    Kaldi's order is assumed as long as the last column could be what it has there, so that a column of numbers that are
    speakers is not taken for scores because of one bad line.

    Parameters
    ----------
    rows : sequence of sequences of str
        Tokens of some lines, equally many each: 3, 4 or 5.
    content : {"scores", "key"}
        What the file should hold.
    path : Path
        The file, for errors.

    Raises
    ------
    DataError
        If no layout has so many columns, or two fit equally well.
    """
    columns = list(zip(*rows, strict=True))
    numbers = [all(map(is_number, column)) for column in columns]
    labels = [{cell.lower() for cell in column} <= set(TRUTHS) for column in columns]
    if len(columns) == 5:
        return SCORES["bob5"]
    if len(columns) == 3:
        known, test = (SCORES, is_number) if content == "scores" else (KEYS, TRUTHS.__contains__)
        first = (numbers if content == "scores" else labels)[0] and not any(test(cell.lower()) for cell in columns[2])
        return known[("voxsrc" if content == "scores" else "voxceleb") if first else "kaldi"]
    third, last = columns[2:]
    wespeaker, speechbrain = labels[3] and numbers[2], labels[2] and numbers[3]
    if wespeaker and speechbrain:  # both columns hold numbers: a score has a point, a label has none
        wespeaker, speechbrain = (any(map(_DOTTED.match, column)) for column in (third, last))
        if wespeaker == speechbrain:
            remedy = "say which: --scores-columns model,segment,score,label or model,segment,label,score"
            raise DataError("two columns could be the score", file=path, line=1, remedy=remedy)
    return SCORES["wespeaker" if wespeaker else "speechbrain" if speechbrain else "bob"]


@one_line
@dataclass(frozen=True)
class Columns:
    """The fields of a list by column.

    Parameters
    ----------
    path : Path
        The file, for errors.
    fields : sequence of sequences of str, each of length N
        The columns.
    line : function of int to int
        Gives the line of the file, from 1, where a row stands.
    """

    path: Path
    fields: Sequence[Sequence[str]]
    line: Callable[[int], int]

    def error(self, text: str, row: int, remedy: str | None = None) -> DataError:
        """Return an error at the line of a row."""
        return DataError(text, file=self.path, line=self.line(int(row)), remedy=remedy)

    def ids(self, places: Places) -> dict[str, np.ndarray]:
        """Return the fields of `Trials`, after a check for repeated pairs."""
        tables = []
        for role in ("model" if "model" in places else "claimed", "segment"):
            parts = [self.fields[place] for place in places[role]]
            column = parts[0] if len(parts) == 1 else list(map(":".join, zip(*parts, strict=True)))
            try:
                tables.append(factorise(column))
            except DataError:
                raise self.error(f"the {role} is blank", list(column).index("")) from None
        (model_ids, models), (segment_ids, segments) = tables
        if (repeat := find_repeat(models, segments, len(segment_ids), len(model_ids))) is not None:
            pair = f"'{model_ids[models[repeat[1]]]} {segment_ids[segments[repeat[1]]]}'"
            remedy = "each pair may occur once; several columns of a table can form an id, as segment=test+chan"
            raise self.error(f"trial {pair} repeats line {self.line(repeat[0])}", repeat[1], remedy)
        return {"model_ids": model_ids, "segment_ids": segment_ids, "models": models, "segments": segments}

    def numbers(self, place: int) -> np.ndarray:
        """Return a column as float64; a DataError for what is no number, or NaN."""
        cells = self.fields[place]
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
            readable = not any("_" in cell for cell in cells) and all(map(str.isascii, cells))
        except ValueError:
            readable = False
        if not readable:
            row = next(row for row, cell in enumerate(cells) if not is_number(cell))
            raise self.error(f"expected a number as score, got {shown(cells[row].encode())}", row)
        if np.isnan(values).any():
            row = int(np.isnan(values).argmax())
            raise self.error("the score is not a number (NaN)", row, "score this trial anew")
        return values

    def truths(self, places: Places) -> np.ndarray:
        """Return whether each trial is a target: by its label, or where claimed and real identity are the same."""
        if "label" not in places:
            claimed, real = (self.fields[places[role][0]] for role in ("claimed", "real"))
            return np.fromiter(map(str.__eq__, claimed, real), bool, len(claimed))
        cells = self.fields[places["label"][0]]
        truth = {cell: TRUTHS.get(cell.lower()) for cell in set(cells)}
        if None in truth.values():
            row = next(row for row, cell in enumerate(cells) if truth[cell] is None)
            remedy = "1, 0, true and false will do too"
            remedy += "; are scores and key exchanged?" if is_number(cells[row]) else ""
            raise self.error(f"expected target or nontarget, got {shown(cells[row].encode())}", row, remedy)
        return np.fromiter(map(truth.__getitem__, cells), bool, len(cells))


def cut_columns(path: Path, raw: bytes, n_columns: int, expected: str) -> Columns:
    """Cut a text at white space into columns.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its text, without zero bytes.
    n_columns : int
        Number of columns of each line that is not blank.
    expected : str
        What a line should hold, for errors.

    Raises
    ------
    DataError
        With file and line, if a line has another number of columns or is not UTF-8; without line if there is no line.
    """
    fields = _cut_at_once(raw, n_columns) if len(raw) >= _LARGE else None
    if fields is None:
        rows = []
        for number, line in enumerate(raw.split(b"\n"), 1):
            tokens = line.split()
            if tokens and len(tokens) != n_columns:
                remedy = "columns are separated by white space; an id must not hold any"
                text = f"expected {expected}, got {len(tokens)}: {shown(line.strip())}"
                raise DataError(text, file=path, line=number, remedy=remedy)
            try:
                rows += [[token.decode() for token in tokens]] if tokens else []
            except UnicodeDecodeError:
                raise not_text(path, number, f"{shown(line.strip())} is not UTF-8") from None
        if not rows:
            raise DataError("expected trials, got an empty file", file=path, remedy="write the list again")
        fields = list(zip(*rows, strict=True))
    return Columns(path, fields, lambda row: line_of(raw, row))


def _cut_at_once(raw: bytes, n_columns: int) -> Sequence[Sequence[str]] | None:
    """Cut a large text by pandas; None if it does not read it as it stands, or a line may be too short."""
    import pandas as pd

    if raw.startswith(codecs.BOM_UTF8):  # of a second mark, which belongs to an id
        return None
    source = io.BytesIO(raw.translate(_BLANKS))
    try:
        frame = pd.read_csv(source, sep=r"\s+", header=None, dtype=object, quoting=csv.QUOTE_NONE, na_filter=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
        return None
    fields = [frame[place].tolist() for place in frame]
    return fields if len(fields) == n_columns and "" not in fields[-1] else None


def line_of(raw: bytes, row: int) -> int:
    """Return the line of a text, from 1, where a row stands: lines that are blank hold none."""
    filled = (number for number, line in enumerate(raw.split(b"\n"), 1) if line.strip())
    return next(number for place, number in enumerate(filled) if place == row)


@one_line
@dataclass(frozen=True)
class Header:
    """Where the columns of a table stand.

    Parameters
    ----------
    delimiter : str or None
        What separates columns; None for any white space.
    names : list of str
        Of the columns.
    places : dict of str to tuple of int
        Columns of each role; several of a model or segment form the id together.
    """

    delimiter: str | None
    names: list[str]
    places: Places


_DELIMITERS = ("\t", ",", ";", None)  # None: any white space
_NAMED = {"model": "model", "segment": "segment", "score": "score", "label": "target"}
_LONGEST_FIELD = 1 << 16


def find_header(path: Path, raw: bytes, content: Content, choice: Choice = DETECT) -> Header | None:
    """Return the header of a table, or None if the first line names no columns.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its text.
    content : {"scores", "key", "trials"}
        What it should hold.
    choice : Choice
        Columns that the user named.

    Raises
    ------
    DataError
        If the line is a header, or must be one because columns were named, but lacks a column.
    """
    line, _, below = raw.lstrip().partition(b"\n")
    if choice.layout is not None or not 0 < len(line) <= _LONGEST_FIELD:
        return None
    try:
        fields = {delimiter: _header_fields(line.decode("utf-8"), delimiter) for delimiter in _DELIMITERS}
    except UnicodeDecodeError:
        return None
    headers = [Header(delimiter, names, _places(names, choice)) for delimiter, names in fields.items()]
    sizes = [(len(header.places), len(header.names)) for header in headers]
    header = headers[sizes.index(max(sizes))]
    needed = ["model", "segment", *(["score"] if content == "scores" else [])]
    with_truth = content == "key" or (content == "scores" and choice.labelled)
    if with_truth and not {"claimed", "real"} <= set(header.places):
        needed.append("label")
    lacking = [role for role in needed if role not in header.places]
    if not lacking:
        return header
    second = below[: 2 * _LONGEST_FIELD].decode("utf-8", "replace").lstrip().partition("\n")[0]
    values = _header_fields(second, header.delimiter)
    above_values = len(header.names) >= 3 and len(values) == len(header.names) and any(map(is_number, values))
    known = "model" in header.places and "segment" in header.places
    words = header.delimiter is not None and not any(map(is_number, header.names)) and (known or above_values)
    if words or choice.model or choice.segment or choice.score or choice.label:
        option = "--scores-columns" if content == "scores" else "--key-columns"
        remedy = f"name it: {option} {','.join(f'{_NAMED[role]}=NAME' for role in lacking)}"
        remedy += ", or give a key" if choice.labelled and lacking == ["label"] else ""
        text = f"expected a header with a column for {' and '.join(lacking)}, got {', '.join(header.names)[:200]}"
        raise DataError(text, file=path, line=1, remedy=remedy)
    return None


def _header_fields(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return [field.strip('"') for field in line.split()]
    try:
        return [field.strip() for field in next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _places(names: Sequence[str], choice: Choice) -> Places:
    """Find the columns of each role: those that the user named, else the first known name."""
    lower = [name.lower() for name in names]
    places: Places = {}
    for role, known in COLUMN_NAMES.items():
        if (found := next((lower.index(name) for name in known if name in lower), None)) is not None:
            places[role] = (found,)
    forced = {"model": choice.model, "segment": choice.segment, "score": choice.score, "label": choice.label}
    for role, wanted in forced.items():
        if wanted:
            columns = (wanted,) if isinstance(wanted, str) else tuple(wanted)
            places.pop(role, None)
            if set(columns) <= set(names):
                places[role] = tuple(map(names.index, columns))
    return places


def table_columns(path: Path, raw: bytes, header: Header) -> Columns:
    """Cut a table below its header into columns.

    Raises
    ------
    DataError
        With file and line: a row of another length, quotes that do not close, not UTF-8; without line if there is none.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = raw[max(0, error.start - 10) : error.end + 10]
        raise not_text(path, line_at(raw, error.start), f"{shown(where)} is not UTF-8") from None
    numbered: list[tuple[int, list[str]]] = []
    source, start = io.StringIO(text, newline=""), 1
    if header.delimiter is None:
        numbered = [(number, line.split()) for number, line in enumerate(source, 1)]
    else:
        reader = csv.reader(source, delimiter=header.delimiter, strict=True)
        try:
            for row in reader:
                numbered.append((start, row))
                start = reader.line_num + 1
        except csv.Error as error:
            remedy = "close quotes, and double those within quotes"
            raise DataError(f"no line of a table: {error}", file=path, line=start, remedy=remedy) from error
    _, *numbered = [(number, row) for number, row in numbered if row and (len(row) > 1 or row[0].strip())]
    for number, row in numbered:
        if len(row) != len(header.names):
            text = f"expected {len(header.names)} columns as in the header, got {len(row)}: {' '.join(row)[:60]!r}"
            raise DataError(text, file=path, line=number)
    if not numbered:
        raise DataError("expected trials, got a header alone", file=path, remedy="write the list again")
    lines, rows = zip(*numbered, strict=True)
    return Columns(path, list(zip(*rows, strict=True)), lines.__getitem__)


def read_list(path: Path, raw: bytes, content: Content, choice: Choice, header: Header | None = None) -> Trials:
    """Read trials, a key or scores from a text, or from a table below its header.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its text, without byte order mark and zero bytes.
    content : {"scores", "key", "trials"}
        What is read.
    choice : Choice
        The order of the columns of a text, if it is to be forced.
    header : Header, optional
        Of a table; see `find_header`.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        With file and line: a wrong number of columns, a repeated pair, a score that is no number or NaN, a label that
        is neither target nor nontarget (nor 1, 0, true, false), an empty file, not UTF-8.
    """
    n_columns, known = len(raw.lstrip().partition(b"\n")[0].split()), SCORES if content == "scores" else KEYS
    layout: Layout = ("model", "segment")
    if header is not None:
        columns = table_columns(path, raw, header)
    elif content == "trials" and n_columns != 3:
        columns = cut_columns(path, raw, 2, "2 columns (model segment)")
    elif choice.layout is not None and content != "trials":
        layout = forced_layout(choice.layout, content)
        columns = cut_columns(path, raw, len(layout), f"{len(layout)} columns ({' '.join(layout)})")
    else:
        n_columns = n_columns if n_columns in (4, 5) else 3
        orders = ", or ".join(" ".join(layout) for layout in known.values() if len(layout) == n_columns)
        expected = f"{n_columns} columns ({orders.replace('label', 'target|nontarget')})"
        columns = cut_columns(path, raw, n_columns, expected)
        rows = list(zip(*(field[:_LINES_TO_DETECT] for field in columns.fields), strict=True))
        layout = detect_layout(rows, content, path)
    by_order: Places = {role: (place,) for place, role in enumerate(layout)}
    places = by_order if header is None else header.places
    if content == "scores":
        values = columns.numbers(places["score"][0])
        ids = columns.ids(places)
        if header is None and layout[0] == "score" and choice.layout is None:
            _check_not_kaldi(columns, ids["segment_ids"])
        return Scores.trusted(**ids, values=values)
    ids = columns.ids(places)
    is_key = content == "key" or (header is None and "label" in places)
    key = Key.trusted(**ids, is_target=columns.truths(places)) if is_key else None
    return key if key is not None and content == "key" else Trials.trusted(**ids)


def _check_not_kaldi(columns: Columns, segment_ids: np.ndarray) -> None:
    """Refuse a file that begins with lines of scores first, and goes on with lines of scores last."""
    if (strange := next(filter(is_number, segment_ids), None)) is not None:
        text = f"the score is first in the lines before, but here it could be the last: {strange!r}"
        remedy = "say which: --scores-columns score,model,segment or model,segment,score"
        raise columns.error(text, list(columns.fields[2]).index(strange), remedy)


def read_text_key(path: str | Path, choice: Choice = DETECT) -> Key:
    """Read a key from a text without header; see `read_list`."""
    return cast(Key, read_list(Path(path), read_text_bytes(path), "key", choice))


_LINES_PER_WRITE = 1 << 16
_UNWRITABLE = re.compile("[ \t\n\r\x0b\x0c\0]|^\ufeff|[\ud800-\udfff]")


def write_text_list(
    path: str | Path,
    trials: Trials,
    layout: str = "kaldi",
    *,
    key: Key | None = None,
    speakers: Mapping[str, str] | None = None,
) -> None:
    """Write trials, a key or scores as text, whole or not at all; trial types have no place in it.

    Parameters
    ----------
    path : path
        What is written.
    trials : Trials, Key or Scores
        Trials have one order.
    layout : str
        Order of the columns: a name of this module, or roles.
    key : Key, optional
        The truth of scores, where the order holds it.
    speakers : mapping of str to str, optional
        Speaker of each segment, where the order holds who really speaks.

    Raises
    ------
    DataError
        If the order needs what is not given, an id holds white space, which would tear the line, or the file cannot be
        written.
    """
    content: Content = "scores" if isinstance(trials, Scores) else "key"
    is_bare = not isinstance(trials, Scores | Key)
    roles = ("model", "segment") if is_bare else forced_layout(layout, content)
    if "-" in roles:
        raise DataError(f"cannot write the order {' '.join(roles)}: '-' passes over a column when reading only")
    models, segments = trials.model_ids[trials.models], trials.segment_ids[trials.segments]
    columns = {"model": models, "segment": segments, "claimed": models}
    if isinstance(trials, Scores):
        columns["score"] = trials.values
    elif "score" in roles:
        raise DataError(f"the order {' '.join(roles)} holds scores, a key has none", remedy="convert the scores")
    if "label" in roles or "real" in roles:
        truth = trials if isinstance(trials, Key) else key
        if truth is None:
            raise DataError("this order holds the truth of each trial", remedy="give the key")
        rows = find_rows(trials, truth)
        if (absent := np.flatnonzero(rows < 0)).size:
            name = f"{models[absent[0]]} {segments[absent[0]]}"
            raise DataError(f"{len(absent)} trials are not in the key, such as '{name}'", remedy="give their key")
        is_target = truth.is_target[rows]
        # who writes 1 and 0 where the others write target and nontarget
        words = ("1", "0") if layout in ("speechbrain", "voxceleb") else ("target", "nontarget")
        columns["label"] = np.where(is_target, *words)
        if "real" in roles:
            columns["real"] = _real_speakers(models, segments, is_target, speakers)
    ids = (*trials.model_ids, *trials.segment_ids, *set(columns.get("real", ())))
    if (torn := next(filter(_UNWRITABLE.search, ids), None)) is not None:
        text = f"id {torn!r} holds white space or other bytes that a text list cannot hold"
        raise DataError(text, remedy="write HDF5 instead, or rename it")

    def lines(start: int) -> str:
        some = (columns[role][start : start + _LINES_PER_WRITE].tolist() for role in roles)
        return "".join(f"{line}\n" for line in map(" ".join, zip(*(map(str, part) for part in some), strict=True)))

    pieces = map(lines, range(0, len(trials), _LINES_PER_WRITE))
    if Path(path).suffix.lower() == ".gz":
        write_bytes(path, "".join(pieces).encode())
    else:
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as handle:
            handle.writelines(pieces)


def _real_speakers(
    models: np.ndarray, segments: np.ndarray, is_target: np.ndarray, speakers: Mapping[str, str] | None
) -> np.ndarray:
    """Who really speaks: the model in target trials, else the segment's speaker."""
    if speakers is None and not is_target.all():
        text = "this order holds who really speaks in each segment"
        raise DataError(text, remedy="give the speakers of the segments")
    real = models.copy()
    for row in np.flatnonzero(~is_target).tolist():
        real[row] = (speakers or {}).get(segments[row])
        if real[row] is None:
            raise DataError(f"the speaker of segment {segments[row]!r} is not known", remedy="add it to the speakers")
        if real[row] == models[row]:
            text = f"'{models[row]} {segments[row]}' is a nontarget trial, but the speaker of the segment is the model"
            raise DataError(text, remedy="check the speakers: bob takes equal identities for a target")
    return real


def write_table(path: str | Path, trials: Trials, *, delimiter: str = ",") -> None:
    """Write trials, a key or scores as a table with a header."""
    columns = trials.to_columns()
    if isinstance(trials, Key):
        columns["target"] = np.where(trials.is_target, "target", "nontarget")
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    try:
        write_bytes(path, text.getvalue().encode("utf-8"))
    except UnicodeEncodeError as error:
        raise DataError(f"id {error.object[:60]!r} cannot be written as UTF-8", remedy="rename it") from error
