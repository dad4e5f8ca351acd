"""Rank counts in cells, and how likely each cell is for every probability of being beaten.

Of the M impostors that a trial is compared with, k beat it. If a random impostor beats it with probability p, k is
binomial with M and p. The scale on which p is described is its *margin* z, p = Phi(-z): p = 0.5 at 0, 1e-3 at 3.1, 1e-8
at 5.6. Where impostor and mated scores are normal and of one spread, z is normal over trials with mean d'.

Small counts have a cell each, larger ones share cells that grow with them (about 12 % wide): the likelihood of a table
of a hundred cells costs the same for any number of trials, and tells nearly as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from evaluation.linkage.ranks import Ranks, TieRule

LOW, HIGH, STEP = -4.0, 10.0, 0.08
_EXACT = 24  # counts up to this one have a cell each
_GROWTH = 0.12
MIN_ROWS = 20


@one_line
@dataclass(frozen=True, eq=False)
class Cells:
    """A table of rank counts.

    Attributes
    ----------
    speakers : ndarray of int64 of shape (S, n_cells)
        Where speakers are drawn: share of its trials that each speaker has in each cell; rows sum to the speaker's
        number of trials.
    likelihood : ndarray of float64 of shape (n_cells, J)
        Probability of each cell at each margin of the grid.
    n_rows : int
        Number of trials.
    """

    speakers: NDArray[np.float64]
    likelihood: NDArray[np.float64]
    n_rows: int

    @property
    def counts(self) -> NDArray[np.float64]:
        """Trials in each cell, shape (n_cells,)."""
        return self.speakers.sum(axis=0)


def margins() -> NDArray[np.float64]:
    """Return the grid of margins, shape (J,)."""
    return np.linspace(LOW, HIGH, round((HIGH - LOW) / STEP) + 1)


def beat_probability(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that a random impostor beats a trial of this margin."""
    from scipy.special import ndtr

    return np.asarray(ndtr(-margin))


def first_probability(margin: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that trials of some margins are first among `sizes` speakers, (n_margins, n_sizes)."""
    stays = np.log1p(-np.minimum(beat_probability(margin), 1 - 1e-16))
    return np.exp(np.multiply.outer(stays, np.asarray(sizes, np.float64) - 1))


def rank_cells(ranks: Ranks, *, ties: TieRule = "shared") -> Cells:
    """Return rank counts in cells.

    Parameters
    ----------
    ranks : Ranks
        Rank counts; rows with different numbers of impostors have cells of their own.
    ties : {"shared", "strict", "lenient"}
        Impostors of the same score: any order of them is as likely, all beat the owner, or none.

    Raises
    ------
    DataError
        If there are fewer than 20 trials, or none has an impostor.
    """
    low, high = ranks.span(ties)
    impostors = ranks.impostors
    if len(ranks) < MIN_ROWS or not (impostors > 0).all():
        n_rows = int((impostors > 0).sum())
        raise DataError(f"expected at least {MIN_ROWS} trials with impostors to extrapolate from, got {n_rows}")
    names, speaker = np.unique(ranks.speakers, return_inverse=True)
    z = beat_probability(margins())
    tables, shares = [], []
    for count in np.unique(impostors):
        rows = np.flatnonzero(impostors == count)
        edges = _edges(int(count))
        share = _spread(low[rows], high[rows], edges)
        used = share.sum(axis=0) > 0
        part = np.zeros((len(names), int(used.sum())))
        np.add.at(part, speaker[rows], share[:, used])
        shares.append(part)
        tables.append(_cell_probability(edges, int(count), z)[used])
    return Cells(np.hstack(shares), np.vstack(tables), len(ranks))


def _edges(impostors: int) -> NDArray[np.int64]:
    """First count of each cell, and one beyond the last."""
    edges = list(range(min(_EXACT, impostors) + 1))
    while edges[-1] <= impostors:
        edges.append(min(edges[-1] + max(1, round(_GROWTH * edges[-1])), impostors + 1))
    return np.array(edges)


def _spread(low: NDArray[np.int64], high: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of the places low..high of each row that fall into each cell, shape (n_rows, n_cells)."""
    first = np.maximum(low[:, None], edges[None, :-1])
    last = np.minimum(high[:, None], edges[None, 1:] - 1)
    share = np.maximum(last - first + 1, 0)
    return share / (high - low + 1)[:, None]


def _cell_probability(edges: NDArray[np.int64], impostors: int, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Binomial probability of each cell, from the side where it is not a difference of numbers near 1."""
    from scipy.special import bdtr, betainc

    # at least k: betainc(k, M - k + 1, p); at most k: bdtr(k, M, p)
    k = edges[:, None].astype(np.float64)
    at_least = np.ones((len(edges), len(p)))
    inside = (edges > 0) & (edges <= impostors)
    at_least[inside] = betainc(k[inside], impostors - k[inside] + 1, p[None, :])
    at_least[edges > impostors] = 0.0
    below = np.zeros_like(at_least)
    below[edges > 0] = bdtr(np.minimum(k[edges > 0] - 1, impostors), impostors, p[None, :])
    upper, lower = at_least[:-1] - at_least[1:], below[1:] - below[:-1]
    return np.maximum(np.where(p[None, :] * impostors < k[:-1], upper, lower), 0.0)
