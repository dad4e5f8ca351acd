"""Checks of a run: what could make its numbers misleading. Every report shows them.

One check warns that privacy is probably overestimated. A run reports the privacy that its attackers leave; published
evaluations overestimated it by up to 74 %, for reasons that a run can detect: see `reasons`. None of them is a proof,
and the absence of reasons does not prove privacy either.

A check is a function that takes an `Evaluated` run, reads its results, and yields `Finding`s. The checks of recordings
are in `spkver.voiceprivacy.recording_checks`. `CHECKS` lists all checks in the order of the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from operator import attrgetter
from typing import Any

from evaluation.metrics import reversal_at
from evaluation.reports import (
    Condition,
    Finding,
    Outcome,
    Pairing,
    Results,
    headlines,
    main_outcomes,
    overall,
    percent,
)
from evaluation.trials import INVERTING, SCENARIOS
from spkbase.configuration import to_dict
from spkbase.errors import DataError, counted, few
from spkbase.files import load_json
from spkver.anonymization import RECORD, recorded_anonymizer
from spkver.attackers import Fusion, attacker_name, default_attackers, parse_spec
from spkver.datadir import SEXES_POOLED, enrolment
from spkver.voiceprivacy import recording_checks
from spkver.voiceprivacy.assessment import AttackerOrder
from spkver.voiceprivacy.choosing import attacker_specs
from spkver.voiceprivacy.experiment import count_lists, failures_by_attacker
from spkver.voiceprivacy.pairs import DOUBTFUL
from spkver.voiceprivacy.recording_checks import RECORDING_CHECKS
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets
from spkver.voiceprivacy.settings import Config

RATES = "sampling rates"
PAIRS = "pairs"
SESSIONS = "sessions"
UTILITY = "utility"
WITHOUT_VOICE = "recognised without a voice"
OVERESTIMATED = "overestimated privacy"
"""Names of checks that others refer to."""

FEW_TRAINING_SPEAKERS = 100
"""With fewer speakers an attacker learns little about how voices differ; the challenges train on 921."""

# kinds of attackers
_NO_SPEECH = ("properties", "session")
_FUSION_WITH_WORDS = "fusion with words"
# attackers that do not judge by the voice alone
_NO_VOICE = (*_NO_SPEECH, "content", _FUSION_WITH_WORDS)
_NO_VOICE_PRINT = (*_NO_VOICE, "prosody", "durations", "fusion")
# the fewest speakers for which the coverage of all intervals was measured (docs/uncertainty.md)
_FEW_SPEAKERS = 20
_STATES = {
    "exchanged": ("error", "Files seem to be exchanged: listen to some, and check wav.scp"),
    "doubtful": ("warning", "Some files may be exchanged: listen to them, and check wav.scp"),
    "not confirmed": ("note", "It could not be confirmed that each file belongs to its original"),
    "identical": ("ok", "Who the files belong to does not matter"),
    "confirmed": ("ok", "Files belong to their originals"),
    "certain": ("ok", "Files belong to their originals"),
}
_LAST_PART = re.compile("[-_/][^-_/]*$")
_BROKEN = 0.02  # at a lower EER practically everybody is recognised


@dataclass(frozen=True)
class Evaluated:
    """The results and data that checks take.

    Attributes
    ----------
    results : Results
        The results, so far without checks.
    sets : Sets
    config : Config
    order : sequence of AttackerOrder
        Attackers with more and with less knowledge, for each set.
    earlier : dict of str to Results
        Results of other anonymisers in the same folder, by file name.
    lacking : dict
        Recordings on which an extractor failed, by extractor.
    recordings : dict
        Findings of each of `RECORDING_CHECKS`, by the check's name.
    """

    results: Results
    sets: Sets
    config: Config
    order: Sequence[AttackerOrder] = ()
    earlier: Mapping[str, Results] = field(default_factory=dict)
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    recordings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)

    @property
    def conditions(self) -> Sequence[Condition]:
        """Every attacker in every scenario on every list."""
        return self.results.conditions

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The strongest attackers, in the order of the conditions."""
        return self.results.by_conditions()

    def main(self, scenario: str = "") -> list[Outcome]:
        """Return the main outcomes, see `main_outcomes`, of one scenario or of all."""
        return [
            outcome
            for outcome in main_outcomes(self.outcomes)
            if scenario in ("", outcome.scenario)
        ]

    @property
    def is_anonymised(self) -> bool:
        """Whether there are results on anonymised speech."""
        return any(outcome.anonymised for outcome in self.outcomes)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each attacker, see `spkver.attackers.Spec`.

        Fusions that the plan adds have no entry in the configuration.
        """
        kinds = dict.fromkeys(map(attrgetter("attacker"), self.results.fusions), "fusion")
        for name, spec in attacker_specs(self.config).items():
            kinds[name] = spec.kind
            if spec.kind == "fusion":
                kinds[Fusion(name).with_words.name] = _FUSION_WITH_WORDS
        return kinds

    def rates_of_voices(self, outcome: Outcome) -> dict[str, float]:
        """Return the EER of each attacker that compares voices."""
        rates = {}
        for row in outcome.conditions:
            if self.kinds.get(row.attacker) not in _NO_VOICE:
                rates[row.attacker] = row.eer.value
        return rates


# --- attackers, and their order ---------------------------------------------------------------------------------------


def failed_attackers(run: Evaluated) -> Iterator[Finding]:
    """Warn of each attacker that failed."""
    for name, theirs in failures_by_attacker(run.results.failures).items():
        where = few(list(map(attrgetter("where"), theirs)))
        text = f"{name} has no scores for {count_lists(theirs)} ({where}): results there are from the other attackers."
        yield Finding("warning", "attackers that failed", f"{text} {theirs[0].reason}")


def recordings_left_out(run: Evaluated) -> Iterator[Finding]:
    """Warn of recordings that an extractor failed on; note the utterances that `split` left out."""
    for name, recordings in run.lacking.items():
        if recordings:
            text = f"{name} failed on {counted(len(recordings), 'recording')} ({few(recordings)}):"
            yield Finding(
                "warning",
                "recordings without vectors",
                f"{text} scores of their trials are guesses.",
            )
    names = run.sets.dropped
    if names:
        text = f"Left out on both sides, by split --missing drop: {counted(len(names), 'utterance')} ({few(names)})."
        yield Finding("note", "utterances left out", text)


def pairs(run: Evaluated) -> Iterator[Finding]:
    """Check that anonymised recordings belong to their originals, see `spkver.voiceprivacy.pairs`."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for pairing in run.results.pairings:
        named = reasons.setdefault(pairing.state, {}).setdefault(pairing.reason, [])
        if pairing.directory not in named:
            named.append(pairing.directory)
    for state, directories_by_reason in reasons.items():
        texts = [
            f"{few(directories)}: {reason}" for reason, directories in directories_by_reason.items()
        ]
        level, start = _STATES[state]
        yield Finding(level, PAIRS, f"{start} ({'; '.join(texts)}).")
    foreign = [pairing.directory for pairing in run.results.pairings if _returns_others(pairing)]
    if foreign:
        text = f"The anonymiser may return the speech of other people, in {few(list(dict.fromkeys(foreign)))}."
        yield Finding("warning", "speech of others", text)


