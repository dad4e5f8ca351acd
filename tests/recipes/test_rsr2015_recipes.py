"""The recipes from audio to results, on the tiny corpus: what they write, and what a second run does again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_lines import passes
from recipe_runs import COMMANDS, datasets, leftovers, made, refused, results_of
from tiny_corpus import write_tiny_corpus

from evaluation.formats.reading import read_key, read_scores
from evaluation.metrics import Metrics
from evaluation.reports import Condition
from evaluation.trials import split_scores
from evaluation.trials.speakers import read_speakers
from evaluation.uncertainty import Resampling
from evaluation.uncertainty.confidence import confidence_intervals, sample_from

pytestmark = pytest.mark.whole

FLOAT32 = ("stat_enroll", "stat_back", "stat_test", "sv_enroll", "sv_back", "sv_test")
SVM_STAGES = {"models of svm-gmm", "scores of svm-gmm"}
NAP_STAGES = {"nap", "models of svm-gmm-nap", "scores of svm-gmm-nap"}
LISTS = ("enroll", "back", "test")
STATISTICS = {f"statistics of {name}" for name in LISTS}
SUPERVECTORS = {f"supervectors of {name}" for name in LISTS}
AFTER_UBM = STATISTICS | SUPERVECTORS | SVM_STAGES | NAP_STAGES
JOINT_FACTORS = {"joint_factors__speaker_rank": 3, "joint_factors__channel_rank": 2, "nap__rank": 0}
EVERYTHING = {"features", "ubm"} | AFTER_UBM


@pytest.fixture
def output(finished, tmp_path):
    """A copy of that output for a test to go on from."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def test_results_are_documented(finished):
    results = results_of(finished)
    assert set(results) == {"recipe", "config", "versions", "lists", "timings", "systems"}
    assert results["recipe"] == "rsr2015/svm_gmm"
    assert results["config"]["ubm"]["components"] == 8
    assert {"spkver", "python", "numpy", "scipy", "scikit-learn"} <= set(results["versions"])
    assert set(results["lists"]) == {"background", "enrolment", "key", "nap", "test", "ubm"}
    assert all(len(digest) == 64 for digest in results["lists"].values())
    assert results["timings"]["features"] > 0
    assert set(results["systems"]) == {"svm-gmm", "svm-gmm-nap"}
    for system in results["systems"].values():
        assert (system["n_target"], system["n_nontarget"]) == (16, 48)
        assert 0 <= system["eer"]["rocch"] <= 0.5
        assert 0 <= system["min_dcf"]["sre08"] <= 1
        assert 0 <= system["prbep"] <= 48
        assert set(system["trial_types"]) == {"TC-IC"}


def test_all_files_are_written(finished):
    there = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    stems = [
        "sesspwd_eval_m_trn",
        *(f"sess-pwd_eval_m_{kind}" for kind in ("test", "back", "nap", "key", "ndx")),
    ]
    lists = {f"task/3{stem}{extension}" for stem in stems for extension in (".h5", ".txt")}
    lists |= {f"task/{name}" for name in ("ubm_list.txt", "utt2spk", "model2spk")}
    lists |= {f"task/data/{name}" for name in ("wav.scp", "utt2spk", "spk2utt")}
    systems = ("svm-gmm", "svm-gmm-nap")
    expected = (
        lists
        | {f"data/{name}.h5" for name in (*FLOAT32, "nap")}
        | {f"svm/{name}.h5" for name in systems}
    )
    expected |= {f"scores/{name}{extension}" for name in systems for extension in (".h5", ".txt")}
    plots = ("det", "zebra", "histogram", "linkability")
    expected |= {"gmm/ubm.h5", "gmm/ubm.png"} | {
        f"{name}.{form}" for name in plots for form in ("png", "pdf", "svg")
    }
    expected |= {"features.h5", "run.log", "results.json", "evaluation.json", "config.yaml"}
    expected |= {"stages.json", "sources.json"}
    assert there == expected
    log = (finished / "run.log").read_text()
    head = r"results\nsystem +trials +target +nontarget +EER \[%\] +minDCF SRE08.*\n[- ]+\n"
    assert re.search(head + "svm-gmm +TC-IC +16 +48 ", log), (
        "the log alone tells how well the systems do"
    )
    packages = {line.split()[3].split(".")[0] for line in log.splitlines() if " INFO " in line}
    assert packages == {"spkbase", "spkver"}, "of other libraries only what is wrong"
    assert log.rstrip().endswith("finished")


