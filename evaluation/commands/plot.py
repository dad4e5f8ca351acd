"""The command ``spkver-eval plot``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from evaluation.commands.options import (
    FILE,
    Reader,
    column_options,
    keys_option,
    labels_option,
    match_keys,
    missing_option,
    parse_prior,
    scores_options,
)
from evaluation.metrics import SCALE, SRE08, effective_prior, read_scale
from evaluation.plots import (
    DetStyle,
    PriorStyle,
    System,
    plot_ape,
    plot_det,
    plot_ece,
    plot_histogram,
    plot_reliability,
    plot_roc,
    plot_zebra,
)
from spkbase.console import Command

_output_option = click.option(
    "-o", "--output", "path", required=True, multiple=True, type=FILE, help="PNG, PDF, SVG or TEX; repeatable."
)
_title_option = click.option("--title", help="Title of the plot.")
_range_option = click.option(
    *("--log-odds", "style"),
    nargs=2,
    type=float,
    default=(-10, 10),
    show_default=True,
    callback=lambda _context, _option, ends: PriorStyle(ends),
    help="Lowest and highest prior log-odds.",
)
_sort_option = click.option("--sort", is_flag=True, help="Order the systems by the metric that the legend names.")


def _systems(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all plots share, and hand on the systems."""

    @wraps(command)
    def wrapped(
        scores_paths: tuple[Path, ...],
        key_paths: tuple[Path, ...],
        labels: tuple[str, ...],
        reader: Reader,
        missing: str,
        **options: Any,
    ) -> None:
        del missing  # the reader knows it
        listed = match_keys(scores_paths, key_paths, labels)
        systems = [
            System(name, *reader.of(place, len(listed)).split(scores, key))
            for place, (name, scores, key) in enumerate(listed)
        ]
        command(systems, **options)

    decorated: Callable[..., None] = wrapped
    for option in (
        _title_option,
        missing_option,
        column_options(each=True),
        _output_option,
        labels_option,
        keys_option,
    ):
        decorated = option(decorated)
    return scores_options(decorated)


@click.command(cls=Command)
@_systems
@click.option(
    "--window",
    type=click.Choice(["auto", "sre10", "old", "new", "big"]),
    default="auto",
    show_default=True,
    help="Part of the plane to show; auto grows until every system is well inside.",
)
@click.option("-p", "--prior", help="Effective target prior of the minDCF point; that of SRE08, 0.0917, by default.")
@click.option(
    "--steppy/--hull-only", default=True, show_default=True, help="Draw the curve itself too, or its convex hull alone."
)
@_sort_option
def det(systems: list[System], window: str, prior: str | None, steppy: bool, **options: Any) -> None:
    """Plot detection error trade-off curves."""
    effective = effective_prior(*SRE08) if prior is None else parse_prior(prior)
    plot_det(systems, style=DetStyle(window=window, steppy=steppy), prior=effective, **options)


@click.command(cls=Command)
@_systems
@click.option(
    "--lowest-fpr",
    type=float,
    help="Left end of the logarithmic axis of the false-accept rate, such as 1e-4; one nontarget trial by default.",
)
@click.option("--linear", is_flag=True, help="A linear axis of the false-accept rate.")
@_sort_option
def roc(systems: list[System], lowest_fpr: float | None, linear: bool, **options: Any) -> None:
    """Plot receiver operating characteristics."""
    if linear and lowest_fpr is not None:
        raise click.UsageError("expected --linear or --lowest-fpr, got both")
    plot_roc(systems, lowest_fpr=0 if linear else lowest_fpr, **options)


@click.command(cls=Command)
@_systems
@_range_option
@_sort_option
def ece(systems: list[System], **options: Any) -> None:
    """Plot the empirical cross-entropy of log-likelihood ratios over the prior."""
    plot_ece(systems, **options)


@click.command(cls=Command)
@_systems
@_range_option
@_sort_option
def nece(systems: list[System], **options: Any) -> None:
    """Plot the empirical cross-entropy, divided by the entropy of the prior."""
    plot_ece(systems, normalised=True, **options)


@click.command(cls=Command)
@_systems
@_range_option
@click.option("--eer", is_flag=True, help="Draw the EER of each system, the highest of its least error rates.")
@_sort_option
def ape(systems: list[System], style: PriorStyle, eer: bool, **options: Any) -> None:
    """Plot the Bayes error rate of log-likelihood ratios over the prior."""
    plot_ape(systems, style=replace(style, eer=eer), **options)


@click.command(cls=Command)
@_systems
@_range_option
@_sort_option
def nber(systems: list[System], **options: Any) -> None:
    """Plot the Bayes error rate, divided by that of the prior alone."""
    plot_ape(systems, normalised=True, **options)


@click.command(cls=Command)
@_systems
@click.option("--scale", type=FILE, help="YAML file of the categories: each tag with the upper end of |log10 LLR|.")
@_range_option
@_sort_option
def zebra(systems: list[System], scale: Path | None, **options: Any) -> None:
    """Plot ZEBRA profiles: what the best attacker leaves unknown, over the prior."""
    plot_zebra(systems, scale=SCALE if scale is None else read_scale(scale), **options)


@click.command(cls=Command)
@_systems
@click.option("--bins", type=click.IntRange(1, 10_000), default=60, show_default=True, help="Number of bins.")
@click.option("--own-scale", is_flag=True, help="Give each system bins, scores and densities of its own scale.")
def histogram(systems: list[System], **options: Any) -> None:
    """Plot the distributions of target and nontarget scores."""
    plot_histogram(systems, **options)


@click.command(cls=Command)
@_systems
@click.option("-p", "--prior", default="0.5", show_default=True, help="Target prior.")
@_sort_option
def reliability(systems: list[System], prior: str, **options: Any) -> None:
    """Plot how often a trial is a target trial against what its log-likelihood ratio claims."""
    plot_reliability(systems, prior=parse_prior(prior), **options)