def uninformative(run: Evaluated) -> Iterator[Finding]:
    """Find attackers whose scores are all equal or inverted; if all attackers are such, there is no verdict.

    Equal scores are correct, and not reported, if different speakers have identical recordings.
    """
    identical = _identical_lists(run.results.pairings)
    lists: dict[tuple[str, str], list[str]] = {}
    for outcome in run.outcomes:
        # files with equal properties rightly get equal scores
        rows = [row for row in outcome.conditions if run.kinds.get(row.attacker) != "properties"]
        broken = [row.attacker for row in rows if _is_broken(row)]
        if broken:
            level = "error" if len(broken) == len(rows) and outcome.anonymised else "warning"
            if outcome.anonymised and outcome.identity[:2] in identical:
                level = "note"
            lists.setdefault((level, few(broken)), []).append(" ".join(outcome.identity))
    for (level, names), where in lists.items():
        text = f"Scores of {names} are all equal or inverted ({few(where)}): they do not count and show no privacy."
        if level == "note":
            text = f"Scores of {names} are all equal ({few(where)}): the files of different speakers are the same."
        yield Finding(level, "broken attackers", text)


def pooled_trials(run: Evaluated) -> Iterator[Finding]:
    """Warn of pooled lists whose error rate is far above that of either sex.

    The scores of the sexes have different offsets.
    """
    rates: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in run.conditions:
        rates.setdefault((row.dataset, row.scenario, row.attacker), {})[row.gender] = row.eer.value
    for names, alone in rates.items():
        pooled = alone.pop(POOLED, 0.0)
        if len(alone) > 1 and pooled > 1.25 * max(alone.values()) + 0.02:
            lists = ", ".join(f"{gender} {percent(rate)}" for gender, rate in alone.items())
            text = f"{' '.join(names)}: the pooled EER is {percent(pooled)}, above the EER of each list ({lists}):"
            yield Finding(
                "warning", "pooled trials", f"{text} scores of the lists have different offsets."
            )


