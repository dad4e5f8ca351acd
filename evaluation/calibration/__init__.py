"""Calibration: affine maps and fusion by logistic regression, and normalisation of scores by a cohort (z, t, s,
adaptive s). Arrays or `Scores` are mapped to the same trials with other values."""

from evaluation.calibration.affine import (
    Affine,
    apply_affine,
    choose_fusion,
    cllr_of_trials,
    cross_validate_affine,
    load_affine,
    save_affine,
    train_affine,
    train_nonnegative,
)
from evaluation.calibration.cohort_norm import (
    Moments,
    closed_set_scores,
    cohort_moments,
    enrolled_blocks,
    normalise,
    s_norm,
    t_norm,
    z_norm,
)
