"""Checks of a run: what could make its numbers misleading. Every report shows them.

One check warns that privacy is probably overestimated. A run reports the privacy that its attackers leave; published
evaluations overestimated it by up to 74 %, for reasons that a run can detect: see `reasons`. No reason is a proof, and
the absence of reasons does not prove privacy either.

A check is a function that takes an `Evaluated` run, whose table of results it reads, and yields `Finding`s; the checks
of recordings are in `spkver.voiceprivacy.recording_checks`. `CHECKS` lists all checks in the order of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evaluation.metrics import reversal_at
from evaluation.reports import (
    Condition,
    Failure,
    Finding,
    FusionWeights,
    Outcome,
    Results,
    UtilityFigure,
    headlines,
    main_outcomes,
    overall,
    percent,
)
from evaluation.trials import INVERTING, SCENARIOS
from spkbase.configuration import to_dict
from spkbase.errors import DataError, few
from spkbase.files import load_json
from spkver.anonymization import RECORD
from spkver.attackers import attacker_name, default_attackers
from spkver.datadir import SEXES_POOLED, enrolment
from spkver.voiceprivacy import recording_checks
from spkver.voiceprivacy.assessment import AttackerOrder, Table
from spkver.voiceprivacy.choosing import attacker_specs
from spkver.voiceprivacy.experiment import count_lists, failures_by_attacker
from spkver.voiceprivacy.recording_checks import RECORDING_CHECKS
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config

RATES = "sampling rates"
UTILITY = "utility"
WITHOUT_VOICE = "recognised without a voice"
OVERESTIMATED = "overestimated privacy"
"""Names of checks that others refer to."""

FEW_TRAINING_SPEAKERS = 100
"""With fewer speakers an attacker learns little about how voices differ; the challenges train on 921."""

# kinds of attackers
_NO_SPEECH = ("properties", "session")
_NO_VOICE = (*_NO_SPEECH, "content")
_NO_VOICE_PRINT = (*_NO_VOICE, "prosody", "fusion")
# the fewest speakers for which the coverage of all intervals was measured (docs/uncertainty.md)
_FEW_SPEAKERS = 20
_BROKEN = 0.02  # an EER below which practically everybody is recognised


@dataclass(frozen=True)
class Evaluated:
    """The results and data that checks take.

    Attributes
    ----------
    table : Table
    sets : Sets
    config : Config
    failures : sequence of Failure
        See `Experiment.failures`.
    fusions : sequence of FusionWeights
        See `spkver.voiceprivacy.scores.fusion_weights`.
    utility : sequence of UtilityFigure
        Result of `spkver.voiceprivacy.utility`.
    earlier : dict of str to Results
        Results of other anonymisers in the same folder, by file name.
    simulated : bool
        Whether the speech is SIMULATED.
    lacking : dict
        Recordings that an extractor failed on, by the extractor.
    heard : dict
        Findings of `RECORDING_CHECKS`, by the names of these.
    """

    table: Table
    sets: Sets
    config: Config
    failures: Sequence[Failure] = ()
    fusions: Sequence[FusionWeights] = ()
    utility: Sequence[UtilityFigure] = ()
    earlier: Mapping[str, Results] = field(default_factory=dict)
    simulated: bool = False
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    heard: Mapping[str, Sequence[Finding]] = field(default_factory=dict)

    def main(self, scenario: str = "") -> list[Outcome]:
        """Return the main outcomes, see `main_outcomes`, of one scenario or of all."""
        return [one for one in main_outcomes(self.table.outcomes) if scenario in ("", one.scenario)]

    @property
    def is_anonymised(self) -> bool:
        """Whether there are results on anonymised speech."""
        return any(outcome.anonymised for outcome in self.table.outcomes)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each attacker, see `spkver.attackers.Spec`; some fusions are not configured by their names."""
        fusions = {fusion.attacker: "fusion" for fusion in self.fusions}
        return fusions | {name: spec.kind for name, spec in attacker_specs(self.config).items()}

    def of_voices(self, outcome: Outcome) -> dict[str, float]:
        """Return the EER of each attacker that hears voices."""
        rows = [row for row in outcome.conditions if self.kinds.get(row.attacker) not in _NO_VOICE]
        return {row.attacker: row.eer.value for row in rows}


# --- attackers, and their order ---------------------------------------------------------------------------------------


