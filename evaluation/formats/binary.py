"""Lists in binary files: the HDF5 matrices of SIDEKIT and BOSARIS, and NumPy's npz.

SIDEKIT and BOSARIS keep a list in HDF5 as a matrix, models by segments:

=========  ========================================================================================
Trials     ``modelset`` (M,), ``segset`` (S,), ``trial_mask`` int8 (M, S): 1 trial, 0 no trial
Key        the same with ``trial_mask`` 1 target, -1 nontarget, 0 no trial
Scores     ``modelset``, ``segset``, ``score_mask`` int8 (M, S): 1 scored, ``scores`` float64 (M, S)
=========  ========================================================================================

The matlab form names the ids ``/ID/row_ids`` and ``/ID/column_ids``. Both are read, the first is written, with gzip
and a checksum on every dataset. Trials are read in the order of the matrix: by model, then by segment.

Ids are fixed-length byte strings. Ids beyond ASCII are marked as UTF-8: SIDEKIT, which reads ASCII only, then stops
with an error instead of reading a wrong id. SIDEKIT also cuts ids at 100 characters; here they have any length.
A key with trial types has two more datasets, ``trial_types`` and ``type_names``, which SIDEKIT ignores.

An npz, which is read without pickle, holds

=================================  ==============================================================================
``model_ids``, ``segment_ids``     tables of distinct ids (text)
``models``, ``segments``           int32, shape (N,): index of each trial's ids in the tables
``scores`` or ``is_target``        float64 or bool, shape (N,)
=================================  ==============================================================================

Without tables, ``models`` and ``segments`` are the ids themselves (text of shape (N,)); this simpler form is read too.
"""

from __future__ import annotations

import logging
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.formats.text import ListFile
from evaluation.trials import Key, Scores, Trials, factorise, truth_of
from spkbase import plain_pickle
from spkbase.errors import DataError, errors_of
from spkbase.files import write_bytes
from spkbase.hdf5 import check_own, open_file, read_strings, write_column, write_ids

if TYPE_CHECKING:
    import h5py

logger = logging.getLogger(__name__)

_SIDEKIT_ID_LENGTH = 100
_ID_NAMES = {"models": ("modelset", "ID/row_ids"), "segments": ("segset", "ID/column_ids")}


def read_hdf5(file: ListFile) -> Trials:
    """Read an Ndx, a Key or Scores (in the layout of SIDEKIT or of Matlab); a Key can be read as trials.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        If the file is not HDF5 or truncated, a dataset is missing, shapes disagree, or a score is NaN.
    """
    remedy = "it may be truncated or no HDF5 file: copy or write it again"
    image = None
    if "content" in vars(file):  # the file was compressed
        image = BytesIO(file.content)
    with open_file(file.path, image=image, remedy=remedy) as lists:
        tables = (
            read_strings(_dataset(lists, *_ID_NAMES["models"])),
            read_strings(_dataset(lists, *_ID_NAMES["segments"])),
        )
        name = "score_mask" if file.kind == "scores" else "trial_mask"
        mask = _matrix(lists, name, tables)
        rows = np.nonzero(mask)
        models, segments = rows
        signs = mask[rows].astype(np.int8)
        if not len(signs) or not np.isin(signs, (-1, 1)).all():
            raise DataError(
                f"expected {name} of 1, 0 and -1 with some trials", remedy="write the list again"
            )
        if file.kind == "scores":
            values = _matrix(lists, "scores", tables)[rows]
            return Scores.acquired(*tables, models, segments, values, **file.choice.failures)
        if file.kind == "trials":
            return Trials(*tables, models, segments)
        if "trial_types" not in lists:
            return Key(*tables, models, segments, signs > 0)
        types = _matrix(lists, "trial_types", tables)[rows] - 1
        return Key(
            *tables,
            models,
            segments,
            signs > 0,
            types,
            tuple(read_strings(_dataset(lists, "type_names"))),
        )


