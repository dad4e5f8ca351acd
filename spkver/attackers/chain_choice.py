"""Which backend an attacker by vectors takes: the simplest chain that no other beats on background speakers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.metrics import cllr, eer
from evaluation.score_maps import apply_affine, train_nonnegative
from evaluation.trials import Key
from spkbase.errors import ConfigError, DataError
from spkbase.runs import resumed_map
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.backend import format_chain, parse_chain, train_chain

Json = Any

SHRINK, PRIOR = 0.1, 100
"""Share of shrinkage of covariances, and weight of a PLDA's prior: what keeps them of use where vectors are few."""

ADAPTED_COSINE, SINGLE_TEST_COSINE = "adapted_cosine", "single_test_cosine"
"""The scorers of those that adapt to a whole list, and to its models alone: `spkver.backend.adapted_cosine_scores`."""

_WCCN, _WHITEN = f"wccn: {SHRINK}", f"whiten: {{shrink: {SHRINK}}}"
_RANKS = (50, 100, 150)
_RIDGE = 0.01  # of the calibration that gives the Cllr: folds without an error have none that is finite
_COHORT = 20  # speakers that an adaptive cohort needs


@one_line
@dataclass(frozen=True, eq=False)
class FoldVectors:
    """Vectors of a fold: see `spkver.attackers.Fold`.

    Attributes
    ----------
    training, enrolled, tested : Embeddings
    key : Key
    """

    training: Embeddings
    enrolled: Embeddings
    tested: Embeddings
    key: Key


def simplest_of_best(errors: NDArray[np.floating], *, resolution: float = 0.0) -> int:
    """Return the first of some systems that is not worse than the best by more than one standard error.

    Of system s in fold k with error e[s, k], b the system of the least mean error (the first of equals), the mean over
    folds of d[k] = e[s, k] - e[b, k] is compared with std(d) / sqrt(K), std with K - 1, or with `resolution` where that
    is more.

    Parameters
    ----------
    errors : ndarray of shape (S, K)
        From the simplest system to the most complex; NaN where one could not be trained.
    resolution : float
        What a single error more or less changes.

    References
    ----------
    .. [1] L. Breiman et al., "Classification and Regression Trees", 1984, section 3.4.3 (the rule of one standard
       error; here of paired differences).

    Examples
    --------
    >>> simplest_of_best(np.array([[0.21, 0.20, 0.19], [0.11, 0.12, 0.10], [0.10, 0.12, 0.11], [0.5, np.nan, 0.1]]))
    1
    >>> errors = np.array([[0.004, 0.003, 0.004], [0.0, 0.0, 0.0]])
    >>> simplest_of_best(errors), simplest_of_best(errors, resolution=0.005)
    (1, 0)
    """
    means = np.where(np.isfinite(errors).all(axis=1), errors.mean(axis=1), np.inf)
    differences = errors - errors[int(np.argmin(means))]
    n_folds = errors.shape[1]
    spread = differences.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(errors))
    # both sides are sums of few numbers: equal ones may differ in the last bits
    allowed = np.maximum(spread, resolution) * (1 + 1e-9) + 1e-12
    return int(np.flatnonzero(np.isfinite(means) & (differences.mean(axis=1) <= allowed))[0])


def standard_chains(dimension: int, n_speakers: int, most_vectors: int) -> list[str]:
    """Return the chains to choose from where none are named, from the simplest on; see docs/backends.md.

    Parameters
    ----------
    dimension : int
        Of the vectors.
    n_speakers : int
        That a chain is trained on in the smallest fold: LDA's ranks are below it.
    most_vectors : int
        Of a speaker; with one, what learns from how they vary is left out.

    Examples
    --------
    >>> standard_chains(192, 3, 1)
    ['cosine', 'centre', '[centre, whiten: {shrink: 0.1}, length]']
    """
    chains = ["cosine", "centre"]
    adaptive = f"snorm: {min(300, n_speakers // 2)}" if n_speakers >= _COHORT else ""
    chains += [f"[centre, {adaptive}]"] if adaptive else []
    if most_vectors > 1:
        chains += [f"[centre, length, {_WCCN}]"]
    chains += [f"[centre, {_WHITEN}, length]"]
    if most_vectors < 2 or n_speakers < 2:
        return chains
    lda = _discriminants(dimension, n_speakers)
    plda = f"plda: {{prior: {PRIOR}}}"
    chains += [f"[centre, length, {step}]" for step in lda]
    chains += [
        f"[centre, length, {plda}]",
        f"[centre, {_WHITEN}, length, {plda}]",
        f"[centre, length, {lda[-1]}, {plda}]",
    ]
    if adaptive:
        chains += [f"[centre, length, {_WCCN}, {adaptive}]", f"[centre, length, {plda}, {adaptive}]"]
    return chains


