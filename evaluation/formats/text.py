"""Lists as text in UTF-8: a trial a line, columns between white space, or a table with a header.

=========  =====================================
Trials     ``model segment``
Key        ``model segment target|nontarget``
Scores     ``model segment score``
=========  =====================================

These columns are written; other orders are read too. Blank lines, Windows line ends and a byte order mark are
accepted. Scores are written with the fewest digits that read back to the same float64.

Tools write the columns in different orders, which are detected from the content or can be forced:

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
``appended``     label model segment score                a list of VoxCeleb with scores appended
===============  =======================================  =====================================================

A layout is a tuple of such roles; ``-`` skips a column. Labels are ``target`` and ``nontarget``, ``1`` and ``0``
or ``-1``, ``true`` and ``false``, ``tar`` or ``tgt`` and ``imp``, ``genuine`` and ``impostor``, ``same`` and
``different``, and the other pairs of `evaluation.trials.TRUTHS`. Two columns are a label and a score
without ids, for which there are no intervals over speakers.

Tables have a header and are CSV, or have columns separated by tabs, semicolons or blanks, with quotes as in CSV. The
header names the columns; names of NIST, bob and the usual ones are known, others can be given. Several
columns together can form an id, joined by ``:`` as NIST writes the channel of a segment.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluation.trials import (
    COLUMN_NAMES,
    TRUTHS,
    Key,
    Missing,
    RepeatedTrialError,
    Scores,
    TrialError,
    Trials,
    cut_lines,
    delimiter_of,
    find_rows,
    is_number,
    known_columns,
    truth_of,
)
from spkbase.errors import DataError, few
from spkbase.files import check_data, check_text, inner_suffix, read_bytes, shown, without_formula, write_bytes
from spkbase.showing import one_line

Layout = tuple[str, ...]
Kind = Literal["scores", "key", "trials"]

ROLES = ("model", "segment", "score", "label", "claimed", "real", "-")
SCORES: dict[str, Layout] = {
    "kaldi": ("model", "segment", "score"),
    "voxsrc": ("score", "model", "segment"),
    "wespeaker": ("model", "segment", "score", "label"),
    "speechbrain": ("model", "segment", "label", "score"),
    "bob": ("claimed", "real", "segment", "score"),
    "bob5": ("claimed", "model", "real", "segment", "score"),
    "appended": ("label", "model", "segment", "score"),
}
KEYS: dict[str, Layout] = {"kaldi": ("model", "segment", "label"), "voxceleb": ("label", "model", "segment")} | {
    name: SCORES[name] for name in ("wespeaker", "speechbrain", "bob", "bob5", "appended")
}
_DOTTED = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?$|[-+]?inf(inity)?$", re.IGNORECASE)
_LINES_TO_DETECT = 1000
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")  # with the line end what bytes.split() cuts at
_OF_WINDOWS = re.compile(r"[-+]?(1\.#(inf|ind|[qs]nan)\d*|nan\((ind|snan)\))", re.IGNORECASE)
_REMARK = re.compile(rb"(?P<before>\s*)(?P<line>#[ \t][^\n]*)\n\s*(?P<next>[^\n]+)")
_FORMULA = re.compile(r"'+[-=+@\t\r]")  # as `write_table` writes it, behind an apostrophe
_LARGE = 1 << 20  # bytes: from here on pandas pays, which takes 0.2 s to import and is six times as quick

_UNWRITABLE = re.compile("[ \t\n\r\x0b\x0c\0]|^\ufeff|[\ud800-\udfff]")


@one_line
@dataclass(frozen=True)
class Choice:
    """What a user specifies about a file; everything else is detected.

    Parameters
    ----------
    layout : str or sequence of str, optional
        Order of the columns of a text without header: a name of `evaluation.formats.text`, or roles.
    model, segment : sequence of str
        Columns of a table with header that form the id together, joined by ``:``.
    score, label : str, optional
        Columns of a table with header.
    formats : tuple of Format
        User-supplied formats; they are tried before those of `evaluation.formats.FORMATS`.
    distances : bool
        The scores are distances, the lower the more similar: they are negated.
    labelled : bool
        The file of scores holds the truth too, so that a header without a column for it is an error.
    duplicates : {"error", "first"}
        A pair may be repeated with the same score and label, as in some lists of VoxCeleb; an error by default.
    in_order : bool
        The file of scores has one score a line, in the order of the key.
    missing : {"error", "drop", "reject"}
        What to do with scores that are NaN; see `evaluation.trials.Scores.acquired`.
    llr_base : float
        The base of log-likelihood ratios: those of base 10, as in forensic science, are multiplied by log(10), so that
        they are natural ones.
    """

    layout: str | Sequence[str] | None = None
    model: Sequence[str] = ()
    segment: Sequence[str] = ()
    score: str | None = None
    label: str | None = None
    formats: tuple[Any, ...] = ()
    distances: bool = False
    labelled: bool = False
    duplicates: Literal["error", "first"] = "error"
    in_order: bool = False
    missing: Missing = "error"
    llr_base: float = math.e

    @property
    def named(self) -> dict[str, list[str]]:
        """Return the columns that were named, by role."""
        given = {"model": self.model, "segment": self.segment, "score": self.score, "label": self.label}
        return {role: [name] if isinstance(name, str) else list(name) for role, name in given.items() if name}

    @property
    def failures(self) -> dict[str, Any]:
        """Return the arguments of `Scores.acquired`; distances are negated later, so their rejections are infinite."""
        return {"missing": self.missing, "rejected": math.inf if self.distances else -math.inf}


DETECT: Choice = Choice()


@dataclass(frozen=True)
class ListFile:
    """A file that is to be read.

    Parameters
    ----------
    path : Path
        Where it is.
    kind : {"scores", "key", "trials"}
        What is expected in it.
    choice : Choice
        What the user specifies about it.
    """

    path: Path
    kind: Kind
    choice: Choice = DETECT

    @cached_property
    def head(self) -> bytes:
        """Its first 2056 bytes, decompressed where it is gzip; a pipe is read whole, once."""
        with suppress(OSError):
            if self.path.is_file():
                with self.path.open("rb") as handle:
                    head = check_data(self.path, handle.read(2056))
                if not head.startswith(b"\x1f\x8b"):
                    return head
        return self.content[:2056]

    @cached_property
    def content(self) -> bytes:
        """All of its bytes, decompressed where it is gzip; a DataError if it cannot be read."""
        return read_bytes(self.path)

    @cached_property
    def text(self) -> bytes:
        """Its bytes without a byte order mark and remarks above the trials, lines ``# made by ...``, whose ends stay;
        a DataError if they hold zero bytes, which no text does.
        """
        raw = check_text(self.path, self.content)
        while (remark := _REMARK.match(raw)) and not self._names_columns(remark["line"], remark["next"]):
            raw = remark["before"] + raw[remark.end("line") :]
        return raw

    def _names_columns(self, line: bytes, following: bytes) -> bool:
        """Return whether a line that begins with # may name the columns of the line below it."""
        _, (names, cells) = _cut([line.decode("utf-8", "replace"), following.decode("utf-8", "replace")])
        known = [role for role in COLUMN_NAMES if known_columns(role, names)]
        return len(names) == len(cells) and (bool(self.choice.named) or len(known) > 1)

    def lines(self) -> list[str]:
        """Return its lines as text in UTF-8; a DataError if it is none."""
        try:
            return self.text.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError("expected text in UTF-8", file=self.path, remedy="save it as UTF-8") from error


