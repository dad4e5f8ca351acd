"""Every metric of scores: the computation as a statistic, and its result as attributes, table and report."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evaluation.metrics import detection
from evaluation.metrics.conventions import CONVENTIONS
from evaluation.metrics.detection import TrueAccept
from evaluation.metrics.disclosure import Zebra, format_value
from evaluation.metrics.metric import Metric, Unit, check_metrics, is_prior, number_of, number_text
from evaluation.metrics.sorted_scores import SortedScores, as_count
from evaluation.metrics.table import METRICS, PRIORS
from spkbase.errors import DataError, few
from spkbase.files import as_plain, format_table, write_text
from spkbase.showing import Tabular, escape_tex, html_table, latex_table, one_line
from spkbase.work import one_blas_thread

Number = TypeVar("Number")


class Numbers(dict[str, Number]):
    """The numbers of one metric by name: ``min_dcf["0.01"]`` or ``min_dcf[0.01]``, and ``eer.rocch``.

    `float` returns the one named ``rocch``.
    """

    def __missing__(self, key: object) -> Number:
        for name, number in self.items():
            if isinstance(key, float) and is_prior(name) and float(name) == key:
                return number
        raise KeyError(f"expected one of {', '.join(self)}, got {key!r}")

    def __getattr__(self, name: str) -> Number:
        if name in self:
            return self[name]
        raise AttributeError(f"expected one of {', '.join(self)}, got {name!r}")

    def __float__(self) -> float:
        if "rocch" not in self:
            raise TypeError(f"several numbers: choose one of {', '.join(self)}")
        return number_of(self["rocch"])


class MetricAttributes:
    """The metrics of `METRICS` as attributes of an `Evaluation`, for type checkers; they are looked up by name."""

    eer: Numbers[float]
    threshold_at_eer: float
    cllr: float
    min_cllr: float
    calibration_loss: float
    min_dcf: Numbers[float]
    act_dcf: Numbers[float]
    min_dcf_unnormalised: Numbers[float]
    act_dcf_unnormalised: Numbers[float]
    d_sys: float
    d_sys_pav: float
    tpr_at_fpr: Numbers[TrueAccept]
    prbep: float
    auc: float


@one_line
@dataclass(frozen=True)
class Evaluation(MetricAttributes, Tabular):
    """Return value of `evaluation.evaluate`; rates are fractions, information is in bits, LLRs are natural.

    Each metric is an attribute under its key in the report: ``result.cllr``, ``result.eer["rocch"]``,
    ``result.min_dcf["0.01"]``, ``result.tpr_at_fpr["0.01"].value``, ``result.zebra.population``; each number has a
    flat name too, ``result["eer.rocch"]``.

    Parameters
    ----------
    n_target, n_nontarget : int, or float where trials have weights
        Number of trials.
    convention : str
        The convention that every number follows; see `evaluation.metrics.conventions`.
    results : dict
        Result of each metric, by the key of the report; numbers of one group, such as the equal error rates, are a
        dict in it.
    metrics : tuple of Metric
        The table that was computed; docs/metrics.md explains its rows.
    intervals : dict of str to (low, high)
        Confidence intervals by the name that `values` gives; empty unless requested.
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
        """Return the result of a metric, by its key in the report."""
        results = vars(self).get("results", {})  # empty while the object is being copied
        if name in results:
            return results[name]
        raise AttributeError(f"expected one of the metrics {', '.join(results)}, got {name!r}")

    def __getitem__(self, name: str) -> Any:
        """Return a number by its flat name, see `values`, or the result of a metric by its key."""
        if name in self.results:
            return self.results[name]
        numbers = self.values()
        if name in numbers:
            return numbers[name]
        raise KeyError(f"no metric {name!r}; the metrics are: {', '.join(numbers)}")

    def __dir__(self) -> list[str]:
        """Return the names of the attributes, metrics too."""
        return [*super().__dir__(), *self.results]

    @property
    def zebra(self) -> Zebra:
        """Return what scores disclose about the population and about an individual, if the table has both."""
        group = self.results.get("zebra", {})
        if not {"population", "individual"} <= set(group):
            raise AttributeError("expected all rows of ZEBRA in the table of metrics")
        return Zebra(
            **{
                name: group[name]
                for name in ("population", "individual", "individual_ceiling", "tag")
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by the keys of the JSON report; `spkbase.files.to_json` writes infinities as text."""
        counts = {
            "n_target": self.n_target,
            "n_nontarget": self.n_nontarget,
            "convention": self.convention,
        }
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        results: dict[str, Any] = as_plain(self.results, copy)
        return counts | results | {"intervals": intervals, "notes": self.notes}

    def values(self) -> dict[str, float]:
        """Return every number by a flat name, such as ``"eer.rocch"``, ``"min_dcf.0.01"`` or ``"zebra.population"``."""
        values = {}
        for metric in self.metrics:
            for name, _ in metric.numbers():
                head, _, rest = name.partition(".")
                result = self.results[head]
                if rest:
                    result = result[rest]
                values[name] = number_of(result)
        return values

    def titles(self) -> dict[str, tuple[str, Unit]]:
        """Return the title and unit of each number in tables, by its name in `values`."""
        titles = {}
        for metric in self.metrics:
            words = {}
            if metric.beside is not None:
                words = dict(self.results[metric.name.partition(".")[0]])
            for name, part in words.items():
                if isinstance(part, float):
                    words[name] = format_value(part)
            for name, point in metric.numbers():
                titles[name] = (metric.title_at(point, **words), metric.unit)
        return titles

    def to_columns(self) -> dict[str, Any]:
        """Return a row for each number: its name, title, value and unit, the ends of its interval, and its note."""
        titles = self.titles()
        columns: dict[str, list[Any]] = {
            name: [] for name in ("metric", "title", "value", "unit", "low", "high", "note")
        }
        for name, value in self.values().items():
            title, unit = titles[name]
            low, high = self.intervals.get(name, (np.nan, np.nan))
            note = self.notes.get(name) or self.notes.get(f"intervals.{name}", "")
            row = (name, title, value, unit.name, low, high, note)
            for column, cell in zip(columns.values(), row, strict=True):
                column.append(cell)
        return columns

    def _lines(self) -> list[dict[str, str | None]]:
        """Return the lines of a printed table: counts and convention, then each metric."""
        rows: list[dict[str, str | None]] = [
            {"metric": "target trials", "value": f"{self.n_target:,}"},
            {"metric": "nontarget trials", "value": f"{self.n_nontarget:,}"},
            {"metric": "convention", "value": self.convention},
        ]
        values = self.values()
        for name, (title, unit) in self.titles().items():
            rows.append({"metric": title, "value": number_text(values[name], unit.form)})
            ends = [number_text(end, unit.form) for end in self.intervals.get(name, ())]
            if ends:
                undefined = ends == ["undefined"] * 2
                rows[-1]["interval"] = "undefined" if undefined else " to ".join(ends)
        if self.intervals:
            for row in rows:
                row.setdefault("interval", None)
        return rows

    def to_latex(
        self,
        path: str | Path | None = None,
        *,
        caption: str | None = None,
        label: str = "tab:metrics",
        columns: Sequence[str] = (),
    ) -> str:
        r"""Return a row for each metric as a ``table`` of booktabs, for ``\input`` in LaTeX.

        Parameters
        ----------
        path : path, optional
            A file to which the table is also written.
        caption : str, optional
            Caption, as TeX; by default it states the numbers of trials and how intervals were made.
        label : str
            Label for references.
        columns : sequence of str
            Metrics by the names of `values`; all by default.
        """
        names = list(self.values())
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise DataError(f"no metric {few(unknown, repr)}; the metrics are: {', '.join(names)}")
        # the first lines are counts
        lines = dict(zip(names, self._lines()[-len(names) :], strict=True))
        if caption is None:
            text = f"Metrics of {self.n_target:,} target and {self.n_nontarget:,} nontarget trials."
            if self.notes.get("intervals"):
                text += f" {self.notes['intervals']}."
            caption = escape_tex(text)
        rows = []
        for name in columns or names:
            rows.append({title: cell or "" for title, cell in lines[name].items()})
        tex = latex_table(rows, caption=caption, label=label)
        if path is not None:
            write_text(path, tex)
        return tex

    def _repr_html_(self) -> str:
        lines = self._lines()
        columns = {}
        for name in lines[0]:
            columns[name] = [line[name] for line in lines]
        return html_table(columns, notes=[f"{name}: {text}" for name, text in self.notes.items()])

    def __str__(self) -> str:
        lines = [format_table(self._lines())]
        if self.notes:
            lines += ["", *(f"{name}: {text}" for name, text in self.notes.items())]
        return "\n".join(lines)


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
        Table of metrics to compute.
    """

    priors: Sequence[str | float] = PRIORS
    convention: str = "default"
    metrics: tuple[Metric, ...] = METRICS

    @cached_property
    def rows(self) -> tuple[Metric, ...]:
        """Return the rows of the table at these priors and under this convention."""
        if self.convention not in CONVENTIONS:
            raise DataError(
                f"expected one of the conventions {', '.join(CONVENTIONS)}, got {self.convention!r}"
            )
        strange = [prior for prior in self.priors if not is_prior(str(prior))]
        if strange:
            raise DataError(f"expected target priors between 0 and 1, got {few(strange, repr)}")
        replaced = CONVENTIONS[self.convention]
        priors = tuple(dict.fromkeys(map(str, self.priors)))
        rows = []
        for row in self.metrics:
            points = priors if row.over_priors else row.points
            rows.append(replace(row, compute=replaced.get(row.name, row.compute), points=points))
        if self.metrics is not METRICS:
            check_metrics(rows)
        return tuple(rows)

    def results(self, scores: SortedScores) -> dict[str, Any]:
        """Return the result of each metric, a float or a record with a `value`, by the metric's name at that point."""
        results: dict[str, Any] = {}
        for row in self.rows:
            for name, point in row.numbers():
                given: list[Any] = [scores]
                if row.inputs:
                    given = [number_of(results[part]) for part in row.inputs]
                results[name] = row.compute(*given, point) if point else row.compute(*given)
        return results

    def __call__(self, scores: SortedScores) -> dict[str, float]:
        """Compute the numbers without notes."""
        return {name: number_of(result) for name, result in self.results(scores).items()}

    @one_blas_thread()
    def evaluate(self, scores: SortedScores) -> Evaluation:
        """Compute the full results, with notes on numbers to be read with care."""
        grouped: dict[str, Any] = {}
        notes: dict[str, str] = {}
        results = self.results(scores)
        for row in self.rows:
            if row.points is not None:
                grouped.setdefault(row.name, Numbers())
            for name, point in row.numbers():
                head, _, rest = name.partition(".")
                group = grouped
                if rest:
                    group = grouped.setdefault(head, Numbers())
                group[rest or head] = results[name]
                if row.beside is not None:
                    group.update(row.beside(number_of(results[name]), scores))
                if row.caveat is not None:
                    text = row.caveat(results[name], scores, self.convention, point)
                    if text:
                        notes[name] = text
        turned = detection.reversal(scores)
        if turned is not None:
            notes["scores"] = turned.text
        n_target = as_count(scores.n_target)
        n_nontarget = as_count(scores.n_nontarget)
        return Evaluation(n_target, n_nontarget, self.convention, grouped, self.rows, notes=notes)
