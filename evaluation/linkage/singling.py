"""Singling out: how often an attacker isolates exactly one speaker in a crowd of unknown people.

Conventions
-----------
The attacker knows one enrolled speaker and derives a predicate: the cosine with a conversation exceeds a threshold
[1]_. It is applied to N conversations, one per speaker, and succeeds if exactly one of them fulfils it, whoever that
is. The threshold is such that the predicate should hold for one in N: with M calibration conversations of each of the
same N speakers it lies midway between the M-th and the (M + 1)-th highest of their M N scores. A predicate that holds
for one in N by chance isolates with a probability that tends to exp(-1) = 0.3679 [2]_, so only more than that is a
disclosure.

A conversation is the mean of `utterances` embeddings of one speaker, in the order of the file. The first M + 1 of a
speaker are used, each in turn as the tested one and the others for calibration, in M + 1 folds. Speakers with fewer are
left out, with a note.

With side information, such as sex or region, the predicate also asks that the speaker of the conversation matches the
attacked one [3]_: the crowd is those N' who match, and the predicate should hold for one in N' of them. Then a
predicate that holds by chance isolates with the probability (1 - 1 / N')^(N' - 1): with certainty if only one speaker
matches.

References
----------
.. [1] N. Vauquier et al., "Legally validated evaluation framework for voice anonymization", Interspeech 2025.
.. [2] A. Cohen and K. Nissim, "Towards formalizing the GDPR's notion of singling out", PNAS 117, 2020.
.. [3] The repository pso-geo-voice-privacy, 2026 (predicates with geographic side information).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    Averaging,
    Embeddings,
    check_norms,
    row_norms,
    speaker_vectors,
    to_unit,
    warn_of_enrolled,
)
from evaluation.linkage.curve import mean_interval
from evaluation.trials import factorise, side_of
from evaluation.uncertainty import Interval, Resampling
from spkbase.errors import DataError, counted
from spkbase.progress import progress, verbosely
from spkbase.showing import Tabular, one_line
from spkbase.work import chunk_bounds, one_blas_thread

CHANCE = exp(-1)
MOST_CALIBRATION = 9
REPORTED = (
    "value",
    "low",
    "high",
    "chance",
    "n_predicates",
    "n_crowd",
    "n_calibration",
    "n_crowds",
    "notes",
)
_MOST_ATTACKED = 500  # largest number of attacked speakers; of more, a random subset is drawn
_PREDICATES = 64


@one_line
@dataclass(frozen=True)
class SinglingOut(Tabular):
    """Probability of isolation; see the module.

    Attributes
    ----------
    probability : Interval
        Share of successes, with its interval over the enrolled speakers.
    chance : float
        Probability by chance: exp(-1); with side information see the module.
    n_predicates, n_crowd, n_calibration, n_crowds : int
        Enrolled speakers that were attacked (500 at most); speakers in the crowd; calibration conversations of each;
        number of crowds, 1.
    notes : tuple of str
        Notes on omitted speakers.
    per_predicate : ndarray of float64 of shape (n_predicates,)
        Share of successes of each attacked speaker, in the order of `speakers`.
    speakers : ndarray of str
        Attacked speakers.
    """

    probability: Interval
    chance: float
    n_predicates: int
    n_crowd: int
    n_calibration: int
    n_crowds: int
    notes: tuple[str, ...]
    per_predicate: NDArray[np.float64] = field(repr=False)
    speakers: NDArray[np.object_] = field(repr=False)

    def headline(self) -> str:
        """Return the probability with its interval, and chance."""
        text = "isolated with probability {value:.4f} [{low:.4f}, {high:.4f}], by chance {chance:.4f}: "
        return (text + "{n_predicates} predicates in a crowd of {n_crowd}").format(**self.to_dict())

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each attacked speaker: how often the predicate isolated somebody."""
        return {"speaker": self.speakers, "share": self.per_predicate}

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name, for a report."""
        return self.probability.numbers() | {name: getattr(self, name) for name in REPORTED[3:]}


def isolations(
    calibration: NDArray[np.floating], tested: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return whether exactly one tested conversation fulfils each predicate.

    Parameters
    ----------
    calibration : ndarray of shape (P, N, M)
        Scores of each predicate with M calibration conversations of each of N speakers.
    tested : ndarray of shape (P, N)
        Scores of each predicate with each speaker's tested conversation.

    Returns
    -------
    ndarray of bool of shape (P,)

    Examples
    --------
    >>> isolations(np.array([[[0.9], [0.1], [0.2]]]), np.array([[0.8, 0.3, 0.1]]))
    array([ True])
    """
    n_predicates, _, n_calibration = calibration.shape
    ranked = np.partition(calibration.reshape(n_predicates, -1), -n_calibration - 1, axis=1)
    above = ranked[:, -n_calibration:].min(axis=1)
    threshold = (above + ranked[:, -n_calibration - 1]) / 2
    singled_out: NDArray[np.bool_] = (tested > threshold[:, None]).sum(axis=1) == 1
    return singled_out


