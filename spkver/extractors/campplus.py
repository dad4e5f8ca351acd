"""CAM++: a densely connected time-delay network with context-aware masking, from Kaldi's filterbanks to a vector.

References
----------
H. Wang, S. Zheng, Y. Chen, L. Cheng and Q. Chen, "CAM++: A fast and efficient network for speaker verification using
context-aware masking", Interspeech 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from spkver.extractors.layers import (
    Affine,
    convolve_frames,
    convolve_maps,
    logistic,
    normalisation,
    pooled_statistics,
    rectify,
    segment_contexts,
    taker,
)

N_MELS = 80
_CHANNELS = 32  # of the maps, and what a layer adds
_BANDS = N_MELS // 8  # after three strides of 2
_BLOCKS = ((12, 1), (24, 2), (16, 2))  # layers, dilation
_FIRST, _HIDDEN = 128, 64  # channels of the first sequence and within the layers; of the context
_TAPS = 5

Take = Callable[..., NDArray]


class Residual(NamedTuple):
    """Two convolutions of maps beside a short cut, which is a map of its own where bands are halved."""

    first: Affine
    second: Affine
    shortcut: Affine | None


class MaskedLayer(NamedTuple):
    """A layer of a block: normalised input, narrowed, convolved, and masked by its context."""

    scale: NDArray
    shift: NDArray
    narrow: Affine
    local: NDArray
    context: Affine
    mask: Affine


class Transition(NamedTuple):
    """Normalised input, narrowed."""

    scale: NDArray
    shift: NDArray
    kernel: NDArray


class CamPlusPlus(NamedTuple):
    """The weights of CAM++ with batch normalisations folded into the maps beside them."""

    first: Affine
    residuals: tuple[Residual, ...]
    last: Affine
    delay: Affine
    blocks: tuple[tuple[MaskedLayer, ...], ...]
    transitions: tuple[Transition, ...]
    final: tuple[NDArray, NDArray]
    dense: Affine


def campplus_vector(frames: NDArray, network: CamPlusPlus) -> NDArray:
    """Return the vector of CAM++.

    Parameters
    ----------
    frames : ndarray of shape (T, 80)
        Kaldi's log mel filterbanks with their mean over time removed; T at least 3. Their dtype is that of the network.
    network : CamPlusPlus

    Returns
    -------
    ndarray of shape (D,)
        Not normalised.
    """
    maps = rectify(convolve_maps(np.ascontiguousarray(frames.T)[:, None, :], network.first))
    for residual in network.residuals:
        stride = 1 if residual.shortcut is None else 2
        inner = convolve_maps(rectify(convolve_maps(maps, residual.first, stride=stride)), residual.second)
        if residual.shortcut is None:
            inner += maps
        else:
            inner += residual.shortcut.kernel @ maps[::stride]
            inner += residual.shortcut.offset
        maps = rectify(inner)
    maps = rectify(convolve_maps(maps, network.last, stride=2))
    sequence = convolve_frames(maps.reshape(-1, maps.shape[2]), network.delay.kernel, taps=_TAPS, stride=2)
    sequence += network.delay.offset
    rectify(sequence)
    for block, (_, dilation), transition in zip(network.blocks, _BLOCKS, network.transitions, strict=True):
        grown = densely_connected(sequence, block, dilation=dilation)
        grown *= transition.scale
        grown += transition.shift
        sequence = transition.kernel @ rectify(grown)
    scale, shift = network.final
    sequence *= scale
    sequence += shift
    return network.dense.kernel @ pooled_statistics(rectify(sequence)) + network.dense.offset[:, 0]


def densely_connected(sequence: NDArray, layers: tuple[MaskedLayer, ...], *, dilation: int) -> NDArray:
    """Return a sequence with the outputs of layers below it, each of which sees all that stands above it.

    Parameters
    ----------
    sequence : ndarray of shape (C, T)
    layers : tuple of MaskedLayer
    dilation : int

    Returns
    -------
    ndarray of shape (C + 32 * number of layers, T)
    """
    channels, length = sequence.shape
    grown = np.empty((channels + _CHANNELS * len(layers), length), sequence.dtype)
    grown[:channels] = sequence
    scratch = np.empty_like(grown)
    for layer in layers:
        seen = np.multiply(grown[:channels], layer.scale, out=scratch[:channels])
        seen += layer.shift
        hidden = layer.narrow.kernel @ rectify(seen)
        hidden += layer.narrow.offset
        masked_convolution(rectify(hidden), layer, dilation=dilation, out=grown[channels : channels + _CHANNELS])
        channels += _CHANNELS
    return grown


def masked_convolution(hidden: NDArray, layer: MaskedLayer, *, dilation: int, out: NDArray) -> NDArray:
    """Write the convolution of a sequence times its mask, a number between 0 and 1 for each channel and segment.

        m = logistic(W2 max(0, W1 (mean + segment mean) + b1) + b2)

    Parameters
    ----------
    hidden : ndarray of shape (128, T)
    layer : MaskedLayer
    dilation : int
    out : ndarray of shape (32, T)

    Returns
    -------
    ndarray of shape (32, T)
        `out`.
    """
    convolve_frames(hidden, layer.local, taps=3, dilation=dilation, out=out)
    contexts, starts = segment_contexts(hidden)
    masks = layer.mask.kernel @ rectify(layer.context.kernel @ contexts + layer.context.offset) + layer.mask.offset
    for start, stop, mask in zip(starts, [*starts[1:], out.shape[1]], logistic(masks).T, strict=True):
        out[:, start:stop] *= mask[:, None]
    return out


def campplus_network(state: Mapping[str, NDArray], *, dtype: str = "float32") -> CamPlusPlus:
    """Make the network of the tensors of a trained one, as 3D-Speaker publishes them.

    Parameters
    ----------
    state : mapping of str to ndarray
        Names and values of its tensors.
    dtype : {"float32", "float64"}
        In which it computes.

    Raises
    ------
    DataError
        If a tensor is missing or has another shape; the error names it.
    """
    take = taker(state, "CAM++")
    tail = "xvector.dense"
    last = 2 * take("xvector.transit3.linear.weight", None, None, 1).shape[0]
    size = take(f"{tail}.linear.weight", None, last, 1).shape[0]
    blocks, transitions, channels = [], [], _FIRST
    for number, (count, _) in enumerate(_BLOCKS, 1):
        block = f"xvector.block{number}.tdnnd"
        layers = [_layer(take, f"{block}{i + 1}", channels + _CHANNELS * i) for i in range(count)]
        blocks.append(tuple(layers))
        channels += _CHANNELS * count
        name = f"xvector.transit{number}"
        kernel = take(f"{name}.linear.weight", channels // 2, channels, 1)[:, :, 0]
        transitions.append(Transition(*_columns(_affine(take, f"{name}.nonlinear.batchnorm", channels)), kernel))
        channels //= 2
    scale, shift = _affine(take, "xvector.tdnn.nonlinear.batchnorm", _FIRST)
    # channels before bands in the file, bands before channels here
    delay = take("xvector.tdnn.linear.weight", _FIRST, _CHANNELS * _BANDS, _TAPS) * scale[:, None, None]
    delay = delay.reshape(_FIRST, _CHANNELS, _BANDS, _TAPS).transpose(0, 3, 2, 1).reshape(_FIRST, -1)
    mean, variance = (take(f"{tail}.nonlinear.batchnorm.running_{name}", size) for name in ("mean", "var"))
    scale_out, shift_out = normalisation(mean, variance, np.ones(size), np.zeros(size))
    network = CamPlusPlus(
        first=_maps(take, "head.conv1", "head.bn1", 1),
        residuals=tuple(_residual(take, layer, number) for layer in (1, 2) for number in (0, 1)),
        last=_maps(take, "head.conv2", "head.bn2"),
        delay=Affine(delay, shift[:, None]),
        blocks=tuple(blocks),
        transitions=tuple(transitions),
        final=_columns(_affine(take, "xvector.out_nonlinear.batchnorm", channels)),
        dense=Affine(take(f"{tail}.linear.weight", size, last, 1)[:, :, 0] * scale_out[:, None], shift_out[:, None]),
    )
    return cast(CamPlusPlus, _as_dtype(network, np.dtype(dtype)))


def _as_dtype(part: Any, dtype: np.dtype) -> Any:
    """Go through nested tuples and give arrays the dtype."""
    if isinstance(part, np.ndarray):
        return np.ascontiguousarray(part, dtype)
    if isinstance(part, tuple):
        parts = [_as_dtype(inner, dtype) for inner in part]
        return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)
    return part


def _affine(take: Take, name: str, channels: int) -> tuple[NDArray, NDArray]:
    names = ("running_mean", "running_var", "weight", "bias")
    return normalisation(*(take(f"{name}.{part}", channels) for part in names))


def _columns(vectors: tuple[NDArray, NDArray]) -> tuple[NDArray, NDArray]:
    return vectors[0][:, None], vectors[1][:, None]


def _maps(take: Take, name: str, norm: str, channels: int = _CHANNELS, *, side: int = 3) -> Affine:
    """A convolution of maps with the normalisation behind it; taps before channels."""
    scale, shift = _affine(take, norm, _CHANNELS)
    kernel = take(f"{name}.weight", _CHANNELS, channels, side, side) * scale[:, None, None, None]
    return Affine(kernel.transpose(0, 2, 3, 1).reshape(_CHANNELS, -1), shift[:, None])


def _residual(take: Take, layer: int, number: int) -> Residual:
    name = f"head.layer{layer}.{number}"
    shortcut = None if number else _maps(take, f"{name}.shortcut.0", f"{name}.shortcut.1", side=1)
    first, second = (_maps(take, f"{name}.conv{i}", f"{name}.bn{i}") for i in (1, 2))
    return Residual(first, second, shortcut)


def _layer(take: Take, name: str, channels: int) -> MaskedLayer:
    scale, shift = _affine(take, f"{name}.nonlinear2.batchnorm", _FIRST)
    cam = f"{name}.cam_layer"
    local = take(f"{cam}.linear_local.weight", _CHANNELS, _FIRST, 3)
    context, mask = (
        Affine(take(f"{cam}.{part}.weight", *shape, 1)[:, :, 0], take(f"{cam}.{part}.bias", shape[0])[:, None])
        for part, shape in (("linear1", (_HIDDEN, _FIRST)), ("linear2", (_CHANNELS, _HIDDEN)))
    )
    return MaskedLayer(
        *_columns(_affine(take, f"{name}.nonlinear1.batchnorm", channels)),
        Affine(take(f"{name}.linear1.weight", _FIRST, channels, 1)[:, :, 0] * scale[:, None], shift[:, None]),
        local.transpose(0, 2, 1).reshape(_CHANNELS, -1),
        context,
        mask,
    )
