"""Features made by SIDEKIT in place of our own, and ours for SIDEKIT: a folder with one file for each recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from spkbase.errors import DataError, Problems
from spkbase.files import is_file, new_file, write_strings
from spkver.features.config import FeatureConfig
from spkver.features.frames import FeatureTable
from spkver.sidekit import SidekitFeatures, read_feature_file, write_feature_file


def sidekit_files(folder: str | Path, recordings: Iterable[str]) -> dict[str, Path]:
    """Return the file of each recording in a folder of SIDEKIT's features.

    Raises
    ------
    DataError
        With all files that are missing.
    """
    files, problems = {name: Path(folder) / f"{name}.h5" for name in sorted(recordings)}, Problems()
    for name, path in files.items():
        if not is_file(path):
            problems.add(f"no features of recording {name!r}", file=path, remedy="check features.files")
    problems.raise_if_any()
    return files


def import_sidekit(
    folder: str | Path,
    recordings: Iterable[str],
    config: FeatureConfig,
    path: str | Path,
    *,
    attributes: Mapping[str, object] | None = None,
) -> None:
    """Collect SIDEKIT's feature files (any of their three forms) into one store of ours.

    Parameters
    ----------
    folder : path
        Holds ``<recording id>.h5`` with cepstra, energy and vad, as SIDEKIT's tutorial saves them.
    recordings : iterable of str
    config : FeatureConfig
        Its `n_cepstra` and `min_speech_frames` must hold for the files.
    path : path
        The store, see `spkver.features.extract_features`.
    attributes : mapping, optional
        Kept at the root of the store.

    Raises
    ------
    DataError
        With all files that are missing, broken, lack a dataset or do not fit the configuration.
    """
    problems, checked = Problems(), {}
    for name, file in sidekit_files(folder, recordings).items():
        try:
            checked[name] = _checked(read_feature_file(file, name)[name], file, config)
        except DataError as error:
            problems.note(error)
    problems.raise_if_any()
    with new_file(path, attributes=attributes) as store:
        write_strings(store, "ids", checked)
        lengths = [len(features.energy) for features in checked.values() if features.energy is not None]
        store.create_dataset("offsets", data=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
        for ours, theirs, dtype in (
            ("cep", "cep", config.dtype),
            ("energy", "energy", config.dtype),
            ("speech", "vad", bool),
        ):
            arrays = [getattr(features, theirs) for features in checked.values()]
            store.create_dataset(ours, data=np.concatenate(arrays).astype(dtype))


def _checked(features: SidekitFeatures, file: Path, config: FeatureConfig) -> SidekitFeatures:
    missing = [name for name in ("cep", "energy", "vad") if getattr(features, name) is None]
    if missing:
        raise DataError(f"lacks {', '.join(missing)}", file=file, remedy="save cep, energy and vad of every recording")
    assert features.cep is not None
    assert features.vad is not None
    if features.cep.shape[1] != config.n_cepstra:
        raise DataError(
            f"{features.cep.shape[1]} cepstra, expected {config.n_cepstra}",
            file=file,
            remedy=f"set features.n_cepstra={features.cep.shape[1]}",
        )
    if int(features.vad.sum()) < config.min_speech_frames:
        raise DataError(
            f"{int(features.vad.sum())} frames of speech, at least {config.min_speech_frames} are needed", file=file
        )
    return features


def export_sidekit(table: FeatureTable, folder: str | Path) -> int:
    """Write a store as SIDEKIT's feature files in their lossless form, ``<recording id>.h5``.

    Returns
    -------
    int
        Number of files.
    """
    for row, name in enumerate(table.ids):
        cepstra, log_energy, speech = table.of(row)
        features = SidekitFeatures(cep=np.asarray(cepstra), energy=np.asarray(log_energy), vad=speech)
        target = Path(folder) / f"{name}.h5"
        if "\0" in name or Path(folder).resolve() not in target.resolve().parents:
            raise DataError(f"id {name!r} leads out of the folder", file=folder, remedy="rename the recording")
        write_feature_file(target, {name: features})
    return len(table)
