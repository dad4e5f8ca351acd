"""Checks of a run: what could make its numbers mean less than they seem to. They stand in every report.

**An alarm where privacy is probably overestimated: what in a run speaks for a stronger attacker than those it had.**

The privacy that a run reports is what its attackers left. Published evaluations overestimated it by up to 74 %, for
reasons that a run can see of itself: see `reasons`. None of them proves anything, and that there is none proves no
privacy either.

**Whether attackers who know more are stronger: semi-informed than lazy-informed ones, these than ignorant ones.**

**Checks of draws: over how many the results are means, and whether enrolment and trials share some.**

**Whether recordings are what their names say, no second names, no originals; what they give away.**
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from evaluation.formats import read_key, read_scores
from evaluation.metrics import Reversal, SortedScores, eer, method_of, reversal_at
from evaluation.reports import INVERTING, SCENARIOS, strongest
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Resampling, Sample, bootstrap, interval_over_draws, sample_from
from spkbase.errors import DataError, few
from spkver.anonymization import RECORD
from spkver.attackers import catalogue_name, find_row, is_outside
from spkver.datadir import SEXES_POOLED, DataDir, enrolment
from spkver.voiceprivacy.choosing import adapts, attacker_name, attacker_specs, is_network
from spkver.voiceprivacy.scores import Failure, count_lists, failures_by_attacker
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number, places
from spkver.voiceprivacy.twins import described, spaced, standardised

Json = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """Outcome of a check: its level is ok, note, warning, or error, which forbids a verdict."""

    level: str
    check: str
    text: str


@dataclass(frozen=True)
class Evaluated:
    """What a check may look at.

    Attributes
    ----------
    conditions : sequence of dict
        Entries of ``results.json``.
    sets : Sets
    config : Config
    output : Path
        Where the scores are.
    utility : dict
        What `measure_utility` found.
    earlier : mapping
        Results of other anonymisers in the same folder, by file name.
    simulated : bool
        Whether the speech is SIMULATED.
    jobs : int, optional
        Work.
    failures : sequence of Failure
        What single attackers failed at.
    fusions : sequence of dict
        Weights of fusions, as in their files.
    training_draws : sequence of dict
        Equal error rates by the number of versions of the training set, see `measure_training_draws`.
    """

    conditions: Sequence[Json]
    sets: Sets
    config: Config
    output: Path
    utility: Json
    earlier: Mapping[str, Json]
    simulated: bool = False
    jobs: int | None = None
    failures: Sequence[Failure] = ()
    fusions: Sequence[Json] = ()
    training_draws: Sequence[Json] = ()


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
    failed = [failure.attacker for failure in given.failures]
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
        resampled = bootstrap(pairs, _rate, Resampling(replicates, config.seed))
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
    return {"eer": eer(scores)}


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


_SHARED = (
    "have the same draw of the anonymiser in enrolment and trials, by which they are recognised: EERs are far too low"
    " for an anonymiser that draws for each side. To have that, leave anonymizer.shared_draws and"
    " anonymizer.seeding=vpc2024 out; of twins of your own, make one side again by spkver anonymize with --side or"
    " another --seed."
)


def trial_draws(given: Evaluated) -> Iterator[Found]:
    """Tell over how many draws of trials results are means: those of one hide a spread."""
    if given.config.anonymizer.name == "none" or not any(
        condition["scenario"] != "original" for condition in given.conditions
    ):
        return
    for dataset in given.sets.datasets:
        count = given.sets.tested_draws(dataset)
        if count > 1:
            text = f"{dataset.name}: results are means over {count} anonymised versions of the trials."
            yield Found("ok", "trial draws", text)
            continue
        reasons = dict.fromkeys(given.sets.undrawn[name] for name in dataset.tested if name in given.sets.undrawn)
        why = f", {few(list(reasons))}" if reasons else ""
        text = f"{dataset.name}: results are of one anonymised version of the trials{why}: another one may"
        remedy = "Give the anonymiser (anonymizer.name) to have anonymizer.trial_draws of them."
        if any(map(given.sets.draws_nothing, dataset.tested)):
            text = f"{dataset.name}: there is one anonymised version of enrolment and trials{why}."
            yield Found("note", "trial draws", text)
        else:
            yield Found("note", "trial draws", f"{text} give points more or less. {remedy}")
    partial = [condition for condition in given.conditions if "draws" in condition["notes"]]
    if partial:
        first = partial[0]
        text = f"{len(partial)} given.conditions lack draws, such as {first['dataset']} {first['scenario']}"
        yield Found("note", "trial draws", f"{text} {first['attacker']}: {first['notes']['draws']}.")


def shared_draws(given: Evaluated) -> Iterator[Found]:
    """Warn where a speaker has the same draw in enrolment and trials, by the records of the anonymised directories."""
    for dataset in given.sets.datasets:
        enrolled = _speaker_draws(given.sets, dataset.enrolls)
        shared = {draw for name in dataset.trials.values() for draw in enrolled & _speaker_draws(given.sets, name)}
        if shared:
            speakers = {stream.split()[-1] for _, stream, _ in shared}
            yield Found("warning", "shared draws", f"{dataset.name}: {len(speakers)} speakers {_SHARED}")


def _speaker_draws(sets: Sets, name: str) -> set[tuple[str, str, Any]]:
    """Anonymiser, stream of random numbers and seed of the speakers of a data directory, in all of its versions."""
    found: set[tuple[str, str, Any]] = set()
    for twin in (sets.twins[name], *sets.draws.get(name, ())):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # no record, or none of ours
            record = json.loads((twin.path / RECORD).read_text(encoding="utf-8"))
            made, seed = record["anonymizer"], record["seed"]
            if made["level"] == "speaker" and made["name"] != "none":
                seed = None if made["seeding"] == "vpc2024" else seed
                found |= {(made["name"], entry["stream"], seed) for entry in record["files"].values()}
    return found


RATES = "sampling rates"
UTILITY = "utility"
NO_UTILITY = "Utility was not measured (words, emotions): noise in place of speech would look as private."
# docs/uncertainty.md: the fewest for which the coverage of all intervals was measured, and what was of error rates
FEW_SPEAKERS = 20
STUDIED = "those of error rates were studied with 5 to 100 speakers at rates of 0.5, 2 and 10 %"


def check_all(given: Evaluated) -> list[Json]:
    """Make all checks.

    Parameters
    ----------
    given : Evaluated

    Returns
    -------
    list of dict
        Level, check and text of each, in the order of the checks.
    """
    return [vars(finding) for check in CHECKS for finding in check(given)]


def simulated(given: Evaluated) -> Iterator[Found]:
    """Warn that speech is SIMULATED."""
    if given.simulated:
        yield Found(
            "warning",
            "SIMULATED speech",
            "The speech is synthetic (eSpeak NG). The numbers show that everything works; they say nothing about how"
            " well the anonymiser protects people.",
        )


def attacker_strength(given: Evaluated) -> Iterator[Found]:
    """Check that attackers recognise original speech: one that cannot says little about anonymised speech."""
    for dataset, part in pooled(given.conditions, "original"):
        best = strongest(part)
        rate, ends = best["eer"]["rocch"], best["intervals"].get("eer.rocch", {})
        span = f" (interval to {percent(ends['high'])})" if number(ends.get("high")) >= 0 else ""
        text = f"{dataset}: on original speech the strongest attacker ({best['attacker']}) has an EER of"
        text += f" {percent(rate)}{span}"
        if rate > given.config.weak_attacker_eer:
            text += f", above {percent(given.config.weak_attacker_eer)}: it is weak, and privacy is overestimated."
            yield Found("warning", "attacker strength", text)
        else:
            text += ": strong enough that its errors on anonymised speech are mostly the anonymiser's doing."
            yield Found("ok", "attacker strength", text)


def unmeasured_utility(given: Evaluated) -> Iterator[Found]:
    """Warn where nobody measured what anonymised speech is still good for: noise would be as private."""
    if not given.utility and any(condition["scenario"] != "original" for condition in given.conditions):
        yield Found("warning", UTILITY, NO_UTILITY)


def outside_attackers(given: Evaluated) -> Iterator[Found]:
    """Note which attackers are outside ones, and what they were left out of: there the others alone are the result."""
    genders = {dataset.name: list(dataset.trials) for dataset in given.sets.datasets}
    for entry in given.config.attackers:
        spec = str(given.config.attacker_settings.get(entry, {}).get("preset", entry))
        if not is_outside(spec) or find_row(spec) is not None:
            continue
        name = attacker_name(entry)
        served = {
            (condition["dataset"], condition["gender"], condition["scenario"])
            for condition in given.conditions
            if condition["attacker"] == name
        }
        left = [
            f"{dataset} {gender} {scenario.name}"
            for dataset in genders
            for scenario in SCENARIOS
            for gender in genders[dataset]
            if (dataset, gender, scenario.name) not in served
        ]
        if left:
            text = f"{name} ({spec}) was left out of {len(left)} conditions, where others alone are the result:"
            yield Found("warning", "attackers of others", f"{text} {few(left)}. The log says what it lacks.")
        else:
            yield Found("note", "attackers of others", f"{name} is {spec}; it serves every condition.")


def shared_speakers(given: Evaluated) -> Iterator[Found]:
    """Check that no tested speaker is in the training set: attackers learn without those who are."""
    for dataset in given.sets.datasets:
        training = set(given.sets.original[dataset.training].speakers.values())
        tested = {speaker for name in dataset.tested for speaker in given.sets.original[name].speakers.values()}
        shared = sorted(given.sets.left_out.get(dataset.training, set()) & tested)
        if shared:
            text = f"{dataset.name}: {len(shared)} of {len(tested)} speakers are in {dataset.training} too:"
            yield Found("warning", "speaker overlap", f"{text} {few(shared)}. Attackers learn without them.")
        else:
            text = f"{dataset.name}: none of {len(tested)} speakers is among the {len(training)} of the training set"
            text += f" ({dataset.training}, as its folder is called)."
            yield Found("ok", "speaker overlap", text)
        enrolled = set(enrolment(given.sets.original[dataset.enrolls]).segments)
        twice = sorted(
            enrolled
            & {utterance for name in dataset.trials.values() for utterance in given.sets.original[name].recordings}
        )
        if twice:
            text = f"{dataset.name}: {len(twice)} utterances both enrol and are tried: {few(twice)}."
            yield Found("warning", "utterance overlap", text)


def missing_lists(given: Evaluated) -> Iterator[Found]:
    """Check that no set lacks a sex: averages over the sexes are not what they seem to be there."""
    for dataset in given.sets.datasets:
        if not given.sets.original[dataset.enrolls].genders:
            yield Found("warning", "unknown sexes", f"{dataset.name}: {SEXES_POOLED}")
        lacking = [
            list_name for list_name in given.config.lists if list_name != "mixed" and list_name not in dataset.trials
        ]
        if lacking:
            stem = dataset.name.removesuffix("_common")
            names = ", ".join(f"{stem}_trials_{list_name}" for list_name in lacking)
            text = f"{dataset.name}: there is no {names}; results and averages are those of the other sex alone."
            yield Found("warning", "missing lists", text)


def pooled_trials(given: Evaluated) -> Iterator[Found]:
    """Name lists whose pooled error rate is far above that of both: their scores have different offsets."""
    rates: dict[tuple[str, str, str], dict[str, float]] = {}
    for one in given.conditions:
        place = one["dataset"], one["scenario"], one["attacker"]
        rates.setdefault(place, {})[one["gender"]] = number(one["eer"]["rocch"])
    for (dataset, scenario, attacker), found in rates.items():
        alone = {gender: rate for gender, rate in found.items() if gender != POOLED}
        if len(alone) > 1 and found.get(POOLED, 0.0) > 1.25 * max(alone.values()) + 0.02:
            lists = ", ".join(f"{gender} {percent(rate)}" for gender, rate in alone.items())
            text = f"{dataset} {scenario} {attacker}: pooled, the EER is {percent(found[POOLED])}, of each list"
            text += f" alone less ({lists}): scores of the lists have different offsets. The word is by the worst list."
            yield Found("warning", "pooled trials", text)


def uninformative(given: Evaluated) -> Iterator[Found]:
    """Find attackers whose scores tell nothing, equal or inverted; without others there is no verdict."""
    found: dict[tuple[str, str], list[str]] = {}
    for (dataset, gender, scenario), part in places(given.conditions):
        broken = [one["attacker"] for one in part if tells_nothing(one)]
        none_left = len(broken) == len(part) and scenario != "original"
        if broken:
            level = "error" if none_left else "warning"
            found.setdefault((level, few(broken)), []).append(f"{dataset} {gender} {scenario}")
    for (level, names), where in found.items():
        text = (
            f"Scores of {names} tell nothing, as they are all equal or inverted ({few(where)}): that is no privacy, and"
        )
        yield Found(level, "broken attackers", f"{text} they do not count.")


def tells_nothing(condition: Json) -> bool:
    """Return whether no threshold does better than chance on these trials: scores are equal or clearly inverted."""
    reversal = _reversal(condition)
    return number(condition.get("min_cllr")) > 1 - 1e-9 or (reversal is not None and reversal.clear)


def corpus_leak(given: Evaluated) -> Iterator[Found]:
    """Tell how far original speech is recognised by noise and channel alone, where nobody speaks."""
    specs = {
        entry: str(given.config.attacker_settings.get(entry, {}).get("preset", entry))
        for entry in given.config.attackers
    }
    names = {attacker_name(entry) for entry, spec in specs.items() if catalogue_name(spec) == "session"}
    for dataset, part in pooled(given.conditions, "original"):
        for condition in part:
            if condition["attacker"] not in names:
                continue
            rate, ends = 100 * condition["eer"]["rocch"], condition["intervals"].get("eer.rocch", {})
            low, high = (100 * number(ends.get(end)) for end in ("low", "high"))
            span = f" (interval {low:.1f} to {high:.1f})" if low == low and high == high else ""
            text = (
                f"{dataset}: without speech, by noise and channel alone ({condition['attacker']}), original recordings"
            )
            text += (
                f" tell their speakers with an EER of {rate:.1f} %{span}; a guess has 50 %. So much the corpus gives"
            )
            yield Found("note", "recognition without speech", f"{text} away by itself, and every attacker may use it.")


def few_speakers(given: Evaluated) -> Iterator[Found]:
    """Check the number of speakers: intervals of few are wide, and below some number not known to hold."""
    for dataset, part in pooled(given.conditions, "original"):
        one = part[0]
        speakers = min(one["n_enrolled"], one["n_trial_speakers"])
        step = f"one missed target trial is {100 / one['n_target']:.1f} points"
        text = f"{dataset}: {speakers} speakers with target trials, {one['n_target']} target trials ({step})"
        if given.config.evaluation.replicates and not one["intervals"]:
            yield Found("warning", "number of speakers", f"{text}: no intervals. {one['notes'].get('intervals', '')}")
        elif speakers < FEW_SPEAKERS:
            asked = f"{100 * given.config.evaluation.level:g} % intervals"
            text += f": fewer than the {FEW_SPEAKERS} for which the coverage of all {asked} is known; {STUDIED}."
            yield Found("warning", "number of speakers", text)
        else:
            yield Found("ok", "number of speakers", f"{text}: enough for the intervals given; {STUDIED}.")


def independence(given: Evaluated) -> Iterator[Found]:
    """Compare original speech under ASV_eval with other runs: its result does not depend on the anonymiser.

    But where twins have another sampling rate than their originals, all of the set is heard at another rate.
    """
    check = "independence of the anonymiser"
    now = _originals(given.conditions)
    compared = 0
    heard = given.sets.rates
    for file, results in given.earlier.items():
        if not _comparable(results, given.config):
            yield Found("note", check, f"{file} was made with other attackers or seeds: OO is not compared.")
            continue
        before = _originals(results.get("conditions", []))
        shared = sorted(now.keys() & before.keys())
        compared += len(shared)
        other = [condition for condition in shared if now[condition] != before[condition]]
        if other:
            dataset, gender, attacker = other[0]
            rates = f"{percent(now[other[0]])}, there {percent(before[other[0]])}"
            text = f"OO differs from {file} in {len(other)} of {len(shared)} conditions,"
            text += f" such as {dataset} {gender} {attacker}: {rates}."
            then = next((one["text"] for one in results.get("sanity", []) if one["check"] == RATES), "")
            if then != heard:
                yield Found("note", check, f"{text} There sets were heard at other sampling rates.")
                continue
            yield Found("warning", check, f"{text} It must not depend on the anonymiser: the data changed.")
        elif shared:
            yield Found("ok", check, f"OO is the same as in {file} in all {len(shared)} conditions.")
    if not compared:
        text = "OO, which must not depend on the anonymiser, could not be compared: no other results in this folder."
        yield Found("note", check, text)


def training_draws(given: Evaluated) -> Iterator[Found]:
    """Tell from how many draws of the anonymised training set attackers learnt: from one they learn less."""
    if (
        not any(condition["scenario"] == "semi-informed" for condition in given.conditions)
        or given.config.anonymizer.name == "none"
    ):
        return
    for name in dict.fromkeys(dataset.training for dataset in given.sets.datasets):
        count = 1 + len(given.sets.draws.get(name, ()))
        text = f"Semi-informed attackers learnt from {count} anonymised version{'s' if count > 1 else ''} of {name}"
        if count > 1:
            yield Found("ok", "training draws", f"{text}, each with other random numbers.")
            continue
        if given.sets.draws_nothing(name):
            yield Found("note", "training draws", f"{text}, {given.sets.undrawn[name]}.")
            continue
        text += f", {given.sets.undrawn[name]}" if name in given.sets.undrawn else ""
        text += ": with several they look away from what the anonymiser draws, and most are stronger then."
        remedy = " Give the anonymiser (anonymizer.name, or anonymizer.command with its command line) to have"
        yield Found("warning", "training draws", f"{text}{remedy} anonymizer.training_draws of them.")


def other_notes(given: Evaluated) -> Iterator[Found]:
    """Note further things that a reader should know."""
    if given.config.anonymizer.training_level == "speaker":
        text = "The training set is anonymised by speaker: an attacker trained by utterance would be stronger."
        yield Found("note", "training level", text)
    turned = [(condition, found) for condition in given.conditions if (found := _reversal(condition)) is not None]
    if turned:
        worst = next((condition for condition, found in turned if found.clear), turned[0][0])
        text = (
            f"{len(turned)} conditions have target trials that score below the others, such as {worst['dataset']}"
            f" {worst['gender']} {worst['scenario']} {worst['attacker']}: an attacker could turn its scores round."
        )
        clear = any(found.clear for _, found in turned)
        by_chance = "" if clear else " In none are they more than chance might make of scores that tell nothing."
        yield Found("warning" if clear else "note", "reversed scores", text + by_chance)
    cut = [condition for condition in given.conditions if condition["linkability"] is None]
    if cut:
        text = f"{len(cut)} conditions without linkability: {cut[0]['notes'].get('linkability', '')}"
        yield Found("note", "linkability", text)


def _reversal(condition: Json) -> Reversal | None:
    least = min(number(condition["n_target"]), number(condition["n_nontarget"]))
    return reversal_at(number(condition["eer"].get("interpolated")), least)


def _originals(conditions: Sequence[Json]) -> dict[tuple[str, str, str], float]:
    return {
        (condition["dataset"], condition["gender"], condition["attacker"]): number(condition["eer"]["rocch"])
        for condition in conditions
        if condition["scenario"] == "original"
    }


def _comparable(results: Json, config: Config) -> bool:
    from spkbase.configuration import to_dict

    theirs, ours = results.get("config", {}), to_dict(config)
    return all(theirs.get(name) == ours[name] for name in ("seed", "attackers", "attacker_settings", "training_sets"))


def sampling_rates(given: Evaluated) -> Iterator[Found]:
    """Tell which sets are heard at another sampling rate."""
    if given.sets.rates:
        yield Found("note", RATES, given.sets.rates)


_NAMED = 3
_PART = 4096  # bytes
_FEWEST = 10
_MANY = 0.2  # of recordings that are not nearer to their own originals


def duplicate_audio(given: Evaluated) -> Iterator[Found]:
    """Check that no recording has two names: a trial would be trivial, or a training speaker a tested one."""
    for what, directories in (("original", given.sets.original), ("anonymised", given.sets.twins)):
        equal = equal_files(directories.values())
        if equal:
            examples = "; ".join(" = ".join(group) for group in equal[:_NAMED])
            n_files = sum(map(len, equal))
            text = f"{n_files} files of {what} speech hold the audio of another one: {examples}"
            yield Found("warning", "duplicate audio", text + (" ..." if len(equal) > _NAMED else "."))
        else:
            yield Found("ok", "duplicate audio", f"No two files of {what} speech are equal.")


def original_audio(given: Evaluated) -> Iterator[Found]:
    """Check twins for audio of another original directory; that of their own `check_twin` has excluded."""
    originals = {
        f"{directory.name}/{utterance}"
        for directory in given.sets.original.values()
        for utterance in directory.recordings
    }
    left = []
    for group in equal_files([*given.sets.original.values(), *given.sets.twins.values()]):
        here, there = [name for name in group if name in originals], [name for name in group if name not in originals]
        # under its own name it was let through before: by an anonymiser that changes nothing, as was asked
        if here and there and not {name.split("/")[1] for name in here} & {name.split("/")[1] for name in there}:
            left.append(f"{there[0]} = {here[0]}")
    if left:
        text = f"{len(left)} files of anonymised speech hold original audio of another set: {'; '.join(left[:_NAMED])}"
        yield Found("warning", "original audio", text + (" ..." if len(left) > _NAMED else "."))


def equal_files(directories: Iterable[DataDir]) -> list[list[str]]:
    """Return groups of utterances, as ``directory/utterance``, whose files hold the same bytes.

    A file that stands under one name in several directories is one; under two names it is a duplicate.

    Of most files some bytes are read alone: those of the same size are compared by their middle before their whole.
    """
    files: dict[tuple[Path, str], str] = {}  # lists may share recordings, under the same names
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            files.setdefault((Path(os.path.realpath(path)), utterance), f"{directory.name}/{utterance}")
    alike = _groups(files, lambda file: file[0].stat().st_size)
    alike = [group for one in alike for group in _groups(one, lambda file: _middle(file[0]))]
    alike = [group for one in alike for group in _groups(one, lambda file: sha256(file[0].read_bytes()).digest())]
    return sorted([files[file] for file in group] for group in alike)


def _groups(
    files: Iterable[tuple[Path, str]], feature: Callable[[tuple[Path, str]], object]
) -> list[list[tuple[Path, str]]]:
    """Groups of files in which a feature is the same, without those of one file."""
    groups: dict[object, list[tuple[Path, str]]] = {}
    for file in files:
        groups.setdefault(feature(file), []).append(file)
    return [group for group in groups.values() if len(group) > 1]


def _middle(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(path.stat().st_size // 2)
        return file.read(_PART)


def resemblance(given: Evaluated) -> Iterator[Found]:
    """Check that anonymised recordings are nearer to their own originals than to those of others.

    Transformations that leave words or rhythm leave that, so do time reversal, spectral inversion, permuted frames and
    noise at -20 dB SNR. Files under each other's names do not, nor noise or silence in place of speech: there is no
    verdict then.
    """
    found: dict[str, list[str]] = {}
    for name, twin in given.sets.twins.items():
        original = given.sets.original[name]
        utterances = spaced(sorted(original.recordings))
        if len(utterances) < _FEWEST or given.config.anonymizer.name == "none":
            continue
        paths = [[one.recordings[utterance] for utterance in utterances] for one in (original, twin)]
        nearer = nearer_than_others(*(described(side, given.jobs) for side in paths))
        wrong = 2 * float((nearer < 0.5).mean())
        # a share has the variance 1 / 12 if names tell nothing; the best of three measures, at 3.5 deviations
        level = (
            "error" if nearer.mean() < 0.5 + 3.5 / np.sqrt(12 * len(nearer)) else "warning" if wrong > _MANY else "ok"
        )
        found.setdefault(level, []).append(twin.name if level == "ok" else f"{twin.name} ({100 * min(wrong, 1):.0f} %)")
    for level, names in found.items():
        nearest = "Recordings are nearer to their own originals than to those of others"
        text = f"{nearest} in {few(names)}."
        if level != "ok":
            text = f"{nearest}, but not about so many of {few(names)}: they stand under each other's names, or hold no"
            text += " speech. Listen to some, and check wav.scp."
        yield Found(level, "resemblance", text)


def nearer_than_others(
    originals: tuple[NDArray[np.float64], NDArray[np.float64]],
    twins: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return of each recording the share of other originals that it is further from than from its own.

    Parameters
    ----------
    originals, twins : levels and spectra
        See `described`; recording i of one belongs to recording i of the other.

    Returns
    -------
    ndarray of float64 of shape (n,)
        By the correlation of levels, of levels backwards, or of spectra, whichever tells most on average; ties count
        half.
    """
    (levels, spectra), (other_levels, other_spectra) = originals, twins
    pairs = (levels, other_levels), (levels, other_levels[:, ::-1]), (spectra, other_spectra)
    found = []
    for own, other in pairs:
        alike = standardised(other) @ standardised(own).T
        right = np.diag(alike)[:, np.newaxis]
        found.append(((alike < right).sum(axis=1) + ((alike == right).sum(axis=1) - 1) / 2) / (len(alike) - 1))
    return max(found, key=np.mean)


