"""``spkver-eval linkability-compare``: agreement of runs on easy and hard speakers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from evaluation import linkage
from evaluation.commands.shared import json_option, show_json
from evaluation.linkage import RANKS, utterances_name
from evaluation.uncertainty import Resampling
from spkbase.console import Command, choice_option, number_option, path_option
from spkbase.errors import DataError, Problems
from spkbase.files import format_csv, format_table, write_json, write_text

logger = logging.getLogger(__name__)

_RESAMPLES = 500
_MOST_BANDS = 6
_MOST_ROWS = 100

# by heading of a column: attribute of an agreement, and its format
_COLUMNS = {
    "Jaccard": ("jaccard", ".3f"),
    "chance": ("chance", ".3f"),
    "from": ("low", ".3f"),
    "to": ("high", ".3f"),
    "corrected": ("corrected", ".3f"),
    "p": ("p_value", ".2g"),
}


@click.command("linkability-compare", cls=Command)
@click.argument("runs", nargs=-1, required=True)
@choice_option(
    *("--quartile-ties", "rule"),
    choices=linkage.RULES,
    help="Speakers tied at the edge of a quarter: nearest to a quarter; all in (as published); all out; or random.",
)
@choice_option("--ties", choices=linkage.TIE_RULES, help="How equal scores count.")
@number_option("--permutations", default=1000, least=1, help="Permutations for chance.")
@number_option("--seed", help="Seed of the random numbers.")
@click.option(
    *("--original", "originals"),
    multiple=True,
    metavar="NAME",
    help="A level to plot, not to compare; repeatable.",
)
@path_option(
    *("-o", "--output"),
    help="Folder for comparison.json, speakers.csv, and as .png and .svg: jaccard, intersections by factor, "
    "linkability and distribution of speakers by number of utterances.",
)
@json_option
def linkability_compare(
    runs: tuple[str, ...],
    rule: Any,
    ties: Any,
    permutations: int,
    seed: int,
    originals: tuple[str, ...],
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Compare which speakers are easy and hard to link over runs of the linkability command.

    A RUN is an output folder of that command, as PATH, LABEL=PATH or ATTACKER/ANONYMISER=PATH; its numbers of
    utterances are compared too. Easy and hard to link are the outer quarters of the speakers. Their overlaps (Jaccard)
    are corrected for chance, which is 1/7 for two random quarters.

    Example:
      spkver-eval linkability-compare ECAPA/B3=exp/a ECAPA/B5=exp/b --output exp/compared
    """
    tables = read_runs(runs)
    levels = {}
    for condition in tables:
        levels[condition] = {level for factor, level in condition if factor != linkage.UTTERANCES}
    known = set(chain.from_iterable(levels.values()))
    of_speakers = {}
    for condition, ranks in tables.items():
        over_sizes = linkage.linkability_over_sizes(ranks, ties=ties)
        of_speakers[condition] = linkage.by_speaker(ranks.speakers, over_sizes)
    unknown = sorted(set(originals) - known)
    if unknown:
        text = f"expected --original among the levels {', '.join(sorted(known))}, got {', '.join(unknown)}"
        raise DataError(text)
    compared = {
        condition: table
        for condition, table in of_speakers.items()
        if levels[condition].isdisjoint(originals)
    }
    comparisons = linkage.compare_conditions(
        compared, rule=rule, permutations=permutations, seed=seed
    )
    report = {"measure": "log", "score_ties": ties, **comparisons.to_dict()}
    if originals:
        report["originals"] = sorted(originals)
    if output is not None:
        write_json(output / "comparison.json", report)
        write_text(output / "speakers.csv", members_csv(comparisons, compared))
        plot_runs(output, comparisons, tables, of_speakers, ties, seed)
    if not show_json(report, json_path):
        click.echo(format_comparisons(comparisons))


