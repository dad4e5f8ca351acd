"""The VoicePrivacy evaluation: checks -> anonymise -> train -> score -> assess -> utility -> report.

The page is recipes/voiceprivacy/run.py; each step is a function of `workflow`, which takes the `Experiment` (the run,
the data, the configuration and how far to go) and what the steps before it have returned. What leaves is an output
folder with ``results.json`` and ``report.html``.
"""

from spkver.voiceprivacy.command import evaluation_command
from spkver.voiceprivacy.experiment import STEPS, Experiment, Steps
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.workflow import anonymise, assess, check, report, score, train, utility
