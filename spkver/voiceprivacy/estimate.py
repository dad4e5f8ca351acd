"""Time, memory and disk of an evaluation, estimated before its first long step from counts and measured rates.

Rates are seconds of one core for an hour of speech, see docs/performance.md. Attackers without a known rate, among
them the user's own code, are named and not counted.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from spkbase.errors import DataError
from spkver.attackers import INVERTED_DRAWS, NUMBERS, needs_pieces
from spkver.voiceprivacy.choosing import attacker_specs, features_of
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config, TwinConfig

_ANONYMISING = {"mcadams": 15, "vtln": 30, "world": 200, "resampling": 1}
_INVERTING, _REVERSING, _ADAPTING = 42, 28, 2  # a reversal needs no estimate of the number
_ESTIMATOR, _CHAINS, _START = 20, 0.007, 20  # s for a training set, for a vector that chains are chosen on, fixed
_MAIN, _WORKER, _RECORDING = (0.4e9, 1.2e9), (0.15e9, 0.35e9), 3e3  # bytes, without and with networks; in lists
_FRAMES = 100  # in a second


class Estimate(NamedTuple):
    """Seconds of the anonymisation, the attackers (each by name) and the metrics; bytes of memory and disk."""

    anonymisation: float
    attackers: dict[str, float]
    metrics: float
    unknown: list[str]
    hours: float
    n_workers: int
    memory: float
    disk: float

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {_duration(value)}" for name, value in self.attackers.items())
        total = sum(self.attackers.values())
        cores = f"{self.n_workers} core{'s' if self.n_workers > 1 else ''}"
        text = f"about {_duration(self.anonymisation + total + self.metrics)} on {cores},"
        text += f" {_size(self.memory)} of memory and {_size(self.disk)} of disk if all is new: anonymisation"
        text += f" {_duration(self.anonymisation)}, attackers on {self.hours:.1f} h of speech {_duration(total)}"
        text += f"{f' ({parts})' if parts else ''}, metrics and intervals {_duration(self.metrics)}"
        return text + (f"; not known: {', '.join(self.unknown)}" if self.unknown else "")


def estimate(
    config: Config,
    sets: Sets,
    headers: Mapping[str, Sequence[tuple[int, int, float]]],
    anonymizer: TwinConfig | None,
    parts: Mapping[str, int],
    n_workers: int,
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
    """
    specs = [spec for spec in attacker_specs(config).values() if spec.row]
    inverts, reverses = any(spec.inverts for spec in specs), any(spec.row.is_reversed for spec in specs if spec.row)
    most = INVERTED_DRAWS if all(spec.is_network for spec in specs if spec.inverts) else None
    plain = anonymised = inverted = tried = 0.0  # seconds of speech
    recordings = learnt = 0.0
    made = derived = 0.0  # bytes of WAV files with 16 bits
    for name, side in sets.sides.items():
        draws = anonymizer.draws(side) if anonymizer else 1
        count, seconds = (sum(row[place] for row in headers[name]) for place in (1, 2))
        size = sum(2 * rate * duration for rate, _, duration in headers[name])
        share = parts.get(name, count) / max(count, 1)
        plain += seconds * min(1.0, draws * share)
        anonymised += draws * share * seconds
        undone = {"training": 0, "enrolment": min(draws, most or draws), "trials": draws}[side]
        inverted += undone * share * seconds
        tried += seconds * (side == "trials")  # of one draw, see `Sets.tested_draws`
        made += size * share * (draws - (name in sets.versions))
        derived += size * (undone * inverts + NUMBERS * reverses * (side == "trials"))
        derived += size * (1 + draws * share) * (name in parts and needs_pieces(sets.original[name]))
        recordings += count * (1 + draws * share)
        learnt += count * (min(1.0, draws * share) + draws * share) * (name in parts)
    seconds_of, paid = dict[str, float](), set[tuple[str, str, str]]()
    for spec in specs:
        row = spec.row
        if row is None or row.seconds is None:
            continue
        speech, more = plain + anonymised, 0
        if spec.inverts:
            speech, more = (NUMBERS * tried, _REVERSING) if row.is_reversed else (inverted, _INVERTING)
        source = row.base, spec.argument, "reversed" if row.is_reversed else "inverted" if row.is_inverted else ""
        cost = ((row.seconds + more) * (source not in paid) + _ADAPTING * bool(row.adapted)) * speech / 3600
        cost += _ESTIMATOR * len(sets.training_sets) * (row.is_inverted and source not in paid)
        # adapted chains are fewer, and a PLDA of the enrolled has one
        cost += _CHAINS * learnt * row.is_network * {"": 1.0, "enrolled-plda": 0.0}.get(row.adapted, 0.4)
        seconds_of[spec.name] = cost / n_workers
        paid.add(source)
    known = config.anonymizer.name or (anonymizer.name if anonymizer else "none")
    anonymising = _ANONYMISING.get(known, 0) * made / 32_000 / 3600 / n_workers
    unknown = [name for name in attacker_specs(config) if name not in seconds_of]
    unknown += [f"anonymiser {known}"] if made and known not in (*_ANONYMISING, "none") else []
    found = (features_of(chosen) for group in sets.rate_groups for chosen in group.attackers)
    features = {repr(feature): feature for feature in found if feature is not None}
    cepstra = sum(4 * _FRAMES * (feature.n_cepstra + 2) for feature in features.values())
    disk = made + derived + (plain + anonymised) * cepstra
    frames = [min(1e9 * one.memory_gb, 4 * _FRAMES * one.dimension * anonymised) for one in features.values()]
    is_network = any(spec.is_network for spec in specs)
    memory = _MAIN[is_network] + n_workers * _WORKER[is_network] + recordings * _RECORDING + max(frames, default=0)
    metrics, hours = _metrics(config, sets, anonymizer, n_workers) + _START / n_workers, (plain + anonymised) / 3600
    return Estimate(anonymising, seconds_of, metrics, unknown, hours, n_workers, memory, disk)


def check_disk(found: Estimate, output: Path, folders: Sequence[str]) -> None:
    """Raise a DataError if the disk has no room for what a run has still to write.

    Parameters
    ----------
    found : Estimate
    output : Path
        The output folder.
    folders : sequence of str
        Folders in it that earlier runs may have filled.
    """
    there = sum(path.stat().st_size for name in folders for path in (output / name).rglob("*") if path.is_file())
    free = shutil.disk_usage(output).free
    if (due := found.disk - there) > free:
        text = f"the run needs about {_size(due)} of disk, {_size(free)} are free"
        remedy = "choose another --output, or fewer draws (anonymizer.training_draws=1) or attackers"
        raise DataError(text, file=output, remedy=remedy)


def _metrics(config: Config, sets: Sets, anonymizer: TwinConfig | None, n_workers: int) -> float:
    """Return the seconds of metrics and intervals, single and pooled."""
    sizes = []
    for dataset in sets.datasets:
        lists = [len(key) for name in dataset.trials.values() if (key := sets.original[name].trials)]
        sizes += [*lists, sum(lists)] if len(lists) > 1 else lists
    # measured with lists of 700 to 134,000 trials; the same again for figures over several attackers
    of_list = [0.03 + 6e-6 * size + config.evaluation.resamples * (5e-4 + 3e-8 * size) for size in sizes]
    draws = anonymizer.draws("trials") if anonymizer else 1
    return 2 * len(config.attackers) * (1 + 3 * draws) * sum(of_list) / n_workers


def _duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _size(number: float) -> str:
    """Format bytes in MB or GB."""
    return f"{number / 1e6:.0f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
