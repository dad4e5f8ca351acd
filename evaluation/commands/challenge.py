"""Whole evaluations: ``spkver-eval challenge``, ``page`` and ``rank``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from evaluation.commands.shared import json_option, label_option, resampling_options, show_json
from evaluation.uncertainty import Resampling
from spkbase.console import FILE, Command, choice_option, path_option
from spkbase.errors import counted, errors_of
from spkbase.files import format_table, write_text
from spkbase.showing import latex_table

if TYPE_CHECKING:
    from evaluation.challenges import Assignment, SystemRanking


@click.command(cls=Command)
@click.argument("results", type=FILE)
@path_option(
    "-k",
    "--key",
    "keys",
    required=True,
    help="Folder of the keys: <trial set>/trials, or files so named.",
)
@path_option("-o", "--output", required=True, help="Folder to write into.")
@resampling_options()
@click.option(
    *("-e", "--export", "extensions"),
    multiple=True,
    default=("png",),
    type=click.Choice(["png", "pdf", "svg", "tex", "none"]),
    help="Formats of the plots; repeatable; none: tables only.",
)
def challenge(
    results: Path, keys: Path, output: Path, extensions: tuple[str, ...], resampling: Resampling
) -> None:
    """Assess a whole VoicePrivacy challenge.

    RESULTS holds TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores, or is the exp of the toolkit of 2024, or of an output
    folder of spkver voiceprivacy, whose keys are in its lists. Written are results.csv, results.md and results.tex,
    a page for each system, the weighted averages of VoicePrivacy 2022, and ZEBRA plots for each system and condition.
    Intervals are over speakers, as the utt2spk in the folder of a key's trials gives them.

    Example:
      spkver-eval challenge exp --key data --output challenge
      spkver-eval challenge exp/mine/exp --key exp/mine/lists --output challenge
    """
    from evaluation.challenges import assess, find_score_lists, write_challenge

    assessed = assess(find_score_lists(results, keys), resampling=resampling)
    if "none" in extensions:
        extensions = ()
    write_challenge(assessed, output, extensions=extensions)
    click.echo(f"{counted(len(assessed), 'list')} of scores assessed: {output / 'results.md'}")


@click.command(cls=Command)
@click.argument("results", type=FILE, nargs=-1, required=True)
@path_option(
    "-o", "--output", help="HTML file; by default report.html in the folder of the results."
)
@click.option("--title", default="", help="Heading of the page.")
@click.option(
    "--pseudonyms",
    is_flag=True,
    help="Call the speakers S01, S02, ...; a comparison names none anyway.",
)
def page(results: tuple[Path, ...], output: Path | None, title: str, pseudonyms: bool) -> None:
    """Write the HTML report of RESULTS.json and the score files that it names.

    Several RESULTS make one page that compares their anonymisers by the attackers that all have, with paired
    differences from the first; by default comparison.html in the current folder. The page is self-contained: it
    needs no network and no JavaScript, and can be printed.

    Example:
      spkver-eval page exp/results.json --output report.html
      spkver-eval page exp/first/results.json exp/second/results.json --output comparison.html
    """
    from evaluation.reports import read_results, write_comparison, write_page

    sources = [(read_results(path), path.parent) for path in results]
    if len(sources) == 1:
        content, folder = sources[0]
        output = output or folder / "report.html"
        with errors_of(results[0]):
            write_page(content, output, folder=folder, title=title, pseudonyms=pseudonyms)
    else:
        output = output or Path("comparison.html")
        write_comparison(sources, output, title=title)
    click.echo(f"wrote {output}")


@click.command(cls=Command)
@click.argument("files", nargs=-1, type=FILE)
@click.option(
    "--baselines",
    type=click.Choice(["2022", "2024", "2026", "2026-track2"]),
    default=None,
    help="Also rank the baselines of this challenge, whose official figures are known here.",
)
@click.option(
    "--utility-from",
    "utility_files",
    multiple=True,
    metavar="[SYSTEM=]FILE",
    help="Utilities of a system from another file, such as the toolkit's result_for_rank*; repeatable.",
)
@label_option
@choice_option(
    "--rule", "rule_name", choices=["vpc2024", "vpc2022"], help="Ranking rule of this challenge."
)
@click.option(
    "--target", "targets", multiple=True, type=float, help="Minimum EER in percent; repeatable."
)
@click.option(
    "--utility", "utilities", multiple=True, help="Rank by wer, uar, cer or f0; repeatable."
)
@choice_option(
    "--assignment",
    choices=["reached", "highest"],
    help="Rank at each target reached, or at the highest only.",
)
@click.option("--split", default="test", help="Split of the sets.")
@click.option(
    "--dataset", "datasets", multiple=True, help="Sets of EER and WER; repeatable; default all."
)
@choice_option(
    "--average",
    choices=["mean", "least"],
    help="EER of a system: mean or least over sets and sexes.",
)
@click.option("--figures", is_flag=True, help="Also show all figures of the files, set by set.")
@click.option(
    "--reasons", is_flag=True, help="Also say of each system why it has its place, or none."
)
@path_option(
    "--plot",
    help="Draw EER over each utility: .png, .pdf, .svg or .tex; of several, NAME_wer.png ...",
)
@path_option("--latex", help="Write the table of systems: LaTeX with booktabs.")
@path_option("--markdown", help="Write the table of systems as Markdown.")
@json_option
def rank(
    files: tuple[Path, ...],
    baselines: str | None,
    utility_files: tuple[str, ...],
    labels: tuple[str, ...],
    rule_name: str,
    targets: tuple[float, ...],
    utilities: tuple[str, ...],
    assignment: Assignment,
    split: str,
    datasets: tuple[str, ...],
    average: Literal["mean", "least"],
    figures: bool,
    reasons: bool,
    plot: Path | None,
    latex: Path | None,
    markdown: Path | None,
    json_path: Path | None,
) -> None:
    """Rank systems by utility at each minimum EER that they reach.

    FILES are results.json of the recipe (or its output folder), result_for_rank* of VoicePrivacy 2024 and 2026 (both
    tracks), or summaries of 2022; the EER is that of the semi-informed attacker. The table of the systems comes first
    and names the attacker of each EER (for results.json that of challenge.attacker, else the strongest);
    --plot, --latex and --markdown write it for a paper. Files of the toolkits have the names of their baselines, such
    as B4 for result_for_rank_nac.

    Example:
      spkver-eval rank exp/mine --baselines 2024
      spkver-eval rank exp/mine/results.json result_for_rank_* --plot systems.png --latex systems.tex --figures
    """
    from evaluation import challenges

    ranking = challenges.rank_systems(
        files,
        names=labels,
        rule=rule_name,
        targets=[percent / 100 for percent in targets],
        utilities=utilities,
        assignment=assignment,
        split=split,
        average=average,
        datasets=datasets,
        baselines=baselines or "",
        utility_from=_utility_files(utility_files),
    )
    for text in ranking.warnings:
        click.echo(f"Warning: {text}", err=True)
    rows = challenges.system_rows(ranking.systems)
    if markdown is not None:
        write_text(markdown, format_table(rows, markdown=True) + "\n")
    if latex is not None:
        write_text(
            latex,
            latex_table(rows, caption="Privacy and utility of the systems.", label="tab:systems"),
        )
    if plot is not None:
        rule = ranking.rule
        drawn = challenges.plot_systems(
            ranking.systems, plot, utilities=rule.utilities, targets=rule.targets
        )
        for path in drawn:
            click.echo(f"drawn: {path}", err=True)
    if show_json(ranking.to_dict(), json_path):
        return
    click.echo(format_table(rows))
    if figures:
        click.echo("\n" + format_table(challenges.figure_rows(ranking.figures)))
    click.echo(f"\n{_format_ranks(ranking)}")
    if reasons:
        click.echo(f"\n{_format_reasons(ranking)}")


def _utility_files(given: Sequence[str]) -> dict[str, str]:
    """Return files of utilities by the name of their system, which is blank where none is given."""
    files = {}
    for text in given:
        name, is_named, path = text.partition("=")
        if not is_named or Path(text).exists():
            name = ""
            path = text
        files[name] = path
    return files


def _format_ranks(ranking: SystemRanking) -> str:
    """Return who reaches which minimum EER, the best first, and what has to be known of it."""
    from evaluation.challenges import MIXED, order_rows

    rule = ranking.rule
    sets = {system.sets for system in ranking.systems if system.sets}
    line = f"rule: {rule.name}, assignment: {rule.assignment}"
    if len(sets) == 1:
        line += f"; EER of {', '.join(*sets)}"
    lines = [format_table(order_rows(ranking.measured_orders)), "", line]
    if not ranking.measured_orders:
        utilities = ", ".join(rule.utilities).upper()
        lines = [f"no ranks: no system has a measured utility ({utilities})", line]
    if ranking.is_mixed:
        lines.append(MIXED)
    for system in ranking.systems:
        lines += [f"{system.name}: {note}" for note in system.notes[1:]]
    doubts = {}
    for order in ranking.measured_orders:
        for name, doubt in order.doubts.items():
            doubts[f"in doubt: {name} {doubt}"] = True
    return "\n".join([*lines, *doubts])


def _format_reasons(ranking: SystemRanking) -> str:
    """Return for each minimum EER and utility why a system has its place, or none."""
    lines = [f"{system.name}: {system.notes[0]}" for system in ranking.systems if system.notes]
    for order in ranking.measured_orders:
        lines += ["", f"EER of {100 * order.target:g} % or more, by {order.utility.upper()}"]
        lines += [f"  {entry.place}. {entry.system}: {entry.reason}" for entry in order.entries]
        lines += [f"  -  {name}: {reason}" for name, reason in order.excluded.items()]
    return "\n".join(lines)
