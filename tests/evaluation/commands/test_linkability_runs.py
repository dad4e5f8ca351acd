"""Linkability of attackers against anonymisers, compared, and ranks that are taken up again."""

import json
import re

import numpy as np
import pytest
from command_lines import passes, refused, run

from evaluation.embeddings import Embeddings, write_embeddings

pytestmark = pytest.mark.whole

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
                write_embeddings(
                    tmp_path / attacker / name / f"{side}.npz", Embeddings(ids, speakers, vectors)
                )
    return tmp_path


def measure_all(folder, utterances):
    """Run linkability for each attacker and anonymiser; return the runs as linkability-compare names them."""
    runs = []
    for attacker in ("ECAPA", "ResNet"):
        for name in NOISE:
            source, output = folder / attacker / name, folder / "out" / attacker / name
            sides = "--enroll", source / "enroll.npz", "--test", source / "trial.npz"
            passes(
                "linkability",
                *sides,
                "--utterances",
                utterances,
                "--bootstrap",
                0,
                "--no-plots",
                "-o",
                output,
            )
            runs.append(f"{attacker}/{name}={output}")
    return runs


def test_a_comparison_has_both_factors_and_omits_the_originals(folder):
    runs = measure_all(folder, "3")
    passes(
        "linkability-compare",
        *runs,
        "--original",
        "orig",
        "--permutations",
        20,
        "-o",
        folder / "out",
    )
    compared = json.loads((folder / "out" / "comparison.json").read_text())
    assert compared["originals"] == ["orig"]
    assert {condition["anonymiser"] for condition in compared["conditions"]} == {"B3", "B5"}
    # one pair of anonymisers for each of 2 attackers
    assert compared["factors"]["anonymiser"]["easy"]["n_pairs"] == 2
    pictures = {path.stem for path in (folder / "out").glob("*.png")}
    assert pictures == {
        "jaccard", "linkability", "distribution_L3", "intersections_attacker", "intersections_anonymiser",
    }  # fmt: skip
    text = (folder / "out" / "distribution_L3.svg").read_text()
    assert "<svg" in text


def test_a_comparison_draws_each_factor_for_several_numbers_of_utterances(folder):
    runs = measure_all(folder, "1,2,9")
    passes(
        "linkability-compare",
        *runs,
        "--original",
        "orig",
        "--permutations",
        20,
        "-o",
        folder / "out",
    )
    pictures = {path.stem for path in (folder / "out").glob("intersections*.png")}
    assert pictures == {
        *("intersections_attacker", "intersections_attacker_unions", "intersections_anonymiser"),
        *(
            "intersections_anonymiser_unions",
            "intersections_utterances",
            "intersections_utterances_pairs",
        ),
    }


def test_each_number_of_utterances_has_a_line_and_shared_notes_appear_once(folder):
    source = folder / "ECAPA" / "B3"
    sides = "--enroll", source / "enroll.npz", "--test", source / "trial.npz"
    shown = passes(
        "linkability", *sides, "--utterances", "1,2,9,10", "--bootstrap", 20, "--no-plots"
    )
    lines = [line for line in shown.stdout.splitlines() if line.startswith("L = ")]
    assert len(lines) == 4
    for line in lines:
        assert re.search(r"rank-1 rate [01]\.\d{4} \[[01]\.\d{4}, [01]\.\d{4}\]", line)
    notes = [line for line in shown.stdout.splitlines() if line.startswith("note:")]
    assert any("have fewer than 9 utterances" in note for note in notes)
    assert len(notes) == len(set(notes))


def test_an_unknown_original_is_refused(folder):
    for name in NOISE:
        source = folder / "ECAPA" / name
        sides = "--enroll", source / "enroll.npz", "--test", source / "trial.npz"
        passes("linkability", *sides, "--bootstrap", 0, "--no-plots", "--output", folder / name)
    runs = [f"ECAPA/{name}={folder / name}" for name in NOISE]
    with_it = run(
        "linkability-compare", *runs, "--permutations", 10, "--original", "orig", "--json", "-"
    )
    assert len(json.loads(with_it.stdout)["conditions"]) == 2
    message = refused("linkability-compare", *runs, "--original", "nobody")
    assert (
        "expected --original among the levels B3, B5, ECAPA, orig, got nobody"
        in message.replace("\n", " ")
    )


def test_saved_ranks_serve_other_sizes_and_ties(folder):
    source = folder / "ECAPA" / "B3"
    sides = "--enroll", source / "enroll.npz", "--test", source / "trial.npz"
    settings = "--sizes", "2,7", "--ties", "strict", "--bootstrap", 20, "--no-plots"
    passes(
        "linkability",
        *sides,
        "--bootstrap",
        0,
        "--no-plots",
        "--keep-impostors",
        "--output",
        folder / "first",
    )
    again = passes(
        "linkability", "--ranks", folder / "first", *settings, "--output", folder / "again"
    )
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
def test_saved_ranks_that_do_not_match_are_refused(first, arguments, words):
    assert words in refused("linkability", *arguments).replace("\n", " ")


def test_impostor_scores_of_other_trials_are_refused(first):
    np.savez(first / "impostors.npz", **{"1": np.zeros((3, 2))})
    message = refused("linkability-extrapolate", "first", "--populations", 100)
    assert "expected a row for each of 24 trials" in message.replace("\n", " ")
    (first / "impostors.npz").write_bytes(b"PK nonsense")
    refused("linkability-extrapolate", "first", "--populations", 100)
