"""Ordered maps over chunks: the results depend neither on the number of workers nor on their place.

Chunks are fixed by the data, every worker runs its products with one BLAS thread (also when there is one worker), and
results come back in the order of the items, so a reduction over them gives the same bits for any number of workers.

=======  =============================================================================================================
engine   workers
=======  =============================================================================================================
auto     threads of this process where the work is inside NumPy and BLAS, else worker processes
threads  threads of this process
loky     worker processes on this machine
dask     the workers of a Dask cluster, on other machines too: ``use_engine("dask", scheduler="tcp://HOST:PORT")``
=======  =============================================================================================================

A mapped function gets all that it needs as arguments and returns its result; it writes into no shared array, so that
any engine can run it. Large inputs are items that refer to files (`spkbase.arrays`), or chunks.
"""

from __future__ import annotations

import concurrent.futures
import logging
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from spkbase.errors import DataError, WorkerError
from spkbase.packages import imported
from spkbase.plugins import SAFE_PATH

Item = TypeVar("Item")
Result = TypeVar("Result")
EngineKind = Literal["auto", "threads", "loky", "dask"]

logger = logging.getLogger(__name__)

ENGINES: tuple[EngineKind, ...] = get_args(EngineKind)
WAIT = 60.0  # seconds that a cluster may be without a worker
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB_MAXIMUM")}
"""Environment variables by which numerical libraries, when they are loaded, choose one thread."""

_AHEAD = 4  # submitted tasks a worker; some may be done and wait for an earlier one
_IDLE = 20.0  # seconds after which an idle worker process ends
_SECONDS_BETWEEN_LOG_LINES = 10.0
_SAME = ("spkver", "numpy", "scipy", "scikit-learn", "cloudpickle")  # versions on all machines of a cluster
_CLUSTER_REMEDY = "docs/cluster.md shows how to start a scheduler and workers"
_KILLED = "a worker process was killed, most often because memory ran out (use fewer workers)"
_POOL: Any = None  # loky's executor, once there is one


class _Engine(NamedTuple):
    kind: str
    client: Any = None  # of a Dask cluster
    wait: float = WAIT


_ENGINE: ContextVar[_Engine] = ContextVar("engine", default=_Engine("auto"))  # noqa: B039  # nobody changes a tuple


@contextmanager
def use_engine(kind: EngineKind, *, scheduler: str | None = None, timeout: float = WAIT) -> Iterator[None]:
    """Run the maps of this block on an engine.

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
        does not answer or has no worker in time, or workers have other versions of the libraries than this process.
    """
    if kind not in ENGINES:
        raise DataError(f"expected an engine among {', '.join(ENGINES)}, got {kind!r}")
    if (kind == "dask") != (scheduler is not None):
        remedy = "give the address of its scheduler alone, as tcp://HOST:PORT"
        raise DataError(f"engine {kind} and scheduler {scheduler} do not go together", remedy=remedy)
    with ExitStack() as stack:
        client = None if scheduler is None else stack.enter_context(_cluster(scheduler, timeout))
        token = _ENGINE.set(_Engine(kind, client, timeout))
        try:
            yield
        finally:
            _ENGINE.reset(token)


def engine_kind() -> str:
    """Return the name of the current engine."""
    return _ENGINE.get().kind


def ships_items() -> bool:
    """Return whether all maps send items and results to other processes: large items should then refer to files."""
    return engine_kind() in ("loky", "dask")


