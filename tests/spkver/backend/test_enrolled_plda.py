"""A PLDA of the enrolled: ratios by densities of Gaussians, and what a score may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.errors import DataError
from spkver.backend import train_chain
from spkver.backend.plda import PldaConfig, Sessions, fit_plda
from spkver.backend.session_scores import cosine_of_sessions, enrolled_plda_scores

RNG = np.random.default_rng(5)
MODELS = np.repeat(np.arange(4), 3)
VOICES = RNG.normal(size=(4, 5))
ENROLLED = Sessions(10 + VOICES[MODELS] + 0.4 * RNG.normal(size=(12, 5)), MODELS)
TESTS = 10 + VOICES[[0, 1, 2, 3, 0]] + 0.4 * RNG.normal(size=(5, 5))
TRIALS = np.repeat(np.arange(4), 5), np.tile(np.arange(5), 4)
BACKGROUND = Sessions(-3 + RNG.normal(size=(6, 5))[np.repeat(np.arange(6), 4)] + RNG.normal(size=(24, 5)),
                      np.repeat(np.arange(6), 4))  # fmt: skip


def unit(vectors, centre):
    return (vectors - centre) / np.linalg.norm(vectors - centre, axis=1)[:, None]


@pytest.mark.parametrize("background", [None, BACKGROUND])
def test_scores_equal_ratios_of_densities(background):
    """Brute force: the density of the pair (mean of a model, test) of one speaker against that of two."""
    centre = ENROLLED.means.mean(axis=0)
    learnt = [(unit(ENROLLED.vectors, centre), MODELS)]
    if background is not None:
        others = unit(background.vectors, background.means.mean(axis=0))
        learnt.append(
            (
                np.concatenate([learnt[0][0], others]),
                np.concatenate([MODELS, 4 + background.models]),
            )
        )
    expected = np.mean(
        [ratios(fit_plda(*one, PldaConfig(prior=20.0))[0], centre) for one in learnt], axis=0
    )
    found = enrolled_plda_scores(ENROLLED, TESTS, *TRIALS, prior=20.0, background=background)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    own = found.reshape(4, 5)[[0, 1, 2, 3, 0], np.arange(5)]
    assert own.min() > np.median(found)


def ratios(model, centre):
    """Of one PLDA, by the densities."""
    between, total = model.between, model.between + model.within
    tested, expected = unit(TESTS, centre), []
    for code, row in zip(*TRIALS, strict=True):
        pair = np.concatenate(
            [unit(ENROLLED.vectors, centre)[code == MODELS].mean(axis=0), tested[row]]
        )
        mean = np.tile(model.mean, 2)
        same = multivariate_normal(mean, np.block([[total, between], [between, total]])).logpdf(
            pair
        )
        none = np.zeros_like(between)
        expected.append(
            same - multivariate_normal(mean, np.block([[total, none], [none, total]])).logpdf(pair)
        )
    return expected


def test_a_chain_learns_from_the_background_on_request():
    """Moved by its mean, the background of the chain is the one of the formula."""
    for flag, background in ((False, None), (True, BACKGROUND)):
        chain = f"enrolled_plda: {{background: {str(flag).lower()}}}"
        backend = train_chain(embeddings(BACKGROUND, "b"), chain)
        found = backend.score(embeddings(ENROLLED, "e"), side_of_tests(), trials())
        expected = enrolled_plda_scores(ENROLLED, TESTS, *TRIALS, background=background)
        np.testing.assert_allclose(found.values, expected, rtol=1e-8, atol=1e-9)


def test_unusable_enrolments_are_refused():
    with pytest.raises(DataError, match="each speaker has only one"):
        enrolled_plda_scores(Sessions(ENROLLED.means, np.arange(4)), TESTS, *TRIALS)
    with pytest.raises(DataError, match="nothing is left of 5 of 5 tested vectors"):
        enrolled_plda_scores(ENROLLED, np.tile(ENROLLED.means.mean(axis=0), (5, 1)), *TRIALS)


def test_the_maximum_cosine_over_sessions_equals_brute_force():
    """Brute force over sessions."""
    left, right = unit(ENROLLED.vectors, 0), unit(TESTS, 0)
    expected = [max(left[code == MODELS] @ right[row]) for code, row in zip(*TRIALS, strict=True)]
    found = cosine_of_sessions(ENROLLED, TESTS, *TRIALS, sessions_as="maximum")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    backend = train_chain(embeddings(BACKGROUND, "b"), "cosine:maximum")
    np.testing.assert_allclose(
        backend.score(embeddings(ENROLLED, "e"), side_of_tests(), trials()).values, expected
    )


def embeddings(sessions, letter):
    ids = [f"{letter}{number}" for number in range(len(sessions.models))]
    return Embeddings(np.array(ids, object), np.array([f"{letter}-{code}" for code in sessions.models], object),
                      sessions.vectors)  # fmt: skip


def side_of_tests():
    names = np.array([f"t{number}" for number in range(len(TESTS))], object)
    return Embeddings(names, names, TESTS)


def trials():
    return Trials.from_ids([f"e-{code}" for code in TRIALS[0]], [f"t{row}" for row in TRIALS[1]])