def attacker_strength(run: Evaluated) -> Iterator[Finding]:
    """Check that attackers recognise original speech; note how well they do without a voice."""
    limit = run.config.weak_attacker_eer
    for outcome in run.main("original"):
        rates = run.rates_of_voices(outcome)
        if not rates:
            continue
        strongest, rate = _smallest(rates)
        text = f"{_name(outcome)}: on original speech the strongest attacker ({strongest}) has an EER of"
        text += f" {percent(rate)}"
        if outcome.minimum and strongest == outcome.strongest and outcome.rate.high >= 0:
            text += f" (interval to {percent(outcome.rate.high)})"
        if rate > limit:
            text += f", above {percent(limit)}: it is weak, and privacy is overestimated."
            yield Finding("warning", "attacker strength", text)
        else:
            yield Finding("ok", "attacker strength", f"{text}: it recognises speakers well.")
        for row in outcome.conditions:
            if run.kinds.get(row.attacker) in _NO_SPEECH:
                text = f"{_name(outcome)}: without their speech ({row.attacker}) speakers of original recordings are"
                text += f" recognised with an EER of {percent(row.eer.value)}; chance is 50 %. The corpus alone reveals"
                yield Finding(
                    "note", "recognition without speech", f"{text} this much to every attacker."
                )


def recognised_without_a_voice(run: Evaluated) -> Iterator[Finding]:
    """Warn if the strongest attacker on anonymised speech does not use the voice, in a sentence for the verdict."""
    anonymised = headlines(run.results, anonymised=True)
    if not anonymised:
        return
    attacker = overall(anonymised).attacker
    if run.kinds.get(attacker) not in _NO_SPEECH:
        return
    text = f"The strongest attacker ({attacker}) hears no voice: it knows speakers by properties of their files or by"
    text += " noise, which an anonymiser can remove."
    rates: dict[str, float] = {}
    for outcome in run.main():
        if outcome.anonymised:
            for name, rate in run.rates_of_voices(outcome).items():
                rates[name] = min(rate, rates.get(name, rate))
    if rates:
        name, rate = _smallest(rates)
        text += f" The strongest attacker on voices ({name}) has an equal error rate of {percent(rate)}."
    yield Finding("warning", WITHOUT_VOICE, text)


def attacker_order(run: Evaluated) -> Iterator[Finding]:
    """Check that no attacker is weaker with more knowledge; significantly weaker attackers were not trained well."""
    for order in run.order:
        text = f"{_name(order)}: the semi-informed attacker"
        gap = order.difference
        if order.rates[0] <= order.rates[1]:
            text += f" is at least as strong as the {order.other} one, {_against(order.rates)}."
            yield Finding("ok", "attacker order", text)
            continue
        text += f" is weaker than the {order.other} one, {_against(order.rates)}"
        if gap is None:
            text += "; without intervals it is not known whether that is chance."
            yield Finding("note", "attacker order", text)
            continue
        ends = f"interval {100 * gap.low:.1f} to {100 * gap.high:.1f}"
        text += f" (difference {100 * gap.value:.1f} points, {ends})"
        if gap.low > 0:
            text += ", though it knows more: it was not trained well."
            yield Finding("warning", "attacker order", text)
        else:
            yield Finding("note", "attacker order", f"{text}: that may be chance.")


