"""What works: how many workers, and which device; the one value that functions take instead of an option for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from spkbase.work.devices import Device, on_device
from spkbase.work.maps import ordered_map, progress

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Work:
    """Workers and the device that a computation may use; results do not depend on the number of workers.

    Attributes
    ----------
    jobs : int or None
        Number of workers on this machine; all cores by default.
    device : spkbase.work.Device or None
        Computes in place of the cores, equal to the rounding of the dtype; None for NumPy on the cores.

    Examples
    --------
    >>> list(Work(jobs=2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    jobs: int | None = None
    device: Device | None = None

    def on_cores(self) -> Work:
        """Return the workers without the device, for what NumPy alone does."""
        return Work(self.jobs)

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        description: str = "",
        total: int | None = None,
        sizes: Sequence[int] | None = None,
    ) -> Iterator[Result]:
        """Yield ``function(item)`` for each item in order: by worker threads, or one item after the other on a device.

        Parameters
        ----------
        function : callable
            See `spkbase.work.ordered_map`; work inside NumPy and BLAS, so that threads do it by default.
        items : iterable
        description : str
            For the progress bar or the log; no progress without it.
        total : int, optional
            Number of items where `items` has no length.
        sizes : sequence of int, optional
            How many recordings or the like each item holds, which progress counts.
        """
        if self.device is None:
            of_threads = partial(ordered_map, jobs=self.jobs, threads=True, description=description)
            return of_threads(function, items, total=total, sizes=sizes)
        results = map(on_device(function), items)
        return progress(results, description=description, total=total, sizes=sizes) if description else results


ALL_CORES = Work()
"""NumPy on all cores: the default of every function."""
