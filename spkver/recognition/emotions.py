"""Emotions of held-out speakers by a linear support vector machine on functionals.

Conventions
-----------
Folds are of speakers: nobody is in training and in test. Functionals are brought to mean 0 and deviation 1 over all
utterances of each speaker, in the training set and in the test set apart, without use of the labels [1]_; this needs
to know who speaks, and several emotions of each. The penalty C is chosen for each fold by inner folds of the training
speakers. Classes weigh the same, whatever their numbers.

**One vector for a recording, whatever its length: statistics over time of cepstra, energy and pitch.**

Every 10 ms there are 13 cepstra, the log-energy in dB below the loudest frame, and the pitch in semitones where there
is voice. Only frames count that lie between the first and the last one less than 35 dB below the loudest, so that the
silence around an utterance says nothing. The gain of a recording says nothing either (anonymisers change it), unless
`level` is asked for.

References
----------
.. [1] C. Busso, A. Metallinou and S. Narayanan, "Iterative feature normalization for emotional speech detection",
   ICASSP 2011 (normalisation by speaker).
.. [2] F. Eyben, M. Wöllmer and B. Schuller, "openSMILE", ACM Multimedia 2010 (functionals and a linear machine).
.. [3] B. Schuller, S. Steidl and A. Batliner, "The INTERSPEECH 2009 Emotion Challenge", Interspeech 2009.
.. [4] F. Eyben et al., "The Geneva Minimalistic Acoustic Parameter Set (GeMAPS) for voice research and affective
   computing", IEEE Trans. Affective Computing 7(2), 2016.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.utility import pyin_track
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import read_id_list, write_text
from spkbase.runs import Run
from spkbase.work import one_blas_thread, ordered_map
from spkver.audio import check_headers, read_audio
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, mfcc
from spkver.recognition.recordings import map_recordings

logger = logging.getLogger(__name__)

LEAST_FRAMES = 20
_WINDOW, _SHIFT = 0.025, 0.01
_SPEECH_DB = 35.0
_REFERENCE_HZ = 55.0  # of semitones
_DB = 10 / math.log(10)
_QUANTILES = (0.05, 0.2, 0.5, 0.8, 0.95)
_OF_CONTOURS = ("mean", "deviation", "skewness", "slope", *(f"q{100 * share:g}" for share in _QUANTILES), "range")
_OF_CHANGES = ("deviation", "size", "q5", "q95")
_OF_PITCH = ("voiced_share", "segments_per_second", "segment_mean", "segment_deviation", "rising_share", "rise", "fall")
_OF_ENERGY = ("duration", "loud_share", "peaks_per_second", "voiced_less_unvoiced")


@dataclass(frozen=True)
class FunctionalsConfig:
    """What is computed of a recording.

    Attributes
    ----------
    rate : int [Hz]
        Recordings at other rates are resampled.
    n_cepstra, n_filters : int
    low_frequency, high_frequency : float [Hz]
        Range of the filters.
    lowest_pitch, highest_pitch : float [Hz]
    pitch_resolution : float [semitones]
        Step of the pitch tracker.
    level : bool
        Keep the level of the loudest frame as one more number.
    """

    rate: int = 16000
    n_cepstra: int = 13
    n_filters: int = 26
    low_frequency: float = 50.0
    high_frequency: float = 7600.0
    lowest_pitch: float = 60.0
    highest_pitch: float = 600.0
    pitch_resolution: float = 0.2
    level: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.low_frequency < self.high_frequency <= self.rate / 2:
            raise ConfigError(f"expected 0 < low_frequency < high_frequency <= {self.rate / 2:g} Hz")
        if not 0 < self.n_cepstra < self.n_filters:
            raise ConfigError(f"expected fewer cepstra than {self.n_filters} filters, got {self.n_cepstra}")
        if not 0 < self.lowest_pitch < self.highest_pitch <= self.rate / 4 or not 0 < self.pitch_resolution < 1:
            raise ConfigError("expected 0 < lowest_pitch < highest_pitch, and a pitch_resolution between 0 and 1")


def functional_names(config: FunctionalsConfig) -> list[str]:
    """Name the elements of `functionals`, in their order."""
    contours = [*(f"c{number}" for number in range(1, config.n_cepstra + 1)), "energy", "pitch"]
    names = [f"{contour}.{statistic}" for contour in contours for statistic in _OF_CONTOURS]
    names += [f"delta_{contour}.{statistic}" for contour in contours for statistic in _OF_CHANGES]
    names += [f"pitch.{statistic}" for statistic in _OF_PITCH] + [f"energy.{statistic}" for statistic in _OF_ENERGY]
    return [*names, "level"] if config.level else names


@one_blas_thread()
def functionals(samples: NDArray, config: FunctionalsConfig) -> NDArray[np.float64]:
    """Compute the vector of a recording.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at the rate of the configuration.
    config : FunctionalsConfig

    Returns
    -------
    ndarray of shape (D,)
        As `functional_names` says; finite always. Pitch counts as 0 throughout where there is no voice.

    Raises
    ------
    ValueError
        If there are fewer than `LEAST_FRAMES` frames of sound.
    """
    samples = np.asarray(samples, np.float64)
    names = ("rate", "n_filters", "low_frequency", "high_frequency", "n_cepstra")
    features = FeatureConfig(window=_WINDOW, shift=_SHIFT, **{name: getattr(config, name) for name in names})
    cepstra, log_energy = mfcc(samples, features)
    energy = _DB * log_energy
    if len(energy) < LEAST_FRAMES or not samples.any():
        raise ValueError(f"{len(energy)} frames, at least {LEAST_FRAMES} with sound are needed")
    loud = np.flatnonzero(energy > energy.max() - _SPEECH_DB)
    kept = slice(loud[0], loud[-1] + 1)
    if kept.stop - kept.start < LEAST_FRAMES:
        raise ValueError(f"{kept.stop - kept.start} frames of sound, at least {LEAST_FRAMES} are needed")
    cepstra, relative = cepstra[kept], energy[kept] - energy.max()
    pitch = _pitch(samples, config, kept)
    voiced = pitch > 0
    contours = [*cepstra.T, relative]
    values = [value for contour in contours for value in _contour(contour)] + _contour(pitch[voiced])
    changes = [_change(contour) for contour in contours]
    both = voiced[1:] & voiced[:-1]
    values += [value for change in changes for value in change] + _change(pitch, both)
    values += _voice(pitch, voiced) + _loudness(relative, voiced)
    return np.array(values + ([float(energy.max())] if config.level else []))


def _pitch(samples: NDArray, config: FunctionalsConfig, kept: slice) -> NDArray[np.float64]:
    """Pitch in semitones above 55 Hz, 0 where there is no voice, for some frames of the cepstra."""
    shift = round(_SHIFT * config.rate)
    length = 1 << math.ceil(math.log2(3 * config.rate / config.lowest_pitch))
    # frames of the tracker are centred on those of the cepstra
    before = (length - round(_WINDOW * config.rate)) // 2
    padded = np.pad(samples, (before, length))
    pitch_hz = pyin_track(
        padded[kept.start * shift : (kept.stop - 1) * shift + length],
        config.rate,
        (config.lowest_pitch, config.highest_pitch),
        frame=length,
        shift=shift,
        resolution=config.pitch_resolution,
        centred=False,
    )
    voiced = pitch_hz > 0
    pitch = np.zeros(len(pitch_hz))
    pitch[voiced] = 12 * np.log2(pitch_hz[voiced] / _REFERENCE_HZ)
    return pitch


def _contour(values: NDArray) -> list[float]:
    """Statistics of a contour, in the order of `_OF_CONTOURS`; zeros for one without frames."""
    if not len(values):
        return [0.0] * len(_OF_CONTOURS)
    mean, deviation = float(values.mean()), float(values.std())
    skewness = float((((values - mean) / deviation) ** 3).mean()) if deviation > 1e-9 else 0.0
    time = np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(1)
    slope = float(time @ (values - mean) / max(float(time @ time), 1e-9))
    quantiles = np.quantile(values, _QUANTILES).tolist()
    return [mean, deviation, skewness, slope, *quantiles, quantiles[-1] - quantiles[0]]


def _change(values: NDArray, rows: NDArray | None = None) -> list[float]:
    """Statistics of the steps from frame to frame, in the order of `_OF_CHANGES`."""
    steps = np.diff(values) if rows is None else np.diff(values)[rows]
    if not len(steps):
        return [0.0] * len(_OF_CHANGES)
    low, high = np.quantile(steps, (0.05, 0.95)).tolist()
    return [float(steps.std()), float(np.abs(steps).mean()), low, high]


def _voice(pitch: NDArray, voiced: NDArray) -> list[float]:
    """What the voiced segments are like, in the order of `_OF_PITCH`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], voiced.astype(int), [0]])))
    lengths = _SHIFT * (edges[1::2] - edges[0::2])
    steps = np.diff(pitch)[voiced[1:] & voiced[:-1]]
    rising, falling = steps[steps > 0], steps[steps < 0]
    seconds = _SHIFT * len(pitch)
    return [
        float(voiced.mean()),
        len(lengths) / seconds,
        float(lengths.mean()) if len(lengths) else 0.0,
        float(lengths.std()) if len(lengths) else 0.0,
        len(rising) / len(steps) if len(steps) else 0.0,
        float(rising.mean()) if len(rising) else 0.0,
        float(falling.mean()) if len(falling) else 0.0,
    ]


