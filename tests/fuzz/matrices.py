"""Files of numbers: SIDEKIT's HDF5, our stores, embeddings, Kaldi's archives, pickles, files of PyTorch,
ranks, journals."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from evaluation.embeddings.files import read_embeddings, write_embeddings
from evaluation.embeddings.kaldi import read_ark
from evaluation.embeddings.sets import Embeddings
from evaluation.linkage.ranks import Ranks, read_ranks, write_ranks
from spkbase.files.hdf5 import read_arrays, write_arrays
from spkbase.files.plain_pickle import read_pickle
from spkbase.files.torch_files import read_torch
from spkbase.runs import Journal
from spkver.backend.backend_files import checksum_of, read_backend, write_backend
from spkver.backend.chain import train_chain
from spkver.backend.svm import SvmModels, read_svms, write_svms
from spkver.features.frames import read_feature_table
from spkver.mixture.statistics import open_statistics
from spkver.mixture.ubm import read_ubm
from spkver.sidekit.features import SidekitFeatures, read_feature_file, write_feature_file
from spkver.sidekit.mixture import read_mixture, write_mixture
from spkver.sidekit.stat_server import StatServer, read_stat_server, write_stat_server
from spkver.sidekit.svms import read_svm
from spkver.vectors import JointFactors, read_joint_factors, write_joint_factors
from tests.fuzz.containers import inside_gzip, inside_hdf5, inside_npz, inside_torch, values
from tests.fuzz.mutation import damage
from tests.fuzz.parsers import Parser, any_of, joined, written

_SAMPLES = Path(__file__).resolve().parent.parent / "data" / "sidekit_files"
_TENSORS = Path(__file__).resolve().parent.parent / "data" / "torch_files"
_NAMES = np.array(["a", "b", "é/2"], object)
_NUMBERS = np.random.default_rng(0).normal(size=(3, 4))


def _sidekit(*names: str) -> list[bytes]:
    """What SIDEKIT itself wrote."""
    return [(_SAMPLES / name).read_bytes() for name in names]


def _stat_servers(folder: Path) -> list[bytes]:
    parts = {"models": ["a", "b"], "segments": ["s", "é"], "stat0": np.ones((2, 2)), "stat1": np.ones((2, 4))}
    return [written(write_stat_server, folder / "seed.h5", StatServer(**parts)), *_sidekit("stat_test.h5")]


def _mixtures(folder: Path) -> list[bytes]:
    ones = np.ones((2, 3))
    parts = {"weights": np.array([0.5, 0.5]), "means": 0 * ones, "variances": ones, "variance_control": ones}
    history = {"log_likelihoods": [1.0, 2.0], "n_components": [1, 2]}
    full = {**parts, "variances": np.tile(np.eye(3) + 0.5, (2, 1, 1))}
    ours = [written(write_mixture, folder / "seed.h5", **values, attributes=history) for values in (parts, full)]
    return [*ours, *_sidekit("ubm16.h5")]


def _joint_factors(folder: Path) -> list[bytes]:
    means, loadings = np.zeros((2, 3)), np.ones((2, 3, 2))
    whitening = (np.ones((2, 3)), np.tile(np.eye(3), (2, 1, 1)))
    models = [JointFactors(loadings, loadings, means, means, factors, np.full(2, 0.5)) for factors in whitening]
    return [written(write_joint_factors, folder / "seed.h5", model) for model in models]


def _features(folder: Path) -> list[bytes]:
    one = SidekitFeatures(cep=np.ones((5, 3), np.float32), energy=np.ones(5, np.float32), vad=np.arange(5) > 1)
    forms = [f"feat_{form}_syn_a.h5" for form in ("none", "percentile", "htk")]
    return [written(write_feature_file, folder / "seed.h5", {"a/b": one, "c": one}), *_sidekit(*forms)]


def _stores(folder: Path) -> list[bytes]:
    whole = {
        "ids": np.array(["a", "b"], object), "offsets": np.array([0, 2, 5]), "cep": np.ones((5, 3), np.float32),
        "energy": np.ones(5, np.float32), "speech": np.ones(5, bool),
    }  # fmt: skip
    return [written(write_arrays, folder / "seed.h5", whole, attributes={"fingerprint": "abc"})]


def _read_store(path: Path) -> object:
    table = read_feature_table(path)
    return [np.asarray(part) for row in range(len(table)) for part in table.of(row)]


def _read_statistics(path: Path) -> object:
    found = open_statistics(path)
    return np.asarray(found.zeroth), np.asarray(found.first)


def _machines(folder: Path) -> list[bytes]:
    return [written(write_svms, folder / "seed.h5", SvmModels(_NAMES, _NUMBERS, np.zeros(3)))]


def _backends(folder: Path) -> list[bytes]:
    draw = np.random.default_rng(0)
    ids = [f"u{row}" for row in range(24)]
    training = Embeddings(ids, [f"s{row // 4}" for row in range(24)], draw.normal(size=(24, 4)))
    chains = (
        "whiten,length,lda:2,plda:1,snorm",
        "nap:1,svm",
        "[centre, calibrate: {folds: 2, ridge: 1}]",
        "mahalanobis",
        "two_covariance,snorm",
    )
    return [written(write_backend, folder / "seed.h5", train_chain(training, chain)) for chain in chains]


def _sealed(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A file whose contents are odd, and whose checksum holds."""
    with h5py.File(io.BytesIO(data), "r") as file:
        arrays = {name: file[name][()] for name in file}
        texts = {name: str(file.attrs[name]) for name in ("chain", "maps", "facts")}
    for _ in range(chance.randrange(1, 3)):
        if arrays and chance.random() < 0.6:
            name = chance.choice([*arrays])
            odd = chance.choice(
                (None, values(chance), arrays[name].T, arrays[name][:1], -arrays[name], arrays[name] * np.nan)
            )
            if odd is None:
                del arrays[name]
            else:
                odd = np.atleast_1d(odd)
                # HDF5 has no text of NumPy's own kind
                arrays[chance.choice((name, "cohort", "model.x"))] = odd.astype("S") if odd.dtype.kind == "U" else odd
        else:
            name = chance.choice([*texts])
            swaps = (
                ("2", "9"), ("lda", "nap"), ("plda", "svm"), ("AffineMap", "LengthNorm"), ("null", "true"), ("[", "{"),
                ("4", '"4"'), ("LengthNorm", "Projection"), ("snorm", "calibrate"), ("{", "[" * 3000), ("1", "1e999"),
            )  # fmt: skip
            texts[name] = texts[name].replace(*chance.choice(swaps))
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        sealed = {"kind": "spkver backend", "version": 1, **texts, "checksum": checksum_of(texts, arrays)}
        for name, value in sealed.items():
            file.attrs[name] = value
    return content.getvalue()


