"""The steps of the evaluation, in their order: checks, anonymisation, attackers, scores, numbers, utility, report.

Each does its work when it is called, or takes what is up to date, and returns what it has found. Where a run is to end
earlier, `Steps.end_with` ends it.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

import click

from spkbase.errors import DataError, Problems
from spkver.attackers import AttackerConfig, Wanted, check_training
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
from spkver.voiceprivacy.numbers import Numbers, assess_conditions, find_evidence
from spkver.voiceprivacy.results import write_results
from spkver.voiceprivacy.scores import (
    Attackers,
    ScoreTable,
    check_attackers,
    learn_all,
    make_scores,
    plan_scores,
    put_to_work,
    write_lists,
)
from spkver.voiceprivacy.sets import Sets, check_recordings_of, read_sets
from spkver.voiceprivacy.training_draws import measure_training_draws
from spkver.voiceprivacy.twins import check_sources, make_twins
from spkver.voiceprivacy.utility import check_utility, measure_attributes, measure_utility

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
    how: dict[str, Any] = {"can_make": can_make, "allow_pipes": pipes, "hear": hear, "named": experiment.named}
    steps.begin("checks")
    with run.timed("checks"):
        sets = read_sets(experiment.data, run.output, experiment.suffix, experiment.config, **how, jobs=run.jobs)
        heard = listen(sets, experiment.config, attackers, jobs=run.jobs)
        sets = replace(sets, rates=describe_rates(heard, attackers), heard=tuple(heard))
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


def train(experiment: Experiment, sets: Sets) -> Attackers:
    """Write the lists of trials, and have every attacker learn that scores are missing of; none learns otherwise.

    Raises
    ------
    DataError
        With all that is wrong with what attackers of others give.
    """
    run, seed, suffix = experiment.at("scores"), experiment.config.seed, experiment.suffix
    if not experiment.steps.needs("scores"):
        return Attackers({})
    experiment.steps.begin("scores")
    write_lists(experiment.run, sets)
    usual = put_to_work(run, experiment.attackers, seed)
    by_training = {
        training: put_to_work(run, heard.attackers, seed) if heard.is_fitted else usual
        for heard in sets.heard
        for training in heard.training
    }
    with experiment.run.timed("attackers and scores"):
        attackers = plan_scores(run, sets, by_training, suffix=suffix, seed=seed)
        learn_all(run, attackers)
    return attackers


def score(experiment: Experiment, sets: Sets, attackers: Attackers) -> ScoreTable:
    """Make the scores of every condition by every attacker, fusions last; who fails is left out, and is named.

    Raises
    ------
    DataError, Exception
        See `make_scores`.
    """
    run, steps, seed = experiment.run, experiment.steps, experiment.config.seed
    if not steps.needs("scores"):
        return ScoreTable()
    outside = [other.name for other in experiment.attackers if not isinstance(other, AttackerConfig | Wanted)]
    options: dict[str, Any] = {"suffix": experiment.suffix, "seed": seed, "outside": outside}
    with run.timed("attackers and scores"):
        scores = make_scores(experiment.at("scores"), sets, attackers, **options)
    steps.failures[:] = scores.failures
    steps.tell("scores", f"{len(scores.conditions)} conditions by {', '.join(experiment.config.attackers)}")
    steps.end_with("scores")
    return scores


def assess(experiment: Experiment, sets: Sets, scores: ScoreTable) -> Numbers:
    """Compute the numbers of every condition with their intervals, and what stands beside them."""
    steps, config = experiment.steps, experiment.config
    if not steps.needs("evaluation"):
        return Numbers()
    steps.begin("evaluation")
    run, settings = experiment.at("evaluation"), config.evaluation.of_conditions()
    options: dict[str, Any] = {"suffix": experiment.suffix, "seed": config.seed}
    conditions = assess_conditions(run, scores.conditions, settings, **options)
    evidence = find_evidence(run, scores.conditions, settings, **options)
    numbers = Numbers(conditions, evidence, measure_training_draws(experiment, sets, scores, conditions))
    steps.tell("evaluation", f"{run.path(f'conditions{experiment.suffix}.json')}")
    steps.end_with("evaluation")
    return numbers


def utility(experiment: Experiment, sets: Sets) -> dict[str, Any]:
    """Measure what anonymised speech is still good for, where it is asked for."""
    steps = experiment.steps
    steps.begin("utility")
    measured = measure_utility(experiment.at("utility"), sets, experiment.config)
    steps.tell("utility", ", ".join(measured) or "none is asked for")
    steps.end_with("utility")
    return measured


def report(experiment: Experiment, sets: Sets, scores: ScoreTable, numbers: Numbers, measured: dict[str, Any]) -> str:
    """Measure what vectors tell besides identity, and write all results; returns the table of results."""
    experiment.steps.begin("report")
    run, config = experiment.at("report"), experiment.config
    attributes = measure_attributes(run, sets, config, scores.attackers, numbers.conditions)
    return write_results(experiment, sets, scores, numbers, {"utility": measured, "attributes": attributes})


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
                    try:
                        check_training(directory, built_in[name], seed=config.seed, jobs=jobs)
                    except DataError as error:
                        problems.note(error)
    problems.raise_if_any()
