"""Ordered maps over executors: threads of this process, and worker processes of this machine (loky).

An executor takes tasks and gives futures (`concurrent.futures`). `in_order` is all of a map: it keeps a bounded number
of tasks in flight and yields their results in the order of the items. The rest keeps promises: every worker has one
BLAS thread, what all tasks need is sent once, and no worker stays behind, whatever ends this process.
"""

from __future__ import annotations

import atexit
import mmap
import os
import pickle
import select
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from spkbase.errors import WorkerError
from spkbase.files import disk_errors
from spkbase.plugins import SAFE_PATH
from spkbase.work.blas_threads import ONE_THREAD, limit_this_thread, one_blas_thread

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")
Task = TypeVar("Task")

_IN_FLIGHT = 4  # tasks a worker; some may be done and wait for a slow one before them
_SECONDS_IDLE = 300.0  # after which a worker process ends, until there is work again
_SECONDS_BETWEEN_LOOKS = 0.5
_ENDING = (signal.SIGINT, signal.SIGTERM)
_ALIGNMENT = 64  # bytes, of arrays in a file that is mapped


def in_order(
    submit: Callable[[Item], Task],
    items: Iterable[Item],
    in_flight: int,
    outcome: Callable[[Task], Result],
) -> Iterator[Result]:
    """Yield the results of tasks in the order of their items.

    Parameters
    ----------
    submit : callable
        Begins the task of an item; gives its future.
    items : iterable
        Pulled in the consumer's thread, and only as far as tasks may begin.
    in_flight : int
        How many tasks may have begun whose results are not taken.
    outcome : callable
        Waits for a future and gives its result.

    Raises
    ------
    Exception
        That of the first item whose task failed; what `items` or `submit` raised comes after all results before it.
    """
    errors: list[Exception] = []
    futures = _until_error(map(submit, items), errors)
    waiting = deque(islice(futures, in_flight))
    try:
        while waiting:
            result = outcome(waiting.popleft())
            waiting.extend(islice(futures, 1))  # before the consumer goes on, so that the workers do
            yield result
    finally:
        waiting.clear()  # what nobody waits for need not be done
    if errors:
        raise errors[0]


def _until_error(futures: Iterator[Item], errors: list[Exception]) -> Iterator[Item]:
    try:
        yield from futures
    except Exception as error:
        errors.append(error)