def _loudness(energy: NDArray, voiced: NDArray) -> list[float]:
    """What the envelope is like, in the order of `_OF_ENERGY`; energy in dB below the loudest frame."""
    seconds = _SHIFT * len(energy)
    smooth = np.convolve(energy, np.ones(7) / 7, mode="same")
    peaks = (smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:]) & (smooth[1:-1] > -20)
    contrast = float(energy[voiced].mean() - energy[~voiced].mean()) if voiced.any() and not voiced.all() else 0.0
    return [seconds, float((energy > -15).mean()), float(peaks.sum()) / seconds, contrast]


_FEW = 4
# that functionals depend on
_LIBRARIES = ("numpy", "scipy", "soundfile", "soxr")


@dataclass(frozen=True)
class EmotionConfig:
    """How emotions are recognised.

    Attributes
    ----------
    functionals : FunctionalsConfig
    speaker_normalisation : bool
        Normalise by speaker; else by the training set.
    costs : tuple of float
        Penalties C to choose from, by inner folds where there are several.
    inner_folds : int
        Folds of training speakers to choose by.
    """

    functionals: FunctionalsConfig = field(default_factory=FunctionalsConfig)
    speaker_normalisation: bool = True
    costs: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1)
    inner_folds: int = 4

    def __post_init__(self) -> None:
        if not self.costs or min(self.costs) <= 0:
            raise ConfigError(f"costs are {self.costs}: expected numbers above 0")
        if self.inner_folds < 2:
            raise ConfigError(f"inner_folds is {self.inner_folds}: expected at least 2")


