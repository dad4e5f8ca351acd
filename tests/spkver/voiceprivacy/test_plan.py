"""The plan of an evaluation, from lists alone: no recording exists here, and no row holds an object."""

from __future__ import annotations

import logging
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest
from silent_sets import KNOWN, SUFFIX, sets_of

from spkbase.errors import DataError
from spkbase.runs import Run
from spkver.voiceprivacy.facts import Facts
from spkver.voiceprivacy.plan import Plan, make_plan
from spkver.voiceprivacy.plan_rows import lists_of
from spkver.voiceprivacy.rows import Row, read_plan, write_plan

ATTACKERS = (
    "gmm-ubm",
    "supervector-adapted",
    "properties",
    "gmm-ubm-inverted",
    "supervector-adapted-reversed",
    "fusion",
)


def planned(
    folder: Path,
    *attackers: str,
    facts: Facts = KNOWN,
    utterances: tuple[int, ...] = (1,),
    **options: Any,
) -> Plan:
    run = Run(folder / "out", jobs=1, quiet=True)
    sets = sets_of(folder, *attackers, **options)
    return make_plan(run, sets, facts, suffix=SUFFIX, seed=0, utterances=utterances)


def rows(plan: Plan, **values: Any) -> list[Row]:
    every = [*plan.rows, *plan.of_folds]
    return [
        row for row in every if all(getattr(row, name) == value for name, value in values.items())
    ]


def row(plan: Plan, **values: Any) -> Row:
    (only,) = rows(plan, **values)
    return only


def test_scenarios_determine_which_speech_is_anonymised(tmp_path: Path) -> None:
    lists = [one for one in lists_of(sets_of(tmp_path), SUFFIX) if one.gender == "f"]
    speech = {one.scenario: (one.training, one.enrolment, one.tested) for one in lists}
    assert speech == {
        "original": ("asv_orig", ("set_enrolls",), ("set_trials_f",)),
        "ignorant": ("asv_orig", ("set_enrolls",), ("set_trials_f_x",)),
        "reversal": ("asv_orig", ("set_enrolls",), ("set_trials_f_x",)),
        "lazy-informed": ("asv_orig", ("set_enrolls_x",), ("set_trials_f_x",)),
        "semi-informed": ("asv_anon_x", ("set_enrolls_x",), ("set_trials_f_x",)),
    }


def test_each_version_of_the_trials_is_a_row_and_all_versions_enrol(tmp_path: Path) -> None:
    plan = planned(tmp_path, *ATTACKERS, draws=3)
    lazy = rows(plan, attacker="gmm-ubm", scenario="lazy-informed", gender="f", fold=0)
    assert [one.draw for one in lazy] == [1, 2, 3]
    assert [one.tested for one in lazy] == [
        ("set_trials_f_x",),
        ("set_trials_f_x-draw2",),
        ("set_trials_f_x-draw3",),
    ]
    assert {one.enrolment for one in lazy} == {
        ("set_enrolls_x", "set_enrolls_x-draw2", "set_enrolls_x-draw3")
    }
    assert lazy[1].file == "exp/asv_orig/set_enrolls_x-set_trials_f_x-draw2/gmm-ubm/scores"
    assert len(rows(plan, attacker="gmm-ubm", scenario="original", gender="f", fold=0)) == 1
    assert [one.draw for one in rows(plan, scenario="reversal", gender="f")] == [1]


