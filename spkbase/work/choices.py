"""What a user chooses among, for command lines: it loads neither NumPy nor anything that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

from spkbase.errors import DataError

if TYPE_CHECKING:
    import click

    from spkbase.work.devices import Device

EngineKind = Literal["auto", "threads", "loky", "dask"]
ENGINES: tuple[EngineKind, ...] = get_args(EngineKind)
WAIT = 60.0  # seconds that a cluster may be without a worker


def device_option(command: Callable) -> Callable:
    """Add the option ``--device``; the command gets `device`, a `Device` or None."""
    import click

    return click.option(
        "--device",
        callback=_found,
        metavar="NAME",
        help="Compute on a GPU: cuda or cuda:N (PyTorch, else CuPy), or cupy. By default the cores.",
    )(command)


def _found(ctx: click.Context, parameter: click.Parameter, name: str | None) -> Device | None:
    import click

    if name is None:
        return None
    from spkbase.work.devices import find_device

    try:
        return find_device(name)
    except DataError as error:
        raise click.BadParameter(str(error), ctx, parameter) from error
