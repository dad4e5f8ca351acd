"""Rows of results: dataclasses whose fields are their keys in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

from evaluation.metrics import WorstCase
from evaluation.uncertainty import Interval, Minimum

FLAT: Any = {"json": "flat"}
"""Metadata of a field: the entries of a mapping, or the ends of an interval, are written among those of the row."""
NOT_IN_JSON: Any = {"json": "left out"}
"""Metadata of a field that JSON does not have."""


def number(value: Any) -> float:
    """Return a number from JSON, in which NaN is null and infinite numbers are strings.

    Examples
    --------
    >>> number(1), number("-inf"), number(None)
    (1, -inf, nan)
    """
    if value is None:
        return math.nan
    return value if isinstance(value, int) else float(value)


def interval_from(stated: Mapping[str, Any] | None) -> Interval:
    """Return ``value`` with ``low`` and ``high``, or with the pair ``interval``."""
    stated = stated or {}
    low, high = stated.get("interval") or (stated.get("low"), stated.get("high"))
    return Interval(number(stated.get("value")), number(low), number(high))


def key_of(part: Field[Any]) -> str:
    """Return the key of a field in JSON: its name, or the ``key`` of its metadata."""
    key: str = part.metadata.get("key", part.name)
    return key


class Row:
    """Base class of rows, dataclasses whose fields are their keys in JSON."""

    only_known = False

    def to_dict(self) -> dict[str, Any]:
        """Return the row as in ``results.json``."""
        entry: dict[str, Any] = {}
        for part in fields(self):  # type: ignore[arg-type]
            value = getattr(self, part.name)
            form = part.metadata.get("json")
            if form == "flat" and isinstance(value, Interval):
                entry |= {part.name: value.value, "low": value.low, "high": value.high}
            elif form == "flat":
                entry |= value
            elif form is None and not (self.only_known and _is_unknown(value)):
                entry[key_of(part)] = _plain(value)
        return entry

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        """Return a row from an entry of ``results.json``, whose fields may be missing or null."""
        read: Self = _record(entry, cls)
        return read


class KnownRow(Row):
    """Base class of rows that omit None and NaN from JSON."""

    only_known = True


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    return get_type_hints(cls)


def _is_unknown(value: Any) -> bool:
    return value is None or value != value  # NaN is not equal to itself


def _plain(value: Any) -> Any:
    """Return a value of a row in the form of JSON."""
    if isinstance(value, Interval):  # the values of intervals are in `Condition.metrics`
        return {
            name: part for name, part in value.numbers().items() if name != "value" or value.known
        }
    if isinstance(value, Row | Minimum | WorstCase):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _typed(value: Any, hint: Any) -> Any:
    """Convert a value from JSON to the type that a field declares."""
    kind = get_origin(hint)
    parts = get_args(hint)
    if hint is float:
        return number(value)
    if hint is Interval:
        return interval_from(value)
    if hint in (str, bool) and not isinstance(value, hint):
        raise TypeError(f"expected {hint.__name__}, got {value!r}")
    if kind is UnionType:  # an optional type
        return _typed(value, parts[0])
    if kind is tuple:
        return tuple(_typed(part, parts[0]) for part in value)
    if kind is dict:
        return {name: _typed(part, parts[1]) for name, part in value.items()}
    return _record(value, hint) if is_dataclass(hint) else value


def _record(entry: Mapping[str, Any], cls: Any) -> Any:
    """Return a record from an entry of JSON; keys without a field go into its mapping of further values."""
    hints = hints_of(cls)
    parts = {key_of(part): part for part in fields(cls)}
    given: dict[str, Any] = {}
    for key, part in parts.items():
        hint = hints[part.name]
        value = entry.get(key)
        if part.metadata == FLAT and hint is Interval:
            given[part.name] = interval_from({**entry, "value": value})
        elif part.metadata == FLAT:
            given[part.name] = {name: inner for name, inner in entry.items() if name not in parts}
        elif value is not None or (hint is float and key in entry):
            given[part.name] = _typed(value, hint)
    return cls(**given)
