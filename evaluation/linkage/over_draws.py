"""Linkability over draws: several anonymised versions of the same trials, each with random numbers of its own.

The mean over draws is the linkability of all rows together, and resamples of speakers take all rows of a speaker, of
all draws. What the draws add to such an interval is in `evaluation.uncertainty.over_draws`; linkability is a mean over
speakers, so the three parts of its variance need no resamples. With r_pd for the sum over the rows of speaker p in
draw d less as many times the draw's mean, in units of the mean number of rows:

    S = sum over p of (mean over d of r_pd)^2 / (P (P - 1))
    I = sum over p and d of (r_pd - mean over d of r_pd)^2 / (P (P - 1) D (D - 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.curve import linkability_by_row
from evaluation.linkage.intervals import Curve, linkability_curve
from evaluation.linkage.table import Ranks
from evaluation.metrics import Method
from evaluation.uncertainty import Resampling, from_scale, to_scale, widening

_LOGIT = Method("logit", lower=0, upper=1)


def linkability_over_draws(
    draws: Sequence[Ranks], sizes: ArrayLike, *, top: int = 1, resampling: Resampling | None = None
) -> Curve:
    """Return the mean linkability over draws for many sizes of the gallery, its intervals hold speakers and draws.

    Parameters
    ----------
    draws : sequence of Ranks
        One a draw, of the same rows.
    sizes, top, resampling
        See `linkability_curve`, which this is for one draw.

    Returns
    -------
    Curve
    """
    curve = linkability_curve(all_draws(draws), sizes, top=top, resampling=resampling)
    if len(draws) < 2 or resampling is None or not resampling.replicates or np.isnan(curve.low).all():
        return curve
    speakers, added, n_units = _parts(draws, curve.sizes, top)
    factor = widening(speakers, added, n_units=n_units, n_draws=len(draws), level=resampling.level)
    centre, low, high = to_scale(np.stack([curve.values, curve.low, curve.high]), _LOGIT)
    ends = [from_scale(centre + factor * (end - centre), _LOGIT) for end in (low, high)]
    wider = factor > 1
    return replace(curve, low=np.where(wider, ends[0], curve.low), high=np.where(wider, ends[1], curve.high))


def all_draws(draws: Sequence[Ranks]) -> Ranks:
    """Return the rows of all draws in one table."""
    if len(draws) == 1:
        return draws[0]
    names = ("speakers", "beaters", "ties", "impostors", "mated")
    columns = {name: np.concatenate([getattr(ranks, name) for ranks in draws]) for name in names}
    return Ranks(**columns, notes=tuple(dict.fromkeys(note for ranks in draws for note in ranks.notes)))


def _parts(
    draws: Sequence[Ranks], sizes: NDArray[np.int64], top: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """The variance that speakers account for, and what draws add to it, at each size; and the number of speakers."""
    names = np.unique(draws[0].speakers)
    residuals, means = [], []
    for ranks in draws:
        speakers = np.searchsorted(names, ranks.speakers)
        values = linkability_by_row(ranks, sizes, top=top)
        sums = np.zeros((len(names), len(sizes)))
        np.add.at(sums, speakers, values)
        rows = np.bincount(speakers, minlength=len(names))[:, None]
        means.append(sums.sum(axis=0) / len(ranks))
        residuals.append((sums - rows * means[-1]) * len(names) / len(ranks))
    stacked, count, n_draws = np.stack(residuals), len(names), len(draws)
    shared = stacked.mean(axis=0)
    pairs = max(count * (count - 1), 1)
    both = np.square(stacked - shared).sum(axis=(0, 1)) / (pairs * n_draws * (n_draws - 1))
    spread = np.var(np.stack(means), axis=0, ddof=1) / n_draws
    return np.square(shared).sum(axis=0) / pairs, np.maximum(0.0, spread - both), count
