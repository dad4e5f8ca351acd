"""One value says what works: threads in the order of the items, or a device, one item after the other."""

from __future__ import annotations

import threading

import pytest
from array_devices import strict

from spkbase.errors import DataError
from spkbase.work import ALL_CORES, Work


def test_results_come_in_order_from_threads():
    seen = set()

    def square(number: int) -> int:
        seen.add(threading.get_ident())
        return number * number

    assert list(Work(jobs=2).map(square, range(50))) == [number * number for number in range(50)]
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("description", ["", "squares"])
def test_a_device_works_in_this_thread_and_when_it_is_asked(description):
    begun = []

    def note(number: int) -> int:
        begun.append((number, threading.get_ident()))
        return number

    results = Work(jobs=4, device=strict()).map(note, iter([3, 1, 2]), description=description, total=3)
    assert begun == []
    assert next(results) == 3
    assert begun == [(3, threading.get_ident())]
    assert list(results) == [1, 2]


def test_memory_of_a_device_that_runs_out_is_told():
    class OutOfMemoryError(RuntimeError):
        pass

    def fail(item: int) -> None:
        raise OutOfMemoryError("96 GB")

    with pytest.raises(DataError, match="memory ran out: 96 GB"):
        list(Work(device=strict()).map(fail, [1]))


def test_the_default_is_numpy_on_all_cores():
    assert Work() == ALL_CORES
    assert ALL_CORES.jobs is ALL_CORES.device is None


def test_the_workers_without_the_device():
    assert Work(3, strict()).on_cores() == Work(3)
