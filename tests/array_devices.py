"""Devices to test on: the strict array namespace always, PyTorch on the cores where it is installed."""

from __future__ import annotations

from functools import partial

import pytest

from spkbase.devices import Device, find_device


def strict(**settings: object) -> Device:
    """A namespace that has nothing but the array API standard."""
    import array_api_strict

    return Device("strict", array_api_strict, **settings)


def torch_on_cores() -> Device:
    pytest.importorskip("torch")
    device = find_device("torch")
    assert device is not None
    return device


# The second has room for next to nothing: tables do not stay there and everything comes in many blocks.
MAKERS = {
    "strict": strict,
    "strict-small": partial(strict, block_bytes=1 << 16, free_bytes=lambda: 0),
    "torch": torch_on_cores,
}