def adapted_chains(scorer: str, dimension: int, n_speakers: int, most_vectors: int) -> list[str]:
    """Return the chains to choose from that end in a scorer that adapts; the others as for `standard_chains`.

    Examples
    --------
    >>> adapted_chains(ADAPTED_COSINE, 192, 3, 1)
    ['adapted_cosine', '[centre, whiten: {shrink: 0.1}, length, adapted_cosine]']
    """
    maps = [f"{_WHITEN}, length"]
    if most_vectors > 1:
        maps = [f"length, {_WCCN}", *maps]
        maps += [f"length, {step}" for step in _discriminants(dimension, n_speakers)] if n_speakers > 1 else []
    return [scorer, *(f"[centre, {steps}, {scorer}]" for steps in maps)]


def _discriminants(dimension: int, n_speakers: int) -> list[str]:
    most = min(dimension, n_speakers - 1)
    ranks = [rank for rank in _RANKS if rank <= most] or [most]
    return [f"lda: {{rank: {rank}, shrink: {SHRINK}}}, length" for rank in ranks]


@one_blas_thread()
def judge_chain(chain: str, folds: Sequence[FoldVectors], seed: int = 0) -> Json:
    """Return how a chain does in each fold.

    Returns
    -------
    dict
        `chain`; `eer` and `cllr`, one a fold (Cllr in bits, of scores that are calibrated on the other folds; None for
        a single fold), and `no_slope`, the numbers of the folds where this calibration would have a negative slope, so
        that it has none; or `why`, what kept it from being trained.
    """
    shown = format_chain(parse_chain(chain))
    values: list[NDArray[np.float64]] = []
    try:
        for fold in folds:
            backend = train_chain(fold.training, chain, seed=seed)
            values.append(backend.score(fold.enrolled, fold.tested, fold.key.trials()).values)
        truth = [fold.key.is_target for fold in folds]
        row: Json = {"chain": shown, "eer": [], "cllr": [], "no_slope": []}
        for number, (scores, is_target) in enumerate(zip(values, truth, strict=True)):
            row["eer"].append(float(eer(scores[is_target], scores[~is_target])))
            if len(folds) < 2:
                return {**row, "cllr": [None]}
            others = [np.concatenate([*side[:number], *side[number + 1 :]]) for side in (values, truth)]
            affine = train_nonnegative(others[0][:, None], others[1], ridge=_RIDGE)
            llr = apply_affine(affine, scores)
            row["cllr"].append(float(cllr(llr[is_target], llr[~is_target])))
            row["no_slope"] += [] if affine.weights[0] else [number + 1]
        return row
    except (ConfigError, DataError) as error:
        return {"chain": shown, "why": error.text}


def choose_chain(
    chains: Sequence[str], folds: Sequence[FoldVectors], *, seed: int, jobs: int | None, journal: Path, fingerprint: str
) -> Json:
    """Choose a chain by folds of background speakers, see `simplest_of_best`.

    Parameters
    ----------
    chains : sequence of str
        From the simplest on.
    folds : sequence of FoldVectors
        Without any the first chain is taken.
    seed, jobs
    journal, fingerprint
        See `spkbase.runs.resumed_map`.

    Returns
    -------
    dict
        `chosen`, `why`, and `chains`: what `judge_chain` says of each, with the mean EER and how much it is above the
        best, with the standard error of that.

    Raises
    ------
    DataError
        If none can be trained.
    """
    if not folds:
        shown = [format_chain(parse_chain(chain)) for chain in chains]
        why = "there are too few speakers with two recordings to try chains on, so the simplest is taken"
        if len(chains) == 1:
            why = "it is the only one"
        return {"chosen": shown[0], "why": why, "chains": [{"chain": chain} for chain in shown]}
    judge = partial(judge_chain, folds=folds, seed=seed)
    judged = list(resumed_map(judge, chains, journal=journal, fingerprint=fingerprint, jobs=jobs, description="chains"))
    errors = np.array([row.get("eer", [np.nan] * len(folds)) for row in judged])
    if np.isnan(errors).any(axis=1).all():
        raise DataError(f"no chain can be trained: {judged[0]['why']}", remedy="name others in its setting 'chains'")
    resolution = 1 / sum(int(fold.key.is_target.sum()) for fold in folds)
    chosen = simplest_of_best(errors, resolution=resolution)
    best = int(np.argmin(np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))))
    for row, error in zip(judged, errors, strict=True):
        if "eer" in row:
            above = error - errors[best]
            row["mean_eer"], row["above_best"] = float(error.mean()), float(above.mean())
            row["standard_error"] = float(above.std(ddof=1) / np.sqrt(len(above))) if len(above) > 1 else 0.0
    if chosen == best:
        why = "its mean EER over the folds is the lowest"
    else:
        lowest = judged[best]["chain"]
        why = f"it is the simplest within one standard error, or one error, of the lowest mean EER, that of {lowest}"
    return {"chosen": judged[chosen]["chain"], "why": why, "chains": judged}
