"""Plots: what they show, not how they look. Pictures were looked at in every window."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from evaluation.metrics.detection import effective_prior, hull, hull_min_dcf
from evaluation.plots import draw, training
from evaluation.plots.chart import System
from evaluation.plots.densities import plot_histogram
from evaluation.plots.det import WINDOWS, DetStyle, plot_det
from evaluation.plots.training import plot_likelihood
from spkbase.errors import DataError


def system(name: str = "svm", distance: float = 3.0, n_target: int = 500, n_nontarget: int = 5000) -> System:
    rng = np.random.default_rng(7)
    return System(name, rng.normal(distance, 1, n_target), rng.normal(0, 1, n_nontarget))


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures as they were when saved."""
    saved: list[Any] = []
    for module in (draw, training):
        monkeypatch.setattr(module, "save_figure", lambda figure, paths: saved.append(figure))
    return saved


def legend_texts(figure: Any) -> list[str]:
    return [text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_window_is_drawn_without_a_warning(tmp_path: Path, window: str, count: int) -> None:
    systems = [system(f"system {number} $x_", 1.0 + number) for number in range(count)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_det(systems, path=tmp_path / "det.png", style=DetStyle(window=window, steppy=count == 2))
    assert (tmp_path / "det.png").read_bytes().startswith(b"\x89PNG")


def test_one_call_writes_all_formats_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    signatures = {"det.png": b"\x89PNG", "det.pdf": b"%PDF", "det.SVG": b"<?xml"}
    written = []
    for folder in ("first", "second"):
        plot_det([system()], path=[tmp_path / folder / name for name in signatures])
        written.append({name: (tmp_path / folder / name).read_bytes() for name in signatures})
    assert written[0] == written[1]
    for name, signature in signatures.items():
        assert written[0][name].startswith(signature)


def test_the_callers_settings_and_state_do_not_matter_and_stay(tmp_path: Path) -> None:
    plot_det([system()], path=tmp_path / "a.svg")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": None, "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        plot_det([system()], path=tmp_path / "b.svg")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("backend", ["module://matplotlib_inline.of_a_notebook", "nonsense", "svg"])
def test_the_backend_of_the_user_does_not_matter(tmp_path: Path, backend: str) -> None:
    """A notebook hands the name of its own to the commands that it starts, where it may not be installed."""
    code = (
        "import os\nfrom evaluation.plots import System, plot_det\n"
        f"plot_det([System('a', [1.0, 2.0], [0.0, 1.5])], path={str(tmp_path / 'det.png')!r})\n"
        "import matplotlib\nprint(os.environ['MPLBACKEND'], matplotlib.rcParams._get('backend') == 'svg')"
    )
    environment = {**os.environ, "MPLBACKEND": backend}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"{backend} {backend == 'svg'}\n", "")
    assert (tmp_path / "det.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("prior", "effective"), [(None, effective_prior(0.01, 10, 1)), (0.5, 0.5), (0.05, 0.05)])
def test_the_min_dcf_point_stands_at_the_prior(figures: list[Any], prior: float | None, effective: float) -> None:
    one = system(distance=2.0)
    plot_det([one], path="x.png", prior=prior)
    cost, p_miss, p_fa = hull_min_dcf(hull(one.target, one.nontarget), effective)
    points = [
        line for line in figures[0].axes[0].lines if line.get_marker() == "o" and line.get_markerfacecolor() != "white"
    ]
    assert [(ndtr(point.get_xdata()[0]), ndtr(point.get_ydata()[0])) for point in points] == [
        pytest.approx((p_fa, p_miss))
    ]
    assert f"minDCF {cost:.3f}" in legend_texts(figures[0])[0]
    assert f"prior {effective:.3g}" in figures[0].legends[0].get_title().get_text()


def test_the_axes_are_those_of_the_window(figures: list[Any]) -> None:
    for name, window in WINDOWS.items():
        plot_det([system()], path="x.png", style=DetStyle(window=name))
        axes = figures[-1].axes[0]
        assert axes.get_xlim() == pytest.approx(ndtri(window.p_fa))
        assert axes.get_ylim() == pytest.approx(ndtri(window.p_miss))
        for axis, ticks in ((axes.xaxis, window.ticks_fa), (axes.yaxis, window.ticks_miss)):
            assert ndtr(axis.get_ticklocs()) * 100 == pytest.approx(ticks)
            assert [float(label.get_text()) for label in axis.get_ticklabels()] == pytest.approx(ticks)
        assert "(%)" in axes.get_xlabel()
        assert "(%)" in axes.get_ylabel()


def test_windows_are_those_of_the_peer() -> None:
    assert (WINDOWS["old"].p_fa, WINDOWS["old"].p_miss) == ((5e-4, 0.5), (5e-4, 0.5))
    assert (WINDOWS["new"].p_fa, WINDOWS["new"].p_miss) == ((5e-6, 5e-3), (0.01, 0.99))
    assert (WINDOWS["big"].p_fa, WINDOWS["big"].p_miss) == ((5e-6, 0.99), (5e-6, 0.99))
    assert (WINDOWS["sre10"].p_fa, WINDOWS["sre10"].p_miss) == ((3e-6, 0.5), (3e-4, 0.9))
    for window in WINDOWS.values():
        for (low, high), ticks in ((window.p_fa, window.ticks_fa), (window.p_miss, window.ticks_miss)):
            assert all(low <= tick / 100 <= high for tick in ticks)


def test_the_rule_of_30_is_drawn_inside_the_window_alone(figures: list[Any]) -> None:
    def drawn() -> tuple[list[float], list[float]]:
        dotted = [line for line in figures[-1].axes[0].lines if line.get_linewidth() == 1.1]
        across = [float(ndtr(line.get_ydata()[0])) for line in dotted if np.ptp(line.get_ydata()) == 0]
        upright = [float(ndtr(line.get_xdata()[0])) for line in dotted if np.ptp(line.get_xdata()) == 0]
        return upright, across

    plot_det(
        [system(n_target=500, n_nontarget=5000), system(n_target=500, n_nontarget=60000)],
        path="x.png",
        style=DetStyle(window="sre10"),
    )
    assert drawn() == (pytest.approx([30 / 5000, 30 / 60000]), pytest.approx([30 / 500]))
    words = [text.get_text() for text in figures[-1].axes[0].texts]
    assert sorted(set(words)) == ["30 false alarms", "30 misses"]
    plot_det([system(n_target=20, n_nontarget=40)], path="x.png", style=DetStyle(window="sre10"))
    assert drawn() == ([], [])
    plot_det([system()], path="x.png", style=DetStyle(rule_of_30=False))
    assert drawn() == ([], [])


def test_systems_differ_in_colour_and_in_line_style(figures: list[Any]) -> None:
    plot_det([system(str(number), 1.0 + number) for number in range(4)], path="x.png")
    lines = figures[0].legends[0].get_lines()
    assert len({line.get_color() for line in lines}) == len({str(line._dash_pattern) for line in lines}) == 4


def test_a_curve_outside_the_window_is_said_to_be(figures: list[Any]) -> None:
    plot_det([("perfect", [2.0, 3.0], [0.0, 1.0]), ("none", [1.0], [1.0]), system()], path="x.png")
    texts = legend_texts(figures[0])
    assert texts[0] == "perfect (EER 0.00 %, minDCF 0.000)\ncurve outside this window"
    assert texts[1] == "none (EER 50.00 %, minDCF 1.000)\nminDCF point outside this window"
    assert "outside" not in texts[2]


def test_the_window_grows_with_what_must_be_seen_and_is_the_same_in_both_directions(figures: list[Any]) -> None:
    for distance, lowest, highest in ((3.0, 5e-4, 0.5), (0.35, 5e-4, 0.8), (6.6, 1e-4, 0.5)):
        plot_det([system(distance=distance, n_target=5000)], path="x.png", prior=0.5)
        axes = figures[-1].axes[0]
        assert ndtr(axes.get_xlim()) == pytest.approx((lowest, highest))
        assert axes.get_xlim() == axes.get_ylim()
        assert list(axes.get_xticks()) == list(axes.get_yticks())
        assert axes.get_box_aspect() == 1
        assert "outside" not in legend_texts(figures[-1])[0]


def test_the_eer_stands_on_the_diagonal_and_the_curve_beside_its_hull(figures: list[Any]) -> None:
    one = system(distance=1.0)
    plot_det([one], path="x.png")
    lines = figures[0].axes[0].lines
    ring = next(line for line in lines if line.get_markerfacecolor() == "white")
    expected = hull(one.target, one.nontarget)
    assert ndtr(ring.get_xdata()[0]) == ndtr(ring.get_ydata()[0]) == pytest.approx(expected.eer)
    thick, thin = ([line for line in lines if line.get_linewidth() == width] for width in (1.8, 0.8))
    x, y = ndtr(thick[0].get_xdata()), ndtr(thick[0].get_ydata())
    # the curve passes through the error rates of a threshold, the hull lies below
    p_fa, p_miss = np.mean(one.nontarget >= 0.4), np.mean(one.target < 0.4)
    assert np.hypot(x - p_fa, y - p_miss).min() < 3e-3
    below = np.interp(x, np.sort(ndtr(thin[0].get_xdata())), np.sort(ndtr(thin[0].get_ydata()))[::-1])
    assert np.all(below <= y + 1e-4)
    assert "Thick: the curve itself; thin: its convex hull" in figures[0].legends[0].get_title().get_text()


def test_the_likelihood_and_its_stages_are_drawn(figures: list[Any], tmp_path: Path) -> None:
    plot_likelihood({"m": [-9.0, -8.0, -7.5], "f": [-8.0, -7.0]}, "x.png", doublings=[(0, 1), (1, 2)])
    axes = figures[0].axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert axes.lines[0].get_ydata().tolist() == [-9.0, -8.0, -7.5]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "Gaussians:"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["m", "f"]


def test_a_likelihood_plot_is_written(tmp_path: Path) -> None:
    plot_likelihood({"ubm": np.array([-9.0, -8.0])}, [tmp_path / "a.png", tmp_path / "a.svg"])
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a.svg"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: plot_det([], path=path / "x.png"), "expected a system"),
        (lambda path: plot_det([system()], path=path / "x.gif"), "extension '.gif'"),
        (lambda path: plot_det([system()], path=path / "x.png", style=DetStyle(window="new york")), "got 'new york'"),
        (lambda path: plot_det([system()], path=path / "x.png", prior=-2.29), "prior"),
        (lambda path: plot_det([system()], path=path / "x.png", style=DetStyle(rocch=False, steppy=False)), "curve"),
        (lambda path: plot_det([("a", [], [1.0])], path=path / "x.png"), "target scores, got none"),
        (lambda path: plot_likelihood({}, path / "x.png"), "got none"),
        (lambda path: plot_likelihood({"a": []}, path / "x.png"), "got none"),
    ],
)
def test_malformed_input_is_refused_and_nothing_written(tmp_path: Path, call, words: str) -> None:
    with pytest.raises(DataError, match=words):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\x01b", "bad\udcff", "two\nlines", "\ud800", "\ufffe"])
def test_names_that_are_no_text_can_be_drawn(tmp_path: Path, name: str) -> None:
    """Names of systems are names of files, which may hold control characters and bytes that are no UTF-8."""
    plot_det([system(name)], path=[tmp_path / f"det.{form}" for form in ("svg", "png", "pdf")], title=name)
    text = (tmp_path / "det.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")


def test_a_histogram_of_scores_too_far_apart(tmp_path: Path) -> None:
    scores = np.array([-1e308, 0.0, 1e308])
    with pytest.raises(DataError, match="too far apart for bins"):
        plot_histogram([System("a", scores, scores)], path=tmp_path / "h.png")
