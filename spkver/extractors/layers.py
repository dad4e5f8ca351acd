"""The layers of which the built-in networks are made, in NumPy: matrix products over frames laid side by side.

Maps of an image-like signal are arrays of shape (F, C, T), bands by channels by frames, and sequences are of shape
(C, T): so that neighbouring bands or frames, all channels of each, are the rows of one matrix, and each layer is one
product per band or one in all. Kernels are given as matrices with their taps in that order.

**What networks hear: Kaldi's log mel filterbanks, and mel spectra of power.**

References
----------
D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011 (the filterbanks).
M. Slaney, "Auditory Toolbox", Interval Research technical report 1998-010 (the scale and the filters of the spectra).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

EPSILON = 1e-5
"""What PyTorch adds to the variances of a batch normalisation."""

_BLOCK = 1 << 18  # numbers of taps that are laid out at a time: they stay in the cache


class Affine(NamedTuple):
    """A linear map and what is added: `kernel` (O, K), `offset` (O, 1)."""

    kernel: NDArray
    offset: NDArray


def rectify(values: NDArray) -> NDArray:
    """Return max(0, x), in place."""
    return np.maximum(values, 0, out=values)


def logistic(values: NDArray) -> NDArray:
    """Return 1 / (1 + exp(-x)), written as (1 + tanh(x / 2)) / 2, which cannot overflow."""
    return 0.5 * np.tanh(0.5 * values) + 0.5


def normalisation(mean: NDArray, variance: NDArray, weight: NDArray, bias: NDArray) -> tuple[NDArray, NDArray]:
    """Return the scale a and the shift b with which a trained batch normalisation is a x + b.

        a = w / sqrt(v + eps),   b = bias - m a

    Parameters
    ----------
    mean, variance, weight, bias : ndarray of shape (C,)

    Returns
    -------
    scale, shift : ndarray of float64 of shape (C,)

    References
    ----------
    S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015.
    """
    scale = np.asarray(weight, np.float64) / np.sqrt(np.asarray(variance, np.float64) + EPSILON)
    return scale, bias - mean * scale


def convolve_maps(maps: NDArray, layer: Affine, *, stride: int = 1) -> NDArray:
    """Return the convolution of maps with 3 x 3 taps; bands and frames beyond the edges are 0.

    Parameters
    ----------
    maps : ndarray of shape (F, C, T)
    layer : Affine
        Kernel (O, 9 C), columns ordered by tap of the band, tap of the frame, channel.
    stride : int
        Of the bands; frames have stride 1.

    Returns
    -------
    ndarray of shape (ceil(F / stride), O, T)
    """
    bands, channels, frames = maps.shape
    count = (bands - 1) // stride + 1
    at_once = max(1, min(count, _BLOCK // (3 * channels * frames * stride)))
    # the three taps over frames are laid out once; those over bands are neighbouring rows, a view
    taps = np.zeros(((at_once - 1) * stride + 3, 3, channels, frames), maps.dtype)
    steps = taps.strides
    result = np.empty((count, len(layer.kernel), frames), maps.dtype)
    for first in range(0, count, at_once):
        last = min(first + at_once, count)
        low, high = first * stride - 1, (last - 1) * stride + 2  # bands of the taps, one beyond each edge
        rows = maps[max(0, low) : high]
        before = max(0, -low)
        taps[:before] = 0
        taps[before + len(rows) :] = 0
        inner = taps[before : before + len(rows)]
        inner[:, 1] = rows
        inner[:, 0, :, 1:] = rows[:, :, :-1]
        inner[:, 2, :, :-1] = rows[:, :, 1:]
        shape = (last - first, 9 * channels, frames)
        neighbours = np.lib.stride_tricks.as_strided(
            taps, shape, (stride * steps[0], steps[2], steps[3]), writeable=False
        )
        np.matmul(layer.kernel, neighbours, out=result[first:last])
    result += layer.offset
    return result


def convolve_frames(
    frames: NDArray, kernel: NDArray, *, taps: int, dilation: int = 1, stride: int = 1, out: NDArray | None = None
) -> NDArray:
    """Return the convolution of a sequence; frames beyond the ends are 0, and the middle tap is on the frame itself.

    Parameters
    ----------
    frames : ndarray of shape (C, T)
    kernel : ndarray of shape (O, taps C)
        Columns ordered by tap, channel.
    taps : int
        Odd.
    dilation : int
        Frames from one tap to the next.
    stride : int
        Of the frames.
    out : ndarray of shape (O, ceil(T / stride)), optional
        Where to write.

    Returns
    -------
    ndarray of shape (O, ceil(T / stride))
    """
    channels, length = frames.shape
    count = (length - 1) // stride + 1
    laid = np.zeros((taps, channels, count), frames.dtype)
    for tap in range(taps):
        shift = (tap - taps // 2) * dilation
        first = max(0, -(shift // stride))  # of the outputs whose tap is within the sequence
        last = min(count, (length - 1 - shift) // stride + 1)
        if first < last:
            laid[tap, :, first:last] = frames[:, first * stride + shift : (last - 1) * stride + shift + 1 : stride]
    return np.matmul(kernel, laid.reshape(taps * channels, count), out=out)


def segment_contexts(frames: NDArray, *, length: int = 100) -> tuple[NDArray, NDArray]:
    """Return for each segment of frames the mean of the sequence plus its own mean.

    Parameters
    ----------
    frames : ndarray of shape (C, T)
    length : int
        Frames of a segment; the last one may be shorter.

    Returns
    -------
    contexts : ndarray of shape (C, S)
    starts : ndarray of int of shape (S,)
        First frame of each segment.

    References
    ----------
    H. Wang et al., "CAM++: A fast and efficient network for speaker verification using context-aware masking",
    Interspeech 2023, equations 4 to 6.
    """
    total = frames.shape[1]
    starts = np.arange(0, total, length)
    sums = np.add.reduceat(frames, starts, axis=1)
    counts = np.diff(np.append(starts, total)).astype(frames.dtype)
    return sums.sum(axis=1, keepdims=True) / frames.dtype.type(total) + sums / counts, starts


def pooled_statistics(frames: NDArray) -> NDArray:
    """Return means and standard deviations (divided by T - 1) over the frames.

    Parameters
    ----------
    frames : ndarray of shape (C, T)
        T at least 2.

    Returns
    -------
    ndarray of shape (2 C,)
    """
    return np.concatenate([frames.mean(axis=1), frames.std(axis=1, ddof=1)])


class Recurrence(NamedTuple):
    """An LSTM layer with H cells: `inputs` (D, 4 H), `states` (H, 4 H), `offset` (4 H,).

    Gates are ordered input, forget, output, cell; the first three are halved, for the logistic function as a tanh.
    """

    inputs: NDArray
    states: NDArray
    offset: NDArray


def recur(sequence: NDArray, layer: Recurrence) -> NDArray:
    """Return the states of an LSTM layer that starts at 0.

        i, f, o = logistic(...),   c_t = f c_(t-1) + i tanh(...),   h_t = o tanh(c_t)

    Parameters
    ----------
    sequence : ndarray of shape (T, B, D)
        B sequences side by side.
    layer : Recurrence

    Returns
    -------
    ndarray of shape (T, B, H)

    References
    ----------
    S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 9(8), 1997; with the forget gate of
    F. Gers et al., Neural Computation 12(10), 2000.
    """
    length, batch, dimensions = sequence.shape
    size = len(layer.states)
    driven = (sequence.reshape(length * batch, dimensions) @ layer.inputs).reshape(length, batch, 4 * size)
    driven += layer.offset
    states = np.empty((length, batch, size), sequence.dtype)
    state = np.zeros((batch, size), sequence.dtype)
    cell = np.zeros((batch, size), sequence.dtype)
    gates = np.empty((batch, 4 * size), sequence.dtype)
    for now in range(length):
        np.matmul(state, layer.states, out=gates)
        gates += driven[now]
        np.tanh(gates, out=gates)
        opened, new = gates[:, : 3 * size], gates[:, 3 * size :]
        opened *= 0.5
        opened += 0.5
        cell *= opened[:, size : 2 * size]
        new *= opened[:, :size]
        cell += new
        state = states[now]
        np.tanh(cell, out=state)
        state *= opened[:, 2 * size :]
    return states


def taker(state: Mapping[str, NDArray], network: str) -> Callable[..., NDArray]:
    """Return a function that takes a tensor of a network by its name, in float64, and checks its shape.

    Parameters
    ----------
    state : mapping of str to ndarray
        Names and values of the tensors of a network.
    network : str
        For messages.

    Returns
    -------
    callable
        ``take(name, *shape)``, where a length of None may be any; DataError for a tensor that is not there, is no
        tensor of floats, has another shape, or holds NaN or infinite values.
    """

    def take(name: str, *shape: int | None) -> NDArray:
        value = state.get(name)
        expected = f"expected the weights of {network}, with {name} of shape {shape}".replace("None", "any")
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            got = f"{len(state)} entries without it" if value is None else type(value).__name__
            raise DataError(f"{expected}, got {got}")
        fits = value.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, value.shape, strict=True))
        if not fits:
            raise DataError(f"{expected}, got {value.shape}")
        if not np.isfinite(value).all():
            raise DataError(f"{expected}, got values that are NaN or infinite")
        return value.astype(np.float64)

    return take


_SCALE = 32768.0  # Kaldi's samples are 16-bit steps
_PRE_EMPHASIS = 0.97
_LOWEST = 20.0  # Hz
_WINDOW, _SHIFT = 0.025, 0.010  # s
_FLOOR = float(np.finfo(np.float32).eps)
_FFT, _HOP = 400, 160  # of the mel spectra
_FRAMES = 4096  # at a time, so that memory does not grow with the recording


def kaldi_filterbanks(
    samples: NDArray, *, rate: int = 16000, n_mels: int = 80, shape: Literal["povey", "hamming"] = "povey"
) -> NDArray:
    """Return Kaldi's log mel filterbanks, with their mean over time removed.

    Frames of 25 ms every 10 ms, none beyond the ends (snip_edges), no dither; in each the mean removed, pre-emphasis
    0.97, a window; power of a Fourier transform of the next power of two; triangles on the scale 1127 ln(1 + f / 700)
    from 20 Hz to half the rate; natural logarithm, floored at 2^-23.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at least 25 ms; float32 or float64, in which is computed.
    rate : int [Hz]
    n_mels : int
    shape : {"povey", "hamming"}
        The window: (0.5 - 0.5 cos)^0.85, or 0.54 - 0.46 cos.

    Returns
    -------
    ndarray of shape (T, n_mels)
        T = 1 + (n - 0.025 rate) // (0.010 rate), in the dtype of the samples.
    """
    dtype = samples.dtype
    window, shift = round(_WINDOW * rate), round(_SHIFT * rate)
    weights, filters = _kaldi_tables(rate, n_mels, shape, dtype)
    pieces = []
    views = np.lib.stride_tricks.sliding_window_view(samples * dtype.type(_SCALE), window)[::shift]
    for first in range(0, len(views), _FRAMES):
        frames = views[first : first + _FRAMES]
        frames = frames - frames.mean(axis=1, keepdims=True)
        emphasised = frames * dtype.type(1 - _PRE_EMPHASIS)  # right for the first, its own predecessor
        np.subtract(frames[:, 1:], dtype.type(_PRE_EMPHASIS) * frames[:, :-1], out=emphasised[:, 1:])
        emphasised *= weights
        pieces.append(np.log(np.maximum(_power(emphasised, _fft_length(window)) @ filters, dtype.type(_FLOOR))))
    banks = np.concatenate(pieces)
    banks -= banks.mean(axis=0, dtype=np.float64).astype(dtype)
    return banks


def mel_spectra(samples: NDArray, *, rate: int = 16000, n_mels: int = 40) -> NDArray:
    """Return mel spectra of power, frames of 25 ms centred on every 10th ms, zeros beyond the ends.

    A Hann window that starts at 0 and would do so again after its end; triangles of equal area from 0 to half the rate
    on Slaney's scale: 3 mel for 200 Hz up to 1 kHz, 27 mel for a factor of 6.4 above.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at 16 kHz; float32 or float64, in which is computed.
    rate : int [Hz]
    n_mels : int

    Returns
    -------
    ndarray of shape (1 + n // 160, n_mels)
    """
    dtype = samples.dtype
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)).astype(dtype)
    filters = slaney_filters(rate=rate, n_fft=_FFT, n_mels=n_mels).T.astype(dtype)
    views = np.lib.stride_tricks.sliding_window_view(np.pad(samples, _FFT // 2), _FFT)[::_HOP]
    blocks = (views[first : first + _FRAMES] for first in range(0, len(views), _FRAMES))
    return np.concatenate([_power(block * window, _FFT) @ filters for block in blocks])


def slaney_filters(*, rate: int, n_fft: int, n_mels: int) -> NDArray[np.float64]:
    """Return triangles of equal area on Slaney's mel scale, shape (n_mels, n_fft // 2 + 1)."""
    knee, octave = 1000.0, np.log(6.4) / 27  # linear below, logarithmic above
    top = 15 + np.log(rate / 2 / knee) / octave if rate / 2 > knee else rate / 2 * 3 / 200
    mels = np.linspace(0, top, n_mels + 2)
    edges = np.where(mels < 15, mels * 200 / 3, knee * np.exp(octave * (np.maximum(mels, 15) - 15)))
    filters = _triangles(edges, np.arange(n_fft // 2 + 1) * rate / n_fft)
    return filters * (2 / (edges[2:] - edges[:-2]))[:, None]


@lru_cache(maxsize=8)
def _kaldi_tables(rate: int, n_mels: int, shape: str, dtype: np.dtype) -> tuple[NDArray, NDArray]:
    """Window (n,) and filters (bins, n_mels), which leave out the bin at half the rate."""
    window = round(_WINDOW * rate)
    n_fft = _fft_length(window)
    cosine = np.cos(2 * np.pi * np.arange(window) / (window - 1))
    weights = (0.5 - 0.5 * cosine) ** 0.85 if shape == "povey" else 0.54 - 0.46 * cosine
    edges = np.linspace(_kaldi_mel(_LOWEST), _kaldi_mel(rate / 2), n_mels + 2)
    filters = _triangles(edges, _kaldi_mel(np.arange(n_fft // 2 + 1) * rate / n_fft))
    filters[:, -1] = 0
    return weights.astype(dtype), np.ascontiguousarray(filters.T, dtype)


def _kaldi_mel(frequency: NDArray | float) -> NDArray:
    return 1127.0 * np.log1p(np.asarray(frequency) / 700.0)


def _triangles(edges: NDArray, points: NDArray) -> NDArray[np.float64]:
    """Triangles that rise from an edge to the next and fall to the one after, of height 1, at some points."""
    widths = np.diff(edges)[:, None]
    rising = (points - edges[:-2, None]) / widths[:-1]
    falling = (edges[2:, None] - points) / widths[1:]
    return np.maximum(0, np.minimum(rising, falling))


def _fft_length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def _power(frames: NDArray, n_fft: int) -> NDArray:
    from scipy import fft

    spectrum = fft.rfft(frames, n=n_fft, axis=1)
    power: NDArray = spectrum.real**2
    power += spectrum.imag**2
    return power
