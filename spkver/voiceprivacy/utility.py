"""Utility of anonymised speech: words (WER, CER), intonation (F0) and emotions (UAR), if configured.

The words recognised in anonymised speech are compared with those that the same recogniser finds in the original; if
there is a file ``text``, both are also compared with it. If few words of the original speech agree with ``text``, as in
a language that the recogniser does not know, anonymised speech is not judged by its words.

The recognition of emotions is measured by the unweighted average recall on sets with ``utt2emo``. As in the challenge,
the recogniser is trained on original speech of other speakers (folds from ``spk2fold``, else one speaker per fold), and
tested on original and anonymised utterances. Labels, folds and speakers are always taken from the original set.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evaluation import utility as measures
from evaluation.reports import UtilityFigure, UtilityRate
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError, Problems, counted, few
from spkbase.runs import Run
from spkver import recognition
from spkver.audio import check_headers
from spkver.datadir import DataDir
from spkver.features import pitch_track
from spkver.voiceprivacy.experiment import WORDS, Experiment
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.settings import Config, UtilityConfig
from spkver.voiceprivacy.words import hypotheses_file

logger = logging.getLogger(__name__)

_NORMALISER = "basic"
_UNITS: dict[str, Literal["words", "characters"]] = {
    "wer": "words",
    "wer_to_original": "words",
    "cer": "characters",
}
_KINDS = ("original", "anonymised")
_MEASURES = ("wer", "wer_to_original", "cer", "f0", "uar")
_TRACKER = "pyin"


def check_utility(
    sets: Sets, config: Config, problems: Problems, *, jobs: int | None = None
) -> None:
    """Check that the input for utility exists: lists, recognisers or their output."""
    given = config.utility
    tried: dict[str, None] = {}
    for dataset in sets.datasets:
        tried |= dict.fromkeys(dataset.trials.values())
    if (given.wer and not given.hypotheses) or config.recognises_words:
        with problems.noted():
            recognition.open_recogniser(given.recogniser)
    if given.wer or given.hypotheses:
        for path in _transcripts(sets, list(tried), given.hypotheses):
            if not path.is_file():
                problems.add(
                    "there are no such transcripts",
                    file=path,
                    remedy="add them, or leave utility.wer out",
                )
    for name in sets.emotions:
        _check_emotions(sets.pair(name), given.predictions, problems, jobs)
    _check_given("hypotheses", given.hypotheses, tried, sets, problems)
    _check_given("predictions", given.predictions, sets.emotions, sets, problems)


def _check_given(
    key: str, file: str | None, names: Iterable[str], sets: Sets, problems: Problems
) -> None:
    """Refuse another recogniser's output for sets that this run anonymises.

    Their lists would be those of the originals.
    """
    made = [name for name in names if name in sets.missing]
    if file and made:
        text = f"utility.{key}: {', '.join(made)} would be anonymised by this run: there is no such file"
        problems.add(
            text,
            remedy=f"add directories with {file} beside the originals, or leave utility.{key} out",
        )


def _transcripts(sets: Sets, names: Sequence[str], hypotheses: str | None) -> list[Path]:
    """Return the required files of the trials: ``text``, and another recogniser's transcripts of both sides."""
    paths = [sets.original[name].path / "text" for name in names if name in sets.original]
    if not hypotheses and not any(map(Path.is_file, paths)):
        return []
    if hypotheses:
        for name in names:
            paths += [hypotheses_file(side, hypotheses) for side in sets.pair(name)]
    return paths


def _check_emotions(
    directories: Sequence[DataDir], predictions: str | None, problems: Problems, jobs: int | None
) -> None:
    """Check the labels of an emotion set, and the predictions or the recordings of both sides."""
    original = directories[0]
    if predictions is not None:
        for directory in directories:
            with problems.noted():
                _predictions(directory, predictions)
    with problems.noted():
        emotions = recognition.read_emotions(original)
        folds = recognition.read_folds(original)
        if predictions is None:
            recognition.check_folds(original, original, emotions, folds=folds)
            for directory in directories:
                check_headers(directory.recordings, jobs=jobs, problems=problems)


def utility(experiment: Experiment, sets: Sets) -> list[UtilityFigure]:
    """Compute the configured measures on the trial utterances of each set, both sexes together.

    Returns
    -------
    list of UtilityFigure
        ``wer``, ``cer`` and ``uar`` of original and of anonymised speech, ``wer_to_original`` and ``f0`` of anonymised
        speech.
    """
    run = experiment.run
    config = experiment.config
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
    measured = dict.fromkeys(map(attrgetter("measure"), figures))
    experiment.end("utility", ", ".join(measured) or "none is configured")
    return figures


class _Words(NamedTuple):
    """Words of data directories, and the name of the recogniser.

    The warning names recordings in which the recogniser repeated itself.
    """

    words: dict[str, str]
    recogniser: str
    warning: str | None = None


def _words(
    run: Run, sets: Sets, dataset: Dataset, config: UtilityConfig, resampling: Resampling
) -> Iterator[UtilityFigure]:
    """Compare the words of original and anonymised speech with ``text``, if it exists, and with each other."""
    originals = [sets.original[name] for name in dataset.trials.values()]
    speakers: dict[str, str] = {}
    for side in originals:
        speakers |= side.speakers
    original = _recognise(run, originals, config)
    anonymised = _recognise(run, [sets.twins[name] for name in dataset.trials.values()], config)
    compare = partial(_compare_words, dataset.name, speakers=speakers, resampling=resampling)
    if all((side.path / "text").is_file() for side in originals):
        reference = _read_words(originals, "text")
        share = recognition.agreement(reference, original.words)
        if share < recognition.UNDERSTOOD and not config.hypotheses:
            warning = f"{dataset.name}: the words were not understood: {100 * share:.0f} % of them agree with text."
            original = original._replace(
                warning=f"{warning} So anonymised speech is not judged by its words."
            )
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
        yield UtilityFigure(
            "wer_to_original", (dataset.name, "original"), UtilityRate(warning=warning)
        )