def failed_attackers(run: Evaluated) -> Iterator[Finding]:
    """Warn of each attacker that failed."""
    for name, theirs in failures_by_attacker(run.failures).items():
        where = few([f"{failure.dataset} {failure.gender} {failure.scenario}" for failure in theirs])
        text = f"{name} has no scores for {count_lists(theirs)} ({where}): results there are from the other attackers."
        yield Finding("warning", "attackers that failed", f"{text} {theirs[0].reason}")


def recordings_left_out(run: Evaluated) -> Iterator[Finding]:
    """Warn of recordings that an extractor failed on; note the utterances that `split` left out."""
    for name, of in run.lacking.items():
        if of:
            text = f"{name} failed on {len(of)} recordings ({few(of)}): scores of their trials are guesses."
            yield Finding("warning", "recordings without vectors", text)
    if names := run.sets.dropped:
        text = f"{len(names)} utterances were left out on both sides, by split --missing drop: {few(names)}."
        yield Finding("note", "utterances left out", text)


def uninformative(run: Evaluated) -> Iterator[Finding]:
    """Find attackers whose scores are all equal or inverted; if there are no others there is no verdict."""

    def is_broken(row: Condition) -> bool:
        reversal = reversal_at(row.metric("eer.interpolated").value, min(row.n_target, row.n_nontarget))
        return row.metric("min_cllr").value > 1 - 1e-9 or (reversal is not None and reversal.clear)

    found: dict[tuple[str, str], list[str]] = {}
    for outcome in run.table.outcomes:
        # properties are equal where files are alike, which is as it should be
        rows = [row for row in outcome.conditions if run.kinds.get(row.attacker) != "properties"]
        if broken := [row.attacker for row in rows if is_broken(row)]:
            level = "error" if len(broken) == len(rows) and outcome.anonymised else "warning"
            found.setdefault((level, few(broken)), []).append(" ".join(outcome.identity))
    for (level, names), where in found.items():
        text = f"Scores of {names} are all equal or inverted ({few(where)}): they do not count and show no privacy."
        yield Finding(level, "broken attackers", text)


def pooled_trials(run: Evaluated) -> Iterator[Finding]:
    """Warn of lists whose pooled error rate is far above both single rates: their scores have different offsets."""
    rates: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in run.table.conditions:
        rates.setdefault((row.dataset, row.scenario, row.attacker), {})[row.gender] = row.eer.value
    for at, found in rates.items():
        alone = {gender: rate for gender, rate in found.items() if gender != POOLED}
        if len(alone) > 1 and found.get(POOLED, 0.0) > 1.25 * max(alone.values()) + 0.02:
            lists = ", ".join(f"{gender} {percent(rate)}" for gender, rate in alone.items())
            text = f"{' '.join(at)}: the pooled EER is {percent(found[POOLED])}, above the EER of each list ({lists}):"
            yield Finding("warning", "pooled trials", f"{text} scores of the lists have different offsets.")


def attacker_strength(run: Evaluated) -> Iterator[Finding]:
    """Check that attackers recognise original speech; note how well speakers are recognised without it."""
    limit = run.config.weak_attacker_eer
    for outcome in run.main("original"):
        rates = run.of_voices(outcome)
        if not rates:
            continue
        strongest = min(rates, key=lambda name: rates[name])
        rate = rates[strongest]
        text = f"{_name(outcome)}: on original speech the strongest attacker ({strongest}) has an EER of"
        text += f" {percent(rate)}"
        if outcome.minimum and strongest == outcome.strongest and outcome.rate.high >= 0:
            text += f" (interval to {percent(outcome.rate.high)})"
        weak = f", above {percent(limit)}: it is weak, and privacy is overestimated."
        level, end = ("warning", weak) if rate > limit else ("ok", ": it recognises speakers well.")
        yield Finding(level, "attacker strength", text + end)
        for row in outcome.conditions:
            if run.kinds.get(row.attacker) in _NO_SPEECH:
                text = f"{_name(outcome)}: without their speech ({row.attacker}) speakers of original recordings are"
                text += f" recognised with an EER of {percent(row.eer.value)}; chance is 50 %. The corpus alone reveals"
                yield Finding("note", "recognition without speech", f"{text} this much to every attacker.")


