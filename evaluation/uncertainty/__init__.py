"""How sure a number is: resamples of speakers, intervals, paired differences, groups of trials.

`sample_from` and `confidence_intervals` take scores with their speakers; what leaves is an `Interval` for each
metric. docs/studies/intervals.md says how often the intervals hold.
"""

from evaluation.uncertainty.comparison import (
    EvaluatedSystem,
    EvaluatedSystems,
    PairedComparison,
    compare,
    evaluate_systems,
)
from evaluation.uncertainty.confidence import (
    closed_search_note,
    confidence_intervals,
    evaluate,
    paired_differences,
    sample_from,
    with_intervals,
)
from evaluation.uncertainty.exchanged import eer_bound, eer_guess, share_of_trials
from evaluation.uncertainty.fairness import Fairness, garbe, gini, group_fairness, worst_ratio
from evaluation.uncertainty.groups import Groups, evaluate_groups
from evaluation.uncertainty.intervals import (
    PLENTY,
    Differences,
    Interval,
    Intervals,
    draw_variance,
    from_scale,
    holm,
    interval,
    interval_over_draws,
    p_text,
    rate_interval,
    to_report,
    to_scale,
    widening,
)
from evaluation.uncertainty.minimum import (
    AT_ONCE,
    Minimum,
    largest_rate,
    maximum_of,
    minima_over_attackers,
    minimum_of,
    over_lists,
)
from evaluation.uncertainty.resampling import (
    BLOCK,
    MOST_RESAMPLES,
    Resampling,
    Sample,
    block_generator,
    bootstrap,
    draw_counts,
    sample_of,
)
from evaluation.uncertainty.systems import (
    Column,
    columns_of,
    difference_rows,
    paper_tables,
    system_rows,
)

__all__ = [
    "AT_ONCE",
    "BLOCK",
    "MOST_RESAMPLES",
    "PLENTY",
    "Column",
    "Differences",
    "EvaluatedSystem",
    "EvaluatedSystems",
    "Fairness",
    "Groups",
    "Interval",
    "Intervals",
    "Minimum",
    "PairedComparison",
    "Resampling",
    "Sample",
    "block_generator",
    "bootstrap",
    "closed_search_note",
    "columns_of",
    "compare",
    "confidence_intervals",
    "difference_rows",
    "draw_counts",
    "draw_variance",
    "eer_bound",
    "eer_guess",
    "evaluate",
    "evaluate_groups",
    "evaluate_systems",
    "from_scale",
    "garbe",
    "gini",
    "group_fairness",
    "holm",
    "interval",
    "interval_over_draws",
    "largest_rate",
    "maximum_of",
    "minima_over_attackers",
    "minimum_of",
    "over_lists",
    "p_text",
    "paired_differences",
    "paper_tables",
    "rate_interval",
    "sample_from",
    "sample_of",
    "share_of_trials",
    "system_rows",
    "to_report",
    "to_scale",
    "widening",
    "with_intervals",
    "worst_ratio",
]