def default_jobs() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def chunks(sequence: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Split a sequence into pieces of `size` items, the last one shorter; independent of the workers."""
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
        For worker processes it must be importable (a module-level function or a `functools.partial` of one). It does
        not change its arguments.
    items : iterable
        One chunk each; consumed only as far as tasks are submitted.
    jobs : int, optional
        Number of workers on this machine; all cores by default. One worker runs in this thread. Not used on a cluster.
    threads : bool
        With the engine "auto": worker threads instead of processes, for work inside NumPy and BLAS, which release
        Python's lock.
    description : str
        Label of the progress bar or the log; no progress without it.
    total : int, optional
        Number of items if `items` has no length.
    sizes : sequence of int, optional
        Number of recordings, trials or the like in each item: progress counts these, not the items.

    Raises
    ------
    Exception
        The error of the first failing item.
    WorkerError
        If a worker process was killed; on a cluster, where other workers take over, if one item killed several of them,
        or there was no worker for long.
    """
    engine = _ENGINE.get()
    counted = items if sizes is None else sizes
    if total is None and isinstance(counted, Sized):
        total = len(counted)
    jobs = default_jobs() if jobs is None else jobs
    if engine.kind == "serial" or (total is not None and total <= 1) or (jobs == 1 and engine.client is None):
        results = _map_here(function, items)
    elif engine.client is not None:
        results = _map_on_cluster(engine, function, items)
    elif engine.kind == "threads" or (engine.kind == "auto" and threads):
        results = _map_on_threads(function, items, jobs)
    else:
        results = _map_on_processes(function, items, jobs)
    return progress(results, description=description, total=total, sizes=sizes) if description else results


def _map_here(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    for item in items:
        # entered anew for each item: a generator must not hold the limit while its consumer runs
        with one_blas_thread():
            result = function(item)
        yield result


def _map_on_threads(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    with one_blas_thread(), concurrent.futures.ThreadPoolExecutor(jobs, initializer=limit_this_thread) as executor:
        yield from in_order(executor, partial(_task, None, function), items, _AHEAD * jobs)


def _map_on_processes(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    from multiprocessing.resource_tracker import ensure_running

    from loky import get_reusable_executor
    from loky.process_executor import TerminatedWorkerError

    global _POOL
    # a worker whose memory has grown, by a network's buffers, is replaced: nothing that a user could act on
    warnings.filterwarnings("ignore", "A worker (was restarted|stopped) while some jobs", UserWarning)
    before = dict(os.environ)
    os.environ.update(SAFE_PATH)  # for the helper processes of Python and loky too
    try:
        pool = get_reusable_executor(
            jobs, timeout=_IDLE, env={**ONE_THREAD, **SAFE_PATH}, initializer=_ignore_interrupts
        )
        is_new, _POOL = pool is not _POOL, pool
        if is_new:
            ensure_running()  # Python's own helper process, which unblocks Ctrl-C here when it starts
            # workers inherit that Ctrl-C is not for them, from their very start
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            begun = pool.submit(int)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            begun.result()
    except TerminatedWorkerError as error:
        raise WorkerError(_KILLED) from error
    finally:
        os.environ.clear()
        os.environ.update(before)
    try:
        yield from in_order(_POOL, partial(_task, str(Path.cwd()), function), items, _AHEAD * jobs)
    except TerminatedWorkerError as error:
        raise WorkerError(_KILLED) from error


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def stop_workers() -> None:
    """End all worker processes of this machine at once, for an interrupt."""
    if _POOL is not None:
        _POOL.shutdown(wait=True, kill_workers=True)


def _map_on_cluster(engine: _Engine, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    import cloudpickle
    from distributed import KilledWorker

    n_threads = sum(engine.client.nthreads().values())
    executor = engine.client.get_executor(pure=False)
    # as bytes: functions of a script travel whole, and the scheduler need not import what only workers use
    task = partial(_pickled_task, cloudpickle.dumps(partial(_task, str(Path.cwd()), function)))
    ahead = max(64, _AHEAD * n_threads)  # workers may join
    try:
        yield from in_order(executor, task, map(cloudpickle.dumps, items), ahead, partial(_from_cluster, engine))
    except concurrent.futures.CancelledError as error:
        raise WorkerError("the Dask scheduler lost the tasks: it ended, or was restarted") from error
    except KilledWorker as error:
        text = f"several workers of the cluster died of one task, most often because memory ran out: {error}"
        raise WorkerError(text) from error


def _pickled_task(task: bytes, item: bytes) -> bytes:
    import cloudpickle

    return bytes(cloudpickle.dumps(pickle.loads(task)(pickle.loads(item))))


def _from_cluster(engine: _Engine, future: concurrent.futures.Future[bytes]) -> Any:
    """Wait for the result of a task, as long as the cluster has workers."""
    alone_since = None
    while True:
        try:
            return pickle.loads(future.result(timeout=1.0))
        except concurrent.futures.TimeoutError:
            try:
                has_workers = bool(engine.client.nthreads())
            except Exception as error:  # of many kinds
                raise WorkerError(f"the Dask scheduler no longer answers: {error}") from error
            alone_since = None if has_workers else (alone_since or time.monotonic())
            if alone_since is not None and time.monotonic() - alone_since > engine.wait:
                raise WorkerError(f"the cluster has had no worker for {engine.wait:g} s") from None


def in_order(
    executor: Any,
    function: Callable[[Item], Any],
    items: Iterable[Item],
    ahead: int,
    outcome: Callable[[Any], Result] = concurrent.futures.Future.result,
) -> Iterator[Result]:
    """Yield the results of an executor's tasks in the order of their items; at most `ahead` are submitted."""
    rest = iter(items)
    waiting = deque(executor.submit(function, item) for item in islice(rest, ahead))
    try:
        while waiting:
            result = outcome(waiting[0])
            waiting.popleft()
            waiting.extend(executor.submit(function, item) for item in islice(rest, 1))
            yield result
    finally:
        for future in waiting:
            future.cancel()


def _task(place: str | None, function: Callable[[Item], Result], item: Item) -> Result:
    """Do a task in a worker: in the folder of relative paths, with one BLAS thread; maps within it are done here."""
    if place is not None and place != str(Path.cwd()):
        os.chdir(place)
    token = _ENGINE.set(_Engine("serial"))
    try:
        with one_blas_thread():
            return function(item)
    finally:
        _ENGINE.reset(token)


@contextmanager
def _cluster(address: str, timeout: float) -> Iterator[Any]:
    """Connect to the scheduler of a Dask cluster; yield the client."""
    if "://" not in address:
        raise DataError(f"expected the address of a Dask scheduler, tcp://HOST:PORT, got {address!r}")
    distributed = imported("distributed", "'dask[distributed]'", "a Dask cluster")
    try:
        client = distributed.Client(address, timeout=timeout, set_as_default=False, name="spkver")
    except (OSError, ValueError, TypeError) as error:
        text = f"no Dask scheduler answered at {address} within {timeout:g} s: {error}"
        raise DataError(text, remedy=_CLUSTER_REMEDY) from error
    noise = logging.getLogger("tornado.application")  # a traceback for each result on its way when the client closes
    before, noise.disabled = noise.disabled, True
    try:
        with client:
            try:
                client.wait_for_workers(1, timeout=timeout)
            except TimeoutError as error:
                text = f"the Dask scheduler at {address} has no worker after {timeout:g} s"
                raise DataError(text, remedy=_CLUSTER_REMEDY) from error
            ours = _versions()
            for worker, theirs in client.run(_versions).items():
                if others := [
                    f"{name} {theirs[name]}, here {ours[name]}" for name in ours if theirs[name] != ours[name]
                ]:
                    text = f"worker {worker} has other versions: {'; '.join(others)}"
                    raise DataError(text, remedy="install the same on all machines")
            yield client
    finally:
        noise.disabled = before


def _versions() -> dict[str, str]:
    found = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _SAME:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def progress(
    items: Iterable[Item], *, description: str, total: int | None = None, sizes: Sequence[int] | None = None
) -> Iterator[Item]:
    """Yield items; show a progress bar on a terminal, else log a line every ten seconds.

    It counts the items out of `total`, or the `sizes` of the items.
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


@dataclass(frozen=True)
class Work:
    """Workers of a computation; results do not depend on their number.

    Attributes
    ----------
    jobs : int or None
        Number of workers on this machine; all cores by default.

    Examples
    --------
    >>> list(Work(jobs=2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    jobs: int | None = None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item], **how: Any) -> Iterator[Result]:
        """Yield ``function(item)`` for each item in order, from worker threads: for work inside NumPy and BLAS.

        Parameters
        ----------
        function : callable
            See `ordered_map`.
        items : iterable
        **how
            `description`, `total` and `sizes` of `ordered_map`.
        """
        return ordered_map(function, items, jobs=self.jobs, threads=True, **how)


ALL_CORES = Work()
"""All cores: the default of every function."""


# One BLAS thread for all products: with several, BLAS adds in another order, and the last bits differ.

_BEFORE: list[tuple[Any, int]] = []  # number of threads of each library that is limited
_N_BLOCKS, _N_MODULES = 0, 0
_LIMIT_LOCK = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in a block or, as a decorator, in a function, as every worker does.

    The limit holds for the whole process, from the first block that is entered in any thread until the last is left.
    Entering a block takes some microseconds, and a third of a millisecond after imports, which may have loaded
    libraries.
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


def _set_threads(numbers: Iterable[tuple[Any, int]]) -> None:
    from threadpoolctl import OpenBLASController

    # from version 3.8 on it obeys the thread alone that limited OpenBLAS first; here, the last one to leave ends it
    clear = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    for library, n_threads in numbers:
        library.set_num_threads(n_threads)
    clear(force=True)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Any]:
    """Find the loaded libraries; slow, so only after imports, which may have loaded others."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().lib_controllers)


def limit_this_thread() -> None:
    """Limit libraries that have a limit for each thread, those on OpenMP, in this thread."""
    _set_threads((library, 1) for library in _libraries(len(sys.modules)))
