"""Trials, keys and scores: long lists of pairs of ids, joined by id and never by row.

`Trials` holds a model and a segment for each row, as codes into tables of ids; a `Key` marks the target trials;
`Scores` holds one score for each trial. `align` and `split_scores` join them. Maps of ids to speakers and tables of
metadata are read here too. `SCENARIOS` and `LEVELS` say what an attacker of a list has and may use.
"""

from evaluation.trials.lists import (
    COLUMN_NAMES,
    TRUTHS,
    Key,
    Missing,
    RepeatedTrialError,
    Scores,
    TrialError,
    Trials,
    align,
    are_labels,
    checked_ids,
    column_of,
    factorise,
    find_rows,
    folded,
    ids_of,
    join_scores,
    loosened,
    match_ids,
    numbers_of,
    order_free_digest,
    recode,
    refuse_labels,
    scores_of_trials,
    split_by_labels,
    split_scores,
    truth_of,
)
from evaluation.trials.speakers import (
    Speakers,
    TrialSpeakers,
    cut_lines,
    delimiter_of,
    doubt_speakers,
    find_speakers,
    group_trials,
    is_number,
    own_trials,
    read_columns,
    read_metadata,
    read_speakers,
    warn_of_alike,
)
from evaluation.trials.threats import (
    ALL_ENROLLED,
    INVERTING,
    LEVELS,
    ONE_MODEL,
    REVERSAL,
    SCENARIO_ORDER,
    SCENARIOS,
    WHOLE_LIST,
    Scenario,
)
