"""ZEBRA's metrics against their integral, closed forms and exact arithmetic."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.special import ndtri

from evaluation.metrics import min_ece, sort_scores
from evaluation.metrics.disclosure import (
    d_sys,
    d_sys_caveat,
    d_sys_pav,
    disclosure,
    format_value,
    individual_ceiling,
    population,
    read_scale,
    tag,
    zebra,
)
from spkbase.errors import DataError
from tests.score_strategies import classes

DATA = Path(__file__).resolve().parents[2] / "data" / "evaluation"


def entropy(prior):
    return float(-(prior * np.log2(prior) + (1 - prior) * np.log2(1 - prior)))


@pytest.mark.parametrize("seed", range(4))
def test_population_disclosure_equals_the_integral_over_priors(seed):
    rng = np.random.default_rng(seed)
    target, nontarget = rng.normal(seed, 1, 40).round(1), rng.normal(0, 1, 90).round(1)
    gained = quad(
        lambda prior: entropy(prior) - min_ece(target, nontarget, prior=prior), 0, 1, epsabs=1e-10
    )[0]
    assert population(target, nontarget) == pytest.approx(gained, abs=1e-8)


@pytest.mark.parametrize(
    "llr",
    [
        1e-300,
        1e-12,
        -1e-12,
        1e-6,
        1.1e-6,
        -1e-5,
        1e-3,
        -0.05,
        0.0999999,
        0.1,
        -0.1,
        0.3,
        5.0,
        -5.0,
        40.0,
        -40.0,
    ],
)
def test_disclosure_is_exact_to_its_last_digits(llr):
    """Exact arithmetic on a Taylor series of exp that is long enough; plain floats are 29 % off at 1e-5."""
    a = Fraction(llr)
    grown, term = Fraction(0), Fraction(1)
    for order in range(1, 220):
        term = term * a / order
        grown += term
        if order > 4 * abs(llr) + 30:
            break
    expected = float(Fraction(1, 4) + (a - grown) / (2 * grown**2))
    assert float(disclosure(np.array([llr]))[0]) == pytest.approx(expected, rel=1e-12, abs=0)


def test_disclosure_has_its_limits_at_the_ends():
    found = disclosure(np.array([0.0, np.inf, -np.inf, 709.0, 1e5, -1e5]))
    assert found[:5].tolist() == [0.0, 0.25, -np.inf, 0.25, 0.25]
    assert found[5] == pytest.approx(-1e5 / 2 + 0.75)


@given(classes)
def test_disclosure_is_bounded_and_symmetric_in_the_classes(both):
    found = zebra(*both)
    assert -1e-15 <= found.population <= 1 / np.log(4)
    assert 0 <= found.individual <= found.individual_ceiling + 1e-12
    turned = zebra(*([-score for score in side] for side in both[::-1]))
    assert turned.population == pytest.approx(found.population, abs=1e-12)
    assert turned.individual == pytest.approx(found.individual, abs=1e-12)


@pytest.mark.parametrize("distance", ["0.2", "1", "2", "4"])
def test_gaussian_scores_converge_at_the_rate_of_their_number(distance):
    expected = json.loads((DATA / "closed_forms.json").read_text())[distance]["population"]
    errors = []
    for n in (1_000, 10_000, 100_000):
        noise = ndtri((np.arange(n) + 0.5) / n)
        errors.append(abs(population(noise + float(distance), noise) - expected))
    assert errors[-1] < 1e-4
    assert np.log10(errors[0] / errors[2]) / 2 > 0.6


def test_the_ceiling_equals_published_values():
    assert individual_ceiling(500, 1000) == pytest.approx(3.0009, abs=5e-5)
    assert individual_ceiling(548, 11196) == pytest.approx(4.05, abs=5e-3)
    assert individual_ceiling(1, 1) == pytest.approx(np.log10(2))


# tags and lines


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *[
            (0, "0"),
            (1e-12, "A"),
            (1, "A"),
            (1.0000001, "B"),
            (2, "B"),
            (3.979, "C"),
            (4, "C"),
            (4.035, "D"),
        ],
        *[(5.5, "E"), (6, "E"), (6.1, "F"), (np.inf, "F")],
    ],
)
def test_categories_include_their_upper_end(value, name):
    assert tag(value) == name


def test_values_are_printed_with_the_digits_of_the_reference():
    texts = {
        0.0: "0",
        0.5: "0.500",
        5e-4: "0.001",
        4.99e-4: "5e-04",
        3.1e-5: "3e-05",
        12.3456: "12.346",
    }
    assert {value: format_value(value) for value in texts} == texts


def test_a_scale_is_read_from_a_file(tmp_path):
    path = tmp_path / "scale.yaml"
    path.write_text("none: 0\nlow: 1.5\nhigh: .inf\n")
    scale = read_scale(path)
    assert scale == (("none", 0.0), ("low", 1.5), ("high", np.inf))
    assert [tag(value, scale=scale) for value in (0, 1, 1.6)] == ["none", "low", "high"]
    assert zebra([1.0, 2.0], [0.0], scale=scale).tag == "low"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "- 1",
        "A: x",
        "A: 1",
        "A: 2\nB: 1\nC: .inf",
        "A: -1\nB: .inf",
        "A: 1\nB: 1\nC: .inf",
        "A: [",
    ],
)
def test_malformed_scales_are_refused(tmp_path, content):
    path = tmp_path / "scale.yaml"
    path.write_text(content)
    with pytest.raises(DataError, match=r"scale\.yaml(:1: not YAML)?: expected"):
        read_scale(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_scale(tmp_path / "none.yaml")


# linkability


def by_histograms(mated, other, omega):
    """The definition with numpy's own histograms."""
    bins = min(int(len(mated) / 10), 100)
    edges = np.linspace(min(mated.min(), other.min()), max(mated.max(), other.max()), bins + 1)
    first, second = (np.histogram(scores, bins=edges, density=True)[0] for scores in (mated, other))
    local = np.zeros(bins)
    for place in range(bins):
        if second[place] == 0:
            local[place] = 1.0 if first[place] else 0.0
        elif omega * (first[place] / second[place]) > 1:
            ratio = omega * (first[place] / second[place])
            local[place] = 2 * (ratio / (1 + ratio)) - 1
    return float(trapezoid(local * first, (edges[1:] + edges[:-1]) / 2))


