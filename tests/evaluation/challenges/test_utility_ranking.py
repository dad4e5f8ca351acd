"""Ranks of systems: the challenge's baselines, ties by intervals, and results of every kind of file."""

import json

import numpy as np
import pytest
from command_lines import passes
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.challenges.rank_files import ASR, ASV, ASV_ANON, PROTOCOL, Section, write_rank_file
from evaluation.challenges.ranking import (
    RULES,
    ComparedSystem,
    OrderingRule,
    difference,
    order_systems,
)
from evaluation.challenges.systems import figures_of_results, read_system
from evaluation.reports import typed_results
from evaluation.uncertainty.intervals import Interval
from spkbase.errors import DataError

FILES = {
    "B1": "b1b",
    "B2": "mcadams",
    "B3": "sttts",
    "B4": "nac",
    "B5": "asrbn_hifigan_bn_tdnnf_wav2vec2_vq_48_v1",
    "B6": "asrbn_hifigan_bn_tdnnf_600h_vq_48_v1",
}


def baselines(shared, **reading):
    folder = shared / "formats" / "vpc2024_results"
    return [
        read_system(folder / f"result_for_rank_{file}", name, **reading)
        for name, file in FILES.items()
    ]


def of(conditions, target, utility):
    return next(one for one in conditions if (one.target, one.utility) == (target, utility))


@pytest.mark.golden
def test_the_baselines_of_2024_are_ordered_as_published(shared):
    systems = baselines(shared)
    # plain means of the two sexes of libri_test, from the files
    expected = {"B1": 6.0745, "B2": 4.52, "B3": 27.322, "B4": 30.2665, "B5": 34.3375, "B6": 21.1415}
    assert {one.name: 100 * one.eer.value for one in systems} == pytest.approx(expected)
    conditions = order_systems(systems, RULES["vpc2024"])
    assert len(conditions) == 8
    places = {
        (one.target, one.utility): [(entry.place, entry.system) for entry in one.entries]
        for one in conditions
    }
    for target in (0.1, 0.2):
        assert places[target, "wer"] == [(1, "B3"), (2, "B5"), (3, "B4"), (4, "B6")]
        assert places[target, "uar"] == [(1, "B4"), (2, "B5"), (3, "B3"), (4, "B6")]
    assert places[0.3, "wer"] == [(1, "B5"), (2, "B4")]
    assert places[0.3, "uar"] == [(1, "B4"), (2, "B5")]
    assert places[0.4, "wer"] == places[0.4, "uar"] == []
    first = of(conditions, 0.1, "wer")
    assert [(entry.ties, entry.best, entry.worst) for entry in first.entries] == [((), 0, 0)] * 4
    assert first.excluded == {"B1": "EER 6.07 % is below 10 %", "B2": "EER 4.52 % is below 10 %"}
    reason = first.entries[1].reason
    assert (
        reason
        == "EER 34.34 % reaches 10 %; WER 4.37 % is number 2 of 4; without intervals ties are not known"
    )
    conditions = order_systems(
        systems, OrderingRule("", (0.1, 0.2, 0.3, 0.4), assignment="highest")
    )
    ranked = {
        one.target: {entry.system for entry in one.entries}
        for one in conditions
        if one.utility == "wer"
    }
    assert ranked == {0.1: set(), 0.2: {"B3", "B6"}, 0.3: {"B4", "B5"}, 0.4: set()}
    assert of(conditions, 0.1, "wer").excluded["B5"] == "ranked where the EER is at least 30 %"


@pytest.mark.golden
def test_development_sets_and_least_values_can_be_read(shared):
    dev, least = baselines(shared, split="dev")[1], baselines(shared, average="least")[1]
    assert 100 * dev.eer.value == pytest.approx((12.910 + 2.045) / 2)
    assert 100 * dev.utilities["wer"].value == pytest.approx(10.442)
    assert 100 * least.eer.value == pytest.approx(1.557)


@pytest.mark.golden
def test_summaries_of_2022_are_read(shared):
    folder = shared / "formats" / "vpc2022_results"
    systems = [read_system(folder / f"RESULTS_summary_{name}") for name in ("mcadams", "tts_old_c")]
    assert [one.name for one in systems] == ["mcadams", "tts_old_c"]
    assert 100 * systems[0].eer.value == pytest.approx(7.769, abs=5e-4)
    assert systems[0].utilities["wer"].value == pytest.approx((4.58 + 13.48) / 200)
    conditions = order_systems(systems, RULES["vpc2022"])
    assert [one.target for one in conditions] == [0.15, 0.2, 0.25, 0.3]
    assert all(not one.entries and len(one.excluded) == 2 for one in conditions)
    lower = order_systems(systems, OrderingRule("", (0.05,), ("wer",), least={"f0": 0.3}))[0]
    assert [(entry.system, entry.place) for entry in lower.entries] == [
        ("tts_old_c", 1),
        ("mcadams", 2),
    ]
    assert lower.excluded == {}
    strict = order_systems(systems, OrderingRule("", (0.05,), ("wer",), least={"f0": 0.99}))[0]
    assert all("is not above 0.99" in why for why in strict.excluded.values())
    assert len(strict.excluded) == 2


