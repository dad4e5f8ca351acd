"""Metrics of scores: error rates, detection costs, calibration, disclosure.

Two arrays enter, the scores of target and of nontarget trials; each metric is a function of them (`eer`, `min_dcf`,
`cllr`, `zebra`, `d_sys` ...) and, for many at once, of the scores sorted with ties merged. `evaluate` gives all.
Without a name of a convention ties are pooled and nothing is added; a reference's own reading has its name.
"""

from evaluation.metrics.calibration import (
    cllr,
    cllr_of,
    ece,
    ece_of,
    min_cllr,
    min_cllr_of,
    min_ece,
    min_ece_of,
    pav_llrs,
    softplus,
)
from evaluation.metrics.conventions import CONVENTIONS
from evaluation.metrics.detection import (
    SRE08,
    act_dcf,
    act_dcf_of,
    clopper_pearson,
    effective_prior,
    evaluate_detection,
    hull,
    hull_eer,
    hull_min_dcf,
    hull_prbep,
    min_dcf,
    min_dcf_of,
    rocch,
    tpr_at_fpr,
    tpr_at_fpr_of,
)
from evaluation.metrics.equal_error import METHODS, Reversal, eer, eer_of, reversal, reversal_at, reversal_of
from evaluation.metrics.sorted_scores import (
    Blocks,
    Hull,
    SortedScores,
    checked_scores,
    det_curve,
    hull_of,
    pav,
    roc_of,
    sort_scores,
)
from evaluation.metrics.summary import (
    Evaluation,
    Metrics,
    SpeakerVerificationMetrics,
    detection_score,
    evaluate,
    metrics_of,
)
from evaluation.metrics.system_linkability import d_sys, d_sys_of, d_sys_pav_of
from evaluation.metrics.table import (
    FRACTION,
    METRICS,
    PRIORS,
    Method,
    Metric,
    compute_all,
    is_prior,
    is_worse_low,
    method_of,
    metric_lines,
    metrics_at_thresholds_of,
    metrics_with,
    number_text,
)
from evaluation.metrics.worst_case import (
    Evidence,
    WorstCase,
    fit_student,
    gaussian_llrs,
    rank_evidence,
    rank_llrs,
    smoothed_shares,
    student_llrs,
    worst_case_of,
)
from evaluation.metrics.zebra_profile import (
    SCALE,
    ceiling_note,
    format_profile,
    format_value,
    individual_of,
    meaning_of,
    population,
    population_of,
    read_scale,
    tag,
    zebra,
    zebra_of,
)