def map_on_threads(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, from threads of this process.

    However the map ends, tasks that have begun are waited for: Python that ends while a thread is inside a C++ library
    ends by SIGABRT, whatever its status should be.
    """
    with one_blas_thread(), ThreadPoolExecutor(jobs, initializer=limit_this_thread) as executor:
        try:
            yield from in_order(lambda item: executor.submit(function, item), items, _IN_FLIGHT * jobs, Future.result)
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def map_on_processes(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, from worker processes of this machine.

    They stay for the next map, unless this one ends early.

    Raises
    ------
    WorkerError
        If a worker process was killed.
    """
    import cloudpickle
    from loky.process_executor import TerminatedWorkerError

    finished, common = False, _folder() / uuid4().hex
    try:
        pool = _pool(jobs)
        _write_pickle(function, common)

        def submit(item: Item) -> Future[bytes]:
            task = common, _place(), cloudpickle.dumps(item)
            with undisturbed():
                future: Future[bytes] = pool.submit(_work, *task)
            return future

        yield from map(pickle.loads, in_order(submit, items, _IN_FLIGHT * jobs, Future.result))
        finished = True
    except TerminatedWorkerError as error:
        text = "a worker process was killed, most often because memory ran out (use fewer --jobs)"
        raise WorkerError(text) from error
    finally:
        if not finished:
            stop_workers()
        common.unlink(missing_ok=True)


def stop_workers() -> None:
    """End all worker processes at once, for an error or an interrupt."""
    for jobs, pool in list(_POOLS.items()):
        pool.shutdown(wait=True, kill_workers=True)
        _POOLS.pop(jobs, None)


_POOLS: dict[int, ProcessPoolExecutor] = {}  # by the number of workers
atexit.register(_POOLS.clear)  # later, loky would miss modules of its own
_POOLS_LOCK = threading.Lock()


def _pool(jobs: int) -> ProcessPoolExecutor:
    """Worker processes that are ready for tasks."""
    from multiprocessing import get_context

    from loky import BrokenProcessPool, ProcessPoolExecutor

    with _POOLS_LOCK:
        try:
            if jobs in _POOLS:
                with undisturbed():
                    _POOLS[jobs].submit(_place)
                return _POOLS[jobs]
        except BrokenProcessPool:  # a worker was killed while there was nothing to do
            _POOLS.pop(jobs).shutdown(wait=True, kill_workers=True)
        # both start processes that keep track of semaphores; the one of Python lifts the mask that `undisturbed` sets
        environment = {**ONE_THREAD, **SAFE_PATH}
        with _safe_path():
            get_context("spawn").Lock()
            _POOLS[jobs] = ProcessPoolExecutor(
                jobs, timeout=_SECONDS_IDLE, initializer=_watch, initargs=(os.getpid(), _folder()), env=environment
            )
        return _POOLS[jobs]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back while processes may start, which cannot be stopped half-way.

    The processes inherit the mask, so that a Ctrl-C on the terminal is for this process alone, which ends them.
    """
    came: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in _ENDING} if in_main else {}
    for ending in handlers:
        signal.signal(ending, lambda number, frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        with _safe_path():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for ending, handler in handlers.items():
            signal.signal(ending, handler)
    for number in came[:1]:
        signal.raise_signal(number)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let processes that start in a block, Python's own helpers too, import nothing from the folder they start in."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ.update({} if before else SAFE_PATH)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before


# In worker processes


def _watch(parent: int, folder: Path) -> None:
    """Have this worker end when the process that it works for does, even one that was killed and can tell nobody.

    It looks from its very start: a worker that has had no task yet would wait for one for minutes.
    """
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()


def _end_with(parent: int, folder: Path) -> None:
    # Not PR_SET_PDEATHSIG: the system sends that signal when the thread ends that started the worker, and threads of a
    # process that lives on may share its workers.
    try:
        handle = os.pidfd_open(parent)  # Linux: becomes readable when the process ends
        if os.getppid() == parent:
            select.select([handle], [], [])
    except (AttributeError, OSError):
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    shutil.rmtree(folder, ignore_errors=True)  # nobody else is left to do it
    os.kill(os.getpid(), signal.SIGKILL)


def _work(common: Path, place: str | None, item: bytes) -> bytes:
    """Do a task, in the working folder that the process has now that asks: a worker's own is that of its start."""
    import cloudpickle

    if place is not None and place != _place():
        os.chdir(place)
    return bytes(cloudpickle.dumps(_read_pickle(common)(pickle.loads(item))))


# What all tasks of a map need: in a file that workers map, so that they share its memory


@cache
def _folder() -> Path:
    """Folder for what workers read; removed when this process ends."""
    made = tempfile.TemporaryDirectory(prefix="spkver-workers-")
    atexit.register(made.cleanup)
    return Path(made.name)


def _write_pickle(thing: Any, path: Path) -> None:
    """Write the sizes of pieces and the pieces, aligned: a pickle, then the contents of its arrays."""
    import cloudpickle

    arrays: list[pickle.PickleBuffer] = []
    pieces = [memoryview(cloudpickle.dumps(thing, protocol=5, buffer_callback=arrays.append))]
    pieces += [array.raw() for array in arrays]
    with disk_errors(path), path.open("wb") as file:
        pickle.dump([piece.nbytes for piece in pieces], file)
        for piece in pieces:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            file.write(piece)


@lru_cache(maxsize=1)
def _read_pickle(path: Path) -> Any:
    """Read what `_write_pickle` wrote; changes of its arrays stay in this process."""
    pieces = []
    with path.open("rb") as file:
        sizes, begin = pickle.load(file), file.tell()
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    for size in sizes:
        begin += -begin % _ALIGNMENT
        pieces.append(mapped[begin : begin + size])
        begin += size
    return pickle.loads(pieces[0], buffers=pieces[1:])


def _place() -> str | None:
    """Working folder; None where it was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None
