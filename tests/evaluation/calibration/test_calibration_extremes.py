"""Scores so large that sums overflow are an error, never a calibration by infinities or by a weight of 0."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.calibration.affine import Affine, apply_affine, train_affine
from spkbase.errors import DataError


def test_scores_too_large_to_learn_from() -> None:
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(1, 1, (50, 2)), rng.normal(0, 1, (70, 2))
    target[3, 1], nontarget[5, 1] = 1e308, -1e308
    with pytest.raises(DataError, match=r"system 1 has scores of up to 1e\+308, too large to learn from"):
        train_affine(target, nontarget)


def test_scores_too_large_for_the_weights() -> None:
    affine = Affine((3.0,), 0.5, 0.5)
    assert apply_affine(affine, [np.inf, -np.inf, 1e300]).tolist() == [np.inf, -np.inf, 3e300]
    with pytest.raises(DataError, match=r"scores of up to 1e\+308 are too large"):
        apply_affine(affine, [1.0, 1e308])
