"""Roots of many real polynomials at once, as quadratic factors.

A factor z**2 + p z + q holds a pair of conjugate roots or two real ones, so all arithmetic is real and no root has to
be classified on the way. All factors of a polynomial are improved at the same time: the remainder of the polynomial
divided by a factor, over the product of the other factors, both modulo this factor, is its correction (the iteration of
Durand and Kerner in the ring of polynomials modulo the factor; it converges quadratically). Polynomials that do not
converge are factored by the eigenvalues of their companion matrices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.work import one_blas_thread

Factors = tuple[NDArray[np.float64], NDArray[np.float64]]

_ITERATIONS = 24
# Size of the corrections at which to stop: the remaining error is about its square.
_CORRECTION = 1e-6
# Starting points are rough: longer steps would throw roots far out, from where they return slowly.
_LONGEST_STEP = 0.25
# Relative error of the coefficients of the product of the factors.
_PRODUCT_ERROR = 1e-9
_START_RADIUS = 0.95
# Finished polynomials are iterated further, in vain, until there are so many that copying the others is worthwhile.
_WORTH_MOVING = 0.8
# points denser towards -1 and 1, where real roots gather
_GRID = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 24))


def quadratic_factors(polynomials: NDArray[np.float64]) -> Factors:
    """Factor real polynomials of even degree with roots inside or near the unit circle.

    Parameters
    ----------
    polynomials : ndarray of shape (2 m + 1, F)
        Coefficients of F polynomials in descending powers; the first is 1.

    Returns
    -------
    p, q : ndarray of shape (m, F)
        Polynomial f is the product over i of z**2 + p[i, f] z + q[i, f]. Its coefficients agree to 1e-9, relative to
        the largest; if the iteration fails, to the precision of LAPACK.

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


