"""Singling out: how often an attacker isolates exactly one speaker of a crowd without knowing who is in it.

Conventions
-----------
The attacker knows one enrolled speaker and makes of it a predicate: the cosine with a conversation exceeds a threshold
[1]_. It is applied to N conversations, one a speaker, and succeeds when exactly one of them fulfils it, whoever that
is. The threshold is such that the predicate should hold for one in N: with M calibration conversations of each of the
same N speakers it lies midway between the M-th and the (M + 1)-th highest of their M N scores. A predicate that holds
for one in N by chance isolates with a probability that tends to exp(-1) = 0.3679 [2]_, so only more than that is a
disclosure.

A conversation is the mean of `utterances` embeddings of one speaker, in the order of the file. The first M + 1 of a
speaker are used, each in turn as the tested one and the others for calibration, so M + 1 folds. Speakers that have
fewer are left out, with a note.

References
----------
.. [1] N. Vauquier et al., "Legally validated evaluation framework for voice anonymization", Interspeech 2025.
.. [2] A. Cohen and K. Nissim, "Towards formalizing the GDPR's notion of singling out", PNAS 117, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    Averaging,
    Embeddings,
    SpeakerVectors,
    check_norms,
    row_norms,
    speaker_vectors,
    to_unit,
)
from evaluation.linkage.curve import mean_interval
from evaluation.trials import factorise
from evaluation.uncertainty import Interval, Resampling
from spkbase.errors import DataError
from spkbase.showing import Tabular, one_line
from spkbase.work import chunk_bounds, one_blas_thread

CHANCE = exp(-1)
MOST_CALIBRATION = 9
REPORTED = ("value", "low", "high", "chance", "n_predicates", "n_crowd", "n_calibration", "n_crowds", "notes")
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
        exp(-1).
    n_predicates, n_crowd, n_calibration, n_crowds : int
        Enrolled speakers that were attacked; speakers in a crowd; calibration conversations of each; crowds drawn.
    notes : tuple of str
        Who was left out.
    per_predicate : ndarray of float64 of shape (n_predicates,)
        Share of successes of each attacked speaker, by `speakers`.
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

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each attacked speaker: how often the predicate isolated somebody."""
        return {"speaker": self.speakers, "share": self.per_predicate}

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name, for a report."""
        return self.probability.numbers() | {name: getattr(self, name) for name in REPORTED[3:]}


@dataclass(frozen=True)
class Crowds:
    """Who is attacked, and in which crowds.

    Attributes
    ----------
    size : int, optional
        Speakers in a crowd; all that have enough conversations by default.
    number : int
        Number of crowds to draw where they are smaller than all.
    calibration : int, optional
        Calibration conversations of each speaker; by default what all speakers with two conversations have, at most 9.
    predicates : int, optional
        Number of enrolled speakers to attack, drawn by the seed; None for all of them.
    """

    size: int | None = None
    number: int = 5
    calibration: int | None = None
    predicates: int | None = 500


def isolations(calibration: NDArray[np.floating], tested: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return for each predicate whether exactly one tested conversation fulfils it.

    Parameters
    ----------
    calibration : ndarray of shape (P, N, M)
        Scores of each predicate with M calibration conversations of each of N speakers.
    tested : ndarray of shape (P, N)
        Scores with the tested conversation of each.

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
    return (tested > threshold[:, None]).sum(axis=1) == 1


@one_blas_thread()
def singling_out(
    enrol: Embeddings,
    trial: Embeddings,
    *,
    utterances: int = 1,
    averaging: Averaging | None = None,
    crowds: Crowds | None = None,
    resampling: Resampling | None = None,
) -> SinglingOut:
    """Return how often exactly one speaker of a crowd is isolated.

    Parameters
    ----------
    enrol, trial : Embeddings
        Of the enrolled speakers, one predicate each, and of the crowd.
    utterances : int
        Number of utterances in a conversation.
    averaging : Averaging, optional
        How means are made.
    crowds : Crowds, optional
        Who is attacked, and in which crowds; that of `Crowds` by default.
    resampling : Resampling, optional
        Of the attacked speakers, for the interval; its seed is that of the crowds too. That of `Resampling` by default.

    Returns
    -------
    SinglingOut

    Raises
    ------
    DataError
        If a number is out of range, dimensions differ, or fewer than 2 speakers have enough conversations.
    """
    averaging, crowds, resampling = averaging or Averaging(), crowds or Crowds(), resampling or Resampling()
    rng = np.random.default_rng(np.random.SeedSequence(resampling.seed))
    gallery = speaker_vectors(enrol, averaging=averaging)
    conversations, left_out = _conversations(trial, utterances, crowds.calibration, averaging)
    n_people, n_folds, n_dimensions = conversations.shape
    if gallery.vectors.shape[1] != n_dimensions:
        got = f"{gallery.vectors.shape[1]} and {n_dimensions}"
        raise DataError(f"expected as many dimensions on both sides, got {got}", remedy="use one extractor for both")
    size, predicates = n_people if crowds.size is None else crowds.size, crowds.predicates
    if not 2 <= size <= n_people or crowds.number < 1 or (predicates is not None and predicates < 1):
        raise DataError(f"expected crowds of 2 to {n_people} speakers, and at least 1 crowd and 1 predicate")
    attacked = np.arange(len(gallery.names))
    if predicates is not None and predicates < len(attacked):
        attacked = np.sort(rng.choice(len(attacked), predicates, replace=False))
    groups = [np.arange(n_people)]
    if size < n_people:
        groups = [rng.permutation(n_people)[:size] for _ in range(crowds.number)]
    shares = _shares(gallery, attacked, conversations, groups)
    counts = len(attacked), size, n_folds - 1, len(groups)
    notes = (f"{left_out} speakers with fewer than {n_folds} conversations left out",) if left_out else ()
    probability = mean_interval(shares, resampling)
    return SinglingOut(probability, CHANCE, *counts, notes, shares, gallery.names[attacked])


def _shares(
    gallery: SpeakerVectors, attacked: NDArray[np.int64], conversations: NDArray[np.float64], groups: list[NDArray]
) -> NDArray[np.float64]:
    """Share of successes of each attacked speaker over groups and folds."""
    n_people, n_folds, n_dimensions = conversations.shape
    unit = to_unit(conversations.reshape(-1, n_dimensions))
    shares = np.zeros(len(attacked))
    for start, stop in chunk_bounds(len(attacked), _PREDICATES):
        rows = attacked[start:stop]
        scores = (to_unit(gallery.vectors[rows], gallery.norms[rows]) @ unit.T).reshape(-1, n_people, n_folds)
        for group in groups:
            for fold in range(n_folds):
                some = scores[:, group]
                shares[start:stop] += isolations(np.delete(some, fold, axis=2), some[:, :, fold])
    return shares / (len(groups) * n_folds)


def _conversations(
    trial: Embeddings, utterances: int, calibration: int | None, averaging: Averaging
) -> tuple[NDArray[np.float64], int]:
    """Vectors of conversations, shape (speakers, M + 1, D), and how many speakers have too few."""
    if utterances < 1 or (calibration is not None and calibration < 1):
        raise DataError("expected at least 1 utterance and 1 calibration conversation")
    norms = trial.norms()
    names, codes = factorise(trial.speakers)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=len(names))
    starts, available = np.cumsum(counts) - counts, counts // utterances
    enough = available[available >= 2]
    if calibration is None:
        calibration = min(MOST_CALIBRATION, int(enough.min()) - 1) if len(enough) else 1
    used = np.flatnonzero(available >= calibration + 1)
    if len(used) < 2:
        text = f"expected at least 2 speakers with {calibration + 1} conversations of {utterances} utterances"
        raise DataError(f"{text}, got {len(used)}", remedy="give more utterances of each, or a smaller number")
    rows = order[starts[used][:, None] + np.arange((calibration + 1) * utterances)]
    vectors = np.asarray(trial.vectors[rows.reshape(-1)], np.float64)
    if averaging.mean == "normalised":
        vectors /= norms[rows.reshape(-1)][:, None]
    means = vectors.reshape(len(used), calibration + 1, utterances, -1).mean(axis=2)
    lengths = row_norms(means.reshape(-1, means.shape[2])).reshape(len(used), -1)
    check_norms(lengths.min(axis=1), names[used], what="conversation mean")
    return means, len(names) - len(used)
