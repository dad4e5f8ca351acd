"""Anonymised versions of data directories: missing ones are made below OUTPUT/data, existing ones used as they are."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from evaluation.reports import Anonymiser
from spkbase.configuration import to_dict
from spkbase.errors import Problems, few
from spkbase.files import load_json
from spkbase.progress import progress
from spkver.anonymization import (
    BUILT_IN,
    RECORD,
    AnonymizerConfig,
    anonymised_twin,
    recorded_anonymizer,
)
from spkver.attackers import limited, select
from spkver.audio import usable_recordings
from spkver.datadir import DataDir, check_twin
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.recording_checks import check_audio, spaced
from spkver.voiceprivacy.sets import OneVersion, Sets, noted_each, stamp_of
from spkver.voiceprivacy.settings import Config, TwinConfig

logger = logging.getLogger(__name__)

FOLDER = "data"


def is_fixed(config: AnonymizerConfig) -> bool:
    """Return whether the output of an anonymiser is known not to depend on the random numbers.

    Examples
    --------
    >>> is_fixed(AnonymizerConfig(alpha=(0.8, 0.8))), is_fixed(AnonymizerConfig(name="vtln", warp=(0.1, 0.1)))
    (True, False)
    """
    if config.name not in BUILT_IN or config.name == "vtln":  # the sign of the warp is always drawn
        return False
    return all(low == high for low, high in config.parameters().values())


def anonymise(experiment: Experiment, sets: Sets) -> Sets:
    """Anonymise the data directories without a twin, and make further versions of all except the emotion sets.

    Versions are written below ``data/``. Of a training set only recordings that attackers learn from are anonymised,
    see `used_part`. A training set has its own further versions; enrolment and trials of a set have further versions
    together or not at all. There are no further versions if they would equal the first, or if the anonymiser of the
    first is unknown or recorded as a different one.

    Raises
    ------
    DataError
        If recordings cannot be anonymised, the output equals the original, or missing twins cannot be made.
    """
    run = experiment.run
    anonymizer = experiment.anonymizer
    versions = dict(sets.versions)
    once: dict[str, OneVersion] = {}
    anonymizers: dict[str, AnonymizerConfig] = {}
    experiment.begin("anonymisation")
    with run.timed("anonymisation"):
        if anonymizer is not None:
            once = _single_versions(
                sets, anonymizer, is_named=bool(experiment.config.anonymizer.name)
            )
            _make_versions(experiment, sets, anonymizer, versions, once)
            anonymizers = _further(experiment, sets, anonymizer, once)
        whole_sets = replace(sets, versions=versions, once=once, anonymizers=anonymizers)
        if sets.missing:
            check_audio(run, whole_sets, experiment.suffix)
    experiment.end("anonymisation", f"{len(sets.missing)} directories below {run.path(FOLDER)}")
    return whole_sets


def used_part(sets: Sets, name: str, draws: int, config: Config) -> DataDir:
    """Return the recordings of a training set whose anonymised versions attackers learn from.

    Built-in attackers learn from a few thousand, evenly spread over the speakers. All recordings are used if one of
    the attackers is the user's own, or if random numbers are drawn in the order of the list, as the challenge does.
    """
    whole = sets.original[name]
    group = next(group for group in sets.rate_groups if name in group.training)
    limits = [attacker.utterances for _, attacker in group.attackers]
    if None in limits or config.anonymizer.seeding == "vpc2024":
        return whole
    return limited((whole,) * draws, max(limits), seed=config.seed)[0]


def another_anonymizer(twin: DataDir, config: AnonymizerConfig, *, is_named: bool) -> str:
    """Return the reason why an existing twin gets no further versions by an anonymiser, or an empty text.

    A suffix does not prove which system made the twin: the challenge uses ``_mcadams``, too. The settings in the record
    must equal the configuration; without a record the configuration must name the anonymiser (`is_named`). No existing
    twin was made by ``none``, since `check_twin` refuses original audio.
    """
    if config.name == "none":
        return (
            "since its recordings differ from the originals: anonymizer.name=none did not make them"
        )
    record = _record(twin)
    if record is None and is_named:
        return ""
    if record is None:
        return "since its folder has no record of how it was made; if you know, set anonymizer.name"
    settings = to_dict(config.record())
    other = [
        name for name, value in settings.items() if name != "seeding" and record.get(name) != value
    ]
    if other:
        return f"since its record has another {', '.join(other)}"
    return ""


def describe(anonymizer: TwinConfig | None, sets: Sets, *, suffix: str, seed: int) -> Anonymiser:
    """Describe the anonymiser, as far as it is known.

    Say which directories were made here and which already existed.
    """
    existing = [name for name in sets.versions if name not in sets.missing]
    settings: dict[str, Any] = {"name": suffix.removeprefix("_")}
    if anonymizer is not None and sets.missing:
        settings = to_dict(anonymizer.of("trials").record())
        settings |= {"training_level": anonymizer.training_level, "seed": seed}
    else:
        records: list[dict[str, Any]] = []
        for name in existing:
            record = _record(sets.versions[name][0])
            if record is not None and record not in records:
                records.append(record)
        if len(records) == 1:  # made by `spkver anonymize`, all with the same settings
            settings = records[0]
    return Anonymiser(
        name=settings.pop("name"),
        settings=settings,
        taken=tuple(existing),
        made=tuple(sets.missing),
        training_draws=max((len(sets.versions[name]) for name in sets.training_sets), default=1),
        trial_draws={dataset.name: sets.tested_draws(dataset) for dataset in sets.datasets},
        enrolment_draws={
            dataset.name: len(sets.versions[dataset.enrolls]) for dataset in sets.datasets
        },
    )


def _single_versions(
    sets: Sets, anonymizer: TwinConfig, *, is_named: bool
) -> dict[str, OneVersion]:
    """Return the directories that will get no further versions, and why, if that is known beforehand."""
    once = {}
    for name, side in sets.sides.items():
        config = anonymizer.of(side)
        why = ""
        if name not in sets.missing:
            why = another_anonymizer(sets.versions[name][0], config, is_named=is_named)
        if not why and is_fixed(config):
            reason = f"since {config.name} with these parameters uses no random numbers"
            once[name] = OneVersion(reason, is_fixed=True)
        beside = ("training",) if side == "training" else ("enrolment", "trials")
        if why and max(map(anonymizer.draws, beside)) > 1:
            once[name] = OneVersion(why)
    return once


def _further(
    experiment: Experiment, sets: Sets, anonymizer: TwinConfig, once: Mapping[str, OneVersion]
) -> dict[str, AnonymizerConfig]:
    """Return the anonymiser with which each training set can be anonymised again."""
    config = replace(anonymizer.of("training"), seeding="utterance")
    is_named = bool(experiment.config.anonymizer.name)
    anonymizers = {}
    for name in sets.training_sets:
        is_ours = name in sets.missing
        if not is_ours:
            is_ours = not another_anonymizer(
                sets.versions[name][0], anonymizer.of("training"), is_named=is_named
            )
        if is_ours and name not in once and not is_fixed(config):
            anonymizers[name] = config
    return anonymizers


def _make_versions(
    experiment: Experiment,
    sets: Sets,
    anonymizer: TwinConfig,
    versions: dict[str, tuple[DataDir, ...]],
    once: dict[str, OneVersion],
) -> None:
    """Make all versions, and add them to `versions`; a second one that equals the first is noted in `once`."""
    run = experiment.run
    seed = experiment.config.seed
    originals = dict(sets.original)
    for name in sets.training_sets:
        draws = 1 if name in once else anonymizer.draws("training")
        originals[name] = _used_recordings(experiment, sets, name, draws)
        if name in versions:
            versions[name] = tuple(
                select(version, originals[name].recordings) for version in versions[name]
            )
    due = _due_versions(sets, anonymizer, once)
    problems = Problems()
    sizes = [len(originals[name].recordings) for name, _ in due]
    for name, draw in progress(due, description="anonymisation", sizes=sizes):
        config = anonymizer.of(sets.sides.get(name, ""))
        side = "" if anonymizer.shared_draws else sets.sides.get(name, "")
        if draw == 1:
            versions[name] = (_make(experiment, originals[name], side, "", config, seed, problems),)
        elif name not in once:
            # the challenge's own random numbers do not depend on the seed: a second version equals the first
            config = replace(config, seeding="utterance")
            made = _make(
                experiment, originals[name], side, f"-draw{draw}", config, seed + draw, problems
            )
            first = versions[name][0]
            stamps = [stamp_of(run, version) for version in (first, made)]
            if draw > 2 or run.once(
                f"second version of {name}", partial(_differ, first, made), after=stamps
            ):
                versions[name] = (*versions[name], made)
            else:
                reason = "since a second version is equal to the first: the anonymiser uses no random numbers"
                once[name] = OneVersion(reason, is_fixed=True)
    by_reason: dict[OneVersion, list[str]] = {}
    for name, single in once.items():
        by_reason.setdefault(single, []).append(f"{name}{experiment.suffix}")
    for single, names in by_reason.items():
        logger.warning("%s: only one anonymised version, %s", few(names), single.reason)
    problems.raise_if_any()


def _due_versions(
    sets: Sets, anonymizer: TwinConfig, once: Mapping[str, OneVersion]
) -> list[tuple[str, int]]:
    """Return the versions to make or check, by original and number of the draw.

    If any directory of a set has a single version, the set has no further versions at all.
    """
    names = list(sets.training_sets)
    for dataset in sets.datasets:
        if not set(dataset.tested) & once.keys():
            names += dataset.tested
    due = [(name, 1) for name in sets.missing]
    for name in dict.fromkeys(names):
        if name not in once:
            due += product([name], range(2, 1 + anonymizer.draws(sets.sides[name])))
    return due


def _used_recordings(experiment: Experiment, sets: Sets, name: str, draws: int) -> DataDir:
    """Return the recordings of a training set that are anonymised; log a note if these are not all."""
    whole = sets.original[name]
    part = used_part(sets, name, draws, experiment.config)
    if len(part) < len(whole):
        text = "%s: %d of %d recordings are anonymised, since attackers learn from no others"
        logger.info(text, name, len(part), len(whole))
    return part


def _make(
    experiment: Experiment,
    original: DataDir,
    side: str,
    ending: str,
    config: AnonymizerConfig,
    seed: int,
    problems: Problems,
) -> DataDir:
    """Anonymise a data directory, and check the result once; its problems are noted."""
    run = experiment.run
    name = f"{original.path.name}{experiment.suffix}{ending}"
    made = anonymised_twin(run.below(FOLDER), name, original, config, seed=seed, side=side)
    with noted_each(problems):
        check = partial(_check_version, original, made, config, run.jobs)
        run.once(
            f"check of {made.name}", check, after=[stamp_of(run, original), stamp_of(run, made)]
        )
    return made


def _check_version(
    original: DataDir, made: DataDir, config: AnonymizerConfig, jobs: int | None
) -> None:
    """Raise a DataError with all that is wrong with an anonymised version."""
    problems = Problems()
    if config.name != "none":  # "none" asks for a twin that equals the original
        with noted_each(problems):
            check_twin(original, made, jobs=jobs)
    usable_recordings(made.recordings, problems, jobs=jobs)
    problems.raise_if_any()


def _differ(first: DataDir, second: DataDir) -> bool:
    """Return whether any of the given recordings differs between two versions."""
    for name in spaced(sorted(second.recordings)):
        if first.recordings[name].read_bytes() != second.recordings[name].read_bytes():
            return True
    return False


def _record(twin: DataDir) -> dict[str, Any] | None:
    """Return the record that `spkver anonymize` left in a folder."""
    config = recorded_anonymizer(twin.path)
    if config is None:
        return None
    return {**to_dict(config.record()), "seed": load_json(twin.path / RECORD).get("seed")}