def test_conversations_add_rows_and_leave_those_of_recordings_unchanged(tmp_path: Path) -> None:
    single = planned(tmp_path, *ATTACKERS, draws=3)
    plan = planned(tmp_path, *ATTACKERS, draws=3, utterances=(1, 3))
    assert rows(plan, utterances=1) == rows(single)
    assert all(plan.origins[one.id] == single.origins[one.id] for one in rows(single))
    assert len(rows(plan, utterances=3)) == len(single.rows)
    kinds = {(one.attacker, one.kind) for one in rows(plan, utterances=3) if one.gender == "f"}
    assert kinds == {
        ("gmm-ubm", "conversation"),
        ("supervector-adapted", "single"),
        ("properties", "conversation"),
        ("gmm-ubm-inverted", "conversation"),
        ("supervector-adapted-reversed", "conversation"),
        ("fusion", "conversation"),
        ("fusion-inverted", "conversation"),
    }
    last = row(
        plan, attacker="supervector-adapted", scenario="ignorant", gender="f", draw=3, utterances=3
    )
    assert last.file == (
        "exp/asv_orig/set_enrolls-set_trials_f_x-draw3-utterances3/supervector-adapted/scores"
    )
    places = {
        tuple(place for place, _ in recordings)
        for recordings in plan.attacks[last.id].conversations.values()
    }
    assert places == {(2, 0, 1)}


def test_a_fusion_with_words_has_separate_rows_from_the_one_without(tmp_path: Path) -> None:
    """Words are read in the folds as well, where a training set without some speakers has the texts of the whole."""
    sets = sets_of(tmp_path, "gmm-ubm", "gmm-svm", "content", "fusion", draws=2)
    for name, source in sets.original.items():
        for directory in (source, *sets.versions[name]):
            directory.path.mkdir()
            lines = [f"{utterance} some words\n" for utterance in directory.recordings]
            (directory.path / "text").write_text("".join(lines))
    run = Run(tmp_path / "out", jobs=1, quiet=True)
    plan = make_plan(run, sets, KNOWN, suffix=SUFFIX, seed=0)
    assert plan.names == {"train": ["gmm-ubm", "gmm-svm", "content", "fusion", "fusion-words"]}
    for scenario, kind in (("original", "original"), ("semi-informed", "semi-informed")):
        fused = row(plan, attacker="fusion", scenario=scenario, gender="f", draw=1)
        worded = row(plan, attacker="fusion-words", scenario=scenario, gender="f", draw=1)
        assert [one.attacker for one in plan.members(fused)] == ["gmm-ubm", "gmm-svm"]
        assert [one.attacker for one in plan.members(worded)] == ["gmm-ubm", "gmm-svm", "content"]
        assert (fused.content, worded.content) == ("", "oracle")
        folds = rows(plan, attacker="content", folds=kind)
        assert [one.fold for one in folds] == [1, 2, 3]
        assert "content" not in plan.left_out["train", kind]
        attacker = plan.attackers["train"]["content"][1]
        background = attacker.fit(plan.attacks[folds[0].id].training, None, seed=0, jobs=1).model[1]
        assert background == ["some words"] * len(plan.attacks[folds[0].id].training.versions[0])


def test_inverting_attackers_score_only_invertible_speech(tmp_path: Path) -> None:
    plan = planned(tmp_path, *ATTACKERS)
    inverted = rows(plan, attacker="gmm-ubm-inverted", fold=0, kind="single")
    assert {(one.scenario, one.inversion, one.level) for one in inverted} == {
        ("lazy-informed", "inverted", "inverting"),
        ("semi-informed", "inverted", "inverting"),
    }
    reversal = row(plan, attacker="supervector-adapted-reversed", gender="f")
    assert (reversal.scenario, reversal.inversion, reversal.level) == (
        "reversal",
        "reversed",
        "inverting",
    )


def test_inverted_speech_is_kept_in_the_output_folder_and_networks_enrol_two_versions(
    tmp_path: Path,
) -> None:
    plan = planned(tmp_path, *ATTACKERS, draws=3)
    semi = row(
        plan, attacker="gmm-ubm-inverted", scenario="semi-informed", gender="f", draw=1, fold=0
    )
    attack = plan.attacks[semi.id]
    assert [one.path for one in attack.enrolment] == [
        tmp_path / f"out/data/set_enrolls_x{end}-inverted" for end in ("", "-draw2", "-draw3")
    ]
    assert attack.tested.path == tmp_path / "out/data/set_trials_f_x-inverted"
    assert attack.training.versions == (plan.speech.backgrounds["train"].original,)
    reversal = plan.attacks[row(plan, attacker="supervector-adapted-reversed", gender="f").id]
    assert [one.path.name for one in reversal.variants] == [
        f"set_trials_f_x-reversed{number}" for number in (1, 2, 3)
    ]
    spec, attacker = plan.attackers["train"]["gmm-ubm-inverted"]
    assert spec.row is not None
    network = replace(spec, row=replace(spec.row, is_network=True))
    assert len(plan.speech.derived_attack(semi, network, attacker).enrolment) == 2


