"""Worst case: the strongest evidence about one person that scores can give, estimated in four ways.

An attacker who learns a score s multiplies the odds that two recordings are of one person by exp(LLR(s)). The worst
case is the largest |LLR| over the trials. Its size depends on what is assumed between and beyond the trials:

* *pav*: isotonic regression under Laplace's rule of succession; ZEBRA's individual metric [1]_ in natural units.
* *gaussian*: a normal distribution for each class, by its mean and variance; the LLR is a parabola in s, a line where
  the variances are equal, and grows without bound.
* *student*: Student's t for each class, with the location, scale and degrees of freedom of largest likelihood; where
  tails are heavy the LLR grows with log s alone.
* *ranks*: the target speaker is on rank k of N with probability g_k; that changes the odds of the candidate on this
  rank from 1 : N - 1 to g_k : 1 - g_k, so that LLR_k = log(g_k (N - 1) / (1 - g_k)).

Isotonic regression has two traps. The LLR of the last block follows from how many trials it holds, not from how far
they lie from the others: log((n + 1) N_nontarget / N_target) for n target trials above all nontarget ones. And scores
that are low for target trials become one block, whose LLR is 0, although inverting them gives strong evidence. The
other estimates have neither trap; among them, Gaussians extrapolate most strongly beyond the trials. Notes point out
these traps.

References
----------
.. [1] A. Nautsch et al., "The privacy ZEBRA: zero evidence biometric recognition assessment", Interspeech 2020.
.. [2] arXiv 2608.10318, 2026 (worst-case evidence by calibrations, densities and ranks).
.. [3] K. Lange, R. Little and J. Taylor, "Robust statistical modeling using the t distribution", Journal of the
   American Statistical Association 84, 1989.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics.sorted_scores import GivenScores, OtherScores, SortedScores, sort_scores
from spkbase.errors import DataError
from spkbase.rounding import is_constant
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

MOST_FREEDOM = 1000.0
"""Largest degrees of freedom: up to seven deviations from the mean the LLR equals that of a Gaussian within 4 %."""


def gaussian_llrs(scores: SortedScores) -> NDArray[np.float64]:
    """Return Gaussian LLRs: log N(s; m_t, v_t) - log N(s; m_n, v_n), with maximum-likelihood m and v.

    Parameters
    ----------
    scores : SortedScores
        Finite scores, at least two different ones in each class.

    Returns
    -------
    ndarray of float64 of shape (R,)
        Natural LLRs at the thresholds.

    Raises
    ------
    DataError
        If a score is infinite, or a class has only one score.
    """
    terms = []
    for name, weights in (("target", scores.target), ("nontarget", scores.nontarget)):
        mean, variance = _moments(scores.thresholds, weights, name)
        terms.append(-0.5 * (np.log(variance) + (scores.thresholds - mean) ** 2 / variance))
    llr: NDArray[np.float64] = terms[0] - terms[1]
    return llr


def student_llrs(scores: SortedScores) -> NDArray[np.float64]:
    """Return the LLR of each score by a Student's t for each class; see `gaussian_llrs` and `fit_student`."""
    densities = []
    for name, weights in (("target", scores.target), ("nontarget", scores.nontarget)):
        location, scale, freedom = fit_student(scores.thresholds, weights, name=name)
        densities.append(
            _log_student((scores.thresholds - location) / scale, freedom) - np.log(scale)
        )
    llr: NDArray[np.float64] = densities[0] - densities[1]
    return llr


def rank_llrs(shares: ArrayLike) -> NDArray[np.float64]:
    """Return the LLR of the candidate on each rank: log(g_k (N - 1) / (1 - g_k)).

    Parameters
    ----------
    shares : array_like of float of shape (N,)
        Share of trials with the target speaker on each rank, best first; they sum to 1. See
        `evaluation.linkage.rank_shares`.

    Returns
    -------
    ndarray of float64 of shape (N,)
        Natural LLRs: -inf for ranks that the target speaker never has, inf for a rank that it always has; see
        `smoothed_shares`.

    Raises
    ------
    DataError
        If there are fewer than two ranks, or the shares are not a distribution.

    Examples
    --------
    >>> rank_llrs([0.5, 0.5]).tolist(), rank_llrs([0.5, 0.25, 0.25]).round(3).tolist()
    ([0.0, 0.0], [0.693, -0.405, -0.405])
    """
    share = np.asarray(shares, np.float64)
    if share.ndim != 1 or len(share) < 2:
        raise DataError(f"expected a share for each of at least two ranks, got shape {share.shape}")
    if not ((share >= 0).all() and (share <= 1).all() and abs(share.sum() - 1) < 1e-6):
        raise DataError(
            "expected shares from 0 to 1 that sum to 1", remedy="give the result of `rank_shares`"
        )
    with np.errstate(divide="ignore"):
        llr: NDArray[np.float64] = np.log(share) + np.log(len(share) - 1) - np.log1p(-share)
    return llr


