"""Networks in ONNX files, run by onnxruntime: filterbanks in, one vector out, as wespeaker and 3D-Speaker publish them.

==========  =====================================================================================================
input       one, float32, of shape (batch, frames, mels); the number of mels is read from the file, 80 where it is free
output      one, or the one that is named ``embs`` or ``embedding``: float32 of shape (batch, D)
features    Kaldi's log mel filterbanks, mean over time removed; with a Hamming window where the input is named
            ``feats``, as wespeaker's networks are trained, else with Kaldi's own
==========  =====================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest
from spkver.extractors.layers import kaldi_filterbanks
from spkver.extractors.protocol import SHORTEST, Extraction, ExtractorSettings, each_by

_OUTPUTS = ("embs", "embedding")
_N_MELS = 80
_MOST_MELS = 512
_RATE, _WINDOW = 16000, 30.0
_EXPECTED = "expected one input float32 (batch, frames, mels) and one output float32 (batch, D)"


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
    extract = each_by(partial(embed_onnx, network=network), rate, shortest=SHORTEST, **windows)
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
        raise DataError(
            f"onnxruntime could not run the network on {len(frames)} frames: {_first_line(error)}"
        ) from error
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
        raise ConfigError(
            "ONNX files are run by onnxruntime, which is not installed", remedy="pip install 'spkver[onnx]'"
        ) from error
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
    named = [node for node in outputs if node.name in _OUTPUTS] or outputs
    n_mels = _mels(inputs)
    if n_mels is None or len(named) != 1 or named[0].type != "tensor(float)" or not _is_vector(named[0].shape):
        text = f"{_EXPECTED}, got {_described(inputs)} -> {_described(outputs)}"
        raise DataError(text, file=path, remedy="export the network so that it takes filterbanks and gives a vector")
    shape: Literal["povey", "hamming"] = "hamming" if inputs[0].name == "feats" else "povey"
    return OnnxNetwork(session, inputs[0].name, named[0].name, n_mels, shape)


def _mels(inputs: Sequence[Any]) -> int | None:
    """Number of mels of the one input; None where it is another."""
    if len(inputs) != 1 or inputs[0].type != "tensor(float)" or len(inputs[0].shape) != 3:
        return None
    batch, frames, mels = inputs[0].shape
    if (isinstance(batch, int) and batch != 1) or isinstance(frames, int):
        return None
    if not isinstance(mels, int):
        return _N_MELS
    return mels if 1 < mels <= _MOST_MELS else None


def _is_vector(shape: Sequence[Any]) -> bool:
    """Whether an output can be (1, D); a shape that the file leaves open can."""
    return not shape or (len(shape) == 2 and (shape[0] in (1, None) or isinstance(shape[0], str)))


def _described(nodes: Sequence[Any]) -> str:
    described = [f"{node.name} {node.type.removeprefix('tensor').strip('()')} {tuple(node.shape)}" for node in nodes]
    return ", ".join(described).replace("'", "") or "none"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