def test_fusions_combine_voice_attackers_and_have_an_inverting_variant(tmp_path: Path) -> None:
    plan = planned(tmp_path, *ATTACKERS)
    members = {}
    for fused in rows(plan, kind="fusion", gender="f"):
        members[fused.attacker, fused.scenario] = [one.attacker for one in plan.members(fused)]
    alone = ["gmm-ubm", "supervector-adapted"]
    assert members == {
        **{
            ("fusion", scenario): alone
            for scenario in ("original", "ignorant", "lazy-informed", "semi-informed")
        },
        ("fusion-inverted", "lazy-informed"): [*alone, "gmm-ubm-inverted"],
        ("fusion-inverted", "semi-informed"): [*alone, "gmm-ubm-inverted"],
    }
    levels = {(one.attacker, one.level) for one in rows(plan, kind="fusion")}
    assert levels == {("fusion", "whole-list"), ("fusion-inverted", "inverting")}
    assert plan.names == {"train": [*ATTACKERS[:-1], "fusion", "fusion-inverted"]}


def test_fusion_weights_are_learnt_from_the_folds_of_the_scenario(tmp_path: Path) -> None:
    plan = planned(tmp_path, *ATTACKERS)
    kinds = {(one.attacker, one.scenario, one.folds) for one in rows(plan, kind="fusion")}
    assert kinds == {
        ("fusion", "original", "original"),
        ("fusion", "ignorant", "original"),
        ("fusion", "lazy-informed", "original"),
        ("fusion", "semi-informed", "semi-informed"),
        ("fusion-inverted", "lazy-informed", "lazy-informed"),
        ("fusion-inverted", "semi-informed", "semi-informed"),
    }
    assert plan.folds.keys() == {("train", kind) for _, _, kind in kinds}
    listed = [(one.fold, one.attacker) for one in rows(plan, folds="lazy-informed", kind="single")]
    expected = ["gmm-ubm", "supervector-adapted", "gmm-ubm-inverted"]
    assert listed == [(fold, name) for fold in (1, 2, 3) for name in expected]
    semi = rows(plan, folds="semi-informed", kind="single", fold=2)
    assert [one.id for one in semi] == [
        f"attackers/train_x/folds-semi-informed/2/{name}" for name in expected
    ]
    assert not {one.dataset for one in plan.of_folds} - {""}


def test_few_background_speakers_give_neither_fusion_nor_folds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = planned(tmp_path, "gmm-ubm", "fusion", training=3)
    assert not rows(plan, kind="fusion")
    assert not plan.of_folds
    assert "too few background speakers" in caplog.text


def test_sexes_are_pooled_if_an_attacker_has_both(tmp_path: Path) -> None:
    plan = planned(tmp_path, "gmm-ubm", "fusion", draws=2)
    both = row(plan, kind="pooled", attacker="gmm-ubm", scenario="semi-informed", draw=2)
    assert both.id == "exp/asv_anon_x/set_enrolls_x-set_trials_all_x-draw2/gmm-ubm"
    assert both.tested == ("set_trials_f_x-draw2", "set_trials_m_x-draw2")
    assert (both.gender, both.trials) == ("all", "set_trials_all")
    assert [(one.gender, one.draw) for one in plan.members(both)] == [("f", 2), ("m", 2)]
    joined = row(plan, kind="pooled", attacker="fusion", scenario="original")
    assert {one.kind for one in plan.members(joined)} == {"fusion"}
    assert not rows(planned(tmp_path, "gmm-ubm", genders="f"), kind="pooled")


