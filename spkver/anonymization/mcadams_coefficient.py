"""The McAdams coefficient: the poles of linear prediction are turned, formants move and pitch stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import chunk_bounds
from spkver.anonymization.prediction import burg, pole_zero
from spkver.anonymization.roots import Factors, product, quadratic_factors

ORDER = 20
_WINDOW, _SHIFT = 0.020, 0.010  # s
_EPS = np.finfo(np.float32).eps  # added to samples and to windowed frames, so that silence can be predicted
_FULL_SCALE = 32766
# Share of the radius of a pole that is left to it where turning back takes it beyond pi. Of 0, .3, .5, .6 and .8 it
# gave the spectra nearest to the original ones on both backgrounds of the README, over alpha of .5 to .9.
_BEYOND = 0.5
_FRAMES = 1024  # at once: many for each array operation, few enough for the cache


def mcadams(
    samples: NDArray[np.float32],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    alpha: tuple[float, float] = (0.5, 0.9),
) -> NDArray[np.float64]:
    """Anonymise by a McAdams coefficient drawn from ``U(alpha)``: baseline B2 of VoicePrivacy 2020 to 2026.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        With full scale 1.
    rate : int [Hz]
    utterance : str
        Its id, for errors.
    rng : Generator
        The coefficient is its first draw.
    alpha : (low, high)

    Returns
    -------
    ndarray of shape (n,)
        Peak-normalised multiples of 1/32768; silence for silence.

    Raises
    ------
    DataError
        If there is not one complete frame of 20 ms, or the rate is too low for the order.

    References
    ----------
    J. Patino, N. Tomashenko, M. Todisco, A. Nautsch, N. Evans, Speaker anonymisation using the McAdams coefficient,
    Interspeech 2021, arXiv:2011.01130.
    """
    output = mcadams_batch([samples], [rate], [rng], alpha=alpha)[0]
    if isinstance(output, DataError):
        raise DataError(f"utterance {utterance!r}: {output.text}", remedy=output.remedy)
    return output


def mcadams_batch(
    signals: Sequence[NDArray[np.float32]],
    rates: Sequence[int],
    generators: Sequence[np.random.Generator],
    *,
    alpha: tuple[float, float] = (0.5, 0.9),
) -> list[NDArray[np.float64] | DataError]:
    """Do what `mcadams` does, to the bit, for several signals together, which is faster where they are short.

    Returns
    -------
    list
        For each signal its output, or why there is none.
    """
    coefficients = [float(rng.uniform(*alpha)) for rng in generators]
    return turn_poles(signals, rates, coefficients)


def turn_poles(
    signals: Sequence[NDArray[np.float32]], rates: Sequence[int], coefficients: Sequence[float]
) -> list[NDArray[np.float64] | DataError]:
    """Raise the angles of the poles of linear prediction to a power, for each signal its own; see `mcadams`.

    Examples
    --------
    >>> turn_poles([np.zeros(320, np.float32)], [16000], [0.8])[0].any()
    np.False_
    """
    return _turn_signals(signals, rates, coefficients, _raised)


def turn_poles_back(
    signals: Sequence[NDArray[np.float32]], rates: Sequence[int], coefficients: Sequence[float]
) -> list[NDArray[np.float64] | DataError]:
    """Undo what `turn_poles` did with the same coefficients, as far as what came out tells.

    A pole at the angle w, which came from w**(1 / alpha), is turned there. No pole of speech came from beyond pi: one
    that would go there is an artefact of the prediction (speech that was turned by alpha < 1 has no resonances above
    pi**alpha, and the prediction puts poles there all the same). It goes to pi, with half its radius: turned to where
    its angle folds back to, or left with its radius, it would ring louder than the speech.

    Parameters
    ----------
    signals : sequence of ndarray of shape (n,)
        Anonymised, with full scale 1.
    rates : sequence of int [Hz]
    coefficients : sequence of float
        The alpha of each.

    Returns
    -------
    list
        For each signal its output, or why there is none; as `turn_poles`.

    Examples
    --------
    >>> turn_poles_back([np.zeros(320, np.float32)], [16000], [0.8])[0].any()
    np.False_
    """
    exponents = [1 / coefficient for coefficient in coefficients]
    return _turn_signals(signals, rates, exponents, _raised_within_pi)


_Turned = Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], Factors]


def _turn_signals(
    signals: Sequence[NDArray[np.float32]], rates: Sequence[int], coefficients: Sequence[float], turned: _Turned
) -> list[NDArray[np.float64] | DataError]:
    """Turn the poles of each frame of signals by a function of their factors p, q, and exponents."""
    outputs: list[NDArray[np.float64] | DataError] = []
    framed: dict[int, _Framed] = {}
    for number, (samples, rate, coefficient) in enumerate(zip(signals, rates, coefficients, strict=True)):
        length = int(rate * _WINDOW)
        if length <= ORDER or len(samples) < length:
            outputs.append(_too_short(len(samples), rate))
            continue
        outputs.append(np.zeros(len(samples)))
        if samples.any():
            framed[number] = _Framed(samples, rate, coefficient)
    room = np.empty(0)
    for block in _blocks(framed.values()):
        room = _turn_block(block, room, turned)
    for number, signal in framed.items():
        output = signal.output[: len(signals[number])]
        output *= _FULL_SCALE / max(output.max(), -output.min())
        np.trunc(output, out=output)
        output /= 32768
        outputs[number] = output
    return outputs


class _Framed:
    """A signal as frames, and the array that its turned frames are added to."""

    def __init__(self, samples: NDArray[np.float32], rate: int, coefficient: float) -> None:
        self.length, self.shift = int(rate * _WINDOW), int(rate * _SHIFT)
        hann = np.hanning(self.length)
        self.window = np.sqrt(hann / (hann.sum() / self.shift))[:, None]
        self.frames = sliding_window_view(samples.astype(np.float32) + _EPS, self.length)[:: self.shift]
        self.coefficient = coefficient
        self.apart = -(-self.length // self.shift)  # frames so far apart do not overlap
        self.output = np.zeros(max(len(samples), (len(self.frames) + self.apart) * self.shift))

    def read(self, start: int, stop: int, out: NDArray[np.float64]) -> None:
        """Windowed frames, (n, stop - start)."""
        np.multiply(self.frames[start:stop].T, self.window, out=out)

    def add(self, frames: NDArray[np.float64], start: int) -> None:
        """Overlap-add turned frames, (n, F), from frame `start` on; every so many at once that do not overlap."""
        frames *= self.window
        for first in range(min(self.apart, frames.shape[1])):
            some = frames.T[first :: self.apart]
            begin, period = (start + first) * self.shift, self.apart * self.shift
            room = self.output[begin : begin + len(some) * period].reshape(len(some), period)
            room[:, : self.length] += some


_Piece = tuple[_Framed, int, int]


def _blocks(signals: Iterable[_Framed]) -> Iterator[list[_Piece]]:
    """Gather the frames of signals in blocks that are worked on together; each block has frames of one length."""
    block: list[_Piece] = []
    size = 0
    for signal in signals:
        for start, stop in chunk_bounds(len(signal.frames), _FRAMES):
            if block and (size >= _FRAMES // 2 or block[0][0].length != signal.length):
                yield block
                block, size = [], 0
            block.append((signal, start, stop))
            size += stop - start
    if block:
        yield block


def _turn_block(block: Sequence[_Piece], room: NDArray[np.float64], turned: _Turned) -> NDArray[np.float64]:
    """Turn the frames of a block, in `room` where it is large enough; return the room for the next block.

    Fresh memory for each block would cost a fifth of the time.
    """
    counts = [stop - start for _, start, stop in block]
    places = np.cumsum([0, *counts])
    alone = places[-1] == 1  # see `prediction`
    length, n_frames = block[0][0].length, places[-1] + alone
    if room.size < length * n_frames:
        room = np.empty(length * n_frames)
    frames = room[: length * n_frames].reshape(length, n_frames)
    frames[:, places[-1] :] = 0
    for (signal, start, stop), column in zip(block, places, strict=False):
        signal.read(start, stop, frames[:, column : column + stop - start])
    exponents = np.repeat([signal.coefficient for signal, _, _ in block], counts)
    exponents = np.pad(exponents, (0, int(alone)), constant_values=1)
    _turn_frames(frames, exponents, turned)
    for (signal, start, stop), column in zip(block, places, strict=False):
        signal.add(frames[:, column : column + stop - start], start)
    return room


def _too_short(n_samples: int, rate: int) -> DataError:
    return DataError(
        f"{n_samples} samples at {rate} Hz are too few for linear prediction of order {ORDER} in frames of "
        f"{_WINDOW * 1000:.0f} ms",
        remedy="leave the utterance out",
    )


def _turn_frames(frames: NDArray[np.float64], exponents: NDArray[np.float64], turned: _Turned) -> None:
    """Raise the angles of the poles of windowed frames, (n, F), to powers, (F,), in place."""
    frames += _EPS
    polynomials = burg(frames, ORDER)
    frames -= _EPS  # only the prediction knows the constant
    pole_zero(polynomials, product(*turned(*quadratic_factors(polynomials), exponents)), frames)


def _raised(p: NDArray[np.float64], q: NDArray[np.float64], exponents: NDArray[np.float64]) -> Factors:
    """Factors, (m, F) each, with the angles of complex poles raised to powers, (F,)."""
    complex_pair = q > p * p / 4
    angle = np.arctan2(np.sqrt(np.maximum(q - p * p / 4, 0)), -p / 2)
    return np.where(complex_pair, -2 * np.sqrt(np.maximum(q, 0)) * np.cos(angle**exponents), p), q


def _raised_within_pi(p: NDArray[np.float64], q: NDArray[np.float64], exponents: NDArray[np.float64]) -> Factors:
    """The same; what would go beyond pi goes to pi with half its radius, see `turn_poles_back`."""
    complex_pair = q > p * p / 4
    angle = np.arctan2(np.sqrt(np.maximum(q - p * p / 4, 0)), -p / 2) ** exponents
    q = np.where(complex_pair & (angle > np.pi), _BEYOND**2 * q, q)
    return np.where(complex_pair, -2 * np.sqrt(np.maximum(q, 0)) * np.cos(np.minimum(angle, np.pi)), p), q
