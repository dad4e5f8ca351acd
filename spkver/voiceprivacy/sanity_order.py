"""Whether attackers who know more are stronger: semi-informed than lazy-informed ones, these than ignorant ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_key, read_scores
from evaluation.metrics import SortedScores, eer_of, method_of
from evaluation.reports import strongest
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Sample, bootstrap, interval_over_draws, sample_from
from spkbase.errors import DataError
from spkver.voiceprivacy.sanity_audio import Evaluated, Found
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number, places

Json = dict[str, Any]

_MOST_REPLICATES = 500


def attacker_order(given: Evaluated) -> Iterator[Found]:
    """Check that more knowledge makes no attacker weaker: where it does, the stronger one was trained badly."""
    for dataset, semi in _strongest(given.conditions, "semi-informed"):
        for other in ("lazy-informed", "ignorant"):
            rival = _rival(given.conditions, semi, other)
            if rival is None:
                continue
            rates = _rates(semi, rival)
            if semi["eer"]["rocch"] <= rival["eer"]["rocch"]:
                text = f"{dataset}: semi-informed is at least as strong as {other}, {rates}."
                yield Found("ok", "attacker order", text)
                continue
            sure = _difference(semi, rival, given.config, given.output) if other == "lazy-informed" else None
            text = f"{dataset}: the semi-informed attacker is weaker than the {other} one, {rates}"
            text += f" (difference {_points(sure)})" if sure is not None else ""
            if sure is not None and sure.low <= 0:
                text += ": that may be chance, and it gains nothing from what more it knows."
                yield Found("note", "attacker order", f"{text} The result is the least privacy over the scenarios.")
                continue
            text += ". It knows more, so its training failed; the result is the least privacy over the scenarios."
            yield Found("warning", "attacker order", text)


def lazy_order(given: Evaluated) -> Iterator[Found]:
    """Note where anonymised enrolment does not help an attacker that was trained on original speech: it need not."""
    for dataset, lazy in _strongest(given.conditions, "lazy-informed"):
        ignorant = _rival(given.conditions, lazy, "ignorant")
        if ignorant is not None and lazy["eer"]["rocch"] > ignorant["eer"]["rocch"]:
            text = f"{dataset}: the lazy-informed attacker is weaker than the ignorant one, {_rates(lazy, ignorant)}."
            text += " That may be: it was trained on original speech and enrols with other speech."
            yield Found("note", "attacker order", text)


def _strongest(conditions: Sequence[Json], scenario: str) -> Iterator[tuple[str, Json]]:
    for dataset, part in pooled(conditions, scenario):
        yield dataset, strongest(part)


def _rival(conditions: Sequence[Json], one: Json, scenario: str) -> Json | None:
    """The strongest attacker of another scenario on the same trials."""
    place = one["dataset"], one["gender"], scenario
    part = [other for other in conditions if (other["dataset"], other["gender"], other["scenario"]) == place]
    return strongest(part) if part else None


def _rates(first: Json, second: Json) -> str:
    return f"{percent(first['eer']['rocch'])} against {percent(second['eer']['rocch'])}"


def _difference(semi: Json, lazy: Json, config: Config, output: Path) -> Interval | None:
    """How much weaker one attacker is than the other, by paired resamples of all draws; None where they fail."""
    replicates = min(config.evaluation.replicates, _MOST_REPLICATES)
    if not replicates:
        return None
    try:
        samples = [_samples(condition, output) for condition in (semi, lazy)]
        n_draws = min(map(len, samples))
        pairs = [sample for side in samples for sample in side[:n_draws]]
        resampled = bootstrap(pairs, _rate, replicates=replicates, seed=config.seed)
    except DataError:
        return None
    rates = np.array([_rate(sample.runs())["eer"] for sample in pairs]).reshape(2, n_draws)
    resamples = np.array([found["eer"] for found in resampled]).reshape(2, n_draws, -1)
    return interval_over_draws(
        rates[0] - rates[1],
        resamples[0] - resamples[1],
        method=method_of("eer", difference=True),
        n_units=pairs[0].n_effective,
        level=config.evaluation.level,
    )


def _samples(condition: Json, output: Path) -> list[Sample]:
    """The trials of each draw of a condition."""
    key, speakers = (output / condition[name] for name in ("key", "segment_speakers"))
    files = [draw["scores"] for draw in condition.get("draws", ())] or [condition["scores"]]
    given = {"segment_speakers": read_speakers(speakers), "ids_are_speakers": True}
    return [sample_from(read_scores(output / file), read_key(key), **given)[0] for file in files]  # type: ignore[arg-type]


def _rate(scores: SortedScores) -> dict[str, float]:
    return {"eer": eer_of(scores)}


def _points(difference: Interval) -> str:
    return f"{100 * difference.value:.1f} points, interval {100 * difference.low:.1f} to {100 * difference.high:.1f}"


def pooled(conditions: Sequence[Json], scenario: str) -> Iterator[tuple[str, list[Json]]]:
    """Conditions of a scenario for each set, those of all speakers where they are pooled, else of each sex."""
    pooled = {condition["dataset"] for condition in conditions if condition["gender"] == "all"}
    for (dataset, gender, name), part in places(conditions):
        if name == scenario and (gender == "all" or dataset not in pooled):
            yield dataset if gender == "all" else f"{dataset} {gender}", part


def percent(share: float) -> str:
    return f"{100 * number(share):.1f} %"
