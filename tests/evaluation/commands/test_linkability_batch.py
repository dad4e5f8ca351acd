"""Linkability of attackers against anonymisers from one file, and ranks that are taken up again."""

import json
import re

import numpy as np
import pytest
from command_lines import passes, refused, run

from evaluation.embeddings import Embeddings, write_embeddings

SPEAKERS = [f"s{number:02d}" for number in range(24)]
NOISE = {"orig": 0.3, "B3": 1.2, "B5": 1.6}


@pytest.fixture
def folder(tmp_path):
    """Vectors of two attackers on original speech and two anonymisers."""
    voices = np.random.default_rng(0).normal(size=(len(SPEAKERS), 8))
    for place, attacker in enumerate(("ECAPA", "ResNet")):
        for name, noise in NOISE.items():
            rng = np.random.default_rng([place, list(NOISE).index(name)])
            for side, count in (("enroll", 1), ("trial", 3)):
                speakers = [speaker for speaker in SPEAKERS for _ in range(count)]
                ids = [f"{speaker}-{side}-{number}" for number, speaker in enumerate(speakers)]
                vectors = np.repeat(voices, count, axis=0) + noise * rng.normal(size=(len(ids), 8))
                (tmp_path / attacker / name).mkdir(parents=True, exist_ok=True)
                write_embeddings(tmp_path / attacker / name / f"{side}.npz", Embeddings(ids, speakers, vectors))
    return tmp_path


CONFIG = """
attackers: [ECAPA, ResNet]
anonymisers: [orig, B3, B5]
originals: [orig]
enroll: "{attacker}/{anonymiser}/enroll.npz"
test: "{attacker}/{anonymiser}/trial.npz"
options: {utterances: [3], bootstrap: 20, no_plots: true}
compare: {permutations: 20}
"""


def test_a_batch_is_its_runs_and_their_comparison(folder):
    (folder / "batch.yaml").write_text(CONFIG)
    result = passes("linkability-batch", folder / "batch.yaml", "-o", folder / "out")
    assert "ResNet/B5:" in result.stdout
    passes(
        "linkability", "--enroll", folder / "ECAPA/B3/enroll.npz", "--test", folder / "ECAPA/B3/trial.npz",
        "--utterances", 3, "--bootstrap", 20, "--no-plots", "--output", folder / "single",
    )  # fmt: skip
    batched = folder / "out" / "ECAPA" / "B3"
    assert (batched / "curve.csv").read_bytes() == (folder / "single" / "curve.csv").read_bytes()
    compared = json.loads((folder / "out" / "comparison.json").read_text())
    assert compared["originals"] == ["orig"]
    assert {condition["anonymiser"] for condition in compared["conditions"]} == {"B3", "B5"}
    assert compared["factors"]["anonymiser"]["easy"]["n_pairs"] == 2  # of 2 attackers
    pictures = {path.stem for path in (folder / "out").glob("*.png")}
    assert pictures == {
        "jaccard", "linkability", "distribution_L3", "intersections_attacker", "intersections_anonymiser",
    }  # fmt: skip
    text = (folder / "out" / "distribution_L3.svg").read_text()
    assert "<svg" in text


