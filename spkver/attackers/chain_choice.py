"""The backend of vector attackers: a chain that is chosen and trained only on background speakers.

Background speakers are dealt into folds (`spkver.attackers.folds`); the simplest chain that is not clearly worse than
the best, on speakers that it was not trained on, is used (`choose_chain`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import apply_affine, train_nonnegative
from evaluation.embeddings import Embeddings
from evaluation.metrics import cllr, eer, sort_scores
from evaluation.trials import ALL_ENROLLED, ONE_MODEL, WHOLE_LIST, Key
from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkbase.work import Work, one_blas_thread
from spkver.attackers import lists
from spkver.attackers.folds import ENROLLED, FOLDS, TESTED, Fold, background_folds
from spkver.backend import Backend, Chain, format_chain, parse_chain, train_chain
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

Json = Any

SHRINK = 0.1
"""Shrinkage of covariances: regularisation for few vectors."""
PRIOR = 100
"""Weight of the prior of a PLDA, for the same reason."""

# scorers that adapt to the whole list of trials
ADAPTED_COSINE = "adapted_cosine"
"""See `spkver.backend.adapted_cosine_scores`."""
SELF_TRAINED_PLDA = "self_trained_plda"
"""See `spkver.backend.self_trained_scores` and `shifted_self_trained_scores`."""
# scorers that adapt only to the models of a list
SINGLE_TEST_COSINE = "single_test_cosine"
"""See `spkver.backend.adapted_cosine_scores`."""
ENROLLED_PLDA = "enrolled_plda"
"""See `spkver.backend.enrolled_plda_scores`."""
PLDA_SCORERS = (ENROLLED_PLDA, SELF_TRAINED_PLDA)
"""Those that learn how the vectors of an enrolled model differ."""
_LEVELS = {
    ADAPTED_COSINE: WHOLE_LIST,
    SELF_TRAINED_PLDA: WHOLE_LIST,
    SINGLE_TEST_COSINE: ALL_ENROLLED,
    ENROLLED_PLDA: ALL_ENROLLED,
}

UTTERANCES = 8000
"""Recordings of a training set to use at most: a large set would take hours."""

LDA_SPEAKERS = 50
"""Training speakers that a chain with LDA for supervectors needs."""
LDA_UTTERANCES = 2.0
"""Utterances of each speaker that it needs, all versions counted: pieces of one do not show how a speaker's differ."""
NORM_SPEAKERS = 30
"""Training speakers that a chain with snorm for supervectors needs."""

_WCCN = f"wccn: {SHRINK}"
_WHITEN = f"whiten: {{shrink: {SHRINK}}}"
_RANKS = (50, 100, 150)
# ridge of the calibration for Cllr: without it, folds without errors would have no finite calibration
_RIDGE = 0.01
_COHORT = 20  # fewest speakers for an adaptive cohort
_METHOD = 3  # version of the choice


@one_line
@dataclass(frozen=True, eq=False)
class FoldVectors:
    """Vectors of a fold: see `spkver.attackers.folds.Fold`.

    Attributes
    ----------
    training, enrolled, tested : Embeddings
    key : Key
    """

    training: Embeddings
    enrolled: Embeddings
    tested: Embeddings
    key: Key


