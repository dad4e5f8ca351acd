r"""Columns of text cut by white space, as arrays: a million lines take half a second.

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
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from spkbase.errors import DataError
from spkbase.files import line_at, not_text, shown
from spkbase.showing import one_line

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
