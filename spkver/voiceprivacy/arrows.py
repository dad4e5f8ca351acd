"""The arrows of the evaluation, in their order: checks, anonymisation, attackers, scores, numbers, report.

The first two do their work; the next three declare what `report` then brings up to date, so that ``spkver status``
knows of all of it from the start. Where a run is to end earlier, `Steps.end_with` ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from spkbase.errors import DataError, Problems
from spkbase.runs import Stage
from spkver.attackers import Attacker, AttackerConfig, Wanted, check_training
from spkver.corpora import is_simulated
from spkver.voiceprivacy.assessment import declare_assessment
from spkver.voiceprivacy.conditions import (
    Condition,
    check_attackers,
    declare_attackers,
    declare_scores,
)
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.layout import write_lists
from spkver.voiceprivacy.making import make_scores, without
from spkver.voiceprivacy.results import write_results
from spkver.voiceprivacy.sets import Reading, Sets, check_recordings_of, read_sets
from spkver.voiceprivacy.twins import check_sources, make_twins
from spkver.voiceprivacy.usefulness import check_utility, measure_utility


def check(experiment: Experiment) -> Sets:
    """Read the sets and find everything that is wrong with them; where checks are asked for, hear all recordings too.

    Raises
    ------
    DataError
        With all problems at once.
    """
    run, steps = experiment.run, experiment.steps
    attackers, anonymizers = experiment.built_in, experiment.anonymizers  # what is wrong with options comes first
    hear = steps.includes("checks")
    how = Reading(can_make=anonymizers is not None, allow_pipes=experiment.allow_pipes, hear=hear, jobs=run.jobs)
    steps.begin("checks")
    with run.timed("checks"):
        sets = read_sets(experiment.data, run.output, experiment.suffix, experiment.config, how)
        if hear:
            _check_speech(experiment, sets, attackers)
            check_attackers(experiment.attackers, sets, experiment.suffix)
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
    run, seed = experiment.at("scores"), experiment.config.seed
    return declare_scores(run, sets, attackers, suffix=experiment.suffix, seed=seed)


def assess(experiment: Experiment, scores: Sequence[Condition]) -> Stage[list[dict[str, Any]]]:
    """Declare the numbers of every condition, with their intervals."""
    config = experiment.config
    run = experiment.at("evaluation")
    return declare_assessment(run, scores, config.evaluation, suffix=experiment.suffix, seed=config.seed)


def report(
    experiment: Experiment, sets: Sets, scores: Sequence[Condition], numbers: Stage[list[dict[str, Any]]]
) -> str:
    """Bring scores and numbers up to date, measure utility, and write all results; returns the table of results."""
    run, steps, config = experiment.run, experiment.steps, experiment.config
    run.write_plan()
    steps.begin("scores")
    if steps.needs("scores"):
        with run.timed("attackers and scores"):
            outside = [other.name for other in experiment.attackers if not isinstance(other, AttackerConfig | Wanted)]
            experiment.outcome.failures[:] = make_scores(experiment.at("scores"), scores, outside=outside)
        if experiment.outcome.failures:
            scores = without(scores, experiment.outcome.failures)
            numbers = assess(experiment, scores)
    steps.tell("scores", f"{len(scores)} conditions by {', '.join(config.attackers)}")
    steps.end_with("scores")
    steps.begin("evaluation")
    if steps.needs("evaluation"):
        numbers.bring_up_to_date()
    steps.tell("evaluation", f"{numbers.path}")
    steps.end_with("evaluation")
    steps.begin("utility")
    utility = measure_utility(experiment.at("utility"), sets, config)
    steps.tell("utility", ", ".join(utility) or "none is asked for")
    steps.end_with("utility")
    steps.begin("report")
    return write_results(experiment, sets, numbers.value, utility)


def _check_speech(experiment: Experiment, sets: Sets, attackers: Sequence[AttackerConfig]) -> None:
    """Check headers and options against what there is, of all directories that are there, all problems at once."""
    config, jobs = experiment.config, experiment.run.jobs
    problems = Problems()
    check_recordings_of(sets, [attacker.features for attacker in attackers], problems, jobs=jobs)
    check_sources(sets, problems)
    check_utility(sets, config, problems, jobs=jobs)
    if not problems.errors:
        for name in dict.fromkeys(dataset.training for dataset in sets.datasets):
            for directory in (sets.original[name], sets.twins.get(name)):
                if directory is not None:
                    try:
                        check_training(directory, attackers, seed=config.seed, jobs=jobs)
                    except DataError as error:
                        problems.note(error)
    problems.raise_if_any()
