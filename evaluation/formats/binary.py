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
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.trials import Key, Scores, Trials
from spkbase.errors import DataError
from spkbase.files import is_text, open_hdf5_checked, read_bytes, read_text, write_bytes

if TYPE_CHECKING:
    import h5py
import io
import zipfile

from evaluation.trials import factorise
from spkbase.files import BROKEN_NPZ, read_npz

logger = logging.getLogger(__name__)

_SIDEKIT_ID_LENGTH = 100
_CELLS_PER_BLOCK = 1 << 23
_CELLS_PER_CHUNK = 1 << 17
_NO_CODES = np.empty(0, np.int32)
_ID_NAMES = {"models": ("modelset", "ID/row_ids"), "segments": ("segset", "ID/column_ids")}


def read_hdf5_trials(path: str | Path) -> Trials:
    """Read an Ndx; of a Key the trials are read.

    Raises
    ------
    DataError
        If the file is not HDF5 or truncated, a dataset is missing, or shapes disagree.
    """
    with _opened(path) as file:
        tables = _read_ids(file, path)
        models, segments, _ = _read_mask(file, "trial_mask", tables, path)
        return Trials(*tables, models, segments)


def read_hdf5_key(path: str | Path) -> Key:
    """Read a Key. Errors as for trials."""
    with _opened(path) as file:
        tables = _read_ids(file, path)
        models, segments, signs = _read_mask(file, "trial_mask", tables, path)
        types, type_names = None, ()
        if "trial_types" in file:
            numbers = _matrix(file, "trial_types", tables, path)[()]
            types, type_names = numbers[models, segments] - 1, tuple(_read_strings(file, "type_names", path))
        return Key(*tables, models, segments, is_target=signs > 0, types=types, type_names=type_names)


def read_hdf5_scores(path: str | Path) -> Scores:
    """Read Scores, in SIDEKIT's or in the matlab form. Errors as for trials, or a score is NaN."""
    with _opened(path) as file:
        tables = _read_ids(file, path)
        models, segments, _ = _read_mask(file, "score_mask", tables, path)
        matrix = _matrix(file, "scores", tables, path)
        values = [
            matrix[rows.start : rows.stop][models[some] - rows.start, segments[some]]
            for rows, some in _blocks(matrix.shape, models)
        ]
        return Scores(*tables, models, segments, values=np.concatenate(values).astype(np.float64, copy=False))


def write_hdf5_trials(path: str | Path, trials: Trials, *, attributes: dict[str, str] | None = None) -> None:
    """Write an Ndx.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all.
    trials : Trials
        The list; its order within the matrix is lost.
    attributes : dict of str, optional
        Attributes of the root, such as a fingerprint; SIDEKIT passes over them.

    Raises
    ------
    DataError
        If an id holds a zero byte, or the file cannot be written.
    """
    with _created(path, trials, attributes) as file:
        _write_matrix(file, "trial_mask", trials, np.ones(len(trials), np.int8))


def write_hdf5_key(path: str | Path, key: Key, *, attributes: dict[str, str] | None = None) -> None:
    """Write a Key, with its trial types where it has any. Parameters and errors as for trials."""
    with _created(path, key, attributes) as file:
        _write_matrix(file, "trial_mask", key, np.where(key.is_target, 1, -1).astype(np.int8))
        if key.types is not None:
            _write_matrix(file, "trial_types", key, key.types + np.int8(1))
            _write_strings(file, "type_names", np.array(key.type_names, dtype=object))


def write_hdf5_scores(
    path: str | Path, scores: Scores, *, attributes: dict[str, str] | None = None, matlab: bool = False
) -> None:
    """Write Scores in SIDEKIT's own form, or in the one that it names matlab. Parameters and errors as for trials."""
    with _created(path, scores, attributes, matlab=matlab) as file:
        _write_matrix(file, "score_mask", scores, np.ones(len(scores), np.int8))
        _write_matrix(file, "scores", scores, scores.values)


def _opened(path: str | Path) -> AbstractContextManager[h5py.File]:
    return open_hdf5_checked(
        path,
        image=BytesIO(read_bytes(path)) if _is_gzip(path) else None,
        broken="cannot be read as HDF5",
        remedy="it may be truncated or no HDF5 file: copy or write it again",
    )


