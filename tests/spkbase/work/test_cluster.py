"""Maps on a Dask cluster: a real scheduler and real workers, which are killed, missing, late, or of other versions.

This module is not installed: workers cannot import it, so its functions travel whole, as those of ``__main__`` do.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from click.testing import CliRunner
from dask_cluster import DaskCluster, wait_until

from spkbase.arrays.stored import StoredArray, part
from spkbase.errors import DataError, WorkerError
from spkbase.work.cluster import code_digest, versions
from spkbase.work.maps import engine_kind, ordered_map, ships_items, use_engine

pytest.importorskip("distributed")

PATIENCE = 30.0


@dataclass(frozen=True)
class Found:
    """Something whose class workers do not have."""

    number: int
    process: int
    file: Path


@pytest.fixture(scope="module", autouse=True)
def travels():
    """As a user has it done for functions of a module that workers do not have."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def engine(dask_cluster):
    with use_engine("dask", scheduler=dask_cluster.address, timeout=PATIENCE):
        yield


@pytest.fixture
def own(tmp_path):
    """Starts clusters that a test may kill."""
    started = []

    def start(n_workers: int = 2, **settings: str) -> DaskCluster:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(DaskCluster(folder, n_workers, **settings))
        return started[-1]

    yield start
    for cluster in started:
        cluster.close()


def slow_square(number: int, seconds: float = 0.02) -> int:
    time.sleep(seconds)
    return number * number


def fail_at(number: int, bad: int) -> int:
    if number == bad:
        raise DataError("bad number", file="list.txt", line=number, remedy="leave it out")
    return number


def look(number: int, file: Path) -> Found:
    return Found(number, os.getpid(), file)


def products(vectors: np.ndarray, rows) -> np.ndarray:
    return np.asarray(rows) @ vectors


