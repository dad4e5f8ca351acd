"""The classic attackers: GMM-UBM, and chains over supervectors; each can be saved as one self-contained folder.

    ATTACKER/attacker.yaml    format, configuration, seed, what it was trained on, SHA-256 of the others, fingerprint
    ATTACKER/attacker.h5      universal background model, digests of the training speakers
    ATTACKER/backend.h5       the trained chain

`attacker.yaml` is written last, so a folder with it is complete. The stage of the run decides whether an attacker is up
to date; the digests are for readers of a folder that was copied without the records of the run.

A configuration defines an attacker: features, mixture, and chains of `spkver.backend` for the supervectors; the first
chain for which the training set is large enough is used. Without a chain it is gmm-ubm, the log-likelihood ratio of a
mixture adapted to the speaker and the universal background model,

    score = 1/T sum_t log p(x_t | adapted) - log p(x_t | ubm)

References
----------
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006.
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000.
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.trials import ONE_MODEL, Scores, Trials
from spkbase.configuration import check_values, load_config, merged, read_yaml, to_dict
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import file_digest, fingerprint, make_folder, write_text
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Run
from spkbase.showing import one_line
from spkbase.version import versions
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers import lists
from spkver.attackers.chain_choice import check_chains, fit_first_chain, level_of
from spkver.attackers.protocol import Attack, Attacker, Learnt, TrainingSet, naming
from spkver.attackers.sources import SMALL_MIXTURE, MixtureSource
from spkver.attackers.stages import SpeechFiles, TrainedMixture, learn_models
from spkver.attackers.vector_attacker import (
    Compared,
    Comparing,
    compared_recordings,
    largest_scores,
)
from spkver.backend import Backend, read_backend, score_gmm_ubm, speaker_digests, write_backend
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, OtherFeaturesError, check_recordings
from spkver.mixture import GaussianMixture, UbmConfig, check_ubm
from spkver.vectors import MapConfig, Supervectors

logger = logging.getLogger(__name__)

_SHARED: dict[str, Any] = {**SMALL_MIXTURE, "training": {"session_seconds": 2.5}}
_SVM = {**_SHARED, "chains": ["[centre, nap: 20, length, svm: {balanced: true, most: 1000}]"]}
PRESETS: dict[str, dict[str, Any]] = {
    "gmm-ubm": _SHARED,
    "gmm-svm": _SVM,
    # an anonymiser changes mostly the mean of the cepstra: without the mean, original and anonymised speech are
    # comparable
    "gmm-svm-cms": {
        **_SVM,
        "features": {"preset": "wideband", "log_energy": True, "normalisation": "cms"},
    },
    "supervector-cosine": {
        **_SHARED,
        "chains": [
            "[centre, length, pca: 250, lda: {rank: 120, shrink: 0.2}, length, snorm]",
            "[centre, nap: 20, length, snorm]",
            "[centre, nap: 20, length]",
        ],
    },
}

_FORMAT = 2
_DESCRIPTION = "attacker.yaml"
_ARRAYS = "attacker.h5"
_BACKEND = "backend.h5"
_AGAIN = "train the attacker again"


@dataclass(frozen=True)
class TrainingConfig:
    """The part of the training set that is used.

    Attributes
    ----------
    utterances : int or None
        At most this many utterances, spread evenly over the speakers and drawn with the seed; None takes all.
    session_seconds : float or None [s]
        Utterances are cut into sessions of about this length; shorter ones stay whole. Chains are trained on sessions.
        None: each utterance is a session.
    """

    utterances: int | None = 4000
    session_seconds: float | None = None

    def __post_init__(self) -> None:
        check_values("training", self, least={"utterances": 2})
        if self.session_seconds is not None and not self.session_seconds > 0:
            raise ConfigError(
                f"training.session_seconds is {self.session_seconds}: expected a number above 0"
            )


@dataclass(frozen=True)
class AttackerConfig:
    """The whole configuration of a classic attacker.

    Attributes
    ----------
    name : str
        Name of its folder and its results.
    chains : tuple of str
        Chains for the supervectors, as ``spkver backend train --chain`` takes them: the first for which the training
        set is large enough is used, see `fitting_chain`. Empty: the log-likelihood ratio of gmm-ubm.
    features, ubm, map
        See `FeatureConfig`, `UbmConfig` and `MapConfig`; gmm-ubm uses only the relevance of `map`.
    training : TrainingConfig
    """

    name: str = "gmm-ubm"
    chains: tuple[str, ...] = ()
    features: FeatureConfig = field(default_factory=FeatureConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)

    def __post_init__(self) -> None:
        if (
            not self.name
            or self.name in (".", "..")
            or set(self.name) & set("/\\\0")
            or self.name != self.name.strip()
        ):
            raise ConfigError(f"name is {self.name!r}: expected the name of a folder")
        check_chains(self.chains)


def attacker_config(
    preset: str,
    *,
    file: str | Path | None = None,
    settings: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
) -> AttackerConfig:
    """Return a configuration from a preset, values, a YAML file and settings, each overriding the one before.

    Parameters
    ----------
    preset : str
        A name of `PRESETS`.
    file, settings
        See `spkbase.configuration.load_config`.
    values : mapping, optional
        Nested values, such as ``{"ubm": {"components": 64}}``.

    Raises
    ------
    ConfigError
        If there is no such preset, or if values are wrong; all problems are listed.

    Examples
    --------
    >>> attacker_config("gmm-svm", settings=["ubm.components=64"]).ubm.components
    64
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown attacker {preset!r}: expected one of {', '.join(PRESETS)}")
    defaults = merged({"name": preset}, PRESETS[preset], values or {})
    return load_config(AttackerConfig, file=file, settings=settings, defaults=defaults)


