"""The command spkver-eval."""

import json
import re

import numpy as np
import pytest
from command_lines import passes, refused, run

from evaluation import formats
from evaluation.trials.lists import Key, Scores


@pytest.fixture
def lists(tmp_path, data):
    """A folder with the golden scores and their key, in both formats."""
    with np.load(data / "det.npz") as golden:
        target, nontarget = golden["target"], golden["nontarget"]
    names = [f"s{number:04d}" for number in range(len(target) + len(nontarget))]
    models = ["m"] * len(names)
    scores = Scores.from_ids(models, names, np.concatenate([target, nontarget]))
    key = Key.from_ids(models[::-1], names[::-1], [number < len(target) for number in range(len(names))][::-1])
    for extension in ("txt", "h5"):
        formats.write_scores(tmp_path / f"scores.{extension}", scores)
        formats.write_key(tmp_path / f"key.{extension}", key)
    return tmp_path


@pytest.mark.parametrize("extension", ["txt", "h5"])
def test_metrics_as_json_alone(lists, extension):
    result = passes("metrics", "-s", lists / f"scores.{extension}", "-k", lists / f"key.{extension}", "--json", "-")
    found = json.loads(result.stdout)
    assert set(found) >= {"convention", "eer", "threshold_at_eer", "cllr", "min_cllr", "zebra", "d_sys", "tpr_at_fpr"}
    assert found["convention"] == "default"
    assert (found["n_target"], found["n_nontarget"]) == (108, 2056)
    assert found["eer"]["rocch"] == pytest.approx(0.20806610754810065, abs=1e-12)
    assert list(found["min_dcf"]) == list(found["min_dcf_unnormalised"]) == ["0.001", "0.01", "0.05", "0.5"]
    assert found["min_dcf_unnormalised"]["0.5"] == pytest.approx(0.2076127684104338, abs=1e-12)
    assert found["min_dcf"]["0.5"] == pytest.approx(0.4152255368208676, abs=1e-12)
    assert found["prbep"] == pytest.approx(61)


def test_metrics_as_table_and_file(lists):
    path = lists / "out" / "metrics.json"
    result = passes(
        "metrics", "-s", lists / "scores.h5", "-k", lists / "key.txt", "-p", "0.10", "-p", ".5", "--json", path
    )
    assert "20.807 %" in result.stdout
    assert "minDCF at prior 0.10 (not normalised)" in result.stdout
    assert list(json.loads(path.read_text())["min_dcf"]) == ["0.10", ".5"]


def test_the_default_table_of_several_systems(tmp_path):
    """Targets in the last bin alone: the histogram's D_sys says half; differences below 0 are written as others are."""
    ids = [f"m{model} s{segment}" for model in range(20) for segment in range(20)]
    truths = [number % 21 == 0 for number in range(400)]
    values = [10 + number / 4000 if truth else number % 7 for number, truth in enumerate(truths)]
    for name, scores in (("perfect", values), ("poor", np.where(truths, 5.5, values))):
        rows = [f"{pair} {score}\n" for pair, score in zip(ids, scores, strict=True)]
        write(tmp_path / f"{name}.txt", "".join(rows))
    rows = [f"{pair} {'target' if truth else 'nontarget'}\n" for pair, truth in zip(ids, truths, strict=True)]
    key = write(tmp_path / "key.txt", "".join(rows))
    both = ["-s", tmp_path / "perfect.txt", "-s", tmp_path / "poor.txt", "-k", key]
    passes("metrics", *both, "--bootstrap", "10", "--bootstrap-by", "id", "--markdown", tmp_path / "t.md")
    heading, _, perfect, _, *rest = (tmp_path / "t.md").read_text().splitlines()
    assert r"D\_sys by isotonic regression" in heading
    assert "linkability" not in heading
    assert perfect.split("|")[-2].strip() == "1.000"
    assert re.search(r"\| -0\.\d{3} \[-?0\.\d{3}, ", rest[-1])
    assert "e-0" not in "".join(rest)
    chosen = run("metrics", *both, "--columns", "d_sys")
    assert "perfect: misleads: far below d_sys_pav" in chosen.stdout


def test_several_systems_need_a_label_each(lists):
    both = ["-s", lists / "scores.h5", "-s", lists / "scores.txt", "-k", lists / "key.h5", "-l", "one"]
    assert "expected a key (or one for all) and a label for each file of scores" in refused(
        "plot", "det", *both, "-o", lists / "det.png"
    )


def write(path, content):
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("scores", "key", "words"),
    [
        (
            "a s 1\n",
            "a s target\nb s nontarget\n",
            ["s.txt", "k.txt", "1 trial of 2 without a score: 'b s'", "--missing"],
        ),
        ("a s 1\nc s 2\n", "a s target\nb s nontarget\n", ["the model 'c'", "--missing drop"]),
    ],
)
def test_bad_input_is_one_message_and_status_2(tmp_path, scores, key, words):
    paths = write(tmp_path / "s.txt", scores), write(tmp_path / "k.txt", key)
    result = refused("metrics", "-s", paths[0], "-k", paths[1], "--json", "-")
    assert result.startswith("Error: ")
    assert result.count("\n") == 1
    for word in words:
        assert word in result


def test_dropping_is_asked_for_and_counted(tmp_path):
    scores = write(tmp_path / "s.txt", "a s 1.5\nb s 0\nC s 0\n")
    key = write(tmp_path / "k.txt", "a s target\nb s nontarget\nc s nontarget\n")
    result = passes("metrics", "-s", scores, "-k", key, "--missing", "drop", "--json", "-")
    assert json.loads(result.stdout)["n_nontarget"] == 1
    assert "dropped 1 score with an id that the key does not know" in result.stderr
    assert "dropped 1 trial of 3 without a score: 'c s'" in result.stderr


@pytest.mark.parametrize("prior", ["0", "1", "2", "x", "nan"])
def test_a_prior_out_of_range_is_refused(lists, prior):
    assert f"between 0 and 1, got '{prior}'" in refused(
        "metrics", "-s", lists / "scores.h5", "-k", lists / "key.h5", "-p", prior
    )