MEASURES = st.tuples(st.floats(0.01, 0.9), st.floats(0.001, 0.05), st.floats(0.001, 0.05)).map(
    lambda one: Interval(one[0], one[0] - one[1], one[0] + one[2])
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0, 0.5), MEASURES, MEASURES), min_size=1, max_size=7), st.randoms()
)
def test_ranks_agree_with_counting(rows, random):
    systems = [
        ComparedSystem(f"s{n}", Interval(eer), {"wer": wer, "uar": uar})
        for n, (eer, wer, uar) in enumerate(rows)
    ]
    rule = OrderingRule("", (0.1, 0.3))
    conditions = order_systems(systems, rule)
    shuffled = systems.copy()
    random.shuffle(shuffled)
    for condition, again in zip(conditions, order_systems(shuffled, rule), strict=True):
        facts = [
            [
                (entry.system, entry.place, entry.best, entry.worst, sorted(entry.ties))
                for entry in one.entries
            ]
            for one in (condition, again)
        ]
        assert facts[0] == facts[1]
        ranked = {entry.system for entry in condition.entries}
        assert ranked == {one.name for one in systems if one.eer.value >= condition.target}
        assert condition.excluded.keys() == {one.name for one in systems} - ranked
        sign = 1 if condition.utility == "wer" else -1
        for entry in condition.entries:
            better = [
                one
                for one in condition.entries
                if sign * one.value.value < sign * entry.value.value
            ]
            assert entry.place == 1 + len(better)
            assert entry.best == 1 + sum(one.system not in entry.ties for one in better)
            assert entry.best <= entry.place <= entry.worst
            assert all(
                entry.system in one.ties for one in condition.entries if one.system in entry.ties
            )


def test_equal_values_share_a_rank_and_an_unknown_utility_gives_a_reason():
    systems = [
        ComparedSystem(name, Interval(0.5), {"wer": Interval(value)})
        for name, value in (("a", 0.1), ("b", 0.1), ("c", 0.2))
    ]
    by_wer, by_uar = order_systems(systems, OrderingRule("", (0.5,)))
    assert [(one.system, one.place, one.ties) for one in by_wer.entries] == [
        ("a", 1, ("b",)),
        ("b", 1, ("a",)),
        ("c", 3, ()),
    ]
    assert by_uar.excluded == dict.fromkeys("abc", "its UAR is not known")


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_interval_of_a_difference_has_its_nominal_coverage(correlation):
    """Two means with normal errors of deviations 1 and 2: their difference is normal too."""
    rng = np.random.default_rng(0)
    hits = 0
    for one, other in rng.multivariate_normal(
        [5, 3], [[1, 2 * correlation], [2 * correlation, 4]], 2000
    ).tolist():
        ends = Interval(one, one - 1.96, one + 1.96), Interval(other, other - 3.92, other + 3.92)
        gap = difference(*ends, correlation)
        hits += gap.low <= 2 <= gap.high
    assert 0.935 <= hits / 2000 <= 0.965


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": ()}, "expected minimum EERs between 0 and 1"),
        ({"targets": (10.0,)}, "expected minimum EERs between 0 and 1"),
        ({"targets": (0.3, 0.2)}, "that rise"),
        ({"utilities": ("mos",)}, "expected utilities out of wer, cer, uar, f0"),
        ({"utilities": ()}, "expected utilities out of"),
    ],
)
def test_bad_rules_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        OrderingRule(**({"name": "", "targets": (0.1,)} | change))


def test_bad_systems_are_refused():
    rule = OrderingRule("", (0.1,))
    with pytest.raises(DataError, match="no system"):
        order_systems([], rule)
    with pytest.raises(DataError, match="two systems are named 'a'"):
        order_systems([ComparedSystem("a", Interval(0.1), {})] * 2, rule)
    with pytest.raises(DataError, match="system 'a': WER is undefined"):
        order_systems([ComparedSystem("a", Interval(0.1), {"wer": Interval(np.nan)})], rule)


def row(gender, attacker, eer, scenario="semi-informed", dataset="libri_test"):
    ends = {"low": eer - 0.02, "high": eer + 0.03}
    names = {"dataset": dataset, "gender": gender, "scenario": scenario, "attacker": attacker}
    return names | {"eer": {"rocch": eer, "kaldi": 0.9}, "intervals": {"eer.rocch": ends}}


