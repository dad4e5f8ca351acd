"""The VoicePrivacy recipe end to end on a tiny set: what it leaves behind, and that every number is what it says."""

from __future__ import annotations

import csv
import json
import re
import shutil
import zipfile
from itertools import product
from pathlib import Path

import click
import numpy as np
import pytest
import voiceprivacy_runs as vp
from command_lines import passes
from recipe_runs import results_of
from voiceprivacy_runs import rows

from evaluation import reports
from evaluation.challenges.rank_files import ASV, ASV_ANON, PROTOCOL, read_rank_file, records
from evaluation.formats.reading import read_key, read_scores
from evaluation.linkage import worst_case_from
from evaluation.trials import align, read_speakers
from evaluation.uncertainty import Resampling, minima_over_attackers, sample_from
from spkver.voiceprivacy.challenge_files import write_challenge_files
from spkver.voiceprivacy.experiment import check_privacy

pytestmark = pytest.mark.whole

ATTACKERS = ("gmm-ubm", "supervector-cosine")
RESAMPLES = 8
FOLDERS = {
    "original": "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_{}",
    "ignorant": "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_{}_anon",
    "lazy-informed": "exp/asv_orig/tiny_test_enrolls_anon-tiny_test_trials_{}_anon",
    "semi-informed": "exp/asv_anon_anon/tiny_test_enrolls_anon-tiny_test_trials_{}_anon",
}


def run(data, folder, *arguments, **settings):
    """Run the recipe with two attackers, and with intervals."""
    chosen = {"attackers": f"[{', '.join(ATTACKERS)}]", "evaluation__resamples": RESAMPLES}
    return vp.run_recipe(data, folder, *arguments, **{**chosen, **settings})


