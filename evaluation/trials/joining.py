"""Scores joined with a key or a list of trials: by the pair of ids, never by row.

Each pair of codes is encoded as one number, and lists are joined by these numbers. A trial without a score and a score
with an unknown id are errors unless the caller says otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluation.trials.columns import DONE, Missing, TrialError, check_missing, known_column
from evaluation.trials.ids import recode
from evaluation.trials.labels import are_labels, split_by_labels
from evaluation.trials.lists import Key, Scores, Self, Trials
from evaluation.trials.spellings import folded, loosened
from spkbase.errors import DataError, counted

logger = logging.getLogger(__name__)


def split_scores(
    scores: Scores, key: Key, *, missing: Missing = "error"
) -> tuple[np.ndarray, np.ndarray]:
    """Split scores into those of target and of nontarget trials, joined by id pair.

    A key may be a selection of the trials that were scored: scores of other pairs of ids that the key knows are left
    out. A warning states their number, unless the key is a selection made by `Trials.subset` or `Key.of_types`. An id
    that the key does not know is an error, because it may be misspelt.

    Parameters
    ----------
    scores : Scores
        Scores in any order.
    key : Key
        The key, with the truth of each trial.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score: stop, drop them, or count them as rejected at every
        threshold, by a score of minus infinity. Scores of models or segments that the key does not know are dropped
        unless it is "error". The log states the numbers.

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
    values, key = join_scores(scores, key, missing=missing)
    return values[key.is_target], values[~key.is_target]


def by_class(
    target: Any, nontarget: Any = None, labels: Any = None, *, missing: Missing = "error"
) -> tuple[Any, Any]:
    """Return the scores of target and of nontarget trials, in any of the accepted forms.

    Parameters
    ----------
    target, nontarget : array_like of float, Scores and Key, or data frame
        Scores of both classes; or `Scores` with their `Key`; or scores of all trials with truth values or text as the
        second argument; or a data frame alone, whose columns of scores and labels have known names.
    labels : array_like of bool, of 0 and 1, or of str, or Key, optional
        The class of each score of the first argument, instead of a second argument.
    missing : {"error", "drop", "reject"}
        See `split_scores`; only for `Scores` and `Key`.

    Raises
    ------
    DataError
        If both a second argument and labels are given, or as in `split_scores` and `split_by_labels`.

    Examples
    --------
    >>> by_class({"score": [0.5, -1.0], "label": [1, 0]})
    (array([0.5]), array([-1.]))
    """
    if labels is not None and nontarget is not None:
        remedy = "give (target, nontarget), or (scores, labels=labels)"
        raise DataError(
            "expected scores by class, or scores of all trials and labels", remedy=remedy
        )
    if nontarget is None and labels is None:
        target, labels = _columns_of_frame(target)
    lists = any(isinstance(part, Trials) for part in (target, nontarget, labels))
    if labels is None and nontarget is not None and (lists or are_labels(nontarget)):
        labels = nontarget
    if lists:
        return split_scores(target, labels, missing=missing)
    if labels is None:
        return target, nontarget
    split = split_by_labels(target, labels, missing=missing)
    return split["target"], split["nontarget"]


def _columns_of_frame(frame: Any) -> tuple[Any, Any]:
    """Return the columns of scores and of labels of a data frame or mapping.

    Anything else is returned without labels.
    """
    titles = getattr(frame, "columns", None)
    if isinstance(frame, Mapping):
        titles = list(frame)
    if titles is None or isinstance(frame, Trials):
        return frame, None
    names = [str(title) for title in titles]
    score = known_column("score", names, remedy="give it alone: frame[{}], labels=...")
    label = known_column("label", names, remedy="give it alone: labels=frame[{}]")
    if score is None or label is None:
        text = f"expected a column of scores and one of labels, got {', '.join(names)}"
        raise DataError(text, remedy="choose them: frame['plda'], labels=frame['same']")
    return frame[score], frame[label]


def join_scores(scores: Scores, key: Key, *, missing: Missing = "error") -> tuple[np.ndarray, Key]:
    """Return the scores in the order of a key, and the key without the trials that were dropped; see `split_scores`."""
    check_missing(missing)
    if not (isinstance(scores, Scores) and isinstance(key, Key)):
        raise DataError(
            f"expected Scores and a Key, got {type(scores).__name__} and {type(key).__name__}",
            remedy="give arrays their ids: Scores.from_ids(models, segments, values), Key.from_ids(...)",
        )
    rows = find_rows(key, scores)
    n_extra = len(scores) - int((rows >= 0).sum())
    # report unknown ids first: if both occur, a misspelt id has caused the missing trials
    if n_extra > 0:
        n_extra -= _unknown_ids(scores, key, missing)
    return _resolved(scores, key, rows, n_extra, missing)


def scores_of_trials(
    scores: Scores, trials: Self, *, missing: Missing = "error"
) -> tuple[np.ndarray, Self]:
    """Return the scores in the order of a list of trials, and the trials that were kept.

    Unlike `join_scores` it takes any list of trials, even if it lacks ids of the scores.
    """
    rows = find_rows(trials, scores)
    return _resolved(scores, trials, rows, len(scores) - int((rows >= 0).sum()), missing)


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
    if (rows < 0).any():
        raise _without_score(trials, rows)
    values: np.ndarray = scores.values[rows]
    return values


