"""The table of results: a row for each set, sex, scenario and attacker, and figures that combine several rows.

    numbers/<set><suffix>/<attacker>.json    rows of an attacker on a set: a new attacker only adds its own file
    evidence<suffix>.json                    figures over several attackers

A row is an entry of ``conditions`` in ``results.json``, see `spkver.voiceprivacy.numbers.assess_condition`. Several
attackers are combined in three ways:

- The smallest equal error rate over attackers, with an interval that allows for the choice, and the rate that a perfect
  anonymiser would show in its place. It is given for each set, sex and scenario, and for each set and sex over
  scenarios; over all attackers, over each level of knowledge, and over attackers that do not use the words.
- The similarity of voices before and after anonymisation, for each set and sex: similarity matrices, DeID and G_VD, by
  the strongest attacker that does not invert the anonymisation.
- The summary: the strongest attacker of each set, sex and scenario, which leaves the least privacy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import reports
from evaluation.formats import read_key, read_scores
from evaluation.trials import INVERTING, LEVELS, SCENARIO_ORDER, read_speakers
from evaluation.uncertainty import Resampling, Sample, minima_over_attackers, sample_from
from evaluation.utility import CALIBRATIONS, compare_voices, matrix_of_voices
from spkbase.errors import DataError
from spkbase.files import file_digest, load_json, write_json
from spkbase.runs import Run, Stage
from spkbase.work import Work
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.numbers import assess_condition
from spkver.voiceprivacy.scores import Scored
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import EvaluationConfig

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_MOST_RESAMPLES = 500
_FEWEST = 5  # speakers that calibration on held-out speakers needs
_OVER = "over scenarios"  # stands for the scenarios with anonymised speech
_KINDS = ("minimum", *LEVELS, "without_content")
_ENDS = ("low", "high")
_DISCLOSED = ("population", "individual", "linkability_all")
_OF_SEX = {"f": " (women)", "m": " (men)"}
_ANONYMISED = ("lazy-informed", "semi-informed")


@dataclass(frozen=True)
class Table:
    """The table of results, and figures that combine several rows.

    Attributes
    ----------
    rows : list of dict
        Entries of ``conditions`` in ``results.json``.
    minima : list of dict
        The smallest equal error rates with their intervals, for each set, sex and scenario, and over scenarios.
    similarity : list of dict
        The similarity of voices, for each set and sex.
    """

    rows: list[Json] = field(default_factory=list)
    minima: list[Json] = field(default_factory=list)
    similarity: list[Json] = field(default_factory=list)


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
    stages: dict[tuple[str, str], Stage[list[Json]]] = {}
    for (dataset, attacker), group in groups.items():
        lists = sorted({f"{one.lists}/{name}" for one in group for name in ("trials", "utt2spk", "spk2gender")})
        stages[dataset, attacker] = replace(run, quiet=True).stage(
            f"numbers of {attacker} on {dataset}{suffix}",
            f"numbers/{dataset}{suffix}/{attacker}.json",
            make=partial(_assess_all, run=run, conditions=group, config=config, seed=seed),
            read=load_json,
            inputs=[group, {name: file_digest(run.path(name)) for name in lists}, config, seed],
            libraries=("numpy", "scipy"),
        )
    with run.timed("evaluation"):
        rows = {place(row): row for stage in stages.values() for row in stage.value}
    table = [rows[place(vars(condition))] for condition in scores]
    pairs = dict.fromkeys(place(row)[:2] for row in table)
    sides = [[row for row in table if place(row)[:2] == pair] for pair in pairs]

    def make(path: Path) -> None:
        resampling = Resampling(min(config.resamples, _MOST_RESAMPLES), seed, config.level)
        evidence = {}
        for name, of in (("minima", _minima), ("similarity", _similarity)):
            find = partial(of, output=run.output, resampling=resampling)
            found = Work(run.jobs).map(find, sides, processes=True, description=f"evidence: {name}")
            evidence[name] = [entry for entries in found for entry in entries]
        write_json(path, evidence)

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
    return Table(table, **evidence.value)


def place(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the set, sex, scenario and attacker of a row."""
    return row["dataset"], row["gender"], row["scenario"], row["attacker"]


def places(rows: Sequence[Json]) -> dict[tuple[str, str, str], list[Json]]:
    """Group rows by (set, sex, scenario), with one row for each attacker, in their order."""
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for row in rows:
        groups.setdefault(place(row)[:3], []).append(row)
    return groups


