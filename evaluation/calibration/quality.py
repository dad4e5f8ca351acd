"""Quality measures of recordings as columns of a calibration or a fusion [1]_ [2]_.

A score means less where a recording is short or noisy. A *measure* is a number for each recording: seconds of speech,
signal-to-noise ratio, norm of the vector, mean score against a cohort. A trial has two recordings; a *column* combines
their two values into one, and is named by its formula:

==========================================  =========================================================
column                                      number of a trial
==========================================  =========================================================
``min NAME``, ``max NAME``                  the smaller and the larger measure of model and segment
``model NAME``, ``segment NAME``            the measure of this side
``log(min NAME)``, ``log(segment NAME)``    the natural logarithm: the usual form of durations
==========================================  =========================================================

Columns are added to the scores, each with its weight: they move the log-likelihood ratio, and so the threshold.

References
----------
.. [1] J. Thienpondt, B. Desplanques and K. Demuynck, "The IDLab VoxSRC-20 submission: large margin fine-tuning and
   quality-aware score calibration", ICASSP 2021.
.. [2] M. I. Mandasari et al., "Quality measure functions for calibration of speaker recognition systems in various
   duration conditions", IEEE Transactions on Audio, Speech, and Language Processing 21, 2013.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Trials, floats_of, is_number
from spkbase.errors import DataError, few
from spkbase.files import read_id_list

Measures: TypeAlias = Mapping[str, Any]
"""Measures by name: each a mapping of ids to numbers, or a pair of mappings, for models and for segments."""

_COLUMN = re.compile(r"(?P<log>log\()?(?P<side>min|max|model|segment) (?P<name>.+?)(?(log)\))")


def default_columns(quality: Measures) -> tuple[str, ...]:
    """Return the columns ``min NAME`` and ``max NAME`` of each measure.

    Examples
    --------
    >>> default_columns({"snr": {"a": 12.0}})
    ('min snr', 'max snr')
    """
    columns: list[str] = []
    for name in quality:
        columns += [f"min {name}", f"max {name}"]
    return tuple(columns)


def check_columns(quality: Measures, columns: Sequence[str]) -> None:
    """Check that columns are formulas of the measures, and each measure is used.

    Raises
    ------
    DataError
        With what is expected.
    """
    used = {_formula(column)["name"] for column in columns}
    if used != set(quality):
        expected = few(used) or "no quality measures"
        text = f"expected {expected} for the columns {list(columns)}, got {few(set(quality)) or 'none'}"
        raise DataError(text, remedy="give these measures, each under its name")


def columns_of_trials(
    quality: Measures, columns: Sequence[str], trials: Trials
) -> NDArray[np.float64]:
    """Return the columns of quality measures of N trials.

    Parameters
    ----------
    quality : mapping of str to measures
        See `Measures`.
    columns : sequence of str, length Q
        Formulas, see the module.
    trials : Trials

    Returns
    -------
    ndarray of float64 of shape (N, Q)

    Raises
    ------
    DataError
        If an id has no measure, or one that is not finite or has no logarithm; the first few are named.

    Examples
    --------
    >>> trials = Trials.from_ids(["a", "a"], ["s", "t"])
    >>> columns_of_trials({"snr": {"a": 12.0, "s": 20.0, "t": 3.0}}, ["min snr", "segment snr"], trials)
    array([[12., 20.],
           [ 3.,  3.]])
    """
    values = np.empty((len(trials), len(columns)))
    for number, column in enumerate(columns):
        formula = _formula(column)
        measure = quality[formula["name"]]
        is_pair = isinstance(measure, tuple) and len(measure) == 2
        pair = measure if is_pair else (measure, measure)
        sides = []
        for side, own in zip(("model", "segment"), pair, strict=True):
            if formula["side"] in (side, "min", "max"):
                sides.append(_of_side(own, formula, side, trials))
        extreme = np.maximum if formula["side"] == "max" else np.minimum
        values[:, number] = extreme.reduce(sides)
    return values


def read_quality(paths: Sequence[str | Path]) -> dict[str, dict[str, float]]:
    """Read quality measures of recordings: lines ``id number``, as Kaldi's `utt2dur`.

    Parameters
    ----------
    paths : sequence of path
        Each file is named after its measure; files with the same name, such as two `utt2dur`, are joined.

    Returns
    -------
    dict of str to dict of str to float
        Measures by name.

    Raises
    ------
    DataError
        With the file, if a value is not a number, or an id has two values.
    """
    measures: dict[str, dict[str, float]] = {}
    for path in paths:
        name = Path(path).stem
        known = measures.setdefault(name, {})
        for identity, cell in read_id_list(path, "id number").items():
            number = float(cell) if is_number(cell) else np.nan
            if known.setdefault(identity, number) != number:
                text = f"expected one number as {name} of {identity!r}, got {cell!r}"
                raise DataError(text, file=path)
    return measures


def _formula(column: str) -> dict[str, Any]:
    formula = _COLUMN.fullmatch(column)
    if formula is None:
        text = f"expected a column such as 'min snr' or 'log(segment duration)', got {column!r}"
        raise DataError(text, remedy="the sides are min, max, model and segment")
    return formula.groupdict()


def _of_side(
    measure: Mapping[str, Any], formula: Mapping[str, Any], side: str, trials: Trials
) -> NDArray[np.float64]:
    """Return the measure of the model, or of the segment, of each trial, or its logarithm."""
    name = formula["name"]
    if not hasattr(measure, "get"):
        text = f"expected the {name} as a mapping of ids to numbers, got {type(measure).__name__}"
        raise DataError(text, remedy="or as a pair of mappings, for models and for segments")
    ids = getattr(trials, f"{side}_ids")
    codes = getattr(trials, f"{side}s")
    used = np.unique(codes)
    own = [measure.get(identity, np.nan) for identity in ids[used].tolist()]
    table = np.zeros(len(ids))
    table[used] = floats_of(np.array(own, object), name)
    kind = "finite"
    if formula["log"]:
        kind = "positive"
        table = np.log(np.where(table > 0, table, np.nan))
    wrong = used[~np.isfinite(table[used])]
    if len(wrong):
        text = f"{len(wrong)} of {len(used)} {side}s without a {kind} {name}: {few(ids[wrong].tolist(), repr)}"
        remedy = f"give it for all; the column 'segment {name}' needs that of segments alone"
        raise DataError(text, remedy=remedy)
    return np.asarray(table[codes])
