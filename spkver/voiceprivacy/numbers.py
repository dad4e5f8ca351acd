"""The numbers of a condition: every metric with intervals, linkability, closed sets, and each speaker's own.

Where enrolment and trials are anonymised several times, a number is the mean over the draws, and its interval holds
speakers and draws (`evaluation.uncertainty.intervals`); what each draw gives stands beside it.

**Means over draws of what stands in a report: numbers, groups of numbers, lists of them.**

**Closed sets: what an attacker gets who knows that the speaker is one of the enrolled.**

Two numbers: the equal error rate of scores that are centred over the enrolled
(`evaluation.calibration.closed_set_scores`), and how often the speaker of an utterance is first among all enrolled.
Both need a trial list that is a full cross.

**The stages that make the numbers: one for each attacker on each set, so that a new attacker adds its own alone.**

numbers/<set><suffix>/<attacker>.json    entries of its conditions
conditions<suffix>.json                  all of them, the entries of ``results.json``
evidence<suffix>.json                    what stands beside them

**Beside the numbers of single conditions: worst case and ranks, the interval of the minimum, similarity.**

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.calibration import closed_set_scores
from evaluation.formats import read_key, read_scores
from evaluation.linkage import (
    Ranks,
    all_draws,
    by_speaker,
    linkability_at_sizes,
    linkability_over_draws,
    linkability_over_sizes,
    log_spaced_sizes,
    rank_evidence_of,
    rank_shares,
    ranks_from_scores,
)
from evaluation.metrics import Evaluation, Evidence, Metrics, WorstCase, eer, evaluate, tag, worst_case
from evaluation.reports import INVERTING, LEVELS
from evaluation.trials import Key, Scores, align, find_rows, read_speakers, split_scores
from evaluation.uncertainty import (
    Resampling,
    confidence_intervals,
    minima_over_attackers,
    minimum_over_attackers,
    sample_from,
)
from evaluation.utility import CALIBRATIONS, Voices, compare_voices, matrix_of_voices
from spkbase.errors import DataError
from spkbase.files import file_digest, to_json, write_json
from spkbase.runs import Run, Stage
from spkbase.work import ordered_map
from spkver.voiceprivacy.scores import Condition, Scored
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]


@dataclass(frozen=True)
class Numbers:
    """The numbers of an evaluation.

    Attributes
    ----------
    conditions : list of dict
        Entries of ``results.json``, see `assess_conditions`.
    evidence : dict
        What stands beside them, see `find_evidence`.
    training_draws : list of dict
        See `measure_training_draws`.
    """

    conditions: list[Json] = field(default_factory=list)
    evidence: Json = field(default_factory=dict)
    training_draws: list[Json] = field(default_factory=list)


def mean_of(values: Sequence[Any]) -> Any:
    """Return the mean of values of one form, number by number.

    Parameters
    ----------
    values : sequence
        Numbers, or mappings and lists of them, one a draw; what is alike in all stays as it is.

    Returns
    -------
    object
        Of the same form. Where a value is missing in one draw it is missing; a truth holds where it holds in all; of
        texts that differ the first stands.

    Examples
    --------
    >>> mean_of([{"eer": 0.1, "tag": "A", "n": 3}, {"eer": 0.3, "tag": "B", "n": 3}])
    {'eer': 0.2, 'tag': 'A', 'n': 3}
    """
    first = values[0]
    if isinstance(first, Mapping):
        return {name: mean_of([value[name] for value in values]) for name in first}
    if isinstance(first, list):
        return [mean_of(list(items)) for items in zip(*values, strict=True)]
    if all(value == first for value in values[1:]):
        return first
    if any(value is None for value in values):
        return None
    if isinstance(first, bool):
        return all(values)
    return first if isinstance(first, str) else sum(values) / len(values)


def shared_notes(notes: Mapping[int, Mapping[str, str]]) -> dict[str, str]:
    """Return the notes of all draws, those of some draws alone with their numbers.

    Examples
    --------
    >>> shared_notes({1: {"d_sys": "few bins"}, 2: {"d_sys": "few bins", "cllr": "infinite"}})
    {'d_sys': 'few bins', 'cllr': 'in draw 2: infinite'}
    """
    found: dict[str, str] = {}
    for name in dict.fromkeys(name for of_draw in notes.values() for name in of_draw):
        texts: dict[str, list[int]] = {}
        for number, of_draw in notes.items():
            if name in of_draw:
                texts.setdefault(of_draw[name], []).append(number)
        parts = [
            text if len(numbers) == len(notes) else f"in draw {' and '.join(map(str, numbers))}: {text}"
            for text, numbers in texts.items()
        ]
        found[name] = "; ".join(parts)
    return found


MOST_REPLICATES = 300  # of the EER's interval, whose deviation they give within some 4 %


def closed_set_of(
    draws: Sequence[Scores],
    key: Key,
    speakers: Mapping[str, str],
    tables: Sequence[Ranks] | None,
    resampling: Resampling,
) -> tuple[Json | None, dict[str, str]]:
    """Return the numbers of a closed set, means over draws, and notes about them.

    Parameters
    ----------
    draws : sequence of Scores
        Of the same trials.
    key : Key
    speakers : mapping of str to str
        Of the segments.
    tables : sequence of Ranks, or None
        The rank of each owner in each draw, where the list allows it.
    resampling : Resampling

    Returns
    -------
    numbers : dict or None
        ``eer``, its upper end at a level that holds for the smallest of several attackers
        (`evaluation.uncertainty.confidence`), and ``identification``, each with value, low and high; ``candidates``, least
        and most; ``chance``; and
        both values of each draw. None where the list is no full cross.
    notes : dict of str to str
    """
    if tables is None:
        return None, {"closed_set": "not given: the trial list is not a full cross of models and segments"}
    try:
        centred = [closed_set_scores(_of_key(scores, key)) for scores in draws]
    except DataError as error:
        return None, {"closed_set": f"not given: {error.text}"}
    samples = [sample_from(scores, key, segment_speakers=speakers, by_trial=True)[0] for scores in centred]
    rates = [eer(sample.runs()) for sample in samples]
    ends: Json = {}
    if resampling.replicates:
        fewer = replace(resampling, replicates=min(resampling.replicates, MOST_REPLICATES))
        ends = _ends(centred, key, speakers, fewer)
    shares = [float(np.mean(first_among_all(ranks))) for ranks in tables]
    candidates = tables[0].impostors + 1
    found = {
        "eer": {"value": sum(rates) / len(rates), **ends},
        "identification": _identification(tables, resampling),
        "candidates": [int(candidates.min()), int(candidates.max())],
        "chance": float(np.mean(1 / candidates)),
        "draws": [{"eer": rate, "identification": share} for rate, share in zip(rates, shares, strict=True)],
    }
    return found, {}


def first_among_all(ranks: Ranks) -> np.ndarray:
    """Return the probability of each row that its owner is first among all it was scored against; ties are shared.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Examples
    --------
    >>> first_among_all(Ranks.of([0, 2, 0], [0, 0, 1], 9)).tolist()
    [1.0, 0.0, 0.5]
    """
    return np.where(ranks.beaters == 0, 1 / (1 + ranks.ties), 0.0)


def _identification(tables: Sequence[Ranks], resampling: Resampling) -> Json:
    """Share of utterances whose speaker is first among all enrolled, with its interval."""
    largest = int(all_draws(tables).impostors.max())
    # of its whole gallery a row needs to know whether it is beaten: all may have one size then
    whole = [replace(ranks, impostors=np.full(len(ranks), largest)) for ranks in tables]
    curve = linkability_over_draws(whole, np.array([largest + 1]), resampling=resampling)
    return {"value": float(curve.values[0]), "low": float(curve.low[0]), "high": float(curve.high[0])}


def _ends(centred: Sequence[Scores], key: Key, speakers: Mapping[str, str], resampling: Resampling) -> Json:
    try:
        samples = [sample_from(scores, key, segment_speakers=speakers, ids_are_speakers=True)[0] for scores in centred]
        found = minimum_over_attackers({"": samples}, resampling=resampling, permutations=0).interval
    except DataError:  # fewer than two speakers
        return {}
    return {"low": found.low, "high": found.high}


def _of_key(scores: Scores, key: Key) -> Scores:
    """The scores of the trials of a key alone."""
    return scores.subset(find_rows(key, scores))


_TOPS = (2, 5, 10)  # the owner among the first so many
_ALL_SIZES = 500  # of more enrolled speakers the curve has fewer points
_OF_A_DRAW = ("eer", "cllr", "min_cllr", "zebra")  # what stands of each draw by itself


def assess(scored: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> Json:
    """Assess one condition from its files.

    Parameters
    ----------
    scored : Scored
        Which one.
    output : Path
        Where the paths start.
    config : EvaluationConfig
    seed : int
        Of the resamples.

    Returns
    -------
    dict
        The entry of ``results.json``.
    """
    key = read_key(output / scored.key)
    speakers = read_speakers(output / scored.lists / "utt2spk")
    genders = read_speakers(output / scored.lists / "spk2gender")
    draws = [read_scores(output / path) for path in scored.draws.values()]
    tables, why = _rank_draws(draws, key, genders)
    of_draws, numbers = _metrics(scored, draws, key, speakers, config, seed)
    entry = {**_place(scored, key, speakers), **numbers}
    entry["notes"] |= why
    entry["linkability"] = None if tables is None else link(tables, config, seed)
    of_speakers = [
        _speakers(scores, key, genders, None if tables is None else tables[place]) for place, scores in enumerate(draws)
    ]
    entry["speakers"] = mean_of(of_speakers)
    resampling = Resampling(config.replicates, seed, config.level)
    closed, told = closed_set_of(draws, key, speakers, tables, resampling)
    if scored.lacking:
        missing = " and ".join(map(str, scored.lacking))
        told["draws"] = f"no scores of draw {missing}: means over the other {len(draws)}"
    entry["notes"] |= told
    closed_of_draws = [None] * len(draws) if closed is None else closed.pop("draws")
    return entry | {
        "level": scored.level,
        "content": scored.content,
        "tested": list(scored.tested),
        "closed_set": closed,
        "draws": [
            {"draw": number, "scores": path, **{name: found[name] for name in _OF_A_DRAW}, "closed_set": rates}
            for (number, path), found, rates in zip(scored.draws.items(), of_draws, closed_of_draws, strict=True)
        ],
    }


def _place(scored: Scored, key: Key, speakers: Mapping[str, str]) -> Json:
    spoken = {speakers[segment] for segment in key.segment_ids[np.unique(key.segments)]}
    return {
        "dataset": scored.dataset,
        "gender": scored.gender,
        "scenario": scored.scenario,
        "attacker": scored.attacker,
        "n_enrolled": len(np.unique(key.models)),
        "n_trial_speakers": len(spoken),
        "scores": scored.scores,
        "key": scored.key,
        "segment_speakers": f"{scored.lists}/utt2spk",
    }


def _metrics(
    scored: Scored,
    draws: Sequence[Scores],
    key: Key,
    speakers: Mapping[str, str],
    config: EvaluationConfig,
    seed: int,
) -> tuple[list[Json], Json]:
    """Every metric as ``spkver-eval metrics`` has it, of each draw and the means; with intervals and notes."""
    statistic, numbered = Metrics(config.priors), list(scored.draws)
    intervals: Json = {}
    about: dict[str, str] = {}
    try:
        samples = [sample_from(scores, key, segment_speakers=speakers, ids_are_speakers=True)[0] for scores in draws]
        results = [statistic.evaluate(sample.runs()) for sample in samples]
    except DataError as error:  # fewer than two speakers: the numbers stand without intervals
        samples, about = [], {"intervals": f"none: {error.text}"}
        results = [evaluate(*split_scores(scores, key), priors=config.priors) for scores in draws]
    if samples and config.replicates:
        try:
            found = confidence_intervals(samples, statistic, Resampling(config.replicates, seed, config.level))
        except DataError as error:
            about = {"intervals": f"none: {error.text}"}
        else:
            share = f"{100 * config.level:g} % by {config.replicates} resamples of speakers"
            over = f" and {len(draws)} draws" if len(draws) > 1 else ""
            about = {"intervals": f"{share}{over} ({samples[0].n_effective} of the scarcer class), seed {seed}"}
            about |= {f"intervals.{name}": interval.note for name, interval in found.items() if interval.note}
            intervals = {name: {"low": interval.low, "high": interval.high} for name, interval in found.items()}
    of_draws = [_plain(result) for result in results]
    numbers = _mean(of_draws)
    notes = shared_notes({number: of_draw["notes"] for number, of_draw in zip(numbered, of_draws, strict=True)})
    return of_draws, {**numbers, "notes": {**notes, **about}, "intervals": intervals}


def _plain(result: Evaluation) -> Json:
    numbers = result.to_dict()
    numbers.pop("intervals")
    return numbers


def _mean(of_draws: Sequence[Json]) -> Json:
    """The means over draws; the category is that of the mean."""
    numbers = mean_of([{name: value for name, value in of_draw.items() if name != "notes"} for of_draw in of_draws])
    if len(of_draws) > 1:
        numbers["zebra"]["tag"] = tag(numbers["zebra"]["individual"])
    return dict(numbers)


def _rank_draws(
    draws: Sequence[Scores], key: Key, genders: Mapping[str, str]
) -> tuple[list[Ranks] | None, dict[str, str]]:
    tables: list[Ranks] = []
    notes: dict[str, str] = {}
    for scores in draws:
        ranks, told = rank_owners(scores, key, genders)
        notes |= told
        if ranks is None:
            return None, told
        tables.append(ranks)
    return tables, notes


def rank_owners(scores: Scores, key: Key, genders: Mapping[str, str]) -> tuple[Ranks | None, dict[str, str]]:
    """Rank the true speaker of each trial utterance among the enrolled, where the trial list allows it.

    The list must be a full cross of models and segments, or of those of each sex: then every utterance meets all who
    are enrolled (of its sex).
    """
    models, segments = np.unique(key.models), np.unique(key.segments)
    notes = {}
    if len(key) < len(models) * len(segments):
        blocks: dict[str, list[int]] = {}
        for row, model in enumerate(key.models.tolist()):
            blocks.setdefault(genders.get(key.model_ids[model], "?"), []).append(row)
        for rows in blocks.values():
            part = key.subset(np.array(rows))
            if len(part) < len(np.unique(part.models)) * len(np.unique(part.segments)):
                return None, {"linkability": "not given: the trial list is not a full cross of models and segments"}
        notes["linkability"] = "among the enrolled of the speaker's own sex: there are no trials across the sexes"
    try:
        ranks = ranks_from_scores(scores, key)
    except DataError as error:
        return None, {"linkability": f"not given: {error.text}"}
    return ranks, notes | {f"linkability.{number}": note for number, note in enumerate(ranks.notes, 1)}


def link(tables: Sequence[Ranks], config: EvaluationConfig, seed: int) -> Json:
    """Return the linkability of utterances against the number of enrolled speakers, with intervals by speakers."""
    ranks = all_draws(tables)
    largest = ranks.largest_size
    every = range(2, largest + 1) if largest <= _ALL_SIZES else log_spaced_sizes(largest)
    sizes = [size for size in config.sizes if size <= largest] or list(every)
    curve = linkability_over_draws(tables, sizes, resampling=Resampling(config.replicates, seed, config.level))
    tops = {str(top): linkability_at_sizes(ranks, sizes, top=top) for top in _TOPS if top < largest}
    return {
        "sizes": curve.sizes.tolist(),
        "linkability": curve.values.tolist(),
        "low": curve.low.tolist(),
        "high": curve.high.tolist(),
        "chance": curve.chance.tolist(),
        "top": {top: values.tolist() for top, values in tops.items()},
    }


def per_speaker(ranks: Ranks) -> dict[str, tuple[float, float]]:
    """Return each speaker's linkability, mean over sizes alike on a log scale, and mean place among all enrolled."""
    means = by_speaker(ranks.speakers, linkability_over_sizes(ranks))
    ranked = by_speaker(ranks.speakers, ranks.places())
    return {name: (means[name], ranked[name]) for name in means}


