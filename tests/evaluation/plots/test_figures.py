"""Plots in a notebook: what is returned, where it is drawn, and whose settings hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from evaluation import plots
from evaluation.linkage.curve import Curve
from evaluation.plots.priors import are_no_llrs

rng = np.random.default_rng(3)
SYSTEMS = [("a $x", rng.normal(2, 1, 200), rng.normal(0, 1, 900)), ("b", rng.normal(1, 1, 200), rng.normal(0, 1, 900))]
SIZES = np.array([2, 5, 10])
CURVE = Curve(SIZES, 1.5 / SIZES, 1.2 / SIZES, 1.8 / SIZES, 1 / SIZES, level=0.9)
DRAWN: dict[str, Callable[..., Any]] = {
    "det": lambda **where: plots.plot_det(SYSTEMS, **where),
    "roc": lambda **where: plots.plot_roc(SYSTEMS, **where),
    "ece": lambda **where: plots.plot_ece(SYSTEMS, **where),
    "ape": lambda **where: plots.plot_ape(SYSTEMS, **where),
    "zebra": lambda **where: plots.plot_zebra(SYSTEMS, **where),
    "histogram": lambda **where: plots.plot_histogram(SYSTEMS, **where),
    "reliability": lambda **where: plots.plot_reliability(SYSTEMS, **where),
    "privacy_utility": lambda **where: plots.plot_privacy_utility([plots.TradeOff("a", 5.0, 0.3)], **where),
    "likelihood": lambda **where: plots.plot_likelihood({"ubm": [-9.0, -8.0]}, **where),
    "linkability": lambda **where: plots.plot_linkability({"L = 3": CURVE}, **where),
    "cmc": lambda **where: plots.plot_cmc({"a": [0.5, 0.8, 1.0]}, **where),
    "speakers": lambda **where: plots.plot_speakers({"L = 3": [0.1, 0.5, 0.9]}, **where),
}
BIG = {"font.size": 23.0, "axes.titlesize": "medium", "figure.figsize": (5.0, 7.0)}


@pytest.mark.parametrize("kind", DRAWN)
def test_a_figure_comes_back_in_the_settings_of_the_user(kind: str) -> None:
    before = dict(mpl.rcParams)
    with mpl.rc_context(BIG):
        figure = DRAWN[kind]()
    assert isinstance(figure, Figure)
    assert figure.axes[0].title.get_fontsize() == pytest.approx(23.0)
    assert tuple(figure.get_size_inches()) == (5.0, 7.0)
    with mpl.rc_context(BIG), plots.house_style():
        assert DRAWN[kind]().axes[0].title.get_fontsize() == pytest.approx(12.0)
    assert dict(mpl.rcParams) == before
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", DRAWN)
def test_it_is_drawn_into_given_axes(kind: str, tmp_path: Path) -> None:
    figure = Figure(figsize=(12, 6), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert DRAWN[kind](ax=right, path=tmp_path / "x.png") is figure
    assert right.lines
    assert right.get_title()
    assert not left.lines
    assert figure.axes == [left, right]
    assert not figure.legends
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", DRAWN)
def test_files_have_the_house_style_and_the_same_bytes_whatever_the_user_set(kind: str, tmp_path: Path) -> None:
    assert isinstance(DRAWN[kind](path=tmp_path / "a.svg"), Figure)
    with mpl.rc_context(BIG):
        DRAWN[kind](path=tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_tex_alone_gives_no_figure(tmp_path: Path) -> None:
    assert plots.plot_roc(SYSTEMS, path=tmp_path / "x.tex") is None


@pytest.mark.parametrize(
    ("scale", "offset", "warned"), [(1.0, 0.0, False), (0.05, 0.0, True), (1.0, 6.0, True), (1.3, 0.1, False)]
)
def test_scores_that_are_no_llrs_are_warned_of_on_the_picture(scale: float, offset: float, warned: bool) -> None:
    distance = 3.0  # calibrated LLRs of two Gaussians
    target, nontarget = (rng.normal(sign * distance**2 / 2, distance, 4000) for sign in (1, -1))
    for draw in (plots.plot_ece, plots.plot_ape):
        for normalised in (False, True):
            figure = draw([("a", scale * target + offset, scale * nontarget + offset)], normalised=normalised)
            assert figure is not None
            words = [text.get_text() for text in figure.axes[0].texts]
            assert any("no calibrated LLRs" in text for text in words) == warned
            assert ("Cllr above 1.05" in figure.legends[0].get_title().get_text()) == warned


def test_the_rule_of_what_is_no_llr_has_no_gap() -> None:
    assert [are_no_llrs(1.06, 0.9), are_no_llrs(1.04, 0.9), are_no_llrs(0.19, 0.1), are_no_llrs(0.21, 0.1)] == [
        True, False, False, True,
    ]  # fmt: skip
    assert are_no_llrs(np.inf, 0.1)


def test_linkability_says_what_l_is_and_the_level_of_its_bands() -> None:
    title = plots.plot_linkability({"L = 3": CURVE}).legends[0].get_title().get_text()  # type: ignore[union-attr]
    assert title == "Bands: 90 % intervals of the measured curves over speakers\nL: utterances averaged into a trial"
    speakers = plots.plot_speakers({"L = 3": [0.1, 0.5, 0.9]})
    assert speakers is not None
    assert speakers.legends[0].get_title().get_text().endswith("L: utterances averaged into a trial")


def test_histograms_of_several_systems_stand_in_strips_of_one_scale() -> None:
    figure = plots.plot_histogram(SYSTEMS, bins=8)
    assert figure is not None
    axes = figure.axes[0]
    height = axes.get_ylim()[1] / 2
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "b\n200 target\n900 nontarget",
        "a $x\n200 target\n900 nontarget",
    ]
    lower, upper = axes.lines[0].get_ydata(), axes.lines[2].get_ydata()
    assert (lower.min(), upper.min()) == (0.0, pytest.approx(height))
    for line, base in ((axes.lines[0], 0.0), (axes.lines[2], height)):
        x, y = line.get_xdata(), line.get_ydata()
        assert np.sum(np.diff(x) * (y[:-1] - base)) == pytest.approx(1.0)
