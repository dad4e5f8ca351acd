"""Maps on a Dask cluster: a real scheduler and real workers, which are killed, missing, late, or of other versions.

This module is not installed: workers cannot import it, so its functions travel whole, as those of ``__main__`` do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from click.testing import CliRunner
from dask_cluster import DaskCluster, wait_until

from spkbase import work
from spkbase.arrays import StoredArray, part
from spkbase.errors import DataError, WorkerError
from spkbase.work import engine_kind, ordered_map, ships_items, use_engine

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


def test_errors_arrive_whole(engine):
    arrived = []
    with pytest.raises(DataError) as caught:  # noqa: PT012
        for number in ordered_map(partial(fail_at, bad=5), range(200)):
            arrived.append(number)
    error = caught.value
    assert (error.text, error.file, error.line, error.remedy) == ("bad number", "list.txt", 5, "leave it out")
    assert arrived == list(range(len(arrived)))
    assert len(arrived) <= 5


def test_items_that_raise_end_the_map(engine):
    def items():
        yield from range(100)
        raise DataError("no more items")

    arrived = []
    with pytest.raises(DataError, match="no more items"):
        arrived.extend(ordered_map(slow_square, items()))


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
        "from runpy import run_path\nfrom spkbase.work import ordered_map, use_engine\n"
        "FACTOR = 3\ndef times(number):\n    return FACTOR * number\n"
        f"with use_engine({engine!r}, scheduler={dask_cluster.address if engine == 'dask' else None!r}):\n"
        "    print(*ordered_map(times, range(4), jobs=2), *ordered_map(run_path('own.py')['own'], range(3), jobs=2))\n"
    )
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert run.stdout == "0 3 6 9 1 2 3\n", run.stderr


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
        "from spkbase.work import ordered_map\n"
        "@click.command(cls=Command)\n@worker_options\ndef main(jobs):\n"
        "    for _ in ordered_map(sleep, [0.1] * 500): print('one', flush=True)\nmain()"
    )
    command = [sys.executable, "-c", code, "--engine", dask_cluster.address]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "one\n"
    run.send_signal(ending)
    try:
        said = run.communicate(timeout=10)[1]
    except subprocess.TimeoutExpired:  # Python ignores an exception in a finaliser: press Ctrl-C again
        run.send_signal(ending)
        said = run.communicate(timeout=PATIENCE)[1]
    status, last = {signal.SIGINT: (130, "interrupted\n"), signal.SIGTERM: (143, "terminated\n")}.get(ending, (-9, ""))
    assert run.returncode == status, said
    assert said.endswith(last)
    assert "tornado.application" not in said
    rest(dask_cluster)


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


def test_no_worker_left_is_an_error_after_a_while(own):
    cluster = own()
    error = pytest.raises(WorkerError, match="has had no worker for 3 s")
    with error, use_engine("dask", scheduler=cluster.address, timeout=3):
        for number in ordered_map(slow_square, range(500)):
            if number == 81:
                killed = time.monotonic()
                for worker in cluster.workers:
                    worker.kill()
    assert 1 < time.monotonic() - killed < PATIENCE


def test_an_item_that_kills_its_workers_is_an_error(own):
    cluster = own(3, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
    error = pytest.raises(WorkerError, match=r"several workers of the cluster died of one task.*memory")
    with error, use_engine("dask", scheduler=cluster.address, timeout=PATIENCE):
        list(ordered_map(partial(kill_at, bad=3), range(20)))


def test_a_scheduler_that_dies_is_an_error(own):
    cluster = own()
    error = pytest.raises(WorkerError, match="the Dask scheduler")
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
        ("http://a:1", "no Dask scheduler answered"),
    ],
)
def test_a_scheduler_that_is_not_there_is_an_error(address, text):
    with pytest.raises(DataError, match=text), use_engine("dask", scheduler=address, timeout=1):
        pass


def test_other_versions_are_an_error_that_names_them(dask_cluster, monkeypatch):
    monkeypatch.setattr(work, "version", lambda name: "1.0" if name == "numpy" else metadata.version(name))
    error = pytest.raises(DataError, match=rf"worker tcp://.*other versions: numpy {np.__version__}, here 1\.0")
    with error, use_engine("dask", scheduler=dask_cluster.address, timeout=PATIENCE):
        pass


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


def test_the_command_line_uses_the_cluster(dask_cluster, tmp_path):
    from spkver.evaluation_cli import main

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
