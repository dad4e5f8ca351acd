"""The options that say who works: ``--jobs``, ``--engine``, ``--scheduler``, ``--wait`` and ``--device``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, overload

import click

from spkbase.errors import DataError
from spkbase.work import ENGINES, WAIT, EngineKind

Command = Callable[..., Any]


@overload
def worker_options(command: Command) -> Command: ...
@overload
def worker_options(*, device: bool) -> Callable[[Command], Command]: ...


def worker_options(command: Command | None = None, *, device: bool = False) -> Any:
    """Add the options of the workers to a command.

    The command gets `jobs` alone, and all its maps run on the engine that was asked for. With ``device=True`` there is
    ``--device`` too, and the command gets `device`, an `spkbase.devices.Device` or None.

    Examples
    --------
    >>> @click.command()
    ... @worker_options
    ... def work(jobs: int | None) -> None: ...
    >>> [option.name for option in work.params]
    ['jobs', 'engine', 'scheduler', 'wait']
    """
    if command is None:
        return lambda command: _with_options(command, device)
    return _with_options(command, device)


def _with_options(command: Command, device: bool) -> Command:
    @wraps(command)
    def wrapped(*args: Any, engine: EngineKind, scheduler: str | None, wait: float | None, **kwargs: Any) -> Any:
        if engine == "dask" and scheduler is None:
            raise click.UsageError("--engine dask needs the cluster's address: --scheduler tcp://HOST:PORT")
        if engine != "dask" and scheduler is not None:
            raise click.UsageError("--scheduler is for a Dask cluster: give --engine dask too")
        if engine != "dask" and wait is not None:
            raise click.UsageError("--wait is for a Dask cluster: give --engine dask too")
        from spkbase.work import engine_kind, use_engine

        if engine == "auto" and engine_kind() != "auto":  # called by another command, whose workers do it
            return command(*args, **kwargs)
        with use_engine(engine, scheduler=scheduler, timeout=WAIT if wait is None else wait):
            return command(*args, **kwargs)

    options: list[Callable[[Command], Command]] = [
        click.option(
            "--jobs", type=click.IntRange(min=1), help="Workers on this machine; all cores by default. Not for dask."
        ),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="auto",
            show_default=True,
            help="Who works: threads or processes (loky) of this machine, auto: each where it fits; or a Dask cluster.",
        ),
        click.option("--scheduler", metavar="tcp://HOST:PORT", help="Address of the Dask cluster, for --engine dask."),
        click.option(
            "--wait",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help=f"How long a Dask cluster may be without a worker, at the start and later.  [default: {WAIT:g}]",
        ),
    ]
    if device:
        options.append(
            click.option(
                "--device",
                callback=_found,
                metavar="NAME",
                help="Compute on a GPU: cuda or cuda:N (PyTorch, else CuPy), or cupy. By default the cores.",
            )
        )
    decorated: Command = wrapped
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _found(ctx: click.Context, parameter: click.Parameter, name: str | None) -> Any:
    if name is None:
        return None
    from spkbase.devices import find_device

    try:
        return find_device(name)
    except DataError as error:
        raise click.BadParameter(str(error), ctx, parameter) from error
