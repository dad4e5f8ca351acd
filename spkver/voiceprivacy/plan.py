"""The plan of an evaluation: which attacker scores which list of trials with which speech, and what is made before.

============== ============ ============ ==============
scenario       enrolment    trials       attacker
============== ============ ============ ==============
original       original     original     ASV_eval
ignorant       original     anonymised   ASV_eval
reversal       original     anonymised   ASV_eval
lazy-informed  anonymised   anonymised   ASV_eval
semi-informed  anonymised   anonymised   ASV_eval^anon
============== ============ ============ ==============

ASV_eval is trained on original speech, ASV_eval^anon on the same speech anonymised, in several versions if the
anonymiser is available. The key is always the key of the original trial list. If the enrolment is anonymised several
times, an attacker enrols with all versions; a network inverts two of them. Each version of the trials is scored
separately, in its own folder.

    OUTPUT/lists/<trials>/    keys, speakers and sexes
    OUTPUT/plan.csv           the rows of the plan, see `spkver.voiceprivacy.rows`

A fusion is a row whose members are rows. Its weights are learnt from folds of the background, which have rows too. Rows
of both sexes together come last.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import product
from typing import Any, NamedTuple, get_args

from evaluation.trials import INVERTING, LEVELS, SCENARIO_ORDER, SCENARIOS, Scenario
from spkbase.errors import DataError, Problems
from spkbase.files import fingerprint
from spkbase.runs import Run, Stamp
from spkbase.showing import one_line
from spkver.attackers import (
    LEAST_SPEAKERS,
    METHOD,
    OF_THE_RECORDING,
    Attack,
    Attacker,
    Fold,
    Fusion,
    Known,
    Spec,
    fold_attacks,
    why_not,
)
from spkver.datadir import DataDir
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.facts import Facts
from spkver.voiceprivacy.rows import FoldKind, Kind, Row, write_plan
from spkver.voiceprivacy.sets import POOLED, Sets, noted_each, stamp_of
from spkver.voiceprivacy.speech import Speech, add_derived, speech_of, training_name
from spkver.voiceprivacy.trial_lists import trial_name, write_lists

logger = logging.getLogger(__name__)

SCORES = "exp"  # the challenge's name
PLAN = "plan.csv"
_KEY = 8  # digits
_SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in SCENARIOS}

Chosen = tuple[Spec, Any]


@one_line
@dataclass(frozen=True, eq=False)
class Plan:
    """All rows, and beside them the objects that they name.

    Attributes
    ----------
    rows : list of Row
        By set and scenario: single attackers, fusions, then both sexes together.
    of_folds : list of Row
        Of the folds that the weights of fusions are learnt from; their recordings are those of training sets.
    names : dict of str to list of str
        Names of the attackers of each training set, in the order of the results.
    left_out : dict of (str, str) to dict of str to str
        Attackers that cannot score folds, and why, by `Row.fold_kind`.
    folds : dict of (str, str) to list of Fold
        Folds of the background, by `Row.fold_kind`.
    attackers : dict of (str, str) to (Spec, Attacker)
        By training set and name.
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
    attackers: dict[tuple[str, str], Chosen] = field(repr=False)
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
        """Return the attacker of a row, which may have another name: one model can serve several attackers."""
        attacker: Attacker = self.attackers[row.background, row.attacker][1]
        return attacker

    def model(self, row: Row) -> tuple[str, str]:
        """Return the attacker and the training set of the model that a row needs."""
        return self.attacker(row).name, self.attacks[row.id].training.folder

    def weights_file(self, fused: Row, members: Sequence[Row]) -> str:
        """Return the file of the weights of some members of a fusion."""
        key = fingerprint(fused.folds, [row.attacker for row in members])[:_KEY]
        return f"{self.speech.background(fused.fold_kind).folder}/{fused.attacker}/weights-{key}.json"

    def due(self, run: Run) -> list[Row]:
        """Return the rows of single attackers whose scores are not up to date, those of folds last.

        Folds are scored for the weights of fusions that are not up to date.
        """
        every = (*self.rows, *self.of_folds)
        stale = run.due({row.file: self.origins[row.id] for row in every})
        fused = {row.fold_kind for row in self.rows if row.kind == "fusion" and row.file in stale}
        due = [row for row in self.rows if row.kind == "single" and row.file in stale]
        due += [row for row in self.of_folds if row.fold_kind in fused and row.file in stale]
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
        write_lists(run, sets)
        plan = make_plan(run, sets, facts, suffix=experiment.suffix, seed=experiment.config.seed)
        write_plan(run.path(PLAN), (*plan.rows, *plan.of_folds))
    text = f"{len(plan.rows)} lists of trials, {len(plan.of_folds)} of folds of the background,"
    experiment.end("plan", f"{text} {len(plan.due(run))} without scores: {run.path(PLAN)}")
    return plan


