"""The plots of the page: drawn by `evaluation.plots` from the score files that the results name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_split
from evaluation.linkage import Curve
from evaluation.plots import (
    Axis,
    Chart,
    Line,
    Look,
    System,
    look_of,
    plot_det,
    plot_linkability,
    plot_privacy_utility,
    plot_zebra,
    render_chart,
)
from evaluation.reports.page.markup import Html, element, join
from evaluation.reports.page.svg import picture
from evaluation.reports.page.utility import trade_offs
from evaluation.reports.page.verdict import place_of, short
from evaluation.reports.privacy_results import Condition, Outcome, Results, as_number
from spkbase.errors import DataError

_log = logging.getLogger(__name__)
_MOST_MARKED = 200  # speakers


def curve_plots(results: Results, dataset: str, gender: str, folder: Path, name: str) -> Html:
    """Return DET, ZEBRA and linkability plots of the strongest attackers of a data set, one line a scenario."""
    outcomes = results.outcomes_of(dataset, gender)
    systems, trouble = _systems(outcomes, folder)
    where = place_of(dataset, gender)
    parts = []
    if systems:
        parts.append(
            drawn_figure(
                lambda path: plot_det(systems, path=path, title=f"Errors of the attacker: {where}"),
                f"{name}-det",
                f"Detection error trade-off of {where}: one curve for each scenario.",
                "Detection error trade-off. Each point is a setting of the attacker's threshold; the further a curve "
                "lies to the upper right, the more privacy is left.",
                "tall",
            )
        )
        parts.append(
            drawn_figure(
                lambda path: plot_zebra(systems, path=path, title=f"What the scores disclose: {where}"),
                f"{name}-zebra",
                f"ZEBRA profile of {where}: empirical cross-entropy over prior odds, one curve for each scenario.",
                "ZEBRA: what remains unknown after the attack, for each prior suspicion (empirical cross-entropy). On "
                "the dashed line the attack tells nothing. In brackets: population (bit), worst case, category.",
            )
        )
    linked = {_label(outcome): curve for outcome in outcomes if (curve := _curve(outcome.condition, results.level))}
    if linked:
        parts.append(
            drawn_figure(
                lambda path: plot_linkability(linked, path=path, title=f"Finding one among many: {where}"),
                f"{name}-link",
                f"Linkability of {where} over the number of enrolled speakers, one curve for each scenario.",
                "Linkability: the chance that a speaker's own enrolment beats those of all others. The more speakers "
                "are enrolled, the harder; the long-dashed line is guessing.",
            )
        )
    else:
        trouble.append("No linkability plot: the results hold no curve.")
    missing = [element("p", problem, class_="left-out") for problem in trouble]
    return join([element("div", *parts, class_="plots") if parts else None, *missing])


def compared_curves(outcomes: Mapping[str, Outcome], folders: Mapping[str, Path], where: str, name: str) -> Html:
    """Return DET and ZEBRA plots that hold a curve of each anonymiser, that of its least privacy.

    Parameters
    ----------
    outcomes : mapping of str to Outcome
        By the anonymisers' names.
    folders : mapping of str to path
        Where the paths of their results start.
    where : str
        The data set.
    name : str
        Before the ids of the pictures.
    """
    systems, trouble = [], []
    for label, outcome in outcomes.items():
        try:
            systems.append(
                System(f"{short(label)}: {_label(outcome)}", *read_scores_of(outcome.condition, folders[label]))
            )
        except DataError as error:
            _log.warning("no curve of %s: %s", label, error)
            trouble.append(f"No curve of {label}: {error}")
    parts = []
    if systems:
        parts = [
            drawn_figure(
                lambda path: plot_det(systems, path=path, title=f"Errors of the attacker: {where}"),
                f"{name}-det",
                f"Detection error trade-off of {where}: one curve for each anonymiser.",
                "The strongest attacker against each anonymiser; the further to the upper right, the more privacy.",
            ),
            drawn_figure(
                lambda path: plot_zebra(systems, path=path, title=f"What the scores disclose: {where}"),
                f"{name}-zebra",
                f"ZEBRA profile of {where}: one curve for each anonymiser.",
                "ZEBRA: what remains unknown after the attack. In brackets: population (bit), worst case, category.",
            ),
        ]
    missing = [element("p", problem, class_="left-out") for problem in trouble]
    return join([element("div", *parts, class_="plots") if parts else None, *missing])


def speakers_plot(condition: Condition, name: str) -> Html | None:
    """Plot the linkability of all speakers, the worst-off first."""
    rows = [
        (as_number(speaker.get("linkability_mean")), short(str(speaker.get("gender") or "")))
        for speaker in condition.speakers
    ]
    known = sorted((row for row in rows if np.isfinite(row[0])), key=lambda row: -row[0])
    if len(known) < 2:
        return None
    where = place_of(condition.dataset, condition.gender)
    label = f"Mean linkability of each speaker of {where}, sorted."
    caption = (
        "Every speaker, the most exposed on the left: the chance to be found, over all numbers of enrolled speakers."
    )
    return drawn_figure(lambda path: _plot_speakers(known, path, f"Speakers of {where}"), name, label, caption)


def utility_plots(results: Results) -> list[Html]:
    """Plot privacy against each measure of utility that the results hold."""
    return [
        drawn_figure(
            lambda path, found=found: plot_privacy_utility(  # type: ignore[misc]
                found.systems, path=path, measure=found.measure.name, lower_is_better=found.measure.lower_is_better
            ),
            f"utility-{number}",
            f"Equal error rate over {found.measure.name.lower()}: a point for each data set, original and anonymised.",
            "Better speech lies to the right, better privacy above. The grey bands lie between the minimum target "
            "EERs of the VoicePrivacy Challenge 2024.",
        )
        for number, found in enumerate(trade_offs(results), 1)
    ]


def _label(outcome: Outcome) -> str:
    return f"{short(outcome.scenario)}, {short(outcome.attacker)}"


def _systems(outcomes: Sequence[Outcome], folder: Path) -> tuple[list[System], list[str]]:
    """Read the scores of each scenario; also say which are not at hand."""
    systems, trouble = [], []
    for outcome in outcomes:
        try:
            target, nontarget = read_scores_of(outcome.condition, folder)
            systems.append(System(_label(outcome), target, nontarget))
        except DataError as error:
            _log.warning("no curve of %s: %s", _label(outcome), error)
            trouble.append(f"No curve of {_label(outcome)}: {error}")
    return systems, trouble


def read_scores_of(condition: Condition, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read target and nontarget scores of a condition; lists of files, as of pooled sexes, are put together.

    Raises
    ------
    DataError
        If the results name no files, or these do not fit, or lie outside the folder of the results: results that came
        from elsewhere must not bring files of this machine into the page.
    """
    scores, keys = (_paths(condition.values.get(name), folder) for name in ("scores", "key"))
    if not scores or not keys:
        raise DataError("the results name no scores with their key")
    if len(keys) not in (1, len(scores)):
        raise DataError(f"expected one key or one for each of {len(scores)} files of scores, got {len(keys)}")
    pairs = zip(scores, keys * len(scores) if len(keys) == 1 else keys, strict=True)
    split = [read_split(*pair) for pair in pairs]
    target, nontarget = (np.concatenate([pair[side] for pair in split]) for side in (0, 1))
    if not len(target) or not len(nontarget):
        raise DataError("expected trials of both classes", file=scores[0])
    return target, nontarget


