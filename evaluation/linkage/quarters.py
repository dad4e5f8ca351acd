"""Easy-to-link and hard-to-link speakers: the outer quarters of a linkability per speaker.

Speakers are ordered by their linkability, averaged over gallery sizes; the outer quarters are the easy and the hard
speakers. With one trial each, speakers have the order of their ranks, whatever the sizes and their weights, since at
every size a lower rank is linked more often.

A quarter of n speakers has n / 4 places, but many speakers can be equal, above all the speakers who are always first.
The rule for ties decides about speakers that are equal at the edge of a quarter:

* `nearest`, the default: equal speakers stay together, in or out, whichever brings the set nearer to a quarter; the
  first group is always in, so a set is never empty.
* `include`: every speaker at or beyond the quartile (the published tool); the set can be far larger than a quarter.
* `exclude`: only speakers strictly beyond the quartile; the set can be empty.
* `random`: as many as a quarter, by a draw among the equal ones with a seed.

Where all speakers are equal, nobody is easy or hard, and both sets are empty under every rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import write_text
from spkbase.showing import one_line

TieSets = Literal["nearest", "include", "exclude", "random"]
RULES: tuple[TieSets, ...] = get_args(TieSets)
KINDS = ("easy", "hard")

_DIGITS = 12  # decimals compared: sums in different orders differ beyond them


@one_line
@dataclass(frozen=True)
class DisclosureSets:
    """Easy-to-link and hard-to-link speakers.

    Attributes
    ----------
    easy, hard : frozenset of str
        Their names.
    q1, q3 : float
        Quartiles of the linkability per speaker.
    n_speakers : int
        Number of speakers.
    rule : str
        Rule for ties.
    notes : tuple of str
        Remarks on sets that are far from a quarter, and why.
    """

    easy: frozenset[str]
    hard: frozenset[str]
    q1: float
    q3: float
    n_speakers: int
    rule: TieSets
    notes: tuple[str, ...] = ()


def disclosure_sets(
    linkability: Mapping[str, float], *, rule: TieSets = "nearest", seed: int = 0
) -> DisclosureSets:
    """Return the quarter of the speakers that is linked most often, and the quarter that is linked least often.

    Parameters
    ----------
    linkability : mapping of str to float
        Linkability by speaker, or anything that grows with it; at least 4 speakers.
    rule : {"nearest", "include", "exclude", "random"}
        Rule for equal speakers at the edge; see the module.
    seed : int
        Seed of the rule `random`.

    Raises
    ------
    DataError
        If there are fewer than 4 speakers, a value is not finite, or the rule is unknown.

    Examples
    --------
    >>> found = disclosure_sets({"a": 1.0, "b": 0.7, "c": 0.2, "d": 0.1})
    >>> sorted(found.easy), sorted(found.hard)
    (['a'], ['d'])
    """
    if rule not in RULES:
        raise DataError(f"expected one of the rules for ties {', '.join(RULES)}, got {rule!r}")
    names = sorted(linkability)
    values = np.array([linkability[name] for name in names], np.float64)
    if len(names) < 4:
        raise DataError(f"expected at least 4 speakers to form quarters, got {len(names)}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"expected finite values, got {values[bad[0]]} for {names[bad[0]]!r}")
    values = values.round(_DIGITS)
    q1, q3 = np.quantile(values, [0.25, 0.75]).tolist()
    if values.min() == values.max():
        note = "all speakers are equal: none is easier to link than another"
        return DisclosureSets(frozenset(), frozenset(), q1, q3, len(names), rule, (note,))
    if rule == "exclude":
        is_easy = values > q3
        is_hard = values < q1
    elif rule == "include":
        is_easy = values >= q3
        is_hard = values <= q1
    else:
        order = None
        if rule == "random":
            order = np.random.default_rng(seed).permutation(len(names))
        is_easy = _quarter(-values, order)
        is_hard = _quarter(values, order)
    easy = frozenset(compress(names, is_easy))
    hard = frozenset(compress(names, is_hard))
    return DisclosureSets(
        easy, hard, q1, q3, len(names), rule, _notes_on_sets(easy, hard, len(names))
    )


def _notes_on_sets(easy: frozenset[str], hard: frozenset[str], n_speakers: int) -> tuple[str, ...]:
    notes = []
    for kind, members in (("easy", easy), ("hard", hard)):
        if abs(len(members) / n_speakers - 0.25) > 0.05 and abs(len(members) - n_speakers / 4) > 1:
            notes.append(
                f"{len(members)} of {n_speakers} speakers are {kind} to link, not a quarter: many are equal"
            )
    if easy & hard:
        notes.append(
            f"{len(easy & hard)} speakers are in both sets: they are equal at both quartiles"
        )
    return tuple(notes)


def write_lists(folder: str | Path, sets: DisclosureSets, *, suffix: str = "") -> dict[str, Path]:
    """Write ``easy_speakers<suffix>.txt`` and ``hard_speakers<suffix>.txt``: a header, then one speaker per line.

    Parameters
    ----------
    folder : path
        Folder of the files.
    sets : DisclosureSets
        The sets to write.
    suffix : str
        Suffix of the files' names, such as ``_L1``.

    Returns
    -------
    dict of str to Path
        The files, under ``easy`` and ``hard``.
    """
    paths = {}
    for kind, members, quartile in (
        ("easy", sets.easy, f"Q3 {sets.q3:.6g}"),
        ("hard", sets.hard, f"Q1 {sets.q1:.6g}"),
    ):
        head = f"# {kind} to link: {len(members)} of {sets.n_speakers} speakers, {quartile}, ties {sets.rule}"
        paths[kind] = Path(folder) / f"{kind}_speakers{suffix}.txt"
        write_text(paths[kind], "\n".join([head, *sorted(members)]) + "\n")
    return paths


def _quarter(values: NDArray[np.float64], order: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Return the quarter with the lowest values; equal values stay together or follow a given order."""
    if order is not None:
        return np.isin(
            np.arange(len(values)), np.lexsort((order, values))[: round(len(values) / 4)]
        )
    steps, counts = np.unique(values, return_counts=True)
    # of two sizes equally near, the lower
    chosen: NDArray[np.bool_] = (
        values <= steps[np.argmin(np.abs(np.cumsum(counts) - len(values) / 4))]
    )
    return chosen