def make_plan(run: Run, sets: Sets, facts: Facts, *, suffix: str, seed: int) -> Plan:
    """Return the plan of all attacks on some sets; no recording is read, and nothing is written.

    Raises
    ------
    DataError
        See `plan_attacks`.
    """
    speech = speech_of(sets, suffix)
    add_derived(speech, facts, run, seed=seed)
    chosen = _attackers_of(sets)
    single = _single_rows(lists_of(sets, suffix), chosen, speech, facts)
    rows = list(single.rows)
    records = dict(single.records)
    of_folds: list[Row] = []
    names: dict[str, list[str]] = {}
    left_out: dict[FoldKind, dict[str, str]] = {}
    folds: dict[FoldKind, list[Fold]] = {}
    for training, pairs in chosen.items():
        own = [row for row in single.rows if row.background == training]
        voices = {spec.name for spec, attacker in pairs if attacker.hears_voices}
        candidates = [row for row in own if row.attacker in voices]
        fusions = _fusions(pairs, candidates)
        fused = [row for fusion in fusions for row in fused_rows(fusion, candidates, speech)]
        rows += [*fused, *pooled_rows([*own, *fused], sets, suffix)]
        names[training] = [spec.name for spec, _ in pairs if spec.kind != "fusion"]
        names[training] += [fusion.name for fusion in fusions]
        for kind in dict.fromkeys(row.fold_kind for row in fused):
            members = {name for row in fused if row.fold_kind == kind for name in row.members}
            needed = {row.attacker for row in own if row.id in members}
            folds[kind], listed = _folds(kind, speech, seed=seed)
            made = _fold_rows(listed, [pair for pair in pairs if pair[0].name in needed], speech, kind)
            of_folds += made.rows
            records |= made.records
            left_out[kind] = made.left_out
    rows.sort(key=partial(_place, [dataset.name for dataset in sets.datasets]))
    attackers = {(training, pair[0].name): pair for training, pairs in chosen.items() for pair in pairs}
    attacks = {}
    for row in (*rows, *of_folds):
        if row.kind == "single":
            attacks[row.id] = speech.derived_attack(row, *attackers[row.background, row.attacker])
    origins = origins_of(run, [*rows, *of_folds], speech, records, seed=seed)
    return Plan(rows, of_folds, names, left_out, folds, attackers, speech, attacks, origins)


def check_attackers(chosen: Iterable[tuple[Spec, Any]], sets: Sets, suffix: str) -> None:
    """Check before the first long step that user-supplied attackers can score the trials.

    Missing twins are represented by their names.

    Raises
    ------
    DataError
        With all unusable files, or if an attacker can score no condition.
    """
    expected = {
        name: (replace(original, path=original.path.with_name(f"{original.path.name}{suffix}")),)
        for name, original in sets.original.items()
    }
    complete = replace(sets, versions=expected | sets.versions)
    speech = speech_of(complete, suffix)
    attacks = [speech.attack(row) for row in lists_of(complete, suffix)]
    problems = Problems()
    for spec, attacker in chosen:
        if spec.row is None:
            able = False
            for attack in attacks:
                with noted_each(problems):
                    able = not attacker.obstacle(attack) or able
            if not able and not problems.errors:
                looked = ", ".join(attack.name for attack in attacks[:3])
                raise DataError(
                    f"attacker {spec.name!r} can score no condition: looked for {looked} and so on",
                    remedy="give what it lacks, see docs/own_attackers.md, or leave it out of 'attackers'",
                )
    problems.raise_if_any()