def results():
    return {
        "anonymiser": {"name": "mcadams"},
        "conditions": [
            row("f", "gmm-ubm", 0.2),
            row("f", "gmm-svm", 0.14),
            row("m", "gmm-ubm", 0.1),
            row("all", "gmm-ubm", 0.01),
            row("f", "gmm-ubm", 0.03, "lazy-informed"),
            row("f", "gmm-ubm", 0.02, "semi-informed", "libri_dev"),
        ],
        "utility": {
            "wer": {
                "libri_test": {
                    "original": {"value": 0.02, "interval": [0.01, 0.03]},
                    "anonymised": {"value": 0.05, "interval": [0.04, 0.07]},
                }
            },
            "uar": {"value": 0.4, "low": 0.35, "high": 0.45},
        },
    }


def saved(folder, content):
    (folder / "results.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((0.8, 0.7916), "reversed: libri_test f (80 %), libri_test m (79.16 %)"),
        ((0.1, 0.9), "reversed: libri_test m (90 %)"),
        ((0.5, 0.5), "constant (EER of exactly 50 %): libri_test f, libri_test m"),
        ((0.53, 0.49), ""),
    ],
)
def test_inverted_and_constant_scores_reach_no_target(tmp_path, rates, said):
    """An attacker whose scores say nothing, or the opposite, is no sign of privacy."""
    rows = [
        {
            "dataset": "libri_test",
            "gender": sex,
            "scenario": "semi-informed",
            "attacker": "a",
            "n_target": 32,
        }
        | {
            "eer": {"rocch": min(rate, 0.5), "interpolated": rate, "speechbrain": rate},
            "intervals": {},
        }
        for sex, rate in zip("fm", rates, strict=True)
    ]
    utility = {"wer": {"value": 0.06}}
    content = {
        "protocol": {"attacker": "a", "reading": "speechbrain"},
        "conditions": rows,
        "utility": utility,
    }
    saved(tmp_path, content)
    records = [
        {
            "dataset": "libri",
            "split": "test",
            "gender": sex,
            "enrollment": "anon",
            "trial": "anon",
            "EER": 100 * rate,
        }
        for sex, rate in zip("fm", rates, strict=True)
    ]
    write_rank_file(tmp_path / "result_for_rank_x", [Section(ASV_ANON, records)])
    ours, theirs = (read_system(tmp_path / name) for name in ("results.json", "result_for_rank_x"))
    assert ours.broken == theirs.broken == (f"scores are {said}" if said else "")
    (order,) = order_systems([ours], OrderingRule("", (0.05,), ("wer",)))
    assert [entry.system for entry in order.entries] == ([] if said else [ours.name])
    assert said in order.excluded.get(ours.name, "")
    told = passes("rank", tmp_path).stderr
    assert (f"its scores are {said}; it reaches no target" in told) == bool(said)


