"""The table of metrics: what is computed of scores, how it is printed, which way is worse, how its interval is made.

Everything that shows metrics is made from the rows: `evaluation.metrics.evaluate`, the JSON report, the tables of the
commands, bootstrap intervals, groups and docs/metrics.md. A user-supplied metric is one more row:

>>> def highest_nontarget(scores):
...     return float(scores.thresholds[scores.nontarget > 0].max())
>>> mine = Metric("highest_nontarget", highest_nontarget, "highest nontarget score")
>>> from evaluation.metrics import evaluate
>>> evaluate([0.5, 2.0, 3.0], [-1.0, 1.0], metrics=METRICS + (mine,)).values()["highest_nontarget"]
1.0

**How the interval of a metric is made: a scale, a factor of the bias to take off, and the ends of its range.**

`evaluation.uncertainty.intervals` says why, and makes intervals; each row of the table names its
method.

**A metric: a function of the sorted scores, and what is to be known of its number to print it and to trust it.**

`METRICS` holds the built-in ones, docs/metrics.md says how to write your own.

**How numbers of metrics are written in tables, on a terminal and in a notebook.**
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import sub
from typing import Any, Literal

import numpy as np

from evaluation.metrics.calibration import cllr, min_cllr
from evaluation.metrics.detection import (
    FALSE_ACCEPT_RATES,
    RateAt,
    TrueAccept,
    act_dcf,
    cost_threshold,
    effective_prior,
    min_dcf,
    prbep,
    tpr_at_fpr,
)
from evaluation.metrics.equal_error import METHODS, eer, equal_error
from evaluation.metrics.sorted_scores import SortedScores, as_count
from evaluation.metrics.system_linkability import d_sys, d_sys_caveat, d_sys_pav
from evaluation.metrics.zebra_profile import (
    SCALE,
    ceiling_note,
    format_value,
    individual,
    individual_ceiling,
    population,
    tag,
)
from spkbase.errors import DataError
from spkbase.showing import one_line

HULL_FACTOR = 1 / (2 ** (2 / 3) - 1)
COST_FACTOR = (1 + HULL_FACTOR) / 2

Scale = Literal["identity", "log", "inverse root", "logit", "complement", "percentile"]

_SCALES = {
    "identity": "linear",
    "log": "log",
    "inverse root": "1 / sqrt(x)",
    "logit": "logit",
    "complement": "log(maximum - x)",
}


@dataclass(frozen=True)
class Method:
    """How the interval of a metric is made; see `evaluation.uncertainty.intervals`.

    Parameters
    ----------
    scale : {"identity", "log", "inverse root", "logit", "complement", "percentile"}
        Where the error is near to normal; the last one takes quantiles, without the rest.
    factor : float
        How much of what the resamples are off the value is taken off as bias; 0 for metrics without the hull.
    lower, upper : float
        Least and largest value of the metric; intervals are cut there.
    of_errors : bool
        The metric is a share of errors, whose interval is another where errors are few.
    """

    scale: Scale
    factor: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    of_errors: bool = False

    @property
    def name(self) -> str:
        """Return words for a table or a file."""
        if self.scale == "percentile":
            return "percentile"
        return f"t on the {_SCALES[self.scale]} scale" + (
            f", {self.factor:.2f} times the bias removed" if self.factor else ""
        )


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
DCF = Unit("cost", ".4g")
LINKABILITY = Unit("0 to 1", ".4f")
ERRORS = Unit("errors", ".1f")
ZEBRA_BIT = Unit("bit", "zebra")
LOG10_LLR = Unit("log10 LLR", "zebra")


@one_line
@dataclass(frozen=True)
class Metric:
    """A row of the table: a number that scores have.

    Parameters
    ----------
    name : str
        Key in reports. What stands before a dot is the key of the group that the rest stands in.
    compute : callable
        Gives the number from the `SortedScores`, or a record that holds it as `value` and more about it, which the
        report then shows whole. Where the metric has `points`, it gets the point as last argument.
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
    method: Method | Callable[[str], Method] = Method("identity")  # it is frozen
    points: tuple[str, ...] | None = None
    over_priors: bool = False
    of: tuple[str, ...] = ()
    short: str = ""
    about: str = ""
    caveat: Callable[[Any, SortedScores, str, str], str | None] | None = None
    beside: Callable[[float, SortedScores], Mapping[str, Any]] | None = None

    def numbers(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each number with its point, which is empty where the metric has one number alone."""
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
            given = [number_of(results[part]) for part in metric.of] if metric.of else [scores]
            results[name] = metric.compute(*given, point) if point else metric.compute(*given)
    return results


def number_of(result: Any) -> float:
    """Return the number of what a metric gave: the result itself, or its `value`.

    Parameters
    ----------
    result : float, or a record with a `value`
        What `Metric.compute` gave.

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
    points = tuple(dict.fromkeys(str(prior) for prior in priors))  # a prior that was asked for twice counts once
    return tuple(
        replace(metric, points=points) if metric.over_priors and metric.points != points else metric
        for metric in metrics
    )


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
        "zebra.individual": {"beside": partial(_ceiling_and_tag, scale)},
        "d_sys": {"compute": partial(d_sys, omega=omega), "caveat": partial(_d_sys_caveat, omega)},
        "d_sys_pav": {"compute": partial(d_sys_pav, omega=omega)},
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
    thresholds = {"eer": equal_error(development).threshold}
    thresholds |= {str(prior): cost_threshold(development, effective_prior(float(prior))) for prior in priors}
    return tuple(
        Metric(
            name,
            partial(_rate_at, side, thresholds),
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
    other = _OTHER_METHODS.get(name) or _OTHER_METHODS.get(name.partition(".")[0], Method("identity"))
    method = other if row is None else row.method_at(point)
    return Method("identity") if difference and method.scale != "percentile" else method


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
    exact = (metric for metric in metrics if metric.name == name)
    head, _, point = name.partition(".")
    group = (metric for metric in metrics if metric.name == head)
    return (row, "") if (row := next(exact, None)) is not None else (next(group, None), point)


def _eer(scores: SortedScores, reading: str) -> float:
    return eer(scores, method=reading)


def _threshold(scores: SortedScores) -> float:
    return equal_error(scores).threshold


def _true_accepts(scores: SortedScores, rate: str) -> TrueAccept:
    return tpr_at_fpr(scores, fpr=float(rate))


def _threshold_used(found: RateAt, scores: SortedScores, convention: str, point: str) -> str:
    return f"accepted at {found.threshold:.6g} and above"


def _at_the_ceiling(value: float, scores: SortedScores, convention: str, point: str) -> str:
    return ceiling_note(value, individual_ceiling(scores.n_target, scores.n_nontarget))


def _cost(metric: Callable[..., float], normalised: bool, scores: SortedScores, prior: str) -> float:
    return metric(scores, p_target=float(prior), normalised=normalised)


def _least_cost_method(prior: str) -> Method:
    upper = min(float(prior), 1 - float(prior)) if is_prior(prior) else np.inf
    return Method("log", factor=COST_FACTOR, lower=0, upper=upper)


def _eer_method(reading: str) -> Method:
    hull = reading == "rocch"
    return Method("logit", HULL_FACTOR if hull else 0.0, lower=0, upper=0.5 if hull else 1, of_errors=True)


def _rate_at(side: int, thresholds: dict[str, float], scores: SortedScores, point: str) -> RateAt:
    cut = int(np.searchsorted(scores.thresholds, thresholds[point]))
    return RateAt(scores.error_rates(cut)[side], thresholds[point])


def _ceiling_and_tag(scale: Sequence[tuple[str, float]], value: float, scores: SortedScores) -> dict[str, float | str]:
    ceiling = individual_ceiling(scores.n_target, scores.n_nontarget)
    return {"individual_ceiling": ceiling, "tag": tag(value, scale=scale)}


def _why_infinite(value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    if not np.isinf(value):
        return None
    if np.isinf(scores.thresholds[0]) or np.isinf(scores.thresholds[-1]):
        return "infinite: a target trial has a score of -inf, or a nontarget trial +inf"
    return f"infinite: a posterior underflows, as the convention {convention} has it"


def _d_sys_caveat(omega: float, value: float, scores: SortedScores, convention: str, point: str) -> str | None:
    return d_sys_caveat(value, d_sys_pav(scores, omega=omega), scores)


def _unresolved(point: TrueAccept, scores: SortedScores, convention: str, rate: str) -> str | None:
    if point.resolved:
        return None
    needed = round(1 / float(rate))
    return f"not resolved: {as_count(scores.n_nontarget):,} nontarget trials, but at least {needed:,} needed"


METRICS = (
    Metric(
        "eer",
        _eer,
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
        cllr,
        "Cllr (bit)",
        BIT,
        method=Method("inverse root", lower=0),
        short="Cllr",
        about="Cost of the scores as natural log-likelihood ratios",
        caveat=_why_infinite,
    ),
    Metric(
        "min_cllr",
        min_cllr,
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
        partial(_cost, min_dcf, True),
        "minDCF at prior {}",
        COST,
        method=Method("log", factor=COST_FACTOR, lower=0, upper=1),
        points=PRIORS,
        over_priors=True,
        about="Least detection cost over all thresholds, over that of deciding without scores (normalised)",
    ),
    Metric(
        "act_dcf",
        partial(_cost, act_dcf, True),
        "actual DCF at prior {}",
        COST,
        method=Method("log", lower=0),
        points=PRIORS,
        over_priors=True,
        about="Detection cost of the scores as natural log-likelihood ratios, normalised alike",
    ),
    Metric(
        "min_dcf_unnormalised",
        partial(_cost, min_dcf, False),
        "minDCF at prior {} (not normalised)",
        DCF,
        method=_least_cost_method,
        points=PRIORS,
        over_priors=True,
        about="`min_dcf` times the smaller of prior and 1 - prior: misses and false alarms weighted by their priors",
    ),
    Metric(
        "act_dcf_unnormalised",
        partial(_cost, act_dcf, False),
        "actual DCF at prior {} (not normalised)",
        DCF,
        method=Method("log", lower=0),
        points=PRIORS,
        over_priors=True,
        about="`act_dcf` times the smaller of prior and 1 - prior",
    ),
    Metric(
        "zebra.population",
        population,
        "ZEBRA population (bit)",
        ZEBRA_BIT,
        method=Method("complement", factor=HULL_FACTOR, lower=0, upper=1 / np.log(4)),
        short="population",
        about="Expected disclosure of identity over all target priors, 0 to 0.721",
    ),
    Metric(
        "zebra.individual",
        individual,
        "ZEBRA individual ({tag}; at most {individual_ceiling})",
        LOG10_LLR,
        # the largest LLR of a sample grows with it: there is no true value to cover, only a spread to show
        method=Method("percentile", lower=0),
        about="Worst-case disclosure: the strongest evidence of any trial, with its category",
        caveat=_at_the_ceiling,
        beside=partial(_ceiling_and_tag, SCALE),
    ),
    Metric(
        "d_sys",
        d_sys,
        "D_sys linkability",
        LINKABILITY,
        method=Method("complement", lower=0, upper=1),
        about="Global linkability in the reference's histogram",
        caveat=partial(_d_sys_caveat, 1.0),
    ),
    Metric(
        "d_sys_pav",
        d_sys_pav,
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
        prbep,
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


_WRITTEN = {"rocch": "ROCCH", "kaldi": "Kaldi", "speechbrain": "SpeechBrain", "eer": "EER"}


def metric_lines(metrics: Sequence[Metric], results: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield name, title and format of each number of a result.

    Parameters
    ----------
    metrics : sequence of Metric
        The table.
    results : mapping of str to object
        What each metric gave, as `Evaluation.results` holds it.
    """
    for metric in metrics:
        beside = {}
        if metric.beside is not None:
            group = results[metric.name.partition(".")[0]]
            beside = {name: format_value(part) if isinstance(part, float) else part for name, part in group.items()}
        for name, point in metric.numbers():
            title = metric.title or name
            if point or beside:
                title = title.format(_WRITTEN.get(point, point), **beside)
            yield name, title, metric.unit.form


def number_text(value: float, form: str) -> str:
    """Return a number as tables print it.

    Parameters
    ----------
    value : float
        The number; NaN is undefined.
    form : str
        See `evaluation.metrics.table.Unit`.

    Examples
    --------
    >>> number_text(0.125, "%"), number_text(float("nan"), ".4f")
    ('12.500 %', 'undefined')
    """
    if value != value:
        return "undefined"
    if form == "zebra":
        return format_value(value)
    return f"{100 * value:.3f} %" if form == "%" else format(value, form)
