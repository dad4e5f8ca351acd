"""The table of metrics: what is computed of scores, how it is printed, which way is worse, how its interval is made.

Everything that shows metrics is made from the rows of `METRICS`: `evaluation.evaluate`, the JSON report, the tables of
the commands, intervals, groups and docs/metrics.md; docs/own_metric.md says how to write your own: one more row.

>>> def highest_nontarget(scores):
...     return float(scores.thresholds[scores.nontarget > 0].max())
>>> from evaluation.metrics import sort_scores
>>> mine = Metric("highest_nontarget", highest_nontarget, "highest nontarget score")
>>> Metrics(metrics=METRICS + (mine,))(sort_scores([0.5, 2.0, 3.0], [-1.0, 1.0]))["highest_nontarget"]
1.0

How the interval of a metric is made is a `Method`: a scale, a factor of the bias to subtract, and the ends of its
range; `evaluation.uncertainty.intervals` says why, and makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import sub
from typing import Any, Literal

import numpy as np

from evaluation.metrics import detection, disclosure
from evaluation.metrics.calibration import cllr, doubt_ratios, min_cllr
from evaluation.metrics.conventions import CONVENTIONS
from evaluation.metrics.detection import METHODS, RateAt, TrueAccept, act_dcf, auc, equal_error, min_dcf, prbep
from evaluation.metrics.disclosure import SCALE, Zebra, d_sys, d_sys_pav, format_value, individual, population
from evaluation.metrics.sorted_scores import SortedScores, as_count
from spkbase.errors import DataError, few
from spkbase.files import as_plain, format_table
from spkbase.showing import Tabular, escape_tex, html_table, latex_table, one_line
from spkbase.work import one_blas_thread

HULL_FACTOR = 1 / (2 ** (2 / 3) - 1)
COST_FACTOR = (1 + HULL_FACTOR) / 2
DIFFERENCE_WIDENING = 1.1
Scale = Literal["identity", "log", "inverse root", "logit", "complement", "percentile", "none"]

RESERVED = ("n_target", "n_nontarget", "convention", "intervals", "notes", "interval_methods", "groups")
"""Keys of the JSON report that no metric may have."""

PRIORS = ("0.001", "0.01", "0.05", "0.5")

_SCALES = {
    "identity": "linear",
    "log": "log",
    "inverse root": "1 / sqrt(x)",
    "logit": "logit",
    "complement": "log(maximum - x)",
}

_WRITTEN = {"rocch": "ROCCH", "kaldi": "Kaldi", "speechbrain": "SpeechBrain", "eer": "EER"}


@dataclass(frozen=True)
class Method:
    """How the interval of a metric is made; see `evaluation.uncertainty.intervals`.

    Parameters
    ----------
    scale : {"identity", "log", "inverse root", "logit", "complement", "percentile", "none"}
        Where the error is near to normal; "percentile" takes quantiles, without the rest, and "none" is no interval.
    factor : float
        How much of what the resamples are off the value is subtracted as bias; 0 for metrics without the hull.
    lower, upper : float
        Least and largest value of the metric; intervals are cut there.
    of_errors : bool
        The metric is a share of errors, whose interval is another where errors are few.
    widening : float
        How many times as wide as by the resamples an interval is.
    """

    scale: Scale
    factor: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    of_errors: bool = False
    widening: float = 1.0

    @property
    def name(self) -> str:
        """Return words for a table or a file."""
        if self.scale in ("percentile", "none"):
            return self.scale
        bias = f", {self.factor:.2f} times the bias removed" if self.factor else ""
        return f"t on the {_SCALES[self.scale]} scale{bias}"


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
BIT = Unit("bit", ".4f")
COST = Unit("cost", ".4f")
DCF = Unit("cost", ".4g")
LINKABILITY = Unit("0 to 1", ".4f")


@dataclass(frozen=True, repr=False)
class Metric:
    """A row of the table: a number that scores have.

    Parameters
    ----------
    name : str
        Key in reports. What precedes a dot is the key of its group.
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
        The points are the target priors that `Metrics` is asked for.
    of : tuple of str
        Names of rows above, where the metric is made of their numbers: `compute` gets these instead of the scores.
    short : str
        Heading in the table of groups; the title by default.
    about : str
        What it is, for a reader who knows scores.
    caveat : callable, optional
        Returns why the number is to be read with care, or None; gets what `compute` gave, the scores, the name of
        the convention, and the point.
    beside : callable, optional
        What is shown with the number in its group of the report, by name; the title may show it too; gets the
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

    def __repr__(self) -> str:
        return f"Metric({self.name!r})"  # signatures show whole tables

    def numbers(self) -> list[tuple[str, str]]:
        """Return the name of each number with its point, which is empty where the metric has one number alone."""
        return [(self.name, "")] if self.points is None else [(f"{self.name}.{point}", point) for point in self.points]

    def title_at(self, point: str, **beside: Any) -> str:
        """Return what tables call the number at a point, with what is shown beside it."""
        title = self.title or f"{self.name}.{point}".rstrip(".")
        return title.format(_WRITTEN.get(point, point), **beside) if point or beside else title

    def method_at(self, point: str) -> Method:
        """Return how the interval at a point is made."""
        return self.method if isinstance(self.method, Method) else self.method(point)


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
        If a name is empty, taken, or a key of the report; or a metric uses one that is not above it.
    """
    names = [name for metric in metrics for name, _ in metric.numbers()]
    groups = {name.partition(".")[0] for name in names if "." in name}
    for place, name in enumerate(names):
        if not name or name in names[:place] or name in groups or name.partition(".")[0] in RESERVED:
            text = f"expected unique names of metrics that are no keys of the report, got {name!r}"
            raise DataError(text, remedy="give the metric another name")
    for place, metric in enumerate(metrics):
        above = [name for row in metrics[:place] for name, _ in row.numbers()]
        if missing := [part for part in metric.of if part not in above]:
            text = f"expected {' and '.join(missing)} above {metric.name!r}, which is computed from it"
            raise DataError(text, remedy="put it into the table before")


def metrics_with(scale: Sequence[tuple[str, float]]) -> tuple[Metric, ...]:
    """Return the table of the built-in metrics with other tags of ZEBRA; see `evaluation.metrics.read_scale`."""
    beside = partial(_ceiling_and_tag, scale)
    return tuple(replace(row, beside=beside) if row.name == "zebra.individual" else row for row in METRICS)


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
    for prior in priors:
        effective = detection.effective_prior(float(prior))
        thresholds[str(prior)] = detection.cost_threshold(development, effective)
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
        For the difference of two systems on the same trials: linear, without removal of bias, since a bias that both
        systems have cancels. What each system chooses on the trials does not, so differences of costs and calibrations
        of the hull are `DIFFERENCE_WIDENING` times as wide (docs/studies/intervals.md).
    metrics : sequence of Metric, optional
        The table; `METRICS` by default. A name that is not in it is taken as linear.

    Examples
    --------
    >>> method_of("min_dcf.0.01").name
    't on the log scale, 1.35 times the bias removed'
    >>> method_of("eer.interpolated").name
    't on the logit scale'
    """
    row, point = find_metric(name, METRICS if metrics is None else metrics)
    method = Method("identity") if row is None else row.method_at(point)
    if not difference or method.scale == "none":
        return method
    chosen = method.factor and method.scale != "identity" and not method.of_errors
    return Method("identity", widening=DIFFERENCE_WIDENING if chosen else 1.0)


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


