"""The benchmark of training speech: which speakers a cell has, and its tables."""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks import training_curves
from benchmarks.training_curves import Cell, Study, choose_speakers, parse_cell, rate, report
from evaluation.formats import write_scores
from evaluation.trials import Key, Scores
from spkbase.errors import ConfigError
from spkver.anonymization import AnonymizerConfig
from spkver.datadir import DataDir, write_datadir


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25x2", Cell(25, 2, False, 40, 0)),
        ("251x2+", Cell(251, 2, True, 40, 0)),
        ("251x8@3", Cell(251, 8, False, 40, 3)),
        ("251x2+:20@1", Cell(251, 2, True, 20, 1)),
    ],
)
def test_cells_are_read_as_written(text, expected):
    assert parse_cell(text) == expected
    assert expected.name == text


@pytest.mark.parametrize(
    "text", ["", "25", "25x", "x2", "25x2@", "25x2:", "25x2@1:20", "25x2-", "-5x2", "25x2+@a"]
)
def test_damaged_cells_are_named(text):
    with pytest.raises(ConfigError, match="expected SPEAKERSxVERSIONS"):
        parse_cell(text)


def test_a_smaller_set_of_speakers_is_part_of_each_larger_one():
    sexes = {f"w{number}": "f" for number in range(12)} | {f"m{number}": "m" for number in range(7)}
    sizes = (1, 2, 8, 14, 19, 30)
    sets = [choose_speakers(sexes, size, seed=0) for size in sizes]
    assert [len(chosen) for chosen in sets] == [1, 2, 8, 14, 19, 19]
    for smaller, larger in pairwise(sets):
        assert smaller <= larger
    assert sum(sexes[name] == "f" for name in sets[2]) == 4
    assert sum(sexes[name] == "m" for name in sets[3]) == 7


def test_another_seed_chooses_other_speakers():
    sexes = {f"w{number}": "f" for number in range(50)}
    assert choose_speakers(sexes, 10, seed=0) != choose_speakers(sexes, 10, seed=1)


@pytest.fixture
def study(tmp_path):
    """Trials of two sexes, six speakers of each with four recordings; no recording is read."""
    for sex in "fm":
        speakers = {f"{sex}{who}-{turn}": f"{sex}{who}" for who in range(6) for turn in range(4)}
        models = sorted(set(speakers.values()))
        pairs = [(model, segment) for model in models for segment in speakers]
        truth = [speakers[segment] == model for model, segment in pairs]
        key = Key.from_ids([model for model, _ in pairs], [name for _, name in pairs], truth)
        folder = tmp_path / "data" / f"x_test_trials_{sex}"
        recordings = {name: tmp_path / f"{name}.wav" for name in speakers}
        for path in recordings.values():
            path.touch()
        write_datadir(DataDir(folder, recordings, speakers, dict.fromkeys(models, sex), trials=key))
    output = tmp_path / "out"
    return Study(tmp_path / "data", output, "train", ("x_test",), AnonymizerConfig(), 1, 2)


def drawn_scores(key, distance, seed):
    noise = np.random.default_rng(seed).standard_normal(len(key))
    models = key.model_ids[key.models]
    segments = key.segment_ids[key.segments]
    return Scores.from_ids(models, segments, noise + distance * key.is_target)


def test_each_second_recording_is_tested_and_all_speakers_stay(study):
    key, speakers = study.key("x_test")
    assert len(key) == 2 * 6 * 12
    assert int(key.is_target.sum()) == 24
    assert len(set(speakers.values())) == 12


def test_tables_compare_tuned_with_published_and_cells_with_the_first(study, capsys, monkeypatch):
    monkeypatch.setattr(training_curves, "RESAMPLES", 30)
    key, _ = study.key("x_test")
    records = {}
    for seed, cell in enumerate(("50x2", "25x2")):
        record = {"eer": {"x_test": {}}}
        for name, distance in (("campplus", 1.0), ("campplus-tuned", 6.0)):
            scores = drawn_scores(key, distance, seed)
            file = study.scores_file(cell, "x_test", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_scores(file, scores)
            record["eer"]["x_test"][name] = rate(scores, key)
        records[cell] = record
    assert records["50x2"]["eer"]["x_test"]["campplus-tuned"] < 0.05
    assert records["50x2"]["eer"]["x_test"]["campplus"] > 0.2
    report(study, "x_test", records, ("campplus", "campplus-tuned"))
    text = capsys.readouterr().out
    levels, tuned, cells = text.split("x_test, ")[1:]
    assert "25x2" in levels
    rows = [line for line in tuned.splitlines() if line.startswith(("| 50x2", "| 25x2"))]
    assert len(rows) == 2
    for row in rows:
        *_, difference, raw, corrected = (cell.strip() for cell in row.strip("|").split("|"))
        assert difference.startswith("-")
        assert float(raw) <= float(corrected) < 0.05
    assert cells.count("| 25x2 | 50x2") == 2