@one_line
@dataclass(frozen=True, eq=False)
class GmmUbmAttacker(Comparing):
    """The attacker gmm-ubm; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    source : MixtureSource
        Only the relevance of its `map` is used.
    utterances : int or None
        Largest number of recordings of the training set to use, see `limited`.
    """

    level: ClassVar[str] = ONE_MODEL

    name: str
    source: MixtureSource = field(repr=False)
    utterances: int | None = None

    def record(self, attack: Attack) -> Any:
        """Return what its scores depend on."""
        return {"gmm-ubm": self.source.key, "utterances": self.utterances}

    def fit(
        self, training: TrainingSet, vectors: TrainedMixture, *, seed: int, jobs: int | None
    ) -> Learnt:
        """Return the universal background model, which is trained with its source."""
        return Learnt(vectors.ubm)

    def prepare(self, attack: Attack, vectors: TrainedMixture) -> None:
        """Ask for the adapted means of the models; the tested recordings are compared frame by frame."""
        self._adapted(compared_recordings(attack), vectors)

    def score(self, model: GaussianMixture, attack: Attack, vectors: TrainedMixture) -> Scores:
        """Score trials by log-likelihood ratios; a recording counts once, however often it was anonymised."""
        trials = attack.trials
        adapted = self._adapted(compared_recordings(attack), vectors)
        ids = vectors.ids(attack.tested)
        contents, rows = np.unique(
            [ids[name] for name in trials.segment_ids.tolist()], return_inverse=True
        )
        asked = Trials(
            trials.model_ids, contents.astype(object), trials.models, rows[trials.segments]
        )
        frames = vectors.frames(attack.tested)
        return lists.as_scores(
            trials, score_gmm_ubm(model, adapted, frames, asked, work=vectors.work).values
        )

    def _adapted(self, compared: Compared, vectors: TrainedMixture) -> Supervectors:
        return vectors.adapted(compared.enrolment, compared.recordings)


@one_line
@dataclass(frozen=True, eq=False)
class SupervectorAttacker(Comparing):
    """Chains over supervectors, trained on sessions of the training recordings; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    source : MixtureSource
    chains : tuple of str
        The first for which the training set is large enough is used, see `fitting_chain`.
    utterances : int or None
        Largest number of recordings of the training set to use, see `limited`.
    """

    least_speakers: ClassVar[int] = 2

    name: str
    source: MixtureSource = field(repr=False)
    chains: tuple[str, ...] = ()
    utterances: int | None = None

    @property
    def level(self) -> str:
        """Its level of knowledge, see `evaluation.trials.LEVELS`."""
        return level_of(self.chains)

    def record(self, attack: Attack) -> Any:
        """Return what its scores depend on."""
        return [self.source.key, list(self.chains), self.utterances]

    def backend_record(self, training: TrainingSet) -> Any:
        """Return what its backend depends on."""
        return [self.source.key, list(self.chains), self.utterances]

    def fit(
        self, training: TrainingSet, vectors: TrainedMixture, *, seed: int, jobs: int | None
    ) -> Learnt:
        """Train its backend on the vectors of sessions."""
        versions = lists.limited(training.versions, self.utterances, seed=seed)
        sessions = vectors.sessions(lists.merge_versions(versions))
        return Learnt(*fit_first_chain(self.name, self.chains, sessions, versions, seed=seed))

    def prepare(self, attack: Attack, vectors: TrainedMixture) -> None:
        """Ask for the vectors of the enrolment and of the tested recordings."""
        compared = compared_recordings(attack)
        self._enrolled(compared, vectors)
        for tested in compared.tests:
            vectors(tested)

    def score(self, model: Backend, attack: Attack, vectors: TrainedMixture) -> Scores:
        """Score trials with the backend; of several variants of the tested recordings the largest score counts.

        A recording counts once, however often it was anonymised: the statistics of its versions are averaged.
        """
        compared = compared_recordings(attack)
        return largest_scores(
            model, self._enrolled(compared, vectors), map(vectors, compared.tests), attack.trials
        )

    def _enrolled(self, compared: Compared, vectors: TrainedMixture) -> Embeddings:
        return vectors.averaged(compared.enrolment, compared.recordings)


