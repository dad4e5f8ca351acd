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
    OUTPUT/plan.csv           the rows of the plan

A row is pure data: its directories may not exist yet. Inverted speech, pieces of recordings and folds of the background
are rows and directories of the plan, which the later steps make.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from evaluation.formats import write_key
from evaluation.trials import INVERTING, LEVELS, SCENARIOS, Scenario
from spkbase.errors import DataError, Problems
from spkbase.files import fingerprint, format_csv, write_text
from spkbase.runs import Run, Stamp
from spkbase.showing import one_line
from spkver.attackers import (
    INVERTED_DRAWS,
    LEAST_SPEAKERS,
    METHOD,
    OF_THE_RECORDING,
    PIECES_ENDING,
    Attack,
    Attacker,
    Fold,
    Fusion,
    Inversion,
    Spec,
    TrainingSet,
    count_pieces,
    fold_attacks,
    needs_pieces,
    pieces_of,
    select,
    why_not,
)
from spkver.datadir import DataDir, enrolment, without_labels
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, noted_each, pooled_key, stamp_of

logger = logging.getLogger(__name__)

SCORES = "exp"  # the challenge's name
_KEY = 8  # digits
_COLUMNS = ("dataset", "gender", "scenario", "draw", "attacker", "level", "scores", "is_due")

_unlabelled = lru_cache(maxsize=256)(without_labels)


@one_line
@dataclass(frozen=True, eq=False)
class PlanRow:
    """A list of trials that an attacker scores.

    Attributes
    ----------
    name : str
        Of the attacker, in folders and tables.
    attacker : Attacker, Fusion or None
        It may have another name if its model serves several attackers. None: the scores of both sexes together.
    attack : Attack
        Of a fusion, and of both sexes together, that of the first member.
    file : str
        The scores, in the output folder.
    origin : Stamp
        All that the scores depend on.
    is_due : bool
        Whether the scores are still to be made.
    level, content : str
        Level of knowledge, and whether the words are used, see `spkver.voiceprivacy.scores.Scored`.
    dataset, gender, scenario, draw
        The condition; for a fold of the background, dataset and scenario are None, and draw is the number of the fold.
    members : tuple of PlanRow
        The rows whose scores are fused or joined.
    """

    name: str
    attacker: Any
    attack: Attack
    file: str
    origin: Stamp
    is_due: bool
    level: str
    content: str = ""
    dataset: Dataset | None = None
    gender: str = ""
    scenario: Scenario | None = None
    draw: int = 1
    members: tuple[PlanRow, ...] = ()

    @property
    def is_fused(self) -> bool:
        """Whether fusions take it; words and properties of files say nothing about voices."""
        return getattr(self.attacker, "hears_voices", True)

    @property
    def model(self) -> tuple[str, str]:
        """The attacker and the training set of the model that it needs."""
        return self.attacker.name, self.attack.training.folder


@one_line
@dataclass(frozen=True, eq=False)
class Plan:
    """All rows, and the speech that is derived for them.

    Attributes
    ----------
    rows : list of PlanRow
        By set and scenario: those of single attackers, of fusions, and of both sexes together.
    folds : dict of (str, str) to list of (Fold, list of PlanRow)
        Folds of the background, by training set and kind of trials.
    left_out : dict of (str, str) to dict of str to str
        Attackers that cannot score these folds, and why.
    whole : dict of (str, str) to TrainingSet
        The backgrounds of these folds.
    names : dict of str to list of str
        Names of the attackers of each training set, in the order of the results.
    inversions : list of Inversion
    pieces : dict of Path to (DataDir, dict)
        Folders of pieces: the recordings, and the number of pieces of each.
    """

    rows: list[PlanRow] = field(default_factory=list, repr=False)
    folds: dict[tuple[str, str], list[tuple[Fold, list[PlanRow]]]] = field(default_factory=dict, repr=False)
    left_out: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict, repr=False)
    whole: dict[tuple[str, str], TrainingSet] = field(default_factory=dict, repr=False)
    names: dict[str, list[str]] = field(default_factory=dict, repr=False)
    inversions: list[Inversion] = field(default_factory=list, repr=False)
    pieces: dict[Path, tuple[DataDir, Mapping[str, int]]] = field(default_factory=dict, repr=False)

    @property
    def of_folds(self) -> list[PlanRow]:
        """The rows of all folds."""
        return [row for folds in self.folds.values() for _, rows in folds for row in rows]

    @property
    def due(self) -> list[PlanRow]:
        """The rows of single attackers whose scores are still to be made.

        Folds, whose recordings are those of a training set, come last.
        """
        return [row for row in (*self.rows, *self.of_folds) if row.is_due and not row.members]

    @staticmethod
    def kind(fused: PlanRow) -> tuple[str, str]:
        """Return the training set and the kind of background trials that weights are trained on."""
        assert fused.dataset is not None
        return fused.dataset.training, fused.attacker.kind(fused.attack.training)

    def weights_file(self, fused: PlanRow, members: Sequence[PlanRow]) -> str:
        """Return the file of the weights of some members of a fusion."""
        kind = self.kind(fused)
        key = fingerprint(kind[1], [row.name for row in members])[:_KEY]
        return f"{self.whole[kind].folder}/{fused.name}/weights-{key}.json"


