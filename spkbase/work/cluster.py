"""Maps on a Dask cluster, through joblib's Dask backend: workers may join, and die, while they run.

What all items of a map need is pickled once and is itself the result of a task, on which the others depend: Dask takes
it to each worker once, from its neighbours, and makes it again where the worker that held it died. Items travel within
their tasks, which Dask runs again elsewhere when their worker died. Results come back pickled, as from a process of
this machine, so that they are the same to the last bit.

Relative paths become absolute on the way, as workers have other working folders. Functions of modules that are not
installed, such as those of a recipe, travel whole; those of this project and of libraries travel by their names.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import pickle
import platform
import re
import sys
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from spkbase.errors import DataError, WorkerError

if TYPE_CHECKING:
    from distributed import Client

_SAME = ("spkver", "numpy", "scipy", "scikit-learn", "joblib")
_OURS = ("spkbase", "evaluation", "spkver")
_INSTALLED = {"site-packages", "dist-packages"}
_REMEDY = "see docs/cluster.md for how to start a scheduler and its workers"
_SECONDS_BETWEEN_LOOKS = 1.0
_SHOWN = 5
_THRESHOLD = "distributed.admin.large-graph-warning-threshold"
_ADDRESS = re.compile(r"(?:tcp|tls|wss?)://[^/\s]+:\d+")
_LEAST_IN_FLIGHT = 64  # so that workers that join find work


@cache
def versions() -> dict[str, str]:
    """Versions of what numbers depend on, in this process."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for name in _SAME:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def _expected() -> dict[str, str]:
    """Versions that all of a cluster must have: ours."""
    return versions()


@contextmanager
def connect(address: str, timeout: float) -> Iterator[Cluster]:
    """Connect to the scheduler of a cluster, for the length of a block.

    Parameters
    ----------
    address : str
        Such as ``tcp://HOST:8786``.
    timeout : float [s]
        How long to wait for an answer and for a worker, now and whenever all workers are gone.

    Raises
    ------
    DataError
        If Dask is not installed, the scheduler does not answer or has no worker in time, or versions differ.
    """
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise DataError(f"the engine dask is not installed: {error}", remedy="pip install 'spkver[dask]'") from error
    if not _ADDRESS.fullmatch(address):
        raise DataError(f"expected the address of a Dask scheduler, tcp://HOST:PORT, got {address!r}", remedy=_REMEDY)
    end = time.monotonic() + timeout
    # what all items need may be large, and is sent once: nothing to warn of
    with dask.config.set({_THRESHOLD: "1TB"}), _hushed("distributed", "tornado", "asyncio"):
        try:
            client = Client(address, timeout=timeout, set_as_default=False, name="spkver")
        except (OSError, TimeoutError, asyncio.TimeoutError) as error:
            text = f"no Dask scheduler answered at {address} within {timeout:g} s"
            raise DataError(f"{text}: {_first_line(error)}", remedy=_REMEDY) from error
        cluster = Cluster(client, timeout)
        try:
            try:
                client.wait_for_workers(1, timeout=max(end - time.monotonic(), 0.1))
            except (TimeoutError, asyncio.TimeoutError) as error:
                text = f"the Dask scheduler at {address} has no worker after {timeout:g} s"
                raise DataError(text, remedy=_REMEDY) from error
            _check_versions(client)
            yield cluster
        finally:
            cluster.forget_modules()
            client.close()


