"""What stands beside the numbers of a run: worst case, ranks, the interval of the minimum, similarity, the alarm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from voiceprivacy_runs import REPLICATES, run_recipe, write_layout

from evaluation.formats import read_key, read_scores
from evaluation.linkage import worst_case_from
from evaluation.linkage.ranks import Ranks
from evaluation.trials import read_speakers
from evaluation.uncertainty import Resampling, minima_over_attackers, sample_from
from spkver.evaluation_cli import main as evaluate_main
from spkver.voiceprivacy.checks import FEW_TRAINING_SPEAKERS, overestimated, reasons
from spkver.voiceprivacy.choosing import attackers_run
from spkver.voiceprivacy.numbers import match_by_rank, worst_of
from spkver.voiceprivacy.settings import Config

ATTACKERS = ("gmm-svm", "supervector-cosine")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Results of a run of two attackers, and its folder."""
    folder = tmp_path_factory.mktemp("evidence")
    outcome = run_recipe(
        write_layout(folder / "data"), folder / "out", page=True, attackers=f"[{', '.join(ATTACKERS)}]"
    )
    assert outcome.status == 0, outcome.err
    return json.loads((folder / "out/results.json").read_text()), folder / "out"


def condition(results: dict[str, Any], **wanted: str) -> dict[str, Any]:
    (found,) = [one for one in results["conditions"] if all(one[name] == value for name, value in wanted.items())]
    return found


def test_worst_case_and_ranks_are_those_of_the_written_scores(ran: tuple[dict[str, Any], Path]) -> None:
    results, output = ran
    for one in results["conditions"]:
        scores, key = read_scores(output / one["scores"]), read_key(output / one["key"])
        expected = worst_case_from(scores, key).to_dict()
        for reading in ("pav", "gaussian", "student", "ranks"):
            assert one["worst_case"][reading]["llr"] == pytest.approx(expected[reading]["llr"], nan_ok=True)
        assert one["worst_case"]["pav"]["log10"] == pytest.approx(one["zebra"]["individual"])
        shares = one["cmc"]
        assert shares[-1] == pytest.approx(1)
        assert shares == sorted(shares)
        if one["gender"] != "all":  # one gallery: the same as linkability where everybody is enrolled
            assert shares[0] == pytest.approx(one["linkability"]["linkability"][-1])


def test_the_interval_of_the_minimum_is_in_summary_and_verdict(ran: tuple[dict[str, Any], Path]) -> None:
    results, output = ran
    for row in results["summary"]:
        samples = {}
        for one in results["conditions"]:
            if (one["dataset"], one["gender"]) == (row["dataset"], row["gender"]):
                speakers = read_speakers(output / one["segment_speakers"])
                read = read_scores(output / one["scores"]), read_key(output / one["key"])
                drawn = [sample_from(*read, segment_speakers=speakers, ids_are_speakers=True)[0]]
                samples[one["scenario"], one["attacker"]] = drawn
        own = {attacker: drawn for (scenario, attacker), drawn in samples.items() if scenario == row["scenario"]}
        expected = minima_over_attackers(own, {"": own}, resampling=Resampling(REPLICATES, 0))[""].to_dict()
        assert row["minimum"] == json.loads(json.dumps(expected))
        assert 0.1 < row["minimum"]["perfect"]["low"] <= row["minimum"]["perfect"]["mean"] < 0.5
        if row["scenario"] == "original":
            assert "minimum_over_scenarios" not in row
            continue
        every = {" ".join(place): drawn for place, drawn in samples.items() if place[0] != "original"}
        over = minima_over_attackers(every, {"": every}, resampling=Resampling(REPLICATES, 0))[""].to_dict()
        over["attacker"] = over["attacker"].partition(" ")[2]
        assert row["minimum_over_scenarios"] == json.loads(json.dumps(over))
        assert over["high"] <= expected["high"]
    anonymised = [row for row in results["summary"] if row["scenario"] != "original"]
    worst = min(anonymised, key=lambda row: row["eer"])["minimum_over_scenarios"]
    span = f"{100 * worst['low']:.1f} % to {100 * worst['high']:.1f} %"
    assert f"interval of the smallest over attackers and scenarios: {span}" in results["verdict"]


