"""Vector attackers: a source of vectors, and a backend that is chosen and trained only on the background.

The source is a network, another extractor, or a Gaussian mixture that is trained on the background; the backend is a
chain of `spkver.backend`, see `spkver.attackers.chain_choice`.

Some attackers adapt to the trials, by `spkver.backend.adapted_cosine_scores`, `self_trained_scores` or
`enrolled_plda_scores` in place of a scorer. They use only what every scenario gives an attacker: the enrolment
recordings with their speakers, and the tested recordings without speakers. Scores of `-adapted` and `-self-trained`
attackers depend on the whole list of trials; scores of `-single-test` and `-enrolled-plda` attackers only on the
enrolled models and on the tested recording. An enrolled PLDA also learns from the background if that is anonymised like
the enrolment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evaluation.embeddings import Embeddings, conversation_vectors
from evaluation.trials import SCENARIOS, Scores, Trials, align
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers import lists
from spkver.attackers.chain_choice import (
    PLDA_SCORERS,
    SELF_TRAINED_PLDA,
    BackendChoice,
    choose_backend,
)
from spkver.attackers.protocol import Attack, Defaults, Learnt, TrainingSet, Vectors, naming
from spkver.attackers.sources import (
    SMALL_MIXTURE,
    ExtractorSource,
    MixtureSource,
    Source,
    TrainedSource,
)
from spkver.attackers.trained import held_out_speech
from spkver.backend import Backend
from spkver.datadir import DataDir
from spkver.extractors import ExtractorSettings, find_weights, open_extractor
from spkver.features import FeatureConfig
from spkver.idmap import IdMap
from spkver.mixture import UbmConfig
from spkver.training import check_trainer, tuning
from spkver.vectors import MapConfig, Supervectors, TotalVariabilityConfig

_TUNING_SPEAKERS = 20  # with fewer speakers a network memorises their voices


class Compared(NamedTuple):
    """The recordings that trials compare.

    Attributes
    ----------
    models : IdMap
        The utterances of each enrolled model.
    enrolment : DataDir
    tests : list of DataDir
        The tested recordings, in all their variants.
    """

    models: IdMap
    enrolment: DataDir
    tests: list[DataDir]

    @property
    def recordings(self) -> dict[tuple[str, str], list[str]]:
        """The utterances of each model and recording, which are all versions of the recording."""
        return lists.enrolled_recordings(self.enrolment, self.models)


def compared_recordings(attack: Attack) -> Compared:
    """Return the recordings of an attack that its trials compare."""
    enrolment = lists.enrolled_speech(attack.enrolment)
    models, segments = lists.match_trials(enrolment, attack.tested, attack.trials)
    tests = list(attack.tests)
    if not attack.conversations:
        tests = [lists.select(tested, set(segments)) for tested in tests]
    return Compared(models, lists.select(enrolment, set(models.segments)), tests)


class Comparing(Defaults):
    """Defaults of attackers that compare vectors of the enrolment with vectors of the tests."""

    utterances: Any

    def speech(self, attack: Attack, seed: int) -> Sequence[DataDir]:
        """Return the training set, the enrolment and the tested recordings."""
        training = lists.limited(attack.training.versions, self.utterances, seed=seed)
        return [
            lists.merge_versions(training),
            lists.enrolled_speech(attack.enrolment),
            *attack.tests,
        ]


@one_line
@dataclass(frozen=True, eq=False)
class VectorAttacker(Comparing):
    """A vector attacker; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    choice : BackendChoice
    source : Source
    """

    learns_from_pieces: ClassVar[bool] = True
    least_speakers: ClassVar[int] = 2
    pools: ClassVar[bool] = True

    name: str
    choice: BackendChoice
    source: Source = field(repr=False)

    @property
    def level(self) -> str:
        """Its level of knowledge, see `evaluation.trials.LEVELS`."""
        return self.choice.level

    @property
    def utterances(self) -> int | None:
        """The most recordings of a training set that it learns from."""
        return self.choice.utterances

    def record(self, attack: Attack) -> Any:
        """Return all that its vectors depend on, and how its backend is chosen."""
        return {"vectors": self.source.key, "choice": self.choice.record()}

    def backend_record(self, training: TrainingSet) -> Any:
        """Return what its vectors depend on, and how its backend is chosen on a training set."""
        return [self.source.key, self.choice.on(training.on_anonymised).record()]

    def obstacle(self, attack: Attack) -> str:
        """Return why its network cannot be trained, or scores cannot be adapted to these trials, or an empty string."""
        if isinstance(self.source, TrainedSource):
            count = len(set(attack.training.versions[0].speakers.values()))
            if count < self.source.least_speakers:
                return f"it needs {self.source.least_speakers} training speakers, there are {count}"
        return unfit_enrolment(self.choice.adapted, attack, versions=len(attack.enrolment))

    def fit(
        self, training: TrainingSet, vectors: Vectors, *, seed: int, jobs: int | None
    ) -> Learnt:
        """Choose and train its backend on speakers on whom no network was trained."""
        versions = lists.limited(training.versions, self.utterances, seed=seed)
        if isinstance(self.source, TrainedSource):
            versions = held_out_speech(versions, seed=seed)
        speech = lists.merge_versions(versions)
        choice = self.choice.on(training.on_anonymised)
        return Learnt(*choose_backend(choice, vectors(speech), versions, seed=seed, jobs=jobs))

    def prepare(self, attack: Attack, vectors: Vectors) -> None:
        """Ask for the vectors of the enrolment and of the tested recordings."""
        compared = compared_recordings(attack)
        vectors(compared.enrolment)
        for tested in compared.tests:
            vectors(tested)

    def score(self, model: Backend, attack: Attack, vectors: Vectors) -> Scores:
        """Score trials with the backend; of several variants of the tested recordings the largest score counts.

        A recording counts once, however often it was anonymised: the vectors of its versions are averaged, unless the
        backend learns from their spread. The vectors of a conversation are averaged before the chain.
        """
        compared = compared_recordings(attack)
        sessions = compared.recordings
        if self.choice.adapted or model.scorer.values.get("sessions") == "maximum":
            sessions = lists.enrolled_versions(compared.models)
        enrolled = mean_vectors(vectors(compared.enrolment), sessions)
        backend = of_scenario(model, attack.scenario)
        tests = list(map(vectors, compared.tests))
        if attack.conversations:
            tests = [conversation_vectors(tests, attack.conversations)]
        return largest_scores(backend, enrolled, tests, attack.trials)


def unfit_enrolment(scorer: str, attack: Attack, *, versions: int) -> str:
    """Return why an adapting scorer cannot score the trials of an attack, or an empty string.

    Parameters
    ----------
    scorer : str
        See `BackendChoice`; if empty, everything can be scored.
    attack : Attack
    versions : int
        Number of anonymised versions of the enrolment that are used.
    """
    if not scorer:
        return ""
    most = versions * max(Counter(attack.enrolment[0].speakers.values()).values())
    if scorer in PLDA_SCORERS and most < 2:
        return "each speaker is enrolled by one vector, which does not show how the vectors of a speaker differ"
    if len(np.unique(attack.trials.models)) < 2:
        return "one speaker is enrolled in its trials: adapted scores are without the mean of the others"
    return ""


def of_scenario(backend: Backend, scenario: str) -> Backend:
    """Return the backend for a scenario: if self-trained, it is told whether the domains of the two sides differ.

    Parameters
    ----------
    backend : Backend
    scenario : str
        See `evaluation.trials.SCENARIOS`; if it is not one of these, both sides belong to the same domain.
    """
    shifted = any(known.enrolment != known.trials for known in SCENARIOS if known.name == scenario)
    if backend.scorer.name != SELF_TRAINED_PLDA or not shifted:
        return backend
    scorer = replace(backend.scorer, values={**backend.scorer.values, "shifted": True})
    return replace(
        backend, chain=tuple(scorer if step is backend.scorer else step for step in backend.chain)
    )


def mean_vectors(
    vectors: Embeddings, sessions: Mapping[tuple[str, str], Sequence[str]]
) -> Embeddings:
    """Return the mean vectors of groups of recordings, such as the anonymised versions of a recording.

    Parameters
    ----------
    vectors : Embeddings
    sessions : mapping of (str, str) to sequence of str
        Recordings of each (model, recording).

    Returns
    -------
    Embeddings
        One row for each group, in their order.
    """
    row_of = {name: row for row, name in enumerate(vectors.ids.tolist())}
    every = np.asarray(vectors.vectors)
    means = []
    for names in sessions.values():
        means.append(every[[row_of[name] for name in names]].mean(axis=0))
    models, recordings = np.array(list(sessions), object).T
    return Supervectors(models, recordings, np.stack(means)).embeddings()


def largest_scores(
    backend: Backend, enrolled: Embeddings, variants: Iterable[Embeddings], trials: Trials
) -> Scores:
    """Return the largest score of each trial over variants of the tested recordings."""
    scored = [backend.score(enrolled, tested, trials, warn=False) for tested in variants]
    return lists.as_scores(trials, np.max([align(scores, trials) for scores in scored], axis=0))


# --- their settings ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExtractorChoice(BackendChoice):
    """Configuration of a vector attacker with an extractor.

    Attributes
    ----------
    extractor : str
        Name of the extractor as `spkver embed` takes it, see `spkver.extractors.open_extractor`.
    window, hop : float or None [s]
        See `spkver.extractors.ExtractorSettings`.
    """

    extractor: str = ""
    window: float | None = None
    hop: float | None = None


@dataclass(frozen=True)
class TrainedChoice(BackendChoice):
    """Configuration of a vector attacker with a network that is trained on the training set.

    Attributes
    ----------
    settings : dict
        Settings of the trainer.
    device : str
        Device of the training, such as "cpu" or "cuda".
    threads : int
        Number of threads of the training.
    window, hop : float or None [s]
        See `spkver.extractors.ExtractorSettings`.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    threads: int = 1
    window: float | None = None
    hop: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threads < 1:
            raise ConfigError(f"threads is {self.threads}: expected a whole number of at least 1")


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
        choice = load_config(
            ExtractorChoice, defaults=merged({"extractor": extractor}, settings, {"name": name})
        )
        opened = open_extractor(choice.extractor, ExtractorSettings(choice.window, choice.hop))
    return VectorAttacker(name, choice, ExtractorSource(opened))


