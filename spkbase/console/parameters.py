"""Options of command lines: the refusal of a second value, and of an output that would replace an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

OUTPUTS = {"--output", "--save", "--json", "--latex", "--markdown", "--plot", "destination"}
"""Options and arguments that name what a command writes, by the same names in all commands."""


def take_once(command: click.Command) -> click.Command:
    """Have a command, and those below a group, refuse an option with two values that takes one, and lost files.

    click keeps the last one and drops the others without a word: ``metrics -s A -s B`` would show B alone. An output
    that is a file of the input too (``calibrate -k KEY -o KEY``), or another output, would replace it.

    Returns
    -------
    click.Command
        The command itself.
    """
    if isinstance(command, click.Group):
        for below in command.commands.values():
            take_once(below)
    if getattr(command, "_takes_once", False):
        return command
    make_parser = command.make_parser

    def make_strict_parser(ctx: click.Context) -> Any:
        parser = make_parser(ctx)
        parse_args = parser.parse_args

        def parse_args_once(args: list[str]) -> Any:
            parsed = parse_args(args)
            _check_once(parsed[2], ctx)
            _check_outputs(parsed[2], parsed[0], ctx)
            return parsed

        parser.parse_args = parse_args_once  # type: ignore[method-assign]
        return parser

    command.make_parser = make_strict_parser  # type: ignore[method-assign]
    command._takes_once = True  # type: ignore[attr-defined]
    return command


def _check_once(given: Sequence[click.Parameter], ctx: click.Context) -> None:
    """Refuse the second of what has one value; a plain flag says the same twice."""
    seen: set[str | None] = set()
    for parameter in given:
        single = isinstance(parameter, click.Option) and not (parameter.multiple or parameter.count)
        if not single or (parameter.is_flag and not parameter.secondary_opts):  # type: ignore[attr-defined]
            continue
        if parameter.name in seen:
            text = f"{parameter.opts[-1]} is given more than once; it takes one value"
            raise click.UsageError(text, ctx)
        seen.add(parameter.name)


def _check_outputs(given: Sequence[click.Parameter], values: Mapping[str, Any], ctx: click.Context) -> None:
    """Refuse an output that an input of the same call names, or another output; a folder takes several."""
    taken: dict[Path, str] = {}
    for parameter in sorted(dict.fromkeys(given), key=lambda one: not OUTPUTS.isdisjoint(one.opts)):  # inputs first
        said = values.get(parameter.name or "") if isinstance(parameter.type, click.Path) else None
        for text in said if isinstance(said, (list, tuple)) else [said]:
            if not isinstance(text, str) or text == "-" or Path(text).is_dir():
                continue
            before = taken.setdefault(Path(text).resolve(), parameter.opts[-1])
            if not OUTPUTS.isdisjoint(parameter.opts) and before != parameter.opts[-1]:
                raise click.UsageError(
                    f"{parameter.opts[-1]} would replace {text}, the file of {before}: name another", ctx
                )