@given(
    st.integers(0, 10_000),
    st.integers(10, 2000),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.integers(0, 3),
)
def test_histograms_equal_the_reference_to_the_last_bit(seed, count, omega, digits):
    rng = np.random.default_rng(seed)
    mated, other = rng.normal(1, 1, count).round(digits), rng.normal(0, 1, 2 * count).round(digits)
    if np.ptp(np.concatenate([mated, other])) == 0:
        return
    assert d_sys(mated, other, omega=omega) == by_histograms(mated, other, omega)


@pytest.mark.parametrize("distance", ["0.2", "1", "2", "4"])
def test_both_estimates_match_the_closed_form(distance):
    expected = json.loads((DATA / "closed_forms.json").read_text())[distance]["D_sys"]
    noise = ndtri((np.arange(100_000) + 0.5) / 100_000)
    target = noise + float(distance)
    assert d_sys_pav(target, noise) == pytest.approx(expected, abs=1e-3)
    assert d_sys(target, noise) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("target", "nontarget", "words"),
    [
        (np.arange(9.0), np.arange(20.0), "misleads: 9 target trials give no bin"),
        (np.linspace(9.99, 10, 1000), np.linspace(0, 5, 1000), "misleads: far below d_sys_pav"),
        (np.arange(1000.0), np.arange(1000.0) + 2000, "misleads: it counts scores as linkable"),
        (np.zeros(20), np.zeros(5), "undefined: the histogram needs finite scores"),
        (np.array([np.inf] * 20), np.zeros(5), "undefined"),
        (np.arange(50.0), np.arange(50.0), "uncertain: 50 target trials give 5 bins only"),
    ],
)
def test_doubtful_values_have_a_caveat(target, nontarget, words):
    caveat = d_sys_caveat(d_sys(target, nontarget), sort_scores(target, nontarget))
    assert caveat.startswith(words)


@pytest.mark.parametrize("omega", [0.0, -1.0, np.inf, np.nan])
def test_omega_out_of_range_is_refused(omega):
    for metric in (d_sys, d_sys_pav):
        with pytest.raises(DataError, match="omega"):
            metric([1.0], [0.0], omega=omega)
