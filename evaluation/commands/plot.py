"""The command ``spkver-eval plot``."""

from __future__ import annotations

from collections.abc import Callable
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
from evaluation.metrics import SRE08, effective_prior
from evaluation.plots import System

_output_option = click.option(
    "-o", "--output", "outputs", required=True, multiple=True, type=FILE, help="PNG, PDF, SVG or TEX; repeatable."
)
_title_option = click.option("--title", help="Title of the plot.")
_sort_option = click.option("--sort", is_flag=True, help="Order the systems by the metric that the legend names.")


@click.group()
def plot() -> None:
    """Plot scores: one or several systems in one picture.

    Repeat -s, -k and -l for each system; one -k serves all. A TEX file is a stand-alone pgfplots document.
    """


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


@plot.command()
@_systems
@click.option(
    "--window",
    type=click.Choice(["sre10", "old", "new", "big"]),
    default="sre10",
    show_default=True,
    help="Part of the plane to show.",
)
@click.option("-p", "--prior", help="Effective target prior of the minDCF point; that of SRE08, 0.0917, by default.")
@click.option("--steppy", is_flag=True, help="Draw the curve itself too, not only its convex hull.")
@_sort_option
def det(
    systems: list[System],
    outputs: tuple[Path, ...],
    window: str,
    prior: str | None,
    title: str | None,
    steppy: bool,
    sort: bool,
) -> None:
    """Plot detection error trade-off curves."""
    from evaluation.plots import DetStyle, plot_det

    effective = effective_prior(*SRE08) if prior is None else parse_prior(prior)
    style = DetStyle(window=window, steppy=steppy)
    plot_det(systems, path=outputs, style=style, prior=effective, title=title, sort=sort)


@plot.command()
@_systems
@click.option("--lowest-fpr", type=float, help="Logarithmic axis of the false-accept rate, from here on, such as 1e-4.")
@_sort_option
def roc(
    systems: list[System], outputs: tuple[Path, ...], title: str | None, lowest_fpr: float | None, sort: bool
) -> None:
    """Plot receiver operating characteristics."""
    from evaluation.plots import plot_roc

    plot_roc(systems, path=outputs, title=title, lowest_fpr=lowest_fpr, sort=sort)


@plot.command()
@_systems
@_sort_option
def ece(systems: list[System], outputs: tuple[Path, ...], title: str | None, sort: bool) -> None:
    """Plot the empirical cross-entropy of log-likelihood ratios over the prior."""
    from evaluation.plots import plot_ece

    plot_ece(systems, path=outputs, title=title, sort=sort)


@plot.command()
@_systems
@_sort_option
def nece(systems: list[System], outputs: tuple[Path, ...], title: str | None, sort: bool) -> None:
    """Plot the empirical cross-entropy, divided by the entropy of the prior."""
    from evaluation.plots import plot_ece

    plot_ece(systems, path=outputs, title=title, sort=sort, normalised=True)


@plot.command()
@_systems
@_sort_option
def ape(systems: list[System], outputs: tuple[Path, ...], title: str | None, sort: bool) -> None:
    """Plot the Bayes error rate of log-likelihood ratios over the prior."""
    from evaluation.plots import plot_ape

    plot_ape(systems, path=outputs, title=title, sort=sort)


@plot.command()
@_systems
@_sort_option
def nber(systems: list[System], outputs: tuple[Path, ...], title: str | None, sort: bool) -> None:
    """Plot the Bayes error rate, divided by that of the prior alone."""
    from evaluation.plots import plot_ape

    plot_ape(systems, path=outputs, title=title, sort=sort, normalised=True)


@plot.command()
@_systems
@click.option("--scale", type=FILE, help="YAML file of the categories: each tag with the upper end of |log10 LLR|.")
@_sort_option
def zebra(systems: list[System], outputs: tuple[Path, ...], title: str | None, scale: Path | None, sort: bool) -> None:
    """Plot ZEBRA profiles: what the best attacker leaves unknown, over the prior."""
    from evaluation.metrics import SCALE, read_scale
    from evaluation.plots import plot_zebra

    tags = SCALE if scale is None else read_scale(scale)
    plot_zebra(systems, path=outputs, title=title, sort=sort, scale=tags)


@plot.command()
@_systems
@click.option("--bins", type=click.IntRange(1, 10_000), default=60, show_default=True, help="Number of bins.")
def histogram(systems: list[System], outputs: tuple[Path, ...], title: str | None, bins: int) -> None:
    """Plot the distributions of target and nontarget scores."""
    from evaluation.plots import plot_histogram

    plot_histogram(systems, path=outputs, title=title, bins=bins)


@plot.command()
@_systems
@click.option("-p", "--prior", default="0.5", show_default=True, help="Target prior.")
@_sort_option
def reliability(systems: list[System], outputs: tuple[Path, ...], title: str | None, prior: str, sort: bool) -> None:
    """Plot how often a trial is a target trial against what its log-likelihood ratio claims."""
    from evaluation.plots import plot_reliability

    plot_reliability(systems, path=outputs, title=title, sort=sort, prior=parse_prior(prior))
