"""What vectors tell of an attribute: recalls that can be known beforehand, and input that cannot be used."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.uncertainty import Resampling
from evaluation.utility.attributes import Sides, attribute_leakage, predict_labels
from spkbase.errors import DataError

NONE = Resampling(0)


def people(count, *, shift, seed=0, utterances=4, prefix="s"):
    """Speakers of two sexes in turn, whose vectors differ by `shift` in one dimension, in deviations."""
    rng = np.random.default_rng(seed)
    names = [f"{prefix}{number:02d}" for number in range(count)]
    labels = {name: "fm"[number % 2] for number, name in enumerate(names)}
    owners = [name for name in names for _ in range(utterances)]
    vectors = rng.standard_normal((len(owners), 6))
    vectors[:, 2] += [shift * (labels[name] == "f") for name in owners]
    ids = [f"{name}-{number}" for name in names for number in range(utterances)]
    return Embeddings(np.array(ids, object), np.array(owners, object), vectors), labels


def turned(vectors):
    """Vectors of `people` 12 deviations apart, each on the other one's side."""
    values = np.array(vectors.vectors)
    values[:, 2] = 12 - values[:, 2]
    return Embeddings(vectors.ids, vectors.speakers, values)


def uars(found):
    return {scenario: recall.interval.value for scenario, recall in found.recalls.items()}


def test_predictions_equal_logistic_regression_on_standardised_vectors():
    """Against the gradient of its loss, which must be 0 where the regression has ended."""
    rng = np.random.default_rng(1)
    vectors, labels = rng.standard_normal((60, 3)) * [1, 5, 0.1], np.repeat(["a", "b"], [20, 40])
    vectors[:20, 1] += 6
    from scipy.optimize import minimize

    scaled = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    signs, weights = np.where(labels == "b", 1, -1), np.where(labels == "b", 60 / 80, 60 / 40)

    def loss(parameters):
        margins = signs * (scaled @ parameters[:3] + parameters[3])
        return (
            0.1 * (weights * np.logaddexp(0, -margins)).sum() + parameters[:3] @ parameters[:3] / 2
        )

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    tested = rng.standard_normal((200, 3)) * [1, 5, 0.1] + [0, 3, 0]
    values = (tested - vectors.mean(axis=0)) / vectors.std(axis=0) @ best[:3] + best[3]
    clear = np.abs(values) > 1e-3
    expected = np.where(values > 0, "b", "a")[clear]
    assert np.array_equal(np.array(predict_labels(vectors, list(labels), tested))[clear], expected)


def test_separated_classes_are_predicted_and_equal_ones_are_at_chance():
    apart, labels = people(20, shift=12)
    same, _ = people(20, shift=0)
    assert uars(attribute_leakage(Sides(apart), labels, resampling=NONE)) == {"original": 1}
    assert uars(attribute_leakage(Sides(same), labels, resampling=NONE))[
        "original"
    ] == pytest.approx(0.5, abs=0.12)
    flat = Embeddings(apart.ids, apart.speakers, np.ones_like(apart.vectors))
    assert uars(attribute_leakage(Sides(flat), labels, resampling=NONE)) == {"original": 0.5}


def test_the_recall_of_two_gaussians_matches_its_closed_form():
    """2 deviations apart the best rule is right in 84 % of the cases."""
    from scipy.stats import norm

    vectors, labels = people(200, shift=2, utterances=10)
    found = attribute_leakage(Sides(vectors), labels)
    interval = found.recalls["original"].interval
    assert interval.value == pytest.approx(norm.cdf(1), abs=0.02)
    assert interval.low < norm.cdf(1) < interval.high
    assert found.recalls["original"].chance == 0.5


def test_each_scenario_trains_on_its_own_side():
    """Anonymisation turns the attribute round: who knows reads it, who does not reads the opposite."""
    original, labels = people(20, shift=12)
    found = attribute_leakage(Sides(original, turned(original)), labels, resampling=NONE)
    assert uars(found) == {"original": 1, "ignorant": pytest.approx(0, abs=0.05), "informed": 1}
    assert found.differences["ignorant"].value == pytest.approx(-1, abs=0.05)
    assert found.differences["informed"].value == 0
    assert "ignorant: below chance" in " ".join(
        attribute_leakage(Sides(original, turned(original)), labels).notes
    )


