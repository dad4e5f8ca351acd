"""The VoicePrivacy recipe end to end on a tiny set: what it leaves behind, and that every number is what it says."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from voiceprivacy_runs import ENROLLED, REPLICATES, SUFFIX, lines_of, run_recipe, write, write_layout

from evaluation.challenges.rank_files import ASV, ASV_ANON, PROTOCOL, read_rank_file, records
from evaluation.formats.reading import read_key, read_scores
from evaluation.trials import align
from spkver.attackers import PRESETS
from spkver.cli import main as spkver
from spkver.evaluation_cli import main as spkver_eval

ATTACKERS = tuple(PRESETS)
SCENARIOS = ("original", "ignorant", "lazy-informed", "semi-informed")
FOLDERS = {
    "original": "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_{}",
    "ignorant": "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_{}_anon",
    "lazy-informed": "exp/asv_orig/tiny_test_enrolls_anon-tiny_test_trials_{}_anon",
    "semi-informed": "exp/asv_anon_anon/tiny_test_enrolls_anon-tiny_test_trials_{}_anon",
}


@pytest.fixture(scope="session")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set; read only."""
    return write_layout(tmp_path_factory.mktemp("layout"))


@pytest.fixture(scope="session")
def output(layout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("voiceprivacy")
    outcome = run_recipe(layout, folder, page=True)
    assert outcome.status == 0, outcome.err
    return folder


@pytest.fixture(scope="session")
def results(output: Path) -> dict:
    """Its results.json."""
    return json.loads((output / "results.json").read_text())


def condition(results: dict, gender: str, scenario: str, attacker: str) -> dict:
    wanted = ("tiny_test", gender, scenario, attacker)
    names = ("dataset", "gender", "scenario", "attacker")
    (found,) = [one for one in results["conditions"] if tuple(one[name] for name in names) == wanted]
    return found


def scores_of(output: Path, one: dict) -> np.ndarray:
    return align(read_scores(output / one["scores"]), read_key(output / one["key"]))


# --- what is there --------------------------------------------------------------------------------


def test_every_condition_is_there_once_with_its_files(results, output):
    places = [(one["gender"], one["scenario"], one["attacker"]) for one in results["conditions"]]
    assert sorted(places) == sorted(
        (sex, name, who) for sex in ("f", "m", "all") for name in SCENARIOS for who in ATTACKERS
    )
    for one in results["conditions"]:
        assert one["scores"] == f"{FOLDERS[one['scenario']].format(one['gender'])}/{one['attacker']}/scores"
        assert (output / one["scores"]).is_file()


def test_counts_are_those_of_the_lists(results):
    counts = {
        sex: {name: condition(results, sex, "ignorant", "gmm-svm")[name] for name in
              ("n_target", "n_nontarget", "n_enrolled", "n_trial_speakers")}
        for sex in ("f", "m", "all")
    }  # fmt: skip
    assert counts["f"] == {"n_target": 8, "n_nontarget": 32, "n_enrolled": 4, "n_trial_speakers": 5}
    assert counts["m"] == {"n_target": 6, "n_nontarget": 18, "n_enrolled": 3, "n_trial_speakers": 4}
    assert counts["all"] == {name: counts["f"][name] + counts["m"][name] for name in counts["f"]}


def test_results_say_what_they_were_made_of(results):
    assert (results["format"], results["suffix"], results["simulated"]) == (1, SUFFIX, False)
    assert results["config"]["attacker_settings"] == {"all": {"ubm": {"components": 4}}}
    assert {"spkver", "python", "numpy"} <= set(results["versions"])
    names = {f"{one}{end}/utt2spk" for one in ("tiny_train", "tiny_test_enrolls") for end in ("", SUFFIX)}
    assert names <= set(results["lists"])
    assert "attackers and scores" in results["timings"]
    assert results["seeds"] == {"run": 0, "bootstrap": 0, "anonymiser": None}


@pytest.mark.parametrize(
    "name", ["report.html", "tables_anon.md", "tables_anon.tex", "results_anon.json", "config.yaml"]
)
def test_reports_are_written(output, name):
    assert (output / name).stat().st_size > 100


# --- the numbers ----------------------------------------------------------------------------------


def test_spkver_eval_finds_the_same_metrics_and_intervals_in_the_written_files(results, output):
    """Each condition, from its scores, key and speakers alone, by the command that a user would type."""
    for one in results["conditions"]:
        files = ["-s", output / one["scores"], "-k", output / one["key"]]
        speakers = ["--segment-speakers", output / one["segment_speakers"]]
        options = ["--bootstrap", REPLICATES, "--seed", 0, "--jobs", 1, "--json", "-"]
        ran = CliRunner().invoke(spkver_eval, ["metrics", *map(str, [*files, *speakers, *options])])
        assert ran.exit_code == 0, ran.output
        found = json.loads(ran.stdout)
        intervals = {name: {"low": low, "high": high} for name, (low, high) in found.pop("intervals").items()}
        assert intervals == one["intervals"]
        assert found.pop("notes").items() <= one["notes"].items()
        found.pop("interval_methods")
        assert {name: one[name] for name in found} == found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_attacks_the_speech_it_names(layout, output, results, tmp_path, scenario):
    """Oracle: the attacker trained and applied by hand, with the commands of spkver."""
    enrolled, tried, trained = {
        "original": ("", "", ""),
        "ignorant": ("", SUFFIX, ""),
        "lazy-informed": (SUFFIX, SUFFIX, ""),
        "semi-informed": (SUFFIX, SUFFIX, SUFFIX),
    }[scenario]
    train = [
        "train",
        layout / f"tiny_train{trained}",
        "--attacker",
        "supervector-cosine",
        "--output",
        tmp_path / "attacker",
    ]
    score = ["score", tmp_path / "attacker", "--enroll", layout / f"tiny_test_enrolls{enrolled}"]
    score += ["--test", layout / f"tiny_test_trials_f{tried}", "--trials", layout / "tiny_test_trials_f/trials"]
    for arguments in ([*train, "--set", "ubm.components=4"], [*score, "--output", tmp_path / "scores"]):
        ran = CliRunner().invoke(spkver, [*map(str, arguments), "--jobs", "1"])
        assert ran.exit_code == 0, ran.output
    one = condition(results, "f", scenario, "supervector-cosine")
    by_hand = align(read_scores(tmp_path / "scores"), read_key(layout / "tiny_test_trials_f/trials"))
    np.testing.assert_array_equal(by_hand, scores_of(output, one))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pooled_trials_are_those_of_both_sexes(results, output, scenario):
    for attacker in ATTACKERS:
        parts = [scores_of(output, condition(results, sex, scenario, attacker)) for sex in "fm"]
        pooled = scores_of(output, condition(results, "all", scenario, attacker))
        np.testing.assert_array_equal(pooled, np.concatenate(parts))


def test_the_least_privacy_over_attackers_is_the_result(results):
    assert len(results["summary"]) == 12
    for row in results["summary"]:
        eers = {who: condition(results, row["gender"], row["scenario"], who)["eer"]["rocch"] for who in ATTACKERS}
        assert row["eer"] == min(eers.values()) == eers[row["strongest"]]
        assert row["attackers"] == eers


def test_linkability_among_all_is_the_share_of_utterances_that_their_own_speaker_scores_highest_on(results, output):
    for gender, n_enrolled in (("f", 4), ("m", 3)):
        one = condition(results, gender, "original", "supervector-cosine")
        key = read_key(output / one["key"])
        values = scores_of(output, one)
        hits = []
        for segment in np.unique(key.segments[key.is_target]):
            rows = np.flatnonzero(key.segments == segment)
            hits.append(bool(key.is_target[rows[np.argmax(values[rows])]]))
        assert one["linkability"]["sizes"] == list(range(2, n_enrolled + 1))
        assert one["linkability"]["linkability"][-1] == pytest.approx(np.mean(hits), abs=1e-12)
        assert one["linkability"]["chance"] == [1 / size for size in one["linkability"]["sizes"]]


def test_speakers_are_those_enrolled(results, output):
    one = condition(results, "all", "lazy-informed", "gmm-svm")
    rows = {row["speaker"]: row for row in one["speakers"]}
    assert list(rows) == [*ENROLLED["f"], *ENROLLED["m"]]
    assert all(row["gender"] == name[0] and row["n_target"] == 2 for name, row in rows.items())
    key, values = read_key(output / one["key"]), scores_of(output, one)
    own = key.model_ids[key.models] == "m002"
    target, others = values[own & key.is_target], values[own & ~key.is_target]
    # a threshold anywhere: the hull's equal error rate is no more than half of the two rates together, at the best one
    best = min(((target < t).mean() + (others >= t).mean()) / 2 for t in [*values, np.inf])
    assert rows["m002"]["eer"] <= best + 1e-12
    assert (rows["m002"]["eer"] == 0) == (target.min() > others.max())
    assert all(1 <= row["rank"] <= 4 and 0 <= row["linkability_mean"] <= 1 for row in rows.values())


# --- the challenge's own files --------------------------------------------------------------------


def named(name: str) -> dict[str, str]:
    """What has an attacker's results written under the challenge's name."""
    return {"challenge__attacker": name, "challenge__targets": "[10, 20, 30, 40]"}


def test_without_a_named_attacker_nothing_goes_under_the_challenges_name(results, output):
    """The strongest of several is not the challenge's attacker, and files in its form cannot tell that."""
    assert not (output / "exp/results_summary").exists()
    assert not [path for path in (output / "exp").glob("asv_*/*/*") if path.is_file()]
    assert not [path for path in (output / "exp").glob("asv_*/*") if path.is_file()]
    told = f"result_for_rank{SUFFIX} is not written: challenge.attacker names no attacker"
    assert (output / "run.log").read_text().count(told) == 1
    assert results["protocol"] == {}
    for row in results["averages"]:
        of_sexes = [
            min((one for one in results["conditions"] if (one["gender"], one["scenario"]) == (sex, row["scenario"])),
                key=lambda one: one["eer"]["rocch"])
            for sex in "fm"
        ]  # fmt: skip
        assert (row["attacker"], row["reading"]) == ("strongest", "rocch")
        for name, values in (
            ("eer_percent", [one["eer"]["rocch"] for one in of_sexes]),
            ("low_percent", [one["intervals"]["eer.rocch"]["low"] for one in of_sexes]),
            ("high_percent", [one["intervals"]["eer.rocch"]["high"] for one in of_sexes]),
        ):
            assert row[name] == pytest.approx(50 * sum(values), abs=1e-3)


def test_one_named_attacker_goes_under_the_challenges_name(layout, output, tmp_path):
    """Its EERs by the challenge's reading, and how they were made, in rank file, averages and table alike."""
    folder = Path(shutil.copytree(output, tmp_path / "out"))
    weak = "gmm-ubm"
    outcome = run_recipe(layout, folder, **named(weak))
    assert outcome.status == 0, outcome.err
    results = json.loads((folder / "results.json").read_text())
    path = folder / f"exp/results_summary/result_for_rank{SUFFIX}"
    ranked = read_rank_file(path)
    assert [section.title for section in ranked] == [PROTOCOL, ASV, ASV_ANON]
    parts = [path.parent / f"eval_{name}{SUFFIX}/results_{name}.txt" for name in ("orig", "anon")]
    assert [read_rank_file(part) for part in parts] == [ranked[1:2], ranked[2:]]
    assert path.read_text().endswith("\n".join(part.read_text() for part in parts))  # as the toolkit joins them
    archive = path.with_name(f"result_for_submission{SUFFIX}.zip")
    with zipfile.ZipFile(archive) as zipped:
        held = {name: zipped.read(name) for name in zipped.namelist()}
    assert all(content == (folder / name).read_bytes() for name, content in held.items())
    assert {str(one.relative_to(folder)) for one in (path, *parts)} < set(held)
    anonymised = (
        f"tiny_test_enrolls{SUFFIX}-tiny_test_trials_m{SUFFIX}",
        f"tiny_test_enrolls-tiny_test_trials_f{SUFFIX}",
    )
    assert f"exp/asv_anon{SUFFIX}/{anonymised[0]}/{weak}/scores" in held
    assert f"exp/asv_orig/{anonymised[1]}/{weak}/scores" in held
    assert not [name for name in held if "gmm-svm" in name]
    told = {"attacker": weak, "level": "trial-by-trial", "reading": "speechbrain", "draws": "1", "seeding": "unknown"}
    assert results["protocol"] == told
    assert records(ranked, PROTOCOL) == [told | {"draws": 1.0}]
    with (folder / f"results{SUFFIX}.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {(row["attacker"], row["strongest_of"]) for row in table} == {(weak, "1")}
    eers: dict[str, list[float]] = {}
    for title, scenario, kind in ((ASV, "original", "original"), (ASV_ANON, "semi-informed", "anon")):
        for sex in "fm":
            eer = round(100 * condition(results, sex, scenario, weak)["eer"]["speechbrain"], 3)
            where = {"dataset": "tiny", "split": "test", "gender": sex, "enrollment": kind, "trial": kind}
            assert where | {"EER": eer} in records(ranked, title)
            (row,) = [row for row in table if (row["gender"], row["scenario"]) == (sex, scenario)]
            assert float(row["EER"]) == eer
            eers.setdefault(scenario, []).append(eer)
    strongest = [row["strongest"] for row in results["summary"] if row["scenario"] == "semi-informed"]
    assert set(strongest) != {weak}  # else nothing is shown
    means = {row["scenario"]: row for row in results["averages"]}
    mean = means["semi-informed"]
    assert (mean["attacker"], mean["reading"], mean["dataset"]) == (weak, "speechbrain", "tiny")
    assert mean["eer_percent"] == pytest.approx(sum(eers["semi-informed"]) / 2, abs=1e-3)
    assert mean["targets_reached"] == [target for target in (10, 20, 30, 40) if target <= mean["eer_percent"]]
    # one system is one number in both of its files
    found = CliRunner().invoke(spkver_eval, ["rank", str(folder), str(path), "-l", "a", "-l", "b", "--json", "-"])
    assert found.exit_code == 0, found.output
    assert "Warning" not in found.stderr
    systems = json.loads(found.stdout)["systems"]
    assert [system["attacker"] for system in systems] == [f"{weak} (speechbrain)"] * 2
    assert [100 * system["eer"]["value"] for system in systems] == [pytest.approx(mean["eer_percent"], abs=1e-3)] * 2
    # and of the next run without a name there is none: it would be taken for that run's
    outcome = run_recipe(layout, folder)
    assert outcome.status == 0, outcome.err
    assert not [one for one in (path, *parts, archive) if one.exists()]


def test_csv_has_the_columns_of_the_challenge(results, output):
    columns = ["dataset", "split", "gender", "enrollment", "trial", "EER"]
    with (output / f"results{SUFFIX}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:6] == columns
    assert len(rows) == 12
    for row in rows:
        one = condition(results, row["gender"], row["scenario"], row["attacker"])
        assert (float(row["EER"]), row["dataset"], row["split"]) == (
            round(100 * one["eer"]["speechbrain"], 3),
            "tiny",
            "test",
        )
        assert (row["strongest_of"], row["draws"]) == (str(len(ATTACKERS)), "1")


# --- again ----------------------------------------------------------------------------------------


def numbers(folder: Path) -> dict:
    """Results without the times, and without what names the folder."""
    found = json.loads((folder / "results.json").read_text())
    found.pop("timings")
    found.pop("run")
    found["sanity"] = [one for one in found["sanity"] if one["check"] != "independence of the anonymiser"]
    return found


def test_a_second_run_makes_nothing_again(layout, output, tmp_path):
    folder = Path(shutil.copytree(output, tmp_path / "again"))
    before = {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.name == "scores" and path.parent.name in ATTACKERS
    }
    outcome = run_recipe(layout, folder)
    assert outcome.status == 0, outcome.err
    assert "UBM" not in outcome.err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert numbers(folder) == numbers(output)


def test_neither_workers_nor_the_order_and_line_ends_of_lists_matter(layout, output, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    for path in [*data.rglob("wav.scp"), *data.rglob("utt2spk"), *data.rglob("enrolls"), *data.rglob("trials")]:
        write(path, lines_of(path)[::-1], end="\r\n")
    outcome = run_recipe(
        data, tmp_path / "out", "--jobs", "2", attackers="[supervector-cosine]", evaluation__replicates=0
    )
    assert outcome.status == 0, outcome.err
    assert "Warning" in outcome.err  # the lists are not as they should be
    for scenario in SCENARIOS:
        for sex in "fm":
            name = f"{FOLDERS[scenario].format(sex)}/supervector-cosine/scores"
            ours, theirs = read_scores(tmp_path / "out" / name), read_scores(output / name)
            np.testing.assert_array_equal(align(ours, theirs), theirs.values)


def test_attackers_can_be_chosen_and_named(layout, tmp_path):
    outcome = run_recipe(
        layout, tmp_path, "--set", "attackers=[mine]", "--set", "attacker_settings.mine.preset=gmm-ubm",
        evaluation__replicates=0, lists="[f]",
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    results = json.loads((tmp_path / "results.json").read_text())
    assert {(one["attacker"], one["gender"]) for one in results["conditions"]} == {("mine", "f")}
    assert all(one["intervals"] == {} for one in results["conditions"])


def test_two_anonymisers_share_a_folder_and_what_was_made_of_original_speech(layout, output, tmp_path):
    data, folder = Path(shutil.copytree(layout, tmp_path / "data")), Path(shutil.copytree(output, tmp_path / "out"))
    for twin in sorted(data.glob(f"*{SUFFIX}")):
        twin.rename(data / f"{twin.name.removesuffix(SUFFIX)}_other")
        changed = data / f"{twin.name.removesuffix(SUFFIX)}_other/wav.scp"
        write(changed, [line.replace(f"{SUFFIX}/", "_other/") for line in lines_of(changed)])
    outcome = run_recipe(data, folder, "--suffix", "_other")
    assert outcome.status == 0, outcome.err
    results = json.loads((folder / "results_other.json").read_text())
    (told,) = [one for one in results["sanity"] if one["check"] == "independence of the anonymiser"]
    assert (told["level"], "results_anon.json in all 12 conditions" in told["text"]) == ("ok", True)
    assert (folder / "results_anon.json").read_bytes() == (output / "results_anon.json").read_bytes()
    assert (folder / "results.json").read_bytes() == (folder / "results_other.json").read_bytes()