def outside_attackers(run: Evaluated) -> Iterator[Finding]:
    """Note the user-supplied attackers, and the conditions that they did not score."""
    check = "user-supplied attackers"
    scored = {row.identity for row in run.conditions}
    for name, spec in attacker_specs(run.config).items():
        if spec.row is not None:
            continue
        missing = []
        for dataset in run.sets.datasets:
            for scenario, gender in product(SCENARIOS, dataset.trials):
                identity = (dataset.name, gender, scenario.name)
                if scenario.name in spec.scenarios and (*identity, name) not in scored:
                    missing.append(" ".join(identity))
        if missing:
            text = f"{name} ({spec.preset}) was left out of {counted(len(missing), 'condition')}: {few(missing)}."
            yield Finding("warning", check, text)
        else:
            yield Finding("note", check, f"{name} is {spec.preset}; it scores every condition.")


def fusions(run: Evaluated) -> Iterator[Finding]:
    """Note the weights of each fusion, and the attackers without weight."""
    for fusion in run.results.fusions:
        weights = fusion.weights.weights
        shown = [f"{name} {weight:.3g}" for name, weight in weights.items() if weight]
        best = min(fusion.alone, key=lambda name: fusion.alone[name].cllr)
        text = f"{fusion.attacker}, trained on {fusion.training} ({fusion.kind} trials): {', '.join(shown)};"
        text += f" no weight for {len(weights) - len(shown)} others. There its EER is"
        text += f" {percent(fusion.cross_validated.eer)}, of the best alone ({best}) {percent(fusion.alone[best].eer)}."
        for name, reason in fusion.left_out.items():
            text += f" Left out: {name}, {reason}."
        yield Finding("note", "fusion", text)


# --- sets -------------------------------------------------------------------------------------------------------------


def shared_speakers(run: Evaluated) -> Iterator[Finding]:
    """Check that no tested speaker is in the training set; attackers are trained without shared speakers."""
    sets = run.sets
    for dataset in sets.datasets:
        tested: set[str] = set()
        for name in dataset.tested:
            tested.update(sets.original[name].speakers.values())
        shared = sorted(sets.left_out.get(dataset.training, set()) & tested)
        if shared:
            text = f"{dataset.name}: {len(shared)} of {len(tested)} speakers are in {dataset.training} too:"
            yield Finding(
                "warning", "speaker overlap", f"{text} {few(shared)}. Attackers learn without them."
            )
        else:
            text = f"{dataset.name}: none of {len(tested)} speakers is in the training set ({dataset.training})."
            yield Finding("ok", "speaker overlap", text)
        tried: set[str] = set()
        for name in dataset.trials.values():
            tried.update(sets.original[name].recordings)
        twice = sorted(tried & set(enrolment(sets.original[dataset.enrolls]).segments))
        if twice:
            text = f"{dataset.name}: {counted(len(twice), 'utterance')} in both enrolment and trials: {few(twice)}."
            yield Finding("warning", "utterance overlap", text)


def shared_sessions(run: Evaluated) -> Iterator[Finding]:
    """Note how many test recordings share a session with their speaker's enrolment, judged by the recordings' names.

    The name without its last part is taken as the session: 1089-134686 in 1089-134686-0007.
    """
    for dataset in run.sets.datasets:
        original = run.sets.original[dataset.enrolls]
        enrolled = _sessions(original.speakers, enrolment(original).segments)
        tested: list[tuple[str, str]] = []
        for name in dataset.trials.values():
            speakers = run.sets.original[name].speakers
            tested += _sessions(speakers, speakers)
        if enrolled and tested:
            shared = sum(session in enrolled for session in tested) / len(tested)
            text = (
                f"{dataset.name}: by the names of the recordings, {100 * shared:.0f} % of the tests"
            )
            text += " are from a session in which their speaker was also recorded for enrolment."
            yield Finding("note", SESSIONS, text)


