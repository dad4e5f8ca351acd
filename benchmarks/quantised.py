"""CAM++ with products of 8-bit numbers: how much faster it is, and what becomes of its vectors.

    python -m benchmarks.public_speech DIR --librispeech Resemblyzer --dspspeech DSPSpeech-20
    python -m benchmarks.quantised DIR [--every 2]

onnxruntime quantises the convolutions, all or all but the first and the last, after calibration on three seconds of
every sixth recording of `libri251`. Vectors of original speech are compared with those of the network as it is, and
scored by cosines of centred vectors, models being means. The time is processor time of one thread, front end included.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import eer
from spkbase.console import Command
from spkbase.files import format_table
from spkbase.work import one_blas_thread
from spkver.audio import read_audio
from spkver.datadir import DataDir, enrolment, read_datadir
from spkver.extractors import kaldi_filterbanks
from spkver.extractors.networks import Network, campplus_graph, embed_frames, read_network
from spkver.extractors.weights import CAMPPLUS, find_weights, read_weights

RATE = 16000
CALIBRATION_FRAMES = 300
CALIBRATION_STEP = 6
PERCENTILE = 99.99
PATH = click.Path(path_type=Path)


class Calibration:
    """Filterbanks of some recordings, one at a time, as onnxruntime asks for them."""

    def __init__(self, directory: DataDir) -> None:
        self.inputs = self._frames(directory)

    def _frames(self, directory: DataDir) -> Iterator[dict[str, NDArray[np.float32]]]:
        for path in list(directory.recordings.values())[::CALIBRATION_STEP]:
            frames = kaldi_filterbanks(samples_of(path), rate=RATE)
            yield {"frames": frames[None, :CALIBRATION_FRAMES].astype(np.float32)}

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        """Return the next input; None after the last one."""
        return next(self.inputs, None)


def quantised(model: bytes, directory: DataDir, *, spared: int) -> bytes:
    """Return a network whose convolutions, but some at either end, multiply 8-bit numbers.

    Parameters
    ----------
    model : bytes
        An ONNX file.
    directory : DataDir
        Speech for calibration.
    spared : int
        Number of convolutions at the beginning, and at the end, that stay as they are.
    """
    import onnx
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    graph = onnx.load_from_string(model)
    names = []
    for number, node in enumerate(graph.graph.node):
        node.name = f"{node.op_type}{number}"
        if node.op_type == "Conv":
            names.append(node.name)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "network.onnx"
        target = Path(folder) / "quantised.onnx"
        onnx.save(graph, source)
        quantize_static(
            source,
            target,
            Calibration(directory),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            nodes_to_quantize=names[spared : len(names) - spared],
            calibrate_method=CalibrationMethod.Percentile,
            extra_options={"CalibPercentile": PERCENTILE},
        )
        return target.read_bytes()


def samples_of(path: Path) -> NDArray[np.float32]:
    """Return the samples of a recording at the rate of the network."""
    return np.asarray(read_audio(path, rate=RATE, resample=True).samples, np.float32)


def vectors_of(network: Network, recordings: dict[str, Path]) -> dict[str, NDArray[np.float64]]:
    """Return the unit vectors of recordings."""
    vectors = {}
    for name, path in recordings.items():
        vector = embed_frames(samples_of(path), RATE, network).astype(np.float64)
        vectors[name] = vector / np.linalg.norm(vector)
    return vectors


def equal_error_rate(
    vectors: dict[str, NDArray[np.float64]], models: dict[str, list[str]], tests: list[DataDir]
) -> float:
    """Return the EER of cosines of centred vectors; tests are scored against the models of their list."""
    mean = np.mean(list(vectors.values()), axis=0)
    target: list[float] = []
    nontarget: list[float] = []
    means = {}
    for speaker, names in models.items():
        means[speaker] = np.mean([vectors[name] for name in names], axis=0) - mean
    for directory in tests:
        enrolled = set(directory.speakers.values()) & models.keys()
        for name, speaker in directory.speakers.items():
            if name not in vectors:
                continue
            tested = vectors[name] - mean
            for model in enrolled:
                norms = np.linalg.norm(means[model]) * np.linalg.norm(tested)
                scores = target if model == speaker else nontarget
                scores.append(means[model] @ tested / norms)
    return float(eer(np.array(target), np.array(nontarget)))


@click.command(cls=Command)
@click.argument("data", type=PATH)
@click.option("--every", default=2, help="Use every n-th recording of dsp_test.")
@one_blas_thread()
def main(data: Path, every: int) -> None:
    """Compare the networks on the sets in DATA."""
    tensors, _ = read_weights(CAMPPLUS, find_weights(CAMPPLUS.network))
    model = campplus_graph(tensors)
    training = read_datadir(data / "libri251")
    networks = {"float32": read_network(model)}
    for title, spared in (("all but the first and the last", 1), ("all", 0)):
        networks[title] = read_network(quantised(model, training, spared=spared))
    rows = []
    for name, step in (("libri10_test", 1), ("dsp_test", every)):
        enrolled = read_datadir(data / f"{name}_enrolls")
        tests = [read_datadir(folder) for folder in sorted(data.glob(f"{name}_trials_*"))]
        recordings: dict[str, Path] = {}
        for directory in (enrolled, *tests):
            recordings |= dict(list(directory.recordings.items())[::step])
        models: dict[str, list[str]] = {}
        for utterance in enrolment(enrolled).segments:
            if utterance in recordings:
                models.setdefault(enrolled.speakers[utterance], []).append(utterance)
        exact: Any = None
        for title, network in networks.items():
            before = time.process_time()
            vectors = vectors_of(network, recordings)
            seconds = time.process_time() - before
            if exact is None:
                exact = vectors
            cosines = [vectors[key] @ exact[key] for key in vectors]
            row = {
                "set": name,
                "8-bit convolutions": title,
                "least cosine": f"{min(cosines):.3f}",
                "median": f"{np.median(cosines):.3f}",
                "EER [%]": f"{100 * equal_error_rate(vectors, models, tests):.2f}",
                "s": f"{seconds:.1f}",
            }
            rows.append(row)
    print(format_table(rows, markdown=True))


if __name__ == "__main__":
    main()
