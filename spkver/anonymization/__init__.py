"""Anonymisation of speech: baselines to compare with, and doors for anonymisers of others.

A data directory enters (`anonymize_datadir`), its anonymised twin leaves, with a record of how it was made.
`AnonymizerConfig` names the anonymiser and its parameters.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
