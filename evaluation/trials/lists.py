"""Trials, keys and scores as long lists: the boundary between the verification system and its evaluation.

Conventions
-----------
A trial asks whether an enrolled *model* and a tested *segment* come from the same speaker. A list holds two tables of
distinct ids and, for each trial, one code into each table, so that memory and time follow the number of trials, never
models times segments. A pair occurs once in a list. The order of the trials is kept as given; lists built from ids
have their tables sorted by code point, so that the tables do not depend on that order.

Lists are joined by id pair, never by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from evaluation.trials.frames import frame_columns, ids_of, numbers_of, truth_of
from evaluation.trials.pairs import checked_codes, checked_ids, factorise, find_repeat
from spkbase.errors import DataError
from spkbase.showing import Tabular, html_table

_MAX_NAMED = 3
_ROWS = 10  # in a notebook


Self = TypeVar("Self", bound="Trials")


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
        For each trial the place of its model in `model_ids`.
    segments : ndarray of int32 of shape (N,)
        For each trial the place of its segment in `segment_ids`.

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

    _per_trial: ClassVar[tuple[str, ...]] = ("models", "segments")

    def __post_init__(self) -> None:
        for name in ("model_ids", "segment_ids"):
            self._freeze(name, checked_ids(getattr(self, name), name))
        for name, table in (("models", self.model_ids), ("segments", self.segment_ids)):
            self._freeze(name, checked_codes(getattr(self, name), name, len(table)))
        if len(self.models) != len(self.segments):
            raise DataError(f"expected as many models as segments, got {len(self.models)} and {len(self.segments)}")
        repeat = find_repeat(self.models, self.segments, len(self.segment_ids), len(self.model_ids))
        if repeat is not None:
            raise DataError(
                f"trial {name_trial(self, repeat[1])} is repeated (rows {repeat[0]} and {repeat[1]})",
                remedy="each pair of model and segment may occur once",
            )

    def _freeze(self, name: str, array: np.ndarray) -> None:
        view = array.view()
        view.flags.writeable = False
        object.__setattr__(self, name, view)

    def _freeze_column(self, name: str, dtype: Any) -> None:
        column = np.asarray(getattr(self, name))
        if column.shape != self.models.shape:
            raise DataError(f"expected {name} of shape {self.models.shape}, one for each trial, got {column.shape}")
        self._freeze(name, column.astype(dtype, copy=False))

    @classmethod
    def from_ids(cls: type[Self], models: Sequence[str], segments: Sequence[str], **columns: Any) -> Self:
        """Build a list from the ids of each trial.

        Parameters
        ----------
        models, segments : sequence of str, length N
            The ids of each trial, in the order of the trials.
        **columns
            The other columns of the class, each of shape (N,).

        Raises
        ------
        DataError
            If the lengths differ, an id is not a string or empty, or a pair is repeated.
        """
        model_ids, model_codes = factorise(models)
        segment_ids, segment_codes = factorise(segments)
        return cls(model_ids, segment_ids, model_codes, segment_codes, **columns)

    @classmethod
    def trusted(cls: type[Self], **columns: np.ndarray) -> Self:
        """Build a list without the checks, of columns that a reader has checked; object tables and int32 codes."""
        built = object.__new__(cls)
        for name, column in columns.items():
            built._freeze(name, column)
        return built

    @classmethod
    def from_frame(cls: type[Self], frame: Any, *, model: str | None = None, segment: str | None = None) -> Self:
        """Build a list from a data frame of pandas, polars or their like, or from columns by name.

        Parameters
        ----------
        frame : data frame, or mapping of str to columns
            With a row a trial; its index, if it has one, is not looked at.
        model, segment : str, optional
            Names of the columns of ids; by default the first that readers of tables know, such as ``enroll`` and
            ``test``.

        Raises
        ------
        DataError
            If a column is missing, an id is missing or no text, or a pair is repeated.

        Examples
        --------
        >>> Trials.from_frame({"enroll": ["anna", "bert"], "test": ["s1", "s1"]})
        Trials(2 models, 1 segments, 2 trials)
        """
        return cls._from_columns(frame_columns(frame, {"model": model, "segment": segment}))

    @classmethod
    def _from_columns(cls: type[Self], columns: dict[str, np.ndarray], **others: Any) -> Self:
        return cls.from_ids(ids_of(columns["model"], "model"), ids_of(columns["segment"], "segment"), **others)

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name: ``model`` and ``segment``, and ``target``, ``type`` or ``score``."""
        return {"model": self.model_ids[self.models], "segment": self.segment_ids[self.segments]}

    def _repr_html_(self) -> str:
        shown = self if len(self) <= _ROWS else self.subset(np.arange(_ROWS))
        more = [f"... and {len(self) - len(shown):,} trials more"] if len(shown) < len(self) else []
        return html_table(shown.to_columns(), caption=repr(self), notes=more)

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        counts = f"{len(self.model_ids)} models, {len(self.segment_ids)} segments, {len(self)} trials"
        return f"{type(self).__name__}({counts})"

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield (model id, segment id) of each trial."""
        return zip(self.model_ids[self.models], self.segment_ids[self.segments], strict=True)

    def subset(self: Self, rows: np.ndarray) -> Self:
        """Select trials, by a mask or by row numbers; the id tables, and so the codes, stay as they are."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self._per_trial_columns()})

    def trials(self) -> Trials:
        """Return the pairs alone, without scores or labels."""
        return Trials(self.model_ids, self.segment_ids, self.models, self.segments)

    def _per_trial_columns(self) -> list[str]:
        return [f.name for f in fields(self) if f.name in self._per_trial and getattr(self, f.name) is not None]