def read_emotions(datadir: DataDir) -> dict[str, str]:
    """Read the ``utt2emo`` of a data directory: the emotion of each of its utterances.

    Raises
    ------
    DataError
        With all problems: no such list, other columns than two, an utterance that is there twice, one without emotion
        or one that the directory does not know.
    """
    path = datadir.path / "utt2emo"
    emotions = read_id_list(path, "utterance emotion")
    problems = Problems(path)
    for names, known, what in (
        (datadir.speakers, emotions, "without emotion"),
        (emotions, datadir.speakers, "unknown"),
    ):
        ids = sorted(set(names) - set(known))
        if ids:
            some = few(ids, repr)
            problems.add(f"{len(ids)} utterances {what}: {some}")
    problems.raise_if_any()
    if len(set(emotions.values())) < 2:
        raise DataError("expected several emotions, got one", file=path)
    return emotions


def read_folds(datadir: DataDir) -> dict[str, str]:
    """Read the fold of each speaker: the ``spk2fold`` of a data directory, or each speaker alone without the list.

    Raises
    ------
    DataError
        As `read_emotions`.
    """
    speakers = sorted(set(datadir.speakers.values()))
    path = datadir.path / "spk2fold"
    if not path.exists():
        return {speaker: speaker for speaker in speakers}
    folds = read_id_list(path, "speaker fold")
    homeless = [speaker for speaker in speakers if speaker not in folds]
    if homeless:
        raise DataError(f"{len(homeless)} speakers without a fold, such as {homeless[0]!r}", file=path)
    return {speaker: folds[speaker] for speaker in speakers}


