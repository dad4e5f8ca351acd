"""The table of metrics: what is computed of scores, how it is printed, which way is worse, how its interval is made.

Everything that shows metrics is made from the rows: `evaluation.metrics.evaluate`, the JSON report, the tables of the
commands, bootstrap intervals, groups and docs/metrics.md. A metric of one's own is one more row:

>>> def highest_nontarget(scores):
...     return float(scores.thresholds[scores.nontarget > 0].max())
>>> mine = Metric("highest_nontarget", highest_nontarget, "highest nontarget score")
>>> from evaluation.metrics import evaluate
>>> evaluate([0.5, 2.0, 3.0], [-1.0, 1.0], metrics=METRICS + (mine,)).values()["highest_nontarget"]
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import sub
from typing import Any, Literal

import numpy as np

from evaluation.metrics.calibration import cllr_of, min_cllr_of
from evaluation.metrics.detection import act_dcf_of, effective_prior, min_dcf_of, prbep_of
from evaluation.metrics.equal_error import METHODS, eer_of, equal_error_of
from evaluation.metrics.interval_methods import COST_FACTOR, HULL_FACTOR, Method
from evaluation.metrics.operating_points import FALSE_ACCEPT_RATES, TrueAccept, tpr_at_fpr_of
from evaluation.metrics.sorted_scores import SortedScores, as_count
from evaluation.metrics.system_linkability import d_sys_caveat, d_sys_of, d_sys_pav_of
from evaluation.metrics.zebra_profile import SCALE, individual_ceiling, individual_of, population_of, tag
from spkbase.errors import DataError

PRIORS = ("0.001", "0.01", "0.05", "0.5")
RESERVED = ("n_target", "n_nontarget", "convention", "intervals", "notes", "interval_methods", "groups")
"""Keys of the JSON report that no metric may have."""


@dataclass(frozen=True)
class Unit:
    """The unit of a metric.

    Parameters
    ----------
    name : str
        Such as ``"bit"``.
    form : str
        How tables print a number: a format specification, ``"%"`` for a fraction printed in per cent, or ``"zebra"``
        for the way of `evaluation.metrics.format_value`.
    """

    name: str
    form: str


NUMBER = Unit("number", ".4g")
FRACTION = Unit("fraction", "%")
SCORE = Unit("score", ".4g")
BIT = Unit("bit", ".4f")
COST = Unit("cost", ".4f")
LINKABILITY = Unit("0 to 1", ".4f")
ERRORS = Unit("errors", ".1f")
ZEBRA_BIT = Unit("bit", "zebra")
LOG10_LLR = Unit("log10 LLR", "zebra")


@dataclass(frozen=True)
class Metric:
    """A row of the table: a number that scores have.

    Parameters
    ----------
    name : str
        Key in reports. What stands before a dot is the key of the group that the rest stands in.
    compute : callable
        Gives the number from the `SortedScores`, or a record that holds it as `value` and more about it, which the
        report then shows whole. Where the metric has `points`, it gets the point as second argument.
    title : str
        What tables print, with ``{}`` for the point; the name by default.
    unit : Unit
        How tables print the number.
    worse : {"high", "low"}
        Which values are bad for the system, for the worst of several groups.
    method : Method, or callable
        How its interval is made; a function of the point where it depends on it.
    points : tuple of str, optional
        Where a metric has several numbers: the readings, priors or rates at which it is taken. The name of each number
        is that of the metric, a dot and the point.
    over_priors : bool
        The points are the target priors that `evaluate` is asked for.
    of : tuple of str
        Names of rows above, where the metric is made of their numbers: `compute` gets these instead of the scores.
    short : str
        Heading in the table of groups; the title by default.
    about : str
        What it is, for a reader who knows scores.
    caveat : callable, optional
        Says why the number is to be read with care, or gives None; gets what `compute` gave, the scores, the name of
        the convention, and the point.
    beside : callable, optional
        What stands beside the number in its group of the report, by name, which the title may show too; gets the
        number and the scores.
    """

    name: str
    compute: Callable[..., Any]
    title: str = ""
    unit: Unit = NUMBER
    worse: Literal["high", "low"] = "high"
    method: Method | Callable[[str], Method] = Method("identity")  # noqa: RUF009  # it is frozen
    points: tuple[str, ...] | None = None
    over_priors: bool = False
    of: tuple[str, ...] = ()
    short: str = ""
    about: str = ""
    caveat: Callable[[Any, SortedScores, str, str], str | None] | None = None
    beside: Callable[[float, SortedScores], Mapping[str, Any]] | None = None

    def numbers(self) -> Iterator[tuple[str, str]]:
        """Give the name of each number with its point, which is empty where the metric has one number alone."""
        if self.points is None:
            yield self.name, ""
            return
        for point in self.points:
            yield f"{self.name}.{point}", point

    def method_at(self, point: str) -> Method:
        """Return how the interval at a point is made."""
        return self.method if isinstance(self.method, Method) else self.method(point)


def compute_all(metrics: Sequence[Metric], scores: SortedScores) -> dict[str, Any]:
    """Compute the metrics of a table.

    Parameters
    ----------
    metrics : sequence of Metric
        The table.
    scores : SortedScores
        See `evaluation.metrics.sort_scores`.

    Returns
    -------
    dict of str to float, or to a record with a `value`
        What each gave, by the name of the number, in the order of the table.
    """
    results: dict[str, Any] = {}
    for metric in metrics:
        for name, point in metric.numbers():
            if metric.of:
                results[name] = metric.compute(*(number_of(results[part]) for part in metric.of))
            else:
                results[name] = metric.compute(scores, point) if point else metric.compute(scores)
    return results


def number_of(result: Any) -> float:
    """Return the number of what a metric gave: the result itself, or its `value`.

    Raises
    ------
    DataError
        If it is no number.
    """
    try:
        return float(getattr(result, "value", result))
    except (TypeError, ValueError) as error:
        text = f"expected a metric to give a number, or a record with a value, got {result!r}"
        raise DataError(text, remedy="return a float from its compute") from error


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Check that a table of metrics can be computed and reported.

    Parameters
    ----------
    metrics : sequence of Metric
        The table.

    Raises
    ------
    DataError
        If a name is empty, taken, or a key of the report; or a metric is made of one that does not stand above it.
    """
    names: set[str] = set()
    for metric in metrics:
        for name, _ in metric.numbers():
            if not name or name.partition(".")[0] in RESERVED:
                text = f"expected a name for a metric that is no key of the report, got {name!r}"
                raise DataError(text, remedy="give it another name")
            if name in names:
                raise DataError(f"expected one metric of each name, got {name!r} twice", remedy="rename one of the two")
            names.add(name)
        if missing := [part for part in metric.of if part not in names]:
            text = f"expected {' and '.join(missing)} above {metric.name!r}, which is made of it"
            raise DataError(text, remedy="put it into the table before")
    if alone := sorted({name.partition(".")[0] for name in names if "." in name} & names):
        text = f"expected {alone[0]!r} to be a number or a group of numbers, got both"
        raise DataError(text, remedy="rename one of the metrics")


