"""How results show themselves: in one line as text, as a table in a notebook, as a data frame.

A type that has columns takes on `Tabular`; a record with large fields is decorated with `one_line`. pandas is loaded
only where a data frame is asked for, and nothing here needs Jupyter: ``_repr_html_`` is a method that it looks for.
"""

from __future__ import annotations

import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from itertools import islice
from typing import Any, TypeVar

LONGEST = 200
"""Characters of a text in one line."""
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

    def show(record: Any) -> str:
        parts = [f"{part.name}={brief(getattr(record, part.name, None))}" for part in fields(record) if part.repr]
        text = f"{type(record).__name__}({', '.join(parts)})"
        return text if len(text) <= LONGEST else text[: LONGEST - 4] + "...)"

    setattr(cls, "__repr__", show)  # noqa: B010  # a plain assignment is none to type checkers
    return cls


def brief(value: Any, longest: int = 60) -> str:
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

    if isinstance(value, np.ndarray) and (value.ndim != 1 or len(value) > _FEW):
        return f"<{' x '.join(map(str, value.shape)) or 'one'} {value.dtype}>"
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        parts = [f"{brief(name, 20)}: {brief(part, 20)}" for name, part in islice(value.items(), _FEW)]
    elif type(value) in (list, tuple):
        parts = [brief(part, 20) for part in value[:_FEW]]
    else:
        named = callable(value) and hasattr(value, "__qualname__")
        text = f"{value.__module__}.{value.__qualname__}" if named else " ".join(repr(value).split())
        return text if len(text) <= longest else text[: longest - 3] + "..."
    parts += [f"... {len(value) - _FEW} more"] if len(value) > _FEW else []
    ends = "{}" if isinstance(value, Mapping) else "[]" if isinstance(value, list) else "()"
    text = ends[0] + ", ".join(parts) + ("," if ends == "()" and len(value) == 1 else "") + ends[1]
    return text if len(text) <= longest else text[: longest - 3] + "..."


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

    def cell(tag: str, name: str, value: Any) -> str:
        is_fraction = _is_number(value) and not isinstance(value, numbers.Integral)
        text = "" if value is None else format(value, ".4g") if is_fraction else str(value)
        return f'<{tag} style="text-align: {sides[name]}">{_escaped(text)}</{tag}>'

    rows = ["".join(cell("td", name, column[row]) for name, column in cells.items()) for row in range(shown)]
    more = [f"... and {n_rows - shown:,} rows more"] if shown < n_rows else []
    lines = [f"<caption>{_escaped(caption)}</caption>"] if caption else []
    lines += [f"<thead><tr>{''.join(cell('th', name, name) for name in cells)}</tr></thead>", "<tbody>"]
    lines += [*(f"<tr>{row}</tr>" for row in rows), "</tbody>", "</table>"]
    return "\n".join(["<table>", *lines, *(f"<p>{_escaped(note)}</p>" for note in [*more, *notes])])


class Tabular(ABC):
    """What has columns: it becomes a data frame, and a table in a notebook."""

    @abstractmethod
    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name, all of one length; ``polars.DataFrame`` and its like take them."""

    def to_dataframe(self) -> Any:
        """Return a pandas data frame of the columns."""
        import pandas

        return pandas.DataFrame(self.to_columns())

    def _repr_html_(self) -> str:
        return html_table(self.to_columns(), caption=type(self).__name__)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)  # NumPy's numbers are such too


def _escaped(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)