def test_rows_follow_the_order_of_sets_and_scenarios(tmp_path: Path) -> None:
    plan = planned(tmp_path, "gmm-ubm", "fusion", names=("second", "first"))
    order = [(one.dataset, one.scenario) for one in plan.rows]
    scenarios = ("original", "ignorant", "lazy-informed", "semi-informed")
    assert list(dict.fromkeys(order)) == [
        (name, scenario) for name in ("second", "first") for scenario in scenarios
    ]
    assert len(set(order)) == sum(
        before != after for before, after in zip(order, [*order[1:], None], strict=True)
    )
    kinds = [one.kind for one in rows(plan, dataset="first", scenario="original")]
    assert kinds == ["single", "single", "fusion", "fusion", "pooled", "pooled"]


@pytest.mark.parametrize(
    ("facts", "training", "why"),
    [
        (Facts({"train": None}), 12, "what made train_x cannot be inverted"),
        (KNOWN, 4, "a background of 8 recordings of 4 speakers is too small"),
    ],
)
def test_inverting_attackers_are_omitted_if_the_anonymiser_is_unknown(
    facts: Facts, training: int, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        plan = planned(tmp_path, *ATTACKERS, facts=facts, training=training)
    assert not rows(plan, level="inverting")
    assert "fusion-inverted" not in plan.names["train"]
    assert (
        f"gmm-ubm-inverted is left out of 4 conditions, such as asv_orig/set_enrolls_x-set_trials_f_x: {why}"
        in (caplog.text)
    )


def test_attackers_without_any_row_raise_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match=r"no attacker can score any condition: gmm-ubm-inverted on asv_orig/set_.*x:",
    ):
        planned(tmp_path, "gmm-ubm-inverted", facts=Facts({"train": None}))


def test_errors_in_user_files_are_raised_together(tmp_path: Path) -> None:
    for name in ("f", "m"):
        file = tmp_path / f"asv_orig/set_enrolls-set_trials_{name}/scores"
        file.parent.mkdir(parents=True)
        file.write_text("f1 f1-0 no-number\n")
    with pytest.raises(DataError) as error:
        planned(tmp_path, f"scores:{tmp_path}")
    assert "set_trials_f" in str(error.value)
    assert "set_trials_m" in str(error.value)


def test_recordings_of_single_recording_speakers_are_cut_for_attackers_that_need_several(
    tmp_path: Path,
) -> None:
    facts = Facts(
        pieces={"train": {f"{'fm'[number % 2]}{100 + number}-0": 2 for number in range(12)}}
    )
    plan = planned(
        tmp_path, "gmm-ubm", "supervector-adapted", "session", "fusion", facts=facts, takes=1
    )
    names = {}
    for one in rows(plan, scenario="semi-informed", gender="f", kind="single"):
        names[one.attacker] = plan.attacks[one.id].training.versions[0].path.name
    pieces = "train_x-pieces"
    assert names == {"gmm-ubm": "train_x", "supervector-adapted": pieces, "session": pieces}
    assert plan.speech.pieces.keys() == {
        tmp_path / f"out/data/{name}-pieces" for name in ("train", "train_x")
    }
    assert {one.attacker for one in plan.of_folds} == {"gmm-ubm", "supervector-adapted"}
    assert {tuple(left) for left in plan.left_out.values()} == {("session",)}


def test_fusion_weights_do_not_depend_on_the_order_of_members(tmp_path: Path) -> None:
    """An attacker that inverts learns from original speech itself."""
    plan = planned(tmp_path, "gmm-ubm-inverted", "gmm-ubm", "fusion")
    fused = row(plan, attacker="fusion-inverted", scenario="semi-informed", gender="f")
    assert plan.members(fused)[0].attacker == "gmm-ubm-inverted"
    assert fused.folds == "semi-informed"


# --- the table of rows ------------------------------------------------------------------------------------------------


def test_rows_contain_strings_and_numbers_and_have_unique_ids(tmp_path: Path) -> None:
    plan = planned(tmp_path, *ATTACKERS, draws=2)
    every = [*plan.rows, *plan.of_folds]
    for one in every:
        for value in astuple(one):
            assert type(value) in (str, int) or {type(name) for name in value} <= {str}
    assert len({one.id for one in every}) == len(every)


