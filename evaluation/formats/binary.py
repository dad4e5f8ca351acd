"""Lists in binary files: SIDEKIT's and BOSARIS' matrices in HDF5, and NumPy's npz.

**Lists as SIDEKIT and BOSARIS keep them in HDF5: a square matrix, models by segments.**

=========  ========================================================================================
Trials     ``modelset`` (M,), ``segset`` (S,), ``trial_mask`` int8 (M, S): 1 asked for, 0 not
Key        the same with ``trial_mask`` 1 target, -1 nontarget, 0 no trial
Scores     ``modelset``, ``segset``, ``score_mask`` int8 (M, S): 1 scored, ``scores`` float64 (M, S)
=========  ========================================================================================

The matlab form names the ids ``/ID/row_ids`` and ``/ID/column_ids``. Both are read, the first is written, with gzip
and a checksum on every dataset. What is read comes in the order of the matrix: by model, then by segment.

Ids are fixed-length byte strings. Ids beyond ASCII are marked as UTF-8: SIDEKIT, which reads ASCII alone, then stops
with an error rather than take a wrong id. SIDEKIT also cuts ids at 100 characters; here they have any length.
A key with trial types has two datasets more, ``trial_types`` and ``type_names``, which SIDEKIT passes over.

**Lists as NumPy's npz, without pickle.**

=================================  ==============================================================================
``model_ids``, ``segment_ids``     tables of distinct ids (text)
``models``, ``segments``           int32, shape (N,): place of each trial's ids in the tables
``scores`` or ``is_target``        float64 or bool, shape (N,)
=================================  ==============================================================================

Without tables, ``models`` and ``segments`` are the ids themselves (text of shape (N,)); this simpler form is read too.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evaluation.trials import Key, Scores, Trials, factorise
from spkbase.errors import DataError
from spkbase.files import write_bytes
from spkbase.hdf5 import open_file, read_strings
from spkbase.plain_pickle import read_npz

if TYPE_CHECKING:
    import h5py

logger = logging.getLogger(__name__)

Content = Literal["scores", "key", "trials"]
NPZ_MAGIC = b"PK\x03\x04"

_SIDEKIT_ID_LENGTH = 100
_CELLS_PER_BLOCK = 1 << 23
_CELLS_PER_CHUNK = 1 << 17
_ID_NAMES = {"models": ("modelset", "ID/row_ids"), "segments": ("segset", "ID/column_ids")}


def read_hdf5(path: str | Path, content: Content, image: BytesIO | None = None) -> Trials:
    """Read an Ndx, a Key or Scores, the latter in SIDEKIT's or in the matlab form; of a Key its trials can be read.

    Parameters
    ----------
    path : path
        The file.
    content : {"scores", "key", "trials"}
        What is read.
    image : BytesIO, optional
        Its bytes, where it had to be decompressed.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        If the file is not HDF5 or truncated, a dataset is missing, shapes disagree, or a score is NaN.
    """
    remedy = "it may be truncated or no HDF5 file: copy or write it again"
    with open_file(path, image=image, remedy=remedy) as file:
        tables = _strings(file, *_ID_NAMES["models"]), _strings(file, *_ID_NAMES["segments"])
        shape = (len(tables[0]), len(tables[1]))
        models, segments, signs = _read_mask(file, "score_mask" if content == "scores" else "trial_mask", shape)
        if content == "trials":
            return Trials(*tables, models, segments)
        if content == "key":
            types, type_names = None, ()
            if "trial_types" in file:
                types = _matrix(file, "trial_types", shape)[()][models, segments] - 1
                type_names = tuple(_strings(file, "type_names"))
            return Key(*tables, models, segments, is_target=signs > 0, types=types, type_names=type_names)
        matrix = _matrix(file, "scores", shape)
        values = [
            matrix[rows.start : rows.stop][models[some] - rows.start, segments[some]]
            for rows, some in _blocks(shape, models)
        ]
        return Scores(*tables, models, segments, values=np.concatenate(values).astype(np.float64, copy=False))


def write_hdf5(
    path: str | Path, trials: Trials, *, attributes: dict[str, str] | None = None, matlab: bool = False
) -> None:
    """Write an Ndx, a Key with its trial types where it has any, or Scores.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all.
    trials : Trials, Key or Scores
        The list; its order within the matrix is lost.
    attributes : dict of str, optional
        Attributes of the root, such as a fingerprint; SIDEKIT passes over them.
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
    # built in memory: on a full disk the HDF5 library does not let go of a file, and prints errors of its own
    image = BytesIO()
    with h5py.File(image, "w") as file:
        for names, ids in zip(_ID_NAMES.values(), (trials.model_ids, trials.segment_ids), strict=True):
            _write_strings(file, names[matlab], ids)
        file.attrs.update(attributes or {})
        ones = np.ones(len(trials), np.int8)
        if isinstance(trials, Scores):
            _write_matrix(file, "score_mask", trials, ones)
            _write_matrix(file, "scores", trials, trials.values)
        else:
            signs = np.where(trials.is_target, ones, -ones) if isinstance(trials, Key) else ones
            _write_matrix(file, "trial_mask", trials, signs)
        if isinstance(trials, Key) and trials.types is not None:
            _write_matrix(file, "trial_types", trials, trials.types + ones)
            _write_strings(file, "type_names", np.array(trials.type_names, dtype=object))
    write_bytes(path, image.getvalue())