def smoothed_shares(shares: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Return shares smoothed by one more trial, whose target speaker is equally likely on every rank: (n g_k + 1 / N) /
    (n + 1).

    So `rank_llrs` stays finite: if the target speaker is first in all of n trials, it is log(n N + 1).

    Parameters
    ----------
    shares : array_like of float of shape (N,)
        See `rank_llrs`.
    n_rows : int
        Number n of trials that they were counted on.

    Examples
    --------
    >>> smoothed_shares([1.0, 0.0], 1)
    array([0.75, 0.25])
    """
    share = np.asarray(shares, np.float64)
    return np.asarray((n_rows * share + 1 / len(share)) / (n_rows + 1))


@one_blas_thread()
def fit_student(
    values: ArrayLike, weights: ArrayLike, *, name: str = "the"
) -> tuple[float, float, float]:
    """Return location, scale and degrees of freedom of a Student's t distribution, by maximum likelihood.

    Parameters
    ----------
    values, weights : array_like of float of shape (R,)
        Scores, and how often each counts.
    name : str
        Name of the class, for errors.

    Returns
    -------
    location, scale, freedom : float
        The degrees of freedom lie from 1 to `MOST_FREEDOM`; with fewer the likelihood is unbounded near a single score.

    Raises
    ------
    DataError
        If a score is infinite, or at least half of the trials have the same score: then the likelihood is unbounded.
    """
    from scipy.optimize import minimize
    from scipy.special import digamma

    values = np.asarray(values, np.float64)
    weights = np.asarray(weights, np.float64)
    mean, variance = _moments(values, weights, name)
    share = weights / weights.sum()
    if share.max() >= 0.5:
        text = (
            f"at least half of the {name} trials have the same score: Student's t cannot be fitted"
        )
        raise DataError(text, remedy="use scores with more digits, or another estimate")
    x = (values[share > 0] - mean) / np.sqrt(variance)
    share = share[share > 0]

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        location, log_scale, log_freedom = parameters.tolist()
        scale = np.exp(log_scale)
        freedom = np.exp(log_freedom)
        z = (x - location) / scale
        pull = (freedom + 1) / (freedom + z * z)  # the weight of each score in the fit
        # sums instead of dot products, which differ between BLAS libraries
        value = log_scale - float(np.sum(share * _log_student(z, freedom)))
        constant = 0.5 * (digamma((freedom + 1) / 2) - digamma(freedom / 2) - 1 / freedom)
        square = z * z
        tail = (freedom + 1) / 2 * square / (freedom * (freedom + square))
        slope_freedom = np.sum(share * (constant - 0.5 * np.log1p(square / freedom) + tail))
        slope = [
            -np.sum(share * pull * z) / scale,
            1 - np.sum(share * pull * z * z),
            -freedom * slope_freedom,
        ]
        return value, np.array(slope)

    order = np.argsort(x)
    below = np.cumsum(share[order])
    quartiles = x[order][np.searchsorted(below, [0.25, 0.5, 0.75]).clip(max=len(x) - 1)]
    start = [quartiles[1], np.log(max((quartiles[2] - quartiles[0]) / 1.35, 1e-3)), np.log(5.0)]
    bounds = [(-np.inf, np.inf), (-25.0, 5.0), (0.0, float(np.log(MOST_FREEDOM)))]
    optimum = minimize(
        loss,
        np.array(start),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    location = float(optimum.x[0])
    scale = float(np.exp(optimum.x[1]))
    freedom = float(np.exp(optimum.x[2]))
    deviation = float(np.sqrt(variance))
    return mean + deviation * location, deviation * scale, freedom


@one_line
@dataclass(frozen=True)
class Evidence:
    """The strongest evidence by one estimate.

    Attributes
    ----------
    llr : float
        Largest |LLR|, in natural units; NaN if undefined.
    note : str
        Why it is undefined, infinite or 0, or what it depends on.
    """

    llr: float
    note: str = ""

    @property
    def log10(self) -> float:
        """The evidence in powers of ten, as in ZEBRA's individual metric."""
        return self.llr / float(np.log(10))

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate for a report."""
        report: dict[str, Any] = {"llr": self.llr, "log10": self.log10}
        if self.note:
            report["note"] = self.note
        return report


@one_line
@dataclass(frozen=True)
class WorstCase:
    """The strongest evidence in any trial, by four estimates; see the module.

    Attributes
    ----------
    pav, gaussian, student, ranks : Evidence
    """

    pav: Evidence
    gaussian: Evidence
    student: Evidence
    ranks: Evidence

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for a report."""
        return {name: evidence.to_dict() for name, evidence in vars(self).items()}


def worst_case(
    target: GivenScores, nontarget: OtherScores = None, *, ranks: Evidence | None = None
) -> WorstCase:
    """Return the strongest evidence in any trial, by each estimate.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    ranks : Evidence, optional
        Evidence from the ranks of target speakers, which need more than scores; see `rank_evidence`.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> found = worst_case([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0])
    >>> round(found.pav.llr, 4), round(found.gaussian.llr, 4), found.ranks.note
    (1.3863, 18.0, 'no ranks: they need scores against all enrolled speakers')
    """
    scores = sort_scores(target, nontarget)
    unknown = Evidence(np.nan, "no ranks: they need scores against all enrolled speakers")
    return WorstCase(
        pav_evidence(scores),
        _largest(gaussian_llrs, scores),
        _largest(student_llrs, scores),
        ranks or unknown,
    )


def pav_evidence(scores: SortedScores) -> Evidence:
    """Return the largest |LLR| by isotonic regression under Laplace's rule, with a note on what it depends on."""
    if len(scores.blocks) == 1:
        turned = SortedScores(-scores.thresholds[::-1], scores.target[::-1], scores.nontarget[::-1])
        if len(turned.blocks) == 1:
            return Evidence(0.0, "one isotonic block: the scores carry no evidence")
        other = np.abs(turned.laplace_blocks.llr).max()
        return Evidence(
            0.0, f"target trials score below the others: inverted, the scores give {other:.2f}"
        )
    blocks = scores.laplace_blocks
    strongest = int(np.abs(blocks.llr).argmax())
    note = ""
    if strongest in (0, len(blocks) - 1):
        counts = {"target": blocks.target[strongest], "nontarget": blocks.nontarget[strongest]}
        inside = " and ".join(f"{count:,.10g} {name}" for name, count in counts.items() if count)
        note = f"an end block of {inside} trials: it depends on their number, not on their distance from the others"
    return Evidence(float(np.abs(blocks.llr[strongest])), note)


def rank_evidence(shares: ArrayLike, n_rows: int) -> Evidence:
    """Return the largest |LLR| by ranks of target speakers, smoothed by one more trial; see `smoothed_shares`."""
    llr = rank_llrs(smoothed_shares(shares, n_rows))
    strongest = int(np.abs(llr).argmax())
    side = "for" if llr[strongest] > 0 else "against"
    note = f"{side} the candidate on rank {strongest + 1} of {len(llr)}; "
    note += f"{n_rows:,} trials plus one spread over all ranks"
    return Evidence(float(np.abs(llr[strongest])), note)


def _largest(
    llrs_of: Callable[[SortedScores], NDArray[np.float64]], scores: SortedScores
) -> Evidence:
    try:
        llrs = llrs_of(scores)
    except DataError as error:
        return Evidence(np.nan, f"not given: {error.text}")
    strongest = int(np.abs(llrs).argmax())
    # the LLR of parabolas or heavy tails may turn back beyond the means
    wrong = (
        (llrs[strongest] > 0) == (strongest < len(llrs) / 2)
        and len(llrs) > 1
        and strongest in (0, len(llrs) - 1)
    )
    note = ""
    if wrong:
        note = "for the class at the other end: reversed scores, or densities of different widths"
    return Evidence(float(np.abs(llrs[strongest])), note)


def _moments(
    values: NDArray[np.float64], weights: NDArray[np.float64], name: str
) -> tuple[float, float]:
    kept = weights > 0
    values = values[kept]
    weights = weights[kept]
    if not np.isfinite(values).all():
        raise DataError(
            f"expected finite {name} scores: an infinite one is infinite evidence under any density"
        )
    if len(values) < 2 or is_constant(values):
        raise DataError(f"expected at least two different {name} scores: a density needs a width")
    share = weights / weights.sum()
    mean = float((share * values).sum())
    return mean, float((share * (values - mean) ** 2).sum())


def _log_student(z: NDArray[np.float64], freedom: float) -> NDArray[np.float64]:
    """Log-density of the standard t."""
    from scipy.special import gammaln

    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(freedom * np.pi)
    return np.asarray(constant - (freedom + 1) / 2 * np.log1p(z * z / freedom))
