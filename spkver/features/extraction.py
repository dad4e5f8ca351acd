"""Features of a list of recordings: audio files in, one HDF5 store out.

Raw features (cepstra, log-energy, speech labels) are extracted, or imported from a folder of SIDEKIT's feature files,
one per recording; a store can be exported as such a folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems, errors_of
from spkbase.files import disk_errors, is_file, make_folder, temporary_name
from spkbase.hdf5 import new_file, write_strings
from spkbase.progress import verbosely
from spkbase.seeding import stream
from spkbase.work import ALL_CORES, Work, chunks, one_blas_thread
from spkver.audio import audio_header, read_audio
from spkver.features.cepstra import frame_energies, librosa_mfcc, mfcc
from spkver.features.config import FeatureConfig, own_function
from spkver.features.frames import (
    FeatureTable,
    OtherFeaturesError,
    post_process,
    read_feature_table,
)
from spkver.features.kaldi import kaldi_mfcc
from spkver.features.plp import plp
from spkver.features.vad import energy_vad, percentile_vad, read_labels, read_rttm, snr_vad
from spkver.sidekit import SidekitFeatures, read_feature_file, write_feature_file

# factor from samples in [-1, 1] to the unit of the detector `snr`, 16-bit steps / 4
_PEER_UNIT = 32768.0 / 4

_ENGINES = {"spkver": mfcc, "librosa": librosa_mfcc, "kaldi": kaldi_mfcc, "plp": plp}

Recording = str | Path | tuple[str | Path, int]
"""An audio file, or a file and its channel, from 0."""

_BATCH = 32  # number of recordings in a task
_BATCH_SAMPLES = 4_000_000  # the speech enhancer works on parts of a batch of about this size

_LOUDEST = 2.0  # floating-point recordings may exceed full scale, 1, to some extent


@dataclass(frozen=True)
class RecordingFeatures:
    """Raw features of one recording: cepstra (T, n_cepstra), log-energy (T,), speech labels (T,)."""

    cepstra: NDArray[Any]
    log_energy: NDArray[Any]
    speech: NDArray[np.bool_]


def recording_generator(name: str, seed: int) -> np.random.Generator:
    """Return the random generator of one recording, which depends only on the seed and the id."""
    return stream(seed, name, words=4, bits=np.random.SFC64)


def label_file(config: FeatureConfig, name: str) -> Path:
    """Label file of a recording, for the detector `labels`."""
    folder = Path(str(config.labels_dir))
    if folder.suffix == ".rttm":
        return folder
    own = folder / f"{name}.rttm"
    if own.is_file():
        return own
    return folder / f"{name}.lbl"


def speech_labels(config: FeatureConfig, name: str, n_frames: int) -> NDArray[np.bool_]:
    """Return the speech frames of a recording from its label file."""
    path = label_file(config, name)
    if path.suffix == ".rttm":
        return read_rttm(path, name, n_frames, shift_seconds=config.shift)
    return read_labels(path, n_frames, shift_seconds=config.shift)


def file_and_channel(recording: Recording, config: FeatureConfig) -> tuple[Path, int | None]:
    """Return the file of a recording and its channel, its own or the common one."""
    if isinstance(recording, tuple):
        path, channel = recording
        return Path(path), channel
    return Path(recording), config.channel


def features_of_signals(
    signals: list[NDArray[Any]],
    generators: list[np.random.Generator],
    config: FeatureConfig,
    *,
    names: list[str] | None = None,
) -> list[RecordingFeatures]:
    """Return raw features of signals in [-1, 1] at the configured rate.

    Parameters
    ----------
    signals : list of ndarray of shape (n,)
        Processed together for speed; the result of one does not depend on the others.
    generators : list of numpy.random.Generator
        One for each signal, for dither and the detector's masking noise.
    config : FeatureConfig
    names : list of str, optional
        Recording ids, for the detector `labels`.
    """
    # the same noise serves as dither and as the detector's masking noise, at different levels
    noises = [
        generator.standard_normal(len(signal), dtype=np.float32)
        for signal, generator in zip(signals, generators, strict=True)
    ]
    computed = []
    # for callers outside a worker too: with two threads, products differ in the last bits
    with one_blas_thread():
        for signal, noise in zip(signals, noises, strict=True):
            scaled = signal * signal.dtype.type(config.sample_scale)
            if config.dither:
                scaled += noise * np.float32(config.dither)
            if config.function is None:
                computed.append(_ENGINES[config.engine](scaled, config))
            else:
                energy = frame_energies(scaled, config)
                shape = len(energy), config.n_cepstra
                cepstra = _own_values(config.function, signal, config, shape, "fiu")
                computed.append((cepstra.astype(signal.dtype), energy))
    energies = [energy for _, energy in computed]
    if ":" in config.vad:
        pairs = zip(signals, energies, strict=True)
        speech = [
            _own_values(config.vad, signal, config, energy.shape, "b") for signal, energy in pairs
        ]
    elif config.vad == "snr":
        speech = snr_vad(
            [signal * signal.dtype.type(_PEER_UNIT) for signal in signals],
            noises,
            window=config.window_samples,
            shift=config.shift_samples,
            snr=config.vad_snr,
        )
    elif config.vad == "energy":
        speech = [energy_vad(energy, alpha=config.vad_alpha) for energy in energies]
    elif config.vad == "percentile":
        speech = [percentile_vad(energy, percentile=config.vad_percentile) for energy in energies]
    elif config.vad == "labels":
        ids = names or [""] * len(signals)
        speech = [
            speech_labels(config, name, len(energy))
            for energy, name in zip(energies, ids, strict=True)
        ]
    else:
        speech = [np.ones(len(energy), bool) for energy in energies]
    return [
        RecordingFeatures(cepstra, energy, is_speech)
        for (cepstra, energy), is_speech in zip(computed, speech, strict=True)
    ]


def _own_values(
    spec: str, signal: NDArray[Any], config: FeatureConfig, shape: tuple[int, ...], kinds: str
) -> NDArray[Any]:
    """Return the checked result of a user's function for samples; `kinds` are the letters of its allowed types."""
    values = np.asarray(own_function(spec)(signal, config.rate))
    if values.shape != shape or values.dtype.kind not in kinds or not np.isfinite(values).all():
        expected = "finite numbers"
        remedy = (
            "a row for each features.window every features.shift, and features.n_cepstra columns"
        )
        if kinds == "b":
            expected = "booleans"
            remedy = "a value for each features.window every features.shift"
        text = f"{spec} returned {values.dtype} of shape {values.shape}, expected {expected} of shape {shape}"
        raise DataError(text, remedy=remedy)
    return values


