"""The rows of a plan: lists of trials, then attackers on these, fusions, both sexes together, and folds.

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

A fusion is a row whose members are rows; its weights are learnt from folds of the background, which have rows too.
Conversations have rows of their own, after those of single recordings: an attacker scores all recordings at once, or
the members of the row are the scores of single recordings.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any

from evaluation.trials import INVERTING, LEVELS, SCENARIOS, Scenario
from spkbase.errors import DataError, Problems
from spkbase.showing import one_line
from spkver.attackers import (
    LEAST_SPEAKERS,
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
from spkver.voiceprivacy.conversations import list_ending
from spkver.voiceprivacy.facts import Facts
from spkver.voiceprivacy.rows import FoldKind, Row
from spkver.voiceprivacy.sets import POOLED, Sets, noted_each
from spkver.voiceprivacy.speech import Speech, training_name
from spkver.voiceprivacy.trial_lists import trial_name

logger = logging.getLogger(__name__)

SCORES = "exp"  # the challenge's name of the folder of scores
_SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in SCENARIOS}

Chosen = tuple[Spec, Any]
Attackers = Mapping[str, Mapping[str, Chosen]]
"""Attackers with their specs, by training set and then by name."""


@one_line
@dataclass(frozen=True)
class Listed:
    """Rows of single attackers, and records of these attackers.

    Attributes
    ----------
    rows : list of Row
    records : dict of str to object
        All that the row's attacker depends on besides speech, trials and seed, by the id of the row.
    left_out : dict of (str, str) to dict of str to str
        Attackers that cannot score folds, and why, by `Row.fold_kind`.
    folds : dict of (str, str) to list of Fold
        The folds, by `Row.fold_kind`.
    """

    rows: list[Row] = field(default_factory=list, repr=False)
    records: dict[str, Any] = field(default_factory=dict, repr=False)
    left_out: dict[FoldKind, dict[str, str]] = field(default_factory=dict, repr=False)
    folds: dict[FoldKind, list[Fold]] = field(default_factory=dict, repr=False)


def lists_of(sets: Sets, suffix: str) -> list[Row]:
    """Return every trial list of one sex in every scenario and draw, as rows without an attacker."""
    rows = []
    for dataset, scenario in product(sets.datasets, SCENARIOS):
        enrolled = (
            sets.versions[dataset.enrolls]
            if scenario.enrolment
            else (sets.original[dataset.enrolls],)
        )
        training = training_name(suffix, on_anonymised=scenario.training)
        draws = range(1, 1 + sets.tested_draws(dataset, scenario))
        for (gender, trials), draw in product(dataset.trials.items(), draws):
            tested = sets.versions[trials][draw - 1] if scenario.trials else sets.original[trials]
            row = Row(
                id=f"{SCORES}/{training}/{enrolled[0].path.name}-{tested.path.name}",
                background=dataset.training,
                training=training,
                enrolment=tuple(directory.path.name for directory in enrolled),
                tested=(tested.path.name,),
                trials=trials,
                scenario=scenario.name,
                dataset=dataset.name,
                gender=gender,
                draw=draw,
            )
            rows.append(row)
    return rows


def single_rows(lists: Sequence[Row], attackers: Attackers, speech: Speech, facts: Facts) -> Listed:
    """Return the rows of all attackers on all lists of trials that they can score.

    Raises
    ------
    DataError
        With all errors of attackers, or if no attacker can score any list.
    """
    made = Listed()
    reasons: dict[tuple[str, str], list[str]] = {}
    problems = Problems()
    for listed in lists:
        attack = speech.attack(listed)
        known = facts.anonymisers.get(listed.background)
        for name, (spec, attacker) in attackers[listed.background].items():
            if spec.kind == "fusion" or listed.scenario not in spec.scenarios:
                continue
            with noted_each(problems):
                why = _obstacle(spec, attacker, attack, known)
                if why:
                    reasons.setdefault((name, why), []).append(attack.name)
                    continue
                row = single_row(listed, spec, attacker)
                made.records[row.id] = attacker.record(attack)
                made.rows.append(row)
    problems.raise_if_any()
    for (name, why), conditions in reasons.items():
        text = conditions[0]
        if len(conditions) > 1:
            text = f"{len(conditions)} conditions, such as {text}"
        logger.warning("%s is left out of %s: %s", name, text, why)
    if reasons and not made.rows:
        (name, why), conditions = next(iter(reasons.items()))
        raise DataError(f"no attacker can score any condition: {name} on {conditions[0]}: {why}")
    return made


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


def fusions_of(rows: Sequence[Row], attackers: Mapping[str, Chosen]) -> list[Fusion]:
    """Return the fusions of a training set: with and without inverting attackers, each with and without words.

    Parameters
    ----------
    rows : sequence of Row
        Rows that may be members of fusions, see `fusible`.
    attackers : mapping of str to (Spec, Attacker)
        By name.
    """
    can_invert = any(row.level == INVERTING for row in rows)
    can_read = any(row.content for row in rows)
    fusions = []
    for spec, attacker in attackers.values():
        if spec.kind == "fusion":
            fusions.append(attacker)
            if can_invert:
                fusions.append(attacker.inverting)
            if can_read:
                fusions.append(attacker.with_words)
    return fusions


def fusible(rows: Iterable[Row], attackers: Attackers) -> list[Row]:
    """Return the rows that may be members of fusions: those of voices and words, not of properties of files."""
    taken = []
    for row in rows:
        if row.content or attackers[row.background][row.attacker][1].hears_voices:
            taken.append(row)
    return taken


def fused_rows(fusion: Fusion, rows: Sequence[Row], speech: Speech) -> list[Row]:
    """Return the rows of a fusion: the trial lists that at least one of its members scores.

    A fusion that includes inverting or word-reading attackers gets only lists that at least one of these scores.
    """
    lists: dict[str, list[Row]] = {}
    for row in rows:
        if fusion.takes(row.level, row.content):
            lists.setdefault(row.list_name, []).append(row)
    fused = []
    for folder, members in lists.items():
        first = members[0]
        level = highest(row.level for row in members)
        scenario = _SCENARIOS[first.scenario]
        if fusion.inverts and not (scenario.enrolment and scenario.trials and level == INVERTING):
            continue
        contents = [member.content for member in members if member.content]
        if fusion.words and not contents:
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
            content="".join(contents[:1]),
            inversion="",
            folds=fusion.kind(training),
            members=tuple(member.id for member in members),
        )
        fused.append(row)
    return fused


def conversation_rows(
    rows: Sequence[Row], attackers: Attackers, utterances: Sequence[int]
) -> dict[str, tuple[Row, list[Row]]]:
    """Return the rows of conversations for the rows of single recordings.

    Where an attacker cannot score several recordings at once, and in a reversal, which inverts each recording by its
    own number, the members are the rows of single recordings.

    Parameters
    ----------
    rows : sequence of Row
        Rows of attackers and fusions on sets.
    attackers : mapping
    utterances : sequence of int
        Numbers of recordings of a conversation; 1 adds no rows.

    Returns
    -------
    dict of str to (Row, list of Row)
        Each row of conversations by its id, with the rows of the versions that its recordings come from.
    """
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        identity = (row.dataset, row.gender, row.scenario, row.attacker)
        groups.setdefault(identity, []).append(row)
    made = {}
    for number in utterances:
        if number == 1:
            continue
        ending = list_ending(number)
        for draws in groups.values():
            for row in draws:
                pools = row.kind == "single" and row.inversion != "reversed"
                if pools:
                    pools = attackers[row.background][row.attacker][1].pools
                values: dict[str, Any] = {"kind": "single", "members": ()}
                if not pools:
                    members = tuple(draw.id for draw in draws)
                    values = {"kind": "conversation", "members": members}
                spoken = replace(
                    row,
                    id=f"{row.list_name}{ending}/{row.attacker}",
                    tested=tuple(draw.tested[0] for draw in draws),
                    trials=f"{row.trials}{ending}",
                    utterances=number,
                    **values,
                )
                made[spoken.id] = (spoken, draws)
    return made


def pooled_rows(rows: Iterable[Row], sets: Sets, suffix: str) -> list[Row]:
    """Return rows that join both sexes, for attackers that have a row for each."""
    datasets = {dataset.name: dataset for dataset in sets.datasets}
    groups: dict[tuple[str, str, str, int, int], list[Row]] = {}
    for row in rows:
        identity = (row.dataset, row.scenario, row.attacker, row.draw, row.utterances)
        groups.setdefault(identity, []).append(row)
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
        ending = list_ending(first.utterances)
        row = replace(
            first,
            id=f"{SCORES}/{first.training}/{enrolled}-{tested}{ending}/{first.attacker}",
            kind="pooled",
            gender=POOLED,
            tested=tuple(chain.from_iterable(member.tested for member in members)),
            trials=trial_name(dataset, POOLED) + ending,
            members=tuple(member.id for member in members),
        )
        pooled.append(row)
    return pooled


def fold_rows(
    fused: Sequence[Row], rows: Sequence[Row], attackers: Attackers, speech: Speech, *, seed: int
) -> Listed:
    """Return the rows that the weights of fusions are learnt from: those of all members of fusions in the folds of the
    background.

    An attacker that fails to score any fold is left out of all folds; the others are fused. The speech of the folds is
    added to `speech`.

    Parameters
    ----------
    fused : sequence of Row
        Rows of fusions.
    rows : sequence of Row
        Rows of their members.
    attackers, speech
    seed : int
    """
    made = Listed()
    names = {row.id: row.attacker for row in rows}
    members: dict[FoldKind, set[str]] = {}
    for row in fused:
        members.setdefault(row.fold_kind, set()).update(names[member] for member in row.members)
    for kind, needed in members.items():
        made.left_out[kind] = {}
        lists = _lists_of_folds(kind, speech, made, seed=seed)
        of_kind = []
        for name, (spec, attacker) in attackers[kind[0]].items():
            if name in needed:
                of_kind += _rows_in_folds(lists, spec, attacker, speech, made)
        made.rows.extend(sorted(of_kind, key=lambda row: row.fold))
    return made


def highest(levels: Iterable[str]) -> str:
    """Return the highest of the given levels of knowledge."""
    return max(levels, key=list(LEVELS).index)


def _obstacle(spec: Spec, attacker: Attacker, attack: Attack, known: Known | None) -> str:
    """Return why an attacker cannot score a list of trials, or an empty string."""
    why = ""
    if spec.inverts:
        why = why_not(attack.training, set(attack.enrolment[0].speakers.values()), known)
    return why or attacker.obstacle(attack)


def _lists_of_folds(kind: FoldKind, speech: Speech, made: Listed, *, seed: int) -> list[Row]:
    """Return the trials of the folds of a training set, as rows without an attacker."""
    background = speech.background(kind)
    training, trials = kind
    attacks = fold_attacks(speech.cut(training, background), trials, seed=seed)
    made.folds[kind] = [fold for fold, _ in attacks]
    rows = []
    for fold, attack in attacks:
        name = attack.training.name
        row = Row(
            id=f"{background.folder}/folds-{trials}/{fold.number}",
            background=training,
            training=name,
            enrolment=(f"{name}/enrolment",),
            tested=(f"{name}/tested",),
            trials=name,
            scenario=trials,
            fold=fold.number,
            folds=trials,
        )
        speech.add_fold(row, attack)
        rows.append(row)
    return rows


def _rows_in_folds(
    lists: Sequence[Row], spec: Spec, attacker: Attacker, speech: Speech, made: Listed
) -> list[Row]:
    """Return the rows of an attacker in all folds; no rows, but a reason, if there is a fold that it cannot score."""
    rows = []
    records = {}
    for listed in lists:
        left_out = made.left_out[listed.fold_kind]
        if listed.background in speech.in_pieces and spec.kind == OF_THE_RECORDING:
            left_out[spec.name] = (
                "it recognises recordings, and background speakers have one recording each"
            )
            return []
        row = single_row(listed, spec, attacker)
        attack = speech.attack(listed)
        try:
            why = attacker.obstacle(attack)
            if not why:
                records[row.id] = attacker.record(attack)
        except DataError as error:
            why = error.text
        if why:
            left_out[spec.name] = why
            logger.warning("fusion leaves out %s: %s", spec.name, why)
            return []
        rows.append(row)
    made.records.update(records)
    return rows