def _speakers(scores: Scores, key: Key, genders: Mapping[str, str], ranks: Ranks | None) -> list[Json]:
    """The enrolled speakers: how well each is found, and the error rate of the trials against each."""
    values = align(scores, key)
    linked = {} if ranks is None else per_speaker(ranks)
    entries = []
    for code in np.unique(key.models).tolist():
        rows, name = key.models == code, key.model_ids[code]
        target, nontarget = values[rows & key.is_target], values[rows & ~key.is_target]
        linkability, rank = linked.get(name, (None, None))
        entries.append(
            {
                "speaker": name,
                "gender": genders.get(name, ""),
                "linkability_mean": linkability,
                "rank": rank,
                "n_target": len(target),
                "eer": eer(target, nontarget) if len(target) and len(nontarget) else None,
            }
        )
    return sorted(entries, key=lambda entry: entry["speaker"])


FOLDER = "numbers"
_METHOD = "intervals that hold where errors are few"  # numbers made before by another one are made again
_FORM = "means over draws, closed sets; 2"
_LIBRARIES = ("numpy", "scipy")


def assess_conditions(
    run: Run, conditions: Sequence[Condition], config: EvaluationConfig, *, suffix: str, seed: int
) -> list[Json]:
    """Return the numbers of every condition (``conditions<suffix>.json``), the entries of ``results.json``.

    Conditions of an attacker on a set are a stage of their own, and are shared out to the workers.
    """
    groups: dict[tuple[str, str], list[Condition]] = {}
    for condition in conditions:
        groups.setdefault((condition.scored.dataset, condition.scored.attacker), []).append(condition)
    parts: dict[tuple[str, str], Stage[list[Json]]] = {}
    for (dataset, attacker), group in groups.items():
        scored = [condition.scored for condition in group]
        parts[dataset, attacker] = replace(run, quiet=True).declare(
            f"numbers of {attacker} on {dataset}{suffix}",
            f"{FOLDER}/{dataset}{suffix}/{attacker}.json",
            read=_read_json,
            inputs=[scored, _digests(run, scored), config, seed, _METHOD, _FORM],
            after=[stage for condition in group for stage in condition.stages],
            libraries=_LIBRARIES,
        )
    whole: Stage[list[Json]] = run.declare(
        "evaluation",
        f"conditions{suffix}.json",
        read=_read_json,
        inputs=[condition.scored for condition in conditions],
        after=list(parts.values()),
        libraries=(),
    )
    if whole.is_due:
        with run.timed(whole.name):
            for (dataset, attacker), part in parts.items():
                scored = [condition.scored for condition in groups[dataset, attacker]]
                part.bring_up_to_date(partial(_assess_some, run=run, scored=scored, config=config, seed=seed))
        made = {_place_in(entry): entry for part in parts.values() for entry in part.value}
        entries = [made[_place_in(vars(condition.scored))] for condition in conditions]
        whole.bring_up_to_date(lambda path: write_json(path, entries))
    return whole.value


