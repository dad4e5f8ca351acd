"""Voice activity detectors on signals whose answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spkbase.errors import DataError
from spkver.features.vad import energy_vad, percentile_vad, read_labels, snr_vad

WINDOW, SHIFT = 400, 160


def burst(level, *, n=16000, seed=0):
    """Noise that is loud in its middle half, in the detector's unit, and the masking noise."""
    rng = np.random.default_rng(seed)
    signal = 0.05 * rng.standard_normal(n)
    signal[n // 4 : 3 * n // 4] += level * rng.standard_normal(n // 2)
    return signal, rng.standard_normal(n)


def frame_is_inside(n_frames, n):
    starts = np.arange(n_frames) * SHIFT
    return (starts >= n // 4) & (starts + WINDOW <= 3 * n // 4)


def frame_is_outside(n_frames, n):
    starts = np.arange(n_frames) * SHIFT
    return (starts + 2 * WINDOW < n // 4) | (starts > 3 * n // 4 + WINDOW)


def test_snr_finds_the_burst():
    signal, noise = burst(500.0)
    (labels,) = snr_vad([signal], [noise], window=WINDOW, shift=SHIFT)
    assert labels[frame_is_inside(len(labels), 16000)].mean() > 0.95
    assert labels[frame_is_outside(len(labels), 16000)].mean() < 0.05


def test_snr_does_not_depend_on_the_batch():
    cases = [
        burst(level, n=n, seed=seed)
        for seed, (level, n) in enumerate([(300, 16000), (50, 8000), (900, 30001)])
    ]
    together = snr_vad([s for s, _ in cases], [n for _, n in cases], window=WINDOW, shift=SHIFT)
    for (signal, noise), labels in zip(cases, together, strict=True):
        np.testing.assert_array_equal(
            snr_vad([signal], [noise], window=WINDOW, shift=SHIFT)[0], labels
        )


def test_energy_finds_the_loud_frames():
    rng = np.random.default_rng(0)
    energy = np.concatenate([rng.normal(0, 1, 3000), rng.normal(20, 1, 3000)])
    labels = energy_vad(energy, alpha=0.2)
    assert not labels[:3000].any()
    # 58 % of a Gaussian lies above the mean minus 0.2 standard deviations
    assert 0.5 < labels[3000:].mean() < 0.66
    assert energy[labels].min() > energy[3000:][~labels[3000:]].max()


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 100), st.floats(-50, 50))
def test_energy_ignores_unit_and_gain(seed, scale, offset):
    """The logarithm's unit scales the energies, the gain of the recording shifts them."""
    energy = np.random.default_rng(seed).normal(0, 1, 200).cumsum()
    np.testing.assert_array_equal(energy_vad(energy), energy_vad(energy * scale + offset))


@pytest.mark.parametrize(("percentile", "kept"), [(0, 99), (10, 90), (50, 50), (99, 1), (100, 0)])
def test_percentile_drops_the_quietest(percentile, kept):
    energy = np.random.default_rng(0).permutation(100).astype(float)
    labels = percentile_vad(energy, percentile=percentile)
    assert labels.sum() == kept
    if kept:
        assert energy[labels].min() > energy[~labels].max()
    assert percentile_vad(np.empty(0)).shape == (0,)


def test_labels_are_read_from_a_file(tmp_path):
    path = tmp_path / "a.lbl"
    path.write_text("0.02 0.05 speech\n\n0.06\t0.07   noise\n0.9 9.0 speech\n")
    expected = np.zeros(100, bool)
    expected[2:5] = expected[90:] = True
    np.testing.assert_array_equal(read_labels(path, 100, shift_seconds=0.01), expected)
    assert read_labels(path, 100, shift_seconds=0.01, speech="noise").sum() == 1


@pytest.mark.parametrize("line", ["0.1 speech", "a 0.2 speech", "0.3 0.2 speech", "0 inf speech"])
def test_bad_labels_are_refused(tmp_path, line):
    path = tmp_path / "a.lbl"
    path.write_text(f"0 1 speech\n{line}\n")
    with pytest.raises(DataError, match=r"a\.lbl:2: expected 'start stop label'"):
        read_labels(path, 100, shift_seconds=0.01)


def test_unreadable_label_files_are_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"a\.lbl: label file cannot be read: No such file .*features\.labels_dir"
    ):
        read_labels(tmp_path / "a.lbl", 100, shift_seconds=0.01)
    (tmp_path / "b.lbl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"b\.lbl: label file cannot be read"):
        read_labels(tmp_path / "b.lbl", 100, shift_seconds=0.01)
