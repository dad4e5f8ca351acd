"""Posteriors of factors on a device: whole matrices, as many segments at a time as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Array, Device, chunk_bounds, on_device
from spkver.vectors.em_sums import EmSums
from spkver.vectors.packed import packed_places
from spkver.vectors.posteriors import (
    Block,
    PosteriorTerms,
    checked_projection,
    likelihood_part,
    posterior,
)


class DeviceTerms:
    """What the posteriors of segments need of a matrix, on a device.

    Parameters
    ----------
    loadings : ndarray of shape (C, D, R)
        T in the whitened space.
    terms : PosteriorTerms
        Its products are not used; they are made there, of whole matrices.
    device : spkbase.work.Device
    """

    def __init__(self, loadings: NDArray[np.float64], terms: PosteriorTerms, device: Device) -> None:
        xp = device.xp
        self.device, self.rank = device, terms.rank
        whitened = device.asarray(loadings)
        self.products = xp.matrix_transpose(whitened) @ whitened
        self.raw = device.asarray(terms.loadings)
        self.offsets = device.asarray(terms.offsets)

    def parts(self, block: Block) -> Iterator[tuple[Array, Array, Array]]:
        """Yield counts (n, C), first-order sums (n, C * D) and b (n, R) of the block, as many rows as there is room."""
        device, xp = self.device, self.device.xp
        counts, first = block.counts(), np.asarray(block.first)
        size = device.rows_of(8 * (4 * self.rank**2 + 2 * first.shape[1]))
        for start, stop in chunk_bounds(len(counts), size):
            zeroth = device.asarray(counts[start:stop])
            sums = xp.astype(device.asarray(first[start:stop]), xp.float64)
            with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found just below
                projected = sums @ self.raw - zeroth @ self.offsets
            checked_projection(device.to_numpy(projected), counts[start:stop], block.segments[start:stop])
            yield zeroth, sums, projected


@on_device
def sums_on_device(
    blocks: Iterable[Block], loadings: NDArray[np.float64], terms: PosteriorTerms, device: Device
) -> EmSums:
    """Return the sums of the E-step over all blocks; as `spkver.vectors.em_sums.add_block` on the cores.

    Parameters
    ----------
    blocks : iterable of Block
    loadings : ndarray of shape (C, D, R)
        T in the whitened space.
    terms : PosteriorTerms
    device : spkbase.work.Device
    """
    xp, there = device.xp, DeviceTerms(loadings, terms, device)
    n_components, dimension, rank = loadings.shape
    second = xp.zeros((n_components, rank * rank), dtype=xp.float64, device=device.place)
    cross = xp.zeros((rank, n_components * dimension), dtype=xp.float64, device=device.place)
    counted = xp.zeros((rank, n_components), dtype=xp.float64, device=device.place)
    moment = xp.zeros((rank * rank,), dtype=xp.float64, device=device.place)
    log_likelihood, n_segments = 0.0, 0
    for block in blocks:
        for zeroth, sums, projected in there.parts(block):
            means, covariances, determinants = posterior(zeroth, projected, there.products, xp=xp, place=device.place)
            log_likelihood += float(xp.sum(likelihood_part(projected, means, determinants, xp=xp)))
            outer = xp.expand_dims(means, axis=2) * xp.expand_dims(means, axis=1)
            moments = xp.reshape(covariances + outer, (-1, rank * rank))
            turned = xp.matrix_transpose(means)
            second = second + xp.matrix_transpose(zeroth) @ moments
            counted = counted + turned @ zeroth
            cross = cross + turned @ sums
            moment = moment + xp.sum(moments, axis=0)
            n_segments += int(zeroth.shape[0])
    rows, columns = packed_places(rank)
    packed = device.asarray(rows * rank + columns)
    return EmSums(
        device.to_numpy(xp.take(second, packed, axis=1)),
        device.to_numpy(cross),
        device.to_numpy(counted),
        device.to_numpy(xp.take(moment, packed, axis=0)),
        log_likelihood,
        n_segments,
    )


@on_device
def block_on_device(
    block: Block, there: DeviceTerms, *, variances: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return posterior means (n, R) and variances (n, R), or nothing (n, 0), of a block of segments."""
    device, xp = there.device, there.device.xp
    means, spreads = [], []
    for zeroth, _, projected in there.parts(block):
        of_part, covariances, _ = posterior(zeroth, projected, there.products, xp=xp, place=device.place)
        means.append(device.to_numpy(of_part))
        if variances:
            spreads.append(device.to_numpy(xp.linalg.diagonal(covariances)))
    rest = np.concatenate(spreads) if variances else np.empty((len(block.segments), 0))
    return np.concatenate(means), rest


@on_device
def fast_block_on_device(
    block: Block,
    there: DeviceTerms,
    formula: Callable[..., tuple[Array, Array]],
    terms: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what a formula of counts, b and two matrices, such as `fast_posterior`, gives for a block of segments."""
    device = there.device
    matrices = [device.asarray(matrix) for matrix in terms]
    pairs = [formula(zeroth, projected, *matrices) for zeroth, _, projected in there.parts(block)]
    means, variances = (np.concatenate([device.to_numpy(part) for part in parts]) for parts in zip(*pairs, strict=True))
    return means, variances
