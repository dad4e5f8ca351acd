"""Maps on a Dask cluster: workers may join, and die, while they run.

What all items of a map need is pickled once and is itself the result of a task, on which the others depend: Dask takes
it to each worker once, from its neighbours, and makes it again where the worker that held it died. Items travel within
their tasks, which Dask runs again elsewhere when their worker died. Results come back pickled, as from a process of
this machine, so that they are the same to the last bit.

Relative paths become absolute on the way, as workers have other working folders. Functions travel by name, those of
``__main__`` whole.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import logging
import os
import pickle
import platform
import re
import time
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spkbase.errors import DataError, WorkerError
from spkbase.packages import OURS
from spkbase.work.blas_threads import ONE_THREAD, one_blas_thread
from spkbase.work.executors import in_order
from spkbase.work.lost_tasks import LostTasks

if TYPE_CHECKING:
    from distributed import Client, Future

_SAME = ("spkver", "numpy", "scipy", "scikit-learn", "cloudpickle")
_REMEDY = "see docs/cluster.md for how to start a scheduler and its workers"
_SECONDS_BETWEEN_LOOKS = 1.0
_MOST_SHOWN = 5
_THRESHOLD = "distributed.admin.large-graph-warning-threshold"
_ADDRESS = re.compile(r"(?:tcp|tls|wss?)://[^/\s]+:\d+")
_NEVER_AWAITED = "coroutine '.*' was never awaited"
_LEAST_IN_FLIGHT = 64  # so that workers that join find work


ClusterMap = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Yields ``function(item)`` for each item, in the order of the items."""


@cache
def versions() -> dict[str, str]:
    """Return the versions of what numbers depend on, in this process."""
    installed = {"Python": ".".join(platform.python_version_tuple()[:2])} | dict.fromkeys(_SAME, "none")
    for name in _SAME:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    installed["code of spkver"] = code_digest()
    return installed


@cache
def code_digest() -> str:
    """Return a digest of all modules of this project: checkouts may differ where their versions do not."""
    home = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in OURS:
        for path in sorted((home / package).rglob("*.py")):
            name, content = path.relative_to(home).as_posix(), path.read_bytes()
            if not name.startswith("spkver/recipes/"):  # a link in a checkout
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def _expected() -> dict[str, str]:
    """Versions that all of a cluster must have: ours."""
    return versions()


