"""The configured attackers: their descriptions and their sampling rates.

Recordings that are compared with each other are processed at one sampling rate: the lowest rate of a training set and
of the enrolment and trials that are scored after training on it, original and anonymised. If an anonymiser narrows the
band, attackers use no more than this band of the original, and nobody is recognised by the bandwidth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
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
from spkver.features import FeatureConfig, values_for_rates
from spkver.voiceprivacy.sets import RateGroup, Sets, stamp_of
from spkver.voiceprivacy.settings import ALL, Config

Json = dict[str, Any]
Chosen = tuple[Spec, Any]

_FILES = 256  # headers read in one task


def attacker_specs(config: Config) -> dict[str, Spec]:
    """Return the configured attackers by name, in their order.

    Raises
    ------
    ConfigError
        If a preset is unknown, or two attackers have one name.
    """
    specs: dict[str, Spec] = {}
    for entry in config.attackers:
        spec = parse_spec(entry, config.attacker_settings.get(entry))
        if (other := specs.get(spec.name)) is not None:
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
        If a preset is unknown, a user-supplied attacker cannot be opened, two attackers have one name, or a setting is
        wrong.
    """
    chosen, folders = [], dict[str, tuple[Spec, str]]()
    for spec in attacker_specs(config).values():
        shared = config.attacker_settings.get(ALL, {})
        if fitting := fitting_features(config, spec, rates):
            shared = merged({"features": fitting}, shared)
        how: Json = {"hypotheses": config.utility.hypotheses, "time_limit": config.attackers_time_limit}
        made: Any = make_attacker(spec, config.attacker_settings, shared=shared, seed=config.seed, **how)
        if made.source is not None:
            settings = spec, fingerprint(made.record(None))  # with a source it depends on no attack
            other, same = folders.setdefault(made.name, settings)
            if same != settings[1]:
                text = f"attackers: {other.entry!r} and {spec.entry!r} with other settings would share a folder"
                raise ConfigError(text, remedy=f"repeat the settings under attacker_settings.{spec.entry}")
        chosen.append((spec, made))
    return chosen


def fitting_features(config: Config, spec: Spec, rates: Collection[int]) -> dict[str, object]:
    """Return the settings that fit an attacker's features to sampling rates, see `values_for_rates`."""
    if spec.row is None or spec.row.base not in BY_FEATURES:
        return {}
    layers = [config.attacker_settings.get(key, {}).get("features") for key in (ALL, spec.row.base, spec.entry)]
    return values_for_rates(merged(*[values for values in layers if isinstance(values, Mapping)]), rates)


# --- descriptions of attackers ----------------------------------------------------------------------------------------


def attackers_run(config: Config, conditions: Sequence[Condition] = ()) -> AttackersRun:
    """Describe the attackers that were run, and say that their result is an upper bound of privacy.

    Parameters
    ----------
    config : Config
    conditions : sequence of Condition, optional
        Results: an attacker without any was not run. By default all attackers were run.
    """
    served = {condition.attacker for condition in conditions}
    specs = attacker_specs(config)
    summaries = {name: spec.summary for name, spec in specs.items()}
    for name, spec in specs.items():
        inverting = Fusion(name).inverting.name if spec.kind == "fusion" else ""
        if inverting in served:
            summaries[inverting] = f"{spec.summary}, with attackers that invert the anonymisation"
    run = [name for name in summaries if not conditions or name in served]
    others = [name for name in run if name in specs and specs[name].row is None]
    networks = [name for name in run if name in specs and specs[name].is_network]
    undoing = [name for name in run if name not in specs or specs[name].inverts]
    kind = f"{len(networks)} of them with a neural network" if networks else "no neural network"
    text = f"Attackers run: {len(run)}, {kind}. The figure is an upper bound of"
    if left := [name for name in summaries if name not in run]:
        text = f"Attackers not run, or failed: {', '.join(left)}. {text}"
    return AttackersRun(
        names=tuple(run),
        of_others=tuple(others),
        networks=tuple(networks),
        undoing=tuple(undoing),
        explained={name: summaries[name] for name in run},
        text=f"{text} the privacy that is left: a stronger attacker may leave less.",
    )


def describe_unwatched(config: Config) -> str:
    """Return a warning that changes in dependencies of user-supplied code go unnoticed; empty without such code."""
    own = [] if config.anonymizer.name in ("", *BUILT_IN) else ["anonymiser"]
    own += [f"attacker {name}" for name, spec in attacker_specs(config).items() if spec.is_own_code]
    text = "installed modules that it imports and files that it reads may change unnoticed; after a change give --force"
    return f"user-supplied code ({', '.join(own)}): {text}" if own else ""


def describe_absent(config: Config) -> list[str]:
    """Return a line for each reason why default attackers cannot run; no line if the configuration names attackers."""
    reasons: dict[str, list[str]] = {}
    for name, why in absent_attackers().items() if config.attackers == default_attackers() else ():
        if name not in config.attackers:
            reasons.setdefault(why, []).append(name)
    return [f"left out: {', '.join(names)}: {why}" for why, names in reasons.items()]


