"""Easy and hard speakers: quarters with ties, overlaps against chance, comparisons over conditions."""

import json
from itertools import combinations

import numpy as np
import pytest
from command_lines import passes, refused
from hypothesis import given
from hypothesis import strategies as st

from evaluation.linkage import RULES, Ranks, disclosure_sets, write_ranks
from evaluation.linkage.agreement import (
    PUBLISHED,
    compare_conditions,
    condition_name,
    joint_agreement,
    mean_agreement,
    pair_agreement,
    published,
)
from spkbase.errors import DataError

VALUES = st.lists(st.integers(0, 5), min_size=4, max_size=40)


def named(values):
    return {f"s{place:02d}": value for place, value in enumerate(values)}


# ---- quarters


def test_each_rule_for_ties_gives_its_sets():
    # of 12 speakers five are always first
    values = named([1.0] * 5 + [0.5, 0.4, 0.35, 0.3, 0.2, 0.1, 0.1])
    sizes = {
        rule: (len(one.easy), len(one.hard))
        for rule in RULES
        for one in [disclosure_sets(values, rule=rule)]
    }
    assert sizes == {"nearest": (5, 3), "include": (5, 3), "exclude": (0, 3), "random": (3, 3)}
    assert "5 of 12 speakers are easy to link, not a quarter" in disclosure_sets(values).notes[0]
    drawn = {disclosure_sets(values, rule="random", seed=seed).easy for seed in range(30)}
    assert len(drawn) > 3
    assert frozenset().union(*drawn) == {f"s{place:02d}" for place in range(5)}


def test_equal_speakers_are_neither_easy_nor_hard():
    for rule in RULES:
        found = disclosure_sets(named([0.3 + 1e-15, 0.3, 0.3, 0.3, 0.3]), rule=rule)
        assert not found.easy
        assert not found.hard
        assert "all speakers are equal" in found.notes[0]


@given(VALUES, st.sampled_from(RULES))
def test_quarters_are_taken_from_both_ends_of_the_order(values, rule):
    speakers = named([float(value) for value in values])
    found = disclosure_sets(speakers, rule=rule)
    inside = {name: speakers[name] for name in speakers}
    if found.easy:
        least = min(inside[name] for name in found.easy)
        assert found.easy >= {name for name, value in inside.items() if value > least}
        if rule != "random":
            assert found.easy >= {name for name, value in inside.items() if value == least}
    mirrored = disclosure_sets({name: -value for name, value in speakers.items()}, rule=rule)
    assert mirrored.easy == found.hard
    if rule == "nearest" and len(set(values)) > 1:
        sizes = [sum(value >= one for value in values) for one in set(values)]
        assert abs(len(found.easy) - len(values) / 4) == min(
            abs(size - len(values) / 4) for size in sizes
        )


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        ([1.0, 2.0, 3.0], {}, "expected at least 4 speakers to form quarters, got 3"),
        (
            [1.0, 2.0, 3.0, float("nan")],
            {},
            "expected finite values, got nan for 's03'|for the speaker 's03'",
        ),
        (
            [1.0, 2.0, 3.0, 4.0],
            {"rule": "best"},
            "expected one of the rules for ties nearest, include, exclude, random",
        ),
    ],
)
def test_bad_values_are_refused(values, options, text):
    with pytest.raises(DataError, match=text):
        disclosure_sets(named(values), **options)


# ---- overlaps


def set_of(members, n):
    return np.isin(np.arange(n), list(members))


@pytest.mark.parametrize(("n", "first", "second"), [(6, 2, 3), (7, 4, 4), (5, 5, 2)])
def test_chance_equals_the_mean_over_all_permutations(n, first, second):
    left = frozenset(range(first))
    found = [(len(left & set(one)), len(left | set(one))) for one in combinations(range(n), second)]
    similarity = np.array([common / together for common, together in found])
    for right in ({0, *range(n - second + 1, n)}, set(range(second))):
        one = pair_agreement(set_of(left, n), set_of(right, n))
        assert one.chance == pytest.approx(similarity.mean())
        assert one.p_value == pytest.approx((similarity >= one.jaccard - 1e-12).mean())
        assert one.corrected == pytest.approx((one.jaccard - one.chance) / (1 - one.chance))


