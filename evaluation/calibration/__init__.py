"""Calibration: affine maps and fusion by logistic regression, with quality measures and folds of speakers, and
normalisation of scores by a cohort (z, t, s, adaptive s). Functions take arrays or `Scores`, and return new values of
the same trials."""

from evaluation.calibration.affine import (
    Affine,
    apply_affine,
    choose_fusion,
    cllr_of_trials,
    cross_validate_affine,
    fit_affine,
    load_affine,
    save_affine,
    train_affine,
    train_nonnegative,
)
from evaluation.calibration.cohort_norm import (
    Moments,
    closed_set_scores,
    cohort_means,
    cohort_moments,
    enrolled_blocks,
    normalise,
    s_norm,
    t_norm,
    z_norm,
)
from evaluation.calibration.fusion import (
    Calibration,
    calibrate,
    fuse,
    load_calibration,
    train_calibration,
)
from evaluation.calibration.quality import Measures, read_quality

__all__ = [
    "Affine",
    "Calibration",
    "Measures",
    "Moments",
    "apply_affine",
    "calibrate",
    "choose_fusion",
    "cllr_of_trials",
    "closed_set_scores",
    "cohort_means",
    "cohort_moments",
    "cross_validate_affine",
    "enrolled_blocks",
    "fit_affine",
    "fuse",
    "load_affine",
    "load_calibration",
    "normalise",
    "read_quality",
    "s_norm",
    "save_affine",
    "t_norm",
    "train_affine",
    "train_calibration",
    "train_nonnegative",
    "z_norm",
]