def find_metric(name: str, metrics: Sequence[Metric]) -> tuple[Metric | None, str]:
    """Return the row of a number, and its point: also points that are not in the table, such as other priors."""
    head, _, point = name.partition(".")
    by_name = {metric.name: metric for metric in metrics}
    return (by_name[name], "") if name in by_name else (by_name.get(head), point)


def _eer(scores: SortedScores, reading: str) -> float:
    return equal_error(scores, method=reading).rate


def _eer_method(reading: str) -> Method:
    hull = reading == "rocch"
    return Method("logit", HULL_FACTOR if hull else 0.0, lower=0, upper=0.5 if hull else 1, of_errors=True)


def _threshold(scores: SortedScores) -> float:
    return equal_error(scores).threshold


def _cost(metric: Callable[..., float], normalised: bool, scores: SortedScores, prior: str) -> float:
    return metric(scores, p_target=float(prior), normalised=normalised)


def _least_cost_method(prior: str) -> Method:
    upper = min(float(prior), 1 - float(prior)) if is_prior(prior) else np.inf
    return Method("log", factor=COST_FACTOR, lower=0, upper=upper)


def _true_accepts(scores: SortedScores, rate: str) -> TrueAccept:
    return detection.tpr_at_fpr(scores, fpr=float(rate))


def _unresolved(found: TrueAccept, scores: SortedScores, convention: str, rate: str) -> str | None:
    text = f"{as_count(scores.n_nontarget):,} nontarget trials, but at least {round(1 / float(rate)):,} needed"
    return None if found.resolved else f"not resolved: {text}"


def _ceiling_and_tag(scale: Sequence[tuple[str, float]], value: float, scores: SortedScores) -> dict[str, float | str]:
    ceiling = disclosure.individual_ceiling(scores.n_target, scores.n_nontarget)
    return {"individual_ceiling": ceiling, "tag": disclosure.tag(value, scale=scale)}


