"""Raw features of signals in memory: cepstra, log-energy and speech labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.seeding import stream
from spkbase.work import one_blas_thread
from spkver.features.cepstra import mfcc
from spkver.features.config import FeatureConfig
from spkver.features.librosa_mfcc import librosa_mfcc
from spkver.features.vad import energy_vad, percentile_vad, read_labels, snr_vad

_PEER_UNIT = 32768.0 / 4  # samples in [-1, 1] to the unit of the detector `snr`, 16-bit steps / 4


@dataclass(frozen=True)
class RecordingFeatures:
    """Raw features of one recording: cepstra (T, n_cepstra), log-energy (T,), speech labels (T,)."""

    cepstra: NDArray
    log_energy: NDArray
    speech: NDArray[np.bool_]


def recording_generator(name: str, seed: int) -> np.random.Generator:
    """Return the random generator of one recording: it depends on the seed and the id alone, not on order or worker."""
    return stream(seed, name, words=4, bits=np.random.SFC64)


def label_file(config: FeatureConfig, name: str) -> Path:
    """Label file of a recording, for the detector `labels`."""
    return Path(str(config.labels_dir)) / f"{name}.lbl"


def features_of_signals(
    signals: list[NDArray],
    generators: list[np.random.Generator],
    config: FeatureConfig,
    *,
    names: list[str] | None = None,
) -> list[RecordingFeatures]:
    """Return raw features of signals in [-1, 1] at the configured rate.

    Parameters
    ----------
    signals : list of ndarray of shape (n,)
        Worked on together for speed; the result of one does not depend on the others.
    generators : list of numpy.random.Generator
        One for each signal, for dither and the detector's masking noise.
    config : FeatureConfig
    names : list of str, optional
        Recording ids, for the detector `labels`.
    """
    compute = librosa_mfcc if config.engine == "librosa" else mfcc
    settings = config.mfcc_settings()
    # one draw serves as dither and as the detector's masking noise, each at its own level
    noises = [
        generator.standard_normal(len(signal), dtype=np.float32)
        for signal, generator in zip(signals, generators, strict=True)
    ]
    computed = []
    with one_blas_thread():  # also for who calls this outside a worker: with two threads products have other bits
        for signal, noise in zip(signals, noises, strict=True):
            scaled = signal * signal.dtype.type(config.sample_scale)
            if config.dither:
                scaled += noise * np.float32(config.dither)
            computed.append(compute(scaled, settings))
    if config.vad == "snr":
        speech = snr_vad(
            [signal * signal.dtype.type(_PEER_UNIT) for signal in signals],
            noises,
            window=config.window_samples,
            shift=config.shift_samples,
            snr=config.vad_snr,
        )
    else:
        ids = names or [""] * len(signals)
        speech = [_simple_vad(energy, name, config) for (_, energy), name in zip(computed, ids, strict=True)]
    return [
        RecordingFeatures(cepstra, energy, is_speech)
        for (cepstra, energy), is_speech in zip(computed, speech, strict=True)
    ]


def _simple_vad(log_energy: NDArray, name: str, config: FeatureConfig) -> NDArray[np.bool_]:
    if config.vad == "energy":
        return energy_vad(log_energy, alpha=config.vad_alpha)
    if config.vad == "percentile":
        return percentile_vad(log_energy, percentile=config.vad_percentile)
    if config.vad == "labels":
        return read_labels(label_file(config, name), len(log_energy), shift_seconds=config.shift)
    return np.ones(len(log_energy), bool)
