"""Scores and a key from files, joined; errors name the file and the line of what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from evaluation.formats.format import DETECT, Choice
from evaluation.formats.reading import find_line, read_key, read_scores
from evaluation.trials import JoinError, Key, Scores, split_scores
from spkbase.errors import DataError


def read_split(
    scores: str | Path,
    key: str | Path,
    *,
    missing: Literal["error", "drop"] = "error",
    scores_columns: Choice = DETECT,
    key_columns: Choice = DETECT,
    binary: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Read scores and their key, and split the scores into those of target and of nontarget trials.

    Parameters
    ----------
    scores, key : path
        Files of any format; the same file may be both.
    missing : {"error", "drop"}
        What to do with trials without a score and with scores of unknown ids; dropped ones are counted in the log.
    scores_columns, key_columns : Choice
        What is said about the columns of each file.
    binary : bool
        Scores of 0 and 1 alone are meant; see `read_scores_and_key`.

    Returns
    -------
    target, nontarget : ndarray of float64

    Raises
    ------
    DataError
        With file and line, if a file is malformed or the two do not fit together.
    """
    return join(
        *read_scores_and_key(scores, key, scores_columns=scores_columns, key_columns=key_columns, binary=binary),
        files=(scores, key),
        missing=missing,
        columns=(scores_columns, key_columns),
    )


def read_scores_and_key(
    scores: str | Path,
    key: str | Path,
    *,
    scores_columns: Choice = DETECT,
    key_columns: Choice = DETECT,
    binary: bool = False,
) -> tuple[Scores, Key]:
    """Read scores and a key.

    Parameters
    ----------
    scores, key : path
        Files of any format; the same file may be both.
    scores_columns, key_columns : Choice
        What is said about the columns of each file.
    binary : bool
        Scores of 0 and 1 alone are meant: decisions. They are refused otherwise, because labels that are read as scores
        have an EER of 0.

    Raises
    ------
    DataError
        With file and line, if a file is malformed; or if scores are labels.
    """
    found = read_scores(scores, scores_columns)
    if not binary and np.array_equal(np.unique(np.abs(found.values)), [0, 1]):
        remedy = "exchange scores and key if this is the key; --binary-scores if such decisions are meant"
        raise DataError("the scores are 0 and 1 alone, as the labels of a key are", file=scores, remedy=remedy)
    return found, read_key(key, key_columns)


def join(
    scores: Scores,
    key: Key,
    *,
    files: tuple[str | Path, str | Path],
    missing: Literal["error", "drop"] = "error",
    columns: tuple[Choice, Choice] = (DETECT, DETECT),
) -> tuple[np.ndarray, np.ndarray]:
    """Split scores by a key as `split_scores` does, with errors that name the place in the files they came from."""
    try:
        return split_scores(scores, key, missing=missing, unknown=missing)
    except DataError as error:
        remedy = f"{error.remedy}: --missing drop" if error.remedy else "--missing drop leaves such trials out"
        line = None
        if isinstance(error, JoinError) and error.row is not None and error.side is not None:
            place = 0 if error.side == "scores" else 1
            line = find_line(files[place], error.row, columns[place])
            if error.side == "key":
                text = f"with the scores {files[0]}: {error.text}"
                raise DataError(text, file=files[1], line=line, remedy=remedy) from error
        raise DataError(f"with the key {files[1]}: {error.text}", file=files[0], line=line, remedy=remedy) from error
