"""``spkver-eval zebra``: the ZEBRA profile of scores, with the flags and the lines of the reference's command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evaluation.commands.metrics import convention_option, json_option, scale_option
from evaluation.commands.options import Reader, column_options, key_option, missing_option, scores_option, show_json
from evaluation.linkage import worst_case_from
from evaluation.metrics import SCALE, WorstCase, evaluate, format_profile, meaning_of, metrics_with, read_scale
from spkbase.console import Command
from spkbase.errors import DataError
from spkbase.files import format_table

if TYPE_CHECKING:
    from evaluation.plots import System

_LABEL = "ZEBRA profile"
_READINGS = ("isotonic regression", "Gaussians", "Student's t", "ranks")


@click.command(cls=Command)
@scores_option
@key_option
@missing_option
@column_options
@convention_option
@scale_option
@click.option("-l", "--label", default=_LABEL, show_default=True, help="Name of the system, also of exported files.")
@click.option("-p", "--plot", "show", is_flag=True, help="Show the profile in a window.")
@click.option(
    "-e",
    "--export",
    "extensions",
    multiple=True,
    type=click.Choice(["tex", "pdf", "png", "svg"]),
    help="Write the profile as ZEBRA-<label>.<ext> into this folder (or that of the label); repeatable.",
)
@click.option(
    "--worst-case",
    "with_worst_case",
    is_flag=True,
    help="Add the strongest evidence of any trial by isotonic regression, Gaussians, Student's t and ranks.",
)
@json_option
def zebra(
    scores: Path,
    key: Path | None,
    missing: str,
    reader: Reader,
    convention: str,
    scale: Path | None,
    label: str,
    show: bool,
    extensions: tuple[str, ...],
    with_worst_case: bool,
    json_path: Path | None,
) -> None:
    """Compute the ZEBRA profile of scores: what they disclose of a population, and of an individual at worst."""
    tags = SCALE if scale is None else read_scale(scale)
    read = reader.read(scores, key)
    target, nontarget = reader.joined(read, scores, key)
    result = evaluate(target, nontarget, convention=convention, priors=(), metrics=metrics_with(scale=tags))
    report = {name: result.to_dict()[name] for name in ("n_target", "n_nontarget", "convention", "zebra")}
    if notes := {name: text for name, text in result.notes.items() if name in ("scores", "zebra.individual")}:
        report["notes"] = notes
    worst = worst_case_from(*read, missing=missing) if with_worst_case else None
    if worst is not None:
        report["worst_case"] = worst.to_dict()
    if not show_json({"label": label} | report, json_path):
        click.echo(format_profile(result.zebra, label))
        click.echo(f"Category {result.zebra.tag}: {meaning_of(result.zebra.tag, scale=tags)}")
        if "zebra.individual" in notes:
            click.echo(f"Individual: {notes['zebra.individual']}")
        if worst is not None:
            click.echo("\n" + format_worst_case(worst))
    if not (extensions or show):
        return
    from evaluation.plots import System, plot_zebra

    system = System(Path(label).name, target, nontarget)
    if extensions:
        plot_zebra([system], path=[export_path(label, extension) for extension in extensions], scale=tags)
    if show:
        _show(system, tags, exported=bool(extensions))


def format_worst_case(worst: WorstCase) -> str:
    """Return the strongest evidence by each reading as a table, with the notes below it."""
    rows = [
        {"worst case by": title, "LLR": evidence.llr, "log10": evidence.log10}
        for evidence, title in zip(worst.readings().values(), _READINGS, strict=True)
    ]
    notes = [
        f"{title}: {evidence.note}"
        for evidence, title in zip(worst.readings().values(), _READINGS, strict=True)
        if evidence.note
    ]
    return "\n".join([format_table(rows, {"worst case by": "", "LLR": ".3f", "log10": ".3f"}), *notes])


def export_path(label: str, extension: str) -> Path:
    """Return the name of an exported file: the prefix stands before the last part of the label.

    Parameters
    ----------
    label : str
        Of the system; may begin with a folder.
    extension : str
        Without its dot.

    Examples
    --------
    >>> export_path("plots/my system", "png").as_posix()
    'plots/ZEBRA-my system.png'
    """
    folder, _, name = label.rpartition("/")
    return Path(folder, f"ZEBRA-{name}.{extension}")


def _show(system: System, tags: tuple[tuple[str, float], ...], *, exported: bool) -> None:
    from tempfile import TemporaryDirectory

    import matplotlib
    from matplotlib import pyplot

    from evaluation.plots import plot_zebra

    if matplotlib.get_backend().lower() in ("agg", "pdf", "svg", "ps", "cairo", "template"):
        if not exported:
            raise DataError("no window can be opened here", remedy="export the profile with -e png instead of -p")
        click.echo("Warning: no window can be opened here: the profile is in the exported files alone", err=True)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder, "profile.png")
        plot_zebra([system], path=path, scale=tags)
        picture = pyplot.imread(path)
    figure = pyplot.figure(figsize=(picture.shape[1] / 100, picture.shape[0] / 100))
    figure.figimage(picture)
    pyplot.show()
