"""Emotions of held-out speakers by a linear support vector machine on functionals.

Folds divide speakers: nobody is both in training and in test. Functionals are standardised over all utterances of each
speaker, in the training set and in the test set separately, without the labels [1]_; this needs the speakers, and
several emotions of each. The penalty C is chosen for each fold by inner folds of the training speakers. Classes have
the same weight, whatever their sizes.

The functionals of a recording are one vector, whatever its length: statistics over time of cepstra, energy and pitch.
Every 10 ms there are 13 cepstra, the log-energy in dB below the loudest frame, and the pitch in semitones of voiced
frames. Only frames between the first and the last one that is less than 35 dB below the loudest are used, so that
neither the silence around an utterance nor the gain of a recording, which anonymisers change, has an effect.

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
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems, counted, few
from spkbase.files import read_id_list, write_text
from spkbase.runs import Run
from spkbase.work import Work, one_blas_thread
from spkver.audio import check_headers, read_audio
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, mfcc, pyin_track
from spkver.recognition.recordings import map_recordings

logger = logging.getLogger(__name__)

RATE = 16000
"""Hz; recordings at other rates are resampled."""
LEAST_FRAMES = 20
COSTS = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Penalties C to choose from, by inner folds."""
INNER_FOLDS = 4
_WINDOW = 400  # samples
_SHIFT = 160  # samples
_FEATURES = FeatureConfig(
    rate=RATE,
    window=0.025,
    shift=0.01,
    n_filters=26,
    low_frequency=50.0,
    high_frequency=7600.0,
    n_cepstra=13,
)
_PITCH_RANGE = (60.0, 600.0)  # Hz
_PITCH_RESOLUTION = 0.2  # semitones
_SPEECH_DB = 35.0
_REFERENCE_HZ = 55.0  # reference of semitones
_DB = 10 / math.log(10)
_QUANTILES = (0.05, 0.2, 0.5, 0.8, 0.95)
_FEW = 4
# Libraries on whose versions functionals depend.
_LIBRARIES = ("numpy", "scipy", "soundfile", "soxr")

Fold = tuple[tuple[str, ...], tuple[str, ...]]
"""Utterances to learn from, and to recognise."""

Vectors = dict[str, NDArray[np.float64]]


@one_blas_thread()
def functionals(samples: NDArray[Any]) -> dict[str, float]:
    """Compute the vector of a recording.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at `RATE`.

    Returns
    -------
    dict of str to float
        Finite values by name, such as ``c1.mean``, always in the same order. Without any voice, all values of pitch are
        0.

    Raises
    ------
    ValueError
        If there are fewer than `LEAST_FRAMES` frames of sound.
    """
    samples = np.asarray(samples, np.float64)
    cepstra, log_energy = mfcc(samples, _FEATURES)
    energy = _DB * log_energy
    if len(energy) < LEAST_FRAMES or not samples.any():
        raise ValueError(f"{len(energy)} frames, at least {LEAST_FRAMES} with sound are needed")
    loud = np.flatnonzero(energy > energy.max() - _SPEECH_DB)
    kept = slice(loud[0], loud[-1] + 1)
    if kept.stop - kept.start < LEAST_FRAMES:
        raise ValueError(
            f"{kept.stop - kept.start} frames of sound, at least {LEAST_FRAMES} are needed"
        )
    relative = energy[kept] - energy.max()
    pitch = _pitch(samples, kept)
    voiced = pitch > 0
    both = voiced[1:] & voiced[:-1]
    contours = {f"c{number}": column for number, column in enumerate(cepstra[kept].T, 1)}
    contours["energy"] = relative
    steps = {name: np.diff(contour) for name, contour in contours.items()}
    contours["pitch"] = pitch[voiced]
    steps["pitch"] = np.diff(pitch)[both]
    values: dict[str, float] = {}
    for name, contour in contours.items():
        for statistic, value in _contour(contour).items():
            values[f"{name}.{statistic}"] = value
    for name, changes in steps.items():
        for statistic, value in _change(changes).items():
            values[f"delta_{name}.{statistic}"] = value
    return values | _voice(voiced, steps["pitch"]) | _loudness(relative, voiced)


