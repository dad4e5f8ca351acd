"""What anonymised speech is still good for: words (WER, CER), intonation (F0) and emotions (UAR), where asked for.

**How well emotions are still recognised in anonymised speech:** the unweighted average recall of sets with ``utt2emo``.

As in the challenge the recogniser learns from original speech, of other speakers than it is tried on (``spk2fold``,
else each speaker alone), and hears the original and the anonymised utterances. Labels, folds and speakers are always
those of the original set.

**What the vectors of the strongest attacker by vectors tell of speakers beside their identity:** sex, and what a table
of speakers holds (`utility.attributes`).
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.embeddings import Embeddings
from evaluation.reports import number
from evaluation.trials import metadata_columns, read_metadata
from evaluation.uncertainty import Interval, Resampling
from evaluation.utility import (
    Sides,
    TrackComparison,
    attribute_leakage,
    average_recall,
    check_same,
    compare_recordings,
    confusions,
    count_errors,
    error_rate,
    mean_correlation,
    read_labels,
    read_transcripts,
)
from spkbase.errors import DataError, Problems
from spkbase.files import to_json, write_text
from spkbase.runs import Run
from spkver.attackers import Attacker, VectorAttacker, with_pieces
from spkver.audio import check_headers
from spkver.datadir import DataDir
from spkver.recognition import (
    EmotionConfig,
    check_folds,
    check_recogniser,
    classify_emotions,
    functionals_of,
    map_recordings,
    read_emotions,
    read_folds,
    transcribe,
)
from spkver.voiceprivacy.choosing import attacker_name, attacker_specs
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.settings import Config, UtilityConfig

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_FOLDER = "emotion"
_RECOGNISER = "functionals and SVM"


def check_emotions(sets: Sets, config: UtilityConfig, problems: Problems, *, jobs: int | None = None) -> None:
    """Check labels, folds and recordings of the sets, or the predictions that somebody else has made."""
    for name in sets.emotions:
        if name in sets.original:
            original, twin = sets.original[name], sets.twins.get(name)
            try:
                emotions, folds = read_emotions(original), read_folds(original)
                if config.predictions is None:
                    check_folds(original, original, emotions, folds=folds)
                    for speech in (original, *([] if twin is None else [twin])):
                        check_headers(speech.recordings, jobs=jobs, problems=problems)
            except DataError as error:
                problems.note(error)
                continue
            for directory in (original, twin):
                if config.predictions is not None and directory is not None:
                    try:
                        _predictions(directory, config.predictions)
                    except DataError as error:
                        problems.note(error)


def measure_emotions(run: Run, sets: Sets, config: UtilityConfig, resampling: Resampling) -> Json:
    """Measure the recall of each set.

    Returns
    -------
    dict
        {set: {original, anonymised: {value, low, high, ...}}}, the entry ``uar`` of the utility.
    """
    return {name: _recalls(run, sets.original[name], sets.twins[name], config, resampling) for name in sets.emotions}


def _recalls(run: Run, original: DataDir, twin: DataDir, config: UtilityConfig, resampling: Resampling) -> Json:
    emotions, folds = read_emotions(original), read_folds(original)
    if config.predictions is not None:
        heard = [_predictions(directory, config.predictions) for directory in (original, twin)]
    else:
        heard = _recognise(run, original, twin, emotions, folds)
    by = {"recogniser": config.predictions or _RECOGNISER}
    if config.predictions is None:
        by["learnt_on"] = original.name
    measured = {}
    for kind, predicted in zip(("original", "anonymised"), heard, strict=True):
        counted = confusions(
            emotions,
            predicted,
            original.speakers,
            folds=folds,
            convention=config.recall,  # type: ignore[arg-type]
        )
        recalls = average_recall(counted, resampling)
        ends = {"value": recalls.interval.value, "low": recalls.interval.low, "high": recalls.interval.high}
        details = {name: value for name, value in recalls.to_dict().items() if name not in ("value", "interval")}
        measured[kind] = {**ends, **details, **by}
    return measured


def _recognise(
    run: Run, original: DataDir, twin: DataDir, emotions: dict[str, str], folds: dict[str, str]
) -> list[dict[str, str]]:
    """Recognise both versions by what was learnt from the original; functionals of each are computed once."""
    config = EmotionConfig()
    sides = []
    for directory in (original, twin):
        folder_run = run.below(f"{_FOLDER}/{directory.name}")
        sides.append((folder_run, (directory, functionals_of(folder_run, directory.recordings, config))))
    learnt = sides[0][1]
    return [
        classify_emotions(folder_run, heard, learnt, emotions, folds=folds, config=config)
        for folder_run, heard in sides
    ]


def _predictions(directory: DataDir, name: str) -> dict[str, str]:
    path: Path = directory.path / name
    predicted = read_labels(path)
    check_same(directory.speakers, predicted, file=path, what="utterances")
    return predicted


NORMALISER = "basic"
KINDS = ("original", "anonymised")
_UNITS = {"wer": "words", "cer": "characters"}
# that tracks depend on
_LIBRARIES = ("numpy", "scipy", "soundfile")
_TRACKER = "pyin"


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
    correlation_of_all = mean_correlation(compared, speakers, resampling=resampling)
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
    (track,) = compare_recordings({"": original}, {"": anonymised}, jobs=1).values()
    correlation = None if math.isnan(track.correlation) else track.correlation
    return correlation, track.lag, track.voicing_agreement


def _ends(interval: Interval) -> Json:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


SEX = "sex"
FILE = "attributes.json"
_NO_VOICES = ("prosody", "session")  # vectors of a voice say more of its owner, also where these are ahead
_MISSING = "no attacker by vectors has scores of original speech"


def measure_attributes(
    run: Run,
    sets: Sets,
    config: Config,
    attackers: Mapping[str, Sequence[Attacker]],
    conditions: Sequence[Json],
) -> Json:
    """Measure what is read of each set from the vectors of the attacker that knows original speech best.

    Parameters
    ----------
    run : Run
    sets : Sets
    config : Config
    attackers : mapping of str to sequence of Attacker
        At work, for each training set.
    conditions : sequence of dict
        Entries of ``results.json``.

    Returns
    -------
    dict
        ``vectors``, the attacker's name; ``sets`` {set: {attribute: what `Leakage.to_dict` has}}; ``notes``, what could
        not be measured and why.
    """
    rates = original_rates(conditions)
    able: dict[str, dict[str, VectorAttacker]] = {}
    for training, crew in attackers.items():
        for one in crew:
            if isinstance(one, VectorAttacker):
                able.setdefault(one.name, {})[training] = one
    known = [name for name in able if name in rates]
    presets = {attacker_name(entry): spec for entry, spec in attacker_specs(config).items()}
    known = [name for name in known if presets.get(name) not in _NO_VOICES] or known
    if not known:
        return {"vectors": None, "sets": {}, "notes": [_MISSING]}
    best = min(known, key=lambda name: rates[name])
    tables = _tables(config.utility.attributes)
    resampling = Resampling(config.evaluation.replicates, config.seed, config.evaluation.level)
    directories = {
        f"{kind} {name}": directory
        for dataset in sets.datasets
        for name in (*dataset.trials.values(), dataset.training)
        for kind, of in (("original", sets.original), ("anonymised", sets.twins))
        if (directory := of.get(name)) is not None
    }

    def make(path: Path) -> None:
        measured: Json = {"vectors": best, "sets": {}, "notes": []}
        for dataset in sets.datasets:
            try:
                found, notes = _of_set(dataset, sets, able[best][dataset.training], tables, resampling)
            except DataError as error:  # the rest of the report stands without it
                found, notes = {}, [f"{dataset.name}: not measured: {error.text}"]
            measured["sets"][dataset.name] = found
            measured["notes"] += notes
        write_text(path, to_json(measured) + "\n")

    labels = {name: [sorted(of.speakers.items()), sorted(of.genders.items())] for name, of in directories.items()}
    depends = {training: one.depends for training, one in able[best].items()}
    settings = [best, depends, tables, labels, vars(resampling), config.seed]
    sources = {f"{kind} {name}": path for kind, of in directories.items() for name, path in of.recordings.items()}
    with run.timed("attributes"):
        return run.stage(
            "attributes",
            FILE,
            make=make,
            read=_read,
            inputs=settings,
            sources=sources,
            libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
        ).value


def original_rates(conditions: Sequence[Json]) -> dict[str, float]:
    """Return the mean EER of each attacker on original speech, over sets and sexes."""
    rates: dict[str, list[float]] = {}
    for condition in conditions:
        if condition["scenario"] == "original":
            rates.setdefault(condition["attacker"], []).append(number(condition["eer"]["rocch"]))
    return {name: float(np.mean(of)) for name, of in rates.items()}


def _of_set(
    dataset: Dataset,
    sets: Sets,
    attacker: VectorAttacker,
    tables: Mapping[str, Mapping[str, str]],
    resampling: Resampling,
) -> tuple[Json, list[str]]:
    """What is read of the speakers of a set, attribute by attribute, and what could not be."""
    names = tuple(dataset.trials.values())
    training = sets.original[dataset.training], sets.twins.get(dataset.training)
    source = attacker.open_source((training[0],))
    tested = [_joined_vectors([source.vectors(of[name]) for name in names]) for of in (sets.original, sets.twins)]
    sexes = {
        speaker: sex for name in (*names, dataset.training) for speaker, sex in sets.original[name].genders.items()
    }
    learning: Sides | None = None
    found, notes = {}, []
    for name, labels in {SEX: sexes, **tables}.items():
        training_speakers = set(training[0].speakers.values())
        try:
            if len({labels[speaker] for speaker in training_speakers if labels.get(speaker)}) < 2:
                leakage = attribute_leakage(Sides(*tested), labels, missing="drop", resampling=resampling)
            else:
                if learning is None:  # vectors of the training set are there where its pieces were learnt from
                    learning = Sides(*[_vectors(source, side, attacker) for side in training if side is not None])
                given: Json = {"training": learning, "missing": "drop", "resampling": resampling}
                leakage = attribute_leakage(Sides(*tested), labels, **given)
            found[name] = leakage.to_dict()
        except DataError as error:
            notes.append(f"{dataset.name}, {name}: not measured: {error.text}")
    return found, notes


def _vectors(source: Any, training: DataDir, attacker: VectorAttacker) -> Embeddings:
    return source.vectors(with_pieces((training,), attacker.place)[0])


def _joined_vectors(parts: Sequence[Embeddings]) -> Embeddings:
    """Vectors of several data directories; an utterance that is in two counts once."""
    first: dict[str, tuple[str, Any]] = {}
    for part in parts:
        for name, speaker, vector in zip(part.ids.tolist(), part.speakers.tolist(), part.vectors, strict=True):
            first.setdefault(name, (speaker, vector))
    owners, vectors = zip(*first.values(), strict=True)
    return Embeddings(np.array(list(first), object), np.array(owners, object), np.stack(vectors))


def _tables(file: str | None) -> dict[str, dict[str, str]]:
    return {} if file is None else {column: read_metadata(file, column) for column in metadata_columns(file)}


def _read(path: Path) -> Json:
    found: Json = json.loads(path.read_text(encoding="utf-8"))
    return found
