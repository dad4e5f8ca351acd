"""The tail of impostor scores, and where the mated scores lie in it.

Each trial has an impostor distribution of its own: speakers in a crowded region have closer impostors. Of each only the
largest scores matter. Beyond a trial's own threshold, its lowest kept score, they follow a generalised Pareto
distribution (Pickands, Balkema and de Haan) with a shape that all trials share and a scale of the trial. Scales and
thresholds of single trials are noisy, so they are drawn towards the common ones by as much as their scatter is noise
(James and Stein).

References
----------
.. [1] J. Pickands, "Statistical inference using extreme order statistics", Annals of Statistics 3, 1975.
.. [2] S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line

Array = NDArray[np.float64]
MIN_KEPT = 10
_SHAPES = (-0.9, 0.9)


@one_line
@dataclass(frozen=True, eq=False)
class Tail:
    """A fitted tail.

    Attributes
    ----------
    shape : float
        Of the generalised Pareto distribution: below 0 scores have an upper end, above 0 they have none.
    means : ndarray of float64 of shape (n,)
        Mean excess over each trial's threshold.
    thresholds : ndarray of float64 of shape (n,)
        Where each trial's tail begins.
    rates : ndarray of float64 of shape (n,)
        Share of its impostors beyond.
    excess : ndarray of float64 of shape (n, m)
        What the kept scores are above the threshold, as a multiple of the mean excess.
    """

    shape: float
    means: Array
    thresholds: Array
    rates: Array
    excess: Array


def fit_tail(largest: Array, impostors: NDArray[np.int64]) -> Tail:
    """Return the tail of each trial's impostor scores.

    Parameters
    ----------
    largest : ndarray of float64 of shape (n, m + 1)
        The largest impostor scores of each trial, in any order; at least 11.
    impostors : ndarray of int64 of shape (n,)
        How many impostors each trial was compared with.

    Raises
    ------
    DataError
        If there are too few scores, or a trial's are all the same.
    """
    largest = -np.sort(-np.asarray(largest, np.float64), axis=1)
    count = largest.shape[1] - 1
    if count < MIN_KEPT:
        raise DataError(f"expected at least {MIN_KEPT + 1} impostor scores of each trial, got {largest.shape[1]}")
    if not np.isfinite(largest).all():
        raise DataError("expected finite impostor scores")
    excess = largest[:, :-1] - largest[:, -1:]
    row_means = excess.mean(axis=1)
    if not (row_means > 0).all():
        raise DataError("expected impostor scores that differ, got a trial whose largest ones are all the same")
    logs = np.log(row_means)
    scatter, noise = float(logs.var()), float((excess / row_means[:, None]).var(axis=1).mean()) / count
    trust = max(0.0, 1 - noise / scatter) if scatter > 0 else 0.0
    means = np.exp(logs.mean() + trust * (logs - logs.mean()))
    relative = excess / means[:, None]
    relative /= relative.mean()
    # excesses over their own mean have a shape that is lower by 1 / m
    shape = float(np.clip(_shape(relative.ravel()) + trust / count, *_SHAPES))
    # the rate beyond a trial's threshold is known within 1 / sqrt(m), and so is the threshold, in units of the scale
    thresholds = largest[:, -1]
    wobble = (float(row_means.mean()) * (1 - shape)) ** 2 / count
    trust = max(0.0, 1 - wobble / max(float(thresholds.var()), wobble))
    thresholds = thresholds.mean() + trust * (thresholds - thresholds.mean())
    return Tail(shape, means, thresholds, count / np.asarray(impostors, np.float64), relative)


def beat_probabilities(
    tail: Tail, mated: Array, fallback: Array, *, shape: float | None = None, stretch: float = 1.0
) -> Array:
    """Return the probability that a random impostor beats each trial: from the tail, below its threshold from the rank.

    Parameters
    ----------
    tail : Tail
        The fit.
    mated : ndarray of float64 of shape (n,)
        Mated scores.
    fallback : ndarray of float64 of shape (n,)
        The probability for trials below their threshold.
    shape, stretch : float
        Another shape, and a factor of the mean excess, as resamples have them.
    """
    shape = tail.shape if shape is None else shape
    above = (mated - tail.thresholds) / (tail.means * stretch * (1 - shape))
    inside = np.maximum(above, 0.0)
    exponential = abs(shape) < 1e-6
    survival = np.exp(-inside) if exponential else np.maximum(1 + shape * inside, 0.0) ** (-1 / shape)
    return np.where(above > 0, tail.rates * survival, fallback)


def influences(tail: Tail) -> tuple[Array, Array]:
    """Return what each trial adds to the shape and to the mean excess when it counts once more, both of shape (n,).

    The score of the shape with the scale profiled out, over its information 1 / (1 + shape)**2 for each excess.
    """
    shape = tail.shape if abs(tail.shape) > 1e-4 else 1e-4
    scale = 1 - shape  # of excesses with mean 1
    inner = np.maximum(1 + shape * tail.excess / scale, 1e-9)
    to_shape = np.log(inner) / shape**2 - (1 / shape + 1) * (tail.excess / scale) / inner
    to_scale = (-1 + (1 + shape) * (tail.excess / scale) / inner) / scale
    # least squares of the one on the other: their information is [2, 1; 1, 1 + shape] / ((1 + shape) (1 + 2 shape))
    profiled = to_shape - to_scale * scale / (1 + shape)
    profiled = np.clip(profiled, *np.quantile(profiled, [0.001, 0.999]))
    total = profiled.size / (1 + shape) ** 2
    return profiled.sum(axis=1) / total, (tail.excess.mean(axis=1) - 1) / len(tail.excess)


def _shape(excess: Array) -> float:
    """Shape of the generalised Pareto distribution by maximum likelihood, the scale profiled out (Grimshaw)."""
    from scipy.optimize import minimize_scalar

    most = float(excess.max())

    def loss(theta: float) -> float:
        # theta = -shape / scale, below 1 / the largest
        shape = float(np.log1p(-theta * excess).mean())
        scale = -shape / theta if theta else 1.0
        return float(np.log(scale)) + shape + 1

    optimum = minimize_scalar(loss, bounds=(-5.0, (1 - 1e-6) / most), method="bounded", options={"xatol": 1e-7})
    return float(np.log1p(-optimum.x * excess).mean())
