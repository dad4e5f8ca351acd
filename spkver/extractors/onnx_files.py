"""Networks in ONNX files, run by onnxruntime: filterbanks in, one vector out, as wespeaker and 3D-Speaker publish them.

==========  =====================================================================================================
input       one, float32, of shape (batch, frames, mels); the number of mels is read from the file, 80 where it is free
output      one, or the one that is named ``embs`` or ``embedding``: float32 of shape (batch, D)
features    Kaldi's log mel filterbanks, mean over time removed; with a Hamming window where the input is named
            ``feats``, as wespeaker's networks are trained, else with Kaldi's own
==========  =====================================================================================================
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest
from spkver.extractors.layers import kaldi_filterbanks
from spkver.extractors.protocol import SHORTEST, Extraction, ExtractorSettings, extract_each

_N_MELS = 80
_RATE, _WINDOW = 16000, 30.0


class OnnxNetwork(NamedTuple):
    """A session with the names of its ends, and the features that it hears."""

    session: Any
    input: str
    output: str
    n_mels: int
    shape: Literal["povey", "hamming"]


def open_onnx(path: str, settings: ExtractorSettings) -> Extraction:
    """Open a network in an ONNX file."""
    network = read_onnx(path)
    import onnxruntime

    windows, rate = settings.windows(_WINDOW), settings.rate or _RATE
    if rate < 1000 or rate > 192_000:
        raise ConfigError(f"expected a rate between 1,000 and 192,000 Hz, got {rate}")
    function = partial(embed_onnx, network=network)
    extract = partial(extract_each, function=function, rate=rate, shortest=SHORTEST, **windows)
    record = {"network": "onnx", "weights": file_digest(path), **windows, "rate": rate}
    record["onnxruntime"] = onnxruntime.__version__
    return Extraction(extract, record, rate, SHORTEST)


def embed_onnx(samples: NDArray, rate: int, network: OnnxNetwork) -> NDArray:
    """Return the vector of a network of samples.

    Raises
    ------
    DataError
        If onnxruntime cannot run it on them.
    """
    frames = kaldi_filterbanks(samples, rate=rate, n_mels=network.n_mels, shape=network.shape)
    try:
        (vectors,) = network.session.run([network.output], {network.input: frames[None]})
    except Exception as error:  # of its own kinds, which it does not name
        text = f"onnxruntime could not run the network on {len(frames)} frames: {_first_line(error)}"
        raise DataError(text) from error
    vector: NDArray = np.asarray(vectors)[0]
    return vector


def read_onnx(path: str | Path) -> OnnxNetwork:
    """Read a network and its description from an ONNX file, to be run in one thread.

    Raises
    ------
    ConfigError
        If onnxruntime is not installed, or there is no such file.
    DataError
        If it is no network, or one with other inputs or outputs; the error names what it has.
    """
    try:
        import onnxruntime
    except ImportError as error:
        text = "ONNX files are run by onnxruntime, which is not installed"
        raise ConfigError(text, remedy="pip install 'spkver[onnx]'") from error
    if not Path(path).is_file():
        raise ConfigError("there is no such ONNX file", file=path, remedy="check the path")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what is wrong is raised
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of its own kinds, which it does not name
        text = f"cannot be read as an ONNX file: {_first_line(error)}"
        raise DataError(text, file=path, remedy="it may be truncated: copy or download it again") from error
    inputs, outputs = session.get_inputs(), session.get_outputs()
    named = [node for node in outputs if node.name in ("embs", "embedding")] or outputs
    if not (_fits(inputs, [1], [], range(2, 513)) and _fits(named, [1], range(1 << 31))):
        text = "expected one input float32 (batch, frames, mels) and one output float32 (batch, D)"
        got = f"got {_described(inputs)} -> {_described(outputs)}"
        remedy = "export the network so that it takes filterbanks and gives a vector"
        raise DataError(f"{text}, {got}", file=path, remedy=remedy)
    mels = inputs[0].shape[-1] if inputs[0].shape else None
    shape: Literal["povey", "hamming"] = "hamming" if inputs[0].name == "feats" else "povey"
    return OnnxNetwork(session, inputs[0].name, named[0].name, mels if isinstance(mels, int) else _N_MELS, shape)


def _fits(nodes: Sequence[Any], *lengths: Container[int]) -> bool:
    """Whether there is one tensor of floats, of such a shape; lengths that the file leaves open fit."""
    if len(nodes) != 1 or nodes[0].type != "tensor(float)":
        return False
    shape = nodes[0].shape or [None] * len(lengths)
    return len(shape) == len(lengths) and all(
        not isinstance(length, int) or length in allowed for length, allowed in zip(shape, lengths, strict=True)
    )


def _described(nodes: Sequence[Any]) -> str:
    described = [f"{node.name} {node.type.removeprefix('tensor').strip('()')} {tuple(node.shape)}" for node in nodes]
    return ", ".join(described).replace("'", "") or "none"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