def recognise_emotions(
    run: Run,
    test: DataDir,
    train: DataDir,
    emotions: Mapping[str, str],
    *,
    folds: Mapping[str, str],
    config: EmotionConfig | None = None,
) -> dict[str, str]:
    """Recognise the emotion of each utterance by a machine that has not heard its speaker.

    Parameters
    ----------
    run : Run
        Keeps the functionals, so that a second call takes them up.
    test, train : DataDir
        What to recognise and what to learn from; they may be the same, or the anonymised and the original speech.
    emotions : mapping of str to str
        Emotion of each training utterance.
    folds : mapping of str to str
        Fold of each test speaker.
    config : EmotionConfig

    Returns
    -------
    dict of str to str
        Emotion of each test utterance, sorted by utterance; also written to ``predictions`` in the output folder.

    Raises
    ------
    DataError
        If recordings cannot be used (all are named), or a fold leaves fewer than two speakers or one emotion to learn.
    """
    config = config or EmotionConfig()
    check_folds(test, train, emotions, folds=folds)
    for paths in (test.recordings, train.recordings):
        check_headers(paths, jobs=run.jobs)
    features = functionals_of(run, test.recordings, config)
    others = {utterance: path for utterance, path in train.recordings.items() if test.recordings.get(utterance) != path}
    trained = {utterance: features[utterance] for utterance in train.recordings if utterance not in others}
    if others:
        trained |= functionals_of(run, others, config, name="functionals-train")
    return classify_emotions(run, (test, features), (train, trained), emotions, folds=folds, config=config)


def functionals_of(
    run: Run, recordings: Mapping[str, Path], config: EmotionConfig, *, name: str = "functionals"
) -> dict[str, list[float]]:
    """Compute the functionals of recordings, or take them up from the output folder, where they are NAME/*.json."""
    work = partial(_of_file, config=config.functionals)
    return map_recordings(run, name, work, recordings, settings=config.functionals, libraries=_LIBRARIES)


Fold = tuple[tuple[str, ...], tuple[str, ...]]
"""Utterances to learn from, and to recognise."""


def check_folds(test: DataDir, train: DataDir, emotions: Mapping[str, str], *, folds: Mapping[str, str]) -> list[Fold]:
    """Lay out the folds, and make sure that each leaves something to learn from.

    Parameters and errors are those of `recognise_emotions`.
    """
    problems = Problems(train.path)
    laid_out: list[Fold] = []
    for fold in sorted(set(folds.values())):
        held_out = {speaker for speaker, its_fold in folds.items() if its_fold == fold}
        learnt = tuple(sorted(utterance for utterance, speaker in train.speakers.items() if speaker not in held_out))
        tested = tuple(sorted(utterance for utterance, speaker in test.speakers.items() if speaker in held_out))
        speakers, classes = {train.speakers[one] for one in learnt}, {emotions[one] for one in learnt}
        if len(speakers) < 2 or len(classes) < 2:
            text = f"fold {fold!r} leaves {len(speakers)} speakers and {len(classes)} emotions to learn from"
            problems.add(text, remedy="two of each are needed at least")
        laid_out.append((learnt, tested))
    problems.raise_if_any()
    return laid_out


def classify_emotions(
    run: Run,
    test: tuple[DataDir, Mapping[str, Sequence[float]]],
    train: tuple[DataDir, Mapping[str, Sequence[float]]],
    emotions: Mapping[str, str],
    *,
    folds: Mapping[str, str],
    config: EmotionConfig,
) -> dict[str, str]:
    """Recognise emotions from functionals; as `recognise_emotions`, with the functionals of each data directory."""
    laid_out = check_folds(test[0], train[0], emotions, folds=folds)
    for datadir in {side[0].path: side[0] for side in (train, test)}.values() if config.speaker_normalisation else ():
        short = [speaker for speaker, utterances in datadir.by_speaker().items() if len(utterances) < _FEW]
        if short:
            text = "%s: %d speakers have fewer than %d utterances: their normalisation is rough"
            logger.warning(text, datadir.path, len(short), _FEW)

    def make(path: Path) -> None:
        vectors = [_by_speaker(features, datadir, config) for datadir, features in (train, test)]
        labels, speakers = dict(emotions), train[0].speakers
        learn = partial(
            _recognise_fold, learnt=vectors[0], tested=vectors[1], emotions=labels, speakers=speakers, config=config
        )
        emotion_of: dict[str, str] = {}
        for predicted in ordered_map(learn, laid_out, jobs=run.jobs, description="folds"):
            emotion_of |= predicted
        write_text(path, "".join(f"{utterance} {emotion}\n" for utterance, emotion in sorted(emotion_of.items())))

    functionals = [sorted(side[1].items()) for side in (train, test)]
    return run.stage(
        "recognition",
        "predictions",
        make=make,
        read=partial(read_id_list, form="utterance emotion"),
        inputs=[config, laid_out, *functionals, train[0].speakers, test[0].speakers, emotions],
        libraries=("numpy", "scipy", "scikit-learn"),
    ).value