def missing_lists(run: Evaluated) -> Iterator[Finding]:
    """Check that every set has both sexes: otherwise an average over the sexes would mislead."""
    for dataset in run.sets.datasets:
        if not run.sets.original[dataset.enrolls].sexes:
            yield Finding("warning", "unknown sexes", f"{dataset.name}: {SEXES_POOLED}")
        stem = dataset.name.removesuffix("_common")
        lists = [
            f"{stem}_trials_{sex}"
            for sex in run.config.lists
            if sex != "mixed" and sex not in dataset.trials
        ]
        if lists:
            text = f"{dataset.name}: there is no {', '.join(lists)}; results and averages are for the other sex only."
            yield Finding("warning", "missing lists", text)


def few_speakers(run: Evaluated) -> Iterator[Finding]:
    """Check the number of speakers: with few, intervals are wide, and their coverage is not known."""
    for outcome in run.main("original"):
        row = outcome.conditions[0]
        speakers = min(row.n_enrolled, row.n_trial_speakers)
        step = f"one missed target trial is {100 / row.n_target:.1f} points"
        text = f"{_name(row)}: {speakers} speakers with target trials, {row.n_target} target trials ({step}):"
        level = "warning"
        if run.config.evaluation.resamples and not row.intervals:
            text += f" no intervals. {row.notes.get('intervals', '')}"
        elif speakers < _FEW_SPEAKERS:
            text += f" the coverage of intervals was not studied with fewer than {_FEW_SPEAKERS}."
        else:
            level = "ok"
            text += " enough for the intervals given."
        yield Finding(level, "number of speakers", text)


def independence(run: Evaluated) -> Iterator[Finding]:
    """Compare results on original speech with other runs with the same seed, attackers and sampling rates.

    They must not depend on the anonymiser.
    """
    check = "independence of the anonymiser"
    now = _original_rates(run.results)
    ours = to_dict(run.config)
    for file, results in run.earlier.items():
        before = _original_rates(results)
        shared = sorted(now.keys() & before.keys())
        if not shared or not _is_comparable(results, ours, run.sets.rates):
            continue
        changed = [names for names in shared if now[names] != before[names]]
        if changed:
            first = changed[0]
            values = f"{' '.join(first)}: {percent(now[first])}, there {percent(before[first])}"
            text = f"EERs of original speech differ from those in {file} in {len(changed)} of {len(shared)} conditions,"
            text += f" such as {values}. They must not depend on the anonymiser: the data changed."
            yield Finding("warning", check, text)
        else:
            text = f"EERs of original speech are the same as in {file} in all {len(shared)} conditions."
            yield Finding("ok", check, text)


# --- anonymised versions ----------------------------------------------------------------------------------------------


def draws(run: Evaluated) -> Iterator[Finding]:
    """Check the number of anonymised versions of the training sets and of the trials."""
    if run.main("semi-informed"):
        for name in run.sets.training_sets:
            yield _training_draws(run.sets, name)
    if run.is_anonymised:
        for dataset in run.sets.datasets:
            yield _trial_draws(run.sets, dataset)
    partial = [row for row in run.conditions if "draws" in row.notes]
    if partial:
        text = f"Draws are missing in {counted(len(partial), 'condition')}, such as {' '.join(partial[0].identity)}:"
        yield Finding("note", "trial draws", f"{text} {partial[0].notes['draws']}.")


def shared_draws(run: Evaluated) -> Iterator[Finding]:
    """Warn if a speaker has the same draw in enrolment and trials, by the records of the anonymised directories."""
    for dataset in run.sets.datasets:
        shared = _drawn(run.sets, dataset.enrolls) & _drawn(run.sets, *dataset.trials.values())
        if shared:
            count = len({stream.split()[-1] for _, stream, _ in shared})
            text = f"{dataset.name}: the same draw of the anonymiser in enrolment and trials for"
            text += f" {counted(count, 'speaker')}, which identifies them: EERs are far too low for an anonymiser that"
            text += " draws for each side. Leave anonymizer.shared_draws and anonymizer.seeding=vpc2024 out, or"
            text += " anonymise one side again by"
            yield Finding(
                "warning", "shared draws", f"{text} spkver anonymize with --side or another --seed."
            )


