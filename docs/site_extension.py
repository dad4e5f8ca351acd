"""What Sphinx lacks for this site: formulas as MathML, a page for each package, a first page at the top."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import docstrings
import reference_pages
from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

TOP = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>spkver</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"></head>
<body><a href="docs/index.html">spkver</a></body></html>
"""

NAMESAKES = {"GaussianMixture": "spkver.mixture.GaussianMixture"}
"""Classes of the same name in `spkver.sklearn`, by the one that is meant elsewhere."""


def mathml(formula: str, *, alone: bool) -> str:
    """Return a formula as MathML, which browsers draw themselves, with a space between a function and its argument."""
    text = convert(formula, display="block" if alone else "inline")
    return re.sub(
        r"<mi>(log|exp|max|min)</mi>", r'<mi>\1</mi><mspace width="0.17em"></mspace>', text
    )


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write a formula of a line."""
    translator.body.append(mathml(node.astext(), alone=False))
    raise nodes.SkipNode


def visit_displayed_math(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that stands alone."""
    translator.body.append(f'<div class="math">{mathml(node.astext(), alone=True)}</div>')
    raise nodes.SkipNode


def free_of_markup(
    app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]
) -> None:
    """Put a docstring into the form that Sphinx reads; Napoleon, which comes after this, sees to the sections."""
    lines[:] = docstrings.restructured(lines, of_class=what == "class")


def link_classes_alone(app: Any, document: nodes.document) -> None:
    """Take the links away that Sphinx makes of every word of a type, `ndarray of shape (N,)`, but of classes."""
    for link in list(document.findall(addnodes.pending_xref)):
        if link.get("refdomain") == "py" and link["reftarget"].rpartition(".")[2].islower():
            link.replace_self(nodes.Text(link.children[0].astext()))
        elif link["reftarget"] in NAMESAKES and link.get("py:module") != "spkver.sklearn":
            link["reftarget"] = NAMESAKES[link["reftarget"]]


def name_pages_by_titles(app: Any, document: nodes.document, docname: str) -> None:
    """Show the title of a page where a link shows the name of its file, which is what helps in the checkout."""
    for link in document.findall(nodes.reference):
        path, _, anchor = link.get("refuri", "").partition("#")
        if link.astext().endswith(".md") and path and not anchor:
            target = posixpath.normpath(
                posixpath.join(posixpath.dirname(docname), path.removesuffix(".html"))
            )
            title = app.env.titles.get(target)
            if title is not None:
                link.children = [nodes.Text(title.astext())]


def write_reference(app: Any) -> None:
    """Write the pages of the reference, from the public names of the packages, into docs/api."""
    reference_pages.write(Path(app.confdir) / "api")


def write_top(app: Any, failure: Exception | None) -> None:
    """Lead from the top of the site to its first page."""
    if failure is None:
        (Path(app.outdir) / "index.html").write_text(TOP, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the parts above."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", free_of_markup, priority=400)
    app.connect("doctree-read", link_classes_alone)
    app.connect("doctree-resolved", name_pages_by_titles)
    app.connect("build-finished", write_top)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
