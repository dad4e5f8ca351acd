"""Shared parts of the commands of ``spkver``: options, and tables in help texts."""

from __future__ import annotations

from collections.abc import Callable

import click

from spkbase.console import FILE, Command

allow_pipes = click.option(
    "--allow-pipes", is_flag=True, help="Run the shell commands of wav.scp; only for trusted lists."
)
allow_pickle = click.option(
    "--allow-pickle", is_flag=True, help="Read pickles too; their code is not run."
)
settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a configuration key; repeatable.",
)
datadir_argument = click.argument("datadir", type=FILE)


def with_table(
    kind: type[Command], title: str, rows: Callable[[], list[tuple[str, str]]]
) -> type[Command]:
    """Make a class of commands whose help ends with a table, which is made when the help is shown."""

    class WithTable(kind):  # type: ignore[valid-type, misc]
        def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """Write the table."""
            with formatter.section(title):
                formatter.write_dl(rows())
            super().format_epilog(ctx, formatter)

    return WithTable
