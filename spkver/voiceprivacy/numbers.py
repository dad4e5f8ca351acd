"""The numbers of a condition: every metric with intervals, linkability, closed sets, and each speaker's own.

Where enrolment and trials are anonymised several times, a number is the mean over the draws, and its interval holds
speakers and draws (`evaluation.uncertainty.intervals`); what each draw gives stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_key, read_scores
from evaluation.linkage import (
    Ranks,
    all_draws,
    by_speaker,
    linkability_at_sizes,
    linkability_over_draws,
    linkability_over_sizes,
    log_spaced_sizes,
    ranks_from_scores,
)
from evaluation.metrics import Evaluation, Metrics, eer, evaluate, tag
from evaluation.trials import Key, Scores, align, read_speakers, split_scores
from evaluation.uncertainty import Resampling, confidence_over_draws, sample_from
from spkbase.errors import DataError
from spkver.voiceprivacy.closed_sets import closed_set_of
from spkver.voiceprivacy.layout import Scored
from spkver.voiceprivacy.means import mean_of, shared_notes
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]

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
            found = confidence_over_draws(
                samples, statistic, replicates=config.replicates, seed=seed, level=config.level, jobs=1
            )
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