def test_similarity_is_what_the_command_makes_of_the_written_scores(ran: tuple[dict[str, Any], Path]) -> None:
    results, output = ran
    assert {(one["gender"], one["scenario"]) for one in results["similarity"]} == {
        (gender, scenario) for gender in ("f", "m", "all") for scenario in ("lazy-informed", "semi-informed")
    }
    for entry in results["similarity"]:
        place = {name: entry[name] for name in ("dataset", "gender", "attacker")}
        parts = [
            condition(results, **place, scenario=scenario) for scenario in ("original", "ignorant", entry["scenario"])
        ]
        files = [str(output / part["scores"]) for part in parts]
        names = ("--original", "--original-anonymised", "--anonymised")
        arguments = [text for pair in zip(names, files, strict=True) for text in pair]
        arguments += ["-k", str(output / parts[0]["key"]), "--calibrate", entry["calibration"]]
        arguments += ["--segment-speakers", str(output / parts[0]["segment_speakers"]), "--json", "-"]
        told = CliRunner().invoke(evaluate_main, ["similarity", *arguments])
        assert told.exit_code == 0, told.output
        report = json.loads(told.stdout)
        assert report["deid"]["value"] == pytest.approx(entry["deid"]["value"])
        assert report["matrices"] == entry["matrices"]


def test_the_page_shows_them(ran: tuple[dict[str, Any], Path]) -> None:
    results, output = ran
    page = (output / "report.html").read_text()
    assert 'id="worst"' in page
    assert 'id="voices"' in page
    assert "Voice similarity matrices of tiny_test" in page
    assert "A plot is left out" not in page
    assert results["overestimated"] in results["verdict"]
    assert "attackers learn from few speakers (tiny_train: 6)" in results["overestimated"]
    assert "no attacker rests on a neural network" in results["overestimated"]
    told = [one for one in results["sanity"] if one["check"] == "overestimated privacy"]
    assert [one["level"] for one in told] == ["warning"]


# --- the alarm ------------------------------------------------------------------------------------


def entries(
    rates: dict[str, float], *, attackers: tuple[str, ...] = ("campplus-adapted", "gmm-svm"), behind: float = 0.005
) -> list[dict[str, Any]]:
    """Conditions of one set; each attacker is `behind` the one before it, and intervals reach 2 points."""
    return [
        {
            "dataset": "x_test",
            "gender": "all",
            "scenario": scenario,
            "attacker": name,
            "level": "trial-by-trial",
            "eer": {"rocch": rate + number * behind},
            "zebra": {"population": 0.3},
            "intervals": {"eer.rocch": {"low": rate + number * behind - 0.02, "high": rate + number * behind + 0.02}},
        }
        for scenario, rate in rates.items()
        for number, name in enumerate(attackers)
    ]


GOOD = {"original": 0.01, "ignorant": 0.2, "lazy-informed": 0.15, "semi-informed": 0.1}


def sets(speakers: int = FEW_TRAINING_SPEAKERS, draws: int = 3) -> Any:
    directory = SimpleNamespace(speakers={f"u{number}": f"s{number}" for number in range(speakers)})
    return SimpleNamespace(
        training_sets=["train"],
        original={"train": directory},
        draws={"train": (directory,) * draws} if draws else {},
        draws_nothing=lambda name: False,
    )


CONFIG = Config(attackers=("campplus-adapted", "campplus", "gmm-svm", "gmm-ubm"))


def overestimation(*given: Any, failed: Sequence[str] = ()) -> str:
    return "".join(finding.text for finding in overestimated(*given, failed=failed))


def test_nothing_is_said_where_nothing_is_amiss() -> None:
    assert overestimation(entries(GOOD), sets(), CONFIG) == ""


@pytest.mark.parametrize(
    ("rates", "given", "text"),
    [
        (GOOD | {"original": 0.06}, {}, "weak on original speech (x_test: 6.0 %)"),
        (GOOD | {"semi-informed": 0.16}, {}, "weaker than lazy-informed ones (x_test: 16.0 % against 15.0 %)"),
        (
            GOOD,
            {"behind": 0.05},
            "attackers disagree (x_test ignorant: campplus-adapted alone is ahead, beyond both intervals)",
        ),
        (GOOD, {"attackers": ("gmm-svm", "gmm-ubm")}, "no attacker rests on a neural network"),
        (GOOD, {"attackers": ("campplus", "gmm-svm")}, "no attacker adapts to the trials"),
    ],
)
def test_each_reason(rates: dict[str, float], given: dict[str, Any], text: str) -> None:
    told = overestimation(entries(rates, **given), sets(), CONFIG)
    assert told.startswith("This privacy is probably overestimated, because ")
    assert text in told


