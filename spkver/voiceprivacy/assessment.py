"""The table of results: a row for each set, sex, scenario and attacker, and figures that combine several rows.

    numbers/<set><suffix>/<attacker>.json    rows of an attacker on a set: a new attacker only adds its own file
    evidence<suffix>.json                    figures over several attackers

A row is a `Condition`, an entry of ``conditions`` in ``results.json``, see
`spkver.voiceprivacy.condition_metrics.assess_condition`. Several attackers are combined in four ways:

- The smallest equal error rate over attackers, with an interval that allows for the choice, and the rate that a perfect
  anonymiser would show in its place. It is given for each set, sex and scenario, and for each set and sex over
  scenarios; over all attackers, over each level of knowledge, and over attackers that do not use the words.
- The similarity of voices before and after anonymisation, for each set and sex: similarity matrices, DeID and G_VD, by
  the strongest attacker that does not invert the anonymisation.
- The difference between semi-informed attackers and attackers with less knowledge, where these are stronger.
- The summary: the strongest attacker of each set, sex and scenario, which leaves the least privacy.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
from spkbase.runs import Run, Stage
from spkbase.work import Work, progress
from spkver.voiceprivacy.condition_metrics import assess_condition
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.scores import Scored
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import EvaluationConfig

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_MOST_RESAMPLES = 500
_FEWEST = 5  # speakers that calibration on held-out speakers needs
_KINDS = ("minimum", *LEVELS, "without_content")
_ANONYMISED = ("lazy-informed", "semi-informed")


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
    """

    conditions: Sequence[Condition] = ()
    outcomes: Sequence[Outcome] = ()
    similarity: Sequence[Voices] = ()
    order: Sequence[AttackerOrder] = ()


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
        Of the rates, by paired resamples of all draws, if the semi-informed attacker is weaker.
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
    run, suffix, seed = experiment.run, experiment.suffix, experiment.config.seed
    config = experiment.config.evaluation
    experiment.begin("evaluation")
    groups: dict[tuple[str, str], list[Scored]] = {}
    for condition in scores:
        groups.setdefault((condition.dataset, condition.attacker), []).append(condition)
    stages: dict[tuple[str, str], Stage[list[Condition]]] = {}
    with run.timed("evaluation"):
        for (dataset, attacker), group in progress(groups.items(), description="evaluation", total=len(groups)):
            files = sorted({f"{one.lists}/{name}" for one in group for name in ("trials", "utt2spk", "spk2gender")})
            stages[dataset, attacker] = run.stage(
                f"numbers of {attacker} on {dataset}{suffix}",
                f"numbers/{dataset}{suffix}/{attacker}.json",
                step="numbers",
                make=partial(_assess_all, run=run, conditions=group, config=config, seed=seed),
                read=lambda path: [Condition.from_dict(row) for row in load_json(path)],
                inputs=[group, {name: file_digest(run.path(name)) for name in files}, config, seed],
                libraries=("numpy", "scipy"),
            )
    rows = {row.identity: row for stage in stages.values() for row in stage.value}
    table = [rows[one.dataset, one.gender, one.scenario, one.attacker] for one in scores]
    parts = [
        [row for row in table if row.identity[:2] == one] for one in dict.fromkeys(row.identity[:2] for row in table)
    ]
    main = {row.identity[:2] for row in main_outcomes(table)}

    def make(path: Path) -> None:
        resampling = Resampling(min(config.resamples, _MOST_RESAMPLES), seed, config.level)
        evidence = {}
        main_parts = [part for part in parts if part[0].identity[:2] in main]
        figures = {"minima": (_minima, parts), "similarity": (_similarity, parts)}
        for name, (find, given) in {**figures, "order": (compare_scenarios, main_parts)}.items():
            work = partial(find, output=run.output, resampling=resampling)
            longest_first = given[::-1]  # the list of both sexes comes last
            found = list(Work(run.jobs).map(work, longest_first, processes=True, description=f"evidence: {name}"))
            evidence[name] = [entry for entries in found[::-1] for entry in entries]
        write_json(path, evidence)

    with run.timed("evaluation"):
        evidence: Stage[Json] = run.stage(
            "evidence",
            f"evidence{suffix}.json",
            make=make,
            read=load_json,
            inputs=[config, seed],
            after=list(stages.values()),
            libraries=("numpy", "scipy"),
        )
    experiment.end("evaluation", f"{run.path('numbers')}")
    minima: reports.Minima = {
        (entry["dataset"], entry["gender"], entry["scenario"]): {
            kind: Minimum.from_dict(entry[kind]) for kind in _KINDS
        }
        for entry in evidence.value["minima"]
    }
    order = [AttackerOrder.from_dict(entry) for entry in evidence.value["order"]]
    similarity = [Voices.from_dict(entry) for entry in evidence.value["similarity"]]
    return Table(table, summarise(table, minima), similarity, order)