def _of_file(path: Path, config: FunctionalsConfig) -> list[float]:
    samples, _ = read_audio(path, rate=config.rate, resample=True)
    try:
        vector: list[float] = functionals(samples, config).tolist()
    except ValueError as error:
        raise DataError(f"too short or silent: {error}", file=path, remedy="remove it from the lists") from error
    return vector


Vectors = dict[str, NDArray[np.float64]]


def _by_speaker(features: Mapping[str, Sequence[float]], datadir: DataDir, config: EmotionConfig) -> Vectors:
    """The vector of each utterance, brought to a like size by speaker if the configuration says so."""
    names = sorted(features)
    values = np.array([features[name] for name in names])
    if config.speaker_normalisation:
        speakers = np.array([datadir.speakers[name] for name in names])
        for speaker in sorted(set(speakers.tolist())):
            mine = speakers == speaker
            values[mine] = _standard(values[mine], values[mine])
    return dict(zip(names, values, strict=True))


def _standard(values: NDArray, reference: NDArray) -> NDArray:
    """Bring the reference to mean 0 and deviation 1; what does not vary there becomes 0."""
    deviation = reference.std(axis=0)
    varies = deviation > 1e-9
    return np.where(varies, (values - reference.mean(axis=0)) / np.where(varies, deviation, 1.0), 0.0)


def _recognise_fold(
    fold: Fold,
    *,
    learnt: Vectors,
    tested: Vectors,
    emotions: Mapping[str, str],
    speakers: Mapping[str, str],
    config: EmotionConfig,
) -> dict[str, str]:
    utterances, held_out = fold
    vectors, labels = np.array([learnt[one] for one in utterances]), np.array([emotions[one] for one in utterances])
    cost = choose_cost(vectors, labels, [speakers[one] for one in utterances], config)
    predicted = _classify(vectors, labels, np.array([tested[one] for one in held_out]), cost)
    return dict(zip(held_out, predicted.tolist(), strict=True))


@one_blas_thread()
def choose_cost(vectors: NDArray, labels: NDArray, speakers: Sequence[str], config: EmotionConfig) -> float:
    """Choose the penalty with the best unweighted recall over inner folds of speakers; the smallest of equal ones."""
    if len(config.costs) == 1:
        return config.costs[0]
    names = sorted(set(speakers))
    fold_of = {name: number % min(config.inner_folds, len(names)) for number, name in enumerate(names)}
    folds = np.array([fold_of[name] for name in speakers])
    best, chosen = -1.0, config.costs[0]
    for cost in sorted(config.costs):
        predicted = np.empty_like(labels)
        for fold in range(folds.max() + 1):
            rest = folds != fold
            if len(set(labels[rest].tolist())) < 2:
                predicted[~rest] = labels[rest][0]
                continue
            predicted[~rest] = _classify(vectors[rest], labels[rest], vectors[~rest], cost)
        recalls = [(predicted[labels == label] == label).mean() for label in sorted(set(labels.tolist()))]
        recall = float(np.mean(recalls))
        if recall > best + 1e-12:
            best, chosen = recall, cost
    return chosen


def _classify(vectors: NDArray, labels: NDArray, tested: NDArray, cost: float) -> NDArray:
    from sklearn.svm import SVC

    machine = SVC(kernel="linear", C=cost, class_weight="balanced")
    machine.fit(_standard(vectors, vectors), labels)
    return np.asarray(machine.predict(_standard(tested, vectors)))