def shaken(vectors):
    """Vectors that are hardly others, and yet no copies."""
    return np.asarray(vectors) + 0.1 * np.random.default_rng(9).normal(size=vectors.shape)


def test_a_separate_training_set_is_used():
    tested, labels = people(4, shift=12)
    others, more = people(30, shift=12, seed=1, prefix="t")
    found = attribute_leakage(Sides(tested), labels | more, training=Sides(others), resampling=NONE)
    assert found.learnt_from == "training"
    assert uars(found) == {"original": 1}
    found = attribute_leakage(
        Sides(tested), labels | more | {"s00": "x"}, training=Sides(others), resampling=NONE
    )
    assert found.notes == ("no training speakers of class 'x', which is never predicted",)
    assert found.recalls["original"].recalls["x"] == 0
    sides = {"training": Sides(others, turned(others)), "resampling": NONE}
    hardly_changed = replace(tested, vectors=shaken(tested.vectors))
    found = attribute_leakage(Sides(tested, hardly_changed), labels | more, **sides)
    assert uars(found) == {"original": 1, "ignorant": 1, "informed": pytest.approx(0, abs=0.1)}


def test_tested_speakers_are_never_trained_on():
    """Vectors that hold nothing but who speaks tell no attribute of other speakers, whatever is in the training set."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((16, 40)) * 20
    owners = [f"s{number:02d}" for number in range(16) for _ in range(6)]
    vectors = np.repeat(means, 6, axis=0) + rng.standard_normal((96, 40))
    given = Embeddings([f"u{number}" for number in range(96)], owners, vectors)
    labels = {f"s{number:02d}": "ab"[number % 2] for number in range(16)}
    assert 0.1 < uars(attribute_leakage(Sides(given), labels, resampling=NONE))["original"] < 0.9
    with pytest.raises(DataError, match="no labelled speaker who is not tested too"):
        attribute_leakage(Sides(given), labels, training=Sides(given), resampling=NONE)


def test_labels_may_belong_to_utterances_and_have_many_classes():
    vectors, _ = people(12, shift=0, utterances=6)
    moods = {name: ["sad", "glad", "calm"][number % 3] for number, name in enumerate(vectors.ids)}
    places = np.array([[mood == "sad", mood == "glad", 0, 0, 0, 0] for mood in moods.values()])
    placed = np.asarray(vectors.vectors) + 9 * places
    found = attribute_leakage(
        Sides(Embeddings(vectors.ids, vectors.speakers, placed)), moods, resampling=NONE
    )
    assert uars(found)["original"] > 0.98
    assert found.recalls["original"].chance == pytest.approx(1 / 3)


def test_rare_classes_and_missing_labels_are_omitted_with_a_note():
    vectors, labels = people(20, shift=12)
    labels["s00"] = "x"
    del labels["s01"]
    labels["s02"] = ""
    with pytest.raises(DataError, match="8 of 80 utterances without a label: 's01-0'"):
        attribute_leakage(Sides(vectors), labels)
    found = attribute_leakage(Sides(vectors), labels, missing="drop", resampling=NONE)
    assert found.notes == (
        "8 of 80 utterances without a label were left out",
        "classes with a single speaker were left out: 'x'",
    )
    assert found.recalls["original"].n_speakers == 17


def test_unusable_input_is_refused():
    vectors, labels = people(8, shift=2)
    with pytest.raises(
        DataError, match="at least two classes with two speakers each, got 'f' with 8"
    ):
        attribute_leakage(Sides(vectors), dict.fromkeys(labels, "f"))
    with pytest.raises(DataError, match="32 of 32 utterances without a label"):
        attribute_leakage(Sides(vectors), {"nobody": "f"}, missing="drop")
    values = shaken(vectors.vectors)
    values[3, 1], values[7, 0] = np.nan, np.inf
    broken = Embeddings(vectors.ids, vectors.speakers, values)
    for sides in (Sides(broken), Sides(vectors, broken)):
        with pytest.raises(DataError, match="not finite"):
            attribute_leakage(sides, labels)
    few = Embeddings(vectors.ids[:-1], vectors.speakers[:-1], np.asarray(vectors.vectors)[:-1])
    with pytest.raises(DataError, match="1 utterance missing: 's07-3'"):
        attribute_leakage(Sides(vectors, few), labels)
    wide = Embeddings(vectors.ids, vectors.speakers, np.hstack([values[:, :1]] * 3))
    with pytest.raises(DataError, match="dimensions"):
        attribute_leakage(Sides(vectors, wide), labels)


@pytest.fixture
def folder(tmp_path):
    original, labels = people(20, shift=3)
    anonymised, _ = people(20, shift=0.5, seed=3)
    write_embeddings(tmp_path / "a.npz", original)
    write_embeddings(tmp_path / "b.npz", anonymised)
    (tmp_path / "spk2gender").write_text(
        "".join(f"{name} {label}\n" for name, label in labels.items())
    )
    rows = "".join(
        f"{name},{label},{'old' if int(name[1:]) < 10 else 'young'}\n"
        for name, label in labels.items()
    )
    (tmp_path / "people.csv").write_text(f"speaker,sex,age\n{rows}")
    return tmp_path


def test_the_command_gives_the_results_of_the_function(folder):
    given = "attributes", "--original", folder / "a.npz"
    output = passes(
        *given, "--anonymised", folder / "b.npz", "--labels", folder / "spk2gender"
    ).output
    assert [line.split()[:2] for line in output.splitlines()[2:5]] == [
        ["spk2gender", name] for name in ("original", "ignorant", "informed")
    ]
    table = "--labels", folder / "people.csv", "--column", "sex", "--column", "age"
    report = json.loads(passes(*given, *table, "--json", "-").stdout)
    original, labels = people(20, shift=3)
    assert report["sex"] == json.loads(
        json.dumps(attribute_leakage(Sides(original), labels).to_dict())
    )
    assert report["age"]["original"]["value"] < 0.8


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--labels", "people.csv", "--column", "height"], "no column 'height'"),
        (["--labels", "missing"], "missing"),
        (["--labels", "spk2gender", "--train-anonymised", "b.npz"], "needs --train-original"),
        (
            ["--labels", "spk2gender", "--train-original", "a.npz"],
            "no labelled speaker who is not tested too",
        ),
    ],
)
def test_the_command_gives_one_error(arguments, says, folder):
    located = [
        str(folder / name) if (folder / name).exists() or name == "missing" else name
        for name in arguments
    ]
    assert says in refused("attributes", "--original", folder / "a.npz", *located)


def test_voices_split_over_several_folds_are_reported(tmp_path):
    """Vectors that tell the voice and not the attribute: without speakers the voice is learnt and tested."""
    rng = np.random.default_rng(0)
    voices = np.repeat(np.arange(12), 5)
    vectors = rng.standard_normal((12, 16))[voices] + 0.1 * rng.standard_normal((60, 16))
    ids = [f"u{number:02d}" for number in range(60)]
    np.savez(tmp_path / "e.npz", ids=ids, vectors=vectors)
    (tmp_path / "labels").write_text(
        "".join(f"{name} {'fm'[v % 2]}\n" for name, v in zip(ids, voices, strict=True))
    )
    (tmp_path / "utt2spk").write_text(
        "".join(f"{name} s{voice}\n" for name, voice in zip(ids, voices, strict=True))
    )
    call = (
        "attributes",
        "--original",
        tmp_path / "e.npz",
        "--labels",
        tmp_path / "labels",
        "--bootstrap",
        0,
    )
    alone, known = (
        json.loads(passes(*call, *more, "--json", "-").stdout)["labels"]
        for more in ((), ("--segment-speakers", tmp_path / "utt2spk"))
    )
    assert alone["original"]["value"] > known["original"]["value"] + 0.3
    assert "one voice may be in training and in test, and recalls are too high" in alone["notes"][0]
    assert known["notes"] == []


def test_classes_that_differ_in_case_are_reported_once(caplog):
    vectors, labels = people(12, shift=3)
    names = list(labels)
    labels |= {names[0]: labels[names[0]].upper(), names[2]: labels[names[2]].upper()}
    attribute_leakage(Sides(vectors, turned(vectors)), labels, resampling=NONE)
    assert caplog.text.count("some classes differ in case") == 1