def recognised_without_a_voice(run: Evaluated) -> Iterator[Finding]:
    """Warn if the strongest attacker on anonymised speech hears none, in a sentence for the verdict."""
    results = Results(conditions=tuple(run.table.conditions), outcomes=tuple(run.table.outcomes))
    anonymised = [headline for headline in headlines(results) if headline.anonymised]
    attacker = overall(anonymised).attacker if anonymised else ""
    if run.kinds.get(attacker) not in _NO_SPEECH:
        return
    text = f"The strongest attacker ({attacker}) hears no voice: it knows speakers by properties of their files or by"
    text += " noise, which an anonymiser can remove."
    rates: dict[str, float] = {}
    for outcome in run.main():
        if outcome.anonymised:
            for name, rate in run.of_voices(outcome).items():
                rates[name] = min(rate, rates.get(name, rate))
    if rates:
        name = min(rates, key=lambda attacker: rates[attacker])
        text += f" The strongest attacker on voices ({name}) has an equal error rate of {percent(rates[name])}."
    yield Finding("warning", WITHOUT_VOICE, text)


def attacker_order(run: Evaluated) -> Iterator[Finding]:
    """Check that no attacker is weaker with more knowledge; significantly weaker attackers were not trained well."""
    for one in run.table.order:
        text, gap = f"{_name(one)}: the semi-informed attacker", one.difference
        if one.rates[0] <= one.rates[1]:
            text += f" is at least as strong as the {one.other} one, {_against(one.rates)}."
            yield Finding("ok", "attacker order", text)
            continue
        text += f" is weaker than the {one.other} one, {_against(one.rates)}"
        if gap is None:
            text += "; without intervals it is not known whether that is chance."
        else:
            ends = f"interval {100 * gap.low:.1f} to {100 * gap.high:.1f}"
            text += f" (difference {100 * gap.value:.1f} points, {ends})"
            text += ": that may be chance." if gap.low <= 0 else ", though it knows more: it was not trained well."
        yield Finding("warning" if gap is not None and gap.low > 0 else "note", "attacker order", text)


def outside_attackers(run: Evaluated) -> Iterator[Finding]:
    """Note the user-supplied attackers, and the conditions that they did not score."""
    conditions = [
        (dataset.name, gender, scenario.name)
        for dataset in run.sets.datasets
        for scenario in SCENARIOS
        for gender in dataset.trials
    ]
    for name, spec in attacker_specs(run.config).items():
        if spec.row is None:
            scored = {row.identity[:3] for row in run.table.conditions if row.attacker == name}
            asked = [condition for condition in conditions if condition[2] in spec.scenarios]
            left = [" ".join(condition) for condition in asked if condition not in scored]
            text = f"{name} ({spec.preset}) was left out of {len(left)} conditions: {few(left)}."
            text = text if left else f"{name} is {spec.preset}; it scores every condition."
            yield Finding("warning" if left else "note", "user-supplied attackers", text)


def fusions(run: Evaluated) -> Iterator[Finding]:
    """Note the weights of each fusion, and the attackers without weight."""
    for fusion in run.fusions:
        weights, alone = fusion.weights.weights, fusion.alone
        shown = ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items() if weight)
        best = min(alone, key=lambda name: alone[name].cllr)
        idle = sum(1 for weight in weights.values() if not weight)
        text = f"{fusion.attacker}, trained on {fusion.training} ({fusion.kind} trials): {shown};"
        text += f" no weight for {idle} others. There its EER is {percent(fusion.cross_validated.eer)}, of the"
        text += f" best alone ({best}) {percent(alone[best].eer)}."
        text += "".join(f" Left out: {name}, {why}." for name, why in fusion.left_out.items())
        yield Finding("note", "fusion", text)


# --- sets -------------------------------------------------------------------------------------------------------------


def shared_speakers(run: Evaluated) -> Iterator[Finding]:
    """Check that no tested speaker is in the training set; attackers are trained without shared speakers."""
    sets = run.sets
    for dataset in sets.datasets:
        tested = {speaker for name in dataset.tested for speaker in sets.original[name].speakers.values()}
        shared = sorted(sets.left_out.get(dataset.training, set()) & tested)
        if shared:
            text = f"{dataset.name}: {len(shared)} of {len(tested)} speakers are in {dataset.training} too:"
            yield Finding("warning", "speaker overlap", f"{text} {few(shared)}. Attackers learn without them.")
        else:
            text = f"{dataset.name}: none of {len(tested)} speakers is in the training set ({dataset.training})."
            yield Finding("ok", "speaker overlap", text)
        tried = {utterance for name in dataset.trials.values() for utterance in sets.original[name].recordings}
        twice = sorted(tried & set(enrolment(sets.original[dataset.enrolls]).segments))
        if twice:
            text = f"{dataset.name}: {len(twice)} utterances are in enrolment and trials: {few(twice)}."
            yield Finding("warning", "utterance overlap", text)


