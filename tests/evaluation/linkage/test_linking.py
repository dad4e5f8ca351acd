"""Linkability in one call, against counting by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from evaluation.embeddings.sets import Embeddings
from evaluation.linkage.curve import linkability
from evaluation.trials.lists import Key, Scores
from evaluation.uncertainty.resampling import Resampling
from spkbase.errors import DataError
from spkbase.work import Work

NAMES = [f"s{number:02d}" for number in range(30)]


@pytest.fixture(scope="module")
def sides() -> tuple[Embeddings, Embeddings]:
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((30, 8))
    utterances = voices[:, None] + 1.5 * rng.standard_normal((30, 3, 8))
    ids = [f"{name}-{number}" for name in NAMES for number in range(3)]
    return Embeddings(NAMES, NAMES, voices), Embeddings(ids, np.repeat(NAMES, 3), utterances.reshape(90, 8))


def counted(cosine: np.ndarray, owners: np.ndarray, size: int) -> float:
    """Mean over trials of C(M - k, N - 1) / C(M, N - 1), with k and M counted in a matrix (trials, enrolled)."""
    mated = cosine[np.arange(len(owners)), owners]
    beaters = (cosine > mated[:, None]).sum(axis=1).tolist()
    most = cosine.shape[1] - 1
    return float(np.mean([comb(most - beater, size - 1) / comb(most, size - 1) for beater in beaters]))


def cosines(enrolled: np.ndarray, tested: np.ndarray) -> np.ndarray:
    return (tested / np.linalg.norm(tested, axis=1)[:, None]) @ (enrolled / np.linalg.norm(enrolled, axis=1)[:, None]).T


@pytest.mark.parametrize("utterances", [None, 2, "all"])
def test_from_embeddings(sides: tuple[Embeddings, Embeddings], utterances) -> None:
    enrolled, tested = sides
    n_used = {None: 1, 2: 2, "all": 3}[utterances]
    trials = tested.vectors.reshape(30, 3, 8)[:, :n_used].mean(axis=1)
    curve = linkability(enrolled, tested, utterances=utterances, resampling=Resampling(0), work=Work(jobs=1))
    assert curve.sizes.tolist() == list(range(2, 31))
    expected = [counted(cosines(enrolled.vectors, trials), np.arange(30), size) for size in range(2, 31)]
    assert curve.values == pytest.approx(expected, abs=1e-12)
    assert curve.chance == pytest.approx(1 / curve.sizes)
    assert np.isnan(curve.low).all()


def test_from_scores_with_their_key(sides: tuple[Embeddings, Embeddings]) -> None:
    enrolled, tested = sides
    cosine = cosines(enrolled.vectors, tested.vectors)
    owners = np.repeat(np.arange(30), 3)
    models, segments = np.tile(NAMES, 90), np.repeat(tested.ids, 30)
    is_target = (np.arange(30) == owners[:, None]).ravel()
    scores = Scores.from_ids(models, segments, 7 * cosine.ravel() - 1)
    curve = linkability(scores, Key.from_ids(models, segments, is_target), [2, 30])
    assert curve.values == pytest.approx([counted(cosine, owners, size) for size in (2, 30)], abs=1e-12)
    assert (curve.low < curve.values).all()
    assert (curve.values < curve.high).all()


def test_the_two_must_go_together(sides: tuple[Embeddings, Embeddings]) -> None:
    key = Key.from_ids(["s00"], ["s00-0"], [True])
    with pytest.raises(DataError, match=r"Scores and Key, got Embeddings and Key"):
        linkability(sides[0], key)
