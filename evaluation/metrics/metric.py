"""A metric: a function of the sorted scores, and what is to be known of its number to print it and to trust it.

`evaluation.metrics.table` holds the built-in ones, docs/metrics.md says how to write your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evaluation.metrics.detection import effective_prior
from evaluation.metrics.interval_methods import Method
from evaluation.metrics.sorted_scores import SortedScores
from spkbase.errors import DataError
from spkbase.showing import one_line

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
    method: Method | Callable[[str], Method] = Method("identity")  # noqa: RUF009  # it is frozen
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
