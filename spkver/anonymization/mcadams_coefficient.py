"""The McAdams coefficient: the poles of linear prediction are rotated, formants move and pitch stays.

**Linear prediction of many frames at once: time along the first axis, frames along the second.**

All operations are element by element over the frames, so a frame gives the same bits whatever the other
frames are, as long as there are any: sums over one frame alone would run along time, in another order.

**Roots of many real polynomials at once, as quadratic factors.**

A factor z**2 + p z + q holds a pair of conjugate roots or two real ones, so all arithmetic is real and no root has to
be classified on the way. All factors of a polynomial are improved at the same time: the remainder of the polynomial
divided by a factor, over the product of the other factors, both modulo this factor, is its correction (the iteration
of Durand and Kerner in the ring of polynomials modulo the factor; it converges quadratically). What does not converge
goes to the eigenvalues of the companion matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import chunk_bounds, one_blas_thread

# Frames that are worked on together: their samples should stay in the processor's second cache.
_BURG_FRAMES, _FILTER_FRAMES = 256, 512
_FILTER_SAMPLES = 32
_TINY = np.finfo(np.float64).tiny
# Share of a frame's energy that is not predicted, below which correlations are not exact enough.
_PREDICTABLE = 1e-5


def burg(frames: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Compute linear predictors by Burg's method [1]_.

    The sums over the prediction errors are those over the frame's correlations, minus some samples of its ends, and
    each order follows from the one before [2]_: a fifth of the work. Frames that are predicted so well that little is
    left of large sums (tones, digital silence) go through the lattice.

    Parameters
    ----------
    frames : ndarray of shape (n, F)
        Samples of F frames, n > order, F > 1.
    order : int

    Returns
    -------
    ndarray of shape (order + 1, F)
        A(z) of each frame, the first is 1.

    References
    ----------
    .. [1] J. P. Burg, Maximum entropy spectral analysis, PhD thesis, Stanford, 1975.
    .. [2] K. Vos, A fast implementation of Burg's method, 2013.
    """
    coefficients = np.zeros((order + 1, frames.shape[1]))
    left = np.empty(frames.shape[1])
    for some in _pieces(frames.shape[1], _BURG_FRAMES):
        left[some] = _by_correlations(frames[:, some], coefficients[:, some])
    bad = np.flatnonzero(~(left > _PREDICTABLE))
    if len(bad):
        twice = np.resize(bad, max(2, len(bad)))  # one alone is repeated
        again = np.empty((order + 1, len(twice)))
        for some in _pieces(len(twice), _BURG_FRAMES):
            again[:, some] = _by_lattice(frames[:, twice[some]], order)
        coefficients[:, bad] = again[:, : len(bad)]
    return coefficients


def _pieces(n_frames: int, size: int) -> list[slice]:
    """Slices of at most `size` + 1 frames, none of a single one."""
    if n_frames < 2:
        raise ValueError("one frame alone: repeat it, so that its sums are taken as those of others are")
    starts = list(range(0, n_frames - 1, size))
    return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], n_frames], strict=True)]


