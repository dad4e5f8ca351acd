"""Scoring of the trials: by attackers, then by fusions of attackers; then the scores of both sexes are joined.

    OUTPUT/exp/asv_.../<enrol>-<trials>/NAME/scores    scores, in folders with the challenge's names

Scores that are up to date are kept: a run that was killed continues with the next file. An attacker that fails is left
out and named in the report; the others continue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_scores, write_scores
from evaluation.reports import FusionWeights
from evaluation.trials import INVERTING, ONE_MODEL, SCENARIOS, Scores, conversation_scores
from spkbase.errors import DataError, Problems
from spkbase.files import load_json, write_json
from spkbase.progress import progress
from spkbase.runs import Run, Stage, Stamp
from spkbase.showing import one_line
from spkbase.work import use_jobs
from spkver.attackers import (
    LostModelError,
    SpeechFiles,
    Trained,
    fuse,
    learn_models,
    learn_weights,
    score_trials,
)
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.failures import Failures, reason_of
from spkver.voiceprivacy.plan import Plan
from spkver.voiceprivacy.plan_rows import highest
from spkver.voiceprivacy.rows import FoldKind, Row
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets

logger = logging.getLogger(__name__)

Json = dict[str, Any]


@one_line
@dataclass(frozen=True)
class Scored:
    """The scores of an attacker in a scenario; paths are relative to the output folder.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        The condition; gender is "f", "m" or "all".
    lists : str
        Folder that holds the key (``trials``), ``utt2spk`` and ``spk2gender``.
    scores : dict of int to str
        File with the scores of each draw, by number; the first draw is always included.
    made_from : tuple of str
        Fingerprints of these files.
    level : str
        Level of knowledge of the attacker, see `evaluation.trials.LEVELS`.
    content : str
        Source of the words that the attacker uses: "oracle" for transcripts that come with the data, "recognised" for
        those of a recogniser; empty if it uses none.
    tested : tuple of int
        Number of test recordings in each trial list: a whole-list attacker adapts to them.
    lacking : tuple of int
        Draws that exist but that the attacker could not score.
    weights : tuple of str
        Files that hold the weights of a fusion.
    utterances : int
        Number of recordings in a conversation; 1: segments of the trials are single recordings.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    lists: str
    scores: Mapping[int, str]
    made_from: tuple[str, ...] = ()
    level: str = ONE_MODEL
    content: str = ""
    tested: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()
    weights: tuple[str, ...] = ()
    utterances: int = 1


def score(
    experiment: Experiment,
    sets: Sets,
    plan: Plan,
    speech: SpeechFiles,
    models: dict[tuple[str, str], Trained],
) -> list[Scored]:
    """Compute all scores that are not up to date: those of folds, attackers and fusions, then pooled over the sexes.

    An attacker that fails is left out and named in `Experiment.failures`. Failed rows have no scores, so the next run
    tries them again. Training here is limited to the weights of fusions, and to a user's function whose process has
    ended.

    Returns
    -------
    list of Scored
        By set, scenario, number of recordings in a conversation, sex and attacker; pooled trials follow the trials of
        each sex.

    Raises
    ------
    DataError, Exception
        If all attackers of a trial list fail and a built-in one is among them: then the data are at fault.
    """
    experiment.begin("scores")
    run = experiment.run
    failures = experiment.failures
    due = {row.id for row in plan.due(run)}
    counted = progress(due, description="scores", total=len(due))
    scoring = _Scoring(run, plan, speech, models, failures, due, counted)
    outside = {spec.name for spec, _ in experiment.attackers if spec.row is None}
    datasets = {dataset.name: dataset for dataset in sets.datasets}
    conditions = list[Scored]()
    with run.timed("scores"), use_jobs(run.jobs), closing(counted):
        for row in plan.of_folds:
            if row.id in due:
                scoring.single(row)
        for (dataset, _), group in groupby(plan.rows, lambda row: (row.dataset, row.scenario)):
            rows = list(group)
            for row in rows:
                if row.kind == "single":
                    scoring.single(row)
            of_recordings = [row for row in rows if row.kind == "single" and row.utterances == 1]
            for _, listed in groupby(of_recordings, lambda row: row.gender):
                _raise_if_all_failed(list(listed), plan, failures, outside)
            for row in rows:
                if row.kind == "fusion":
                    scoring.fusion(row)
                elif row.kind == "conversation":
                    scoring.conversation(row)
                elif row.kind == "pooled":
                    scoring.pooled(row)
            for row in rows:
                failures.tell(row)
            for number in experiment.config.evaluation.utterances:
                same = [row for row in rows if row.utterances == number]
                conditions += _conditions(scoring, sets, datasets[dataset], same)
    experiment.end(
        "scores", f"{len(conditions)} conditions by {', '.join(experiment.config.attackers)}"
    )
    return conditions