@contextmanager
def connect(address: str, timeout: float) -> Iterator[ClusterMap]:
    """Connect to the scheduler of a cluster, for the length of a block; yield its ordered map.

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
            _probe(address, timeout)
            client = Client(address, timeout=timeout, set_as_default=False, name="spkver")
        except Exception as error:
            text = f"no Dask scheduler answered at {address} within {timeout:g} s: {_first_line(error)}"
            foreign = "" if isinstance(error, OSError) else "; something else may be listening there"
            raise DataError(text + foreign, remedy=_REMEDY) from error
        try:
            try:
                client.wait_for_workers(1, timeout=max(end - time.monotonic(), 0.1))
            except TimeoutError as error:
                text = f"the Dask scheduler at {address} has no worker after {timeout:g} s"
                raise DataError(text, remedy=_REMEDY) from error
            _check_versions(client)
            yield partial(_map_on_cluster, client, timeout)
        finally:
            client.close()


def _probe(address: str, seconds: float) -> None:
    """Shake hands with a scheduler, in time: a Dask client waits for ever where something else listens.

    Raises
    ------
    Exception
        Of any kind: what another service says is taken for the length of a message.
    """
    from distributed.comm import connect as shake_hands

    async def probe() -> None:
        comm = await asyncio.wait_for(shake_hands(address, timeout=seconds), seconds)
        await comm.close()

    # in a thread of its own, since a notebook's thread has a loop already
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        executor.submit(asyncio.run, probe()).result()


def _map_on_cluster(
    client: Client, timeout: float, function: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """Yield ``function(item)`` for each item, in order, from the workers of a cluster."""
    from distributed import KilledWorker

    common = client.submit(bytes, pickle.dumps((_expected(), _dumps(function))), pure=False)
    in_flight = max(_LEAST_IN_FLIGHT, 4 * sum(client.ncores().values()))

    def submit(item: Any) -> Future[bytes]:
        return client.submit(_work, common, _dumps(item), pure=False, fifo_timeout=0)  # first come, first served

    try:
        yield from map(pickle.loads, in_order(submit, items, in_flight, partial(_outcome, client, timeout)))
    except KilledWorker as error:
        text = f"{error.allowed_failures + 1} workers of the cluster died of the same piece of work"
        raise WorkerError(f"{text}, most often because memory ran out (give each worker more)") from error
    except (concurrent.futures.CancelledError, asyncio.CancelledError) as error:
        text = "the Dask scheduler lost the work: it was stopped or restarted, or cannot be reached any more"
        raise WorkerError(text) from error
    finally:
        common.release()


def _outcome(client: Client, timeout: float, future: Future[bytes]) -> bytes:
    """Wait for a task and fetch its result; give up when the cluster has had no worker for long.

    Tasks that Dask has lost meanwhile are given to workers again.
    """
    from distributed import TimeoutError as NotYet

    nobody = f"the Dask cluster has had no worker for {timeout:g} s"
    seen, patience, lost = time.monotonic(), _SECONDS_BETWEEN_LOOKS, LostTasks(client)
    try:
        while True:
            try:
                return future.result(patience)
            except (NotYet, OSError):  # the second where the connection broke, which cancels the task a little later
                if future.status == "error":  # the task's own
                    return future.result()
                if future.done():  # and on its way: it is large
                    patience *= 2
            gone: Exception = WorkerError(f"{nobody} (start some, then start again)")
            try:
                if client.ncores():
                    seen = time.monotonic()
                lost.give_again()
            except WorkerError:
                raise
            except Exception:  # the scheduler does not answer, however that shows
                gone = concurrent.futures.CancelledError()
            if time.monotonic() - seen > timeout:
                raise gone
    finally:
        future.release()


def _work(common: bytes, item: bytes) -> bytes:
    """Do one item on a worker."""
    import cloudpickle

    function = _function(common)  # may import modules
    with one_blas_thread():
        return bytes(cloudpickle.dumps(function(pickle.loads(item))))


@lru_cache(maxsize=1)
def _function(common: bytes) -> Callable[[Any], Any]:
    """The function of a map, with the arguments that are bound to it; a worker unpickles it once.

    Raises
    ------
    DataError
        If this worker has other versions; it may have joined after the others were looked at.
    """
    expected, function = pickle.loads(common)
    if differing := _differences(versions(), expected):
        raise _other_versions({platform.node(): differing})
    os.environ.update(ONE_THREAD)  # for libraries that tasks load while they run
    return pickle.loads(function)


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
    """Keep the libraries' complaints of lost connections from the user, who is told once, by an error of ours.

    An interrupt that comes between making a coroutine of Dask and starting it leaves one that is never awaited.
    """
    known = logging.root.manager.loggerDict
    loggers = [logging.getLogger(name) for name in list(known) if name.split(".")[0] in packages]
    levels = {logger: logger.level for logger in loggers}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", _NEVER_AWAITED, RuntimeWarning)
    filter_of_ours = warnings.filters[0]
    yield  # after an error all this stays, since what is left in other threads goes on to complain
    for logger, level in levels.items():
        logger.setLevel(level)
    with suppress(ValueError):  # somebody has put other filters in place of these
        warnings.filters.remove(filter_of_ours)  # type: ignore[attr-defined]


def _check_versions(client: Client) -> None:
    """Raise DataError unless the scheduler and all workers compute with what we have."""
    of_workers = client.run(versions, on_error="return")
    answers: dict[str, Any] = {f"worker {address}": answer for address, answer in of_workers.items()}
    try:
        answers["the scheduler"] = client.run_on_scheduler(versions)
    except Exception as error:  # whatever unpickling there raised
        answers["the scheduler"] = error
    ours = _expected()
    differing = {}
    for name, answer in answers.items():
        if differences := [_first_line(answer)] if isinstance(answer, Exception) else _differences(answer, ours):
            differing[name] = differences
    if differing:
        raise _other_versions(differing)


def _differences(theirs: dict[str, str], ours: dict[str, str]) -> list[str]:
    return [f"{name} {theirs.get(name, 'none')}, not {our}" for name, our in ours.items() if theirs.get(name) != our]


def _other_versions(differing: dict[str, list[str]]) -> DataError:
    examples = "; ".join(f"{name} has {', '.join(which)}" for name, which in list(differing.items())[:_MOST_SHOWN])
    more = f"; and {len(differing) - _MOST_SHOWN} more" if len(differing) > _MOST_SHOWN else ""
    return DataError(
        f"the cluster computes with other versions than this process, so its results may differ: {examples}{more}",
        remedy="start the scheduler and the workers from the same environment",
    )


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
