"""Scores of a plan, by attackers that read the answer from the ids: no recording exists here."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from silent_sets import KNOWN, SUFFIX, sets_of

from evaluation.formats import read_scores
from evaluation.trials import INVERTING, ONE_MODEL, WHOLE_LIST, Scores, align
from spkbase.errors import DataError
from spkbase.files import load_json
from spkbase.runs import Run
from spkver.attackers import Attack, LostModelError, SpeechFiles, Trained, fuse, parse_spec
from spkver.attackers.protocol import Learnt, TrainingSet, WithoutSource
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.failures import Failures
from spkver.voiceprivacy.plan import Plan, make_plan
from spkver.voiceprivacy.rows import Row
from spkver.voiceprivacy.scores import Scored, fusion_weights, joined, score
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config, EvaluationConfig

SPEAKERS = 12


@dataclass
class Silent(WithoutSource):
    """Scores same-speaker trials higher, by the ids, with noise of its own.

    Attributes
    ----------
    name : str
    level : str
    error : Exception, optional
        Raised where `fails` is a part of the name of the attack.
    fails : str
    calls : list of str
        Names of the attacks that were scored, and the models that they were scored with.
    """

    name: str
    level: str = ONE_MODEL
    error: Exception | None = None
    fails: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    utterances: int | None = None

    def record(self, attack: Attack) -> Any:
        return self.name

    def fit(self, training: TrainingSet, vectors: Any, *, seed: int, jobs: int | None) -> Learnt:
        return Learnt("learnt again")

    def score(self, model: str, attack: Attack, vectors: Any) -> Scores:
        self.calls.append((attack.name, model))
        if self.error is not None and self.fails in attack.name:
            raise self.error
        return scores_of(self.name, attack.trials.pairs())


def scores_of(name: str, pairs: Any) -> Scores:
    models, segments = zip(*pairs, strict=True)
    values = []
    for model, segment in zip(models, segments, strict=True):
        noise = crc32(f"{name} {model} {segment}".encode()) / 2**32
        values.append(2.0 * noise + (segment.rpartition("-")[0] == model))
    return Scores.from_ids(models, segments, values)


@dataclass
class Evaluation:
    """An evaluation whose plan is made, ready to be scored."""

    folder: Path
    attackers: Sequence[Silent]
    outside: str = ""
    draws: int = 1
    utterances: tuple[int, ...] = (1,)
    plan: Plan = field(init=False)
    sets: Sets = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "out").mkdir(parents=True)
        if self.outside:
            # a plug-in that can be opened; `Silent` scores in its place
            file = self.folder / "asv_orig/set_enrolls-set_trials_f/scores"
            file.parent.mkdir(parents=True)
            file.touch()
        self.sets = sets_of(self.folder, "fusion", draws=self.draws, training=SPEAKERS)
        (group,) = self.sets.rate_groups
        (fusion,) = group.attackers
        chosen = []
        for attacker in self.attackers:
            spec = parse_spec(attacker.name, self.settings.get(attacker.name))
            chosen.append((spec, attacker))
        group = replace(group, attackers=[*chosen, fusion])
        self.sets = replace(self.sets, rate_groups=(group,))
        self.plan = make_plan(
            self.run(), self.sets, KNOWN, suffix=SUFFIX, seed=0, utterances=self.utterances
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {self.outside: {"preset": f"scores:{self.folder}"}} if self.outside else {}

    def run(self) -> Run:
        return Run(self.folder / "out", jobs=1, quiet=True)

    def score(self, *lost: str) -> tuple[list[Scored], Failures]:
        """Compute the scores; the models of the attackers that are named in `lost` are not at hand."""
        names = tuple(attacker.name for attacker in self.attackers)
        config = Config(
            attackers=(*names, "fusion"),
            attacker_settings=self.settings,
            evaluation=EvaluationConfig(utterances=self.utterances),
        )
        failures = Failures({self.outside})
        experiment = Experiment(self.run(), self.folder, SUFFIX, config, failures=failures)
        models = {}
        for row in (*self.plan.rows, *self.plan.of_folds):
            if row.kind == "single" and row.attacker not in lost:
                models[self.plan.model(row)] = Trained(lambda: "model")
        speech = SpeechFiles(experiment.run, experiment.run)
        return score(experiment, self.sets, self.plan, speech, models), failures

    def row(
        self,
        attacker: str,
        gender: str = "f",
        scenario: str = "semi-informed",
        utterances: int = 1,
        draw: int = 1,
    ) -> Row:
        asked = (attacker, gender, scenario, utterances, draw)
        (row,) = [
            row
            for row in self.plan.rows
            if (row.attacker, row.gender, row.scenario, row.utterances, row.draw) == asked
        ]
        return row

    def read(self, row: Row) -> Scores:
        return read_scores(self.folder / "out" / row.file)


@pytest.fixture
def two(tmp_path: Path) -> Evaluation:
    return Evaluation(tmp_path, [Silent("gmm-ubm"), Silent("gmm-svm", WHOLE_LIST)])


def same(first: Scores, second: Scores) -> bool:
    return np.array_equal(align(first, second), second.values)


def test_each_attacker_scores_its_rows_and_conditions_name_their_files(two: Evaluation) -> None:
    conditions, failures = two.score()
    single = two.row("gmm-ubm")
    assert same(two.read(single), scores_of("gmm-ubm", two.plan.attacks[single.id].trials.pairs()))
    (condition,) = [
        condition
        for condition in conditions
        if (condition.attacker, condition.gender, condition.scenario)
        == ("gmm-ubm", "f", "semi-informed")
    ]
    assert condition.scores == {1: single.file}
    assert condition.lists == "lists/set_trials_f"
    assert condition.tested == (6,)
    assert (condition.level, condition.lacking, condition.weights) == (ONE_MODEL, (), ())
    order = [(entry.scenario, entry.gender, entry.attacker) for entry in conditions[:9]]
    assert order == [
        ("original", gender, name)
        for gender in ("f", "m", "all")
        for name in ("gmm-ubm", "gmm-svm", "fusion")
    ]
    assert not failures.listed


def test_scores_of_both_sexes_equal_those_of_each_sex(two: Evaluation) -> None:
    conditions, _ = two.score()
    pooled = two.read(two.row("gmm-ubm", "all"))
    women, men = (two.read(two.row("gmm-ubm", gender)) for gender in "fm")
    assert same(pooled, joined([women, men]))
    assert len(pooled) == len(women) + len(men)
    sizes = {entry.tested for entry in conditions if entry.gender == "all"}
    assert sizes == {(6, 6)}


def test_fused_scores_are_weighted_sums_with_weights_from_the_folds(two: Evaluation) -> None:
    conditions, _ = two.score()
    fused = two.row("fusion")
    members = two.plan.members(fused)
    record = load_json(two.folder / "out" / two.plan.weights_file(fused, members))
    assert set(record["weights"]["weights"]) == {"gmm-ubm", "gmm-svm"}
    assert record["training"] == "train_x"
    expected = fuse(record["weights"], {row.attacker: two.read(row) for row in members})
    assert same(two.read(fused), expected)
    levels = {entry.level for entry in conditions if entry.attacker == "fusion"}
    weighed = [row.level for row in members if record["weights"]["weights"][row.attacker]]
    assert (WHOLE_LIST in levels) == (WHOLE_LIST in weighed)
    weights = fusion_weights(two.run(), conditions)
    assert {entry.file for entry in weights} == {
        file for entry in conditions for file in entry.weights
    }


def test_scores_that_are_up_to_date_are_not_computed_again(two: Evaluation) -> None:
    first, _ = two.score()
    counts = [len(attacker.calls) for attacker in two.attackers]
    second, _ = two.score()
    assert second == first
    assert [len(attacker.calls) for attacker in two.attackers] == counts
    (two.folder / "out" / two.row("gmm-ubm").file).unlink()
    two.score()
    assert [len(attacker.calls) for attacker in two.attackers] == [counts[0] + 1, counts[1]]


def test_every_version_of_the_trials_is_scored_and_missing_ones_are_named(tmp_path: Path) -> None:
    failing = Silent("gmm-ubm", error=DataError("too loud"), fails="draw2")
    conditions, failures = Evaluation(tmp_path, [failing, Silent("gmm-svm")], draws=3).score()
    drawn = {}
    for entry in conditions:
        if (entry.gender, entry.scenario) == ("f", "lazy-informed"):
            drawn[entry.attacker] = (tuple(entry.scores), entry.lacking)
    assert drawn["gmm-svm"] == ((1, 2, 3), ())
    assert drawn["gmm-ubm"] == ((1, 3), (2,))
    assert {failure.reason for failure in failures.listed} == {"attacker 'gmm-ubm': too loud"}


def test_an_attacker_that_fails_is_left_out_and_tried_again_in_the_next_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Silent("gmm-ubm", error=DataError("too loud"), fails="set_trials_f_x")
    evaluation = Evaluation(tmp_path, [failing, Silent("gmm-svm")])
    with caplog.at_level(logging.WARNING):
        conditions, failures = evaluation.score()
    lists = Counter((entry.attacker, entry.gender) for entry in conditions)
    # one of four scenarios has original trials, which are scored; the pooled scores need both sexes
    assert lists["gmm-ubm", "f"] == 1
    assert lists["gmm-ubm", "m"] == 4
    assert lists["gmm-ubm", "all"] == 1
    assert lists["gmm-svm", "all"] == lists["fusion", "all"] == 4
    assert [(entry.attacker, entry.gender) for entry in failures.listed] == [("gmm-ubm", "f")] * 3
    assert "gmm-ubm has no scores: attacker 'gmm-ubm': too loud" in caplog.text
    failing.error = None
    conditions, failures = evaluation.score()
    assert not failures.listed
    assert Counter(entry.attacker for entry in conditions)["gmm-ubm"] == 12


def test_a_fusion_leaves_out_members_that_fail_in_a_fold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Silent("gmm-ubm", error=DataError("too loud"), fails="folds/")
    evaluation = Evaluation(tmp_path, [failing, Silent("gmm-svm")])
    with caplog.at_level(logging.WARNING):
        evaluation.score()
    assert "fusion leaves out gmm-ubm: attacker 'gmm-ubm': too loud" in caplog.text
    fused = evaluation.row("fusion")
    file = evaluation.plan.weights_file(fused, evaluation.plan.members(fused))
    record = load_json(tmp_path / "out" / file)
    assert set(record["weights"]["weights"]) == {"gmm-svm"}
    assert record["left_out"] == {"gmm-ubm": "attacker 'gmm-ubm': too loud"}


def test_attackers_that_all_fail_end_the_run_with_all_their_errors(tmp_path: Path) -> None:
    attackers = [Silent(name, error=DataError(f"{name} broke")) for name in ("gmm-ubm", "gmm-svm")]
    with pytest.raises(DataError) as error:
        Evaluation(tmp_path, attackers).score()
    assert "gmm-ubm broke" in str(error.value)
    assert "gmm-svm broke" in str(error.value)


def test_the_error_of_the_only_attacker_is_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(LostModelError, match="ended"):
        Evaluation(tmp_path, [Silent("gmm-ubm", error=LostModelError("ended"))]).score()


def test_a_plug_in_may_fail_in_any_way_but_a_defect_of_a_built_in_attacker_ends_the_run(
    tmp_path: Path,
) -> None:
    broken = Silent("mine", error=ZeroDivisionError("division by zero"))
    conditions, failures = Evaluation(tmp_path, [broken, Silent("gmm-svm")], outside="mine").score()
    assert {entry.attacker for entry in conditions} == {"gmm-svm", "fusion"}
    assert {entry.reason for entry in failures.listed} == {"ZeroDivisionError: division by zero"}
    defect = Silent("gmm-ubm", error=ZeroDivisionError("division by zero"))
    with pytest.raises(ZeroDivisionError):
        Evaluation(tmp_path / "x", [defect, Silent("gmm-svm")]).score()


def test_an_attacker_whose_process_ended_learns_again_for_the_next_list(tmp_path: Path) -> None:
    mortal = Silent("gmm-ubm", error=LostModelError("ended"), fails="set_enrolls-set_trials_f_x")
    _, failures = Evaluation(tmp_path, [mortal, Silent("gmm-svm")]).score()
    models = dict(mortal.calls)
    assert models["asv_orig/set_enrolls-set_trials_f_x"] == "model"
    assert models["asv_orig/set_enrolls-set_trials_m_x"] == "learnt again"
    assert models["asv_anon_x/set_enrolls_x-set_trials_f_x"] == "model"
    assert [entry.reason for entry in failures.listed] == ["attacker 'gmm-ubm': ended"]


def test_missing_models_are_trained(two: Evaluation) -> None:
    two.score("gmm-svm")
    ubm, svm = two.attackers
    assert {model for _, model in ubm.calls} == {"model"}
    assert {model for _, model in svm.calls} == {"learnt again"}


def test_the_level_of_a_fusion_is_the_highest_of_members_with_weight(tmp_path: Path) -> None:
    attackers = [Silent("gmm-ubm"), Silent("gmm-svm", WHOLE_LIST)]
    evaluation = Evaluation(tmp_path, attackers)
    assert evaluation.row("fusion").level == WHOLE_LIST
    attackers[1].error, attackers[1].fails = DataError("broken"), "folds/"
    conditions, _ = evaluation.score()
    levels = {entry.level for entry in conditions if entry.attacker == "fusion"}
    assert levels == {ONE_MODEL}
    assert INVERTING not in levels


@dataclass
class Pooling(Silent):
    """Scores conversations at once, by their names."""

    pools: bool = True


def test_only_conversations_are_scored_after_a_run_without_them(
    tmp_path: Path,
) -> None:
    attackers = [Silent("gmm-ubm"), Pooling("gmm-svm")]
    alone = Evaluation(tmp_path, attackers, draws=3)
    before, _ = alone.score()
    files = {path: path.read_bytes() for path in tmp_path.rglob("scores")}
    counts = [len(attacker.calls) for attacker in attackers]
    alone.utterances = (1, 2)
    alone.plan = make_plan(alone.run(), alone.sets, KNOWN, suffix=SUFFIX, seed=0, utterances=(1, 2))
    after, _ = alone.score()
    assert [entry for entry in after if entry.utterances == 1] == before
    assert all(path.read_bytes() == raw for path, raw in files.items())
    # three versions for each of four scenarios and two sexes, except for original trials
    assert [len(attacker.calls) for attacker in attackers] == [counts[0], counts[1] + 2 * (1 + 9)]
    spoken = [entry for entry in after if entry.utterances == 2]
    assert len(spoken) == len(before)
    assert {entry.lists for entry in spoken} == {
        f"lists/set_trials_{sex}-utterances2" for sex in ("f", "m", "all")
    }


def test_other_attackers_get_mean_scores_of_versions_in_turn_and_fusions_get_sums(
    tmp_path: Path,
) -> None:
    evaluation = Evaluation(
        tmp_path, [Silent("gmm-ubm"), Silent("gmm-svm")], draws=3, utterances=(1, 2)
    )
    conditions, _ = evaluation.score()
    dealt = evaluation.plan.speech.dealt["set_trials_f-utterances2"]
    for attacker, divisor in (("gmm-ubm", 2), ("fusion", 1)):
        for draw in (1, 2, 3):
            row = evaluation.row(attacker, utterances=2, draw=draw)
            found = evaluation.read(row)
            drawn = [evaluation.read(evaluation.row(attacker, draw=number)) for number in (1, 2, 3)]
            values = [dict(zip(part.pairs(), part.values, strict=True)) for part in drawn]
            for (model, name), value in zip(found.pairs(), found.values, strict=True):
                total = 0.0
                for place, recording in enumerate(dealt.rounds[draw - 1][name], draw - 1):
                    total += values[place % 3][model, recording]
                assert value == pytest.approx(total / divisor, abs=1e-6)
    pooled = evaluation.read(evaluation.row("gmm-ubm", "all", utterances=2))
    sexes = [evaluation.read(evaluation.row("gmm-ubm", sex, utterances=2)) for sex in "fm"]
    assert same(pooled, joined(sexes))
    levels = {entry.utterances: entry.level for entry in conditions if entry.attacker == "fusion"}
    assert levels[1] == levels[2]


def test_attackers_get_conversations_without_labels_from_all_versions(tmp_path: Path) -> None:
    evaluation = Evaluation(tmp_path, [Pooling("gmm-ubm")], draws=3, utterances=(1, 2))
    row = evaluation.row("gmm-ubm", utterances=2)
    attack = evaluation.plan.attacks[row.id]
    assert [part.path.name for part in attack.tests] == list(row.tested)
    names = set(attack.trials.segment_ids.tolist())
    assert attack.tested.speakers == {name: name for name in names}
    assert all(part.speakers == {name: name for name in part.recordings} for part in attack.tests)
    for recordings in attack.conversations.values():
        assert [place for place, _ in recordings] == [0, 1]
    digits = {name.removeprefix("conversation-") for name in names}
    assert all(set(name) <= set("0123456789abcdef") for name in digits)


def test_joined_scores_keep_the_trials_of_each_list() -> None:
    lists = [Scores.from_ids(["a"], ["s"], [1.0]), Scores.from_ids(["b"], ["s"], [2.0])]
    both = joined(lists)
    assert list(both.pairs()) == [("a", "s"), ("b", "s")]
    assert both.values.tolist() == [1.0, 2.0]
