"""Every kind of plot: what it shows, its picture, and its TeX.

The pictures in ``tests/data/plots`` were looked at. Beside each lies its description: lines, looks, axes and words as
numbers and text, which are the same under every version of matplotlib; pixels are compared under one alone. After a
wanted change write both anew with ``SPKVER_NEW_PICTURES=1 python -m pytest tests/evaluation/test_plot_kinds.py``, and
look at the pictures again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evaluation as ev
from evaluation import plots
from evaluation.metrics.calibration import cllr, ece, min_cllr, min_ece
from evaluation.metrics.detection import act_dcf, min_dcf
from evaluation.metrics.disclosure import zebra
from evaluation.metrics.equal_error import eer
from evaluation.plots import chart, densities, draw, priors, training
from evaluation.plots.chart import Axis, Chart, Line, Look, as_cores
from evaluation.trials.lists import Key, Scores
from spkbase.errors import DataError


def scores(name: str, distance: float, scale: float = 1.0, offset: float = 0.0) -> tuple[str, Any, Any]:
    """LLRs of Gaussian scores, then miscalibrated, without a random number: their quantiles."""
    from scipy.special import ndtri

    target, nontarget = (ndtri((np.arange(count) + 0.5) / count) for count in (300, 2000))
    half = distance**2 / 2
    return name, scale * (distance * target + half) + offset, scale * (distance * nontarget - half) + offset


SYSTEMS = [scores("original", 3.5), scores("anonymised, 50% of $x_1$", 1.2, 2.0, 0.5), scores("B&B {x} ~^#\\", 0.3)]
KINDS: dict[str, Callable[..., None]] = {
    "det": lambda systems, path: plots.plot_det(systems, path=path, style=plots.DetStyle(window="big", steppy=True)),
    "roc": lambda systems, path: plots.plot_roc(systems, path=path, lowest_fpr=0),
    "roc_log": lambda systems, path: plots.plot_roc(systems, path=path, lowest_fpr=1e-3),
    "ece": lambda systems, path: plots.plot_ece(systems, path=path),
    "nece": lambda systems, path: plots.plot_ece(systems, path=path, normalised=True),
    "ape": lambda systems, path: plots.plot_ape(systems, path=path),
    "nber": lambda systems, path: plots.plot_ape(systems, path=path, normalised=True),
    "zebra": lambda systems, path: plots.plot_zebra(systems, path=path, sort=True),
    "histogram": lambda systems, path: plots.plot_histogram(systems[:2], path=path),
    "histogram_of_one": lambda systems, path: plots.plot_histogram(systems[:1], path=path),
    "reliability": lambda systems, path: plots.plot_reliability(systems, path=path),
    "likelihood": lambda systems, path: plots.plot_likelihood(
        {one[0]: -9 + np.log(np.arange(1, 9)) / (2 + place) for place, one in enumerate(systems)},
        path,
        doublings=[(0, 1), (2, 2), (5, 4)],
    ),
}
CHARTS = [kind for kind in KINDS if kind != "likelihood"]


def picture(path: Path) -> np.ndarray:
    """The grey picture, 320 points wide."""
    from PIL import Image

    with Image.open(path) as image:
        grey = image.convert("L")
        return np.asarray(grey.resize((320, round(320 * grey.height / grey.width)), Image.Resampling.BOX))


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of the mean grey of squares, 0 to 1; 1 where the shapes differ much."""
    if abs(one.shape[0] - other.shape[0]) > 0.03 * other.shape[0]:
        return 1.0
    height = min(one.shape[0], other.shape[0]) // 8 * 8
    squares = [part[:height].reshape(height // 8, 8, 40, 8).mean(axis=(1, 3)) for part in (one, other)]
    return float(np.abs(squares[0] - squares[1]).max() / 255)


MATPLOTLIB = "3.11"  # the pictures are its; other versions lay text and lines out a little differently


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_is_the_one_that_was_looked_at(tmp_path: Path, data: Path, kind: str) -> None:
    import matplotlib
    from PIL import Image

    if not matplotlib.__version__.startswith(f"{MATPLOTLIB}."):
        pytest.skip(f"the pictures were made with matplotlib {MATPLOTLIB}, this is {matplotlib.__version__}")
    KINDS[kind](SYSTEMS, tmp_path / "x.png")
    now, wanted = picture(tmp_path / "x.png"), data / "plots" / f"{kind}.png"
    if os.environ.get("SPKVER_NEW_PICTURES"):
        wanted.parent.mkdir(exist_ok=True)
        Image.fromarray(now).save(wanted, optimize=True)
    assert difference(now, picture(wanted)) < 0.07
    # the comparison would see a system less
    KINDS[kind](SYSTEMS[1:], tmp_path / "y.png")
    assert difference(picture(tmp_path / "y.png"), picture(wanted)) > 0.1


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> list[Chart]:
    """Charts as they were when saved."""
    saved: list[Chart] = []
    for name in ("det", "priors", "densities"):
        module = __import__(f"evaluation.plots.{name}", fromlist=["x"])
        monkeypatch.setattr(module, "render_chart", lambda one, path=None, ax=None: saved.append(one))
    return saved


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures of matplotlib as they were when saved."""
    saved: list[Any] = []
    for module in (draw, training):
        monkeypatch.setattr(module, "save_figure", lambda figure, paths: saved.append(figure))
    return saved


def labels(one: Chart) -> list[str]:
    return [label.replace("\N{NO-BREAK SPACE}", " ") for _, label in one.entries]


def thinned_points(values: Any) -> list[float]:
    """Some 40 values and the last, to seven digits."""
    return [float(f"{value:.7g}") for value in [*values[:: max(1, len(values) // 40)], values[-1]]]


def description_of(drawn: Chart) -> dict[str, Any]:
    """A chart as JSON holds it."""
    lines = [
        {
            "points": len(line.x),
            "x": thinned_points(line.x),
            "y": thinned_points(line.y),
            "look": asdict(line.look),
            "base": None if line.base is None else thinned_points(line.base),
        }
        for line in drawn.lines
    ]
    entries = [{"look": asdict(look), "label": label} for look, label in drawn.entries]
    return {**asdict(drawn), "lines": lines, "entries": entries}


def shown_by(figure: Any) -> dict[str, Any]:
    """What a figure of matplotlib shows, apart from where its layout puts it."""
    from matplotlib.colors import to_hex

    axes = figure.axes[0]
    legend = figure.legends[0] if figure.legends else axes.get_legend()
    lines = [
        {
            "points": len(line.get_xdata()),
            "x": thinned_points(line.get_xdata()),
            "y": thinned_points(line.get_ydata()),
            "colour": to_hex(line.get_color()),
            "width": line.get_linewidth(),
            "marker": line.get_marker(),
        }
        for line in axes.lines
    ]
    return {
        "title": axes.get_title(),
        "x": [axes.get_xlabel(), *axes.get_xlim()],
        "y": [axes.get_ylabel(), *axes.get_ylim()],
        "lines": lines,
        "areas": [to_hex(area.get_facecolor()[0]) for area in axes.collections],
        "notes": [text.get_text() for text in axes.texts],
        "entries": [text.get_text() for text in legend.get_texts()] if legend else [],
    }


def assert_alike(found: Any, expected: Any, where: str = "") -> None:
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
def test_the_description_is_that_of_the_picture(data: Path, charts: list[Chart], figures: list[Any], kind: str) -> None:
    def described(systems: list[tuple[str, Any, Any]]) -> Any:
        KINDS[kind](systems, Path("x.png"))
        description = description_of(charts[-1]) if kind in CHARTS else shown_by(figures[-1])
        return json.loads(json.dumps(description))

    wanted, now = data / "plots" / f"{kind}.json", described(SYSTEMS)
    if os.environ.get("SPKVER_NEW_PICTURES"):
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in now.items()]
        wanted.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert_alike(now, json.loads(wanted.read_text()))
    with pytest.raises(AssertionError):
        assert_alike(described(SYSTEMS[1:]), json.loads(wanted.read_text()))


@pytest.mark.parametrize("kind", CHARTS)
def test_matplotlib_draws_the_whole_description(monkeypatch: pytest.MonkeyPatch, figures: list[Any], kind: str) -> None:
    drawn: list[Chart] = []
    draw_chart = draw.draw_chart
    monkeypatch.setattr(
        draw, "draw_chart", lambda figure, one, ax=None: (drawn.append(one), draw_chart(figure, one, ax))
    )
    KINDS[kind](SYSTEMS, Path("x.png"))
    described, shown = drawn[0], shown_by(figures[0])
    assert (shown["title"], shown["notes"]) == (described.title, [note.text for note in described.notes])
    for axis, wanted in (("x", described.x), ("y", described.y)):
        assert shown[axis] == [wanted.label, pytest.approx(wanted.low), pytest.approx(wanted.high)]
    assert [label.split() for label in shown["entries"]] == [label.split() for _, label in described.entries]
    for found, line in zip(shown["lines"], described.lines, strict=True):
        assert (found["points"], found["x"], found["y"]) == (
            len(line.x), thinned_points(line.x), thinned_points(line.y),
        )  # fmt: skip
        assert (found["colour"], found["width"]) == (line.look.colour, line.look.width)
        assert found["marker"] == {"ring": "o", "": "None"}.get(line.look.marker, line.look.marker)
    assert shown["areas"] == [line.look.colour for line in described.lines if line.look.fill]


def test_the_legend_of_zebra_is_that_of_the_reference(charts: list[Chart]) -> None:
    plots.plot_zebra(SYSTEMS, path="x.png")
    expected = ["perfect privacy (0, 0, 0)", *(f"{name} ({zebra(a, b)})" for name, a, b in SYSTEMS)]
    assert labels(charts[0]) == expected
    assert re.fullmatch(r"original \(0\.\d{3}, \d\.\d{3}, [A-F]\)", expected[1])
    plots.plot_zebra(SYSTEMS, path="x.png", sort=True)
    assert labels(charts[1]) == [expected[0], *expected[:0:-1]]  # the most private first
    plots.plot_zebra(SYSTEMS, path="x.png", scale=(("low", 1.0), ("high", np.inf)))
    assert labels(charts[2])[1].endswith(", high)")


def test_curves_over_the_prior_are_the_metrics(charts: list[Chart]) -> None:
    _, target, nontarget = SYSTEMS[1]
    plots.plot_ece(SYSTEMS[1:2], path="x.png")
    plots.plot_ece(SYSTEMS[1:2], path="x.png", normalised=True)
    plots.plot_ape(SYSTEMS[1:2], path="x.png")
    plots.plot_ape(SYSTEMS[1:2], path="x.png", normalised=True)
    plots.plot_zebra(SYSTEMS[1:2], path="x.png")
    for place in (0, 60, 100, 137, 200):
        x = float(charts[0].lines[0].x[place])
        prior = 1 / (1 + np.exp(-x))
        entropy = -(prior * np.log2(prior) + (1 - prior) * np.log2(1 - prior))
        bits = [entropy, ece(target, nontarget, prior=prior), min_ece(target, nontarget, prior=prior)]
        options = {"p_target": prior, "normalised": False}
        errors = [min(prior, 1 - prior), act_dcf(target, nontarget, **options), min_dcf(target, nontarget, **options)]
        found = [[float(line.y[place]) for line in one.lines] for one in charts]
        assert found[0] == pytest.approx(bits, rel=1e-9)
        assert found[1] == pytest.approx([bit / entropy for bit in bits], rel=1e-9)
        assert found[2] == pytest.approx(errors, rel=1e-9)
        assert found[3] == pytest.approx([error / min(prior, 1 - prior) for error in errors], rel=1e-9)
        assert found[4] == pytest.approx([bits[0], bits[2]], rel=1e-9)
    numbers = f"(Cllr {cllr(target, nontarget):.3f}, minimum {min_cllr(target, nontarget):.3f} bit)"
    assert all(numbers in labels(one)[1] for one in charts[:4])


def test_the_range_of_priors_and_the_eer(charts: list[Chart]) -> None:
    """The EER is the highest least error rate over all priors: the dotted curve touches its line from below."""
    style = plots.PriorStyle((-3, 2.5), eer=True)
    plots.plot_ape(SYSTEMS[1:], path="x.png", style=style)
    default, *drawn = charts[0].lines
    assert (default.x[0], default.x[-1], charts[0].x.low, charts[0].x.high) == (-3, 2.5, -3, 2.5)
    for system, (actual, least, level) in zip(SYSTEMS[1:], (drawn[:3], drawn[3:]), strict=True):
        rate = eer(*system[1:])
        assert level.y.tolist() == [rate, rate]
        assert least.y.max() <= rate + 1e-12
        assert least.y.max() == pytest.approx(rate, rel=0.02)
        assert (actual.look.colour, actual.look.dash) != (level.look.colour, level.look.dash)
        assert any(f"EER {100 * rate:.2f} %)" in label for label in labels(charts[0]))
    for draw_kind in (plots.plot_ece, plots.plot_zebra):
        draw_kind(SYSTEMS[:1], path="x.png", style=plots.PriorStyle((-1, 4)))
        assert [(line.x[0], line.x[-1]) for line in charts[-1].lines] == [(-1, 4)] * len(charts[-1].lines)
    with pytest.raises(DataError, match="not normalised"):
        plots.plot_ape(SYSTEMS, style=style, normalised=True)
    with pytest.raises(DataError, match="rise within -30 and 30, got 2 to -2"):
        plots.plot_ece(SYSTEMS, style=plots.PriorStyle((2, -2)))


def test_histograms_on_scales_of_their_own(charts: list[Chart]) -> None:
    """A system of a narrow range has as many bins as one of a wide one, and is as high."""
    target, nontarget = SYSTEMS[0][1:]
    both = [("wide", target, nontarget), ("narrow", 1 + target / 100, 1 + nontarget / 100)]
    plots.plot_histogram(both, path="x.png", bins=20, own_scale=True)
    plots.plot_histogram(both, path="x.png", bins=20)
    narrow, wide = charts[0].lines[:2], charts[0].lines[2:]
    for first, second in zip(narrow, wide, strict=True):
        assert first.x == pytest.approx(second.x)
        assert first.y == pytest.approx(second.y - 1)
    assert max(float(line.y.max()) for line in narrow) == pytest.approx(1 / 1.05)
    assert len(np.unique(charts[1].lines[0].y)) < len(np.unique(narrow[0].y))
    assert [text.split("\n")[-1] for _, text in charts[0].y.ticks] == [
        f"{side.min():.3g} to {side.max():.3g}" for side in (np.concatenate(one[1:]) for one in reversed(both))
    ]
    assert charts[0].x.ticks == ((0.0, "lowest"), (1.0, "highest"))


@pytest.mark.parametrize("draw_kind", ["det", "roc", "ece", "ape", "zebra", "histogram", "reliability"])
def test_an_empty_title_is_a_title(charts: list[Chart], draw_kind: str) -> None:
    for title in ("", "mine"):
        getattr(plots, f"plot_{draw_kind}")(SYSTEMS[:1], path="x.png", title=title)
    assert [one.title for one in charts] == ["", "mine"]


def test_the_axis_of_the_prior_is_the_references(charts: list[Chart]) -> None:
    plots.plot_zebra(SYSTEMS, path="x.png")
    assert charts[0].lines[0].x == pytest.approx(np.linspace(-10, 10, 201))


@pytest.mark.parametrize(
    ("draw_kind", "order"),
    [
        (plots.plot_det, [2, 1, 0]),
        (plots.plot_roc, [2, 1, 0]),
        (plots.plot_ece, [0, 1, 2]),
        (plots.plot_ape, [0, 1, 2]),
        (plots.plot_reliability, [2, 0, 1]),
    ],
)
def test_the_legend_can_be_sorted(charts: list[Chart], draw_kind: Callable[..., None], order: list[int]) -> None:
    draw_kind(SYSTEMS, path="x.png", sort=True)
    draw_kind(SYSTEMS, path="x.png")
    names = [one[0] for one in SYSTEMS]
    found, unsorted = (
        [name for label in labels(one) for name in names if label.startswith(f"{name} (")] for one in charts
    )
    assert found == [names[place] for place in order]
    assert unsorted == names


def test_the_roc_runs_through_its_rates(charts: list[Chart]) -> None:
    _, target, nontarget = SYSTEMS[1]
    plots.plot_roc(SYSTEMS[1:2], path="x.png", lowest_fpr=0)
    plots.plot_roc(SYSTEMS[1:2], path="x.png", lowest_fpr=1e-2)
    plots.plot_roc(SYSTEMS[1:2], path="x.png")
    for threshold in (-1.0, 0.3, 2.0):
        fpr, tpr = np.mean(nontarget >= threshold), np.mean(target >= threshold)
        line, logarithmic = charts[0].lines[1], charts[1].lines[1]
        assert np.interp(fpr, line.x[::-1], line.y[::-1]) == pytest.approx(tpr, abs=2 / 300)
        assert np.interp(np.log10(fpr), logarithmic.x, logarithmic.y) == pytest.approx(tpr, abs=2 / 300)
    assert f"(EER {100 * eer(target, nontarget):.2f} %)" in labels(charts[0])[0]
    assert [text for _, text in charts[1].x.ticks] == ["0.01", "0.1", "1"]
    assert [text for _, text in charts[2].x.ticks] == ["0.001", "0.01", "0.1", "1"]  # of 2,000 nontarget trials


def test_a_histogram_is_a_density_and_names_infinite_scores(charts: list[Chart]) -> None:
    plots.plot_histogram([("x", [1.0, 2.0, np.inf, 3.0], [0.0, -1.0])], path="x.png", bins=8)
    target, nontarget = charts[0].lines
    assert np.sum(np.diff(target.x) * target.y[:-1]) == pytest.approx(0.75)
    assert np.sum(np.diff(nontarget.x) * nontarget.y[:-1]) == pytest.approx(1.0)
    assert labels(charts[0]) == ["x, target (4 trials, 1 infinite)", "x, nontarget (2 trials)"]
    plots.plot_histogram([("x", [1.0], [1.0])], path="x.png")
    with pytest.raises(DataError, match="infinite ones alone"):
        plots.plot_histogram([("x", [np.inf], [-np.inf])], path="x.png")


@pytest.mark.parametrize("plot", ["plot_det", "plot_roc", "plot_ece", "plot_ape", "plot_zebra", "plot_histogram"])
def test_scores_and_a_key_are_taken_in_place_of_two_arrays(charts: list[Chart], plot: str) -> None:
    values, is_target = np.array([2.0, -1.0, 0.5, 1.5]), np.array([True, False, False, True])
    listed = Scores.from_ids(["a"] * 4, ["1", "2", "3", "4"], values)
    key = Key.from_ids(["a"] * 4, ["1", "2", "3", "4"], is_target)
    getattr(ev, plot)([("a", listed, key)])
    getattr(ev, plot)([("a", values[is_target], values[~is_target])])
    assert repr(charts[0]) == repr(charts[1])
    assert ev.effective_prior(0.01, 10, 1) == pytest.approx(0.0917, abs=1e-4)


def test_calibrated_scores_lie_on_the_diagonal() -> None:
    from evaluation.metrics.calibration import pav_llrs

    _, target, nontarget = SYSTEMS[1]
    claimed, share = densities.reliability(as_cores([("x", *pav_llrs(target, nontarget))])[0], 0.2)
    assert claimed == pytest.approx(share, abs=1e-12)


def test_infinite_scores_can_be_plotted(tmp_path: Path) -> None:
    one = ("x", [np.inf, 2.0, -1.0], [-np.inf, 0.0, 1.0])
    for kind in CHARTS:
        KINDS[kind]([one, one, one], [tmp_path / f"{kind}.png", tmp_path / f"{kind}.tex"])
        assert not re.search(r"\((nan|-?inf)|,(nan|-?inf)\)", (tmp_path / f"{kind}.tex").read_text())


def test_scores_of_an_infinite_cllr_can_be_plotted(tmp_path: Path) -> None:
    plots.plot_ece([("x", [-np.inf, 1.0], [0.0])], path=tmp_path / "x.svg")
    assert (tmp_path / "x.svg").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda path: plots.plot_zebra([], path=path / "x.png"),
        lambda path: plots.plot_zebra(SYSTEMS, path=path / "x.gif"),
        lambda path: plots.plot_roc(SYSTEMS, path=path / "x.png", lowest_fpr=2),
        lambda path: plots.plot_histogram(SYSTEMS, path=path / "x.png", bins=0),
        lambda path: plots.plot_reliability(SYSTEMS, path=path / "x.png", prior=0),
        lambda path: plots.plot_ece([("x", [np.nan], [1.0])], path=path / "x.tex"),
        lambda path: plots.plot_likelihood({"x": [1.0]}, path / "x.tex"),
    ],
)
def test_malformed_input_is_refused_and_nothing_written(tmp_path: Path, call: Callable[[Path], None]) -> None:
    with pytest.raises(DataError):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_tex_needs_no_matplotlib(tmp_path: Path) -> None:
    code = f"""
import sys
from evaluation import plots
plots.plot_zebra([("a", [1.0], [0.0])], path={str(tmp_path / "x.tex")!r})
print("matplotlib" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("kind", CHARTS)
def test_tex_is_a_whole_document(tmp_path: Path, kind: str) -> None:
    KINDS[kind](SYSTEMS, tmp_path / "x.tex")
    text = (tmp_path / "x.tex").read_text()
    body = re.sub(r"\\[{}\\#$%&_]", "", text)
    assert body.count("{") == body.count("}")
    assert text.count(r"\begin{") == text.count(r"\end{") == 3
    packages = {"fontenc", "inputenc", "textcomp", "lmodern", "pgfplots"}
    assert set(re.findall(r"\\usepackage(?:\[.*?\])?\{(\w+)\}", text)) == packages
    assert r"\input" not in text.replace("inputenc", "")
    assert all(f"{{{name}}}" in text for name in re.findall(r"colour[A-Z]", text))
    assert text.count(r"\addlegendimage") == text.count(r"\addlegendentry")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("kind", CHARTS)
def test_tex_compiles_alone(tmp_path: Path, kind: str) -> None:
    KINDS[kind]([*SYSTEMS, scores('Łódź, 語 <|>"', 2.0)], tmp_path / "x.tex")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:].decode("latin-1")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def test_thinned_curves_stay_within_a_step() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 1, 200_000))
    y = np.cumsum(rng.exponential(size=len(x)))
    y /= y[-1]
    axis = Axis("", 0.0, 1.0)
    thin_x, thin_y = draw.thinned(x, y, axis, axis)
    assert len(thin_x) < 6100
    assert np.abs(np.interp(x, thin_x, thin_y) - y).max() < 3 / 3000
    assert (thin_x[0], thin_x[-1]) == (pytest.approx(x[0], abs=1e-3), pytest.approx(x[-1], abs=1e-3))


def test_a_chart_of_one_point_and_every_marker_is_drawn(tmp_path: Path) -> None:
    looks = [Look(marker=marker, line=False) for marker in chart.MARKERS]
    lines = tuple(Line(np.array([0.5]), np.array([0.1 * place]), look) for place, look in enumerate(looks))
    one = Chart("title", Axis("x", 0, 1), Axis("y", 0, 1), lines, tuple((look, "a\nb") for look in looks))
    draw.render_chart(one, [tmp_path / "x.png", tmp_path / "x.tex"])
    assert (tmp_path / "x.tex").read_text().count("only marks") == 2 * len(looks)
    assert priors.default_error(np.array([0.0, 2.0, -2.0])) == pytest.approx([0.5, 0.119202922, 0.119202922])
