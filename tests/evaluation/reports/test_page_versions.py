"""Rates by number of versions of the training set: in the page and the tables, and left out where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gaussian_results import make_results

from evaluation.reports import format_latex, format_markdown
from evaluation.reports.by_versions import rates_by_versions
from evaluation.reports.page.document import render_page
from evaluation.reports.page.numbers import SPACE
from evaluation.reports.privacy_results import parse_results

ENTRIES = [
    {"dataset": "libri_test", "attacker": "campplus", "eer": {"4": 0.019, "1": 0.063, "2": 0.031}, "note": None},
    {"dataset": "<b>", "attacker": "gmm_svm", "eer": {"1": 0.2, "8": 0.1}, "note": None},
    {"dataset": "failed", "attacker": "gmm-svm", "eer": {"4": 0.2}, "note": "no luck"},
]
BAD: tuple[Any, ...] = (
    None,
    "text",
    {},
    [None, 1, "a"],
    [{"dataset": "x"}],
    [{"eer": "0.1"}],
    [{"eer": {"1": 0.1, "2": -500}}],
    [{"eer": {"1": 0.1, "2": "much"}}],
    [{"eer": {"1": 0.1, "two": 0.2, "-2": 0.2, "9" * 5000: 0.2}}],
    [{"eer": {"1": 0.1, "2": float("nan")}}],
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Results without plots, which take time."""
    results = make_results(tmp_path_factory.mktemp("results"), attackers=("gmm-ubm",))
    for one in results["conditions"]:
        one.update(scores=None, linkability=None, speakers=[])
    return {**results, "utility": {}}


def test_page_and_tables_have_a_row_for_each_set_with_several_numbers(made: dict[str, Any], tmp_path: Path) -> None:
    results = {**made, "training_draws": ENTRIES}
    page = render_page(results, folder=tmp_path)
    section = page.partition('<section id="versions"')[2].partition("</section>")[0]
    assert '<a href="#versions">' in page
    shown = [section.index(f"{rate}{SPACE}%") for rate in ("6.3", "3.1", "1.9", "20.0", "10.0")]
    assert shown == sorted(shown)
    assert [count for count in (1, 2, 4, 8) if f"{count} version" in section] == [1, 2, 4, 8]
    assert "failed" not in section
    assert "&lt;b&gt;" in section
    assert "anonymizer.training_draws higher" in section
    table = format_markdown(results).partition("by anonymised versions learnt from")[2]
    assert [cell.strip() for cell in table.splitlines()[4].split("|")[1:-1]] == [
        "libri\\_test", "campplus", "6.3", "3.1", "1.9", "n/a",
    ]  # fmt: skip
    assert r"gmm\_svm & 20.0" in format_latex(results)


@pytest.mark.parametrize("value", BAD)
def test_what_is_no_rate_is_left_out(made: dict[str, Any], tmp_path: Path, value: Any) -> None:
    results = {**made, "training_draws": value}
    assert rates_by_versions(parse_results(results)) == []
    assert 'id="versions"' not in render_page(results, folder=tmp_path)
    assert "versions learnt from" not in format_markdown(results)
