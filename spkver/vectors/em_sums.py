"""Sums of the E-step of total variability over blocks of segments.

References
----------
P. Kenny, G. Boulianne and P. Dumouchel, "Eigenvoice modeling with sparse training data", IEEE Trans. Speech and Audio
Processing 13(3), 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work, chunk_bounds, one_blas_thread
from spkver.vectors.packed import add_outer_products, invert, packed_length
from spkver.vectors.posteriors import (
    COLUMNS,
    PIECE,
    WIDE,
    Block,
    PosteriorTerms,
    precisions,
    project,
    share_out,
    solve_rows,
)


@dataclass
class EmSums:
    """Sums of the E-step over segments; they add.

    Attributes
    ----------
    second : ndarray of shape (C, R (R + 1) / 2)
        Packed A_c = sum_s n_c (L^-1 + h h').
    cross : ndarray of shape (R, C * D)
        sum_s h f', f as it is, neither centred nor whitened.
    counted : ndarray of shape (R, C)
        sum_s h n', which centring needs.
    moment : ndarray of shape (R (R + 1) / 2,)
        Packed sum_s (L^-1 + h h').
    log_likelihood : float
        Sum of `spkver.vectors.likelihood_part`.
    n_segments : int
    """

    second: NDArray[np.float64]
    cross: NDArray[np.float64]
    counted: NDArray[np.float64]
    moment: NDArray[np.float64]
    log_likelihood: float = 0.0
    n_segments: int = 0

    @classmethod
    def empty(cls, n_components: int, width: int, rank: int) -> EmSums:
        """Return the sums over no segment; `width` is C D."""
        length = packed_length(rank)
        cross, counted = np.zeros((rank, width)), np.zeros((rank, n_components))
        return cls(np.zeros((n_components, length)), cross, counted, np.zeros(length))

    def __add__(self, other: EmSums) -> EmSums:
        return EmSums(
            self.second + other.second,
            self.cross + other.cross,
            self.counted + other.counted,
            self.moment + other.moment,
            self.log_likelihood + other.log_likelihood,
            self.n_segments + other.n_segments,
        )


def add_block(
    sums: EmSums, block: Block, terms: PosteriorTerms, *, work: Work, room: NDArray[np.float64] | None = None
) -> None:
    """Add a block of segments to the sums of the E-step, in place.

        A_c += sum_s n_c (L^-1 + h h'),   B_c += sum_s f_c h'

    Parameters
    ----------
    sums : EmSums
    block : Block
    terms : PosteriorTerms
    work : spkbase.work.Work
        Its workers share the block; the result does not depend on their number.
    room : ndarray of shape (at least n, R (R + 1) / 2), optional
        `spkver.vectors.posteriors.packed_room`.

    Raises
    ------
    DataError
        If statistics are not finite, or counts are below 0; the sums are as before then.

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 3.
    """
    counts, first = block.counts(), np.asarray(block.first)
    projected = project(block, counts, first, terms, work)
    matrices = precisions(counts, terms, work, room)

    def moments(bounds: tuple[int, int]) -> tuple[NDArray, NDArray, NDArray]:
        rows = slice(*bounds)
        vectors, likelihoods = solve_rows(matrices[rows], projected[rows], block.segments[rows])
        invert(matrices[rows])
        add_outer_products(matrices[rows], vectors)
        return vectors, likelihoods, matrices[rows].sum(axis=0)

    of_pieces = share_out(work, moments, chunk_bounds(len(counts), PIECE))
    vectors = np.concatenate([piece[0] for piece in of_pieces]).T

    def add_second(bounds: tuple[int, int]) -> None:
        columns = slice(*bounds)
        sums.second[:, columns] += counts.T @ matrices[:, columns]

    def add_cross(bounds: tuple[int, int]) -> None:
        columns = slice(*bounds)
        sums.cross[:, columns] += vectors @ first[:, columns].astype(np.float64)

    share_out(work, add_second, chunk_bounds(matrices.shape[1], COLUMNS))
    share_out(work, add_cross, chunk_bounds(first.shape[1], WIDE))
    with one_blas_thread():
        sums.counted += vectors @ counts
    # first those of the block, then one sum: so it is the same where blocks come from workers
    sums.moment += reduce(np.add, [piece[2] for piece in of_pieces])
    sums.log_likelihood += float(np.concatenate([piece[1] for piece in of_pieces]).sum())
    sums.n_segments += len(counts)


def sums_of_block(block: Block, terms: PosteriorTerms, n_components: int, width: int) -> EmSums:
    """Return the sums over one block, for a worker process that is one of many."""
    sums = EmSums.empty(n_components, width, terms.rank)
    add_block(sums, block, terms, work=Work(1))
    return sums
