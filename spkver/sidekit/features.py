"""SIDEKIT's feature files: cepstra, energy, filter bank and speech labels of one or more recordings.

SIDEKIT keeps features in one of three forms. "none" is lossless; "percentile", its default, keeps 8 bits per value, and
"htk" 16. All three are read; only the lossless form is written. An id with "/" is a chain of groups in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, errors_of, few
from spkbase.hdf5 import create_file, write_column
from spkbase.showing import one_line
from spkver.sidekit.tables import open_hdf5, read_array

_STREAMS = ("cep", "energy", "fb")
_COMPRESSIONS = (0, 1, 2)
# SIDEKIT writes 1/65535 with these digits
_HEADER_STEP = 1.52590218966964e-05


@one_line
@dataclass(frozen=True, eq=False)
class SidekitFeatures:
    """Features of one recording; None for features that the file does not hold.

    Attributes
    ----------
    cep : ndarray of float32 of shape (T, n_cep), optional
        Cepstra.
    energy : ndarray of float32 of shape (T,), optional
        Log-energy.
    vad : ndarray of bool of shape (T,), optional
        Speech labels.
    fb : ndarray of float32 of shape (T, n_filters), optional
        Log filter bank.
    means, stds : dict of str to ndarray of float32 of shape (d,)
        Mean and standard deviation of "cep", "energy" and "fb" over speech frames, if the file holds them; computed
        when a file is written.
    """

    cep: NDArray[np.float32] | None = None
    energy: NDArray[np.float32] | None = None
    vad: NDArray[np.bool_] | None = None
    fb: NDArray[np.float32] | None = None
    means: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    stds: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def read_feature_file(path: str | Path, show: str | None = None) -> dict[str, SidekitFeatures]:
    """Read a feature file in any of its three forms.

    Parameters
    ----------
    path : path
        The file.
    show : str, optional
        Read only this recording.

    Returns
    -------
    dict of str -> SidekitFeatures
        Recording ids in sorted order.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, does not hold `show`, numbers of frames do not agree, or
        values are not finite.
    """
    with open_hdf5(path) as file:
        if "compression" in file and int(read_array(file, "compression")) not in _COMPRESSIONS:
            raise DataError(f"compression should be 0, 1 or 2, not {file['compression'][()]}")
        if show is None:
            shows = _shows(file)
            if not shows:
                raise DataError("holds no features", remedy="extract them again")
            return {name: _read_show(file[name], name) for name in shows}
        if not show or not isinstance(file.get(show), h5py.Group):
            text = f"holds no features of {show!r}, but of {few(_shows(file), most=5)}"
            raise DataError(text, remedy="check the id, or extract the recording")
        return {show: _read_show(file[show], show)}


def write_feature_file(path: str | Path, features: Mapping[str, SidekitFeatures]) -> None:
    """Write features in the lossless form, with means and standard deviations over speech frames.

    Without labels, or without speech, means and standard deviations are over all frames.

    Parameters
    ----------
    path : path
        The file, written as a whole or not at all.
    features : dict of str -> SidekitFeatures
        Features by recording id. Their `means` and `stds` are ignored and computed afresh.

    Raises
    ------
    DataError
        If an id cannot be a name in HDF5, numbers of frames do not agree, values are not finite, or the file cannot be
        written.
    """
    for show, of_show in features.items():
        parts = show.split("/")
        if not all(parts) or {".", ".."} & set(parts) or "\0" in show or parts[0] == "compression":
            raise DataError(
                f"id {show!r} cannot be a name in an HDF5 file",
                file=path,
                remedy="rename the recording",
            )
        with errors_of(path):
            _check_frames(of_show, show)
    with create_file(path) as file:
        file["compression"] = np.int64(0)
        for show, of_show in features.items():
            try:
                _write_show(file.create_group(show), of_show)
            except (ValueError, RuntimeError) as error:
                raise DataError(
                    f"id {show!r} collides with another id, or with the name of a dataset",
                    file=path,
                    remedy="write it to another file",
                ) from error


def _shows(file: h5py.File) -> list[str]:
    shows = []

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Group):
            streams = [item.get(stream) for stream in (*_STREAMS, "vad")]
            if any(isinstance(stream, h5py.Dataset) for stream in streams):
                shows.append(name)

    file.visititems(visit)
    return sorted(shows)


def _read_show(group: h5py.Group, show: str) -> SidekitFeatures:
    streams: dict[str, Any] = {
        name: _read_stream(group, name) for name in _STREAMS if name in group
    }
    if "energy" in streams:
        streams["energy"] = streams["energy"].reshape(len(streams["energy"]))
    if "vad" in group:
        streams["vad"] = read_array(group, "vad", kinds="iub", shape=(None,)).astype(bool)
    features = SidekitFeatures(
        **streams, means=_read_moments(group, "mean"), stds=_read_moments(group, "std")
    )
    _check_frames(features, show)
    return features


def _read_moments(group: h5py.Group, moment: str) -> dict[str, NDArray[np.float32]]:
    moments = {}
    for name in _STREAMS:
        if f"{name}_{moment}" in group:
            values = read_array(group, f"{name}_{moment}", kinds="f")
            moments[name] = np.atleast_1d(values.astype(np.float32))
    return moments


def _read_stream(group: h5py.Group, name: str) -> NDArray[np.float32]:
    if f"{name}_header" in group:
        return _from_percentiles(group, name)
    if f"{name}_comp" in group:
        scale, offset = read_array(group, f"{name}_comp", kinds="f", shape=(2,)).astype(np.float64)
        values = read_array(group, name, kinds="i")
        if scale == 0:
            raise DataError(f"{name}_comp: the scale is 0")
        restored: NDArray[np.float32] = ((values + offset) / scale).astype(np.float32)
        return restored
    return read_array(group, name, kinds="f").astype(np.float32, copy=False)


def _from_percentiles(group: h5py.Group, name: str) -> NDArray[np.float32]:
    """Decode 8 bits: codes are linear between neighbouring percentiles (0, 25, 75, 100) of each column."""
    codes = read_array(group, name, kinds="u", shape=(None, None)).astype(np.float32)
    header = read_array(group, f"{name}_header", kinds="iu", shape=(codes.shape[1], 4))
    low, width = read_array(group, f"{name}_min_range", kinds="f", shape=(2,))
    # from here on, float32 and products with inverses as in SIDEKIT: the same values to the last bit
    p0, p25, p75, p100 = (float(low) + header * float(width) * _HEADER_STEP).astype(np.float32).T
    lower = p0 + (p25 - p0) * codes * (1 / 64)
    middle = p25 + (p75 - p25) * (codes - 64) * (1 / 128)
    upper = p75 + (p100 - p75) * (codes - 192) * (1 / 63)
    values: NDArray[np.float32] = np.select([codes <= 64, codes <= 192], [lower, middle], upper)
    return values


def _check_frames(features: SidekitFeatures, show: str) -> None:
    streams = {name: getattr(features, name) for name in (*_STREAMS, "vad")}
    present = {name: values for name, values in streams.items() if values is not None}
    if not set(present) & set(_STREAMS):
        raise DataError(
            f"{show!r} has neither cepstra nor energy nor filter bank", remedy="extract it again"
        )
    for name, values in present.items():
        n_axes = 1 if name in ("energy", "vad") else 2
        if values.ndim != n_axes:
            raise DataError(
                f"{name} of {show!r} should have {n_axes} axes, not the shape {values.shape}"
            )
        if name != "vad" and not np.isfinite(values).all():
            raise DataError(
                f"{name} of {show!r} holds values that are not finite", remedy="extract it again"
            )
    lengths = {name: len(values) for name, values in present.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"{show!r} has different numbers of frames: {lengths}", remedy="extract it again"
        )
    if 0 in lengths.values():
        raise DataError(f"{show!r} has no frames", remedy="leave the recording out")


def _write_show(group: h5py.Group, features: SidekitFeatures) -> None:
    speech = features.vad
    for name in _STREAMS:
        values = getattr(features, name)
        if values is None:
            continue
        values = np.asarray(values, dtype=np.float32)
        write_column(group, name, values)
        counted = values
        if speech is not None and speech.any():
            counted = values[speech]
        for moment, result in (("mean", counted.mean(axis=0)), ("std", counted.std(axis=0))):
            if result.ndim:
                write_column(group, f"{name}_{moment}", result)
            else:
                group[f"{name}_{moment}"] = result
    if speech is not None:
        write_column(group, "vad", speech.astype(np.int8))
