"""Ordered maps: order, errors, workers that end, and one BLAS thread everywhere."""

from __future__ import annotations

import logging
import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import DataError, WorkerError
from spkbase.work import (
    chunks,
    engine_kind,
    ordered_map,
    ships_items,
    stop_workers,
    use_engine,
)

WAYS = [(1, False), (5, True), (2, False)]


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


def where_we_are(_: int) -> str:
    return str(Path.cwd())


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_workers_are_where_we_are(jobs, threads, tmp_path, monkeypatch):
    list(ordered_map(where_we_are, range(4), jobs=jobs, threads=threads))
    monkeypatch.chdir(tmp_path)
    assert set(ordered_map(where_we_are, range(6), jobs=jobs, threads=threads)) == {str(tmp_path)}


def test_a_killed_worker_is_an_error():
    with pytest.raises(WorkerError, match=r"killed.*fewer workers"):
        list(ordered_map(die, range(20), jobs=2))
    assert list(ordered_map(late_square, range(3), jobs=2)) == [0, 1, 4]


def test_progress_counts_what_items_hold(caplog, monkeypatch):
    monkeypatch.setattr("spkbase.work._SECONDS_BETWEEN_LOG_LINES", 0.0)
    batches = chunks("abcde", 2)
    with caplog.at_level(logging.INFO):
        found = list(ordered_map(str.upper, batches, jobs=1, description="letters", sizes=[*map(len, batches)]))
    assert found == ["AB", "CD", "E"]
    assert [record.getMessage().split(" after")[0] for record in caplog.records] == [
        f"letters: {number} of 5" for number in (2, 4, 5)
    ]