def write_hdf5(path: str | Path, trials: Trials, *, matlab: bool = False) -> None:
    """Write an Ndx, a Key with its trial types, if any, or Scores.

    Parameters
    ----------
    path : path
        The file to write, atomically.
    trials : Trials, Key or Scores
        The list; its order within the matrix is lost.
    matlab : bool
        Scores in the form that SIDEKIT names matlab.

    Raises
    ------
    DataError
        If the list is empty, an id holds a zero byte, or the file cannot be written.
    """
    import h5py

    if not len(trials):
        raise DataError("expected trials to write, got an empty list", file=path)
    longest = max(map(len, (*trials.model_ids, *trials.segment_ids)))
    if longest > _SIDEKIT_ID_LENGTH:
        text = "%s: SIDEKIT will cut ids at %d characters; the longest has %d"
        logger.warning(text, path, _SIDEKIT_ID_LENGTH, longest)
    ones = np.ones(len(trials), np.int8)
    columns = {"trial_mask": ones}
    if isinstance(trials, Scores):
        columns = {"score_mask": ones, "scores": trials.values}
    elif isinstance(trials, Key):
        columns = {"trial_mask": np.where(trials.is_target, ones, -ones)}
        if trials.types is not None:
            columns["trial_types"] = trials.types + ones
    # built in memory: on a full disk the HDF5 library does not release a file, and prints its errors
    image = BytesIO()
    with h5py.File(image, "w") as file:
        for names, ids in zip(
            _ID_NAMES.values(), (trials.model_ids, trials.segment_ids), strict=True
        ):
            write_ids(file, names[matlab], ids)
        for name, values in columns.items():
            matrix = np.zeros((len(trials.model_ids), len(trials.segment_ids)), values.dtype)
            matrix[trials.models, trials.segments] = values
            write_column(file, name, matrix)
        if isinstance(trials, Key) and trials.types is not None:
            write_ids(file, "type_names", trials.type_names)
    write_bytes(path, image.getvalue())


def read_npz(file: ListFile) -> Trials:
    """Read a list of trials, a key or scores.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        If the file is broken, an array is missing or of the wrong kind, a pair is repeated, or a score is NaN.
    """
    arrays = plain_pickle.read_npz(BytesIO(file.content), file=file.path)
    with errors_of(file.path):
        columns: dict[str, Any] = {}
        for table, codes in (("model_ids", "models"), ("segment_ids", "segments")):
            if table in arrays:
                columns |= {
                    table: _column(arrays, table, "U").astype(object),
                    codes: _column(arrays, codes, "iu"),
                }
            else:
                columns[table], columns[codes] = factorise(_column(arrays, codes, "U"))
        if not len(columns["models"]):
            raise DataError("expected trials, got an empty list")
        if file.kind == "scores":
            trials = [columns[name] for name in ("model_ids", "segment_ids", "models", "segments")]
            return Scores.acquired(
                *trials, _column(arrays, "scores", "fiu"), **file.choice.failures
            )
        if file.kind == "trials":
            return Trials(**columns)
        return Key(**columns, is_target=truth_of(_column(arrays, "is_target", "biu")))


def write_npz(path: str | Path, trials: Trials) -> None:
    """Write trials, a key or scores; without trial types."""
    arrays = {
        "model_ids": trials.model_ids.astype(str),
        "segment_ids": trials.segment_ids.astype(str),
    }
    arrays |= {"models": trials.models, "segments": trials.segments}
    if isinstance(trials, Key):
        arrays["is_target"] = trials.is_target
    elif isinstance(trials, Scores):
        arrays["scores"] = trials.values
    content = BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_bytes(path, content.getvalue())


def _dataset(file: h5py.File, *names: str) -> h5py.Dataset:
    """Return the first dataset of these names."""
    import h5py

    dataset = next((file[name] for name in names if name in file), None)
    if not isinstance(dataset, h5py.Dataset):
        needed = {"modelset": "the ids of models", "segset": "the ids of segments"}.get(
            names[0], "a dataset"
        )
        text = f"expected {needed} ({' or '.join(names)}), got only {', '.join(file) or 'an empty file'}"
        raise DataError(
            text, remedy="choose the file that fits: an Ndx, a Key or Scores as SIDEKIT writes them"
        )
    check_own(dataset)
    return dataset


def _matrix(file: h5py.File, name: str, tables: tuple[np.ndarray, ...]) -> np.ndarray:
    matrix = _dataset(file, name)
    shape = tuple(map(len, tables))
    if matrix.shape != shape or matrix.dtype.kind not in "fiub":
        text = f"expected {name}: numbers of shape {shape} for its ids, got {matrix.dtype} of shape {matrix.shape}"
        raise DataError(text, remedy="the file is broken, or of another kind")
    values: np.ndarray = matrix[()]
    return values


def _column(arrays: dict[str, np.ndarray], name: str, kinds: str) -> np.ndarray:
    column = arrays.get(name)
    if column is None or column.ndim != 1 or column.dtype.kind not in kinds:
        if column is None:
            got = f"holds {', '.join(arrays) or 'nothing'}"
        else:
            got = f"is {column.dtype} of {column.shape}"
        raise DataError(f"expected an array {name} of shape (N,), but it {got}")
    return column
