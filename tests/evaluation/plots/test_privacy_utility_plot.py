"""The plot of privacy against utility: what it shows, not how it looks. Pictures were looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.plots import privacy_utility
from evaluation.plots.chart import Chart
from evaluation.plots.privacy_utility import TradeOff
from spkbase.errors import DataError


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> list[Chart]:
    made: list[Chart] = []
    monkeypatch.setattr(privacy_utility, "render_chart", lambda chart, path=None, ax=None: made.append(chart))
    return made


def plot(systems: list[TradeOff], **options: Any) -> None:
    privacy_utility.plot_privacy_utility(systems, path="unused.svg", **options)


def points(chart: Chart) -> list[tuple[float, float]]:
    return [(float(line.x[0]), float(line.y[0])) for line in chart.lines if line.look.marker]


SYSTEMS = [TradeOff("original", 4.0, 0.01), TradeOff("anonymised", 12.0, 0.2, (0.1, 0.3), (11.0, 14.0))]


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_better_lies_to_the_right_and_ticks_tell_the_true_values(charts: list[Chart], lower_is_better: bool) -> None:
    plot(SYSTEMS, lower_is_better=lower_is_better)
    (chart,) = charts
    sign = -1 if lower_is_better else 1
    assert points(chart) == [(sign * 4.0, 1.0), (sign * 12.0, 20.0)]
    assert chart.x.low < min(x for x, _ in points(chart)) < max(x for x, _ in points(chart)) < chart.x.high
    assert [place for place, _ in chart.x.ticks] == sorted(sign * float(text) for _, text in chart.x.ticks)
    assert 4 <= len(chart.x.ticks) <= 11
    assert all(chart.x.low <= place <= chart.x.high for place, _ in chart.x.ticks)


def test_intervals_cross_at_the_point(charts: list[Chart]) -> None:
    plot(SYSTEMS, lower_is_better=False)
    crossing = [line for line in charts[0].lines if not line.look.marker and not line.look.fill]
    assert [(line.x.tolist(), line.y.tolist()) for line in crossing] == [
        ([12.0, 12.0], pytest.approx([10.0, 30.0])),
        ([11.0, 14.0], [20.0, 20.0]),
    ]


def test_bands_end_at_the_targets(charts: list[Chart]) -> None:
    plot(SYSTEMS, targets=(0.15, 0.3))
    bands = [line for line in charts[0].lines if line.look.fill]
    assert sorted(float(line.y[0]) for line in bands) == [15.0, 30.0]
    assert [(note.text, note.share) for note in charts[0].notes] == [("15 %", 0.3), ("30 %", 0.6)]
    plot(SYSTEMS, targets=())
    assert not [line for line in charts[1].lines if line.look.fill]


@pytest.mark.parametrize("utility", [0.0, 1e-7, 3.0, 1e6, -40.0])
def test_a_single_system_has_room_around_it(charts: list[Chart], utility: float) -> None:
    plot([TradeOff("a", utility, 0.5)], lower_is_better=False)
    assert charts[0].x.low <= utility < charts[0].x.high
    assert len(charts[0].x.ticks) >= 4
    assert np.isfinite([charts[0].x.low, charts[0].x.high]).all()


@pytest.mark.parametrize(
    ("systems", "options", "message"),
    [
        ([], {}, "expected a system to plot"),
        ([TradeOff("a", float("nan"), 0.1)], {}, "a: expected a finite utility and an EER from 0 to 1, got nan"),
        ([TradeOff("a", 1.0, 10.0)], {}, "got 1.0 and 10.0"),
        (SYSTEMS, {"targets": (0.3, 0.1)}, "expected target EERs that rise"),
        (SYSTEMS, {"targets": (10, 20)}, "expected target EERs that rise"),
    ],
)
def test_what_cannot_be_plotted_is_refused(systems: list[TradeOff], options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        plot(systems, **options)


def test_all_formats_are_written(tmp_path: Path) -> None:
    paths = [tmp_path / f"plot.{extension}" for extension in ("svg", "png", "pdf", "tex")]
    privacy_utility.plot_privacy_utility(SYSTEMS, path=paths)
    assert [path.read_bytes()[:4] for path in paths] == [b"<?xm", b"\x89PNG", b"%PDF", b"% Co"]