@dataclass(frozen=True, eq=False)
class _Scoring:
    """The inputs of scoring, a counter of the rows that are due, and what is scored so far.

    Attributes
    ----------
    stages : dict of str to Stage
        Scores and weights, by file.
    files : dict of (str, str) to str
        Files of the scores of single attackers, by the attacker and the fingerprint of all that its scores depend on.
        Attackers that invert both sides have the same scores in the lazy-informed and the semi-informed scenario.
    """

    run: Run
    plan: Plan
    speech: SpeechFiles
    models: dict[tuple[str, str], Trained]
    failures: Failures
    due: Collection[str]
    counted: Iterator[str]
    stages: dict[str, Stage[Any]] = field(default_factory=dict)
    files: dict[tuple[str, str], str] = field(default_factory=dict)

    def members(self, row: Row) -> list[Row]:
        """Return the members of a row that have scores."""
        return [member for member in self.plan.members(row) if member.file in self.stages]

    def single(self, row: Row) -> None:
        """Score a row by its attacker."""
        if row.id in self.due:
            next(self.counted)
        if self.failures.error(row) is not None:
            return
        origin = self.plan.origins[row.id]
        compute = partial(self._by_attacker, row)
        key = row.attacker, origin.fingerprint
        if key in self.files:
            compute = partial(read_scores, self.run.path(self.files[key]))
        self._stage(row, origin, compute)
        if row.file in self.stages:
            self.files[key] = row.file

    def fusion(self, row: Row) -> None:
        """Fuse the scores of those members that have any."""
        members = self.members(row)
        levels = {member.level for member in members}
        if not members or (row.level == INVERTING and INVERTING not in levels):
            return
        origin = self.plan.origins[row.id]
        lost = set()
        for fold in self.plan.of_folds:
            if fold.fold_kind == row.fold_kind and self.failures.error(fold) is not None:
                lost.add(fold.attacker)
        # marked as made of fewer members, so that the next run tries all of them again
        if lost or len(members) < len(row.members):
            names = sorted({member.attacker for member in members} - lost)
            origin = self.run.origin(origin.name, inputs=names, after=[origin])
        self._stage(row, origin, partial(self._fused, row, members))

    def conversation(self, row: Row) -> None:
        """Average the scores of the recordings in each conversation, if all versions of the trials have scores."""
        members = self.members(row)
        if len(members) == len(row.members):
            self._stage(row, self.plan.origins[row.id], partial(self._spoken, row, members))

    def _spoken(self, row: Row, members: Sequence[Row]) -> Scores:
        """Return the mean scores of conversations; of a fusion, the sums of its log-likelihood ratios."""
        parts = self.plan.speech.dealt[row.trials].parts(row.draw, len(members))
        conversations = {}
        for conversation, of_versions in parts.items():
            conversations[conversation] = tuple(recording for _, recording in of_versions)
        versions_used = set(chain.from_iterable(parts.values()))
        used = []
        for version, scores in enumerate(self.read(members)):
            segments = scores.segment_ids.tolist()
            segment_used = np.array([(version, segment) in versions_used for segment in segments])
            used.append(scores.subset(segment_used[scores.segments]))
        is_fused = members[0].kind == "fusion"
        return conversation_scores(joined(used), conversations, summed=is_fused)

    def pooled(self, row: Row) -> None:
        """Join the scores of both sexes if there are scores of both."""
        members = self.members(row)
        if len(members) == len(row.members):
            self._stage(row, self.plan.origins[row.id], lambda: joined(self.read(members)))

    def _stage(self, row: Row, origin: Stamp, compute: Callable[[], Scores]) -> None:
        """Make the scores of a row, unless they are up to date."""

        def make(path: Path) -> None:
            write_scores(path, compute())

        stage = partial(
            self.run.stage, origin.name, row.file, make=make, read=read_scores, origin=origin
        )
        done = self.failures.attempt([row], stage)
        if done is not None:
            self.stages[row.file] = done

    def read(self, rows: Iterable[Row]) -> list[Scores]:
        """Return the scores of rows."""
        return [read_scores(self.run.path(row.file)) for row in rows]

    def _by_attacker(self, row: Row) -> Scores:
        """Score a row by its attacker, which is trained again if the process of its model has ended."""
        model = self.plan.model(row)
        attacker = self.plan.attacker(row)
        attack = self.plan.attacks[row.id]
        if model not in self.models:
            text = "%s learns again: its process ended while it scored"
            logger.warning(text, row.attacker, extra={"file_only": True})
            self.models[model] = learn_models(self.speech, attacker, attack.training)
        try:
            return score_trials(attacker, self.models[model], attack)
        except LostModelError:
            del self.models[model]
            raise

    def _fused(self, row: Row, members: Sequence[Row]) -> Scores:
        """Return the weighted sum of the members' scores; members of the same kind share their weights."""
        file = self.plan.weights_file(row, members)
        if file not in self.stages:
            self.stages[file] = _weights(self, file, row, members)
        names = [member.attacker for member in members]
        return fuse(
            self.stages[file].value["weights"], dict(zip(names, self.read(members), strict=True))
        )