ClassicAttacker = GmmUbmAttacker | SupervectorAttacker


def classic_attacker(config: AttackerConfig) -> ClassicAttacker:
    """Create a classic attacker from its configuration."""
    source = MixtureSource(
        config.features, config.ubm, config.map, session_seconds=config.training.session_seconds
    )
    utterances = config.training.utterances
    if not config.chains:
        return GmmUbmAttacker(config.name, replace(source, session_seconds=None), utterances)
    return SupervectorAttacker(config.name, source, config.chains, utterances)


# --- trained, and saved in a folder -----------------------------------------------------------------------------------


@one_line
@dataclass(frozen=True)
class TrainedAttacker:
    """A trained classic attacker, with all that scoring needs.

    Attributes
    ----------
    config : AttackerConfig
    seed : int
    ubm : GaussianMixture
    backend : Backend or None
        The trained chain; None for gmm-ubm.
    trained_on : mapping
        Name of the training set, its numbers of utterances, speakers and sessions.
    heard : ndarray of uint64 of shape (S,)
        Digests of the training speakers, see `spkver.backend.speaker_digests`; empty if they are not known.
    """

    config: AttackerConfig
    seed: int
    ubm: GaussianMixture
    backend: Backend | None = None
    trained_on: Mapping[str, Any] = field(default_factory=dict)
    heard: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)

    @property
    def name(self) -> str:
        """The name of its results."""
        return self.config.name

    def score(self, enrolment: DataDir, tested: DataDir, trials: Trials, work: Run) -> Scores:
        """Score trials; features and statistics are kept in the folder of a run."""
        attacker = classic_attacker(self.config)
        attack = Attack(TrainingSet(enrolment), (enrolment,), tested, trials)
        vectors = TrainedMixture(SpeechFiles(work, work, self.seed), attacker.source, self.ubm)
        model: Any = self.ubm if self.backend is None else self.backend
        with naming(self.name):
            return attacker.score(model, attack, vectors)


def save_attacker(attacker: TrainedAttacker, folder: str | Path) -> None:
    """Save an attacker to a folder; other files in it are kept."""
    import yaml

    folder = Path(folder)
    ubm = attacker.ubm
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DESCRIPTION).unlink(missing_ok=True)
    arrays = {"ubm_weights": ubm.weights, "ubm_means": ubm.means, "ubm_variances": ubm.variances}
    write_arrays(folder / _ARRAYS, {**arrays, "heard": attacker.heard})
    if attacker.backend is not None:
        write_backend(folder / _BACKEND, attacker.backend)
    files = _files(attacker.config)
    description = {
        "format": _FORMAT,
        "config": to_dict(attacker.config),
        "seed": attacker.seed,
        "trained_on": dict(attacker.trained_on),
        "versions": versions(),
        "sha256": {name: file_digest(folder / name) for name in files},
    }
    description["fingerprint"] = fingerprint(description)
    write_text(
        folder / _DESCRIPTION, yaml.safe_dump(description, sort_keys=False, allow_unicode=True)
    )


