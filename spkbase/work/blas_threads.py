"""One BLAS thread wherever products are computed, so that results do not depend on how many cores there are.

With several threads BLAS adds in another order, and the last bits differ.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import LibController

_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}
"""Environment variables by which numerical libraries, when they are loaded, choose one thread."""

_BEFORE: list[tuple[LibController, int]] = []  # number of threads of each library that is limited
_N_BLOCKS, _N_MODULES = 0, 0
_LIMIT_LOCK = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in a block or, as a decorator, in a function, as every worker does.

    The limit is one of the whole process: it holds from the first block that is entered, in whatever thread, until the
    last is left. To enter a block takes some microseconds, and a third of a millisecond where modules were imported
    since, which may have brought libraries.
    """
    global _N_BLOCKS, _N_MODULES
    with _LIMIT_LOCK:
        if not _N_BLOCKS or len(sys.modules) != _N_MODULES:
            _N_MODULES = len(sys.modules)
            libraries = _libraries(_N_MODULES)
            _BEFORE.extend((library, library.num_threads) for library in libraries)
            _set_threads((library, 1) for library in libraries)
        _N_BLOCKS += 1
    try:
        yield
    finally:
        with _LIMIT_LOCK:
            _N_BLOCKS -= 1
            if not _N_BLOCKS:
                _set_threads(reversed(_BEFORE))
                _BEFORE.clear()


def _set_threads(numbers: Iterable[tuple[LibController, int]]) -> None:
    from threadpoolctl import OpenBLASController

    # from version 3.8 on it obeys the thread alone that limited OpenBLAS first; here, the last one to leave ends it
    clear = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    for library, n_threads in numbers:
        library.set_num_threads(n_threads)
    clear(force=True)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[LibController]:
    """Find the libraries that are loaded: it takes a while, so only when imports may have brought others."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().lib_controllers)


def limit_this_thread() -> None:
    """Limit the libraries whose limit is one of a thread, those on OpenMP, for as long as it lives."""
    _set_threads((library, 1) for library in _libraries(len(sys.modules)))
