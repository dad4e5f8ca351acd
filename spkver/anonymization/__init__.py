"""Anonymisation of speech: baselines to compare with, and users' plug-ins.

`anonymize_datadir` makes an anonymised data directory, with a record of how it was made.
`AnonymizerConfig` names the anonymiser and its parameters.
"""

from spkver.anonymization.anonymizers import (
    BUILT_IN,
    INVERSES,
    LEVELS,
    AnonymizerConfig,
    Inverse,
    make_anonymizer,
)
from spkver.anonymization.directories import (
    RECORD,
    anonymised_twin,
    anonymize_datadir,
    recorded_anonymizer,
    twin_stage,
    undo_datadir,
)
from spkver.anonymization.linear_prediction import burg
from spkver.anonymization.mcadams_coefficient import turn_poles
from spkver.anonymization.polynomials import quadratic_factors
from spkver.anonymization.pseudo_speakers import (
    PLDA_CHAIN,
    PseudoSpeakerRules,
    anonymize_embeddings,
    cosine_affinities,
    drawn_mean,
    farthest_voices,
)

__all__ = [
    "BUILT_IN",
    "INVERSES",
    "LEVELS",
    "PLDA_CHAIN",
    "RECORD",
    "AnonymizerConfig",
    "Inverse",
    "PseudoSpeakerRules",
    "anonymised_twin",
    "anonymize_datadir",
    "anonymize_embeddings",
    "burg",
    "cosine_affinities",
    "drawn_mean",
    "farthest_voices",
    "make_anonymizer",
    "quadratic_factors",
    "recorded_anonymizer",
    "turn_poles",
    "twin_stage",
    "undo_datadir",
]
