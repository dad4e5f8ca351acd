"""Checks of the recordings in original and anonymised directories, made before anything is trained.

    checks<suffix>.json    their findings, which the report shows

A check is a function that takes the sets and the number of workers, and yields `Finding`s.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from itertools import chain
from operator import attrgetter
from pathlib import Path

import numpy as np

from evaluation.reports import Finding
from spkbase.errors import DataError, counted, few
from spkbase.files import load_json, write_json
from spkbase.runs import Run
from spkbase.work import Work
from spkver.audio import doubtful_recordings, open_audio, read_audio
from spkver.datadir import DataDir, copies, duration_changes, enrolment, fingerprints_of
from spkver.extractors import energy_contour
from spkver.features import FRAME_SHIFT
from spkver.voiceprivacy.sets import Sets, stamp_of

logger = logging.getLogger(__name__)

_COMPARED = 100  # number of recordings of a directory that are compared with their originals
_LOUD = 20  # number of loudest frames
_SPEECH = 30.0  # dB below the softest of the loudest frames
_DEEPEST = 60.0  # dB below the loudest frame
# dB, standard deviation of levels over time; speech has 6 to 25, white noise 0.3, speech in noise at -10 dB SNR 0.5 to
# 0.9
_FLAT = 3.0
_MANY = 0.2  # share of recordings
_MOST = 0.5  # if a larger share of the recordings has no speech, there is nothing to judge
_ANOTHER_DURATION = 0.1  # relative change; vocoders work in whole frames
_BITS = {"PCM_24": 24, "PCM_32": 32, "FLOAT": 32, "DOUBLE": 64}  # 16 in all other formats

VERY_SHORT = 0.5
"""Seconds of speech: a test recording or the enrolment of a speaker with less is too short; see
docs/studies/attackers.md."""
SHORT = 1.0
"""Seconds of speech that are too few if the other side has less than `NOT_LONG`."""
NOT_LONG = 6.0
"""Seconds of speech from which on one side makes up for the other."""


def check_audio(run: Run, sets: Sets, suffix: str) -> None:
    """Check the recordings of all directories, keep the findings of each check, and log what forbids a verdict."""

    def make(path: Path) -> None:
        contents = {}
        for check in RECORDING_CHECKS:
            contents[check.__name__] = [astuple(finding) for finding in check(sets, run.jobs)]
        write_json(path, contents)

    run.stage(
        "recordings",
        f"checks{suffix}.json",
        make=make,
        read=load_json,
        inputs=[sets.training_sets, list(map(attrgetter("__name__"), RECORDING_CHECKS))],
        after=[stamp_of(run, side) for side in (*sets.original.values(), *sets.twins.values())],
        libraries=("numpy", "soundfile"),
    )
    for finding in chain(*read_findings(run, suffix).values()):
        if finding.level == "error":
            logger.warning("no verdict will be given: %s", finding.text)


def read_findings(run: Run, suffix: str) -> dict[str, list[Finding]]:
    """Return the findings of each check by its name."""
    findings = {}
    for check, rows in load_json(run.path(f"checks{suffix}.json")).items():
        findings[check] = [Finding(*row) for row in rows]
    return findings


def equal_audio(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Check that no recording has two names, and that no anonymised recording equals the original of another utterance.

    Otherwise a trial would be trivial, or a training speaker would be tested. Recordings are compared by their sound,
    see `spkver.datadir.fingerprints`. `check_twin` compares each recording with its own original.
    """
    originals = fingerprints_of(distinct_recordings(sets.original.values()), jobs=jobs)
    twins = fingerprints_of(distinct_recordings(sets.twins.values()), jobs=jobs)
    for side, prints in (("original", originals), ("anonymised", twins)):
        names = list(prints)
        pairs = copies(list(prints.values()))
        if pairs:
            equal = []
            copied = set()
            for first, second in pairs:
                equal.append(f"{names[first]} = {names[second]}")
                copied.add(second)
            listed = few(equal)
            text = counted(len(copied), "file")
            text += (
                f" of {side} speech with the audio of another one, whatever its format, level or"
            )
            yield Finding("warning", "duplicate audio", f"{text} ends: {listed}")
        else:
            yield Finding("ok", "duplicate audio", f"No two files of {side} speech are equal.")
    matches: dict[str, list[str]] = {}
    names = list(originals)
    twin_names = list(twins)
    for twin, original in copies(list(twins.values()), list(originals.values())):
        matches.setdefault(twin_names[twin], []).append(names[original])
    # an utterance may equal its own original if the anonymiser was set to change little or nothing
    foreign = [f"{twin} = {same[0]}" for twin, same in matches.items() if not _is_own(twin, same)]
    if foreign:
        text = f"Original audio of another set in {counted(len(foreign), 'file')} of anonymised speech: {few(foreign)}"
        yield Finding("warning", "original audio", text)


