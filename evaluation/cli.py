"""The command ``spkver-eval``: it gathers the commands of `evaluation.commands`."""

from __future__ import annotations

import logging

import click

from evaluation.commands.challenge import challenge
from evaluation.commands.convert import calibrate, convert, fuse, normalise
from evaluation.commands.cosine import cosine
from evaluation.commands.linkability import linkability
from evaluation.commands.linkability_compare import linkability_compare
from evaluation.commands.metrics import metrics
from evaluation.commands.page import page
from evaluation.commands.plot import plot
from evaluation.commands.utility import f0, rank, uar, wer
from evaluation.commands.zebra import zebra
from spkbase.console import Group, echo_log


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("spkver")
    except PackageNotFoundError:
        return "unknown"


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="spkver-eval")
@click.option("-v", "--verbose", is_flag=True, help="Tell what is done.")
@click.pass_context
def main(ctx: click.Context, verbose: bool) -> None:
    """Scores in, evidence out: metrics, disclosure and plots of speaker verification scores."""
    ctx.with_resource(echo_log(logging.INFO if verbose else logging.WARNING))


for _command in (
    metrics,
    zebra,
    plot,
    page,
    challenge,
    normalise,
    calibrate,
    fuse,
    convert,
    linkability,
    linkability_compare,
    cosine,
    wer,
    uar,
    f0,
    rank,
):
    main.add_command(_command)


if __name__ == "__main__":
    main()
