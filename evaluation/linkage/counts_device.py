"""Counts of beaters on a device (`spkbase.work`): its float32 decides what is certain, the rest is float64 here.

The margin around the owner's cosine is that of `evaluation.embeddings.similarity`: the largest error of a float32
product, in whatever order it is summed. So the counts are the same integers. The owners' own cosines, known in
float64, are the proof on the spot: each must come out of the device within its margin, and a device where one does
not is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import TIE, cosine_margin, cosines, to_unit
from evaluation.linkage.table import Counts
from spkbase.arrays import Rows
from spkbase.errors import DataError
from spkbase.work import Array, Device, chunk_bounds, on_device, progress

_TRIALS = 8192
_PAIR_BYTES = 8  # a similarity, two comparisons and what lies between


@on_device
def count_on_device(
    gallery: Rows, norms: NDArray[np.float64], trials: NDArray, owners: NDArray[np.int64], device: Device
) -> Counts:
    """Return for each trial how many vectors of a gallery beat its owner, and how many tie.

    Parameters
    ----------
    gallery, norms, trials, owners
        As for `evaluation.linkage.count_beaters`.
    device : Device

    Returns
    -------
    Counts

    Raises
    ------
    DataError
        If an owner's cosine comes out further off than the margin.
    """
    unit = to_unit(trials)
    mated = cosines(gallery, norms, unit, owners, np.arange(len(unit)))
    margin = cosine_margin(unit.shape[1])
    beaters, ties = np.zeros(len(unit), np.int64), np.zeros(len(unit), np.int64)
    blocks = chunk_bounds(len(unit), _TRIALS)
    blocks_on_device = [_Block(unit[start:stop], mated[start:stop], margin, device) for start, stop in blocks]
    height = device.rows_of(_PAIR_BYTES * min(len(unit), _TRIALS) + 20 * unit.shape[1])
    n_owners = 0
    galleries = chunk_bounds(len(gallery), height)
    for start, stop in progress(galleries, description="ranks", total=len(galleries)):
        vectors = np.asarray(gallery[start:stop])
        sent = _to_unit(vectors, norms[start:stop], device)
        for (at, end), block in zip(blocks, blocks_on_device, strict=True):
            certain, rows, columns = block.compare(sent)
            beaters[at:end] += certain
            columns += at
            others = rows + start != owners[columns]
            n_owners += len(rows) - int(np.count_nonzero(others))
            rows, columns = rows[others], columns[others]
            above = cosines(vectors, norms[start:stop], unit, rows, columns) - mated[columns]
            np.add.at(beaters, columns[above > TIE], 1)
            np.add.at(ties, columns[np.abs(above) <= TIE], 1)
    if n_owners != len(unit):
        text = (
            f"device {device.name} gave {len(unit) - n_owners} of {len(unit)} cosines with an error above {margin:.1e}"
        )
        raise DataError(text, remedy="its float32 products cannot be relied on: leave --device out")
    return Counts(beaters, ties, mated)


class _Block:
    """Trials on the device, with the ends of what is certain."""

    def __init__(self, unit: NDArray[np.float64], mated: NDArray[np.float64], margin: float, device: Device) -> None:
        self._device = device
        self._trials = device.xp.matrix_transpose(device.asarray(unit, np.float32))
        self._low, self._high = (device.asarray(mated + shift, np.float32) for shift in (-margin, margin))

    def compare(self, gallery: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Count for each trial the cosines surely above the owner's, and find rows and columns of the doubtful."""
        xp = self._device.xp
        cosine = gallery @ self._trials
        above = cosine > self._high
        doubtful = xp.nonzero((cosine > self._low) & ~above)
        rows, columns = (self._device.to_numpy(indices).astype(np.int64) for indices in doubtful)
        return self._device.to_numpy(xp.count_nonzero(above, axis=0)), rows, columns


def _to_unit(vectors: NDArray, norms: NDArray[np.float64], device: Device) -> Array:
    """Rows of length 1 in float32, rounded once from float64 as on the cores."""
    xp = device.xp
    held = vectors if vectors.dtype in (np.float32, np.float64) else vectors.astype(np.float64)
    scaled = xp.astype(device.asarray(held), xp.float64) * device.asarray(1 / norms[:, None])
    return xp.astype(scaled, xp.float32)
