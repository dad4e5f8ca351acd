"""Plots: what they show, where they are drawn, whose settings hold, and their files. Pictures were looked at.

What each kind shows lies in ``tests/data/plots`` as numbers and text, which are the same under every version of
matplotlib. After a wanted change write it anew with ``SPKVER_NEW_PICTURES=1 python -m pytest
tests/evaluation/plots``, and look at the pictures.
"""

import json
import os
import re
import shutil
import subprocess
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.special import ndtr, ndtri

import evaluation as ev
from evaluation import plots
from evaluation.linkage import Curve
from evaluation.metrics import (
    act_dcf,
    auc,
    cllr,
    ece,
    eer,
    effective_prior,
    hull_min_dcf,
    min_cllr,
    min_dcf,
    min_ece,
    pav_llrs,
    sort_scores,
    zebra,
)
from evaluation.plots import TradeOff, plot_det, plot_privacy_utility
from evaluation.plots.scores import reliability
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Interval
from spkbase.errors import DataError

pytestmark = pytest.mark.whole


def scores(name, distance, scale=1.0, offset=0.0):
    """LLRs of Gaussian scores, then miscalibrated, without a random number: their quantiles."""
    target, nontarget = (ndtri((np.arange(count) + 0.5) / count) for count in (300, 2000))
    half = distance**2 / 2
    return (
        name,
        scale * (distance * target + half) + offset,
        scale * (distance * nontarget - half) + offset,
    )


def system(name="svm", distance=3.0, n_target=500, n_nontarget=5000):
    rng = np.random.default_rng(7)
    return name, rng.normal(distance, 1, n_target), rng.normal(0, 1, n_nontarget)


SYSTEMS = [
    scores("original", 3.5),
    scores("anonymised, 50% of $x_1$", 1.2, 2.0, 0.5),
    scores("B&B {x} ~^#\\", 0.3),
]
SIZES = np.array([2, 5, 10])
CURVE = Curve(SIZES, 1.5 / SIZES, 1.2 / SIZES, 1.8 / SIZES, 1 / SIZES, level=0.9)
POINTS = [
    TradeOff("original", Interval(0.04), Interval(0.01)),
    TradeOff("b", Interval(0.12, 0.11, 0.14), Interval(0.2, 0.1, 0.3)),
]
KINDS = {
    "det": lambda systems, **where: plot_det(systems, window="big", **where),
    "roc": lambda systems, **where: plots.plot_roc(systems, lowest_fpr=0, **where),
    "roc_log": lambda systems, **where: plots.plot_roc(systems, lowest_fpr=1e-3, **where),
    "ece": lambda systems, **where: plots.plot_ece(systems, **where),
    "nece": lambda systems, **where: plots.plot_ece(systems, normalised=True, **where),
    "ape": lambda systems, **where: plots.plot_ape(systems, **where),
    "nber": lambda systems, **where: plots.plot_ape(systems, normalised=True, **where),
    "zebra": lambda systems, **where: plots.plot_zebra(systems, sort=True, **where),
    "histogram": lambda systems, **where: plots.plot_histogram(systems[:2], **where),
    "histogram_of_one": lambda systems, **where: plots.plot_histogram(systems[:1], **where),
    "reliability": lambda systems, **where: plots.plot_reliability(systems, **where),
    "likelihood": lambda systems, **where: plots.plot_likelihood(
        {one[0]: -9 + np.log(np.arange(1, 9)) / (2 + place) for place, one in enumerate(systems)},
        doublings=[(0, 1), (2, 2), (5, 4)],
        **where,
    ),
}
OTHERS = {
    "privacy_utility": lambda _, **where: plot_privacy_utility(POINTS, **where),
    "exposure": lambda _, **where: plots.plot_exposure([(0.9, "f"), (0.5, "m")], **where),
    "linkability": lambda _, **where: plots.plot_linkability({"L = 3": CURVE}, **where),
    "conversations": lambda _, **where: plots.plot_conversations(
        {"a": {1: Interval(0.4, 0.3, 0.5), 5: Interval(0.2, 0.1, 0.3)}}, **where
    ),
    "cmc": lambda _, **where: plots.plot_cmc({"a": [0.5, 0.8, 1.0]}, **where),
}
DRAWN = KINDS | OTHERS
IN_TEX = [kind for kind in DRAWN if kind != "likelihood"]
BIG = {"font.size": 23.0, "axes.titlesize": "medium"}


def labels(figure):
    return [
        text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in figure.legends[0].get_texts()
    ]


def legend_title(figure):
    return str(figure.legends[0].get_title().get_text())


