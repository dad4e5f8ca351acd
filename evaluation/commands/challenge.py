"""The command ``spkver-eval challenge``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.commands.options import FILE
from evaluation.commands.utility import resampling_options
from spkbase.console import Command


@click.command(cls=Command)
@click.argument("results", type=FILE)
@click.option(
    *("-k", "--key", "keys"),
    required=True,
    type=FILE,
    help="Folder of the keys: <trial set>/trials, or files of that name.",
)
@click.option("-o", "--output", required=True, type=FILE, help="Folder to write into.")
@click.option("--rule", type=FILE, help="YAML file with the names of sets, in place of VoicePrivacy's.")
@resampling_options
@click.option(
    "-e",
    "--export",
    "extensions",
    multiple=True,
    default=("png",),
    show_default=True,
    type=click.Choice(["png", "pdf", "svg", "tex"]),
    help="Formats of the plots; repeatable.",
)
@click.option("--no-plots", is_flag=True, help="Write the tables alone.")
def challenge(
    results: Path,
    keys: Path,
    output: Path,
    rule: Path | None,
    extensions: tuple[str, ...],
    no_plots: bool,
    **draws: Any,
) -> None:
    """Assess a whole VoicePrivacy challenge.

    RESULTS holds TEAM/SYSTEM/results*/ASV-<enrol>-<trial>/scores. Written are results.csv, results.md and results.tex,
    a page for each system, the weighted averages of VoicePrivacy 2022, and ZEBRA plots for each system and condition.
    Intervals are by speakers, whom an utt2spk beside a key's trials names.
    """
    from evaluation.challenges import VOICEPRIVACY, assess, find_score_lists, read_rule, write_challenge
    from evaluation.uncertainty import Resampling

    naming = VOICEPRIVACY if rule is None else read_rule(rule)
    lists = find_score_lists(results, keys, rule=naming)
    assessed = assess(lists, resampling=Resampling(**draws))
    write_challenge(assessed, output, rule=naming, extensions=() if no_plots else extensions)
    click.echo(f"{len(assessed)} lists of scores assessed: {output / 'results.md'}")
