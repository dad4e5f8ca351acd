"""Maps of models to recordings: the lists of enrolment, background and test sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

_NONE = -1


@dataclass(frozen=True, eq=False)
class IdMap:
    """Rows of (model, segment), optionally with the first frame and the end of a part.

    Attributes
    ----------
    models : sequence of str of shape (N,)
        Model (or speaker) of each row; becomes an object array.
    segments : sequence of str of shape (N,)
        Recording of each row; becomes an object array.
    start, stop : sequence of int of shape (N,), optional
        Frames [start, stop) of the recording; -1, the default, for the whole.

    Raises
    ------
    DataError
        If lengths differ, an id is empty or not a string, or a part is empty.

    Examples
    --------
    >>> enrolment = IdMap(["anna", "anna", "bob"], ["a1", "a2", "b1"])
    >>> len(enrolment), enrolment.unique_models().tolist()
    (3, ['anna', 'bob'])
    """

    models: NDArray[np.object_]
    segments: NDArray[np.object_]
    start: NDArray[np.int64] = None  # type: ignore[assignment]  # filled in below
    stop: NDArray[np.int64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name in ("models", "segments"):
            object.__setattr__(self, name, _ids(getattr(self, name), name))
        n_rows = len(self.models)
        for name in ("start", "stop"):
            frames = getattr(self, name)
            frames = (
                np.full(n_rows, _NONE, np.int64) if frames is None else np.asarray(frames, np.int64)
            )
            object.__setattr__(self, name, frames)
        lengths = [len(getattr(self, name)) for name in ("models", "segments", "start", "stop")]
        if len(set(lengths)) > 1:
            raise DataError(
                "lists of different lengths: {} models, {} segments, {} starts, {} stops".format(
                    *lengths
                )
            )
        bad = np.flatnonzero(
            (self.start < _NONE) | ((self.stop != _NONE) & (self.stop <= np.maximum(self.start, 0)))
        )
        if len(bad):
            row = bad[0]
            raise DataError(
                f"row {row} ({self.models[row]} {self.segments[row]}): empty part, "
                f"frames {self.start[row]} to {self.stop[row]}"
            )

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> IdMap:
        """Return a map of whole recordings from (model, segment) pairs."""
        rows = list(pairs)
        return cls([model for model, _ in rows], [segment for _, segment in rows])  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, rows: NDArray[np.int64]) -> IdMap:
        """Return some rows, by their numbers."""
        return IdMap(self.models[rows], self.segments[rows], self.start[rows], self.stop[rows])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdMap):
            return NotImplemented
        names = ("models", "segments", "start", "stop")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def unique_models(self) -> NDArray[np.object_]:
        """Return the models in the order of their first rows, (M,)."""
        return _ids(list(dict.fromkeys(self.models)), "models")

    def rows_of_models(self) -> dict[str, NDArray[np.int64]]:
        """Return the rows of each model, models in the order of their first rows."""
        rows: dict[str, list[int]] = {}
        for row, model in enumerate(self.models):
            rows.setdefault(model, []).append(row)
        return {model: np.array(of_model, dtype=np.int64) for model, of_model in rows.items()}


def _ids(ids: Sequence[str] | NDArray[Any], name: str) -> NDArray[np.object_]:
    array = np.empty(len(ids), dtype=object)
    array[:] = ids if isinstance(ids, list) else list(ids)
    for row, identifier in enumerate(array):
        if not isinstance(identifier, str) or not identifier:
            raise DataError(f"{name}: row {row} should be an id, not {identifier!r}")
    return array