# --- rows -------------------------------------------------------------------------------------------------------------


def lists_of(sets: Sets, suffix: str) -> list[Row]:
    """Return every trial list of one sex in every scenario and draw, as rows without an attacker."""
    rows = []
    for dataset, scenario in product(sets.datasets, SCENARIOS):
        enrolled = sets.versions[dataset.enrolls] if scenario.enrolment else (sets.original[dataset.enrolls],)
        training = training_name(suffix, on_anonymised=scenario.training)
        draws = range(1, 1 + sets.tested_draws(dataset, scenario))
        for (gender, trials), draw in product(dataset.trials.items(), draws):
            tested = sets.versions[trials][draw - 1] if scenario.trials else sets.original[trials]
            row = Row(
                id=f"{SCORES}/{training}/{enrolled[0].path.name}-{tested.path.name}",
                kind="single",
                attacker="",
                level="",
                content="",
                background=dataset.training,
                training=training,
                enrolment=tuple(directory.path.name for directory in enrolled),
                tested=(tested.path.name,),
                inversion="",
                trials=trials,
                scenario=scenario.name,
                dataset=dataset.name,
                gender=gender,
                draw=draw,
            )
            rows.append(row)
    return rows


def single_row(listed: Row, spec: Spec, attacker: Attacker) -> Row:
    """Return the row of an attacker that scores a list of trials."""
    inversion = ""
    level = attacker.level
    if spec.inverts:
        level = INVERTING
        inversion = "reversed" if spec.row is not None and spec.row.is_reversed else "inverted"
    return replace(
        listed,
        id=f"{listed.id}/{spec.name}",
        attacker=spec.name,
        level=level,
        content=attacker.content,
        inversion=inversion,
    )


def fused_rows(fusion: Fusion, rows: Sequence[Row], speech: Speech) -> list[Row]:
    """Return the rows of a fusion: the trial lists that at least one of its members scores.

    A fusion with attackers that invert is for lists that one of them scores.
    """
    lists: dict[str, list[Row]] = {}
    for row in rows:
        if fusion.takes(row.level):
            lists.setdefault(row.list_name, []).append(row)
    fused = []
    for folder, members in lists.items():
        first = members[0]
        level = highest(row.level for row in members)
        scenario = _SCENARIOS[first.scenario]
        if fusion.inverts and not (scenario.enrolment and scenario.trials and level == INVERTING):
            continue
        training = speech.training[first.background, first.training]
        if len(set(training.versions[0].speakers.values())) < LEAST_SPEAKERS:
            logger.warning("%s is left out of %s: too few background speakers", fusion.name, folder)
            continue
        row = replace(
            first,
            id=f"{folder}/{fusion.name}",
            kind="fusion",
            attacker=fusion.name,
            level=level,
            content="",
            inversion="",
            folds=fusion.kind(training),
            members=tuple(member.id for member in members),
        )
        fused.append(row)
    return fused


def pooled_rows(rows: Iterable[Row], sets: Sets, suffix: str) -> list[Row]:
    """Return the rows of both sexes together, where an attacker has rows of both."""
    datasets = {dataset.name: dataset for dataset in sets.datasets}
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.scenario, row.attacker, row.draw), []).append(row)
    pooled = []
    for members in groups.values():
        first = members[0]
        dataset = datasets[first.dataset]
        scenario = _SCENARIOS[first.scenario]
        if not len(members) == len(dataset.trials) > 1:
            continue
        drawn = suffix if first.draw == 1 else f"{suffix}-draw{first.draw}"
        tested = trial_name(dataset, POOLED, drawn if scenario.trials else "")
        enrolled = dataset.enrolls + (suffix if scenario.enrolment else "")
        row = replace(
            first,
            id=f"{SCORES}/{first.training}/{enrolled}-{tested}/{first.attacker}",
            kind="pooled",
            gender=POOLED,
            tested=tuple(name for member in members for name in member.tested),
            trials=trial_name(dataset, POOLED),
            members=tuple(member.id for member in members),
        )
        pooled.append(row)
    return pooled