def main_places(rows: Sequence[Json]) -> dict[tuple[str, str, str], list[Json]]:
    """Return `places`, restricted to pooled speakers in each set that has pooled rows."""
    pooled = {row["dataset"] for row in rows if row["gender"] == POOLED}
    return {at: part for at, part in places(rows).items() if at[1] == POOLED or at[0] not in pooled}


def rate_of(row: Json) -> float:
    """Return the equal error rate of a row."""
    return reports.number(row["eer"]["rocch"])


def ends_of(row: Json) -> tuple[float, float]:
    """Return the ends of the interval of the equal error rate, NaN without an interval."""
    ends = row["intervals"].get("eer.rocch", {})
    return reports.number(ends.get("low")), reports.number(ends.get("high"))


def samples_of(row: Json, output: Path) -> list[Sample]:
    """Return the trials of each draw of a row, ready for resampling.

    Raises
    ------
    DataError
        If there are fewer than two speakers.
    """
    key = read_key(output / row["key"])
    speakers = read_speakers(output / row["segment_speakers"])
    files = [output / draw["scores"] for draw in row["draws"]]
    return [sample_from(read_scores(file), key, segment_speakers=speakers, bootstrap_by="id")[0] for file in files]


def summarise(rows: Sequence[Json], minima: Sequence[Json] = ()) -> list[Json]:
    """Return the strongest attacker of each set, sex and scenario: the result is the least privacy over attackers.

    Parameters
    ----------
    rows : sequence of dict
    minima : sequence of dict
        See `Table`.

    Returns
    -------
    list of dict
        The entry ``summary`` of ``results.json``.
    """
    intervals = {(entry["dataset"], entry["gender"], entry["scenario"]): entry for entry in minima}

    def disclosed(row: Json, name: str) -> Any:
        curve = row["linkability"]
        return row["zebra"][name] if name != "linkability_all" else curve["linkability"][-1] if curve else None

    def order(row: Json, name: str) -> float:
        found = reports.number(disclosed(row, name))
        return -math.inf if math.isnan(found) else found

    summary = []
    for (dataset, gender, scenario), part in places(rows).items():
        best, beside = reports.strongest(part), reports.secondary_results(part)
        rate, (low, high) = best["eer"]["rocch"], (best["intervals"].get("eer.rocch", {}).get(end) for end in _ENDS)
        least = intervals.get((dataset, gender, scenario), {})
        voices, named = beside.without_content.to_dict("eer"), beside.identification.to_dict("share")
        # the worst ZEBRA and linkability over attackers, and these attackers
        worst = {name: max(part, key=partial(order, name=name)) for name in _DISCLOSED}
        row = {
            "dataset": dataset,
            "gender": gender,
            "scenario": scenario,
            "strongest": best["attacker"],
            "eer": rate,
            "low": low,
            "high": high,
            **{name: disclosed(one, name) for name, one in worst.items()},
            "tag": worst["individual"]["zebra"]["tag"],
            "worst_by": {name: one["attacker"] for name, one in worst.items()},
            **{name: best[name] for name in ("n_enrolled", "n_target", "n_nontarget")},
            "attackers": {one["attacker"]: one["eer"]["rocch"] for one in part},
            "draws": list(beside.draws),
            "tested": list(beside.tested),
            "levels": {
                level: {**(figure.to_dict("eer") or {}), "minimum": least.get(level)}
                for level, figure in beside.levels.items()
            },
            "without_content": voices and {**voices, "minimum": least.get("without_content")},
            "closed_set": beside.closed_set.to_dict("eer"),
            "identification": named and {**named, "candidates": list(beside.candidates)},
            "minimum": least.get("minimum"),
        }
        if scenario != "original":
            row["minimum_over_scenarios"] = intervals.get((dataset, gender, _OVER), {}).get("minimum")
        text = f"{dataset}{_OF_SEX.get(gender, '')}, {scenario}: the strongest attacker ({best['attacker']}) has an"
        text += f" equal error rate of {percent(rate)}"
        if row["linkability_all"] is not None:
            by = row["worst_by"]["linkability_all"]
            text += f", and {'' if by == best['attacker'] else f'{by} '}finds the speaker of an utterance among all"
            text += f" enrolled ones in {100 * row['linkability_all']:.0f} % of the cases"
        summary.append({**row, "verdict": f"{text}."})
    return sorted(summary, key=lambda row: (row["dataset"], SCENARIO_ORDER.index(row["scenario"])))


