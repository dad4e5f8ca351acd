"""Where CAM++ spends its time: operators by onnxruntime's profiler, and how near its convolutions come to the product.

    python -m benchmarks.operators [WEIGHTS] [--seconds 8]

One thread. Operations are those of the convolutions, two for each multiplication; "product" is that of 4096 x 4096
matrices of float32 by NumPy, in the same process. The whole network is timed without the profiler.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.measure import describe_machine, matmul_rate, median_seconds
from spkbase.console import Command
from spkbase.work import one_blas_thread
from spkver.extractors.networks import campplus_graph, read_network
from spkver.extractors.weights import CAMPPLUS, find_weights, read_weights

FRAMES_A_SECOND = 100
BANDS = 80
RUNS = 10


def convolution_operations(model: bytes, n_frames: int) -> int:
    """Return the operations of all convolutions for one recording."""
    import onnx

    graph = onnx.load_from_string(model)
    for axis, length in zip(
        graph.graph.input[0].type.tensor_type.shape.dim, (1, n_frames, BANDS), strict=True
    ):
        axis.dim_value = length
    graph = onnx.shape_inference.infer_shapes(graph, data_prop=True).graph
    kernels = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    shapes = {}
    for value in graph.value_info:
        shapes[value.name] = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    operations = 0
    for node in graph.node:
        if node.op_type == "Conv":
            kernel = kernels[node.input[1]]
            operations += 2 * int(np.prod(shapes[node.output[0]])) * int(np.prod(kernel[1:]))
    return operations


def operator_shares(model: bytes, frames: np.ndarray) -> dict[str, float]:
    """Return the share of each kind of operator in the time of all, the largest first."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        for _ in range(RUNS):
            session.run(None, {"frames": frames})
        events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text())
    times: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("kernel_time"):
            times[event["args"]["op_name"]] += event["dur"]
    total = sum(times.values())
    return {kind: time / total for kind, time in times.most_common()}


@click.command(cls=Command)
@click.argument("weights", default="")
@click.option("--seconds", default=(2.0, 8.0), multiple=True, help="Duration of a recording.")
@one_blas_thread()
def main(weights: str, seconds: tuple[float, ...]) -> None:
    """Print the time of CAM++ and of its operators; WEIGHTS is the folder of weights."""
    print(describe_machine())
    tensors, _ = read_weights(CAMPPLUS, find_weights(CAMPPLUS.network, weights))
    model = campplus_graph(tensors)
    network = read_network(model)
    product = matmul_rate(1)
    print(f"product {product / 1e9:.0f} GFLOP/s")
    for duration in seconds:
        n_frames = round(duration * FRAMES_A_SECOND)
        frames = np.random.default_rng(0).standard_normal((1, n_frames, BANDS))
        frames = frames.astype(np.float32)
        operations = convolution_operations(model, n_frames)
        took = median_seconds(partial(network.run, frames), repeats=RUNS)
        rate = operations / took
        print(
            f"{duration:g} s: {operations / duration / 1e9:.2f} billion operations a second of speech, "
            f"{duration / took:.0f} times real time, {rate / 1e9:.0f} GFLOP/s, {rate / product:.0%} of the product"
        )
        for kind, share in operator_shares(model, frames).items():
            if share >= 0.01:
                print(f"  {kind:20} {share:.1%}")


if __name__ == "__main__":
    main()
