"""Checks of a run: what could make its numbers misleading. Every report shows them.

One check warns that privacy is probably overestimated. A run reports the privacy that its attackers leave; published
evaluations overestimated it by up to 74 %, for reasons that a run can detect: see `reasons`. No reason is a proof, and
the absence of reasons does not prove privacy either.

A check is a function that takes an `Evaluated` run and yields `Finding`s; `CHECKS` lists all checks in the order of the
report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from evaluation.metrics import SortedScores, eer, method_of, reversal_at
from evaluation.reports import find, number, strongest
from evaluation.trials import INVERTING, SCENARIOS
from evaluation.uncertainty import Interval, Resampling, bootstrap, interval_over_draws
from spkbase.configuration import to_dict
from spkbase.errors import DataError, few
from spkbase.files import load_json
from spkver.anonymization import RECORD
from spkver.attackers import attacker_name
from spkver.audio import doubtful_recordings
from spkver.datadir import SEXES_POOLED, DataDir, enrolment
from spkver.voiceprivacy.choosing import attacker_specs
from spkver.voiceprivacy.experiment import count_lists, failures_by_attacker
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.table import ends_of, main_places, percent, place, places, rate_of, samples_of
from spkver.voiceprivacy.versions import described, spaced, standardised

Json = dict[str, Any]
Rows = Sequence[Json]
Place = tuple[str, str, str]

RATES = "sampling rates"
UTILITY = "utility"
OVERESTIMATED = "overestimated privacy"
"""Names of checks that others refer to."""

FEW_TRAINING_SPEAKERS = 100
"""With fewer speakers an attacker learns little about how voices differ; the challenges train on 921."""

_NO_VOICE_PRINT = ("fusion", "prosody", "session", "content")
# the fewest speakers for which the coverage of all intervals was measured (docs/uncertainty.md)
_FEW_SPEAKERS = 20
_MOST_RESAMPLES = 500
_PART = 4096  # bytes
_FEWEST = 10
_BROKEN = 0.02  # an EER below which practically everybody is recognised
_MANY = 0.2  # share of recordings that are not nearer to their own originals


class Finding(NamedTuple):
    """Result of a check: its level is ok, note, warning, or error, which forbids a verdict."""

    level: str
    check: str
    text: str


@dataclass(frozen=True)
class Evaluated:
    """The results and data that checks take.

    Attributes
    ----------
    rows : sequence of dict
        Rows of the table of results.
    sets : Sets
    config : Config
    failures, fusions : sequence of dict
        See `Experiment.failures` and `spkver.voiceprivacy.scores.fusion_weights`.
    minima : sequence of dict
        See `spkver.voiceprivacy.table.Table`.
    utility : dict
        Result of `spkver.voiceprivacy.utility`.
    earlier : dict
        Results of other anonymisers in the same folder, by file name.
    simulated : bool
        Whether the speech is SIMULATED.
    jobs : int or None
    output : Path, optional
        Folder of the run, whose scores are resampled to test differences.
    """

    rows: Rows
    sets: Sets
    config: Config
    failures: Rows = ()
    fusions: Rows = ()
    minima: Rows = ()
    utility: Json = field(default_factory=dict)
    earlier: Mapping[str, Json] = field(default_factory=dict)
    simulated: bool = False
    jobs: int | None = None
    output: Path | None = None

    @cached_property
    def main(self) -> dict[Place, list[Json]]:
        """Rows of each set, sex and scenario, see `main_places`."""
        return main_places(self.rows)

    def of(self, scenario: str) -> Iterator[tuple[Place, list[Json]]]:
        """Yield the main rows of a scenario."""
        return ((at, rows) for at, rows in self.main.items() if at[2] == scenario)

    @cached_property
    def order(self) -> list[tuple[Place, str, list[float], Interval | None]]:
        """Semi-informed attackers against each with less knowledge: rates, and the interval of a difference if weaker.

        Attackers that invert the anonymisation do not count if there are others.
        """
        found = []
        for at, rows in self.of("semi-informed"):
            for other in ("lazy-informed", "ignorant"):
                if rivals := self.main.get((*at[:2], other)):
                    sides = [[row for row in side if row["level"] != INVERTING] or side for side in (rows, rivals)]
                    semi, rival = map(strongest, sides)
                    rates = [rate_of(semi), rate_of(rival)]
                    found.append((at, other, rates, _difference(semi, rival, self) if rates[0] > rates[1] else None))
        return found

    @property
    def is_anonymised(self) -> bool:
        """Whether there are results on anonymised speech."""
        return any(row["scenario"] != "original" for row in self.rows)


# --- attackers, and their order ---------------------------------------------------------------------------------------


def failed_attackers(run: Evaluated) -> Iterator[Finding]:
    """Warn of each attacker that failed."""
    for name, theirs in failures_by_attacker(run.failures).items():
        where = few([f"{failure['dataset']} {failure['gender']} {failure['scenario']}" for failure in theirs])
        text = f"{name} has no scores for {count_lists(theirs)} ({where}): results there are from the other attackers."
        yield Finding("warning", "attackers that failed", f"{text} {theirs[0]['reason']}")


def uninformative(run: Evaluated) -> Iterator[Finding]:
    """Find attackers whose scores are all equal or inverted; if there are no others there is no verdict."""

    def is_broken(row: Json) -> bool:
        least = min(number(row["n_target"]), number(row["n_nontarget"]))
        reversal = reversal_at(number(row["eer"].get("interpolated")), least)
        return number(row.get("min_cllr")) > 1 - 1e-9 or (reversal is not None and reversal.clear)

    found: dict[tuple[str, str], list[str]] = {}
    for at, rows in places(run.rows).items():
        if broken := [row["attacker"] for row in rows if is_broken(row)]:
            level = "error" if len(broken) == len(rows) and at[2] != "original" else "warning"
            found.setdefault((level, few(broken)), []).append(" ".join(at))
    for (level, names), where in found.items():
        text = f"Scores of {names} are all equal or inverted ({few(where)}): they do not count and show no privacy."
        yield Finding(level, "broken attackers", text)


def pooled_trials(run: Evaluated) -> Iterator[Finding]:
    """Warn of lists whose pooled error rate is far above both single rates: their scores have different offsets."""
    rates: dict[Place, dict[str, float]] = {}
    for row in run.rows:
        rates.setdefault((row["dataset"], row["scenario"], row["attacker"]), {})[row["gender"]] = rate_of(row)
    for at, found in rates.items():
        alone = {gender: rate for gender, rate in found.items() if gender != POOLED}
        if len(alone) > 1 and found.get(POOLED, 0.0) > 1.25 * max(alone.values()) + 0.02:
            lists = ", ".join(f"{gender} {percent(rate)}" for gender, rate in alone.items())
            text = f"{' '.join(at)}: the pooled EER is {percent(found[POOLED])}, above the EER of each list ({lists}):"
            yield Finding("warning", "pooled trials", f"{text} scores of the lists have different offsets.")


def attacker_strength(run: Evaluated) -> Iterator[Finding]:
    """Check that attackers recognise original speech; note how well noise and channel in pauses identify speakers."""
    limit = run.config.weak_attacker_eer
    of_pauses = [name for name, spec in attacker_specs(run.config).items() if spec.kind == "session"]
    for at, rows in run.of("original"):
        best = strongest(rows)
        same = [one for one in run.minima if (one["dataset"], one["gender"], one["scenario"]) == at]
        minimum = find(same[0], "minimum") or {} if same else {}
        rate, high = rate_of(best), number(minimum.get("high"))
        text = f"{_name(at)}: on original speech the strongest attacker ({best['attacker']}) has an EER of"
        text += f" {percent(rate)}{f' (interval to {percent(high)})' if high >= 0 else ''}"
        weak = f", above {percent(limit)}: it is weak, and privacy is overestimated."
        level, end = ("warning", weak) if rate > limit else ("ok", ": it recognises speakers well.")
        yield Finding(level, "attacker strength", text + end)
        for row in (row for row in rows if row["attacker"] in of_pauses):
            text = f"{_name(at)}: from noise and channel alone ({row['attacker']}) speakers of original recordings"
            text += f" are recognised with an EER of {percent(rate_of(row))}; chance is 50 %. The corpus"
            yield Finding("note", "recognition without speech", f"{text} alone reveals this much to every attacker.")


def attacker_order(run: Evaluated) -> Iterator[Finding]:
    """Check that no attacker is weaker with more knowledge; significantly weaker attackers were not trained well."""
    for at, other, rates, gap in run.order:
        text = f"{_name(at)}: the semi-informed attacker"
        if rates[0] <= rates[1]:
            text += f" is at least as strong as the {other} one, {_against(rates)}."
            yield Finding("ok", "attacker order", text)
            continue
        text += f" is weaker than the {other} one, {_against(rates)}"
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
            served = {place(row)[:3] for row in run.rows if row["attacker"] == name}
            left = [" ".join(condition) for condition in conditions if condition not in served]
            text = f"{name} ({spec.preset}) was left out of {len(left)} conditions: {few(left)}."
            text = text if left else f"{name} is {spec.preset}; it scores every condition."
            yield Finding("warning" if left else "note", "user-supplied attackers", text)


def fusions(run: Evaluated) -> Iterator[Finding]:
    """Note the weights of each fusion, and the attackers without weight."""
    for fusion in run.fusions:
        weights = fusion["weights"]["weights"]
        alone = fusion["alone"]
        shown = ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items() if weight)
        best = min(alone, key=lambda name: alone[name]["cllr"])
        text = f"{fusion['attacker']}, trained on {fusion['training']} ({fusion['kind']} trials of background speakers)"
        text += f": {shown}. There it has an EER of {percent(fusion['cross_validated']['eer'])}, the best single"
        text += f" attacker ({best}) {percent(alone[best]['eer'])}."
        idle = [name for name, weight in weights.items() if not weight]
        text += f" No weight: {', '.join(idle)}." if idle else ""
        text += "".join(f" Left out: {name}, {why}." for name, why in fusion["left_out"].items())
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
    for at, (row, *_) in run.of("original"):
        speakers = min(row["n_enrolled"], row["n_trial_speakers"])
        step = f"one missed target trial is {100 / row['n_target']:.1f} points"
        text = f"{_name(at)}: {speakers} speakers with target trials, {row['n_target']} target trials ({step})"
        level, end = "ok", ": enough for the intervals given."
        if run.config.evaluation.resamples and not row["intervals"]:
            level, end = "warning", f": no intervals. {row['notes'].get('intervals', '')}"
        elif speakers < _FEW_SPEAKERS:
            end = f": the coverage of intervals was not studied with fewer than {_FEW_SPEAKERS}."
            level = "warning"
        yield Finding(level, "number of speakers", text + end)


def independence(run: Evaluated) -> Iterator[Finding]:
    """Compare results on original speech with other runs with the same seed, attackers and sampling rates.

    They must not depend on the anonymiser.
    """

    def original_rates(rows: Rows) -> dict[Place, float]:
        originals = [row for row in rows if row["scenario"] == "original"]
        return {(row["dataset"], row["gender"], row["attacker"]): rate_of(row) for row in originals}

    check, now, ours = "independence of the anonymiser", original_rates(run.rows), to_dict(run.config)
    for file, results in run.earlier.items():
        theirs, before = results.get("config", {}), original_rates(results.get("conditions", []))
        same = all(theirs.get(key) == ours[key] for key in ("seed", "attackers", "attacker_settings", "training_sets"))
        rates = next((one["text"] for one in results.get("sanity", []) if one["check"] == RATES), "")
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
    sets, rows = run.sets, run.rows
    if run.config.anonymizer.name == "none":
        return
    for name in sets.training_sets if any(row["scenario"] == "semi-informed" for row in rows) else ():
        count = len(sets.versions[name])
        text = f"Semi-informed attackers learnt from {count} anonymised version{'s' if count > 1 else ''} of {name}"
        text += f", {sets.once[name]}" if name in sets.once else ""
        level = "ok" if count > 1 else "note" if sets.is_fixed(name) else "warning"
        if level == "warning":
            text += ": most are stronger with several. Give the anonymiser (anonymizer.name, or anonymizer.command)"
            text += " to have anonymizer.training_draws of them"
        yield Finding(level, "training draws", f"{text}.")
    for dataset in sets.datasets if run.is_anonymised else ():
        count = sets.tested_draws(dataset)
        text = f"{dataset.name}: results are means over {count} anonymised versions of the trials"
        if count == 1:
            reasons = dict.fromkeys(sets.once[name] for name in dataset.tested if name in sets.once)
            text = ", ".join([f"{dataset.name}: results are of one anonymised version of the trials", *reasons])
            if not any(map(sets.is_fixed, dataset.tested)):
                text += ": another one may differ by points. Give the anonymiser (anonymizer.name) to have"
                text += " anonymizer.trial_draws of them"
        yield Finding("ok" if count > 1 else "note", "trial draws", f"{text}.")
    if partial := [row for row in rows if "draws" in row["notes"]]:
        text = f"{len(partial)} conditions lack draws, such as {' '.join(place(partial[0]))}:"
        yield Finding("note", "trial draws", f"{text} {partial[0]['notes']['draws']}.")


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
    if unlinked := [row for row in run.rows if row["linkability"] is None]:
        text = f"{len(unlinked)} conditions without linkability: {unlinked[0]['notes'].get('linkability', '')}"
        yield Finding("note", "linkability", text)
    if not run.utility and run.is_anonymised:
        text = "Utility was not measured (words, emotions): unintelligible noise would score as well."
        yield Finding("warning", UTILITY, text)


# --- recordings -------------------------------------------------------------------------------------------------------


def equal_audio(run: Evaluated) -> Iterator[Finding]:
    """Check that no recording has two names, and that no anonymised recording is the original of another utterance.

    A trial would be trivial, or a training speaker would be tested. `check_twin` compares each recording with its own
    original.
    """
    originals = {f"{one.name}/{utterance}" for one in run.sets.original.values() for utterance in one.recordings}
    found: dict[str, list[list[str]]] = {"original": [], "anonymised": [], "both": []}
    for group in equal_files([*run.sets.original.values(), *run.sets.twins.values()]):
        sides = [[name for name in group if (name in originals) == is_original] for is_original in (True, False)]
        for what, names in zip(("original", "anonymised"), sides, strict=True):
            found[what] += [names] if len(names) > 1 else []
        # an utterance equals its own original if the anonymiser was asked to change nothing
        here, there = ({name.split("/")[1] for name in names} for names in sides)
        if here and there and not here & there:
            found["both"].append([sides[1][0], sides[0][0]])
    listed = {what: few([" = ".join(group) for group in groups]) for what, groups in found.items()}
    for what in ("original", "anonymised"):
        text = f"{sum(map(len, found[what]))} files of {what} speech hold the audio of another one: {listed[what]}"
        text = text if found[what] else f"No two files of {what} speech are equal."
        yield Finding("warning" if found[what] else "ok", "duplicate audio", text)
    if found["both"]:
        text = f"{len(found['both'])} files of anonymised speech hold original audio of another set: {listed['both']}"
        yield Finding("warning", "original audio", text)


def equal_files(directories: Iterable[DataDir]) -> list[list[str]]:
    """Return groups of utterances, as ``directory/utterance``, whose files hold the same bytes.

    A file that several directories list under one name counts once; under two names it is a duplicate. Files of the
    same size are compared by some bytes in the middle first, so that few files are read whole.
    """

    def middle(path: Path) -> bytes:
        with path.open("rb", buffering=0) as file:
            file.seek(path.stat().st_size // 2)
            return file.read(_PART)

    files: dict[tuple[Path, str], str] = {}  # lists may share recordings, under the same names
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            files.setdefault((Path(os.path.realpath(path)), utterance), f"{directory.name}/{utterance}")
    alike = [list(files)]
    for feature in (lambda path: path.stat().st_size, middle, lambda path: sha256(path.read_bytes()).digest()):
        groups: dict[object, list[tuple[Path, str]]] = {}
        for group, file in ((group, file) for group, of in enumerate(alike) for file in of):
            groups.setdefault((group, feature(file[0])), []).append(file)
        alike = [group for group in groups.values() if len(group) > 1]
    return sorted([files[file] for file in group] for group in alike)


def broken_recordings(run: Evaluated) -> Iterator[Finding]:
    """Warn of anonymised recordings that are clipped, far too quiet, too short or silent; training sets are sampled."""
    training = run.sets.training_sets
    for name, twin in run.sets.twins.items():
        chosen = spaced(sorted(twin.recordings)) if name in training else sorted(twin.recordings)
        for text in doubtful_recordings({one: twin.recordings[one] for one in chosen}, jobs=run.jobs):
            yield Finding("warning", "broken recordings", f"{twin.name}: {text}.")


def file_tags(run: Evaluated) -> Iterator[Finding]:
    """Warn if a tag of an anonymised file (artist, title, comment) contains the name of its speaker."""
    found = []
    for twin in run.sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(twin.recordings[utterance]) as file:
                tags = [tag for tag, words in file.copy_metadata().items() if twin.speakers[utterance] in words]
                found += [f"{twin.name}/{utterance}, {tag}" for tag in tags]
    if found:
        text = f"Tags of anonymised files name the speaker: {few(found)}. No attacker reads them: remove them."
        yield Finding("warning", "tags of files", text)


def resemblance(run: Evaluated) -> Iterator[Finding]:
    """Check that anonymised recordings are nearer to their own originals than to other originals.

    This holds for transformations that preserve words or rhythm, and also for time reversal, spectral inversion,
    permuted frames and noise at -20 dB SNR. It fails if files are exchanged, or if noise or silence replaces speech:
    then there is no verdict.
    """
    found: dict[str, list[str]] = {}
    for name, twin in run.sets.twins.items():
        utterances = spaced(sorted(run.sets.original[name].recordings))
        if len(utterances) < _FEWEST or run.config.anonymizer.name == "none":
            continue
        original, anonymised = (
            described([side.recordings[utterance] for utterance in utterances], run.jobs)
            for side in (run.sets.original[name], twin)
        )
        nearer = nearer_than_others(original, anonymised)
        wrong = 2 * float((nearer < 0.5).mean())
        # a share is uniform, of variance 1 / 12, if files are exchanged; 3.5 deviations allow for the best of three
        is_none = nearer.mean() < 0.5 + 3.5 / np.sqrt(12 * len(nearer))
        level = "error" if is_none else "warning" if wrong > _MANY else "ok"
        found.setdefault(level, []).append(twin.name if level == "ok" else f"{twin.name} ({100 * min(wrong, 1):.0f} %)")
    for level, names in found.items():
        text = "Recordings are nearer to their own originals than to other originals"
        if level == "ok":
            text += f" in {few(names)}."
        else:
            text += f", but not in {few(names)}: files are exchanged, or hold no speech. Listen to some, and check"
            text += " wav.scp."
        yield Finding(level, "resemblance", text)


def nearer_than_others(
    originals: tuple[NDArray[np.float64], NDArray[np.float64]],
    twins: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return the share of other originals that are less similar to each recording than its own original.

    Parameters
    ----------
    originals, twins : levels and spectra
        See `described`; recording i of one belongs to recording i of the other.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Similarity is the correlation of levels, of reversed levels, or of spectra, whichever gives the largest mean
        share; ties count half.
    """
    (levels, spectra), (other_levels, other_spectra) = originals, twins
    pairs = (levels, other_levels), (levels, other_levels[:, ::-1]), (spectra, other_spectra)
    found = []
    for original, anonymised in pairs:
        alike = standardised(anonymised) @ standardised(original).T
        right = np.diag(alike)[:, np.newaxis]
        found.append(((alike < right).sum(axis=1) + ((alike == right).sum(axis=1) - 1) / 2) / (len(alike) - 1))
    return max(found, key=np.mean)