def _dataset(file: h5py.File, *names: str) -> h5py.Dataset:
    """Return the first dataset of these names, which is no group and not empty."""
    name = next((name for name in names if name in file), None)
    if name is None:
        what = {"modelset": "the ids of models", "segset": "the ids of segments"}.get(names[0])
        wanted = names[0] if what is None else f"{what} ({' or '.join(names)})"
        remedy = "choose the file that fits: an Ndx, a Key or Scores as SIDEKIT writes them"
        raise DataError(f"expected {wanted}, got only {', '.join(file) or 'an empty file'}", remedy=remedy)
    dataset = file[name]
    if not hasattr(dataset, "shape") or dataset.shape is None:
        raise DataError(f"expected {name} to be an array, got {dataset}")
    return dataset


def _strings(file: h5py.File, *names: str) -> np.ndarray:
    return read_strings(_dataset(file, *names))


def _matrix(file: h5py.File, name: str, shape: tuple[int, int]) -> h5py.Dataset:
    matrix = _dataset(file, name)
    if matrix.shape != shape or matrix.dtype.kind not in "fiub":
        text = f"expected {name}: numbers of shape {shape} for its ids, got {matrix.dtype} of shape {matrix.shape}"
        raise DataError(text, remedy="the file is broken, or of another kind")
    return matrix


