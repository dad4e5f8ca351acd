"""Time, memory and disk of an evaluation, estimated before its first long step from counts and measured rates.

Attackers without a known rate, among them the user's own code, are named and not counted.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spkbase.errors import DataError
from spkver.attackers import INVERTED_DRAWS, NUMBERS, Spec, needs_pieces
from spkver.voiceprivacy.choosing import attacker_specs, features_of
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config, TwinConfig

_RATES = {
    **{"mcadams": 15, "vtln": 30, "world": 200, "resampling": 1},
    # a quarter of the time of the step "attackers and scores" in a run of spkver voiceprivacy --jobs 2 with only these
    # four
    **{"gmm-ubm": 6, "gmm-svm": 6, "gmm-svm-cms": 6, "supervector-cosine": 6, "supervector": 0},
    # python -m benchmarks.speed extractors; CAM++ took 38 on recordings of 8 s and 56 in a run mostly of 2 s
    **{"campplus": 48, "campplus-tuned": 48, "ge2e": 16},
    # from runs with these alone, on a machine that did other work too: less exact
    **{"ivector": 30, "prosody": 20, "content": 1, "properties": 4, "session": 15},
    **{"durations": 250},
    # "reversed" tries several numbers instead of estimating one
    **{"inverted": 42, "reversed": 28, "adapted": 2, "self-trained": 6},
}
"""Seconds of one core for an hour of speech, training sets and their draws included: anonymisers, attackers, and what
inversion and adaptation add. Measured on one machine."""

_ESTIMATOR = 20  # s for a training set
_CHAINS = 0.007  # s for each vector on which chains are chosen
_START = 20  # s
_UNKNOWN = 10  # s of extraction for an hour of speech, for attackers without a rate of their own
# share of the usual chains that are tried; 0.4 where scores adapt
_TRIED = {"": 1.0, "enrolled-plda": 0.0, "self-trained": 0.0}
_TUNING = {"campplus-tuned": 240}  # s for a training set
_TUNING_MEMORY = 2e9  # bytes
_HEARING = 0.6  # s of Whisper for a recording below 30 s
_MAIN = (0.4e9, 1.2e9)  # bytes, without and with networks
_WORKER = (0.15e9, 0.35e9)
_RECORDING = 3e3  # bytes that a recording takes in lists
_FRAMES = 100  # per second


class Estimate(NamedTuple):
    """Seconds of all steps on so many cores, bytes of memory and disk, and what is not counted."""

    seconds: float
    memory: float
    disk: float
    n_workers: int
    unknown: list[str]

    def __str__(self) -> str:
        plural = "s" if self.n_workers > 1 else ""
        text = f"about {_duration(self.seconds)} on {self.n_workers} core{plural},"
        text += f" {_size(self.memory)} of memory and {_size(self.disk)} of disk if all is new"
        if self.unknown:
            text += f"; not known: {', '.join(self.unknown)}"
        return text


def estimate(
    config: Config,
    sets: Sets,
    headers: Mapping[str, Sequence[tuple[int, int, float]]],
    anonymizer: TwinConfig | None,
    parts: Mapping[str, int],
    n_workers: int,
    n_heard: int = 0,
) -> Estimate:
    """Estimate an evaluation in which nothing is done yet.

    Parameters
    ----------
    config, sets
    headers : mapping
        See `read_headers`.
    anonymizer : TwinConfig or None
    parts : mapping of str to int
        Training set to the number of its recordings that are anonymised, see `used_part`.
    n_workers : int
    n_heard : int
        Recordings that a recogniser hears to compare pairs.
    """
    specs = list(attacker_specs(config).values())
    amounts = _amounts(specs, sets, headers, anonymizer, parts)
    unknown: list[str] = []
    seconds = _attackers(specs, amounts, len(sets.training_sets), unknown)
    known = config.anonymizer.name
    if not known:
        known = "none" if anonymizer is None else anonymizer.name
    seconds += _RATES.get(known, 0) * amounts.made / 32_000 / 3600
    if amounts.made and known not in (*_RATES, "none"):
        unknown.append(f"anonymiser {known}")
    features = {}
    for group in sets.rate_groups:
        for feature in filter(None, map(features_of, group.attackers)):
            features[repr(feature)] = feature
    disk = amounts.made + amounts.derived
    frames = [0.0]
    for feature in features.values():
        disk += (amounts.plain + amounts.anonymised) * 4 * _FRAMES * (feature.n_cepstra + 2)
        frames.append(
            min(1e9 * feature.memory_gb, 4 * _FRAMES * feature.dimension * amounts.anonymised)
        )
    is_network = any(spec.is_network for spec in specs if spec.row)
    memory = (
        _MAIN[is_network]
        + n_workers * _WORKER[is_network]
        + amounts.recordings * _RECORDING
        + max(frames)
    )
    if any(spec.kind in _TUNING for spec in specs):
        memory += _TUNING_MEMORY
    seconds += _metrics(config, sets, anonymizer) + _START + _HEARING * n_heard
    return Estimate(seconds / n_workers, memory, disk, n_workers, unknown)


def extraction_rate(spec: Spec) -> float:
    """Return the seconds of one core for an hour of the speech from which an attacker extracts vectors or features."""
    if spec.row is None:
        return _UNKNOWN
    rate = _RATES.get(spec.row.base) or _UNKNOWN
    if spec.row.is_reversed:
        return rate + _RATES["reversed"]
    if spec.row.is_inverted:
        return rate + _RATES["inverted"]
    return rate


def check_disk(estimated: Estimate, output: Path, folders: Sequence[str]) -> None:
    """Raise a DataError if the disk has no room for what a run has still to write.

    Parameters
    ----------
    estimated : Estimate
    output : Path
        The output folder.
    folders : sequence of str
        Folders in it that earlier runs may have filled.
    """
    there = 0
    for name in folders:
        there += sum(path.stat().st_size for path in (output / name).rglob("*") if path.is_file())
    free = shutil.disk_usage(output).free
    due = estimated.disk - there
    if due > free:
        text = f"the run needs about {_size(due)} of disk, {_size(free)} are free"
        remedy = (
            "choose another --output, or fewer draws (anonymizer.training_draws=1) or attackers"
        )
        raise DataError(text, file=output, remedy=remedy)


@dataclass
class _Amounts:
    """Seconds of speech, numbers of recordings, and bytes of WAV files with 16 bits.

    Attributes
    ----------
    plain, anonymised, inverted, tested : float
        Seconds of original speech, of all anonymised versions, of those that are inverted, and of one version of the
        trials, see `Sets.tested_draws`.
    recordings, learnt : float
        Number of all recordings, and of those that are learnt from.
    made, derived : float
        Bytes of anonymised speech, and of inverted speech and pieces.
    """

    plain: float = 0.0
    anonymised: float = 0.0
    inverted: float = 0.0
    tested: float = 0.0
    recordings: float = 0.0
    learnt: float = 0.0
    made: float = 0.0
    derived: float = 0.0


def _amounts(
    specs: Sequence[Spec],
    sets: Sets,
    headers: Mapping[str, Sequence[tuple[int, int, float]]],
    anonymizer: TwinConfig | None,
    parts: Mapping[str, int],
) -> _Amounts:
    """Return how much speech there is, and how much is made."""
    inverting = [spec for spec in specs if spec.inverts]
    reverses = any(spec.row.is_reversed for spec in inverting if spec.row)
    only_networks = all(spec.is_network for spec in inverting)
    amounts = _Amounts()
    for name, side in sets.sides.items():
        draws = 1 if anonymizer is None else anonymizer.draws(side)
        inverted = {"training": 0, "enrolment": draws, "trials": draws}[side]
        if side == "enrolment" and only_networks:
            inverted = min(draws, INVERTED_DRAWS)
        count = 0
        length = 0.0
        size = 0.0
        for rate, number, duration in headers[name]:
            count += number
            length += duration
            size += 2 * rate * duration
        share = parts.get(name, count) / max(count, 1)
        versions = draws * share
        amounts.plain += length * min(1.0, versions)
        amounts.anonymised += versions * length
        amounts.inverted += inverted * share * length
        amounts.recordings += count * (1 + versions)
        amounts.made += size * share * (draws - (name in sets.versions))
        if inverting:
            amounts.derived += size * inverted
        if side == "trials":
            amounts.tested += length
            amounts.derived += size * NUMBERS * reverses
        if name in parts:
            amounts.learnt += count * (min(1.0, versions) + versions)
            amounts.derived += size * (1 + versions) * needs_pieces(sets.original[name])
    return amounts


def _attackers(
    specs: Sequence[Spec], amounts: _Amounts, training_sets: int, unknown: list[str]
) -> float:
    """Return the seconds of all attackers on one core; those without a known rate are added to `unknown`."""
    seconds = 0.0
    paid: set[tuple[str, str, str]] = set()
    for spec in specs:
        row = spec.row
        if row is None or row.base not in _RATES:
            unknown.append(spec.name)
            continue
        kind = ""
        speech = amounts.plain + amounts.anonymised
        if row.is_reversed:
            kind = "reversed"
            speech = NUMBERS * amounts.tested
        elif row.is_inverted:
            kind = "inverted"
            speech = amounts.inverted
        elif row.base in _TUNING:
            speech = amounts.anonymised
        if (row.base, spec.argument, kind) not in paid:  # attackers share vectors
            paid.add((row.base, spec.argument, kind))
            seconds += (_RATES[row.base] + _RATES.get(kind, 0)) * speech / 3600
            if kind == "inverted":
                seconds += _ESTIMATOR * training_sets
            seconds += _TUNING.get(row.base, 0) * training_sets
        if row.adapted:
            seconds += _RATES.get(row.adapted, _RATES["adapted"]) * speech / 3600
        if row.is_network:
            seconds += _CHAINS * _TRIED.get(row.adapted, 0.4) * amounts.learnt
    return seconds


def _metrics(config: Config, sets: Sets, anonymizer: TwinConfig | None) -> float:
    """Return the seconds of metrics and intervals, single and pooled."""
    sizes = []
    for dataset in sets.datasets:
        keys = [sets.original[name].trials for name in dataset.trials.values()]
        lists = [len(key) for key in keys if key]
        sizes += lists
        if len(lists) > 1:
            sizes.append(sum(lists))
    seconds = 0.0
    for size in sizes:  # measured with lists of 700 to 134,000 trials
        seconds += 0.03 + 6e-6 * size + config.evaluation.resamples * (5e-4 + 3e-8 * size)
    draws = 1 if anonymizer is None else anonymizer.draws("trials")
    # the same again for figures over several attackers
    return 2 * len(config.attackers) * (1 + 3 * draws) * seconds


def _duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _size(number: float) -> str:
    """Format bytes in MB or GB."""
    if number < 1e9:
        return f"{number / 1e6:.0f} MB"
    return f"{number / 1e9:.1f} GB"