def missing_lists(run: Evaluated) -> Iterator[Finding]:
    """Check that no set lacks a sex: an average over the sexes would be misleading."""
    for dataset in run.sets.datasets:
        if not run.sets.original[dataset.enrolls].sexes:
            yield Finding("warning", "unknown sexes", f"{dataset.name}: {SEXES_POOLED}")
        stem = dataset.name.removesuffix("_common")
        lists = [f"{stem}_trials_{sex}" for sex in run.config.lists if sex != "mixed" and sex not in dataset.trials]
        if lists:
            text = f"{dataset.name}: there is no {', '.join(lists)}; results and averages are for the other sex only."
            yield Finding("warning", "missing lists", text)


def few_speakers(run: Evaluated) -> Iterator[Finding]:
    """Check the number of speakers: with few, intervals are wide, and their coverage is not known."""
    for outcome in run.main("original"):
        row = outcome.conditions[0]
        speakers = min(row.n_enrolled, row.n_trial_speakers)
        step = f"one missed target trial is {100 / row.n_target:.1f} points"
        text = f"{_name(row)}: {speakers} speakers with target trials, {row.n_target} target trials ({step})"
        level, end = "ok", ": enough for the intervals given."
        if run.config.evaluation.resamples and not row.intervals:
            level, end = "warning", f": no intervals. {row.notes.get('intervals', '')}"
        elif speakers < _FEW_SPEAKERS:
            end = f": the coverage of intervals was not studied with fewer than {_FEW_SPEAKERS}."
            level = "warning"
        yield Finding(level, "number of speakers", text + end)


def independence(run: Evaluated) -> Iterator[Finding]:
    """Compare results on original speech with other runs with the same seed, attackers and sampling rates.

    They must not depend on the anonymiser.
    """

    def original_rates(rows: Iterable[Condition]) -> dict[tuple[str, str, str], float]:
        return {(row.dataset, row.gender, row.attacker): row.eer.value for row in rows if row.scenario == "original"}

    check, now, ours = "independence of the anonymiser", original_rates(run.table.conditions), to_dict(run.config)
    for file, results in run.earlier.items():
        theirs = results.config
        before = original_rates(results.conditions)
        same = all(theirs.get(key) == ours[key] for key in ("seed", "attackers", "attacker_settings", "training_sets"))
        rates = next((finding.text for finding in results.checks if finding.check == RATES), "")
        shared = sorted(now.keys() & before.keys())
        if not same or rates != run.sets.rates or not shared:
            continue
        if other := [at for at in shared if now[at] != before[at]]:
            values = f"{' '.join(other[0])}: {percent(now[other[0]])}, there {percent(before[other[0]])}"
            text = f"EERs of original speech differ from those in {file} in {len(other)} of {len(shared)} conditions,"
            text += f" such as {values}. They must not depend on the anonymiser: the data changed."
            yield Finding("warning", check, text)
        else:
            text = f"EERs of original speech are the same as in {file} in all {len(shared)} conditions."
            yield Finding("ok", check, text)


# --- anonymised versions ----------------------------------------------------------------------------------------------


def draws(run: Evaluated) -> Iterator[Finding]:
    """Check the number of anonymised versions of the training sets and of the trials."""
    sets, rows = run.sets, run.table.conditions
    for name in sets.training_sets if any(row.scenario == "semi-informed" for row in rows) else ():
        count = len(sets.versions[name])
        text = f"Semi-informed attackers learnt from {count} anonymised version{'s' if count > 1 else ''} of {name}"
        text += f", {sets.once[name].reason}" if name in sets.once else ""
        level = "ok" if count > 1 else "note" if sets.is_fixed(name) else "warning"
        if level == "warning":
            text += ": most are stronger with several. Give the anonymiser (anonymizer.name, or anonymizer.command)"
            text += " to have anonymizer.training_draws of them"
        yield Finding(level, "training draws", f"{text}.")
    for dataset in sets.datasets if run.is_anonymised else ():
        count = sets.tested_draws(dataset)
        text = f"{dataset.name}: results are means over {count} anonymised versions of the trials"
        if count == 1:
            reasons = dict.fromkeys(sets.once[name].reason for name in dataset.tested if name in sets.once)
            text = ", ".join([f"{dataset.name}: results are of one anonymised version of the trials", *reasons])
            if not any(map(sets.is_fixed, dataset.tested)):
                text += ": another one may differ by points. Give the anonymiser (anonymizer.name) to have"
                text += " anonymizer.trial_draws of them"
        yield Finding("ok" if count > 1 else "note", "trial draws", f"{text}.")
    if partial := [row for row in rows if "draws" in row.notes]:
        text = f"{len(partial)} conditions lack draws, such as {' '.join(partial[0].identity)}:"
        yield Finding("note", "trial draws", f"{text} {partial[0].notes['draws']}.")


