"""Ordered maps: order, errors, workers that end, and one BLAS thread everywhere."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.errors import DataError, WorkerError
from spkbase.work import (
    bounded_jobs,
    chunk_bounds,
    chunks,
    default_jobs,
    engine_kind,
    ordered_map,
    progress,
    ships_items,
    stop_workers,
    undisturbed,
    use_engine,
)

WAYS = [(1, False), (2, True), (5, True), (2, False)]


@pytest.mark.parametrize(
    ("jobs", "n_items", "expected"),
    [
        (None, 1, 4),
        (1, 9, 1),
        (3, 1, 3),
        (6, 2, 4),
        (6, 5, 5),
        (6, None, 6),
        (100_000, 10_000, 32),
        (100_000, None, 32),
    ],
)
def test_workers_are_bounded_by_the_work_and_the_cores(monkeypatch, caplog, jobs, n_items, expected):
    monkeypatch.setattr("spkbase.work.maps.default_jobs", lambda: 4)
    for _ in range(2):
        assert bounded_jobs(jobs, n_items) == expected
    notes = [record.message for record in caplog.records]
    assert notes in ([], [f"{jobs} jobs were asked for on 4 cores: at most 32 are used"])
    caplog.clear()


def late_square(number: int) -> int:
    time.sleep(0.02 * (number % 3 == 0))
    return number * number


def fail_at(number: int, bad: int) -> int:
    if number == bad:
        raise DataError("bad number", file="list.txt", line=number, remedy="leave it out")
    return number


def blas_threads(_: int) -> int:
    import threadpoolctl

    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return max((pool["num_threads"] for pool in pools), default=1)


def die(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def process(_: int) -> int:
    return os.getpid()


def running(numbers: set[int]) -> set[int]:
    alive = set()
    for number in numbers:
        try:
            state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z":
            alive.add(number)
    return alive


@pytest.fixture(scope="module", autouse=True)
def no_worker_outlives():
    yield
    stop_workers()


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_order_is_that_of_the_items(jobs, threads):
    assert list(ordered_map(late_square, range(12), jobs=jobs, threads=threads)) == [n * n for n in range(12)]


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_errors_arrive_whole(jobs, threads):
    arrived = []
    with pytest.raises(DataError) as caught:  # noqa: PT012
        for number in ordered_map(partial(fail_at, bad=5), range(12), jobs=jobs, threads=threads):
            arrived.append(number)
    error = caught.value
    assert (error.text, error.file, error.line, error.remedy) == ("bad number", "list.txt", 5, "leave it out")
    assert arrived == list(range(len(arrived)))
    assert len(arrived) <= 5


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_one_blas_thread(jobs, threads):
    assert set(ordered_map(blas_threads, range(4), jobs=jobs, threads=threads)) == {1}


def test_the_consumer_of_one_worker_keeps_its_threads():
    import threadpoolctl

    with threadpoolctl.threadpool_limits(2):
        before = blas_threads(0)
        seen = {blas_threads(0) for _ in ordered_map(late_square, range(2), jobs=1)}
        assert seen == {before}
        assert blas_threads(0) == before


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_no_items(jobs, threads):
    assert list(ordered_map(late_square, [], jobs=jobs, threads=threads)) == []


def test_items_without_a_length():
    assert list(ordered_map(late_square, (n for n in range(5)), jobs=2, threads=True, total=5)) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_items_that_raise_end_the_map(jobs, threads):
    def items():
        yield from range(20)
        raise DataError("no more items")

    arrived = []
    with pytest.raises(DataError, match="no more items"):  # noqa: PT012
        for number in ordered_map(late_square, items(), jobs=jobs, threads=threads):
            arrived.append(number)
    assert arrived == [n * n for n in range(20)]


@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.parametrize("kind", ["auto", "threads", "loky"])
def test_the_engine_says_who_works(kind, threads):
    with use_engine(kind):
        assert (engine_kind(), ships_items()) == (kind, kind == "loky")
        workers = set(ordered_map(process, range(8), jobs=2, threads=threads))
        assert (os.getpid() in workers) == (kind == "threads" or (kind == "auto" and threads))
        with use_engine("threads"):
            assert set(ordered_map(process, range(8), jobs=2)) == {os.getpid()}
        assert engine_kind() == kind
        assert set(ordered_map(process, range(8), jobs=1)) == {os.getpid()}
    assert (engine_kind(), ships_items()) == ("auto", False)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("idle", [False, True])
def test_workers_do_not_outlive_a_killed_parent(tmp_path, idle):
    (tmp_path / "works.py").write_text(
        "import os, time\ndef work(seconds):\n    open(f'{os.getpid()}.pid', 'w').close()\n    time.sleep(seconds)\n"
    )
    code = (
        "import sys, time; sys.path.insert(0, '.')\nfrom works import work\n"
        "from spkbase.work import ordered_map\n"
        f"list(ordered_map(work, [{0.3 if idle else 60}] * 4, jobs=2))\nprint('done', flush=True)\ntime.sleep(60)"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    assert run.stdout is not None
    if idle:
        assert run.stdout.readline() == "done\n"
    while len(list(tmp_path.glob("*.pid"))) < 2:
        assert time.monotonic() < end, "workers did not start"
        time.sleep(0.02)
    workers = {int(path.stem) for path in tmp_path.glob("*.pid")}
    assert running(workers) == workers
    run.kill()
    run.wait()
    while running(workers):
        assert time.monotonic() < end, "workers outlived the process that they worked for"
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", ["closed", "failed"])
def test_an_early_end_leaves_no_worker(how):
    workers = set(ordered_map(process, range(8), jobs=2))
    assert running(workers) == workers
    assert os.getpid() not in workers
    if how == "closed":
        results = ordered_map(process, range(40), jobs=2)
        workers.add(next(results))
        results.close()  # type: ignore[attr-defined]
    else:
        with pytest.raises(DataError):
            list(ordered_map(partial(fail_at, bad=1), range(40), jobs=2))
    end = time.monotonic() + 5
    while running(workers) and time.monotonic() < end:
        time.sleep(0.02)
    assert not running(workers)
    assert list(ordered_map(late_square, range(3), jobs=2)) == [0, 1, 4], "new workers come when they are needed"


def test_workers_outlive_the_thread_that_started_them():
    import threading

    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(ordered_map(process, range(8), jobs=2)))
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert running(set(found)) == set(found)
    assert list(ordered_map(late_square, range(3), jobs=2)) == [0, 1, 4]


def where_we_are(_: int) -> str:
    return str(Path.cwd())


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_workers_are_where_we_are(jobs, threads, tmp_path, monkeypatch):
    list(ordered_map(where_we_are, range(4), jobs=jobs, threads=threads))
    monkeypatch.chdir(tmp_path)
    assert set(ordered_map(where_we_are, range(6), jobs=jobs, threads=threads)) == {str(tmp_path)}


def test_a_killed_worker_is_an_error():
    with pytest.raises(WorkerError, match=r"killed.*--jobs"):
        list(ordered_map(die, range(20), jobs=2))
    assert list(ordered_map(late_square, range(3), jobs=2)) == [0, 1, 4]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
def test_workers_leave_ctrl_c_to_us():
    stop_workers()
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for worker in set(ordered_map(process, range(8), jobs=2)):
        status = Path(f"/proc/{worker}/status").read_text()
        blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk")).split()[1], 16)
        for number in (signal.SIGINT, signal.SIGTERM):
            assert blocked >> (number - 1) & 1
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_signal_while_workers_start_comes_after():
    reached = False
    with pytest.raises(KeyboardInterrupt), undisturbed():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert reached


def test_progress_is_logged_now_and_then(caplog, monkeypatch):
    monkeypatch.setattr("spkbase.work.maps._SECONDS_BETWEEN_LOG_LINES", 0.0)
    with caplog.at_level(logging.INFO):
        assert list(progress("abc", description="letters", total=3)) == ["a", "b", "c"]
    assert [record.getMessage().split(" after")[0] for record in caplog.records] == [
        f"letters: {number} of 3" for number in (1, 2, 3)
    ]


def test_progress_counts_what_items_hold(caplog, monkeypatch):
    monkeypatch.setattr("spkbase.work.maps._SECONDS_BETWEEN_LOG_LINES", 0.0)
    batches = chunks("abcde", 2)
    with caplog.at_level(logging.INFO):
        found = list(ordered_map(str.upper, batches, jobs=1, description="letters", sizes=[*map(len, batches)]))
    assert found == ["AB", "CD", "E"]
    assert [record.getMessage().split(" after")[0] for record in caplog.records] == [
        f"letters: {number} of 5" for number in (2, 4, 5)
    ]


def test_the_bar_of_a_terminal_goes_up_to_what_items_hold(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(progress(["ab", "c"], description="letters", sizes=[2, 1])) == ["ab", "c"]
    assert "0/3" in terminal.getvalue()


def test_progress_loses_no_item_where_sizes_are_too_few():
    with pytest.raises(ValueError, match="zip"):
        list(progress("abc", description="letters", sizes=[1, 1]))


def test_progress_is_quiet_in_short_steps(caplog):
    with caplog.at_level(logging.INFO):
        list(progress("abc", description="letters", total=3))
    assert not caplog.records


@given(st.lists(st.integers(), max_size=40), st.integers(1, 12))
def test_chunks_cover_everything_once(items, size):
    assert [item for chunk in chunks(items, size) for item in chunk] == items
    assert [items[start:stop] for start, stop in chunk_bounds(len(items), size)] == chunks(items, size)
    assert all(len(chunk) == size for chunk in chunks(items, size)[:-1])


def test_default_jobs():
    assert 1 <= default_jobs() <= (os.cpu_count() or 1)
