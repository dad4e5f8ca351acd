"""The first step: everything that is wrong with data and configuration is found before anything long starts."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

import click

from spkbase.errors import Problems
from spkver.attackers import AttackerConfig, check_training
from spkver.corpora import is_simulated
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
from spkver.voiceprivacy.sets import Sets, check_recordings_of, read_sets
from spkver.voiceprivacy.twins import check_sources
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
    problems, refusing = Problems(), refusing_keys(config)
    built_in: dict[str, list[AttackerConfig]] = {}
    for heard in sets.heard:
        attackers = [attacker for attacker in heard.attackers if isinstance(attacker, AttackerConfig)]
        built_in |= dict.fromkeys(heard.training, attackers)
        there = replace(sets, datasets=tuple(one for one in sets.datasets if one.training in heard.training))
        features = [attacker.features for attacker in attackers]
        check_recordings_of(there, features, problems, jobs=jobs, refusing=refusing)
    check_sources(sets, problems)
    check_utility(sets, config, problems, jobs=jobs)
    if not problems.errors:
        for name in dict.fromkeys(dataset.training for dataset in sets.datasets):
            for directory in (sets.original[name], sets.twins.get(name)):
                if directory is not None:
                    with problems.noted():
                        check_training(directory, built_in[name], seed=config.seed, jobs=jobs)
    problems.raise_if_any()
