"""How numbers of metrics are written in tables, on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.metrics.metric import Metric
from evaluation.metrics.zebra_profile import format_value

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
        See `evaluation.metrics.metric.Unit`.

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
