"""Features of a list of recordings: audio files in, one HDF5 store out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems
from spkbase.files import fingerprint as digest_of
from spkbase.files import new_file, write_strings
from spkbase.runs import SUFFIX, Journal, resumed_map, working_folder
from spkbase.work import chunks, ordered_map
from spkver.audio import audio_header, read_audio
from spkver.features.compute import RecordingFeatures, features_of_signals, label_file, recording_generator
from spkver.features.config import FeatureConfig
from spkver.features.frames import FeatureTable, read_feature_table
from spkver.features.vad import read_labels

_BATCH = 32  # recordings in one task
_LOUDEST = 65536.0  # samples that were never divided by full scale still pass; their squares fit float32
_BATCH_SAMPLES = 4_000_000  # the speech enhancer works on parts of a batch of about this size


def check_recordings(
    recordings: Mapping[str, Path],
    config: FeatureConfig,
    *,
    jobs: int | None = None,
    problems: Problems | None = None,
) -> float:
    """Check the header of every file, and its speech labels if there are any, before any long step.

    Parameters
    ----------
    recordings : mapping
        Recording id to audio file.
    config : FeatureConfig
    jobs : int, optional
    problems : Problems, optional
        Takes what is wrong; without it, it is raised.

    Returns
    -------
    float [s]
        Duration of all recordings together.

    Raises
    ------
    DataError
        With all problems of all files at once: missing, unreadable, wrong rate, several channels, too short.
    """
    items = chunks(sorted(recordings.items()), 256)
    found, seconds = Problems() if problems is None else problems, 0.0
    work = partial(_check_headers, config=config)
    for duration, errors in ordered_map(work, items, jobs=jobs, threads=True, description="checking audio"):
        seconds += duration
        for error in errors:
            found.note(error)
    if problems is None:
        found.raise_if_any()
    return seconds


def _check_headers(items: list[tuple[str, Path]], config: FeatureConfig) -> tuple[float, list[DataError]]:
    seconds, errors = 0.0, []
    for name, path in items:
        try:
            if config.vad == "labels":
                read_labels(label_file(config, name), 0, shift_seconds=config.shift)
            header = audio_header(path)
            _check_header(path, header.rate, header.channels, header.n_samples, config)
            seconds += header.n_samples / header.rate
        except DataError as error:
            errors.append(error)
    return seconds, errors


def _check_header(path: Path, rate: int, channels: int, n_samples: int, config: FeatureConfig) -> None:
    if rate != config.rate and not config.resample:
        raise DataError(
            f"sampling rate is {rate} Hz, expected {config.rate} Hz",
            file=path,
            remedy=f"set features.resample=true, or features.rate={rate} with a fitting preset",
        )
    if channels > 1 and config.channel is None:
        raise DataError(
            f"{channels} channels, expected one", file=path, remedy=f"set features.channel to 0 ... {channels - 1}"
        )
    if config.channel is not None and not 0 <= config.channel < channels:
        raise DataError(f"no channel {config.channel}: the file has {channels}", file=path, remedy="counted from 0")
    n_samples = round(n_samples * config.rate / rate)
    if n_samples < config.min_samples:
        raise _too_short(path, n_samples, config)


def _too_short(path: str | Path, n_samples: int, config: FeatureConfig) -> DataError:
    return DataError(
        f"{n_samples} samples are too short: {config.min_speech_frames} frames need {config.min_samples}",
        file=path,
        remedy="remove the recording from the lists",
    )


def extract_features(
    recordings: Mapping[str, Path],
    config: FeatureConfig,
    path: str | Path,
    *,
    seed: int = 0,
    jobs: int | None = None,
    attributes: Mapping[str, object] | None = None,
    folder: str | Path | None = None,
    fingerprint: str = "",
) -> FeatureTable:
    """Extract the raw features of all recordings into one HDF5 store.

    Parameters
    ----------
    recordings : mapping
        Recording id to audio file.
    config : FeatureConfig
    path : path
        The store: `ids`, `offsets`, `cep` (N, n_cepstra), `energy` (N,), `speech` (N,); recordings sorted by id.
    seed : int
        Of the dither; each recording has its own generator, made from the seed and its id.
    jobs : int, optional
        Worker processes; the store does not depend on it.
    attributes : mapping, optional
        Kept at the root of the store.
    folder : path, optional
        Keeps the features of finished batches if the process is killed; called again with it, only the other batches
        are worked out.
    fingerprint : str
        Of the contents of the audio files, which are not looked at to find out whether batches in the folder are of
        the same recordings.

    Returns
    -------
    FeatureTable

    Raises
    ------
    DataError
        With all recordings that have no usable features; nothing is written then.
    """
    names = sorted(recordings)
    items = chunks([(name, recordings[name]) for name in names], _BATCH)
    whole = digest_of(fingerprint, recordings, config.extraction(), seed)
    problems = Problems()
    with working_folder(path, folder) as working:
        # lengths are known at the end only: all goes to the journal, then into datasets of the right size
        journal = working / f"{Path(path).name}{SUFFIX}"
        batches = resumed_map(
            partial(_extract_batch, config=config, seed=seed), items, journal=journal, fingerprint=whole,
            pack=_pack, unpack=_Batch.unpack, jobs=jobs, description="features",
        )  # fmt: skip
        lengths = [0]
        for batch in batches:
            for error in batch.errors:
                problems.note(error)
            lengths += batch.arrays.get("lengths", np.empty(0, np.int64)).tolist()
        problems.raise_if_any()
        with Journal(journal, whole, total=len(items)) as finished:
            _assemble(finished, names, np.cumsum(lengths, dtype=np.int64), config, path, attributes)
    return read_feature_table(path)


def _assemble(
    batches: Journal,
    names: list[str],
    offsets: NDArray[np.int64],
    config: FeatureConfig,
    path: str | Path,
    attributes: Mapping[str, object] | None,
) -> None:
    """Write the batches of a journal as one store."""
    n_frames = int(offsets[-1])
    lengths = np.concatenate(
        [np.empty(0, np.int64), *(batches.read(number)[0]["lengths"] for number in range(len(batches)))]
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    with new_file(path, attributes=attributes) as file:
        write_strings(file, "ids", names)
        file.create_dataset("offsets", data=offsets)
        for name, dtype in (("energy", config.dtype), ("speech", bool)):
            file.create_dataset(name, (n_frames,), dtype)
        file.create_dataset("cep", (n_frames, config.n_cepstra), config.dtype)
        start = 0
        for number in range(len(batches)):
            batch = batches.read(number)[0]
            stop = start + int(batch["lengths"].sum())
            for name in ("energy", "speech", "cep"):
                file[name][start:stop] = batch[name]
            start = stop


@dataclass(frozen=True)
class _Batch:
    """Features of some recordings, one after the other, and what is wrong with the others."""

    arrays: dict[str, NDArray]
    errors: list[DataError] = field(default_factory=list)

    @classmethod
    def unpack(cls, arrays: dict[str, NDArray], note: object) -> _Batch:
        return cls(arrays)


def _pack(batch: _Batch) -> tuple[dict[str, NDArray], None] | None:
    """What is wrong is looked at again the next time: it may have been mended."""
    return None if batch.errors else (batch.arrays, None)


def _extract_batch(items: list[tuple[str, Path]], config: FeatureConfig, seed: int) -> _Batch:
    signals: list[tuple[str, Path, NDArray]] = []
    errors: list[DataError] = []
    for name, path in items:
        try:
            signals.append((name, path, _read_signal(path, config)))
        except DataError as error:
            errors.append(error)
    features: list[RecordingFeatures] = []
    for part in _parts(signals):
        generators = [recording_generator(name, seed) for name, _, _ in part]
        extracted = features_of_signals(
            [samples for _, _, samples in part], generators, config, names=[name for name, _, _ in part]
        )
        for (_, path, samples), one in zip(part, extracted, strict=True):
            try:
                _check_speech(path, samples, one, config)
                features.append(one)
            except DataError as error:
                errors.append(error)
    if errors:
        return _Batch({}, errors)
    arrays = {
        "cep": np.concatenate([one.cepstra for one in features]),
        "energy": np.concatenate([one.log_energy for one in features]),
        "speech": np.concatenate([one.speech for one in features]),
        "lengths": np.array([len(one.log_energy) for one in features], np.int64),
    }
    return _Batch(arrays)


def _read_signal(path: Path, config: FeatureConfig) -> NDArray:
    samples, _ = read_audio(
        path, rate=config.rate, channel=config.channel, resample=config.resample, dtype=config.dtype
    )
    if len(samples) < config.min_samples:
        raise _too_short(path, len(samples), config)
    peak = float(np.abs(samples).max())
    if peak > _LOUDEST:
        raise DataError(
            f"samples of up to {peak:.3g} times full scale: no speech is that loud",
            file=path,
            remedy="write the file again from its source",
        )
    return samples


def _parts(signals: list[tuple[str, Path, NDArray]]) -> Iterator[list[tuple[str, Path, NDArray]]]:
    """Cut a batch so that long recordings are worked on alone."""
    part: list[tuple[str, Path, NDArray]] = []
    total = 0
    for signal in signals:
        if part and total + len(signal[2]) > _BATCH_SAMPLES:
            yield part
            part, total = [], 0
        part.append(signal)
        total += len(signal[2])
    if part:
        yield part


def _check_speech(path: Path, samples: NDArray, features: RecordingFeatures, config: FeatureConfig) -> None:
    if not samples.any():
        raise DataError("digital silence: every sample is 0", file=path, remedy="remove the recording from the lists")
    n_speech = int(features.speech.sum())
    if n_speech < config.min_speech_frames:
        raise DataError(
            f"no speech: {n_speech} of {len(features.speech)} frames pass the detector {config.vad!r}, at least "
            f"{config.min_speech_frames} are needed",
            file=path,
            remedy="remove the recording from the lists or change features.vad",
        )
