"""``spkver-eval zebra``: the ZEBRA profile of scores, printed like the reference command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from evaluation import plots
from evaluation.commands import shared
from evaluation.commands.tables import chosen_columns, format_systems
from evaluation.linkage import PROFILE, ZebraProfiles, zebra_profiles
from evaluation.metrics import SCALE, WorstCase, format_profile, meaning_of, read_scale
from spkbase.console import Command
from spkbase.files import format_table

Scale = Sequence[tuple[str, float]]

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
@click.option(
    "-p",
    "--plot",
    "show",
    is_flag=True,
    help="Show the profile in a window, where there is a display.",
)
@click.option(
    "--worst-case",
    "with_worst_case",
    is_flag=True,
    help="Add the strongest evidence of any trial, read four ways.",
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
    """Compute the ZEBRA profile of scores: what they disclose about a population, and at worst about one person.

    Repeat -s, and -k and -l where they differ, for one table of several systems.

    Example:
      spkver-eval zebra -s demo/scores/svm-gmm-nap.txt -k demo/task/3sess-pwd_eval_m_key.txt -l demo
    """
    if len(systems) > 1 and with_worst_case:
        raise click.UsageError("--worst-case takes one system")
    if len(systems) == 1 and not context.params["labels"]:
        systems = [replace(systems[0], name=PROFILE)]
    tags: Scale = SCALE
    if scale is not None:
        tags = read_scale(scale)
    scores = {}
    keys = {}
    for system in systems:
        read = reader.read(system.scores, system.key)
        # split first: its errors name lines of the files
        reader.split(read, system.scores, system.key)
        scores[system.name], keys[system.name] = read
    shared.warn_of_same_scores(systems, scores)
    profiles = zebra_profiles(
        scores,
        keys,
        convention=convention,
        scale=tags,
        worst_case=with_worst_case,
        missing=reader.missing,
    )
    if not shared.show_json(profiles.to_dict(), json_path):
        _show(profiles, tags)
    _write_plots(profiles, tags, extensions)
    if show:
        remedy = "see the files" if extensions else "-e png writes it"
        _draw_in_window(profiles, tags, remedy)


def _write_plots(profiles: ZebraProfiles, scale: Scale, extensions: tuple[str, ...]) -> None:
    """Write the plot of each system; its file name is ZEBRA- followed by the label; a folder in the label is kept."""
    for name, profile in profiles.systems.items():
        label = Path(name).name
        paths = [Path(name).parent / f"ZEBRA-{label}.{extension}" for extension in extensions]
        if paths:
            plots.plot_zebra([(label, profile.target, profile.nontarget)], path=paths, scale=scale)


def _show(profiles: ZebraProfiles, scale: Scale) -> None:
    """Print the profile of one system like the reference, and profiles of several systems as a table."""
    results = {name: profile.result for name, profile in profiles.systems.items()}
    name, profile = next(iter(profiles.systems.items()))
    if len(results) > 1:
        columns = chosen_columns(
            profile.result, ["zebra.population", "zebra.individual", "zebra.tag"]
        )
        click.echo(format_systems(results, columns))
        return
    zebra = profile.zebra
    click.echo(format_profile(zebra, name))
    click.echo(f"Category {zebra.tag}: {meaning_of(zebra.tag, scale=scale)}")
    if "zebra.individual" in profile.notes:
        click.echo(f"Individual: {profile.notes['zebra.individual']}")
    if profile.worst_case is not None:
        _show_worst_case(profile.worst_case, zebra.individual_ceiling)


def _show_worst_case(worst: WorstCase, ceiling: float) -> None:
    """Print the strongest evidence of any trial, by each estimate.

    Evidence above the ceiling comes from the assumed density, not from any trial.
    """
    readings = dict(zip(_READINGS, vars(worst).values(), strict=True))
    rows = []
    for title, evidence in readings.items():
        text = f"{evidence.log10:.3f}"
        if evidence.log10 > ceiling * (1 + 1e-9):
            text = f"over {ceiling:.3f}"
        rows.append({"worst case by": title, "log10 LLR": text})
    click.echo("\n" + format_table(rows))
    for title, evidence in readings.items():
        if evidence.note:
            click.echo(f"{title}: {evidence.note}")


def _draw_in_window(profiles: ZebraProfiles, scale: Scale, remedy: str) -> None:
    """Show the profiles in a window if there is a display."""
    from matplotlib import pyplot

    figure = pyplot.figure(layout="constrained")
    if figure.canvas.required_interactive_framework is None:
        click.echo(f"no display to show the profile: {remedy}", err=True)
        return
    drawn = [
        (Path(name).name, profile.target, profile.nontarget)
        for name, profile in profiles.systems.items()
    ]
    plots.plot_zebra(drawn, ax=figure.add_subplot(), scale=scale)
    pyplot.show()