def test_reasons_of_training_and_failures() -> None:
    assert "few speakers (train: 99)" in overestimation(entries(GOOD), sets(FEW_TRAINING_SPEAKERS - 1), CONFIG)
    assert "one draw of the anonymised speech alone (train)" in overestimation(entries(GOOD), sets(draws=0), CONFIG)
    told = overestimation(entries(GOOD), sets(1, 0), CONFIG, failed=["ge2e", "ge2e"])
    assert told.endswith("; and attackers failed (ge2e).")
    assert told.count("; ") == 2


def test_original_speech_alone_has_no_alarm() -> None:
    assert overestimation(entries({"original": 0.4}), sets(1, 0), CONFIG) == ""


def test_who_is_ahead_of_cues_or_of_attackers_that_undo_tells_nothing() -> None:
    for other in ("prosody", "session", "content", "fusion"):
        given = entries(GOOD, attackers=("campplus", other), behind=0.05)
        assert not [reason for reason in reasons(given, sets(), CONFIG) if "disagree" in reason]
    given = entries(GOOD, behind=0.05)
    for one in given:
        one["level"] = "inverting" if one["attacker"] == "campplus-adapted" else "trial-by-trial"
    assert not [reason for reason in reasons(given, sets(), CONFIG) if "disagree" in reason]


# --- small things ---------------------------------------------------------------------------------


def test_who_attacked_is_said_truly() -> None:
    told = attackers_run(Config(attackers=("gmm-svm", "campplus")))
    assert told["networks"] == ["campplus"]
    assert "networks: campplus" in told["text"]
    assert "no neural network" not in told["text"]
    assert "CAM++" in told["explained"]["campplus"]
    told = attackers_run(Config(attackers=("gmm-svm", "campplus")), [{"attacker": "gmm-svm"}])
    assert told["names"] == ["gmm-svm"]
    assert told["text"].startswith("Attackers without any result: campplus. ")
    assert "no neural network" in told["text"]
    assert "upper bound of the privacy" in told["text"]
    outside = attackers_run(Config(attackers=("gmm-svm", "scores:elsewhere")))
    assert outside["of_others"]
    assert "of others" in outside["text"]
    fused = attackers_run(Config(attackers=("gmm-svm", "fusion")), [{"attacker": "gmm-svm"}, {"attacker": "fusion"}])
    assert fused["names"] == ["gmm-svm", "fusion"]
    both = [{"attacker": name} for name in ("gmm-svm", "fusion", "fusion-undone")]  # the second comes with the first
    fused = attackers_run(Config(attackers=("gmm-svm", "fusion")), both)
    assert fused["names"] == ["gmm-svm", "fusion", "fusion-undone"]
    assert fused["undoing"] == ["fusion-undone"]
    assert "undo or align" in fused["explained"]["fusion-undone"]


def test_ranks_of_two_galleries_by_brute_force() -> None:
    women, men = Ranks([0, 1, 1], 0, 2), Ranks([0, 3], 0, 4)
    both = Ranks([0, 1, 1, 0, 3], 0, [2, 2, 2, 4, 4])
    first = [np.mean([place <= r for place in (1, 2, 2, 1, 4)]) for r in range(1, 6)]
    assert match_by_rank([both]) == pytest.approx(first)
    assert match_by_rank([women, men]) == pytest.approx(first)


def test_the_worst_case_over_draws_is_the_largest_of_each_reading() -> None:
    rng = np.random.default_rng(0)
    key = [True] * 20 + [False] * 60
    from evaluation.metrics.worst_case import worst_case

    draws = [worst_case(rng.normal(d, 1, 20), rng.normal(0, 1, key.count(False))) for d in (1, 4)]
    found = worst_of(draws)
    assert found.gaussian.llr == max(draw.gaussian.llr for draw in draws)
    assert found.pav.llr == max(draw.pav.llr for draw in draws)
    assert np.isnan(found.ranks.llr)
