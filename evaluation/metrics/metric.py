"""The definition of a metric: a row of the table, its numbers, its unit, and the method of each interval.

How the interval of a metric is made is a `Method`: a scale, a factor of the bias to subtract, and the ends of its
range; `evaluation.uncertainty.intervals` says why, and makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evaluation.metrics.disclosure import format_value
from evaluation.metrics.sorted_scores import SortedScores
from spkbase.errors import DataError

Scale = Literal["identity", "log", "inverse root", "logit", "complement", "percentile", "none"]

RESERVED = (
    "n_target",
    "n_nontarget",
    "convention",
    "intervals",
    "notes",
    "interval_methods",
    "groups",
)
"""Keys of the JSON report that no metric may have."""

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
        Scale on which the error is nearly normal; "percentile" takes only quantiles, and "none" gives no interval.
    factor : float
        Multiple of the difference between resamples and value that is subtracted as bias; 0 for metrics that do not use
        the hull.
    lower, upper : float
        Least and largest value of the metric; intervals are cut there.
    of_errors : bool
        The metric is a share of errors, which has another interval if errors are few.
    widening : float
        Factor by which intervals are wider than the resamples alone give.
    """

    scale: Scale
    factor: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    of_errors: bool = False
    widening: float = 1.0

    @property
    def name(self) -> str:
        """Return the name of the method for tables and files."""
        if self.scale in ("percentile", "none"):
            return self.scale
        if self.factor:
            bias = f", {self.factor:.2f} times the bias removed"
        else:
            bias = ""
        return f"t on the {_SCALES[self.scale]} scale{bias}"


@dataclass(frozen=True)
class Unit:
    """The unit of a metric.

    Parameters
    ----------
    name : str
        Name, such as ``"bit"``.
    form : str
        How tables print a number: a format specification, ``"%"`` for a fraction printed in per cent, or ``"zebra"``
        for the form of `evaluation.metrics.format_value`.
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
    """A row of the table: a number computed from scores.

    Parameters
    ----------
    name : str
        Key in reports. What precedes a dot is the key of its group.
    compute : callable
        Returns the number, or a record that holds it as `value` with further fields, all of which the report shows. Its
        argument is `SortedScores`; if the metric has `points`, the point is the last argument.
    title : str
        Title in tables, with ``{}`` for the point; the name by default.
    unit : Unit
        How tables print the number.
    worse : {"high", "low"}
        Which values are bad for the system, for the worst of several groups.
    method : Method, or callable
        How its interval is made; a function of the point if it depends on that.
    points : tuple of str, optional
        If a metric has several numbers: the definitions, priors or rates at which it is computed. The name of each
        number consists of the metric, a dot and the point.
    over_priors : bool
        The points are the target priors of `Metrics`.
    inputs : tuple of str
        Names of earlier rows if the metric is computed from their numbers: `compute` gets these instead of the scores.
    short : str
        Heading in the table of groups; the title by default.
    about : str
        Explanation for a reader who knows what scores are.
    caveat : callable, optional
        Returns why the number is to be read with care, or None; gets what `compute` gave, the scores, the name of
        the convention, and the point.
    beside : callable, optional
        Takes the number and the scores; returns values, by name, that the report shows beside the number. The title may
        show them too.
    """

    name: str
    compute: Callable[..., Any]
    title: str = ""
    unit: Unit = NUMBER
    worse: Literal["high", "low"] = "high"
    method: Method | Callable[[str], Method] = Method("identity")  # an immutable default
    points: tuple[str, ...] | None = None
    over_priors: bool = False
    inputs: tuple[str, ...] = ()
    short: str = ""
    about: str = ""
    caveat: Callable[[Any, SortedScores, str, str], str | None] | None = None
    beside: Callable[[float, SortedScores], Mapping[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"Metric({self.name!r})"  # short, since signatures show whole tables

    def numbers(self) -> list[tuple[str, str]]:
        """Return the name of each number with its point, which is "" if the metric has a single number."""
        if self.points is None:
            return [(self.name, "")]
        return [(f"{self.name}.{point}", point) for point in self.points]

    def title_at(self, point: str, **beside: Any) -> str:
        """Return the title of the number at a point, with the values shown next to it."""
        title = self.title or f"{self.name}.{point}".rstrip(".")
        if not (point or beside):
            return title
        return title.format(_WRITTEN.get(point, point), **beside)

    def method_at(self, point: str) -> Method:
        """Return how the interval at a point is made."""
        if isinstance(self.method, Method):
            return self.method
        return self.method(point)


def number_of(result: Any) -> float:
    """Return the number in the result of a metric: the result itself, or its `value`.

    Parameters
    ----------
    result : float, or a record with a `value`
        Result of `Metric.compute`.

    Raises
    ------
    DataError
        If it is not a number.
    """
    try:
        return float(getattr(result, "value", result))
    except (TypeError, ValueError) as error:
        text = f"expected a metric to give a number, or a record with a value, got {result!r}"
        raise DataError(text, remedy="its compute must return a float") from error


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Check that a table of metrics can be computed and reported.

    Parameters
    ----------
    metrics : sequence of Metric
        The table.

    Raises
    ------
    DataError
        If a name is empty, taken, or a key of the report; or a metric uses one that is not in an earlier row.
    """
    names = []
    for metric in metrics:
        missing = [part for part in metric.inputs if part not in names]
        if missing:
            text = (
                f"expected {' and '.join(missing)} above {metric.name!r}, which is computed from it"
            )
            raise DataError(text, remedy="put that metric before it in the table")
        names += [name for name, _ in metric.numbers()]
    groups = {name.partition(".")[0] for name in names if "." in name}
    for number, name in enumerate(names):
        if (
            not name
            or name in names[:number]
            or name in groups
            or name.partition(".")[0] in RESERVED
        ):
            text = f"expected unique names of metrics that are not keys of the report, got {name!r}"
            raise DataError(text, remedy="give the metric another name")


def find_metric(name: str, metrics: Sequence[Metric]) -> tuple[Metric | None, str]:
    """Return the row and the point of a number, including points that are not in the table, such as other priors."""
    head, _, point = name.partition(".")
    by_name = {metric.name: metric for metric in metrics}
    if name in by_name:
        return by_name[name], ""
    return by_name.get(head), point


def is_prior(text: str) -> bool:
    """Return whether a text is a prior, a number between 0 and 1.

    Parameters
    ----------
    text : str
        A text, such as a point of a metric.
    """
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def number_text(value: float, form: str) -> str:
    """Return a number as tables print it.

    Parameters
    ----------
    value : float
        The number; NaN is shown as undefined.
    form : str
        See `Unit`.

    Examples
    --------
    >>> number_text(0.125, "%"), number_text(float("nan"), ".4f")
    ('12.500 %', 'undefined')
    """
    if value != value:
        return "undefined"
    if form == "zebra":
        return format_value(value)
    if form == "%":
        return f"{100 * value:.3f} %"
    return format(value, form)