def read_runs(runs: tuple[str, ...]) -> dict[linkage.Levels, linkage.Ranks]:
    """Return the ranks of each run, for each number of utterances; warn if two runs are equal.

    Raises
    ------
    DataError
        With all runs that cannot be read or that have another run's label.
    """
    problems = Problems()
    ranks_of: dict[linkage.Levels, linkage.Ranks] = {}
    firsts: dict[tuple[int, bytes, bytes], linkage.Levels] = {}
    for text in runs:
        label, _, rest = text.partition("=")
        if rest and not Path(text).exists():
            path = Path(rest)
        else:
            path = Path(text)
            folder = path.parent if path.name == RANKS else path
            label = folder.resolve().name
        names = label.split("/")
        levels = [("run", label)]
        if len(names) == 2:
            levels = [("attacker", names[0]), ("anonymiser", names[1])]
        if path.is_dir():
            path = path / RANKS
        try:
            tables = linkage.read_ranks(path)
        except DataError as error:
            problems.note(error)
            continue
        for utterances, ranks in tables.items():
            condition = (*levels, (linkage.UTTERANCES, utterances_name(utterances)))
            if condition in ranks_of:
                text = f"two runs are {linkage.condition_name(condition)}"
                problems.add(text, file=path, remedy="give different labels, as LABEL=PATH")
            ranks_of[condition] = ranks
            same = firsts.setdefault(
                (utterances, ranks.beaters.tobytes(), ranks.mated.tobytes()), condition
            )
            if same != condition:
                pair = linkage.condition_name(same), linkage.condition_name(condition)
                logger.warning("%s and %s are the same run: their agreement means nothing", *pair)
    problems.raise_if_any()
    return ranks_of


def plot_runs(
    folder: Path,
    comparisons: linkage.Comparisons,
    tables: dict[linkage.Levels, linkage.Ranks],
    means: dict[linkage.Levels, dict[str, float]],
    ties: linkage.TieRule,
    seed: int,
) -> None:
    """Plot the agreement by factor, linkability against the size of the gallery, and its distribution over speakers."""
    from evaluation import plots

    _plot_agreement(folder, comparisons)
    panels: dict[str, dict[tuple[str, str], linkage.Curve]] = {}
    cells: dict[str, dict[tuple[str, str], list[float]]] = {}
    # with more than a few runs the bands would hide each other
    resamples = 0
    if len({condition[:-1] for condition in tables}) <= _MOST_BANDS:
        resamples = _RESAMPLES
    resampling = Resampling(resamples, seed)
    for condition, ranks in tables.items():
        *names, number = (level for _, level in condition)
        name = (names[0], names[1]) if len(names) > 1 else ("", names[0])
        sizes = linkage.log_spaced_sizes(ranks.largest_size)
        panels.setdefault(f"L = {number}", {})[name] = linkage.linkability_curve(
            ranks, sizes, ties=ties, resampling=resampling
        )
        cells.setdefault(number, {})[name] = list(means[condition].values())
    plots.plot_linkability_panels(panels, path=_pictures(folder, "linkability"))
    for number, values in cells.items():
        title = f"Linkability of single speakers, L = {number}"
        plots.plot_speaker_grid(
            values, path=_pictures(folder, f"distribution_L{number}"), title=title
        )


