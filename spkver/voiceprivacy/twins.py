"""Anonymised twins of data directories: those that are missing are made below OUTPUT/data, others are used as they are.

The similarity of recordings and their twins is measured here, too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spkbase.configuration import to_dict
from spkbase.errors import ConfigError, Problems
from spkbase.files import load_json
from spkbase.runs import Run
from spkbase.showing import one_line
from spkbase.work import ordered_map
from spkver.anonymization import (
    BUILT_IN,
    RECORD,
    AnonymizerConfig,
    anonymize_datadir,
    make_anonymizer,
    recorded_anonymizer,
)
from spkver.audio import read_audio
from spkver.datadir import DataDir, check_twin
from spkver.voiceprivacy.sets import Sets, noted_each
from spkver.voiceprivacy.settings import TwinConfig

if TYPE_CHECKING:
    from spkver.voiceprivacy.experiment import Experiment

logger = logging.getLogger(__name__)

FOLDER = "data"
_FEWEST = 4  # speakers, for a test whether two draws are of one anonymiser
_COMPARED = 100  # recordings of a directory with their originals
_PLACES, _BANDS = 200, 32
_LEAST = 1e-20


@one_line
@dataclass(frozen=True)
class Anonymizers:
    """Anonymisers of enrolment and trials, and of training sets, and how many times each side is anonymised.

    `by_suffix` says that the anonymiser is not configured, but named by the suffix of the sets. With `shared_draws` a
    speaker has one draw on all sides, at level "speaker".
    """

    tested: AnonymizerConfig
    training: AnonymizerConfig
    draws: Mapping[str, int]
    by_suffix: bool = False
    shared_draws: bool = False

    def of(self, side: str) -> AnonymizerConfig:
        """Return what anonymises a side: training, or another."""
        return self.training if side == "training" else self.tested


def find_anonymizers(config: TwinConfig, suffix: str) -> Anonymizers | None:
    """Return the anonymisers that are configured, or that the suffix names; None where there is none.

    Raises
    ------
    ConfigError
        If a value is out of range, a function cannot be imported or a command lacks a place.
    DataError
        If a package is missing.
    """
    tested = config.resolved(suffix, training=False)
    training = config.resolved(suffix, training=True)
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


def anonymise(experiment: Experiment, sets: Sets) -> Sets:
    """Anonymise the data directories without a twin, and all but those of emotions several times; all twins come back.

    They are made below ``data/``.

    Raises
    ------
    DataError
        If recordings cannot be anonymised, what comes out is the original, or twins are missing that cannot be made.
    """
    run = experiment.run
    suffix = experiment.suffix
    anonymizers = experiment.anonymizers
    experiment.begin("anonymisation")
    if anonymizers is not None:
        with run.timed("anonymisation"):
            sets = _make_twins(run, sets, anonymizers, suffix=suffix, seed=experiment.config.seed)
    experiment.end("anonymisation", f"{len(sets.missing)} directories below {run.path(FOLDER)}")
    return sets


def _make_twins(run: Run, sets: Sets, anonymizers: Anonymizers, *, suffix: str, seed: int) -> Sets:
    twins, draws, problems = dict(sets.twins), {}, Problems()
    sides = sets.sides

    def make(name: str, ending: str, config: AnonymizerConfig, seed: int) -> DataDir:
        original = sets.original[name]
        target = run.path(f"{FOLDER}/{name}{suffix}{ending}")
        how: dict[str, Any] = {"seed": seed, "side": "" if anonymizers.shared_draws else sides.get(name, "")}
        made = anonymize_datadir(original, target, config, jobs=run.jobs, force=run.force, **how)
        if config.name != "none":  # else the twin is the original, as was asked
            change = {"duration_change": float("inf")} if config.changes_duration else {}
            with noted_each(problems):
                check_twin(original, made, jobs=run.jobs, **change)
        return made

    for name in sets.missing:
        twins[name] = make(name, "", anonymizers.of(sides.get(name, "")), seed)
    undrawn = _undrawn(sets, anonymizers)
    # training sets are drawn again, and all of enrolment and trials of a set or none
    whole = [name for one in sets.datasets if not set(one.tested) & undrawn.keys() for name in one.tested]
    names = dict.fromkeys([*sets.training_sets, *whole])
    for name in [name for name in names if name not in undrawn]:
        # the challenge's own random numbers know no seed: a second draw of them would be the first
        config = replace(anonymizers.of(sides[name]), seeding="utterance")
        made: list[DataDir] = []
        for draw in range(2, anonymizers.draws[sides[name]] + 1):
            made.append(make(name, f"-draw{draw}", config, seed + draw))
            if draw == 2 and (why := _differs(sets.original[name], twins[name], made[0], config.name)):
                undrawn[name], made = why, []
                break
        draws[name] = tuple(made)
    for name, why in undrawn.items():
        logger.warning("%s%s: anonymised once only, %s", name, suffix, why)
    problems.raise_if_any()
    return replace(sets, twins=twins, draws=draws, undrawn=undrawn)


def _undrawn(sets: Sets, anonymizers: Anonymizers) -> dict[str, str]:
    """Why directories that are asked for several times cannot be drawn again."""
    found = {}
    for name, side in sets.sides.items():
        config = anonymizers.of(side)
        of_training = side == "training"
        parts = ("training",) if of_training else ("enrolment", "trials")
        if max(anonymizers.draws[part] for part in parts) > 1:
            if is_fixed(config):
                found[name] = f"since {config.name} with these parameters draws nothing"
            elif name not in sets.missing:
                found[name] = not_drawn_again(sets.twins[name], anonymizers, training=of_training)
    return {name: why for name, why in found.items() if why}


def _differs(original: DataDir, twin: DataDir, second: DataDir, name: str) -> str:
    """Why a second draw is none of the same anonymiser, or no other one; an empty text where all is well.

    A twin without a record is whoever's: how its levels go with those of the original, and how spectra differ, averaged
    over the recordings of a speaker, must be alike in both versions (Welch's test, 33 of them at 1e-6 together).
    """
    from scipy.stats import ttest_ind

    utterances = spaced(sorted(original.recordings))
    paths = [[one.recordings[utterance] for utterance in utterances] for one in (original, twin, second)]
    if all(first.read_bytes() == other.read_bytes() for first, other in zip(paths[1], paths[2], strict=True)):
        return "since its second draw is the first one again"
    speakers = np.array([original.speakers[utterance] for utterance in utterances])
    if _record(twin) is not None or len(set(speakers)) < _FEWEST:
        return ""
    (levels, spectra), *others = map(described, paths)
    sides = []
    for heard, bands in others:
        change = bands - spectra
        likeness = (standardised(heard) * standardised(levels)).sum(axis=1)
        values = np.column_stack([likeness, change - change.mean(axis=1, keepdims=True)])
        sides.append(np.array([values[speakers == speaker].mean(axis=0) for speaker in np.unique(speakers)]))
    if np.nanmin(ttest_ind(*sides, equal_var=False).pvalue) * sides[0].shape[1] > 1e-6:
        return ""
    return f"since another anonymiser than {name} made it, by its spectra and levels"


def not_drawn_again(twin: DataDir, anonymizers: Anonymizers, *, training: bool = True) -> str:
    """Return why a standing twin of a training set (or of enrolment or trials) gets no further draws, or an empty text.

    Draws of another anonymiser would be put beside it else: a suffix is no proof, ``_mcadams`` is the challenge's own
    too. What a twin's record says of its settings must be what is configured; without a record the configuration must
    name the anonymiser.
    """
    record = _record(twin)
    if record is None:
        unknown = "since its folder has no record of how it was made; if you know, set anonymizer.name"
        return unknown if anonymizers.by_suffix else ""
    settings = to_dict(anonymizers.of("training" if training else "trials").record())
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
    entry: dict[str, Any] = {
        "taken": taken,
        "made": list(sets.missing),
        "training_draws": 1 + max((len(sets.draws.get(name, ())) for name in sets.training_sets), default=0),
        "trial_draws": {dataset.name: sets.tested_draws(dataset) for dataset in sets.datasets},
        "enrolment_draws": {dataset.name: sets.enrolment_draws(dataset) for dataset in sets.datasets},
    }
    if anonymizers is not None and sets.missing:
        levels = {"training_level": anonymizers.training.level, "seed": seed}
        return {**anonymizers.tested.record(), **levels, **entry}
    records = [record for name in taken if (record := _record(sets.twins[name]))]
    if records and all(record == records[0] for record in records):  # made by `spkver anonymize`, all alike
        return {**records[0], **entry}
    return {"name": suffix.removeprefix("_"), **entry}


def _record(twin: DataDir) -> dict[str, Any] | None:
    """What `spkver anonymize` left about itself in a folder."""
    config = recorded_anonymizer(twin.path)
    if config is None:
        return None
    return {**to_dict(config.record()), "seed": load_json(twin.path / RECORD).get("seed")}


def spaced(names: Sequence[str]) -> Sequence[str]:
    """Return at most `_COMPARED` names, evenly spaced."""
    return names[:: max(1, -(-len(names) // _COMPARED))]


def described(paths: Sequence[Path], jobs: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how recordings rise and fall, and their long-term spectra.

    Returns
    -------
    levels : ndarray of float64 of shape (n, 200)
        Level in dB of frames of 20 ms, at 200 places from start to end; down to 60 dB below the loudest.
    spectra : ndarray of float64 of shape (n, 32)
        Mean power in dB in 32 bands of equal width.
    """
    found = list(ordered_map(_described, paths, jobs=jobs, threads=True))
    return np.array([levels for levels, _ in found]), np.array([spectrum for _, spectrum in found])


def _described(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    audio = read_audio(path, channel=0, dtype="float64")
    size = audio.rate // 50
    padded = np.pad(audio.samples, (0, max(0, size - len(audio.samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[:: size // 2]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    levels = 10 * np.log10(power.sum(axis=1) + _LEAST)
    levels = np.maximum(levels, levels.max() - 60)
    bands = [band.mean() for band in np.array_split(power.mean(axis=0), _BANDS)]
    return np.interp(np.linspace(0, 1, _PLACES), np.linspace(0, 1, len(levels)), levels), 10 * np.log10(
        np.array(bands) + _LEAST
    )


def standardised(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows minus their means, of norm 1, so that products of two are correlations."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), _LEAST)
