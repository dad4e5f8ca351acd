"""The plots of the page: `evaluation.plots` draws the results and their score files as SVG inside the page."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import numpy as np

from evaluation import plots
from evaluation.formats import read_split
from evaluation.linkage import Curve
from evaluation.metrics import eer, sort_scores
from evaluation.reports.about import Voices
from evaluation.reports.results import Condition, EnrolledSpeaker, Outcome
from spkbase.errors import DataError

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
"""Colours of plots, and their names in the page's style sheet, which changes them on a dark screen."""

Picture = dict[str, str]
"""``kind``, ``svg`` and, where the plot could not be drawn and ``svg`` is empty, ``problem``."""

_log = logging.getLogger(__name__)
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """Replace characters that neither HTML nor SVG can hold: control characters and lone surrogates."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def short(name: str, most: int = 60) -> str:
    """Cut a name that would burst a plot or a heading."""
    name = printable(name)
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def picture(kind: str, plot: Callable[..., object], *given: Any, title: str, name: str, **options: Any) -> Picture:
    """Draw a plot for the page; if it cannot be drawn, ``problem`` says why.

    Parameters
    ----------
    kind : str
        Name of the caption in ``parts.html.j2``.
    plot : callable
        Takes `given`, the title, the options, and `path`, the SVG file to write.
    title : str
        Title, also read aloud by screen readers.
    name : str
        Prefix of the ids in the SVG, unique in the page.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "plot.svg")
        try:
            plot(*given, path=path, title=title, notes=False, **options)  # the caption explains it
        except DataError as error:
            _log.warning("a plot is left out: %s", error)
            return {"kind": kind, "svg": "", "problem": f"A plot is left out: {error}"}
        return {"kind": kind, "svg": inline(path.read_text("utf-8"), name=name, label=title)}


def inline(svg: str, *, name: str, label: str) -> str:
    """Turn a matplotlib SVG file into an element of the page, with unique ids and the page's colours.

    Comments, metadata, style sheets and unused ids are left out.
    """
    from markupsafe import Markup

    root = ElementTree.fromstring(svg)
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", svg))
    for node in list(root.iter()):
        for child in list(node):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                node.remove(child)
        node.tag = node.tag.removeprefix(_SVG)
        node.text, node.tail = (part if part and part.strip() else None for part in (node.text, node.tail))
        if (identity := node.attrib.pop("id", None)) in used:
            node.set("id", f"{name}-{identity}")
        if target := node.attrib.pop(f"{_XLINK}href", None):
            # an embedded image stays as it is
            node.set("href", f"#{name}-{target[1:]}" if target.startswith("#") else target)
        for attribute in ("clip-path", "style", "d"):
            if value := node.get(attribute):
                value = re.sub(r"url\(#", f"url(#{name}-", " ".join(value.split()))
                node.set(attribute, re.sub(r"#[0-9a-f]{6}\b", _variable, value))
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib.update({"role": "img", "aria-label": label, "class": "plot"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def label_of(outcome: Outcome) -> str:
    """Return the legend text of an outcome."""
    return f"{short(outcome.scenario)}, {short(outcome.strongest)}"


def score_pictures(outcomes: Mapping[str, tuple[str, Outcome, Path]], where: str, name: str) -> list[Picture]:
    """Draw DET and ZEBRA plots, and report outcomes whose scores are missing or have changed since the evaluation.

    Parameters
    ----------
    outcomes : mapping of str to (str, Outcome, path)
        Legend text, outcome and folder of its paths, by its name in messages.
    where : str
        The data set.
    name : str
        See `picture`.
    """
    systems, problems = [], []
    for label, (words, outcome, folder) in outcomes.items():
        try:
            files, key, _ = outcome.condition.files(folder)
            scores = sort_scores(*read_split(files[0], key))
        except DataError as error:
            _log.warning("no curve of %s: %s", label, error)
            problems.append(f"No curve of {label}: {error}")
            continue
        systems.append((words, scores))
        found, stated = eer(scores), outcome.draws[0] if outcome.draws else outcome.eer.value
        if abs(found - stated) > 1e-6:
            rates = f"they give an EER of {100 * found:.2f} %, the results state {100 * stated:.2f} %"
            text = f"The score files of {label} have changed since the results were made: {rates}. Evaluate again."
            _log.warning("%s", text)
            problems.append(text)
    missing = [{"kind": "det", "svg": "", "problem": problem} for problem in problems]
    if not systems:
        return missing
    det = picture("det", plots.plot_det, systems, title=f"Errors of the attacker: {where}", name=f"{name}-det")
    title = f"What the scores disclose: {where}"
    return [det, picture("zebra", plots.plot_zebra, systems, title=title, name=f"{name}-zebra"), *missing]


def linkability_picture(outcomes: Sequence[Outcome], level: float, where: str, name: str) -> Picture:
    """Draw linkability over the number of enrolled speakers, with a curve for each scenario."""
    curves = {label_of(outcome): curve for outcome in outcomes if (curve := _curve(outcome.condition, level))}
    if not curves:
        return {"kind": "linkability", "svg": "", "problem": "No linkability plot: the results hold no curve."}
    title = f"Finding one among many: {where}"
    return picture("linkability", plots.plot_linkability, curves, title=title, name=f"{name}-link")


def speakers_picture(speakers: Sequence[EnrolledSpeaker], where: str, name: str) -> list[Picture]:
    """Draw the linkability of all speakers, the most exposed first; draw nothing for fewer than two speakers."""
    if len(speakers) < 2:
        return []
    values = [(one.linkability_mean, short(one.gender)) for one in speakers]
    return [picture("speakers", plots.plot_exposure, values, title=f"Speakers of {where}", name=name)]


def match_pictures(outcomes: Sequence[Outcome], where: str, name: str) -> list[Picture]:
    """Draw cumulative match characteristics; draw nothing if the results have none."""
    curves = {label_of(one): cmc for one in outcomes if len(cmc := one.condition.cmc or ()) > 1}
    title = f"Target speaker among the first: {where}"
    return [picture("cmc", plots.plot_cmc, curves, title=title, name=name)] if curves else []


def similarity_pictures(voices: Voices, where: str, name: str) -> list[Picture]:
    """Draw the voice similarity matrices of the results; draw nothing if there are none."""
    stated = voices.matrices or {}
    cells = {kind: np.array(stated[kind].values) for kind in plots.VOICES if kind in stated}
    if not cells:
        return []
    names = next(iter(stated.values())).speakers
    title = f"Voice similarity: {where}"
    return [picture("similarity", plots.plot_similarity, cells, names, title=title, name=name)]


def _variable(colour: re.Match[str]) -> str:
    name = COLOURS.get(colour[0])
    return f"var(--plot-{name}, {colour[0]})" if name else colour[0]


def _curve(condition: Condition, level: float) -> Curve | None:
    """Return the linkability curve of a condition, or None if it has fewer than two points."""
    found = condition.linkability
    if found is None:
        return None
    sizes = np.array(found.sizes)
    unknown = [np.nan] * len(sizes)
    values, low, high = (np.array(column or unknown, float) for column in (found.linkability, found.low, found.high))
    shown = sizes >= 2
    if shown.sum() < 2:
        return None
    sizes = sizes[shown]
    return Curve(sizes.astype(np.int64), values[shown], low[shown], high[shown], 1 / sizes, level=level)
