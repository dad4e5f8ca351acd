"""Time, memory and disk of an evaluation, estimated before its first long step from counts and measured rates.

Attackers without a known rate, among them the user's own code, are named and not counted.
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

_RATES = {
    **{"mcadams": 15, "vtln": 30, "world": 200, "resampling": 1},
    # a quarter each of "attackers and scores" in the timings of: spkver voiceprivacy --jobs 2, these four alone
    **{"gmm-ubm": 6, "gmm-svm": 6, "gmm-svm-cms": 6, "supervector-cosine": 6, "supervector": 0},
    # python -m benchmarks.speed extractors; CAM++ between its 38 for 8 s and 56 for a run mostly of words of 2 s
    **{"campplus": 48, "ge2e": 16},
    # of runs with them alone, on a machine that did other work too: less exact
    **{"ivector": 30, "prosody": 20, "content": 1, "properties": 4, "session": 15},
    **{"inverted": 42, "reversed": 28, "adapted": 2},  # a reversal needs no estimate of the number
}
"""Seconds of one core for an hour of speech, training sets and their draws included: anonymisers, attackers, and what
inversion and adaptation add. Measured on one machine."""

_ESTIMATOR, _CHAINS, _START = 20, 0.007, 20  # s for a training set, for a vector that chains are chosen on, fixed
_MAIN, _WORKER, _RECORDING = (0.4e9, 1.2e9), (0.15e9, 0.35e9), 3e3  # bytes, without and with networks; in lists
_FRAMES = 100  # in a second


class Estimate(NamedTuple):
    """Seconds of all steps on so many cores, bytes of memory and disk, and what is not counted."""

    seconds: float
    memory: float
    disk: float
    n_workers: int
    unknown: list[str]

    def __str__(self) -> str:
        cores = f"{self.n_workers} core{'s' if self.n_workers > 1 else ''}"
        text = f"about {_duration(self.seconds)} on {cores},"
        text += f" {_size(self.memory)} of memory and {_size(self.disk)} of disk if all is new"
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
        count = sum(number for _, number, _ in headers[name])
        length = sum(duration for _, _, duration in headers[name])
        size = sum(2 * rate * duration for rate, _, duration in headers[name])
        share = parts.get(name, count) / max(count, 1)
        plain += length * min(1.0, draws * share)
        anonymised += draws * share * length
        undone = {"training": 0, "enrolment": min(draws, most or draws), "trials": draws}[side]
        inverted += undone * share * length
        tried += length * (side == "trials")  # of one draw, see `Sets.tested_draws`
        made += size * share * (draws - (name in sets.versions))
        derived += size * (undone * inverts + NUMBERS * reverses * (side == "trials"))
        derived += size * (1 + draws * share) * (name in parts and needs_pieces(sets.original[name]))
        recordings += count * (1 + draws * share)
        learnt += count * (min(1.0, draws * share) + draws * share) * (name in parts)
    seconds = 0.0
    unknown: list[str] = []
    paid: set[tuple[str, str, str]] = set()
    for spec in attacker_specs(config).values():
        row = spec.row
        if row is None or row.base not in _RATES:
            unknown.append(spec.name)
            continue
        kind = ""
        speech = plain + anonymised
        if row.is_reversed:
            kind = "reversed"
            speech = NUMBERS * tried
        elif row.is_inverted:
            kind = "inverted"
            speech = inverted
        if (row.base, spec.argument, kind) not in paid:  # attackers share vectors
            paid.add((row.base, spec.argument, kind))
            seconds += (_RATES[row.base] + _RATES.get(kind, 0)) * speech / 3600
            if kind == "inverted":
                seconds += _ESTIMATOR * len(sets.training_sets)
        if row.adapted:
            seconds += _RATES["adapted"] * speech / 3600
        if row.is_network:  # adapted chains are fewer, and a PLDA of the enrolled has one
            seconds += _CHAINS * learnt * {"": 1.0, "enrolled-plda": 0.0}.get(row.adapted, 0.4)
    known = config.anonymizer.name or (anonymizer.name if anonymizer else "none")
    seconds += _RATES.get(known, 0) * made / 32_000 / 3600
    if made and known not in (*_RATES, "none"):
        unknown.append(f"anonymiser {known}")
    found = (features_of(chosen) for group in sets.rate_groups for chosen in group.attackers)
    features = {repr(feature): feature for feature in found if feature is not None}
    cepstra = sum(4 * _FRAMES * (feature.n_cepstra + 2) for feature in features.values())
    disk = made + derived + (plain + anonymised) * cepstra
    frames = [
        min(1e9 * feature.memory_gb, 4 * _FRAMES * feature.dimension * anonymised) for feature in features.values()
    ]
    is_network = any(spec.is_network for spec in specs)
    memory = _MAIN[is_network] + n_workers * _WORKER[is_network] + recordings * _RECORDING + max(frames, default=0)
    seconds += _metrics(config, sets, anonymizer) + _START
    return Estimate(seconds / n_workers, memory, disk, n_workers, unknown)


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


def _metrics(config: Config, sets: Sets, anonymizer: TwinConfig | None) -> float:
    """Return the seconds of metrics and intervals, single and pooled."""
    sizes = []
    for dataset in sets.datasets:
        lists = [len(key) for name in dataset.trials.values() if (key := sets.original[name].trials)]
        sizes += [*lists, sum(lists)] if len(lists) > 1 else lists
    # measured with lists of 700 to 134,000 trials; the same again for figures over several attackers
    of_list = [0.03 + 6e-6 * size + config.evaluation.resamples * (5e-4 + 3e-8 * size) for size in sizes]
    draws = anonymizer.draws("trials") if anonymizer else 1
    return 2 * len(config.attackers) * (1 + 3 * draws) * sum(of_list)


def _duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _size(number: float) -> str:
    """Format bytes in MB or GB."""
    return f"{number / 1e6:.0f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
