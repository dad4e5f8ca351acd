"""The page as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.reports.page import appendix, details, summary
from evaluation.reports.page.averages import averages
from evaluation.reports.page.markup import Html, element, join
from evaluation.reports.page.style import STYLE
from evaluation.reports.privacy_results import Results, parse_results
from spkbase.files import write_text

# nothing may be fetched and nothing may run, whatever a name in the results holds
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CONTENTS = {
    "scenarios": "Scenarios",
    "attackers": "Attackers",
    "averages": "Challenge averages",
    "checks": "Warnings and checks",
    "curves": "Curves",
    "speakers": "Worst-off speakers",
    "utility": "Utility",
    "terms": "How to read this",
    "figures": "All figures",
    "provenance": "How this was made",
}


def write_page(results: Mapping[str, Any], path: str | Path, *, folder: str | Path) -> None:
    """Write the page of a privacy evaluation; the same input gives the same bytes.

    Parameters
    ----------
    results : mapping
        As ``results.json`` holds them; see `evaluation.reports.parse_results`.
    path : path
        The HTML file.
    folder : path
        Where the paths of scores and keys in the results start.

    Raises
    ------
    DataError
        If the results are malformed or the file cannot be written. Scores that are not at hand leave a plot out, which
        the page says.
    """
    write_text(path, render_page(results, folder=folder))


def render_page(results: Mapping[str, Any], *, folder: str | Path) -> str:
    """Return the page as text; see `write_page`."""
    parsed = parse_results(results)
    sections = [
        summary.scenarios(parsed),
        summary.attackers(parsed),
        averages(parsed),
        appendix.checks(parsed),
        details.curves(parsed, Path(folder)),
        details.speakers(parsed),
        details.utility(parsed),
        appendix.terms(),
        appendix.figures(parsed),
        appendix.provenance(parsed),
    ]
    there = [section for section in sections if section is not None]
    links = [
        element("li", element("a", name, href=f"#{target}"))
        for target, name in _CONTENTS.items()
        if any(f' id="{target}"' in section for section in there)
    ]
    body = element(
        "body",
        element(
            "div",
            element(
                "main",
                summary.verdict(parsed),
                element("nav", element("ul", links), class_="contents", aria_label="Contents"),
                there,
            ),
            element("footer", element("p", _origin(parsed))),
            class_="wrap",
        ),
    )
    title = f"Voice privacy report{f': {parsed.name}' if parsed.name else ''}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(STYLE)),
    )
    return join([Html("<!DOCTYPE html>\n"), element("html", head, body, lang="en"), Html("\n")])


def _origin(results: Results) -> str:
    version = results.block("versions").get("spkver")
    made = f"Made by spkver {version}" if isinstance(version, str) else "Made by spkver"
    run = {name: value for name, value in results.block("run").items() if isinstance(value, str)}
    made += f" on {run['date'].replace('T', ' ')}" if "date" in run else ""
    made += f" by {run['command']}," if "command" in run else ""
    return (
        f"{made} from results.json and the scores that it names. This page holds everything it shows and loads nothing."
    )
