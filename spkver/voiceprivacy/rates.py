"""The sampling rates of an evaluation: recordings that are compared with each other are heard at one rate.

An attacker learns from a training set and scores all that is tested against it. So the rates that count together are
those of a training set and of the enrolment and trials of its sets, original and anonymised: an anonymiser that leaves
less of the band than it got leaves the attacker no more of the original, and nobody is told apart by the band.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spkbase.errors import DataError, few
from spkbase.showing import one_line
from spkbase.work import chunks, ordered_map
from spkver.audio import audio_header
from spkver.features import FeatureConfig
from spkver.voiceprivacy.choosing import chosen_attackers
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config

Chosen = Sequence[Any]
"""Attackers as `chosen_attackers` has them."""


@one_line
@dataclass(frozen=True)
class Heard:
    """What attackers that learn from some training sets hear.

    Attributes
    ----------
    training : tuple of str
        Training sets with the same rates.
    datasets : tuple of str
        What is tested with them.
    rates : dict of str to dict of int to int
        Data directory to sampling rate to number of recordings.
    attackers : sequence of AttackerConfig, Attacker or Wanted
        With features that fit.
    is_fitted : bool
        Whether they are others than without these rates.
    """

    training: tuple[str, ...]
    datasets: tuple[str, ...]
    rates: Mapping[str, Mapping[int, int]]
    attackers: Chosen = field(repr=False)
    is_fitted: bool = False

    @property
    def counts(self) -> dict[int, int]:
        """Number of recordings at each rate, from the lowest."""
        found: Counter[int] = Counter()
        for of_directory in self.rates.values():
            found.update(of_directory)
        return dict(sorted(found.items()))


def listen(sets: Sets, config: Config, usual: Chosen, *, jobs: int | None = None) -> list[Heard]:
    """Find the sampling rates of all recordings that attackers hear, and attackers that fit them.

    Parameters
    ----------
    sets : Sets
        Twins that are still to be made have the rates of their originals.
    config : Config
    usual : sequence
        The attackers as they are configured.
    jobs : int, optional
        Work.

    Returns
    -------
    list of Heard
        One for each group of training sets with the same rates. Files that cannot be read are passed over.

    Raises
    ------
    ConfigError
        If settings do not go with the rates.
    """
    names = {name for dataset in sets.datasets for name in dataset.directories}
    directories = {
        directory.path.name: directory.recordings
        for side in (sets.original, sets.twins)
        for name, directory in side.items()
        if name in names
    }
    items = [(name, path) for name, recordings in directories.items() for path in recordings.values()]
    found: dict[str, Counter[int]] = {name: Counter() for name in directories}
    described = "sampling rates"
    batches = chunks(items, 256)
    sizes = [*map(len, batches)]
    for part in ordered_map(_rates, batches, jobs=jobs, threads=True, description=described, sizes=sizes):
        for name, rate in part:
            found[name][rate] += 1
    groups: dict[tuple[int, ...], dict[str, dict[str, Counter[int]]]] = {}
    for training in dict.fromkeys(dataset.training for dataset in sets.datasets):
        of_set = {name: found[name] for name in _directories(sets, training)}
        rates = tuple(sorted({rate for counts in of_set.values() for rate in counts}))
        groups.setdefault(rates, {})[training] = of_set
    heard = []
    for rates, of_sets in groups.items():
        fitted = chosen_attackers(config, rates)
        is_fitted = list(map(features_of, fitted)) != list(map(features_of, usual))
        tested = tuple(dataset.name for dataset in sets.datasets if dataset.training in of_sets)
        by_directory = {name: counts for of_set in of_sets.values() for name, counts in of_set.items()}
        heard.append(Heard(tuple(of_sets), tested, by_directory, fitted if is_fitted else usual, is_fitted))
    return heard


def _directories(sets: Sets, training: str) -> Iterator[str]:
    """Names of the folders of a training set and of all that is tested against it, original and anonymised."""
    names = [name for dataset in sets.datasets if dataset.training == training for name in dataset.directories]
    for side in (sets.original, sets.twins):
        yield from (side[name].path.name for name in dict.fromkeys(names) if name in side)


def _rates(items: Sequence[tuple[str, Path]]) -> list[tuple[str, int]]:
    rates = []
    for name, path in items:
        try:
            rates.append((name, audio_header(path).rate))
        except DataError:  # told where recordings are checked
            continue
    return rates


def features_of(attacker: Any) -> FeatureConfig | None:
    """Return the features that an attacker hears by, or that by which it works; None where it has none."""
    basis = _basis(attacker)
    features = getattr(getattr(basis, "config", basis), "features", None)
    return features if isinstance(features, FeatureConfig) else None


def _basis(attacker: Any) -> Any:
    while hasattr(attacker, "base"):
        attacker = attacker.base
    return attacker


def refusing_keys(config: Config) -> list[str]:
    """Return the keys that forbid to resample."""
    layers = {key: values.get("features") for key, values in config.attacker_settings.items()}
    return [
        f"attacker_settings.{key}.features.resample"
        for key, values in layers.items()
        if isinstance(values, Mapping) and values.get("resample") is False
    ]


def describe_rates(heard: Sequence[Heard], usual: Chosen) -> str:
    """Return which sets are heard at another rate than their recordings or the features have, or an empty text."""
    return " ".join(text for group in heard if (text := _described(group, usual)))


def _described(heard: Heard, usual: Chosen) -> str:
    by_features: dict[str, list[str]] = {}
    by_networks: dict[str, list[str]] = {}
    for attacker, before in zip(heard.attackers, map(features_of, usual), strict=True):
        features, basis = features_of(attacker), _basis(attacker)
        if features is not None and before is not None:
            text = f"features are computed at {features.rate} Hz{_moved(heard.counts, features.rate)}"
            if features.high_frequency != before.high_frequency:
                text += f", and go up to {features.high_frequency:g} Hz instead of {before.high_frequency:g} Hz"
            if features != before or set(heard.counts) != {features.rate}:
                by_features.setdefault(text, []).append(attacker.name)
            continue
        rate = basis.extractor.extraction.rate if hasattr(basis, "extractor") else None
        if rate is not None and (moved := _moved(heard.counts, rate)):
            by_networks.setdefault(f"at {rate} Hz{moved}", []).append(attacker.name)
    if not by_features and not by_networks:
        return ""
    ways = [text if len(by_features) == 1 else f"{text} ({', '.join(names)})" for text, names in by_features.items()]
    ways += [f"{', '.join(names)}: {text}" for text, names in by_networks.items()]
    most, parts = max(heard.counts, key=lambda rate: heard.counts[rate]), []
    for rate, count in heard.counts.items():
        here = [name for name, rates in heard.rates.items() if rates.get(rate)]
        parts.append(f"{count} recordings at {rate} Hz" + (f" ({few(here)})" if rate != most else ""))
    return f"{', '.join(heard.datasets)}, with {', '.join(heard.training)}: {', '.join(parts)}; {'; '.join(ways)}."


def _moved(counts: Mapping[int, int], rate: int) -> str:
    moved = " and ".join(f"{count} from {other} Hz" for other, count in counts.items() if other != rate)
    return f", for which recordings are resampled, {moved}" if moved else ""
