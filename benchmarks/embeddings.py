"""Reading embeddings: a million vectors of 192 in each form, beside a plain read of as many bytes.

    python -m benchmarks.embeddings [VECTORS]

A plain read is `numpy.fromfile` of the same file, which the system has in its cache for both. Forms that lie in one
piece are mapped; both are summed within the time, so that all bytes are seen.
"""

from __future__ import annotations

import pickle
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import describe_machine
from evaluation.embeddings import Embeddings, read_embeddings, write_embeddings

DIMENSIONS = 192


def files(folder: Path, count: int) -> Iterator[tuple[str, Path, Path]]:
    """Write the same vectors in one form after the other: its name, the file to read, the file that holds the bytes."""
    vectors = np.random.default_rng(0).normal(size=(count, DIMENSIONS)).astype(np.float32)
    ids = [f"s{number % 9973}-u{number}" for number in range(count)]
    names = np.array(ids, object)
    for suffix in ("npz", "h5"):
        write_embeddings(folder / f"e.{suffix}", Embeddings(names, names, vectors))
        yield suffix, folder / f"e.{suffix}", folder / f"e.{suffix}"
    np.save(folder / "x.npy", vectors)
    np.save(folder / "x_ids.npy", np.array(ids))
    yield "npy, ids beside it", folder / "x.npy", folder / "x.npy"
    with (folder / "k.ark").open("wb") as ark, (folder / "k.scp").open("w") as scp:
        for name, row in zip(ids, vectors, strict=True):
            ark.write(f"{name} ".encode())
            scp.write(f"{name} {folder / 'k.ark'}:{ark.tell()}\n")
            ark.write(b"\0BFV \4" + struct.pack("<i", DIMENSIONS) + row.tobytes())
    yield "Kaldi ark", folder / "k.ark", folder / "k.ark"
    yield "Kaldi scp", folder / "k.scp", folder / "k.ark"
    cache = folder / "cache"
    cache.mkdir()
    write_tensor(cache / "speaker_vectors.pt", vectors)
    (cache / "id2idx").write_text("".join(f"{name} {row}\n" for row, name in enumerate(ids)))
    (cache / "idx2spk").write_text("".join(f"{row} {name}\n" for row, name in enumerate(ids)))
    yield "VoicePrivacy's cache", cache, cache / "speaker_vectors.pt"
    (folder / "e.pkl").write_bytes(pickle.dumps(dict(zip(ids, vectors, strict=True)), 4))
    yield "pickled dictionary", folder / "e.pkl", folder / "e.pkl"


def write_tensor(path: Path, vectors: np.ndarray) -> None:
    """Write one tensor as `torch.save` does, without PyTorch."""
    rows, width = vectors.shape
    storage = (
        b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" + b"0X\3\0\0\0cpu" + b"J" + struct.pack("<i", vectors.size)
    )
    shape = b"(" + b"".join(b"J" + struct.pack("<i", size) for size in (rows, width)) + b"t"
    steps = b"(J" + struct.pack("<i", width) + b"K\1t"
    orders = b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"tQK\0" + shape + steps + b"\x89NtR."
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", orders)
        archive.writestr("archive/data/0", vectors.tobytes())


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Return how long something takes, the better of two."""
    times = []
    for _ in range(2):
        started = time.perf_counter()
        work(*arguments)
        times.append(time.perf_counter() - started)
    return min(times)


def plain(path: Path) -> object:
    """Read a file and see all of its bytes."""
    return np.fromfile(path, np.uint8).sum(dtype=np.uint8)


def ours(path: Path) -> object:
    """Read embeddings and see all of their values."""
    return read_embeddings(path, allow_pickle=True).vectors.sum()


def unpickled(raw: bytes) -> object:
    """Read a pickle as Python does."""
    return np.stack(list(pickle.loads(raw).values()))


def main(count: int = 1_000_000) -> None:
    """Print a line for each form."""
    print(describe_machine())
    print(f"{count:,} vectors of {DIMENSIONS} float32")
    with tempfile.TemporaryDirectory() as name:
        for form, path, content in files(Path(name), count):
            beside, own = seconds(plain, content), seconds(ours, path)
            print(f"{form:22} {own:7.2f} s, plain read {beside:6.2f} s, ratio {own / beside:5.1f}", flush=True)
            if path.suffix == ".pkl":
                raw = path.read_bytes()
                print(f"{'':22} pickle.loads and stack {seconds(unpickled, raw):.2f} s")
            if path.is_file() and path.suffix != ".ark":  # the scp needs it
                path.unlink()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
