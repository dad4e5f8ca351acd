"""Linear prediction of many frames against librosa's, SciPy's filters and NumPy's roots, one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lpc_oracle import plain_burg
from scipy.signal import lfilter

from spkver.anonymization import prediction, roots
from spkver.anonymization.prediction import all_pole, burg
from spkver.anonymization.roots import factors_by_eigenvalues, product, quadratic_factors


def noise(n: int, n_frames: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.standard_normal((n, n_frames)), axis=0) + rng.standard_normal((n, n_frames))


@pytest.mark.parametrize("order", [2, 9, 20])
def test_burg_is_its_definition(order):
    frames = noise(100, 7)
    coefficients, residual = burg(frames, order)
    for frame, found in enumerate(coefficients.T):
        one = plain_burg(frames[:, frame], order)
        np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(residual[:, frame], lfilter(one, [1], frames[:, frame]), rtol=1e-8, atol=1e-8)


@pytest.mark.slow  # it compiles
def test_burg_is_that_of_librosa():
    import librosa

    frames = noise(320, 7)
    np.testing.assert_allclose(burg(frames, 20)[0], librosa.lpc(frames, order=20, axis=0), rtol=1e-8, atol=1e-11)


def test_all_pole_is_that_of_scipy_and_undoes_the_residual():
    frames = noise(90, 5)
    coefficients, residual = burg(frames, 12)
    np.testing.assert_allclose(all_pole(coefficients, residual), frames, rtol=1e-6, atol=1e-8)
    other = burg(noise(90, 5, seed=1), 12)[0]
    for frame, found in enumerate(all_pole(other, residual).T):
        np.testing.assert_allclose(found, lfilter([1], other[:, frame], residual[:, frame]), rtol=1e-7, atol=1e-7)


def test_pieces_give_the_same_bits(monkeypatch):
    frames = noise(60, 11)
    expected = burg(frames, 8)
    filtered = all_pole(*expected)
    monkeypatch.setattr(prediction, "_BURG_FRAMES", 5)  # the last of 11 frames would be alone
    monkeypatch.setattr(prediction, "_POLE_FRAMES", 2)
    for one, other in zip(burg(frames, 8), expected, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(all_pole(*expected), filtered)


def roots_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Roots of factors (m,) each, sorted."""
    return np.sort_complex(np.concatenate([np.roots([1, one, two]) for one, two in zip(p, q, strict=True)]))


pairs = st.tuples(st.floats(0.05, 0.99), st.floats(0.02, np.pi - 0.02)).map(
    lambda polar: (-2 * polar[0] * np.cos(polar[1]), polar[0] ** 2)
)
reals = st.tuples(st.floats(-0.99, 0.99), st.floats(-0.99, 0.99)).map(lambda two: (-sum(two), two[0] * two[1]))


@given(factors=st.lists(st.lists(st.one_of(pairs, pairs, reals), min_size=10, max_size=10), min_size=1, max_size=5))
def test_factors_multiply_to_the_polynomial(factors):
    p, q = np.array(factors).transpose(2, 1, 0)
    polynomials = product(p, q)
    found = product(*quadratic_factors(polynomials))
    # what LAPACK reaches on clustered roots
    assert np.abs(found - polynomials).max() <= 1e-8 * np.abs(polynomials).max()


def test_roots_that_lie_apart_are_found():
    rng = np.random.default_rng(3)
    angles = (np.arange(10)[:, None] + rng.uniform(0.2, 0.8, (10, 40))) * np.pi / 10
    radii = rng.uniform(0.7, 0.99, (10, 40))
    p, q = -2 * radii * np.cos(angles), radii**2
    p[0, 20:], q[0, 20:] = -(0.9 - 0.4), 0.9 * -0.4  # two real roots
    found = quadratic_factors(product(p, q))
    for frame in range(40):
        np.testing.assert_allclose(
            roots_of(found[0][:, frame], found[1][:, frame]), roots_of(p[:, frame], q[:, frame]), atol=1e-9
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
    ids=["one root twenty times", "two roots ten times", "all zero", "on a circle", "all real", "far outside"],
)
def test_hard_polynomials_fall_back(polynomial):
    found = product(*quadratic_factors(polynomial[:, None]))[:, 0]
    np.testing.assert_allclose(found, polynomial, atol=1e-8 * np.abs(polynomial).max())


def test_the_fallback_gives_the_same_factors(monkeypatch):
    polynomials = burg(noise(320, 30), 20)[0]
    p, q = quadratic_factors(polynomials)
    calls = []
    monkeypatch.setattr(roots, "_ITERATIONS", 1)
    monkeypatch.setattr(
        roots, "factors_by_eigenvalues", lambda some: calls.append(some.shape) or factors_by_eigenvalues(some)
    )
    slow_p, slow_q = quadratic_factors(polynomials)
    assert calls == [(21, 30)]
    for frame in range(30):
        np.testing.assert_allclose(
            roots_of(p[:, frame], q[:, frame]), roots_of(slow_p[:, frame], slow_q[:, frame]), atol=1e-7
        )


def test_few_frames_of_speech_like_noise_need_the_fallback(monkeypatch):
    """The fallback is slow: the iteration has to do nearly all frames."""
    calls = [0]

    def counted(some):
        calls[0] += some.shape[1]
        return factors_by_eigenvalues(some)

    monkeypatch.setattr(roots, "factors_by_eigenvalues", counted)
    quadratic_factors(burg(np.hanning(320)[:, None] * noise(320, 400), 20)[0])
    assert calls[0] <= 12


def test_one_frame_alone_is_refused():
    with pytest.raises(ValueError, match="repeat it"):
        burg(noise(60, 1), 8)


@pytest.mark.parametrize("polynomial", [np.ones((4, 2)), 2 * np.ones((5, 2))])
def test_odd_degrees_and_other_leading_coefficients_are_refused(polynomial):
    with pytest.raises(ValueError, match="even degree"):
        quadratic_factors(polynomial)
