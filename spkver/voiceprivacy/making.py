"""Scores are made; an attacker that fails is left out, is named, and does not keep the others from their work."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from evaluation.trials import Scores as TrialScores
from spkbase.errors import DataError, Problems, SpkverError, few
from spkbase.files import load_json, write_json
from spkbase.plugins import TimeLimitError
from spkbase.runs import Run, Stage
from spkbase.showing import one_line
from spkver.attackers import ENDING, Attacker, Fusion
from spkver.voiceprivacy.conditions import SCORES, WORK, Condition
from spkver.voiceprivacy.rates import Heard
from spkver.voiceprivacy.sanity_audio import Evaluated, Found

logger = logging.getLogger(__name__)

FAILURES = "failures.json"
"""File in the output folder with what failed in the last run, which the steps after it take up."""

CHECK = "attackers that failed"


@one_line
@dataclass(frozen=True)
class Failure:
    """Scores that an attacker should have given and did not.

    Attributes
    ----------
    attacker, dataset, gender, scenario : str
    scores : str
        The file that is missing, relative to the output folder.
    reason : str
    """

    attacker: str
    dataset: str
    gender: str
    scenario: str
    scores: str
    reason: str


@dataclass
class Outcome:
    """What comes of the scores besides the scores.

    Attributes
    ----------
    failures : list of Failure
        What single attackers failed at.
    fusions : list of dict
        Weights of fusions, as in their files.
    attributes : dict
        What vectors tell of the speakers besides who they are.
    training_draws : list of dict
        Equal error rates by the number of versions of the training set, see `measure_training_draws`.
    attackers : list of Attacker
    heard : list of Heard
        What attackers hear, see `spkver.voiceprivacy.rates`.
    fitted : dict of str to sequence of Attacker
        Attackers in place of these for training sets of other sampling rates.
    declare : callable
        Declares all conditions again, as `declare_scores`, without those that it is told of as failed.
    """

    failures: list[Failure] = field(default_factory=list)
    fusions: list[dict[str, Any]] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    training_draws: list[dict[str, Any]] = field(default_factory=list)
    attackers: list[Attacker] = field(default_factory=list, repr=False)
    heard: list[Heard] = field(default_factory=list, repr=False)
    fitted: dict[str, Sequence[Attacker]] = field(default_factory=dict, repr=False)
    declare: Callable[..., list[Condition]] | None = field(default=None, repr=False)


def make_all_scores(
    run: Run, conditions: Sequence[Condition], outcome: Outcome, *, outside: Collection[str] = ()
) -> list[Condition]:
    """Make the scores of all conditions, those of fusions last; return the conditions that have scores.

    What fails goes to `outcome`, and to a file that later steps take up; the weights of fusions go there too. With
    `force` the features and statistics that attackers share are made again.

    Raises
    ------
    DataError, Exception
        See `make_scores`.
    """
    if run.force:
        shutil.rmtree(run.path(WORK), ignore_errors=True)
    fused = {attacker.name for attacker in outcome.attackers if isinstance(attacker, Fusion)}
    records: dict[str, Any] = {}
    left = list(conditions)
    for is_fused in (False, True):
        part = [condition for condition in left if (condition.scored.attacker in fused) == is_fused]
        failures = make_scores(run, part, outside=None if is_fused else outside, records=records)
        outcome.failures += failures
        if failures and outcome.declare is not None:
            failed = {(failure.attacker, attack_of(failure.scores)) for failure in outcome.failures}
            left = outcome.declare(failed=failed)
    if not run.frozen:
        if records:
            write_json(run.path(FAILURES), records)
        else:
            run.path(FAILURES).unlink(missing_ok=True)
    files: dict[str, list[str]] = {}
    for condition in left:
        for file in condition.weights:
            files.setdefault(file, []).append(condition.scored.scores)
    outcome.fusions[:] = [{"file": file, "scores": used, **load_json(run.path(file))} for file, used in files.items()]
    return left


def attack_of(scores: str) -> str:
    """Return the name of the attack that a file of scores is of.

    Examples
    --------
    >>> attack_of("exp/asv_orig/a_enrolls-a_trials_f/gmm-ubm/scores")
    'asv_orig/a_enrolls-a_trials_f'
    """
    return str(Path(scores).parents[1].relative_to(SCORES))


def make_scores(
    run: Run,
    conditions: Sequence[Condition],
    *,
    outside: Collection[str] | None = (),
    records: dict[str, Any] | None = None,
) -> list[Failure]:
    """Train the attackers and score all conditions that are not up to date; return what single attackers failed at.

    What failed is not up to date, so that the next run tries it again; one that was ended for its time is not tried
    again in this run.

    Parameters
    ----------
    run : Run
    conditions : sequence of Condition
        As `declare_scores` has them, those of one list of trials together.
    outside : collection of str or None
        Names of attackers of others; None: no failure ends the run.
    records : dict, optional
        Takes what failed, by file, for the steps that are done later.

    Raises
    ------
    DataError, Exception
        What all attackers fail at that serve a list of trials, where one of ours is among them: it is the data's.
    """
    attempts = _Attempts(run, {} if records is None else records)
    names = {condition.scored.attacker for condition in conditions}
    for (dataset, scenario), of_scenario in groupby(conditions, lambda condition: _place(condition)[:2]):
        started, count = time.perf_counter(), 0
        for part in (list(conditions) for _, conditions in groupby(of_scenario, _place)):
            errors = attempts.at(part)
            asked = attempts.latest
            count += len(part)
            all_failed = asked and len(errors) == len(asked)
            if all_failed and outside is not None and (set(asked) - set(outside) or set(asked) == names):
                raise _joined(errors)
        logger.info(
            "%s %s: scores of %d conditions after %.1f s", dataset, scenario, count, time.perf_counter() - started
        )
    return attempts.failures


def failed_attackers(given: Evaluated) -> Iterator[Found]:
    """Warn of each attacker that failed."""
    for name, theirs in _by_attacker(given.outcome.failures).items():
        where = few([f"{failure.dataset} {failure.gender} {failure.scenario}" for failure in theirs])
        text = f"{name} has no scores for {_count(theirs)} ({where}), where others alone are the result."
        yield Found("warning", CHECK, f"{text} {theirs[0].reason}")


def fusions(given: Evaluated) -> Iterator[Found]:
    """Note who has a part in each fusion, and who has none."""
    for fusion in given.outcome.fusions:
        shown = {name: weight for name, weight in fusion["weights"]["weights"].items() if weight}
        alone = min(fusion["alone"], key=lambda name: fusion["alone"][name]["cllr"])
        text = (
            f"{fusion['attacker']}, learnt from {fusion['training']} ({fusion['kind']} trials of background speakers in"
            f" {len(fusion['folds'])} folds): {', '.join(f'{name} {weight:.3g}' for name, weight in shown.items())}."
            f" There it has an EER of {100 * fusion['cross_validated']['eer']:.1f} %, the best attacker alone ({alone})"
            f" {100 * fusion['alone'][alone]['eer']:.1f} %."
        )
        idle = [name for name in fusion["weights"]["weights"] if name not in shown]
        text += f" No weight: {', '.join(idle)}." if idle else ""
        yield Found("note", "fusion", text)
        for name, why in fusion["left_out"].items():
            text = f"{fusion['attacker']} ({fusion['training']}, {fusion['kind']}) goes without {name}: {why}."
            yield Found("note", "fusion", text)


def raise_failures(failures: Sequence[Failure], report: Path) -> None:
    """Raise DataError with one line for each attacker that failed, if any did: the others are done."""
    if not failures:
        return
    by_attacker = _by_attacker(failures)
    lines = [f"  {name}: {_count(theirs)}: {theirs[0].reason}" for name, theirs in by_attacker.items()]
    text = f"{len(by_attacker)} attacker{'s' if len(by_attacker) > 1 else ''} failed, all others are done"
    remedy = f"{report} says what is missing; the same command tries it again, and keeps what is done"
    raise DataError("\n".join([f"{text} ({remedy}):", *lines]))


def _by_attacker(failures: Sequence[Failure]) -> dict[str, list[Failure]]:
    by_attacker: dict[str, list[Failure]] = {}
    for failure in failures:
        by_attacker.setdefault(failure.attacker, []).append(failure)
    return by_attacker


def _count(failures: Sequence[Failure]) -> str:
    return f"{len(failures)} list{'s' if len(failures) > 1 else ''} of trials"


def _place(condition: Condition) -> tuple[str, str, str]:
    scored = condition.scored
    return scored.dataset, scored.scenario, scored.gender


def _joined(errors: dict[str, Exception]) -> Exception:
    """One error for several attackers; the first where all say the same."""
    if len({str(error) for error in errors.values()}) == 1:
        return next(iter(errors.values()))
    problems = Problems()
    for name, error in errors.items():
        problems.note(error if isinstance(error, DataError) else DataError(f"attacker {name!r}: {reason_of(error)}"))
    try:
        problems.raise_if_any()
    except DataError as joined:
        return joined
    raise AssertionError


def reason_of(error: Exception) -> str:
    """Return in words what went wrong; of an error of others with its kind."""
    return str(error) if isinstance(error, SpkverError) else f"{type(error).__name__}: {error}"


class _Attempts:
    """Brings conditions up to date, and remembers who failed."""

    def __init__(self, run: Run, records: dict[str, Any]) -> None:
        self.failures: list[Failure] = []
        self.latest: list[str] = []
        self._run, self._lost, self._given_up = run, set[str](), dict[str, Exception]()
        self._records = records
        known = load_json(run.path(FAILURES)) if run.path(FAILURES).is_file() else {}
        self._noted: dict[str, Any] = known if isinstance(known, dict) else {}

    def at(self, conditions: Sequence[Condition]) -> dict[str, Exception]:
        """Bring the conditions of one list of trials up to date; return what went wrong with the first draw of each."""
        self.latest, errors = [], {}
        for condition in conditions:
            for draw, stage in zip(condition.scored.draws, condition.stages, strict=True):
                if self._lost & set(stage.origin["after"]):  # scores of both sexes, of which one is missing
                    continue
                error = self._attempt(stage, condition.scored.attacker)
                if draw == 1:
                    self.latest.append(condition.scored.attacker)
                if error is not None:
                    self._note(condition, stage, error)
                    if draw == 1:
                        errors[condition.scored.attacker] = error
        return errors

    def _note(self, condition: Condition, stage: Stage[TrialScores], error: Exception) -> None:
        scored, reason = condition.scored, " ".join(reason_of(error).split())
        self._lost.add(stage.name)
        place = scored.attacker, scored.dataset, scored.gender, scored.scenario
        failure = Failure(*place, scores=stage.artefact, reason=reason)
        self.failures.append(failure)
        self._records[stage.artefact] = {"fingerprint": stage.fingerprint, **asdict(failure)}
        logger.warning("%s: %s has no scores: %s", Path(stage.artefact).parents[1], scored.attacker, reason)
        if not isinstance(error, SpkverError):
            logger.info("%s", scored.attacker, exc_info=error, extra={"file_only": True})

    def _attempt(self, stage: Stage[TrialScores], name: str) -> Exception | None:
        if self._run.frozen or name in self._given_up:
            noted = self._noted.get(stage.artefact, {})
            if self._run.frozen and noted.get("fingerprint") == stage.fingerprint and stage.state() != "done":
                return DataError(noted["reason"])
            if name in self._given_up and stage.state() != "done":
                return self._given_up[name]
        try:
            stage.bring_up_to_date()
        except Exception as error:
            if self._run.frozen or isinstance(error, ENDING):
                raise
            if isinstance(error, TimeLimitError):
                self._given_up[name] = error
            return error
        return None
