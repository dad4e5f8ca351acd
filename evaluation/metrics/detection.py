"""Detection metrics: equal error rates, costs and single points of the curve.

A trial is accepted when its score is at or above the threshold. `p_miss` is the share of rejected target trials, `p_fa`
that of accepted nontarget trials, both as fractions. Equal scores cannot be distinguished, so they are pooled: every
number here depends only on the order of the scores, not on the order of the trials. Scores may be infinite.

The *hull* is the convex hull of the receiver operating characteristic (ROCCH), the best that any monotone calibration
of the scores could reach; isotonic regression (pool adjacent violators) gives it. `eer`, `min_dcf` and `prbep` are
those of the hull. Each metric takes the scores of target and of nontarget trials, or `SortedScores` alone.

Real curves have steps, so misses and false alarms are rarely equal at any threshold, and tools differ in what they
then report as equal error rate (SpeechBrain accepts only above the threshold):

``rocch``
    Where the convex hull of the curve has equal rates; at most 0.5. The default.
``interpolated``
    Where the straight line between two neighbouring points of the curve has equal rates. Common in papers
    (scikit-learn's `roc_curve` with `brentq`).
``kaldi``
    The miss rate at the first target score that has no more false alarms, in proportion, above or at it: Kaldi's
    `compute-eer`, and so the VoicePrivacy challenges 2020 and 2022. Ties count against the system.
``speechbrain``
    The mean of both rates at the first score where they differ least; the VoicePrivacy challenges 2024 and 2026.
``nearest``
    The mean of both rates at the point where they differ least, among the points that scikit-learn's `roc_curve` keeps
    (those where the curve goes on with another step). `spkanon_eval` reports this mean for groups, and the false-alarm
    rate alone, `EqualError.p_fa`, for all trials.

Distances given as scores look like perfect privacy: the best threshold accepts everybody or nobody, the hull is the
diagonal, and nothing is disclosed. So a `reversal` is reported wherever metrics of scores are shown.

References
----------
.. [1] N. Brümmer and E. de Villiers, "The BOSARIS Toolkit: theory, algorithms and code", 2011.
.. [2] T. Fawcett and A. Niculescu-Mizil, "PAV and the ROC convex hull", Machine Learning 68, 2007.
.. [3] A. Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics.sorted_scores import (
    GivenScores,
    Hull,
    OtherScores,
    Prior,
    SortedScores,
    sort_scores,
)
from evaluation.trials import Scores, numbers_of
from spkbase.errors import DataError
from spkbase.rounding import is_constant

logger = logging.getLogger(__name__)
SRE08 = (0.01, 10.0, 1.0)
"""Target prior, cost of a miss and of a false alarm of NIST's evaluation of 2008."""
METHODS = ("rocch", "interpolated", "kaldi", "speechbrain", "nearest")

_LEAST = 1e-9  # replaces a count of 0 in the formula; the bound for 0 is known exactly


class OperatingPoint(float):
    """A number that belongs to a threshold: a float that also holds the threshold.

    Attributes
    ----------
    threshold : float
        The score from which on trials are accepted; +inf where none is.
    p_miss, p_fa : float
        The two error rates there.
    """

    threshold: float
    p_miss: float
    p_fa: float

    def __new__(
        cls,
        value: float,
        threshold: float = np.nan,
        p_miss: float = np.nan,
        p_fa: float = np.nan,
    ) -> OperatingPoint:
        point = super().__new__(cls, value)
        point.threshold = threshold
        point.p_miss = p_miss
        point.p_fa = p_fa
        return point


@dataclass(frozen=True)
class EqualError:
    """An equal error rate and where it lies.

    Parameters
    ----------
    rate : float
        The equal error rate, as a fraction.
    threshold : float
        The score at that point; for ``rocch`` and ``interpolated`` the score at whose step the rates cross.
    p_miss, p_fa : float
        The two error rates there; both equal `rate` on an interpolated line.
    """

    rate: float
    threshold: float
    p_miss: float
    p_fa: float


