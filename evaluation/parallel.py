"""Ordered maps over chunks on joblib: the results do not depend on the number of workers.

Chunks are fixed by the data, every worker runs its products with one BLAS thread (also when there is one worker), and
results come back in the order of the items, so a reduction over them gives the same bits for any number of workers.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

from evaluation.errors import WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOG_LINES = 10.0
_ENDING = (signal.SIGINT, signal.SIGTERM)


def default_jobs() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def chunks(sequence: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Cut a sequence into pieces of `size` items, the last one shorter; fixed by the data alone."""
    return [sequence[start : start + size] for start in range(0, len(sequence), size)]


def chunk_bounds(n_items: int, size: int) -> list[tuple[int, int]]:
    """(start, stop) of each piece of at most `size` among `n_items`."""
    return [(start, min(start + size, n_items)) for start in range(0, n_items, size)]


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    jobs: int | None = None,
    threads: bool = False,
    description: str = "",
    total: int | None = None,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in the order of the items.

    Parameters
    ----------
    function : callable
        For worker processes it must be importable (a module-level function or a `functools.partial` of one).
    items : iterable
        What to work on, one chunk each.
    jobs : int, optional
        Number of workers; all cores by default. One worker runs in this thread.
    threads : bool
        Worker threads instead of processes: right for work inside NumPy and BLAS, which release the lock.
    description : str
        What is going on, for the progress bar or the log; no progress without it.
    total : int, optional
        Number of items where `items` has no length.

    Raises
    ------
    Exception
        Whatever the first failing item raised; no worker is left behind.
    WorkerError
        If a worker process was killed.
    """
    jobs = default_jobs() if jobs is None else jobs
    if total is None and isinstance(items, Sized):
        total = len(items)
    if jobs == 1 or (total is not None and total <= 1):
        results = _run_here(function, items)
    else:
        results = _run_workers(function, items, jobs, threads)
    return progress(results, description=description, total=total) if description else results


def progress(items: Iterable[Item], *, description: str, total: int | None = None) -> Iterator[Item]:
    """Pass items on; show a progress bar on a terminal and log a line now and then elsewhere."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=description, total=total, leave=False)
        return
    started = last = time.monotonic()
    for number, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LOG_LINES:
            last = now
            logger.info("%s: %d%s after %.0f s", description, number, f" of {total}" if total else "", now - started)


def _run_here(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    from threadpoolctl import threadpool_limits

    for item in items:
        # entered anew for each item: a generator must not hold the limit while its consumer runs
        with threadpool_limits(1):
            result = function(item)
        yield result


def _run_workers(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int, threads: bool
) -> Iterator[Result]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError
    from threadpoolctl import threadpool_limits

    settings: dict[str, Any] = {"backend": "threading"} if threads else {"backend": "loky", "inner_max_num_threads": 1}
    finished = False
    with parallel_config(**settings, n_jobs=jobs), threadpool_limits(1):
        with _undisturbed():
            results = Parallel(return_as="generator", batch_size=1, pre_dispatch="2*n_jobs")(
                delayed(function)(item) for item in items
            )
        try:
            for result in results:  # noqa: UP028  # `yield from` would close `results` before we do
                yield result
            finished = True
        except TerminatedWorkerError as error:
            raise WorkerError(
                "a worker process was killed, most often because memory ran out (use fewer --jobs)"
            ) from error
        finally:
            if not finished:
                with _quiet():
                    results.close()
                    if not threads:
                        stop_workers()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what joblib has to say about an early end from the user.

    It regrets what was computed for nothing, and its managing thread may look for a task that was just taken back.
    """
    hook = threading.excepthook
    threading.excepthook = lambda arguments: logger.debug("thread ended: %r", arguments.exc_value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        threading.excepthook = hook


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back while workers start, since joblib cannot be stopped half-way there.

    Worker processes inherit the mask, so that a Ctrl-C on the terminal is for this process alone, which ends them.
    """
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_resource_tracker

    for tracker in (resource_tracker, loky_resource_tracker):
        tracker.ensure_running()  # when they start, they lift the mask
    came: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in _ENDING} if in_main else {}
    for ending in handlers:
        signal.signal(ending, lambda number, frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for ending, handler in handlers.items():
            signal.signal(ending, handler)
    for number in came[:1]:
        signal.raise_signal(number)


def stop_workers() -> None:
    """End all worker processes at once, for an error or an interrupt."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
