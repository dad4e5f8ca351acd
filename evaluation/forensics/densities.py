"""Calibration by kernel densities: the likelihood ratio of a score is the ratio of two smooth histograms.

    LLR(s) = log f_target(s) - log f_nontarget(s),    f(s) = mean of N(s; s_i, h^2) over the training scores s_i

The width h of each class is Silverman's, (4 / 3 n)^(1/5) standard deviations. Infinite training scores are point
masses: the densities are scaled by the shares of finite scores. Unlike a logistic regression the map need not rise, and
beyond the training scores it rests on the tails of the kernels: so it is used with bounds
(`evaluation.forensics.bounds`). Numbers equal those of the package `lir`.

References
----------
.. [1] B. Silverman, "Density Estimation for Statistics and Data Analysis", 1986.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics import GivenScores, OtherScores, sort_with_warning
from evaluation.trials import floats_of
from spkbase.errors import DataError
from spkbase.rounding import is_constant
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

_SMALLEST = 1e-250


@one_line
@dataclass(frozen=True, eq=False)
class Kernels:
    """The density of the scores of a class.

    Attributes
    ----------
    scores : ndarray of float64 of shape (n,)
        Finite training scores, rising.
    width : float
        Standard deviation of the kernels.
    share : float
        Share of finite training scores.
    """

    scores: NDArray[np.float64]
    width: float
    share: float = 1.0

    def log_density(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of the density at finite values of shape (N,)."""
        from scipy.stats import gaussian_kde

        # its widths are in units of the deviation
        kernels = gaussian_kde(self.scores, self.width / self.scores.std(ddof=1))
        density: NDArray[np.float64] = kernels(values)
        # the density may underflow; logarithms avoid that but take several times as long
        far = density < _SMALLEST
        density[far] = 1.0
        logs: NDArray[np.float64] = np.log(density)
        if far.any():
            logs[far] = kernels.logpdf(values[far])
        logs += np.log(self.share)
        return logs


@dataclass(frozen=True)
class KernelCalibration:
    """A calibration by kernel densities, trained by `train_kernel`.

    Attributes
    ----------
    target, nontarget : Kernels
        The density of each class.
    """

    target: Kernels
    nontarget: Kernels

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the natural LLRs of scores of shape (N,); infinite scores stay as they are."""
        values = floats_of(scores, "scores").astype(np.float64)
        finite = np.isfinite(values)
        if finite.any():
            inner = values[finite]
            ends = np.concatenate([self.target.scores, self.nontarget.scores])
            beyond = int(((inner < ends.min()) | (inner > ends.max())).sum())
            if beyond:
                text = "%d of %d scores are beyond all training scores: bound their ratios"
                logger.warning(text, beyond, len(values))
            values[finite] = self.target.log_density(inner) - self.nontarget.log_density(inner)
        return values


def train_kernel(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
) -> KernelCalibration:
    """Train a calibration by kernel densities.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Training scores, on any scale.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.

    Raises
    ------
    DataError
        If a class is empty or has no two distinct finite scores, or a score is NaN.

    Examples
    --------
    >>> calibration = train_kernel([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0])
    >>> calibration([-2.0, 0.0, 2.0]).round(3).tolist()
    [-9.871, 0.0, 9.871]
    """
    scores = sort_with_warning(target, nontarget, labels)
    return KernelCalibration(
        _kernels("target", scores.thresholds, scores.target),
        _kernels("nontarget", scores.thresholds, scores.nontarget),
    )


def _kernels(name: str, scores: NDArray[np.float64], counts: NDArray[np.float64]) -> Kernels:
    """Return the density of a class from its distinct scores and their counts."""
    own = np.repeat(scores, counts.astype(int))
    finite = own[np.isfinite(own)]
    if not len(finite) or is_constant(finite):
        text = f"expected {name} scores that differ, got {len(finite)} equal finite ones"
        raise DataError(text, remedy="a density needs several: give more training trials")
    width = (4 / (3 * len(finite))) ** 0.2 * float(finite.std())
    return Kernels(finite, width, len(finite) / len(own))
