"""Files of backends: Kaldi's PLDA and matrices, VBx's transform, SIDEKIT's FactorAnalyser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spkver.backend.kaldi_plda import (
    KaldiPlda,
    VbxTransform,
    kaldi_plda_scores,
    plda_from_kaldi,
    read_kaldi_matrix,
    read_kaldi_plda,
    read_vbx_transform,
    write_kaldi_matrix,
    write_kaldi_plda,
    write_vbx_transform,
)
from spkver.backend.plda import Sessions, plda_from_sidekit
from spkver.sidekit.factor_analyser import FactorAnalyser, read_factor_analyser, write_factor_analyser
from tests.fuzz.containers import inside_hdf5
from tests.fuzz.mutation import damage
from tests.fuzz.parsers import Parser, written

_NUMBERS = np.random.default_rng(0).normal(size=(3, 3))
_WORDS = (
    b"<Plda> ",
    b"</Plda> ",
    b" [ 1 2 ]\n",
    b" [\n  1 0\n  0 1 ]\n",
    b"\0B",
    b"DV ",
    b"DM ",
    b"FV ",
    b"\4\2\0\0\0",
)


def _pldas(binary: bool) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        plda = KaldiPlda(_NUMBERS[0], _NUMBERS, np.array([2.0, 1, 0]))
        return [written(write_kaldi_plda, folder / "seed", plda, binary=binary)]

    return seeds


def _read_plda(path: Path) -> object:
    """What is read scores, or is refused."""
    plda = read_kaldi_plda(path)
    rows = np.arange(2 * plda.dimension, dtype=float).reshape(2, -1)
    zero = np.array([0])
    return plda_from_kaldi(plda), kaldi_plda_scores(plda, Sessions(rows, np.array([0, 0])), rows, zero, zero)


def _matrices(folder: Path) -> list[bytes]:
    return [
        written(write_kaldi_matrix, folder / "seed", array, binary=binary)
        for array in (_NUMBERS[0], _NUMBERS, _NUMBERS[:1])
        for binary in (True, False)
    ]


def _transforms(folder: Path) -> list[bytes]:
    return [written(write_vbx_transform, folder / "seed.h5", VbxTransform(_NUMBERS[0], _NUMBERS[:, :2], np.ones(2)))]


def _analysers(folder: Path) -> list[bytes]:
    parts: dict[str, Any] = {"mean": _NUMBERS[0], "loadings": _NUMBERS[:, :2], "residual": np.eye(3)}
    return [
        written(write_factor_analyser, folder / "seed.h5", FactorAnalyser(**parts)),
        written(write_factor_analyser, folder / "seed.h5", FactorAnalyser(**parts, channel=_NUMBERS[:, :1])),
    ]


PARSERS = [
    Parser("kaldi-plda", "plda", _pldas(True), _read_plda, words=_WORDS),
    Parser("kaldi-plda-text", "plda", _pldas(False), _read_plda, words=_WORDS),
    Parser("kaldi-matrix", "lda.mat", _matrices, read_kaldi_matrix, words=_WORDS),
    Parser("vbx-transform", "transform.h5", _transforms, read_vbx_transform, (damage, inside_hdf5, inside_hdf5)),
    Parser(
        "sidekit-factor-analyser",
        "input.h5",
        _analysers,
        lambda path: plda_from_sidekit(read_factor_analyser(path)),
        (damage, inside_hdf5, inside_hdf5),
    ),
]
