"""The attacker that needs no network: i-vectors whose mixture and matrix are trained on the background alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from spkbase.files import fingerprint, make_folder
from spkbase.runs import Run, Stamp
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers.config import Context
from spkver.attackers.folds import with_pieces
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
from spkver.vectors import TotalVariabilityConfig, extract_ivectors


@dataclass(frozen=True)
class IVectorConfig(MixtureConfig):
    """How an attacker by i-vectors is made; its own part as for `spkver rsr2015 ivector`."""

    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)


DEFAULTS: dict[str, Any] = {
    "features": {"preset": "wideband"},
    "ubm": {"components": 64},
    "total_variability": {"rank": 100, "rounds": 10},
}


def learn_ivectors(config: IVectorConfig, training: tuple[DataDir, ...], place: Place) -> MixtureSource:
    """Train the mixture and the matrix on a training set, or take those of an earlier run.

    Of several versions all recordings count; where speakers have one recording, the pieces of it, see
    `spkver.attackers.with_pieces`. The rank is lowered to what the recordings allow.
    """
    work = workplace_of(place)
    prepared = prepare_training(with_pieces(training, place), config.features, place)
    ubm = work.ubm(prepared, config.ubm).mixture
    statistics = work.statistics(prepared, ubm)
    most = min(len(statistics) - 1, ubm.means.size)
    matrix_config = replace(config.total_variability, rank=max(1, min(config.total_variability.rank, most)))
    mixture = Stamp("ubm", fingerprint(ubm), ubm)
    accumulated = Stamp("statistics", fingerprint(prepared.frames.fingerprint, mixture.fingerprint), statistics)
    key = fingerprint(accumulated.fingerprint, matrix_config)[:16]
    folder = make_folder(place.work / f"total-variability-{key}")
    run = Run(folder, jobs=place.jobs, force=place.force, quiet=True)
    matrix = pipeline.total_variability(run, mixture, accumulated, matrix_config).value
    extract = partial(extract_ivectors, matrix, work=Work(place.jobs))
    return MixtureSource(place, config.features, ubm, extract)


def wanted_ivectors(name: str, settings: Mapping[str, Any], context: Context) -> WantedByMixture:
    """Make the attacker by i-vectors."""
    config = mixture_config(IVectorConfig, DEFAULTS, name, settings, context)
    return WantedByMixture(
        config,
        lambda training, place: learn_ivectors(config, training, place),
        (config.features, config.ubm, config.total_variability),
    )
