"""The recipe on a real scheduler with workers that die and join, and itself killed: the bits of one machine.

The corpus is small, so chunks are made small too, for all to have work in every step.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from dask_cluster import DaskCluster, wait_until
from recipe_runs import COMMANDS, options
from test_interrupts import RECIPES
from test_rsr2015_kills import ROUNDS, SETTINGS, check_same
from tiny_corpus import write_tiny_corpus

from spkbase.work import _alone
from spkbase.work import cluster as engine

pytest.importorskip("distributed")

_CHUNKS = {
    "spkver.mixture.gmm.CHUNK": 1024,
    "spkver.backend.svm._MODELS": 4,
    "spkver.backend.scoring._PAIRED": 100_000,
    "spkver.backend.scoring._TASK": 200_000,
}
MAPS = {
    "extract_batch",
    "_post_process",
    "_read_and_sum",
    "_block_statistics",
    "_adapt_block",
    "_train_block",
    "_score_factors",
}
# a recipe in a process of its own, with these chunks
_START = f"""
import runpy, sys
from importlib import import_module
for name, value in {_CHUNKS}.items():
    module, _, constant = name.rpartition(".")
    setattr(import_module(module), constant, value)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module", autouse=True)
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _CHUNKS.items():
            patch.setattr(name, value)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """More speakers than the tiny corpus; read only."""
    return write_tiny_corpus(
        tmp_path_factory.mktemp("cluster") / "corpus", background=range(1, 21), evaluation=range(101, 113)
    )


def run(corpus: Path, output: Path, *arguments: str) -> Path:
    """Run the recipe in this process."""
    with pytest.raises(SystemExit) as end:
        COMMANDS["svm_gmm"].main(options(corpus, output, *arguments, **SETTINGS))
    assert not end.value.code
    for frames in output.glob(
        ".rows.*.spkver-tmp"
    ):  # workers read them; they go when the process ends, as the others' do
        frames.unlink()
    return output


@pytest.fixture(scope="module")
def local(corpus, tmp_path_factory) -> Path:
    """Output of one worker; read only."""
    return run(corpus, tmp_path_factory.mktemp("local") / "out", "--jobs", "1")


@pytest.fixture
def own(tmp_path) -> Iterator[DaskCluster]:
    """A cluster that the test may kill."""
    (tmp_path / "cluster").mkdir()
    with closing(DaskCluster(tmp_path / "cluster")) as cluster:
        yield cluster


class Messages:
    """Sizes of all that is sent to workers, in bytes, by the function that is mapped; calls what is due on the way."""

    def __init__(self, patch: pytest.MonkeyPatch, due: dict[int, Callable[[], object]]) -> None:
        self.common: Counter[str] = Counter()  # the largest
        self.items: Counter[str] = Counter()
        self.n, self.total = 0, 0
        self._due, self._function, self._dumps = due, "", engine._dumps
        patch.setattr(engine, "_dumps", self._note)

    def _note(self, thing: object) -> bytes:
        pickled = self._dumps(thing)
        sizes = self.items
        if callable(thing):
            while isinstance(thing, partial):
                thing = thing.args[0] if thing.func is _alone else thing.func
            self._function, sizes = thing.__name__, self.common  # type: ignore[attr-defined]
        sizes[self._function] = max(sizes[self._function], len(pickled))
        self.n += 1
        self.total += len(pickled)
        self._due.get(self.n, lambda: None)()
        return pickled


def check_small(messages: Messages, local: Path) -> None:
    """Data travel as file names or chunks, and the larger ones do not come near the size of what is worked on."""
    largest = max(messages.items.values())
    assert set(messages.items) == MAPS
    assert largest < 64_000, messages.items
    # the projection and the kernel of the background, but not its vectors, which are four times as large
    assert max(messages.common.values()) < 400_000, messages.common
    for name in ("features.h5", "svm/svm-gmm.h5"):
        assert (local / name).stat().st_size > 10 * largest, name
    assert messages.total < 0.4 * sum(path.stat().st_size for path in local.rglob("*.h5"))


def test_a_killed_worker_and_one_that_joins_change_nothing(corpus, local, own, tmp_path, monkeypatch):
    due = {70: own.workers[0].kill, 110: own.start_worker}  # in training of the UBM
    messages = Messages(monkeypatch, due)
    check_same(run(corpus, tmp_path / "out", "--engine", own.address), local)
    assert messages.n > max(due)
    check_small(messages, local)
    own.wait_for(2)
    wait_until(lambda: own.n_tasks() == 0, "an end of all tasks")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_workers_killed_at_random(corpus, local, own, tmp_path, monkeypatch, seed):
    """Both workers, one after the other, at any message; each leaves when another has come."""
    moments = random.Random(seed)
    first, second = sorted(moments.sample(range(2, 175), 2))

    def replace(number: int) -> None:
        own.start_worker()
        own.workers[number].kill()

    messages = Messages(monkeypatch, {first: partial(replace, 0), second: partial(replace, 1)})
    check_same(run(corpus, tmp_path / "out", "--engine", own.address), local)
    assert messages.n > second, "both were killed"
    own.wait_for(2)


def start(corpus: Path, output: Path, address: str) -> subprocess.Popen:
    """Start the recipe in a process of its own; what it says goes to a file beside the output."""
    chosen = options(corpus, output, "--engine", address, **SETTINGS)
    with output.with_suffix(".err").open("w") as file:
        command = [sys.executable, "-c", _START, str(RECIPES / "svm_gmm.py"), *chosen]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_client_goes_on_on_the_same_scheduler(corpus, local, dask_cluster, tmp_path, seed):
    moments, kills, output = random.Random(seed), 0, tmp_path / "out"
    while True:
        with start(corpus, output, dask_cluster.address) as one:
            said = output.with_suffix(".err")
            wait_until(lambda: one.poll() is not None or said.stat().st_size, "a first line")  # noqa: B023
            try:
                one.wait(moments.uniform(0.1, 1.5) * 1.3**kills)
            except subprocess.TimeoutExpired:
                one.kill()
        assert one.returncode in (0, -signal.SIGKILL), said.read_text()
        if one.returncode == 0:
            break
        kills += 1
        if moments.random() < 0.5:  # else the next one comes while the scheduler still has tasks of this one
            wait_until(lambda: dask_cluster.n_tasks() == 0, "an end of all tasks")
    assert kills > 1
    check_same(output, local)
    wait_until(lambda: dask_cluster.n_tasks() == 0, "an end of all tasks")
    assert (output / "run.log").read_text().count("UBM ") <= 4 * (sum(ROUNDS) + kills)