def plan_attacks(experiment: Experiment, sets: Sets) -> Plan:
    """Plan all attacks, and write the trial lists.

    Raises
    ------
    DataError
        With all errors of user-supplied attackers, or if no attacker can score any condition.
    """
    experiment.begin("plan")
    with experiment.run.timed("plan"):
        write_lists(experiment.run, sets)
        plan = _Planner(experiment, sets).plan()
        rows = [
            {
                "dataset": row.dataset.name if row.dataset else row.attack.training.name,
                "gender": row.gender,
                "scenario": row.scenario.name if row.scenario else f"fold of {row.attack.scenario} trials",
                "draw": row.draw,
                "attacker": row.name,
                "level": row.level,
                "scores": row.file,
                "is_due": row.is_due,
            }
            for row in (*plan.rows, *plan.of_folds)
        ]
        write_text(experiment.run.path("plan.csv"), format_csv(_COLUMNS, rows))
    text = f"{len(plan.rows)} lists of trials, {len(plan.of_folds)} of folds of the background,"
    experiment.end("plan", f"{text} {len(plan.due)} without scores: {experiment.run.path('plan.csv')}")
    return plan


def write_lists(run: Run, sets: Sets) -> None:
    """Write the key, the speakers and the sexes of every trial list, also of pooled ones, to ``lists/``."""
    for dataset in sets.datasets:
        enrolled, lists = sets.original[dataset.enrolls].sexes, {}
        for gender, name in dataset.trials.items():
            trials = sets.original[name]
            assert trials.trials is not None  # checked before
            names = {*trials.speakers.values(), *trials.trials.model_ids[trials.trials.models]}
            sexes = {speaker: trials.sexes.get(speaker) or enrolled.get(speaker, "unknown") for speaker in names}
            lists[gender] = trials.trials, dict(trials.speakers), sexes
        if len(lists) > 1:
            keys, *tables = zip(*lists.values(), strict=True)
            speakers, sexes = ({name: one[name] for one in table for name in one} for table in tables)
            lists[POOLED] = pooled_key(keys), speakers, sexes
        for gender, (key, speakers, sexes) in lists.items():
            folder = run.path(f"lists/{trial_name(dataset, gender)}")
            write_key(folder / "trials", key)
            for file, table in (("utt2spk", speakers), ("spk2gender", sexes)):
                write_text(folder / file, "".join(f"{name} {table[name]}\n" for name in sorted(table)))


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Return the name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def attacks_of(sets: Sets, suffix: str) -> Iterator[tuple[Dataset, str, Scenario, int, Attack]]:
    """Yield every trial list of one sex in every scenario and draw, with the speech that the attacker has."""
    for dataset, scenario in product(sets.datasets, SCENARIOS):
        enrolled = sets.versions[dataset.enrolls] if scenario.enrolment else (sets.original[dataset.enrolls],)
        enrolled = tuple(_only(one, tuple(enrolment(one).segments)) for one in enrolled)
        learnt_from = f"asv_anon{suffix}" if scenario.training else "asv_orig"
        speech = sets.original[dataset.training], sets.versions[dataset.training]
        training = TrainingSet(*speech, scenario.training, learnt_from)
        draws = range(1, 1 + sets.tested_draws(dataset, scenario))
        for (gender, name), draw in product(dataset.trials.items(), draws):
            key = sets.original[name].trials
            assert key is not None  # checked before
            tested = _unlabelled(sets.versions[name][draw - 1] if scenario.trials else sets.original[name])
            yield dataset, gender, scenario, draw, Attack(training, enrolled, tested, key.trials(), scenario.name)


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
    attacks = [attack for *_, attack in attacks_of(replace(sets, versions=expected | sets.versions), suffix)]
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