def _recognise(run: Run, sides: Sequence[DataDir], config: UtilityConfig) -> _Words:
    """Recognise the words of data directories, or read the words of another recogniser."""
    if config.hypotheses:
        return _Words(_given_words(sides, config.hypotheses), config.hypotheses)
    words: dict[str, str] = {}
    cut: list[str] = []
    recogniser = recognition.open_recogniser(config.recogniser)
    for side in sides:
        part = recognition.transcribe(run.below(f"{WORDS}/{side.name}"), side, recogniser)
        words |= part.words
        cut += part.cut
    warning = None
    if cut:
        warning = f"{recogniser.name} repeated itself in {len(cut)} of {len(words)} recordings, and was cut:"
        warning += f" {few(cut)}."
    return _Words(words, recogniser.name, warning)


def _given_words(sides: Sequence[DataDir], hypotheses: str) -> dict[str, str]:
    """Return another recogniser's words; files in a separate folder may also hold other utterances."""
    if not Path(hypotheses).is_dir():
        return _read_words(sides, hypotheses)
    words: dict[str, str] = {}
    for side in sides:
        path = hypotheses_file(side, hypotheses)
        given = measures.read_transcripts(path)
        lacking = side.speakers.keys() - given.keys()
        if lacking:
            text = f"no words of {counted(len(lacking), 'utterance')} of {side.name}: {few(lacking, repr)}"
            raise DataError(
                text, file=path, remedy="add them, as lines without words if nothing was recognised"
            )
        words |= {utterance: given[utterance] for utterance in side.speakers}
    return words


def _read_words(sides: Sequence[DataDir], file: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for side in sides:
        words |= measures.read_transcripts(side.path / file)
    return words


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
    counts = measures.count_errors(
        reference, recognised.words, unit=_UNITS[measure], normaliser=_NORMALISER
    )
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
    pairs: dict[str, tuple[Path, Path]] = {}
    speakers: dict[str, str] = {}
    for name in dataset.trials.values():
        speakers |= sets.original[name].speakers
        for utterance, path in sets.original[name].recordings.items():
            pairs[utterance] = (path, sets.twins[name].recordings[utterance])
    kept = recognition.map_recordings(
        run.below(f"pitch/{dataset.name}"),
        "tracks",
        _compare_tracks,
        pairs,
        settings=_TRACKER,
        libraries=("numpy", "scipy", "soundfile"),
    )
    compared = {}
    for utterance, (correlation, lag, agreement) in kept.items():
        value = math.nan if correlation is None else correlation
        compared[utterance] = measures.TrackComparison(value, int(lag), agreement)
    mean = measures.mean_correlation(compared, speakers, resampling=resampling)
    rate = UtilityRate(
        mean.interval,
        convention=mean.convention,
        n_utterances=mean.n_utterances,
        n_undefined=mean.n_undefined,
        tracker=_TRACKER,
    )
    return UtilityFigure("f0", (dataset.name, "anonymised"), rate)


def _compare_tracks(pair: tuple[Path, ...]) -> tuple[float | None, int, float]:
    """Compare the pitch of a recording and its twin: correlation (None if undefined), lag, agreement."""
    (track,) = measures.compare_recordings(
        {"": pair[0]}, {"": pair[1]}, pitch_track, jobs=1
    ).values()
    correlation = None if math.isnan(track.correlation) else track.correlation
    return correlation, track.lag, track.voicing_agreement


def _recalls(
    run: Run, sets: Sets, name: str, config: UtilityConfig, resampling: Resampling
) -> Iterator[UtilityFigure]:
    """Recognise emotions in both versions after training on the original, or read another recogniser's emotions."""
    original = sets.original[name]
    sides = (original, sets.twins[name])
    emotions = recognition.read_emotions(original)
    folds = recognition.read_folds(original)
    recogniser = {"recogniser": "functionals and SVM", "learnt_on": original.name}
    described = {}
    if config.predictions is not None:
        recogniser = {"recogniser": config.predictions}
    else:
        for side in sides:
            functionals = recognition.functionals_of(
                run.below(f"emotion/{side.name}"), side.recordings
            )
            described[side.name] = (side, functionals)
    for kind, side in zip(_KINDS, sides, strict=True):
        if config.predictions is not None:
            predicted = _predictions(side, config.predictions)
        else:
            predicted = recognition.classify_emotions(
                run.below(f"emotion/{side.name}"),
                described[side.name],
                described[original.name],
                emotions,
                folds=folds,
            )
        convention: Any = config.recall
        counted = measures.confusions(
            emotions, predicted, original.speakers, folds=folds, convention=convention
        )
        recalls = measures.average_recall(counted, resampling)
        yield UtilityFigure(
            "uar", (name, kind), UtilityRate.from_dict(recalls.to_dict() | recogniser)
        )


def _predictions(directory: DataDir, name: str) -> dict[str, str]:
    predicted = measures.read_labels(directory.path / name)
    measures.check_same(directory.speakers, predicted, file=directory.path / name)
    return predicted
