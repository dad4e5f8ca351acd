"""The JSON Schema of results.json follows from the types, and what is written is read back as it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from gaussian_results import make_results

from evaluation.metrics import METRICS
from evaluation.reports import parse_results
from evaluation.reports.rows import Row
from spkbase.files import to_json

sys.path.append(str(Path(__file__).parents[3] / "docs"))
import results_schema as schema

MORE: dict[str, Any] = {
    "choices": [
        {
            "attacker": "a",
            "training": "set",
            "vectors": 9,
            "chosen": "[cosine]",
            "why": "it is simple",
        }
    ],
    "trained_networks": [
        {
            "folder": "attackers/set/network-1",
            "training": "set",
            "attackers": ["a"],
            "seed": 0,
            "steps": 40,
            "eer_before": 0.3,
            "eer_after": 0.1,
            "held_out_eer": {"0": 0.3, "40": 0.1},
        }
    ],
    "undoing": [
        {
            "background": "set",
            "anonymizer": "mcadams",
            "parameter": "alpha",
            "rmse": None,
            "range": [0, 1],
        }
    ],
    "attackers_run": {"names": ["a"], "networks": [], "explained": {"a": "a machine"}},
    "failures": [
        dict.fromkeys(("attacker", "dataset", "gender", "scenario", "scores", "reason"), "x")
    ],
    "fusions": [
        {
            "attacker": "fusion",
            "weights": {"weights": {"a": 1.5}, "offset": -1},
            "alone": {"a": {"eer": 0.1}},
        }
    ],
    "protocol": {"attacker": "a", "reading": "kaldi"},
    "averages": [
        {
            "dataset": "libri",
            "split": "",
            "scenario": "original",
            "eer_percent": 3.5,
            "low_percent": 1,
        }
    ],
    "pairings": [
        {
            "directory": "x_f_a",
            "own": 9,
            "share": 0.1,
            "low": None,
            "high": 0.2,
            "examples": ["a = b"],
        }
    ],
    "training_speakers": ["s1"],
    "tested_speakers": ["s2"],
    "run": {"date": "2026-11-28T04:00:00+00:00", "command": "spkver voiceprivacy"},
    "similarity": [
        {
            "dataset": "x",
            "gender": "f",
            "scenario": "lazy-informed",
            "attacker": "a",
            "notes": ["not given"],
        },
        {
            **dict.fromkeys(("dataset", "gender", "scenario", "attacker"), "x"),
            "deid": {"value": 0.5, "low": None, "high": None},
            "matrices": {"oo": {"speakers": ["s1"], "n_trials": 1, "values": [[None]]}},
        },
    ],
}


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The contents of a results.json with every block."""
    folder = tmp_path_factory.mktemp("results")
    made = make_results(
        folder, attackers=("a", "b"), scenarios=("original", "lazy-informed"), genders=("all",)
    )
    return made | MORE


def test_the_stored_schema_equals_the_one_generated_from_the_types() -> None:
    made = json.loads(to_json(schema.results_schema()))
    remedy = "run: python docs/results_schema.py"
    assert made == json.loads(schema.PATH.read_text("utf-8")), remedy


def test_the_schema_contains_every_metric_with_its_description() -> None:
    described = schema.results_schema()["$defs"]["Condition"]["properties"]
    for metric in METRICS:
        group, _, rest = metric.name.partition(".")
        stated = described[group]["properties"][rest] if rest else described[group]
        assert stated["description"] == (metric.about or metric.title)


def test_written_results_are_read_back_equal(contents: dict[str, Any]) -> None:
    first = parse_results(contents)
    written = json.loads(to_json(first.to_dict()))
    again = parse_results(written)
    assert to_json(again.to_dict()) == to_json(first.to_dict())
    assert again.settings == first.settings
    speakers = ("training_speakers", "tested_speakers")
    for key in ("failures", "protocol", *speakers, "run", "config", "versions", "lists", "sanity"):
        assert written[key] == contents[key], key
    assert written["averages"] == [contents["averages"][0] | {"attacker": "strongest", "reading": "rocch",
                                                              "targets_reached": []}]  # fmt: skip
    assert written["choices"] == contents["choices"]
    assert written["trained_networks"] == contents["trained_networks"]
    assert written["utility"]["uar"]["original"] == {"value": 0.71, "low": None, "high": None}


def test_written_results_validate_against_the_schema(contents: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    stated = json.loads(schema.PATH.read_text("utf-8"))
    written = json.loads(to_json(parse_results(contents).to_dict()))
    jsonschema.Draft202012Validator.check_schema(stated)
    jsonschema.validate(written, stated)
    jsonschema.validate(json.loads(to_json(contents)), stated)
    damages: tuple[dict[str, Any], ...] = (
        {"format": 2},
        {"conditions": []},
        {"conditions": [{"dataset": "x"}]},
        {"sanity": [{"level": "fine", "check": "x", "text": "y"}]},
        {"timings": {"a": "1 s"}},
        {"failures": [{"attacker": "a"}]},
        {"similarity": [{"dataset": 7}]},
    )
    for damage in damages:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(written | damage, stated)


def test_every_row_is_described() -> None:
    """A reader of the schema finds a sentence for each block and each key."""
    definitions = schema.results_schema()["$defs"]
    rows = [name for name in definitions if name in {cls.__name__ for cls in _all_rows(Row)}]
    assert len(rows) > 20
    for name in rows:
        assert definitions[name]["description"]
        properties = definitions[name]["properties"].items()
        assert [key for key, stated in properties if "description" not in stated] == []


def _all_rows(cls: type) -> set[type]:
    return {cls}.union(*(_all_rows(below) for below in cls.__subclasses__()))