def test_text_and_hdf5_scores_are_the_same(finished):
    for system in ("svm-gmm", "svm-gmm-nap"):
        binary, text = (
            read_scores(finished / f"scores/{system}{extension}") for extension in (".h5", ".txt")
        )
        assert list(binary.pairs()) == list(text.pairs())
        np.testing.assert_allclose(binary.values, text.values, rtol=1e-6)
    key = read_key(finished / "task/3sess-pwd_eval_m_key.h5")
    target, nontarget = split_scores(read_scores(finished / "scores/svm-gmm.h5"), key)
    assert target.mean() > nontarget.mean()


def test_plots_are_redrawn_only_if_their_content_changed(recipe, tiny, finished, output):
    drawn = {
        path: path.stat().st_mtime_ns
        for form in ("png", "pdf", "svg")
        for path in output.rglob(f"*.{form}")
    }
    assert {path.stem for path in drawn} == {"det", "zebra", "histogram", "linkability", "ubm"}
    settings = {"plots": True, "report__formats": ["png", "pdf", "svg"]}
    assert "report: up to date" in recipe(tiny, output, **settings).err
    assert {path: path.stat().st_mtime_ns for path in drawn} == drawn
    assert results_of(output)["systems"] == results_of(finished)["systems"]
    (output / "gmm/ubm.png").unlink()
    (output / "det.pdf").write_bytes(b"")
    recipe(tiny, output, **settings)
    assert all(path.stat().st_size for path in drawn)
    settings["plots"] = False
    assert "report: up to date" not in recipe(tiny, output, **settings, report__p_target=0.05).err


def test_bits_do_not_depend_on_jobs(recipe, tiny, finished, tmp_path):
    assert recipe(tiny, tmp_path, "--jobs", "2").status == 0
    assert datasets(tmp_path) == datasets(finished)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"svm__tolerance": "1e-4"}, SVM_STAGES | NAP_STAGES - {"nap"}),
        ({"nap__rank": 3}, NAP_STAGES),
        ({"nap__list": "nap"}, NAP_STAGES | {"statistics of nap", "supervectors of nap"}),
        ({"ubm__components": 4}, {"ubm"} | AFTER_UBM),
        ({"features__memory_gb": 1e-9}, set()),
        ({"seed": 5}, EVERYTHING),
        ({"trials__nontarget": "[IW]"}, {"scores of svm-gmm", "scores of svm-gmm-nap"}),
        (
            {"background__size": 20},
            {"statistics of back", "supervectors of back"} | SVM_STAGES | NAP_STAGES,
        ),
    ],
)
def test_a_changed_setting_redoes_only_its_dependents(recipe, tiny, output, settings, expected):
    if "nap__list" in settings:
        settings = {**settings, "nap__rank": 2, "nap__step": 3}
    outcome = recipe(tiny, output, **settings)
    assert outcome.status == 0, outcome.err
    assert made(outcome.err) == expected


def test_the_gmm_ubm_recipe_writes_scores_and_metrics(recipe, tiny, tmp_path):
    assert recipe(tiny, tmp_path, name="gmm_ubm", nap__rank=0).status == 0
    results = results_of(tmp_path)
    assert results["recipe"] == "rsr2015/gmm_ubm"
    system = results["systems"]["gmm-ubm"]
    assert (system["n_target"], system["n_nontarget"]) == (16, 48)
    assert {"eer", "min_dcf", "prbep"} <= set(system)
    for name in ("task", "gmm/ubm.h5", "data/stat_enroll.h5", "data/sv_models.h5", "run.log"):
        assert (tmp_path / name).exists()
    assert read_scores(tmp_path / "scores/gmm-ubm.h5").values.shape == (64,)
    assert (tmp_path / "scores/gmm-ubm.txt").is_file()
    assert made(recipe(tiny, tmp_path, name="gmm_ubm", nap__rank=0).err) == set()


