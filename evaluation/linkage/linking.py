"""Linkability in one call: from embeddings, or from scores with their key, to the curve over sizes of the gallery.

What it puts together can be used step by step: `ranks` finds where owners rank, `curve` and `intervals` make curves and
intervals of ranks, `evaluation.reports.linkability` everything that the command reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from evaluation.embeddings import Embeddings
from evaluation.linkage.curve import all_sizes
from evaluation.linkage.intervals import Curve, linkability_curve
from evaluation.linkage.ranks import ranks_from_embeddings, ranks_from_scores
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.work import ALL_CORES, Work

if TYPE_CHECKING:
    from evaluation.linkage.table import TieRule


def linkability(
    enrolled: Embeddings | Scores,
    tested: Embeddings | Key,
    sizes: ArrayLike | None = None,
    *,
    utterances: int | Literal["all"] | None = None,
    ties: TieRule = "shared",
    resampling: Resampling | None = None,
    work: Work = ALL_CORES,
) -> Curve:
    """Return how often the owner of a voice scores highest among N enrolled speakers, for many N.

    Parameters
    ----------
    enrolled, tested : Embeddings and Embeddings, or Scores and Key
        Embeddings of the enrolled speakers and of the trials, compared by cosine; or scores of any kind, each model one
        enrolled speaker, with the key whose target trials say who the owner is.
    sizes : array_like of int of shape (S,), optional
        Sizes N of the gallery, owner included; all from 2 on by default, above 100,000 a thousand alike on a log scale.
    utterances : int or "all", optional
        Of how many utterances a trial is the mean. By default one: of embeddings the first of each speaker, of scores
        each segment, which then is a trial of its own.
    ties : {"shared", "strict", "lenient"}
        What an impostor with the owner's score counts; see `evaluation.linkage.curve`.
    resampling : Resampling, optional
        Of the trial speakers, for the intervals; 1000 draws of seed 0 at 95 % by default, ``Resampling(0)`` for none.
    work : Work
        Who computes; the result does not depend on it.

    Returns
    -------
    Curve
        `sizes`, `values`, `low`, `high`, and `chance`, which is 1 / N.

    Raises
    ------
    DataError
        If the two do not go together, ids or dimensions do not fit, a vector has no direction, or a size is beyond the
        gallery.

    References
    ----------
    .. [1] N. Vauquier et al., "Legally validated evaluation framework for voice anonymization", Interspeech 2025.

    Examples
    --------
    Fifty speakers, and another, noisy utterance of each:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> names = [f"s{number:02d}" for number in range(50)]
    >>> voices = rng.standard_normal((50, 16))
    >>> enrolled = Embeddings(names, names, voices)
    >>> tested = Embeddings([f"{name}-b" for name in names], names, voices + 1.5 * rng.standard_normal((50, 16)))
    >>> curve = linkability(enrolled, tested, [2, 10, 50])
    >>> curve.values.round(2)
    array([0.96, 0.85, 0.66])
    >>> bool((curve.low < curve.values).all() and (curve.values < curve.high).all())
    True
    """
    if isinstance(enrolled, Embeddings) and isinstance(tested, Embeddings):
        number = 1 if utterances is None else None if utterances == "all" else utterances
        ranks = ranks_from_embeddings(enrolled, tested, utterances=number, work=work)
    elif isinstance(enrolled, Scores) and isinstance(tested, Key):
        ranks = ranks_from_scores(enrolled, tested, utterances=utterances)
    else:
        got = f"{type(enrolled).__name__} and {type(tested).__name__}"
        raise DataError(f"expected Embeddings and Embeddings, or Scores and Key, got {got}")
    wanted = all_sizes(ranks.largest_size) if sizes is None else sizes
    return linkability_curve(ranks, wanted, ties=ties, resampling=resampling or Resampling())
