"""The first step: errors in data and configuration are found before the first long step."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import click

from spkbase.errors import Problems, few
from spkbase.files import fingerprint, load_json
from spkbase.work import Work, default_jobs
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
from spkver.voiceprivacy.pairs import count_heard
from spkver.voiceprivacy.plan import check_attackers
from spkver.voiceprivacy.recording_checks import check_audio
from spkver.voiceprivacy.sets import RateGroup, Sets, noted_each, read_sets, stamp_of
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
    run = experiment.run
    config = experiment.config
    attackers = experiment.attackers  # report errors in options first
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
            anonymised=experiment.anonymised,
        )
        headers = read_headers(sets, run)
        groups = fit_attackers(sets, headers, config, attackers)
        dropped = _dropped(experiment.data / "split.json")
        sets = replace(
            sets, rates=describe_rates(groups, attackers), rate_groups=groups, dropped=dropped
        )
        _check_speech(experiment, sets)
        check_attackers(attackers, sets, experiment.suffix)
        if not sets.missing:
            check_audio(run, sets, experiment.suffix)
    if sets.rates:
        logger.info("sampling rates: %s", sets.rates)
    if experiment.until != "checks":
        _look_ahead(experiment, sets, headers)
    if is_simulated(experiment.data):
        click.echo(
            "The speech is SIMULATED: synthetic voices of eSpeak NG, not recordings of people."
        )
    experiment.end("checks", f"{len(sets.datasets)} sets, {len(sets.original)} data directories")
    return sets


def _dropped(record: Path) -> tuple[str, ...]:
    """Return the utterances that a record of `spkver split` names as left out, with a warning if there are any."""
    if not record.is_file():
        return ()
    dropped = tuple(load_json(record).get("left_out", ()))
    if dropped:
        logger.warning(
            "%s: %d utterances were left out on both sides: %s", record, len(dropped), few(dropped)
        )
    return dropped


def _look_ahead(
    experiment: Experiment, sets: Sets, headers: Mapping[str, Sequence[tuple[int, int, float]]]
) -> None:
    """Log an estimate of the run, and which attackers cannot run here; check that the disk has room for it."""
    run = experiment.run
    config = experiment.config
    anonymizer = experiment.anonymizer
    draws = 1 if anonymizer is None else anonymizer.draws("training")
    parts = {name: len(used_part(sets, name, draws, config)) for name in sets.training_sets}
    estimated = estimate(
        config,
        sets,
        headers,
        anonymizer,
        parts,
        run.jobs or default_jobs(),
        count_heard(experiment, sets),
    )
    logger.info("%s", estimated)
    check_disk(estimated, run.output, (FOLDER, WORK))
    for line in filter(None, (*describe_absent(config), describe_unwatched(config))):
        logger.warning("%s", line)
    if config.attackers == default_attackers():
        logger.debug("attackers that run only if they are named: %s", ", ".join(named_only()))


def _check_speech(experiment: Experiment, sets: Sets) -> None:
    """Check recordings and options of all existing directories; all problems are reported at once.

    Recordings that an earlier run has found usable are not opened again.
    """
    run = experiment.run
    config = experiment.config
    problems = Problems()
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
    jobs = experiment.run.jobs
    seed = experiment.config.seed
    problems = Problems()
    usable = {}
    for directory in (*sets.original.values(), *sets.twins.values()):
        usable.update({str(path): path for path in directory.recordings.values()})
    if any(spec.row for spec, _ in experiment.attackers):  # they read recordings themselves
        usable = usable_recordings(usable, problems, jobs=jobs)
    for group in sets.rate_groups:
        _check_features(group, sets, usable, problems, experiment.run.work)
    for name in sets.missing:  # their recordings will be anonymised
        check_headers(_among(sets.original[name], usable), problems=problems)
    if not problems.errors:
        for group in sets.rate_groups:
            learning = _with_features(group)
            for name in group.training:
                for directory in sets.pair(name):
                    with problems.noted():
                        check_training(directory, learning, seed=seed, jobs=jobs)
    problems.raise_if_any()


def _with_features(group: RateGroup) -> list[Attacker]:
    """Return the attackers of a group that use cepstra."""
    return [chosen[1] for chosen in group.attackers if features_of(chosen) is not None]


def _check_features(
    group: RateGroup, sets: Sets, usable: Mapping[str, Path], problems: Problems, work: Work
) -> None:
    """Check that cepstra can be computed of all recordings of the sets of a group."""
    names = set[str]()
    for dataset in sets.datasets:
        if dataset.training in group.training:
            names.update(dataset.directories)
    kinds = {}
    for features in filter(None, map(features_of, group.attackers)):
        kinds[fingerprint(features.extraction())] = features
    for features, side in product(kinds.values(), (sets.original, sets.twins)):
        for name, directory in side.items():
            if name in names:
                check_recordings(_among(directory, usable), features, work=work, problems=problems)


def _among(directory: DataDir, usable: Mapping[str, Path]) -> dict[str, Path]:
    """Return the recordings of a directory that can be read."""
    return {name: path for name, path in directory.recordings.items() if str(path) in usable}
