"""The VoicePrivacy evaluation, from the checks of the data to the report.

The workflow is recipes/voiceprivacy/run.py. Each step is a function that takes the `Experiment` (the run, the data, the
configuration and the last step) and the results of earlier steps. It does its work when it is called, or reuses results
that are up to date. `Experiment.end` ends the run after the last step. The output folder then holds ``results.json``
and ``report.html``.
"""

from spkver.voiceprivacy.assessment import assess
from spkver.voiceprivacy.experiment import STEPS, Experiment, evaluation_command
from spkver.voiceprivacy.facts import find_facts
from spkver.voiceprivacy.inspection import check
from spkver.voiceprivacy.learning import extract, fit
from spkver.voiceprivacy.pairs import check_pairs
from spkver.voiceprivacy.plan import plan_attacks
from spkver.voiceprivacy.reporting import report
from spkver.voiceprivacy.rows import Row, read_plan
from spkver.voiceprivacy.scores import score
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.submission import (
    CHALLENGES,
    SubmissionCheck,
    check_submission,
    find_suffix,
    ranked_among_baselines,
    utility_settings,
)
from spkver.voiceprivacy.utility import utility
from spkver.voiceprivacy.versions import anonymise
from spkver.voiceprivacy.words import recognise_words

__all__ = [
    "CHALLENGES",
    "STEPS",
    "Config",
    "Experiment",
    "Row",
    "SubmissionCheck",
    "anonymise",
    "assess",
    "check",
    "check_pairs",
    "check_submission",
    "evaluation_command",
    "extract",
    "find_facts",
    "find_suffix",
    "fit",
    "plan_attacks",
    "ranked_among_baselines",
    "read_plan",
    "recognise_words",
    "report",
    "score",
    "utility",
    "utility_settings",
]
