"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_cluster import DaskCluster
from hypothesis import HealthCheck, settings

# No deadlines: the first example pays for imports, and machines are shared. On CI the same examples every time.
# `make test-all` draws many.
settings.register_profile(
    "spkver",
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.register_profile("many", settings.get_profile("spkver"), max_examples=300)
settings.load_profile("spkver")

# A shell starts its background jobs with Ctrl-C ignored, and commands keep this: tests of Ctrl-C need the setting
# of the foreground, however the tests were started. Processes that they start inherit it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left with it at the end; the order within a file stays."""
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    """Return how long the file of a test takes, by its mark; 0 for a file that is part of the quick loop."""
    mark = item.get_closest_marker("whole")
    return 0 if mark is None else mark.kwargs.get("seconds", 1)


@pytest.fixture(scope="session", autouse=True)
def _without_flushing() -> Iterator[None]:
    """Leave it to the system when files reach the disk: no test survives a power cut, and each file would wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """Small inputs and expected numbers that are part of the project."""
    return Path(__file__).resolve().parent / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference material that is not part of the project; tests that need it skip without it."""
    folder = Path(os.environ.get("SPKVER_SHARED", ROOT.parent / "shared"))
    if not (folder / "golden").is_dir():
        pytest.skip("reference material not at hand: set SPKVER_SHARED")
    return folder


@pytest.fixture(scope="session")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler and two workers; tests that kill some start their own."""
    pytest.importorskip("distributed")
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()
