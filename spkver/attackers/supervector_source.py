"""The attacker by vectors that needs no network and learns nothing but a mixture: supervectors.

Beside `supervector-cosine`, whose projection is learnt from the background, its backend is that of any attacker by
vectors: what it says of a list of trials may be adapted to the list, see `spkver.attackers.adapted_attacker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkbase.work import Work
from spkver.attackers.chain_choice import ADAPTED_COSINE
from spkver.attackers.config import PRESETS
from spkver.attackers.context import Context
from spkver.attackers.mixture_sources import MixtureSource, opened_once, prepare_training, workplace_of
from spkver.attackers.protocol import Attacker, Place
from spkver.attackers.vector_attacker import VectorAttacker
from spkver.attackers.vector_settings import ChoiceConfig
from spkver.datadir import DataDir
from spkver.features import FeatureConfig
from spkver.mixture import Statistics, UbmConfig
from spkver.vectors import MapConfig, adapt_supervectors

CHAINS = (ADAPTED_COSINE,)
"""No other is tried: maps of thousands of dimensions take minutes to learn, and a background of few speakers."""

_PARTS = ("features", "ubm")  # what `attacker_settings.all` has for this attacker too


@dataclass(frozen=True)
class SupervectorConfig(ChoiceConfig):
    """How an attacker by supervectors is made; each part as for the classic attackers."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)


@one_line
@dataclass(frozen=True)
class WantedSupervectors:
    """The attacker by supervectors, before it is at work; see `spkver.attackers.Wanted`."""

    config: SupervectorConfig

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work."""
        config = self.config

        def learn(training: tuple[DataDir, ...]) -> MixtureSource:
            prepared = prepare_training(training, config.features, place)
            ubm = workplace_of(place).ubm(prepared, config.ubm).mixture

            def extract(statistics: Statistics) -> tuple[NDArray[np.object_], NDArray[np.floating]]:
                found = adapt_supervectors(ubm, statistics, config.map, work=Work(place.jobs, place.device))
                return found.segments, np.asarray(found.vectors)

            return MixtureSource(place, config.features, ubm, extract)

        record = [config.features, config.ubm, config.map]
        return VectorAttacker(config.name, opened_once(learn), record, config.choice, place)


def wanted_supervectors(name: str, settings: Mapping[str, Any], context: Context) -> WantedSupervectors:
    """Make the attacker by supervectors; features and mixture are those of supervector-cosine, unless
    ``attacker_settings.all`` has others."""
    of_classic = {key: PRESETS["supervector-cosine"][key] for key in _PARTS}
    shared = {key: context.shared[key] for key in _PARTS if key in context.shared}
    values = merged({"chains": list(CHAINS)}, of_classic, shared, settings, {"name": name})
    try:
        return WantedSupervectors(load_config(SupervectorConfig, defaults=values))
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error
