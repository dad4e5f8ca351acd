"""Writing lists in the column orders of other tools; see `evaluation.formats.layouts` for who writes which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np

from evaluation.formats.layouts import Content, forced_layout
from evaluation.formats.text import write_columns
from evaluation.trials import Key, Scores, Trials, find_rows
from spkbase.errors import DataError

# Who writes 1 and 0 where the others write target and nontarget.
_NUMBERS = ("speechbrain", "voxceleb")


def write_in_order(
    path: str | Path,
    trials: Scores | Key,
    layout: str,
    *,
    key: Key | None = None,
    speakers: Mapping[str, str] | None = None,
) -> None:
    """Write scores or a key as text in another tool's order of columns.

    Parameters
    ----------
    path : path
        Text; ``.gz`` behind the name compresses it.
    trials : Scores or Key
    layout : str
        A name or roles, see `evaluation.formats.layouts`.
    key : Key, optional
        The truth of scores, for orders that hold it.
    speakers : mapping of str to str, optional
        Speaker of each segment, for the real identity in bob's orders.

    Raises
    ------
    DataError
        If the order needs a key or speakers that are not given, or one lacks a trial.
    """
    content: Content = "scores" if isinstance(trials, Scores) else "key"
    roles = forced_layout(layout, content)
    if "-" in roles:
        raise DataError(f"cannot write the order {' '.join(roles)}: '-' passes over a column when reading only")
    truth = trials if isinstance(trials, Key) else key
    columns: dict[str, list[str]] = {"model": _ids(trials.model_ids, trials.models)}
    columns |= {"segment": _ids(trials.segment_ids, trials.segments), "claimed": columns["model"]}
    if isinstance(trials, Scores):
        columns["score"] = list(map(repr, trials.values.tolist()))
    elif "score" in roles:
        raise DataError(f"the order {' '.join(roles)} holds scores, a key has none", remedy="convert the scores")
    if "label" in roles or "real" in roles:
        is_target = _truth_of(trials, truth)
        words = ("0", "1") if layout in _NUMBERS else ("nontarget", "target")
        columns["label"] = [words[truth] for truth in is_target.astype(int).tolist()]
        if "real" in roles:
            columns["real"] = _real(columns, is_target, speakers)
    write_columns(path, trials, [columns[role] for role in roles])


def _ids(table: np.ndarray, codes: np.ndarray) -> list[str]:
    return cast(list[str], table[codes].tolist())


def _truth_of(trials: Trials, key: Key | None) -> np.ndarray:
    if key is None:
        raise DataError("this order holds the truth of each trial", remedy="give the key")
    rows = find_rows(trials, key)
    if (rows < 0).any():
        row = int(np.argmax(rows < 0))
        name = f"{trials.model_ids[trials.models[row]]} {trials.segment_ids[trials.segments[row]]}"
        raise DataError(f"{int((rows < 0).sum())} trials are not in the key, such as '{name}'", remedy="give their key")
    return key.is_target[rows]


def _real(columns: Mapping[str, list[str]], is_target: np.ndarray, speakers: Mapping[str, str] | None) -> list[str]:
    """Who really speaks: the model in target trials, else the segment's speaker."""
    if speakers is None and not is_target.all():
        raise DataError(
            "this order holds who really speaks in each segment", remedy="give the speakers of the segments"
        )
    real = []
    for model, segment, same in zip(columns["model"], columns["segment"], is_target, strict=True):
        speaker = model if same else (speakers or {}).get(segment)
        if speaker is None:
            raise DataError(f"the speaker of segment {segment!r} is not known", remedy="add it to the speakers")
        if speaker == model and not same:
            raise DataError(
                f"'{model} {segment}' is a nontarget trial, but the speaker of the segment is the model",
                remedy="check the speakers: bob takes equal identities for a target",
            )
        real.append(speaker)
    return real