def percent(share: Any) -> str:
    """Format a share in per cent."""
    return f"{100 * reports.number(share):.1f} %"


def _assess_all(path: Path, *, run: Run, conditions: Sequence[Scored], config: EvaluationConfig, seed: int) -> None:
    """Write the rows of an attacker on a set."""
    # longest first, so that the workers finish together
    lengths = [(one.gender != POOLED, -len(one.scores)) for one in conditions]
    order = sorted(range(len(conditions)), key=lengths.__getitem__)
    found = Work(run.jobs).map(
        partial(assess_condition, output=run.output, config=config, seed=seed),
        [conditions[row] for row in order],
        processes=True,
        description=f"conditions of {conditions[0].attacker} on {conditions[0].dataset}",
    )
    rows = dict(zip(order, found, strict=True))
    write_json(path, [rows[row] for row in range(len(conditions))])


def _minima(rows: Sequence[Json], output: Path, resampling: Resampling) -> list[Json]:
    """Return the smallest equal error rates of each scenario and over anonymised ones, for each kind of attacker."""
    by = {f"{row['scenario']} {row['attacker']}": row for row in rows}
    groups: dict[str, list[str]] = {f"{_OVER} {kind}": [] for kind in _KINDS}
    for name, row in by.items():
        for kind in ("minimum", row["level"], *([] if row["content"] else ["without_content"])):
            groups.setdefault(f"{row['scenario']} {kind}", []).append(name)
            groups[f"{_OVER} {kind}"] += [name] if row["scenario"] != "original" else []
    found, note = {}, "no intervals were asked for"
    if resampling.resamples:
        try:
            samples = {name: samples_of(row, output) for name, row in by.items()}
            found = minima_over_attackers(samples, groups, resampling=resampling)
        except DataError as error:
            note = f"none: {error.text}"
    entries = []
    for scenario in dict.fromkeys([*(row["scenario"] for row in rows), _OVER]):
        entry: Json = {"dataset": rows[0]["dataset"], "gender": rows[0]["gender"], "scenario": scenario}
        for kind in _KINDS:
            minimum = found.get(f"{scenario} {kind}")
            entry[kind] = minimum and {**minimum.to_dict(), "attacker": by[minimum.attacker]["attacker"]}
        entries.append(entry if found else {**entry, "note": note})
    return entries


def _similarity(rows: Sequence[Json], output: Path, resampling: Resampling) -> list[Json]:
    """Return the similarity of voices in each scenario with anonymised enrolment and trials."""
    by = {(row["scenario"], row["attacker"]): row for row in rows if row["level"] != INVERTING}
    entries = []
    for scenario in _ANONYMISED:
        able = [row for row in by.values() if row["scenario"] == scenario]
        able = [row for row in able if {("original", row["attacker"]), ("ignorant", row["attacker"])} <= by.keys()]
        if not able:
            continue
        best = min(able, key=lambda row: (rate_of(row), row["attacker"]))
        parts = {"oo": by["original", best["attacker"]], "oa": by["ignorant", best["attacker"]], "aa": best}
        key = read_key(output / parts["oo"]["key"])
        speakers = read_speakers(output / parts["oo"]["segment_speakers"])
        few = len({*key.model_ids[np.unique(key.models)].tolist(), *speakers.values()}) < _FEWEST
        calibration: Any = "pav" if few else "folds"
        matrices, notes = {}, []
        entry: Json = dict(zip(("dataset", "gender", "scenario", "attacker"), place(best), strict=True))
        try:
            for name, row in parts.items():
                drawn = [read_scores(output / draw["scores"]) for draw in row["draws"]]
                how: Json = {"calibration": calibration, "seed": resampling.seed, "segment_speakers": speakers}
                matrices[name], found = matrix_of_voices(drawn, key, **how)
                notes += [f"{name}: {note}" for note in found]
            compared = compare_voices(matrices, resampling=resampling, notes=tuple(notes))
        except DataError as error:
            entries.append(entry | {"notes": [f"not given: {error.text}"]})
            continue
        entry |= {"calibration": calibration, "calibration_is": CALIBRATIONS[calibration]}
        entries.append(entry | compared.to_dict())
    return entries
