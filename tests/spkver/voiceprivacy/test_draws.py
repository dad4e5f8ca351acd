"""Draws of enrolment and trials: which anonymisers are drawn again, and means over draws in the results."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from evaluation.reports import Condition, parse_results, summarise
from spkbase.configuration import load_config
from spkbase.errors import ConfigError
from spkver.anonymization import RECORD, AnonymizerConfig
from spkver.datadir import DataDir
from spkver.voiceprivacy.condition_metrics import mean_of, shared_notes
from spkver.voiceprivacy.reporting import verdict
from spkver.voiceprivacy.settings import Config, TwinConfig
from spkver.voiceprivacy.versions import another_anonymizer, is_fixed

Json = dict[str, object]


@pytest.mark.parametrize("key", ["trial_draws", "enrolment_draws"])
@pytest.mark.parametrize("number", ["0", "2.5", "many"])
def test_invalid_numbers_of_draws_are_refused(number: str, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"anonymizer\.{key}"):
        load_config(Config, settings=[f"anonymizer.{key}={number}"])


def test_random_anonymisers_get_three_draws_and_deterministic_ones_one() -> None:
    for settings, expected in (
        ({}, (4, 3)),
        ({"trial_draws": 5, "enrolment_draws": 1}, (1, 5)),
        ({"name": "none"}, (1, 1)),
    ):
        found = TwinConfig(**settings).named_by("_mcadams")
        assert found is not None
        assert (found.draws("enrolment"), found.draws("trials")) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"alpha": (0.8, 0.8)}, True),
        ({"name": "resampling", "speed": (1.1, 1.1)}, True),
        ({"name": "world", "pitch": (1.1, 1.1)}, False),
        ({"name": "world", "pitch": (1.1, 1.1), "formants": (1.2, 1.2)}, True),
        ({"name": "vtln", "warp": (0.1, 0.1)}, False),  # the sign is drawn
        ({"name": "none"}, True),
        ({"name": "mine.py:reverse", "alpha": (0.8, 0.8)}, False),
    ],
)
def test_deterministic_anonymisers_are_recognised(settings: Json, expected: bool) -> None:
    assert is_fixed(AnonymizerConfig(**settings)) is expected


def test_an_existing_copy_is_redrawn_only_by_its_own_anonymiser(tmp_path: Path) -> None:
    twin, config = DataDir(tmp_path, {}, {}), TwinConfig(name="mcadams", level="speaker")
    assert "no record" in another_anonymizer(twin, config.of("trials"), is_named=False)
    assert not another_anonymizer(twin, config.of("trials"), is_named=True)
    record = {"name": "mcadams", "level": "speaker", "seeding": "vpc2024", "alpha": [0.5, 0.9]}
    (tmp_path / RECORD).write_text(json.dumps({"anonymizer": record, "seed": 0}))
    # by speaker, as configured
    assert not another_anonymizer(twin, config.of("trials"), is_named=False)
    # by utterance
    assert "another level" in another_anonymizer(twin, config.of("training"), is_named=False)
    none = TwinConfig(name="none").of("trials")  # original audio was refused before
    assert "recordings differ" in another_anonymizer(twin, none, is_named=True)
    (tmp_path / RECORD).write_text('{"anonymizer": [')  # a damaged record gives no information
    assert another_anonymizer(twin, config.of("trials"), is_named=False)


def test_means_descend_into_groups_and_lists() -> None:
    one = {
        "n": 4,
        "eer": {"rocch": 0.1},
        "curve": (1.0, 0.5),
        "tag": "A",
        "known": True,
        "rank": math.nan,
    }
    two = {
        "n": 4,
        "eer": {"rocch": 0.4},
        "curve": (0.0, 0.5),
        "tag": "B",
        "known": False,
        "rank": 2,
    }
    assert mean_of([one]) == one
    expected = {"n": 4, "eer": {"rocch": 0.25}, "curve": (0.5, 0.5), "tag": "A", "known": False}
    found = mean_of([one, two])
    assert math.isnan(found.pop("rank"))
    assert found == expected
    assert mean_of([1.0, float("inf")]) == float("inf")


def test_notes_of_some_draws_name_the_draws() -> None:
    notes = {1: {"a": "x"}, 3: {"a": "x", "b": "y"}, 4: {"a": "z", "b": "y"}}
    assert shared_notes(notes) == {
        "a": "in draw 1 and 3: x; in draw 4: z",
        "b": "in draw 3 and 4: y",
    }
    assert shared_notes({1: {"a": "x"}}) == {"a": "x"}


def condition(
    attacker: str,
    eer: float,
    *,
    level: str = "one-model",
    scenario: str = "lazy-informed",
    **more: object,
) -> Json:
    closed = {
        "eer": {"value": eer / 2, "low": 0.0, "high": 0.3},
        "identification": {"value": 1 - eer},
    }
    return {
        "dataset": "libri_test", "gender": "all", "scenario": scenario, "attacker": attacker, "level": level,
        "eer": {"rocch": eer}, "intervals": {"eer.rocch": {"low": eer / 2, "high": 2 * eer}}, "linkability": None,
        "zebra": {"population": 0.1, "individual": 1.0, "tag": "A"}, "n_enrolled": 10, "n_target": 70,
        "n_nontarget": 280, "draws": [{"eer": {"rocch": eer}}], "closed_set": {**closed, "candidates": [5, 5]}, **more,
    }  # fmt: skip


def test_the_verdict_gives_one_rate_and_names_its_attacker() -> None:
    several = {"draws": [{"eer": {"rocch": rate}} for rate in (0.18, 0.03, 0.06)]}
    inverted = condition("gmm-svm-inverted", 0.09, level="inverting", tested=[35, 35], **several)
    adapted = condition("campplus-adapted", 0.12, level="whole-list")
    table = [inverted, adapted, condition("campplus", 0.179), condition("gmm-ubm", 0.4)]
    config = {"evaluation": {"level": 0.95}, "anonymizer": {"name": ""}}
    of = {
        "format": 1,
        "simulated": False,
        "averages": [],
        "config": config,
        "anonymiser": {"training_draws": 1},
    }
    said, details = verdict(parse_results(of | {"conditions": table}))
    # every attacker has half its error rate in the closed set, and 30 % is the upper end there
    assert (
        "rate of 4.5 % (95 % interval for the strongest attacker: 0.0 % to 18.0 %), where it knows"
        in said
    )
    assert (
        "is gmm-svm-inverted (lazy-informed, which anonymises its enrolment speech). The page has all"
        in details
    )
    assert "%" not in details  # there is one figure: draws concern the open set
    of_draws = verdict(parse_results(of | {"conditions": [inverted | {"closed_set": None}]}))[1]
    assert "speech), on 3 anonymised versions (18.0, 3.0, 6.0)." in of_draws


def test_zebra_and_linkability_take_and_name_the_worst_attacker() -> None:
    """Oracle: the attacker with the least EER is not the one that discloses most."""
    curve = {"sizes": [2, 5], "linkability": [1.0, 0.7]}
    table = [
        condition("a", 0.10, linkability={"sizes": [2, 5], "linkability": [1.0, 0.4]}),
        condition(
            "b", 0.20, zebra={"population": 0.3, "individual": 0.5, "tag": "0"}, linkability=curve
        ),
        condition("c", 0.30, zebra={"population": None, "individual": 2.5, "tag": "B"}),
    ]
    (found,) = summarise([Condition.from_dict(row) for row in table])
    assert (found.population, found.tag, found.linkability_all) == (0.3, "B", 0.7)
    assert found.worst_by == {"population": "b", "individual": "c", "linkability_all": "b"}
