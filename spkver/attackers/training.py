"""Train attackers on a data directory.

**Learn from the sessions of a training set what an attacker needs after the universal background model.**

**The built-in attackers as an evaluation sees them: trained together, with what they share in memory.**
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores
from spkbase.errors import ConfigError, DataError, Problems, WorkerError
from spkbase.files import file_digest, fingerprint, make_folder
from spkbase.runs import Run, Stage
from spkbase.showing import one_line
from spkbase.work import Work
from spkver.attackers.attack import TrainedAttacker, check_trials, load_attacker, save_attacker, score_checked
from spkver.attackers.config import AttackerConfig
from spkver.attackers.kinds import Backend, Cohort, Lesson, Sessions
from spkver.attackers.protocol import Attack, Scorer
from spkver.attackers.sessions import choose_utterances
from spkver.attackers.workplace import Workplace
from spkver.backend import speaker_digests
from spkver.datadir import DataDir
from spkver.features import check_recordings
from spkver.mixture import GaussianMixture, check_ubm

logger = logging.getLogger(__name__)


def train_backend(
    config: AttackerConfig,
    ubm: GaussianMixture,
    sessions: Sessions,
    *,
    seed: int,
    workers: Work | None = None,
) -> Backend:
    """Learn the transformation, the background and the cohort from the sessions of the training set.

    Parameters
    ----------
    config : AttackerConfig
    ubm : GaussianMixture
    sessions : Sessions
    seed : int
        Draws the background, and the speakers that are set apart for the cohort.
    workers : Work, optional
        The device computes supervectors, the projection and the kernel of the background; the workers do the rest.
    """
    speakers = sessions.statistics.models
    n_speakers = len(set(speakers))
    normed = config.norm.kind != "none" and n_speakers >= config.norm.speakers
    if config.norm.kind != "none" and not normed:
        logger.info("%s: a cohort of %d speakers: scores are not normalised", config.name, n_speakers)
    is_cohort = cohort_rows(speakers, config.norm.apart, seed=seed)
    is_learnt = ~is_cohort if config.norm.apart and normed else np.ones(len(speakers), bool)
    lesson = Lesson(config, ubm, sessions, is_learnt, is_cohort, seed, workers or Work())
    method = config.method
    backend = Backend() if method.learn is None else method.learn(lesson)
    if not normed:
        return backend
    segments = method.cohort_segments(lesson, backend)
    return replace(backend, cohort=Cohort(method.cohort_models(lesson, backend), segments, config.norm))


def cohort_rows(speakers: NDArray, apart: float, *, seed: int) -> NDArray[np.bool_]:
    """Return which rows are of cohort speakers: all, or of a share of the speakers, at least 2, drawn with the seed."""
    if not apart:
        return np.ones(len(speakers), bool)
    names = sorted(set(speakers))
    n_chosen = min(max(2, round(apart * len(names))), len(names) - 1)
    chosen = np.random.default_rng(seed).permutation(len(names))[:n_chosen]
    return np.isin(speakers, np.array(names, object)[chosen])


ENDING = (MemoryError, WorkerError, ConfigError)
"""Errors that are no attacker's own: they end a run."""


def merge_versions(datadirs: DataDir | Sequence[DataDir]) -> DataDir:
    """Return several training sets as one, such as versions of the same speech that differ in what an anonymiser drew.

    Speakers of the same id are the same; utterances of the same id are different versions and get ids of their own. One
    set stays as it is.
    """
    if isinstance(datadirs, DataDir):
        return datadirs
    if len(datadirs) == 1:
        return datadirs[0]
    recordings, speakers = {}, {}
    for number, version in enumerate(datadirs, 1):
        for utterance, path in version.recordings.items():
            # the number first: versions stand apart when ids are sorted, so that no session mixes them
            recordings[f"{number} {utterance}"] = path
            speakers[f"{number} {utterance}"] = version.speakers[utterance]
    path = datadirs[0].path
    return DataDir(path.with_name(f"{path.resolve().name}-and-{len(datadirs) - 1}"), recordings, speakers)


