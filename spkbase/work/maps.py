"""Ordered maps over chunks: the results do not depend on the number of workers, nor on where they are.

Chunks are fixed by the data, every worker runs its products with one BLAS thread (also when there is one worker), and
results come back in the order of the items, so a reduction over them gives the same bits for any number of workers.

=======  =============================================================================================================
engine   who works
=======  =============================================================================================================
auto     threads of this process where the work is inside NumPy and BLAS, else worker processes
threads  threads of this process
loky     worker processes on this machine
dask     the workers of a Dask cluster, on other machines too; extra ``[dask]``
=======  =============================================================================================================

So that any of them can run it, a function that is mapped takes what it needs as arguments and returns what it finds; it
writes into no array that others see. Large inputs are items that refer to files (`spkbase.arrays.stored`), or chunks.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, TypeVar

from spkbase.errors import DataError
from spkbase.work.blas_threads import one_blas_thread
from spkbase.work.choices import ENGINES, WAIT, EngineKind
from spkbase.work.executors import map_on_processes, map_on_threads

if TYPE_CHECKING:
    from spkbase.work.cluster import ClusterMap

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOG_LINES = 10.0
_MOST_A_CORE = 8  # workers; more gain nothing, and hundreds of processes bring a machine down


@dataclass(frozen=True)
class _Engine:
    kind: str
    cluster: ClusterMap | None = None


_SERIAL = "serial"  # inside a worker: maps within its task run there
_AUTO = _Engine("auto")
_ENGINE: ContextVar[_Engine] = ContextVar("engine", default=_AUTO)


@contextmanager
def use_engine(kind: EngineKind, *, scheduler: str | None = None, timeout: float = WAIT) -> Iterator[None]:
    """Have the maps of this block run by an engine.

    Parameters
    ----------
    kind : {"auto", "threads", "loky", "dask"}
    scheduler : str, optional
        Address of the Dask cluster's scheduler, such as ``tcp://HOST:8786``.
    timeout : float [s]
        How long to wait for the scheduler to answer and to have a worker, now and whenever all workers are gone.

    Raises
    ------
    DataError
        If there is no such engine, the address is missing or for another engine, Dask is not installed, the scheduler
        does not answer, has no worker in time, or its workers have other versions of what computes than this process.
    """
    if kind not in ENGINES:
        raise DataError(f"expected an engine among {', '.join(ENGINES)}, got {kind!r}")
    if (kind == "dask") != (scheduler is not None):
        remedy = "give its address: --engine tcp://HOST:PORT"
        raise DataError(f"engine {kind} and scheduler {scheduler} do not go together", remedy=remedy)
    with ExitStack() as stack:
        cluster = None
        if scheduler is not None:
            from spkbase.work.cluster import connect

            cluster = stack.enter_context(connect(scheduler, timeout))
        token = _ENGINE.set(_Engine(kind, cluster))
        try:
            yield
        finally:
            _ENGINE.reset(token)


def engine_kind() -> str:
    """Name of the engine that maps run on at this place."""
    return _ENGINE.get().kind


def ships_items() -> bool:
    """Return whether all maps send items and results to other processes: large items are better named by file then."""
    return engine_kind() in ("loky", "dask")


def default_jobs() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def bounded_jobs(jobs: int | None, n_items: int | None) -> int:
    """Return how many workers there are for so many items where a user asks for `jobs`: no more than can be of use.

    Examples
    --------
    >>> bounded_jobs(3, None), bounded_jobs(100_000, 1) <= default_jobs()
    (3, True)
    """
    n_cores = default_jobs()
    if jobs is None or jobs <= n_cores:  # fewer items than cores leave workers idle, which the next map uses
        return n_cores if jobs is None else jobs
    most = _MOST_A_CORE * n_cores
    if jobs > most:
        _note_bound(jobs, n_cores, most)
    return max(n_cores, min(jobs, most, jobs if n_items is None else n_items))


@lru_cache
def _note_bound(jobs: int, n_cores: int, most: int) -> None:
    logger.warning("%d jobs were asked for on %d cores: at most %d are used", jobs, n_cores, most)


def chunks(sequence: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Cut a sequence into pieces of `size` items, the last one shorter; fixed by the data alone."""
    return [sequence[start : start + size] for start in range(0, len(sequence), size)]


