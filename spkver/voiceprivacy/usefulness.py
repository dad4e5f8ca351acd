"""What anonymised speech is still good for: words (WER, CER), intonation (F0) and emotions (UAR), where asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from evaluation.trials import metadata_columns, read_metadata
from evaluation.uncertainty import Interval, Resampling
from evaluation.utility import (
    TrackComparison,
    compare_recordings,
    count_errors,
    error_rate,
    mean_correlation,
    read_transcripts,
)
from spkbase.errors import DataError, Problems
from spkbase.runs import Run
from spkver.datadir import DataDir
from spkver.recognition import check_recogniser, map_recordings, transcribe
from spkver.voiceprivacy.emotions import check_emotions, measure_emotions
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.settings import Config

Json = dict[str, Any]

NORMALISER = "basic"
KINDS = ("original", "anonymised")
_UNITS = {"wer": "words", "cer": "characters"}
# that tracks depend on
_LIBRARIES = ("numpy", "scipy", "soundfile")
_TRACKER: Literal["pyin"] = "pyin"


def check_utility(sets: Sets, config: Config, problems: Problems, *, jobs: int | None = None) -> None:
    """Check that there is what utility needs: lists, recognisers or what they have recognised."""
    if config.utility.wer or config.utility.hypotheses:
        _check_words(sets, config, problems)
    if config.utility.attributes is not None:
        try:
            for column in metadata_columns(config.utility.attributes):
                read_metadata(config.utility.attributes, column)
        except DataError as error:
            problems.note(error)
    check_emotions(sets, config.utility, problems, jobs=jobs)
    tried = [name for dataset in sets.datasets for name in dataset.trials.values()]
    for key, file, names in (
        ("hypotheses", config.utility.hypotheses, tried),
        ("predictions", config.utility.predictions, sets.emotions),
    ):
        # the lists of a twin that is made here are copies of the original's
        unheard = [name for name in dict.fromkeys(names) if file and name in sets.missing]
        if unheard:
            text = f"utility.{key}: nobody has recognised the anonymised {', '.join(unheard)}, which would be made here"
            problems.add(text, remedy=f"add directories with {file} beside the originals, or leave utility.{key} out")


def _check_words(sets: Sets, config: Config, problems: Problems) -> None:
    if not config.utility.hypotheses:
        try:
            check_recogniser()
        except DataError as error:
            problems.note(error)
    for name in dict.fromkeys(name for dataset in sets.datasets for name in dataset.trials.values()):
        needed = [sets.original[name].path / "text"] if name in sets.original else []
        if config.utility.hypotheses:
            directories = [
                directories_of[name] for directories_of in (sets.original, sets.twins) if name in directories_of
            ]
            needed += [directory.path / config.utility.hypotheses for directory in directories]
        for path in needed:
            if not path.is_file():
                problems.add("no such transcripts", file=path, remedy="add them, or leave utility.wer out")


def measure_utility(run: Run, sets: Sets, config: Config) -> Json:
    """Measure what is asked for on the trial utterances of each set, both sexes together.

    Returns
    -------
    dict
        ``wer``, ``cer`` and ``uar`` {set: {original, anonymised: {value, low, high, ...}}}, ``f0`` {set:
        {anonymised: ...}}.
    """
    resampling = Resampling(config.evaluation.replicates, config.seed, config.evaluation.level)
    measured: Json = {}
    if config.utility.wer or config.utility.hypotheses:
        with run.timed("words"):
            for dataset in sets.datasets:
                for unit, rates in _words(run, sets, dataset, config.utility.hypotheses, resampling).items():
                    measured.setdefault(unit, {})[dataset.name] = rates
    if config.utility.f0:
        with run.timed("pitch"):
            measured["f0"] = {
                dataset.name: {"anonymised": _pitch(run, sets, dataset, resampling)} for dataset in sets.datasets
            }
    if sets.emotions:
        with run.timed("emotions"):
            measured["uar"] = measure_emotions(run, sets, config.utility, resampling)
    return measured


def _words(run: Run, sets: Sets, dataset: Dataset, hypotheses: str | None, resampling: Resampling) -> Json:
    names = tuple(dataset.trials.values())
    reference = _together([read_transcripts(sets.original[name].path / "text") for name in names])
    speakers = _together([sets.original[name].speakers for name in names])
    rates: Json = {unit: {} for unit in _UNITS}
    for kind, directories in zip(KINDS, (sets.original, sets.twins), strict=True):
        recognised = _together([_recognised(run, directories[name], hypotheses) for name in names])
        for unit, counted in _UNITS.items():
            counts = count_errors(reference, recognised, unit=counted, normaliser=NORMALISER)  # type: ignore[arg-type]
            rate = error_rate(counts, speakers, resampling)
            by = {"recogniser": hypotheses or "pocketsphinx", "normaliser": NORMALISER}
            rates[unit][kind] = {**_ends(rate.interval), "n_utterances": rate.n_utterances, **by}
    return rates


def _recognised(run: Run, directory: DataDir, hypotheses: str | None) -> Mapping[str, str]:
    if hypotheses:
        return read_transcripts(directory.path / hypotheses)
    return transcribe(run.below(f"asr/{directory.name}"), directory)


def _pitch(run: Run, sets: Sets, dataset: Dataset, resampling: Resampling) -> Json:
    names = tuple(dataset.trials.values())
    original, anonymised = (
        _together([directories[name].recordings for name in names]) for directories in (sets.original, sets.twins)
    )
    speakers = _together([sets.original[name].speakers for name in names])
    pairs = {utterance: (path, anonymised[utterance]) for utterance, path in original.items()}
    kept = map_recordings(
        run.below(f"pitch/{dataset.name}"), "tracks", _compare_tracks, pairs, settings=_TRACKER, libraries=_LIBRARIES
    )
    compared = {
        utterance: TrackComparison(math.nan if correlation is None else correlation, int(lag), agreement)
        for utterance, (correlation, lag, agreement) in kept.items()
    }
    correlation_of_all = mean_correlation(compared, speakers, tracker=_TRACKER, resampling=resampling)
    counts = {"n_utterances": correlation_of_all.n_utterances, "n_undefined": correlation_of_all.n_undefined}
    return {
        **_ends(correlation_of_all.interval),
        **counts,
        "tracker": _TRACKER,
        "convention": correlation_of_all.convention,
    }


def _compare_tracks(pair: tuple[Path, ...]) -> tuple[float | None, int, float]:
    """Compare the pitch of a recording and its twin: correlation (None where it is undefined), lag, agreement."""
    original, anonymised = pair
    (track,) = compare_recordings({"": original}, {"": anonymised}, tracker=_TRACKER, jobs=1).values()
    correlation = None if math.isnan(track.correlation) else track.correlation
    return correlation, track.lag, track.voicing_agreement


def _ends(interval: Interval) -> Json:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}
