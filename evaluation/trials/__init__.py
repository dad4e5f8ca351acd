"""Trials, keys and scores: long lists of pairs of ids, joined by id and never by row.

`Trials` holds a model and a segment for each row, as codes into tables of ids; a `Key` marks the target trials;
`Scores` holds one score for each trial. `align` and `split_scores` join them. Maps of ids to speakers and tables of
metadata are read here too. `SCENARIOS` and `LEVELS` say what an attacker of a list has and may use.
"""

from evaluation.trials.columns import (
    COLUMN_NAMES,
    TRUTHS,
    LabelError,
    Missing,
    TrialError,
    acquired_scores,
    are_labels,
    check_classes,
    check_dimensions,
    check_index,
    column_of,
    floats_of,
    ids_of,
    known_columns,
    numbers_of,
    split_by_labels,
    truth_of,
    vectors_of,
)
from evaluation.trials.lists import (
    Key,
    RepeatedTrialError,
    Scores,
    Trials,
    align,
    checked_ids,
    factorise,
    find_rows,
    folded,
    join_scores,
    loosened,
    match_ids,
    order_free_digest,
    recode,
    scores_of_trials,
    split_scores,
)
from evaluation.trials.speakers import (
    Speakers,
    TrialSpeakers,
    UnknownSpeakersError,
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
