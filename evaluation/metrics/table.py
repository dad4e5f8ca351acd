"""The table of metrics: what is computed of scores, how it is printed, which way is worse, how its interval is made.

Everything that shows metrics is made from the rows: `evaluation.metrics.evaluate`, the JSON report, the tables of the
commands, bootstrap intervals, groups and docs/metrics.md. A user-supplied metric is one more row:

>>> def highest_nontarget(scores):
...     return float(scores.thresholds[scores.nontarget > 0].max())
>>> mine = Metric("highest_nontarget", highest_nontarget, "highest nontarget score")
>>> from evaluation.metrics import evaluate
>>> evaluate([0.5, 2.0, 3.0], [-1.0, 1.0], metrics=METRICS + (mine,)).values()["highest_nontarget"]
1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import sub
from typing import Any

import numpy as np

from evaluation.metrics.calibration import cllr_of, min_cllr_of
from evaluation.metrics.detection import act_dcf_of, effective_prior, min_dcf_of, prbep_of
from evaluation.metrics.equal_error import METHODS, eer_of, equal_error_of, error_rates
from evaluation.metrics.interval_methods import COST_FACTOR, HULL_FACTOR, Method
from evaluation.metrics.metric import BIT, COST, DCF, ERRORS, FRACTION, LINKABILITY, LOG10_LLR, SCORE, ZEBRA_BIT, Metric
from evaluation.metrics.operating_points import FALSE_ACCEPT_RATES, RateAt, TrueAccept, cost_threshold_of, tpr_at_fpr_of
from evaluation.metrics.sorted_scores import SortedScores, as_count
from evaluation.metrics.system_linkability import d_sys_caveat, d_sys_of, d_sys_pav_of
from evaluation.metrics.zebra_profile import SCALE, ceiling_note, individual_ceiling, individual_of, population_of, tag

PRIORS = ("0.001", "0.01", "0.05", "0.5")


def metrics_with(*, omega: float = 1.0, scale: Sequence[tuple[str, float]] = SCALE) -> tuple[Metric, ...]:
    """Return the table of the built-in metrics with another omega or other tags.

    Parameters
    ----------
    omega : float
        P(mated) / P(non-mated) of D_sys.
    scale : sequence of (str, float)
        ZEBRA's tags; see `evaluation.metrics.read_scale`.
    """
    changes: dict[str, dict[str, Any]] = {
        "zebra.individual": {"beside": partial(_ceiling_and_tag, scale=scale)},
        "d_sys": {"compute": partial(d_sys_of, omega=omega), "caveat": partial(_d_sys_caveat, omega=omega)},
        "d_sys_pav": {"compute": partial(d_sys_pav_of, omega=omega)},
    }
    return tuple(replace(row, **changes[row.name]) if row.name in changes else row for row in METRICS)


def metrics_at_thresholds_of(development: SortedScores, priors: Sequence[str | float] = PRIORS) -> tuple[Metric, ...]:
    """Return rows of misses and false alarms at the thresholds of a development list: of its EER and least costs.

    Parameters
    ----------
    development : SortedScores
        Scores of other trials by the same system; see `evaluation.metrics.sort_scores`.
    priors : sequence of str or float
        Target priors of the costs.
    """
    thresholds = {"eer": equal_error_of(development).threshold}
    thresholds |= {str(prior): cost_threshold_of(development, effective_prior(float(prior))) for prior in priors}
    return tuple(
        Metric(
            name,
            partial(_rate_at, thresholds=thresholds, side=side),
            f"{kind} at the development threshold ({{}})",
            FRACTION,
            method=Method("logit", lower=0, upper=1, of_errors=side == 0),
            points=tuple(thresholds),
            caveat=_threshold_used if side == 0 else None,
        )
        for side, (name, kind) in enumerate((("miss_rate_at", "misses"), ("false_alarm_rate_at", "false alarms")))
    )


def method_of(name: str, *, difference: bool = False, metrics: Sequence[Metric] | None = None) -> Method:
    """Return how the interval of a number is made.

    Parameters
    ----------
    name : str
        Such as ``"cllr"``, ``"eer.rocch"`` or ``"min_dcf.0.01"``: keys of a report, with dots between them.
    difference : bool
        For the difference of two systems on the same trials: linear, and nothing taken off, because a bias that both
        have goes out of the difference.
    metrics : sequence of Metric, optional
        The table; `METRICS` by default. A name that is not in it is taken as linear.

    Examples
    --------
    >>> method_of("min_dcf.0.01").name
    't on the log scale, 1.35 times the bias removed'
    >>> method_of("eer.interpolated").name
    't on the logit scale'
    """
    row, point = _find(name, METRICS if metrics is None else metrics)
    if row is not None:
        method = row.method_at(point)
    else:
        method = _OTHER_METHODS.get(name) or _OTHER_METHODS.get(name.partition(".")[0], Method("identity"))
    if difference:
        return method if method.scale == "percentile" else Method("identity")
    return method


def is_worse_low(name: str, *, metrics: Sequence[Metric] | None = None) -> bool:
    """Return whether low values of a number are the bad ones.

    Parameters
    ----------
    name : str
        Of the number, as for `method_of`.
    metrics : sequence of Metric, optional
        The table; `METRICS` by default.
    """
    row, _ = _find(name, METRICS if metrics is None else metrics)
    return row is not None and row.worse == "low"


def is_prior(text: str) -> bool:
    """Return whether a text is a prior: a number between 0 and 1.

    Parameters
    ----------
    text : str
        Such as a point of a metric.
    """
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _find(name: str, metrics: Sequence[Metric]) -> tuple[Metric | None, str]:
    """Find the row of a number, and its point: also points that are not in the table, such as other priors."""
    for metric in metrics:
        if name == metric.name:
            return metric, ""
    head, _, point = name.partition(".")
    return next((metric for metric in metrics if metric.name == head), None), point


def _least_cost(scores: SortedScores, prior: str, *, normalised: bool = True) -> float:
    return min_dcf_of(scores, p_target=float(prior), normalised=normalised)


def _actual_cost(scores: SortedScores, prior: str, *, normalised: bool = True) -> float:
    return act_dcf_of(scores, p_target=float(prior), normalised=normalised)


def _true_accepts(scores: SortedScores, rate: str) -> TrueAccept:
    return tpr_at_fpr_of(scores, fpr=float(rate))


def _rate_at(scores: SortedScores, point: str, *, thresholds: dict[str, float], side: int) -> RateAt:
    cut = int(np.searchsorted(scores.thresholds, thresholds[point]))
    return RateAt(error_rates(scores, cut)[side], thresholds[point])


def _threshold_used(found: RateAt, scores: SortedScores, convention: str, point: str) -> str:
    return f"accepted at {found.threshold:.6g} and above"


def _threshold(scores: SortedScores) -> float:
    return equal_error_of(scores).threshold


def _eer_method(reading: str) -> Method:
    if reading == "rocch":
        return Method("logit", factor=HULL_FACTOR, lower=0, upper=0.5, of_errors=True)
    return Method("logit", lower=0, upper=1, of_errors=True)


def _least_cost_method(prior: str) -> Method:
    upper = min(float(prior), 1 - float(prior)) if is_prior(prior) else np.inf
    return Method("log", factor=COST_FACTOR, lower=0, upper=upper)


def _why_infinite(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    if not np.isinf(value):
        return None
    if np.isinf(scores.thresholds[0]) or np.isinf(scores.thresholds[-1]):
        return "infinite: a target trial has a score of -inf, or a nontarget trial +inf"
    return f"infinite: a posterior underflows, as the convention {convention} has it"


def _d_sys_caveat(value: float, scores: SortedScores, convention: str, point: str, *, omega: float = 1.0) -> str | None:
    return d_sys_caveat(value, d_sys_pav_of(scores, omega=omega), scores)


def _unresolved(point: TrueAccept, scores: SortedScores, convention: str, rate: str) -> str | None:
    if point.resolved:
        return None
    needed = round(1 / float(rate))
    return f"not resolved: {as_count(scores.n_nontarget):,} nontarget trials, but at least {needed:,} needed"


def _at_the_ceiling(value: float, scores: SortedScores, convention: str, point: str) -> str:
    return ceiling_note(value, individual_ceiling(scores.n_target, scores.n_nontarget))


def _ceiling_and_tag(
    value: float, scores: SortedScores, *, scale: Sequence[tuple[str, float]] = SCALE
) -> dict[str, float | str]:
    ceiling = individual_ceiling(scores.n_target, scores.n_nontarget)
    return {"individual_ceiling": ceiling, "tag": tag(value, scale=scale)}


METRICS = (
    Metric(
        "eer",
        eer_of,
        "EER ({})",
        FRACTION,
        method=_eer_method,
        points=METHODS,
        short="EER",
        about="Equal error rate in five readings: misses and false alarms are equally frequent",
    ),
    Metric(
        "threshold_at_eer",
        _threshold,
        "threshold at the EER",
        SCORE,
        about="Score at the equal error rate that the convention reports, that of the hull by default",
    ),
    Metric(
        "cllr",
        cllr_of,
        "Cllr (bit)",
        BIT,
        method=Method("inverse root", lower=0),
        short="Cllr",
        about="Cost of the scores as natural log-likelihood ratios",
        caveat=_why_infinite,
    ),
    Metric(
        "min_cllr",
        min_cllr_of,
        "minCllr (bit)",
        BIT,
        method=Method("log", factor=HULL_FACTOR, lower=0, upper=1),
        short="minCllr",
        about="Least Cllr of any monotone calibration of the scores",
    ),
    Metric(
        "calibration_loss",
        sub,
        "calibration loss (bit)",
        BIT,
        method=Method("identity", factor=HULL_FACTOR, lower=0),
        of=("cllr", "min_cllr"),
        about="What calibration alone loses: Cllr less its least value",
        caveat=_why_infinite,
    ),
    Metric(
        "min_dcf",
        _least_cost,
        "minDCF at prior {}",
        COST,
        method=Method("log", factor=COST_FACTOR, lower=0, upper=1),
        points=PRIORS,
        over_priors=True,
        about="Least detection cost over all thresholds, over that of deciding without scores (normalised)",
    ),
    Metric(
        "act_dcf",
        _actual_cost,
        "actual DCF at prior {}",
        COST,
        method=Method("log", lower=0),
        points=PRIORS,
        over_priors=True,
        about="Detection cost of the scores as natural log-likelihood ratios, normalised alike",
    ),
    Metric(
        "min_dcf_unnormalised",
        partial(_least_cost, normalised=False),
        "minDCF at prior {} (not normalised)",
        DCF,
        method=_least_cost_method,
        points=PRIORS,
        over_priors=True,
        about="`min_dcf` times the smaller of prior and 1 - prior: misses and false alarms weighted by their priors",
    ),
    Metric(
        "act_dcf_unnormalised",
        partial(_actual_cost, normalised=False),
        "actual DCF at prior {} (not normalised)",
        DCF,
        method=Method("log", lower=0),
        points=PRIORS,
        over_priors=True,
        about="`act_dcf` times the smaller of prior and 1 - prior",
    ),
    Metric(
        "zebra.population",
        population_of,
        "ZEBRA population (bit)",
        ZEBRA_BIT,
        method=Method("complement", factor=HULL_FACTOR, lower=0, upper=1 / np.log(4)),
        short="population",
        about="Expected disclosure of identity over all target priors, 0 to 0.721",
    ),
    Metric(
        "zebra.individual",
        individual_of,
        "ZEBRA individual ({tag}; at most {individual_ceiling})",
        LOG10_LLR,
        # the largest LLR of a sample grows with it: there is no true value to cover, only a spread to show
        method=Method("percentile", lower=0),
        about="Worst-case disclosure: the strongest evidence of any trial, with its category",
        caveat=_at_the_ceiling,
        beside=_ceiling_and_tag,
    ),
    Metric(
        "d_sys",
        d_sys_of,
        "D_sys linkability",
        LINKABILITY,
        method=Method("complement", lower=0, upper=1),
        about="Global linkability in the reference's histogram",
        caveat=_d_sys_caveat,
    ),
    Metric(
        "d_sys_pav",
        d_sys_pav_of,
        "D_sys by isotonic regression",
        LINKABILITY,
        method=Method("complement", factor=HULL_FACTOR, lower=0, upper=1),
        short="D_sys (PAV)",
        about="Global linkability without bins, safe with equal scores",
    ),
    Metric(
        "tpr_at_fpr",
        _true_accepts,
        "true accepts at {} false accepts",
        FRACTION,
        worse="low",
        method=Method("logit", lower=0, upper=1),
        points=FALSE_ACCEPT_RATES,
        about="Share of target trials accepted where at most this share of nontarget trials is",
        caveat=_unresolved,
    ),
    Metric(
        "prbep",
        prbep_of,
        "PRBEP (errors of each kind)",
        ERRORS,
        method=Method("log", factor=HULL_FACTOR, lower=0),
        about="Number of misses where the hull has as many false alarms",
    ),
)

# numbers that are not in the table, but may be those of a user-supplied statistic
_OTHER_METHODS = {
    "ece": Method("inverse root", lower=0),
    "min_ece": Method("log", factor=HULL_FACTOR, lower=0, upper=1),
    "zebra.individual_ceiling": Method("percentile", lower=0),
}