def _is_gzip(path: str | Path) -> bool:
    with suppress(OSError), Path(path).open("rb") as handle:  # what cannot be opened is told by who opens it
        return handle.read(2) == b"\x1f\x8b"
    return False


def _read_ids(file: h5py.File, path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    tables = []
    for what, names in _ID_NAMES.items():
        name = next((name for name in names if name in file), None)
        if name is None:
            raise _missing(file, f"the ids of {what} ({' or '.join(names)})", path)
        tables.append(_read_strings(file, name, path))
    return tables[0], tables[1]


def _read_strings(file: h5py.File, name: str, path: str | Path) -> np.ndarray:
    if name not in file:
        raise _missing(file, name, path)
    dataset = _array(file, name, path)
    if not is_text(dataset) or dataset.ndim != 1:
        raise DataError(f"expected {name} to be a column of strings, got {dataset}", file=path)
    return read_text(dataset)


def _matrix(file: h5py.File, name: str, tables: tuple[np.ndarray, np.ndarray], path: str | Path) -> h5py.Dataset:
    if name not in file:
        raise _missing(file, name, path)
    matrix, expected = _array(file, name, path), tuple(map(len, tables))
    if matrix.shape != expected or matrix.dtype.kind not in "fiub":
        remedy = "the file is broken, or of another kind"
        got = f"{matrix.dtype} of shape {matrix.shape}"
        raise DataError(
            f"expected {name}: numbers of shape {expected} for its ids, got {got}", file=path, remedy=remedy
        )
    return matrix


def _array(file: h5py.File, name: str, path: str | Path) -> h5py.Dataset:
    """Return a dataset that is no group and not empty."""
    dataset = file[name]
    if not hasattr(dataset, "shape") or dataset.shape is None:
        raise DataError(f"expected {name} to be an array, got {dataset}", file=path)
    return dataset


def _read_mask(
    file: h5py.File, name: str, tables: tuple[np.ndarray, np.ndarray], path: str | Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return model and segment code and sign of each trial, row by row of the matrix."""
    matrix = _matrix(file, name, tables, path)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for rows, _ in _blocks(matrix.shape, _NO_CODES):
        block = matrix[rows.start : rows.stop]
        models, segments = np.nonzero(block)
        signs = block[models, segments]
        if not np.isin(signs, (-1, 1)).all():
            raise DataError(f"expected {name} of 1, 0 and -1, got {signs[~np.isin(signs, (-1, 1))][0]}", file=path)
        parts.append(((models + rows.start).astype(np.int32), segments.astype(np.int32), signs.astype(np.int8)))
    if not sum(len(part[0]) for part in parts):
        raise DataError(f"expected trials, got a {name} of zeros", file=path, remedy="write the list again")
    models, segments, signs = (np.concatenate(column) for column in zip(*parts, strict=True))
    return models, segments, signs


def _missing(file: h5py.File, name: str, path: str | Path) -> DataError:
    remedy = "choose the file that fits: an Ndx, a Key or Scores as SIDEKIT writes them"
    return DataError(f"expected {name}, got only {', '.join(file) or 'an empty file'}", file=path, remedy=remedy)


@contextmanager
def _created(
    path: str | Path, trials: Trials, attributes: dict[str, str] | None, *, matlab: bool = False
) -> Iterator[h5py.File]:
    import h5py

    if not len(trials):
        raise DataError("expected trials to write, got an empty list", file=path)
    longest = max(map(len, (*trials.model_ids, *trials.segment_ids)))
    if longest > _SIDEKIT_ID_LENGTH:
        logger.warning(
            "%s: SIDEKIT will cut ids at %d characters; the longest has %d", path, _SIDEKIT_ID_LENGTH, longest
        )
    # built in memory: on a full disk the HDF5 library does not let go of a file, and prints errors of its own
    image = BytesIO()
    with h5py.File(image, "w") as file:
        for names, ids in zip(_ID_NAMES.values(), (trials.model_ids, trials.segment_ids), strict=True):
            _write_strings(file, names[matlab], ids)
        for name, text in (attributes or {}).items():
            file.attrs[name] = text
        yield file
    write_bytes(path, image.getvalue())


def _write_strings(file: h5py.File, name: str, ids: np.ndarray) -> None:
    import h5py

    try:
        raw = [text.encode("utf-8") for text in ids]
    except UnicodeEncodeError as error:
        raise DataError(f"id {error.object!r} cannot be written as UTF-8", remedy="rename it") from error
    padded = next((text for text in raw if b"\0" in text), None)
    if padded is not None:
        raise DataError(f"id {padded!r} holds a zero byte, which ends a string in HDF5", remedy="rename it")
    charset = "ascii" if all(map(bytes.isascii, raw)) else "utf-8"
    kind: Any = h5py.string_dtype(charset, max(map(len, raw)))
    file.create_dataset(name, data=np.array(raw, dtype=kind), maxshape=(None,), compression="gzip", fletcher32=True)


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


MAGIC = b"PK\x03\x04"


def read_npz_trials(path: Path, raw: bytes) -> Trials:
    """Read a list of trials.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its content.

    Raises
    ------
    DataError
        If the file is broken, an array is missing or of the wrong kind, a pair is repeated.
    """
    return _build(Trials, path, _load(path, raw), {})


def read_npz_key(path: Path, raw: bytes) -> Key:
    """Read a key. Parameters and errors as for trials."""
    arrays = _load(path, raw)
    label = _column(path, arrays, "is_target", "biu")
    if not np.isin(label, (0, 1)).all():
        raise DataError("expected is_target to be true or false (1 or 0)", file=path)
    return _build(Key, path, arrays, {"is_target": label.astype(bool)})


def read_npz_scores(path: Path, raw: bytes) -> Scores:
    """Read scores. Parameters and errors as for trials, or a score is NaN."""
    arrays = _load(path, raw)
    values = _column(path, arrays, "scores", "fiu").astype(np.float64)
    return _build(Scores, path, arrays, {"values": values})


def write_npz(path: str | Path, trials: Trials) -> None:
    """Write trials, a key or scores; trial types have no place."""
    arrays: dict[str, np.ndarray] = {
        "model_ids": _texts(trials.model_ids),
        "segment_ids": _texts(trials.segment_ids),
        "models": trials.models,
        "segments": trials.segments,
    }
    if isinstance(trials, Key):
        arrays["is_target"] = trials.is_target
    elif isinstance(trials, Scores):
        arrays["scores"] = trials.values
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            # a fixed date, so that the same list gives the same bytes
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    write_bytes(path, content.getvalue())


def _texts(ids: np.ndarray) -> np.ndarray:
    torn = next((name for name in ids if name.endswith("\0")), None)
    if torn is not None:
        raise DataError(f"id {torn!r} ends with a zero byte, which NumPy drops", remedy="rename it")
    return ids.astype(str) if len(ids) else np.empty(0, "U1")


def _load(path: Path, raw: bytes) -> dict[str, np.ndarray]:
    try:
        return read_npz(io.BytesIO(raw))
    except BROKEN_NPZ as error:
        remedy = "it may be truncated, or hold pickled objects: write it again, ids as text"
        raise DataError(f"cannot be read as npz: {error}", file=path, remedy=remedy) from error


def _column(path: Path, arrays: dict[str, np.ndarray], name: str, kinds: str) -> np.ndarray:
    column = arrays.get(name)
    if column is None or column.ndim != 1 or column.dtype.kind not in kinds:
        got = f"holds {', '.join(arrays) or 'nothing'}" if column is None else f"is {column.dtype} of {column.shape}"
        raise DataError(f"expected an array {name} of shape (N,), but it {got}", file=path)
    return column


def _build(cls: type, path: Path, arrays: dict[str, np.ndarray], columns: dict[str, np.ndarray]) -> Any:
    fields: dict[str, np.ndarray] = {}
    for table, codes in (("model_ids", "models"), ("segment_ids", "segments")):
        if table in arrays:
            fields[table] = _column(path, arrays, table, "U").astype(object)
            fields[codes] = _column(path, arrays, codes, "iu")
        else:
            fields[table], fields[codes] = factorise(_column(path, arrays, codes, "U").tolist())
    if not len(fields["models"]):
        raise DataError("expected trials, got an empty list", file=path)
    try:
        return cls(**fields, **columns)
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error
