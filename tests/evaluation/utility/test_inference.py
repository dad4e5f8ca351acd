"""Sets of attributes and inference: brute force on random tables, the definition of the interval, and misuse."""

import json
from collections import Counter

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.uncertainty import Resampling
from evaluation.utility import (
    Sides,
    attribute_leakage,
    attribute_risk,
    inference_risk,
    inferred_sets,
    set_sizes,
    shares_named,
    uniqueness,
)
from spkbase.errors import DataError

NONE = Resampling(0)


def crowd(n_people=12, *, first=0, noise=0.1, seed=0, recordings=3, prefix="", hidden=(), told=8.0):
    """Voices that tell the sex in the first dimension, the age in three, and the person in the others; and a table."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(first, first + n_people)
    table = {
        "sex": {f"s{number:02d}": "fm"[number % 2] for number in numbers},
        "age": {f"s{number:02d}": f"{20 + 10 * (number // 2 % 3)}" for number in numbers},
    }
    people = np.random.default_rng(99).standard_normal((100, 8))
    vectors = []
    for number in numbers:
        own = people[number].copy()
        own[:4] = told * np.array([number % 2, *(number // 2 % 3 == np.arange(3))])
        own[list(hidden)] = 0.0
        vectors += [own + noise * rng.standard_normal(8) for _ in range(recordings)]
    names = [f"s{number:02d}" for number in numbers for _ in range(recordings)]
    ids = [f"{prefix}{name}-{row % recordings}" for row, name in enumerate(names)]
    return Embeddings(np.array(ids, object), np.array(names, object), np.array(vectors)), table


def random_table(seed):
    """Sets of 2 to 20 people by 1 to 3 attributes, with many alike."""
    rng = np.random.default_rng(seed)
    n_people = int(rng.integers(2, 21))
    values = rng.integers(0, rng.integers(1, 5), (n_people, int(rng.integers(1, 4))))
    return [tuple(map(str, row)) for row in values.tolist()], rng


def test_sizes_and_unique_people_equal_brute_force():
    for seed in range(120):
        sets, _ = random_table(seed)
        expected = [sum(own == other for other in sets) for own in sets]
        assert set_sizes(sets).tolist() == expected
        found = uniqueness(sets)
        assert found.value == expected.count(1) / len(sets)
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_naming_equals_brute_force():
    for seed in range(120):
        truth, rng = random_table(seed)
        owners = rng.integers(0, len(truth), 15)
        inferred = []
        expected = []
        for owner in owners:
            guess = tuple(map(str, rng.integers(0, 5, len(truth[0]))))
            agreeing = [sum(a == b for a, b in zip(guess, own, strict=True)) for own in truth]
            best = [person for person, count in enumerate(agreeing) if count == max(agreeing)]
            inferred.append(guess)
            expected.append((owner in best) / len(best))
        np.testing.assert_allclose(shares_named(truth, inferred, owners), expected, rtol=1e-12)
    with pytest.raises(DataError, match="equally many attributes"):
        shares_named([("a", "b")], [("a",)], [0])


def test_risk_has_the_value_and_the_ends_of_its_definition():
    """At an end R the ratio of error rates is as far from its value as both errors together (Donner and Zou)."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        attacked = (rng.random(40) < 0.9).astype(float)
        control = (rng.random(30) < 0.4).astype(float)
        found = inference_risk(attacked, control, Resampling(50))
        a, c = attacked.mean(), control.mean()
        assert found.risk.value == pytest.approx((a - c) / (1 - c))
        p, q = 1 - a, 1 - c
        for end, own, other in (
            (found.risk.low, found.attack.low, found.control.high),
            (found.risk.high, found.attack.high, found.control.low),
        ):
            ratio = 1 - end
            if 0 < end < 1:
                reach = ((1 - own) - p) ** 2 + ratio**2 * ((1 - other) - q) ** 2
                assert (p - ratio * q) ** 2 == pytest.approx(reach)


@pytest.mark.parametrize(
    ("attacked", "control", "value"),
    [([1.0] * 9, [0.0] * 9, 1.0), ([0.5] * 9, [0.5] * 9, 0.0), ([0.0] * 9, [0.5] * 9, 0.0)],
)
def test_risk_is_between_nothing_and_everything(attacked, control, value):
    found = inference_risk(attacked, control)
    assert found.risk.value == value
    assert 0 <= found.risk.low <= value <= found.risk.high <= 1


def test_risk_is_undefined_if_the_attacker_infers_everything_of_everybody():
    found = inference_risk([1.0, 0.0], [1.0, 1.0], NONE)
    assert np.isnan(found.risk.value)
    assert "control group too" in found.risk.note


@pytest.mark.parametrize("shares", [[], [0.5, 1.5], [np.nan], ["a"], 0.5])
def test_invalid_shares_are_refused(shares):
    with pytest.raises(DataError):
        inference_risk(shares, [0.5])
    with pytest.raises(DataError):
        inference_risk([0.5], shares)


