"""Distributions of the margin over trials, fitted to rank counts: mixtures, and the one without a shape.

All are weights on the grid of `evaluation.linkage.extrapolation.cells`; the likelihood is that of the cells. Many
tables of counts (resamples) are fitted at once, one a column, by expectation-maximisation.

Two families of components: the margin is *normal*, or the probability of being beaten is *beta*, so that the rank is
beta-binomial. The first is exact for normal scores and, being about ranks, for any increasing function of them. The
second says that linkability falls as a power of the population.

References
----------
.. [1] J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely many
   incidental parameters", Annals of Mathematical Statistics 27, 1956.
.. [2] R. Koenker and I. Mizera, "Convex optimization, shape constraints, compound decisions, and empirical Bayes
   rules", JASA 109, 2014 (the estimate on a grid).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.extrapolation.cells import Cells, beat_probability, margins
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

Array = NDArray[np.float64]
Family = Literal["normal", "beta"]

_TINY = 1e-300
_SPREADS = (0.25, 3.0)
_EXPONENTS = (0.02, 500.0)
_ITERATIONS, _TOLERANCE = 300, 1e-3
MAX_COMPONENTS = 3


@one_line
@dataclass(frozen=True, eq=False)
class Fit:
    """Weights on the grid of margins for each table of counts.

    Attributes
    ----------
    weights : ndarray of float64 of shape (J, B)
        Sum to 1 over the grid.
    log_likelihood : ndarray of float64 of shape (B,)
        Of the cells.
    parameters : ndarray of float64 of shape (3, K, B)
        Share and two parameters of each component: mean and spread of the margin, or the exponents of the beta; empty
        without a shape.
    """

    weights: Array
    log_likelihood: Array
    parameters: Array


@one_blas_thread()
def fit_npmle(cells: Cells, counts: Array, *, iterations: int = 2000) -> Fit:
    """Return the distribution without a shape that makes the counts most likely (the NPMLE on the grid).

    Parameters
    ----------
    cells : Cells
        Their likelihood.
    counts : ndarray of float64 of shape (n_cells, B)
        Tables of counts.
    iterations : int
        Most steps.

    Returns
    -------
    Fit
    """
    share = counts / counts.sum(axis=0)
    weights = np.full((cells.likelihood.shape[1], counts.shape[1]), 1 / cells.likelihood.shape[1])
    for _ in range(iterations):
        pull = _pull(cells.likelihood, weights, share)
        weights *= pull
        # no weight would grow by much: within this share of the best log-likelihood per trial
        if pull.max() < 1 + 1e-5:
            break
    return Fit(weights, _log_likelihood(cells.likelihood, weights, counts), np.empty((3, 0, counts.shape[1])))


@one_blas_thread()
def fit_mixture(cells: Cells, counts: Array, *, family: Family, components: int, start: Array | None = None) -> Fit:
    """Return a mixture of components of one family, fitted to tables of counts.

    Parameters
    ----------
    cells, counts
        See `fit_npmle`.
    family : {"normal", "beta"}
        What a component is.
    components : int
        K.
    start : ndarray of float64 of shape (3, K, 1), optional
        Parameters to start from.

    Returns
    -------
    Fit
    """
    share = counts / counts.sum(axis=0)
    parameters = _start(cells, share, components, family) if start is None else start
    parameters = np.broadcast_to(parameters, (3, components, counts.shape[1]))
    before = np.full(counts.shape[1], -np.inf)
    for _ in range(_ITERATIONS):
        part = _density(parameters, family) * parameters[0]  # (J, K, B)
        weights = part.sum(axis=1)
        found = _log_likelihood(cells.likelihood, weights, counts)
        if (found - before).max() < _TOLERANCE:
            break
        before = found
        part *= _pull(cells.likelihood, weights, share)[:, None, :]
        parameters = _update(part, parameters, family)
    return Fit(weights, found, parameters)


def _pull(likelihood: Array, weights: Array, share: Array) -> Array:
    """By how much each weight would grow in a step, shape (J, B)."""
    return likelihood.T @ (share / np.maximum(likelihood @ weights, _TINY))


def _log_likelihood(likelihood: Array, weights: Array, counts: Array) -> Array:
    return np.asarray((counts * np.log(np.maximum(likelihood @ weights, _TINY))).sum(axis=0))


def _density(parameters: Array, family: Family) -> Array:
    """Weights of each component on the grid, shape (J, K, B)."""
    z = margins()
    if family == "normal":
        _, mean, spread = parameters
        log_density = -0.5 * ((z[:, None, None] - mean) / spread) ** 2
    else:
        _, first, second = parameters
        log_p, log_q = _logs(z)
        log_density = (first - 1) * log_p[:, None, None] + (second - 1) * log_q[:, None, None]
        log_density -= 0.5 * (z**2)[:, None, None]
    log_density -= log_density.max(axis=0)
    density = np.exp(log_density, out=log_density)
    density /= density.sum(axis=0)
    return density


def _update(part: Array, before: Array, family: Family) -> Array:
    """Parameters that fit the weighted grid of each component best."""
    z = margins()
    total = np.maximum(part.sum(axis=0), _TINY)
    if family == "normal":
        mean = np.tensordot(z, part, 1) / total
        second = np.tensordot(z**2, part, 1) / total
        spread = np.sqrt(np.clip(second - mean**2, _SPREADS[0] ** 2, _SPREADS[1] ** 2))
        return np.stack([total / total.sum(axis=0), mean, spread])
    log_p, log_q = (np.tensordot(logs, part, 1) / total for logs in _logs(z))
    return np.stack([total / total.sum(axis=0), *_beta_exponents(log_p, log_q, before[1], before[2])])


def _beta_exponents(log_p: Array, log_q: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Exponents of the beta distribution with these means of log p and log (1 - p), by Newton's method."""
    from scipy.special import digamma, polygamma

    for _ in range(4):
        both = first + second
        off_p = digamma(first) - digamma(both) - log_p
        off_q = digamma(second) - digamma(both) - log_q
        shared = polygamma(1, both)
        aa, bb = (polygamma(1, first) - shared) * first, (polygamma(1, second) - shared) * second
        ab, ba = -shared * second, -shared * first
        determinant = aa * bb - ab * ba
        step_first = (bb * off_p - ab * off_q) / determinant
        step_second = (aa * off_q - ba * off_p) / determinant
        first = np.clip(first * np.exp(np.clip(-step_first, -1, 1)), *_EXPONENTS)
        second = np.clip(second * np.exp(np.clip(-step_second, -1, 1)), *_EXPONENTS)
    return first, second


def _logs(z: Array) -> tuple[Array, Array]:
    from scipy.special import log_ndtr

    return log_ndtr(-z), log_ndtr(z)


def _start(cells: Cells, share: Array, components: int, family: Family) -> Array:
    """Components side by side, at the likeliest margin of each cell."""
    z = margins()
    likely = z[np.argmax(cells.likelihood, axis=1)].clip(-4, 4.5)
    mean = likely @ share
    spread = np.sqrt(np.maximum((likely**2) @ share - mean**2, 0.25))
    places = np.linspace(-1, 1, components) if components > 1 else np.zeros(1)
    means = mean + places[:, None] * spread
    even = np.full_like(means, 1 / components)
    if family == "normal":
        return np.stack([even, means, np.broadcast_to(spread, means.shape) / np.sqrt(components)])
    p = beat_probability(means)
    return np.stack([even, np.full_like(p, 0.3), np.clip(0.3 * (1 - p) / p, 0.3, 50.0)])
