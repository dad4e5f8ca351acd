"""Conversion of users' columns and tables to arrays, and checks for implausible arguments.

Series and data frames of pandas, polars and similar libraries are used through their common interface, so none of these
libraries is imported: a column is an object with ``to_numpy`` or ``__array__``, or a sequence; a data frame is an
object with ``columns`` that returns a column by name. An index, as in pandas, identifies rows: columns that are given
together must have the same index, and the index of a data frame of vectors names the vectors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import ComputedRows, StoredArray
from spkbase.errors import DataError, few

logger = logging.getLogger(__name__)

Missing = Literal["error", "drop", "reject"]

DONE = {"drop": "dropped", "reject": "counted as rejected"}
"""What is done with trials that lack a score, in words."""

COLUMN_NAMES = {
    "model": (
        *(
            "model",
            "model_id",
            "modelid",
            "enrol",
            "enroll",
            "enrolment",
            "enrollment",
            "enrol_id",
            "enroll_id",
        ),
        *(
            "enrolment_id",
            "enrollment_id",
            "reference",
            "bio_ref_template_id",
            "bio_ref_subject_id",
        ),
        *(
            "enrol_utt",
            "enroll_utt",
            "enrol_path",
            "enroll_path",
            "enrol_file",
            "enroll_file",
            "enrol_wav",
        ),
        *("enroll_wav", "utt1", "file1", "path1", "wav1", "audio1", "id1"),
    ),
    "segment": (
        *(
            "segment",
            "segment_id",
            "segmentid",
            "test",
            "test_id",
            "trial",
            "trial_id",
            "utterance",
            "utt",
        ),
        *("probe", "probe_id", "probe_template_id", "probe_key"),
        *(
            "test_utt",
            "test_path",
            "test_file",
            "test_wav",
            "utt2",
            "file2",
            "path2",
            "wav2",
            "audio2",
            "id2",
        ),
    ),
    "score": (
        *(
            "score",
            "scores",
            "llr",
            "value",
            "similarity",
            "cos_sim",
            "cosine",
            "cosine_score",
            "cosine_similarity",
        ),
        *("plda", "plda_score", "sim"),
    ),
    "label": (
        *(
            "target",
            "is_target",
            "label",
            "targettype",
            "truth",
            "labels",
            "same",
            "is_same",
            "same_speaker",
        ),
        *("ground_truth", "gt", "y_true"),
    ),
    "claimed": ("bio_ref_subject_id",),
    "real": ("probe_subject_id",),
}
"""Known names of columns in headers of tables and data frames, by role, in upper or lower case."""

_NO_DIMENSION = re.compile(
    r"unnamed\W.*|level.?\d|index|ids?|no|nr|idx|wav|path|sex|gender|accent|lang(uage)?|fold|split|emotion|cls"
    r"|((utt(erance)?|utts|spkr?|speaker|client|subject|user|person|segment|session|rec(ording)?|file(name)?|model|class"
    r"|label|row|target|test|trial|probe|enrol(l?ment)?|enroll|reference)s?([ _.-]*(ids?|idx|index|no|nr|num(ber)?|code"
    r"|name|label|key|type))?|(is_)?same(_speaker)?|is_target|(ground_?)?truth|gt|y_true)",
    re.IGNORECASE,
)
"""Names that mean that a column of a data frame is not a dimension of a vector."""

_NUMBER = re.compile(r"\d+$")

_FEWEST = 5  # with at least this many rows, a column that counts them is not a coincidence


class TrialError(DataError):
    """Error in some trials of a list; readers of files turn rows into lines.

    Parameters
    ----------
    text : str
        What was expected, and what was found.
    rows : sequence of int
        Rows of the list, from 0.
    side : {"", "scores", "key"}
        The list to which the rows belong, if two lists were joined.
    **where
        See `DataError`.
    """

    def __init__(
        self, text: str, rows: Sequence[int] | np.ndarray = (), *, side: str = "", **where: Any
    ) -> None:
        self.rows = [int(row) for row in rows]
        self.side = side
        super().__init__(text, **where)

    def _message(self) -> str:
        message = super()._message()
        if self.rows and not self.side:
            message = f"row {few(self.rows)}: {message}"
        return message


def column_of(values: Any, name: str) -> np.ndarray:
    """Return a column as an array of shape (N,).

    Parameters
    ----------
    values : array_like, or a Series of pandas, polars or a similar library
    name : str
        What the column holds, for the error message, such as ``"scores"``.

    Raises
    ------
    DataError
        If it is not a single column of values, or some values are masked.
    """
    column = array_of(values, name)
    if column.ndim != 1:
        remedy = "choose the column of the data frame" if hasattr(values, "columns") else None
        raise DataError(f"expected {name} of shape (N,), got {column.shape}", remedy=remedy)
    return column


def vectors_of(values: Any, name: str = "vectors") -> Any:
    """Return vectors as a floating-point array of shape (n, D); floats are not copied.

    Parameters
    ----------
    values : array_like of shape (n, D), a data frame of pandas, polars or a similar library, or Rows
        Whole numbers become float64; rows in a file stay there and are returned unchanged. Columns of a data frame
        whose names end in numbers are taken in the order of these, so that two frames agree.
    name : str
        What the rows are, for the error message.

    Raises
    ------
    DataError
        If the values are not rows of real numbers, or a column holds ids, speakers or row numbers.
    """
    # rows in a file are not loaded into memory
    if isinstance(values, StoredArray | ComputedRows):
        return values
    rows = floats_of(values, name)
    if rows.ndim != 2:
        raise DataError(f"expected {name} of shape (n, D), got {rows.shape}")
    check_dimensions(values, rows, name)
    numbers = [_NUMBER.search(str(title)) for title in getattr(values, "columns", [])]
    order = np.argsort([int(number[0]) for number in numbers if number], kind="stable")
    if len(order) == rows.shape[1]:
        return rows[:, order]
    return rows


def check_dimensions(values: Any, rows: NDArray[np.floating], name: str = "vectors") -> None:
    """Refuse columns of ids, speakers or row numbers among the dimensions of vectors.

    Columns are recognised by name in a data frame, or by rising whole numbers next to fractions. Other whole numbers in
    a data frame may be an attribute or a feature, so there is a warning.

    Parameters
    ----------
    values : array_like of shape (n, D), or data frame
        As the user gave them.
    rows : ndarray of shape (n, D)
        The same as an array.
    name : str
        Name of the vectors, for the error message.

    Raises
    ------
    DataError
        With the name or the number of the column.
    """
    _refuse_mask(values, name)
    titles = [str(title).strip() for title in getattr(values, "columns", [])]
    remedy = "leave it out of the vectors: ids and speakers are arguments of their own, or the index of a data frame"
    for title in filter(_NO_DIMENSION.fullmatch, titles):
        raise DataError(
            f"the name of column {title!r} shows that it cannot be a dimension of {name}",
            remedy=remedy,
        )
    head = np.asarray(rows[:_FEWEST], np.float64)
    whole = (head == np.floor(head)).all(axis=0)
    if len(head) < _FEWEST or whole.all():
        return
    rising = (head[1:] > head[:-1]).all(axis=0)
    for column in np.flatnonzero(whole & (rising | bool(titles))).tolist():
        numbers = rows[:, column]
        if numbers.min() == numbers.max() or (numbers != np.floor(numbers)).any():
            continue
        text = f"column {(titles or range(len(whole)))[column]!r} of {name} holds whole numbers beside fractions"
        if (numbers[1:] >= numbers[:-1]).all():
            raise DataError(f"{text}, which rise like the numbers of rows or groups", remedy=remedy)
        logger.warning("%s: is it a dimension?", text)


def known_columns(role: str, titles: Sequence[str]) -> list[str]:
    """Return the columns of a header whose names are known for a role, better names first.

    The ISO names are synonyms for the same column: only the first of them is returned.

    Parameters
    ----------
    role : str
        Key of `COLUMN_NAMES`.
    titles : sequence of str
        Names of all columns.

    Examples
    --------
    >>> known_columns("score", ["model", "segment", "LLR", "score"])
    ['score', 'LLR']
    """
    names = COLUMN_NAMES[role]
    known = sorted(
        (title for title in titles if title.lower() in names),
        key=lambda title: names.index(title.lower()),
    )
    is_iso = all(title.lower().startswith(("bio_ref_", "probe_")) for title in known)
    if is_iso:
        return known[:1]
    return known


def known_column(role: str, titles: Sequence[str], *, remedy: str) -> str | None:
    """Return the column of a data frame whose name is known for a role; None if there is none.

    Parameters
    ----------
    role : str
        Key of `COLUMN_NAMES`.
    titles : sequence of str
        Names of all columns.
    remedy : str
        What to do if several columns may be meant; ``{}`` stands for the best name among them.

    Raises
    ------
    DataError
        If several columns may be meant.
    """
    known = known_columns(role, titles)
    if len(set(known)) > 1:
        text = f"expected one column for {role}, got {' and '.join(known)}"
        raise DataError(text, remedy=remedy.format(repr(known[0])))
    return next(iter(known), None)


def check_index(part: str = "index", /, **given: Any) -> Any:
    """Refuse columns and data frames with different indices.

    Matched by position, they would silently give wrong numbers. Columns without an index are not checked.

    Parameters
    ----------
    part : {"index", "columns"}
        Columns and data frames that must have the same index.
    **given : array_like, Series, data frame or None
        The columns, by the name of the argument.

    Returns
    -------
    Index or None
        The common index; None if it only holds row numbers.

    Raises
    ------
    DataError
        If two differ; both are named.

    Examples
    --------
    >>> import pandas
    >>> check_index(scores=pandas.Series([1, 2]), labels=[True, False])
    >>> check_index(scores=pandas.Series([1, 2]), labels=pandas.Series([True, False], index=[1, 0]))
    Traceback (most recent call last):
      ...
    spkbase.errors.DataError: expected scores and labels with the same index, but they differ \