def _weights(scoring: _Scoring, file: str, fused: Row, members: Sequence[Row]) -> Stage[Json]:
    """Train the weights of a fusion on the scores of its members in the folds, or reuse them."""
    plan = scoring.plan
    kind = fused.fold_kind
    folds = plan.folds[kind]
    background = plan.speech.background(kind)
    if not folds:
        text = "fusion needs four background speakers with two recordings, or with one that can be cut in two"
        raise DataError(text, file=background.original.path, remedy="leave it out of 'attackers'")
    by_attacker, left_out = _rows_in_folds(scoring, kind, [member.attacker for member in members])
    if not by_attacker:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise DataError(f"attacker {fused.attacker!r} has no attackers to fuse ({reasons})")
    training = background.versions[0].name
    about = {
        "attacker": fused.attacker,
        "training": training,
        "kind": kind[1],
        "left_out": left_out,
    }

    def make(path: Path) -> None:
        scores = {name: scoring.read(rows) for name, rows in by_attacker.items()}
        write_json(path, learn_weights(folds, scores, about))

    every = chain.from_iterable(by_attacker.values())
    return scoring.run.stage(
        f"weights of {fused.attacker}",
        file,
        step="weights",
        make=make,
        read=load_json,
        inputs=[about, list(by_attacker), [fold.key for fold in folds]],
        after=[plan.origins[row.id] for row in every],
        libraries=("numpy", "scipy"),
    )


def _rows_in_folds(
    scoring: _Scoring, kind: FoldKind, names: Sequence[str]
) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """Return the rows of the folds of each attacker that could score all of them, and why the others are left out."""
    plan = scoring.plan
    left_out = {name: why for name, why in plan.left_out[kind].items() if name in names}
    by_attacker: dict[str, list[Row]] = {}
    for row in plan.of_folds:
        if (
            row.fold_kind == kind
            and row.attacker in names
            and row.attacker not in plan.left_out[kind]
        ):
            by_attacker.setdefault(row.attacker, []).append(row)
    able = {}
    for name in names:
        rows = by_attacker.get(name, [])
        error = next(filter(None, map(scoring.failures.error, rows)), None)
        if error is not None:
            left_out[name] = reason_of(error)
            if isinstance(error, DataError):
                left_out[name] = error.text
            logger.warning("fusion leaves out %s: %s", name, left_out[name])
        elif name not in left_out:
            able[name] = rows
    return able, left_out


