"""Tables of distinct ids, and codes of trials into them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from evaluation.trials.columns import TrialError
from spkbase.errors import DataError


def factorise(ids: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of the distinct ids, sorted by code point, and the code of each id.

    Parameters
    ----------
    ids : sequence of str, ndarray of str, or Categorical of pandas, of length N
    """
    places: defaultdict[str, int] = defaultdict()
    places.default_factory = places.__len__  # a new id gets the next number
    if hasattr(ids, "categories"):
        places.update(zip(ids.categories.tolist(), range(len(ids.categories)), strict=True))
        codes = np.asarray(ids.codes)
    else:
        listed = ids.tolist() if isinstance(ids, np.ndarray) else ids
        codes = np.fromiter(map(places.__getitem__, listed), np.int32, count=len(ids))
    for identity, number in places.items():
        if not isinstance(identity, str) or not identity:
            text = f"expected ids to be strings that are not empty, got {identity!r}"
            raise TrialError(text, np.flatnonzero(codes == number))
    table = sorted(places)
    rank = np.argsort([places[identity] for identity in table]).astype(np.int32)
    return np.array([*map(str, table)], dtype=object), rank[codes]


def checked_ids(ids: np.ndarray, name: str) -> np.ndarray:
    """Check a table: ids must be distinct, non-empty strings."""
    ids = np.asarray(ids, dtype=object)
    if ids.ndim != 1:
        raise DataError(f"expected {name} of one dimension, got shape {ids.shape}")
    seen = set[str]()
    for identity in ids.tolist():
        if not isinstance(identity, str) or not identity:
            raise DataError(f"expected {name} to be strings that are not empty, got {identity!r}")
        if identity in seen:
            raise DataError(
                f"{name}: {identity!r} is repeated", remedy="each id may occur once in the table"
            )
        seen.add(identity)
    return ids


def recode(ids: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the position of each id in another table, or -1."""
    places = {identity: row for row, identity in enumerate(table.tolist())}
    return np.array([places.get(identity, -1) for identity in ids.tolist()], np.int32)