@dataclass(frozen=True, eq=False, repr=False)
class Key(Trials):
    """Trials with their truth.

    Parameters
    ----------
    model_ids, segment_ids, models, segments
        See `Trials`.
    is_target : ndarray of bool of shape (N,)
        Whether model and segment come from the same speaker (and, in RSR2015, with the right sentence).
    types : ndarray of int8 of shape (N,), optional
        For each trial the place of its type in `type_names`.
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

    _per_trial: ClassVar[tuple[str, ...]] = ("models", "segments", "is_target", "types")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._freeze_column("is_target", bool)
        object.__setattr__(self, "type_names", tuple(self.type_names))
        if self.types is not None:
            self._freeze_column("types", np.int8)
            if self.types.size and not (self.types.min() >= 0 and self.types.max() < len(self.type_names)):
                raise DataError(f"expected types from 0 to {len(self.type_names) - 1}, got {self.types.max()}")

    @classmethod
    def from_ids(  # type: ignore[override]  # a key cannot be built without its truth
        cls,
        models: Sequence[str],
        segments: Sequence[str],
        is_target: Sequence[bool] | np.ndarray,
        types: Sequence[str] | None = None,
    ) -> Key:
        """Build a key from the ids, the truth and, if known, the type names of each trial; see `Trials.from_ids`."""
        columns: dict[str, Any] = {"is_target": np.asarray(is_target, bool)}
        if types is not None:
            names, codes = factorise(types)
            columns.update(types=codes.astype(np.int8), type_names=tuple(names))
        return super().from_ids(models, segments, **columns)

    @classmethod
    def from_frame(
        cls, frame: Any, *, model: str | None = None, segment: str | None = None, label: str | None = None
    ) -> Key:
        """Build a key from a data frame; see `Trials.from_frame`.

        Labels are true and false, 1 and 0, or text such as ``target`` and ``nontarget``; a column ``type`` is kept.

        Examples
        --------
        >>> columns = {"enroll": ["anna", "anna"], "test": ["s1", "s2"], "label": [1, 0]}
        >>> Key.from_frame(columns).is_target.tolist()
        [True, False]
        """
        wanted = {"model": model, "segment": segment, "label": label}
        columns = frame_columns(frame, wanted, {"types": "type"})
        types = {"types": ids_of(columns["types"], "type")} if "types" in columns else {}
        return cls._from_columns(columns, is_target=truth_of(columns["label"]), **types)

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        names = np.array(self.type_names, object)
        return (
            super().to_columns()
            | {"target": self.is_target}
            | ({} if self.types is None else {"type": names[self.types]})
        )

    def of_types(self, *names: str) -> Key:
        """Select the trials of the named types.

        Raises
        ------
        DataError
            If the key holds no types, or not one of these.
        """
        unknown = [name for name in names if name not in self.type_names]
        if self.types is None or unknown:
            raise DataError(f"expected trial types among {', '.join(self.type_names) or '(none)'}, got {unknown}")
        return self.subset(np.isin(self.types, [self.type_names.index(name) for name in names]))


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Trials):
    """Trials with their scores: the higher, the more alike.

    Parameters
    ----------
    model_ids, segment_ids, models, segments
        See `Trials`.
    values : ndarray of float64 of shape (N,)
        Scores; infinite ones are legal, NaN is not.

    Raises
    ------
    DataError
        If a score is NaN, or as for `Trials`.
    """

    values: np.ndarray

    _per_trial: ClassVar[tuple[str, ...]] = ("models", "segments", "values")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._freeze_column("values", np.float64)
        bad = np.flatnonzero(np.isnan(self.values))
        if len(bad):
            some = name_some(self, bad)
            raise DataError(
                f"{counted(len(bad), 'score')} not a number (NaN): {some}", remedy="score these trials anew"
            )

    @classmethod
    def from_ids(  # type: ignore[override]  # scores cannot be built without their values
        cls, models: Sequence[str], segments: Sequence[str], values: Sequence[float] | np.ndarray
    ) -> Scores:
        """Build scores from the ids and the score of each trial; see `Trials.from_ids`."""
        return super().from_ids(models, segments, values=np.asarray(values, np.float64))

    @classmethod
    def from_frame(
        cls, frame: Any, *, model: str | None = None, segment: str | None = None, score: str | None = None
    ) -> Scores:
        """Build scores from a data frame; see `Trials.from_frame`.

        Examples
        --------
        >>> Scores.from_frame({"enroll": ["anna"], "test": ["s1"], "cos_sim": [0.7]}).to_columns()["score"]
        array([0.7])
        """
        columns = frame_columns(frame, {"model": model, "segment": segment, "score": score})
        return cls._from_columns(columns, values=numbers_of(columns["score"], "scores"))

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        return super().to_columns() | {"score": self.values}


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def name_trial(trials: Trials, row: int) -> str:
    """Name a trial by its ids, for an error."""
    return f"'{trials.model_ids[trials.models[row]]} {trials.segment_ids[trials.segments[row]]}'"


def name_some(trials: Trials, rows: np.ndarray) -> str:
    """Name the first few of some trials, for an error."""
    names = ", ".join(name_trial(trials, row) for row in rows[:_MAX_NAMED])
    return names + (f" and {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else "")
