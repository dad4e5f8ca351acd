"""Representations of results: a line of text, a table in a notebook, a data frame.

A type with columns derives from `Tabular`; a record with large fields is decorated with `one_line`. pandas is imported
only for data frames; Jupyter calls ``_repr_html_``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from itertools import islice, zip_longest
from typing import Any, TypeVar

from spkbase.files import format_table

Class = TypeVar("Class", bound=type)

LONGEST = 200
"""Most characters of a text in one line."""

_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "{}#$%&_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{MINUS SIGN}": r"\textminus{}",
    **{
        raised: rf"\textsuperscript{{{digit}}}"
        for raised, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True)
    },
}
# parts of a cell that a narrow table puts on the next line in small type: units, intervals, p-values
_BREAK = re.compile(r" (?=\[|\(|minus |at )|, (?=p )")
# minus sign of a number, which TeX must set in mathematics
_MINUS = re.compile(r"(?<![^\[ ])-(?=\d|inf)")

_FEW = 4
_ROWS = 50  # rows of a printed table


def one_line(cls: Class) -> Class:
    """Give a dataclass a repr in one line, however large its fields are; `print` shows a large one with a line per
    field.

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

    def parts_of(record: Any, longest: int) -> list[str]:
        shown = [part.name for part in fields(record) if part.repr]
        return [f"{name}={brief(getattr(record, name, None), longest)}" for name in shown]

    def show(record: Any) -> str:
        text = f"{type(record).__name__}({', '.join(parts_of(record, 60))})"
        if len(text) <= LONGEST:
            return text
        return text[: LONGEST - 4] + "...)"

    def write_out(record: Any) -> str:
        name = type(record).__name__
        parts = parts_of(record, LONGEST)
        text = f"{name}({', '.join(parts)})"
        if len(text) <= LONGEST:
            return text
        return "\n  ".join([name, *parts])

    setattr(cls, "__repr__", show)  # noqa: B010  # a plain assignment is none to type checkers
    usual: Any = cls.__str__
    if usual is object.__str__:  # results with columns already print as tables
        setattr(cls, "__str__", write_out)  # noqa: B010
    return cls


def brief(value: Any, longest: int = 60) -> str:
    """Return a one-line text for any value: its repr if that is short, else its type and size.

    Parameters
    ----------
    value : object
        Any value.
    longest : int
        Largest number of characters.

    Examples
    --------
    >>> import numpy as np
    >>> print(brief(np.zeros((3, 4))), brief({"eer": 0.5, "cllr": 1.0}), brief(list(range(100))))
    <3 x 4 float64> {'eer': 0.5, 'cllr': 1.0} [0, 1, 2, 3, ... 96 more]
    """
    import numpy as np  # imported here, since help texts do not need it

    if isinstance(value, np.ndarray) and (value.ndim != 1 or len(value) > _FEW):
        return f"<{' x '.join(map(str, value.shape)) or 'one'} {value.dtype}>"
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        parts = [
            f"{brief(name, 20)}: {brief(part, 20)}" for name, part in islice(value.items(), _FEW)
        ]
    elif type(value) in (list, tuple):
        parts = [brief(part, 20) for part in value[:_FEW]]
    else:
        value = getattr(value, "func", value)  # for a partial function
        if callable(value) and hasattr(value, "__qualname__"):
            return _cut(f"{value.__module__}.{value.__qualname__}", longest)
        return _cut(" ".join(repr(value).split()), longest)
    if len(value) > _FEW:
        parts.append(f"... {len(value) - _FEW} more")
    inner = ", ".join(parts)
    if isinstance(value, Mapping):
        return _cut(f"{{{inner}}}", longest)
    if isinstance(value, list):
        return _cut(f"[{inner}]", longest)
    comma = "," if len(value) == 1 else ""
    return _cut(f"({inner}{comma})", longest)


