"""Lists as text in UTF-8, one trial a line, columns separated by white space; gzip is read and, by ``.gz``, written.

=========  =====================================
Trials     ``model segment``
Key        ``model segment target|nontarget``
Scores     ``model segment score``
=========  =====================================

These columns are written; other orders are read too (below). Blank lines, Windows line ends and
a byte order mark are accepted. Scores are written with the fewest digits that read back to the same float64.

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

**Columns of text cut by white space, as arrays: a million lines take half a second.**

A token is a place and a length in the bytes of the file; no token becomes a Python object before it must:

    raw      s p k 1 \x20 u t t 7 \x20 0 . 5 \n  s p k 1 \x20 u t t 8 \x20 1 . 5 \n  then 8 line ends as padding
    place    0 1 2 3  4  5 6 7 8  9 ...  13 14
    starts   [[0, 5, 10], [14, 19, 24]]     row by row, a column for each token of a line
    lengths  [[4, 4,  3], [ 4,  4,  3]]

Tokens are compared as words of 8 bytes, which are read at any place through a view of stride 1; bytes beyond the end of
a token are masked to zero, so that a word of it is one uint64 (and the padding lets the last token be read so):

    utt7     u t t 7 \x20 0 . 5  &  FF FF FF FF 00 00 00 00  =  the word of 'utt7'

Ids become codes by a 64-bit hash of these words, and then each token is compared with the one that stands for its code,
so that a collision cannot merge two ids.

**Writing lists in the column orders of other tools**, which the table above names.

**Tables with a header: CSV, or columns separated by tabs, semicolons or blanks; quotes as in CSV.**

The header says which column is what; names of NIST, bob and the usual ones are known, others can be given. Several
columns together can form an id, joined by ``:`` as NIST writes the channel of a segment.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import numpy as np

from evaluation.formats.format import DETECT, Choice
from evaluation.trials import COLUMN_NAMES, TRUTHS, Key, Scores, Trials, factorise, find_repeat, find_rows
from spkbase.errors import DataError
from spkbase.files import atomic_path, line_at, not_text, read_text_bytes, shown, write_bytes
from spkbase.showing import one_line

Layout = tuple[str, ...]
Content = Literal["scores", "key"]

ROLES = ("model", "segment", "score", "label", "claimed", "real", "-")
LABELS = {word.encode(): truth for word, truth in TRUTHS.items()}

SCORES: dict[str, Layout] = {
    "kaldi": ("model", "segment", "score"),
    "voxsrc": ("score", "model", "segment"),
    "wespeaker": ("model", "segment", "score", "label"),
    "speechbrain": ("model", "segment", "label", "score"),
    "bob": ("claimed", "real", "segment", "score"),
    "bob5": ("claimed", "model", "real", "segment", "score"),
}
KEYS: dict[str, Layout] = {
    "kaldi": ("model", "segment", "label"),
    "voxceleb": ("label", "model", "segment"),
    "wespeaker": SCORES["wespeaker"],
    "speechbrain": SCORES["speechbrain"],
    "bob": SCORES["bob"],
    "bob5": SCORES["bob5"],
}
_DOTTED = re.compile(rb"[-+]?\d*\.\d+([eE][-+]?\d+)?$|[-+]?inf(inity)?$", re.IGNORECASE)


def is_number(token: bytes) -> bool:
    """Return whether a token is a number, NaN and infinite ones too; ``1_000`` is none."""
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


def is_label(token: bytes) -> bool:
    """Return whether a token says target or nontarget."""
    return token.lower() in LABELS


def label_remedy(token: bytes) -> str:
    """Return what to do about a word that is no label; a number there may be a score."""
    words = "1, 0, true and false will do too"
    return f"{words}; are scores and key exchanged?" if is_number(token) else words


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
    given_roles = [role for role in roles if role != "-"]
    fits = set(roles) <= set(ROLES) and len(set(given_roles)) == len(given_roles) and needed <= set(roles)
    if not (fits and truth and {"model", "claimed"} & set(roles)):
        remedy = f"use one of {', '.join(known)}, or an order of {', '.join(ROLES)} such as {','.join(known['kaldi'])}"
        raise DataError(f"no order of the columns of {_what(content)}: {' '.join(roles) or '(none)'}", remedy=remedy)
    return roles


def detect_layout(rows: Sequence[Sequence[bytes]], content: Content, path: Path) -> Layout:
    """Detect the order of columns from the first lines.

    Kaldi's order is assumed as long as the last column could be what it has there, so that a column of numbers that are
    speakers is not taken for scores because of one bad line.

    Parameters
    ----------
    rows : sequence of sequences of bytes
        Tokens of some lines, equally many each.
    content : {"scores", "key"}
        What the file should hold.
    path : Path
        The file, for errors.

    Raises
    ------
    DataError
        If no layout has so many columns, or two fit equally well.
    """
    n_columns = len(rows[0])
    if n_columns == 3:
        test = is_number if content == "scores" else is_label
        front = all(test(row[0]) for row in rows) and not any(test(row[2]) for row in rows)
        names = ("voxsrc", "kaldi") if content == "scores" else ("voxceleb", "kaldi")
        return (SCORES if content == "scores" else KEYS)[names[0] if front else names[1]]
    if n_columns == 4:
        return SCORES[_detect_four(rows, path)]
    return SCORES["bob5"]


def _detect_four(rows: Sequence[Sequence[bytes]], path: Path) -> str:
    labels_third, labels_last = (all(is_label(row[column]) for row in rows) for column in (2, 3))
    number_third, number_last = (all(is_number(row[column]) for row in rows) for column in (2, 3))
    wespeaker, speechbrain = labels_last and number_third, labels_third and number_last
    if wespeaker and speechbrain:  # both columns hold numbers: a score has a point, a label has none
        dotted_third, dotted_last = (any(_DOTTED.match(row[column]) for row in rows) for column in (2, 3))
        if dotted_third == dotted_last:
            remedy = "say which: --scores-columns model,segment,score,label or model,segment,label,score"
            raise DataError("two columns could be the score", file=path, line=1, remedy=remedy)
        wespeaker = dotted_third
    return "wespeaker" if wespeaker else "speechbrain" if speechbrain else "bob"


def expected_columns(content: Content, n_columns: int) -> str:
    """Return, for an error, what lines of a file should hold."""
    layouts = SCORES if content == "scores" else KEYS
    fitting = [layout for layout in layouts.values() if len(layout) == n_columns] or [layouts["kaldi"]]
    orders = ", or ".join(" ".join(layout) for layout in fitting)
    words = orders.replace("label", "target|nontarget")
    return f"{len(fitting[0])} columns ({words})"


def _what(content: Content) -> str:
    return "scores" if content == "scores" else "a key"


_BLOCK_BYTES = 1 << 22
_PADDING = b"\n" * 8  # a word of 8 bytes can be read from where any token starts
# the six bytes at which bytes.split() cuts
_IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\x0b\x0c"))
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_ROWS_PER_PIECE = 1 << 16
_WORDS_AT_MOST = 16  # longer ids than 128 bytes go through a dictionary
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)


@one_line
@dataclass
class Columns:
    """Tokens of a text, one row for each line that is not blank.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its text, followed by line ends.
    starts : ndarray of int64 of shape (N, C)
        Where each token starts.
    lengths : ndarray of int32 of shape (N, C)
        Number of its bytes.
    """

    path: Path
    raw: bytes
    starts: np.ndarray
    lengths: np.ndarray
    _codes: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._codes = np.frombuffer(self.raw, np.uint8)

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, row: int) -> int:
        """Line of the file, from 1, where a row stands."""
        return line_at(self.raw, int(self.starts[row, 0]))

    def token(self, row: int, column: int) -> bytes:
        """Return one token."""
        start = int(self.starts[row, column])
        return self.raw[start : start + int(self.lengths[row, column])]

    def tokens(self, column: int, rows: np.ndarray | None = None) -> list[bytes]:
        """Return the tokens of a column, or those of some rows."""
        if rows is None:
            return [token for piece in self.pieces() for token in self.tokens_of(column, piece)]
        starts = self.starts[rows, column]
        stops = starts + self.lengths[rows, column]
        raw = self.raw
        return [raw[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def tokens_of(self, column: int, rows: slice) -> list[bytes]:
        """Return the tokens of a column in neighbouring rows: to cut these whole is quicker than to pick."""
        last = self.starts[rows][-1, -1] + self.lengths[rows][-1, -1]
        return self.raw[self.starts[rows.start, 0] : last].split()[column :: self.starts.shape[1]]

    def pieces(self) -> list[slice]:
        """Cut the rows into pieces whose tokens need little memory."""
        return [slice(start, start + _ROWS_PER_PIECE) for start in range(0, len(self), _ROWS_PER_PIECE)]

    def equals(self, column: int, word: bytes) -> np.ndarray:
        """Return for each row whether its token is this word, shape (N,)."""
        same = self.lengths[:, column] == len(word)
        for number in range(-(-len(word) // 8)):
            part = np.uint64(int.from_bytes(word[8 * number : 8 * number + 8], "little"))
            for rows in self.pieces():
                same[rows] &= self._word(column, number, rows) == part
        return same

    def ids(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Turn a column of ids into codes.

        Returns
        -------
        table : ndarray of str of shape (K,), dtype object
            The distinct ids, sorted by code point.
        codes : ndarray of int32 of shape (N,)
            Place of each row's id in the table.

        Raises
        ------
        DataError
            With file and line, if an id is not UTF-8.
        """
        first, codes = self._factorise(column)
        order = self._order(column, first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        table = np.empty(len(order), object)
        rows = np.sort(first)  # along the file
        place = rank[np.argsort(first)]
        for start in range(0, len(rows), _ROWS_PER_PIECE):
            some = rows[start : start + _ROWS_PER_PIECE]
            table[place[start : start + _ROWS_PER_PIECE]] = self._names(column, some)
        return table, rank[codes]

    def _names(self, column: int, rows: np.ndarray) -> list[str]:
        if 4 * len(rows) > rows[-1] - rows[0]:
            tokens = self.tokens_of(column, slice(int(rows[0]), int(rows[-1]) + 1))
            tokens = [tokens[place] for place in (rows - rows[0]).tolist()]
        else:
            tokens = self.tokens(column, rows)
        try:
            return b"\n".join(tokens).decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise self._not_utf8(tokens, rows) from None

    def _order(self, column: int, rows: np.ndarray) -> np.ndarray:
        """Sort distinct tokens by their bytes, which in UTF-8 is by code point; zero bytes occur in none."""
        n_words = -(-int(self.lengths[rows, column].max(initial=0)) // 8)
        if n_words > _WORDS_AT_MOST:
            tokens = self.tokens(column, rows)
            return np.array(sorted(range(len(tokens)), key=tokens.__getitem__), np.int64)
        words = [self._word(column, number, rows).byteswap() for number in reversed(range(n_words))]
        return np.lexsort(words)

    def _factorise(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first row of each distinct token, and for each row the place of its token among these."""
        longest = int(self.lengths[:, column].max(initial=0))
        n_words = -(-longest // 8)
        if n_words <= _WORDS_AT_MOST:
            hashes = self._hash(column, n_words)
            _, first, codes = np.unique(hashes, return_index=True, return_inverse=True)
            if self._same(column, n_words, first[codes]):
                return first, codes.astype(np.int32)
        places: dict[bytes, int] = {}
        codes = np.array([places.setdefault(token, len(places)) for token in self.tokens(column)], np.int32)
        _, first = np.unique(codes, return_index=True)
        return first, codes

    def _word(self, column: int, number: int, rows: slice | np.ndarray) -> np.ndarray:
        """Return 8 bytes of each token, those beyond its end as zeros."""
        left = np.clip(self.lengths[rows, column] - 8 * number, 0, 8)
        starts = np.where(left > 0, self.starts[rows, column] + 8 * number, 0)
        words = np.ndarray((len(self._codes) - 7,), "<u8", self._codes, strides=(1,))
        return words[starts] & _MASKS[left]

    def _hash(self, column: int, n_words: int) -> np.ndarray:
        hashes = self.lengths[:, column].astype(np.uint64)
        for rows in self.pieces():
            for number in range(n_words):
                mixed = (hashes[rows] ^ self._word(column, number, rows)) * _PRIME
                hashes[rows] = mixed ^ (mixed >> _SHIFT)
        return hashes

    def _same(self, column: int, n_words: int, other: np.ndarray) -> bool:
        """Return whether each row has the same token as another row."""
        for rows in self.pieces():
            theirs = other[rows]
            if (self.lengths[rows, column] != self.lengths[theirs, column]).any():
                return False
            for number in range(n_words):
                if (self._word(column, number, rows) != self._word(column, number, theirs)).any():
                    return False
        return True

    def _not_utf8(self, tokens: list[bytes], rows: np.ndarray) -> DataError:
        for row, raw in zip(rows.tolist(), tokens, strict=True):
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError:
                return not_text(self.path, self.line(row), f"id {shown(raw)} is not UTF-8")
        raise AssertionError("an id that is not UTF-8 was there")


def first_line(raw: bytes) -> bytes:
    """Return the first line that is not blank, or an empty one."""
    start = len(raw) - len(raw.lstrip())
    stop = raw.find(b"\n", start)
    return raw[start : stop if stop >= 0 else len(raw)]


def cut_columns(path: Path, raw: bytes, n_columns: int, expected: str) -> Columns:
    """Cut a text into rows of tokens.

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
        With file and line, if a line has another number of columns; without line if there is no line.
    """
    raw = raw.rstrip() + _PADDING
    starts, lengths = [], []
    begin = 0
    while begin < len(raw) - len(_PADDING):
        end = raw.rfind(b"\n", begin, begin + _BLOCK_BYTES) + 1
        end = end if end > begin else raw.find(b"\n", begin + _BLOCK_BYTES) + 1
        block_starts, block_lengths = _cut(path, raw, begin, end, n_columns, expected)
        starts.append(block_starts)
        lengths.append(block_lengths)
        begin = end
    if not sum(map(len, starts)):
        raise DataError("expected trials, got an empty file", file=path, remedy="write the list again")
    return Columns(path, raw, np.concatenate(starts), np.concatenate(lengths))


def _cut(path: Path, raw: bytes, begin: int, end: int, n_columns: int, expected: str) -> tuple[np.ndarray, np.ndarray]:
    """Cut the whole lines from `begin` to `end`."""
    codes = np.frombuffer(raw, np.uint8, end - begin, begin)
    space = _IS_SPACE[codes]  # the last byte is a line end
    edges = np.flatnonzero(space[1:] != space[:-1]) + 1
    if not space[0]:
        edges = np.concatenate([[0], edges])
    starts, stops = edges[0::2], edges[1::2]
    line_ends = np.flatnonzero(codes == ord("\n"))
    rows = len(starts) // n_columns
    regular = len(starts) == n_columns * len(line_ends)  # no blank line, most likely
    if regular and rows:
        after = starts.reshape(rows, n_columns)[:, 0]
        before = stops.reshape(rows, n_columns)[:, -1]
        regular = bool((before <= line_ends).all() and (after[1:] > line_ends[:-1]).all())
    if not regular:
        counts = np.diff(np.searchsorted(starts, line_ends), prepend=0)
        wrong = np.flatnonzero((counts != n_columns) & (counts != 0))
        if len(wrong):
            line_start = begin + (int(line_ends[wrong[0] - 1]) + 1 if wrong[0] else 0)
            raise _wrong_count(path, raw, line_start, int(counts[wrong[0]]), expected)
    shape = (rows, n_columns)
    return starts.reshape(shape) + begin, (stops - starts).astype(np.int32).reshape(shape)


def _wrong_count(path: Path, raw: bytes, start: int, count: int, expected: str) -> DataError:
    """Return the error for the line that starts at a place and has so many columns."""
    line = raw[start : raw.index(b"\n", start)].strip()
    return DataError(
        f"expected {expected}, got {count}: {shown(line)}",
        file=path,
        line=line_at(raw, start),
        remedy="columns are separated by white space; an id must not hold any",
    )


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


# Who writes 1 and 0 where the others write target and nontarget.
_NUMBERS = ("speechbrain", "voxceleb")


def write_in_order(
    path: str | Path,
    trials: Scores | Key,
    layout: str,
    *,
    key: Key | None = None,
    speakers: Mapping[str, str] | None = None,
) -> None:
    """Write scores or a key as text in another tool's order of columns.

    Parameters
    ----------
    path : path
        Text; ``.gz`` behind the name compresses it.
    trials : Scores or Key
    layout : str
        A name or roles, see the table of the module.
    key : Key, optional
        The truth of scores, for orders that hold it.
    speakers : mapping of str to str, optional
        Speaker of each segment, for the real identity in bob's orders.

    Raises
    ------
    DataError
        If the order needs a key or speakers that are not given, or one lacks a trial.
    """
    content: Content = "scores" if isinstance(trials, Scores) else "key"
    roles = forced_layout(layout, content)
    if "-" in roles:
        raise DataError(f"cannot write the order {' '.join(roles)}: '-' passes over a column when reading only")
    truth = trials if isinstance(trials, Key) else key
    columns: dict[str, list[str]] = {"model": _ids_of_orders(trials.model_ids, trials.models)}
    columns |= {"segment": _ids_of_orders(trials.segment_ids, trials.segments), "claimed": columns["model"]}
    if isinstance(trials, Scores):
        columns["score"] = list(map(repr, trials.values.tolist()))
    elif "score" in roles:
        raise DataError(f"the order {' '.join(roles)} holds scores, a key has none", remedy="convert the scores")
    if "label" in roles or "real" in roles:
        is_target = _truth_of(trials, truth)
        words = ("0", "1") if layout in _NUMBERS else ("nontarget", "target")
        columns["label"] = [words[truth] for truth in is_target.astype(int).tolist()]
        if "real" in roles:
            columns["real"] = _real(columns, is_target, speakers)
    write_columns(path, trials, [columns[role] for role in roles])


def _ids_of_orders(table: np.ndarray, codes: np.ndarray) -> list[str]:
    return cast(list[str], table[codes].tolist())


def _truth_of(trials: Trials, key: Key | None) -> np.ndarray:
    if key is None:
        raise DataError("this order holds the truth of each trial", remedy="give the key")
    rows = find_rows(trials, key)
    if (rows < 0).any():
        row = int(np.argmax(rows < 0))
        name = f"{trials.model_ids[trials.models[row]]} {trials.segment_ids[trials.segments[row]]}"
        raise DataError(f"{int((rows < 0).sum())} trials are not in the key, such as '{name}'", remedy="give their key")
    return key.is_target[rows]


def _real(columns: Mapping[str, list[str]], is_target: np.ndarray, speakers: Mapping[str, str] | None) -> list[str]:
    """Who really speaks: the model in target trials, else the segment's speaker."""
    if speakers is None and not is_target.all():
        raise DataError(
            "this order holds who really speaks in each segment", remedy="give the speakers of the segments"
        )
    real = []
    for model, segment, same in zip(columns["model"], columns["segment"], is_target, strict=True):
        speaker = model if same else (speakers or {}).get(segment)
        if speaker is None:
            raise DataError(f"the speaker of segment {segment!r} is not known", remedy="add it to the speakers")
        if speaker == model and not same:
            raise DataError(
                f"'{model} {segment}' is a nontarget trial, but the speaker of the segment is the model",
                remedy="check the speakers: bob takes equal identities for a target",
            )
        real.append(speaker)
    return real


_DELIMITERS = ("\t", ",", ";", None)  # None: any white space
_OPTIONS = {"model": "--model", "segment": "--segment", "score": "--score-column", "label": "--target-column"}
_LONGEST_FIELD = 1 << 16


@one_line
@dataclass(frozen=True)
class Header:
    """Where the columns of a table stand.

    Parameters
    ----------
    delimiter : str or None
        What separates columns; None for any white space.
    n_columns : int
        Number of columns.
    places : dict of str to tuple of int
        Columns of each role; several of a model or segment form the id together.
    """

    delimiter: str | None
    n_columns: int
    places: dict[str, tuple[int, ...]]


def find_header(path: Path, raw: bytes, content: Content | None, choice: Choice = DETECT) -> Header | None:
    """Return whether the first line names columns.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its text.
    content : {"scores", "key"} or None
        What it should hold; None for trials alone.
    choice : Choice
        Columns that the user named.

    Raises
    ------
    DataError
        If the line is a header, or must be one because columns were named, but lacks a column.
    """
    if choice.layout is not None:
        return None
    line = first_line(raw)
    if len(line) > _LONGEST_FIELD or not line:
        return None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return None
    headers = {delimiter: _fields(text, delimiter) for delimiter in _DELIMITERS}
    found = {delimiter: _places(names, choice) for delimiter, names in headers.items()}
    delimiter = max(_DELIMITERS, key=lambda candidate: (len(found[candidate]), len(headers[candidate])))
    places, names = found[delimiter], headers[delimiter]
    lacking = [role for role in _needed(content, places, choice.labelled) if role not in places]
    if not lacking:
        return Header(delimiter, len(names), places)
    known = "model" in places and "segment" in places and delimiter is not None
    if choice.names_columns or (known and not _has_number(names)) or _is_above_values(raw, names, delimiter):
        remedy = f"name it: {', '.join(_OPTIONS[role] for role in lacking)}"
        remedy += ", or give a key" if choice.labelled and lacking == ["label"] else ""
        text = f"expected a header with a column for {' and '.join(lacking)}, got {', '.join(names)[:200]}"
        raise DataError(text, file=path, line=1, remedy=remedy)
    return None


def read_table_scores(path: Path, raw: bytes, header: Header) -> Scores:
    """Read the scores of a table.

    Raises
    ------
    DataError
        With file and line: wrong number of columns, a repeated pair, no number or NaN as score, not UTF-8.
    """
    table = _read(path, raw, header, ("score",))
    values = np.empty(len(table.lines))
    for row, text in enumerate(table.columns["score"]):
        if not is_number(text.encode("utf-8", "replace")):
            raise DataError(f"expected a number as score, got {shown(text.encode())}", file=path, line=table.lines[row])
        values[row] = float(text)
        if np.isnan(values[row]):
            remedy = "score this trial anew"
            raise DataError("the score is not a number (NaN)", file=path, line=table.lines[row], remedy=remedy)
    return Scores.trusted(**table.ids(path), values=values)


def read_table_key(path: Path, raw: bytes, header: Header) -> Key:
    """Read the key of a table. Errors as for scores, or a label is neither target nor nontarget."""
    roles = ("label",) if "label" in header.places else ("claimed", "real")
    table = _read(path, raw, header, roles)
    if roles != ("label",):
        claimed, real = table.columns["claimed"], table.columns["real"]
        is_target = np.array([claim == other for claim, other in zip(claimed, real, strict=True)], bool)
        return Key.trusted(**table.ids(path), is_target=is_target)
    is_target = np.empty(len(table.lines), bool)
    for row, text in enumerate(table.columns["label"]):
        label = LABELS.get(text.lower().encode("utf-8", "replace"))
        if label is None:
            remedy = label_remedy(text.encode("utf-8", "replace"))
            got = shown(text.encode())
            line = table.lines[row]
            raise DataError(f"expected target or nontarget, got {got}", file=path, line=line, remedy=remedy)
        is_target[row] = label
    return Key.trusted(**table.ids(path), is_target=is_target)


def read_table_trials(path: Path, raw: bytes, header: Header) -> Trials:
    """Read the trials of a table. Errors as for scores."""
    return Trials.trusted(**_read(path, raw, header, ()).ids(path))


def write_table(path: str | Path, trials: Trials, *, delimiter: str = ",") -> None:
    """Write trials, a key or scores as a table with a header."""
    columns: dict[str, Sequence[str]] = {}
    if isinstance(trials, Key):
        columns["target"] = np.where(trials.is_target, "target", "nontarget").tolist()
        if trials.types is not None:
            columns["type"] = [trials.type_names[place] for place in trials.types]
    elif isinstance(trials, Scores):
        columns["score"] = list(map(repr, trials.values.tolist()))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["model", "segment", *columns])
    pairs = trials.pairs()
    writer.writerows([*pair, *values] for pair, *values in zip(pairs, *columns.values(), strict=True))
    try:
        write_bytes(path, text.getvalue().encode("utf-8"))
    except UnicodeEncodeError as error:
        raise DataError(f"id {error.object[:60]!r} cannot be written as UTF-8", remedy="rename it") from error


@dataclass
class _Table:
    models: list[str]
    segments: list[str]
    lines: list[int]
    columns: dict[str, list[str]]

    def ids(self, path: Path) -> dict[str, np.ndarray]:
        for name, column in (("model", self.models), ("segment", self.segments)):
            if "" in column:
                raise DataError(f"the {name} is blank", file=path, line=self.lines[column.index("")])
        (model_ids, models), (segment_ids, segments) = factorise(self.models), factorise(self.segments)
        repeat = find_repeat(models, segments, len(segment_ids), len(model_ids))
        if repeat is not None:
            earlier, later = repeat
            text = f"trial '{self.models[later]} {self.segments[later]}' repeats line {self.lines[earlier]}"
            remedy = "each pair may occur once; several columns can form an id, as in --segment test,chan"
            raise DataError(text, file=path, line=self.lines[later], remedy=remedy)
        return {"model_ids": model_ids, "segment_ids": segment_ids, "models": models, "segments": segments}


def _read(path: Path, raw: bytes, header: Header, roles: Sequence[str]) -> _Table:
    model, segment = header.places["model"], header.places["segment"]
    single = {role: header.places[role][0] for role in roles}
    table = _Table([], [], [], {role: [] for role in roles})
    for line, row in _rows(path, raw, header):
        table.models.append(row[model[0]] if len(model) == 1 else ":".join(row[place] for place in model))
        table.segments.append(row[segment[0]] if len(segment) == 1 else ":".join(row[place] for place in segment))
        table.lines.append(line)
        for role, place in single.items():
            table.columns[role].append(row[place])
    if not table.lines:
        raise DataError("expected trials, got a header alone", file=path, remedy="write the list again")
    return table


def _rows(path: Path, raw: bytes, header: Header) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) below the header."""
    lines = io.StringIO(_decoded(path, raw), newline="")
    rows: Iterator[tuple[int, list[str]]] = ((number, line.split()) for number, line in enumerate(lines, 1))
    if header.delimiter is not None:
        rows = _with_lines(path, csv.reader(lines, delimiter=header.delimiter, strict=True))
    started = False
    for line, row in rows:
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if not started:
            started = True
            continue
        if len(row) != header.n_columns:
            text = f"expected {header.n_columns} columns as in the header, got {len(row)}: {' '.join(row)[:60]!r}"
            raise DataError(text, file=path, line=line)
        yield line, row


def _with_lines(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    while True:
        start = reader.line_num + 1  # type: ignore[attr-defined]
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "close quotes, and double those within quotes"
            raise DataError(f"no line of a table: {error}", file=path, line=start, remedy=remedy) from error
        yield start, row


def _decoded(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = raw[max(0, error.start - 10) : error.end + 10]
        raise not_text(path, line_at(raw, error.start), f"{shown(where)} is not UTF-8") from None


def _fields(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return [field.strip('"') for field in line.split()]
    try:
        return [field.strip() for field in next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _places(names: Sequence[str], choice: Choice) -> dict[str, tuple[int, ...]]:
    """Find the columns of each role: those that the user named, else the first known name."""
    lower = [name.lower() for name in names]
    places: dict[str, tuple[int, ...]] = {}
    for role, known in COLUMN_NAMES.items():
        found = next((lower.index(name) for name in known if name in lower), None)
        if found is not None:
            places[role] = (found,)
    single = {"score": choice.score, "label": choice.label}
    forced = {"model": tuple(choice.model), "segment": tuple(choice.segment)}
    forced |= {role: () if name is None else (name,) for role, name in single.items()}
    for role, wanted in forced.items():
        if not wanted:
            continue
        places.pop(role, None)
        if all(name in names for name in wanted):
            places[role] = tuple(names.index(name) for name in wanted)
    return places


def _has_number(fields: Sequence[str]) -> bool:
    return any(is_number(field.encode("utf-8", "replace")) for field in fields)


def _is_above_values(raw: bytes, names: Sequence[str], delimiter: str | None) -> bool:
    """Whether a line of words stands above one of as many fields of which some are numbers: a header of other names."""
    if delimiter is None or len(names) < 3 or _has_number(names):
        return False
    below = raw.lstrip().partition(b"\n")[2][: 2 * _LONGEST_FIELD].decode("utf-8", "replace")
    values = _fields(below.lstrip().partition("\n")[0], delimiter)
    return len(values) == len(names) and _has_number(values)


def _needed(content: Content | None, places: dict[str, tuple[int, ...]], labelled: bool = False) -> list[str]:
    needed = ["model", "segment", *(["score"] if content == "scores" else [])]
    truth = content == "key" or (content == "scores" and labelled)
    return [*needed, "label"] if truth and not {"claimed", "real"} <= set(places) else needed
