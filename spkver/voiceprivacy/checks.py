"""Checks of a run: what could make its numbers mean less than they seem to. They stand in every report.

Among them is an alarm where privacy is probably overestimated. The privacy that a run reports is what its attackers
left; published evaluations overestimated it by up to 74 %, for reasons that a run can see of itself: see `reasons`.
None of them proves anything, and that there is none proves no privacy either.

A check takes what it looks at, as a rule rows of the table of results (`spkver.voiceprivacy.table`), and yields what it
finds; `check_all` is the list of all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from evaluation.metrics import Reversal, SortedScores, eer, method_of, reversal_at
from evaluation.reports import INVERTING, SCENARIOS, number, strongest
from evaluation.uncertainty import Interval, Resampling, bootstrap, interval_over_draws
from spkbase.configuration import to_dict
from spkbase.errors import DataError, few
from spkver.anonymization import RECORD
from spkver.attackers import find_row, is_outside
from spkver.datadir import SEXES_POOLED, DataDir, enrolment
from spkver.voiceprivacy.choosing import adapts, attacker_name, attacker_specs, is_network
from spkver.voiceprivacy.experiment import count_lists, failures_by_attacker
from spkver.voiceprivacy.scores import ScoreTable
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.table import Table, main_places, percent, place, places, samples_of
from spkver.voiceprivacy.twins import described, spaced, standardised

Json = dict[str, Any]
Rows = Sequence[Json]
Place = tuple[str, str, str]

RATES, UTILITY, OVERESTIMATED = "sampling rates", "utility", "overestimated privacy"
"""Names of checks that are asked for elsewhere."""

FEW_TRAINING_SPEAKERS = 100
"""Fewer teach an attacker little of how voices differ; the attackers of the challenges learn from 921."""

_NO_VOICE_PRINT = ("fusion", "prosody", "session", "content")  # who is ahead of these, or behind, tells nothing
_MOST_REPLICATES = 500
# docs/uncertainty.md: the fewest for which the coverage of all intervals was measured, and what was of error rates
_FEW_SPEAKERS = 20
_STUDIED = "those of error rates were studied with 5 to 100 speakers at rates of 0.5, 2 and 10 %"
_NAMED = 3
_PART = 4096  # bytes
_FEWEST = 10
_MANY = 0.2  # of recordings that are not nearer to their own originals


class Finding(NamedTuple):
    """Outcome of a check: its level is ok, note, warning, or error, which forbids a verdict."""

    level: str
    check: str
    text: str


def check_all(
    table: Table,
    sets: Sets,
    config: Config,
    scores: ScoreTable,
    *,
    output: Path,
    utility: Json,
    earlier: Mapping[str, Json],
    simulated: bool = False,
    jobs: int | None = None,
) -> list[Json]:
    """Make all checks.

    Parameters
    ----------
    table : Table
    sets : Sets
    config : Config
    scores : ScoreTable
    output : Path
        Where the scores are.
    utility : dict
        What `spkver.voiceprivacy.utility` found.
    earlier : mapping
        Results of other anonymisers in the same folder, by file name.
    simulated : bool
        Whether the speech is SIMULATED.
    jobs : int, optional

    Returns
    -------
    list of dict
        Level, check and text of each, in the order of the report.
    """
    rows = table.rows
    findings = (
        *failed_attackers(scores.failures),
        *simulated_speech(simulated),
        *resemblance(sets, config, jobs=jobs),
        *uninformative(rows),
        *pooled_trials(rows),
        *attacker_strength(rows, config),
        *attacker_order(rows, config, output),
        *lazy_order(rows),
        *corpus_leak(rows, config),
        *outside_attackers(rows, sets, config),
        *shared_speakers(sets),
        *duplicate_audio(sets),
        *original_audio(sets),
        *file_tags(sets),
        *missing_lists(sets, config),
        *few_speakers(rows, config),
        *([Finding("note", RATES, sets.rates)] if sets.rates else []),
        *independence(rows, sets, config, earlier),
        *training_draws(rows, sets, config),
        *trial_draws(rows, sets, config),
        *shared_draws(sets),
        *other_notes(rows, config),
        *unmeasured_utility(rows, utility),
        *fusions(scores.fusions),
        *training_draw_gaps(table.training_draws),
        *overestimated(rows, sets, config, failed=[failure["attacker"] for failure in scores.failures]),
    )
    return [finding._asdict() for finding in findings]


def _name(at: Place) -> str:
    """A set, with the sex where it is not of all speakers."""
    return at[0] if at[1] == POOLED else f"{at[0]} {at[1]}"


def _rate_of(row: Json) -> float:
    return number(row["eer"]["rocch"])


def _ends_of(row: Json) -> tuple[float, float]:
    ends = row["intervals"].get("eer.rocch", {})
    return number(ends.get("low")), number(ends.get("high"))


def _main(rows: Rows, scenario: str) -> Iterator[tuple[str, list[Json]]]:
    """Name and rows of each place of a scenario, see `main_places`."""
    return ((_name(at), part) for at, part in main_places(rows).items() if at[2] == scenario)


def _is_anonymised(rows: Rows) -> bool:
    return any(row["scenario"] != "original" for row in rows)


# --- privacy that is probably overestimated ---------------------------------------------------------------------------


def overestimated(rows: Rows, sets: Sets, config: Config, *, failed: Sequence[str] = ()) -> Iterator[Finding]:
    """Warn where privacy is probably overestimated, in a sentence for the verdict; see `reasons`."""
    found = list(dict.fromkeys(reasons(rows, sets, config, failed=failed)))
    if found and _is_anonymised(rows):
        listed = found[0] if len(found) == 1 else f"{'; '.join(found[:-1])}; and {found[-1]}"
        text = f"This privacy is probably overestimated, because {listed}."
        yield Finding("warning", OVERESTIMATED, text)


def reasons(rows: Rows, sets: Sets, config: Config, *, failed: Sequence[str] = ()) -> Iterator[str]:
    """Yield what speaks for a stronger attacker than those there were.

    - Attackers disagree: one that recognises voices is ahead of all others by more than the intervals of both.
    - On original speech no attacker has an EER of ``weak_attacker_eer`` or below.
    - Those who know more (semi-informed) are weaker than those who know less (lazy-informed).
    - There are few speakers to learn from, or one draw of the anonymised ones.
    - No attacker rests on a neural network, none adapts to the trials, or one failed.
    """
    main = main_places(rows)
    for at, part in main.items():
        if at[2] == "original" and (rate := _rate_of(strongest(part))) > config.weak_attacker_eer:
            yield f"attackers are weak on original speech ({_name(at)}: {100 * rate:.1f} %)"
    for at, part in main.items():
        voices = sorted(
            (_rate_of(row), *_ends_of(row), row["attacker"])
            for row in part
            if row["level"] != INVERTING and not row["attacker"].startswith(_NO_VOICE_PRINT) and _has_ends(row)
        )
        # where the strongest voice print is ahead of the next by more than both intervals, the others miss something
        if at[2] != "original" and len(voices) > 1 and voices[0][2] < voices[1][1]:
            where = f"{_name(at)} {at[2]}: {voices[0][3]} alone"
            yield f"attackers disagree ({where} is ahead, beyond both intervals)"
    for at, part in main.items():
        lazy = main.get((*at[:2], "lazy-informed"))
        if at[2] == "semi-informed" and lazy is not None:
            rates = [
                _rate_of(strongest([row for row in side if row["level"] != INVERTING] or side)) for side in (part, lazy)
            ]
            if rates[0] > rates[1]:
                values = " against ".join(map(percent, rates))
                yield f"semi-informed attackers are weaker than lazy-informed ones ({_name(at)}: {values})"
    informed = any(at[2] == "semi-informed" for at in main)
    for name in sets.training_sets:
        count = len(set(sets.original[name].speakers.values()))
        if count < FEW_TRAINING_SPEAKERS:
            yield f"attackers learn from few speakers ({name}: {count})"
        if informed and config.anonymizer.name != "none" and not (sets.draws.get(name) or sets.draws_nothing(name)):
            yield f"semi-informed attackers learn from one draw of the anonymised speech alone ({name})"
    served = {row["attacker"] for row in rows}
    run = {name: spec for name, spec in attacker_specs(config).items() if name in served}
    adapted = {attacker_name(entry) for entry, settings in config.attacker_settings.items() if settings.get("adapted")}
    if not any(map(is_network, run.values())):
        yield "no attacker rests on a neural network"
    if not any(adapts(spec) or name in adapted for name, spec in run.items()):
        yield "no attacker adapts to the trials"
    if failed:
        yield f"attackers failed ({', '.join(dict.fromkeys(failed))})"


def _has_ends(row: Json) -> bool:
    return not any(map(np.isnan, _ends_of(row)))


# --- attackers, and their order ---------------------------------------------------------------------------------------


def failed_attackers(failures: Rows) -> Iterator[Finding]:
    """Warn of each attacker that failed."""
    for name, theirs in failures_by_attacker(failures).items():
        where = few([f"{failure['dataset']} {failure['gender']} {failure['scenario']}" for failure in theirs])
        text = f"{name} has no scores for {count_lists(theirs)} ({where}), where others alone are the result."
        yield Finding("warning", "attackers that failed", f"{text} {theirs[0]['reason']}")


def simulated_speech(simulated: bool) -> Iterator[Finding]:
    """Warn that speech is SIMULATED."""
    if simulated:
        text = "The speech is synthetic (eSpeak NG). The numbers show that everything works; they say nothing about how"
        yield Finding("warning", "SIMULATED speech", f"{text} well the anonymiser protects people.")


def uninformative(rows: Rows) -> Iterator[Finding]:
    """Find attackers whose scores tell nothing, equal or inverted; without others there is no verdict."""
    found: dict[tuple[str, str], list[str]] = {}
    for at, part in places(rows).items():
        broken = [row["attacker"] for row in part if _tells_nothing(row)]
        if broken:
            level = "error" if len(broken) == len(part) and at[2] != "original" else "warning"
            found.setdefault((level, few(broken)), []).append(" ".join(at))
    for (level, names), where in found.items():
        text = f"Scores of {names} tell nothing, as they are all equal or inverted ({few(where)}): that is no privacy,"
        yield Finding(level, "broken attackers", f"{text} and they do not count.")


def _tells_nothing(row: Json) -> bool:
    """Whether no threshold does better than chance on these trials: scores are equal or clearly inverted."""
    reversal = _reversal(row)
    return number(row.get("min_cllr")) > 1 - 1e-9 or (reversal is not None and reversal.clear)


def _reversal(row: Json) -> Reversal | None:
    least = min(number(row["n_target"]), number(row["n_nontarget"]))
    return reversal_at(number(row["eer"].get("interpolated")), least)


def pooled_trials(rows: Rows) -> Iterator[Finding]:
    """Name lists whose pooled error rate is far above that of both: their scores have different offsets."""
    rates: dict[Place, dict[str, float]] = {}
    for row in rows:
        rates.setdefault((row["dataset"], row["scenario"], row["attacker"]), {})[row["gender"]] = _rate_of(row)
    for at, found in rates.items():
        alone = {gender: rate for gender, rate in found.items() if gender != POOLED}
        if len(alone) > 1 and found.get(POOLED, 0.0) > 1.25 * max(alone.values()) + 0.02:
            lists = ", ".join(f"{gender} {percent(rate)}" for gender, rate in alone.items())
            text = f"{' '.join(at)}: pooled, the EER is {percent(found[POOLED])}, of each list alone less ({lists}):"
            text += " scores of the lists have different offsets. The word is by the worst list."
            yield Finding("warning", "pooled trials", text)


def attacker_strength(rows: Rows, config: Config) -> Iterator[Finding]:
    """Check that attackers recognise original speech: one that cannot says little about anonymised speech."""
    for name, part in _main(rows, "original"):
        best = strongest(part)
        rate, high = _rate_of(best), _ends_of(best)[1]
        span = f" (interval to {percent(high)})" if high >= 0 else ""
        text = f"{name}: on original speech the strongest attacker ({best['attacker']}) has an EER of"
        text += f" {percent(rate)}{span}"
        if rate > config.weak_attacker_eer:
            text += f", above {percent(config.weak_attacker_eer)}: it is weak, and privacy is overestimated."
            yield Finding("warning", "attacker strength", text)
        else:
            text += ": strong enough that its errors on anonymised speech are mostly the anonymiser's doing."
            yield Finding("ok", "attacker strength", text)


def attacker_order(rows: Rows, config: Config, output: Path) -> Iterator[Finding]:
    """Check that more knowledge makes no attacker weaker: where it does, the stronger one was trained badly."""
    check, least = "attacker order", "The result is the least privacy over the scenarios."
    for name, semi, other, rival in _rivals(rows, "semi-informed", ("lazy-informed", "ignorant")):
        rates = f"{percent(_rate_of(semi))} against {percent(_rate_of(rival))}"
        if _rate_of(semi) <= _rate_of(rival):
            text = f"{name}: semi-informed is at least as strong as {other}, {rates}."
            yield Finding("ok", check, text)
            continue
        sure = _difference(semi, rival, config, output) if other == "lazy-informed" else None
        text = f"{name}: the semi-informed attacker is weaker than the {other} one, {rates}"
        if sure is not None:
            ends = f"{100 * sure.low:.1f} to {100 * sure.high:.1f}"
            text += f" (difference {100 * sure.value:.1f} points, interval {ends})"
        if sure is not None and sure.low <= 0:
            text += f": that may be chance, and it gains nothing from what more it knows. {least}"
            yield Finding("note", check, text)
        else:
            text += f". It knows more, so its training failed; {least.replace('The', 'the')}"
            yield Finding("warning", check, text)


def lazy_order(rows: Rows) -> Iterator[Finding]:
    """Note where anonymised enrolment does not help an attacker that was trained on original speech: it need not."""
    for name, lazy, _, ignorant in _rivals(rows, "lazy-informed", ("ignorant",)):
        if _rate_of(lazy) > _rate_of(ignorant):
            rates = f"{percent(_rate_of(lazy))} against {percent(_rate_of(ignorant))}"
            text = f"{name}: the lazy-informed attacker is weaker than the ignorant one, {rates}."
            text += " That may be: it was trained on original speech and enrols with other speech."
            yield Finding("note", "attacker order", text)


def _rivals(rows: Rows, scenario: str, others: Sequence[str]) -> Iterator[tuple[str, Json, str, Json]]:
    """The strongest attackers of a scenario, and of others on the same trials."""
    by = main_places(rows)
    for at, part in by.items():
        for other in others if at[2] == scenario else ():
            if rivals := by.get((*at[:2], other)):
                yield _name(at), strongest(part), other, strongest(rivals)


def _difference(semi: Json, lazy: Json, config: Config, output: Path) -> Interval | None:
    """How much weaker one attacker is than the other, by paired resamples of all draws; None where they fail."""
    replicates = min(config.evaluation.replicates, _MOST_REPLICATES)
    if not replicates:
        return None

    def rate(scores: SortedScores) -> dict[str, float]:
        return {"eer": eer(scores)}

    try:
        samples = [samples_of(row, output) for row in (semi, lazy)]
        n_draws = min(map(len, samples))
        pairs = [sample for side in samples for sample in side[:n_draws]]
        resampled = bootstrap(pairs, rate, Resampling(replicates, config.seed))
    except DataError:
        return None
    rates = np.array([rate(sample.runs())["eer"] for sample in pairs]).reshape(2, n_draws)
    resamples = np.array([found["eer"] for found in resampled]).reshape(2, n_draws, -1)
    return interval_over_draws(
        rates[0] - rates[1],
        resamples[0] - resamples[1],
        method=method_of("eer", difference=True),
        n_units=pairs[0].n_effective,
        level=config.evaluation.level,
    )


def corpus_leak(rows: Rows, config: Config) -> Iterator[Finding]:
    """Tell how far original speech is recognised by noise and channel alone, where nobody speaks."""
    names = [name for name, spec in attacker_specs(config).items() if spec == "session"]
    for name, part in _main(rows, "original"):
        for row in part:
            if row["attacker"] in names:
                low, high = (100 * end for end in _ends_of(row))
                span = f" (interval {low:.1f} to {high:.1f})" if _has_ends(row) else ""
                text = f"{name}: without speech, by noise and channel alone ({row['attacker']}), original recordings"
                text += f" tell their speakers with an EER of {percent(_rate_of(row))}{span}; a guess has 50 %. So much"
                text += " the corpus gives away by itself, and every attacker may use it."
                yield Finding("note", "recognition without speech", text)


def outside_attackers(rows: Rows, sets: Sets, config: Config) -> Iterator[Finding]:
    """Note which attackers are outside ones, and what they were left out of: there the others alone are the result."""
    check = "attackers of others"
    for name, spec in attacker_specs(config).items():
        if not is_outside(spec) or find_row(spec) is not None:
            continue
        served = {place(row)[:3] for row in rows if row["attacker"] == name}
        left = [
            f"{dataset.name} {gender} {scenario.name}"
            for dataset in sets.datasets
            for scenario in SCENARIOS
            for gender in dataset.trials
            if (dataset.name, gender, scenario.name) not in served
        ]
        if left:
            text = f"{name} ({spec}) was left out of {len(left)} conditions, where others alone are the result:"
            yield Finding("warning", check, f"{text} {few(left)}. The log says what it lacks.")
        else:
            yield Finding("note", check, f"{name} is {spec}; it serves every condition.")


def fusions(found: Rows) -> Iterator[Finding]:
    """Note who has a part in each fusion, and who has none."""
    for fusion in found:
        weights = fusion["weights"]["weights"]
        shown = ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items() if weight)
        alone = min(fusion["alone"], key=lambda name: fusion["alone"][name]["cllr"])
        text = (
            f"{fusion['attacker']}, learnt from {fusion['training']} ({fusion['kind']} trials of background speakers in"
            f" {len(fusion['folds'])} folds): {shown}. There it has an EER of"
            f" {percent(fusion['cross_validated']['eer'])}, the best attacker alone ({alone})"
            f" {percent(fusion['alone'][alone]['eer'])}."
        )
        idle = [name for name, weight in weights.items() if not weight]
        yield Finding("note", "fusion", text + (f" No weight: {', '.join(idle)}." if idle else ""))
        for name, why in fusion["left_out"].items():
            text = f"{fusion['attacker']} ({fusion['training']}, {fusion['kind']}) goes without {name}: {why}."
            yield Finding("note", "fusion", text)


# --- sets, and what they teach ----------------------------------------------------------------------------------------


def shared_speakers(sets: Sets) -> Iterator[Finding]:
    """Check that no tested speaker is in the training set: attackers learn without those who are."""
    for dataset in sets.datasets:
        training = set(sets.original[dataset.training].speakers.values())
        tested = {speaker for name in dataset.tested for speaker in sets.original[name].speakers.values()}
        shared = sorted(sets.left_out.get(dataset.training, set()) & tested)
        if shared:
            text = f"{dataset.name}: {len(shared)} of {len(tested)} speakers are in {dataset.training} too:"
            yield Finding("warning", "speaker overlap", f"{text} {few(shared)}. Attackers learn without them.")
        else:
            text = f"{dataset.name}: none of {len(tested)} speakers is among the {len(training)} of the training set"
            yield Finding("ok", "speaker overlap", f"{text} ({dataset.training}, as its folder is called).")
        tried = {utterance for name in dataset.trials.values() for utterance in sets.original[name].recordings}
        twice = sorted(tried & set(enrolment(sets.original[dataset.enrolls]).segments))
        if twice:
            text = f"{dataset.name}: {len(twice)} utterances both enrol and are tried: {few(twice)}."
            yield Finding("warning", "utterance overlap", text)


def missing_lists(sets: Sets, config: Config) -> Iterator[Finding]:
    """Check that no set lacks a sex: averages over the sexes are not what they seem to be there."""
    for dataset in sets.datasets:
        if not sets.original[dataset.enrolls].genders:
            yield Finding("warning", "unknown sexes", f"{dataset.name}: {SEXES_POOLED}")
        stem = dataset.name.removesuffix("_common")
        lacking = [f"{stem}_trials_{name}" for name in config.lists if name != "mixed" and name not in dataset.trials]
        if lacking:
            text = f"there is no {', '.join(lacking)}; results and averages are those of the other sex alone."
            yield Finding("warning", "missing lists", f"{dataset.name}: {text}")


def few_speakers(rows: Rows, config: Config) -> Iterator[Finding]:
    """Check the number of speakers: intervals of few are wide, and below some number not known to hold."""
    check = "number of speakers"
    for name, (row, *_) in _main(rows, "original"):
        speakers = min(row["n_enrolled"], row["n_trial_speakers"])
        step = f"one missed target trial is {100 / row['n_target']:.1f} points"
        text = f"{name}: {speakers} speakers with target trials, {row['n_target']} target trials ({step})"
        if config.evaluation.replicates and not row["intervals"]:
            yield Finding("warning", check, f"{text}: no intervals. {row['notes'].get('intervals', '')}")
        elif speakers < _FEW_SPEAKERS:
            asked = f"the coverage of all {100 * config.evaluation.level:g} % intervals is known"
            yield Finding("warning", check, f"{text}: fewer than the {_FEW_SPEAKERS} for which {asked}; {_STUDIED}.")
        else:
            yield Finding("ok", check, f"{text}: enough for the intervals given; {_STUDIED}.")


def independence(rows: Rows, sets: Sets, config: Config, earlier: Mapping[str, Json]) -> Iterator[Finding]:
    """Compare original speech under ASV_eval with other runs: its result does not depend on the anonymiser.

    But where twins have another sampling rate than their originals, all of the set is heard at another rate.
    """
    check, now, compared, ours = "independence of the anonymiser", _originals(rows), 0, to_dict(config)
    for file, results in earlier.items():
        theirs = results.get("config", {})
        if any(theirs.get(name) != ours[name] for name in ("seed", "attackers", "attacker_settings", "training_sets")):
            yield Finding("note", check, f"{file} was made with other attackers or seeds: OO is not compared.")
            continue
        before = _originals(results.get("conditions", []))
        shared = sorted(now.keys() & before.keys())
        compared += len(shared)
        other = [at for at in shared if now[at] != before[at]]
        if other:
            rates = f"{' '.join(other[0])}: {percent(now[other[0]])}, there {percent(before[other[0]])}"
            text = f"OO differs from {file} in {len(other)} of {len(shared)} conditions, such as {rates}."
            heard = next((one["text"] for one in results.get("sanity", []) if one["check"] == RATES), "")
            if heard != sets.rates:
                yield Finding("note", check, f"{text} There sets were heard at other sampling rates.")
            else:
                text += " It must not depend on the anonymiser: the data changed."
                yield Finding("warning", check, text)
        elif shared:
            yield Finding("ok", check, f"OO is the same as in {file} in all {len(shared)} conditions.")
    if not compared:
        text = "OO, which must not depend on the anonymiser, could not be compared: no other results in this folder."
        yield Finding("note", check, text)


def _originals(rows: Rows) -> dict[Place, float]:
    return {
        (row["dataset"], row["gender"], row["attacker"]): _rate_of(row) for row in rows if row["scenario"] == "original"
    }


# --- versions of anonymised speech ------------------------------------------------------------------------------------


def training_draws(rows: Rows, sets: Sets, config: Config) -> Iterator[Finding]:
    """Tell from how many draws of the anonymised training set attackers learnt: from one they learn less."""
    if config.anonymizer.name == "none" or not any(row["scenario"] == "semi-informed" for row in rows):
        return
    for name in sets.training_sets:
        count, why = 1 + len(sets.draws.get(name, ())), f", {sets.undrawn[name]}" if name in sets.undrawn else ""
        text = f"Semi-informed attackers learnt from {count} anonymised version{'s' if count > 1 else ''} of {name}"
        if count > 1:
            yield Finding("ok", "training draws", f"{text}, each with other random numbers.")
        elif sets.draws_nothing(name):
            yield Finding("note", "training draws", f"{text}{why}.")
        else:
            text += f"{why}: with several they look away from what the anonymiser draws, and most are stronger then."
            text += " Give the anonymiser (anonymizer.name, or anonymizer.command with its command line) to have"
            yield Finding("warning", "training draws", f"{text} anonymizer.training_draws of them.")


def training_draw_gaps(measured: Rows) -> Iterator[Finding]:
    """Note each set whose rates by number of versions could not be measured."""
    text = "{dataset}: {attacker} has no rate from fewer versions of the training set: {note}"
    return (Finding("note", "training draws", text.format(**entry)) for entry in measured if entry["note"])


def trial_draws(rows: Rows, sets: Sets, config: Config) -> Iterator[Finding]:
    """Tell over how many draws of trials results are means: those of one hide a spread."""
    check = "trial draws"
    if config.anonymizer.name == "none" or not _is_anonymised(rows):
        return
    for dataset in sets.datasets:
        count = sets.tested_draws(dataset)
        if count > 1:
            text = f"{dataset.name}: results are means over {count} anonymised versions of the trials."
            yield Finding("ok", check, text)
            continue
        why = few(list(dict.fromkeys(sets.undrawn[name] for name in dataset.tested if name in sets.undrawn)))
        why = f", {why}" if why else ""
        if any(map(sets.draws_nothing, dataset.tested)):
            text = f"{dataset.name}: there is one anonymised version of enrolment and trials{why}."
        else:
            text = (
                f"{dataset.name}: results are of one anonymised version of the trials{why}: another one may give points"
            )
            text += " more or less. Give the anonymiser (anonymizer.name) to have anonymizer.trial_draws of them."
        yield Finding("note", check, text)
    partial = [row for row in rows if "draws" in row["notes"]]
    if partial:
        first = f"{partial[0]['dataset']} {partial[0]['scenario']} {partial[0]['attacker']}"
        text = f"{len(partial)} conditions lack draws, such as {first}: {partial[0]['notes']['draws']}."
        yield Finding("note", check, text)


def shared_draws(sets: Sets) -> Iterator[Finding]:
    """Warn where a speaker has the same draw in enrolment and trials, by the records of the anonymised directories."""
    for dataset in sets.datasets:
        enrolled = _speaker_draws(sets, dataset.enrolls)
        shared = {draw for name in dataset.trials.values() for draw in enrolled & _speaker_draws(sets, name)}
        if shared:
            count = len({stream.split()[-1] for _, stream, _ in shared})
            text = (
                f"{dataset.name}: {count} speakers have the same draw of the anonymiser in enrolment and trials, by"
                " which they are recognised: EERs are far too low for an anonymiser that draws for each side. To have"
                " that, leave anonymizer.shared_draws and anonymizer.seeding=vpc2024 out; of twins of your own, make"
                " one side again by spkver anonymize with --side or another --seed."
            )
            yield Finding("warning", "shared draws", text)


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


def other_notes(rows: Rows, config: Config) -> Iterator[Finding]:
    """Note further things that a reader should know."""
    if config.anonymizer.training_level == "speaker":
        text = "The training set is anonymised by speaker: an attacker trained by utterance would be stronger."
        yield Finding("note", "training level", text)
    turned = [(row, found) for row in rows if (found := _reversal(row)) is not None]
    if turned:
        clear = [row for row, found in turned if found.clear]
        worst = " ".join(place((clear or [turned[0][0]])[0]))
        text = f"{len(turned)} conditions have target trials that score below the others, such as {worst}: an attacker"
        text += " could turn its scores round."
        text += "" if clear else " In none are they more than chance might make of scores that tell nothing."
        yield Finding("warning" if clear else "note", "reversed scores", text)
    cut = [row for row in rows if row["linkability"] is None]
    if cut:
        text = f"{len(cut)} conditions without linkability: {cut[0]['notes'].get('linkability', '')}"
        yield Finding("note", "linkability", text)


def unmeasured_utility(rows: Rows, utility: Json) -> Iterator[Finding]:
    """Warn where nobody measured what anonymised speech is still good for: noise would be as private."""
    if not utility and _is_anonymised(rows):
        text = "Utility was not measured (words, emotions): noise in place of speech would look as private."
        yield Finding("warning", UTILITY, text)


# --- recordings -------------------------------------------------------------------------------------------------------


def duplicate_audio(sets: Sets) -> Iterator[Finding]:
    """Check that no recording has two names: a trial would be trivial, or a training speaker a tested one."""
    for what, directories in (("original", sets.original), ("anonymised", sets.twins)):
        equal = equal_files(directories.values())
        if equal:
            listed = _first([" = ".join(group) for group in equal])
            text = f"{sum(map(len, equal))} files of {what} speech hold the audio of another one: {listed}"
            yield Finding("warning", "duplicate audio", text)
        else:
            yield Finding("ok", "duplicate audio", f"No two files of {what} speech are equal.")


def original_audio(sets: Sets) -> Iterator[Finding]:
    """Check twins for audio of another original directory; that of their own `check_twin` has excluded."""
    originals = {
        f"{directory.name}/{utterance}" for directory in sets.original.values() for utterance in directory.recordings
    }
    left = []
    for group in equal_files([*sets.original.values(), *sets.twins.values()]):
        here, there = [name for name in group if name in originals], [name for name in group if name not in originals]
        # under its own name it was let through before: by an anonymiser that changes nothing, as was asked
        if here and there and not {name.split("/")[1] for name in here} & {name.split("/")[1] for name in there}:
            left.append(f"{there[0]} = {here[0]}")
    if left:
        text = f"{len(left)} files of anonymised speech hold original audio of another set: {_first(left)}"
        yield Finding("warning", "original audio", text)


def _first(examples: Sequence[str]) -> str:
    return "; ".join(examples[:_NAMED]) + (" ..." if len(examples) > _NAMED else ".")


def equal_files(directories: Iterable[DataDir]) -> list[list[str]]:
    """Return groups of utterances, as ``directory/utterance``, whose files hold the same bytes.

    A file that stands under one name in several directories is one; under two names it is a duplicate.

    Of most files some bytes are read alone: those of the same size are compared by their middle before their whole.
    """
    files: dict[tuple[Path, str], str] = {}  # lists may share recordings, under the same names
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            files.setdefault((Path(os.path.realpath(path)), utterance), f"{directory.name}/{utterance}")
    features: tuple[Callable[[Path], object], ...] = (
        lambda path: path.stat().st_size,
        _middle,
        lambda path: sha256(path.read_bytes()).digest(),
    )
    alike = [list(files)]
    for feature in features:
        groups: dict[object, list[tuple[Path, str]]] = {}
        for number_of, group in enumerate(alike):
            for file in group:
                groups.setdefault((number_of, feature(file[0])), []).append(file)
        alike = [group for group in groups.values() if len(group) > 1]
    return sorted([files[file] for file in group] for group in alike)


def _middle(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(path.stat().st_size // 2)
        return file.read(_PART)


def file_tags(sets: Sets) -> Iterator[Finding]:
    """Warn where a tag of an anonymised file (artist, title, comment) holds the name of its speaker."""
    found = []
    for twin in sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(twin.recordings[utterance]) as file:
                tags = [tag for tag, words in file.copy_metadata().items() if twin.speakers[utterance] in words]
                found += [f"{twin.name}/{utterance}, {tag}" for tag in tags]
    if found:
        text = f"Tags of anonymised files name the speaker: {few(found)}. No attacker reads them: remove them."
        yield Finding("warning", "tags of files", text)


def resemblance(sets: Sets, config: Config, *, jobs: int | None = None) -> Iterator[Finding]:
    """Check that anonymised recordings are nearer to their own originals than to those of others.

    Transformations that leave words or rhythm leave that, so do time reversal, spectral inversion, permuted frames and
    noise at -20 dB SNR. Files under each other's names do not, nor noise or silence in place of speech: there is no
    verdict then.
    """
    found: dict[str, list[str]] = {}
    for name, twin in sets.twins.items():
        utterances = spaced(sorted(sets.original[name].recordings))
        if len(utterances) < _FEWEST or config.anonymizer.name == "none":
            continue
        sides = (sets.original[name], twin)
        nearer = nearer_than_others(*(described([one.recordings[of] for of in utterances], jobs) for one in sides))
        wrong = 2 * float((nearer < 0.5).mean())
        # a share has the variance 1 / 12 if names tell nothing; the best of three measures, at 3.5 deviations
        is_none = nearer.mean() < 0.5 + 3.5 / np.sqrt(12 * len(nearer))
        level = "error" if is_none else "warning" if wrong > _MANY else "ok"
        found.setdefault(level, []).append(twin.name if level == "ok" else f"{twin.name} ({100 * min(wrong, 1):.0f} %)")
    for level, names in found.items():
        text = f"Recordings are nearer to their own originals than to those of others in {few(names)}."
        if level != "ok":
            text = f"{text.partition(' in ')[0]}, but not about so many of {few(names)}: they stand under each other's"
            text += " names, or hold no speech. Listen to some, and check wav.scp."
        yield Finding(level, "resemblance", text)


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