def test_equal_sets_agree_fully_and_disjoint_ones_less_than_by_chance():
    none, one, other = (set_of(members, 10) for members in ((), (1, 2), (3, 4)))
    same, apart = pair_agreement(one, one), pair_agreement(one, other)
    assert (same.jaccard, same.corrected) == (1, 1)
    assert apart.jaccard == 0
    assert apart.corrected < 0
    assert apart.p_value == 1
    for empty in (pair_agreement(none, none), pair_agreement(one, none)):
        assert np.isnan([empty.jaccard, empty.chance, empty.corrected, empty.p_value]).all()
    members = np.array([[1, 1, 0], [0, 0, 0]], bool)
    assert np.isnan(joint_agreement(members, permutations=5).jaccard)
    assert joint_agreement(members, permutations=5).union == 2


def test_permutations_agree_with_the_exact_probability():
    rng = np.random.default_rng(3)
    members = rng.random((2, 80)) < 0.3
    exact = pair_agreement(*members)
    for drawn in (
        joint_agreement(members, permutations=4000, seed=1),
        mean_agreement(members, [(0, 1)], permutations=4000, seed=1),
    ):
        assert drawn.jaccard == pytest.approx(exact.jaccard)
        assert drawn.chance == pytest.approx(exact.chance, abs=0.003)
        assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=0.04)  # a step
        assert drawn.p_value == pytest.approx(exact.p_value, abs=0.04)


def test_the_mean_over_pairs_counts_each_pair_once():
    members = np.array(
        [[1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]], bool
    )
    found = mean_agreement(members, [(0, 1), (0, 2), (1, 3)], permutations=50)
    assert found.jaccard == pytest.approx((1 / 3 + 0) / 2)  # an empty set counts as 0
    assert found.spread == pytest.approx(np.std([1 / 3, 0]))
    assert found.n_pairs == 2
    assert joint_agreement(members[:2], permutations=5).jaccard == pytest.approx(1 / 3)


def test_published_means_are_reproduced():
    found = published()
    assert found["anonymiser"]["easy"]["jaccard"] == pytest.approx(0.289, abs=5e-4)
    assert found["anonymiser"]["hard"]["jaccard"] == pytest.approx(0.344, abs=5e-4)
    for factor, easy, hard in (("attacker", 0.378, 0.469), ("utterances", 0.272, 0.352)):
        assert found[factor]["easy"]["jaccard"] == pytest.approx(easy, abs=5e-4)
        assert found[factor]["hard"]["jaccard"] == pytest.approx(hard, abs=5e-4)
    assert {factor: len(pairs) for factor, pairs in PUBLISHED.items()} == {
        "anonymiser": 9, "attacker": 18, "utterances": 18
    }  # fmt: skip
    assert found["anonymiser"]["easy"]["corrected"] == pytest.approx(
        (0.289 - 1 / 7) / (6 / 7), abs=1e-3
    )


# ---- conditions


def conditions(n=400, *, shared=1.0):
    rng = np.random.default_rng(4)
    common = rng.normal(size=n)
    own = {name: rng.normal(size=n) for name in ("A", "B")}
    found = {}
    for attacker in ("A", "B"):
        for anonymiser in ("x", "y"):
            for utterances in ("1", "3", "5"):
                levels = (
                    ("attacker", attacker),
                    ("anonymiser", anonymiser),
                    ("utterances", utterances),
                )
                values = shared * common + own[attacker] + 0.3 * rng.normal(size=n)
                found[levels] = {f"s{place:03d}": float(one) for place, one in enumerate(values)}
    return found


def test_pairs_of_conditions_differ_in_one_factor():
    found = compare_conditions(conditions(), permutations=50)
    assert {factor: kinds["easy"].n_pairs for factor, kinds in found.factors.items()} == {
        "attacker": 6, "anonymiser": 6, "utterances": 12
    }  # fmt: skip
    assert len(found.pairs) == 24
    assert {(one.factor, one.compared) for one in found.unions} == {
        ("attacker", ("A", "B")),
        ("anonymiser", ("x", "y")),
    }
    assert len(found.unions) == 4
    for one in found.unions:  # speakers who are in a set at any number of utterances
        (other,) = one.fixed
        sides = [
            set().union(
                *(
                    found.sets[levels].easy
                    for levels in found.sets
                    if {(one.factor, level), other} <= {*levels}
                )
            )
            for level in one.compared
        ]
        assert one.easy.jaccard == pytest.approx(
            len(sides[0] & sides[1]) / len(sides[0] | sides[1])
        )
    joint = [(one.factor, len(one.compared)) for one in found.joint]
    assert joint == [("utterances", 3)] * 4 + [("all", 12)]
    # anonymisers share the attacker's effect, attackers do not
    assert (
        found.factors["anonymiser"]["easy"].corrected
        > 0.5
        > found.factors["attacker"]["easy"].corrected
    )
    for kind in ("easy", "hard"):
        mean = np.mean(
            [getattr(one, kind).jaccard for one in found.pairs if one.factor == "attacker"]
        )
        assert found.factors["attacker"][kind].jaccard == pytest.approx(mean)
        assert found.factors["attacker"][kind].chance == pytest.approx(1 / 7, abs=0.01)