# --- privacy that is probably overestimated ---------------------------------------------------------------------------


def overestimated(run: Evaluated) -> Iterator[Finding]:
    """Warn if privacy is probably overestimated, in a sentence for the verdict; see `reasons`.

    There is no warning if attackers recognise practically everybody in each set: stronger attackers would change
    little.
    """
    lowest: dict[str, float] = {}
    for at, rows in run.main.items():
        if at[2] != "original":
            lowest[at[0]] = min(rate_of(strongest(rows)), lowest.get(at[0], 1.0))
    if max(lowest.values(), default=1.0) < _BROKEN:
        return
    found = list(dict.fromkeys(reasons(run)))
    if found and run.is_anonymised:
        listed = found[0] if len(found) == 1 else f"{'; '.join(found[:-1])}; and {found[-1]}"
        text = f"This privacy is probably overestimated, because {listed}."
        yield Finding("warning", OVERESTIMATED, text)


CHECKS: tuple[Callable[[Evaluated], Iterator[Finding]], ...] = (
    failed_attackers,
    resemblance,
    uninformative,
    pooled_trials,
    attacker_strength,
    attacker_order,
    outside_attackers,
    shared_speakers,
    equal_audio,
    broken_recordings,
    file_tags,
    missing_lists,
    few_speakers,
    independence,
    draws,
    shared_draws,
    other_notes,
    fusions,
    overestimated,
)


