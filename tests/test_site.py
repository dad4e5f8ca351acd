"""What makes the site of the documentation: the reference follows the faces, links are followed, nothing is fetched.

`make docs` builds the whole site, which takes too long here; these are its parts on small inputs.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def part(monkeypatch):
    """A module of docs/ by its name."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    yield importlib.import_module
    for name in ("check_site", "docstrings", "reference_pages"):
        sys.modules.pop(name, None)


def test_every_room_has_its_page_with_all_names(part):
    rooms = part("reference_pages").rooms()
    assert {"evaluation", "evaluation.metrics", "spkver.mixture", "spkver.voiceprivacy"} <= set(rooms)
    assert not {"evaluation.commands", "spkver.commands"} & set(rooms)
    for room, names in rooms.items():
        held = importlib.import_module(room)
        assert all(hasattr(held, name.name) for name in names), room
    assert {"spkbase.errors", "spkver.idmap", "spkbase.seeding"} <= set(rooms)


def test_a_page_of_the_reference_explains_functions_classes_and_constants(part):
    reference = part("reference_pages")
    room = "evaluation.metrics"
    text = reference.page(room, reference.rooms()[room])
    assert "| [`eer`](#evaluation.metrics.eer) | Return" in text
    assert ".. autofunction:: evaluation.metrics.eer\n" in text
    assert ".. autoclass:: evaluation.metrics.SortedScores\n   :members:\n" in text
    assert ".. py:data:: SRE08\n   :type: " in text
    assert r"\|log10 LLR\|" in text  # the comment above a constant, with its bars as signs
    rows = re.findall(r"^\| (.*) \|$", text, re.M)
    assert all(len(re.split(r"(?<!\\)\|", row)) == 2 for row in rows)


def test_docstrings_become_restructured_text(part):
    restructured = part("docstrings").restructured
    assert restructured(["Return |x| [1]_.", "", "    a * b", "", "Then", "", ".. [1] A. Author"]) == [
        *("Return \\|x\\| [1].", "", "::", "", "    a * b", "", "Then", ""),
        "1. A. Author",
    ]
    # literals, examples and what follows a double colon stay; so do items that go on
    same = ["`|x|` and NAME::", "", "    |x|", "", ">>> {1} | {2}", "- item", "", "  goes on"]
    assert restructured(same) == same
    assert restructured(["Kept in NAME/*.json and stat_*.h5"]) == ["Kept in NAME/\\*.json and stat_\\*.h5"]
    fields = ["Attributes", "----------", "low, high : float", "    Ends."]
    assert restructured(fields, of_class=True)[2] == "low,high : float"
    assert restructured(fields)[2] == "low, high : float"


PAGE = '<html><head><link href="style.css"></head><body id="top"><a href="{link}">there</a>{more}</body></html>'


@pytest.mark.parametrize(
    ("link", "more", "style", "complaint"),
    [
        ("other.html#there", "", "", None),
        ("#top", '<a href="https://example.org/paper">a paper</a>', "", None),
        ("gone.html", "", "", "page.html: gone.html leads nowhere"),
        ("other.html#gone", "", "", "page.html: other.html#gone: that page has no such anchor"),
        (
            "#top",
            '<script src="https://example.org/math.js"></script>',
            "",
            "loads https://example.org/math.js from elsewhere",
        ),
        (
            "#top",
            "",
            "@font-face { src: url(https://example.org/f.woff) }",
            "style.css: loads something from elsewhere",
        ),
    ],
)
def test_links_of_the_site_are_followed(part, tmp_path, monkeypatch, link, more, style, complaint):
    check_site = part("check_site")
    monkeypatch.setattr(check_site, "missing_names", lambda pages: [])
    (tmp_path / "page.html").write_text(PAGE.format(link=link, more=more))
    (tmp_path / "other.html").write_text('<html><body><p id="there"></p></body></html>')
    (tmp_path / "style.css").write_text(style)
    problems = check_site.problems_of(tmp_path)
    assert len(problems) == (complaint is not None)
    if complaint is not None:
        assert complaint in problems[0]


def test_a_name_without_its_place_in_the_reference_is_told(part, tmp_path):
    (tmp_path / "page.html").write_text('<html><body><p id="evaluation.metrics.eer"></p></body></html>')
    problems = part("check_site").problems_of(tmp_path)
    assert "docs/api: evaluation.metrics.cllr is missing" in problems
    assert not any("metrics.eer is" in problem for problem in problems)
