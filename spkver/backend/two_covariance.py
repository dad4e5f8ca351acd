"""The two-covariance model: speakers and their sessions are Gaussian, each with a covariance of its own.

References
----------
N. Brummer and E. de Villiers, "The speaker partitioning problem", Odyssey 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.backend.plda import Plda
from spkver.backend.plda_scoring import plda_scores
from spkver.backend.residual_prior import residual_prior
from spkver.backend.sessions import Sessions, checked_vectors

_ROUNDING = 1e-14  # of the largest eigenvalue


@one_line
@dataclass(frozen=True, eq=False)
class TwoCovariance:
    """Speakers ~ N(m, B), vectors of a speaker ~ N(its own, W).

    Attributes
    ----------
    mean : ndarray of shape (R,)
    between : ndarray of shape (R, R)
        B, without negative eigenvalues.
    within : ndarray of shape (R, R)
        W, positive definite.
    """

    mean: NDArray[np.float64]
    between: NDArray[np.float64]
    within: NDArray[np.float64]

    @cached_property
    def plda(self) -> Plda:
        """The same model as a PLDA: F F' = B without directions that are rounding, and S = W.

        Raises
        ------
        DataError
            If shapes disagree, a number is not finite, or W is not positive definite.
        """
        between = np.asarray(self.between, np.float64)
        shapes = {between.shape, np.shape(self.within), 2 * np.shape(self.mean)}
        if len(shapes) > 1 or not between.size or not np.isfinite(between).all():
            raise DataError(f"expected the mean (R,) and finite matrices B and W (R, R), got shapes {sorted(shapes)}")
        with one_blas_thread():
            values, directions = np.linalg.eigh(between)
        used = values > _ROUNDING * values[-1]
        return Plda(self.mean, directions[:, used] * np.sqrt(values[used]), self.within)


def fit_two_covariance(
    vectors: NDArray, speakers: Sequence[str] | NDArray, *, convention: str = "book"
) -> TwoCovariance:
    """Return the moments of labelled vectors: their mean, and the covariances between and within speakers.

    With x_s the mean of the n_s vectors of speaker s, N vectors and K speakers, m the mean of all vectors,

        S_w = sum over sessions of (x - x_s)(x - x_s)'      S_b = sum over speakers of n_s (x_s - m)(x_s - m)'
        W = S_w / (N - K)      B = (S_b / (K - 1) - W) / n      n = (N - sum over speakers of n_s^2 / N) / (K - 1)

    The means of speakers spread by B + W / n_s, so W / n is taken off: both are unbiased [1]_, and B is then projected
    to the nearest positive semi-definite matrix. SIDEKIT's are S_w / N and S_b / N, which are those of many sessions a
    speaker; of two W is half as large as it should be. W has a prior where the vectors do not determine it
    (`residual_prior`).

    Parameters
    ----------
    vectors : ndarray of shape (N, R)
    speakers : sequence of str or int, of length N
    convention : {"book", "sidekit"}

    Returns
    -------
    TwoCovariance

    Raises
    ------
    DataError
        As `fit_plda`, or if the means of speakers differ no more than their sessions let them.

    References
    ----------
    .. [1] S. R. Searle, G. Casella and C. E. McCulloch, "Variance Components", 1992, section 3.6 (the analysis of
       variance of unbalanced data).
    """
    sessions, _ = Sessions.named(checked_vectors(vectors, "training vectors"), speakers)
    with one_blas_thread():
        prior = residual_prior(sessions)
        mean = sessions.vectors.mean(axis=0)
        inside = sessions.vectors - sessions.means[sessions.models]
        outside = (sessions.means - mean) * np.sqrt(sessions.counts)[:, None]
        within, between, count = inside.T @ inside, outside.T @ outside, len(sessions.vectors)
        if convention == "sidekit":
            return TwoCovariance(mean, between / count, prior.posterior(within, count))
        n_others, free = len(sessions.counts) - 1, count - len(sessions.counts)
        size = (count - (sessions.counts**2).sum() / count) / n_others
        values, directions = np.linalg.eigh((between / n_others - within / free) / size)
        if not values[-1] > 0:
            text = "the means of the speakers differ no more than those of the same speaker's sessions would"
            raise DataError(text, remedy="check the names of the speakers")
        between = directions * np.maximum(values, 0) @ directions.T
        return TwoCovariance(mean, between, prior.posterior(within, free))


def two_covariance_scores(
    model: TwoCovariance,
    sessions: Sessions,
    tests: NDArray,
    models: NDArray,
    segments: NDArray,
    *,
    sessions_as: str = "all",
) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of each trial: one speaker against two.

    Parameters and errors are those of `plda_scores`, which computes them: the model is a PLDA of full rank.

    Returns
    -------
    ndarray of float64 of shape (n,)
        In nat.
    """
    return plda_scores(model.plda, sessions, tests, models, segments, sessions_as=sessions_as)