def _assess_some(path: Path, *, run: Run, scored: Sequence[Scored], config: EvaluationConfig, seed: int) -> None:
    """Write the numbers of the conditions of an attacker on a set."""
    # the longest first, so that no worker waits for the other in the end
    order = sorted(range(len(scored)), key=lambda row: (scored[row].gender != POOLED, -len(scored[row].further)))
    assessed = ordered_map(
        partial(_assessed, output=run.output, config=config, seed=seed),
        [scored[row] for row in order],
        jobs=run.jobs,
        description=f"conditions of {scored[0].attacker} on {scored[0].dataset}",
    )
    found = dict(zip(order, assessed, strict=True))
    write_json(path, [json.loads(found[row]) for row in range(len(scored))])


def _digests(run: Run, scored: Sequence[Scored]) -> dict[str, str | None]:
    names = ((one.key, f"{one.lists}/utt2spk", f"{one.lists}/spk2gender") for one in scored)
    return {name: file_digest(run.path(name)) for name in dict.fromkeys(chain.from_iterable(names))}


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _assessed(scored: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> str:
    """What was found of a condition, in the form in which it is kept."""
    return to_json(assess(scored, output=output, config=config, seed=seed))


_EVIDENCE = "worst case, CMC, minimum over attackers, similarity of voices; 3"
_MOST_REPLICATES = 500
_FEWEST = 5  # speakers, for a calibration that others teach
_OVER = "over scenarios"  # of anonymised speech, in the place of a scenario
_KINDS = ("minimum", *LEVELS, "without_content")
_ANONYMISED = ("lazy-informed", "semi-informed")


def find_evidence(
    run: Run, conditions: Sequence[Condition], config: EvaluationConfig, *, suffix: str, seed: int
) -> Json:
    """Return what stands beside the numbers (``evidence<suffix>.json``).

    Returns
    -------
    dict
        ``conditions`` (worst case and CMC), ``minima`` and ``similarity``, each a list with the place of each entry.
    """
    scored = [condition.scored for condition in conditions]
    sexes: dict[tuple[str, str], list[Scored]] = {}
    for one in scored:
        sexes.setdefault((one.dataset, one.gender), []).append(one)
    tasks = [("conditions", [one]) for one in scored]
    tasks += [(kind, part) for kind in ("minima", "similarity") for part in sexes.values()]

    def make(path: Path) -> None:
        find = partial(_find, output=run.output, config=config, seed=seed)
        found = ordered_map(find, tasks, jobs=run.jobs, description="evidence")
        parts: dict[str, list[Json]] = {"conditions": [], "minima": [], "similarity": []}
        for (kind, _), text in zip(tasks, found, strict=True):
            parts[kind] += json.loads(text)
        write_json(path, parts)

    stage: Stage[Json] = run.stage(
        "evidence",
        f"evidence{suffix}.json",
        make=make,
        read=_read_json,
        inputs=[scored, _digests(run, scored), config, seed, _EVIDENCE],
        after=[stage for condition in conditions for stage in condition.stages],
        libraries=("numpy", "scipy"),
    )
    return stage.value


def add_evidence(conditions: Sequence[Json], evidence: Json) -> list[Json]:
    """Return the entries of conditions with their worst case and CMC."""
    found = {_place_in(entry): entry for entry in evidence["conditions"]}
    return [
        {**condition, **{name: found.get(_place_in(condition), {}).get(name) for name in ("worst_case", "cmc")}}
        for condition in conditions
    ]


def add_minima(summary: Sequence[Json], evidence: Json) -> list[Json]:
    """Return the rows of the summary with the intervals of the minimum over all attackers and of parts of them."""
    found = {_place_in(entry)[:3]: entry for entry in evidence["minima"]}
    rows = []
    for row in summary:
        place = _place_in(row)[:3]
        entry = found.get(place, {})
        levels = {name: {**figure, "minimum": entry.get(name)} for name, figure in row["levels"].items()}
        row = {**row, "minimum": entry.get("minimum"), "levels": levels}
        if row["without_content"]:
            row["without_content"] = {**row["without_content"], "minimum": entry.get("without_content")}
        if row["scenario"] != "original":
            row["minimum_over_scenarios"] = found.get((*place[:2], _OVER), {}).get("minimum")
        rows.append(row)
    return rows


def _place_in(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(name, "") for name in ("dataset", "gender", "scenario", "attacker"))


def _find(task: tuple[str, Sequence[Scored]], *, output: Path, config: EvaluationConfig, seed: int) -> str:
    """What was found for a task, in the form in which it is kept."""
    kind, scored = task
    resampling = Resampling(min(config.replicates, _MOST_REPLICATES), seed, config.level)
    if kind == "conditions":
        return to_json([_of_condition(scored[0], output)])
    return to_json((_minima if kind == "minima" else _similarity)(scored, output, resampling))


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
    place = dict(zip(("dataset", "gender", "scenario", "attacker"), _place_in(vars(scored)), strict=True))
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