def load_attacker(folder: str | Path) -> TrainedAttacker:
    """Read an attacker from its folder.

    Raises
    ------
    DataError
        If it is missing, incomplete, damaged or of another format.
    """
    folder = Path(folder)
    file = folder / _DESCRIPTION
    if not file.is_file():
        text = "no attacker there: attacker.yaml is missing"
        raise DataError(text, file=folder, remedy="train one with 'spkver train'")
    try:
        known = read_yaml(file)
        if known.get("format") != _FORMAT:
            raise ConfigError(f"not the description of an attacker in format {_FORMAT}")
        written = known.pop("fingerprint", None)
        if fingerprint(known) != written:
            raise ConfigError(
                "was changed: a different configuration does not fit the trained files"
            )
        config = load_config(AttackerConfig, defaults=known["config"])
    except ConfigError as error:
        raise DataError(error.text, file=file, line=error.line, remedy=_AGAIN) from error
    for name in _files(config):
        if file_digest(folder / name) != known["sha256"].get(name):
            raise DataError("is missing or was changed", file=folder / name, remedy=_AGAIN)
    arrays = read_arrays(folder / _ARRAYS, "ubm_weights", "ubm_means", "ubm_variances", "heard")
    ubm = GaussianMixture(arrays["ubm_weights"], arrays["ubm_means"], arrays["ubm_variances"])
    backend = None
    if config.chains:
        backend = read_backend(folder / _BACKEND)
    return TrainedAttacker(
        config, known["seed"], ubm, backend, known["trained_on"], arrays["heard"]
    )


def train_attacker(
    datadirs: DataDir | Sequence[DataDir],
    config: AttackerConfig,
    folder: str | Path,
    *,
    seed: int = 0,
    work: str | Path | None = None,
    jobs: int | None = None,
    force: bool = False,
    keep: bool = False,
) -> TrainedAttacker:
    """Train an attacker and save it to `folder`, or reuse one that is up to date.

    Parameters
    ----------
    datadirs : DataDir or sequence of DataDir
        The training set. Several are merged, see `merge_versions`: from several draws of an anonymiser the projection
        learns the effect of its random choices.
    config : AttackerConfig
    folder : path
    seed : int
        Seed of the dither and of the choice of utterances.
    work : path, optional
        Folder for features and background models; ``folder/work`` by default. Attackers with equal `features` and `ubm`
        share the files there.
    jobs : int, optional
        Workers; all cores by default.
    force : bool
        Train again even if there is an attacker with the same inputs.
    keep : bool
        Do not overwrite an attacker with other inputs.

    Raises
    ------
    DataError
        With all problems of all recordings and the configuration, before anything long starts; or if `keep` protects
        another attacker.
    """
    folder = Path(folder)
    datadir = lists.merge_versions(datadirs)
    attacker = classic_attacker(config)
    check_training(datadir, [attacker], seed=seed, jobs=jobs)
    training = TrainingSet(datadir)
    (speech,) = lists.limited(training.versions, config.training.utterances, seed=seed)
    run = Run(make_folder(folder), jobs=jobs, force=force)

    def make(path: Path) -> None:
        below = Run(Path(work or folder / "work"), jobs=jobs, force=force, quiet=True)
        trained = learn_models(SpeechFiles(below, below, seed), attacker, training)
        facts: dict[str, Any] = {
            "utterances": len(speech),
            "speakers": len(set(speech.speakers.values())),
        }
        backend = None
        if config.chains:
            backend = trained.read()
            facts["sessions"] = backend.facts["vectors"]
        facts["list"] = fingerprint(sorted(speech.speakers.items()))
        digests = speaker_digests(speech.speakers.values())
        trained_on = {"name": datadir.name, **facts}
        save_attacker(
            TrainedAttacker(config, seed, trained.vectors.ubm, backend, trained_on, digests), folder
        )

    mixture = None
    if config.ubm.file is not None:
        mixture = file_digest(config.ubm.file)
    origin = run.origin(
        f"attacker {config.name}",
        inputs=[config, sorted(speech.speakers.items()), datadir.name, seed, mixture],
        sources=pipeline.feature_sources(speech.recordings, config.features),
        libraries=[*pipeline.feature_libraries(speech.recordings, config.features), "scikit-learn"],
    )
    is_another = (folder / _DESCRIPTION).is_file() and run.state(_DESCRIPTION, origin) in (
        "stale",
        "missing",
    )
    if is_another and keep and not force:
        text = "an attacker of other data, settings or library versions is there already"
        raise DataError(
            text, file=folder, remedy="choose another output folder, or replace it with force=True"
        )
    trained: TrainedAttacker = run.stage(
        f"attacker {config.name}",
        _DESCRIPTION,
        make=make,
        read=lambda path: load_attacker(path.parent),
        also=_files(config),
        origin=origin,
    ).value
    return trained