def train_attackers(
    datadirs: DataDir | Sequence[DataDir],
    configs: Sequence[AttackerConfig],
    output: str | Path,
    *,
    seed: int = 0,
    work: Workplace | None = None,
    force: bool = False,
    failed: dict[str, Exception] | None = None,
) -> dict[str, TrainedAttacker]:
    """Train attackers and save each in a folder of its name.

    Parameters
    ----------
    datadirs : DataDir or sequence of DataDir
        The training set. Several are one, see `merge_versions`: a training set that an anonymiser with random choices
        has worked on several times teaches the projection what these choices do.
    configs : sequence of AttackerConfig
        Names must differ. Attackers of equal `features`, `training` and `ubm` share what these make.
    output : path
        The attackers go to ``output/<name>``.
    seed : int
        Of the dither, the choice of utterances and of cohort speakers.
    work : Workplace, optional
        Folder that features and background models are kept in, with the workers and the device; all cores, NumPy and
        ``output/work`` by default.
    force : bool
        Train again where a finished attacker of the same inputs is there.
    failed : dict of str to Exception, optional
        Takes what went wrong with single attackers, by name, and the others are trained; without it the first error
        ends the training.

    Returns
    -------
    dict of str to TrainedAttacker
        By name, in the order of the configurations.

    Raises
    ------
    DataError
        With all problems of all recordings and configurations, before anything long starts.
    """
    output, datadir = Path(output), merge_versions(datadirs)
    names = [config.name for config in configs]
    if len(set(names)) < len(names):
        raise ConfigError(f"attackers {', '.join(names)}: each needs a name of its own")
    work = work or Workplace(output / "work")
    check_training(datadir, configs, seed=seed, jobs=work.jobs)
    trained = {}
    for config in configs:
        try:
            trained[config.name] = _train(datadir, config, output / config.name, work, seed=seed, force=force).value
        except Exception as error:
            if failed is None or isinstance(error, ENDING):
                raise
            failed[config.name] = error
    return trained


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
    """Train one attacker and save it as `folder`; with `keep` not over one of other inputs, which is a DataError.

    The rest as in `train_attackers`.
    """
    folder, datadir = Path(folder), merge_versions(datadirs)
    work = work or Workplace(folder / "work")
    check_training(datadir, [config], seed=seed, jobs=work.jobs)
    stage = _train(datadir, config, folder, work, seed=seed, force=force)
    if keep and stage.path.is_file() and stage.state() in ("stale", "missing"):
        text = "an attacker of other data, settings or library versions is there already"
        raise DataError(text, file=folder, remedy="choose another --output, or replace it by --force")
    return stage.value


def check_training(datadir: DataDir, configs: Sequence[AttackerConfig], *, seed: int, jobs: int | None = None) -> None:
    """Check all headers and options of a training, before anything long starts.

    Raises
    ------
    DataError
        With all problems at once.
    """
    problems = Problems()
    seconds: dict[str, float] = {}
    for config in configs:
        chosen = _recordings(datadir, config, seed)
        speakers = {datadir.speakers[utterance] for utterance in chosen}
        if not chosen:
            problems.add("the training set holds no utterance", file=datadir.path)
            continue
        if len(speakers) < 2 and config.method.needs_sessions(config):
            problems.add(
                f"{config.name} needs 2 training speakers, there is {len(speakers)}", file=datadir.path,
                remedy="give more speakers",
            )  # fmt: skip
        key = fingerprint(config.features, sorted(chosen))
        if key not in seconds:
            seconds[key] = check_recordings(chosen, config.features, work=Work(jobs), problems=problems)
        if not seconds[key]:  # no recording can be used, and the problems say why
            continue
        try:
            most = seconds[key] / config.features.shift
            check_ubm(config.ubm, dimension=config.features.dimension, most_frames=most)
        except DataError as error:
            problems.note(error)
    problems.raise_if_any()


def _recordings(datadir: DataDir, config: AttackerConfig, seed: int) -> dict[str, Path]:
    speakers = {utterance: datadir.speakers[utterance] for utterance in datadir.recordings}
    chosen = choose_utterances(speakers, limit=config.training.utterances, seed=seed)
    return {utterance: Path(datadir.recordings[utterance]) for utterance in chosen}


