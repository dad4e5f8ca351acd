"""Trials, keys and scores: long lists of pairs of ids, joined by id and never by row.

`Trials` holds a model and a segment for each row, as codes into tables of ids; a `Key` marks the target trials;
`Scores` holds one score for each trial. `align` and `split_scores` join them. Maps of ids to speakers and tables of
metadata are read here too. `SCENARIOS` and `LEVELS` define what an attacker knows and may use.
"""

from evaluation.trials.columns import (
    COLUMN_NAMES,
    Missing,
    TrialError,
    acquired_scores,
    check_dimensions,
    check_index,
    column_of,
    floats_of,
    ids_of,
    known_columns,
    numbers_of,
    vectors_of,
)
from evaluation.trials.ids import checked_ids, factorise, recode
from evaluation.trials.joining import (
    align,
    find_rows,
    join_scores,
    order_free_digest,
    scores_of_trials,
    split_scores,
)
from evaluation.trials.labels import (
    TRUTHS,
    LabelError,
    are_labels,
    check_classes,
    split_by_labels,
    truth_of,
)
from evaluation.trials.lists import Key, RepeatedTrialError, Scores, Trials
from evaluation.trials.speakers import (
    Speakers,
    TrialSpeakers,
    UnknownSpeakersError,
    doubt_speakers,
    find_speakers,
    group_trials,
    own_trials,
    read_metadata,
    read_speakers,
    warn_of_alike,
)
from evaluation.trials.spellings import folded, loosened, match_ids
from evaluation.trials.tables import cut_lines, delimiter_of, is_number, read_columns
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

__all__ = [
    "ALL_ENROLLED",
    "COLUMN_NAMES",
    "INVERTING",
    "LEVELS",
    "ONE_MODEL",
    "REVERSAL",
    "SCENARIOS",
    "SCENARIO_ORDER",
    "TRUTHS",
    "WHOLE_LIST",
    "Key",
    "LabelError",
    "Missing",
    "RepeatedTrialError",
    "Scenario",
    "Scores",
    "Speakers",
    "TrialError",
    "TrialSpeakers",
    "Trials",
    "UnknownSpeakersError",
    "acquired_scores",
    "align",
    "are_labels",
    "check_classes",
    "check_dimensions",
    "check_index",
    "checked_ids",
    "column_of",
    "cut_lines",
    "delimiter_of",
    "doubt_speakers",
    "factorise",
    "find_rows",
    "find_speakers",
    "floats_of",
    "folded",
    "group_trials",
    "ids_of",
    "is_number",
    "join_scores",
    "known_columns",
    "loosened",
    "match_ids",
    "numbers_of",
    "order_free_digest",
    "own_trials",
    "read_columns",
    "read_metadata",
    "read_speakers",
    "recode",
    "scores_of_trials",
    "split_by_labels",
    "split_scores",
    "truth_of",
    "vectors_of",
    "warn_of_alike",
]