@pytest.fixture(scope="module")
def output(layout, tmp_path_factory):
    """What the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("voiceprivacy")
    outcome = run(layout, folder, page=True)
    assert outcome.status == 0, outcome.err
    return folder


@pytest.fixture(scope="module")
def results(output):
    """Its results.json."""
    return results_of(output)


def scores_of(output, one):
    return align(read_scores(output / one["scores"]), read_key(output / one["key"]))


# --- files of a run -------------------------------------------------------------------------------


def test_every_condition_appears_once_with_its_files_and_trial_counts(results, output):
    places = [(one["gender"], one["scenario"], one["attacker"]) for one in results["conditions"]]
    assert sorted(places) == sorted(product(("f", "m", "all"), vp.SCENARIOS, ATTACKERS))
    counts = {"f": (8, 32, 4, 5), "m": (6, 18, 3, 4), "all": (14, 50, 7, 9)}
    names = ("n_target", "n_nontarget", "n_enrolled", "n_trial_speakers")
    for one in results["conditions"]:
        assert (
            one["scores"]
            == f"{FOLDERS[one['scenario']].format(one['gender'])}/{one['attacker']}/scores"
        )
        assert (output / one["scores"]).is_file()
        assert tuple(one[name] for name in names) == counts[one["gender"]]


def test_results_record_their_origin(results, output):
    assert (results["format"], results["suffix"], results["simulated"]) == (1, vp.SUFFIX, False)
    assert results["config"]["attacker_settings"] == {"all": {"ubm": {"components": 4}}}
    assert {"spkver", "python", "numpy"} <= set(results["versions"])
    names = {
        f"{one}{end}/utt2spk"
        for one in ("tiny_train", "tiny_test_enrolls")
        for end in ("", vp.SUFFIX)
    }
    assert names <= set(results["lists"])
    assert {"checks", "plan", "extraction", "training", "scores", "evaluation"} <= set(
        results["timings"]
    )
    assert results["seeds"] == {"run": 0, "bootstrap": 0, "anonymiser": None}
    for name in (
        "report.html",
        "tables_anon.md",
        "tables_anon.tex",
        "results_anon.json",
        "config.yaml",
    ):
        assert (output / name).stat().st_size > 100


# --- the numbers ----------------------------------------------------------------------------------


def test_spkver_eval_finds_the_same_metrics_and_intervals_in_the_written_files(results, output):
    """Each condition, from its scores, key and speakers alone, by the command that a user would type."""
    for one in [one for one in results["conditions"] if one["attacker"] == "supervector-cosine"]:
        files = ["-s", output / one["scores"], "-k", output / one["key"]]
        speakers = ["--segment-speakers", output / one["segment_speakers"]]
        options = ["--bootstrap", RESAMPLES, "--seed", 0, "--jobs", 1, "--json", "-"]
        found = json.loads(passes("metrics", *files, *speakers, *options).stdout)
        intervals = {
            name: {"low": low, "high": high} for name, (low, high) in found.pop("intervals").items()
        }
        assert intervals == one["intervals"]
        notes = found.pop("notes")
        notes.pop("intervals")
        assert notes.items() <= one["notes"].items()
        found.pop("interval_methods")
        assert {name: one[name] for name in found} == found


@pytest.mark.parametrize("scenario", vp.SCENARIOS)
def test_each_scenario_uses_the_speech_that_it_names(layout, output, results, tmp_path, scenario):
    """Oracle: the attacker trained and applied by hand, with the commands of spkver."""
    enrolled, tried, trained = {
        "original": ("", "", ""),
        "ignorant": ("", vp.SUFFIX, ""),
        "lazy-informed": (vp.SUFFIX, vp.SUFFIX, ""),
        "semi-informed": (vp.SUFFIX, vp.SUFFIX, vp.SUFFIX),
    }[scenario]
    train = f"train {layout}/tiny_train{trained} --attacker supervector-cosine --output {tmp_path}/attacker"
    score = f"score {tmp_path}/attacker --enroll {layout}/tiny_test_enrolls{enrolled} --output {tmp_path}/scores"
    lists = f"--test {layout}/tiny_test_trials_f{tried} --trials {layout}/tiny_test_trials_f/trials"
    for command in (f"{train} --set ubm.components=4", f"{score} {lists}"):
        passes(*command.split(), "--jobs", 1)
    one = vp.condition(results, "f", scenario, "supervector-cosine")
    by_hand = align(
        read_scores(tmp_path / "scores"), read_key(layout / "tiny_test_trials_f/trials")
    )
    np.testing.assert_array_equal(by_hand, scores_of(output, one))


def test_pooled_trials_include_both_sexes(results, output):
    for attacker, scenario in product(ATTACKERS, vp.SCENARIOS):
        parts = [scores_of(output, vp.condition(results, sex, scenario, attacker)) for sex in "fm"]
        pooled = scores_of(output, vp.condition(results, "all", scenario, attacker))
        np.testing.assert_array_equal(pooled, np.concatenate(parts))


def test_the_result_is_the_least_privacy_over_attackers(results):
    assert len(results["summary"]) == 12
    for row in results["summary"]:
        eers = {
            who: vp.condition(results, row["gender"], row["scenario"], who)["eer"]["rocch"]
            for who in ATTACKERS
        }
        assert row["eer"] == min(eers.values()) == eers[row["strongest"]]
        assert row["attackers"] == eers


def test_the_speakers_are_the_enrolled_ones(results, output):
    one = vp.condition(results, "all", "lazy-informed", "gmm-ubm")
    found = {row["speaker"]: row for row in one["speakers"]}
    assert list(found) == [*vp.ENROLLED["f"], *vp.ENROLLED["m"]]
    assert all(row["gender"] == name[0] and row["n_target"] == 2 for name, row in found.items())
    key, values = read_key(output / one["key"]), scores_of(output, one)
    own = key.model_ids[key.models] == "m002"
    target, others = values[own & key.is_target], values[own & ~key.is_target]
    # the hull's equal error rate is no more than the larger of the two rates at any threshold
    best = min(max((target < t).mean(), (others >= t).mean()) for t in [*values, np.inf])
    assert found["m002"]["eer"] <= best + 1e-12
    assert (found["m002"]["eer"] == 0) == (target.min() > others.max())
    assert all(
        1 <= row["rank"] <= 4 and 0 <= row["linkability_mean"] <= 1 for row in found.values()
    )


# --- notes shown with the numbers


def test_worst_cases_and_ranks_equal_those_of_the_written_scores(results, output):
    for one in results["conditions"]:
        scores, key = read_scores(output / one["scores"]), read_key(output / one["key"])
        expected = worst_case_from(scores, key).to_dict()
        for reading in ("pav", "gaussian", "student", "ranks"):
            assert one["worst_case"][reading]["llr"] == pytest.approx(
                expected[reading]["llr"], nan_ok=True
            )
        assert one["worst_case"]["pav"]["log10"] == pytest.approx(one["zebra"]["individual"])
        shares = one["cmc"]
        assert shares[-1] == pytest.approx(1)
        assert shares == sorted(shares)
        # one gallery: the same as linkability where everybody is enrolled
        if one["gender"] != "all":
            assert shares[0] == pytest.approx(one["linkability"]["linkability"][-1])


def test_summary_and_verdict_contain_the_interval_of_the_minimum(results, output):
    for row in results["summary"]:
        samples = {}
        for one in results["conditions"]:
            if (one["dataset"], one["gender"]) == (row["dataset"], row["gender"]):
                speakers = read_speakers(output / one["segment_speakers"])
                read = read_scores(output / one["scores"]), read_key(output / one["key"])
                drawn = [sample_from(*read, segment_speakers=speakers, bootstrap_by="id")[0]]
                samples[one["scenario"], one["attacker"]] = drawn
        own = {
            attacker: drawn
            for (scenario, attacker), drawn in samples.items()
            if scenario == row["scenario"]
        }
        expected = minima_over_attackers(own, {"": own}, resampling=Resampling(RESAMPLES, 0))[
            ""
        ].to_dict()
        assert row["minimum"] == json.loads(json.dumps(expected))
        assert 0.1 < row["minimum"]["perfect"]["low"] <= row["minimum"]["perfect"]["mean"] < 0.5
        if row["scenario"] == "original":
            assert "minimum_over_scenarios" not in row
            continue
        every = {
            " ".join(place): drawn for place, drawn in samples.items() if place[0] != "original"
        }
        over = minima_over_attackers(every, {"": every}, resampling=Resampling(RESAMPLES, 0))[
            ""
        ].to_dict()
        over["attacker"] = over["attacker"].partition(" ")[2]
        assert row["minimum_over_scenarios"] == json.loads(json.dumps(over))
        assert over["high"] <= expected["high"]
    anonymised = [row for row in results["summary"] if row["scenario"] != "original"]
    # the verdict uses the smallest ends, over closed sets as well; its upper end holds for both lists at once
    found = [
        row[name]
        for row in anonymised
        for name in ("minimum", "minimum_over_scenarios", "closed_set", "centred")
    ]
    low, high = (100 * min(one[end] for one in found if one) for end in ("low", "high"))
    stated = re.search(
        r"interval for the strongest attacker: ([\d.]+) % to ([\d.]+) %", results["verdict"]
    )
    assert stated[1] == f"{low:.1f}"
    assert min(high + 1e-3, 50.0) < float(stated[2]) + 1e-3 < high + 10, (high, stated[0])


def test_voice_similarity_equals_that_of_the_command(results, output):
    assert {(one["gender"], one["scenario"]) for one in results["similarity"]} == {
        (gender, scenario)
        for gender in ("f", "m", "all")
        for scenario in ("lazy-informed", "semi-informed")
    }
    for entry in results["similarity"]:
        parts = [
            vp.condition(results, entry["gender"], scenario, entry["attacker"])
            for scenario in ("original", "ignorant", entry["scenario"])
        ]
        names = ("--original", "--original-anonymised", "--anonymised")
        arguments = [
            text
            for name, part in zip(names, parts, strict=True)
            for text in (name, output / part["scores"])
        ]
        arguments += ["-k", output / parts[0]["key"], "--calibrate", entry["calibration"]]
        arguments += ["--segment-speakers", output / parts[0]["segment_speakers"], "--json", "-"]
        report = json.loads(passes("similarity", *arguments).stdout)
        assert report["deid"]["value"] == pytest.approx(entry["deid"]["value"])
        assert report["matrices"] == entry["matrices"]


def test_the_page_shows_the_results(results, output):
    page = (output / "report.html").read_text()
    assert 'id="worst"' in page
    assert 'id="voices"' in page
    assert "A plot is left out" not in page
    assert results["overestimated"] in results["verdict"]
    assert "attackers learn from few speakers (tiny_train: 6)" in results["overestimated"]
    assert "no attacker uses a neural network" in results["overestimated"]
    told = vp.findings(results, "overestimated privacy")
    assert [one["level"] for one in told] == ["warning"]


def test_every_key_of_the_results_is_described_by_their_schema(results):
    schema = json.loads(Path(reports.__file__).with_name("results.schema.json").read_text("utf-8"))
    kinds = {"Condition": results["conditions"], "Outcome": results["summary"]}
    described = {name: schema["$defs"][name]["properties"] for name in kinds} | {
        "": schema["properties"]
    }
    for name, found in {"": [results], **kinds}.items():
        assert {key for row in found for key in row} <= described[name].keys()
        assert all(
            "description" in str(text) or "$ref" in text for text in described[name].values()
        )
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(results, schema)
    for damage in (
        {"format": 2},
        {"conditions": []},
        {"sanity": [{"level": "fine"}]},
        {"timings": {"a": "1 s"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(results | damage, schema)


@pytest.mark.parametrize(("limit", "status"), [("0", 3), ("50", 1)])
def test_a_run_fails_if_the_required_privacy_is_not_shown(
    layout, output, results, tmp_path, limit, status
):
    folder = Path(shutil.copytree(output, tmp_path / "out"))
    outcome = run(layout, folder, "--fail-under", limit, "--title", "Release 2")
    assert outcome.status == status
    low = 100 * min(
        row["minimum_over_scenarios"]["low"]
        for row in results["summary"]
        if row["scenario"] != "original"
    )
    assert (
        f"Error: --fail-under: {low:.1f} %, the lower end of the interval of the smallest equal"
        in outcome.err
    )
    assert ("is enough only if each file belongs to its original" in outcome.err) == (status == 3)
    assert outcome.err.count("Error") == 1
    # the page is made first
    assert "'title': 'Release 2'" in (folder / "report.html").read_text("utf-8")


def test_fail_under_refuses_a_run_that_ends_before_the_report(layout, tmp_path):
    outcome = run(layout, tmp_path / "out", "--fail-under", "20", "--until", "checks")
    assert outcome.status == 2
    assert "--fail-under needs the report: give no --until" in outcome.err
    assert not (tmp_path / "out").exists()


def test_privacy_requirements_need_an_interval_a_verdict_and_anonymised_speech(results):
    anonymised = [row for row in results["conditions"] if row["scenario"] != "original"]
    good = [
        row | {"eer": {"rocch": 0.4}, "intervals": {"eer.rocch": {"low": 0.3, "high": 0.5}}}
        for row in anonymised
    ]
    good = [row | {"closed_set": None, "centred": None} for row in good]
    rows = {"format": 1, "conditions": good, "sanity": []}
    check_privacy(reports.parse_results(rows), 0.3)
    original = [row for row in results["conditions"] if row["scenario"] == "original"]
    refused = {"sanity": [{"level": "error", "check": "broken attackers", "text": ""}]}
    bare = [row | {"intervals": {}} for row in good]
    trials = {"directory": "x", "dataset": good[0]["dataset"], "part": "trials"}
    confirmed = {
        "pairings": [trials | {"state": "confirmed", "share": 0.0, "low": 0.0, "high": 0.2}]
    }
    unknown = {"pairings": [trials | {"state": "not confirmed", "reason": "words repeat"}]}
    for changes, least, status, said in (
        ({}, 0.31, 1, r"30.0 %, the lower end .* is below 31 %"),
        (confirmed, 0.3, 1, r"20.0 %, the lower end .* is below 30 %"),  # (0.3 * 1.2 - 0.2) / 0.8
        ({"conditions": original}, 0.3, 3, "no interval"),
        ({"conditions": bare}, 0.3, 3, "no interval"),
        (refused, 0.3, 3, "there is no verdict: the scores of all attackers are useless"),
        # a speaker was recognised, whoever it was
        (refused, 0.9, 1, r"%, the upper end .* is below 90 %"),
        (
            unknown,
            0.3,
            3,
            r"30.0 %, .* is enough only if each file .* not be confirmed: words repeat",
        ),
        (unknown, 0.31, 1, "is below 31 %"),
    ):
        with pytest.raises(click.ClickException, match=said) as caught:
            check_privacy(reports.parse_results(rows | changes), least)
        assert caught.value.exit_code == status
    check_privacy(reports.parse_results(rows | confirmed), 0.2)


# --- the challenge's own files --------------------------------------------------------------------


def named(name):
    """What has an attacker's results written under the challenge's name."""
    return {"challenge__attacker": name, "challenge__targets": "[10, 20, 30, 40]"}


def test_no_result_carries_the_name_of_the_challenge_without_a_named_attacker(results, output):
    """The strongest of several is not the challenge's attacker, and files in its form cannot tell that."""
    assert not (output / "exp/results_summary").exists()
    assert not [path for path in (output / "exp").glob("asv_*/*/*") if path.is_file()]
    assert not [path for path in (output / "exp").glob("asv_*/*") if path.is_file()]
    told = f"result_for_rank{vp.SUFFIX} is not written: challenge.attacker names no attacker"
    assert (output / "run.log").read_text().count(told) == 1
    assert results["protocol"] == {}
    for row in results["averages"]:
        of_sexes = [
            min(
                rows(results["conditions"], gender=sex, scenario=row["scenario"]),
                key=lambda one: one["eer"]["rocch"],
            )
            for sex in "fm"
        ]
        assert (row["attacker"], row["reading"]) == ("strongest", "rocch")
        for name, values in (
            ("eer_percent", [one["eer"]["rocch"] for one in of_sexes]),
            ("low_percent", [one["intervals"]["eer.rocch"]["low"] for one in of_sexes]),
            ("high_percent", [one["intervals"]["eer.rocch"]["high"] for one in of_sexes]),
        ):
            assert row[name] == pytest.approx(50 * sum(values), abs=1e-3)


