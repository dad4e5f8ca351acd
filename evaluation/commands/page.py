"""``spkver-eval page``: the page of a privacy evaluation, made again from its results."""

from __future__ import annotations

from pathlib import Path

import click

from evaluation.commands.options import FILE
from spkbase.console import Command


@click.command(cls=Command)
@click.argument("results", type=FILE, nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, help="The HTML file; report.html beside the results by default.")
def page(results: tuple[Path, ...], output: Path | None) -> None:
    """Make the page that a person reads first, from RESULTS.json and the score files that it names.

    Several RESULTS make one page of their anonymisers side by side, comparison.html in the current folder by default.
    The page holds everything it shows: it needs no network and no JavaScript, and can be printed.
    """
    from evaluation.reports import parse_results, read_results, write_comparison, write_page

    found = [read_results(path) for path in results]
    for path, raw in zip(results, found, strict=True):
        parse_results(raw, file=path)
    if len(results) == 1:
        output = results[0].parent / "report.html" if output is None else output
        write_page(found[0], output, folder=results[0].parent)
    else:
        output = Path("comparison.html") if output is None else output
        write_comparison([(raw, path.parent) for raw, path in zip(found, results, strict=True)], output)
    click.echo(f"wrote {output}")
