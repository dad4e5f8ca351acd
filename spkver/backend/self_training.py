"""Self-training: scores that also learn from the tested vectors of a list, without knowing who speaks in them.

A list is scored, the tests that clearly belong to one of its models are taken as sessions of that model, and PLDA and
models are fitted again on the enrolled sessions and on these tests. The list is cut into folds, and no test is scored
by a fit that has seen it.

Decisions depend only on vectors. Folds are drawn from the vectors of the tests, so that names and order do not matter,
and equal vectors share a fold. A test can be taken only if the list compares it with all its models, because the choice
of the pairs in a list may depend on who speaks.

References
----------
H. J. Scudder, "Probability of error of some adaptive pattern-recognition machines", IEEE Trans. Information Theory
11(3), 1965 (machines that learn from their own decisions).
D. Garcia-Romero, A. McCree, S. Shum, N. Brummer and C. Vaquero, "Unsupervised domain adaptation for i-vector speaker
recognition", Odyssey 2014 (a PLDA that learns from unlabelled vectors).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Floats
from spkbase.errors import ConfigError
from spkbase.seeding import stream
from spkver.backend import plda
from spkver.backend.plda import Sessions
from spkver.backend.session_scores import adapted_cosine_scores, centred_units, enrolled_plda_scores

NOBODY = -1
"""The label of a test that does not clearly belong to any model."""

FOLDS = 5
"""Parts of a list: each test is scored by a fit on the other parts."""

SHARES = (0.3, 0.5)
"""Shares of the tests nearest to a model that are taken as its sessions, one for each round."""


class Decisions(NamedTuple):
    """The model to which each of T tests belongs according to its scores.

    Attributes
    ----------
    models : ndarray of int64 of shape (T,)
        The model with the highest score; `NOBODY` for tests that are not compared with all models of the list.
    margins : ndarray of float64 of shape (T,)
        Difference between this score and the next lower one.
    """

    models: NDArray[np.int64]
    margins: Floats


def self_trained_scores(
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    prior: float = 100.0,
    margin: float = 5.0,
    background: Sessions | None = None,
    seed: int = 0,
) -> Floats:
    """Return log-likelihood ratios by a PLDA of the enrolled models and of the tests that clearly belong to them.

        1. s = `enrolled_plda_scores` of all trials
        2. a test whose highest score exceeds the next by more than `margin` is taken as a session of that model
        3. for each fold of the tests, s of its trials = `enrolled_plda_scores` with these sessions added, without those
           of the fold itself

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models, at least one of them with two sessions that differ.
    tests : ndarray of shape (T, R)
        Vectors of the same domain as the enrolled ones; otherwise see `shifted_self_trained_scores`.
    models, segments : ndarray of int of shape (n,)
        The code of each trial's model, and the row of its tested vector.
    prior : float
        See `spkver.backend.PldaConfig`.
    margin : float [nat]
    background : Sessions, optional
        Vectors of other speakers, see `enrolled_plda_scores`.
    seed : int
        Seed of the folds.

    Returns
    -------
    ndarray of float64 of shape (n,)
        In nat. A score depends on all models and tests.

    Raises
    ------
    DataError
        As `enrolled_plda_scores`.
    ConfigError
        If the margin is negative.
    """
    if not margin >= 0:
        raise ConfigError(f"margin is {margin:g}: expected 0 nat or more")
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    scores = enrolled_plda_scores(
        sessions, tests, models, segments, prior=prior, background=background
    )
    decided = decide(scores, models, segments, n_tests=len(tests))
    labels = np.where(decided.margins > margin, decided.models, NOBODY)

    def refit(labels: NDArray[np.int64], models: NDArray[Any], segments: NDArray[Any]) -> Floats:
        enlarged = with_labelled(sessions, tests, labels)
        return enrolled_plda_scores(
            enlarged, tests, models, segments, prior=prior, background=background
        )

    return _scores_by_folds(refit, labels, deal_tests(tests, seed=seed), models, segments)


def shifted_self_trained_scores(
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    prior: float = 100.0,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
) -> Floats:
    """Return self-trained log-likelihood ratios of tests from a domain other than that of the enrolled.

    The tests have their own mean, and the enrolled do not show how vectors of that domain differ within speakers; so
    labelling begins with a few tests of each model, and tests are also compared with models of their own domain:

        1. s = `adapted_cosine_scores` of all trials; each side is centred as in these scores, and scaled to length 1
        2. among the tests that score highest with a model, the share with the largest margins to the next model is
           taken as sessions of this model
        3. for each fold of the tests, a PLDA of full rank is trained on the enrolled and on these tests, without those
           of the fold itself; s of its trials is the mean of the ratio with the mean of all sessions of the model, and
           of the ratio with the mean of its tests alone, if it has any
         4. repeat from 2 with the next share

    Parameters
    ----------
    sessions, tests, models, segments
        As for `self_trained_scores`.
    prior : float
        See `spkver.backend.PldaConfig`.
    shares : sequence of float
        Above 0, at most 1; one for each round.
    seed : int
        Seed of the folds.

    Returns
    -------
    ndarray of float64 of shape (n,)
        In nat. A score depends on all models and tests.

    Raises
    ------
    DataError
        As `adapted_cosine_scores` and `enrolled_plda_scores`.
    ConfigError
        If a share is out of range, or there are no shares.
    """
    if not len(shares) or not all(0 < share <= 1 for share in shares):
        raise ConfigError(f"shares are {list(shares)}: expected numbers above 0, at most 1")
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    scores = adapted_cosine_scores(sessions, tests, models, segments)
    centre = sessions.means.mean(axis=0)
    enrolled = Sessions(centred_units(sessions.vectors, centre, "enrolled"), sessions.models)
    # relative to this mean, a test has the same direction as relative to the mean of the others
    tested = centred_units(tests, (tests.sum(axis=0) + centre) / (len(tests) + 1), "tested")
    folds = deal_tests(tests, seed=seed)

    def refit(labels: NDArray[np.int64], models: NDArray[Any], segments: NDArray[Any]) -> Floats:
        enlarged = with_labelled(enrolled, tested, labels)
        config = plda.PldaConfig(prior=prior)
        trained = plda.fit_plda(enlarged.vectors, enlarged.models, config)[0]
        alone = _means_of_labelled(enlarged.means, tested, labels)
        ratios = []
        for means in (enlarged.means, alone):
            each = Sessions(means, np.arange(len(means)))
            ratios.append(
                plda.plda_scores(trained, each, tested, models, segments, sessions_as="mean")
            )
        mean: Floats = np.mean(ratios, axis=0)
        return mean

    for share in shares:
        decided = decide(scores, models, segments, n_tests=len(tests))
        scores = _scores_by_folds(refit, clearest(decided, share), folds, models, segments)
    return scores


def decide(
    scores: Floats, models: NDArray[Any], segments: NDArray[Any], *, n_tests: int
) -> Decisions:
    """Return the model to which each test belongs according to the scores of a list of trials.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    models, segments : ndarray of int of shape (n,)
        Codes of each trial; no pair is repeated.
    n_tests : int

    Examples
    --------
    >>> decide(np.array([4.0, 1.0, 7.0]), np.array([0, 1, 1]), np.array([0, 0, 1]), n_tests=2)
    Decisions(models=array([ 0, -1]), margins=array([3., 0.]))
    """
    best = np.full(n_tests, NOBODY)
    margins = np.zeros(n_tests)
    order = np.lexsort((scores, segments))
    counts = np.bincount(segments, minlength=n_tests)
    n_models = len(np.unique(models))
    complete = (counts == n_models) & (n_models > 1)
    highest = (np.cumsum(counts) - 1)[complete]
    best[complete] = models[order[highest]]
    margins[complete] = scores[order[highest]] - scores[order[highest - 1]]
    return Decisions(best, margins)


def clearest(decided: Decisions, share: float) -> NDArray[np.int64]:
    """Return the labels of the share of each model's tests with the largest margins, `NOBODY` for the others.

    Examples
    --------
    >>> clearest(Decisions(np.array([0, 0, 1, 0]), np.array([1.0, 4.0, 2.0, 3.0])), 0.5)
    array([-1,  0,  1,  0])
    """
    labels = np.full(len(decided.models), NOBODY)
    for model in np.unique(decided.models[decided.models != NOBODY]):
        own = np.flatnonzero(decided.models == model)
        order = np.argsort(-decided.margins[own], kind="stable")
        n_taken = int(np.ceil(share * len(own)))
        labels[own[order[:n_taken]]] = model
    return labels


def deal_tests(tests: Floats, n_folds: int = FOLDS, *, seed: int = 0) -> NDArray[np.int64]:
    """Return the fold of each test, drawn by its vector: the order of tests does not matter, and equal tests stay
    together.

    Parameters
    ----------
    tests : ndarray of shape (T, R)
    n_folds : int
    seed : int

    Returns
    -------
    ndarray of int64 of shape (T,)
        Folds from 0; their numbers of distinct vectors differ by at most one.
    """
    distinct, rows = np.unique(tests, axis=0, return_inverse=True)
    folds = np.empty(len(distinct), np.int64)
    order = stream(seed, "folds of tests").permutation(len(distinct))
    folds[order] = np.arange(len(distinct)) % n_folds
    return folds[rows.ravel()]


def with_labelled(sessions: Sessions, tests: Floats, labels: NDArray[np.int64]) -> Sessions:
    """Return sessions with the labelled tests added."""
    taken = labels != NOBODY
    vectors = np.concatenate([sessions.vectors, tests[taken]])
    return Sessions(vectors, np.concatenate([sessions.models, labels[taken]]))


def _scores_by_folds(
    refit: Callable[[NDArray[np.int64], NDArray[Any], NDArray[Any]], Floats],
    labels: NDArray[np.int64],
    folds: NDArray[np.int64],
    models: NDArray[Any],
    segments: NDArray[Any],
) -> Floats:
    """Score the trials of each fold by a refit on the labels of the other folds."""
    scores = np.empty(len(models))
    for fold in np.unique(folds[segments]):
        trials = np.flatnonzero(folds[segments] == fold)
        of_others = np.where(folds == fold, NOBODY, labels)
        scores[trials] = refit(of_others, models[trials], segments[trials])
    return scores


def _means_of_labelled(means: Floats, tests: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the mean of the tests of each model; the mean of a model without tests does not change."""
    alone = means.copy()
    for model in np.unique(labels[labels != NOBODY]):
        alone[model] = tests[labels == model].mean(axis=0)
    return alone
