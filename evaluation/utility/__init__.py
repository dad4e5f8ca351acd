"""Utility of anonymised speech: words (WER, CER), emotions (UAR), intonation (F0 correlation); attributes that it
reveals.

Each measure is a sum or a mean over speakers, and has an interval by a bootstrap of speakers.
"""

from evaluation.utility.attributes import (
    Attributes,
    Sides,
    attribute_leakage,
    attribute_risk,
    inferred_sets,
)
from evaluation.utility.error_rates import (
    NORMALISERS,
    count_errors,
    error_rate,
    error_rate_differences,
)
from evaluation.utility.inference import (
    InferenceRisk,
    InferredSets,
    inference_risk,
    people_by_k,
    set_sizes,
    shares_named,
    uniqueness,
)
from evaluation.utility.lists import (
    check_same,
    read_labels,
    read_recordings,
    read_transcripts,
    speakers_of,
)
from evaluation.utility.pitch import TrackComparison, Tracker, compare_recordings, mean_correlation
from evaluation.utility.recalls import (
    CONVENTIONS,
    average_recall,
    confusions,
    recall_differences,
)
from evaluation.utility.voices import (
    CALIBRATIONS,
    SimilarityMatrix,
    VoiceSimilarity,
    compare_voices,
    de_identification,
    distinctiveness,
    gain_of_distinctiveness,
    matrix_of_voices,
    similarity_matrix,
)

__all__ = [
    "CALIBRATIONS",
    "CONVENTIONS",
    "NORMALISERS",
    "Attributes",
    "InferenceRisk",
    "InferredSets",
    "Sides",
    "SimilarityMatrix",
    "TrackComparison",
    "Tracker",
    "VoiceSimilarity",
    "attribute_leakage",
    "attribute_risk",
    "average_recall",
    "check_same",
    "compare_recordings",
    "compare_voices",
    "confusions",
    "count_errors",
    "de_identification",
    "distinctiveness",
    "error_rate",
    "error_rate_differences",
    "gain_of_distinctiveness",
    "inference_risk",
    "inferred_sets",
    "matrix_of_voices",
    "mean_correlation",
    "people_by_k",
    "read_labels",
    "read_recordings",
    "read_transcripts",
    "recall_differences",
    "set_sizes",
    "shares_named",
    "similarity_matrix",
    "speakers_of",
    "uniqueness",
]
