"""Metrics of scores: error rates, detection costs, calibration, disclosure.

Two arrays enter, the scores of target and of nontarget trials; each metric is a function of them (`eer`, `min_dcf`,
`cllr`, `zebra`, `d_sys` ...) and, for many at once, of the scores sorted with ties merged. `Metrics` gives all.
Without a name of a convention ties are pooled and nothing is added; a reference's own reading has its name.
"""

from evaluation.metrics.calibration import cllr, doubt_ratios, ece, min_cllr, min_ece, pav_llrs, sort_ratios
from evaluation.metrics.conventions import CONVENTIONS
from evaluation.metrics.detection import (
    METHODS,
    SRE08,
    Reversal,
    act_dcf,
    auc,
    clopper_pearson,
    eer,
    effective_prior,
    hull_min_dcf,
    min_dcf,
    prbep,
    reversal,
    reversal_at,
    rocch,
    sort_with_warning,
    tpr_at_fpr,
)
from evaluation.metrics.disclosure import (
    SCALE,
    Zebra,
    ceiling_note,
    d_sys,
    format_profile,
    format_value,
    individual,
    meaning_of,
    population,
    read_scale,
    tag,
    zebra,
)
from evaluation.metrics.evaluated import Evaluation, Metrics
from evaluation.metrics.metric import FRACTION, Method, Metric, find_metric, is_prior
from evaluation.metrics.sorted_scores import SortedScores, det_curve, roc, sort_scores
from evaluation.metrics.table import METRICS, PRIORS, method_of, metrics_at_thresholds_of, metrics_with
from evaluation.metrics.worst_case import Evidence, WorstCase, rank_evidence, worst_case
