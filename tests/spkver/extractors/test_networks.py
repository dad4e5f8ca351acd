"""Networks: CAM++ and GE2E against their definitions and PyTorch's numbers; ONNX files of every form that is taken."""

import os
import sys

import network_oracle as oracle
import numpy as np
import pytest
import soundfile

from spkbase.errors import ConfigError, DataError
from spkver.audio import read_audio
from spkver.extractors import kaldi_filterbanks, mel_spectra, open_extractor
from spkver.extractors.networks import (
    CAMPPLUS,
    GE2E,
    campplus_graph,
    embed_frames,
    embed_windows,
    ge2e_graph,
    read_built_in,
    read_network,
    window_starts,
)

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


@pytest.mark.parametrize("length", [3, 201])
def test_campplus_has_the_structure_of_the_paper(length):
    """Random weights, some scales below 0; 201 frames are two segments of contexts, the last of one."""
    state = oracle.random_campplus(length)
    frames = np.random.default_rng(length).standard_normal((length, 80))
    expected = oracle.campplus(frames, state)
    (vector,) = read_network(campplus_graph(state)).run(frames[None])
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, expected, atol=1e-5 * np.abs(expected).max())


def test_ge2e_has_the_structure_of_the_paper():
    state, rng = oracle.random_ge2e(1), np.random.default_rng(2)
    samples = rng.standard_normal(330 * 160)
    network, frames = read_network(ge2e_graph(state)), mel_spectra(samples)
    for length, count in ((len(samples), 3), (70 * 160, 1)):
        heard = frames if count > 1 else mel_spectra(samples[:length])[np.arange(160) % 71]
        vectors = [
            oracle.ge2e_window(heard[start : start + 160], state)
            for start in range(0, 80 * count, 80)
        ]
        expected = np.mean(vectors, axis=0) / np.linalg.norm(np.mean(vectors, axis=0))
        np.testing.assert_allclose(
            embed_windows(samples[:length], 16000, network), expected, atol=1e-5
        )
    whole = embed_windows(samples, 16000, network, window=20, hop=10)
    np.testing.assert_allclose(
        embed_windows(samples, 16000, network, window=20, hop=10, batch=3), whole, atol=1e-6
    )
    assert [window_starts(n, window=160, hop=80).tolist() for n in (1, 160, 239, 240)] == [
        [0],
        [0],
        [0],
        [0, 80],
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("linear.bias"), ["GE2E", "linear.bias", "entries without it"]),
        (
            lambda state: state.update({"linear.bias": np.full(5, np.nan, np.float32)}),
            ["linear.bias", "finite"],
        ),
        (
            lambda state: state.update({"linear.weight": state["linear.weight"][:, :-1]}),
            ["onnxruntime"],
        ),
    ],
)
def test_weights_of_another_network_are_refused(change, words):
    state = oracle.random_ge2e(1)
    change(state)
    with pytest.raises(DataError) as caught:
        # old versions of onnxruntime report it only when the network runs
        read_network(ge2e_graph(state)).run(np.zeros((1, 160, 40), np.float32))
    for word in words:
        assert word in str(caught.value)


@pytest.fixture(scope="module")
def golden(shared):
    with np.load(shared / "golden/networks/networks.npz") as file:
        return dict(file)


@pytest.mark.golden
def test_front_ends_equal_those_of_kaldi_and_librosa(golden, shared):
    for number, path in enumerate(golden["paths"].tolist()):
        samples = read_audio(shared / "corpora" / path).samples
        banks = golden[f"fbank_{number}"]
        ours = kaldi_filterbanks(samples)
        assert ours.shape == banks.shape
        # float32 on both sides: bins close to silence lose digits, 5e-3 in one bin of the ten recordings
        assert np.abs(ours - banks).max() < 1e-2
        assert np.sqrt(np.mean((ours - banks) ** 2)) < 3e-4
        mels = golden[f"mel_{number}"]
        np.testing.assert_allclose(mel_spectra(samples), mels, rtol=1e-4, atol=1e-6 * mels.max())


