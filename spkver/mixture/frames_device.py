"""Frames and other long tables on a device: kept there where they fit, else sent block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows
from spkbase.work import Array, Device, chunk_bounds


class Table:
    """A long table of rows for use on a device, again and again.

    Parameters
    ----------
    rows : ndarray or StoredArray of shape (N, ...)
        May lie in a file.
    device : Device
        If it has room, the table is sent once and stays; else what is asked for is sent each time.
    """

    def __init__(self, rows: Rows, device: Device) -> None:
        self.device, self.shape, self.dtype = device, rows.shape, rows.dtype
        self._rows = rows
        self._kept: list[Array] = []
        self._size = device.rows_of(4 * rows.nbytes // max(1, len(rows)))
        if device.fits(rows.nbytes):
            self._kept = list(self._sent(self._size))

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, size: int) -> Iterator[Array]:
        """Yield rows in order, in blocks of `size`, the last one shorter."""
        if not self._kept:
            yield from self._sent(size)
            return
        for start, stop in chunk_bounds(len(self), size):
            parts = []
            while start < stop:
                number, at = divmod(start, self._size)
                n_taken = min(stop - start, self._size - at)
                parts.append(self._kept[number][at : at + n_taken, ...])
                start += n_taken
            yield parts[0] if len(parts) == 1 else self.device.xp.concat(parts)

    def take(self, rows: NDArray[np.int64]) -> Array:
        """Return some rows, in the order asked for."""
        xp = self.device.xp
        if not self._kept:
            return self.device.asarray(self._rows[rows])
        if len(self._kept) == 1:
            return xp.take(self._kept[0], self.device.asarray(rows), axis=0)
        order = np.argsort(rows, kind="stable")
        numbers = rows[order] // self._size
        parts = [
            xp.take(self._kept[number], self.device.asarray(rows[order][numbers == number] % self._size), axis=0)
            for number in np.unique(numbers).tolist()
        ]
        sorted_rows = xp.concat(parts)
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return xp.take(sorted_rows, self.device.asarray(back), axis=0)

    def _sent(self, size: int) -> Iterator[Array]:
        for start, stop in chunk_bounds(len(self), size):
            yield self.device.asarray(np.asarray(self._rows[start:stop]))