def _raise_if_all_failed(
    rows: Sequence[Row], plan: Plan, failures: Failures, outside: Collection[str]
) -> None:
    """Raise the errors of a trial list if all its attackers fail.

    Nothing is raised if all of them are in `outside` and other attackers have rows.
    """
    errors: dict[str, Exception] = {}
    for row in rows:
        error = failures.error(row)
        if row.draw == 1 and error is not None:
            errors[row.attacker] = error
    if not errors or errors.keys() != {row.attacker for row in rows}:
        return
    if errors.keys() <= set(outside) and errors.keys() != {row.attacker for row in plan.rows}:
        return
    if len({str(error) for error in errors.values()}) == 1:
        raise next(iter(errors.values()))
    problems = Problems()
    for name, error in errors.items():
        if not isinstance(error, DataError):
            error = DataError(f"attacker {name!r}: {reason_of(error)}")
        problems.note(error)
    problems.raise_if_any()


def _conditions(
    scoring: _Scoring, sets: Sets, dataset: Dataset, rows: Sequence[Row]
) -> Iterator[Scored]:
    """Yield the conditions of a scenario that have scores of the first draw; pooled sexes come last."""
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == rows[0].scenario]
    n_draws = sets.tested_draws(dataset, scenario)
    scored: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        if row.file in scoring.stages:
            scored.setdefault((row.gender, row.attacker), {})[row.draw] = row
    genders = list(dataset.trials)
    if len(genders) > 1:
        genders.append(POOLED)
    for gender in genders:
        for name in scoring.plan.names[dataset.training]:
            draws = scored.get((gender, name), {})
            if 1 in draws:
                yield _condition(scoring, dataset, draws, n_draws)


def _condition(
    scoring: _Scoring, dataset: Dataset, draws: Mapping[int, Row], n_draws: int
) -> Scored:
    """Return the condition of an attacker from its rows, which are given by draw."""
    plan = scoring.plan
    first = draws[1]
    lists = [first]
    if first.kind == "pooled":
        lists = plan.members(first)
    scores = {}
    made_from = []
    weights = []
    for draw, row in draws.items():
        scores[draw] = row.file
        made_from.append(scoring.stages[row.file].fingerprint)
        if row.kind == "fusion":
            weights.append(_weights_file(scoring, row))
    return Scored(
        dataset=dataset.name,
        gender=first.gender,
        scenario=first.scenario,
        attacker=first.attacker,
        lists=f"lists/{first.trials}",
        scores=scores,
        made_from=tuple(made_from),
        level=_level(scoring, first),
        content=first.content,
        tested=tuple(len(np.unique(plan.speech.trials[row.trials].segments)) for row in lists),
        lacking=tuple(draw for draw in range(1, 1 + n_draws) if draw not in draws),
        weights=tuple(dict.fromkeys(weights)),
        utterances=first.utterances,
    )


def _weights_file(scoring: _Scoring, fused: Row) -> str:
    return scoring.plan.weights_file(fused, scoring.members(fused))


def _level(scoring: _Scoring, row: Row) -> str:
    """Return the level of knowledge of a row: for a fusion, the highest among members with a weight."""
    members = scoring.plan.members(row)
    if row.kind == "fusion":
        weights = load_json(scoring.run.path(_weights_file(scoring, row)))["weights"]["weights"]
        members = [member for member in members if weights.get(member.attacker)]
    if not members:
        return row.level
    return highest(_level(scoring, member) for member in members)


def fusion_weights(run: Run, conditions: Sequence[Scored]) -> tuple[FusionWeights, ...]:
    """Return the weights of each fusion, as in its file, with the scores computed with them."""
    files: dict[str, list[str]] = {}
    for condition in conditions:
        for file in condition.weights:
            files.setdefault(file, []).append(condition.scores[1])
    fusions = []
    for file, used in files.items():
        weights = load_json(run.path(file))
        fusions.append(FusionWeights.from_dict({**weights, "file": file, "scores": used}))
    return tuple(fusions)


def joined(lists: Sequence[Scores]) -> Scores:
    """Concatenate the scores of several trial lists."""
    models: list[str] = []
    segments: list[str] = []
    values = []
    for scores in lists:
        models += scores.model_ids[scores.models].tolist()
        segments += scores.segment_ids[scores.segments].tolist()
        values.append(scores.values)
    return Scores.from_ids(models, segments, np.concatenate(values))