def test_own_results_are_read(tmp_path):
    found = read_system(saved(tmp_path, results()))
    assert (found.name, found.attacker) == ("mcadams", "strongest of 2 (rocch)")
    assert found.eer.value == pytest.approx((0.14 + 0.1) / 2)  # the strongest attacker of each sex
    assert found.eer.low == pytest.approx(0.12 - np.hypot(0.02, 0.02) / 2)
    assert found.utilities == {"wer": Interval(0.05, 0.04, 0.07), "uar": Interval(0.4, 0.35, 0.45)}
    assert read_system(tmp_path / "results.json", average="least").eer.value == 0.1
    pooled = {"conditions": [row("all", "gmm-ubm", 0.3) | {"eer": {"rocch": 0.3}, "intervals": {}}]}
    found = read_system(saved(tmp_path, pooled), "x")
    assert (found.name, found.eer.value, dict(found.utilities)) == ("x", 0.3, {})
    assert not found.eer.has_interval
    assert found.notes == (
        f"{tmp_path / 'results.json'}: EER of libri_test all, without intervals",
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("results.json", "{", "expected JSON"),
        ("results.json", "[]", "expected results with 'conditions'"),
        (
            "results.json",
            '{"conditions": [7]}',
            "expected results of format 1 .* damaged or foreign",
        ),
        (
            "results.json",
            '{"conditions": []}',
            "no EER of a semi-informed attacker .* on sets 'test'",
        ),
        (
            "result_for_rank_x",
            "---- ASR results ----\nx\n",
            "has no row|expected the columns|has no table",
        ),
        (
            "result_for_rank_x",
            "---- ASR results ----\ndataset split asr WER\n0 l test anon 1\n",
            "no EER of a semi-informed attacker",
        ),
        (
            "RESULTS_summary_x",
            "ASV-a-b  EER: 3%\n",
            "the EERs of anonymised speech of the split 'test' are not all",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_system(tmp_path / name)
    with pytest.raises(DataError, match="cannot be read"):
        read_system(tmp_path / "absent.json")


def test_sets_of_the_other_split_are_ignored(tmp_path):
    """Utility of the development set is no utility of the test set; sets of common sentences are a part of theirs."""
    found = results()
    found["conditions"].append(row("f", "gmm-ubm", 0.4, dataset="vctk_test_common"))
    found["utility"] = {
        "uar": {
            "IEMOCAP_dev": {"anonymised": {"value": 0.9}},
            "IEMOCAP_test": {"anonymised": {"value": 0.5}},
        },
        "wer": {"mine": {"anonymised": {"value": 0.2}}},
    }
    system = read_system(saved(tmp_path, found))
    assert {name: one.value for name, one in system.utilities.items()} == {"wer": 0.2, "uar": 0.5}
    assert system.sets == ("libri_test f", "libri_test m", "vctk_common_test f")


def test_averages_use_the_weights_of_the_challenge(tmp_path):
    rows = [
        row(name, "a", eer, dataset=dataset)
        for dataset, eer in (("libri_test", 0.1), ("vctk_test_common", 0.3))
        for name in "fm"
    ]
    found = {
        "conditions": rows,
        "config": {"challenge": {"weights": {"libri": 0.3, "vctk_common": 0.1}}},
    }
    eer = read_system(saved(tmp_path, found)).eer
    assert eer.value == pytest.approx((2 * 0.3 * 0.1 + 2 * 0.1 * 0.3) / 0.8)
    reach = (2 * (0.3 / 0.8) ** 2 + 2 * (0.1 / 0.8) ** 2) ** 0.5
    assert (eer.value - eer.low, eer.high - eer.value) == (
        pytest.approx(0.02 * reach),
        pytest.approx(0.03 * reach),
    )
    del found["config"]["challenge"]["weights"]["libri"]  # a set without a weight: the plain mean
    assert read_system(saved(tmp_path, found)).eer.value == pytest.approx(0.2)


ANON = {"dataset": "libri", "split": "test", "gender": "f", "enrollment": "anon", "trial": "anon"}


def test_challenge_files_have_neither_intervals_nor_an_attacker(tmp_path):
    """What is called libri may be a part of it, or another set: nothing is guessed from a name."""
    words = {"dataset": "libri", "split": "test", "asr": "anon", "WER": 5.0}
    path = tmp_path / "result_for_rank_x"
    sections = Section(ASV_ANON, [ANON | {"EER": 20.0}]), Section(ASR, [words])
    write_rank_file(path, sections)
    system = read_system(path)
    assert not system.eer.has_interval
    assert not system.utilities["wer"].has_interval
    assert (system.attacker, system.sets) == ("not stated", ("libri_test f",))
    protocol = Section(PROTOCOL, [{"attacker": "campplus", "reading": "speechbrain", "draws": "1"}])
    write_rank_file(path, [protocol, *sections])
    assert read_system(path).attacker == "campplus (speechbrain)"


def test_a_semi_informed_attacker_weaker_than_the_lazy_one_is_reported(tmp_path):
    path = tmp_path / "result_for_rank_x"
    for lazy, told in ((12.5, True), (22.25, False), (30.0, False)):
        write_rank_file(
            path, [Section(ASV, [ANON | {"EER": lazy}]), Section(ASV_ANON, [ANON | {"EER": 22.25}])]
        )
        assert (
            any(
                "12.5 %, is below the semi-informed 22.25 %" in note
                for note in read_system(path).notes
            )
            == told
        )


def test_a_named_attacker_is_read_from_own_results(tmp_path):
    """One system was 11.29 % in results.json and 13.10 % in its rank file: other attackers by other readings."""
    found = results()
    found["protocol"] = {"attacker": "gmm-ubm", "reading": "kaldi"}
    for one, eer in zip(found["conditions"], (0.22, 0.9, 0.12, 0.9, 0.9, 0.9), strict=True):
        one["eer"]["kaldi"] = eer
    system = read_system(saved(tmp_path, found))
    assert system.attacker == "gmm-ubm (kaldi)"
    assert system.eer.value == pytest.approx((0.22 + 0.12) / 2)
    assert not system.eer.has_interval  # the file has intervals of another rate
    of_women = [
        one
        for one in figures_of_results(typed_results(found))
        if (one.speakers, one.dataset) == ("f", "libri")
    ]
    assert 0.22 in [one.value.value for one in of_women if one.condition == "semi-informed"]
    found["protocol"] = {"attacker": "gone", "reading": "kaldi"}
    with pytest.raises(DataError, match="no EER of a semi-informed attacker"):
        read_system(saved(tmp_path, found))