def test_results_of_one_named_attacker_carry_the_name_of_the_challenge(layout, output, tmp_path):
    """Its EERs by the challenge's reading, and how they were made, in rank file, averages and table alike."""
    folder = Path(shutil.copytree(output, tmp_path / "out"))
    weak = "gmm-ubm"
    outcome = run(layout, folder, **named(weak))
    assert outcome.status == 0, outcome.err
    results = results_of(folder)
    path = folder / f"exp/results_summary/result_for_rank{vp.SUFFIX}"
    ranked = read_rank_file(path)
    assert [section.title for section in ranked] == [PROTOCOL, ASV, ASV_ANON]
    parts = [
        path.parent / f"eval_{name}{vp.SUFFIX}/results_{name}.txt" for name in ("orig", "anon")
    ]
    assert [read_rank_file(part) for part in parts] == [ranked[1:2], ranked[2:]]
    # as the toolkit joins them
    assert path.read_text().endswith("\n".join(part.read_text() for part in parts))
    archive = path.with_name(f"result_for_submission{vp.SUFFIX}.zip")
    with zipfile.ZipFile(archive) as zipped:
        held = {name: zipped.read(name) for name in zipped.namelist()}
    assert all(content == (folder / name).read_bytes() for name, content in held.items())
    assert {str(one.relative_to(folder)) for one in (path, *parts)} < set(held)
    # in the layout of the challenge's toolkit: no folders of attackers, no lists of both sexes
    tables = {f"exp/{name}/results{vp.SUFFIX}.csv" for name in ("asv_orig", f"asv_anon{vp.SUFFIX}")}
    pairs = {
        FOLDERS[scenario].format(sex): (sex, scenario) for scenario in vp.SCENARIOS for sex in "fm"
    }
    of_pairs = {f"{pair}/{name}" for pair in pairs for name in ("scores", "EER")}
    assert set(held) == {str(one.relative_to(folder)) for one in (path, *parts)} | tables | of_pairs
    for pair, (sex, scenario) in pairs.items():
        own = vp.condition(results, sex, scenario, weak)
        assert held[f"{pair}/scores"] == (folder / own["scores"]).read_bytes()
        assert float(held[f"{pair}/EER"]) == own["eer"]["speechbrain"]
    of_tables = [
        row for name in sorted(tables) for row in csv.DictReader(held[name].decode().splitlines())
    ]
    assert [(row["gender"], row["enrollment"], row["trial"]) for row in of_tables] == [
        *(("f", "anon", "anon"), ("m", "anon", "anon")),
        *(
            (sex, *sides)
            for sides in (("original",) * 2, ("original", "anon"), ("anon",) * 2)
            for sex in "fm"
        ),
    ]
    told = {
        "attacker": weak,
        "level": "one-model",
        "reading": "speechbrain",
        "draws": "1",
        "seeding": "unknown",
    }
    assert results["protocol"] == told
    assert records(ranked, PROTOCOL) == [told | {"draws": 1.0}]
    with (folder / f"results{vp.SUFFIX}.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {(row["attacker"], row["strongest_of"]) for row in table} == {(weak, "1")}
    eers = {}
    for title, scenario, kind in (
        (ASV, "original", "original"),
        (ASV_ANON, "semi-informed", "anon"),
    ):
        for sex in "fm":
            eer = round(100 * vp.condition(results, sex, scenario, weak)["eer"]["speechbrain"], 3)
            where = {
                "dataset": "tiny",
                "split": "test",
                "gender": sex,
                "enrollment": kind,
                "trial": kind,
            }
            assert where | {"EER": eer} in records(ranked, title)
            (row,) = [row for row in table if (row["gender"], row["scenario"]) == (sex, scenario)]
            assert float(row["EER"]) == eer
            eers.setdefault(scenario, []).append(eer)
    strongest = [
        row["strongest"] for row in results["summary"] if row["scenario"] == "semi-informed"
    ]
    assert set(strongest) != {weak}  # otherwise nothing is shown
    means = {row["scenario"]: row for row in results["averages"]}
    mean = means["semi-informed"]
    assert (mean["attacker"], mean["reading"], mean["dataset"]) == (weak, "speechbrain", "tiny")
    assert mean["eer_percent"] == pytest.approx(sum(eers["semi-informed"]) / 2, abs=1e-3)
    assert mean["targets_reached"] == [
        target for target in (10, 20, 30, 40) if target <= mean["eer_percent"]
    ]
    # both files give the same number to a system
    found = passes("rank", folder, path, "-l", "a", "-l", "b", "--json", "-")
    assert "Warning" not in found.stderr
    systems = json.loads(found.stdout)["systems"]
    assert [system["attacker"] for system in systems] == [f"{weak} (speechbrain)"] * 2
    assert [100 * system["eer"]["value"] for system in systems] == [
        pytest.approx(mean["eer_percent"], abs=1e-3)
    ] * 2
    # the next run without a name has no such file: an old one would be taken for its own
    outcome = run(layout, folder)
    assert outcome.status == 0, outcome.err
    assert not [name for name in (*held, archive) if (folder / name).exists()]


def test_the_archive_contains_tables_of_words_and_emotions(tmp_path):
    recalls = {
        kind: {"value": 0.5, "recalls": {"sad": 0.25}} for kind in ("original", "anonymised")
    }
    wer = {"libri_test": {"original": {"value": 0.02}, "anonymised": {"value": 0.03125}}}
    told = reports.Protocol("a", "one-model", "speechbrain", draws="1", seeding="unknown")
    utility = reports.typed_results(
        {"conditions": [], "utility": {"wer": wer, "uar": {"IEMOCAP_dev": recalls}}}
    ).utility
    write_challenge_files(tmp_path, [], utility, suffix="_x", protocol=told)
    with zipfile.ZipFile(tmp_path / "exp/results_summary/result_for_submission_x.zip") as zipped:
        held = {
            name: zipped.read(name).decode() for name in zipped.namelist() if name.endswith(".csv")
        }
    assert held == {
        "exp/asr/results_x.csv": "dataset,split,asr,WER\nlibri,test,original,2.0\nlibri,test,anon,3.125\n",
        "exp/ser/results_x.csv": "dataset,split,ser,UAR,ACC_sad\nIEMOCAP,dev,anon,50.0,25.0\n"
        "IEMOCAP,dev,original,50.0,25.0\n",
    }


def test_the_csv_has_the_columns_of_the_challenge(results, output):
    columns = ["dataset", "split", "gender", "enrollment", "trial", "EER"]
    with (output / f"results{vp.SUFFIX}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:6] == columns
    assert len(rows) == 12
    for row in rows:
        one = vp.condition(results, row["gender"], row["scenario"], row["attacker"])
        assert (float(row["EER"]), row["dataset"], row["split"]) == (
            round(100 * one["eer"]["speechbrain"], 3),
            "tiny",
            "test",
        )
        assert (row["strongest_of"], row["draws"]) == (str(len(ATTACKERS)), "1")


# --- second runs ----------------------------------------------------------------------------------


def test_workers_line_ends_and_the_order_of_lists_change_nothing(layout, output, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    for path in [
        *data.rglob("wav.scp"),
        *data.rglob("utt2spk"),
        *data.rglob("enrolls"),
        *data.rglob("trials"),
    ]:
        vp.write(path, vp.lines_of(path)[::-1], end="\r\n")
    arguments = ("--jobs", "2", "--until", "scores")
    outcome = vp.run_recipe(data, tmp_path / "out", *arguments, attackers="[supervector-cosine]")
    assert outcome.status == 0, outcome.err
    assert "Warning" in outcome.err  # the lists differ from what is expected
    for scenario in vp.SCENARIOS:
        for sex in "fm":
            name = f"{FOLDERS[scenario].format(sex)}/supervector-cosine/scores"
            ours, theirs = read_scores(tmp_path / "out" / name), read_scores(output / name)
            np.testing.assert_array_equal(align(ours, theirs), theirs.values)


def test_two_anonymisers_share_a_folder_and_the_files_of_original_speech(layout, output, tmp_path):
    data, folder = (
        Path(shutil.copytree(layout, tmp_path / "data")),
        Path(shutil.copytree(output, tmp_path / "out")),
    )
    for twin in sorted(data.glob(f"*{vp.SUFFIX}")):
        twin.rename(data / f"{twin.name.removesuffix(vp.SUFFIX)}_other")
        changed = data / f"{twin.name.removesuffix(vp.SUFFIX)}_other/wav.scp"
        vp.write(
            changed, [line.replace(f"{vp.SUFFIX}/", "_other/") for line in vp.lines_of(changed)]
        )
    outcome = run(data, folder, "--suffix", "_other", evaluation__resamples=0)
    assert outcome.status == 0, outcome.err
    results = json.loads((folder / "results_other.json").read_text())
    (told,) = vp.findings(results, "independence of the anonymiser")
    assert (told["level"], "results_anon.json in all 6 conditions" in told["text"]) == ("ok", True)
    assert (folder / "results_anon.json").read_bytes() == (
        output / "results_anon.json"
    ).read_bytes()
    assert (folder / "results.json").read_bytes() == (folder / "results_other.json").read_bytes()
