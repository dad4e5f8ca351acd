"""What stands beside the numbers of single conditions: worst case and ranks, the interval of the minimum, similarity.

- Of each condition the strongest evidence in any trial, by four readings, and how often the owner is among the first r
  of the enrolled (CMC).
- Of each set, sex and scenario, and of each set and sex over scenarios, the interval of the smallest equal error rate
  over attackers, which knows that the smallest was chosen, and what a perfect anonymiser would show in its place; of
  all attackers, of each level of knowledge, and of those that do not read what is said.
- Of each set and sex how alike voices are before and after: similarity matrices, DeID and G_VD, by the strongest
  attacker that does not invert the anonymisation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_key, read_scores
from evaluation.linkage import Ranks, rank_evidence_of, rank_shares
from evaluation.metrics import Evidence, WorstCase, eer, worst_case
from evaluation.reports import INVERTING, LEVELS
from evaluation.trials import Key, Scores, read_speakers, split_scores
from evaluation.uncertainty import Resampling, minima_over_attackers, sample_from
from evaluation.utility import CALIBRATIONS, Voices, compare_voices, matrix_of_voices
from spkbase.errors import DataError
from spkbase.files import file_digest, to_json, write_json
from spkbase.runs import Run, Stage
from spkbase.work import ordered_map
from spkver.voiceprivacy.conditions import Condition, Scored
from spkver.voiceprivacy.numbers import rank_owners
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]

_METHOD = "worst case, CMC, minimum over attackers, similarity of voices; 3"
_MOST_REPLICATES = 500
_FEWEST = 5  # speakers, for a calibration that others teach
_OVER = "over scenarios"  # of anonymised speech, in the place of a scenario
_KINDS = ("minimum", *LEVELS, "without_content")
_ANONYMISED = ("lazy-informed", "semi-informed")


@dataclass(frozen=True)
class Task:
    """A part of the work: what is to be found, and of which scores."""

    kind: str
    scored: tuple[Scored, ...]


def declare_evidence(
    run: Run, conditions: Sequence[Condition], config: EvaluationConfig, *, suffix: str, seed: int
) -> Stage[Json]:
    """Declare what stands beside the numbers (``evidence<suffix>.json``); each part is kept as soon as it is done.

    Returns
    -------
    Stage of dict
        ``conditions`` (worst case and CMC), ``minima`` and ``similarity``, each a list with the place of each entry.
    """
    scored = [condition.scored for condition in conditions]
    tasks = list(_tasks(scored))

    def make(path: Path) -> None:
        find = partial(_done, output=run.output, config=config, seed=seed)
        found = ordered_map(find, tasks, jobs=run.jobs, description="evidence")
        parts: dict[str, list[Json]] = {"conditions": [], "minima": [], "similarity": []}
        for task, text in zip(tasks, found, strict=True):
            parts[task.kind] += json.loads(text)
        write_json(path, parts)

    lists = ((one.key, f"{one.lists}/utt2spk", f"{one.lists}/spk2gender") for one in scored)
    digests = {name: file_digest(run.path(name)) for name in dict.fromkeys(chain.from_iterable(lists))}
    return run.declare(
        "evidence",
        f"evidence{suffix}.json",
        make=make,
        read=_read,
        inputs=[scored, digests, config, seed, _METHOD],
        after=[stage for condition in conditions for stage in condition.stages],
        libraries=("numpy", "scipy"),
    )


def add_evidence(conditions: Sequence[Json], evidence: Json) -> list[Json]:
    """Return the entries of conditions with their worst case and CMC."""
    found = {_place(entry): entry for entry in evidence["conditions"]}
    return [
        {**condition, **{name: found.get(_place(condition), {}).get(name) for name in ("worst_case", "cmc")}}
        for condition in conditions
    ]


def add_minima(summary: Sequence[Json], evidence: Json) -> list[Json]:
    """Return the rows of the summary with the intervals of the minimum over all attackers and of parts of them."""
    found = {_place(entry)[:3]: entry for entry in evidence["minima"]}
    rows = []
    for row in summary:
        place = _place(row)[:3]
        entry = found.get(place, {})
        levels = {name: {**figure, "minimum": entry.get(name)} for name, figure in row["levels"].items()}
        row = {**row, "minimum": entry.get("minimum"), "levels": levels}
        if row["without_content"]:
            row["without_content"] = {**row["without_content"], "minimum": entry.get("without_content")}
        if row["scenario"] != "original":
            row["minimum_over_scenarios"] = found.get((*place[:2], _OVER), {}).get("minimum")
        rows.append(row)
    return rows


def _read(path: Path) -> Json:
    evidence: Json = json.loads(path.read_text(encoding="utf-8"))
    return evidence


def _place(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(name, "") for name in ("dataset", "gender", "scenario", "attacker"))


def _tasks(scored: Sequence[Scored]) -> Iterator[Task]:
    yield from (Task("conditions", (one,)) for one in scored)
    sexes: dict[tuple[str, str], list[Scored]] = {}
    for one in scored:
        sexes.setdefault((one.dataset, one.gender), []).append(one)
    yield from (Task("minima", tuple(part)) for part in sexes.values())
    yield from (Task("similarity", tuple(part)) for part in sexes.values())


def _done(task: Task, *, output: Path, config: EvaluationConfig, seed: int) -> str:
    """What was found for a task, in the form in which it is kept."""
    resampling = Resampling(min(config.replicates, _MOST_REPLICATES), seed, config.level)
    if task.kind == "conditions":
        return to_json([_of_condition(task.scored[0], output)])
    if task.kind == "minima":
        return to_json(_minima(task.scored, output, resampling))
    return to_json(_similarity(task.scored, output, resampling))


def _of_condition(scored: Scored, output: Path) -> Json:
    key, genders = read_key(output / scored.key), read_speakers(output / scored.lists / "spk2gender")
    tables, worst = [], []
    for path in scored.draws.values():
        scores = read_scores(output / path)
        ranks, why = rank_owners(scores, key, genders)
        by_ranks = Evidence(float("nan"), why.get("linkability", "not given"))
        if ranks is not None:
            by_ranks = rank_evidence_of(ranks)
            tables.append(ranks)
        worst.append(worst_case(*split_scores(scores, key), ranks=by_ranks))
    place = dict(zip(("dataset", "gender", "scenario", "attacker"), _place(vars(scored)), strict=True))
    return place | {"worst_case": worst_of(worst).to_dict(), "cmc": match_by_rank(tables) if tables else None}


def worst_of(draws: Sequence[WorstCase]) -> WorstCase:
    """Return the strongest evidence by each reading over draws; one that a draw does not give does not count."""

    def strongest(name: str) -> Evidence:
        found: list[Evidence] = [getattr(draw, name) for draw in draws]
        return max(found, key=lambda evidence: -np.inf if np.isnan(evidence.llr) else evidence.llr)

    return WorstCase(*(strongest(name) for name in ("pav", "gaussian", "student", "ranks")))


def match_by_rank(tables: Sequence[Ranks]) -> list[float]:
    """Return how often the owner is among the first r, r = 1, 2, ..., over tables of ranks, one of each draw.

    A gallery of N that has no rank r any more counts 1 there; women and men may be enrolled in galleries of two sizes.
    """
    largest = max(int(ranks.impostors.max()) + 1 for ranks in tables)
    total, count = np.zeros(largest), 0
    for ranks in tables:
        for size in np.unique(ranks.impostors).tolist():
            rows = ranks.impostors == size
            counts = ranks.beaters[rows], ranks.ties[rows], ranks.impostors[rows]
            shares = rank_shares(Ranks(ranks.speakers[rows], *counts, ranks.mated[rows]))
            total += rows.sum() * np.pad(np.cumsum(shares), (0, largest - len(shares)), constant_values=1.0)
            count += int(rows.sum())
    return np.minimum(total / count, 1.0).tolist()


def _minima(scored: Sequence[Scored], output: Path, resampling: Resampling) -> list[Json]:
    """The smallest equal error rate of each scenario and over anonymised ones, of all attackers and parts of them."""
    first, by = scored[0], {f"{one.scenario} {one.attacker}": one for one in scored}
    groups: dict[str, list[str]] = {f"{_OVER} {kind}": [] for kind in _KINDS}
    for name, one in by.items():
        for kind in ("minimum", one.level, *([] if one.content else ["without_content"])):
            groups.setdefault(f"{one.scenario} {kind}", []).append(name)
            groups[f"{_OVER} {kind}"] += [name] if one.scenario != "original" else []
    found, note = {}, "no intervals were asked for"
    if resampling.replicates:
        try:
            key, speakers = read_key(output / first.key), read_speakers(output / first.lists / "utt2spk")
            samples = {
                name: [
                    sample_from(scores, key, segment_speakers=speakers, ids_are_speakers=True)[0]
                    for scores in _draws(one, output)
                ]
                for name, one in by.items()
            }
            found = minima_over_attackers(samples, groups, resampling=resampling)
        except DataError as error:
            note = f"none: {error.text}"
    entries = []
    for scenario in dict.fromkeys([*(one.scenario for one in scored), _OVER]):
        entry: Json = {"dataset": first.dataset, "gender": first.gender, "scenario": scenario}
        for kind in _KINDS:
            minimum = found.get(f"{scenario} {kind}")
            entry[kind] = minimum and {**minimum.to_dict(), "attacker": by[minimum.attacker].attacker}
        entries.append(entry if found else {**entry, "note": note})
    return entries


def _similarity(scored: Sequence[Scored], output: Path, resampling: Resampling) -> list[Json]:
    """How alike voices are, for each scenario in which enrolment and trials are anonymised."""
    by = {(one.scenario, one.attacker): one for one in scored if one.level != INVERTING}
    entries = []
    for scenario in _ANONYMISED:
        names = [
            name for kind, name in by if kind == scenario and ("original", name) in by and ("ignorant", name) in by
        ]
        if not names:
            continue
        chosen = min(names, key=lambda name: (_rate(by[scenario, name], output), name))
        parts = {"oo": by["original", chosen], "oa": by["ignorant", chosen], "aa": by[scenario, chosen]}
        first = parts["oo"]
        entry: Json = {"dataset": first.dataset, "gender": first.gender, "scenario": scenario, "attacker": chosen}
        try:
            entries.append(entry | _voices(parts, output, resampling))
        except DataError as error:
            entries.append(entry | {"notes": [f"not given: {error.text}"]})
    return entries


def _voices(parts: Mapping[str, Scored], output: Path, resampling: Resampling) -> Json:
    first = parts["oo"]
    key, speakers = read_key(output / first.key), read_speakers(output / first.lists / "utt2spk")
    voices = Voices(seed=resampling.seed, segment_speakers=speakers)
    if len({*key.model_ids[np.unique(key.models)].tolist(), *speakers.values()}) < _FEWEST:
        voices = replace(voices, calibration="pav")
    matrices, notes = {}, []
    for name, scored in parts.items():
        matrices[name], found = matrix_of_voices(_draws(scored, output), key, voices)
        notes += [f"{name}: {note}" for note in found]
    compared = compare_voices(matrices, resampling=resampling, notes=tuple(notes))
    calibration = {"calibration": voices.calibration, "calibration_is": CALIBRATIONS[voices.calibration]}
    return calibration | compared.to_dict()


def _draws(scored: Scored, output: Path) -> list[Scores]:
    return [read_scores(output / path) for path in scored.draws.values()]


def _rate(scored: Scored, output: Path) -> float:
    key: Key = read_key(output / scored.key)
    return float(np.mean([eer(*split_scores(scores, key)) for scores in _draws(scored, output)]))
