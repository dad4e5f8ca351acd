"""CAM++ in PyTorch, as a function of its tensors, so that it can be tuned.

The names of the tensors are those of the published weights; `spkver.extractors.campplus_graph` builds the same network
for onnxruntime.

References
----------
H. Wang, S. Zheng, Y. Chen, L. Cheng and Q. Chen, "CAM++: A fast and efficient network for speaker verification using
context-aware masking", Interspeech 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spkbase.packages import imported

Tensor = Any

SEGMENT = 100
"""Frames after the first convolution that share a context."""

BLOCKS = ((12, 1), (24, 2), (16, 2))
"""Layers of each block, and their dilation."""


def campplus_vectors(tensors: Mapping[str, Tensor], frames: Tensor) -> Tensor:
    """Return the vectors of filterbanks, shape (B, D), without length normalisation.

    Batch normalisation uses the statistics among the tensors, even while the network is tuned.

    Parameters
    ----------
    tensors : mapping of str to torch.Tensor
    frames : torch.Tensor of shape (B, T, 80)
        See `spkver.extractors.kaldi_filterbanks`.
    """
    torch = imported("torch", "torch", "tuning")
    maps = _front_end(tensors, frames.transpose(1, 2)[:, None])
    hidden = _convolve(tensors, maps.flatten(1, 2), "xvector.tdnn.linear", stride=2)
    hidden = _activate(tensors, hidden, "xvector.tdnn.nonlinear.batchnorm")
    for block, (count, dilation) in enumerate(BLOCKS, 1):
        for number in range(1, count + 1):
            layer = _dense_layer(tensors, hidden, f"xvector.block{block}.tdnnd{number}", dilation)
            hidden = torch.cat([hidden, layer], dim=1)
        hidden = _activate(tensors, hidden, f"xvector.transit{block}.nonlinear.batchnorm")
        hidden = _convolve(tensors, hidden, f"xvector.transit{block}.linear")
    hidden = _activate(tensors, hidden, "xvector.out_nonlinear.batchnorm")
    moments = torch.cat([hidden.mean(dim=2), hidden.std(dim=2)], dim=1)
    vectors = _convolve(tensors, moments[:, :, None], "xvector.dense.linear")
    return _normalise(tensors, vectors, "xvector.dense.nonlinear.batchnorm")[:, :, 0]


def _front_end(tensors: Mapping[str, Tensor], maps: Tensor) -> Tensor:
    """Return the maps (B, C, 10, T) of filterbanks (B, 1, 80, T): residual convolutions that halve the bands."""
    maps = _activate(tensors, _convolve(tensors, maps, "head.conv1"), "head.bn1")
    for layer in (1, 2):
        for number in (0, 1):
            name = f"head.layer{layer}.{number}"
            stride = 2 if number == 0 else 1
            inner = _convolve(tensors, maps, f"{name}.conv1", stride=stride)
            inner = _activate(tensors, inner, f"{name}.bn1")
            inner = _normalise(tensors, _convolve(tensors, inner, f"{name}.conv2"), f"{name}.bn2")
            if number == 0:
                maps = _convolve(tensors, maps, f"{name}.shortcut.0", stride=stride)
                maps = _normalise(tensors, maps, f"{name}.shortcut.1")
            maps = (inner + maps).relu()
    return _activate(tensors, _convolve(tensors, maps, "head.conv2", stride=2), "head.bn2")


def _dense_layer(tensors: Mapping[str, Tensor], hidden: Tensor, name: str, dilation: int) -> Tensor:
    """Return the output of a layer, masked by the context of each segment: the mean of all frames plus its own."""
    from torch.nn.functional import avg_pool1d

    inner = _activate(tensors, hidden, f"{name}.nonlinear1.batchnorm")
    inner = _convolve(tensors, inner, f"{name}.linear1")
    inner = _activate(tensors, inner, f"{name}.nonlinear2.batchnorm")
    context = inner.mean(dim=2, keepdim=True) + avg_pool1d(inner, SEGMENT, ceil_mode=True)
    context = _convolve(tensors, context, f"{name}.cam_layer.linear1").relu()
    masks = _convolve(tensors, context, f"{name}.cam_layer.linear2").sigmoid()
    masks = masks.repeat_interleave(SEGMENT, dim=2)[:, :, : inner.shape[2]]
    return masks * _convolve(tensors, inner, f"{name}.cam_layer.linear_local", dilation=dilation)


def _convolve(
    tensors: Mapping[str, Tensor], inputs: Tensor, name: str, *, stride: int = 1, dilation: int = 1
) -> Tensor:
    """Convolve frames, or maps of bands by frames, where the stride applies only to bands; zeros beyond the edges."""
    from torch.nn.functional import conv1d, conv2d

    kernel = tensors[f"{name}.weight"]
    bias = tensors.get(f"{name}.bias")
    padding = [dilation * (taps // 2) for taps in kernel.shape[2:]]
    if kernel.ndim == 4:
        return conv2d(inputs, kernel, bias, (stride, 1), padding, dilation)
    return conv1d(inputs, kernel, bias, stride, padding, dilation)


def _normalise(tensors: Mapping[str, Tensor], inputs: Tensor, name: str) -> Tensor:
    """Normalise by the statistics of training batches."""
    from torch.nn.functional import batch_norm

    mean = tensors[f"{name}.running_mean"]
    variance = tensors[f"{name}.running_var"]
    weight = tensors.get(f"{name}.weight")
    return batch_norm(inputs, mean, variance, weight, tensors.get(f"{name}.bias"))


def _activate(tensors: Mapping[str, Tensor], inputs: Tensor, name: str) -> Tensor:
    """Normalise and rectify."""
    return _normalise(tensors, inputs, name).relu()
