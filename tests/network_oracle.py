"""The built-in networks by the book, a loop over taps and batch normalisations as they stand: for random weights.

Written from the papers' equations, apart from `spkver.extractors`: nothing is folded, laid out anew or done at once.
"""

from __future__ import annotations

import numpy as np

BLOCKS = ((12, 1), (24, 2), (16, 2))


def random_campplus(seed: int, *, size: int = 5) -> dict[str, np.ndarray]:
    """Tensors of a CAM++ that was never trained; `size` dimensions, scaled so that values stay near 1."""
    rng = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int) -> None:
        state[name] = (rng.standard_normal(shape) * np.sqrt(1.5 / np.prod(shape[1:]))).astype(
            np.float32
        )

    def norm(name: str, channels: int, *, affine: bool = True) -> None:
        state[f"{name}.running_mean"] = rng.normal(0, 0.3, channels).astype(np.float32)
        state[f"{name}.running_var"] = rng.uniform(0.5, 2, channels).astype(np.float32)
        if affine:
            # some activations are below 0
            state[f"{name}.weight"] = rng.normal(1, 0.4, channels).astype(np.float32)
            state[f"{name}.bias"] = rng.normal(0, 0.3, channels).astype(np.float32)

    for name, channels in (("conv1", 1), ("conv2", 32)):
        weight(f"head.{name}.weight", 32, channels, 3, 3)
        norm(f"head.bn{name[-1]}", 32)
    for layer in (1, 2):
        for number in (0, 1):
            block = f"head.layer{layer}.{number}"
            for i in (1, 2):
                weight(f"{block}.conv{i}.weight", 32, 32, 3, 3)
                norm(f"{block}.bn{i}", 32)
            if not number:
                weight(f"{block}.shortcut.0.weight", 32, 32, 1, 1)
                norm(f"{block}.shortcut.1", 32)
    weight("xvector.tdnn.linear.weight", 128, 320, 5)
    norm("xvector.tdnn.nonlinear.batchnorm", 128)
    channels = 128
    for number, (count, _) in enumerate(BLOCKS, 1):
        for i in range(1, count + 1):
            layer = f"xvector.block{number}.tdnnd{i}"
            norm(f"{layer}.nonlinear1.batchnorm", channels)
            weight(f"{layer}.linear1.weight", 128, channels, 1)
            norm(f"{layer}.nonlinear2.batchnorm", 128)
            weight(f"{layer}.cam_layer.linear_local.weight", 32, 128, 3)
            for part, shape in (("linear1", (64, 128, 1)), ("linear2", (32, 64, 1))):
                weight(f"{layer}.cam_layer.{part}.weight", *shape)
                state[f"{layer}.cam_layer.{part}.bias"] = rng.normal(0, 0.3, shape[0]).astype(
                    np.float32
                )
            channels += 32
        norm(f"xvector.transit{number}.nonlinear.batchnorm", channels)
        weight(f"xvector.transit{number}.linear.weight", channels // 2, channels, 1)
        channels //= 2
    norm("xvector.out_nonlinear.batchnorm", channels)
    weight("xvector.dense.linear.weight", size, 2 * channels, 1)
    norm("xvector.dense.nonlinear.batchnorm", size, affine=False)
    return state


def campplus(frames: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    """Vector of (T, 80) frames, in float64."""

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        shape = (-1,) + (1,) * (x.ndim - 1)
        mean, variance = (
            state[f"{name}.running_{part}"].astype(float).reshape(shape) for part in ("mean", "var")
        )
        x = (x - mean) / np.sqrt(variance + 1e-5)
        if f"{name}.weight" in state:
            x = x * state[f"{name}.weight"].reshape(shape) + state[f"{name}.bias"].reshape(shape)
        return x

    def relu(x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    def conv2d(x: np.ndarray, name: str, stride: int = 1) -> np.ndarray:
        kernel = state[f"{name}.weight"].astype(float)
        side, (_, bands, length) = kernel.shape[2], x.shape
        padded = np.pad(x, ((0, 0), (side // 2, side // 2), (side // 2, side // 2)))
        taps = [(row, column) for row in range(side) for column in range(side)]
        shifted = [padded[:, row : row + bands, column : column + length] for row, column in taps]
        products = [
            np.tensordot(kernel[:, :, tap[0], tap[1]], each, 1)
            for tap, each in zip(taps, shifted, strict=True)
        ]
        return sum(products)[:, ::stride]

    def conv1d(x: np.ndarray, name: str, *, dilation: int = 1, stride: int = 1) -> np.ndarray:
        kernel = state[f"{name}.weight"].astype(float)
        taps = kernel.shape[2]
        padded = np.pad(x, ((0, 0), (taps // 2 * dilation,) * 2))
        length = x.shape[1]
        result = sum(
            kernel[:, :, tap] @ padded[:, tap * dilation : tap * dilation + length]
            for tap in range(taps)
        )
        if f"{name}.bias" in state:
            result = result + state[f"{name}.bias"][:, None]
        return result[:, ::stride]

    x = frames.T[None].astype(float)
    x = relu(norm(conv2d(x, "head.conv1"), "head.bn1"))
    for layer in (1, 2):
        for number in (0, 1):
            block, stride = f"head.layer{layer}.{number}", 1 if number else 2
            y = relu(norm(conv2d(x, f"{block}.conv1", stride), f"{block}.bn1"))
            y = norm(conv2d(y, f"{block}.conv2"), f"{block}.bn2")
            short = (
                x if number else norm(conv2d(x, f"{block}.shortcut.0", 2), f"{block}.shortcut.1")
            )
            x = relu(y + short)
    x = relu(norm(conv2d(x, "head.conv2", 2), "head.bn2"))
    x = x.reshape(320, -1)
    x = relu(norm(conv1d(x, "xvector.tdnn.linear", stride=2), "xvector.tdnn.nonlinear.batchnorm"))
    for number, (count, dilation) in enumerate(BLOCKS, 1):
        for i in range(1, count + 1):
            layer = f"xvector.block{number}.tdnnd{i}"
            y = conv1d(relu(norm(x, f"{layer}.nonlinear1.batchnorm")), f"{layer}.linear1")
            y = relu(norm(y, f"{layer}.nonlinear2.batchnorm"))
            local = conv1d(y, f"{layer}.cam_layer.linear_local", dilation=dilation)
            for first in range(0, y.shape[1], 100):
                context = (y.mean(axis=1) + y[:, first : first + 100].mean(axis=1))[:, None]
                hidden = relu(conv1d(context, f"{layer}.cam_layer.linear1"))
                local[:, first : first + 100] /= 1 + np.exp(
                    -conv1d(hidden, f"{layer}.cam_layer.linear2")
                )
            x = np.concatenate([x, local])
        name = f"xvector.transit{number}"
        x = conv1d(relu(norm(x, f"{name}.nonlinear.batchnorm")), f"{name}.linear")
    x = relu(norm(x, "xvector.out_nonlinear.batchnorm"))
    pooled = np.concatenate([x.mean(axis=1), x.std(axis=1, ddof=1)])[:, None]
    return norm(conv1d(pooled, "xvector.dense.linear"), "xvector.dense.nonlinear.batchnorm")[:, 0]


def random_ge2e(seed: int, *, cells: int = 7, size: int = 5) -> dict[str, np.ndarray]:
    """Tensors of a GE2E network that was never trained."""
    rng = np.random.default_rng(seed)
    state = {"similarity_weight": np.array([10.0], np.float32)}
    for number in range(3):
        inputs = cells if number else 40
        for name, shape in (("ih", (4 * cells, inputs)), ("hh", (4 * cells, cells))):
            state[f"lstm.weight_{name}_l{number}"] = rng.normal(0, 0.4, shape).astype(np.float32)
            state[f"lstm.bias_{name}_l{number}"] = rng.normal(0, 0.2, 4 * cells).astype(np.float32)
    state["linear.weight"] = rng.normal(0, 1, (size, cells)).astype(np.float32)
    state["linear.bias"] = np.abs(rng.normal(0.5, 0.2, size)).astype(np.float32)
    return state


def ge2e_window(frames: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    """Unit vector of one window (T, 40), cell by cell, in float64."""

    def logistic(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    sequence = frames.astype(float)
    for number in range(3):
        w, u = (state[f"lstm.weight_{name}_l{number}"].astype(float) for name in ("ih", "hh"))
        b, c = (state[f"lstm.bias_{name}_l{number}"].astype(float) for name in ("ih", "hh"))
        state_h, cell, out = np.zeros(u.shape[1]), np.zeros(u.shape[1]), []
        for x in sequence:
            given, forget, new, opened = np.split(w @ x + b + u @ state_h + c, 4)
            cell = logistic(forget) * cell + logistic(given) * np.tanh(new)
            state_h = logistic(opened) * np.tanh(cell)
            out.append(state_h)
        sequence = np.array(out)
    vector = np.maximum(
        state["linear.weight"].astype(float) @ sequence[-1] + state["linear.bias"], 0
    )
    return vector / np.linalg.norm(vector)
