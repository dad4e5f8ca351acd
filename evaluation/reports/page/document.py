"""The page as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.reports.page import appendix, details, evidence, summary
from evaluation.reports.page.attributes import attributes
from evaluation.reports.page.averages import averages
from evaluation.reports.page.choices import choices
from evaluation.reports.page.inversions import inversions
from evaluation.reports.page.markup import Html, element, join
from evaluation.reports.page.style import STYLE
from evaluation.reports.page.versions import training_versions
from evaluation.reports.privacy_results import Results, parse_results
from spkbase.files import write_text

# nothing may be fetched and nothing may run, whatever a name in the results holds
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CONTENTS = {
    "scenarios": "Scenarios",
    "attackers": "Attackers",
    "versions": "Versions learnt from",
    "averages": "Challenge averages",
    "checks": "Warnings and checks",
    "curves": "Curves",
    "speakers": "Worst-off speakers",
    "attributes": "Attributes",
    "worst": "Worst case and ranks",
    "voices": "Voices",
    "utility": "Utility",
    "terms": "How to read this",
    "figures": "All figures",
    "choices": "Choice of backends",
    "inversions": "Undoing and alignment",
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
    write_text(path, render_page(results, folder=folder, base=base_of(folder, path)))


def base_of(folder: str | Path, page: str | Path) -> str | None:
    """Return what stands before a path of the results in a link of the page.

    None for a page outside their folder, which may be handed on alone and must not name folders of this machine.

    Examples
    --------
    >>> base_of("run", "run/report.html"), base_of("run", "run/pages/report.html"), base_of("run", "report.html")
    ('', '../', None)
    """
    place, root = Path(page).absolute().parent.resolve(), Path(folder).resolve()
    return "../" * len(place.relative_to(root).parts) if place.is_relative_to(root) else None


def render_page(results: Mapping[str, Any], *, folder: str | Path, base: str | None = None) -> str:
    """Return the page as text; see `write_page`. `base` leads from it to the folder, for links to scores."""
    parsed = parse_results(results)
    sections = [
        summary.scenarios(parsed),
        summary.attackers(parsed),
        training_versions(parsed),
        averages(parsed),
        appendix.checks(parsed),
        details.curves(parsed, Path(folder)),
        details.speakers(parsed),
        attributes(parsed),
        evidence.worst_cases(parsed),
        evidence.voices(parsed),
        details.utility(parsed),
        appendix.terms(),
        appendix.figures(parsed),
        choices(parsed),
        inversions(parsed),
        appendix.provenance(parsed, base),
    ]
    there = [section for section in sections if section is not None]
    links = [
        element("li", element("a", name, href=f"#{target}"))
        for target, name in _CONTENTS.items()
        if any(f' id="{target}"' in section for section in there)
    ]
    title = f"Voice privacy report{f': {parsed.name}' if parsed.name else ''}"
    return page_of(title, [summary.verdict(parsed)], links, there, _origin(parsed))


def page_of(title: str, first: Sequence[Html], links: Sequence[Html], sections: Sequence[Html], origin: str) -> str:
    """Put a page together: what stands above the contents, the contents, and what stands below.

    Parameters
    ----------
    title : str
        In the window's frame.
    first, sections : sequence of Html
        Above and below the contents.
    links : sequence of Html
        Items of the contents.
    origin : str
        The last line.
    """
    contents = element("nav", element("ul", links), class_="contents", aria_label="Contents")
    main = element("main", first, contents, sections)
    body = element("body", element("div", main, element("footer", element("p", origin)), class_="wrap"))
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
