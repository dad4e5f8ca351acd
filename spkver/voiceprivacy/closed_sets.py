"""Closed sets: what an attacker gets who knows that the speaker is one of the enrolled.

Two numbers: the equal error rate of scores that are centred over the enrolled
(`evaluation.score_maps.closed_set_scores`), and how often the speaker of an utterance is first among all enrolled. Both
need a trial list that is a full cross.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evaluation.linkage import Ranks, all_draws, linkability_over_draws
from evaluation.metrics import eer_of
from evaluation.score_maps import closed_set_scores
from evaluation.trials import Key, Scores, find_rows
from evaluation.uncertainty import Resampling, minimum_over_attackers, sample_from
from spkbase.errors import DataError

Json = dict[str, Any]

MOST_REPLICATES = 300  # of the EER's interval, whose deviation they give within some 4 %


def closed_set_of(
    draws: Sequence[Scores],
    key: Key,
    speakers: Mapping[str, str],
    tables: Sequence[Ranks] | None,
    resampling: Resampling,
) -> tuple[Json | None, dict[str, str]]:
    """Return the numbers of a closed set, means over draws, and notes about them.

    Parameters
    ----------
    draws : sequence of Scores
        Of the same trials.
    key : Key
    speakers : mapping of str to str
        Of the segments.
    tables : sequence of Ranks, or None
        The rank of each owner in each draw, where the list allows it.
    resampling : Resampling

    Returns
    -------
    numbers : dict or None
        ``eer``, its upper end at a level that holds for the smallest of several attackers
        (`evaluation.uncertainty.minimum`), and ``identification``, each with value, low and high; ``candidates``, least
        and most; ``chance``; and
        both values of each draw. None where the list is no full cross.
    notes : dict of str to str
    """
    if tables is None:
        return None, {"closed_set": "not given: the trial list is not a full cross of models and segments"}
    try:
        centred = [closed_set_scores(_of_key(scores, key)) for scores in draws]
    except DataError as error:
        return None, {"closed_set": f"not given: {error.text}"}
    samples = [sample_from(scores, key, segment_speakers=speakers, by_trial=True)[0] for scores in centred]
    rates = [eer_of(sample.runs()) for sample in samples]
    ends: Json = {}
    if resampling.replicates:
        fewer = replace(resampling, replicates=min(resampling.replicates, MOST_REPLICATES))
        ends = _ends(centred, key, speakers, fewer)
    shares = [float(np.mean(first_among_all(ranks))) for ranks in tables]
    candidates = tables[0].impostors + 1
    found = {
        "eer": {"value": sum(rates) / len(rates), **ends},
        "identification": _identification(tables, resampling),
        "candidates": [int(candidates.min()), int(candidates.max())],
        "chance": float(np.mean(1 / candidates)),
        "draws": [{"eer": rate, "identification": share} for rate, share in zip(rates, shares, strict=True)],
    }
    return found, {}


def first_among_all(ranks: Ranks) -> np.ndarray:
    """Return the probability of each row that its owner is first among all it was scored against; ties are shared.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Examples
    --------
    >>> first_among_all(Ranks.of([0, 2, 0], [0, 0, 1], 9)).tolist()
    [1.0, 0.0, 0.5]
    """
    return np.where(ranks.beaters == 0, 1 / (1 + ranks.ties), 0.0)


def _identification(tables: Sequence[Ranks], resampling: Resampling) -> Json:
    """Share of utterances whose speaker is first among all enrolled, with its interval."""
    largest = int(all_draws(tables).impostors.max())
    # of its whole gallery a row needs to know whether it is beaten: all may have one size then
    whole = [replace(ranks, impostors=np.full(len(ranks), largest)) for ranks in tables]
    curve = linkability_over_draws(whole, np.array([largest + 1]), resampling=resampling)
    return {"value": float(curve.values[0]), "low": float(curve.low[0]), "high": float(curve.high[0])}


def _ends(centred: Sequence[Scores], key: Key, speakers: Mapping[str, str], resampling: Resampling) -> Json:
    try:
        samples = [sample_from(scores, key, segment_speakers=speakers, ids_are_speakers=True)[0] for scores in centred]
        found = minimum_over_attackers({"": samples}, resampling=resampling, permutations=0).interval
    except DataError:  # fewer than two speakers
        return {}
    return {"low": found.low, "high": found.high}


def _of_key(scores: Scores, key: Key) -> Scores:
    """The scores of the trials of a key alone."""
    return scores.subset(find_rows(key, scores))