def _pictures(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.png", folder / f"{name}.svg"]


def _plot_agreement(folder: Path, comparisons: linkage.Comparisons) -> None:
    """Plot the means by factor, and the comparisons of each factor."""
    from evaluation import plots

    if comparisons.factors:
        plots.plot_jaccard(comparisons, path=_pictures(folder, "jaccard"))
    for factor in comparisons.factors:
        chosen = {
            "_pairs": _of_factor(comparisons.pairs, factor),
            "_unions": _of_factor(comparisons.unions, factor),
            "": _of_factor(comparisons.joint, factor),
        }
        if not chosen[""]:  # two levels have only one pair, which compares all
            chosen[""] = chosen.pop("_pairs")
        for kind, compared in chosen.items():
            if 0 < len(compared) <= _MOST_ROWS:
                files = _pictures(folder, f"intersections_{factor}{kind}")
                title = f"Easy and hard speakers over levels of: {factor}{kind.replace('_', ', ')}"
                plots.plot_intersections(compared, path=files, title=title)


def format_comparisons(comparisons: linkage.Comparisons) -> str:
    """Format the means by factor with the published ones, then each comparison."""
    forms = {heading: form for heading, (_, form) in _COLUMNS.items()}
    ties = comparisons.settings["tie_rule"]
    head = f"{comparisons.n_speakers:,} speakers, {len(comparisons.sets)} conditions, equal speakers: {ties}"
    parts = [head]
    rows = _rows_of_means(comparisons)
    if rows:
        columns = {"differ in": "", "speakers": "", "pairs": "", **forms}
        if any("published" in row for row in rows):
            columns |= dict.fromkeys(("published", "its corrected"), ".3f")
        parts.append("Mean Jaccard similarity of pairs:\n" + format_table(rows, columns))
    columns = {"compared": "", "at": "", "speakers": "", "in all": ".0f", "in any": ".0f", **forms}
    tables = {
        "Pairs": comparisons.pairs,
        "Unions over utterances": comparisons.unions,
        "All at once": comparisons.joint,
    }
    for title, compared in tables.items():
        rows = []
        for comparison in compared:
            rows += _rows_of_comparison(comparison)
        if rows:
            parts.append(f"{title}:\n" + format_table(rows, columns))
    if comparisons.notes:
        parts.append("\n".join(f"note: {note}" for note in comparisons.notes))
    return "\n\n".join(parts)


def members_csv(
    comparisons: linkage.Comparisons, conditions: dict[linkage.Levels, dict[str, float]]
) -> str:
    """Return linkability and set of each speaker in each condition, as CSV."""
    names = [linkage.condition_name(condition) for condition in comparisons.sets]
    rows = []
    for speaker in sorted(set.intersection(*map(set, conditions.values()))):
        row: list[str] = [speaker]
        for condition, sets in comparisons.sets.items():
            kinds = [kind for kind in linkage.KINDS if speaker in getattr(sets, kind)]
            row += [f"{conditions[condition][speaker]:.6g}", "+".join(kinds)]
        rows.append(row)
    heads = ["speaker"]
    for name in names:
        heads += [f"{name} linkability", f"{name} set"]
    return format_csv(heads, rows)


def _rows_of_means(comparisons: linkage.Comparisons) -> list[dict[str, Any]]:
    """Return a row for each factor and kind of speakers, with the published means, if any."""
    published = linkage.published()
    rows = []
    for factor, kinds in comparisons.factors.items():
        for kind, mean in kinds.items():
            row = {"differ in": factor, "speakers": kind, "pairs": mean.n_pairs, **_numbers(mean)}
            if factor in published:
                known = published[factor][kind]
                row |= {"published": known["jaccard"], "its corrected": known["corrected"]}
            rows.append(row)
    return rows


def _rows_of_comparison(comparison: linkage.Comparison) -> list[dict[str, Any]]:
    """Return a row for each kind of speakers of a comparison."""
    compared = " / ".join(comparison.compared)
    if len(comparison.compared) > 3:
        compared = f"{len(comparison.compared)} conditions"
    elif comparison.factor != "all":
        compared = f"{comparison.factor} {compared}"
    fixed = []
    for factor, level in comparison.fixed:
        fixed.append(f"L = {level}" if factor == linkage.UTTERANCES else level)
    rows = []
    for kind in linkage.KINDS:
        agreement: linkage.Agreement = getattr(comparison, kind)
        counts = {"in all": agreement.intersection, "in any": agreement.union}
        rows.append(
            {
                "compared": compared,
                "at": ", ".join(fixed),
                "speakers": kind,
                **counts,
                **_numbers(agreement),
            }
        )
    return rows


def _of_factor(comparisons: Sequence[linkage.Comparison], factor: str) -> list[linkage.Comparison]:
    return [comparison for comparison in comparisons if comparison.factor == factor]


def _numbers(agreement: linkage.Agreement) -> dict[str, Any]:
    values = {heading: getattr(agreement, name) for heading, (name, _) in _COLUMNS.items()}
    return {heading: None if value != value else value for heading, value in values.items()}