def check_training(
    datadir: DataDir, attackers: Sequence[Attacker], *, seed: int, jobs: int | None = None
) -> None:
    """Check all headers and settings for the training of GMM-based attackers before anything long starts.

    Raises
    ------
    DataError
        With all problems at once.
    """
    problems = Problems()
    seconds: dict[str, float] = {}
    for attacker in attackers:
        source = attacker.source
        if source is None or source.features is None:
            continue
        (speech,) = lists.limited((datadir,), attacker.utterances, seed=seed)
        if not len(speech):
            problems.add("the training set holds no utterance", file=datadir.path)
            continue
        if attacker.least_speakers > len(set(speech.speakers.values())):
            text = f"{attacker.name} needs 2 training speakers, there is 1"
            problems.add(text, file=datadir.path, remedy="give more speakers")
        key = fingerprint(source.features, sorted(speech.recordings))
        if key not in seconds:
            seconds[key] = check_recordings(
                speech.recordings, source.features, work=Work(jobs), problems=problems
            )
        if seconds[key]:  # otherwise no recording can be used, and the problems say why
            with problems.noted():
                most = seconds[key] / source.features.shift
                check_ubm(source.ubm, dimension=source.features.dimension, most_frames=most)
    problems.raise_if_any()


def score(
    attackers: Mapping[str, TrainedAttacker],
    enrol_dir: DataDir,
    trial_dir: DataDir,
    trial_list: Trials,
    *,
    work: str | Path,
    jobs: int | None = None,
) -> dict[str, Scores]:
    """Score a list of trials with each attacker.

    Parameters
    ----------
    attackers : mapping of str to TrainedAttacker
    enrol_dir : DataDir
        A model is a speaker, enrolled with the utterances that `enrolls` lists (all without that list), or a single
        utterance.
    trial_dir : DataDir
        A segment of the trials is an utterance.
    trial_list : evaluation.trials.Trials
    work : path
        Folder for features and statistics, which are reused.
    jobs : int, optional
        Workers; the scores do not depend on it.

    Returns
    -------
    dict of str to evaluation.trials.Scores
        For each attacker the scores in the order of the trials.

    Raises
    ------
    DataError
        With all problems of the trials and the recordings, before anything long starts.
    """
    check_trials(
        [attacker.config.features for attacker in attackers.values()],
        enrol_dir,
        trial_dir,
        trial_list,
        jobs,
    )
    run = Run(Path(work), jobs=jobs, quiet=True)
    return {
        name: attacker.score(enrol_dir, trial_dir, trial_list, run)
        for name, attacker in attackers.items()
    }


def check_trials(
    features: Sequence[FeatureConfig],
    enrol_dir: DataDir,
    trial_dir: DataDir,
    trial_list: Trials,
    jobs: int | None = None,
) -> None:
    """Check a list of trials, and the headers of all recordings that it needs for each kind of features.

    Raises
    ------
    DataError
        With all problems at once.
    """
    models, tested = lists.match_trials(enrol_dir, trial_dir, trial_list)
    # an attacker would look perfect if recordings were tested against models that contain them
    own = set()
    for model, name in zip(models.models, models.segments, strict=True):
        own.add((model, enrol_dir.recordings[name].resolve()))
    paths = {name: path.resolve() for name, path in tested.items()}
    n_own = 0
    for model, segment in trial_list.pairs():
        if (model, paths[segment]) in own:
            n_own += 1
    if n_own:
        text = "%d of %d trials test a recording that their model was enrolled with"
        remedy = "list in 'enrolls' what is enrolled, or leave these trials out"
        logger.warning(f"{text}: {remedy}", n_own, len(trial_list))
    used = {*models.segments, *(enrol_dir.enrolls or ())}
    enrolled = {name: Path(enrol_dir.recordings[name]) for name in sorted(used)}
    files = set(enrolled.values())
    others = {name: path for name, path in tested.items() if path not in files}
    problems = Problems()
    by_key = {fingerprint(config): config for config in features}
    for config in by_key.values():
        _check_features(config, (enrolled, others), problems, jobs)
    problems.raise_if_any()


def _check_features(
    config: FeatureConfig, parts: Iterable[Mapping[str, Path]], problems: Problems, jobs: int | None
) -> None:
    """Note the recordings that the features of a trained attacker cannot be extracted from."""
    errors = Problems()
    for recordings in parts:
        check_recordings(recordings, config, work=Work(jobs), problems=errors)
    for error in errors.errors:
        advice = error.remedy
        if isinstance(error, OtherFeaturesError):
            advice = f"the attacker was trained in this way; to train another: {advice}"
        problems.add(error.text, file=error.file, remedy=advice)


def _files(config: AttackerConfig) -> tuple[str, ...]:
    if config.chains:
        return (_ARRAYS, _BACKEND)
    return (_ARRAYS,)
