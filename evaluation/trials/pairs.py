"""Arithmetic of id pairs: ids become codes, a pair of codes one number, and lists are joined by these numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from spkbase.errors import DataError

# Up to this many cells a table over all pairs is quicker than a sort, and small (4 bytes a cell).
_MAX_CELLS = 1 << 25


def find_codes(wanted: np.ndarray, present: np.ndarray, n_cells: int) -> np.ndarray:
    """Return for each wanted pair its place among the distinct ones that are present, or -1.

    Parameters
    ----------
    wanted, present : ndarray of int64 of shapes (N,) and (K,)
        Pair codes below `n_cells`; a wanted -1 is found nowhere.
    n_cells : int
        Number of possible pairs.
    """
    if n_cells <= max(_MAX_CELLS, 8 * len(present)):
        table = np.full(n_cells + 1, -1, np.int32)  # the last cell serves the wanted code -1
        table[present] = np.arange(len(present), dtype=np.int32)
        return table[wanted]
    if not len(present):
        return np.full(len(wanted), -1)
    # both sorted: a search for neighbours one after the other is 30 times quicker than in random order
    order, wanted_order = np.argsort(present), np.argsort(wanted)
    present, wanted = present[order], wanted[wanted_order]
    place = np.minimum(np.searchsorted(present, wanted), len(present) - 1)
    rows = np.empty(len(wanted), np.int64)
    rows[wanted_order] = np.where(present[place] == wanted, order[place], -1)
    return rows


def find_repeat(models: np.ndarray, segments: np.ndarray, n_segments: int, n_models: int) -> tuple[int, int] | None:
    """Find the first trial that repeats an earlier one: (row of the earlier one, row of the repetition), or None."""
    pairs = pair_codes(models, segments, n_segments)
    if n_models * n_segments <= max(_MAX_CELLS, 8 * len(pairs)):
        seen = np.zeros(n_models * n_segments, bool)
        seen[pairs] = True
        distinct = np.count_nonzero(seen) == len(pairs)
    else:
        in_order = np.sort(pairs)
        distinct = bool((in_order[1:] != in_order[:-1]).all())
    if distinct:
        return None
    order = np.argsort(pairs, kind="stable")
    repeats = order[1:][pairs[order[1:]] == pairs[order[:-1]]]
    later = int(repeats.min())
    return int(np.flatnonzero(pairs == pairs[later])[0]), later


def sorted_table(ids: Sequence[str], codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort a table of ids by code point and renumber the codes into it."""
    order = sorted(range(len(ids)), key=ids.__getitem__)
    rank = np.empty(len(ids), np.int32)
    rank[order] = np.arange(len(ids), dtype=np.int32)
    return np.array([ids[place] for place in order], dtype=object), rank[codes]


def factorise(ids: Sequence[str] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted table of the distinct ids, and the code of each id."""
    if isinstance(ids, np.ndarray):
        ids = ids.tolist()
    table: defaultdict[str, int] = defaultdict()
    table.default_factory = table.__len__  # a new id gets the next number
    codes = np.fromiter(map(table.__getitem__, ids), np.int32, count=len(ids))
    return sorted_table(checked_ids(np.array(list(table), dtype=object), "ids").tolist(), codes)


def checked_ids(ids: np.ndarray, name: str) -> np.ndarray:
    """Check a table: distinct strings, none empty."""
    ids = np.asarray(ids, dtype=object)
    if ids.ndim != 1:
        raise DataError(f"expected {name} of one dimension, got shape {ids.shape}")
    for identity in ids:
        if not isinstance(identity, str) or not identity:
            raise DataError(f"expected {name} to be strings that are not empty, got {identity!r}")
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        repeated = next(identity for identity in ids if identity in seen or seen.add(identity))  # type: ignore[func-returns-value]
        raise DataError(f"{name}: {repeated!r} is repeated", remedy="each id may stand in the table once")
    return ids


def checked_codes(codes: np.ndarray, name: str, n_ids: int) -> np.ndarray:
    """Check codes into a table of `n_ids`, and give them as int32."""
    codes = np.asarray(codes)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise DataError(f"expected {name} to be integers of shape (N,), got {codes.dtype} of shape {codes.shape}")
    if codes.size and not (codes.min() >= 0 and codes.max() < n_ids):
        raise DataError(f"expected {name} from 0 to {n_ids - 1}, got {codes.min()} to {codes.max()}")
    return codes.astype(np.int32, copy=False)


def pair_codes(models: np.ndarray, segments: np.ndarray, n_segments: int) -> np.ndarray:
    """Make one number of each pair of codes."""
    return models.astype(np.int64) * n_segments + segments


def recode(ids: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the place of each id in another table, or -1."""
    if len(ids) == len(table) and ids.tolist() == table.tolist():
        return np.arange(len(ids), dtype=np.int32)
    places = {identity: place for place, identity in enumerate(table.tolist())}
    return np.array([places.get(identity, -1) for identity in ids.tolist()], np.int32)