@pytest.mark.golden
@pytest.mark.skipif(
    not os.environ.get("SPKVER_WEIGHTS"), reason="set SPKVER_WEIGHTS to a folder with the weights"
)
def test_vectors_equal_those_of_pytorch(golden, shared):
    campplus, ge2e = (
        read_built_in(source, os.environ["SPKVER_WEIGHTS"])[0] for source in (CAMPPLUS, GE2E)
    )
    for number, path in enumerate(golden["paths"].tolist()):
        (vector,) = campplus.run(golden[f"fbank_{number}"][None])
        np.testing.assert_allclose(vector, golden[f"campplus_{number}"], atol=2e-5)
        frames, starts = golden[f"mel_{number}"], golden[f"ge2e_starts_{number}"]
        np.testing.assert_array_equal(window_starts(len(frames), window=160, hop=80), starts)
        vectors = ge2e.run(np.stack([frames[start : start + 160] for start in starts]))
        np.testing.assert_allclose(vectors, golden[f"ge2e_windows_{number}"], atol=1e-5)
        samples = read_audio(shared / "corpora" / path).samples
        np.testing.assert_allclose(
            embed_frames(samples, 16000, campplus), golden[f"campplus_float64_{number}"], atol=1e-4
        )
        np.testing.assert_allclose(
            embed_windows(samples, 16000, ge2e), golden[f"ge2e_{number}"], atol=1e-5
        )


def write(path, *, inputs, outputs, mels=80):
    """Write a network that gives the means over the frames of its first input, times a matrix of (mels, 3)."""
    matrix = np.linspace(-1, 1, mels * 3).reshape(mels, 3).astype(np.float32)
    helper = onnx.helper
    nodes = [
        helper.make_node("ReduceMean", [inputs[0][0], "axes"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "matrix"], [outputs[0][0]]),
        *(helper.make_node("Identity", [outputs[0][0]], [name]) for name, *_ in outputs[1:]),
    ]
    initial = [
        onnx.numpy_helper.from_array(np.array([1]), "axes"),
        onnx.numpy_helper.from_array(matrix, "matrix"),
    ]
    ends = [[helper.make_tensor_value_info(*each) for each in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "tiny", *ends, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    return path


def tiny(path, *, name="feats", mels=80, output="embs", size=80):
    return write(
        path,
        inputs=[(name, FLOAT, ["B", "T", mels])],
        outputs=[(output, FLOAT, ["B", 3])],
        mels=size,
    )


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return (0.1 * rng.standard_normal(12000) * np.linspace(0.1, 1, 12000)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "output", "mels", "size", "shape"),
    [
        ("feats", "embs", 80, 80, "hamming"),  # wespeaker
        ("feature", "embedding", 80, 80, "povey"),  # 3D-Speaker
        ("x", "y", 40, 40, "povey"),
        ("x", "y", "mels", 80, "povey"),
    ],
)
def test_names_and_sizes_are_read_from_the_file(tmp_path, name, output, mels, size, shape):
    network = read_network(
        tiny(tmp_path / "n.onnx", name=name, mels=mels, output=output, size=size)
    )
    assert network[1:] == (name, output, size, shape)
    options = network.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_networks_with_two_inputs_are_refused_by_name(tmp_path):
    inputs = [("feats", FLOAT, ["B", "T", 80]), ("lengths", INT, ["B"])]
    path = write(tmp_path / "n.onnx", inputs=inputs, outputs=[("embs", FLOAT, ["B", 3])])
    with pytest.raises(
        DataError, match=r"feats float \(B, T, 80\), lengths int64 \(B,\) -> embs float \(B, 3\)"
    ):
        open_extractor(f"onnx:{path}")


@pytest.mark.parametrize("kind", ["text", "cut"])
def test_files_that_are_not_onnx_raise_one_error(tmp_path, kind):
    path = tiny(tmp_path / "n.onnx")
    raw = {"text": b"hello", "cut": path.read_bytes()[:-200]}
    path.write_bytes(raw[kind])
    with pytest.raises(DataError, match="onnxruntime cannot read the network") as caught:
        open_extractor(f"onnx:{path}")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_or_onnxruntime_gives_one_line(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="there is no such ONNX file"):
        open_extractor(f"onnx:{tmp_path / 'none.onnx'}")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"pip install onnx onnxruntime"):
        open_extractor(f"onnx:{tiny(tmp_path / 'n.onnx')}")


def test_a_network_that_fails_on_a_recording_names_it(tmp_path, samples):
    soundfile.write(tmp_path / "a.wav", samples, 16000)
    # does not name the number of mels, which is 30
    path = tiny(tmp_path / "n.onnx", name="x", mels="mels", size=30)
    (error,) = open_extractor(f"onnx:{path}")([("a", tmp_path / "a.wav")])
    assert "a: onnxruntime could not run the network on" in str(error)
