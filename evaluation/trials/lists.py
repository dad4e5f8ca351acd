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

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from evaluation.trials.pairs import checked_codes, checked_ids, factorise, find_codes, find_repeat, pair_codes, recode
from spkbase.errors import DataError

logger = logging.getLogger(__name__)

_MAX_NAMED = 3


class JoinError(DataError):
    """Scores and key do not fit together: the first trial that does not stands in `row` of the `side`."""

    side: Literal["scores", "key"] | None = None
    row: int | None = None


Self = TypeVar("Self", bound="Trials")


@dataclass(frozen=True, eq=False, repr=False)
class Trials:
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
                f"trial {_name(self, repeat[1])} is repeated (rows {repeat[0]} and {repeat[1]})",
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
            some = _name_some(self, bad)
            raise DataError(f"{_count(len(bad), 'score')} not a number (NaN): {some}", remedy="score these trials anew")

    @classmethod
    def from_ids(  # type: ignore[override]  # scores cannot be built without their values
        cls, models: Sequence[str], segments: Sequence[str], values: Sequence[float] | np.ndarray
    ) -> Scores:
        """Build scores from the ids and the score of each trial; see `Trials.from_ids`."""
        return super().from_ids(models, segments, values=np.asarray(values, np.float64))


def split_scores(
    scores: Scores,
    key: Key,
    *,
    missing: Literal["error", "drop"] = "error",
    unknown: Literal["error", "drop"] = "error",
) -> tuple[np.ndarray, np.ndarray]:
    """Split scores into those of target and of nontarget trials, joined by id pair.

    A key may be a selection of the trials that were scored: scores of other pairs of ids that the key knows are left
    out, with a count in the log. An id that the key does not know is an error, because it may be a misspelt one.

    Parameters
    ----------
    scores : Scores
        Scores in any order.
    key : Key
        The truth.
    missing : {"error", "drop"}
        What to do with trials of the key that have no score; dropped ones are counted in the log.
    unknown : {"error", "drop"}
        What to do with scores of models or segments that the key does not know.

    Returns
    -------
    target : ndarray of float64 of shape (n_target,)
        Scores of target trials, in the order of the key.
    nontarget : ndarray of float64 of shape (n_nontarget,)
        Scores of nontarget trials, in the order of the key.

    Raises
    ------
    DataError
        If a trial has no score or an id is unknown, unless these are to be dropped. The first few are named.

    Examples
    --------
    >>> key = Key.from_ids(["a", "b"], ["s", "s"], is_target=[True, False])
    >>> split_scores(Scores.from_ids(["b", "a"], ["s", "s"], [-1.0, 2.0]), key)
    (array([2.]), array([-1.]))
    """
    for name, choice in (("missing", missing), ("unknown", unknown)):
        if choice not in ("error", "drop"):
            raise DataError(f"expected {name} to be 'error' or 'drop', got {choice!r}")
    rows = find_rows(key, scores)
    absent = np.flatnonzero(rows < 0)
    # the unknown ids first: where both stand, a misspelt id is the cause and the missing trials its effect
    if len(key) - len(absent) < len(scores):
        _report_extra(scores, key, len(scores) - (len(key) - len(absent)), unknown)
    if len(absent):
        _report_missing(key, absent, missing)
    present = rows >= 0
    values = scores.values[rows[present]]
    is_target = key.is_target[present]
    return values[is_target], values[~is_target]


def align(scores: Scores, trials: Trials) -> np.ndarray:
    """Return the score of each trial, in the order of the trials.

    Returns
    -------
    ndarray of float64 of shape (len(trials),)

    Raises
    ------
    DataError
        If a trial has no score; the first few are named.
    """
    rows = find_rows(trials, scores)
    absent = np.flatnonzero(rows < 0)
    if len(absent):
        _report_missing(trials, absent, "error")
    return scores.values[rows]


def find_rows(trials: Trials, within: Trials) -> np.ndarray:
    """Find each trial in another list, by its id pair.

    Returns
    -------
    ndarray of int of shape (len(trials),)
        Row in `within`, or -1 where the pair is not there.
    """
    models = recode(trials.model_ids, within.model_ids)[trials.models]
    segments = recode(trials.segment_ids, within.segment_ids)[trials.segments]
    if np.array_equal(models, within.models) and np.array_equal(segments, within.segments):
        return np.arange(len(trials))
    wanted = pair_codes(models, segments, len(within.segment_ids))
    wanted[(models < 0) | (segments < 0)] = -1
    present = pair_codes(within.models, within.segments, len(within.segment_ids))
    return find_codes(wanted, present, len(within.model_ids) * len(within.segment_ids))


def _report_missing(trials: Trials, absent: np.ndarray, missing: str) -> None:
    text = f"{_count(len(absent), 'trial')} of {len(trials)} without a score: {_name_some(trials, absent)}"
    if missing == "error":
        raise _join_error(text, "key", absent[0], "score every trial, or ask to drop missing ones")
    logger.warning("dropped %s", text)


def _report_extra(scores: Scores, key: Key, n_extra: int, unknown: str) -> None:
    """Report scores outside the key: unknown ids are an error or a warning, other pairs a line in the log."""
    strange_models = recode(scores.model_ids, key.model_ids)[scores.models] < 0
    strange = np.flatnonzero(strange_models | (recode(scores.segment_ids, key.segment_ids)[scores.segments] < 0))
    if len(strange):
        row = strange[0]
        strange_id = (
            scores.model_ids[scores.models[row]] if strange_models[row] else scores.segment_ids[scores.segments[row]]
        )
        text = (
            f"{_count(len(strange), 'score')} with an id that the key does not know, such as the "
            f"{'model' if strange_models[row] else 'segment'} '{strange_id}': {_name_some(scores, strange)}"
        )
        if unknown == "error":
            raise _join_error(text, "scores", row, "check the ids, or ask to drop unknown ones")
        logger.warning("dropped %s", text)
    if n_extra > len(strange):
        logger.info("left out %s of pairs that the key does not ask for", _count(n_extra - len(strange), "score"))


def _join_error(text: str, side: Literal["scores", "key"], row: int, remedy: str) -> JoinError:
    error = JoinError(text, remedy=remedy)
    error.side, error.row = side, int(row)
    return error


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _name(trials: Trials, row: int) -> str:
    return f"'{trials.model_ids[trials.models[row]]} {trials.segment_ids[trials.segments[row]]}'"


def _name_some(trials: Trials, rows: np.ndarray) -> str:
    names = ", ".join(_name(trials, row) for row in rows[:_MAX_NAMED])
    return names + (f" and {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else "")
