"""A trained attacker, and the folder that it is kept in.

    ATTACKER/attacker.yaml    format, configuration, seed, what it was trained on, SHA-256 of the other, fingerprint
    ATTACKER/attacker.h5      universal background model, transformation, background, cohort

The folder is all that scoring needs. `attacker.yaml` is written last, so a folder with it is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.configuration import load_config, read_yaml, to_dict
from spkbase.errors import ConfigError, DataError
from spkbase.files import check_forms, file_digest, fingerprint, read_arrays, write_arrays, write_text
from spkbase.runs import versions
from spkbase.showing import one_line
from spkver.attackers.backend import Backend, Cohort, Segments
from spkver.attackers.config import AttackerConfig
from spkver.attackers.projection import arrays_of, transform_of
from spkver.backend import SvmModels
from spkver.features import Frames
from spkver.mixture import GaussianMixture

_FORMAT = 1
_DESCRIPTION, _ARRAYS = "attacker.yaml", "attacker.h5"
_KEYS = {"format", "config", "seed", "trained_on", "versions", "sha256", "fingerprint"}


@one_line
@dataclass(frozen=True)
class TrainedAttacker:
    """A built-in attacker after its training: all that scoring needs.

    Attributes
    ----------
    config : AttackerConfig
    seed : int
    ubm : GaussianMixture
    backend : Backend
    trained_on : mapping
        Name of the training set, its numbers of utterances, speakers and sessions.
    heard : ndarray of uint64 of shape (S,)
        Digests of the training speakers, see `spkver.backend.speaker_digests`; empty where they are not known.
    """

    config: AttackerConfig
    seed: int
    ubm: GaussianMixture
    backend: Backend
    trained_on: Mapping[str, Any] = field(default_factory=dict)
    heard: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)

    @property
    def name(self) -> str:
        """What its results are called."""
        return self.config.name


def save_attacker(attacker: TrainedAttacker, folder: str | Path) -> None:
    """Write an attacker as one folder; other files in it stay."""
    import yaml

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DESCRIPTION).unlink(missing_ok=True)
    write_arrays(folder / _ARRAYS, _arrays(attacker))
    description = {
        "format": _FORMAT,
        "config": to_dict(attacker.config),
        "seed": attacker.seed,
        "trained_on": dict(attacker.trained_on),
        "versions": versions(),
        "sha256": file_digest(folder / _ARRAYS),
    }
    description["fingerprint"] = fingerprint(description)
    write_text(folder / _DESCRIPTION, yaml.safe_dump(description, sort_keys=False, allow_unicode=True))


def load_attacker(folder: str | Path) -> TrainedAttacker:
    """Read an attacker from its folder.

    Raises
    ------
    DataError
        If it is not there, not whole, damaged or of another format.
    """
    folder = Path(folder)
    file = folder / _DESCRIPTION
    if not file.is_file():
        raise DataError(
            "no attacker there: attacker.yaml is missing", file=folder, remedy="train one with 'spkver train'"
        )
    try:
        description = read_yaml(file)
    except ConfigError as error:
        raise DataError(error.text, file=file, line=error.line, remedy="train the attacker again") from error
    if description.get("format") != _FORMAT or set(description) != _KEYS or not isinstance(description["seed"], int):
        raise DataError(
            f"not the description of an attacker in format {_FORMAT}", file=file, remedy="train the attacker again"
        )
    if not isinstance(description["config"], dict) or not isinstance(description["trained_on"], dict):
        raise DataError("config and trained_on should hold keys", file=file, remedy="train the attacker again")
    try:
        config = load_config(AttackerConfig, defaults=description["config"])
    except ConfigError as error:
        raise DataError(str(error), file=file, remedy="train the attacker again") from error
    if file_digest(folder / _ARRAYS) != description["sha256"]:
        raise DataError("missing, or not as it was written", file=folder / _ARRAYS, remedy="train the attacker again")
    if (
        fingerprint({key: value for key, value in description.items() if key != "fingerprint"})
        != description["fingerprint"]
    ):
        text = "not as it was written: another configuration does not fit what was trained"
        raise DataError(text, file=file, remedy="train the attacker again")
    arrays = read_arrays(folder / _ARRAYS)
    is_full = "ubm_variances" in arrays and arrays["ubm_variances"].ndim == 3
    check_forms(folder / _ARRAYS, arrays, ubm_weights="f1", ubm_means="f2", ubm_variances="f3" if is_full else "f2")
    try:
        ubm = GaussianMixture(*(arrays[f"ubm_{name}"] for name in ("weights", "means", "variances")))
        backend = _backend(config, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        text = f"holds no attacker of this kind: {type(error).__name__} {error}"
        raise DataError(text, file=folder / _ARRAYS, remedy="train the attacker again") from error
    heard = arrays.get("heard", np.zeros(0, np.uint64))
    return TrainedAttacker(config, description["seed"], ubm, backend, description["trained_on"], heard)


def _arrays(attacker: TrainedAttacker) -> dict[str, NDArray]:
    ubm, backend = attacker.ubm, attacker.backend
    arrays: dict[str, NDArray] = {"ubm_weights": ubm.weights, "ubm_means": ubm.means, "ubm_variances": ubm.variances}
    if len(attacker.heard):
        arrays["heard"] = attacker.heard
    if backend.transform is not None:
        arrays |= arrays_of(backend.transform)
    if backend.background is not None and backend.gram is not None:
        arrays |= {"background": backend.background, "gram": backend.gram}
    if backend.cohort is not None:
        machines, tested = backend.cohort.models, backend.cohort.segments
        arrays |= {"cohort_models": machines.models, "cohort_weights": np.asarray(machines.weights)}
        arrays |= {"cohort_biases": machines.biases, "cohort_segments": tested.ids}
        if tested.frames is not None:
            arrays |= {"cohort_offsets": tested.frames.offsets, "cohort_frames": np.asarray(tested.frames.values)}
        else:
            assert tested.vectors is not None
            arrays |= {"cohort_vectors": tested.vectors}
    return arrays


def _backend(config: AttackerConfig, arrays: dict[str, NDArray]) -> Backend:
    transform = cohort = None
    if "centre" in arrays:
        transform = transform_of(arrays, unit_length=config.method.scales(config))
    if "cohort_models" in arrays:
        machines = SvmModels(arrays["cohort_models"], arrays["cohort_weights"], arrays["cohort_biases"])
        segments = np.asarray(arrays["cohort_segments"], object)
        if "cohort_frames" in arrays:
            tested = Segments(segments, frames=Frames(segments, arrays["cohort_offsets"], arrays["cohort_frames"]))
        else:
            tested = Segments(segments, vectors=arrays["cohort_vectors"])
        cohort = Cohort(machines, tested, config.norm)
    return Backend(transform, arrays.get("background"), arrays.get("gram"), cohort)
