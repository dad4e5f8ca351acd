"""Linkability against the reference's histograms by numpy, closed forms and its own traps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from evaluation.metrics.disclosure import d_sys, d_sys_caveat, d_sys_pav
from evaluation.metrics.sorted_scores import sort_scores
from spkbase.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data" / "evaluation"


def by_histograms(mated: np.ndarray, other: np.ndarray, omega: float) -> float:
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
    return float(np.trapezoid(local * first, (edges[1:] + edges[:-1]) / 2))


@given(st.integers(0, 10_000), st.integers(10, 2000), st.sampled_from([0.1, 1.0, 3.0]), st.integers(0, 3))
def test_binning_to_the_last_bit(seed: int, count: int, omega: float, digits: int) -> None:
    rng = np.random.default_rng(seed)
    mated, other = rng.normal(1, 1, count).round(digits), rng.normal(0, 1, 2 * count).round(digits)
    if np.ptp(np.concatenate([mated, other])) == 0:
        return
    assert d_sys(mated, other, omega=omega) == by_histograms(mated, other, omega)


@pytest.mark.parametrize("distance", ["0.2", "1", "2", "4"])
def test_both_estimates_meet_the_closed_form(distance: str) -> None:
    expected = json.loads((DATA / "closed_forms.json").read_text())[distance]["D_sys"]
    noise = ndtri((np.arange(100_000) + 0.5) / 100_000)
    target = noise + float(distance)
    assert d_sys_pav(target, noise) == pytest.approx(expected, abs=1e-3)
    assert d_sys(target, noise) == pytest.approx(expected, abs=0.01)


def test_pav_estimate_falls_to_the_closed_form_from_above() -> None:
    expected = json.loads((DATA / "closed_forms.json").read_text())["1"]["D_sys"]
    errors = []
    for n in (1_000, 10_000, 100_000):
        noise = ndtri((np.arange(n) + 0.5) / n)
        errors.append(d_sys_pav(noise + 1, noise) - expected)
    assert np.log10(abs(errors[0] / errors[2])) / 2 > 0.3


tied = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 1.0, np.inf]), min_size=1, max_size=12)


@given(tied, tied, st.floats(0.01, 100))
def test_pav_estimate_is_within_bounds_and_depends_on_order_alone(
    target: list[float], nontarget: list[float], omega: float
) -> None:
    found = d_sys_pav(target, nontarget, omega=omega)
    assert 0 <= found <= 1 + 1e-15
    mapped = ([np.arctan(score) for score in side][::-1] for side in (target, nontarget))
    assert d_sys_pav(*mapped, omega=omega) == found
    assert d_sys_pav(target * 2, nontarget * 2, omega=omega) == pytest.approx(found, abs=1e-12)
    assert d_sys_pav(target, nontarget, omega=2 * omega) >= found - 1e-12


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
def test_caveats(target: np.ndarray, nontarget: np.ndarray, words: str) -> None:
    caveat = d_sys_caveat(d_sys(target, nontarget), sort_scores(target, nontarget))
    assert caveat is not None
    assert caveat.startswith(words)


def test_no_caveat_where_there_is_nothing_to_say() -> None:
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(2, 1, 1000), rng.normal(0, 1, 5000)
    assert d_sys_caveat(d_sys(target, nontarget), sort_scores(target, nontarget)) is None


@pytest.mark.parametrize("omega", [0.0, -1.0, np.inf, np.nan])
def test_omega_out_of_range_is_refused(omega: float) -> None:
    for metric in (d_sys, d_sys_pav):
        with pytest.raises(DataError, match="omega"):
            metric([1.0], [0.0], omega=omega)