def reasons(run: Evaluated) -> Iterator[str]:
    """Yield the reasons to expect that a stronger attacker exists.

    - Attackers disagree: one voice-based attacker is ahead of all others by more than both intervals.
    - On original speech no attacker has an EER of ``weak_attacker_eer`` or below.
    - Attackers with more knowledge (semi-informed) are significantly weaker than attackers with less.
    - Training sets have few speakers, or one anonymised version.
    - No attacker uses a neural network, none adapts to the trials, or one failed.
    """
    for at, rows in run.of("original"):
        if (rate := rate_of(strongest(rows))) > run.config.weak_attacker_eer:
            yield f"attackers are weak on original speech ({_name(at)}: {100 * rate:.1f} %)"
    for at, rows in run.main.items():
        voices = sorted(
            (rate_of(row), *ends_of(row), row["attacker"])
            for row in rows
            if row["level"] != INVERTING
            and not row["attacker"].startswith(_NO_VOICE_PRINT)
            and not any(map(np.isnan, ends_of(row)))
        )
        # if the strongest attacker is ahead of the next by more than both intervals, the others miss something
        if at[2] != "original" and len(voices) > 1 and voices[0][2] < voices[1][1]:
            where = f"{_name(at)} {at[2]}: {voices[0][3]} alone"
            yield f"attackers disagree ({where} is ahead, beyond both intervals)"
    for at, other, rates, gap in run.order:
        if gap is not None and gap.low > 0:
            yield f"semi-informed attackers are weaker than {other} ones ({_name(at)}: {_against(rates)})"
    informed = any(run.of("semi-informed"))
    for name in run.sets.training_sets:
        count = len(set(run.sets.original[name].speakers.values()))
        if count < FEW_TRAINING_SPEAKERS:
            yield f"attackers learn from few speakers ({name}: {count})"
        several = len(run.sets.versions[name]) > 1 or run.sets.is_fixed(name)
        if informed and not several and run.config.anonymizer.name != "none":
            yield f"semi-informed attackers learn from one anonymised version alone ({name})"
    served = {row["attacker"] for row in run.rows}
    specs = {name: spec for name, spec in attacker_specs(run.config).items() if name in served}
    adapted = {attacker_name(one) for one, theirs in run.config.attacker_settings.items() if theirs.get("adapted")}
    if not any(spec.is_network for spec in specs.values()):
        yield "no attacker uses a neural network"
    if not any(spec.adapts or name in adapted for name, spec in specs.items()):
        yield "no attacker adapts to the trials"
    if run.failures:
        yield f"attackers failed ({', '.join(failures_by_attacker(run.failures))})"


