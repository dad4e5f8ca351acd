"""Where the owner of each trial ranks: a table of counts, and its file.

Conventions
-----------
A *row* is one trial: a trial embedding with one gallery, or a tested segment with the models that it was scored
against. Its owner is the enrolled speaker that it comes from; all others are impostors. A row knows how many impostors
score strictly higher than the owner (beaters), how many the same (ties), and how many there are.

The file is an npz with the columns of each table under its number of utterances, such as ``3/beaters``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import BROKEN_NPZ, atomic_file, read_npz
from spkbase.showing import Tabular, one_line

TieRule = Literal["shared", "strict", "lenient"]
TIE_RULES: tuple[TieRule, ...] = ("shared", "strict", "lenient")
_FIELDS = {"speakers": np.str_, "beaters": np.int64, "ties": np.int64, "impostors": np.int64, "mated": np.float64}


@one_line
@dataclass(frozen=True, eq=False)
class Ranks(Tabular):
    """The rank of the owner in each row; see the module.

    Attributes
    ----------
    speakers : ndarray of str of shape (n,)
        Owner of each row.
    beaters : ndarray of int64 of shape (n,)
        Impostors that score strictly higher than the owner.
    ties : ndarray of int64 of shape (n,)
        Impostors that score the same.
    impostors : ndarray of int64 of shape (n,)
        Impostors that the row was compared with, at least as many as beaters and ties.
    mated : ndarray of float64 of shape (n,)
        Score of the owner.
    notes : tuple of str
        What a reader of the numbers should know, such as speakers with fewer utterances than asked for.

    Raises
    ------
    DataError
        If shapes disagree, there is no row, or counts are negative or exceed the impostors.

    Examples
    --------
    >>> Ranks.of([0, 2], [0, 1], 9).places("shared")
    array([1. , 3.5])
    """

    speakers: NDArray[np.str_]
    beaters: NDArray[np.int64]
    ties: NDArray[np.int64]
    impostors: NDArray[np.int64]
    mated: NDArray[np.float64]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, dtype in _FIELDS.items():
            column = np.asarray(getattr(self, name))
            object.__setattr__(self, name, column.astype(dtype, copy=False))
            if column.ndim != 1 or len(column) != len(np.asarray(self.beaters)):
                raise DataError(f"expected {name} of shape ({len(self.beaters)},), got {column.shape}")
        if not len(self):
            raise DataError("expected at least one trial with its owner among the enrolled, got none")
        broken = next((name for name in self.speakers.tolist() if "\n" in name or "\r" in name), None)
        if broken is not None:  # lists of speakers have one a line
            raise DataError(f"expected names of speakers in one line each, got {broken!r:.80}")
        least = min(int(counts.min()) for counts in (self.beaters, self.ties, self.impostors))
        if least < 0 or (self.beaters + self.ties > self.impostors).any():
            raise DataError("expected counts from 0, and no more beaters and ties than impostors")

    def __len__(self) -> int:
        return len(self.beaters)

    @classmethod
    def of(cls, beaters: Any, ties: Any, impostors: Any, *, speakers: Any = None, mated: Any = None) -> Ranks:
        """Return ranks of counts; a single number of impostors serves all rows, and rows without speakers get names."""
        beaters = np.asarray(beaters, np.int64)
        names = [f"s{row:0{len(str(len(beaters)))}d}" for row in range(len(beaters))] if speakers is None else speakers
        return cls(
            np.asarray(names, np.str_),
            beaters,
            np.broadcast_to(np.asarray(ties, np.int64), beaters.shape),
            np.broadcast_to(np.asarray(impostors, np.int64), beaters.shape),
            np.full(len(beaters), np.nan) if mated is None else np.asarray(mated, np.float64),
        )

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each trial."""
        return {"speaker": self.speakers} | {name: getattr(self, name) for name in list(_FIELDS)[1:]}

    @property
    def largest_size(self) -> int:
        """The largest gallery, owner included, that every row can serve."""
        return int(self.impostors.min()) + 1

    def span(self, ties: TieRule = "shared") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the largest number of beaters of each row under a rule for ties; see `places`.

        All numbers between them are as likely.

        Raises
        ------
        DataError
            If there is no such rule.
        """
        if ties not in TIE_RULES:
            raise DataError(f"expected a rule for ties among {', '.join(TIE_RULES)}, got {ties!r}")
        most = self.beaters + self.ties
        return (most if ties == "strict" else self.beaters), (self.beaters if ties == "lenient" else most)

    def places(self, ties: TieRule = "shared") -> NDArray[np.float64]:
        """Return the mean rank of the owner in the whole gallery, from 1.

        `strict` puts the owner behind all that score the same, `lenient` before them, `shared` anywhere among them.
        """
        low, high = self.span(ties)
        return 1 + (low + high) / 2


@one_line
@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted for each trial.

    Attributes
    ----------
    beaters, ties : ndarray of int64 of shape (n,)
        Vectors of the gallery, the owner's left out, that score higher than the owner, and the same.
    mated : ndarray of float64 of shape (n,)
        Cosine of each trial with its owner.
    """

    beaters: NDArray[np.int64]
    ties: NDArray[np.int64]
    mated: NDArray[np.float64]


def write_ranks(path: str | Path, ranks: Mapping[int, Ranks]) -> None:
    """Write tables by their number of utterances (0 for all of them), whole or not at all."""
    columns = {f"{number}/{name}": getattr(table, name) for number, table in ranks.items() for name in _FIELDS}
    notes = {f"{number}/notes": np.asarray(table.notes, np.str_) for number, table in ranks.items() if table.notes}
    with atomic_file(path) as file:
        np.savez_compressed(file, **columns, **notes)  # type: ignore[arg-type]


def read_ranks(path: str | Path) -> dict[int, Ranks]:
    """Return the tables that `write_ranks` wrote, by their number of utterances.

    Raises
    ------
    DataError
        If the file is missing, broken, or holds no such tables.
    """
    try:
        columns = read_npz(Path(path))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except BROKEN_NPZ as error:
        raise DataError(f"is no file of ranks: {error}", file=path, remedy="write it again") from error
    try:
        numbers = sorted({int(name.partition("/")[0]) for name in columns})
        tables = {number: {name: columns[f"{number}/{name}"] for name in _FIELDS} for number in numbers}
    except (ValueError, KeyError) as error:
        raise DataError(f"is no file of ranks: {error}", file=path, remedy="write it again") from error
    if not tables:
        raise DataError("expected ranks, got an empty file", file=path, remedy="write it again")
    nothing = np.empty(0, np.str_)
    try:
        return {
            number: Ranks(**table, notes=tuple(columns.get(f"{number}/notes", nothing).tolist()))
            for number, table in tables.items()
        }
    except (DataError, TypeError, ValueError) as error:
        text = error.text if isinstance(error, DataError) else f"is no file of ranks: {error}"
        raise DataError(text, file=path, remedy="write it again") from error
