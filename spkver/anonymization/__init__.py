"""Anonymisation of speech: baselines to compare with, and data directories anonymised by them or by one's own."""

from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.directories import anonymize_datadir, finished_twin

__all__ = ["AnonymizerConfig", "anonymize_datadir", "finished_twin"]
