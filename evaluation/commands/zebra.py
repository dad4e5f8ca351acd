"""``spkver-eval zebra``: the ZEBRA profile of scores, with the lines of the reference's command."""

from __future__ import annotations

from pathlib import Path

import click

from evaluation.commands import shared
from evaluation.linkage import worst_case_from
from evaluation.metrics import SCALE, evaluate, format_profile, meaning_of, metrics_with, read_scale
from spkbase.console import Command
from spkbase.files import format_table

_READINGS = ("isotonic regression", "Gaussians", "Student's t", "ranks")


@click.command(cls=Command)
@shared.scores_option
@shared.key_option
@shared.reader_options(missing=True)
@shared.convention_option
@shared.scale_option
@click.option("-l", "--label", default="ZEBRA profile", help="Name of the system, also of exported files.")
@click.option(
    *("-e", "--export", "extensions"),
    multiple=True,
    type=click.Choice(["tex", "pdf", "png", "svg"]),
    help="Write the profile as ZEBRA-<label>.<ext> into this folder (or that of the label); repeatable.",
)
@click.option(
    "--worst-case", "with_worst_case", is_flag=True, help="Add the strongest evidence of any trial, read four ways."
)
@shared.json_option
def zebra(
    scores: Path,
    key: Path | None,
    reader: shared.Reader,
    convention: str,
    scale: Path | None,
    label: str,
    extensions: tuple[str, ...],
    with_worst_case: bool,
    json_path: Path | None,
) -> None:
    """Compute the ZEBRA profile of scores: what they disclose of a population, and of an individual at worst."""
    tags = SCALE if scale is None else read_scale(scale)
    read = reader.read(scores, key)
    target, nontarget = reader.split(read, scores, key)
    result = evaluate(target, nontarget, convention=convention, priors=(), metrics=metrics_with(scale=tags))
    report = {name: result.to_dict()[name] for name in ("n_target", "n_nontarget", "convention", "zebra")}
    if notes := {name: text for name, text in result.notes.items() if name in ("scores", "zebra.individual")}:
        report["notes"] = notes
    worst = worst_case_from(*read, missing=reader.missing) if with_worst_case else None
    if worst is not None:
        report["worst_case"] = worst.to_dict()
    if not shared.show_json({"label": label} | report, json_path):
        click.echo(format_profile(result.zebra, label))
        click.echo(f"Category {result.zebra.tag}: {meaning_of(result.zebra.tag, scale=tags)}")
        if "zebra.individual" in notes:
            click.echo(f"Individual: {notes['zebra.individual']}")
        if worst is not None:
            found = dict(zip(_READINGS, vars(worst).values(), strict=True))
            rows = [{"worst case by": title, "LLR": one.llr, "log10": one.log10} for title, one in found.items()]
            click.echo("\n" + format_table(rows, {"worst case by": "", "LLR": ".3f", "log10": ".3f"}))
            for title, one in found.items():
                if one.note:
                    click.echo(f"{title}: {one.note}")
    if extensions:
        from evaluation.plots import plot_zebra

        # the prefix stands before the last part of the label, which may begin with a folder
        paths = [Path(label).parent / f"ZEBRA-{Path(label).name}.{extension}" for extension in extensions]
        plot_zebra([(Path(label).name, target, nontarget)], path=paths, scale=tags)
