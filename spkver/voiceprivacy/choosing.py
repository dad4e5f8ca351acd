"""The configured attackers: their descriptions and their sampling rates.

Recordings that are compared with each other are processed at one sampling rate: the lowest rate of a training set and
of the enrolment and trials that are scored after training on it, original and anonymised. If an anonymiser narrows the
band, attackers use no more than this band of the original, and nobody is recognised by the bandwidth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.reports import AttackersRun, Condition
from spkbase.configuration import merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import fingerprint
from spkbase.runs import Run
from spkbase.work import chunks
from spkver.anonymization import BUILT_IN
from spkver.attackers import (
    BY_FEATURES,
    Fusion,
    Spec,
    absent_attackers,
    default_attackers,
    make_attacker,
    parse_spec,
)
from spkver.audio import audio_header
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, values_for_rates
from spkver.voiceprivacy.sets import RateGroup, Sets, stamp_of
from spkver.voiceprivacy.settings import ALL, Config

Chosen = tuple[Spec, Any]

_FILES = 256  # number of headers that one task reads


def attacker_specs(config: Config) -> dict[str, Spec]:
    """Return the configured attackers by name, in their order.

    Raises
    ------
    ConfigError
        If a preset is unknown, or two attackers have the same name.
    """
    specs: dict[str, Spec] = {}
    for entry in config.attackers:
        spec = parse_spec(entry, config.attacker_settings.get(entry))
        other = specs.get(spec.name)
        if other is not None:
            text = f"attackers: {other.entry!r} and {entry!r} would both be called {spec.name}"
            remedy = f"give one a name: attackers=[..., mine] and attacker_settings.mine.preset={entry!r}"
            raise ConfigError(text, remedy=remedy)
        specs[spec.name] = spec
    return specs


def chosen_attackers(config: Config, rates: Collection[int] = ()) -> list[Chosen]:
    """Return the configured attackers with their specs, in their order.

    Parameters
    ----------
    config : Config
    rates : collection of int [Hz]
        Sampling rates of the recordings; features that are not configured are fitted to them.

    Raises
    ------
    ConfigError
        If a preset is unknown, a user-supplied attacker cannot be opened, two attackers have the same name, or a
        setting is wrong.
    """
    chosen: list[Chosen] = []
    # by the name of the folder of models: the attacker, and a digest of its settings
    folders: dict[str, tuple[Spec, str]] = {}
    for spec in attacker_specs(config).values():
        shared = config.attacker_settings.get(ALL, {})
        fitting = fitting_features(config, spec, rates)
        if fitting:
            shared = merged({"features": fitting}, shared)
        attacker: Any = make_attacker(
            spec,
            config.attacker_settings,
            shared=shared,
            seed=config.seed,
            hypotheses=_in_directories(config.utility.hypotheses),
            time_limit=config.attackers_time_limit,
        )
        if attacker.source is not None:
            # the record of an attacker with a source is the same for every attack
            digest = fingerprint(attacker.record(None))
            other, expected = folders.setdefault(attacker.name, (spec, digest))
            if digest != expected:
                text = f"attackers: {other.entry!r} and {spec.entry!r} with other settings would share a folder"
                raise ConfigError(
                    text, remedy=f"repeat the settings under attacker_settings.{spec.entry}"
                )
        chosen.append((spec, attacker))
    return chosen


def _in_directories(hypotheses: str | None) -> str | None:
    """Return the name of the file of hypotheses in the data directories; None if they are in a folder of their own."""
    if hypotheses is None or Path(hypotheses).is_dir():
        return None
    return hypotheses


def fitting_features(config: Config, spec: Spec, rates: Collection[int]) -> dict[str, object]:
    """Return the settings that fit an attacker's features to sampling rates, see `values_for_rates`."""
    if spec.row is None or spec.row.base not in BY_FEATURES:
        return {}
    layers = []
    for key in (ALL, spec.row.base, spec.entry):
        values = config.attacker_settings.get(key, {}).get("features")
        if isinstance(values, Mapping):
            layers.append(values)
    return values_for_rates(merged(*layers), rates)


# --- descriptions of attackers ----------------------------------------------------------------------------------------


