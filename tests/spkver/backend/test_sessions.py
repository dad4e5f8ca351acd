"""Enrolment vectors by model, and products of exactly the pairs of a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.errors import DataError
from spkver.backend import scoring
from spkver.backend.plda import Sessions
from spkver.backend.scoring import pair_products


def test_sums_and_means_of_models_in_any_order() -> None:
    rng = np.random.default_rng(0)
    vectors, models = rng.normal(size=(9, 3)), np.array([2, 0, 1, 1, 2, 2, 0, 1, 1])
    sessions = Sessions(vectors, models)
    assert sessions.counts.tolist() == [2, 4, 3]
    for model in range(3):
        np.testing.assert_allclose(sessions.sums[model], vectors[models == model].sum(axis=0), rtol=1e-14)
        np.testing.assert_allclose(sessions.means[model], vectors[models == model].mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("names", [["b", "a", "b"], np.array(["b", "a", "b"]), np.array([7, -3, 7])])
def test_models_by_names(names: Any) -> None:
    sessions, distinct = Sessions.named(np.eye(3), names)
    assert distinct.tolist() == sorted(set(np.asarray(names).tolist()))
    assert sessions.models.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("vectors", "models", "message"),
    [
        (np.zeros((0, 3)), [], r"enrolled vectors as rows of numbers, got float64 of shape \(0, 3\)"),
        (np.zeros(3), [0, 0, 0], "enrolled vectors as rows of numbers"),
        (np.array([["a"]]), [0], "enrolled vectors as rows of numbers"),
        (np.array([[1.0], [np.nan], [np.inf]]), [0, 0, 1], "2 of 3 enrolled vectors hold NaN or infinity: rows 1, 2"),
        (np.eye(2), [0], "a whole number for each of 2 vectors"),
        (np.eye(2), [0.0, 1.0], "a whole number for each of 2 vectors"),
        (np.eye(2), [-1, 0], "codes of models from 0 without gaps, got -1 to 0"),
        (np.eye(2), [0, 2], "codes of models from 0 without gaps, got 0 to 2"),
        (np.eye(3), [0, 0, 2], "expected codes of models from 0 without gaps, got 0 to 2 for 3 vectors"),
    ],
)
def test_what_no_sessions_are_is_told(vectors: Any, models: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Sessions(vectors, np.array(models) if models else np.zeros(0, np.int64))


def test_names_of_another_number_are_an_error() -> None:
    with pytest.raises(DataError, match="a name for each of 3 vectors"):
        Sessions.named(np.eye(3), ["a", "b"])


@given(st.data())
def test_products_of_any_list_are_those_of_its_pairs(data: st.DataObject) -> None:
    """Full lists, lists cut into blocks, blocks in them, single pairs, repeated ones and none."""
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    n_left, n_right = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    left, right = rng.normal(size=(n_left, 5)), rng.normal(size=(n_right, 5))
    kind = data.draw(st.sampled_from(["all", "some", "blocks", "few"]))
    mask = np.ones((n_left, n_right), bool)
    if kind == "some":
        mask = rng.random((n_left, n_right)) < 0.3
    elif kind == "blocks":
        mask = np.arange(n_left)[:, None] % 13 == np.arange(n_right) % 13
    elif kind == "few":
        mask = rng.random((n_left, n_right)) < 0.03
    models, segments = (rng.permutation(column) for column in np.nonzero(mask))
    if data.draw(st.booleans()):
        models, segments = np.tile(models, 2), np.tile(segments, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "_CELLS", data.draw(st.sampled_from([1, 100, 1 << 22])))
        patch.setattr(scoring, "_PAIRED", data.draw(st.sampled_from([1, 100, 1 << 22])))
        found = pair_products(left, right, models, segments)
    np.testing.assert_allclose(found, (left[models] * right[segments]).sum(axis=1), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("models", "segments", "message"),
    [
        ([0, 3], [0, 0], "codes of models from 0 to 2, got 0 to 3"),
        ([0], [-1], "codes of segments from 0 to 2, got -1 to -1"),
        ([0.0], [0], "codes of models as whole numbers"),
        ([[0]], [0], "codes of models as whole numbers"),
        ([0, 1], [0], "a model and a segment for each trial, got 2 and 1"),
    ],
)
def test_codes_out_of_range_are_errors(models: list, segments: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pair_products(np.eye(3), np.eye(3), np.array(models), np.array(segments))


def test_scores_that_overflow_are_an_error() -> None:
    with pytest.raises(DataError, match="1 of 2 scores are not finite: vectors or parameters are far too large"):
        pair_products(np.array([[1e200], [1.0]]), np.array([[1e200]]), np.array([0, 1]), np.array([0, 0]))
