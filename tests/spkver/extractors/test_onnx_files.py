"""Networks in ONNX files: tiny ones of every form that is taken, and one error for each that is not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spkbase.errors import ConfigError, DataError
from spkver.extractors.layers import kaldi_filterbanks
from spkver.extractors.onnx_files import read_onnx
from spkver.extractors.protocol import ExtractorSettings
from spkver.extractors.registry import open_extractor

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
N_MELS = {"mels": 80}


def write(path: Path, *, inputs: list, outputs: list, mels: int = 80) -> Path:
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


def matrix(mels: int) -> np.ndarray:
    return np.linspace(-1, 1, mels * 3).reshape(mels, 3)


def tiny(path: Path, *, name: str = "feats", mels: object = 80, output: str = "embs", size: int = 80) -> Path:
    return write(path, inputs=[(name, FLOAT, ["B", "T", mels])], outputs=[(output, FLOAT, ["B", 3])], mels=size)


@pytest.fixture
def samples() -> np.ndarray:
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
def test_names_and_sizes_are_those_of_the_file(tmp_path, name, output, mels, size, shape):
    network = read_onnx(tiny(tmp_path / "n.onnx", name=name, mels=mels, output=output, size=size))
    assert network[1:] == (name, output, size, shape)
    options = network.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_a_recording_is_cut_into_windows_of_its_filterbanks(tmp_path, samples):
    """The mean over time of each window's filterbanks is 0, so the network squares nothing away: one frame shows it."""
    path = tmp_path / "n.onnx"
    helper = onnx.helper
    nodes = [helper.make_node("ReduceMax", ["feats", "axes"], ["embs"], keepdims=0)]
    ends = (
        [helper.make_tensor_value_info("feats", FLOAT, [1, "T", 30])],
        [helper.make_tensor_value_info("embs", FLOAT, [1, 30])],
    )
    graph = helper.make_graph(nodes, "max", *ends, [onnx.numpy_helper.from_array(np.array([1]), "axes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    soundfile.write(tmp_path / "a.wav", samples, 16000, subtype="FLOAT")
    settings = ExtractorSettings(window=0.3, hop=0.3)
    (vector,) = open_extractor(f"onnx:{path}", settings)([("a", tmp_path / "a.wav")])
    parts = [samples[start : start + 4800] for start in (0, 3600, 7200)]
    expected = np.mean([kaldi_filterbanks(part, n_mels=30, shape="hamming").max(axis=0) for part in parts], axis=0)
    np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_another_rate_is_another_filterbank(tmp_path, samples):
    soundfile.write(tmp_path / "a.wav", samples, 8000, subtype="FLOAT")
    path = tiny(tmp_path / "n.onnx", name="x")
    network = open_extractor(f"onnx:{path}", ExtractorSettings(rate=8000))
    (vector,) = network([("a", tmp_path / "a.wav")])
    assert network.extraction.record["rate"] == 8000
    assert isinstance(vector, np.ndarray)


BAD = {
    "two inputs": ([("a", FLOAT, ["B", "T", 80]), ("b", FLOAT, ["B", "T", 80])], [("y", FLOAT, ["B", 3])]),
    "rank 4": ([("a", FLOAT, ["B", "T", 80, 1])], [("y", FLOAT, None)]),
    "rank 2": ([("a", FLOAT, ["B", "T"])], [("y", FLOAT, None)]),
    "int input": ([("a", INT, ["B", "T", 80])], [("y", FLOAT, None)]),
    "fixed frames": ([("a", FLOAT, ["B", 200, 80])], [("y", FLOAT, ["B", 3])]),
    "batch of 8": ([("a", FLOAT, [8, "T", 80])], [("y", FLOAT, [8, 3])]),
    "samples": ([("a", FLOAT, ["B", "T", 1])], [("y", FLOAT, ["B", 3])]),
    "two outputs": ([("a", FLOAT, ["B", "T", 80])], [("y", FLOAT, ["B", 3]), ("z", FLOAT, ["B", 3])]),
    "frames out": ([("a", FLOAT, ["B", "T", 80])], [("y", FLOAT, ["B", "T", 3])]),
}


@pytest.mark.parametrize("kind", BAD)
def test_another_network_is_one_error_that_says_what_it_has(tmp_path, monkeypatch, kind):
    """The ends alone decide: onnxruntime's own checks of these impossible graphs are left out."""
    inputs, outputs = BAD[kind]
    import onnxruntime

    class Session:
        def __init__(self, *_: object, **__: object) -> None: ...

        def get_inputs(self):
            return [End(*each) for each in inputs]

        def get_outputs(self):
            return [End(*each) for each in outputs]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    (tmp_path / "n.onnx").write_bytes(b"x")
    with pytest.raises(DataError, match=r"expected one input float32 \(batch, frames, mels\)") as caught:
        open_extractor(f"onnx:{tmp_path / 'n.onnx'}")
    for name, *_ in (*inputs, *outputs):
        assert f"{name} " in str(caught.value)


class End:
    def __init__(self, name, kind, shape):
        self.name, self.shape = name, shape or []
        self.type = {FLOAT: "tensor(float)", INT: "tensor(int64)"}[kind]


def test_two_real_inputs_are_named(tmp_path):
    inputs = [("feats", FLOAT, ["B", "T", 80]), ("lengths", INT, ["B"])]
    path = write(tmp_path / "n.onnx", inputs=inputs, outputs=[("embs", FLOAT, ["B", 3])])
    with pytest.raises(DataError, match=r"feats float \(B, T, 80\), lengths int64 \(B,\) -> embs float \(B, 3\)"):
        open_extractor(f"onnx:{path}")


@pytest.mark.parametrize("kind", ["text", "empty", "cut", "png"])
def test_what_is_no_onnx_file_is_one_error(tmp_path, kind):
    path = tiny(tmp_path / "n.onnx")
    raw = {"text": b"hello", "empty": b"", "cut": path.read_bytes()[:-200], "png": b"\x89PNG\r\n\x1a\n" + bytes(100)}
    path.write_bytes(raw[kind])
    with pytest.raises(DataError, match="cannot be read as an ONNX file") as caught:
        open_extractor(f"onnx:{path}")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_and_no_onnxruntime_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="there is no such ONNX file"):
        open_extractor(f"onnx:{tmp_path / 'none.onnx'}")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"pip install 'spkver\[onnx\]'"):
        open_extractor(f"onnx:{tiny(tmp_path / 'n.onnx')}")


def test_a_network_that_fails_on_a_recording_names_it(tmp_path, samples):
    soundfile.write(tmp_path / "a.wav", samples, 16000)
    path = tiny(tmp_path / "n.onnx", name="x", mels="mels", size=30)  # says nothing of mels, and takes 30
    (error,) = open_extractor(f"onnx:{path}")([("a", tmp_path / "a.wav")])
    assert "a: onnxruntime could not run the network on" in str(error)
