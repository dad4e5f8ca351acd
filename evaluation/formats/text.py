"""Lists as UTF-8 text: one trial per line, in columns separated by white space, or a table with a header.

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
header names the columns; the names of NIST, of bob and other usual ones are known, and further ones can be given.
Several columns together can form an id, joined by ``:`` as NIST writes the channel of a segment.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
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
from spkbase.errors import DataError, counted, few
from spkbase.files import (
    check_data,
    check_text,
    inner_suffix,
    read_bytes,
    shown,
    without_formula,
    write_bytes,
)
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
KEYS: dict[str, Layout] = {
    "kaldi": ("model", "segment", "label"),
    "voxceleb": ("label", "model", "segment"),
} | {name: SCORES[name] for name in ("wespeaker", "speechbrain", "bob", "bob5", "appended")}
# the labels of these layouts, in place of target and nontarget
_WORDS = {"speechbrain": ("1", "0"), "voxceleb": ("1", "0")}
_DOTTED = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?$|[-+]?inf(inity)?$", re.IGNORECASE)
_LINES_TO_DETECT = 1000
# together with the line end, the separators of bytes.split()
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")
_OF_WINDOWS = re.compile(r"[-+]?(1\.#(inf|ind|[qs]nan)\d*|nan\((ind|snan)\))", re.IGNORECASE)
_REMARK = re.compile(rb"(?P<before>\s*)(?P<line>#[ \t][^\r\n]*)[\r\n]\s*(?P<next>[^\r\n]+)")
_APOSTROPHE = re.compile(r"\A'(?='*[-=+@\t\r])")  # `write_table` writes it before a formula
# size in bytes above which pandas, six times faster, is worth the 0.2 s of its import
_LARGE = 1 << 20

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
        The file of scores has one score per line, in the order of the key.
    missing : {"error", "drop", "reject"}
        What to do with scores that are NaN; see `evaluation.trials.Scores.acquired`.
    llr_base : float
        The base of log-likelihood ratios: base 10, as in forensic science, is multiplied by log(10), so that
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
        """Return the named columns by role."""
        columns = {}
        for role in ("model", "segment", "score", "label"):
            name = getattr(self, role)
            if name:
                columns[role] = [name] if isinstance(name, str) else list(name)
        return columns

    @property
    def failures(self) -> dict[str, Any]:
        """Return the arguments of `Scores.acquired`; distances are negated later, so their rejections are +inf."""
        rejected = math.inf if self.distances else -math.inf
        return {"missing": self.missing, "rejected": rejected}


DETECT: Choice = Choice()


@dataclass(frozen=True)
class ListFile:
    """A file to be read.

    Parameters
    ----------
    path : Path
        Path of the file.
    kind : {"scores", "key", "trials"}
        Expected content.
    choice : Choice
        Properties of the file that the user specifies.
    """

    path: Path
    kind: Kind
    choice: Choice = DETECT

    @cached_property
    def head(self) -> bytes:
        """The first 2056 bytes, decompressed; a pipe is read once, as a whole."""
        with suppress(OSError):
            if self.path.is_file():
                with self.path.open("rb") as handle:
                    head = check_data(self.path, handle.read(2056))
                if not head.startswith(b"\x1f\x8b"):
                    return head
        return self.content[:2056]

    @cached_property
    def content(self) -> bytes:
        """All bytes, decompressed; a DataError if the file cannot be read."""
        return read_bytes(self.path)

    @cached_property
    def text(self) -> bytes:
        """Its bytes without a byte order mark and comments above the trials (``# made by ...``), whose line ends stay;
        a DataError if they hold zero bytes, which no text does.
        """
        raw = check_text(self.path, self.content)
        remark = _REMARK.match(raw)
        while remark and not self._names_columns(remark["line"], remark["next"]):
            raw = remark["before"] + raw[remark.end("line") :]
            remark = _REMARK.match(raw)
        return raw

    def _names_columns(self, line: bytes, following: bytes) -> bool:
        """Return whether a line that begins with # may name the columns of the line below it."""
        _, (names, cells) = _cut(
            [line.decode("utf-8", "replace"), following.decode("utf-8", "replace")]
        )
        known = [role for role in COLUMN_NAMES if known_columns(role, names)]
        return len(names) == len(cells) and (bool(self.choice.named) or len(known) > 1)

    def lines(self) -> list[str]:
        """Return the lines, decoded from UTF-8; raise DataError if that fails."""
        try:
            return self.text.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(
                "expected text in UTF-8", file=self.path, remedy="save it as UTF-8"
            ) from error


@one_line
@dataclass(frozen=True)
class Columns:
    """The layout of the columns of a text.

    Parameters
    ----------
    positions : dict of str to sequence of int
        Columns of each role; several of a model or segment form the id together.
    count : int
        Number of columns of each line.
    expected : str
        The expected form of a line, for errors.
    delimiter : str or None
        Delimiter; None for any white space.
    header : int
        Lines before the trials, 0 or 1.
    """

    positions: Mapping[str, Sequence[int]]
    count: int
    expected: str
    delimiter: str | None = None
    header: int = 0

    def of_roles(self, *roles: str) -> list[int]:
        """Return the column numbers of these roles."""
        columns: list[int] = []
        for role in roles:
            columns += self.positions.get(role, ())
        return columns


def is_score(cell: str) -> bool:
    """Return whether a cell is a number, including NaN and infinity as written by Windows."""
    return is_number(cell) or _OF_WINDOWS.fullmatch(cell) is not None


def as_score(cell: str) -> float:
    """Convert a cell that `is_score` recognised.

    Examples
    --------
    >>> as_score("1e-3"), as_score("-1.#IND"), as_score("-1.#INF00"), as_score("-nan(ind)")
    (0.001, nan, -inf, nan)
    """
    if _OF_WINDOWS.fullmatch(cell) is None:
        return float(cell)
    size = math.inf if "inf" in cell.lower() else math.nan
    if cell.startswith("-"):
        return -size
    return size


def forced_layout(layout: str | Sequence[str], content: Kind) -> Layout:
    """Check a layout given by name or as roles (a sequence, or a text with commas or blanks).

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
    known = KEYS
    subject = "a key"
    if content == "scores":
        known = SCORES
        subject = "scores"
    if isinstance(layout, str):
        if layout in known:
            return known[layout]
        layout = layout.replace(",", " ").split()
    roles = tuple("label" if role == "target" else role for role in layout)
    if not _is_order(roles, content):
        remedy = f"use one of {', '.join(known)}, or an order of {', '.join(ROLES)} such as {','.join(known['kaldi'])}"
        raise DataError(
            f"not an order of the columns of {subject}: {' '.join(roles) or '(none)'}",
            remedy=remedy,
        )
    return roles


def _is_order(roles: Layout, content: Kind) -> bool:
    """Return whether the roles are known, distinct and complete."""
    named = [role for role in roles if role != "-"]
    if not set(named) <= set(ROLES) or len(set(named)) < len(named):
        return False
    has_ids = "segment" in named and ("model" in named or "claimed" in named)
    if not has_ids and set(named) != {"label", "score"}:
        return False
    if content == "scores":
        return "score" in named
    return "label" in named or {"claimed", "real"} <= set(named)


def detect_layout(rows: Sequence[Sequence[str]], content: Kind, path: Path) -> Layout:
    """Detect the order of columns from the first lines.

    Kaldi's order is assumed as long as the last column fits it, so that one bad line does not turn a column of speakers
    with numbers as names into scores.

    Parameters
    ----------
    rows : sequence of sequences of str
        Tokens of some lines, equally many each: 2 to 5.
    content : {"scores", "key"}
        Expected content of the file.
    path : Path
        The file, for errors.

    Raises
    ------
    DataError
        If no layout has this many columns, or two fit equally well.
    """
    columns = list(zip(*rows, strict=True))
    numbers = [all(map(is_score, column)) for column in columns]
    labels = [all(map(_is_truth, column)) for column in columns]
    if len(columns) == 5:
        return SCORES["bob5"]
    if len(columns) == 2:
        if labels[1] and not labels[0]:
            return ("score", "label")
        return ("label", "score")
    if len(columns) == 3:
        return _detect_of_three(columns, content)
    # ASVspoof: the third column is the kind of speech
    if content == "key" and labels[3] and not numbers[2]:
        return ("model", "segment", "-", "label")
    return _detect_of_four(columns, numbers, labels, content, path)


def _detect_of_three(columns: Sequence[Sequence[str]], content: Kind) -> Layout:
    """Detect whether scores or labels come first; if they may come last, they do."""
    known = KEYS
    first = "voxceleb"
    is_value: Callable[[str], bool] = _is_truth
    if content == "scores":
        known = SCORES
        first = "voxsrc"
        is_value = is_score
    if all(map(is_value, columns[0])) and not any(map(is_value, columns[2])):
        return known[first]
    return known["kaldi"]


def _detect_of_four(
    columns: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    labels: Sequence[bool],
    content: Kind,
    path: Path,
) -> Layout:
    """Detect the order of four columns with scores, given which columns hold only numbers and which only labels."""
    wespeaker = labels[3] and numbers[2]
    speechbrain = labels[2] and numbers[3]
    # both columns hold numbers: a score has a point, a label has none
    if wespeaker and speechbrain:
        wespeaker = any(map(_DOTTED.match, columns[2]))
        speechbrain = any(map(_DOTTED.match, columns[3]))
        if wespeaker == speechbrain:
            option = f"{content}_columns=Choice"
            first = f"{option}(layout='{','.join(SCORES['wespeaker'])}')"
            second = f"{option}(layout='{','.join(SCORES['speechbrain'])}')"
            remedy = f"choose one: {first} or {second}"
            raise DataError("two columns could be the score", file=path, line=1, remedy=remedy)
    if wespeaker:
        return SCORES["wespeaker"]
    if speechbrain:
        return SCORES["speechbrain"]
    if labels[0] and numbers[3]:
        return SCORES["appended"]
    return SCORES["bob"]


def _is_truth(cell: str) -> bool:
    return cell.lower() in TRUTHS


def find_columns(file: ListFile) -> Columns:
    """Find the columns of a text by its header, by what the user specifies, or by its first lines.

    Raises
    ------
    DataError
        If the first line is a header, or must be one because columns were named, but lacks a column; if the order is
        not known, or two fit equally well.
    """
    path = file.path
    raw = file.text
    content = file.kind
    choice = file.choice
    if choice.layout is None:
        columns = _columns_of_header(path, raw, content, choice)
        if columns is not None:
            return columns
    beginning = raw.lstrip().split(b"\n", _LINES_TO_DETECT)[:_LINES_TO_DETECT]
    lines = []
    for line in beginning:
        lines.append([word.decode("utf-8", "replace") for word in line.split()])
    count = len(lines[0])
    if content == "trials" and count != 3:
        layout: Layout = ("model", "segment")
        orders = "model segment"
    elif content != "trials" and choice.layout is not None:
        layout = forced_layout(choice.layout, content)
        orders = " ".join(layout)
    else:
        layout, orders = _detected(lines, content, path)
    positions = {role: (position,) for position, role in enumerate(layout)}
    return Columns(positions, len(layout), f"{len(layout)} columns ({orders})")


def _detected(lines: Sequence[Sequence[str]], content: Kind, path: Path) -> tuple[Layout, str]:
    """Return the order of the columns of some lines, and a description of all orders of as many columns."""
    count = len(lines[0])
    rows = [line for line in lines if len(line) == count]
    is_known = count in (4, 5)
    if count == 2:  # scores and labels without ids
        is_known = any(all(map(_is_truth, column)) for column in zip(*rows, strict=True))
    if not is_known:
        count = 3
        rows = [line for line in lines if len(line) == count]
    layouts = SCORES if content == "scores" else KEYS
    known = [order for order in layouts.values() if len(order) == count]
    orders = ", or ".join(map(" ".join, known)).replace("label", "target|nontarget")
    if not rows:
        return known[0], orders
    return detect_layout(rows, content, path), orders


def read_list(file: ListFile) -> Trials:
    """Read trials, a key or scores from a text, or from a table with a header.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        With file and line: a wrong number of columns, a repeated pair, a score that is NaN or not a number, a label
        that is neither target nor nontarget (nor 1, 0, true, false), an empty file, not UTF-8.
    """
    columns = find_columns(file)
    path = file.path
    raw = file.text
    choice = file.choice
    if len(raw) >= _LARGE and choice.duplicates == "error":
        with suppress(ValueError, TypeError):  # errors are reported below with their lines
            return _list_of(_parsed(raw, columns), file, columns)
    lines = cut_lines(path, raw, columns.delimiter)[columns.header :]
    for line, row in lines:
        if len(row) != columns.count:
            raise _wrong_count(row, columns, path, line)
    if not lines:
        got = "only a header" if columns.header else "an empty file"
        raise DataError(f"expected trials, got {got}", file=path, remedy="write the list again")
    if choice.duplicates == "first" and "segment" in columns.positions:
        lines = _first_lines(lines, columns, path)
    cells = list(zip(*[row for _, row in lines], strict=True))
    try:
        return _list_of(cells, file, columns)
    except TrialError as error:
        raise _error_with_lines(error, lines, path) from None


def _error_with_lines(
    error: TrialError, lines: Sequence[tuple[int, list[str]]], path: Path
) -> DataError:
    """Return an error about a list with the file's lines that it concerns."""
    first, *others = [lines[row][0] for row in error.rows]
    text = error.text
    remedy = error.remedy
    if others:
        text += f"; also in line {few(others)}"
    repeated = {tuple(lines[row][1]) for row in error.rows}
    if isinstance(error, RepeatedTrialError) and len(repeated) == 1:
        remedy = f"{remedy}; duplicates='first' reads only the first line"
    return error.changed(text, file=path, line=first, remedy=remedy)


def _wrong_count(row: Sequence[str], columns: Columns, path: Path, line: int) -> DataError:
    """Return the error for a line with too many or too few columns."""
    text = f"expected {columns.expected}, got {len(row)}: {shown(' '.join(row).encode())}"
    remedy = None
    if len(row) == 1 and delimiter_of(row[0]):
        remedy = "a table begins with the names of its columns, such as model,segment,score,label"
    elif len(row) == 1:
        remedy = "in_order=True reads one score per line in the order of the key"
    elif not columns.header:
        remedy = "columns are separated by white space; an id must not hold any"
    return DataError(text, file=path, line=line, remedy=remedy)


def _first_lines(
    lines: Sequence[tuple[int, list[str]]], columns: Columns, path: Path
) -> list[tuple[int, list[str]]]:
    """Return the first line of each pair; raise an error if a repeated pair has another score or label."""
    ids = columns.of_roles("model", "claimed", "segment")
    values = columns.of_roles("score", "label", "real")
    pair_of = itemgetter(*ids)
    kept: dict[Any, tuple[int, list[str]]] = {}
    contradicting = []
    for line, row in lines:
        first, before = kept.setdefault(pair_of(row), (line, row))
        if any(row[column] != before[column] for column in values):
            contradicting.append((line, first))
    if contradicting:
        line, first = contradicting[0]
        text = counted(len(contradicting), "line")
        text += f" with another score or label than an earlier line of the same pair, such as line {first}"
        raise DataError(text, file=path, line=line, remedy="keep the right line of each pair")
    return list(kept.values())


def write_text_list(
    path: str | Path,
    trials: Trials,
    layout: str = "kaldi",
    *,
    key: Key | None = None,
    speakers: Mapping[str, str] | None = None,
) -> None:
    """Write trials, a key or scores as text, atomically and without trial types.

    Parameters
    ----------
    path : path
        The list to write.
    trials : Trials, Key or Scores
        The list.
    layout : str
        Order of the columns: a name of this module, or roles.
    key : Key, optional
        Labels of the scores, where the order has a column for them.
    speakers : mapping of str to str, optional
        Speaker of each segment, where the order has a column of real speakers.

    Raises
    ------
    DataError
        If the order needs missing data, an id holds white space, which would break the line, or the file cannot
        be written.
    """
    roles: Layout = ("model", "segment")
    if isinstance(trials, Scores):
        roles = forced_layout(layout, "scores")
    elif isinstance(trials, Key):
        roles = forced_layout(layout, "key")
        key = trials
    if "-" in roles:
        raise DataError(
            f"cannot write the order {' '.join(roles)}: '-' skips a column when reading only"
        )
    models = trials.model_ids[trials.models]
    segments = trials.segment_ids[trials.segments]
    columns = {"model": models, "segment": segments, "claimed": models}
    if isinstance(trials, Scores):
        columns["score"] = trials.values
    elif "score" in roles:
        raise DataError(
            f"the order {' '.join(roles)} has a column of scores, which a key lacks",
            remedy="convert the scores",
        )
    if {"label", "real"} & set(roles):
        is_target = _labels(trials, key)
        columns["label"] = np.where(is_target, *_WORDS.get(layout, ("target", "nontarget")))
        if "real" in roles:
            columns["real"] = _real_speakers(models, segments, is_target, speakers or {})
    _check_writable((*trials.model_ids, *trials.segment_ids, *set(columns.get("real", ()))))
    cells = [map(str, columns[role].tolist()) for role in roles]
    lines = map(" ".join, zip(*cells, strict=True))
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())


