"""The steps of the evaluation, in their order: checks, anonymisation, attackers, scores, numbers, utility, report.

Each does its work when it is called, or takes what is up to date, and returns what it has found. Where a run is to end
earlier, `Steps.end` ends it.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

import click

from spkbase.errors import Problems
from spkver.attackers import Attacker, AttackerConfig, Wanted, check_training
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
from spkver.voiceprivacy.outputs import write_results
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
from spkver.voiceprivacy.table import Table, make_table
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


def anonymise(experiment: Experiment, sets: Sets) -> Sets:
    """Make the twins that are missing, below ``data/``."""
    run, seed = experiment.steps.begin("anonymisation", experiment.run), experiment.config.seed
    sets = make_twins(run, sets, experiment.anonymizers, suffix=experiment.suffix, seed=seed)
    experiment.steps.end("anonymisation", f"{len(sets.missing)} directories below {run.path('data')}")
    return sets


def train(experiment: Experiment, sets: Sets) -> Attackers:
    """Write the lists of trials, and have every attacker learn that scores are missing of; none learns otherwise.

    Raises
    ------
    DataError
        With all that is wrong with what attackers of others give.
    """
    if not experiment.steps.needs("scores"):
        return Attackers({})
    run, seed = experiment.steps.begin("scores", experiment.run), experiment.config.seed
    write_lists(run, sets)
    by_training: dict[str, list[Attacker]] = {}
    for heard in sets.heard:
        by_training |= dict.fromkeys(heard.training, put_to_work(run, heard.attackers, seed))
    with run.timed("attackers and scores"):
        attackers = plan_scores(run, sets, by_training, suffix=experiment.suffix, seed=seed)
        learn_all(run, attackers)
    return attackers


def score(experiment: Experiment, sets: Sets, attackers: Attackers) -> ScoreTable:
    """Make the scores of every condition by every attacker, fusions last; who fails is left out, and is named.

    Raises
    ------
    DataError, Exception
        See `make_scores`.
    """
    steps, config = experiment.steps, experiment.config
    if not steps.needs("scores"):
        return ScoreTable()
    outside = [other.name for other in experiment.attackers if not isinstance(other, AttackerConfig | Wanted)]
    options: dict[str, Any] = {"suffix": experiment.suffix, "seed": config.seed, "outside": outside}
    run = steps.seen("scores", experiment.run)
    with run.timed("attackers and scores"):
        scores = make_scores(run, sets, attackers, **options)
    steps.failures[:] = scores.failures
    steps.end("scores", f"{len(scores.conditions)} conditions by {', '.join(config.attackers)}")
    return scores


def assess(experiment: Experiment, sets: Sets, attackers: Attackers, scores: ScoreTable) -> Table:
    """Compute the numbers of every condition with their intervals, and what stands beside them."""
    steps, config = experiment.steps, experiment.config
    if not steps.needs("evaluation"):
        return Table()
    run, settings = steps.begin("evaluation", experiment.run), config.evaluation.of_conditions()
    table = make_table(run, scores.conditions, settings, suffix=experiment.suffix, seed=config.seed)
    table = replace(table, training_draws=measure_training_draws(experiment, run, sets, attackers, table, scores))
    steps.end("evaluation", f"{run.path('numbers')}")
    return table


def utility(experiment: Experiment, sets: Sets) -> dict[str, Any]:
    """Measure what anonymised speech is still good for, where it is asked for."""
    run = experiment.steps.begin("utility", experiment.run)
    measured = measure_utility(run, sets, experiment.config)
    experiment.steps.end("utility", ", ".join(measured) or "none is asked for")
    return measured


def report(
    experiment: Experiment, sets: Sets, attackers: Attackers, scores: ScoreTable, table: Table, utility: dict[str, Any]
) -> str:
    """Measure what vectors tell besides identity, and write all results; returns the table of results."""
    run = experiment.steps.begin("report", experiment.run)
    attributes = measure_attributes(run, sets, experiment.config, attackers.by_training, table.rows)
    return write_results(experiment, sets, scores, table, {"utility": utility, "attributes": attributes})