(sort or join them by their index, or give arrays if the order is right)
    """
    every: dict[str, Any] = {name: getattr(values, part, None) for name, values in given.items()}
    indices = {name: index for name, index in every.items() if hasattr(index, "equals")}
    shared = next(iter(indices), "")
    for name, index in indices.items():
        if not index.equals(indices[shared]):
            remedy = f"sort or join them by their {part}, or give arrays if the order is right"
            raise DataError(
                f"expected {shared} and {name} with the same {part}, but they differ",
                remedy=remedy,
            )
    index = indices.get(shared)
    if type(index).__name__ == "RangeIndex":
        return None
    return index


def check_missing(missing: str) -> None:
    """Check the treatment of trials without a score."""
    if missing not in ("error", *DONE):
        raise DataError(f"expected missing to be 'error', 'drop' or 'reject', got {missing!r}")


def acquired_scores(
    values: Any, name: str, missing: Missing = "error", *, rejected: float = -np.inf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Handle scores that are NaN because no voice could be acquired; return the scores and a mask of those that count.

    Parameters
    ----------
    values : array_like of float of shape (N,), or a Series
    name : str
        Name of the scores in errors and in the warning that counts NaN.
    missing : {"error", "drop", "reject"}
        Treatment of NaN: an error, leave the trials out, or count them as rejected at every threshold.
    rejected : float
        The score of a rejection; infinity for distances.

    Raises
    ------
    DataError
        If a value is not a number, or is NaN and `missing` is "error".
    """
    check_missing(missing)
    if missing == "error":
        remedy = "score these trials again; ev.evaluate and ev.sort_scores take missing='drop' and missing='reject'"
        numbers = numbers_of(values, name, remedy=remedy)
        return numbers, np.ones(len(numbers), bool)
    numbers = floats_of(column_of(values, name), name).astype(np.float64)
    failed = np.isnan(numbers)
    if failed.any():
        logger.warning(
            "%s %d of %d %s that are not a number (NaN)",
            DONE[missing],
            failed.sum(),
            len(failed),
            name,
        )
        numbers[failed] = rejected
    return numbers, ~failed | (missing == "reject")


