"""The attacker by vectors that needs no network and learns nothing but a mixture: supervectors.

Beside `supervector-cosine`, whose projection is learnt from the background, its backend is that of any attacker by
vectors: what it says of a list of trials may be adapted to the list, see `spkver.attackers.vector_attacker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spkbase.work import Work
from spkver.attackers.config import PRESETS, Context
from spkver.attackers.mixture_sources import (
    MixtureConfig,
    MixtureSource,
    WantedByMixture,
    mixture_config,
    prepare_training,
    workplace_of,
)
from spkver.attackers.protocol import Place
from spkver.datadir import DataDir
from spkver.vectors import MapConfig, adapt_supervectors

DEFAULTS: dict[str, Any] = {part: PRESETS["supervector-cosine"][part] for part in ("features", "ubm")}


@dataclass(frozen=True)
class SupervectorConfig(MixtureConfig):
    """How an attacker by supervectors is made."""

    map: MapConfig = field(default_factory=MapConfig)


def learn_supervectors(config: SupervectorConfig, training: tuple[DataDir, ...], place: Place) -> MixtureSource:
    """Train the mixture on a training set, or take that of an earlier run; of several versions all recordings count."""
    prepared = prepare_training(training, config.features, place)
    ubm = workplace_of(place).ubm(prepared, config.ubm).mixture
    extract = partial(adapt_supervectors, ubm, config=config.map, work=Work(place.jobs))
    return MixtureSource(place, config.features, ubm, extract)


def wanted_supervectors(name: str, settings: Mapping[str, Any], context: Context) -> WantedByMixture:
    """Make the attacker by supervectors; features and mixture are those of supervector-cosine by default."""
    # no other chain is tried: maps of thousands of dimensions take minutes to learn, and a background of many speakers
    defaults = {**DEFAULTS, "chains": [settings.get("adapted") or "cosine"]}
    config = mixture_config(SupervectorConfig, defaults, name, settings, context)
    return WantedByMixture(
        config,
        lambda training, place: learn_supervectors(config, training, place),
        (config.features, config.ubm, config.map),
    )