def test_sets_are_inferred_where_voices_reveal_them():
    original, table = crowd(24, hidden=range(4, 8), recordings=1)
    anonymised, _ = crowd(24, hidden=range(1, 8), recordings=1, seed=1)
    found = inferred_sets(Sides(original, anonymised), table, resampling=NONE)
    true = list(zip(*(table[name].values() for name in table), strict=True))
    assert found["true"].sets == true
    assert found["true"].named.value == pytest.approx(len(set(true)) / 24)
    is_right = [own == other for own, other in zip(true, found["original"].sets, strict=True)]
    assert (
        np.mean(is_right)
        == found["original"].right.value
        == found["original"].right_by_one.value
        > 0.9
    )
    assert found["informed"].right.value < 0.7
    sexes = zip(true, found["informed"].sets, strict=True)
    assert np.mean([own[0] == other[0] for own, other in sexes]) > 0.9  # the age is hidden
    counts = Counter(found["informed"].sets)
    assert found["informed"].sizes.tolist() == [counts[own] for own in found["informed"].sets]
    assert found["true"].to_dict()["people_by_k"] == {"4": 24}


def test_recordings_of_a_speaker_are_pooled():
    """Single recordings are noisy; ten together are not."""
    original, table = crowd(30, noise=6.0, recordings=10)
    found = inferred_sets(Sides(original), {"sex": table["sex"]}, resampling=NONE)["original"]
    assert found.right_by_one.value < 0.9 < found.right.value


def test_a_value_that_nobody_else_has_is_unique_and_not_inferred():
    original, table = crowd()
    table["age"]["s03"] = "90"
    found = inferred_sets(Sides(original), table, resampling=NONE)
    assert found["true"].sizes[3] == 1
    # s03, and the other person of its former class
    assert found["true"].unique.value == pytest.approx(2 / 12)
    assert found["original"].sets[3][1] != "90"


def test_data_frames_and_mappings_give_the_same():
    pandas = pytest.importorskip("pandas")
    original, table = crowd()
    frame = pandas.DataFrame(table)
    frame.loc["s99"] = [None, np.nan]
    for given in (table, frame):
        found = inferred_sets(Sides(original), given, resampling=NONE)
        assert found["true"].sets == list(
            zip(table["sex"].values(), table["age"].values(), strict=True)
        )


def test_risk_of_published_attributes_equals_brute_force():
    table = {}
    sides = []
    for first, count, seed, prefix in ((0, 12, 1, "e"), (0, 12, 2, ""), (12, 9, 3, "e")):
        vectors, own = crowd(count, first=first, seed=seed, noise=0.5, prefix=prefix, told=0.5)
        sides.append(vectors)
        for name, values in own.items():
            table.setdefault(name, {}).update(values)
    known, released, control = sides
    found = attribute_risk(known, released, control, table, resampling=NONE)
    for name in ("sex", "age", "set"):
        rates = []
        for side in (known, control):
            people = {}
            for vector, owner in zip(side.vectors, side.speakers, strict=True):
                unit = released.vectors / np.linalg.norm(released.vectors, axis=1)[:, None]
                nearest = released.speakers[np.argmax(unit @ vector)]
                names = ["sex", "age"] if name == "set" else [name]
                right = all(table[own][nearest] == table[own][owner] for own in names)
                people.setdefault(owner, []).append(right)
            rates.append(np.mean([np.mean(values) for values in people.values()]))
        assert found[name].attack.value == pytest.approx(rates[0])
        assert found[name].control.value == pytest.approx(rates[1])
    assert found["set"].n_control == 9


def test_equal_published_recordings_share_their_rank():
    known, table = crowd(4)
    both = np.repeat(known.vectors[:1], 2, axis=0) * [[2.0], [3.0]]
    released = Embeddings(["a", "b"], ["s00", "s01"], both)
    own = Embeddings(["q"], ["s00"], known.vectors[:1] + 0.01)
    others = Embeddings(["x"], ["s02"], known.vectors[6:7])
    found = attribute_risk(own, released, others, {"sex": table["sex"]}, resampling=NONE)
    assert found["sex"].attack.value == 0.5


MISUSE = {
    "no attribute": ({}, "expected values of speakers by attribute"),
    "a column alone": ({"sex": "f"}, "expected values by speaker, got 'f'"),
    "unknown speakers": ({"sex": {"x": "f"}}, "without a label"),
    "one class": ({"sex": dict.fromkeys([f"s{n:02d}" for n in range(12)], "f")}, "two classes"),
    "values of recordings": (
        {"sex": {f"s{n:02d}-{k}": "fm"[k % 2] for n in range(12) for k in range(3)}},
        "several values",
    ),
}