def find_rows(trials: Trials, within: Trials) -> np.ndarray:
    """Find each trial in another list, by its id pair.

    Returns
    -------
    ndarray of int of shape (len(trials),)
        Row in `within`, or -1 if it lacks the pair.
    """
    models = recode(trials.model_ids, within.model_ids)[trials.models]
    segments = recode(trials.segment_ids, within.segment_ids)[trials.segments]
    if np.array_equal(models, within.models) and np.array_equal(segments, within.segments):
        return np.arange(len(trials))
    # imported here: lists in equal order, the usual case, avoid its 0.2 s
    import pandas

    n_segments = len(within.segment_ids)
    wanted = np.where(
        (models < 0) | (segments < 0), -1, models.astype(np.int64) * n_segments + segments
    )
    pairs = pandas.Index(within.models.astype(np.int64) * n_segments + within.segments)
    rows: np.ndarray = pairs.get_indexer(wanted)
    return rows


def order_free_digest(key: Key) -> int:
    """Return a hash that is equal for keys with the same trials and labels, in any order.

    It is the sum over trials of a mixed hash of model, segment and truth, without sorting. Python's own hashes differ
    between processes.

    Examples
    --------
    >>> key = Key.from_ids(["a", "b"], ["s", "t"], is_target=[True, False])
    >>> order_free_digest(key) == order_free_digest(key.subset([1, 0]))
    True
    >>> order_free_digest(key) == order_free_digest(Key.from_ids(["a", "b"], ["s", "t"], is_target=[True, True]))
    False
    """
    tables = key.model_ids, key.segment_ids
    models, segments = (
        np.fromiter(map(hash, ids), np.int64, len(ids)).view(np.uint64) for ids in tables
    )
    # odd multipliers spread bits over a word
    mixed = models[key.models] * np.uint64(0x9E3779B97F4A7C15) + key.is_target
    mixed = (mixed ^ (mixed >> np.uint64(31)) ^ segments[key.segments]) * np.uint64(
        0xD6E8FEB86659FD93
    )
    return int((mixed ^ (mixed >> np.uint64(29))).sum(dtype=np.uint64))


def _unknown_ids(scores: Scores, key: Key, missing: Missing) -> int:
    """Count scores with an id unknown to the key: raise an error, or warn that they are dropped."""
    unknown_models = recode(scores.model_ids, key.model_ids)[scores.models] < 0
    unknown_segments = recode(scores.segment_ids, key.segment_ids)[scores.segments] < 0
    strange = np.flatnonzero(unknown_models | unknown_segments)
    if not len(strange):
        return 0
    model, segment = next(scores.subset(strange[:1]).pairs())
    if unknown_models[strange[0]]:
        noun = "model"
        own = model
        known = key.model_ids
    else:
        noun = "segment"
        own = segment
        known = key.segment_ids
    text = f"{counted(len(strange), 'score')} with an id that the key does not know, such as the {noun} '{own}': "
    text += scores.named(strange)
    if missing == "error":
        raise TrialError(text, strange, side="scores", remedy=_remedy_for(own, known))
    logger.warning("dropped %s", text)
    return len(strange)


def _remedy_for(identity: str, known: np.ndarray) -> str:
    """Return the remedy for an unknown id, which the key may spell differently."""
    ids = known.tolist()
    for alike in ids:
        if folded(alike) == folded(identity):
            return f"the key has {alike!a}, which differs in case or Unicode form: make them equal"
    for alike in ids:
        if loosened(alike) == loosened(identity):
            spelling = (
                "is another spelling: match_ids(scores, key), or --match-ids loose, joins such ids"
            )
            return f"the key has {alike!a}, which {spelling}"
    return "check the ids, or drop unknown ones: missing='drop'"


def _resolved(
    scores: Scores, trials: Self, rows: np.ndarray, n_others: int, missing: Missing
) -> tuple[np.ndarray, Self]:
    """Treat trials without a score according to `missing`, and count the scores of other pairs."""
    if n_others and not trials._selected:
        which = "key" if isinstance(trials, Key) else "list"
        logger.warning(
            f"{n_others:,} of {len(scores):,} scores belong to pairs that the {which} lacks"
        )
    if (rows >= 0).all():
        return scores.values[rows], trials
    error = _without_score(
        trials, rows, remedy="score every trial, or drop missing ones: missing='drop'"
    )
    if missing == "error":
        raise error
    logger.warning("%s %s", DONE[missing], error.text)
    if missing == "reject":
        return np.where(rows < 0, -np.inf, scores.values[rows]), trials
    return scores.values[rows[rows >= 0]], trials.subset(rows >= 0)


def _without_score(
    trials: Trials, rows: np.ndarray, *, remedy: str = "score every trial"
) -> TrialError:
    absent = np.flatnonzero(rows < 0)
    text = (
        f"{counted(len(absent), 'trial')} of {len(trials)} without a score: {trials.named(absent)}"
    )
    return TrialError(text, absent, side="key", remedy=remedy)