def test_quarters_are_taken_from_the_shared_speakers():
    two = dict(list(conditions().items())[:2])
    first, second = two
    two[first]["only here"] = 99.0
    found = compare_conditions(two, permutations=10)
    assert found.n_speakers == 400
    assert not any("only here" in one.easy for one in found.sets.values())
    assert found.notes == (
        f"{condition_name(first)}: 1 speaker left out that other conditions lack",
    )
    assert found.sets[second].easy


def test_bad_conditions_are_refused():
    two = dict(list(conditions().items())[:2])
    with pytest.raises(DataError, match="expected at least 2 conditions to compare, got 1"):
        compare_conditions(dict(list(two.items())[:1]))
    two[(("run", "z"), ("utterances", "1"))] = {"s000": 1.0}
    for options in ({"level": 1.0}, {"level": 0.0}, {"permutations": 0}):
        with pytest.raises(
            DataError, match="expected a level between 0 and 1 and at least 1 permutation"
        ):
            compare_conditions(two, **options)
    with pytest.raises(DataError, match="expected the factors attacker, anonymiser, utterances"):
        compare_conditions(two)
    two = dict(list(conditions().items())[:2])
    two[next(iter(two))] = {"other": 1.0}
    with pytest.raises(
        DataError, match="expected at least 4 speakers that all conditions share, got 0"
    ):
        compare_conditions(two)


# ---- the command


@pytest.fixture
def runs(tmp_path):
    rng = np.random.default_rng(5)
    ease = rng.normal(size=60)
    for name in ("first", "second"):
        own = ease + rng.normal(size=60)
        ranks = {
            number: Ranks(
                rng.binomial(99, 1 / (1 + np.exp(own + rng.normal(size=60) / number))), 0, 99
            )
            for number in (1, 3)
        }
        (tmp_path / name).mkdir()
        write_ranks(tmp_path / name / "ranks.npz", ranks)
    return tmp_path


@pytest.mark.whole
def test_the_command_compares_runs(runs):
    labelled = [
        f"ECAPA/{label}={runs / name}" for label, name in (("B3", "first"), ("B5", "second"))
    ]
    text = passes("linkability-compare", *labelled, "--permutations", 50, "-o", runs / "out").stdout
    assert "60 speakers, 4 conditions" in text
    assert "published" in text
    report = json.loads((runs / "out" / "comparison.json").read_text())
    assert set(report["factors"]) == {"anonymiser", "utterances"}
    assert report["published"]["anonymiser"]["hard"]["n_pairs"] == 9
    assert report["tie_rule"] == "nearest"
    rows = (runs / "out" / "speakers.csv").read_text().splitlines()
    assert len(rows) == 61
    assert rows[0].startswith('speaker,"ECAPA/B3, L = 1 linkability","ECAPA/B3, L = 1 set"')
    assert (runs / "out" / "jaccard.png").read_bytes().startswith(b"\x89PNG")
    assert (runs / "out" / "jaccard.svg").read_bytes().startswith(b"<?xml")
    for name in ("linkability", "distribution_L1", "distribution_L3"):
        picture = (runs / "out" / f"{name}.svg").read_text()
        assert picture.startswith("<?xml")
        assert "ECAPA" in picture
        assert "B5" in picture


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["{0}/first", "{0}/nowhere", "{0}/alike"], "2 problems:"),
        (["{0}/first", "{0}/first"], "two runs are first, L = 1"),
        (["{0}/first", "a/b={0}/second"], "expected the factors run, utterances in all conditions"),
        (["{0}/broken/ranks.npz"], "cannot be read as npz"),
    ],
)
def test_bad_runs_give_one_message(runs, arguments, text):
    (runs / "broken").mkdir()
    (runs / "broken" / "ranks.npz").write_text("no archive")
    message = refused("linkability-compare", *(one.format(runs) for one in arguments))
    assert text in message
    assert message.startswith("Error: ")