def compute(
    samples: NDArray[Any],
    rate: int,
    config: FeatureConfig | None = None,
    *,
    name: str = "",
    seed: int = 0,
) -> NDArray[Any]:
    """Return the frames of samples in memory: features, post-processing, selection of speech.

    Parameters
    ----------
    samples : array_like of shape (n,)
        Samples of one channel, with full scale 1.
    rate : int [Hz]
        Their sampling rate, which must be that of the configuration.
    config : FeatureConfig, optional
    name : str
        Id of the recording, which determines the dither together with the seed, and names the file for the detector
        `labels`.
    seed : int

    Returns
    -------
    ndarray of shape (T, config.dimension)
        The same values as from `extract_features` and `load_frames`.

    Raises
    ------
    DataError
        If the rate differs, there are too few samples, or these have several channels, are not finite or are far above
        full scale.

    Examples
    --------
    >>> samples = np.random.default_rng(0).normal(size=8000) / 10
    >>> compute(samples, 16000, FeatureConfig(sdc="7-1-3-7", n_cepstra=7, log_energy=False)).shape
    (48, 56)
    """
    config = config or FeatureConfig()
    signal = np.asarray(samples)
    if signal.ndim != 1 or signal.dtype.kind != "f" or not np.isfinite(signal).all():
        text = f"expected finite samples in [-1, 1] of shape (n,), got {signal.dtype} of shape {signal.shape}"
        raise DataError(text, remedy="give one channel; divide 16-bit samples by 32768")
    loudest = np.abs(signal).max(initial=0)
    if loudest > _LOUDEST:
        remedy = "divide 16-bit samples by 32768, others by their largest magnitude"
        raise DataError(f"the samples reach {loudest:g}, expected [-1, 1]", remedy=remedy)
    if rate != config.rate:
        text = f"the samples have {rate} Hz, the features {config.rate} Hz"
        raise DataError(text, remedy=f"FeatureConfig(rate={rate}), or resample them")
    _check_length(len(signal), config)
    generator = recording_generator(name, seed)
    signals = [signal.astype(config.dtype)]
    (raw,) = features_of_signals(signals, [generator], config, names=[name])
    frames, _ = post_process(raw.cepstra, raw.log_energy, raw.speech, config)
    return frames.astype(config.dtype, copy=False)


