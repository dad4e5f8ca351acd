"""Devices are found by name or refused in clear words; ranks counted on one are those of NumPy, to the last one."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from array_devices import strict

from spkbase import devices
from spkbase.devices import Device, check_products, find_device, on_device
from spkbase.errors import DataError


@pytest.mark.parametrize("name", [None, "cpu"])
def test_the_cores_are_no_device(name):
    assert find_device(name) is None


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "cuda:x", "torch:0", "CUDA", "", "cpu:0"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(DataError, match="expected a device among cpu, cuda"):
        find_device(name)


@pytest.fixture
def without_libraries(monkeypatch):
    """As if nothing were installed."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(devices, "_importable", lambda module: False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cuda:1", "cuda:1 needs PyTorch or CuPy, and neither is installed"),
        ("cupy:1", "needs cupy and array-api-compat"),
        ("torch", "needs torch and array-api-compat"),
    ],
)
def test_a_missing_library_is_an_error_that_says_what_to_install(without_libraries, name, text):
    with pytest.raises(DataError, match=f"{text}.*pip install"):
        find_device(name)


def fake_torch(monkeypatch, n_gpus):
    """PyTorch that sees some GPUs, as far as it is asked."""
    cuda = SimpleNamespace(is_available=lambda: n_gpus > 0, device_count=lambda: n_gpus)
    precision: list[str] = []
    torch = SimpleNamespace(cuda=cuda, set_float32_matmul_precision=precision.append, device=lambda *place: place)
    monkeypatch.setattr(devices, "_importable", lambda module: True)
    monkeypatch.setattr(devices, "_import", lambda library: (torch, strict().xp))
    monkeypatch.setattr(devices, "check_products", lambda found: None)
    return precision


@pytest.mark.parametrize(
    ("name", "n_gpus", "text"),
    [("cuda", 0, "PyTorch sees no GPU"), ("cuda:2", 2, r"PyTorch sees 2 GPU\(s\), numbered from 0")],
)
def test_a_gpu_that_is_not_there_is_an_error(monkeypatch, name, n_gpus, text):
    fake_torch(monkeypatch, n_gpus)
    with pytest.raises(DataError, match=text):
        find_device(name)


def test_a_gpu_is_taken_with_full_precision(monkeypatch):
    precision = fake_torch(monkeypatch, 2)
    found = find_device("cuda:1")
    assert found is not None
    assert (found.name, found.place) == ("cuda:1", ("cuda", 1))
    assert precision == ["highest"]


def test_cupy_without_a_driver_sees_no_gpu(monkeypatch):
    def fail():
        raise RuntimeError("cudaErrorNoDevice")

    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=fail)))
    monkeypatch.setattr(devices, "_import", lambda library: (cupy, strict().xp))
    with pytest.raises(DataError, match="device cupy: CuPy sees no GPU"):
        find_device("cupy")


def shortened(bits: int) -> Device:
    """A device whose products keep so many bits of a factor's fraction, as TF32 keeps 10."""
    xp = ModuleType("shortened")

    class Short(np.ndarray):
        def __matmul__(self, other):
            cut = [
                (np.asarray(one).view(np.int32) & np.int32(-(1 << (23 - bits)))).view(np.float32)
                for one in (self, other)
            ]
            return (cut[0] @ cut[1]).view(Short)

    for name in ("float32", "float64", "astype", "matrix_transpose", "nonzero", "count_nonzero"):
        setattr(xp, name, getattr(np, name))
    xp.asarray = lambda array: np.array(array).view(Short)
    return Device("short", xp)


def test_a_device_that_shortens_products_is_refused():
    check_products(shortened(23))
    with pytest.raises(DataError, match=r"shortens the factors of float32 products .*TF32"):
        check_products(shortened(10))


def test_memory_of_the_device_that_runs_out_is_an_error():
    class OutOfMemoryError(RuntimeError):
        pass

    @on_device
    def work(error):
        raise error

    with pytest.raises(DataError, match=r"memory ran out: 3 GB short .*leave --device out"):
        work(OutOfMemoryError("3 GB short"))
    with pytest.raises(RuntimeError, match="another"):
        work(RuntimeError("another"))


@pytest.mark.filterwarnings("error")  # PyTorch warns of arrays that it must not write to
@pytest.mark.parametrize("order", ["=", ">"])
def test_arrays_go_there_and_back(device, order):
    array = np.arange(12, dtype=f"{order}f4").reshape(3, 4)[:, ::-2]
    array.flags.writeable = False
    np.testing.assert_array_equal(device.to_numpy(device.asarray(array)), array)
    assert device.to_numpy(device.asarray(array, np.float64)).dtype == np.float64