@verbosely
@one_blas_thread()
def singling_out(
    enrol: Embeddings,
    trial: Embeddings,
    *,
    utterances: int = 1,
    averaging: Averaging | None = None,
    resampling: Resampling | None = None,
    side: Mapping[str, str] | None = None,
    verbose: bool = True,
) -> SinglingOut:
    """Return how often exactly one speaker of a crowd is isolated.

    Parameters
    ----------
    enrol, trial : Embeddings
        Embeddings of the enrolled speakers, one predicate each, and of the crowd.
    utterances : int
        Number of utterances in a conversation.
    averaging : Averaging, optional
        How embeddings are averaged.
    resampling : Resampling, optional
        Resampling of the attacked speakers for the interval; its seed also draws them. By default that of `Resampling`.
    side : mapping of str to str, optional
        What the attacker knows about each speaker, blank if nothing.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    SinglingOut

    Raises
    ------
    DataError
        If a number is out of range, dimensions differ, or fewer than 2 speakers have enough conversations.
    """
    averaging = averaging or Averaging()
    resampling = resampling or Resampling()
    warn_of_enrolled(enrol, trial)
    gallery = speaker_vectors(enrol, averaging=averaging)
    conversations, crowd = _conversations(trial, utterances, averaging)
    left_out = len(np.unique(trial.speakers)) - len(crowd)
    n_people, n_folds, n_dimensions = conversations.shape
    if gallery.vectors.shape[1] != n_dimensions:
        got = f"{gallery.vectors.shape[1]} and {n_dimensions}"
        raise DataError(
            f"expected the same number of dimensions on both sides, got {got}",
            remedy="use one extractor for both",
        )
    attacked = np.arange(len(gallery.names))
    if len(attacked) > _MOST_ATTACKED:
        rng = np.random.default_rng(np.random.SeedSequence(resampling.seed))
        attacked = np.sort(rng.choice(len(attacked), _MOST_ATTACKED, replace=False))
    matching = np.full((len(attacked), n_people), True)
    by_chance = CHANCE
    if side is not None:
        known = side_of(gallery.names[attacked], side)[:, None]
        others = side_of(crowd, side)
        matching = (known == others) | (known == "") | (others == "")
        sizes = np.maximum(matching.sum(axis=1), 1)
        by_chance = float(np.mean(matching.any(axis=1) * (1 - 1 / sizes) ** (sizes - 1)))
    unit = to_unit(conversations.reshape(-1, n_dimensions))
    shares = np.zeros(len(attacked))
    bounds = chunk_bounds(len(attacked), _PREDICATES)
    for start, stop in progress(bounds, description="singling out", total=len(bounds)):
        rows = attacked[start:stop]
        scores = (to_unit(gallery.vectors[rows], gallery.norms[rows]) @ unit.T).reshape(
            -1, n_people, n_folds
        )
        scores[~matching[start:stop]] = -np.inf
        for fold in range(n_folds):
            shares[start:stop] += isolations(np.delete(scores, fold, axis=2), scores[:, :, fold])
    shares /= n_folds
    notes = []
    if left_out:
        notes.append(
            f"left out: {counted(left_out, 'speaker')} with fewer than {n_folds} conversations"
        )
    if side is not None:
        notes.append(f"{matching.sum(axis=1).mean():.1f} speakers match on average")
    counts = len(attacked), n_people, n_folds - 1, 1
    interval = mean_interval(shares, resampling)
    return SinglingOut(interval, by_chance, *counts, tuple(notes), shares, gallery.names[attacked])


def _conversations(
    trial: Embeddings, utterances: int, averaging: Averaging
) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
    """Return vectors of conversations, shape (speakers, M + 1, D), and the names of the speakers who have enough."""
    if utterances < 1:
        raise DataError(f"expected at least 1 utterance, got {utterances}")
    norms = trial.norms()
    names, codes = factorise(trial.speakers)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=len(names))
    starts = np.cumsum(counts) - counts
    available = counts // utterances
    # the smallest number of any speaker with at least two, but at most ten
    n_folds = min(
        MOST_CALIBRATION + 1, int(available[available >= 2].min(initial=MOST_CALIBRATION + 1))
    )
    used = np.flatnonzero(available >= n_folds)
    if len(used) < 2:
        text = f"expected at least 2 speakers with 2 conversations of {utterances} utterances, got {len(used)}"
        raise DataError(text, remedy="give more utterances of each, or a smaller number")
    rows = order[starts[used][:, None] + np.arange(n_folds * utterances)]
    vectors = np.asarray(trial.vectors[rows.reshape(-1)], np.float64)
    if averaging.mean == "normalised":
        vectors /= norms[rows.reshape(-1)][:, None]
    means = vectors.reshape(len(used), n_folds, utterances, -1).mean(axis=2)
    lengths = row_norms(means.reshape(-1, means.shape[2])).reshape(len(used), -1)
    size = row_norms(vectors).reshape(len(used), -1).max(axis=1)
    check_norms(lengths.min(axis=1), names[used], kind="conversation mean", size=size)
    return means, names[used]
