"""Operations on data directories for attackers: merging training sets, choosing recordings, matching trials."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.trials import Scores, Trials
from spkbase.errors import Problems, few
from spkver.datadir import DataDir, enrolment, with_versions
from spkver.features import recording_generator
from spkver.idmap import IdMap


def as_scores(trials: Trials, values: NDArray[np.floating]) -> Scores:
    """Return values, one per trial in their order, as the scores of trials."""
    return Scores(
        trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values
    )


def as_embeddings(
    directory: DataDir, vectors: Sequence[NDArray[np.floating]] | NDArray[np.floating]
) -> Embeddings:
    """Return the vectors of a data directory, sorted by utterance, as embeddings."""
    names = sorted(directory.speakers)
    speakers = np.array([directory.speakers[name] for name in names], object)
    return Embeddings(
        np.array(names, object), speakers, np.stack(list(vectors)), source=str(directory.path)
    )


def select(directory: DataDir, utterances: Collection[str]) -> DataDir:
    """Return a data directory with some of its utterances, without its trials; the same object if all are selected."""
    if directory.recordings.keys() <= set(utterances):
        return directory
    recordings = {name: path for name, path in directory.recordings.items() if name in utterances}
    speakers = {name: speaker for name, speaker in directory.speakers.items() if name in utterances}
    enrolls = directory.enrolls
    if enrolls is not None:
        enrolls = tuple(name for name in enrolls if name in utterances)
    return replace(
        directory, recordings=recordings, speakers=speakers, enrolls=enrolls, trials=None
    )


@lru_cache(maxsize=64)
def _merged(datadirs: tuple[DataDir, ...]) -> DataDir:
    recordings = {}
    speakers = {}
    for number, version in enumerate(datadirs, 1):
        for utterance, path in version.recordings.items():
            # the number comes first, so that versions are separate when ids are sorted
            recordings[f"{number} {utterance}"] = path
            speakers[f"{number} {utterance}"] = version.speakers[utterance]
    path = datadirs[0].path
    return DataDir(
        path.with_name(f"{path.resolve().name}-and-{len(datadirs) - 1}"), recordings, speakers
    )


def merge_versions(datadirs: DataDir | Sequence[DataDir]) -> DataDir:
    """Merge several training sets, such as versions of the same speech with different draws of an anonymiser.

    Speakers of the same id are the same; utterances of the same id are different versions and get different ids. A
    single set is returned unchanged.
    """
    if isinstance(datadirs, DataDir):
        return datadirs
    if len(datadirs) == 1:
        return datadirs[0]
    return _merged(tuple(datadirs))


def recordings_of(directories: Sequence[DataDir]) -> dict[str, Path]:
    """Return the recordings of several data directories, sorted by utterance, as sources of a stage."""
    recordings = {}
    for number, directory in enumerate(directories):
        for name, path in sorted(directory.recordings.items()):
            recordings[f"{number} {name}"] = Path(path)
    return recordings


def choose_utterances(speakers: Mapping[str, str], *, limit: int | None, seed: int) -> list[str]:
    """Choose at most `limit` utterances, spread evenly over the speakers.

    Parameters
    ----------
    speakers : mapping
        Utterance to speaker.
    limit : int or None
        None takes all.
    seed : int
        Seed of the order of a speaker's utterances; each speaker has a separate generator.

    Returns
    -------
    list of str
        Sorted; independent of the order of the mapping.
    """
    if limit is None or limit >= len(speakers):
        return sorted(speakers)
    by_speaker: dict[str, list[str]] = {}
    for utterance in sorted(speakers):
        by_speaker.setdefault(speakers[utterance], []).append(utterance)
    queue = []
    for speaker, utterances in by_speaker.items():
        generator = recording_generator(speaker, seed)
        order = generator.permutation(len(utterances))
        for turn, number in enumerate(order):
            # the draw also decides which speakers get fewer if not all can have the same number
            queue.append((turn, generator.random(), utterances[number]))
    return sorted(utterance for _, _, utterance in sorted(queue)[:limit])


def match_trials(
    enrol_dir: DataDir, trial_dir: DataDir, trials: Trials
) -> tuple[IdMap, dict[str, Path]]:
    """Find the enrolment utterances of the models of trials, and the recordings of the segments.

    A model is a speaker of the enrolment, or one of its utterances; a segment is a tested utterance.

    Raises
    ------
    DataError
        If models or segments are missing (all are named), or if the list holds no trial.
    """
    problems = Problems()
    if not len(trials):
        problems.add(
            "the list holds no trials", file=trial_dir.path, remedy="give a list of trials"
        )
    speakers = sessions_of(enrolment(enrol_dir))
    models = sorted(set(trials.model_ids[trials.models]))
    segments = sorted(set(trials.segment_ids[trials.segments]))
    enrolled: dict[str, list[str]] = {}
    for model in models:
        if model in speakers:
            enrolled[model] = sorted(speakers[model])
        elif model in enrol_dir.recordings:
            versions = [name for name, first in enrol_dir.version_of.items() if first == model]
            enrolled[model] = [model, *versions]
    for kind, names, known, directory in (
        (
            "models of the trials are neither enrolled speakers nor utterances",
            models,
            enrolled,
            enrol_dir,
        ),
        ("segments of the trials are not there", segments, trial_dir.recordings, trial_dir),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            text = f"{len(unknown)} of {len(names)} {kind}: {few(unknown, repr)}"
            problems.add(
                text,
                file=directory.path,
                remedy="check that the trials belong to this data directory",
            )
    problems.raise_if_any()
    pairs: list[tuple[str, str]] = []
    for model, names in enrolled.items():
        pairs += zip(repeat(model), names, strict=False)
    return IdMap.from_pairs(pairs), {name: Path(trial_dir.recordings[name]) for name in segments}


def limited(training: Sequence[DataDir], limit: int | None, *, seed: int) -> tuple[DataDir, ...]:
    """Return versions of a training set with at most `limit` recordings in all, spread evenly over the speakers.

    Each version keeps the same utterances, at least two of a speaker who has two; a small set is returned unchanged.
    """
    if limit is None or sum(map(len, training)) <= limit:
        return tuple(training)
    speakers = training[0].speakers
    most = max(limit // len(training), 2 * len(set(speakers.values())))
    chosen = set(choose_utterances(speakers, limit=most, seed=seed))
    return tuple(select(version, chosen) for version in training)


def sessions_of(models: IdMap) -> dict[str, list[str]]:
    """Return the utterances that each model is enrolled with."""
    utterances: dict[str, list[str]] = {}
    for model, utterance in zip(models.models, models.segments, strict=True):
        utterances.setdefault(model, []).append(utterance)
    return utterances


def enrolled_recordings(enrolment: DataDir, models: IdMap) -> dict[tuple[str, str], list[str]]:
    """Return the utterances of each model and recording, which are all versions of the recording."""
    sessions: dict[tuple[str, str], list[str]] = {}
    for model, name in zip(models.models, models.segments, strict=True):
        recording = enrolment.version_of.get(name, name)
        sessions.setdefault((model, recording), []).append(name)
    return sessions


def enrolled_versions(models: IdMap) -> dict[tuple[str, str], list[str]]:
    """Return the utterances of each model, each version of a recording separately."""
    return {
        (model, name): [name] for model, name in zip(models.models, models.segments, strict=True)
    }


@lru_cache(maxsize=64)
def enrolled_speech(enrolment: tuple[DataDir, ...]) -> DataDir:
    """Merge all anonymised versions of an enrolment (cached); see `with_versions`."""
    return with_versions(enrolment[0], enrolment[1:])