def _train(
    datadir: DataDir, config: AttackerConfig, folder: Path, work: Workplace, *, seed: int, force: bool
) -> Stage[TrainedAttacker]:
    recordings = _recordings(datadir, config, seed)
    speakers = {utterance: datadir.speakers[utterance] for utterance in recordings}
    prepared = work.recordings(datadir.name, recordings, config.features, seed=seed)

    def make(path: Path) -> None:
        ubm = work.ubm(prepared, config.ubm).mixture
        trained_on = {
            "name": datadir.name,
            "utterances": len(recordings),
            "speakers": len(set(speakers.values())),
            "list": fingerprint(sorted(speakers.items())),
        }
        backend = Backend()
        if config.method.needs_sessions(config):
            frames = work.sessions(prepared, speakers, _session_frames(config))
            statistics = work.session_statistics(prepared, ubm, frames)
            trained_on["sessions"] = len(statistics)
            sessions = Sessions(statistics, frames, len(recordings))
            workers = Work(work.jobs, work.device)
            backend = train_backend(config, ubm, sessions, seed=seed, workers=workers)
        heard = speaker_digests(speakers.values())
        save_attacker(TrainedAttacker(config, seed, ubm, backend, trained_on, heard), folder)

    make_folder(folder)
    mixture = None if config.ubm.file is None else file_digest(config.ubm.file)
    run = Run(folder, jobs=work.jobs, force=force, device=work.device)
    return run.declare(
        f"attacker {config.name}",
        "attacker.yaml",
        make=make,
        read=lambda path: load_attacker(path.parent),
        also=("attacker.h5",),
        inputs=[config, sorted(speakers.items()), datadir.name, seed, mixture],
        after=prepared.frames.origins,
        libraries=("numpy", "scipy", "scikit-learn"),
        on_device=True,
    )


def _session_frames(config: AttackerConfig) -> float | None:
    """Length of the sessions in frames."""
    seconds = config.training.session_seconds
    return None if seconds is None else seconds / config.features.shift


@one_line
@dataclass
class Classics:
    """Built-in attackers that are trained on the same speech, and score the same trials one after the other.

    Attributes
    ----------
    configs : sequence of AttackerConfig
    folder : Path
        Attackers go to ``folder/<training set>/<name>``.
    work : Workplace
        Folder of features and statistics, workers, device.
    seed : int
    force : bool
        Train again where finished attackers are there.
    """

    configs: Sequence[AttackerConfig]
    folder: Path
    work: Workplace
    seed: int = 0
    force: bool = False
    _trained: dict[tuple[DataDir, ...], dict[str, TrainedAttacker]] = field(default_factory=dict, repr=False)
    _failed: dict[tuple[DataDir, ...], dict[str, Exception]] = field(default_factory=dict, repr=False)
    _latest: tuple[str, tuple[Any, ...]] | None = field(default=None, repr=False)

    def attackers(self) -> list[ClassicAttacker]:
        """Return each of them as an attacker of its own."""
        return [ClassicAttacker(config, self) for config in self.configs]

    def trained(self, training: tuple[DataDir, ...]) -> dict[str, TrainedAttacker]:
        """Return all of them that can be trained on this speech."""
        if training not in self._trained:
            folder, failed = self.folder / training[0].name, self._failed.setdefault(training, {})
            self._trained[training] = train_attackers(
                training, self.configs, folder, seed=self.seed, work=self._fresh(), force=self.force, failed=failed
            )
        return self._trained[training]

    def one_trained(self, name: str, training: tuple[DataDir, ...]) -> TrainedAttacker:
        """Return one of them, trained on this speech; what went wrong with it, and with it alone, is raised."""
        trained = self.trained(training)
        if name not in trained:
            raise self._failed[training][name]
        return trained[name]

    def prepared(self, attack: Attack) -> tuple[Any, ...]:
        """Return where to work, and what enrols and is tested; of the latest list alone, whose frames may be large."""
        if self._latest is None or self._latest[0] != attack.name:
            self._latest = None
            attackers = self.trained(attack.training)
            checked = check_trials(attackers, attack.enrolled, attack.tested, attack.trials, jobs=self.work.jobs)
            self._latest = attack.name, (self._fresh(), *checked)
        return self._latest[1]

    def _fresh(self) -> Workplace:
        """Return the same place, with nothing in its memory."""
        return Workplace(self.work.folder, self.work.jobs, self.work.device)


@dataclass(frozen=True)
class ClassicAttacker:
    """One of them; see `spkver.attackers.Attacker`."""

    config: AttackerConfig
    shared: Classics

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def record(self, attack: Attack) -> AttackerConfig:
        """Return its configuration."""
        return self.config

    def lacks(self, attack: Attack) -> str:
        """Return nothing: it serves all trials."""
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Train it, and the others with it."""
        attacker = self.shared.one_trained(self.name, training)

        def score(attack: Attack) -> Scores:
            workplace, models, tested = self.shared.prepared(attack)
            sides = (attack.enrolled, models), (attack.tested, tested)
            return score_checked(attacker, workplace, *sides, attack.trials)

        return score
