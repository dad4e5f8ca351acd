"""Where array work may run instead of on the cores: on a GPU, through PyTorch or CuPy.

What runs there is written on functions of the array API standard [1]_ alone, so that one text serves all libraries;
`Device` holds such a library's namespace and moves arrays there and back. Neither is imported before a device is asked
for. A device computes products in full float32: a library that shortens them (TF32) is told not to, and is refused
where it still does, since counts of ranks rely on the error bound of float32.

References
----------
.. [1] Consortium for Python Data API Standards, "Python array API standard", https://data-apis.org/array-api/.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

P = ParamSpec("P")
Result = TypeVar("Result")
Array = Any  # of the device's library
Namespace = Any  # a module that follows the standard; there is no type for it yet

_NAME = re.compile(r"(cuda|cupy)(?::(\d+))?|torch")
_GPU_BLOCK, _CORE_BLOCK = 1 << 29, 1 << 26
_PROBE = 64
_INSTALL = "install one: pip install 'spkver[torch]' or 'spkver[cupy]'; or leave --device out"


@dataclass(frozen=True, eq=False)
class Device:
    """A library of arrays, and the place where it keeps them.

    Attributes
    ----------
    name : str
        As it was asked for.
    xp : module
        Namespace of the array API standard.
    place : object, optional
        What the library calls the place; this machine's own memory by default of None.
    block_bytes : int
        What one block of work may take there. Fixed, not a share of what is free: sums must not change with it.
    free_bytes : callable, optional
        Tells how much memory is free there.
    library : str
        Name and version of the library.
    """

    name: str
    xp: Namespace
    place: Any = None
    block_bytes: int = _CORE_BLOCK
    free_bytes: Callable[[], int] | None = None
    library: str = ""

    def asarray(self, array: NDArray, dtype: Any = None) -> Array:
        """Copy an array of NumPy's there, as `dtype` of NumPy's where one is given; it must not be written to."""
        native = np.asarray(array).dtype.newbyteorder("=") if dtype is None else dtype
        here = np.require(array, native, ["C", "W"])  # PyTorch takes no others
        return self.xp.asarray(here) if self.place is None else self.xp.asarray(here, device=self.place)

    def to_numpy(self, array: Array) -> NDArray:
        """Copy an array from there."""
        if self.place is not None:
            from array_api_compat import to_device

            array = to_device(array, "cpu")
        return np.asarray(array)

    def rows_of(self, item_bytes: int, *, least: int = 1, most: int = 1 << 30) -> int:
        """Return the number of items of this size that make a block."""
        return max(least, min(most, self.block_bytes // max(1, item_bytes)))

    def fits(self, n_bytes: int) -> bool:
        """Return whether so much may stay there for long: at most half of what is free, less a few blocks."""
        free = 16 * self.block_bytes if self.free_bytes is None else self.free_bytes()
        return n_bytes <= free // 2 - 4 * self.block_bytes


def on_device(function: Callable[P, Result]) -> Callable[P, Result]:
    """Turn running out of a device's memory inside of `function` into a DataError."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # each library has a class of its own for it
            if type(error).__name__ not in ("OutOfMemoryError", "AcceleratorError"):
                raise
            text = f"the device could not go on, most often because its memory ran out: {error}"
            raise DataError(text, remedy="free its memory, take another device, or leave --device out") from error

    return run


def find_device(name: str | None) -> Device | None:
    """Find a device by its name.

    Parameters
    ----------
    name : str or None
        "cpu" or None: NumPy on the cores. "cuda", "cuda:1": a GPU, through PyTorch where it is installed, else through
        CuPy. "cupy", "cupy:1": a GPU through CuPy. "torch": PyTorch on the cores, for tests.

    Returns
    -------
    Device or None
        None stands for NumPy.

    Raises
    ------
    DataError
        If there is no such device, or the library that it needs is not installed or shortens products.

    Examples
    --------
    >>> find_device("cpu") is None
    True
    """
    if name is None or name == "cpu":
        return None
    match = _NAME.fullmatch(name)
    if match is None:
        raise DataError(f"expected a device among cpu, cuda, cuda:N, cupy, cupy:N and torch, got {name!r}")
    kind, number = match.group(1) or name, int(match.group(2) or 0)
    if kind == "torch":
        device = _torch_device(name, None)
    elif kind == "cuda" and _importable("torch"):
        device = _torch_device(name, number)
    elif kind == "cuda" and not _importable("cupy"):
        raise DataError(f"device {name} needs PyTorch or CuPy, and neither is installed", remedy=_INSTALL)
    else:
        device = _cupy_device(name, number)
    check_products(device)
    return device


def check_products(device: Device) -> None:
    """Raise DataError unless products of float32 matrices keep all bits of their factors."""
    # 1 + 2^-23 times 1: whatever is shorter than float32 loses the last bit
    value = np.float32(1 + 2**-23)
    product = device.asarray(np.full((_PROBE, _PROBE), value)) @ device.asarray(np.eye(_PROBE, dtype=np.float32))
    if not (device.to_numpy(product) == value).all():
        raise DataError(
            f"device {device.name} shortens the factors of float32 products",
            remedy="switch TF32 off (unset NVIDIA_TF32_OVERRIDE, TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, CUPY_TF32)",
        )


def _importable(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def _import(library: str) -> tuple[Any, Namespace]:
    """The library, and the same in the form of the standard."""
    from importlib import import_module

    try:
        return import_module(library), import_module(f"array_api_compat.{library}")
    except ImportError as error:
        raise DataError(f"such a device needs {library} and array-api-compat: {error}", remedy=_INSTALL) from error


def _torch_device(name: str, number: int | None) -> Device:
    torch, xp = _import("torch")
    torch.set_float32_matmul_precision("highest")
    if number is None:
        return Device(name, xp)
    _check_number(name, number, torch.cuda.device_count() if torch.cuda.is_available() else 0, "PyTorch")
    location = torch.device("cuda", number)
    return Device(name, xp, location, _GPU_BLOCK, lambda: int(torch.cuda.mem_get_info(location)[0]))


def _cupy_device(name: str, number: int) -> Device:
    cupy, xp = _import("cupy")
    try:
        n_seen = cupy.cuda.runtime.getDeviceCount()
    except Exception:  # without a driver the count itself fails, in a class of CuPy's
        n_seen = 0
    _check_number(name, number, n_seen, "CuPy")
    location = cupy.cuda.Device(number)
    location.use()
    return Device(name, xp, location, _GPU_BLOCK, lambda: int(cupy.cuda.runtime.memGetInfo()[0]))


def _check_number(name: str, number: int, n_seen: int, library: str) -> None:
    if not n_seen:
        remedy = "check the driver (nvidia-smi) and that the build of it is one for CUDA, or leave --device out"
        raise DataError(f"device {name}: {library} sees no GPU", remedy=remedy)
    if number >= n_seen:
        raise DataError(f"device {name}: {library} sees {n_seen} GPU(s), numbered from 0", remedy="take another number")