@lru_cache(maxsize=256)
def _only(directory: DataDir, utterances: tuple[str, ...]) -> DataDir:
    return select(directory, set(utterances))


class _Planner:
    """Collects the rows of a plan."""

    def __init__(self, experiment: Experiment, sets: Sets) -> None:
        self.run, self.suffix, self.seed = experiment.run, experiment.suffix, experiment.config.seed
        self.sets, self.made = sets, Plan()
        self.speech: dict[DataDir, Stamp] = {}
        self.inversions: dict[str, Inversion] = {}
        self.in_pieces: dict[DataDir, DataDir] = {}
        self.counts: dict[str, Mapping[str, int]] = {}

    def plan(self) -> Plan:
        """Return the plan."""
        plan, chosen = self.made, dict[str, list[tuple[Spec, Any]]]()
        for group in self.sets.rate_groups:
            chosen |= {name: list(group.attackers) for name in group.training}
        attacks, reasons, possible = list(attacks_of(self.sets, self.suffix)), dict[tuple[str, str], list[str]](), 0
        problems = Problems()
        for dataset, gender, scenario, draw, attack in attacks:
            for spec, attacker in chosen[dataset.training]:
                if isinstance(attacker, Fusion) or scenario.name not in spec.scenarios:
                    continue
                possible += 1
                with noted_each(problems):
                    if why := self.obstacle(spec, attacker, attack):
                        reasons.setdefault((spec.name, why), []).append(attack.name)
                        continue
                    file = f"{SCORES}/{attack.name}/{spec.name}/scores"
                    where: dict[str, Any] = {"dataset": dataset, "gender": gender, "scenario": scenario, "draw": draw}
                    plan.rows.append(self.row(spec, attacker, attack, file, **where))
        problems.raise_if_any()
        for (name, why), left in reasons.items():
            listed = left[0] if len(left) == 1 else f"{len(left)} conditions, such as {left[0]}"
            logger.warning("%s is left out of %s: %s", name, listed, why)
        if possible and not plan.rows:
            (name, why), left = next(iter(reasons.items()))
            raise DataError(f"no attacker can score any condition: {name} on {left[0]}: {why}")
        for training, pairs in chosen.items():
            rows = [row for row in plan.rows if row.dataset and row.dataset.training == training]
            fusions = [attacker for _, attacker in pairs if isinstance(attacker, Fusion)]
            if any(row.level == INVERTING for row in rows if row.is_fused):
                fusions = [variant for fusion in fusions for variant in (fusion, fusion.inverting)]
            plan.names[training] = [spec.name for spec, one in pairs if not isinstance(one, Fusion)]
            plan.names[training] += [fusion.name for fusion in fusions]
            fused = [row for fusion in fusions for row in self.fused(fusion, training, rows)]
            for kind in dict.fromkeys(map(plan.kind, fused)):
                self.fold(kind, [row for row in fused if plan.kind(row) == kind], pairs)
            plan.rows.extend((*fused, *self.pooled([*rows, *fused])))
        order = {id(one): number for number, one in enumerate((*self.sets.datasets, *SCENARIOS))}
        plan.rows.sort(key=lambda row: (order[id(row.dataset)], order[id(row.scenario)]))
        plan.inversions.extend(self.inversions.values())
        return plan

    def obstacle(self, spec: Spec, attacker: Attacker, attack: Attack) -> str:
        """Return why an attacker cannot score a list of trials, or an empty string."""
        why = ""
        if spec.inverts:
            why = why_not(attack.training, set(attack.enrolment[0].speakers.values()))
        return why or attacker.obstacle(attack)

    def row(
        self, spec: Spec, attacker: Attacker, attack: Attack, file: str, whole: TrainingSet | None = None, **where: Any
    ) -> PlanRow:
        """Return the row of an attacker, whose speech is inverted or cut into pieces if it works on these.

        The trials of a fold are made of recordings of the `whole` background.
        """
        record, inputs, background = attacker.record(attack), [self.seed, attack.trials], whole or attack.training
        both = (background.original, *background.anonymised)
        used = (
            *(both if spec.inverts else background.versions),
            *(() if whole else (*attack.enrolment, attack.tested)),
        )
        if spec.row is not None and (spec.row.is_inverted or spec.row.is_reversed):
            name = background.anonymised[0].path.name
            inversion = self.inversions.setdefault(name, Inversion(background, self.run, self.seed))
            record = {"inversion": inversion.record, "base": record}
            if spec.row.is_reversed:
                attack = replace(attack, variants=inversion.reversed(attack.tested))
            else:
                attack = self.inverted(inversion, attack, most=INVERTED_DRAWS if spec.is_network else None)
        if whole is not None:
            inputs += [attack.scenario, sorted(set(attack.training.versions[0].speakers.values()))]
        elif attacker.learns_within:
            attack = replace(attack, training=self.cut(attack.training))
        origin = self.run.origin(
            f"scores of {spec.name} in {Path(file).parents[1]}",
            inputs=[record, *inputs],
            after=[self.stamp(directory) for directory in dict.fromkeys(used)],
            libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
        )
        level = INVERTING if spec.inverts else attacker.level
        is_due = self.is_due(file, origin)
        return PlanRow(spec.name, attacker, attack, file, origin, is_due, level, attacker.content, **where)

    def is_due(self, file: str, origin: Stamp) -> bool:
        return self.run.force or self.run.state(file, origin) != "done"

    def stamp(self, directory: DataDir) -> Stamp:
        """Return the fingerprint of a directory, see `stamp_of`, which is taken once."""
        if directory not in self.speech:
            self.speech[directory] = stamp_of(self.run, directory)
        return self.speech[directory]

    def inverted(self, inversion: Inversion, attack: Attack, *, most: int | None) -> Attack:
        """Return an attack with inverted enrolment and tests, which learns from original speech in every scenario."""
        training = replace(attack.training, on_anonymised=False)
        enrolled = tuple(map(inversion.planned, attack.enrolment[:most]))
        return replace(
            attack, training=training, enrolment=enrolled, tested=inversion.planned(attack.tested, is_tested=True)
        )

    def cut(self, training: TrainingSet) -> TrainingSet:
        """Return a training set in pieces if its speakers have one recording each."""
        if not needs_pieces(training.original):
            return training
        name = training.original.path.name
        if name not in self.counts:
            count = partial(count_pieces, training.original)
            self.counts[name] = self.run.once(f"pieces of {name}", count, after=[self.stamp(training.original)])
        counts = self.counts[name]

        def pieces(source: DataDir) -> DataDir:
            if source not in self.in_pieces:
                folder = self.run.path(f"data/{source.path.name}{PIECES_ENDING}")
                self.in_pieces[source] = pieces_of(source, counts, folder)
                self.made.pieces[folder] = source, counts
            return self.in_pieces[source]

        return replace(training, original=pieces(training.original), anonymised=tuple(map(pieces, training.anonymised)))

    def fused(self, fusion: Fusion, training: str, rows: Sequence[PlanRow]) -> Iterator[PlanRow]:
        """Yield the rows of a fusion: trial lists that at least one of its members scores."""
        lists: dict[str, list[PlanRow]] = {}
        for row in rows:
            if fusion.takes(row.level) and row.is_fused:
                lists.setdefault(str(Path(row.file).parents[1]), []).append(row)
        both = [self.sets.original[training], *self.sets.versions[training]]
        for folder, members in lists.items():
            scenario, background = members[0].scenario, members[0].attack.training
            if fusion.inverts and not (scenario and scenario.enrolment and scenario.trials):
                continue
            if len(set(background.versions[0].speakers.values())) < LEAST_SPEAKERS:
                logger.warning("%s is left out of %s: too few background speakers", fusion.name, folder)
                continue
            origin = self.run.origin(
                f"scores of {fusion.name} in {folder}",
                inputs=[METHOD, self.seed, fusion.kind(background)],
                after=[*(row.origin for row in members), *map(self.stamp, both)],
                libraries=("numpy", "scipy"),
            )
            yield self.of_members(fusion, members, f"{folder}/{fusion.name}/scores", origin, members[0].gender)

    def pooled(self, rows: Sequence[PlanRow]) -> Iterator[PlanRow]:
        """Yield the rows of both sexes together."""
        groups: dict[tuple[str, int, str, int], list[PlanRow]] = {}
        for row in rows:
            assert row.dataset is not None
            groups.setdefault((row.dataset.name, id(row.scenario), row.name, row.draw), []).append(row)
        for members in groups.values():
            (dataset, scenario), draw = (members[0].dataset, members[0].scenario), members[0].draw
            assert dataset is not None
            assert scenario is not None
            if len(members) == len(dataset.trials) > 1:
                drawn = self.suffix if draw == 1 else f"{self.suffix}-draw{draw}"
                tested = trial_name(dataset, POOLED, drawn if scenario.trials else "")
                enrolled = dataset.enrolls + (self.suffix if scenario.enrolment else "")
                learnt_from = f"asv_anon{self.suffix}" if scenario.training else "asv_orig"
                folder, name = f"{SCORES}/{learnt_from}/{enrolled}-{tested}", members[0].name
                origin = self.run.origin(f"scores of {name} in {folder}", after=[row.origin for row in members])
                yield self.of_members(None, members, f"{folder}/{name}/scores", origin, POOLED)

    def of_members(
        self, fusion: Fusion | None, members: Sequence[PlanRow], file: str, origin: Stamp, gender: str
    ) -> PlanRow:
        """Return a row whose scores are those of others, fused or joined."""
        name, level = (
            (members[0].name, members[0].level)
            if fusion is None
            else (fusion.name, highest(one.level for one in members))
        )
        content = members[0].content if fusion is None else ""
        more: dict[str, Any] = {"content": content, "gender": gender, "members": tuple(members)}
        row = replace(members[0], name=name, attacker=fusion, file=file, origin=origin, level=level, **more)
        return replace(row, is_due=self.is_due(file, origin))

    def fold(self, kind: tuple[str, str], fused: Sequence[PlanRow], chosen: Sequence[tuple[Spec, Any]]) -> None:
        """Add the folds of a training set with the rows of all members of its fusions."""
        training, name = kind
        names, is_due = {row.name for one in fused for row in one.members}, any(row.is_due for row in fused)
        versions = self.sets.versions[training]
        whole = TrainingSet(self.sets.original[training], versions, on_anonymised=name == "semi-informed")
        attacks, left_out = fold_attacks(self.cut(whole), name, seed=self.seed), dict[str, str]()
        folds: list[tuple[Fold, list[PlanRow]]] = [(fold, []) for fold, _ in attacks]
        for spec, attacker in chosen:
            if spec.name not in names:
                continue
            if spec.row and spec.row.base == OF_THE_RECORDING and needs_pieces(whole.original):
                left_out[spec.name] = "it recognises recordings, and background speakers have one recording each"
                continue
            try:
                made = []
                for fold, attack in attacks:
                    if why := attacker.obstacle(attack):
                        raise DataError(why)
                    file = f"{whole.folder}/folds-{name}/{fold.number}/{spec.name}/scores"
                    made.append(self.row(spec, attacker, attack, file, whole, draw=fold.number))
                for (_, rows), row in zip(folds, made, strict=True):
                    rows.append(replace(row, is_due=row.is_due and is_due))
            except DataError as error:  # the others are fused
                left_out[spec.name] = error.text
                logger.warning("fusion leaves out %s: %s", spec.name, error.text)
        self.made.folds[kind], self.made.left_out[kind], self.made.whole[kind] = folds, left_out, whole


def highest(levels: Iterable[str]) -> str:
    """Return the highest of some levels of knowledge."""
    return max(levels, key=list(LEVELS).index)
