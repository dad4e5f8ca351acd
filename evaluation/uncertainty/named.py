"""Intervals by the name of their metric: dicts that show themselves as tables."""

from __future__ import annotations

from typing import Any

from evaluation.uncertainty.intervals import Interval
from spkbase.files import format_table
from spkbase.showing import Tabular, brief


class _Shown(Tabular):
    def __str__(self) -> str:
        columns = self.to_columns()
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        return format_table(rows, dict.fromkeys(columns, ".4g"))


class Intervals(_Shown, dict[str, Interval]):
    """An interval for each metric.

    Examples
    --------
    >>> Intervals({"eer.rocch": Interval(0.1, 0.05, 0.2)}).to_columns()["high"]
    [0.2]
    """

    def __repr__(self) -> str:
        return f"Intervals({brief(dict(self), 180)})"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each metric: its name, value, the ends, the method and the note."""
        fields = ("value", "low", "high", "method", "note")
        return {"metric": list(self)} | {name: [getattr(part, name) for part in self.values()] for name in fields}


class Differences(_Shown, dict[str, dict[str, Interval]]):
    """For each system the differences of its metrics from those of the first one."""

    def __repr__(self) -> str:
        return f"Differences({brief(dict(self), 180)})"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each system and metric; see `Intervals.to_columns`."""
        tables = {system: Intervals(intervals).to_columns() for system, intervals in self.items()}
        columns = {"system": [system for system, table in tables.items() for _ in table["metric"]]}
        names = Intervals().to_columns()
        return columns | {name: [cell for table in tables.values() for cell in table[name]] for name in names}