def simplest_of_best(
    errors: NDArray[np.floating], *, n_independent: float | None = None, resolution: float = 0.0
) -> int:
    """Return the first of some systems that is not worse than the best by more than one standard error.

    Let e[s, k] be the error of system s in fold k, and b the system with the least mean error (the first of equals).
    The mean over folds of d[k] = e[s, k] - e[b, k] is compared with std(d) / sqrt(n), std with K - 1, or with
    `resolution` if that is larger.

    Parameters
    ----------
    errors : ndarray of shape (S, K)
        Errors, from the simplest system to the most complex; NaN if one could not be trained.
    n_independent : float, optional
        Number n of independent folds; K by default. Folds that share speakers count as the number of folds that their
        distinct speakers would fill.
    resolution : float
        Change of an error rate by a single error.

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
    spread = np.zeros(len(errors))
    if n_folds > 1:
        spread = differences.std(axis=1, ddof=1) / np.sqrt(n_independent or n_folds)
    # both sides are sums of few numbers: equal sums may differ in the last bits
    allowed = np.maximum(spread, resolution) * (1 + 1e-9) + 1e-12
    return int(np.flatnonzero(np.isfinite(means) & (differences.mean(axis=1) <= allowed))[0])


def standard_chains(dimension: int, n_speakers: int, most_vectors: int) -> list[str]:
    """Return the chains to choose from if none are named, simplest first; see docs/attackers_inside.md.

    Parameters
    ----------
    dimension : int
        Dimension of the vectors.
    n_speakers : int
        Training speakers of the smallest fold: LDA's ranks are lower than this.
    most_vectors : int
        Largest number of vectors of a speaker; with one, steps that learn from their variation are left out.

    Examples
    --------
    >>> standard_chains(192, 3, 1)
    ['cosine', 'centre', '[centre, cosine: maximum]', '[centre, whiten: {shrink: 0.1}, length]']
    """
    chains = ["cosine", "centre", "[centre, cosine: maximum]"]
    adaptive = ""
    if n_speakers >= _COHORT:
        adaptive = f"snorm: {min(300, n_speakers // 2)}"
        chains.append(f"[centre, {adaptive}]")
    if most_vectors > 1:
        chains.append(f"[centre, length, {_WCCN}]")
    chains.append(f"[centre, {_WHITEN}, length]")
    if most_vectors < 2 or n_speakers < 2:
        return chains
    lda = _discriminants(dimension, n_speakers)
    plda = f"plda: {{prior: {PRIOR}}}"
    chains += [f"[centre, length, {step}]" for step in lda]
    chains += [
        f"[centre, {steps}, {plda}]"
        for steps in ("length", f"{_WHITEN}, length", f"length, {lda[-1]}")
    ]
    if adaptive:
        chains += [
            f"[centre, length, {_WCCN}, {adaptive}]",
            f"[centre, length, {plda}, {adaptive}]",
        ]
    return chains


def adapted_chains(scorer: str, dimension: int, n_speakers: int, most_vectors: int) -> list[str]:
    """Return the chains to choose from that end in a given adapting scorer; see `standard_chains`.

    Examples
    --------
    >>> adapted_chains(ADAPTED_COSINE, 192, 3, 1)
    ['adapted_cosine', '[centre, whiten: {shrink: 0.1}, length, adapted_cosine]']
    """
    maps = [f"{_WHITEN}, length"]
    if most_vectors > 1:
        maps.insert(0, f"length, {_WCCN}")
    if most_vectors > 1 and n_speakers > 1:
        maps += [f"length, {step}" for step in _discriminants(dimension, n_speakers)]
    return [scorer, *(f"[centre, {steps}, {scorer}]" for steps in maps)]


@one_blas_thread()
def judge_chain(chain: str, folds: Sequence[FoldVectors], seed: int = 0) -> Json:
    """Evaluate a chain in each fold.

    Returns
    -------
    dict
        `chain`; `eer` and `cllr`, one per fold (Cllr in bits, after calibration on the other folds; None for a single
        fold), and `no_slope`, the numbers of the folds whose calibration is omitted because its slope would be
        negative; or `why`, the reason that the chain cannot be trained.
    """
    shown = format_chain(parse_chain(chain))
    values: list[NDArray[np.float64]] = []
    try:
        for fold in folds:
            backend = train_chain(fold.training, chain, seed=seed, warn=False)
            trials = fold.key.trials()
            of_fold = backend.score(fold.enrolled, fold.tested, trials, warn=False)
            values.append(of_fold.values)
        truth = [fold.key.is_target for fold in folds]
        row: Json = {"chain": shown, "eer": [], "cllr": [], "no_slope": []}
        for number, (scores, is_target) in enumerate(zip(values, truth, strict=True)):
            row["eer"].append(float(eer(sort_scores(scores[is_target], scores[~is_target]))))
            if len(folds) < 2:
                return {**row, "cllr": [None]}
            other_scores = np.concatenate([*values[:number], *values[number + 1 :]])
            other_truth = np.concatenate([*truth[:number], *truth[number + 1 :]])
            affine = train_nonnegative(other_scores[:, None], other_truth, ridge=_RIDGE)
            llr = apply_affine(affine, scores)
            row["cllr"].append(float(cllr(sort_scores(llr[is_target], llr[~is_target]))))
            if not affine.weights[0]:
                row["no_slope"].append(number + 1)
        return row
    except (ConfigError, DataError) as error:
        return {"chain": shown, "why": error.text}


def choose_chain(
    chains: Sequence[str], folds: Sequence[FoldVectors], *, seed: int, jobs: int | None
) -> Json:
    """Choose a chain by cross-validation on background speakers, see `simplest_of_best`.

    Parameters
    ----------
    chains : sequence of str
        Chains, the simplest first.
    folds : sequence of FoldVectors
        If there are none, the first chain is used.
    seed, jobs

    Returns
    -------
    dict
        `chosen`, `why`, and `chains`: the result of `judge_chain` for each, with the mean EER, its difference from the
        best, and the standard error of the difference.

    Raises
    ------
    DataError
        If no chain can be trained.
    """
    if not folds:
        shown = list(map(format_chain, map(parse_chain, chains)))
        why = "too few training speakers to choose by cross-validation, so the simplest is used"
        if len(chains) == 1:
            why = "it is the only one"
        return {"chosen": shown[0], "why": why, "chains": [{"chain": chain} for chain in shown]}
    judge = partial(judge_chain, folds=folds, seed=seed)
    judged = list(Work(jobs).map(judge, chains, processes=True, description="chains"))
    errors = np.array([row.get("eer", [np.nan] * len(folds)) for row in judged])
    if np.isnan(errors).any(axis=1).all():
        raise DataError(
            f"no chain can be trained: {judged[0]['why']}",
            remedy="name others in its setting 'chains'",
        )
    resolution = 1 / sum(int(fold.key.is_target.sum()) for fold in folds)
    tested = [set(fold.enrolled.speakers) for fold in folds]
    # K if no two folds share a speaker
    n_independent = len(folds) * len(set.union(*tested)) / sum(map(len, tested))
    chosen = simplest_of_best(errors, n_independent=n_independent, resolution=resolution)
    best = int(np.argmin(np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))))
    for row, error in zip(judged, errors, strict=True):
        if "eer" in row:
            above = error - errors[best]
            row["mean_eer"] = float(error.mean())
            row["above_best"] = float(above.mean())
            row["standard_error"] = 0.0
            if len(above) > 1:
                row["standard_error"] = float(above.std(ddof=1) / n_independent**0.5)
    if chosen == best:
        why = "its mean EER over the folds is the lowest"
    else:
        lowest = judged[best]["chain"]
        why = f"it is the simplest within one standard error, or one error, of the lowest mean EER, that of {lowest}"
    return {"chosen": judged[chosen]["chain"], "why": why, "chains": judged}


@dataclass(frozen=True)
class BackendChoice:
    """How the backend of a vector attacker is chosen.

    Attributes
    ----------
    name : str
        Name of the attacker.
    chains : tuple of str
        Chains to choose from, simplest first, as ``spkver backend train --chain`` takes them; empty: `standard_chains`.
    folds : int
        Number of folds into which background speakers are dealt, see `background_folds`.
    enrolled : int
        Number of recordings of a model in the trials of these folds.
    utterances : int or None
        Largest number of recordings of the training set to use, all versions counted, see `limited`; None takes all.
    adapted : {"", "adapted_cosine", "self_trained_plda", "single_test_cosine", "enrolled_plda"}
        Scorer that adapts to the whole list of trials, or only to its models; then `adapted_chains` replace
        `standard_chains`. See `spkver.backend.adapted_cosine_scores`.
    """

    name: str
    chains: tuple[str, ...] = ()
    folds: int = FOLDS
    enrolled: int = ENROLLED
    utterances: int | None = UTTERANCES
    adapted: str = ""

    def __post_init__(self) -> None:
        for key, least in (("folds", 2), ("enrolled", 1), ("utterances", 2)):
            value = getattr(self, key)
            if value is not None and value < least:
                raise ConfigError(f"{key} is {value}: expected a whole number of at least {least}")
        if self.adapted and self.adapted not in _LEVELS:
            raise ConfigError(
                f"adapted is {self.adapted!r}: expected {', '.join(_LEVELS)}, or nothing"
            )
        check_chains(self.chains)

    @property
    def level(self) -> str:
        """The level of knowledge of an attacker with such a backend, see `evaluation.trials.LEVELS`."""
        return level_of((self.adapted, *self.chains))

    def on(self, on_anonymised: bool) -> BackendChoice:
        """Return the choice for a training set: an enrolled PLDA also learns from it if it is anonymised."""
        if self.adapted not in PLDA_SCORERS or self.chains:
            return self
        if on_anonymised:
            return replace(self, chains=(f"{self.adapted}: {{background: true}}",))
        return replace(self, chains=(self.adapted,))

    def record(self) -> Any:
        """Return all that the choice depends on besides the vectors."""
        settings = list(self.chains), self.folds, self.enrolled, self.utterances, self.adapted
        return [_METHOD, *settings, TESTED, SHRINK, PRIOR]


def level_of(chains: Sequence[str]) -> str:
    """Return the level of knowledge of a backend with the given chains, see `evaluation.trials.LEVELS`."""
    for scorer, level in _LEVELS.items():
        if any(scorer in chain for chain in chains):
            return level
    return ONE_MODEL


def check_chains(chains: Sequence[str]) -> None:
    """Raise ConfigError if a chain is invalid, or needs vectors of another domain, which attackers lack."""
    for chain in chains:
        adapting = [step.name for step in parse_chain(chain) if "adapt" in step.needs]
        if adapting:
            text = f"chain {chain!r}: {adapting[0]} adapts to vectors of another domain, and there are none"
            raise ConfigError(
                text, remedy="leave it out: an attacker learns only from its training set"
            )


def fitting_chain(
    name: str, chains: Sequence[str], sessions: Embeddings, n_utterances: int
) -> Chain:
    """Return the first chain for which a training set of supervectors is large enough, or else the last chain.

    LDA needs `LDA_SPEAKERS` speakers with `LDA_UTTERANCES` utterances each, snorm needs `NORM_SPEAKERS` speakers. Ranks
    are lowered to what the sessions allow: NAP to the number of directions in which they differ within speakers, LDA to
    the number of speakers minus one.
    """
    n_sessions, dimension = sessions.vectors.shape
    n_speakers = len(set(sessions.speakers))
    too_few = set()
    if (
        n_speakers < LDA_SPEAKERS
        or n_utterances < LDA_UTTERANCES * n_speakers
        or n_sessions == n_speakers
    ):
        too_few.add("lda")
    if n_speakers < NORM_SPEAKERS:
        too_few.add("snorm")
    parsed = list(map(parse_chain, chains))
    for chain in parsed:  # if no chain can be trained, the last one remains
        if too_few.isdisjoint(step.name for step in chain):
            break
    if chain != parsed[0]:
        text = "%s: %d utterances of %d training speakers are too few for %s"
        logger.debug(text, name, n_utterances, n_speakers, chains[0])
    most = {
        "nap": n_sessions - n_speakers,
        "pca": min(n_sessions - 1, dimension),
        "lda": n_speakers - 1,
    }
    fitted = []
    for step in chain:
        rank = step.values.get("rank")
        limit = most.get(step.name)
        if rank is None or limit is None or rank <= limit:
            fitted.append(step)
            continue
        logger.warning(
            "%s: the training sessions allow %s of rank %d, not %d", name, step.name, limit, rank
        )
        if limit:
            fitted.append(replace(step, values={**step.values, "rank": limit}))
    return tuple(fitted)


def fit_first_chain(
    name: str,
    chains: Sequence[str],
    sessions: Embeddings,
    training: Sequence[DataDir],
    *,
    seed: int,
) -> tuple[Backend, Json]:
    """Train the first chain for which a training set is large enough, see `fitting_chain`.

    Parameters
    ----------
    name : str
        Name of the attacker, for messages.
    chains : sequence of str
    sessions : Embeddings
        Vectors of sessions that the training recordings are cut into.
    training : sequence of DataDir
        Versions of the same speech.
    seed : int

    Returns
    -------
    backend : Backend
    chosen : dict
        As in `choose_backend`, without folds.
    """
    chain = fitting_chain(name, chains, sessions, sum(map(len, training)))
    shown = format_chain(chain)
    chosen = {
        "vectors": len(sessions),
        "speakers": len(set(sessions.speakers)),
        "versions": len(training),
        "folds": [],
        "chosen": shown,
        "why": "it is the first for which the training set is large enough",
        "chains": [{"chain": shown}],
    }
    return train_chain(sessions, chain, seed=seed, warn=False), chosen


def choose_backend(
    choice: BackendChoice,
    vectors: Embeddings,
    training: Sequence[DataDir],
    *,
    seed: int,
    jobs: int | None,
) -> tuple[Backend, Json]:
    """Choose a chain on folds of a training set, and train it on the whole set.

    Parameters
    ----------
    choice : BackendChoice
    vectors : Embeddings
        Vectors of the merged training set, see `merge_versions`.
    training : sequence of DataDir
        Versions of the same speech.
    seed, jobs

    Returns
    -------
    backend : Backend
    chosen : dict
        How it was chosen, as saved in ``choice.json``.
    """
    vectors.norms()
    recordings = lists.merge_versions(training).recordings
    row_of = {recordings[name]: row for row, name in enumerate(vectors.ids)}

    def side(directory: DataDir) -> Embeddings:
        rows = [row_of[directory.recordings[name]] for name in sorted(directory.speakers)]
        return lists.as_embeddings(directory, np.asarray(vectors.vectors)[rows])

    rounds = []
    if len(choice.chains) != 1:
        rounds = _deal_folds(choice, training, seed)
    folds = []
    for fold in rounds:
        others = ~np.isin(vectors.speakers.astype(str), fold.speakers)
        learnt_from = Embeddings(
            vectors.ids[others], vectors.speakers[others], np.asarray(vectors.vectors)[others]
        )
        folds.append(FoldVectors(learnt_from, side(fold.enrolment), side(fold.tested), fold.key))
    counts = np.unique(vectors.speakers.astype(str), return_counts=True)[1]
    least = min([len(set(fold.training.speakers)) for fold in folds], default=len(counts))
    sizes = (vectors.vectors.shape[1], least, int(counts.max()))
    chains = list(choice.chains)
    if not chains and choice.adapted:
        chains = adapted_chains(choice.adapted, *sizes)
    elif not chains:
        chains = standard_chains(*sizes)
    chosen = choose_chain(chains, folds, seed=seed, jobs=jobs)
    tried = []
    for fold in rounds:
        trials = {"targets": int(fold.key.is_target.sum()), "trials": len(fold.key)}
        tried.append({"number": fold.number, "speakers": list(fold.speakers), **trials})
    facts = {
        "vectors": len(vectors),
        "speakers": len(counts),
        "versions": len(training),
        "folds": tried,
    }
    return train_chain(vectors, chosen["chosen"], seed=seed, warn=False), {**facts, **chosen}


def _deal_folds(choice: BackendChoice, training: Sequence[DataDir], seed: int) -> list[Fold]:
    """Return folds of a training set; if there are few speakers, they are dealt several times."""
    folds: list[Fold] = []
    for dealt in range(choice.folds):
        if dealt > 0 and not 0 < len(folds) < choice.folds:
            continue
        # dealing the same speakers again would count their errors twice
        known = {fold.speakers for fold in folds}
        for fold in background_folds(
            training, seed=seed + dealt, folds=choice.folds, enrolled=choice.enrolled
        ):
            if fold.speakers not in known:
                folds.append(replace(fold, number=len(folds) + 1))
    return folds


def _discriminants(dimension: int, n_speakers: int) -> list[str]:
    most = min(dimension, n_speakers - 1)
    ranks = [rank for rank in _RANKS if rank <= most] or [most]
    return [f"lda: {{rank: {rank}, shrink: {SHRINK}}}, length" for rank in ranks]