def highest(levels: Iterable[str]) -> str:
    """Return the highest of some levels of knowledge."""
    return max(levels, key=list(LEVELS).index)


class _Rows(NamedTuple):
    """Rows of single attackers, what the attackers depend on by the ids of the rows, and who has none, and why."""

    rows: list[Row]
    records: dict[str, Any]
    left_out: dict[str, str]


def _attackers_of(sets: Sets) -> dict[str, list[Chosen]]:
    """Return the attackers of each training set."""
    chosen = {}
    for group in sets.rate_groups:
        for name in group.training:
            chosen[name] = list(group.attackers)
    return chosen


def _single_rows(lists: Sequence[Row], chosen: Mapping[str, Sequence[Chosen]], speech: Speech, facts: Facts) -> _Rows:
    """Return the rows of all attackers on all lists of trials that they can score.

    Raises
    ------
    DataError
        With all errors of attackers, or if no attacker can score any list.
    """
    made = _Rows([], {}, {})
    reasons: dict[tuple[str, str], list[str]] = {}
    problems = Problems()
    for listed in lists:
        attack = speech.attack(listed)
        for spec, attacker in chosen[listed.background]:
            if spec.kind == "fusion" or listed.scenario not in spec.scenarios:
                continue
            with noted_each(problems):
                why = _obstacle(spec, attacker, attack, facts.anonymisers.get(listed.background))
                if why:
                    reasons.setdefault((spec.name, why), []).append(attack.name)
                    continue
                row = single_row(listed, spec, attacker)
                made.records[row.id] = attacker.record(attack)
                made.rows.append(row)
    problems.raise_if_any()
    for (name, why), conditions in reasons.items():
        several = f"{len(conditions)} conditions, such as {conditions[0]}"
        logger.warning("%s is left out of %s: %s", name, conditions[0] if len(conditions) == 1 else several, why)
    if reasons and not made.rows:
        (name, why), conditions = next(iter(reasons.items()))
        raise DataError(f"no attacker can score any condition: {name} on {conditions[0]}: {why}")
    return made


def _obstacle(spec: Spec, attacker: Attacker, attack: Attack, known: Known | None) -> str:
    """Return why an attacker cannot score a list of trials, or an empty string."""
    why = ""
    if spec.inverts:
        why = why_not(attack.training, set(attack.enrolment[0].speakers.values()), known)
    return why or attacker.obstacle(attack)


def _fusions(chosen: Iterable[Chosen], candidates: Iterable[Row]) -> list[Fusion]:
    """Return the fusions; each has a variant with attackers that invert, if there are any."""
    fusions = [attacker for spec, attacker in chosen if spec.kind == "fusion"]
    if not any(row.level == INVERTING for row in candidates):
        return fusions
    return [variant for fusion in fusions for variant in (fusion, fusion.inverting)]


def _place(datasets: Sequence[str], row: Row) -> tuple[int, int]:
    """Return the place of the set and scenario of a row among all."""
    return datasets.index(row.dataset), SCENARIO_ORDER.index(row.scenario)


# --- folds of the background ------------------------------------------------------------------------------------------


