"""Attackers by vectors as the configuration has them: the extractor, the chains to choose from, the folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers.chain_choice import ADAPTED_COSINE, SINGLE_TEST_COSINE
from spkver.attackers.context import Context
from spkver.attackers.folds import ENROLLED, FOLDS
from spkver.attackers.protocol import Attacker, Place
from spkver.attackers.vector_attacker import UTTERANCES, Choice, VectorAttacker
from spkver.attackers.vector_store import VectorStore
from spkver.backend import parse_chain
from spkver.extractors import Extractor, ExtractorSettings, find_weights, open_extractor


@dataclass(frozen=True)
class ChoiceConfig:
    """How the backend of an attacker by vectors is chosen.

    Attributes
    ----------
    name : str
    chains : tuple of str
        To choose from, from the simplest on, as ``spkver backend train --chain`` takes them; empty: a standard list,
        see docs/attackers.md.
    folds : int
        Parts that background speakers are dealt into.
    enrolled : int
        Recordings of a model in the trials of these folds.
    utterances : int or None
        Recordings of the training set that are used at most, spread evenly over the speakers; None takes all.
    adapted : {"", "adapted_cosine", "single_test_cosine"}
        What scores where they are adapted to the whole list of trials, or to its models alone; see
        `spkver.backend.adapted_cosine_scores`.
    """

    name: str
    chains: tuple[str, ...] = ()
    folds: int = FOLDS
    enrolled: int = ENROLLED
    utterances: int | None = UTTERANCES
    adapted: str = ""

    def __post_init__(self) -> None:
        for key, least in (("folds", 2), ("enrolled", 1)):
            if getattr(self, key) < least:
                raise ConfigError(f"{key} is {getattr(self, key)}: expected a whole number of at least {least}")
        if self.utterances is not None and self.utterances < 2:
            raise ConfigError(f"utterances is {self.utterances}: expected a whole number of at least 2")
        if self.adapted not in (known := ("", ADAPTED_COSINE, SINGLE_TEST_COSINE)):
            raise ConfigError(f"adapted is {self.adapted!r}: expected {', '.join(known[1:])}, or nothing")
        check_chains(self.chains)

    @property
    def choice(self) -> Choice:
        """The same without the rest."""
        return Choice(self.chains, self.folds, self.enrolled, utterances=self.utterances, adapted=self.adapted)


@dataclass(frozen=True)
class VectorConfig(ChoiceConfig):
    """How an attacker by vectors is made.

    Attributes
    ----------
    extractor : str
        As `spkver embed` takes it, see `spkver.extractors.open_extractor`.
    window, hop : float or None [s]
        See `spkver.extractors.ExtractorSettings`.
    """

    extractor: str = ""
    window: float | None = None
    hop: float | None = None


def check_chains(chains: Sequence[str]) -> None:
    """Raise ConfigError if a chain is none, or needs vectors of another domain: attackers have their training set."""
    for chain in chains:
        adapting = [step.name for step in parse_chain(chain) if "adapt" in step.needs]
        if adapting:
            text = f"chain {chain!r}: {adapting[0]} adapts to vectors of another domain, and there are none"
            raise ConfigError(text, remedy="leave it out: an attacker learns from its training set alone")


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
        store = VectorStore(place.work / "vectors", self.extractor, place.jobs)
        record = dict(self.extractor.extraction.record)
        return VectorAttacker(self.name, lambda training: store, record, self.config.choice, place)


def wanted_network(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make an attacker of a network by its name, with weights that are at hand or that `context.argument` names."""
    spec = f"{context.preset}:{context.argument}" if context.argument else context.preset
    return _wanted(name, settings, spec)


def wanted_onnx(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make an attacker of an ONNX file."""
    return _wanted(name, settings, f"onnx:{context.argument}")


def wanted_extractor(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make an attacker of any extractor that `spkver embed` takes."""
    return _wanted(name, settings, context.argument)


def _wanted(name: str, settings: Mapping[str, Any], spec: str) -> WantedVectors:
    try:
        config = load_config(VectorConfig, defaults=merged({"extractor": spec}, settings, {"name": name}))
        return WantedVectors(config, open_extractor(config.extractor, ExtractorSettings(config.window, config.hop)))
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error


def network_is_absent(preset: str) -> str:
    """Return why a network cannot run here, or nothing."""
    try:
        find_weights(preset)
    except ConfigError as error:
        return f"{error.text}; get them by: spkver weights {preset}"
    return ""