def test_a_written_plan_is_read_back_equal_with_the_same_speech(tmp_path: Path) -> None:
    plan = planned(tmp_path, *ATTACKERS, draws=2)
    every = [*plan.rows, *plan.of_folds]
    write_plan(tmp_path / "plan.csv", every)
    again = read_plan(tmp_path / "plan.csv")
    assert again == every
    for one in [one for one in again if one.kind != "pooled"]:
        attack = plan.speech.attack(one)
        if not one.fold:
            assert tuple(side.path.name for side in attack.enrolment) == one.enrolment
            assert attack.tested.path.name == one.tested[0]
        assert attack.training.name == one.training


@pytest.mark.parametrize(
    "name", ["two words", "it's", '"quoted"', "=1+2", "'=1", "-x", "a,b", "", "é\tü"]
)
def test_unusual_names_are_read_back(name: str, tmp_path: Path) -> None:
    values: dict[str, Any] = dict.fromkeys(
        ("id", "attacker", "level", "content", "background", "training"), name
    )
    values |= dict.fromkeys(("inversion", "trials", "scenario"), name)
    one = Row(
        kind="pooled",
        enrolment=(name,),
        tested=(name, "other"),
        members=(),
        draw=3,
        fold=2,
        **values,
    )
    write_plan(tmp_path / "plan.csv", [one])
    assert read_plan(tmp_path / "plan.csv") == [one]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("attacker,", "attack,", "expected the columns id, background, training"),
        (
            ",single,",
            ",double,",
            "kind 'double' is not one of single, fusion, conversation, pooled",
        ),
        (",1,0,", ",first,0,", "invalid literal"),
    ],
)
def test_malformed_plans_are_refused(old: str, new: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    write_plan(path, planned(tmp_path, "gmm-ubm").rows)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=expected) as error:
        read_plan(path)
    assert error.value.file == path


# --- work still to be done --------------------------------------------------------------------------------------------


def test_rows_are_due_until_scored_and_folds_until_fused(
    tmp_path: Path,
) -> None:
    (tmp_path / "out").mkdir()
    run = Run(tmp_path / "out", jobs=1, quiet=True)
    plan = planned(tmp_path, "gmm-ubm", "supervector-adapted", "fusion", genders="f")
    singles = [one for one in plan.rows if one.kind == "single"]
    assert plan.due(run) == [*singles, *plan.of_folds]

    def make(one: Row) -> None:
        stage = plan.origins[one.id]
        run.path(one.id).mkdir(parents=True)
        run.stage(
            stage.name,
            one.file,
            make=lambda path: path.write_text(one.id),
            read=Path.read_text,
            origin=stage,
        )

    make(singles[0])
    assert plan.due(run) == [*singles[1:], *plan.of_folds]
    for fused in rows(plan, kind="fusion", folds="original"):
        make(fused)
    semi = rows(plan, folds="semi-informed", kind="single")
    assert plan.due(run) == [*singles[1:], *semi]
    assert plan.due(replace(run, force=True)) == [*singles, *plan.of_folds]


def test_scores_depend_on_the_recordings_the_seed_and_the_members(tmp_path: Path) -> None:
    def origins(seed: int = 0, **options: Any) -> dict[str, str]:
        run = Run(tmp_path / "out", jobs=1, quiet=True)
        plan = make_plan(
            run, sets_of(tmp_path, *ATTACKERS, **options), KNOWN, suffix=SUFFIX, seed=seed
        )
        return {name: stamp.fingerprint for name, stamp in plan.origins.items()}

    before = origins()
    assert origins() == before
    assert not set(origins(seed=1).items()) & set(before.items())
    file = tmp_path / "set_trials_f_x/wav/f1-0.wav"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"other")
    changed = {name for name, fingerprint in origins().items() if before[name] != fingerprint}
    assert changed == {
        name for name in before if "set_trials_f_x" in name or "set_trials_all_x" in name
    }