def ticks(axis):
    return [
        (place, text.get_text())
        for place, text in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    ]


def without_markers(axes):
    return [line for line in axes.lines if line.get_linestyle() != "None"]


# ---- what is shown


def some(values):
    """Some 40 values and the last, to seven digits."""
    return [float(f"{value:.7g}") for value in [*values[:: max(1, len(values) // 40)], values[-1]]]


def shown_by(figure):
    """What a figure shows, apart from where its layout puts it."""
    axes = figure.axes[0]
    legend = figure.legends[0] if figure.legends else axes.get_legend()

    def look(line):
        dashes = line._unscaled_dash_pattern[1]
        return [
            to_hex(line.get_color()),
            line.get_linewidth(),
            dashes and list(dashes),
            line.get_marker(),
        ]

    return {
        "title": axes.get_title(),
        "x": [axes.get_xlabel(), *axes.get_xlim()],
        "y": [axes.get_ylabel(), *axes.get_ylim()],
        "lines": [[len(line.get_xdata()), some(line.get_xdata()), some(line.get_ydata()), look(line)]
                  for line in axes.lines],
        "areas": [[to_hex(area.get_facecolor()[0]), some(area.get_paths()[0].vertices[:, 1])]
                  for area in axes.collections],
        "notes": [text.get_text() for text in axes.texts],
        "legend": [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())],
    }  # fmt: skip


def assert_alike(found, expected, where=""):
    """Compare two descriptions: words exactly, numbers to six digits, one fewer than are kept."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for name in expected:
            assert_alike(found[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            assert_alike(found[number], value, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("kind", KINDS)
def test_plots_equal_their_approved_pictures(data, kind):
    wanted, now = (
        data / "plots" / f"{kind}.json",
        json.loads(json.dumps(shown_by(KINDS[kind](SYSTEMS)))),
    )
    if os.environ.get("SPKVER_NEW_PICTURES"):
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in now.items()]
        wanted.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert_alike(now, json.loads(wanted.read_text()))
    with pytest.raises(AssertionError):
        assert_alike(shown_by(KINDS[kind](SYSTEMS[1:])), json.loads(wanted.read_text()))


@pytest.mark.parametrize("kind", DRAWN)
def test_a_narrow_plot_omits_title_and_notes(kind, tmp_path):
    usual, narrow = (
        DRAWN[kind](SYSTEMS),
        DRAWN[kind](SYSTEMS, title="", notes=False, width=3.4, path=tmp_path / "x.pdf"),
    )
    assert usual.axes[0].get_title()
    assert not narrow.axes[0].get_title()
    assert not any(legend.get_title().get_text() for legend in narrow.legends)
    assert narrow.get_figwidth() == 3.4
    assert b"MediaBox [ 0 0 244.8 " in (tmp_path / "x.pdf").read_bytes()  # its size in points
    assert 3.4 / 7.5 < narrow.get_figheight() / usual.get_figheight() < 0.75
    assert narrow.axes[0].xaxis.label.get_size() >= 7
    with pytest.raises(TypeError, match="titel"):
        DRAWN[kind](SYSTEMS, titel="")


@pytest.mark.parametrize("kind", ["ece", "nece", "ape", "nber"])
def test_a_single_curve_can_be_selected(kind):
    """The line of a system, with the values that it has where both are drawn."""
    both = KINDS[kind](SYSTEMS).axes[0].lines
    for curves, first in (("actual", 1), ("minimum", 2)):
        figure = KINDS[kind](SYSTEMS, curves=curves)
        lines = figure.axes[0].lines
        assert len(lines) == 1 + len(SYSTEMS)
        for place, line in enumerate(lines[1:]):
            np.testing.assert_array_equal(line.get_ydata(), both[first + 2 * place].get_ydata())
            assert line.get_linewidth() == 1.8
        assert not any("dotted" in text for text in labels(figure))
        assert figure.axes[0].get_ylabel().startswith("Minimum of") == (curves == "minimum")
    with pytest.raises(
        DataError, match="expected curves to be 'both', 'actual' or 'minimum', got 'all'"
    ):
        KINDS[kind](SYSTEMS, curves="all")


@pytest.mark.parametrize("corner", plots.CORNERS)
def test_the_legend_can_be_placed_in_a_corner(corner):
    figure, usual = plot_det(SYSTEMS, legend=corner), plot_det(SYSTEMS)
    assert not figure.legends
    assert figure.get_figheight() < usual.get_figheight()
    figure.draw_without_rendering()
    box = (
        figure.axes[0]
        .get_legend()
        .get_window_extent()
        .transformed(figure.axes[0].transAxes.inverted())
    )
    sides = {
        "lower": box.y0 < 0.05,
        "upper": box.y1 > 0.95,
        "left": box.x0 < 0.05,
        "right": box.x1 > 0.95,
    }
    assert all(sides[word] for word in corner.split())
    with pytest.raises(DataError, match="expected one of the corners for the legend: upper left"):
        plot_det(SYSTEMS, legend="top")


@pytest.mark.parametrize(
    ("draw_kind", "order"),
    [
        ("det", [2, 1, 0]),
        ("roc", [2, 1, 0]),
        ("ece", [0, 1, 2]),
        ("ape", [0, 1, 2]),
        ("reliability", [2, 0, 1]),
    ],
)
def test_the_legend_can_be_sorted(draw_kind, order):
    names = [one[0] for one in SYSTEMS]
    for sort, expected in ((True, [names[place] for place in order]), (False, names)):
        texts = labels(getattr(plots, f"plot_{draw_kind}")(SYSTEMS, sort=sort))
        assert [
            name for text in texts for name in names if text.startswith(f"{name} (")
        ] == expected


@pytest.mark.parametrize(
    "plot", ["plot_det", "plot_roc", "plot_ece", "plot_ape", "plot_zebra", "plot_histogram"]
)
def test_plots_accept_scores_with_a_key_and_sorted_scores(plot):
    values, is_target = np.array([2.0, -1.0, 0.5, 1.5]), np.array([True, False, False, True])
    ids = ["a"] * 4, ["1", "2", "3", "4"]
    listed, key = Scores.from_ids(*ids, values), Key.from_ids(*ids, is_target)
    arrays = values[is_target], values[~is_target]
    given = [
        ("a", listed, key),
        ("a", *arrays),
        ("a", sort_scores(*arrays)),
        ("a", list(arrays[0]), list(arrays[1])),
    ]
    first, *others = (shown_by(getattr(ev, plot)([one])) for one in given)
    assert all(other == first for other in others)


def test_infinite_scores_can_be_plotted(tmp_path):
    one = ("x", [np.inf, 2.0, -1.0], [-np.inf, 0.0, 1.0])
    for kind in KINDS.keys() & set(IN_TEX):
        KINDS[kind]([one, one, one], path=tmp_path / f"{kind}.tex")
        assert not re.search(r"\b(nan|inf)in\}", (tmp_path / f"{kind}.tex").read_text())
    plots.plot_ece([("x", [-np.inf, 1.0], [0.0])], path=tmp_path / "x.svg")


# ---- detection error trade-off


@pytest.mark.parametrize("window", plots.WINDOWS)
def test_every_window_is_drawn_without_warnings(tmp_path, window):
    systems = [system(f"system {number} $x_", 1.0 + number) for number in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plot_det(systems, path=tmp_path / "det.png", window=window, hull_only=True)
    axes, expected = figure.axes[0], plots.WINDOWS[window]
    assert axes.get_xlim() == pytest.approx(ndtri(expected.p_fa))
    assert axes.get_ylim() == pytest.approx(ndtri(expected.p_miss))
    for axis, wanted in ((axes.xaxis, expected.ticks_fa), (axes.yaxis, expected.ticks_miss)):
        assert [100 * ndtr(place) for place, _ in ticks(axis)] == pytest.approx(wanted)
        assert [float(text) for _, text in ticks(axis)] == pytest.approx(wanted)
    lines = figure.legends[0].get_lines()
    assert (
        len({line.get_color() for line in lines})
        == len({str(line._dash_pattern) for line in lines})
        == 4
    )


def test_windows_equal_those_of_sidekit():
    ends = {name: (window.p_fa, window.p_miss) for name, window in plots.WINDOWS.items()}
    assert ends == {
        "old": ((5e-4, 0.5), (5e-4, 0.5)),
        "new": ((5e-6, 5e-3), (0.01, 0.99)),
        "big": ((5e-6, 0.99), (5e-6, 0.99)),
        "sre10": ((3e-6, 0.5), (3e-4, 0.9)),
    }


@pytest.mark.parametrize(
    ("prior", "effective"), [(None, effective_prior(0.01, 10, 1)), (0.5, 0.5), (0.05, 0.05)]
)
def test_the_min_dcf_point_lies_at_the_prior(prior, effective):
    one = system(distance=2.0)
    figure = plot_det([one], prior=prior)
    cost, p_miss, p_fa = hull_min_dcf(*one[1:], prior=effective)
    (point,) = (
        line
        for line in figure.axes[0].lines
        if line.get_marker() == "o" and line.get_markersize() == 8
    )
    assert (ndtr(point.get_xdata()[0]), ndtr(point.get_ydata()[0])) == pytest.approx((p_fa, p_miss))
    assert f"minDCF({effective:.2g}) {cost:.3f}" in labels(figure)[0]
    assert f"prior {effective:.3g}" in legend_title(figure)


def test_the_rule_of_30_is_drawn_only_inside_the_window():
    def drawn(figure):
        dotted = [line for line in figure.axes[0].lines if line.get_linewidth() == 1.1]
        across = [
            float(ndtr(line.get_ydata()[0])) for line in dotted if np.ptp(line.get_ydata()) == 0
        ]
        upright = [
            float(ndtr(line.get_xdata()[0])) for line in dotted if np.ptp(line.get_xdata()) == 0
        ]
        return upright, across

    figure = plot_det([system(), system(n_nontarget=60000)], window="sre10")
    assert drawn(figure) == (pytest.approx([30 / 5000, 30 / 60000]), pytest.approx([30 / 500]))
    assert {text.get_text() for text in figure.axes[0].texts} == {"30 false alarms", "30 misses"}
    assert drawn(plot_det([system(n_target=20, n_nontarget=40)], window="sre10")) == ([], [])


def test_a_curve_outside_the_window_is_noted():
    texts = labels(
        plot_det([("perfect", [2.0, 3.0], [0.0, 1.0]), ("none", [1.0], [1.0]), system()])
    )
    assert texts[0] == "perfect (EER 0.00 %, minDCF(0.092) 0.000)\ncurve outside this window"
    assert texts[1] == "none (EER 50.00 %, minDCF(0.092) 1.000)\nminDCF point outside this window"
    assert "outside" not in texts[2]


@pytest.mark.parametrize(
    ("distance", "lowest", "highest"), [(3.0, 5e-4, 0.5), (0.35, 5e-4, 0.8), (6.6, 1e-4, 0.5)]
)
def test_the_window_grows_to_show_the_curves(distance, lowest, highest):
    figure = plot_det([system(distance=distance, n_target=5000)], prior=0.5)
    axes = figure.axes[0]
    assert ndtr(axes.get_xlim()) == pytest.approx((lowest, highest))
    assert axes.get_xlim() == axes.get_ylim()
    assert list(axes.get_xticks()) == list(axes.get_yticks())
    assert axes.get_box_aspect() == 1
    assert "outside" not in labels(figure)[0]


def test_the_eer_lies_on_the_diagonal_and_the_curve_near_its_hull():
    one = system(distance=1.0)
    figure = plot_det([one])
    lines = figure.axes[0].lines
    ring = next(line for line in lines if line.get_markerfacecolor() == "white")
    assert ndtr(ring.get_xdata()[0]) == ndtr(ring.get_ydata()[0]) == pytest.approx(eer(*one[1:]))
    thick, thin = (
        next(line for line in without_markers(figure.axes[0]) if line.get_linewidth() == width)
        for width in (1.8, 0.8)
    )
    x, y = ndtr(thick.get_xdata()), ndtr(thick.get_ydata())
    # the curve passes through the error rates of a threshold, the hull lies below
    p_fa, p_miss = np.mean(one[2] >= 0.4), np.mean(one[1] < 0.4)
    assert np.hypot(x - p_fa, y - p_miss).min() < 3e-3
    below = np.interp(x, np.sort(ndtr(thin.get_xdata())), np.sort(ndtr(thin.get_ydata()))[::-1])
    assert np.all(below <= y + 1e-4)
    assert "Thick: the curve itself; thin: its convex hull" in legend_title(figure)


# ---- many systems, equal curves, colours


LINES = {
    "det": plot_det,
    "roc": plots.plot_roc,
    "ece": plots.plot_ece,
    "ape": plots.plot_ape,
    "zebra": plots.plot_zebra,
    "reliability": plots.plot_reliability,
    "cmc": lambda systems, **where: plots.plot_cmc(
        {name: np.linspace(target[0] % 0.5, 1, 20) for name, target, _ in systems}, **where
    ),
    "linkability": lambda systems, **where: plots.plot_linkability(
        {name: Curve(SIZES, (target[0] % 1) / SIZES, *[np.nan / SIZES] * 2, 1 / SIZES)
         for name, target, _ in systems}, **where
    ),
}  # fmt: skip
MANY = [scores(f"system {number}", 3.0 - 0.2 * number) for number in range(14)]


def entries_of(figure):
    """Colour, dashes and marker of each system in the legend."""
    looks = []
    for line, text in zip(figure.legends[0].get_lines(), labels(figure), strict=True):
        if text.startswith("system"):
            dashes = str(line._dash_pattern)
            looks.append((to_hex(line.get_color()), dashes, line.get_marker()))
    return looks


@pytest.mark.parametrize("kind", LINES)
def test_fourteen_systems_differ_in_the_legend_and_along_their_lines(kind):
    figure = LINES[kind](MANY)
    looks = entries_of(figure)
    assert len(set(looks)) == 14
    figure.draw_without_rendering()
    drawn = set()
    for line in figure.axes[0].lines:
        if line.get_linewidth() == 1.8:
            dashes = str(line._dash_pattern)
            drawn.add((to_hex(line.get_color()), dashes, line.get_marker()))
    assert len(drawn) == 14
    assert len({look for look in drawn if look[2] != "None"}) == 7


@pytest.mark.parametrize("kind", LINES)
def test_equal_curves_are_named(kind):
    again = [("system again", *MANY[1][1:])]
    texts = labels(LINES[kind]([*MANY[:3], *again]))
    told = [text.split("\n")[-1] for text in texts if "same curve" in text]
    assert told == ["same curve as system 1"]


def test_a_curve_beyond_the_plot_is_noted():
    texts = labels(plots.plot_ece([scores("system 1", 3.0, 4.0, 40.0), MANY[0]]))
    assert [text.endswith("curve goes on above this plot") for text in texts[1:3]] == [True, False]


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize(
    ("color", "expected"),
    [
        ("red", ["#ff0000"] * 3),
        ((0.0, 0.0, 1.0), ["#0000ff"] * 3),
        (["red", "k", "#00ff00"], ["#ff0000", "#000000", "#00ff00"]),
        ({"system 1": "red"}, ["#0072b2", "#ff0000", "#009e73"]),
    ],
)
def test_colours_can_be_chosen(kind, color, expected):
    assert [look[0] for look in entries_of(LINES[kind](MANY[:3], color=color))] == expected


@pytest.mark.parametrize(
    ("color", "words"),
    [
        ("rouge", "a colour of matplotlib, got 'rouge'"),
        (["red", "rouge", "k"], "a colour of matplotlib, got 'rouge'"),
        (["red", "k"], "a colour for each of 3 systems, got 2"),
        ({"system 9": "red"}, "colours of system 0, system 1, system 2, got one of 'system 9'"),
    ],
)
def test_colours_that_fit_no_system_are_refused(color, words):
    with pytest.raises(DataError, match=words):
        plot_det(MANY[:3], color=color)


def test_a_histogram_takes_colours_of_its_classes():
    figure = plots.plot_histogram(MANY[:1], color={"nontarget": "red"})
    colours = [to_hex(line.get_color()) for line in figure.axes[0].lines]
    assert colours == ["#0072b2", "#ff0000"]


def test_the_legend_can_be_left_out():
    figure = plot_det(MANY[:2], legend=False)
    assert not figure.legends
    assert figure.axes[0].get_legend() is None


# ---- other plots of scores


def test_the_roc_passes_through_its_rates():
    _, target, nontarget = SYSTEMS[1]
    figures = [plots.plot_roc(SYSTEMS[1:2]), plots.plot_roc(SYSTEMS[1:2], lowest_fpr=1e-2)]
    line, logarithmic = (figure.axes[0].lines[1] for figure in figures[:2])
    for threshold in (-1.0, 0.3, 2.0):
        fpr, tpr = np.mean(nontarget >= threshold), np.mean(target >= threshold)
        assert np.interp(fpr, line.get_xdata()[::-1], line.get_ydata()[::-1]) == pytest.approx(
            tpr, abs=2 / 300
        )
        found = np.interp(fpr, logarithmic.get_xdata(), logarithmic.get_ydata())
        assert found == pytest.approx(tpr, abs=2 / 300)
    assert (
        f"(EER {100 * eer(target, nontarget):.2f} %, AUC {auc(target, nontarget):.3f})"
        in labels(figures[0])[0]
    )
    assert [text for _, text in ticks(figures[1].axes[0].xaxis)] == ["0.01", "0.1", "1"]
    assert [figure.axes[0].get_xscale() for figure in figures] == ["linear", "log"]
    assert labels(figures[0])[-1] == "chance"


def test_the_zebra_legend_equals_the_reference():
    expected = ["perfect privacy (0, 0, 0)", *(f"{name} ({zebra(a, b)})" for name, a, b in SYSTEMS)]
    assert labels(plots.plot_zebra(SYSTEMS)) == expected
    assert re.fullmatch(r"original \(0\.\d{3}, \d\.\d{3}, [A-F]\)", expected[1])
    # the most private one comes first
    assert labels(plots.plot_zebra(SYSTEMS, sort=True)) == [expected[0], *expected[:0:-1]]
    assert labels(plots.plot_zebra(SYSTEMS, scale=(("low", 1.0), ("high", np.inf))))[1].endswith(
        ", high)"
    )
    looks = [
        line.get_color()
        for line in plots.plot_zebra(SYSTEMS, numbers={"original": 5}).axes[0].lines
    ]
    assert looks[1] == plots.plot_zebra([("x", *SYSTEMS[0][1:])] * 6).axes[0].lines[6].get_color()


def test_curves_over_the_prior_equal_the_metrics():
    _, target, nontarget = SYSTEMS[1]
    figures = [
        plots.plot_ece(SYSTEMS[1:2]),
        plots.plot_ece(SYSTEMS[1:2], normalised=True),
        plots.plot_ape(SYSTEMS[1:2]),
        plots.plot_ape(SYSTEMS[1:2], normalised=True),
        plots.plot_zebra(SYSTEMS[1:2]),
    ]
    x = figures[0].axes[0].lines[0].get_xdata()
    assert x == pytest.approx(np.linspace(-10, 10, 201))  # the grid of the reference
    for place in (0, 60, 100, 137, 200):
        prior = float(1 / (1 + np.exp(-x[place])))
        entropy = -(prior * np.log2(prior) + (1 - prior) * np.log2(1 - prior))
        bits = [
            entropy,
            ece(target, nontarget, prior=prior),
            min_ece(target, nontarget, prior=prior),
        ]
        options = {"p_target": prior, "normalised": False}
        errors = [
            min(prior, 1 - prior),
            act_dcf(target, nontarget, **options),
            min_dcf(target, nontarget, **options),
        ]
        found = [
            [float(line.get_ydata()[place]) for line in figure.axes[0].lines] for figure in figures
        ]
        assert found[0] == pytest.approx(bits, rel=1e-9)
        assert found[1] == pytest.approx([bit / entropy for bit in bits], rel=1e-9)
        assert found[2] == pytest.approx(errors, rel=1e-9)
        assert found[3] == pytest.approx(
            [error / min(prior, 1 - prior) for error in errors], rel=1e-9
        )
        assert found[4] == pytest.approx([bits[0], bits[2]], rel=1e-9)
    numbers = f"(Cllr {cllr(target, nontarget):.3f}, minimum {min_cllr(target, nontarget):.3f} bit)"
    assert all(numbers in labels(figure)[1] for figure in figures[:4])


def test_the_range_of_priors_and_the_eer_line_can_be_set():
    """The EER is the highest least error rate over all priors: the dotted curve touches its line from below."""
    figure = plots.plot_ape(SYSTEMS[1:], log_odds=(-3, 2.5), with_eer=True)
    default, *drawn = figure.axes[0].lines
    assert (default.get_xdata()[0], default.get_xdata()[-1], *figure.axes[0].get_xlim()) == (
        -3,
        2.5,
        -3,
        2.5,
    )
    for one, (_, least, level) in zip(SYSTEMS[1:], (drawn[:3], drawn[3:]), strict=True):
        rate = eer(*one[1:])
        assert list(level.get_ydata()) == [rate, rate]
        assert rate * 0.98 <= least.get_ydata().max() <= rate + 1e-12
        assert any(f"EER {100 * rate:.2f} %)" in label for label in labels(figure))
    for draw_kind in (plots.plot_ece, plots.plot_zebra):
        drawn = draw_kind(SYSTEMS[:1], log_odds=(-1, 4)).axes[0].lines
        assert {(line.get_xdata()[0], line.get_xdata()[-1]) for line in drawn} == {(-1, 4)}


@pytest.mark.parametrize(
    ("scale", "offset", "warned"),
    [(1.0, 0.0, False), (0.05, 0.0, True), (1.0, 6.0, True), (1.3, 0.1, False)],
)
def test_uncalibrated_scores_raise_a_warning(scale, offset, warned, caplog):
    one = scores("a", 3.0, scale, offset)
    for draw in (plots.plot_ece, plots.plot_ape):
        caplog.clear()
        draw([one], normalised=True)
        assert ("plot of a: the scores are not calibrated LLRs" in caplog.text) == warned


def test_reversed_scores_raise_a_warning(caplog):
    name, target, nontarget = SYSTEMS[0]
    plot_det([(name, nontarget, target)])
    assert "plot of original: REVERSED? target trials score below" in caplog.text


def test_a_histogram_is_a_density_and_names_infinite_scores():
    figure = plots.plot_histogram([("x", [1.0, 2.0, np.inf, 3.0], [0.0, -1.0])], bins=8)
    for line, area in zip(figure.axes[0].lines, (0.75, 1.0), strict=True):
        assert np.sum(np.diff(line.get_xdata()) * line.get_ydata()[:-1]) == pytest.approx(area)
    assert labels(figure) == ["x, target (4 trials, 1 infinite)", "x, nontarget (2 trials)"]
    plots.plot_histogram([("x", [1.0], [1.0])])


def test_a_histogram_on_own_scales_gives_each_system_its_bins_and_height():
    target, nontarget = SYSTEMS[0][1:]
    both = [("wide", target, nontarget), ("narrow", 1 + target / 100, 1 + nontarget / 100)]
    axes = plots.plot_histogram(both, bins=20, own_scale=True).axes[0]
    for first, second in zip(axes.lines[:2], axes.lines[2:], strict=True):
        assert first.get_xdata() == pytest.approx(second.get_xdata())
        assert first.get_ydata() == pytest.approx(second.get_ydata() - 1)
    assert ticks(axes.xaxis) == [(0.0, "lowest"), (1.0, "highest")]
    assert [text.split("\n")[-1] for _, text in ticks(axes.yaxis)] == [
        f"{side.min():.3g} to {side.max():.3g}"
        for side in (np.concatenate(one[1:]) for one in reversed(both))
    ]


def test_calibrated_scores_lie_on_the_diagonal():
    _, target, nontarget = SYSTEMS[1]
    claimed, share = reliability(sort_scores(*pav_llrs(target, nontarget)), 0.2)
    assert claimed == pytest.approx(share, abs=1e-12)


# ---- privacy against utility, and a training


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_better_utility_is_drawn_to_the_right(lower_is_better):
    axes = plot_privacy_utility(POINTS, lower_is_better=lower_is_better).axes[0]
    assert axes.xaxis_inverted() == lower_is_better
    points = [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in axes.lines
        if line.get_linestyle() == "None"
    ]
    assert points == [(4.0, 1.0), (12.0, 20.0)]
    low, high = sorted(axes.get_xlim())
    assert low < 4 < 14 < high
    crossing = [line for line in axes.lines if line.get_linewidth() == 1.4]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in crossing] == [
        pytest.approx((12.0, 12.0, 10.0, 30.0)),
        pytest.approx((11.0, 14.0, 20.0, 20.0)),
    ]


def test_bands_end_at_the_targets():
    axes = plot_privacy_utility(POINTS, targets=(0.15, 0.3)).axes[0]
    assert sorted(area.get_paths()[0].vertices[:, 1].max() for area in axes.collections) == [
        15.0,
        30.0,
    ]
    assert sorted((text.get_text(), text.xy[1]) for text in axes.texts) == [
        ("15 %", 0.3),
        ("30 %", 0.6),
    ]
    assert not plot_privacy_utility(POINTS, targets=()).axes[0].collections


# ---- where plots are drawn, which settings apply, and files


@pytest.mark.parametrize("kind", ["det", "cmc"])
def test_shown_figures_follow_user_settings_and_saved_files_the_house_style(kind, tmp_path):
    DRAWN[kind](SYSTEMS, path=tmp_path / "a.svg")
    with mpl.rc_context(
        BIG | {"axes.facecolor": "red", "svg.hashsalt": None, "lines.linewidth": 9}
    ):
        before = dict(mpl.rcParams)
        figure = DRAWN[kind](SYSTEMS)
        DRAWN[kind](SYSTEMS, path=tmp_path / "b.svg")
        with plots.house_style():
            assert DRAWN[kind](SYSTEMS).axes[0].title.get_fontsize() == pytest.approx(12.0)
        assert dict(mpl.rcParams) == before
    assert figure.axes[0].title.get_fontsize() == pytest.approx(23.0)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("kind", DRAWN)
def test_plots_are_drawn_into_given_axes(kind, tmp_path):
    figure = Figure(figsize=(12, 6), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert DRAWN[kind](SYSTEMS, ax=right, path=tmp_path / "x.png") is figure
    assert right.lines
    assert right.get_title()
    assert not left.lines
    assert figure.axes == [left, right]
    assert not figure.legends
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_one_call_writes_all_formats_with_reproducible_bytes(tmp_path):
    signatures = {
        "det.png": b"\x89PNG",
        "det.pdf": b"%PDF",
        "det.SVG": b"<?xml",
        "det.tex": b"% Compile",
        "det.pgf": b"% A picture",
    }
    written = []
    for folder in ("first", "second"):
        plot_det([system()], path=[tmp_path / folder / name for name in signatures])
        written.append({name: (tmp_path / folder / name).read_bytes() for name in signatures})
    assert written[0] == written[1]
    assert all(written[0][name].startswith(signature) for name, signature in signatures.items())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda **where: plot_det([], **where), "expected a system"),
        (lambda path: plot_det([system()], path=path.with_suffix(".gif")), "extension '.gif'"),
        (lambda **where: plot_det([system()], window="new york", **where), "got 'new york'"),
        (lambda **where: plot_det([system()], prior=-2.29, **where), "prior"),
        (
            lambda **where: plots.plot_roc(SYSTEMS, lowest_fpr=2, **where),
            "from 0 .linear. to below 1, got 2",
        ),
        (
            lambda **where: plots.plot_histogram([("x", [np.inf], [-np.inf])], **where),
            "only infinite ones",
        ),
        (lambda **where: plots.plot_reliability(SYSTEMS, prior=0, **where), "between 0 and 1"),
        (lambda **where: plots.plot_ece([("x", [np.nan], [1.0])], **where), "NaN"),
        (
            lambda **where: plots.plot_ece(SYSTEMS, log_odds=(2, -2), **where),
            "-30 and 30, got 2 to -2",
        ),
        (lambda **where: plots.plot_ape(SYSTEMS, normalised=True, with_eer=True), "not normalised"),
        (lambda **where: plots.plot_likelihood({"a": []}, **where), "got none"),
        (
            lambda path: plots.plot_likelihood({"x": [1.0]}, path=path.with_suffix(".tex")),
            "extension '.tex'",
        ),
        (lambda **where: plot_privacy_utility([], **where), "expected a system to plot"),
        (
            lambda **where: plot_privacy_utility(
                [TradeOff("a", Interval(), Interval(0.1))], **where
            ),
            "a: expected a finite utility",
        ),
        (
            lambda **where: plot_privacy_utility(
                [TradeOff("a", Interval(1.0), Interval(10.0))], **where
            ),
            "got 1 and 10",
        ),
        (
            lambda **where: plot_privacy_utility(POINTS, targets=(10, 20), **where),
            "target EERs that rise",
        ),
    ],
)
def test_malformed_input_is_refused_and_nothing_written(tmp_path, call, words):
    with pytest.raises(DataError, match=words):
        call(path=tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


# ---- TeX


@pytest.mark.parametrize("kind", IN_TEX)
def test_tex_files_are_complete_documents_and_pictures(kind, tmp_path):
    DRAWN[kind](SYSTEMS, path=[tmp_path / "x.tex", tmp_path / "x.pgf"])
    document = (tmp_path / "x.tex").read_text()
    picture = (tmp_path / "x.pgf").read_text()
    for text in (document, picture):
        body = re.sub(r"\\[{}\\#$%&_]", "", text)
        assert body.count("{") == body.count("}")
        assert text.count(r"\begin{") == text.count(r"\end{")
        assert r"\input" not in re.sub("^%.*|inputenc", "", text, flags=re.MULTILINE)
    assert document.count(r"\begin{document}") == 1
    loaded = re.findall(r"^\\usepackage(?:\[.*?\])?\{(\w+)\}", document, re.MULTILINE)
    assert {*loaded, "lmodern"} == {"fontenc", "inputenc", "textcomp", "lmodern", "pgf"}
    assert r"\documentclass" not in picture
    label = DRAWN[kind](SYSTEMS).axes[0].get_xlabel().replace("%", r"\%")
    assert label in document
    assert label in picture


def test_tex_prints_every_letter_of_a_name(tmp_path):
    plots.plot_cmc({"B&B {x} ~^#\\": [0.5, 1.0]}, path=tmp_path / "x.pgf")
    expected = r"B\&B \{x\} \textasciitilde{}\textasciicircum{}\#\textbackslash{}"
    assert expected in (tmp_path / "x.pgf").read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("kind", IN_TEX)
def test_tex_files_compile(tmp_path, kind):
    DRAWN[kind]([*SYSTEMS, scores('Łódź, 語 <|>"', 2.0)], path=tmp_path / "x.tex")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:].decode("latin-1")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