def trained_attacker(
    name: str, module: str, settings: Mapping[str, Any], *, time_limit: float | None = None
) -> VectorAttacker:
    """Create a vector attacker whose network a module trains on the training set."""
    with naming(name):
        choice = load_config(TrainedChoice, defaults=merged(settings, {"name": name}))
        if module.endswith(".py"):
            module = str(Path(module).absolute())
        windows = ExtractorSettings(choice.window, choice.hop)
        source = TrainedSource(
            module, choice.settings, choice.device, choice.threads, windows, time_limit
        )
        check_trainer(module)
    return VectorAttacker(name, choice, source)


def tuned_attacker(
    name: str, settings: Mapping[str, Any], *, time_limit: float | None = None
) -> VectorAttacker:
    """Create a vector attacker with CAM++, tuned on the training set by `spkver.training.tuning`."""
    attacker = trained_attacker(name, tuning.__name__, settings, time_limit=time_limit)
    assert isinstance(attacker.source, TrainedSource)
    with naming(name):
        load_config(tuning.TuningConfig, defaults=attacker.source.settings)
        absent = tuning_is_absent()
        if absent:
            raise ConfigError(absent)
    return replace(attacker, source=replace(attacker.source, least_speakers=_TUNING_SPEAKERS))


def ivector_attacker(name: str, settings: Mapping[str, Any]) -> VectorAttacker:
    """Create the i-vector attacker."""
    defaults = merged(
        SMALL_MIXTURE, {"total_variability": {"rank": 100, "rounds": 10}}, settings, {"name": name}
    )
    with naming(name):
        config = load_config(IVectorChoice, defaults=defaults)
    source = MixtureSource(config.features, config.ubm, total_variability=config.total_variability)
    return VectorAttacker(name, config, source)


def supervector_attacker(name: str, settings: Mapping[str, Any]) -> VectorAttacker:
    """Create the supervector attacker, by default with the features and mixture of supervector-cosine."""
    # no other chain is tried: maps of thousands of dimensions take minutes and need many background speakers
    chains = {"chains": [settings.get("adapted") or "cosine"]}
    with naming(name):
        config = load_config(
            MixtureChoice, defaults=merged(SMALL_MIXTURE, chains, settings, {"name": name})
        )
    return VectorAttacker(name, config, MixtureSource(config.features, config.ubm, config.map))


def tuning_is_absent() -> str:
    """Return why CAM++ cannot be tuned here, or an empty string."""
    absent = network_is_absent("campplus")
    if not absent and not find_spec("torch"):
        absent = (
            "tuning on anonymised speech needs torch, not installed; get it by: pip install torch"
        )
    return absent


def network_is_absent(preset: str) -> str:
    """Return why a network cannot run here, or an empty string."""
    if not (find_spec("onnxruntime") and find_spec("onnx")):
        return "networks need onnxruntime and onnx, not installed; get them by: pip install onnx onnxruntime"
    try:
        find_weights(preset)
    except ConfigError as error:
        return f"{error.text}; get them by: spkver weights {preset}"
    return ""