def _check_writable(ids: Iterable[str]) -> None:
    """Refuse an id that would break its line."""
    for name in ids:
        if _UNWRITABLE.search(name):
            text = f"id {name!r} holds white space or other bytes that a text list cannot hold"
            raise DataError(text, remedy="write HDF5 instead, or rename it")


def _labels(trials: Trials, key: Key | None) -> Any:
    """Return whether each trial is a target trial of the key."""
    if key is None:
        raise DataError("this order has a column of labels", remedy="give the key")
    rows = find_rows(trials, key)
    absent = np.flatnonzero(rows < 0)
    if len(absent):
        text = f"{counted(len(absent), 'trial')} not in the key, such as {trials.named(absent)}"
        raise DataError(text, remedy="give their key")
    return key.is_target[rows]


def write_table(path: str | Path, trials: Trials) -> None:
    """Write trials, a key or scores as a table with a header; an id that looks like a formula gets an apostrophe."""
    models: Any = list(map(without_formula, trials.model_ids))
    segments: Any = list(map(without_formula, trials.segment_ids))
    frame = replace(trials, model_ids=models, segment_ids=segments).to_dataframe()
    if isinstance(trials, Key):
        frame["target"] = np.where(trials.is_target, "target", "nontarget")
    delimiter = ","
    if inner_suffix(path) == ".tsv":
        delimiter = "\t"
    write_bytes(path, frame.to_csv(index=False, sep=delimiter, lineterminator="\n").encode())


