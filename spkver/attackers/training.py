"""Train attackers on a data directory.

**Learn from the sessions of a training set what an attacker needs after the universal background model.**

**The built-in attackers as an evaluation sees them: trained together, with what they share in memory.**
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores
from spkbase.errors import ConfigError, DataError, Problems, WorkerError
from spkbase.files import file_digest, fingerprint, make_folder
from spkbase.runs import Run
from spkbase.showing import one_line
from spkbase.work import Work
from spkver import pipeline
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
    """Train an attacker and save it as `folder`, or take the one that is up to date.

    Parameters
    ----------
    datadirs : DataDir or sequence of DataDir
        The training set. Several are one, see `merge_versions`: a training set that an anonymiser with random choices
        has worked on several times teaches the projection what these choices do.
    config : AttackerConfig
    folder : path
    seed : int
        Of the dither, the choice of utterances and of cohort speakers.
    work : Workplace, optional
        Folder that features and background models are kept in, with the workers; all cores and
        ``folder/work`` by default. Attackers of equal `features`, `training` and `ubm` share there what these make.
    force : bool
        Train again where a finished attacker of the same inputs is there.
    keep : bool
        Do not train over an attacker of other inputs.

    Raises
    ------
    DataError
        With all problems of all recordings and the configuration, before anything long starts; or if there is another
        attacker that is to be kept.
    """
    folder, datadir = Path(folder), merge_versions(datadirs)
    work = work or Workplace(folder / "work")
    check_training(datadir, [config], seed=seed, jobs=work.jobs)
    recordings = _recordings(datadir, config, seed)
    speakers = {utterance: datadir.speakers[utterance] for utterance in recordings}
    mixture = None if config.ubm.file is None else file_digest(config.ubm.file)
    run = Run(make_folder(folder), jobs=work.jobs, force=force)
    stage = run.declare(
        f"attacker {config.name}",
        "attacker.yaml",
        read=lambda path: load_attacker(path.parent),
        also=("attacker.h5",),
        inputs=[config, sorted(speakers.items()), datadir.name, seed, mixture],
        sources=pipeline.feature_sources(recordings, config.features),
        libraries=[*pipeline.feature_libraries(recordings, config.features), "scikit-learn"],
    )
    if not stage.is_due:
        return stage.value
    if keep and stage.path.is_file() and stage.state() in ("stale", "missing"):
        text = "an attacker of other data, settings or library versions is there already"
        raise DataError(text, file=folder, remedy="choose another --output, or replace it by --force")
    # what attackers share: features, mixture and statistics are stages in folders of their own
    prepared = work.recordings(datadir.name, recordings, config.features, seed=seed)
    ubm = work.ubm(prepared, config.ubm).mixture
    trained_on = {
        "name": datadir.name,
        "utterances": len(recordings),
        "speakers": len(set(speakers.values())),
        "list": fingerprint(sorted(speakers.items())),
    }
    sessions = None
    if config.method.needs_sessions(config):
        seconds = config.training.session_seconds
        frames = work.sessions(prepared, speakers, None if seconds is None else seconds / config.features.shift)
        sessions = Sessions(work.session_statistics(prepared, ubm, frames), frames, len(recordings))
        trained_on["sessions"] = len(sessions.statistics)

    def make(path: Path) -> None:
        workers = Work(work.jobs)
        backend = Backend() if sessions is None else train_backend(config, ubm, sessions, seed=seed, workers=workers)
        heard = speaker_digests(speakers.values())
        save_attacker(TrainedAttacker(config, seed, ubm, backend, trained_on, heard), path.parent)

    stage.bring_up_to_date(make)
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
        Folder of features and statistics, and workers.
    seed : int
    force : bool
        Train again where finished attackers are there.
    """

    configs: Sequence[AttackerConfig]
    folder: Path
    work: Workplace
    seed: int = 0
    force: bool = False
    _latest: tuple[Any, Workplace, Any] | None = field(default=None, repr=False)

    def attackers(self) -> list[ClassicAttacker]:
        """Return each of them as an attacker of its own."""
        return [ClassicAttacker(config, self) for config in self.configs]

    def memory_of(self, speech: Any) -> Workplace:
        """Return where to work, with what is in memory of this speech; of the latest alone, as frames may be large."""
        if self._latest is None or self._latest[0] != speech:
            self._latest = speech, Workplace(self.work.folder, self.work.jobs), {}
        return self._latest[1]

    def score(self, attacker: TrainedAttacker, attack: Attack) -> Scores:
        """Score with one of them; what it shares with the others is made once."""
        work = self.memory_of(attack.name)
        assert self._latest is not None
        checked = self._latest[2]
        if not checked:
            features = [config.features for config in self.configs]
            models, tested = check_trials(features, attack.enrolled, attack.tested, attack.trials, jobs=work.jobs)
            checked |= {"models": (attack.enrolled, models), "tested": (attack.tested, tested)}
        return score_checked(attacker, work, checked["models"], checked["tested"], attack.trials)


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

    def learn(self, attack: Attack) -> Scorer:
        """Train it."""
        classics, training = self.shared, attack.training
        work = classics.memory_of(training)
        folder = classics.folder / training[0].name / self.name
        attacker = train_attacker(training, self.config, folder, seed=classics.seed, work=work, force=classics.force)
        return partial(classics.score, attacker)