@pytest.mark.parametrize("case", MISUSE)
def test_unusable_attributes_are_refused(case):
    original, _ = crowd()
    table, says = MISUSE[case]
    with pytest.raises(DataError, match=says):
        inferred_sets(Sides(original), table, resampling=NONE)


def test_people_on_the_wrong_side_are_refused():
    known, table = crowd(prefix="e")
    released, _ = crowd(seed=1)
    control, more = crowd(6, first=12)
    every = {name: table[name] | more[name] for name in table}
    cases = {
        "control group in the data": (known, released, known),
        "of no anonymised recording": (control, released, control),
        "have the same vector": (known, known, control),
        "without a label": (known, released, crowd(3, first=20)[0]),
    }
    for says, sides in cases.items():
        with pytest.raises(DataError, match=says):
            attribute_risk(*sides, every)
    narrow = Embeddings(known.ids, known.speakers, known.vectors[:, :3])
    with pytest.raises(DataError, match="dimensions"):
        attribute_risk(narrow, released, control, every)


@pytest.fixture
def folder(tmp_path):
    table = {}
    for name, settings in {
        "original.npz": {"seed": 1},
        "anonymised.npz": {"seed": 2, "noise": 0.5},
        "inside.npz": {"seed": 3, "prefix": "e"},
        "outside.npz": {"seed": 4, "first": 12},
    }.items():
        vectors, own = crowd(**settings, told=0.5)
        write_embeddings(tmp_path / name, vectors)
        for column, values in own.items():
            table.setdefault(column, {}).update(values)
    lines = [f"{name},{table['sex'][name]},{table['age'][name]}" for name in table["sex"]]
    (tmp_path / "people.csv").write_text("speaker,sex,age\n" + "\n".join(lines))
    return tmp_path


def test_the_command_shows_sets_and_risks_of_the_functions(folder):
    given = ["attributes", "--original", folder / "original.npz"]
    given += ["--anonymised", folder / "anonymised.npz", "--labels", folder / "people.csv"]
    given += ["--column", "sex", "--column", "age", "--bootstrap", 50]
    plain = json.loads(passes(*given, "--json", "-").stdout)
    assert set(plain) == {"sex", "age"}
    given += ["--sets", "--control", folder / "inside.npz", folder / "outside.npz"]
    report = json.loads(passes(*given, "--json", "-").stdout)
    assert {name: report[name] for name in plain} == plain
    assert set(report["sets"]) == {"true", "original", "ignorant", "informed"}
    assert report["sets"]["true"]["people_by_k"] == {"2": 12}
    assert set(report["risk"]) == {"sex", "age", "set"}
    assert report["risk"]["set"]["attack"]["value"] > report["risk"]["set"]["control"]["value"]
    lines = passes(*given).output.splitlines()
    assert any(line.startswith("informed") for line in lines)
    assert any(line.startswith("attribute") and "control [%]" in line for line in lines)


def test_the_command_refuses_a_control_group_without_anonymised_speech(folder):
    given = ["--original", folder / "original.npz", "--labels", folder / "people.csv"]
    given += ["--column", "sex", "--control", folder / "inside.npz", folder / "outside.npz"]
    assert "--control needs --anonymised" in refused("attributes", *given)


def test_values_that_only_the_control_group_has_raise_a_warning(caplog):
    people = [f"p{number}" for number in range(12)]
    draw = np.random.default_rng(0)
    centres = dict(zip(people, draw.normal(size=(12, 6)), strict=True))

    def recorded(names, take):
        vectors = np.stack([centres[name] + 0.1 * draw.normal(size=6) for name in names])
        return Embeddings.from_arrays(
            vectors, ids=[f"{name}-{take}" for name in names], speakers=names
        )

    inside, outside = people[:6], people[6:]
    sides = recorded(inside, 1), recorded(inside, 2), recorded(outside, 1)
    ages = {name: str(number % 3) for number, name in enumerate(people)}
    attribute_risk(*sides, {"age": ages}, resampling=NONE)
    assert not caplog.records
    attribute_risk(*sides, {"age": ages | {"p6": "3", "p7": "4"}}, resampling=NONE)
    assert "2 of 6 speakers of the control group have a value of age that no" in caplog.text


def test_the_same_vectors_before_and_after_anonymisation_are_refused():
    vectors = np.random.default_rng(0).normal(size=(8, 4))
    names = [f"p{number // 2}" for number in range(8)]
    same = Embeddings.from_arrays(
        vectors, ids=[f"u{number}" for number in range(8)], speakers=names
    )
    table = {"sex": {name: "fm"[number % 2] for number, name in enumerate(sorted(set(names)))}}
    with pytest.raises(DataError, match="8 of 8 utterances have the same vector"):
        inferred_sets(Sides(same, same), table, resampling=NONE)
    with pytest.raises(DataError, match="8 of 8 utterances have the same vector"):
        attribute_leakage(Sides(same, same), table["sex"], resampling=NONE)