def _read_mask(file: h5py.File, name: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return model and segment code and sign of each trial, row by row of the matrix."""
    matrix = _matrix(file, name, shape)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for rows, _ in _blocks(shape, np.empty(0, np.int32)):
        block = matrix[rows.start : rows.stop]
        models, segments = np.nonzero(block)
        signs = block[models, segments]
        if not (right := np.isin(signs, (-1, 1))).all():
            raise DataError(f"expected {name} of 1, 0 and -1, got {signs[~right][0]}")
        parts.append(((models + rows.start).astype(np.int32), segments.astype(np.int32), signs.astype(np.int8)))
    models, segments, signs = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not len(signs):
        raise DataError(f"expected trials, got a {name} of zeros", remedy="write the list again")
    return models, segments, signs


def _write_strings(file: h5py.File, name: str, ids: np.ndarray) -> None:
    import h5py

    try:
        raw = [text.encode("utf-8") for text in ids]
    except UnicodeEncodeError as error:
        raise DataError(f"id {error.object!r} cannot be written as UTF-8", remedy="rename it") from error
    if (padded := next((text for text in raw if b"\0" in text), None)) is not None:
        raise DataError(f"id {padded!r} holds a zero byte, which ends a string in HDF5", remedy="rename it")
    charset = "ascii" if all(map(bytes.isascii, raw)) else "utf-8"
    column = np.array(raw, dtype=h5py.string_dtype(charset, max(map(len, raw))))
    file.create_dataset(name, data=column, maxshape=(None,), compression="gzip", fletcher32=True)


def _write_matrix(file: h5py.File, name: str, trials: Trials, values: np.ndarray) -> None:
    """Scatter one value for each trial into a square matrix, some rows at a time."""
    shape = (len(trials.model_ids), len(trials.segment_ids))
    matrix = file.create_dataset(
        name, shape, values.dtype, maxshape=(None, None), compression="gzip", fletcher32=True, chunks=_chunk(shape)
    )
    order = np.argsort(trials.models, kind="stable")
    models, segments, values = trials.models[order], trials.segments[order], values[order]
    for rows, some in _blocks(shape, models):
        block = np.zeros((len(rows), shape[1]), values.dtype)
        block[models[some] - rows.start, segments[some]] = values[some]
        matrix[rows.start : rows.stop] = block


def _blocks(shape: tuple[int, int], models: np.ndarray) -> Iterator[tuple[range, slice]]:
    """Yield (rows of the matrix, their trials) block by block, for trials that are sorted by model."""
    chunk_height, _ = _chunk(shape)
    height = max(1, _CELLS_PER_BLOCK // max(1, shape[1]) // chunk_height) * chunk_height
    for start in range(0, shape[0], height):
        rows = range(start, min(start + height, shape[0]))
        first, last = np.searchsorted(models, (rows.start, rows.stop))
        yield rows, slice(int(first), int(last))


def _chunk(shape: tuple[int, int]) -> tuple[int, int]:
    """Shape of the pieces that are compressed one by one: whole rows where these are short."""
    width = max(1, min(shape[1], 1 << 14))
    return max(1, min(shape[0], _CELLS_PER_CHUNK // width)), width


def read_npz_list(path: Path, raw: bytes, content: Content) -> Trials:
    """Read a list of trials, a key or scores.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its content.
    content : {"scores", "key", "trials"}
        What is read.

    Returns
    -------
    Trials, Key or Scores

    Raises
    ------
    DataError
        If the file is broken, an array is missing or of the wrong kind, a pair is repeated, or a score is NaN.
    """
    arrays = read_npz(BytesIO(raw), file=path)
    try:
        columns: dict[str, Any] = {}
        for table, codes in (("model_ids", "models"), ("segment_ids", "segments")):
            if table in arrays:
                columns |= {table: _column(arrays, table, "U").astype(object), codes: _column(arrays, codes, "iu")}
            else:
                columns[table], columns[codes] = factorise(_column(arrays, codes, "U"))
        if not len(columns["models"]):
            raise DataError("expected trials, got an empty list")
        if content == "scores":
            return Scores(**columns, values=_column(arrays, "scores", "fiu").astype(np.float64))
        if content == "trials":
            return Trials(**columns)
        label = _column(arrays, "is_target", "biu")
        if not np.isin(label, (0, 1)).all():
            raise DataError("expected is_target to be true or false (1 or 0)")
        return Key(**columns, is_target=label.astype(bool))
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error


def write_npz(path: str | Path, trials: Trials) -> None:
    """Write trials, a key or scores; trial types have no place."""
    arrays = {"models": trials.models, "segments": trials.segments}
    for name, ids in (("model_ids", trials.model_ids), ("segment_ids", trials.segment_ids)):
        if (torn := next((one for one in ids if one.endswith("\0")), None)) is not None:
            raise DataError(f"id {torn!r} ends with a zero byte, which NumPy drops", remedy="rename it")
        arrays[name] = ids.astype(str) if len(ids) else np.empty(0, "U1")
    if isinstance(trials, Key):
        arrays["is_target"] = trials.is_target
    elif isinstance(trials, Scores):
        arrays["scores"] = trials.values
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("model_ids", "segment_ids", "models", "segments", "is_target", "scores"):
            if name in arrays:
                member = BytesIO()
                np.lib.format.write_array(member, np.ascontiguousarray(arrays[name]), allow_pickle=False)
                # a fixed date, so that the same list gives the same bytes
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    write_bytes(path, content.getvalue())


def _column(arrays: dict[str, np.ndarray], name: str, kinds: str) -> np.ndarray:
    column = arrays.get(name)
    if column is None or column.ndim != 1 or column.dtype.kind not in kinds:
        got = f"holds {', '.join(arrays) or 'nothing'}" if column is None else f"is {column.dtype} of {column.shape}"
        raise DataError(f"expected an array {name} of shape (N,), but it {got}")
    return column