class Cluster:
    """A connection to a Dask cluster; see `connect`."""

    def __init__(self, client: Client, timeout: float) -> None:
        self.client, self.timeout = client, timeout
        self._seen: set[str] = set()
        self._travelling: list[ModuleType] = []

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield ``function(item)`` for each item, in the order of the items; see `spkbase.work.ordered_map`."""
        from distributed.scheduler import KilledWorker
        from joblib import Parallel, delayed, parallel_config

        from spkbase.work.maps import quiet, undisturbed, until_error

        self._find_modules()
        common = self.client.submit(Common, _dumps(function), _expected(), key=f"spkver-{uuid4().hex}", pure=False)
        in_flight = max(_LEAST_IN_FLIGHT, 4 * sum(self.client.ncores().values()))
        errors: list[Exception] = []
        tasks = until_error((delayed(_work)(common, _dumps(item)) for item in items), errors)
        finished = False
        with parallel_config(backend=_backend(self.client, self.timeout)):
            with undisturbed():
                results = Parallel(return_as="generator", batch_size=1, pre_dispatch=in_flight)(tasks)
            try:
                for result in results:
                    yield pickle.loads(result)
                finished = True
            except KilledWorker as error:
                text = f"{error.allowed_failures + 1} workers of the cluster died of the same piece of work"
                raise WorkerError(f"{text}, most often because memory ran out (give each worker more)") from error
            except (concurrent.futures.CancelledError, asyncio.CancelledError) as error:
                text = "the Dask scheduler lost the work: it was stopped or restarted, or cannot be reached any more"
                raise WorkerError(text) from error
            finally:
                if not finished:
                    with quiet():
                        results.close()
                common.release()
        if errors:
            raise errors[0]

    def forget_modules(self) -> None:
        """Let functions of modules that are not installed be pickled by name again."""
        import cloudpickle

        for module in self._travelling:
            cloudpickle.unregister_pickle_by_value(module)
        self._travelling.clear()

    def _find_modules(self) -> None:
        """Have the functions of modules that workers cannot import travel whole."""
        import cloudpickle

        for name, module in list(sys.modules.items()):
            if name in self._seen:
                continue
            self._seen.add(name)
            if _is_of_nobody(name, module) and name not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                self._travelling.append(module)


def _is_of_nobody(name: str, module: ModuleType) -> bool:
    """Whether a module belongs to no installed package, as those of a recipe beside its script."""
    top, file = name.partition(".")[0], getattr(module, "__file__", None)
    if file is None or module.__name__ != name or top in (*_OURS, "__main__") or top in sys.stdlib_module_names:
        return False
    return not _INSTALLED & set(Path(file).parts)


class Common:
    """What all items of a map need: its function, with the arguments that are bound to it.

    Parameters
    ----------
    pickled : bytes
        The function. A worker unpickles it once.
    expected : dict of str to str
        Versions of the process that sent it.
    """

    def __init__(self, pickled: bytes, expected: dict[str, str]) -> None:
        self._pickled, self._expected = pickled, expected
        self._lock = threading.Lock()
        self._function: Callable[[Any], Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Common, (self._pickled, self._expected)

    def __sizeof__(self) -> int:
        return len(self._pickled)

    @property
    def function(self) -> Callable[[Any], Any]:
        """The function.

        Raises
        ------
        DataError
            If this worker has other versions; it may have joined after the others were looked at.
        """
        with self._lock:
            if self._function is None:
                differing = _differences(versions(), self._expected)
                if differing:
                    raise _other_versions({platform.node(): differing})
                self._function = pickle.loads(self._pickled)
            function: Callable[[Any], Any] = self._function
        return function


@lru_cache(maxsize=1)
def _limit_blas(n_modules: int) -> None:
    """Limit BLAS to one thread, for good: other threads of this worker may be at work. New modules may bring libraries.

    Those that a task loads while it runs go by the environment.
    """
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    threadpool_limits(1)


def _work(common: Common, item: bytes) -> bytes:
    """Do one item on a worker."""
    import cloudpickle

    from spkbase.work.maps import at_once

    function = common.function  # may import modules
    _limit_blas(len(sys.modules))
    with at_once():
        return bytes(cloudpickle.dumps(function(pickle.loads(item))))


def _dumps(thing: Any) -> bytes:
    """Pickle what goes to a worker."""
    buffer = BytesIO()
    _pickler_class()(buffer).dump(thing)
    return buffer.getvalue()


@cache
def _pickler_class() -> Any:
    import cloudpickle

    table = ChainMap({type(Path()): _absolute}, cloudpickle.Pickler.dispatch_table)
    return type("Pickler", (cloudpickle.Pickler,), {"dispatch_table": table})


def _absolute(path: Path) -> tuple[Any, ...]:
    return type(path), (os.path.abspath(path),)  # noqa: PTH100  # `resolve` would follow links


@contextmanager
def _hushed(*packages: str) -> Iterator[None]:
    """Keep the libraries' log of lost connections from the user, who is told once, by an error of ours."""
    known = logging.root.manager.loggerDict
    found = [one for name, one in known.items() if name.split(".")[0] in packages and isinstance(one, logging.Logger)]
    levels = {logger: logger.level for logger in found}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    yield  # after an error the levels stay, since what is left in other threads goes on to complain
    for logger, level in levels.items():
        logger.setLevel(level)


