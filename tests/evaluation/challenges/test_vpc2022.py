"""Files of results of the VoicePrivacy Challenges."""

import re
from pathlib import Path

import pytest
import yaml

from evaluation.challenges.team_scores import (
    WEIGHTS,
    read_results,
    recompute_averages,
    weighted_average,
)
from evaluation.metrics.disclosure import tag
from spkbase.errors import DataError


def test_the_recipe_has_the_weights_of_the_challenge():
    config = (
        Path(__file__).resolve().parents[3] / "recipes" / "voiceprivacy" / "config" / "vpc2022.yaml"
    )
    assert yaml.safe_load(config.read_text(encoding="utf-8"))["challenge"]["weights"] == WEIGHTS
    assert 2 * sum(WEIGHTS.values()) == pytest.approx(1)  # the weights of both sexes sum to 1


@pytest.mark.golden
@pytest.mark.parametrize("name", ["mcadams", "tts_old_c"])
def test_every_average_of_a_summary_is_recomputed(shared, name):
    results = read_results(shared / "formats" / "vpc2022_results" / f"RESULTS_summary_{name}")
    assert len(results["averages"]) == 12
    computed = recompute_averages(results)
    assert {key: f"{value:.3f}" for key, value in computed.items()} == {
        key: f"{value:.3f}" for key, value in results["averages"].items()
    }


@pytest.mark.golden
@pytest.mark.parametrize("name", ["orig", "anon"])
def test_the_categories_of_zebra_equal_those_in_the_files(shared, name):
    path = shared / "formats" / "vpc2022_results" / f"results.{name}_mcadams"
    tags = re.findall(r"Individual: \S+ \((\w)\)", path.read_text())
    assert len(tags) == 36
    assert [tag(value) for value in read_results(path)["individual"].values()] == tags


@pytest.mark.golden
def test_both_kinds_of_file_give_equal_figures(shared):
    folder = shared / "formats" / "vpc2022_results"
    summary, single = (
        read_results(folder / "RESULTS_summary_mcadams"),
        read_results(folder / "results.anon_mcadams"),
    )
    same = [key for key in summary["eer"] if key.split("-")[0].endswith("_anon")]
    assert len(same) == 12
    assert all(single["eer"][key] == summary["eer"][key] for key in same)
    assert single["pitch"] == summary["pitch"]
    assert single["gain"] == summary["gain"]
    assert single["deid"]["libri_dev_trials_f"] == 0.7805323634528221


@pytest.mark.golden
def test_files_of_2020_are_read(shared):
    results = read_results(shared / "formats" / "vpc2020_kaldi_dir" / "results.txt")
    expected = {"eer": 7.664, "min_cllr": 0.184, "cllr": 26.793, "rocch_eer": 7.165}
    assert {
        name: results[name]["libri_test_enrolls-libri_test_trials_f"] for name in expected
    } == expected
    assert results["wer"]["libri_test_asr"] == 4.14
    assert recompute_averages(results) == {}


def test_an_average_needs_all_of_its_sets():
    values = {("libri", sex): 1.0 for sex in "fm"} | {("vctk", sex): 2.0 for sex in "fm"}
    assert weighted_average(values) is None
    values |= {("vctk_common", sex): 10.0 for sex in "fm"}
    assert weighted_average(values) == pytest.approx(0.5 * 1 + 0.4 * 2 + 0.1 * 10)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "empty"),
        ("ASV-a_enrolls-a_trials_f\n  EER: high%\n", 2, "got 'EER: high%'"),
        ("EER: 5%\n", 1, "got 'EER: 5%'"),
        ("ASV-a-b EER: 5%\nASV-a-b EER: 5%\n", 2, "EER"),
        ("some words\n", 1, "some words"),
    ],
)
def test_other_files_are_refused_with_their_line(tmp_path, text, line, words):
    path = tmp_path / "results.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=words) as caught:
        read_results(path)
    assert (caught.value.file, caught.value.line) == (path, line)
