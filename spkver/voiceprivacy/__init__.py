"""The VoicePrivacy evaluation: checks -> anonymise -> train -> score -> assess -> report.

The page is recipes/voiceprivacy/run.py; each arrow is a function of `arrows`, which takes the `Experiment`: the
run, the data, the configuration and how far to go. What leaves is an output folder with ``results.json`` and
``report.html``.
"""

from spkver.voiceprivacy.arrows import anonymise, assess, check, report, score, train
from spkver.voiceprivacy.checks import check_all
from spkver.voiceprivacy.command import evaluation_command
from spkver.voiceprivacy.conditions import declare_scores, write_lists
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.making import make_scores
from spkver.voiceprivacy.numbers import declare_assessment
from spkver.voiceprivacy.results import (
    averages,
    challenge_protocol,
    challenge_rows,
    earlier_results,
    hashes,
    write_challenge_files,
)
from spkver.voiceprivacy.sets import Sets, check_recordings_of, read_sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.steps import STEPS, Steps
from spkver.voiceprivacy.summary import summarise, verdict
from spkver.voiceprivacy.twins import Anonymizers, check_sources, describe, find_anonymizers, make_twins
from spkver.voiceprivacy.usefulness import check_utility, measure_utility
