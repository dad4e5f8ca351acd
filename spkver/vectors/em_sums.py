"""Sums of the E-step of total variability over blocks of segments.

References
----------
P. Kenny, G. Boulianne and P. Dumouchel, "Eigenvoice modeling with sparse training data", IEEE Trans. Speech and Audio
Processing 13(3), 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work, chunk_bounds
from spkver.vectors.packed import packed_length
from spkver.vectors.posteriors import (
    COLUMNS,
    Block,
    PosteriorTerms,
    component_ranges,
    factor_pieces,
    of_components,
    project,
    sum_in_order,
)


@dataclass(frozen=True)
class EmSums:
    """Sums of the E-step over segments; they add.

    Attributes
    ----------
    second : tuple of ndarray of shape (C, w)
        Columns of the packed A_c = sum_s n_c (L^-1 + h h'), one range after the other.
    cross : tuple of ndarray of shape (w, R)
        Rows of B = sum_s f h', f centred but not whitened, one range of components after the other.
    moment : ndarray of shape (R (R + 1) / 2,)
        Packed sum_s (L^-1 + h h').
    log_likelihood : float
        Sum of `likelihood_part`.
    n_segments : int
    """

    second: tuple[NDArray[np.float64], ...]
    cross: tuple[NDArray[np.float64], ...]
    moment: NDArray[np.float64]
    log_likelihood: float
    n_segments: int

    def __add__(self, other: EmSums) -> EmSums:
        return EmSums(
            tuple(map(np.add, self.second, other.second)),
            tuple(map(np.add, self.cross, other.cross)),
            self.moment + other.moment,
            self.log_likelihood + other.log_likelihood,
            self.n_segments + other.n_segments,
        )


def block_sums(block: Block, terms: PosteriorTerms, *, work: Work, before: EmSums | None = None) -> EmSums:
    """Return the sums of the E-step over a block of segments, added to those of the blocks before it.

        A_c = sum_s n_c (L^-1 + h h'),   B_c = sum_s f_c h'

    Parameters
    ----------
    block : Block
    terms : PosteriorTerms
    work : spkbase.work.Work
        Its workers share the block; the result does not depend on their number.
    before : EmSums, optional

    Raises
    ------
    DataError
        If statistics are not finite, or not those of any frames.

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 3.
    """
    counts, first = block.counts(), np.asarray(block.first)
    projected = project(block, counts, first, terms, work)
    pieces = list(factor_pieces(block, counts, projected, terms, work, "moments"))
    means = np.concatenate([piece.means for piece in pieces])
    columns = chunk_bounds(packed_length(terms.rank), COLUMNS)
    second = work.map(
        partial(_add_product, counts),
        [
            (None if before is None else before.second[number], [piece.rest[:, start:stop] for piece in pieces])
            for number, (start, stop) in enumerate(columns)
        ],
    )
    ranges = component_ranges(terms)
    cross = work.map(
        partial(_add_cross, means),
        [
            (None if before is None else before.cross[number], *of_components(counts, first, terms, *bounds))
            for number, bounds in enumerate(ranges)
        ],
    )
    sums = EmSums(
        tuple(second),
        tuple(cross),
        sum_in_order([piece.rest.sum(axis=0) for piece in pieces]),
        float(sum(piece.log_likelihoods.sum() for piece in pieces)),
        len(counts),
    )
    if before is None:
        return sums
    return EmSums(
        sums.second,
        sums.cross,
        before.moment + sums.moment,
        before.log_likelihood + sums.log_likelihood,
        before.n_segments + sums.n_segments,
    )


def _add_product(counts: NDArray, item: tuple[NDArray | None, Sequence[NDArray]]) -> NDArray:
    product = counts.T @ np.concatenate(item[1])
    return product if item[0] is None else item[0] + product


def _add_cross(vectors: NDArray, item: tuple[NDArray | None, NDArray, NDArray, NDArray, NDArray]) -> NDArray:
    before, counts, first, _, means = item
    cross = first.astype(np.float64).T @ vectors
    cross -= (means[:, :, None] * (counts.T @ vectors)[:, None, :]).reshape(cross.shape)
    return cross if before is None else before + cross