def _columns_of_header(path: Path, raw: bytes, content: Kind, choice: Choice) -> Columns | None:
    """Return the columns named by the first line; None if it is not a header."""
    lines = raw[: 1 << 16].decode("utf-8", "replace").lstrip().splitlines()[:2]
    if not lines:
        return None
    delimiter, (names, *values) = _cut(lines)
    titles = {role: known_columns(role, names) for role in COLUMN_NAMES} | choice.named
    positions = _positions_of_roles(titles, names, values, choice)
    option = "key_columns=Choice"
    if content == "scores":
        option = "scores_columns=Choice"
    needed = _needed_roles(positions, content, choice)
    lacking = [role for role in needed if role not in positions]
    if lacking:
        are_words = delimiter is not None and not any(map(is_score, names))
        if not choice.named and not (are_words and _is_header(names, values, positions)):
            return None
        raise _lacking_columns(lacking, names, option, path, can_have_key=choice.labelled)
    for role in needed:
        several = [name for name in names if name in titles[role]]
        if len(several) > len(positions[role]):
            text = f"two columns could be the {role}: {' and '.join(several)}"
            remedy = f"name one: {option}({role}='{several[0]}'); no two may have the same name"
            raise DataError(text, file=path, line=1, remedy=remedy)
    expected = f"{len(names)} columns as in the header"
    return Columns(positions, len(names), expected, delimiter, header=1)