def sidekit_files(folder: str | Path, recordings: Iterable[str]) -> dict[str, Path]:
    """Return the file of each recording in a folder of SIDEKIT's features.

    Raises
    ------
    DataError
        With all files that are missing.
    """
    files = {name: Path(folder) / f"{name}.h5" for name in sorted(recordings)}
    problems = Problems()
    for name, path in files.items():
        if not is_file(path):
            problems.add(
                f"no features of recording {name!r}", file=path, remedy="check features.files"
            )
    problems.raise_if_any()
    return files


def import_sidekit(
    folder: str | Path, recordings: Iterable[str], config: FeatureConfig, path: str | Path
) -> None:
    """Collect SIDEKIT's feature files (any of their three forms) into one store.

    Parameters
    ----------
    folder : path
        Holds ``<recording id>.h5`` with cepstra, energy and vad, as SIDEKIT's tutorial saves them.
    recordings : iterable of str
    config : FeatureConfig
        The files must have its `n_cepstra` and `min_speech_frames`.
    path : path
        The store, see `spkver.features.extract_features`.

    Raises
    ------
    DataError
        With all files that are missing, broken, lack a dataset or do not fit the configuration.
    """
    problems = Problems()
    lengths = [0]
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in _kinds(config)}
    files = sidekit_files(folder, recordings)
    for name, file in files.items():
        with problems.noted(), errors_of(file):
            for part, values in _imported(file, name, config).items():
                columns[part].append(values)
            lengths.append(len(columns["energy"][-1]))
    problems.raise_if_any()
    with new_file(path) as store:
        write_strings(store, "ids", files)
        store.create_dataset("offsets", data=np.cumsum(lengths, dtype=np.int64))
        for name, dtype in _kinds(config).items():
            store.create_dataset(name, data=np.concatenate(columns[name]).astype(dtype))


def export_sidekit(table: FeatureTable | str | Path, folder: str | Path) -> int:
    """Write a store as SIDEKIT's feature files in their lossless form, ``<recording id>.h5``.

    Returns
    -------
    int
        Number of files.
    """
    if not isinstance(table, FeatureTable):
        table = read_feature_table(table)
    for row, name in enumerate(table.ids):
        cepstra, log_energy, speech = table.of(row)
        features = SidekitFeatures(cep=cepstra, energy=np.asarray(log_energy), vad=speech)
        target = Path(folder) / f"{name}.h5"
        if "\0" in name or Path(folder).resolve() not in target.resolve().parents:
            raise DataError(
                f"id {name!r} leads out of the folder", file=folder, remedy="rename the recording"
            )
        write_feature_file(target, {name: features})
    return len(table)


def check_recordings(
    recordings: Mapping[str, Recording],
    config: FeatureConfig,
    *,
    work: Work = ALL_CORES,
    problems: Problems | None = None,
) -> float:
    """Check the header of every file, and its speech labels if there are any, before any long step.

    Parameters
    ----------
    recordings : mapping
        Recording id to audio file, or to a file and its channel, from 0.
    config : FeatureConfig
    work : spkbase.work.Work
    problems : Problems, optional
        Collects the problems; by default they are raised.

    Returns
    -------
    float
        Total duration of the recordings, in seconds.

    Raises
    ------
    DataError
        With all problems of all files at once: missing, unreadable, wrong rate, several channels, too short.
    """
    items = chunks(sorted(recordings.items()), 256)
    sizes = [*map(len, items)]
    check = partial(_check_headers, config=config)
    seconds = 0.0
    noted = Problems()
    for duration, errors in work.map(check, items, description="checking audio", sizes=sizes):
        seconds += duration
        noted.errors += errors
    if problems is None:
        noted.raise_if_any()
    else:
        problems.errors += noted.errors
    return seconds


