"""What commands of ``spkver`` share: options, tables in help texts, and reading the data directories that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spkbase.console import FILE, Command

if TYPE_CHECKING:
    from spkver.datadir import DataDir

allow_pipes = click.option(
    "--allow-pipes", is_flag=True, help="Run the shell commands of wav.scp; only for lists that you trust."
)
allow_pickle = click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
datadir_argument = click.argument("datadir", type=FILE)


def with_table(kind: type[Command], title: str, rows: Callable[[], list[tuple[str, str]]]) -> type[Command]:
    """Make a kind of command whose help ends with a table, which is made when the help is asked for."""

    class WithTable(kind):  # type: ignore[valid-type, misc]
        def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """Write the table."""
            with formatter.section(title):
                formatter.write_dl(rows())
            super().format_epilog(ctx, formatter)

    return WithTable


def read_speech(path: Path, pipes_to: Path, allow_pipes: bool, jobs: int | None = None) -> DataDir:
    """Read a data directory; what the shell commands of its list write goes to a folder, where they are allowed."""
    from spkver.datadir import read_datadir

    return read_datadir(path, allow_pipes=allow_pipes, pipes_to=pipes_to if allow_pipes else None, jobs=jobs)