def _positions_of_roles(
    titles: Mapping[str, Sequence[str]],
    names: Sequence[str],
    values: Sequence[Sequence[str]],
    choice: Choice,
) -> dict[str, Sequence[int]]:
    """Return the columns of each role: the chosen ones, else the first with a known title."""
    positions: dict[str, Sequence[int]] = {}
    for role, known in titles.items():
        chosen = choice.named.get(role, known[:1])
        if chosen and set(chosen) <= set(names):
            positions[role] = list(map(names.index, chosen))
    is_sure = choice.named or {"model", "segment"} & set(positions)
    if "score" in positions and not is_sure and not _is_number_below(positions["score"][0], values):
        del positions["score"]  # the column holds ids such as "value"
    return positions


def _lacking_columns(
    lacking: list[str], names: Sequence[str], option: str, path: Path, *, can_have_key: bool
) -> DataError:
    """Return the error for a header without some columns."""
    options = ", ".join(f"{role}='NAME'" for role in lacking)
    remedy = f"name it: {option}({options})"
    if can_have_key and lacking == ["label"]:
        remedy += ", or give a key"
    text = (
        f"expected a header with a column for {' and '.join(lacking)}, got {', '.join(names)[:200]}"
    )
    return DataError(text, file=path, line=1, remedy=remedy)


