"""The plots of the page, drawn by `evaluation.plots` from the score files that the results name, as SVG inside it."""

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
from evaluation.reports.results import Condition, Outcome, number
from spkbase.errors import DataError

_log = logging.getLogger(__name__)
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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
"""Colours of plots, and the names by which the page's style sheet sets them anew on a dark screen."""

Picture = dict[str, str]
"""``svg`` (empty where nothing could be drawn), ``caption`` (or why not), and ``kind``: tall, wide or neither."""


def printable(text: str) -> str:
    """Replace what neither HTML nor SVG can hold: control characters and halves of surrogate pairs."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def short(name: str, most: int = 60) -> str:
    """Cut a name that would burst a plot or a heading."""
    name = printable(name)
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def picture(
    plot: Callable[..., object], *given: Any, name: str, label: str, caption: str, kind: str = "", **options: Any
) -> Picture:
    """Draw a plot for the page; what cannot be drawn is said in its place.

    Parameters
    ----------
    plot : callable
        Takes what is given, the options, and `path`, an SVG file to write.
    name : str
        Stands before each id; another one for each picture of a page.
    label, caption : str
        What the picture shows, for those who do not see it, and for those who do.
    kind : str
        Class of the figure.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "plot.svg")
        try:
            plot(*given, path=path, **options)
        except DataError as error:
            _log.warning("a plot is left out: %s", error)
            return {"svg": "", "caption": f"A plot is left out: {error}", "kind": kind}
        return {"svg": inline(path.read_text("utf-8"), name=name, label=label), "caption": caption, "kind": kind}


