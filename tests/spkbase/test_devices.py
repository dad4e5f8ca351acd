"""Devices are found by name or refused in clear words; ranks counted on one are those of NumPy, to the last one."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import click
import numpy as np
import pytest
from array_devices import strict
from click.testing import CliRunner

from evaluation.linkage import ranks as rank_counts_device
from evaluation.linkage.ranks import count_beaters
from spkbase import devices
from spkbase.arrays import StoredArray
from spkbase.console import device_option
from spkbase.devices import Device, check_products, find_device, on_device
from spkbase.errors import DataError
from spkbase.work import Work


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


def test_the_option_gives_the_device_or_says_why_not():
    @click.command()
    @device_option
    def command(device):
        click.echo(repr(device))

    assert CliRunner().invoke(command, []).output == "None\n"
    assert CliRunner().invoke(command, ["--device", "cpu"]).output == "None\n"
    failed = CliRunner().invoke(command, ["--device", "abacus"])
    assert failed.exit_code == 2
    assert "expected a device among cpu, cuda" in failed.output


def vectors(n_enrolled, n_trials, n_dimensions, *, dtype=np.float32, seed=0):
    """A gallery and noisy trials of its first few; lengths differ widely."""
    rng = np.random.default_rng(seed)
    gallery = rng.standard_normal((n_enrolled, n_dimensions)) * rng.uniform(1e-3, 1e3, (n_enrolled, 1))
    noise = rng.standard_normal((n_trials, n_dimensions))
    trials = gallery[:n_trials] / np.linalg.norm(gallery[:n_trials], axis=1, keepdims=True) + 0.3 * noise
    return gallery.astype(dtype), trials.astype(dtype)


def both_counts(gallery, trials, owners, device):
    norms = np.linalg.norm(gallery.astype(np.float64), axis=1)
    return [count_beaters(gallery, norms, trials, owners, work=Work(1, where)) for where in (None, device)]


def assert_same(expected, found):
    for name in ("beaters", "ties", "mated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("trial_block", [8192, 70])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_counts_are_those_of_numpy(device, monkeypatch, dtype, trial_block):
    monkeypatch.setattr(rank_counts_device, "_TRIALS", trial_block)
    gallery, trials = vectors(1500, 300, 24, dtype=dtype)
    expected, found = both_counts(gallery, trials, np.arange(300), device)
    assert_same(expected, found)
    assert expected.beaters.max() > 10


def test_copies_and_near_copies_are_counted_exactly(device):
    """Ties, and beaters by less than float32 can tell: all of them are doubtful on the device."""
    rng = np.random.default_rng(3)
    one = rng.standard_normal(40)
    gallery = np.tile(one, (120, 1))
    gallery[40:80] += 1e-7 * rng.standard_normal((40, 40))
    gallery[80:] += 1e-4 * rng.standard_normal((40, 40))
    trials = one + 1e-3 * rng.standard_normal((7, 40))
    expected, found = both_counts(gallery, trials, np.array([0, 0, 5, 50, 90, 119, 119]), device)
    assert_same(expected, found)
    assert (expected.ties >= 39).any()
    assert ((expected.beaters > 0) & (expected.beaters < 119)).any()


def test_a_gallery_in_a_file_gives_the_same(device, tmp_path):
    gallery, trials = vectors(700, 100, 16)
    gallery.tofile(tmp_path / "gallery")
    expected, _ = both_counts(gallery, trials, np.arange(100), None)
    stored = StoredArray(tmp_path / "gallery", 0, gallery.shape, gallery.dtype)
    norms = np.linalg.norm(gallery.astype(np.float64), axis=1)
    assert_same(expected, count_beaters(stored, norms, trials, np.arange(100), work=Work(device=device)))


def test_a_device_beyond_the_bound_of_float32_is_refused():
    gallery, trials = vectors(300, 300, 64)
    with pytest.raises(DataError, match=r"device short gave .* cosines with an error above"):
        both_counts(gallery, trials, np.arange(300), shortened(10))
