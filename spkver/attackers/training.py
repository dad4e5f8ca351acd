"""Train attackers on a data directory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from spkbase.errors import ConfigError, DataError, Problems, WorkerError
from spkbase.files import file_digest, fingerprint, make_folder
from spkbase.runs import Depends, Draft, Run, Stage
from spkbase.work import Work
from spkver.attackers.attacker import TrainedAttacker, load_attacker, save_attacker
from spkver.attackers.backend import Backend
from spkver.attackers.config import AttackerConfig
from spkver.attackers.kept import Kept
from spkver.attackers.kind import Sessions
from spkver.attackers.learning import train_backend
from spkver.attackers.sessions import choose_utterances
from spkver.attackers.workplace import Workplace
from spkver.backend import speaker_digests
from spkver.datadir import DataDir
from spkver.features import check_recordings
from spkver.mixture import check_ubm

logger = logging.getLogger(__name__)

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

    def make(draft: Draft) -> None:
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
            kept = Kept(draft.folder, fingerprint(draft.fingerprint, ubm))
            sessions = Sessions(statistics, frames, len(recordings))
            workers = Work(work.jobs, work.device)
            backend = train_backend(config, ubm, sessions, seed=seed, workers=workers, kept=kept)
        heard = speaker_digests(speakers.values())
        save_attacker(TrainedAttacker(config, seed, ubm, backend, trained_on, heard), folder)

    make_folder(folder)
    mixture = None if config.ubm.file is None else file_digest(config.ubm.file)
    run = Run(folder, jobs=work.jobs, force=force, device=work.device)
    return run.stage(
        f"attacker {config.name}",
        "attacker.yaml",
        make=make,
        read=lambda path: load_attacker(path.parent),
        also=("attacker.h5",),
        depends=Depends(
            inputs=[config, sorted(speakers.items()), datadir.name, seed, mixture],
            after=[prepared.frames],
            libraries=("numpy", "scipy", "scikit-learn"),
            on_device=True,
        ),
    )


def _session_frames(config: AttackerConfig) -> float | None:
    """Length of the sessions in frames."""
    seconds = config.training.session_seconds
    return None if seconds is None else seconds / config.features.shift
