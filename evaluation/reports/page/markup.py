"""HTML from Python calls. Text is escaped unless it is `Html` already: no name in a result can inject markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VOID = frozenset({"br", "col", "hr", "meta"})


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """Build an element.

    Parameters
    ----------
    name : str
        Name of the element.
    *children : Html, str, number, None, or iterables of them
        What it holds; everything but `Html` is escaped, None is left out.
    **attributes : str, number, bool, None
        ``class_`` stands for ``class``, and ``aria_label`` for ``aria-label``. True gives an attribute without a value,
        None and False give none.

    Examples
    --------
    >>> element("p", "a < b ", element("b", "now"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b <b>now</b></p>'
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[Any], between: str = "") -> Html:
    """Put pieces one after the other, escaped where they are not `Html`."""
    return Html(between.join(text(child) for child in children if child is not None))


def text(value: Any) -> Html:
    """Escape a value, unless it is `Html` already; pieces of an iterable are joined."""
    if isinstance(value, Html):
        return value
    if not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
        return join(value)
    return Html(escape(printable(str(value)), quote=True))


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(printable(str(value)), quote=True)}"'


def printable(value: str) -> str:
    """Replace what neither HTML nor SVG can hold: control characters and halves of surrogate pairs."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
