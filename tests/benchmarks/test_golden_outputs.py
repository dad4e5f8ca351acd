"""Outputs are compared by what they say."""

import json

import h5py
import numpy as np
import pytest

from benchmarks.golden_outputs import compare


@pytest.fixture
def folders(tmp_path):
    for number, side in enumerate(("old", "new")):
        folder = tmp_path / side
        folder.mkdir()
        results = {
            "eer": 0.1 + number * 1e-16,
            "run": {"date": number},
            "scores": f"/{side}/scores",
        }
        (folder / "results.json").write_text(json.dumps(results))
        (folder / "report.html").write_text(
            f"<style>{number}</style><p>Made 2026-11-2{number} in {number}.5 s</p><p>EER</p>"
        )
        (folder / "run.log").write_text(side)
        with h5py.File(folder / "ubm.h5", "w", track_order=bool(number)) as file:
            file["means"] = np.arange(4.0)
    return tmp_path / "old", tmp_path / "new"


def test_dates_paths_and_rounding_are_ignored(folders):
    assert list(compare(*folders)) == []


def test_differences_are_named(folders):
    _, new = folders
    (new / "results.json").write_text(
        json.dumps({"eer": 0.1000001, "run": {}, "scores": "/new/scores"})
    )
    (new / "report.html").write_text("<p>Made 2026-11-20 in 0.5 s</p><p>ERR</p>")
    (new / "more.txt").write_text("")
    with h5py.File(new / "ubm.h5", "a") as file:
        file["means"][0] = 1e-16
    found = list(compare(*folders))
    assert [line.partition(":")[0] for line in found] == [
        "more.txt",
        "report.html",
        "results.json",
        "ubm.h5",
    ]
    assert "0.1 and 0.1000001" in found[2]
