"""Linear prediction of many frames against its definition, SciPy's filters and NumPy's roots, one at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lpc_oracle import plain_burg
from scipy.signal import lfilter

from spkver.anonymization.linear_prediction import burg, pole_zero
from spkver.anonymization.polynomials import product, quadratic_factors


def noise(n, n_frames, seed=0):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.standard_normal((n, n_frames)), axis=0) + rng.standard_normal(
        (n, n_frames)
    )


@pytest.mark.parametrize("order", [2, 9, 20])
def test_burg_equals_its_definition(order):
    frames = noise(100, 7)
    for frame, found in enumerate(burg(frames, order).T):
        np.testing.assert_allclose(
            found, plain_burg(frames[:, frame], order), rtol=1e-9, atol=1e-12
        )


def tones(n, level):
    """A tone with some noise, which prediction takes down to about the square of its level."""
    time = np.arange(n)
    return (
        np.sin(0.3 * time)
        + np.sin(1.1 * time)
        + level * np.random.default_rng(1).standard_normal(n)
    )


@pytest.mark.parametrize("level", [1e-1, 1e-2, 5e-3, 1e-3, 1e-5])
def test_burg_equals_its_definition_on_predictable_signals(level):
    frames = np.stack([tones(320, level), tones(320, 1.0), tones(320, level / 2)], axis=1)
    for frame, found in enumerate(burg(frames, 20).T):
        one = plain_burg(frames[:, frame], 20)
        np.testing.assert_allclose(found, one, atol=1e-6 * np.abs(one).max())


def test_pole_zero_filtering_equals_scipy_and_is_invertible():
    frames = noise(90, 5)
    zeros, poles = burg(frames, 12), burg(noise(90, 5, seed=1), 12)
    filtered = frames.copy()
    pole_zero(zeros, poles, filtered)
    for frame, found in enumerate(filtered.T):
        expected = lfilter(zeros[:, frame], poles[:, frame], frames[:, frame])
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    pole_zero(poles, zeros, filtered)
    np.testing.assert_allclose(filtered, frames, rtol=1e-6, atol=1e-7)


def roots_of(p, q):
    """Roots of factors (m,) each, sorted."""
    return np.sort_complex(
        np.concatenate([np.roots([1, one, two]) for one, two in zip(p, q, strict=True)])
    )


pairs = st.tuples(st.floats(0.05, 0.99), st.floats(0.02, np.pi - 0.02)).map(
    lambda polar: (-2 * polar[0] * np.cos(polar[1]), polar[0] ** 2)
)
reals = st.tuples(st.floats(-0.99, 0.99), st.floats(-0.99, 0.99)).map(
    lambda two: (-sum(two), two[0] * two[1])
)


@settings(max_examples=25)
@given(
    factors=st.lists(
        st.lists(st.one_of(pairs, pairs, reals), min_size=10, max_size=10), min_size=1, max_size=5
    )
)
def test_factors_multiply_to_the_polynomial(factors):
    p, q = np.array(factors).transpose(2, 1, 0)
    polynomials = product(p, q)
    found = product(*quadratic_factors(polynomials))
    # the accuracy of LAPACK on clustered roots
    assert np.abs(found - polynomials).max() <= 1e-8 * np.abs(polynomials).max()


def test_separated_roots_are_found():
    rng = np.random.default_rng(3)
    angles = (np.arange(10)[:, None] + rng.uniform(0.2, 0.8, (10, 40))) * np.pi / 10
    radii = rng.uniform(0.7, 0.99, (10, 40))
    p, q = -2 * radii * np.cos(angles), radii**2
    p[0, 20:], q[0, 20:] = -(0.9 - 0.4), 0.9 * -0.4  # two real roots
    found = quadratic_factors(product(p, q))
    for frame in range(40):
        np.testing.assert_allclose(
            roots_of(found[0][:, frame], found[1][:, frame]),
            roots_of(p[:, frame], q[:, frame]),
            atol=1e-9,
        )


@pytest.mark.parametrize(
    "polynomial",
    [
        np.poly(np.full(20, 0.5)),
        np.poly(np.r_[np.full(10, 0.9), np.full(10, -0.9)]),
        np.r_[1.0, np.zeros(20)],
        np.r_[1.0, np.zeros(19), -0.5],
        np.poly(np.linspace(-0.99, 0.99, 20)),
        np.r_[1.0, np.zeros(19), 50.0],
    ],
    ids=[
        "one root twenty times",
        "two roots ten times",
        "all zero",
        "on a circle",
        "all real",
        "far outside",
    ],
)
def test_ill_conditioned_polynomials_use_the_fallback(polynomial):
    found = product(*quadratic_factors(polynomial[:, None]))[:, 0]
    np.testing.assert_allclose(found, polynomial, atol=1e-8 * np.abs(polynomial).max())