def draw_level(run: Evaluated) -> Iterator[Finding]:
    """Note anonymised speech without a record of whether each utterance or each speaker has its own draw."""
    unknown = []
    for dataset in run.sets.datasets:
        for name in dataset.tested:
            made_elsewhere = name in run.sets.twins and name not in run.sets.missing
            if made_elsewhere and recorded_anonymizer(run.sets.twins[name].path) is None:
                unknown.append(run.sets.twins[name].name)
    if not unknown:
        return
    text = f"No record says how {few(unknown)} were anonymised."
    if run.config.anonymizer.level == "speaker":
        text += " By speaker, as anonymizer.level says, enrolment and trials need different draws: a draw that they"
        text += " share identifies the speaker."
    else:
        text += " If the anonymiser draws its random numbers for each speaker, not for each utterance, say it:"
        text += " --set anonymizer.level=speaker."
    yield Finding("note", "draw level", text)


def other_notes(run: Evaluated) -> Iterator[Finding]:
    """Note synthetic speech, resampled sets, and missing results."""
    if run.results.simulated:
        text = "The speech is synthetic (eSpeak NG): the numbers say nothing about how well people are protected."
        yield Finding("warning", "SIMULATED speech", text)
    if run.sets.rates:  # sets that are resampled
        yield Finding("note", RATES, run.sets.rates)
    if run.config.anonymizer.training_level == "speaker":
        text = "The training set is anonymised by speaker: an attacker trained by utterance would be stronger."
        yield Finding("note", "training level", text)
    unlinked = [row for row in run.conditions if row.linkability is None]
    if unlinked:
        text = f"{counted(len(unlinked), 'condition')} without linkability: {unlinked[0].notes.get('linkability', '')}"
        yield Finding("note", "linkability", text)
    warnings = set()
    kinds = set()
    for figure in run.results.utility:
        kinds.add(figure.kind)
        if figure.rate.warning and figure.rate.warning not in warnings:
            warnings.add(figure.rate.warning)
            yield Finding("note", "words", figure.rate.warning)
    if run.is_anonymised and "anonymised" not in kinds:
        text = (
            "Utility was not measured (words, emotions): unintelligible noise would score as well."
        )
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
    told = list(dict.fromkeys(reasons(run)))
    if told and run.is_anonymised:
        if len(told) > 1:
            told[-1] = f"and {told[-1]}"
        listed = "; ".join(told)
        text = f"This privacy is probably overestimated, because {listed}."
        yield Finding("warning", OVERESTIMATED, text)


CHECKS: tuple[Callable[..., Iterator[Finding]], ...] = (
    failed_attackers,
    recordings_left_out,
    pairs,
    uninformative,
    pooled_trials,
    recognised_without_a_voice,
    attacker_strength,
    attacker_order,
    outside_attackers,
    shared_speakers,
    shared_sessions,
    recording_checks.equal_audio,
    recording_checks.broken_recordings,
    recording_checks.file_tags,
    recording_checks.hidden_speech,
    recording_checks.short_recordings,
    recording_checks.without_speech,
    recording_checks.changed_durations,
    missing_lists,
    few_speakers,
    independence,
    draws,
    shared_draws,
    draw_level,
    other_notes,
    fusions,
    overestimated,
)


def all_findings(evaluated: Evaluated) -> list[Finding]:
    """Return the findings of `CHECKS`."""
    findings: list[Finding] = []
    for check in CHECKS:
        if check in RECORDING_CHECKS:
            findings += evaluated.recordings[check.__name__]
        else:
            findings += check(evaluated)
    return findings


