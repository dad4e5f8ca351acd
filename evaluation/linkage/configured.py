"""Configurations of Speaker-Linkability: which embeddings are linked."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from spkbase.configuration import read_yaml
from spkbase.errors import ConfigError

_FILES = ("enroll_path", "trial_path")
_NAMES = ("model_type", "model-type", "data_type", "matrix_path")


class LinkabilityConfig(NamedTuple):
    """The settings of a configuration.

    Attributes
    ----------
    enroll, test : Path
        Embeddings of the enrolled and of the tested utterances.
    seed : int or None
        Seed of the utterances that are drawn.
    """

    enroll: Path
    test: Path
    seed: int | None


def read_linkability_config(path: str | Path) -> LinkabilityConfig:
    """Read the keys ``enroll_path``, ``trial_path``, ``seed``, ``model_type`` and ``data_type``.

    The last two name folders of results in Speaker-Linkability and are not needed here; neither is ``matrix_path``.
    Paths that do not exist relative to the current folder are relative to the configuration's.

    Raises
    ------
    ConfigError
        If a key is unknown, a path is missing, or the seed is not a whole number.
    """
    path = Path(path)
    values = read_yaml(path)
    unknown = sorted(set(map(str, values)) - {*_FILES, *_NAMES, "seed"})
    if unknown:
        expected = ", ".join((*_FILES, "seed", *_NAMES))
        raise ConfigError(f"unknown key {unknown[0]!r}: expected {expected}", file=path)
    files = []
    for key in _FILES:
        if not isinstance(values.get(key), str):
            raise ConfigError(f"expected a path as {key}, got {values.get(key)!r}", file=path)
        file = Path(values[key])
        if not file.exists():
            file = path.parent / file
        files.append(file)
    seed = values.get("seed")
    if seed is not None and (not isinstance(seed, int) or seed < 0):
        raise ConfigError(f"expected a whole number as seed, got {seed!r}", file=path)
    return LinkabilityConfig(files[0], files[1], seed)