def _by_correlations(frames: NDArray[np.float64], coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Write the coefficients, (order + 1, F), of zeros; give the share of the energy that is not predicted, (F,).

    With u the m + 1 samples up to time t, the newest first, R the sum over t of u u' and of u u' turned in both
    directions, and a the polynomial of order m - 1 with a zero behind, `image` is R a: the energy of both prediction
    errors is a . image, and twice their product is a . image turned. `row` is the last row of R.
    """
    n, order = len(frames), len(coefficients) - 1
    correlation = np.empty_like(coefficients)
    for lag, of_lag in enumerate(correlation):
        np.einsum("tf,tf->f", frames[: n - lag], frames[lag:], out=of_lag)
    correlation *= 2
    first, last = frames[: order + 1], frames[: n - order - 2 : -1]
    image, row = np.zeros((order + 2, frames.shape[1])), np.zeros_like(coefficients)
    coefficients[0] = 1
    image[0] = correlation[0] - first[0] ** 2 - last[0] ** 2
    image[1] = row[0] = correlation[1]
    energy = image[0].copy()
    with np.errstate(all="ignore"):  # what overflows goes through the lattice
        for m in range(1, order + 1):
            a = coefficients[:m]
            power = np.einsum("kf,kf->f", a, image[:m])
            reflection = -np.einsum("kf,kf->f", a, image[m:0:-1]) / power
            coefficients[1 : m + 1] += reflection * coefficients[m - 1 :: -1]
            if m == order:
                break
            # the next sums are shorter by one sample at each end, and R is larger by one
            row[1 : m + 1] = row[:m] - first[:m] * first[m] - last[:m] * last[m]
            row[0] = correlation[m + 1]
            a, newest, oldest = coefficients[: m + 1], first[m::-1], last[m::-1]
            image[: m + 1] += reflection * image[m::-1]
            image[: m + 1] -= newest * np.einsum("kf,kf->f", newest, a)
            image[: m + 1] -= oldest * np.einsum("kf,kf->f", oldest, a)
            image[m + 1] = np.einsum("kf,kf->f", row[: m + 1], a)
        left: NDArray[np.float64] = power * (1 - reflection * reflection) / energy
    return left


def _by_lattice(frames: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Coefficients, (order + 1, F), from the forward and backward prediction errors themselves."""
    coefficients = np.zeros((order + 1, frames.shape[1]))
    coefficients[0] = 1
    forward = np.ascontiguousarray(frames[1:])
    backward = np.ascontiguousarray(frames[:-1])
    for stage in range(1, order + 1):
        power = np.einsum("tf,tf->f", forward, forward) + np.einsum("tf,tf->f", backward, backward)
        reflection = -2 * np.einsum("tf,tf->f", forward, backward) / np.maximum(power, _TINY)
        coefficients[1 : stage + 1] += reflection * coefficients[stage - 1 :: -1]
        forward, backward = (forward + reflection * backward)[1:], (backward + reflection * forward)[:-1]
    return coefficients


def pole_zero(zeros: NDArray[np.float64], poles: NDArray[np.float64], frames: NDArray[np.float64]) -> None:
    """Filter each frame by B(z) / A(z), in place, from a zero initial state.

    Parameters
    ----------
    zeros, poles : ndarray of shape (order + 1, F)
        B(z) and A(z) of each frame; the first of A is 1.
    frames : ndarray of shape (n, F)
    """
    order, n = len(zeros) - 1, len(frames)
    for some in _pieces(frames.shape[1], _FILTER_FRAMES):
        # one sum for each sample: inputs and outputs stand by turns in `history`, some samples at a time
        weights = np.empty((2 * order + 1, some.stop - some.start))
        weights[::2], weights[1::2] = zeros[::-1, some], -poles[:0:-1, some]
        history = np.zeros((2 * (order + _FILTER_SAMPLES), some.stop - some.start))
        for start, stop in chunk_bounds(n, _FILTER_SAMPLES):
            end = 2 * (order + stop - start)
            history[2 * order : end : 2] = frames[start:stop, some]
            for row in range(0, 2 * (stop - start), 2):
                window = history[row : row + 2 * order + 1]
                np.einsum("kf,kf->f", weights, window, out=history[row + 2 * order + 1])
            frames[start:stop, some] = history[2 * order + 1 : end : 2]
            history[: 2 * order] = history[end - 2 * order : end].copy()


Factors = tuple[NDArray[np.float64], NDArray[np.float64]]

_ITERATIONS = 24
# Corrections at which to stop: the error behind is about the square of this.
_CORRECTION = 1e-6
# Starts are rough: longer steps throw roots far out, from where they come back slowly.
_LONGEST_STEP = 0.25
# Relative error of the coefficients that the factors multiply to.
_PRODUCT_ERROR = 1e-9
_START_RADIUS = 0.95
# Finished polynomials are improved further for nothing until they are so many that it pays to move the others.
_WORTH_MOVING = 0.8
_GRID = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 24))  # denser towards -1 and 1, where real roots gather