def test_a_batch_says_each_thing_once(folder):
    """A line a number of utterances, with its interval; a note that all lengths and runs share once."""
    (folder / "batch.yaml").write_text(CONFIG.replace("[3]", "[1, 2, 9]"))
    result = run("linkability-batch", folder / "batch.yaml", "-o", folder / "out")
    pictures = {path.stem for path in (folder / "out").glob("intersections*.png")}
    assert pictures == {
        *("intersections_attacker", "intersections_attacker_unions", "intersections_anonymiser"),
        *("intersections_anonymiser_unions", "intersections_utterances", "intersections_utterances_pairs"),
    }
    lines = result.stdout.splitlines()
    assert sum(line.startswith("L = ") for line in lines) == 18
    assert all(
        re.search(r"rank-1 rate [01]\.\d{4} \[[01]\.\d{4}, [01]\.\d{4}\]", line) for line in lines if line[:4] == "L = "
    )
    assert sum("have fewer than 9 utterances" in line for line in lines if line.startswith("note: 24 of 24")) == 1
    assert lines.index(next(line for line in lines if "conditions" in line)) < 28


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("attackers: [ECAPA, ResNet]", "attackers: []", "attackers must be different names of folders, got none"),
        ("[ECAPA, ResNet]", "[ECAPA, ECAPA]", "attackers must be different names of folders, got ECAPA, ECAPA"),
        ("[ECAPA, ResNet]", "[../ECAPA]", "different names of folders, got ../ECAPA"),
        ("originals: [orig]", "originals: [raw]", "originals must be among the anonymisers, got raw"),
        ("bootstrap: 20", "boostrap: 20", "No such option '--boostrap'"),
        ("compare: {permutations: 20}", "seeds: 1", "unknown configuration key 'seeds'"),
        ("compare: {permutations: 20}", "compare: 3", "compare holds names with values"),
        ("{permutations: 20}", "{permutation: 20}", "No such option '--permutation'"),
        (CONFIG, "- 1", "expected keys and values"),
        (CONFIG, "a: [", "not YAML"),
        ("ResNet]", "Missing]", "Missing/orig/enroll.npz"),
        ("utterances: [3]", "utterances: [0]", "expected all, numbers from 1"),
    ],
)
def test_a_malformed_batch_is_refused(folder, before, after, words):
    (folder / "batch.yaml").write_text(CONFIG.replace(before, after))
    result = refused("linkability-batch", folder / "batch.yaml", "-o", folder / "out")
    assert words in result.replace("\n", " ")
    assert (folder / "out").exists() == words.startswith("Missing")


def test_an_unknown_original_is_refused(folder):
    for name in NOISE:
        source = folder / "ECAPA" / name
        sides = "--enroll", source / "enroll.npz", "--test", source / "trial.npz"
        passes("linkability", *sides, "--bootstrap", 0, "--no-plots", "--output", folder / name)
    runs = [f"ECAPA/{name}={folder / name}" for name in NOISE]
    with_it = run("linkability-compare", *runs, "--permutations", 10, "--original", "orig", "--json", "-")
    assert len(json.loads(with_it.stdout)["conditions"]) == 2
    message = refused("linkability-compare", *runs, "--original", "nobody")
    assert "expected --original among the levels B3, B5, ECAPA, orig, got nobody" in message.replace("\n", " ")


def test_ranks_are_taken_up_for_other_sizes_and_ties(folder):
    source = folder / "ECAPA" / "B3"
    sides = "--enroll", source / "enroll.npz", "--test", source / "trial.npz"
    settings = "--sizes", "2,7", "--ties", "strict", "--bootstrap", 20, "--no-plots"
    passes("linkability", *sides, "--bootstrap", 0, "--no-plots", "--keep-impostors", "--output", folder / "first")
    again = passes("linkability", "--ranks", folder / "first", *settings, "--output", folder / "again")
    whole = passes("linkability", *sides, *settings, "--output", folder / "whole")
    assert again.stdout == whole.stdout
    for name in ("curve.csv", "per_speaker.csv"):
        assert (folder / "again" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    assert (folder / "again" / "ranks.npz").exists()


@pytest.fixture
def first(folder, monkeypatch):
    """Ranks of one run, beside the vectors that they are of."""
    monkeypatch.chdir(folder)
    sides = "--enroll", "ECAPA/B3/enroll.npz", "--test", "ECAPA/B3/trial.npz"
    run("linkability", *sides, "--bootstrap", 0, "--no-plots", "--output", "first")
    return folder / "first"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ranks", "first", "--enroll", "x"), "expected --enroll FILE with --test FILE"),
        (("--ranks", "first", "--utterances", 5), "holds ranks of L = 1, not of 5"),
        (("--ranks", "nowhere"), "cannot be read"),
        (("--ranks", "first", "--keep-impostors"), "needs a folder"),
    ],
)
def test_ranks_that_do_not_fit_are_refused(first, arguments, words):
    assert words in refused("linkability", *arguments).replace("\n", " ")


def test_impostor_scores_of_other_trials_are_refused(first):
    np.savez(first / "impostors.npz", **{"1": np.zeros((3, 2))})
    message = refused("linkability-extrapolate", "first", "--populations", 100)
    assert "expected a row for each of 24 trials" in message.replace("\n", " ")
    (first / "impostors.npz").write_bytes(b"PK nonsense")
    refused("linkability-extrapolate", "first", "--populations", 100)
