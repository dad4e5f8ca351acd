"""Scores of systems on the same trials, given as lists by id, as arrays, or as a data frame.

`compare` and `fuse` take the same forms: `Scores` by name with a `Key`; arrays by name with labels; a data frame with a
column of scores for each system. All become lists of trials with ids; trials without ids are numbered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials.columns import Missing, check_index, column_of, known_column
from evaluation.trials.joining import find_rows, scores_of_trials
from evaluation.trials.labels import truth_of
from evaluation.trials.lists import Key, Scores, Self, Trials
from evaluation.trials.speakers import UnknownSpeakersError
from spkbase.errors import DataError, errors_of

logger = logging.getLogger(__name__)

_NEEDED = {
    1: ("the speaker of each", "speakers=array, or a column of the data frame"),
    2: (
        "both speakers of each",
        "speakers=(those of models, those of segments), two arrays; folds=0 needs none",
    ),
}


def given_systems(
    systems: Any,
    key: Any,
    labels: Any,
    scores: Sequence[str],
    columns: Mapping[str, str | None],
    speakers: Any,
    *,
    n_speakers: int = 1,
    missing: Missing = "error",
) -> tuple[dict[str, Scores], Key, dict[str, Any]]:
    """Return the scores of systems, their key and the speakers of models and segments.

    Parameters
    ----------
    systems, key, labels, scores, speakers
        See `evaluation.compare`; `speakers` may be a pair, for models and for segments.
    columns : mapping of str to str or None
        Columns of a data frame for ``label``, ``model`` and ``segment``.
    n_speakers : int
        How many speakers of each trial must be known if trials have no ids: 0, 1 or 2.
    missing : {"error", "drop", "reject"}
        What to do with scores of arrays that are NaN; see `Scores.acquired`.

    Raises
    ------
    DataError
        If the arguments do not fit together.
    """
    if labels is not None:
        if key is not None:
            raise DataError("expected a key or labels, got both", remedy="leave out one")
        key = labels
    if isinstance(systems, Mapping) and isinstance(key, Key):
        return dict(systems), key, _speaker_maps(speakers, ((), ()))
    ids: Any = None
    if hasattr(systems, "columns") or scores:
        systems, key, ids, speakers = _of_frame(systems, key, scores, columns, speakers)
    if (
        not isinstance(systems, Mapping)
        or key is None
        or any(isinstance(part, Trials) for part in (key, *systems.values()))
    ):
        text = f"expected Scores by name and a Key, got {type(systems).__name__} and {type(key).__name__}"
        raise DataError(text, remedy="or arrays by name with labels=, or a data frame with scores=")
    if ids is None:
        _check_known(speakers, n_speakers)
        ids = [[f"trial {row}" for row in range(len(key))]] * 2
    is_target = truth_of(key)
    check_index(**{**systems, "the labels": key})
    models, segments = ids
    known = {}
    for name, part in systems.items():
        known[name] = Scores.from_ids(models, segments, part, missing=missing)
    return known, Key.from_ids(models, segments, is_target), _speaker_maps(speakers, ids)


def stack_systems(
    systems: Iterable[tuple[str, Scores]], trials: Self, *, missing: Missing = "error"
) -> tuple[NDArray[np.float64], Self]:
    """Return the scores of each trial by each system, shape (N, K), and the trials that all systems scored.

    Parameters
    ----------
    systems : iterable of tuple of str and Scores
        Names and scores of K systems, joined by id.
    trials : Trials
        The trials, such as a key.
    missing : {"error", "drop", "reject"}
        What to do with trials without a score; see `split_scores`.

    Raises
    ------
    DataError
        With the name of the system: if it is not `Scores`, or as in `scores_of_trials`.
    """
    parts = []
    for name, system in systems:
        with errors_of(None, before=f"{name}: "):
            if not isinstance(system, Scores):
                raise DataError(f"expected Scores, got {type(system).__name__}")
            values, trials = scores_of_trials(system, trials, missing=missing)
        parts.append((values, trials))
    columns = [values[find_rows(trials, kept)] for values, kept in parts]
    return np.column_stack(columns), trials


def warn_of_repeats(scores: Mapping[str, np.ndarray]) -> None:
    """Warn where two systems have the same scores of the same trials.

    Parameters
    ----------
    scores : mapping of str to ndarray of float64 of shape (N,)
        Scores of each system, in the same order of trials.
    """
    for first, second in combinations(scores, 2):
        if np.array_equal(scores[first], scores[second]):
            logger.warning(
                "%s and %s have the same scores: was the same one given for two systems?",
                first,
                second,
            )


def _of_frame(
    frame: Any, key: Any, scores: Sequence[str], columns: Mapping[str, str | None], speakers: Any
) -> tuple[dict[str, Any], Any, tuple[Any, Any] | None, Any]:
    """Return the scores of systems, the labels, the ids if there are any, and the speakers of a data frame."""
    titles = [str(title) for title in getattr(frame, "columns", frame)]
    unknown = [name for name in scores if name not in titles]
    if unknown or not scores:
        text = f"expected columns of scores out of {', '.join(titles)}, got {list(scores)}"
        raise DataError(text, remedy="name the columns that hold scores")
    chosen = {role: _column(role, titles, name) for role, name in columns.items()}
    if key is None and chosen["label"]:
        key = frame[chosen["label"]]
    ids = None
    if chosen["model"] and chosen["segment"]:
        ids = (frame[chosen["model"]], frame[chosen["segment"]])
    if isinstance(speakers, str) and speakers in titles:
        speakers = frame[speakers]
        ids = None  # the rows of the data frame are trials of this speaker, whatever the other side
    return {name: frame[name] for name in scores}, key, ids, speakers


def _check_known(speakers: Any, n_speakers: int) -> None:
    """Check that speakers are given for each trial if trials have no ids."""
    pair = speakers if _is_pair(speakers) else (speakers,)
    n_known = sum(np.ndim(side) == 1 for side in pair)
    if n_known < n_speakers:
        needed, remedy = _NEEDED[n_speakers]
        text = f"the speakers are not known: trials without ids need {needed}"
        raise UnknownSpeakersError(text, remedy=remedy)


def _speaker_maps(speakers: Any, ids: Sequence[Any]) -> dict[str, Any]:
    """Return the speakers of models and of segments, as `find_speakers` takes them."""
    pair = speakers if _is_pair(speakers) else (speakers, speakers)
    maps = {}
    for name, names, side in zip(("model_speakers", "segment_speakers"), ids, pair, strict=True):
        maps[name] = side
        if np.ndim(side) == 1 and len(names):
            owners = [str(owner) for owner in column_of(side, "speakers")]
            pairs = set(zip(names, owners, strict=False))
            maps[name] = dict(pairs)
            if len(owners) != len(names) or len(pairs) > len(maps[name]):
                text = f"expected one speaker of each id of {len(names)} trials, got {len(owners)}"
                raise DataError(
                    text, remedy="give a speaker of each trial, the same for the same id"
                )
    return maps


def _is_pair(speakers: Any) -> bool:
    return isinstance(speakers, tuple) and len(speakers) == 2


def _column(role: str, titles: Sequence[str], name: str | None) -> str | None:
    """Return the column of a data frame with a role; None if there is none."""
    if name is None:
        return known_column(role, titles, remedy=f"name the one that counts: {role}={{}}")
    if name not in titles:
        raise DataError(f"no column {name!r} for {role}; the columns are: {', '.join(titles)}")
    return name