def file_tags(given: Evaluated) -> Iterator[Found]:
    """Warn where a tag of an anonymised file (artist, title, comment) holds the name of its speaker."""
    found = []
    for twin in given.sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(twin.recordings[utterance]) as file:
                tags = file.copy_metadata()
                found += [
                    f"{twin.name}/{utterance}, {tag}"
                    for tag, words in tags.items()
                    if twin.speakers[utterance] in words
                ]
    if found:
        text = f"Tags of anonymised files name the speaker: {few(found)}. No attacker reads them: remove them."
        yield Found("warning", "tags of files", text)


def failed_attackers(given: Evaluated) -> Iterator[Found]:
    """Warn of each attacker that failed."""
    for name, theirs in failures_by_attacker(given.failures).items():
        where = few([f"{failure.dataset} {failure.gender} {failure.scenario}" for failure in theirs])
        text = f"{name} has no scores for {count_lists(theirs)} ({where}), where others alone are the result."
        yield Found("warning", "attackers that failed", f"{text} {theirs[0].reason}")


def fusions(given: Evaluated) -> Iterator[Found]:
    """Note who has a part in each fusion, and who has none."""
    for fusion in given.fusions:
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


def training_draw_gaps(given: Evaluated) -> Iterator[Found]:
    """Note each set whose rates by number of versions could not be measured."""
    text = "{dataset}: {attacker} has no rate from fewer versions of the training set: {note}"
    for entry in given.training_draws:
        if entry["note"]:
            yield Found("note", "training draws", text.format(**entry))


CHECKS: tuple[Callable[[Evaluated], Iterator[Found]], ...] = (
    failed_attackers,
    simulated,
    resemblance,
    uninformative,
    pooled_trials,
    attacker_strength,
    attacker_order,
    lazy_order,
    corpus_leak,
    outside_attackers,
    shared_speakers,
    duplicate_audio,
    original_audio,
    file_tags,
    missing_lists,
    few_speakers,
    sampling_rates,
    independence,
    training_draws,
    trial_draws,
    shared_draws,
    other_notes,
    unmeasured_utility,
    fusions,
    training_draw_gaps,
    overestimated,
)
"""Every check of a run, in the order of the report; see `Evaluated` and `Found`."""
