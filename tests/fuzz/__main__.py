"""The command: ``python -m tests.fuzz [PARSER...]``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.fuzz.campaign import HEAD, row, run, try_again
from tests.fuzz.parsers import all_parsers


@click.command()
@click.argument("parsers", nargs=-1)
@click.option("--seconds", default=60.0, help="Each parser for so long at the least.")
@click.option("--inputs", default=10_000, help="Each parser so many inputs at the least.")
@click.option("--seed", default="0")
@click.option("--jobs", default=1, help="Parsers at a time.")
@click.option("--only", type=int, help="Try this input alone.")
@click.option(
    "--keep", type=click.Path(path_type=Path), default=Path("build/fuzz"), help="Where inputs that are faults go."
)
def main(
    parsers: tuple[str, ...], seconds: float, inputs: int, seed: str, jobs: int, only: int | None, keep: Path
) -> None:
    """Fuzz all parsers, or those that are named."""
    known = all_parsers()
    for name in parsers:
        if name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}")
    click.echo(HEAD)
    if only is None:
        found = run(parsers or known, inputs=inputs, seconds=seconds, seed=seed, jobs=jobs, keep=keep, tell=click.echo)
    else:
        found = [try_again(name, only, seed=seed, keep=keep) for name in parsers]
        click.echo("\n".join(map(row, found)))
    for tally in found:
        for fault in tally.faults:
            last = [line[:160] for line in str(fault["why"]).strip().split("\n")[-12:]]
            click.echo("\n".join(["", f"{tally.parser} {fault['number']}: {fault['fault']}", *last]))
    sys.exit(any(tally.faults for tally in found))


main()
