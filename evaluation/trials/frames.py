"""Columns of data frames, and scores that come with labels: what notebooks hold instead of files.

Series and data frames of pandas, polars and their like are taken for what they can do, not for what they are, so none
of these libraries is imported: a column is what has ``to_numpy`` or ``__array__`` or is a sequence, a data frame what
has ``columns`` and gives a column by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spkbase.errors import DataError, few

TRUTHS = {"target": True, "nontarget": False, "1": True, "0": False, "true": True, "false": False}
"""What a label says; in any case of letters."""
COLUMN_NAMES = {
    "model": (
        *("model", "model_id", "modelid", "enrol", "enroll", "enrolment", "enrollment", "enrol_id", "enroll_id"),
        *("enrolment_id", "enrollment_id", "reference", "bio_ref_template_id", "bio_ref_subject_id"),
        *("enrol_utt", "enroll_utt", "enrol_path", "enroll_path", "enrol_file", "enroll_file", "enrol_wav"),
        *("enroll_wav", "utt1", "file1", "path1", "wav1", "audio1", "id1"),
    ),
    "segment": (
        *("segment", "segment_id", "segmentid", "test", "test_id", "trial", "trial_id", "utterance", "utt"),
        *("probe", "probe_id", "probe_template_id", "probe_key"),
        *("test_utt", "test_path", "test_file", "test_wav", "utt2", "file2", "path2", "wav2", "audio2", "id2"),
    ),
    "score": (
        *("score", "scores", "llr", "value", "similarity", "cos_sim", "cosine", "cosine_score", "cosine_similarity"),
        *("plda", "plda_score", "sim"),
    ),
    "label": (
        *("target", "is_target", "label", "targettype", "truth", "labels", "same", "is_same", "same_speaker"),
        *("ground_truth", "gt", "y_true"),
    ),
    "claimed": ("bio_ref_subject_id",),
    "real": ("probe_subject_id",),
}
"""Names of columns that headers of tables and data frames have, by role; in any case of letters."""
_MANY = 20  # numbers: so many 0 and 1 beside other numbers are labels


def column_of(values: Any, name: str) -> np.ndarray:
    """Return a column as an array of shape (N,).

    Parameters
    ----------
    values : array_like, or a Series of pandas, polars or their like
        What it holds.
    name : str
        What it is, for the error: ``"scores"``, say.

    Raises
    ------
    DataError
        If it is no column of values.
    """
    try:
        if hasattr(values, "detach"):  # a tensor, which may need a gradient or lie on a device
            values = values.detach().cpu()
            values = values.float() if "bfloat16" in str(values.dtype) else values  # which NumPy does not know
        column = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"expected {name} of shape (N,), got {type(values).__name__}: {error}") from error
    if column.ndim != 1:
        remedy = "choose the column of the data frame" if hasattr(values, "columns") else None
        raise DataError(f"expected {name} of shape (N,), got {column.shape}", remedy=remedy)
    return column


def truth_of(labels: Any, name: str = "labels") -> np.ndarray:
    """Return whether each label says target.

    Parameters
    ----------
    labels : array_like of bool, of 0 and 1, or of str of shape (N,)
        Text is ``target`` or ``nontarget``, ``true`` or ``false``, ``1`` or ``0``.
    name : str
        What they are, for the error.

    Returns
    -------
    ndarray of bool of shape (N,)

    Raises
    ------
    DataError
        If a label says neither; the first few are named.

    Examples
    --------
    >>> truth_of(["target", "nontarget"]).tolist(), truth_of([1, 0, 0]).tolist()
    ([True, False], [True, False, False])
    """
    column = column_of(labels, name)
    if column.dtype.kind == "b":
        return column
    if column.dtype.kind in "iuf" and ((column == 0) | (column == 1)).all():
        return column == 1
    truths = np.zeros(len(column), bool)
    strange: list[str] = []
    for row, label in enumerate(column.tolist()):
        truth = TRUTHS.get(label.lower()) if isinstance(label, str) else _number_says(label)
        if truth is None:
            strange.append(f"{label!r:.40} (row {row})")
        else:
            truths[row] = truth
    if strange:
        remedy = "true and false, 1 and 0, or target and nontarget; are scores and labels exchanged?"
        raise DataError(f"expected target or nontarget as {name}, got {few(strange)}", remedy=remedy)
    return truths


def are_labels(others: Any) -> bool:
    """Return whether what stands beside scores are their labels, and not scores of the other class.

    Truth values and text are labels; numbers 0 and 1 are not taken for them, but `evaluation.metrics.sort_scores`
    refuses them beside scores.

    Examples
    --------
    >>> are_labels([True, False]), are_labels([0.2, 0.0])
    (True, False)
    """
    column = np.asarray(others.to_numpy() if hasattr(others, "to_numpy") else others)
    is_text = column.dtype.kind == "O" and all(isinstance(cell, str) for cell in column.flat)
    return bool(column.size) and (column.dtype.kind in "bUST" or is_text)


def refuse_labels(target: np.ndarray, nontarget: np.ndarray) -> None:
    """Refuse labels in the place of scores, as in scikit-learn's ``metric(y_true, y_score)``.

    Refused are truth values, and numbers that are all 0 and 1, or -1 and 1, beside as many scores. Two values on either
    side (decisions), and a few numbers with a point, may be the scores of either class.

    Parameters
    ----------
    target, nontarget : ndarray of shapes (n_target,) and (n_nontarget,)
        What was given as scores.

    Raises
    ------
    DataError
        If one of the two holds labels.
    """
    for name, labels, scores in (("target", target, nontarget), ("nontarget", nontarget, target)):
        kinds = labels.dtype.kind, scores.dtype.kind
        if labels.shape != scores.shape or not labels.size or kinds[0] not in "biuf" or kinds[1] not in "iuf":
            continue
        low, high = labels.min(), labels.max()
        if kinds[0] != "b" and not ((low, high) in ((0, 1), (-1, 1)) and ((labels == low) | (labels == high)).all()):
            continue
        with np.errstate(invalid="ignore"):
            no_doubt = kinds[0] == "b" or (kinds[0] in "iu" and (scores % 1 > 0).any())
        if no_doubt or (len(labels) >= _MANY and len(np.unique(scores)) > 2):
            text = f"expected {name} scores, got {len(labels)} labels ({low + 0:g} and {high:g}), one for each score"
            remedy = f"give scores[labels == 1], scores[labels == {low + 0:g}]; ev.evaluate takes labels=labels"
            raise DataError(text, remedy=remedy)


def split_by_labels(scores: Any, labels: Any, weights: ArrayLike | None = None) -> dict[str, np.ndarray]:
    """Split scores into those of target and of nontarget trials by the label of each.

    Parameters
    ----------
    scores : array_like of float of shape (N,)
        Scores, or a Series.
    labels : array_like of bool, of 0 and 1, or of str of shape (N,)
        See `truth_of`.
    weights : array_like of float of shape (N,), optional
        How often each trial counts.

    Returns
    -------
    dict of str to ndarray
        ``target`` and ``nontarget``, and ``target_weights`` and ``nontarget_weights`` where there are any, as
        `evaluation.metrics.sort_scores` takes them.

    Raises
    ------
    DataError
        If lengths or the indices of two Series differ, a label says neither, or a score is no number or NaN.
    """
    _check_indices(scores, labels)
    values, is_target = numbers_of(scores, "scores"), truth_of(labels)
    if len(values) != len(is_target):
        raise DataError(f"expected a label for each of {len(values)} scores, got {len(is_target)}")
    split = {"target": values[is_target], "nontarget": values[~is_target]}
    if weights is not None:
        given = numbers_of(weights, "weights")
        if len(given) != len(values):
            raise DataError(f"expected a weight for each of {len(values)} scores, got {len(given)}")
        split |= {"target_weights": given[is_target], "nontarget_weights": given[~is_target]}
    return split


def numbers_of(values: Any, name: str) -> np.ndarray:
    """Return a column as float64.

    Parameters
    ----------
    values : array_like of float of shape (N,), or a Series
        Infinite ones are legal.
    name : str
        What they are, for the error.

    Raises
    ------
    DataError
        If one is no number, NaN or missing; the first row is named.
    """
    column = column_of(values, name)
    if column.dtype.kind not in "iuf":
        cells = enumerate(column.tolist())
        strange = [row for row, cell in cells if isinstance(cell, bool) or not isinstance(cell, (int, float))]
        if strange:
            got = f"{column[strange[0]]!r:.60} in row {strange[0]}"
            raise DataError(f"expected numbers as {name}, got {got}", remedy="give numbers: no text, no truth, no gap")
    numbers = column.astype(np.float64)
    bad = np.flatnonzero(np.isnan(numbers))
    if len(bad):
        text = f"expected numbers as {name}, got {len(bad)} NaN or missing among {len(numbers)} (row {bad[0]} first)"
        raise DataError(text, remedy="score these trials anew, or drop their rows")
    return numbers


def frame_columns(
    frame: Any, wanted: Mapping[str, str | None], optional: Mapping[str, str] | None = None
) -> dict[str, np.ndarray]:
    """Return the columns of a data frame by their roles.

    Parameters
    ----------
    frame : data frame, or mapping of str to columns
        Of pandas, polars or their like.
    wanted : mapping of str to str
        For each role the name of its column; None for the first name in `COLUMN_NAMES` that the frame has.
    optional : mapping of str to str, optional
        Columns that may be there, by role.

    Returns
    -------
    dict of str to ndarray
        By role; what is optional only where it is there.

    Raises
    ------
    DataError
        If a column is missing, is there twice, or has another length; all that are missing are named at once.
    """
    names = [str(name) for name in (frame.columns if hasattr(frame, "columns") else frame)]
    places = {role: name if name is not None else _known(role, names) for role, name in wanted.items()}
    lacking = [role for role, name in places.items() if name not in names]
    if lacking:
        text = f"expected a column for {' and '.join(lacking)}, got {', '.join(names)[:200] or 'none'}"
        raise DataError(text, remedy=f"name it: {', '.join(f'{role}=...' for role in lacking)}")
    places |= {role: name for role, name in (optional or {}).items() if name in names}
    for name in places.values():
        if names.count(str(name)) > 1:
            raise DataError(f"expected one column {name!r}, got {names.count(str(name))}", remedy="rename one of them")
    columns = {role: column_of(frame[name], f"column {name!r}") for role, name in places.items()}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise DataError(f"expected columns of one length, got {sorted(lengths)}")
    return columns


def ids_of(column: np.ndarray, name: str) -> list[str]:
    """Return a column of ids as text; whole numbers are written out, since data frames read ids of digits as numbers.

    Raises
    ------
    DataError
        If an id is empty, missing, or neither text nor a whole number; the first row is named.
    """
    ids = column.tolist()
    for row, identity in enumerate(ids):
        if isinstance(identity, int) and not isinstance(identity, bool):
            ids[row] = str(identity)
        elif not isinstance(identity, str) or not identity:
            got = f"{identity!r:.60} in row {row}"
            raise DataError(f"expected ids of {name}s as text, got {got}", remedy="read the column as text, no gaps")
    return ids


def _known(role: str, names: Sequence[str]) -> str | None:
    lower = [name.lower() for name in names]
    return next((names[lower.index(known)] for known in COLUMN_NAMES[role] if known in lower), None)


def _number_says(label: Any) -> bool | None:
    return bool(label) if isinstance(label, (bool, int, float)) and label in (0, 1) else None


def _check_indices(scores: Any, labels: Any) -> None:
    """Refuse two Series whose rows are not the same ones: taken by position they would give wrong numbers silently."""
    ours, theirs = getattr(scores, "index", None), getattr(labels, "index", None)
    if ours is not None and hasattr(ours, "equals") and hasattr(theirs, "equals") and not ours.equals(theirs):
        remedy = "sort or join them by their index, or give arrays if the order is right"
        raise DataError("expected scores and labels with the same index, but the two differ", remedy=remedy)
