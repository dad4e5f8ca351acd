"""Metrics of speaker-verification scores: errors, calibration, privacy, with confidence intervals.

The subpackages are `metrics`, `linkage`, `uncertainty`, `formats` and so on; the most used names are here.

Examples
--------
>>> import evaluation as ev
>>> found = ev.evaluate(target=[0.5, 2.0, 3.0, 4.0], nontarget=[-1.0, 0.0, 1.0, -2.0])
>>> round(found.eer["rocch"], 4), round(found.min_cllr, 4)
(0.125, 0.25)
>>> ev.evaluate([0.5, -1.0, 2.0, 1.0], labels=[True, False, True, False]).eer["rocch"]
0.25
>>> ev.eer([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0]) == found.eer["rocch"]
True
"""

from evaluation.calibration import (
    Calibration,
    apply_affine,
    calibrate,
    cohort_means,
    fuse,
    load_calibration,
    s_norm,
    train_affine,
)
from evaluation.embeddings import Embeddings, cosine_scores, read_embeddings
from evaluation.forensics import Bounds, dev_pav, elub, invariance_bounds, train_kernel
from evaluation.formats import (
    FORMATS,
    Format,
    read_key,
    read_scores,
    read_trials,
    write_key,
    write_scores,
)
from evaluation.linkage import (
    disclosure_overview,
    extrapolate,
    identification,
    linkability,
    per_speaker,
    rank_embeddings,
    rank_trial_scores,
    singling_out,
    zebra_profiles,
)
from evaluation.metrics import (
    METRICS,
    Evaluation,
    Metric,
    act_dcf,
    auc,
    cllr,
    d_sys,
    det_curve,
    eer,
    effective_prior,
    min_cllr,
    min_dcf,
    pav_llrs,
    roc_curve,
    sort_scores,
    tpr_at_fpr,
    zebra,
)
from evaluation.plots import (
    plot_ape,
    plot_det,
    plot_ece,
    plot_histogram,
    plot_linkability,
    plot_roc,
    plot_tippett,
    plot_zebra,
    plot_zoo,
)
from evaluation.trials import Key, Scores, Trials, match_ids, split_scores
from evaluation.uncertainty import (
    Interval,
    Resampling,
    compare,
    confidence_intervals,
    evaluate,
    evaluate_groups,
    evaluate_systems,
    paired_differences,
)
from evaluation.utility import error_rate
from spkbase.version import __version__

__all__ = [
    "FORMATS",
    "METRICS",
    "Bounds",
    "Calibration",
    "Embeddings",
    "Evaluation",
    "Format",
    "Interval",
    "Key",
    "Metric",
    "Resampling",
    "Scores",
    "Trials",
    "__version__",
    "act_dcf",
    "apply_affine",
    "auc",
    "calibrate",
    "cllr",
    "cohort_means",
    "compare",
    "confidence_intervals",
    "cosine_scores",
    "d_sys",
    "det_curve",
    "dev_pav",
    "disclosure_overview",
    "eer",
    "effective_prior",
    "elub",
    "error_rate",
    "evaluate",
    "evaluate_groups",
    "evaluate_systems",
    "extrapolate",
    "fuse",
    "identification",
    "invariance_bounds",
    "linkability",
    "load_calibration",
    "match_ids",
    "min_cllr",
    "min_dcf",
    "paired_differences",
    "pav_llrs",
    "per_speaker",
    "plot_ape",
    "plot_det",
    "plot_ece",
    "plot_histogram",
    "plot_linkability",
    "plot_roc",
    "plot_tippett",
    "plot_zebra",
    "plot_zoo",
    "rank_embeddings",
    "rank_trial_scores",
    "read_embeddings",
    "read_key",
    "read_scores",
    "read_trials",
    "roc_curve",
    "s_norm",
    "singling_out",
    "sort_scores",
    "split_scores",
    "tpr_at_fpr",
    "train_affine",
    "train_kernel",
    "write_key",
    "write_scores",
    "zebra",
    "zebra_profiles",
]