def reasons(run: Evaluated) -> Iterator[str]:
    """Yield the reasons to expect that a stronger attacker exists.

    - One voice-based attacker is ahead of all others by more than their intervals.
    - On original speech no attacker has an EER of ``weak_attacker_eer`` or below.
    - Attackers with more knowledge (semi-informed) are significantly weaker than attackers with less.
    - Recordings hold little speech.
    - Training sets have few speakers, or one anonymised version.
    - No attacker uses a neural network, no network has seen anonymised speech, no attacker adapts to the trials, or one
      failed.
    - Default attackers that can run here were left out.
    """
    for outcome in run.main("original"):
        rate = min(run.rates_of_voices(outcome).values(), default=0.0)
        if rate > run.config.weak_attacker_eer:
            yield f"attackers are weak on original speech ({_name(outcome)}: {100 * rate:.1f} %)"
    for finding in run.recordings.get("short_recordings", ()):
        yield f"recordings are short ({finding.text})"
    ahead = []
    for outcome in run.main():
        voices = _voice_prints(outcome, run.kinds)
        # if the strongest attacker and the next have disjoint intervals, the others miss something
        if outcome.anonymised and len(voices) > 1 and voices[0].eer.high < voices[1].eer.low:
            ahead.append(f"{_name(outcome)} {outcome.scenario}: {voices[0].attacker}")
    if ahead:
        yield f"attackers disagree (one is ahead of all others, beyond both intervals: {few(ahead)})"
    for order in run.order:
        if order.difference is not None and order.difference.low > 0:
            where = f"{_name(order)}: {_against(order.rates)}"
            yield f"semi-informed attackers are weaker than {order.other} ones ({where})"
    yield from _reasons_of_training(run)
    yield from _reasons_of_attackers(run)
    if run.results.failures:
        yield f"attackers failed ({', '.join(failures_by_attacker(run.results.failures))})"


def _reasons_of_training(run: Evaluated) -> Iterator[str]:
    informed = bool(run.main("semi-informed"))
    for name in run.sets.training_sets:
        count = len(set(run.sets.original[name].speakers.values()))
        if count < FEW_TRAINING_SPEAKERS:
            yield f"attackers learn from few speakers ({name}: {count})"
        several = len(run.sets.versions[name]) > 1 or run.sets.is_fixed(name)
        if informed and not several:
            yield f"semi-informed attackers learn from one anonymised version alone ({name})"


def _reasons_of_attackers(run: Evaluated) -> Iterator[str]:
    scored = {row.attacker for row in run.conditions}
    adapting = set()
    for entry, settings in run.config.attacker_settings.items():
        if settings.get("adapted"):
            adapting.add(attacker_name(entry))
    networks = 0
    plugins = 0
    tuned = 0
    for name, spec in attacker_specs(run.config).items():
        if name in scored:
            networks += spec.is_network
            plugins += ":" in spec.preset
            tuned += spec.is_trained
            if spec.adapts:
                adapting.add(name)
    if not networks:
        yield "no attacker uses a neural network"
    elif not plugins and not tuned:  # it is not known how plug-ins were trained
        yield "no attacker's network has seen anonymised speech"
    if adapting.isdisjoint(scored):
        yield "no attacker adapts to the trials"
    usual = default_attackers()
    if ":" in run.config.anonymizer.name:  # a plug-in has no inverse
        usual = tuple(name for name in usual if not parse_spec(name).inverts)
    not_run = [name for name in usual if name not in run.config.attackers]
    if set(not_run) - {"properties"}:  # the attacker "properties" does not use the voice
        yield f"{len(not_run)} of the {len(usual)} default attackers were not run ({few(not_run, most=6)})"


def _voice_prints(outcome: Outcome, kinds: Mapping[str, str]) -> list[Condition]:
    """Return the attackers by voice prints that have an interval and do not invert, the strongest first."""
    rows = []
    for row in outcome.conditions:
        by_voice_print = row.level != INVERTING and kinds.get(row.attacker) not in _NO_VOICE_PRINT
        if by_voice_print and row.eer.has_interval:
            rows.append(row)
    return sorted(rows, key=lambda row: (row.eer.value, row.eer.low, row.eer.high, row.attacker))


def _returns_others(pairing: Pairing) -> bool:
    """Whether an anonymiser run here returned recordings that resemble other recordings' originals."""
    return pairing.state == "certain" and pairing.elsewhere >= DOUBTFUL


def _identical_lists(pairings: Sequence[Pairing]) -> set[tuple[str, str]]:
    """Return data set and sex of the lists in which different speakers have identical recordings."""
    states: dict[tuple[str, str], set[str]] = {}
    for pairing in pairings:
        if pairing.part == "trials":
            for gender in (pairing.gender, POOLED):
                states.setdefault((pairing.dataset, gender), set()).add(pairing.state)
    return {names for names, of_parts in states.items() if of_parts == {"identical"}}


