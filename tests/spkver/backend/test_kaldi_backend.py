"""Kaldi's PLDA: its formulas from their definitions, its files byte by byte, a real one, and broken ones."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigh

from spkbase.errors import ConfigError, DataError
from spkver.backend.kaldi import (
    KaldiPlda,
    adapt_plda_unsupervised,
    kaldi_plda_scores,
    plda_from_kaldi,
    plda_to_kaldi,
    read_kaldi_matrix,
    read_kaldi_plda,
    write_kaldi_plda,
)
from spkver.backend.plda import Plda, Sessions, plda_scores


def drawn(seed=0, dimension=4):
    rng = np.random.default_rng(seed)
    psi = np.sort(rng.uniform(0.1, 4, dimension))[::-1]
    return KaldiPlda(rng.normal(size=dimension), rng.normal(size=(dimension, dimension)), psi)


def every_pair(n_models, n_segments):
    return np.divmod(np.arange(n_models * n_segments), n_segments)


def same(one, other):
    return all(
        getattr(one, name).tolist() == getattr(other, name).tolist()
        for name in ("mean", "transform", "psi")
    )


# --- formulas --------------------------------------------------------------------------------------------------------


def normal(values, mean, variance):
    """Log-density of independent Gaussians."""
    return float(-0.5 * (np.log(2 * np.pi * variance) + (values - mean) ** 2 / variance).sum())


@pytest.mark.parametrize("length", ["kaldi", "simple", "none"])
def test_scores_equal_the_definition(length):
    """p(test | u of n) / p(test), where the speaker is N(n psi u / (n psi + 1), psi / (n psi + 1)) given u."""
    plda, rng = drawn(), np.random.default_rng(1)
    models = np.array([2, 0, 1, 1, 2, 2])
    sessions, tests = Sessions(rng.normal(size=(6, 4)), models), rng.normal(size=(5, 4))
    expected = []
    for of, row in np.transpose(every_pair(3, 5)):
        count = (models == of).sum()
        sides = []
        for vector, n in ((sessions.vectors[models == of].mean(axis=0), count), (tests[row], 1)):
            u = plda.transform @ (vector - plda.mean)
            scale = {
                "kaldi": np.sqrt(4 / (u**2 / (plda.psi + 1 / n)).sum()),
                "simple": 2 / np.linalg.norm(u),
                "none": 1.0,
            }[length]
            sides.append(u * scale)
        shrunk = count * plda.psi / (count * plda.psi + 1)
        given_model = normal(sides[1], shrunk * sides[0], 1 + plda.psi / (count * plda.psi + 1))
        expected.append(given_model - normal(sides[1], np.zeros(4), 1 + plda.psi))
    found = kaldi_plda_scores(plda, sessions, tests, *every_pair(3, 5), length=length)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@given(st.integers(0, 1000), st.integers(1, 5), st.integers(0, 5), st.integers(0, 2))
def test_both_forms_of_a_plda_describe_one_model(seed, dimension, rank, channels):
    """Scores of ours, of Kaldi's form of it, and of ours made of that; both covariances come back."""
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(dimension, dimension))
    channel = rng.normal(size=(dimension, channels)) if channels else None
    loadings = rng.normal(size=(dimension, min(rank, dimension)))
    plda = Plda(
        rng.normal(size=dimension), loadings, spread @ spread.T + np.eye(dimension), channel
    )
    kaldi = plda_to_kaldi(plda)
    assert (np.diff(kaldi.psi) <= 0).all()
    back = plda_from_kaldi(kaldi)
    np.testing.assert_allclose(back.within, plda.within, atol=1e-9)
    np.testing.assert_allclose(back.between, plda.between, atol=1e-9)
    sessions = Sessions(rng.normal(size=(4, dimension)), np.array([0, 1, 1, 2]))
    tests, pairs = rng.normal(size=(3, dimension)), every_pair(3, 3)
    expected = plda_scores(plda, sessions, tests, *pairs)
    for found in (
        kaldi_plda_scores(kaldi, sessions, tests, *pairs, length="none"),
        plda_scores(back, sessions, tests, *pairs),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_adaptation_equals_its_generalised_eigenvector_form():
    """Where V v = s T v with v' T v = 1 and s > 1, W gains .3 (s - 1) T v v' T and B .7 (s - 1) T v v' T."""
    plda, rng = drawn(3), np.random.default_rng(2)
    vectors = rng.normal(size=(50, 4)) * [3, 0.1, 1, 2] + 1
    ours = plda_from_kaldi(plda)
    total = ours.within + ours.between
    shift = vectors.mean(axis=0) - plda.mean
    values, directions = eigh(np.cov(vectors.T, ddof=0) + 0.5 * np.outer(shift, shift), total)
    assert values[0] < 1 < values[-1], "both kinds of directions are there"
    gained = total @ directions @ np.diag(np.maximum(values - 1, 0)) @ directions.T @ total
    adapted = adapt_plda_unsupervised(
        plda, vectors, mean_scale=0.5, within_scale=0.2, between_scale=0.6
    )
    found = plda_from_kaldi(adapted)
    np.testing.assert_allclose(adapted.mean, vectors.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.within, ours.within + 0.2 * gained, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.between, ours.between + 0.6 * gained, rtol=1e-10, atol=1e-10)


def test_options_out_of_range_are_refused():
    zero = np.array([0])
    with pytest.raises(ConfigError, match="length is 'long': expected one of kaldi, simple, none"):
        kaldi_plda_scores(
            drawn(), Sessions(np.ones((1, 4)), zero), np.ones((1, 4)), zero, zero, length="long"
        )
    with pytest.raises(
        DataError, match="expected vectors of the other domain of 4 dimensions, got 3"
    ):
        adapt_plda_unsupervised(drawn(), np.ones((5, 3)))
    with pytest.raises(DataError, match="expected tested vectors of 4 dimensions, got 5"):
        kaldi_plda_scores(drawn(), Sessions(np.ones((1, 4)), zero), np.ones((1, 5)), zero, zero)
    plda = drawn()
    with pytest.raises(
        DataError, match="1 vector equal to the mean of the PLDA, so without a length"
    ):
        kaldi_plda_scores(plda, Sessions(plda.mean[None], zero), np.ones((1, 4)), zero, zero)


# --- files -----------------------------------------------------------------------------------------------------------


def packed(array, kind="D"):
    """A vector or matrix in Kaldi's binary form, written out by hand."""
    sizes = b"".join(b"\4" + struct.pack("<i", size) for size in array.shape)
    return (
        f"{kind}{'V' if array.ndim == 1 else 'M'} ".encode()
        + sizes
        + array.astype(f"<f{8 if kind == 'D' else 4}").tobytes()
    )


def test_binary_pldas_are_read_and_written_byte_by_byte(tmp_path):
    plda = drawn()
    parts = packed(plda.mean) + packed(plda.transform) + packed(plda.psi)
    (tmp_path / "plda").write_bytes(b"\0B<Plda> " + parts + b"</Plda> ")
    assert same(read_kaldi_plda(tmp_path / "plda"), plda)
    write_kaldi_plda(tmp_path / "again", plda)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "plda").read_bytes()