def eer(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    method: str = "rocch",
) -> OperatingPoint:
    """Return the equal error rate.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    method : {"rocch", "interpolated", "kaldi", "speechbrain", "nearest"}
        See the module.

    Returns
    -------
    OperatingPoint
        A float with its `threshold`: a fraction; between 0 and 0.5 for ``rocch``, between 0 and 1 for the others.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or the method is unknown.

    Examples
    --------
    >>> eer([1.0, 1.0], [1.0])
    0.5
    >>> eer([0.5, -1.0, 2.0, 0.0], labels=[1, 0, 1, 0]).threshold
    0.5
    """
    point = equal_error(sort_with_warning(target, nontarget, labels), method=method)
    return OperatingPoint(point.rate, point.threshold, point.p_miss, point.p_fa)


def auc(target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None) -> float:
    """Return the area under the receiver operating characteristic.

    It is the probability that a target trial scores above a nontarget trial, where equal scores count one half: the
    statistic U of Mann and Whitney, divided by the number of pairs.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.

    Returns
    -------
    float
        1 for scores that separate the classes, 0.5 for scores without information.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> auc([1.0, 2.0], [0.0, 1.0])
    0.875
    """
    scores = sort_with_warning(target, nontarget, labels)
    below = scores.rejected[:-1] + scores.nontarget / 2
    return float((scores.target * below).sum() / (scores.n_target * scores.n_nontarget))


def equal_error(scores: SortedScores, *, method: str = "rocch") -> EqualError:
    """Return the equal error rate and where it lies; see `eer`.

    Examples
    --------
    >>> equal_error(sort_scores([1.0, 3.0, 4.0], [0.0, 2.0]), method="kaldi").threshold
    3.0
    """
    if method not in METHODS:
        raise DataError(f"expected one of the methods {', '.join(METHODS)}, got {method!r}")
    if method in _READINGS:
        return _READINGS[method](scores)
    after = scores.crossing
    exact = after < len(scores) and scores.excess(after) == 0
    cut = after if exact else after - 1
    threshold = float(scores.thresholds[cut])
    if method == "rocch":
        rate = crossing_point(scores.hull.p_miss, scores.hull.p_fa)
    else:
        misses = scores.misses[after - 1 : after + 1]
        rejected = scores.rejected[after - 1 : after + 1]
        rate = crossing_point(
            misses / scores.n_target, (scores.n_nontarget - rejected) / scores.n_nontarget
        )
    return EqualError(rate, threshold, rate, rate)


def rocch_eer(scores: SortedScores) -> float:
    """Return the equal error rate on the ROC convex hull, from the one edge that it lies on.

    The result equals that of `eer`, to the last bit if weights are whole numbers. It takes half as long if no other
    metric is needed, as in resamples: an end of a line from accepting all to rejecting all is replaced by the point
    farthest below the line until no point is below it.

    Examples
    --------
    >>> rocch_eer(sort_scores([1.0, 1.0], [1.0]))
    0.5
    """
    misses = scores.misses
    false_alarms = scores.n_nontarget - scores.rejected
    first = 0
    last = len(misses) - 1
    while True:
        piece = slice(first, last + 1)
        below = _below(misses[piece], false_alarms[piece], 0, last - first)
        farthest = int(below.argmax())
        if below[farthest] <= 0:
            break
        if scores.excess(first + farthest) >= 0:
            last = first + farthest
        else:
            first += farthest
    on_line = np.flatnonzero(_below(misses, false_alarms, first, last) == 0)
    ends = on_line[[0, -1]]
    return crossing_point(misses[ends] / misses[-1], false_alarms[ends] / false_alarms[0])