def chunk_bounds(n_items: int, size: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each piece of at most `size` among `n_items`."""
    return [(start, min(start + size, n_items)) for start in range(0, n_items, size)]


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    jobs: int | None = None,
    threads: bool = False,
    description: str = "",
    total: int | None = None,
    sizes: Sequence[int] | None = None,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in the order of the items.

    Parameters
    ----------
    function : callable
        For worker processes it must be importable (a module-level function or a `functools.partial` of one). It returns
        what it finds and changes nothing that it was given. What all items need goes into the partial: it is sent to
        each worker once.
    items : iterable
        What to work on, one chunk each.
    jobs : int, optional
        Number of workers on this machine, at most eight for each core; all cores by default. One worker runs in this
        thread. A cluster has its own number.
    threads : bool
        Where the engine is "auto": worker threads instead of processes, which is right for work inside NumPy and BLAS,
        since they release the lock.
    description : str
        What is going on, for the progress bar or the log; no progress without it.
    total : int, optional
        Number of items where `items` has no length.
    sizes : sequence of int, optional
        How many recordings, trials or the like each item holds: progress counts those, as a reader does, not the items.

    Raises
    ------
    Exception
        Whatever the first failing item raised; no worker is left behind.
    WorkerError
        If a worker process was killed; on a cluster, where the work goes to the other workers, if one item brought down
        several of them, or all are gone for long.
    """
    engine = _ENGINE.get()
    counted = items if sizes is None else sizes
    if total is None and isinstance(counted, Sized):
        total = len(counted)
    jobs = bounded_jobs(jobs, total)
    work = partial(_alone, function)
    if (total is not None and total <= 1) or (jobs == 1 and engine.cluster is None) or engine.kind == _SERIAL:
        results = _map_here(function, items)
    elif engine.cluster is not None:
        results = engine.cluster(work, items)
    elif engine.kind == "threads" or (engine.kind == "auto" and threads):
        results = map_on_threads(work, items, jobs)
    else:
        results = map_on_processes(work, items, jobs)
    return progress(results, description=description, total=total, sizes=sizes) if description else results


def progress(
    items: Iterable[Item], *, description: str, total: int | None = None, sizes: Sequence[int] | None = None
) -> Iterator[Item]:
    """Pass items on; show a progress bar on a terminal and log a line now and then elsewhere.

    Counted are the items, out of `total`; where `sizes` are given, what the items hold.
    """
    if sizes is not None:
        total = sum(sizes)
    done_by_item = zip(items, repeat(1) if sizes is None else sizes, strict=sizes is not None)
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(desc=description, total=total, leave=False) as bar:
            for item, size in done_by_item:
                yield item
                bar.update(size)
        return
    started = last = time.monotonic()
    number = 0
    for item, size in done_by_item:
        yield item
        number, now = number + size, time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LOG_LINES:
            last = now
            logger.info("%s: %d%s after %.0f s", description, number, f" of {total}" if total else "", now - started)


@contextmanager
def at_once() -> Iterator[None]:
    """Have maps of this block done in this thread: within a task, whose worker is one of many already."""
    token = _ENGINE.set(_Engine(_SERIAL))
    try:
        yield
    finally:
        _ENGINE.reset(token)


def _alone(function: Callable[[Item], Result], item: Item) -> Result:
    with at_once():
        return function(item)


def _map_here(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    for item in items:
        # entered anew for each item: a generator must not hold the limit while its consumer runs
        with one_blas_thread():
            result = function(item)
        yield result
