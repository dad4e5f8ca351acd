"""Ordered maps over chunks, whose results depend neither on the number of workers nor on where they run.

Chunks are fixed by the data, every worker runs its products with one BLAS thread (also when there is one worker), and
results come back in the order of the items, so a reduction over them gives the same bits for any number of workers.

===============  =====================================================================================================
engine           workers
===============  =====================================================================================================
auto             threads of this process if the work is inside NumPy and BLAS, else worker processes
threads          threads of this process
loky             worker processes on this machine
ray, spark       workers of the joblib backend with this name, which Ray or joblib-spark registers
tcp://HOST:PORT  workers of a Dask cluster, also on other machines; extra ``[dask]``
===============  =====================================================================================================

A mapped function gets all that it needs as arguments, returns its result and writes into no shared array, so that any
engine can run it. Pass large inputs as references to files (`spkbase.arrays`) or in chunks.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import active_children, resource_tracker
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, get_cached_controller

from spkbase.errors import DataError, WorkerError
from spkbase.packages import imported
from spkbase.plugins import SAFE_PATH
from spkbase.progress import hide, progress

Item = TypeVar("Item")
Result = TypeVar("Result")

WAIT = 60.0  # seconds to wait for the scheduler of a cluster and its first worker

_SLICE = 2  # tasks per worker in a slice; two slices are under way
_LOCAL = ("auto", "threads", "loky")
_REGISTERED = {"ray": ("ray.util.joblib", "ray"), "spark": ("joblibspark", "joblibspark")}
# name of the engine, with the client of a Dask cluster
_ENGINE: ContextVar[tuple[str, Any]] = ContextVar("engine", default=("auto", None))
_JOBS: ContextVar[int | None] = ContextVar("jobs", default=None)

# with several threads, BLAS adds in another order and the last bits differ, so all products use one thread
_BEFORE: dict[Any, int] = {}  # number of threads of each library before it was limited
_N_BLOCKS = 0
_LIMIT_LOCK = threading.Lock()


@contextmanager
def use_engine(engine: str, *, timeout: float = WAIT) -> Iterator[None]:
    """Run the maps of this block on an engine.

    Parameters
    ----------
    engine : str
        "auto", "threads", "loky", "ray", "spark", or the address of a Dask scheduler, ``tcp://HOST:PORT``.
    timeout : float [s]
        How long to wait for the scheduler's answer and its first worker.

    Raises
    ------
    DataError
        If the engine is unknown or not installed, or the scheduler does not answer or has no worker in time.
    """
    if engine not in (*_LOCAL, *_REGISTERED) and "://" not in engine:
        names = ", ".join((*_LOCAL, *_REGISTERED))
        raise DataError(
            f"expected one of the engines {names}, or a Dask scheduler's tcp://HOST:PORT, got {engine!r}"
        )
    with ExitStack() as stack:
        client = None
        if engine in _REGISTERED:
            module, package = _REGISTERED[engine]
            # otherwise Spark would run any python3 on PATH
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            getattr(imported(module, package, f"the engine {engine}"), f"register_{engine}")()
        elif engine not in _LOCAL:
            distributed = imported("distributed", "'dask[distributed]'", "a Dask cluster")
            try:
                client = distributed.Client(
                    engine, timeout=timeout, set_as_default=False, name="spkver"
                )
                stack.enter_context(client)
                client.wait_for_workers(1, timeout=timeout)
            except (OSError, ValueError, TypeError) as error:
                text = f"no Dask scheduler with a worker answered at {engine} within {timeout:g} s: {error}"
                raise DataError(
                    text, remedy="docs/cluster.md shows how to start a scheduler and workers"
                ) from error
        token = _ENGINE.set(("dask" if client else engine, client))
        stack.callback(_ENGINE.reset, token)
        yield


def engine_kind() -> str:
    """Return the name of the current engine; "dask" for any cluster of Dask."""
    return _ENGINE.get()[0]


def ships_items() -> bool:
    """Return whether all maps send items and results to other processes; large items should then refer to files."""
    return engine_kind() not in ("auto", "threads", "serial")


@contextmanager
def use_jobs(jobs: int | None) -> Iterator[None]:
    """Give the maps of this block `jobs` workers if they do not say how many; None: one for each core."""
    token = _JOBS.set(jobs)
    try:
        yield
    finally:
        _JOBS.reset(token)


def default_jobs() -> int:
    """Return the number of workers of the current `use_jobs`, else of cores that this process may use."""
    jobs = _JOBS.get()
    if jobs is not None:
        return jobs
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chunks(sequence: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Split a sequence into pieces of `size` items, the last one shorter, independently of the workers."""
    return [sequence[start : start + size] for start in range(0, len(sequence), size)]


