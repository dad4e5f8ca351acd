"""Where a long computation goes: the one value that functions take instead of an option for each part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spkbase.showing import one_line


@one_line
@dataclass(frozen=True)
class Destination:
    """A file to be written, and a folder that keeps finished chunks until then.

    Attributes
    ----------
    path : path or None
        The file; None where the result is handed back alone.
    folder : path or None
        Keeps what is done if the process is killed: called again with it, a function works out the rest alone.
    fingerprint : str
        Of all inputs that the function does not look at itself; what is in the folder is used again if it has the same.
    attributes : mapping
        At the root of an HDF5 file.
    """

    path: str | Path | None = None
    folder: str | Path | None = None
    fingerprint: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


DestinationLike = Destination | str | Path | None


def as_destination(destination: DestinationLike, *, writer: str = "") -> Destination:
    """Return a destination, which the path of a file may stand for; none at all for None.

    Parameters
    ----------
    destination : Destination, path or None
    writer : str
        What writes the result of a function that hands it back and only keeps chunks in the folder.

    Raises
    ------
    TypeError
        If a path is given to a function that writes no file.

    Examples
    --------
    >>> as_destination("stat.h5").path
    'stat.h5'
    """
    if destination is None or isinstance(destination, Destination):
        return destination or Destination()
    if writer:
        raise TypeError(f"no file is written here, the result is returned: write {destination} with {writer}")
    return Destination(destination)


def file_destination(destination: DestinationLike) -> tuple[Path, Destination]:
    """Return the file of a destination, which a path alone may stand for, and the destination.

    Raises
    ------
    ValueError
        If it names no file.

    Examples
    --------
    >>> file_destination("features.h5")[0].name
    'features.h5'
    """
    destination = as_destination(destination)
    if destination.path is None:
        raise ValueError("the destination names no file: give Destination(path=...)")
    return Path(destination.path), destination
