"""Vector attackers: a source of vectors, and a backend that is chosen and trained on the background alone.

The source is a network, another extractor, or a Gaussian mixture that is trained on the background; the backend is a
chain of `spkver.backend`, see `spkver.attackers.chain_choice`.

Some attackers adapt to the trials, by `spkver.backend.adapted_cosine_scores` or `enrolled_plda_scores` in place of a
scorer. They use only what every scenario gives an attacker: the enrolment recordings with their speakers, and the
tested recordings without speakers. Scores of `-adapted` attackers depend on the whole list of trials; scores of
`-single-test` and `-enrolled-plda` attackers only on the enrolled models and on the tested recording. A PLDA of the
enrolled also learns from the background where that is anonymised as the enrolment is.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evaluation.trials import Scores, align
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers import lists
from spkver.attackers.chain_choice import ENROLLED_PLDA, BackendChoice, backend_stage, choose_backend, fitting_chain
from spkver.attackers.protocol import Attack, Extracted, TrainingSet, naming
from spkver.attackers.sources import (
    SMALL_MIXTURE,
    ExtractorSource,
    MixtureSource,
    MixtureVectors,
    Vectors,
    VectorSource,
)
from spkver.backend import Backend, format_chain, read_backend, train_chain
from spkver.extractors import ExtractorSettings, find_weights, open_extractor
from spkver.features import FeatureConfig
from spkver.mixture import UbmConfig
from spkver.vectors import MapConfig, Supervectors, TotalVariabilityConfig

logger = logging.getLogger(__name__)


class VectorModel(NamedTuple):
    """What a vector attacker has learnt: the function to vectors, and the file of the backend."""

    vectors: Vectors
    backend: Path


@one_line
@dataclass(frozen=True, eq=False)
class VectorAttacker:
    """A vector attacker; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    choice : BackendChoice
        Its `name` is the name of the backend's folder.
    source : VectorSource
    is_fitted : bool
        Use the first chain for which the training set is large enough, see `fitting_chain`, on vectors of sessions.
    """

    name: str
    choice: BackendChoice
    source: VectorSource = field(repr=False)
    is_fitted: bool = False

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.trials.LEVELS`."""
        return self.choice.level

    @property
    def utterances(self) -> int | None:
        """The most recordings of a training set that it learns from."""
        return self.choice.utterances

    def record(self, attack: Attack) -> Any:
        """Return what its vectors depend on, and how its backend is chosen."""
        return {"vectors": self.source.record, "choice": self.choice.record()}

    def obstacle(self, attack: Attack) -> str:
        """Return why scores cannot be adapted to these trials, or an empty string."""
        if not self.choice.adapted:
            return ""
        most = len(attack.enrolment) * max(Counter(attack.enrolment[0].speakers.values()).values())
        if self.choice.adapted == ENROLLED_PLDA and most < 2:
            return "each speaker is enrolled by one vector, which does not show how the vectors of a speaker differ"
        return few_models(attack)

    def extract(self, extracted: Extracted, attack: Attack) -> None:
        """Read the training set, the enrolment and the tested recordings."""
        versions = lists.limited(attack.training.versions, self.choice.utterances, seed=extracted.seed)
        with naming(self.name):
            for directory in (
                lists.merge_versions(versions),
                lists.enrolled_speech(attack.enrolment),
                *(attack.variants or (attack.tested,)),
            ):
                self.source.extract(extracted, directory)

    def fit(self, extracted: Extracted, training: TrainingSet) -> VectorModel:
        """Choose and train its backend."""
        choice = self.choice
        if choice.adapted == ENROLLED_PLDA and not choice.chains:
            background = ": {background: true}" if training.on_anonymised else ""
            choice = replace(choice, chains=(ENROLLED_PLDA + background,))
        with naming(self.name):
            versions = lists.limited(training.versions, choice.utterances, seed=extracted.seed)
            speech = lists.merge_versions(versions)
            vectors = self.source.fit(extracted, speech, training.folder)

            def train() -> tuple[Backend, Any]:
                if not (self.is_fitted and isinstance(vectors, MixtureVectors)):
                    how: Any = {"seed": extracted.seed, "jobs": extracted.run.jobs}
                    return choose_backend(choice, vectors(speech), versions, **how)
                sessions = vectors.sessions(speech)
                chain = fitting_chain(self.name, choice.chains, sessions, len(speech))
                facts = {"vectors": len(sessions), "speakers": len(set(sessions.speakers)), "versions": len(versions)}
                shown, why = format_chain(chain), "it is the first for which the training set is large enough"
                found = {"folds": [], "chosen": shown, "why": why, "chains": [{"chain": shown}]}
                return train_chain(sessions, chain, seed=extracted.seed), {**facts, **found}

            stage = backend_stage(extracted, training.folder, choice, versions, train, inputs=self.source.record)
            found = stage.value
            chosen = next(row for row in found["chains"] if row["chain"] == found["chosen"])
            who, is_fold = (self.name, versions[0].name), {"file_only": training.name.startswith("folds/")}
            logger.debug("%s on %s: %s", *who, found["chosen"])
            if not found["folds"] and len(choice.chains) != 1 and not self.is_fitted:
                logger.warning("%s on %s: %s", *who, found["why"], extra=is_fold)
            if folds := chosen.get("no_slope"):
                text = "%s on %s: the calibration tried on fold %s has a negative slope"
                logger.warning(text, *who, ", ".join(map(str, folds)), extra=is_fold)
            return VectorModel(vectors, stage.path.with_name("backend.h5"))

    def score(self, extracted: Extracted, model: VectorModel, attack: Attack) -> Scores:
        """Score trials with the backend; of several variants of the tested recordings the largest score counts."""
        with naming(self.name):
            backend = read_backend(model.backend)
            score = partial(
                score_vectors,
                model.vectors,
                backend,
                keeps_versions=bool(self.choice.adapted) or backend.scorer.values.get("sessions") == "maximum",
                by_statistics=self.is_fitted,
            )
            found = [score(replace(attack, tested=tested)) for tested in attack.variants or (attack.tested,)]
            return lists.as_scores(attack.trials, np.max([align(scores, attack.trials) for scores in found], axis=0))