def chunk_bounds(n_items: int, size: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each piece of at most `size` among `n_items`."""
    return [(start, min(start + size, n_items)) for start in range(0, n_items, size)]


def stop_workers() -> None:
    """End all worker processes on this machine immediately, on an interrupt."""
    if active_children():
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


@dataclass(frozen=True)
class Work:
    """Workers of a computation; results do not depend on their number.

    Attributes
    ----------
    jobs : int or None
        Number of workers on this machine, by default that of `use_jobs`, or else all cores; one worker runs in this
        thread. Clusters ignore it.

    Examples
    --------
    >>> list(Work(jobs=2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    jobs: int | None = None

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        processes: bool = False,
        description: str = "",
        total: int | None = None,
        sizes: Sequence[int] | None = None,
    ) -> Iterator[Result]:
        """Yield ``function(item)`` for each item, in the order of the items.

        Parameters
        ----------
        function : callable
            Must not change its arguments and, for worker processes, must be importable (a module-level function or a
            `functools.partial` of one).
        items : iterable
            Chunks, consumed only as tasks are submitted.
        processes : bool
            With the engine "auto", use worker processes instead of threads: for work outside NumPy and BLAS, which
            release Python's lock.
        description : str
            Label of the progress bar or the log; no progress without it.
        total : int, optional
            Number of items if `items` has no length.
        sizes : sequence of int, optional
            Number of recordings, trials or the like in each item: progress counts these, not the items.

        Raises
        ------
        Exception
            The error of the first item that fails in order; with worker processes, of the first that fails in time.
        WorkerError
            If a worker process was killed; on a Dask cluster, where other workers take over, if one item killed several
            workers or the scheduler ended.
        """
        kind, client = _ENGINE.get()
        counted = items if sizes is None else sizes
        if total is None and isinstance(counted, Sized):
            total = len(counted)
        jobs = self.jobs or default_jobs()
        results: Iterator[Result]
        if kind == "serial" or (total is not None and total <= 1) or (jobs == 1 and kind in _LOCAL):
            results = map(one_blas_thread()(function), items)
        elif kind == "dask":
            results = _map_on_dask(client, function, items)
        elif kind == "threads" or (kind == "auto" and not processes):
            results = _map_on_threads(function, items, jobs)
        else:
            results = _map_by_joblib(kind, function, items, jobs)
        if (
            not description or kind == "serial"
        ):  # tasks within another map, which shows the progress
            return results
        return progress(results, description=description, total=total, sizes=sizes)


ALL_CORES = Work()
"""Work on all cores, the default of every function."""


def share_out(
    work: Work, function: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """Return ``function(item)`` for each item, run in threads of this process, whatever the engine.

    So the function may fill arrays of its caller, and large arrays are not sent to other processes, which would take
    longer than the work. Within a task of another map, everything runs in the task's thread.
    """
    with nullcontext() if engine_kind() == "serial" else use_engine("threads"):
        return list(work.map(function, items))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, as a context manager or a decorator, as every worker does.

    The limit holds for the whole process, from the first block that is entered in any thread until the last is left.
    Entering a block takes some microseconds, and a third of a millisecond after imports, which may have loaded
    libraries.
    """
    global _N_BLOCKS
    with _LIMIT_LOCK:
        numbers = {
            library: library.num_threads for library in get_cached_controller().lib_controllers
        }
        limited = {library: number for library, number in numbers.items() if number != 1}
        # set in each thread, since OpenMP has one limit per thread
        _set_threads(dict.fromkeys(limited, 1))
        _BEFORE.update(limited)
        _N_BLOCKS += 1
    try:
        yield
    finally:
        with _LIMIT_LOCK:
            _N_BLOCKS -= 1
            if not _N_BLOCKS:
                _set_threads(_BEFORE)
                _BEFORE.clear()


def _in_slices(
    start: Callable[[list[Item]], Iterable[Result]], items: Iterable[Item], size: int
) -> Iterator[Result]:
    """Yield the results of slices of tasks, so that few results wait for a slow consumer.

    While the results of one slice are consumed, the workers run the next one.
    """
    rest = iter(items)
    results: Iterable[Result] = ()
    part = list(islice(rest, size))
    while part:
        following = start(part)
        yield from results
        results = following
        part = list(islice(rest, size))
    yield from results


def _map_on_threads(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    with one_blas_thread(), ThreadPoolExecutor(jobs) as executor, ExitStack() as stack:
        stack.callback(executor.shutdown, cancel_futures=True)
        yield from _in_slices(
            partial(executor.map, partial(_task, None, function)), items, _SLICE * jobs
        )


def _map_on_dask(
    client: Any, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Map on a Dask cluster, without joblib, which would wait for ever for a task that kills its workers."""
    import cloudpickle  # installed with Dask
    from distributed import KilledWorker

    # as bytes: functions of a script are sent whole, and the scheduler need not import the modules of workers
    task = partial(_unpickled, cloudpickle.dumps(partial(_task, str(Path.cwd()), function)))
    submit = partial(client.get_executor(pure=False).submit, task)
    # leaves room for workers that join later
    size = max(64, _SLICE * sum(client.nthreads().values()))
    try:
        for future in _in_slices(
            lambda part: list(map(submit, part)), map(cloudpickle.dumps, items), size
        ):
            while not future.done():
                if client.status == "closed":  # tasks submitted now would never end
                    raise CancelledError
                wait([future], timeout=5)
            yield future.result()
    except (CancelledError, KilledWorker) as error:
        text = "the Dask cluster lost a task: its scheduler ended, or several workers died of it, perhaps for memory"
        raise WorkerError(f"{text}: {error}") from error


def _unpickled(task: bytes, item: bytes) -> Any:
    return pickle.loads(task)(pickle.loads(item))


def _unless_killed(before: Callable[[Any], object], failure: Any) -> None:
    """Hide the error that loky's thread raises when its tasks are gone because the workers were killed."""
    if (failure.exc_type, failure.thread.name) != (KeyError, "ExecutorManagerThread"):
        before(failure)


def _map_by_joblib(
    kind: str, function: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # workers whose memory has grown (by buffers of networks) are replaced
    warnings.filterwarnings("ignore", "A worker (was restarted|stopped) while", UserWarning)
    task: Callable[[Item], Any] = partial(_task, str(Path.cwd()), function)
    size = _SLICE * jobs
    backend = {
        "backend": "loky",
        "n_jobs": jobs,
        "inner_max_num_threads": 1,
        "idle_worker_timeout": 20.0,
    }
    if kind in _REGISTERED:
        task = partial(_outcome, task)
        backend = {"backend": kind, "n_jobs": -1}
        size = 128
    under_way: deque[Iterable[Any]] = deque(maxlen=2)

    def start(part: list[Item]) -> Iterable[Any]:
        with (
            parallel_config(**backend) as config,
            nullcontext() if kind in _REGISTERED else _starting_workers(),
        ):
            if config["backend"].supports_return_generator:
                form = "generator"
            else:
                form = "list"
            results: Iterable[Any] = Parallel(return_as=form, batch_size=1, pre_dispatch="all")(
                map(delayed(task), part)
            )
            under_way.append(results)
            return results

    # kept in a variable, so that its generators are closed below and not when the loop is left
    slices = _in_slices(start, items, size)
    try:
        for result in slices:
            if isinstance(result, _Failure):
                raise result.error
            yield result
    except TerminatedWorkerError as error:
        text = "a worker process was killed, most often because memory ran out (use fewer workers)"
        raise WorkerError(text) from error
    finally:
        for results in under_way:
            _close(results)


def _close(results: Iterable[Any]) -> None:
    """Cancel the tasks whose results are no longer needed, about which joblib would warn."""
    if isinstance(results, Generator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


@dataclass(frozen=True)
class _Failure:
    """The error of a task, as a result: joblib-spark would replace a task's error by its own."""

    error: Exception


def _outcome(task: Callable[[Item], Result], item: Item) -> Result | _Failure:
    try:
        return task(item)
    except Exception as error:
        return _Failure(error)


@contextmanager
def _starting_workers() -> Iterator[None]:
    """Make worker processes that start in this block leave Ctrl-C to this process from the outset.

    They also import nothing from their start folder.
    """
    from joblib.externals.loky.backend.resource_tracker import ensure_running

    before = dict(os.environ)
    os.environ.update(SAFE_PATH)
    # silence the helper processes, which clear up after workers that were killed
    os.environ["PYTHONWARNINGS"] = f"ignore:resource_tracker,{before.get('PYTHONWARNINGS', '')}"
    # start the helper processes, which unblock Ctrl-C here when they start
    resource_tracker.ensure_running()
    ensure_running()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _task(folder: str | None, function: Callable[[Item], Result], item: Item) -> Result:
    """Run a task in a worker, in the folder to which paths are relative, with one BLAS thread; nested maps run in the
    same thread."""
    if folder is not None:
        os.chdir(folder)
    _ENGINE.set(("serial", None))  # in this thread, which runs only such tasks
    hide()
    with one_blas_thread():
        return function(item)


def _set_threads(numbers: dict[Any, int]) -> None:
    # OpenBLAS obeys only the thread that limited it first; here, the last thread to leave ends the limit
    OpenBLASController.clear_controlling_thread(force=True)
    for library, n_threads in numbers.items():
        library.set_num_threads(n_threads)
    OpenBLASController.clear_controlling_thread(force=True)


threading.excepthook = partial(_unless_killed, threading.excepthook)
