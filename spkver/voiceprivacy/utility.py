"""Utility of anonymised speech: words (WER, CER), intonation (F0) and emotions (UAR), if configured.

Words of the anonymised speech are compared with the words that the same recogniser finds in the original speech; where
there is a file ``text``, both are compared with it, too. If few words of the original speech agree with ``text``, as in
a language that the recogniser does not know, anonymised speech is not judged by its words.

The recognition of emotions is measured by the unweighted average recall on sets with ``utt2emo``. As in the challenge,
the recogniser is trained on original speech of other speakers (folds from ``spk2fold``, else one speaker each), and
tested on original and anonymised utterances. Labels, folds and speakers are always taken from the original set.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from evaluation import utility as measures
from evaluation.reports import UtilityFigure, UtilityRate
from evaluation.uncertainty import Resampling
from spkbase.errors import Problems, few
from spkbase.runs import Run
from spkver import recognition
from spkver.audio import check_headers
from spkver.datadir import DataDir
from spkver.features import pitch_track
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.settings import Config, UtilityConfig

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_NORMALISER = "basic"
_KINDS = ("original", "anonymised")
_MEASURES = ("wer", "wer_to_original", "cer", "f0", "uar")
_TRACKER = "pyin"


def check_utility(sets: Sets, config: Config, problems: Problems, *, jobs: int | None = None) -> None:
    """Check that the input for utility exists: lists, recognisers or their output."""
    given = config.utility
    tried = dict.fromkeys(name for one in sets.datasets for name in one.trials.values())
    if given.wer and not given.hypotheses:
        with problems.noted():
            recognition.open_recogniser(given.recogniser)
    if given.wer or given.hypotheses:
        texts = [sets.original[name].path / "text" for name in tried if name in sets.original]
        are_needed = given.hypotheses or any(path.is_file() for path in texts)
        needed = texts if are_needed else []
        needed += [side.path / given.hypotheses for name in tried for side in sets.pair(name) if given.hypotheses]
        for path in needed:
            if not path.is_file():
                problems.add("no such transcripts", file=path, remedy="add them, or leave utility.wer out")
    for directories in map(sets.pair, sets.emotions):
        if given.predictions is not None:
            for directory in directories:
                with problems.noted():
                    _predictions(directory, given.predictions)
        with problems.noted():
            emotions, folds = recognition.read_emotions(directories[0]), recognition.read_folds(directories[0])
            if given.predictions is None:
                recognition.check_folds(directories[0], directories[0], emotions, folds=folds)
                for directory in directories:
                    check_headers(directory.recordings, jobs=jobs, problems=problems)
    for key, names in (("hypotheses", tried), ("predictions", sets.emotions)):
        file = getattr(given, key)
        # a twin that is made here gets copies of the original's lists
        unheard = [name for name in names if file and name in sets.missing]
        if unheard:
            text = f"utility.{key}: {', '.join(unheard)} would be anonymised by this run: there is no such file"
            problems.add(text, remedy=f"add directories with {file} beside the originals, or leave utility.{key} out")


def utility(experiment: Experiment, sets: Sets) -> list[UtilityFigure]:
    """Compute the configured measures on the trial utterances of each set, both sexes together.

    Returns
    -------
    list of UtilityFigure
        Of ``wer``, ``cer`` and ``uar`` for original and anonymised speech, of ``wer_to_original`` and ``f0`` for
        anonymised speech.
    """
    run, config = experiment.run, experiment.config
    experiment.begin("utility")
    resampling = Resampling(config.evaluation.resamples, config.seed, config.evaluation.level)
    figures: list[UtilityFigure] = []
    if config.utility.wer or config.utility.hypotheses:
        with run.timed("words"):
            for dataset in sets.datasets:
                figures += _words(run, sets, dataset, config.utility, resampling)
    if config.utility.f0:
        with run.timed("pitch"):
            figures += [_pitch(run, sets, dataset, resampling) for dataset in sets.datasets]
    if sets.emotions:
        with run.timed("emotions"):
            for name in sets.emotions:
                figures += _recalls(run, sets, name, config.utility, resampling)
    figures.sort(key=lambda figure: _MEASURES.index(figure.measure))
    measured = dict.fromkeys(figure.measure for figure in figures)
    experiment.end("utility", ", ".join(measured) or "none is configured")
    return figures


class _Words(NamedTuple):
    """Words of data directories, and the name of the recogniser.

    The warning names recordings in which it repeated itself.
    """

    words: dict[str, str]
    recogniser: str
    warning: str | None = None


def _words(
    run: Run, sets: Sets, dataset: Dataset, config: UtilityConfig, resampling: Resampling
) -> Iterator[UtilityFigure]:
    """Compare the words of original and anonymised speech with ``text``, where it is there, and with each other."""
    names = tuple(dataset.trials.values())
    speakers = _together([sets.original[name].speakers for name in names])
    original = _recognise(run, [sets.original[name] for name in names], config)
    anonymised = _recognise(run, [sets.twins[name] for name in names], config)
    compare = partial(_compare_words, dataset.name, speakers=speakers, resampling=resampling)
    texts = [sets.original[name].path / "text" for name in names]
    if all(path.is_file() for path in texts):
        reference = _together([measures.read_transcripts(path) for path in texts])
        share = recognition.agreement(reference, original.words)
        if share < recognition.UNDERSTOOD and not config.hypotheses:
            warning = f"{dataset.name}: the words were not understood: {100 * share:.0f} % of them agree with text."
            original = original._replace(warning=f"{warning} So anonymised speech is not judged by its words.")
            logger.warning(original.warning)
            yield compare("wer", "original", reference, original)
            return
        for measure in ("wer", "cer"):
            yield compare(measure, "original", reference, original)
            yield compare(measure, "anonymised", reference, anonymised)
    if any(original.words.values()):
        yield compare("wer_to_original", "anonymised", original.words, anonymised)
    else:
        warning = f"{dataset.name}: no word was recognised in the original speech, so words were not compared."
        logger.warning(warning)
        yield UtilityFigure("wer_to_original", (dataset.name, "original"), UtilityRate(warning=warning))


def _recognise(run: Run, sides: Sequence[DataDir], config: UtilityConfig) -> _Words:
    """Recognise the words of data directories, or read the words of another recogniser."""
    if config.hypotheses:
        read = [measures.read_transcripts(side.path / config.hypotheses) for side in sides]
        return _Words(_together(read), config.hypotheses)
    recogniser = recognition.open_recogniser(config.recogniser)
    parts = [recognition.transcribe(run.below(f"asr/{side.name}"), side, recogniser) for side in sides]
    words = _together([part.words for part in parts])
    cut = [utterance for part in parts for utterance in part.cut]
    warning = None
    if cut:
        warning = (
            f"{recogniser.name} repeated itself in {len(cut)} of {len(words)} recordings, and was cut: {few(cut)}."
        )
    return _Words(words, recogniser.name, warning)


def _compare_words(
    dataset: str,
    measure: str,
    kind: str,
    reference: Mapping[str, str],
    recognised: _Words,
    *,
    speakers: Mapping[str, str],
    resampling: Resampling,
) -> UtilityFigure:
    counting: Json = {"unit": "characters" if measure == "cer" else "words", "normaliser": _NORMALISER}
    counts = measures.count_errors(reference, recognised.words, **counting)
    rate = measures.error_rate(counts, speakers, resampling)
    of_words = UtilityRate(
        rate.interval,
        n_utterances=rate.n_utterances,
        recogniser=recognised.recogniser,
        normaliser=_NORMALISER,
        warning=recognised.warning,
    )
    return UtilityFigure(measure, (dataset, kind), of_words)


def _pitch(run: Run, sets: Sets, dataset: Dataset, resampling: Resampling) -> UtilityFigure:
    names = tuple(dataset.trials.values())
    original, anonymised = (_together([of[name].recordings for name in names]) for of in (sets.original, sets.twins))
    speakers = _together([sets.original[name].speakers for name in names])
    pairs = {utterance: (path, anonymised[utterance]) for utterance, path in original.items()}
    how: Json = {"settings": _TRACKER, "libraries": ("numpy", "scipy", "soundfile")}
    kept = recognition.map_recordings(run.below(f"pitch/{dataset.name}"), "tracks", _compare_tracks, pairs, **how)
    compared = {
        utterance: measures.TrackComparison(math.nan if correlation is None else correlation, int(lag), agreement)
        for utterance, (correlation, lag, agreement) in kept.items()
    }
    found = measures.mean_correlation(compared, speakers, resampling=resampling)
    rate = UtilityRate(
        found.interval,
        convention=found.convention,
        n_utterances=found.n_utterances,
        n_undefined=found.n_undefined,
        tracker=_TRACKER,
    )
    return UtilityFigure("f0", (dataset.name, "anonymised"), rate)


def _compare_tracks(pair: tuple[Path, ...]) -> tuple[float | None, int, float]:
    """Compare the pitch of a recording and its twin: correlation (None if undefined), lag, agreement."""
    (track,) = measures.compare_recordings({"": pair[0]}, {"": pair[1]}, pitch_track, jobs=1).values()
    return None if math.isnan(track.correlation) else track.correlation, track.lag, track.voicing_agreement


def _recalls(run: Run, sets: Sets, name: str, config: UtilityConfig, resampling: Resampling) -> Iterator[UtilityFigure]:
    """Recognise emotions in both versions after training on the original, or read another recogniser's emotions."""
    original, _ = sides = sets.original[name], sets.twins[name]
    emotions, folds = recognition.read_emotions(original), recognition.read_folds(original)
    if config.predictions is not None:
        heard = [_predictions(directory, config.predictions) for directory in sides]
        by = {"recogniser": config.predictions}
    else:
        runs = [run.below(f"emotion/{directory.name}") for directory in sides]
        described = [
            (side, recognition.functionals_of(below, side.recordings)) for below, side in zip(runs, sides, strict=True)
        ]
        heard = [
            recognition.classify_emotions(below, tested, described[0], emotions, folds=folds)
            for below, tested in zip(runs, described, strict=True)
        ]
        by = {"recogniser": "functionals and SVM", "learnt_on": original.name}
    for kind, predicted in zip(_KINDS, heard, strict=True):
        convention: Any = config.recall
        counted = measures.confusions(emotions, predicted, original.speakers, folds=folds, convention=convention)
        recalls = measures.average_recall(counted, resampling)
        rate = UtilityRate.from_dict(recalls.to_dict() | by)
        yield UtilityFigure("uar", (name, kind), rate)


def _predictions(directory: DataDir, name: str) -> dict[str, str]:
    predicted = measures.read_labels(directory.path / name)
    measures.check_same(directory.speakers, predicted, file=directory.path / name, what="utterances")
    return predicted


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}
