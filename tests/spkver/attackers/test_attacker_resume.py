"""Trainings that are stopped go on where they were, and the attacker is the same to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from interruptions import counted
from test_attacker_runs import three, write_set

from spkver.attackers import kinds, training
from spkver.attackers.protocol import Kept
from spkver.attackers.training import train_attacker
from spkver.attackers.workplace import Workplace
from spkver.datadir.directory import DataDir
from spkver.datadir.reading import read_datadir


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataDir:
    return read_datadir(write_set(tmp_path_factory.mktemp("sets") / "train", range(8), range(3)))


def train(data: DataDir, folder: Path) -> bytes:
    train_attacker(data, three()[1], folder, seed=1, work=Workplace(folder / "work", jobs=1))
    return (folder / "attacker.h5").read_bytes()


STEPS = {
    "transform": (kinds, "fit_transform", 0),
    "gram": (kinds, "gram_matrix", 0),
    "cohort": (kinds, "train_some_apart", 2),
    "end": (training, "save_attacker", 0),
}


@pytest.mark.parametrize("stop", list(STEPS))
def test_a_training_goes_on(data, tmp_path, monkeypatch, stop):
    monkeypatch.setattr(kinds, "_CHUNK", 2)
    expected = train(data, tmp_path / "whole")
    module, name, most = STEPS[stop]
    with monkeypatch.context() as patch:
        counted(patch, module, name, most=most)
        with pytest.raises(KeyboardInterrupt):
            train(data, tmp_path / "a")
    fitted = counted(monkeypatch, kinds, "fit_transform")
    machines = counted(monkeypatch, kinds, "train_some_apart")
    assert train(data, tmp_path / "a") == expected
    assert len(fitted) == (stop == "transform")
    # eight speakers are four chunks
    assert len(machines) == {"transform": 4, "gram": 4, "cohort": 2, "end": 0}[stop]
    assert not (tmp_path / "a" / "partial").exists()


def test_steps_are_kept_by_fingerprint_and_checksum(tmp_path):
    asked = []

    def make() -> dict[str, np.ndarray]:
        asked.append(1)
        return {"x": np.arange(3.0), "y": np.ones((2, 2), np.float32)}

    for fingerprint, count in (("a", 1), ("a", 1), ("b", 2), ("b", 2)):
        found = Kept(tmp_path, fingerprint).arrays("step", make)
        assert len(asked) == count
        assert found["x"].tolist() == [0, 1, 2]
        assert found["y"].dtype == np.float32
    raw = bytearray((tmp_path / "step.journal").read_bytes())
    raw[-5] ^= 1
    (tmp_path / "step.journal").write_bytes(raw)
    assert Kept(tmp_path, "b").arrays("step", make)["y"].tolist() == [[1, 1], [1, 1]]
    assert len(asked) == 3
    assert Kept().arrays("step", make)["x"].tolist() == [0, 1, 2]
    assert len(asked) == 4
