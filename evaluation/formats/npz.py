"""Lists as NumPy's npz, without pickle.

=================================  ==============================================================================
``model_ids``, ``segment_ids``     tables of distinct ids (text)
``models``, ``segments``           int32, shape (N,): place of each trial's ids in the tables
``scores`` or ``is_target``        float64 or bool, shape (N,)
=================================  ==============================================================================

Without tables, ``models`` and ``segments`` are the ids themselves (text of shape (N,)); this simpler form is read too.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.trials import Key, Scores, Trials, factorise
from spkbase.errors import DataError
from spkbase.files import BROKEN_NPZ, read_npz, write_bytes

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
