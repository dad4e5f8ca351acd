"""The McAdams coefficient: the poles of linear prediction are rotated, so that formants move but pitch does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import chunk_bounds
from spkver.anonymization.linear_prediction import burg, pole_zero
from spkver.anonymization.polynomials import Factors, product, quadratic_factors

ORDER = 20
_WINDOW = 0.020  # seconds
_SHIFT = 0.010  # seconds
# added to samples and to windowed frames, so that silence can be predicted
_EPS = np.finfo(np.float32).eps
_FULL_SCALE = 32766
# Factor on the radius of a pole that the inverse would rotate beyond pi. Among 0, .3, .5, .6 and .8, this one gave
# spectra nearest to the originals on both backgrounds of the README, for alpha from .5 to .9.
_BEYOND = 0.5
_FRAMES = 1024  # frames processed at once: many for each array operation, few enough for the cache


def turn_poles(
    signals: Sequence[NDArray[np.float32]],
    rates: Sequence[int],
    coefficients: Sequence[float],
    *,
    back: bool = False,
) -> list[NDArray[np.float64] | DataError]:
    """Anonymise each signal by its own McAdams coefficient: baseline B2 of VoicePrivacy 2020 to 2026.

    The angles of the poles of linear prediction are raised to the power alpha. Outputs are peak-normalised multiples of
    1/32768; silence gives silence.

    Several short signals are processed faster together, each with the same result, to the bit, as alone.

    With `back`, a pole at the angle w is rotated to w**(1 / alpha), its original angle. A pole that would be rotated
    beyond pi is an artefact of the prediction (after alpha < 1 speech has no resonances above pi**alpha, but the
    prediction has poles there). It is placed at pi, with half its radius: at its folded angle, or with its full radius,
    it would be louder than the speech.

    Parameters
    ----------
    signals : sequence of ndarray of shape (n,)
        With full scale 1.
    rates : sequence of int [Hz]
    coefficients : sequence of float
        The alpha of each signal.
    back : bool
        Invert the anonymisation with the same coefficients.

    Returns
    -------
    list
        For each signal its output, or a DataError if it has no complete frame of 20 ms or its rate is too low for the
        order.

    References
    ----------
    J. Patino, N. Tomashenko, M. Todisco, A. Nautsch, N. Evans, Speaker anonymisation using the McAdams coefficient,
    Interspeech 2021, arXiv:2011.01130.

    Examples
    --------
    >>> bool(turn_poles([np.zeros(320, np.float32)], [16000], [0.8])[0].any())
    False
    """
    outputs: list[NDArray[np.float64] | DataError] = []
    framed: dict[int, _Framed] = {}
    for number, (samples, rate, coefficient) in enumerate(
        zip(signals, rates, coefficients, strict=True)
    ):
        length = int(rate * _WINDOW)
        if length <= ORDER or len(samples) < length:
            text = f"{len(samples)} samples at {rate} Hz are too few for linear prediction of order {ORDER} in frames"
            outputs.append(
                DataError(f"{text} of {_WINDOW * 1000:.0f} ms", remedy="leave the utterance out")
            )
            continue
        outputs.append(np.zeros(len(samples)))
        if samples.any():
            exponent = 1 / coefficient if back else coefficient
            framed[number] = _Framed(samples, rate, exponent)
    room = np.empty(0)
    for block in _blocks(framed.values()):
        room = _turn_block(block, room, back)
    for number, signal in framed.items():
        output = signal.output[: len(signals[number])]
        output *= _FULL_SCALE / max(output.max(), -output.min())
        np.trunc(output, out=output)
        output /= 32768
        outputs[number] = output
    return outputs


class _Framed:
    """A signal as frames, and the array that its changed frames are added to."""

    def __init__(self, samples: NDArray[np.float32], rate: int, exponent: float) -> None:
        self.length = int(rate * _WINDOW)
        self.shift = int(rate * _SHIFT)
        hann = np.hanning(self.length)
        self.window = np.sqrt(hann / (hann.sum() / self.shift))[:, None]
        views = sliding_window_view(samples.astype(np.float32) + _EPS, self.length)
        self.frames = views[:: self.shift]
        self.exponent = exponent
        self.apart = -(-self.length // self.shift)  # frames so far apart do not overlap
        self.output = np.zeros(max(len(samples), (len(self.frames) + self.apart) * self.shift))

    def add(self, frames: NDArray[np.float64], start: int) -> None:
        """Overlap-add changed frames, (n, F), from frame `start` on; frames that do not overlap are added at once."""
        frames *= self.window
        for first in range(min(self.apart, frames.shape[1])):
            some = frames.T[first :: self.apart]
            begin = (start + first) * self.shift
            period = self.apart * self.shift
            room = self.output[begin : begin + len(some) * period].reshape(len(some), period)
            room[:, : self.length] += some


_Piece = tuple[_Framed, int, int]


def _blocks(signals: Iterable[_Framed]) -> Iterator[list[_Piece]]:
    """Gather the frames of signals in blocks that are processed together; each block has frames of one length."""
    block: list[_Piece] = []
    size = 0
    for signal in signals:
        for start, stop in chunk_bounds(len(signal.frames), _FRAMES):
            if block and (size >= _FRAMES or block[0][0].length != signal.length):
                yield block
                block = []
                size = 0
            block.append((signal, start, stop))
            size += stop - start
    if block:
        yield block


def _turn_block(
    block: Sequence[_Piece], room: NDArray[np.float64], back: bool
) -> NDArray[np.float64]:
    """Change the frames of a block, in `room` if it is large enough; return the room for the next block.

    Fresh memory for each block would cost a fifth of the time.
    """
    counts = [stop - start for _, start, stop in block]
    columns = np.cumsum([0, *counts])
    alone = columns[-1] == 1  # `burg` needs two frames
    length = block[0][0].length
    n_frames = columns[-1] + alone
    if room.size < length * n_frames:
        room = np.empty(length * n_frames)
    frames = room[: length * n_frames].reshape(length, n_frames)
    frames[:, columns[-1] :] = 0
    for (signal, start, stop), column in zip(block, columns, strict=False):
        np.multiply(
            signal.frames[start:stop].T,
            signal.window,
            out=frames[:, column : column + stop - start],
        )
    exponents = np.repeat([signal.exponent for signal, _, _ in block], counts)
    exponents = np.pad(exponents, (0, int(alone)))
    frames += _EPS
    polynomials = burg(frames, ORDER)
    frames -= _EPS  # the constant serves only the prediction
    p, q = quadratic_factors(polynomials)
    poles = product(*_raised(p, q, exponents, back))
    pole_zero(polynomials, poles, frames)
    for (signal, start, stop), column in zip(block, columns, strict=False):
        signal.add(frames[:, column : column + stop - start], start)
    return room


def _raised(
    p: NDArray[np.float64], q: NDArray[np.float64], exponents: NDArray[np.float64], back: bool
) -> Factors:
    """Return quadratic factors, (m, F) each, with the angles of complex poles raised to the powers (F,).

    See `turn_poles`.
    """
    complex_pair = q > p * p / 4
    angle = np.arctan2(np.sqrt(np.maximum(q - p * p / 4, 0)), -p / 2) ** exponents
    if back:
        q = np.where(complex_pair & (angle > np.pi), _BEYOND**2 * q, q)
        angle = np.minimum(angle, np.pi)
    return np.where(complex_pair, -2 * np.sqrt(np.maximum(q, 0)) * np.cos(angle), p), q