def _is_header(
    names: Sequence[str], rows: Sequence[Sequence[str]], positions: Mapping[str, Sequence[int]]
) -> bool:
    """Return whether words name both ids, or are followed by a row of equally many cells with numbers."""
    if {"model", "segment"} <= set(positions):
        return True
    return bool(rows) and len(names) == len(rows[0]) >= 3 and any(map(is_score, rows[0]))


def _is_number_below(column: int, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row below a header has a number in this column."""
    return bool(rows) and column < len(rows[0]) and is_score(rows[0][column])


def _cut(lines: Sequence[str]) -> tuple[str | None, list[list[str]]]:
    """Return the delimiter of a header, which may begin with #, and the cells of all lines."""
    header = lines[0].lstrip("# ")
    delimiter = delimiter_of(header)
    cells = []
    if delimiter is None:
        for line in (header, *lines[1:]):
            cells.append([cell.strip('"') for cell in line.split()])
    else:
        for row in csv.reader([header, *lines[1:]], delimiter=delimiter):
            cells.append([cell.strip() for cell in row])
    return delimiter, cells


def _needed_roles(
    positions: Mapping[str, Sequence[int]], content: Kind, choice: Choice
) -> list[str]:
    """Return the roles that a table must have; with scores and labels, ids are optional."""
    needs_labels = content == "key" or (content == "scores" and choice.labelled)
    has_ids = bool({"model", "segment"} & set(positions))
    if needs_labels and not has_ids and {"score", "label"} <= set(positions):
        needed = []
    else:
        needed = ["model", "segment"]
    if content == "scores":
        needed.append("score")
    if needs_labels and not {"claimed", "real"} <= set(positions):
        needed.append("label")
    return needed


def _parsed(raw: bytes, columns: Columns) -> list[Any]:
    """Parse a large text with pandas, ids as categories; raise ValueError if the number of columns varies."""
    import pandas as pd

    roles = [role for role in columns.positions if role != "score"]
    ids = columns.of_roles(*roles)
    options: dict[str, Any] = {"sep": columns.delimiter}
    if columns.delimiter is None:
        raw = raw.translate(_BLANKS)
        options = {"sep": r"\s+", "quoting": csv.QUOTE_NONE}
    # pandas would read ids of digits as numbers
    for kind in ("category", str):
        dtypes: Any = dict.fromkeys(range(columns.count), str) | dict.fromkeys(ids, kind)
        source = io.BytesIO(raw.lstrip())
        frame = pd.read_csv(
            source, header=None, skiprows=columns.header, dtype=dtypes, na_filter=False, **options
        )
        if len(frame.columns) != columns.count:
            raise ValueError
        if kind is str or all(
            frame[column].cat.categories.dtype.kind not in "iufb" for column in ids
        ):
            break
    cells: list[Any] = []
    for column in frame:
        if column in ids:
            cells.append(frame[column].astype("category").array)
        else:
            cells.append(frame[column].tolist())
    if "" in cells[-1]:
        raise ValueError
    return cells


def _list_of(cells: Sequence[Any], file: ListFile, columns: Columns) -> Trials:
    """Build a list from the cells of each column."""
    content = file.kind
    column = partial(_column, cells, columns)
    if "segment" in columns.positions:
        models = "claimed"
        if "model" in columns.positions:
            models = "model"
        ids = (column(models), column("segment"))
    else:
        rows = range(1, len(cells[0]) + 1)
        # one unknown model, so that intervals over speakers are refused
        ids = ([f"line-{row}" for row in rows], ["unknown"] * len(rows))
    if content == "scores":
        return Scores.from_ids(*ids, _numbers(column("score")), **file.choice.failures)
    if content == "trials" and (columns.header or "label" not in columns.positions):
        return Trials.from_ids(*ids)
    if "label" in columns.positions:
        is_target = truth_of(column("label"))
    else:
        is_target = np.asarray(column("claimed"), object) == np.asarray(column("real"), object)
    key = Key.from_ids(*ids, is_target)
    if content == "key":
        return key
    return key.trials()


def _column(cells: Sequence[Any], columns: Columns, role: str) -> Any:
    """Return the column of a role; several are joined."""
    parts = [cells[number] for number in columns.positions[role]]
    if columns.header and role != "score":
        parts = [_plain(part) for part in parts]
    if len(parts) == 1:
        return parts[0]
    return list(map(":".join, zip(*parts, strict=True)))


def _plain(cells: Any) -> Any:
    """Return the cells of a table without the apostrophe that `without_formula` adds."""
    if hasattr(cells, "categories"):
        return cells.rename_categories(_plain(cells.categories.tolist()))
    return [_APOSTROPHE.sub("", cell) for cell in cells]


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
    raise TrialError(
        f"expected a number as score, got {shown(cells[bad[0]].encode())}", bad, remedy=remedy
    )


def _real_speakers(
    models: np.ndarray, segments: np.ndarray, is_target: np.ndarray, speakers: Mapping[str, str]
) -> np.ndarray:
    """Return the true speakers: the model in target trials, else the speaker of the segment."""
    real = models.copy()
    unknown = sorted({*segments[~is_target]} - speakers.keys())
    if unknown:
        text = f"real speakers, which this order needs, are unknown for {counted(len(unknown), 'segment')}: "
        text += few(unknown, repr)
        raise DataError(text, remedy="give the speakers of the segments")
    real[~is_target] = [speakers[segment] for segment in segments[~is_target]]
    wrong = np.flatnonzero(~is_target & (real == models))
    if wrong.size:
        row = wrong[0]
        text = f"'{models[row]} {segments[row]}' is a nontarget trial, but the speaker of the segment is the model"
        raise DataError(
            text,
            remedy="check the speakers: in this order a trial with equal names is a target trial",
        )
    return real
