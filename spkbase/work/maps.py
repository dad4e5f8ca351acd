"""Ordered maps over chunks on joblib: the results do not depend on the number of workers, nor on where they are.

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
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from spkbase.errors import DataError, WorkerError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

    from spkbase.work.cluster import Cluster

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOG_LINES = 10.0
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_FOR_THREADS = 30.0
_ENDING = (signal.SIGINT, signal.SIGTERM)

EngineKind = Literal["auto", "threads", "loky", "dask"]
ENGINES: tuple[EngineKind, ...] = get_args(EngineKind)
WAIT = 60.0  # seconds that a cluster may be without a worker


@dataclass(frozen=True)
class _Engine:
    kind: str
    cluster: Cluster | None = None


_SERIAL = "serial"  # inside a worker of a cluster: maps within its task run there
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
        remedy = "give both: --engine dask --scheduler tcp://HOST:PORT"
        raise DataError(f"engine {kind} and scheduler {scheduler} do not go together", remedy=remedy)
    with _at_work(kind, scheduler, timeout) as engine:
        token = _ENGINE.set(engine)
        try:
            yield
        finally:
            _ENGINE.reset(token)


@contextmanager
def _at_work(kind: str, scheduler: str | None, timeout: float) -> Iterator[_Engine]:
    if scheduler is None:
        yield _Engine(kind)
        return
    from spkbase.work.cluster import connect

    with connect(scheduler, timeout) as cluster:
        yield _Engine(kind, cluster)


def engine_kind() -> str:
    """Name of the engine that maps run on at this place."""
    return _ENGINE.get().kind


def ships_items() -> bool:
    """Whether all maps send items and results to other processes, so that large items are better named by file."""
    return engine_kind() in ("loky", "dask")


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
        For worker processes it must be importable (a module-level function or a `functools.partial` of one). It returns
        what it finds and changes nothing that it was given. What all items need goes into the partial: it is sent to
        each worker once.
    items : iterable
        What to work on, one chunk each.
    jobs : int, optional
        Number of workers on this machine; all cores by default. One worker runs in this thread. A cluster has its own
        number.
    threads : bool
        Where the engine is "auto": worker threads instead of processes, which is right for work inside NumPy and BLAS,
        since they release the lock.
    description : str
        What is going on, for the progress bar or the log; no progress without it.
    total : int, optional
        Number of items where `items` has no length.

    Raises
    ------
    Exception
        Whatever the first failing item raised; no worker is left behind.
    WorkerError
        If a worker process was killed; on a cluster, where the work goes to the other workers, if one item brought down
        several of them, or all are gone for long.
    """
    engine = _ENGINE.get()
    jobs = default_jobs() if jobs is None else jobs
    if total is None and isinstance(items, Sized):
        total = len(items)
    if (total is not None and total <= 1) or (jobs == 1 and engine.cluster is None) or engine.kind == _SERIAL:
        results = _run_here(function, items)
    elif engine.cluster is not None:
        results = engine.cluster.run(function, items)
    else:
        results = _run_workers(function, items, jobs, threads if engine.kind == "auto" else engine.kind == "threads")
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


@contextmanager
def at_once() -> Iterator[None]:
    """Have maps of this block done in this thread: within a task of a cluster, whose workers are shared out already."""
    token = _ENGINE.set(_Engine(_SERIAL))
    try:
        yield
    finally:
        _ENGINE.reset(token)


def until_error(items: Iterable[Item], errors: list[Exception]) -> Iterator[Item]:
    """Pass items on up to an error, which is noted: joblib waits for ever when its items raise."""
    try:
        yield from items
    except Exception as error:
        errors.append(error)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread in a block, as every worker does."""
    return _blas_libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> ThreadpoolController:
    """Find the loaded libraries, which takes milliseconds: only when imports may have brought others."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _run_here(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    for item in items:
        # entered anew for each item: a generator must not hold the limit while its consumer runs
        with one_blas_thread():
            result = function(item)
        yield result


def _run_workers(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int, threads: bool
) -> Iterator[Result]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError
    from threadpoolctl import threadpool_limits

    settings: dict[str, Any] = {"backend": "threading"}
    if not threads:
        settings = {"backend": _watching_loky()(inner_max_num_threads=1)}
        function = partial(_in_place, function, _place())
    errors: list[Exception] = []
    tasks = until_error((delayed(function)(item) for item in items), errors)
    finished, before = False, set(threading.enumerate())
    with parallel_config(**settings, n_jobs=jobs), threadpool_limits(1):
        with undisturbed():
            results = Parallel(return_as="generator", batch_size=1, pre_dispatch="2*n_jobs")(tasks)
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
                with quiet():
                    results.close()
                    if threads:
                        _wait_for_threads(set(threading.enumerate()) - before)
                    else:
                        stop_workers()
    if errors:
        raise errors[0]


def _wait_for_threads(started: set[threading.Thread]) -> None:
    """Let worker threads finish what they have begun, and begin no more.

    Python that ends while a thread is inside a C++ library ends by SIGABRT (on Linux), whatever its status should be.
    """
    from multiprocessing.dummy import DummyProcess

    end = time.monotonic() + _SECONDS_FOR_THREADS
    for thread in started:
        if isinstance(thread, DummyProcess):
            thread.join(max(0.0, end - time.monotonic()))


def _place() -> str | None:
    """Working folder; None where it was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None


def _in_place(function: Callable[[Item], Result], place: str | None, item: Item) -> Result:
    """Do a task in the working folder that this process has now; that of a worker is the one from when it started."""
    if place is not None and place != _place():
        os.chdir(place)
    return function(item)


@lru_cache(maxsize=1)
def _watching_loky() -> type:
    """Joblib's loky, whose workers end when this process does, even one that was killed and can tell nobody.

    They look from their very start: one that has not had a task yet would wait for it for minutes.
    """
    from joblib.parallel import LokyBackend

    class WatchingLoky(LokyBackend):
        def configure(self, *args: Any, **kwargs: Any) -> int:
            return super().configure(*args, initializer=_watch, initargs=(os.getpid(),), **kwargs)

    return WatchingLoky


def _watch(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    # Not PR_SET_PDEATHSIG: the system sends that signal when the thread ends that started the worker, and threads of a
    # process that lives on may share its workers.
    try:
        handle = os.pidfd_open(parent)  # Linux: becomes readable when the process ends
        if os.getppid() == parent:
            select.select([handle], [], [])
    except (AttributeError, OSError):
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def quiet() -> Iterator[None]:
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
def undisturbed() -> Iterator[None]:
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