# --- embeddings ------------------------------------------------------------------------------------------------------


def _embeddings(extension: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        found = Embeddings(_NAMES, np.array(["x", "x", "y"], object), _NUMBERS.astype(np.float32))
        return [written(write_embeddings, folder / f"seed.{extension}", found)]

    return seeds


def _hdf5_embeddings(folder: Path) -> list[bytes]:
    """Ours, and as others write them: strings of variable length, in pieces, packed."""
    found = _embeddings("h5")(folder)
    for number, options in enumerate(({}, {"chunks": (2,)}, {"chunks": (2,), "compression": "gzip"})):
        path = folder / f"seed{number}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("ids", data=_NAMES, dtype=h5py.string_dtype(), **options)
            file.create_dataset("vectors", data=_NUMBERS, compression="gzip" if number else None, shuffle=bool(number))
        found.append(path.read_bytes())
    return found


def _packed_embeddings(folder: Path) -> list[bytes]:
    content = io.BytesIO()
    np.savez_compressed(content, ids=_NAMES.astype(str), vectors=_NUMBERS)
    return [*_embeddings("npz")(folder), content.getvalue()]


def _folder(folder: Path) -> list[bytes]:
    for name, column in (("ids", _NAMES.astype(str)), ("vectors", _NUMBERS)):
        np.save(folder / f"{name}.npy", column)
    return [joined(folder, ["ids.npy", "vectors.npy"])]


def _read_all(**options: Any) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        """As arrays in memory, and as maps."""
        found = [read_embeddings(path, map_above=above, **options) for above in (1 << 26, 0)]
        assert np.array_equal(*(np.asarray(one.vectors) for one in found), equal_nan=True)
        return found

    return read


def _arks(_: Path) -> list[bytes]:
    vector, matrix = _NUMBERS[0], _NUMBERS[:1].astype("<f4")
    size = struct.pack("<bi", 4, vector.size)
    binary = b"u1 \0BDV " + size + vector.tobytes() + b"u2 \0BFM " + struct.pack("<bibi", 4, 1, 4, 4) + matrix.tobytes()
    head = struct.pack("<ffii", -1.0, 2.0, 1, 4)
    packed = b"u1 \0BCM2 " + head + bytes(8) + b"u2 \0BCM3 " + head + bytes(4) + b"u3 \0BCM " + head + bytes(8 * 4 + 4)
    return [binary, packed, b"u1 [ 1.5 2 -3 ]\nu2 [ 1 2 3 ]\n", b"u1  [\n 1.5 2 3 ]\n"]


_PICKLED = {"a": [np.arange(3.0), np.ones(3)], "b": [("u1", np.zeros(3, np.float32))], "c": ({"x": [1, 2.5, None]},)}


def _pickles(_: Path) -> list[bytes]:
    plain = {name: _PICKLED[name] for name in ("a", "b")}
    return [pickle.dumps(one, protocol) for protocol in (0, 2, 4, 5) for one in (plain, _PICKLED)]


def _orders(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Orders of a pickle that ask for names, sizes, depth and memory."""
    names = (
        *(b"cos\nsystem\n(S'touch pickled'\ntR", b"\x8c\x05posix\x8c\x06system\x93\x8c\x0dtouch pickled\x85R"),
        *(b"cbuiltins\neval\n", b"cnumpy\nndarray\n)\x81", b"cnumpy\ndtype\n(S'O8'\ntR", b"\x80\x05\x97", b"\x82\x01"),
    )
    sizes = (
        *(
            b"\x8e" + struct.pack("<Q", 1 << 40),
            b"B\xff\xff\xff\x7f",
            b"Nr\xff\xff\xff\x7f",
            b"I" + b"9" * 6000 + b"\n",
        ),
        *(b"]" + b"\x85" * 3000, b"]" + b"\x85" * 90000 + b"}\x94h\x00N\x86s", b"}" * 500, b"\x8a\xff" + b"\x7f" * 255),
        *(b"(lp0\ng0\na", b"(", b"0", b"1", b"2" * 50),
    )
    order = chance.choice((*names, *sizes))
    place = chance.randrange(len(data) + 1) if chance.random() < 0.5 else 2
    return data[:place] + order + data[place:]


def _torch_files(_: Path) -> list[bytes]:
    return [(_TENSORS / f"{name}.pt").read_bytes() for name in ("speechbrain", "tensors", "matrix", "tensors_older")]


def _cache(folder: Path) -> list[bytes]:
    """What VoicePrivacy keeps, with maps as text and as pickles."""
    (folder / "speaker_vectors.pt").write_bytes((_TENSORS / "matrix.pt").read_bytes())
    names, found = ["speaker_vectors.pt", "id2idx", "idx2spk"], []
    rows, speakers = {"a": 0, "b": 3}, {0: "x", 3: "y"}
    for is_text in (True, False):
        for name, table in (("id2idx", rows), ("idx2spk", speakers)):
            lines = "".join(f"{one} {two}\n" for one, two in table.items()).encode()
            (folder / name).write_bytes(lines if is_text else pickle.dumps(table, 4))
        found.append(joined(folder, names))
    return found


def _safetensors(_: Path) -> list[bytes]:
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for number, name in enumerate(("u1", "u2")):
        head[name] = {"dtype": "F32", "shape": [1, 4], "data_offsets": [16 * number, 16 * number + 16]}
    text = json.dumps(head).encode()
    return [struct.pack("<Q", len(text)) + text + _NUMBERS[:2].astype("<f4").tobytes()]


_TABLES = [
    b"id,speaker,e0,e1\nu1,x,1,2.5\nu2,y,-3e-05,nan\n",
    b",id,0,1\r\n0,u1,1,2\r\n1,u2,3,4\r\n",
    b'utt;vector\nu1;"[1, 2]"\nu2;"[3 4]"\n',
    b"u1 1 2 3\nu2 4 5 6\n",
    b"u1\t1\t2\n",
]


def _read_svm(path: Path) -> object:
    return read_svm(path, allow_pickle=True)


def _svms(_: Path) -> list[bytes]:
    return [*_sidekit("m031_001.svm"), gzip.compress(pickle.dumps((_NUMBERS[:1], np.float64(0.5))))]


def _pickle_inside(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    try:
        inner = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        inner = data
    return gzip.compress(_orders(chance, inner, others), 1)


# --- journals --------------------------------------------------------------------------------------------------------

_FINGERPRINT = "abc"
_HEAD = struct.Struct("<4sIQI")


def _journals(folder: Path) -> list[bytes]:
    path = folder / "seed.journal"
    with Journal(path, _FINGERPRINT) as journal:
        journal.append({"x": np.arange(3), "y": np.ones((2, 2))}, {"name": "a"})
        journal.append({}, None)
    return [path.read_bytes()]


def _checked_record(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Behind the good head a record whose checksum holds, and whose contents are odd."""
    shape = chance.choice(([3], [-1], [1 << 40], [True], ["3"], [2, 2], [], 3, None, [[1]], [0, 1 << 62]))
    name, kind = (
        chance.choice(("x", 3, None, "x" * 9999)),
        chance.choice(("<f8", "O", "S5", "V8", ">i2", "x", 5, "<M8[ns]")),
    )
    records: tuple[Any, ...] = (
        *({"arrays": [[name, kind, shape]], "note": 1}, {"arrays": [["x", "<f8", [3]]]}, {"arrays": 3, "note": 1}),
        *({"arrays": [[1, 2]], "note": None}, {"arrays": [], "note": [[[[]]]]}, [], 5, "x"),
    )
    text = json.dumps(chance.choice(records)).encode()
    if chance.random() < 0.2:
        text = chance.choice((b"[" * 5000, b"{", b"\xff", b"", b"9" * 6000, b"NaN"))
    arrays = values(chance).tobytes() if chance.random() < 0.5 else bytes(24)
    check = zlib.crc32(arrays, zlib.crc32(text, zlib.crc32(struct.pack("<IQ", len(text), len(arrays)))))
    length = sum(_HEAD.unpack(data[: _HEAD.size])[1:3]) + _HEAD.size if len(data) > _HEAD.size else 0
    return data[:length] + _HEAD.pack(b"SPKj", len(text), len(arrays), check) + text + arrays + data[length:]


def _read_journal(path: Path) -> object:
    with Journal(path, _FINGERPRINT) as journal:
        return [journal.read(number) for number in range(len(journal))]


def _ranks(folder: Path) -> list[bytes]:
    return [written(write_ranks, folder / "seed.npz", {1: Ranks.of(np.arange(4), 0, 9), 3: Ranks.of([2], 1, 9)})]


_HDF5 = (damage, inside_hdf5, inside_hdf5)
PARSERS = [
    Parser("sidekit-statserver", "input.h5", _stat_servers, any_of(read_stat_server, _read_statistics), _HDF5),
    Parser("sidekit-mixture", "input.h5", _mixtures, any_of(read_mixture, read_ubm), _HDF5),
    Parser("joint-factors", "input.h5", _joint_factors, read_joint_factors, _HDF5),
    Parser("sidekit-features", "input.h5", _features, read_feature_file, _HDF5),
    Parser("sidekit-svm", "input.svm", _svms, _read_svm, (damage, inside_gzip, _pickle_inside)),
    Parser("feature-store", "input.h5", _stores, any_of(_read_store, read_arrays), _HDF5),
    Parser("backend", "input.h5", _backends, read_backend, (damage, inside_hdf5, _sealed, _sealed)),
    Parser("machines", "input.h5", _machines, read_svms, _HDF5),
    Parser("embeddings-npz", "input.npz", _packed_embeddings, _read_all(), (damage, inside_npz, inside_npz)),
    Parser("embeddings-hdf5", "input.h5", _hdf5_embeddings, _read_all(), _HDF5),
    Parser("embeddings-npy", "input/", _folder, _read_all()),
    Parser("kaldi-ark", "input.ark", _arks, read_ark, words=(b"u1 ", b"[ 1 2 ]\n", b"\0B", b"FV ", b"\4\1\0\0\0")),
    Parser(
        "pickle",
        "input.pkl",
        _pickles,
        any_of(partial(read_embeddings, allow_pickle=True), read_pickle),
        (damage, _orders, _orders),
    ),
    Parser(
        "torch",
        "input.pt",
        _torch_files,
        any_of(read_embeddings, read_torch),
        (damage, inside_torch(damage), inside_torch(_orders), _orders),
    ),
    Parser("embeddings-cache", "input/", _cache, _read_all(), (damage, damage, _orders)),
    Parser("safetensors", "input.safetensors", _safetensors, read_embeddings, words=(b'"F32"', b"[0, 16]", b"{")),
    Parser("embeddings-table", "input.csv", lambda _: _TABLES, read_embeddings, words=(b"id,", b"u1 ", b"1e5", b"[1]")),
    Parser("ranks", "input.npz", _ranks, read_ranks, (damage, inside_npz, inside_npz)),
    Parser("journal", "input.journal", _journals, _read_journal, (damage, _checked_record)),
]
