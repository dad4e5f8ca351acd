"""How results show themselves: in one line as text, as a table in a notebook, as a data frame.

A type that has columns takes on `Tabular`; a record with large fields is decorated with `one_line`. pandas is loaded
only where a data frame is asked for, and nothing here needs Jupyter: ``_repr_html_`` is a method that it looks for.
"""

from __future__ import annotations

import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from itertools import islice
from typing import Any, TypeVar

from spkbase.errors import ConfigError

LONGEST = 200
"""Characters of a text in one line."""
_LONGEST_PART = 60
_FEW = 4
_ROWS = 10
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Class = TypeVar("Class", bound=type)


def one_line(cls: Class) -> Class:
    """Give a dataclass a repr in one line, however large its fields are.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @one_line
    ... @dataclass
    ... class Curve:
    ...     top: int
    ...     sizes: np.ndarray
    >>> Curve(1, np.zeros(100)), Curve(2, np.arange(3))
    (Curve(top=1, sizes=<100 float64>), Curve(top=2, sizes=[0, 1, 2]))
    """
    setattr(cls, "__repr__", _repr_of_record)  # noqa: B010  # a plain assignment is none to type checkers
    return cls


def brief(value: Any, longest: int = _LONGEST_PART) -> str:
    """Return a text in one line for any value: its repr where that is short, else what it is and how large.

    Parameters
    ----------
    value : object
        Anything.
    longest : int
        Characters.

    Examples
    --------
    >>> import numpy as np
    >>> print(brief(np.zeros((3, 4))), brief({"eer": 0.5, "cllr": 1.0}), brief(list(range(100))))
    <3 x 4 float64> {'eer': 0.5, 'cllr': 1.0} [0, 1, 2, 3, ... 96 more]
    """
    import numpy as np  # help texts do without

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and len(value) <= _FEW:
            return brief(value.tolist(), longest)
        return f"<{' x '.join(map(str, value.shape)) or 'one'} {value.dtype}>"
    if isinstance(value, str) and len(value) > longest:
        return repr(value[: longest - 5] + "...")
    if isinstance(value, Mapping):
        pairs = [f"{brief(name, 20)}: {brief(part, 20)}" for name, part in islice(value.items(), _FEW)]
        return _cut(_enclosed("{", pairs, len(value), "}"), longest)
    if isinstance(value, (list, tuple)) and type(value).__repr__ in (list.__repr__, tuple.__repr__):
        ends = ("[", "]") if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
        return _cut(_enclosed(ends[0], [brief(part, 20) for part in value[:_FEW]], len(value), ends[1]), longest)
    if callable(value) and hasattr(value, "__qualname__"):
        return _cut(f"{value.__module__}.{value.__qualname__}", longest)
    return _cut(" ".join(repr(value).split()), longest)


def html_table(
    columns: Mapping[str, Sequence[Any]], *, caption: str = "", notes: Sequence[str] = (), most: int = 2 * _ROWS
) -> str:
    """Return a table in HTML; every text in it is escaped.

    Parameters
    ----------
    columns : mapping of str to sequence
        Values by heading, all of one length; numbers stand to the right, with four digits.
    caption : str
        What stands above.
    notes : sequence of str
        Lines below.
    most : int
        Of longer tables the first ten rows are shown, and the others counted.

    Examples
    --------
    >>> print(html_table({"metric": ["a < b"], "value": [0.25]}))
    <table>
    <thead><tr><th style="text-align: left">metric</th><th style="text-align: right">value</th></tr></thead>
    <tbody>
    <tr><td style="text-align: left">a &lt; b</td><td style="text-align: right">0.25</td></tr>
    </tbody>
    </table>
    """
    n_rows = max((len(column) for column in columns.values()), default=0)
    shown = n_rows if n_rows <= most else _ROWS
    cells = {name: list(column[:shown]) for name, column in columns.items()}
    sides = {name: "right" if any(map(_is_number, column)) else "left" for name, column in cells.items()}
    head = "".join(_html_cell("th", name, sides[name]) for name in cells)
    lines = [
        "<tr>" + "".join(_html_cell("td", column[row], sides[name]) for name, column in cells.items()) + "</tr>"
        for row in range(shown)
    ]
    above = [f"<caption>{_escaped(caption)}</caption>"] if caption else []
    more = [f"... and {n_rows - shown:,} rows more"] if shown < n_rows else []
    below = [f"<p>{_escaped(note)}</p>" for note in [*more, *notes]]
    body = [f"<thead><tr>{head}</tr></thead>", "<tbody>", *lines, "</tbody>"]
    return "\n".join(["<table>", *above, *body, "</table>", *below])


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a pandas data frame of columns.

    Parameters
    ----------
    columns : mapping of str to sequence
        Values by name, all of one length.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    ConfigError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        remedy = "pip install 'spkver[frames]', or use to_columns(), which any other library of data frames takes"
        raise ConfigError("a data frame needs pandas, which is not installed", remedy=remedy) from error
    return pandas.DataFrame(dict(columns))


class Tabular(ABC):
    """What has columns: it becomes a data frame, and a table in a notebook."""

    @abstractmethod
    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name, all of one length; ``polars.DataFrame`` and its like take them."""

    def to_dataframe(self) -> Any:
        """Return a pandas data frame of the columns.

        Raises
        ------
        ConfigError
            If pandas is not installed.
        """
        return data_frame(self.to_columns())

    def _repr_html_(self) -> str:
        return html_table(self.to_columns(), caption=type(self).__name__)


def _repr_of_record(record: Any) -> str:
    name = type(record).__name__
    parts = [f"{part.name}={brief(getattr(record, part.name, None))}" for part in fields(record) if part.repr]
    text = f"{name}({', '.join(parts)})"
    while len(text) > LONGEST:
        parts.pop()
        text = f"{name}({', '.join([*parts, '...'])})"
    return text


def _enclosed(start: str, parts: Sequence[str], count: int, end: str) -> str:
    more = [f"... {count - len(parts)} more"] if count > len(parts) else []
    return start + ", ".join([*parts, *more]) + end


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _html_cell(name: str, value: Any, side: str) -> str:
    if value is None:
        value = ""
    elif _is_number(value) and not isinstance(value, numbers.Integral):
        value = format(value, ".4g")
    elif is_dataclass(value):
        value = brief(value)
    return f'<{name} style="text-align: {side}">{_escaped(str(value))}</{name}>'


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)  # NumPy's numbers are such too


def _escaped(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)