def shared_draws(run: Evaluated) -> Iterator[Finding]:
    """Warn if a speaker has the same draw in enrolment and trials, by the records of the anonymised directories."""

    def drawn(name: str) -> set[tuple[str, str, Any]]:
        """Return the anonymiser, stream of random numbers and seed of each speaker, in all versions."""
        found: set[tuple[str, str, Any]] = set()
        for twin in run.sets.versions[name]:
            with suppress(DataError, KeyError, TypeError):  # no record, or none of ours
                record = load_json(twin.path / RECORD)
                made = record["anonymizer"]
                if made["level"] == "speaker" and made["name"] != "none":
                    seed = None if made["seeding"] == "vpc2024" else record["seed"]
                    found |= {(made["name"], entry["stream"], seed) for entry in record["files"].values()}
        return found

    for dataset in run.sets.datasets:
        shared = drawn(dataset.enrolls) & {draw for name in dataset.trials.values() for draw in drawn(name)}
        if shared:
            count = len({stream.split()[-1] for _, stream, _ in shared})
            text = f"{dataset.name}: {count} speakers have the same draw of the anonymiser in enrolment and trials,"
            text += " which identifies them: EERs are far too low for an anonymiser that draws for each side. Leave"
            text += " anonymizer.shared_draws and anonymizer.seeding=vpc2024 out, or anonymise one side again by"
            yield Finding("warning", "shared draws", f"{text} spkver anonymize with --side or another --seed.")


def other_notes(run: Evaluated) -> Iterator[Finding]:
    """Note synthetic speech, resampled sets, and missing results."""
    if run.simulated:
        text = "The speech is synthetic (eSpeak NG): the numbers say nothing about how well people are protected."
        yield Finding("warning", "SIMULATED speech", text)
    if run.sets.rates:  # sets that are resampled
        yield Finding("note", RATES, run.sets.rates)
    if run.config.anonymizer.training_level == "speaker":
        text = "The training set is anonymised by speaker: an attacker trained by utterance would be stronger."
        yield Finding("note", "training level", text)
    if unlinked := [row for row in run.table.conditions if row.linkability is None]:
        text = f"{len(unlinked)} conditions without linkability: {unlinked[0].notes.get('linkability', '')}"
        yield Finding("note", "linkability", text)
    for warning in dict.fromkeys(figure.rate.warning for figure in run.utility):
        if warning:
            yield Finding("note", "words", warning)
    if run.is_anonymised and not any(figure.kind == "anonymised" for figure in run.utility):
        text = "Utility was not measured (words, emotions): unintelligible noise would score as well."
        yield Finding("warning", UTILITY, text)


# --- privacy that is probably overestimated ---------------------------------------------------------------------------


def overestimated(run: Evaluated) -> Iterator[Finding]:
    """Warn if privacy is probably overestimated, in a sentence for the verdict; see `reasons`.

    There is no warning if attackers recognise practically everybody in each set: stronger attackers would change
    little.
    """
    lowest: dict[str, float] = {}
    for outcome in run.main():
        if outcome.anonymised:
            lowest[outcome.dataset] = min(outcome.eer.value, lowest.get(outcome.dataset, 1.0))
    if max(lowest.values(), default=1.0) < _BROKEN:
        return
    found = list(dict.fromkeys(reasons(run)))
    if found and run.is_anonymised:
        listed = found[0] if len(found) == 1 else f"{'; '.join(found[:-1])}; and {found[-1]}"
        text = f"This privacy is probably overestimated, because {listed}."
        yield Finding("warning", OVERESTIMATED, text)


