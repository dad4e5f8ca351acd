"""The first step: everything that is wrong with data and configuration is found before anything long starts."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from itertools import product
from typing import Any

import click

from spkbase.errors import Problems
from spkbase.files import fingerprint
from spkver.attackers import AttackerConfig, check_training
from spkver.audio import check_headers
from spkver.corpora import is_simulated
from spkver.features import check_recordings
from spkver.voiceprivacy.choosing import (
    describe_absent,
    describe_estimate,
    describe_rates,
    hours_of_speech,
    listen,
    refusing_keys,
)
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.scores import (
    check_attackers,
)
from spkver.voiceprivacy.sets import Sets, read_sets
from spkver.voiceprivacy.utility import check_utility

logger = logging.getLogger(__name__)


def check(experiment: Experiment) -> Sets:
    """Read the sets and find everything that is wrong with them; where checks are asked for, hear all recordings too.

    Raises
    ------
    DataError
        With all problems at once.
    """
    run, steps, config = experiment.run, experiment.steps, experiment.config
    attackers, anonymizers = experiment.attackers, experiment.anonymizers  # what is wrong with options comes first
    hear = steps.includes("checks")
    steps.begin("checks", run)
    with run.timed("checks"):
        how: dict[str, Any] = {"can_make": anonymizers is not None, "allow_pipes": experiment.allow_pipes, "hear": hear}
        how |= {"named": experiment.named, "jobs": run.jobs}
        sets = read_sets(experiment.data, run.output, experiment.suffix, config, **how)
        heard = listen(sets, config, attackers, jobs=run.jobs)
        sets = replace(sets, rates=describe_rates(heard, attackers), heard=tuple(heard))
        if hear:
            _check_speech(experiment, sets)
            check_attackers(attackers, sets, experiment.suffix)
    if sets.rates:
        logger.info("sampling rates: %s", sets.rates)
    if hear and not steps.ends_with("checks"):  # how long the attackers take about, and which would run but cannot
        hours = hours_of_speech(sets, {} if anonymizers is None else anonymizers.draws, jobs=run.jobs)
        logger.info("%s", describe_estimate(config, hours, run.jobs or os.cpu_count() or 1))
        for line in describe_absent(config):
            logger.warning("%s", line)
    if is_simulated(experiment.data):
        click.echo("The speech is SIMULATED: synthetic voices from eSpeak NG, not recordings of people.")
    steps.end("checks", f"{len(sets.datasets)} sets, {len(sets.original)} data directories")
    return sets


def _check_speech(experiment: Experiment, sets: Sets) -> None:
    """Check headers and options against what there is, of all directories that are there, all problems at once."""
    config, jobs = experiment.config, experiment.run.jobs
    problems, of_headers = Problems(), Problems()
    built_in: dict[str, list[AttackerConfig]] = {}
    for heard in sets.heard:
        configs = [getattr(attacker, "config", None) for attacker in heard.attackers]
        attackers = [config for config in configs if isinstance(config, AttackerConfig)]
        built_in |= dict.fromkeys(heard.training, attackers)
        names = {name for one in sets.datasets if one.training in heard.training for name in one.directories}
        kinds = {fingerprint(attacker.features.extraction()): attacker.features for attacker in attackers}
        for features, side in product(kinds.values(), (sets.original, sets.twins)):
            for recordings in [directory.recordings for name, directory in side.items() if name in names]:
                check_recordings(recordings, features, work=experiment.run.work, problems=of_headers)
    for error in of_headers.errors:
        remedy = error.remedy
        if remedy is not None and remedy.startswith("set features.resample"):  # the key has another place here
            keys = " and ".join(refusing_keys(config))
            remedy = f"leave {keys} out: recordings are then resampled to one rate for each set"
        problems.add(error.text, file=error.file, line=error.line, remedy=remedy)
    for name in sets.missing:  # what is to be anonymised
        check_headers(sets.original[name].recordings, problems=problems)
    check_utility(sets, config, problems, jobs=jobs)
    if not problems.errors:
        for name in sets.training_sets:
            for directory in sets.pair(name):
                with problems.noted():
                    check_training(directory, built_in[name], seed=config.seed, jobs=jobs)
    problems.raise_if_any()
