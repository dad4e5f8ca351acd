"""``spkver-eval plot``: plots of scores."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from evaluation import plots
from evaluation.commands.shared import SHARE, Reader, System, scale_option, system_options
from evaluation.metrics import read_scale
from spkbase.console import Command, number_option, path_option

_OVER_PRIORS = ("log_odds", "sort", "color", "curves")
# by kind of plot: description, function, and the options that it takes
KINDS: dict[str, tuple[str, Any, tuple[str, ...]]] = {
    "det": (
        "detection error trade-off curves",
        plots.plot_det,
        ("window", "prior", "hull_only", "sort", "color"),
    ),
    "roc": (
        "receiver operating characteristics",
        plots.plot_roc,
        ("lowest_fpr", "sort", "color"),
    ),
    "ece": (
        "empirical cross-entropy of log-likelihood ratios over the prior",
        plots.plot_ece,
        _OVER_PRIORS,
    ),
    "nece": (
        "the same, divided by the entropy of the prior",
        partial(plots.plot_ece, normalised=True),
        _OVER_PRIORS,
    ),
    "ape": (
        "Bayes error rate of log-likelihood ratios",
        plots.plot_ape,
        (*_OVER_PRIORS, "with_eer"),
    ),
    "nber": (
        "the same, divided by that of the prior alone",
        partial(plots.plot_ape, normalised=True),
        _OVER_PRIORS,
    ),
    "zebra": (
        "what the best attacker does not learn, over the prior",
        plots.plot_zebra,
        ("log_odds", "scale", "sort", "color"),
    ),
    "histogram": (
        "distributions of target and nontarget scores",
        plots.plot_histogram,
        ("bins", "own_scale", "color"),
    ),
    "reliability": (
        "how often a trial is a target trial, by its ratio",
        plots.plot_reliability,
        ("prior", "sort", "color"),
    ),
    "tippett": (
        "shares of trials over their log10 likelihood ratio",
        plots.plot_tippett,
        ("sort", "color"),
    ),
}


@click.command(
    cls=Command,
    help="Plot scores: one or several systems in one picture.\n\nKIND is one of\n\n\b\n"
    + "\n".join(f"  {kind:12} {about}" for kind, (about, *_) in KINDS.items())
    + "\n\nRepeat -s, -k and -l for each system; one -k serves all. "
    "A TEX file stands alone; a PGF file is a picture for a document in LaTeX."
    "\n\nExample:\n  spkver-eval plot det -s a.txt -s b.txt -k key.txt -l A -l B -o det.pdf"
    "\n  spkver-eval plot histogram -s scores.txt -k key.txt --bins 100 -o histogram.png",
)
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@system_options
@path_option(
    "-o",
    "--output",
    "path",
    required=True,
    multiple=True,
    help="PNG, PDF, SVG, TEX or PGF; repeatable.",
)
@click.option("--title", help="Title of the plot; '' for none.")
@click.option(
    "--width", type=click.FloatRange(min=1), help="Width in inches: 3.4 for one column of a paper."
)
@click.option("--notes/--no-notes", default=True, help="Explain the lines below the plot.")
@click.option(
    "--legend",
    type=click.Choice(plots.CORNERS),
    help="Corner of the plot for the legend; default below.",
)
@click.option(
    "--color",
    multiple=True,
    help="Colour of all systems, or of each in the order of the legend; repeatable.",
)
@click.option("--sort", is_flag=True, help="Order the systems by the metric that the legend names.")
@click.option(
    "--log-odds", nargs=2, type=float, help="ece to zebra: range of prior log-odds.  [-10 10]"
)
@click.option(
    "--curves",
    type=click.Choice(["actual", "minimum"]),
    help="ece to nber: one curve a system, not both.",
)
@click.option("--eer", "with_eer", is_flag=True, help="ape: draw the EER of each system too.")
@click.option(
    "--window",
    type=click.Choice(["auto", *plots.WINDOWS]),
    help="det: part of the plane; auto holds all.",
)
@click.option("--hull-only", is_flag=True, help="det: the convex hulls alone.")
@click.option(
    "--lowest-fpr", type=SHARE, help="roc: left end of a logarithmic axis; default linear."
)
@scale_option
@click.option(
    "-p",
    "--prior",
    type=SHARE,
    help="Target prior. det: of the minDCF point, [0.0917]; reliability: [0.5].",
)
@number_option("--bins", default=None, least=1, help="histogram: number of bins.  [60]")
@click.option("--own-scale", is_flag=True, help="histogram: separate scales for each system.")
@click.pass_context
def plot(
    context: click.Context,
    kind: str,
    systems: list[System],
    reader: Reader,
    path: tuple[Path, ...],
    title: str | None,
    width: float | None,
    notes: bool,
    legend: str | None,
    color: tuple[str, ...],
    sort: bool,
    log_odds: tuple[float, float] | None,
    curves: str | None,
    with_eer: bool,
    window: str | None,
    hull_only: bool,
    lowest_fpr: float | None,
    scale: Path | None,
    prior: float | None,
    bins: int | None,
    own_scale: bool,
) -> None:
    """Plot scores."""
    _, draw, takes = KINDS[kind]
    settings: dict[str, Any] = {
        "color": color or None,
        "sort": sort,
        "log_odds": log_odds,
        "curves": curves,
        "with_eer": with_eer,
        "window": window,
        "hull_only": hull_only,
        "lowest_fpr": lowest_fpr,
        "scale": scale,
        "prior": prior,
        "bins": bins,
        "own_scale": own_scale,
    }
    chosen = {
        name: value for name, value in settings.items() if value is not None and value is not False
    }
    unfit = [
        option.opts[-1]
        for option in context.command.params
        if option.name in chosen.keys() - set(takes)
    ]
    if unfit:
        raise click.UsageError(f"plot {kind} takes no {', '.join(sorted(unfit))}")
    if len(color) == 1:
        chosen["color"] = color[0]
    if scale is not None:
        chosen["scale"] = read_scale(scale)
    drawn = []
    for system in systems:
        read = reader.read(system.scores, system.key)
        target, nontarget = reader.split(read, system.scores, system.key)
        drawn.append((system.name, target, nontarget))
    draw(drawn, path=path, title=title, width=width, notes=notes, legend=legend, **chosen)