def _name(at: Place) -> str:
    """Return the name of a set, with the sex unless all speakers are pooled."""
    return at[0] if at[1] == POOLED else f"{at[0]} {at[1]}"


def _against(rates: Sequence[float]) -> str:
    return " against ".join(map(percent, rates))


def _difference(semi: Json, rival: Json, run: Evaluated) -> Interval | None:
    """Return the interval of the difference between two rates by paired resamples of all draws; None if it fails."""
    resamples = min(run.config.evaluation.resamples, _MOST_RESAMPLES)
    if not resamples or run.output is None:
        return None

    def rate(scores: SortedScores) -> dict[str, float]:
        return {"eer": eer(scores)}

    try:
        samples = [samples_of(row, run.output) for row in (semi, rival)]
        n_draws = min(map(len, samples))
        pairs = [sample for side in samples for sample in side[:n_draws]]
        resampled = bootstrap(pairs, rate, Resampling(resamples, run.config.seed))
    except DataError:
        return None
    rates = np.array([rate(sample.runs())["eer"] for sample in pairs]).reshape(2, n_draws)
    drawn = np.array([found["eer"] for found in resampled]).reshape(2, n_draws, -1)
    return interval_over_draws(
        rates[0] - rates[1],
        drawn[0] - drawn[1],
        method=method_of("eer", difference=True),
        n_units=pairs[0].n_effective,
        level=run.config.evaluation.level,
    )
