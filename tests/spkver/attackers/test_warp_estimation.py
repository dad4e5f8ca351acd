"""Guessing how far a recording is warped: closed forms of the regression, and simulated voices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from evaluation.embeddings import speaker_folds
from spkbase.errors import DataError
from spkver.anonymization import AnonymizerConfig, anonymize_datadir, turn_poles
from spkver.attackers import (
    TrainingSet,
    fit_warp_estimator,
    inversion,
    unfit_background,
    warp_cues,
    warping,
)
from spkver.audio import write_audio
from spkver.datadir import DataDir

RATE = 16000


def speech(speaker, take, seconds=0.6):
    """Vowels of a voice: pulses and noise through resonances that are longer or shorter for each speaker."""
    rng = np.random.default_rng([speaker, take])
    length = 1 + 0.06 * np.random.default_rng(speaker).standard_normal()
    parts = []
    for _ in range(4):
        n = round(seconds / 4 * RATE)
        source = 0.02 * rng.standard_normal(n)
        source[:: RATE // int(rng.integers(100, 220))] += 1
        for frequency in (
            rng.uniform(300, 800),
            rng.uniform(900, 2200),
            2700,
            3700,
            4800,
            6200,
            7300,
        ):
            radius = np.exp(-np.pi * 150 / RATE)
            angle = 2 * np.pi * frequency / length / RATE
            source = lfilter([1], [1, -2 * radius * np.cos(angle), radius**2], source)
        parts.append(source / np.abs(source).max())
    return np.float32(0.5 * np.concatenate(parts))


@pytest.fixture(scope="module")
def drawn():
    """Cues of own draws, their numbers and speakers."""
    rng, cues, values, speakers = np.random.default_rng(0), [], [], []
    for speaker in range(14):
        for take in range(2):
            alpha = rng.uniform(0.5, 0.9, 2)
            for output in turn_poles([speech(speaker, take)] * 2, [RATE] * 2, alpha.tolist()):
                cues.append(warp_cues(output, RATE))
            values += alpha.tolist()
            speakers += [f"s{speaker}"] * 2
    return np.stack(cues), np.array(values), speakers


def some_speech(name, n_speakers, each):
    owners = {
        f"s{speaker}-{take}": f"s{speaker}" for speaker in range(n_speakers) for take in range(each)
    }
    return DataDir(Path(name), {one: Path(f"{one}.wav") for one in owners}, owners)


@pytest.mark.parametrize(
    ("n_speakers", "each", "anonymised", "enrols", "why"),
    [
        (2, 5, 5, "others", ""),
        (2, 5, 0, "others", "there is no anonymised background"),
        (1, 12, 12, "others", "a background of 12 recordings of 1 speaker is too small"),
        (2, 5, 4, "others", "a background of 8 recordings of 2 speakers is too small"),
        (3, 5, 5, "s1", "1 speaker of the background among those that are enrolled"),
    ],
)
def test_unfit_backgrounds_are_recognised_with_a_reason(n_speakers, each, anonymised, enrols, why):
    versions = (some_speech("anonymised", n_speakers, anonymised),) if anonymised else ()
    training = TrainingSet(some_speech("original", n_speakers, each), versions)
    assert unfit_background(training, {enrols})[: len(why) or None] == why


@pytest.mark.parametrize("level", ["speaker", "utterance"])
def test_a_selection_has_the_anonymiser_of_its_source_folder(tmp_path, level):
    (tmp_path / "original").mkdir()
    path = tmp_path / "original" / "a.wav"
    write_audio(path, speech(1, 1), RATE)
    config = AnonymizerConfig(level=level)
    made = anonymize_datadir(
        DataDir(tmp_path / "original", {"a": path}, {"a": "s"}), tmp_path / "made", config, jobs=1
    )
    for directory in (made, replace(made, path=tmp_path / "selection")):
        assert inversion.is_by_speaker(directory) == (level == "speaker")


def test_cues_use_loud_frames_at_any_level():
    samples = speech(1, 1)
    cues = warp_cues(samples, RATE)
    assert cues.shape == (224,)
    assert np.allclose(warp_cues(samples / 8, RATE), cues, atol=1e-3)
    padded = np.concatenate(
        [samples, 1e-5 * np.random.default_rng(0).standard_normal(RATE).astype(np.float32)]
    )
    assert np.abs(warp_cues(padded, RATE) - cues).mean() < 0.1
    assert cues[: warping.BANDS].mean() == pytest.approx(0, abs=1e-9)
    assert np.array_equal(warping.mean_spectrum(samples, RATE), cues[: warping.BANDS])


def test_poles_are_counted_at_their_angles():
    """Of white noise through one resonance the weight is at its angle."""
    radius, angle = 0.97, 1.1
    noise = np.random.default_rng(0).standard_normal(RATE)
    samples = np.float32(lfilter([1], [1, -2 * radius * np.cos(angle), radius**2], noise))
    weights = warp_cues(samples, RATE)[2 * warping.BANDS + warping.ANGLES :]
    assert abs(np.argmax(weights) + 0.5 - angle / np.pi * warping.ANGLES) <= 1


def test_a_kernel_of_width_0_equals_ridge_regression():
    rng = np.random.default_rng(0)
    points, values = rng.standard_normal((40, 6)), rng.standard_normal(40)
    weights, mean = warping._dual_weights(
        warping.warp_kernel(points, points, 0.0), values, np.ones(40, bool), 0.3
    )
    primal = np.linalg.solve(
        points.T @ points / 6 + 0.3 * np.eye(6), points.T @ (values - values.mean())
    )
    other = rng.standard_normal((5, 6))
    expected = other @ primal / 6 + values.mean()
    assert np.abs(warping.warp_kernel(other, points, 0.0) @ weights + mean - expected).max() < 1e-10


def test_warps_of_simulated_voices_are_estimated(drawn):
    """The number is known to a fraction of its spread, from other speakers; and what learnt without a fold is so."""
    cues, values, speakers = drawn
    folds = speaker_folds(speakers, 5)
    estimator = fit_warp_estimator(cues, values, folds, (0.5, 0.9))
    assert estimator.rmse < 0.4 * estimator.spread
    guesses = estimator.estimate(cues, folds)
    assert np.sqrt(np.mean((guesses - values) ** 2)) == pytest.approx(estimator.rmse, rel=1e-9)
    for fold in range(5):
        assert not estimator.weights[fold][folds == fold].any()
        assert estimator.weights[fold][folds != fold].all()
    assert np.sqrt(np.mean((estimator.estimate(cues) - values) ** 2)) < estimator.rmse
    far = estimator.estimate(1e3 * np.ones((1, 224)))
    assert 0.5 <= far[0] <= 0.9


def test_a_written_estimator_is_read_back_equal(drawn, tmp_path):
    cues, values, speakers = drawn
    estimator = fit_warp_estimator(cues, values, speaker_folds(speakers, 3), (0.5, 0.9))
    warping.write_warp_estimator(tmp_path / "e.h5", estimator)
    read = warping.read_warp_estimator(tmp_path / "e.h5")
    assert np.array_equal(read.estimate(cues), estimator.estimate(cues))
    assert (read.cues, read.width, read.ridge, read.rmse) == (
        estimator.cues, estimator.width, estimator.ridge, estimator.rmse,
    )  # fmt: skip


def test_cues_that_are_not_finite_are_refused(drawn):
    cues, values, speakers = drawn
    cues = cues.copy()
    cues[3, 7] = np.nan
    with pytest.raises(DataError, match="are not finite"):
        fit_warp_estimator(cues, values, speaker_folds(speakers, 3), (0.5, 0.9))


def test_equal_cues_give_the_mean(drawn):
    cues, values, speakers = drawn
    equal = np.repeat(cues[:1], len(cues), axis=0)
    estimator = fit_warp_estimator(equal, values, speaker_folds(speakers, 3), (0.5, 0.9))
    assert estimator.estimate(equal[:1]) == pytest.approx(values.mean(), abs=1e-6)
