"""Files of trials, keys and scores: read by their content, written by their extension.

Extensions: ``.h5`` and ``.hdf5`` for the square form of SIDEKIT and BOSARIS (`evaluation.formats.hdf5`); ``.txt``, the
names of lists and none at all for text (`evaluation.formats.text`). A further format is one more module here.
"""

from __future__ import annotations

from pathlib import Path

from evaluation.errors import DataError
from evaluation.formats.hdf5 import (
    is_hdf5,
    read_hdf5_key,
    read_hdf5_scores,
    read_hdf5_trials,
    write_hdf5_key,
    write_hdf5_scores,
    write_hdf5_trials,
)
from evaluation.formats.text import (
    read_text_key,
    read_text_scores,
    read_text_trials,
    write_text_key,
    write_text_scores,
    write_text_trials,
)
from evaluation.trials import Key, Scores, Trials

__all__ = ["read_key", "read_scores", "read_trials", "write_key", "write_scores", "write_trials"]

_HDF5_EXTENSIONS = (".h5", ".hdf5")
_TEXT_EXTENSIONS = ("", ".txt", ".text", ".scores", ".key", ".keys", ".ndx", ".trials", ".trl", ".lst")


def read_trials(path: str | Path) -> Trials:
    """Read a list of trials; of a key the trials are read.

    Parameters
    ----------
    path : path
        Text or HDF5, told apart by content.

    Raises
    ------
    DataError
        With the place: no such file, an empty, broken or foreign file, a malformed line, a repeated pair.
    """
    return read_hdf5_trials(path) if _holds_hdf5(path) else read_text_trials(path)


def read_key(path: str | Path) -> Key:
    """Read a key: trials with their truth. Parameters and errors as for `read_trials`."""
    return read_hdf5_key(path) if _holds_hdf5(path) else read_text_key(path)


def read_scores(path: str | Path) -> Scores:
    """Read scores; NaN is an error, infinite scores are legal. Parameters and errors as for `read_trials`."""
    return read_hdf5_scores(path) if _holds_hdf5(path) else read_text_scores(path)


def write_trials(path: str | Path, trials: Trials, *, attributes: dict[str, str] | None = None) -> None:
    """Write a list of trials.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all; its extension says how.
    trials : Trials
        The list.
    attributes : dict of str, optional
        Kept with an HDF5 file, such as the fingerprint of its inputs; a text file has no place for them.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    if _wants_hdf5(path):
        write_hdf5_trials(path, trials, attributes=attributes)
    else:
        write_text_trials(path, trials)


def write_key(path: str | Path, key: Key, *, attributes: dict[str, str] | None = None) -> None:
    """Write a key; only HDF5 keeps trial types. Parameters and errors as for `write_trials`."""
    if _wants_hdf5(path):
        write_hdf5_key(path, key, attributes=attributes)
    else:
        write_text_key(path, key)


def write_scores(path: str | Path, scores: Scores, *, attributes: dict[str, str] | None = None) -> None:
    """Write scores, to the last bit. Parameters and errors as for `write_trials`."""
    if _wants_hdf5(path):
        write_hdf5_scores(path, scores, attributes=attributes)
    else:
        write_text_scores(path, scores)


def _holds_hdf5(path: str | Path) -> bool:
    path = Path(path)
    try:
        size, found = path.stat().st_size, is_hdf5(path)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    if path.suffix.lower() in _HDF5_EXTENSIONS and not found:
        got = "an empty file" if size == 0 else "something else"
        remedy = "write it again, or name a text list .txt"
        raise DataError(f"expected an HDF5 file by its name, got {got}", file=path, remedy=remedy)
    return found


def _wants_hdf5(path: str | Path) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix not in _HDF5_EXTENSIONS + _TEXT_EXTENSIONS:
        remedy = f"use one of {', '.join(_HDF5_EXTENSIONS + _TEXT_EXTENSIONS[1:])}, or none for text"
        raise DataError(f"no format of lists is known for the extension {suffix!r}", file=path, remedy=remedy)
    return suffix in _HDF5_EXTENSIONS