def inline(svg: str, *, name: str, label: str) -> str:
    """Turn an SVG file of matplotlib into an element of a page: ids of its own, colours that follow the page.

    Comments, metadata, style sheets and ids that nothing refers to are left out.
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
            node.set("href", f"#{name}-{target.removeprefix('#')}")
        for attribute in ("clip-path", "style", "d"):
            if value := node.get(attribute):
                value = re.sub(r"url\(#", f"url(#{name}-", " ".join(value.split()))
                node.set(attribute, re.sub(r"#[0-9a-f]{6}\b", _variable, value))
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib.update({"role": "img", "aria-label": label, "class": "plot"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _variable(colour: re.Match[str]) -> str:
    name = COLOURS.get(colour[0])
    return f"var(--plot-{name}, {colour[0]})" if name else colour[0]


def label_of(outcome: Condition) -> str:
    """Return what a legend calls a condition."""
    return f"{short(outcome.scenario)}, {short(outcome.attacker)}"


def score_pictures(
    outcomes: Mapping[str, tuple[str, Outcome, Path]], where: str, name: str, captions: Mapping[str, str], each: str
) -> list[Picture]:
    """Draw DET and ZEBRA plots, and say of which outcomes the scores are not at hand.

    Parameters
    ----------
    outcomes : mapping of str to (str, Outcome, path)
        By what a message calls them: the words of the legend, and where the paths of the results start.
    where : str
        The data set.
    name : str
        Stands before the names of the pictures.
    captions : mapping of str to str
        Of ``det`` and ``zebra``.
    each : str
        What has a curve: a scenario, or an anonymiser.
    """
    systems, missing = [], []
    for label, (words, outcome, folder) in outcomes.items():
        try:
            systems.append((words, *read_scores_of(outcome, folder)))
        except DataError as error:
            _log.warning("no curve of %s: %s", label, error)
            missing.append({"svg": "", "caption": f"No curve of {label}: {error}", "kind": ""})
    if not systems:
        return missing
    det = picture(
        plots.plot_det,
        systems,
        title=f"Errors of the attacker: {where}",
        name=f"{name}-det",
        label=f"Detection error trade-off of {where}: one curve for each {each}.",
        caption=captions["det"],
        kind="tall" if each == "scenario" else "",
    )
    zebra = picture(
        plots.plot_zebra,
        systems,
        title=f"What the scores disclose: {where}",
        name=f"{name}-zebra",
        label=f"ZEBRA profile of {where}: empirical cross-entropy over prior odds, one curve for each {each}.",
        caption=captions["zebra"],
    )
    return [det, zebra, *missing]


def read_scores_of(condition: Condition, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read target and nontarget scores of a condition; lists of files, as of pooled sexes, are put together.

    Raises
    ------
    DataError
        If the results name no files, or these do not fit, or lie outside the folder of the results: results that came
        from elsewhere must not bring files of this machine into the page.
    """
    scores, keys = ([folder / name for name in paths_of(condition, kind)] for kind in ("scores", "key"))
    if not scores or not keys:
        raise DataError("the results name no scores with their key")
    for path in (*scores, *keys):
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError("the results name a file outside their folder, which is not read", file=path)
    if len(keys) not in (1, len(scores)):
        raise DataError(f"expected one key or one for each of {len(scores)} files of scores, got {len(keys)}")
    split = [read_split(*pair) for pair in zip(scores, keys * (len(scores) // len(keys)), strict=True)]
    target, nontarget = (np.concatenate([pair[side] for pair in split]) for side in (0, 1))
    if not len(target) or not len(nontarget):
        raise DataError("expected trials of both classes", file=scores[0])
    return target, nontarget


def paths_of(condition: Condition, kind: str) -> list[str]:
    """Return the paths of ``scores`` or of ``key`` of a condition, one or several."""
    listed = condition.values.get(kind) or []
    return [listed] if isinstance(listed, str) else list(listed)


def linkability_picture(outcomes: Sequence[Outcome], level: float, where: str, name: str) -> Picture:
    """Draw linkability over the number of enrolled speakers, a curve for each scenario."""
    curves = {label_of(outcome): curve for outcome in outcomes if (curve := _curve(outcome, level))}
    if not curves:
        return {"svg": "", "caption": "No linkability plot: the results hold no curve.", "kind": ""}
    return picture(
        plots.plot_linkability,
        curves,
        title=f"Finding one among many: {where}",
        name=f"{name}-link",
        label=f"Linkability of {where} over the number of enrolled speakers, one curve for each scenario.",
        caption="Linkability: the chance that a speaker's own enrolment beats those of all others. The more speakers "
        "are enrolled, the harder; the long-dashed line is guessing.",
    )


def _curve(condition: Condition, level: float) -> Curve | None:
    """Return the linkability of a condition, or None where it holds none that can be drawn."""
    block = condition.values.get("linkability") or {}
    columns = [[number(value) for value in block.get(name) or ()] for name in ("sizes", "linkability", "low", "high")]
    sizes, values, low, high = np.array([column or [np.nan] * len(columns[0]) for column in columns])
    shown = sizes >= 2
    if shown.sum() < 2:
        return None
    sizes = sizes[shown]
    return Curve(sizes.astype(np.int64), values[shown], low[shown], high[shown], 1 / sizes, level=level)


def speakers_picture(speakers: Sequence[Mapping[str, Any]], where: str, name: str) -> list[Picture]:
    """Draw the linkability of all speakers, the most exposed first; nothing of fewer than two."""
    if len(speakers) < 2:
        return []
    return [
        picture(
            plots.plot_exposure,
            [(one["linkability_mean"], short(one["gender"])) for one in speakers],
            title=f"Speakers of {where}",
            name=name,
            label=f"Mean linkability of each speaker of {where}, sorted.",
            caption="Every speaker, the most exposed on the left: the chance to be found, over all numbers of enrolled "
            "speakers.",
        )
    ]


def utility_picture(systems: Sequence[plots.TradeOff], measure: str, lower_is_better: bool, name: str) -> Picture:
    """Draw privacy against a measure of utility."""
    return picture(
        plots.plot_privacy_utility,
        systems,
        measure=measure,
        lower_is_better=lower_is_better,
        name=name,
        label=f"Equal error rate over {measure.lower()}: a point for each data set, original and anonymised.",
        caption="Better speech lies to the right, better privacy above. The grey bands lie between the minimum target "
        "EERs of the VoicePrivacy Challenge 2024.",
    )


def match_pictures(outcomes: Sequence[Outcome], where: str, name: str) -> list[Picture]:
    """Draw how often owners are among the first; nothing where the results do not say it."""
    curves = {label_of(one): cmc for one in outcomes if len(cmc := one.values.get("cmc") or ()) > 1}
    if not curves:
        return []
    return [
        picture(
            plots.plot_cmc,
            curves,
            title=f"Owner among the first: {where}",
            name=name,
            label=f"Cumulative match characteristic of {where}: one curve for each scenario.",
            caption="How often the speaker of an utterance is among the first r of all who are enrolled.",
        )
    ]


def similarity_pictures(entry: Mapping[str, Any], where: str, name: str) -> list[Picture]:
    """Draw the voice similarity matrices of an entry of the results; nothing where it has none."""
    matrices = {kind: entry["matrices"][kind] for kind in plots.VOICES if (entry.get("matrices") or {}).get(kind)}
    if not matrices:
        return []
    cells = {
        kind: np.array([[number(value) for value in row] for row in matrix["values"]])
        for kind, matrix in matrices.items()
    }
    return [
        picture(
            plots.plot_similarity,
            cells,
            next(iter(matrices.values()))["speakers"],
            title=f"Voice similarity: {where}",
            name=name,
            label=f"Voice similarity matrices of {where}.",
            caption="Each cell is how alike the voices of two speakers are. A light diagonal on dark ground: every "
            "voice is like itself alone. No diagonal across: nobody is known again.",
            kind="wide",
        )
    ]
