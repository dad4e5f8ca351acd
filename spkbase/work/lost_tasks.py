"""Tasks that a Dask worker has forgotten, while its scheduler waits for them for ever.

When a worker dies while others fetch from it what all tasks need, one of these may be told to fetch it, to give it up
and to make it itself, in such an order that it does nothing and says nothing. Dask does not notice; here the scheduler
compares what it has given to its workers with what they say that they have to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spkbase.errors import WorkerError

if TYPE_CHECKING:
    from distributed import Client, Scheduler
    from distributed.scheduler import WorkerState

# Longer than most tasks are on their way to their worker, which need not know yet of one that brings much with it over
# a slow network: so this is doubled each time, and such a task arrives at last.
_SECONDS_FORGOTTEN = 5.0
_NOTHING_TO_DO = ("memory", "released", "forgotten", "error")

Task = tuple[str, str]
"""Address of a worker, key of a task."""


class LostTasks:
    """Finds tasks of a client that their workers have forgotten, by looking again and again.

    Parameters
    ----------
    client : distributed.Client
        The one that waits.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._patience = client, _SECONDS_FORGOTTEN
        self._first_heard: dict[Task, float] = {}

    def give_again(self) -> None:
        """Have the scheduler give anew what its workers have not known for a while.

        Raises
        ------
        WorkerError
            If there is such a task, and this version of Dask knows no way to give it anew.
        """
        heard = self._client.run_on_scheduler(_unknown_to_their_workers, client=self._client.id)
        self._first_heard = {task: self._first_heard.get(task, last) for task, last in heard.items()}
        lost = [task for task, first in self._first_heard.items() if heard[task] - first > self._patience]
        if not lost:
            return
        try:
            self._client.run_on_scheduler(_reschedule, tasks=lost)
        except (AttributeError, TypeError) as error:
            text = "Dask has lost a task, as it may when a worker dies, and this version of it cannot be told so"
            raise WorkerError(f"{text} (start again, or take distributed 2024.8 to 2026.8)") from error
        self._first_heard.clear()
        self._patience *= 2


# On the scheduler


def _unknown_to_their_workers(client: str, dask_scheduler: Scheduler) -> dict[Task, float]:
    """Tasks given to workers that have nothing to do, with the time of the heartbeat that says so."""
    return {
        (worker.address, str(task.key)): worker.last_seen
        for worker in dask_scheduler.workers.values()
        if _says_it_is_idle(worker)
        for task in worker.processing
        if any(wanting.client_key == client for wanting in task.who_wants or ())
    }


def _says_it_is_idle(worker: WorkerState) -> bool:
    counts = worker.metrics.get("task_counts")  # None before the first heartbeat
    return counts is not None and not any(n for state, n in counts.items() if state not in _NOTHING_TO_DO)


def _reschedule(tasks: list[Task], dask_scheduler: Scheduler) -> None:
    for address, key in tasks:
        dask_scheduler._reschedule(key, address, stimulus_id="spkver-lost-task")
