"""``spkver-eval zebra``: the ZEBRA profile of scores, with the lines of the reference's command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from evaluation import plots
from evaluation.commands import shared
from evaluation.commands.tables import chosen_columns, format_systems
from evaluation.linkage import worst_case_from
from evaluation.metrics import SCALE, format_profile, meaning_of, metrics_with, read_scale
from evaluation.uncertainty import evaluate
from spkbase.console import Command
from spkbase.files import format_table

_READINGS = ("isotonic regression", "Gaussians", "Student's t", "ranks")


@click.command(cls=Command)
@shared.system_options
@shared.convention_option
@shared.scale_option
@click.option(
    *("-e", "--export", "extensions"),
    multiple=True,
    type=click.Choice(["tex", "pdf", "png", "svg"]),
    help="Write the profile as ZEBRA-<label>.<ext> into this folder (or that of the label); repeatable.",
)
@click.option("-p", "--plot", "show", is_flag=True, help="Show the profile in a window, where there is a display.")
@click.option(
    "--worst-case", "with_worst_case", is_flag=True, help="Add the strongest evidence of any trial, read four ways."
)
@shared.json_option
@click.pass_context
def zebra(
    context: click.Context,
    systems: list[shared.System],
    reader: shared.Reader,
    convention: str,
    scale: Path | None,
    extensions: tuple[str, ...],
    show: bool,
    with_worst_case: bool,
    json_path: Path | None,
) -> None:
    """Compute the ZEBRA profile of scores: what they disclose of a population, and of an individual at worst.

    Repeat -s, and -k and -l where they differ, for one table of several systems.

    Example:
      spkver-eval zebra -s demo/scores/svm-gmm-nap.txt -k demo/task/3sess-pwd_eval_m_key.txt -l demo
    """
    several = len(systems) > 1
    if several and with_worst_case:
        raise click.UsageError("--worst-case takes one system")
    if not several and not context.params["labels"]:
        systems = [replace(systems[0], name="ZEBRA profile")]  # as the reference calls it
    tags = SCALE if scale is None else read_scale(scale)
    results, drawn, reports, worst = {}, [], {}, None
    for name, scores, key in ((one.name, one.scores, one.key) for one in systems):
        read = reader.read(scores, key)
        parts = reader.split(read, scores, key)
        drawn.append((Path(name).name, *parts))
        result = evaluate(*parts, convention=convention, priors=(), metrics=metrics_with(scale=tags))
        report = {part: result.to_dict()[part] for part in ("n_target", "n_nontarget", "convention", "zebra")}
        if notes := {about: text for about, text in result.notes.items() if about in ("scores", "zebra.individual")}:
            report["notes"] = notes
        if with_worst_case:
            worst = worst_case_from(*read, missing=reader.missing)
            report["worst_case"] = worst.to_dict()
        results[name], reports[name] = result, report
    if not shared.show_json({"systems": reports} if several else {"label": name} | report, json_path):
        if several:
            profile = chosen_columns(result, ["zebra.population", "zebra.individual", "zebra.tag"])
            click.echo(format_systems(results, profile))
        else:
            click.echo(format_profile(result.zebra, name))
            click.echo(f"Category {result.zebra.tag}: {meaning_of(result.zebra.tag, scale=tags)}")
            if "zebra.individual" in notes:
                click.echo(f"Individual: {notes['zebra.individual']}")
        if worst is not None:
            found = dict(zip(_READINGS, vars(worst).values(), strict=True))
            most = result.zebra.individual_ceiling  # more is a matter of the density, and of no trial
            rows = [
                {
                    "worst case by": title,
                    "log10 LLR": f"over {most:.3f}" if one.log10 > most * (1 + 1e-9) else f"{one.log10:.3f}",
                }
                for title, one in found.items()
            ]
            click.echo("\n" + format_table(rows))
            for title, one in found.items():
                if one.note:
                    click.echo(f"{title}: {one.note}")
    for one, sides in zip(systems, drawn, strict=True):
        # the prefix stands before the last part of the label, which may begin with a folder
        paths = [Path(one.name).parent / f"ZEBRA-{sides[0]}.{extension}" for extension in extensions]
        if paths:
            plots.plot_zebra([sides], path=paths, scale=tags)
    if show:
        from matplotlib import pyplot

        figure = pyplot.figure(layout="constrained")
        if figure.canvas.required_interactive_framework is None:
            click.echo(
                "no display to show the profile: " + ("see the files" if extensions else "-e png writes it"), err=True
            )
        else:
            plots.plot_zebra(drawn, ax=figure.add_subplot(), scale=tags)
            pyplot.show()