def few_models(attack: Attack) -> str:
    """Return why scores cannot be adapted to the trials of an attack, or an empty string."""
    if len(np.unique(attack.trials.models)) > 1:
        return ""
    return "one speaker is enrolled in its trials: adapted scores are without the mean of the others"


def score_vectors(
    vectors: Vectors,
    backend: Backend,
    attack: Attack,
    *,
    keeps_versions: bool = False,
    by_statistics: bool = False,
) -> Scores:
    """Score trials with a backend.

    A recording counts once, however often it was anonymised: the vectors of its versions are averaged, or, for a
    mixture, their statistics (`by_statistics`). With `keeps_versions` they are not: the backend learns from their
    spread.
    """
    enrolment = lists.enrolled_speech(attack.enrolment)
    models, segments = lists.match_trials(enrolment, attack.tested, attack.trials)
    sessions = lists.enrolled_sessions(enrolment, models, keeps_versions=keeps_versions)
    enrolled, tested = (
        lists.select(enrolment, set(models.segments)),
        vectors(lists.select(attack.tested, set(segments))),
    )
    if by_statistics and isinstance(vectors, MixtureVectors):
        return backend.score(vectors.averaged(enrolled, sessions), tested, attack.trials)
    heard = vectors(enrolled)
    row_of = {name: row for row, name in enumerate(heard.ids.tolist())}
    every = np.asarray(heard.vectors)
    rows = np.stack([every[[row_of[name] for name in names]].mean(axis=0) for names in sessions.values()])
    owners, ids = np.array(list(sessions), object).T
    found = Supervectors(owners, ids, rows).embeddings()
    return backend.score(found, tested, attack.trials)


# --- their settings ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExtractorChoice(BackendChoice):
    """Configuration of a vector attacker with an extractor.

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


@dataclass(frozen=True)
class MixtureChoice(BackendChoice):
    """Configuration of an attacker with supervectors; each part is as for the classic attackers."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)


@dataclass(frozen=True)
class IVectorChoice(BackendChoice):
    """Configuration of the i-vector attacker; `total_variability` is as for `spkver rsr2015 ivector`."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)


def extractor_attacker(name: str, extractor: str, settings: Mapping[str, Any]) -> VectorAttacker:
    """Create a vector attacker from an extractor, named as `spkver embed` takes it."""
    with naming(name):
        choice = load_config(ExtractorChoice, defaults=merged({"extractor": extractor}, settings, {"name": name}))
        opened = open_extractor(choice.extractor, ExtractorSettings(choice.window, choice.hop))
    return VectorAttacker(name, choice, ExtractorSource(opened))


def ivector_attacker(name: str, settings: Mapping[str, Any]) -> VectorAttacker:
    """Create the i-vector attacker."""
    defaults = merged(SMALL_MIXTURE, {"total_variability": {"rank": 100, "rounds": 10}}, settings, {"name": name})
    with naming(name):
        config = load_config(IVectorChoice, defaults=defaults)
    source = MixtureSource(config.features, config.ubm, total_variability=config.total_variability)
    return VectorAttacker(name, config, source)


def supervector_attacker(name: str, settings: Mapping[str, Any]) -> VectorAttacker:
    """Create the supervector attacker, by default with the features and mixture of supervector-cosine."""
    # no other chain is tried: maps of thousands of dimensions take minutes, and need a background of many speakers
    chains = {"chains": [settings.get("adapted") or "cosine"]}
    with naming(name):
        config = load_config(MixtureChoice, defaults=merged(SMALL_MIXTURE, chains, settings, {"name": name}))
    return VectorAttacker(name, config, MixtureSource(config.features, config.ubm, config.map))


def network_is_absent(preset: str) -> str:
    """Return why a network cannot run here, or an empty string."""
    if not (find_spec("onnxruntime") and find_spec("onnx")):
        return "networks need onnxruntime and onnx, not installed; get them by: pip install onnx onnxruntime"
    try:
        find_weights(preset)
    except ConfigError as error:
        return f"{error.text}; get them by: spkver weights {preset}"
    return ""