def test_text_pldas_of_kaldi_are_read(tmp_path):
    text = "<Plda>  [ 1 -2.5 ]\n [\n  2 0 \n  0 1e-1 ]\n [ 3 0 ]\n</Plda> "
    (tmp_path / "plda").write_text(text)
    expected = KaldiPlda(np.array([1, -2.5]), np.array([[2, 0], [0, 0.1]]), np.array([3.0, 0]))
    assert same(read_kaldi_plda(tmp_path / "plda"), expected)


@pytest.mark.parametrize("dimension", [1, 4])
@pytest.mark.parametrize("binary", [True, False])
def test_written_pldas_are_read_back_to_the_bit(tmp_path, binary, dimension):
    plda = drawn(dimension=dimension)
    write_kaldi_plda(tmp_path / "plda", plda, binary=binary)
    assert same(read_kaldi_plda(tmp_path / "plda"), plda)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("shape", [(5,), (1,), (2, 3), (1, 3), (3, 1)])
def test_matrices_of_kaldiio_are_read(tmp_path, shape, text):
    """What another's code writes, and text as Kaldi prints it."""
    matrix, path = np.random.default_rng(0).normal(size=shape), tmp_path / "m.mat"
    if text:
        rows = "\n".join(" ".join(map(repr, row)) for row in np.atleast_2d(matrix).tolist())
        path.write_text(f" [ {rows} ]\n" if len(shape) == 1 else f" [\n{rows} ]\n")
    else:
        pytest.importorskip("kaldiio").save_mat(str(path), matrix)
    assert read_kaldi_matrix(path).tolist() == matrix.tolist()


PLDA = b"\0B<Plda> " + packed(np.zeros(2)) + packed(np.eye(2)) + packed(np.ones(2)) + b"</Plda> "


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"<Plda", "not with <Plda>"),
        (PLDA[: -1 - len("</Plda>")], "does not end with </Plda>"),
        (PLDA[:-30], "cut short"),
        (PLDA + b"more", "does not end with </Plda>"),
        (
            PLDA.replace(packed(np.ones(2)), packed(np.ones(3))),
            r"expected psi of shape \(2\), got \(3,\)",
        ),
        (
            PLDA.replace(packed(np.eye(2)), packed(np.ones((2, 2)))),
            "transform of a PLDA is singular",
        ),
        (b"<Plda> [ 1 ]\n [\n 1 ]\n [ x ]\n</Plda> ", "could not convert string"),
        (b"<Plda> [ 1 2 ]\n [\n 1 0\n 1 ]\n [ 1 1 ]\n</Plda> ", "rows differ in length"),
    ],
)
def test_broken_pldas_raise_one_error(tmp_path, raw, message):
    path = tmp_path / "plda"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=message) as error:
        read_kaldi_plda(path)
    assert str(error.value).startswith(f"{path}: ")


# --- a real model ----------------------------------------------------------------------------------------------------


def test_a_real_plda_is_written_back_byte_by_byte(shared, tmp_path):
    path = shared / "formats" / "kaldi_plda" / "plda"
    write_kaldi_plda(tmp_path / "plda", read_kaldi_plda(path))
    assert (tmp_path / "plda").read_bytes() == path.read_bytes()
