"""The attackers that a configuration chooses: their names, what each is made of, and features that fit recordings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spkbase.configuration import merged
from spkbase.errors import ConfigError
from spkver.attackers import (
    PRESETS,
    Attacker,
    AttackerConfig,
    Context,
    Wanted,
    attacker_config,
    catalogue_name,
    find_row,
    is_outside,
    known_attackers,
    open_door,
    short_name,
)
from spkver.features import FeatureConfig, values_for_rates
from spkver.voiceprivacy.settings import ALL, Config

_BY_FEATURES = ("ivector", "supervector")  # attackers of the catalogue that have features, as the presets do
_ON_TOP = re.compile(r"(-adapted|-single-test|-aligned|-undone)+$")


def chosen_attackers(config: Config, rates: Collection[int] = ()) -> list[AttackerConfig | Attacker | Wanted]:
    """Return the attackers, in their order: configurations of the classic ones, those of the catalogue, and others by
    the doors.

    Parameters
    ----------
    config : Config
    rates : collection of int [Hz]
        Of the recordings that they hear; features that are not set otherwise are fitted to them.

    Raises
    ------
    ConfigError
        If a preset is unknown, a door does not open, two have one name, or with the problems of the settings.
    """
    chosen: dict[str, AttackerConfig | Attacker | Wanted] = {}
    for name, preset, settings in _entries(config):
        found = find_row(preset)
        shared = config.attacker_settings.get(ALL, {})
        if fitting := fitting_features(config, name, preset, rates):
            shared = merged({"features": fitting}, shared)
        if found is not None:
            row_name, row, argument = found
            others = config.attacker_settings
            heard = config.utility.hypotheses
            context = Context(row_name, argument, config.seed, shared, others, heard, dict(chosen))
            chosen[name] = row.make(name, settings, context)
        elif is_outside(preset):
            level, limit = str(settings.get("level", "")), config.attackers_time_limit
            chosen[name] = open_door(preset, name=name, seed=config.seed, time_limit=limit, level=level)
        else:
            chosen[name] = _built_in(name, preset, settings, shared)
    return list(chosen.values())


def fitting_features(config: Config, name: str, preset: str, rates: Collection[int]) -> dict[str, object]:
    """Return what fits an attacker's features to recordings of some sampling rates, see `values_for_rates`.

    Raises
    ------
    ConfigError
        If its settings name frequencies that such recordings do not have.
    """
    base = _ON_TOP.sub("", preset)  # whose settings hold for what works on top of it, too
    if base not in (*PRESETS, *_BY_FEATURES):
        return {}
    layers = {key: config.attacker_settings.get(key, {}).get("features") for key in (ALL, base, name)}
    layers = {key: values for key, values in layers.items() if isinstance(values, Mapping)}
    values = merged(*layers.values())
    fitting = values_for_rates(values, rates)
    rate, high = fitting.get("rate"), values.get("high_frequency")
    if isinstance(rate, int) and isinstance(high, int | float) and high > rate / 2:
        part = f"attacker_settings.{[key for key in layers if 'high_frequency' in layers[key]][-1]}.features"
        raise ConfigError(
            f"{part}.high_frequency is {high:g} Hz: recordings at {rate} Hz go up to {rate / 2:g} Hz",
            remedy=f"leave it out, or --set {part}.rate={FeatureConfig.rate} to have recordings resampled to that rate",
        )
    return fitting


def _entries(config: Config) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name of each attacker, its preset or what a door opens to, and settings of its own."""
    specs: dict[str, str] = {}
    for entry in config.attackers:
        settings = dict(config.attacker_settings.get(entry, {}))
        name, preset = attacker_name(entry), str(settings.pop("preset", entry))
        if name in specs:
            text = f"attackers: {specs[name]!r} and {entry!r} would both be called {name}"
            remedy = f"give one a name: attackers=[..., mine] and attacker_settings.mine.preset={entry!r}"
            raise ConfigError(text, remedy=remedy)
        specs[name] = entry
        if is_outside(preset) and find_row(preset) is None and (more := settings.keys() - {"level"}):
            raise ConfigError(
                f"attacker_settings of {entry}: {', '.join(sorted(more))}: an attacker of one's own has level alone"
            )
        yield name, preset, settings


def _built_in(name: str, preset: str, settings: Mapping[str, Any], shared: Mapping[str, Any]) -> AttackerConfig:
    if preset not in PRESETS:
        known = ", ".join(known_attackers())
        raise ConfigError(
            f"attackers: {name!r} is no preset ({known})",
            remedy=f"give attacker_settings.{name}.preset, or correct it; for others see docs/own_attackers.md",
        )
    try:
        return attacker_config(preset, values=merged(shared, settings, {"name": name}))
    except ConfigError as error:
        raise ConfigError(f"attacker_settings of {name}: {error}") from error


def attacker_specs(config: Config) -> dict[str, str]:
    """Return of each entry of `attackers` the preset, or what a door opens to."""
    return {entry: str(config.attacker_settings.get(entry, {}).get("preset", entry)) for entry in config.attackers}


def attacker_name(entry: str) -> str:
    """Return an attacker's name in folders and tables: the entry itself, or a short name of what a door opens to."""
    return catalogue_name(entry) or (short_name(entry) if is_outside(entry) else entry)