# --- sampling rates ---------------------------------------------------------------------------------------------------


def read_headers(sets: Sets, run: Run) -> dict[str, list[tuple[int, int, float]]]:
    """Return each sampling rate [Hz] of a folder, its number of recordings and their duration [s], by folder.

    Files that cannot be read are left out. They are not opened again if they were read in an earlier run.
    """
    names = dict.fromkeys(name for dataset in sets.datasets for name in dataset.directories)
    folders = [directory for name in names for directory in sets.pair(name)]
    items = [(directory.path.name, path) for directory in folders for path in directory.recordings.values()]

    def read() -> dict[str, list[tuple[int, int, float]]]:
        found: dict[str, dict[int, tuple[int, float]]] = {directory.path.name: {} for directory in folders}
        tasks = chunks(items, _FILES)
        for headers in run.work.map(_read_headers, tasks, description="sampling rates", sizes=[*map(len, tasks)]):
            for folder, rate, seconds in headers:
                count, total = found[folder].get(rate, (0, 0.0))
                found[folder][rate] = count + 1, total + seconds
        return {folder: [(rate, *of_rate) for rate, of_rate in sorted(of.items())] for folder, of in found.items()}

    return run.once("sampling rates", read, after=[stamp_of(run, directory) for directory in folders])


def fit_attackers(
    sets: Sets, headers: Mapping[str, Sequence[tuple[int, int, float]]], config: Config, usual: Sequence[Any]
) -> tuple[RateGroup, ...]:
    """Return attackers whose features fit the sampling rates of the recordings.

    Parameters
    ----------
    sets : Sets
        Missing twins have the rates of their originals.
    headers : mapping
        See `read_headers`.
    config : Config
    usual : sequence
        The attackers as configured.

    Returns
    -------
    tuple of RateGroup
        One for each group of training sets with the same rates.

    Raises
    ------
    ConfigError
        If settings contradict the rates.
    """
    groups: dict[tuple[int, ...], dict[str, list[str]]] = {}
    for training in sets.training_sets:
        names = dict.fromkeys(
            name for dataset in sets.datasets if dataset.training == training for name in dataset.directories
        )
        folders = [directory.path.name for name in names for directory in sets.pair(name)]
        rates = tuple(sorted({rate for folder in folders for rate, *_ in headers[folder]}))
        groups.setdefault(rates, {})[training] = folders
    found = []
    for rates, of_sets in groups.items():
        fitted = chosen_attackers(config, rates)
        is_fitted = list(map(features_of, fitted)) != list(map(features_of, usual))
        datasets = tuple(dataset.name for dataset in sets.datasets if dataset.training in of_sets)
        folders = list(dict.fromkeys(folder for part in of_sets.values() for folder in part))
        counts = {(folder, rate): count for folder in folders for rate, count, _ in headers[folder]}
        found.append(RateGroup(tuple(of_sets), datasets, counts, fitted if is_fitted else usual))
    return tuple(found)


def features_of(chosen: Chosen) -> FeatureConfig | None:
    """Return the features of an attacker; None if it uses none."""
    source = chosen[1].source
    return None if source is None else source.features


def describe_rates(groups: Sequence[RateGroup], usual: Sequence[Any]) -> str:
    """Describe the sets that are resampled or processed with other features than usual; empty if there are none."""
    texts = []
    for group in groups:
        rates = {rate for _, rate in group.rates}
        ways = dict[str, list[str]]()
        for chosen, before in zip(group.attackers, map(features_of, usual), strict=True):
            features, source = features_of(chosen), chosen[1].source
            if features is not None:
                if features != before or rates != {features.rate}:
                    way = f"features at {features.rate} Hz, up to {features.high_frequency:g} Hz"
                    ways.setdefault(way, []).append(chosen[0].name)
            elif source is not None and (rate := source.extractor.extraction.rate) and rates != {rate}:
                ways.setdefault(f"at {rate} Hz", []).append(chosen[0].name)
        if ways:
            counts = []
            for rate in sorted(rates):
                folders = {folder: count for (folder, at), count in group.rates.items() if at == rate}
                where = f" ({few(list(folders))})" if len(rates) > 1 else ""
                counts.append(f"{sum(folders.values())} recordings at {rate} Hz{where}")
            text = f"{', '.join(group.datasets)}, with {', '.join(group.training)}: {', '.join(counts)}"
            texts.append("; ".join([text, *(f"{way}: {', '.join(names)}" for way, names in ways.items())]) + ".")
    return " ".join(texts)


def _read_headers(items: Sequence[tuple[str, Path]]) -> list[tuple[str, int, float]]:
    headers = []
    for folder, path in items:
        with suppress(DataError):  # reported where recordings are checked
            header = audio_header(path)
            headers.append((folder, header.rate, header.seconds))
    return headers
