"""Means over draws of what stands in a report: numbers, groups of numbers, lists of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def mean_of(values: Sequence[Any]) -> Any:
    """Return the mean of values of one form, number by number.

    Parameters
    ----------
    values : sequence
        Numbers, or mappings and lists of them, one a draw; what is alike in all stays as it is.

    Returns
    -------
    object
        Of the same form. Where a value is missing in one draw it is missing; a truth holds where it holds in all; of
        texts that differ the first stands.

    Examples
    --------
    >>> mean_of([{"eer": 0.1, "tag": "A", "n": 3}, {"eer": 0.3, "tag": "B", "n": 3}])
    {'eer': 0.2, 'tag': 'A', 'n': 3}
    """
    first = values[0]
    if isinstance(first, Mapping):
        return {name: mean_of([value[name] for value in values]) for name in first}
    if isinstance(first, list):
        return [mean_of(list(items)) for items in zip(*values, strict=True)]
    if all(value == first for value in values[1:]):
        return first
    if any(value is None for value in values):
        return None
    if isinstance(first, bool):
        return all(values)
    return first if isinstance(first, str) else sum(values) / len(values)


def shared_notes(notes: Mapping[int, Mapping[str, str]]) -> dict[str, str]:
    """Return the notes of all draws, those of some draws alone with their numbers.

    Examples
    --------
    >>> shared_notes({1: {"d_sys": "few bins"}, 2: {"d_sys": "few bins", "cllr": "infinite"}})
    {'d_sys': 'few bins', 'cllr': 'in draw 2: infinite'}
    """
    found: dict[str, str] = {}
    for name in dict.fromkeys(name for of_draw in notes.values() for name in of_draw):
        texts: dict[str, list[int]] = {}
        for number, of_draw in notes.items():
            if name in of_draw:
                texts.setdefault(of_draw[name], []).append(number)
        parts = [
            text if len(numbers) == len(notes) else f"in draw {' and '.join(map(str, numbers))}: {text}"
            for text, numbers in texts.items()
        ]
        found[name] = "; ".join(parts)
    return found