def _folds(kind: FoldKind, speech: Speech, *, seed: int) -> tuple[list[Fold], list[Row]]:
    """Return the folds of a training set, and their lists of trials as rows without an attacker."""
    background = speech.background(kind)
    folds = []
    rows = []
    for fold, attack in fold_attacks(speech.cut(kind[0], background), kind[1], seed=seed):
        name = attack.training.name
        row = Row(
            id=f"{background.folder}/folds-{kind[1]}/{fold.number}",
            kind="single",
            attacker="",
            level="",
            content="",
            background=kind[0],
            training=name,
            enrolment=(f"{name}/enrolment",),
            tested=(f"{name}/tested",),
            inversion="",
            trials=name,
            scenario=kind[1],
            fold=fold.number,
            folds=kind[1],
        )
        speech.add_fold(row, attack)
        folds.append(fold)
        rows.append(row)
    return folds, rows


def _fold_rows(lists: Sequence[Row], chosen: Sequence[Chosen], speech: Speech, kind: FoldKind) -> _Rows:
    """Return the rows of the members of fusions in the folds of a training set.

    An attacker that cannot score one of the folds is left out of all: the others are fused.
    """
    made = _Rows([], {}, {})
    for spec, attacker in chosen:
        if kind[0] in speech.in_pieces and spec.row and spec.row.base == OF_THE_RECORDING:
            made.left_out[spec.name] = "it recognises recordings, and background speakers have one recording each"
            continue
        records = {}
        rows = []
        try:
            for listed in lists:
                attack = speech.attack(listed)
                why = attacker.obstacle(attack)
                if why:
                    raise DataError(why)
                row = single_row(listed, spec, attacker)
                records[row.id] = attacker.record(attack)
                rows.append(row)
        except DataError as error:
            made.left_out[spec.name] = error.text
            logger.warning("fusion leaves out %s: %s", spec.name, error.text)
            continue
        made.records.update(records)
        made.rows.extend(rows)
    made.rows.sort(key=lambda row: row.fold)
    return made


# --- what scores depend on --------------------------------------------------------------------------------------------


def origins_of(
    run: Run, rows: Sequence[Row], speech: Speech, records: Mapping[str, Any], *, seed: int
) -> dict[str, Stamp]:
    """Return all that the scores of rows depend on, by the id of the row; members come before their fusion.

    Parameters
    ----------
    run : Run
    rows : sequence of Row
    speech : Speech
    records : mapping of str to object
        What the attackers of single rows depend on besides speech, trials and seed, by the id of the row.
    seed : int
    """
    stamp = cache(partial(stamp_of, run))  # each directory is looked at once
    origins: dict[str, Stamp] = {}
    for kind in get_args(Kind):
        for row in rows:
            if row.kind != kind:
                continue
            title = f"scores of {row.attacker} in {row.list_name}"
            members = [origins[name] for name in row.members]
            if kind == "pooled":
                origins[row.id] = run.origin(title, after=members)
            elif kind == "fusion":
                background = speech.backgrounds[row.background]
                both = map(stamp, (background.original, *background.anonymised))
                inputs = [METHOD, seed, row.folds]
                origins[row.id] = run.origin(
                    title, inputs=inputs, after=[*members, *both], libraries=("numpy", "scipy")
                )
            else:
                origins[row.id] = run.origin(
                    title,
                    inputs=_inputs(row, speech, records[row.id], seed),
                    after=[stamp(directory) for directory in dict.fromkeys(_used(row, speech))],
                    libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
                )
    return origins


def _inputs(row: Row, speech: Speech, record: Any, seed: int) -> list[Any]:
    """Return what the scores of a single attacker depend on besides recordings."""
    attack = speech.attack(row)
    if row.inversion:
        record = {"inversion": speech.inversions[row.background].record, "base": record}
    inputs = [record, seed, attack.trials]
    if row.fold:
        inputs += [attack.scenario, sorted(set(attack.training.versions[0].speakers.values()))]
    return inputs


def _used(row: Row, speech: Speech) -> list[DataDir]:
    """Return the directories that the scores of a single attacker depend on; trials of a fold are of the background."""
    attack = speech.attack(row)
    background = speech.background(row.fold_kind) if row.fold else attack.training
    used = list(background.versions)
    if row.inversion:
        used = [background.original, *background.anonymised]
    if not row.fold:
        used += [*attack.enrolment, attack.tested]
    return used