def test_each_trial_type_is_reported(recipe, tiny, tmp_path):
    outcome = recipe(
        tiny, tmp_path, trials__target="[TC, TW]", trials__nontarget="[IC, IW]", nap__rank=0
    )
    assert outcome.status == 0
    system = results_of(tmp_path)["systems"]["svm-gmm"]
    counts = {
        name: (pair["n_target"], pair["n_nontarget"])
        for name, pair in system["trial_types"].items()
    }
    assert counts == {"TC-IC": (16, 48), "TC-IW": (16, 48), "TW-IC": (16, 48), "TW-IW": (16, 48)}
    assert (system["n_target"], system["n_nontarget"]) == (32, 96)
    assert all("zebra" in pair for pair in system["trial_types"].values())
    for word in ("all", "TC-IC", "TC-IW", "TW-IC", "TW-IW"):
        assert word in outcome.out


@pytest.mark.parametrize(
    ("gender", "partition", "background", "evaluation"),
    [("f", "eval", (1, 2, 3, 47), (95, 96, 143)), ("m", "dev", (1, 2, 3, 50), (51, 52, 100))],
)
def test_the_other_sex_and_partition_can_be_run(
    recipe, tmp_path, gender, partition, background, evaluation
):
    corpus = write_tiny_corpus(
        tmp_path / "corpus",
        gender=gender,
        partition=partition,
        background=background,
        evaluation=evaluation,
    )
    outcome = recipe(corpus, tmp_path / "out", gender=gender, partition=partition, nap__rank=0)
    assert outcome.status == 0, outcome.err
    system = results_of(tmp_path / "out")["systems"]["svm-gmm"]
    assert (system["n_target"], system["n_nontarget"]) == (12, 24)
    assert (tmp_path / f"out/task/3sess-pwd_{partition}_{gender}_key.h5").is_file()


def test_a_ubm_of_sidekit_is_used(recipe, tiny, shared, tmp_path):
    path = shared / "golden" / "sidekit" / "h5" / "ubm64.h5"
    outcome = recipe(tiny, tmp_path, ubm__file=path)
    assert outcome.status == 0, outcome.err
    with h5py.File(path) as theirs, h5py.File(tmp_path / "gmm/ubm.h5") as ours:
        np.testing.assert_array_equal(ours["mu"][()], theirs["mu"][()])
    assert made(recipe(tiny, tmp_path, ubm__file=path).err) == set()


def test_a_configuration_file_changes_only_the_settings_that_it_names(recipe, tiny, tmp_path):
    """The order is recipe, file, --set: the GMM-UBM recipe goes on without normalisation and NAP."""
    config = tmp_path / "my.yaml"
    config.write_text("seed: 7\nubm:\n  components: 8\n")
    assert recipe(tiny, tmp_path / "out", "--config", str(config), name="gmm_ubm").status == 0
    resolved = results_of(tmp_path / "out")["config"]
    assert (resolved["seed"], resolved["map"]["normalise"]) == (7, False)


# --- privacy ---------------------------------------------------------------------------------------------------------


def test_results_and_table_contain_privacy_metrics(recipe, tiny, output):
    """Speakers are those of the maps in `task/`, which `spkver-eval` takes too."""
    outcome = recipe(tiny, output, report__resamples=50)
    assert outcome.status == 0
    head = outcome.out.splitlines()[0].split()
    assert head[:9] == [
        "system",
        "trials",
        "target",
        "nontarget",
        "EER",
        "[%]",
        "minDCF",
        "SRE08",
        "PRBEP",
    ]
    assert head[9:] == ["EER", "low", "high", "ZEBRA", "[bit]", "tag", "D_sys", "linked"]
    assert "95 % interval over speakers, not models (4 speakers, 50 resamples)" in outcome.out
    assert "Scores are not calibrated" in outcome.out
    key = read_key(output / "task/3sess-pwd_eval_m_key.h5")
    maps = [read_speakers(output / "task" / name) for name in ("model2spk", "utt2spk")]
    assert set(maps[0]) == set(key.model_ids.tolist())
    assert set(maps[1]) > set(key.segment_ids.tolist())
    for name, system in results_of(output)["systems"].items():
        scores = read_scores(output / f"scores/{name}.h5")
        expected = confidence_intervals(
            sample_from(scores, key, model_speakers=maps[0], segment_speakers=maps[1])[0],
            Metrics(),
            Resampling(50),
        )["eer.rocch"]
        found = Condition.from_dict(system)
        assert (found.eer.low, found.eer.high) == pytest.approx((expected.low, expected.high))
        assert found.eer.value == expected.value
        assert max(found.linkability.sizes) == 4
        assert 0 <= found.metric("zebra.population").value <= 0.7214


