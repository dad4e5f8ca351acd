"""The arithmetic of docs/scale.md, against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scale
from benchmarks.measure import replace_block
from benchmarks.rsr2015_work import Frames, Protocol, stage_work
from benchmarks.scale_model import (
    Corpus,
    Limits,
    Line,
    Need,
    amounts_of,
    check_rows,
    line_through,
    measured_rates,
    needs_of,
    wall_seconds,
)

FIXED, UNIT = 0.5, 1e-3
ROUNDS = (2, 4, 8)


def a_run(sentences: int) -> dict[str, Any]:
    """Figures as the benchmark writes them, of a machine on which everything costs 0.5 s and a millisecond each."""
    size = Protocol(sentences)
    seconds, speech = 2.0 * size.recordings, 100 * size.recordings
    frames = {"ubm": 50 * size.recordings, "evaluation": 50 * size.recordings, "gaussians": 8, "dimension": 5}
    counted = Frames(frames["ubm"], frames["evaluation"], 0, 8, 5, ROUNDS, 20, 4)
    stages = {
        kind: {
            "work": work.amount,
            "measure": work.measure,
            "cpu": FIXED + UNIT * work.amount,
            "wall": 0.6 * (FIXED + UNIT * work.amount),
            "peak": 1e8 + 1000 * size.recordings,
        }
        for kind, work in stage_work(size, counted, seconds).items()
    }
    return {
        "sentences": sentences,
        "recordings": size.recordings,
        "trials": size.trials,
        "audio_seconds": seconds,
        "frames": {**frames, "rounds": ROUNDS},
        "stages": stages,
        "artefacts": {"features.h5": 60 * speech, "scores/svm-gmm.txt": 40 * size.trials},
        "artefact_bytes": 1e6 + 300 * size.recordings,
    }


RUNS = [a_run(2), a_run(8), a_run(30)]
CORPUS = Corpus("toy", hours=10, recordings=5_000, models=100)


def test_line_through_one_point_is_proportional() -> None:
    assert line_through([(4, 8)]) == Line(0.0, 2.0)


def test_line_never_starts_below_nothing_and_never_falls() -> None:
    steep = line_through([(1, 1), (10, 100)])
    assert (steep.fixed, steep.unit) == (0.0, 5.5)
    assert line_through([(1, 10), (10, 9)]) == Line(9.5, 0.0)


def test_rates_are_those_that_the_runs_were_made_with() -> None:
    rates = measured_rates(RUNS)
    for line in rates.cpu.values():
        if line.fixed:
            assert (line.fixed, line.unit) == (pytest.approx(FIXED), pytest.approx(UNIT))
    assert rates.frames_per_second == 50
    assert rates.feature_bytes == 60 * 100 / 2
    assert rates.text_bytes == 40
    assert (rates.memory.fixed, rates.memory.unit) == (pytest.approx(1e8), pytest.approx(1000))


def test_needs_of_a_corpus() -> None:
    rates = measured_rates(RUNS)
    needs = needs_of(amounts_of(CORPUS, rates), rates)
    seconds, frames, vector = 36_000, 1_800_000, 8 * 5 * 4
    assert needs["audio"].kept == needs["features"].read == 32_000 * seconds
    assert needs["features"].core_seconds == pytest.approx(FIXED + UNIT * seconds)
    assert needs["features"].returned == 3000 * seconds
    assert needs["UBM"].read == 4 * frames * 5 * 4  # the first Gaussian and three rounds
    assert needs["UBM"].returned == pytest.approx(frames / 8192 * 8 * 11 * (1 + 2 + 4 + 8))
    assert needs["UBM"].tasks == pytest.approx(4 * frames / 8192)
    assert needs["statistics"].kept == 5_000 * (8 * 5 + 8) * 4
    assert needs["supervectors"].kept == needs["supervectors"].returned == 5_000 * vector
    assert needs["SVM training"].kept == 100 * vector
    assert needs["scoring"].core_seconds == pytest.approx(FIXED + UNIT * 57 * 5_000)
    assert needs["scoring"].kept == 57 * 5_000 * 48
    assert needs["evaluation"].serial == pytest.approx(FIXED + UNIT * 57 * 5_000)


def test_memory_of_the_client_holds_what_is_in_flight() -> None:
    rates = measured_rates(RUNS)
    block = 32 * 8 * 6 * 4
    few, many = (rates.client_memory(CORPUS, cores) for cores in (2, 100))
    assert few == pytest.approx(1e8 + 1000 * 5_000 + 64 * block)
    assert many - few == pytest.approx((400 - 64) * block)


@pytest.mark.parametrize(
    ("need", "seconds", "waits_for"),
    [
        (Need(100.0), 10.0, "cores"),
        (Need(100.0, read=5000.0), 50.0, "file system"),
        (Need(100.0, returned=5000.0), 500.0, "scheduler, bytes"),
        (Need(100.0, tasks=100.0), 20.0, "scheduler, tasks"),
        (Need(100.0, serial=70.0), 70.0, "one process"),
    ],
)
def test_the_scarcest_thing_decides(need: Need, seconds: float, waits_for: str) -> None:
    limits = Limits(file_system=100.0, scheduler=10.0, tasks=5.0, client=40.0)
    assert wall_seconds(need, 10, limits) == (seconds, waits_for)


def test_prediction_of_the_largest_size_is_exact_where_costs_are_lines() -> None:
    rows = {row["what"]: row for row in check_rows(RUNS)}
    for kind in ("features", "UBM", "scoring", "all"):
        assert rows[f"{kind}, CPU s"]["ratio"] == pytest.approx(1.0, rel=1e-6)
    assert rows["disk, MB"]["measured"] == pytest.approx(1 + 300 * 28_890 / 1e6)
    assert rows["peak memory, MB"]["ratio"] == pytest.approx(1.0)


def test_a_stage_that_grows_faster_shows_in_the_check() -> None:
    runs = json.loads(json.dumps(RUNS))
    runs[-1]["stages"]["scoring"]["cpu"] *= 2
    rows = {row["what"]: row for row in check_rows(runs)}
    assert rows["scoring, CPU s"]["ratio"] == pytest.approx(0.5)


def test_tables_go_into_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    figures.write_text(json.dumps({"machine": "a machine", "gaussians": 8, "runs": RUNS}))
    page.write_text("before\n<!-- scale -->\nstale figures\n<!-- end of scale -->\nafter\n")
    assert scale.main([str(figures), "--update", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("before\n<!-- scale -->\n\nMeasured: a machine; 2, 8, 30 sentences")
    assert text.endswith("\n\n<!-- end of scale -->\nafter\n")
    assert "stale figures" not in text
    assert "| train-clean-360 |" in text
    assert capsys.readouterr().out.strip() in text
    with pytest.raises(SystemExit, match="has no lines"):
        replace_block(page, "other", "text")


def test_one_size_is_not_enough(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps({"machine": "", "gaussians": 8, "runs": RUNS[:1]}))
    with pytest.raises(SystemExit):
        scale.main([str(figures)])
