"""How sure a number is: resamples of speakers, intervals, paired differences, groups of trials.

`sample_from` and `confidence_intervals` take scores with their speakers; what leaves is an `Interval` for each
metric. docs/uncertainty.md says how often the intervals hold.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
