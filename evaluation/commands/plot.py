"""``spkver-eval plot``: pictures of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation import plots
from evaluation.commands.shared import System, parse_prior, scale_option, system_options
from evaluation.metrics import SCALE, SRE08, effective_prior, read_scale
from spkbase.console import Command, number_option, path_option

# kind: what it shows, which options of its own it takes
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "det": ("detection error trade-off curves", ("window", "prior", "hull_only", "sort")),
    "roc": ("receiver operating characteristics", ("lowest_fpr", "sort")),
    "ece": ("the empirical cross-entropy of log-likelihood ratios over the prior", ("log_odds", "sort")),
    "nece": ("the same, divided by the entropy of the prior", ("log_odds", "sort")),
    "ape": ("the Bayes error rate of log-likelihood ratios over the prior", ("log_odds", "eer", "sort")),
    "nber": ("the same, divided by that of the prior alone", ("log_odds", "sort")),
    "zebra": ("what the best attacker leaves unknown, over the prior", ("log_odds", "scale", "sort")),
    "histogram": ("distributions of target and nontarget scores", ("bins", "own_scale")),
    "reliability": ("how often a trial is a target trial against what its ratio claims", ("prior", "sort")),
}


@click.command(
    cls=Command,
    help="Plot scores: one or several systems in one picture.\n\nKIND is one of\n\n\b\n"
    + "\n".join(f"  {kind:12} {about}" for kind, (about, _) in KINDS.items())
    + "\n\nRepeat -s, -k and -l for each system; one -k serves all. A TEX file is a stand-alone pgfplots document.",
)
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@system_options
@path_option("-o", "--output", "path", required=True, multiple=True, help="PNG, PDF, SVG or TEX; repeatable.")
@click.option("--title", help="Title of the plot.")
@click.option("--sort", is_flag=True, help="Order the systems by the metric that the legend names.")
@click.option("--log-odds", nargs=2, type=float, help="ece to zebra: lowest and highest prior log-odds.  [-10 10]")
@click.option("--eer", is_flag=True, help="ape: draw the EER of each system, the highest of its least error rates.")
@click.option(
    "--window",
    type=click.Choice(["auto", *plots.WINDOWS]),
    help="det: part of the plane; auto, the default, holds all.",
)
@click.option("-p", "--prior", help="Target prior. det: of the minDCF point, [0.0917]; reliability: [0.5].")
@click.option("--hull-only", is_flag=True, help="det: draw the convex hull alone, not the curve itself too.")
@click.option(
    "--lowest-fpr", type=float, help="roc: left end of the axis, as 1e-4, else one nontarget trial; 0: linear."
)
@number_option("--bins", default=None, least=1, help="histogram: number of bins.  [60]")
@click.option("--own-scale", is_flag=True, help="histogram: bins, scores and densities of each system's own scale.")
@scale_option
def plot(kind: str, systems: list[System], path: tuple[Path, ...], title: str | None, **own: Any) -> None:
    """Plot scores."""
    given = {name: value for name, value in own.items() if value not in (None, False, ())}
    if unfit := sorted(set(given) - set(KINDS[kind][1])):
        raise click.UsageError(f"plot {kind} takes no {', '.join('--' + name.replace('_', '-') for name in unfit)}")
    drawn = [
        plots.System(one.name, *one.reader.split(one.reader.read(one.scores, one.key), one.scores, one.key))
        for one in systems
    ]
    shared: dict[str, Any] = {"path": path, "title": title}
    shared |= {"sort": own["sort"]} if "sort" in KINDS[kind][1] else {}
    prior = None if own["prior"] is None else parse_prior(own["prior"])
    over_priors: dict[str, Any] = {"log_odds": own["log_odds"] or (-10, 10)}
    if kind == "det":
        shared |= {"window": own["window"] or "auto", "hull_only": own["hull_only"]}
        plots.plot_det(drawn, prior=prior or effective_prior(*SRE08), **shared)
    elif kind == "roc":
        plots.plot_roc(drawn, lowest_fpr=own["lowest_fpr"], **shared)
    elif kind in ("ece", "nece"):
        plots.plot_ece(drawn, normalised=kind == "nece", **over_priors, **shared)
    elif kind in ("ape", "nber"):
        plots.plot_ape(drawn, normalised=kind == "nber", with_eer=own["eer"], **over_priors, **shared)
    elif kind == "zebra":
        tags = SCALE if own["scale"] is None else read_scale(own["scale"])
        plots.plot_zebra(drawn, scale=tags, **over_priors, **shared)
    elif kind == "histogram":
        plots.plot_histogram(drawn, bins=own["bins"] or 60, own_scale=own["own_scale"], **shared)
    else:
        plots.plot_reliability(drawn, prior=prior or 0.5, **shared)
