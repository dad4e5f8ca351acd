"""How long attackers will take, told before they start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spkbase.work import chunks, ordered_map
from spkver.attackers import absent_attackers, cost_of, default_attackers, find_row
from spkver.audio import audio_header
from spkver.datadir import DataDir
from spkver.voiceprivacy.choosing import attacker_name
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config

_FILES = 64  # whose headers are one task


def seconds_of(rates: Mapping[str, float], hours: float, n_workers: int) -> dict[str, float]:
    """Return how long each attacker works on so many hours of speech, by seconds of one core an hour.

    Examples
    --------
    >>> seconds_of({"gmm-svm": 6.0, "campplus": 70.0}, 2.0, 2)
    {'gmm-svm': 6.0, 'campplus': 70.0}
    """
    return {name: rate * hours / n_workers for name, rate in rates.items()}


def hours_of_speech(sets: Sets, draws: Mapping[str, int], *, jobs: int | None) -> float:
    """Return how much speech attackers hear: each original once, and each of so many draws of training, enrolment and
    trials, one where their number is not given.
    """
    sides = sets.sides
    return sum(
        (1 + draws.get(sides.get(name, ""), 1)) * _hours(directory, jobs) for name, directory in sets.original.items()
    )


def _hours(directory: DataDir, jobs: int | None) -> float:
    paths = [str(path) for path in directory.recordings.values()]
    return sum(ordered_map(_seconds, chunks(paths, _FILES), jobs=jobs, threads=True)) / 3600


def _seconds(paths: Sequence[str]) -> float:
    return sum(audio_header(path).seconds for path in paths)


def describe_estimate(config: Config, hours: float, n_workers: int) -> str:
    """Return what is told before the start: how long all attackers take about, those that are not known left out."""
    specs = {
        attacker_name(entry): str(config.attacker_settings.get(entry, {}).get("preset", entry))
        for entry in config.attackers
    }
    rates, unknown = {}, []
    rows = {name: find_row(spec) for name, spec in specs.items()}
    kinds = {name: specs[name] if row is None else row[0] for name, row in rows.items()}
    for name, kind in kinds.items():
        rate = cost_of(kind, set(kinds.values()))
        if rate is None:
            unknown.append(name)
        else:
            rates[name] = rate
    seconds = seconds_of(rates, hours, n_workers)
    parts = ", ".join(f"{name} {_duration(value)}" for name, value in seconds.items())
    cores = f"{n_workers} core{'s' if n_workers > 1 else ''}"
    text = f"attackers on {hours:.1f} h of speech, about {_duration(sum(seconds.values()))} on {cores} if all is new"
    text += f" ({parts})" if parts else ""
    return text + (f"; how long {', '.join(unknown)} takes is not known" if unknown else "")


def describe_absent(config: Config) -> list[str]:
    """Return a line for each reason why attackers that would run by default cannot; none if others were chosen."""
    if config.attackers != default_attackers():
        return []
    reasons: dict[str, list[str]] = {}
    for name, why in absent_attackers().items():
        if name not in config.attackers:
            reasons.setdefault(why, []).append(name)
    return [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}" for why, names in reasons.items()
    ]


def _duration(seconds: float) -> str:
    """Seconds, or minutes from a hundred seconds on."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{seconds / 60:.0f} min"