def product(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply out quadratic factors, p and q of shape (m, F), into coefficients of polynomials (2 m + 1, F)."""
    coefficients = np.zeros((2 * len(p) + 1, p.shape[1]))
    coefficients[0] = 1
    for number, (linear, constant) in enumerate(zip(p, q, strict=True)):
        so_far = coefficients[: 2 * number + 1].copy()
        coefficients[1 : 2 * number + 2] += linear * so_far
        coefficients[2 : 2 * number + 3] += constant * so_far
    return coefficients


@one_blas_thread()
def factors_by_eigenvalues(polynomials: NDArray[np.float64]) -> Factors:
    """Factor polynomials as `quadratic_factors` does, by the eigenvalues of companion matrices; slow but reliable."""
    degree = len(polynomials) - 1
    n_frames = polynomials.shape[1]
    companion = np.zeros((n_frames, degree, degree))
    companion[:, 0] = -polynomials[1:].T
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1
    p = np.empty((degree // 2, n_frames))
    q = np.empty_like(p)
    for frame, roots in enumerate(np.linalg.eigvals(companion)):
        real = np.sort(roots[roots.imag == 0].real)
        upper = roots[roots.imag > 0]
        p[:, frame] = np.concatenate([-2 * upper.real, -(real[::2] + real[1::2])])
        q[:, frame] = np.concatenate([np.abs(upper) ** 2, real[::2] * real[1::2]])
    return p, q


def _iterate(polynomials: NDArray[np.float64]) -> Factors:
    """Improve factors until their corrections are small; NaN if they do not become small.

    Each polynomial stops separately, so that its factors do not depend on the other polynomials.
    """
    p, q = _start(polynomials)
    final_p = np.full(p.shape, np.nan)
    final_q = np.full(q.shape, np.nan)
    columns = np.arange(p.shape[1])
    waiting = np.ones(len(columns), bool)
    for _ in range(_ITERATIONS):
        # equal factors divide by zero; a short step is then taken
        with np.errstate(all="ignore"):
            size = _improve(polynomials, p, q)
        done = np.flatnonzero(waiting & (size < _CORRECTION))
        final_p[:, columns[done]] = p.take(done, axis=1)
        final_q[:, columns[done]] = q.take(done, axis=1)
        waiting[done] = False
        rest = np.flatnonzero(waiting)
        if not len(rest):
            break
        if len(rest) < _WORTH_MOVING * len(waiting):
            polynomials = polynomials.take(rest, axis=1)
            p = p.take(rest, axis=1)
            q = q.take(rest, axis=1)
            columns = columns[rest]
            waiting = waiting[rest]
    return final_p, final_q


def _start(polynomials: NDArray[np.float64]) -> Factors:
    """Return first factors: a pair of real roots for two sign changes on the real axis, the others around a circle.

    With a wrong number of real roots the iteration must pass through a double root, and usually fails.
    """
    n_factors = len(polynomials) // 2
    n_frames = polynomials.shape[1]
    values = np.ones((len(_GRID), n_frames))
    for coefficient in polynomials[1:]:
        values *= _GRID[:, None]
        values += coefficient
    changes = np.cumsum((values[1:] < 0) != (values[:-1] < 0), axis=0)
    n_real = np.minimum(changes[-1] // 2, n_factors)  # factors with two real roots
    p_starts = np.zeros((n_factors + 1, n_factors))
    q_starts = np.zeros_like(p_starts)
    for number in range(n_factors + 1):
        angles = (np.arange(n_factors - number) + 0.5) * np.pi / max(1, n_factors - number)
        p_starts[number, number:] = -2 * _START_RADIUS * np.cos(angles)
        q_starts[number, number:] = _START_RADIUS**2
    p = p_starts[n_real].T.copy()
    q = q_starts[n_real].T.copy()
    for number in range(n_real.max(initial=0)):
        some = np.flatnonzero(n_real > number)
        first = _crossing(values, changes, some, 2 * number + 1)
        second = _crossing(values, changes, some, 2 * number + 2)
        p[number, some] = -(first + second)
        q[number, some] = first * second
    return p, q


def _crossing(
    values: NDArray[np.float64], changes: NDArray[np.int64], frames: NDArray[np.int64], number: int
) -> NDArray[np.float64]:
    """Return the zero of the secant where the sign changes for the nth time."""
    before = (changes[:, frames] == number).argmax(axis=0)
    low = values[before, frames]
    high = values[before + 1, frames]
    return np.asarray(_GRID[before] - low * (_GRID[before + 1] - _GRID[before]) / (high - low))


def _improve(
    polynomials: NDArray[np.float64], p: NDArray[np.float64], q: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Improve all factors in place, and return the size of the largest correction of each polynomial, (F,)."""
    # remainder v z + u: the last steps of the synthetic division
    v = polynomials[1] - p
    before = np.ones(p.shape)
    for coefficient in polynomials[2:-1]:
        following = coefficient - q * before - p * v
        before = v
        v = following
    u = polynomials[-1] - q * before
    # product t z + s of the other factors
    n_factors = len(p)
    twice_p = np.concatenate([p, p])
    twice_q = np.concatenate([q, q])
    s = twice_q[1 : n_factors + 1] - q
    t = twice_p[1 : n_factors + 1] - p
    for shift in range(2, n_factors):
        c = twice_q[shift : shift + n_factors] - q
        d = twice_p[shift : shift + n_factors] - p
        square = t * d  # from z squared, which is -p z - q
        next_s = s * c - q * square
        t = s * d + t * c - p * square
        s = next_s
    # (v z + u) / (t z + s)
    st = s - p * t
    norm = s * st + q * t * t
    step_p = (v * s - u * t) / norm
    step_q = (u * st + q * v * t) / norm
    size = np.maximum(np.abs(step_p), np.abs(step_q))
    lost = ~np.isfinite(size)
    if lost.any():
        step_p[lost] = 0.01
        step_q[lost] = 0.0
        size[lost] = 0.01
    shorter = np.minimum(1.0, _LONGEST_STEP / np.maximum(size, _LONGEST_STEP))
    p += shorter * step_p
    q += shorter * step_q
    return np.asarray(size.max(axis=0))