@one_line
@dataclass(frozen=True)
class Columns:
    """Where the columns of a text are.

    Parameters
    ----------
    places : dict of str to sequence of int
        Columns of each role; several of a model or segment form the id together.
    count : int
        Number of columns of each line.
    expected : str
        What a line should hold, for errors.
    delimiter : str or None
        What separates columns; None for any white space.
    header : int
        Lines before the trials, 0 or 1.
    """

    places: Mapping[str, Sequence[int]]
    count: int
    expected: str
    delimiter: str | None = None
    header: int = 0


def is_score(cell: str) -> bool:
    """Return whether a cell is a number, also as the C library of Windows writes NaN and infinity."""
    return is_number(cell) or _OF_WINDOWS.fullmatch(cell) is not None


def as_score(cell: str) -> float:
    """Return the number that `is_score` recognised.

    Examples
    --------
    >>> as_score("1e-3"), as_score("-1.#IND"), as_score("-1.#INF00"), as_score("-nan(ind)")
    (0.001, nan, -inf, nan)
    """
    if _OF_WINDOWS.fullmatch(cell) is None:
        return float(cell)
    size = math.inf if "inf" in cell.lower() else math.nan
    return math.copysign(size, -1.0 if cell.startswith("-") else 1.0)


def forced_layout(layout: str | Sequence[str], content: Kind) -> Layout:
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
    named = [role for role in roles if role != "-"]
    has_ids = "segment" in roles and bool({"model", "claimed"} & set(roles))
    without_ids = set(named) == {"label", "score"}
    truth = content == "scores" or "label" in roles or {"claimed", "real"} <= set(roles)
    fits = set(roles) <= set(ROLES) and len(set(named)) == len(named) and (content == "key" or "score" in roles)
    if not (fits and truth and (has_ids or without_ids)):
        remedy = f"use one of {', '.join(known)}, or an order of {', '.join(ROLES)} such as {','.join(known['kaldi'])}"
        what = "scores" if content == "scores" else "a key"
        raise DataError(f"no order of the columns of {what}: {' '.join(roles) or '(none)'}", remedy=remedy)
    return roles


