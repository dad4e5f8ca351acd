"""Files of trained chains: HDF5, whole or absent, arrays and JSON alone.

Attributes hold what kind of file it is, the chain with all values, the facts of the training with the digest of what it
was made from, and a checksum of all that the file holds. Datasets hold the arrays: ``map<i>.offset``, ``map<i>.matrix``
or ``map<i>.directions`` of map i, ``model.<field>`` of the scorer, ``cohort``, ``calibration``, and ``heard``, the
digests of the training speakers.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Affine
from spkbase.errors import DataError
from spkbase.files import fingerprint
from spkbase.hdf5 import open_file, read_arrays, write_arrays
from spkver.backend.chain import Backend, Chain, parse_chain, plain_chain, step_of
from spkver.backend.nap import Projection
from spkver.backend.transforms import AffineMap, LengthNorm, Map, dimension_after

_KIND, _VERSION = "spkver backend", 1
_REMEDY = "write it again with spkver backend train"
_FACTS = {"dimension": int, "vectors": int, "speakers": int, "made_from": str}
_NOT_READ = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError)

Arrays = dict[str, NDArray[Any]]


def write_backend(path: str | Path, backend: Backend) -> None:
    """Write a trained chain, whole or not at all; equal ones give equal bytes.

    Parameters
    ----------
    path : path
    backend : Backend
    """
    arrays: Arrays = {}
    kinds = []
    for number, step in enumerate(backend.maps):
        kinds.append(type(step).__name__)
        arrays.update({f"map{number}.{name}": values for name, values in _fields(step).items()})
    arrays.update({f"model.{name}": values for name, values in _fields(backend.model).items()})
    if len(backend.heard):
        arrays["heard"] = backend.heard
    if backend.cohort is not None:
        arrays["cohort"] = backend.cohort
    if backend.calibration is not None:
        affine = backend.calibration
        arrays["calibration"] = np.array([*affine.weights, affine.offset, affine.prior])
    texts = {"chain": plain_chain(backend.chain), "maps": kinds, "facts": backend.facts}
    attributes = {name: json.dumps(value, sort_keys=True) for name, value in texts.items()}
    attributes["checksum"] = checksum_of(attributes, arrays)
    write_arrays(path, arrays, attributes={"kind": _KIND, "version": _VERSION, **attributes})


def read_backend(path: str | Path) -> Backend:
    """Read a trained chain.

    Parameters
    ----------
    path : path

    Raises
    ------
    DataError
        With the file, if it cannot be read, is damaged, or holds something else.
    """
    texts = _attributes(path)
    arrays = read_arrays(path)
    if checksum_of(texts, arrays) != texts["checksum"]:
        raise DataError("the file is damaged: its checksum is another", file=path, remedy=_REMEDY)
    try:
        return _built(texts, arrays)
    except _NOT_READ as error:
        text = error.text if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        raise DataError(f"expected a trained chain: {text}"[:500], file=path, remedy=_REMEDY) from error


def _attributes(path: str | Path) -> dict[str, str]:
    with open_file(path) as file:
        kind, version = file.attrs.get("kind"), file.attrs.get("version")
        found = {name: file.attrs.get(name) for name in ("chain", "maps", "facts", "checksum")}
    if not isinstance(kind, str) or kind != _KIND or not all(isinstance(text, str) for text in found.values()):
        raise DataError(f"expected a file of the kind '{_KIND}'", file=path, remedy=_REMEDY)
    if not isinstance(version, int | np.integer) or version != _VERSION:
        raise DataError(f"expected version {_VERSION} of the format, got {version!r:.40}", file=path, remedy=_REMEDY)
    return found


def _built(texts: dict[str, str], arrays: Arrays) -> Backend:
    chain_text, kinds, facts = (json.loads(texts[name]) for name in ("chain", "maps", "facts"))
    chain = parse_chain(chain_text)
    if not isinstance(facts, dict) or not all(isinstance(facts.get(name), kind) for name, kind in _FACTS.items()):
        raise DataError(f"expected the facts {', '.join(_FACTS)}, got {facts!r:.200}")
    maps = tuple(_map(kind, _of(arrays, f"map{number}.")) for number, kind in enumerate(kinds))
    dimension = dimension_after(maps, facts["dimension"])
    cohort = arrays.get("cohort")
    norm = step_of(chain, "norm")
    if (cohort is None) != (norm is None):
        raise DataError("a cohort belongs to a chain with s-norm")
    if cohort is not None and (cohort.ndim != 2 or cohort.shape[1] != dimension or not np.isfinite(cohort).all()):
        raise DataError(f"expected a finite cohort of {dimension} dimensions, got shape {cohort.shape}")
    calibration = arrays.get("calibration")
    if (calibration is None) != (step_of(chain, "calibration") is None):
        raise DataError("a calibration belongs to a chain with the step calibrate")
    affine = None
    if calibration is not None:
        weight, offset, prior = calibration.tolist()
        if not np.isfinite(calibration).all() or not 0 < prior < 1:
            raise DataError("expected a finite calibration with a prior between 0 and 1")
        affine = Affine((weight,), offset, prior)
    heard = arrays.get("heard", np.zeros(0, np.uint64))
    return Backend(chain, maps, _model(chain, _of(arrays, "model."), dimension), cohort, affine, facts, heard)


def _map(kind: Any, arrays: Arrays) -> Map:
    known = {"AffineMap": AffineMap, "LengthNorm": LengthNorm, "Projection": Projection}
    if not isinstance(kind, str) or kind not in known:
        raise DataError(f"expected a map among {', '.join(known)}, got {kind!r:.60}")
    built: Map = known[kind](**_checked(known[kind], arrays))
    if isinstance(built, Projection) and built.directions.ndim != 2:
        raise DataError(f"expected directions (K, R), got shape {built.directions.shape}")
    return built


def _model(chain: Chain, arrays: Arrays, dimension: int) -> Any:
    scorer = step_of(chain, "scorer")
    assert scorer is not None
    assert scorer.step.scorer is not None
    model = scorer.step.scorer.model(**_checked(scorer.step.scorer.model, arrays))
    got = scorer.step.scorer.dimension(model)
    if got is not None and got != dimension:
        raise DataError(f"expected a model of {scorer.name} for {dimension} dimensions, got {got}")
    return model


def _checked(kind: type, arrays: Arrays) -> Arrays:
    """The arrays of a dataclass: no other, none missing that has no default, all of finite numbers."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    needed = {name for name, field in fields.items() if field.default is dataclasses.MISSING}
    if not needed <= arrays.keys() <= fields.keys():
        raise DataError(f"expected {', '.join(fields) or 'no arrays'} of {kind.__name__}, got {', '.join(arrays)}")
    for name, values in arrays.items():
        if values.dtype != np.float64 or not np.isfinite(values).all():
            raise DataError(f"expected finite float64 numbers as {name}, got {values.dtype}")
    return arrays


def _fields(holder: Any) -> Arrays:
    values = {field.name: getattr(holder, field.name) for field in dataclasses.fields(holder)}
    return {name: np.asarray(array, np.float64) for name, array in values.items() if array is not None}


def _of(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def checksum_of(texts: dict[str, str], arrays: Arrays) -> str:
    """Return the digest of all that a file holds: texts of the attributes, and arrays."""
    return fingerprint({name: texts[name] for name in ("chain", "maps", "facts")}, arrays)
