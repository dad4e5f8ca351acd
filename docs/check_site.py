"""Follow every link of the finished site: `python docs/check_site.py build/site`.

Pages and anchors that links name must be there, nothing that a browser loads may lie on another machine, and every
public name must have its place in the reference.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import reference_pages

LOADED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
}


class Page(HTMLParser):
    """A page: its anchors, where its links lead, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take down what an element says."""
        for name, value in attributes:
            if not value:
                continue
            if name == "id":
                self.anchors.add(value)
            elif (tag, name) in LOADED:
                self.loaded.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def problems_of(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, each thing fetched from elsewhere, each name that is missing."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        where = path.relative_to(site)
        problems += [
            f"{where}: loads {address} from elsewhere"
            for address in page.loaded
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//")
        ]
        for address in page.links + page.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                problems.append(f"{where}: {address} leads nowhere")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                problems.append(f"{where}: {address}: that page has no such anchor")
    for style in site.rglob("*.css"):
        if re.search(r"url\([\"']?(https?:)?//", style.read_text(encoding="utf-8")):
            problems.append(f"{style.relative_to(site)}: loads something from elsewhere")
    return problems + missing_names(pages)


def missing_names(pages: dict[Path, Page]) -> list[str]:
    """Return a line for each public name of a package that the reference does not explain."""
    explained = set().union(*(page.anchors for page in pages.values()))
    return [
        f"docs/api: {package}.{name.name} is missing"
        for package, names in reference_pages.packages().items()
        for name in names
        if package not in reference_pages.PACKAGES and f"{package}.{name.name}" not in explained
    ]


def main() -> None:
    """Check the folder that the command line names; the exit status is 1 where there are problems."""
    site = Path(sys.argv[1]).resolve()
    problems = problems_of(site)
    print(
        "\n".join(problems)
        or f"{len(list(site.rglob('*.html')))} pages: every link leads somewhere, all within the site"
    )
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