def _check_versions(client: Client) -> None:
    """Raise DataError unless the scheduler and all workers compute with what we have."""
    answers: dict[str, Any] = {f"worker {name}": one for name, one in client.run(versions, on_error="return").items()}
    try:
        answers["the scheduler"] = client.run_on_scheduler(versions)
    except Exception as error:  # whatever unpickling there raised
        answers["the scheduler"] = error
    ours = _expected()
    differing = {}
    for name, answer in answers.items():
        found = [_first_line(answer)] if isinstance(answer, Exception) else _differences(answer, ours)
        if found:
            differing[name] = found
    if differing:
        raise _other_versions(differing)


def _differences(theirs: dict[str, str], ours: dict[str, str]) -> list[str]:
    return [f"{name} {theirs.get(name, 'none')}, not {one}" for name, one in ours.items() if theirs.get(name) != one]


def _other_versions(differing: dict[str, list[str]]) -> DataError:
    shown = "; ".join(f"{name} has {', '.join(found)}" for name, found in list(differing.items())[:_SHOWN])
    more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    return DataError(
        f"the cluster computes with other versions than this process, so its results may differ: {shown}{more}",
        remedy="start the scheduler and the workers from the same environment",
    )


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


@cache
def _backend_class() -> Any:
    """Joblib's Dask backend, which waits for ever when a task is lost or all workers are gone, without that."""
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):
        def __init__(self, client: Client, timeout: float) -> None:
            super().__init__(client=client)
            self.timeout = timeout
            self.waiting: set[concurrent.futures.Future[Any]] = set()

        def submit(self, func: Any, callback: Any = None) -> Any:
            job = super().submit(func, callback)
            self.waiting.add(job)

            def finish(job: concurrent.futures.Future[Any]) -> None:
                self.waiting.discard(job)
                if job.exception() is not None and callback is not None:  # joblib waits for the callback alone
                    callback(job.exception())

            job.add_done_callback(finish)
            return job

        def effective_n_jobs(self, n_jobs: int | None) -> int:
            # of one worker joblib thinks that the work may as well be done here, where the tasks' inputs are not
            return max(2, sum(self.client.ncores().values()))

        def start_call(self) -> None:
            super().start_call()
            self.client.loop.add_callback(self.watch)

        async def watch(self) -> None:
            """Give up when there has been no worker for long."""
            seen = time.monotonic()
            while self._continue:
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
                if self.client.scheduler is None:  # the connection was lost, which ends all tasks
                    return
                with suppress(OSError, asyncio.TimeoutError):
                    if await asyncio.wait_for(self.client.scheduler.ncores(), self.timeout):
                        seen = time.monotonic()
                if time.monotonic() - seen > self.timeout:
                    for job in list(self.waiting):
                        with suppress(concurrent.futures.InvalidStateError):
                            text = f"the Dask cluster has had no worker for {self.timeout:g} s"
                            job.set_exception(WorkerError(f"{text} (start some, then start again)"))
                    return

        def abort_everything(self, ensure_ready: bool = True) -> None:
            super().abort_everything(ensure_ready)
            self.client.loop.add_callback(self.cancel)  # behind tasks that are about to be submitted

        async def cancel(self) -> None:
            """Take back all tasks, and let the collector, which still holds a result, see that nothing more comes."""
            await self.client.cancel(list(self._results), asynchronous=True)
            async with self.waiting_futures.condition:
                self.waiting_futures.condition.notify_all()

    return Backend


def _backend(client: Client, timeout: float) -> Any:
    return _backend_class()(client, timeout)
