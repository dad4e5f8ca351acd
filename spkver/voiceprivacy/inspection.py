"""The first step: errors in data and configuration are found before the first long step."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import click

from spkbase.errors import Problems, few
from spkbase.files import fingerprint, load_json
from spkbase.work import default_jobs
from spkver.attackers import (
    Attacker,
    check_training,
    default_attackers,
    named_only,
)
from spkver.audio import check_headers, usable_recordings
from spkver.corpora import is_simulated
from spkver.datadir import DataDir
from spkver.features import check_recordings
from spkver.voiceprivacy.choosing import (
    describe_absent,
    describe_rates,
    describe_unwatched,
    features_of,
    fit_attackers,
    read_headers,
)
from spkver.voiceprivacy.estimate import check_disk, estimate
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.learning import WORK
from spkver.voiceprivacy.plan import check_attackers
from spkver.voiceprivacy.recording_checks import check_audio
from spkver.voiceprivacy.sets import Sets, noted_each, read_sets, stamp_of
from spkver.voiceprivacy.utility import check_utility
from spkver.voiceprivacy.versions import FOLDER, used_part

logger = logging.getLogger(__name__)


def check(experiment: Experiment) -> Sets:
    """Read the sets and all recordings, and report all problems.

    Raises
    ------
    DataError
        With all problems at once.
    """
    run, config = experiment.run, experiment.config
    attackers = experiment.attackers  # errors in options come first
    anonymizer = experiment.anonymizer
    experiment.begin("checks")
    with run.timed("checks"):
        sets = read_sets(
            experiment.data,
            run,
            experiment.suffix,
            config,
            can_make=anonymizer is not None,
            allow_pipes=experiment.allow_pipes,
            named=experiment.named,
        )
        headers = read_headers(sets, run)
        groups = fit_attackers(sets, headers, config, attackers)
        record = experiment.data / "split.json"
        dropped = tuple(load_json(record).get("left_out", ())) if record.is_file() else ()
        sets = replace(sets, rates=describe_rates(groups, attackers), rate_groups=groups, dropped=dropped)
        if dropped:
            logger.warning("%s: %d utterances were left out on both sides: %s", record, len(dropped), few(dropped))
        _check_speech(experiment, sets)
        check_attackers(attackers, sets, experiment.suffix)
        if not sets.missing:
            check_audio(run, sets, experiment.suffix)
    if sets.rates:
        logger.info("sampling rates: %s", sets.rates)
    if experiment.until != "checks":  # estimated time, and attackers that cannot run here
        draws = anonymizer.draws("training") if anonymizer else 1
        parts = {name: len(used_part(sets, name, draws, config)) for name in sets.training_sets}
        found = estimate(config, sets, headers, anonymizer, parts, run.jobs or default_jobs())
        logger.info("%s", found)
        check_disk(found, run.output, (FOLDER, WORK))
        for line in (*describe_absent(config), *filter(None, [describe_unwatched(config)])):
            logger.warning("%s", line)
        if config.attackers == default_attackers():
            logger.debug("attackers that run only if they are named: %s", ", ".join(named_only()))
    if is_simulated(experiment.data):
        click.echo("The speech is SIMULATED: synthetic voices of eSpeak NG, not recordings of people.")
    experiment.end("checks", f"{len(sets.datasets)} sets, {len(sets.original)} data directories")
    return sets


def _check_speech(experiment: Experiment, sets: Sets) -> None:
    """Check recordings and options of all existing directories; all problems are reported at once.

    Recordings that an earlier run has found usable are not opened again.
    """
    run, config, problems = experiment.run, experiment.config, Problems()
    directories = [*sets.original.values(), *sets.twins.values()]
    with noted_each(problems):
        run.once(
            "usable recordings",
            partial(_check_recordings, experiment, sets),
            inputs=[config.attackers, config.attacker_settings, config.seed, sets.missing],
            after=[stamp_of(run, directory) for directory in directories],
        )
    check_utility(sets, config, problems, jobs=run.jobs)
    problems.raise_if_any()


def _check_recordings(experiment: Experiment, sets: Sets) -> None:
    """Check that attackers can use all recordings, and that there are enough to train on."""
    config, jobs = experiment.config, experiment.run.jobs
    problems = Problems()
    directories = [*sets.original.values(), *sets.twins.values()]
    listed = {str(path): path for directory in directories for path in directory.recordings.values()}
    if any(spec.row for spec, _ in experiment.attackers):  # they read the recordings
        listed = usable_recordings(listed, problems, jobs=jobs)

    def usable(directory: DataDir) -> dict[str, Path]:
        return {name: path for name, path in directory.recordings.items() if str(path) in listed}

    by_mixture: dict[str, list[Attacker]] = {}
    for group in sets.rate_groups:
        attackers = [chosen[1] for chosen in group.attackers if features_of(chosen) is not None]
        by_mixture |= dict.fromkeys(group.training, attackers)
        names = {name for one in sets.datasets if one.training in group.training for name in one.directories}
        kinds = {fingerprint(one.source.features.extraction()): one.source.features for one in attackers}
        for features, side in product(kinds.values(), (sets.original, sets.twins)):
            for recordings in [usable(directory) for name, directory in side.items() if name in names]:
                check_recordings(recordings, features, work=experiment.run.work, problems=problems)
    for name in sets.missing:  # recordings that will be anonymised
        check_headers(usable(sets.original[name]), problems=problems)
    if not problems.errors:
        for name in sets.training_sets:
            for directory in sets.pair(name):
                with problems.noted():
                    check_training(directory, by_mixture[name], seed=config.seed, jobs=jobs)
    problems.raise_if_any()