def _assess_all(path: Path, *, run: Run, conditions: Sequence[Scored], config: EvaluationConfig, seed: int) -> None:
    """Write the rows of an attacker on a set."""
    # longest first, so that the workers finish together
    lengths = [(one.gender != POOLED, -len(one.scores)) for one in conditions]
    order = sorted(range(len(conditions)), key=lengths.__getitem__)
    found = Work(run.jobs).map(
        partial(assess_condition, output=run.output, config=config, seed=seed),
        [conditions[row] for row in order],
        processes=True,
        description=f"{conditions[0].attacker} on {conditions[0].dataset}",
    )
    rows = dict(zip(order, found, strict=True))
    write_json(path, [rows[row].to_dict() for row in range(len(conditions))])


def compare_scenarios(rows: Sequence[Condition], output: Path, resampling: Resampling) -> list[Json]:
    """Return an `AttackerOrder`, for JSON, for each scenario with less knowledge, from the conditions of a list."""
    entries = []
    for other in ("lazy-informed", "ignorant"):
        sides = [[row for row in rows if row.scenario == name] for name in ("semi-informed", other)]
        if all(sides):
            semi, rival = (strongest([row for row in side if row.level != INVERTING] or side) for side in sides)
            rates = semi.eer.value, rival.eer.value
            gap = None
            if rates[0] > rates[1] and resampling.resamples:
                with suppress(DataError):  # fewer than two speakers
                    gap = reports.rate_difference((rival, output), (semi, output), resampling)
            entries.append(AttackerOrder(*semi.identity[:2], other, rates, gap).to_dict())
    return entries


def _minima(rows: Sequence[Condition], output: Path, resampling: Resampling) -> list[Json]:
    """Return the smallest equal error rates of each scenario and over anonymised ones, for each kind of attacker."""
    by = {f"{row.scenario} {row.attacker}": row for row in rows}
    groups: dict[str, list[str]] = {f"{OVER_SCENARIOS} {kind}": [] for kind in _KINDS}
    for name, row in by.items():
        for kind in ("minimum", row.level, *([] if row.content else ["without_content"])):
            groups.setdefault(f"{row.scenario} {kind}", []).append(name)
            groups[f"{OVER_SCENARIOS} {kind}"] += [name] if row.scenario != "original" else []
    found, note = {}, "no intervals were asked for"
    if resampling.resamples:
        try:
            samples = {name: samples_of(row, output) for name, row in by.items()}
            found = minima_over_attackers(samples, groups, resampling=resampling)
        except DataError as error:
            note = f"none: {error.text}"
    entries = []
    for scenario in dict.fromkeys([*(row.scenario for row in rows), OVER_SCENARIOS]):
        entry: Json = {"dataset": rows[0].dataset, "gender": rows[0].gender, "scenario": scenario}
        for kind in _KINDS:
            minimum = found.get(f"{scenario} {kind}")
            entry[kind] = minimum and {**minimum.to_dict(), "attacker": by[minimum.attacker].attacker}
        entries.append(entry if found else {**entry, "note": note})
    return entries


def _similarity(rows: Sequence[Condition], output: Path, resampling: Resampling) -> list[Json]:
    """Return the similarity of voices in each scenario with anonymised enrolment and trials."""
    by = {(row.scenario, row.attacker): row for row in rows if row.level != INVERTING}
    entries = []
    for scenario in _ANONYMISED:
        able = [row for row in by.values() if row.scenario == scenario]
        able = [row for row in able if {("original", row.attacker), ("ignorant", row.attacker)} <= by.keys()]
        if not able:
            continue
        best = min(able, key=lambda row: (row.eer.value, row.attacker))
        parts = {"oo": by["original", best.attacker], "oa": by["ignorant", best.attacker], "aa": best}
        key = read_key(output / parts["oo"].key)
        speakers = read_speakers(output / parts["oo"].segment_speakers)
        few = len({*key.model_ids[np.unique(key.models)].tolist(), *speakers.values()}) < _FEWEST
        calibration: Any = "pav" if few else "folds"
        matrices, notes = {}, []
        entry: Json = dict(zip(("dataset", "gender", "scenario", "attacker"), best.identity, strict=True))
        try:
            for name, row in parts.items():
                drawn = [read_scores(output / draw.scores) for draw in row.draws]
                matrices[name], found = matrix_of_voices(
                    drawn, key, calibration=calibration, seed=resampling.seed, segment_speakers=speakers
                )
                notes += [f"{name}: {note}" for note in found]
            compared = compare_voices(matrices, resampling=resampling, notes=tuple(notes))
        except DataError as error:
            entries.append(entry | {"notes": [f"not given: {error.text}"]})
            continue
        entry |= {"calibration": calibration, "calibration_is": CALIBRATIONS[calibration]}
        entries.append(entry | compared.to_dict())
    return entries