def quadratic_factors(polynomials: NDArray[np.float64]) -> Factors:
    """Factor real polynomials of even degree, made for those whose roots lie in or near the unit circle.

    Parameters
    ----------
    polynomials : ndarray of shape (2 m + 1, F)
        Coefficients of F polynomials by falling powers; the first is 1.

    Returns
    -------
    p, q : ndarray of shape (m, F)
        Polynomial f is the product over i of z**2 + p[i, f] z + q[i, f]. Its coefficients agree to 1e-9, relative to
        the largest; for polynomials that the iteration cannot do, to what LAPACK reaches.

    References
    ----------
    I. O. Kerner, Ein Gesamtschrittverfahren zur Berechnung der Nullstellen von Polynomen, Numerische Mathematik 8,
    1966, pp. 290-294 (for linear factors).
    """
    if len(polynomials) % 2 == 0 or not np.all(polynomials[0] == 1):
        raise ValueError("expected polynomials of even degree whose first coefficient is 1")
    p, q = _iterate(polynomials)
    with np.errstate(all="ignore"):
        error = np.abs(product(p, q) - polynomials).max(axis=0)
        bad = np.flatnonzero(~(error <= _PRODUCT_ERROR * np.abs(polynomials).max(axis=0)))
    if len(bad):
        p[:, bad], q[:, bad] = factors_by_eigenvalues(polynomials[:, bad])
    return p, q