def read_emotions(datadir: DataDir) -> dict[str, str]:
    """Read the ``utt2emo`` of a data directory: the emotion of each of its utterances.

    Raises
    ------
    DataError
        With all problems: no such list, a line without exactly two columns, an utterance that is repeated, has no
        emotion or is not in the directory.
    """
    path = datadir.path / "utt2emo"
    emotions = read_id_list(path, "utterance emotion")
    problems = Problems(path)
    without = datadir.speakers.keys() - emotions.keys()
    unknown = emotions.keys() - datadir.speakers.keys()
    for ids, problem in ((without, "without emotion"), (unknown, "unknown")):
        if ids:
            problems.add(f"{counted(len(ids), 'utterance')} {problem}: {few(ids, repr)}")
    problems.raise_if_any()
    if len(set(emotions.values())) < 2:
        raise DataError("expected several emotions, got one", file=path)
    return emotions


def read_folds(datadir: DataDir) -> dict[str, str]:
    """Read the fold of each speaker: the ``spk2fold`` of a data directory, or each speaker alone if there is no such
    list.

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
    without = [speaker for speaker in speakers if speaker not in folds]
    if without:
        text = f"{counted(len(without), 'speaker')} without a fold, such as {without[0]!r}"
        raise DataError(text, file=path)
    return {speaker: folds[speaker] for speaker in speakers}


def recognise_emotions(
    run: Run,
    test: DataDir,
    train: DataDir,
    emotions: Mapping[str, str],
    *,
    folds: Mapping[str, str],
    speaker_normalisation: bool = True,
) -> dict[str, str]:
    """Recognise the emotion of each utterance by a classifier trained on other speakers.

    Parameters
    ----------
    run : Run
        The run that keeps the functionals, so that a second call resumes.
    test, train : DataDir
        The speech to recognise and to learn from; they may be the same, or the anonymised and the original speech.
    emotions : mapping of str to str
        Emotion of each training utterance.
    folds : mapping of str to str
        Fold of each test speaker.
    speaker_normalisation : bool
        Whether to normalise by speaker; otherwise by the training set.

    Returns
    -------
    dict of str to str
        Emotion of each test utterance, sorted by utterance; also written to ``predictions`` in the output folder.

    Raises
    ------
    DataError
        If recordings cannot be used (all are named), or a fold leaves fewer than two speakers or one emotion to learn.
    """
    check_folds(test, train, emotions, folds=folds)
    for paths in (test.recordings, train.recordings):
        check_headers(paths, jobs=run.jobs)
    features = functionals_of(run, test.recordings)
    trained = features
    if train is not test:
        trained = functionals_of(run, train.recordings, name="functionals-train")
    return classify_emotions(
        run,
        (test, features),
        (train, trained),
        emotions,
        folds=folds,
        speaker_normalisation=speaker_normalisation,
    )


def functionals_of(
    run: Run, recordings: Mapping[str, Path], *, name: str = "functionals"
) -> dict[str, list[float]]:
    """Compute the functionals of recordings, or read them from the output folder, where they are NAME/*.json."""
    return map_recordings(
        run, name, _of_file, recordings, settings="functionals", libraries=_LIBRARIES
    )


def check_folds(
    test: DataDir, train: DataDir, emotions: Mapping[str, str], *, folds: Mapping[str, str]
) -> list[Fold]:
    """Return the folds, and check that each leaves speakers and emotions to learn from.

    Parameters and errors are those of `recognise_emotions`.
    """
    problems = Problems(train.path)
    laid_out: list[Fold] = []
    for fold in sorted(set(folds.values())):
        learnt = []
        tested = []
        speakers = set()
        classes = set()
        for utterance, speaker in sorted(train.speakers.items()):
            if folds.get(speaker) != fold:
                learnt.append(utterance)
                speakers.add(speaker)
                classes.add(emotions[utterance])
        for utterance, speaker in sorted(test.speakers.items()):
            if folds.get(speaker) == fold:
                tested.append(utterance)
        if len(speakers) < 2 or len(classes) < 2:
            text = f"fold {fold!r} leaves {len(speakers)} speakers and {len(classes)} emotions to learn from"
            problems.add(text, remedy="at least two of each are needed")
        laid_out.append((tuple(learnt), tuple(tested)))
    problems.raise_if_any()
    return laid_out


def classify_emotions(
    run: Run,
    test: tuple[DataDir, Mapping[str, Sequence[float]]],
    train: tuple[DataDir, Mapping[str, Sequence[float]]],
    emotions: Mapping[str, str],
    *,
    folds: Mapping[str, str],
    speaker_normalisation: bool = True,
) -> dict[str, str]:
    """Recognise emotions from functionals; as `recognise_emotions`, with the functionals of each data directory."""
    laid_out = check_folds(test[0], train[0], emotions, folds=folds)
    if speaker_normalisation:
        for datadir in {train[0].path: train[0], test[0].path: test[0]}.values():
            counts = Counter(datadir.speakers.values())
            n_short = sum(count < _FEW for count in counts.values())
            if n_short:
                text = (
                    "%s: %d speakers have fewer than %d utterances: their normalisation is inexact"
                )
                logger.warning(text, datadir.path, n_short, _FEW)

    def make(path: Path) -> None:
        learnt = _vectors(*train, by_speaker=speaker_normalisation)
        tested = _vectors(*test, by_speaker=speaker_normalisation)
        learn = partial(_recognise_fold, learnt, tested, dict(emotions), train[0].speakers)
        emotion_of: dict[str, str] = {}
        for predicted in Work(run.jobs).map(learn, laid_out, processes=True, description="folds"):
            emotion_of |= predicted
        lines = [f"{utterance} {emotion}\n" for utterance, emotion in sorted(emotion_of.items())]
        write_text(path, "".join(lines))

    return run.stage(
        "recognition",
        "predictions",
        make=make,
        read=partial(read_id_list, form="utterance emotion"),
        inputs=[
            speaker_normalisation,
            laid_out,
            sorted(train[1].items()),
            sorted(test[1].items()),
            train[0].speakers,
            test[0].speakers,
            emotions,
        ],
        libraries=("numpy", "scipy", "scikit-learn"),
    ).value


@one_blas_thread()
def choose_cost(
    vectors: NDArray[Any],
    labels: NDArray[Any],
    speakers: Sequence[str],
    costs: Sequence[float] = COSTS,
) -> float:
    """Choose the penalty with the best unweighted recall over inner folds of speakers, the smallest of equal ones."""
    names = sorted(set(speakers))
    fold_of = {name: number % min(INNER_FOLDS, len(names)) for number, name in enumerate(names)}
    folds = np.array([fold_of[name] for name in speakers])
    best = -1.0
    chosen = costs[0]
    for cost in sorted(costs):
        predicted = np.empty_like(labels)
        for fold in range(folds.max() + 1):
            rest = folds != fold
            if len(set(labels[rest].tolist())) < 2:
                predicted[~rest] = labels[rest][0]
                continue
            predicted[~rest] = _classify(vectors[rest], labels[rest], vectors[~rest], cost)
        recalls = [(predicted[labels == label] == label).mean() for label in np.unique(labels)]
        recall = float(np.mean(recalls))
        if recall > best + 1e-12:
            best = recall
            chosen = cost
    return chosen


def _pitch(samples: NDArray[Any], kept: slice) -> NDArray[np.float64]:
    """Return the pitch of the kept frames in semitones above 55 Hz; 0 where there is no voice."""
    length = 1 << math.ceil(math.log2(3 * RATE / _PITCH_RANGE[0]))
    # frames of the tracker have the same centres as those of the cepstra
    padded = np.pad(samples, ((length - _WINDOW) // 2, length))
    pitch_hz = pyin_track(
        padded[kept.start * _SHIFT : (kept.stop - 1) * _SHIFT + length],
        RATE,
        _PITCH_RANGE,
        frame=length,
        shift=_SHIFT,
        resolution=_PITCH_RESOLUTION,
        centred=False,
    )
    voiced = pitch_hz > 0
    pitch = np.zeros(len(pitch_hz))
    pitch[voiced] = 12 * np.log2(pitch_hz[voiced] / _REFERENCE_HZ)
    return pitch


def _contour(values: NDArray[Any]) -> dict[str, float]:
    """Return statistics of a contour; zeros if it has no frames."""
    if not len(values):
        values = np.zeros(1)
    mean = float(values.mean())
    deviation = float(values.std())
    skewness = 0.0
    if deviation > 1e-9:
        skewness = float((((values - mean) / deviation) ** 3).mean())
    time = np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(1)
    slope = float(time @ (values - mean) / max(float(time @ time), 1e-9))
    quantiles = np.quantile(values, _QUANTILES).tolist()
    statistics = {"mean": mean, "deviation": deviation, "skewness": skewness, "slope": slope}
    for share, quantile in zip(_QUANTILES, quantiles, strict=True):
        statistics[f"q{100 * share:g}"] = quantile
    statistics["range"] = quantiles[-1] - quantiles[0]
    return statistics


def _change(steps: NDArray[Any]) -> dict[str, float]:
    """Return statistics of the steps from frame to frame."""
    if not len(steps):
        steps = np.zeros(1)
    low, high = np.quantile(steps, (0.05, 0.95)).tolist()
    return {
        "deviation": float(steps.std()),
        "size": float(np.abs(steps).mean()),
        "q5": low,
        "q95": high,
    }


def _voice(voiced: NDArray[Any], steps: NDArray[Any]) -> dict[str, float]:
    """Return statistics of voiced segments, and of the steps of the pitch within them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], voiced.astype(int), [0]])))
    lengths = _SHIFT / RATE * (edges[1::2] - edges[0::2])
    n_segments = len(lengths)
    if not n_segments:
        lengths = np.zeros(1)
    rising = steps[steps > 0]
    return {
        "pitch.voiced_share": float(voiced.mean()),
        "pitch.segments_per_second": n_segments / (_SHIFT / RATE * len(voiced)),
        "pitch.segment_mean": float(lengths.mean()),
        "pitch.segment_deviation": float(lengths.std()),
        "pitch.rising_share": len(rising) / max(1, len(steps)),
        "pitch.rise": _mean(rising),
        "pitch.fall": _mean(steps[steps < 0]),
    }


def _mean(values: NDArray[Any]) -> float:
    """Return the mean; 0 if there are no values."""
    if not len(values):
        return 0.0
    return float(values.mean())


def _loudness(energy: NDArray[Any], voiced: NDArray[Any]) -> dict[str, float]:
    """Return statistics of the envelope; the energy is in dB relative to the loudest frame."""
    seconds = _SHIFT / RATE * len(energy)
    smooth = np.convolve(energy, np.ones(7) / 7, mode="same")
    peaks = (smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:]) & (smooth[1:-1] > -20)
    contrast = 0.0
    if voiced.any() and not voiced.all():
        contrast = float(energy[voiced].mean() - energy[~voiced].mean())
    return {
        "energy.duration": seconds,
        "energy.loud_share": float((energy > -15).mean()),
        "energy.peaks_per_second": float(peaks.sum()) / seconds,
        "energy.voiced_less_unvoiced": contrast,
    }


def _of_file(path: Path) -> list[float]:
    samples, _ = read_audio(path, rate=RATE, resample=True)
    try:
        return list(functionals(samples).values())
    except ValueError as error:
        text = f"too short or silent: {error}"
        raise DataError(text, file=path, remedy="remove it from the lists") from error


def _vectors(
    datadir: DataDir, features: Mapping[str, Sequence[float]], *, by_speaker: bool
) -> Vectors:
    """Return the vector of each utterance, standardised over the utterances of its speaker if `by_speaker` is true."""
    names = sorted(features)
    values = np.array([features[name] for name in names])
    if by_speaker:
        speakers = np.array([datadir.speakers[name] for name in names])
        for speaker in np.unique(speakers):
            mine = speakers == speaker
            values[mine] = _standard(values[mine], values[mine])
    return dict(zip(names, values, strict=True))


def _standard(values: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    """Standardise by the reference; values that are constant in it become 0."""
    deviation = reference.std(axis=0)
    varies = deviation > 1e-9
    scale = np.where(varies, deviation, 1.0)
    return np.where(varies, (values - reference.mean(axis=0)) / scale, 0.0)


def _recognise_fold(
    learnt: Vectors,
    tested: Vectors,
    emotions: Mapping[str, str],
    speakers: Mapping[str, str],
    fold: Fold,
) -> dict[str, str]:
    utterances, held_out = fold
    vectors = np.array([learnt[utterance] for utterance in utterances])
    labels = np.array([emotions[utterance] for utterance in utterances])
    cost = choose_cost(vectors, labels, [speakers[utterance] for utterance in utterances])
    tested_vectors = np.array([tested[utterance] for utterance in held_out])
    predicted = _classify(vectors, labels, tested_vectors, cost)
    return dict(zip(held_out, predicted.tolist(), strict=True))


def _classify(
    vectors: NDArray[Any], labels: NDArray[Any], tested: NDArray[Any], cost: float
) -> NDArray[Any]:
    from sklearn.svm import SVC

    machine = SVC(kernel="linear", C=cost, class_weight="balanced")
    machine.fit(_standard(vectors, vectors), labels)
    return np.asarray(machine.predict(_standard(tested, vectors)))
