"""The VoicePrivacy evaluation: checks -> anonymise -> train -> score -> assess -> report.

The page is recipes/voiceprivacy/run.py; each arrow is a function of `arrows`, which takes the `Experiment`: the
run, the data, the configuration and how far to go. What leaves is an output folder with ``results.json`` and
``report.html``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
