"""What could make the numbers mean less than they seem to: checks whose outcome stands in every report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.metrics import Reversal, reversal_at
from evaluation.reports import SCENARIOS, strongest
from spkbase.errors import few
from spkver.attackers import find_row, is_outside
from spkver.datadir import enrolment
from spkver.voiceprivacy.choosing import attacker_name
from spkver.voiceprivacy.sanity_audio import Found, corpus_leak, duplicate_audio, original_audio
from spkver.voiceprivacy.sanity_draws import shared_draws, trial_draws
from spkver.voiceprivacy.sanity_order import attacker_order, lazy_order, percent, pooled
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number

Json = dict[str, Any]

# docs/uncertainty.md: the fewest for which the coverage of all intervals was measured, and what was of error rates
RATES = "sampling rates"
FEW_SPEAKERS = 20
STUDIED = "those of error rates were studied with 5 to 100 speakers at rates of 0.5, 2 and 10 %"


def check_all(
    conditions: Sequence[Json],
    sets: Sets,
    config: Config,
    *,
    output: Path,
    earlier: Mapping[str, Json],
    simulated: bool,
) -> list[Json]:
    """Make all checks.

    Parameters
    ----------
    conditions : sequence of dict
        Entries of ``results.json``.
    sets : Sets
    config : Config
    output : Path
        Where the scores are.
    earlier : mapping
        Results of other anonymisers in the same folder, by file name.
    simulated : bool
        Whether the speech is SIMULATED.

    Returns
    -------
    list of dict
        Level, check and text of each, in the order of the checks.
    """
    findings = [
        *([Found("warning", "SIMULATED speech", _SIMULATED)] if simulated else []),
        *attacker_strength(conditions, config),
        *attacker_order(conditions, config, output),
        *lazy_order(conditions),
        *corpus_leak(pooled(conditions, "original"), config),
        *outside_attackers(conditions, sets, config),
        *shared_speakers(sets),
        *duplicate_audio(sets),
        *original_audio(sets),
        *missing_lists(sets, config),
        *few_speakers(conditions, config),
        *([Found("note", RATES, sets.rates)] if sets.rates else []),
        *independence(conditions, earlier, config, heard=sets.rates),
        *training_draws(conditions, sets, config),
        *trial_draws(conditions, sets, config),
        *shared_draws(sets),
        *other_notes(conditions, config),
    ]
    return [vars(finding) for finding in findings]


_SIMULATED = (
    "The speech is synthetic (eSpeak NG). The numbers show that everything works; they say nothing about how well the"
    " anonymiser protects people."
)


def attacker_strength(conditions: Sequence[Json], config: Config) -> Iterator[Found]:
    """Check that attackers recognise original speech: one that cannot says little about anonymised speech."""
    for dataset, part in pooled(conditions, "original"):
        best = strongest(part)
        rate, ends = best["eer"]["rocch"], best["intervals"].get("eer.rocch", {})
        span = f" (interval to {percent(ends['high'])})" if number(ends.get("high")) >= 0 else ""
        text = f"{dataset}: on original speech the strongest attacker ({best['attacker']}) has an EER of"
        text += f" {percent(rate)}{span}"
        if rate > config.weak_attacker_eer:
            text += f", above {percent(config.weak_attacker_eer)}: it is weak, and privacy is overestimated."
            yield Found("warning", "attacker strength", text)
        else:
            text += ": strong enough that its errors on anonymised speech are mostly the anonymiser's doing."
            yield Found("ok", "attacker strength", text)


def outside_attackers(conditions: Sequence[Json], sets: Sets, config: Config) -> Iterator[Found]:
    """Note which attackers are outside ones, and what they were left out of: there the others alone are the result."""
    genders = {dataset.name: list(dataset.trials) for dataset in sets.datasets}
    for entry in config.attackers:
        spec = str(config.attacker_settings.get(entry, {}).get("preset", entry))
        if not is_outside(spec) or find_row(spec) is not None:
            continue
        name = attacker_name(entry)
        served = {
            (condition["dataset"], condition["gender"], condition["scenario"])
            for condition in conditions
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


def shared_speakers(sets: Sets) -> Iterator[Found]:
    """Check that no tested speaker is in the training set: attackers learn without those who are."""
    for dataset in sets.datasets:
        training = set(sets.original[dataset.training].speakers.values())
        tested = {speaker for name in dataset.tested for speaker in sets.original[name].speakers.values()}
        shared = sorted(sets.left_out.get(dataset.training, set()) & tested)
        if shared:
            text = f"{dataset.name}: {len(shared)} of {len(tested)} speakers are in {dataset.training} too:"
            yield Found("warning", "speaker overlap", f"{text} {few(shared)}. Attackers learn without them.")
        else:
            text = f"{dataset.name}: none of {len(tested)} speakers is among the {len(training)} of the training set"
            text += f" ({dataset.training}, as its folder is called)."
            yield Found("ok", "speaker overlap", text)
        enrolled = set(enrolment(sets.original[dataset.enrolls]).segments)
        twice = sorted(
            enrolled & {utterance for name in dataset.trials.values() for utterance in sets.original[name].recordings}
        )
        if twice:
            text = f"{dataset.name}: {len(twice)} utterances both enrol and are tried: {few(twice)}."
            yield Found("warning", "utterance overlap", text)


def missing_lists(sets: Sets, config: Config) -> Iterator[Found]:
    """Check that no set lacks a sex: averages over the sexes are not what they seem to be there."""
    for dataset in sets.datasets:
        lacking = [list_name for list_name in config.lists if list_name != "mixed" and list_name not in dataset.trials]
        if lacking:
            stem = dataset.name.removesuffix("_common")
            names = ", ".join(f"{stem}_trials_{list_name}" for list_name in lacking)
            text = f"{dataset.name}: there is no {names}; results and averages are those of the other sex alone."
            yield Found("warning", "missing lists", text)


def few_speakers(conditions: Sequence[Json], config: Config) -> Iterator[Found]:
    """Check the number of speakers: intervals of few are wide, and below some number not known to hold."""
    for dataset, part in pooled(conditions, "original"):
        one = part[0]
        speakers = min(one["n_enrolled"], one["n_trial_speakers"])
        step = f"one missed target trial is {100 / one['n_target']:.1f} points"
        text = f"{dataset}: {speakers} speakers with target trials, {one['n_target']} target trials ({step})"
        if config.evaluation.replicates and not one["intervals"]:
            yield Found("warning", "number of speakers", f"{text}: no intervals. {one['notes'].get('intervals', '')}")
        elif speakers < FEW_SPEAKERS:
            asked = f"{100 * config.evaluation.level:g} % intervals"
            text += f": fewer than the {FEW_SPEAKERS} for which the coverage of all {asked} is known; {STUDIED}."
            yield Found("warning", "number of speakers", text)
        else:
            yield Found("ok", "number of speakers", f"{text}: enough for the intervals given; {STUDIED}.")


def independence(
    conditions: Sequence[Json], earlier: Mapping[str, Json], config: Config, *, heard: str = ""
) -> Iterator[Found]:
    """Compare original speech under ASV_eval with other runs: its result does not depend on the anonymiser.

    But where twins have another sampling rate than their originals, all of the set is heard at another rate.
    """
    check = "independence of the anonymiser"
    now = _originals(conditions)
    compared = 0
    for file, results in earlier.items():
        if not _comparable(results, config):
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


def training_draws(conditions: Sequence[Json], sets: Sets, config: Config) -> Iterator[Found]:
    """Tell from how many draws of the anonymised training set attackers learnt: from one they learn less."""
    if (
        not any(condition["scenario"] == "semi-informed" for condition in conditions)
        or config.anonymizer.name == "none"
    ):
        return
    for name in dict.fromkeys(dataset.training for dataset in sets.datasets):
        count = 1 + len(sets.draws.get(name, ()))
        text = f"Semi-informed attackers learnt from {count} anonymised version{'s' if count > 1 else ''} of {name}"
        if count > 1:
            yield Found("ok", "training draws", f"{text}, each with other random numbers.")
            continue
        text += ": with several they look away from what the anonymiser draws, and most are stronger then."
        remedy = " Give the anonymiser (anonymizer.name, or anonymizer.command with its command line) to have"
        yield Found("warning", "training draws", f"{text}{remedy} anonymizer.training_draws of them.")


def other_notes(conditions: Sequence[Json], config: Config) -> Iterator[Found]:
    """Note further things that a reader should know."""
    if config.anonymizer.training_level == "speaker":
        text = "The training set is anonymised by speaker: an attacker trained by utterance would be stronger."
        yield Found("note", "training level", text)
    turned = [(condition, found) for condition in conditions if (found := _reversal(condition)) is not None]
    if turned:
        worst = next((condition for condition, found in turned if found.clear), turned[0][0])
        text = (
            f"{len(turned)} conditions have target trials that score below the others, such as {worst['dataset']}"
            f" {worst['gender']} {worst['scenario']} {worst['attacker']}: an attacker could turn its scores round."
        )
        clear = any(found.clear for _, found in turned)
        by_chance = "" if clear else " In none are they more than chance might make of scores that tell nothing."
        yield Found("warning" if clear else "note", "reversed scores", text + by_chance)
    cut = [condition for condition in conditions if condition["linkability"] is None]
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
