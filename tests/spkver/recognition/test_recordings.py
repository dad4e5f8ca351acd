"""One result for each recording or each fold: what is done when a run ends early is not done again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stored_vectors import counted

from spkbase.runs import Run, start_run
from spkver.datadir.directory import DataDir
from spkver.recognition import emotions as recognition
from spkver.recognition.recordings import map_recordings


def size_of(path: Path) -> int:
    return path.stat().st_size


def test_recordings_that_are_done_are_not_done_again(tmp_path, monkeypatch):
    files = {f"u{number}": tmp_path / f"{number}.raw" for number in range(5)}
    for number, path in enumerate(files.values()):
        path.write_bytes(b"x" * number)

    def sizes() -> dict[str, int]:
        with start_run(tmp_path / "out", {}, jobs=1) as run:
            return map_recordings(run, "sizes", lambda path: size_of(path), files, settings="")

    with monkeypatch.context() as patch:
        counted(patch, __import__(__name__), "size_of", most=3)
        with pytest.raises(KeyboardInterrupt):
            sizes()
    asked = counted(monkeypatch, __import__(__name__), "size_of")
    assert sizes() == {f"u{number}": number for number in range(5)}
    assert asked == [(files["u3"],), (files["u4"],)]
    assert sizes()["u4"] == 4
    assert len(asked) == 2


def test_folds_that_are_done_are_not_done_again(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    names = {f"s{speaker}-{take}": f"s{speaker}" for speaker in range(4) for take in range(6)}
    data = DataDir(tmp_path / "set", {name: tmp_path / name for name in names}, names)
    emotions = {name: "sad" if int(name[-1]) % 2 else "glad" for name in names}
    vectors = {name: (rng.standard_normal(5) + (emotions[name] == "sad")).tolist() for name in names}
    folds = {speaker: speaker for speaker in names.values()}

    def recognise(folder: str) -> dict[str, str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        side = (data, vectors)
        config = recognition.EmotionConfig(costs=(0.1,))
        run = Run(tmp_path / folder, jobs=1)
        return recognition.classify_emotions(run, side, side, emotions, folds=folds, config=config)

    expected = recognise("whole")
    assert set(expected) == set(names)
    with monkeypatch.context() as patch:
        counted(patch, recognition, "_recognise_fold", most=2)
        with pytest.raises(KeyboardInterrupt):
            recognise("out")
    asked = counted(monkeypatch, recognition, "_recognise_fold")
    assert recognise("out") == expected
    assert len(asked) == 2
    vectors["s0-0"][0] += 5
    recognise("out")
    assert len(asked) == 6