def _iterate(polynomials: NDArray[np.float64]) -> Factors:
    """Improve factors until their corrections are small; NaN where they do not become so.

    Each polynomial stops at its own time, so that its factors do not depend on the polynomials beside it.
    """
    found_p, found_q = (np.full((len(polynomials) // 2, polynomials.shape[1]), np.nan) for _ in "pq")
    p, q = _start(polynomials)
    places = np.arange(polynomials.shape[1])
    waiting = np.ones(len(places), bool)
    for _ in range(_ITERATIONS):
        with np.errstate(all="ignore"):  # equal factors divide by zero; the step is then a short one
            size = _improve(polynomials, p, q)
        done = np.flatnonzero(waiting & (size < _CORRECTION))
        found_p[:, places[done]], found_q[:, places[done]] = p.take(done, axis=1), q.take(done, axis=1)
        waiting[done] = False
        left = np.flatnonzero(waiting)
        if not len(left):
            break
        if len(left) < _WORTH_MOVING * len(waiting):
            polynomials, p, q = (values.take(left, axis=1) for values in (polynomials, p, q))
            places, waiting = places[left], waiting[left]
    return found_p, found_q


def product(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply quadratic factors, (m, F) each, to the coefficients of polynomials, (2 m + 1, F)."""
    coefficients = np.zeros((2 * len(p) + 1, p.shape[1]))
    coefficients[0] = 1
    for number, (linear, constant) in enumerate(zip(p, q, strict=True)):
        so_far = coefficients[: 2 * number + 1].copy()
        coefficients[1 : 2 * number + 2] += linear * so_far
        coefficients[2 : 2 * number + 3] += constant * so_far
    return coefficients


@one_blas_thread()
def factors_by_eigenvalues(polynomials: NDArray[np.float64]) -> Factors:
    """Factor polynomials as `quadratic_factors` does, by the eigenvalues of companion matrices; slow and reliable."""
    degree, n_frames = len(polynomials) - 1, polynomials.shape[1]
    companion = np.zeros((n_frames, degree, degree))
    companion[:, 0] = -polynomials[1:].T
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1
    p, q = (np.empty((degree // 2, n_frames)) for _ in "pq")
    for frame, roots in enumerate(np.linalg.eigvals(companion)):
        real, upper = np.sort(roots[roots.imag == 0].real), roots[roots.imag > 0]
        p[:, frame] = np.concatenate([-2 * upper.real, -(real[::2] + real[1::2])])
        q[:, frame] = np.concatenate([np.abs(upper) ** 2, real[::2] * real[1::2]])
    return p, q


def _start(polynomials: NDArray[np.float64]) -> Factors:
    """First factors: a pair of real roots for two sign changes on the real axis, the others around a circle.

    Without the right number of real roots the iteration has to pass through a double root, and most often fails.
    """
    n_factors, n_frames = len(polynomials) // 2, polynomials.shape[1]
    values = np.ones((len(_GRID), n_frames))
    for coefficient in polynomials[1:]:
        values *= _GRID[:, None]
        values += coefficient
    changes = np.cumsum((values[1:] < 0) != (values[:-1] < 0), axis=0)
    n_real = np.minimum(changes[-1] // 2, n_factors)  # factors with two real roots
    p_starts, q_starts = (np.zeros((n_factors + 1, n_factors)) for _ in "pq")
    for number in range(n_factors + 1):
        angles = (np.arange(n_factors - number) + 0.5) * np.pi / max(1, n_factors - number)
        p_starts[number, number:] = -2 * _START_RADIUS * np.cos(angles)
        q_starts[number, number:] = _START_RADIUS**2
    p, q = p_starts[n_real].T.copy(), q_starts[n_real].T.copy()
    for number in range(n_real.max(initial=0)):
        some = np.flatnonzero(n_real > number)
        first, second = (_crossing(values, changes, some, 2 * number + change) for change in (1, 2))
        p[number, some], q[number, some] = -(first + second), first * second
    return p, q


def _crossing(
    values: NDArray[np.float64], changes: NDArray[np.int64], frames: NDArray[np.int64], number: int
) -> NDArray[np.float64]:
    """Zero of the secant where the sign changes for the nth time."""
    before = (changes[:, frames] == number).argmax(axis=0)
    low, high = values[before, frames], values[before + 1, frames]
    crossing: NDArray[np.float64] = _GRID[before] - low * (_GRID[before + 1] - _GRID[before]) / (high - low)
    return crossing


def _improve(polynomials: NDArray[np.float64], p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Improve all factors in place, and give the size of the largest correction of each polynomial, (F,)."""
    # remainder v z + u: the last steps of the synthetic division
    v, before = polynomials[1] - p, np.ones(p.shape)
    for coefficient in polynomials[2:-1]:
        v, before = coefficient - q * before - p * v, v
    u = polynomials[-1] - q * before
    # product t z + s of the other factors
    n_factors = len(p)
    twice_p, twice_q = np.concatenate([p, p]), np.concatenate([q, q])
    s, t = twice_q[1 : n_factors + 1] - q, twice_p[1 : n_factors + 1] - p
    for shift in range(2, n_factors):
        c, d = twice_q[shift : shift + n_factors] - q, twice_p[shift : shift + n_factors] - p
        square = t * d  # of z squared, which is -p z - q
        s, t = s * c - q * square, s * d + t * c - p * square
    # (v z + u) / (t z + s)
    st = s - p * t
    norm = s * st + q * t * t
    step_p, step_q = (v * s - u * t) / norm, (u * st + q * v * t) / norm
    size = np.maximum(np.abs(step_p), np.abs(step_q))
    lost = ~np.isfinite(size)
    if lost.any():
        step_p[lost], step_q[lost], size[lost] = 0.01, 0.0, 0.01
    shorter = np.minimum(1.0, _LONGEST_STEP / np.maximum(size, _LONGEST_STEP))
    p += shorter * step_p
    q += shorter * step_q
    largest: NDArray[np.float64] = size.max(axis=0)
    return largest


ORDER = 20
_WINDOW, _SHIFT = 0.020, 0.010  # s
_EPS = np.finfo(np.float32).eps  # added to samples and to windowed frames, so that silence can be predicted
_FULL_SCALE = 32766
# Share of the radius of a pole that is left to it where the inverse would take it beyond pi. Of 0, .3, .5, .6 and .8 it
# gave the spectra nearest to the original ones on both backgrounds of the README, over alpha of .5 to .9.
_BEYOND = 0.5
_FRAMES = 1024  # at once: many for each array operation, few enough for the cache


def turn_poles(
    signals: Sequence[NDArray[np.float32]], rates: Sequence[int], coefficients: Sequence[float], *, back: bool = False
) -> list[NDArray[np.float64] | DataError]:
    """Anonymise by McAdams coefficients, for each signal its own: baseline B2 of VoicePrivacy 2020 to 2026.

    The angles of the poles of linear prediction are raised to the power alpha. Outputs are peak-normalised multiples of
    1/32768; silence for silence.

    Several signals together are faster where they are short; each gets the bits that it has alone.

    *Back*, a pole at the angle w is rotated to w**(1 / alpha), where it came from. No pole of speech came from beyond
    pi: one that would go there is an artefact of the prediction (after alpha < 1 speech has no resonances above
    pi**alpha, but the prediction has poles there). It goes to pi, with half its radius: at its folded angle, or with
    its full radius, it would be louder than the speech.

    Parameters
    ----------
    signals : sequence of ndarray of shape (n,)
        With full scale 1.
    rates : sequence of int [Hz]
    coefficients : sequence of float
        The alpha of each.
    back : bool
        Invert the anonymisation with the same coefficients.

    Returns
    -------
    list
        For each signal its output, or a DataError: not one complete frame of 20 ms, or a rate too low for the order.

    References
    ----------
    J. Patino, N. Tomashenko, M. Todisco, A. Nautsch, N. Evans, Speaker anonymisation using the McAdams coefficient,
    Interspeech 2021, arXiv:2011.01130.

    Examples
    --------
    >>> turn_poles([np.zeros(320, np.float32)], [16000], [0.8])[0].any()
    np.False_
    """
    outputs: list[NDArray[np.float64] | DataError] = []
    framed: dict[int, _Framed] = {}
    for number, (samples, rate, coefficient) in enumerate(zip(signals, rates, coefficients, strict=True)):
        length = int(rate * _WINDOW)
        if length <= ORDER or len(samples) < length:
            text = f"{len(samples)} samples at {rate} Hz are too few for linear prediction of order {ORDER} in frames"
            outputs.append(DataError(f"{text} of {_WINDOW * 1000:.0f} ms", remedy="leave the utterance out"))
            continue
        outputs.append(np.zeros(len(samples)))
        if samples.any():
            framed[number] = _Framed(samples, rate, 1 / coefficient if back else coefficient)
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
        self.length, self.shift = int(rate * _WINDOW), int(rate * _SHIFT)
        hann = np.hanning(self.length)
        self.window = np.sqrt(hann / (hann.sum() / self.shift))[:, None]
        self.frames = sliding_window_view(samples.astype(np.float32) + _EPS, self.length)[:: self.shift]
        self.exponent = exponent
        self.apart = -(-self.length // self.shift)  # frames so far apart do not overlap
        self.output = np.zeros(max(len(samples), (len(self.frames) + self.apart) * self.shift))

    def add(self, frames: NDArray[np.float64], start: int) -> None:
        """Overlap-add changed frames, (n, F), from frame `start` on; every so many at once that do not overlap."""
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


def _turn_block(block: Sequence[_Piece], room: NDArray[np.float64], back: bool) -> NDArray[np.float64]:
    """Change the frames of a block, in `room` where it is large enough; return the room for the next block.

    Fresh memory for each block would cost a fifth of the time.
    """
    counts = [stop - start for _, start, stop in block]
    places = np.cumsum([0, *counts])
    alone = places[-1] == 1  # see the module
    length, n_frames = block[0][0].length, places[-1] + alone
    if room.size < length * n_frames:
        room = np.empty(length * n_frames)
    frames = room[: length * n_frames].reshape(length, n_frames)
    frames[:, places[-1] :] = 0
    for (signal, start, stop), column in zip(block, places, strict=False):
        np.multiply(signal.frames[start:stop].T, signal.window, out=frames[:, column : column + stop - start])
    exponents = np.pad(np.repeat([signal.exponent for signal, _, _ in block], counts), (0, int(alone)))
    frames += _EPS
    polynomials = burg(frames, ORDER)
    frames -= _EPS  # only the prediction knows the constant
    pole_zero(polynomials, product(*_raised(*quadratic_factors(polynomials), exponents, back)), frames)
    for (signal, start, stop), column in zip(block, places, strict=False):
        signal.add(frames[:, column : column + stop - start], start)
    return room


def _raised(p: NDArray[np.float64], q: NDArray[np.float64], exponents: NDArray[np.float64], back: bool) -> Factors:
    """Factors, (m, F) each, with the angles of complex poles raised to powers, (F,); see `turn_poles`."""
    complex_pair = q > p * p / 4
    angle = np.arctan2(np.sqrt(np.maximum(q - p * p / 4, 0)), -p / 2) ** exponents
    if back:
        q = np.where(complex_pair & (angle > np.pi), _BEYOND**2 * q, q)
        angle = np.minimum(angle, np.pi)
    return np.where(complex_pair, -2 * np.sqrt(np.maximum(q, 0)) * np.cos(angle), p), q