def numbers_of(values: Any, name: str, *, remedy: str | None = None) -> np.ndarray:
    """Return a column as float64.

    Parameters
    ----------
    values : array_like of float of shape (N,), or a Series
        Infinite values are allowed.
    name : str
        Name of the numbers in errors.
    remedy : str, optional
        Remedy for NaN, for the error.

    Raises
    ------
    DataError
        If a value is not a number, NaN or missing; the first rows are named.
    """
    numbers = floats_of(column_of(values, name), name).astype(np.float64)
    bad = np.flatnonzero(np.isnan(numbers))
    if len(bad):
        text = f"expected numbers as {name}, got {len(bad)} NaN or missing among {len(numbers)}"
        raise TrialError(text, bad, remedy=remedy)
    return numbers


def floats_of(values: Any, name: str) -> NDArray[np.floating]:
    """Return real numbers as a floating-point array of any shape; float32 and float64 are not copied.

    Raises
    ------
    DataError
        If a value is not a real number; the first row is named.
    """
    array = array_of(values, name)
    kind = array.dtype.kind
    if kind == "f" and array.dtype != np.float16:  # sums in half precision would overflow
        return array
    if kind not in "fiu":
        for index, cell in np.ndenumerate(array.astype(object)):
            if kind != "O" or isinstance(cell, bool) or not isinstance(cell, Real):
                text = f"expected numbers as {name}, got {cell!r:.60}"
                raise TrialError(
                    text, index[:1], remedy="give numbers, without text, truth values or gaps"
                )
    return array.astype(np.float64)


def ids_of(column: Any, name: str) -> list[str]:
    """Return ids as text; whole numbers, as which data frames read ids of digits, are converted."""
    ids: list[Any] = column_of(column, name).tolist()
    for row, cell in enumerate(ids):
        if type(cell) is int:
            ids[row] = str(cell)
        elif not isinstance(cell, str) or not cell:
            text = f"expected {name} as text, got {cell!r:.60}"
            raise TrialError(text, [row], remedy="read the column as text, without gaps")
    return ids


def array_of(values: Any, name: str) -> np.ndarray:
    """Return an argument as an array of any type."""
    _refuse_mask(values, name)
    try:
        if hasattr(values, "detach"):  # a tensor, which may need a gradient or lie on a device
            values = values.detach().cpu().double()
        if hasattr(values, "to_numpy"):
            values = values.to_numpy()
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"expected {name} of shape (N,), got {type(values).__name__}: {error}"
        ) from error


def _refuse_mask(values: Any, name: str) -> None:
    if np.ma.is_masked(values):
        raise DataError(
            f"expected {name} without a mask", remedy="leave the masked trials out, or score them"
        )
