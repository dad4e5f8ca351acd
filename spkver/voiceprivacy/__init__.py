"""The VoicePrivacy evaluation: checks -> anonymise -> train -> score -> assess -> utility -> report.

The page is recipes/voiceprivacy/run.py. Each step is a function that takes the `Experiment` (the run, the data, the
configuration and how far to go) and what the steps before it have returned; it does its work when it is called, or
takes what is up to date. Where a run is to end earlier, `Experiment.end` ends it. What leaves is an output folder with
``results.json`` and ``report.html``.
"""

from spkver.voiceprivacy.experiment import STEPS, Experiment, evaluation_command
from spkver.voiceprivacy.inspection import check
from spkver.voiceprivacy.outputs import report
from spkver.voiceprivacy.scores import score, train
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.table import assess
from spkver.voiceprivacy.utility import utility
from spkver.voiceprivacy.versions import anonymise