def detect_layout(rows: Sequence[Sequence[str]], content: Kind, path: Path) -> Layout:
    """Detect the order of columns from the first lines.

    Kaldi's order is assumed as long as the last column fits it, so that one bad line does not turn a column of speakers
    with numbers as names into scores.

    Parameters
    ----------
    rows : sequence of sequences of str
        Tokens of some lines, equally many each: 2 to 5.
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
    numbers = [all(map(is_score, column)) for column in columns]
    labels = [{cell.lower() for cell in column} <= set(TRUTHS) for column in columns]
    if len(columns) == 5:
        return SCORES["bob5"]
    if len(columns) == 2:
        return ("score", "label") if labels[1] and not labels[0] else ("label", "score")
    if len(columns) == 3:
        known, test = (SCORES, is_score) if content == "scores" else (KEYS, TRUTHS.__contains__)
        first = (numbers if content == "scores" else labels)[0] and not any(test(cell.lower()) for cell in columns[2])
        return known[("voxsrc" if content == "scores" else "voxceleb") if first else "kaldi"]
    third, last = columns[2:]
    if content == "key" and labels[3] and not numbers[2]:  # ASVspoof: the third is the kind of speech
        return ("model", "segment", "-", "label")
    wespeaker, speechbrain = labels[3] and numbers[2], labels[2] and numbers[3]
    if wespeaker and speechbrain:  # both columns hold numbers: a score has a point, a label has none
        wespeaker, speechbrain = (any(map(_DOTTED.match, column)) for column in (third, last))
        if wespeaker == speechbrain:
            orders = (
                f"{content}_columns=Choice(layout='{','.join(SCORES[name])}')" for name in ("wespeaker", "speechbrain")
            )
            remedy = f"choose one: {' or '.join(orders)}"
            raise DataError("two columns could be the score", file=path, line=1, remedy=remedy)
    others = "appended" if labels[0] and numbers[3] else "bob"
    return SCORES["wespeaker" if wespeaker else "speechbrain" if speechbrain else others]


def find_columns(file: ListFile) -> Columns:
    """Find the columns of a text by its header, by what the user specifies, or by its first lines.

    Raises
    ------
    DataError
        If the first line is a header, or must be one because columns were named, but lacks a column; if the order is
        not known, or two fit equally well.
    """
    path, raw, content, choice = file.path, file.text, file.kind, file.choice
    beginning = raw.lstrip().split(b"\n", _LINES_TO_DETECT)[:_LINES_TO_DETECT]
    lines = [[word.decode("utf-8", "replace") for word in line.split()] for line in beginning]
    if choice.layout is None and (columns := _columns_of_header(path, raw, content, choice)):
        return columns
    count = len(lines[0])
    if content == "trials" and count != 3:
        layout: Layout = ("model", "segment")
        orders = "model segment"
    elif content != "trials" and choice.layout is not None:
        layout = forced_layout(choice.layout, content)
        orders = " ".join(layout)
    else:
        pairs = zip(*(line for line in lines if len(line) == count == 2), strict=True)
        without_ids = any({cell.lower() for cell in cells} <= set(TRUTHS) for cells in pairs)
        count = count if count in (4, 5) or without_ids else 3
        known = [one for one in (SCORES if content == "scores" else KEYS).values() if len(one) == count]
        rows = [line for line in lines if len(line) == count]
        layout = detect_layout(rows, content, path) if rows else known[0]
        orders = ", or ".join(map(" ".join, known)).replace("label", "target|nontarget")
    places = {role: (place,) for place, role in enumerate(layout)}
    return Columns(places, len(layout), f"{len(layout)} columns ({orders})")


def read_list(file: ListFile) -> Trials:
    """Read trials, a key or scores from a text, or from a table below its header.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        With file and line: a wrong number of columns, a repeated pair, a score that is no number or NaN, a label that
        is neither target nor nontarget (nor 1, 0, true, false), an empty file, not UTF-8.
    """
    columns = find_columns(file)
    path, raw, choice = file.path, file.text, file.choice
    if len(raw) >= _LARGE and choice.duplicates == "error":
        with suppress(ValueError, TypeError):  # what is wrong is found below, with its line
            return _list_of(_parsed(raw, columns), file, columns)
    lines = cut_lines(path, raw, columns.delimiter)[columns.header :]
    for line, row in lines:
        if len(row) != columns.count:
            text = f"expected {columns.expected}, got {len(row)}: {shown(' '.join(row).encode())}"
            remedy = None if columns.header else "columns are separated by white space; an id must not hold any"
            if len(row) == 1:
                remedy = "in_order=True reads one score a line in the order of the key"
            if len(row) == 1 and delimiter_of(row[0]):
                remedy = "a table begins with the names of its columns, such as model,segment,score,label"
            raise DataError(text, file=path, line=line, remedy=remedy)
    if not lines:
        got = "a header alone" if columns.header else "an empty file"
        raise DataError(f"expected trials, got {got}", file=path, remedy="write the list again")
    if choice.duplicates == "first" and "segment" in columns.places:
        ids = [place for role in ("model", "claimed", "segment") for place in columns.places.get(role, ())]
        values = [place for role in ("score", "label", "real") for place in columns.places.get(role, ())]
        kept: dict[tuple[str, ...], Any] = {}
        unlike = []
        for line, row in lines:
            first, before = kept.setdefault(tuple(row[place] for place in ids), (line, row))
            unlike += [(line, first)] if any(row[place] != before[place] for place in values) else []
        if unlike:
            text = f"{len(unlike)} lines repeat a pair with another score or label, such as that of line {unlike[0][1]}"
            raise DataError(text, file=path, line=unlike[0][0], remedy="keep the right line of each pair")
        lines = list(kept.values())
    cells = list(zip(*(row for _, row in lines), strict=True))
    try:
        return _list_of(cells, file, columns)
    except TrialError as error:
        first, *others = [lines[row][0] for row in error.rows]
        text, remedy = error.text, error.remedy
        if others:
            text += f"; also in line {few(others)}"
        if isinstance(error, RepeatedTrialError) and len({tuple(lines[row][1]) for row in error.rows}) == 1:
            remedy = f"{remedy}; duplicates='first' reads the first line alone"
        raise error.changed(text, file=path, line=first, remedy=remedy) from None


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
        Labels of the scores, where the order has a column for them.
    speakers : mapping of str to str, optional
        Speaker of each segment, where the order has a column of real speakers.

    Raises
    ------
    DataError
        If the order needs what is not given, an id holds white space, which would break the line, or the file cannot
        be written.
    """
    roles: Layout = ("model", "segment")
    if isinstance(trials, Scores | Key):
        roles = forced_layout(layout, "scores" if isinstance(trials, Scores) else "key")
    if "-" in roles:
        raise DataError(f"cannot write the order {' '.join(roles)}: '-' skips a column when reading only")
    models, segments = trials.model_ids[trials.models], trials.segment_ids[trials.segments]
    columns = {"model": models, "segment": segments, "claimed": models}
    if isinstance(trials, Scores):
        columns["score"] = trials.values
    elif "score" in roles:
        raise DataError(f"the order {' '.join(roles)} holds scores, a key has none", remedy="convert the scores")
    if {"label", "real"} & set(roles):
        truth = trials if isinstance(trials, Key) else key
        if truth is None:
            raise DataError("this order has a column of labels", remedy="give the key")
        rows = find_rows(trials, truth)
        if (rows < 0).any():
            text = (
                f"{int((rows < 0).sum())} trials are not in the key, such as {trials.named(np.flatnonzero(rows < 0))}"
            )
            raise DataError(text, remedy="give their key")
        is_target = truth.is_target[rows]
        # the orders with 1 and 0 in place of target and nontarget
        words = ("1", "0") if layout in ("speechbrain", "voxceleb") else ("target", "nontarget")
        columns["label"] = np.where(is_target, *words)
        if "real" in roles:
            columns["real"] = _real_speakers(models, segments, is_target, speakers or {})
    ids = (*trials.model_ids, *trials.segment_ids, *set(columns.get("real", ())))
    if (broken := next(filter(_UNWRITABLE.search, ids), None)) is not None:
        text = f"id {broken!r} holds white space or other bytes that a text list cannot hold"
        raise DataError(text, remedy="write HDF5 instead, or rename it")
    cells = [map(str, columns[role].tolist()) for role in roles]
    write_bytes(path, "".join(f"{line}\n" for line in map(" ".join, zip(*cells, strict=True))).encode())


