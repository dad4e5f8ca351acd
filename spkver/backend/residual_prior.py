"""What keeps the covariance within speakers regular where the vectors do not determine it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkver.backend.latent_basis import lower_factor
from spkver.backend.moments import warn_of_few
from spkver.backend.sessions import Sessions

_SINGULAR = 1e-8  # least eigenvalue of a correlation matrix that counts as determined
_CONSTANT = 1e-12  # standard deviation, as a part of the largest absolute value, below which there is none
_SMALL = 1e-10  # standard deviation, as a part of the largest of all dimensions, that counts as none
_LARGEST = 1e100  # beyond, squares of squares leave the range of float64


@dataclass(frozen=True, eq=False)
class ResidualPrior:
    """An inverse Wishart prior of a covariance S, p(S) ~ |S|^(-nu/2) exp(-nu/2 tr(S0 S^-1)), with a diagonal mode S0.

    Attributes
    ----------
    weight : float
        nu: as how many vectors the prior counts.
    variances : ndarray of shape (R,)
        Diagonal of S0, above 0.
    """

    weight: float
    variances: NDArray[np.float64]

    def log_density(self, covariance: NDArray[np.float64]) -> float:
        """Return log p(S) without its constant."""
        if self.weight == 0:
            return 0.0
        whitening = np.linalg.inv(lower_factor(covariance))
        trace = float((self.variances * (whitening**2).sum(axis=0)).sum())
        return -0.5 * self.weight * (trace - 2 * float(np.log(np.diag(whitening)).sum()))

    def posterior(self, scatter: NDArray[np.float64], count: float) -> NDArray[np.float64]:
        """Return the likeliest covariance of `count` vectors with a scatter: (C + nu S0) / (N + nu)."""
        return (scatter + self.weight * np.diag(self.variances)) / (count + self.weight)


def residual_prior(sessions: Sessions, weight: float | None = None, *, diagonal: bool = False) -> ResidualPrior:
    """Return the prior of the covariance within speakers.

    Where the vectors determine the covariance within speakers (its correlation matrix has no eigenvalue below 1e-8,
    or, where it is diagonal, no dimension without variance) the weight is 0, and numbers are what they would be without
    a prior. Else (few vectors, constant or repeated dimensions) it is R, the number of dimensions. S0 is the variance
    of each dimension, times the part of it that is within speakers, on average over the dimensions; a constant
    dimension (or one that varies by less than 1e-10 of the one that varies most) gets the mean of the others.

    Parameters
    ----------
    sessions : Sessions
        Vectors of speakers.
    weight : float, optional
        Another weight.
    diagonal : bool
        Whether the covariance is to be diagonal.

    Returns
    -------
    ResidualPrior

    Raises
    ------
    DataError
        If there are fewer than two speakers, no speaker has two vectors that differ, speakers do not differ, or the
        weight is 0 and the covariance is not determined.
    """
    within, total, varies = variances_within(sessions)
    parts = np.diag(within)[varies] / total[varies]
    variances = np.where(varies, total * parts.mean(), 0)
    variances[~varies] = variances[varies].mean()
    singular = not varies.all() or parts.min() < _SINGULAR
    if not singular and not diagonal:
        scale = 1 / np.sqrt(np.diag(within))
        singular = bool(np.linalg.eigvalsh(within * scale[:, None] * scale)[0] < _SINGULAR)
    if weight == 0 and singular:
        raise DataError(
            f"{len(sessions.vectors)} vectors of {len(sessions.counts)} speakers do not determine the covariance "
            f"within speakers in {sessions.dimension} dimensions",
            remedy="reduce the dimensions (lda), or leave plda.prior out",
        )
    if weight is None and not singular and not diagonal:
        n_free = len(sessions.vectors) - len(sessions.counts)
        remedy = f"plda.prior, such as {sessions.dimension}, or lda before it"
        warn_of_few(n_free, sessions.dimension, "covariance within speakers", remedy=remedy)
    return ResidualPrior(float(sessions.dimension * singular if weight is None else weight), variances)


def variances_within(sessions: Sessions) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return what varies in vectors of speakers.

    Returns
    -------
    within : ndarray of shape (R, R)
        Covariance within speakers, divided by the number of vectors.
    total : ndarray of shape (R,)
        Variances.
    varies : ndarray of bool of shape (R,)
        Dimensions that are not constant.

    Raises
    ------
    DataError
        If there are fewer than two speakers, no speaker has two vectors that differ, or speakers do not differ.
    """
    vectors, speakers = sessions.vectors, sessions.means
    if len(speakers) < 2:
        raise DataError(
            f"expected vectors of at least two speakers, got {len(vectors)} of one: what differs between speakers "
            "cannot be learnt",
            remedy="name the speaker of each vector",
        )
    largest = np.abs(vectors).max(axis=0)
    if largest.max() > _LARGEST:
        raise DataError(f"a number of {largest.max():.3g} is far too large", remedy="scale the vectors")
    inside = vectors - speakers[sessions.models]
    within: NDArray[np.float64] = inside.T @ inside / len(vectors)
    total = vectors.var(axis=0)
    deviations = np.sqrt(total)
    varies = (deviations > _CONSTANT * largest) & (deviations > _SMALL * deviations.max())
    if not varies.any():
        raise DataError("the vectors are all the same: nothing can be learnt from them", remedy="extract them anew")
    parts = np.diag(within)[varies] / total[varies]
    if not parts.max() > _CONSTANT:
        why = "each speaker has one" if len(speakers) == len(vectors) else "those of a speaker are all the same"
        raise DataError(
            f"expected speakers with vectors that differ, but {why}: what varies between the sessions of a speaker "
            "cannot be learnt",
            remedy="add sessions, or check the names of the speakers",
        )
    if not parts.min() < 1 - _CONSTANT:
        raise DataError("the means of all speakers are the same", remedy="check the names of the speakers")
    return within, total, varies
