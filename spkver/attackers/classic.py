"""The classic attackers, each trained on data directories and saved as one self-contained folder.

    ATTACKER/attacker.yaml    format, configuration, seed, what it was trained on, SHA-256 of the others, fingerprint
    ATTACKER/attacker.h5      universal background model, digests of the training speakers
    ATTACKER/backend.h5       the trained chain

`attacker.yaml` is written last, so a folder with it is complete. A configuration defines an attacker: features,
mixture, and chains of `spkver.backend` for the supervectors; the first chain for which the training set is large enough
is used. Without a chain it is gmm-ubm, the log-likelihood ratio of a mixture adapted to the speaker and the universal
background model,

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.trials import Scores, Trials
from spkbase.configuration import check_values, load_config, merged, read_yaml, to_dict
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import file_digest, fingerprint, make_folder, write_text
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Run, versions
from spkbase.showing import one_line
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers import lists
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet, naming
from spkver.attackers.sources import SMALL_MIXTURE, Workplace
from spkver.attackers.vector_attacker import Context, Settings, check_chains
from spkver.backend import (
    Backend,
    Chain,
    parse_chain,
    read_backend,
    score_gmm_ubm,
    speaker_digests,
    train_chain,
    write_backend,
)
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, check_recordings
from spkver.mixture import GaussianMixture, Statistics, UbmConfig, check_ubm
from spkver.vectors import MapConfig, adapt_multisession, adapt_supervectors

logger = logging.getLogger(__name__)

LDA_SPEAKERS, LDA_UTTERANCES, NORM_SPEAKERS = 50, 2.0, 30
"""A chain with LDA needs this many training speakers and utterances per speaker, all versions counted (pieces of one
utterance do not show how a speaker's utterances differ); a chain with snorm needs this many speakers."""

_SHARED: dict[str, Any] = {**SMALL_MIXTURE, "training": {"session_seconds": 2.5}}
_SVM = {**_SHARED, "chains": ["[centre, nap: 20, length, svm: {balanced: true, most: 1000}]"]}
PRESETS: dict[str, dict[str, Any]] = {
    "gmm-ubm": _SHARED,
    "gmm-svm": _SVM,
    # an anonymiser changes the mean of the cepstra most: without it, original and anonymised speech are comparable
    "gmm-svm-cms": {**_SVM, "features": {"preset": "wideband", "log_energy": True, "normalisation": "cms"}},
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
_DESCRIPTION, _ARRAYS, _BACKEND = "attacker.yaml", "attacker.h5", "backend.h5"
_AGAIN = "train the attacker again"


@dataclass(frozen=True)
class TrainingConfig:
    """Which part of the training set is used.

    Attributes
    ----------
    utterances : int or None
        At most this many utterances, spread evenly over the speakers and drawn with the seed; None takes all.
    session_seconds : float or None [s]
        Utterances are cut into sessions of about this length; shorter ones stay whole. Sessions are what a chain is
        trained on. None: each utterance is a session.
    """

    utterances: int | None = 4000
    session_seconds: float | None = None

    def __post_init__(self) -> None:
        check_values("training", self, least={"utterances": 2})
        if self.session_seconds is not None and not self.session_seconds > 0:
            raise ConfigError(f"training.session_seconds is {self.session_seconds}: expected a number above 0")


@dataclass(frozen=True)
class AttackerConfig:
    """The whole configuration of a classic attacker.

    Attributes
    ----------
    name : str
        What its folder and its results are called.
    chains : tuple of str
        For the supervectors, as ``spkver backend train --chain`` takes them: the first for which the training set is
        large enough is used, see `fitting_chain`. Empty: the log-likelihood ratio of gmm-ubm.
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
        if not self.name or self.name in (".", "..") or set(self.name) & set("/\\\0") or self.name != self.name.strip():
            raise ConfigError(f"name is {self.name!r}: expected the name of a folder")
        check_chains(self.chains)


def attacker_config(
    preset: str,
    *,
    file: str | Path | None = None,
    settings: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
) -> AttackerConfig:
    """Return a configuration from a preset, values, a YAML file and settings, each winning over the one before.

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
        If there is no such preset, or with all problems of the values.

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
        """What its results are called."""
        return self.config.name

    def score(self, enrolment: DataDir, tested: DataDir, trials: Trials, work: Workplace) -> Scores:
        """Score trials; features and statistics are cached in a folder."""
        config, ubm, workers = self.config, self.ubm, Work(work.jobs)
        models, recordings = lists.match_trials(enrolment, tested, trials)
        listed = {*models.segments, *(enrolment.enrolls or ())}  # so that lists of trials share them
        paths = {name: Path(enrolment.recordings[name]) for name in sorted(listed)}
        found = work.recordings(enrolment.name, paths, config.features, seed=self.seed).statistics(ubm)
        enrolled = _model_statistics(found, models.models, models.segments, enrolment.version_of)
        tests = work.recordings(tested.name, recordings, config.features, seed=self.seed)
        if self.backend is not None:
            sides = enrolled, tests.statistics(ubm)
            first, second = (_supervectors(ubm, rows, config.map, workers) for rows in sides)
            return self.backend.score(first, second, trials)
        adapted = adapt_multisession(ubm, enrolled, replace(config.map, normalise=False), work=workers)
        return score_gmm_ubm(ubm, adapted, tests.frames.value, trials, work=workers)


def save_attacker(attacker: TrainedAttacker, folder: str | Path) -> None:
    """Save an attacker to a folder; other files in it are kept."""
    import yaml

    folder, ubm = Path(folder), attacker.ubm
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
    write_text(folder / _DESCRIPTION, yaml.safe_dump(description, sort_keys=False, allow_unicode=True))


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
            raise ConfigError("not as it was written: another configuration does not fit what was trained")
        config = load_config(AttackerConfig, defaults=known["config"])
    except ConfigError as error:
        raise DataError(error.text, file=file, line=error.line, remedy=_AGAIN) from error
    for name in _files(config):
        if file_digest(folder / name) != known["sha256"].get(name):
            raise DataError("missing, or not as it was written", file=folder / name, remedy=_AGAIN)
    arrays = read_arrays(folder / _ARRAYS, "ubm_weights", "ubm_means", "ubm_variances", "heard")
    ubm = GaussianMixture(arrays["ubm_weights"], arrays["ubm_means"], arrays["ubm_variances"])
    backend = read_backend(folder / _BACKEND) if config.chains else None
    return TrainedAttacker(config, known["seed"], ubm, backend, known["trained_on"], arrays["heard"])


def train_attacker(
    datadirs: DataDir | Sequence[DataDir],
    config: AttackerConfig,
    folder: str | Path,
    *,
    seed: int = 0,
    work: Workplace | None = None,
    force: bool = False,
    keep: bool = False,
) -> TrainedAttacker:
    """Train an attacker and save it to `folder`, or reuse one that is up to date.

    Parameters
    ----------
    datadirs : DataDir or sequence of DataDir
        The training set. Several are merged, see `merge_versions`: several draws of an anonymiser teach the projection
        what its random choices change.
    config : AttackerConfig
    folder : path
    seed : int
        Seed of the dither and of the choice of utterances.
    work : Workplace, optional
        Folder for features and background models, and the number of workers; ``folder/work`` and all cores by default.
        Attackers with equal `features`, `training` and `ubm` share the files there.
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
    folder, datadir = Path(folder), lists.merge_versions(datadirs)
    work = work or Workplace(folder / "work")
    check_training(datadir, [config], seed=seed, jobs=work.jobs)
    recordings = _recordings(datadir, config, seed)
    speakers = {utterance: datadir.speakers[utterance] for utterance in recordings}
    mixture = None if config.ubm.file is None else file_digest(config.ubm.file)
    run = Run(make_folder(folder), jobs=work.jobs, force=force)

    def make(path: Path) -> None:
        # features, mixture and statistics are stages in separate folders, which attackers share
        prepared = work.recordings(datadir.name, recordings, config.features, seed=seed)
        ubm = work.ubm(prepared, config.ubm)
        backend, listed = None, fingerprint(sorted(speakers.items()))
        facts = {"utterances": len(recordings), "speakers": len(set(speakers.values())), "list": listed}
        if config.chains:
            seconds = config.training.session_seconds
            length = None if seconds is None else seconds / config.features.shift
            statistics = prepared.session_statistics(ubm, speakers, length)
            sessions = _supervectors(ubm, statistics, config.map, Work(work.jobs))
            chain = fitting_chain(config, sessions, len(recordings))
            backend = train_chain(sessions, chain, seed=seed)
            facts["sessions"] = len(sessions)
        heard = speaker_digests(speakers.values())
        attacker = TrainedAttacker(config, seed, ubm, backend, {"name": datadir.name, **facts}, heard)
        save_attacker(attacker, path.parent)

    stage = run.declare(
        f"attacker {config.name}",
        _DESCRIPTION,
        make=make,
        read=lambda path: load_attacker(path.parent),
        also=_files(config),
        inputs=[config, sorted(speakers.items()), datadir.name, seed, mixture],
        sources=pipeline.feature_sources(recordings, config.features),
        libraries=[*pipeline.feature_libraries(recordings, config.features), "scikit-learn"],
    )
    if keep and stage.is_due and stage.path.is_file() and stage.state() in ("stale", "missing"):
        text = "an attacker of other data, settings or library versions is there already"
        raise DataError(text, file=folder, remedy="choose another output folder, or replace it with force=True")
    stage.bring_up_to_date()
    return stage.value


def fitting_chain(config: AttackerConfig, sessions: Embeddings, n_utterances: int) -> Chain:
    """Return the first chain for which the training set is large enough, or else the last chain.

    LDA needs `LDA_SPEAKERS` speakers with `LDA_UTTERANCES` utterances each, snorm needs `NORM_SPEAKERS` speakers. Ranks
    are lowered to what the sessions allow: NAP to the number of directions in which they differ within speakers, LDA to
    the number of speakers minus one.
    """
    (n_sessions, dimension), n_speakers = sessions.vectors.shape, len(set(sessions.speakers))
    is_missing = {
        "lda": n_speakers < LDA_SPEAKERS or n_utterances < LDA_UTTERANCES * n_speakers or n_sessions == n_speakers,
        "snorm": n_speakers < NORM_SPEAKERS,
    }
    chains = [parse_chain(chain) for chain in config.chains]
    carried = (chain for chain in chains if not any(is_missing.get(step.name) for step in chain))
    chain = next(carried, chains[-1])
    if chain != chains[0]:
        text = "%s: %d utterances of %d training speakers are too few for %s"
        logger.info(text, config.name, n_utterances, n_speakers, config.chains[0])
    most = {"nap": n_sessions - n_speakers, "pca": min(n_sessions - 1, dimension), "lda": n_speakers - 1}
    fitted = []
    for step in chain:
        rank = step.values.get("rank")
        if step.name in most and rank is not None and rank > (limit := most[step.name]):
            logger.warning("%s: the training sessions allow %s of rank %d, not %d", config.name, step.name, limit, rank)
            step = replace(step, values={**step.values, "rank": limit})
            if not limit:
                continue
        fitted.append(step)
    return tuple(fitted)


def check_training(datadir: DataDir, configs: Sequence[AttackerConfig], *, seed: int, jobs: int | None = None) -> None:
    """Check all headers and settings of a training before anything long starts.

    Raises
    ------
    DataError
        With all problems at once.
    """
    problems = Problems()
    seconds: dict[str, float] = {}
    for config in configs:
        chosen = _recordings(datadir, config, seed)
        if not chosen:
            problems.add("the training set holds no utterance", file=datadir.path)
            continue
        if config.chains and len({datadir.speakers[utterance] for utterance in chosen}) < 2:
            text = f"{config.name} needs 2 training speakers, there is 1"
            problems.add(text, file=datadir.path, remedy="give more speakers")
        key = fingerprint(config.features, sorted(chosen))
        if key not in seconds:
            seconds[key] = check_recordings(chosen, config.features, work=Work(jobs), problems=problems)
        if seconds[key]:  # else no recording can be used, and the problems say why
            with problems.noted():
                most = seconds[key] / config.features.shift
                check_ubm(config.ubm, dimension=config.features.dimension, most_frames=most)
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
    check_trials([attacker.config.features for attacker in attackers.values()], enrol_dir, trial_dir, trial_list, jobs)
    workplace = Workplace(Path(work), jobs)
    return {name: one.score(enrol_dir, trial_dir, trial_list, workplace) for name, one in attackers.items()}


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
    # an attacker looks perfect if a recording is tested against the model that it enrolled
    enrolled_by = zip(models.models, models.segments, strict=True)
    own = {(model, enrol_dir.recordings[name].resolve()) for model, name in enrolled_by}
    paths = {name: path.resolve() for name, path in tested.items()}
    if n_own := sum((model, paths[segment]) in own for model, segment in trial_list.pairs()):
        text = "%d of %d trials test a recording that their model was enrolled with"
        remedy = "list in 'enrolls' what is enrolled, or leave these trials out"
        logger.warning(f"{text}: {remedy}", n_own, len(trial_list))
    used = {*models.segments, *(enrol_dir.enrolls or ())}
    enrolled = {name: Path(enrol_dir.recordings[name]) for name in sorted(used)}
    files = set(enrolled.values())
    others = {name: path for name, path in tested.items() if path not in files}
    problems = Problems()
    for config in {fingerprint(config): config for config in features}.values():
        of_features = Problems()
        for recordings in (enrolled, others):
            check_recordings(recordings, config, work=Work(jobs), problems=of_features)
        for error in of_features.errors:
            remedy = error.remedy or ""
            if remedy.startswith("set features."):  # features can no longer be changed
                remedy = f"the attacker was trained so; train another: {remedy}"
            problems.add(error.text, file=error.file, remedy=remedy)
    problems.raise_if_any()


@dataclass(frozen=True)
class ClassicAttacker:
    """A classic attacker in a run; see `spkver.attackers.Attacker`."""

    config: AttackerConfig
    place: Place = NOWHERE

    @property
    def name(self) -> str:
        """Name from its configuration."""
        return self.config.name

    def record(self, attack: Attack) -> AttackerConfig:
        """Return its configuration."""
        return self.config

    def lacks(self, attack: Attack) -> str:
        """Return an empty string: it can score all trials."""
        return ""

    def fit(self, training: TrainingSet) -> Scorer:
        """Train it."""
        place, versions = self.place, training.versions
        folder, work = place.output / "attackers" / versions[0].name / self.name, Workplace(place.work, place.jobs)
        trained = train_attacker(versions, self.config, folder, seed=place.seed, work=work, force=place.force)

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            with naming(self.name):
                return trained.score(lists.enrolled_speech(enrolment), tested, trials, work)

        return score


def classic_attacker(name: str, settings: Settings, context: Context) -> ClassicAttacker:
    """Create a classic attacker from its preset."""
    with naming(name):
        values = merged(context.shared, settings, {"name": name})
        return ClassicAttacker(attacker_config(context.preset, values=values))


def _supervectors(ubm: GaussianMixture, statistics: Statistics, config: MapConfig, workers: Work) -> Embeddings:
    """Return the supervector of each row of statistics; an utterance that enrols several models has several rows."""
    found = adapt_supervectors(ubm, statistics, config, work=workers)
    ids, models = found.segments, found.models
    if len(set(ids)) < len(ids):
        ids = np.array([f"{model} {name}" for model, name in zip(models, ids, strict=True)], object)
    return Embeddings(ids, models, np.asarray(found.vectors))


def _model_statistics(
    found: Statistics, models: NDArray, segments: NDArray, version_of: Mapping[str, str]
) -> Statistics:
    """Average the statistics of each enrolment utterance over its versions, under the id of its model."""
    row_of = {name: row for row, name in enumerate(found.segments)}
    sessions: dict[tuple[str, str], list[int]] = {}
    for model, segment in zip(models, segments, strict=True):
        sessions.setdefault((model, version_of.get(segment, segment)), []).append(row_of[segment])
    arrays = (np.asarray(values) for values in (found.zeroth, found.first))
    zeroth, first = (np.stack([values[rows].mean(axis=0) for rows in sessions.values()]) for values in arrays)
    names = np.array(list(sessions), object)
    return Statistics(names[:, 0], names[:, 1], zeroth, first)


def _files(config: AttackerConfig) -> tuple[str, ...]:
    return (_ARRAYS, _BACKEND) if config.chains else (_ARRAYS,)


def _recordings(datadir: DataDir, config: AttackerConfig, seed: int) -> dict[str, Path]:
    speakers = {utterance: datadir.speakers[utterance] for utterance in datadir.recordings}
    chosen = lists.choose_utterances(speakers, limit=config.training.utterances, seed=seed)
    return {utterance: Path(datadir.recordings[utterance]) for utterance in chosen}
