"""HDF5 files opened for reading: checked first, and whatever is broken in them told as one error with their name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from spkbase.errors import DataError
from spkbase.files.broken import BROKEN_HDF5
from spkbase.files.hdf5_guard import check_hdf5

if TYPE_CHECKING:
    import h5py


@contextmanager
def open_hdf5_checked(
    path: str | Path,
    *,
    image: BytesIO | None = None,
    broken: str,
    remedy: str,
    other_remedy: str | None = None,
) -> Iterator[h5py.File]:
    """Open a file for reading.

    Parameters
    ----------
    path : path
        The file, or the name of `image` for errors.
    image : BytesIO, optional
        Its bytes, where it is not read from the disk.
    broken, remedy : str
        What is said of a file in which h5py finds something broken, and what to do about it.
    other_remedy : str, optional
        What to do about other errors in the block that name no remedy.

    Raises
    ------
    DataError
        If the file is missing or broken, holds what no file that is read here does (`spkbase.files.hdf5_guard`), or
        the block raises one: each gets the name of the file.
    """
    import h5py

    try:
        with h5py.File(path if image is None else image, "r") as file:
            check_hdf5(file)
            yield file
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None
    except DataError as error:
        if error.file is not None:
            raise
        raise DataError(error.text, file=path, remedy=error.remedy or other_remedy) from error
    except BROKEN_HDF5 as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{broken}: {why}", file=path, remedy=remedy) from error
