"""What could make the numbers mean less than they seem to: checks whose outcome stands in every report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evaluation.metrics import Reversal, reversal_at
from evaluation.reports import SCENARIOS, strongest
from spkbase.errors import few
from spkver.attackers import catalogue_name, find_row, is_outside
from spkver.datadir import SEXES_POOLED, enrolment
from spkver.voiceprivacy.choosing import attacker_name
from spkver.voiceprivacy.limits import overestimated
from spkver.voiceprivacy.making import failed_attackers, fusions
from spkver.voiceprivacy.sanity_audio import (
    Evaluated,
    Found,
    duplicate_audio,
    file_tags,
    original_audio,
    resemblance,
)
from spkver.voiceprivacy.sanity_draws import shared_draws, trial_draws
from spkver.voiceprivacy.sanity_order import attacker_order, lazy_order, percent, pooled
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number, places
from spkver.voiceprivacy.training_draws import training_draw_gaps

Json = dict[str, Any]

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
