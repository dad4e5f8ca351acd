"""The commands train, score, anonymize, linkability and metrics on real clusters, and on some that fail them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Timer

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from dask_cluster import DaskCluster
from voiceprivacy_runs import SUFFIX, write_layout

from evaluation.cli import main as evaluation_main
from evaluation.embeddings.files import write_embeddings
from evaluation.embeddings.sets import Embeddings
from spkbase.work import cluster as engine
from spkver.cli import main

pytest.importorskip("distributed")

HERE = ("--jobs", "1")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set without twins; read only."""
    root = write_layout(tmp_path_factory.mktemp("commands"))
    for twin in root.glob(f"*{SUFFIX}"):
        shutil.rmtree(twin)
    return root


@pytest.fixture
def there(dask_cluster) -> tuple[str, ...]:
    return "--engine", dask_cluster.address


@pytest.fixture
def own(tmp_path) -> Iterator[Callable[[int], DaskCluster]]:
    """Starts a cluster that the test may kill."""
    with ExitStack() as stack:

        def start(n_workers: int) -> DaskCluster:
            (tmp_path / "cluster").mkdir()
            return stack.enter_context(closing(DaskCluster(tmp_path / "cluster", n_workers)))

        yield start


def run(*arguments: object, group=main) -> Result:
    return CliRunner().invoke(group, [*map(str, arguments)])


def contents(folder: Path) -> dict[str, object]:
    """Audio, lists and the arrays of HDF5 files below a folder."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                file.visititems(
                    lambda key, item, name=name: (
                        found.update({f"{name}/{key}": np.asarray(item).tobytes()})
                        if isinstance(item, h5py.Dataset) and item.dtype.kind != "O"
                        else None
                    )
                )
        elif path.suffix in (".wav", ".txt", "") and path.is_file() and path.name != "wav.scp":
            found[name] = path.read_bytes()
    return found


def test_anonymised_speech_is_the_same(originals, there, tmp_path):
    for name, who in (("here", HERE), ("there", there)):
        (tmp_path / name).mkdir()
        shutil.copytree(originals / "tiny_train", tmp_path / name / "tiny_train")
        assert run("anonymize", "mcadams", tmp_path / name / "tiny_train", *who).exit_code == 0
    here, there_ = (contents(tmp_path / name / "tiny_train_mcadams") for name in ("here", "there"))
    assert here == there_
    assert sum(name.endswith(".wav") for name in here) == 18


def test_attackers_and_their_scores_are_the_same(originals, there, tmp_path):
    small = ("ubm.components=4", "ubm.iterations=[1, 2]")
    sets = [part for one in small for part in ("--set", one)]
    data = ("--enroll", originals / "tiny_test_enrolls", "--trials", originals / "tiny_test_trials_f")
    for name, who in (("here", HERE), ("there", there)):
        attacker, scores = tmp_path / name / "attacker", tmp_path / name / "scores.txt"
        training = (originals / "tiny_train", "--attacker", "gmm-svm", "--output", attacker)
        for command in (("train", *training, *sets), ("score", attacker, *data, "--output", scores)):
            found = run(*command, *who)
            assert found.exit_code == 0, found.output
    here, there_ = (contents(tmp_path / name) for name in ("here", "there"))
    assert here == there_
    assert "scores.txt" in here
    assert sum(name.startswith("attacker/") for name in here) > 4


def linkability_command(folder: Path) -> list[object]:
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((6000, 16))
    names = np.array([f"s{one:04d}" for one in range(len(voices))], object)
    spoken = voices[:400] + 2 * rng.standard_normal((400, 16))
    for name, rows in (("enroll", voices), ("trial", spoken)):
        own = names[: len(rows)]
        ids = np.array([f"{name[0]}-{one}" for one in own], object)
        write_embeddings(folder / f"{name}.npz", Embeddings(ids, own, rows.astype(np.float32)))
    files = ("--enroll", folder / "enroll.npz", "--trial", folder / "trial.npz")
    return ["linkability", *files, "--bootstrap", 20, "--json", "-"]


def metrics_command(folder: Path) -> list[object]:
    rng = np.random.default_rng(1)
    pairs = [(f"s{model:02d}", f"s{segment:02d}") for model in range(40) for segment in range(40)]
    lines = [f"{model} {segment} {(model == segment) + rng.standard_normal()}\n" for model, segment in pairs]
    (folder / "scores").write_text("".join(lines))
    kinds = [f"{model} {segment} {'' if model == segment else 'non'}target\n" for model, segment in pairs]
    (folder / "key").write_text("".join(kinds))
    return ["metrics", "-s", folder / "scores", "-k", folder / "key", "--bootstrap", 250, "--json", "-"]


@pytest.mark.parametrize("make", [linkability_command, metrics_command])
def test_counts_and_intervals_are_the_same_when_a_worker_is_killed(own, tmp_path, monkeypatch, make):
    monkeypatch.setattr("evaluation.linkage.ranks._BLOCKS_SENT", 1)
    command = make(tmp_path)
    here = run(*command, *HERE, group=evaluation_main)
    cluster = own(2)
    dumps, n_sent = engine._dumps, [0]

    def kill_on_the_way(thing: object) -> bytes:
        n_sent[0] += 1
        if n_sent[0] == 3:
            cluster.workers[0].kill()
        return dumps(thing)

    monkeypatch.setattr(engine, "_dumps", kill_on_the_way)
    there = run(*command, "--engine", cluster.address, group=evaluation_main)
    assert n_sent[0] > 3
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert here.stdout == there.stdout


# Clusters that will not do


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp:/127.0.0.1:8786", "expected the address of a Dask scheduler, tcp://HOST:PORT, got 'tcp:/127"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answered at tcp://127.0.0.1:9 within 1 s"),
        (None, "has no worker after 1 s"),
    ],
)
def test_no_cluster_is_an_error_and_nothing_is_written(originals, own, tmp_path, monkeypatch, address, said):
    monkeypatch.setenv("SPKVER_WAIT", "1")
    address = own(0).address if address is None else address
    training = ("train", originals / "tiny_train", "--attacker", "gmm-ubm", "--output", tmp_path / "out")
    started = time.monotonic()
    found = run(*training, "--engine", address)
    assert time.monotonic() - started < 20
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("Error: ")
    assert said in found.stderr
    assert "docs/cluster.md" in found.stderr
    assert not (tmp_path / "out").exists()


def test_a_worker_that_comes_in_time_is_waited_for(own, tmp_path, monkeypatch):
    monkeypatch.setenv("SPKVER_WAIT", "40")
    cluster = own(0)
    late = Timer(1.5, cluster.start_worker)
    late.start()
    who = ("--engine", cluster.address)
    found = run(*metrics_command(tmp_path), *who, group=evaluation_main)
    late.join()
    assert found.exit_code == 0, found.output


def test_without_the_extra_its_name_is_the_remedy(originals, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    who = ("--engine", "tcp://127.0.0.1:9")
    found = run("train", originals / "tiny_train", "--attacker", "gmm-ubm", "--output", tmp_path / "out", *who)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "pip install 'spkver[dask]'" in found.stderr


def test_other_versions_end_the_command(originals, there, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_expected", lambda: engine.versions() | {"numpy": "1.0"})
    found = run("train", originals / "tiny_train", "--attacker", "gmm-ubm", "--output", tmp_path / "out", *there)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "computes with other versions" in found.stderr
    assert not (tmp_path / "out").exists()
