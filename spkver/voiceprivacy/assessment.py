"""The table of results: a row for each set, sex, scenario and attacker, and figures that combine several rows.

    numbers/<set><suffix>/<attacker>.json    rows of an attacker on a set: a new attacker only adds its own file
    numbers/<set><suffix>-utterances5/       the same for conversations of five recordings
    evidence<suffix>.json                    figures that combine several attackers

A row is a `Condition`, an entry of ``conditions`` in ``results.json``, see
`spkver.voiceprivacy.condition_metrics.assess_condition`. Several attackers are combined in four ways:

- The smallest equal error rate over attackers, with an interval that allows for the choice, and the rate that a perfect
  anonymiser would show in its place. It is given for each set, sex and scenario, and for each set and sex over
  scenarios; over all attackers, over each level of knowledge, and over attackers that do not use the words.
- The similarity of voices before and after anonymisation, for each set and sex: similarity matrices, DeID and G_VD, by
  the strongest attacker that does not invert the anonymisation.
- The difference between semi-informed attackers and attackers with less knowledge, if the latter are stronger.
- The summary: the strongest attacker of each set, sex and scenario, which leaves the least privacy.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import reports
from evaluation.formats import read_key, read_scores
from evaluation.reports import (
    OVER_SCENARIOS,
    Condition,
    Outcome,
    Voices,
    main_outcomes,
    samples_of,
    strongest,
    summarise,
)
from evaluation.trials import INVERTING, LEVELS, read_speakers
from evaluation.uncertainty import Interval, Minimum, Resampling, minima_over_attackers
from evaluation.utility import CALIBRATIONS, compare_voices, matrix_of_voices
from spkbase.errors import DataError
from spkbase.files import file_digest, load_json, write_json
from spkbase.progress import progress
from spkbase.runs import Run, Stage
from spkbase.work import Work
from spkver.voiceprivacy.condition_metrics import assess_condition
from spkver.voiceprivacy.conversations import list_ending
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.scores import Scored
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import EvaluationConfig

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_MOST_RESAMPLES = 500
_FEWEST = 5  # fewest speakers for calibration on held-out speakers
_KINDS = ("minimum", *LEVELS, "without_content")
_ANONYMISED = ("lazy-informed", "semi-informed")
_SLOPES = "slopes"  # key of the workers' results; not written to the file


@dataclass(frozen=True)
class Table:
    """The table of results, and figures that combine several rows.

    Attributes
    ----------
    conditions : sequence of Condition
        Entries of ``conditions`` in ``results.json``.
    outcomes : sequence of Outcome
        Entries of ``summary``: the strongest attackers, in the order of the conditions.
    similarity : sequence of Voices
        The similarity of voices, for each set and sex.
    order : sequence of AttackerOrder
        Attackers with more and with less knowledge, for each set.
    conversations : sequence of Condition
        Conditions in which several recordings are scored at once; no other figure depends on them.
    """

    conditions: Sequence[Condition] = ()
    outcomes: Sequence[Outcome] = ()
    similarity: Sequence[Voices] = ()
    order: Sequence[AttackerOrder] = ()
    conversations: Sequence[Condition] = ()


@dataclass(frozen=True)
class AttackerOrder(reports.Row):
    """The strongest semi-informed attacker against the strongest of a scenario with less knowledge.

    Attackers that invert the anonymisation do not count if there are others.

    Attributes
    ----------
    dataset, gender : str
        The list of trials.
    other : str
        The scenario with less knowledge.
    rates : (float, float)
        Equal error rates of both.
    difference : Interval, optional
        Difference of the rates by paired resamples of all draws; given if the semi-informed attacker is weaker.
    """

    dataset: str
    gender: str
    other: str
    rates: tuple[float, float]
    difference: Interval | None = None


def assess(experiment: Experiment, scores: Sequence[Scored]) -> Table:
    """Compute the metrics of every condition with their intervals, and figures that combine several conditions.

    The conditions of an attacker on a set are one stage, whose work is spread over the workers.
    """
    run = experiment.run
    experiment.begin("evaluation")
    groups: dict[tuple[str, str, int], list[Scored]] = {}
    for condition in scores:
        group_key = (condition.dataset, condition.attacker, condition.utterances)
        groups.setdefault(group_key, []).append(condition)
    with run.timed("evaluation"):
        stages = []
        rows: dict[tuple[Any, ...], Condition] = {}
        for group in progress(groups.values(), description="evaluation", total=len(groups)):
            stage = _numbers(experiment, group)
            if group[0].utterances == 1:
                stages.append(stage)
            for row in stage.value:
                rows[*row.identity, row.utterances] = row
        conditions = []
        conversations = []
        for scored in scores:
            names = (scored.dataset, scored.gender, scored.scenario, scored.attacker)
            row = rows[*names, scored.utterances]
            if scored.utterances == 1:
                conditions.append(row)
            else:
                conversations.append(row)
        evidence = _evidence(experiment, conditions, after=stages)
    experiment.end("evaluation", f"{run.path('numbers')}")
    minima: dict[tuple[str, str, str], dict[str, Minimum | None]] = {}
    for entry in evidence["minima"]:
        identity = (entry["dataset"], entry["gender"], entry["scenario"])
        minima[identity] = {kind: Minimum.from_dict(entry[kind]) for kind in _KINDS}
    order = list(map(AttackerOrder.from_dict, evidence["order"]))
    similarity = list(map(Voices.from_dict, evidence["similarity"]))
    return Table(conditions, summarise(conditions, minima), similarity, order, conversations)


def _numbers(experiment: Experiment, group: Sequence[Scored]) -> Stage[list[Condition]]:
    """Return the stage that assesses the conditions of an attacker on a set."""
    run = experiment.run
    config = experiment.config
    dataset = f"{group[0].dataset}{experiment.suffix}{list_ending(group[0].utterances)}"
    attacker = group[0].attacker
    digests = {}
    for lists in sorted({condition.lists for condition in group}):
        for name in ("spk2gender", "trials", "utt2spk"):
            digests[f"{lists}/{name}"] = file_digest(run.path(f"{lists}/{name}"))
    return run.stage(
        f"numbers of {attacker} on {dataset}",
        f"numbers/{dataset}/{attacker}.json",
        step="numbers",
        make=partial(
            _assess_all, run=run, conditions=group, config=config.evaluation, seed=config.seed
        ),
        read=lambda path: list(map(Condition.from_dict, load_json(path))),
        inputs=[group, digests, _without_utterances(config.evaluation), config.seed],
        libraries=("numpy", "scipy"),
    )


def _evidence(
    experiment: Experiment, conditions: Sequence[Condition], after: Sequence[Stage[Any]]
) -> Json:
    """Return the figures that combine several conditions of a list."""
    run = experiment.run
    config = experiment.config.evaluation
    seed = experiment.config.seed
    resampling = Resampling(min(config.resamples, _MOST_RESAMPLES), seed, config.level)
    parts = _by_list(conditions)
    main_parts = _by_list(main_outcomes(conditions))

    def make(path: Path) -> None:
        evidence = {}
        figures = (
            ("minima", _minima, parts),
            ("similarity", _similarity, parts),
            ("order", compare_scenarios, main_parts),
        )
        for name, compute, given in figures:
            work = partial(compute, output=run.output, resampling=resampling)
            longest_first = given[::-1]  # the list of both sexes comes last
            computed = Work(run.jobs).map(
                work, longest_first, processes=True, description=f"evidence: {name}"
            )
            evidence[name] = list(chain.from_iterable(list(computed)[::-1]))
        tell_slopes(evidence["similarity"])
        write_json(path, evidence)

    stage: Stage[Json] = run.stage(
        "evidence",
        f"evidence{experiment.suffix}.json",
        make=make,
        read=load_json,
        inputs=[_without_utterances(config), seed],
        after=after,
        libraries=("numpy", "scipy"),
    )
    return stage.value


def _without_utterances(config: EvaluationConfig) -> EvaluationConfig:
    """Return the configuration without the numbers of recordings, which do not change the figures over attackers."""
    return replace(config, utterances=(1,))


def _by_list(conditions: Sequence[Condition]) -> list[list[Condition]]:
    """Return the conditions of each list of trials."""
    lists: dict[tuple[str, str], list[Condition]] = {}
    for row in conditions:
        lists.setdefault((row.dataset, row.gender), []).append(row)
    return list(lists.values())


def _assess_all(
    path: Path, *, run: Run, conditions: Sequence[Scored], config: EvaluationConfig, seed: int
) -> None:
    """Write the rows of an attacker on a set."""
    # longest first, so that the workers finish together
    longest_first = sorted(conditions, key=lambda row: (row.gender != POOLED, -len(row.scores)))
    assessed = Work(run.jobs).map(
        partial(assess_condition, output=run.output, config=config, seed=seed),
        longest_first,
        processes=True,
        description=f"{conditions[0].attacker} on {conditions[0].dataset}",
    )
    rows = {}
    for row in assessed:
        rows[row.gender, row.scenario] = row.to_dict()
    write_json(path, [rows[row.gender, row.scenario] for row in conditions])


def compare_scenarios(
    rows: Sequence[Condition], output: Path, resampling: Resampling
) -> list[Json]:
    """Return an `AttackerOrder`, for JSON, for each scenario with less knowledge, from the conditions of a list."""
    entries = []
    semi = _strongest_in("semi-informed", rows)
    for other in ("lazy-informed", "ignorant"):
        rival = _strongest_in(other, rows)
        if semi is None or rival is None:
            continue
        rates = (semi.eer.value, rival.eer.value)
        gap = None
        if rates[0] > rates[1] and resampling.resamples:
            with suppress(DataError):  # fewer than two speakers
                gap = reports.rate_difference((rival, output), (semi, output), resampling)
        entries.append(AttackerOrder(semi.dataset, semi.gender, other, rates, gap).to_dict())
    return entries


def _strongest_in(scenario: str, rows: Sequence[Condition]) -> Condition | None:
    """Return the strongest attacker of a scenario, preferring those that do not invert; None if there is none."""
    able = [row for row in rows if row.scenario == scenario]
    if not able:
        return None
    return strongest([row for row in able if row.level != INVERTING] or able)


def _minima(rows: Sequence[Condition], output: Path, resampling: Resampling) -> list[Json]:
    """Return the smallest equal error rates in each scenario and over all anonymised scenarios, by kind of attacker."""
    named = {f"{row.scenario} {row.attacker}": row for row in rows}
    groups = _groups(named)
    minima: dict[str, Minimum] = {}
    note = "no intervals were asked for"
    if resampling.resamples:
        try:
            samples = {name: samples_of(row, output) for name, row in named.items()}
            minima = minima_over_attackers(samples, groups, resampling=resampling)
        except DataError as error:
            note = f"none: {error.text}"
    entries = []
    for scenario in dict.fromkeys([*map(attrgetter("scenario"), rows), OVER_SCENARIOS]):
        entry: Json = {"dataset": rows[0].dataset, "gender": rows[0].gender, "scenario": scenario}
        entry |= dict.fromkeys(_KINDS)
        for kind in _KINDS:
            minimum = minima.get(f"{scenario} {kind}")
            if minimum is not None:
                entry[kind] = {**minimum.to_dict(), "attacker": named[minimum.attacker].attacker}
        if not minima:
            entry["note"] = note
        entries.append(entry)
    return entries


def _groups(named: Mapping[str, Condition]) -> dict[str, list[str]]:
    """Return the names of the attackers of each kind, in each scenario and over all anonymised scenarios."""
    groups: dict[str, list[str]] = {f"{OVER_SCENARIOS} {kind}": [] for kind in _KINDS}
    for name, row in named.items():
        kinds = ["minimum", row.level]
        if not row.content:
            kinds.append("without_content")
        for kind in kinds:
            groups.setdefault(f"{row.scenario} {kind}", []).append(name)
            if row.scenario != "original":
                groups[f"{OVER_SCENARIOS} {kind}"].append(name)
    return groups


def _similarity(rows: Sequence[Condition], output: Path, resampling: Resampling) -> list[Json]:
    """Return the similarity of voices in each scenario with anonymised enrolment and trials."""
    by_scenario: dict[str, dict[str, Condition]] = {}
    for row in rows:
        if row.level != INVERTING:
            by_scenario.setdefault(row.scenario, {})[row.attacker] = row
    original = by_scenario.get("original", {})
    ignorant = by_scenario.get("ignorant", {})
    entries = []
    for scenario in _ANONYMISED:
        anonymised = by_scenario.get(scenario, {})
        able = [
            row
            for attacker, row in anonymised.items()
            if attacker in original and attacker in ignorant
        ]
        if able:
            best = min(able, key=lambda row: (row.eer.value, row.attacker))
            parts = {"oo": original[best.attacker], "oa": ignorant[best.attacker], "aa": best}
            identity: Json = dict(
                zip(("dataset", "gender", "scenario", "attacker"), best.identity, strict=True)
            )
            entries.append(identity | _compare_voices(parts, output, resampling))
    return entries


def tell_slopes(similarities: Iterable[Json]) -> None:
    """Log how often the calibrations of an attacker had a negative slope, and remove these counts from its figures."""
    negative: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for entry in similarities:
        inverted, calibrated = entry.pop(_SLOPES)
        negative[entry["attacker"]] += inverted
        total[entry["attacker"]] += calibrated
    for attacker, count in negative.items():
        if count:
            text = "%s: the calibrations for the similarity of voices have a negative slope for %d of %d pairs of folds"
            text += ", as is usual at chance level"
            logger.warning(text, attacker, count, total[attacker], extra={"file_only": True})


def _compare_voices(parts: Mapping[str, Condition], output: Path, resampling: Resampling) -> Json:
    """Return the similarity of voices in original speech (oo), across (oa) and in anonymised speech (aa)."""
    key = read_key(output / parts["oo"].key)
    speakers = read_speakers(output / parts["oo"].segment_speakers)
    everybody = {*key.model_ids[np.unique(key.models)].tolist(), *speakers.values()}
    calibration: Any = "folds"
    if len(everybody) < _FEWEST:
        calibration = "pav"
    matrices = {}
    notes: list[str] = []
    slopes = np.zeros(2, np.int64)

    def count(negative: int, total: int) -> None:
        slopes[:] += negative, total

    try:
        for name, row in parts.items():
            draws = [read_scores(output / draw.scores) for draw in row.draws]
            matrices[name], its_notes = matrix_of_voices(
                draws,
                key,
                calibration=calibration,
                seed=resampling.seed,
                segment_speakers=speakers,
                tell=count,
            )
            notes += [f"{name}: {note}" for note in its_notes]
        compared = compare_voices(matrices, resampling=resampling, notes=tuple(notes))
    except DataError as error:
        return {"notes": [f"not given: {error.text}"], _SLOPES: slopes.tolist()}
    about = {
        "calibration": calibration,
        "calibration_is": CALIBRATIONS[calibration],
        _SLOPES: slopes.tolist(),
    }
    return {**about, **compared.to_dict()}
