"""The plots of the page: `evaluation.plots` draws the results and their score files as SVG inside the page."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import numpy as np

from evaluation import plots
from evaluation.formats import read_split
from evaluation.linkage import Curve
from evaluation.metrics import eer, sort_scores
from evaluation.reports.about import MEASURES, UtilityFigure, Voices
from evaluation.reports.conditions import GENDERS, Condition, EnrolledSpeaker
from evaluation.reports.formatting import name_list, short
from evaluation.reports.outcomes import Identity, Outcome
from evaluation.reports.results import OnList
from evaluation.reports.verdict import Headline
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

ByUtterances = Mapping[int, Mapping[Identity, Outcome]]
"""Outcomes by the number of recordings that are scored at once."""

Picture = dict[str, str]
"""The ``kind`` and the ``svg`` of a plot; if it could not be drawn, ``svg`` is empty and ``problem`` says why."""

_log = logging.getLogger(__name__)
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"


@dataclass(frozen=True)
class PagePictures:
    """The pictures of a page, by section; those of curves also by list of trials."""

    curves: list[tuple[str, list[Picture]]]
    speakers: list[Picture]
    matches: list[Picture]
    voices: list[Picture]
    utility: list[Picture]
    conversations: list[Picture]


def draw_page(
    lists: Sequence[OnList],
    headlines: Sequence[Headline],
    utility: Sequence[UtilityFigure],
    *,
    folder: Path,
    level: float,
    name: str,
    conversations: ByUtterances | None = None,
) -> PagePictures:
    """Draw all pictures of a page.

    Parameters
    ----------
    lists : sequence of OnList
        Results on the main lists of trials.
    headlines : sequence of Headline
        The verdict on each data set.
    utility : sequence of UtilityFigure
        Measures of utility.
    folder : path
        Folder to which the paths of scores and keys are relative.
    level : float
        Coverage of the intervals; NaN if unknown.
    name : str
        Name of the anonymiser.
    conversations : mapping of int to mapping, optional
        See `Results.by_utterances`.
    """
    drawn = PagePictures([], [], [], [], utility_pictures(utility, headlines, name), [])
    n_drawn: dict[str, int] = {}  # number of lists drawn so far, by data set
    for position, part in enumerate(lists, 1):
        where = name_list(part.dataset, part.gender)
        scored = {
            label_of(outcome): (label_of(outcome), outcome, folder) for outcome in part.outcomes
        }
        curves = score_pictures(scored, where, f"curves-{position}")
        curves.append(linkability_picture(part.outcomes, level, where, f"curves-{position}"))
        drawn.curves.append((where, curves))
        drawn.speakers.extend(speakers_picture(part.speakers, where, f"speakers-{position}"))
        if conversations:
            title = f"conversations-{position}"
            drawn.conversations.append(conversation_picture(part, conversations, where, title))
        drawn.matches.extend(match_pictures(part.outcomes, where, f"cmc-{position}"))
        n_drawn[part.dataset] = n_drawn.get(part.dataset, 0) + 1
        if part.voices:
            prefix = f"voices-{len(n_drawn)}-{n_drawn[part.dataset]}"
            drawn.voices.extend(similarity_pictures(part.voices[0], where, prefix))
    return drawn


def picture(
    kind: str, plot: Callable[..., object], *given: Any, title: str, name: str, **options: Any
) -> Picture:
    """Draw a plot for the page; if that fails, ``problem`` says why.

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
            return _problem(kind, f"A plot is left out: {error}")
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
        node.text = _unless_blank(node.text)
        node.tail = _unless_blank(node.tail)
        identity = node.attrib.pop("id", None)
        if identity in used:
            node.set("id", f"{name}-{identity}")
        target = node.attrib.pop(f"{_XLINK}href", "")
        if target.startswith("#"):
            node.set("href", f"#{name}-{target[1:]}")
        elif target:  # a reference to an embedded image
            node.set("href", target)
        for attribute in ("clip-path", "style", "d"):
            if attribute in node.attrib:
                value = re.sub(r"url\(#", f"url(#{name}-", " ".join(node.attrib[attribute].split()))
                node.set(attribute, re.sub(r"#[0-9a-f]{6}\b", _variable, value))
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib.update({"role": "img", "aria-label": label, "class": "plot"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def label_of(outcome: Outcome) -> str:
    """Return the legend text of an outcome."""
    return f"{short(outcome.scenario)}, {short(outcome.strongest)}"


def score_pictures(
    outcomes: Mapping[str, tuple[str, Outcome, Path]], where: str, name: str
) -> list[Picture]:
    """Draw DET and ZEBRA plots, and report outcomes whose scores are missing or have changed since the evaluation.

    Parameters
    ----------
    outcomes : mapping of str to (str, Outcome, path)
        By name in messages: legend text, outcome, and the folder of its paths.
    where : str
        The data set.
    name : str
        See `picture`.
    """
    systems = []
    missing = []
    for label, (words, outcome, folder) in outcomes.items():
        try:
            files, key, _ = outcome.condition.files(folder)
            scores = sort_scores(*read_split(files[0], key))
        except DataError as error:
            _log.warning("no curve for %s: %s", label, error)
            missing.append(_problem("det", f"No curve for {label}: {error}"))
            continue
        systems.append((words, scores))
        rate = eer(scores)
        stated = outcome.draws[0] if outcome.draws else outcome.eer.value
        if abs(rate - stated) > 1e-6:
            rates = (
                f"they give an EER of {100 * rate:.2f} %, the results state {100 * stated:.2f} %"
            )
            text = f"The score files of {label} have changed since the results were made: {rates}. Evaluate again."
            _log.warning("%s", text)
            missing.append(_problem("det", text))
    if not systems:
        return missing
    det = picture(
        "det", plots.plot_det, systems, title=f"Errors of the attacker: {where}", name=f"{name}-det"
    )
    title = f"What the scores disclose: {where}"
    return [
        det,
        picture("zebra", plots.plot_zebra, systems, title=title, name=f"{name}-zebra"),
        *missing,
    ]


def linkability_picture(
    outcomes: Sequence[Outcome], level: float, where: str, name: str
) -> Picture:
    """Draw linkability over the number of enrolled speakers, with a curve for each scenario."""
    curves = {}
    for outcome in outcomes:
        curve = _curve(outcome.condition, level)
        if curve is not None:
            curves[label_of(outcome)] = curve
    if not curves:
        return _problem("linkability", "No linkability plot: the results hold no curve.")
    title = f"Finding one among many: {where}"
    return picture("linkability", plots.plot_linkability, curves, title=title, name=f"{name}-link")


def speakers_picture(speakers: Sequence[EnrolledSpeaker], where: str, name: str) -> list[Picture]:
    """Draw the known linkabilities of speakers, the most exposed first; draw nothing for fewer than two of them."""
    values = []
    for speaker in speakers:
        if not math.isnan(speaker.linkability_mean):
            values.append((speaker.linkability_mean, short(speaker.gender)))
    if len(values) < 2:
        return []
    return [
        picture("speakers", plots.plot_exposure, values, title=f"Speakers of {where}", name=name)
    ]


def conversation_picture(
    part: OnList, conversations: ByUtterances, where: str, name: str
) -> Picture:
    """Draw the equal error rate of each scenario over the number of recordings that are scored at once."""
    systems = {}
    for outcome in part.outcomes:
        rates = {}
        for number, outcomes in conversations.items():
            same = outcomes.get(outcome.identity)
            if same is not None and same.eer.known:
                rates[number] = same.eer
        systems[short(outcome.scenario)] = rates
    title = f"Several recordings of one speaker: {where}"
    return picture("conversations", plots.plot_conversations, systems, title=title, name=name)


def match_pictures(outcomes: Sequence[Outcome], where: str, name: str) -> list[Picture]:
    """Draw cumulative match characteristics; draw nothing if the results contain none."""
    curves = {}
    for outcome in outcomes:
        shares = outcome.condition.cmc
        if shares is not None and len(shares) > 1:
            curves[label_of(outcome)] = shares
    if not curves:
        return []
    return [
        picture(
            "cmc",
            plots.plot_cmc,
            curves,
            title=f"Target speaker among the first: {where}",
            name=name,
        )
    ]


def similarity_pictures(voices: Voices, where: str, name: str) -> list[Picture]:
    """Draw the voice similarity matrices of the results; draw nothing if there are none."""
    stated = voices.matrices or {}
    cells = {kind: np.array(stated[kind].values) for kind in plots.VOICES if kind in stated}
    if not cells:
        return []
    names = next(iter(stated.values())).speakers
    title = f"Voice similarity: {where}"
    return [picture("similarity", plots.plot_similarity, cells, names, title=title, name=name)]


def utility_pictures(
    utility: Sequence[UtilityFigure], headlines: Sequence[Headline], name: str
) -> list[Picture]:
    """Plot each value over all speakers against the EER of its data set, or else of the worst data set."""
    drawn: list[Picture] = []
    if not headlines:
        return drawn
    for measure in ("wer", "uar"):
        points = []
        for figure in utility:
            point = _trade_off(figure, headlines, name)
            if figure.measure == measure and point is not None:
                points.append(point)
        if points:
            title, lower_is_better, _ = MEASURES[measure]
            options: dict[str, Any] = {"measure": title, "lower_is_better": lower_is_better}
            options |= {"title": f"Privacy against {title.lower()}", "name": f"utility-{measure}"}
            drawn.append(picture("utility", plots.plot_privacy_utility, points, **options))
    return drawn


def _trade_off(
    figure: UtilityFigure, headlines: Sequence[Headline], anonymiser: str
) -> plots.TradeOff | None:
    """Return a value over all speakers with its EER; None if either is unknown."""
    names = [name for name in figure.names if name != "all"]
    if not figure.rate.value.known or not GENDERS.keys().isdisjoint(names):
        return None
    by_dataset = {headline.worst.dataset: headline for headline in headlines}
    own = [by_dataset[name] for name in names if name in by_dataset]
    headline = own[0] if own else headlines[0]
    rate = headline.eer
    if "original" in names and headline.anonymised:
        rate = headline.original
    if not rate.known:
        return None
    label = short(", ".join(names) or anonymiser or "anonymised")
    return plots.TradeOff(label, figure.rate.value, rate)


def _variable(colour: re.Match[str]) -> str:
    name = COLOURS.get(colour[0])
    if name is None:
        return colour[0]
    return f"var(--plot-{name}, {colour[0]})"


def _problem(kind: str, text: str) -> Picture:
    return {"kind": kind, "svg": "", "problem": text}


def _unless_blank(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _curve(condition: Condition, level: float) -> Curve | None:
    """Return the linkability curve of a condition, or None if it has fewer than two points."""
    linked = condition.linkability
    if linked is None:
        return None
    sizes = np.array(linked.sizes)
    shown = sizes >= 2
    if shown.sum() < 2:
        return None
    unknown = [np.nan] * len(sizes)
    columns = (linked.linkability, linked.low, linked.high)
    values, low, high = (np.array(column or unknown, float)[shown] for column in columns)
    sizes = sizes[shown]
    return Curve(sizes.astype(np.int64), values, low, high, 1 / sizes, level=level)