def _is_broken(row: Condition) -> bool:
    reversal = reversal_at(row.metric("eer.interpolated").value, min(row.n_target, row.n_nontarget))
    return row.metric("min_cllr").value > 1 - 1e-9 or (reversal is not None and reversal.clear)


def _sessions(speakers: Mapping[str, str], utterances: Iterable[str]) -> list[tuple[str, str]]:
    """Return the speaker and the session of each recording whose name holds a session.

    Examples
    --------
    >>> _sessions({"1089-134686-0007": "1089", "anna_07": "anna"}, ["1089-134686-0007", "anna_07"])
    [('1089', '1089-134686')]
    """
    sessions = []
    for utterance in utterances:
        speaker = speakers[utterance]
        session = _LAST_PART.sub("", utterance)
        if session not in (utterance, speaker):
            sessions.append((speaker, session))
    return sessions


def _smallest(rates: Mapping[str, float]) -> tuple[str, float]:
    """Return the attacker with the smallest rate, and that rate."""
    return min(rates.items(), key=lambda item: item[1])


def _is_comparable(results: Results, config: Mapping[str, Any], rates: str) -> bool:
    """Whether other results have the same seed, attackers and sampling rates."""
    for key in ("seed", "attackers", "attacker_settings", "training_sets"):
        if results.config.get(key) != config[key]:
            return False
    return rates == "".join(finding.text for finding in results.checks if finding.check == RATES)


def _original_rates(results: Results) -> dict[tuple[str, str, str], float]:
    """Return the rates on original speech by data set, sex and attacker."""
    rates = {}
    for row in results.conditions:
        if row.scenario == "original":
            rates[row.dataset, row.gender, row.attacker] = row.eer.value
    return rates


def _training_draws(sets: Sets, name: str) -> Finding:
    count = len(sets.versions[name])
    versions = "versions" if count > 1 else "version"
    text = f"Semi-informed attackers learnt from {count} anonymised {versions} of {name}"
    if name in sets.once:
        text += f", {sets.once[name].reason}"
    level = "ok"
    if count == 1 and sets.is_fixed(name):
        level = "note"
    elif count == 1:
        level = "warning"
        text += ": most are stronger with several: raise anonymizer.training_draws, and give the anonymiser"
        text += " (anonymizer.name, or anonymizer.command) if it is not known"
    return Finding(level, "training draws", f"{text}.")


def _trial_draws(sets: Sets, dataset: Dataset) -> Finding:
    count = sets.tested_draws(dataset)
    if count > 1:
        text = f"{dataset.name}: results are means over {count} anonymised versions of the trials."
        return Finding("ok", "trial draws", text)
    reasons = dict.fromkeys(sets.once[name].reason for name in dataset.tested if name in sets.once)
    text = ", ".join(
        [f"{dataset.name}: results are of one anonymised version of the trials", *reasons]
    )
    if not any(map(sets.is_fixed, dataset.tested)):
        text += ": another one may differ by points: raise anonymizer.trial_draws, and give the anonymiser"
        text += " (anonymizer.name, or anonymizer.command) if it is not known"
    return Finding("note", "trial draws", f"{text}.")


def _drawn(sets: Sets, *names: str) -> set[tuple[str, str, Any]]:
    """Return each speaker's anonymiser, random stream and seed in all versions of some directories."""
    drawn: set[tuple[str, str, Any]] = set()
    for twin in chain.from_iterable(map(sets.versions.__getitem__, names)):
        with suppress(DataError, KeyError, TypeError):  # no record, or one of another program
            record = load_json(twin.path / RECORD)
            made = record["anonymizer"]
            if made["level"] == "speaker" and made["name"] != "none":
                seed = None if made["seeding"] == "vpc2024" else record["seed"]
                drawn |= {
                    (made["name"], entry["stream"], seed) for entry in record["files"].values()
                }
    return drawn


def _name(row: Condition | Outcome | AttackerOrder) -> str:
    """Return the name of a set, with the sex unless all speakers are pooled."""
    return row.dataset if row.gender == POOLED else f"{row.dataset} {row.gender}"


def _against(rates: Sequence[float]) -> str:
    return " against ".join(map(percent, rates))