def attackers_run(config: Config, conditions: Sequence[Condition] = ()) -> AttackersRun:
    """Describe the attackers that were run, and say that their result is an upper bound on privacy.

    Parameters
    ----------
    config : Config
    conditions : sequence of Condition, optional
        Results; attackers without any are left out. By default all attackers are described.
    """
    specs = attacker_specs(config)
    served = {condition.attacker for condition in conditions}
    explained = {name: spec.summary for name, spec in specs.items()}
    inverting = {name for name, spec in specs.items() if spec.inverts}
    for name, spec in specs.items():
        fusion = Fusion(name).inverting.name
        if spec.kind == "fusion" and fusion in served:
            explained[fusion] = f"{spec.summary}, with attackers that invert the anonymisation"
            inverting.add(fusion)
        reading = Fusion(name).with_words.name
        if spec.kind == "fusion" and reading in served:
            explained[reading] = f"{spec.summary}, with attackers that read the words"
    missing = []
    if conditions:
        missing = [name for name in explained if name not in served]
    for name in missing:
        del explained[name]
    networks = [name for name in explained if name in specs and specs[name].is_network]
    kind = "no neural network"
    if networks:
        kind = f"{len(networks)} of them with a neural network"
    text = f"Attackers run: {len(explained)}, {kind}. The figure is an upper bound of"
    if missing:
        text = f"Attackers not run, or failed: {', '.join(missing)}. {text}"
    return AttackersRun(
        names=tuple(explained),
        of_others=tuple(name for name in explained if name in specs and specs[name].row is None),
        networks=tuple(networks),
        undoing=tuple(name for name in explained if name in inverting),
        explained=explained,
        text=f"{text} the privacy that is left: a stronger attacker may leave less.",
    )


def describe_unwatched(config: Config) -> str:
    """Return a warning that changes in dependencies of user-supplied code go unnoticed; empty without such code."""
    own = []
    if config.anonymizer.name not in ("", *BUILT_IN):
        own.append("anonymiser")
    own += [f"attacker {name}" for name, spec in attacker_specs(config).items() if spec.is_own_code]
    if not own:
        return ""
    text = "installed modules that it imports and files that it reads may change unnoticed; after a change give --force"
    return f"user-supplied code ({', '.join(own)}): {text}"


def describe_absent(config: Config) -> list[str]:
    """Return a line for each reason why default attackers cannot run; none if the configuration names attackers."""
    if config.attackers != default_attackers():
        return []
    reasons: dict[str, list[str]] = {}
    for name, why in absent_attackers().items():
        if name not in config.attackers:
            reasons.setdefault(why, []).append(name)
    return [f"left out: {', '.join(names)}: {why}" for why, names in reasons.items()]


# --- sampling rates ---------------------------------------------------------------------------------------------------


def read_headers(sets: Sets, run: Run) -> dict[str, list[tuple[int, int, float]]]:
    """Return each sampling rate [Hz] of a folder, its number of recordings and their duration [s], by folder.

    Files that cannot be read are left out. Headers that an earlier run has read are not read again.
    """
    folders = _folders_of(sets, *sets.training_sets)
    read = partial(_count_rates, folders, run)
    after = [stamp_of(run, directory) for directory in folders]
    headers: dict[str, list[tuple[int, int, float]]] = run.once("sampling rates", read, after=after)
    return headers


def fit_attackers(
    sets: Sets,
    headers: Mapping[str, Sequence[tuple[int, int, float]]],
    config: Config,
    usual: Sequence[Any],
) -> tuple[RateGroup, ...]:
    """Return attackers whose features fit the sampling rates of the recordings.

    Parameters
    ----------
    sets : Sets
        A missing twin is assumed to have the rates of its original.
    headers : mapping
        See `read_headers`.
    config : Config
    usual : sequence
        The configured attackers.

    Returns
    -------
    tuple of RateGroup
        One for each group of training sets with the same rates.

    Raises
    ------
    ConfigError
        If settings contradict the rates.
    """
    groups: dict[tuple[int, ...], list[str]] = {}
    for training in sets.training_sets:
        rates: set[int] = set()
        for directory in _folders_of(sets, training):
            rates.update(rate for rate, *_ in headers[directory.path.name])
        groups.setdefault(tuple(sorted(rates)), []).append(training)
    made = []
    for of_group, names in groups.items():
        fitted = chosen_attackers(config, of_group)
        is_usual = list(map(features_of, fitted)) == list(map(features_of, usual))
        datasets = tuple(dataset.name for dataset in sets.datasets if dataset.training in names)
        counts = {}
        for training in names:
            for directory in _folders_of(sets, training):
                name = directory.path.name
                for rate, count, _ in headers[name]:
                    counts[name, rate] = count
        made.append(RateGroup(tuple(names), datasets, counts, usual if is_usual else fitted))
    return tuple(made)


