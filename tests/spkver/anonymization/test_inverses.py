"""What is inverted comes back: factors by the closed form, signals by their spectra, directories file by file."""

import json
import shutil

import numpy as np
import pytest
import soundfile
from scipy.signal import lfilter

from spkbase.errors import DataError
from spkver.anonymization import (
    INVERSES,
    RECORD,
    AnonymizerConfig,
    anonymize_datadir,
    recorded_anonymizer,
    turn_poles,
    undo_datadir,
)
from spkver.anonymization import mcadams_coefficient as module
from spkver.datadir import DataDir

RATE = 16000


def resonant(*frequencies, seed=0, seconds=1.0):
    """Noise through resonances: an all-pole signal."""
    source = np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    for frequency in frequencies:
        radius = np.exp(-np.pi * 120 / RATE)
        source = lfilter(
            [1], [1, -2 * radius * np.cos(2 * np.pi * frequency / RATE), radius**2], source
        )
    return (0.5 * source / np.abs(source).max()).astype(np.float32)


def spectrum(samples):
    """Smooth logarithmic power below 5 kHz, less its mean; what is played slower loses what was above."""
    frames = samples[: len(samples) // 320 * 320].reshape(-1, 320) * np.hanning(320)
    levels = np.log(np.mean(np.abs(np.fft.rfft(frames)[:, :100]) ** 2, axis=0))
    return levels - levels.mean()


def apart(left, right):
    return float(np.sqrt(np.mean((spectrum(left) - spectrum(right)) ** 2)))


def test_a_pole_beyond_pi_moves_to_pi_with_half_its_radius():
    angle, radius = np.array([[3.0]]), 0.8
    p, q = module._raised(
        -2 * radius * np.cos(angle), np.full((1, 1), radius**2), np.array([2.0]), True
    )
    assert np.sort(np.roots([1, p[0, 0], q[0, 0]])).real == pytest.approx([-0.4, -0.4], abs=1e-7)


@pytest.mark.parametrize("alpha", [0.6, 0.7, 0.8, 0.9])
def test_an_all_pole_signal_is_restored(alpha):
    samples = resonant(700, 1600, 2600)
    turned = turn_poles([samples], [RATE], [alpha])[0]
    back = turn_poles([np.float32(turned)], [RATE], [alpha], back=True)[0]
    assert apart(turned, samples) > 3 * apart(back, samples)
    assert np.abs(back).max() <= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vtln", 0.1),
        ("vtln", -0.1),
        ("resampling", 0.8),
        ("resampling", 1.25),
        ("world", 0.8),
        ("world", 1.25),
    ],
)
def test_other_inverses_restore_the_signal(name, value):
    samples, inverse = resonant(700, 1600, 2600), INVERSES[name]
    changed = inverse.apply([samples], [RATE], [value])[0]
    back = inverse.undo([np.float32(changed)], [RATE], [value])[0]
    assert apart(changed, samples) > 3 * apart(back, samples)
    assert abs(len(back) - len(samples)) <= 2
    assert (
        isinstance(inverse.undo([samples[:5]], [RATE], [value])[0], DataError)
        or name == "resampling"
    )


def test_formants_are_scaled_as_world_scales_them():
    pytest.importorskip("pyworld")
    from spkver.anonymization import make_anonymizer

    pulses = (np.arange(RATE) % 107 == 0).astype(float)
    for frequency in (700, 1600, 2600):
        radius = np.exp(-np.pi * 120 / RATE)
        pulses = lfilter(
            [1], [1, -2 * radius * np.cos(2 * np.pi * frequency / RATE), radius**2], pulses
        )
    samples = (0.5 * pulses / np.abs(pulses).max()).astype(np.float32)
    config = AnonymizerConfig("world", pitch=(1.0, 1.0), formants=(1.2, 1.2))
    expected = make_anonymizer(config)(samples, RATE, "u", np.random.default_rng(0))
    found = INVERSES["world"].apply([samples], [RATE], [1.2])[0]
    assert apart(expected, samples) > 2 * apart(expected, found)


@pytest.mark.parametrize("name", ["mcadams", "vtln", "resampling"])
def test_parameters_are_drawn_as_by_the_anonymiser(name):
    from spkver.anonymization import make_anonymizer

    config, samples = AnonymizerConfig(name), resonant(700, 1600, seconds=0.3)
    expected = make_anonymizer(config)(samples, RATE, "u", np.random.default_rng(5))
    inverse = INVERSES[name]
    bounds = getattr(config, inverse.parameter)
    value = inverse.draw(bounds, np.random.default_rng(5))
    low, high = inverse.bounds(bounds)
    assert low <= value <= high
    found = inverse.apply([samples], [RATE], [value])[0]
    assert np.allclose(found, expected / max(1.0, np.abs(expected).max()), atol=1e-12)


@pytest.fixture
def anonymised(tmp_path):
    wav = tmp_path / "data" / "wav"
    wav.mkdir(parents=True)
    for number in range(4):
        soundfile.write(
            wav / f"u{number}.wav",
            resonant(500 + 200 * number, 1800, seed=number, seconds=0.4),
            RATE,
        )
    recordings = {f"u{number}": wav / f"u{number}.wav" for number in range(4)}
    original = DataDir(tmp_path / "data", recordings, {name: f"s{name[1]}" for name in recordings})
    return anonymize_datadir(
        original, tmp_path / "data_mcadams", AnonymizerConfig(), seed=3, jobs=1
    )


def content(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "wav").iterdir())}


def test_inverted_directories_do_not_depend_on_workers_and_are_reused(anonymised, tmp_path):
    values = {name: 0.6 + 0.1 * number for number, name in enumerate(anonymised.recordings)}
    one = undo_datadir(anonymised, tmp_path / "one", "mcadams", values, jobs=1)
    two = undo_datadir(anonymised, tmp_path / "two", "mcadams", values, jobs=2)
    assert content(one.path) == content(two.path)
    assert one.speakers == anonymised.speakers
    stamps = {path: path.stat().st_mtime_ns for path in one.recordings.values()}
    (one.path / "wav" / "u1.wav").write_bytes(b"damaged")
    undo_datadir(anonymised, tmp_path / "one", "mcadams", {**values, "u2": 0.55}, jobs=1)
    changed = [path.stem for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp]
    assert changed == ["u1", "u2"]  # one is damaged, the other has another number
    assert content(one.path)["u1.wav"] == content(two.path)["u1.wav"]
    assert content(one.path)["u2.wav"] != content(two.path)["u2.wav"]
    del values["u0"]
    with pytest.raises(DataError, match="1 of 4 utterances have no alpha: u0"):
        undo_datadir(anonymised, tmp_path / "x", "mcadams", values)


def test_records_name_the_anonymiser_or_are_ignored(anonymised, tmp_path):
    assert recorded_anonymizer(anonymised.path) == AnonymizerConfig()
    assert recorded_anonymizer(tmp_path / "nowhere") is None
    record = json.loads((anonymised.path / RECORD).read_text())
    for settings in (
        {"name": "no:"},
        {"alpha": [3, 1]},
        {"unknown": 1},
        ["mcadams"],
        {"alpha": "wide"},
    ):
        other = tmp_path / "other"
        shutil.rmtree(other, ignore_errors=True)
        other.mkdir()
        (other / RECORD).write_text(json.dumps({**record, "anonymizer": settings}))
        assert recorded_anonymizer(other) is None, settings