def distinct_recordings(directories: Iterable[DataDir]) -> dict[str, Path]:
    """Return recordings by ``directory/utterance``.

    A recording that several directories list under the same name counts once.
    """
    names: dict[tuple[str, str], str] = {}
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            names.setdefault((os.path.realpath(path), utterance), f"{directory.name}/{utterance}")
    return {name: Path(path) for (path, _), name in names.items()}


def _is_own(twin: str, originals: Iterable[str]) -> bool:
    """Whether one of the originals, as ``directory/utterance``, is the twin's utterance."""
    return any(name.partition("/")[2] == twin.partition("/")[2] for name in originals)


def broken_recordings(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Warn of anonymised recordings that are clipped, far too quiet, too short or silent.

    Of training sets only a sample is checked.
    """
    training = sets.training_sets
    for name, twin in sets.twins.items():
        chosen: Sequence[str] = sorted(twin.recordings)
        if name in training:
            chosen = spaced(chosen)
        texts = doubtful_recordings(_chosen(twin, chosen), jobs=jobs)
        if not texts:
            continue
        before = doubtful_recordings(_chosen(sets.original[name], chosen), jobs=jobs)
        more = f" Their originals: {'; '.join(before)}." if before else ""
        for text in texts:
            yield Finding("warning", "broken recordings", f"{twin.name}: {text}.{more}")


def file_tags(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Warn if a tag of an anonymised file (artist, title, comment) contains the name of its speaker."""
    naming = []
    for twin in sets.twins.values():
        for utterance in spaced(sorted(twin.recordings)):
            with suppress(DataError), open_audio(twin.recordings[utterance]) as file:
                for tag, words in file.copy_metadata().items():
                    if twin.speakers[utterance] in words:
                        naming.append(f"{twin.name}/{utterance}, {tag}")
    if naming:
        text = f"Tags of anonymised files name the speaker: {few(naming)}. Remove them."
        yield Finding("warning", "tags of files", text)


def hidden_speech(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note anonymised files with more bits or a higher sampling rate than the originals, where speech may be hidden."""
    roomy = []
    for name, twin in sets.twins.items():
        for utterance in spaced(sorted(twin.recordings)):
            before = sets.original[name].recordings[utterance]
            after = twin.recordings[utterance]
            with (
                suppress(DataError),
                open_audio(before) as original,
                open_audio(after) as anonymised,
            ):
                more_bits = _BITS.get(anonymised.subtype, 16) > _BITS.get(original.subtype, 16)
                if more_bits or anonymised.samplerate > original.samplerate:
                    rate = anonymised.samplerate
                    roomy.append(f"{twin.name}/{utterance}, {anonymised.subtype} at {rate} Hz")
    if roomy:
        text = f"{len(roomy)} anonymised files have more bits or a higher sampling rate than their originals"
        text += (
            f" ({few(roomy)}). Attackers do not look for original speech there: convert the files."
        )
        yield Finding("note", "hidden speech", text)


def without_speech(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Report noise, tones or silence in place of speech: levels that hardly vary over time, unlike the originals'.

    If most recordings are like this, there is no verdict: to hide speakers by removing all speech protects nothing.
    """
    for name, twin in sets.twins.items():
        flat = []
        for utterance, variation in _variations(twin, sorted(twin.recordings), jobs).items():
            if variation < _FLAT:
                flat.append(utterance)
        n_compared = len(spaced(sorted(twin.recordings)))
        if len(flat) < _MANY * n_compared:
            continue
        before = _variations(sets.original[name], flat, jobs)
        flat = [utterance for utterance in flat if before.get(utterance, 0.0) >= _FLAT]
        if flat:
            text = f"No speech in {counted(len(flat), 'recording')} of {twin.name}, as levels hardly vary: {few(flat)}."
            level = "error" if len(flat) >= _MOST * n_compared else "warning"
            yield Finding(level, "no speech", f"{text} Noise would be as private: listen to some.")


def _variations(
    directory: DataDir, utterances: Sequence[str], jobs: int | None
) -> dict[str, float]:
    """Return the standard deviation over time of the levels in each recording of a sample, in dB."""
    chosen = spaced(utterances)
    return dict(
        zip(chosen, Work(jobs).map(_variation, _paths(directory.recordings, chosen)), strict=True)
    )


def short_recordings(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note sets with so little original speech that every attacker recognises much less than from longer recordings."""
    for dataset in sets.datasets:
        enrolled = enrolment(sets.original[dataset.enrolls])
        recordings = sets.original[dataset.enrolls].recordings
        model = median_speech(_paths(recordings, spaced(sorted(enrolled.segments))), jobs)
        model *= len(enrolled.segments) / len(set(enrolled.models))
        tested: dict[str, Path] = {}
        for trials in dataset.trials.values():
            tested |= sets.original[trials].recordings
        test = median_speech(_paths(tested, spaced(sorted(tested))), jobs)
        shorter, longer = sorted((test, model))
        if shorter < VERY_SHORT or (shorter < SHORT and longer < NOT_LONG):
            text = f"{dataset.name}: half of the test recordings hold less than {test:.1f} s of speech, and half of the"
            yield Finding(
                "note",
                "short recordings",
                f"{text} speakers are enrolled with less than {model:.1f} s",
            )


def changed_durations(sets: Sets, jobs: int | None) -> Iterator[Finding]:
    """Note that anonymised recordings are longer or shorter than their originals.

    Of training sets only a sample is checked.
    """
    changed = []
    for name, twin in sets.twins.items():
        chosen: Sequence[str] = sorted(twin.recordings)
        if name in sets.training_sets:
            chosen = spaced(chosen)
        before = _paths(sets.original[name].recordings, chosen)
        changes = duration_changes(before, _paths(twin.recordings, chosen), jobs=jobs)
        if (np.abs(changes) > _ANOTHER_DURATION).any():
            middle, least, most = 100 * np.quantile(changes, (0.5, 0, 1))
            changed.append(f"{middle:+.0f} % in {twin.name} ({least:+.0f} to {most:+.0f} %)")
    if changed:
        text = f"Anonymised recordings are longer or shorter than their originals, in the median by {few(changed)}."
        yield Finding("note", "durations", text)


def median_speech(paths: Sequence[Path], jobs: int | None) -> float:
    """Return the median duration of speech in recordings, without pauses and silence, in seconds."""
    return float(np.median(list(Work(jobs).map(_speech, paths))))


def spaced(names: Sequence[str]) -> Sequence[str]:
    """Return at most `_COMPARED` names, evenly spaced."""
    return names[:: max(1, -(-len(names) // _COMPARED))]


RECORDING_CHECKS: tuple[Callable[[Sets, int | None], Iterator[Finding]], ...] = (
    equal_audio,
    broken_recordings,
    file_tags,
    hidden_speech,
    short_recordings,
    without_speech,
    changed_durations,
)
"""All checks of recordings."""


def _chosen(directory: DataDir, utterances: Iterable[str]) -> dict[str, Path]:
    """Return the recordings of those given utterances that a directory has."""
    recordings = directory.recordings
    return {utterance: recordings[utterance] for utterance in utterances if utterance in recordings}


def _paths(recordings: Mapping[str, Path], utterances: Iterable[str]) -> list[Path]:
    return [recordings[utterance] for utterance in utterances]


def _variation(path: Path) -> float:
    audio = read_audio(path, channel=0)
    energy = energy_contour(audio.samples, audio.rate)
    return float(np.maximum(energy, energy.max() - _DEEPEST).std())


def _speech(path: Path) -> float:
    audio = read_audio(path, channel=0)
    energy = np.sort(energy_contour(audio.samples, audio.rate))
    return FRAME_SHIFT * np.count_nonzero(energy > energy[-_LOUD:][0] - _SPEECH)