def write_table(path: str | Path, trials: Trials) -> None:
    """Write trials, a key or scores as a table with a header; an id that looks like a formula gets an apostrophe."""
    ids: Any = {name: [*map(without_formula, getattr(trials, name))] for name in ("model_ids", "segment_ids")}
    frame = replace(trials, **ids).to_dataframe()
    if isinstance(trials, Key):
        frame["target"] = np.where(trials.is_target, "target", "nontarget")
    delimiter = "\t" if inner_suffix(path) == ".tsv" else ","
    write_bytes(path, frame.to_csv(index=False, sep=delimiter, lineterminator="\n").encode())


def _columns_of_header(path: Path, raw: bytes, content: Kind, choice: Choice) -> Columns | None:
    """Return the columns that the first line names, or None if it names none."""
    lines = raw[: 1 << 16].decode("utf-8", "replace").lstrip().splitlines()[:2]
    if not lines:
        return None
    delimiter, (names, *values) = _cut(lines)
    titles = {role: known_columns(role, names) for role in COLUMN_NAMES} | choice.named
    places: dict[str, Sequence[int]] = {}
    for role, known in titles.items():
        used = known if role in choice.named else known[:1]
        if used and set(used) <= set(names):
            places[role] = [names.index(name) for name in used]
    has_ids = bool({"model", "segment"} & set(places))
    if "score" in places and not (has_ids or choice.named or _is_number_below(places["score"][0], values)):
        del places["score"]  # an id such as "value"
    side = "scores" if content == "scores" else "key"
    needed = _needed_roles(places, content, choice)
    lacking = [role for role in needed if role not in places]
    if not lacking:
        for role in needed:
            several = [name for name in names if name in titles[role]]
            if len(several) > len(places[role]):
                text = f"two columns could be the {role}: {' and '.join(several)}"
                remedy = f"name one: {side}_columns=Choice({role}='{several[0]}'); no two may have the same name"
                raise DataError(text, file=path, line=1, remedy=remedy)
        return Columns(places, len(names), f"{len(names)} columns as in the header", delimiter, header=1)
    # words above numbers, or words of which two are known, are a header too
    above_numbers = values and len(names) == len(values[0]) >= 3 and any(map(is_score, values[0]))
    is_header = (
        delimiter is not None
        and not any(map(is_score, names))
        and ({"model", "segment"} <= set(places) or above_numbers)
    )
    if not (is_header or choice.named):
        return None
    names_of = ", ".join(f"{role}='NAME'" for role in lacking)
    remedy = f"name it: {side}_columns=Choice({names_of})"
    remedy += ", or give a key" if choice.labelled and lacking == ["label"] else ""
    text = f"expected a header with a column for {' and '.join(lacking)}, got {', '.join(names)[:200]}"
    raise DataError(text, file=path, line=1, remedy=remedy)


