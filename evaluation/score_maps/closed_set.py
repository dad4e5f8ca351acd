"""Scores of an attacker who knows that the speaker is one of the enrolled: each segment's scores are centred over them.

    c(m, s) = score(m, s) - mean over the enrolled m' of score(m', s)

What a segment scores against everybody alike (a bad channel, a voice like many) says nothing of which of the enrolled
it is, and goes out; their order stays. It is t-norm with the enrolled as the cohort, without its division: deviations
of few models are unsure.

Every segment must have been scored against the same models: the list is a full cross of models and segments, or falls
into *blocks* that are, such as one of each sex, whose means are taken apart.

References
----------
.. [1] R. Auckenthaler et al., "Score normalization for text-independent speaker verification systems", Digital Signal
   Processing 10, 2000.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores, Trials
from spkbase.errors import DataError


def closed_set_scores(scores: Scores) -> Scores:
    """Centre the scores of each segment over the models that it was scored against.

    Parameters
    ----------
    scores : Scores
        A full cross of models and segments, or blocks that are one, see `enrolled_blocks`; finite.

    Returns
    -------
    Scores
        The same trials in the same order.

    Raises
    ------
    DataError
        If the list is no full cross, a segment has one model alone, or a score is infinite.

    Examples
    --------
    >>> closed_set_scores(Scores.from_ids(["a", "b", "a", "b"], ["s", "s", "t", "t"], [4.0, 2.0, 0.0, 5.0])).values
    array([ 1. , -1. , -2.5,  2.5])
    """
    enrolled_blocks(scores)
    counts = np.bincount(scores.segments, minlength=len(scores.segment_ids))
    if (alone := int((counts[scores.segments] == 1).sum())) > 0:
        text = f"{alone} segments were scored against one model alone: there is nobody to compare it with"
        raise DataError(text, remedy="a closed set has two speakers or more")
    if not np.isfinite(scores.values).all():
        raise DataError("infinite scores have no mean", remedy="give finite scores")
    sums = np.bincount(scores.segments, scores.values, len(scores.segment_ids))
    return replace(scores, values=scores.values - (sums / np.maximum(counts, 1))[scores.segments])


def enrolled_blocks(trials: Trials) -> NDArray[np.int64]:
    """Return the block of each trial: segments of a block were scored against the same models, others against others.

    Parameters
    ----------
    trials : Trials
        Pairs without repeats; a full cross is one block.

    Returns
    -------
    ndarray of int64 of shape (N,)
        Blocks are numbered from 0 in the order of their first model's code.

    Raises
    ------
    DataError
        If some segments share a part of their models: the list is no full cross, nor are its blocks.

    Examples
    --------
    >>> enrolled_blocks(Trials.from_ids(["a", "b", "c", "c"], ["s", "s", "t", "u"])).tolist()
    [0, 0, 1, 1]
    """
    lowest = np.full(len(trials.segment_ids), len(trials.model_ids))
    np.minimum.at(lowest, trials.segments, trials.models)
    labels, blocks = np.unique(lowest[trials.segments], return_inverse=True)
    blocks = blocks.reshape(-1).astype(np.int64)
    n_models, n_segments = (
        np.bincount(np.unique(np.stack([blocks, codes]), axis=1)[0], minlength=len(labels))
        for codes in (trials.models, trials.segments)
    )
    whole = np.array_equal(n_models * n_segments, np.bincount(blocks, minlength=len(labels)))
    if not whole or n_models.sum() != len(np.unique(trials.models)):  # some model is in two blocks
        text = "the trial list is no full cross of models and segments, nor does it fall into parts that are"
        raise DataError(text, remedy="score every segment against every model (of its sex)")
    return blocks