@verbosely
def extract_features(
    recordings: Mapping[str, Recording],
    config: FeatureConfig,
    destination: str | Path,
    *,
    seed: int = 0,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> FeatureTable:
    """Extract the raw features of all recordings into one HDF5 store, or collect SIDEKIT's of `config.files`.

    Parameters
    ----------
    recordings : mapping
        Recording id to audio file, or to a file and its channel, ``("call.sph", 1)``; not read if `config.files` is
        set.
    config : FeatureConfig
        Settings; with `files`, SIDEKIT's feature files in that folder are used, see `import_sidekit`.
    destination : path
        The store: `ids`, `offsets`, `cep` (N, n_cepstra), `energy` (N,), `speech` (N,); recordings sorted by id. It
        records the values of the extraction, which `load_frames` compares.
    seed : int
        Seed of the dither; each recording has its own generator, made from the seed and its id.
    work : spkbase.work.Work
        Worker processes; the store does not depend on them.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    FeatureTable

    Raises
    ------
    DataError
        With all recordings that have no usable features, if there are no recordings, or if `destination` is one of
        them; nothing is written then.
    """
    path = Path(destination)
    if config.files is not None:
        import_sidekit(config.files, recordings, config, path)
        return read_feature_table(path)
    if not recordings:
        raise DataError("expected recordings, got none")
    audio = [file_and_channel(entry, config)[0].resolve() for entry in recordings.values()]
    if path.exists() and path.resolve() in audio:
        raise DataError(
            "is one of the recordings", file=path, remedy="name another file for the features"
        )
    names = sorted(recordings)
    items = chunks([(name, recordings[name]) for name in names], _BATCH)
    sizes = [*map(len, items)]
    extract = partial(extract_batch, config=config, seed=seed)
    problems = Problems()
    lengths = [0]
    kinds = _kinds(config)
    # the number of frames is known only at the end: until then, each column is kept in its own file
    collected = temporary_name(path)
    make_folder(collected)
    try:
        with disk_errors(path), ExitStack() as stack:
            files = {name: stack.enter_context((collected / name).open("wb")) for name in kinds}
            for batch, errors in work.map(
                extract, items, processes=True, description="features", sizes=sizes
            ):
                problems.errors += errors
                for recording in batch:
                    lengths.append(len(recording.log_energy))
                    arrays = recording.cepstra, recording.log_energy, recording.speech
                    for name, array in zip(kinds, arrays, strict=True):
                        files[name].write(np.ascontiguousarray(array, kinds[name]).data)
        problems.raise_if_any()
        record = {"extraction": json.dumps(config.extraction_record())}
        with new_file(path, attributes=record) as store:
            write_strings(store, "ids", names)
            store.create_dataset("offsets", data=np.cumsum(lengths, dtype=np.int64))
            for name, dtype in kinds.items():
                values: NDArray[Any] = np.memmap(collected / name, dtype, "r")
                if name == "cep":
                    values = values.reshape(-1, config.n_cepstra)
                store.create_dataset(name, data=values)
    finally:
        shutil.rmtree(collected, ignore_errors=True)
    return read_feature_table(path)


def extract_batch(
    items: Sequence[tuple[str, Recording]], config: FeatureConfig, seed: int
) -> tuple[list[RecordingFeatures], list[DataError]]:
    """Read the audio files of some recordings and compute their features; return these, and the errors."""
    problems = Problems()
    usable = []
    parts: list[list[tuple[str, Path, NDArray[Any]]]] = []
    size = _BATCH_SAMPLES
    for name, recording in items:
        path, channel = file_and_channel(recording, config)
        with problems.noted(), errors_of(path):
            samples, _ = read_audio(
                path,
                rate=config.rate,
                channel=channel,
                resample=config.resample,
                dtype=config.dtype,
            )
            _check_length(len(samples), config)
            if size + len(samples) > _BATCH_SAMPLES:  # long recordings are processed alone
                parts.append([])
                size = 0
            parts[-1].append((name, path, samples))
            size += len(samples)
    for part in parts:
        names = [name for name, _, _ in part]
        signals = [samples for _, _, samples in part]
        generators = [recording_generator(name, seed) for name in names]
        extracted = features_of_signals(signals, generators, config, names=names)
        for (_, path, samples), features in zip(part, extracted, strict=True):
            with problems.noted(), errors_of(path):
                if not samples.any():
                    raise DataError(
                        "digital silence: every sample is 0",
                        remedy="remove the recording from the lists",
                    )
                n_speech = int(features.speech.sum())
                if n_speech < config.min_speech_frames:
                    text = f"no speech: {n_speech} of {len(features.speech)} frames pass the detector {config.vad!r}, "
                    text += f"at least {config.min_speech_frames} are needed"
                    raise DataError(
                        text, remedy="remove the recording from the lists or change features.vad"
                    )
                usable.append(features)
    return usable, problems.errors


def _imported(file: Path, name: str, config: FeatureConfig) -> dict[str, NDArray[Any]]:
    """Return the columns of a store for one recording in SIDEKIT's files."""
    features = read_feature_file(file, name)[name]
    parts: dict[str, Any] = {"cep": features.cep, "energy": features.energy, "vad": features.vad}
    missing = [part for part, values in parts.items() if values is None]
    if missing:
        text = f"lacks {', '.join(missing)}"
        raise DataError(text, remedy="save cep, energy and vad of every recording")
    n_cepstra = parts["cep"].shape[1]
    if n_cepstra != config.n_cepstra:
        text = f"{n_cepstra} cepstra, expected {config.n_cepstra}"
        raise OtherFeaturesError(text, remedy=f"set features.n_cepstra={n_cepstra}")
    n_speech = int(parts["vad"].sum())
    if n_speech < config.min_speech_frames:
        text = f"{n_speech} frames of speech, at least {config.min_speech_frames} are needed"
        raise DataError(text)
    parts["speech"] = parts.pop("vad")
    return parts


def _kinds(config: FeatureConfig) -> dict[str, np.dtype]:
    """Return the columns of a store and their types."""
    return {
        "cep": np.dtype(config.dtype),
        "energy": np.dtype(config.dtype),
        "speech": np.dtype(bool),
    }


def _check_headers(
    items: list[tuple[str, Recording]], config: FeatureConfig
) -> tuple[float, list[DataError]]:
    """Return the total duration of some recordings, and their errors."""
    seconds = 0.0
    problems = Problems()
    for name, recording in items:
        path, channel = file_and_channel(recording, config)
        with problems.noted(), errors_of(path):
            if config.vad == "labels":
                speech_labels(config, name, 0)
            header = audio_header(path)
            rate = header.rate
            if rate != config.rate and not config.resample:
                remedy = (
                    f"set features.resample=true, or features.rate={rate} with a fitting preset"
                )
                raise OtherFeaturesError(
                    f"sampling rate is {rate} Hz, expected {config.rate} Hz", remedy=remedy
                )
            if header.channels > 1 and channel is None:
                remedy = f"set features.channel to 0 ... {header.channels - 1}"
                raise OtherFeaturesError(f"{header.channels} channels, expected one", remedy=remedy)
            if channel is not None and not 0 <= channel < header.channels:
                text = f"no channel {channel}: the file has {header.channels}"
                raise DataError(text, remedy="channels are counted from 0")
            n_samples = round(header.n_samples * config.rate / rate)
            _check_length(n_samples, config)
            seconds += header.n_samples / rate
    return seconds, problems.errors


def _check_length(n_samples: int, config: FeatureConfig) -> None:
    if n_samples < config.min_samples:
        text = f"{n_samples} samples are too short: {config.min_speech_frames} frames need {config.min_samples}"
        raise DataError(text, remedy="remove the recording from the lists")
