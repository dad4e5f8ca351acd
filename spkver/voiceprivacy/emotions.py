"""How well emotions are still recognised in anonymised speech: the unweighted average recall of sets with ``utt2emo``.

As in the challenge the recogniser learns from original speech, of other speakers than it is tried on (``spk2fold``,
else each speaker alone), and hears the original and the anonymised utterances. Labels, folds and speakers are always
those of the original set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.uncertainty import Resampling
from evaluation.utility import average_recall, check_same, confusions, read_labels
from spkbase.errors import DataError, Problems
from spkbase.runs import Run
from spkver.datadir import DataDir
from spkver.recognition import (
    EmotionConfig,
    check_folds,
    check_recordings,
    classify_emotions,
    functionals_of,
    read_emotions,
    read_folds,
)
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import UtilityConfig

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
                    check_recordings(original.recordings, {} if twin is None else twin.recordings, jobs=jobs)
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