CHECKS: tuple[Callable[..., Iterator[Finding]], ...] = (
    failed_attackers,
    recordings_left_out,
    recording_checks.resemblance,
    uninformative,
    pooled_trials,
    recognised_without_a_voice,
    attacker_strength,
    attacker_order,
    outside_attackers,
    shared_speakers,
    recording_checks.equal_audio,
    recording_checks.broken_recordings,
    recording_checks.file_tags,
    recording_checks.hidden_speech,
    recording_checks.short_recordings,
    missing_lists,
    few_speakers,
    independence,
    draws,
    shared_draws,
    other_notes,
    fusions,
    overestimated,
)


def all_findings(evaluated: Evaluated) -> list[Finding]:
    """Return the findings of `CHECKS`."""
    found = (evaluated.heard[check.__name__] if check in RECORDING_CHECKS else check(evaluated) for check in CHECKS)
    return [finding for findings in found for finding in findings]


def reasons(run: Evaluated) -> Iterator[str]:
    """Yield the reasons to expect that a stronger attacker exists.

    - Attackers disagree: one voice-based attacker is ahead of all others by more than both intervals.
    - On original speech no attacker has an EER of ``weak_attacker_eer`` or below.
    - Attackers with more knowledge (semi-informed) are significantly weaker than attackers with less.
    - Recordings hold little speech.
    - Training sets have few speakers, or one anonymised version.
    - No attacker uses a neural network, no network has seen anonymised speech, no attacker adapts to the trials, or one
      failed.
    - Default attackers that can run here were left out.
    """
    for outcome in run.main("original"):
        rate = min(run.of_voices(outcome).values(), default=0.0)
        if rate > run.config.weak_attacker_eer:
            yield f"attackers are weak on original speech ({_name(outcome)}: {100 * rate:.1f} %)"
    for finding in run.heard.get("short_recordings", ()):
        yield f"recordings are short ({finding.text})"
    ahead = []
    for outcome in run.main():
        voices = sorted(
            (row.eer.value, row.eer.low, row.eer.high, row.attacker)
            for row in outcome.conditions
            if row.level != INVERTING and run.kinds.get(row.attacker) not in _NO_VOICE_PRINT and row.eer.has_interval
        )
        # if the strongest attacker is ahead of the next by more than both intervals, the others miss something
        if outcome.anonymised and len(voices) > 1 and voices[0][2] < voices[1][1]:
            ahead.append(f"{_name(outcome)} {outcome.scenario}: {voices[0][3]}")
    if ahead:
        yield f"attackers disagree (one is ahead of all others, beyond both intervals: {few(ahead)})"
    for one in run.table.order:
        if one.difference is not None and one.difference.low > 0:
            where = f"{_name(one)}: {_against(one.rates)}"
            yield f"semi-informed attackers are weaker than {one.other} ones ({where})"
    informed = bool(run.main("semi-informed"))
    for name in run.sets.training_sets:
        count = len(set(run.sets.original[name].speakers.values()))
        if count < FEW_TRAINING_SPEAKERS:
            yield f"attackers learn from few speakers ({name}: {count})"
        several = len(run.sets.versions[name]) > 1 or run.sets.is_fixed(name)
        if informed and not several:
            yield f"semi-informed attackers learn from one anonymised version alone ({name})"
    scored = {row.attacker for row in run.table.conditions}
    specs = {name: spec for name, spec in attacker_specs(run.config).items() if name in scored}
    adapted = {attacker_name(one) for one, theirs in run.config.attacker_settings.items() if theirs.get("adapted")}
    if not any(spec.is_network for spec in specs.values()):
        yield "no attacker uses a neural network"
    elif not any(":" in spec.preset for spec in specs.values()):  # how plug-ins were trained is not known
        yield "no attacker's network has seen anonymised speech"
    if not any(spec.adapts or name in adapted for name, spec in specs.items()):
        yield "no attacker adapts to the trials"
    usual = default_attackers()
    left = [name for name in usual if name not in run.config.attackers]
    if set(left) - {"properties"}:  # which hears no voice
        yield f"{len(left)} of the {len(usual)} default attackers were not run ({few(left, most=6)})"
    if run.failures:
        yield f"attackers failed ({', '.join(failures_by_attacker(run.failures))})"


def _name(row: Condition | Outcome | AttackerOrder) -> str:
    """Return the name of a set, with the sex unless all speakers are pooled."""
    return row.dataset if row.gender == POOLED else f"{row.dataset} {row.gender}"


def _against(rates: Sequence[float]) -> str:
    return " against ".join(map(percent, rates))
