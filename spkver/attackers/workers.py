"""What works on a training or on scores."""

from __future__ import annotations

from dataclasses import dataclass

from spkbase.work import Device


@dataclass(frozen=True)
class Workers:
    """Who does the work; no result depends on their number.

    Attributes
    ----------
    jobs : int or None
        Workers; all cores by default.
    device : spkbase.work.Device or None
        Where products are computed that can be computed elsewhere than in NumPy; None for NumPy.
    """

    jobs: int | None = None
    device: Device | None = None
