"""Ordered maps: order, errors, workers that end, and one BLAS thread everywhere."""

import io
import logging
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
import time
import tracemalloc
import warnings
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner
from joblib import register_parallel_backend
from joblib.parallel import ParallelBackendBase
from threadpoolctl import threadpool_limits

from spkbase.console import Command
from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.progress import _bar_kind, progress, verbosely
from spkbase.work import (
    Work,
    chunks,
    default_jobs,
    engine_kind,
    share_out,
    ships_items,
    stop_workers,
    use_engine,
    use_jobs,
)

pytestmark = pytest.mark.whole

WAYS = [(1, False), (5, True), (2, False)]


def late_square(number):
    time.sleep(0.02 * (number % 3 == 0))
    return number * number


def fail_at(number, bad):
    if number == bad:
        raise DataError("bad number", file="list.txt", line=number, remedy="leave it out")
    return number


def blas_threads(_):
    import threadpoolctl

    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return max((pool["num_threads"] for pool in pools), default=1)


def die(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def process(_):
    return os.getpid()


@pytest.fixture(scope="module", autouse=True)
def no_worker_outlives():
    yield
    stop_workers()


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_results_come_in_the_order_of_the_items(jobs, threads):
    assert list(Work(jobs).map(late_square, range(12), processes=not threads)) == [
        n * n for n in range(12)
    ]


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_errors_keep_all_their_parts(jobs, threads):
    arrived = []
    with pytest.raises(DataError) as caught:  # noqa: PT012
        for number in Work(jobs).map(partial(fail_at, bad=5), range(12), processes=not threads):
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


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_every_worker_uses_one_blas_thread(jobs, threads):
    with threadpool_limits(2):
        assert set(Work(jobs).map(blas_threads, range(4), processes=not threads)) == {1}


@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.parametrize("kind", ["auto", "threads", "loky"])
def test_the_engine_determines_threads_or_processes(kind, threads):
    with use_engine(kind):
        assert (engine_kind(), ships_items()) == (kind, kind == "loky")
        workers = set(Work(2).map(process, range(8), processes=not threads))
        assert (os.getpid() in workers) == (kind == "threads" or (kind == "auto" and threads))
        with use_engine("threads"):
            assert set(Work(2).map(process, range(8), processes=True)) == {os.getpid()}
        assert engine_kind() == kind
        assert set(Work(1).map(process, range(8), processes=True)) == {os.getpid()}
    assert (engine_kind(), ships_items()) == ("auto", False)


def thread(_):
    time.sleep(0.02)
    return threading.get_ident()


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("kind", ["auto", "threads", "loky"])
def test_large_arrays_are_shared_by_threads_of_this_process(kind, jobs):
    with use_engine(kind), use_jobs(jobs):
        threads = set(share_out(Work(), thread, range(12)))
        within_a_task = list(Work(2).map(lambda _: share_out(Work(), thread, range(3)), range(2)))
    assert len(threads) == jobs
    assert (threading.get_ident() in threads) == (jobs == 1)
    assert all(len(set(task)) == 1 for task in within_a_task)


def test_a_limit_of_workers_holds_for_its_block():
    of_machine = default_jobs()
    with use_jobs(of_machine + 2):
        assert default_jobs() == of_machine + 2
        with use_jobs(None):
            assert default_jobs() == of_machine
    assert default_jobs() == of_machine


def where_we_are(_):
    return str(Path.cwd())


@pytest.mark.parametrize(("jobs", "threads"), WAYS)
def test_workers_have_the_same_working_directory(jobs, threads, tmp_path, monkeypatch):
    list(Work(jobs).map(where_we_are, range(4), processes=not threads))
    monkeypatch.chdir(tmp_path)
    assert set(Work(jobs).map(where_we_are, range(6), processes=not threads)) == {str(tmp_path)}


def test_a_killed_worker_is_an_error():
    with pytest.raises(WorkerError, match=r"killed.*fewer workers"):
        list(Work(2).map(die, range(20), processes=True))
    assert list(Work(2).map(late_square, range(3), processes=True)) == [0, 1, 4]


def test_an_error_in_a_map_prints_nothing_else(tmp_path):
    """Not what joblib says of workers that it ends; at once, with tasks that nobody has begun."""
    (tmp_path / "script.py").write_text(
        "import time\nfrom spkbase.work import Work\n"
        "def task(number):\n    time.sleep(0.01)\n    return number // (number - 5)\n"
        "for _ in range(2):\n    try:\n        print(len(list(Work(2).map(task, range(40), processes=True))))\n"
        "    except ZeroDivisionError as error:\n        print(error)\n"
        "for number in Work(2).map(task, range(6, 40), processes=True):\n    break\n"
    )
    run = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (run.stdout, run.stderr) == ("integer division or modulo by zero\n" * 2, "")


def test_progress_counts_the_parts_of_items_and_of_inner_loops(caplog, monkeypatch):
    monkeypatch.setattr("spkbase.progress._SECONDS_BETWEEN_LINES", 0.0)
    batches = chunks("abcde", 2)
    with caplog.at_level(logging.INFO):
        found = list(
            Work(1).map(
                str.upper,
                batches,
                processes=True,
                description="letters",
                sizes=[*map(len, batches)],
            )
        )
    assert found == ["AB", "CD", "E"]
    told = [record.getMessage().split(" after")[0] for record in caplog.records]
    assert told == [f"letters: {share} %" for share in (0, 40, 80, 100)]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        for _ in progress(range(2), description="outer", total=2):
            for _ in Work(1).map(abs, [1, 2], description="inner"):
                pass
            with suppress(ZeroDivisionError):  # a loop that ends by an error is removed
                for _ in progress(range(9), description="ends", total=9):
                    raise ZeroDivisionError
    told = [record.getMessage().split(" after")[0] for record in caplog.records]
    shares = [("outer", 0), ("outer, inner", 25), ("outer, inner", 50), ("outer", 50)]
    shares += [("outer, inner", 75), ("outer, inner", 100), ("outer", 100)]
    assert told == [f"{name}: {share} %" for name, share in shares]


def test_progress_is_a_bar_on_terminals_and_occasional_lines_elsewhere():
    code = (
        "import time\nfrom spkbase.console import echo_log\nfrom spkbase.progress import progress\n"
        "with echo_log():\n    for _ in progress(range(4), description='outer', total=4):\n"
        "        for _ in progress(range(4), description='inner', total=4):\n            time.sleep(0.1)\n"
    )
    main, other = pty.openpty()
    termios.tcsetwinsize(other, (24, 80))
    subprocess.run([sys.executable, "-c", code], stderr=other, check=True)
    shown = os.read(main, 65536).decode()
    assert re.search(r"\router, inner: \d+ % \|█+.*\| 00:0\d, 00:0\d left", shown)
    assert "\n" not in shown
    assert shown.endswith("\r")  # the bar is removed
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_progress_goes_to_standard_error_if_logging_is_not_set_up():
    code = (
        "import spkbase.progress as p\np._SECONDS_BETWEEN_LINES = 0.0\n"
        "for _ in p.progress('abcd', description='letters', total=4):\n    pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shares = re.findall(r"^letters: (\d+) % after", done.stderr, re.MULTILINE)
    assert shares == ["0", "25", "50", "75", "100"]


@verbosely
def shout(words, *, verbose=True):
    """A function with a loop, and one with a loop in a worker within."""
    list(Work(2).map(whisper, words, description="words"))
    return list(progress(words, description="again", total=len(words)))


def whisper(word):
    return list(progress(word, description="letters", total=len(word)))


@pytest.mark.parametrize("verbose", [True, False])
def test_functions_are_silent_on_request(verbose, caplog, monkeypatch):
    monkeypatch.setattr("spkbase.progress._SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO):
        assert shout(["ab", "cd"], verbose=verbose) == ["ab", "cd"]
        assert caplog.records == [] or verbose
        caplog.clear()
        shout(["ab", "cd"])
    told = {record.getMessage().split(":")[0] for record in caplog.records}
    assert told == {"words", "again"}  # messages of workers are not logged


def test_commands_show_activity_while_no_loop_shows_progress(caplog, monkeypatch):
    monkeypatch.setattr("spkbase.progress._SECONDS_BETWEEN_LINES", 0.05)

    @click.command("metrics", cls=Command)
    def metrics():
        time.sleep(0.12)
        for _ in progress("ab", description="letters", total=2):
            time.sleep(0.12)

    with caplog.at_level(logging.INFO):
        assert CliRunner().invoke(metrics, []).exit_code == 0
    told = [record.getMessage().split(":")[0] for record in caplog.records]
    assert told[0] == "metrics"
    assert told.count("metrics") <= 3
    assert set(told[-2:]) == {"letters"}


MEGABYTES = 2


def large(number):
    return np.full(MEGABYTES * 125_000, float(number))


@pytest.mark.parametrize("threads", [True, False])
def test_a_slow_consumer_does_not_fill_the_memory(threads):
    tracemalloc.start()
    for number, result in enumerate(Work(2).map(large, iter(range(60)), processes=not threads)):
        time.sleep(0.005)
        assert result[0] == number
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 30e6


def total(numbers, _):
    return float(numbers.sum()), type(numbers).__name__


def test_processes_memory_map_large_arrays():
    numbers = np.random.default_rng(0).standard_normal(500_000)
    found = list(Work(2).map(partial(total, numbers), range(6), processes=True))
    assert set(found) == {(float(numbers.sum()), "memmap")}


class Pool(ParallelBackendBase):
    """As Ray and joblib-spark make theirs: results are taken from a pool, and as in the latter an error is a result."""

    def effective_n_jobs(self, n_jobs):
        return {-1: 2}[n_jobs]

    def submit(self, func, callback=None):
        def get():
            try:
                return func()
            except Exception as error:
                return error

        # a task sets the engine of its context
        outcome = SimpleNamespace(get=partial(copy_context().run, get))
        Thread(target=callback, args=(outcome,)).start()
        return outcome


@pytest.mark.parametrize(("kind", "module"), [("ray", "ray.util.joblib"), ("spark", "joblibspark")])
def test_clusters_known_to_joblib_are_registered(kind, module, monkeypatch):
    registered = SimpleNamespace(
        **{f"register_{kind}": lambda: register_parallel_backend(kind, Pool)}
    )
    monkeypatch.setitem(sys.modules, module, registered)
    with use_engine(kind):
        assert (engine_kind(), ships_items()) == (kind, True)
        assert list(Work().map(late_square, range(300))) == [n * n for n in range(300)]
        assert set(Work().map(blas_threads, range(4))) == {1}
        with pytest.raises(DataError, match="bad number"):
            list(Work().map(partial(fail_at, bad=5), range(12)))
    monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(ConfigError, match=f"the engine {kind} needs .*pip install"),
        use_engine(kind),
    ):
        pass


def test_a_map_that_is_closed_early_raises_no_warning():
    """Also where the filters of warnings have changed since it began, as pytest changes them for each test."""
    with warnings.catch_warnings():
        results = Work(2).map(late_square, range(40), processes=True)
        assert next(results) == 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results.close()
    assert not caught


def test_the_time_left_does_not_grow_during_a_long_item():
    clock = [0.0]
    bar = _bar_kind()(total=1, file=io.StringIO(), bar_format="{remaining}", smoothing=0)
    bar._time = lambda: clock[0]
    bar.start_t = 0.0
    clock[0] = 100.0
    bar.update(0.25)
    assert str(bar) == "05:00"
    clock[0] = 400.0
    bar.update(0)
    assert str(bar) == "05:00"  # it would be 20:00 if the time of the current item counted
    bar.update(0.5)
    assert str(bar) == "02:13"
    bar.close()


def test_a_loop_that_an_error_ended_does_not_disturb_later_ones():
    abandoned = progress(range(3), description="abandoned")
    next(abandoned)
    later = progress(range(3), description="later")
    next(later)
    abandoned.close()
    assert list(later) == [1, 2]
    assert list(progress(range(2), description="last")) == [0, 1]
