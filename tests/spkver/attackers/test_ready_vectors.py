"""Which file or folder an attacker `vectors:FOLDER` takes for a data directory, in the forms that others write."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spkver.attackers.ready import ReadyVectors

TENSOR = Path(__file__).resolve().parents[2] / "data" / "torch_files" / "matrix.pt"
ROWS = (np.arange(24, dtype=np.float32) / 8).reshape(4, 6)
DIRECTORY: Any = SimpleNamespace(path=Path("data/test_enrolls"))
ATTACK: Any = SimpleNamespace(name="asv_anon_x/test_enrolls-test_trials")


def cache(folder: Path) -> None:
    (folder / "utt-level").mkdir(parents=True)
    (folder / "utt-level" / "speaker_vectors.pt").write_bytes(TENSOR.read_bytes())
    (folder / "utt-level" / "id2idx").write_text("a 0\nb 1\nc 2\nd 3\n")
    (folder / "utt-level" / "idx2spk").write_text("0 s\n1 s\n2 t\n3 t\n")


def kaldi(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, row in zip("abcd", ROWS, strict=True):
        (folder / f"{name}.ark").write_bytes(name.encode() + b" \0BFV \4" + struct.pack("<i", 6) + row.tobytes())


def table(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{name},{','.join(map(str, row.tolist()))}\n" for name, row in zip("abcd", ROWS, strict=True)]
    folder.with_suffix(".csv").write_text("".join(lines))


@pytest.mark.parametrize("below", [".", "asv_anon_x"])
@pytest.mark.parametrize("write", [cache, kaldi, table])
def test_folders_and_tables_of_others(tmp_path: Path, write: Any, below: str) -> None:
    write(tmp_path / below / "test_enrolls")
    vectors = ReadyVectors("mine", tmp_path)
    assert vectors.file(ATTACK, DIRECTORY) is not None
    found = vectors._embeddings(ATTACK, DIRECTORY)
    assert (found.ids.tolist(), found.vectors.tolist()) == (list("abcd"), ROWS.tolist())


@pytest.mark.parametrize("below", ["asv_anon_x/emb_xvect", "emb_xvect", "asv_orig/emb_xvect"])
def test_what_the_toolkits_of_voiceprivacy_keep_is_taken_as_it_lies(tmp_path: Path, below: str) -> None:
    """Below ``exp``; an attacker that learnt from anonymised speech has its own vectors, else those of ASV_eval."""
    cache(tmp_path / below / "test_enrolls")
    vectors = ReadyVectors("mine", tmp_path)
    found = vectors._embeddings(ATTACK, DIRECTORY)
    assert (found.ids.tolist(), found.speakers.tolist()) == (list("abcd"), ["s", "s", "t", "t"])
    if below.startswith("asv_orig"):
        cache(tmp_path / "asv_anon_x/emb_xvect/test_enrolls")
        assert vectors.file(ATTACK, DIRECTORY) == tmp_path / "asv_anon_x/emb_xvect/test_enrolls"


def test_a_data_directory_is_no_folder_of_vectors(tmp_path: Path) -> None:
    """Nor is a pickle taken for one: an attacker's vectors are read without being asked."""
    folder = tmp_path / "test_enrolls"
    folder.mkdir()
    for name in ("wav.scp", "utt2spk", "segments"):
        (folder / name).write_text("a x\n")
    (tmp_path / "test_enrolls.pkl").write_bytes(pickle.dumps({"a": ROWS[0]}))
    assert ReadyVectors("mine", tmp_path).file(ATTACK, DIRECTORY) is None