def _at_the_ceiling(value: float, scores: SortedScores, convention: str, point: str) -> str:
    return disclosure.ceiling_note(value, disclosure.individual_ceiling(scores.n_target, scores.n_nontarget))


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
           of=("cllr", "min_cllr"), caveat=_of_loss,
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
    # the largest LLR of a sample grows with it: there is no true value to cover, only a spread to show
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


@one_line
@dataclass(frozen=True)
class Evaluation(Tabular):
    """What `evaluation.evaluate` finds; rates are fractions, information is in bits, LLRs are natural.

    Each metric is an attribute under its key in the report: ``result.cllr``, ``result.eer["rocch"]``,
    ``result.min_dcf["0.01"]``, ``result.tpr_at_fpr["0.01"].value``, ``result.zebra.population``.

    Parameters
    ----------
    n_target, n_nontarget : int, or float where trials have weights
        Number of trials.
    convention : str
        The convention that every number follows; see `evaluation.metrics.conventions`.
    results : dict
        What each metric gave, by the key of the report; numbers of one group, such as the equal error rates, are a
        dict in it.
    metrics : tuple of Metric
        The table that was computed; docs/metrics.md says what its rows are.
    intervals : dict of str to (low, high)
        Confidence intervals by the name that `values` gives; empty unless they were asked for.
    notes : dict of str to str
        Why a number is undefined, infinite or to be read with care.
    """

    n_target: int | float
    n_nontarget: int | float
    convention: str
    results: dict[str, Any]
    metrics: tuple[Metric, ...] = METRICS
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return what a metric gave, by its key in the report."""
        results = vars(self).get("results", {})  # empty while the object is being copied
        if name in results:
            return results[name]
        raise AttributeError(f"expected a metric among {', '.join(results)}, got {name!r}")

    def __dir__(self) -> list[str]:
        """Return the names of the attributes, metrics too."""
        return [*super().__dir__(), *self.results]

    @property
    def zebra(self) -> Zebra:
        """Return the disclosure to the population and to an individual, where the table has both."""
        group = self.results.get("zebra", {})
        if not {"population", "individual"} <= set(group):
            raise AttributeError("expected all rows of ZEBRA in the table of metrics")
        return Zebra(**{name: group[name] for name in ("population", "individual", "individual_ceiling", "tag")})

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by the keys of the JSON report; `spkbase.files.to_json` writes infinities as text."""
        counts = {"n_target": self.n_target, "n_nontarget": self.n_nontarget, "convention": self.convention}
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        return counts | as_plain(self.results, copy) | {"intervals": intervals, "notes": self.notes}

    def values(self) -> dict[str, float]:
        """Return every number by a flat name, such as ``"eer.rocch"``, ``"min_dcf.0.01"`` or ``"zebra.population"``."""
        places = {name: name.partition(".") for metric in self.metrics for name, _ in metric.numbers()}
        return {
            name: number_of(self.results[head][rest] if rest else self.results[head])
            for name, (head, _, rest) in places.items()
        }

    def titles(self) -> dict[str, tuple[str, Unit]]:
        """Return what tables call each number, and its unit, by the name that `values` gives."""
        titles = {}
        for metric in self.metrics:
            beside = {} if metric.beside is None else self.results[metric.name.partition(".")[0]]
            words = {name: format_value(part) if isinstance(part, float) else part for name, part in beside.items()}
            for name, point in metric.numbers():
                titles[name] = (metric.title_at(point, **words), metric.unit)
        return titles

    def to_columns(self) -> dict[str, Any]:
        """Return a row for each number: its name, title, value and unit, the ends of its interval, and its note."""
        values, titles = self.values(), self.titles().values()
        ends = [self.intervals.get(name, (np.nan, np.nan)) for name in values]
        return {
            "metric": list(values),
            "title": [title for title, _ in titles],
            "value": list(values.values()),
            "unit": [unit.name for _, unit in titles],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "note": [self.notes.get(name) or self.notes.get(f"intervals.{name}", "") for name in values],
        }

    def _lines(self) -> list[dict[str, str | None]]:
        """Return the lines of a table to be read: counts and convention, then each metric, written out."""
        rows: list[tuple[str | None, ...]] = [
            ("target trials", f"{self.n_target:,}", None),
            ("nontarget trials", f"{self.n_nontarget:,}", None),
            ("convention", self.convention, None),
        ]
        values = self.values()
        for name, (title, unit) in self.titles().items():
            ends = [number_text(end, unit.form) for end in self.intervals.get(name, ())]
            interval = "undefined" if ends == ["undefined"] * 2 else " to ".join(ends) or None
            rows.append((title, number_text(values[name], unit.form), interval))
        names = ["metric", "value", "interval"] if self.intervals else ["metric", "value"]
        return [dict(zip(names, row, strict=False)) for row in rows]

    def to_latex(self, *, caption: str | None = None, label: str = "tab:metrics", columns: Sequence[str] = ()) -> str:
        r"""Return a row for each metric as a ``table`` of booktabs, for ``\input`` in LaTeX.

        Parameters
        ----------
        caption : str, optional
            As TeX; by default it names the numbers of trials and how intervals were made.
        label : str
            For references.
        columns : sequence of str
            Metrics by the names of `values`; all by default.
        """
        names = list(self.values())
        if unknown := [name for name in columns if name not in names]:
            raise DataError(f"no metric {few(unknown, repr)}; there are: {', '.join(names)}")
        lines = dict(zip(names, self._lines()[-len(names) :], strict=True))  # those above are counts
        if caption is None:
            counts = f"Metrics of {self.n_target:,} target and {self.n_nontarget:,} nontarget trials"
            caption = escape_tex(". ".join([counts, *filter(None, [self.notes.get("intervals")])])) + "."
        rows = [{title: cell or "" for title, cell in lines[name].items()} for name in columns or names]
        return latex_table(rows, caption=caption, label=label)

    def _repr_html_(self) -> str:
        lines = self._lines()
        columns = {name: [line[name] for line in lines] for name in lines[0]}
        return html_table(columns, notes=[f"{name}: {text}" for name, text in self.notes.items()])

    def __str__(self) -> str:
        notes = [f"{name}: {text}" for name, text in self.notes.items()]
        return "\n".join([format_table(self._lines()), *([""] if notes else []), *notes])


