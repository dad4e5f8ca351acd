"""Plots as SVG inside a page: ids of its own, colours that follow the page, nothing that reaches outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from evaluation.reports.page.markup import Html

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
# Colours of plots and the names by which the page's style sheet sets them anew on a dark screen
COLOURS = {
    "#ffffff": "paper",
    "#000000": "ink",
    "#606060": "grey",
    "#b0b0b0": "pale",
    "#e0e0e0": "grid",
    "#0072b2": "blue",
    "#d55e00": "vermilion",
    "#009e73": "green",
    "#cc79a7": "purple",
    "#56b4e9": "sky",
    "#e69f00": "orange",
}


def picture(draw: Callable[[Path], object], *, name: str, label: str) -> Html:
    """Draw a plot and give it as an element of a page.

    Parameters
    ----------
    draw : callable
        Writes the plot as SVG to the path that it gets.
    name : str
        Stands before each id; another one for each picture of a page.
    label : str
        What the picture shows, for those who do not see it.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "plot.svg")
        draw(path)
        return inline(path.read_text("utf-8"), name=name, label=label)


def inline(svg: str, *, name: str, label: str) -> Html:
    """Turn an SVG file of matplotlib into an element of a page; see `picture`.

    Comments, metadata, style sheets and ids that nothing refers to are left out.
    """
    root = ElementTree.fromstring(svg)
    _drop(root, {f"{_SVG}metadata", f"{_SVG}style"})
    used = _references(root)
    for node in root.iter():
        node.tag = node.tag.removeprefix(_SVG)
        node.text, node.tail = (None if part is None or not part.strip() else part for part in (node.text, node.tail))
        _rename(node, used, name)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib.update({"role": "img", "aria-label": label, "class": "plot"})
    return Html(ElementTree.tostring(root, encoding="unicode"))


def _drop(element: ElementTree.Element, tags: set[str]) -> None:
    for child in list(element):
        if child.tag in tags:
            element.remove(child)
        else:
            _drop(child, tags)


def _references(root: ElementTree.Element) -> set[str]:
    used = set()
    for node in root.iter():
        for attribute, value in node.attrib.items():
            used |= set(_REFERENCE.findall(value))
            if attribute == f"{_XLINK}href":
                used.add(value.removeprefix("#"))
    return used


def _rename(element: ElementTree.Element, used: set[str], name: str) -> None:
    identity = element.attrib.pop("id", None)
    if identity in used:
        element.set("id", f"{name}-{identity}")
    target = element.attrib.pop(f"{_XLINK}href", None)
    if target is not None:
        element.set("href", f"#{name}-{target.removeprefix('#')}")
    for attribute in ("clip-path", "style", "d"):
        if value := element.get(attribute):
            element.set(attribute, _restyled(value, attribute, name))


def _restyled(value: str, attribute: str, name: str) -> str:
    if attribute == "d":
        return " ".join(value.split())
    value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
    return _COLOUR.sub(lambda found: _variable(found[0]), value)


def _variable(colour: str) -> str:
    return f"var(--plot-{COLOURS[colour]}, {colour})" if colour in COLOURS else colour
