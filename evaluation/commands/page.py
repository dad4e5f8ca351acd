"""``spkver-eval page``: the page of a privacy evaluation, made again from its results."""

from __future__ import annotations

from pathlib import Path

import click

from evaluation.commands.options import FILE


@click.command()
@click.argument("results", type=FILE)
@click.option("-o", "--output", type=FILE, help="The HTML file; report.html beside the results by default.")
def page(results: Path, output: Path | None) -> None:
    """Make the page that a person reads first, from RESULTS.json and the score files that it names.

    The page holds everything it shows: it needs no network and no JavaScript, and can be printed.
    """
    from evaluation.reports import parse_results, read_results, write_page

    found = read_results(results)
    parse_results(found, file=results)
    output = results.parent / "report.html" if output is None else output
    write_page(found, output, folder=results.parent)
    click.echo(f"wrote {output}")
