"""Lists that belong together, joined by id pair and never by row."""

from __future__ import annotations

import logging
from hashlib import blake2b
from typing import Literal

import numpy as np

from evaluation.trials.lists import Key, Scores, Trials, counted, name_some
from evaluation.trials.pairs import find_codes, pair_codes, recode
from spkbase.errors import DataError

logger = logging.getLogger(__name__)

_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)  # multipliers that spread bits over a word


class JoinError(DataError):
    """Scores and key do not fit together: the first trial that does not stands in `row` of the `side`."""

    side: Literal["scores", "key"] | None = None
    row: int | None = None


def order_free_digest(key: Key) -> int:
    """Return a number of 64 bits that keys share which hold the same trials with the same truth, in whatever order.

    It is the sum over trials of a mixed hash of model, segment and truth: no sort, and no text for each trial.

    Examples
    --------
    >>> key = Key.from_ids(["a", "b"], ["s", "t"], is_target=[True, False])
    >>> order_free_digest(key) == order_free_digest(key.subset([1, 0]))
    True
    >>> order_free_digest(key) == order_free_digest(Key.from_ids(["a", "b"], ["s", "t"], is_target=[True, True]))
    False
    """
    models, segments = map(_hashes, (key.model_ids, key.segment_ids))
    mixed = models[key.models] * np.uint64(_ODD[0]) + segments[key.segments] * np.uint64(_ODD[1]) + key.is_target
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(_ODD[2])
    return int((mixed ^ (mixed >> np.uint64(29))).sum(dtype=np.uint64))


def _hashes(ids: np.ndarray) -> np.ndarray:
    digests = (blake2b(name.encode(errors="surrogateescape"), digest_size=8).digest() for name in ids)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


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
    text = f"{counted(len(absent), 'trial')} of {len(trials)} without a score: {name_some(trials, absent)}"
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
            f"{counted(len(strange), 'score')} with an id that the key does not know, such as the "
            f"{'model' if strange_models[row] else 'segment'} '{strange_id}': {name_some(scores, strange)}"
        )
        if unknown == "error":
            raise _join_error(text, "scores", row, "check the ids, or ask to drop unknown ones")
        logger.warning("dropped %s", text)
    if n_extra > len(strange):
        logger.info("left out %s of pairs that the key does not ask for", counted(n_extra - len(strange), "score"))


def _join_error(text: str, side: Literal["scores", "key"], row: int, remedy: str) -> JoinError:
    error = JoinError(text, remedy=remedy)
    error.side, error.row = side, int(row)
    return error
