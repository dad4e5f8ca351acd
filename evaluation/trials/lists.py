"""Trials, keys and scores as long lists: the boundary between the verification system and its evaluation.

Conventions
-----------
A trial asks whether an enrolled *model* and a tested *segment* come from the same speaker. A list holds two tables of
distinct ids and, for each trial, one code into each table, so that memory and time follow the number of trials, never
models times segments. A pair occurs once in a list. The order of the trials is kept as given; lists built from ids
have their tables sorted by code point, so that the tables do not depend on that order.

    Series and data frames are read as `evaluation.trials.columns` describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evaluation.trials.columns import (
    Missing,
    TrialError,
    acquired_scores,
    check_index,
    column_of,
    floats_of,
    ids_of,
    known_column,
)
from evaluation.trials.ids import checked_ids, factorise
from evaluation.trials.labels import truth_of
from spkbase.errors import DataError, counted
from spkbase.showing import Tabular, html_table

Self = TypeVar("Self", bound="Trials")

_ROWS = 10  # rows shown in a notebook

# by role of a column in a data frame: argument of `from_ids`, reader, and name in errors
_READ: dict[str, tuple[str, Any, str]] = {
    "model": ("models", ids_of, "ids of models"),
    "segment": ("segments", ids_of, "ids of segments"),
    "label": ("is_target", lambda column, _: truth_of(column), "labels"),
    "score": ("values", lambda column, name: floats_of(column_of(column, name), name), "scores"),
    "type": ("types", ids_of, "types"),
}


class RepeatedTrialError(TrialError):
    """Error: the trials in `rows` have the same pair of ids."""


@dataclass(frozen=True, eq=False, repr=False)
class Trials(Tabular):
    """A list of trials (SIDEKIT and BOSARIS call it Ndx).

    Parameters
    ----------
    model_ids : ndarray of str of shape (M,), dtype object
        Distinct ids of models; some may have no trial.
    segment_ids : ndarray of str of shape (S,), dtype object
        Distinct ids of segments.
    models : ndarray of int32 of shape (N,)
        Index of each trial's model in `model_ids`.
    segments : ndarray of int32 of shape (N,)
        Index of each trial's segment in `segment_ids`.

    Raises
    ------
    DataError
        If shapes disagree, an id is empty or repeated, a code is out of range, or a pair is repeated.

    Examples
    --------
    >>> trials = Trials.from_ids(["anna", "anna", "bert"], ["s2", "s1", "s1"])
    >>> trials
    Trials(2 models, 2 segments, 3 trials)
    >>> list(trials.subset(trials.segments == 0).pairs())
    [('anna', 's1'), ('bert', 's1')]
    """

    model_ids: np.ndarray
    segment_ids: np.ndarray
    models: np.ndarray
    segments: np.ndarray

    _roles: ClassVar[tuple[str, ...]] = ("model", "segment")
    _kept: ClassVar[tuple[str, ...]] = ()  # optional columns that `from_frame` keeps
    _options: ClassVar[tuple[str, ...]] = ()  # options of `from_ids`
    _dtypes: ClassVar[dict[str, Any]] = {
        "models": np.int32,
        "segments": np.int32,
    }  # types of the columns
    _selected: ClassVar[bool] = False  # whether made by `subset`

    def __post_init__(self) -> None:
        for name, ids in (("models", "model_ids"), ("segments", "segment_ids")):
            table = checked_ids(getattr(self, ids), ids)
            _check_codes(name, np.asarray(getattr(self, name)), len(table))
            object.__setattr__(self, ids, table)
        for name, dtype in self._dtypes.items():
            if name == "types" and getattr(self, name) is None:
                continue
            column = column_of(getattr(self, name), name)
            if dtype is np.float64:
                column = floats_of(column, name)
            column = column.astype(dtype, copy=False).view()
            if column.shape != np.shape(self.models):
                raise DataError(
                    f"expected {name} of shape {np.shape(self.models)}, got {column.shape}"
                )
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        repeat = find_repeat(self.models, self.segments, len(self.segment_ids))
        if repeat is not None:
            remedy = "each pair may occur once; several columns of a table can form an id, as segment=test+chan"
            raise RepeatedTrialError(
                f"trial {self.named(repeat[:1])} is repeated", repeat, remedy=remedy
            )

    def named(self, rows: Sequence[int] | np.ndarray) -> str:
        """Name the first few of some trials by id, for an error."""
        some = [
            f"'{self.model_ids[self.models[row]]} {self.segment_ids[self.segments[row]]}'"
            for row in rows[:3]
        ]
        text = ", ".join(some)
        if len(rows) > 3:
            text += f" and {len(rows) - 3} more"
        return text

    @classmethod
    def from_ids(
        cls: type[Self],
        models: Sequence[str],
        segments: Sequence[str],
        *columns: ArrayLike,
        **named: Any,
    ) -> Self:
        """Build a list from the ids of each trial.

        Parameters
        ----------
        models, segments : sequence of str, length N
            The ids of each trial, in the order of the trials.
        *columns, **named
            The other columns of the class, each of shape (N,), such as the `values` of scores.

        Raises
        ------
        DataError
            If the lengths differ, an id is empty or not a string, or a pair is repeated.
        """
        others = {
            f"column {number}": column
            for number, column in enumerate([*columns, *named.values()], 3)
        }
        check_index(models=models, segments=segments, **others)
        model_ids, model_codes = factorise(models)
        segment_ids, segment_codes = factorise(segments)
        return cls(model_ids, segment_ids, model_codes, segment_codes, *columns, **named)

    @classmethod
    def from_frame(cls: type[Self], frame: Any, **names: str) -> Self:
        """Build a list from a data frame of pandas, polars or a similar library, or from columns by name.

        Parameters
        ----------
        frame : data frame, or mapping of str to columns
            One row per trial; an index is ignored. Labels of a key are true and false, 1 and 0, or text such as
            ``target`` and ``nontarget``; its column ``type`` is kept.
        **names : str
            Names of the columns: `model`, `segment`, and `label` of a key or `score`; by default the usual ones, such
            as ``enroll`` and ``test``. Scores also take `missing`; see `Scores.acquired`.

        Raises
        ------
        DataError
            If a column is missing or two may be meant, an id is missing or not a text, or a pair is repeated.

        Examples
        --------
        >>> Trials.from_frame({"enroll": ["anna", "bert"], "test": ["s1", "s1"]})
        Trials(2 models, 1 segments, 2 trials)
        >>> Key.from_frame({"a": ["anna", "anna"], "test": ["s1", "s2"], "label": [1, 0]}, model="a").is_target.tolist()
        [True, False]
        """
        failures = {option: names.pop(option) for option in cls._options if option in names}
        there = [str(name) for name in getattr(frame, "columns", frame)]
        chosen = {name: name for name in cls._kept if name in there}
        for role in cls._roles:
            if role in names:
                chosen[role] = names.pop(role)
            else:
                remedy = f"name the one that counts: {role}={{}}"
                chosen[role] = known_column(role, there, remedy=remedy) or ""
        lacking = [role for role, name in chosen.items() if name not in there] or list(names)
        if lacking:
            text = f"expected a column for {' and '.join(lacking)}, got {', '.join(there)[:200] or 'none'}"
            options = ", ".join(f"{role}=..." for role in cls._roles)
            raise DataError(text, remedy=f"name the columns: {options}")
        columns = {}
        for role, name in chosen.items():
            argument, read, title = _READ[role]
            columns[argument] = read(frame[name], title)
        return cls.from_ids(**columns, **failures)

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name: ``model`` and ``segment``, and ``target``, ``type`` or ``score``."""
        return {"model": self.model_ids[self.models], "segment": self.segment_ids[self.segments]}

    def _repr_html_(self) -> str:
        if len(self) <= _ROWS:
            return html_table(self.to_columns(), caption=repr(self))
        shown = self.subset(np.arange(_ROWS))
        more = f"... and {len(self) - _ROWS:,} trials more"
        return html_table(shown.to_columns(), caption=repr(self), notes=[more])

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        models, segments = (
            np.count_nonzero(np.bincount(codes)) for codes in (self.models, self.segments)
        )
        counts = f"{models} models, {segments} segments, {len(self)} trials"
        return f"{type(self).__name__}({counts})"

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield (model id, segment id) of each trial."""
        return zip(self.model_ids[self.models], self.segment_ids[self.segments], strict=True)

    def subset(self: Self, rows: np.ndarray) -> Self:
        """Select trials by a mask or by row numbers; the tables of ids, and so the codes, do not change."""
        columns = {name: getattr(self, name) for name in self._dtypes}
        selected = replace(
            self, **{name: column[rows] for name, column in columns.items() if column is not None}
        )
        object.__setattr__(selected, "_selected", True)
        return selected

    def trials(self) -> Trials:
        """Return only the pairs, without scores or labels."""
        return Trials(self.model_ids, self.segment_ids, self.models, self.segments)

    def scored(self, values: ArrayLike) -> Scores:
        """Return scores of these trials, in their order."""
        return Scores(self.model_ids, self.segment_ids, self.models, self.segments, values)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class Key(Trials):
    """Trials with labels.

    Parameters
    ----------
    model_ids, segment_ids, models, segments
        See `Trials`.
    is_target : array_like of bool, of 0 and 1, or of str of shape (N,)
        Whether model and segment come from the same speaker (and, in RSR2015, with the right sentence).
    types : ndarray of int8 of shape (N,), optional
        Index of each trial's type in `type_names`.
    type_names : tuple of str
        Names of trial types, such as TC, TW, IC, IW (target or impostor, correct or wrong sentence).

    Examples
    --------
    >>> key = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], is_target=[True, False, False], types=["TC", "IC", "IC"])
    >>> key.of_types("IC")
    Key(2 models, 2 segments, 2 trials)
    """

    is_target: np.ndarray
    types: np.ndarray | None = None
    type_names: tuple[str, ...] = ()

    _roles = ("model", "segment", "label")
    _kept = ("type",)
    _dtypes = Trials._dtypes | {"is_target": bool, "types": np.int8}

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_target", truth_of(self.is_target))
        super().__post_init__()
        object.__setattr__(self, "type_names", tuple(self.type_names))
        codes = np.empty(0) if self.types is None else self.types
        if ((codes < 0) | (codes >= len(self.type_names))).any():
            raise DataError(
                f"expected types from 0 to {len(self.type_names) - 1}, got {codes.max()}"
            )

    @classmethod
    def from_ids(  # type: ignore[override]  # a key cannot be built without its truth
        cls,
        models: Sequence[str],
        segments: Sequence[str],
        is_target: ArrayLike,
        types: Sequence[str] | None = None,
    ) -> Key:
        """Build a key from the ids, the truth and, if known, the type names of each trial; see `Trials.from_ids`."""
        if types is None:
            return super().from_ids(models, segments, is_target)
        check_index(models=models, segments=segments, labels=is_target, types=types)
        names, codes = factorise(types)
        return super().from_ids(models, segments, is_target, codes, tuple(names))

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        if self.types is None:
            types = {}
        else:
            types = {"type": np.array(self.type_names, object)[self.types]}
        return super().to_columns() | {"target": self.is_target} | types

    def of_types(self, *names: str) -> Key:
        """Select the trials of the named types.

        Raises
        ------
        DataError
            If the key has no types, or a named type does not occur.
        """
        unknown = [name for name in names if name not in self.type_names]
        if self.types is None or unknown:
            raise DataError(
                f"expected trial types out of {', '.join(self.type_names) or '(none)'}, got {unknown}"
            )
        return self.subset(np.isin(self.types, [self.type_names.index(name) for name in names]))


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Trials):
    """Trials with scores: the higher, the more similar.

    Parameters
    ----------
    model_ids, segment_ids, models, segments
        See `Trials`.
    values : ndarray of float64 of shape (N,)
        Scores; infinite values are allowed, NaN is not.

    Raises
    ------
    DataError
        If a score is NaN, or as for `Trials`.
    """

    values: np.ndarray

    _roles = ("model", "segment", "score")
    _options = ("missing", "rejected")
    _dtypes = Trials._dtypes | {"values": np.float64}

    def __post_init__(self) -> None:
        super().__post_init__()
        bad = np.flatnonzero(np.isnan(self.values))
        if len(bad):
            text = f"{counted(len(bad), 'score')} not a number (NaN): {self.named(bad)}"
            remedy = "score these trials again; missing='drop' leaves them out, missing='reject' rejects them"
            raise TrialError(text, bad, remedy=remedy)

    @classmethod
    def from_ids(  # type: ignore[override]  # what to do with NaN is asked of scores alone
        cls, models: Sequence[str], segments: Sequence[str], values: ArrayLike, **failures: Any
    ) -> Scores:
        """Build scores from the ids and the value of each trial, and handle NaN as `Scores.acquired` does."""
        check_index(models=models, segments=segments, scores=values)
        model_ids, model_codes = factorise(models)
        segment_ids, segment_codes = factorise(segments)
        return cls.acquired(model_ids, segment_ids, model_codes, segment_codes, values, **failures)

    @classmethod
    def acquired(
        cls, *columns: Any, missing: Missing = "error", rejected: float = -np.inf
    ) -> Scores:
        """Build scores that may be NaN if no voice could be acquired.

        Parameters
        ----------
        *columns
            See `Scores`.
        missing : {"error", "drop", "reject"}
            Treatment of NaN: an error, leave the trials out, or count them as rejected at every threshold. A warning
            has their number.
        rejected : float
            The score of a rejection; infinity for distances.
        """
        if missing == "error":
            return cls(*columns)
        model_ids, segment_ids, models, segments, values = columns
        values, kept = acquired_scores(values, "scores", missing, rejected=rejected)
        return cls(model_ids, segment_ids, models[kept], segments[kept], values[kept])

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        return super().to_columns() | {"score": self.values}


def find_repeat(
    models: np.ndarray, segments: np.ndarray, n_segments: int
) -> tuple[int, int] | None:
    """Return the row of the first trial that repeats an earlier one, and of that earlier one.

    None if there is no repeat.
    """
    pairs = models.astype(np.int64) * n_segments + segments
    ordered = np.sort(pairs)
    if (ordered[1:] != ordered[:-1]).all():
        return None
    _, first = np.unique(pairs, return_index=True)
    later = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
    return later, int(np.argmax(pairs == pairs[later]))


def _check_codes(name: str, codes: np.ndarray, count: int) -> None:
    """Refuse codes that are not rows of a table with `count` ids."""
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise DataError(
            f"expected {name} to be integers of shape (N,), got {codes.dtype} of {codes.shape}"
        )
    if codes.size and not (codes.min() >= 0 and codes.max() < count):
        raise DataError(
            f"expected {name} from 0 to {count - 1}, got {codes.min()} to {codes.max()}"
        )
