"""Maps on a Dask cluster: a real scheduler and real workers, which are killed, missing or late.

This module is not installed: workers cannot import it, so its functions travel whole, as those of ``__main__`` do.
"""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from dask_cluster import DaskCluster

from spkbase.errors import DataError, WorkerError
from spkbase.work import Work, engine_kind, ships_items, use_engine

pytestmark = pytest.mark.whole(seconds=70)

pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")  # installed with Dask

PATIENCE = 30.0


@pytest.fixture(scope="module", autouse=True)
def travels():
    """As a user has it done for functions of a module that workers do not have."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def engine(dask_cluster):
    with use_engine(dask_cluster.address, timeout=PATIENCE):
        yield


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Gives a cluster with at least so many workers, whose processes a test may kill; tests leave it to each other."""
    started = []

    def start(n_workers=2):
        if started and started[-1].scheduler.poll() is None:
            started[-1].replace_dead_workers(n_workers)
        else:
            folder = tmp_path_factory.mktemp("cluster")
            allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
            started.append(DaskCluster(folder, n_workers, **allowed))
        return started[-1]

    yield start
    for cluster in started:
        cluster.close()


def slow_square(number, seconds=0.02):
    time.sleep(seconds)
    return number * number


def fail_at(number, bad):
    if number == bad:
        raise DataError("bad number", file="list.txt", line=number, remedy="leave it out")
    return number


def products(vectors, rows):
    return np.asarray(rows) @ vectors


def nested(number):
    return (
        engine_kind(),
        list(Work().map(slow_square, range(number))),
        set(Work(2).map(process, range(4))),
    )


def process(_):
    return os.getpid()


# tasks that run


def test_results_come_in_the_order_of_the_items(engine):
    assert list(Work().map(slow_square, range(12))) == [n * n for n in range(12)]
    assert list(Work().map(slow_square, (n for n in range(150)), total=150)) == [
        n * n for n in range(150)
    ]
    assert list(Work().map(slow_square, [])) == []
    assert (engine_kind(), ships_items()) == ("dask", True)


def test_errors_keep_all_their_parts(engine):
    arrived = []
    with pytest.raises(DataError) as caught:  # noqa: PT012
        for number in Work().map(partial(fail_at, bad=5), range(200)):
            arrived.append(number)
    error = caught.value
    assert (error.text, error.file, error.line, error.remedy) == (
        "bad number",
        "list.txt",
        5,
        "leave it out",
    )
    assert arrived == list(range(len(arrived)))
    assert len(arrived) <= 5


def test_maps_within_a_task_run_in_the_same_worker(engine):
    for kind, squares, workers in Work().map(nested, [4, 5]):
        assert (kind, len(workers)) == ("serial", 1)
        assert squares == [n * n for n in range(len(squares))]
    assert engine_kind() == "dask"


@pytest.mark.parametrize("engine", ["loky", "dask"])
def test_functions_of_scripts_and_files_are_sent_to_workers(dask_cluster, tmp_path, engine):
    (tmp_path / "own.py").write_text("ADDED = 1\ndef own(number):\n    return number + ADDED\n")
    (tmp_path / "script.py").write_text(
        "from runpy import run_path\nfrom spkbase.work import Work, use_engine\n"
        "FACTOR = 3\ndef times(number):\n    return FACTOR * number\n"
        f"with use_engine({dask_cluster.address if engine == 'dask' else engine!r}):\n"
        "    print(*Work(2).map(times, range(4)), *Work(2).map(run_path('own.py')['own'], range(3)))\n"
    )
    run = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.stdout == "0 3 6 9 1 2 3\n", run.stderr


# workers that die and join


def test_a_killed_worker_changes_nothing(own):
    cluster = own()
    vectors = np.random.default_rng(0).standard_normal((500, 200))
    items = [np.random.default_rng(seed).standard_normal((20, 500)) for seed in range(60)]
    expected = list(Work(1).map(partial(products, vectors), items))
    found = []
    with use_engine(cluster.address, timeout=PATIENCE):
        for one in Work().map(partial(slow_products, vectors), items):
            found.append(one)
            if len(found) == 20:
                cluster.workers[0].kill()
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def slow_products(vectors, rows):
    time.sleep(0.03)
    return rows @ vectors


# clusters that cannot be used


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (
            "tcp://127.0.0.1:9",
            r"no Dask scheduler with a worker.* at tcp://127.0.0.1:9 within 1 s.*docs/cluster",
        ),
        ("http://a:1", "no Dask scheduler with a worker answered"),
    ],
)
def test_an_absent_scheduler_is_an_error(address, text):
    with pytest.raises(DataError, match=text), use_engine(address, timeout=1):
        pass


def kill_at(number, bad):
    if number == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_an_item_that_kills_its_workers_is_an_error(own):
    cluster = own(3)
    error = pytest.raises(WorkerError, match=r"several workers died of it.*memory")
    with error, use_engine(cluster.address, timeout=PATIENCE):
        list(Work().map(partial(kill_at, bad=3), range(20)))


def test_a_scheduler_that_dies_is_an_immediate_error(own):
    cluster = own(1)
    error = pytest.raises(WorkerError, match=r"lost a task: its scheduler ended")
    with error, use_engine(cluster.address, timeout=PATIENCE):
        for number in Work().map(slow_square, range(100)):
            if number == 0:
                cluster.scheduler.kill()
