"""The arrows of the evaluation, in their order: checks, anonymisation, attackers, scores, numbers, report.

The first two do their work; the next three declare what `report` then brings up to date, so that ``spkver status``
knows of all of it from the start. Where a run is to end earlier, `Steps.end_with` ends it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

from spkbase.errors import DataError, Problems
from spkbase.runs import Stage
from spkver.attackers import Attacker, AttackerConfig, Wanted, check_training
from spkver.corpora import is_simulated
from spkver.voiceprivacy.choosing import describe_absent, describe_estimate, hours_of_speech
from spkver.voiceprivacy.conditions import (
    Condition,
    check_attackers,
    declare_attackers,
    declare_scores,
    write_lists,
)
from spkver.voiceprivacy.evidence import declare_evidence
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.making import make_all_scores
from spkver.voiceprivacy.numbers import declare_assessment
from spkver.voiceprivacy.rates import describe_rates, listen, refusing_keys
from spkver.voiceprivacy.results import write_results
from spkver.voiceprivacy.sets import Reading, Sets, check_recordings_of, read_sets
from spkver.voiceprivacy.training_draws import measure_training_draws
from spkver.voiceprivacy.twins import check_sources, make_twins
from spkver.voiceprivacy.usefulness import check_utility, measure_attributes, measure_utility

logger = logging.getLogger(__name__)


def check(experiment: Experiment) -> Sets:
    """Read the sets and find everything that is wrong with them; where checks are asked for, hear all recordings too.

    Raises
    ------
    DataError
        With all problems at once.
    """
    run, steps = experiment.run, experiment.steps
    attackers, anonymizers = experiment.attackers, experiment.anonymizers  # what is wrong with options comes first
    hear = steps.includes("checks")
    can_make, pipes = anonymizers is not None, experiment.allow_pipes
    how = Reading(can_make=can_make, allow_pipes=pipes, hear=hear, jobs=run.jobs, named=experiment.named)
    steps.begin("checks")
    with run.timed("checks"):
        sets = read_sets(experiment.data, run.output, experiment.suffix, experiment.config, how)
        heard = listen(sets, experiment.config, attackers, jobs=run.jobs)
        experiment.outcome.heard[:] = heard
        sets = replace(sets, rates=describe_rates(heard, attackers))
        if hear:
            _check_speech(experiment, sets)
            check_attackers(attackers, sets, experiment.suffix)
    if sets.rates:
        logger.info("sampling rates: %s", sets.rates)
    if hear and not steps.ends_with("checks"):
        _tell_cost(experiment, sets)
    steps.tell("checks", f"{len(sets.datasets)} sets, {len(sets.original)} data directories")
    if is_simulated(experiment.data):
        click.echo("The speech is SIMULATED: synthetic voices from eSpeak NG, not recordings of people.")
    steps.end_with("checks")
    return sets


def anonymise(experiment: Experiment, sets: Sets) -> Sets:
    """Make the twins that are missing, below ``data/``."""
    run, seed = experiment.at("anonymisation"), experiment.config.seed
    experiment.steps.begin("anonymisation")
    sets = make_twins(run, sets, experiment.anonymizers, suffix=experiment.suffix, seed=seed)
    experiment.steps.tell("anonymisation", f"{len(sets.missing)} directories below {experiment.run.path('data')}")
    experiment.steps.end_with("anonymisation")
    return sets


def train(experiment: Experiment) -> list[Attacker]:
    """Declare the attackers; each learns from a training set when a score asks it to."""
    return declare_attackers(experiment.at("scores"), experiment.attackers, experiment.config.seed)


def score(experiment: Experiment, sets: Sets, attackers: Sequence[Attacker]) -> list[Condition]:
    """Write the lists of trials, and declare the scores of every condition by every attacker."""
    write_lists(experiment.run, sets)
    run, seed, outcome = experiment.at("scores"), experiment.config.seed, experiment.outcome
    outcome.attackers[:] = attackers
    outcome.fitted |= {
        training: theirs
        for heard in outcome.heard
        if heard.is_fitted
        for theirs in [declare_attackers(run, heard.attackers, seed)]
        for training in heard.training
    }
    outcome.declare = partial(
        declare_scores, run, sets, attackers, suffix=experiment.suffix, seed=seed, fitted=outcome.fitted
    )
    return outcome.declare()


def assess(experiment: Experiment, scores: Sequence[Condition]) -> Stage[list[dict[str, Any]]]:
    """Declare the numbers of every condition, with their intervals."""
    config = experiment.config
    run = experiment.at("evaluation")
    return declare_assessment(
        run, scores, config.evaluation.of_conditions(), suffix=experiment.suffix, seed=config.seed
    )


def weigh(experiment: Experiment, scores: Sequence[Condition]) -> Stage[dict[str, Any]]:
    """Declare what stands beside the numbers: worst case, ranks, the interval of the minimum, similarity of voices."""
    run, seed = experiment.at("evaluation"), experiment.config.seed
    config = experiment.config.evaluation.of_conditions()
    return declare_evidence(run, scores, config, suffix=experiment.suffix, seed=seed)


def report(
    experiment: Experiment, sets: Sets, scores: Sequence[Condition], numbers: Stage[list[dict[str, Any]]]
) -> str:
    """Bring scores and numbers up to date, measure utility, and write all results; returns the table of results."""
    run, steps, config = experiment.run, experiment.steps, experiment.config
    evidence = weigh(experiment, scores)
    steps.begin("scores")
    if steps.needs("scores"):
        with run.timed("attackers and scores"):
            outside = [other.name for other in experiment.attackers if not isinstance(other, AttackerConfig | Wanted)]
            scores = make_all_scores(experiment.at("scores"), scores, experiment.outcome, outside=outside)
        if experiment.outcome.failures:
            numbers, evidence = assess(experiment, scores), weigh(experiment, scores)
    steps.tell("scores", f"{len(scores)} conditions by {', '.join(config.attackers)}")
    steps.end_with("scores")
    steps.begin("evaluation")
    if steps.needs("evaluation"):
        numbers.bring_up_to_date()
        evidence.bring_up_to_date()
        experiment.outcome.training_draws[:] = measure_training_draws(experiment, sets, scores, numbers.value)
    steps.tell("evaluation", f"{numbers.path}")
    steps.end_with("evaluation")
    steps.begin("utility")
    utility = measure_utility(experiment.at("utility"), sets, config)
    steps.tell("utility", ", ".join(utility) or "none is asked for")
    steps.end_with("utility")
    steps.begin("report")
    outcome = experiment.outcome
    found = measure_attributes(
        experiment.at("report"), sets, config, outcome.attackers, numbers.value, fitted=outcome.fitted
    )
    experiment.outcome.attributes.update(found)
    return write_results(experiment, sets, numbers.value, utility, evidence.value)


def _tell_cost(experiment: Experiment, sets: Sets) -> None:
    """Say before the start how long the attackers take about, and which would run but cannot."""
    config, run, anonymizers = experiment.config, experiment.run, experiment.anonymizers
    hours = hours_of_speech(sets, {} if anonymizers is None else anonymizers.draws, jobs=run.jobs)
    logger.info("%s", describe_estimate(config, hours, run.jobs or os.cpu_count() or 1))
    for line in describe_absent(config):
        logger.warning("%s", line)


def _check_speech(experiment: Experiment, sets: Sets) -> None:
    """Check headers and options against what there is, of all directories that are there, all problems at once."""
    config, jobs = experiment.config, experiment.run.jobs
    problems, refusing = Problems(), refusing_keys(config)
    built_in: dict[str, list[AttackerConfig]] = {}
    for heard in experiment.outcome.heard:
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
                    try:
                        check_training(directory, built_in[name], seed=config.seed, jobs=jobs)
                    except DataError as error:
                        problems.note(error)
    problems.raise_if_any()