def html_table(
    columns: Mapping[str, Sequence[Any]], *, caption: str = "", notes: Sequence[str] = ()
) -> str:
    """Return an HTML table, formatted by pandas; all texts are escaped, and fractions have four digits.

    Parameters
    ----------
    columns : mapping of str to sequence
        Values by heading, all of the same length.
    caption : str
        Line above the table.
    notes : sequence of str
        Lines below the table.
    """
    import pandas

    values = {}
    for name, column in columns.items():
        values[name] = ["" if value is None else value for value in column]
    frame = pandas.DataFrame(values)
    table = frame.to_html(
        index=False, border=0, max_rows=100, na_rep="nan", float_format="{:.4g}".format
    )
    lines = [f"<p>{escape(text)}</p>" for text in (caption, *notes)]
    return "\n".join([*lines[: bool(caption)], table, *lines[1:]])


class Tabular(ABC):
    """Base class of results with columns, which become a data frame and a table in a notebook."""

    @abstractmethod
    def to_columns(self) -> dict[str, Any]:
        """Return columns of equal length by name, as accepted by ``polars.DataFrame`` and others."""

    def headline(self) -> str:
        """Return the main result in one line if the rows are details of it; otherwise nothing."""
        return ""

    def to_dataframe(self) -> Any:
        """Return a pandas data frame of the columns."""
        import pandas

        return pandas.DataFrame(self.to_columns())

    def _repr_html_(self) -> str:
        return html_table(self.to_columns(), caption=self.headline() or type(self).__name__)

    def __str__(self) -> str:
        columns = self.to_columns()
        forms = {}
        for name, column in columns.items():
            has_fractions = any(isinstance(cell, float) for cell in column)
            forms[name] = ".4g" if has_fractions else ""
        cells = islice(zip(*columns.values(), strict=True), _ROWS)
        lines = [
            self.headline(),
            format_table([dict(zip(columns, row, strict=True)) for row in cells], forms),
        ]
        n_rows = max(map(len, columns.values()), default=0)
        if n_rows > _ROWS:
            lines.append(f"... {n_rows:,} rows")
        return "\n".join(filter(None, lines))


def escape_tex(text: str) -> str:
    """Escape a text so that TeX prints it unchanged; letters that its fonts lack are printed as code points.

    Examples
    --------
    >>> escape_tex("50% of $x_1$ in Łódź")
    '50\\\\% of \\\\$x\\\\_1\\\\$ in Łódź'
    """
    letters = []
    for letter in text:
        if letter in _ESCAPES:
            letters.append(_ESCAPES[letter])
        elif ord(letter) < 0x180 and letter.isprintable():
            letters.append(letter)
        else:
            letters.append(f"[U+{ord(letter):04X}]")
    return "".join(letters)


def latex_table(
    rows: Sequence[Mapping[str, str]],
    *,
    caption: str,
    label: str,
    best: Mapping[str, str] | None = None,
) -> str:
    r"""Return a narrow ``table`` with booktabs for a paper, with intervals below their numbers in small type.

    Parameters
    ----------
    rows : sequence of mapping of str to str
        Cells by heading; the first column names the systems.
    caption : str
        Caption as TeX, in which special letters are not escaped.
    label : str
        Label for references to the table.
    best : mapping of str to str, optional
        For each heading, the system whose number is bold.
    """
    headings = list(rows[0])
    blocks = []
    for row in [dict(zip(headings, headings, strict=True)), *rows]:
        lines = []
        for depth, parts in enumerate(zip_longest(*map(_BREAK.split, row.values()), fillvalue="")):
            cells = []
            for heading, part in zip(headings, parts, strict=True):
                if part[:3] in ("p =", "p <"):
                    cell = f"${part}$"
                else:
                    cell = _MINUS.sub("$-$", escape_tex(part))
                if cell and depth:
                    cell = rf"{{\scriptsize {cell}}}"
                elif cell and (best or {}).get(heading) == row[headings[0]]:
                    cell = rf"\textbf{{{cell}}}"
                cells.append(cell)
            lines.append(" & ".join(cells) + r" \\")
        blocks.append("\n".join(lines))
    lines = [
        "% \\usepackage{booktabs}; up to three metrics with intervals fit a column of 3.4 in, more fit table*",
        r"\begin{table}\centering\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{caption}}}\label{{{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}\toprule",
        "\n\\addlinespace[2pt]\n".join(blocks).replace(r"\addlinespace[2pt]", r"\midrule", 1),
        "\\bottomrule\\end{tabular}\n\\end{table}\n",
    ]
    return "\n".join(lines)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return text[: longest - 3] + "..."