def _below(misses: np.ndarray, false_alarms: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the distance of points below the line between two of them, times the line's length.

    Exact for whole numbers.
    """
    accepted = false_alarms[first] - false_alarms
    missed = misses - misses[first]
    rise = misses[last] - misses[first]
    run = false_alarms[first] - false_alarms[last]
    distance: np.ndarray = accepted * rise - missed * run
    return distance


def crossing_point(rising: np.ndarray, falling: np.ndarray) -> float:
    """Return the value at which a rising and a falling curve meet.

    Parameters
    ----------
    rising, falling : ndarray of float64 of shape (V,)
        Values at their common vertices; the curves are straight between them.
    """
    after = int(np.argmax(rising >= falling))
    gap_before = falling[after - 1] - rising[after - 1]
    gap_after = falling[after] - rising[after]
    share = gap_before / (gap_before - gap_after)
    return float(rising[after - 1] + share * (rising[after] - rising[after - 1]))


@dataclass(frozen=True)
class Reversal:
    """Scores whose target trials score below the nontarget ones, or which are all equal.

    Attributes
    ----------
    rate : float
        The interpolated EER, above 0.5; 0.5 where all scores are equal.
    clear : bool
        Whether that is more than chance gives for so few trials; if not, the scores may carry no information.
    """

    rate: float
    clear: bool

    @property
    def text(self) -> str:
        """The warning, in a sentence."""
        if self.rate == 0.5:
            return "all scores are equal: a broken system, not privacy"
        where = (
            f"target trials score below nontarget ones (interpolated EER {100 * self.rate:.1f} %)"
        )
        if self.clear:
            return f"REVERSED? {where}: distances look private; negate them"
        return f"{where}, not significantly; an attacker could invert the scores"


def reversal_at(rate: float, n_trials: float) -> Reversal | None:
    """Interpret an interpolated EER as evidence of reversed scores.

    Scores without information have an EER of 0.5 with a standard error of at most 0.5 / sqrt(n_trials); above 0.5 by
    twice that they are clearly reversed.

    Parameters
    ----------
    rate : float
        The interpolated EER; NaN where it is not known.
    n_trials : float
        Number of trials of the rarer class.

    Returns
    -------
    Reversal or None
        None if the rate is at most 0.5.

    Examples
    --------
    >>> reversal_at(0.3, 100), reversal_at(0.93, 100).clear, reversal_at(0.51, 100).clear
    (None, True, False)
    """
    if not rate > 0.5:
        return None
    return Reversal(float(rate), bool(rate > 0.5 + 1 / np.sqrt(n_trials)))


def reversal(target: GivenScores, nontarget: OtherScores = None) -> Reversal | None:
    """Return whether and how scores are reversed or all equal; None if they are neither.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.

    Examples
    --------
    >>> reversal([0.1, 0.2, 0.3] * 9, [0.7, 0.8, 0.9] * 9).rate
    1.0
    """
    if nontarget is not None and not isinstance(target, Scores):
        target = numbers_of(target, "target scores")
        nontarget = numbers_of(nontarget, "nontarget scores")
        # with an EER above 0.5 more than half of each class is on the wrong side: compare the medians first
        if not (len(target) and len(nontarget)):
            return None
        middle = float(np.median(target))
        other = float(np.median(nontarget))
        if middle > other and not is_constant([middle, other]):
            return None
    scores = sort_scores(target, nontarget)
    if is_constant(scores.thresholds):
        return Reversal(0.5, clear=True)
    return reversal_at(eer(scores, method="interpolated"), min(scores.n_target, scores.n_nontarget))


def sort_with_warning(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None
) -> SortedScores:
    """Sort scores as `sort_scores` does, and warn if they are clearly reversed or all equal.

    Scores that are sorted already, as in resamples, are returned at once, without a warning.
    """
    scores = sort_scores(target, nontarget, labels)
    if scores is not target:
        turned = reversal(scores)
        if turned is not None and turned.clear:
            logger.warning("%s", turned.text)
    return scores


@overload
def min_dcf(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    p_target: float,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalised: bool = True,
) -> OperatingPoint: ...


@overload
def min_dcf(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    p_target: np.ndarray,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalised: bool = True,
) -> np.ndarray: ...


def min_dcf(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    p_target: float | np.ndarray,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalised: bool = True,
) -> OperatingPoint | np.ndarray:
    """Return the least detection cost over all thresholds, P p_miss + (1 - P) p_fa with the effective prior P.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    p_target : float, or ndarray of shape (P,)
        Prior probability of a target trial, between 0 and 1; the cost at each, of shape (P,), for several.
    c_miss, c_fa : float
        Costs of a miss and of a false alarm, which with `p_target` make the effective prior; see `effective_prior`.
    normalised : bool
        Divide by min(P, 1 - P), the cost of deciding without any score.

    Returns
    -------
    OperatingPoint, or ndarray of float64 of shape (P,)
        A float with its `threshold`; an array for several priors.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a prior or cost is out of range.

    Examples
    --------
    >>> cost = min_dcf([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0], p_target=0.5)
    >>> cost, cost.threshold
    (0.25, 0.5)
    """
    scores = sort_with_warning(target, nontarget, labels)
    priors = [effective_prior(prior, c_miss, c_fa) for prior in np.atleast_1d(p_target).tolist()]
    points = [hull_min_dcf(scores, prior=prior, normalised=normalised) for prior in priors]
    if isinstance(p_target, np.ndarray):
        return np.array([cost for cost, _, _ in points])
    cost, p_miss, p_fa = points[0]
    vertex = _least_cost_vertex(scores.hull, priors[0])
    threshold = np.inf
    if vertex < len(scores.blocks):
        threshold = float(scores.thresholds[scores.blocks.first[vertex]])
    return OperatingPoint(cost, threshold, p_miss, p_fa)


def _least_cost_vertex(hull: Hull, prior: float) -> int:
    """Return the vertex of least cost; of several the one with the fewest misses."""
    return int((prior * hull.p_miss + (1 - prior) * hull.p_fa).argmin())


def act_dcf(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    p_target: Prior,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalised: bool = True,
) -> Prior:
    """Return the actual detection cost: that of scores taken as natural log-likelihood ratios, at Bayes' threshold.

    A trial is accepted when its score is at or above -logit(P), with the effective prior P.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Natural log-likelihood ratios.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    p_target : float, or ndarray of shape (P,)
        Prior probability of a target trial, between 0 and 1; the cost at each, of shape (P,), for several.
    c_miss, c_fa : float
        Costs of a miss and of a false alarm, which with `p_target` make the effective prior; see `effective_prior`.
    normalised : bool
        Divide by min(P, 1 - P), the cost of deciding without any score.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a prior or cost is out of range.

    Examples
    --------
    >>> act_dcf([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0], p_target=0.5)
    0.5
    """
    # imported here, because it imports this module
    from evaluation.metrics.calibration import sort_ratios

    scores = sort_ratios(target, nontarget, labels)
    costs = []
    for asked in np.atleast_1d(p_target).tolist():
        prior = effective_prior(asked, c_miss, c_fa)
        p_miss, p_fa = scores.error_rates(
            int(np.searchsorted(scores.thresholds, np.log1p(-prior) - np.log(prior)))
        )
        scale = min(prior, 1 - prior) if normalised else 1.0
        costs.append(float((prior * p_miss + (1 - prior) * p_fa) / scale))
    if isinstance(p_target, np.ndarray):
        return np.array(costs)
    return costs[0]


def prbep(target: GivenScores, nontarget: OtherScores = None) -> float:
    """Return the precision-recall break-even point: the number of misses where the hull has as many false alarms.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.

    Returns
    -------
    float
        A number of trials, fractional between two vertices.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.
    """
    vertices = sort_with_warning(target, nontarget).hull
    return crossing_point(vertices.misses, vertices.false_alarms)


def effective_prior(p_target: float, c_miss: float = 1.0, c_fa: float = 1.0) -> float:
    """Fold prior and costs into one prior: P Cm / (P Cm + (1 - P) Cf).

    Parameters
    ----------
    p_target : float
        Prior probability P of a target trial.
    c_miss, c_fa : float
        Costs Cm of a miss and Cf of a false alarm.

    Raises
    ------
    DataError
        If the prior is not strictly between 0 and 1, or a cost is not positive and finite.

    Examples
    --------
    >>> round(effective_prior(0.01, 10, 1), 6)
    0.091743
    """
    if not 0 < p_target < 1:
        raise DataError(f"expected a target prior between 0 and 1, got {p_target}")
    if not (0 < c_miss < np.inf and 0 < c_fa < np.inf):
        raise DataError(
            f"expected positive costs, got {c_miss} for a miss and {c_fa} for a false alarm"
        )
    return float(p_target * c_miss / (p_target * c_miss + (1 - p_target) * c_fa))


def rocch(target: GivenScores, nontarget: OtherScores = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices of the ROC convex hull as rates.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.

    Returns
    -------
    p_miss, p_fa : ndarray of float64 of shape (V,)
        From (0, 1) to (1, 0); no three on one line.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.
    """
    vertices = sort_scores(target, nontarget).hull
    return vertices.p_miss, vertices.p_fa


def hull_min_dcf(
    target: GivenScores, nontarget: OtherScores = None, *, prior: float, normalised: bool = True
) -> tuple[float, float, float]:
    """Return the least cost at an effective prior, and where it is reached.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    prior : float
        Effective prior (not its logit) between 0 and 1; see `effective_prior`.
    normalised : bool
        Divide the cost by min(prior, 1 - prior).

    Returns
    -------
    cost, p_miss, p_fa : float
        Of several vertices with equal cost the one with the fewest misses.

    Raises
    ------
    DataError
        If the prior is out of range.
    """
    if not 0 < prior < 1:
        raise DataError(
            f"expected an effective prior between 0 and 1, got {prior}",
            remedy="give it, not its logit",
        )
    hull = sort_scores(target, nontarget).hull
    best = _least_cost_vertex(hull, prior)
    p_miss = float(hull.p_miss[best])
    p_fa = float(hull.p_fa[best])
    scale = min(prior, 1 - prior) if normalised else 1.0
    return (prior * p_miss + (1 - prior) * p_fa) / scale, p_miss, p_fa


def clopper_pearson(
    successes: ArrayLike, failures: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds that contain a probability with at least the given confidence.

    For k successes in n independent trials, the bounds are quantiles of beta distributions: with a = (1 - level) / 2,
    the quantile a of Beta(k, n - k + 1) and the quantile 1 - a of Beta(k + 1, n - k); 0 where k = 0, and 1 where k = n.

    Parameters
    ----------
    successes, failures : array_like of float, broadcastable shapes
        Numbers of successes and of failures, which need not be whole numbers.
    level : float
        Confidence, between 0 and 1.

    Returns
    -------
    low, high : ndarray of float64
        Arrays of the broadcast shape.

    References
    ----------
    .. [1] C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> [round(float(bound), 4) for bound in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    from scipy.special import betaincinv

    seen = np.asarray(successes, np.float64)
    missed = np.asarray(failures, np.float64)
    tail = (1 - level) / 2
    low = np.where(seen > 0, betaincinv(np.maximum(seen, _LEAST), missed + 1, tail), 0.0)
    high = np.where(missed > 0, betaincinv(seen + 1, np.maximum(missed, _LEAST), 1 - tail), 1.0)
    return low, high


@dataclass(frozen=True)
class TrueAccept:
    """A true-accept rate at a bound on the false-accept rate.

    Parameters
    ----------
    value : float
        Share of target trials accepted at `threshold`.
    low, high : float
        Clopper-Pearson bounds of it, which hold for independent trials.
    threshold : float
        Lowest score at which the false-accept rate is within the bound; +inf where every score is too low for it.
    false_accept_rate : float
        The rate there, at most the bound.
    resolved : bool
        Whether there are enough nontarget trials to resolve the bound: there must be at least 1 / bound of them.
    """

    value: float
    low: float
    high: float
    threshold: float
    false_accept_rate: float
    resolved: bool


def tpr_at_fpr(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None, *, fpr: float
) -> TrueAccept:
    """Return the largest true-accept rate over all thresholds with a false-accept rate of at most `fpr`.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    fpr : float
        Bound on the false-accept rate, between 0 and 1.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a rate is out of range.

    Examples
    --------
    >>> point = tpr_at_fpr([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0], fpr=0.01)
    >>> point.value, point.threshold, point.resolved
    (0.75, 2.0, False)
    """
    scores = sort_with_warning(target, nontarget, labels)
    if not 0 < fpr < 1:
        raise DataError(f"expected a false-accept rate between 0 and 1, got {fpr}")
    n_target = scores.n_target
    n_nontarget = scores.n_nontarget
    allowed = fpr * n_nontarget * (1 + 1e-12)  # 0.0001 * 10,000 may be slightly below 1
    cut = int(np.searchsorted(scores.rejected, n_nontarget - allowed))
    accepted = n_target - float(scores.misses[cut])
    low, high = clopper_pearson(accepted, n_target - accepted)
    threshold = np.inf
    if cut < len(scores):
        threshold = float(scores.thresholds[cut])
    return TrueAccept(
        value=accepted / n_target,
        low=float(low),
        high=float(high),
        threshold=threshold,
        false_accept_rate=(n_nontarget - float(scores.rejected[cut])) / n_nontarget,
        resolved=bool(allowed >= 1),
    )


@dataclass(frozen=True)
class Epsilon:
    """An empirical lower bound of the epsilon of differential privacy, at one threshold.

    Parameters
    ----------
    value : float
        max(0, log((TPR - delta) / FPR)), in natural units; infinite without a false accept.
    low : float
        The same with the lower bound of TPR and the upper bound of FPR: with the requested confidence, epsilon is at
        least this if trials are independent.
    accepted : TrueAccept
        The rates and the threshold.
    """

    value: float
    low: float
    accepted: TrueAccept


def empirical_epsilon(
    target: GivenScores,
    nontarget: OtherScores = None,
    *,
    fpr: float,
    delta: float = 0.0,
    level: float = 0.95,
) -> Epsilon:
    """Return a lower bound of the epsilon of differential privacy from one threshold: log((TPR - delta) / FPR).

    If what an attacker sees were (epsilon, delta)-differentially private in the speaker, TPR <= exp(epsilon) FPR +
    delta would hold at every threshold.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.
    fpr : float
        Bound on the false-accept rate, which chooses the threshold; see `tpr_at_fpr`.
    delta : float
        Parameter delta of differential privacy, from 0 to below 1.
    level : float
        Confidence of `low`; the error probability is split evenly between the two rates (Clopper and Pearson).

    Raises
    ------
    DataError
        As `tpr_at_fpr`, or if `delta` or `level` is out of range.

    References
    ----------
    .. [1] VoxGuard, arXiv 2509.18413, 2025.

    Examples
    --------
    >>> found = empirical_epsilon([1.0] * 90 + [0.0] * 10, [1.0] * 10 + [0.0] * 990, fpr=0.01)
    >>> round(found.value, 3), round(found.low, 3)
    (4.5, 3.806)
    """
    if not (0 <= delta < 1 and 0 < level < 1):
        raise DataError(f"expected delta from 0 and a level below 1, got {delta} and {level}")
    scores = sort_scores(target, nontarget)
    accepted = tpr_at_fpr(scores, fpr=fpr)
    n_accepted = accepted.value * scores.n_target
    n_false = accepted.false_accept_rate * scores.n_nontarget
    least = clopper_pearson(n_accepted, scores.n_target - n_accepted, level=level)[0]
    most = clopper_pearson(n_false, scores.n_nontarget - n_false, level=level)[1]
    true_rates = np.array([accepted.value, float(least)]) - delta
    false_rates = np.array([accepted.false_accept_rate, float(most)])
    ends = np.zeros(2)
    more = true_rates > false_rates
    with np.errstate(divide="ignore"):
        ends[more] = np.log(true_rates[more] / false_rates[more])
    value, low = ends.tolist()
    return Epsilon(value, low, accepted)


@dataclass(frozen=True)
class RateAt:
    """An error rate at a threshold that was chosen elsewhere.

    Parameters
    ----------
    value : float
        The rate.
    threshold : float
        Scores at or above it are accepted.
    """

    value: float
    threshold: float


def cost_threshold(scores: SortedScores, prior: float) -> float:
    """Return the threshold of least detection cost, the lowest of several; +inf if nothing should be accepted.

    Parameters
    ----------
    scores : SortedScores
        See `evaluation.metrics.sort_scores`.
    prior : float
        Effective target prior between 0 and 1.
    """
    cost = (
        prior * scores.misses / scores.n_target - (1 - prior) * scores.rejected / scores.n_nontarget
    )
    return float(np.append(scores.thresholds, np.inf)[cost.argmin()])


def _kaldi(scores: SortedScores) -> EqualError:
    """Find the first sorted target that satisfies the condition, by bisection: it holds for all later ones."""
    n_target = scores.n_target
    n_nontarget = scores.n_nontarget
    last_cut = len(scores) - 1
    thresholds = scores.thresholds
    misses = scores.misses
    rejected = scores.rejected

    def score(cumulated: np.ndarray, position: float) -> float:
        return float(thresholds[min(int(cumulated.searchsorted(position, "right")) - 1, last_cut)])

    def no_more_false_alarms(position: int) -> bool:
        opposite = max(n_nontarget - 1 - int(n_nontarget * position / n_target), 0)
        return score(rejected, opposite) < score(misses, position)

    last = max(int(np.ceil(n_target)) - 1, 0)
    position = bisect_left(range(last), True, key=no_more_false_alarms)
    threshold = score(misses, position)
    cut = int(np.searchsorted(scores.thresholds, threshold))
    return EqualError(position / n_target, threshold, *scores.error_rates(cut))


def _speechbrain(scores: SortedScores) -> EqualError:
    """Find the first point of least difference.

    Scores above the threshold are accepted, so that the points begin above the lowest score, and the threshold of each
    is the score below it.
    """
    after = scores.crossing
    before = max(after - 1, 1)
    if abs(scores.excess(before)) <= abs(scores.excess(after)):
        cut = before
    else:
        cut = after
    p_miss, p_fa = scores.error_rates(cut)
    return EqualError((p_miss + p_fa) / 2, float(scores.thresholds[cut - 1]), p_miss, p_fa)


def _nearest(scores: SortedScores) -> EqualError:
    """Find the point of least difference that roc_curve keeps.

    Of two equally good ones, that with the higher threshold.
    """
    last = len(scores)
    turns = (scores.target[1:] != scores.target[:-1]) | (
        scores.nontarget[1:] != scores.nontarget[:-1]
    )
    kept = np.concatenate([[True], turns, [True]])
    kept[last - 1] = True
    kept = np.flatnonzero(kept)
    after = int(np.searchsorted(kept, scores.crossing))
    before = int(kept[after - 1])
    cut = int(kept[after])
    if abs(scores.excess(before)) < abs(scores.excess(cut)):
        cut = before
    p_miss, p_fa = scores.error_rates(cut)
    threshold = np.inf
    if cut < last:
        threshold = float(scores.thresholds[cut])
    return EqualError((p_miss + p_fa) / 2, threshold, p_miss, p_fa)


_READINGS = {"kaldi": _kaldi, "speechbrain": _speechbrain, "nearest": _nearest}
