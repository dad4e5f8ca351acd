"""Anonymised twins: those that are missing are made below OUTPUT/data, the others are taken as they are."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spkbase.configuration import to_dict
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.anonymization import (
    BUILT_IN,
    RECORD,
    AnonymizerConfig,
    anonymize_datadir,
    check_source,
    finished_twin,
    make_anonymizer,
)
from spkver.datadir import DataDir, check_twin
from spkver.voiceprivacy.sets import Sets, note_each
from spkver.voiceprivacy.settings import TwinConfig

logger = logging.getLogger(__name__)

FOLDER = "data"


@one_line
@dataclass(frozen=True)
class Anonymizers:
    """What anonymises enrolment and trials, and what anonymises training sets, and how many times each side.

    `by_suffix` tells that nobody named the anonymiser: it goes by the suffix of the sets. With `shared_draws` a speaker
    has one draw on all sides, at level "speaker".
    """

    tested: AnonymizerConfig
    training: AnonymizerConfig
    draws: Mapping[str, int]
    by_suffix: bool = False
    shared_draws: bool = False


def find_anonymizers(config: TwinConfig, suffix: str) -> Anonymizers | None:
    """Return the anonymisers that are configured, or that the suffix names; None where there is none.

    Raises
    ------
    ConfigError
        If a value is out of range, a function cannot be imported or a command lacks a place.
    DataError
        If a package is missing.
    """
    tested, training = (config.resolved(suffix, training=of_training) for of_training in (False, True))
    if tested is None or training is None:
        if config.command:
            raise ConfigError("anonymizer.command is given without anonymizer.name=command")
        return None
    for settings in (tested, training):
        make_anonymizer(settings)
    draws = {"training": config.training_draws, "enrolment": config.enrolment_draws, "trials": config.trial_draws}
    if tested.name == "none":
        draws = dict.fromkeys(draws, 1)
    # the challenge's own numbers of a speaker know no side, so further draws know none either
    return Anonymizers(tested, training, draws, not config.name, config.shared_draws or config.seeding == "vpc2024")


def is_fixed(config: AnonymizerConfig) -> bool:
    """Return whether an anonymiser is known to make the same of the same recording whatever the random numbers.

    Examples
    --------
    >>> is_fixed(AnonymizerConfig(alpha=(0.8, 0.8))), is_fixed(AnonymizerConfig(name="vtln", warp=(0.1, 0.1)))
    (True, False)
    """
    if config.name not in BUILT_IN or config.name == "vtln":  # the sign of the warp is drawn, too
        return False
    return all(low == high for low, high in config.parameters().values())


def check_sources(sets: Sets, problems: Problems) -> None:
    """Check the recordings that are to be anonymised."""
    for name in sets.missing:
        if name in sets.original:
            for utterance, path in sets.original[name].recordings.items():
                if error := check_source(utterance, path):
                    problems.note(error)


def make_twins(run: Run, sets: Sets, anonymizers: Anonymizers | None, *, suffix: str, seed: int) -> Sets:
    """Anonymise the data directories without a twin, and all but those of emotions several times; all twins come back.

    In a frozen run those that were made before are taken.

    Raises
    ------
    DataError
        If recordings cannot be anonymised, what comes out is the original, or a frozen run lacks twins.
    """
    if anonymizers is None:
        return sets
    training = list(dict.fromkeys(dataset.training for dataset in sets.datasets))
    twins, draws, problems = dict(sets.twins), {}, Problems()
    sides, numbers = sets.sides, anonymizers.draws

    def make(name: str, ending: str, config: AnonymizerConfig, seed: int) -> DataDir:
        target = run.path(f"{FOLDER}/{name}{suffix}{ending}")
        side = "" if anonymizers.shared_draws else sides.get(name, "")
        how: dict[str, Any] = {"seed": seed, "side": side, "jobs": run.jobs}
        if run.frozen:
            return finished_twin(sets.original[name], target, config, **how)
        made = anonymize_datadir(sets.original[name], target, config, force=run.force, **how)
        _check(sets.original[name], made, config, problems, run.jobs)
        return made

    with run.timed("anonymisation"):
        for name in sets.missing:
            config = anonymizers.training if name in training else anonymizers.tested
            twins[name] = make(name, "", config, seed)
        # the challenge's own random numbers know no seed: a second draw of them would be the first
        further = replace(anonymizers.training, seeding="utterance")
        for name in training:
            why = "" if name in sets.missing else not_drawn_again(sets.twins[name], anonymizers)
            if why and numbers["training"] > 1:
                logger.warning("%s%s: one draw of it alone, %s", name, suffix, why)
            wanted = range(2, 1 if why else numbers["training"] + 1)
            draws[name] = tuple(make(name, f"-draw{number}", further, seed + number) for number in wanted)
        undrawn = _undrawn(sets, anonymizers) if max(numbers["enrolment"], numbers["trials"]) > 1 else {}
        further = replace(anonymizers.tested, seeding="utterance")
        for name in _drawn_again(sets, training, undrawn):
            made: list[DataDir] = []
            for number in range(2, numbers[sides[name]] + 1):
                made.append(make(name, f"-draw{number}", further, seed + number))
                if number == 2 and _sound_alike(twins[name], made[0]):
                    undrawn[name], made = "since its second draw is the first one again", []
                    break
            draws[name] = tuple(made)
    for name, why in undrawn.items():
        logger.warning("%s%s: one draw of it alone, %s", name, suffix, why)
    problems.raise_if_any()
    return replace(sets, twins=twins, draws=draws, undrawn=undrawn)


def _undrawn(sets: Sets, anonymizers: Anonymizers) -> dict[str, str]:
    """Why directories of enrolment and trials cannot be drawn again."""
    names = dict.fromkeys(name for dataset in sets.datasets for name in dataset.tested)
    if is_fixed(anonymizers.tested):
        return dict.fromkeys(names, f"since {anonymizers.tested.name} with these parameters draws nothing")
    found = {
        name: not_drawn_again(sets.twins[name], anonymizers, training=False)
        for name in names
        if name not in sets.missing
    }
    return {name: why for name, why in found.items() if why}


def _drawn_again(sets: Sets, training: Sequence[str], undrawn: Mapping[str, str]) -> list[str]:
    """Directories of enrolment and trials that are drawn again: those of sets of which all can be."""
    whole = [dataset for dataset in sets.datasets if not any(name in undrawn for name in dataset.tested)]
    names = dict.fromkeys(name for dataset in whole for name in dataset.tested)
    return [name for name in names if name not in training]


def _sound_alike(twin: DataDir, other: DataDir) -> bool:
    """Whether all recordings of two versions are the same to the last bit."""
    return all(twin.recordings[name].read_bytes() == path.read_bytes() for name, path in other.recordings.items())


def not_drawn_again(twin: DataDir, anonymizers: Anonymizers, *, training: bool = True) -> str:
    """Return why a standing twin of a training set (or of enrolment or trials) gets no further draws, or an empty text.

    Draws of another anonymiser would be put beside it else: a suffix is no proof, ``_mcadams`` is the challenge's own
    too. What a twin's record says of its settings must be what is configured; without a record the configuration must
    name the anonymiser.
    """
    record = _record(twin)
    if record is None:
        unknown = "since nothing in its folder says how it was made; if you know, set anonymizer.name"
        return unknown if anonymizers.by_suffix else ""
    configured = anonymizers.training if training else anonymizers.tested
    settings = json.loads(json.dumps(to_dict(configured.record())))
    other = [name for name, value in settings.items() if name != "seeding" and record.get(name) != value]
    return f"since its record has another {', '.join(other)}" if other else ""


def describe(anonymizers: Anonymizers | None, sets: Sets, *, suffix: str, seed: int) -> dict[str, Any]:
    """Describe what anonymised, as far as it is known: which directories were made, which were taken as they are.

    Returns
    -------
    dict
        The entry ``anonymiser`` of ``results.json``.
    """
    taken = [name for name in sets.twins if name not in sets.missing]
    entry: dict[str, Any] = {"name": suffix.removeprefix("_"), "taken": taken, "made": list(sets.missing)}
    training = {dataset.training for dataset in sets.datasets}
    entry["training_draws"] = 1 + max((len(sets.draws.get(name, ())) for name in training), default=0)
    entry["trial_draws"] = {dataset.name: sets.tested_draws(dataset) for dataset in sets.datasets}
    entry["enrolment_draws"] = {dataset.name: sets.enrolment_draws(dataset) for dataset in sets.datasets}
    if anonymizers is not None and sets.missing:
        settings = dict(anonymizers.tested.record())
        return {**settings, "training_level": anonymizers.training.level, "seed": seed, **_without(entry, "name")}
    records = {json.dumps(record, sort_keys=True) for name in taken if (record := _record(sets.twins[name]))}
    if len(records) == 1:  # made by `spkver anonymize`, all alike
        return {**json.loads(records.pop()), **_without(entry, "name")}
    return entry


def _check(original: DataDir, twin: DataDir, config: AnonymizerConfig, problems: Problems, jobs: int | None) -> None:
    if config.name == "none":  # the twin is the original, as was asked
        return
    change = {"duration_change": float("inf")} if config.changes_duration else {}
    try:
        check_twin(original, twin, jobs=jobs, **change)
    except DataError as error:
        note_each(problems, error)


def _record(twin: DataDir) -> dict[str, Any] | None:
    """What `spkver anonymize` left about itself in a folder."""
    try:
        record = json.loads((twin.path / RECORD).read_text(encoding="utf-8"))
        known = AnonymizerConfig(**{name: _tuple(value) for name, value in record["anonymizer"].items()})
        return {**json.loads(json.dumps(to_dict(known.record()))), "seed": record.get("seed")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}
