"""The command ``spkver-eval rank``: several systems in one table, in order, and in the plane of privacy and utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaluation.commands.options import FILE, show_json
from evaluation.commands.system_tables import format_paper_latex, format_paper_markdown
from evaluation.commands.utility import json_option, label_option
from spkbase.console import Command
from spkbase.files import format_table, write_text

if TYPE_CHECKING:
    from evaluation.challenges import ComparedSystem, Entry, OrderingRule, SystemOrder

_MIXED = "the EERs are of different attackers or readings ('EER of'), so places compare these as well as systems"


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, type=FILE)
@label_option
@click.option("--rule", "rule_name", type=click.Choice(["vpc2024", "vpc2022"]), default="vpc2024", show_default=True)
@click.option("--target", "targets", multiple=True, type=float, help="Least EER in percent, instead; repeatable.")
@click.option("--utility", "utilities", multiple=True, help="What to rank by, instead: wer, uar, cer, f0; repeatable.")
@click.option(
    "--assignment",
    type=click.Choice(["reached", "highest"]),
    default="reached",
    show_default=True,
    help="Rank a system in every condition that it reaches, or in the highest alone.",
)
@click.option("--split", default="test", show_default=True, help="Split of the sets.")
@click.option(
    *("--dataset", "datasets"), multiple=True, help="Sets of EER and WER, such as libri or en; repeatable; else all."
)
@click.option(
    "--average",
    type=click.Choice(["mean", "least"]),
    default="mean",
    show_default=True,
    help="EER of a system over sets and sexes.",
)
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="How much the errors of two systems on the same speech go together, for ties; 0 errs on their side.",
)
@click.option("--figures", is_flag=True, help="Show every figure of the files beside each other too, set by set.")
@click.option(
    "--plot", type=FILE, help="Draw EER over each utility: .png, .pdf, .svg or .tex; of several, NAME_wer.png ..."
)
@click.option("--latex", type=FILE, help="Write the table of systems: LaTeX with booktabs, caption and label.")
@click.option("--markdown", type=FILE, help="Write the table of systems as Markdown.")
@click.option("--caption", default="Privacy and utility of the systems.", show_default=True, help="Of the LaTeX table.")
@click.option("--table-label", default="tab:systems", show_default=True, help="Label of the LaTeX table.")
@json_option
def rank(
    files: tuple[Path, ...],
    labels: tuple[str, ...],
    rule_name: str,
    targets: tuple[float, ...],
    utilities: tuple[str, ...],
    assignment: str,
    split: str,
    datasets: tuple[str, ...],
    average: str,
    correlation: float,
    figures: bool,
    json_path: Path | None,
    **papers: Any,
) -> None:
    """Rank systems by utility within each least EER that they reach.

    FILES are results.json of the recipe (or its output folder), result_for_rank* of VoicePrivacy 2024 and 2026 (both
    tracks), or summaries of 2022; the EER is that of the semi-informed attacker. The table of the systems comes first
    and tells whose EER each is (of results.json the attacker's that challenge.attacker names, else the strongest's);
    --plot, --latex and --markdown write it for a paper.
    """
    from evaluation.challenges import (
        RULES,
        Reading,
        figure_rows,
        order_systems,
        orders_to_dict,
        read_figures,
        read_system,
        system_rows,
    )

    changes: dict[str, Any] = {"assignment": assignment, "correlation": correlation}
    changes |= {"targets": tuple(percent / 100 for percent in targets)} if targets else {}
    changes |= {"utilities": utilities} if utilities else {}
    rule = replace(RULES[rule_name], **changes)
    reading = Reading(split, average, datasets)  # type: ignore[arg-type]  # click checked the choice
    names = labels or ("",) * len(files)
    if len(names) != len(files):
        raise click.UsageError(f"expected a label for each of {len(files)} files, got {len(names)}")
    systems = _told_apart([read_system(path, name, reading) for path, name in zip(files, names, strict=True)], files)
    orders = order_systems(systems, rule)
    if len({system.sets for system in systems if system.sets}) > 1:
        click.echo("Warning: the EERs are of different sets, so the systems cannot be compared", err=True)
    if len({system.attacker for system in systems}) > 1:
        click.echo(f"Warning: {_MIXED}", err=True)
    for system in systems:
        if system.broken:
            click.echo(f"Warning: {system.name}: its {system.broken}; it reaches no target", err=True)
    rows = system_rows(systems)
    details = {system.name: read_figures(path) for system, path in zip(systems, files, strict=True)}
    _write_papers(systems, rows, rule, papers)
    if json_path is not None:
        report = orders_to_dict(orders, systems, rule)
        report["figures"] = {name: [figure.to_dict() for figure in of] for name, of in details.items()}
        if show_json(report, json_path):
            return
    click.echo(format_table(rows))
    if figures:
        click.echo("\n" + format_table(figure_rows(details)))
    click.echo("\n" + _orders(systems, orders, rule))


def _told_apart(systems: Sequence[ComparedSystem], files: Sequence[Path]) -> list[ComparedSystem]:
    """Add the folder to the names of systems that have the same."""
    names = [system.name for system in systems]
    return [
        replace(system, name=f"{system.name} ({path.resolve().parent.name})")
        if names.count(system.name) > 1
        else system
        for system, path in zip(systems, files, strict=True)
    ]


def _write_papers(
    systems: Sequence[ComparedSystem], rows: Sequence[Mapping[str, str]], rule: OrderingRule, papers: Mapping[str, Any]
) -> None:
    """Write the tables and draw the charts that were asked for."""
    from evaluation.challenges import plot_systems

    if papers["markdown"] is not None:
        write_text(papers["markdown"], format_paper_markdown(rows, ()))
    if papers["latex"] is not None:
        write_text(
            papers["latex"], format_paper_latex(rows, (), caption=papers["caption"], label=papers["table_label"])
        )
    if papers["plot"] is not None:
        for path in plot_systems(systems, papers["plot"], utilities=rule.utilities, targets=rule.targets):
            click.echo(f"drawn: {path}", err=True)


def _orders(systems: Sequence[ComparedSystem], orders: Sequence[SystemOrder], rule: OrderingRule) -> str:
    lines = [f"rule: {rule.name}, assignment: {rule.assignment}"]
    lines += [_MIXED] if len({system.attacker for system in systems}) > 1 else []
    lines += [f"{system.name}: {note}" for system in systems for note in system.notes]
    for order in orders:
        lines += ["", f"EER of {100 * order.target:g} % or more, by {order.utility.upper()}"]
        lines += [f"  {entry.place}. {entry.system}{_places(entry)}: {entry.reason}" for entry in order.entries]
        lines += [f"  -  {name}: {why}{_doubt(order, name)}" for name, why in order.excluded.items()]
    return "\n".join(lines)


def _doubt(order: SystemOrder, name: str) -> str:
    return f"; in doubt: {order.doubts[name]}" if name in order.doubts else ""


def _places(entry: Entry) -> str:
    return f" (places {entry.best} to {entry.worst})" if entry.best and entry.best != entry.worst else ""