def at_priors(metrics: Sequence[Metric], priors: Sequence[str | float]) -> tuple[Metric, ...]:
    """Return the table with other target priors for the metrics that are taken over priors.

    Parameters
    ----------
    metrics : sequence of Metric
        The table.
    priors : sequence of str or float
        Between 0 and 1; the names of the numbers are as they are written here.

    Raises
    ------
    DataError
        If a prior is none.
    """
    for prior in priors:
        try:
            effective_prior(float(prior))
        except ValueError as error:  # DataError is one too
            raise DataError(f"expected a target prior between 0 and 1, got {prior!r}") from error
    points = tuple(str(prior) for prior in priors)
    return tuple(
        replace(metric, points=points) if metric.over_priors and metric.points != points else metric
        for metric in metrics
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
    """Tell whether low values of a number are the bad ones; parameters as for `method_of`."""
    row, _ = _find(name, METRICS if metrics is None else metrics)
    return row is not None and row.worse == "low"


def is_prior(text: str) -> bool:
    """Tell whether a text is a prior: a number between 0 and 1."""
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


def _least_cost(scores: SortedScores, prior: str, *, normalised: bool) -> float:
    return min_dcf_of(scores, p_target=float(prior), normalised=normalised)


def _actual_cost(scores: SortedScores, prior: str) -> float:
    return act_dcf_of(scores, p_target=float(prior), normalised=False)


def _true_accepts(scores: SortedScores, rate: str) -> TrueAccept:
    return tpr_at_fpr_of(scores, fpr=float(rate))


def _threshold(scores: SortedScores) -> float:
    return equal_error_of(scores).threshold


def _eer_method(reading: str) -> Method:
    if reading == "rocch":
        return Method("logit", factor=HULL_FACTOR, lower=0, upper=0.5)
    return Method("logit", lower=0, upper=1)


def _least_cost_method(prior: str) -> Method:
    upper = min(float(prior), 1 - float(prior)) if is_prior(prior) else np.inf
    return Method("log", factor=COST_FACTOR, lower=0, upper=upper)


def _why_infinite(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    if not np.isinf(value):
        return None
    if np.isinf(scores.thresholds[0]) or np.isinf(scores.thresholds[-1]):
        return "infinite: a target trial has a score of -inf, or a nontarget trial +inf"
    return f"infinite: a posterior underflows, as the convention {convention} has it"


def _d_sys_caveat(value: float, scores: SortedScores, convention: str, point: str, *, omega: float) -> str | None:
    return d_sys_caveat(value, d_sys_pav_of(scores, omega=omega), scores)


def _unresolved(point: TrueAccept, scores: SortedScores, convention: str, rate: str) -> str | None:
    if point.resolved:
        return None
    needed = round(1 / float(rate))
    return f"not resolved: {as_count(scores.n_nontarget):,} nontarget trials, but at least {needed:,} needed"


def _at_the_ceiling(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    if value < individual_ceiling(scores.n_target, scores.n_nontarget) * (1 - 1e-9):
        return None
    return "at the ceiling that the number of trials imposes"


def _ceiling_and_tag(
    value: float, scores: SortedScores, *, scale: Sequence[tuple[str, float]]
) -> dict[str, float | str]:
    ceiling = individual_ceiling(scores.n_target, scores.n_nontarget)
    return {"individual_ceiling": ceiling, "tag": tag(value, scale=scale)}


def metrics_with(*, omega: float = 1.0, scale: Sequence[tuple[str, float]] = SCALE) -> tuple[Metric, ...]:
    """Return the table of the built-in metrics, `METRICS`, with another omega or other tags.

    Parameters
    ----------
    omega : float
        P(mated) / P(non-mated) of D_sys.
    scale : sequence of (str, float)
        ZEBRA's tags; see `evaluation.metrics.read_scale`.
    """
    return (
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
            partial(_least_cost, normalised=False),
            "minDCF at prior {}",
            COST,
            method=_least_cost_method,
            points=PRIORS,
            over_priors=True,
            about="Least detection cost over all thresholds, at target priors; not normalised",
        ),
        Metric(
            "act_dcf",
            _actual_cost,
            "actual DCF at prior {}",
            COST,
            method=Method("log", lower=0),
            points=PRIORS,
            over_priors=True,
            about="Detection cost of the scores as natural log-likelihood ratios, at target priors; not normalised",
        ),
        Metric(
            "min_dcf_normalised",
            partial(_least_cost, normalised=True),
            "minDCF at prior {} (normalised)",
            COST,
            method=Method("log", factor=COST_FACTOR, lower=0, upper=1),
            points=PRIORS,
            over_priors=True,
            about="The least detection cost over that of deciding without scores",
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
            beside=partial(_ceiling_and_tag, scale=scale),
        ),
        Metric(
            "d_sys",
            partial(d_sys_of, omega=omega),
            "D_sys linkability",
            LINKABILITY,
            method=Method("complement", lower=0, upper=1),
            about="Global linkability in the reference's histogram",
            caveat=partial(_d_sys_caveat, omega=omega),
        ),
        Metric(
            "d_sys_pav",
            partial(d_sys_pav_of, omega=omega),
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


METRICS = metrics_with()

# numbers that are not in the table, but may be those of a statistic of one's own
_OTHER_METHODS = {
    "act_dcf_normalised": Method("log", lower=0),
    "ece": Method("inverse root", lower=0),
    "min_ece": Method("log", factor=HULL_FACTOR, lower=0, upper=1),
    "zebra.individual_ceiling": Method("percentile", lower=0),
}
