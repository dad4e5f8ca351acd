"""Anonymised versions of data directories: missing ones are made below OUTPUT/data, others are used as found."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Any

from evaluation.reports import Anonymiser
from spkbase.configuration import to_dict
from spkbase.errors import Problems, few
from spkbase.files import load_json
from spkbase.work import progress
from spkver.anonymization import BUILT_IN, RECORD, AnonymizerConfig, anonymize_datadir, recorded_anonymizer
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
    together or not at all. There are none if they would equal the first version, or if the
    anonymiser of the first version is unknown or, by its record, another one.

    Raises
    ------
    DataError
        If recordings cannot be anonymised, the output is equal to the original, or missing twins cannot be made.
    """
    run, suffix, seed = experiment.run, experiment.suffix, experiment.config.seed
    anonymizer, sides = experiment.anonymizer, sets.sides
    versions, once, problems = dict(sets.versions), dict[str, OneVersion](), Problems()
    originals = dict(sets.original)
    is_named = bool(experiment.config.anonymizer.name)

    def make(name: str, ending: str, config: AnonymizerConfig, seed: int) -> DataDir:
        original = originals[name]
        target = run.path(f"{FOLDER}/{name}{suffix}{ending}")
        side = "" if anonymizer is None or anonymizer.shared_draws else sides.get(name, "")
        made = anonymize_datadir(original, target, config, seed=seed, side=side, jobs=run.jobs, force=run.force)

        def check() -> None:
            found = Problems()
            if config.name != "none":  # "none" asks for a twin that is equal to the original
                change = float("inf") if config.changes_duration else 0.1
                with noted_each(found):
                    check_twin(original, made, duration_change=change, jobs=run.jobs)
            usable_recordings(made.recordings, found, jobs=run.jobs)
            found.raise_if_any()

        with noted_each(problems):
            run.once(f"check of {made.name}", check, after=[stamp_of(run, one) for one in (original, made)])
        return made

    def differs(name: str, made: DataDir) -> bool:
        first, compared = versions[name][0].recordings, spaced(sorted(made.recordings))
        return any(first[one].read_bytes() != made.recordings[one].read_bytes() for one in compared)

    experiment.begin("anonymisation")
    with run.timed("anonymisation"):
        if anonymizer is not None:
            for name, side in sides.items():
                config, beside = anonymizer.of(side), ("training",) if side == "training" else ("enrolment", "trials")
                found = None if name in sets.missing else versions[name][0]
                why = another_anonymizer(found, config, is_named=is_named) if found else ""
                if not why and is_fixed(config):
                    reason = f"since {config.name} with these parameters uses no random numbers"
                    once[name] = OneVersion(reason, is_fixed=True)
                elif why and max(map(anonymizer.draws, beside)) > 1:
                    once[name] = OneVersion(why)
            whole = [name for one in sets.datasets if not set(one.tested) & once.keys() for name in one.tested]
            for name in sets.training_sets:
                draws = 1 if name in once else anonymizer.draws("training")
                part = used_part(sets, name, draws, experiment.config)
                if len(part) < len(originals[name]):
                    text = "%s: %d of %d recordings are anonymised, since attackers learn from no others"
                    logger.info(text, name, len(part), len(originals[name]))
                originals[name] = part
                if name in versions:
                    versions[name] = tuple(select(one, part.recordings) for one in versions[name])
            due = [(name, 1) for name in sets.missing]
            for name in dict.fromkeys([*sets.training_sets, *whole]):
                due += [(name, draw) for draw in range(2, 1 + (1 if name in once else anonymizer.draws(sides[name])))]
            sizes = [len(originals[name].recordings) for name, _ in due]
            for name, draw in progress(due, description="anonymisation", sizes=sizes):
                config = anonymizer.of(sides.get(name, ""))
                if draw == 1:
                    versions[name] = (make(name, "", config, seed),)
                elif name not in once:
                    # the challenge's own random numbers do not depend on the seed: a second version equals the first
                    made = make(name, f"-draw{draw}", replace(config, seeding="utterance"), seed + draw)
                    after = [stamp_of(run, one) for one in (versions[name][0], made)]
                    if draw > 2 or run.once(f"second version of {name}", partial(differs, name, made), after=after):
                        versions[name] = (*versions[name], made)
                    else:
                        reason = "since a second version is equal to the first: the anonymiser uses no random numbers"
                        once[name] = OneVersion(reason, is_fixed=True)
            for single in dict.fromkeys(once.values()):
                names = [f"{name}{suffix}" for name in once if once[name] == single]
                logger.warning("%s: one anonymised version only, %s", few(names), single.reason)
            problems.raise_if_any()
        whole_sets = replace(sets, versions=versions, once=once)
        if sets.missing:
            check_audio(run, whole_sets, suffix)
    experiment.end("anonymisation", f"{len(sets.missing)} directories below {run.path(FOLDER)}")
    return whole_sets


def used_part(sets: Sets, name: str, draws: int, config: Config) -> DataDir:
    """Return the recordings of a training set whose anonymised versions attackers learn from.

    Built-in attackers learn from a few thousand, evenly spread over the speakers. All recordings are used if one of
    the attackers is the user's own, or if the challenge's random numbers, drawn along the list, are asked for.
    """
    whole = sets.original[name]
    chosen = next(group.attackers for group in sets.rate_groups if name in group.training)
    limits = [attacker.utterances for _, attacker in chosen]
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
        return "since its recordings differ from the originals: anonymizer.name=none did not make them"
    record = _record(twin)
    if record is None:
        unknown = "since its folder has no record of how it was made; if you know, set anonymizer.name"
        return "" if is_named else unknown
    settings = to_dict(config.record())
    other = [name for name, value in settings.items() if name != "seeding" and record.get(name) != value]
    return f"since its record has another {', '.join(other)}" if other else ""


def describe(anonymizer: TwinConfig | None, sets: Sets, *, suffix: str, seed: int) -> Anonymiser:
    """Describe the anonymiser, as far as it is known, and which directories were made or used as found."""
    found = [name for name in sets.versions if name not in sets.missing]
    settings: dict[str, Any] = {"name": suffix.removeprefix("_")}
    if anonymizer is not None and sets.missing:
        settings = to_dict(anonymizer.of("trials").record())
        settings |= {"training_level": anonymizer.training_level, "seed": seed}
    else:
        records = [record for name in found if (record := _record(sets.versions[name][0]))]
        if records and all(record == records[0] for record in records):  # made by `spkver anonymize`, all alike
            settings = records[0]
    return Anonymiser(
        name=settings.pop("name"),
        settings=settings,
        taken=tuple(found),
        made=tuple(sets.missing),
        training_draws=max((len(sets.versions[name]) for name in sets.training_sets), default=1),
        trial_draws={dataset.name: sets.tested_draws(dataset) for dataset in sets.datasets},
        enrolment_draws={dataset.name: len(sets.versions[dataset.enrolls]) for dataset in sets.datasets},
    )


def _record(twin: DataDir) -> dict[str, Any] | None:
    """Return the record that `spkver anonymize` left in a folder."""
    config = recorded_anonymizer(twin.path)
    if config is None:
        return None
    return {**to_dict(config.record()), "seed": load_json(twin.path / RECORD).get("seed")}
