"""The numbers of a condition: every metric with intervals, linkability, and each speaker's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_key, read_scores
from evaluation.linkage import (
    Ranks,
    by_speaker,
    linkability_at_sizes,
    linkability_curve,
    linkability_over_sizes,
    log_spaced_sizes,
    ranks_from_scores,
)
from evaluation.metrics import Evaluation, Metrics, eer, evaluate
from evaluation.trials import Key, Scores, align, read_speakers, split_scores
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from
from spkbase.errors import DataError
from spkbase.files import file_digest, to_json, write_json
from spkbase.runs import Depends, Draft, Run, Stage, resumed_map
from spkver.voiceprivacy.conditions import Condition
from spkver.voiceprivacy.layout import Scored
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]

_METHOD = "intervals that hold where errors are few"  # numbers made before by another one are made again
_TOPS = (2, 5, 10)  # the owner among the first so many
_ALL_SIZES = 500  # of more enrolled speakers the curve has fewer points


def declare_assessment(
    run: Run, conditions: Sequence[Condition], config: EvaluationConfig, *, suffix: str, seed: int
) -> Stage[list[Json]]:
    """Declare the numbers of every condition (``conditions<suffix>.json``), the entries of ``results.json``.

    Conditions are shared out to the workers, and each is kept as soon as it is done.
    """
    scored = [condition.scored for condition in conditions]

    def make(draft: Draft) -> None:
        assessed = resumed_map(
            partial(_assessed, output=run.output, config=config, seed=seed),
            scored,
            journal=draft.folder / "conditions.journal",
            fingerprint=draft.fingerprint,
            jobs=run.jobs,
            description="conditions",
        )
        write_json(draft.path, [json.loads(text) for text in assessed])

    lists = dict.fromkeys(
        name
        for condition in scored
        for name in (condition.key, f"{condition.lists}/utt2spk", f"{condition.lists}/spk2gender")
    )
    digests = {name: file_digest(run.path(name)) for name in lists}
    return run.stage(
        "evaluation",
        f"conditions{suffix}.json",
        make=make,
        read=_read,
        depends=Depends(
            inputs=[scored, digests, config, seed, _METHOD],
            after=[condition.stage for condition in conditions],
            libraries=("numpy", "scipy"),
        ),
    )


def _read(path: Path) -> list[Json]:
    conditions: list[Json] = json.loads(path.read_text(encoding="utf-8"))
    return conditions


def _assessed(scored: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> str:
    """What was found of a condition, in the form in which it is kept."""
    return to_json(assess(scored, output=output, config=config, seed=seed))


def assess(scored: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> Json:
    """Assess one condition from its files."""
    scores, key = read_scores(output / scored.scores), read_key(output / scored.key)
    speakers = read_speakers(output / scored.lists / "utt2spk")
    genders = read_speakers(output / scored.lists / "spk2gender")
    result, intervals, drawn = _metrics(scores, key, speakers, config, seed)
    ranks, why = rank_owners(scores, key, genders)
    numbers = result.to_dict()
    numbers.pop("intervals")
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
        **numbers,
        "intervals": intervals,
        "notes": {**numbers["notes"], **drawn, **why},
        "linkability": None if ranks is None else link(ranks, config, seed),
        "speakers": _speakers(scores, key, genders, ranks),
    }


def _metrics(
    scores: Scores, key: Key, speakers: Mapping[str, str], config: EvaluationConfig, seed: int
) -> tuple[Evaluation, Json, dict[str, str]]:
    """Every metric as ``spkver-eval metrics`` has it, its intervals, and notes about these."""
    statistic = Metrics(config.priors)
    try:
        sample, _ = sample_from(scores, key, segment_speakers=speakers, ids_are_speakers=True)
    except DataError as error:  # fewer than two speakers: the numbers stand without intervals
        return evaluate(*split_scores(scores, key), priors=config.priors), {}, {"intervals": f"none: {error.text}"}
    result = statistic.evaluate(sample.runs())
    if not config.replicates:
        return result, {}, {}
    try:
        intervals = confidence_intervals(
            sample, statistic, replicates=config.replicates, seed=seed, level=config.level, jobs=1
        )
    except DataError as error:
        return result, {}, {"intervals": f"none: {error.text}"}
    share = f"{100 * config.level:g} % by {config.replicates} resamples of speakers"
    notes = {"intervals": f"{share} ({sample.n_effective} of the scarcer class), seed {seed}"}
    notes |= {f"intervals.{name}": interval.note for name, interval in intervals.items() if interval.note}
    return result, {name: {"low": interval.low, "high": interval.high} for name, interval in intervals.items()}, notes


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


def link(ranks: Ranks, config: EvaluationConfig, seed: int) -> Json:
    """Return the linkability of utterances against the number of enrolled speakers, with intervals by speakers."""
    largest = ranks.largest_size
    every = range(2, largest + 1) if largest <= _ALL_SIZES else log_spaced_sizes(largest)
    sizes = [size for size in config.sizes if size <= largest] or list(every)
    resampling = Resampling(config.replicates, seed, config.level)
    curve = linkability_curve(ranks, sizes, resampling=resampling)
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
