"""The plan of an evaluation: which attacker scores which list of trials with which speech.

    OUTPUT/lists/<trials>/    keys, speakers and sexes
    OUTPUT/plan.csv           the rows of the plan, see `spkver.voiceprivacy.rows`

The key is always the key of the original trial list. If the enrolment is anonymised several times, an attacker enrols
with all versions; a network inverts two of them. Each version of the trials is scored separately, in its own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter

from evaluation.trials import SCENARIO_ORDER
from spkbase.errors import DataError, Problems
from spkbase.files import fingerprint
from spkbase.runs import Run, Stamp
from spkbase.showing import one_line
from spkver.attackers import Attack, Attacker, Fold
from spkver.voiceprivacy.conversations import deal_sets
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.facts import Facts
from spkver.voiceprivacy.origins import origins_of
from spkver.voiceprivacy.plan_rows import (
    Attackers,
    Chosen,
    conversation_rows,
    fold_rows,
    fused_rows,
    fusible,
    fusions_of,
    lists_of,
    pooled_rows,
    single_rows,
)
from spkver.voiceprivacy.rows import FoldKind, Row, write_plan
from spkver.voiceprivacy.sets import Sets, noted_each
from spkver.voiceprivacy.speech import Speech, add_conversations, add_derived, speech_of
from spkver.voiceprivacy.trial_lists import write_lists

PLAN = "plan.csv"
_KEY = 8  # digits


@one_line
@dataclass(frozen=True, eq=False)
class Plan:
    """All rows, and the objects that they name.

    Attributes
    ----------
    rows : list of Row
        By set and scenario: single attackers, fusions, then both sexes together.
    of_folds : list of Row
        Rows of the folds on which weights of fusions are learnt; their recordings come from training sets.
    names : dict of str to list of str
        Names of the attackers of each training set, in the order of the results.
    left_out : dict of (str, str) to dict of str to str
        Attackers that cannot score folds, and why, by `Row.fold_kind`.
    folds : dict of (str, str) to list of Fold
        Folds of the background, by `Row.fold_kind`.
    attackers : mapping of str to mapping of str to (Spec, Attacker)
        By training set, then by name.
    speech : Speech
        Data directories by name.
    attacks : dict of str to Attack
        Speech and trials of the rows of single attackers, by the id of the row.
    origins : dict of str to Stamp
        All that scores depend on, by the id of the row.
    """

    rows: list[Row]
    of_folds: list[Row]
    names: dict[str, list[str]]
    left_out: dict[FoldKind, dict[str, str]] = field(repr=False)
    folds: dict[FoldKind, list[Fold]] = field(repr=False)
    attackers: Attackers = field(repr=False)
    speech: Speech = field(repr=False)
    attacks: dict[str, Attack] = field(repr=False)
    origins: dict[str, Stamp] = field(repr=False)

    @cached_property
    def by_id(self) -> dict[str, Row]:
        """The rows of sets by their ids."""
        return {row.id: row for row in self.rows}

    def members(self, row: Row) -> list[Row]:
        """Return the rows whose scores are fused or joined."""
        return [self.by_id[name] for name in row.members]

    def attacker(self, row: Row) -> Attacker:
        """Return the attacker of a row.

        Its name may differ from the row's, since one model can serve several attackers.
        """
        attacker: Attacker = self.attackers[row.background][row.attacker][1]
        return attacker

    def model(self, row: Row) -> tuple[str, str]:
        """Return the attacker and the training set of the model that a row needs."""
        return self.attacker(row).name, self.attacks[row.id].training.folder

    def weights_file(self, fused: Row, members: Sequence[Row]) -> str:
        """Return the file of the weights of some members of a fusion."""
        key = fingerprint(fused.folds, [row.attacker for row in members])[:_KEY]
        return (
            f"{self.speech.background(fused.fold_kind).folder}/{fused.attacker}/weights-{key}.json"
        )

    def due(self, run: Run) -> list[Row]:
        """Return the rows of single attackers whose scores are not up to date, those of folds last.

        Folds are due only for fusions whose weights are not up to date.
        """
        every = (*self.rows, *self.of_folds)
        stale = run.due({row.file: self.origins[row.id] for row in every})
        fused = set()
        due = []
        for row in self.rows:
            if row.file in stale and row.kind == "fusion":
                fused.add(row.fold_kind)
            if row.file in stale and row.kind == "single":
                due.append(row)
        for row in self.of_folds:
            if row.file in stale and row.fold_kind in fused:
                due.append(row)
        return due


def plan_attacks(experiment: Experiment, sets: Sets, facts: Facts) -> Plan:
    """Plan all attacks, and write the trial lists.

    Raises
    ------
    DataError
        With all errors of user-supplied attackers, or if no attacker can score any condition.
    """
    experiment.begin("plan")
    run = experiment.run
    with run.timed("plan"):
        config = experiment.config
        plan = make_plan(
            run,
            sets,
            facts,
            suffix=experiment.suffix,
            seed=config.seed,
            utterances=config.evaluation.utterances,
        )
        write_lists(run, sets, plan.speech.dealt)
        write_plan(run.path(PLAN), (*plan.rows, *plan.of_folds))
    text = f"{len(plan.rows)} lists of trials, {len(plan.of_folds)} of folds of the background,"
    experiment.end("plan", f"{text} {len(plan.due(run))} without scores: {run.path(PLAN)}")
    return plan


def make_plan(
    run: Run,
    sets: Sets,
    facts: Facts,
    *,
    suffix: str,
    seed: int,
    utterances: Sequence[int] = (1,),
) -> Plan:
    """Return the plan of all attacks on some sets; no recording is read, and nothing is written.

    Parameters
    ----------
    run : Run
    sets : Sets
    facts : Facts
    suffix : str
    seed : int
    utterances : sequence of int
        Numbers of recordings in a conversation.

    Raises
    ------
    DataError
        See `plan_attacks`.
    """
    speech = speech_of(sets, suffix)
    add_derived(speech, facts, run, seed=seed)
    attackers = _attackers_by_name(sets)
    single = single_rows(lists_of(sets, suffix), attackers, speech, facts)
    members = fusible(single.rows, attackers)
    fused = []
    names: dict[str, list[str]] = {}
    for training in sets.training_sets:
        own = [row for row in members if row.background == training]
        fusions = fusions_of(own, attackers[training])
        for fusion in fusions:
            fused += fused_rows(fusion, own, speech)
        names[training] = []
        for name, (spec, _) in attackers[training].items():
            if spec.kind != "fusion":
                names[training].append(name)
        names[training] += map(attrgetter("name"), fusions)
    add_conversations(speech, deal_sets(sets, utterances, seed=seed))
    spoken = conversation_rows([*single.rows, *fused], attackers, utterances)
    of_conversations = []
    for row, draws in spoken.values():
        of_conversations.append(row)
        if row.kind == "single":
            single.records[row.id] = [single.records[draw.id] for draw in draws]
    pooled = pooled_rows([*single.rows, *fused, *of_conversations], sets, suffix)
    rows = _in_order([*single.rows, *fused, *of_conversations, *pooled], sets)
    folds = fold_rows(fused, members, attackers, speech, seed=seed)
    attacks = {}
    for row in (*rows, *folds.rows):
        if row.kind != "single":
            continue
        spec, attacker = attackers[row.background][row.attacker]
        attacks[row.id] = speech.derived_attack(row, spec, attacker)
    records = single.records | folds.records
    origins = origins_of(run, [*rows, *folds.rows], speech, records, seed=seed)
    return Plan(
        rows, folds.rows, names, folds.left_out, folds.folds, attackers, speech, attacks, origins
    )


def check_attackers(chosen: Iterable[Chosen], sets: Sets, suffix: str) -> None:
    """Check before the first long step that user-supplied attackers can score the trials.

    Twins that do not exist yet are only named.

    Raises
    ------
    DataError
        With all unusable files, or if an attacker cannot score any condition.
    """
    versions = dict(sets.versions)
    for name, original in sets.original.items():
        if name not in versions:
            path = original.path.with_name(f"{original.path.name}{suffix}")
            versions[name] = (replace(original, path=path),)
    complete = replace(sets, versions=versions)
    speech = speech_of(complete, suffix)
    attacks = [speech.attack(row) for row in lists_of(complete, suffix)]
    problems = Problems()
    for spec, attacker in chosen:
        if spec.row is not None:
            continue
        is_able = False
        for attack in attacks:
            with noted_each(problems):
                is_able = not attacker.obstacle(attack) or is_able
        if not is_able and not problems.errors:
            tried = ", ".join(attack.name for attack in attacks[:3])
            raise DataError(
                f"attacker {spec.name!r} cannot score any condition: looked for {tried} and so on",
                remedy="give what it lacks, see docs/own_attackers.md, or leave it out of 'attackers'",
            )
    problems.raise_if_any()


def _attackers_by_name(sets: Sets) -> dict[str, dict[str, Chosen]]:
    """Return the attackers of each training set."""
    attackers = {}
    for group in sets.rate_groups:
        by_name = {spec.name: (spec, attacker) for spec, attacker in group.attackers}
        attackers.update(dict.fromkeys(group.training, by_name))
    return attackers


def _in_order(rows: Iterable[Row], sets: Sets) -> list[Row]:
    """Return rows by set and scenario."""
    datasets = [dataset.name for dataset in sets.datasets]

    def place(row: Row) -> tuple[int, int]:
        return datasets.index(row.dataset), SCENARIO_ORDER.index(row.scenario)

    return sorted(rows, key=place)