# --- single stages, and the output of `spkver status` ----------------------------------------------------------------


def status(output):
    """What `spkver status` gives: state of each stage."""
    (record,) = json.loads(passes("status", "--json", output).output)
    return {stage["stage"]: stage["state"] for stage in record["stages"]}


def test_the_status_of_a_finished_run_is_done(finished):
    assert status(finished) == dict.fromkeys(EVERYTHING | {"report"}, "done")


def test_until_and_only_limit_a_run_that_can_be_completed(recipe, tiny, finished, tmp_path):
    output = tmp_path / "out"
    outcome = recipe(tiny, output, "--until", "ubm")
    assert outcome.status == 0
    assert made(outcome.err) == {"features", "ubm"}
    assert status(output) == dict.fromkeys(["features", "ubm"], "done")
    assert "2 of 2 stages done" in outcome.out
    assert not (output / "results.json").exists()

    outcome = recipe(tiny, output, "--only", "statistics of back")
    assert outcome.status == 0
    assert made(outcome.err) == {"statistics of back"}

    outcome = recipe(tiny, output)
    assert made(outcome.err) == EVERYTHING - {"features", "ubm", "statistics of back"}
    assert datasets(output) == datasets(finished)
    assert (output / "results.json").is_file()


def test_only_the_report_can_be_redone(recipe, tiny, output):
    (output / "results.json").unlink()
    outcome = recipe(tiny, output, "--only", "report")
    assert outcome.status == 0
    assert (output / "results.json").is_file()
    (output / "scores/svm-gmm.h5").unlink()
    outcome = recipe(tiny, output, "--only", "report")
    refused(outcome, "needs stage 'scores of svm-gmm', which is missing")


def test_until_accepts_the_beginning_of_a_stage_name(recipe, tiny, output):
    (output / "results.json").unlink()
    (output / "scores/svm-gmm-nap.h5").unlink()
    outcome = recipe(tiny, output, "--until", "scores")
    assert outcome.status == 0
    assert made(outcome.err) == {"scores of svm-gmm-nap"}
    assert not (output / "results.json").exists()


@pytest.mark.parametrize("limit", ["--only", "--until"])
def test_unknown_stages_are_refused(recipe, tiny, tmp_path, limit):
    outcome = recipe(tiny, tmp_path, limit, "statistics of all", nap__rank=0)
    expected = "features, ubm, statistics of enroll(.|\n)*report$"
    refused(outcome, f"{limit} statistics of all is not a stage: expected one of {expected}")
    assert made(outcome.err) == set()
    assert not leftovers(tmp_path)


def stages_expected(outcome):
    """Names of stages in the error of a recipe."""
    return re.search("is not a stage: expected one of (.*)", outcome.err)[1].split(", ")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "prepare"])
def test_unknown_stages_are_refused_before_the_corpus_is_made(recipe, tiny, tmp_path, name):
    for limit, stage in [
        ("--only", "nonsense"),
        ("--until", "nonsense"),
        ("--until", ""),
        ("--only", " "),
    ]:
        early = recipe("simulated", tmp_path / "early", limit, stage, name=name)
        assert early.status == 2
        assert not (tmp_path / "early").exists()
    kinds = stages_expected(early)
    ranks = {"ivector": {"total_variability__rank": 3}, "jfa": JOINT_FACTORS}
    late = recipe(
        tiny, tmp_path / "late", "--until", "scores of nonsense", name=name, **ranks.get(name, {})
    )
    names = stages_expected(late)
    assert {stage.split(" of ")[0] for stage in names} == set(kinds)


def test_a_flipped_bit_is_detected_and_repaired(recipe, tiny, finished, output):
    path = output / "data/sv_test.h5"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    assert status(output)["supervectors of test"] == "damaged"
    outcome = recipe(tiny, output)
    assert made(outcome.err) == {"supervectors of test"}
    assert "has changed since it was written" in outcome.err
    assert datasets(output) == datasets(finished)