def blas_threads(_: int) -> int:
    import threadpoolctl

    np.ones((2, 2)) @ np.ones((2, 2))
    return max(pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")


def nested(number: int) -> tuple[str, list[int], set[int]]:
    return engine_kind(), list(ordered_map(slow_square, range(number))), set(ordered_map(process, range(4), jobs=2))


def process(_: int) -> int:
    return os.getpid()


def kill_at(number: int, bad: int) -> int:
    if number == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def touch(number: int, folder: Path) -> Path:
    path = folder / f"{number}.txt"
    path.write_text(str(number))
    return path


def rest(cluster: DaskCluster) -> None:
    wait_until(lambda: cluster.n_tasks() == 0, "an end of all tasks", PATIENCE)


# What runs


def test_order_is_that_of_the_items(engine):
    assert list(ordered_map(slow_square, range(12))) == [n * n for n in range(12)]
    assert list(ordered_map(slow_square, (n for n in range(150)), total=150)) == [n * n for n in range(150)]
    assert list(ordered_map(slow_square, [])) == []
    assert (engine_kind(), ships_items()) == ("dask", True)


def test_the_workers_work_whatever_the_jobs(engine, dask_cluster):
    for jobs in (1, None):
        workers = {found.process for found in ordered_map(partial(look, file=Path("a")), range(20), jobs=jobs)}
        assert workers <= {worker.pid for worker in dask_cluster.workers}


def test_classes_of_no_package_come_back_as_themselves(engine):
    found = list(ordered_map(partial(look, file=Path("a")), range(3)))
    assert [type(one) for one in found] == [Found] * 3
    assert [one.number for one in found] == [0, 1, 2]


def test_paths_stay_those_of_this_process(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = list(ordered_map(partial(touch, folder=Path()), range(3)))
    assert made == [tmp_path / f"{number}.txt" for number in range(3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.txt", "1.txt", "2.txt"]


def test_errors_arrive_whole(engine, dask_cluster):
    arrived = []
    with pytest.raises(DataError) as caught:  # noqa: PT012
        for number in ordered_map(partial(fail_at, bad=5), range(200)):
            arrived.append(number)
    error = caught.value
    assert (error.text, error.file, error.line, error.remedy) == ("bad number", "list.txt", 5, "leave it out")
    assert arrived == list(range(len(arrived)))
    assert len(arrived) <= 5
    rest(dask_cluster)


def test_items_that_raise_end_the_map(engine):
    def items():
        yield from range(100)
        raise DataError("no more items")

    arrived = []
    with pytest.raises(DataError, match="no more items"):
        arrived.extend(ordered_map(slow_square, items()))
    with pytest.raises(TypeError, match="pickle"):
        list(ordered_map(str, [0, 1, threading.Lock()]))


def test_one_blas_thread(engine):
    assert set(ordered_map(blas_threads, range(6))) == {1}


def test_maps_within_a_task_run_there(engine):
    for kind, squares, workers in ordered_map(nested, [4, 5]):
        assert (kind, len(workers)) == ("serial", 1)
        assert squares == [n * n for n in range(len(squares))]
    assert engine_kind() == "dask"


def test_data_travel_as_file_names_or_chunks(engine, tmp_path):
    rows = np.random.default_rng(0).standard_normal((400, 300))
    rows.tofile(tmp_path / "rows.bin")
    vectors = np.random.default_rng(1).standard_normal((300, 300))
    stored = StoredArray(tmp_path / "rows.bin", 0, rows.shape, rows.dtype)
    mapped = np.memmap(tmp_path / "rows.bin", np.float64, "r", 0, rows.shape)
    bounds = [(start, start + 80) for start in range(0, 400, 80)]
    with use_engine("auto"):
        expected = list(ordered_map(partial(products, vectors), [rows[slice(*one)] for one in bounds], jobs=1))
    for source in (rows, stored, mapped, np.asfortranarray(rows)):
        found = list(ordered_map(partial(products, vectors), [part(source, *one) for one in bounds]))
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))
        assert all(one.flags.writeable and one.flags.aligned for one in found)


@pytest.mark.parametrize("engine", ["loky", "dask"])
def test_functions_of_a_script_and_of_a_file_travel_whole(dask_cluster, tmp_path, engine):
    (tmp_path / "own.py").write_text("ADDED = 1\ndef own(number):\n    return number + ADDED\n")
    (tmp_path / "script.py").write_text(
        "from runpy import run_path\nfrom spkbase.work.maps import ordered_map, use_engine\n"
        "FACTOR = 3\ndef times(number):\n    return FACTOR * number\n"
        f"with use_engine({engine!r}, scheduler={dask_cluster.address if engine == 'dask' else None!r}):\n"
        "    print(*ordered_map(times, range(4), jobs=2), *ordered_map(run_path('own.py')['own'], range(3), jobs=2))\n"
    )
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (run.stdout, run.stderr) == ("0 3 6 9 1 2 3\n", "")


def test_an_early_end_leaves_no_task(engine, dask_cluster):
    results = ordered_map(partial(slow_square, seconds=0.1), range(200))
    assert next(results) == 0
    end = time.monotonic() + PATIENCE
    while dask_cluster.n_tasks() <= 20:  # they arrive while the first is done
        assert time.monotonic() < end
        time.sleep(0.02)
    results.close()  # type: ignore[attr-defined]
    rest(dask_cluster)
    assert list(ordered_map(slow_square, range(3))) == [0, 1, 4]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_no_task(dask_cluster, ending):
    code = (
        "import click\nfrom time import sleep\nfrom spkbase.console import Command, worker_options\n"
        "from spkbase.work.maps import ordered_map\n"
        "@click.command(cls=Command)\n@worker_options\ndef main(jobs):\n"
        "    for _ in ordered_map(sleep, [0.1] * 500): print('one', flush=True)\nmain()"
    )
    command = [sys.executable, "-c", code, "--engine", dask_cluster.address]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "one\n"
    run.send_signal(ending)
    said = run.communicate(timeout=PATIENCE)[1]
    expected = {signal.SIGINT: (130, "interrupted\n"), signal.SIGTERM: (143, "terminated\n")}
    assert (run.returncode, said) == expected.get(ending, (-9, ""))
    rest(dask_cluster)


def test_a_coroutine_that_an_interrupt_left_is_not_complained_of(dask_cluster):
    async def never_awaited():
        pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with use_engine("dask", scheduler=dask_cluster.address):
            never_awaited()
            assert list(ordered_map(slow_square, range(3))) == [0, 1, 4]
        assert [str(warning.message) for warning in caught if "never awaited" in str(warning.message)] == []
        never_awaited()
        assert "never awaited" in str(caught[-1].message)


# Workers that die and join


def test_a_killed_worker_changes_nothing(own):
    cluster = own()
    vectors = np.random.default_rng(0).standard_normal((500, 200))
    items = [np.random.default_rng(seed).standard_normal((20, 500)) for seed in range(60)]
    expected = list(ordered_map(partial(products, vectors), items, jobs=1))
    found = []
    with use_engine("dask", scheduler=cluster.address, timeout=PATIENCE):
        for one in ordered_map(partial(slow_products, vectors), items):
            found.append(one)
            if len(found) == 20:
                cluster.workers[0].kill()
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def slow_products(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    time.sleep(0.03)
    return rows @ vectors


def test_what_all_items_need_survives_its_worker(own):
    cluster = own(1)
    found = []
    with use_engine("dask", scheduler=cluster.address, timeout=PATIENCE):
        for one in ordered_map(partial(slow_products, np.eye(300)), [np.full((1, 300), n) for n in range(40)]):
            found.append(int(one[0, 0]))
            if len(found) == 5:  # the only one that has them
                cluster.workers[0].kill()
                cluster.start_worker()
    assert found == list(range(40))


def test_a_worker_that_joins_gets_work(own):
    cluster = own(1)
    seen = []
    with use_engine("dask", scheduler=cluster.address, timeout=PATIENCE):
        for number, one in enumerate(ordered_map(partial(busy, seconds=0.1), range(100))):
            seen.append(one)
            if number == 3:
                cluster.start_worker()
    assert set(seen) == {worker.pid for worker in cluster.workers}


def busy(_: int, seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@pytest.mark.timeout(60)
def test_a_task_that_its_worker_forgets_is_done_all_the_same(own):
    """After another one died, a worker may forget a task without a word; the scheduler then waits for it for ever."""
    from distributed import Client

    cluster = own(1)
    found = []
    with use_engine("dask", scheduler=cluster.address, timeout=PATIENCE):
        for one in ordered_map(partial(slow_square, seconds=0.2), range(10)):
            found.append(one)
            if len(found) == 3:
                with Client(cluster.address, set_as_default=False) as client:
                    assert list(client.run(forget).values()) == [True]
    assert found == [n * n for n in range(10)]


@pytest.mark.parametrize("seconds", [5, 9])
def test_what_is_on_its_way_for_long_is_given_again_ever_more_seldom(seconds):
    """A worker knows nothing yet of a task that brings gigabytes with it."""
    from spkbase.work.lost_tasks import LostTasks

    given, clock = [], 0.0

    class Client:
        id = "a"

        def run_on_scheduler(self, function, client=None, tasks=None):
            if tasks is None:
                return {("tcp://a:1", "key"): clock}
            return given.append(clock)

    lost = LostTasks(Client())
    while clock < 100:
        lost.give_again()
        clock += seconds
    gaps = np.diff([0.0, *given])
    assert 2 <= len(gaps) <= 4
    assert (gaps > [5.0 * 2**number for number in range(len(gaps))]).all()


def test_a_dask_that_cannot_give_again_is_an_error():
    from spkbase.work.lost_tasks import LostTasks

    heard = iter([0.0, 6.0])

    class Client:
        id = "a"

        def run_on_scheduler(self, function, client=None, tasks=None):
            if tasks is None:
                return {("tcp://a:1", "key"): next(heard)}
            raise AttributeError("_reschedule")

    lost = LostTasks(Client())
    lost.give_again()
    with pytest.raises(WorkerError, match="cannot be told so"):
        lost.give_again()


def forget(dask_worker) -> bool:
    from distributed.worker_state_machine import FreeKeysEvent

    keys = [task.key for task in dask_worker.state.executing]
    dask_worker.handle_stimulus(FreeKeysEvent(keys=keys, stimulus_id="test"))
    return len(keys) > 0


def test_no_worker_left_is_an_error_after_a_while(own):
    cluster = own()
    error = pytest.raises(WorkerError, match=r"has had no worker for 3 s.*start some")
    with error, use_engine("dask", scheduler=cluster.address, timeout=3):
        for number in ordered_map(slow_square, range(500)):
            if number == 81:
                killed = time.monotonic()
                for worker in cluster.workers:
                    worker.kill()
    assert 1 < time.monotonic() - killed < PATIENCE


def test_an_item_that_kills_its_workers_is_an_error(own):
    cluster = own(3, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
    error = pytest.raises(WorkerError, match=r"2 workers of the cluster died of the same piece.*memory")
    with error, use_engine("dask", scheduler=cluster.address, timeout=PATIENCE):
        list(ordered_map(partial(kill_at, bad=3), range(20)))


def test_a_scheduler_that_dies_is_an_error(own):
    cluster = own()
    error = pytest.raises(WorkerError, match="the Dask scheduler lost the work")
    with error, use_engine("dask", scheduler=cluster.address, timeout=2):
        for number in ordered_map(slow_square, range(500)):
            if number == 81:
                cluster.scheduler.kill()


# Clusters that will not do


def test_a_scheduler_without_workers_is_an_error(own):
    cluster = own(0)
    started = time.monotonic()
    error = pytest.raises(DataError, match=rf"{cluster.address} has no worker after 2 s.*docs/cluster")
    with error, use_engine("dask", scheduler=cluster.address, timeout=2):
        pass
    assert time.monotonic() - started < PATIENCE


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("tcp://127.0.0.1:9", r"no Dask scheduler answered at tcp://127.0.0.1:9 within 1 s.*docs/cluster"),
        ("tcp://nowhere.invalid:8786", "no Dask scheduler answered"),
        ("127.0.0.1:8786", r"expected the address of a Dask scheduler, tcp://HOST:PORT"),
        ("http://a:1", r"expected the address"),
        ("tcp://a", r"expected the address"),
    ],
)
def test_a_scheduler_that_is_not_there_is_an_error(address, text):
    with pytest.raises(DataError, match=text), use_engine("dask", scheduler=address, timeout=1):
        pass


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n", b"\xff" * 64, b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_something_else_at_the_port_of_the_scheduler(reply):
    """It may say nothing for ever, or what reads as the length of a message of exabytes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        connections = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connections.append(listener.accept()[0])
                    connections[-1].sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        before = time.monotonic()
        with (
            pytest.raises(DataError, match="no Dask scheduler answered at tcp://127"),
            use_engine("dask", scheduler=f"tcp://127.0.0.1:{listener.getsockname()[1]}", timeout=1),
        ):
            pass
        assert time.monotonic() - before < PATIENCE
        for connection in connections:
            connection.close()


def test_the_code_itself_is_compared():
    """A checkout of yesterday has the version of today."""
    digest = code_digest()
    assert versions()["code of spkver"] == digest
    assert len(digest) == 12
    code = "from spkbase.work.cluster import code_digest; print(code_digest())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == digest


def test_other_versions_are_an_error_that_names_them(dask_cluster, monkeypatch):
    from spkbase.work import cluster

    monkeypatch.setattr(cluster, "_expected", lambda: cluster.versions() | {"numpy": "1.0", "scipy": "0.1"})
    with pytest.raises(DataError) as caught, use_engine("dask", scheduler=dask_cluster.address, timeout=PATIENCE):
        pass
    text = str(caught.value)
    for name in (
        "worker tcp://127.0.0.1:",
        "the scheduler has",
        f"numpy {np.__version__}, not 1.0",
        "same environment",
    ):
        assert name in text
    assert text.count("worker tcp") == 2


def test_other_versions_of_a_worker_that_joined_are_found(engine, monkeypatch):
    from spkbase.work import cluster

    monkeypatch.setattr(cluster, "_expected", lambda: cluster.versions() | {"cloudpickle": "0.1"})
    with pytest.raises(DataError, match=r"other versions than this process.*cloudpickle .*, not 0\.1"):
        list(ordered_map(slow_square, range(5)))


def test_without_dask_the_remedy_is_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    error = pytest.raises(DataError, match=r"pip install 'spkver\[dask\]'")
    with error, use_engine("dask", scheduler="tcp://127.0.0.1:9", timeout=1):
        pass


@pytest.mark.parametrize(("kind", "scheduler"), [("dask", None), ("loky", "tcp://127.0.0.1:9"), ("slurm", None)])
def test_engines_that_are_none(kind, scheduler):
    with (
        pytest.raises(DataError, match=r"expected an engine|do not go together"),
        use_engine(kind, scheduler=scheduler),
    ):
        pass


def test_a_task_is_small(dask_cluster, monkeypatch):
    """What all items need is not sent with each of them."""
    from spkbase.work import cluster

    sent = []
    work = cluster._dumps
    monkeypatch.setattr(cluster, "_dumps", lambda thing: sent.append(len(work(thing))) or work(thing))
    with use_engine("dask", scheduler=dask_cluster.address, timeout=PATIENCE):
        list(ordered_map(partial(products, np.ones((1000, 200))), [np.ones((2, 1000))] * 20))
    assert sent[0] > 1_600_000
    assert len(sent) == 21
    assert max(sent[1:]) < 17_000


def test_what_all_items_need_is_unpickled_once(engine):
    """By each worker: what it made of it is there for the next item."""
    counts = list(ordered_map(partial(count, seen=[]), range(12)))
    for worker in {process for process, _ in counts}:
        seen = sorted(number for process, number in counts if process == worker)
        assert seen == list(range(1, len(seen) + 1))


def count(number: int, seen: list[int]) -> tuple[int, int]:
    seen.append(number)
    return os.getpid(), len(seen)


def test_the_command_line_uses_the_cluster(dask_cluster, tmp_path):
    from evaluation.cli import main

    rng = np.random.default_rng(0)
    names = [f"{model} {segment}" for model in "abcdef" for segment in "abcdef"]
    scores = [float(name[0] == name[2]) + rng.standard_normal() for name in names]
    (tmp_path / "scores").write_text("".join(f"{n} {s}\n" for n, s in zip(names, scores, strict=True)))
    key = [f"{name} {'target' if name[0] == name[2] else 'nontarget'}\n" for name in names]
    (tmp_path / "key").write_text("".join(key))
    options = ["-s", tmp_path / "scores", "-k", tmp_path / "key", "--bootstrap", "60", "--json", "-"]
    command = ["metrics", *map(str, options)]
    here = CliRunner().invoke(main, [*command, "--jobs", "1"])
    there = CliRunner().invoke(main, [*command, "--engine", dask_cluster.address])
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert here.stdout == there.stdout
    nowhere = CliRunner().invoke(main, [*command, "--engine", "tcp:x"])
    assert (nowhere.exit_code, nowhere.stdout) == (2, "")
    assert nowhere.stderr.startswith("Error: expected the address of a Dask scheduler")
