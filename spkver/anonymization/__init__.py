"""Anonymisation of speech: baselines to compare with, and plug-ins of users.

A data directory enters (`anonymize_datadir`), an anonymised one leaves, with a record of how it was made.
`AnonymizerConfig` names the anonymiser and its parameters.
"""

from spkver.anonymization.anonymizers import make_anonymizer
from spkver.anonymization.config import BUILT_IN, LEVELS, AnonymizerConfig
from spkver.anonymization.directories import RECORD, anonymize_datadir, finished_twin, progress
from spkver.anonymization.inverses import INVERSES, Inverse, recorded_anonymizer, undo_datadir
from spkver.anonymization.mcadams_coefficient import burg, quadratic_factors, turn_poles
from spkver.anonymization.pseudo_speakers import (
    PLDA_CHAIN,
    PseudoSpeakerRules,
    anonymize_embeddings,
    cosine_affinities,
    drawn_mean,
    farthest_voices,
)