@one_line
@dataclass(frozen=True)
class Metrics:
    """All metrics as a statistic for `evaluation.uncertainty.confidence` and `evaluation.uncertainty.groups`.

    Parameters
    ----------
    priors : sequence of str or float
        Target priors of the detection costs.
    convention : str
        Which convention to follow; see `evaluation.metrics.conventions`.
    metrics : tuple of Metric
        What to compute.
    """

    priors: Sequence[str | float] = PRIORS
    convention: str = "default"
    metrics: tuple[Metric, ...] = METRICS

    @cached_property
    def rows(self) -> tuple[Metric, ...]:
        """Return the table at these priors and under this convention."""
        if self.convention not in CONVENTIONS:
            raise DataError(f"expected a convention among {', '.join(CONVENTIONS)}, got {self.convention!r}")
        if strange := [prior for prior in self.priors if not is_prior(str(prior))]:
            raise DataError(f"expected target priors between 0 and 1, got {few(strange, repr)}")
        replaces, priors = CONVENTIONS[self.convention], tuple(dict.fromkeys(map(str, self.priors)))
        rows = tuple(
            replace(row, compute=replaces.get(row.name, row.compute), points=priors if row.over_priors else row.points)
            for row in self.metrics
        )
        if self.metrics is not METRICS:
            check_metrics(rows)
        return rows

    def results(self, scores: SortedScores) -> dict[str, Any]:
        """Compute what each row gives, a float or a record with a `value`, by the name of the number."""
        results: dict[str, Any] = {}
        for row in self.rows:
            for name, point in row.numbers():
                given = [number_of(results[part]) for part in row.of] if row.of else [scores]
                results[name] = row.compute(*given, point) if point else row.compute(*given)
        return results

    def __call__(self, scores: SortedScores) -> dict[str, float]:
        """Compute the numbers alone."""
        return {name: number_of(result) for name, result in self.results(scores).items()}

    @one_blas_thread()
    def evaluate(self, scores: SortedScores) -> Evaluation:
        """Compute them with all that belongs to them, and notes on those to be read with care."""
        grouped: dict[str, Any] = {}
        notes: dict[str, str] = {}
        results = self.results(scores)
        for row in self.rows:
            if row.points is not None:
                grouped.setdefault(row.name, {})
            for name, point in row.numbers():
                head, _, rest = name.partition(".")
                group, key = (grouped.setdefault(head, {}), rest) if rest else (grouped, head)
                group[key] = results[name]
                if row.beside is not None:
                    group.update(row.beside(number_of(results[name]), scores))
                if row.caveat is not None and (text := row.caveat(results[name], scores, self.convention, point)):
                    notes[name] = text
        if (turned := detection.reversal(scores)) is not None:
            notes["scores"] = turned.text
        counts = as_count(scores.n_target), as_count(scores.n_nontarget)
        return Evaluation(*counts, self.convention, grouped, self.rows, notes=notes)


def _rate_at(side: int, thresholds: dict[str, float], scores: SortedScores, point: str) -> RateAt:
    cut = int(np.searchsorted(scores.thresholds, thresholds[point]))
    return RateAt(scores.error_rates(cut)[side], thresholds[point])


def _threshold_used(found: RateAt, scores: SortedScores, convention: str, point: str) -> str:
    return f"accepted at {found.threshold:.6g} and above"
