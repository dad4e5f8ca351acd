"""An alarm where privacy is probably overestimated: what in a run speaks for a stronger attacker than those it had.

The privacy that a run reports is what its attackers left. Published evaluations overestimated it by up to 74 %, for
reasons that a run can see of itself: see `reasons`. None of them proves anything, and that there is none proves no
privacy either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.reports import INVERTING, strongest
from spkver.voiceprivacy.choosing import attacker_name, attacker_specs
from spkver.voiceprivacy.sanity_audio import Evaluated, Found
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number, places
from spkver.voiceprivacy.who_attacked import adapts, is_network

Json = Mapping[str, Any]

FEW_TRAINING_SPEAKERS = 100
"""Fewer teach an attacker little of how voices differ; the attackers of the challenges learn from 921."""

OVERESTIMATED = "overestimated privacy"
"""Name of the check whose text the alarm is."""

_NO_VOICE_PRINT = ("fusion", "prosody", "session", "content")  # who is ahead of these, or behind, tells nothing


def overestimation(conditions: Sequence[Json], sets: Sets, config: Config, *, failed: Sequence[str] = ()) -> str:
    """Return why privacy is probably overestimated, in a sentence for the verdict; nothing where nothing is amiss.

    Parameters
    ----------
    conditions : sequence of mapping
        Entries of ``results.json``.
    sets : Sets
    config : Config
    failed : sequence of str
        Attackers that failed.
    """
    found = list(dict.fromkeys(reasons(conditions, sets, config, failed=failed)))
    if not found or all(condition["scenario"] == "original" for condition in conditions):
        return ""
    listed = found[0] if len(found) == 1 else f"{'; '.join(found[:-1])}; and {found[-1]}"
    return f"This privacy is probably overestimated, because {listed}."


def overestimated(given: Evaluated) -> Iterator[Found]:
    """Warn where privacy is probably overestimated; see `overestimation`."""
    failed = [failure.attacker for failure in given.outcome.failures]
    if text := overestimation(given.conditions, given.sets, given.config, failed=failed):
        yield Found("warning", OVERESTIMATED, text)


def reasons(conditions: Sequence[Json], sets: Sets, config: Config, *, failed: Sequence[str] = ()) -> Iterator[str]:
    """Yield what speaks for a stronger attacker than those there were.

    - Attackers disagree: one that recognises voices is ahead of all others by more than the intervals of both.
    - On original speech no attacker has an EER of ``weak_attacker_eer`` or below.
    - Those who know more (semi-informed) are weaker than those who know less (lazy-informed).
    - There are few speakers to learn from, or one draw of the anonymised ones.
    - No attacker rests on a neural network, none adapts to the trials, or one failed.
    """
    by = dict(places([dict(condition) for condition in conditions]))
    pooled = {dataset for dataset, gender, _ in by if gender == "all"}
    main = {place: part for place, part in by.items() if place[1] == "all" or place[0] not in pooled}
    yield from _weak(main, config)
    yield from _disagreement(main)
    yield from _order(main)
    yield from _training(sets, config, informed=any(place[2] == "semi-informed" for place in main))
    specs = attacker_specs(config)
    served = {condition["attacker"] for condition in conditions}
    run = {entry: spec for entry, spec in specs.items() if attacker_name(entry) in served}
    if not any(map(is_network, run.values())):
        yield "no attacker rests on a neural network"
    if not any(adapts(spec) or config.attacker_settings.get(entry, {}).get("adapted") for entry, spec in run.items()):
        yield "no attacker adapts to the trials"
    if failed:
        yield f"attackers failed ({', '.join(dict.fromkeys(failed))})"


def _weak(main: Mapping[tuple[str, str, str], Sequence[Json]], config: Config) -> Iterator[str]:
    for place, part in main.items():
        if place[2] == "original":
            rate = number(strongest(part)["eer"]["rocch"])
            if rate > config.weak_attacker_eer:
                yield f"attackers are weak on original speech ({_where(place)}: {100 * rate:.1f} %)"


def _disagreement(main: Mapping[tuple[str, str, str], Sequence[Json]]) -> Iterator[str]:
    """Where the strongest voice print is ahead of the next by more than both intervals, the others miss something."""
    for place, part in main.items():
        if place[2] == "original":
            continue
        rows = []
        for condition in part:
            ends = condition["intervals"].get("eer.rocch", {})
            low, high = number(ends.get("low")), number(ends.get("high"))
            hears = condition["level"] != INVERTING and not condition["attacker"].startswith(_NO_VOICE_PRINT)
            if hears and low == low and high == high:
                rows.append((number(condition["eer"]["rocch"]), low, high, condition["attacker"]))
        rows.sort()
        if len(rows) > 1 and rows[0][2] < rows[1][1]:
            name = rows[0][3]
            yield f"attackers disagree ({_where(place)} {place[2]}: {name} alone is ahead, beyond both intervals)"


def _order(main: Mapping[tuple[str, str, str], Sequence[Json]]) -> Iterator[str]:
    for place, part in main.items():
        lazy = main.get((*place[:2], "lazy-informed"))
        if place[2] != "semi-informed" or lazy is None:
            continue
        rates = [_least_without_inverting(rows) for rows in (part, lazy)]
        if rates[0] > rates[1]:
            values = " against ".join(f"{100 * rate:.1f} %" for rate in rates)
            yield f"semi-informed attackers are weaker than lazy-informed ones ({_where(place)}: {values})"


def _least_without_inverting(part: Sequence[Json]) -> float:
    others = [condition for condition in part if condition["level"] != INVERTING] or list(part)
    return number(strongest(others)["eer"]["rocch"])


def _training(sets: Sets, config: Config, *, informed: bool) -> Iterator[str]:
    for name in dict.fromkeys(dataset.training for dataset in sets.datasets):
        count = len(set(sets.original[name].speakers.values()))
        if count < FEW_TRAINING_SPEAKERS:
            yield f"attackers learn from few speakers ({name}: {count})"
        if informed and config.anonymizer.name != "none" and not (sets.draws.get(name) or sets.draws_nothing(name)):
            yield f"semi-informed attackers learn from one draw of the anonymised speech alone ({name})"


def _where(place: tuple[str, str, str]) -> str:
    return place[0] if place[1] == "all" else f"{place[0]} {place[1]}"