def features_of(chosen: Chosen) -> FeatureConfig | None:
    """Return the features of an attacker; None if it uses none."""
    source = chosen[1].source
    if source is None:
        return None
    features: FeatureConfig | None = source.features
    return features


def describe_rates(groups: Sequence[RateGroup], usual: Sequence[Any]) -> str:
    """Describe the sets that are resampled or processed with unusual features; empty if there are none."""
    texts = []
    for group in groups:
        rates = {rate for _, rate in group.rates}
        ways: dict[str, list[str]] = {}
        for chosen, before in zip(group.attackers, map(features_of, usual), strict=True):
            way = _unusual_rate(chosen, before, rates)
            if way:
                ways.setdefault(way, []).append(chosen[0].name)
        if not ways:
            continue
        counts = ", ".join(_count_of_rate(group, rate) for rate in sorted(rates))
        parts = [f"{', '.join(group.datasets)}, with {', '.join(group.training)}: {counts}"]
        parts += [f"{way}: {', '.join(names)}" for way, names in ways.items()]
        texts.append("; ".join(parts) + ".")
    return " ".join(texts)


def _unusual_rate(chosen: Chosen, usual: FeatureConfig | None, rates: Collection[int]) -> str:
    """Describe how an attacker processes recordings of some rates, if that is unusual."""
    features = features_of(chosen)
    if features is not None:
        if features == usual and rates == {features.rate}:
            return ""
        return f"features at {features.rate} Hz, up to {features.high_frequency:g} Hz"
    source = chosen[1].source
    if source is None or not source.rate or rates == {source.rate}:
        return ""
    return f"at {source.rate} Hz"


def _count_of_rate(group: RateGroup, rate: int) -> str:
    """Return how many recordings have a given sampling rate and, if there are several rates, where they are."""
    counts = {folder: count for (folder, other), count in group.rates.items() if other == rate}
    text = f"{sum(counts.values())} recordings at {rate} Hz"
    if len({other for _, other in group.rates}) > 1:
        text += f" ({few(list(counts))})"
    return text


def _folders_of(sets: Sets, *training: str) -> list[DataDir]:
    """Return the existing directories, original and anonymised, of the sets that use given training sets."""
    names: dict[str, None] = {}
    for dataset in sets.datasets:
        if dataset.training in training:
            names |= dict.fromkeys(dataset.directories)
    directories = []
    for name in names:
        directories += sets.pair(name)
    return directories


def _count_rates(folders: Sequence[DataDir], run: Run) -> dict[str, list[tuple[int, int, float]]]:
    """Return each sampling rate of a folder, the number of recordings and their duration, by folder."""
    items: list[tuple[str, Path]] = []
    counts: dict[str, dict[int, tuple[int, float]]] = {}
    for directory in folders:
        name = directory.path.name
        counts[name] = {}
        items += [(name, path) for path in directory.recordings.values()]
    tasks = chunks(items, _FILES)
    sizes = list(map(len, tasks))
    for headers in run.work.map(_read_headers, tasks, description="sampling rates", sizes=sizes):
        for folder, rate, seconds in headers:
            count, total = counts[folder].get(rate, (0, 0.0))
            counts[folder][rate] = (count + 1, total + seconds)
    rows = {}
    for folder, rates in counts.items():
        rows[folder] = [(rate, *rates[rate]) for rate in sorted(rates)]
    return rows


def _read_headers(items: Sequence[tuple[str, Path]]) -> list[tuple[str, int, float]]:
    headers = []
    for folder, path in items:
        with suppress(DataError):  # reported when recordings are checked
            header = audio_header(path)
            headers.append((folder, header.rate, header.seconds))
    return headers
