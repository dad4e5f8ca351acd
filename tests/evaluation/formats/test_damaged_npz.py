"""A damaged npz gives what it holds or one error, wherever the damage is: headers, packed data, the directory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.embeddings.files import read_embeddings
from evaluation.formats.reading import read_scores, write_scores
from evaluation.linkage.ranks import Ranks, read_ranks, write_ranks
from evaluation.trials.lists import Scores
from spkbase.errors import DataError

READERS: dict[str, Callable[[Path], Any]] = {
    "ranks": read_ranks,
    "embeddings": read_embeddings,
    "scores": read_scores,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A good file of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    names = np.array([f"s{number}" for number in range(12)])
    write_ranks(folder / "ranks.npz", {1: Ranks(np.arange(12), 0, 40), 3: Ranks([2], 1, 9)})
    vectors = np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32)
    np.savez_compressed(folder / "embeddings.npz", ids=names, speakers=names, vectors=vectors)
    write_scores(folder / "scores.npz", Scores.from_ids(names, names[::-1], np.arange(12.0)))
    return {name: (folder / f"{name}.npz").read_bytes() for name in READERS}


@pytest.mark.parametrize("name", READERS)
def test_whole_files_are_read(whole, tmp_path, name):
    path = tmp_path / "whole.npz"
    path.write_bytes(whole[name])
    assert len(READERS[name](path)) == {"ranks": 2, "embeddings": 12, "scores": 12}[name]


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=300)
@given(place=st.integers(0, 1 << 16), byte=st.integers(0, 255), kept=st.none() | st.integers(0, 1 << 16))
def test_damage_gives_one_error_or_is_harmless(whole, tmp_path_factory, name, place, byte, kept):
    content = bytearray(whole[name])
    content[place % len(content)] = byte
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}.npz"
    path.write_bytes(content if kept is None else content[: kept % len(content)])
    with contextlib.suppress(DataError):  # any other error fails the test
        READERS[name](path)
