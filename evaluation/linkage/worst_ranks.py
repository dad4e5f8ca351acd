"""Worst case of scores with their key: what `evaluation.metrics.worst_case` says, with the ranks of owners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.disclosure import rank_shares
from evaluation.linkage.ranks import ranks_from_scores
from evaluation.linkage.table import Ranks
from evaluation.metrics import Evidence, WorstCase, rank_evidence, sort_scores, worst_case_of
from evaluation.trials import Key, Scores, split_scores
from spkbase.errors import DataError


def rank_evidence_of(ranks: Ranks) -> Evidence:
    """Return the strongest evidence of ranks; see `evaluation.metrics.rank_llrs`.

    Galleries of several sizes, as of women and of men, are looked at one by one, since who attacks knows the size.
    """
    sizes = np.unique(ranks.impostors).tolist()
    parts = [_subset(ranks, ranks.impostors == size) for size in sizes]
    found = [rank_evidence(rank_shares(part), len(part)) for part in parts if part.largest_size > 1]
    if not found:
        return Evidence(float("nan"), "not given: a rank needs impostors")
    return max(found, key=lambda evidence: evidence.llr)


def _subset(ranks: Ranks, rows: NDArray[np.bool_]) -> Ranks:
    counts = ranks.beaters[rows], ranks.ties[rows], ranks.impostors[rows]
    return Ranks(ranks.speakers[rows], *counts, ranks.mated[rows])


def worst_case_from(scores: Scores, key: Key, *, missing: str = "error") -> WorstCase:
    """Return the strongest evidence about one person in any trial, by four readings.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does; each model is one enrolled speaker.
    missing : {"error", "drop"}
        What to do with trials of the key that have no score, and scores of unknown ids.

    Returns
    -------
    WorstCase
        The reading by ranks is left out, with a note, where the trials are no gallery of one size.

    Raises
    ------
    DataError
        As `split_scores`, or if a class is empty.
    """
    choice = "drop" if missing == "drop" else "error"
    target, nontarget = split_scores(scores, key, missing=choice, unknown=choice)  # type: ignore[arg-type]
    try:
        ranks = rank_evidence_of(ranks_from_scores(scores, key, missing=choice))  # type: ignore[arg-type]
    except DataError as error:
        ranks = Evidence(float("nan"), f"not given: {error.text}")
    return worst_case_of(sort_scores(target, nontarget), ranks)
