"""The table of metrics: how each is computed, printed, judged (which direction is worse) and given an interval.

Everything that shows metrics is made from the rows of `METRICS`: `evaluation.evaluate`, the JSON report, the tables of
the commands, intervals, groups and docs/metrics.md; docs/own_metric.md says how to add your own, as another row.

>>> def highest_nontarget(scores):
...     return float(scores.thresholds[scores.nontarget > 0].max())
>>> from evaluation.metrics import Metrics, sort_scores
>>> mine = Metric("highest_nontarget", highest_nontarget, "highest nontarget score")
>>> Metrics(metrics=METRICS + (mine,))(sort_scores([0.5, 2.0, 3.0], [-1.0, 1.0]))["highest_nontarget"]
1.0

`evaluation.metrics.metric` describes the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import sub

import numpy as np

from evaluation.metrics import detection, disclosure
from evaluation.metrics.calibration import cllr, doubt_ratios, min_cllr
from evaluation.metrics.detection import (
    METHODS,
    RateAt,
    TrueAccept,
    act_dcf,
    auc,
    equal_error,
    min_dcf,
    prbep,
)
from evaluation.metrics.disclosure import SCALE, d_sys, d_sys_pav, individual, population
from evaluation.metrics.metric import (
    BIT,
    COST,
    DCF,
    FRACTION,
    LINKABILITY,
    Method,
    Metric,
    Unit,
    find_metric,
    is_prior,
)
from evaluation.metrics.sorted_scores import SortedScores, as_count

HULL_FACTOR = 1 / (2 ** (2 / 3) - 1)

COST_FACTOR = (1 + HULL_FACTOR) / 2

DIFFERENCE_WIDENING = 1.1

PRIORS = ("0.001", "0.01", "0.05", "0.5")


def metrics_with(scale: Sequence[tuple[str, float]]) -> tuple[Metric, ...]:
    """Return the table of the built-in metrics with other ZEBRA tags; see `evaluation.metrics.read_scale`."""
    beside = partial(_ceiling_and_tag, scale)
    return tuple(
        replace(row, beside=beside) if row.name == "zebra.individual" else row for row in METRICS
    )


def metrics_at_thresholds_of(
    development: SortedScores, priors: Sequence[str | float] = PRIORS
) -> tuple[Metric, ...]:
    """Return rows of misses and false alarms at thresholds of a development list (of its EER and least costs).

    Parameters
    ----------
    development : SortedScores
        Scores of other trials by the same system; see `evaluation.metrics.sort_scores`.
    priors : sequence of str or float
        Target priors of the costs.
    """
    thresholds = {"eer": equal_error(development).threshold}
    for prior in priors:
        effective = detection.effective_prior(float(prior))
        thresholds[str(prior)] = detection.cost_threshold(development, effective)
    points = tuple(thresholds)
    misses = Metric(
        "miss_rate_at",
        partial(_rate_at, 0, thresholds),
        "misses at the development threshold ({})",
        FRACTION,
        method=Method("logit", lower=0, upper=1, of_errors=True),
        points=points,
        caveat=_threshold_used,
    )
    false_alarms = Metric(
        "false_alarm_rate_at",
        partial(_rate_at, 1, thresholds),
        "false alarms at the development threshold ({})",
        FRACTION,
        method=Method("logit", lower=0, upper=1),
        points=points,
    )
    return (misses, false_alarms)


def method_of(
    name: str, *, difference: bool = False, metrics: Sequence[Metric] | None = None
) -> Method:
    """Return the method of the interval of a number.

    Parameters
    ----------
    name : str
        Name of the number: keys of a report joined by dots, such as ``"cllr"``, ``"eer.rocch"`` or ``"min_dcf.0.01"``.
    difference : bool
        For the difference of two systems on the same trials: linear, without removal of bias, since a common bias
        cancels. The effect of choices that each system makes on the trials does not cancel, so differences of costs and
        calibrations of the hull are `DIFFERENCE_WIDENING` times as wide (docs/studies/intervals.md).
    metrics : sequence of Metric, optional
        The table; `METRICS` by default. A name that is not in it gets a linear method.

    Examples
    --------
    >>> method_of("min_dcf.0.01").name
    't on the log scale, 1.35 times the bias removed'
    >>> method_of("eer.interpolated").name
    't on the logit scale'
    """
    row, point = find_metric(name, METRICS if metrics is None else metrics)
    if row is None:
        method = Method("identity")
    else:
        method = row.method_at(point)
    if not difference or method.scale == "none":
        return method
    chosen = method.factor and method.scale != "identity" and not method.of_errors
    return Method("identity", widening=DIFFERENCE_WIDENING if chosen else 1.0)


def _eer(scores: SortedScores, reading: str) -> float:
    return equal_error(scores, method=reading).rate


def _eer_method(reading: str) -> Method:
    if reading == "rocch":
        return Method("logit", HULL_FACTOR, lower=0, upper=0.5, of_errors=True)
    return Method("logit", lower=0, upper=1, of_errors=True)


def _threshold(scores: SortedScores) -> float:
    return equal_error(scores).threshold


def _cost(
    metric: Callable[..., float], normalised: bool, scores: SortedScores, prior: str
) -> float:
    return float(metric(scores, p_target=float(prior), normalised=normalised))


def _least_cost_method(prior: str) -> Method:
    if is_prior(prior):
        upper = min(float(prior), 1 - float(prior))
    else:
        upper = np.inf
    return Method("log", factor=COST_FACTOR, lower=0, upper=upper)


def _true_accepts(scores: SortedScores, rate: str) -> TrueAccept:
    return detection.tpr_at_fpr(scores, fpr=float(rate))


def _unresolved(
    accepts: TrueAccept, scores: SortedScores, convention: str, rate: str
) -> str | None:
    text = f"{as_count(scores.n_nontarget):,} nontarget trials, but at least {round(1 / float(rate)):,} needed"
    if accepts.resolved:
        return None
    return f"not resolved: {text}"


def _ceiling_and_tag(
    scale: Sequence[tuple[str, float]], value: float, scores: SortedScores
) -> dict[str, float | str]:
    ceiling = disclosure.individual_ceiling(scores.n_target, scores.n_nontarget)
    return {"individual_ceiling": ceiling, "tag": disclosure.tag(value, scale=scale)}


def _at_the_ceiling(value: float, scores: SortedScores, convention: str, point: str) -> str:
    return disclosure.ceiling_note(
        value, disclosure.individual_ceiling(scores.n_target, scores.n_nontarget)
    )


def _why_infinite(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    if not np.isinf(value):
        return doubt_ratios(scores, value)
    if np.isinf(scores.thresholds[[0, -1]]).any():
        return "infinite: a target trial has a score of -inf, or a nontarget trial +inf"
    return f"infinite: a posterior underflows, as the convention {convention} has it"


def _of_loss(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    return _why_infinite(value + min_cllr(scores), scores, convention, point)


def _one_sign(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    return doubt_ratios(scores, np.nan)


def _rate_at(side: int, thresholds: dict[str, float], scores: SortedScores, point: str) -> RateAt:
    cut = int(np.searchsorted(scores.thresholds, thresholds[point]))
    return RateAt(scores.error_rates(cut)[side], thresholds[point])


def _threshold_used(rate: RateAt, scores: SortedScores, convention: str, point: str) -> str:
    return f"accepted at {rate.threshold:.6g} and above"


# fmt: off
METRICS = (
    Metric("eer", _eer, "EER ({})", FRACTION, method=_eer_method, points=METHODS, short="EER",
           about="Equal error rate by five definitions: the miss rate equals the false-alarm rate"),
    Metric("threshold_at_eer", _threshold, "threshold at the EER", Unit("score", ".4g"),
           about="Score at the equal error rate that the convention reports, that of the hull by default"),
    Metric("cllr", cllr, "Cllr (bit)", BIT, method=Method("inverse root", lower=0), short="Cllr", caveat=_why_infinite,
           about="Cost of the scores as natural log-likelihood ratios"),
    Metric("min_cllr", min_cllr, "minCllr (bit)", BIT, method=Method("log", HULL_FACTOR, lower=0, upper=1),
           short="minCllr", about="Minimum Cllr over all monotone calibrations of the scores"),
    Metric("calibration_loss", sub, "calibration loss (bit)", BIT, method=Method("identity", HULL_FACTOR, lower=0),
           inputs=("cllr", "min_cllr"), caveat=_of_loss,
           about="Calibration loss: Cllr minus its minimum"),
    Metric("min_dcf", partial(_cost, min_dcf, True), "minDCF at prior {}", COST,
           method=Method("log", COST_FACTOR, lower=0, upper=1), points=PRIORS, over_priors=True,
           about="Minimum normalised detection cost over all thresholds: 1 is that of deciding without scores"),
    Metric("act_dcf", partial(_cost, act_dcf, True), "actual DCF at prior {}", COST, method=Method("log", lower=0),
           points=PRIORS, over_priors=True, caveat=_one_sign,
           about="Detection cost of the scores as natural log-likelihood ratios, normalised in the same way"),
    Metric("min_dcf_unnormalised", partial(_cost, min_dcf, False), "minDCF at prior {} (not normalised)", DCF,
           method=_least_cost_method, points=PRIORS, over_priors=True, about="`min_dcf` times the smaller of prior and "
           "1 - prior: misses and false alarms weighted by their priors"),
    Metric("act_dcf_unnormalised", partial(_cost, act_dcf, False), "actual DCF at prior {} (not normalised)", DCF,
           method=Method("log", lower=0), points=PRIORS, over_priors=True,
           about="`act_dcf` times the smaller of prior and 1 - prior"),
    Metric("zebra.population", population, "ZEBRA population (bit)", Unit("bit", "zebra"), short="population",
           method=Method("complement", HULL_FACTOR, lower=0, upper=1 / np.log(4)),
           about="Expected disclosure of identity over all target priors, 0 to 0.721"),
    # the largest LLR grows with the sample: there is no true value to cover, only a spread to show
    Metric("zebra.individual", individual, "ZEBRA individual ({tag}; at most {individual_ceiling})",
           Unit("log10 LLR", "zebra"), method=Method("none", lower=0),
           caveat=_at_the_ceiling, beside=partial(_ceiling_and_tag, SCALE),
           about="Worst-case disclosure: the strongest evidence of any trial, with its category"),
    Metric("d_sys", d_sys, "D_sys linkability", LINKABILITY, method=Method("complement", lower=0, upper=1),
           caveat=disclosure.d_sys_caveat, about="Global linkability in the reference's histogram"),
    Metric("d_sys_pav", d_sys_pav, "D_sys by isotonic regression", LINKABILITY, short="D_sys (PAV)",
           method=Method("complement", HULL_FACTOR, lower=0, upper=1),
           about="Global linkability without bins, robust to tied scores"),
    Metric("tpr_at_fpr", _true_accepts, "true accepts at {} false accepts", FRACTION, worse="low",
           method=Method("logit", lower=0, upper=1), points=("0.01", "0.001", "0.0001"), caveat=_unresolved,
           about="True-accept rate at a false-accept rate of at most this"),
    Metric("prbep", prbep, "PRBEP (errors of each kind)", Unit("errors", ".1f"),
           method=Method("log", HULL_FACTOR, lower=0),
           about="Number of misses where it equals the number of false alarms on the hull"),
    Metric("auc", auc, "AUC", LINKABILITY, worse="low", method=Method("logit", lower=0, upper=1),
           about="Area under the ROC curve: how often a target trial scores above a nontarget one"),
)
# fmt: on
