"""What goes with a run: populations beyond the gallery kept apart from what was measured, plots, impostor scores."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.special import ndtr

from evaluation.embeddings.sets import SpeakerVectors
from evaluation.linkage.agreement import compare_conditions
from evaluation.linkage.curve import linkability_curve
from evaluation.linkage.disclosure import cumulative_match, largest_impostor_scores
from evaluation.linkage.extrapolation import extrapolate, sizes_beyond
from evaluation.linkage.ranks import Ranks, rank_speakers
from evaluation.plots import linkability as plots
from evaluation.reports import linkability as extras
from evaluation.reports.linkability import (
    Beyond,
    Linkage,
    Settings,
    extrapolate_linkage,
    measure_linkage,
    report_extrapolation,
)
from evaluation.uncertainty.resampling import Resampling
from spkbase.errors import DataError
from spkbase.files import to_json

pytestmark = pytest.mark.whole

POPULATIONS = [10_000, 10**6]


def ranks_of(distance: float, seed: int = 0, n: int = 200, impostors: int = 300) -> Ranks:
    rng = np.random.default_rng(seed)
    return Ranks(rng.binomial(impostors, ndtr(-rng.normal(distance, 1, n))), 0, impostors)


@pytest.fixture(scope="module")
def run() -> Linkage:
    return measure_linkage(
        {1: ranks_of(1.5), 3: ranks_of(2.5, 1)}, Settings(sizes="log", resamples=30)
    )


@pytest.fixture(scope="module")
def beyond(run: Linkage) -> dict[int, Beyond]:
    return extrapolate_linkage(run.ranks, run.settings, POPULATIONS, resamples=10)


# ---- extrapolated numbers stand apart


def test_rows_of_the_curve_name_their_origin(
    run: Linkage, beyond: dict[int, Beyond], tmp_path: Path
) -> None:
    extras.write_linkage(tmp_path, run, beyond=beyond)
    rows = list(csv.DictReader((tmp_path / "curve.csv").open()))
    assert {int(row["size"]) <= 301 for row in rows if row["kind"] == "measured"} == {True}
    found = [row for row in rows if row["kind"] == "extrapolated"]
    assert [(row["utterances"], int(row["size"])) for row in found] == [*product("13", POPULATIONS)]
    for row in found:
        assert float(row["low"]) <= float(row["linkability"]) <= float(row["high"])
        assert float(row["chance"]) == 1 / int(row["size"])


def test_the_report_gives_the_measured_sizes_and_the_back_tests(
    beyond: dict[int, Beyond],
) -> None:
    report = json.loads(to_json(report_extrapolation(beyond)))
    assert set(report) == {"1", "3"}
    for block in report.values():
        assert block["kind"] == "extrapolated"
        assert block["measured_to"] == 301
        assert block["sizes"] == POPULATIONS
        assert {test["fitted_to"] for test in block["backtest"]} == {51}
        assert {test["size"] for test in block["backtest"]} == {301}


def test_the_table_of_predictions_has_every_method_and_no_measured_size(
    run: Linkage, beyond: dict[int, Beyond], tmp_path: Path
) -> None:
    extras.write_linkage(tmp_path, run, beyond=beyond)
    with (tmp_path / "extrapolation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3
    assert {row["method"] for row in rows} == {"normal", "bounds", "span"}
    assert all(
        row["kind"] == "extrapolated" and int(row["size"]) > int(row["measured_to"]) for row in rows
    )
    assert all((row["linkability"] == "") == (row["method"] in ("bounds", "span")) for row in rows)


@pytest.mark.parametrize("populations", [[301, 10**6], []])
def test_populations_smaller_than_the_gallery_are_refused(
    run: Linkage, populations: list[int]
) -> None:
    with pytest.raises(
        DataError, match=r"expected populations larger than the gallery of 301, got (301|none)"
    ):
        extrapolate_linkage(run.ranks, run.settings, populations)


def test_extrapolated_sizes_run_from_the_gallery_to_the_largest() -> None:
    sizes = sizes_beyond(301, 3e6)
    assert (sizes[0], sizes[-1]) == (301, 3e6)
    assert {1e4, 1e5, 1e6} <= set(sizes.tolist())
    assert (np.diff(sizes) > 0).all()


def test_lists_of_speakers_are_written(run: Linkage, tmp_path: Path) -> None:
    report = extras.write_linkage(tmp_path, run)["quartiles"]
    assert {path.name for path in tmp_path.glob("*.txt")} == {
        f"{kind}_speakers_L{number}.txt" for kind in ("easy", "hard") for number in (1, 3)
    }
    assert report["1"]["tie_rule"] == "nearest"
    few = measure_linkage({1: Ranks([0, 1, 2], 0, 5)}, Settings(resamples=0))
    report = extras.write_linkage(tmp_path / "few", few)["quartiles"]
    assert report["1"]["notes"] == ["fewer than 4 speakers: no quarters"]


# ---- plots


def labels(figure: Any) -> list[str]:
    return [
        text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in figure.legends[0].get_texts()
    ]


def ends(area: Any) -> tuple[float, float, float, float]:
    """Left, right, lower and upper end of an area."""
    x, y = area.get_paths()[0].vertices.T
    return x.min(), x.max(), y.min(), y.max()


def test_only_extrapolated_curves_are_dotted(run: Linkage, beyond: dict[int, Beyond]) -> None:
    curves = {f"L = {number}": curve for number, curve in run.curves.items()}
    drawn = {f"L = {number}": one.curve for number, one in beyond.items()}
    figures = [
        plots.plot_linkability(curves, extrapolations=drawn),
        plots.plot_extrapolation(run.curves[1], beyond[1].curve),
    ]
    for figure in figures:
        axes = figure.axes[0]
        assert [text.get_text() for text in axes.texts] == ["extrapolated, not measured"]
        words = (*labels(figure), figure.legends[0].get_title().get_text())
        assert any("extrapolated, not measured" in text for text in words)
        (ground,) = [
            area for area in axes.collections if to_hex(area.get_facecolor()[0]) == "#808080"
        ]
        assert ends(ground)[:2] == pytest.approx((301, 10**6))
        for line in axes.lines:
            dashes = line._unscaled_dash_pattern[1]
            if dashes and list(dashes) in ([1.2, 1.6], [1, 1]):
                assert line.get_xdata().min() >= 301
            elif not dashes or list(dashes) != [10, 3]:  # chance is known everywhere
                assert line.get_xdata().max() <= 301
    dotted = [
        line for line in figures[0].axes[0].lines if line._unscaled_dash_pattern[1] == (1.2, 1.6)
    ]
    np.testing.assert_allclose(
        dotted[0].get_ydata(), beyond[1].curve.predictions["normal"].linkability
    )


def test_sizes_without_a_trusted_method_are_drawn_as_bounds(
    run: Linkage, beyond: dict[int, Beyond]
) -> None:
    failed = tuple(replace(test, held=False) for test in beyond[1].curve.tests)
    curve = replace(beyond[1].curve, tests=failed)
    together = plots.plot_linkability({"a": run.curves[1]}, extrapolations={"a": curve})
    alone = plots.plot_extrapolation(run.curves[1], curve)
    for figure in (together, alone):
        assert not [
            line for line in figure.axes[0].lines if line._unscaled_dash_pattern[1] == (1.2, 1.6)
        ]
    assert "bounds alone where none is trusted" in " ".join(labels(together))
    assert not [text for text in labels(alone) if text.startswith(("normal", "tail"))]
    assert "no method is trusted" in alone.legends[0].get_title().get_text()


def test_the_logarithmic_axis_shows_chance(run: Linkage) -> None:
    axes = plots.plot_linkability({"a": run.curves[1]}, logarithmic=True).axes[0]
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylim()[1]) == ("log", "log", 1)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 1 / axes.lines[0].get_xdata())
    assert axes.get_ylim()[0] == 0.1  # a decade below the smallest


def test_the_cmc_plot_shows_the_given_ranks(run: Linkage) -> None:
    share = cumulative_match(run.ranks[1])
    figure = plots.plot_cmc({"a": share, "few": [0.5, 0.8, 1.0]})
    np.testing.assert_allclose(figure.axes[0].lines[1].get_ydata(), share)
    first = f"a (rank 1 {100 * share[0]:.1f} %, rank 10 {100 * share[9]:.1f} %, N 301)"
    assert labels(figure)[:2] == [first, "few (rank 1 50.0 %, N 3)"]


def compared(**factors: str) -> Any:
    rng = np.random.default_rng(0)
    values = {
        tuple(zip(factors, levels, strict=True)): {f"s{i}": float(rng.normal()) for i in range(40)}
        for levels in product(*factors.values())
    }
    return compare_conditions(values, permutations=20)


def test_intersections_lie_within_unions() -> None:
    found = compared(attacker="abc", utterances="13")
    joint = [comparison for comparison in found.joint if comparison.factor == "attacker"]
    axes = plots.plot_intersections(joint).axes[0]
    assert [ends(area)[1] for area in axes.collections] == [
        getattr(getattr(comparison, kind), side)
        for comparison in reversed(joint)
        for kind in ("easy", "hard")
        for side in ("union", "intersection")
    ]
    assert axes.get_yticklabels()[-1].get_text().startswith("a / b / c\nL = 1\nJaccard: easy 0.")


def test_the_height_of_jaccard_bars_equals_the_means() -> None:
    found = compared(anonymiser="ab", utterances="13")
    bars = [
        area for area in plots.plot_jaccard(found).axes[0].collections if area.get_alpha() == 0.45
    ]
    heights = [one.jaccard for kinds in found.factors.values() for one in kinds.values()]
    np.testing.assert_allclose([ends(bar)[3] for bar in bars], heights)


def test_colours_denote_anonymisers_and_markers_attackers(run: Linkage, tmp_path: Path) -> None:
    names = [
        (attacker, anonymiser) for attacker in ("ECAPA", "ResNet") for anonymiser in ("B3", "B5")
    ]
    panels = {f"L = {number}": dict.fromkeys(names, curve) for number, curve in run.curves.items()}
    # one is missing: the others keep their looks
    panels["L = 3"] = dict(list(panels["L = 3"].items())[1:])
    figure = plots.plot_linkability_panels(panels, path=tmp_path / "x.png")
    lines = figure.legends[0].get_lines()
    colours, shapes = {}, {}
    for text, line in zip(labels(figure), lines, strict=True):
        colours[text], shapes[text] = line.get_color(), line.get_marker()
    first, second = figure.axes
    assert [axes.get_title() for axes in (first, second)] == ["L = 1", "L = 3"]
    assert (first.get_xlim(), first.get_ylim()) == (second.get_xlim(), second.get_ylim())
    for axes, expected in ((first, names), (second, names[1:])):
        marks = [
            (line.get_marker(), line.get_color())
            for line in axes.lines
            if line.get_marker() != "None"
        ]
        assert marks == [
            (shapes[attacker], colours[anonymiser]) for attacker, anonymiser in expected
        ]
    assert (
        len({colours[name] for name in ("B3", "B5")})
        == len({shapes[name] for name in ("ECAPA", "ResNet")})
        == 2
    )


def test_the_grid_of_speakers_has_a_row_for_each_attacker(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 101)
    names = [("ECAPA", "B3"), ("ECAPA", "B5"), ("ResNet", "B5")]
    figure = plots.plot_speaker_grid(dict.fromkeys(names, values), path=tmp_path / "x.png")
    words = "Q1 0.25, median 0.50, Q3 0.75"
    assert [axes.axison and axes.get_title() for axes in figure.axes] == [
        f"ECAPA, B3\n{words}", f"ECAPA, B5\n{words}", False, f"ResNet, B5\n{words}",
    ]  # fmt: skip
    steps, *quartiles = figure.axes[0].lines
    assert steps.get_ydata().max() == pytest.approx(100 * 6 / 101)
    assert [line.get_xdata()[0] for line in quartiles] == pytest.approx([0.25, 0.5, 0.75])
    six = plots.plot_speaker_grid(
        {("", f"run {number}"): values for number in range(6)}, path=tmp_path / "x.png"
    )
    assert [axes.axison for axes in six.axes] == [True] * 6 + [False] * 2


def test_every_figure_is_drawn_in_every_format_without_warnings(
    run: Linkage, beyond: dict[int, Beyond], tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extras.write_linkage(tmp_path, run, beyond=beyond, plots=True)
    names = {"linkability", "extrapolation_L1", "extrapolation_L3", "cmc", "speakers"}
    signatures = {".png": b"\x89PNG", ".svg": b"<?xml"}
    for name in names:
        for form, signature in signatures.items():
            assert (tmp_path / f"{name}{form}").read_bytes().startswith(signature)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda curve, far: plots.plot_linkability({}, path="x.png"),
            "expected at least one curve",
        ),
        (
            lambda curve, far: plots.plot_linkability(
                {"a": curve}, path="x.png", extrapolations={"b": far}
            ),
            "one for each",
        ),
        (
            lambda curve, far: plots.plot_linkability(
                {"a": curve}, path="x.png", extrapolations={"a": far}, method="tail"
            ),
            "expected an extrapolation by the method 'tail', got normal, bounds",
        ),
        (lambda curve, far: plots.plot_intersections([]), "expected comparisons"),
        (lambda curve, far: plots.plot_cmc({"a": [1.0]}, path="x.png"), "of 2 or more ranks"),
        (
            lambda curve, far: plots.plot_speaker_grid({("", "a"): []}, path="x.png"),
            "expected a finite linkability",
        ),
    ],
)
def test_bad_plots_are_refused(
    call: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ranks = ranks_of(1.5)
    far = extrapolate(ranks, [10**5], resampling=Resampling(2))
    with pytest.raises(DataError, match=text):
        call(linkability_curve(ranks, [2, 301]), far)
    assert not list(tmp_path.iterdir())


# ---- the largest impostor scores


def vectors(count: int, dimensions: int, seed: int) -> SpeakerVectors:
    rows = np.random.default_rng(seed).normal(size=(count, dimensions))
    names = np.array([f"s{row:03d}" for row in range(count)], object)
    return SpeakerVectors(names, rows, np.linalg.norm(rows, axis=1))


@pytest.mark.parametrize("count", [1, 5, 59])
def test_the_largest_impostor_scores_equal_those_of_the_full_matrix(
    count: int,
) -> None:
    gallery, trials = vectors(60, 8, 0), vectors(40, 8, 1)
    ranks = rank_speakers(gallery, trials)
    found = largest_impostor_scores(
        gallery, trials, ranks, count=count, jobs=2, gallery_block=13, trial_block=7
    )
    full = (trials.vectors / trials.norms[:, None]) @ (gallery.vectors / gallery.norms[:, None]).T
    full[np.arange(40), np.arange(40)] = -np.inf
    np.testing.assert_allclose(found, -np.sort(-full, axis=1)[:, :count], atol=1e-6)
    np.testing.assert_array_equal((full > ranks.mated[:, None]).sum(axis=1), ranks.beaters)


def test_impostor_scores_of_other_vectors_are_refused() -> None:
    gallery, trials = vectors(20, 4, 0), vectors(10, 4, 1)
    ranks = rank_speakers(gallery, trials)
    with pytest.raises(DataError, match="expected to keep 1 to 19 impostor scores, got 20"):
        largest_impostor_scores(gallery, trials, ranks, count=20)
    with pytest.raises(DataError, match="there is none for 's005'"):
        largest_impostor_scores(gallery, vectors(5, 4, 1), ranks, count=3)