def _paths(listed: Any, folder: Path) -> list[Path]:
    names = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
    paths = [folder / name for name in names if isinstance(name, str) and name and "\0" not in name]
    for path in paths:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError("the results name a file outside their folder, which is not read", file=path)
    return paths


def _curve(condition: Condition, level: float) -> Curve | None:
    """Return the linkability of a condition, or None where it holds none that can be drawn."""
    block = condition.values.get("linkability")
    if not isinstance(block, Mapping):
        return None
    names = ("sizes", "linkability", "low", "high")
    columns = [[as_number(number) for number in block.get(name) or ()] for name in names]
    n_sizes = len(columns[0])
    if n_sizes < 2 or len(columns[1]) != n_sizes:
        return None
    table = np.array([column if len(column) == n_sizes else [np.nan] * n_sizes for column in columns])
    table = table[:, np.isfinite(table[:2]).all(axis=0) & (table[0] >= 2)]
    sizes, values, low, high = table[:, np.argsort(table[0], kind="stable")]
    if len(sizes) < 2 or sizes[0] == sizes[-1]:
        return None
    return Curve(sizes.astype(np.int64), values, low, high, 1 / sizes, level=level)


def _plot_speakers(rows: Sequence[tuple[float, str]], path: Path, title: str) -> None:
    places = np.arange(1, len(rows) + 1)
    values = np.array([value for value, _ in rows])
    lines, entries = [], []
    if len(rows) > _MOST_MARKED:
        lines.append(Line(places, values, look_of(0)))
    else:
        sexes = sorted({sex for _, sex in rows})
        for number, sex in enumerate(sexes):
            chosen = np.array([gender == sex for _, gender in rows])
            look = Look(look_of(number).colour, marker="os^"[number % 3], line=False)
            lines.append(Line(places[chosen], values[chosen], look))
            entries.append((look, {"f": "female", "m": "male", "": "speaker"}.get(sex, sex)))
    mean = float(values.mean())
    lines.insert(0, Line(np.array([0.0, len(rows) + 1.0]), np.full(2, mean), Look("#606060", (6, 3), 1.2)))
    entries.append((Look("#606060", (6, 3), 1.2), f"mean over speakers ({mean:.2f})"))
    axis = Axis("Speakers, sorted", 0.0, len(rows) + 1.0)
    chart = Chart(title, axis, Axis("Mean linkability", 0.0, 1.05), tuple(lines), tuple(entries), height=3.6)
    render_chart(chart, path)


def drawn_figure(draw: Callable[[Path], object], name: str, label: str, caption: str, kind: str | None = None) -> Html:
    """Draw a plot into an element of the page with its caption; what cannot be drawn is said in its place."""
    try:
        drawn = picture(draw, name=name, label=label)
    except DataError as error:
        _log.warning("a plot is left out: %s", error)
        return element("p", f"A plot is left out: {error}", class_="left-out")
    return element("figure", drawn, element("figcaption", caption), class_=kind)
