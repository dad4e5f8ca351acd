"""Words of labels: which of them mean a target trial, and scores split by them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.trials.columns import (
    Missing,
    TrialError,
    acquired_scores,
    array_of,
    check_index,
    column_of,
    numbers_of,
)
from spkbase.errors import DataError, few

# whole words, and y and n: other single letters are ambiguous
_PAIRS = (
    *(
        "target nontarget",
        "1 0",
        "1 -1",
        "true false",
        "tar imp",
        "tgt imp",
        "genuine impostor",
        "same different",
    ),
    *(
        "target non-target",
        "tar non",
        "tar nontar",
        "tgt nontgt",
        "client imposter",
        "positive negative",
        "pos neg",
    ),
    *(
        "mated nonmated",
        "mated non-mated",
        "match nonmatch",
        "match non-match",
        "match mismatch",
        "matched mismatched",
    ),
    *("same diff", "yes no", "y n"),
)

TRUTHS: dict[str, bool] = {}
"""The meaning of each label, in upper or lower case."""

for _target, _nontarget in map(str.split, _PAIRS):
    TRUTHS |= {_target: True, _nontarget: False}

_FEWEST = 5  # number of scores that are checked before the others
# if at least this share of the scores is distinct, equal scores are not a coincidence
_CERTAIN = 0.9

_FEW = 4  # at least this many values of 0 and 1 given with fractions may be labels

_MANY = 20  # at least this many values of 0 and 1 given with other numbers are labels

logger = logging.getLogger(__name__)


class LabelError(TrialError):
    """Error: a label means neither target nor nontarget."""


def truth_of(labels: Any) -> np.ndarray:
    """Return whether each label means target.

    Parameters
    ----------
    labels : array_like of bool, of 1 and 0 or -1, or of str of shape (N,)
        Text is ``target`` or ``nontarget``, or another pair of `TRUTHS`.

    Returns
    -------
    ndarray of bool of shape (N,)

    Raises
    ------
    DataError
        If a label means neither; the first few are named.

    Examples
    --------
    >>> truth_of(["target", "nontarget"]).tolist(), truth_of([1, 0, 0]).tolist()
    ([True, False], [True, False, False])
    """
    column = column_of(labels, "labels")
    if column.dtype.kind in "biuf" and any(np.isin(column, (1, other)).all() for other in (0, -1)):
        is_target: np.ndarray = column == 1
        return is_target
    cells = column.tolist()
    known = TRUTHS | {"1.0": True, "0.0": False}
    truth = {cell: known.get(str(cell).lower()) for cell in set(cells)}
    if {"-1", "0"} <= {str(cell) for cell in truth}:
        remedy = "-1 and 0 are both nontarget in one key or the other: leave out what is not known"
        wrong = [row for row, cell in enumerate(cells) if str(cell) == "-1"]
        raise LabelError("expected labels of two values, got 1, 0 and -1", wrong, remedy=remedy)
    if None in truth.values():
        raise _unknown_labels(cells, truth)
    return np.fromiter(map(truth.__getitem__, cells), bool, len(cells))


def _unknown_labels(cells: Sequence[Any], truth: Mapping[Any, bool | None]) -> LabelError:
    wrong = [row for row, cell in enumerate(cells) if truth[cell] is None]
    some = few(list(dict.fromkeys(f"{cells[row]!r:.40}" for row in wrong)))
    remedy = "pairs such as 1 and 0, true and false, tar and imp are read too; are scores and key exchanged?"
    if "spoof" in truth:
        remedy = "spoofed speech is of no speaker: leave its lines out"
    return LabelError(f"expected target or nontarget, got {some}", wrong, remedy=remedy)


def are_labels(others: Any) -> bool:
    """Return whether the second argument holds labels of scores, instead of scores of the other class.

    Booleans and text are labels. Numbers 0 and 1 are not treated as labels here, but
    `evaluation.metrics.sort_scores` refuses them together with scores.

    Examples
    --------
    >>> are_labels([True, False]), are_labels([0.2, 0.0])
    (True, False)
    """
    column = _inferred(array_of(others, "nontarget scores"))
    return bool(column.size) and column.dtype.kind in "bUST"


def check_classes(target: np.ndarray, nontarget: np.ndarray) -> None:
    """Refuse labels given as scores, as in scikit-learn's ``metric(y_true, y_score)``; warn of doubtful cases.

    An argument is refused if it is as long as the other one and holds truth values, or numbers that are all 0 and 1,
    -1 and 1, or any of these three. Two values in both arguments (decisions), and a few numbers with a point, are
    accepted, since they may be scores. If all target scores are among the nontarget ones, although these hardly
    repeat, the scores of all trials were probably given as nontarget scores: there is a warning.

    Parameters
    ----------
    target, nontarget : ndarray of shapes (n_target,) and (n_nontarget,)
        The arguments given as scores.

    Raises
    ------
    DataError
        If one of the two holds labels.
    """
    target = _inferred(target)
    nontarget = _inferred(nontarget)
    if not {target.dtype.kind, nontarget.dtype.kind} <= set("biuf") or not (
        target.size and nontarget.size
    ):
        return
    _refuse_labels("target", target, nontarget)
    _refuse_labels("nontarget", nontarget, target)
    if not (nontarget == target[0]).any():  # decides most cases quickly
        return
    shared = np.isin(nontarget, target[:_FEWEST]).sum()
    if shared < _FEWEST or len(np.unique(nontarget)) < _CERTAIN * len(nontarget):
        return
    if np.isin(target, nontarget).all():
        text = "all %d target scores are among the nontarget ones: give scores[labels == 0] as these, not all"
        logger.warning(text, len(target))


def split_by_labels(
    scores: Any, labels: Any, weights: ArrayLike | None = None, *, missing: Missing = "error"
) -> dict[str, Any]:
    """Split scores into those of target and of nontarget trials by the label of each.

    Parameters
    ----------
    scores : array_like of float of shape (N,)
        Scores, or a Series.
    labels : array_like of bool, of 0 and 1, or of str of shape (N,)
        See `truth_of`.
    weights : array_like of float of shape (N,), optional
        Weight of each trial.
    missing : {"error", "drop", "reject"}
        See `acquired_scores`.

    Returns
    -------
    dict of str to ndarray
        ``target`` and ``nontarget``, and ``target_weights`` and ``nontarget_weights`` if any, as
        `evaluation.metrics.sort_scores` takes them.

    Raises
    ------
    DataError
        If lengths or the indices of two Series differ, a label is unknown, or a score is NaN or not a number.
    """
    check_index(scores=scores, labels=labels, weights=weights)
    is_target = truth_of(labels)
    values, counted = acquired_scores(scores, "scores", missing)
    columns = {"scores": values}
    if weights is not None:
        columns["weights"] = numbers_of(weights, "weights")
    for name, numbers in columns.items():
        if len(numbers) != len(is_target):
            raise DataError(
                f"expected a label for each of {len(numbers)} {name}, got {len(is_target)}"
            )
    split = {"target": values[is_target & counted], "nontarget": values[~is_target & counted]}
    if weights is not None:
        split["target_weights"] = columns["weights"][is_target & counted]
        split["nontarget_weights"] = columns["weights"][~is_target & counted]
    return split


def _inferred(column: np.ndarray) -> np.ndarray:
    """Return objects as an array of their common type."""
    if column.dtype.kind == "O":
        return np.array(column.tolist())
    return column


def _refuse_labels(name: str, labels: np.ndarray, scores: np.ndarray) -> None:
    if (
        labels.shape != scores.shape
        or scores.dtype.kind == "b"
        or not np.isin(labels[:_FEWEST], (-1, 0, 1)).all()
    ):
        return
    values = np.unique(labels)
    low = labels.min()
    high = labels.max()
    if labels.dtype.kind != "b" and not (1 < len(values) < 4 and np.isin(values, (-1, 0, 1)).all()):
        return
    with np.errstate(invalid="ignore"):
        fractions = (scores % 1 > 0).any()
    many = len(labels) >= _MANY and len(np.unique(scores)) > 2 and (fractions or len(values) == 2)
    got = f"{len(labels)} labels ({low + 0:g} and {high:g}), one for each score"
    remedy = (
        f"give scores[labels == 1], scores[labels == {low + 0:g}]; ev.evaluate takes labels=labels"
    )
    if many or labels.dtype.kind == "b" or (labels.dtype.kind in "iu" and fractions):
        raise DataError(f"expected {name} scores, got {got}", remedy=remedy)
    if fractions and len(labels) >= _FEW and not np.isin(scores, values).any():
        logger.warning("the %s scores look like %s: if they are, %s", name, got, remedy)