def _is_number_below(column: int, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of the rows below a header has a number in a column."""
    return bool(rows) and column < len(rows[0]) and is_score(rows[0][column])


def _cut(lines: Sequence[str]) -> tuple[str | None, list[list[str]]]:
    """Return the delimiter of a header, which may begin with #, and the cells of it and the lines below."""
    header = lines[0].lstrip("# ")
    delimiter = delimiter_of(header)
    if delimiter is None:
        return None, [[cell.strip('"') for cell in line.split()] for line in (header, *lines[1:])]
    rows = csv.reader([header, *lines[1:]], delimiter=delimiter)
    return delimiter, [[cell.strip() for cell in row] for row in rows]


def _needed_roles(places: Mapping[str, Sequence[int]], content: Kind, choice: Choice) -> list[str]:
    """Return the roles of columns that a table must have; with scores and labels in it, ids may be missing."""
    needs_labels = content == "key" or (content == "scores" and choice.labelled)
    has_ids = bool({"model", "segment"} & set(places))
    needed = [] if needs_labels and not has_ids and {"score", "label"} <= set(places) else ["model", "segment"]
    if content == "scores":
        needed.append("score")
    if needs_labels and not {"claimed", "real"} <= set(places):
        needed.append("label")
    return needed


def _parsed(raw: bytes, columns: Columns) -> list[Any]:
    """Cut a large text by pandas: ids as categories; a ValueError if a line is too long or short."""
    import pandas as pd

    ids = {place for role, places in columns.places.items() if role != "score" for place in places}
    options: dict[str, Any] = {"sep": columns.delimiter}
    if columns.delimiter is None:
        raw = raw.translate(_BLANKS)
        options = {"sep": r"\s+", "quoting": csv.QUOTE_NONE}
    for kind in ("category", str):  # pandas makes numbers of categories of digits, which are ids here
        dtypes: Any = dict.fromkeys(range(columns.count), str) | dict.fromkeys(ids, kind)
        source = io.BytesIO(raw.lstrip())
        frame = pd.read_csv(source, header=None, skiprows=columns.header, dtype=dtypes, na_filter=False, **options)
        if len(frame.columns) != columns.count:
            raise ValueError
        if kind is str or all(frame[place].cat.categories.dtype.kind not in "iufb" for place in ids):
            break
    cells = [frame[place].astype("category").array if place in ids else frame[place].tolist() for place in frame]
    if "" in cells[-1]:
        raise ValueError
    return cells


def _list_of(cells: Sequence[Any], file: ListFile, columns: Columns) -> Trials:
    """Build a list of the cells of each column."""
    content = file.kind

    def column(role: str) -> Any:
        parts = [cells[place] for place in columns.places[role]]
        parts = [*map(_plain, parts)] if columns.header and role != "score" else parts
        return parts[0] if len(parts) == 1 else list(map(":".join, zip(*parts, strict=True)))

    if "segment" in columns.places:
        ids = column("model" if "model" in columns.places else "claimed"), column("segment")
    else:
        rows = range(1, len(cells[0]) + 1)
        ids = [f"line-{row}" for row in rows], ["unknown"] * len(rows)  # so that intervals over speakers are refused
    if content == "scores":
        return Scores.from_ids(*ids, _numbers(column("score")), **file.choice.failures)
    if content == "trials" and (columns.header or "label" not in columns.places):
        return Trials.from_ids(*ids)
    if "label" in columns.places:
        is_target = truth_of(column("label"))
    else:
        is_target = np.asarray(column("claimed"), object) == np.asarray(column("real"), object)
    key = Key.from_ids(*ids, is_target)
    return key if content == "key" else key.trials()


def _plain(cells: Any) -> Any:
    """Return the cells of a table without the apostrophe that `without_formula` adds."""
    if hasattr(cells, "categories"):
        return cells.rename_categories(_plain(cells.categories.tolist()))
    return [cell[1:] if _FORMULA.match(cell) else cell for cell in cells]


def _numbers(cells: Sequence[str]) -> np.ndarray:
    together = "".join(cells)
    if together.isascii() and "_" not in together:
        with suppress(ValueError):
            numbers = np.fromiter(map(float, cells), np.float64, len(cells))
            if all(is_score(cells[row]) for row in np.flatnonzero(np.isinf(numbers)).tolist()):
                return numbers
    bad = [row for row, cell in enumerate(cells) if not is_score(cell)]
    if not bad:
        return np.array([*map(as_score, cells)])
    remedy = "write numbers such as 0.5 or 1e-3, up to 1.8e308"
    raise TrialError(f"expected a number as score, got {shown(cells[bad[0]].encode())}", bad, remedy=remedy)


def _real_speakers(
    models: np.ndarray, segments: np.ndarray, is_target: np.ndarray, speakers: Mapping[str, str]
) -> np.ndarray:
    """Return the real speakers: the model in target trials, else the segment's speaker."""
    real = models.copy()
    if unknown := sorted({*segments[~is_target]} - speakers.keys()):
        text = f"this order needs the real speakers; unknown are those of {len(unknown)} segments: {few(unknown, repr)}"
        raise DataError(text, remedy="give the speakers of the segments")
    real[~is_target] = [speakers[segment] for segment in segments[~is_target]]
    if (wrong := np.flatnonzero(~is_target & (real == models))).size:
        row = wrong[0]
        text = f"'{models[row]} {segments[row]}' is a nontarget trial, but the speaker of the segment is the model"
        raise DataError(text, remedy="check the speakers: for bob, equal identities are a target trial")
    return real
