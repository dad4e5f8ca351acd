"""What works: how many workers, and on which device."""

from __future__ import annotations

from dataclasses import dataclass

from spkbase.work.devices import Device


@dataclass(frozen=True)
class Work:
    """Who computes.

    Attributes
    ----------
    jobs : int, optional
        Workers; all cores by default. Results do not depend on it.
    device : spkbase.work.Device, optional
        Where products are computed; NumPy on this machine by default.
    """

    jobs: int | None = None
    device: Device | None = None
