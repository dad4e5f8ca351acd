"""Attackers by vectors as the configuration has them: the extractor, the chains to choose from, the folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers.context import Context
from spkver.attackers.protocol import Attacker, Place
from spkver.attackers.vector_attacker import VectorAttacker
from spkver.extractors import Extractor, ExtractorSettings, find_weights, open_extractor


@dataclass(frozen=True)
class VectorConfig:
    """How an attacker by vectors is made.

    Attributes
    ----------
    name : str
    extractor : str
        As `spkver embed` takes it, see `spkver.extractors.open_extractor`.
    window, hop : float or None [s]
        See `spkver.extractors.ExtractorSettings`.
    """

    name: str
    extractor: str
    window: float | None = None
    hop: float | None = None


@one_line
@dataclass(frozen=True)
class WantedVectors:
    """An attacker by vectors, before it is at work; see `spkver.attackers.Wanted`."""

    config: VectorConfig
    extractor: Extractor = field(repr=False)

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work."""
        return VectorAttacker(self.config.name, self.extractor, place)


def wanted_network(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make an attacker of a network by its name, with weights that are at hand or that `context.argument` names."""
    spec = f"{context.preset}:{context.argument}" if context.argument else context.preset
    return _wanted(name, settings, spec)


def wanted_onnx(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make an attacker of an ONNX file."""
    return _wanted(name, settings, f"onnx:{context.argument}")


def _wanted(name: str, settings: Mapping[str, Any], spec: str) -> WantedVectors:
    try:
        config = load_config(VectorConfig, defaults=merged({"extractor": spec}, settings, {"name": name}))
        return WantedVectors(config, open_extractor(config.extractor, ExtractorSettings(config.window, config.hop)))
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error


def ge2e_or_campplus_is_absent(preset: str) -> str:
    """Return why a network cannot run here, or nothing."""
    try:
        find_weights(preset)
    except ConfigError as error:
        return error.text
    return ""
